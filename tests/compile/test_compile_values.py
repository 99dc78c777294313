"""A program that was made of one call is right for other values, also where an operation goes another way for them.

Where its size or its dtype would be another one, it is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor

T = pullback.tensor
L = pullback.linalg
BACKENDS = pytest.mark.parametrize("backend", ["c", "numpy"])
INF, NAN = float("inf"), float("nan")


def _same(found: Any, expected: Any) -> None:
    found, expected = ([*v] if isinstance(v, (tuple, list)) else [v] for v in (found, expected))
    for f, e in zip(found, expected, strict=True):
        assert (f.dtype, f.shape) == (e.dtype, e.shape)
        rtol = 1e-5 if e.dtype in (pullback.float32, pullback.complex64) else 1e-12
        np.testing.assert_allclose(f.detach().numpy(), e.detach().numpy(), rtol=rtol)


EYE, SINGULAR, TURN = T([[1.0, 0.0], [0.0, 1.0]]), T([[1.0, 2.0], [2.0, 4.0]]), T([[0.0, 1.0], [-1.0, 0.0]])
MATRICES = (EYE, SINGULAR, TURN, -EYE)
MASKS = (T([1.0, 0, 1, 1, 1, 1]), T([0.0, 0, 1, 1, 0, 0]), T([0.0] * 6), T([1.0] * 6), T([0.0, 0, 0, 0, 0, 3]))
COUNTS = (T([1.0, 2, 9, 9]), T([1.0, 9, 9, 9]), T([9.0] * 4), T([1.0, 2, 3, 4]))
SPREADS = (T([1.0, 2, 3]), T([1e30, 2e30, 3e30]), T([1e-30, 2e-30, 3e-30]))
TALL = T([[1.0, 2], [3, 4], [5, 7]])
FLAT = T([[1.0, 2], [2, 4], [3, 6]])
RIGHT = T([[1.0], [2], [2]])

# A function, and inputs that make it go different ways: each is the first one once.
WAYS: dict[str, tuple[Any, tuple[Tensor, ...]]] = {
    "histc of a range": (lambda x: pullback.histc(x, 3, 0, 6), COUNTS),
    "histc": (lambda x: pullback.histc(x, 3) + 1, COUNTS),
    "nonzero_static": (lambda x: pullback.nonzero_static(x, size=4) * 2 + 1, MASKS),
    "parts by nonzero_static": (lambda x: x[pullback.nonzero_static(x, size=2)[:, 0]].sum(), MASKS),
    "inv_ex": (L.inv_ex, MATRICES),
    "solve_ex": (lambda a: L.solve_ex(a, a), MATRICES),
    "cholesky_ex": (lambda a: L.cholesky_ex(a)[1], MATRICES),
    "lu_factor_ex": (lambda a: L.lu_factor_ex(a)[2], MATRICES),
    "slogdet": (L.slogdet, MATRICES),
    "matrix_rank": (L.matrix_rank, MATRICES),
    "eigvals": (lambda a: L.eigvals(a).sum() * 2, MATRICES),
    "eig": (lambda a: L.eig(a)[0].sum(), MATRICES),
    "lstsq": (lambda a: L.lstsq(a, RIGHT, driver="gelsd")[2] + 1, (TALL, FLAT)),
    "std": (lambda x: x.std(), SPREADS),
    "std of rows": (
        lambda x: pullback.std_mean(x, 1),
        (T([[1.0, 2, 3], [1, 5, 2]]), 1e19 * T([[1.0, 2, 3], [1, 5, 2]])),
    ),
    "median": (lambda x: x.median(), COUNTS),
    "unique, of what is sorted": (lambda x: x.sort()[0].diff().count_nonzero(), COUNTS),
    "searchsorted": (lambda x: pullback.searchsorted(x.sort()[0], x), COUNTS),
    "one_hot": (lambda x: pullback.nn.functional.one_hot(x.long(), 10) + 1, COUNTS),
}


@BACKENDS
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WAYS)
def test_other_values_may_go_another_way(name: str, backend: str) -> None:
    f, inputs = WAYS[name]
    for first in inputs:
        compiled = pullback.compile(f, backend=backend)
        compiled(first)
        for x in inputs:
            _same(compiled(x), f(x))


@BACKENDS
@pytest.mark.parametrize("first", [TALL, FLAT])
def test_a_size_that_depends_on_values_is_an_error(first: Tensor, backend: str) -> None:
    def f(a: Tensor) -> Tensor:
        return L.lstsq(a, RIGHT, driver="gelsd")[1] * 2

    compiled = pullback.compile(f, backend=backend)
    _same(compiled(first), f(first))
    with pytest.raises(
        RuntimeError, match=r"another shape or dtype than when the function was traced(.|\n)*What to do"
    ):
        compiled(FLAT if first is TALL else TALL)
    _same(compiled(first), f(first))


def _gradient(f: Any, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return pullback.autograd.grad(f(x).sum(), x)[0]


PRODUCTS = (
    [1e-30, 1e-30, 1e30],
    [1e30, 1e30, 1e-30],
    [NAN, 1.0, 2.0],
    [0.0, 1.0, 2.0],
    [0.0, 0.0, 2.0],
    [2.0, 3.0, 4.0],
)
GRADIENTS: dict[str, tuple[Any, tuple[Tensor, ...]]] = {
    "slogdet": (lambda a: L.slogdet(a)[1], (EYE, SINGULAR)),
    "logdet": (pullback.logdet, (EYE, SINGULAR)),
    "prod": (lambda x: x.prod(), tuple(map(T, PRODUCTS))),
    "prod of rows": (lambda x: x.prod(1), tuple(T([p, p[::-1]]) for p in PRODUCTS)),
    "prod of rows of zeros": (lambda x: x.prod(1), (T([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [0.0, 0.0, 1.0]]),)),
    "cdist": (lambda x: pullback.cdist(x, x, p=1.0), tuple(map(T, ([[INF], [0.0], [2.0]], [[NAN], [0.0], [2.0]])))),
    "pdist": (lambda x: pullback.nn.functional.pdist(x, p=1.0), (T([[NAN], [0.0], [2.0]]),)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GRADIENTS)
def test_so_may_their_gradients(name: str) -> None:
    f, inputs = GRADIENTS[name]
    for first in inputs:
        compiled = pullback.compile(f, backend="numpy")
        _gradient(compiled, first)
        for x in inputs:
            _same(_gradient(compiled, x), _gradient(f, x))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("values", [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0]])
def test_second_derivatives_of_products_are_those_of_their_factors(values: list[float]) -> None:
    x = T(values, dtype=pullback.float64)
    a, b, c = values
    expected = np.array([[0, c, b], [c, 0, a], [b, a, 0]])
    for f in (lambda x: x.prod(), pullback.compile(lambda x: x.prod())):
        np.testing.assert_allclose(pullback.func.hessian(f)(x).numpy(), expected)
        twice = pullback.func.jacrev(pullback.func.grad(f))(x)
        np.testing.assert_allclose(twice.numpy(), expected)


NUMBERS = (
    *(np.float64(2), np.float16(1000), np.int8(100), np.uint8(3), np.float32(0.1), np.complex128(2)),
    *(np.complex64(1j), np.bool_(True), np.int64(3)),
)
OPERATIONS: dict[str, Any] = {
    "*": lambda x, k: x * k,
    "reflected *": lambda x, k: k * x,
    "+": lambda x, k: x + k,
    "/": lambda x, k: x / k,
    "where": lambda x, k: pullback.where(x == x, x, k),
    "numpy": np.multiply,
    "beside floats": lambda x, k: pullback.ones(2, 1) + x * k,
}
BESIDE = (T([0, 100, 200]), T([True, False]), T([1.5, 2.0]), T([1.5], dtype=pullback.float16), T(1.5), T(2), T([1j]))


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_number_of_numpys_is_a_number_everywhere(name: str, number: Any) -> None:
    operation = OPERATIONS[name]
    for x in BESIDE:
        expected = operation(x, number)
        python = operation(x, number.item())
        assert expected.dtype == python.dtype
        np.testing.assert_array_equal(expected.numpy(), python.numpy())
        for backend in ("c", "numpy"):
            _same(pullback.compile(operation, backend=backend)(x, number), expected)
            _same(pullback.compile(lambda x: operation(x, number), backend=backend)(x), expected)
        if x.ndim:
            of_two = pullback.vmap(lambda x: operation(x, number))(pullback.stack([x, x]))
            assert of_two.dtype == expected.dtype
            _same(of_two[0], expected)


@BACKENDS
@pytest.mark.parametrize("one", [1, True, 1.0, 1 + 0j])
def test_a_complex_product_by_one_is_a_product(one: Any, backend: str) -> None:
    x = T([complex(INF, 0), complex(-0.0, 0.0), 2 + 1j])
    for f in (lambda x: x * one, lambda x: one * x, lambda x: x / one):
        with np.errstate(all="ignore"):
            found, expected = pullback.compile(f, backend=backend)(x).numpy(), f(x).numpy()
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))

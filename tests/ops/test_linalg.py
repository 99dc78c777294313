"""Linear algebra beyond single calls of the table's samples: what is determined and what is not, matrices without an
inverse, large ones, algorithms of the library's own, and what the public module holds.
"""

from __future__ import annotations

import builtins
import itertools
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

import pullback
from pullback import linalg
from pullback.kernels import matrices
from pullback.ops.products import contractions, distances
from pullback.table.samples import A as Array
from tests.oracle import array_of, difference

Tensors = Callable[..., Any]
COMPLEX = pytest.mark.parametrize("dtype", ["float64", "complex128"])


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def matrix(*shape: int, domain: str = "regular", dtype: str = "float64", seed: int = 1) -> np.ndarray[Any, Any]:
    """A matrix, or a stack of them."""
    return Array(*shape, domain=domain).make(np.random.default_rng(seed), dtype)


def leaf(values: Any) -> pullback.Tensor:
    """A tensor that requires a gradient, of the values' own dtype."""
    return pullback.from_numpy(np.array(values)).requires_grad_()


def inner(a: Any, b: Any) -> float:
    """The real inner product."""
    return float(np.sum(np.real(np.conj(a) * b)))


def assert_derivatives(loss: Tensors, *values: Any, hermitian: bool = False, accuracy: float = 1e-6) -> None:
    """Hold the first and second derivative of a real loss, along random directions, to central differences."""
    rng, step = np.random.default_rng(5), 1e-5

    def direction(like: Any) -> Any:
        turn = rng.standard_normal(like.shape)
        turn = turn + 1j * rng.standard_normal(like.shape) if np.iscomplexobj(like) else turn
        return turn + np.conj(np.swapaxes(turn, -1, -2)) if hermitian else turn

    along = [direction(v) for v in values]
    moved = [[v + s * a for v, a in zip(values, along, strict=True)] for s in (step, -step)]

    def slope(points: Any, create_graph: bool = False) -> Any:
        leaves = [leaf(p) for p in points]
        grads = pullback.autograd.grad(loss(*leaves), leaves, create_graph=create_graph)
        weights = [pullback.from_numpy(np.asarray(a)) for a in along]
        return sum((np.real(np.conj(w) * g)).sum() for w, g in zip(weights, grads, strict=True)), leaves

    first, leaves = slope(values, create_graph=True)
    ahead, behind = (loss(*map(leaf, m)).item() for m in moved)
    assert_allclose(first.item(), (ahead - behind) / (2 * step), rtol=accuracy, atol=accuracy)
    again = pullback.autograd.grad(first, leaves)
    second = sum(inner(a, g.numpy()) for a, g in zip(along, again, strict=True))
    ahead, behind = (slope(m)[0].item() for m in moved)
    assert_allclose(second, (ahead - behind) / (2 * step), rtol=10 * accuracy, atol=10 * accuracy)


# The public module ----------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_the_module_has_the_names_of_torch(torch: ModuleType) -> None:
    theirs = {name for name in dir(torch.linalg) if not name.startswith("_")} - {"common_notes"}
    assert theirs <= set(dir(linalg))
    assert set(linalg.__all__) <= theirs


@pytest.mark.torch
def test_results_have_the_field_names_of_torch(torch: ModuleType) -> None:
    def fields(lib: ModuleType) -> dict[str, Any]:
        a = lib.eye(3)
        calls = {
            **{name: lambda f: f(a) for name in "inv_ex slogdet cholesky_ex qr svd eigh eig lu lu_factor".split()},
            **{name: lambda f: f(a, a) for name in ("solve_ex", "lstsq")},
            "lu_factor_ex": lambda f: f(a),
        }
        results = {name: call(getattr(lib.linalg, name)) for name, call in calls.items()}
        results |= {f"torch.{name}": getattr(lib, name)(a) for name in ("slogdet", "qr", "svd")}
        results["torch.lu_unpack"] = lib.lu_unpack(*lib.linalg.lu_factor(a))
        return {
            name: (type(r).__name__, [f for f in dir(r) if hasattr(r, f) and f in _FIELDS])
            for name, r in results.items()
        }

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert fields(pullback) == fields(torch)


_FIELDS = (
    "inverse info sign logabsdet L Q R U S Vh V eigenvalues eigenvectors P LU pivots result solution residuals rank "
    "singular_values"
).split()


def test_linalg_error_is_that_of_torch_and_that_of_numpy() -> None:
    singular = pullback.zeros(2, 2)
    for kind in (RuntimeError, np.linalg.LinAlgError, linalg.LinAlgError):
        with pytest.raises(kind, match="singular"):
            linalg.inv(singular)
    with pytest.raises(linalg.LinAlgError, match=r"Batch element 1.*diagonal element 2") as info:
        linalg.inv(pullback.from_numpy(np.array([np.eye(2), np.ones((2, 2))])))
    assert "What to do" in str(info.value)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_stays_single(torch: ModuleType, dtype: str) -> None:
    a, b = matrix(3, 3, domain="definite", dtype=dtype), matrix(3, 2, dtype=dtype)
    one = "det slogdet inv cholesky qr svd svdvals eigh eigvalsh eig eigvals matrix_exp pinv lu lu_factor norm".split()
    calls: list[Tensors] = [*(lambda lib, x, y, n=n: getattr(lib.linalg, n)(x) for n in one)]
    calls += [lambda lib, x, y: lib.linalg.solve(x, y), lambda lib, x, y: lib.linalg.lstsq(x, y)]
    calls += [lambda lib, x, y: lib.einsum("ij,jk->k", x, y), lambda lib, x, y: lib.addmm(y, x, y, alpha=2)]
    for call in calls:
        ours, theirs = (call(lib, lib.from_numpy(a), lib.from_numpy(b)) for lib in (pullback, torch))
        pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
        assert [str(x.dtype)[9:] for x, _ in pairs] == [
            str(y.dtype)[6:] for y in (theirs if isinstance(theirs, tuple) else [theirs])
        ]


def test_out_takes_the_result_or_all_of_them() -> None:
    a = pullback.from_numpy(matrix(3, 3))
    out = pullback.empty(0, dtype=pullback.float64)
    assert linalg.det(a, out=out) is out
    assert_allclose(out.numpy(), np.linalg.det(a.numpy()))
    outs = tuple(pullback.empty(0, dtype=pullback.float64) for _ in range(3))
    linalg.svd(a, out=outs)
    assert_allclose((outs[0] * outs[1] @ outs[2]).numpy(), a.numpy(), atol=1e-14)


# What is determined up to a choice ------------------------------------------------------------------------------------


@COMPLEX
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 4, 2)])
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...], dtype: str) -> None:
    a = matrix(*shape, dtype=dtype)
    t = pullback.from_numpy(a)
    u, s, vh = linalg.svd(t, full_matrices=False)
    q, r = linalg.qr(t)
    whole, top = linalg.qr(t, mode="complete")
    p, lower, upper = linalg.lu(t)
    for found in ((u * s[..., None, :].to(u.dtype)) @ vh, q @ r, whole @ top, p.to(lower.dtype) @ lower @ upper):
        assert_allclose(found.numpy(), a, atol=1e-14)
    assert_allclose((whole.mT.conj() @ whole).numpy(), np.broadcast_to(np.eye(shape[-2]), whole.shape), atol=1e-14)
    if shape[-1] == shape[-2]:
        values, vectors = linalg.eig(t)
        assert_allclose((t.to(vectors.dtype) @ vectors).numpy(), (vectors * values).numpy(), atol=1e-14)


@COMPLEX
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (5, 2)])
def test_the_space_that_full_matrices_adds_has_a_derivative(shape: tuple[int, ...], dtype: str) -> None:
    weight = pullback.from_numpy(matrix(5, 5, domain="hermitian", dtype=dtype))

    def loss(a: Any) -> Any:
        u, s, vh = linalg.svd(a)
        k = s.shape[0]
        others = u[:, k:] if a.shape[0] > a.shape[1] else vh[k:].mT.conj()
        n = others.shape[0]
        found = (weight[:n, :n] * (others @ others.mT.conj())).sum()
        return found.real if found.is_complex() else found

    assert_derivatives(loss, matrix(*shape, dtype=dtype))


def test_the_basis_that_full_matrices_adds_has_none() -> None:
    a = leaf(matrix(5, 2))
    u = linalg.svd(a).U
    with pytest.raises(RuntimeError, match="choice of basis"):
        u[:, 3].sum().backward(retain_graph=True)
    u[:, :2].sum().backward()  # these are determined, but for signs
    assert a.grad is not None


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_a_loss_that_depends_on_phases_has_no_derivative(name: str) -> None:
    a = leaf(matrix(3, 3, domain="definite", dtype="complex128"))
    result = getattr(linalg, name)(a)
    vectors = result[0] if name == "svd" else result[1]
    with pytest.raises(RuntimeError, match=r"e\^\{i phi\}"):
        (vectors.real + 2 * vectors.imag).sum().backward(retain_graph=True)
    (vectors.abs() ** 3).sum().backward()
    assert np.isfinite(a.grad.numpy()).all()


@COMPLEX
@pytest.mark.parametrize(
    "loss",
    [
        lambda a: (linalg.svd(a, full_matrices=False).U.abs() ** 4).sum(),
        lambda a: (linalg.svd(a, full_matrices=False).Vh.abs() ** 3).sum(),
        lambda a: linalg.svdvals(a).prod() + (linalg.svdvals(a) ** 3).sum(),
        lambda a: (linalg.qr(a @ a.mT.conj() + pullback.eye(len(a)).to(a.dtype)).Q.abs() ** 4).sum(),
        lambda a: (linalg.eig(a @ a).eigenvectors.abs() ** 4).sum() if a.shape[0] == a.shape[1] else linalg.norm(a),
        lambda a: linalg.matrix_norm(a, "nuc") * linalg.cond(a),
        lambda a: linalg.pinv(a).abs().sum(),
        lambda a: linalg.matrix_norm(a, 2) / linalg.matrix_norm(a, -2),
    ],
)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 3)])
def test_derivatives_of_losses_that_are_determined(loss: Tensors, shape: tuple[int, ...], dtype: str) -> None:
    assert_derivatives(loss, matrix(*shape, dtype=dtype))


@COMPLEX
@pytest.mark.parametrize(
    "loss",
    [
        lambda a: (linalg.eigh(a).eigenvectors.abs() ** 4).sum(),
        lambda a: (linalg.eigh(a, UPLO="U").eigenvectors.abs() ** 4).sum() * linalg.eigvalsh(a).prod(),
        lambda a: (linalg.cholesky(a @ a).abs() ** 3).sum(),
        lambda a: linalg.cholesky(a @ a, upper=True).abs().sum(),
        lambda a: pullback.logdet(a @ a).real,
        lambda a: linalg.pinv(a, hermitian=True).abs().sum(),
    ],
)
def test_derivatives_at_hermitian_matrices(loss: Tensors, dtype: str) -> None:
    assert_derivatives(loss, matrix(3, 3, domain="hermitian", dtype=dtype), hermitian=True)


def test_equal_singular_values_and_eigenvalues_have_gradients() -> None:
    a = leaf(np.eye(3))
    (linalg.svdvals(a).sum() + linalg.eigvalsh(a).sum() + linalg.eigvals(a).sum().real).backward()
    assert_allclose(a.grad.numpy(), 3 * np.eye(3), atol=1e-14)


# Matrices without an inverse ------------------------------------------------------------------------------------------

SINGULAR = [
    np.array([[1.0, 2.0], [2.0, 4.0]]),
    np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
    np.outer([1.0, 2.0, 4.0], [1.0, 0.5, -1.0]),  # powers of two: exactly singular, however it is eliminated
    np.zeros((2, 2)),
    np.zeros((3, 3)),
    np.array([np.diag([1.0, 2.0]), np.ones((2, 2))]),
    np.diag([1.0, 2.0, 3.0, 0.0]),
    np.array([[1.0, 1.0 + 1e-9], [1.0, 1.0]]),
    np.outer([1.0, 2j, 3.0], [1.0, 0.5j, -1.0]),
]


@pytest.mark.parametrize("values", SINGULAR, ids=str)
def test_determinants_of_singular_matrices_have_two_derivatives(values: Any) -> None:
    def loss(a: Any) -> Any:
        found = (linalg.det(a) * linalg.det(a + pullback.eye(a.shape[-1], dtype=pullback.float64))).sum()
        return found.real if found.is_complex() else found

    assert_derivatives(loss, values)
    assert_derivatives(lambda a: linalg.det(a).real.sum() if a.is_complex() else linalg.det(a).sum(), values)


def test_cofactors_are_exact_where_the_inverse_is_not() -> None:
    values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0 + 1e-13]])
    a = leaf(values)
    linalg.det(a).backward()
    exact = [[-3, 6, -3], [6, -12, 6], [-3, 6, -3]]
    assert_allclose(a.grad.numpy(), exact, rtol=1e-12)


def test_third_derivative_of_the_determinant() -> None:
    # det(I + t X) is a polynomial of t whose third derivative is 6 det(X)
    x = pullback.from_numpy(matrix(3, 3))
    for start in (np.eye(3), np.diag([1.0, 2.0, 4.0])):
        t = pullback.tensor(0.0, dtype=pullback.float64, requires_grad=True)
        found = linalg.det(pullback.from_numpy(start) + t * x)
        for _ in range(3):
            (found,) = pullback.autograd.grad(found, t, create_graph=True)
        assert_allclose(found.item(), 6 * linalg.det(x).item(), rtol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize("values", [v for v in SINGULAR if v.dtype.kind == "f" and v.max() < 9], ids=str)
def test_info_says_what_torch_says(torch: ModuleType, values: Any) -> None:
    for name in ("inv_ex", "cholesky_ex", "lu_factor_ex"):
        ours, theirs = (getattr(lib.linalg, name)(lib.from_numpy(values)).info for lib in (pullback, torch))
        assert not difference(ours, theirs)
    ones = [lib.ones(values.shape[-1], 1, dtype=lib.float64) for lib in (pullback, torch)]
    pair = [lib.linalg.solve_ex(lib.from_numpy(values), b) for lib, b in zip((pullback, torch), ones, strict=True)]
    assert not difference(pair[0].info, pair[1].info)


def test_what_cannot_be_inverted_does_not_spoil_the_others() -> None:
    stack = np.array([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])
    t = pullback.from_numpy(stack)
    inverse, info = linalg.inv_ex(t)
    assert info.tolist() == [0, 2, 0]
    assert_allclose(inverse[::2].numpy(), np.linalg.inv(stack[::2]))
    assert np.isnan(inverse[1].numpy()).all()
    result, info = linalg.solve_ex(t, pullback.ones(2, dtype=pullback.float64)[:, None])
    assert info.tolist() == [0, 2, 0]
    assert np.isfinite(result[::2].numpy()).all()
    factor, info = linalg.cholesky_ex(t)
    assert info.tolist() == [0, 2, 2]
    assert_allclose(factor[0].numpy(), np.diag([2**0.5, 2]))
    assert_allclose(factor[2].numpy(), [[1, 0], [2, 0]])
    for check in (linalg.inv_ex, linalg.cholesky_ex, linalg.lu_factor_ex):
        with pytest.raises(linalg.LinAlgError):
            check(t, check_errors=True)


def test_a_singular_matrix_has_an_infinite_condition_number() -> None:
    a = leaf([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 1.0]]])
    found = linalg.cond(a, 1)
    assert found.tolist() == [np.inf, 2.0]


def test_systems_that_are_singular_only_backward_give_nan() -> None:
    a = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    result, _ = linalg.solve_ex(a, a.detach())
    result.sum().backward()
    assert a.grad.shape == (3, 3)


@pytest.mark.parametrize("values", [np.nan, np.inf, -np.inf, 1e308, 1e-308])
def test_no_warning_and_no_endless_loop_for_what_is_not_finite(values: float) -> None:
    names = (
        "det slogdet inv inv_ex cholesky_ex qr svd svdvals eigvalsh matrix_exp pinv matrix_rank lu lu_factor_ex cond "
        "vector_norm matrix_norm norm"
    ).split()
    for name, spoiled in itertools.product(names, (np.full((3, 3), values), np.eye(3) + np.diag([values, 1.0], 1))):
        a = leaf(spoiled)
        try:
            results = getattr(linalg, name)(a)
            outputs = [t for t in (results if isinstance(results, tuple) else [results]) if t.requires_grad]
            pullback.autograd.grad(outputs, a, [pullback.ones_like(t) for t in outputs], allow_unused=True)
        except linalg.LinAlgError:
            pass
    with pytest.raises(linalg.LinAlgError, match="finite"):
        linalg.svd(pullback.tensor([[np.inf, 1.0], [1.0, 1.0]]))


# Algorithms of the library's own --------------------------------------------------------------------------------------

SIZES = [
    (1, 1),
    (3, 5),
    (5, 3),
    (31, 31),
    (33, 33),
    (70, 70),
    (40, 70),
    (70, 40),
    (3, 40, 40),
    (2, 3, 9, 4),
    (2, 0, 3, 3),
]


@pytest.mark.parametrize("scipy_is_there", [True, False])
@COMPLEX
@pytest.mark.parametrize("shape", SIZES)
def test_lu_factors(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: str, scipy_is_there: bool) -> None:
    if not scipy_is_there:
        monkeypatch.setattr(matrices, "_getrf", lambda stack: None)
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    if dtype == "complex128":
        a += 1j * np.random.default_rng(1).standard_normal(shape)
    factors, pivots, info = matrices.lu(a)
    assert not info.any()
    assert (pivots.dtype, info.dtype, pivots.shape) == (np.int32, np.int32, (*shape[:-2], min(shape[-2:])))
    p, lower, upper = pullback.lu_unpack(pullback.from_numpy(factors), pullback.from_numpy(pivots))
    assert_allclose((p.to(lower.dtype) @ lower @ upper).numpy(), a, atol=1e-12)
    assert np.abs(lower.numpy()).max(initial=0) <= 1 + (dtype == "complex128")
    for place in np.ndindex(shape[:-2]) if shape[-1] == shape[-2] else ():
        expected, order = scipy.linalg.lu_factor(a[place])
        assert_allclose(factors[place], expected, atol=1e-11)
        assert (pivots[place] == order + 1).all()


def test_lu_of_what_is_singular_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "_getrf", lambda stack: None)
    a = np.ones((12, 12))
    a[3, 4] = 2
    factors, pivots, info = matrices.lu(a)
    assert info == 2
    lower, upper = np.tril(factors, -1) + np.eye(12), np.triu(factors)
    order = np.arange(12)
    for i, j in enumerate(pivots - 1):
        order[[i, j]] = order[[j, i]]
    assert_allclose((lower @ upper), a[order])


@COMPLEX
@pytest.mark.parametrize("n", [0, 1, 5, 32, 33, 64, 70])
@pytest.mark.parametrize(("upper", "unit"), list(itertools.product([False, True], repeat=2)))
def test_triangular_systems(n: int, upper: bool, unit: bool, dtype: str) -> None:
    a = matrix(2, n, n, domain="upper" if upper else "lower", dtype=dtype) / max(n, 1) ** 0.5
    a = a + 7 * (np.tri(n, k=-1).T if not upper else np.tri(n, k=-1))  # is not to be read
    b = matrix(3, 1, n, 4, dtype=dtype) if n else np.zeros((3, 1, 0, 4), dtype)
    read = np.triu(a) if upper else np.tril(a)
    if unit:
        read[..., np.arange(n), np.arange(n)] = 1
    found = linalg.solve_triangular(
        pullback.from_numpy(a), pullback.from_numpy(b), upper=upper, unitriangular=unit
    ).numpy()
    assert found.shape == (3, 2, n, 4)
    assert_allclose(read @ found, np.broadcast_to(b, found.shape), atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("size", [1e-3, 0.1, 1.0, 5.0, 40.0])
def test_exponentials_of_matrices(size: float, dtype: str) -> None:
    a = (size * matrix(3, 5, 5, dtype="complex128" if dtype == "complex128" else "float64")).astype(dtype)
    a[1] /= 1000  # each of a stack has a size of its own
    found = matrices.exponential(a)
    expected = scipy.linalg.expm(a.astype(np.result_type(a, np.float64)))
    accuracy = 1e-4 if dtype == "float32" else 1e-12
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, atol=accuracy * np.abs(other).max())
    assert found.dtype == a.dtype
    assert np.isnan(matrices.exponential(np.full((2, 2), np.inf))).all()


def test_chains_are_multiplied_in_the_cheapest_order(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, cost = [], 0
    original = pullback.ops.linalg.matrix_functions.matmul

    def counted(a: Any, b: Any) -> Any:
        nonlocal cost
        cost += a.shape[0] * a.shape[1] * b.shape[1]
        return original(a, b)

    monkeypatch.setattr(pullback.ops.linalg.matrix_functions, "matmul", counted)
    sizes = [30, 35, 15, 5, 10, 20, 25]  # the example of Introduction to Algorithms, section 15.2
    chain = [pullback.ones(m, n) for m, n in itertools.pairwise(sizes)]
    assert linalg.multi_dot(chain).shape == (30, 25)
    assert cost == 15125


# Products and distances -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optional", [True, False])
def test_many_operands_with_and_without_opt_einsum(monkeypatch: pytest.MonkeyPatch, optional: bool) -> None:
    if not optional:
        real_import = builtins.__import__

        def without(name: str, *args: Any, **kwargs: Any) -> Any:
            if name == "opt_einsum":
                raise ImportError(name)
            return real_import(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without)
    arrays = [matrix(*shape, domain="real") for shape in ((2, 3), (3, 4), (4, 5), (5, 2), (4,))]
    for equation in ("ab,bc,cd,da,c->c", "ab,bc,cd,de,c->ae", "...b,bc,cd,de,c->...e", "ab,bc,cd,ea,c->"):
        found = pullback.einsum(equation, *map(pullback.from_numpy, arrays))
        assert_allclose(found.numpy(), np.einsum(equation, *arrays), rtol=1e-12)


def test_a_contraction_does_not_hold_what_it_sums_over() -> None:
    # 1e10 products, if they were all made before they are added
    a, b, c = (pullback.ones(n, m) for n, m in ((1, 100000), (100000, 1), (1, 100000)))
    assert pullback.einsum("ij,jk,kl->il", a, b, c).shape == (1, 100000)
    assert contractions._path([(0, 1), (1, 2), (2, 3)], {0: 1, 1: 100000, 2: 1, 3: 100000}, (0, 3))[0] == (0, 1)


@pytest.mark.torch
@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
def test_distances_in_blocks(monkeypatch: pytest.MonkeyPatch, torch: ModuleType, p: float) -> None:
    monkeypatch.setattr(distances, "_AT_ONCE", 60)
    x, y = matrix(2, 9, 3, domain="real"), matrix(7, 3, domain="real")
    results = []
    for lib in (pullback, torch):
        a, b = (lib.from_numpy(v).requires_grad_() for v in (x, y))
        far, near = lib.cdist(a, b, p, "donot_use_mm_for_euclid_dist"), lib.nn.functional.pdist(b, p)
        weights = [lib.arange(t.numel(), dtype=lib.float64).reshape(t.shape) for t in (far, near)]
        results.append((far, near, *lib.autograd.grad([far, near], [a, b], weights)))
    for ours, theirs in zip(*results, strict=True):
        assert not difference(ours, theirs, 100)


@pytest.mark.torch
def test_distances_of_many_points_come_from_products(torch: ModuleType) -> None:
    x, y = matrix(2, 30, 3, domain="real"), matrix(26, 3, domain="real")
    y[0] = x[0, 0]
    results = []
    for lib in (pullback, torch):
        a, b = (lib.from_numpy(v).requires_grad_() for v in (x, y))
        found = lib.cdist(a, b)
        results.append((found, *lib.autograd.grad(found.sum(), [a, b])))
    for ours, theirs in zip(*results, strict=True):
        assert_allclose(array_of(ours), array_of(theirs), atol=1e-6)
    assert_derivatives(
        lambda a: (pullback.cdist(a, pullback.from_numpy(y) + 1) ** 3).sum(), x[:, :, :2] @ np.ones((2, 3))
    )


def test_distances_of_no_points() -> None:
    a = leaf(np.ones((0, 2)))
    found = pullback.pdist(a)
    found.sum().backward()
    assert (found.shape, a.grad.shape) == ((0,), (0, 2))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("addmm_", [(2, 4), (2, 3), (3, 4)]),
        ("addmv_", [(2,), (2, 3), (3,)]),
        ("addbmm_", [(2, 4), (3, 2, 3), (3, 3, 4)]),
        ("baddbmm_", [(3, 2, 4), (3, 2, 3), (3, 3, 4)]),
        ("addr_", [(2, 3), (2,), (3,)]),
    ],
)
def test_products_added_in_place(torch: ModuleType, name: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [np.random.default_rng(3).standard_normal(s) for s in shapes]
    results = []
    for lib in (pullback, torch):
        leaves = [lib.from_numpy(a.copy()).requires_grad_() for a in arrays]
        x = leaves[0] * 1
        assert getattr(x, name)(*leaves[1:], beta=0.5, alpha=2) is x
        results.append((x, *lib.autograd.grad((x * x).sum(), leaves)))
    small = pullback.ones(1, dtype=pullback.float64)
    with pytest.raises(RuntimeError, match="shape"):
        getattr(small, name)(*(pullback.from_numpy(a) for a in arrays[1:]))
    assert small.tolist() == [1.0]
    for ours, theirs in zip(*results, strict=True):
        assert not difference(ours, theirs, 10)


def test_a_diagonal_is_a_view() -> None:
    a = pullback.zeros(2, 3)
    linalg.diagonal(a, offset=1).fill_(5)
    assert a.tolist() == [[0, 5, 0], [0, 0, 5]]


def test_the_triangle_alone_has_no_derivative_and_the_error_says_what_has() -> None:
    a = pullback.tensor(matrix(3, 2), requires_grad=True)
    found = linalg.qr(a, mode="r")
    assert found.Q.shape == (0,)
    assert_allclose(found.R.detach().numpy(), linalg.qr(a).R.detach().numpy())
    with pytest.raises(RuntimeError, match=r"depends on Q, which is not computed(.|\n)*mode='reduced'"):
        found.R.sum().backward()
    assert a.grad is None


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_what_is_solved_with_ldl_factors_has_a_gradient(dtype: str, hermitian: bool) -> None:
    pytest.importorskip("scipy")
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 2, 4, 4)) + (1j * rng.normal(size=(2, 2, 4, 4)) if dtype == "complex128" else 0)
    a = a + (np.conj(np.swapaxes(a, -1, -2)) if hermitian else np.swapaxes(a, -1, -2))
    A, B = pullback.tensor(a), pullback.tensor(b, requires_grad=True)
    LD, pivots = pullback.linalg.ldl_factor(A, hermitian=hermitian)

    def solved(B: pullback.Tensor) -> pullback.Tensor:
        return pullback.linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)

    np.testing.assert_allclose((A @ solved(B)).detach().numpy(), b, atol=1e-10)
    assert pullback.autograd.gradcheck(solved, (B,))
    assert pullback.autograd.gradgradcheck(solved, (B,))


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (2, 7, 5)])
@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank"])
def test_the_largest_singular_values(name: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    x = rng.normal(size=(*shape[:-1], 2)) @ rng.normal(size=(*shape[:-2], 2, shape[-1]))  # of rank 2, 3 less a mean
    ours, theirs = (getattr(lib, name)(lib.tensor(x), q=3) for lib in (pullback, torch))
    assert [t.shape for t in ours] == [t.shape for t in theirs]
    np.testing.assert_allclose(ours[1].numpy(), theirs[1].numpy(), atol=1e-10)
    of = x - x.mean(-2, keepdims=True) if name == "pca_lowrank" else x
    U, S, V = ours
    np.testing.assert_allclose(((U * S.unsqueeze(-2)) @ V.mT).numpy(), of, atol=1e-10)
    np.testing.assert_allclose((V.mT @ V).numpy(), np.broadcast_to(np.eye(3), (*shape[:-2], 3, 3)), atol=1e-10)


def test_the_sum_of_the_largest_singular_values_has_a_gradient() -> None:
    x = np.diag([5.0, 3.0, 0.0])[:, :2]
    A = pullback.tensor(x, requires_grad=True)
    pullback.svd_lowrank(A, q=2, M=pullback.zeros(3, 2))[1].sum().backward()
    np.testing.assert_allclose(A.grad.numpy(), np.eye(3)[:, :2], atol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("given", [{"q": 5}, {"q": -1}, {"niter": -1}])
def test_what_pca_refuses(given: dict[str, int]) -> None:
    torch = pytest.importorskip("torch")
    for lib in (pullback, torch):
        with pytest.raises(ValueError, match=next(iter(given))):
            lib.pca_lowrank(lib.ones(4, 4), **given)


# Phrases that programs look for in errors: those of torch.
_PHRASES = [
    ("L.linalg.inv(x)", "must be batches of square matrices"),
    ("L.linalg.eigh(x[0])", "must have at least 2 dimensions"),
    ("L.linalg.inv(L.zeros(2, 3, 3))", r"\(Batch element 0\): The diagonal element 1 is zero"),
    ("L.linalg.cholesky(L.zeros(2, 3, 3))", r"\(Batch element 0\): The factorization could not be completed"),
    ("L.linalg.cholesky(-L.eye(3))", "minor of order 1 is not positive-definite"),
    ("L.linalg.vector_norm(x[:0], -1)", "linalg.vector_norm cannot compute"),
    ("L.linalg.matrix_norm(x, 3.5)", "Order 3.5 not supported"),
    ("L.linalg.matrix_norm(x, dim=(0,))", "dim must be a 2-tuple"),
    ("L.linalg.matrix_norm(x, dim=(0, 0))", "dims must be different"),
    ("L.linalg.norm(y, 1, (0, 1, 2))", "If dim is specified, it must be of length 1 or 2"),
    ("L.linalg.norm(y, 1)", "If dim is not specified but ord is, the input must be 1D or 2D"),
    ("L.linalg.cond(x @ x.T, 5)", "linalg.cond got an invalid norm type: 5"),
    ("x.norm(2, (0, 0))", "dim 0 appears multiple times in the list of dims"),
    ("L.linalg.pinv(x, rtol=L.tensor(1j))", "rtol tensor of complex type is not supported"),
    ("L.linalg.matrix_rank(x, tol=L.tensor(1j))", "tol tensor of complex type is not supported"),
    ("L.linalg.lstsq(x, x[0])", r"input.size\(-2\) should match other.size\(-1\)"),
    ("L.linalg.lstsq(x, x[:1])", r"input.size\(-2\) should match other.size\(-2\)"),
    ("L.linalg.tensorinv(x, 0)", "Expected a strictly positive integer"),
    ("L.linalg.tensorinv(x, 1)", "Expected self to satisfy the requirement"),
    ("L.linalg.tensorsolve(x, x)", "Expected self to satisfy the requirement"),
    ("L.linalg.multi_dot([x])", "expected at least 2 tensors"),
    ("L.linalg.multi_dot([y, x])", "the first tensor must be 1D or 2D"),
    ("L.chain_matmul(x[0], x)", "Tensor dimension is 1, expected 2 instead"),
    ("L.linalg.qr(x, 'raw')", "qr received unrecognized mode 'raw'"),
    ("L.inner(x, x[:, :2])", "the last dimension must match on both input tensors"),
    ("L.tensordot(x, x, -1)", "expects dims >= 0"),
    ("L.lu_unpack(x @ x.T, L.tensor([1, 2]))", "torch.int32 dtype"),
    ("L.einsum('. ..', x)", "found '.' for operand 0 that is not part of any ellipsis"),
    ("L.einsum('......', x)", "found '.' for operand 0 for which an ellipsis was already found"),
    ("L.einsum('ij->.....', x)", "found '.' for output but an ellipsis .* was already found"),
    ("L.einsum('i j -> 1', x)", "invalid subscript given at index 7"),
    ("L.einsum(',', x)", "fewer operands were provided than specified in the equation"),
    ("L.einsum('ij', x, x)", "more operands were provided than specified in the equation"),
    ("L.einsum('i', x)", r"the number of subscripts in the equation \(1\) does not match the number of dimensions"),
    ("L.einsum('ijk...', x)", r"the number of subscripts in the equation \(3\) is more than the number of dimensions"),
    ("L.einsum('ij->k', x)", "output subscript k does not appear in the equation for any input operand"),
    ("L.einsum('', [])", "at least one operand"),
]


@pytest.mark.torch
@pytest.mark.parametrize(("code", "phrase"), _PHRASES)
def test_errors_have_the_type_and_the_phrase_of_those_of_torch(torch: ModuleType, code: str, phrase: str) -> None:
    kinds = []
    for lib in (pullback, torch):
        with pytest.raises(Exception, match=phrase) as caught:
            eval(code, {"L": lib, "x": lib.ones(2, 3), "y": lib.ones(2, 3, 4)})
        kinds.append(caught.type)
    assert issubclass(kinds[0], RuntimeError if issubclass(kinds[1], RuntimeError) else kinds[1])


@pytest.mark.torch
def test_least_squares_of_batches_that_broadcast(torch: ModuleType) -> None:
    a, b = matrix(1, 3, 4, 2), matrix(5, 1, 4, 3, seed=2)
    for driver in ("gels", "gelsd"):
        found, expected = (
            lib.linalg.lstsq(lib.from_numpy(a), lib.from_numpy(b), driver=driver) for lib in (pullback, torch)
        )
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.shape == tuple(theirs.shape)
            assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


def test_reflections_make_q_and_have_no_derivative() -> None:
    x = leaf(matrix(2, 4, 3))
    with pullback.no_grad():
        reflections, tau = pullback.geqrf(x)
        q = pullback.linalg.householder_product(reflections, tau)
    assert_allclose((q @ reflections.triu()[..., :3, :]).numpy(), x.detach().numpy(), atol=1e-12)
    with pytest.raises(NotImplementedError, match=r"the derivative for 'geqrf' is not implemented.*\n.*linalg\.qr"):
        pullback.geqrf(x).a.sum().backward()


@pytest.mark.torch
def test_products_are_found_in_the_dtype_of_the_result(torch: ModuleType) -> None:
    def found(lib: Any) -> Any:
        u, m = lib.tensor([1 / 3, 2 / 7]), lib.zeros(2, 2, dtype=lib.float64)
        small = lib.full((1, 2), 200, dtype=lib.uint8)
        return lib.addr(m, u, u), lib.tensordot(small, lib.ones(2, 2, dtype=lib.uint8), ([0], [0]))

    for ours, theirs in zip(found(pullback), found(torch), strict=True):
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-14)


@pytest.mark.parametrize(
    "pivots",
    [
        [1, 1, 1],
        [-2, -2, -2],
        [-3, -3, -3],
        [1, 2, -3],
        [1, 2, -1],
        [4, 4, 4],
        [1, 2, -(2**31)],
        [0, 2, 3],
        [-1, -1, 3],
    ],
)
def test_pivots_that_no_factorization_gives_are_refused(pivots: list[int]) -> None:
    factors, b = pullback.eye(3, dtype=pullback.float64), pullback.ones(3, 2, dtype=pullback.float64)
    with pytest.raises(RuntimeError, match=r"linalg\.ldl_solve.*pivots as ldl_factor gives them, for 3 rows"):
        pullback.linalg.ldl_solve(factors, pullback.tensor(pivots, dtype=pullback.int32), b)


def test_all_pivots_of_factorizations_are_taken() -> None:
    drawn = np.random.default_rng(0)
    blocks = 0
    for n in (1, 2, 3, 4, 5, 6) * 20:
        a = drawn.normal(size=(n, n)) * (drawn.random((n, n)) < 0.6)
        a = a + a.T
        a[np.arange(n), np.arange(n)] *= drawn.random(n) < 0.5
        if np.linalg.cond(a) > 1e6:
            continue
        factors, pivots = pullback.linalg.ldl_factor(pullback.from_numpy(a))
        blocks += bool((pivots < 0).any())
        b = pullback.from_numpy(drawn.normal(size=(n, 2)))
        np.testing.assert_allclose(a @ pullback.linalg.ldl_solve(factors, pivots, b).numpy(), b.numpy(), atol=1e-8)
    assert blocks > 10

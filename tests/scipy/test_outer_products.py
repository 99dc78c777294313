"""BFGS with outer products that stay two vectors: SciPy's iterates, and plain arrays for all else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback
from pullback.scipy import optimize
from pullback.scipy.optimize import outer_products
from pullback.scipy.optimize.outer_products import Inverse, Outer, Product, Remainder, Slope, slope_of

RNG = np.random.default_rng(5)
N = 6
STEP, DIFFERENCE, MATRIX = RNG.standard_normal(N), RNG.standard_normal(N), RNG.standard_normal((N, N))
SPREAD = np.diag(np.linspace(1, 30, N)) + 0.1 * MATRIX @ MATRIX.T


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Any number of unknowns is enough; what is returned grows with each update without products of matrices."""
    monkeypatch.setattr(outer_products, "FEW", 1)
    spared: list[int] = []
    for kind, name in ((Product, "_with"), (Inverse, "updated")):
        before = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *a, before=before: spared.append(1) or before(*a))  # type: ignore[func-returns-value]
    return spared


def slope() -> Any:
    """A difference of gradients, with the values of `DIFFERENCE`."""
    return slope_of(DIFFERENCE.copy()) - slope_of(np.zeros(N))


def with_values(y: Any) -> tuple[Any, Any]:
    """The matrices of SciPy's update."""
    eye = np.eye(N, dtype=int)
    return eye - STEP[:, np.newaxis] * y[np.newaxis, :] * 0.7, eye - y[:, np.newaxis] * STEP[np.newaxis, :] * 0.7


def chained(x: Any) -> Any:
    return (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() + 0.01 * ((x - 0.5) ** 2).sum()


PROBLEMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "chained Rosenbrock": (chained, np.full(9, 0.5)),
    "Rosenbrock of two": (lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, [-1.2, 1.0]),
    "quadratic": (lambda x: (x * (SPREAD @ x)).sum() / 2 - x.sum(), np.zeros(N)),
    "quartic": (lambda x: ((x - 1) ** 4 + (x - 1) ** 2).sum(), np.zeros(4)),
    "log cosh": (lambda x: np.log(np.cosh(x - np.linspace(0, 2, 8))).sum() + 0.05 * (x**2).sum(), np.ones(8)),
    "exponentials": (lambda x: (np.exp(x) - 2 * x).sum() + x[0] * x[-1] / 4, np.zeros(5)),
    "entropy": (lambda x: (np.exp(x) * (x - np.linspace(-1, 1, 7))).sum(), np.full(7, 0.3)),
    "waves": (lambda x: (x**2 / 2 + np.cos(2 * x) / 8).sum() + (x[1:] * x[:-1]).sum() / 5, np.linspace(1, 2, 6)),
    "logistic": (lambda x: np.log1p(np.exp(MATRIX @ x)).sum() + (x**2).sum() / 20, np.zeros(N)),
    "Himmelblau": (lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2, [1.0, 1.0]),
    "Beale": (
        lambda x: sum((c - x[0] * (1 - x[1] ** k)) ** 2 for c, k in ((1.5, 1), (2.25, 2), (2.625, 3))),
        [1.0, 0.1],
    ),
    "one unknown": (lambda x: np.cosh(x[0] - 0.3), [2.0]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_bfgs_goes_scipys_way(name: str, few: list[int]) -> None:
    f, start = PROBLEMS[name]

    def plain(x: Any) -> tuple[float, Any]:
        t = pullback.from_numpy(x.copy()).requires_grad_()
        value = f(t)
        return value.item(), pullback.autograd.grad(value, t)[0].numpy()

    points: list[Any] = []
    options = {"gtol": 1e-7}
    right = scipy.optimize.minimize(plain, start, method="BFGS", jac=True, options=options)
    found = optimize.minimize(
        f, start, method="BFGS", options={**options, "return_all": True}, callback=lambda x: points.append(x)
    )
    assert (found.nit, found.nfev, found.njev) == (right.nit, right.nfev, right.njev)
    np.testing.assert_allclose(found.x.numpy(), right.x, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.hess_inv.numpy(), right.hess_inv, rtol=1e-5, atol=1e-7)
    assert len(few) >= right.nit - 2
    assert {type(x) for x in (*points, *found.allvecs)} <= {np.ndarray}
    assert type(found.jac._data) is type(found.hess_inv._data) is type(found.x._data) is np.ndarray


def test_ones_own_gradient_and_first_matrix_are_used(few: list[int]) -> None:
    f, start = PROBLEMS["logistic"]

    def plain(x: Any) -> Any:
        return (MATRIX.T / (1 + np.exp(-(MATRIX @ x)))).sum(1) + x / 10

    options = {"hess_inv0": np.linalg.inv(SPREAD), "gtol": 1e-7}
    options["hess_inv0"] = (options["hess_inv0"] + options["hess_inv0"].T) / 2
    right = scipy.optimize.minimize(lambda x: f(x), start, method="BFGS", jac=plain, options=options)
    for jac in (None, plain):
        before = len(few)
        found = optimize.minimize(f, start, method="BFGS", jac=jac, options=options)
        assert (found.nit, found.nfev) == (right.nit, right.nfev)
        assert len(few) - before >= right.nit - 2
        np.testing.assert_allclose(found.x.numpy(), right.x, rtol=0, atol=1e-8)


def test_other_methods_and_few_unknowns_get_plain_gradients(few: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    f, start = PROBLEMS["quartic"]
    for method in ("CG", "L-BFGS-B", "SLSQP"):
        optimize.minimize(f, start, method=method)
    monkeypatch.setattr(outer_products, "FEW", 5)
    optimize.minimize(f, start, method="BFGS")
    assert not few
    assert type(slope_of(np.ones(9, dtype=np.float32))) is np.ndarray


def test_a_gradient_that_is_not_finite_ends_as_in_scipy() -> None:
    def f(x: Any) -> Any:
        return -((x**2).sum() ** 2)

    with np.errstate(all="ignore"):
        right = scipy.optimize.minimize(
            lambda x: (f(x), -4 * (x**2).sum() * x), np.ones(3), method="BFGS", jac=True, options={"maxiter": 30}
        )
        found = optimize.minimize(f, np.ones(3), method="BFGS", options={"maxiter": 30}, on_failure="nan")
    assert not right.success
    assert (found.success, found.status, found.message) == (right.success, right.status, right.message)


def test_the_update_is_that_of_full_matrices(few: list[int]) -> None:
    lazy, full = with_values(slope()), with_values(DIFFERENCE)
    assert all(type(a) is Remainder for a in lazy)
    matrices = MATRIX, MATRIX.T, np.eye(N, dtype=int), np.asfortranarray(MATRIX)
    for matrix in matrices:
        kept, other = matrix.copy(), STEP[:, None] * STEP[None, :]
        before = other.copy()
        found, half = np.dot(lazy[0], np.dot(matrix, lazy[1])), np.dot(matrix, lazy[1])
        right = np.dot(full[0], np.dot(matrix, full[1]))
        assert type(found) is type(half) is Product
        begun, plain = found + other, half + other
        assert type(begun) is (Inverse if np.array_equal(matrix, matrix.T) else np.ndarray)
        assert type(plain) is np.ndarray
        for a, b in ((begun, right + other), (plain, np.dot(matrix, full[1]) + other)):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.asarray(found), right, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(matrix, kept)
        np.testing.assert_array_equal(other, before)
    assert len(few) == 3 * len(matrices)


def update(h: Any, y: Any, step: Any, r: float = 0.7) -> Any:
    """SciPy's update of a matrix."""
    eye = np.eye(N, dtype=int)
    a, b = eye - step[:, np.newaxis] * y[np.newaxis, :] * r, eye - y[:, np.newaxis] * step[np.newaxis, :] * r
    return np.dot(a, np.dot(h, b)) + r * step[:, np.newaxis] * step[np.newaxis, :]


def inverses(count: int) -> tuple[list[Any], list[Any]]:
    """Matrices of BFGS for a quadratic function, one after the other, and the same in plain arrays."""
    eye = np.eye(N, dtype=int)
    y, r = SPREAD @ STEP, 1 / (STEP @ SPREAD @ STEP)
    lazy, full = [update(eye, slope_of(y.copy()), STEP, r)], [update(eye, y, STEP, r)]
    for _ in range(count):
        gradient = RNG.standard_normal(N)
        step = -np.dot(full[-1], gradient)
        y, r = SPREAD @ step, 1 / (step @ SPREAD @ step)
        lazy.append(update(lazy[-1], slope_of(y.copy()), -np.dot(lazy[-1], slope_of(gradient)), r))
        full.append(update(full[-1], y, step, r))
    return lazy, full


def test_a_matrix_of_bfgs_is_updated_where_it_lies(few: list[int]) -> None:
    lazy, full = inverses(5)
    assert {type(a) for a in lazy} == {Inverse}
    assert len({id(a.lower) for a in lazy}) == 1
    assert len(few) == 6
    step = np.dot(lazy[-1], slope_of(DIFFERENCE.copy()))
    assert type(step) is Slope
    np.testing.assert_allclose(step, full[-1] @ DIFFERENCE, rtol=1e-10)
    for a, b in zip(lazy[::-1], full[::-1], strict=True):  # those before are still to be had
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(np.dot(a, STEP), b @ STEP, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(a, np.transpose(a))


def test_what_is_no_update_of_bfgs_is_computed_in_full() -> None:
    y, step = DIFFERENCE, STEP
    eye = np.eye(N, dtype=int)

    def others(h: Any, y: Any, step: Any) -> list[Any]:
        a, b = eye - step[:, None] * y[None, :] * 0.7, eye - y[:, None] * step[None, :] * 0.7
        c = eye - y[:, None] * step[None, :] * 0.6
        both, half = np.dot(a, np.dot(h, b)), np.dot(h, b)
        return [
            both + 0.6 * step[:, None] * step[None, :],
            both + 0.7 * step[:, None] * y[None, :],
            both + y[:, None] * step[None, :] * 0.7,
            half + 0.7 * step[:, None] * step[None, :],
            np.dot(a, np.dot(h, c)) + 0.7 * step[:, None] * step[None, :],
            np.dot(b, np.dot(h, b)) + 0.7 * step[:, None] * step[None, :],
            np.dot(h, step[:-1][:0].sum() + step),
            np.dot(h, h),
            np.dot(a, h),
        ]

    lazy, full = inverses(2)
    found, right = others(lazy[-1], slope(), step.view(Slope)), others(full[-1], y, step)
    for a, b in zip(found, right, strict=True):
        assert type(a) is not Inverse
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-11)
    assert lazy[-1]._next is None
    lazy[-1][0, 1] = 5.0  # from here on it is an array
    full[-1][0, 1] = 5.0
    found, right = update(lazy[-1], slope(), step.view(Slope)), update(full[-1], y, step)
    np.testing.assert_allclose(np.asarray(found), right, rtol=1e-9, atol=1e-11)


def test_a_first_matrix_that_is_not_symmetric_stays_plain() -> None:
    found = update(update(SPREAD + np.triu(MATRIX), slope(), STEP), slope(), STEP)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(
        found, update(update(SPREAD + np.triu(MATRIX), DIFFERENCE, STEP), DIFFERENCE, STEP), rtol=1e-9, atol=1e-11
    )


def test_the_identity_is_looked_at_once_and_cannot_change(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, before = [], np.count_nonzero
    monkeypatch.setattr(np, "count_nonzero", lambda a: counts.append(a.shape) or before(a))  # type: ignore[func-returns-value]
    outer = slope()[:, None] * STEP[None, :]
    for size in (1, 2):
        eye = np.eye(N)
        for _ in range(3):
            assert type(eye - outer) is Remainder
        assert counts.count((N, N)) == size
        with pytest.raises(ValueError, match="read-only"):
            eye[0, 0] = 2.0
    held = np.eye(N + 1)[:N, :N].copy()[:]  # a view: what it shows may change
    assert type(held - outer) is Remainder
    held[0, 1] = 3.0
    np.testing.assert_array_equal(held - outer, held - DIFFERENCE[:, None] * STEP[None, :])


def test_what_is_no_identity_is_no_short_cut(few: list[int]) -> None:
    outer, full = slope()[:, None] * STEP[None, :], DIFFERENCE[:, None] * STEP[None, :]
    almost = [np.eye(N) * 2, np.eye(N)[::-1], np.eye(N) + 1e-300, np.zeros((N, N)), np.ones((N, N)), np.diag(STEP)]
    almost += [np.eye(N, dtype=np.float32), np.eye(N, dtype=complex), np.ones(N), np.eye(N)[:1]]
    for base in almost:
        a = base - outer
        assert type(a) is np.ndarray
        np.testing.assert_array_equal(a, base - full)
    assert type(outer) is Outer
    assert type(1.0 - outer) is type(outer - np.eye(N)) is np.ndarray
    small = np.eye(N - 1)
    with pytest.raises(ValueError, match="broadcast"):
        small - outer
    a = np.eye(N) - outer
    for other in (MATRIX.astype(np.float32), MATRIX + 0j, MATRIX[0], MATRIX[:2], np.stack([MATRIX] * 2)):
        np.testing.assert_array_equal(np.dot(other, a), np.dot(other, np.eye(N) - full))
    np.testing.assert_array_equal(np.dot(a, a), np.dot(np.eye(N) - full, np.eye(N) - full))
    assert not few


# Operations on a difference of gradients `y` and on a matrix of the update `a`, which any later SciPy may use.
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "a @": lambda y, a: a @ MATRIX @ a,
    "transposed": lambda y, a: a.T,
    "element": lambda y, a: a[1, 2] + a[0].sum(),
    "sum": lambda y, a: a.sum() + np.sum(a),
    "norm": lambda y, a: np.linalg.norm(a),
    "inverse": lambda y, a: np.linalg.inv(a),
    "einsum": lambda y, a: np.einsum("ij,jk,lk->il", a, MATRIX, a),
    "joined": lambda y, a: np.concatenate([a, MATRIX, a]),
    "negative": lambda y, a: -a,
    "scaled": lambda y, a: 2 * a + a * 3 - a / 4 + a * 0.5 - a * STEP,
    "product with out=": lambda y, a: np.dot(MATRIX, np.asarray(a), out=np.empty((N, N))),
    "out=": lambda y, a: np.subtract(a, 1, out=np.empty((N, N))),
    "where=": lambda y, a: np.add(a, 1, out=np.zeros((N, N)), where=np.eye(N, dtype=bool)),
    "reduce": lambda y, a: np.add.reduce(a) + np.add.reduce(y),
    "multiply.outer": lambda y, a: np.multiply.outer(y, STEP),
    "np.outer": lambda y, a: np.outer(y, STEP) + np.outer(STEP, y),
    "copied": lambda y, a: copy.deepcopy(a) + copy.copy(a) + copy.copy(y),
    "as array": lambda y, a: np.array(a) + np.asarray(a, dtype=np.float32),
    "iterated": lambda y, a: list(a),
    "length and shape": lambda y, a: (len(a), *a.shape, a.ndim, a.dtype.itemsize),
    "product": lambda y, a: [b := np.dot(MATRIX, a), np.dot(a, b), np.dot(b, a), b.sum(), b @ b],
    "product of both": lambda y, a: [b := np.dot(a, np.dot(MATRIX, a)), b + STEP, b + MATRIX.T, 1 + b, b * b, b[0]],
    "product of products": lambda y, a: np.dot(a, np.dot(a, np.dot(MATRIX, a))),
    "product with a vector": lambda y, a: np.dot(a, STEP) + np.dot(STEP, a) + np.dot(np.dot(MATRIX, a), STEP),
    "column": lambda y, a: [c := y[:, None], c + 1, c * 2.0, c @ y[None, :], c.T, c[0], np.sum(c), c - STEP, c / c],
    "row": lambda y, a: [c := y[None, :], STEP[:, None] + c, c * STEP, np.dot(c, STEP), len(c), c.shape, c * c],
    "y": lambda y, a: y * 2 - STEP + y / STEP - y @ MATRIX + abs(y) + y.dot(y),
    "y of two axes": lambda y, a: y[:, None] * y[None, :] + y[None, :] * y[:, None] - (y[:, None] + y[None, :]),
    "y by one number": lambda y, a: y[:1, None] * y[None, :] + y[:2, None] * y[None, :],
    "y with int": lambda y, a: y[:, None] * np.arange(N)[None, :],
    "y as a list": lambda y, a: [*y.tolist(), float(y[0])],
    "compared": lambda y, a: (a == a, a > 0, y < 0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_anything_else_is_done_with_plain_arrays(name: str) -> None:
    operation = OTHERS[name]
    try:
        right = operation(DIFFERENCE.copy(), with_values(DIFFERENCE)[1])
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20]):
            operation(slope(), with_values(slope())[1])
        return
    found = operation(slope(), with_values(slope())[1])
    for a, b in zip(*(x if isinstance(x, (list, tuple)) else [x] for x in (found, right)), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-13, atol=1e-14)


def test_what_is_written_is_not_lost() -> None:
    for written in (True, False):
        y, step = slope(), STEP.copy()
        full, outer = DIFFERENCE[:, None] * step[None, :], y[:, None] * step[None, :]
        step[:], y[:] = 7.0, 8.0  # the vectors of the product are its own
        a, b = np.eye(N, dtype=int) - outer, np.eye(N) - full
        if written:
            a[1, 1] = b[1, 1] = 5.0
            a.flat[:: N + 1] += 1
            b.flat[:: N + 1] += 1
            a *= 2.0
            b *= 2.0
        np.testing.assert_allclose(np.dot(MATRIX, a), np.dot(MATRIX, b), rtol=1e-12, atol=1e-12)
    y = slope()
    np.multiply(y, 2.0, out=y)
    y -= STEP
    np.testing.assert_array_equal(y, 2 * DIFFERENCE - STEP)
    assert isinstance(slope(), Slope)

"""pullback.scipy.linalg against scipy.linalg: values, all modes of differentiation, bad input."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg as theirs

import pullback.scipy.linalg
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck
from pullback.scipy.mirror import HANDED_ON, MIRRORS, REFUSED

from .grid_checks import OfTensors

ours: Any = OfTensors(pullback.scipy.linalg)

Call = Callable[..., Any]


def hermitian(a: Any) -> Any:
    return (a + np.conj(np.swapaxes(a, -1, -2))) / 2


def moduli(pair: Any) -> Any:
    """Eigenvalues, and what does not depend on the phases of vectors."""
    return pair[0], abs(pair[1]) ** 2


def draw(shape: Any, kind: str, number: int, complex_: bool) -> np.ndarray[Any, Any]:
    """An argument.

    kind: "p" positive definite, "h" half of that, "d" with a dominant diagonal, "s" small, "f" with a dominant first
    number.
    """
    rng = np.random.default_rng(number)
    a = rng.standard_normal(shape)
    if complex_:
        a = a + 1j * rng.standard_normal(shape)
    if kind in ("p", "h"):
        return (a @ a.conj().T + np.eye(len(a))) / (2 if kind == "h" else 1)
    if kind == "d":
        return a + 4 * np.eye(*shape)
    if kind == "s":
        return a / 4
    if kind == "f":
        a[0] = 6
    return a


CASES: dict[str, tuple[Call, str]] = {
    # the function of the module and its arguments, and the shapes and kinds of these
    "solve": (lambda m, a, b: m.solve(a, b), "33d 32"),
    "solve vector": (lambda m, a, b: m.solve(a, b), "33d 3"),
    "solve pos": (lambda m, a, b: m.solve(a, b, assume_a="pos"), "33p 3"),
    "solve sym lower": (lambda m, a, b: m.solve(a, b, assume_a="sym", lower=True), "33d 3"),
    "solve her": (lambda m, a, b: m.solve(a, b, assume_a="her"), "33p 3"),
    "solve upper": (lambda m, a, b: m.solve(a, b, assume_a="upper triangular"), "33d 3"),
    "solve tridiagonal": (lambda m, a, b: m.solve(a, b, assume_a="tridiagonal"), "44d 4"),
    "inv": (lambda m, a: m.inv(a), "33d"),
    "det": (lambda m, a: m.det(a), "33d"),
    "solve_triangular": (lambda m, a, b: m.solve_triangular(a, b, lower=True), "33d 32"),
    "solve_triangular T": (lambda m, a, b: m.solve_triangular(a, b, trans="T", unit_diagonal=True), "33d 3"),
    "solve_triangular C": (lambda m, a, b: m.solve_triangular(a, b, 2), "33d 3"),
    "lstsq": (lambda m, a, b: m.lstsq(a, b)[:2], "42 42"),
    "lstsq vector": (lambda m, a, b: m.lstsq(a, b)[:2], "42 4"),
    "lstsq wide": (lambda m, a, b: m.lstsq(a, b)[0], "24 2"),
    "cholesky": (lambda m, a: m.cholesky(a), "33p"),
    "cholesky lower": (lambda m, a: m.cholesky(a, lower=True), "33p"),
    "cho_solve": (lambda m, a, b: m.cho_solve(m.cho_factor(a), b), "33p 32"),
    "cho_solve lower": (lambda m, a, b: m.cho_solve(m.cho_factor(a, lower=True), b), "33p 3"),
    "lu_solve": (lambda m, a, b: m.lu_solve(m.lu_factor(a), b), "33 32"),
    "lu_solve T": (lambda m, a, b: m.lu_solve(m.lu_factor(a), b, trans=1), "33 3"),
    "lu_solve H": (lambda m, a, b: m.lu_solve(m.lu_factor(a), b, trans=2), "33 3"),
    "lu_factor": (lambda m, a: m.lu_factor(a)[0], "33"),
    "lu": (lambda m, a: m.lu(a)[1:], "33"),
    "lu permuted": (lambda m, a: m.lu(a, permute_l=True), "33"),
    "norms": (lambda m, a: tuple(m.norm(a, o) for o in (None, "fro", "nuc", 2, 1, np.inf, -1)), "32"),
    "norms of vectors": (lambda m, a: tuple(m.norm(a, o) for o in (None, 1, 2, 3, np.inf)), "3"),
    "norm axis": (lambda m, a: m.norm(a, axis=1, keepdims=True), "32"),
    "qr": (lambda m, a: m.qr(a, mode="economic"), "43"),
    "qr full": (lambda m, a: m.qr(a), "33"),
    "qr r": (lambda m, a: m.qr(a, mode="r")[0], "43"),
    "qr pivoting": (lambda m, a: m.qr(a, mode="economic", pivoting=True)[:2], "43"),
    "svd": (lambda m, a: tuple(abs(part) for part in m.svd(a, full_matrices=False)), "43"),
    "svdvals": (lambda m, a: m.svdvals(a), "43"),
    "eigh": (lambda m, a: moduli(m.eigh(a)), "33p"),
    "eigh subset": (lambda m, a: moduli(m.eigh(a, subset_by_index=[0, 1])), "33p"),
    "eigh of two": (lambda m, a, b: moduli(m.eigh(a, b)), "33p 33p"),
    "eigh type 2": (lambda m, a, b: moduli(m.eigh(a, b, type=2, lower=False)), "33p 33p"),
    "eigh type 3": (lambda m, a, b: moduli(m.eigh(a, b, type=3, subset_by_index=[1, 2])), "33p 33p"),
    "eigvalsh": (lambda m, a, b: m.eigvalsh(a, b), "33p 33p"),
    "eig": (lambda m, a: moduli(m.eig(a)), "33"),
    "eigvals": (lambda m, a: m.eigvals(a), "33"),
    "pinv": (lambda m, a: m.pinv(a), "43"),
    "pinvh": (lambda m, a: m.pinvh(a), "33p"),
    "polar": (lambda m, a: m.polar(a), "33"),
    "polar left": (lambda m, a: m.polar(a, side="left"), "33"),
    "orthogonal_procrustes": (lambda m, a, b: m.orthogonal_procrustes(a, b), "43 43"),
    "toeplitz": (lambda m, c, r: m.toeplitz(c, r), "3 4"),
    "toeplitz alone": (lambda m, c: m.toeplitz(c), "3f"),
    "hankel": (lambda m, c, r: m.hankel(c, r), "3 4"),
    "circulant": (lambda m, c: m.circulant(c), "3"),
    "block_diag": (lambda m, a, b: m.block_diag(a, b), "2 23"),
    "leslie": (lambda m, f, s: m.leslie(f, s), "3 2"),
    "convolution_matrix": (lambda m, a: m.convolution_matrix(a, 3), "3"),
    "companion": (lambda m, a: m.companion(a), "4"),
    "solve_toeplitz": (lambda m, c, b: m.solve_toeplitz(c, b), "3f 32"),
    "solve_toeplitz two": (lambda m, c, r, b: m.solve_toeplitz((c, r), b), "3f 3 3"),
    "solve_circulant": (lambda m, c, b: m.solve_circulant(c, b), "3f 32"),
    "matmul_toeplitz": (lambda m, c, r, x: m.matmul_toeplitz((c, r), x), "3 3 3"),
    "solve_banded": (lambda m, ab, b: m.solve_banded((1, 1), ab * 0.2 + BAND, b), "34 42"),
    "solve_banded wide": (lambda m, ab, b: m.solve_banded((0, 2), ab + 4, b), "34 4"),
    "solveh_banded": (lambda m, ab, b: m.solveh_banded(ab * 0.5 + BAND[:2], b), "24 4"),
    "solveh_banded lower": (lambda m, ab, b: m.solveh_banded(ab * 0.3 + BAND[1:], b, lower=True), "24 42"),
    "solve_sylvester": (lambda m, a, b, q: m.solve_sylvester(a, b, q), "33d 22d 32"),
    "solve_continuous_lyapunov": (lambda m, a, q: m.solve_continuous_lyapunov(a, q), "33d 33"),
    "solve_lyapunov": (lambda m, a, q: m.solve_lyapunov(a, q), "22d 22"),
    "solve_discrete_lyapunov": (lambda m, a, q: m.solve_discrete_lyapunov(a, q), "33s 33"),
    "solve_discrete_lyapunov b": (lambda m, a, q: m.solve_discrete_lyapunov(a, q, "bilinear"), "33s 33"),
    "solve_continuous_are": (
        lambda m, a, b, q, r: m.solve_continuous_are(a, b, hermitian(q), hermitian(r)),
        "22 22 22p 22p",
    ),
    "solve_continuous_are e s": (
        lambda m, a, b, q, r, e, s: m.solve_continuous_are(a, b, hermitian(q), hermitian(r), e, s / 4),
        "22 22 22p 22p 22d 22s",
    ),
    "solve_discrete_are": (
        lambda m, a, b, q, r: m.solve_discrete_are(a, b, hermitian(q), hermitian(r)),
        "22 22 22p 22p",
    ),
    "solve_discrete_are e s": (
        lambda m, a, b, q, r, e, s: m.solve_discrete_are(a, b, hermitian(q), hermitian(r), e, s / 4),
        "22 22 22p 22p 22d 22s",
    ),
    "expm_frechet": (lambda m, a, e: m.expm_frechet(a, e), "22 22"),
    "fractional_matrix_power": (lambda m, a: m.fractional_matrix_power(a, 0.3), "33p"),
    **{  # the functions that grow exponentially get a small matrix, so that rounding is far below the tolerance
        name: (lambda m, a, name=name: getattr(m, name)(a), "33s" if name in ("coshm", "expm", "sinhm") else "33h")
        for name in "cosm coshm expm logm signm sinhm sinm sqrtm tanhm tanm".split()
    },
}
CASES |= {
    # eigenvalues on both sides, two of them near to the imaginary axis
    "signm mixed": (lambda m, a: m.signm(a + MIXED), "33s"),
    "signm of two": (lambda m, a: m.signm(a[:2, :2] + MIXED[1:, 1:]), "33s"),
}
MIXED = np.array([[-0.1, 2.0, 0.0], [-2.0, -0.1, 1.0], [0.0, 0.0, 1.0]])
MIXED.flags.writeable = False
BAND = np.array([[0.0], [4.0], [0.0]])
BAND.flags.writeable = False
NUMBERS = pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
EVERY = pytest.mark.parametrize("name", CASES)


def given(name: str, complex_: bool, batch: int = 0) -> list[np.ndarray[Any, Any]]:
    """The arguments of a case; the further batches are others near to them."""
    found = []
    for i, word in enumerate(CASES[name][1].split()):
        shape = tuple(int(c) for c in word if c.isdigit())
        kind = word[-1] if word[-1].isalpha() else ""
        found.append(draw(shape, kind, 10 * i + len(name), complex_) * (1 + 0.1 * batch))
    return found


def flat(out: Any) -> list[Any]:
    return list(out) if isinstance(out, tuple) else [out]


@EVERY
@NUMBERS
def test_values_are_scipys(name: str, complex_: bool) -> None:
    call, arrays = CASES[name][0], given(name, complex_)
    for found, expected in zip(
        flat(call(ours, *map(pullback.from_numpy, arrays))), flat(call(theirs, *arrays)), strict=True
    ):
        if name.startswith("lstsq") and not found.is_complex():
            expected = np.real(expected)  # sums of squares, which SciPy 1.18 gives a dtype that is complex
        assert found.numpy().dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-11)


@EVERY
@NUMBERS
def test_derivatives(name: str, complex_: bool) -> None:
    call, tensors = CASES[name][0], [pullback.tensor(a, requires_grad=True) for a in given(name, complex_)]

    def f(*ts: Any) -> Any:
        return call(ours, *ts)

    assert gradcheck(f, tensors, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, tensors)


@EVERY
def test_transforms(name: str) -> None:
    """vmap is a loop; the Hessian, forward over reverse, is the one of reverse over reverse."""
    call, rows = CASES[name][0], [given(name, False, n) for n in range(2)]

    def f(*ts: Any) -> Any:
        return call(ours, *ts)

    def loss(first: Any, *rest: Any) -> Any:
        return sum((abs(part) ** 2).sum() for part in flat(f(first, *rest)))

    batches = [pullback.tensor(np.stack(column)) for column in zip(*rows, strict=True)]
    looped = zip(*(flat(f(*map(pullback.tensor, row))) for row in rows), strict=True)
    for found, parts in zip(flat(func.vmap(f)(*batches)), looped, strict=True):
        np.testing.assert_allclose(found.numpy(), np.stack([p.numpy() for p in parts]), rtol=1e-9, atol=1e-11)
    point = [pullback.tensor(a) for a in rows[0]]
    both = [of(loss)(*point).detach().numpy() for of in (func.hessian, lambda g: func.jacrev(func.jacrev(g)))]
    np.testing.assert_allclose(*both, rtol=1e-7, atol=1e-8)


def test_signatures_are_scipys() -> None:
    for name in sorted({*ours.__all__} - {*HANDED_ON["linalg"]}):
        assert inspect.signature(getattr(ours, name)) == inspect.signature(getattr(theirs, name)) or [
            p.name for p in inspect.signature(getattr(ours, name)).parameters.values()
        ] == [p.name for p in inspect.signature(getattr(theirs, name)).parameters.values()]
        assert f"linalg.{name}" in MIRRORS


@pytest.mark.parametrize("name", ["solve", "solve_sylvester", "solve_banded", "expm", "cholesky", "solve_toeplitz"])
def test_float32_integers_and_lists(name: str) -> None:
    call, arrays = CASES[name][0], given(name, False)
    for convert in (np.float32, np.int64):
        converted = [np.round(4 * a).astype(convert) if convert is np.int64 else a.astype(convert) for a in arrays]
        (found,), (expected,) = flat(call(ours, *map(pullback.tensor, converted))), flat(call(theirs, *converted))
        assert found.numpy().dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-4, atol=1e-4)
    lists = [a if name.endswith("banded") else a.tolist() for a in arrays]
    assert isinstance(call(pullback.scipy.linalg, *lists), np.ndarray)


def test_float32_has_gradients_of_float32() -> None:
    for name in ("solve_sylvester", "solve_continuous_lyapunov", "solve_discrete_lyapunov", "sqrtm", "solve_banded"):
        tensors = [pullback.tensor(a.astype(np.float32), requires_grad=True) for a in given(name, False)]
        found = CASES[name][0](ours, *tensors)
        found.sum().backward()
        assert all(t.grad.dtype is pullback.float32 for t in tensors)


def test_numbers_of_several_kinds() -> None:
    a, b = pullback.tensor(given("solve_sylvester", False)[0], requires_grad=True), given("solve_sylvester", True)[1]
    q = np.ones((3, 2), np.float32)
    x = ours.solve_sylvester(a, b, q)
    found = x.detach().numpy()  # SciPy's own result for a real and a complex matrix is no solution
    np.testing.assert_allclose(a.detach().numpy() @ found + found @ b, q)
    x.abs().sum().backward()
    assert a.grad.dtype is pullback.float64


def test_other_results() -> None:
    a = given("lstsq", False)[0]
    x, residues, rank, s = ours.lstsq(pullback.tensor(a), np.ones(4))
    for found, expected in zip((x, residues, rank, s), theirs.lstsq(a, np.ones(4)), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected)
    square = given("lu", False)[0]
    for found, expected in zip(ours.lu(square, p_indices=True), theirs.lu(square, p_indices=True), strict=True):
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    np.testing.assert_array_equal(ours.lu_factor(square)[1].numpy(), theirs.lu_factor(square)[1])
    np.testing.assert_array_equal(ours.qr(a, pivoting=True)[2].numpy(), theirs.qr(a, pivoting=True)[2])
    assert ours.pinv(np.diag([1.0, 0.0]), return_rank=True)[1] == 1
    assert ours.svd(a, compute_uv=False).shape == (2,)
    np.testing.assert_allclose(
        ours.eigh(hermitian(square), subset_by_value=[0, 9])[0].numpy(),
        theirs.eigh(hermitian(square), subset_by_value=[0, 9])[0],
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.solve([[1.0, 2.0]], [1.0]),
        lambda m: m.inv(np.ones((2, 3))),
        lambda m: m.expm(np.ones((2, 3))),
        lambda m: m.logm(np.ones((2, 3))),
        lambda m: m.solve_banded((1, 1), np.ones((2, 3)), np.ones(3)),
        lambda m: m.solve_banded((1, 1), np.ones((3, 3)), np.ones(4)),
        lambda m: m.solve_sylvester(np.eye(2), np.eye(3), np.ones((3, 3))),
        lambda m: m.solve_continuous_are(np.eye(2), np.eye(2), [[1.0, 2.0], [0.0, 1.0]], np.eye(2)),
        lambda m: m.svd([[np.nan, 1.0]]),
        lambda m: m.cholesky([[np.inf]]),
        lambda m: m.toeplitz(),
        lambda m: m.solve(np.eye(2), np.ones(2), assume_a="round"),
        lambda m: m.polar(np.eye(2), side="up"),
        lambda m: m.cho_solve((np.eye(2), True), np.ones(3)),
        lambda m: m.companion([0.0, 1.0]),
        lambda m: m.solve_circulant([1.0, 1.0], [1.0, 1.0]),
        lambda m: m.cholesky(-np.eye(2)),
        lambda m: m.inv(np.zeros((2, 2))),
        lambda m: m.solve_toeplitz([0.0, 0.0], [1.0, 1.0]),
    ],
)
def test_bad_input_is_refused_as_scipy_refuses_it(call: Call) -> None:
    with pytest.raises((ValueError, TypeError, theirs.LinAlgError)) as expected:
        call(theirs)
    with pytest.raises((ValueError, TypeError, theirs.LinAlgError)) as found:
        call(ours)
    assert issubclass(found.type, expected.type) or (expected.type is ValueError and found.type is RuntimeError)


def test_what_depends_on_values_by_steps_is_known_in_forward_mode_and_refused_in_vmap() -> None:
    a = pullback.tensor(draw((3, 3), "p", 3, False))
    calls: tuple[tuple[Call, str], ...] = (
        (lambda a: ours.eigh(a, subset_by_value=[0.0, 1e3], eigvals_only=True), "subset_by_value"),
        (lambda a: ours.pinv(a, return_rank=True)[0], "return_rank"),
    )
    for call, name in calls:
        assert gradcheck(call, a, check_forward_ad=True)
        np.testing.assert_allclose(func.jacfwd(call)(a).numpy(), func.jacrev(call)(a).numpy(), rtol=1e-9)
        assert pullback.compile(lambda a, call=call: call(a) * 2, backend="numpy")(a).shape == call(a).shape
        with pytest.raises(RuntimeError, match=f"{name} in vmap: what it gives differs(.|\n)*loop over the samples"):
            func.vmap(call)(pullback.stack([a, 2 * a]))


def test_order_of_the_rows_of_a_complex_matrix() -> None:
    a = draw((4, 4), "", 5, True)
    for mine, scipys in zip(ours.lu(a, p_indices=True), theirs.lu(a, p_indices=True), strict=True):
        np.testing.assert_allclose(mine.numpy(), scipys, rtol=1e-12)


def test_r_of_all_rows_has_a_gradient() -> None:
    a = pullback.tensor(draw((4, 2), "", 6, False), requires_grad=True)
    assert gradcheck(lambda a: ours.qr(a)[1], a)
    for mine, scipys in zip(ours.qr(a), theirs.qr(a.detach().numpy()), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), scipys, atol=1e-12)
    with pytest.raises(RuntimeError, match="SciPy calls 'economic'"):
        ours.qr(a)[0].sum().backward()


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_dtypes_of_numbers_are_scipys(ord: Any) -> None:
    for dtype in ("float32", "complex64"):
        a = draw((3, 3), "", 7, dtype == "complex64").astype(dtype)
        for call in (lambda m, a: m.norm(a, ord), lambda m, a: m.norm(a, ord, axis=(0, 1)), lambda m, a: m.det(a)):
            t = pullback.tensor(a, requires_grad=True)
            found = call(ours, t)
            assert found.detach().numpy().dtype == np.asarray(call(theirs, a)).dtype
            abs(found).backward()
            assert t.grad.dtype == t.dtype
    e = np.eye(2, dtype=np.float32)
    assert [v.numpy().dtype for v in ours.expm_frechet(e, e)] == [v.dtype for v in theirs.expm_frechet(e, e)]


def test_a_solution_of_riccatis_equation_that_is_none_is_refused() -> None:
    # SciPy balances some equations with E into others
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(60):
        a, b, s = rng.normal(size=(3, 3)) - 2 * np.eye(3), rng.normal(size=(3, 2)), 0.05 * rng.normal(size=(3, 2))
        e, q, r = np.eye(3) + 0.1 * rng.normal(size=(3, 3)), 2 * np.eye(3), np.eye(2)
        x = theirs.solve_continuous_are(a, b, q, r, e, s)
        left = a.T @ x @ e + e.T @ x @ a - (e.T @ x @ b + s) @ (b.T @ x @ e + s.T) + q
        if np.abs(left).max() > 1e-4:
            wrong += 1
            with pytest.raises(theirs.LinAlgError, match=r"does not solve it(.|\n)*balanced=False"):
                ours.solve_continuous_are(a, b, q, r, e, s)
        else:
            np.testing.assert_allclose(ours.solve_continuous_are(a, b, q, r, e, s).numpy(), x, rtol=1e-9)
        right = ours.solve_continuous_are(a, b, q, r, e, s, balanced=False).numpy()
        left = a.T @ right @ e + e.T @ right @ a - (e.T @ right @ b + s) @ (b.T @ right @ e + s.T) + q
        assert np.abs(left).max() < 1e-8
    assert wrong


def test_settings_take_no_gradient() -> None:
    t = pullback.tensor(0.5, requires_grad=True)
    for call in (
        lambda: ours.fractional_matrix_power(np.eye(2), t),
        lambda: ours.pinv(np.eye(2), rtol=t),
        lambda: ours.solve_circulant([2.0, 1.0], [1.0, 1.0], tol=t),
    ):
        with pytest.raises(TypeError, match="setting of the solver"):
            call()


def test_the_other_triangle_is_not_read() -> None:
    a = np.array([[4.0, 99.0], [1.0, 3.0]])
    for name, lower in (("cholesky", True), ("eigvalsh", True), ("cho_factor", True)):
        t = pullback.tensor(a, requires_grad=True)
        found = flat(getattr(ours, name)(t, lower=lower))[0]
        np.testing.assert_allclose(
            np.tril(found.detach().numpy()), np.tril(flat(getattr(theirs, name)(a, lower=lower))[0])
        )
        found.sum().backward()
        assert t.grad[0, 1] == 0


@pytest.mark.parametrize("name", ["schur", "hessenberg", "qz", "ordqz", "rsf2csf", "orth", "null_space"])
def test_refused(name: str) -> None:
    with pytest.raises(AttributeError, match=f"pullback.scipy.linalg.{name} has no derivative"):
        getattr(ours, name)
    assert f"linalg.{name}" in REFUSED


def test_not_here() -> None:
    with pytest.raises(AttributeError, match=r"(?s)not among the functions.*class Funm"):
        ours.funm  # noqa: B018
    assert ours.LinAlgError is theirs.LinAlgError
    assert "sqrtm" in dir(pullback.scipy.linalg)


def test_nothing_is_overwritten() -> None:
    ab, b = np.array([[0.0, 1.0], [2.0, 4.0]]), np.array([3.0, 4.0])
    ours.solve_banded((0, 1), pullback.from_numpy(ab), pullback.from_numpy(b), overwrite_ab=True, overwrite_b=True)
    np.testing.assert_array_equal(ab, [[0.0, 1.0], [2.0, 4.0]])
    np.testing.assert_array_equal(b, [3.0, 4.0])


@pytest.mark.parametrize("name", ["logm", "sqrtm", "fractional_matrix_power"])
def test_functions_of_matrices_leave_random_numbers_alone(name: str) -> None:
    a = pullback.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=pullback.float64)
    more = (0.3,) if name == "fractional_matrix_power" else ()

    def f(a: Any) -> Any:
        return getattr(ours, name)(a, *more) * 2

    np.random.seed(0)
    expected = np.random.rand()
    np.random.seed(0)
    f(a)
    assert np.random.rand() == expected
    np.testing.assert_allclose(pullback.compile(f, backend="numpy")(a).numpy(), f(a).numpy())

"""pullback.scipy.sparse and its linalg against SciPy: values, all modes of differentiation, memory, bad input."""

from __future__ import annotations

import inspect
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg as theirs

import pullback.scipy.sparse.linalg
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck
from pullback.scipy.mirror import HANDED_ON, MIRRORS

from .grid_checks import OfTensors

ours: Any = OfTensors(pullback.scipy.sparse.linalg)
sparse: Any = OfTensors(pullback.scipy.sparse)

N = 5
ROWS, COLUMNS = (scipy.sparse.random_array((N, N), density=0.4, rng=3) + scipy.sparse.eye_array(N)).tocoo().coords
NUMBERS = pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
TIGHT = {"rtol": 1e-13, "atol": 0.0}


def draw(*shape: int, complex_: bool = False, number: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(number)
    a = rng.standard_normal(shape)
    return a + 1j * rng.standard_normal(shape) if complex_ else a


def matrix(m: Any, values: Any, shift: float = 0.0) -> Any:
    """A square matrix of values, in either library."""
    return m.csr_array((values, (ROWS, COLUMNS)), shape=(N, N)) + shift * m.eye_array(N)


def hermitian(m: Any, values: Any, shift: float = 0.0) -> Any:
    a = matrix(m, values)
    return a + a.conj().T + shift * m.eye_array(N)


def moduli(pair: Any) -> Any:
    """Eigenvalues, and what does not depend on the phases of vectors, in ascending order."""
    w, v = pair
    if isinstance(w, np.ndarray) and w.dtype.kind == "f":
        order = np.argsort(w)
        w, v = w[order], v[:, order]
    return w, abs(v) ** 2


def decomposed(parts: Any) -> Any:
    u, s, vh = parts
    return abs(u), s, abs(vh)


def rng(m: Any) -> dict[str, Any]:
    """SciPy starts where these functions start by themselves."""
    return {"rng": 0} if m is scipy.sparse else {}


def solver(m: Any) -> Any:
    return theirs if m is scipy.sparse else ours


def csc(m: Any, a: Any) -> Any:
    return a.tocsc() if m is scipy.sparse else a


NNZ = len(ROWS)
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "spsolve": (lambda m, v, b: solver(m).spsolve(csc(m, matrix(m, v, 4)), b), ((NNZ,), (N,))),
    "spsolve columns": (lambda m, v, b: solver(m).spsolve(csc(m, matrix(m, v, 4)), b), ((NNZ,), (N, 2))),
    "spsolve (n, 1)": (lambda m, v, b: solver(m).spsolve(csc(m, matrix(m, v, 4)), b), ((NNZ,), (N, 1))),
    **{
        f"splu {trans}": (
            lambda m, v, b, trans=trans: solver(m).splu(csc(m, matrix(m, v, 4))).solve(b, trans),
            ((NNZ,), (N, 2)),
        )
        for trans in "NTH"
    },
    "factorized": (lambda m, v, b: solver(m).factorized(csc(m, matrix(m, v, 4)))(b), ((NNZ,), (N,))),
    "spsolve_triangular": (
        lambda m, v, b: solver(m).spsolve_triangular(
            matrix(m, v, 4) if m is sparse else scipy.sparse.tril(matrix(m, v, 4)).tocsr(), b
        ),
        ((NNZ,), (N, 2)),
    ),
    "spsolve_triangular unit": (
        lambda m, v, b: solver(m).spsolve_triangular(
            matrix(m, v, 0) if m is sparse else scipy.sparse.triu(matrix(m, v, 0)).tocsr(),
            b,
            lower=False,
            unit_diagonal=True,
        ),
        ((NNZ,), (N,)),
    ),
    "cg": (lambda m, v, b: solver(m).cg(hermitian(m, v, 12), b, **TIGHT)[0], ((NNZ,), (N,))),
    "gmres": (lambda m, v, b: solver(m).gmres(matrix(m, v, 4), b, **TIGHT)[0], ((NNZ,), (N,))),
    "bicgstab": (lambda m, v, b: solver(m).bicgstab(matrix(m, v, 8), b, **TIGHT)[0], ((NNZ,), (N,))),
    "eigsh": (lambda m, v: moduli(solver(m).eigsh(hermitian(m, v), k=2, **rng(m))), ((NNZ,),)),
    "eigsh M": (
        lambda m, v, w: moduli(solver(m).eigsh(hermitian(m, v), k=2, M=hermitian(m, w / 5, 5), **rng(m))),
        ((NNZ,), (NNZ,)),
    ),
    "eigsh sigma": (
        lambda m, v: moduli(solver(m).eigsh(csc(m, hermitian(m, v)), k=2, sigma=0.1, **rng(m))),
        ((NNZ,),),
    ),
    "product of matrices": (
        lambda m, v, w: ((matrix(m, v) @ hermitian(m, w)) @ matrix(m, v).T).toarray(),
        ((NNZ,), (NNZ,)),
    ),
    "sums": (
        lambda m, v: tuple(
            f(a)
            for a in (matrix(m, v), matrix(m, v).tocsc().T)
            for f in (
                lambda a: a.sum(),
                lambda a: a.sum(0),
                lambda a: a.sum(axis=-1),
                lambda a: a.tocsr().tocoo().toarray()[1],
            )
        ),
        ((NNZ,),),
    ),
    "eigs": (lambda m, v: moduli(solver(m).eigs(matrix(m, v), k=1, which="LR", **rng(m))), ((NNZ,),)),
    "eigs M": (
        lambda m, v, w: moduli(solver(m).eigs(matrix(m, v), k=1, which="LR", M=hermitian(m, w / 5, 5), **rng(m))),
        ((NNZ,), (NNZ,)),
    ),
    "svds": (lambda m, v: decomposed(solver(m).svds(matrix(m, v), k=2, **rng(m))), ((NNZ,),)),
    "expm_multiply": (lambda m, v, b: solver(m).expm_multiply(matrix(m, v), b), ((NNZ,), (N, 2))),
    "expm_multiply times": (
        lambda m, v, b: solver(m).expm_multiply(matrix(m, v), b, start=0.1, stop=0.5, num=3),
        ((NNZ,), (N,)),
    ),
    "norms": (
        lambda m, v: tuple(solver(m).norm(matrix(m, v), o) for o in (None, "fro", 1, -1, np.inf, -np.inf)),
        ((NNZ,),),
    ),
    "norms of rows": (
        lambda m, v: tuple(solver(m).norm(matrix(m, v), o, axis=a) for o in (None, 1) for a in (0, 1)),
        ((NNZ,),),
    ),
}
EVERY = pytest.mark.parametrize("name", CASES)


@pytest.mark.parametrize("mode", ["buckling", "cayley"])
def test_other_modes_of_real_matrices(mode: str) -> None:
    """In "buckling" M is indefinite, and the vectors are scaled by A; an omitted M is the identity."""

    def pairs(m: Any, v: Any, *ws: Any) -> Any:
        mass = {"M": csc(m, hermitian(m, ws[0] / 5, 0.0 if mode == "buckling" else 5.0))} if ws else {}
        a = csc(m, hermitian(m, v, 12))
        return moduli(solver(m).eigsh(a, k=2, sigma=0.7 if ws else 8.0, mode=mode, **mass, **rng(m)))

    for arrays in ((draw(NNZ), draw(NNZ, number=1)), (draw(NNZ),)):
        leaves = [pullback.tensor(a, requires_grad=True) for a in arrays]
        for found, expected in zip(pairs(sparse, *leaves), pairs(scipy.sparse, *arrays), strict=True):
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-10)
        assert gradcheck(lambda *ts: pairs(sparse, *ts), leaves, check_forward_ad=True)
        assert gradgradcheck(lambda *ts: pairs(sparse, *ts)[0], leaves)


SOME = [name for name in CASES if not name.startswith(("eigs M", "splu", "norms"))]


def given(name: str, complex_: bool) -> list[np.ndarray[Any, Any]]:
    return [draw(*shape, complex_=complex_, number=i) for i, shape in enumerate(CASES[name][1])]


def of(name: str) -> Callable[..., Any]:
    return lambda *ts: CASES[name][0](sparse, *ts)


def flat(out: Any) -> list[Any]:
    return list(out) if isinstance(out, tuple) else [out]


@EVERY
@NUMBERS
def test_values_are_scipys(name: str, complex_: bool) -> None:
    arrays = given(name, complex_)
    found = flat(of(name)(*map(pullback.from_numpy, arrays)))
    for ours_, theirs_ in zip(found, flat(CASES[name][0](scipy.sparse, *arrays)), strict=True):
        assert ours_.numpy().dtype == np.asarray(theirs_).dtype
        np.testing.assert_allclose(ours_.numpy(), theirs_, rtol=1e-9, atol=1e-10)


@EVERY
@NUMBERS
def test_derivatives(name: str, complex_: bool) -> None:
    tensors = [pullback.tensor(a, requires_grad=True) for a in given(name, complex_)]
    # ARPACK's eigenpairs differ from call to call by rounding
    assert gradcheck(of(name), tensors, check_forward_ad=True, check_batched_grad=True, nondet_tol=1e-9)
    assert gradgradcheck(of(name), tensors, nondet_tol=1e-9)


@pytest.mark.parametrize("name", SOME)
def test_transforms(name: str) -> None:
    """vmap is a loop; the Hessian, forward over reverse, is the one of reverse over reverse."""
    arrays = given(name, False)

    def loss(first: Any, *rest: Any) -> Any:
        return sum((part**2).sum() for part in map(abs, flat(of(name)(first, *rest))))

    batches = [pullback.tensor(np.stack([a, 1.1 * a])) for a in arrays]
    looped = zip(*(flat(of(name)(*(b[i] for b in batches))) for i in range(2)), strict=True)
    for found, parts in zip(flat(func.vmap(of(name))(*batches)), looped, strict=True):
        np.testing.assert_allclose(found.numpy(), np.stack([p.numpy() for p in parts]), rtol=1e-8, atol=1e-9)
    point = [pullback.tensor(a) for a in arrays]
    both = [g(loss)(*point).numpy() for g in (func.hessian, lambda f: func.jacrev(func.jacrev(f)))]
    np.testing.assert_allclose(*both, rtol=1e-6, atol=1e-7)


def test_one_right_hand_side_of_a_batch() -> None:
    v, b = pullback.tensor(draw(NNZ)), pullback.tensor(draw(3, N))
    solve = of("spsolve")
    found = func.vmap(solve, in_dims=(None, 0))(v, b)
    np.testing.assert_allclose(found.numpy(), np.stack([solve(v, row).numpy() for row in b]))


# Matrices -------------------------------------------------------------------------------------------------------------


def test_constructors_are_scipys() -> None:
    data, rows, columns = draw(4), [0, 1, 1, 2], [2, 0, 0, 1]  # a place that comes twice
    for format_ in ("csr", "csc", "coo"):
        name = f"{format_}_array"
        for arg in (
            lambda t: (t, (rows, columns)),
            lambda t: (t[:3], [2, 0, 1], [0, 1, 2, 3]),
            lambda t: t.reshape(2, 2) * np.array([[1.0, 0.0], [1.0, 1.0]]),
            lambda t: (2, 3),
        ):
            if format_ == "coo" and isinstance(arg(data), tuple) and len(arg(data)) == 3:
                continue
            ours_, theirs_ = getattr(sparse, name)(arg(pullback.tensor(data))), getattr(scipy.sparse, name)(arg(data))
            assert (ours_.shape, ours_.format) == (theirs_.shape, theirs_.format)
            np.testing.assert_allclose(np.asarray(ours_.toarray()), theirs_.toarray())
    for call in (
        lambda m, t: m.diags_array([t, t[:3]], offsets=[0, -1]),
        lambda m, t: m.diags_array([t, 2 * t[:3]], offsets=[1, -2], shape=(5, 5)),
        lambda m, t: m.diags_array(t, offsets=2),
        lambda m, t: m.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(4, 4)),
        lambda m, t: m.eye_array(3, 4, k=1),
    ):
        np.testing.assert_allclose(call(sparse, pullback.tensor(data)).toarray(), call(scipy.sparse, data).toarray())


def test_arithmetic_of_matrices() -> None:
    v, x = draw(NNZ, complex_=True), draw(N, 2)
    for call in (
        lambda m, v, x: m.csr_array((v, (ROWS, COLUMNS)), shape=(N, N)) @ x,
        lambda m, v, x: x.T @ m.csr_array((v, (ROWS, COLUMNS)), shape=(N, N)),
        lambda m, v, x: (2 * matrix(m, v) / 3 - matrix(m, v).T.conj() + m.eye_array(N)).toarray(),
        lambda m, v, x: matrix(m, v).diagonal(),
        lambda m, v, x: (-matrix(m, v)).todense(),
    ):
        np.testing.assert_allclose(
            call(sparse, pullback.tensor(v), pullback.tensor(x)).numpy(), call(scipy.sparse, v, x), atol=1e-12
        )
    t = [pullback.tensor(a, requires_grad=True) for a in (v, x)]
    assert gradcheck(lambda v, x: matrix(sparse, v, 2) @ x, t, check_forward_ad=True)
    a = matrix(sparse, pullback.tensor(v))
    assert a.to_tensor().layout is pullback.sparse_csr
    np.testing.assert_allclose(a.to_tensor().to_dense().numpy(), a.toarray().numpy())


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "strided"])
def test_tensors_of_every_layout(layout: str) -> None:
    dense, b = draw(N, N) + 4 * np.eye(N), draw(N)
    t = pullback.tensor(dense)
    a = (t if layout == "strided" else t.to_sparse(layout=getattr(pullback, layout))).requires_grad_()
    x = ours.spsolve(a, b)
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(dense, b))
    x.sum().backward()
    w = np.linalg.solve(dense.T, np.ones(N))
    assert a.grad.layout is getattr(pullback, "sparse_coo" if layout == "sparse_coo" else layout)
    np.testing.assert_allclose(
        (a.grad if layout == "strided" else a.grad.to_dense()).numpy(), -np.outer(w, x.detach().numpy())
    )


def test_uncoalesced_entries_share_a_gradient() -> None:
    v = pullback.tensor([1.0, 1.0, 4.0], requires_grad=True)
    a = pullback.sparse_coo_tensor([[0, 0, 1], [0, 0, 1]], v, (2, 2))
    ours.spsolve(a, pullback.tensor([2.0, 4.0])).sum().backward()
    assert v.grad.tolist() == [-0.5, -0.5, -0.25]


# Systems --------------------------------------------------------------------------------------------------------------


def test_one_factorisation_serves_all_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = scipy.sparse.linalg.splu
    monkeypatch.setattr(scipy.sparse.linalg, "splu", lambda *a, **k: calls.append(1) or real(*a, **k))
    v, b = pullback.tensor(draw(NNZ), requires_grad=True), pullback.tensor(draw(N), requires_grad=True)
    (g,) = pullback.autograd.grad((of("spsolve")(v, b) ** 2).sum(), v, create_graph=True)
    g.sum().backward()
    assert len(calls) == 1
    lu = ours.splu(matrix(sparse, v, 4))
    (lu.solve(b) + lu.solve(b, "T")).sum().backward()
    assert len(calls) == 2


def test_memory_of_the_gradient_is_that_of_the_nonzeros() -> None:
    n = 5000
    v = pullback.ones(3 * n - 2, dtype=pullback.float64).requires_grad_()
    parts = [4 * v[:n], v[n : 2 * n - 1], v[2 * n - 1 :]]
    x = ours.spsolve(sparse.diags_array(parts, offsets=[0, 1, -1]), np.ones(n))
    tracemalloc.start()
    x.sum().backward()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400 * v.numel()  # a dense gradient would take 200 MB


def test_real_matrix_and_complex_right_hand_side() -> None:
    v, b = (pullback.tensor(a, requires_grad=True) for a in (draw(NNZ), draw(N, 2, complex_=True)))
    assert gradcheck(of("spsolve columns"), [v, b], check_forward_ad=True)
    assert v.grad is None or not v.grad.dtype.is_complex


def test_float32_and_integers() -> None:
    v, b = draw(NNZ).astype(np.float32), np.arange(N)
    t = pullback.tensor(v, requires_grad=True)
    a = sparse.csr_array((t, (ROWS, COLUMNS)), shape=(N, N))
    eye = sparse.eye_array(N, dtype=np.float32)
    x = ours.spsolve(a + 4 * eye, pullback.tensor(b.astype(np.float32)))
    assert x.dtype is pullback.float32
    x.sum().backward()
    assert t.grad.dtype is pullback.float32
    whole = scipy.sparse.csc_array(np.array([[2, 1], [0, 4]]))
    assert ours.spsolve(whole, np.array([4, 4])).tolist() == [1.5, 1.0]


def test_singular_matrix() -> None:
    a = sparse.csr_array(pullback.tensor([[1.0, 1.0], [1.0, 1.0]]))
    for call in (lambda: ours.spsolve(a, np.ones(2)), lambda: ours.splu(a), lambda: ours.factorized(a)):
        with pytest.raises(np.linalg.LinAlgError, match="exactly singular"):
            call()
    with pytest.raises(RuntimeError, match="expected a regular matrix"):
        ours.spsolve(a, np.ones(2))


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.spsolve(scipy.sparse.csc_array(np.ones((2, 3))), np.ones(2)),
        lambda m: m.spsolve(scipy.sparse.eye_array(2).tocsc(), np.ones(3)),
        lambda m: m.splu(scipy.sparse.eye_array(2).tocsc()).solve(np.ones(2), "X"),
        lambda m: m.cg(np.ones((2, 3)), np.ones(2)),
        lambda m: m.gmres(np.eye(2), np.ones(3)),
        lambda m: m.eigsh(np.ones((2, 3))),
        lambda m: m.eigsh(np.eye(4), k=2, which="XX"),
        lambda m: m.svds(np.eye(4), k=9),
        lambda m: m.expm_multiply(np.ones((2, 3)), np.ones(2)),
        lambda m: m.LinearOperator((2,), matvec=lambda v: v),
        lambda m: m.norm(scipy.sparse.eye_array(2), axis=5),
    ],
)
def test_bad_input_is_refused_as_scipy_refuses_it(call: Callable[..., Any]) -> None:
    with pytest.raises((ValueError, TypeError)) as expected:
        call(theirs)
    with pytest.raises(expected.type):
        call(ours)


def test_sparse_right_hand_side_and_settings() -> None:
    a, t = scipy.sparse.eye_array(3).tocsc(), pullback.tensor(1e-5, requires_grad=True)
    with pytest.raises(TypeError, match="dense array"):
        ours.spsolve(sparse.csc_array(np.eye(3)), a)
    for call in (
        lambda: ours.cg(a, np.ones(3), rtol=t),
        lambda: ours.cg(a, np.ones(3), x0=pullback.ones(3, requires_grad=True)),
        lambda: ours.gmres(a, np.ones(3), M=pullback.eye(3).requires_grad_()),
        lambda: ours.eigsh(a, k=1, sigma=t),
        lambda: ours.svds(a, k=1, tol=t),
        lambda: ours.expm_multiply(a, np.ones(3), start=0.0, stop=t),
    ):
        with pytest.raises(TypeError, match=r"setting of the solver(?s:.*)detach"):
            call()


# Iterations -----------------------------------------------------------------------------------------------------------

SOLVERS = pytest.mark.parametrize("solve", [ours.cg, ours.gmres, ours.bicgstab], ids=lambda s: s.__name__)


def operator(t: Any, args: bool, rmatvec: bool = False) -> Any:
    """A positive definite operator that depends on t, by its arguments or by what it reads, t and a function of it."""
    basis = pullback.tensor(draw(N, N))
    if args:
        by = lambda v, t: basis @ (np.exp(t) * (basis.T @ v)) + v * (1 + t * t)  # noqa: E731
        return ours.LinearOperator((N, N), by, by if rmatvec else None, args=(t,))
    scaled = np.exp(t)
    by = lambda v: basis @ (scaled * (basis.T @ v)) + v * (1 + t * t)  # noqa: E731
    return ours.LinearOperator((N, N), by, by if rmatvec else None)


@SOLVERS
@pytest.mark.parametrize("rmatvec", [False, True])
@pytest.mark.parametrize("args", [False, True])
def test_operators(solve: Any, args: bool, rmatvec: bool) -> None:
    tensors = [pullback.tensor(draw(N, number=n), requires_grad=True) for n in (1, 2)]

    def f(t: Any, b: Any) -> Any:
        return solve(operator(t, args, rmatvec), b, **TIGHT)[0]

    dense = np.stack([operator(tensors[0], args).matvec(e).detach().numpy() for e in np.eye(N)], 1)
    np.testing.assert_allclose(f(*tensors).detach().numpy(), np.linalg.solve(dense, draw(N, number=2)), rtol=1e-8)
    assert gradcheck(f, tensors, check_forward_ad=True)
    assert gradgradcheck(f, tensors)
    if args:
        hessians = [g(lambda t: f(t, tensors[1].detach()).sum())(tensors[0].detach()) for g in (func.hessian,)]
        assert hessians[0].shape == (N, N)


@pytest.mark.parametrize("rmatvec", [False, True])
@pytest.mark.parametrize("args", [False, True])
def test_operators_in_transforms(args: bool, rmatvec: bool) -> None:
    t, b = pullback.tensor(draw(N)), pullback.tensor(draw(N, number=2))
    ts = pullback.stack([t, 2 * t])

    def f(t: Any, args: bool = args) -> Any:
        return ours.cg(operator(t, args, rmatvec), b, **TIGHT)[0]

    dense = np.stack([operator(2 * t, True).matvec(e).detach().numpy() for e in np.eye(N)], 1)
    np.testing.assert_allclose(func.vmap(f)(ts)[1].numpy(), np.linalg.solve(dense, b.numpy()), rtol=1e-8)
    leaf = t.clone().requires_grad_()
    out = f(leaf, True)
    rows = pullback.stack([pullback.autograd.grad(v, leaf, retain_graph=True)[0] for v in out])
    np.testing.assert_allclose(func.jvp(f, (t,), (t,))[1].numpy(), (rows @ t).numpy(), rtol=1e-7)
    value = lambda t: (f(t) ** 2).sum()  # noqa: E731
    np.testing.assert_allclose(func.grad(value)(t).numpy(), (2 * out.detach() @ rows).numpy(), rtol=1e-7)
    np.testing.assert_allclose(func.hessian(value)(t).numpy(), func.jacrev(func.grad(value))(t).numpy(), rtol=1e-6)


def test_scipys_operator_is_refused() -> None:
    plain = theirs.LinearOperator((2, 2), matvec=lambda v: v)
    for call in (lambda: ours.cg(plain, np.ones(2)), lambda: ours.eigsh(plain, k=1)):
        with pytest.raises(TypeError, match="LinearOperator"):
            call()


def test_operator_as_a_matrix() -> None:
    dense = draw(N, N, complex_=True)
    a, x = pullback.tensor(dense), draw(N, 2, complex_=True)
    op = ours.LinearOperator((N, N), lambda v: a @ v, dtype=complex)
    for found, expected in (
        (op @ x, dense @ x),
        (op.matvec(x[:, 0]), dense @ x[:, 0]),
        (op.rmatvec(x[:, 0]), dense.conj().T @ x[:, 0]),
        (op.H.matmat(x), dense.conj().T @ x),
        (op.H.H.matvec(x[:, 1]), dense @ x[:, 1]),
    ):
        np.testing.assert_allclose(found.numpy(), expected)
    assert op.dtype == np.complex128
    assert ours.LinearOperator((2, 2), lambda v: v).dtype == np.float64
    with pytest.raises(ValueError, match="dimension mismatch"):
        op.matvec(np.ones(N + 1))


@SOLVERS
def test_not_converged(solve: Any) -> None:
    a = pullback.tensor(draw(N, N) @ draw(N, N).T + np.eye(N), requires_grad=True)
    settings = {"maxiter": 1, "rtol": 1e-12, **({"restart": 1} if solve is ours.gmres else {})}
    with pytest.raises(RuntimeError, match="not solved to the tolerance after 1 iteration"):
        solve(a, np.ones(N), **settings)
    x, info = solve(a, np.ones(N), on_failure="nan", **settings)
    assert info == 1
    assert x.isnan().all()
    with pytest.raises(ValueError, match="on_failure"):
        solve(a, np.ones(N), on_failure="ignore")


@SOLVERS
def test_callback_and_preconditioner(solve: Any) -> None:
    dense = draw(N, N) @ draw(N, N).T + np.diag(10.0 ** np.arange(N))
    seen: list[Any] = []
    more = {"callback_type": "x"} if solve is ours.gmres else {}
    for M in (
        np.diag(1 / np.diag(dense)),
        sparse.diags_array(1 / np.diag(dense)),
        ours.LinearOperator((N, N), lambda v: v / pullback.tensor(np.diag(dense))),
        theirs.aslinearoperator(np.diag(1 / np.diag(dense))),
    ):
        a = pullback.tensor(dense, requires_grad=True)
        x, info = solve(a, np.ones(N), x0=np.ones(N), M=M, callback=seen.append, rtol=1e-12, maxiter=500, **more)
        x.sum().backward()
        assert info == 0
        np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(dense, np.ones(N)), rtol=1e-6)
        w = np.linalg.solve(dense.T, np.ones(N))
        np.testing.assert_allclose(a.grad.numpy(), -np.outer(w, x.detach().numpy()), rtol=1e-5, atol=1e-9)
    assert seen
    assert all(isinstance(v, pullback.Tensor) and v.shape == (N,) for v in seen)


# Eigenpairs -----------------------------------------------------------------------------------------------------------


def test_eigenpairs_are_those_of_dense_matrices() -> None:
    """Derivatives of values and vectors are torch.linalg.eigh's, written for dense matrices."""
    v = pullback.tensor(draw(NNZ), requires_grad=True)
    dense = hermitian(sparse, v).toarray()
    w, z = ours.eigsh(hermitian(sparse, v), k=2, which="LA")
    big_w, big_z = pullback.linalg.eigh(dense)
    weight = pullback.tensor(draw(N, 2))
    found, expected = (
        pullback.autograd.grad((w_ * w_).sum() + (weight * z_ * z_).sum(), v, retain_graph=True)[0]
        for w_, z_ in ((w, z), (big_w[-2:], big_z[:, -2:]))
    )
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8, atol=1e-9)


def test_results_of_one_kind() -> None:
    v = pullback.tensor(draw(NNZ))
    a = matrix(sparse, v)
    w = ours.eigsh(hermitian(sparse, v), k=2, return_eigenvectors=False)
    np.testing.assert_allclose(w.numpy(), ours.eigsh(hermitian(sparse, v), k=2)[0].numpy())
    assert ours.eigs(a, k=2, return_eigenvectors=False).shape == (2,)
    assert ours.svds(a, k=2, return_singular_vectors=False).shape == (2,)
    u, s, vh = ours.svds(a, k=2, return_singular_vectors="u")
    assert (u.shape, s.shape, vh) == ((N, 2), (2,), None)
    u, s, vh = ours.svds(a, k=2, return_singular_vectors="vh")
    assert (u, s.shape, vh.shape) == (None, (2,), (2, N))


def test_svds_of_a_rectangle() -> None:
    dense = draw(4, 7, complex_=True)
    t = pullback.tensor(dense, requires_grad=True)
    assert gradcheck(lambda t: decomposed(ours.svds(t, k=2)), [t], check_forward_ad=True, nondet_tol=1e-9)
    u, s, _ = ours.svds(t, k=2)
    np.testing.assert_allclose(s.detach().numpy(), np.linalg.svd(dense)[1][1::-1])
    np.testing.assert_allclose((u.conj().T @ u).detach().numpy(), np.eye(2), atol=1e-12)


def test_repeated_eigenvalue() -> None:
    d = pullback.tensor([3.0, 3.0, 1.0, 0.5, 0.2], dtype=pullback.float64, requires_grad=True)
    a = sparse.diags_array(d)
    w, v = ours.eigsh(a, k=2)
    w.sum().backward(retain_graph=True)
    np.testing.assert_allclose(d.grad.numpy(), [1, 1, 0, 0, 0], atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="repeated"):
        (v**3).sum().backward()


@NUMBERS
@pytest.mark.parametrize("how", [{}, {"which": "LR"}, {"which": "SR"}, {"which": "LI"}, {"sigma": 0.5}], ids=str)
@pytest.mark.parametrize("k", [3, 4])
def test_eigenvalues_alone_are_in_scipys_order(complex_: bool, how: dict[str, Any], k: int) -> None:
    for number in range(3):  # some cut a conjugate pair in two: SciPy returns either half
        dense = draw(30, 30, complex_=complex_, number=number)
        how = {"k": k, "v0": np.ones(30), "return_eigenvectors": False, **how}
        a = pullback.tensor(dense, requires_grad=True)
        found = ours.eigs(sparse.csr_array(a), **how)
        np.testing.assert_allclose(found.detach().numpy(), theirs.eigs(scipy.sparse.csr_array(dense), **how))
        (gradient,) = pullback.autograd.grad(found[-1].imag + found[-1].real, a)
        direction = draw(30, 30, number=9)
        moved = [np.linalg.eigvals(dense + h * direction) for h in (1e-5, -1e-5)]
        last = found[-1].item()
        ends = [w[np.abs(w - last).argmin()] for w in moved]
        slope = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(np.sum(gradient.numpy().real * direction), slope.real + slope.imag, rtol=1e-4)


def test_a_loss_of_phases_is_refused() -> None:
    v = pullback.tensor(draw(NNZ, complex_=True), requires_grad=True)
    _, z = ours.eigsh(hermitian(sparse, v), k=1)
    with pytest.raises(RuntimeError, match="phase"):
        z.imag.sum().backward()


def test_the_start_is_the_same_each_time() -> None:
    a = hermitian(sparse, pullback.tensor(draw(NNZ)))
    first, second = (ours.eigsh(a, k=2)[1].numpy() for _ in range(2))
    np.testing.assert_allclose(first, second, atol=1e-12)


# The mirror -----------------------------------------------------------------------------------------------------------


def test_signatures_are_scipys() -> None:
    for package, mirror, plain in (("sparse.linalg", ours, theirs), ("sparse", sparse, scipy.sparse)):
        for name in set(mirror.__all__) - {"SuperLU", "LinearOperator", "linalg", *HANDED_ON[package]}:
            found = inspect.signature(getattr(mirror, name)).parameters
            expected = inspect.signature(getattr(plain, name)).parameters
            assert [n for n in found if n not in ("on_failure", "progress")] == list(expected), name
            assert f"{package}.{name}" in MIRRORS


def test_refused_and_not_here() -> None:
    with pytest.raises(AttributeError, match="spilu has no derivative"):
        ours.spilu  # noqa: B018
    with pytest.raises(AttributeError, match="not among the functions"):
        ours.lsqr  # noqa: B018
    with pytest.raises(AttributeError, match="not among the functions"):
        sparse.dok_array  # noqa: B018
    for older, newer in {"diags": "diags_array", "eye": "eye_array", "csr_matrix": "csr_array"}.items():
        with pytest.raises(AttributeError, match=f"use pullback.scipy.sparse.{newer}, SciPy's newer name"):
            getattr(sparse, older)
    assert pullback.scipy.sparse.issparse is scipy.sparse.issparse


def test_no_warnings_where_scipy_would_be_slow() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.spsolve(matrix(sparse, pullback.tensor(draw(NNZ)), 4), draw(N))


def test_expm_multiply_in_a_compiled_function() -> None:
    v, b = (pullback.tensor(x, dtype=pullback.float64, requires_grad=True) for x in ([0.3, -0.2, 0.5], [1.0, 2.0]))

    def f(v: Any, b: Any) -> Any:
        return ours.expm_multiply(sparse.csr_array((v, ([0, 1, 1], [1, 0, 1])), shape=(2, 2)), b).sum()

    compiled = pullback.compile(f, backend="numpy")
    for found, expected in zip(
        pullback.autograd.grad(compiled(v, b), [v, b]), pullback.autograd.grad(f(v, b), [v, b]), strict=True
    ):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


# Indices and formats --------------------------------------------------------------------------------------------------

CHOSEN = [
    np.s_[1:3], np.s_[:, 2:], np.s_[::2, 1::2], np.s_[2:2], np.s_[...], np.s_[1], np.s_[:, 3], np.s_[1, 2], np.s_[0, 0],
    np.s_[-1, -1], np.s_[[2, 0]], np.s_[:, [4, 1]], np.s_[[0, 2, 2], [1, 4, 4]], np.s_[np.ix_([0, 3], [2, 1, 2])],
    np.s_[np.array([True, False, True, False])], np.s_[np.arange(20).reshape(4, 5) % 3 == 0],
]  # fmt: skip


@pytest.mark.parametrize("index", CHOSEN, ids=repr)
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_an_index_chooses_what_scipys_does(index: Any, format: str) -> None:
    rng = np.random.default_rng(1)
    dense = rng.normal(size=(4, 5)) * (rng.random((4, 5)) > 0.4)
    expected = scipy.sparse.csr_array(dense)[index]
    whole = pullback.tensor(dense, requires_grad=True)
    matrix = getattr(pullback.scipy.sparse, f"{format}_array")(whole)
    found = matrix[index]
    assert getattr(found, "format", format) == format
    as_dense = found if isinstance(found, pullback.Tensor) else found.toarray()
    np.testing.assert_array_equal(
        as_dense.detach().numpy(), expected.toarray() if scipy.sparse.issparse(expected) else expected
    )
    if as_dense.numel():
        slope = pullback.autograd.grad((as_dense**2).sum(), whole)[0]
        plain = pullback.tensor(dense, requires_grad=True)
        part = plain[index] if not isinstance(index, list) else plain[pullback.tensor(index)]
        if part.shape == as_dense.shape:  # NumPy's pairs of lists are torch's
            np.testing.assert_allclose(slope.numpy(), pullback.autograd.grad((part**2).sum(), plain)[0].numpy())


def test_formats_are_converted_with_their_gradients() -> None:
    for format in ("csc", "coo", "csr"):
        data = pullback.tensor([3.0, 4.0, 5.0], requires_grad=True)
        matrix = pullback.scipy.sparse.csr_array((data, [2, 0, 2], [0, 1, 3]), shape=(2, 3))
        turned = getattr(matrix, f"to{format}")()
        assert turned.format == format
        assert turned.toarray().tolist() == matrix.toarray().tolist()
        assert pullback.autograd.grad((turned @ pullback.ones(3)).sum(), data)[0].tolist() == [1.0, 1.0, 1.0]


def test_what_a_sparse_array_has_not_is_told() -> None:
    a = matrix(sparse, draw(NNZ))
    with pytest.raises(AttributeError, match=r"multiply of a sparse array is not here(.|\n)*What to do: use sums"):
        a.multiply(a)
    with pytest.raises(AttributeError, match="'SparseArray' object has no attribute 'nonsense'"):
        a.nonsense  # noqa: B018
    with pytest.raises(ValueError, match="dimension mismatch"):
        a @ sparse.eye_array(N + 1)
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        a.sum(2)


def test_a_product_with_a_matrix_of_scipys() -> None:
    v = pullback.tensor(draw(NNZ), requires_grad=True)
    other = scipy.sparse.random_array((N, 3), density=0.5, rng=1).tocsr()
    plain = matrix(scipy.sparse, draw(NNZ))
    for mine, scipys in ((matrix(sparse, v) @ other, plain @ other), (other.T @ matrix(sparse, v), other.T @ plain)):
        np.testing.assert_allclose(mine.toarray().detach().numpy(), scipys.toarray(), rtol=1e-12)
        assert mine.nnz <= scipys.nnz + 1
    assert gradcheck(lambda v: (other.T @ matrix(sparse, v)).data, v)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (scipy.sparse.linalg.splu, "call pullback.scipy.sparse.linalg.splu"),
        (lambda k: scipy.sparse.linalg.spsolve(k, np.ones(N)), "call pullback.scipy.sparse.linalg.spsolve"),
        (lambda k: scipy.sparse.kron(k, k), "use sums, products"),
    ],
)
@pytest.mark.filterwarnings("ignore:`kron` is switching:DeprecationWarning")
def test_a_sparse_array_that_scipy_is_given_says_what_to_call(given: Callable[[Any], Any], says: str) -> None:
    k = matrix(sparse, pullback.tensor(draw(NNZ), requires_grad=True))
    with pytest.raises((TypeError, ValueError)) as raised:
        given(k)
    error = raised.value if isinstance(raised.value, TypeError) else raised.value.__cause__
    assert "its gradients would be lost" in str(error)
    assert says in str(error)

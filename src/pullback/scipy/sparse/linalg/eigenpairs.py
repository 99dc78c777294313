"""Some eigenvalues and eigenvectors of sparse matrices: `eigsh`, `eigs`, `svds`.

An eigenpair of ``A v = w M v`` with ``v^H M v = 1`` solves equations whose derivative is a bordered system,

    [A - w M   -M v] [dv]     [-(dA - w dM) v  ]
    [(M v)^H     0 ] [dw]  =  [-1/2 v^H dM v   ]

(Nelson, 1976; Andrew, Chu and Lancaster, 1993), which is regular where the eigenvalue is simple. It is sparse as A is,
and is solved by the factorisation of `spsolve`: each wanted pair costs one, and dense matrices are never made. The
phase of v is free; as in `torch.linalg.eigh` a loss must not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse.linalg

from .... import errors
from ....autograd.function import Function
from ....ops.shape.axes import movedim
from ....ops.shape.joining import cat, stack
from ....ops.sparse.pattern import Pattern
from ....tensor.tensor import Tensor
from ...array_nodes import Array, array_of, tensor_of
from ...mirror import mirrors
from ...solutions import LinearEquation, alike
from ...user_functions import plain_setting
from ..constructors import eye_array
from ..sparse_arrays import SparseArray, by_rows, product, sampled, sparse
from .direct import Factors
from .linear_operator import LinearOperator, setting

_CLOSE = 1e-9  # two eigenvalues that differ by less, relative to the largest, count as equal


class Problem:
    """A matrix A, perhaps a matrix M, and how the eigenpairs are found.

    find: takes plain values of A and, if there is an M, of M; returns eigenvalues, and vectors as columns.
    """

    def __init__(
        self, name: str, a: Pattern, m: Pattern | None, hermitian: bool, find: Callable[..., tuple[Array, Array]]
    ) -> None:
        self.name, self.a, self.m, self.hermitian, self.find = name, a, m, hermitian, find
        n = a.size[0]
        diagonal = np.stack([np.arange(n)] * 2)
        border = np.stack([np.arange(n), np.full(n, n)])
        parts = [a.indices, diagonal if m is None else m.indices, border, border[::-1]]
        self._places = Pattern(np.concatenate(parts, axis=1), (n + 1, n + 1), False)
        unique = self._places.unique()[0]
        self.equation = Factors(name, unique, permc_spec="MMD_AT_PLUS_A").equation()

    def weighted(self, v: Tensor, ms: Sequence[Tensor]) -> Tensor:
        """``M v``."""
        return v if self.m is None else product(self.m, False, v, ms[0])

    def bordered(self, a: Tensor, ms: Sequence[Tensor], w: Tensor, mv: Tensor) -> Tensor:
        """The values of the bordered matrix."""
        m = ms[0] if ms else np.ones_like(np.real(mv))
        values = cat(alike(a, -w * m, -mv, np.conj(mv)))
        return by_rows(values, self._places, "csr").data

    def solved(self, equation: LinearEquation, values: Tensor, right: Tensor) -> Tensor:
        """The solution of the bordered system; RuntimeError where the eigenvalue is repeated."""
        try:
            return equation(right, values)
        except errors.LinAlgError:
            raise self.repeated() from None

    def repeated(self) -> errors.LinAlgError:
        """The error for an eigenvalue that is not simple."""
        return errors.LinAlgError(
            errors.message(
                f"{self.name}: an eigenvalue is repeated, so its eigenvectors have no derivative",
                expected="distinct eigenvalues where a loss depends on vectors",
                do="use losses of eigenvalues alone, or break the symmetry that repeats it",
            )
        )

    def check_simple(self, w: Tensor) -> None:
        """Refuse equal values among those that were found, where they are known."""
        if type(w._data) is np.ndarray and w._data.size > 1:
            values = w._data
            apart = np.abs(values[:, None] - values) + np.diag(np.full(len(values), np.inf))
            if apart.min() <= _CLOSE * np.abs(values).max():
                raise self.repeated()

    def check_phase(self, v: Tensor, g: Tensor) -> None:
        """Refuse a loss that changes with the phase of a vector, as torch does."""
        if v.dtype.is_complex and type(v._data) is np.ndarray and type(g._data) is np.ndarray:
            turn = np.einsum("ik,ik->k", v._data.conj(), g._data).imag
            if turn.size and np.abs(turn).max() > 1e-2:
                raise RuntimeError(
                    errors.message(
                        f"{self.name}: a loss depends on the phase of an eigenvector, which is free",
                        do="use functions that do not, e.g. absolute values or projections v v^H",
                    )
                )


class Pairs(Function):
    """Eigenvalues and eigenvectors as a function of the values of the matrices."""

    @staticmethod
    def forward(problem: Problem, a: Tensor, *ms: Tensor) -> Any:
        """Ask SciPy."""
        w, v = problem.find(array_of(a), *map(array_of, ms))
        return tensor_of(w), tensor_of(v)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the values and the pairs."""
        ctx.problem, a, *ms = inputs
        ctx.save_for_backward(*output, a, *ms)
        ctx.save_for_forward(*output, a, *ms)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, gw: Any, gv: Any) -> Any:
        """An adjoint bordered system for each pair; none for eigenvalues of a Hermitian matrix alone."""
        w, v, a, *ms = ctx.saved_tensors
        problem = ctx.problem
        if gw is None and gv is None:
            return (None,) * (2 + len(ms))
        gw = np.zeros_like(w) if gw is None else gw
        if gv is None and problem.hermitian:
            y, nu = -v * gw, None
        else:
            y, nu = _adjoints(problem, w, v, a, ms, gw, gv)
        of_a = -_projected(problem.a, y, v, problem.hermitian)
        grads = [_fitted(of_a, a)]
        if ms:
            of_m = _projected(problem.m, y * np.conj(w), v, True)
            if nu is not None:
                of_m = of_m - sampled(problem.m, v * np.real(nu), v) / 2
            grads.append(_fitted(of_m, ms[0]))
        return None, *grads

    @staticmethod
    def jvp(ctx: Any, _: Any, ta: Tensor | None, *tms: Tensor | None) -> Any:
        """A bordered system for each pair."""
        w, v, a, *ms = ctx.saved_tensors
        problem = ctx.problem
        problem.check_simple(w)
        tangents = []
        for i in range(w.shape[0]):
            at, vector = w[i], v[:, i]
            right, last = np.zeros_like(vector), np.zeros_like(vector[:1])
            if ta is not None:
                right = right - _applied(problem.a, ta, vector, problem.hermitian)
            if tms and tms[0] is not None:
                moved = _applied(problem.m, tms[0], vector, True)
                right = right + at * moved
                last = last - (np.conj(vector) * moved).sum().reshape(1) / 2
            values = problem.bordered(a, ms, at, problem.weighted(vector, ms))
            tangents.append(problem.solved(problem.equation, values, cat(alike(right, last))))
        found = stack(tangents, 1)
        tw = found[-1]
        return tw if w.dtype.is_complex else np.real(tw), found[:-1]

    @staticmethod
    def vmap(info: Any, in_dims: Any, problem: Problem, *ps: Tensor) -> Any:
        """One call for each sample."""
        dims = in_dims[1:]
        moved = [p if d is None else movedim(p, d, 0) for p, d in zip(ps, dims, strict=True)]
        found = [
            Pairs.apply(problem, *(p if d is None else p[i] for p, d in zip(moved, dims, strict=True)))
            for i in range(info.batch_size)
        ]
        return tuple(map(stack, zip(*found, strict=True))), (0, 0)


def _adjoints(problem: Problem, w: Any, v: Any, a: Any, ms: Sequence[Any], gw: Any, gv: Any) -> tuple[Tensor, Tensor]:
    """The solutions of the adjoint bordered systems: the columns that belong to dv's equation, and the last numbers."""
    if gv is not None:
        problem.check_simple(w)
        problem.check_phase(v, gv)
    gv = np.zeros_like(v) if gv is None else gv
    found = []
    for i in range(w.shape[0]):
        values = problem.bordered(a, ms, w[i], problem.weighted(v[:, i], ms))
        right = cat(alike(gv[:, i], gw[i : i + 1]))
        found.append(problem.solved(problem.equation.turned(), values, right))
    both = stack(found, 1)
    return both[:-1], both[-1]


def _projected(pattern: Pattern | None, y: Tensor, v: Tensor, hermitian: bool) -> Tensor:
    """``y v^H`` at the places of a pattern; its Hermitian part."""
    assert pattern is not None
    y, v = alike(y, v)
    return (sampled(pattern, y, v) + sampled(pattern, v, y)) / 2 if hermitian else sampled(pattern, y, v)


def _applied(pattern: Pattern, values: Tensor, v: Tensor, hermitian: bool) -> Tensor:
    """The matrix of these values, or its Hermitian part, times a vector."""
    once = product(pattern, False, v, values)
    return (once + product(pattern, True, v, values)) / 2 if hermitian else once


def _fitted(g: Tensor, like: Tensor) -> Tensor:
    return g if like.dtype.is_complex or not g.dtype.is_complex else np.real(g)


# SciPy's functions ----------------------------------------------------------------------------------------------------


def _matrix(where: str, A: Any) -> SparseArray:
    if isinstance(A, (LinearOperator, scipy.sparse.linalg.LinearOperator)):
        raise TypeError(
            errors.message(where, expected="a matrix, whose values the bordered systems need", found="a LinearOperator")
        )
    return sparse(where, A)


def _in_order_of(alone: Array, w: Array, v: Array, real: bool) -> tuple[Array, Array]:
    """The pairs for the eigenvalues that SciPy finds without vectors: in its order, and of its half of a real's pair.

    They are left as they are if the two calls found different eigenvalues.
    """
    all_w, all_v = w, v
    if real:
        pair = w.imag != 0
        all_w, all_v = np.concatenate([w, w[pair].conj()]), np.concatenate([v, v[:, pair].conj()], axis=1)
    distance = np.abs(alone[:, None] - all_w)
    if alone.shape != w.shape or not np.all(distance.min(axis=1) <= 1e-6 * np.abs(w).max()):
        return w, v
    for i in range(len(w)):
        distance[i + 1 :, distance[i].argmin()] = np.inf  # it is taken
    order = distance.argmin(axis=1)
    return all_w[order], all_v[:, order]


def _pairs(
    name: str, A: Any, M: Any, hermitian: bool, known: dict[str, Any], vectors: bool = True
) -> tuple[Tensor, Tensor]:
    """The pairs; without `vectors` in the order in which SciPy returns the eigenvalues alone."""
    a, m = _matrix(name, A), None if M is None else _matrix(name, M)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"expected square matrix (shape={a.shape})")
    if m is not None and m.shape != a.shape:
        raise ValueError(f"wrong M dimensions {m.shape}, should be {a.shape}")
    names = list(known)
    settings = {n: setting(name, n, known[n]) for n in names}
    settings["rng"] = 0 if settings["rng"] is None else settings["rng"]

    def find(values: Array, *ms: Array) -> tuple[Array, Array]:
        mass = None if m is None else m.pattern.matrix(ms[0])
        matrix, solver = a.pattern.matrix(values), getattr(scipy.sparse.linalg, name)
        w, v = solver(matrix, M=mass, **settings)
        if not vectors:
            alone = solver(matrix, M=mass, return_eigenvectors=False, **settings)
            return _in_order_of(alone, w, v, not any(a.dtype.kind == "c" for a in (values, *ms)))
        order = np.argsort(w) if hermitian else slice(None)  # for complex matrices SciPy's is by chance
        return w[order], v[:, order]

    if settings.get("mode") == "buckling" and settings["sigma"] is not None:
        one = sparse(name, eye_array(a.shape[0], dtype=a.data._data.dtype))
        return _buckling(name, a, one if m is None else m, settings)
    problem = Problem(name, a.pattern, None if m is None else m.pattern, hermitian, find)
    found: tuple[Tensor, Tensor] = Pairs.apply(problem, a.data, *([] if m is None else [m.data]))
    return found


def _buckling(name: str, a: SparseArray, m: SparseArray, settings: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The pairs of a positive definite A and an M that may be indefinite, whose vectors have ``v^H A v = 1``.

    So they are those of ``M v = A v / w``, with the matrices exchanged.
    """

    def find(ms: Array, values: Array) -> tuple[Array, Array]:
        w, v = getattr(scipy.sparse.linalg, name)(a.pattern.matrix(values), M=m.pattern.matrix(ms), **settings)
        order = np.argsort(w)
        return 1 / w[order], v[:, order]

    inverse, v = Pairs.apply(Problem(name, m.pattern, a.pattern, True, find), m.data, a.data)
    return 1 / inverse, v


_HOW = "bordered sparse system for each pair"
_LIMITS = "matrices, no LinearOperator; vectors where the eigenvalue is simple, up to phases"


@mirrors("sparse.linalg.eigsh", derivative=_HOW, limits=_LIMITS)
def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    rng: Any = None,
) -> Any:
    """k eigenvalues and eigenvectors ``(w, v)`` of a Hermitian matrix, or of ``A v = w M v``; w without vectors.

    The eigenvalues are in ascending order. Its arguments are SciPy's. A and M are sparse or dense matrices with values
    that may require grad; their gradient is Hermitian, at the nonzeros. All others are settings. Without `rng` and `v0`
    the start vector is the same each time.

    The derivative of an eigenvalue is ``v^H (dA - w dM) v``, that of a vector solves a bordered system.

    Raises:
        LinAlgError: a loss depends on vectors of a repeated eigenvalue.
        RuntimeError: a loss depends on the phase of a vector.

    >>> import pullback
    >>> from pullback.scipy.sparse import diags_array
    >>> from pullback.scipy.sparse.linalg import eigsh
    >>> d = pullback.tensor([1.0, 2.0, 5.0, 3.0], dtype=pullback.float64, requires_grad=True)
    >>> w = eigsh(diags_array(d), k=1, which="LA", return_eigenvectors=False)
    >>> w.sum().backward()
    >>> d.grad.float().round()
    tensor([0., 0., 1., 0.])
    """
    known = {"k": k, "sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol}
    known |= {"Minv": Minv, "OPinv": OPinv, "mode": mode, "rng": rng}
    w, v = _pairs("eigsh", A, M, True, known)
    return (w, v) if return_eigenvectors else w


@mirrors("sparse.linalg.eigs", derivative=_HOW, limits=f"{_LIMITS}; M is Hermitian")
def eigs(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    OPpart: Any = None,
    rng: Any = None,
) -> Any:
    """k eigenvalues and right eigenvectors ``(w, v)`` of a square matrix; complex. As `eigsh` otherwise.

    >>> import pullback
    >>> from pullback.scipy.sparse import diags_array
    >>> from pullback.scipy.sparse.linalg import eigs
    >>> eigs(diags_array(pullback.tensor([1.0, 2.0, 5.0, 3.0])), k=1)[0].real.round(decimals=4)
    tensor([5.])
    """
    known = {"k": k, "sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol}
    known |= {"Minv": Minv, "OPinv": OPinv, "OPpart": OPpart, "rng": rng}
    w, v = _pairs("eigs", A, M, False, known, return_eigenvectors)
    return (w, v) if return_eigenvectors else w


@mirrors(
    "sparse.linalg.svds",
    derivative="as `eigsh` of ``[[0, A], [A^H, 0]]``",
    limits="matrices, no LinearOperator; singular values that are simple and not 0",
)
def svds(
    A: Any,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: int | None = None,
    return_singular_vectors: Any = True,
    solver: str = "arpack",
    rng: Any = None,
    options: Any = None,
    *,
    random_state: Any = None,
) -> Any:
    """k singular values and vectors ``(u, s, vh)`` of a matrix; s alone, or with None for u or vh, as SciPy's.

    Its arguments are SciPy's. Without `rng` and `v0` the start vector is the same each time.

    >>> import pullback
    >>> from pullback.scipy.sparse import diags_array
    >>> from pullback.scipy.sparse.linalg import svds
    >>> svds(diags_array(pullback.tensor([1.0, 2.0, 5.0, 3.0])), k=1, return_singular_vectors=False)
    tensor([5.])
    """
    a = _matrix("svds", A)
    known = {"k": k, "ncv": ncv, "tol": tol, "which": which, "v0": v0, "maxiter": maxiter, "solver": solver}
    names = list(known)
    settings = dict(zip(names, plain_setting("svds", **known), strict=True))
    seed = random_state if rng is None else rng
    settings |= {"options": options, "rng": 0 if seed is None else seed}
    rows, columns = a.shape

    def find(values: Array) -> tuple[Array, Array]:
        u, s, vh = scipy.sparse.linalg.svds(a.pattern.matrix(values[: a.nnz]), **settings)
        return s, np.concatenate([u, vh.conj().T]) / np.sqrt(2).astype(s.dtype)

    indices = a.pattern.indices + np.array([[0], [rows]])
    both = Pattern(np.concatenate([indices, indices[::-1]], axis=1), (rows + columns,) * 2, False)
    jordan = by_rows(cat([a.data, np.conj(a.data)]), both, "csr")  # the first half of its values is that of A
    s, z = Pairs.apply(Problem("svds", jordan.pattern, None, True, find), jordan.data)
    if return_singular_vectors is False:
        return s
    z = z * float(np.sqrt(2))
    u, vh = z[:rows], np.conj(np.transpose(z[rows:]))
    return u if return_singular_vectors != "vh" else None, s, vh if return_singular_vectors != "u" else None


__all__ = ["eigs", "eigsh", "svds"]

"""Linear systems and inverses. The rules are those of Giles, An extended collection of matrix derivative results
(2008), sections 2.2 and 2.3: from ``A X = B`` follows ``A dX = dB - dA X``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.series_rules import divided
from ...kernels import matrices
from ...kernels.counterparts import checked, solved
from ...table.calls import on
from ...table.entry import composite, special
from ...table.operands import check_matrix, check_same_dtype, data_of, singular
from ...table.results import result_type
from ...table.samples import A as M
from ...table.samples import Differs, S, Sample, V
from ...tensor.arrays import empty_beside, eye_beside, zeros_beside
from ...tensor.tensor import Tensor
from ..make.conversion import alike
from ..shape.reshape import contiguous
from .last_axes import transpose

InvExResult = result_type("linalg_inv_ex", "inverse", "info")
SolveExResult = result_type("linalg_solve_ex", "result", "info")


def one_by_one(function: Callable[..., Any], out: Any, *stacks: Any) -> Any:
    """Fill `out` with a function of each matrix of some stacks, NaN where it fails; return a mask of the failures."""
    batch = out.shape[:-2]
    stacks = tuple(np.broadcast_to(s, (*batch, *s.shape[-2:])) for s in stacks)
    failed = zeros_beside(out, batch, np.bool_)
    for place in np.ndindex(batch):
        try:
            out[place] = checked(function, *(s[place] for s in stacks))
        except np.linalg.LinAlgError:
            out[place], failed[place] = np.nan, True
    return failed


def _info(A: Any, failed: Any) -> Any:
    """The number of the first zero pivot of the LU factors where the inverse failed, elsewhere 0."""
    return np.where(failed, np.maximum(matrices.lu(A)[2], 1), 0).astype(np.int32)


# Samples --------------------------------------------------------------------------------------------------------------


def squares(domain: str = "regular") -> list[Sample]:
    """Samples of one square matrix and of stacks of them."""
    return [
        S(M(3, 3, domain=domain)),
        S(M(1, 1, domain=domain)),
        S(M(2, 3, 3, domain=domain)),
        S(M(2, 1, 2, 2, domain=domain)),
        S(M(0, 0)),
        S(M(2, 0, 0)),
        S(M(0, 2, 2)),
        S(M(3, 3, domain=domain, layout="T")),
        S(M(2, 2, domain=domain, layout="step")),
        S(M(2, 2, domain=domain, layout="readonly")),
    ]


EMPTY = Differs("torch checks the dtype only if there are elements", "values", "int64 bool", "0")
NO_SQUARE = [S(M(2, 3)), S(M(3)), S(M()), S([[1.0]]), S(M(2, 2, dtype="int64")), S(), S(M(2, 2), nonsense=1)]
SINGULAR = [S(V([[1.0, 2.0], [2.0, 4.0]])), S(V([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]))]


# Inverses -------------------------------------------------------------------------------------------------------------


def _inverse(A: Any) -> tuple[Any, Any]:
    """The inverses, NaN for singular matrices, and for each the number of the first zero pivot, or 0."""
    try:
        return checked(np.linalg.inv, A), zeros_beside(A, A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        found = np.empty_like(A)
        return found, _info(A, one_by_one(np.linalg.inv, found, A))


def _inverse_rule(g: Any, out: Any) -> Any:
    # dX = -X dA X
    left = transpose(out)
    return np.negative(np.matmul(left, np.matmul(g, left)))


@special(method=False, batch="leading", A=_inverse_rule)
def _inverse_or_nan(A: Any) -> Any:
    return _inverse(A)[0]


@special(
    home="linalg",
    node="LinalgInvExBackward0",
    saved={"inverse": "out"},
    batch="matrices",
    numpy={np.linalg.inv: lambda a: inv(a)},
    A=_inverse_rule,
    samples=squares,
    refused=[*NO_SQUARE, *SINGULAR],
)
def inv(A: Any) -> Any:
    """The inverse of square matrices; LinAlgError if one is singular. ``dX = -X dA X``.

    >>> import pullback
    >>> pullback.linalg.inv(pullback.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    check_matrix("linalg.inv", A, square=True)
    found, info = _inverse(A)
    if np.any(info):
        raise singular("linalg.inv", info)
    return found


@special(
    home="linalg",
    saved={"inverse": "out0"},
    batch="matrices",
    A=lambda g, out0: None if g[0] is None else _inverse_rule(g[0], out0),
    samples=lambda: [*squares(), S(M(2, 2, domain="regular"), check_errors=True)],
    refused=[*NO_SQUARE, *(S(*s.args, check_errors=True) for s in SINGULAR)],
)
def inv_ex(A: Any, *, check_errors: bool = False) -> tuple[Any, Any]:
    """`inv` without an error for a singular matrix, unless `check_errors`: its inverse is then NaN.

    Returns a named tuple of ``inverse`` and ``info``: int32, for each matrix 0, or the number of the first zero on the
    diagonal of its LU factor.
    """
    check_matrix("linalg.inv_ex", A, square=True)
    found, info = _inverse(A)
    if check_errors and np.any(info):
        raise singular("linalg.inv_ex", info)
    return InvExResult(found, info)


# Systems --------------------------------------------------------------------------------------------------------------


def check_system(name: str, A: Any, B: Any, left: bool = True) -> None:
    """Refuse an equation ``A X = B``, or ``X A = B`` if not `left`, with matrices that do not fit."""
    check_matrix(name, A, square=True)
    check_matrix(name, B, "B")
    check_same_dtype(name, A=A, B=B)
    a, b = data_of(A).shape, data_of(B).shape
    if a[-1] != b[-2 if left else -1]:
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected=f"B to have as many {'rows' if left else 'columns'} as A has",
                found=f"A {a[-2]}x{a[-1]}, B {b[-2]}x{b[-1]} in the equation {'AX = B' if left else 'XA = B'}",
            )
        )


def _solution(A: Any, B: Any) -> tuple[Any, Any]:
    """The solutions, NaN for singular matrices, and for each matrix its first zero pivot, or 0."""
    try:
        return solved(A, B), zeros_beside(A, A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
        found = empty_beside(B, (*batch, *B.shape[-2:]))
        one_by_one(solved, found, A, B)
        return found, matrices.lu(A)[2]


def _solve_for_A(g: Any, A: Any, out: Any) -> Any:  # noqa: N802 - the name of the argument
    return np.negative(np.matmul(on(_solve_or_nan, transpose(A), g), transpose(out)))


def _solve_for_B(g: Any, A: Any) -> Any:  # noqa: N802
    return on(_solve_or_nan, transpose(A), g)


def _solve_series(s: Any, A: Any, B: Any, out: Any) -> Any:
    by = s.of(A)
    return divided(s, s.of(B), by, out, np.matmul, lambda rest: on(_solve_or_nan, by[0], rest))


@special(method=False, batch="leading", series=_solve_series, A=_solve_for_A, B=_solve_for_B)
def _solve_or_nan(A: Any, B: Any) -> Any:
    return _solution(A, B)[0]


@special(
    method=False,
    node="LinalgSolveExBackward0",
    saved={"left": lambda: True},
    batch="leading",
    A=_solve_for_A,
    B=_solve_for_B,
)
def _solve(A: Any, B: Any) -> Any:
    found, info = _solution(A, B)
    if np.any(info):
        raise singular("linalg.solve", info)
    return found


@special(
    method=False,
    node="LinalgSolveExBackward0",
    saved={"left": lambda: True},
    A=lambda g, A, out0: None if g[0] is None else _solve_for_A(g[0], A, out0),
    B=lambda g, A: None if g[0] is None else _solve_for_B(g[0], A),
)
def _solve_ex(A: Any, B: Any, check_errors: bool) -> Any:
    found, info = _solution(A, B)
    if check_errors and np.any(info):
        raise singular("linalg.solve_ex", info)
    return SolveExResult(found, info)


def _is_vector(A: Tensor, B: Any) -> bool:
    """Whether the right-hand side is a vector, or one vector for each matrix, and not a matrix."""
    a, b = A._data.shape, data_of(B).shape
    return len(b) == 1 or (len(a) - 1 == len(b) and a[:-1] == b)


def _solved(name: str, solver: Callable[[Any, Any], Any], A: Tensor, B: Any, left: bool) -> Any:
    """``A X = B`` or ``X A = B`` by a solver of the first: a function that shapes the solution, and the result.

    B counts as a vector whenever it does in torch.
    """
    check_matrix(name, A, square=True)
    if not isinstance(B, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="B to be a Tensor", found=errors.describe(B)))
    is_vector = _is_vector(A, B)
    rhs = B.unsqueeze(-1) if is_vector else B
    check_system(name, A, rhs, left)
    if left:
        found = solver(A, rhs)
        return (lambda x: x.squeeze(-1)) if is_vector else (lambda x: x), found
    return transpose, solver(transpose(A), transpose(rhs))


def _systems() -> list[Sample]:
    a = M(3, 3, domain="regular")
    stack = M(2, 3, 3, domain="regular")
    return [
        S(a, M(3, 2)),
        S(a, M(3)),
        S(a, M(3, 1)),
        S(M(1, 1, domain="regular"), M(1, 1)),
        S(stack, M(2, 3, 4)),
        S(stack, M(3, 4)),
        S(stack, M(2, 3)),
        S(stack, M(3)),
        S(a, M(2, 3, 2)),
        S(M(2, 1, 2, 2, domain="regular"), M(3, 2, 1)),
        S(M(3, 3, 3, domain="regular"), M(3, 3)),
        S(M(0, 0), M(0, 2)),
        S(M(2, 2, domain="regular"), M(2, 0)),
        S(M(0, 2, 2), M(0, 2, 3)),
        S(M(3, 3, domain="regular", layout="T"), M(3, 2, layout="step")),
        S(a, M(2, 3), left=False),
        S(stack, M(2, 4, 3), left=False),
        S(a, B=M(3, 2), left=True),
    ]


_NO_SYSTEM = [
    S(M(3, 3), M(2, 2)),
    S(M(3, 3), M(2, 3)),
    S(M(2, 3), M(2, 2)),
    S(M(3), M(3)),
    S(M(2, 3, 3, domain="regular"), M(3, 3, 2)),
    S(M(3, 3), M(3, 2, dtype="int64")),
    S(M(3, 3, dtype="int64"), M(3, 2, dtype="int64")),
    S(M(3, 3), M()),
    S(M(3, 3), 1.0),
    S(M(3, 3)),
    S(M(3, 3), M(3), left=False),
    S(M(3, 3), M(3, 1), False),
    S([[1.0]], M(1)),
]
_SINGULAR_SYSTEMS = [S(*s.args, M(2, 1)) for s in SINGULAR]


@composite(
    contiguous=True,
    home="linalg",
    numpy={
        # NumPy, unlike torch, takes a stack of vectors for a matrix; they agree on all other arguments
        np.linalg.solve: lambda a, b: _numpy_solve(a, b),
    },
    samples=_systems,
    refused=lambda: [*_NO_SYSTEM, *_SINGULAR_SYSTEMS],
)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with ``A X = B``, or with ``X A = B`` if not `left`. ``dX = A^-1 (dB - dA X)``; LinAlgError if A is singular.

    B is a vector if it has one axis, or the shape of A without the last; otherwise a matrix. Batches broadcast.

    >>> import pullback
    >>> A = pullback.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> pullback.linalg.solve(A, pullback.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    after, found = _solved("linalg.solve", _solve, A, B, left)
    return after(found)


def _numpy_solve(a: Any, b: Any) -> Any:
    a, b = alike(a, b)
    if np.ndim(b) == 1:
        return np.squeeze(_solve(a, np.expand_dims(b, -1)), -1)
    check_system("numpy.linalg.solve", a, b)
    return _solve(a, b)


@composite(
    home="linalg",
    samples=lambda: [*_systems(), S(M(2, 2, domain="regular"), M(2, 1), check_errors=True)],
    refused=lambda: [*_NO_SYSTEM, *(S(*s.args, check_errors=True) for s in _SINGULAR_SYSTEMS)],
)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """`solve` without an error for a singular matrix, unless `check_errors`: its solution is then NaN.

    Returns a named tuple of ``result`` and ``info``: int32, for each matrix 0, or the number of the first zero on the
    diagonal of its LU factor.
    """
    after, found = _solved("linalg.solve_ex", lambda a, b: _solve_ex(a, b, check_errors), A, B, left)
    return SolveExResult(contiguous(after(found.result)), found.info)


def _triangle(x: Any, upper: bool, unit: bool) -> Any:
    return np.triu(x, int(unit)) if upper else np.tril(x, -int(unit))


def _triangular_series(s: Any, A: Any, B: Any, upper: bool, unitriangular: bool, out: Any) -> Any:
    first, *rest = s.of(A)
    by = [first, *(None if a is None else _triangle(a, upper, unitriangular) for a in rest)]
    return divided(
        s, s.of(B), by, out, np.matmul, lambda right: on(_solve_triangular, first, right, upper, unitriangular)
    )


def _triangular_for_A(g: Any, A: Any, out: Any, upper: bool, unitriangular: bool) -> Any:  # noqa: N802
    turned = on(_solve_triangular, transpose(A), g, not upper, unitriangular)
    return np.negative(_triangle(np.matmul(turned, transpose(out)), upper, unitriangular))


@special(
    method=False,
    node="LinalgSolveTriangularBackward0",
    saved={"left": lambda: True},
    batch="leading",
    A=_triangular_for_A,
    B=lambda g, A, upper, unitriangular: on(_solve_triangular, transpose(A), g, not upper, unitriangular),
    series=_triangular_series,
)
def _solve_triangular(A: Any, B: Any, upper: bool, unitriangular: bool) -> Any:
    return matrices.solve_triangular(A, B, upper, unitriangular)


@special(
    method=False,
    batch="leading",
    A=lambda g, upper, out: _triangle(_inverse_rule(g, out), upper, False),
)
def _triangular_inverse(A: Any, upper: bool, name: str) -> Any:
    zero = np.diagonal(A, axis1=-2, axis2=-1) == 0
    if zero.any():
        raise singular(name, np.where(zero.any(-1), zero.argmax(-1) + 1, 0))
    return matrices.solve_triangular(A, eye_beside(A, A.shape[-1]), upper)


def triangular_inverse(name: str, A: Tensor, upper: bool) -> Tensor:
    """The inverse of a triangular matrix, reading only that triangle; a LinAlgError of `name` if it is singular."""
    return _triangular_inverse(A, upper, name)


def solve_lower(A: Any, B: Any) -> Any:
    """``A^-1 B`` for a lower triangular A; arrays or Tensors."""
    return on(_solve_triangular, A, B, False, False)


def solve_upper(A: Any, B: Any) -> Any:
    """``A^-1 B`` for an upper triangular A; arrays or Tensors."""
    return on(_solve_triangular, A, B, True, False)


def _triangular_samples() -> list[Sample]:
    return [
        S(M(3, 3, domain="upper"), M(3, 2), upper=True),
        S(M(3, 3, domain="lower"), M(3, 2), upper=False),
        S(M(3, 3, domain="regular"), M(3, 2), upper=True, unitriangular=True),
        S(M(3, 3, domain="regular"), M(3, 2), upper=False, unitriangular=True),
        S(M(3, 3, domain="upper"), M(2, 3), upper=True, left=False),
        S(M(2, 3, 3, domain="lower"), M(2, 2, 3), upper=False, left=False),
        S(M(3, 3, domain="lower"), M(2, 3), upper=False, left=False, unitriangular=True),
        S(M(2, 1, 2, 2, domain="upper"), M(3, 2, 2), upper=True),
        S(M(2, 2, domain="lower"), M(3, 2, 1), upper=False),
        S(M(1, 1, domain="lower"), M(1, 1), upper=False),
        S(M(0, 0), M(0, 2), upper=True),
        S(M(2, 2, domain="upper"), M(2, 0), upper=True),
        S(M(0, 2, 2), M(0, 2, 1), upper=True),
        S(M(40, 40, domain="lower"), M(40, 1), upper=False),
        S(M(3, 3, domain="upper", layout="T"), B=M(3, 2, layout="step"), upper=True),
    ]


@composite(
    home="linalg",
    samples=_triangular_samples,
    kinks=[S(V([[1.0, 2.0], [0.0, 0.0]]), V([[1.0], [3.0]]), upper=True)],
    refused=[
        *(S(*s.args, upper=True) for s in _NO_SYSTEM if "int64" not in repr(s)),
        S(M(2, 2), M(2, 2)),
        S(M(2, 2), M(2), upper=True),
    ],
)
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with ``A X = B``, or ``X A = B`` if not `left`; only the upper or the lower triangle of A is read.

    With `unitriangular` its diagonal is taken to be 1. A zero on the diagonal raises no error: it is used as a divisor.
    B is a matrix or a stack of them, and batches broadcast.

    >>> import pullback
    >>> A = pullback.tensor([[1.0, 1.0], [0.0, 2.0]])
    >>> pullback.linalg.solve_triangular(A, pullback.tensor([[3.0], [4.0]]), upper=True)
    tensor([[1.],
            [2.]])
    """
    check_system("linalg.solve_triangular", A, B, left)
    if left:
        return _solve_triangular(A, B, upper, unitriangular)
    return transpose(_solve_triangular(transpose(A), transpose(B), not upper, unitriangular))


# Of more axes ---------------------------------------------------------------------------------------------------------


def _count(shape: Any) -> int:
    return math.prod(shape)


@composite(
    home="linalg",
    numpy={np.linalg.tensorinv: lambda a, ind=2: tensorinv(a, ind)},
    samples=lambda: [S(_shaped(2, 3, 6)), S(_shaped(4, 2, 2), 1), S(_shaped(2, 2, 2, 2)), S(_shaped(2, 2, 4), ind=2)],
    refused=lambda: [S(M(2, 3, 6), 0), S(M(2, 3, 6), -1), S(M(2, 3, 6), 1), S([1.0]), S(M(2, 3, 6, dtype="int64"))],
)
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a matrix whose rows are its first `ind` axes.

    ``tensordot(tensorinv(A), A, ind)`` is the identity.
    """
    shape = A._data.shape
    if ind <= 0:
        raise RuntimeError(
            errors.message("linalg.tensorinv(): Expected a strictly positive integer for ind", found=str(ind))
        )
    rows, columns = _count(shape[:ind]), _count(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            errors.message(
                "linalg.tensorinv(): Expected self to satisfy the requirement "
                "prod(A.shape[ind:]) == prod(A.shape[:ind])",
                found=f"{columns} and {rows} of shape {list(shape)} with ind {ind}",
            )
        )
    return inv(A.reshape(rows, columns)).reshape(*shape[ind:], *shape[:ind])


def _shaped(*shape: int) -> Any:
    """A sample that is a regular matrix when it is reshaped to a square one."""
    return M(*shape, domain="regular square")


@composite(
    home="linalg",
    numpy={np.linalg.tensorsolve: lambda a, b, axes=None: tensorsolve(*alike(a, b), axes)},
    samples=lambda: [
        S(_shaped(2, 3, 6), M(2, 3)),
        S(_shaped(6, 2, 3), M(6)),
        S(_shaped(2, 2, 2, 2), M(2, 2)),
        S(_shaped(2, 3, 3, 2), M(3, 2), dims=(1,)),
        S(_shaped(2, 2, 2, 2), M(2, 2), (0, 1)),
    ],
    refused=lambda: [S(M(2, 3, 6), M(2, 2)), S(M(2, 3, 6), 1.0), S([1.0], M(1)), S(M(4, 2, 2), M(4, dtype="int64"))],
)
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """X with ``tensordot(A, X, X.ndim) = B``, once the axes `dims` of A are moved to its end."""
    if not isinstance(B, Tensor):
        raise TypeError(errors.message("linalg.tensorsolve()", expected="B to be a Tensor", found=errors.describe(B)))
    if dims is not None:
        dims = (dims,) if isinstance(dims, int) else tuple(dims)
        A = A.movedim(dims, tuple(range(-len(dims), 0)))
    shape = A._data.shape
    rows, columns = _count(shape[: B._data.ndim]), _count(shape[B._data.ndim :])
    if rows != columns or rows != B._data.size:
        raise RuntimeError(
            errors.message(
                "linalg.tensorsolve(): Expected self to satisfy the requirement prod(A.shape[B.ndim:]) == "
                "prod(A.shape[:B.ndim]) == prod(B.shape)",
                found=f"{columns}, {rows} and {B._data.size}",
            )
        )
    return solve(A.reshape(rows, columns), B.reshape(-1)).reshape(shape[B._data.ndim :])

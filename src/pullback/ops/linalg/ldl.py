"""LDL factors of symmetric or Hermitian matrices, which need not be definite, and systems solved with them.

``A = L D L^T`` (or ``L D L^H``) with rows and columns exchanged; D has blocks of 1 and 2 rows on its diagonal. LAPACK
does the work (?sytrf and ?hetrf, Bunch and Kaufman's method, and ?sytrs and ?hetrs), through SciPy: NumPy has none of
these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import special
from ...table.operands import check_matrix, check_same_dtype
from ...table.results import result_type
from ...table.samples import A as M
from ...table.samples import Differs, S, Sample, V
from ...tensor.protocol import on_host
from ...tensor.tensor import Tensor
from .last_axes import conj
from .solving import NO_SQUARE

LDLFactorResult = result_type("linalg_ldl_factor", "LD", "pivots")
LDLFactorExResult = result_type("linalg_ldl_factor_ex", "LD", "pivots", "info")


def _lapack(name: str, like: Any, hermitian: bool) -> Any:
    """LAPACK's function for the dtype of an array: ?sy + name, or ?he + name for Hermitian matrices."""
    try:
        from scipy.linalg import get_lapack_funcs
    except ImportError:
        raise ImportError(
            errors.message(
                "LDL factors are computed by SciPy, which is not installed", do="pip install 'pullback[scipy]'"
            )
        ) from None
    family = "he" if hermitian and like.dtype.kind == "c" else "sy"
    return get_lapack_funcs((family + name,), (like,))[0]


def _no_derivative(name: str, argument: str) -> Any:
    raise NotImplementedError(
        errors.message(f"the derivative for {name}() by {argument} is not implemented", do=f"use {argument}.detach()")
    )


@on_host("SciPy's LAPACK computes it")
def _factored(A: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """Both factors in one lower triangle, the exchanges, and the first zero (from 1) on the diagonal of D, or 0."""
    n = A.shape[-1]
    stack = np.array(A.reshape(math.prod(A.shape[:-2]), n, n))
    pivots, info = np.zeros((len(stack), n), np.int32), np.zeros(len(stack), np.int32)
    if n:
        factor = _lapack("trf", stack, hermitian)
        for i, matrix in enumerate(stack):
            stack[i], pivots[i], info[i] = factor(matrix, lower=1)
    lead = A.shape[:-2]
    return np.tril(stack).reshape(A.shape), pivots.reshape(*lead, n), info.reshape(lead)


def _matrices() -> list[Sample]:
    return [
        S(M(3, 3, domain="hermitian")),
        S(M(3, 3, domain="hermitian"), hermitian=True),
        S(M(2, 4, 4, domain="hermitian")),
        S(M(2, 1, 2, 2, domain="definite"), hermitian=True),
        S(V([[1.0, 2.0, 3.0], [2.0, -1.0, 4.0], [3.0, 4.0, 0.0]])),
        S(M(4, 4, domain="regular", layout="T")),
        S(M(9, 9, domain="hermitian", layout="step"), hermitian=True),
        S(M(1, 1, domain="definite")),
        S(M(0, 0)),
        S(M(0, 2, 2)),
    ]


_DIFFERS = [Differs("as in torch, it has no derivative", check) for check in ("slopes", "forward")]


@special(
    home="linalg",
    A=lambda g: _no_derivative("linalg.ldl_factor", "A"),
    samples=_matrices,
    refused=NO_SQUARE,
    differs=_DIFFERS,
)
def ldl_factor(A: Any, *, hermitian: bool = False) -> tuple[Any, Any]:
    """The factors of symmetric matrices, or of Hermitian ones if `hermitian`, for `ldl_solve`: ``LD`` and ``pivots``.

    LD holds D and below it L, without the ones on its diagonal, as LAPACK's sytrf leaves them; two equal negative
    pivots mark a block of two rows of D. Only the lower triangle of A is read. Needs SciPy; has no derivative.
    RuntimeError if D has a zero on its diagonal.

    >>> import pullback
    >>> A = pullback.tensor([[4.0, 2.0], [2.0, -1.0]])
    >>> LD, pivots = pullback.linalg.ldl_factor(A)
    >>> LD, pullback.linalg.ldl_solve(LD, pivots, pullback.tensor([[6.0], [1.0]]))
    (tensor([[ 4.0000,  0.0000],
            [ 0.5000, -2.0000]]), tensor([[1.],
            [1.]]))
    """
    check_matrix("linalg.ldl_factor", A, square=True)
    found, pivots, info = _factored(A, hermitian)
    if np.any(info):
        _fail("linalg.ldl_factor", info)
    return LDLFactorResult(found, pivots)


@special(
    home="linalg",
    A=lambda g: _no_derivative("linalg.ldl_factor_ex", "A"),
    samples=lambda: [*_matrices(), S(M(3, 3, domain="hermitian"), check_errors=True), S(V([[0.0, 0.0], [0.0, 0.0]]))],
    refused=[*NO_SQUARE, S(V([[0.0, 0.0], [0.0, 0.0]]), check_errors=True)],
    differs=_DIFFERS,
)
def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False) -> tuple[Any, Any, Any]:
    """`ldl_factor` without an error, unless `check_errors`; returns ``info`` as well: 0, or the number of the first
    zero on the diagonal of D.
    """
    check_matrix("linalg.ldl_factor_ex", A, square=True)
    found = _factored(A, hermitian)
    if check_errors and np.any(found[2]):
        _fail("linalg.ldl_factor_ex", found[2])
    return LDLFactorExResult(*found)


def _fail(name: str, info: Any) -> None:
    raise RuntimeError(
        f"{name}(): D[{int(info.max())},{int(info.max())}] is zero and using it in ldl_solve would result in a "
        "division by zero.\n  What to do: linalg.ldl_factor_ex gives the factors all the same."
    )


def _systems() -> list[Sample]:
    upright = V([[1.0, 0.0, 0.0], [3.0, 2.0, 0.0], [1.25, 0.25, -4.5]])
    of_blocks, pair = V([-3, -3, 3], "int32"), V([2, 2], "int32")
    return [
        S(upright, of_blocks, M(3, 2)),
        S(upright, of_blocks, M(3, 1), hermitian=True),
        S(M(2, 2, domain="lower"), pair, B=M(2, 3)),
        S(M(2, 2, 2, domain="lower"), V([[1, 2], [2, 2]], "int32"), M(2, 2, 1)),
        S(M(2, 2, 2, domain="lower"), V([[1, 2], [2, 2]], "int32"), M(2, 3)),
        S(M(2, 2, domain="lower"), pair, M(2, 2, 1)),
        S(M(0, 0), M(0, dtype="int32"), M(0, 2)),
        S(M(2, 2, domain="lower"), pair, M(2, 0)),
    ]


def _check_pivots(pivots: Any, n: int) -> None:
    """Refuse pivots that no factorization gives: LAPACK would read and write beside the matrix.

    A positive one is the row that row k is exchanged with; two equal negative ones belong to a block of two rows.
    """
    for place in np.ndindex(pivots.shape[:-1]):
        k, rows = 0, pivots[place].tolist()
        while k < n:
            size = 1 if rows[k] > 0 else 2
            if not (k + size <= abs(rows[k]) <= n and rows[k] == rows[k + size - 1]):
                raise RuntimeError(
                    errors.message(
                        "linalg.ldl_solve()",
                        expected=f"pivots as ldl_factor gives them, for {n} rows",
                        found=f"{rows}, where number {k + 1} is wrong",
                    )
                )
            k += size


def _check_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Any:
    check_matrix("linalg.ldl_solve", LD, "LD", square=True)
    check_matrix("linalg.ldl_solve", B, "B")
    check_same_dtype("linalg.ldl_solve", LD=LD, B=B)
    if not isinstance(pivots, Tensor):
        raise TypeError(
            errors.message("linalg.ldl_solve()", expected="pivots to be a Tensor", found=errors.describe(pivots))
        )
    shape, n = LD._data.shape, LD._data.shape[-1]
    if B._data.shape[-2] != n or pivots._data.shape != shape[:-1] or pivots._data.dtype.kind not in "iu":
        raise RuntimeError(
            errors.message(
                "linalg.ldl_solve()",
                expected=f"LD and pivots as ldl_factor gives them, and B of {n} rows",
                found=f"LD of shape {list(shape)}, pivots {errors.describe(pivots)}, B of shape {list(B.shape)}",
            )
        )
    return LD, pivots, B, hermitian


@special(
    home="linalg",
    checks=_check_ldl_solve,
    LD=lambda g: _no_derivative("linalg.ldl_solve", "LD"),
    B=lambda g, LD, pivots, hermitian: (
        # the matrix is its own transpose, or its own conjugate transpose
        on(ldl_solve, conj(LD) if hermitian else LD, pivots, g, hermitian)
    ),
    samples=_systems,
    refused=[
        S(M(3, 3), V([1, 2, 3], "int32"), M(2, 2)),
        S(M(3, 3), V([1.0, 2.0, 3.0], "float32"), M(3, 2)),
        S(M(2, 3), V([1, 2], "int32"), M(2, 2)),
        S(M(3, 3), V([1, 2, 3], "int32"), M(3, 2, dtype="float64")),
        S(M(3, 3), V([1, 2], "int32"), M(3, 2)),
        S(M(3, 3), V([1, 2, 3], "int32")),
    ],
    differs=[Differs("as in torch, there is no derivative by LD", check) for check in ("slopes", "forward")],
)
@on_host("SciPy's LAPACK computes it")
def ldl_solve(LD: Any, pivots: Any, B: Any, hermitian: bool) -> Any:
    """X with ``A X = B``, from `ldl_factor` with the same `hermitian`; no derivative by LD. Needs SciPy."""
    n = LD.shape[-1]
    lead = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    found = np.array(np.broadcast_to(B, (*lead, *B.shape[-2:])))
    if found.size:
        _check_pivots(pivots, n)
        solve = _lapack("trs", LD, hermitian)
        factors, exchanges = np.broadcast_to(LD, (*lead, n, n)), np.broadcast_to(pivots, (*lead, n))
        for i in np.ndindex(lead):
            found[i] = solve(factors[i], exchanges[i], found[i], lower=1)[0]
    return found

"""Determinants and their logarithms.

The gradient of a determinant is the matrix of cofactors, which exists for every matrix. For a regular matrix it is
``det(A) A^-T``; for a singular or nearly singular one it is computed from products of singular values (Higham, What is
the adjugate of a matrix?, 2020). Both ways can be differentiated again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...table.calls import on
from ...table.entry import constant, special
from ...table.operands import check_matrix, data_of, plain, somewhere
from ...table.results import result_type
from ...table.samples import Differs, S, V
from ...tensor.adding import summed
from ...tensor.arrays import beside, eye_beside, quiet, writable
from .last_axes import adjoint, as_matrix, conj, diagonal_of, identity, is_complex, transpose, with_diagonal
from .solving import NO_SQUARE, _inverse_or_nan, squares

SlogdetResult = result_type("linalg_slogdet", "sign", "logabsdet")

# matrices of rank 2, 1 and 0, and one in a stack with a regular matrix
SINGULAR = [
    S(V([[1.0, 2.0], [2.0, 4.0]])),
    S(V([[0.0, 0.0], [0.0, 0.0]])),
    S(V([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])),
    S(V([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])),
    S(V([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])),
    S(V([[[1.0, 1.0], [0.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]]])),
    S(V([[1e-8, 0.0], [0.0, 1e-8]])),
    S(V([[0.0]])),
]


def _products_of_others(s: Any) -> tuple[Any, Any]:
    """Products, along the last axis, of all numbers but one, and of all but two (at [i, j]; 1 on the diagonal)."""
    n = np.shape(s)[-1]
    one = np.ones_like(s[..., :1])
    before = _running(np.concatenate([one, s[..., :-1]], axis=-1))
    after = np.flip(_running(np.flip(np.concatenate([s[..., 1:], one], axis=-1), -1)), -1)
    # between i and j: running products along the rows, right of the diagonal
    rows, columns = (beside(s, a) for a in np.ogrid[:n, :n])
    right = np.where(columns > rows + 1, np.expand_dims(np.concatenate([one, s[..., :-1]], axis=-1), -2), 1)
    upper = np.multiply(np.expand_dims(before, -1), np.multiply(_running(right), np.expand_dims(after, -2)))
    upper = np.where(columns > rows, upper, 0)
    return np.multiply(before, after), np.where(rows == columns, 1, np.add(upper, transpose(upper)))


def _running(x: Any) -> Any:
    return quiet(np.multiply.accumulate, np.cumprod, x, axis=-1)


def _has_lost(A: Any, inverse: Any) -> Any:
    """Whether the inverse of a finite matrix has lost half its digits or more."""
    with np.errstate(all="ignore"):
        condition = np.abs(A).sum(-2).max(-1, initial=0) * np.abs(inverse).sum(-2).max(-1, initial=0)
    return np.logical_not(condition < np.finfo(A.dtype).eps ** -0.5) & np.isfinite(A).all((-2, -1))


@constant(method=False, batch="leading")
def _nearly_singular(A: Any) -> Any:
    return _has_lost(A, _inverse_or_nan.op.forward(A))


def _cofactors_by_svd(A: Any) -> Any:
    u, s, vh = np.linalg.svd(A)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    others = _products_of_others(s)[0]
    return sign[..., None, None] * np.matmul(np.conj(u) * others[..., None, :], np.conj(vh))


def _regular_rule(g: Any, A: Any) -> Any:
    """The gradient through cofactors ``C = d A^-T``, ``d = det(A)``: ``dC = tr(A^-1 dA) C - A^-T dA^T C``."""
    inverse, d = on(_inverse_or_nan, A), as_matrix(on(det, A))
    left = transpose(inverse)
    # c is <C, g>
    terms = np.multiply(g, np.multiply(d, left))
    c = as_matrix(summed(terms, axis=(-2, -1)))
    return np.subtract(np.multiply(c, left), np.multiply(d, np.matmul(left, np.matmul(transpose(g), left))))


def _singular_rule(g: Any, A: Any) -> Any:
    """The same from ``A = U S V^H``, since cofactors of a diagonal matrix have a simple derivative: at [i, i] the sum
    over k of ``dE_kk`` times the product of the other values, at [i, j] that product times ``-dE_ji``.
    """
    u, s, vh = np.linalg.svd(A)
    sign = as_matrix(np.multiply(np.linalg.det(u), np.linalg.det(vh)))
    _, others = _products_of_others(s)
    w = np.multiply(sign, np.matmul(adjoint(u), np.matmul(g, adjoint(vh))))
    on_diagonal = np.where(identity(s), 0, others)
    v = summed(np.multiply(on_diagonal, np.expand_dims(diagonal_of(w), -2)), axis=-1)
    core = with_diagonal(np.negative(np.multiply(transpose(w), others)), v)
    return np.matmul(conj(u), np.matmul(core, conj(vh)))


def _cofactors_rule(g: Any, A: Any) -> Any:
    if np.shape(A)[-1] <= 1:  # the cofactor of a single number is 1
        return np.zeros_like(A)
    mask = on(_nearly_singular, plain(A))
    if not somewhere(mask):
        return _regular_rule(g, A)
    n, dtype = np.shape(A)[-1], data_of(A).dtype
    mask = as_matrix(mask)
    regular = _regular_rule(g, np.where(mask, eye_beside(A, n), A))
    singular = _singular_rule(g, np.where(mask, A, beside(A, np.diag(np.arange(1, n + 1)).astype(dtype))))
    return np.where(mask, singular, regular)


@special(method=False, batch="leading", A=_cofactors_rule)
def _cofactors(A: Any) -> Any:
    """The transposed adjugate: for real elements, the derivatives of the determinant by them."""
    inverse = _inverse_or_nan.op.forward(A)
    with np.errstate(all="ignore"):
        found = np.linalg.det(A)[..., None, None] * transpose(inverse)
    mask = _has_lost(A, inverse)
    if np.any(mask):
        found[mask] = _cofactors_by_svd(A[mask])
    return found


@special(
    home="linalg",
    batch="matrices",
    numpy={np.linalg.det: lambda a: det(a)},
    A=lambda g, A: np.multiply(as_matrix(g), on(_cofactors, A)),
    samples=squares,
    kinks=SINGULAR,
    refused=NO_SQUARE,
    differs=[Differs("torch's gradient at a singular matrix is right with create_graph, otherwise 0", "kinks")],
)
def det(A: Any) -> Any:
    """The determinant of square matrices. ``d det = tr(adj(A) dA)``, also for singular ones.

    >>> import pullback
    >>> A = pullback.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    >>> pullback.linalg.det(A).backward()
    >>> A.grad
    tensor([[ 4., -2.],
            [-2.,  1.]])
    """
    check_matrix("linalg.det", A, square=True)
    with np.errstate(all="ignore"):
        return np.linalg.det(A)


def _slogdet_rule(g: Any, A: Any, out0: Any) -> Any:
    # d log det = tr(A^-1 dA); its real part belongs to logabsdet, its imaginary part turns the sign
    of_sign, weight = g
    if is_complex(A) and of_sign is not None:
        turn = np.multiply(1j, np.imag(np.multiply(of_sign, out0)))
        weight = turn if weight is None else np.add(weight, turn)
    if weight is None:
        return np.zeros_like(A)
    return np.multiply(as_matrix(weight), transpose(on(_inverse_or_nan, A)))


@special(
    home="linalg",
    batch="matrices",
    numpy={np.linalg.slogdet: lambda a: slogdet(a)},
    saved={"sign": "out0"},
    A=_slogdet_rule,
    samples=squares,
    refused=NO_SQUARE,
)
def slogdet(A: Any) -> tuple[Any, Any]:
    """``sign`` and ``logabsdet`` with ``det(A) = sign * exp(logabsdet)``: no overflow; 0 and -inf if A is singular.

    The sign of a complex matrix is a complex number of modulus 1, logabsdet is real.

    >>> import pullback
    >>> pullback.linalg.slogdet(pullback.eye(100) * 0.001).logabsdet
    tensor(-690.7755)
    """
    check_matrix("linalg.slogdet", A, square=True)
    with np.errstate(all="ignore"):
        sign, logabsdet = np.linalg.slogdet(A)
    return SlogdetResult(writable(sign), writable(logabsdet))

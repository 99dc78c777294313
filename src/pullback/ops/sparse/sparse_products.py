"""Products with sparse operands: of matrices and vectors, and element by element, at the nonzeros alone.

The computations on values, whose adjoints these products use, are in `pattern.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.calls import apply, on
from ...tensor import dtypes
from ...tensor.arrays import broadcasts_to
from ...tensor.tensor import Tensor, wrap
from ..index.subscripts import pick_at
from .coo import SparseTensor, at, coalesced, distinct, entries, in_layout, joined, pattern_of, sparse_at
from .pattern import Pattern, _sampled_mm, _sparse_mm, sparse_coo, sparse_csc, sparse_csr

# Element by element ---------------------------------------------------------------------------------------------------


def times(a: Any, b: Any) -> SparseTensor:
    """``a * b``, at the places of the sparse factor; if both are sparse, at those that they share."""
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if not isinstance(b, Tensor) or not b.ndim:
        return sparse_at(entries(a) * b, pattern_of(a))
    sparse = isinstance(b, SparseTensor)
    compressed = a.layout is not sparse_coo or (sparse and b.layout is not sparse_coo)
    if compressed and a.layout is not sparse_csr:
        raise RuntimeError(
            errors.message(
                "mul(): Expected result Tensor to be of format CSR",
                found=a.layout.title,
                do="convert the factor with to_sparse_csr()",
            )
        )
    if isinstance(b, SparseTensor):
        return _common(a, b)
    if not (a.shape == b.shape if compressed else broadcasts_to(b._data.shape, a.shape)):
        raise RuntimeError(errors.message("mul()", expected=f"a shape as {list(a.shape)}", found=errors.describe(b)))
    return sparse_at(entries(a) * at(b.expand(a.shape), pattern_of(a)), pattern_of(a))


def _common(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The product of two sparse tensors, at the places where both have an entry."""
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        expected = f"as many sparse axes, and the shape {list(a.shape)}"
        raise RuntimeError(errors.message("mul()", expected=expected, found=errors.describe(b)))
    (x, left), (y, right) = distinct(a), distinct(b)
    if left is right:
        return sparse_at(x * y, left)
    joint, _, places = joined(left, right).unique()
    which = np.full((2, joint.nnz), -1)
    which[0, places[: left.nnz]], which[1, places[left.nnz :]] = np.arange(left.nnz), np.arange(right.nnz)
    shared = (which >= 0).all(0)
    i, j = which[:, shared]
    found = sparse_at(on(pick_at, x, (i,)) * on(pick_at, y, (j,)), Pattern(joint.indices[:, shared], a.shape, True))
    return in_layout(found, a.layout)


# Of matrices ----------------------------------------------------------------------------------------------------------


def matmul(input: Any, other: Any) -> Tensor:
    """`matmul` with at least one sparse operand. The product of two sparse matrices is sparse."""
    input, other = (wrap(a) if isinstance(a, np.ndarray) else a for a in (input, other))
    _check_product(input, other)
    if not isinstance(input, SparseTensor):
        return _product(other, input, True) if input.ndim == 1 else _product(other, input.mT, True).mT
    if not isinstance(other, SparseTensor):
        return _product(input, other)
    if (input.layout is sparse_coo) is not (other.layout is sparse_coo):
        raise RuntimeError(
            errors.message(
                "addmm: computation on CPU is not implemented for this pair of layouts",
                expected="two matrices in coordinate form, or two compressed ones",
                found=f"{input.layout.title} @ {other.layout.title}",
                do="convert one of them with to_sparse(layout=...)",
            )
        )
    found = _product_of_two(input, other)
    return found if input.layout is sparse_coo else in_layout(found, sparse_csr)


def _product(a: SparseTensor, dense: Tensor, transposed: bool = False) -> Tensor:
    """``a @ dense``, or ``a.T @ dense``, for a vector, a matrix or a stack of matrices."""
    values, pattern = coalesced(a)
    if dense.ndim <= 2:
        return apply(_sparse_mm.op, (values, dense, pattern, transposed), {})
    rows = dense.movedim(-2, 0)  # a stack of matrices is one wide matrix
    width = int(np.prod(rows.shape[1:]))
    wide = apply(_sparse_mm.op, (values, rows.reshape(rows.shape[0], width), pattern, transposed), {})
    return wide.reshape(wide.shape[0], *rows.shape[1:]).movedim(0, -2)


def _product_of_two(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """``a @ b`` for two sparse matrices."""
    return sparse_at(*entries_of_product(*coalesced(a), *coalesced(b))).coalesce()


def entries_of_product(x: Any, left: Pattern, y: Any, right: Pattern) -> tuple[Any, Pattern]:
    """The entries of a product of two sparse matrices, with these values at sorted places: those of a place add up.

    There is one for each entry of the first that has the column of an entry's row in the second.
    """
    columns, rows = left.indices[1], right.indices[0]
    begins = np.searchsorted(rows, columns)  # the entries of a row of the second are adjacent
    counts = np.searchsorted(rows, columns, "right") - begins
    i = np.repeat(np.arange(left.nnz), counts)
    k = np.arange(len(i)) + np.repeat(begins - np.cumsum(counts) + counts, counts)
    places = np.stack([left.indices[0][i], right.indices[1][k]])
    return on(pick_at, x, (i,)) * on(pick_at, y, (k,)), Pattern(places, (left.size[0], right.size[1]), False)


def _check_product(input: Any, other: Any) -> None:
    for operand in (input, other):
        if not isinstance(operand, Tensor):
            raise TypeError(errors.message("matmul()", expected="two Tensors", found=errors.describe(operand)))
        if isinstance(operand, SparseTensor) and (operand.sparse_dim() != 2 or operand.dense_dim()):
            raise NotImplementedError(
                errors.message(
                    "matmul()",
                    expected="a sparse matrix (2 sparse dimensions, no dense ones)",
                    found=f"{operand.sparse_dim()} sparse and {operand.dense_dim()} dense dimensions",
                    do="call to_dense() first",
                )
            )
    if input.dtype is not other.dtype:
        raise RuntimeError(
            errors.message(
                "matmul()",
                expected="operands of the same dtype",
                found=f"{input.dtype} and {other.dtype}",
                do="convert one of them, e.g. b.to(a.dtype)",
            )
        )
    if input.dtype is dtypes.bool:
        raise NotImplementedError(
            "matmul(): the sparse product is not implemented for bool.\n  What to do: convert with .to(...)."
        )
    if not (input.ndim and other.ndim) or input.shape[-1] != other.shape[-2 if other.ndim > 1 else 0]:
        raise RuntimeError(
            errors.message(
                "mat1 and mat2 shapes cannot be multiplied",
                expected="the last axis of the first to have the length of the second-to-last of the second",
                found=f"{list(input.shape)} and {list(other.shape)}",
            )
        )


def of_matrices(name: str, **operands: tuple[Any, int | None]) -> None:
    """Refuse operands, given by name, that are not tensors with the number of axes given for each (None: any)."""
    for which, (value, ndim) in operands.items():
        if not isinstance(value, Tensor) or (ndim is not None and value.ndim != ndim):
            kind = "tensor" if ndim is None else f"{ndim}-D tensor"
            raise (RuntimeError if isinstance(value, Tensor) else TypeError)(
                errors.message(f"{name}()", expected=f"{which} to be a {kind}", found=errors.describe(value))
            )


def mm(input: Any, mat2: Any) -> Tensor:
    """The product of two matrices, at least one of them sparse."""
    of_matrices("mm", input=(input, 2), mat2=(mat2, 2))
    return matmul(input, mat2)


def mv(input: Any, vec: Any) -> Tensor:
    """The product of a sparse matrix and a vector."""
    of_matrices("mv", input=(input, 2), vec=(vec, 1))
    return matmul(input, vec)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``: dense with a dense `input`, CSR if all three are."""
    of_matrices("addmm", input=(input, None), mat1=(mat1, 2), mat2=(mat2, 2))
    layouts = [t.layout for t in (input, mat1, mat2)]
    if isinstance(input, SparseTensor) and not all(layout is sparse_csr for layout in layouts):
        raise RuntimeError(
            errors.message(
                "addmm: computation on CPU is not implemented for these layouts",
                expected="input to be strided, or all three to be CSR",
                found=" + ".join((layouts[0].title, f"{layouts[1].title} @ {layouts[2].title}")),
                do="call input.to_dense()",
            )
        )
    product = matmul(mat1, mat2)
    if not isinstance(input, SparseTensor) and isinstance(product, SparseTensor):
        product = product.to_dense()
    scaled = product if alpha == 1 else product * alpha
    if beta == 0 and not isinstance(input, SparseTensor):  # NaN in the input is ignored then
        return scaled + input.new_zeros(input.shape)
    return (input if beta == 1 else input * beta) + scaled


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * mat @ vec`` with a compressed matrix."""
    of_matrices("addmv", input=(input, None), mat=(mat, 2), vec=(vec, 1))
    if isinstance(input, SparseTensor) or mat.layout is sparse_coo:
        raise NotImplementedError(
            errors.message(
                "addmv()",
                expected="a strided input and a compressed matrix",
                found=f"{input.layout.title} and {mat.layout.title}",
                do="convert the matrix with to_sparse_csr(), or write input + mat @ vec",
            )
        )
    return input * beta + matmul(mat, vec) * alpha


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias`` with a sparse input or weight."""
    product = matmul(input, weight.t())
    return product if bias is None else bias + product


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> SparseTensor:
    """``beta * input + alpha * mat1 @ mat2`` at the places of `input` only, a CSR matrix; the product is never made.

    ``mat1`` is ``(m, k)``, ``mat2`` is ``(k, n)``, ``input`` ``(m, n)``, all of one dtype: one dot product for each
    place. RuntimeError if shapes, dtypes or layouts do not fit.

    >>> import pullback
    >>> a = pullback.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 1.0], (2, 2))
    >>> b = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> pullback.sparse.sampled_addmm(a, b, b, beta=0.0).values()
    tensor([10., 15.])

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.sampled_addmm.html.
    """
    of_matrices("sampled_addmm", input=(input, 2), mat1=(mat1, 2), mat2=(mat2, 2))
    sparse = [isinstance(t, SparseTensor) for t in (input, mat1, mat2)]
    if not isinstance(input, SparseTensor) or input.layout is sparse_coo or any(sparse[1:]):
        raise (NotImplementedError if sparse[0] and not any(sparse[1:]) else RuntimeError)(
            errors.message(
                "sampled_addmm()",
                expected="a CSR matrix and two strided ones",
                found=", ".join(t.layout.title for t in (input, mat1, mat2)),
                do="convert the input with to_sparse_csr()",
            )
        )
    if input.layout is sparse_csc:
        raise RuntimeError(
            "sampled_addmm: Expected result to have sparse csr layout, but got SparseCsc.\n"
            "  What to do: convert the input with to_sparse_csr()."
        )
    if mat1.dtype is not input.dtype or mat2.dtype is not input.dtype:
        raise RuntimeError(
            errors.message(
                "sampled_addmm()",
                expected="three matrices of the same dtype",
                found=f"{input.dtype}, {mat1.dtype} and {mat2.dtype}",
            )
        )
    if mat1.shape[1] != mat2.shape[0] or (mat1.shape[0], mat2.shape[1]) != tuple(input.shape):
        raise RuntimeError(
            errors.message(
                "sampled_addmm(): mat1 and mat2 shapes cannot be multiplied, or the product is not input's shape",
                expected=f"(m, k) and (k, n) for the input {list(input.shape)}",
                found=f"{list(mat1.shape)} and {list(mat2.shape)}",
            )
        )
    pattern = pattern_of(input)
    sampled = apply(_sampled_mm.op, (mat1, mat2.t(), pattern), {})
    return sparse_at(entries(input) * beta + sampled * alpha, pattern)


errors.doors(globals(), "sampled_addmm")

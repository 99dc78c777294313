"""The layouts of tensors, the pattern of a sparse tensor's nonzeros in each, and the two products at them alone.

For ``Y = A B`` with the cotangent ``G`` the gradients are

    dA[i, j] = sum_k G[i, k] conj(B[j, k])   for the nonzeros (i, j) of A,        dB = A^H G.

The first is `_sampled_mm`, the second is `_sparse_mm` again. Each is the adjoint of the other, so derivatives of every
order exist. Both need memory for the nonzeros and for the dense operands, never for a dense A.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...table.calls import on
from ...table.entry import bilinear

_BLOCK = 1 << 18  # elements that `_sampled_mm` gathers from each operand at a time
_ALL = slice(None)


class layout:  # noqa: N801 - torch's name
    """How a tensor stores its elements: `strided`, `sparse_coo`, `sparse_csr` or `sparse_csc` of `pullback`."""

    __module__ = "pullback"  # where it is public
    __slots__ = ("name", "title")

    def __init__(self, name: str, title: str) -> None:
        self.name, self.title = name, title

    def __repr__(self) -> str:
        return f"pullback.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided = layout("strided", "Strided")
sparse_coo = layout("sparse_coo", "Sparse")
sparse_csr = layout("sparse_csr", "SparseCsr")
sparse_csc = layout("sparse_csc", "SparseCsc")


class Pattern:
    """The places of a sparse tensor's entries: `indices`, a column for each entry, in a tensor of shape `size`.

    coalesced: the columns are sorted, without duplicates. A pattern never changes, and all tensors computed on the same
    entries share it.
    """

    __slots__ = ("_compressed", "_rows", "_unique", "coalesced", "indices", "size")

    def __init__(self, indices: np.ndarray[Any, Any], size: tuple[int, ...], coalesced: bool) -> None:
        indices.flags.writeable = False
        self.indices, self.size, self.coalesced = indices, size, coalesced
        self._unique: tuple[Pattern, Any, Any] | None = None
        self._rows: tuple[Any, Any] | None = None
        self._compressed: dict[int, tuple[Compressed, Any]] = {}

    @property
    def layout(self) -> Any:
        """The layout of a tensor with this pattern."""
        return sparse_coo

    @property
    def distinct(self) -> bool:
        """Whether it is known that no place has two entries."""
        return self.coalesced

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.indices.shape[1]

    def unique(self) -> tuple[Pattern, Any, Any]:
        """The coalesced pattern; for each of its places, an entry of this one; for each entry here, its place there."""
        if self.coalesced:
            return self, _ALL, _ALL
        if self._unique is None:
            keys, spans = self.indices, self.size[: len(self.indices)]
            if math.prod(spans) <= np.iinfo(np.int64).max:  # one number for each place sorts faster
                keys = np.ravel_multi_index(tuple(keys), spans)[np.newaxis] if self.nnz else keys[:1]
            order = np.lexsort(keys[::-1]) if len(keys) > 1 else np.argsort(keys[0])
            columns = keys[:, order]
            new = np.ones(self.nnz, bool)
            new[1:] = np.any(columns[:, 1:] != columns[:, :-1], axis=0)
            first = order[new]
            inverse = np.empty(self.nnz, np.int64)
            inverse[order] = np.cumsum(new) - 1
            self._unique = Pattern(self.indices[:, first], self.size, True), first, inverse
        return self._unique

    def compressed(self, axis: int) -> tuple[Compressed, Any]:
        """The places by rows (axis 0) or columns (1), and which entry is at each. The pattern must be coalesced."""
        if axis not in self._compressed:
            order = _ALL if axis == 0 else np.argsort(self.indices[1], kind="stable")
            lines, across = self.indices[axis][order], self.indices[1 - axis][order]
            try:
                ends = np.zeros(self.size[axis] + 1, np.int64)
                np.cumsum(np.bincount(lines, minlength=self.size[axis]), out=ends[1:])
            except (MemoryError, ValueError):
                raise RuntimeError(
                    f"a compressed matrix of {self.size[axis]} {('rows', 'columns')[axis]} has an index for each of "
                    "them, which do not fit into memory.\n  What to do: keep it in coordinate form."
                ) from None
            self._compressed[axis] = Compressed(ends, across.copy(), self.size, axis), order
        return self._compressed[axis]

    def matrix(self, values: np.ndarray[Any, Any]) -> Any:
        """SciPy's CSR matrix with `values` at these places. The pattern must be coalesced."""
        sparse = _scipy_sparse()
        if self._rows is None:
            ends = np.searchsorted(self.indices[0], np.arange(self.size[0] + 1))
            found = sparse.csr_array((np.empty(self.nnz, np.int8), self.indices[1], ends), shape=self.size)
            self._rows = found.indices, found.indptr  # in the smallest integer dtype that holds them
        return sparse.csr_array((values, *self._rows), shape=self.size)


class Compressed(Pattern):
    """The places of a matrix's entries, row after row (CSR, axis 0) or column after column (CSC, axis 1).

    The entries of line `i` are those from ``ends[i]`` to ``ends[i + 1]``. across: their places within the line, which
    increase.
    """

    __slots__ = ("across", "axis", "ends")

    def __init__(self, ends: np.ndarray[Any, Any], across: np.ndarray[Any, Any], size: Any, axis: int) -> None:
        lines = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        indices = np.stack([lines, across] if axis == 0 else [across, lines]).astype(np.int64, copy=False)
        super().__init__(indices, size, axis == 0)
        ends.flags.writeable = across.flags.writeable = False
        self.ends, self.across, self.axis = ends, across, axis

    @property
    def layout(self) -> Any:
        """The layout of a tensor with this pattern."""
        return sparse_csr if self.axis == 0 else sparse_csc

    @property
    def distinct(self) -> bool:
        """True: a place has one entry."""
        return True


def _scipy_sparse() -> Any:
    try:
        import scipy.sparse
    except ImportError:
        raise ImportError(
            "products of sparse tensors are computed by SciPy, which is not installed.\n"
            "  What to do: pip install 'pullback[scipy]'."
        ) from None
    return scipy.sparse


def _by_values(g: Any, dense: Any, pattern: Any, transposed: Any) -> Any:
    return on(_sampled_mm, dense, g, pattern) if transposed else on(_sampled_mm, g, dense, pattern)


def _by_dense(g: Any, values: Any, pattern: Any, transposed: Any) -> Any:
    return on(_sparse_mm, values, g, pattern, not transposed)


@bilinear(method=False, values=_by_values, dense=_by_dense)
def _sparse_mm(values: Any, dense: Any, pattern: Any, transposed: Any) -> Any:
    """The matrix with `values` at the places of `pattern`, or its transpose, times a dense matrix or vector."""
    half = values.dtype == np.float16  # SciPy has no product in half precision
    matrix = pattern.matrix(values.astype(np.float32) if half else values)
    found = (matrix.T if transposed else matrix) @ (dense.astype(np.float32) if half else dense)
    return found.astype(np.float16) if half else found


@bilinear(
    method=False,
    left=lambda g, right, pattern: on(_sparse_mm, g, right, pattern, False),
    right=lambda g, left, pattern: on(_sparse_mm, g, left, pattern, True),
)
def _sampled_mm(left: Any, right: Any, pattern: Any) -> Any:
    """``out[e] = sum_k left[i, k] * right[j, k]`` for each place ``(i, j)`` of `pattern`, a block of them at a time."""
    left, right = (np.expand_dims(a, 1) if a.ndim == 1 else a for a in (left, right))
    rows, columns = pattern.indices
    out = np.empty(len(rows), left.dtype)
    step = max(_BLOCK // max(left.shape[1], 1), 1)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        out[block] = np.einsum("ek,ek->e", left[rows[block]], right[columns[block]])
    return out


# The two products under public names: `scipy.sparse` computes with values that may belong to a transform.
pattern_mm, sampled_mm = _sparse_mm, _sampled_mm

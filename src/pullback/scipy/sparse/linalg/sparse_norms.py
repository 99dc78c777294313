"""Norms of sparse matrices, computed with their values alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....linalg import vector_norm
from ....ops.index.subscripts import add_up
from ....table.calls import on
from ...mirror import mirrors
from ...user_functions import plain_setting
from ..sparse_arrays import SparseArray, sparse

_LIMITS = "ord None, 'fro', 1, -1, inf, -inf; along an axis None, 1, 2"
_OF_SUMS: dict[float, tuple[int, Callable[[Any], Any]]] = {
    1: (0, np.max),
    -1: (0, np.min),
    np.inf: (1, np.max),
    -np.inf: (1, np.min),
}


def _sums(x: SparseArray, axis: int, values: Any) -> Any:
    """The sums along an axis."""
    kept = 1 - axis
    return on(add_up, values, (x.pattern.indices[kept],), (x.shape[kept],))


@mirrors("sparse.linalg.norm", derivative="composition", limits=_LIMITS)
def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """The norm of a sparse matrix, or of its columns (axis 0) or rows (1).

    ord: None or "fro", 1, -1, inf or -inf of a matrix; None, 1 or 2 along an axis.

    >>> import pullback
    >>> from pullback.scipy.sparse import diags_array
    >>> from pullback.scipy.sparse.linalg import norm
    >>> norm(diags_array(pullback.tensor([3.0, 4.0])))
    tensor(5.)
    """
    matrix = sparse("norm", x)
    ord, axis = plain_setting("norm", ord=ord, axis=axis)
    if axis is not None and np.ndim(axis) == 0:
        if not -2 <= axis < 2:
            raise ValueError(f"Invalid axis {axis} for an array with shape {matrix.shape!r}")
        if ord in (None, 2):
            squares = _sums(matrix, axis % 2, np.abs(matrix.data) ** 2)
            return np.where(squares == 0, 0.0, np.sqrt(np.where(squares == 0, 1.0, squares)))
        if ord == 1:
            return _sums(matrix, axis % 2, np.abs(matrix.data))
    elif axis is None or tuple(a % 2 for a in axis) in ((0, 1), (1, 0)):
        if ord in (None, "fro", "f"):
            return vector_norm(matrix.data)
        if ord in _OF_SUMS:
            along, chosen = _OF_SUMS[ord]
            along = along if axis is None or axis[0] % 2 == 0 else 1 - along
            return chosen(_sums(matrix, along, np.abs(matrix.data)))
    raise NotImplementedError(f"norm: expected {_LIMITS}; found ord {ord!r}, axis {axis!r}.")


__all__ = ["norm"]

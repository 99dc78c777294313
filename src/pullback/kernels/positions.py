"""Arrays of positions: checking them, reading at them, and adding at them where a position may occur twice.

These functions take plain arrays; the forwards of indexing, gathering and scattering use them. All come down to flat
positions in a contiguous array, where NumPy's loops are fast (`np.add.at` is fast along one axis, not over several).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import errors
from ..tensor.adding import summing
from ..tensor.arrays import arange_beside, beside
from ..tensor.protocol import check_later, into_array, is_foreign
from .counterparts import combine_at, contiguous

Array = np.ndarray[Any, Any]

INT64, INT32 = np.dtype(np.int64), np.dtype(np.int32)

# For fewer values than this, NumPy's slow loop over several axes takes less time than the set-up of the faster one.
_FEW = 2500
# From so many values on, a loop in C pays.
_MANY = 2500
# For rows at least this long, it is worth checking that no position occurs twice; if none does, all is added at once.
_LONG = 8
# A row at least this long is added faster as a whole than element by element.
_VERY_LONG = 400


class SumsByIndex:
    """Adds rows by a loop in C, and says whether it has. `assembly.py` puts it here.

    in_c: called with the arguments of `_add_rows` (`compile/eager/adding_rows.py`).
    """

    in_c: ClassVar[Callable[[Array, Array, Array], bool]]


def within(index: Array, n: int, error: Exception | None = None) -> bool:
    """Whether an array holds only positions along an axis of length `n`, counted from its start.

    On a device it is taken to, and the check that raises `error` is left for where the host waits next.
    """
    # read as unsigned, a negative number is larger than any length
    if is_foreign(index):
        check_later((index < 0) | (index >= n), error or IndexError(f"index out of bounds for a dimension of size {n}"))
        return True
    if type(index) is not np.ndarray:
        return not index.size or bool(np.all((index >= 0) & (index < n)))
    return not index.size or bool(index.view(f"u{index.itemsize}").max() < n)


def positions(
    name: str,
    index: Any,
    n: int,
    outside: type[Exception] = IndexError,
    *,
    negative: bool = False,
    dtypes: tuple[np.dtype[Any], ...] = (INT64, INT32),
    wrong: type[Exception] = RuntimeError,
) -> Array:
    """The positions in an integer array along an axis of length `n`, counted from 0; or an error.

    outside: the error for a position that is too large, or negative. negative: allow negative positions, counted from
    the end. wrong: the error for an array of any other dtype.
    """
    if not hasattr(index, "size"):
        raise TypeError(
            errors.message(f"{name}()", expected="index to be an integer Tensor", found=errors.describe(index))
        )
    if index.dtype not in dtypes:
        raise wrong(
            errors.message(
                f"{name}()",
                expected=f"an index of {' or '.join(map(str, dtypes))}",
                found=errors.describe(index),
                do="convert it with .long()",
            )
        )
    if is_foreign(index):
        text = f"{name}(): an index is out of bounds for a dimension of size {n}"
        check_later((index < (-n if negative else 0)) | (index >= n), outside(text))
        return counted_from_0(index, n) if negative else index
    if within(index, n):
        return index
    low, high = int(index.min()), int(index.max())
    if high >= n or low < (-n if negative else 0):
        raise outside(
            errors.message(
                f"{name}(): index {high if high >= n else low} is out of bounds for a dimension of size {n}",
                expected=f"positions in [{-n if negative else 0}, {n - 1}]",
                found=f"{low} to {high}",
            )
        )
    return counted_from_0(index, n) if low < 0 else index


def vector(
    name: str, index: Any, n: int, outside: type[Exception] = IndexError, rank: type[Exception] = IndexError, **how: Any
) -> Array:
    """`positions` in a vector; a 0-d array is a single position. rank: the error for more axes."""
    found = positions(name, index, n, outside, **how)
    if found.ndim > 1:
        raise rank(errors.message(f"{name}()", expected="index to be a vector", found=errors.describe(index)))
    return found if found.ndim else found.reshape(1)


def counted_from_0(index: Array, n: int) -> Array:
    """Positions counted from the start; negative ones count from the end (-1 is the last)."""
    return np.where(index < 0, index + n, index)


def along(index: Array, dim: int, shape: Sequence[int]) -> Array:
    """Flat positions, in an array of `shape`, of the elements at `index` along `dim` and in place along other axes."""
    steps = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    flat = index.astype(np.int64, copy=False) * steps[dim]
    for i, n in enumerate(index.shape):
        if i != dim and n > 1:
            flat = flat + (arange_beside(index, n) * steps[i]).reshape([n if j == i else 1 for j in range(index.ndim)])
    return flat


def layout(indices: Sequence[Any]) -> tuple[list[int], bool]:
    """The axes that have an array of positions, and whether they are next to each other.

    If so, the axes of the arrays replace them in the result; otherwise the arrays' axes come first.
    """
    axes = [i for i, part in enumerate(indices) if part is not None]
    return axes, axes[-1] - axes[0] == len(axes) - 1


def indexed_shape(shape: Sequence[int], indices: Sequence[Any]) -> tuple[int, ...]:
    """The shape of the elements at `indices` (an array or None for each leading axis) in an array of `shape`."""
    axes, adjacent = layout(indices)
    try:
        found = np.broadcast_shapes(*(indices[a].shape for a in axes))
    except ValueError:
        lengths = ", ".join(str(list(indices[a].shape)) for a in axes)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {lengths}"
        ) from None
    rest = [n for i, n in enumerate(shape) if i not in axes]
    lead = axes[0] if adjacent else 0
    return (*rest[:lead], *found, *rest[lead:])


@into_array(0)
def add_at(out: Array, indices: Sequence[Any], values: Any) -> None:
    """``out[indices] += values``, once for each time that a position occurs.

    indices: an array of positions, or None, for each leading axis. Half precision is added up in single.
    """
    if (single := summing(out.dtype)) != out.dtype:
        wide = out.astype(single)
        add_at(wide, indices, values)
        out[...] = wide
        return
    if np.size(values) < _FEW and not is_foreign(out):
        places: Any = tuple([slice(None) if p is None else p for p in indices])
        np.add.at(out, places, values)
        return
    indices = [p if p is None else beside(out, p) for p in indices]
    axes, adjacent = layout(indices)
    values = np.broadcast_to(values, indexed_shape(out.shape, indices))
    order = list(range(out.ndim))
    if not adjacent:
        order = axes + [i for i in order if i not in axes]
    lead = axes[0] if adjacent else 0
    moved = np.transpose(out, order)
    work = contiguous(moved)
    lengths = [out.shape[a] for a in axes]
    flat = _flat([indices[a] for a in axes], lengths)
    outer, inner = math.prod(work.shape[:lead]), math.prod(work.shape[lead + len(axes) :])
    _add_rows(work.reshape(outer, math.prod(lengths), inner), flat.reshape(-1), values.reshape(outer, flat.size, inner))
    if work is not moved:
        moved[...] = work


def _flat(indices: Sequence[Array], lengths: Sequence[int]) -> Array:
    """One array of positions in the flattened axes for an array of positions along each."""
    found: Any = 0
    for index, n in zip(indices, lengths, strict=True):
        if index.size and not is_foreign(index) and (index.min() < -n or index.max() >= n):
            raise IndexError(f"index: positions {index.min()} to {index.max()} are out of bounds for size {n}")
        found = found * n + counted_from_0(index, n)
    return found


def _add_rows(work: Array, flat: Array, values: Array) -> None:
    """``work[:, flat] += values``; `work` is contiguous and has three axes."""
    outer, n, inner = work.shape
    if not values.size:
        return
    large = type(work) is type(values) is np.ndarray
    if large and values.size >= _MANY and SumsByIndex.in_c(work, flat, values):
        return
    if large and outer * inner >= _LONG and n <= 8 * flat.size + 1000 and np.bincount(flat, minlength=1).max() == 1:
        work[:, flat] += values
        return
    if large and inner >= _VERY_LONG:
        places = flat.tolist()
        for block, news in zip(work, values, strict=True):
            for place, row in zip(places, news, strict=True):
                block[place] += row
        return
    if inner > 1:
        flat = (flat[:, None] * inner + arange_beside(flat, inner)).reshape(-1)
    if outer > 1:
        flat = (arange_beside(flat, outer)[:, None] * (n * inner) + flat).reshape(-1)
    combine_at(np.add, work.reshape(-1), flat, values.reshape(-1))

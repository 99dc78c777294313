"""How reading and writing at positions take the axis of a batch: the functions that the entries name as `batch`.

An index without arrays needs nothing but a slice more. Arrays of positions that vary over the batch get another array
beside them: the number of each element of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...interpreters.batched import looped, refused
from ...kernels.positions import indexed_shape, layout
from ...tensor.memory import same_memory
from ...tensor.nested import any_instance
from ...tensor.tensor import Tensor

if TYPE_CHECKING:
    from ...interpreters.batched import Vmap
    from ...table.entry import Op

Args = tuple[Any, ...]


def read(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For ``_index(input, indices)``: an array of positions, or None, for each leading axis."""
    source, indices = args
    if any(isinstance(p, Tensor) and p._data.dtype.kind == "b" for p in indices):
        return (refused if any(level.varies(p) for p in indices if isinstance(p, Tensor)) else looped)(
            level, op, args, kwargs
        )
    value, own = level.value(source), level.varies(source)
    axes, adjacent = layout(indices)
    lead = axes[0] if adjacent else 0
    rank = max(indices[a].ndim for a in axes)
    varying = [a for a in axes if isinstance(indices[a], Tensor) and level.varies(indices[a])]
    if not varying:
        out = op.unchecked(value, (None, *indices))
        return out if adjacent else np.moveaxis(out, rank, 0)
    places = [p if p is None else _aligned(level, p, rank) for p in indices]
    if not own:
        return np.moveaxis(op.unchecked(value, tuple(places)), lead, 0)
    out = op.unchecked(value, (_each(level, rank), *places))
    if not lead:
        return out
    # the axes of the arrays come first, as they are not next to the batch's axis: put them where they belong
    return np.moveaxis(out, tuple(range(1, rank + 1)), tuple(range(1 + lead, 1 + lead + rank)))


def added_up(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For ``_add_up(input, indices, shape)``, the adjoint of the operation that `read` is for."""
    input, indices, shape = args
    if any(isinstance(p, Tensor) and p._data.dtype.kind == "b" for p in indices):
        return looped(level, op, args, kwargs)
    value: Any = level.lower(input)
    whole = (level.size, *shape)
    axes, adjacent = layout(indices)
    lead = axes[0] if adjacent else 0
    rank = max(indices[a].ndim for a in axes)
    places = [p if p is None else _aligned(level, p, rank) for p in indices]
    if not any(isinstance(p, Tensor) and level.varies(p) for p in indices):
        return op.unchecked(value if adjacent else np.moveaxis(value, 0, rank), (None, *places), whole)
    if lead:
        value = np.moveaxis(value, tuple(range(1 + lead, 1 + lead + rank)), tuple(range(1, rank + 1)))
    return op.unchecked(value, (_each(level, rank), *places), whole)


def in_rows(level: Vmap, index: Any) -> Args:
    """Positions in flattened tensors, as an index into rows, one for each element of the batch."""
    return _each(level, index.ndim), _aligned(level, index, index.ndim)


def _each(level: Vmap, rank: int) -> Any:
    """The number of each element of the batch, with so many axes behind the batch's."""
    return np.arange(level.size).reshape(level.size, *(1,) * rank)


def written(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For ``_index_put(input, values, first, second)``: an index without arrays, and one of arrays, as for `read`."""
    source, values, first, second = op.padded(args, kwargs)
    axes, adjacent = layout(second)
    varying = any(isinstance(p, Tensor) and level.varies(p) for p in second)
    masks = any(isinstance(p, Tensor) and p._data.dtype.kind == "b" for p in second)
    if masks or not adjacent or (varying and axes[0]) or any_instance([first], Tensor):
        return looped(level, op, args, kwargs)
    rank = max(second[a].ndim for a in axes)
    places = tuple(p if p is None else _aligned(level, p, rank) for p in second)
    each = _each(level, rank) if varying else None
    if isinstance(values, Tensor) and level.varies(values):
        shape = values._data.shape
        lead = len(indexed_shape(np.broadcast_to(0, source._data.shape)[first].shape, second)) - len(shape)
        if lead < 0:
            return looped(level, op, args, kwargs)
        values = np.reshape(level.value(values), (level.size, *(1,) * lead, *shape))
    elif isinstance(values, Tensor):
        values = level.value(values)
    return op.unchecked(level.lower(source), values, (slice(None), *first), (each, *places))


def _aligned(level: Vmap, index: Any, rank: int) -> Any:
    """An array of positions, with the axis of the batch in front if it has one, then `rank` axes."""
    if not isinstance(index, Tensor) or not level.varies(index):
        return level.value(index) if isinstance(index, Tensor) else index
    value, shape = level.value(index), index._data.shape
    return np.reshape(value, (level.size, *(1,) * (rank - len(shape)), *shape))


def through(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For ``_put_through(input, values, steps)``: the same view is written for all of them."""
    source, values, steps = args
    whole = level.lower(source).clone()
    view = level.lift(whole)
    for step, rest in steps:
        view = step.unchecked(view, *rest)
    target = level.value(view)
    if not same_memory(target._data, whole._data):
        return looped(level, op, args, kwargs)
    if isinstance(values, Tensor) and level.varies(values):
        shape, rank = values._data.shape, target._data.ndim - 1
        values = np.reshape(level.value(values), (level.size, *(1,) * (rank - len(shape)), *shape))
    target.copy_(level.value(values) if isinstance(values, Tensor) else values)
    return whole

"""How operations on shapes and positions take the axis of a batch: the functions that their entries name as `batch`.

Each is called as ``rule(level, op, args, kwargs)`` with tensors that stand for one of many. It returns the results of
the operation for all of them, with the axis of the batch in front. Where it does not apply (a tensor where a number is
expected, an operand without axes whose only axis would be the batch's) it falls back to a call for each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.positions import indexed_shape, layout
from ..table.levels import mapped
from ..tensor.arrays import wrap_axis
from ..tensor.memory import same_memory
from ..tensor.nested import any_instance, instances
from ..tensor.tensor import Tensor
from .batched import looped, refused

if TYPE_CHECKING:
    from ..table.entry import Op
    from .batched import Vmap

Args = tuple[Any, ...]
Change = Callable[..., Args | None]
Tied = Callable[[Tensor, "Op", Args], Tensor]


def _changed(change: Change, tied: Tied | None, level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """The operation with the arguments after the first as `change` makes them: ``change(full shape, *arguments)``.

    For operations on one tensor. None from `change`: a call for each.
    """
    source, *rest = op.padded(args, kwargs)
    places = len(op.params) - len(op.keyword_only)
    rest = rest[: places - 1]
    if any_instance(rest, Tensor) or any_instance(kwargs.values(), Tensor):
        return looped(level, op, args, kwargs)
    value = level.value(source)
    found = change(value._data.shape, *rest)
    if found is None:
        return looped(level, op, args, kwargs)
    out = op.unchecked(value, *found, **kwargs)
    return out if tied is None else tied(out, op, (value, *found))


def by(change: Change, tied: Tied | None = None) -> Callable[..., Any]:
    """The rule that changes the arguments by a function; see `_changed`.

    tied: what makes the result, of ``op(*arguments)``, a view of the first argument, if `op` alone does not.
    """
    return functools.partial(_changed, change, tied)


def moved(dim: Any, shape: Any) -> Any:
    """An axis, or several, of a tensor that has one axis less than `shape`, as axes of `shape`."""
    if isinstance(dim, (tuple, list)):
        return tuple(moved(d, shape) for d in dim)
    return wrap_axis(dim, len(shape) - 1) + 1


def dim_first(shape: Any, dim: Any, *rest: Any) -> Args | None:
    """For arguments ``(dim, ...)``, where `dim` is an axis or a tuple of axes, not None."""
    return None if len(shape) == 1 else (moved(dim, shape), *rest)


def dim_last(shape: Any, *rest: Any) -> Args | None:
    """For arguments ``(..., dim)``."""
    return None if len(shape) == 1 else (*rest[:-1], moved(rest[-1], shape))


def dims_only(shape: Any, *dims: Any) -> Args | None:
    """For arguments that are all axes. Those of a 0-d tensor, 0 and -1, lead to the axis of the batch itself."""
    return tuple(wrap_axis(d, 1) if len(shape) == 1 else moved(d, shape) for d in dims)


def prefixed(shape: Any, index: Args) -> Args:
    """For an index: everything along the axis of the batch."""
    return ((slice(None), *index),)


def unchanged(shape: Any, *rest: Any) -> Args | None:
    """For operations that take any axes in front, but look at the last one."""
    return None if len(shape) == 1 else rest


def expanded(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For `expand`, which may add axes in front: they go behind the axis of the batch."""
    source, shape = op.padded(args, kwargs)
    value, lead = level.value(source), len(shape) - source._data.ndim
    if any(n < 0 for n in shape[: max(lead, 0)]):  # for a new axis, -1 would mean the length that the batch's axis has
        return looped(level, op, args, kwargs)
    if lead > 0:
        value = value.reshape((level.size, *(1,) * lead, *source._data.shape))
    return op.unchecked(value, (level.size, *shape))


def joined(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For operations that join tensors along one of their axes."""
    tensors, dim = op.padded(args, kwargs)
    rank = max(t._data.ndim for t in tensors)
    if any(t._data.ndim != rank for t in tensors) or not -rank <= dim < rank:
        return looped(level, op, args, kwargs)
    return op.unchecked([level.lower(t) for t in tensors], dim % rank + 1)


def stacked(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For `stack`."""
    tensors, dim = op.padded(args, kwargs)
    return op.unchecked([level.lower(t) for t in tensors], wrap_axis(dim, tensors[0]._data.ndim + 1) + 1)


class dims:  # noqa: N801 - written as a fact in an entry
    """The rule of operations on one tensor, their first argument, where others name axes of it: these move on by one.

    names: those arguments; each is an axis, a tuple of axes, or None or () for all. keeps: the argument that says
    whether axes that were reduced stay, with length 1.
    """

    def __init__(self, *axes: str, keeps: str = "") -> None:
        self.axes, self.keeps = axes, keeps
        self.names = self.numbers = (*axes, keeps) if keeps else axes

    def __call__(self, level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
        given = dict(zip(op.params, op.padded(args, kwargs), strict=True))
        source, ndim = args[0], args[0]._data.ndim
        if any_instance([a for a in given.values() if a is not source], Tensor):
            return looped(level, op, args, kwargs)
        if not ndim:
            numbers = self._of_numbers(level, op, given)
            return looped(level, op, args, kwargs) if numbers is None else numbers
        value = level.value(source)
        shape: tuple[int, ...] | None = None
        for name in self.axes:
            dim = given[name]
            if dim is None or dim == () or dim == []:  # all axes
                value, given[name] = value.reshape(level.size, source._data.size), 1
                shape = (level.size, *(1,) * ndim) if given.get(self.keeps) else None
            elif isinstance(dim, (tuple, list)):
                given[name] = tuple(wrap_axis(d, ndim) + 1 for d in dim)
            else:
                given[name] = wrap_axis(dim, ndim) + 1
        given[op.params[0]] = value
        found = _called(op, given)
        return found if shape is None else mapped(lambda t: t.reshape(shape), found)

    def _of_numbers(self, level: Vmap, op: Op, args: dict[str, Any]) -> Any:
        """The operation on tensors without axes, as rows of one element; None if its results are no such tensors."""
        given = dict(args)
        for name in self.axes:
            dim = given[name]
            for d in dim if isinstance(dim, (tuple, list)) else () if dim is None else (dim,):
                wrap_axis(d, 1)  # the axes 0 and -1 are all that may be named
            given[name] = 1
        given[op.params[0]] = level.value(given[op.params[0]]).reshape(level.size, 1)
        found = _called(op, given)
        if any(t._data.size != level.size for t in instances([found], Tensor)):
            return None
        return mapped(lambda t: t.reshape(level.size), found)


def _called(op: Op, given: dict[str, Any]) -> Any:
    """The operation of arguments by their names."""
    places = len(op.params) - len(op.keyword_only)
    values = [given[name] for name in op.params]
    return op.unchecked(*values[:places], **dict(zip(op.keyword_only, values[places:], strict=True)))


class by_positions:  # noqa: N801 - written as a fact in an entry
    """The rule of operations along one axis, whose tensors all have the same number of axes.

    dim: the argument that is the axis. shape: the one that is the shape of the result, if there is one.
    """

    def __init__(self, dim: str, shape: str = "") -> None:
        self.dim, self.shape = dim, shape
        self.names = self.numbers = (dim, shape) if shape else (dim,)

    def __call__(self, level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
        given = dict(zip(op.params, op.padded(args, kwargs), strict=True))
        tensors = [n for n, a in given.items() if isinstance(a, Tensor)]
        ranks = {given[n]._data.ndim for n in tensors} | ({len(given[self.shape])} if self.shape else set())
        if len(ranks) > 1 or 0 in ranks:
            return looped(level, op, args, kwargs)
        given |= {n: level.lower(given[n]) for n in tensors}
        return self._moved(op, given, level.size)

    def _moved(self, op: Op, given: dict[str, Any], size: int) -> Any:
        """The operation with its axis moved on by one, and the axis of the batch in the shape, if it has one."""
        given[self.dim] = moved(given[self.dim], given[op.params[0]]._data.shape)
        if self.shape:
            given[self.shape] = (size, *given[self.shape])
        return _called(op, given)


class by_row(by_positions):  # noqa: N801 - written as a fact in an entry
    """The rule of operations along one axis by positions along it, an argument of one axis: `index`.

    It holds where these positions are the same for each of the batch.
    """

    def __init__(self, dim: str, index: str) -> None:
        super().__init__(dim)
        self.index, self.names = index, (dim, index)

    def __call__(self, level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
        given = dict(zip(op.params, op.padded(args, kwargs), strict=True))
        index, source = given[self.index], given[op.params[0]]
        tensors = [n for n, a in given.items() if isinstance(a, Tensor) and n != self.index]
        ranks = {given[n]._data.ndim for n in tensors}
        if level.varies(index) or ranks != {source._data.ndim} or not source._data.ndim:
            return looped(level, op, args, kwargs)
        given |= {n: level.lower(given[n]) for n in tensors} | {self.index: level.value(index)}
        return self._moved(op, given, level.size)


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


def by_mask(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For ``op(input, mask)``, whose result is as long as the mask selects."""
    return (refused if isinstance(args[1], Tensor) and level.varies(args[1]) else looped)(level, op, args, kwargs)


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


def in_order(level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
    """For ``_searchsorted(sequence, values, ...)``: many values in one sequence, or rows of them in as many."""
    sequence, values, *rest, sorter = op.padded(args, kwargs)
    if not isinstance(values, Tensor):
        return looped(level, op, args, kwargs)
    if not level.varies(sequence):
        if sequence._data.ndim != 1 or any_instance([sorter], Tensor):
            return looped(level, op, args, kwargs)
        return op.unchecked(level.value(sequence), level.value(values), *rest, sorter)
    ranks = {t._data.ndim for t in (sequence, values, sorter) if isinstance(t, Tensor)}
    if len(ranks) > 1 or 0 in ranks or sequence._data.shape[:-1] != values._data.shape[:-1]:
        return looped(level, op, args, kwargs)
    return op.unchecked(
        level.lower(sequence), level.lower(values), *rest, sorter if sorter is None else level.lower(sorter)
    )


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

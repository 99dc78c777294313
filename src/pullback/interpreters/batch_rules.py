"""The rules that entries name as `batch`: how operations on shapes and positions take the axis of a batch.

Each is called as ``rule(level, op, args, kwargs)`` with tensors that stand for one element of a batch. It returns the
results for all elements, with the axis of the batch in front. If it does not apply (to a tensor instead of a number, or
to an operand whose only axis would be the batch's), it falls back to one call for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..table.checks import own
from ..table.levels import mapped
from ..tensor.arrays import wrap_axis
from ..tensor.nested import any_instance, instances
from ..tensor.tensor import Tensor
from .batched import looped

if TYPE_CHECKING:
    from ..table.op import Op
    from .batched import Vmap

Args = tuple[Any, ...]
Change = Callable[..., Args | None]
Tied = Callable[[Tensor, "Op", Args], Tensor]
NO_NAMES: dict[str, Any] = {}  # never written to


class by:  # noqa: N801 - written as a fact in an entry
    """The rule that changes the arguments after the first: to what ``change(full shape, *arguments)`` gives.

    For operations on one tensor. None from `change`: a call for each element. tied: a function that makes the result of
    ``op(*arguments)`` a view of the first argument, if `op` alone does not.
    """

    def __init__(self, change: Change, tied: Tied | None = None) -> None:
        self.change, self.tied = change, tied

    def __call__(self, level: Vmap, op: Op, args: Args, kwargs: dict[str, Any]) -> Any:
        source, *rest = op.padded(args, kwargs)
        rest = rest[: len(op.params) - len(op.keyword_only) - 1]
        if any_instance(rest, Tensor) or any_instance(kwargs.values(), Tensor):
            return looped(level, op, args, kwargs)
        found = self.of_whole(op, level.value(source), rest, kwargs)
        return looped(level, op, args, kwargs) if found is None else found

    def of_whole(self, op: Op, value: Tensor, rest: Sequence[Any], kwargs: dict[str, Any] = NO_NAMES) -> Tensor | None:
        """The results for all elements of `value`; None if it does not apply. rest: arguments that are no Tensors."""
        found = self.change(value._data.shape, *rest)
        if found is None:
            return None
        out: Tensor = op.unchecked(value, *found, **kwargs)
        return out if self.tied is None else self.tied(out, op, (value, *found))


def moved(dim: Any, shape: Any) -> Any:
    """An axis, or several, of a tensor with one axis less than `shape`, as axes of `shape`."""
    if isinstance(dim, (tuple, list)):
        return tuple(moved(d, shape) for d in dim)
    return wrap_axis(dim, len(shape) - 1) + 1


def unchanged(shape: Any, *rest: Any) -> Args | None:
    """For operations that take any axes in front, but act on the last one."""
    return None if len(shape) == 1 else rest


class dims:  # noqa: N801 - written as a fact in an entry
    """The rule of operations on one tensor, their first argument; other arguments are its axes and move on by one.

    names: those arguments; each is an axis, a tuple of axes, or None or () for all. keeps: the argument that says
    whether reduced axes stay, with length 1.
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
        return found if shape is None else mapped(lambda t: own(t.reshape(shape), (value,)), found)

    def _of_numbers(self, level: Vmap, op: Op, args: dict[str, Any]) -> Any:
        """The operation on tensors without axes, as rows of one element; None if its results are not such tensors."""
        given = dict(args)
        for name in self.axes:
            dim = given[name]
            for d in dim if isinstance(dim, (tuple, list)) else () if dim is None else (dim,):
                wrap_axis(d, 1)  # only the axes 0 and -1 may be given
            given[name] = 1
        given[op.params[0]] = (source := level.value(given[op.params[0]])).reshape(level.size, 1)
        found = _called(op, given)
        if any(t._data.size != level.size for t in instances([found], Tensor)):
            return None
        return mapped(lambda t: own(t.reshape(level.size), (source,)), found)


def _called(op: Op, given: dict[str, Any]) -> Any:
    """Call the operation with arguments by their names; a keyword-only one that is None was left out."""
    named = {name: given[name] for name in op.keyword_only if given[name] is not None}
    return op.unchecked(*[given[name] for name in op.params if name not in op.keyword_only], **named)


class by_positions:  # noqa: N801 - written as a fact in an entry
    """The rule of operations along one axis of tensors that all have the same number of axes.

    dim: the argument for the axis. shape: the argument for the shape of the result, if there is one.
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
    """The rule of operations along one axis, with positions along it in a 1-d argument `index`.

    It applies if the positions are the same for each element of the batch.
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

"""The batched interpreter, behind `vmap`: a Tensor stands for one element, and operations act on all elements.

A batched payload holds all elements in one Tensor with one axis more, which is always the first. The kind of an
operation says how it takes that axis, or its entry does (`About.batch`). Any other operation is called once for each
element and the results are stacked, which is always right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from ..table.levels import Level, inner, mapped
from ..tensor import dtypes
from ..tensor.memory import LevelPayload
from ..tensor.nested import any_instance
from ..tensor.tensor import Lifted, Tensor, is_tracked, wrap
from ..tensor.views import before_write, can_join, same_view, unmark, views_of
from .functions import backward_of_each, forward_of_vmap

if TYPE_CHECKING:
    from ..table.op import Op


class Batched(LevelPayload):
    """One of the tensors along the first axis of `value`; without such an axis, the same tensor for each element."""

    __slots__ = ("has_axis", "value")

    def __init__(self, level: Vmap, value: Tensor, has_axis: bool = True) -> None:
        self.level, self.value, self.has_axis = level, value, has_axis

    @property
    def shape(self) -> Any:
        return self.value._data.shape[1:] if self.has_axis else self.value._data.shape

    @property
    def ndim(self) -> int:
        return self.value._data.ndim - self.has_axis

    @property
    def requires_grad(self) -> bool:
        return is_tracked(self.value)

    @property
    def inside(self) -> Tensor:
        return self.value

    @property
    def stacked(self) -> Tensor | None:
        return self.value if self.has_axis else None

    def detach(self) -> Batched:
        return Batched(self.level, self.value.detach(), self.has_axis)

    def clone(self) -> Batched:
        return Batched(self.level, self.value.clone(), self.has_axis)

    def like(self, array: Any) -> Batched:
        """The same array for each element, in separate memory for each if this payload has the batch's axis."""
        if not self.has_axis:
            return Batched(self.level, _like(self.value, array), False)
        return Batched(self.level, _like(self.value, array[None].repeat(self.level.size, 0)))

    def assign(self, new: LevelPayload) -> None:
        assert isinstance(new, Batched)
        if new.has_axis and not self.has_axis:
            raise RuntimeError(
                "vmap: inplace arithmetic is not possible because a tensor that does not vary in vmap() would have to "
                "hold values that do.\n"
                "  What to do: compute a new tensor, as y + x for y += x, or write to a tensor made inside, e.g. with "
                "pullback.zeros_like(x)."
            )
        value = new.value if new.has_axis == self.has_axis else new.value[None]
        self.value.copy_(value)

    def item(self) -> Any:
        raise RuntimeError(
            "vmap: it looks like you are calling .item() on a Tensor, or that there is data-dependent control flow (an "
            "`if` on the value of a tensor): inside of vmap() there is not one value but many.\n"
            "  What to do: write it with operations on tensors, e.g. pullback.where(condition, a, b)."
        )

    tolist = item

    def as_number(self, kind: str) -> Any:
        return self.item()

    def __repr__(self) -> str:
        axis = "bdim=0" if self.has_axis else "bdim=None"
        return f"BatchedTensor(lvl={self.level.number}, {axis}, value={self.value!r})"


def _like(t: Tensor, array: Any) -> Tensor:
    return wrap(t._data.like(array)) if isinstance(t._data, LevelPayload) else wrap(array)


class Vmap(Level):
    """The level of one `vmap` over `size` elements. randomness: "error", "different" or "same".

    units: the unit vectors of a Jacobian, if they are what varies over the batch.
    """

    units: Sequence[Tensor] = ()

    def __init__(self, size: int, randomness: str = "error") -> None:
        super().__init__()
        self.size, self.randomness = size, randomness

    def constant(self, t: Tensor) -> Batched:
        return Batched(self, t, False)

    def lift(self, value: Tensor) -> Tensor:
        """The tensor of this level for a tensor with the axis of the batch in front."""
        return wrap(Batched(self, value))

    def lower(self, t: Any) -> Tensor:
        """The tensor, with the batch's axis in front, that a result of this level stands for."""
        held = inner(t, self)
        if isinstance(held, Batched) and held.has_axis:
            return held.value
        value = held.value if isinstance(held, Batched) else t
        return value[None].expand(self.size, *value.shape)

    def run(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rule = op.about.batch or (_aligned if op.elementwise else looped)
        given = (*args, *kwargs.values()) if kwargs else args
        if not self.any_varies(given) or len(args) > len(op.params) - len(op.keyword_only):
            found = op.unchecked(*mapped(self.value, args), **{k: mapped(self.value, v) for k, v in kwargs.items()})
            return _payloads(self, found, False)
        if isinstance(rule, str):
            rule = _NAMED[rule]
        if self._any_constant(given):  # a rule meets what varies, and plain tensors
            args = mapped(self._unless_varying, args)
            kwargs = {k: mapped(self._unless_varying, v) for k, v in kwargs.items()}
        return _payloads(self, rule(self, op, args, kwargs), True)

    def _any_constant(self, values: Any) -> bool:
        """Whether a constant of this level is among the arguments of an operation."""
        for value in values:
            if isinstance(value, Lifted):
                held: Any = value._data
                if type(held) is Batched and held.level is self and not held.has_axis:
                    return True
            elif isinstance(value, (tuple, list)) and self._any_constant(value):
                return True
        return False

    def _unless_varying(self, t: Tensor) -> Tensor:
        """The tensor behind a constant of this level; any other tensor itself."""
        return t if self.varies(t) else self.value(t)

    def constant_tensor(self, t: Tensor) -> Tensor:
        """A tensor of this level that is the same for each element."""
        return wrap(self.constant(t))

    def custom(self, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
        return forward_of_vmap(self, node, operands, enabled)

    def each(self, backward: Callable[..., Any], ctx: Any, gradients: tuple[Any, ...]) -> Any:
        return backward_of_each(self, backward, ctx, gradients)

    def kept(self, gradient: Tensor) -> Tensor:
        """The sum over the batch, as separate passes for each element would have added up."""
        return self.lower(gradient).sum(0)

    def varies(self, t: Tensor) -> bool:
        """Whether a value varies over the batch."""
        held: Any = t._data
        return type(held) is Batched and held.level is self and held.has_axis

    def any_varies(self, values: Any) -> bool:
        """Whether an argument of an operation varies over the batch."""
        for value in values:
            if isinstance(value, Lifted):
                if self.varies(value):
                    return True
            elif isinstance(value, (tuple, list)) and self.any_varies(value):
                return True
        return False

    def value(self, t: Tensor) -> Tensor:
        """The tensor behind it: all elements along the first axis, or a constant of this level."""
        held: Any = t._data
        return held.value if type(held) is Batched and held.level is self else t


class VmapWithWrites(Vmap):
    """The level of a call that may write values that vary to tensors that it made of values that do not.

    ``dy = zeros(2); dy[0] = y[1]`` is such a function of y. `vmap` refuses it, as PyTorch does, for a tensor that came
    from outside would carry the batch out of the transform. Here each such tensor has its former values at the end.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._before: list[tuple[Tensor, type[Tensor], Any, Any, bool]] = []

    @property
    def title(self) -> str:
        return "vmap"

    def take_in(self, t: Tensor) -> None:
        base = t if t._view is None else t._view.base
        looking = [base, *views_of(base)]
        if not all(map(can_join, looking)):
            super().take_in(t)
        whole = self.lift(before_write(base)[None].expand(self.size, *base.shape).clone())
        alike = [same_view(view, whole)._data for view in looking]
        for view, payload in zip(looking, alike, strict=True):
            unmark(view)
            self._before.append((view, type(view), view._data, view._edge, view._requires_grad))
            view.__class__, view._data = Lifted, payload
            view._edge, view._requires_grad = None, False

    def _close(self) -> None:
        super()._close()
        while self._before:
            t, kind, data, edge, requires_grad = self._before[-1]
            unmark(t)
            t.__class__, t._data, t._edge, t._requires_grad = kind, data, edge, requires_grad
            self._before.pop()


def behind_constants(t: Tensor) -> Tensor:
    """What a result stands for that is the same for each element of a batch: its graph may lead out of that level."""
    while isinstance(held := t._data, Batched) and not (held.has_axis or t._requires_grad):
        t = held.value
    return t


def _payloads(level: Vmap, found: Any, has_axis: bool) -> Any:
    """The results of an operation for all elements, as payloads of the level."""
    if isinstance(found, Tensor):
        return Batched(level, found, has_axis)
    if isinstance(found, (tuple, list)):
        parts = [_payloads(level, part, has_axis) for part in found]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    return found


def looped(level: Vmap, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the operation on each element and stack the results: always right, at the cost of a call for each."""

    def one(i: int) -> Any:
        def pick(t: Tensor) -> Tensor:
            value = level.value(t)
            return value if not level.varies(t) else value[i] if level.size else value.sum(0).to(value.dtype)

        return op.unchecked(*mapped(pick, args), **{k: mapped(pick, v) for k, v in kwargs.items()})

    if not level.size:  # zeros stand for an element: they show what shape and dtype the results would have
        return mapped(lambda t: t[:0].clone(), _stacked([one(0)], op))
    return _stacked([one(i) for i in range(level.size)], op)


def _stacked(results: list[Any], op: Op) -> Any:
    first = results[0]
    if isinstance(first, Tensor):
        if any(r._data.shape != first._data.shape for r in results):
            raise RuntimeError(
                f"vmap: the shape of the result of {op.name}() depends on values, and differs among those in the batch"
            )
        return np.stack(results)
    if isinstance(first, (tuple, list)):
        parts = [_stacked(list(column), op) for column in zip(*results, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    raise RuntimeError(
        errors.message(
            f"vmap: {op.name}() gives a {type(first).__name__}, of which there would be as many as in the batch",
            do="use an operation that gives a tensor",
        )
    )


def _aligned(level: Vmap, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the operation itself, with every operand's axes at the end and axes of length 1 after the batch's."""
    rank = max([a._data.ndim for a in args if isinstance(a, Tensor)])
    dtype = None
    if op.elementwise:
        chosen = [args[i]._data if isinstance(args[i], Tensor) else args[i] for i in op.promoted if i < len(args)]
        chosen = [p for p in chosen if p is not None]
        # batched, a 0-d operand would pass as 1-d in the promotion of dtypes
        if 0 in [getattr(p, "ndim", 1) for p in chosen]:
            dtype = dtypes.result_type(chosen)
            dtype = None if op.floats and dtype.kind in "biu" else dtype
    whole = []
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            value = level.value(a)
            if level.varies(a) and a._data.ndim < rank:
                shape = a._data.shape
                value = value.reshape(level.size, *(1,) * (rank - len(shape)), *shape)
            if dtype is not None and i in op.promoted and value._data.dtype != dtype:
                value = value.to(dtype)
            a = value
        whole.append(a)
    return op.unchecked(*whole, **kwargs)


def _leading(level: Vmap, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As `_aligned`, for operations that take a batch in front."""
    if any_instance(kwargs.values(), Tensor) or any_instance([a for a in args if not isinstance(a, Tensor)], Tensor):
        return looped(level, op, args, kwargs)
    return _aligned(level, op, args, kwargs)


def _matrices(level: Vmap, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As `_leading`, for operations on matrices: the batch's axis is not an axis of a matrix."""
    return (looped if args[0]._data.ndim < 2 else _leading)(level, op, args, kwargs)


def refused(level: Vmap, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Refuse an operation whose result's shape depends on values, even if the shapes in a batch happen to agree."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. "
        f"{op.about.said or op.name + '()'} gives a result of dynamic shape: how long it is depends on values, so it "
        "may differ among those in the batch.\n"
        "  What to do: keep the shape, e.g. pullback.where(mask, x, 0)."
    )


Rule = Callable[[Vmap, "Op", tuple[Any, ...], dict[str, Any]], Any]
_NAMED: dict[str, Rule] = {
    "leading": _leading,
    "matrices": _matrices,
    "loop": looped,
    "refused": refused,
}

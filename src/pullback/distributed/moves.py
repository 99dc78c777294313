"""The differentiable collectives: each is linear, takes tensors of one placement, and names its adjoint.

| move | takes | gives | adjoint |
| --- | --- | --- | --- |
| AllReduce | varying | replicated | Vary |
| Vary | replicated | varying | AllReduce |
| SumParts | partial | replicated | the identity of replicated tensors |
| ToParts | varying | partial | Vary |
| Broadcast(src) | varying | replicated | KeepAt(src) |
| AllGather, GatherUneven | varying | n replicated | TakeOwn, TakeUneven |
| Reduce(dst) | varying | varying | Spread(dst) |
| Gather(dst) | varying | n varying | Scatter(dst) |
| ReduceScatter | n varying | varying | ShareOut |
| AllToAll | n varying | n varying | AllToAll |
| Exchange(dst, src) | varying | varying | Exchange(src, dst) |

Since every adjoint is again in the table, derivatives of all orders follow, in both modes.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .. import errors
from ..autograd.function import Function
from ..autograd.node import AccumulateGrad, leaf_edge
from ..table.levels import highest
from ..tensor.modes import thread
from ..tensor.tensor import Lifted, Tensor, is_tracked, need_tensor, wrap
from . import messages
from .meeting import SAID, UNCLEAR, Refusals, compare, look_at_leaves, need_same_values, note, tell_refused
from .placements import PARTIAL, REPLICATED, VARYING, Placed, level_of, placed_on, placement
from .process_group import Group, group_of

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class Move:
    """One linear collective of a group. name: what the user called; takes, gives: placements.

    talks: whether ranks communicate. many: whether it returns several tensors. alike: whether shapes are the same on
    every rank. joins: whether what every rank gave is in a result of all.
    """

    group: Group
    name: str

    takes: ClassVar[str] = VARYING
    gives: ClassVar[str] = VARYING
    talks: ClassVar[bool] = True
    many: ClassVar[bool] = False
    alike: ClassVar[bool] = True
    joins: ClassVar[bool] = False

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Its results on arrays: the message is a part of what `move` has said, and says nothing itself."""
        raise NotImplementedError

    @functools.cached_property
    def adjoint(self) -> Move:
        """The move of cotangents back."""
        raise NotImplementedError

    def batched(self, size: int) -> Move:
        """The same move of tensors with one axis more in front."""
        return self

    @property
    def details(self) -> str:
        """What the ranks have to agree in, besides shapes and dtypes."""
        return ""


class AllReduce(Move):
    gives, joins = REPLICATED, True

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [messages.all_reduce(self.group, a, "SUM", "") for a in arrays]

    @functools.cached_property
    def adjoint(self) -> Move:
        return Vary(self.group, self.name)


class _Here(Move):
    """A move within each rank: the values stay what they are."""

    talks = False

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [a.copy() for a in arrays]


class Vary(_Here):
    takes = REPLICATED

    @functools.cached_property
    def adjoint(self) -> Move:
        return AllReduce(self.group, self.name)


class SumParts(AllReduce):
    takes = PARTIAL

    @functools.cached_property
    def adjoint(self) -> Move:
        return Same(self.group, self.name)


class Same(_Here):
    takes, gives = REPLICATED, REPLICATED

    @functools.cached_property
    def adjoint(self) -> Move:
        return self


class ToParts(_Here):
    gives = PARTIAL

    @functools.cached_property
    def adjoint(self) -> Move:
        return Vary(self.group, self.name)


@dataclasses.dataclass(frozen=True)
class _Rooted(Move):
    root: int = 0

    @property
    def details(self) -> str:
        return f"rank {self.group.ranks[self.root]}"


class Broadcast(_Rooted):
    gives = REPLICATED

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [messages.broadcast(self.group, a, self.root, "") for a in arrays]

    @functools.cached_property
    def adjoint(self) -> Move:
        return KeepAt(self.group, self.name, self.root)


class KeepAt(_Rooted):
    takes, talks = REPLICATED, False

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [a.copy() if self.group.rank == self.root else np.zeros_like(a) for a in arrays]

    @functools.cached_property
    def adjoint(self) -> Move:
        return Broadcast(self.group, self.name, self.root)


class AllGather(Move):
    gives, many, joins = REPLICATED, True, True

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return messages.all_gather(self.group, arrays[0], "")

    @functools.cached_property
    def adjoint(self) -> Move:
        return TakeOwn(self.group, self.name)

    @property
    def details(self) -> str:
        return "in equal parts, else uneven=True" if self.name.startswith("all_gather") else ""


class TakeOwn(Move):
    takes, talks = REPLICATED, False

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [arrays[self.group.rank].copy()]

    @functools.cached_property
    def adjoint(self) -> Move:
        return AllGather(self.group, self.name)


@dataclasses.dataclass(frozen=True)
class _Uneven(Move):
    """shapes: those of the parts of the ranks."""

    alike: ClassVar[bool] = False

    shapes: tuple[tuple[int, ...], ...] = ()

    def batched(self, size: int) -> Move:
        return dataclasses.replace(self, shapes=tuple((size, *shape) for shape in self.shapes))

    @property
    def details(self) -> str:
        return str(self.shapes)


class GatherUneven(_Uneven, AllGather):
    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return messages.all_gather(self.group, arrays[0], "", self.shapes)

    @functools.cached_property
    def adjoint(self) -> Move:
        return TakeUneven(self.group, self.name, self.shapes)


class TakeUneven(_Uneven, TakeOwn):
    @functools.cached_property
    def adjoint(self) -> Move:
        return GatherUneven(self.group, self.name, self.shapes)


class Reduce(_Rooted):
    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [messages.reduce(self.group, arrays[0], self.root, "SUM", "")]

    @functools.cached_property
    def adjoint(self) -> Move:
        return Spread(self.group, self.name, self.root)


class Spread(_Rooted):
    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [messages.broadcast(self.group, arrays[0], self.root, "")]

    @functools.cached_property
    def adjoint(self) -> Move:
        return Reduce(self.group, self.name, self.root)


class Gather(_Rooted):
    many = True

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return messages.gather(self.group, arrays[0], self.root, "")

    @functools.cached_property
    def adjoint(self) -> Move:
        return Scatter(self.group, self.name, self.root)


class Scatter(_Rooted):
    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [messages.scatter(self.group, arrays, self.root, "")]

    @functools.cached_property
    def adjoint(self) -> Move:
        return Gather(self.group, self.name, self.root)


class ReduceScatter(Move):
    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [messages.reduce_scatter(self.group, arrays, "SUM", "")]

    @functools.cached_property
    def adjoint(self) -> Move:
        return ShareOut(self.group, self.name)


class ShareOut(Move):
    many = True

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return messages.all_gather(self.group, arrays[0], "")

    @functools.cached_property
    def adjoint(self) -> Move:
        return ReduceScatter(self.group, self.name)


@dataclasses.dataclass(frozen=True)
class AllToAll(Move):
    """given, taken: the shapes of what goes to each rank, and of what comes from each."""

    many: ClassVar[bool] = True
    alike: ClassVar[bool] = False

    given: tuple[tuple[int, ...], ...] = ()
    taken: tuple[tuple[int, ...], ...] = ()

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        kinds = [(shape, arrays[0].dtype) for shape in self.taken]
        return messages.all_to_all(self.group, arrays, kinds, "")

    @functools.cached_property
    def adjoint(self) -> Move:
        return AllToAll(self.group, self.name, self.taken, self.given)

    def batched(self, size: int) -> Move:
        given, taken = (tuple((size, *shape) for shape in shapes) for shapes in (self.given, self.taken))
        return AllToAll(self.group, self.name, given, taken)


@dataclasses.dataclass(frozen=True)
class Exchange(Move):
    """dst, src: the ranks that this one sends to and receives from; None for none."""

    dst: int | None = None
    src: int | None = None

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return [messages.exchange(self.group, arrays[0], self.dst, self.src, "", self.alike)]

    @functools.cached_property
    def adjoint(self) -> Move:
        return Exchange(self.group, self.name, self.src, self.dst)


class Border(Exchange):
    """An exchange between neighbours, whose shapes may differ from those of other ranks."""

    alike = False

    @functools.cached_property
    def adjoint(self) -> Move:
        return Border(self.group, self.name, self.src, self.dst)


def group_for(what: str, t: Any, group: Group | None) -> Group:
    """The group of a collective of a tensor, see `placed_on`. What is no tensor all ranks are told of: TypeError."""
    if not isinstance(t, Tensor):
        with Refusals(group_of(group), what):
            need_tensor(what, t)
    return placed_on(t, group)


# As nodes of the graph ------------------------------------------------------------------------------------------------


def move(how: Move, *tensors: Tensor) -> Any:
    """The result of a move of tensors: a tensor, or a tuple of them; recorded if it is on any rank."""
    try:  # faster than `Refusals`
        levels = _checked(how, tensors)
    except Exception as error:
        if how.talks:
            tell_refused(how.group, how.name, error)
        raise
    tracked = own = thread.modes.grad_enabled and any(map(is_tracked, tensors))
    unclear = None
    if how.talks:
        flags: int = tracked
        leaves, passed = _not_said(tensors) if own and how.joins and how.group.size > 1 else ((), ())
        if leaves:
            flags |= UNCLEAR
        flags = compare(how.group, how.name, _signature(how, tensors, levels), flags)
        if flags & UNCLEAR:
            unclear = look_at_leaves(how.group, how.name, leaves)
        if unclear is None:
            _SEEN.update(passed)
        tracked = bool(flags) and thread.modes.grad_enabled
    if not tracked and not levels:  # there is nothing to record, and nobody else to ask
        return Moved.forward(how, tracked, None, *tensors)
    token = None
    if tracked and not own and tensors[0]._data.dtype.kind in "fcV":  # another rank wants the gradient
        token = wrap(np.zeros(()))
        token._requires_grad = True
        SAID.add(leaf_edge(token)[0])
    found = Moved.apply(how, tracked, token, *tensors)
    if unclear is not None and (node := (found[0] if how.many else found).grad_fn) is not None:
        unclear(node)
    return found


_SEEN: weakref.WeakSet[Any] = weakref.WeakSet()
"""Nodes behind which all leaves have been said, so that a loop with a collective in each turn sees each node once."""

_OFTEN = 16  # one in so many nodes is noted there, and each communication


def _not_said(tensors: Sequence[Tensor]) -> tuple[list[Any], list[Any]]:
    """The nodes of leaves that tensors were computed from, if nobody has said what these are to the ranks; and some of
    the nodes between."""
    stack = [t._edge[0] if t._edge is not None else leaf_edge(t)[0] for t in tensors if t._requires_grad]
    if len(stack) == 1 and stack[0] in SAID:
        return [], []
    found: list[Any] = []
    passed: list[Any] = []
    seen: set[Any] = set()
    while stack:
        node = stack.pop()
        if node in seen or node in _SEEN:
            continue
        if type(node) is AccumulateGrad:
            if node not in SAID and node.transform is None and isinstance(node._data, np.ndarray) and node._data.size:
                found.append(node)
        elif type(how := getattr(node, "how", None)) is not Vary:
            if how is not None or len(seen) % _OFTEN == 0:
                passed.append(node)
            stack += [edge[0] for edge in node._edges if edge is not None]
        seen.add(node)
    return found, passed


def _checked(how: Move, tensors: Sequence[Tensor]) -> list[str]:
    """The titles of the transforms that tensors belong to; refused are those that the move cannot take."""
    levels: list[str] = []
    for t in tensors:
        found = VARYING if type(t._data) is np.ndarray else placement(t)
        if found != how.takes:
            raise _misplaced(how, found)
        if isinstance(t, Lifted) and type(t._data) is not Placed:
            levels = _transforms(how, tensors)
        elif type(t._data) is not np.ndarray:
            _array(how, t)
    if thread.modes.units:
        _refuse_units(how, thread.modes.units)
    return levels


def _signature(how: Move, tensors: Sequence[Tensor], levels: Sequence[str]) -> str:
    """What the ranks have to agree in."""
    shapes = tuple([t._data.shape for t in tensors]) if how.alike else None
    return _shown(how.name, tensors[0].dtype, shapes, how.details, tuple(levels))


@functools.lru_cache(1000)
def _shown(name: str, dtype: Any, shapes: Any, details: str, levels: tuple[str, ...]) -> str:
    form = dtype if shapes is None else f"{dtype}{[[*shape] for shape in shapes]}"
    return f"{name} {form} {details}{' in ' if levels else ''}{', '.join(levels)}"


def _transforms(how: Move, tensors: Sequence[Tensor]) -> list[str]:
    """The titles of the transforms that tensors belong to, the innermost last; RuntimeError for one that is refused."""
    found: list[str] = []
    while (level := highest(tensors)) is not None and level.number:
        found.append(level.title)
        _refuse_units(how, getattr(level, "units", ()))
        held = [t._data.inside if isinstance(t, Lifted) and t._data.level is level else t for t in tensors]
        tensors = [t for t in held if t is not None]
    return found


def _refuse_units(how: Move, units: Sequence[Tensor]) -> None:
    """Refuse to send the unit vectors of a Jacobian, or what was computed from them, if each rank has its own."""
    if how.talks and how.takes != REPLICATED and how.group.size > 1 and any(placement(u) == VARYING for u in units):
        raise RuntimeError(
            errors.message(
                f"{how.name} in a gradcheck, a Jacobian or a Hessian of varying tensors: every rank has its own unit "
                "vectors, and the results would be sums over the ranks",
                do="jacrev of a replicated result, or jacfwd by a replicated argument; for the part of one rank, "
                "jvp or vjp with a unit vector on that rank and zeros on the others; gradcheck of all ranks' tensors "
                "as one replicated argument, lambda all_x: f(distributed.varying(all_x)[rank])",
            )
        )


def _misplaced(how: Move, found: str) -> RuntimeError:
    """The error of a tensor of another placement than a move takes."""
    if found == REPLICATED and how.gives == REPLICATED:
        do = "leave it out: every rank has the value; or distributed.varying(x) if each rank's copy counts"
    elif found == REPLICATED:
        do = "distributed.varying(x), whose gradient is summed over the ranks"
    else:  # partial; a varying tensor meets no move that takes another one, as gradients are looked at before
        do = "sum it first: distributed.nn.functional.all_reduce(x)"
    return RuntimeError(errors.message(how.name, expected=f"a {how.takes} tensor", found=f"a {found} one", do=do))


def _array(how: Move, t: Tensor) -> Array:
    """This rank's values of a tensor."""
    data = t._data
    if isinstance(data, Placed):
        if data.level is not level_of(how.group):
            raise RuntimeError(
                errors.message(how.name, expected=f"a tensor on {how.group}", found=f"one on {data.level.group}")
            )
        data = data.value._data
    if not isinstance(data, np.ndarray):
        raise TypeError(
            errors.message(
                f"{how.name}: a {type(data).__name__} cannot be sent",
                expected="a tensor that holds an array",
                do="compile the functions around a collective: f = compile(...), and then all_reduce(f(x))",
            )
        )
    return data


class Moved(Function):
    """A move as a node of the graph."""

    moves_between_ranks = True

    @staticmethod
    def forward(how: Move, tracked: bool, token: Tensor | None, *tensors: Tensor) -> Any:
        arrays = [_array(how, t) for t in tensors]
        if how.takes == REPLICATED and how.group.world.checking:
            for a in arrays:
                need_same_values(how.group, a, how.name)
        found = [wrap(a) for a in how.run(arrays)]
        if how.gives != VARYING:
            level = level_of(how.group)
            found = [level.place(t, how.gives) for t in found]
        return tuple(found) if how.many else found[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        how, tracked, _, *tensors = inputs
        ctx.how = how
        ctx.set_materialize_grads(False)
        ctx.given = [(t._data.shape, t._data.dtype) for t in tensors]
        ctx.kinds = [(t._data.shape, t._data.dtype) for t in (output if how.many else (output,))]
        first = output[0] if how.many else output
        if tracked and not isinstance(first, Lifted) and how.adjoint.talks and any(ctx._edges):
            note(how.group, ctx, how.name, *ctx.kinds[0])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        adjoint = ctx.how.adjoint
        given = [_zeros(adjoint, *kind) if g is None else g for g, kind in zip(grads, ctx.kinds, strict=True)]
        found = move(adjoint, *given)
        return (None, None, None, *(found if adjoint.many else (found,)))

    @staticmethod
    def jvp(ctx: Any, how: Any, tracked: Any, token: Any, *tangents: Any) -> Any:
        given = [_zeros(ctx.how, *kind) if t is None else t for t, kind in zip(tangents, ctx.given, strict=True)]
        return move(ctx.how, *given)

    @staticmethod
    def vmap(info: Any, in_dims: Any, how: Move, tracked: bool, token: Tensor, *tensors: Tensor) -> Any:
        whole = [
            t[None].expand(info.batch_size, *t.shape) if axis is None else t.movedim(axis, 0)
            for t, axis in zip(tensors, in_dims[3:], strict=True)
        ]
        found = Moved.apply(how.batched(info.batch_size), tracked, token, *whole)
        return found, (0,) * len(found) if how.many else 0


def _zeros(how: Move, shape: Any, dtype: Any) -> Tensor:
    """The gradient of what no gradient came to."""
    zeros = wrap(np.zeros(shape, dtype))
    return level_of(how.group).place(zeros, how.takes) if how.takes != VARYING else zeros

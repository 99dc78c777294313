"""Placements: what a tensor means to the ranks together, carried through every operation.

A plain tensor is *varying*: each rank has its own. A *replicated* tensor is one value that every rank holds; a
*partial* one is the sum of what the ranks hold. These two are tensors of a level, as those of a transform are:
`Placement` is a level below all others, so no operation, rule, Function or transform computes with them without
asking it. It computes on the tensors inside, and gives the result the placement that follows. Where none follows it
refuses, and says why.

The gradient of a replicated tensor is replicated, that of a varying one varying, that of a partial one replicated. So
the placements of a backward pass follow from those of the forward one, and it is checked by the same rule.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.engine import execute
from ..autograd.structure import Door
from ..diagnose.places import arguments
from ..table.calls import interpreted_at
from ..table.levels import Around, Level, call_body, mapped
from ..table.op import Op
from ..tensor.memory import LevelPayload
from ..tensor.modes import CROSSINGS, LEVELS, Setting, lowered, thread, within
from ..tensor.nested import instances, leaves
from ..tensor.tensor import Lifted, Tensor, need_tensor, wrap
from .board import here
from .process_group import Group, group_of

REPLICATED, VARYING, PARTIAL = "replicated", "varying", "partial"

_MEANS = {
    REPLICATED: "replicated (one value, the same on every rank)",
    VARYING: "varying (each rank its own)",
    PARTIAL: "partial (to be summed over the ranks)",
}

_ADDING = {"add", "sub", "neg", "positive", "clone"}
"""Operations of partial tensors alone whose result is partial."""

_SCALING = {"mul", "div"}
"""Operations of a partial tensor and a number whose result is partial."""

_AFFINE = {"nn.functional.pad", "constant_pad_nd", "nn.functional.constant_pad"}
"""Linear entries that can also add something, which the ranks would add each."""


class Placed(Around):
    """What a replicated or a partial tensor holds: this rank's value, a plain tensor outside every graph."""

    __slots__ = ("kind",)

    level: Placement

    def __init__(self, level: Placement, value: Tensor, kind: str) -> None:
        self.level, self.value, self.kind = level, value, kind

    def of(self, value: Tensor) -> Placed:
        return Placed(self.level, value, self.kind)

    @property
    def requires_grad(self) -> bool:
        return False  # the graph is that of the tensor itself

    def like(self, array: Any) -> Placed:
        """An array that follows from the shape alone is the same on every rank."""
        return Placed(self.level, wrap(array), REPLICATED)

    def from_shape(self, array: Any) -> Any:
        return self.like(array)

    @property
    def layout(self) -> Any:
        return self.value._data

    def memory(self) -> Any:
        """This rank's array, which is the same on every rank, and is written to on every rank alike."""
        return self._readable()._data

    @property
    def as_parameter(self) -> tuple[str, str]:
        """What an error calls it, and advises, where a module is given it as a parameter."""
        return f"a {self.kind} one", (
            "DistributedDataParallel(module) sums the gradients of a module's own parameters; or call the module with "
            "others: func.functional_call(module, {name: distributed.varying(p), ...}, x)"
        )

    to_clip = "distributed.clip_grad_norm_(parameters, max_norm), which counts replicated gradients once"

    @property
    def to_save(self) -> str:
        """What an error advises where it is to be written to a file."""
        return (
            f"a {self.kind} tensor belongs to this process group: save distributed.varying(x.detach()), and "
            "replicate() what is loaded"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Placed:
        return self.of(copy.deepcopy(self.value, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(errors.message(f"a {self.kind} tensor cannot be pickled", do=self.to_save))

    def assign(self, new: LevelPayload) -> None:
        assert isinstance(new, Placed)
        if new.kind != self.kind:
            raise self.level.refused("a write in place", [self.kind, new.kind])
        super().assign(new)

    def check(self, what: str, t: Tensor, other: Any) -> None:
        if what == "gradient":
            self._check_gradient(t, other)
        elif (of := placement(t)) != (found := placement(other)):
            raise RuntimeError(
                errors.message(
                    f"the {what} of a {of} tensor at {here()}",
                    expected=_MEANS[of],
                    found=_MEANS[found],
                    do=f"give distributed.{'replicate' if of == REPLICATED else of}() of it",
                )
            )

    def _check_gradient(self, t: Tensor, g: Any) -> None:
        """A replicated and a partial tensor have replicated gradients, a varying one has varying ones."""
        if type(t._data) is type(given := g._data) is Placed and given.level is self.level and given.kind == REPLICATED:
            return  # as it is most often
        if (of := placement(t)) == VARYING:
            raise RuntimeError(
                errors.message(
                    f"the gradient of a varying tensor at {here()}",
                    expected=_MEANS[VARYING],
                    found=_MEANS[placement(g)],
                    do="pass distributed.varying(g)",
                )
            )
        self.level.need_replicated(g, f"the gradient of a {of} tensor")

    def _readable(self) -> Tensor:
        if not self.level.open:
            raise self.escaped()
        if self.kind == PARTIAL:
            raise RuntimeError(
                errors.message(
                    "a look at the values of a partial tensor: this rank holds a part alone",
                    do="sum it first: distributed.nn.functional.all_reduce(x)",
                )
            )
        return self.value

    def item(self) -> Any:
        return self._readable().item()

    def tolist(self) -> Any:
        return self._readable().tolist()

    def as_number(self, kind: str) -> Any:
        return self._readable()._number(kind)

    def _no_array(self, *args: Any, **kwargs: Any) -> Any:
        return self._readable().numpy()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            errors.message(
                f"a {self.kind} tensor is not converted to an array by itself: its placement would be lost",
                do="write x.numpy() for the values alone",
            )
        )

    def escaped(self) -> RuntimeError:
        return RuntimeError(
            errors.message(
                f"a {self.kind} tensor of a process group that has been destroyed",
                do="keep x.numpy() or x.detach() values before distributed.destroy_process_group()",
            )
        )

    def __repr__(self) -> str:
        return f"{self.value!r}"[:-1] + f", placement={self.kind!r})"


def _in_a_rule() -> bool:
    """Whether a rule of the library computes, and no code of the user's that it has called.

    In a backward pass: what a rule has beside the gradient it got from shapes, or saved in the forward pass, where it
    was checked. In a transform, which runs an operation of the user's as others: what these have beside its operands,
    unless one of them is varying itself.
    """
    frame: Any = sys._getframe(1)
    outermost = None
    while frame is not None and frame.f_code is not execute.__code__:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("pullback", "numpy"):
            return outermost is not None and not _has_varying(arguments(outermost))
        if frame.f_code in _OF_AN_OPERATION:
            outermost = frame
        frame = frame.f_back
    return frame is not None


_OF_AN_OPERATION = (interpreted_at.__code__, call_body.__code__)


def _has_varying(values: Any) -> bool:
    """Whether an array, or a varying tensor, is among some operands, or among what transforms add to these."""
    for value in leaves(values):
        data = getattr(value, "_data", value)
        if isinstance(data, np.ndarray):
            return True
        if isinstance(data, LevelPayload) and not isinstance(data, Placed) and _has_varying(list(data.held)):
            return True
    return False


class Placement(Level):
    """The level of the tensors that are placed on one group: below those of all transforms, and always open."""

    outlives_calls = shares_graph = True

    def __init__(self, group: Group) -> None:
        super().__init__()
        self.group, self.open = group, True
        LEVELS.add(self)
        CROSSINGS.add(self)

    def close(self) -> None:
        """End: its tensors can no longer be computed with."""
        self.open = False
        LEVELS.discard(self)
        CROSSINGS.discard(self)

    @property
    def title(self) -> str:
        return "distributed"

    # Which placement follows ---------------------------------------------------------------------------------------

    def kind_of(self, t: Any) -> str:
        """The placement of an operand, "" for one that follows from shapes alone."""
        data = t._data if isinstance(t, Tensor) else None
        if isinstance(data, Placed):
            if data.level is not self:
                raise RuntimeError(
                    errors.message(
                        f"tensors that are placed on different groups, {self.group} and {data.level.group}, meet",
                        do="say varying(x) of one of them",
                    )
                )
            return data.kind
        if getattr(t, "_requires_grad", False):
            return VARYING
        # what the library's own compositions make, see `_Body`, is the same on every rank, and so is what its rules do
        return "" if self in thread.modes.levels or _in_a_rule() else VARYING

    def joined(self, op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """The placement of ``op(*args)``; RuntimeError if none follows."""
        operands = [v for v in leaves((args, kwargs)) if isinstance(v, (Tensor, np.ndarray))]
        found = [kind for v in operands if (kind := self.kind_of(v))]
        if set(found) == {REPLICATED}:
            return REPLICATED
        if set(found) == {PARTIAL} and len(found) == len(operands) and _adds_up(op, args, kwargs):
            return PARTIAL
        raise self.refused(f"{_title(op)}()", found)

    def refused(self, what: str, kinds: Sequence[str]) -> RuntimeError:
        """The error of an operation on tensors of these placements."""
        meant = " and ".join(_MEANS[kind] for kind in dict.fromkeys(kinds))
        if PARTIAL in kinds:
            do = "sum the partial one first: distributed.nn.functional.all_reduce(x)"
        else:
            do = (
                "distributed.varying(x) of the replicated one (its gradient is summed over the ranks), or "
                "distributed.replicate(x) of the other if it is the same on every rank"
            )
        met = "tensors that are" if len(set(kinds)) > 1 else "a tensor that is"
        return RuntimeError(
            errors.message(f"{what} at {here()}: {met} {meant}, from which no placement follows", do=do)
        )

    def need_replicated(self, g: Any, what: str) -> None:
        """Refuse what is not replicated on this group."""
        data = getattr(g, "_data", g)
        while isinstance(data, LevelPayload) and not isinstance(data, Placed) and data.inside is not None:
            data = data.inside._data
        if not (isinstance(data, Placed) and data.level is self and data.kind == REPLICATED):
            found = data.kind if isinstance(data, Placed) else VARYING
            raise RuntimeError(
                errors.message(
                    f"{what} at {here()}",
                    expected=_MEANS[REPLICATED],
                    found=_MEANS[found],
                    do="distributed.replicate(g) if it is the same on every rank, else sum it: all_reduce(g)",
                )
            )

    # Levels --------------------------------------------------------------------------------------------------------

    def value(self, t: Tensor) -> Tensor:
        """What this rank holds of a tensor."""
        data = t._data
        return data.value if isinstance(data, Placed) and data.level is self else t

    def place(self, t: Tensor, kind: str) -> Tensor:
        """A tensor with a placement around a plain one."""
        return wrap(Placed(self, t, kind))

    def array(self, a: Any) -> Any:
        """An array among the operands: rules make some from shapes and masks; one of the user's is varying."""
        same = isinstance(a, np.generic) or self.kind_of(a) == ""  # a number is taken to be the same, as Python's are
        return self.place(wrap(a), REPLICATED) if same else wrap(a)

    def constant(self, t: Tensor) -> Placed:
        if self.kind_of(t):
            raise self.refused("an operation", [REPLICATED, VARYING])
        return Placed(self, t, REPLICATED)

    def run(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kind = self.joined(op, args, kwargs)
        levels = {"levels": (*thread.modes.levels, self)}  # so that it is asked for random numbers
        given, named = mapped(self.value, args), {k: mapped(self.value, v) for k, v in kwargs.items()}
        found = within(thread.modes, levels, op.unchecked, *given, **named)
        if kind == PARTIAL and any(t.dtype.numpy.kind not in "fcV" for t in instances((found,), Tensor)):
            raise self.refused(f"{_title(op)}()", [kind])  # what is rounded, or compared, does not add up
        return self._payloads(found, kind)

    def _payloads(self, found: Any, kind: str) -> Any:
        if isinstance(found, Tensor):
            return Placed(self, found, kind)
        if isinstance(found, (tuple, list)):
            parts = [self._payloads(part, kind) for part in found]
            return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
        return found

    def lift(self, t: Tensor) -> Tensor:
        """A plain tensor, which is the same on every rank, as a replicated one."""
        return self.place(t, REPLICATED)

    def check_alone(self, results: Sequence[Tensor]) -> None:
        """Refuse to check a function against finite differences on each rank, where it has varying results."""
        if self.group.size > 1 and any(t._requires_grad and placement(t) == VARYING for t in results):
            raise RuntimeError(
                errors.message(
                    f"gradcheck() at {here()}: a varying result of replicated inputs, whose gradients add up those of "
                    "all ranks, while finite differences are those of one",
                    do="return a replicated result: all_reduce() or all_gather() of it",
                )
            )

    def primal(self, t: Any) -> Any:
        """For random numbers, which are refused before."""
        return t

    def refuse_random(self) -> None:
        raise RuntimeError(
            errors.message(
                f"at {here()}: random numbers for a placed tensor; each rank draws its own, so the result would not be "
                "the same on every rank",
                do="distributed.varying(x) first, or draw on one rank and broadcast",
            )
        )

    def inside(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Body:
        operands = [v for v in leaves((args, kwargs)) if isinstance(v, (Tensor, np.ndarray))]
        kinds = {kind for v in operands if (kind := self.kind_of(v))}
        if len(kinds) > 1 or VARYING in kinds:
            raise self.refused(f"{_title(op)}()", sorted(kinds))
        return _Body(self)

    def custom(self, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
        cls = node._forward_cls
        if getattr(cls, "moves_between_ranks", False):
            return list(lowered(0, node._door.forward, node, operands))
        kinds = [kind for t in operands if isinstance(t, (Tensor, np.ndarray)) and (kind := self.kind_of(t))]
        if set(kinds) != {REPLICATED}:
            raise self.refused(f"{cls.__name__}.apply()", kinds)
        node._door = _PlacedDoor(self, node._door)
        return [self._marked(t) for t in lowered(0, node._door.forward, node, operands)]

    def _marked(self, t: Any) -> Any:
        """A result that a user's code computed through arrays, from replicated tensors alone."""
        return self.place(t.detach(), REPLICATED) if isinstance(t, Tensor) and type(t) is Tensor else t

    def each(self, backward: Any, ctx: Any, gradients: tuple[Any, ...]) -> Any:
        found = backward(ctx, *gradients)
        return mapped(self._marked, found) if isinstance(found, (tuple, Tensor)) else found

    def take_in(self, t: Tensor) -> None:
        raise self.refused("a write in place", [VARYING, REPLICATED])


class _Body(Setting):
    """The context of the body of one of the library's own compositions: the level is among those that run."""

    _mode = "levels"

    def __init__(self, level: Placement) -> None:
        super().__init__()
        self._level = level

    def _value(self, before: tuple[Level, ...]) -> tuple[Level, ...]:
        return (*before, self._level)


class _PlacedDoor(Door):
    """The methods of a user's Function of replicated tensors: gradients that went through arrays are replicated."""

    __slots__ = ("_level",)

    def __init__(self, level: Placement, door: Door) -> None:
        super().__init__(door.arguments, door._names)
        self._level = level

    def backward(self, ctx: Any, *grads: Any) -> Any:
        found = super().backward(ctx, *[self._level._marked(g) for g in grads])
        if isinstance(found, Tensor):
            return self._level._marked(found)
        return tuple(map(self._level._marked, found)) if isinstance(found, (tuple, list)) else found


def _title(op: Op) -> str:
    """The name of an operation, as errors show it."""
    return op.name.lstrip("_")


def _adds_up(op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the sum over the ranks of an operation on partial tensors is the operation on the sums."""
    tensors = list(instances(args, Tensor))
    numbers = [a for a in (*args, *kwargs.values()) if isinstance(a, (int, float, complex))]  # True is one, too
    if op.name in _SCALING:
        return len(tensors) == 1 and (op.name == "mul" or isinstance(args[0], Tensor))
    if op.name in _ADDING:
        return len(tensors) == 2 or (len(tensors) == 1 and not numbers)
    return op.kind == "linear" and op.name not in _AFFINE and (len(tensors) == 1 or op.joins)


def level_of(group: Group) -> Placement:
    """The level of a group's tensors, made when first needed: until then no operation looks for it."""
    if group.level is None:
        group.level = Placement(group)
    return group.level


def placement(x: Tensor) -> str:
    """The placement of a tensor: ``"replicated"``, ``"varying"`` or ``"partial"``.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> x = pullback.ones(2)
    >>> dist.placement(x), dist.placement(dist.replicate(x))
    ('varying', 'replicated')
    >>> dist.destroy_process_group()
    """
    data = need_tensor("placement()", x)._data
    while isinstance(data, LevelPayload) and not isinstance(data, Placed) and data.inside is not None:
        data = data.inside._data
    return data.kind if isinstance(data, Placed) else VARYING


def kind_of(x: Any) -> str:
    """The placement of a value; "" for what is no placed tensor."""
    data = x._data if isinstance(x, Tensor) else x
    return data.kind if isinstance(data, Placed) else ""


def is_placed(x: Any) -> bool:
    """Whether a tensor is replicated or partial, at the level of placements itself."""
    return isinstance(x, Lifted) and isinstance(x._data, Placed)


def placed_on(x: Tensor, group: Group | None) -> Group:
    """The group of a tensor: that it is placed on, or the given one."""
    if is_placed(x) and group is None:
        return x._data.level.group
    return group_of(group)

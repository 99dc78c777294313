"""User-defined Functions under transforms: through the `vmap` and `jvp` that they define."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from .. import errors
from ..autograd.context import FunctionNode
from ..autograd.function import Function
from ..autograd.node import begin
from ..autograd.outputs import check_saved
from ..autograd.structure import Door, changed
from ..table.levels import depth, highest, inner
from ..tensor.memory import INFERENCE
from ..tensor.modes import Setting, lowered
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Tensor, is_tracked
from .user_methods import call_jvp, call_vmap


class recording(Setting):  # noqa: N801 - a context manager
    """A context in which operations are recorded, or not."""

    _mode = "grad_enabled"

    def __init__(self, enabled: bool) -> None:
        super().__init__()
        self._enabled = enabled

    def _value(self, before: bool) -> bool:
        return self._enabled


def forward_of_jvp(level: Any, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
    """The results of a Function on duals: forward of the primals, and its `jvp` of the tangents."""
    cls, door = node._forward_cls, node._door
    moves = _check_jvp(cls, _any(operands, lambda t: level.lower(t)[1] is not None))
    primals = _each(level.primal, operands)
    if cls._contract.separate:
        with recording(enabled):
            outs = door.call(cls.apply, primals)
        ctx = _context(cls, node, door)
        door.setup_context(ctx, primals, outs)
        _count_once(ctx._dirty, ctx._dirty)
    elif isinstance(below := highest(primals), type(level)) and not (
        enabled and _any(primals, attrgetter("_requires_grad"))
    ):
        ctx = _context(cls, node, door)
        outs = below.custom(ctx, primals, enabled)
        _take_attributes(node, ctx)
        node._saved, node._dirty, node._non_differentiable = ctx._saved, ctx._dirty, ctx._non_differentiable
    elif enabled and _any(primals, is_tracked):
        ctx, outs = _recorded(cls, door, primals)
        _take_state(node, ctx, outs, primals)
    else:
        ctx, outs = node, lowered(depth(primals), door.forward, node, primals)
    # a polynomial's tangent is computed from it, and so is it from its tangent: both are recorded
    with recording(enabled or level.records), _saved_for_jvp(ctx):
        tangents = [_tangent(level, ctx, t) for t in operands]
        versions = {id(t): t._version for t in tangents if isinstance(t, Tensor)}
        pushed = lowered(level.number - 1, call_jvp, door, ctx, tangents) if moves else [None] * len(outs)
        marks = ctx if cls._contract.separate else node
        given = list(zip(primals, operands, tangents, strict=True))
        duals = [_dual(level, cls, o, t, marks, given, versions) for o, t in zip(outs, pushed, strict=True)]
    if cls._contract.separate:
        door.setup_context(node, operands, duals)
        _count_once(node._dirty, primals)
    else:  # forward saved the duals among its arguments and results
        pairs = [*zip(primals, operands, strict=True), *zip(outs, duals, strict=True)]
        for name in ("_saved", "_dirty", "_non_differentiable", "saved_for_forward"):
            if (kept := getattr(node, name, None)) is not None:
                setattr(node, name, tuple(next((d for p, d in pairs if p is t), t) for t in kept))
    return duals


def _count_once(dirty: Sequence[Tensor], counted: Sequence[Any]) -> None:
    """Take back that `mark_dirty` counted a write to memory of `counted`: the call on these has counted it."""
    memories = [t._version_of for t in counted if isinstance(t, Tensor)]
    for t in dirty:
        if t._version_of not in (None, INFERENCE) and any(t._version_of is memory for memory in memories):
            t._version_of.n -= 1


def _each(change: Callable[[Tensor], Any], values: Sequence[Any]) -> list[Any]:
    """Leaves with every tensor among them changed."""
    return [change(t) if isinstance(t, Tensor) else t for t in values]


def _any(values: Sequence[Any], true: Callable[[Tensor], bool]) -> bool:
    return any(isinstance(t, Tensor) and true(t) for t in values)


def _context(cls: Any, node: Any, door: Door, skipped: int = 0) -> Any:
    """A context for the methods of `cls` alone, with the arguments of `node` after the skipped ones."""
    ctx = begin(cls._node_class(), node._edges[skipped:])
    ctx._constants, ctx._others, ctx._door = node._constants >> skipped, node._others >> skipped, door
    return ctx


def _dual(level: Any, cls: Any, o: Any, t: Any, marks: Any, given: list[Any], versions: dict[int, int]) -> Any:
    """One result of forward with its tangent `t`.

    marks: the context with the marks that forward made. given: for each argument its primal, the argument and its
    tangent. versions: the versions of these tangents before `jvp`.
    """
    if not isinstance(o, Tensor):
        return o
    if any(o is fixed for fixed in marks._non_differentiable):
        if t is not None:
            raise RuntimeError(
                f"{cls.__name__}.jvp returned a tangent for a result that is not differentiable. You should return "
                "None at that position instead."
            )
        return level.lift(o, None)
    sources = [found for found in given if _looks_at(o, found[0])]
    source = next((found for found in sources if found[2] is not None), None)
    if source is not None and o is source[0] and any(o is dirty for dirty in marks._dirty):
        if t is not source[2] or t._version == versions[id(t)]:
            raise RuntimeError(
                f"{cls.__name__}: an inplace custom Function is not modifying the forward mode gradients inplace. Its "
                "jvp function must modify the corresponding gradient inplace, and return it.\n"
                "  What to do: write e.g. t.mul_(2) and return t."
            )
        return _written(level, source, t)
    moving = all(level.lower(argument)[1] is not None for _, argument, _ in sources)  # not by zeros made for `jvp`
    if sources and moving and not any(isinstance(t, Tensor) and _looks_at(t, found[2]) for found in sources):
        which = "the given tangent" if sources[0][0]._view is None else "the same base as the given tangent"
        raise RuntimeError(
            f"A custom Function's forward is returning a view (or an input as-is), but {cls.__name__}'s jvp is not "
            f"returning a view of {which}.\n  What to do: do to the tangent what forward does."
        )
    return level.lift(o, _checked(cls, o, t))


def _recorded(cls: Any, door: Door, primals: Sequence[Any]) -> tuple[FunctionNode, list[Any]]:
    """The context of a call on tracked primals, where forward saves by itself, and the results."""
    with recording(True):
        outs = door.call(cls.apply, primals)
    for t in outs:
        if isinstance(t, Tensor) and t._edge is not None and type(t._edge[0]) is cls._node_class:
            return t._edge[0], outs
    raise _needs_setup_context(cls)


def _take_attributes(node: Any, ctx: Any) -> None:
    for name, value in vars(ctx).items():
        if name not in vars(FunctionNode):
            setattr(node, name, value)
    node._materialize, node._marked = ctx._materialize, ctx._marked


def _take_state(node: Any, ctx: Any, outs: list[Any], primals: list[Any]) -> None:
    """Copy to `node`, of a call on duals, the state that forward left on the context of the call on primals."""
    _take_attributes(node, ctx)
    outputs = ctx._saved_outputs or {}
    node._saved = tuple(outs[outputs[i]] if i in outputs else t for i, t in enumerate(ctx.saved_tensors))
    # the call is done with its marks: outputs outside the graph, and inputs returned as they were
    node._non_differentiable = tuple(t for t in outs if isinstance(t, Tensor) and not t._requires_grad)
    node._dirty = tuple(t for t in outs if isinstance(t, Tensor) and any(t is p for p in primals))


def _looks_at(t: Tensor, source: Any) -> bool:
    """Whether a tensor is the other one, or a view of the same memory."""
    if not isinstance(source, Tensor) or t is source:
        return t is source
    base = source if source._view is None else source._view.base
    return t._view is not None and t._view.base is base


def _written(level: Any, source: tuple[Any, Any, Any], tangent: Any) -> Any:
    """The argument that forward wrote to and returned, if its tangent was written in place as well."""
    _, argument, _ = source
    held: Any = inner(argument, level)
    if held is None:
        return level.lift(source[0], tangent)
    held.take(tangent)
    return argument


@contextlib.contextmanager
def _saved_for_jvp(ctx: Any) -> Iterator[None]:
    """Have `saved_tensors` return the tensors of `save_for_forward` or, if there are none, of `save_for_backward`."""
    before = ctx._saved, ctx._versions
    try:
        ctx._saved = getattr(ctx, "saved_for_forward", ctx._saved)
        ctx._versions = tuple(0 if t is None or t._version_of is None else t._version_of.n for t in ctx._saved)
        yield
    finally:
        ctx._saved, ctx._versions = before


def _tangent(level: Any, ctx: Any, t: Any) -> Any:
    """The tangent that `jvp` gets for an argument: its own, or without one zeros or None."""
    if not isinstance(t, Tensor):
        return None
    primal, tangent = level.lower(t)
    wanted = tangent is None and ctx._materialize and primal._data.dtype.kind in "fcV"
    return np.zeros_like(primal.detach()) if wanted else tangent


def _checked(cls: Any, out: Tensor, tangent: Any) -> Any:
    if tangent is None:
        return None
    if not isinstance(tangent, Tensor):
        raise RuntimeError(
            errors.message(f"{cls.__name__}.jvp", expected="a Tensor or None", found=errors.describe(tangent))
        )
    if tangent._data.shape != out._data.shape:
        raise RuntimeError(
            errors.message(
                f"{cls.__name__}.jvp: Trying to set a forward gradient that has a different size than that of the "
                "original Tensor, the output",
                expected=f"{list(out._data.shape)}",
                found=f"{list(tangent._data.shape)}",
            )
        )
    return tangent


def forward_of_vmap(level: Any, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
    """The results of a Function on a batch: by the `vmap` it defines, or by its forward in operations on batches."""
    cls, door = node._forward_cls, node._door
    own = "vmap" in cls._contract.methods
    generated = getattr(cls, "generate_vmap_rule", False)
    if not cls._contract.separate:
        raise _needs_setup_context(cls)
    if own and generated:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and a vmap staticmethod.\n"
            "  What to do: remove one of the two."
        )
    if not own and not generated:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support.\n"
            "  What to do: define the vmap staticmethod, vmap(info, in_dims, *args), which may loop; or, if forward "
            "and backward are written in operations on tensors, not on their arrays, set generate_vmap_rule = True."
        )
    values = _each(level.value, operands)
    found: list[tuple[Any, int | None]]  # with the axis of the batch
    with recording(enabled):
        if generated:
            found = [(t, 0) for t in Generated.apply(Batch(level, node, operands), *values)]
        elif not _any(operands, level.varies):  # its own rule has no batch to see
            found = [(t, None) for t in door.call(cls.apply, values)]
        else:
            dims = [0 if isinstance(t, Tensor) and level.varies(t) else None for t in operands]
            found = call_vmap(level, cls, door, dims, values)
        given = _by_value(values, operands)
        outs = [given[id(t)] if id(t) in given else _lifted(level, t, axis) for t, axis in found]
    door.setup_context(node, operands, outs)
    return outs


def _by_value(values: Sequence[Any], tensors: Sequence[Any]) -> dict[int, Tensor]:
    """The arguments of a level by the identity of their values: what returns such a value returns the argument."""
    return {id(v): t for v, t in zip(values, tensors, strict=True) if isinstance(v, Tensor)}


def _lifted(level: Any, t: Any, axis: int | None) -> Any:
    """A result of a Function's own `vmap`, whose batch lies along `axis`, as a tensor of the level."""
    if not isinstance(t, Tensor):
        return t
    if axis is None:
        return level.constant_tensor(t)
    return level.lift(t.movedim(axis, 0) if axis else t)


def backward_of_each(level: Any, backward: Callable[..., Any], ctx: Any, gradients: tuple[Any, ...]) -> Any:
    """The stacked results of a backward called for each gradient of a batch: NumPy code knows no batches.

    If the values it kept vary over the batch, it can only be called with the batch.
    """
    held = [ctx._saved, *vars(ctx).values()] if level.size else [gradients]
    if any(isinstance(t, Tensor) and level.varies(t) for t in leaves(held)):
        return backward(ctx, *gradients)
    whole = changed(level.lower, gradients)
    results = [backward(ctx, *changed(lambda t, k=k: t[k], whole)) for k in range(level.size)]  # type: ignore[misc]

    def stacked(column: tuple[Any, ...]) -> Any:
        like = next((g for g in column if isinstance(g, Tensor)), None)
        if like is None:
            return column[0]
        return level.lift(np.stack([np.zeros_like(like) if g is None else g for g in column]))

    return rebuild(results[0], iter([stacked(c) for c in zip(*map(leaves, results), strict=True)]))


class Batch:
    """One call of a Function on a batch: it notes for backward which arguments vary."""

    def __init__(self, level: Any, node: Any, operands: Sequence[Any]) -> None:
        self.level, self.cls, self.door = level, node._forward_cls, node._door
        self.varying = [isinstance(t, Tensor) and level.varies(t) for t in operands]

    def again(self) -> Any:
        """A new level like the level of the call."""
        return type(self.level)(self.level.size, self.level.randomness)

    def given(self, level: Any, values: Sequence[Any]) -> list[Any]:
        """Values of the arguments as tensors of a level, where the arguments vary."""
        pairs = zip(values, self.varying, strict=True)
        return [level.lift(t) if varies and t is not None else t for t, varies in pairs]

    def forward(self, values: Sequence[Any]) -> list[Any]:
        """The Function's forward, for all elements at once."""
        return _each(self.level.lower, self.door.call(self.cls.forward, self.given(self.level, values)))

    def keep(self, ctx: Any, values: Sequence[Any], outs: Sequence[Any]) -> None:
        """Have `ctx` keep, with the batch's axis, the tensors that the Function keeps for one element."""
        level, one = self.level, _context(self.cls, ctx, self.door, 1)
        inputs = self.given(level, values)
        given = _by_value(values, inputs)
        results = _each(lambda t: given[id(t)] if id(t) in given else level.lift(t), outs)
        self.door.setup_context(one, inputs, results)
        check_saved(one, results, inputs)
        ctx.batch, ctx.saved_varying = self, _varying(level, one._saved)
        ctx.save_for_backward(*_each(level.value, one._saved))
        if one._non_differentiable:
            ctx.mark_non_differentiable(*_each(level.value, one._non_differentiable))
        ctx.set_materialize_grads(one._materialize)
        own = {name: value for name, value in vars(one).items() if name not in vars(FunctionNode)}
        ctx.attributes = {name: (changed(level.value, v), _varying(level, v)) for name, v in own.items()}

    def one(self, ctx: Any, level: Any) -> Any:
        """The context of one element at a new level, from the tensors that `keep` kept."""
        one = _context(self.cls, ctx, self.door, 1)
        one._saved = _lift(level, ctx.saved_tensors, ctx.saved_varying)
        for name, (value, varying) in ctx.attributes.items():
            setattr(one, name, _lift(level, value, varying))
        return one

    def lowered(self, level: Any, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of the arguments for all elements; summed for arguments that do not vary."""
        pairs = zip(gradients, self.varying, strict=True)
        return [g if g is None else level.lower(g) if varies else level.lower(g).sum(0) for g, varies in pairs]


class Generated(Function):
    """A Function on a batch: its forward, backward and jvp are those of the Function, for all elements at once."""

    generate_vmap_rule = True

    @staticmethod
    def forward(batch: Batch, *values: Any) -> Any:
        return tuple(batch.forward(values))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        inputs[0].keep(ctx, inputs[1:], output)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        batch = ctx.batch
        with batch.again() as level:
            found = batch.door.backward(batch.one(ctx, level), *_each(level.lift, gradients))
            return (None, *batch.lowered(level, found))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> Any:
        batch = ctx.batch
        _check_jvp(batch.cls)
        with batch.again() as level:
            one = batch.one(ctx, level)
            with _saved_for_jvp(one):
                return tuple(_each(level.lower, call_jvp(batch.door, one, batch.given(level, tangents))))


def _varying(level: Any, tree: Any) -> Any:
    """For each leaf of the values that the user keeps, whether it is a tensor that varies."""
    return rebuild(tree, iter([isinstance(t, Tensor) and level.varies(t) for t in leaves(tree)]))


def _lift(level: Any, tree: Any, varying: Any) -> Any:
    pairs = zip(leaves(tree), leaves(varying), strict=True)
    return rebuild(tree, iter([level.lift(t) if varies and t is not None else t for t, varies in pairs]))


def _check_jvp(cls: Any, moves: bool = True) -> bool:
    """Whether an argument has a tangent, `moves`. NotImplementedError if the class lacks the method that takes it."""
    if moves and "jvp" not in cls._contract.methods:
        raise NotImplementedError(  # also a RuntimeError
            f"Trying to use forward AD with {cls.__name__} that does not support it because it has not been "
            "implemented yet: you must implement the jvp function.\n"
            "  What to do: add\n    @staticmethod\n    def jvp(ctx, *grad_inputs):\n  to the class."
        )
    return moves


def _needs_setup_context(cls: Any) -> RuntimeError:
    return RuntimeError(
        "In order to use an autograd.Function with function transforms (vmap, grad, jvp, jacrev, ...), it must "
        f"override the setup_context staticmethod; {cls.__name__} has forward(ctx, ...) instead.\n"
        "  What to do: write forward(*args) without ctx, and setup_context(ctx, inputs, output) which saves."
    )

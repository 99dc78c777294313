"""The dual interpreter, behind forward mode: a Tensor stands for a primal and the tangent at it.

The kind of an operation decides its effect on tangents. An elementwise rule is its own transpose, so the reverse-mode
rules give the tangent when they get tangents instead of the cotangent. A linear operation is applied to the tangents, a
bilinear one by the product rule. The others have a `jvp` in their entry, or their vjp is transposed, which is always
right: it is linear in the cotangent u, so the vjp of ``u -> J^T u`` at t is ``J t``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..autograd.saved import changed, watch
from ..errors import notice_foreign_functions
from ..kept_gradients import cannot_convert
from ..table.calls import as_view, shares
from ..table.levels import Level, has_room, inner, mapped, with_room
from ..tensor.arrays import repeats, writable
from ..tensor.memory import LevelPayload, check_fit, innermost, same_memory
from ..tensor.modes import INFERENCES, thread, within
from ..tensor.nested import any_instance
from ..tensor.overrides import ACTIVE
from ..tensor.tensor import PLAIN, Lifted, Tensor, is_tracked, wrap
from ..tensor.views import can_join, same_view, unmark, views_of
from .batch_rules import by
from .dual_rules import (
    ALONE,
    ArrayRule,
    acts_alone,
    array_rule,
    by_rule,
    elementwise_tangent,
    replaced,
    shaped,
    tied,
    total,
    transposed,
    zeros,
)
from .functions import forward_of_jvp
from .payload import Payload

if TYPE_CHECKING:
    from ..table.op import Op

R = TypeVar("R")

_NESTS = (tuple, list)
_Bare = tuple[list[Any], list[Any], dict[int, Any], Any]


class Dual(LevelPayload):
    """A primal and its tangent: a Tensor of the same shape and dtype, or None for zero.

    A tangent that a rule made as an array stays one until its Tensor is asked for. array: that array, or None. batch:
    the `vmap` that it varies over, along its first axis, or None. way: the Dual whose tangent it is a view of, with the
    operation and its other arguments; None if its memory is its own.
    """

    __slots__ = ("_tangent", "array", "batch", "primal", "way")

    def __init__(
        self,
        level: Jvp,
        primal: Tensor,
        tangent: Tensor | None,
        array: Any = None,
        batch: Any = None,
        way: tuple[Dual, Op, tuple[Any, ...]] | None = None,
    ) -> None:
        self.level, self.primal, self._tangent = level, primal, tangent
        self.array, self.batch, self.way = array, batch, way

    @property
    def tangent(self) -> Tensor | None:
        self.ask()
        return self._tangent

    @tangent.setter
    def tangent(self, tangent: Tensor | None) -> None:
        self._tangent, self.array, self.way = tangent, None, None

    def ask(self) -> None:
        """Make the Tensor of a tangent that is an array."""
        if self.array is None:
            return
        if self.way is None:
            made = wrap(self.array)
            self.tangent = made if self.batch is None else self.batch.lift(made)
        else:
            source, op, rest = self.way
            self.tangent = _called(op, self.batch, (source.tangent, *rest))

    def settle(self) -> None:
        """Make the Tensor of a view, if that of a tangent it views was made: it may hold another payload since."""
        dual = self
        while dual.way is not None:
            dual = dual.way[0]
            if dual.array is None:
                self.ask()
                return

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor inside are recorded."""
        if is_tracked(self.primal):
            return True
        return self._tangent is not None and not self.level.records and is_tracked(self._tangent)

    @property
    def inside(self) -> Tensor:
        return self.primal

    @property
    def held(self) -> tuple[Tensor, ...]:
        return (self.primal,) if self.tangent is None else (self.primal, self.tangent)

    def detach(self) -> Dual:
        return Dual(self.level, self.primal.detach(), None)

    def clone(self) -> Dual:
        tangent = None if self.tangent is None else self.level.pushing(self.tangent.clone)
        return Dual(self.level, self.primal.clone(), tangent)

    def like(self, array: Any) -> Dual:
        data = self.primal._data
        return Dual(self.level, wrap(data.like(array) if isinstance(data, LevelPayload) else array), None)

    def assign(self, new: LevelPayload) -> None:
        assert isinstance(new, Dual)
        self.level.make_room(self.primal, new.primal._data)
        self.primal.copy_(new.primal)
        self.level.pushing(self._assign_tangent, new)

    def _assign_tangent(self, new: Dual) -> None:
        if self.tangent is None:
            self.tangent = None if new.tangent is None else new.tangent.clone()
        elif new.tangent is not None:
            self.level.make_room(self.tangent, new.tangent._data)
            self.tangent.copy_(new.tangent)
        elif thread.modes.forward_enabled:  # else it stays as it is
            self.tangent.zero_()

    def take(self, tangent: Tensor) -> None:
        """Have another tangent, where a user's code wrote both values."""
        self.tangent = tangent

    def as_number(self, kind: str) -> Any:
        if self.level.open and self.tangent is not None and thread.modes.forward_enabled:
            raise cannot_convert(f"a Python {kind}", "Tensor that has a tangent, in forward mode,", "tangent")
        return super().as_number(kind)

    def item(self) -> Any:
        return self.primal.item()

    def tolist(self) -> Any:
        return self.primal.tolist()

    def __repr__(self) -> str:
        return repr(self.primal)[:-1] + f", tangent={self.tangent!r})"


class Forward(Level):
    """A level that carries derivatives forward. Tensors from outside that join it become their primals when it ends."""

    differentiates = True
    records = False  # whether what is done to tangents is recorded, whatever the mode

    def pushing(self, work: Callable[..., R], *args: Any) -> R:
        """The result of work on tangents."""
        return work(*args)

    def __init__(self) -> None:
        super().__init__()
        notice_foreign_functions()
        self._taken: list[weakref.ref[Tensor]] = []
        self._given: list[weakref.ref[Tensor]] = []
        self._arrays: dict[int, tuple[Tensor, Any]] = {}  # of tensors that hold a payload instead while this is open

    def make_room(self, t: Tensor, payload: Any) -> None:
        """Have a tensor that holds an array hold a payload like the one that is about to be written into it."""
        if isinstance(payload, Payload) and isinstance(t._data, np.ndarray):
            base = t if t._view is None else t._view.base
            views = views_of(base)
            for view in views:
                unmark(view)
            self._arrays |= {id(one): (one, one._data) for one in (base, *views)}
            base._data = payload.like(base._data)
            for view in views:
                view._data = same_view(view, wrap(base._data))._data

    def _close(self) -> None:
        super()._close()
        for ref in self._taken:
            t = ref()
            unmark(t)
            data = getattr(t, "_data", None)  # also None where the making of a tensor was interrupted
            if t is not None and isinstance(data, LevelPayload) and data.level is self and data.inside is not None:
                held = data.inside
                _, array = self._arrays.get(id(held), (held, held._data))
                t.__class__, t._data = type(held), array
                if isinstance(array, LevelPayload) and isinstance(array.level, Forward):
                    array.level.remember(t)  # which has remembered `held` so far
                # Values written to it may be tracked at a level below. One whose making was interrupted says nothing.
                if not getattr(t, "_requires_grad", True):
                    t._edge, t._requires_grad = held._edge, held._requires_grad
        self._taken.clear()
        self._given.clear()
        self._arrays.clear()

    def given(self, t: Tensor) -> Tensor:
        """A tensor of this level whose primal is one from outside, which may be written to and join the level, too."""
        self._given = [ref for ref in self._given if ref() is not None] if len(self._given) % 64 == 63 else self._given
        self._given.append(weakref.ref(t))
        return t

    def remember(self, t: Tensor) -> None:
        """Have a tensor become its primal when the level ends."""
        if len(self._taken) & (len(self._taken) + 1) == 0:  # when the list has doubled, drop the dead ones
            self._taken = [ref for ref in self._taken if ref() is not None]
        self._taken.append(weakref.ref(t))

    def take_in(self, t: Tensor) -> None:
        base = t if t._view is None else t._view.base
        looking = [base, *views_of(base)]
        for view in looking:
            unmark(view)
        if not all(map(can_join, looking)):
            super().take_in(t)
        below = wrap(base._data)
        below._version_of = base._share_version()
        below._edge, below._requires_grad = base._edge, base._requires_grad
        recorded = {"grad_enabled": thread.modes.grad_enabled or base._requires_grad}
        # also views at the lower level
        primals = [within(thread.modes, recorded, same_view, view, below) for view in looking]
        for view, primal in zip(looking, primals, strict=True):
            for ref in self._given:
                dual = getattr(ref(), "_data", None)
                if isinstance(dual, Dual) and dual.primal is view:
                    dual.primal = primal
            view.__class__, view._data = Lifted, self.constant(primal)
            if not self.shares_graph:  # their graph is that of the primals, until the level ends
                view._edge, view._requires_grad = None, False
            self.remember(view)


class Jvp(Forward):
    """The level of one forward-mode pass."""

    def assign(self, t: Tensor, new: LevelPayload) -> None:
        held: Any = t._data
        assert isinstance(new, Dual)
        if new.tangent is not None and (held.tangent is None or not has_room(held.tangent, new.tangent)):
            self.pushing(self._begin_tangents, t if t._view is None else t._view.base, new.tangent)
        held.assign(new)

    def _begin_tangents(self, base: Tensor, tangent: Tensor) -> None:
        """Give a tensor and its views tangents that vary as `tangent` does: their own, or zeros in the same layout."""
        data, before = tangent._data, self.lower(base)[1]
        zeros = np.zeros(base._data.shape, base._data.dtype)  # a view of it may be complex where it is real
        whole = wrap(data.like(zeros) if isinstance(data, LevelPayload) else zeros)
        whole = whole if before is None else with_room(before, tangent)
        for view in [base, *views_of(base)]:
            held = inner(view, self)
            if isinstance(held, Dual) and (held.tangent is None or before is not None):
                held.tangent = same_view(view, whole)

    def constant(self, t: Tensor) -> Dual:
        return Dual(self, t, None)

    def lift(self, primal: Tensor, tangent: Tensor | None) -> Tensor:
        """A tensor of this level for a primal and a tangent."""
        return wrap(Dual(self, primal, tangent))

    def lift_each(self, primal: Tensor, tangents: Tensor, batch: Any) -> Tensor:
        """A tensor of this level for a primal and a tangent for each element of a `vmap`."""
        whole = tangents._data
        if type(whole) is np.ndarray and not tangents._requires_grad and not INFERENCES.n:
            return wrap(Dual(self, primal, None, whole, batch))
        return self.lift(primal, batch.lift(tangents))

    def lower(self, t: Tensor) -> tuple[Tensor, Tensor | None]:
        """The primal and the tangent (None: zero) of a result of this level."""
        held = inner(t, self)
        return (held.primal, held.tangent) if isinstance(held, Dual) else (t, None)

    def run(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rule = array_rule(op) if not kwargs and not self.records and not ACTIVE.n else None
        bare = None if rule is None else self._bare(rule, op, (*args[0], *args[1:]) if op.joins else args)
        if bare is not None:
            primals, named = bare[0], kwargs
            if op.joins:
                primals = [primals[: len(args[0])], *args[1:]]
        else:
            primals = [
                self.primal(a) if isinstance(a, Tensor) else mapped(self.primal, a) if isinstance(a, _NESTS) else a
                for a in args
            ]
            named = {k: mapped(self.primal, v) for k, v in kwargs.items()} if kwargs else kwargs
        out = tied(op, primals, named)
        try:
            if rule is not None and bare is not None and type(out) is Tensor and out._data.dtype.kind in "fc":
                return self._of_arrays(rule, op, args, bare, out)
            tangents = self.pushing(self._tangents, op, args, tuple(primals), kwargs, out)
        except NotImplementedError as error:
            said = f"Trying to use forward AD with {op.name} that does not support it: {error}"
            raise NotImplementedError(said) from error
        if not isinstance(out, (Tensor, tuple, list)):
            return out
        outs, many = (out, True) if isinstance(out, (tuple, list)) else ([out], False)
        duals: list[Any] = [
            Dual(self, o, self.pushing(self._own, t, o, args)) for o, t in zip(outs, tangents, strict=True)
        ]
        return duals[0] if not many else type(out)(*duals) if hasattr(out, "_fields") else tuple(duals)

    def _bare(self, rule: ArrayRule, op: Op, args: Sequence[Any]) -> _Bare | None:
        """The primals, as Tensors and as arrays, and the tangents, where a rule can run on arrays; else None.

        It cannot where something is recorded, or of some other transform. It may take the tangents of a `vmap`, all at
        once, where that does not vary the primals. This is asked of each operation in forward mode, so it is one loop.
        """
        modes = thread.modes
        if not modes.forward_enabled:
            return None
        recorded, wanted, batch = modes.grad_enabled, -1 if op.joins else op.differentiable, None
        primals: list[Any] = []
        values: list[Any] = []
        along: dict[int, Any] = {}
        for i, a in enumerate(args):
            value = a
            if isinstance(a, Tensor):
                value = a._data
                if type(value) is Dual and value.level is self:
                    a = value.primal
                    if wanted >> i & 1:
                        if value.way is not None:
                            value.settle()
                        tangent, own, t = value.array, value.batch, value._tangent
                        if t is not None:
                            tangent, own = t._data, None
                            if type(tangent) is not np.ndarray:
                                whole = _whole(t, recorded)
                                if whole is None:
                                    return None
                                own, t, tangent = tangent.level, whole, whole._data
                            if (recorded and t._requires_grad) or type(t) not in PLAIN:
                                return None
                        if tangent is not None:
                            if own is not None:
                                if not (rule.takes_batches and own.open and batch in (None, own)):
                                    return None
                                batch = own
                            along[i] = tangent
                    value = a._data
                if type(value) is not np.ndarray or (recorded and a._requires_grad) or type(a) not in PLAIN:
                    return None
                kind = value.dtype.kind
                if kind == "V" or (kind == "c" and not op.about.holomorphic):
                    return None
            elif isinstance(a, _NESTS) and any_instance(a, Tensor):
                return None
            primals.append(a)
            values.append(value)
        return primals, values, along, batch

    def _of_arrays(self, rule: ArrayRule, op: Op, args: Any, bare: _Bare, out: Tensor) -> Dual:
        """The result with its tangent, from what `_bare` found."""
        primals, values, along, batch = bare
        if not along:
            return Dual(self, out, None)
        shape = out._data.shape if batch is None else (batch.size, *out._data.shape)
        if rule is not ALONE and not op.view:
            made = Dual(self, out, None, rule(values, along, out._data, shape), batch)
            if INFERENCES.n:  # its Tensor is one of the mode that it was made in
                made.ask()
            return made
        source = args[0]._data
        if rule is not ALONE and source.array is not None and not (self.outlives_calls or INFERENCES.n):
            array = writable(rule.way(values, along, out._data, shape))
            if out._view is None and array.base is None:
                return Dual(self, out, None, array, batch)
            if out._view is not None and out._view.op is op and np.may_share_memory(array, source.array):
                return Dual(self, out, None, array, batch, (source, op, (*primals[1:],)))
        found = _called(op, batch, (source.tangent, *primals[1:]))
        same = out._view is found._view is None and found is not source.tangent
        return Dual(self, out, found if same else self._own(found, out, args))

    def _own(self, tangent: Tensor | None, out: Any, args: Sequence[Any]) -> Tensor | None:
        """A tangent in its own memory: otherwise another tensor would see a write to it or to its primal.

        A rule may return the tangent it got, or a view of it, though the result is not a view.
        """
        if tangent is None:
            return None
        if tangent._view is not None and out._view is not None and out._view.op is tangent._view.op:
            return tangent  # the same view of each
        pairs = [self.lower(a) for a in args if isinstance(a, Tensor)]
        if tangent._view is None and not any(tangent is t for _, t in pairs):
            return tangent
        for p, t in pairs:
            if t is not None and same_memory(out._data, p._data) and same_memory(tangent._data, t._data):
                return tangent
        return laid_as(out, tangent)

    def custom(self, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
        return forward_of_jvp(self, node, operands, enabled)

    def primal(self, t: Tensor) -> Tensor:
        """The primal of a tensor."""
        return self.lower(t)[0]

    def _tangents(self, op: Op, args: Any, primals: Any, kwargs: Any, out: Any) -> Sequence[Tensor | None]:
        """The tangent of each output; None if it is zero."""
        outs = out if isinstance(out, (tuple, list)) else [out]
        if not thread.modes.forward_enabled:
            return [None] * len(outs)
        if op.joins:
            given = [self.lower(t)[1] for t in args[0]]
            if all(t is None for t in given):
                return [None]
            filled = [np.zeros_like(p) if t is None else t for t, p in zip(given, primals[0], strict=True)]
            return [op.unchecked(filled, *primals[1:])]
        tangents: dict[int, Tensor] = {}
        for i, _ in op.bits:
            t = self.lower(args[i])[1] if i < len(args) and isinstance(args[i], Tensor) else None
            if t is not None:
                tangents[i] = t
        if not tangents or not any(isinstance(o, Tensor) and o._data.dtype.kind in "fcV" for o in outs):
            return [None] * len(outs)
        if op.about.jvp is not None:
            found = by_rule(op, op.padded(primals, kwargs), tangents, outs)
        elif op.kind == "linear":
            joint = self._joint(op, primals)
            along = {i: tangents[i] if i in tangents else zeros(primals[i]) for i in joint}
            found = [replaced(op, primals, kwargs, along)]
        elif op.kind == "bilinear":
            found = [total([replaced(op, primals, kwargs, {i: t}) for i, t in tangents.items()])]
        elif op.kind == "elementwise" and acts_alone(op, primals):
            found = [elementwise_tangent(op, op.padded(primals, kwargs), tangents, out)]
        else:
            found = transposed(op, op.padded(primals, kwargs), tangents, outs)
        return [None if t is None else shaped(t, o) for t, o in zip(found, outs, strict=True)]

    def _joint(self, op: Op, primals: Any) -> list[int]:
        """The arguments that a linear operation is jointly linear in."""
        return [i for i, _ in op.bits if i < len(primals) and primals[i] is not None]


class Linearized(Jvp):
    """The level of `linearize`, which records what is done to the tangents, whatever the mode.

    The function may write to what was saved for that, because copies are saved.
    """

    records = True

    def __enter__(self) -> Any:
        changed()
        return super().__enter__()

    def pushing(self, work: Callable[..., R], *args: Any) -> R:
        modes = {"grad_enabled": True, "inference": False, "pack_hooks": _COPIES, "watch": watch}
        return within(thread.modes, modes, work, *args)


_COPIES = ((lambda t: t.clone(), lambda t: t),)


def _whole(t: Tensor, recorded: bool) -> Tensor | None:
    """All tangents of a batch in one array, if nothing that is done to one of them is recorded; else None."""
    data = t._data
    if not isinstance(data, LevelPayload) or (recorded and t._requires_grad):
        return None
    whole = data.stacked
    return whole if whole is not None and type(whole._data) is np.ndarray else None


def _called(op: Op, batch: Any, given: tuple[Any, ...]) -> Tensor:
    """The operation on a tangent, its first argument, or on all tangents of a batch."""
    if batch is None:
        alone: Tensor = tied(op, given, {})
        return alone
    rule, full = op.about.batch, op.padded(given, {})
    rest = full[1 : len(op.params) - len(op.keyword_only)]
    alike = isinstance(rule, by) and not any_instance(rest, Tensor)
    whole = rule.of_whole(op, given[0]._data.stacked, rest) if alike else None
    found: Tensor = wrap(batch.run(op, given, {})) if whole is None else batch.lift(whole)
    if op.view and shares(found._data, given[0]._data):
        as_view(found, op, full, known=True)
    return found


def laid_as(primal: Tensor, tangent: Tensor) -> Any:
    """A copy of the tangent in the layout of its primal, so that the same view can be taken of both."""
    if all(isinstance(a := innermost(t._data), np.ndarray) and a.flags.c_contiguous for t in (primal, tangent)):
        return tangent.clone()
    return np.add(np.zeros_like(primal.detach()), tangent)


def fitting(primal: Tensor, tangent: Tensor) -> Any:
    """The tangent, copied unless it is known to have the layout of its primal; refused if it cannot be meant."""
    a, b = primal._data, tangent._data
    check_fit("tangent", primal, tangent)
    if isinstance(a, LevelPayload) or isinstance(b, LevelPayload) or a.size < 2 or repeats(a):
        return tangent
    alike = [s // a.itemsize for s in a.strides] == [s // b.itemsize for s in b.strides]
    return tangent if alike else laid_as(primal, tangent)

"""Recording of origins: where tensors were made, taken out of the graph, written to, and where backward passes ran.

`record_origins` takes notes while it is on; `pullback.explain` and the errors of a backward pass use them later. The
note about a tensor is a small `Origin`, which lives as long as the tensor but does not hold it. Its `Loss` says why the
tensor has no gradient. Every result computed from the tensor gets the same `Loss`, so the first cause is found even
after a long computation.

While nobody records, nothing is changed: two slots are replaced by taps (`Tap`), and a few functions and methods are
replaced (`_REPLACED`), only between the first `record_origins` entered and the last one left.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import errors
from ..autograd import api
from ..autograd.context import FunctionNode
from ..autograd.contract import place as place_of_function
from ..autograd.engine import execute
from ..autograd.function import Function
from ..autograd.grad_mode import Mode, set_grad_enabled
from ..autograd.node import AccumulateGrad, reachable
from ..tensor.memory import Version
from ..tensor.modes import thread
from ..tensor.tensor import Tensor
from .listeners import GRADIENTS_SET, MISSING, TENSORS, ByTensor, Tap, Users, note_places
from .misuse import WRITTEN, Write
from .places import Call, Place, arguments, first_argument, is_ours, user_place

F = TypeVar("F", bound=Callable[..., Any])


class Loss(NamedTuple):
    """The loss of a gradient: the way ("detach", "no_grad", "numpy", ...), the tensor, the line, and a detail."""

    kind: str
    of: str
    place: Place | None
    detail: Any = None
    source: Any = None  # a weak reference to the tensor that lost it


class Origin:
    """The making of a tensor: its line and operation, the mode and the line that entered it, and the losses."""

    __slots__ = ("graded", "losses", "mode", "mode_place", "name", "operand", "order", "place", "values")

    name: str
    place: Place | None
    mode: str  # "" if operations were recorded, else "no_grad", "inference_mode", "forward" or "backward"
    mode_place: Any  # the place; for a forward, the name of its Function
    graded: bool  # whether an operand required grad
    operand: Any  # a weak reference to it
    losses: tuple[Loss, ...]  # how the gradients of operands were lost, here or earlier
    values: bool  # whether it was made from NumPy or Python values, directly or through other tensors
    order: int  # counts tensors and backward passes


class Gradient:
    """The latest events of one tensor's gradient: where it arrived, was cleared, returned or refused."""

    __slots__ = ("arrived", "cleared", "none", "off", "passed", "returned")

    def __init__(self) -> None:
        self.arrived: Place | None = None
        self.cleared: tuple[Place | None, str] | None = None
        self.returned: Place | None = None  # returned by autograd.grad(), which accumulates nothing
        self.none: tuple[str, str, str] | None = None  # a Function, its argument and where the backward is defined
        self.off: tuple[Place | None, str] | None = None  # requires_grad was set to False, or detach_() called
        self.passed = False


class Passed(NamedTuple):
    """One backward pass: the line that started it, the function called, and its number."""

    place: Place | None
    name: str
    order: int


ORIGINS: ByTensor[Origin] = ByTensor()
GRADIENTS: ByTensor[Gradient] = ByTensor()
ARRAYS: ByTensor[tuple[Loss, ...]] = ByTensor()  # arrays made from tensors with a gradient
LEFT: ByTensor[deque[Loss]] = ByTensor()  # where the values of a leaf, or of what was computed from it, left the graph
MARKED: ByTensor[tuple[str, Place | None]] = ByTensor()  # outputs that a Function marked as not differentiable
TAKEN: deque[Loss] = deque(maxlen=4)  # the last conversions of tensors with a gradient to numbers or arrays
PASSES: deque[Passed] = deque(maxlen=8)

_ORDER = [0]


def _next() -> int:
    _ORDER[0] += 1
    return _ORDER[0]


def gradient_of(t: Tensor) -> Gradient:
    """The notes about a tensor's gradient, to be filled in."""
    found = GRADIENTS.get(t)
    if found is None:
        GRADIENTS.put(t, found := Gradient())
    return found


# Tensors that are made ------------------------------------------------------------------------------------------------

_DETACH = {Tensor.detach.__code__: "detach", Tensor.data.fget.__code__: "data"}  # type: ignore[attr-defined]
_APPLY = Function.apply.__func__.__code__  # type: ignore[attr-defined]
_EXECUTE = execute.__code__


def _inside(frame: Any) -> tuple[str, Any]:
    """The code that switched recording off around a frame: "forward" of a Function (and which), "backward", or ""."""
    while frame is not None:
        if frame.f_code is _APPLY:
            return "forward", first_argument(frame).__name__
        if frame.f_code is _EXECUTE:
            return "backward", None
        frame = frame.f_back
    return "", None


def _note_tensor(t: Tensor) -> None:
    """Note the origin of a tensor that was just made."""
    modes = thread.modes
    if not modes.recording:
        return
    call = Call(sys._getframe(3), t)
    made = Origin()
    made.place, made.name, made.order = call.place, call.title(), _next()
    made.mode, made.mode_place = "", None
    if not modes.grad_enabled:
        made.mode, made.mode_place = _inside(call.above)
        if not made.mode:
            made.mode = "inference_mode" if modes.inference else "no_grad"
            made.mode_place = _switched()
    graded = next((o for o in call.operands if o._requires_grad), None)
    made.graded, made.operand = graded is not None, None if graded is None else weakref.ref(graded)
    found = [loss for o in call.operands if not o._requires_grad for loss in losses_of(o)]
    if graded is not None:
        stops = next((_DETACH[code] for code in call.codes if code in _DETACH), made.mode)
        if stops:
            entered = made.mode_place if stops == made.mode else None
            found.insert(0, Loss(stops, errors.describe(graded), call.place, entered, made.operand))
    made.values = made.name in _CONVERSIONS or any(
        made_of.values for made_of in map(ORIGINS.get, call.operands) if made_of
    )
    if not call.operands and call.outer is not None:
        arrays = [a for a in arguments(call.outer) if isinstance(a, (np.ndarray, np.generic))]
        found += [loss._replace(detail=made.name) for a in arrays for loss in _losses_of_array(a)]
    made.losses = tuple({loss[:3]: loss for loss in found[::-1]}.values())[::-1][:4] if found else ()  # each once
    ORIGINS.put(t, made)
    if made.losses and made.graded:
        _cut.tensors.append(weakref.ref(t))


_CONVERSIONS = {"tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "full"}


class _Cut(threading.local):
    def __init__(self) -> None:
        self.tensors: deque[weakref.ref[Tensor]] = deque(maxlen=16)  # made since the last node, with operands cut off


_cut = _Cut()


def _note_node(node: Any) -> None:
    """Note, on a node, how the operands that it does not lead to lost their gradients."""
    for ref in _cut.tensors:
        t = ref()
        if t is not None and t._edge is not None and t._edge[0] is node and (made := ORIGINS.get(t)) is not None:
            node.metadata["cut"] = made.losses
    _cut.tensors.clear()


def losses_of(t: Tensor) -> tuple[Loss, ...]:
    """The recorded losses behind a tensor that requires no gradient; the first cause comes last."""
    made, events = ORIGINS.get(t), GRADIENTS.get(t)
    if events is not None and events.off is not None:
        return (Loss(events.off[1], errors.describe(t), events.off[0], None, weakref.ref(t)),)
    if made is None:
        return ()
    if made.graded and not made.losses:
        kind = "integer" if t._data.dtype.kind not in "fcV" else "constant"
        return (Loss(kind, made.name, made.place, str(t.dtype), made.operand),)
    return made.losses


def _note_left(source: Tensor | None, loss: Loss) -> None:
    """Note, for the leaves that a tensor was computed from, where its values left the graph."""
    if source is None or not source._requires_grad:
        return
    nodes = islice(reachable([source._edge[0]] if source._edge else []), 10_000)
    for leaf in [n.variable for n in nodes if isinstance(n, AccumulateGrad)] if source._edge else [source]:
        LEFT.put(leaf, deque([*(LEFT.get(leaf) or ()), loss], maxlen=4))


def _losses_of_array(a: Any) -> Iterator[Loss]:
    seen = 0
    while a is not None and seen < 4:
        yield from ARRAYS.get(a) or ()
        a, seen = getattr(a, "base", None), seen + 1


def _note_gradient(t: Tensor, old: Any, new: Any) -> None:
    """Note that the gradient of a tensor was set, or cleared."""
    if (old is None) is (new is None):
        return
    call = Call(sys._getframe(3))
    if new is None:
        gradient_of(t).cleared = call.place, call.title()
    else:
        gradient_of(t).arrived, gradient_of(t).cleared = call.place, None


def _note_write(version: Version, old: Any, new: Any) -> None:
    """Note that memory was written to."""
    if old is MISSING or not thread.modes.recording:
        return
    if new < old:  # one write was counted twice
        if noted := WRITTEN.get(version):
            noted.pop()
    else:
        call = Call(sys._getframe(2))
        WRITTEN.setdefault(version, deque(maxlen=64)).append(Write(new, call.place, call.title()))


GRADIENTS_SET.append(_note_gradient)
VERSIONS = Tap(Version, "n", _note_write, "recording")

# Functions and methods that are replaced while origins are recorded ---------------------------------------------------


def _here() -> Place | None:
    found = user_place()
    return found[0] if found else None


def _taking(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that gives a tensor's values to NumPy or to Python, with a note of it."""

    @functools.wraps(method)
    def take(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = method(self, *args, **kwargs)
        if thread.modes.recording and not is_ours(sys._getframe(1)):
            place = _here()
            here = Loss(name, errors.describe(self), place, _next(), weakref.ref(self))
            earlier = () if self._requires_grad else losses_of(self)
            if self._requires_grad or earlier:
                TAKEN.append(here)
                for source in (self, *(loss.source() for loss in earlier if loss.source is not None)):
                    _note_left(source, here)
                if type(found) is np.ndarray:
                    ARRAYS.put(found, (*earlier, here))
        return found

    return take


class _Switches(threading.local):
    """Where the modes that are on in this thread were entered, and where `set_grad_enabled` was last called."""

    def __init__(self) -> None:
        self.entered: list[tuple[Mode, int, Place | None]] = []  # with how often the mode was on before
        self.called: Place | None = None

    def forget(self) -> None:
        """Forget the modes that are on no longer: looking for them leaves nothing to do when one is left."""
        while self.entered and len(self.entered[-1][0]._before) <= self.entered[-1][1]:
            self.entered.pop()


_switches = _Switches()


def _switched() -> Place | None:
    _switches.forget()
    return _switches.entered[-1][2] if _switches.entered else _switches.called


def _entering(enter: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        if thread.modes.recording:
            _switches.forget()
            _switches.entered.append((self, len(self._before), _here()))
        return enter(self)

    return entered


def _setting(init: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(init)
    def set_now(self: Any, mode: bool) -> None:
        if thread.modes.recording:
            _switches.called = _here()
        init(self, mode)  # at the end: the mode is set when it returns

    return set_now


def _detaching(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def detach_(self: Tensor) -> Any:
        before = isinstance(self, Tensor) and self._requires_grad  # if it is no tensor, the method refuses it
        found = method(self)
        if before and thread.modes.recording:
            gradient_of(self).off = _here(), "detach_"
        return found

    return detach_


def _requiring(prop: Any) -> Any:
    def set_requires_grad(self: Tensor, value: bool) -> None:
        before = self._requires_grad
        prop.fset(self, value)
        if before is not value and thread.modes.recording:
            gradient_of(self).off = None if value else (_here(), "requires_grad")

    return property(prop.fget, set_requires_grad, prop.fdel, prop.__doc__)


def _marking(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def mark(self: Any, *outputs: Any) -> None:
        method(self, *outputs)
        if thread.modes.recording:
            for t in outputs:
                MARKED.put(t, (self._forward_cls.__name__, _here()))

    return mark


def _running(run: Callable[..., Any]) -> Callable[..., Any]:
    """The `_run` of a Function's node, with a note of the arguments that backward returned None for."""

    @functools.wraps(run)
    def ran(self: Any, g: Any, *args: Any) -> Any:
        sent = run(self, g, *args)
        if thread.modes.recording:
            nones = [(i, edge) for i, (s, edge) in enumerate(zip(sent, self._edges, strict=True)) if s is None and edge]
            for i, edge in nones:
                said = self._forward_cls.__name__, self._argument(i), place_of_function(self._forward_cls.backward)
                self.metadata["returned_none"] = {**self.metadata.get("returned_none", {}), edge[0]: said}
                if isinstance(edge[0], AccumulateGrad):
                    gradient_of(edge[0].variable).none = said
        return sent

    return ran


def _executing(run: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass that notes its starting line on the nodes it frees."""

    @functools.wraps(run)
    def executed(roots: Any, **options: Any) -> Any:
        if not thread.modes.recording:
            return run(roots, **options)
        call = Call(sys._getframe(1))
        name = "backward" if options.get("accumulate", True) else "grad"
        nodes = list(reachable([edge[0] for edge, _ in roots], options.get("needed")))
        try:
            return run(roots, **options)
        finally:
            PASSES.append(Passed(call.place, name, _next()))
            for node in nodes:
                if isinstance(node, AccumulateGrad):
                    gradient_of(node.variable).passed = True
                    if name == "grad":
                        gradient_of(node.variable).returned = call.place
                elif not options["keep"]:
                    node.metadata.setdefault("freed", (call.place, name))

    return executed


_REPLACED: list[tuple[Any, str, Callable[[Any], Any]]] = [
    *[(Tensor, name, functools.partial(_taking, name)) for name in ("numpy", "__array__", "item", "tolist")],
    *[(Tensor, f"__{name}__", functools.partial(_taking, name)) for name in ("float", "int", "complex")],
    (Tensor, "detach_", _detaching),
    (Tensor, "requires_grad", _requiring),
    (FunctionNode, "mark_non_differentiable", _marking),
    (FunctionNode, "_run", _running),
    (Mode, "__enter__", _entering),
    (set_grad_enabled, "__init__", _setting),
    (api, "execute", _executing),
]


class _Replacement:
    """Puts `_REPLACED` in and out. After a hundred times it stays, as a `Tap` does, and checks whether it is wanted.

    What stands in a place says whether it is replaced, not what was done before: an interrupt may come between any two.
    """

    def __init__(self) -> None:
        self._users = Users()
        self._times = 0
        self._held: dict[int, tuple[Any, Any]] = {}  # by the number of the place: what was there, and what replaces it
        self._lock = threading.RLock()

    def open(self, who: Any) -> None:
        """Put the replacements in for somebody, unless they are there."""
        with self._lock:
            self._users.add(who)
            for number, (owner, name, replacement) in enumerate(_REPLACED):
                now = vars(owner)[name]
                if number not in self._held or now is not self._held[number][1]:
                    self._held[number] = now, replacement(now)
                    setattr(owner, name, self._held[number][1])

    def close(self, who: Any) -> None:
        """Put back what was there, if nobody else records. A second time does nothing."""
        with self._lock:
            if self._users.discard(who) and self._times < Tap.STAYS:
                places = [(*_REPLACED[number][:2], *held) for number, held in self._held.items()]
                there = [place for place in places if vars(place[0])[place[1]] is place[3]]
                self._times += bool(there)
                for owner, name, before, _ in there:
                    setattr(owner, name, before)


_TAPS = (_Replacement(), TENSORS, VERSIONS)


class record_origins:  # noqa: N801 - a context manager
    """Within it, note where tensors are made, detached, converted and written to, and where backward passes run.

    `pullback.explain`, the errors of a backward pass (a saved tensor that was written to, a graph that was freed) and
    `pullback.inspect.memory` use the notes, also after the block, as long as the tensors live. It is a context manager
    and a decorator, for the thread that enters it.

    stack: note the whole stack of calls of every node, as anomaly mode does, and not only the line.

    It costs some 12 microseconds for each tensor that is made, and 450 bytes for as long as the tensor lives; a
    backward pass walks its graph once more. The training step of a small network (784-256-256-10, batch 64) took 2.7 ms
    instead of 1.9. Outside it, the cost is zero. (``python -m benchmarks.diagnosis`` measures it.)

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> with pullback.autograd.record_origins():
    ...     y = x.detach() * 2
    >>> print(pullback.explain(y))
    requires_grad is False, because of detach(): ...
    """

    def __init__(self, stack: bool = False) -> None:
        self._level = 2 if stack else 1
        self._outside: list[int] = []

    def __enter__(self) -> None:
        modes = thread.modes
        before, depth = modes.recording, len(self._outside)
        try:
            self._outside.append(before)
            if not before:
                _switches.entered, _switches.called = [], None
            for tap in _TAPS:
                tap.open((id(self), depth))
            if _note_tensor not in modes.tells_tensors:
                modes.tells_tensors = (*modes.tells_tensors, _note_tensor)
            if _note_node not in modes.tells_nodes:
                modes.tells_nodes = (*modes.tells_nodes, _note_node)
            modes.recording = max(self._level, before)
            note_places()
        except BaseException:
            self._put_back(before, depth)
            raise

    def __exit__(self, *exc: object) -> None:
        before, depth = self._outside[-1], len(self._outside) - 1
        try:
            self._put_back(before, depth)
        finally:
            self._put_back(before, depth)  # all of it, where an interrupt came

    def _put_back(self, before: int, depth: int) -> None:
        modes = thread.modes
        modes.recording = before
        if not before:
            modes.tells_tensors = tuple([f for f in modes.tells_tensors if f is not _note_tensor])
            modes.tells_nodes = tuple([f for f in modes.tells_nodes if f is not _note_node])
        for tap in _TAPS:
            tap.close((id(self), depth))
        note_places()
        del self._outside[depth:]

    def __call__(self, fn: F) -> F:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with record_origins(self._level == 2):
                return fn(*args, **kwargs)

        return call  # type: ignore[return-value]


def is_recording_origins() -> bool:
    """Whether origins are being recorded in this thread."""
    return bool(thread.modes.recording)


errors.doors(globals(), "record_origins")

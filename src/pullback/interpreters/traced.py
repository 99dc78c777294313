"""The traced interpreter, behind `compile`: a Tensor stands for a value of a program, which records the operations.

A traced payload holds the number of a value, and its value in the traced call: an example, which gives shapes and
dtypes, and whether they could depend on values. Reverse mode needs no code here: a pass of the ordinary engine on
tensors of this level records the backward like the forward.

Operations that read values cannot be recorded; they are refused with the line of the call.
"""

from __future__ import annotations

import collections
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..autograd.node import edge_of, next_order
from ..diagnose.places import Place, formatted, user_place
from ..table.levels import Level, inner, mapped
from ..table.writing import Through
from ..tensor.dtypes import device
from ..tensor.gpu import gpu_of, to_gpu, to_host
from ..tensor.memory import LevelPayload
from ..tensor.modes import thread
from ..tensor.protocol import is_payload
from ..tensor.tensor import Lifted, Tensor, wrap
from ..tensor.views import overlaps
from .functions import recording
from .payload import each
from .traced_memory import REFERENCES, arrays_of, copied, is_held, is_memory, is_whole

if TYPE_CHECKING:
    from ..table.op import Op


class TraceError(RuntimeError):
    """An operation that cannot be part of a compiled program."""


class WrittenInStepError(Exception):
    """The step of a loop writes to a tensor from before the step: it is not the same in every step."""


class ValuesError(TraceError):
    """Code that works with the values of a traced tensor: what it is part of can only be called as a whole."""


def refused(what: str, do: str, kind: type[TraceError] = TraceError, place: Place | None = None) -> TraceError:
    """The error about code that cannot be traced, with a line of the user's: by default, the one that runs."""
    lines = formatted(user_place() if place is None else [place]).rstrip()
    error = kind(
        f"compile: {what}\n{lines}\n  What to do: {do}; or let such a function run as it is written, with "
        "fallback=True."
    )
    level = open_trace()
    if level is not None and level.refusal is None:
        level.refusal = error
    return error


def of_another_kind(payload: Any, place: Place | None = None) -> TraceError:
    """The error about a tensor that the function finds outside, and that holds no array. place: where it is named."""
    return refused(
        f"a tensor of another kind than plain ones is used, which holds a {type(payload).__name__}",
        "pass it through functions that are not compiled",
        place=place,
    )


PAST = (
    "the memory of a tensor is written to after it was read, by NumPy or through another tensor on it, which the "
    "tensor does not count as a write"
)
COPY_FIRST = "read a copy of it (t.clone(), a.copy() of an array) before the write; or write to the tensor itself"


class Ref(NamedTuple):
    """Stands for a traced value among the arguments of an entry."""

    number: int


class Entry(NamedTuple):
    """One recorded operation: its arguments with a `Ref` for each tensor, and the numbers of its results."""

    op: Op | None  # None: a constant, whose array is the argument
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[int, ...]


class Traced(LevelPayload):
    """Value `number` of a trace; it was `example` in the traced call.

    A payload is memory of the program: tensors that share it see each other's writes. That of a view is ``step`` (an
    operation and its arguments, None if bytes are read as another dtype) of `parent`, and the first of such parents
    knows its `views`. line: the place in the user's code that last wrote to it.
    """

    __slots__ = ("__weakref__", "example", "line", "number", "parent", "step", "views")

    def __init__(self, level: Trace, number: int, example: np.ndarray[Any, Any]) -> None:
        self.level, self.number, self.example = level, number, example
        self.parent: Traced | None = None
        self.step: tuple[Op, tuple[Any, ...]] | None = None
        self.views: list[weakref.ref[Traced]] = []
        self.line = ""

    def see(self, parent: LevelPayload, op: Op, args: tuple[Any, ...]) -> None:
        if self.parent is None and isinstance(parent, Traced) and parent is not self:
            self.parent, self.step = parent, (op, args) if op.differentiable else None
            parent.root.views.append(weakref.ref(self))

    @property
    def root(self) -> Traced:
        """The payload that this one is a view of, itself no view."""
        root = self
        while root.parent is not None:
            root = root.parent
        return root

    def way(self) -> tuple[tuple[Op, tuple[Any, ...]], ...]:
        """The steps from the root to this payload."""
        steps = []
        held = self
        while held.parent is not None:
            assert held.step is not None
            steps.append(held.step)
            held = held.parent
        return tuple(steps[::-1])

    def living(self) -> list[Traced]:
        """The views of this root that are still used; a view of a view comes after it."""
        found = [view for ref in self.views if (view := ref()) is not None]
        self.views = [weakref.ref(view) for view in found]
        return found

    @property
    def shape(self) -> Any:
        return self.example.shape

    @property
    def dtype(self) -> Any:
        return self.example.dtype

    @property
    def requires_grad(self) -> bool:
        return False

    @property
    def gpu(self) -> int | None:  # type: ignore[override]
        """The number of the GPU that the value lies on; its example lies on the host."""
        found: int | None = self.level.gpus[self.number]
        return found

    @property
    def layout(self) -> np.ndarray[Any, Any]:
        """The example, whose memory the examples of its views share."""
        return self.example

    @property
    def strides(self) -> Any:  # type: ignore[override]
        self.level.layouts = True
        return self.example.strides

    @property
    def ctypes(self) -> Any:
        """Refused: the address of the values would be that of the traced call."""
        return self._no_array()

    def offset(self) -> int:
        """Refused unless the example is all of its memory: no program knows what lies beside an array."""
        self.level.layouts = self.level.whole = True
        if not is_whole(self.example):
            raise refused(
                "the memory around a tensor is looked at, by as_strided() of a part of it",
                "use as_strided() on the whole tensor, or subscripts",
            )
        return 0

    def detach(self) -> Traced:
        return self  # shared memory: a write to one is a write to the other

    def clone(self) -> Traced:
        return Traced(self.level, self.number, self.example)

    def like(self, array: Any) -> Traced:
        array = array if gpu_of(array) is not None else np.asarray(array)
        return self.level.constant(wrap(array if self.gpu is None else to_gpu(array, self.gpu)))

    def assign(self, new: LevelPayload) -> None:
        assert isinstance(new, Traced)
        example = new.example
        if example.shape != self.shape or example.dtype != self.dtype:
            fitting: Any = wrap(new).expand(self.shape).to(wrap(self.example).dtype)
            new, example = fitting._data, fitting._data.example
        assert isinstance(new, Traced)
        self.number, self.example = new.number, example

    def item(self) -> Any:
        raise refused(
            "the value of a tensor is used by Python (in `if` or `while`, as a number, a list or a size: item(), "
            "float(), tolist()), but a program is compiled for all values of a shape",
            "choose between tensors with pullback.where(condition, a, b); or pass what decides as a number, which is "
            "part of the signature",
            ValuesError,
        )

    tolist = item

    def as_number(self, kind: str) -> Any:
        return self.item()

    def _no_array(self, *args: Any, **kwargs: Any) -> Any:
        raise refused(
            "NumPy cannot have the values of a tensor that is being traced",
            "use operations of pullback, or NumPy functions that have a rule, on the tensor itself",
            ValuesError,
        )

    __array__ = __array_ufunc__ = __array_function__ = _no_array

    def __repr__(self) -> str:
        return f"TracedTensor(%{self.number}, shape={list(self.shape)}, dtype={self.dtype})"


class Known(NamedTuple):
    """What is known of a tensor that the function is given or finds, besides its values.

    grad: its gradient. unlike_a_leaf: why a gradient of the program would not become that one, and nothing else happen;
    or "".
    """

    kind: type[Tensor]
    requires_grad: bool
    attributes: dict[str, Any]
    grad: Tensor | None
    unlike_a_leaf: str
    id: int


class Trace(Level):
    """The level of one function that is being traced: `entries` are its operations, in order.

    inputs: the numbers of its arguments. captured: tensors from outside that it met, by the number they have here.
    layouts: whether what it did depends on the strides of the arguments. whole: whether it does on the memory around.
    on_gpu: whether some of its values lie on a GPU. ended: whether the function has returned, and its gradients are
    recorded. refusal: the first error about what cannot be traced, also if the function catches it; None once that has
    been done in another way. training: what it does to gradients and with optimizers. sparse: whether a
    gradient would be sparse outside of a trace. stale: the numbers of values that
    it knows nothing of, as an optimizer has taken a step.
    """

    shares_graph = observes = True
    layouts = whole = ended = on_gpu = sparse = False
    refusal: TraceError | None = None
    training: Any = None
    step_began = -1  # the first number of the step of a loop that is being traced; -1: none is

    def __init__(self, kind: type[Lifted], as_a_whole: Callable[..., list[Any]], loop: Callable[..., Any]) -> None:
        """kind: the class of the tensors of this level. as_a_whole: the results of a Function that needs values, from
        this level, its context, the arguments and the error. loop: what `scan` gives, as one loop of the program, or
        None if that cannot be: from this level and what `loop_in_trace` is given."""
        super().__init__()
        self._kind, self._as_a_whole, self.loop = kind, as_a_whole, loop
        self.written_out: list[str] = []  # the loops that became no loop of the program, and why, in words
        self.entries: list[Entry] = []
        self.examples: list[np.ndarray[Any, Any]] = []  # the example of each value, by its number, on the host
        self.gpus: list[int | None] = []  # where each value lies
        self.inputs: list[int] = []
        self.captured: dict[int, tuple[Tensor, int]] = {}  # by number: the tensor and its version
        self.sources: dict[int, np.ndarray[Any, Any]] = {}  # by number: its array; the example is a copy
        self._latest: dict[int, int] = {}  # by the id of an array: the number that has its latest copy
        self.met: list[int] = []  # the numbers of all tensors from outside
        self.known: dict[int, Known] = {}  # of the tensors that are given, by the ids of their stand-ins
        self.asked: dict[tuple[int, str], Any] = {}  # their attributes that were asked for, and what these were
        self._known: dict[int, Tensor] = {}  # tensors from outside by their id, as tensors of this level
        self.stale: set[int] = set()
        self.grads: dict[int, Tensor | None] = {}  # by the id of a tensor from outside: its gradient when it was met
        self._began = next_order()

    def lift(self, example: Any, known: Known | None = None, gpu: int | None = None) -> Tensor:
        """A new argument of the program. known: of the tensor that it stands for. gpu: where it lies, if the example
        lies on the host."""
        if (own := gpu_of(example)) is not None:
            gpu, example = own, copied(example)
        made = self.new(example, gpu)
        self.inputs.append(made.number)
        t = wrap(made)
        if known is not None:
            self.known[id(t)] = known
            t._requires_grad = known.requires_grad
        return t

    def register(self, t: Tensor) -> None:
        t.__class__ = self._kind

    def new(self, example: Any, gpu: int | None = None) -> Traced:
        if is_payload(example):
            raise of_another_kind(example)
        self.examples.append(np.asarray(example))
        self.gpus.append(gpu)
        self.on_gpu |= gpu is not None
        return Traced(self, len(self.examples) - 1, self.examples[-1])

    def number_of(self, t: Tensor) -> int:
        """The number of a tensor that is used; one from outside becomes a value that is read when the program runs."""
        if (number := self.held_number(t)) in self.stale:
            raise _after_the_step()
        return number

    def held_number(self, t: Tensor) -> int:
        """The same of any tensor."""
        held = inner(t, self)
        return held.number if isinstance(held, Traced) else self.constant(t).number

    def outdate(self, t: Tensor) -> None:
        """From here on, take the values of a tensor, and of its views, for unknown."""
        held: Any = t._data
        for payload in (held.root, *held.root.living()):
            payload.number = self.new(payload.example, payload.gpu).number
            self.entries.append(Entry(None, (payload.example,), {}, (payload.number,)))
            self.stale.add(payload.number)
        t._bump()

    def example(self, t: Tensor) -> Tensor:
        """The values of a tensor in the traced call, without a graph."""
        held = inner(t, self)
        if not isinstance(held, Traced) and gpu_of(t._data) is None:
            return wrap(t._data)
        return wrap(held.example if isinstance(held, Traced) else self.constant(t).example)

    def constant(self, t: Tensor) -> Traced:
        held = inner(t, self)
        if isinstance(held, Traced):
            return held
        return self._outside(t)._data

    def adopt(self, t: Tensor) -> Tensor:
        return t if inner(t, self) is not None or not t._requires_grad else self._outside(t)

    def _outside(self, t: Tensor) -> Tensor:
        """A tensor from outside as one of this level, at its own place in the graph."""
        known = self._known.get(id(t))
        if known is not None and self._is_current(known._data.number):
            return known
        if not is_memory(t._data):
            raise of_another_kind(t._data)
        if t._edge is not None and t._edge[0]._order < self._began:
            raise refused(
                "something was computed of a tensor that requires grad and is neither an argument nor found from the "
                f"function (shape {list(t._data.shape)}), so that it would be the same in every call",
                "pass that tensor as an argument",
            )
        made = self.new(self._copied(t._data), gpu_of(t._data))
        self.met.append(made.number)
        self.sources[made.number] = t._data
        self._latest[id(t._data)] = made.number
        version = t._share_version()
        self.captured[made.number] = (t, version.n)
        self.grads[id(t)] = t._grad
        known = self._known[id(t)] = wrap(made)
        known._version_of = version  # a rule that saved it knows of a write to `t` since, as in eager mode
        if t._requires_grad:
            known._edge, known._requires_grad = edge_of(t), True
        return known

    def _copied(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy of an array from outside, which may be written to later: one for all reads between two writes."""
        number = self._latest.get(id(array), -1)
        return copied(array) if number < 0 or self._differs(number) else self.examples[number]

    def _differs(self, number: int) -> bool:
        """Whether the array of a tensor from outside holds other values than when it was read."""
        source, example = self.sources[number], self.examples[number]
        return source.shape != example.shape or to_host(source).tobytes() != example.tobytes()

    def _is_current(self, number: int) -> bool:
        """Whether a tensor from outside is as it was when it was read."""
        t, version = self.captured[number]
        if _version(t) == version and self._differs(number):
            raise refused(PAST, COPY_FIRST)
        return _version(t) == version

    def written_past(self) -> bool:
        """Whether the memory of a tensor from outside was written to, after it was read, other than by the tensor."""
        return any(_version(t) == version and self._differs(n) for n, (t, version) in self.captured.items())

    def take_in(self, t: Tensor) -> None:
        if self.step_began >= 0:
            raise WrittenInStepError
        # tensors that the function can reach are arguments, so it made this tensor and its views itself
        base = t if t._view is None else t._view.base
        seen = [] if base._version_of is None else [ref() for ref in base._version_of.views]
        made = [base, *(v for v in seen if v is not None and v._view is not None and v._view.base is base)]
        arrays = arrays_of(made)
        met = [n for n, (other, _) in self.captured.items() if id(other._data) in arrays]
        if self._is_seen_elsewhere(made, arrays, met):
            raise refused(
                f"a tensor that the function made (shape {list(t._data.shape)}) is written to, and its memory is also "
                "that of a detached tensor, of bytes seen as another dtype, or of a NumPy array",
                "write to it before detach(), .data or numpy() is called, or compute a new tensor, as y + x for y += x",
            )
        for number in met:  # what was read before the write is a constant
            self._is_current(number)
            other, _ = self.captured.pop(number)
            self._known.pop(id(other), None)
        for tensor in made:
            data = self.new(np.array(to_host(tensor._data)), gpu_of(tensor._data))
            self.entries.append(Entry(None, (data.example,), {}, (data.number,)))
            view = tensor._view
            if view is not None and view.op is not None:
                data.see(view.parent._data, view.op, view.args)
            elif view is not None:
                data = view.parent._data
            tensor.__class__, tensor._data = self._kind, data

    def _is_seen_elsewhere(self, tensors: Sequence[Tensor], arrays: dict[int, Any], met: Sequence[int]) -> bool:
        """Whether anything sees the memory of `tensors`, which are a base and its views, but these.

        arrays: that memory, by the ids of the arrays. met: the numbers of the tensors on it that the trace read.
        """
        if not arrays:
            return True
        own = {id(t) for t in tensors}
        expected = collections.Counter([id(t._data) for t in tensors])
        expected.update([id(array.base) for array in arrays.values()])
        times = collections.Counter(id(t) for t, _ in self.captured.values())
        for number in met:
            if id(self.captured[number][0]) not in own:
                if sys.getrefcount(self.captured[number][0]) > REFERENCES - 1 + times[id(self.captured[number][0])]:
                    return True
                own.add(id(self.captured[number][0]))
                expected[id(self.captured[number][0]._data)] += 1  # a tensor that only the trace still knows
            expected[id(self.sources[number])] += 1
        return any(sys.getrefcount(arrays[key]) > REFERENCES + expected[key] for key in arrays)

    def assign(self, t: Tensor, new: LevelPayload) -> None:
        self.layouts = True  # they decide what is a view and what is a copy
        held: Any = t._data
        root = held.root
        if root.number < self.step_began:
            raise WrittenInStepError
        if root.number in self.stale:
            raise _after_the_step()
        views = root.living()
        if any(view.step is None for view in views):
            raise refused(
                "a tensor is written to whose bytes are also seen as another dtype",
                "compute a new tensor, as y + x for y += x",
            )
        # along a whole axis, as after expand(), nothing but one value for all is written: eager mode refuses the rest
        if held is not root and overlaps(held.example) and not overlaps(held.example, along_axes=True):
            raise refused(
                "a tensor is written to in part whose elements share memory (unfold(), as_strided(), expand())",
                "write to the tensor that it is a view of; or clone() it first",
            )
        root.line = formatted(user_place())
        with recording(False):
            if held is not root:
                new = Through.op.call(wrap(root.clone()), wrap(new), held.way())._data
            root.assign(new)
            for view in views:
                op, args = view.step
                view.assign(op.unchecked(wrap(view.parent), *args)._data)

    def refuse_random(self) -> None:
        raise refused(
            "random numbers are drawn: they would be the same in every call",
            "draw them outside, and pass them as an argument",
        )

    def custom(self, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
        try:
            found: list[Any] = node._door.forward(node, operands)
        except ValuesError as error:
            found = self._as_a_whole(self, node, operands, error)
            self.settle(error)
        return found

    def settle(self, error: TraceError) -> None:
        """What was refused has been done in another way."""
        if self.refusal is error:
            self.refusal = None

    def run(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        known = op.about.shape_from_values
        if known if isinstance(known, bool) else known(*args, **kwargs):
            raise refused(
                f"the shape of the result of {op.name.strip('_')}() depends on values",
                "choose with pullback.where(mask, x, 0) instead of taking elements out, before a function that is not "
                "defined elsewhere: with a number for which it is",
                ValuesError,
            )
        if self.on_gpu:  # constants of a rule, which lie there
            args, kwargs = each(_as_tensor, args), each(_as_tensor, kwargs)
        met: list[int] = []

        def ref(t: Tensor) -> Ref:
            met.append(self.number_of(t))
            return Ref(met[-1])

        written = (mapped(ref, args), {k: mapped(ref, v) for k, v in kwargs.items()})
        gpu = self._place_of(op, met, args, kwargs)
        with recording(False):
            out = op.unchecked(*mapped(self.example, args), **{k: mapped(self.example, v) for k, v in kwargs.items()})
        if not isinstance(out, (Tensor, tuple, list)):
            raise refused(
                f"{op.name}() gives a {type(out).__name__}, which depends on the values of tensors",
                "use an operation that gives a tensor",
            )
        outs: Sequence[Tensor] = [out] if isinstance(out, Tensor) else out
        if op.view and not self.layouts:
            self.layouts = _merges(written[0][0] if args else None, outs, self.examples)
        made: list[Any] = [self.new(o._data, gpu) for o in outs]
        self.entries.append(Entry(op, *written, tuple(m.number for m in made)))
        if isinstance(out, Tensor):
            return made[0]
        return type(out)(*made) if hasattr(out, "_fields") else tuple(made)

    def _place_of(self, op: Op, numbers: Sequence[int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
        """Where the results of an operation on these values lie: as in eager mode, whose errors it raises."""
        if any(isinstance(a, device) for a in args):
            raise refused(
                "a tensor is copied to another device, but a program runs on one",
                "copy it before the call, or the result after it",
                ValuesError,
            )
        found = {self.gpus[n] for n in numbers}
        of_host = any(self.gpus[n] is None and self.examples[n].ndim for n in numbers)
        if len(found) > 1 and (of_host or len(found - {None}) > 1):
            with recording(False):  # it is the operation that refuses them, or does not
                op.unchecked(*mapped(self._there, args), **{k: mapped(self._there, v) for k, v in kwargs.items()})
        return next((gpu for gpu in found if gpu is not None), None)

    def _there(self, t: Tensor) -> Tensor:
        """The values of a tensor in the traced call, where it lies."""
        gpu, example = self.gpus[self.number_of(t)], self.example(t)
        return example if gpu is None else wrap(to_gpu(example._data, gpu))

    def line(self, t: Tensor) -> str:
        """The line that last wrote to a tensor of this level; "" if none did."""
        held = inner(t, self)
        return held.root.line if isinstance(held, Traced) else ""

    def alive(self) -> dict[int, Tensor]:
        """Release the tensors from outside, and return those that are referenced elsewhere, by their numbers. The
        function made the others, which are constants."""
        looked = {n: weakref.ref(t) for n, (t, _) in self.captured.items()}
        self.captured.clear()
        self._known.clear()
        found: dict[int, Tensor] = {}
        for number, ref in looked.items():
            t = ref()
            if t is None and is_held(self.sources, number):
                t = wrap(self.sources[number])
            if t is not None:
                found[number] = t
        return found

    def changed(self, alive: dict[int, Tensor]) -> Tensor | None:
        """One of these tensors from outside that was written to after it was read; None if none was."""
        return next((t for number, t in alive.items() if self._differs(number)), None)


def _after_the_step() -> TraceError:
    return refused(
        "a parameter is used after an optimizer took its step, which a program leaves to the optimizer when it has run",
        "use parameters before step(); or use them outside, or in another compiled function",
    )


def _as_tensor(value: Any) -> Any:
    """A tensor that holds an array of a GPU; any other value itself."""
    return value if gpu_of(value) is None else wrap(value)


def _version(t: Tensor) -> int:
    return 0 if t._version_of is None else t._version_of.n


def _merges(source: Any, outs: Sequence[Tensor], examples: Sequence[Any]) -> bool:
    """Whether a view has other axes than its source: whether there is such a view depends on how the source lies."""
    if not isinstance(source, Ref):
        return False
    known = examples[source.number]
    return any(_axes(out._data) != _axes(known) for out in outs if out._data.size == known.size)


def _axes(array: Any) -> list[tuple[int, int]]:
    return sorted((n, step) for n, step in zip(array.shape, array.strides, strict=True) if n > 1)


def loop_in_trace(*given: Any) -> Any:
    """A loop as one of the program, if a function is being traced and no transform is between; else None.

    given: the loop's name, its step, the first carry, the nest of its inputs, these, the number of steps, whether it
    runs from the end, what the carry was made from, and the loop written out.
    """
    level = open_trace()
    return level.loop(level, *given) if level is not None and thread.modes.levels[-1] is level else None


def open_trace() -> Trace | None:
    """The trace of the function that is being traced in this thread; None if there is none."""
    return next((level for level in thread.modes.levels[::-1] if isinstance(level, Trace)), None)

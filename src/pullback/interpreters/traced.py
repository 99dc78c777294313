"""The traced interpreter, behind `compile`: a Tensor stands for a value of a program, which records the operations.

A traced payload holds the number of a value, and its value in the traced call: an example, which gives shapes and
dtypes, and whether they could depend on values. Reverse mode needs no code here: a pass of the ordinary engine on
tensors of this level records the backward like the forward.

Operations that read values cannot be recorded; they are refused with the line of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..autograd.node import edge_of, next_order
from ..diagnose.places import formatted, user_place
from ..table.levels import Level, inner, mapped
from ..table.writing import Through
from ..tensor.memory import Payload
from ..tensor.modes import thread
from ..tensor.tensor import Lifted, Tensor, wrap
from .functions import recording

if TYPE_CHECKING:
    from ..table.op import Op


class TraceError(RuntimeError):
    """An operation that cannot be part of a compiled program."""


def refused(what: str, do: str) -> TraceError:
    """The error about code that cannot be traced, with the user's line."""
    place = formatted(user_place()).rstrip()
    return TraceError(
        f"compile: {what}\n{place}\n  What to do: {do}; or let such a function run as it is written, with "
        "fallback=True."
    )


class Ref(NamedTuple):
    """Stands for a traced value among the arguments of an entry."""

    number: int


class Entry(NamedTuple):
    """One recorded operation: its arguments with a `Ref` for each tensor, and the numbers of its results."""

    op: Op | None  # None: a constant, whose array is the argument
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[int, ...]


class Traced(Payload):
    """Value `number` of a trace; it was `example` in the traced call."""

    __slots__ = ("example", "number")

    def __init__(self, level: Trace, number: int, example: np.ndarray[Any, Any]) -> None:
        self.level, self.number, self.example = level, number, example

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return self.example.shape

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return self.example.dtype

    @property
    def requires_grad(self) -> bool:
        return False

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
        return self.level.constant(wrap(np.asarray(array)))

    def assign(self, new: Payload) -> None:
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
        )

    tolist = item

    def as_number(self, kind: str) -> Any:
        return self.item()

    def _no_array(self, *args: Any, **kwargs: Any) -> Any:
        raise refused(
            "NumPy cannot have the values of a tensor that is being traced",
            "use operations of pullback, or NumPy functions that have a rule, on the tensor itself",
        )

    __array__ = __array_ufunc__ = __array_function__ = _no_array

    def __repr__(self) -> str:
        return f"TracedTensor(%{self.number}, shape={list(self.shape)}, dtype={self.dtype})"


class TracedTensor(Lifted):
    """A tensor of a trace. Reading or changing ``.grad`` cannot be part of a program and is refused."""

    __slots__ = ()

    _data: Traced

    def stride(self, dim: int | None = None) -> Any:
        """As in eager mode: the program holds for arguments that lie in memory as these do."""
        self._data.level.layouts = True
        return wrap(self._data.example).stride(dim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """As in eager mode: the program holds for arguments that lie in memory as these do."""
        self._data.level.layouts = True
        return wrap(self._data.example).is_contiguous(memory_format)

    @property
    def grad(self) -> Tensor | None:
        """Refuse, with the line that reads it."""
        raise _of_grad(".grad of a tensor is read")

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        raise _of_grad(".grad of a tensor is set")

    @grad.deleter
    def grad(self) -> None:
        raise _of_grad(".grad of a tensor is deleted")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Refuse: it adds to ``.grad``."""
        raise _of_grad("backward() is called")

    def retain_grad(self) -> None:
        """Refuse: it would make backward set ``.grad``."""
        raise _of_grad("retain_grad() is called")

    def register_post_accumulate_grad_hook(self, hook: Any) -> None:
        """Refuse: the hook is called when ``.grad`` is set."""
        raise _of_grad("register_post_accumulate_grad_hook() is called")


def _of_grad(what: str) -> TraceError:
    return refused(
        f"{what}, but a program is made of what its tensors are computed from: it has no .grad",
        "compile the forward and the loss, and keep zero_grad(), backward() and step() outside; or compile a step "
        "that takes the parameters, has their gradients from pullback.func.grad_and_value, and returns new ones",
    )


class Trace(Level):
    """The level of one function that is being traced: `entries` are its operations, in order.

    inputs: the numbers of its arguments. captured: tensors from outside that it met, by the number they have here.
    layouts: whether what it did depends on the strides of the arguments. whole: whether it does on the memory around.
    """

    shares_graph = True
    layouts = whole = False

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.examples: list[np.ndarray[Any, Any]] = []  # the example of each value, by its number
        self.inputs: list[int] = []
        self.captured: dict[int, tuple[Tensor, int]] = {}  # by number: the tensor and its version
        self.met: list[int] = []  # the numbers of all tensors from outside
        self._known: dict[int, Tensor] = {}  # tensors from outside by their id, as tensors of this level
        self._began = next_order()
        self._lines: dict[int, str] = {}  # the lines that write to tensors, by the id of the payload

    def lift(self, example: np.ndarray[Any, Any], requires_grad: bool = False) -> Tensor:
        """A new argument of the program."""
        made = self._new(example)
        self.inputs.append(made.number)
        t = wrap(made)
        t._requires_grad = requires_grad
        return t

    def register(self, t: Tensor) -> None:
        t.__class__ = TracedTensor

    def _new(self, example: Any) -> Traced:
        self.examples.append(np.asarray(example))
        return Traced(self, len(self.examples) - 1, self.examples[-1])

    def number_of(self, t: Tensor) -> int:
        """The number of a tensor; a tensor from outside becomes a value that is read whenever the program runs."""
        held = inner(t, self)
        return held.number if isinstance(held, Traced) else self.constant(t).number

    def example(self, t: Tensor) -> Tensor:
        """The values of a tensor in the traced call, without a graph."""
        held = inner(t, self)
        return wrap(held.example if isinstance(held, Traced) else t._data)

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
        if known is not None:
            return known
        if isinstance(t._data, Payload) or not isinstance(t._data, np.ndarray):
            raise refused(
                f"a tensor of another kind than plain ones is used: {type(t).__name__}",
                "pass it through functions that are not compiled",
            )
        if t._edge is not None and t._edge[0]._order < self._began:
            raise refused(
                "something was computed of a tensor that requires grad and is neither an argument nor found from the "
                f"function (shape {list(t._data.shape)}), so that it would be the same in every call",
                "pass that tensor as an argument",
            )
        made = self._new(t._data)
        self.met.append(made.number)
        self.captured[made.number] = (t, t._version_of.n if t._version_of is not None else 0)
        known = self._known[id(t)] = wrap(made)
        if t._requires_grad:
            known._edge, known._requires_grad = edge_of(t), True
        return known

    def take_in(self, t: Tensor) -> None:
        # tensors that the function can reach are arguments, so it made this tensor and its views itself
        base = t if t._view is None else t._view.base
        views = [] if base._version_of is None else [ref() for ref in base._version_of.views]
        for made in [base, *(v for v in views if v is not None and v._view is not None and v._view.base is base)]:
            data = self._new(np.array(made._data))
            self.entries.append(Entry(None, (data.example,), {}, (data.number,)))
            made.__class__, made._data = TracedTensor, data

    def assign(self, t: Tensor, new: Payload) -> None:
        self.layouts = True  # they decide what is a view and what is a copy
        base = t
        steps: list[Any] = []
        while base._view is not None:
            if base._view.op is not None:
                steps.insert(0, (base._view.op, base._view.args))
            base = base._view.parent
        version = t._share_version()
        if any(view is not None and view._view is None for view in (ref() for ref in version.views)):
            raise refused(
                "a tensor is written to whose bytes are also seen as another dtype",
                "use the operation without the underscore",
            )
        self._lines[id(base._data)] = formatted(user_place())
        with recording(False):
            if steps:
                new = Through.op.call(wrap(base._data.clone()), wrap(new), tuple(steps))._data
            base._data.assign(new)
            for other in version.living():
                if other._data is not base._data:
                    other._data.assign(self._again(other)._data)

    def _again(self, t: Tensor) -> Tensor:
        """A view, taken once more from what its base is now."""
        view = t._view
        if view is None:
            return wrap(t._data)
        parent = self._again(view.parent)
        return parent if view.op is None else view.op.unchecked(parent, *view.args)

    def refuse_random(self) -> None:
        raise refused(
            "random numbers are drawn: they would be the same in every call",
            "draw them outside, and pass them as an argument",
        )

    def custom(self, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
        found: list[Any] = node._door.forward(node, operands)
        return found

    def run(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        known = op.about.shape_from_values
        if known if isinstance(known, bool) else known(*args, **kwargs):
            raise refused(
                f"the shape of the result of {op.name.strip('_')}() depends on values",
                "choose with pullback.where(mask, x, 0) instead of taking elements out",
            )
        written = (
            mapped(lambda t: Ref(self.number_of(t)), args),
            {k: mapped(lambda t: Ref(self.number_of(t)), v) for k, v in kwargs.items()},
        )
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
        made: list[Any] = [self._new(o._data) for o in outs]
        self.entries.append(Entry(op, *written, tuple(m.number for m in made)))
        if isinstance(out, Tensor):
            return made[0]
        return type(out)(*made) if hasattr(out, "_fields") else tuple(made)

    def forget(self) -> None:
        """Release the tensors from outside."""
        self.captured.clear()
        self._known.clear()

    def line(self, t: Tensor) -> str:
        """The line that last wrote to a tensor of this level; "" if none did."""
        return self._lines.get(id(t._data), "")

    def changed(self) -> list[Tensor]:
        """The tensors from outside that were written to after the trace met them."""
        return [t for t, version in self.captured.values() if t._version_of is not None and t._version_of.n != version]


def is_whole(array: Any) -> bool:
    """Whether an array is all of its memory."""
    owner = array
    while owner.base is not None:
        owner = owner.base
        if not isinstance(owner, np.ndarray):
            return False
    return bool(owner.nbytes == array.nbytes)


def _merges(source: Any, outs: Sequence[Tensor], examples: Sequence[Any]) -> bool:
    """Whether a view has other axes than its source: whether there is such a view depends on how the source lies."""
    if not isinstance(source, Ref):
        return False
    known = examples[source.number]
    return any(_axes(out._data) != _axes(known) for out in outs if out._data.size == known.size)


def _axes(array: Any) -> list[tuple[int, int]]:
    return sorted((n, step) for n, step in zip(array.shape, array.strides, strict=True) if n > 1)


def open_traces() -> bool:
    """Whether a function is being traced in this thread."""
    return any(isinstance(level, Trace) for level in thread.modes.levels)

"""One call of a function as a trace, and the trace as a program with its derivative."""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...autograd.api import grad
from ...autograd.node import Node
from ...diagnose.watch import Watch
from ...interpreters.functions import recording
from ...interpreters.traced import COPY_FIRST, PAST, Known, Trace, TraceError, refused
from ...table.levels import inner
from ...tensor.gpu import gpu_of
from ...tensor.modes import restoring, thread
from ...tensor.nested import CONTAINERS, leaves, rebuild
from ...tensor.tensor import Lifted, Tensor
from ..backends.waiting import progress
from .code_names import is_library, is_private
from .consumed import is_iterator
from .holders import CONTAINERS as HOLDING
from .holders import PLAIN, content, contents, is_a, module_of
from .late import LateError, Seek
from .lower import Lowered
from .program import Program, Value
from .stand_in import TracedTensor
from .training import Effects, LaterGradError, Training, has_hook
from .whole_calls import of_function

_by_identity: Any = object.__eq__
Array = np.ndarray[Any, Any]
Call = Callable[[Sequence[Tensor], Callable[[Any, Watch], Any]], Any]


class Argument:
    """Stands for a tensor in the structure of the results: its number among them."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class NotTracedError(Exception):
    """The function raised an error, the cause of this one, while it was traced."""


class Traced(NamedTuple):
    """A function's program for one signature.

    arguments: the values of the given tensors, of the tensors in `captured`, which the trace met, and of gradients.
    outs: the values of the results, and then of gradients that are set. `passed` says which argument a result is,
    `same` which earlier result is the same tensor, and `tracked` lists the numbers of the results that require grad.
    cotangents: the values of their cotangents; gradients: the value of each argument's gradient, or None. problem: the
    reason if the backward cannot be traced. users: whether code of the user's runs in it: a Function's backward, or a
    hook. written: the arguments that are written to, with the written values. lines: the places in the user's code.
    written_out: the loops whose steps are written out, with the reason.
    tree: the nesting of the results. gpu: the number of the GPU that it runs on, if any. on_host: the arguments that
    lie on the host. layouts: whether it holds only for tensors of the same strides as the given ones; whole: and only
    if these are all of their memory. asked: the user's attributes of given tensors that were asked for: the number of
    the tensor, the name, and what it was (`MISSING` if there was none). effects: what happens after the program.
    """

    arguments: list[Value]
    captured: list[Tensor]
    outs: list[Value]
    passed: list[int | None]
    same: list[int]
    tracked: list[int]
    cotangents: list[Value]
    gradients: list[Value | None]
    written: list[tuple[int, Value]]
    lines: list[str]
    tree: Any
    gpu: int | None
    on_host: list[Value]
    lowered: Lowered
    problem: str
    users: bool
    layouts: bool
    whole: bool
    asked: list[tuple[int, str, Any]]
    written_out: list[str]
    effects: Effects | None


def trace(
    call: Call,
    arrays: Sequence[Array],
    known: Sequence[Known],
    loop: Callable[..., Any],
    roll_up: Callable[..., Any],
    recorded: bool = True,
    earlier: Traced | None = None,
    wanted: Sequence[bool] | None = None,
    uniform: Sequence[bool] = (),
) -> Traced:
    """Trace `call`, a function of tensors that stand for the arrays, and of what reads its result while it is watched.

    known: what is known of these tensors. loop: enters a loop (see `Trace`). roll_up: makes loops of equal steps in the
    trace, from it, the numbers that are needed, those of cotangents and of tensors from outside, and what is known of
    loops. recorded: whether operations are recorded.
    earlier: a trace of the same function, whose values this one reuses. wanted: the results (of those that require
    grad) that get a gradient; None: all. uniform: the results whose gradient repeats one number.
    """
    level, found, captured = _written_down(call, arrays, known, loop, recorded, wanted)
    made: dict[int, Value] = {}
    numbers: list[int | None] = [*found.numbers, *captured]
    tensors = list(captured.values())
    if earlier is not None:  # only its arguments are given; all other tensors were made by the function
        tensors = earlier.captured
        met = {id(t): n for n, t in captured.items()}
        numbers = [*found.numbers, *(met.get(id(t)) for t in tensors)]
        made = {n: v for n, v in zip(numbers, earlier.arguments, strict=True) if n is not None}
        captured = {n: t for n, t in captured.items() if n in made}
    repeated = {n for n, same in zip(found.cotangents, uniform, strict=False) if same}
    gradients = dict(found.gradients)
    program = Program() if earlier is None else earlier.lowered.program
    roots = [*found.outs, *found.after, *gradients.values(), *found.grads]
    rolled = roll_up(level, roots, found.cotangents, captured, program.kept)
    level.entries = rolled.entries
    lowered = Lowered(level, captured, program, made, repeated)
    lowered.opaque.update(rolled.opaque)
    values = lowered.values
    values.update((n, values[rolled.now(n)]) for n in roots)
    return Traced(
        [values[n] for n in (*numbers, *found.grads) if n is not None] if earlier is None else earlier.arguments,
        tensors,
        [values[n] for n in found.outs],
        found.passed,
        found.same,
        found.tracked,
        [lowered.inputs[n] for n in found.cotangents],
        [values[gradients[n]] if n is not None and n in gradients else None for n in (*numbers, *found.grads)],
        [(i, values[b]) for i, (a, b) in enumerate(zip(found.numbers, found.after, strict=True)) if a != b],
        found.lines,
        found.tree,
        next((gpu for gpu in level.gpus if gpu is not None), None),
        [values[n] for n in (*level.inputs, *captured) if level.gpus[n] is None],
        lowered,
        found.problem,
        found.users,
        level.layouts,
        level.whole,
        found.asked,
        level.written_out,
        found.effects,
    )


def rebuilder(tree: Any) -> Callable[[Sequence[Any]], Any]:
    """A function that nests a flat list of results as they are returned."""
    space: dict[str, Any] = {}

    def text(part: Any) -> str:
        if type(part) is Argument:
            return f"r[{part.number}]"
        if type(part) is tuple:
            return "(" + "".join(text(p) + ", " for p in part) + ")"
        if type(part) is list:
            return "[" + ", ".join(map(text, part)) + "]"
        if type(part) is dict:
            return "{" + ", ".join(f"{constant(k)}: {text(v)}" for k, v in part.items()) + "}"
        if isinstance(part, CONTAINERS):
            found = list(leaves(part))
            return f"{constant(rebuild)}({constant(part)}, iter([{', '.join(map(text, found))}]))"
        return constant(part)

    def constant(value: Any) -> str:
        space[f"k{len(space)}"] = value
        return f"k{len(space) - 1}"

    return eval(f"lambda r: {text(tree)}", space)


class _Numbers(NamedTuple):
    """The numbers, in a trace, of arguments (before and after), results, cotangents, and gradients (of an argument)."""

    numbers: list[int]
    after: list[int]
    outs: list[int]
    passed: list[int | None]
    same: list[int]
    tracked: list[int]
    cotangents: list[int]
    gradients: list[tuple[int, int]]
    lines: list[str]
    tree: Any
    problem: str
    users: bool
    asked: list[tuple[int, str, Any]]
    effects: Effects | None
    grads: list[int]


def _written_down(
    call: Call,
    arrays: Sequence[Array],
    known: Sequence[Known],
    loop: Callable[..., Any],
    recorded: bool,
    wanted: Sequence[bool] | None,
) -> tuple[Trace, _Numbers, dict[int, Tensor]]:
    """The trace, the numbers in it, and the tensors from outside that are referenced elsewhere, by their numbers."""
    try:
        return _ran(call, arrays, known, loop, recorded, wanted, None)
    except TraceError as error:
        if not isinstance(error, LateError) and PAST not in str(error):
            raise
        late, sought = error, Seek()
    with contextlib.suppress(TraceError, NotTracedError):
        _ran(call, arrays, known, loop, recorded, wanted, (late, sought))
    said = LateError(getattr(late, "what", PAST), getattr(late, "do", COPY_FIRST), sought.place)
    raise TraceError(str(said)) from None


@restoring()
def _ran(
    call: Call,
    arrays: Sequence[Array],
    known: Sequence[Known],
    loop: Callable[..., Any],
    recorded: bool,
    wanted: Sequence[bool] | None,
    sought: tuple[TraceError, Seek] | None,
) -> tuple[Trace, _Numbers, dict[int, Tensor]]:
    """As above. sought: an error of the same call before this one, and what finds the line that it is about."""
    with Trace(TracedTensor, of_function, loop) as level, recording(recorded), _without_hooks():
        progress(lambda: len(level.entries), "operations traced")
        given = [level.lift(a, k) for a, k in zip(arrays, known, strict=True)]
        level.training = Training(level, given)
        read = Reading(level, given, wanted, sought)
        try:
            found = call(read.given, read)
        except TraceError:
            raise
        except Exception as error:
            raise NotTracedError from error
        finally:
            _put_back_gradients(level)
    alive = level.alive()
    level.training = None  # they refer to each other
    _refuse_written(level, alive)
    return level, found, alive


def _put_back_gradients(level: Trace) -> None:
    """Take traced gradients away from tensors from outside, to which backward() went."""
    for t, _ in level.captured.values():
        t._grad = level.grads[id(t)] if isinstance(t._grad, Lifted) else t._grad


class Reading:
    """What reads the result of a traced function, while the function is still watched.

    given: the tensors that stand for its arguments, and for those that it reaches. seeks: whether the line is sought
    that an error of the trace before is about.
    """

    def __init__(
        self, level: Trace, given: list[Tensor], wanted: Sequence[bool] | None, sought: tuple[TraceError, Seek] | None
    ) -> None:
        self._level, self.given, self._wanted, self._sought = level, given, wanted, sought
        self.seeks = sought is not None
        self._numbers = [level.number_of(t) for t in given]
        self._held = [(t._data, t._requires_grad) for t in given]

    def __call__(self, result: Any, watch: Watch) -> _Numbers:
        """The numbers of what it gave. TraceError if it cannot be part of a program."""
        return _read(self._level, result, self.given, self._numbers, self._held, self._wanted, watch)

    def follow(self, fn: Any, set_so_far: Callable[[], LateError | None]) -> contextlib.AbstractContextManager[Any]:
        """A context to call `fn` in, in which the line is sought that an earlier error is about, if there was one.

        set_so_far: the error about what has been set that outlives the call, if anything has.
        """
        if self._sought is None:
            return contextlib.nullcontext()
        error, seek = self._sought

        def is_so(frame: types.FrameType) -> bool:
            try:
                _refuse_changes(self._level, self.given, self._held)
                _refuse_attributes([*self.given, *(v for v in frame.f_locals.values() if is_a(v, Tensor))])
                found = set_so_far()
                if found is None:
                    _refuse_written(self._level, {n: t for n, (t, _) in self._level.captured.items()})
            except LateError as raised:
                found = raised
            return found is not None and found.what == getattr(error, "what", PAST)

        seek.is_so = is_so
        code = getattr(inspect.unwrap(fn), "__code__", None)
        seek.place = None if code is None else (code.co_filename, code.co_firstlineno, code.co_name)
        return seek


def _read(
    level: Trace,
    result: Any,
    given: list[Tensor],
    numbers: list[int],
    held: list[Any],
    wanted: Sequence[bool] | None,
    watch: Watch,
) -> _Numbers:
    """What a function that has just run, and is still watched, gave, with the gradients of it."""
    if level.refusal is not None:  # the function has caught it, and gone on in a way of the traced call alone
        raise level.refusal
    flat = list(leaves(result))
    outs = [t for t in flat if is_a(t, Tensor)]
    for leaf in flat:
        _refuse_hidden(leaf)
    places = iter(range(len(outs)))
    tree = rebuild(result, iter([Argument(next(places)) if is_a(t, Tensor) else t for t in flat]))
    effects = level.training.ended(outs)
    own = {id(t): i for i, t in enumerate(given)} | level.training.from_the_end
    passed = [own.get(id(t)) for t in outs]
    found = [level.number_of(t) if p is None else level.held_number(t) for t, p in zip(outs, passed, strict=True)]
    in_the_end = [level.held_number(t) for t in given]
    # what a step of an optimizer changes, the program does not write
    after = [a if b in level.stale else b for a, b in zip(numbers, in_the_end, strict=True)]
    held_there = [a for t, a, b in zip(given, numbers, after, strict=True) if a != b or t._requires_grad]
    _refuse_places(level, [*found, *held_there])
    _refuse_changes(level, given, held)
    _refuse_attributes([*given, *outs])
    tracked = [i for i, t in enumerate(outs) if t._requires_grad and inner(t, level) is not None]
    chosen = [i for k, i in enumerate(tracked) if wanted is None or wanted[k]]
    same = [next(i for i, other in enumerate(outs) if other is t) for t in outs]
    captured = [(n, t) for n, (t, _) in level.captured.items()]
    by = [*zip(numbers, given, strict=True), *captured]
    lines = [level.line(t) for t, a, b in zip(given, numbers, after, strict=True) if a != b]
    watch.begin_again()
    level.ended = True
    cotangents, gradients, problem = _gradients(level, [outs[i] for i in chosen], by)
    for t, before in zip(given, in_the_end, strict=True):
        if level.held_number(t) != before:
            raise TraceError(
                "compile: the backward of a Function, or a hook, writes in place to an argument or to a tensor from "
                f"outside, which a program does in forward alone\n{level.line(t)}"
                "  What to do: let such a function run as it is written, with fallback=True."
            )
    _refuse_attributes(given)
    asked = [(own[key], name, value) for (key, name), value in level.asked.items()]
    return _Numbers(
        *(numbers, after, found, passed, same, tracked, cotangents, gradients, lines, tree, problem, watch.met, asked),
        *(effects, level.training.numbers),
    )


@contextlib.contextmanager
def _without_hooks() -> Iterator[None]:
    """Do not pack the values that a trace saves: hooks need numbers."""
    modes = thread.modes
    before = modes.pack_hooks
    try:
        modes.pack_hooks = ()
        yield
    finally:
        modes.pack_hooks = before


def _gradients(
    level: Trace, outs: Sequence[Tensor], by: Sequence[tuple[int, Tensor]]
) -> tuple[list[int], list[tuple[int, int]], str]:
    """The numbers of the cotangents and of the gradients by the numbered tensors, or the reason for their absence."""
    wanted = [(n, t) for n, t in by if t._requires_grad]
    if not outs or not wanted:
        return [], [], ""
    cotangents = [level.lift(np.ones(t._data.shape, t._data.dtype), gpu=gpu_of(t._data)) for t in outs]
    numbers = [level.number_of(t) for t in cotangents]
    try:
        found = grad(list(outs), [t for _, t in wanted], cotangents, allow_unused=True)
    except LaterGradError:
        raise
    except Exception as error:  # an error of a rule, or of the user's hook or Function: backward will raise it
        return numbers, [], f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return numbers, [(n, level.number_of(g)) for (n, _), g in zip(wanted, found, strict=True) if g is not None], ""


def _refuse_hidden(result: Any) -> None:
    """Raise if a result that is no tensor holds traced tensors, or is an iterator, which may."""
    stack, seen = [result], set()
    while stack:
        part = stack.pop()
        if id(part) in seen or is_a(part, PLAIN):
            continue
        seen.add(id(part))
        if (is_a(part, TracedTensor) and part is not result) or is_iterator(part) or is_a(part, Node):
            raise LateError(
                f"the function returns a {type(result).__name__}, in which tensors leave that are only traced",
                f"return tensors, or dicts, lists and tuples of them, and make the {type(result).__name__} outside.",
            )
        if is_a(part, (tuple, set, frozenset)):
            stack += part
        elif is_a(part, types.FunctionType):
            stack += [*map(content, part.__closure__ or ()), *(part.__defaults__ or ())]
        elif is_a(part, types.MethodType):
            stack.append(part.__self__)
        elif is_a(part, weakref.ref):
            stack.append(part())
        elif is_a(part, types.ModuleType):
            stack += vars(part).values() if sys.modules.get(part.__name__) is not part else ()
        elif not is_a(part, (Tensor, types.CodeType, types.BuiltinFunctionType)) and not is_private(part):
            held = contents(part)
            stack += gc.get_referents(part) if held is None else held.values()


def refuse_made(result: Any, is_known: Callable[[Any], bool]) -> None:
    """Raise if a part of a result can change, and was made by the function or for it: `is_known` is false of it."""
    for part in leaves(result):
        if is_a(part, (Tensor, types.FunctionType, type, types.ModuleType)) or contents(part) is None:
            continue
        fixed = is_library(module_of(part)) and not is_a(part, (*HOLDING, bytearray, np.ndarray))  # a dtype, say
        fixed |= is_a(part, Hashable) and type(part).__eq__ is not _by_identity  # it is meant not to change
        if not fixed and not is_known(part):
            do = "return tensors, numbers and text, or dicts, lists and tuples of them, and make the "
            if is_a(part, np.ndarray):
                do = "call it with pullback.from_numpy(a) for an array a, and return what is computed; or make the "
            raise LateError(
                f"the function returns a {type(part).__name__} that it made or was given: every call would give the "
                "same one, which can change",
                f"{do}{type(part).__name__} outside.",
            )


def _refuse_places(level: Trace, numbers: Sequence[int]) -> None:
    """Raise if some of these lie on the host in a program for a GPU: results, and arguments that get values."""
    several = len(set(level.gpus) - {None}) > 1
    if several or (level.on_gpu and None in map(level.gpus.__getitem__, numbers)):
        raise refused(
            "tensors of two GPUs are used"
            if several
            else "a tensor of the host, which is a result, is written to or requires grad, is used beside one of a GPU",
            "put all of them on one device before the call, x.to(y.device)",
        )


def _refuse_attributes(tensors: Sequence[Tensor]) -> None:
    """Raise if an attribute was set of a tensor that is known outside."""
    for t in tensors:
        if vars(t):
            raise LateError(
                f"the attribute {next(iter(vars(t)))} of a tensor was set, which is an argument or a result: a program "
                "sets nothing that outlives a call",
                "return the value, and set it outside.",
            )


def _refuse_written(level: Trace, alive: dict[int, Tensor]) -> None:
    """Raise if one of these tensors from outside, which are read in each call, was written to after it was read."""
    if (t := level.changed(alive)) is not None:
        raise LateError(
            f"a tensor (shape {list(t._data.shape)}) was written to in place after it had been used, and something "
            "else holds it",
            "compute a new tensor, as y + x for y += x, or write to it before it is used.",
        )


def _refuse_changes(level: Trace, given: Sequence[Tensor], held: Sequence[Any]) -> None:
    """Raise if a tensor from outside was changed otherwise than in its values. held: what those given held before."""
    if any(isinstance(t._grad, Lifted) for t, _ in level.captured.values()):
        raise LateError(
            "backward() goes to a tensor that is found in a class or a module, or was made by a library: it is no "
            "input of the program",
            "keep it where the function finds it itself, in a model or a closure; or return the gradients, from "
            "pullback.autograd.grad(loss, parameters).",
        )
    if level.written_past():
        raise LateError(PAST, COPY_FIRST)
    if any(map(has_hook, given)):
        raise LateError(
            "a hook was registered on a tensor that the function was given, or found outside: it would be called after "
            "the call as well",
            "remove it in the function, by its handle; or register it outside.",
        )
    for t, (before, required) in zip(given, held, strict=True):
        if t._edge is None and t._requires_grad is not required:
            raise LateError(
                "requires_grad of a tensor that the function was given, or found outside, was set: a program writes "
                "values alone",
                "set it outside, before the call.",
            )
        if t._data is not before:
            raise LateError(
                f"a tensor (shape {list(before.shape)}) that the function was given, or found outside, got another "
                f"shape (now {list(t._data.shape)}) or other memory in place: a program writes values alone",
                "use the operation without the underscore (t(), unsqueeze(), transpose()), and return its result.",
            )
        if isinstance(t, Lifted) and t._edge is not None:
            raise LateError(
                "an argument was made part of the graph by a write in place",
                "compute a new tensor, as y + x for y += x, and return its result.",
            )

"""The function that `compile` returns: it looks up the signature of a call and runs the plan made for it."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..autograd.context import FunctionNode
from ..diagnose.places import formatted, is_ours
from ..diagnose.watch import Watch, is_computing, without_collector
from ..interpreters.traced import TraceError
from ..ops.make.generators import fork_rng
from ..tensor import dtypes
from ..tensor.gpu import gpu_of, to_host
from ..tensor.memory import INFERENCE, LevelPayload
from ..tensor.modes import thread
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import PLAIN, Lifted, Tensor, wrap
from ..tensor.views import refuse_memory
from .backends.waiting import announced
from .compiled_node import CompiledNode
from .front import WITH_GRAPHS
from .function_class import held, of_tensors, tell
from .in_words import explained
from .num_threads import get_num_threads
from .plan.replays import Graphs
from .signature import Entry, Options
from .trace.closure import Environment
from .trace.holders import constant, is_a
from .trace.mutations import FirstUseError, State
from .trace.outside import depends_on, handed_on, setting_of
from .trace.tracing import Argument, NotTracedError, refuse_made
from .trace.training import SpentNode, is_optimizer
from .trace.whole_calls import OutgrownError, must_freeze

_MANY = 64
"""The number of signatures from which a warning is given."""
_MOST = 256
"""The number of signatures for which programs are kept; beyond it the oldest go."""


_OFTEN = 8
"""The number of traces again, because of what a whole call gave, at which a warning is given."""


class Compiled:
    """A compiled function; made by `pullback.compile`."""

    def __init__(
        self, fn: Any, backend: str | None, fallback: bool, static: Sequence[str], mode: str | None = None
    ) -> None:
        self.traced_function = fn
        self._backend, self._fallback, self._static, self._mode = backend, fallback, frozenset(static), mode
        self._graphs: dict[int, Graphs] = {}
        self._entries: dict[Any, list[Entry | None]] = {}
        self._warned: set[str] = set()
        self._outgrown = 0
        title = "".join(part.capitalize() for part in _name(fn).rpartition(".")[2].strip("<>_").split("_"))
        own = {"__slots__": (), "__module__": __name__}
        self._node = type(f"{title}Backward", (CompiledNode,), own)
        self._spent = type(f"{title}Backward", (SpentNode,), dict(own))
        self._parameters = _parameters(fn) if static else ()
        self._on_tensors: Compiled | None = None  # for a method of a Function: see `function_class.py`
        functools.update_wrapper(self, fn, updated=())

    def __getattr__(self, name: str) -> Any:
        """The attributes of the function itself, e.g. the parameters of a module."""
        if "traced_function" not in self.__dict__:  # it is being copied
            raise AttributeError(name)
        return getattr(self.traced_function, name)

    def __repr__(self) -> str:
        return f"<compiled {self.traced_function!r}>"

    def __reduce__(self) -> Any:
        """A copy is compiled anew, because plans hold this process's memory."""
        return Compiled, self.options()

    def options(self) -> tuple[Any, str | None, bool, tuple[str, ...], str | None]:
        """The options it was made with."""
        return self.traced_function, self._backend, self._fallback, tuple(self._static), self._mode

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], FunctionNode):
            return self._method(args[0], args[1:], kwargs)
        if thread.modes.functions:  # they see each operation, and may change it
            return self.traced_function(*args, **kwargs)
        tensors: list[Tensor] = []
        seen: dict[int, int] = {}
        try:
            if self._static:
                key = self._keys(args, kwargs, tensors, seen)
            else:
                key = [_key(a, tensors, seen) for a in args]
                if kwargs:
                    key += [(k, _key(v, tensors, seen)) for k, v in kwargs.items()]
        except _NotPlain:
            return self.traced_function(*args, **kwargs)
        recorded = thread.modes.grad_enabled
        whole = (*key, recorded, dtypes.default())
        try:
            entries = self._entries.get(whole)
            if entries is None:
                errors.refuse_foreign("compile", leaves((args, kwargs)))
        except TypeError:
            if not self._fallback:
                raise _not_static(args, kwargs) from None
            self._warn(f"{_name(self.traced_function)} runs as it is written: {_not_static(args, kwargs)}")
            return self.traced_function(*args, **kwargs)
        for entry in entries or ():
            if entry is None:
                return self.traced_function(*args, **kwargs)
            if _still_good(entry, tensors, seen):
                break
        else:
            found = self._entry(whole, args, kwargs, tensors, recorded)
            if not isinstance(found, Entry):
                return self.traced_function(*args, **kwargs) if found is None else found.result
            entry = found
        try:
            return self._run(entry, args, kwargs, [*tensors, *entry.tensors])
        except OutgrownError as error:
            self._entries[whole] = [e for e in self._entries.get(whole, ()) if e is not entry]
            self._note_outgrown(error)
            found = self._entry(whole, args, kwargs, tensors, recorded)
        if not isinstance(found, Entry):
            return self.traced_function(*args, **kwargs) if found is None else found.result
        return self._run(found, args, kwargs, [*tensors, *found.tensors])

    def entry_of(self, *args: Tensor, traces: bool = True) -> Entry | None:
        """What a call with these tensors runs; None if it runs the function as it is written.

        traces: whether the function is traced if it was not for such tensors.
        """
        tensors: list[Tensor] = []
        seen: dict[int, int] = {}
        try:
            key = [_key(a, tensors, seen) for a in args]
        except _NotPlain:
            return None
        recorded = thread.modes.grad_enabled
        whole = (*key, recorded, dtypes.default())
        for entry in self._entries.get(whole, ()):
            if entry is None or _still_good(entry, tensors, seen):
                return entry
        found = self._entry(whole, args, {}, tensors, recorded) if traces else None
        return found if isinstance(found, Entry) else None

    def _method(self, ctx: FunctionNode, args: Any, kwargs: Any) -> Any:
        """The call of a method of a Function, whose first argument is its context."""
        if self._on_tensors is None:
            self._on_tensors = Compiled(of_tensors(self.traced_function), self._backend, self._fallback, (), self._mode)
        result, left = self._on_tensors(*held(ctx), *args, **kwargs)
        tell(ctx, left)
        return result

    def _keys(self, args: Any, kwargs: Any, tensors: list[Tensor], seen: dict[int, int]) -> list[Any]:
        """The signature of a call with static arguments, which may be of any type."""
        named = [*zip((*self._parameters, *[""] * len(args)), args, strict=False), *kwargs.items()]
        return [(name, _Static(value) if name in self._static else _key(value, tensors, seen)) for name, value in named]

    def _run(self, entry: Entry, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
        effects = entry.traced.effects
        if effects is not None:
            if thread.modes.watcher is not None or thread.modes.pack_hooks:  # they see each node
                return self.traced_function(*args, **kwargs)
            tensors = effects.inputs(tensors)
        problem = self._refused_writes(entry, tensors, (args, kwargs)) if entry.changed else None
        if problem is not None:
            if not self._fallback:
                raise problem
            self._warn(f"{_name(self.traced_function)} runs as it is written: {problem}")
            return self.traced_function(*args, **kwargs)
        held = entry.unwritten(tensors) if entry.tracked and entry.traced.written and not entry.spent else tensors
        found = entry.run(arrays := [t._data for t in tensors])
        saved: Sequence[Any] = ()
        if entry.direct:
            n = len(entry.outs)
            results = [wrap(array) for array in (found[:n] if len(found) > n else found)]
            saved = found[n:]
        else:
            results, saved = self._results(entry, tensors, found)
        if effects is not None:
            effects.follow(tensors, results)
        if entry.tracked:
            self._connect(entry, held, arrays if held is tensors else [t._data for t in held], results, saved)
        return entry.rebuilt(results)

    def _refused_writes(self, entry: Entry, tensors: list[Tensor], given: Any) -> TraceError | None:
        """The error of an input that is written to and shares memory with another; raises if it is read-only."""
        for i, _ in entry.changed:
            refuse_memory(tensors[i]._data, one_value=True)
        shared = entry.shared_memory(tensors, arrays := [v for v in leaves(given) if type(v) is _array])
        if shared is None:
            return None
        reached = [*tensors, *entry.read_by_value, *arrays]
        first = len(reached) - len(arrays)
        others = (f"argument {i}" if i < first else "an array among the arguments" for i in shared)
        name, other = (entry.environment.label(reached[i]) or words for i, words in zip(shared, others, strict=True))
        line = dict(entry.changed)[shared[0]]
        return TraceError(
            f"compile: {name} is written to in place, and shares memory with {other}, which a program takes for "
            f"another tensor\n{line}"
            "  What to do: pass one of them and take the other from it in the function, or pass a clone(); or let "
            "such a function run as it is written, with fallback=True."
        )

    def _results(self, entry: Entry, tensors: list[Tensor], found: Sequence[Any]) -> tuple[list[Any], Sequence[Any]]:
        """The results and the saved values, if results are arguments or equal, or arguments are written to."""
        arrays = iter(found)
        made = {i: wrap(next(arrays)) for i in entry.own}
        results: list[Any] = []
        for i, (passed, first) in enumerate(zip(entry.traced.passed, entry.traced.same, strict=True)):
            results.append(made[i] if i in made else results[first] if passed is None else tensors[passed])
        rest = list(arrays)
        for (place, _), array in zip(entry.traced.written, rest, strict=False):
            if array is not tensors[place]._data:
                np.copyto(tensors[place]._data, array)
            tensors[place]._bump()
        return results, rest[len(entry.traced.written) :]

    def _connect(self, entry: Entry, tensors: Any, arrays: Any, results: list[Any], saved: Any) -> None:
        """Make a node; the results that require grad become its outputs."""
        node = self._spent(tensors) if entry.spent else self._node(entry, tensors, arrays, results, saved)
        for k, i in enumerate(entry.tracked):
            if entry.traced.passed[i] is None and results[i]._edge is None:
                t = results[i]
                t._edge, t._requires_grad = (node, k, t._data.shape, t._data.dtype), True
        watch = thread.modes.watch
        if watch is not None:
            watch(node)

    # Making entries ---------------------------------------------------------------------------------------------------

    def _entry(self, key: Any, args: Any, kwargs: Any, tensors: list[Tensor], recorded: bool) -> Entry | _Ran | None:
        """Trace the function. None if the original must run, or what it gave if it has."""
        given, (args, kwargs) = (args, kwargs), _with_own_arrays((args, kwargs))
        others = [v for v in leaves((args, kwargs)) if not is_a(v, Tensor)]
        environment = Environment([self.traced_function, *others])
        place = {id(t): i for i, t in enumerate(tensors)}
        outside = [t for t in environment.tensors if id(t) not in place]
        # without the tensors of this call: the entry must not keep them alive
        flat = [Argument(place[id(v)]) if is_a(v, Tensor) else v for v in leaves((args, kwargs))]
        model = rebuild((args, kwargs), iter(flat))
        places = [(id(t), place.get(id(t), -1)) for t in environment.tensors]

        def call(given: Sequence[Tensor], read: Any = None) -> Any:
            rest = iter(given[len(place) :])
            replace = {key: given[i] if i >= 0 else next(rest) for key, i in places}
            found = [given[v.number] if type(v) is Argument else v for v in leaves(model)]
            positional, named = rebuild(model, iter(found))
            with without_collector():  # from before the first look at what it may change to after the last
                return _called(self, environment, positional, named, replace, read)

        entry: Entry | None
        ran: _Ran | None = None
        try:
            with announced(_name(self.traced_function)):
                entry = Entry(call, tensors, environment, recorded, self._options())
            self._check(entry, [*tensors, *outside], recorded)
        except FirstUseError as first:
            if not first.computed():
                raise
            return self._entry(key, *given, tensors, recorded)
        except (TraceError, NotTracedError) as error:
            problem = error
            if isinstance(error, NotTracedError):
                if any(map(is_optimizer, environment.reached())) and not self._fallback:  # it is not to take a step
                    raise error.__cause__ from None  # type: ignore[misc]
                ran = self._run_once([*tensors, *outside], *given)
                problem = _not_traced(error.__cause__)
            if not self._fallback:
                raise problem from error.__cause__
            entry = None
            self._warn(f"{_name(self.traced_function)} runs as it is written: {problem}")
        if len(self._entries) >= _MANY:
            self._warn(
                f"{_name(self.traced_function)} was compiled for {_MANY} signatures; pass a number that changes from "
                "call to call as a 0-d tensor, and such an array as a tensor"
            )
        self._entries.setdefault(key, []).insert(0, entry)
        del self._entries[key][8:]
        while len(self._entries) > _MOST:
            self._entries.pop(next(iter(self._entries)), None)
        return entry if ran is None else ran

    def _options(self) -> Options:
        return Options(self._backend, get_num_threads(), self._graphs_of if self._mode in WITH_GRAPHS else None)

    def _graphs_of(self, gpu: int) -> Graphs:
        """What the graphs of a GPU share, made once."""
        if gpu not in self._graphs:
            self._graphs[gpu] = Graphs(_name(self.traced_function), gpu, self._warn)
        return self._graphs[gpu]

    def _run_once(self, reached: list[Tensor], args: Any, kwargs: Any) -> _Ran:
        """Run a function that fails while it is traced; its own error is raised, as without compile.

        Where that does not count as the call, nothing is changed: what was written to is put back.
        """
        kept = [] if self._fallback else [t for t in reached if not isinstance(t._data, LevelPayload)]
        before = [(t, t._data.copy(), t._edge, t._requires_grad) for t in kept]
        grads = [(t, g, None if g is None else g._data.copy()) for t in kept for g in [t._grad]]
        with fork_rng(enabled=not self._fallback):
            ran = _Ran(self.traced_function(*args, **kwargs))
        for t, values, edge, requires_grad in before:
            if t._data.shape == values.shape and to_host(t._data).tobytes() != to_host(values).tobytes():
                t._data[...] = values
                t._edge, t._requires_grad = edge, requires_grad
        for t, g, values in grads:
            t._grad = g
            if g is not None:
                g._data[...] = values
        return ran

    def _check(self, entry: Entry, inputs: list[Tensor], recorded: bool) -> None:
        written = {i for i, _ in entry.traced.written}
        for i, line in entry.changed:
            if i >= len(inputs):  # a gradient
                continue
            requires = i in written and recorded and inputs[i]._requires_grad and not entry.spent
            requires |= isinstance(inputs[i], Lifted)
            twice = entry.environment.is_read_in_place(inputs[i])
            if requires or twice or i in entry.read:
                name = entry.environment.label(inputs[i]) or "an argument"
                why = "requires grad" if requires else "is needed as it was by backward"
                why = "is also read from a class or a module" if twice else why
                raise TraceError(
                    f"compile: {name} (shape {list(inputs[i].shape)}) is written to in place, but {why}\n{line}"
                    "  What to do: compute a new tensor, as p + x for p += x, return it, and write that to "
                    f"{name} outside: with pullback.no_grad(): {name if name.isidentifier() else 'p'}.copy_(result)."
                )

    def _note_outgrown(self, error: OutgrownError) -> None:
        """Count the calls for which the function is traced again: each such call takes long."""
        self._outgrown += 1
        if self._outgrown == _OFTEN:
            self._warn(
                f"{_name(self.traced_function)} was traced {_OFTEN} times because of what its solvers gave. Have them "
                f"give results of the same shape in each call, such as those at `t_eval`. The last time:\n{error}"
            )

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(f"compile: {text}", stacklevel=errors.callers_level())

    def explain(self, source: bool = False) -> str:
        """The plan for each signature so far: where it runs, loops, calls, saved values, and recomputed values.

        source: with the C, or on a GPU the CUDA C, of the loops.
        """
        found = [e for entries in self._entries.values() for e in entries if e is not None]
        return explained(_name(self.traced_function), found, source)


class _Ran(NamedTuple):
    """What a function gave that ran as it is written."""

    result: Any


class _NotPlain(Exception):  # noqa: N818 - it only says that the original function must run
    """An argument is a tensor of a transform, or of a subclass."""


class _Static:
    """A static argument in a signature."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = constant(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Static and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


_array = np.ndarray


def _with_own_arrays(given: Any) -> Any:
    """Arguments with a copy of each array among them, which nobody else writes to; an array given twice is one copy."""
    if not (found := {id(v): v for v in leaves(given) if type(v) is _array}):
        return given
    own = {key: np.copy(array, order="K") for key, array in found.items()}
    return rebuild(given, iter([own.get(id(v), v) for v in leaves(given)]))


def _key(value: Any, tensors: list[Tensor], seen: dict[int, int]) -> Any:
    """An argument's part of the signature. Its tensors are collected on the way."""
    kind = type(value)
    if kind in PLAIN:
        known = seen.get(id(value))
        if known is not None:
            return known
        seen[id(value)] = len(tensors)
        tensors.append(value)
        data = value._data
        if value._version_of is INFERENCE:
            raise _NotPlain
        if type(data) is _array:
            return (kind, data.dtype, data.shape, value._requires_grad)
        if (gpu := gpu_of(data)) is None or isinstance(data, LevelPayload):
            raise _NotPlain
        return (kind, data.dtype, data.shape, value._requires_grad, gpu)
    if issubclass(kind, Tensor):
        raise _NotPlain
    if issubclass(kind, (tuple, list)):
        return (kind, *[_key(v, tensors, seen) for v in value])
    if issubclass(kind, dict):
        return (kind, *[(k if type(k) is str else constant(k), _key(v, tensors, seen)) for k, v in value.items()])
    if kind is _array and not value.dtype.hasobject:  # as a number is: by its value
        same = seen.setdefault(id(value), -1 - len(seen))  # one that is given twice is one array
        return (kind, value.dtype, value.shape, value.strides, value.tobytes(), same)
    return constant(value)


def _still_good(entry: Entry, tensors: list[Tensor], seen: dict[int, int]) -> bool:
    """Whether all values that the function reaches besides its arguments are unchanged."""
    for t, dtype, shape, requires, gpu in entry.kinds:
        data = t._data
        if data.dtype is not dtype or data.shape != shape or t._requires_grad is not requires or id(t) in seen:
            return False
        if (gpu is not None or type(data) is not _array) and gpu_of(data) != gpu:
            return False
    if not all(tensors[i] is t for t, i in entry.shared) or not entry.environment.holds_still():
        return False
    return entry.are_as_before(tensors)


def _called(
    compiled: Compiled, environment: Environment, args: Any, kwargs: Any, replace: dict[int, Tensor], read: Any
) -> Any:
    """Call the function with other tensors, both as arguments and in what it reaches.

    read: reads the result of a trace, while the function is still watched, and may set nothing; None: it is no trace.

    What it reaches is as it was when it was first called, also if it has changed since.
    """
    made: dict[int, Any] = {}
    # a trace that was refused has put back the values, and not the versions, of what the function had written to
    frozen = not (read is not None and read.seeks) and must_freeze(environment)

    def change(leaf: Any) -> Any:
        if is_a(leaf, Tensor):
            return replace.get(id(leaf), leaf)
        return environment.replaced(leaf, replace, made, frozen)

    args = rebuild(args, iter([change(v) for v in leaves(args)]))
    kwargs = rebuild(kwargs, iter([change(v) for v in leaves(kwargs)]))
    fn = environment.replaced(compiled.traced_function, replace, made, frozen)
    if read is None:
        return fn(*args, **kwargs)
    state = State(environment, made, (args, tuple(kwargs.values())))
    own = {id(v) for v in leaves((args, kwargs)) if type(v) is _array}

    def began(frame: types.FrameType) -> None:
        environment.visit(frame)
        state.note_reached()

    def why(function: Any) -> str:
        return depends_on(function) or environment.hidden_state(getattr(function, "__self__", None))

    watch = Watch(began, environment.codes, why, setting_of, TraceError, handed_on)
    first: TraceError | None = None
    result = None
    try:
        with watch, read.follow(fn, state.set_so_far):
            given = fn(*args, **kwargs)
            result = read(given, watch)
            refuse_made(given, lambda part: environment.reaches(part) and id(part) not in own)
    except Exception as error:
        first = state.first_use_in(error)
        if first is None:
            raise
    finally:
        problem = state.changed()
    found = first or watch.problem or problem
    if found is not None:
        raise found
    return result


def _name(fn: Any) -> str:
    return getattr(fn, "__qualname__", type(fn).__name__).rpartition("<locals>.")[2]


def _parameters(fn: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(fn).parameters)


def _not_static(args: Any, kwargs: Any) -> TraceError:
    places = [*enumerate(args), *kwargs.items()]
    place, found = next(((k, v) for k, a in places for v in leaves(a) if not _tells_apart(v)), ("", None))
    return TraceError(
        errors.message(
            f"compile: argument {place}".rstrip(),
            expected="arguments that are tensors or NumPy arrays, or that can be hashed to tell signatures apart",
            found=errors.describe(found),
            do="pass a tensor (pullback.from_numpy(...)), or something immutable",
        )
    )


def _not_traced(error: BaseException | None) -> TraceError:
    trace, place = getattr(error, "__traceback__", None), ""
    while trace is not None:
        if not (is_ours(trace.tb_frame) or is_computing(trace.tb_frame)):
            code = trace.tb_frame.f_code
            place = formatted([(code.co_filename, trace.tb_lineno, code.co_name)])
        trace = trace.tb_next
    if "requires grad is being used in an in-place operation" in str(error):  # in a trace, all arguments are leaves
        return TraceError(
            f"compile: an argument that requires grad is written to in place\n{place}"
            "  What to do: write to a clone() of it, or compute a new tensor, as y + x for y += x; or let such a "
            "function run as it is written, with fallback=True."
        )
    told = "  What to do: " in str(error)  # by the error itself
    do = "Otherwise: " if told else "What to do: leave what raises this out of the compiled function; or "
    return TraceError(
        f"compile: the function runs, but not while it is traced: {type(error).__name__}: {error}\n{place}"
        f"  {do}let it run as it is written, with fallback=True."
    )


def _tells_apart(value: Any) -> bool:
    """Whether a value among the arguments can be a part of a signature."""
    try:
        errors.refuse_foreign("compile", (value,))
        hash(value)
    except TypeError:
        return type(value) is _array and not value.dtype.hasobject
    return True

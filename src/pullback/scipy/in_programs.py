"""SciPy's functions in `compile`: a call is made as a whole, as it is written, in each run of the program.

While a function is traced, a solver is not: Python reads sizes, values and counts on its way. So the call becomes one
node, a `Closed` function of the tensors in its arguments and of those that the person's functions reach, which has
derivatives of every order in both modes. An object (a spline, a factorisation) is made again in each call that uses it
(`Later`). What a result holds besides tensors may be read where the program can compare it in each run (`Unread`).
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import autograd
from ..autograd.node import AccumulateGrad, reachable
from ..compile.trace.closure import Environment
from ..compile.trace.whole_calls import OutgrownError, must_freeze, outside, unchanged
from ..diagnose.watch import restores
from ..interpreters.functions import recording
from ..interpreters.traced import Trace, TraceError, ValuesError, open_trace, refused
from ..tensor.modes import LEVELS, thread
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Lifted, Tensor, wrap
from .closed_functions import Call, Closed
from .plain_calls import class_methods_on_arrays, new_of_arrays, takes_functions
from .user_functions import example, is_traced

_CHECKED = (bool, np.bool_, str, type(None))
_COUNTS = (int, np.integer)
"""What a program may read of a result besides tensors. In a transform the counts are those of one sample."""

_KEPT = 8  # calls whose graph waits for a backward


def in_programs(name: str, function: Any, whole: bool) -> Any:
    """A function of SciPy's, or a class, that is called as a whole while a function is traced.

    whole: in any case. Otherwise if a function is among its arguments, or if its code needs the values of a tensor.
    """
    if isinstance(function, type):
        made = inspect.signature(function.__init__)  # type: ignore[misc]
        given = made.replace(parameters=[*made.parameters.values()][1:])
        function.__signature__ = given  # type: ignore[attr-defined]
        function.__new__ = _new_of(name, function)  # type: ignore[method-assign]
        class_methods_on_arrays(name, function)
    if not isinstance(function, types.FunctionType):  # a distribution's methods are operations and nodes
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        level = open_trace() if LEVELS.n else None
        if level is None:
            return function(*args, **kwargs)
        if not whole and not any(callable(leaf) for leaf in leaves((args, kwargs))):
            try:
                return function(*args, **kwargs)
            except ValuesError as error:
                level.settle(error)
        return WholeCall(name, function, args, kwargs).results()

    return call


def _new_of(name: str, entered: type) -> Callable[..., Any]:
    """The ``__new__`` of a class of SciPy's: of arrays alone SciPy's object; in a trace, one that is made later."""
    may_be_scipys = not takes_functions(name, entered)

    def make(kind: type, /, *args: Any, **kwargs: Any) -> Any:
        if kind is entered and may_be_scipys and (found := new_of_arrays(name, kind, args, kwargs)) is not None:
            return found
        if LEVELS.n and open_trace() is not None:
            call = WholeCall(name, kind, args, kwargs)
            if call.inputs:
                return Later(call)
        return object.__new__(kind)

    return make


class WholeCall(Closed):
    """One call in a trace, as a closed function of the traced tensors that it depends on, the `inputs`.

    kept: the recorded graphs of calls, by the values of their inputs, until a backward takes them. constants: the
    numbers of the results without a gradient.
    """

    def __init__(self, name: str, function: Any, args: Any, kwargs: Any) -> None:
        super().__init__(self._tensors, self._values)
        self.where, self.function, self.arguments = f"scipy.{name}", function, (args, kwargs)
        flat = list(_unfolded(self.arguments))
        self.environment = Environment([v for v in flat if not isinstance(v, Tensor)])
        found = [*(v for v in flat if isinstance(v, Tensor)), *self.environment.tensors]
        self.inputs = list({id(t): t for t in found if is_traced(t)}.values())
        level = thread.modes.levels[-1]
        self.transformed = not isinstance(level, Trace)  # a transform of the traced function interprets the call
        self.recorded = thread.modes.grad_enabled or self.transformed
        self._tracked = [t._requires_grad or t._data.level is not open_trace() for t in self.inputs]
        self.kept: dict[Any, Any] = {}
        self.constants: list[int] = []
        self.read: dict[tuple[Any, ...], Any] = {}  # what the traced function reads besides tensors, by its place
        self._first: Any = None

    def results(self) -> Any:
        """The result of the call, with traced tensors in it."""
        level = open_trace()
        assert level is not None
        given = self._given([example(t, traced=True) for t in self.inputs])
        roots = [v for v in _unfolded(self.arguments) if not isinstance(v, (Tensor, np.ndarray))]
        with recording(self.recorded):
            result = unchanged(level, roots, self.called, *given)
        if not self.inputs:
            return result
        if _is_object(result):
            return Later(self)
        tensors = _tensors_in(result)
        self._refuse_hidden(given, tensors)
        self.constants = [i for i, t in enumerate(tensors) if not t._requires_grad]
        self._first = given, result
        made = Whole.apply(self, *self.inputs) if tensors else ()
        self._first = None
        return self._with_unread(result, iter(made), ())

    @restores
    def called(self, *values: Tensor) -> Any:
        """The call with other tensors, and with everything else as it was when the function was traced."""
        by = {id(t): v for t, v in zip(self.inputs, values, strict=True)}
        made: dict[int, Any] = {}
        frozen = must_freeze(self.environment)

        def changed(tree: Any) -> Any:
            return rebuild(tree, iter([change(leaf) for leaf in leaves(tree)]))

        def change(leaf: Any) -> Any:
            if type(leaf) is Later:
                return leaf.made(changed)
            return self.environment.replaced(leaf, by, made, frozen)

        args, kwargs = changed(self.arguments)
        return self.function(*args, **kwargs)

    def _given(self, values: Sequence[Tensor]) -> list[Tensor]:
        """The inputs as leaves of a graph, for plain tensors of their values."""
        given = [wrap(t._data) for t in values]
        for t, tracked in zip(given, self._tracked, strict=True):
            t._requires_grad = tracked and t._data.dtype.kind in "fc"
        return given

    def _tensors(self, *values: Tensor) -> tuple[Tensor, ...]:
        return tuple(_tensors_in(self.called(*values)))

    def _values(self, *values: Tensor) -> tuple[Tensor, ...]:
        """The results for plain tensors; their graph is kept for a backward."""
        given, result = self._first or (None, None)
        if given is None or any(g._data is not v._data for g, v in zip(given, values, strict=True)):
            given = self._given(values)
            with recording(self.recorded):
                result = self.called(*given)
            self._check(result)
        outs = _tensors_in(result)
        if any(t._requires_grad for t in outs):
            while len(self.kept) >= _KEPT:
                self.kept.pop(next(iter(self.kept)), None)
            self.kept[_key(values)] = given, outs
        return tuple([wrap(t._data) for t in outs])

    def vjp(self, wanted: Sequence[bool], outputs: Sequence[bool]) -> Closed:
        """As of any closed function; where the graph of the call was kept, a pass over it."""
        pulled = super().vjp(wanted, outputs).fun
        count = sum(outputs)

        @restores  # the graph of the call has its functions as they were
        def values(*given: Tensor) -> tuple[Tensor, ...]:
            kept = self.kept.pop(_key(given[count:]), None)
            if kept is None:
                return pulled(*given)
            by = [t for t, is_wanted in zip(kept[0], wanted, strict=True) if is_wanted]
            outs = [t for t, chosen in zip(kept[1], outputs, strict=True) if chosen]
            found = autograd.grad(outs, by, given[:count], allow_unused=True)
            return tuple([wrap(np.zeros_like(t._data)) if g is None else g for t, g in zip(by, found, strict=True)])

        return Closed(pulled, values)

    def _refuse_hidden(self, given: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
        """Raise if the result depends on a tensor that requires grad and is not among the inputs."""
        own = {id(t) for t in given}
        nodes = reachable([t._edge[0] for t in tensors if t._edge is not None])
        met = [node.variable for node in nodes if isinstance(node, AccumulateGrad)]
        for hidden in [t for t in (*met, *tensors) if isinstance(t, Lifted) or (t.is_leaf and t.requires_grad)]:
            if id(hidden) in own:
                continue
            raise refused(
                f"{self.where} uses a tensor (shape {list(hidden.shape)}) that is differentiated, and is not found "
                "from its arguments and functions",
                "pass it in args=, or make it a variable that the function reads",
            )

    # What is no tensor --------------------------------------------------------------------------------------------

    def _with_unread(self, result: Any, made: Iterator[Tensor], place: tuple[Any, ...]) -> Any:
        """A result with traced tensors, and with what may not be read without being compared in each run."""
        if isinstance(result, Tensor):
            return next(made)
        if isinstance(result, dict):
            found = _fields(type(result)).__new__(_fields(type(result)))
            for key, value in result.items():
                dict.__setitem__(found, key, self._with_unread(value, made, (*place, key)))
            return found
        if isinstance(result, (list, tuple)):
            parts = [self._with_unread(v, made, (*place, i)) for i, v in enumerate(result)]
            parts = [p.read() if type(p) is Unread and p.checked else p for p in parts]
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        return self._later(place) if _is_object(result) else Unread(self, place, result)

    def _later(self, place: tuple[Any, ...]) -> Later:
        """An object in the result, such as an interpolant, which is made by another call."""

        def made(*args: Any, **kwargs: Any) -> Any:
            return _at(place, self.function(*args, **kwargs))

        args, kwargs = self.arguments
        return Later(WholeCall(f"{self.where.removeprefix('scipy.')}.{place[-1]}", made, args, kwargs))

    def _check(self, result: Any) -> None:
        """OutgrownError if what the traced function read is another now."""
        for place, expected in self.read.items():
            found = _at(place, result)
            if found != expected or type(found) is not type(expected):
                raise OutgrownError(
                    f"compile: {self.where} gave {place[-1]!r}: {found!r}, and {expected!r} when the function was "
                    "traced, which reads it."
                )


class Whole(Call):
    """The node of such a call."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the inputs, and mark the results that have no gradient in eager mode."""
        Call.setup_context(ctx, inputs, output)
        constants = inputs[0].constants
        ctx.mark_non_differentiable(*[output[i] for i in constants])
        ctx.floats = tuple(is_float and i not in constants for i, is_float in enumerate(ctx.floats))


def _key(values: Sequence[Tensor]) -> tuple[Any, ...]:
    return tuple([(v._data.shape, v._data.tobytes()) for v in values])


def _at(place: tuple[Any, ...], result: Any) -> Any:
    """The part of a result at a place."""
    return functools.reduce(lambda part, key: part[key], place, result)


def _tensors_in(result: Any) -> list[Tensor]:
    return [leaf for leaf in leaves(result) if isinstance(leaf, Tensor)]


def _unfolded(tree: Any) -> Iterator[Any]:
    """The leaves of arguments, and of those of objects that are made later."""
    for leaf in leaves(tree):
        if type(leaf) is Later:
            yield from _unfolded(leaf.arguments)
        else:
            yield leaf


def _is_object(result: Any) -> bool:
    """Whether a result is neither a tensor nor made of tensors, but something to call."""
    ours = type(result).__module__.startswith("pullback.scipy")
    return not isinstance(result, Tensor) and (callable(result) or ours)


class Unread:
    """Part of a result that is no tensor: reading it is noted, or refused, also by any use of it."""

    __slots__ = ("_call", "_place", "_value", "checked")

    def __init__(self, call: WholeCall, place: tuple[Any, ...], value: Any) -> None:
        self._call, self._place, self._value = call, place, value
        self.checked = isinstance(value, _CHECKED) or (isinstance(value, _COUNTS) and not call.transformed)

    def read(self, *ignored: Any) -> Any:
        """What it is, which the program compares in each run."""
        if not self.checked:
            raise self._refusal()
        self._call.read[self._place] = self._value
        return self._value

    def _refusal(self) -> TraceError:
        name = self._place[-1] if self._place else "the result"
        return refused(
            f"{name if isinstance(name, str) else f'result {name}'} of {self._call.where} is read, a "
            f"{type(self._value).__name__}, which may be another in each call and is no tensor",
            "use its tensors alone, and read it of a call that is not compiled",
        )

    def _refuse(self, *ignored: Any) -> Any:
        raise self._refusal()

    def __getattr__(self, name: str) -> Any:
        raise self._refusal()

    __bool__ = __float__ = __int__ = __index__ = __complex__ = __len__ = __iter__ = __call__ = __getitem__ = _refuse
    __repr__ = __str__ = __format__ = __hash__ = __array__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = _refuse
    __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __rpow__ = __neg__ = __abs__ = _refuse


@functools.cache
def _fields(kind: type) -> Any:
    """The class of results of this class that note what is read of them."""

    def item(self: Any, key: Any) -> Any:
        found = dict.__getitem__(self, key)
        return found.read() if type(found) is Unread else found

    space = {
        "__getitem__": item,
        "__iter__": lambda self: iter(list(dict.keys(self))),
        "get": lambda self, key, default=None: item(self, key) if key in self else default,
        "values": lambda self: [item(self, key) for key in self],
        "items": lambda self: [(key, item(self, key)) for key in self],
        "pop": lambda self, key, *default: (item(self, key), dict.pop(self, key, *default))[0],
        "__module__": kind.__module__,
    }
    return type(kind.__name__, (kind,), space)


class Later:
    """An object that is made again in each call that uses it, because tensors of a program are in it."""

    def __init__(self, call: WholeCall) -> None:
        self._call, self.arguments = call, call.arguments

    def made(self, changed: Callable[[Any], Any]) -> Any:
        """The object, with changed arguments."""
        args, kwargs = changed(self.arguments)
        return self._call.function(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("__call__", *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with recording(False):
            inputs, level = [example(t, traced=True) for t in self._call.inputs], open_trace()
            assert level is not None
            found = getattr(outside(level, self._call.called, *inputs), name)
        return functools.partial(self._method, name) if callable(found) else self._result(name, getattr, self, name)

    def _method(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        return self._result(name, _call_method, self, name, *args, **kwargs)

    def _result(self, name: str, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        where = self._call.where.removeprefix("scipy.")
        return WholeCall(where if name == "__call__" else f"{where}.{name}", function, args, kwargs).results()


def _call_method(made: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    return getattr(made, name)(*args, **kwargs)

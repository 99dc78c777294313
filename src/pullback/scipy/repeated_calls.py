"""Functions that a solver calls many times on arrays: traced after that, and run as programs from then on.

A trace takes as long as hundreds of calls, so it waits until as many were made (`AFTER`), in one solution or several.
The program is NumPy's, so nothing waits for a compiler. It is used where it gives what the function itself gave at the
first call of a solution: the value to the last bit, the gradient but for rounding. What `compile` refuses, because its
values are read, or because it counts, prints or draws numbers, runs as it is written, and so does a function of another
kind than plain operations on its arguments. A function that the user has compiled runs its own program at once.
"""

from __future__ import annotations

import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.grad_mode import no_grad
from ..compile.compiled import Compiled
from ..tensor.modes import thread
from ..tensor.tensor import Tensor, wrap
from .array_nodes import array_of
from .bindings import Bindings
from .direct_calls import Array, Direct, direct, is_seen, with_gradient

AFTER = {False: 1000, True: 200}
"""The calls after which a function is traced: for its values, and for its values with gradients."""

SOLUTIONS = 3
"""The solutions after which what each of them computes once, a derivative at the end, is traced."""

_TRACES = 4  # a function that is another in each solution is not traced more often
_KEPT = 64  # functions whose programs wait for another solution
_ROUNDING = 1e-10
_BYTES = 1 << 16  # each call compares the arrays that a program was made with, which takes long for larger ones

_enabled = True


def set_tracing(mode: bool) -> None:
    """Say whether solvers trace functions that they call often. They do, unless this was called with False.

    Without it each call runs the function itself, e.g. to stop in it with a debugger. It holds for the process.

    >>> from pullback import scipy
    >>> scipy.set_tracing(False)
    >>> scipy.set_tracing(True)
    """
    global _enabled
    _enabled = bool(mode)


class Record:
    """What is known of a function. calls: since it was last traced."""

    __slots__ = ("calls", "compiled", "of", "refused", "traces")

    def __init__(self) -> None:
        self.of: Any = None
        self.calls = self.traces = 0
        self.refused = False
        self.compiled: Compiled | None = None


_RECORDS: OrderedDict[Any, Record] = OrderedDict()
_OF_COMPILED: weakref.WeakKeyDictionary[Compiled, dict[Any, Record]] = weakref.WeakKeyDictionary()


def record_of(fn: Any, kind: Any) -> Record:
    """The record of a function that is called in one way; a new one for what is no plain and no compiled function."""
    if type(fn) is Compiled:
        records = _OF_COMPILED.setdefault(fn, {})
        if kind not in records and len(records) == _KEPT:
            del records[next(iter(records))]
        return records.setdefault(kind, Record())
    if type(fn) is not types.FunctionType or fn.__dict__:
        return Record()
    key = id(fn), kind
    found = _RECORDS.get(key)
    if found is None or found.of() is not fn:
        found = _RECORDS[key] = Record()
        found.of = weakref.ref(fn, lambda _: _RECORDS.pop(key, None))
        while len(_RECORDS) > _KEPT:
            _RECORDS.popitem(last=False)
    return found


def _copy(fn: Any) -> Any:
    """A function with the same code and variables, for a record, which must not keep the function itself alive."""
    if type(fn) is not types.FunctionType or fn.__dict__:
        return fn
    made = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__, made.__qualname__, made.__module__ = fn.__kwdefaults__, fn.__qualname__, fn.__module__
    return made


class Repeated:
    """The calls of one function in one solution.

    whole: from the person's function to the function of Tensors that is called, whose result is a Tensor. kind: what
    tells such functions of one function apart. args: the Tensors after the first `changing` ones; None if there is more
    to a call. gradient: whether the gradient by the first one is wanted too.
    """

    def __init__(
        self,
        fn: Any,
        whole: Callable[[Any], Callable[..., Any]],
        kind: Any,
        args: Sequence[Any] | None,
        changing: int,
        gradient: bool = False,
    ) -> None:
        self.fn, self.whole, self.args, self.changing, self.gradient = fn, whole, args, changing, gradient
        self.kind = kind
        self.record = record_of(fn, (kind, gradient))
        self._begins = True

    def program(self, arrays: Sequence[Array], gave: Any) -> Direct | None:
        """What runs further calls; None if it is the function itself.

        arrays: of a call that was made just now. gave: its value, or its value and gradient.
        """
        record, begins = self.record, self._begins
        if self.args is None:
            return None
        self._begins = False
        given = [*map(wrap, arrays), *self.args]
        if isinstance(self.fn, Compiled):
            own = direct(self.fn, given, self.changing) if begins and not self.gradient else None
            return own if own is not None and self._is_same(own, arrays, gave) else None
        if not _enabled:
            return None
        record.calls += 1
        due = record.calls > AFTER[self.gradient]
        if record.refused or not (due or (begins and record.compiled)) or is_seen(given):
            return None
        found = self._made(given, due)
        if due and (found is None or record.traces == _TRACES):
            record.refused = True
        if found is None or not self._is_same(found, arrays, gave):
            return None
        return found

    def at_once(self, array: Array) -> Direct | None:
        """What runs all calls of a compiled function with gradients; None if it is the function itself."""
        fn, record = self.fn, self.record
        if type(fn) is not Compiled or self.args is None or record.refused:
            return None
        given = [wrap(array), *self.args]
        if is_seen(given):
            return None
        try:
            if record.compiled is None:
                _, backend, _, static, mode = fn.options()
                record.compiled = Compiled(with_gradient(self.whole(fn.traced_function)), backend, False, (), mode)
                record.refused = bool(static) or not self._is_right(record.compiled, given)
                if record.refused:
                    return None
            return direct(record.compiled, given, 1, gradient=True)
        except Exception:  # of any kind: the function itself runs, and raises there if it must
            record.refused = True
            return None

    def _is_right(self, compiled: Compiled, given: Sequence[Tensor]) -> bool:
        """Whether a program gives what the function gives that it was made of, but for rounding."""
        with no_grad():
            pairs = zip(compiled(*given), compiled.traced_function(*given), strict=True)
            return all(_near(array_of(a), array_of(b)) for a, b in pairs)

    def _made(self, given: Sequence[Tensor], due: bool) -> Direct | None:
        """The program for these; None if it has to be traced and is not due, or cannot be traced."""
        record = self.record
        if record.compiled is None:
            whole = self.whole(_copy(self.fn))
            record.compiled = Compiled(with_gradient(whole) if self.gradient else whole, "numpy", False, ())
        if due:
            record.calls, record.traces = 0, record.traces + 1
            if sum(a.nbytes for a in Bindings(self.fn).arrays()) > _BYTES:
                return None
        run, args = self.whole(self.fn), self.args or ()
        try:
            return direct(
                record.compiled,
                given,
                self.changing,
                gradient=self.gradient,
                slow=lambda *xs: run(*xs, *args),
                traces=due,
            )
        except Exception:  # of any kind: the function runs as it is written, and raises there if it must
            return None

    def _is_same(self, found: Direct, arrays: Sequence[Array], gave: Any) -> bool:
        """Whether a program gives what the function gave; if not, it is not used again."""
        try:
            same = (
                _agree(found.value_and_gradient(arrays[0]), gave)
                if self.gradient
                else _equal(found.value(*arrays), gave)
            )
        except Exception:
            same = False
        self.record.refused = self.record.refused or not same
        return same


class Derivative:
    """A derivative of such a function, which a solution computes once: a program, after `SOLUTIONS` of them.

    It is meant for solutions in which the function itself ran as a program. For a function that the user has compiled
    it is of the same kind. of: from the function of Tensors to its derivative, whose results are a tuple of Tensors.
    """

    def __init__(self, calls: Repeated, name: Any, of: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._calls, self._of = calls, of
        self._record = record_of(calls.fn, (calls.kind, name))

    def __call__(self, given: Sequence[Tensor]) -> Sequence[Array] | None:
        """The results at these tensors; None where they are to be had only as usual."""
        record, fn = self._record, self._calls.fn
        if record.refused or is_seen(given) or thread.modes.watch is not None:
            return None
        given = [wrap(t._data) for t in given]
        with no_grad():
            if record.compiled is not None and record.compiled.entry_of(*given, traces=False) is not None:
                return [array_of(t) for t in record.compiled(*given)]
            # as it is written: a compiled function would make programs of its own derivatives, for a few calls
            fn, backend = fn.options()[:2] if isinstance(fn, Compiled) else (fn, "numpy")
            found = [array_of(t) for t in self._of(self._calls.whole(fn))(*given)]
            record.calls += 1
            if record.calls >= SOLUTIONS:
                self._trace(fn, given, found, backend)
        return found

    def _trace(self, fn: Any, given: Sequence[Tensor], found: Sequence[Array], backend: str | None) -> None:
        """Make the program, if it gives what was found, but for rounding."""
        record = self._record
        record.calls, record.traces = 0, record.traces + 1
        try:
            if record.compiled is None:
                record.compiled = Compiled(self._of(self._calls.whole(_copy(fn))), backend, False, ())
            pairs = zip(record.compiled(*given), found, strict=True)
            record.refused = record.traces > _TRACES or not all(_near(array_of(a), b) for a, b in pairs)
        except Exception:  # of any kind: the function runs as it is written, and raises there if it must
            record.refused = True


def _equal(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=True))


def _agree(found: Any, gave: Any) -> bool:
    if found is None:
        return False
    (value, slope), (expected, right) = found, gave
    return _equal(np.asarray(value), np.asarray(expected)) and _near(slope, right)


def _near(found: Array, right: Array) -> bool:
    """Whether they are equal but for rounding."""
    size = float(np.max(np.abs(right), initial=0.0))
    return found.shape == right.shape and np.allclose(
        found, right, rtol=_ROUNDING, atol=_ROUNDING * size, equal_nan=True
    )


__all__ = ["AFTER", "SOLUTIONS", "Derivative", "Repeated", "set_tracing"]

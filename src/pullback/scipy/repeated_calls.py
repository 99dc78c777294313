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

from ..compile.compiled import Compiled
from ..tensor.tensor import Tensor, wrap
from .bindings import Bindings
from .direct_calls import Array, Direct, direct, is_seen

AFTER = {False: 1000, True: 200}
"""The calls after which a function is traced: for its values, and for its values with gradients."""

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


def record_of(fn: Any, kind: Any) -> Record:
    """The record of a function that is called in one way; a new one for what is no plain function."""
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
            own = direct(self.fn, given, self.changing, gradient=self.gradient) if begins else None
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

    def _made(self, given: Sequence[Tensor], due: bool) -> Direct | None:
        """The program for these; None if it has to be traced and is not due, or cannot be traced."""
        record = self.record
        if record.compiled is None:
            record.compiled = Compiled(self.whole(_copy(self.fn)), "numpy", False, ())
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


def _equal(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=True))


def _agree(found: Any, gave: Any) -> bool:
    if found is None:
        return False
    (value, slope), (expected, right) = found, gave
    size = float(np.max(np.abs(right), initial=0.0))
    return _equal(np.asarray(value), np.asarray(expected)) and bool(
        slope.shape == right.shape and np.allclose(slope, right, rtol=_ROUNDING, atol=_ROUNDING * size, equal_nan=True)
    )


__all__ = ["AFTER", "Repeated", "set_tracing"]

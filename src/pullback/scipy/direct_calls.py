"""A compiled function on arrays, for a solver that calls it many times with tensors of one kind.

A call of a compiled function looks up its signature, wraps what its program gives, and makes a node. For a small
function this takes longer than the program. A `Direct` has looked up the signature once; in each call it compares what
the function reads, as every call does, and runs the program on the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compile.compiled import Compiled
from ..compile.signature import Entry
from ..compile.trace.whole_calls import OutgrownError
from ..func.reverse import vjp
from ..ops.make.of_size import ones_like
from ..tensor import dtypes
from ..tensor.modes import LEVELS, thread, within
from ..tensor.overrides import overriding
from ..tensor.tensor import Tensor, wrap

Array = np.ndarray[Any, Any]


class Direct:
    """Calls of a compiled function in which only the first tensors change.

    slow: the function of these tensors, for a call in which anything else is not as it was.
    """

    def __init__(self, entry: Entry, tensors: Sequence[Tensor], changing: int, slow: Callable[..., Any]) -> None:
        self._entry, self._slow = entry, slow
        self._kinds = [(t._data.shape, t._data.dtype) for t in tensors[:changing]]
        self._fixed = [*tensors[changing:], *entry.tensors]
        self._fixed_kinds = [(t, t._data.shape, t._data.dtype, t._requires_grad) for t in self._fixed]
        every = [*tensors[:changing], *self._fixed]
        self._strides = [t._data.strides for t in every] if entry.traced.layouts else None
        self._default = dtypes.default()

    def _holds(self, arrays: Sequence[Array]) -> bool:
        if is_seen(self._fixed) or thread.modes.watch is not None or dtypes.default() is not self._default:
            return False
        for a, (shape, dtype) in zip(arrays, self._kinds, strict=True):
            if a.shape != shape or a.dtype != dtype:
                return False
        for t, shape, dtype, requires in self._fixed_kinds:
            if t._data.shape != shape or t._data.dtype != dtype or t._requires_grad is not requires:
                return False
        if self._strides is not None and self._strides != [
            a.strides for a in (*arrays, *[t._data for t in self._fixed])
        ]:
            return False
        return self._entry.environment.holds_still()

    def value(self, *arrays: Array) -> Array:
        """The value, an array."""
        if self._holds(arrays):
            try:
                value: Array = self._entry.forward.run(*arrays, *[t._data for t in self._fixed])[0]
                return value
            except OutgrownError:
                pass
        found: Array = self._slow(*map(wrap, arrays))._data
        return found

    def value_and_gradient(self, array: Array) -> tuple[Array, Array] | None:
        """What a function `with_gradient` gives; None if that is to be had only as usual."""
        if not self._holds((array,)):
            return None
        try:
            value, gradient = self._entry.forward.run(array, *[t._data for t in self._fixed])
        except OutgrownError:
            return None
        return value, gradient


def with_gradient(f: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """From a function to a number to the function that gives its gradient by the first argument, too."""

    def both(x: Tensor, *args: Tensor) -> tuple[Tensor, Tensor]:
        value, pull = vjp(lambda y: f(y, *args), x)
        return value, pull(ones_like(value))[0]

    return both


def is_seen(tensors: Sequence[Tensor]) -> bool:
    """Whether a transform, a function mode or a class of tensors sees operations on these."""
    return LEVELS.n > 0 and bool(thread.modes.levels or overriding(tensors))


def direct(
    fn: Compiled,
    args: Sequence[Any],
    changing: int,
    *,
    gradient: bool = False,
    slow: Callable[..., Any] | None = None,
    traces: bool = True,
) -> Direct | None:
    """Calls of a compiled function on arrays; None if a call needs more than its program.

    args: the arguments of one call, Tensors; `changing` says how many of the first change. gradient: it is a function
    `with_gradient`. slow: the same function of those that change, if not `fn` is to run where its program cannot.
    traces: whether it may be traced for this.
    """
    if fn.options()[3] or not all(type(a) is Tensor for a in args) or is_seen(args):
        return None
    if len({id(a) for a in args}) < len(args):
        return None
    with_fixed = [*[wrap(a._data) for a in args[:changing]], *args[changing:]]
    entry = within(thread.modes, {"grad_enabled": False}, fn.entry_of, *with_fixed, traces=traces)
    if entry is None or not _is_simple(entry, gradient):
        return None
    return Direct(entry, with_fixed, changing, slow or (lambda *xs: fn(*xs, *args[changing:])))


def _is_simple(entry: Entry, gradient: bool) -> bool:
    """Whether a program has one result, or a number and its gradient, new tensors, and does not look at the memory
    around its tensors."""
    traced, names = entry.traced, ["value", "gradient"][: 1 + gradient]
    if not entry.direct or len(entry.outs) != len(names) or traced.whole or traced.asked or entry.shared:
        return False
    if gradient:
        return entry.rebuilt(names) == tuple(names) and traced.outs[0].shape == () and traced.outs[0].dtype.kind == "f"
    return entry.rebuilt(names) == names[0]

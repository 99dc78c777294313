"""From operations of the table to NumPy's: a trace becomes a `Program`.

The forward of each recorded operation is called with symbols. Its result on the example is compared with the result of
the operation itself: a forward that behaves differently on symbols is kept as one call.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import errors
from ...interpreters.traced import Entry, Ref, Trace
from ...table.operands import fits_half
from ...tensor import dtypes
from ...tensor.modes import thread, within
from ...tensor.tensor import wrap
from ..backends.steps import ASKED
from .program import Program, Value
from .symbols import Opaque, Symbol, called, made_in, symbol, symbols_in
from .whole_calls import LoopOp, WholeOp

if TYPE_CHECKING:
    from ...table.op import Op

Array = np.ndarray[Any, Any]


class Lowered:
    """The program of a trace: the value of each number, and the operations that are kept as calls."""

    def __init__(
        self,
        trace: Trace,
        captured: Collection[int],
        program: Program | None,
        known: Mapping[int, Value],
        repeated: Collection[int],
    ) -> None:
        """captured: the numbers of tensors from outside, which are read in each call. known: the values of arguments,
        by their numbers, in `program`, an earlier program that is continued. repeated: the numbers of arguments that
        are given as one element."""
        self.program = Program() if program is None else program
        self.program.on_gpu = trace.on_gpu
        self.values: dict[int, Value] = {}
        self.inputs: dict[int, Value] = {}  # the given value of each argument, before it is repeated
        self.opaque: dict[str, str] = {}  # the operations that were not decomposed, and the reason
        self._examples = trace.examples
        for number in (*trace.inputs, *captured):
            example = trace.examples[number]
            shape = () if number in repeated else example.shape
            given = known.get(number) or self.program.input(shape, example.dtype)
            self.inputs[number] = given
            self.values[number] = self.program.broadcast(given, example.shape)
        for number in trace.met:
            if number not in self.values:
                self.values[number] = self.program.array(trace.examples[number])
        for entry in trace.entries:
            self._enter(entry)
        self._examples = []  # as large as everything that the function computes

    def _enter(self, entry: Entry) -> None:
        if entry.op is None:
            self.values[entry.results[0]] = self.program.array(entry.args[0])
            return
        if isinstance(entry.op, LoopOp):
            self._loop(entry.op, entry)
            return
        try:
            with np.errstate(all="ignore"):
                found = self._apart(entry.op, entry)
        except (Opaque, TypeError, ValueError, AttributeError, IndexError, NotImplementedError, RuntimeError) as error:
            self.opaque.setdefault(entry.op.name, _reason(error))
            found = self._whole(entry)
        for number, value in zip(entry.results, found, strict=True):
            self.values[number] = value

    def _apart(self, op: Op, entry: Entry) -> list[Value]:
        """The values that make up the operation's forward."""
        args = replaced(entry.args, self._symbol)
        kwargs = replaced(entry.kwargs, self._symbol)
        if any(s.dtype.kind == "V" for s in symbols_in((args, kwargs))):
            raise Opaque
        if op.joins:
            dtype = dtypes.result_type([s.example for s in args[0]])
            args = ([s.astype(dtype) for s in args[0]], *args[1:])
        elif op.elementwise:
            args = tuple(self._promoted(op, op.padded(args, kwargs)))
            kwargs = {}
        symbolic = op.about.symbolic
        with_symbols = bool(symbols_in((args, kwargs)))
        if callable(symbolic):
            found = symbolic(self._examples[entry.results[0]], *args, **kwargs)
        else:
            found = called(op.forward, args, kwargs) if symbolic == "call" else op.forward(*args, **kwargs)
        if found is NotImplemented:
            raise Opaque
        outs = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(outs) != len(entry.results):
            raise Opaque
        values = []
        for out, number in zip(outs, entry.results, strict=True):
            if with_symbols and not isinstance(out, Symbol):
                raise Opaque
            made, expected = symbol(self.program, out), self._examples[number]
            if op.elementwise and made.dtype.char == "f" and expected.dtype.char == "e":
                made = made.astype(expected.dtype)
            if not same(made.example, expected):
                raise Opaque("its forward does something else for arrays")
            values.append(made.value)
        return values

    def _promoted(self, op: Op, args: tuple[Any, ...]) -> list[Any]:
        """The operands of an elementwise operation in their common dtype."""
        found = [args[i].example if isinstance(args[i], Symbol) else args[i] for i in op.promoted if i < len(args)]
        found = [p for p in found if p is not None or not op.defaults]
        dtype = dtypes.result_type(found)
        if op.floats and dtype.kind in "biu":
            dtype = dtypes.default()
        plain = len(found) == 2 and dtype.kind == "f" and any(type(p) in (bool, int, float) for p in found)
        operands: list[Any] = []
        for i, a in enumerate(args):
            if i not in op.promoted or a is None:
                operands.append(a)
            elif isinstance(a, Symbol):
                operands.append(a.astype(dtype))
            elif type(a) in (int, float) and dtype.char == "e" and not fits_half(op, a):
                operands.append(symbol(self.program, np.asarray(a, np.float32)))
            else:  # a number next to a tensor of floats is left to NumPy, as on the fast path
                operands.append(a if plain else symbol(self.program, np.asarray(a).astype(dtype)))
        return operands

    def _whole(self, entry: Entry) -> list[Value]:
        """The operation as one call."""
        assert entry.op is not None
        examples = [self._examples[n] for n in entry.results]
        many = len(examples) > 1
        call = self._call_of(entry.op) if isinstance(entry.op, WholeOp) else whole(entry.op)
        args, kwargs = replaced(entry.args, self._boxed), replaced(entry.kwargs, self._boxed)
        found = self.program.call(call, args, kwargs, tuple(examples) if many else examples[0])
        return list(found) if many else [found]

    def _loop(self, op: LoopOp, entry: Entry) -> None:
        """A loop, as a call of the program."""
        args = tuple(self.values[ref.number] for ref in entry.args)
        found = self.program.call(op.run, args, {}, tuple(self._examples[n] for n in entry.results))
        self.values.update(zip(entry.results, found, strict=True))

    def _call_of(self, op: WholeOp) -> Any:
        """The function of arrays for a call that is no operation of the table: the same one in each trace."""
        known = self.program.whole_calls
        if op.number is None:
            return whole.__wrapped__(op)
        if op.number not in known:
            known[op.number] = op, whole.__wrapped__(op)
        first, call = known[op.number]
        op.share(first)
        return call

    def _symbol(self, ref: Ref) -> Symbol:
        return made_in(self.program, self.values[ref.number], self._examples[ref.number])

    def _boxed(self, ref: Ref) -> _Boxed:
        return _Boxed(self.values[ref.number])


def _reason(error: Exception) -> str:
    """The reason why an operation is not decomposed, in the user's terms: errors of its code mention symbols."""
    if isinstance(error, Opaque):
        return str(error)
    if isinstance(error, AttributeError) and isinstance(error.obj, Symbol):
        return ASKED.get(str(error.name), f"its code asks an array for {error.name}, for which there is no loop")
    return "its code is for arrays and works with what is in them"


class _Boxed(NamedTuple):
    """Marks an array among the arguments of a whole operation, which gets it as a tensor."""

    array: Any


@functools.cache
def whole(op: Op) -> Any:
    """A function of arrays that calls an operation."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = within(thread.modes, {"grad_enabled": False}, op.unchecked, *_tensors(args), **_tensors(kwargs))
        parts = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(t._data for t in parts) if len(parts) > 1 else parts[0]._data

    call.__name__ = op.name
    errors.called(call, op.name)
    call.view, call.whole, call.users = op.view, True, isinstance(op, WholeOp)  # type: ignore[attr-defined]
    return call


def _tensors(tree: Any) -> Any:
    if isinstance(tree, _Boxed):
        return wrap(tree.array)
    if isinstance(tree, (tuple, list)):
        parts = [_tensors(part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return {key: _tensors(part) for key, part in tree.items()} if isinstance(tree, dict) else tree


def replaced(tree: Any, change: Any) -> Any:
    if isinstance(tree, Ref):
        return change(tree)
    if isinstance(tree, (tuple, list)):
        parts = [replaced(part, change) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return {key: replaced(part, change) for key, part in tree.items()} if isinstance(tree, dict) else tree


def same(made: Array, expected: Array) -> bool:
    """Whether two examples are equal, to rounding."""
    if made.shape != expected.shape or made.dtype != expected.dtype:
        return False
    if np.array_equal(made, expected):  # as they most often are, which is quicker to find
        return True
    if made.dtype.kind not in "fc":
        return False
    tolerance = 64 * float(np.finfo(made.dtype).eps)
    with np.errstate(all="ignore"):
        sizes = np.abs(expected[np.isfinite(expected)])
        small = tolerance * float(sizes.max(initial=0))  # a sum that cancels is no more exact than its terms
        return bool(np.allclose(made, expected, rtol=tolerance, atol=small, equal_nan=True))

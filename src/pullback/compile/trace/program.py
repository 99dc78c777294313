"""`Program`: a trace as a graph of NumPy operations, without repeated computations.

Its values are elementwise (`map`, a ufunc of values), reductions (`reduce`), views (`reshape`, `broadcast`), or results
of any other function (`call`). An existing value is not made again, and a value that depends on constants
alone is computed at once.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..backends.steps import facts

Shape = tuple[int, ...]

_COMPARED = 1 << 20
"""Constants of at most so many bytes are compared with one another."""


class Value:
    """One value of a program: its making from other values, its shape and its dtype.

    kind: "input" (`params` is its number), "const" (a scalar, in `params`), "array" (a constant array), "map" (`fn`:
    the name of a ufunc, "cast" or "where"), "broadcast", "reshaped", "reduce" (`fn`: the name of the ufunc; `params`:
    the axes, which are dropped), "call" (`fn` of `params`, a pair (args, kwargs) in which `Slot`s stand for `args`)
    or "item" (element `params` of a call with several results).
    """

    __slots__ = ("args", "dtype", "fn", "kind", "number", "params", "shape")

    def __init__(
        self, number: int, kind: str, fn: Any, args: tuple[Value, ...], params: Any, shape: Shape, dtype: Any
    ) -> None:
        self.number, self.kind, self.fn, self.args, self.params = number, kind, fn, args, params
        self.shape, self.dtype = shape, dtype

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return self.size * self.dtype.itemsize

    @property
    def elementwise(self) -> bool:
        """Whether it can be a step of a loop."""
        return self.kind in ("map", "broadcast")

    def __repr__(self) -> str:
        return f"%{self.number}"


class Slot:
    """In the arguments of a call, the place of its i-th value."""

    __slots__ = ("i",)

    def __init__(self, i: int) -> None:
        self.i = i


def filled(tree: Any, values: Sequence[Any]) -> Any:
    """Arguments with values in their slots."""
    if isinstance(tree, Slot):
        return values[tree.i]
    if isinstance(tree, (tuple, list)):
        parts = [filled(part, values) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {key: filled(part, values) for key, part in tree.items()}
    return tree


class Program:
    """The values of a trace, each after the values it is made from."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.on_gpu = False  # whether it runs on a GPU, where NumPy's functions have fewer forms
        self.whole_calls: dict[int, Any] = {}  # of the traces of one function: their n-th call that is no operation
        self.kept: dict[Any, Any] = {}  # of the loops that are found in its traces: what each keeps of its steps
        self._known: dict[Any, Value] = {}

    def _make(
        self, kind: str, fn: Any, args: tuple[Value, ...], params: Any, shape: Shape, dtype: Any, key: Any = None
    ) -> Value:
        key = (kind, fn, args, params if key is None else key, shape, dtype)
        try:
            known = self._known.get(key)
        except TypeError:  # arguments that cannot be compared
            known, key = None, None
        if known is not None:
            return known
        made = Value(len(self.values), kind, fn, args, params, shape, np.dtype(dtype))
        self.values.append(made)
        if key is not None:
            self._known[key] = made
        return made

    def input(self, shape: Shape, dtype: Any) -> Value:
        """A new argument."""
        return self._make("input", None, (), len(self.values), shape, dtype)

    def const(self, value: Any, dtype: Any, shape: Shape = ()) -> Value:
        """A number, repeated to a shape."""
        number = np.dtype(dtype).type(value)
        made = self._make("const", None, (), number, (), dtype, key=number.tobytes())
        return self.broadcast(made, shape)

    def array(self, array: np.ndarray[Any, Any]) -> Value:
        """A constant array."""
        if array.size == 1:
            return self.reshape(self.const(array.reshape(-1)[0], array.dtype), array.shape)
        held = np.ascontiguousarray(array)
        # a later trace of the same function makes its constants anew, and is to find the values that depend on them
        key = hashlib.sha256(held.tobytes()).digest() if held.nbytes <= _COMPARED else id(held)
        return self._make("array", None, (), held, array.shape, array.dtype, key=key)

    def map(self, name: str, args: Sequence[Value], dtype: Any) -> Value:
        """A ufunc of values of the dtypes of one of its loops, or "where" or "cast"."""
        shape = _common(args)
        args = tuple(_source(a) for a in args)
        if all(a.kind == "const" for a in args):
            with np.errstate(all="ignore"):
                return self.const(computed(name, [a.params for a in args], dtype), dtype, shape)
        if name == "cast" and _of_mask(args[0]):
            args = args[0].args
        same = _identity(name, args)
        if same is not None and same.dtype == dtype:
            return self.broadcast(same, shape)
        made = _common(args)
        name, args = _without_negative(name, args)
        return self.broadcast(self._make("map", name, args, None, made, dtype), shape)

    def cast(self, value: Value, dtype: Any) -> Value:
        """A value converted to a dtype."""
        return value if value.dtype == dtype else self.map("cast", (value,), np.dtype(dtype))

    def broadcast(self, value: Value, shape: Shape) -> Value:
        """A value repeated to a shape."""
        shape = tuple(shape)
        if value.shape == shape:
            return value
        value = _source(value)
        return value if value.shape == shape else self._make("broadcast", None, (value,), None, shape, value.dtype)

    def reshape(self, value: Value, shape: Shape) -> Value:
        """A value with its elements, in order, in another shape."""
        shape = tuple(shape)
        if value.shape == shape:
            return value
        constant = _source(value)
        if constant.kind == "const":
            return self.broadcast(constant, shape)
        if value.kind == "reshaped":
            return self.reshape(value.args[0], shape)
        return self._make("reshaped", None, (value,), None, shape, value.dtype)

    def reduce(self, name: str, value: Value, axes: Iterable[int]) -> Value:
        """The reduction by a ufunc over axes, which are dropped."""
        axes = tuple(sorted(axes))
        shape = tuple(n for i, n in enumerate(value.shape) if i not in axes)
        if all(value.shape[i] == 1 for i in axes):
            return self.reshape(value, shape)
        return self._make("reduce", name, (value,), axes, shape, value.dtype)

    def call(self, fn: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> Any:
        """Any function, called with values among its arguments; `result` is its result here, one array or several."""
        values: list[Value] = []
        tree = (_slotted(args, values), _slotted(kwargs, values))
        many = isinstance(result, tuple)
        first = np.asarray(() if many else result)
        key = key_of(tree)
        made = self._make("call", fn, tuple(values), tree, first.shape, first.dtype, key=key)
        if not many:
            return made
        return tuple(
            self._make("item", None, (made,), i, np.shape(r), np.asarray(r).dtype) for i, r in enumerate(result)
        )


class Rounds:
    """A loop of a program: `n` times the same step, a program of its own.

    carries, xs, closures: the arguments of the step's program: what a step gives to the next (`nexts`), one element of
    each input, and what all steps read. n: -1 if the loop goes on for as long as its last carry, a bool, is true. ys:
    what is kept of each step. histories: the numbers of the carries that are
    kept of each step as well. reverse: whether the steps go from the end of the inputs.

    It takes the first carries, the inputs and the closures; it gives the last carries, then each of `ys` with the steps
    as its first axis, in the order of the inputs, then each history: the carries before each step, and after the last
    one (for `reverse`, the other way round).
    """

    def __init__(
        self,
        name: str,
        n: int,
        reverse: bool,
        arguments: tuple[Sequence[Value], Sequence[Value], Sequence[Value]],
        nexts: Sequence[Value],
        ys: Sequence[Value],
        histories: Sequence[int] = (),
    ) -> None:
        self.name, self.n, self.reverse = name, n, reverse
        self.carries, self.xs, self.closures = arguments
        self.nexts, self.ys, self.histories = nexts, ys, histories

    def shapes(self) -> list[tuple[Shape, np.dtype[Any]]]:
        """The shapes and dtypes of what it gives."""
        found = [(v.shape, v.dtype) for v in self.carries]
        found += [((self.n, *v.shape), v.dtype) for v in self.ys]
        return found + [((self.n + 1, *self.carries[i].shape), self.carries[i].dtype) for i in self.histories]

    def key(self) -> Any:
        """What is equal for loops that do the same."""
        arguments = [*self.carries, *self.xs, *self.closures]
        values = [
            (v.number, v.kind, v.fn, tuple(a.number for a in v.args), key_of(v.params), v.shape, v.dtype)
            for v in reachable([*arguments, *self.nexts, *self.ys])
        ]
        places = [tuple(v.number for v in part) for part in (*self._parts(), self.nexts, self.ys)]
        key = (self.name, self.n, self.reverse, tuple(self.histories), *places, *values)
        try:
            hash(key)
        except TypeError:  # arguments that cannot be compared
            return id(self)
        return key

    def _parts(self) -> tuple[Sequence[Value], Sequence[Value], Sequence[Value]]:
        return self.carries, self.xs, self.closures

    def example(self, *arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        """What it gives on an example. Later steps than the first `_SHOWN` are not computed, and repeat the last."""
        m, k = len(self.carries), len(self.carries) + len(self.xs)
        outs = [np.empty(*shape) for shape in self.shapes()]
        of_steps, of_histories = outs[m : m + len(self.ys)], outs[m + len(self.ys) :]
        carries, found = list(arrays[:m]), list(arrays[:m])
        known = dict(zip(self.closures, arrays[k:], strict=True))
        for step in range(_SHOWN if self.n < 0 else self.n):
            if self.n < 0 and not carries[-1]:
                break
            place = self.n - 1 - step if self.reverse else step
            if step < _SHOWN:
                given = [*zip(self.carries, carries, strict=True)]
                given += [(v, a[place, ...]) for v, a in zip(self.xs, arrays[m:k], strict=True)]
                found = evaluated([*self.nexts, *self.ys], {**known, **dict(given)})
            for out, i in zip(of_histories, self.histories, strict=True):
                out[place + self.reverse], out[place + 1 - self.reverse] = carries[i], found[i]
            for out, y in zip(of_steps, found[m:], strict=True):
                out[place] = y
            carries = found[:m]
        return (*map(np.array, carries), *outs[m:])


_SHOWN = 32


def evaluated(outs: Sequence[Value], known: dict[Value, Any]) -> list[Any]:
    """Arrays for values, from those of other values."""
    made = dict(known)
    with np.errstate(all="ignore"):
        for value in reachable(outs, made.keys()):
            if value in made:
                continue
            args = [made[a] for a in value.args]
            if value.kind in ("const", "array"):
                found = value.params
            elif value.kind == "map":
                found = computed(value.fn, args, value.dtype)
            elif value.kind == "broadcast":
                found = np.broadcast_to(args[0], value.shape)
            elif value.kind == "reshaped":
                found = np.reshape(args[0], value.shape)
            elif value.kind == "reduce":
                found = getattr(np, value.fn).reduce(args[0], value.params, dtype=value.dtype)
            elif value.kind == "item":
                found = args[0][value.params]
            else:
                found = value.fn(*filled(value.params[0], args), **filled(value.params[1], args))
            made[value] = found
    return [np.asarray(made[v]) for v in outs]


def _common(args: Sequence[Value]) -> Shape:
    """The shape that values have together."""
    shapes = {a.shape for a in args}
    return shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


def _slotted(tree: Any, values: list[Value]) -> Any:
    if isinstance(tree, Value):
        values.append(tree)
        return Slot(len(values) - 1)
    if isinstance(tree, (tuple, list)):
        parts = [_slotted(part, values) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {key: _slotted(part, values) for key, part in tree.items()}
    return tree


def key_of(tree: Any) -> Any:
    """A key that is equal for equal arguments; unequal to every other if they cannot be compared."""
    if isinstance(tree, Slot):
        return ("slot", tree.i)
    if isinstance(tree, (tuple, list)):
        return (type(tree), *map(key_of, tree))
    if isinstance(tree, dict):
        return (dict, *((key, key_of(part)) for key, part in tree.items()))
    if isinstance(tree, slice):
        return (slice, tree.start, tree.stop, tree.step)
    if isinstance(tree, (np.ndarray, np.generic)):
        return (np.ndarray, id(tree)) if np.size(tree) > 64 else (tree.dtype, np.shape(tree), tree.tobytes())
    return (type(tree), repr(tree) if isinstance(tree, (float, complex)) else tree)


def _source(value: Value) -> Value:
    """The value that this one repeats, if it repeats one."""
    while value.kind == "broadcast":
        value = value.args[0]
    return value


def _identity(name: str, args: Sequence[Value]) -> Value | None:
    """The operand that the result always equals, if there is one."""
    if name == "cast":  # where the dtype is the same
        return args[0]
    known = facts(name)
    if args[0].dtype.kind == "c":  # (inf + 0j) * 1 is inf + nan j
        return None
    if known.right is not None and args[1].kind == "const" and args[1].params == known.right:
        return args[0]
    if known.left is not None and args[0].kind == "const" and args[0].params == known.left:
        return args[1]
    if known.of_mask is not None and args[1].kind == "const" and args[1].params == known.of_mask and _of_mask(args[0]):
        return args[0].args[0]
    return None


def _without_negative(name: str, args: tuple[Value, ...]) -> tuple[str, tuple[Value, ...]]:
    """A sum with a value taken negative, as derivatives of differences are, as the difference: the same to the bit.

    (But for the sign of a NaN, which says nothing.)
    """
    known = facts(name)
    if known.opposite:
        left, right = args
        if _is_negative(right):
            return known.opposite, (left, _source(right.args[0]))
        if known.commutes and _is_negative(left):
            return known.opposite, (right, _source(left.args[0]))
    return name, args


def _is_negative(value: Value) -> bool:
    return value.kind == "map" and facts(value.fn).negates


def _of_mask(value: Value) -> bool:
    """Whether it is a mask in another dtype."""
    return value.kind == "map" and value.fn == "cast" and value.args[0].dtype == bool


def computed(name: str, values: Sequence[Any], dtype: Any) -> Any:
    """The result of a step on numbers or arrays."""
    if name == "cast":
        return np.asarray(values[0]).astype(dtype)
    return getattr(np, name)(*values)


def reachable(outs: Iterable[Value], available: Collection[Value] = frozenset()) -> list[Value]:
    """The values that `outs` need, each after the values it is made from; available values need nothing."""
    found: set[Value] = set()
    stack = list(outs)
    while stack:
        value = stack.pop()
        if value not in found:
            found.add(value)
            if value not in available:
                stack += value.args
    return sorted(found, key=lambda v: v.number)


def users(values: Iterable[Value], available: frozenset[Value] | set[Value]) -> dict[Value, list[Value]]:
    """For each value, the values that are made from it."""
    found: dict[Value, list[Value]] = {}
    for value in values:
        if value not in available:
            for arg in value.args:
                found.setdefault(arg, []).append(value)
    return found


def walk(tree: Any) -> Iterator[Any]:
    """The leaves of arguments."""
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from walk(part)
    elif isinstance(tree, dict):
        yield from walk(tuple(tree.values()))
    else:
        yield tree

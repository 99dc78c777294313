"""`ArrayBox`: what an array or a number is while it is traced, with NumPy's behaviour.

A box holds a Tensor. Outside of a trace there are only NumPy's arrays and numbers. Inside, operators, methods and
NumPy's functions take the Tensors out of their boxes, call the operation of this package that computes and records
them, and box a result if it is still traced. So the rules are those of the table: a box has none. It adds what NumPy
does where Tensor does what torch does: indexing, methods, comparisons, and iteration.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from ... import errors
from ...ops.elementwise.arithmetic import add, mul, neg, sub
from ...ops.make.conversion import to
from ...ops.numpy.values import BY_SHAPE, BY_VALUE
from ...tensor.memory import LevelPayload
from ...tensor.tensor import NUMPY, Lifted, Tensor, wrap

_FLOATS = "fc"
_PLAIN = (np.ndarray, np.generic, float, int, complex)

RULES: dict[Any, Callable[..., Any]] = {}
"""Functions that were given rules by the user (`user_rules.py`): they are called instead of our own."""

RAW: dict[Any, Any] = {}
"""NumPy's function behind each of ours that stands for one: rules are given to that."""

OF_VALUES = frozenset({*BY_VALUE, *BY_SHAPE, np.allclose, np.array_equal, np.isclose, np.ndim, np.shape, np.size})
"""Functions without a derivative: they are called on the values."""


class Box:
    """The base class of traced values, for `isinstance` and for boxes of vectors of the user's own (`spaces.py`)."""

    __slots__ = ("__weakref__", "_value", "tensor")

    _value: Any
    tensor: Tensor
    __array_priority__ = 90.0
    types: ClassVar[set[type]] = set()
    type_mappings: ClassVar[dict[type, type]] = {}

    @classmethod
    def register(cls, value_type: type) -> None:
        """Say that values of a type are traced by this class."""
        Box.types.add(cls)
        Box.type_mappings[value_type] = Box.type_mappings[cls] = cls


class SequenceBox(Box):
    """No value has this class: a traced list or tuple is a list or tuple of boxes."""

    __slots__ = ()


class DictBox(Box):
    """No value has this class: a traced dict is a dict of boxes."""

    __slots__ = ()


class ArrayBox(Box):
    """A traced array or number.

    >>> import pullback.bridge.autograd.numpy as np
    >>> from pullback.bridge.autograd import grad
    >>> seen = []
    >>> float(grad(lambda x: seen.append(x) or x[0] * x[1])(np.array([2.0, 3.0]))[0])
    3.0
    >>> seen[0].shape, seen[0]._value.tolist()
    ((2,), [2.0, 3.0])
    """

    __slots__ = ()

    __array_priority__ = 100.0
    __hash__ = object.__hash__

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def _value(self) -> Any:
        """The value without this trace: an array or a number, or a box if another trace follows it."""
        data = self.tensor._data
        if isinstance(data, LevelPayload):
            return boxed(data.inside)
        if type(data) is not np.ndarray:  # of a trace
            data = data.numpy()
        return data if data.ndim else data[()]

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(self.tensor._data.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.tensor._data.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.tensor._data.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of the elements."""
        return self.tensor._data.dtype

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        """The axes in reverse order."""
        return self.transpose()

    @property
    def real(self) -> Any:
        """The real part."""
        return np.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return np.imag(self)

    @property
    def flat(self) -> Any:
        """An iterator of the elements."""
        return iter(self.flatten())

    def __repr__(self) -> str:
        return f"Autograd {type(self).__name__} with value {getval(self)}"

    def __len__(self) -> int:
        if not self.tensor._data.ndim:
            raise TypeError("len() of unsized object")
        return self.tensor._data.shape[0]

    def __bool__(self) -> bool:
        return bool(getval(self))

    def __int__(self) -> int:
        return int(getval(self))

    def __contains__(self, element: Any) -> bool:
        return getval(element) in getval(self)

    def __float__(self) -> float:
        raise TypeError(_lost("float"))

    def __complex__(self) -> complex:
        raise TypeError(_lost("complex"))

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        return importlib.import_module(__name__.replace("box", "numpy"))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return boxed(subscript(self.tensor, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            "'ArrayBox' object does not support item assignment.\n"
            "  What to do: make the array of its parts, with np.concatenate, np.where or np.array([...])."
        )

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """The values in another dtype; of a dtype without a derivative, an array."""
        if np.dtype(dtype).kind in _FLOATS:
            source = np.real(self).tensor if self.dtype.kind == "c" != np.dtype(dtype).kind else self.tensor
            return boxed(to(source, np.dtype(dtype)))
        return np.asarray(getval(self)).astype(dtype, *args, **kwargs)

    def copy(self) -> Any:
        """The same values."""
        return boxed(self.tensor.clone())

    def item(self, *args: Any) -> Any:
        """An element as a traced number."""
        return self.flatten()[args[0] if args else 0] if self.ndim or args else self

    def tolist(self) -> Any:
        """Nested lists of traced numbers."""
        return [part.tolist() for part in self] if self.ndim else self

    def flatten(self, order: str = "C") -> Any:
        """The elements in a row."""
        return self.reshape(-1, order=order)

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """numpy.reshape, with the shape as one tuple or as numbers."""
        return boxed(NUMPY[np.reshape](self.tensor, shape[0] if len(shape) == 1 else shape, order))

    def transpose(self, *axes: Any) -> Any:
        """numpy.transpose, with the axes as one tuple or as numbers."""
        return boxed(NUMPY[np.transpose](self.tensor, axes[0] if len(axes) == 1 else axes or None))

    def sort(self, axis: int = -1) -> None:
        """Refuse: it would write into a traced array."""
        raise TypeError("'ArrayBox' object cannot be sorted in place.\n  What to do: write np.sort(x).")

    # Operators ------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if not kwargs and method == "__call__" and ufunc not in RULES and (rule := NUMPY.get(ufunc)) is not None:
            if len(inputs) == 1:
                return boxed(rule(self.tensor))
            for i in inputs:
                if type(i) not in _KNOWN:
                    break
            else:  # the most frequent calls, shortly
                return boxed(rule(*[i.tensor if type(i) is ArrayBox else i for i in inputs]))
        if "out" in kwargs or any(_carries(i) for i in inputs):
            return NotImplemented  # so another class of arrays has its turn
        if method == "__call__" and ufunc in RULES:
            return RULES[ufunc](*inputs, **kwargs)
        plain = [i.tensor if type(i) is ArrayBox else unboxed(i) for i in inputs]
        return boxed(Tensor.__array_ufunc__(_ANY, ufunc, method, *plain, **{k: unboxed(v) for k, v in kwargs.items()}))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in RULES:
            return RULES[func](*args, **kwargs)
        if func in OF_VALUES:
            return func(*map(values, args), **{k: values(v) for k, v in kwargs.items()})
        plain = [a.tensor if type(a) is ArrayBox else unboxed(a) for a in args]
        named = {k: unboxed(v) for k, v in kwargs.items()}
        rule = NUMPY.get(func)
        return boxed(
            Tensor.__array_function__(_ANY, func, types, plain, named) if rule is None else rule(*plain, **named)
        )

    def __neg__(self) -> Any:
        return boxed(neg(self.tensor))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return np.abs(self)


_ANY = wrap(np.zeros(()))  # NumPy's protocols are methods; they do not look at the tensor itself


def _lost(kind: str) -> str:
    return errors.message(
        f"{kind}() argument must be a string or a real number, not 'ArrayBox'",
        do="compute with functions of autograd.numpy instead of math's, or take getval(x) if no gradient is wanted",
    )


def _carries(value: Any) -> bool:
    """Whether another class than NumPy's and ours wants to interpret ufuncs."""
    kind = type(value)
    return kind not in _KNOWN and getattr(kind, "__array_ufunc__", None) not in (None, np.ndarray.__array_ufunc__)


_KNOWN = frozenset({ArrayBox, Tensor, np.ndarray, float, int, complex, bool, np.float64})


def boxed(value: Any) -> Any:
    """A result as the user gets it: a box if it is traced, else an array or a number; also within lists and tuples."""
    if type(value) is Tensor:
        data = value._data
        if value._requires_grad or type(data) is not np.ndarray:
            return ArrayBox(value)
        return data if data.ndim else data[()]
    if isinstance(value, Tensor):
        return ArrayBox(value) if _is_traced(value) else getval(ArrayBox(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(boxed, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(boxed, value)) if type(value) in (list, tuple) else tuple(map(boxed, value))
    return value


def _is_traced(value: Tensor) -> bool:
    return isinstance(value, Lifted) and value._data.dtype.kind in _FLOATS


def unboxed(value: Any) -> Any:
    """An argument with Tensors instead of boxes, also within lists and tuples."""
    if type(value) is ArrayBox:
        return value.tensor
    if type(value) in (list, tuple):
        return type(value)([unboxed(v) for v in value])
    return value


def values(value: Any) -> Any:
    """An argument with values instead of boxes, also within lists and tuples."""
    return type(value)(map(values, value)) if type(value) in (list, tuple) else getval(value)


def isbox(value: Any) -> bool:
    """Whether a value is traced."""
    return isinstance(value, Box)


def getval(value: Any) -> Any:
    """The array or number within all traces of a value; another value unchanged."""
    while isinstance(value, Box):
        value = value._value
    return value


# Indexing -------------------------------------------------------------------------------------------------------------


def subscript(tensor: Tensor, index: Any) -> Tensor:
    """``tensor[index]`` as NumPy reads the index: arrays that a slice separates move their axes to the front, integers
    beside arrays count as arrays, and slices may go backwards."""
    kind = type(index)
    if kind is int:
        return tensor[index]
    parts = index if kind is tuple else (index,)
    for part in parts:
        if not (type(part) is int or part is None or part is Ellipsis or (type(part) is slice and not part.step)):
            break
    else:
        return tensor[parts]
    parts = tuple([_part(p) for p in parts])
    if any(isinstance(p, np.ndarray) for p in parts):
        parts = tuple([np.full((1,), p) if type(p) is int else p for p in parts])
    if any(isinstance(p, slice) and p.step is not None and p.step < 0 for p in parts):
        tensor, parts = _forwards(tensor, parts)
    return tensor[parts]


def _part(part: Any) -> Any:
    """One part of an index: integers as int, and sequences as arrays of int64 or bool."""
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return bool(part) if isinstance(part, np.bool_) else part
    if isinstance(part, slice):
        return slice(*(None if v is None else operator.index(getval(v)) for v in (part.start, part.stop, part.step)))
    array = np.asarray(getval(part))
    if not array.size and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
            "valid indices"
        )
    if array.dtype.kind != "b":
        return array.astype(np.int64) if array.ndim else int(array)
    return array


def _forwards(tensor: Tensor, parts: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
    """The tensor with axes reversed, and the same index without slices that go backwards."""
    taken = sum(1 for p in parts if isinstance(p, (int, slice)) and not isinstance(p, bool))
    taken += sum(p.ndim if p.dtype.kind == "b" else 1 for p in parts if isinstance(p, np.ndarray))
    axis, found = 0, []
    for part in parts:
        if part is Ellipsis:
            axis += tensor._data.ndim - taken
        elif isinstance(part, slice):
            if part.step is not None and part.step < 0:
                n = tensor._data.shape[axis]
                at = range(n)[part]
                tensor = NUMPY[np.flip](tensor, axis)
                part = slice(n - 1 - at[0], n - at[-1], -part.step) if len(at) else slice(0, 0)
            axis += 1
        elif isinstance(part, np.ndarray):
            axis += part.ndim if part.dtype.kind == "b" else 1
        elif isinstance(part, int) and not isinstance(part, bool):
            axis += 1
        found.append(part)
    return tensor, tuple(found)


# Operators and methods ------------------------------------------------------------------------------------------------


def _operator(ufunc: Any, op: Any, reflected: bool) -> Callable[..., Any]:
    """A Python operator: the operation of the table, for a box and a box, array or number."""

    def method(self: ArrayBox, other: Any) -> Any:
        kind = type(other)
        if kind is ArrayBox:
            return boxed(op(self.tensor, other.tensor))
        if kind is float or kind is int or kind is np.ndarray:
            return boxed(op(other, self.tensor) if reflected else op(self.tensor, other))
        if _carries(other):
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return method


_OPERATORS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "matmul": np.matmul,
}
_OPERATIONS = {"add": add, "sub": sub, "mul": mul}
for _name, _ufunc in _OPERATORS.items():
    _op = _OPERATIONS.get(_name) or NUMPY[_ufunc]
    setattr(ArrayBox, f"__{_name}__", _operator(_ufunc, _op, False))
    setattr(ArrayBox, f"__r{_name}__", _operator(_ufunc, _op, True))


def _comparison(ufunc: Any) -> Callable[..., Any]:
    """A comparison, which has no derivative: it compares the values."""

    def method(self: ArrayBox, other: Any) -> Any:
        return NotImplemented if _carries(other) else ufunc(getval(self), getval(other))

    return method


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _words = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater"}
    setattr(ArrayBox, f"__{_name}__", _comparison(getattr(np, _words.get(_name, "greater_equal"))))


def _method(name: str) -> Callable[..., Any]:
    """A method that is the function of NumPy of the same name."""
    function = getattr(np, name)

    def method(self: ArrayBox, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"numpy.{name}."
    return method


METHODS = (
    "all any argmax argmin argpartition argsort choose clip compress conj conjugate cumprod cumsum diagonal dot max "
    "mean min nonzero prod ptp ravel repeat round searchsorted squeeze std sum swapaxes take trace var"
).split()
for _name in METHODS:
    setattr(ArrayBox, _name, _method(_name))


for _type in (np.ndarray, float, np.float64, np.float32, np.float16, complex, np.complex64, np.complex128):
    ArrayBox.register(_type)
SequenceBox.register(tuple)
SequenceBox.register(list)
DictBox.register(dict)

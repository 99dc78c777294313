"""`Symbol`: an array that records the operations on it in a `Program`.

The forwards of the table's operations are NumPy code on arrays. Called with symbols, they show the ufuncs, reductions
and other calls they consist of. A symbol also carries an example: its value in the call that is traced. A forward that
reads values is not decomposed (`Opaque`), because the values would be frozen into the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...kernels.counterparts import FOLDS, folded
from ...tensor.adding import summed
from ..backends.steps import folds, is_fixed
from .program import Program, Value

Array = np.ndarray[Any, Any]
_WEAK = (bool, int, float, complex)


class Opaque(Exception):  # noqa: N818 - it does not report a fault
    """A forward that cannot be decomposed."""


class Symbol(NDArrayOperatorsMixin):
    """An array of a program; it can be written to by ``out=``, and then stands for the new value."""

    __slots__ = ("example", "program", "value")

    def __init__(self, program: Program, value: Value, example: Any) -> None:
        self.program, self.value, self.example = program, value, np.asarray(example)

    shape = property(lambda self: self.example.shape)
    dtype = property(lambda self: self.example.dtype)
    ndim = property(lambda self: self.example.ndim)
    size = property(lambda self: self.example.size)
    itemsize = property(lambda self: self.example.itemsize)
    nbytes = property(lambda self: self.example.nbytes)
    real = property(lambda self: np.real(self))
    imag = property(lambda self: np.imag(self))
    T = property(lambda self: np.transpose(self))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if method == "at":  # it writes
            raise Opaque
        if method == "reduce":
            return _reduce(ufunc, *inputs, **kwargs) if out is None else _refuse()
        if ufunc is np.matmul and out is None and not kwargs:
            return _product(*inputs)
        steps = method == "__call__" and not kwargs and ufunc.nout == 1 and ufunc.signature is None
        own = getattr(np, ufunc.__name__, None) is ufunc
        if not steps or not own:
            if out is not None:
                raise Opaque
            if not own and isinstance(self, SymbolOfGpu):
                raise Opaque("it is a function of SciPy, whose place CuPy's takes")
            return called(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)
        found = mapped(self.program, ufunc, inputs)
        if out is None:
            return found
        (target,) = out
        if not isinstance(target, Symbol) or target.shape != found.shape:
            raise Opaque
        target.become(found if target.dtype == found.dtype else found.astype(target.dtype))
        return target

    def become(self, other: Symbol) -> None:
        """Stand for another value from now on."""
        self.value, self.example = other.value, other.example

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if hasattr(func, "on_arrays"):
            raise Opaque
        if func is np.asarray:
            return symbol(self.program, *args, **kwargs)  # a constant beside this one, by ``like=``
        handler = HANDLERS.get(func)
        return called(func, args, kwargs) if handler is None else handler(*args, **kwargs)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> Symbol:
        """As an array's."""
        dtype = np.dtype(dtype)
        with np.errstate(all="ignore"):
            return made_in(self.program, self.program.cast(self.value, dtype), self.example.astype(dtype))

    def copy(self, order: str = "C") -> Symbol:
        """As an array's."""
        return made_in(self.program, self.value, self.example)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """As an array's."""
        return _clip(self, min, max)

    def reshape(self, *shape: Any) -> Any:
        """As an array's."""
        return _reshape(self, shape[0] if len(shape) == 1 else shape)

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """As an array's."""
        return np.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def transpose(self, *axes: Any) -> Any:
        """As an array's."""
        return np.transpose(self, axes or None)

    def swapaxes(self, a: int, b: int) -> Any:
        """As an array's."""
        return np.swapaxes(self, a, b)

    def take(self, indices: Any, axis: Any = None) -> Any:
        """As an array's."""
        return called(np.take, (self, indices), {"axis": axis})

    def __getitem__(self, index: Any) -> Any:
        return called(taken, (self, index), {})

    def __len__(self) -> int:
        return len(self.example)

    def _no_value(self, *args: Any, **kwargs: Any) -> Any:
        raise Opaque

    __array__ = __bool__ = __float__ = __int__ = __index__ = __iter__ = __setitem__ = item = tolist = _no_value
    __hash__ = None  # type: ignore[assignment]


class SymbolOfGpu(Symbol):
    """A symbol of a program for a GPU: what is said of arrays of another library (`is_foreign`) is said of it, so that
    it meets the functions that CuPy has."""

    __slots__ = ()
    of_gpu = True


def made_in(program: Program, value: Value, example: Any) -> Symbol:
    """The symbol of a value."""
    return (SymbolOfGpu if program.on_gpu else Symbol)(program, value, example)


def taken(array: Array, index: Any) -> Any:
    """A part of an array, selected by subscripts that give a view."""
    return array[index]


taken.view = True  # type: ignore[attr-defined]


def _parts(tree: Any, change: Callable[[Symbol], Any]) -> Any:
    if isinstance(tree, Symbol):
        return change(tree)
    if isinstance(tree, (tuple, list)):
        parts = [_parts(part, change) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {key: _parts(part, change) for key, part in tree.items()}
    return tree


def symbols_in(tree: Any) -> list[Symbol]:
    """The symbols among arguments."""
    if isinstance(tree, Symbol):
        return [tree]
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    return [s for part in tree for s in symbols_in(part)] if isinstance(tree, (tuple, list)) else []


def called(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Any NumPy function, as a call of the program."""
    if kwargs.get("out") is not None:
        raise Opaque
    if getattr(fn, "__module__", None) == "numpy.linalg" and isinstance(args[0], SymbolOfGpu):
        raise Opaque("CuPy has to be asked for its errors")
    program = symbols_in((args, kwargs))[0].program
    example = fn(*_parts(args, _example), **_parts(kwargs, _example))
    if _depends(fn, args, kwargs, example):
        raise Opaque("the size or the dtype of what NumPy gives in it depends on values")
    example = tuple(example) if isinstance(example, list) else example
    if not all(isinstance(e, (np.ndarray, np.generic)) for e in (example if isinstance(example, tuple) else [example])):
        raise Opaque
    made = program.call(fn, _parts(args, _value), _parts(kwargs, _value), example)
    if isinstance(example, tuple):
        return tuple(made_in(program, m, e) for m, e in zip(made, example, strict=True))
    return made_in(program, made, example)


_OF_VALUES = (np.linalg.eig, np.linalg.eigvals, np.unique)  # they have another dtype or size for rare values


def _depends(fn: Any, args: Any, kwargs: Any, example: Any) -> bool:
    """Whether the shape or the dtype of a result, or an error, may depend on values: it is another one for zeros or
    ones, or known to be."""
    if is_fixed(fn) or (fn is taken and not symbols_in(args[1])):
        return False
    if fn in _OF_VALUES:
        return True
    for number in (0, 1):
        try:
            found = fn(*_filled(args, number), **_filled(kwargs, number))
        except IndexError:  # the numbers may be positions, which says nothing
            continue
        except Exception:
            return True
        if _kinds(found) != _kinds(example):
            return True
    return False


def _filled(tree: Any, number: int) -> Any:
    return _parts(tree, lambda s: np.full(s.shape, number, s.dtype))


def _kinds(found: Any) -> list[tuple[Any, Any]]:
    """The shape and the dtype of each array that a function gives."""
    parts = found if isinstance(found, (tuple, list)) else (found,)
    return [(np.shape(part), getattr(part, "dtype", type(part))) for part in parts]


def _example(s: Symbol) -> Array:
    return s.example


def _value(s: Symbol) -> Value:
    return s.value


def symbol(program: Program, value: Any, dtype: Any = None) -> Symbol:
    """A number or a constant array as a symbol."""
    if isinstance(value, Symbol):
        return value
    array = np.asarray(value, dtype)
    return made_in(program, program.array(array) if array.ndim else program.const(array[()], array.dtype), array)


def mapped(program: Program, ufunc: np.ufunc, inputs: Any) -> Symbol:
    """A ufunc of symbols, arrays and numbers."""
    kinds = [type(x) if type(x) in _WEAK else x.dtype if isinstance(x, Symbol) else np.asarray(x).dtype for x in inputs]
    try:
        *loop, result = ufunc.resolve_dtypes((*kinds, None))
    except (TypeError, ValueError):
        raise Opaque from None
    operands = [symbol(program, x, d if type(x) in _WEAK else None) for x, d in zip(inputs, loop, strict=True)]
    example = ufunc(*(s.example if isinstance(s, Symbol) else s for s in inputs))
    values = [program.cast(s.value, d) for s, d in zip(operands, loop, strict=True)]
    return made_in(program, program.map(ufunc.__name__, values, result), example)


def _product(a: Any, b: Any) -> Any:
    """A product of matrices: many matrices by one are one product of all rows; a column by a row is elementwise."""
    if a.ndim > 1 and b.ndim > 1 and a.shape[-1] == 1:
        return np.multiply(a, b)
    rows = a.shape[:-1]
    if len(rows) < 2 or b.ndim != 2 or 0 in a.shape:
        return called(np.matmul, (a, b), {})
    found = called(np.matmul, (np.reshape(a, (-1, a.shape[-1])), b), {})
    return np.reshape(found, (*rows, b.shape[-1]))


def _program(*values: Any) -> Program:
    return next(v.program for v in values if isinstance(v, Symbol))


def _reduce(
    ufunc: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    if not folds(ufunc) or where is not True or not isinstance(array, Symbol):
        raise Opaque
    how = {} if initial is None else {"initial": initial}
    dtype = None if dtype is None else np.dtype(dtype)
    fold = summed if ufunc is np.add and not how else ufunc.reduce
    example = np.asarray(fold(array.example, axis, dtype=dtype, keepdims=keepdims, **how))
    # a sum in half precision is computed in a wider one
    if array.dtype == np.float16 or example.dtype.kind not in "biufc" or not array.size or array.dtype == object:
        if array.program.on_gpu and ufunc in FOLDS and dtype is None:  # CuPy has no such methods of ufuncs
            return called(folded, (ufunc, array, axis, keepdims, initial), {})
        return called(fold, (array, axis), {"dtype": dtype, "keepdims": keepdims, **how})
    program, ndim = array.program, array.ndim
    axes = tuple(range(ndim)) if axis is None else tuple(a % ndim for a in np.atleast_1d(axis)) if ndim else ()
    value = program.reduce(ufunc.__name__, program.cast(array.value, example.dtype), axes)
    if initial is not None:
        value = program.map(ufunc.__name__, (value, program.const(initial, example.dtype)), example.dtype)
    return made_in(program, program.reshape(value, np.shape(example)), example)


def _folded(ufunc: Any) -> Callable[..., Any]:
    def fold(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **how: Any) -> Any:
        given = {k: v for k, v in how.items() if v is not np._NoValue}
        return _reduce(ufunc, a, axis, dtype, **given) if out is None else _refuse()

    return fold


def _extreme(ufunc: Any) -> Callable[..., Any]:
    fold = _folded(ufunc)
    return lambda a, axis=None, out=None, **how: fold(a, axis, None, out, **how)


def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    if not isinstance(a, Symbol) or a.dtype.kind not in "fc" or a.dtype == np.float16 or out is not None:
        return called(np.mean, (a, axis, dtype), {"keepdims": keepdims})
    total = np.sum(a, axis=axis, dtype=dtype, keepdims=keepdims)
    return np.true_divide(total, total.dtype.type(a.size // max(total.size, 1)))


def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise Opaque
    program = _program(condition, *choices)
    example = np.where(*(c.example if isinstance(c, Symbol) else c for c in (condition, *choices)))
    if not isinstance(condition, Symbol) and isinstance(condition, bool):
        condition = np.asarray(condition)
    values = [program.cast(symbol(program, condition).value, np.dtype(bool))]
    for choice in choices:
        made = symbol(program, choice, example.dtype if type(choice) in _WEAK else None)
        values.append(program.cast(made.value, example.dtype))
    return made_in(program, program.map(np.where.__name__, values, example.dtype), example)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = a_min if min is None else min, a_max if max is None else max
    found = a if low is None else np.maximum(a, low, out=out)
    return found if high is None else np.minimum(found, high, out=out)


def _reshape(a: Any, shape: Any, order: str = "C", **kwargs: Any) -> Any:
    if order != "C" or not isinstance(a, Symbol):
        raise Opaque
    example = np.reshape(a.example, shape)
    return made_in(a.program, a.program.reshape(a.value, example.shape), example)


def _moved(function: Any) -> Callable[..., Any]:
    """A function that only inserts or removes axes of length 1, or flattens."""

    def change(a: Any, *args: Any, **kwargs: Any) -> Any:
        return _reshape(a, function(a.example, *args, **kwargs).shape)

    return change


def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    example = np.broadcast_to(array.example, shape)
    return made_in(array.program, array.program.broadcast(array.value, example.shape), example)


def _filled_like(value: Any) -> Callable[..., Any]:
    def make(a: Any, *given: Any, dtype: Any = None, shape: Any = None, **kwargs: Any) -> Any:
        number = given[0] if value is None else value
        dtype = (given[1] if len(given) > 1 else dtype) if value is None else (given[0] if given else dtype)
        if isinstance(number, Symbol) or not isinstance(a, Symbol) or np.ndim(number):
            raise Opaque
        example = np.full(a.shape if shape is None else shape, number, a.dtype if dtype is None else dtype)
        made = a.program.const(example.dtype.type(number), example.dtype, example.shape)
        return made_in(a.program, made, example)

    return make


def _part_of_complex(function: Any) -> Callable[..., Any]:
    def part(val: Any) -> Any:
        if val.dtype.kind != "c":
            return val if function is np.real else np.zeros_like(val)
        return called(function, (val,), {})

    return part


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise Opaque


HANDLERS: dict[Any, Callable[..., Any]] = {
    np.sum: _folded(np.add),
    np.prod: _folded(np.multiply),
    np.max: _extreme(np.maximum),
    np.min: _extreme(np.minimum),
    np.amax: _extreme(np.maximum),
    np.amin: _extreme(np.minimum),
    np.mean: _mean,
    np.where: _where,
    np.clip: _clip,
    np.reshape: _reshape,
    np.ravel: _moved(np.ravel),
    np.squeeze: _moved(np.squeeze),
    np.expand_dims: _moved(np.expand_dims),
    np.broadcast_to: _broadcast_to,
    np.zeros_like: _filled_like(0),
    np.ones_like: _filled_like(1),
    np.full_like: _filled_like(None),
    np.copy: lambda a, order="K", subok=False: a.copy(),
    np.real: _part_of_complex(np.real),
    np.imag: _part_of_complex(np.imag),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.result_type: lambda *args: np.result_type(*(a.dtype if isinstance(a, Symbol) else a for a in args)),
    np.empty_like: _refuse,
    np.may_share_memory: _refuse,
    np.shares_memory: _refuse,
    np.copyto: _refuse,
    np.put: _refuse,
    np.putmask: _refuse,
    np.put_along_axis: _refuse,
    np.place: _refuse,
    np.fill_diagonal: _refuse,
}

"""Making tensors of a size: filled, evenly spaced, or like another tensor.

Each function is written to return an array; `factory` makes the public function from it, with torch's common arguments:
``out``, ``layout``, ``device``, ``pin_memory`` and ``requires_grad``.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import write_out
from ...table.entry import METHODS, alias
from ...tensor import dtypes
from ...tensor.arrays import beside, counted, sizes
from ...tensor.modes import LEVELS
from ...tensor.overrides import by_first_argument, chosen, dispatch, overriding
from ...tensor.protocol import is_payload
from ...tensor.tensor import NUMPY, Lifted, Tensor, need_tensor, wrap
from .conversion import laid_out, order_of
from .from_data import finish, fitting
from .generators import generator_for

_CO_VARARGS = 4
_LONGEST = 2**63 - 1  # the length of an axis
_IN_ORDER = {"arange", "range", "linspace", "logspace"}  # fill an out= of the same size, whatever its shape
_SHARED = [
    inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d)
    for n, d in {"out": None, "layout": None, "device": None, "pin_memory": False, "requires_grad": False}.items()
]


def factory(make: Callable[..., Any], home: str = "") -> Callable[..., Tensor]:
    """Publish a function that returns an array (or a tensor) of a size and `dtype` as a function that creates tensors.

    home: the module below `pullback` that the function belongs to.
    """
    name = make.__name__.rstrip("_")
    takes_sizes = "size" in make.__code__.co_varnames and bool(make.__code__.co_flags & _CO_VARARGS)
    draws = "generator" in make.__code__.co_varnames

    @functools.wraps(make)
    def call(
        *args: Any,
        out: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        **named: Any,
    ) -> Tensor:
        if LEVELS.n and (kinds := overriding((*args, *named.values()))):
            place = {"layout": layout, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad}
            return dispatch(kinds, call, args, named | chosen(out=out, **place))
        if takes_sizes and not args:
            if "size" not in named:
                raise TypeError(errors.message(f"{name}()", expected="sizes, as integers or as a tuple", found="none"))
            args = (named.pop("size"),)
        if out is not None:
            named["dtype"] = _dtype_of_out(name, out, named.get("dtype"))
        if device is None and out is None and not any(isinstance(a, Tensor) for a in args):
            device = dtypes.place_of_new()
        if draws:
            like = next((a for a in (*args, out) if isinstance(a, Tensor)), "cpu") if device is None else device
            named["generator"] = generator_for(like, named.get("generator"))
        try:
            made = make(*args, **named)
            if out is None:
                return finish(made, device, requires_grad, layout, pin_memory)
        except (MemoryError, ValueError, RuntimeError) as error:
            if (found := errors.of_size(name, error)) is error:
                raise
            raise found from None
        if name in _IN_ORDER and made.size == out._data.size:
            made = made.reshape(out._data.shape)
        return write_out(name, out, finish(made, device, requires_grad, layout, pin_memory))

    call.__name__ = call.__qualname__ = name
    errors.called(call, name)
    call.__signature__ = _signature(make)  # type: ignore[attr-defined]
    call.__module__ = f"pullback.{home}".rstrip(".")
    alias(f"{home}.{name}".lstrip("."), call)
    return call


def _signature(make: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, with the arguments of all creation functions added."""
    own = list(inspect.signature(make).parameters.values())
    last = [own.pop()] if own[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    return inspect.Signature([*own, *_SHARED, *last])


def _dtype_of_out(name: str, out: Any, dtype: Any) -> Any:
    """The dtype of `out`, for the result written into it; RuntimeError if `dtype` is another."""
    if not isinstance(out, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="out= to be a Tensor", found=errors.describe(out)))
    if dtype is not None and dtypes.to_numpy(dtype) != out._data.dtype:
        raise RuntimeError(
            errors.message(
                f"{name}(): dtype {dtype} does not match dtype of out parameter ({out.dtype})", do="leave dtype= out"
            )
        )
    return out.dtype


def sizes_of(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes, separate or in a sequence, as a tuple of integers that are not negative."""
    if any(isinstance(n, bool) for n in size):
        raise TypeError(errors.message("size", expected="integers", found=str(size)))
    found = sizes(size)
    if any(n < 0 for n in found):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {list(found)}")
    if any(n > _LONGEST for n in found):
        raise TypeError(
            errors.message(
                "argument 'size': Overflow when unpacking an integer",
                expected="lengths of 64 bits",
                found=str(list(found)),
            )
        )
    return found


def or_default(dtype: Any) -> np.dtype[Any]:
    """NumPy's dtype for `dtype`; for None, the default dtype."""
    return dtypes.default() if dtype is None else dtypes.to_numpy(dtype)


# Filled ---------------------------------------------------------------------------------------------------------------


@factory
def zeros(*size: Any, dtype: Any = None) -> Any:
    """A tensor of the given sizes, filled with 0.

    >>> import pullback
    >>> pullback.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return np.zeros(sizes_of(size), or_default(dtype))


@factory
def ones(*size: Any, dtype: Any = None) -> Any:
    """A tensor of the given sizes, filled with 1."""
    return np.ones(sizes_of(size), or_default(dtype))


@factory
def empty(*size: Any, dtype: Any = None, memory_format: Any = None) -> Any:
    """A tensor of the given sizes with uninitialised values."""
    order, made = order_of(memory_format), np.empty(sizes_of(size), or_default(dtype))
    return laid_out(made, order) if isinstance(order, tuple) else made


@factory
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """A tensor of shape `size` filled with one number; the kind of number decides the dtype unless `dtype` is given.

    >>> import pullback
    >>> pullback.full((2,), 3)
    tensor([3, 3])
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError(errors.message("full()", expected="size to be a tuple", found=errors.describe(size)))
    value = _number(fill_value)
    return _filled(sizes_of((size,)), value, dtypes.result_type([value]) if dtype is None else dtypes.to_numpy(dtype))


def _filled(shape: tuple[int, ...], value: Any, dtype: np.dtype[Any]) -> Any:
    return np.full(shape, fitting(np.asarray(value), dtype), dtype)


def _number(value: Any) -> Any:
    """The number to fill a tensor with: `value`, or the number in a 0-d tensor."""
    if isinstance(value, Tensor) and value._requires_grad:
        raise TypeError(
            errors.message(
                "argument 'fill_value' (position 2) must be Number, not Tensor",
                found=f"{errors.describe(value)} that requires grad",
                do="write value * ones_like(t) or value.expand(size), which keep its gradient",
            )
        )
    found = value.item() if isinstance(value, Tensor) and not value._data.ndim else value
    if not isinstance(found, (bool, int, float, complex, np.number, np.bool_)):
        raise TypeError(errors.message("fill_value", expected="a number", found=errors.describe(value)))
    dtypes.refuse_beyond_64_bits(found)
    return found


def _strided(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Uninitialised memory of just the length needed, with strides given in elements."""
    count = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return np.ndarray(shape, dtype, np.empty(count, dtype), strides=tuple(s * dtype.itemsize for s in strides))


@factory
def empty_strided(size: Any, stride: Any, *, dtype: Any = None) -> Any:
    """Uninitialised memory of shape `size`, with neighbours along each axis `stride` elements apart."""
    shape, strides = sizes_of((size,)), sizes((stride,))
    if len(shape) != len(strides) or any(s < 0 for s in strides):
        raise RuntimeError(
            errors.message(
                "empty_strided()",
                expected="a stride that is not negative for each size",
                found=f"sizes {list(shape)} and strides {list(strides)}",
            )
        )
    return _strided(shape, strides, or_default(dtype))


@factory
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None) -> Any:
    """Uninitialised memory of shape `size`, with the axes in the order `physical_layout`, outermost first."""
    shape, axes = sizes_of((size,)), sizes((physical_layout,))
    if sorted(axes) != list(range(len(shape))):
        raise RuntimeError(
            errors.message("empty_permuted()", expected="each axis once in physical_layout", found=str(list(axes)))
        )
    strides, count = [0] * len(shape), 1
    for axis in reversed(axes):
        strides[axis], count = count, count * max(shape[axis], 1)
    return _strided(shape, tuple(strides), or_default(dtype))


@factory
def eye(n: Any, m: Any = None, *, dtype: Any = None) -> Any:
    """The n x n identity matrix, or n x m with ones on the diagonal."""
    for which, size in (("n", n), ("m", m)):
        if isinstance(size, int) and size < 0:
            raise RuntimeError(f"eye(): {which} must be greater or equal to 0, got {size}")
    return np.eye(*sizes_of((n, n if m is None else m)), dtype=or_default(dtype))


# Like another tensor --------------------------------------------------------------------------------------------------


def _like(fill: Callable[..., Any], input: Tensor, value: Any, dtype: Any, memory_format: Any) -> Any:
    """A tensor with the shape of `input`, its order of axes in memory, and its dtype unless one is given.

    If `input` belongs to a transform, so does the result, at the same level.
    """
    need_tensor(f"{fill.__name__}()", input)
    order, data = order_of(memory_format, input), input._data
    found = data.dtype if dtype is None else dtypes.to_numpy(dtype)
    rest = () if value is None else (fitting(np.asarray(value), found)[()],)
    if isinstance(input, Lifted):
        return wrap(data.like(beside(input, fill(np.empty(data.shape, np.bool_), *rest, dtype=found))))
    if isinstance(order, tuple):
        return laid_out(fill(data, *rest, dtype=found), order)
    return fill(data, *rest, dtype=found, order=order)


@factory
def zeros_like(input: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
    """Zeros with the shape of `input`, and its dtype unless one is given."""
    return _like(np.zeros_like, input, None, dtype, memory_format)


@factory
def ones_like(input: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
    """Ones with the shape of `input`, and its dtype unless one is given."""
    return _like(np.ones_like, input, None, dtype, memory_format)


@factory
def empty_like(input: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
    """Uninitialised memory with the shape of `input`, and its dtype unless one is given."""
    return _like(np.empty_like, input, None, dtype, memory_format)


@factory
def full_like(input: Any, fill_value: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
    """One number repeated in the shape of `input`, and in its dtype unless one is given."""
    return _like(np.full_like, input, _number(fill_value), dtype, memory_format)


def _new(make: Callable[..., Tensor]) -> Any:
    def call(self: Tensor, *args: Any, dtype: Any = None, **place: Any) -> Tensor:
        given = place.get("device")
        if given is None and dtypes.place_of_new() is not None:
            place["device"] = "cpu"  # this tensor says where, not the default
        made = make(*args, dtype=self.dtype if dtype is None else dtype, **place)
        if is_payload(self._data) and given is None:
            return finish(beside(self._data, made._data), None, made._requires_grad)
        if not isinstance(self, Lifted):
            return made
        lifted = wrap(self._data.like(beside(self, made._data)))
        return lifted.requires_grad_() if made._requires_grad else lifted

    call.__name__ = f"new_{make.__name__}"
    call.__qualname__ = f"Tensor.{call.__name__}"
    call.__doc__ = f"`{make.__name__}` with this tensor's dtype unless another is given."
    return by_first_argument(errors.door(call, call.__name__, method=True))


_NEW = {_make.__name__: _new(_make) for _make in (zeros, ones, empty, full, empty_strided)}
METHODS.update({f"new_{_name}": _call for _name, _call in _NEW.items()})


def _in_numpy(alike: Callable[..., Any], a: Any, *value: Any, dtype: Any, shape: Any) -> Any:
    """NumPy's function: of another shape, if one is given."""
    if shape is None:
        return alike(a, *value, dtype=dtype)
    new = _NEW[alike.__name__.removesuffix("_like")]
    return new(a, (shape,) if isinstance(shape, int) else shape, *value, dtype=dtype)


NUMPY[np.zeros_like] = lambda a, dtype=None, order="K", subok=True, shape=None, device=None: _in_numpy(
    zeros_like, a, dtype=dtype, shape=shape
)
NUMPY[np.ones_like] = lambda a, dtype=None, order="K", subok=True, shape=None, device=None: _in_numpy(
    ones_like, a, dtype=dtype, shape=shape
)
NUMPY[np.empty_like] = lambda prototype, dtype=None, order="K", subok=True, shape=None, device=None: _in_numpy(
    empty_like, prototype, dtype=dtype, shape=shape
)
NUMPY[np.full_like] = lambda a, fill_value, dtype=None, order="K", subok=True, shape=None, device=None: (
    _spread(a, fill_value, dtype, shape)
    if isinstance(fill_value, Tensor)
    else _in_numpy(full_like, a, fill_value, dtype=dtype, shape=shape)
)


def _spread(a: Tensor, value: Tensor, dtype: Any, shape: Any) -> Tensor:
    """numpy.full_like of a Tensor, which may have axes: a copy with its gradient."""
    found = dtypes.BY_NUMPY[a._data.dtype if dtype is None else dtypes.to_numpy(dtype)]
    spread: Any = np.broadcast_to(value, a._data.shape if shape is None else shape)
    result: Tensor = spread.to(found).clone()
    return result


# Evenly spaced --------------------------------------------------------------------------------------------------------


def _bound(name: str, value: Any, refused: type[Exception] = TypeError) -> Any:
    """A bound as a number: itself, or the one in a 0-d tensor."""
    if isinstance(value, Tensor):
        if value._data.ndim:
            raise refused(errors.message(f"{name}()", expected="0-d tensors as bounds", found=errors.describe(value)))
        if value._requires_grad and name != "linspace" and name != "logspace":
            raise refused(
                errors.message(
                    f"{name}() received an invalid combination of arguments",
                    expected="numbers as bounds",
                    found=f"{errors.describe(value)} that requires grad",
                    do="write start + step * arange(n), which keeps their gradients",
                )
            )
        value = (
            value._number("complex" if value._data.dtype.kind == "c" else "float")
            if value._requires_grad
            else value.item()
        )
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError(errors.message(f"{name}()", expected="numbers as bounds", found=errors.describe(value)))
    return value


def _check_bounds(name: str, start: Any, end: Any, step: Any) -> None:
    if isinstance(start, complex) or isinstance(end, complex) or isinstance(step, complex):
        raise RuntimeError(errors.message(f"{name}()", expected="real bounds", found=f"{start}, {end}, {step}"))
    if step == 0:
        raise RuntimeError(f"{name}(): step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"{name}(): unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(
            errors.message(
                f"{name}(): upper bound and lower bound inconsistent with step sign",
                found=f"start {start}, end {end}, step {step}",
            )
        )


def _check_kind(name: str, dtype: np.dtype[Any], refused: str) -> None:
    if dtype.kind in refused:
        raise NotImplementedError(errors.message(f'"{name}" not implemented for {dtypes.BY_NUMPY[dtype]}'))


def _progression(start: Any, step: Any, count: int, dtype: np.dtype[Any]) -> Any:
    """``start + i * step``, in integers of 64 bits or in float64, depending on the dtype."""
    if dtype.kind in "iu":
        return (int(start) + int(step) * counted(count)).astype(dtype)
    if (start, step) == (0, 1) and dtype.kind in "fV":
        return counted(count, dtype)
    values = counted(count, np.float64)
    values *= step
    values += start
    return values.astype(dtype, copy=False)


@factory
def arange(*bounds: Any, dtype: Any = None, **named: Any) -> Any:
    """``arange(end)``, ``arange(start, end)``, ``arange(start, end, step)``; int64 if all three are integers.

    >>> import pullback
    >>> pullback.arange(1, 2, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500])
    """
    if len(bounds) == 1 and type(bounds[0]) is int and 0 <= bounds[0] < 2**40 and dtype is None and not named:
        return np.arange(bounds[0], dtype=np.int64)
    only_end = len(bounds) == 1 and "end" not in named
    values = dict(zip(("start", "end", "step"), (0, *bounds) if only_end else bounds, strict=False))
    if len(bounds) > 3 or named.keys() & (values.keys() - {"start"} if only_end else values.keys()):
        raise TypeError(errors.message("arange()", expected="at most start, end and step", found=f"{bounds}, {named}"))
    values |= named
    if "end" not in values or values.keys() - {"start", "end", "step"}:
        raise TypeError(errors.message("arange()", expected="start, end and step", found=str(sorted(values))))
    start, end, step = (_bound("arange", values.get(n, d)) for n, d in (("start", 0), ("end", None), ("step", 1)))
    _check_bounds("arange", start, end, step)
    integral = all(isinstance(v, int) for v in (start, end, step))
    found = np.dtype(np.int64) if integral and dtype is None else or_default(dtype)
    for value in (start, end, step):
        if (isinstance(value, int) or found.kind in "iu") and not -(2**63) <= value < 2**63:
            raise RuntimeError(
                errors.message(
                    "arange(): value cannot be converted to type int64_t without overflow",
                    found=str(value),
                    do="pass a floating point number, with a floating point dtype",
                )
            )
    _check_kind("arange", found, "bc")
    if found.kind in "iu" and not int(step):
        raise ValueError(errors.message("arange()", expected=f"a step that is not 0 as {found}", found=str(step)))
    if found == np.int64:
        start, end, step = int(start), int(end), int(step)
        count = -((start - end) // step)  # exact, unlike a quotient of floats
    else:
        length = (end - start) / step
        if not length < 2**63:
            raise RuntimeError(errors.message("arange(): invalid size, possible overflow?", found=f"{length} elements"))
        count = math.ceil(length)
    return _progression(start, step, max(count, 0), found)


@factory
def range_(start: Any, end: Any, step: Any = 1, *, dtype: Any = None) -> Any:
    """The numbers from `start` to `end`, both included. Deprecated in torch, since Python's range excludes its end."""
    warnings.warn(
        "range() is deprecated, because it includes its end; use arange().", stacklevel=errors.callers_level()
    )
    start, end, step = (_bound("range", v) for v in (start, end, step))
    _check_bounds("range", start, end, step)
    found = or_default(dtype)
    _check_kind("range", found, "bc")
    return _progression(start, step, math.floor((end - start) / step) + 1, found)


def _spaced(name: str, start: Any, end: Any, steps: Any, dtype: Any) -> tuple[Any, np.dtype[Any]]:
    """Evenly spaced numbers, each counted from the nearer end, and the dtype to convert them to."""
    start, end = _bound(name, start, RuntimeError), _bound(name, end, RuntimeError)
    if isinstance(steps, (float, complex)) or not hasattr(steps, "__index__"):
        raise TypeError(errors.message(f"{name}()", expected="steps to be an integer", found=errors.describe(steps)))
    steps = operator.index(steps)
    if steps > _LONGEST:
        raise ValueError(errors.message(f"{name}(): Overflow when unpacking an integer", found=f"{steps} steps"))
    if steps < 0:
        raise RuntimeError(f"{name}(): number of steps must be non-negative, found {steps}")
    found = or_default(dtype)
    if isinstance(start, complex) or isinstance(end, complex):
        found = dtypes.complex_of(found)
    _check_kind(name, found, "b")
    for bound in (start, end):
        dtypes.refuse_overflow(bound, found)
    if found.kind in "iu":
        start, end = int(start), int(end)
    step = (end - start) / (steps - 1) if steps > 1 else 0
    # as in torch: in the precision of the result, or a higher one for integers and 16-bit dtypes
    precision = np.result_type(np.float64 if found.kind in "iu" else np.float32, dtypes.widened(found))
    half = max(steps // 2, 1)
    values = counted(steps, dtypes.real_of(precision)).astype(precision, copy=False)
    values[half:] = values[half:] - (steps - 1)
    values *= step
    values[:half] += start
    values[half:] += end
    return values, found


@factory
def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None) -> Any:
    """`steps` numbers from `start` to `end`, evenly spaced, both included.

    >>> import pullback
    >>> pullback.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    values, found = _spaced("linspace", start, end, steps, dtype)
    return values.astype(found, copy=False)


@factory
def logspace(start: Any, end: Any, steps: Any, base: Any = 10.0, *, dtype: Any = None) -> Any:
    """``base ** x`` for `steps` numbers x from `start` to `end`, evenly spaced, both included.

    >>> import pullback
    >>> pullback.logspace(0, 3, 4, base=2)
    tensor([1., 2., 4., 8.])
    """
    values, found = _spaced("logspace", start, end, steps, dtype)
    with np.errstate(all="ignore"):
        return np.power(float(base), values).astype(found)

"""Making tensors: from values, filled, random; and converting their dtype."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _dtypes, errors
from .._tensor import NUMPY, Tensor, wrap
from .calls import apply
from .shape import sizes
from .table import composite, linear


def _finish(data: Any, device: Any, requires_grad: bool) -> Tensor:
    _dtypes.check_device(device)
    t = wrap(data)
    if requires_grad:
        t.requires_grad = True
    return t


def _values(data: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """An array of its own from numbers, nested sequences, arrays and tensors, of the dtype torch would give it."""
    if isinstance(data, (list, tuple)):
        data = _unwrapped(data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ValueError(errors.message("tensor()", expected="sequences of equal length", found=str(error))) from None
    _refuse_all_but_numbers(array)
    if dtype is not None:
        return array.astype(_dtypes.to_numpy(dtype))
    kind = array.dtype.kind
    if array.size == 0 and isinstance(data, (list, tuple)):
        return array.astype(_dtypes.default())
    if isinstance(data, (np.ndarray, np.generic)):
        return array.astype(_dtypes.to_numpy(array.dtype), copy=False)
    if kind == "f":
        return array.astype(_dtypes.default())
    if kind == "c":
        return array.astype(_dtypes.complex_of(_dtypes.default()))
    return array


def _refuse_all_but_numbers(array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind in "biufc":
        return
    if array.dtype.kind != "O":
        raise TypeError(errors.message("tensor()", expected="numbers", found=f"values of type {array.dtype}"))
    if all(isinstance(v, int) for v in array.flat):
        raise ValueError(
            errors.message("tensor()", expected="integers of at most 64 bits", found=f"{array.flat[0]}, ...")
        )
    raise RuntimeError(
        errors.message("tensor()", expected="numbers", found="Python objects", do="make an array of numbers first")
    )


def _unwrapped(data: Any) -> Any:
    """Nested sequences with the tensors among them replaced by their values."""
    if isinstance(data, Tensor):
        return data.tolist()
    if isinstance(data, (list, tuple)):
        return [_unwrapped(d) for d in data] if any(isinstance(d, (list, tuple, Tensor)) for d in data) else data
    return data


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of `data`: a number, nested sequences, an array.

    Python floats get the default dtype (float32), integers int64; an array keeps its dtype. TypeError for text,
    RuntimeError for other objects that are no numbers, ValueError for ragged sequences.

    >>> import pullback
    >>> pullback.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() rather than "
            "pullback.tensor(sourceTensor).",
            stacklevel=2,
        )
        data = data._data
    return _finish(_values(data, dtype), device, requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where it is a tensor or an array of the dtype already."""
    _dtypes.check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else to(data, dtype)
    if isinstance(data, np.ndarray) and (dtype is None or data.dtype == _dtypes.to_numpy(dtype)):
        return from_numpy(data)
    return tensor(data, dtype=dtype)


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """A tensor on the memory of a NumPy array: a write to one is seen in the other.

    TypeError for what is not an array, or for a dtype no tensor has; ValueError for a foreign byte order.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not ndarray.dtype.isnative or ndarray.dtype not in _dtypes.BY_NUMPY:
        raise (TypeError if ndarray.dtype.isnative else ValueError)(
            errors.message(
                "from_numpy()",
                expected="an array of bool, integer, floating point or complex native dtype",
                found=str(ndarray.dtype),
                do="convert it with astype() first",
            )
        )
    return wrap(ndarray)


# Filled -------------------------------------------------------------------------------------------------------------


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the given sizes, filled with 0."""
    return _finish(np.zeros(_sizes(size), _or_default(dtype)), device, requires_grad)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the given sizes, filled with 1."""
    return _finish(np.ones(_sizes(size), _or_default(dtype)), device, requires_grad)


def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the given sizes whose values are whatever was in the memory."""
    return _finish(np.empty(_sizes(size), _or_default(dtype)), device, requires_grad)


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of shape `size` filled with one number, whose kind gives the dtype unless that is given."""
    fill_value = _number(fill_value)
    found = _dtypes.result_type([fill_value]) if dtype is None else _dtypes.to_numpy(dtype)
    return _finish(np.full(_sizes((size,)), fill_value, found), device, requires_grad)


def _number(value: Any) -> Any:
    """What a tensor is filled with: a number, or the one in a tensor."""
    value = value.item() if isinstance(value, Tensor) else value
    if not isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        raise TypeError(errors.message("fill_value", expected="a number", found=errors.describe(value)))
    return value


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    found = sizes(size)
    if any(n < 0 for n in found):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {list(found)}")
    return found


def _or_default(dtype: Any) -> np.dtype[Any]:
    return _dtypes.default() if dtype is None else _dtypes.to_numpy(dtype)


def _like(input: Tensor, dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if not isinstance(input, Tensor):
        raise TypeError(errors.message("..._like()", expected="a Tensor", found=errors.describe(input)))
    return input._data.shape, input._data.dtype if dtype is None else _dtypes.to_numpy(dtype)


def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros with the shape, and unless given the dtype, of `input`."""
    return _finish(np.zeros(*_like(input, dtype)), device, requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones with the shape, and unless given the dtype, of `input`."""
    return _finish(np.ones(*_like(input, dtype)), device, requires_grad)


def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Uninitialised memory with the shape, and unless given the dtype, of `input`."""
    return _finish(np.empty(*_like(input, dtype)), device, requires_grad)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """One number with the shape, and unless given the dtype, of `input`."""
    shape, found = _like(input, dtype)
    return _finish(np.full(shape, _number(fill_value), found), device, requires_grad)


NUMPY[np.zeros_like] = lambda a, dtype=None, shape=None: zeros_like(a, dtype=dtype)
NUMPY[np.ones_like] = lambda a, dtype=None, shape=None: ones_like(a, dtype=dtype)
NUMPY[np.full_like] = lambda a, fill_value, dtype=None: full_like(a, fill_value, dtype=dtype)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The n x n identity matrix, or n x m with ones on the diagonal."""
    return _finish(np.eye(*_sizes((n, n if m is None else m)), dtype=_or_default(dtype)), device, requires_grad)


def arange(*bounds: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **named: Any) -> Tensor:
    """``arange(end)``, ``arange(start, end)``, ``arange(start, end, step)``; int64 if all three are integers."""
    values = dict(zip(("start", "end", "step"), bounds if len(bounds) > 1 else (0, *bounds), strict=False)) | named
    if "end" not in values:
        raise TypeError("arange() missing required argument 'end'")
    start, end, step = values.get("start", 0), values["end"], values.get("step", 1)
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(
            errors.message("arange()", expected="bounds that step leads from one to the other", found=str(values))
        )
    integral = all(isinstance(v, (int, np.integer)) for v in (start, end, step))
    found = (np.dtype(np.int64) if integral else _dtypes.default()) if dtype is None else _dtypes.to_numpy(dtype)
    count = max(int(np.ceil((end - start) / step)), 0)
    return _finish((start + step * np.arange(count)).astype(found), device, requires_grad)


def linspace(
    start: float, end: float, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """`steps` numbers from `start` to `end`, evenly spaced, both included."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return _finish(np.linspace(start, end, steps).astype(_or_default(dtype)), device, requires_grad)


# Random -------------------------------------------------------------------------------------------------------------


class Generator:
    """A stream of random numbers (NumPy's PCG64), reproducible from `manual_seed`.

    >>> import pullback
    >>> g = pullback.Generator().manual_seed(0)
    >>> bool((pullback.rand(3, generator=g) == pullback.rand(3, generator=pullback.Generator().manual_seed(0))).all())
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        _dtypes.check_device(device)
        self.seed()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`."""
        self._seed = int(seed)
        self._stream = np.random.default_rng(self._seed % 2**64)
        return self

    def seed(self) -> int:
        """Start a stream from the system's entropy, and return its seed."""
        self.manual_seed(int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 1)
        return self._seed

    def initial_seed(self) -> int:
        """The seed this stream started from."""
        return self._seed

    def get_state(self) -> Any:
        """Where the stream is; pass it to `set_state` to go back there."""
        return self._stream.bit_generator.state

    def set_state(self, state: Any) -> Generator:
        """Go to where another stream, or this one, was."""
        self._stream.bit_generator.state = state
        return self


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, from which all random tensors come unless they are given their own."""
    return default_generator.manual_seed(seed)


def _stream(generator: Generator | None) -> np.random.Generator:
    return (default_generator if generator is None else generator)._stream


def rand(
    *size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Uniform on [0, 1)."""
    found = _floating("rand", dtype)
    drawn = _stream(generator).random(_sizes(size), np.float64 if found == np.float64 else np.float32)
    return _finish(np.asarray(drawn, found), device, requires_grad)


def randn(
    *size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Standard normal; complex numbers have variance 1, half of it in each part."""
    found = _floating("randn", dtype)
    shape, stream = _sizes(size), _stream(generator)
    if found.kind == "c":
        drawn = (stream.standard_normal(shape) + 1j * stream.standard_normal(shape)) * np.sqrt(0.5)
    else:
        drawn = stream.standard_normal(shape, np.float64 if found == np.float64 else np.float32)
    return _finish(np.asarray(drawn, found), device, requires_grad)


def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers, uniform on [low, high); ``randint(high, size)`` starts at 0."""
    if size is None:
        low, high, size = 0, low, high
    if not isinstance(size, (tuple, list)):
        raise TypeError(errors.message("randint()", expected="size to be a tuple", found=errors.describe(size)))
    if high <= low:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    found = np.dtype(np.int64) if dtype is None else _dtypes.to_numpy(dtype)
    return _finish(_stream(generator).integers(low, high, _sizes((size,))).astype(found), device, requires_grad)


def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The integers 0 to n - 1 in random order."""
    found = np.dtype(np.int64) if dtype is None else _dtypes.to_numpy(dtype)
    (n,) = _sizes((n,))
    return _finish(_stream(generator).permutation(n).astype(found), device, requires_grad)


def _floating(name: str, dtype: Any) -> np.dtype[Any]:
    found = _or_default(dtype)
    if found.kind not in ("fc" if name == "randn" else "f"):
        raise NotImplementedError(
            errors.message(f"{name}()", expected="a floating point dtype", found=str(found), do="use randint()")
        )
    return found


def rand_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform on [0, 1), with the shape and dtype of `input`."""
    shape, found = _like(input, dtype)
    return rand(*shape, dtype=found, device=device, requires_grad=requires_grad)


def randn_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Standard normal, with the shape and dtype of `input`."""
    shape, found = _like(input, dtype)
    return randn(*shape, dtype=found, device=device, requires_grad=requires_grad)


def randint_like(
    input: Tensor, low: int, high: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Integers, uniform on [low, high), with the shape and dtype of `input`."""
    shape, found = _like(input, dtype)
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, shape, dtype=found, device=device, requires_grad=requires_grad)


# Conversion ---------------------------------------------------------------------------------------------------------


@linear(
    method=False,
    input=lambda g: g,
    numpy={np.astype: lambda x, dtype, *, copy=True: to(x, dtype)} if hasattr(np, "astype") else {},
)
def _convert(input: Any, dtype: Any) -> Any:
    if input.dtype.kind == "c" and dtype.kind not in "cb":
        warnings.warn("Casting complex values to real discards the imaginary part", stacklevel=4)
        input = np.real(input)
    return input.astype(dtype)


@composite()
def to(
    input: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False
) -> Tensor:
    """The tensor with another dtype (``x.to(pullback.float64)``), or that of another tensor (``x.to(y)``).

    The tensor itself if nothing changes and `copy` is False. RuntimeError for a device other than the CPU.
    """
    for arg in args:
        if isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, (str, _dtypes.device)):
            device = arg
        elif arg is not None and not isinstance(arg, bool):
            dtype = arg
    _dtypes.check_device(device)
    found = input._data.dtype if dtype is None else _dtypes.to_numpy(dtype)
    if found == input._data.dtype:
        return input.clone() if copy else input
    return apply(_convert.op, (input, found), {})


def _conversion(name: str, dtype: Any) -> None:
    def convert(self: Tensor) -> Tensor:
        return to(self, dtype)

    convert.__name__ = name
    convert.__doc__ = f"The tensor as {dtype!r}."
    setattr(Tensor, name, convert)


for _name in ("bool", "half", "float", "double", "short", "int", "long", "cfloat", "cdouble"):
    _conversion(_name, getattr(_dtypes, _name))
_conversion("byte", _dtypes.uint8)


def _type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype of `other`."""
    return to(self, other)


def _cpu(self: Tensor) -> Tensor:
    """The tensor itself: it lies on the CPU."""
    return self


def _new(make: Any) -> Any:
    def call(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        return make(*size, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)

    call.__doc__ = f"`{make.__name__}` with this tensor's dtype unless another is given."
    return call


Tensor.type_as = _type_as  # type: ignore[attr-defined]
Tensor.cpu = _cpu  # type: ignore[attr-defined]
for _make in (zeros, ones, empty):
    setattr(Tensor, f"new_{_make.__name__}", _new(_make))

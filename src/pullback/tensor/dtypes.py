"""dtype and device objects with torch's names, and torch's rules of type promotion.

Payloads carry NumPy dtypes; a `dtype` here is the name a user sees and passes. Promotion follows PyTorch, which sorts
types into categories (bool < integer < float < complex) and lets tensors with dimensions outrank 0-d tensors, and 0-d
tensors outrank Python numbers, unless the lower rank has the higher category
(https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc).

NumPy has no bfloat16. The package ml_dtypes has, as a NumPy dtype of kind "V"; it is imported when the dtype is first
used. There is no complex32, no 8-bit float and no quantized type.
"""

from __future__ import annotations

import builtins
import math
import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import errors, kept_gradients
from .gpu import gpu_is_there, gpu_library


class _ForNumPy:
    """What makes NumPy take an object for a dtype: ``np.zeros(3, dtype=d)``, ``np.dtype(d)``.

    NumPy asks for `__numpy_dtype__` from version 2.4 on, before for `dtype`. Both are missing for bfloat16 if ml_dtypes
    is not installed.
    """

    __slots__ = ()

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        try:
            return self.numpy  # type: ignore[attr-defined]
        except ImportError as error:
            raise AttributeError(str(error)) from None

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype, as that of an array."""
        return self.__numpy_dtype__


_OF_NUMPYS = frozenset(name for name in dir(np.dtype) if not name.startswith("_"))


class dtype(_ForNumPy):  # noqa: N801 - torch's name
    """An element type, e.g. `pullback.float32`.

    >>> import pullback
    >>> pullback.float32, pullback.float32.itemsize, pullback.float32.is_floating_point
    (pullback.float32, 4, True)
    """

    __module__ = "pullback"  # where it is public
    __slots__ = ("_numpy", "is_complex", "is_floating_point", "is_signed", "itemsize", "kind", "name")

    def __init__(self, name: str, numpy: Any, kind: str, itemsize: builtins.int) -> None:
        self.name: Final = name
        self._numpy = None if numpy is None else np.dtype(numpy)
        self.itemsize: Final = itemsize
        self.kind: Final = kind  # NumPy's letter, so that ``x.dtype.kind`` means the same of an array and of a Tensor
        self.is_floating_point: Final = kind in "fV"
        self.is_complex: Final = kind == "c"
        self.is_signed: Final = kind in "ifcV"

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype. ImportError for bfloat16 if ml_dtypes is not installed."""
        return _bfloat16() if self._numpy is None else self._numpy

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            text = f"'dtype' object has no attribute {name!r}"
            raise AttributeError(kept_gradients.of_dtype(text, name) if name in _OF_NUMPYS else text)

    def __repr__(self) -> str:
        return f"pullback.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def to_complex(self) -> dtype:
        """The complex type with parts of this precision (complex64 for 16-bit types, which have no complex type)."""
        if self.kind in "biu":
            raise RuntimeError(
                errors.message("to_complex()", expected="a floating point or complex dtype", found=repr(self))
            )
        return complex128 if self in (float64, complex128) else complex64

    def to_real(self) -> dtype:
        """The type of the real part."""
        return BY_NUMPY[real_of(self.numpy)]


def _of_numpy(name: str) -> dtype:
    found = np.dtype(name)
    return dtype(name, found, found.kind, found.itemsize)


bool = _of_numpy("bool")
uint8 = _of_numpy("uint8")
uint16 = _of_numpy("uint16")
uint32 = _of_numpy("uint32")
uint64 = _of_numpy("uint64")
int8 = _of_numpy("int8")
int16 = short = _of_numpy("int16")
int32 = int = _of_numpy("int32")
int64 = long = _of_numpy("int64")
float16 = half = _of_numpy("float16")
float32 = float = _of_numpy("float32")
float64 = double = _of_numpy("float64")
complex64 = cfloat = _of_numpy("complex64")
complex128 = cdouble = _of_numpy("complex128")
bfloat16 = dtype("bfloat16", None, "V", 2)

ALL = [bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64, complex64, complex128]
"""NumPy's dtypes, in the order in which they promote within a category."""


class _ByNumpy(dict[np.dtype[Any], dtype]):
    """A dictionary that also finds the bfloat16 dtype of an array made by another library."""

    def __missing__(self, key: np.dtype[Any]) -> dtype:
        if key.name == "bfloat16" and key == bfloat16.numpy:
            self[key] = bfloat16
            return bfloat16
        raise KeyError(key)


NAMES = {d.name: d for d in (*ALL, bfloat16)}
BY_NUMPY: dict[np.dtype[Any], dtype] = _ByNumpy({d.numpy: d for d in ALL})
CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}


def is_known(d: np.dtype[Any]) -> builtins.bool:
    """Whether tensors can have NumPy's dtype `d`."""
    return d in BY_NUMPY or (d.name == "bfloat16" and d == bfloat16.numpy)


def known(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, as one of NumPy's own class, if tensors can have its dtype; else an error."""
    if type(array) is not np.ndarray and np.ma.is_masked(array):
        raise kept_gradients.no_mask()
    if array.dtype.isnative and is_known(array.dtype):
        return array if type(array) is np.ndarray else array.view(np.ndarray)  # a matrix multiplies in its own way
    raise (TypeError if array.dtype.isnative else ValueError)(
        errors.message(
            "can't convert the array",
            expected="one of bool, integer, floating point or complex native dtype",
            found=str(array.dtype),
            do="convert it with astype() first",
        )
    )


class Narrow:
    """Whether bfloat16 was used at all: until then no operation looks for it."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


NARROW = Narrow()


def _bfloat16() -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(
            errors.message(
                "bfloat16 is not a dtype of NumPy's, but of the package ml_dtypes, which is not installed",
                do="pip install 'pullback[bfloat16]'",
            )
        ) from None
    bfloat16._numpy = np.dtype(ml_dtypes.bfloat16)
    NARROW.n = 1
    return bfloat16._numpy


# The default --------------------------------------------------------------------------------------------------------

_default = np.dtype(np.float32)


def default() -> np.dtype[Any]:
    """The floating point type that new tensors of Python floats get, as NumPy's dtype."""
    return _default


def get_default_dtype() -> dtype:
    """The floating point dtype of tensors made from Python floats: float32 unless it was changed."""
    return BY_NUMPY[_default]


def to_default() -> str:
    """The call that converts a tensor to the default dtype, for advice."""
    return {"float64": "double()", "float16": "half()", "bfloat16": "bfloat16()"}.get(_default.name, "float()")


def set_default_dtype(d: dtype) -> None:
    """Make `d`, a floating point dtype, the default for the whole process.

    >>> import pullback
    >>> pullback.set_default_dtype(pullback.float64)
    >>> pullback.tensor(0.5).dtype
    pullback.float64
    >>> pullback.set_default_dtype(pullback.float32)
    """
    global _default
    found = to_numpy(d)
    if CATEGORY[found.kind] != 2:
        raise TypeError(errors.message("only floating-point types are supported as the default type", found=repr(d)))
    _default = found


# From and to NumPy's --------------------------------------------------------------------------------------------------


def to_numpy(d: Any) -> np.dtype[Any]:
    """NumPy's dtype for a `dtype` of this package, a NumPy dtype, or a Python type (float is float64, as in NumPy)."""
    if isinstance(d, dtype):
        return d.numpy
    try:
        found = np.dtype(object if d is None else d).newbyteorder("=")
    except TypeError:
        found = bfloat16.numpy if d == "bfloat16" else np.dtype(object)
    if not is_known(found):
        found_is = errors.of_another_library(d) or repr(d)
        raise TypeError(errors.message("dtype", expected="a dtype such as pullback.float32", found=found_is))
    return found


def complex_of(d: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts have (at least) the precision of `d`."""
    return np.dtype(np.complex128 if d in (np.float64, np.complex128) else np.complex64)


def real_of(d: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real part of `d`."""
    return {np.dtype(np.complex64): float32.numpy, np.dtype(np.complex128): float64.numpy}.get(d, d)


# Promotion ------------------------------------------------------------------------------------------------------------


def promote_types(type1: Any, type2: Any) -> dtype:
    """The smallest dtype that holds both, in the higher of their two categories.

    As in torch, uint16, uint32 and uint64 promote with floating point types only, else RuntimeError.

    >>> import pullback
    >>> pullback.promote_types(pullback.int64, pullback.float32)
    pullback.float32
    """
    return BY_NUMPY[promote(to_numpy(type1), to_numpy(type2))]


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Whether a value of one dtype may be cast to another: it may not fall to a lower category.

    >>> import pullback
    >>> pullback.can_cast(pullback.int64, pullback.uint8), pullback.can_cast(pullback.float32, pullback.int64)
    (True, False)
    """
    return CATEGORY[to_numpy(from_).kind] <= CATEGORY[to_numpy(to).kind]


_APART = {np.dtype(n) for n in ("uint16", "uint32", "uint64")}


def promote(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """`promote_types` on NumPy's dtypes."""
    if a == b:
        return a
    rank_a, rank_b = CATEGORY[a.kind], CATEGORY[b.kind]
    if (a in _APART or b in _APART) and max(rank_a, rank_b) != 2:
        raise RuntimeError(
            errors.message(
                "type promotion",
                expected="types that go together (uint16, uint32 and uint64 do with floating point types only)",
                found=f"{a} and {b}",
                do="convert one of them with .to(dtype)",
            )
        )
    if max(rank_a, rank_b) <= 1:
        return np.promote_types(a, b)
    if min(rank_a, rank_b) <= 1:
        return a if rank_a > rank_b else b
    if rank_a == rank_b == 2 and "V" in (a.kind, b.kind):
        return np.promote_types(np.promote_types(widened(a), widened(b)), np.float32)
    return np.promote_types(widened(a), widened(b))


def widened(d: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for bfloat16: it holds all bfloat16 numbers. Any other dtype is unchanged."""
    return float32.numpy if d.kind == "V" else d


def result_type(values: Any) -> np.dtype[Any]:
    """torch's result dtype of an operation on `values`: payloads and Python numbers."""
    ranks: list[np.dtype[Any] | None] = [None, None, None]  # with dimensions, 0-d, Python numbers
    for value in values:
        found = getattr(value, "dtype", None)
        if found is None or isinstance(value, (np.generic, dtype)):
            where, found = 2, _number_dtype(value)
        else:
            where = 0 if value.ndim else 1
        held = ranks[where]
        ranks[where] = found if held is None else promote(held, found)
    result: np.dtype[Any] | None = None
    for found in ranks:
        if found is None:
            continue
        if result is None:
            result = found
        elif CATEGORY[found.kind] > CATEGORY[result.kind]:
            if CATEGORY[result.kind] == 2:
                result = complex_of(result)
            else:
                result = found if CATEGORY[found.kind] >= 2 else promote(result, found)
    assert result is not None
    return result


def _number_dtype(value: Any) -> np.dtype[Any]:
    if isinstance(value, (builtins.bool, np.bool_)):
        return bool.numpy
    if isinstance(value, (builtins.int, np.integer)):
        return int64.numpy
    if isinstance(value, (builtins.float, np.floating)):
        return _default
    if isinstance(value, (builtins.complex, np.complexfloating)):
        return complex_of(_default)
    raise TypeError(errors.message("operand", expected="a Tensor, an array or a number", found=errors.describe(value)))


# Limits ---------------------------------------------------------------------------------------------------------------


class finfo:  # noqa: N801 - torch's name
    """The limits of a floating point dtype: ``1 + eps`` follows 1. For a complex dtype, those of its parts.

    >>> import pullback
    >>> pullback.finfo(pullback.float32).eps
    1.1920928955078125e-07
    """

    __module__ = "pullback"  # where it is public
    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: Any = None) -> None:
        found = real_of(_default if type is None else to_numpy(type))
        if CATEGORY[found.kind] != 2:
            raise TypeError(
                errors.message("finfo()", expected="a floating point dtype", found=repr(type), do="use iinfo()")
            )
        self.bits, self.dtype = 8 * found.itemsize, found.name
        if found.kind == "V":  # 8 bits of exponent as float32 has, 7 of fraction
            eps, self.max, self.tiny, digits = 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 2
        else:
            of = np.finfo(found)
            eps, self.max, self.tiny = map(builtins.float, (of.eps, of.max, of.tiny))
            digits = builtins.int(of.precision)
        self.eps, self.min, self.smallest_normal = eps, -self.max, self.tiny
        self.resolution = 10.0**-digits

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):.6g}' for n in names)}, dtype={self.dtype})"


def is_large(value: Any) -> builtins.bool:
    """Whether it is a number that some floating point dtype cannot hold: most numbers are held by every one."""
    kind = type(value)
    return kind is builtins.complex or (kind in (builtins.int, builtins.float) and not -65504 <= value <= 65504)


def refuse_beyond_64_bits(value: Any) -> None:
    """OverflowError for an integer of Python's that 64 bits cannot hold."""
    if type(value) is builtins.int and not -(2**63) <= value < 2**64:
        raise OverflowError(errors.message("int too big to convert", found=errors.describe(value), do="write a float"))


def refuse_overflow(value: Any, found: np.dtype[Any]) -> None:
    """RuntimeError for a number beyond the range of a dtype. Negative numbers wrap around in unsigned integers.

    OverflowError for an integer that 64 bits cannot hold.
    """
    refuse_beyond_64_bits(value)
    if found.kind == "b":
        return
    high: builtins.float = np.iinfo(found).max if found.kind in "iu" else finfo(found).max
    if found.kind in "iu":
        fits = (-high if found.kind == "u" else -high - 1) <= value <= high
    else:
        fits = all(abs(part) <= high or not math.isfinite(part) for part in (value.real, value.imag))
    if not fits:
        raise RuntimeError(
            errors.message(
                f"value cannot be converted to type {BY_NUMPY[found]} without overflow",
                found=str(value),
                do="write a number within the range that finfo() or iinfo() tells, or convert the tensor first",
            )
        )


class iinfo:  # noqa: N801 - torch's name
    """The limits of an integer dtype.

    >>> import pullback
    >>> pullback.iinfo(pullback.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __module__ = "pullback"  # where it is public
    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: Any) -> None:
        found = to_numpy(type)
        if found.kind not in "iu":
            raise TypeError(errors.message("iinfo()", expected="an integer dtype", found=repr(type), do="use finfo()"))
        of = np.iinfo(found)
        self.bits, self.dtype, self.min, self.max = of.bits, found.name, builtins.int(of.min), builtins.int(of.max)

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:.6g}, max={self.max:.6g}, dtype={self.dtype})"


# Devices --------------------------------------------------------------------------------------------------------------

DEVICES = (
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia privateuseone"
).split()


class device:  # noqa: N801 - torch's name
    """The device that holds a tensor's data: NumPy's arrays lie on the CPU, CuPy's on cuda; others can only be named.

    >>> import pullback
    >>> pullback.device("cpu"), pullback.zeros(1).device.type
    (device(type='cpu'), 'cpu')
    """

    __module__ = "pullback"  # where it is public
    __slots__ = ("index", "type")

    type: str
    index: builtins.int | None

    def __init__(self, type: Any = "cpu", index: builtins.int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        if not isinstance(type, (str, builtins.int)):
            raise TypeError(errors.message("device()", expected="a str or a device", found=errors.describe(type)))
        if isinstance(type, builtins.int) and not isinstance(type, builtins.bool) and gpu_is_there():
            type = f"cuda:{type}"
        name, colon, number = str(type).partition(":")
        if name not in DEVICES:
            do = "leave it out: there is no GPU here" if isinstance(type, builtins.int) else ""
            raise RuntimeError(errors.message("device()", expected="'cpu' or another type", found=repr(type), do=do))
        if colon and (index is not None or not number.isdigit()):
            raise RuntimeError(errors.message("device()", expected="one index, such as in 'cuda:0'", found=repr(type)))
        if index is not None and index < 0:
            raise RuntimeError(errors.message("device()", expected="an index that is not negative", found=str(index)))
        self.type = name
        self.index = builtins.int(number) if number else index

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> builtins.int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        """Make it the device of new tensors within a ``with`` block, in this thread."""
        check_device(self)
        _PLACES.inner.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _PLACES.inner.pop()

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


CPU = device("cpu")


class _Places(threading.local):
    """The devices of new tensors in a thread: the default, and those of the ``with`` blocks that are open."""

    def __init__(self) -> None:
        self.default: device | None = None
        self.inner: list[device] = []


_PLACES = _Places()


def place_of_new(given: Any = None) -> Any:
    """Where a new tensor shall lie: the device that was given, else the default; None where neither was said."""
    if given is not None:
        return given
    return _PLACES.inner[-1] if _PLACES.inner else _PLACES.default


def check_device(value: Any) -> None:
    """Refuse a device other than the CPU, where NumPy's arrays lie, and a GPU, where CuPy's do."""
    if value is not None and device(value).type == "cuda":
        gpu_library()
    elif value is not None and device(value).type != "cpu":
        do = "leave device out, or write device='cuda'"
        if device(value).type == "meta":  # a tensor without values, made to know its shape or to be filled later
            do = (
                "leave device out: a module serves as it is; make the tensor with pullback.empty(), or compute shapes "
                "with np.broadcast_shapes"
            )
        expected = "cpu or cuda"
        raise RuntimeError(errors.message("device", expected=expected, found=str(device(value)), do=do))


def get_default_device() -> device:
    """The device of new tensors: the CPU, unless another one was chosen."""
    return place_of_new() or CPU


def set_default_device(device: Any) -> None:
    """Choose the device of new tensors, in this thread: a GPU, the CPU or None. RuntimeError if it is not there.

    Tensors like another one lie where that does. ``with pullback.device("cuda"):`` chooses for a block.
    """
    check_device(device)
    _PLACES.default = None if device is None else type(CPU)(device)


errors.doors(globals(), "can_cast device finfo iinfo promote_types set_default_device set_default_dtype")

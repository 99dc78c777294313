"""Tensors from existing values: numbers, nested sequences, arrays, buffers, tensors of other libraries.

What `tensor`, `as_tensor` and `asarray` make of an object stands in one table, `ROWS`. Other libraries' arrays come in
by the protocols that they have: as a payload, if they compute by themselves and refuse to be converted, as an array on
a device does; otherwise converted, with their dtype.

`tensor` copies, `as_tensor` and `asarray` share memory where they can, `from_numpy`, `frombuffer` and `from_dlpack`
always do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import errors
from ...interpreters.payload import Payload
from ...table.entry import alias, method
from ...tensor import dtypes
from ...tensor.gpu import gpu_library
from ...tensor.modes import LEVELS
from ...tensor.overrides import by_first_argument, by_modes, chosen, dispatch, overriding
from ...tensor.tensor import Tensor, wrap
from .conversion import cast, pinned_copy, placed, to
from .exported import from_dlpack, refuse_without_memory

_NUMBERS = frozenset((bool, int, float, complex))
_COPY = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {}."
)


def finish(data: Any, device: Any, requires_grad: bool, layout: Any = None, pin_memory: bool = False) -> Tensor:
    """A tensor around an array, with the arguments that all creation functions share."""
    check_place(device, layout, pin_memory)
    t = data if isinstance(data, Tensor) else wrap(data)
    t = t if device is None else placed(t, device)
    t = pinned_copy(t) if pin_memory else t
    if requires_grad is not False:
        if not isinstance(requires_grad, bool):
            raise TypeError(errors.message("requires_grad", expected="a bool", found=errors.describe(requires_grad)))
        t.requires_grad = True
    return t


def check_place(device: Any, layout: Any, pin_memory: Any) -> None:
    """Refuse a device that is not there, a layout other than `strided`, and memory pinned for a GPU where none is."""
    dtypes.check_device(device)
    if layout is not None and getattr(layout, "name", "") != "strided":
        if type(layout).__module__.partition(".")[0] == "torch":
            raise TypeError(
                errors.message(
                    "layout",
                    expected="pullback.strided",
                    found=f"{layout} of the real torch",
                    do="write pullback.strided; or where a function of torch's asks for it, call that of pullback, "
                    "e.g. pullback.autograd.gradcheck",
                )
            )
        raise NotImplementedError(
            errors.message(
                "layout", expected="pullback.strided", found=str(layout), do="make a sparse tensor by sparse_coo_tensor"
            )
        )
    if pin_memory:
        gpu_library()


# What becomes of an object --------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A kind of object: what it is, whether an object is one, and the array or the payload that is made of it."""

    what: str
    fits: Callable[[Any], bool]
    made: Callable[[Any], Any]
    becomes: str


def _computes(data: Any) -> bool:
    """Whether an object answers NumPy's protocols, and is not converted to an array."""
    if isinstance(data, Payload):
        return True
    kind = type(data)
    if not (hasattr(kind, "__array_ufunc__") and hasattr(kind, "__array_function__")):
        return False
    try:
        data.__array__()
    except (TypeError, RuntimeError, NotImplementedError, AttributeError):
        return True
    return False


NEEDED = "ndim size reshape __add__ __sub__ __mul__ __truediv__ __neg__".split()
"""What an object that is not derived from `Payload` must have, besides a shape and a dtype, to be a payload."""


def checked(data: Any) -> Any:
    """A payload, if it has the shape and the dtype of one, and what operations cannot do without; else TypeError."""
    shape, dtype = getattr(data, "shape", None), getattr(data, "dtype", None)
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise TypeError(
            errors.message(
                f"{type(data).__name__} as the payload of a Tensor",
                expected="its shape to be a tuple of integers that are not negative",
                found=repr(shape),
                do="define the attribute shape in the class",
            )
        )
    if not isinstance(dtype, np.dtype) or dtype not in dtypes.BY_NUMPY:
        raise TypeError(
            errors.message(
                f"{type(data).__name__} as the payload of a Tensor",
                expected="its dtype to be a numpy.dtype that a tensor can have",
                found=repr(dtype),
                do="define the attribute dtype in the class, e.g. numpy.dtype(numpy.float64)",
            )
        )
    if missing := [name for name in NEEDED if not hasattr(data, name)]:
        raise TypeError(
            errors.message(
                f"{type(data).__name__} as the payload of a Tensor",
                expected="what operations read of an array",
                found=f"no {', '.join(missing)}",
                do="define it in the class, or derive the class from pullback.interpreters.Payload, which has all",
            )
        )
    return data


def _on_the_cpu(data: Any) -> bool:
    """Whether an object hands out its memory by DLPack, and that is the CPU's."""
    if not (hasattr(type(data), "__dlpack__") and hasattr(type(data), "__dlpack_device__")):
        return False
    refuse_without_memory("tensor()", data)
    return int(data.__dlpack_device__()[0]) == 1


def _by_dlpack(data: Any) -> Any:
    if getattr(data, "requires_grad", False):
        raise RuntimeError(
            errors.message(
                "tensor(): the gradient of another library's tensor would be lost",
                expected="a tensor that does not require grad",
                found=errors.describe(data),
            )
        )
    for resolved in ("resolve_conj", "resolve_neg"):  # torch hands out no memory whose sign is to be changed yet
        data = getattr(data, resolved, lambda data=data: data)()
    if str(getattr(data, "dtype", "")) == "torch.bfloat16":  # NumPy reads its bits as integers
        return from_dlpack(data.view(data.new_empty(0).short().dtype))._data.view(dtypes.bfloat16.numpy)
    try:
        return from_dlpack(data)._data
    except RuntimeError:  # a dtype that NumPy does not read by DLPack, such as bfloat16
        if not hasattr(type(data), "__array__"):
            raise
    return dtypes.known(np.asarray(data))


def _by_interface(data: Any) -> Any:
    return dtypes.known(np.asarray(_Interface(data.__array_interface__, data)))


class _Interface:
    """An object whose memory is read by ``__array_interface__`` alone."""

    def __init__(self, interface: Any, owner: Any) -> None:
        self.__array_interface__, self.owner = interface, owner


ROWS = (
    Row("a Tensor", lambda data: isinstance(data, Tensor), lambda data: data._data, "itself"),
    Row("a NumPy array", lambda data: isinstance(data, np.ndarray), dtypes.known, "a tensor of it"),
    Row(
        "a `Payload`, or an array with NumPy's protocols whose `__array__` refuses",
        _computes,
        checked,
        "a tensor that holds it as it is",
    ),
    Row(
        "an object with `__dlpack__`, on the CPU",
        _on_the_cpu,
        _by_dlpack,
        "converted, with its dtype",
    ),
    Row(
        "an object with `__array_interface__`",
        lambda data: hasattr(data, "__array_interface__"),
        _by_interface,
        "converted, with its dtype",
    ),
    Row(
        "an object with `__array__`",
        lambda data: hasattr(type(data), "__array__"),
        lambda data: dtypes.known(np.asarray(data)),
        "converted, with its dtype",
    ),
)
"""The order in which an object is looked at. What no row fits is a number, or a sequence of numbers."""

_PLAIN = frozenset({int, float, complex, bool, list, tuple, str, bytes, range, dict})


def array_of(data: Any) -> Any:
    """The array, or the payload, that the table makes of an object; None for numbers and sequences."""
    if type(data) in _PLAIN or isinstance(data, (np.generic, type)):
        return None
    return next((row.made(data) for row in ROWS if row.fits(data)), None)


# Numbers and nested sequences -----------------------------------------------------------------------------------------


def _plain(data: Any, found: set[Any]) -> Any:
    """Nested sequences as nested lists that NumPy reads; the types or dtypes of their leaves are added to `found`."""
    if isinstance(data, Tensor):
        if data._data.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if data.requires_grad:
            warnings.warn(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                "Consider using tensor.detach() first.",
                stacklevel=errors.callers_level(),
            )
        found.add(data._data.dtype)
        return data.item()
    if isinstance(data, (np.ndarray, np.generic)):
        found.add(dtypes.known(np.asarray(data)).dtype)
        return data
    if _computes(data):
        name = type(data).__name__
        raise TypeError(
            errors.message(
                "tensor(): in a sequence", expected="numbers", found=f"a {name}", do="stack the tensors that hold them"
            )
        )
    if not _is_sequence(data):
        found.add(type(data))
        return data
    if not isinstance(data, (list, tuple)):
        data = list(data)
    kinds = set(map(type, data))
    if kinds <= _NUMBERS:  # the common case, and the only one that may be long
        found |= kinds
        return data
    data = [_element(d) for d in data]
    nested = [_is_sequence(d) for d in data]
    if any(nested) and not all(nested):
        raise TypeError(
            errors.message(
                "tensor(): a number beside a sequence is not a sequence, and self-referential lists are incompatible",
                expected="them to be nested equally deep",
            )
        )
    return [_plain(d, found) for d in data]


def _element(data: Any) -> Any:
    """An element of a sequence; the array of an object that hands one out."""
    if isinstance(data, (Tensor, np.ndarray)) or _computes(data):
        return data
    array = array_of(data)
    return data if array is None else array


def _is_sequence(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return True
    if isinstance(data, (Tensor, np.ndarray)):
        return not isinstance(data, Tensor) and data.ndim > 0
    if isinstance(data, _NO_SEQUENCES) or _computes(data):
        return False
    return hasattr(type(data), "__getitem__") and hasattr(type(data), "__len__")


_NO_SEQUENCES = (str, bytes, dict, np.generic)


def _dtype_of(kinds: set[Any]) -> np.dtype[Any]:
    """The dtype for leaves of these types: the dtype that all are promoted to."""
    found: np.dtype[Any] | None = None
    for kind in kinds:
        one = kind if isinstance(kind, np.dtype) else _dtype_of_numbers(kind)
        found = one if found is None else dtypes.promote(found, one)
    return dtypes.default() if found is None else found


def _dtype_of_numbers(kind: type) -> np.dtype[Any]:
    if issubclass(kind, bool):
        return dtypes.bool.numpy
    if issubclass(kind, int):
        return dtypes.int64.numpy
    if issubclass(kind, float):
        return dtypes.default()
    if issubclass(kind, complex):
        return dtypes.complex_of(dtypes.default())
    if issubclass(kind, (str, bytes)):
        raise TypeError(errors.message(f"tensor(): invalid data type '{kind.__name__}'", expected="numbers"))
    raise RuntimeError(
        errors.message(
            "tensor()",
            expected="numbers, or sequences or arrays of numbers",
            found=f"an object of type {kind.__name__}",
            do="make an array of numbers first",
        )
    )


def _from_numbers(data: Any, dtype: Any) -> np.ndarray[Any, Any]:
    kinds: set[Any] = set()
    plain = _plain(data, kinds)
    natural = _dtype_of(kinds)
    wanted = natural if dtype is None else dtypes.to_numpy(dtype)
    try:
        if wanted.kind in "iu":
            return _integers(plain, natural, wanted)
        with np.errstate(all="ignore"):
            return np.array(plain, wanted)
    except ValueError as error:
        if str(error).startswith("tensor()"):
            raise
        raise ValueError(
            errors.message("tensor(): expected sequence of length equal to that of the others", found=str(error))
        ) from None


def _integers(plain: Any, natural: np.dtype[Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Numbers as integers: fractions are cut off, negative numbers wrap around; an overflow raises torch's errors."""
    if natural.kind == "c":
        raise TypeError(errors.message("tensor()", expected="real numbers", found="complex ones"))
    try:
        given = np.array(plain, np.float64 if dtypes.CATEGORY[natural.kind] == 2 else np.int64)
    except OverflowError:
        try:
            given = np.array(plain, np.uint64)
        except OverflowError:
            given = np.empty(0)
        if wanted != np.uint64 or not given.size:
            raise ValueError(
                errors.message("tensor(): Overflow when unpacking long long", found="an integer beyond 64 bits")
            ) from None
    return fitting(given, wanted)


def fitting(given: np.ndarray[Any, Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Python's numbers, in an array, in the dtype wanted; RuntimeError for those that overflow it, as in torch.

    Negative numbers wrap around in unsigned types.
    """
    if wanted.kind in "iu" and given.size:
        limits = np.iinfo(wanted)
        low, high = (-int(limits.max) if wanted.kind == "u" else int(limits.min)), int(limits.max)
        least, most = given.min(), given.max()
        if not (low <= least.item() and most.item() <= high):
            raise RuntimeError(
                errors.message(
                    f"value cannot be converted to type {wanted} without overflow",
                    found=str((most if low <= least.item() else least).item()),
                )
            )
    if given.dtype.kind == "c" and wanted.kind not in "cb":
        if np.imag(given).any():
            raise RuntimeError(
                errors.message(f"value cannot be converted to type {wanted} without overflow", found="a complex number")
            )
        given = np.real(given)
    found = cast(given, wanted)
    if wanted.kind in "fVc" and not np.array_equal(np.isfinite(given), np.isfinite(found)):
        raise RuntimeError(
            errors.message(f"value cannot be converted to type {wanted} without overflow", found=str(given))
        )
    return found


# Arrays ---------------------------------------------------------------------------------------------------------------


def _values(data: Any, dtype: Any) -> Any:
    """A new array from numbers, nested sequences or arrays, of the dtype torch would give it; or a payload's copy."""
    found = dtypes.known(np.asarray(data)) if isinstance(data, np.generic) else array_of(data)
    if found is None:
        return _from_numbers(data, dtype)
    wanted = found.dtype if dtype is None else dtypes.to_numpy(dtype)
    if found.dtype != wanted:
        return cast(found, wanted)
    return np.copy(found) if isinstance(found, np.ndarray) else found


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A tensor with a copy of `data`: a number, nested sequences, an array, or another library's array.

    Python floats get the default dtype (float32), integers int64; arrays and NumPy's numbers keep theirs. An object
    that computes by NumPy's protocols, and refuses to be an array, is held as it is, without a copy. TypeError for
    text, RuntimeError for other objects that are not numbers and for numbers that overflow `dtype`, ValueError for
    ragged sequences.

    >>> import pullback
    >>> pullback.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if LEVELS.n and (kinds := overriding(())):
        how = chosen(dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)
        made: Tensor = dispatch(kinds, tensor, (data,), how)
        return made
    if isinstance(data, Tensor):
        warnings.warn(_COPY.format("pullback.tensor(sourceTensor)"), stacklevel=errors.callers_level())
        copied: Any = _copied(data, dtype)
    else:
        copied = _values(data, dtype)
    return finish(copied, dtypes.place_of_new(device), requires_grad, pin_memory=pin_memory)


def _copied(source: Tensor, dtype: Any) -> Any:
    found = source.detach()
    return to(found, found.dtype if dtype is None else dtype, copy=True)


@method("new_tensor", named=True)
@by_first_argument
def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **place: Any
) -> Tensor:
    """`tensor`, with the dtype and on the device of this one unless another is given."""
    dtype, device = self.dtype if dtype is None else dtype, self.device if device is None else device
    if isinstance(data, Tensor):
        warnings.warn(_COPY.format("tensor.new_tensor(sourceTensor)"), stacklevel=errors.callers_level())
        return finish(_copied(data, dtype), device, requires_grad, **place)
    return finish(_values(data, dtype), device, requires_grad, **place)


@by_modes
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A 0-d tensor of one number, in the default floating point dtype unless `dtype` is given."""
    if isinstance(s, Tensor) and not s._data.ndim:
        s = s.item()
    if not isinstance(s, (bool, int, float, complex, np.generic)):
        raise TypeError(errors.message("scalar_tensor()", expected="a number", found=errors.describe(s)))
    wanted = dtypes.default() if dtype is None else dtypes.to_numpy(dtype)
    return finish(fitting(np.asarray(s), wanted), dtypes.place_of_new(device), requires_grad, layout, pin_memory)


@by_modes
def as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy if it is a tensor, an array of that dtype, or shares its memory as one."""
    device = dtypes.place_of_new(device)
    dtypes.check_device(device)
    if isinstance(data, Tensor):
        made = data if dtype is None else to(data, dtype)
    else:
        found = array_of(data)
        if found is None or (dtype is not None and found.dtype != dtypes.to_numpy(dtype)):
            found = _values(data if found is None else found, dtype)
        made = wrap(found)
    return made if device is None else placed(made, device)


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """A tensor on the memory of a NumPy array: a write to one is seen in the other.

    TypeError for anything but an array and for a dtype that no tensor has; ValueError for a foreign byte order.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return wrap(dtypes.known(ndarray))


# Buffers --------------------------------------------------------------------------------------------------------------


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor on the memory of a buffer (Python's protocol): `count` elements (-1: all) from byte `offset` on.

    ValueError for an object without the protocol, or if the buffer is too short for the elements.

    >>> import pullback
    >>> pullback.frombuffer(bytearray([1, 0, 2, 0]), dtype=pullback.int16)
    tensor([1, 2], dtype=pullback.int16)
    """
    wanted = dtypes.to_numpy(dtype)
    try:
        view = memoryview(buffer).cast("B") if memoryview(buffer).nbytes else memoryview(b"")
    except TypeError:
        raise ValueError(
            errors.message("frombuffer()", expected="an object with the buffer protocol", found=errors.describe(buffer))
        ) from None
    size, left = view.nbytes, view.nbytes - offset
    if not size or not count:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    if count < 0 and left % wanted.itemsize:
        raise ValueError(
            f"buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({wanted.itemsize})"
        )
    if count > 0 and count * wanted.itemsize > left:
        raise ValueError(
            f"requested buffer length ({count} * {wanted.itemsize} bytes) after offset ({offset} bytes) must not be "
            f"greater than actual buffer length ({size} bytes)"
        )
    return finish(np.frombuffer(buffer, wanted, count, offset), None, requires_grad)


@by_modes
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """`obj` as a tensor: a tensor, an array, a DLPack tensor or a buffer share their memory, the rest is copied.

    copy: True always copies; False never does, with a ValueError if a copy is needed. requires_grad: None keeps that of
    a given tensor. A buffer is read as elements of `dtype` (by default the default dtype).
    """
    device = dtypes.place_of_new(device)
    dtypes.check_device(device)
    if isinstance(obj, Tensor):
        made = obj.detach() if requires_grad is False and obj.requires_grad else obj
    elif (found := array_of(obj)) is not None:
        made = wrap(found)
    elif hasattr(obj, "__dlpack__") and not isinstance(obj, np.generic):
        made = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)) or type(obj).__module__ == "array":
        made = frombuffer(obj, dtype=dtypes.default() if dtype is None else dtype)
    elif copy is False:
        raise ValueError(
            errors.message("asarray()", expected="something whose memory can be shared", found=errors.describe(obj))
        )
    else:
        return finish(_values(obj, dtype), device, bool(requires_grad))
    wanted = made._data.dtype if dtype is None else dtypes.to_numpy(dtype)
    if copy is False and made._data.dtype != wanted:
        raise ValueError(
            errors.message(
                "asarray()",
                expected=f"a dtype that need not be converted, as copy=False says: {wanted}",
                found=str(made._data.dtype),
            )
        )
    made = to(made, wanted, copy=bool(copy))
    return made.requires_grad_() if requires_grad and not made.requires_grad else made


for _function in (tensor, scalar_tensor, as_tensor, from_numpy, frombuffer, asarray):
    alias(_function.__name__, _function)

"""What `tensor`, `as_tensor` and `asarray` make of an object: the first row of one table that fits it.

Other libraries' arrays come in by the protocols that they have: as a payload, if they compute by themselves and refuse
to be converted, as an array on a device does; otherwise converted, with their dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import errors
from ...interpreters.payload import Payload
from ...tensor import dtypes
from ...tensor.tensor import Tensor


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


def checked(data: Any) -> Any:
    """A payload, if it has the shape and the dtype of one; TypeError otherwise."""
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
    return data


def _on_the_cpu(data: Any) -> bool:
    """Whether an object hands out its memory by DLPack, and that is the CPU's."""
    if not (hasattr(type(data), "__dlpack__") and hasattr(type(data), "__dlpack_device__")):
        return False
    return int(data.__dlpack_device__()[0]) == 1


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
    Row("an object with `__dlpack__`, on the CPU", _on_the_cpu, np.from_dlpack, "converted, with its dtype"),
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

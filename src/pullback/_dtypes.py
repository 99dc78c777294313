"""dtype and device objects with torch's names, and torch's rules of type promotion.

Payloads carry NumPy dtypes; a `dtype` here is the name a user sees and passes. Promotion follows PyTorch, which sorts
types into categories (bool < integer < float < complex) and lets tensors with dimensions outrank 0-d tensors, and
those outrank Python numbers, unless the lower rank has the higher category
(https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc).
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from . import errors


class dtype:  # noqa: N801 - torch's name
    """An element type, e.g. `pullback.float32`.

    >>> import pullback
    >>> pullback.float32, pullback.float32.itemsize, pullback.float32.is_floating_point
    (pullback.float32, 4, True)
    """

    __slots__ = ("is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy")

    def __init__(self, name: str, numpy: Any) -> None:
        self.name = name
        self.numpy = np.dtype(numpy)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = self.numpy.kind == "f"
        self.is_complex = self.numpy.kind == "c"
        self.is_signed = self.numpy.kind in "ifc"

    def __repr__(self) -> str:
        return f"pullback.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def to_complex(self) -> dtype:
        """The complex type with parts of this precision."""
        return BY_NUMPY[complex_of(self.numpy)]

    def to_real(self) -> dtype:
        """The type of the real part."""
        return BY_NUMPY[real_of(self.numpy)]


bool = dtype("bool", np.bool_)
uint8 = dtype("uint8", np.uint8)
uint16 = dtype("uint16", np.uint16)
uint32 = dtype("uint32", np.uint32)
uint64 = dtype("uint64", np.uint64)
int8 = dtype("int8", np.int8)
int16 = short = dtype("int16", np.int16)
int32 = int = dtype("int32", np.int32)
int64 = long = dtype("int64", np.int64)
float16 = half = dtype("float16", np.float16)
float32 = float = dtype("float32", np.float32)
float64 = double = dtype("float64", np.float64)
complex64 = cfloat = dtype("complex64", np.complex64)
complex128 = cdouble = dtype("complex128", np.complex128)

ALL = [bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64, complex64, complex128]
BY_NUMPY: dict[np.dtype[Any], dtype] = {d.numpy: d for d in ALL}
CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}

_default = np.dtype(np.float32)


def default() -> np.dtype[Any]:
    """The floating point type that new tensors of Python floats get, as NumPy's dtype."""
    return _default


def get_default_dtype() -> dtype:
    """The floating point dtype of tensors made from Python floats: float32 unless it was changed."""
    return BY_NUMPY[_default]


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
    if found.kind != "f":
        raise TypeError(errors.message("set_default_dtype()", expected="a floating point dtype", found=repr(d)))
    _default = found


def to_numpy(d: Any) -> np.dtype[Any]:
    """NumPy's dtype for a `dtype` of ours, one of NumPy's, or a Python type; Python's `float` is the default dtype."""
    if isinstance(d, dtype):
        return d.numpy
    if d is builtins.float:
        return _default
    if d is builtins.complex:
        return complex_of(_default)
    try:
        found = np.dtype(object if d is None else d).newbyteorder("=")
    except TypeError:
        found = np.dtype(object)
    if found not in BY_NUMPY:
        raise TypeError(errors.message("dtype", expected="a dtype such as pullback.float32", found=repr(d)))
    return found


def complex_of(d: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts have (at least) the precision of `d`."""
    return np.dtype(np.complex128 if d in (np.float64, np.complex128) else np.complex64)


def real_of(d: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real part of `d`."""
    return {np.dtype(np.complex64): float32.numpy, np.dtype(np.complex128): float64.numpy}.get(d, d)


def promote_types(a: Any, b: Any) -> dtype:
    """The smallest dtype of the higher category of the two that holds both, as in torch.

    >>> import pullback
    >>> pullback.promote_types(pullback.int64, pullback.float32)
    pullback.float32
    """
    return BY_NUMPY[promote(to_numpy(a), to_numpy(b))]


def promote(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """`promote_types` on NumPy's dtypes."""
    if a == b:
        return a
    rank_a, rank_b = CATEGORY[a.kind], CATEGORY[b.kind]
    if min(rank_a, rank_b) <= 1 < max(rank_a, rank_b) or 0 in (rank_a, rank_b):
        return a if rank_a > rank_b else b
    found = np.promote_types(a, b)
    if rank_a == 1 == rank_b and found.kind == "f":
        raise RuntimeError(
            errors.message(
                "type promotion",
                expected="integer types that one type can hold",
                found=f"{a} and {b}",
                do="convert one of them with .to(dtype)",
            )
        )
    return found


def result_type(values: Any) -> np.dtype[Any]:
    """torch's result dtype of an operation on `values`: payloads and Python numbers."""
    ranks: list[np.dtype[Any] | None] = [None, None, None]  # with dimensions, 0-d, Python numbers
    for value in values:
        found = getattr(value, "dtype", None)
        if found is None or isinstance(value, np.generic):
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
            result = complex_of(result) if (result.kind, found.kind) == ("f", "c") else promote(result, found)
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
    raise TypeError(errors.message("operand", expected="a Tensor, an array or a number", found=type(value).__name__))


class device:  # noqa: N801 - torch's name
    """Where a tensor's data lies. NumPy's arrays lie on the CPU.

    >>> import pullback
    >>> pullback.device("cpu"), pullback.zeros(1).device.type
    (device(type='cpu'), 'cpu')
    """

    __slots__ = ("index", "type")

    type: str
    index: builtins.int | None

    def __init__(self, type: Any = "cpu", index: builtins.int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        name, _, number = str(type).partition(":")
        if name not in ("cpu", "cuda"):
            raise RuntimeError(errors.message("device()", expected="'cpu' or 'cuda'", found=repr(type)))
        if number and not number.isdigit():
            raise RuntimeError(errors.message("device()", expected="an index such as 'cuda:0'", found=repr(type)))
        self.type = name
        self.index = builtins.int(number) if number else index

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> builtins.int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


CPU = device("cpu")


def check_device(value: Any) -> None:
    """Refuse a device other than the CPU, where NumPy's arrays lie."""
    if value is not None and device(value).type != "cpu":
        raise RuntimeError(
            errors.message(
                "device",
                expected="cpu (the payloads are NumPy arrays)",
                found=str(device(value)),
                do="leave device out, or wrap the GPU kernel as a pullback.autograd.Function",
            )
        )

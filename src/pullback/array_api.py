"""The Python array API standard, revision 2024.12: the namespace that ``x.__array_namespace__()`` returns for a Tensor.

Libraries written to the standard work on Tensors through it, and can be differentiated. NumPy is such a namespace
itself, and its functions find their rules when they are called on Tensors: so most functions here are NumPy's own.
The functions defined below make new arrays or deal with dtypes, have another name in NumPy, or have another meaning in
PyTorch.

Tensors themselves follow PyTorch's contract, which differs from the standard in a few places: ``x.size`` is a method
(use ``x.numel()``), operators promote differently from functions (``xp.add(x, y)``), a slice has no negative step (use
``xp.flip``). The default dtype is float32 (`pullback.set_default_dtype`). docs/differences.md says how much of the
standard's own test suite passes.

https://data-apis.org/array-api/2024.12/
"""

from __future__ import annotations

import builtins  # some of these names are the standard's functions here
import functools
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import errors
from .ops.make import conversion, from_data, of_size
from .table.entry import NAMES
from .table.entry import method as _method
from .tensor import dtypes as _dtypes
from .tensor.dtypes import (
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .tensor.tensor import Tensor, wrap

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = np.e, np.inf, np.nan, None, np.pi
globals()["bool"] = _dtypes.bool  # the name in the standard, and for type checkers

_REVISIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

# NumPy's own functions, which call this package's when they are given a Tensor.
_NUMPY = """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf
isnan log log1p log2 log10 logical_not negative positive real reciprocal signbit sin sinh square sqrt tan tanh trunc
take broadcast_arrays broadcast_to broadcast_shapes expand_dims flip moveaxis permute_dims repeat roll
tile argmax argmin diff tril triu meshgrid"""
_OF_TWO = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor matmul maximum minimum multiply
nextafter not_equal pow remainder searchsorted subtract tensordot"""
_LINALG = "cholesky det eigh eigvalsh inv matrix_norm matrix_power matrix_rank pinv qr slogdet svd svdvals"
_FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift"

_np: Any = np  # its functions return Tensors for Tensors
_pull: Any = SimpleNamespace(**NAMES[""])


def _together(from_data: Any) -> list[Any]:
    """The values, their Tensors converted to one dtype by the standard's rules, where 0-d arrays count like others."""
    kinds = {v.dtype for v in from_data if isinstance(v, Tensor)}
    if len(kinds) < 2:
        return list(from_data)
    kind = result_type(*kinds)
    return [conversion.to(v, kind) if isinstance(v, Tensor) else v for v in from_data]


def _of_two(call: Any) -> Any:
    @functools.wraps(call)
    def of_two(x1: Any, x2: Any, /, **options: Any) -> Any:
        return call(*_together((x1, x2)), **options)

    of_two.__module__ = "numpy"  # which a ufunc of NumPy 2.0 does not say
    return of_two


def _of_many(call: Any) -> Any:
    @functools.wraps(call)
    def of_many(arrays: Any, /, *, axis: int | None = 0) -> Any:
        return call(_together(arrays), axis=axis)

    return of_many


def _reducing(call: Any) -> Any:
    """A reduction in which ``axis=()`` means no axis, so each element stays alone (in PyTorch: all axes)."""

    @functools.wraps(call)
    def reduce(x: Tensor, /, *, axis: Any = None, **options: Any) -> Any:
        if axis == ():
            return call(_pull.unsqueeze(x, 0), axis=0, **{**options, "keepdims": False})
        return call(x, axis=axis, **options)

    return reduce


def _total_dtype(x: Tensor, dtype: Any) -> Any:
    """The dtype of a sum or product over `x`: unsigned for unsigned integers."""
    return uint64 if dtype is None and isdtype(x.dtype, "unsigned integer") else dtype


def _totalling(call: Any) -> Any:
    @functools.wraps(call)
    def total(x: Tensor, /, *, dtype: Any = None, **options: Any) -> Any:
        return call(x, dtype=_total_dtype(x, dtype), **options)

    return total


def _asking(call: Any) -> Any:
    @functools.wraps(call)
    def ask(x: Tensor, /, **options: Any) -> Any:
        return call(conversion.to(x, _dtypes.bool), **options)

    return ask


globals().update({name: getattr(np, name) for name in _NUMPY.split()})
globals().update({name: _of_two(getattr(np, name)) for name in _OF_TWO.split()})
globals().update({name: _reducing(getattr(np, name)) for name in "max mean min std var count_nonzero".split()})
globals().update({name: _reducing(_totalling(getattr(np, name))) for name in ("sum", "prod")})
globals().update({name: _reducing(_asking(getattr(np, name))) for name in ("all", "any")})
concat, stack = _of_many(np.concat), _of_many(np.stack)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Each matrix of a stack transposed."""
    return _pull.transpose(x, -1, -2)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at the given positions along an axis."""
    found: Tensor = _np.take_along_axis(x, indices, axis)
    return found


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The elements along an axis, each without it."""
    found: tuple[Tensor, ...] = _pull.unbind(x, axis)
    return found


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The products of the vectors that lie along an axis; those of `x1` are conjugated."""
    _check_vectors("vecdot", x1.shape[axis], x2.shape[axis], x1.shape[axis])
    return _np.vecdot(*_together((x1, x2)), axis=axis)


def _cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of the vectors of three that lie along an axis."""
    _check_vectors("cross", x1.shape[axis], x2.shape[axis], 3)
    return _np.linalg.cross(*_together((x1, x2)), axis=axis)


def _check_vectors(name: str, first: int, second: int, length: int) -> None:
    if not first == second == length:
        expected = f"vectors of the length {length}"
        raise ValueError(errors.message(f"{name}()", expected=expected, found=f"{first} and {second}"))


def _diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of a stack of matrices."""
    return _np.diagonal(x, offset, -2, -1)


def _trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of a stack of matrices."""
    return _np.sum(_diagonal(x, offset=offset), axis=-1, dtype=_total_dtype(x, dtype))


linalg = SimpleNamespace(
    **{name: getattr(np.linalg, name) for name in _LINALG.split()},
    **{name: _of_two(getattr(np.linalg, name)) for name in ("matmul", "outer", "solve", "tensordot")},
    **{"cross": _cross, "diagonal": _diagonal, "matrix_transpose": matrix_transpose, "trace": _trace, "vecdot": vecdot},
    vector_norm=_reducing(np.linalg.vector_norm),
)
fft = SimpleNamespace(
    **{name: getattr(np.fft, name) for name in _FFT.split()},
    fftfreq=lambda n, /, *, d=1.0, dtype=None, device=None: asarray(np.fft.fftfreq(n, d), dtype=dtype or _default()),
    rfftfreq=lambda n, /, *, d=1.0, dtype=None, device=None: asarray(np.fft.rfftfreq(n, d), dtype=dtype or _default()),
)


def _default() -> _dtypes.dtype:
    return _dtypes.BY_NUMPY[_dtypes.default()]


# Making arrays --------------------------------------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Tensor:
    """A Tensor from any object that can become one; it shares memory unless a copy is needed or `copy` is True."""
    return from_data.asarray(obj, dtype=dtype, device=device, copy=copy)


def _of_shape(make: Any) -> Any:
    def call(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
        return make((shape,) if isinstance(shape, int) else tuple(shape), dtype=dtype, device=device)

    call.__name__, call.__doc__ = make.__name__, make.__doc__
    return errors.called(call, make.__name__)


zeros, ones, empty = (_of_shape(make) for make in (of_size.zeros, of_size.ones, of_size.empty))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of one number."""
    return of_size.full((shape,) if isinstance(shape, int) else tuple(shape), fill_value, dtype=dtype, device=device)


zeros_like, ones_like, empty_like, full_like = (
    of_size.zeros_like,
    of_size.ones_like,
    of_size.empty_like,
    of_size.full_like,
)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Evenly spaced numbers of [start, stop), or of [0, start)."""
    start, stop = (0, start) if stop is None else (start, stop)
    count = builtins.max(int(np.ceil((stop - start) / step)), 0)
    whole = builtins.all(isinstance(v, int) for v in (start, stop, step))
    kind = int64 if whole else _default()
    return asarray(start + step * np.arange(count), dtype=dtype or kind, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`."""
    found = np.linspace(start, stop, num, endpoint=endpoint)
    kind = _default().to_complex() if found.dtype.kind == "c" else _default()
    return asarray(found, dtype=dtype or kind, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """A matrix with ones on one diagonal."""
    return asarray(np.eye(n_rows, n_cols, k), dtype=dtype or _default(), device=device)


from_dlpack = from_data.from_dlpack


# Dtypes ---------------------------------------------------------------------------------------------------------------


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` with another dtype."""
    return conversion.to(x, dtype, copy=copy)


_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype equals another, is of a kind ("real floating", ...), or matches one of a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(errors.message("isdtype()", expected=f"a kind of {sorted(_KINDS)}", found=repr(kind)))
        return dtype.name in _KINDS[kind]
    return dtype is kind


def result_type(*arrays_and_dtypes: Any) -> _dtypes.dtype:
    """The dtype that arrays, dtypes and Python numbers promote to together; only the dtype of an array counts."""
    found = [_dtype_of(v) for v in arrays_and_dtypes]
    kind = functools.reduce(_promoted, (d for d in found if isinstance(d, _dtypes.dtype)))
    numbers = [n for n in found if not isinstance(n, _dtypes.dtype)]
    return _dtypes.BY_NUMPY[_dtypes.result_type([np.empty(1, kind.numpy), *numbers])]


def _promoted(a: _dtypes.dtype, b: _dtypes.dtype) -> _dtypes.dtype:
    """The promotion of two dtypes: PyTorch's, or NumPy's for pairs of unsigned integers that PyTorch refuses."""
    if isdtype(a, ("bool", "integral")) and isdtype(b, ("bool", "integral")):
        return _dtypes.BY_NUMPY[np.promote_types(a.numpy, b.numpy)]
    return _dtypes.promote_types(a, b)


def _dtype_of(value: Any) -> Any:
    return value.dtype if isinstance(value, Tensor) else value


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or that of an array, can be cast to another by promotion, so that no number is lost."""
    return np.can_cast(_dtype_of(from_).numpy, to.numpy)


class finfo(_dtypes.finfo):  # noqa: N801 - the standard's name
    """The limits of a floating point dtype, or of that of an array."""

    __slots__ = ()

    def __init__(self, type: Any, /) -> None:
        super().__init__(_dtype_of(type))
        self.dtype: Any = getattr(_dtypes, self.dtype)


class iinfo(_dtypes.iinfo):  # noqa: N801 - the standard's name
    """The limits of an integer dtype, or of that of an array."""

    __slots__ = ()

    def __init__(self, type: Any, /) -> None:
        super().__init__(_dtype_of(type))
        self.dtype: Any = getattr(_dtypes, self.dtype)


# Functions of another name in NumPy, or another meaning in PyTorch ----------------------------------------------------


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """The elements between two limits, in the dtype of `x`."""
    if min is None and max is None:
        return _pull.clone(x)
    low, high = (conversion.to(v, x.dtype) if isinstance(v, Tensor) else v for v in (min, max))
    return _np.clip(x, low, high)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotients, rounded down; if a quotient or divisor is infinite, those of true division, rounded down."""
    x1, x2 = _together((x1, x2))
    found = _np.floor_divide(x1, x2)
    if not found.dtype.is_floating_point:
        return found
    return _pull.where(_np.isinf(x1) | _np.isinf(x2), _np.floor(_np.divide(x1, x2)), found)


def round(x: Tensor, /) -> Tensor:
    """The nearest whole numbers, halves to even; complex numbers in both parts."""
    return _pull.complex(_np.round(x.real), _np.round(x.imag)) if x.is_complex() else _np.round(x)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN for NaN."""
    return _pull.where(_np.isnan(x), nan, _np.sign(x)) if x.is_floating_point() else _np.sign(x)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """The elements of `x1` where the condition holds, else those of `x2`."""
    return _np.where(condition, *_together((x1, x2)))


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements that are not zero, an array for each axis."""
    if not x.ndim:
        raise ValueError(errors.message("nonzero()", expected="an array with dimensions", found="one without"))
    return _np.nonzero(x)


def reshape(x: Tensor, /, shape: Any, *, copy: Any = None) -> Tensor:
    """The elements in another shape; `copy` says whether memory must be new (True), shared (False), or either."""
    if copy is False:
        return x.view(shape)
    return (_pull.clone(x) if copy else x).reshape(shape)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """`x` without these axes, which must have length 1."""
    for one in axis if isinstance(axis, tuple) else (axis,):
        if x.shape[one] != 1:
            raise ValueError(
                errors.message("squeeze()", expected="axes of length 1", found=f"axis {one} of the shape {(*x.shape,)}")
            )
    return _pull.squeeze(x, axis)


UniqueAll = namedtuple("UniqueAll", ["values", "indices", "inverse_indices", "counts"])
UniqueCounts = namedtuple("UniqueCounts", ["values", "counts"])
UniqueInverse = namedtuple("UniqueInverse", ["values", "inverse_indices"])


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, the first position of each, the index of each element among them, and their counts."""
    _, indices, inverse, counts = np.unique(x.detach().numpy(), True, True, True)
    return UniqueAll(x.reshape(-1)[wrap(indices)], wrap(indices), wrap(inverse.reshape(x.shape)), wrap(counts))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements and their counts."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and the index of each element among them."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return unique_all(x).values


def _cumulative(op: Any, first: int) -> Any:
    def call(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
        if axis is None:
            if x.ndim != 1:
                raise ValueError(f"{op.__name__}: axis must be given for an array of {x.ndim} dimensions")
            axis = 0
        found = op(x, axis, dtype=_total_dtype(x, dtype))
        if not include_initial:
            return found
        shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
        return _np.concatenate([full(shape, first, dtype=found.dtype), found], axis=axis)

    return call


cumulative_sum, cumulative_prod = _cumulative(_pull.cumsum, 0), _cumulative(_pull.cumprod, 1)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    return _pull.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that put the elements in order along an axis."""
    return _pull.argsort(x, dim=axis, descending=descending, stable=stable)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is in `x2`."""
    return _pull.isin(*_together((x1, x2)), invert=invert)


class _Info:
    """The capabilities of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks as indices, results whose shape depends on values, and up to 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The CPU."""
        return _dtypes.CPU

    def devices(self) -> list[Any]:
        """The CPU alone."""
        return [_dtypes.CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtypes of new arrays."""
        return {
            "real floating": _default(),
            "complex floating": _default().to_complex(),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by name: all, or those of a kind."""
        names = [*_KINDS["bool"], *_KINDS["numeric"]]
        return {n: getattr(_dtypes, n) for n in names if kind is None or isdtype(getattr(_dtypes, n), kind)}


def __array_namespace_info__() -> _Info:  # noqa: N807 - the standard's name
    """The capabilities of the namespace."""
    return _Info()


@_method("__array_namespace__")
def _namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The namespace of the Python array API standard."""
    if api_version is not None and api_version not in _REVISIONS:
        raise ValueError(
            errors.message("__array_namespace__()", expected=f"a revision of {_REVISIONS}", found=repr(api_version))
        )
    return _THIS


@_method("to_device", named=True)
def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor itself: it lies on the CPU."""
    _dtypes.check_device(device)
    return self


_THIS: Any = __import__("sys").modules[__name__]

__all__ = [
    "complex64",
    "complex128",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

# Names that this file needs and that are not a part of the standard.
_OWN = """Any NAMES SimpleNamespace Tensor UniqueAll UniqueCounts UniqueInverse annotations builtins conversion errors
from_data functools namedtuple np of_size wrap""".split()

__all__ += [name for name in globals() if not (name.startswith("_") or name in _OWN or name in __all__)]


def __dir__() -> list[str]:
    return sorted(__all__)


errors.doors(
    globals(),
    "cumulative_prod cumulative_sum empty ones zeros "
    "arange argsort asarray astype can_cast clip eye finfo floor_divide full iinfo isdtype isin linspace "
    "matrix_transpose nonzero reshape result_type round sign sort squeeze take_along_axis unique_all unique_counts "
    "unique_inverse unique_values unstack vecdot where",
)

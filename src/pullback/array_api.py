"""The Python array API standard, revision 2024.12: what ``x.__array_namespace__()`` gives for a Tensor.

Libraries written to the standard work on Tensors through it, and can be differentiated. NumPy is such a namespace
itself, and its functions find their rules when they are called on Tensors: so most functions here are NumPy's own. What
makes new arrays, knows of dtypes, or is called otherwise in NumPy is defined below.

Two things differ from the standard because PyTorch's contract is kept: ``x.size`` is a method (use ``x.numel()``), and
the default dtype is float32 (`pullback.set_default_dtype`).

https://data-apis.org/array-api/2024.12/
"""

from __future__ import annotations

import builtins  # some of whose names mean the standard's functions here
import functools
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import _dtypes, errors
from ._dtypes import complex64, complex128, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from ._tensor import Tensor, wrap
from .ops import conversion, creation, values
from .ops.table import NAMES

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = np.e, np.inf, np.nan, None, np.pi
globals()["bool"] = _dtypes.bool  # the standard's name, and a type checker's, too

_REVISIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

# The functions that are NumPy's, which call ours when they are given a Tensor.
_NUMPY = """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder
round sign signbit sin sinh square sqrt subtract tan tanh trunc take take_along_axis matmul matrix_transpose
tensordot vecdot broadcast_arrays broadcast_to broadcast_shapes concat expand_dims flip moveaxis permute_dims repeat
reshape roll squeeze stack tile unstack argmax argmin count_nonzero nonzero searchsorted where max mean min prod std
sum var all any diff tril triu meshgrid""".split()
_LINALG = """cholesky cross det eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank outer pinv qr slogdet
solve svd svdvals tensordot trace vecdot vector_norm"""
_FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift"

globals().update({name: getattr(np, name) for name in _NUMPY})
_pull: Any = SimpleNamespace(**NAMES[""])


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Each matrix of a stack transposed."""
    return _pull.transpose(x, -1, -2)


linalg = SimpleNamespace(
    **{name: getattr(np.linalg, name) for name in _LINALG.split()},
    matrix_transpose=matrix_transpose,
    diagonal=lambda x, /, *, offset=0: np.diagonal(x, offset, -2, -1),
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
    """A Tensor of anything that can be one; it shares memory unless it has to be copied, or `copy` is True."""
    return values.asarray(obj, dtype=dtype, device=device, copy=copy)


def _of_shape(make: Any) -> Any:
    @functools.wraps(make)
    def call(shape: Any, *rest: Any, dtype: Any = None, device: Any = None) -> Any:
        return make((shape,) if isinstance(shape, int) else tuple(shape), *rest, dtype=dtype, device=device)

    return call


zeros, ones, empty, full = (_of_shape(f) for f in (creation.zeros, creation.ones, creation.empty, creation.full))
zeros_like, ones_like, empty_like, full_like = (
    creation.zeros_like,
    creation.ones_like,
    creation.empty_like,
    creation.full_like,
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


from_dlpack = values.from_dlpack


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
    """Whether a dtype is another, or of a kind ("real floating", ...), or one of a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(errors.message("isdtype()", expected=f"a kind of {sorted(_KINDS)}", found=repr(kind)))
        return dtype.name in _KINDS[kind]
    return dtype is kind


def result_type(*arrays_and_dtypes: Any) -> _dtypes.dtype:
    """The dtype that results from arrays, dtypes and Python numbers together."""
    found = [
        a.numpy if isinstance(a, _dtypes.dtype) else a._data if isinstance(a, Tensor) else a for a in arrays_and_dtypes
    ]
    return _dtypes.BY_NUMPY[_dtypes.result_type([np.empty(1, a) if isinstance(a, np.dtype) else a for a in found])]


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype can be cast to another by promotion."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    return _dtypes.promote_types(source, to) is to


finfo, iinfo = _dtypes.finfo, _dtypes.iinfo


# What NumPy calls otherwise -------------------------------------------------------------------------------------------

UniqueAll = namedtuple("UniqueAll", ["values", "indices", "inverse_indices", "counts"])
UniqueCounts = namedtuple("UniqueCounts", ["values", "counts"])
UniqueInverse = namedtuple("UniqueInverse", ["values", "inverse_indices"])


def unique_all(x: Tensor, /) -> UniqueAll:
    """The different elements, where each is first, which each element is, and how often each occurs."""
    _, indices, inverse, counts = np.unique(x.detach().numpy(), True, True, True)
    return UniqueAll(x.reshape(-1)[wrap(indices)], wrap(indices), wrap(inverse.reshape(x.shape)), wrap(counts))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The different elements, and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different elements, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements."""
    return unique_all(x).values


def _cumulative(op: Any, first: int) -> Any:
    def call(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
        if axis is None:
            if x.ndim != 1:
                raise ValueError(f"{op.__name__}: axis must be given for an array of {x.ndim} dimensions")
            axis = 0
        found = op(x, axis, dtype=dtype)
        if not include_initial:
            return found
        shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
        return np.concatenate([full(shape, first, dtype=found.dtype), found], axis=axis)  # type: ignore[return-value]

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
    return _pull.isin(x1, x2, invert=invert)


class _Info:
    """What the namespace can do."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks as indices, results whose shape depends on values, and any number of dimensions to 64."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The CPU."""
        return _dtypes.CPU

    def devices(self) -> list[Any]:
        """The CPU alone."""
        return [_dtypes.CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Which dtype new arrays have."""
        return {
            "real floating": _default(),
            "complex floating": _default().to_complex(),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by name, all or those of a kind."""
        names = [*_KINDS["bool"], *_KINDS["numeric"]]
        return {n: getattr(_dtypes, n) for n in names if kind is None or isdtype(getattr(_dtypes, n), kind)}


def __array_namespace_info__() -> _Info:  # noqa: N807 - the standard's name
    """What the namespace can do."""
    return _Info()


def _namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The namespace of the Python array API standard."""
    if api_version is not None and api_version not in _REVISIONS:
        raise ValueError(
            errors.message("__array_namespace__()", expected=f"a revision of {_REVISIONS}", found=repr(api_version))
        )
    return _THIS


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor itself: it lies on the CPU."""
    _dtypes.check_device(device)
    return self


_THIS: Any = __import__("sys").modules[__name__]
Tensor.__array_namespace__ = _namespace  # type: ignore[attr-defined]
Tensor.to_device = _to_device  # type: ignore[method-assign, assignment]

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

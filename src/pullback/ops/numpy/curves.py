"""NumPy's functions of samples along a line: grids, interpolation, convolution, polynomials; functions of slices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...table.entry import bilinear
from ...table.levels import batches
from ...tensor.arrays import as_array, wrap_axis
from ...tensor.protocol import INSTEAD
from ...tensor.tensor import NUMPY, Tensor, wrap
from ..elementwise.limits import where
from ..index.put import masked_scatter
from ..make.conversion import alike, to
from ..reduce.scans import cumprod, cumsum
from ..shape.axes import movedim
from ..shape.joining import cat, constants, stack
from ..shape.reshape import expand, flatten, reshape

# Grids and interpolation ----------------------------------------------------------------------------------------------


def _linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    start, stop = (to(t, np.float64) if t._data.dtype.kind in "biu" else t for t in alike(start, stop))
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else (stop - start) * np.nan
    ndim = max(start._data.ndim, stop._data.ndim)
    places = np.arange(num, dtype=start._data.dtype).reshape(-1, *(1,) * ndim)
    found = start + wrap(places) * (step if parts > 0 else stop - start)
    if endpoint and num > 1:
        found = where(wrap(places == parts), stop, found)
    found = movedim(found, 0, axis) if axis else found
    if dtype is not None:
        found = to(np.floor(found) if np.dtype(dtype).kind in "iu" else found, dtype)
    return (found, step) if retstep else found


def _logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    found = np.power(base, _linspace(start, stop, num, endpoint, axis=axis))
    return found if dtype is None else to(found, dtype)


def _double(value: Any) -> Tensor:
    """A Tensor of float64, or of complex128 if its numbers are complex."""
    t = value if isinstance(value, Tensor) else wrap(as_array(value))
    return to(t, np.complex128 if t.is_complex() else np.float64)


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
    """numpy.interp, differentiable in all of `x`, `xp` and `fp`."""
    x, xp, fp = map(_double, (x, xp, fp))
    if xp._data.ndim != 1 or xp._data.shape != fp._data.shape or not xp._data.size:
        found = f"xp of shape {tuple(xp.shape)}, fp of shape {tuple(fp.shape)}"
        raise ValueError(errors.message("numpy.interp()", expected="points in two vectors of one length", found=found))
    if period is not None:
        x, xp = np.remainder(x, abs(period)), np.remainder(xp, abs(period))
        order = np.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = cat([xp[-1:] - abs(period), xp, xp[:1] + abs(period)])
        fp, left, right = cat([fp[-1:], fp, fp[:1]]), None, None
    last = xp._data.shape[0] - 1
    left, right = fp[0] if left is None else left, fp[last] if right is None else right
    if last == 0:
        found = fp[0] + 0 * x
    else:
        at = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, last - 1)
        x0, x1, f0, f1 = xp[at], xp[at + 1], fp[at], fp[at + 1]
        width = where(x1 == x0, 1, x1 - x0)
        slope = (f1 - f0) / width
        found = where(x == xp[last], f1 + slope * (x - x1), f0 + slope * (x - x0))
    return where(x < xp[0], left, where(x > xp[last], right, found))


def _unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Tensor:
    """numpy.unwrap: whole periods are added, which are constant almost everywhere."""
    p = _double(p) if p._data.dtype.kind in "biu" else p
    slope = np.diff(p.detach(), axis=axis)
    jump = np.remainder(slope + period / 2, period) - period / 2
    jump = where((jump == -period / 2) & (slope > 0), period / 2, jump) - slope
    jump = where(np.absolute(slope) < (period / 2 if discont is None else discont), 0, jump)
    first = np.zeros_like(np.take(p, [0], axis=axis))
    return p + cumsum(cat([first, jump], axis), axis)


def _real_if_close(a: Tensor, tol: float = 100) -> Tensor:
    if not a.is_complex():
        return a
    limit = tol * np.finfo(a._data.dtype).eps if tol > 1 else tol
    return np.real(a) if bool(np.all(np.absolute(np.imag(a.detach())) < limit)) else a


# Convolution ----------------------------------------------------------------------------------------------------------


@bilinear(
    method=False,
    a=lambda g, v: np.convolve(g, np.flip(v), "valid"),
    v=lambda g, a: np.convolve(g, np.flip(a), "valid"),
)
def _convolved(a: Any, v: Any) -> Any:
    """The whole convolution of two vectors."""
    return np.convolve(a, v)


def _vectors(name: str, *values: Any) -> list[Tensor]:
    found = [reshape(t, (-1,)) if t._data.ndim == 0 else t for t in alike(*values)]
    for t in found:
        if t._data.ndim != 1 or not t._data.size:
            raise ValueError(errors.message(f"{name}()", expected="vectors with elements", found=errors.describe(t)))
    return found


def _convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    a, v = _vectors("numpy.convolve", a, v)
    short, long = sorted((a._data.shape[0], v._data.shape[0]))
    whole = _convolved(a, v)
    if mode == "full":
        return whole
    if mode not in ("same", "valid"):
        raise ValueError(errors.message("numpy.convolve()", expected="mode full, same or valid", found=repr(mode)))
    return whole[(short - 1) // 2 :][:long] if mode == "same" else whole[short - 1 : long]


def _correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """numpy.correlate: the convolution with the second vector conjugated and read backwards."""
    a, v = _vectors("numpy.correlate", a, v)
    back = np.flip(np.conj(v) if v.is_complex() else v)
    if mode == "same" and a._data.shape[0] < v._data.shape[0]:
        start = a._data.shape[0] // 2
        return _convolved(a, back)[start:][: v._data.shape[0]]
    return _convolve(a, back, mode)


# Polynomials, with the highest power first ----------------------------------------------------------------------------


def _polyval(p: Any, x: Any) -> Any:
    """Horner's rule. A poly1d is read as its coefficients, and for x it is composed."""
    p = p.coeffs if isinstance(p, np.poly1d) else p
    if isinstance(x, np.poly1d):
        found, *rest = _vectors("numpy.polyval", p)[0].split(1)
        for c in rest:
            found = NUMPY[np.polyadd](_convolve(found, x.coeffs), c)
        return found
    found = np.zeros_like(x) if isinstance(x, Tensor) else np.zeros(np.shape(x))
    for i in range(np.shape(p)[0]):
        found = found * x + p[i]
    return found


def _polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: bool = False
) -> Tensor:
    """numpy.polyfit without its statistics: the least squares solution for columns scaled to the length 1."""
    if full or cov:
        raise TypeError(
            errors.message("numpy.polyfit()", expected="full=False and cov=False for a Tensor", found="full or cov")
        )
    x, y = map(_double, (x, y))
    table, target = np.vander(x, int(deg) + 1), y
    if w is not None:
        w = _double(w)
        table, target = table * w[:, None], y * (w[:, None] if y._data.ndim == 2 else w)
    scale = np.sqrt(np.sum(table * table, axis=0))
    found = np.linalg.lstsq(table / scale, target, x._data.shape[0] * np.finfo(float).eps if rcond is None else rcond)[
        0
    ]
    return found / (scale[:, None] if y._data.ndim == 2 else scale)


def _padded(*values: Any) -> list[Any]:
    """Coefficients as vectors of one length, with zeros in front."""
    found = [reshape(t, (-1,)) if t._data.ndim == 0 else t for t in alike(*values)]
    size = max(t._data.shape[0] for t in found)
    return [np.pad(t, (size - t._data.shape[0], 0)) for t in found]


def _trimmed(coefficients: Any) -> Tensor:
    (t,) = _vectors("numpy.polymul", coefficients)
    if batches(t):
        return t
    nonzero = np.not_equal(t.detach(), 0)
    start = next((i for i in range(t._data.shape[0] - 1) if bool(nonzero[i])), t._data.shape[0] - 1)
    return t[start:] if start else t


def _product(a1: Any, a2: Any) -> Tensor:
    """numpy.polymul: of vectors without the zeros in front. `vmap` keeps those, which each may have or not."""
    return _convolve(_trimmed(a1), _trimmed(a2))


def _check_order(name: str, m: int) -> None:
    if m < 0:
        raise ValueError(errors.message(f"numpy.{name}()", expected="m to be 0 or more", found=repr(m)))


def _polyder(p: Any, m: int = 1) -> Tensor:
    (p,) = _vectors("numpy.polyder", p)
    _check_order("polyder", m)
    for _ in range(m):
        p = p[:-1] * wrap(np.arange(p._data.shape[0] - 1, 0, -1))
    return p


def _polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    (p,) = _vectors("numpy.polyint", p)
    _check_order("polyint", m)
    k = 0.0 if k is None else k
    added = list(k) if isinstance(k, (list, tuple)) or np.ndim(k) else [k]
    added = added * m if len(added) == 1 else added
    if len(added) < m:
        raise ValueError(errors.message("numpy.polyint(): k", expected=f"1 constant or {m}", found=f"{len(added)}"))
    for constant in added[:m]:
        p = p / wrap(np.arange(p._data.shape[0], 0, -1))
        p = cat([p, reshape(alike(constant)[0], (1,)).to(p.dtype)])
    return p


# Slices, pieces -------------------------------------------------------------------------------------------------------


def _apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """numpy.apply_along_axis: the axes of each result take the place of `axis`."""
    axis = wrap_axis(axis, arr._data.ndim)
    rows = movedim(arr, axis, -1)
    outer = tuple(rows._data.shape[:-1])
    found = [func1d(row, *args, **kwargs) for row in reshape(rows, (-1, rows._data.shape[-1])).unbind(0)]
    if not found:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    joined = stack(alike(*found))
    result = tuple(joined._data.shape[1:])
    places = range(len(outer), len(outer) + len(result))
    return movedim(reshape(joined, (*outer, *result)), tuple(places), tuple(range(axis, axis + len(result))))


def _apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        found = func(a, axis)
        a = found if found.ndim == a.ndim else np.expand_dims(found, axis)
    return a


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """numpy.piecewise: each function sees the elements for which its condition holds. So `vmap` refuses it."""
    (x,) = alike(x)
    ndim, shape = x._data.ndim, tuple(x._data.shape)
    listed = isinstance(condlist, (list, tuple)) or np.ndim(condlist)
    several = listed and (not ndim or np.ndim(condlist[0]))
    masks: list[Any] = constants(list(condlist) if several else [condlist])  # of the first axes, or of all
    masks = [expand(reshape(c, (*c.shape, *(1,) * (ndim - c._data.ndim))), shape) for c in masks]
    if len(funclist) == len(masks) + 1:
        masks = [*masks, np.logical_not(functools.reduce(np.logical_or, masks))]
    if len(funclist) != len(masks):
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions are expected"
        )
    out = np.zeros_like(x)
    for mask, function in zip(masks, funclist, strict=True):
        piece = function(x[mask], *args, **kw) if callable(function) else function
        if np.ndim(piece):
            out = masked_scatter(out, mask, to(piece, out._data.dtype))
        else:
            out = where(mask, to(constants([piece])[0], out._data.dtype), out)
    return out


def _cumulative(scan: Callable[..., Any], first: float) -> Callable[..., Any]:
    def call(x: Tensor, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
        axis = 0 if axis is None and x._data.ndim == 1 else axis
        if axis is None:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        found = scan(x, axis, dtype=dtype)
        return cat([np.full_like(np.take(found, [0], axis=axis), first), found], axis) if include_initial else found

    return call


def _nan_scan(scan: Callable[..., Any], instead: float) -> Callable[..., Any]:
    def call(a: Tensor, axis: Any = None, dtype: Any = None) -> Tensor:
        a = flatten(a) if axis is None else a
        a = a if a._data.dtype.kind in "biu" else where(np.isnan(a), instead, a)
        return scan(a, 0 if axis is None else axis, dtype=dtype)

    return call


NUMPY.update(
    {
        np.linspace: _linspace,
        np.logspace: _logspace,
        np.interp: _interp,
        np.unwrap: _unwrap,
        np.real_if_close: _real_if_close,
        np.convolve: _convolve,
        np.correlate: _correlate,
        np.polyval: _polyval,
        np.polyfit: _polyfit,
        np.polyadd: lambda a1, a2: np.add(*_padded(a1, a2)),
        np.polysub: lambda a1, a2: np.subtract(*_padded(a1, a2)),
        np.polymul: _product,
        np.polyder: _polyder,
        np.polyint: _polyint,
        np.apply_along_axis: _apply_along_axis,
        np.apply_over_axes: _apply_over_axes,
        np.piecewise: _piecewise,
        np.around: lambda a, decimals=0: np.round(a, decimals),
        np.nancumsum: _nan_scan(cumsum, 0.0),
        np.nancumprod: _nan_scan(cumprod, 1.0),
    }
)
if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    NUMPY.update({np.cumulative_sum: _cumulative(cumsum, 0.0), np.cumulative_prod: _cumulative(cumprod, 1.0)})
INSTEAD[np.geomspace] = "write np.exp(np.linspace(np.log(start), np.log(stop)))"

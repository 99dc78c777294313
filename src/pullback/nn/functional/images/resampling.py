"""`interpolate`: images of another size, by the nearest element, by lines, by cubics or by averages.

Along each axis an output is a weighted sum of a few inputs, which depend on the sizes only: `resampled`. With n inputs
and m outputs, output i is at ``(i + 1/2) n / m - 1/2``, as if elements were areas, or, with the corners aligned, at
``i (n - 1) / (m - 1)``.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import errors
from ....kernels.sliding import Array
from ....kernels.taps import Taps, of_rows, picked
from ....table.entry import alias, composite, titled
from ....table.operands import need_numbers
from ....table.samples import A, S
from ....tensor.arrays import counted
from ....tensor.tensor import Tensor
from ..arguments import floating, refuse, tensors
from ..primitives import resampled
from .averages import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

_AREA = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
_RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "lanczos": 4, "trilinear": 5}
_TITLES = {mode: "".join(part.title() for part in mode.split("-")) for mode in ("nearest", "nearest-exact", *_RANKS)}
_SHARP = -0.75  # the constant of torch's cubics, plain and smoothed
_SMOOTH = -0.5


# Inputs and weights ---------------------------------------------------------------------------------------------------


def _scale(n: int, m: int, corners: bool, factor: float | None) -> float:
    """The distance between two outputs, in units of the distance between two inputs."""
    if corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return 1.0 / factor if factor is not None and factor > 0 else n / m


def _nearest(n: int, m: int, exact: bool, factor: float | None) -> Taps:
    # in single precision, as in torch, whatever the dtype: otherwise some places would round to a neighbour
    scale = np.float32(_scale(n, m, False, factor) if factor is not None else np.float32(n) / np.float32(m))
    place = (counted(m, np.float32) + np.float32(0.5 if exact else 0.0)) * scale
    found = np.floor(place).astype(np.int64)
    return picked(n, np.minimum(found, n - 1))


def _lines(n: int, m: int, corners: bool, factor: float | None) -> Taps:
    if m == n:  # whichever factor led to it
        return picked(n, np.arange(n))
    scale = _scale(n, m, corners, factor)
    place = counted(m) * scale if corners else np.maximum((counted(m) + 0.5) * scale - 0.5, 0)
    low = np.minimum(np.floor(place), n - 1).astype(np.int64)
    part = np.clip(place - low, 0, 1)
    return of_rows(m, n, np.stack([low, np.minimum(low + 1, n - 1)], 1), np.stack([1 - part, part], 1))


def cubic_weights(t: Any) -> list[Any]:
    """The weights of the four elements around a place at distance t from the second, for arrays and Tensors.

    (Keys 1981, with the constant -3/4.)
    """
    a = _SHARP

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubics(n: int, m: int, corners: bool, factor: float | None) -> Taps:
    scale = _scale(n, m, corners, factor)
    place = counted(m) * scale if corners else (counted(m) + 0.5) * scale - 0.5
    low = np.minimum(np.floor(place), n - 1).astype(np.int64)
    part = np.clip(place - low, 0, 1)
    columns = np.clip(low[:, None] + np.arange(-1, 3), 0, n - 1)
    return of_rows(m, n, columns, np.stack(cubic_weights(part), 1))


def _triangle(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _bump(x: Array) -> Array:
    x, a = np.abs(x), _SMOOTH
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _windowed_sinc(x: Array) -> Array:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_SMOOTHING: dict[str, tuple[Callable[[Array], Array], int]] = {
    "bilinear": (_triangle, 1),
    "bicubic": (_bump, 2),
    "lanczos": (_windowed_sinc, 3),
}


def _smoothed(n: int, m: int, mode: str, corners: bool, factor: float | None) -> Taps:
    """Averages weighted by a function, which is as wide as the distance of two outputs if that is larger than 1."""
    scale = _scale(n, m, corners, factor)
    shape, radius = _SMOOTHING[mode]
    wide = max(scale, 1.0)
    center = (counted(m) + 0.5) * scale  # even with the corners aligned, as in torch
    start = np.maximum(np.trunc(center - radius * wide + 0.5), 0).astype(np.int64)
    end = np.minimum(np.trunc(center + radius * wide + 0.5), n).astype(np.int64)
    columns = start[:, None] + np.arange(max(int(np.max(end - start)), 1))
    weights = np.where(columns < end[:, None], shape((columns - center[:, None] + 0.5) / wide), 0)
    total = weights.sum(1, keepdims=True)
    return of_rows(m, n, np.minimum(columns, n - 1), weights / np.where(total == 0, 1, total))


@functools.lru_cache(256)
def _taps(n: int, m: int, mode: str, corners: bool, factor: float | None, antialias: bool) -> Taps:
    """The map from n inputs to m outputs."""
    if mode in ("nearest", "nearest-exact"):
        return _nearest(n, m, mode == "nearest-exact", factor)
    if antialias:
        return _smoothed(n, m, mode, corners, factor)
    return (_cubics if mode == "bicubic" else _lines)(n, m, corners, factor)


# The functions --------------------------------------------------------------------------------------------------------


def _sizes(input: Tensor, size: Any, scale_factor: Any, recompute: Any, mode: str) -> tuple[list[int], list[Any]]:
    """The sizes of the result, and their scale factors; None if the sizes alone decide."""
    image = input._data.shape[2:]
    name, space = "interpolate", len(image)
    if (size is None) == (scale_factor is None):
        raise refuse(name, "one of size and scale_factor", "both or neither", error=ValueError)
    given = size if size is not None else scale_factor
    values = list(given) if isinstance(given, (tuple, list)) else [given] * space
    if len(values) != space:
        raise refuse(name, f"one number, or {space} for {list(image)}", f"{len(values)}", error=ValueError)
    if size is not None:
        if recompute:
            raise refuse(name, "recompute_scale_factor only with scale_factor", "a size", error=ValueError)
        try:
            return [operator.index(n) for n in values], [None] * space
        except TypeError:
            raise refuse(name, "size to be integers", errors.describe(size), error=TypeError) from None
    for value in values:
        need_numbers(name, scale_factor=value)
    sizes = [int(n * factor) for n, factor in zip(image, values, strict=True)]
    return sizes, [None] * space if recompute or mode == "area" else [float(v) for v in values]


@composite(
    home="nn.functional",
    truths="align_corners recompute_scale_factor antialias",
    samples=lambda: _samples(),
    refused=lambda: _refused(),
)
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input`, ``(N, C, L)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``, in another `size`, or `scale_factor` as large.

    mode: ``'nearest'``, ``'nearest-exact'`` (which rounds, while the former truncates), ``'area'``; for three axes
    ``'linear'``, for four ``'bilinear'``, ``'bicubic'`` and ``'lanczos'``, for five ``'trilinear'``. align_corners: the
    outermost elements stay in place. recompute_scale_factor: the places of the outputs follow from the sizes, which are
    whole numbers, and not from the factor. antialias: average over more elements if the image shrinks.

    >>> import pullback
    >>> pullback.nn.functional.interpolate(pullback.tensor([[[0.0, 4.0]]]), 4, mode="linear")
    tensor([[[0., 1., 3., 4.]]])
    """
    name = "interpolate"
    tensors(name, input=input)
    rank = input._data.ndim
    plain = mode in ("nearest", "area", "nearest-exact")
    if plain and align_corners is not None:
        raise refuse(name, "align_corners only with a linear or cubic mode", f"mode={mode!r}", error=ValueError)
    sizes, factors = _sizes(input, size, scale_factor, recompute_scale_factor, mode)
    if antialias and not (mode in _SMOOTHING and rank == 4):
        raise refuse(
            name,
            "antialias only with 'bilinear', 'bicubic' or 'lanczos' in 4D",
            f"mode={mode!r} in {rank}D",
            error=ValueError,
        )
    if rank not in (3, 4, 5) or not (plain or _RANKS.get(mode) == rank):
        raise refuse(
            name,
            f"an input of {_RANKS[mode]}D with mode={mode!r}"
            if mode in _RANKS
            else "one of torch's modes, in 3D to 5D",
            f"mode={mode!r}, an input of {rank}D",
            error=NotImplementedError,
        )
    if mode == "area":
        return _AREA[rank - 3](input, tuple(sizes))
    if input._data.dtype == np.uint8 and rank == 4 and mode in _SMOOTHING:  # computed exactly, and rounded
        wide = interpolate(input.double(), size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
        return (wide + 0.5).floor().clamp(0, 255).to(np.uint8)
    floating(name, input, also="u" * mode.startswith("nearest"))
    if mode == "lanczos" and (align_corners or not antialias):
        raise refuse(name, "antialias=True and no align_corners with mode='lanczos'", "other", error=ValueError)
    shape = input._data.shape
    if min(sizes) < 1 or 0 in shape[1:]:
        raise refuse(name, "input and output of some elements", f"size {list(shape)}, output {sizes}")
    maps = [
        _taps(n, m, mode, bool(align_corners), factor, antialias)
        for n, m, factor in zip(shape[2:], sizes, factors, strict=True)
    ]
    smooth = "Aa" if antialias else ""
    kept = {} if mode.startswith("nearest") else {"align_corners": bool(align_corners)}
    call = titled(resampled, f"Upsample{_TITLES[mode]}{rank - 2}D{smooth}Backward0", **kept)
    return call(input, tuple(maps))


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The older name of `interpolate`."""
    _deprecated("upsample", "")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The older name of `interpolate` with mode 'nearest'."""
    _deprecated("upsample_nearest", "")
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The older name of `interpolate` with mode 'bilinear' and aligned corners."""
    _deprecated("upsample_bilinear", " with mode='bilinear', align_corners=True")
    return interpolate(input, size, scale_factor, "bilinear", True)


def _deprecated(name: str, how: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate`{how} instead.",
        stacklevel=errors.callers_level(),
    )


for _function in (upsample, upsample_nearest, upsample_bilinear):
    alias(f"nn.functional.{_function.__name__}", _function)


# Their domains --------------------------------------------------------------------------------------------------------


def _samples() -> list[Any]:
    line, image, volume = A(2, 2, 5), A(1, 2, 4, 5), A(1, 1, 3, 4, 3)
    found = []
    for x, modes in (
        (line, ("nearest", "nearest-exact", "area", "linear")),
        (image, ("nearest", "nearest-exact", "area", "bilinear", "bicubic")),
        (volume, ("nearest", "nearest-exact", "area", "trilinear")),
    ):
        space = len(x.shape) - 2
        for mode in modes:
            found += [
                S(x, 7, mode=mode),
                S(x, tuple((3, 2, 5)[:space]), None, mode),
                S(x, None, 1.6, mode),
                S(x, scale_factor=[2, 0.7, 1.7][:space], mode=mode),
                S(x, scale_factor=1.3, mode=mode, recompute_scale_factor=True),
                S(x, [2 * n for n in x.shape[2:]], mode=mode),
            ]
            if "linear" in mode or mode == "bicubic":
                found += [
                    S(x, 7, None, mode, True),
                    S(x, 1, None, mode, True),
                    S(x, None, 0.6, mode, align_corners=True),
                    S(x, scale_factor=1.6, mode=mode, align_corners=False),
                ]
    for mode in ("bilinear", "bicubic"):
        for size in ((2, 2), (7, 3), (1, 9), (4, 6)):
            found += [S(A(1, 2, 4, 5), size, mode=mode, antialias=True)]
        found += [S(A(1, 1, 9, 8), None, 0.3, mode, corners, antialias=True) for corners in (False, True)]
    found += [S(A(1, 1, 9, 8), size, mode="lanczos", antialias=True) for size in ((4, 3), 12)]
    return [
        *found,
        S(A(1, 1, 5), None, 1.1, "linear"),
        S(A(1, 2, 5, layout="T"), (2,)),
        S(A(1, 2, 4, 3, layout="step"), 6, mode="bilinear"),
        S(A(0, 2, 4), 6, mode="linear"),
        S(A(1, 1, 1, layout="readonly"), 3, mode="linear"),
    ]


def _refused() -> list[Any]:
    line, image = A(1, 2, 4), A(1, 2, 4, 4)
    return [
        S(line, (6, 6)),
        S(line, 0),
        S(line, -1),
        S(line, 2.5),
        S(line),
        S(line, 6, 2),
        S(line, None, (1.5, 2.0)),
        S(line, None, 0.1),
        S(line, 6, mode="bilinear"),
        S(image, 6, mode="linear"),
        S(line, 6, mode="other"),
        S(line, 6, align_corners=True),
        S(line, 6, mode="linear", antialias=True),
        S(image, 2, mode="nearest", antialias=True),
        S(image, 2, mode="lanczos"),
        S(image, 2, mode="lanczos", antialias=True, align_corners=True),
        S(line, 6, recompute_scale_factor=True),
        S(A(2, 4), 6),
        S(A(1, 0, 4), 6),
        S(A(1, 2, 0), 6),
    ]

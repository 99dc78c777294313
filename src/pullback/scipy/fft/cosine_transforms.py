"""Cosine and sine transforms as linear maps with their adjoints.

The orthogonal forms of the types 1 and 4 are symmetric, and those of the types 2 and 3 are transposes of each other.
The other forms differ from these by a factor sqrt(2) for the first entry (sine: the last; type 1 of cosine: both).

>>> import pullback
>>> from pullback.scipy import fft
>>> x = pullback.tensor([1.0, 2.0, 4.0], requires_grad=True)
>>> fft.dct(x).sum().backward()
>>> x.grad.abs().round(decimals=4)
tensor([4.7321, 0.0000, 1.2679])
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

from ..array_nodes import Array, floating, linear
from ..mirror import mirrors
from ..user_functions import bare, plain_setting
from .fourier_transforms import places, resized, unusual

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _weighted(x: Array, entries: tuple[int, ...], axis: int, factor: float) -> Array:
    """A copy in which these entries along an axis are multiplied by a factor."""
    out = np.array(x)
    for entry in entries:
        place: Any = (..., entry, *[slice(None)] * (-1 - axis))
        out[place] *= factor
    return out


def _adjoint_along(g: Array, family: str, kind: int, axis: int, norm: Any, orthogonal: bool) -> Array:
    """The adjoint of the transform of one axis: the orthogonal form of the other type, and the factors sqrt(2)."""
    ends = () if orthogonal else _ENDS[family].get(kind, ())
    root = math.sqrt(2)
    before, after = {1: (root, 1 / root), 2: (root, 1.0), 3: (1.0, 1 / root)}.get(kind, (1.0, 1.0))
    g = _weighted(g, ends, axis, before)
    call = getattr(scipy.fft, family)
    given = {"type": _INVERSE[kind], "axis": axis, "norm": norm, "orthogonalize": True}
    g = call(g.real, **given) + 1j * call(g.imag, **given) if g.dtype.kind == "c" else call(g, **given)
    return _weighted(g, ends, axis, after)


_ENDS: dict[str, dict[int, tuple[int, ...]]] = {"dct": {1: (0, -1), 2: (0,), 3: (0,)}, "dst": {2: (-1,), 3: (-1,)}}


def _transform(name: str, x: Any, kind: Any, s: Any, axes: Any, settings: dict[str, Any]) -> Any:
    kind, s, axes = plain_setting(f"fft.{name}", type=kind, s=s, axes=axes)
    x = floating(x)
    one, family = name[-1] != "n", "dct" if "dct" in name else "dst"
    where = places(x.ndim, s, axes)
    call = functools.partial(getattr(scipy.fft, name), type=kind, **settings)
    given = {"n": s, "axis": where[0]} if one else {"s": s, "axes": where}
    norm, orthogonal = settings["norm"], settings["orthogonalize"]
    if kind not in _INVERSE or norm not in _SWAPPED or unusual(x, where):
        call(bare(x), **({"n": s, "axis": axes} if one else {"s": s, "axes": axes}))  # raises
    if orthogonal is None or x.is_complex():  # of complex numbers SciPy (1.17) does not read orthogonalize
        orthogonal = norm == "ortho"
    if name.startswith("i"):
        kind, norm = _INVERSE[kind], _SWAPPED[norm]
    have = [x.shape[a] for a in where]

    def adjoint(g: Array) -> Array:
        for axis in where:
            g = _adjoint_along(g, family, kind, axis, norm, orthogonal)
        return resized(g, have, where)

    return linear(lambda a: call(a, **given), adjoint, x, batched=True)


def _entered(name: str, function: Callable[..., Any], over: str) -> Callable[..., Any]:
    what = f"{'inverse of the ' * name.startswith('i')}discrete {'cosine' if 'dct' in name else 'sine'} transform"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {what}, {over}, of the types 1 to 4. Its gradient is the adjoint: for the types 2 and 3 the other\n"
        "    of the two, up to factors at the ends. `overwrite_x` has no effect."
    )
    return mirrors(f"fft.{name}", derivative="the adjoint, a transform of the transposed type")(function)


def _along_one_axis(name: str) -> Callable[..., Any]:
    def transform(
        x: Any,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        settings = {"norm": norm, "workers": workers, "orthogonalize": orthogonalize}
        return _transform(name, x, type, n, axis, settings)

    return _entered(name, transform, "along one axis")


def _along_axes(name: str) -> Callable[..., Any]:
    def transform(
        x: Any,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        settings = {"norm": norm, "workers": workers, "orthogonalize": orthogonalize}
        return _transform(name, x, type, s, axes, settings)

    return _entered(name, transform, "along several axes")


dct, idct, dst, idst = map(_along_one_axis, ("dct", "idct", "dst", "idst"))
idctn, dstn, idstn = map(_along_axes, ("idctn", "dstn", "idstn"))


@mirrors("fft.dctn", derivative="the adjoint, a transform of the transposed type")
def dctn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Any:
    """The discrete cosine transform, along several axes, of the types 1 to 4; see `dct`.

    >>> import pullback
    >>> dctn(pullback.tensor([[1.0, 1.0]]))
    tensor([[8., 0.]])
    """
    settings = {"norm": norm, "workers": workers, "orthogonalize": orthogonalize}
    return _transform("dctn", x, type, s, axes, settings)

"""Fourier transforms of complex, real and Hermitian signals, as linear maps with their adjoints.

>>> import pullback
>>> from pullback.scipy import fft
>>> x = pullback.tensor([1.0, 2.0, 4.0, 8.0], requires_grad=True)
>>> fft.rfft(x).abs().square().sum().backward()
>>> x.grad
tensor([14., 28., 26., 52.])
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.fft

from ..array_nodes import Array, floating, linear
from ..mirror import mirrors
from ..user_functions import bare, plain_setting

_OTHER = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norm under which the inverse transform is the adjoint."""


def resized(x: Array, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """An array cut, or extended with zeros, to these sizes along these axes (negative numbers)."""
    for size, axis in zip(shape, axes, strict=True):
        have = x.shape[axis]
        if size < have:
            cut: Any = (..., slice(size), *[slice(None)] * (-1 - axis))
            x = x[cut]
        elif size > have:
            rest = [*x.shape]
            rest[axis] = size - have
            x = np.concatenate([x, np.zeros(rest, x.dtype)], axis=axis)
    return x


def places(ndim: int, s: Any, axes: Any) -> list[int]:
    """The axes of a transform, counted from the end."""
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(np.atleast_1d(s)), ndim)
    return [int(a) % ndim - ndim if -ndim <= a < ndim else int(a) for a in np.atleast_1d(axes)]


def unusual(x: Any, where: Sequence[int]) -> bool:
    """Whether SciPy has an error for the array and the axes: there is nothing to transform, or no such axis."""
    return x.ndim == 0 or not where or x.numel() == 0 or not all(-x.ndim <= a < 0 for a in where)


def _of_complex(inverse: Callable[..., Array], sizes: list[int], axes: list[int], norm: Any) -> Callable[..., Array]:
    return lambda g: inverse(g, axes=axes, norm=_OTHER[norm])


def _of_real(sizes: list[int], axes: list[int], norm: Any) -> Callable[..., Array]:
    """The frequencies that a real transform leaves out count as zeros."""
    n = sizes[-1]
    return lambda g: np.real(scipy.fft.ifftn(resized(g, [n], axes[-1:]), axes=axes, norm=_OTHER[norm]))


def _of_half(sizes: list[int], axes: list[int], norm: Any) -> Callable[..., Array]:
    """Each frequency counts twice, but for the first, and the last of an even number."""
    n = sizes[-1]
    weights = np.full(n // 2 + 1, 2.0)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    weights = weights.reshape((-1, *[1] * (-1 - axes[-1])))

    def adjoint(g: Array) -> Array:
        found = scipy.fft.rfftn(np.real(g), axes=axes, norm=_OTHER[norm])
        return found * weights.astype(found.real.dtype)

    return adjoint


_ADJOINTS: dict[str, Callable[..., Callable[..., Array]]] = {
    "fft": functools.partial(_of_complex, scipy.fft.ifftn),
    "ifft": functools.partial(_of_complex, scipy.fft.fftn),
    "rfft": _of_real,
    "irfft": _of_half,
}


def _transform(name: str, x: Any, s: Any, axes: Any, settings: dict[str, Any]) -> Any:
    """One of SciPy's transforms. The sizes are those of the result, except those of a real transform's argument."""
    kind, one = name.rstrip("2n"), name[-1] not in "2n"
    s, axes = plain_setting(f"fft.{name}", s=s, axes=axes)
    if kind in ("hfft", "ihfft"):
        return _hermitian(name, x, s, axes, settings)
    x = floating(x)
    call = getattr(scipy.fft, name)
    where = places(x.ndim, s, axes)
    given = {"n": s, "axis": where[0]} if one else {"s": s, "axes": where}
    if unusual(x, where) or settings["norm"] not in _OTHER:
        call(bare(x), **({"n": s, "axis": axes} if one else {"s": s, "axes": axes}), **settings)  # raises
    have = [x.shape[a] for a in where]
    sizes = have if s is None else [*map(int, np.atleast_1d(s))]
    if kind == "irfft" and s is None:
        sizes = [*have[:-1], 2 * (have[-1] - 1)]
    back = _ADJOINTS[kind](sizes, where, settings["norm"])
    return linear(
        lambda a: call(a, **given, **settings),
        lambda g: resized(back(g), have, where),
        x,
        batched=True,
    )


def _hermitian(name: str, x: Any, s: Any, axes: Any, settings: dict[str, Any]) -> Any:
    """``hfft(x) = irfft(conj(x))`` and ``ihfft(x) = conj(rfft(x))``, with the norm of the other direction."""
    other = settings | {"norm": _OTHER.get(settings["norm"], settings["norm"])}
    x = floating(x)
    if name.startswith("i"):
        return np.conj(_transform(name.replace("ihfft", "rfft"), x, s, axes, other))
    return _transform(name.replace("hfft", "irfft"), np.conj(x), s, axes, other)


# The public functions -------------------------------------------------------------------------------------------------

_WHAT = {
    "fft": "discrete Fourier transform",
    "ifft": "inverse of the discrete Fourier transform",
    "rfft": "discrete Fourier transform of a real signal, at the frequencies that are not negative",
    "irfft": "inverse of `rfft`",
    "hfft": "discrete Fourier transform of a signal with Hermitian symmetry; one half of it is given",
    "ihfft": "inverse of `hfft`",
}


def _entered(name: str, function: Callable[..., Any], over: str) -> Callable[..., Any]:
    kind = name.rstrip("2n")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {_WHAT[kind]}, {over}. Its gradient is the adjoint: the transform in the other direction, scaled by the\n"
        "    other norm, cut or extended to the argument's size. `overwrite_x` has no effect."
    )
    return mirrors(f"fft.{name}", derivative="the adjoint, a transform in the other direction")(function)


def _along_one_axis(name: str) -> Callable[..., Any]:
    def transform(
        x: Any,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Any:
        return _transform(name, x, n, axis, {"norm": norm, "workers": workers, "plan": plan})

    return _entered(name, transform, "along one axis")


def _along_two_axes(name: str) -> Callable[..., Any]:
    def transform(
        x: Any,
        s: Any = None,
        axes: Any = (-2, -1),
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Any:
        return _transform(name, x, s, axes, {"norm": norm, "workers": workers, "plan": plan})

    return _entered(name, transform, "along two axes")


def _along_axes(name: str) -> Callable[..., Any]:
    def transform(
        x: Any,
        s: Any = None,
        axes: Any = None,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Any:
        return _transform(name, x, s, axes, {"norm": norm, "workers": workers, "plan": plan})

    return _entered(name, transform, "along several axes")


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_one_axis, _WHAT)
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (_along_two_axes(f"{name}2") for name in _WHAT)
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = (_along_axes(f"{name}n") for name in _WHAT)


@mirrors("fft.fftshift", derivative="the opposite shift")
def fftshift(x: Any, axes: Any = None) -> Any:
    """The frequency zero moved to the middle.

    >>> import pullback
    >>> fftshift(pullback.tensor([0.0, 1.0, -1.0]))
    tensor([-1.,  0.,  1.])
    """
    return _shifted(x, axes, scipy.fft.fftshift, scipy.fft.ifftshift)


@mirrors("fft.ifftshift", derivative="the opposite shift")
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`.

    >>> import pullback
    >>> ifftshift(pullback.tensor([-1.0, 0.0, 1.0]))
    tensor([ 0.,  1., -1.])
    """
    return _shifted(x, axes, scipy.fft.ifftshift, scipy.fft.fftshift)


def _shifted(x: Any, axes: Any, there: Callable[..., Array], back: Callable[..., Array]) -> Any:
    x = floating(x)
    axes = places(x.ndim, None, axes)
    return linear(lambda a: there(a, axes), lambda g: back(g, axes), x, batched=True)


def _self_adjoint(apply: Callable[[Array], Array], x: Any) -> Any:
    return linear(apply, apply, x, batched=True)


@mirrors("fft.fht", derivative="the matrix is symmetric: the transform itself")
def fht(a: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Any:
    """The fast Hankel transform along the last axis (Hamilton 2000); its matrix is symmetric, hence its own adjoint.

    >>> import pullback
    >>> fht(pullback.tensor([1.0, 0.0, 0.0, 0.0]), 0.5, 0.5).shape
    pullback.Size([4])
    """
    settings = plain_setting("fft.fht", dln=dln, mu=mu, offset=offset, bias=bias)
    return _self_adjoint(lambda x: scipy.fft.fht(x, *settings), a)


@mirrors("fft.ifht", derivative="the matrix is symmetric: the transform itself")
def ifht(A: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Any:
    """The inverse of `fht`; its matrix is symmetric as well.

    >>> import pullback
    >>> ifht(pullback.tensor([1.0, 0.0, 0.0, 0.0]), 0.5, 0.5).shape
    pullback.Size([4])
    """
    settings = plain_setting("fft.ifht", dln=dln, mu=mu, offset=offset, bias=bias)
    return _self_adjoint(lambda x: scipy.fft.ifht(x, *settings), A)

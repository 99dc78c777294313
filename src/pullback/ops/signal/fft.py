"""Fourier transforms, as `torch.fft`: along one axis, two, or any number; of complex and of real signals.

All are built from three transforms along given axes, linear over the real numbers, and from `_resize`, which cuts a
signal off or pads it with zeros; its transpose does the same. With ``F`` the transform without a factor:

* `_c2c`, complex to complex. The adjoint of ``F`` is ``F^H``, the inverse transform without its factor 1/n.
* `_r2c`, real to the half of the spectrum that determines the rest. Its adjoint is the real part of ``F^H`` of a half
  spectrum with zeros for the rest; `_c2r` would count twice the frequencies that occur in both halves.
* `_c2r`, from that half to real. It counts each of those frequencies twice, and so does its adjoint.

A factor is the same in both directions, so ``norm="backward"`` in one direction is ``"forward"`` in the other.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...table.calls import on
from ...table.entry import composite, linear
from ...table.samples import A, S, Sample
from ...tensor import dtypes
from ...tensor.arrays import beside, counted, own_axis, zeros_beside
from ...tensor.tensor import Tensor
from ..elementwise.complex import conj
from ..make.conversion import to
from ..make.of_size import factory, or_default, sizes_of
from ..make.random import need_kind
from ..shape.rearranging import roll

_NORMS = ("backward", "ortho", "forward")  # they divide a transform to frequencies by 1, sqrt(n), n
_TURNED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}

# The transforms -------------------------------------------------------------------------------------------------------


@functools.cache
def _library() -> Any:
    """SciPy's transforms if it is installed, else NumPy's: SciPy takes several rows at once, in a third of the time."""
    try:
        import scipy.fft
    except ImportError:
        return np.fft
    return scipy.fft


def _library_for(input: Any) -> Any:
    """The library that transforms a payload: NumPy's functions hand on what is no array."""
    return _library() if type(input) is np.ndarray else np.fft


def _resize_rule(g: Any, dims: Any, input_shape: Any) -> Any:
    return on(_resize, g, dims, tuple(input_shape[d] for d in dims))


@linear(method=False, batch=dims("dims"), input=_resize_rule)
def _resize(input: Any, dims: Any, sizes: Any) -> Any:
    """`input` cut or padded with zeros to these sizes along axes; the transpose resizes it back."""
    shape = list(input.shape)
    for dim, size in zip(dims, sizes, strict=True):
        shape[dim] = size
    common = tuple(slice(min(n, m)) for n, m in zip(shape, input.shape, strict=True))
    out = zeros_beside(input, tuple(shape))
    out[common] = input[common]
    return out


@linear(
    method=False,
    node="FftC2CBackward0",
    saved={
        "forward": lambda inverse: not inverse,
        "normalization": lambda norm, inverse: _NORMS.index(_TURNED[norm] if inverse else norm),
    },
    batch=dims("dims"),
    numbers="norm",
    input=lambda g, dims, norm, inverse: on(_c2c, g, dims, _TURNED[norm], not inverse),
)
def _c2c(input: Any, dims: Any, norm: Any, inverse: bool) -> Any:
    library = _library_for(input)
    if len(dims) == 1:  # twice as fast for short signals
        return (library.ifft if inverse else library.fft)(input, axis=dims[0], norm=norm)
    return (library.ifftn if inverse else library.fftn)(input, axes=dims, norm=norm)


def _weighted(spectrum: Any, dim: int, n: int, inner: float) -> Any:
    """A half spectrum of a signal of length `n`, with the frequencies of both halves multiplied by `inner`."""
    weights = np.full(n // 2 + 1, inner, np.float32)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return np.multiply(spectrum, beside(spectrum, np.reshape(weights, (-1,) + (1,) * (spectrum.ndim - 1 - dim))))


def _r2c_rule(g: Any, dims: Any, norm: str, input_shape: Any) -> Any:
    n = input_shape[dims[-1]]
    return on(_c2r, _weighted(g, dims[-1], n, 0.5), dims, _TURNED[norm], n)


@linear(
    method=False,
    node="FftR2CBackward0",
    saved={"normalization": lambda norm: _NORMS.index(norm), "onesided": lambda: True},
    batch=dims("dims"),
    numbers="norm",
    input=_r2c_rule,
)
def _r2c(input: Any, dims: Any, norm: Any) -> Any:
    """Half the spectrum along the last of `dims`, all of it along the others."""
    if len(dims) == 1:
        return _library_for(input).rfft(input, axis=dims[0], norm=norm)
    return _library_for(input).rfftn(input, axes=dims, norm=norm)


@linear(
    method=False,
    node="FftC2RBackward0",
    saved={"normalization": lambda norm: _NORMS.index(_TURNED[norm])},
    batch=dims("dims"),
    numbers="norm",
    input=lambda g, dims, norm, n: _weighted(on(_r2c, g, dims, _TURNED[norm]), dims[-1], n, 2.0),
)
def _c2r(input: Any, dims: Any, norm: Any, n: int) -> Any:
    """The real signal, of length `n` along the last of `dims`, of a half spectrum."""
    if len(dims) == 1:
        return _library_for(input).irfft(input, n, dims[0], norm)
    return _library_for(input).irfftn(input, [*(input.shape[d] for d in dims[:-1]), n], dims, norm)


# Arguments ------------------------------------------------------------------------------------------------------------


def _norm(norm: Any, turned: bool = False) -> str:
    found = "backward" if norm is None else norm
    if found not in _NORMS:
        raise RuntimeError(
            errors.message(f"Invalid normalization mode: {norm!r}", expected="'forward', 'backward' or 'ortho'")
        )
    return _TURNED[found] if turned else found


def _whole(name: str, values: Any) -> tuple[int, ...]:
    """An integer, or a sequence of them, as a tuple."""
    found = values if isinstance(values, (tuple, list)) else (values,)
    if any(isinstance(v, (float, str, bool)) or not hasattr(v, "__index__") for v in found):
        raise TypeError(errors.message(name, expected="an integer, or a tuple of integers", found=repr(values)))
    return tuple(v.__index__() for v in found)


def _axes(input: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The axes to transform, and their lengths (None: all unchanged; -1: that one unchanged)."""
    ndim = input._data.ndim
    sizes = None if s is None else _whole("s", s)
    if dim is None:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise RuntimeError(
                errors.message(f"s has {count} lengths, but the tensor only has {ndim} dimensions", found=str(s))
            )
        return tuple(range(ndim - count, ndim)), sizes
    given = _whole("dim", dim)
    axes = tuple(own_axis(d, ndim) for d in given)
    if len(set(axes)) != len(axes):
        raise RuntimeError(errors.message("FFT dims must be unique", found=str(dim)))
    if sizes is not None and len(sizes) != len(axes):
        raise RuntimeError(
            errors.message("When given, dim and shape s must have the same length", found=f"{dim} and {s}")
        )
    return axes, sizes


def _fitted(input: Tensor, axes: tuple[int, ...], sizes: tuple[int, ...] | None) -> Tensor:
    """The signal with these lengths along these axes; RuntimeError for a length of 0 or less."""
    shape = input._data.shape
    found = tuple(shape[a] if n == -1 else n for a, n in zip(axes, sizes or [-1] * len(axes), strict=True))
    _check_lengths(found)
    return input if found == tuple(shape[a] for a in axes) else _resize(input, axes, found)


def _check_lengths(found: tuple[int, ...]) -> None:
    if any(n < 1 for n in found):
        raise RuntimeError(
            errors.message(
                f"Invalid number of data points ({next(n for n in found if n < 1)}) specified",
                expected="at least one along each axis",
                found=f"lengths {list(found)}",
            )
        )


def _signal(name: str, input: Tensor, real: bool = False) -> Tensor:
    """The input with a dtype that can be transformed; integers become the default floating type."""
    dtype = input._data.dtype
    if dtype.kind in "biu":
        return to(input, dtypes.default())
    if dtype.itemsize < 4 or (real and dtype.kind == "c"):
        what = f"Unsupported dtype {dtype} for {name}()"
        if dtype.kind == "c":
            what = f"{name} expects a real{'-valued' if name[-1] == 'n' else ''} input tensor"
        wanted = "float32 or float64" if real else "float32, float64 or complex numbers"
        raise RuntimeError(errors.message(what, expected=wanted, found=errors.describe(input)))
    return input


def _complex(name: str, input: Tensor) -> Tensor:
    found = _signal(name, input)
    return to(found, dtypes.complex_of(found._data.dtype))


# Over any axes
# ----------------------------------------------------------------------------------------------------------


def _transform(name: str, input: Tensor, s: Any, dim: Any, norm: Any, inverse: bool) -> Tensor:
    input, scale = _signal(name, input), _norm(norm)
    axes, sizes = _axes(input, s, dim)
    if not axes:
        return to(input, dtypes.complex_of(input._data.dtype), copy=True)
    return _c2c(_fitted(input, axes, sizes), axes, scale, inverse)


def _of_real(name: str, input: Tensor, s: Any, dim: Any, norm: str) -> Tensor:
    input = _signal(name, input, real=True)
    axes, sizes = _axes(input, s, dim)
    _need_axis(name, axes)
    return _r2c(_fitted(input, axes, sizes), axes, norm)


def _to_real(name: str, input: Tensor, s: Any, dim: Any, norm: str) -> Tensor:
    axes, sizes = _axes(input, s, dim)
    _need_axis(name, axes)
    n = -1 if sizes is None else sizes[-1]
    n = 2 * (input._data.shape[axes[-1]] - 1) if n == -1 else n
    _check_lengths((n,))
    halved = _fitted(input, axes, (*(sizes[:-1] if sizes else [-1] * (len(axes) - 1)), n // 2 + 1))
    return _c2r(halved, axes, norm, n)


def _need_axis(name: str, axes: tuple[int, ...]) -> None:
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")


def _samples() -> list[Sample]:
    return [
        *(S(A(2, 3, 4), norm=norm) for norm in ("backward", "ortho", "forward")),
        S(A(2, 3)),
        S(A(3)),
        S(A(1, 2)),
        S(A(2, 3), (3, 4)),
        S(A(2, 4), (1, 5)),
        S(A(3, 5), [3, 3], norm="ortho"),
        S(A(2, 5), (-1, 4)),
        S(A(3, 4), (2, -1)),
        S(A(2, 3, 4), dim=(0, 2)),
        S(A(2, 3, 4), dim=(2, 0), norm="forward"),
        S(A(2, 3, 4), (3, 3), (0, -1)),
        S(A(2, 3), None, 0),
        S(A(3, 2, layout="T")),
        S(A(3, 4, layout="step"), dim=(1,)),
        S(A(2, 3, layout="readonly"), s=(2, 2), dim=(0, 1), norm="ortho"),
    ]


_BAD_N = [
    S(A(2, 3), (0, 2)),
    S(A(2, 3), (1, 2, 3)),
    S(A(2, 3), (2, 2), (0,)),
    S(A(2, 3), dim=(0, 0)),
    S(A(2, 3), dim=(0, -2)),
    S(A(2, 3), dim=2),
    S(A(2, 3), norm="bad"),
    S(A(2, 3), "a"),
    S(A(2, 3), (2.5, 2)),
    S(A(2, 3), dim="a"),
    S(A(2, 0)),
    S([1.0]),
    S(),
    S(A(2, 2, dtype="float16")),
    S(A(2), nonsense=1),
]


def _samples_n() -> list[Sample]:
    return [*_samples(), S(A(2, 3, 4), (2, 5)), S(A(2, 3), 4), S(A(2, 3), dim=1), S(A(2, 3), 2, 0)]


def _samples_2() -> list[Sample]:
    return [s for s in _samples() if s.args[0].shape != (3,)]


_MORE_N = [S(A()), S(A(2, 3), dim=()), S(A(), dim=())]
_NO_AXIS = [*_BAD_N, S(A()), S(A(2, 3), dim=())]


@composite(
    home="fft",
    samples=lambda: [*_samples_n(), *_MORE_N],
    refused=_BAD_N,
    numpy={np.fft.fftn: lambda a, s=None, axes=None, norm=None, out=None: fftn(a, s, axes, norm, out=out)},
)
def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: Any = None) -> Tensor:
    """The discrete Fourier transform along `dim` (None: all axes, or the last ``len(s)``), cut or padded to `s`.

    norm: where its factor goes: "backward" (the default) in the inverse, "forward" here, "ortho" its root in both.

    >>> import pullback
    >>> pullback.fft.fftn(pullback.ones(2, 2)).real
    tensor([[4., 0.],
            [0., 0.]])
    """
    return _transform("fftn", input, s, dim, norm, False)


@composite(
    home="fft",
    samples=lambda: [*_samples_n(), *_MORE_N],
    refused=_BAD_N,
    numpy={np.fft.ifftn: lambda a, s=None, axes=None, norm=None, out=None: ifftn(a, s, axes, norm, out=out)},
)
def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: Any = None) -> Tensor:
    """The inverse of `fftn`."""
    return _transform("ifftn", input, s, dim, norm, True)


@composite(
    home="fft",
    samples=_samples_n,
    refused=[*_NO_AXIS, S(A(2, dtype="complex64"))],
    numpy={np.fft.rfftn: lambda a, s=None, axes=None, norm=None, out=None: rfftn(a, s, axes, norm, out=out)},
)
def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: Any = None) -> Tensor:
    """`fftn` of a real tensor: only the half along the last axis that determines the rest."""
    return _of_real("rfftn", input, s, dim, _norm(norm))


@composite(
    home="fft",
    samples=lambda: [s for s in _samples_n() if s.args[0].shape != (3, 2)],
    refused=[*_NO_AXIS, S(A(2, 1))],
    numpy={np.fft.irfftn: lambda a, s=None, axes=None, norm=None, out=None: irfftn(a, s, axes, norm, out=out)},
)
def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: Any = None) -> Tensor:
    """The inverse of `rfftn`: a real tensor, along the last axis of length ``s[-1]`` (``2 * (n - 1)`` for None)."""
    return _to_real("irfftn", _complex("irfftn", input), s, dim, _norm(norm))


@composite(home="fft", samples=_samples_n, refused=_NO_AXIS)
def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: Any = None) -> Tensor:
    """`fftn` of a signal that is Hermitian along the last axis, given by half of it: a real tensor."""
    return _to_real("hfftn", conj(_complex("hfftn", input)), s, dim, _norm(norm, turned=True))


@composite(home="fft", samples=_samples_n, refused=[*_NO_AXIS, S(A(2, dtype="complex64"))])
def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: Any = None) -> Tensor:
    """The inverse of `hfftn`, of a real tensor."""
    return conj(_of_real("ihfftn", input, s, dim, _norm(norm, turned=True)))


# Over two axes
# ----------------------------------------------------------------------------------------------------------


@composite(
    home="fft",
    samples=lambda: [*_samples_2(), *_MORE_N[1:]],
    refused=[*_BAD_N, S(A(3))],
    numpy={np.fft.fft2: lambda a, s=None, axes=(-2, -1), norm=None, out=None: fft2(a, s, axes, norm, out=out)},
)
def fft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Tensor:
    """`fftn` along the last two axes, or those of `dim`."""
    return _transform("fft2", input, s, dim, norm, False)


@composite(
    home="fft",
    samples=lambda: [*_samples_2(), *_MORE_N[1:]],
    refused=[*_BAD_N, S(A(3))],
    numpy={np.fft.ifft2: lambda a, s=None, axes=(-2, -1), norm=None, out=None: ifft2(a, s, axes, norm, out=out)},
)
def ifft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Tensor:
    """The inverse of `fft2`."""
    return _transform("ifft2", input, s, dim, norm, True)


@composite(
    home="fft",
    samples=_samples_2,
    refused=[*_NO_AXIS, S(A(3)), S(A(2, 2, dtype="complex64"))],
    numpy={np.fft.rfft2: lambda a, s=None, axes=(-2, -1), norm=None, out=None: rfft2(a, s, axes, norm, out=out)},
)
def rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Tensor:
    """`rfftn` along the last two axes, or those of `dim`."""
    return _of_real("rfft2", input, s, dim, _norm(norm))


@composite(
    home="fft",
    samples=_samples_2,
    refused=[*_NO_AXIS, S(A(3)), S(A(2, 1))],
    numpy={np.fft.irfft2: lambda a, s=None, axes=(-2, -1), norm=None, out=None: irfft2(a, s, axes, norm, out=out)},
)
def irfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Tensor:
    """`irfftn` along the last two axes, or those of `dim`."""
    return _to_real("irfft2", _complex("irfft2", input), s, dim, _norm(norm))


@composite(home="fft", samples=_samples_2, refused=[*_NO_AXIS, S(A(3))])
def hfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Tensor:
    """`hfftn` along the last two axes, or those of `dim`."""
    return _to_real("hfft2", conj(_complex("hfft2", input)), s, dim, _norm(norm, turned=True))


@composite(home="fft", samples=_samples_2, refused=[*_NO_AXIS, S(A(3)), S(A(2, 2, dtype="complex64"))])
def ihfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Tensor:
    """`ihfftn` along the last two axes, or those of `dim`."""
    return conj(_of_real("ihfft2", input, s, dim, _norm(norm, turned=True)))


# Over one axis
# ----------------------------------------------------------------------------------------------------------


def _one(n: Any) -> Any:
    if n is not None and (isinstance(n, (float, str, tuple, list)) or not hasattr(n, "__index__")):
        raise TypeError(errors.message("n", expected="an integer", found=errors.describe(n)))
    if n == -1:  # -1 leaves an axis unchanged only in transforms of several axes
        _check_lengths((n,))
    return None if n is None else (n,)


def _samples_1() -> list[Sample]:
    return [
        *(S(A(n)) for n in (2, 3, 4, 5)),
        *(S(A(2, 5), norm=norm) for norm in ("backward", "ortho", "forward", None)),
        *(S(A(2, 4), n) for n in (1, 2, 3, 5, 6, 7)),
        *(S(A(3, 4), n, 0, "forward") for n in (2, 3, 5)),
        S(A(2, 3, 4), dim=1),
        S(A(2, 3, 4), 4, -2, "ortho"),
        S(A(3, 2, layout="T"), 4),
        S(A(3, 4, layout="step"), dim=0),
        S(A(2, 3, layout="readonly"), n=2, dim=-1, norm="ortho"),
    ]


_BAD_1 = [
    S(A()),
    S(A(0)),
    S(A(2, 0)),
    *(S(A(3), n) for n in (0, -1, 2.5, "a", (3,))),
    *(S(A(3), dim=d) for d in (1, -2, "a", 0.5)),
    S(A(3), norm="bad"),
    S([1.0]),
    S(),
    S(A(3, dtype="float16")),
    S(A(2), nonsense=1),
]


@composite(
    home="fft",
    samples=lambda: [*_samples_1(), S(A(1)), S(A(2, 1))],
    refused=_BAD_1,
    numpy={np.fft.fft: lambda a, n=None, axis=-1, norm=None, out=None: fft(a, n, axis, norm, out=out)},
)
def fft(input: Tensor, n: Any = None, dim: Any = -1, norm: Any = None) -> Tensor:
    """``X[k] = sum_j x[j] exp(-2 pi i j k / n)``: the discrete Fourier transform, of the input cut or padded to `n`.

    norm: where its factor 1/n goes: "backward" (the default) in the inverse, "forward" here, "ortho" its root in both.
    The result is complex64 for float32. RuntimeError for float16, and if there is nothing to transform.

    >>> import pullback
    >>> pullback.fft.fft(pullback.tensor([1.0, 0.0, -1.0, 0.0])).real
    tensor([0., 2., 0., 2.])
    """
    return _transform("fft", input, _one(n), dim, norm, False)


@composite(
    home="fft",
    samples=lambda: [*_samples_1(), S(A(1)), S(A(2, 1))],
    refused=_BAD_1,
    numpy={np.fft.ifft: lambda a, n=None, axis=-1, norm=None, out=None: ifft(a, n, axis, norm, out=out)},
)
def ifft(input: Tensor, n: Any = None, dim: Any = -1, norm: Any = None) -> Tensor:
    """The inverse of `fft`."""
    return _transform("ifft", input, _one(n), dim, norm, True)


@composite(
    home="fft",
    samples=lambda: [*_samples_1(), S(A(1)), S(A(2, 1))],
    refused=[*_BAD_1, S(A(3, dtype="complex64"))],
    numpy={np.fft.rfft: lambda a, n=None, axis=-1, norm=None, out=None: rfft(a, n, axis, norm, out=out)},
)
def rfft(input: Tensor, n: Any = None, dim: Any = -1, norm: Any = None) -> Tensor:
    """`fft` of a real tensor: only its first ``n // 2 + 1`` frequencies; the rest are their conjugates."""
    return _of_real("rfft", input, _one(n), dim, _norm(norm))


@composite(
    home="fft",
    samples=lambda: [*_samples_1(), S(A(1), 1), S(A(2, 1), 3)],
    refused=[*_BAD_1, S(A(1))],
    numpy={np.fft.irfft: lambda a, n=None, axis=-1, norm=None, out=None: irfft(a, n, axis, norm, out=out)},
)
def irfft(input: Tensor, n: Any = None, dim: Any = -1, norm: Any = None) -> Tensor:
    """The inverse of `rfft`: a real tensor of length `n`, which is ``2 * (m - 1)`` for None.

    The imaginary part of the first frequency is ignored, and for an even `n` that of the last.
    """
    return _to_real("irfft", _complex("irfft", input), _one(n), dim, _norm(norm))


@composite(
    home="fft",
    samples=lambda: [*_samples_1(), S(A(1), 1), S(A(2, 1), 3)],
    refused=[*_BAD_1, S(A(1))],
    numpy={np.fft.hfft: lambda a, n=None, axis=-1, norm=None, out=None: hfft(a, n, axis, norm, out=out)},
)
def hfft(input: Tensor, n: Any = None, dim: Any = -1, norm: Any = None) -> Tensor:
    """`fft` of a Hermitian signal, given by its first half: a real tensor of length `n` (``2 * (m - 1)`` for None)."""
    return _to_real("hfft", conj(_complex("hfft", input)), _one(n), dim, _norm(norm, turned=True))


@composite(
    home="fft",
    samples=lambda: [*_samples_1(), S(A(1)), S(A(2, 1))],
    refused=[*_BAD_1, S(A(3, dtype="complex64"))],
    numpy={np.fft.ihfft: lambda a, n=None, axis=-1, norm=None, out=None: ihfft(a, n, axis, norm, out=out)},
)
def ihfft(input: Tensor, n: Any = None, dim: Any = -1, norm: Any = None) -> Tensor:
    """The inverse of `hfft`, of a real tensor."""
    return conj(_of_real("ihfft", input, _one(n), dim, _norm(norm, turned=True)))


# Frequencies ----------------------------------------------------------------------------------------------------------


def _frequencies(name: str, numbers: Any, n: int, d: Any, dtype: np.dtype[Any]) -> Any:
    need_kind(name, dtype, "fVc", RuntimeError)
    need_kind(name, dtype, "fV")
    with np.errstate(all="ignore"):
        return (numbers.astype(np.float64) * (np.float64(1) / (n * d))).astype(dtype)


@functools.partial(factory, home="fft")
def fftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None) -> Any:
    """The frequencies of the results of `fft` of length `n`, for samples `d` apart: 0, 1, ..., -2, -1 over ``n d``.

    >>> import pullback
    >>> pullback.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    (n,) = sizes_of((n,))
    numbers = counted(n)
    return _frequencies("fftfreq", np.where(numbers < (n + 1) // 2, numbers, numbers - n), n, d, or_default(dtype))


@functools.partial(factory, home="fft")
def rfftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None) -> Any:
    """The frequencies of the results of `rfft` of length `n`, for samples `d` apart: 0, 1, ... over ``n d``."""
    (n,) = sizes_of((n,))
    return _frequencies("rfftfreq", counted(n // 2 + 1), n, d, or_default(dtype))


def _shifted(input: Tensor, dim: Any, back: bool) -> Tensor:
    axes = tuple(range(input._data.ndim)) if dim is None else _whole("dim", dim)
    if not axes:
        raise RuntimeError(errors.message("fftshift()", expected="at least one axis", found="none"))
    lengths = [input._data.shape[own_axis(a, input._data.ndim)] for a in axes]
    return roll(input, tuple((n + 1) // 2 if back else n // 2 for n in lengths), axes)


def _numpy_shift(shift: Any, x: Any, axes: Any) -> Any:
    """numpy.fft.fftshift or ifftshift: without an axis a copy."""
    return np.copy(x) if isinstance(axes, (tuple, list)) and not axes else shift(x, axes)


_SHIFTS = [S(A(n)) for n in (0, 1, 4, 5)] + [S(A(2, 3), *d) for d in ((), (0,), (-1,), ((1,),), ((0, 1),), ([0, 0],))]
_NO_SHIFTS = [S(A()), S(A(2), 1), S(A(2), "a"), S(A(2), dim=()), S([1.0]), S(A(2), nonsense=1)]


@composite(
    out=False,
    home="fft",
    samples=lambda: [*_SHIFTS, S(A(3, 2, layout="T"), dim=1)],
    refused=_NO_SHIFTS,
    numpy={np.fft.fftshift: lambda x, axes=None: _numpy_shift(fftshift, x, axes)},
)
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """A spectrum with the frequency 0 moved from the front to the middle, along `dim` (None: all axes).

    >>> import pullback
    >>> pullback.fft.fftshift(pullback.tensor([0, 1, -2, -1]))
    tensor([-2, -1,  0,  1])
    """
    return _shifted(input, dim, False)


@composite(
    out=False,
    home="fft",
    samples=lambda: [*_SHIFTS, S(A(3, 2, layout="T"), dim=1)],
    refused=_NO_SHIFTS,
    numpy={np.fft.ifftshift: lambda x, axes=None: _numpy_shift(ifftshift, x, axes)},
)
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(input, dim, True)

"""Complex numbers: taking their parts, and making them from parts.

Taking a part is linear over the real numbers, not over the complex ones, so each entry states its own adjoint. The
gradient of a real loss by ``z = x + iy`` is ``dL/dx + i dL/dy``, as in torch. Conjugates are computed at once: no
tensor is marked for a later conjugation or negation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by, unchanged
from ...table.calls import on
from ...table.entry import METHODS, composite, elementwise, linear, method, special, titled
from ...table.operands import Operation, is_complex, plain, somewhere
from ...table.samples import EDGES, NO_UNARY, A, S, V, unary, whole
from ...tensor import dtypes
from ...tensor.arrays import empty_beside, in_order
from ...tensor.protocol import is_foreign, on_arrays
from ...tensor.tensor import NUMPY, Tensor
from .analysis import cos, rad2deg, sin

_COMPLEX = [S(V([0j, 1 + 2j, -3j], "complex128")), S(V([[1 + 2j], [0.5j]], "complex64"))]


@linear(
    node="SelectBackward0",
    saved={"index": lambda: 0},
    method=False,
    view=True,
    batch="leading",
    input=lambda g: g,
)
def _real(input: Any) -> Any:
    return np.real(input)


@composite(
    numpy={np.real: lambda val: real(val)},
    method=False,
    out=False,
    samples=lambda: [*unary(), *_COMPLEX],
    refused=NO_UNARY,
)
def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor itself."""
    return _real(input) if input.is_complex() else input


@linear(
    node="SelectBackward0",
    saved={"index": lambda: 1},
    numpy={np.imag: lambda val: imag(val) if val.is_complex() else np.zeros_like(val)},
    method=False,
    out=False,
    view=True,
    batch="leading",
    input=lambda g: on(complex, np.zeros_like(g), g),
    samples=lambda: [*unary(), *_COMPLEX],
    refused=NO_UNARY,
)
def imag(input: Any) -> Any:
    """The imaginary part, a view."""
    if input.dtype.kind != "c":
        raise RuntimeError(
            errors.message("imag is not implemented for tensors with non-complex dtypes", found=errors.describe(input))
        )
    return np.imag(input)


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value)


METHODS["real"] = property(real, _set_real)
METHODS["imag"] = property(imag, _set_imag)


@linear(method=False, batch="leading", input=lambda g: on(_conj, g))
def _conj(input: Any) -> Any:
    return np.conj(input)


@composite(
    numpy={np.conjugate: lambda x: _conj(x) if x.is_complex() else x.clone()},
    out=False,
    samples=lambda: [*unary(), *_COMPLEX],
    refused=NO_UNARY,
)
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, in new memory; a real tensor is returned unchanged."""
    return _conj(input) if input.is_complex() else input


@method("conjugate", named=True)
def _conjugate(self: Tensor) -> Tensor:
    """The complex conjugate, as of NumPy's arrays: `conj`."""
    return conj(self)


@composite(inplace=True, out="exact", samples=lambda: [*unary(), *_COMPLEX], refused=NO_UNARY)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate, as `conj`."""
    return titled(_conj, "ConjPhysicalBackward0")(input) if input.is_complex() else input


@composite(samples=lambda: [*unary(), *_COMPLEX], out=False, refused=NO_UNARY)
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once."""
    return input


@composite(samples=lambda: [*unary(), *_COMPLEX], out=False, refused=NO_UNARY)
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negatives are computed at once."""
    return input


# Size and angle
def _angle(input: Any) -> Any:
    if input.dtype.kind == "c":
        return in_order(np.arctan2(np.imag(input), np.real(input)))
    found = np.multiply(np.less(input, 0), input.dtype.type(np.pi))
    nan = np.isnan(input)
    return np.where(nan, input, found) if somewhere(nan) else found


def _angle_rule(g: Any, input: Any) -> Any:
    if not is_complex(input):
        return np.zeros_like(g)
    # the angle changes by Im(conj(z) dz) / |z|**2
    size = np.square(np.real(input)) + np.square(np.imag(input))
    return g * (on(complex, -np.imag(input), np.real(input)) / np.where(np.equal(plain(size), 0), 1, size))


angle: Operation = elementwise(
    "angle",
    _angle,
    "The angle of a complex number, from -pi to pi; for a real number 0, or pi below 0. Its derivative at 0 is 0.",
    floats=True,
    inplace=False,
    holomorphic=False,
    numpy={np.angle: lambda z, deg=False: rad2deg(angle(z)) if deg else angle(z)},
    input=_angle_rule,
    samples=lambda: [*unary(), *_COMPLEX[1:]],
    kinks=[S(V(EDGES)), S(V([0j, 1j], "complex128"))],
)


# Complex numbers from real numbers
def _complex_jvp(tangents: Any, real: Any, imag: Any) -> Any:
    parts = (np.zeros_like(part) if t is None else t for t, part in zip(tangents, (real, imag), strict=True))
    return on(complex, *parts)


_PARTS = [
    S(A(2, 3, domain="positive"), A(2, 3)),
    S(A(domain="positive"), A()),
    S(A(2, 3, domain="positive"), A(3)),
    S(A(3, domain="positive"), A(2, 1)),
    S(A(0), A(1)),
    S(A(3, 2, domain="positive", layout="T"), A(3, 2, layout="step")),
]
_NO_PARTS = [
    S(A(2), A(3)),
    S(A(2)),
    S(A(2), 1.0),
    S([1.0], A(1)),
    S(A(2), A(2, dtype="float64")),
    S(V([1, 2], "int64"), V([1, 2], "int64")),
    S(A(2, dtype="complex64"), A(2, dtype="complex64")),
]


def _check_parts(name: str, *parts: Any) -> None:
    for part in parts:
        if not hasattr(part, "size"):
            raise TypeError(errors.message(f"{name}()", expected="two Tensors", found=errors.describe(part)))
    first, second = (dtypes.to_numpy(part.dtype) for part in parts)
    if first != second or first.char not in "fd":
        one = {first.char, second.char} <= {"f", "d"}
        raise RuntimeError(
            errors.message(
                f"{name}()" if one else f"{name}(): Expected both inputs to be Half, Float or Double tensors",
                expected="two tensors, both of float32 or both of float64 (NumPy has no complex32)",
                found=f"{first} and {second}",
                do="convert them with .to(dtype)",
            )
        )


@special(
    method=False,
    batch="leading",
    out="exact",
    real=lambda g: np.real(g),
    imag=lambda g: np.imag(g),
    jvp=_complex_jvp,
    samples=_PARTS,
    refused=_NO_PARTS,
)
@on_arrays
def complex(real: Any, imag: Any) -> Any:
    """``real + i imag`` from two tensors of float32 (gives complex64) or float64 (complex128).

    >>> import pullback
    >>> pullback.complex(pullback.tensor([1.0, 0.0]), pullback.tensor([0.0, 2.0]))
    tensor([1.+0.j, 0.+2.j])
    """
    _check_parts("complex", real, imag)
    dtype = dtypes.complex_of(real.dtype)
    out = empty_beside(real, np.broadcast_shapes(real.shape, imag.shape), dtype)
    out.real[...], out.imag[...] = real, imag
    return out


@composite(method=False, out="exact", samples=_PARTS, refused=_NO_PARTS)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """``abs * exp(i angle)``: the complex number of that size and angle."""
    _check_parts("polar", abs, angle)
    return complex(abs * cos(angle), abs * sin(angle))


def _pairs_rule(g: Any) -> Any:
    if type(g) is np.ndarray and g.flags.c_contiguous:  # without new memory
        return on(view_as_complex, g)
    return on(complex, g[..., 0], g[..., 1])


@linear(
    method=False,
    out=False,
    view=True,
    batch="leading",
    input=_pairs_rule,
    samples=lambda: [*whole(), *_COMPLEX],
    refused=[*NO_UNARY, S(A(2))],
)
def view_as_real(input: Any) -> Any:
    """The real and imaginary parts along a new last axis, a view.

    >>> import pullback
    >>> pullback.view_as_real(pullback.tensor([1 + 2j, 3.0]))
    tensor([[1., 2.],
            [3., 0.]])
    """
    if input.dtype.kind != "c":
        found = errors.describe(input)
        raise RuntimeError(errors.message("view_as_real is only supported for complex tensors", found=found))
    return np.expand_dims(input, -1).view(dtypes.real_of(input.dtype))


@linear(
    method=False,
    out=False,
    view=True,
    batch=by(unchanged),
    input=lambda g: on(view_as_real, g),
    samples=[S(A(2)), S(A(3, 2)), S(A(2, 3, 2)), S(A(0, 2)), S(A(3, 2, layout="readonly"))],
    refused=[
        *NO_UNARY,
        S(A()),
        S(A(3)),
        S(A(2, 3)),
        S(A(2, 2, layout="T")),
        S(A(2, layout="step")),
        S(V([1, 2], "int64")),
    ],
)
@on_arrays
def view_as_complex(input: Any) -> Any:
    """Pairs of real numbers as complex ones, a view; a pair lies along a last axis of length 2."""
    if not input.ndim:
        raise RuntimeError("view_as_complex(): Input tensor must have one or more dimensions")
    if input.shape[-1] != 2 or input.dtype.char not in "fd":
        raise RuntimeError(
            errors.message(
                "view_as_complex(): Tensor must have a last dimension of size 2, of float32 or float64",
                found=errors.describe(input),
            )
        )
    whole = 2 * input.itemsize
    if not input.size:  # an empty array has no strides to speak of
        return (
            np.copy(input[..., 0]).astype(dtypes.complex_of(input.dtype))
            if is_foreign(input)
            else np.ndarray(input.shape[:-1], dtypes.complex_of(input.dtype), input)
        )
    if input.strides[-1] != input.itemsize or any(
        s % whole for s, n in zip(input.strides[:-1], input.shape, strict=False) if n > 1
    ):
        raise RuntimeError(
            errors.message(
                "view_as_complex(): Tensor must have a last dimension with stride 1, and Tensor must have a stride "
                "divisible by 2 for all but last dimension",
                found=f"strides {tuple(s // input.itemsize for s in input.strides)}",
                do="call .contiguous() first",
            )
        )
    return input.view(dtypes.complex_of(input.dtype))[..., 0]


NUMPY.update({np.iscomplexobj: lambda x: x.is_complex(), np.isrealobj: lambda x: not x.is_complex()})

"""Norms of vectors: `norm`, the distance `dist`, and `renorm`, which bounds them.

At the origin, where a norm has no derivative, its gradient is 0, as in torch. The gradient of a zero element is also 0,
for any p.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...table.entry import TABLE, composite, special
from ...table.nodes import dims_of
from ...table.operands import plain, somewhere
from ...table.samples import A, D, Differs, S, Sample, V, inf, nan, whole
from ...tensor.adding import summed
from ...tensor.arrays import insert_axes, wrap_axes, wrap_axis
from ...tensor.dtypes import finfo, float32, real_of, to_default, to_numpy
from ...tensor.tensor import Tensor
from ..elementwise.limits import sign, where
from ..make.conversion import to
from .extremes import amax, amin
from .sums import sum


def _total(input: Any, dim: Any, keepdim: bool) -> Any:
    return summed(input, axis=wrap_axes(dim, input.ndim), keepdims=keepdim)


def _safe_root_rule(g: Any, input: Any, out: Any, dim: Any, keepdim: Any) -> Any:
    # d|x| = x / |x|, and 0 at the origin
    shape = np.shape(input)
    axes = wrap_axes(dim, len(shape))
    size = insert_axes(out, axes, shape, keepdim)
    zero = np.equal(plain(size), 0)
    g = insert_axes(g, axes, shape, keepdim)
    kind = plain(size).dtype
    range_of = np.float32 if kind.kind == "V" else kind  # bfloat16 has the exponents of float32
    if kind == np.float16 or somewhere(np.less(plain(size), np.finfo(range_of).tiny)):  # g / size would overflow
        return np.multiply(np.where(zero, 0, g), np.true_divide(input, np.where(zero, 1, size)))
    scale = np.true_divide(g, np.where(zero, 1, size))
    return np.multiply(np.where(zero, 0, scale), input)


def _p_norm_rule(g: Any, input: Any, out: Any, p: float, dim: Any, keepdim: Any) -> Any:
    # d|x| = sgn(x_i) (|x_i| / |x|)^(p-1), and 0 where either is 0
    axes = wrap_axes(dim, len(np.shape(input)))
    size, total = np.abs(input), insert_axes(out, axes, np.shape(input), keepdim)
    zero = np.logical_or(np.equal(plain(size), 0), np.equal(plain(total), 0))
    at_zero = somewhere(zero)
    if at_zero:
        size, total = np.where(zero, 1, size), np.where(zero, 1, total)
    phase = np.true_divide(input, size) if plain(input).dtype.kind == "c" else np.sign(plain(input))
    slope = np.multiply(phase, np.power(np.true_divide(size, total), p - 1))
    found = np.multiply(insert_axes(g, axes, np.shape(input), keepdim), slope)
    return np.where(zero, 0, found) if at_zero else found


def _alone(size: Any, dim: Any, keepdim: bool) -> Any:
    """The norms of single numbers, which are their absolute values: a power could overflow. None for several."""
    axes = wrap_axes(dim, size.ndim)
    axes = tuple(range(size.ndim)) if axes is None else axes
    if math.prod([size.shape[axis] for axis in axes]) != 1:
        return None
    return size if keepdim else np.squeeze(size, axes)


@special(
    method=False,
    node="LinalgVectorNormBackward0",
    saved={"dim": dims_of, "ord": "p"},
    batch=dims("dim", keeps="keepdim"),
    input=_p_norm_rule,
)
def _p_norm(input: Any, p: float, dim: Any = None, keepdim: bool = False) -> Any:
    size = np.abs(input)
    if (alone := _alone(size, dim, keepdim)) is not None:
        return alone
    if size.dtype.char == "e":  # powers of half precision would overflow
        return np.power(_total(np.power(size.astype(np.float32), p), dim, keepdim), 1 / p).astype(size.dtype)
    return np.power(_total(np.power(size, p), dim, keepdim), 1 / p)


@special(
    method=False,
    node="LinalgVectorNormBackward0",
    saved={"dim": dims_of, "ord": lambda: 2},
    batch=dims("dim", keeps="keepdim"),
    input=_safe_root_rule,
)
def _euclidean(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if (alone := _alone(input, dim, keepdim)) is not None:
        return np.abs(alone)
    if input.dtype.char == "e":
        found = _euclidean.op.forward(input.astype(np.float32), dim, keepdim)
        return found.astype(input.dtype)
    axes = wrap_axes(dim, input.ndim)
    every = axes is None or len(axes) == input.ndim
    if every and type(input) is np.ndarray:  # BLAS finds the sum in one pass
        row = input.ravel("K")
        if row.dtype.kind == "c":  # from real and imaginary parts: an infinite number times its conjugate would be NaN
            row = row.view(row.real.dtype)
        return np.sqrt(np.vdot(row, row).real).reshape((1,) * input.ndim if keepdim else ())
    squares = np.square(np.real(input)) + np.square(np.imag(input)) if input.dtype.kind == "c" else np.square(input)
    return np.sqrt(_total(squares, dim, keepdim))


def _check_order(name: str, input: Tensor, p: Any, dim: Any) -> None:
    """Refuse integers, a `p` that is not a number and, if p is negative or infinite, an empty tensor."""
    data = input._data
    if data.dtype.kind not in "fcV":
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="a floating point or complex tensor",
                found=errors.describe(input),
                do=f"convert it first, x.{to_default()}",
            )
        )
    if not isinstance(p, (int, float)):
        raise RuntimeError(errors.message(f"{name}()", expected="p a number, 'fro', 'nuc' or inf", found=repr(p)))
    axes = wrap_axes(dim, data.ndim)
    if (p < 0 or p == inf) and not np.prod([n for i, n in enumerate(data.shape) if axes is None or i in axes]):
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"some elements, for p = {p}", found=errors.describe(input))
        )


_LARGEST = finfo(float32).max


def p_norm(input: Tensor, p: float, dim: Any, keepdim: bool) -> Tensor:
    """The p-norm, for any number p; one beyond single precision is infinite beside it, as in torch."""
    if p == 2:
        return _euclidean(input, dim, keepdim)
    if abs(p) > _LARGEST and real_of(input._data.dtype).itemsize < 8:
        p = math.copysign(inf, p)
    if p not in (0, 1, inf, -inf):
        return _p_norm(input, p, dim, keepdim)
    size, axes = abs(input), () if dim is None else dim
    if p == inf:
        return amax(size, axes, keepdim)
    if p == -inf:
        return amin(size, axes, keepdim)
    if p == 0:  # NaN is not 0
        size = sign(where(size == size, size, 1.0))
    return sum(size, dim, keepdim)


_ORDERS = ("fro", 2, 1, 0, 3, 2.5, 1.5, 0.5, -1, -2, inf, -inf)


def _samples() -> list[Sample]:
    return [
        *whole(),
        *(S(A(2, 3), p) for p in _ORDERS),
        *(S(A(2, 3), p, 1) for p in _ORDERS),
        S(A(2, 3, 2), 2, (0, 2)),
        S(A(2, 3), dim=0, keepdim=True),
        S(A(2, 3), "fro", (0, 1), True),
        S(A(2, 3), 3, None, True),
        S(A(2, 3), None),
        S(A(), 3, 0),
        S(A(0)),
        S(A(0), 0),
        S(A(2, 0), 2, 1),
        S(A(2, 0), inf, 0),
        S(A(2, 3), 1, dim=(0, 1), keepdim=True),
        S(A(2, 3), dtype=D("float64")),
        S(A(3, 2, domain="regular"), "nuc"),
        S(A(2, 3, 3, domain="regular"), "nuc", (1, 2)),
        S(A(2, 3, 2, domain="regular"), "nuc", dim=(-1, -2), keepdim=True),
    ]


@composite(
    samples=_samples,
    kinks=lambda: [
        *(S(V([0.0, 0.0]), p) for p in (2, 1, 3, 1.5, 0.5, inf, -inf, 0, -1, -2)),
        *(S(V([0.0, 2.0, -2.0]), p) for p in (2, 1, 3, 1.5, 0.5, inf, -inf, 0, -1)),
        S(V([[0.0, 0.0], [3.0, 4.0]]), 2, 1),
        *(S(V([inf, 1.0]), p) for p in (1, 2, 3, inf, -inf, -1)),
        *(S(V([nan, 1.0]), p) for p in (0, 1, 2, 3, 0.5)),
    ],
    refused=lambda: [
        S([1.0]),
        S(A(2, 3), 2, 2),
        S(A(2, 3), 2, -3),
        S(A(2, 3), "nuclear"),
        S(A(3), "nuc"),
        S(A(2, 3), 1j),
        *(S(A(0), p) for p in (inf, -inf, -1)),
        S(A(2, 0), -inf, 1),
        S(A(3, dtype="int64")),
        S(A(3, dtype="int64"), dtype=D("float64")),
        S(A(3, dtype="complex64"), dtype=D("float64")),
    ],
    differs=[
        Differs(
            "a TypeError, as for any other operation; torch raises an AttributeError",
            "refused",
            sample="([1.0])",
        ),
    ],
)
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The p-norm ``(sum |x|^p)^(1/p)`` over `dim` (default: all); ``"fro"`` is p = 2, `inf` the largest modulus.

    p = 0 counts the nonzero elements; ``"nuc"`` is the sum of the singular values of a matrix. The gradient at the
    origin is 0. For p = inf (or -inf), elements that tie for the largest (or smallest) modulus share it evenly.

    >>> import pullback
    >>> pullback.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    nuclear, p = p == "nuc", 2 if p in (None, "fro", "nuc") else p
    _check_order("norm", input, p, dim)
    if dtype is not None:
        if to_numpy(dtype).kind not in "fcV":
            raise RuntimeError(errors.message("norm(): dtype should be floating point or complex", found=str(dtype)))
        if (to_numpy(dtype).kind == "c") != input.is_complex():
            raise RuntimeError(
                errors.message("norm(): dtype should be real for real inputs, complex for complex", found=str(dtype))
            )
        input = to(input, dtype)
    if nuclear:
        return TABLE["linalg.matrix_norm"].call(input, "nuc", (-2, -1) if dim is None else dim, keepdim)
    return p_norm(input, p, dim, keepdim)


@composite(
    out=False,
    samples=lambda: [
        *(S(A(3), A(3), p) for p in (2, 1, 3, 0.5, inf, -inf)),
        S(A(3), A(2, 3)),
        S(A(2, 1), A(3), p=3),
        S(A(), A()),
        S(A(0), A(0)),
        S(A(3, 2, layout="T"), A(3, 2, layout="step")),
        S(A(3), A(3, dtype="int64")),
    ],
    kinks=lambda: [S(V([1.0, 2.0]), V([1.0, 2.0]), p) for p in (0.5, 1, 2, 3, inf)],
    refused=lambda: [
        S(A(3), 1.0),
        S(A(3), A(2)),
        S(A(3), A(3), "x"),
        S(A(3, dtype="int64"), A(3, dtype="int64")),
        S([1.0], A(1)),
        S(A(3)),
    ],
)
def dist(input: Tensor, other: Tensor, p: Any = 2) -> Tensor:
    """The p-norm of the difference, ``norm(input - other, p)``. For equal tensors, it and its gradient are 0."""
    if not isinstance(p, (int, float)):
        raise TypeError(errors.message("dist()", expected="p to be a number", found=repr(p)))
    difference = input - other
    _check_order("dist", difference, p, None)
    return p_norm(difference, p, None, False)


@composite(
    contiguous=True,
    inplace=True,
    samples=lambda: [
        *(S(A(2, 3), p, 0, 1.0) for p in (2, 1, 3, 0.5, inf)),
        S(A(2, 3), 2, -1, 1e3),
        S(A(2, 3), p=2, dim=1, maxnorm=0),
        S(A(2, 3, 2, layout="T"), 1.5, 1, 0.1),
        S(A(0, 3), 2, 0, 1.0),
        S(A(2, 0), 2, 0, 1.0),
    ],
    kinks=lambda: [S(V([[0.0, 0.0], [inf, 1.0]]), p, 0, 1.0) for p in (2, 1, 3)],
    refused=lambda: [
        S(A(3), 2, 0, 1.0),
        S(A(2, 3), 2, 2, 1.0),
        S(A(2, 3), 0, 0, 1.0),
        S(A(2, 3), -1, 0, 1.0),
        S(A(2, 3), 2, 0, -1.0),
        S(A(2, 3, dtype="int64"), 2, 0, 1.0),
        S([1.0], 2, 0, 1.0),
        S(A(2, 3), 2, 0),
    ],
)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """`input` with each slice along `dim` scaled to p-norm `maxnorm` (less 1e-7 of it) if its p-norm is larger.

    >>> import pullback
    >>> pullback.renorm(pullback.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    axis = wrap_axis(dim, input.ndim)
    if not p > 0:
        raise RuntimeError(
            errors.message("renorm: non-positive-norm not supported", expected="p above 0", found=str(p))
        )
    if not maxnorm >= 0:
        raise RuntimeError(errors.message("renorm: expected maxnorm to be >= 0", found=str(maxnorm)))
    if input.ndim < 2:
        raise RuntimeError(errors.message("renorm()", expected="at least 2 dimensions", found=errors.describe(input)))
    rest = tuple(i for i in range(input.ndim) if i != axis)
    _check_order("renorm", input, p, rest)
    if input._data.dtype == np.float16:  # its powers would overflow
        return to(renorm(to(input, np.float32), p, dim, maxnorm), np.float16)
    size = p_norm(input, p, rest, True)
    return input * where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)

"""Tests of tensors that return a Python value or a mask: equal, close, floating point. They have no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import composite
from ...table.samples import NO_PAIR, A, S, V, inf, nan, pairs
from ...tensor import dtypes
from ...tensor.tensor import NUMPY, Tensor


@composite(method=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


@composite(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are real floating point numbers."""
    return input.is_floating_point()


@composite(method=False)
def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex."""
    return input.is_complex()


@composite()
def is_conj(input: Tensor) -> bool:
    """False: conjugates are computed at once, never later."""
    return False


@composite()
def is_neg(input: Tensor) -> bool:
    """False: negatives are computed at once, never later."""
    return False


@composite(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


@composite()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return input.shape == other.shape


@composite(function=False)
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors share the same elements of the same memory: same start, shape and strides."""
    same = input.shape == tensor.shape and input.stride() == tensor.stride()
    return same and input.data_ptr() == tensor.data_ptr()


@composite(function=False)
def sparse_dim(input: Tensor) -> int:
    """0: the number of axes that sparse indices run over; a dense tensor has none."""
    return 0


@composite(function=False)
def dense_dim(input: Tensor) -> int:
    """The number of axes that are not sparse; for a dense tensor, all."""
    return input.dim()


@composite()
def get_device(input: Tensor) -> int:
    """-1: no accelerator; all tensors lie in the host's memory."""
    return -1


@composite(function=False)
def ndimension(input: Tensor) -> int:
    """The number of axes, `dim`."""
    return input.dim()


@composite()
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements; NaN equals no number.

    >>> import pullback
    >>> pullback.equal(pullback.tensor([1, 2]), pullback.tensor([1, 2]))
    True
    """
    return input.shape == other.shape and bool(input.eq(other).all())


@composite(
    out=False,
    samples=lambda: [
        *pairs(),
        S(V([1.0, 2.0, nan, inf], "float32"), V([1.000001, 2.1, nan, inf], "float32")),
        S(V([1.0, 2.0, nan, inf], "float64"), V([1.0, 2.1, nan, inf], "float64"), equal_nan=True),
        S(V([1.0, 100.0], "float64"), V([1.1, 101.0], "float64"), 0.05, 0.05),
        S(V([1, 2, 100], "int64"), V([1, 3, 101], "int64"), rtol=0.02),
        S(A(3), A(3), rtol=0.0, atol=0.0),
    ],
    refused=[*NO_PAIR, S(A(2), A(2, dtype="float64")), S(A(2), A(2), rtol=-1.0), S(A(2), A(2), atol=-1.0)],
)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Elementwise, whether ``|input - other| <= atol + rtol * |other|``; infinities are close to themselves."""
    _check_close("isclose", input, other, rtol, atol)
    close: Tensor = input.eq(other)
    if not (input.is_floating_point() or input.is_complex()):
        input, other = (t.to(dtypes.get_default_dtype()) for t in (input, other))
    elif equal_nan:
        close = close | (input.isnan() & other.isnan())
    if rtol == 0 and atol == 0:
        return close
    distance = (input - other).abs()
    return close | (distance.isfinite() & (distance <= atol + rtol * other.abs()))


@composite()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, in the sense of `isclose`.

    >>> import pullback
    >>> pullback.allclose(pullback.tensor([1.0]), pullback.tensor([1.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def _check_close(name: str, a: Any, b: Any, rtol: Any, atol: Any) -> None:
    for value in (a, b):
        if not isinstance(value, Tensor):
            raise TypeError(errors.message(f"{name}()", expected="two Tensors", found=errors.describe(value)))
    if a.dtype != b.dtype:
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="tensors of the same dtype",
                found=f"{a.dtype} and {b.dtype}",
                do="convert one of them with .to(dtype)",
            )
        )
    for tolerance in (rtol, atol):
        if not isinstance(tolerance, (int, float)):
            found = errors.describe(tolerance)
            raise TypeError(errors.message(f"{name}()", expected="rtol and atol to be numbers", found=found))
    if rtol < 0 or atol < 0:
        raise RuntimeError(
            errors.message(f"{name}()", expected="rtol and atol of at least 0", found=f"rtol={rtol}, atol={atol}")
        )


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def _values(value: Any) -> Any:
    return value._data if isinstance(value, Tensor) else value


def _plainly(function: Any) -> Any:
    """A NumPy comparison of the values alone, also for tensors that require grad."""

    def call(*args: Any, **kwargs: Any) -> Any:
        named = {name: _values(a) for name, a in kwargs.items()}
        return function(*map(_values, args), **named)

    return call


NUMPY.update({function: _plainly(function) for function in (np.allclose, np.array_equal, np.isclose)})

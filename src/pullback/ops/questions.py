"""Questions about tensors whose answer is a Python value or a mask: are they equal, or close? No derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from .._tensor import NUMPY, Tensor, wrap
from .table import composite


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
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements; NaN equals nothing.

    >>> import pullback
    >>> pullback.equal(pullback.tensor([1, 2]), pullback.tensor([1, 2]))
    True
    """
    return np.array_equal(input._data, other._data)


@composite()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Elementwise, whether ``|input - other| <= atol + rtol * |other|``."""
    _refuse_mixed("isclose", input, other)
    return wrap(np.asarray(np.isclose(input._data, other._data, rtol, atol, equal_nan)))


@composite()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, in the sense of `isclose`.

    >>> import pullback
    >>> pullback.allclose(pullback.tensor([1.0]), pullback.tensor([1.0 + 1e-7]))
    True
    """
    _refuse_mixed("allclose", input, other)
    return bool(np.allclose(input._data, other._data, rtol, atol, equal_nan))


def _refuse_mixed(name: str, a: Tensor, b: Tensor) -> None:
    if a._data.dtype != b._data.dtype:
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="tensors of the same dtype",
                found=f"{a.dtype} and {b.dtype}",
                do="convert one of them with .to(dtype)",
            )
        )


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def _plainly(function: Any) -> Any:
    """A NumPy comparison that answers about values alone, also of tensors that require grad."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*(a._data if isinstance(a, Tensor) else a for a in args), **kwargs)

    return call


NUMPY.update({function: _plainly(function) for function in (np.allclose, np.array_equal, np.isclose)})

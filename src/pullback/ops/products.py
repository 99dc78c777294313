"""Matrix products. Each is linear in both operands, so an entry is the product and its two adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from .._tensor import Tensor, wrap
from .calls import apply
from .table import bilinear, composite


def _as_matrices(g: Any, left: int, right: int) -> Any:
    """The cotangent of a product, with the axes back that vector operands (of 1 axis) have lost."""
    g = np.expand_dims(g, -1) if right == 1 else g
    return np.expand_dims(g, -2) if left == 1 else g


def _left(g: Any, other: Any, input_shape: Any) -> Any:
    right = len(np.shape(other))
    g = _as_matrices(g, len(input_shape), right)
    found = np.matmul(g, np.swapaxes(np.expand_dims(other, -1) if right == 1 else other, -1, -2))
    return np.squeeze(found, -2) if len(input_shape) == 1 else found


def _right(g: Any, input: Any, other_shape: Any) -> Any:
    left = len(np.shape(input))
    g = _as_matrices(g, left, len(other_shape))
    found = np.matmul(np.swapaxes(np.expand_dims(input, -2) if left == 1 else input, -1, -2), g)
    return np.squeeze(found, -1) if len(other_shape) == 1 else found


@bilinear(method=False, input=_left, other=_right)
def _matmul(input: Any, other: Any) -> Any:
    for value in (input, other):
        if not hasattr(value, "dtype"):
            raise TypeError(errors.message("matmul()", expected="two Tensors", found=errors.describe(value)))
    if input.ndim == 0 or other.ndim == 0:
        raise RuntimeError(
            errors.message(
                "matmul()",
                expected="both arguments to be at least 1D",
                found=f"{input.ndim}D and {other.ndim}D",
                do="use * to multiply by a number",
            )
        )
    if input.dtype != other.dtype:
        raise RuntimeError(
            errors.message(
                "matmul()",
                expected="operands of the same dtype",
                found=f"{input.dtype} and {other.dtype}",
                do="convert one of them, e.g. w.to(x.dtype)",
            )
        )
    if input.shape[-1] != other.shape[-2 if other.ndim > 1 else 0]:
        raise RuntimeError(
            errors.message(
                "mat1 and mat2 shapes cannot be multiplied",
                expected="the last axis of the first to have the length of the second-to-last of the second",
                found=f"{list(input.shape)} and {list(other.shape)}",
            )
        )
    return np.matmul(input, other)


@composite(numpy={np.matmul: lambda x1, x2: matmul(x1, x2)})
def matmul(input: Tensor, other: Tensor | np.ndarray[Any, Any]) -> Tensor:
    """The matrix product; vectors and batches of matrices as in NumPy. ``dA = g B^T``, ``dB = A^T g``.

    >>> import pullback
    >>> pullback.ones(2, 3) @ pullback.ones(3)
    tensor([3., 3.])
    """
    if type(input) is not Tensor or type(other) is not Tensor:
        for operand in (input, other):
            if hasattr(operand, "_matmul"):  # another kind of matrix brings its own product
                return operand._matmul(input, other)
    if isinstance(other, np.ndarray):
        other = wrap(other)
    return apply(_matmul.op, (input, other), {})


def _checked(name: str, a: Tensor, b: Tensor, left: int, right: int) -> Tensor:
    for value, ndim, which in ((a, left, "first"), (b, right, "second")):
        if not isinstance(value, Tensor) or value.ndim != ndim:
            raise (RuntimeError if isinstance(value, Tensor) else TypeError)(
                errors.message(
                    f"{name}()", expected=f"the {which} operand to be a {ndim}D tensor", found=errors.describe(value)
                )
            )
    if name == "bmm" and a._data.shape[0] != b._data.shape[0]:
        raise RuntimeError(
            errors.message("bmm()", expected="equal batch sizes", found=f"{a.shape[0]} and {b.shape[0]}")
        )
    return matmul(a, b)


@composite()
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    return _checked("mm", input, mat2, 2, 2)


@composite()
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two stacks of matrices, pair by pair."""
    return _checked("bmm", input, mat2, 3, 3)


@composite()
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    return _checked("mv", input, vec, 2, 1)


@composite(numpy={np.dot: lambda a, b: matmul(a, b) if np.ndim(a) and np.ndim(b) else np.multiply(a, b)})
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The product of two vectors, not conjugated."""
    return _checked("dot", input, tensor, 1, 1)


@composite(numpy={np.outer: lambda a, b: np.multiply(np.reshape(a, (-1, 1)), np.reshape(b, (1, -1)))})
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]`` of two vectors."""
    for name, value in (("input", input), ("vec2", vec2)):
        if not isinstance(value, Tensor) or value._data.ndim != 1:
            kind = RuntimeError if isinstance(value, Tensor) else TypeError
            raise kind(errors.message("outer()", expected=f"{name} to be a 1D tensor", found=errors.describe(value)))
    return input[:, None] * vec2[None, :]


def _operator(self: Tensor, other: Any) -> Any:
    return matmul(self, other) if isinstance(other, (Tensor, np.ndarray)) else NotImplemented


def _reflected(self: Tensor, other: Any) -> Any:
    return matmul(wrap(other), self) if isinstance(other, np.ndarray) else NotImplemented


Tensor.__matmul__ = _operator  # type: ignore[method-assign]
Tensor.__rmatmul__ = _reflected  # type: ignore[attr-defined]

"""Sums of products along given axes: `tensordot` and `inner`; and `kron` and `trace`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import composite
from ...table.samples import A, Differs, S
from ...tensor.arrays import as_array, wrap_axis
from ...tensor.tensor import Tensor, wrap
from ..index.diagonals import diagonal
from ..make.conversion import alike, to
from .contractions import contract

_NO_BOOL = Differs(
    "torch has no kernel for bool; the operation is defined all the same, with True as 1", "values", "bool"
)


def _check_pair(name: str, a: Any, b: Any) -> None:
    for value in (a, b):
        if not isinstance(value, Tensor):
            raise TypeError(errors.message(f"{name}()", expected="two Tensors", found=errors.describe(value)))
    if a._data.dtype != b._data.dtype:
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="both inputs to have the same dtype",
                found=f"{a.dtype} and {b.dtype}",
                do="convert one of them, e.g. w.to(x.dtype)",
            )
        )


def _paired_axes(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    """The axes of each operand to sum over: the last `dims` of the first and the first of the second, or two lists."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    n, m = a._data.ndim, b._data.ndim
    if isinstance(dims, int):
        if not 0 <= dims <= min(n, m):
            raise RuntimeError(
                errors.message(
                    f"tensordot() expects dims >= 0, and at most {min(n, m)}, the fewer axes", found=str(dims)
                )
            )
        return list(range(n - dims, n)), list(range(dims))
    if len(dims) != 2 or not all(isinstance(axes, (tuple, list)) for axes in dims):
        raise TypeError(
            errors.message("tensordot()", expected="dims to be an int or two lists of ints", found=repr(dims))
        )
    left, right = [wrap_axis(d, n) for d in dims[0]], [wrap_axis(d, m) for d in dims[1]]
    for axes in (left, right):
        if len(set(axes)) != len(axes) or len(left) != len(right):
            raise RuntimeError(
                errors.message("tensordot()", expected="each dim once, and as many of both tensors", found=repr(dims))
            )
    for i, j in zip(left, right, strict=True):
        sizes = a._data.shape[i], b._data.shape[j]
        if 1 not in sizes and sizes[0] != sizes[1]:
            raise RuntimeError(
                f"tensordot(): contracted dimensions need to match, but first has size {sizes[0]} in dim {i} and "
                f"second has size {sizes[1]} in dim {j}"
            )
    return left, right


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(as_array(value))


def _numpy_tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    if not isinstance(axes, int):
        axes = [list(n) if isinstance(n, (tuple, list)) else [n] for n in axes]
    return tensordot(*alike(a, b), axes)


@composite(
    method=False,
    numpy={
        np.tensordot: _numpy_tensordot,
        np.linalg.tensordot: lambda x1, x2, *, axes=2: _numpy_tensordot(x1, x2, axes),
    },
    samples=lambda: [
        S(A(2, 3, 2), A(3, 2, 4)),
        S(A(2, 3), A(3, 4), dims=1),
        S(A(2, 3), A(2, 2), dims=0),
        S(A(), A(), 0),
        S(A(2, 3), A(2, 3), 2),
        S(A(2, 3, 4), A(4, 2), dims=([2, 0], [0, 1])),
        S(A(2, 3), A(3, 4), ([-1], [0])),
        S(A(2, 3), A(3, 4), ((), ())),
        S(A(2, 1), A(3, 4), dims=([1], [0])),
        S(A(0, 3), A(3, 0), 1),
        S(A(3, 2, layout="T"), A(2, 3, layout="step"), 1),
    ],
    refused=lambda: [
        S(A(2, 3), A(3, 4), -1),
        S(A(2, 3), A(3, 4), 3),
        S(A(2, 3), A(3, 4), (1, 0)),
        S(A(2, 2), A(3, 4), ([1], [0])),
        S(A(2, 2), A(2, 2), ([1], [0, 1])),
        S(A(2, 2), A(2, 2), ([1, 1], [0, 1])),
        S(A(2, 2), A(2, 2), ([2], [0])),
        S(A(2, 2), A(2, 2, dtype="int64"), 1),
    ],
    differs=[_NO_BOOL],
)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over `dims` axes, the last of `a` with the first of `b`, or over the pairs of two lists.

    >>> import pullback
    >>> pullback.tensordot(pullback.ones(2, 3, 4), pullback.ones(4, 3), dims=([2, 1], [0, 1]))
    tensor([12., 12.])
    """
    _check_pair("tensordot", a, b)
    left, right = _paired_axes(a, b, dims)
    first = tuple(range(a._data.ndim))
    second = [len(first) + i for i in range(b._data.ndim)]
    for i, j in zip(left, right, strict=True):
        second[j] = i
    out = tuple(i for i in first if i not in left) + tuple(n for n in second if n >= len(first))
    found = contract([first, tuple(second)], [a, b], out)
    return found if found._data.dtype == a._data.dtype else to(found, a._data.dtype)  # a sum of integers widens


def _dot(a: Any, b: Any) -> Any:
    """Like `numpy.dot`: a sum over the last axis of the first and the second to last of the second."""
    if not np.ndim(a) or not np.ndim(b):
        return np.multiply(a, b)
    return np.matmul(a, b) if np.ndim(b) <= 2 else np.tensordot(a, b, ([-1], [-2]))


@composite(
    numpy={np.inner: lambda a, b: inner(*alike(a, b)), np.dot: _dot},
    out="exact",
    samples=lambda: [
        S(A(3), A(3)),
        S(A(2, 3), A(3)),
        S(A(2, 3), A(4, 2, 3)),
        S(A(), A(2, 3)),
        S(A(2), A()),
        S(A(), A()),
        S(A(2), A(dtype="int64")),
        S(A(0), A(2, 0)),
        S(A(3, 2, layout="T"), other=A(2, layout="step")),
    ],
    refused=lambda: [
        S(A(2, 3), A(2)),
        S(A(3), A(1)),
        S(A(3), A(3, dtype="int64")),
        S(A(3), 1.0),
    ],
    differs=[_NO_BOOL],
)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last axis of both; a 0-d tensor multiplies."""
    if isinstance(other, Tensor) and not (input._data.ndim and other._data.ndim):
        return input * other
    _check_pair("inner", input, other)
    if input._data.shape[-1] != other._data.shape[-1]:
        raise RuntimeError(
            errors.message(
                "inner() the last dimension must match on both input tensors but got shapes "
                f"{list(input._data.shape)} and {list(other._data.shape)}"
            )
        )
    return tensordot(input, other, ([-1], [-1]))


@composite(
    numpy={np.kron: lambda a, b: kron(_tensor(a), _tensor(b))},
    samples=lambda: [
        S(A(2), A(3)),
        S(A(2, 3), A(3, 2)),
        S(A(2), A(3, 2)),
        S(A(2, 1, 2), A(2)),
        S(A(), A(2, 2)),
        S(A(2), A()),
        S(A(0, 2), A(2, 2)),
        S(A(2), A(2, dtype="int64")),
        S(A(3, layout="step"), other=A(2, 1, layout="readonly")),
    ],
    refused=[S(A(2), 1.0), S(A(2)), S([1.0], A(2))],
)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`."""
    if not isinstance(other, Tensor):
        raise TypeError(errors.message("kron()", expected="two Tensors", found=errors.describe(other)))
    n = max(input._data.ndim, other._data.ndim)
    left, right = ((1,) * (n - t._data.ndim) + tuple(t._data.shape) for t in (input, other))
    a = input.reshape([k for size in left for k in (size, 1)])
    b = other.reshape([k for size in right for k in (1, size)])
    return (a * b).reshape([x * y for x, y in zip(left, right, strict=True)])


def _numpy_trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


@composite(
    out=False,
    numpy={np.trace: _numpy_trace, np.linalg.trace: lambda x, *, offset=0: _numpy_trace(x, offset, -2, -1)},
    samples=lambda: [S(A(2, 2)), S(A(2, 3)), S(A(0, 2)), S(A(1, 1)), S(A(3, 2, layout="T")), S(A(2, 2, dtype="int32"))],
    refused=[S(A(2)), S(A(2, 2, 2)), S(A()), S([[1.0]]), S(A(2, 2), 1)],
    differs=[_NO_BOOL],
)
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix; integers add up in int64."""
    if input._data.ndim != 2:
        raise RuntimeError(errors.message("trace()", expected="a matrix", found=errors.describe(input)))
    return diagonal(input).sum()

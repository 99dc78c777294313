"""Distances and angles between vectors, and vectors scaled to length 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by
from ...kernels.positions import within
from ...ops.make.conversion import to
from ...ops.reduce import sums
from ...ops.reduce.norm import norm
from ...table.calls import write_out
from ...table.entry import composite, constant
from ...table.samples import A, S, V, index, inf, nan
from ...tensor import dtypes
from ...tensor.arrays import zeros_beside
from ...tensor.protocol import is_foreign, on_arrays
from ...tensor.tensor import Tensor
from .arguments import refuse, tensors
from .primitives import at_least


@composite(
    scalars="eps",
    home="nn.functional",
    also="cosine_similarity",
    samples=lambda: [
        S(A(2, 3), A(2, 3)),
        S(A(2, 3, 2), A(2, 3, 2), 2),
        S(A(2, 3), A(3), dim=-1),
        S(A(3), A(2, 3), -1, 0.5),
        S(A(3), A(3), dim=0, eps=1e-3),
        S(A(2, 1), A(2, 1)),
        S(A(0, 3), A(0, 3)),
        S(A(2, 0), A(2, 0)),
        S(A(3, 2, layout="T"), A(3, 2, layout="step")),
    ],
    kinks=lambda: [S(V([[1.0, 2.0], [0.0, 0.0], [1e-9, 0.0]]), V([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]))],
    refused=lambda: [
        *(S(A(3), A(3), dim=0, eps=eps) for eps in (-1.0, -1e-30, nan)),
        *(S(A(3), A(3)), S(A(2, 3), A(2, 2)), S(A(2, 3), A(2, 3), 2), S(A(2, 3)), S([1.0], [1.0])),
    ],
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`: ``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))``.

    >>> import pullback
    >>> pullback.cosine_similarity(pullback.tensor([[3.0, 4.0]]), pullback.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    tensors("cosine_similarity", x1=x1, x2=x2)
    if not eps >= 0:
        raise RuntimeError(errors.message("cosine_similarity(): eps must be non-negative", found=str(eps)))
    dtype = dtypes.result_type([x1._data, x2._data])
    if dtype.kind != "f":
        raise refuse("cosine_similarity", "floating point numbers", f"{errors.describe(x1)}, {errors.describe(x2)}")
    sizes = [x1._data.shape, x2._data.shape]
    problem = errors.broadcast_message(sizes)
    if problem:
        raise RuntimeError(f"cosine_similarity(): {problem}")
    x1, x2 = (to(x, dtype).expand(np.broadcast_shapes(*sizes)) for x in (x1, x2))
    first, second = (x / at_least(norm(x, 2, dim, True), eps) for x in (x1, x2))
    return sums.sum(first * second, dim)


@composite(
    home="nn.functional",
    also="pairwise_distance",
    samples=lambda: [
        S(A(2, 3), A(2, 3)),
        S(A(3), A(3)),
        *(S(A(2, 3), A(2, 3), p) for p in (1.0, 3.0, 0.5, inf, 0)),
        S(A(2, 3), A(3), p=2, eps=0.1, keepdim=True),
        S(A(2, 1, 3), A(4, 3)),
        S(A(0, 3), A(0, 3)),
        S(A(3, 2, layout="T"), A(3, 2, layout="step")),
    ],
    kinks=lambda: [S(V([[1.0, 2.0], [0.0, 0.0]]), V([[1.0, 2.0], [1e-6, 1e-6]]))],
    refused=lambda: [S(A(2, 3), A(2, 2)), S(A(2)), S([1.0], [1.0])],
)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""
    tensors("pairwise_distance", x1=x1, x2=x2)
    return norm(x1 - x2 + eps, p, -1, keepdim)


@composite(
    out=True,
    home="nn.functional",
    samples=lambda: [
        S(A(2, 3)),
        S(A(2, 3), 1.0),
        S(A(2, 3), 3, 0),
        S(A(3), p=inf, dim=0),
        S(A(2, 3, 2), dim=-1, eps=1e-3),
        S(A(2, 3, 2), dim=(1, 2)),
        S(A(0, 3)),
        S(A(3, 2, layout="T")),
    ],
    kinks=lambda: [S(V([[3.0, 4.0], [0.0, 0.0]]))],
    refused=lambda: [S(A(3)), S(A(2, 3), 2.0, 2), S()],
)
def normalize(input: Tensor, p: Any = 2.0, dim: Any = 1, eps: Any = 1e-12, out: Tensor | None = None) -> Tensor:
    """``input / max(|input|, eps)``, with the p-norm along `dim`: vectors of length 1.

    >>> import pullback
    >>> pullback.nn.functional.normalize(pullback.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    found = input / norm(input, p, dim, True).clamp(min=eps)
    return found if out is None else write_out("normalize", out, found)


def _with_classes(shape: Any, num_classes: Any) -> Any:
    return None if num_classes == -1 else (num_classes,)  # each example may have its own number


@constant(
    home="nn.functional",
    batch=by(_with_classes),
    samples=lambda: [
        S(index(4, 3)),
        S(index(4, 2, 3), 5),
        S(index(4), num_classes=4),
        S(index(4, 0), 2),
        S(index(1, 2), 1),
    ],
    refused=lambda: [
        S(V([0, 3], "int64"), 3),
        S(V([0, -1], "int64")),
        S(index(4, 0)),
        S(V([0, 1], "int64"), 0),
        S(A(2)),
        S(V([0, 1], "int32")),
        S([1]),
    ],
)
@on_arrays
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """For each index a vector of zeros with a 1 at that position, along a new last axis; int64.

    num_classes: the length of that axis, by default the largest index plus one.

    >>> import pullback
    >>> pullback.nn.functional.one_hot(pullback.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor.dtype != np.int64:
        raise refuse("one_hot", "indices of int64", errors.describe(tensor), "convert it with .long()")
    if not tensor.size and num_classes <= 0:
        raise refuse("one_hot", "num_classes where there is no index", num_classes)
    if num_classes != -1 and num_classes < 1:
        raise refuse("one_hot", "num_classes to be positive, or -1", num_classes)
    if is_foreign(tensor) and num_classes > 0:
        within(tensor, num_classes, RuntimeError("one_hot(): an index is no class: it is below 0 or too large"))
    elif tensor.size and tensor.min() < 0:
        raise refuse("one_hot", "indices of at least 0", int(tensor.min()))
    if num_classes == -1:
        num_classes = int(tensor.max()) + 1
    elif tensor.size and not is_foreign(tensor) and tensor.max() >= num_classes:
        raise refuse("one_hot", f"indices smaller than num_classes, {num_classes}", int(tensor.max()))
    found = zeros_beside(tensor, (tensor.size, num_classes), np.int64)
    found[np.arange(tensor.size), np.reshape(tensor, -1)] = 1
    return np.reshape(found, (*tensor.shape, num_classes))

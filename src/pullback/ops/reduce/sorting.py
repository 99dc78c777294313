"""Sorting, and the largest elements. NaN counts as larger than every number.

Sorting is always stable, even if `stable` is False. Each cotangent goes to its own element, also among equal elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...table.entry import composite, constant, special
from ...table.operands import index_of
from ...table.results import result_type
from ...table.samples import A, S, Sample, V, along, inf, nan
from ...tensor.arrays import in_order, taken_along, wrap_axis, zeros_beside
from ...tensor.protocol import is_foreign
from ...tensor.tensor import Tensor
from .picking import many_jvp, many_rule, refuse_unordered

SortResult = result_type("sort", "values", "indices")
TopkResult = result_type("topk", "values", "indices")


def order(input: Any, axis: int, descending: bool = False) -> Any:
    """The positions that sort an array of at least one axis, stably; in descending order, NaN comes first."""
    if not descending:
        return np.argsort(input, axis=axis, kind="stable")
    # sort the reversed array and reverse the result, so that equal elements keep their order
    back = (*(slice(None),) * (axis % input.ndim), slice(None, None, -1))
    return np.subtract(input.shape[axis] - 1, np.argsort(input[back], axis=axis, kind="stable")[back])


def _sorted_positions(name: str, input: Any, dim: int, descending: bool) -> tuple[int, Any]:
    refuse_unordered(name, input, RuntimeError)
    axis = wrap_axis(dim, input.ndim)
    return axis, order(input, axis, descending) if input.ndim else zeros_beside(input, (), np.int64)


def _samples() -> list[Sample]:
    return [
        *along(0, 1, -1, keepdim=False, lists=False, domain="whole"),
        S(A(2, 3)),
        S(A(3), 0, True),
        S(A(2, 3), dim=1, descending=True),
        S(A(2, 3), descending=True),
        S(A(2, 3), stable=True),
        S(A(2, 3), stable=True, dim=0, descending=True),
        S(A(5), stable=False),
        S(A(0)),
        S(A(2, 0), 1),
        S(A(2, 0), 0),
    ]


def _kinks() -> list[Sample]:
    return [
        *(S(V([1.0, 0.0, 1.0, 0.0, 1.0]), stable=True, descending=d) for d in (False, True)),
        *(S(V([0.0, -0.0, inf, nan, -inf, 1.0]), descending=d) for d in (False, True)),
    ]


def _not_sorted() -> list[Sample]:
    return [
        *(S(A(2, 3), dim) for dim in (2, -3, "x")),
        S(A(), 1),
        S([1.0]),
        S(A(2), 0, nonsense=1),
        S(A(2), 0, True, True),
    ]


@special(
    batch=dims("dim"),
    input=many_rule,
    jvp=many_jvp,
    samples=_samples,
    kinks=_kinks,
    refused=_not_sorted,
)
def sort(input: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> tuple[Any, Any]:
    """The elements in order along `dim`, and their positions before: ``(values, indices)``.

    It is stable whatever `stable` is: equal elements keep their order, also in descending order.

    >>> import pullback
    >>> pullback.tensor([3.0, 1.0, 2.0]).sort()
    pullback.return_types.sort(
    values=tensor([1., 2., 3.]),
    indices=tensor([1, 2, 0]))
    """
    axis, indices = _sorted_positions("sort", input, dim, descending)
    return SortResult(taken_along(input, indices, axis) if input.ndim else np.copy(input), indices)


@constant(
    batch=dims("dim"),
    samples=_samples,
    kinks=_kinks,
    refused=_not_sorted,
)
def argsort(input: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """The positions that sort along `dim`: the indices of `sort`; int64, no derivative."""
    return _sorted_positions("argsort", input, dim, descending)[1]


@composite(
    out="exact",
    samples=lambda: [S(A(3, 2)), S(A(3, 2, layout="T")), S(A()), S(A(0)), S(A(0, 2)), S(A(2, 3, 2, layout="step"))],
    refused=[S([1.0]), S(A(2), 0)],
)
def msort(input: Tensor) -> Tensor:
    """The elements in ascending order along the first axis."""
    return sort(input, 0)[0]


# The largest ----------------------------------------------------------------------------------------------------------


_FEW = 16  # rows of at most this length are sorted as a whole
_LONG, _TIMES = 256, 64  # rows of this length, and this many times as long as k, are searched by blocks
_SHORTEST = 16  # the length of the shortest block


def _largest(input: Any, k: int, axis: int, largest: bool) -> Any:
    """The positions of the `k` largest or smallest along an axis, in no order."""
    n = input.shape[axis]
    # the size of a block: small enough that the best k blocks hold few elements
    size = max(_SHORTEST, int(np.sqrt(n / k)))
    if n < _TIMES * k or n < _LONG or is_foreign(input):
        found = np.argpartition(input, n - k if largest else k - 1, axis=axis)
        return np.take(found, range(n - k, n) if largest else range(k), axis=axis)
    # The k best are in the k blocks with the best elements: find these blocks first, then search in them.
    rows = np.moveaxis(input, axis, -1)
    whole = n // size * size
    blocks = np.reshape(rows[..., :whole], (*rows.shape[:-1], n // size, size))
    best = np.maximum.reduce(blocks, axis=-1) if largest else np.fmin.reduce(blocks, axis=-1)
    inside = _largest(best, k, -1, largest)[..., None] * size + np.arange(size)
    rest = np.broadcast_to(np.arange(whole, n), (*rows.shape[:-1], n - whole))
    candidates = np.concatenate([np.reshape(inside, (*rows.shape[:-1], -1)), rest], axis=-1)
    picked = _largest(taken_along(rows, candidates, -1), k, -1, largest)
    return np.moveaxis(taken_along(candidates, picked, -1), -1, axis)


@special(
    batch=dims("dim"),
    input=many_rule,
    jvp=many_jvp,
    samples=lambda: [
        *(S(A(4, 3, domain="whole"), k) for k in (0, 1, 3)),
        S(A(5, domain="whole"), 2, 0, False),
        S(A(5, domain="whole"), 1, -1, True, False),
        S(A(4, 3, domain="whole", layout="T"), 2, 0),
        S(A(4, 3, domain="whole", layout="step"), k=2, dim=-1, largest=False, sorted=True),
        S(A(4, 2, 3, domain="whole", layout="readonly"), 1, dim=1),
        S(A(), 1),
        S(A(), 0),
        S(A(0, 3), 2),
        S(A(1), 1),
        S(V([1.0, 2.0, 3.0, 4.0, 5.0]), 1),
        S(A(2, 5000, domain="whole"), 3),
        S(A(5001, domain="whole"), 3, largest=False),
    ],
    kinks=[
        S(V([1.0, nan, inf, -inf, 2.0]), 2),
        S(V([1.0, nan, inf, -inf, 2.0]), 2, largest=False),
    ],
    refused=lambda: [
        *(S(A(3), k) for k in (4, -1, "x", 1.5)),
        S(A(), 2),
        S(A(2, 3), 1, 2),
        S(A(3)),
        S([1.0], 1),
        S(A(3), 1, nonsense=1),
    ],
)
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    """The `k` largest (or smallest) elements along `dim` and their indices, the best first: ``(values, indices)``.

    With ``sorted=False`` they are in no particular order. Among equal elements at the border, any may be chosen.

    >>> import pullback
    >>> pullback.tensor([3.0, 1.0, 2.0]).topk(2).values
    tensor([3., 2.])
    """
    refuse_unordered("topk", input, RuntimeError, "cb")
    axis = wrap_axis(dim, input.ndim)
    n = input.shape[axis] if input.ndim else 1
    k = index_of("topk", "k", k)
    if not 0 <= k <= n:
        raise RuntimeError(
            errors.message("topk(): selected index k out of range", expected=f"k in [0, {n}]", found=f"{k}")
        )
    if not input.ndim:
        return TopkResult(np.copy(input), zeros_beside(input, (), np.int64))
    if n <= _FEW and not is_foreign(input):
        indices = order(input, axis, largest)[(*(slice(None),) * axis, slice(k))]
        return TopkResult(taken_along(input, indices, axis), in_order(indices))
    indices = _largest(input, k, axis, largest) if k else np.take(np.argsort(input, axis=axis), [], axis=axis)
    values = taken_along(input, indices, axis)
    if sorted and k > 1:
        within = order(values, axis, largest)
        values, indices = taken_along(values, within, axis), taken_along(indices, within, axis)
    return TopkResult(values, indices)

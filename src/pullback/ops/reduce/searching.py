"""Searching: positions in sorted sequences, membership, and the distinct elements.

The values of `unique` are elements of the input, so they have a derivative, which torch lacks. The gradient of an
element that occurs several times is shared evenly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batched import looped
from ...kernels.counterparts import contiguous
from ...table.entry import composite, constant, special
from ...table.narrow import rounded
from ...table.samples import A, Differs, S, Sample, V, inf, nan
from ...tensor import dtypes
from ...tensor.arrays import arange_beside, beside, empty_beside, full_beside, wrap_axis, writable, zeros_beside
from ...tensor.nested import any_instance
from ...tensor.protocol import is_array, on_arrays
from ...tensor.tensor import Tensor, wrap
from .picking import pick, refuse_unordered

# In sorted sequences --------------------------------------------------------------------------------------------------


def _side(right: bool, side: str | None) -> str:
    if side not in (None, "left", "right"):
        raise RuntimeError(errors.message("searchsorted(): side can only be 'left' or 'right'", found=repr(side)))
    if side == "left" and right:
        raise RuntimeError(
            errors.message("searchsorted(): side and right can't be set to opposites", found="right=True, side='left'")
        )
    return "right" if right or side == "right" else "left"


def _check_sorter(sequence: Any, sorter: Any) -> None:
    for wrong, which in (
        (sorter.shape != sequence.shape, f"boundary and sorter must have the same size, {list(sequence.shape)}"),
        (sorter.dtype != np.int64, "sorter must be a tensor of long dtype"),
    ):
        if wrong:
            raise RuntimeError(errors.message(f"searchsorted(): {which}", found=errors.describe(sorter)))
    if np.any(np.less(sorter, 0)) or np.any(np.greater_equal(sorter, sequence.shape[-1])):
        raise RuntimeError(
            errors.message("searchsorted(): sorter index out of range", expected="positions in the sequence")
        )


def _search_samples() -> list[Sample]:
    one, rows = V([1.0, 3.0, 3.0, 7.0]), V([[1.0, 2.0, 4.0], [0.0, 5.0, 9.0]])
    values = V([0.0, 1.0, 3.0, 4.0, 7.0, 8.0])
    return [
        *(S(one, values, right=r) for r in (False, True)),
        *(S(one, values, side=side) for side in ("left", "right", None)),
        S(one, values, out_int32=True),
        S(one, 3.0),
        S(one, 4, right=True),
        S(one, V(3.0)),
        S(one, V([[0.0, 1.0], [4.0, 9.0]])),
        S(rows, V([[2.0, 3.0], [5.0, 9.0]]), right=True),
        S(V([[[1.0, 2.0]], [[3.0, 4.0]]]), V([[[1.5, 0.0]], [[3.5, 9.0]]])),
        S(V([5.0, 1.0, 3.0]), V([2.0, 4.0]), sorter=V([1, 2, 0], "int64")),
        S(V([[5.0, 1.0], [1.0, 2.0]]), V([[2.0], [1.5]]), sorter=V([[1, 0], [0, 1]], "int64")),
        S(A(0), A(2)),
        S(V([1.0, 3.0], "float64"), V([], "float64")),
        S(one, V([1, 2], "int64")),
    ]


_NO_ORDER = [Differs("bools are ordered, False before True; torch has no kernel for them", "values", "bool")]


def _check_searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:
    if sorter is not None and not isinstance(sorter, Tensor):
        raise TypeError(
            errors.message("searchsorted()", expected="sorter to be a Tensor", found=errors.describe(sorter))
        )
    return sorted_sequence, input, _side(right, side), out_int32, sorter


def _search_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap: many values in one sequence, or rows of them in as many."""
    sequence, values, *rest, sorter = op.padded(args, kwargs)
    if not isinstance(values, Tensor):
        return looped(level, op, args, kwargs)
    if not level.varies(sequence):
        if sequence._data.ndim != 1 or any_instance([sorter], Tensor):
            return looped(level, op, args, kwargs)
        return op.unchecked(level.value(sequence), level.value(values), *rest, sorter)
    ranks = {t._data.ndim for t in (sequence, values, sorter) if isinstance(t, Tensor)}
    if len(ranks) > 1 or 0 in ranks or sequence._data.shape[:-1] != values._data.shape[:-1]:
        return looped(level, op, args, kwargs)
    return op.unchecked(
        level.lower(sequence), level.lower(values), *rest, sorter if sorter is None else level.lower(sorter)
    )


@constant(
    checks=_check_searchsorted,
    batch=_search_of_each,
    method=False,
    out="exact",
    samples=_search_samples,
    kinks=[S(V([-inf, 0.0, 1.0, inf]), V([nan, inf, -inf, -0.0]), right=r) for r in (False, True)],
    refused=lambda: [
        S(A(3), A(2), side="middle"),
        S(A(3), A(2), side="left", right=True),
        S(A(2, 3), A(2)),
        S(A(2, 3), A(1, 2)),
        S(A(2, 3), 1.5),
        S(A(), A(2)),
        S(A(3), A(2), sorter=V([0, 1], "int64")),
        S(A(3), A(2), sorter=V([0.0, 1.0, 2.0])),
        S(A(3), A(2), sorter=V([0, 1, 7], "int64")),
        S(A(3, dtype="complex64"), A(3, dtype="complex64")),
        S(A(3)),
        S([1.0, 2.0], A(2)),
    ],
    differs=_NO_ORDER,
)
@on_arrays
def searchsorted(sequence: Any, values: Any, where: str, int32: bool, sorter: Any) -> Any:
    """The position at which to insert each of `input` in a sorted sequence (or in its rows, for the rows of `input`).

    It is before equal elements or, with ``right=True`` (``side="right"``), after them. sorter: indices that sort the
    sequence. The result is int64, or int32 on request, and has no derivative.

    >>> import pullback
    >>> pullback.searchsorted(pullback.tensor([1.0, 3.0, 5.0]), pullback.tensor([3.0, 4.0]))
    tensor([1, 2])
    """
    refuse_unordered("searchsorted", sequence)
    values = values if is_array(values) else beside(sequence, np.asarray(values))
    shape = sequence.shape
    if not shape or (len(shape) > 1 and values.shape[:-1] != shape[:-1]):
        raise RuntimeError(
            errors.message(
                "searchsorted(): the first N-1 dimensions of boundaries tensor and input value tensor must match, and "
                "the input can be a number only when boundaries tensor dimension is 1",
                found=f"{list(shape)} and {list(values.shape)}",
            )
        )
    if sorter is not None:
        _check_sorter(sequence, sorter)
    if len(shape) == 1:
        found = np.searchsorted(sequence, values, where, sorter)  # type: ignore[call-overload]
    else:
        found = empty_beside(sequence, values.shape, np.int64)
        for row in np.ndindex(shape[:-1]):
            by = None if sorter is None else sorter[row]
            found[row] = np.searchsorted(sequence[row], values[row], where, by)  # type: ignore[call-overload]
    return writable(found).astype(np.int32 if int32 else np.int64, copy=False)


@composite(
    method=False,
    out="exact",
    samples=lambda: [
        *(S(V([[0.0, 1.0, 3.0], [4.0, 7.0, 8.0]]), V([1.0, 3.0, 3.0, 7.0]), right=r) for r in (False, True)),
        S(V([0.0, 4.0]), V([1.0, 3.0]), out_int32=True),
        S(4.0, V([1.0, 3.0, 7.0])),
        S(3, V([1.0, 3.0, 7.0]), right=True),
        S(V(3.0), V([1.0, 3.0, 7.0])),
        S(V([], "float64"), V([1.0, 3.0], "float64")),
    ],
    refused=lambda: [S(A(2), A(2, 2)), S(A(2), A()), S(A(2)), S("x", A(2)), S(A(2), [1.0, 2.0])],
    differs=_NO_ORDER,
)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket of each element: the number of sorted `boundaries` that are smaller (``right=True``: not larger).

    >>> import pullback
    >>> pullback.bucketize(pullback.tensor([0.5, 1.0, 9.0]), pullback.tensor([1.0, 3.0]))
    tensor([0, 0, 2])
    """
    if not isinstance(input, (Tensor, bool, int, float, np.number)):
        raise TypeError(errors.message("bucketize()", expected="a Tensor or a number", found=errors.describe(input)))
    if boundaries._data.ndim != 1:
        raise RuntimeError(
            errors.message("bucketize(): boundaries tensor must be 1 dimension", found=errors.describe(boundaries))
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def _isin_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: a single call if `test_elements` does not vary. Elements may repeat in it, so `assume_unique` is off."""
    elements, tests, _, invert = args
    if level.varies(tests):
        return looped(level, op, args, kwargs)
    return op.unchecked(level.value(elements), level.value(tests), False, invert)


def _check_isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    given = elements, test_elements
    if not any(isinstance(t, Tensor) for t in given) or not all(
        isinstance(t, (Tensor, int, float, np.number)) for t in given
    ):
        raise TypeError(
            errors.message(
                "isin()", expected="two Tensors, or one and a number", found=", ".join(map(errors.describe, given))
            )
        )
    first, second = (t if isinstance(t, Tensor) else wrap(np.asarray(t)) for t in given)
    return first, second, assume_unique, invert


@constant(
    checks=_check_isin,
    batch=_isin_of_each,
    method=False,
    out="exact",
    narrow=lambda given: {name: rounded(v) if name.endswith("elements") else v for name, v in given.items()},
    samples=lambda: [
        S(V([1, 2, 3], "int64"), V([2, 3], "int64")),
        S(V([[1.0, 2.0, 3.0]], "float64"), V([[2.0, 3.0]], "float64"), invert=True),
        S(V([1.0, 2.0, 3.0], "float32"), V([3, 1], "int64"), assume_unique=True),
        S(V([1.0, 2.0], "float64"), 2),
        S(2, V([1.0, 2.0], "float64")),
        S(V([], "float64"), V([1.0], "float64")),
        S(V([1.0], "float64"), V([], "float64")),
        S(V(1.0, "float64"), V([1.0], "float64")),
        S(elements=V([1, 2], "int64"), test_elements=V([2], "int64")),
    ],
    kinks=[S(V([1.0, nan, inf, -0.0]), V([nan, inf, 0.0]))],
    refused=lambda: [
        S(2, 2),
        S(A(2), "x"),
        S(A(2)),
        S(A(2, dtype="complex64"), A(2, dtype="complex64")),
        S(A(2), [1.0]),
    ],
)
def isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Any:
    """Whether each of `elements` is among `test_elements` (``invert=True``: is not). Either argument may be a number.

    >>> import pullback
    >>> pullback.isin(pullback.tensor([1, 2, 3]), pullback.tensor([1, 3]))
    tensor([ True, False,  True])
    """
    for part in (elements, test_elements):
        refuse_unordered("isin", part, RuntimeError, "bc")
    dtype = dtypes.result_type([elements, test_elements])
    elements, test_elements = (
        a.astype(dtype) for a in (beside(test_elements, elements), beside(elements, test_elements))
    )
    found = np.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    return writable(found)


# Distinct elements ----------------------------------------------------------------------------------------------------


def _distinct_rule(g: Any, out1: Any, out2: Any, dim: Any, input_shape: Any) -> Any:
    # shared evenly among equal elements
    axis = 0 if dim is None else wrap_axis(dim, len(input_shape))
    lead = (1,) * axis
    shares = np.true_divide(g[0], np.reshape(out2, (*lead, -1, *(1,) * (np.ndim(g[0]) - axis - 1))))
    if dim is None:
        return np.reshape(pick(shares, 0, np.reshape(out1, (-1,))), input_shape)
    index = np.reshape(out1, (*lead, -1, *(1,) * (len(input_shape) - axis - 1)))
    return pick(shares, axis, np.broadcast_to(index, input_shape))


@special(name="_unique", method=False, batch="refused", said="unique()", shape_from_values=True, input=_distinct_rule)
def distinct_elements(input: Any, dim: Any, equal_nan: bool = False) -> Any:
    """The distinct elements in order, the position of each input element among them, and the count of each."""
    refuse_unordered("unique", input)
    if dim is None:
        return _counted(np.unique(input, return_inverse=True, return_counts=True, equal_nan=equal_nan), input.shape)
    axis = _axis_of_slices("unique", input, dim)
    if not input.shape[axis]:
        none = zeros_beside(input, (0,), np.int64)
        return np.copy(input), none, np.copy(none)
    return _counted(np.unique(input, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan), (-1,))


def _counted(found: Any, shape: Any) -> tuple[Any, Any, Any]:
    values, inverse, counts = found
    return values, np.reshape(inverse, shape), counts


def _axis_of_slices(name: str, input: Any, dim: int) -> int:
    if not input.ndim:
        raise IndexError(errors.message(f"{name}()", expected="at least one dimension for dim", found="a 0-d tensor"))
    axis = wrap_axis(dim, input.ndim)
    if not input.size and any(n == 0 for i, n in enumerate(input.shape) if i != axis):
        raise RuntimeError(
            errors.message(
                f"{name}(): There are 0 sized dimensions, and they aren't selected", found=errors.describe(input)
            )
        )
    return axis


@special(method=False, batch="refused", said="unique_consecutive()", shape_from_values=True, input=_distinct_rule)
@on_arrays
def _unique_consecutive(input: Any, dim: Any) -> Any:
    """As `distinct_elements`, for runs of equal elements, in the order of the input."""
    refuse_unordered("unique_consecutive", input)
    axis = 0 if dim is None else _axis_of_slices("unique_consecutive", input, dim)
    rows = np.reshape(input, -1) if dim is None else np.moveaxis(input, axis, 0)
    starts = full_beside(rows, (len(rows),), True, bool)
    changes = rows[1:] != rows[:-1]
    starts[1:] = np.any(changes, axis=tuple(range(1, rows.ndim))) if rows.ndim > 1 else changes
    places = np.flatnonzero(starts)
    counts = np.diff(places, append=beside(places, np.full(1, len(rows))))
    inverse = np.repeat(arange_beside(places, places.size), counts)
    values = np.moveaxis(rows[places], 0, axis)
    return contiguous(values), np.reshape(inverse, input.shape if dim is None else (-1,)), counts


def _asked_for(found: Any, return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    if not return_inverse and not return_counts:
        return values
    return (values, *[inverse] * bool(return_inverse), *[counts] * bool(return_counts))


_WITH_A_RULE = [Differs("torch has no derivative for it", check) for check in ("gradients", "second", "kinks")]


def _distinct_samples() -> list[Sample]:
    repeated = V([[1, 1, 0], [1, 1, 0], [1, 2, 0], [1, 1, 0]], "int64")
    flags = (True, False), (False, True), (True, True)
    return [
        S(A(4, domain="distinct")),
        S(V([3, 1, 2, 1], "int64")),
        S(repeated),
        *(S(repeated, return_inverse=i, return_counts=c, dim=d) for i, c in flags for d in (None, 0, -1)),
        S(repeated, dim=0),
        S(A(0)),
        S(A(2, 0), dim=1),
        S(A(), return_inverse=True, return_counts=True),
        S(A(2, 3, layout="T"), dim=1),
    ]


def _distinct_kinks() -> list[Sample]:
    return [S(V([nan, 1.0, nan, inf]), return_counts=True), S(V([0.0, -0.0])), S(V([[nan, 1.0], [nan, 1.0]]), dim=0)]


_NOT_DISTINCT = [S(A(2, 2), dim=2), S(A(), dim=0), S([1.0]), S(A(2), nonsense=1)]


@composite(
    out=False,
    shape_from_values=True,
    samples=lambda: [*_distinct_samples(), S(V([3, 1, 1], "int64"), True, True, True), S(A(4), sorted=False)],
    kinks=_distinct_kinks,
    refused=lambda: [*_NOT_DISTINCT, S(A(2, 0), dim=0), S(A(2, dtype="complex64"))],
    differs=_WITH_A_RULE,
)
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The distinct elements (or slices along `dim`) in order; on request, with positions and counts.

    `return_inverse` adds the position of each input element among them, `return_counts` the count of each. NaN is
    distinct from NaN.

    >>> import pullback
    >>> pullback.tensor([3, 1, 2, 1]).unique(return_counts=True)
    (tensor([1, 2, 3]), tensor([2, 1, 1]))
    """
    return _asked_for(distinct_elements(input, dim), return_inverse, return_counts)


@composite(
    out=False,
    samples=lambda: [*_distinct_samples(), S(V([1, 1, 2, 2, 1], "int64"), True, True)],
    kinks=_distinct_kinks,
    refused=lambda: _NOT_DISTINCT,
    differs=_WITH_A_RULE,
)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The first of each run of equal elements (or slices along `dim`), in the order of the input; see `unique`.

    >>> import pullback
    >>> pullback.tensor([1, 1, 2, 2, 1]).unique_consecutive()
    tensor([1, 2, 1])
    """
    return _asked_for(_unique_consecutive(input, dim), return_inverse, return_counts)

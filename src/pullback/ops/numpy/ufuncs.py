"""Methods of NumPy's ufuncs on Tensors: ``np.add.reduce(t)``, ``np.maximum.accumulate(t)``, ``np.hypot.outer(t, u)``.

They are entered in `NUMPY` as pairs of the ufunc (None: every ufunc) and the name of the method. Unlike functions,
`reduce` and `accumulate` run along the first axis by default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...tensor.arrays import as_array, broadcasts_to
from ...tensor.tensor import NUMPY, Tensor, is_tracked, wrap
from ..make.conversion import to
from ..reduce.extremes import amax, amin
from ..reduce.scans import cummax, cummin, cumprod, cumsum, logcumsumexp
from ..reduce.sums import all, any, logsumexp, sum
from ..shape.reshape import broadcast_to


def _over(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``ufunc.reduce`` from a function of a tensor, an axis and `keepdims`."""

    def reduce(array: Tensor, axis: Any = 0, keepdims: bool = False) -> Tensor:
        return function(array, axis, keepdims)

    return reduce


def _sum(array: Tensor, axis: Any = 0, dtype: Any = None, keepdims: bool = False) -> Tensor:
    return sum(array, axis, keepdims, dtype=dtype)


def _prod(array: Tensor, axis: Any = 0, dtype: Any = None, keepdims: bool = False) -> Tensor:
    return np.prod(array, axis=axis, dtype=dtype, keepdims=keepdims)


def _outer(ufunc: np.ufunc, A: Any, B: Any, **how: Any) -> Tensor:
    """The ufunc applied to every pair of an element of A and an element of B."""
    A, B = (v if isinstance(v, Tensor) else as_array(v) for v in (A, B))
    return ufunc(np.reshape(A, (*A.shape, *(1,) * B.ndim)), B, **how)


def _at(ufunc: np.ufunc, a: Any, indices: Any, *b: Any) -> None:
    """Add to a Tensor at positions, which may repeat; refuse what would lose a gradient. Other Tensors are values."""
    given = [a, indices, *b]
    if isinstance(a, Tensor) and ufunc in (np.add, np.subtract):
        _add_at(ufunc, *given)
        return
    if isinstance(a, Tensor) or any_recorded(given):
        begin = "numpy.zeros_like(source, float, shape=...)"
        do = f"add to a Tensor, by numpy.add.at(t, index, source), where t begins as {begin}"
        if ufunc not in (np.add, np.subtract):
            theirs = f"numpy.{ufunc.__name__}(t[index]{', values' * (ufunc.nin > 1)})"
            do = f"write t[index] = {theirs} with a Tensor t, if no position repeats; only numpy.add.at has a rule"
        raise TypeError(
            f"numpy.{ufunc.__name__}.at() writes in place into its first argument, which has no derivative rule: the "
            "gradient would be lost.\n"
            f"  What to do: {do}; or use t.detach().numpy() if no gradient is wanted."
        )
    ufunc.at(a, *(v._data if isinstance(v, Tensor) else v for v in given[1:]))


def _add_at(ufunc: np.ufunc, a: Tensor, indices: Any, b: Any) -> None:
    parts = indices if isinstance(indices, tuple) else (indices,)
    index = tuple([part.detach().numpy() if isinstance(part, Tensor) else part for part in parts])
    places = as_array(np.arange(a.numel()).reshape(a.shape)[index])
    source = b if isinstance(b, Tensor) else wrap(as_array(b))
    kind, shape = source._data.dtype, tuple(source.shape)
    casts = np.can_cast(kind, a._data.dtype, "same_kind")
    if not (casts and broadcasts_to(shape, places.shape)):
        fits = f"values for {a.dtype} that broadcast to the shape of the index, {list(places.shape)}"
        raise (ValueError if casts else TypeError)(
            errors.message(f"numpy.{ufunc.__name__}.at()", expected=fits, found=errors.describe(b))
        )
    values = broadcast_to(to(source, a.dtype), places.shape)
    a.put_(wrap(places), -values if ufunc is np.subtract else values, accumulate=True)


def any_recorded(values: list[Any]) -> bool:
    """Whether there is a Tensor that requires grad among the values."""
    return bool([v for v in values if isinstance(v, Tensor) and is_tracked(v)])


NUMPY.update(
    {
        (np.add, "reduce"): _sum,
        (np.multiply, "reduce"): _prod,
        (np.maximum, "reduce"): _over(amax),
        (np.minimum, "reduce"): _over(amin),
        (np.logaddexp, "reduce"): _over(logsumexp),
        (np.logical_and, "reduce"): _over(all),
        (np.logical_or, "reduce"): _over(any),
        (np.add, "accumulate"): lambda array, axis=0, dtype=None: cumsum(array, axis, dtype=dtype),
        (np.multiply, "accumulate"): lambda array, axis=0, dtype=None: cumprod(array, axis, dtype=dtype),
        (np.maximum, "accumulate"): lambda array, axis=0: cummax(array, axis)[0],
        (np.minimum, "accumulate"): lambda array, axis=0: cummin(array, axis)[0],
        (np.logaddexp, "accumulate"): lambda array, axis=0: logcumsumexp(array, axis),
        (None, "outer"): _outer,
        (None, "at"): _at,
    }
)

"""``axis=()`` in NumPy's reductions: no axis is reduced. (torch's ``dim=()`` means all axes.)"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tensor.tensor import NUMPY
from . import reductions, ufuncs  # noqa: F401 - they enter some of the reductions below


def _with_no_axes(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction that takes ``axis=()`` in NumPy's meaning: it reduces a new last axis, of length 1, instead."""
    signature = inspect.signature(rule)
    first, place = next(iter(signature.parameters)), list(signature.parameters).index("axis")

    @functools.wraps(rule)
    def reduce(*args: Any, **kwargs: Any) -> Any:
        axis = kwargs.get("axis") if len(args) <= place else args[place]
        if type(axis) is not tuple or axis:
            return rule(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        for name in (first, "weights"):
            if given.get(name) is not None:
                given[name] = np.expand_dims(given[name], -1)
        given.update(axis=-1, keepdims=False)
        return rule(*bound.args, **bound.kwargs)

    return reduce


_REDUCTIONS = [
    *(np.sum, np.prod, np.mean, np.std, np.var, np.max, np.amax, np.min, np.amin, np.ptp, np.any, np.all),
    *(np.nansum, np.nanprod, np.nanmean, np.nanstd, np.nanvar, np.nanmax, np.nanmin, np.count_nonzero, np.average),
    *(np.median, np.nanmedian, np.quantile, np.nanquantile, np.percentile, np.nanpercentile, np.linalg.vector_norm),
    *[key for key in NUMPY if isinstance(key, tuple) and key[1] == "reduce"],
]
NUMPY.update({function: _with_no_axes(NUMPY[function]) for function in _REDUCTIONS})

"""NumPy's functions without a gradient, which are called on the values of Tensors, and those that are refused.

Positions, questions about dtypes and shapes, and text have no derivative. Some only ask for dtypes and shapes: they
need no values, so they work within `vmap` too. A function that is refused has a derivative, but no rule; `INSTEAD` says
what to write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tensor.protocol import INSTEAD
from ...tensor.tensor import NUMPY, Tensor


def _value(t: Tensor) -> Any:
    return t.detach().numpy()


def _likeness(t: Tensor) -> Any:
    """An array of the dtype and the shape of a Tensor, in the memory of one element."""
    return np.broadcast_to(np.zeros((), t._data.dtype), t._data.shape)


def _called(function: Callable[..., Any], array_of: Callable[[Tensor], Any]) -> Callable[..., Any]:
    """The function, called with an array for each Tensor among the arguments."""

    def convert(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(convert(v) for v in value)
        return array_of(value) if isinstance(value, Tensor) else value

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*convert(args), **{k: convert(v) for k, v in kwargs.items()})

    return call


BY_VALUE: list[Callable[..., Any]] = [
    *(np.array2string, np.array_repr, np.array_str, np.array_equiv, np.may_share_memory, np.shares_memory),
    *(np.digitize, np.lexsort, np.nanargmax, np.nanargmin, np.ix_, np.ravel_multi_index),
    *(np.min_scalar_type, np.packbits, np.unpackbits, np.isnat, np.datetime_as_string),
    *(np.busday_count, np.busday_offset, np.is_busday),
    *([np.bitwise_count] if hasattr(np, "bitwise_count") else []),  # NumPy 2.0
]
BY_SHAPE: list[Callable[..., Any]] = [
    *(np.result_type, np.common_type, np.can_cast, np.einsum_path),
    *(np.diag_indices_from, np.tril_indices_from, np.triu_indices_from),
]
NUMPY.update({function: _called(function, _value) for function in BY_VALUE})
NUMPY.update({function: _called(function, _likeness) for function in BY_SHAPE})

_UNIQUE = "write np.unique(t), with return_index=True and its like for the positions"
_WRITE: dict[Any, str] = {
    np.histogram2d: "write np.bincount of the cells, with weights=",
    np.histogramdd: "write np.bincount of the cells, with weights=",
    np.intersect1d: "write np.unique(t)[np.isin(np.unique(t), other)]",
    np.poly: "write it with np.convolve, from the roots",
    np.polydiv: "write the quotient as the solution of a linear system",
    np.roots: "write np.linalg.eigvals of the companion matrix",
    np.setdiff1d: "write np.unique(t)[~np.isin(np.unique(t), other)]",
    np.setxor1d: _UNIQUE,
    np.sort_complex: "write np.sort",
    np.spacing: "write np.nextafter(t, np.inf) - t",
    np.trim_zeros: "write a slice",
    np.union1d: "write np.unique(np.concatenate([a, b]))",
    **dict.fromkeys((np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values), _UNIQUE),
    **dict.fromkeys((np.save, np.savetxt, np.savez, np.savez_compressed), "save t.detach().numpy()"),
}
"""Functions of NumPy that are refused if a gradient would be lost."""
INSTEAD.update(_WRITE)

"""`apply_`, `map_` and `map2_`: they call a Python function for each element and store its results.

They have no derivatives and are as slow as Python: use operations wherever you can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..ops.index.fill import copy_into
from ..ops.make.from_data import tensor
from ..table.entry import method
from ..table.writing import refuse_write
from ..tensor.tensor import Lifted, Tensor


def _each(name: str, call: Callable[..., Any], self: Tensor, *others: Any) -> Tensor:
    for other in others:
        if not isinstance(other, Tensor):
            raise TypeError(errors.message(f"{name}()", expected="Tensors", found=errors.describe(other)))
        if other.dtype is not self.dtype:
            raise TypeError(errors.message(f"{name}()", expected=f"a tensor of {self.dtype}", found=f"{other.dtype}"))
    if any(isinstance(t, Lifted) for t in (self, *others)):
        raise NotImplementedError(
            f"{name}() does not support transforms and forward AD.\n  What to do: use operations of the library."
        )
    if any(t._requires_grad for t in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on a tensor that requires grad.\n  What to do: call it on x.detach().")
    refuse_write(self)
    try:
        values = [np.broadcast_to(t._data, self._data.shape).ravel().tolist() for t in (self, *others)]
    except ValueError as error:
        found = ", ".join(str(list(t._data.shape)) for t in others)
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"what broadcasts to {list(self._data.shape)}", found=found)
        ) from error
    made = tensor([call(*elements) for elements in zip(*values, strict=True)], dtype=self.dtype)
    return copy_into(self, made.reshape(self._data.shape))


@method("apply_", named=True)
def _apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element x, a Python number, by ``callable(x)``, converted to this tensor's dtype.

    RuntimeError for a tensor that requires grad.

    >>> import pullback
    >>> pullback.tensor([1.0, -2.0]).apply_(lambda v: 0.0 if v < 0 else 2 * v)
    tensor([2., 0.])
    """
    return _each("apply_", callable, self)


@method("map_", named=True)
def _map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element x by ``callable(x, y)``, y from `tensor`, which has the same dtype and is broadcast."""
    return _each("map_", callable, self, tensor)


@method("map2_", named=True)
def _map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element x by ``callable(x, y, z)``, with y and z from two tensors of the same dtype, broadcast."""
    return _each("map2_", callable, self, x, y)

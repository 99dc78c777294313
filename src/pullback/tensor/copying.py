"""Copying and pickling of tensors: `copy.deepcopy`, `copy.copy` and `pickle`."""

from __future__ import annotations

import warnings
from copy import _reconstruct, deepcopy  # type: ignore[attr-defined]
from typing import Any

import numpy as np

from .. import errors
from .tensor import PLAIN, Tensor, wrap_as


def rebuilt(cls: type[Tensor], payload: Any, requires_grad: bool, attributes: dict[str, Any] | None) -> Tensor:
    """The tensor that a pickle describes. Pickles name this function `pullback.Tensor._rebuilt`."""
    made = wrap_as(cls, payload)
    vars(made).update(attributes or {})
    made.requires_grad = requires_grad
    return made


rebuilt.__module__, rebuilt.__qualname__ = "pullback", "Tensor._rebuilt"
_rebuilt = rebuilt  # the name in pickles of earlier versions


def _reduce(self: Tensor, protocol: Any) -> Any:
    """The pickle of a tensor: its values, `requires_grad` and attributes; no gradient, and no place in a graph."""
    if self._edge is None and self._leaf is not None and type(self) not in PLAIN - {Tensor}:
        for hook in self._leaf[0].hooks.values():  # a Parameter's are dropped silently, as in torch
            if not hasattr(hook, "__torch_unserializable__"):
                warnings.warn(
                    f"the hook {hook!r} on a tensor is not among what is pickled or copied.\n  What to do: register it "
                    "on what comes back; if that is as it should be, set hook.__torch_unserializable__ = True.",
                    stacklevel=errors.callers_level(),
                )
    return rebuilt, (type(self), self._data, self._requires_grad, vars(self) or None)


def _copy(self: Tensor) -> Any:
    """What the pickle of a tensor describes, on its memory; the graph's edge does not go with it, which is told."""
    if isinstance(self, Tensor) and self._edge is not None:
        errors.tell(
            "copy.copy() of a Tensor that is not a leaf gives a leaf on the same memory, as in PyTorch: no gradient "
            "goes from it to where the values came from.\n  What to do: write tensor.clone(), or numpy.copy(tensor), "
            "which are recorded; copy.copy(tensor.detach()) for a leaf.",
            errors.callers_level() + 1,  # past the module copy
        )
    return _reconstruct(self, None, *self.__reduce_ex__(4))


def _copied(array: Any, memo: dict[int, Any]) -> Any:
    """A copy of a payload. Payloads that share memory give copies that share memory, if made with one memo."""
    base = array
    while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
        base = base.base
    if base is array or not (base.flags.c_contiguous or base.flags.f_contiguous):
        return deepcopy(array, memo)
    whole = deepcopy(base, memo)
    start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, whole.ravel("K").view(np.uint8), start, array.strides)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with memory, a gradient and attributes of its own; RuntimeError for a tensor that is not a leaf."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.\n"
            "  What to do: copy it with clone(), which is recorded, or copy its detach()."
        )
    made = memo[id(self)] = wrap_as(type(self), _copied(self._data, memo))
    vars(made).update(deepcopy(vars(self), memo))
    made.requires_grad = self._requires_grad
    if self._grad is not None:
        if self._grad.dtype is not self.dtype:  # the copy may hold it only with the same `grad_dtype`
            made.grad_dtype = self.grad_dtype
        made._grad = deepcopy(self._grad, memo)
    return made

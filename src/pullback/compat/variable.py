"""`Variable`, once the class of tensors with a gradient: older code still runs.

Today every Tensor is one, and `Variable(t)` is a leaf on the memory of `t`.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..autograd.engine import queue_callback
from ..tensor.tensor import Tensor

__all__ = ["Variable"]


def __dir__() -> list[str]:
    return sorted(__all__)


class _Engine:
    """`Variable._execution_engine`, by which older code queues callbacks."""

    queue_callback = staticmethod(queue_callback)


class _IsTensor(type):
    """Makes every Tensor an instance of `Variable`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_IsTensor):
    """``Variable(data)`` is a leaf on the memory of the Tensor `data`; every Tensor is an instance.

    >>> import pullback
    >>> x = pullback.autograd.Variable(pullback.ones(2), requires_grad=True)
    >>> x
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(x * 2, pullback.autograd.Variable)
    True
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        """A leaf on the memory of `data`. TypeError unless it is a Tensor, RuntimeError if it can have no gradient."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


errors.doors(globals(), "Variable")

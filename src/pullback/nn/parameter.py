"""Parameter and Buffer: tensors that a Module registers when they are set as its attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..ops.sparse.coo import SparseTensor
from ..tensor import dtypes
from ..tensor.overrides import disabled_torch_function_impl
from ..tensor.tensor import PLAIN, Lifted, Tensor, wrap, wrap_as

__all__ = ["Buffer", "Parameter"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Parameter(Tensor):
    """A leaf that is trained: set as an attribute of a Module, it is among the module's `parameters()`.

    It shares the memory of `data`, outside any graph of `data`. It requires a gradient even if it is made
    under `no_grad`. Without `data` it is empty. Results of operations on it are plain Tensors.

    Raises:
        TypeError: `data` is not a Tensor.
        RuntimeError: `requires_grad` is True and the dtype is neither floating point nor complex.
        NotImplementedError: `data` is sparse (make a Parameter of its values), or belongs to a transform.

    >>> import pullback
    >>> pullback.nn.Parameter(pullback.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html.
    """

    __slots__ = ()
    __torch_function__ = staticmethod(disabled_torch_function_impl)

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """See the class."""
        made: Any = wrap_as(cls, np.empty(0, dtypes.default()) if data is None else _payload("Parameter()", data))
        made.requires_grad = requires_grad
        if data is not None:
            made._version_of = data._share_version()
        return made

    # Tensor's methods make tensors of the same class; here they make plain Tensors.

    def detach(self) -> Tensor:
        """A plain Tensor on the same memory that is not part of the graph; the two share their version counter."""
        alias = wrap(self._data)
        alias._version_of = self._share_version()
        return alias

    @property
    def data(self) -> Tensor:
        """The same memory as a plain Tensor outside the graph, with a version counter of its own."""
        return wrap(self._data)

    @data.setter
    def data(self, value: Tensor) -> None:
        vars(Tensor)["data"].__set__(self, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """A Parameter with its own memory; as in torch, its gradient, hooks and attributes are not copied."""
        made = memo.get(id(self))
        if made is None:
            made = memo[id(self)] = type(self)(wrap(np.copy(self._data, order="K")), self._requires_grad)
        return made

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


PLAIN.add(Parameter)


class _Marked(type):
    """The type of `Buffer`, whose instances are tensors that carry a mark."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_Marked):
    """A tensor that is part of a module's state and not trained; set as an attribute, it is among the `buffers()`.

    It is a plain Tensor on the memory of `data`, with a mark. `persistent` says whether it belongs to the module's
    `state_dict`.

    >>> import pullback
    >>> module = pullback.nn.Module()
    >>> module.count = pullback.nn.Buffer(pullback.zeros(1))
    >>> list(module.state_dict())
    ['count']

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Buffer.html.
    """

    __slots__ = ()
    __torch_function__ = staticmethod(disabled_torch_function_impl)

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        """See the class."""
        made: Any = wrap(np.empty(0, dtypes.default()) if data is None else _payload("Buffer()", data))
        if data is not None:
            made.requires_grad = data.requires_grad
            made._version_of = data._share_version()
        made.persistent, made._is_buffer = persistent, True
        return made


def _payload(where: str, data: Any) -> Any:
    """The payload of a tensor with elements in memory."""
    if not isinstance(data, Tensor):
        raise TypeError(
            errors.message(where, expected="a Tensor", found=errors.describe(data), do="write pullback.tensor(...)")
        )
    if isinstance(data, Lifted):
        found, do = "one inside, of vmap or grad, say", "make it outside, and give it to the function as an argument"
        found, do = getattr(data._data, "as_parameter", (found, do))
        raise NotImplementedError(
            errors.message(where, expected="a tensor outside of every transform", found=found, do=do)
        )
    if isinstance(data, SparseTensor):
        raise NotImplementedError(
            errors.message(
                where,
                expected="a dense tensor",
                found="a sparse one",
                do="keep its values() as the parameter, and make the sparse tensor of them in forward()",
            )
        )
    return data._data


errors.doors(globals(), "Buffer Parameter")

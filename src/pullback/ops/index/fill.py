"""Writing in place: `fill_`, `zero_`, `copy_`, `masked_fill_`; and `fill` and `detach` as functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import alias, method
from ...tensor.arrays import broadcasts_to
from ...tensor.tensor import Tensor, wrap
from ..make.conversion import placed
from ..shape.reshape import expand
from .assignment import write
from .gather import check_mask, fitting_number

_ALL = (Ellipsis,)


@method("fill_")
def _fill(self: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a number or a 0-d tensor."""
    write(_tensor("fill_", self), _ALL, _fitting("fill_", self, value), one_value=not isinstance(value, Tensor))
    return self


def _fitting(name: str, t: Tensor, value: Any) -> Any:
    """A number or a 0-d tensor in the dtype of `t`; a complex tensor unchanged, since `write` casts it itself."""
    if isinstance(value, Tensor) and not value._data.ndim and value._data.dtype.kind == "c":
        return value
    return fitting_number(name, t, value)


@method("zero_")
def _zero(self: Tensor) -> Tensor:
    """Set every element to 0."""
    write(_tensor("zero_", self), _ALL, 0, one_value=True)
    return self


@method("copy_")
def copy_into(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write the values of `src`, a tensor or a number, broadcast and converted; gradients flow to `src`.

    `src` may lie on another device. non_blocking: the host does not wait for a copy from or to pinned memory.
    """
    if not isinstance(src, (Tensor, np.ndarray, bool, int, float, complex)):
        raise errors.no_tensor("copy_()", src)
    if isinstance(src, (Tensor, np.ndarray)) and not broadcasts_to(tuple(src.shape), self._data.shape):
        raise RuntimeError(
            errors.message(
                "copy_()", expected=f"what broadcasts to {list(self._data.shape)}", found=errors.describe(src)
            )
        )
    try:
        given: Any = src
        found = wrap(given) if isinstance(given, np.ndarray) else given
        if isinstance(found, Tensor) and not (type(found._data) is type(self._data) is np.ndarray):
            found = placed(found, self.device, non_blocking)
        write(self, _ALL, found)
    except Exception as error:
        errors.rename("copy_", error, (src,), keep=True)
        raise
    return self


@method("masked_fill_", named=True)
def _masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write `value` wherever `mask` is True."""
    check_mask("masked_fill_", mask)
    write(self, (expand(mask, self._data.shape),), _fitting("masked_fill_", self, value))
    return self


def detach(input: Tensor) -> Tensor:
    """`Tensor.detach`: a tensor on the same memory that is not part of the graph."""
    return _tensor("detach", input).detach()


def detach_(input: Tensor) -> Tensor:
    """`Tensor.detach_`: the tensor itself, taken out of the graph."""
    return _tensor("detach_", input).detach_()


def _tensor(name: str, input: Any) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="input to be a Tensor", found=errors.describe(input)))
    return input


def fill(input: Tensor, value: Any) -> Tensor:
    """`value`, a number or a 0-d tensor, in the shape and dtype of `input`; gradients flow to a 0-d tensor.

    >>> import pullback
    >>> pullback.fill(pullback.zeros(2), 3)
    tensor([3., 3.])
    """
    return _tensor("fill", input).clone().fill_(value)


alias("detach", detach)
alias("detach_", detach_)
alias("fill", fill)
alias("fill_", _fill)
alias("zero_", _zero)

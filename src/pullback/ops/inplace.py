"""In-place twins: `x.add_(y)`, `x += y`, `x.zero_()`, `x.copy_(y)`.

A twin computes what the operation computes, checks that the result fits, and only then writes. If the write is
recorded, the tensor becomes the output of the operation's node, whose input is a stand-in for what the tensor was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _dtypes, errors
from .._state import thread
from .._tensor import Tensor
from .creation import default_generator
from .indexing import check_mask, fitting_number, write
from .shape import expand
from .table import TABLE, Op
from .writing import before_write, refuse_write, take_history

_TWINS = (
    "add sub mul div neg pow remainder floor_divide exp expm1 log log1p log2 log10 sqrt rsqrt reciprocal square sin "
    "cos tan sinh cosh tanh sigmoid relu abs sign clamp floor ceil trunc round"
).split()
_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "pow": "pow",
    "mod": "remainder",
    "floordiv": "floor_divide",
}


def _twin(op: Op) -> Callable[..., Tensor]:
    call: Callable[..., Tensor] = op.call

    @functools.wraps(call)
    def twin(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        others = (*args, *kwargs.values())
        refuse_write(self, others)
        recorded = thread.modes.grad_enabled and (
            self._requires_grad or any(isinstance(o, Tensor) and o._requires_grad for o in others)
        )
        result = call(before_write(self) if recorded else self, *args, **kwargs)
        data = result._data
        if data.shape != self._data.shape:
            raise RuntimeError(
                f"output with shape {list(self._data.shape)} doesn't match the broadcast shape {list(data.shape)}"
            )
        if _dtypes.CATEGORY[data.dtype.kind] > _dtypes.CATEGORY[self._data.dtype.kind]:
            raise RuntimeError(
                errors.message(
                    f"{op.name}_(): result type {result.dtype} can't be cast to the desired output type {self.dtype}",
                    do=f"use {op.name}() without the underscore, or convert the tensor first",
                )
            )
        self._data[...] = data
        take_history(self, result)
        return self

    twin.__name__ = twin.__qualname__ = f"{op.name}_"
    twin.__doc__ = f"`{op.name}`, written into this tensor, which is returned."
    return twin


for _name in _TWINS:
    setattr(Tensor, f"{_name}_", _twin(TABLE[_name]))
for _operator, _name in _OPERATORS.items():
    setattr(Tensor, f"__i{_operator}__", getattr(Tensor, f"{_name}_"))

_ALL = (Ellipsis,)


def _fill(self: Tensor, value: Any) -> Tensor:
    """Every element `value`, a number or a 0-d tensor."""
    write(self, _ALL, fitting_number("fill_", self, value))
    return self


def _zero(self: Tensor) -> Tensor:
    """Every element 0."""
    write(self, _ALL, 0)
    return self


def _copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """The values of `src`, a tensor or a number, broadcast and converted; gradients then flow to `src`."""
    if not isinstance(src, (Tensor, np.ndarray, bool, int, float, complex)):
        raise TypeError(errors.message("copy_()", expected="a Tensor", found=errors.describe(src)))
    write(self, _ALL, src)
    return self


def _masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` wherever `mask` is True."""
    check_mask("masked_fill_", mask)
    value = fitting_number("masked_fill_", self, value)
    write(self, (expand(mask, self._data.shape)._data,), value)
    return self


def _normal(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Values drawn from a normal distribution."""
    stream = (generator or default_generator)._stream
    write(self, _ALL, (mean + std * stream.standard_normal(self._data.shape)).astype(self._data.dtype))
    return self


def _uniform(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Tensor:
    """Values drawn uniformly from [from, to)."""
    stream = (generator or default_generator)._stream
    write(self, _ALL, (from_ + (to - from_) * stream.random(self._data.shape)).astype(self._data.dtype))
    return self


for _name, _method in {
    "fill_": _fill,
    "zero_": _zero,
    "copy_": _copy,
    "masked_fill_": _masked_fill,
    "normal_": _normal,
    "uniform_": _uniform,
}.items():
    _method.__name__ = _name
    setattr(Tensor, _name, _method)

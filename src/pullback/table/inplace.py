"""In-place twins: `x.add_(y)`, `x += y`, `x.zero_()`, `x.copy_(y)`.

A twin computes what the operation computes, checks that the result fits, and only then writes. If the write is
recorded, the tensor becomes the output of the operation's node, whose input is a stand-in for what the tensor was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..ops.index.gather import check_mask, fitting_number
from ..ops.index.subscripts import write
from ..ops.shape.reshape import expand
from ..tensor import dtypes
from ..tensor.arrays import broadcasts_to
from ..tensor.modes import LEVELS, thread
from ..tensor.overrides import dispatch, overriding
from ..tensor.tensor import Tensor, is_tracked
from .calls import OPERANDS
from .entry import NAMES, TABLE, Op, alias
from .writing import before_write, put, refuse_write, take_history

_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "pow": "pow",
    "mod": "remainder",
    "floordiv": "floor_divide",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}


def _twin(op: Op, name: str = "", method: Callable[..., Tensor] | None = None) -> Callable[..., Tensor]:
    """The twin of an operation: of its function, or of the method of that name."""
    name, method = name or op.name.rpartition(".")[2], method or op.call

    @functools.wraps(method)
    def twin(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        others = (*args, *kwargs.values())
        if LEVELS.n and (kinds := overriding((self, *others))):
            return dispatch(kinds, twin, (self, *args), kwargs)
        refuse_write(self, others)
        recorded = thread.modes.grad_enabled and (  # here, or at a level below
            is_tracked(self) or any(isinstance(o, Tensor) and is_tracked(o) for o in others)
        )
        old = self
        if recorded:  # also where `self` is an operand: it will have other values, and hold the node that saved it
            old = before_write(self)
            args = tuple([old if a is self else a for a in args])
            kwargs = {key: old if a is self else a for key, a in kwargs.items()}
        result = method(old, *args, **kwargs)
        _check_fit(name, self, result)
        put(self, result)
        take_history(self, result)
        return self

    twin.__name__ = twin.__qualname__ = f"{name}_"
    twin.__doc__ = f"`{name}`, written into this tensor, which is returned."
    return twin


def _check_fit(name: str, t: Tensor, result: Tensor) -> None:
    """Refuse a result that `t` cannot hold."""
    old, new = t._data, result._data
    if new.shape != old.shape:
        raise RuntimeError(f"output with shape {list(old.shape)} doesn't match the broadcast shape {list(new.shape)}")
    lost = dtypes.CATEGORY[new.dtype.kind] > dtypes.CATEGORY[old.dtype.kind]
    if lost or (name == "float_power" and new.dtype != old.dtype):
        raise RuntimeError(
            errors.message(
                f"{name}_(): result type {result.dtype} can't be cast to the desired output type {t.dtype}",
                do=f"use {name}() without the underscore, or convert the tensor first",
            )
        )
    if old.dtype.kind == "c" and new.dtype.kind in "fV":
        raise RuntimeError(
            errors.message(
                f"In-place {name} is not supported for complex tensors", do=f"use {name}() without the underscore"
            )
        )


def enter_twins() -> None:
    """Give every entry that has one its in-place twin, under each of its names: a method and a function."""
    for op in list(TABLE.values()):
        wanted = op.kind == "elementwise" if op.about.inplace is None else op.about.inplace
        names = [op.name, *op.about.also.split()]
        for name in names if wanted else []:
            method = None if "." in name else getattr(Tensor, name, None)
            if method is not None and not hasattr(Tensor, f"{name}_"):
                twin = _twin(op, name, method)
                setattr(Tensor, f"{name}_", twin)
                NAMES[""][f"{name}_"] = twin
    for operator, name in _OPERATORS.items():
        setattr(Tensor, f"__i{operator}__", _operator(getattr(Tensor, f"{name}_")))


def _operator(twin: Callable[..., Tensor]) -> Callable[[Tensor, Any], Any]:
    """A twin as what stands behind ``+=``, where an operand it does not know is asked instead."""

    def call(self: Tensor, other: Any) -> Any:
        return twin(self, other) if isinstance(other, OPERANDS) else NotImplemented

    call.__name__, call.__doc__ = twin.__name__, twin.__doc__
    return call


_ALL = (Ellipsis,)


def _fill(self: Tensor, value: Any) -> Tensor:
    """Every element `value`, a number or a 0-d tensor."""
    write(self, _ALL, _fitting("fill_", self, value), one_value=not isinstance(value, Tensor))
    return self


def _fitting(name: str, t: Tensor, value: Any) -> Any:
    """A number or a 0-d tensor as what may be written to `t`; of a complex tensor, that is its real part."""
    if isinstance(value, Tensor) and not value._data.ndim and value._data.dtype.kind == "c":
        return value
    return fitting_number(name, t, value)


def _zero(self: Tensor) -> Tensor:
    """Every element 0."""
    write(self, _ALL, 0, one_value=True)
    return self


def _copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """The values of `src`, a tensor or a number, broadcast and converted; gradients then flow to `src`."""
    if not isinstance(src, (Tensor, np.ndarray, bool, int, float, complex)):
        raise TypeError(errors.message("copy_()", expected="a Tensor", found=errors.describe(src)))
    if isinstance(src, (Tensor, np.ndarray)) and not broadcasts_to(tuple(src.shape), self._data.shape):
        raise RuntimeError(
            errors.message(
                "copy_()", expected=f"what broadcasts to {list(self._data.shape)}", found=errors.describe(src)
            )
        )
    write(self, _ALL, src)
    return self


def _masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` wherever `mask` is True."""
    check_mask("masked_fill_", mask)
    write(self, (expand(mask, self._data.shape),), _fitting("masked_fill_", self, value))
    return self


for _name, _method in {
    "fill_": _fill,
    "zero_": _zero,
    "copy_": _copy,
    "masked_fill_": _masked_fill,
}.items():
    _method.__name__ = _name
    setattr(Tensor, _name, _method)


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
    """`value`, a number or a 0-d tensor, in the shape and dtype of `input`; to a tensor flow the gradients of all.

    >>> import pullback
    >>> pullback.fill(pullback.zeros(2), 3)
    tensor([3., 3.])
    """
    return _tensor("fill", input).clone().fill_(value)


for _call in (detach, detach_, fill, _fill, _zero):
    alias(_call.__name__, _call)

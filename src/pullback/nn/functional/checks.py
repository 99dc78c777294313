"""What activations and losses share: checks of dtypes, writing in place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...table.entry import Op, alias, pointwise
from ...table.inplace import twin_of
from ...tensor.tensor import Tensor
from .arguments import refuse


def floats_only(name: str, *payloads: Any) -> None:
    """Refuse payloads that are not of real floating point numbers."""
    for value in payloads:
        if value.dtype.kind != "f":
            raise refuse(
                name,
                "a floating point tensor",
                errors.describe(value),
                "convert it with .float()",
                NotImplementedError,
            )


@functools.cache
def _writer(op: Op) -> Callable[..., Tensor]:
    return twin_of(op)


def applied(inplace: bool, call: Callable[..., Any], input: Tensor, *args: Any) -> Tensor:
    """``call(input, *args)``; written into `input`, which is returned, if so asked."""
    if not inplace:
        return call(input, *args)
    return _writer(call.op)(input, *args)  # type: ignore[attr-defined]


def with_twin(call: Callable[..., Any], also: str = "") -> None:
    """Publish the form of an activation with an underscore, which writes into its input. also: further paths of it."""
    name = call.__name__

    def twin(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return call(input, *args, inplace=True, **kwargs)

    twin.__name__ = twin.__qualname__ = f"{name}_"
    errors.called(twin, f"{name}_")
    twin.__doc__ = f"`{name}`, written into `input`, which is returned."
    for path in (f"nn.functional.{name}_", *also.split()):
        alias(path, twin)


@pointwise(home="nn.functional", input=lambda g: g)
def _at_least(input: Any, bound: float) -> Any:
    return np.maximum(input, bound)


def at_least(input: Tensor, bound: float) -> Tensor:
    """``max(input, bound)`` with the derivative of `input`: a bound that keeps clear of a division by 0."""
    return _at_least(input, bound)

"""The right-hand side of a system and its other functions: of Tensors for the derivative, of arrays for SciPy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import errors
from ...ops.make.conversion import to
from ...ops.shape.joining import stack
from ...ops.shape.reshape import reshape
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import floating
from ..user_functions import captured, value_of

Array = np.ndarray[Any, Any]


class Given:
    """The Tensors in ``args=``, flat, and the way back."""

    def __init__(self, args: Any) -> None:
        self.args = args
        flat = list(leaves(args))
        self.places = {i for i, leaf in enumerate(flat) if isinstance(leaf, Tensor)}
        self.theta = [flat[i] for i in sorted(self.places)]
        self._flat = [None if i in self.places else leaf for i, leaf in enumerate(flat)]
        self._tree = rebuild(args, iter([None] * len(flat)))

    def filled(self, theta: Sequence[Any]) -> tuple[Any, ...]:
        """``args=`` with these in place of its Tensors."""
        if not self.places:
            return tuple(self._tree) if not self._flat else tuple(rebuild(self._tree, iter(self._flat)))
        parts: Iterator[Any] = iter(theta)
        return tuple(rebuild(self._tree, iter([next(parts) if i in self.places else x for i, x in enumerate(self._flat)])))


class UserFunction:
    """A function of t, y and ``args=`` that a person wrote, as a function of t, y and the Tensors among the args.

    shape: of its result; None for a number. columns: it takes and returns states as columns.
    """

    def __init__(
        self, where: str, fun: Callable[..., Any], given: Given, shape: tuple[int, ...], columns: bool = False
    ) -> None:
        self.where, self.fun, self.given, self.shape, self.columns = where, fun, given, shape, columns

    def raw(self, t: Any, y: Any, *theta: Any) -> Any:
        """What it returns, as a Tensor."""
        if self.columns:
            out = value_of(self.fun, self.where, self.fun(t, reshape(y, (-1, 1)), *self.given.filled(theta)))
            return reshape(out, (-1,))
        return value_of(self.fun, self.where, self.fun(t, y, *self.given.filled(theta)))

    def __call__(self, t: Any, y: Any, *theta: Any) -> Any:
        out = floating(self.raw(t, y, *theta))
        if tuple(out.shape) == self.shape:
            found = out
        elif out.numel() == int(np.prod(self.shape)):
            found = reshape(out, self.shape)
        elif out.numel() == 1:
            found = stack([reshape(out, ())] * self.shape[0])
        else:
            raise ValueError(
                errors.message(
                    f"{self.where}: the result of {getattr(self.fun, '__qualname__', 'the function')}",
                    expected=f"shape {self.shape}",
                    found=errors.describe(out),
                )
            )
        return to(found, y._data.dtype) if found._data.dtype != y._data.dtype and found._data.dtype.kind != "c" else found

    def reads(self, t: Any, y: Any) -> tuple[Tensor, ...]:
        """The tensors besides its arguments that it depends on."""
        theta = self.given.theta

        @functools.wraps(self.fun, assigned=("__qualname__", "__name__"), updated=())
        def flat(t: Any, y: Any, *theta: Any) -> Any:
            return self.raw(t, y, *theta)

        return captured(self.where, flat, t, y, *theta)

    def of_arrays(self, theta: Sequence[Any]) -> Callable[[Any, Any], Array]:
        """The function of a number and an array that SciPy calls."""

        def f(t: Any, y: Any) -> Any:
            return self.raw(wrap(np.array(t, np.float64)), wrap(np.array(y)), *theta)._data

        return f


__all__ = ["Given", "UserFunction"]

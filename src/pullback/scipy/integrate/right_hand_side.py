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
from ..user_functions import captured, name_of, value_of

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
        self._flat_tensors = len(args) == len(self.theta) and all(isinstance(a, Tensor) for a in args)

    def filled(self, theta: Sequence[Any]) -> tuple[Any, ...]:
        """``args=`` with these in place of its Tensors."""
        if self._flat_tensors:
            return tuple(theta)
        parts: Iterator[Any] = iter(theta)
        return tuple(
            rebuild(self._tree, iter([next(parts) if i in self.places else x for i, x in enumerate(self._flat)]))
        )


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
        given = self.given.filled(theta)
        if self.columns:
            out = value_of(self.fun, self.where, self.fun(t, reshape(y, (-1, 1)), *given))
            return reshape(out, (-1,))
        out = self.fun(t, y, *given)
        return out if type(out) is Tensor else value_of(self.fun, self.where, out)

    def __call__(self, t: Any, y: Any, *theta: Any) -> Any:
        out = self.raw(t, y, *theta)
        dtype = out._data.dtype
        if dtype != y._data.dtype and dtype.kind != "c":
            out = to(out, y._data.dtype)
        return out if out._data.shape == self.shape else self._shaped(out)

    def _shaped(self, out: Any) -> Any:
        """A result of another shape, as SciPy takes it: with further axes of length 1, or a number for all."""
        if out.numel() == int(np.prod(self.shape)):
            return reshape(out, self.shape)
        if out.numel() == 1 and self.shape:
            return stack([reshape(out, ())] * self.shape[0])
        raise ValueError(
            errors.message(
                f"{self.where}: the result of {name_of(self.fun)}",
                expected=f"shape {self.shape}",
                found=errors.describe(out),
            )
        )

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

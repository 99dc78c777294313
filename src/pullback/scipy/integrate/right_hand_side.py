"""The right-hand side of a system and its other functions: of Tensors for the derivative, of arrays for SciPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import errors
from ...ops.make.conversion import to
from ...ops.shape.joining import stack
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array
from ..direct_calls import Direct
from ..repeated_calls import Repeated
from ..user_functions import Given, name_of, value_of


class UserFunction:
    """A function of t, y and ``args=`` that a person wrote, as a function of t, y and the inputs of `given`.

    shape: of its result; None for a number. columns: it takes and returns states as columns. state_first: it takes y
    before t.
    """

    def __init__(
        self,
        where: str,
        fun: Callable[..., Any],
        given: Given,
        shape: tuple[int, ...],
        columns: bool = False,
        state_first: bool = False,
    ) -> None:
        self.where, self.fun, self.given, self.shape, self.columns = where, fun, given, shape, columns
        self.state_first = state_first

    def raw(self, t: Any, y: Any, *theta: Any) -> Any:
        """What it returns, as a Tensor."""
        return self._value(self.given.bound(self.fun, theta), t, y)

    def _value(self, fun: Callable[..., Any], t: Any, y: Any) -> Any:
        if self.columns:
            return reshape(value_of(self.fun, self.where, fun(t, reshape(y, (-1, 1)))), (-1,))
        out = fun(y, t) if self.state_first else fun(t, y)
        return out if type(out) is Tensor else value_of(self.fun, self.where, out)

    def __call__(self, t: Any, y: Any, *theta: Any) -> Any:
        return self.bound(theta)(t, y)

    def bound(self, theta: Sequence[Any]) -> Callable[[Any, Any], Any]:
        """The function of t and y; see `Given.bound`."""
        fun = self.given.bound(self.fun, theta)
        return lambda t, y: self._converted(self._value(fun, t, y), y)

    def _converted(self, out: Any, y: Any) -> Any:
        """A result with the dtype of y, and with the shape that SciPy takes it for."""
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

    def find_reads(self, t: Any, y: Any) -> None:
        """Find the tensors besides its arguments that it depends on; see `Given.refuse_numbers`."""
        self.given.find_reads(self.where, self.raw, t, y, fun=self.fun)
        self.given.refuse_numbers(lambda y, *theta: self.raw(t, y, *theta), y)

    def of_arrays(self, theta: Sequence[Any]) -> Callable[[Any, Any], Array]:
        """The function of a number and an array that SciPy calls."""
        fun, where = self.given.bound(self.fun, theta), self.where
        args = None if self.columns else self.given.plain_tensors(theta)
        calls = Repeated(self.fun, lambda f: lambda *v: value_of(f, where, f(*v)), where, args, 2)
        fast: Direct | None = None

        def f(t: Any, y: Any) -> Any:
            nonlocal fast
            t, y = np.array(t, np.float64), np.array(y)
            head = (y, t) if self.state_first else (t, y)
            if fast is not None:
                return fast.value(*head)
            found = self._value(fun, wrap(t), wrap(y))._data
            fast = calls.program(head, found)
            return found

        return f


__all__ = ["UserFunction"]

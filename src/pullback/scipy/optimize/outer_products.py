"""Outer products that stay two vectors while SciPy's BFGS works with them.

The update of BFGS is ``A H A^T + r s s^T`` with ``A = I - r s y^T``, where `s` is the step, `y` the difference of two
gradients and ``r = 1 / y^T s`` (Nocedal and Wright, Numerical Optimization, 2006, equation 6.17). SciPy writes it as
two products of full matrices, of n^3 multiplications each. ``H A^T`` is ``H - r (H y) s^T``, of n^2.

SciPy's own code does this if it is given a `Slope` as the gradient: a difference of two is one again, its product with
a column or a row is an `OuterProduct`, and so is the identity less that. NumPy's protocols hand ``np.dot`` of a matrix
and such an object to us. Whatever else NumPy's functions are asked to do, they do with plain arrays of the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy.linalg.blas import dger

from ..array_nodes import Array

FEW = 64
"""Below this number of unknowns SciPy's products take less time than what spares them."""


def slope_of(gradient: Array) -> Array:
    """A gradient, as BFGS is to get it: a `Slope` from `FEW` unknowns on."""
    if gradient.size < FEW or gradient.dtype != np.float64:
        return gradient
    return gradient.view(Slope)


def _plain(value: Any) -> Any:
    """A value without this file's classes."""
    kind = type(value)
    return value.view(np.ndarray) if kind is Slope else value.array() if kind is OuterProduct else value


def _anyhow(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy on plain arrays."""
    if "out" in kwargs:
        out = kwargs["out"]
        kwargs = {**kwargs, "out": tuple(map(_plain, out)) if isinstance(out, tuple) else _plain(out)}
    args = [[*map(_plain, a)] if isinstance(a, (list, tuple)) else _plain(a) for a in args]
    return function(*args, **kwargs)


class Slope(np.ndarray[Any, Any]):
    """A gradient, or a difference of two: an array, but for its product with a column or a row."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs or len(inputs) != 2 or method != "__call__":
            return _anyhow(getattr(ufunc, method), inputs, kwargs)
        first, second = inputs
        a, b = _plain(first), _plain(second)
        if ufunc is np.subtract and type(first) is type(second):
            return ufunc(a, b).view(Slope)
        if ufunc is np.multiply and _are_vectors(a, b):
            column, row = (a, b) if a.shape[1] == 1 else (b, a)
            return OuterProduct(column[:, 0].copy(), row[0].copy())
        return ufunc(a, b)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.dot and len(args) == 2 and not kwargs:
            a, b = args
            return function(_plain(a), _plain(b))
        if function is np.atleast_1d and len(args) == 1:  # SciPy passes gradients through it
            return self
        return _anyhow(function, args, kwargs)


def _are_vectors(a: Any, b: Any) -> bool:
    """Whether these are a column and a row of one size."""
    return (
        type(a) is type(b) is np.ndarray
        and a.ndim == 2
        and a.shape == b.shape[::-1]
        and 1 in a.shape
        and a.dtype == b.dtype == np.float64
    )


class OuterProduct(NDArrayOperatorsMixin):
    """The matrix ``u v^T``, or ``I - u v^T``, known by `u` and `v` until its elements are asked for.

    From then on it is the array of its elements, so that what is written to them is not lost.
    """

    __slots__ = ("_array", "from_identity", "u", "v")

    def __init__(self, u: Array, v: Array, from_identity: bool = False) -> None:
        self.u, self.v, self.from_identity = u, v, from_identity
        self._array: Array | None = None

    def array(self) -> Array:
        """Its elements."""
        if self._array is None:
            self._array = np.multiply.outer(self.u, self.v)
            if self.from_identity:
                self._array = np.eye(self.u.size) - self._array
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array().astype(dtype or np.float64, copy=bool(copy))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.array(), name)

    def __len__(self) -> int:
        return self.u.size

    def __getitem__(self, key: Any) -> Any:
        return self.array()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array()[key] = value

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, float) and self._array is None and not self.from_identity:
            return OuterProduct(self.u * factor, self.v)
        return super().__mul__(factor)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.subtract and self._array is None and not (kwargs or self.from_identity) and method == "__call__":
            a, b = inputs
            if b is self and _is_identity(a, self.u.size):
                return OuterProduct(self.u, self.v, True)
        return _anyhow(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.dot and len(args) == 2 and not kwargs and self.from_identity and self._array is None:
            a, b = args
            if b is self and _is_matrix(a, self.u.size):
                return _less(a, np.dot(a, self.u), self.v)
            if a is self and _is_matrix(b, self.u.size):
                return _less(b, self.u, np.dot(self.v, b))
        return _anyhow(function, args, kwargs)


def _is_matrix(a: Any, n: int) -> bool:
    return type(a) is np.ndarray and a.shape == (n, n) and (a.dtype == np.float64 or a.dtype.kind == "i")


def _is_identity(a: Any, n: int) -> bool:
    return _is_matrix(a, n) and np.count_nonzero(a) == n and np.count_nonzero(a.reshape(-1)[:: n + 1] == 1) == n


def _less(matrix: Array, u: Array, v: Array) -> Array:
    """``matrix - u v^T``, a new array."""
    found: Array = dger(-1.0, v, u, a=matrix.T).T
    return found


__all__ = ["FEW", "OuterProduct", "Slope", "slope_of"]

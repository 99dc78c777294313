"""Outer products that stay two vectors while SciPy's BFGS works with them.

The update of BFGS is ``A H A^T + r s s^T`` with ``A = I - r s y^T``, where `s` is the step, `y` the difference of two
gradients and ``r = 1 / y^T s`` (Nocedal and Wright, Numerical Optimization, 2006, equation 6.17). SciPy writes it as
two products of full matrices, of n^3 multiplications each. ``A H A^T`` is `H` and two outer products, of n^2: with
``p = H y`` and ``q = H^T y`` it is ``H - r p s^T - s (r q - r^2 (y^T p) s)^T``.

SciPy's own code does this if it is given a `Slope` as the gradient: a difference of two is one again, its product with
a column or a row is an `Outer`, the identity less that a `Remainder`, and a product with these a `Product`. They are
known by their vectors up to the sum at the end, which is a plain array. NumPy's protocols hand ``np.dot`` of a matrix
and such an object to us. Whatever else NumPy's functions are asked to do, they do with plain arrays of the same values.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy.linalg.blas import dger

from ..array_nodes import Array

FEW = 64
"""Below this number of unknowns SciPy's products take less time than what spares them."""

_ALL = slice(None)


def slope_of(gradient: Array) -> Array:
    """A gradient, as BFGS is to get it: a `Slope` from `FEW` unknowns on."""
    if gradient.size < FEW or gradient.dtype != np.float64:
        return gradient
    return gradient.view(Slope)


class Slope(np.ndarray[Any, Any]):
    """A gradient, or a difference of two: an array, but for its column and its row, which are a `Line`."""

    __array_priority__ = -1.0  # what NumPy makes of it and a plain array is plain

    def __getitem__(self, key: Any) -> Any:
        if type(key) is tuple and len(key) == 2 and self.ndim == 1:
            first, second = key
            if second is None and type(first) is slice and first == _ALL:
                return Line(self.view(np.ndarray), True)
            if first is None and type(second) is slice and second == _ALL:
                return Line(self.view(np.ndarray), False)
        return self.view(np.ndarray)[key]

    def __pow__(self, exponent: Any) -> Any:  # type: ignore[override]  # SciPy's norms take less time with plain arrays
        return self.view(np.ndarray) ** exponent


class Delayed(NDArrayOperatorsMixin):
    """A matrix that is known by its parts until its elements are asked for.

    From then on it is the array of its elements, so that what is written to them is not lost.
    """

    __slots__ = ("_array",)

    def __init__(self) -> None:
        self._array: Array | None = None

    def _elements(self) -> Array:
        raise NotImplementedError

    def _short(self, function: Any, a: Any, b: Any) -> Any:
        """A function of two arguments, this and another, by the parts; None if it takes the elements."""
        return None

    def array(self) -> Array:
        """Its elements."""
        if self._array is None:
            self._array = self._elements()
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array().astype(dtype or np.float64, copy=bool(copy))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.array(), name)

    def __len__(self) -> int:
        return len(self.array())

    def __getitem__(self, key: Any) -> Any:
        return self.array()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array()[key] = value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if self._array is None and method == "__call__" and len(inputs) == 2 and not kwargs:
            found = self._short(ufunc, *inputs)
            if found is not None:
                return found
        return _anyhow(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if self._array is None and function is np.dot and len(args) == 2 and not kwargs:
            found = self._short(function, *args)
            if found is not None:
                return found
        return _anyhow(function, args, kwargs)


class Line(Delayed):
    """A vector as a column or a row, which is a view of it."""

    __slots__ = ("column", "vector")

    def __init__(self, vector: Array, column: bool) -> None:
        self._array, self.vector, self.column = None, vector, column

    def _elements(self) -> Array:
        return self.vector[:, None] if self.column else self.vector[None, :]

    def _short(self, function: Any, a: Any, b: Any) -> Any:
        return self._times(b if a is self else a) if function is np.multiply else None

    def __mul__(self, other: Any) -> Any:
        found = self._times(other) if self._array is None else None
        return super().__mul__(other) if found is None else found

    def _times(self, other: Any) -> Any:
        if type(other) is not np.ndarray or other.ndim != 2 or other.dtype != np.float64:
            return None
        n, mine = self.vector.size, self.vector
        if other.shape != ((1, n) if self.column else (n, 1)):
            return None
        others = other.flatten()  # a copy, for the vectors may be written to before their product is used
        return Outer(mine.copy(), others, 1.0) if self.column else Outer(others, mine.copy(), 1.0)


class Outer(Delayed):
    """The outer product ``r u v^T``."""

    __slots__ = ("r", "u", "v")

    def __init__(self, u: Array, v: Array, r: float) -> None:
        self._array, self.u, self.v, self.r = None, u, v, r

    def _elements(self) -> Array:
        found: Array = np.multiply.outer(self.u, self.v) * self.r
        return found

    def _short(self, function: Any, a: Any, b: Any) -> Any:
        if function is np.subtract and b is self and _is_identity(a, self.u.size):
            return Remainder(self)
        return None

    def __mul__(self, other: Any) -> Any:
        if self._array is None and isinstance(other, float):
            return Outer(self.u, self.v, self.r * other)
        return super().__mul__(other)


class Remainder(Delayed):
    """What an outer product leaves of the identity, ``I - r u v^T``."""

    __slots__ = ("outer",)

    def __init__(self, outer: Outer) -> None:
        self._array, self.outer = None, outer

    def _elements(self) -> Array:
        return np.eye(self.outer.u.size) - self.outer._elements()

    def _short(self, function: Any, a: Any, b: Any) -> Any:
        if function is not np.dot:
            return None
        if a is not self:
            return Product(a, self.outer, None) if _is_matrix(a, self.outer.u.size) else None
        if type(b) is Product and b._array is None and b.left is None and len(b.matrix) == self.outer.u.size:
            return Product(b.matrix, b.right, self.outer)
        return None


class Product(Delayed):
    """A matrix times a remainder, and another remainder times that: the outer products of both.

    The matrix must not be written to before the product is used, which follows at once.
    """

    __slots__ = ("left", "matrix", "right")

    def __init__(self, matrix: Array, right: Outer, left: Outer | None) -> None:
        self._array, self.matrix, self.right, self.left = None, matrix, right, left

    def _elements(self) -> Array:
        return self._with(np.zeros(self.matrix.shape))

    def __add__(self, other: Any) -> Any:
        if self._array is not None or type(other) is not np.ndarray or other.dtype != np.float64:
            return super().__add__(other)
        return self._with(other) if other.shape == self.matrix.shape else super().__add__(other)

    def _with(self, other: Array) -> Array:
        """The sum with an array, a new one."""
        matrix, right, left = self.matrix, self.right, self.left
        found: Array = matrix + other
        p = np.dot(matrix, right.u)
        found = dger(-right.r, right.v, p, a=found.T, overwrite_a=1).T
        if left is not None:
            q = np.dot(left.v, matrix)
            q -= (right.r * np.dot(left.v, p)) * right.v
            found = dger(-left.r, q, left.u, a=found.T, overwrite_a=1).T
        return found


def _plain(value: Any) -> Any:
    """A value without this file's classes."""
    if type(value) is Slope:
        return value.view(np.ndarray)
    return value.array() if isinstance(value, Delayed) else value


def _anyhow(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy on plain arrays."""
    if "out" in kwargs:
        out = kwargs["out"]
        kwargs = {**kwargs, "out": tuple(map(_plain, out)) if isinstance(out, tuple) else _plain(out)}
    args = [[*map(_plain, a)] if isinstance(a, (list, tuple)) else _plain(a) for a in args]
    return function(*args, **kwargs)


def _is_matrix(a: Any, n: int) -> bool:
    return type(a) is np.ndarray and a.shape == (n, n) and (a.dtype == np.float64 or a.dtype.kind == "i")


_identity: weakref.ref[Any] | None = None  # the last one that was found, which is read-only since then


def _is_identity(a: Any, n: int) -> bool:
    global _identity
    known = None if _identity is None else _identity()
    if known is not None and a is known and len(known) == n and not known.flags.writeable:
        return True
    if not (_is_matrix(a, n) and np.count_nonzero(a) == n and np.count_nonzero(a.reshape(-1)[:: n + 1] == 1) == n):
        return False
    if a.flags.owndata:
        a.flags.writeable = False
        _identity = weakref.ref(a)
    return True


__all__ = ["FEW", "Slope", "slope_of"]

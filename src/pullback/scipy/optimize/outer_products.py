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
from scipy.linalg.blas import dgemm

from ..array_nodes import Array

FEW = 64
"""Below this number of unknowns SciPy's products take less time than what spares them."""

_DOUBLE = np.dtype(np.float64)
_dot, _subtract = np.dot, np.subtract


def slope_of(gradient: Array) -> Array:
    """A gradient, as BFGS is to get it: a `Slope` from `FEW` unknowns on."""
    if gradient.size < FEW or gradient.dtype is not _DOUBLE:
        return gradient
    return gradient.view(Slope)


class Slope(np.ndarray[Any, Any]):
    """A gradient, or a difference of two: an array, but for the product of its column or row with a row or column."""

    __array_priority__ = -1.0  # what NumPy makes of it and a plain array is plain

    def __mul__(self, other: Any) -> Any:
        return _times(self, other) if self.ndim != 2 or (found := _outer(self, other)) is None else found

    def __rmul__(self, other: Any) -> Any:
        return _right_times(self, other) if self.ndim != 2 or (found := _outer(self, other)) is None else found

    def __pow__(self, exponent: Any) -> Any:  # type: ignore[override]  # SciPy's norms take less time with plain arrays
        return self.view(np.ndarray) ** exponent


_times, _right_times = np.ndarray.__mul__, np.ndarray.__rmul__


def _outer(slope: Slope, other: Any) -> Outer | None:
    """The product of a column and a row of one size; None if these are something else."""
    rows, columns = slope.shape
    if type(other) is not np.ndarray or other.shape != (columns, rows) or (rows != 1 and columns != 1):
        return None
    if other.dtype is not _DOUBLE or slope.dtype is not _DOUBLE:
        return None
    mine, others = slope.view(np.ndarray).flatten(), other.flatten()  # they may be written to before it is used
    return Outer(mine, others, 1.0) if columns == 1 else Outer(others, mine, 1.0)


class Delayed(NDArrayOperatorsMixin):
    """A matrix that is known by its parts until its elements are asked for.

    From then on it is the array of its elements, so that what is written to them is not lost.
    """

    __slots__ = ("_array",)

    def __init__(self) -> None:
        self._array: Array | None = None

    def _elements(self) -> Array:
        raise NotImplementedError

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
        return _anyhow(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _anyhow(function, args, kwargs)


class Outer(Delayed):
    """The outer product ``r u v^T``."""

    __slots__ = ("r", "u", "v")

    def __init__(self, u: Array, v: Array, r: float) -> None:
        self._array, self.u, self.v, self.r = None, u, v, r

    def _elements(self) -> Array:
        found: Array = np.multiply.outer(self.u, self.v) * self.r
        return found

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is _subtract and self._array is None and method == "__call__" and not kwargs:
            a, b = inputs
            if b is self and _is_identity(a, self.u.size):
                return Remainder(self)
        return _anyhow(getattr(ufunc, method), inputs, kwargs)

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

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is _dot and self._array is None and len(args) == 2 and not kwargs:
            (a, b), n = args, self.outer.u.size
            if a is not self:
                if _is_matrix(a, n):
                    return Product(a, self.outer, None)
            elif type(b) is Product and b._array is None and b.left is None and len(b.matrix) == n:
                return Product(b.matrix, b.right, self.outer)
        return _anyhow(function, args, kwargs)


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
        if self._array is not None or type(other) is not np.ndarray or other.dtype is not _DOUBLE:
            return super().__add__(other)
        return self._with(other) if other.shape == self.matrix.shape else super().__add__(other)

    def _with(self, other: Array) -> Array:
        """The sum with an array, a new one."""
        matrix, right, left = self.matrix, self.right, self.left
        found: Array = matrix + other
        p = matrix.dot(right.u)
        if left is None:
            columns, rows = p[None, :], right.r * right.v[None, :]
        else:
            q = left.v.dot(matrix)
            q -= (right.r * left.v.dot(p)) * right.v
            columns, rows = np.array((p, left.u)), np.array((right.v * right.r, q * left.r))
        found = dgemm(-1.0, rows.T, columns.T, 1.0, found.T, 0, 1, 1).T
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
    return type(a) is np.ndarray and a.shape == (n, n) and (a.dtype is _DOUBLE or a.dtype.kind == "i")


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

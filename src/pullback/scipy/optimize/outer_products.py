"""Outer products that stay two vectors while SciPy's BFGS works with them.

The update of BFGS is ``A H A^T + r s s^T`` with ``A = I - r s y^T``, where `s` is the step, `y` the difference of two
gradients and ``r = 1 / y^T s`` (Nocedal and Wright, Numerical Optimization, 2006, equation 6.17). SciPy writes it as
two products of full matrices, of n^3 multiplications each. With ``p = H y`` it is ``H + s w^T + w s^T``, of n^2, where
``w = (r + r^2 y^T p) s / 2 - r p``, because `H` is symmetric.

SciPy's own code does this if it is given a `Slope` as the gradient: a difference of two is one again, its product with
a column or a row is an `Outer`, the identity less that a `Remainder`, a product with these a `Product`, and the sum at
the end an `Inverse`, whose product with a gradient is a step and a `Slope`, too. NumPy's protocols hand ``np.dot`` of
such objects to us. Whatever else NumPy's functions are asked to do, they do with plain arrays of the same values.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy.linalg.blas import dgemm, dsymv, dsyr2

from ..array_nodes import Array

FEW = 64
"""Below this number of unknowns SciPy's products take less time than what spares them."""

_ROUNDING = 1e-14
_DOUBLE = np.dtype(np.float64)
_dot, _subtract = np.dot, np.subtract


def slope_of(gradient: Array) -> Array:
    """A gradient, as BFGS is to get it: a `Slope` from `FEW` unknowns on."""
    if gradient.size < FEW or gradient.dtype is not _DOUBLE:
        return gradient
    return gradient.view(Slope)


class Slope(np.ndarray[Any, Any]):
    """A gradient, a difference of two, or a step: an array, but for the product of its column and a row."""

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
    if type(other) not in _VECTORS or other.dtype is not _DOUBLE or slope.dtype is not _DOUBLE:
        return None
    rows, columns = slope.shape
    if other.shape != (columns, rows) or (rows != 1 and columns != 1):
        return None
    mine, others = _kept(slope), _kept(other)
    return Outer(mine, others, 1.0) if columns == 1 else Outer(others, mine, 1.0)


_array = np.ndarray
_VECTORS = (Slope, _array)


def _kept(vector: Array) -> Array:
    """The values of a vector, which may be written to before they are used: an array around its bytes."""
    return _array(vector.size, _DOUBLE, vector.tobytes())


def _same(a: Array, b: Array) -> bool:
    """Whether two vectors that were `_kept` have the same bits."""
    return a.base == b.base


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
        if function is _dot and len(args) == 2 and not kwargs and (found := _product(*args)) is not None:
            return found
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
            return Outer(self.u, self.v, self.r * float(other))
        return super().__mul__(other)


class Remainder(Delayed):
    """What an outer product leaves of the identity, ``I - r u v^T``."""

    __slots__ = ("outer",)

    def __init__(self, outer: Outer) -> None:
        self._array, self.outer = None, outer

    def _elements(self) -> Array:
        return np.eye(self.outer.u.size) - self.outer._elements()


class Product(Delayed):
    """A matrix times a remainder, and another remainder times that: the outer products of both.

    The matrix must not be written to before the product is used, which follows at once.
    """

    __slots__ = ("left", "matrix", "right")

    def __init__(self, matrix: Any, right: Outer, left: Outer | None) -> None:
        self._array, self.matrix, self.right, self.left = None, matrix, right, left

    def _elements(self) -> Array:
        return self._with(np.zeros(self.matrix.shape))

    def __add__(self, other: Any) -> Any:
        if self._array is None:
            if type(other) is Outer:
                if self._is_update(other):
                    return self.matrix.updated(other.v, self.right.u, self.right.r)
            elif type(other) is np.ndarray and other.dtype is _DOUBLE and other.shape == self.matrix.shape:
                found = self._with(other)
                return Inverse(np.asfortranarray(found)) if self._begins(other) else found
        return super().__add__(other)

    def _is_update(self, other: Outer) -> bool:
        """Whether the sum with this is the next matrix of BFGS."""
        matrix, s = self.matrix, self.right.v
        return (
            type(matrix) is Inverse
            and _is_known(matrix)
            and self._keeps_symmetry()
            and other._array is None
            and other.r == 1.0
            and _same(s, other.v)
            and (s * self.right.r).tobytes() == other.u.base
        )

    def _begins(self, other: Array) -> bool:
        """Whether the sum with this is a symmetric matrix, as BFGS has them after its first step."""
        return self._keeps_symmetry() and _is_symmetric(other) and _is_symmetric(self.matrix)

    def _keeps_symmetry(self) -> bool:
        """Whether each remainder is the other one's transpose."""
        right, left = self.right, self.left
        return left is not None and left.r == right.r and _same(left.u, right.v) and _same(left.v, right.u)

    def _with(self, other: Array) -> Array:
        """The sum with an array, a new one."""
        matrix, right, left = plain(self.matrix), self.right, self.left
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


class Inverse(Delayed):
    """A symmetric matrix, BFGS's estimate of the inverse Hessian: its lower triangle is kept.

    The next one takes over its memory. If this one is asked for after that, the update is taken off again.
    """

    __slots__ = ("_next", "lower")

    def __init__(self, lower: Array) -> None:
        self._array, self.lower = None, lower
        self._next: tuple[Inverse, Array, Array] | None = None

    def updated(self, s: Array, y: Array, r: float) -> Inverse:
        """The next one, for a step and a difference of gradients."""
        w = dsymv(-r, self.lower, y, lower=1)
        w += (r - r * float(w.dot(y))) / 2 * s
        found = Inverse(self.lower)
        self._next = found, s, w
        dsyr2(1.0, s, w, lower=1, a=found.lower, overwrite_a=1)
        return found

    def _elements(self) -> Array:
        found = np.tril(self.lower)
        found += np.tril(found, -1).T
        at = self
        while at._next is not None:
            at, s, w = at._next
            both = np.multiply.outer(s, w)
            found -= both + both.T
        return found


def _is_known(matrix: Inverse) -> bool:
    """Whether its triangle is its own, and its elements are not asked for."""
    return matrix._next is None and matrix._array is None


def _product(a: Any, b: Any) -> Any:
    """What is known of a product; None if it is to be computed."""
    if type(b) is Slope:
        if type(a) is Inverse and _is_known(a) and b.shape == (len(a.lower),) and b.dtype is _DOUBLE:
            return dsymv(1.0, a.lower, b, lower=1).view(Slope)
    elif type(b) is Remainder:
        n = b.outer.u.size
        if b._array is None and (len(a.lower) == n and _is_known(a) if type(a) is Inverse else _is_matrix(a, n)):
            return Product(a, b.outer, None)
    elif type(b) is Product and type(a) is Remainder and a._array is None and b._array is None and b.left is None:
        return Product(b.matrix, b.right, a.outer) if b.right.u.size == a.outer.u.size else None
    return None


def _is_symmetric(a: Array) -> bool:
    """Whether a matrix is that, but for rounding."""
    return np.allclose(a, a.T, rtol=_ROUNDING, atol=0.0)


def plain(value: Any) -> Any:
    """A value without this file's classes."""
    if type(value) is Slope:
        return value.view(np.ndarray)
    return value.array() if isinstance(value, Delayed) else value


def _anyhow(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy on plain arrays."""
    if "out" in kwargs:
        out = kwargs["out"]
        kwargs = {**kwargs, "out": tuple(map(plain, out)) if isinstance(out, tuple) else plain(out)}
    args = [[*map(plain, a)] if isinstance(a, (list, tuple)) else plain(a) for a in args]
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


__all__ = ["FEW", "Slope", "plain", "slope_of"]

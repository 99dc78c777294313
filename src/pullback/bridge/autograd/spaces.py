"""Vector spaces of values: zeros, bases, sums and inner products of numbers, arrays and containers of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from ...tensor.nested import leaves, rebuild
from .box import getval


class VSpace:
    """The space of a value. A class derived from it is registered for the types of its values."""

    mappings: ClassVar[dict[type, Callable[[Any], VSpace]]] = {}
    iscomplex = False
    size: Any  # the number of real dimensions

    def __init__(self, value: Any) -> None:
        self.shape: Any = np.shape(value)

    @classmethod
    def register(cls, value_type: type, vspace_maker: Callable[[Any], VSpace] | None = None) -> None:
        """Say that values of a type are in spaces of this class, or in those that a function makes."""
        VSpace.mappings[value_type] = vspace_maker or cls

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return x + y

    def mut_add(self, x_prev: Any, x_new: Any) -> Any:
        """The sum; None stands for zeros."""
        return self.add(self.zeros() if x_prev is None else x_prev, x_new)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """The product with a number."""
        return x * a

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The inner product, a real number."""
        raise NotImplementedError(f"{type(self).__name__} has no inner_prod")

    def covector(self, x: Any) -> Any:
        """The covector of a vector: its conjugate."""
        return x

    def zeros(self) -> Any:
        """The zero."""
        raise NotImplementedError(f"{type(self).__name__} has no zeros")

    def ones(self) -> Any:
        """The sum of the basis."""
        raise NotImplementedError(f"{type(self).__name__} has no ones")

    def randn(self) -> Any:
        """Random numbers of the normal distribution, from NumPy's global generator."""
        raise NotImplementedError(f"{type(self).__name__} has no randn")

    def standard_basis(self) -> Iterator[Any]:
        """The vectors with a single one, and in a complex space a single i."""
        raise NotImplementedError(f"{type(self).__name__} has no standard_basis")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{vars(self)}"


class ArrayVSpace(VSpace):
    """The space of real arrays of one shape and dtype."""

    factors: tuple[Any, ...] = (1.0,)

    def __init__(self, value: Any) -> None:
        array = np.asarray(value)
        self.shape, self.dtype = array.shape, array.dtype

    @property
    def size(self) -> int:
        """The number of real dimensions."""
        return len(self.factors) * math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def zeros(self) -> Any:
        return np.zeros(self.shape, self.dtype)

    def ones(self) -> Any:
        """The sum of the basis."""
        made = np.empty(self.shape, self.dtype)
        made.fill(sum(self.factors))
        return made

    def randn(self) -> Any:
        """Random numbers of the normal distribution, from NumPy's global generator."""
        return np.asarray(sum(np.random.randn(*self.shape) * f for f in self.factors)).astype(self.dtype)

    def standard_basis(self) -> Iterator[Any]:
        """The vectors with a single one, and in a complex space a single i."""
        for index in np.ndindex(*self.shape):
            for factor in self.factors:
                vector = self.zeros()
                vector[index] = factor
                yield vector

    def inner_prod(self, x: Any, y: Any) -> Any:
        return np.dot(np.ravel(x), np.ravel(y))


class ComplexArrayVSpace(ArrayVSpace):
    """The real space of complex arrays of one shape and dtype."""

    iscomplex = True
    factors = (1.0, 1.0j)

    def inner_prod(self, x: Any, y: Any) -> Any:
        return np.real(np.dot(np.conj(np.ravel(x)), np.ravel(y)))

    def covector(self, x: Any) -> Any:
        return np.conj(x)


class ContainerVSpace(VSpace):
    """The space of lists, tuples or dicts: `shape` is the container with a space instead of each value."""

    def __init__(self, value: Any) -> None:
        self.seq_type = type(value)
        self.shape = rebuild(value, (vspace(leaf) for leaf in leaves(value)))

    def _map(self, f: Callable[..., Any], *values: Any) -> Any:
        flat = zip(leaves(self.shape), *map(leaves, values), strict=True)
        return rebuild(self.shape, iter([f(*each) for each in flat]))

    @property
    def size(self) -> int:
        """The number of real dimensions."""
        return sum(space.size for space in leaves(self.shape))

    def zeros(self) -> Any:
        return self._map(lambda vs: vs.zeros())

    def ones(self) -> Any:
        """The sum of the basis."""
        return self._map(lambda vs: vs.ones())

    def randn(self) -> Any:
        """Random numbers of the normal distribution."""
        return self._map(lambda vs: vs.randn())

    def standard_basis(self) -> Iterator[Any]:
        """The basis: that of each part, with zeros for the other parts."""
        spaces = list(leaves(self.shape))
        for i, space in enumerate(spaces):
            for basis in space.standard_basis():
                yield rebuild(self.shape, iter([basis if j == i else s.zeros() for j, s in enumerate(spaces)]))

    def add(self, x: Any, y: Any) -> Any:
        return self._map(lambda vs, a, b: vs.add(a, b), x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        return self._map(lambda vs, b: vs.scalar_mul(b, a), x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        return sum(vs.inner_prod(a, b) for vs, a, b in zip(leaves(self.shape), leaves(x), leaves(y), strict=True))

    def covector(self, x: Any) -> Any:
        return self._map(lambda vs, a: vs.covector(a), x)


class SequenceVSpace(ContainerVSpace):
    """The space of lists or tuples."""


class ListVSpace(SequenceVSpace):
    """The space of lists."""


class TupleVSpace(SequenceVSpace):
    """The space of tuples."""


class NamedTupleVSpace(SequenceVSpace):
    """The space of named tuples, such as the results of np.linalg."""


class DictVSpace(ContainerVSpace):
    """The space of dicts."""


def _of_array(value: Any) -> VSpace:
    return ComplexArrayVSpace(value) if np.iscomplexobj(value) else ArrayVSpace(value)


def vspace(value: Any) -> VSpace:
    """The space of a value, traced or not; TypeError for a value that is in none."""
    plain = getval(value)
    kind = type(plain)
    found = VSpace.mappings.get(kind)
    if found is None:
        if isinstance(plain, tuple) and hasattr(plain, "_fields"):
            return NamedTupleVSpace(plain)
        raise TypeError(
            f"Can't find vector space for value {value} of type {kind}. Valid types are {list(VSpace.mappings)}"
        )
    return found(plain)


VSpace.register(np.ndarray, _of_array)
for _real in (float, np.float64, np.float32, np.float16, np.longdouble):
    ArrayVSpace.register(_real)
for _complex in (complex, np.complex64, np.complex128, np.clongdouble):
    ComplexArrayVSpace.register(_complex)
ListVSpace.register(list)
TupleVSpace.register(tuple)
DictVSpace.register(dict)

"""Vector spaces of values: zeros, bases, sums and inner products of numbers, arrays and containers of them, and of
vectors of a class of the user's own."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ...autograd.node import edge_of
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Tensor, wrap
from .box import ArrayBox, Box, DictBox, SequenceBox, getval


class VSpace:
    """The space of a value. A class derived from it is registered for the types of its values.

    It defines `zeros`, `ones`, `randn` and `standard_basis`, and the methods with an underscore behind the others.
    """

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
        return self._add(x, y)

    def mut_add(self, x_prev: Any, x_new: Any) -> Any:
        """The sum; None stands for zeros."""
        return self._mut_add(self.zeros() if x_prev is None else x_prev, x_new)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """The product with a number."""
        return self._scalar_mul(x, a)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The inner product, a real number."""
        return self._inner_prod(x, y)

    def covector(self, x: Any) -> Any:
        """The covector of a vector: its conjugate."""
        return self._covector(x)

    def _add(self, x: Any, y: Any) -> Any:
        return x + y

    def _mut_add(self, x_prev: Any, x_new: Any) -> Any:
        return self._add(x_prev, x_new)

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return x * a

    def _inner_prod(self, x: Any, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _inner_prod")

    def _covector(self, x: Any) -> Any:
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

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return np.dot(np.ravel(x), np.ravel(y))


class ComplexArrayVSpace(ArrayVSpace):
    """The real space of complex arrays of one shape and dtype."""

    iscomplex = True
    factors = (1.0, 1.0j)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return np.real(np.dot(np.conj(np.ravel(x)), np.ravel(y)))

    def _covector(self, x: Any) -> Any:
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

    def _add(self, x: Any, y: Any) -> Any:
        return self._map(lambda vs, a, b: vs.add(a, b), x, y)

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return self._map(lambda vs, b: vs.scalar_mul(b, a), x)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return sum(vs.inner_prod(a, b) for vs, a, b in zip(leaves(self.shape), leaves(x), leaves(y), strict=True))

    def _covector(self, x: Any) -> Any:
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


# Vectors of a class of the user's own ---------------------------------------------------------------------------------
#
# The graph holds a token for each, a Tensor that is 0: its edge says where a cotangent belongs. The cotangents are
# vectors themselves, and wait in a table until the node behind the token runs.

_OTHERS = (None, ArrayBox, SequenceBox, DictBox)


class _Thread(threading.local):
    """The cotangents that wait in this thread, by the node and the number of its output."""

    waiting: dict[Any, Any] | None = None


_thread = _Thread()


def is_vector(value: Any) -> bool:
    """Whether a value, traced or not, is a vector of a class of the user's own."""
    return Box.type_mappings.get(type(value)) not in _OTHERS and (
        isinstance(value, Box) or type(value) in VSpace.mappings
    )


def any_vectors() -> bool:
    """Whether the user registered a class of boxes."""
    return len(Box.types) >= len(_OTHERS)


def token() -> Tensor:
    """A Tensor that stands for a vector."""
    return wrap(np.zeros(()))


def boxed_vector(value: Any, tensor: Tensor) -> Any:
    """The user's box of a vector with this token."""
    kind: Any = Box.type_mappings[type(value)]
    made = kind.__new__(kind)
    made._value, made.tensor = value, tensor
    return made


@contextmanager
def one_pass() -> Iterator[None]:
    """A backward pass, which has a table of its own."""
    before = _thread.waiting
    try:
        _thread.waiting = {}
        yield
    finally:
        _thread.waiting = before


def send(tensor: Tensor, cotangent: Any) -> Tensor:
    """Add a cotangent to those that wait for a token. Returns that of the token itself."""
    assert _thread.waiting is not None
    key = edge_of(tensor)[:2]
    held = _thread.waiting.get(key)
    _thread.waiting[key] = cotangent if held is None else vspace(cotangent).add(held, cotangent)
    return token()


def received(node: Any, number: int, like: Any) -> Any:
    """The cotangent that came for an output of a node, or zero."""
    assert _thread.waiting is not None
    found = _thread.waiting.pop((node, number), None)
    return vspace(like).zeros() if found is None else found

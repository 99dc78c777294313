"""Sample calls as data: the domain of an entry of the table, and the source of its tests.

A sample is a call. `A` describes an array: its shape, the domain of its values, their layout in memory and, if the
operation needs a certain dtype (an index, a mask), that dtype. Every other array takes the dtype under test.
`D("float64")` stands for a dtype of the library that the call is made in.

An entry's *samples* stay away from kinks and poles, so that derivatives can be compared with finite differences. They
include broadcast pairs, several ranks, sizes 0 and 1, and several layouts in memory. Its *kinks* are points where the
operation has no derivative, or where a careless rule returns NaN. Its *refused* calls must raise the error that torch
raises. `Differs` marks an intended difference from torch, with its reason.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

inf, nan = float("inf"), float("nan")

# The records here have no generated `__eq__` or `__repr__`: each method that dataclasses generate slows the import.


@dataclass(eq=False, repr=False)
class Array:
    """Describes an array. layout: "C", "T" (axes reversed in memory), "step" (every other element) or "readonly"."""

    shape: tuple[int, ...]
    domain: str = "real"
    layout: str = "C"
    dtype: str | None = None
    values: Any = None

    def __repr__(self) -> str:
        if self.values is not None:
            return f"{self.values}"
        notes = [n for n in (self.domain, self.layout, self.dtype) if n not in (None, "real", "C")]
        return f"{list(self.shape)}" + "".join(f" {n}" for n in notes)

    def make(self, rng: np.random.Generator, dtype: str) -> np.ndarray[Any, Any]:
        """Make the array, in its own dtype or else in the dtype under test."""
        found = np.dtype(self.dtype or dtype)
        if self.values is not None:
            return np.array(self.values, dtype=found)
        values = _lay_out(_draw(self.domain, self.shape, found, rng), self.layout)
        values.flags.writeable = self.layout != "readonly"
        return values


def _draw(domain: str, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    if domain.startswith("index"):
        n = int(domain.removeprefix("index "))
        return rng.integers(0, n, shape).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    values = MATRICES[domain](rng, shape, dtype.kind == "c") if domain in MATRICES else DOMAINS[domain](rng, shape)
    if dtype.kind == "c" and domain in DOMAINS:
        values = values + 1j * DOMAINS[domain](rng, shape)
    elif dtype.kind in "iu":
        values = (
            np.where(values < 0, np.floor(values), np.ceil(values)) if dtype.kind == "i" else np.ceil(np.abs(values))
        )
    return np.asarray(values).astype(dtype)


def _lay_out(values: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    if layout == "T":
        return np.copy(values.T, order="C").T
    if layout == "step":
        holder = np.zeros(tuple(2 * n for n in values.shape), values.dtype)
        view = holder[tuple(slice(None, None, 2) for _ in values.shape)]
        view[...] = values
        return view
    return values


Draw = Callable[..., np.ndarray[Any, Any]]  # takes a generator and a shape; numpy.random is slow to import

DOMAINS: dict[str, Draw] = {
    # away from zero, of both signs
    "real": lambda rng, shape: rng.uniform(0.3, 2.5, shape) * rng.choice([-1.0, 1.0], shape),
    "positive": lambda rng, shape: rng.uniform(0.3, 2.5, shape),
    "above one": lambda rng, shape: rng.uniform(1.2, 3.5, shape),
    "between 0 and 1": lambda rng, shape: rng.uniform(0.1, 0.9, shape),
    "small": lambda rng, shape: rng.uniform(-0.6, 0.6, shape),
    # away from whole numbers and from halves
    "between": lambda rng, shape: rng.integers(-3, 4, shape) + rng.choice([0.2, 0.3, 0.7, 0.8], shape),
    # all different
    "distinct": lambda rng, shape: np.asarray(
        0.25 + 0.5 * rng.permutation(int(np.prod(shape))).reshape(shape) - 0.25 * int(np.prod(shape))
    ),
    # whole numbers, all different
    "whole": lambda rng, shape: rng.permutation(int(np.prod(shape))).reshape(shape) - int(np.prod(shape)) / 2 // 1,
    "probability": lambda rng, shape: rng.dirichlet(np.ones(shape[1]), size=shape[0]),
}

# Matrices, on the last two axes, real or complex ----------------------------------------------------------------------


def _normal(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> np.ndarray[Any, Any]:
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if is_complex else values


def _unitary(rng: np.random.Generator, batch: tuple[int, ...], n: int, is_complex: bool) -> np.ndarray[Any, Any]:
    return np.linalg.qr(_normal(rng, (*batch, n, n), is_complex))[0]


def _spread(rng: np.random.Generator, batch: tuple[int, ...], n: int) -> np.ndarray[Any, Any]:
    """Numbers above 1 that are well apart, in random order."""
    return rng.permuted(1 + 0.5 * np.arange(n) + rng.uniform(-0.1, 0.1, (*batch, n)), axis=-1)


def _regular(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> np.ndarray[Any, Any]:
    *lead, m, n = shape
    batch, k = tuple(lead), min(m, n)
    left, right = _unitary(rng, batch, m, is_complex), _unitary(rng, batch, n, is_complex)
    return (left[..., :k] * _spread(rng, batch, k)[..., None, :]) @ right[..., :k, :]


def _regular_square(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> np.ndarray[Any, Any]:
    n = round(float(np.prod(shape)) ** 0.5)
    return _regular(rng, (n, n), is_complex).reshape(shape)


def _hermitian(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool, signs: Any) -> np.ndarray[Any, Any]:
    *lead, n, _ = shape
    vectors = _unitary(rng, tuple(lead), n, is_complex)
    values = _spread(rng, tuple(lead), n) * rng.choice(signs, n)
    found = (vectors * values[..., None, :]) @ np.conj(np.swapaxes(vectors, -1, -2))
    return (found + np.conj(np.swapaxes(found, -1, -2))) / 2


def _triangular(
    rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool, upper: bool
) -> np.ndarray[Any, Any]:
    found = (np.triu if upper else np.tril)(0.5 * _normal(rng, shape, is_complex))
    diagonal = np.eye(shape[-1], dtype=bool)
    return np.where(diagonal, rng.uniform(1, 2, (*shape[:-1], 1)), found)


MATRICES: dict[str, Callable[[np.random.Generator, tuple[int, ...], bool], np.ndarray[Any, Any]]] = {
    # of full rank, singular values well apart
    "regular": _regular,
    # the same, as the elements of a square matrix
    "regular square": _regular_square,
    # symmetric or Hermitian, eigenvalues well apart; positive definite, or of both signs
    "definite": functools.partial(_hermitian, signs=[1.0]),
    "hermitian": functools.partial(_hermitian, signs=[-1.0, 1.0]),
    # triangular, with a positive diagonal
    "lower": functools.partial(_triangular, upper=False),
    "upper": functools.partial(_triangular, upper=True),
}


@dataclass(eq=False, repr=False)
class DType:
    """A dtype, by its name."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(eq=False, repr=False)
class Sample:
    """A call: positional and keyword arguments, with `Array` and `DType` for arrays and dtypes."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "(" + ", ".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]) + ")"

    def arrays(self, dtype: str, seed: int = 0) -> Sample:
        """The sample with its arrays made; the same seed gives the same arrays."""
        rng = np.random.default_rng([seed, 20260713])
        return self.replaced(lambda leaf: leaf.make(rng, dtype) if isinstance(leaf, Array) else leaf)

    def replaced(self, change: Callable[[Any], Any]) -> Sample:
        """The sample with every argument, and every entry of a list among them, changed."""

        def walk(value: Any) -> Any:
            return type(value)(walk(v) for v in value) if isinstance(value, (list, tuple)) else change(value)

        return Sample(tuple(walk(a) for a in self.args), {k: walk(v) for k, v in self.kwargs.items()})


def A(*shape: int, **how: Any) -> Array:
    """An array of the dtype under test."""
    return Array(shape, **how)


def V(values: Any, dtype: str | None = None) -> Array:
    """An array of given values."""
    return Array(np.shape(values), values=values, dtype=dtype)


def mask(*shape: int) -> Array:
    """A bool array."""
    return Array(shape, dtype="bool")


def index(n: int, *shape: int) -> Array:
    """An integer array of positions below `n`."""
    return Array(shape, domain=f"index {n}", dtype="int64")


def S(*args: Any, **kwargs: Any) -> Sample:
    """A sample."""
    return Sample(args, kwargs)


def D(name: str) -> DType:
    """A dtype by name."""
    return DType(name)


# Shapes that many operations share ------------------------------------------------------------------------------------

_UNARY: list[tuple[tuple[int, ...], str]] = [
    ((), "C"),
    ((1,), "C"),
    ((3,), "C"),
    ((2, 3), "C"),
    ((0,), "C"),
    ((2, 0, 3), "C"),
    ((3, 2), "T"),
    ((3, 2), "step"),
    ((2, 1, 3), "readonly"),
]
_PAIRS: list[tuple[tuple[int, ...], tuple[int, ...], str, str]] = [
    ((), (), "C", "C"),
    ((3,), (3,), "C", "C"),
    ((2, 3), (3,), "C", "C"),
    ((3,), (2, 3), "C", "C"),
    ((2, 1), (1, 3), "C", "C"),
    ((), (2,), "C", "C"),
    ((2, 2), (), "C", "C"),
    ((1,), (1, 1), "C", "C"),
    ((0, 3), (1, 3), "C", "C"),
    ((0,), (), "C", "C"),
    ((2, 3, 1), (4,), "C", "C"),
    ((2, 3), (2, 3), "T", "C"),
    ((2, 3), (3,), "readonly", "step"),
]


def unary(domain: str = "real") -> list[Sample]:
    """One array, of several shapes and layouts."""
    return [S(A(*shape, domain=domain, layout=layout)) for shape, layout in _UNARY]


def on_one(*more: Any, domain: str = "between") -> list[Any]:
    """Samples of one array, and the further calls."""
    return [*unary(domain), *more]


def pairs(left: str = "real", right: str | None = None, *numbers: complex) -> list[Sample]:
    """Two arrays that broadcast, and an array with each of some Python numbers."""
    right = right or left
    both = [S(A(*a, domain=left, layout=la), A(*b, domain=right, layout=lb)) for a, b, la, lb in _PAIRS]
    return both + [S(A(*shape, domain=left), n) for n in numbers for shape in ((), (2, 3))]


def integers(samples: list[Sample]) -> list[Sample]:
    """The samples with arrays of integers, whatever the dtype under test."""
    return [s.replaced(lambda a: Array(a.shape, dtype="int64") if isinstance(a, Array) else a) for s in samples]


def along(*dims: Any, keepdim: bool = True, domain: str = "real", lists: bool = True) -> list[Sample]:
    """One array and one or several of its dimensions, also with `keepdim`, if it is an argument."""
    make = functools.partial(A, domain=domain)
    found = [S(make(2, 3, 4), d) for d in dims]
    found += [S(make(3, 2, layout="T"), 0), S(make(4, 3, layout="step"), -1), S(make(2, 3, layout="readonly"), 1)]
    found += [S(make(), 0), S(make(), -1), S(make(1), 0)]
    if keepdim:
        found += [S(make(2, 3, 4), d, keepdim=True) for d in dims] + [S(make(), 0, True)]
    if lists:
        found += [S(make(2, 3, 2), dim=(0, 2)), S(make(2, 3), [1, 0]), S(make(2, 3), (-1,))]
    if lists and keepdim:
        found += [S(make(2, 3, 2), (0, -1), keepdim=True)]
    return found


def whole(domain: str = "real") -> list[Sample]:
    """One array, reduced as a whole."""
    return [S(A(*shape, domain=domain, layout=layout)) for shape, layout in _UNARY if 0 not in shape]


EMPTY = [S(A(0)), S(A(2, 0)), S(A(2, 0), 1), S(A(2, 0), 0)]


@dataclass(eq=False, repr=False)
class Differs:
    """An intended difference from torch, on the samples whose repr contains `sample`.

    check: "values", "gradients", "second", "slopes", "kinks", "refused", "forward" or "batched". dtypes: the dtypes it
    is found in, in one string; all if empty.
    """

    reason: str
    check: str = "values"
    dtypes: str = ""
    sample: str = ""

    def covers(self, check: str, dtype: str, sample: Sample) -> bool:
        """Whether it is about this check of this sample."""
        return check == self.check and (not self.dtypes or dtype in self.dtypes.split()) and self.sample in repr(sample)


# Points that many elementwise operations share as kinks: zeros of both signs, large, infinite, not a number.
EDGES = [0.0, -0.0, 1.0, -1.0, 1e-30, 30.0, -30.0, 800.0, -800.0, inf, -inf, nan]
_PAIRED = list(itertools.product((0.0, 1.0, -1.0, 2.0, 0.5, inf, -inf, nan), repeat=2))
EDGE_PAIRS = (V([a for a, _ in _PAIRED]), V([b for _, b in _PAIRED]))

# The same points, and the corners of piecewise linear functions.
CORNERS = [S(V([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 1e-30, 30.0, -30.0, 800.0, -800.0, inf, -inf, nan]))]

# Calls refused by every elementwise operation of two arguments, of one, and by every reduction.
NO_PAIR = [
    S(A(2), A(3)),
    S(A(2, 3), A(2)),
    S(A(3), "three"),
    S(A(3), None),
    S(A(3), [1, 2, 3]),
    S(A(3)),
    S(),
    S(A(3), A(3), A(3)),
    S(A(3), nonsense=1),
]
NOT_TENSORS = [S(), S(1.5), S([1.0]), S("x"), S(None), S(A(2), nonsense=1)]
NO_UNARY = [S(), S(1.5), S([1.0]), S("x"), S(None), S(A(2), A(2)), S(A(2), nonsense=1)]
NO_DIM = [
    S(A(2, 3), 2),
    S(A(2, 3), -3),
    S(A(), 1),
    S(A(2, 3), "x"),
    S(A(2, 3), 0.5),
    S(A(2, 3), (0, 0)),
    S(A(2, 3), (0, 2)),
    S(A(2), nonsense=1),
    S([1.0]),
]

"""Sample inputs for every operation of the table, as data: what the tests of `test_ops.py` are run on.

A sample is a call. Its arrays are described by `A`: a shape, the domain its values come from, how they lie in memory,
and, where the operation wants one dtype only (an index, a mask), that dtype; every other array takes the dtype under
test. `D("float64")` stands for a dtype of whichever library the call is made in.

`SAMPLES` stay away from kinks and poles, so derivatives can be compared with finite differences. `KINKS` are the points
where an operation has no derivative, or where a careless rule returns NaN. `ERRORS` are calls that must be refused.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

inf, nan = float("inf"), float("nan")


@dataclass(frozen=True)
class Array:
    """An array to be made; `layout` is "C", "T" (axes reversed in memory), "step" (every other element), "readonly"."""

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
        """The array in the dtype under test, which an array with a dtype of its own ignores."""
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
    values = DOMAINS[domain](rng, shape)
    if dtype.kind == "c":
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


Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray[Any, Any]]

DOMAINS: dict[str, Draw] = {
    # away from zero, of both signs
    "real": lambda rng, shape: rng.uniform(0.3, 2.5, shape) * rng.choice([-1.0, 1.0], shape),
    "positive": lambda rng, shape: rng.uniform(0.3, 2.5, shape),
    "small": lambda rng, shape: rng.uniform(-0.6, 0.6, shape),
    # away from whole numbers and from halves
    "between": lambda rng, shape: rng.integers(-3, 4, shape) + rng.choice([0.2, 0.3, 0.7, 0.8], shape),
    # no two alike
    "distinct": lambda rng, shape: np.asarray(
        0.25 + 0.5 * rng.permutation(int(np.prod(shape))).reshape(shape) - 0.25 * int(np.prod(shape))
    ),
    "probability": lambda rng, shape: rng.dirichlet(np.ones(shape[1]), size=shape[0]),
}


@dataclass(frozen=True)
class DType:
    """A dtype, by its name."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Sample:
    """A call: positional and keyword arguments, with `Array` and `DType` in the places of arrays and dtypes."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "(" + ", ".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]) + ")"

    def arrays(self, dtype: str, seed: int = 0) -> Sample:
        """The sample with its arrays made: the same ones for the same seed."""
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


def pairs(left: str = "real", right: str | None = None, *numbers: complex) -> list[Sample]:
    """Two arrays that broadcast, and an array with each of some Python numbers."""
    right = right or left
    both = [S(A(*a, domain=left, layout=la), A(*b, domain=right, layout=lb)) for a, b, la, lb in _PAIRS]
    return both + [S(A(*shape, domain=left), n) for n in numbers for shape in ((), (2, 3))]


def _integers(samples: list[Sample]) -> list[Sample]:
    """The samples with arrays of integers, whatever the dtype under test."""
    return [s.replaced(lambda a: Array(a.shape, dtype="int64") if isinstance(a, Array) else a) for s in samples]


def along(*dims: Any, keepdim: bool = True, domain: str = "real", lists: bool = True) -> list[Sample]:
    """One array and a dimension, or several, of it; each with `keepdim`, too, where there is such an argument."""
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


_EMPTY = [S(A(0)), S(A(2, 0)), S(A(2, 0), 1), S(A(2, 0), 0)]

# The samples ----------------------------------------------------------------------------------------------------------

SAMPLES: dict[str, list[Sample]] = {
    # arithmetic
    "add": [
        *pairs("real", None, 2, 2.5, True, 1 + 2j),
        S(A(3), A(2, 3), alpha=2),
        S(A(3), 2, alpha=3),
        S(A(2), A(2), alpha=-0.5),
    ],
    "sub": [*pairs("real", None, 2, 2.5), S(A(3), A(2, 3), alpha=2), S(A(2), 1.5, alpha=2)],
    "mul": [*pairs("real", None, 2, 2.5, True, 1 + 2j)],
    "div": [
        *pairs("real", None, 2, 2.5, 1 + 2j),
        *(S(A(2, 3, domain="between"), A(3), rounding_mode=m) for m in ("floor", "trunc", None)),
    ],
    "neg": unary(),
    "positive": unary(),
    "reciprocal": unary(),
    "square": unary(),
    "sqrt": unary("positive"),
    "rsqrt": unary("positive"),
    "pow": [
        *pairs("positive", "small", 2, 3, 0.5, -1, 0, 1, 0.5 + 1j),
        S(2, A(2, 3)),
        S(0.5, A(3)),
        *(S(A(2, 3), n) for n in (2, 3, -2)),
    ],
    "floor_divide": pairs("between", "positive", 2, 0.77),
    "remainder": [*pairs("between", "positive", 2, 0.77), S(A(2, 3, domain="between"), A(3))],
    # exponentials, logarithms, trigonometry
    "exp": unary(),
    "expm1": unary(),
    "log": unary("positive"),
    "log1p": unary("positive"),
    "log2": unary("positive"),
    "log10": unary("positive"),
    "sin": unary(),
    "cos": unary(),
    "tan": unary("small"),
    "sinh": unary(),
    "cosh": unary(),
    "tanh": unary(),
    "sigmoid": unary(),
    # kinks and choices
    "relu": unary(),
    "abs": unary(),
    "maximum": pairs(),
    "minimum": pairs(),
    "clamp": [
        *(S(A(*shape), -1.0, 1.0) for shape in ((), (3,), (2, 3), (0,))),
        S(A(2, 3, layout="T"), min=0.1),
        S(A(2, 3, layout="readonly"), max=0.1),
        S(A(2, 3), 0, 2),
        S(A(2, 3), min=1, max=-1),
        S(A(2, 3), A(3), A(2, 1)),
        S(A(3), A(2, 3)),
        S(A(2, 3), max=A()),
        S(A(), A(2), A(2)),
    ],
    "where": [
        S(mask(), A(), A()),
        S(mask(3), A(3), A(3)),
        S(mask(2, 3), A(3), A()),
        S(mask(3), A(2, 1), A(1)),
        S(mask(), A(2), A(2, 1)),
        S(mask(0), A(1), A()),
        S(mask(2, 1), A(1, 3), A(4, 1, 1)),
        S(mask(2, 3), A(2, 3, layout="T"), A(3, layout="step")),
        S(mask(3), 1.5, A(3)),
        S(mask(3), A(3), 0),
        S(mask(3), A(2, 3), 2.5),
    ],
    "real": unary(),
    "imag": unary(),
    "conj": unary(),
    # constants
    **{
        name: [*pairs("real", None, 1, 0.5), S(V([1, 2, 0]), V([1, 3, 0]))]
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    },
    **{
        name: pairs("real", None, *([1, True] if name.startswith("bit") else []))
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor")
    },
    "bitwise_not": unary(),
    "logical_not": unary(),
    "isnan": [*unary(), S(V([nan, inf, -inf, 0.0], "float64"))],
    "isinf": [*unary(), S(V([nan, inf, -inf, 0.0], "float64"))],
    "isfinite": [*unary(), S(V([nan, inf, -inf, 0.0], "float64"))],
    "floor": unary("between"),
    "ceil": unary("between"),
    "trunc": unary("between"),
    "round": [*unary("between"), S(A(3), decimals=1), S(A(2, 3), decimals=-1)],
    "sign": unary(),
    # shape
    "reshape": [
        S(A(2, 3), (3, 2)),
        S(A(2, 3), (6,)),
        S(A(2, 3), [-1]),
        S(A(), (1, 1)),
        S(A(1), ()),
        S(A(0, 2), (2, 0, 3)),
        S(A(3, 2, layout="T"), (2, 3)),
        S(A(2, 3, layout="step"), (-1, 2)),
        S(A(2, 3, layout="readonly"), (3, -1)),
        S(A(2, 3), shape=(6,)),
    ],
    "view": [
        S(A(2, 3), 3, 2),
        S(A(2, 3), (6,)),
        S(A(2, 3), [-1]),
        S(A(), (1, 1)),
        S(A(1), ()),
        S(A(0, 2), (2, 0, 3)),
        S(A(3, 2, layout="T"), (3, 2)),
        S(A(3, 2, layout="T"), (3, 1, 2)),
    ],
    "view_as": [S(A(2, 3), A(3, 2)), S(A(1), A()), S(A(0), A(2, 0))],
    "flatten": [
        S(A(2, 3, 2)),
        S(A(2, 3, 2), 1),
        S(A(2, 3, 2), 0, 1),
        S(A(2, 3, 2), start_dim=-2),
        S(A()),
        S(A(0, 3)),
        S(A(3, 2, layout="T")),
        S(A(3, 2), 1, 1),
    ],
    "permute": [
        S(A(2, 3, 4), (2, 0, 1)),
        S(A(2, 3, 4), [0, -1, 1]),
        S(A(), ()),
        S(A(0, 2), (1, 0)),
        S(A(3, 2, layout="T"), (1, 0)),
        S(A(2, 3), dims=(1, 0)),
    ],
    "transpose": [
        S(A(2, 3, 4), 0, 2),
        S(A(2, 3, 4), -1, 1),
        S(A(2, 3), 0, 0),
        S(A(), 0, -1),
        S(A(0, 2), 0, 1),
        S(A(3, 2, layout="step"), dim0=0, dim1=1),
    ],
    "movedim": [
        S(A(2, 3, 4), 0, 2),
        S(A(2, 3, 4), -1, 0),
        S(A(2, 3, 4), (0, 1), (1, 2)),
        S(A(2, 3, 4), [2, 0], [0, -1]),
        S(A(0, 2), 0, 1),
        S(A(), 0, 0),
    ],
    "t": [S(A(2, 3)), S(A(3)), S(A()), S(A(0, 2)), S(A(3, 2, layout="T"))],
    "unsqueeze": [
        *(S(A(2, 3), d) for d in (0, 1, 2, -1, -3)),
        S(A(), 0),
        S(A(), -1),
        S(A(0), 0),
        S(A(3, 2, layout="T"), dim=1),
    ],
    "squeeze": [
        S(A(1, 3, 1)),
        S(A(1, 3, 1), 0),
        S(A(1, 3, 1), -1),
        S(A(1, 3, 1), 1),
        S(A(1, 3, 1), (0, 2)),
        S(A(1, 3, 1), (0, 1)),
        S(A()),
        S(A(), 0),
        S(A(1)),
        S(A(0, 1)),
        S(A(1, 1), dim=1),
        S(A(1, 2), ()),
    ],
    "expand": [
        S(A(3), (2, 3)),
        S(A(2, 1), (2, 4)),
        S(A(2, 1), (-1, 3)),
        S(A(1), (3, -1)),
        S(A(), (2,)),
        S(A(), ()),
        S(A(1), (0,)),
        S(A(2, 1), (3, 2, 1)),
        S(A(1, 2, layout="T"), (3, 2)),
        S(A(2, 1), 2, 2),
    ],
    "expand_as": [S(A(3), A(2, 3)), S(A(2, 1), A(2, 4)), S(A(), A(2)), S(A(1), A(0))],
    "flip": [
        S(A(2, 3), (0,)),
        S(A(2, 3), (0, 1)),
        S(A(2, 3), [-1]),
        S(A(3), dims=(0,)),
        S(A(0, 2), (0,)),
        S(A(2, 3), ()),
        S(A(), ()),
        S(A(3, 2, layout="T"), (1,)),
    ],
    "cat": [
        S([A(2, 3), A(1, 3)]),
        S((A(2, 3), A(2, 1)), 1),
        S([A(2, 3), A(2, 2)], -1),
        S([A(2)]),
        S([A(0), A(2, 3)]),
        S([A(0, 3), A(2, 3)]),
        S([A(0), A(0)]),
        S([A(3, 2, layout="T"), A(3, 2, layout="step")], dim=1),
        S([A(2), A(1, layout="readonly"), A(3)]),
        S([A(2), V([1, 2], "int64")]),
    ],
    "stack": [
        S([A(2, 3), A(2, 3)]),
        S((A(2, 3), A(2, 3)), 1),
        S([A(3), A(3), A(3)], -1),
        S([A(), A()]),
        S([A(0)], 0),
        S([A(3, 2, layout="T"), A(3, 2)], dim=2),
        S([A(2), V([1, 2], "int64")]),
    ],
    "unbind": [S(A(2, 3)), S(A(2, 3), 1), S(A(2, 3, 2), -1), S(A(1)), S(A(0, 2)), S(A(3, 2, layout="T"), dim=0)],
    "narrow": [
        S(A(4, 3), 0, 1, 2),
        S(A(4, 3), 1, -2, 2),
        S(A(4, 3), -1, 0, 3),
        S(A(4), 0, 4, 0),
        S(A(0), 0, 0, 0),
        S(A(3, 2, layout="T"), 0, 1, 1),
    ],
    "split": [
        S(A(5, 2), 2),
        S(A(5, 2), [1, 4]),
        S(A(2, 4), 3, 1),
        S(A(2, 4), (1, 0, 3), -1),
        S(A(5), 10),
        S(A(0), 2),
        S(A(4, 2, layout="T"), 2, dim=0),
    ],
    "chunk": [S(A(5, 2), 2), S(A(5), 4), S(A(2, 4), 2, 1), S(A(2), 5), S(A(0), 3), S(A(2, 4), 3, dim=-1)],
    "clone": unary(),
    "contiguous": unary(),
    "triu": [
        S(A(3, 3)),
        S(A(2, 4), 1),
        S(A(4, 2), -1),
        S(A(2, 3, 3)),
        S(A(0, 2)),
        S(A(3, 2, layout="T"), diagonal=0),
        S(A(2, 2), 5),
    ],
    "tril": [
        S(A(3, 3)),
        S(A(2, 4), 1),
        S(A(4, 2), -1),
        S(A(2, 3, 3)),
        S(A(0, 2)),
        S(A(3, 2, layout="T"), diagonal=0),
        S(A(2, 2), -5),
    ],
    "to": [
        *(S(A(2, 3), D(d)) for d in ("float64", "float32", "complex128", "int64", "bool", "float16")),
        S(A(2), dtype=D("float64")),
        S(A(2), A(1, dtype="float64")),
        S(A(2), "cpu"),
        S(A(2), D("float64"), copy=True),
        S(A(2), "cpu", D("float64")),
    ],
    # indexing
    "gather": [
        S(A(3, 4), 1, index(4, 3, 2)),
        S(A(3, 4), 0, index(3, 2, 4)),
        S(A(3, 4), -1, index(4, 3, 6)),
        S(A(5), 0, index(5, 8)),
        S(A(), 0, index(1)),
        S(A(3, 4), 0, index(3, 1, 2)),
        S(A(2, 3, 2), 1, index(3, 2, 4, 2)),
        S(A(3, 2, layout="T"), dim=0, index=index(3, 2, 2)),
        S(A(3), 0, index(3, 0)),
    ],
    "index_select": [
        S(A(3, 4), 1, index(4, 5)),
        S(A(3, 4), 0, index(3, 2)),
        S(A(3, 4), -1, index(4, 1)),
        S(A(5), 0, index(5, 0)),
        S(A(3, 2, layout="T"), 0, index(3, 4)),
        S(A(2, 3, 2), dim=1, index=index(3, 4)),
        S(A(3, 4), 0, index(3)),
        S(A(), 0, index(1, 1)),
    ],
    "take_along_dim": [
        S(A(3, 4), index(4, 3, 2), 1),
        S(A(3, 4), index(12, 5)),
        S(A(3, 4), index(4, 1, 2), dim=-1),
        S(A(3, 1), index(3, 2, 4), 0),
    ],
    "masked_fill": [
        S(A(2, 3), mask(2, 3), 1.5),
        S(A(2, 3), mask(3), 0),
        S(A(2, 3), mask(), A()),
        S(A(3), mask(2, 3), 2),
        S(A(0), mask(0), 1),
        S(A(3, 2, layout="T"), mask(2), -inf),
    ],
    # products
    "matmul": [
        S(A(3), A(3)),
        S(A(2, 3), A(3)),
        S(A(3), A(3, 2)),
        S(A(2, 3), A(3, 4)),
        S(A(2, 2, 3), A(3, 4)),
        S(A(2, 3), A(4, 3, 2)),
        S(A(2, 1, 2, 3), A(3, 3, 2)),
        S(A(2, 2, 3), A(3)),
        S(A(3), A(2, 3, 2)),
        S(A(0, 3), A(3, 2)),
        S(A(2, 0), A(0, 3)),
        S(A(0), A(0)),
        S(A(1, 1), A(1, 1)),
        S(A(3, 2, layout="T"), A(2, 3, layout="step")),
        S(A(2, 3, layout="readonly"), A(3, 2, layout="T")),
    ],
    "mm": [
        S(A(2, 3), A(3, 4)),
        S(A(1, 3), A(3, 1)),
        S(A(0, 3), A(3, 2)),
        S(A(2, 0), A(0, 3)),
        S(A(3, 2, layout="T"), A(2, 3, layout="step")),
    ],
    "bmm": [S(A(2, 2, 3), A(2, 3, 4)), S(A(0, 2, 3), A(0, 3, 1)), S(A(1, 2, 2, layout="T"), A(1, 2, 1))],
    "mv": [S(A(2, 3), A(3)), S(A(0, 3), A(3)), S(A(2, 0), A(0)), S(A(3, 2, layout="T"), A(2, layout="step"))],
    "dot": [S(A(3), A(3)), S(A(1), A(1)), S(A(0), A(0)), S(A(3, layout="step"), A(3, layout="readonly"))],
    "outer": [S(A(3), A(2)), S(A(1), A(1)), S(A(0), A(2)), S(A(3, layout="step"), A(2))],
    # reductions
    "sum": [
        *whole(),
        *along(0, 1, -1, None, ()),
        *_EMPTY,
        S(A(2, 3), dtype=D("float64")),
        S(A(2, 3), 0, dtype=D("float32")),
    ],
    "mean": [
        *whole(),
        *along(0, 1, -1, None, ()),
        *_EMPTY,
        S(A(2, 3), dtype=D("float64")),
        S(A(2, 3), 0, dtype=D("float32")),
    ],
    "prod": [*whole(), *along(0, 1, -1, lists=False), *_EMPTY, S(A(2, 3), dtype=D("float64"))],
    "cumsum": [
        *along(0, 1, -1, keepdim=False, lists=False),
        S(A(0), 0),
        S(A(2, 0), 1),
        S(A(2, 0), 0),
        S(A(2, 3), 0, dtype=D("float64")),
        S(A(2), dim=0),
    ],
    "cumprod": [
        *along(0, 1, -1, keepdim=False, lists=False),
        S(A(0), 0),
        S(A(2, 0), 1),
        S(A(2, 0), 0),
        S(A(2, 3), 0, dtype=D("float64")),
        S(A(2), dim=0),
    ],
    **{name: [*whole("distinct"), *along(0, 1, -1, (), domain="distinct"), S(A(2, 0), 0)] for name in ("amax", "amin")},
    **{
        name: [*whole("distinct"), *along(0, 1, -1, None, domain="distinct", lists=False), S(A(2, 0), 0)]
        for name in ("argmax", "argmin")
    },
    **{
        name: [*whole("distinct"), *along(0, 1, -1, domain="distinct", lists=False), S(A(2, 0), 0), *pairs()]
        for name in ("max", "min")
    },
    **{
        name: [
            *whole(),
            *along(0, 1, -1, None),
            S(A(3), False),
            S(A(2, 3), 1, False),
            S(A(2, 3), unbiased=False),
            S(A(2, 3), 0, True, True),
            S(A(2, 3), correction=0),
            S(A(2, 3), 0, correction=2),
            S(A(1)),
            S(A(0)),
            S(A(2, 0), 0),
            S(A(2, 0), 1),
        ]
        for name in ("var", "std")
    },
    "norm": [
        *whole(),
        *(S(A(2, 3), p) for p in ("fro", 2, 1, 0, 3, 2.5, -1, inf, -inf, 0.5)),
        *(S(A(2, 3), p, 1) for p in ("fro", 2, 1, 3, inf, -inf)),
        S(A(2, 3, 2), 2, (0, 2)),
        S(A(2, 3), dim=0, keepdim=True),
        S(A(2, 3), "fro", (0, 1), True),
        S(A(0)),
        S(A(2, 0), 2, 1),
        S(A(2, 3), 1, dim=(0, 1), keepdim=True),
        S(A(2, 3), dtype=D("float64")),
    ],
    **{name: [*whole(), *along(0, 1, -1), *_EMPTY] for name in ("any", "all")},
    # functions of neural networks
    **{
        name: [
            *along(0, 1, -1, keepdim=False, lists=False),
            S(A(2, 0), 1),
            S(A(2, 0), 0),
            S(A(0), 0),
            S(A(2, 3), 0, dtype=D("float64")),
            S(A(2, 3), dim=1),
        ]
        for name in ("softmax", "log_softmax")
    },
    "silu": unary(),
    "linear": [
        S(A(2, 3), A(4, 3)),
        S(A(2, 3), A(4, 3), A(4)),
        S(A(3), A(4, 3), A(4)),
        S(A(2, 2, 3), A(4, 3), bias=A(4)),
        S(A(0, 3), A(2, 3), A(2)),
        S(A(3), A(3)),
        S(A(3, 2, layout="T"), A(4, 2, layout="step"), A(4)),
        S(A(2, 3), A(3)),
    ],
    "mse_loss": [
        S(A(2, 3), A(2, 3)),
        S(A(2, 3), A(2, 3), reduction="sum"),
        S(A(2, 3), A(2, 3), reduction="none"),
        S(A(), A()),
        S(A(0), A(0)),
        S(A(3, 2, layout="T"), A(3, 2, layout="step")),
    ],
    "nll_loss": [
        S(A(4, 3), index(3, 4)),
        S(A(3), index(3)),
        S(A(2, 3, 2), index(3, 2, 2)),
        S(A(2, 3, 2, 1), index(3, 2, 2, 1)),
        *(S(A(4, 3), index(3, 4), reduction=r) for r in ("sum", "none")),
        S(A(4, 3), index(3, 4), V([0.5, 1.0, 2.0])),
        S(A(2, 3, 2), index(3, 2, 2), V([0.5, 1.0, 2.0]), reduction="none"),
        S(A(3), index(3), V([0.5, 1.0, 2.0]), reduction="sum"),
        S(A(4, 3), V([0, 1, -100, 2], "int64")),
        S(A(4, 3), V([0, 1, 1, 2], "int64"), ignore_index=1),
        S(A(4, 3), V([0, 1, 1, 2], "int64"), V([0.5, 1.0, 2.0]), ignore_index=1),
        S(A(3), V(-100, "int64")),
        S(A(2, 3), V([-100, -100], "int64")),
        S(A(0, 3), index(3, 0)),
        S(A(4, 3, layout="T"), index(3, 4)),
    ],
    "cross_entropy": [
        S(A(4, 3), index(3, 4)),
        S(A(3), index(3)),
        S(A(2, 3, 2), index(3, 2, 2)),
        *(S(A(4, 3), index(3, 4), reduction=r) for r in ("sum", "none")),
        S(A(4, 3), index(3, 4), V([0.5, 1.0, 2.0])),
        S(A(4, 3), V([0, 1, -100, 2], "int64")),
        S(A(4, 3), V([0, 1, 1, 2], "int64"), V([0.5, 1.0, 2.0]), ignore_index=1),
        *(S(A(4, 3), index(3, 4), label_smoothing=0.1, reduction=r) for r in ("mean", "sum", "none")),
        *(
            S(A(4, 3), V([0, 1, -100, 2], "int64"), V([0.5, 1.0, 2.0]), label_smoothing=0.1, reduction=r)
            for r in ("mean", "sum", "none")
        ),
        S(A(2, 3, 2), V([[0, 1], [2, -100]], "int64"), V([0.5, 1.0, 2.0]), label_smoothing=0.2),
        S(A(3), index(3), label_smoothing=0.1),
        *(S(A(4, 3), A(4, 3, domain="probability"), reduction=r) for r in ("mean", "sum", "none")),
        S(A(4, 3), A(4, 3, domain="probability"), V([0.5, 1.0, 2.0])),
        S(A(4, 3), A(4, 3, domain="probability"), V([0.5, 1.0, 2.0]), label_smoothing=0.1),
        S(A(3), A(3, domain="positive")),
        S(A(0, 3), index(3, 0)),
        S(A(3), V(-100, "int64")),
        S(A(2, 3), V([-100, -100], "int64"), label_smoothing=0.1),
        S(A(4, 3, layout="T"), index(3, 4)),
    ],
}

# Points without a derivative, and edges of a domain -------------------------------------------------------------------

_EDGES = [0.0, -0.0, 1.0, -1.0, 1e-30, 30.0, -30.0, 800.0, -800.0, inf, -inf, nan]
_EDGE_PAIRS = list(itertools.product((0.0, 1.0, -1.0, 2.0, 0.5, inf, -inf, nan), repeat=2))
_LEFT, _RIGHT = V([a for a, _ in _EDGE_PAIRS]), V([b for _, b in _EDGE_PAIRS])

KINKS: dict[str, list[Sample]] = {
    **{
        name: [S(V(_EDGES))]
        for name in (
            "neg positive reciprocal square sqrt rsqrt exp expm1 log log1p log2 log10 sinh cosh tanh "
            "sigmoid relu abs floor ceil trunc sign silu isnan"
        ).split()
    },
    **{name: [S(V([x for x in _EDGES if abs(x) != inf]))] for name in ("sin", "cos", "tan")},
    "round": [S(V([0.5, 1.5, 2.5, -0.5, -1.5, inf, nan, 0.0]))],
    "square": [S(V(_EDGES)), S(V([0.0, 0.0]))],
    **{
        name: [S(_LEFT, _RIGHT)]
        for name in "add sub mul div maximum minimum remainder floor_divide eq lt ge logical_and max min".split()
    },
    "pow": [
        S(_LEFT, _RIGHT),
        *(S(V(_EDGES), n) for n in (0, 1, 2, 3, -1, -2, 1.5, inf)),
        *(S(V([0.0, 1.0, 30.0, inf, nan]), n) for n in (0.5, -0.5)),
        *(S(n, V(_EDGES)) for n in (0.0, 1.0, 2.0, inf)),
    ],
    "clamp": [
        S(V([-1.0, 1.0, 0.0, 2.0, -2.0, nan, inf]), -1.0, 1.0),
        S(V([0.0, 1.0]), min=0.0),
        S(V([0.0, 1.0]), max=1.0),
        S(V([0.0, 1.0, 2.0, nan]), V([0.0, 1.0, nan, 0.0]), V([0.0, 1.0, 2.0, 1.0])),
        S(V([0.0, 1.0, 2.0]), V([1.0, 1.0, 3.0]), V([0.0, 1.0, 1.0])),
    ],
    "where": [S(V([True, False, True, False], "bool"), V([inf, nan, 1.0, 0.0]), V([nan, inf, -inf, 0.0]))],
    **{
        name: [
            S(V([1.0, 1.0, 0.0])),
            S(V([[1.0, 2.0], [2.0, 2.0]]), 0),
            S(V([[1.0, 2.0], [2.0, 2.0]]), 1),
            S(V([0.0, nan, 1.0, nan])),
            S(V([[inf, nan], [inf, -inf]]), 1),
            S(V([-inf, -inf])),
        ]
        for name in ("amax", "amin", "max", "min", "argmax", "argmin")
    },
    "prod": [
        S(V([0.0, 2.0, 3.0])),
        S(V([0.0, 0.0, 3.0])),
        S(V([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]), 0),
        S(V([[0.0, 2.0], [0.0, 0.0]]), 1),
    ],
    "cumprod": [
        S(V([0.0, 2.0, 3.0]), 0),
        S(V([1.0, 0.0, 0.0, 3.0]), 0),
        S(V([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]), 0),
        S(V([[2.0, 0.0], [0.0, 5.0]]), 1),
    ],
    "var": [S(V([1.0, 1.0, 1.0])), S(V([2.0])), S(V([nan, 1.0])), S(V([inf, 1.0]))],
    "std": [S(V([1.0, 1.0, 1.0])), S(V([2.0])), S(V([nan, 1.0])), S(V([2.0]), correction=0)],
    "norm": [
        *(S(V([0.0, 0.0]), p) for p in (2, 1, 3, 1.5, 0.5, inf, -inf, 0)),
        *(S(V([0.0, 2.0, -2.0]), p) for p in (2, 1, 3, inf, -inf, 0)),
        S(V([[0.0, 0.0], [3.0, 4.0]]), 2, 1),
        S(V([inf, 1.0])),
        S(V([nan, 1.0])),
    ],
    "mean": [S(V([nan, 1.0])), S(V([inf, -inf]))],
    **{
        name: [
            S(V([1000.0, 0.0, -1000.0]), 0),
            S(V([-inf, 0.0, 1.0]), 0),
            S(V([[-inf, -inf], [0.0, 1.0]]), 1),
            S(V([inf, 0.0]), 0),
            S(V([nan, 0.0]), 0),
        ]
        for name in ("softmax", "log_softmax")
    },
    "nll_loss": [
        S(V([[-inf, 0.0], [-1.0, -inf]]), V([1, 0], "int64")),
        S(V([[-inf, 0.0], [-1.0, -inf]]), V([0, -100], "int64")),
    ],
    "cross_entropy": [
        S(V([[-inf, 0.0], [100.0, -1000.0]]), V([1, 0], "int64")),
        S(V([[-inf, 0.0], [1.0, 2.0]]), V([0, -100], "int64")),
    ],
    "mse_loss": [S(V([1.0, inf]), V([1.0, 2.0]))],
    "masked_fill": [S(V([inf, nan, 1.0]), V([True, True, False], "bool"), 0.0)],
    "to": [S(V([nan, inf, 1.5]), D("float32")), S(V([nan, 0.0, 1.5]), D("bool"))],
}

# Calls that are refused -----------------------------------------------------------------------------------------------

_NO_PAIR = [
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
_NO_UNARY = [S(), S(1.5), S([1.0]), S("x"), S(None), S(A(2), A(2)), S(A(2), nonsense=1)]
_NO_DIM = [
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

ERRORS: dict[str, list[Sample]] = {
    **dict.fromkeys(
        (
            "add sub mul div pow floor_divide remainder maximum minimum eq ne lt le gt ge logical_and "
            "logical_or logical_xor"
        ).split(),
        _NO_PAIR,
    ),
    **{name: _integers(_NO_PAIR) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **dict.fromkeys(
        (
            "neg positive reciprocal square sqrt rsqrt exp expm1 log log1p log2 log10 sin cos tan sinh cosh "
            "tanh sigmoid relu abs real imag conj bitwise_not logical_not isnan isinf isfinite floor ceil "
            "trunc sign clone"
        ).split(),
        _NO_UNARY,
    ),
    **dict.fromkeys("sum mean amax amin argmax argmin var std any all".split(), _NO_DIM),
    **{name: [*_NO_DIM, S(A(2, 3))] for name in ("cumsum", "cumprod")},
    **{
        name: [S(A(2, 3), 2), S(A(2, 3), -3), S(A(), 1), S([1.0], 0), S(A(2, 3), 0, nonsense=1)]
        for name in ("softmax", "log_softmax", "prod")
    },
    **{
        name: [S(A(2, 3), 2), S(A(2, 3), -3), S(A(), 1), S(A(0)), S(A(2, 0), 1), S(A(2, 3), A(2))]
        for name in ("max", "min")
    },
    "amax": [*_NO_DIM, S(A(0)), S(A(2, 0), 1)],
    "argmax": [*_NO_DIM, S(A(0)), S(A(2, 0), 1)],
    "norm": [S([1.0]), S(A(2, 3), 2, 2), S(A(2, 3), 2, -3), S(A(2, 3), "nuclear"), S(A(0), inf)],
    "clamp": [S(A(2)), S(A(2), A(3)), S(A(2), "x"), S([1.0], 0, 1), S(A(2), 0, 1, 2), S(A(2), None, None)],
    "where": [
        S(A(2), A(2), A(2)),
        S(mask(2), A(3), A(2)),
        S(mask(2), A(2)),
        S(mask(2), "x", A(2)),
        S([True], A(1), A(1)),
    ],
    "reshape": [
        S(A(2, 3), (4,)),
        S(A(2, 3), (-1, -1)),
        S(A(2, 3), (-2, 3)),
        S(A(2, 3), (-1, 4)),
        S(A(2, 3), "x"),
        S(A(2, 3), (1.5,)),
        S([1.0], (1,)),
    ],
    "view": [S(A(2, 3), (4,)), S(A(3, 2, layout="T"), (6,)), S(A(2, 3, layout="step"), (6,))],
    "flatten": [S(A(2, 3), 2), S(A(2, 3), 1, 0)],
    "permute": [S(A(2, 3), (0,)), S(A(2, 3), (0, 0)), S(A(2, 3), (0, 2))],
    "transpose": [S(A(2, 3), 0, 2), S(A(2, 3), -3, 0), S(A(2, 3), 0), S([1.0], 0, 0)],
    "movedim": [S(A(2, 3), 0, 2), S(A(2, 3), (0, 1), (0,)), S(A(2, 3), (0, 0), (0, 1)), S(A(2, 3), (0, 1), (0, 0))],
    "t": [S(A(1, 2, 3)), S([1.0])],
    "unsqueeze": [S(A(2, 3), 3), S(A(2, 3), -4), S(A(2, 3)), S([1.0], 0)],
    "squeeze": [S(A(1, 3), 2), S(A(1, 3), (0, 0)), S([1.0])],
    "expand": [S(A(3), (2, 4)), S(A(2, 3), (3,)), S(A(3), (-1, 3)), S(A(3), (2, -2))],
    "flip": [S(A(2, 3), (2,)), S(A(2, 3), (0, 0))],
    "cat": [
        S([A(2, 3), A(2, 2)]),
        S([A(2), A(2, 2)]),
        S([A(), A()]),
        S([]),
        S(A(2)),
        S([A(2), 1.0]),
        S([A(2), A(2)], 1),
    ],
    "stack": [S([A(2), A(3)]), S([]), S(A(2)), S([A(2), 1.0]), S([A(2), A(2)], 2)],
    "unbind": [S(A(2), 1), S(A())],
    "narrow": [
        S(A(4), 0, 3, 2),
        S(A(4), 0, 5, 0),
        S(A(4), 1, 0, 1),
        S(A(4), 0, 0, -1),
        S(A(4), 0, -5, 1),
        S(A(), 0, 0, 0),
    ],
    "split": [S(A(4), [1, 2]), S(A(4), 0), S(A(4), -1), S(A(4), 2, 1), S(A(), 1), S(A(4), [5, -1])],
    "chunk": [S(A(4), 0), S(A(4), 2, 1), S(A(), 1)],
    "triu": [S(A(3)), S(A(3, 3), "x"), S([1.0])],
    "tril": [S(A(3)), S(A(3, 3), "x"), S([1.0])],
    "to": [S(A(2), "gpu"), S(A(2), "nonsense")],
    "gather": [
        S(A(3, 4), 2, index(3, 2, 2)),
        S(A(3), 0, V([3], "int64")),
        S(A(3), 0, V([-1], "int64")),
        S(A(3), 0, V([0.0], "float64")),
        S(A(3, 4), 0, index(3, 2)),
        S(A(2, 2), 0, index(2, 2, 3)),
        S(A(3), 0, [0]),
    ],
    "index_select": [
        S(A(3), 1, index(3, 1)),
        S(A(3), 0, V([3], "int64")),
        S(A(3), 0, V([-1], "int64")),
        S(A(3), 0, V([0.0], "float64")),
        S(A(3), 0, index(3, 1, 1)),
        S(A(3), 0, [0]),
    ],
    "take_along_dim": [S(A(3, 4), index(3, 2), 0), S(A(3), V([3], "int64"), 0), S(A(3), V([0.0], "float64"), 0)],
    "masked_fill": [S(A(3), A(3), 1.0), S(A(3), mask(2), 1.0), S(A(3), mask(3), A(3)), S(A(3), mask(3), "x")],
    "matmul": [
        S(A(2, 3), A(2, 3)),
        S(A(3), A(2)),
        S(A(), A(3)),
        S(A(3), A()),
        S(A(2, 2, 3), A(3, 3, 2)),
        S(A(2, 3), 2.0),
        S(A(2, 3), A(3, dtype="int32")),
        S(A(2, 3)),
        S([1.0], A(1)),
    ],
    "mm": [S(A(2, 3), A(2, 3)), S(A(3), A(3)), S(A(2, 3), A(3)), S(A(2, 3), 1.0)],
    "bmm": [S(A(2, 2, 3), A(3, 3, 2)), S(A(2, 3), A(3, 2)), S(A(2, 2, 3), A(2, 2, 3))],
    "mv": [S(A(2, 3), A(2)), S(A(3), A(3)), S(A(2, 3), A(3, 1))],
    "dot": [S(A(3), A(2)), S(A(2, 2), A(2, 2)), S(A(3), 1.0), S(A(3), A(3, dtype="int32"))],
    "outer": [S(A(2, 2), A(2)), S(A(2), A()), S(A(2), 1.0)],
    "linear": [S(A(2, 3), A(4, 2)), S(A(2, 3), A(4, 3), A(3)), S(A(2, 3), 1.0)],
    "mse_loss": [S(A(2), A(2), reduction="median"), S(A(2), A(3))],
    "nll_loss": [
        S(A(4, 3), index(3, 3)),
        S(A(4, 3), V([0, 1, 2, 3], "int64")),
        S(A(4, 3), V([0, 1, -1, 2], "int64")),
        S(A(4, 3), A(4)),
        S(A(), index(3)),
        S(A(4, 3), index(3, 4), A(2)),
        S(A(4, 3), index(3, 4), reduction="median"),
    ],
    "cross_entropy": [
        S(A(4, 3), index(3, 3)),
        S(A(4, 3), V([0, 1, 2, 3], "int64")),
        S(A(4, 3), A(4, 2)),
        S(A(4, 3), index(3, 4), label_smoothing=1.5),
        S(A(4, 3), index(3, 4), reduction="median"),
        S(A(4, 3), index(3, 4), A(2)),
    ],
    "view_as": [S(A(2, 3), A(4))],
    "expand_as": [S(A(2), A(3))],
    "contiguous": [S([1.0])],
    "round": [S([1.0]), S(A(2), 1, 2)],
}


def every(samples: dict[str, list[Sample]]) -> Iterator[tuple[str, Sample]]:
    """Each sample with the name of its operation."""
    return ((name, sample) for name, found in samples.items() for sample in found)

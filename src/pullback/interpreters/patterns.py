"""The interpreter of sparsity: each element of a payload knows which inputs it depends on.

A `Pattern` holds the values, for each element whether its value depends on any input, and its set of inputs: a row of
a boolean CSR matrix. A NumPy function is carried by its structure. One that moves elements moves their rows, an
elementwise one unites the rows of its operands, a sum or a product adds the rows of what it adds. A function whose
structure is not known depends on all that it got: that is sound, and it is noted. So is a look at a value, which makes
what is found true near these inputs alone.

What is a constant has a value that can be trusted: an element that is zero times anything depends on nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import errors
from ..tensor.tensor import Tensor, wrap
from .payload import Call, Payload

Array = np.ndarray[Any, Any]
Rows = Any
"""A boolean CSR array of SciPy's, a row for each element; None if no element depends on an input by its rows."""

Rule = Callable[["Run", Call, Any, Any], Any]
"""What carries a function: ``rule(run, function, args, kwargs)``; it may return ``NotImplemented``."""

MOST = 1 << 30
"""The most dependencies of one array: more do not fit into memory."""


def scipy_sparse(what: str) -> Any:
    """``scipy.sparse``; ImportError that says how to install it."""
    try:
        import scipy.sparse
    except ImportError:
        raise ImportError(
            errors.message(f"{what} needs SciPy", do='pip install "pullback[scipy]"'), name="scipy"
        ) from None
    return scipy.sparse


class Run:
    """One run of a function on patterns, and what was noted in it.

    width: the number of inputs. rules: what carries each function whose structure is known; for `np.ufunc` what carries
    the others that are elementwise, for None what carries all the rest. trusting: whether arrays are constants, whose
    zeros can be trusted; else they may come from the inputs. unknown: how often each function whose structure is not
    known was called. looks: how often a value was looked at.
    """

    def __init__(self, width: int, rules: Mapping[Any, Rule], trusting: bool = True) -> None:
        self.width, self.rules, self.trusting = width, rules, trusting
        self.unknown, self.looks = Counter[str](), 0
        self.sparse = scipy_sparse("a pattern")

    def inputs(self, array: Array) -> Pattern:
        """The inputs: each element depends on itself."""
        rows = self.sparse.eye_array(self.width, dtype=bool, format="csr")
        return Pattern(self, array, np.ones(array.shape, bool), rows)

    def point(self, array: Array) -> Pattern:
        """Values that vary, by which no set of inputs is followed."""
        return Pattern(self, array, np.ones(array.shape, bool), None)

    def constant(self, array: Any) -> Pattern:
        """Values that are always the same; if arrays are not trusted, they may vary."""
        varies = not self.trusting and isinstance(array, np.ndarray)
        array = np.asarray(array)
        return Pattern(self, array, np.full(array.shape, varies), None)

    def as_pattern(self, value: Any) -> Pattern:
        """An operand: a pattern, or a constant."""
        return value if isinstance(value, Pattern) else self.constant(value)

    def linked(self, out: Array, source: Array, count: int, size: int) -> Any:
        """The matrix that adds to row ``out[k]`` of `count` the row ``source[k]`` of `size`."""
        out, source = np.ravel(out), np.ravel(source)
        links = self.sparse.coo_array((np.ones(len(out), bool), (out, source)), shape=(count, size))
        return links.tocsr()

    def united(self, a: Rows, b: Rows) -> Rows:
        """The unions of rows."""
        return b if a is None else a if b is None or a is b else a + b


class Store:
    """What is known of the elements of an array, shared by its views, as their memory is."""

    __slots__ = ("rows", "varies", "version")

    def __init__(self, varies: Array, rows: Rows) -> None:
        self.varies, self.rows, self.version = varies, rows, 0


class Pattern(Payload):
    """An array whose elements know which inputs they depend on.

    array: the values. varies: for each element, whether its value depends on an input at all, be it in a way that has
    no derivative, as that of ``floor(x)``. rows: the sets of inputs. A view of a pattern is written to as one of an
    array is: `places` are its elements in the array they belong to, None for all of them in order.
    """

    __slots__ = ("_seen", "array", "base", "places", "run", "store")

    base: Any
    places: Array | None

    def __init__(self, run: Run, array: Any, varies: Array, rows: Rows) -> None:
        self.run, self.array = run, np.asarray(array)
        self.base, self.places = None, None
        self._seen: tuple[int, Rows] = (-1, None)
        self.store = Store(np.ravel(varies), rows if self.array.dtype.kind in "fcV" else None)

    def view_of(self, array: Array, places: Array) -> Pattern:
        """The view with these elements, given by their numbers."""
        found = Pattern.__new__(Pattern)
        found.run, found.array, found.store, found._seen = self.run, array, self.store, (-1, None)
        found.base = self if self.base is None else self.base
        places = np.ravel(places)
        if self.places is not None:
            places = self.places[places]
        whole = len(places) == len(self.store.varies) and np.array_equal(places, np.arange(len(places)))
        found.places = None if whole else places
        return found

    def in_order(self) -> Pattern:
        return Pattern(self.run, np.asarray(self.array, order="C"), self.varies, self.rows)

    @property
    def varies(self) -> Array:
        found = self.store.varies if self.places is None else self.store.varies[self.places]
        return found.reshape(self.array.shape)

    @property
    def rows(self) -> Rows:
        if self.places is None or self.store.rows is None:
            return self.store.rows
        if self._seen[0] != self.store.version:
            self._seen = self.store.version, chosen(self.store.rows, self.places)
        return self._seen[1]

    def write(self, varies: Array, rows: Rows) -> None:
        """Have the elements, whose values were written, depend on other inputs."""
        store, rows = self.store, rows if self.array.dtype.kind in "fcV" else None
        store.version += 1
        if self.places is None:
            store.varies, store.rows = np.ravel(varies), rows
            return
        store.varies = store.varies.copy()
        store.varies[self.places] = np.ravel(varies)
        if rows is not None or store.rows is not None:
            size, source = len(store.varies), np.arange(len(store.varies))
            source[self.places] = size + np.arange(len(self.places))
            store.rows = chosen(below(self.run, [(store.rows, size), (rows, len(self.places))]), source)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.array.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        return self.array.strides

    @property
    def flags(self) -> Any:
        return self.array.flags

    def like(self, array: Array) -> Pattern:
        return self.run.constant(array)

    def numpy(self) -> Array:
        if self.rows is not None and self.rows.nnz:
            raise errors.NotConverted(
                errors.message(
                    "sparsity: the values of a derivative are looked at, or taken as a NumPy array, so that it is not "
                    "known what depends on them",
                    do="write the jvp or backward of a Function in operations on tensors, or in NumPy's functions "
                    "called on tensors",
                )
            )
        if self.varies.any():
            self.run.looks += 1
        return self.array

    def __array_function__(self, function: Call, types: Any, args: Any, kwargs: Any) -> Any:
        if function in (np.may_share_memory, np.shares_memory):
            return function(*opened(args), **kwargs)
        return super().__array_function__(function, types, args, kwargs)

    def carry(self, function: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue}
        rules = self.run.rules
        alike = np.ufunc if isinstance(function, np.ufunc) and function.signature is None else None
        rule = rules.get(function, rules[alike])
        found = rule(self.run, function, args, kwargs)
        return rules[None](self.run, function, args, kwargs) if found is NotImplemented else found


# What rules are made of -----------------------------------------------------------------------------------------------


def opened(value: Any) -> Any:
    """A value, with the arrays of the patterns in it."""
    if isinstance(value, Pattern):
        return value.array
    if isinstance(value, Tensor):  # among positions
        return wrap(value._data.array) if isinstance(value._data, Pattern) else value
    if isinstance(value, (list, tuple)):
        parts = [opened(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return {k: opened(v) for k, v in value.items()} if isinstance(value, dict) else value


def patterns_in(value: Any) -> Iterator[Pattern]:
    """The patterns in a value."""
    if isinstance(value, Pattern):
        yield value
    elif isinstance(value, Tensor):
        yield from patterns_in(value._data)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from patterns_in(part)
    elif isinstance(value, dict):
        yield from patterns_in(list(value.values()))


def has_patterns(value: Any) -> bool:
    """Whether there is a pattern in a value."""
    return next(patterns_in(value), None) is not None


def each(change: Callable[[Any], Any], found: Any) -> Any:
    """A result, or those in a tuple or list, changed if they are arrays or numbers of NumPy's."""
    if isinstance(found, (list, tuple)):
        parts = [each(change, part) for part in found]
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    return change(found) if isinstance(found, (np.ndarray, np.generic)) else found


def numbers(shape: tuple[int, ...]) -> Array:
    """The number of each element."""
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)


def chosen(rows: Rows, which: Array) -> Rows:
    """The rows with these numbers."""
    which = np.ravel(which)
    if rows is None or (len(which) == rows.shape[0] and np.array_equal(which, np.arange(len(which)))):
        return rows
    return rows[which]


def kept(rows: Rows, mask: Array) -> Rows:
    """The rows, but for those that are not in the mask: these are empty."""
    mask = np.ravel(mask)
    if rows is None or mask.all():
        return rows
    lengths = np.where(mask, np.diff(rows.indptr), 0)
    indices = rows.indices[np.repeat(mask, np.diff(rows.indptr))]
    start = np.concatenate(([0], np.cumsum(lengths))).astype(rows.indptr.dtype)
    return type(rows)((np.ones(len(indices), bool), indices, start), shape=rows.shape)


def spread(p: Pattern, shape: tuple[int, ...]) -> Rows:
    """The rows of a pattern that is broadcast to a shape."""
    if p.rows is None or p.shape == shape:
        return p.rows
    return chosen(p.rows, np.broadcast_to(numbers(p.shape), shape))


def everything(p: Pattern, count: int) -> Rows:
    """As many rows, all of them the union of all."""
    if p.rows is None:
        return None
    found = np.unique(p.rows.indices)
    if count * len(found) > MOST:
        raise MemoryError(
            errors.message(
                f"sparsity: {count} elements that depend on {len(found)} inputs each do not fit into memory",
                do="compute with functions whose structure is known: the function that was called last has none, and "
                "its results depend on all that it got",
            )
        )
    start = np.arange(count + 1) * len(found)
    return type(p.rows)((np.ones(count * len(found), bool), np.tile(found, count), start), shape=(count, p.run.width))


def stacked(run: Run, parts: list[Pattern]) -> Rows:
    """The rows of some patterns, one below the other."""
    return below(run, [(p.rows, p.size) for p in parts])


def below(run: Run, parts: list[tuple[Rows, int]]) -> Rows:
    """Rows one below the other; None stands for as many as its number says, all empty."""
    if all(rows is None for rows, _ in parts):
        return None
    full = [run.sparse.csr_array((n, run.width), dtype=bool) if rows is None else rows for rows, n in parts]
    return run.sparse.vstack(full, format="csr")

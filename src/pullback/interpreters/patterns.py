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
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import errors
from .payload import Call, Payload, name_of

Array = np.ndarray[Any, Any]
Rows = Any
"""A boolean CSR array of SciPy's, a row for each element; None if no element depends on an input by its rows."""

MOST = 1 << 30
"""The most dependencies of one array: more do not fit into memory."""


def scipy_sparse(what: str) -> Any:
    """``scipy.sparse``; ImportError that says how to install it."""
    try:
        import scipy.sparse
    except ImportError:
        raise ImportError(
            errors.message(f"{what} needs SciPy", do='pip install "pullback[sparse]"'), name="scipy"
        ) from None
    return scipy.sparse


class Run:
    """One run of a function on patterns, and what was noted in it.

    width: the number of inputs. unknown: how often each function whose structure is not known was called. looks: how
    often a value was looked at.
    """

    def __init__(self, width: int) -> None:
        self.width, self.unknown, self.looks = width, Counter[str](), 0
        self.sparse = scipy_sparse("a pattern")

    def inputs(self, array: Array) -> Pattern:
        """The inputs: each element depends on itself."""
        rows = self.sparse.eye_array(self.width, dtype=bool, format="csr")
        return Pattern(self, array, np.ones(array.shape, bool), rows)

    def point(self, array: Array) -> Pattern:
        """Values that vary, by which no set of inputs is followed."""
        return Pattern(self, array, np.ones(array.shape, bool), None)

    def constant(self, array: Any) -> Pattern:
        """Values that are always the same."""
        array = np.asarray(array)
        return Pattern(self, array, np.zeros(array.shape, bool), None)

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


class Pattern(Payload):
    """An array whose elements know which inputs they depend on.

    array: the values. varies: for each element, whether its value depends on an input at all, be it in a way that has
    no derivative, as that of ``floor(x)``. rows: the sets of inputs.
    """

    __slots__ = ("array", "rows", "run", "varies")

    def __init__(self, run: Run, array: Any, varies: Array, rows: Rows) -> None:
        self.run, self.array, self.varies = run, np.asarray(array), varies
        self.rows = rows if self.array.dtype.kind in "fcV" else None

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.array.dtype

    def numpy(self) -> Array:
        if self.rows is not None and self.rows.nnz:
            raise TypeError(
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

    def carry(self, function: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue}
        carried = rule_for(function)
        if carried is None:
            return unknown(self.run, function, args, kwargs)
        found = carried(self.run, function, args, kwargs)
        return unknown(self.run, function, args, kwargs) if found is NotImplemented else found


# What rules are made of -----------------------------------------------------------------------------------------------


def opened(value: Any) -> Any:
    """A value, with the arrays of the patterns in it."""
    if isinstance(value, Pattern):
        return value.array
    if isinstance(value, (list, tuple)):
        parts = [opened(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return {k: opened(v) for k, v in value.items()} if isinstance(value, dict) else value


def patterns_in(value: Any) -> Iterator[Pattern]:
    """The patterns in a value."""
    if isinstance(value, Pattern):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from patterns_in(part)
    elif isinstance(value, dict):
        yield from patterns_in(list(value.values()))


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
    """Rows each of which is the union of all."""
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


def unknown(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """The result of a function whose structure is not known: it depends on all that it got."""
    sources = [p for p in patterns_in([args, kwargs]) if p.varies.any()]
    followed = [p for p in sources if p.rows is not None and p.rows.nnz]
    if followed and (found := by_elements(run, function, args, kwargs)) is not NotImplemented:
        return found
    written = [(p, p.array.copy()) for p in patterns_in([args, kwargs])]
    found = function(*opened(args), **opened(kwargs))
    if followed:
        run.unknown[name_of(function)] += 1

    def after(array: Any) -> Pattern:
        array = np.asarray(array)
        rows: Rows = None
        for p in followed if array.dtype.kind in "fcV" else ():
            rows = run.united(rows, everything(p, array.size))
        return Pattern(run, array, np.full(array.shape, bool(sources)), rows)

    for k, (p, before) in enumerate(written):
        if (found is None and not k) or not np.array_equal(p.array, before, equal_nan=before.dtype.kind in "fc"):
            new = after(p.array)
            p.varies, p.rows = new.varies, new.rows
    return each(after, found)


class Seen:
    """An element that varies, as an object in an array: it collects the numbers of the elements it was made of.

    Sums and products are all it can be used for, so that a function that computes more fails on it.
    """

    __slots__ = ("numbers",)

    def __init__(self, numbers: frozenset[int]) -> None:
        self.numbers = numbers

    def _with(self, other: Any) -> Seen:
        return Seen(self.numbers | other.numbers) if isinstance(other, Seen) else self

    def _times(self, other: Any) -> Any:
        return 0.0 if not isinstance(other, Seen) and not other else self._with(other)

    def _same(self) -> Seen:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = _with
    __mul__ = __rmul__ = _times
    __neg__ = __pos__ = conjugate = _same


def by_elements(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """The result of a function that adds, multiplies and moves elements, found by running it on objects.

    ``NotImplemented`` if it does more, or if elements of other dtypes vary, such as positions.
    """
    sources: list[Pattern] = []
    objects: dict[int, Array] = {}

    def seen(value: Any) -> Any:
        array = value.array if isinstance(value, Pattern) else value
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fc":
            return array
        found = array.astype(object, order="C")
        if isinstance(value, Pattern):
            start = sum(p.size for p in sources)
            flat, numbered = found.reshape(-1), value.rows is not None
            for k in np.flatnonzero(value.varies):
                flat[k] = Seen(frozenset((start + int(k),)) if numbered else frozenset())
            sources.append(value)
            objects[id(value)] = found
        return found

    given = [p for p in patterns_in([args, kwargs]) if p.varies.any()]
    if any(p.dtype.kind not in "fc" for p in given):
        return NotImplemented
    try:
        found = function(*_changed(seen, args), **_changed(seen, kwargs))
    except Exception:
        return NotImplemented
    rows = stacked(run, sources)

    def after(array: Any, made: Any) -> Pattern:
        flat = [_element(e) for e in np.asarray(made, object).reshape(-1)]
        sets = [e.numbers if isinstance(e, Seen) else () for e in flat]
        lengths = [len(numbers) for numbers in sets]
        source = np.fromiter((k for numbers in sets for k in numbers), np.int64, sum(lengths))
        links = run.linked(np.repeat(np.arange(len(sets)), lengths), source, len(sets), rows.shape[0])
        varies = np.array([isinstance(e, Seen) for e in flat], bool).reshape(np.shape(array))
        return Pattern(run, array, varies, links @ rows)

    arrays = function(*opened(args), **opened(kwargs))
    for p in sources:
        new = after(p.array, objects[id(p)])
        p.varies, p.rows = new.varies, new.rows
    if isinstance(arrays, (tuple, list)):
        return type(arrays)(after(a, m) for a, m in zip(arrays, found, strict=True))
    return arrays if arrays is None else after(arrays, found)


def _element(value: Any) -> Any:
    """An element of an array of objects: NumPy may have put it into one of its own."""
    return value.item() if isinstance(value, np.ndarray) else value


def _changed(change: Callable[[Any], Any], value: Any) -> Any:
    """A value, or those in a list, tuple or dict, changed."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_changed(change, part) for part in value)
    return {k: _changed(change, v) for k, v in value.items()} if isinstance(value, dict) else change(value)


def stacked(run: Run, parts: list[Pattern]) -> Rows:
    """The rows of some patterns, one below the other."""
    if all(p.rows is None for p in parts):
        return None
    empty = [p.rows if p.rows is not None else run.sparse.csr_array((p.size, run.width), dtype=bool) for p in parts]
    return run.sparse.vstack(empty, format="csr")


def rule_for(function: Call) -> Any:
    """The rule that carries a function; None if its structure is not known."""
    if function in RULES:
        return RULES[function]
    if isinstance(function, np.ufunc):
        return elementwise if function.signature is None else None
    return None


RULES: dict[Any, Callable[..., Any]] = {}
"""For each function whose structure is known, what carries it: ``rule(run, function, args, kwargs)``."""


def elementwise(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """An elementwise function: the union of its operands."""
    if any(isinstance(v, Pattern) for v in kwargs.values()):
        return NotImplemented
    found = function(*opened(args), **kwargs)
    operands = [run.as_pattern(a) for a in args]
    shape = np.shape(found[0] if isinstance(found, tuple) else found)
    vary = [np.broadcast_to(p.varies, shape) for p in operands]
    rows = [spread(p, shape) for p in operands]
    if function is np.multiply:  # where one operand is always zero, the result is
        live = [v | (np.broadcast_to(p.array, shape) != 0) for v, p in zip(vary, operands, strict=True)]
        vary = [vary[0] & live[1], vary[1] & live[0]]
        rows = [kept(r, v) for r, v in zip(rows, vary, strict=True)]
    varies, union = vary[0], rows[0]
    for v, r in zip(vary[1:], rows[1:], strict=True):
        varies, union = varies | v, run.united(union, r)
    return each(lambda array: Pattern(run, array, varies, union), found)

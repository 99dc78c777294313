"""Patterns through functions whose structure is not known: they are run on objects that collect what they are made of.

What adds, multiplies and moves elements, as an operation of this package that works on arrays alone often does, works
on objects, too. If a function does more, its results depend on all that it got.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .patterns import Array, Pattern, Rows, Run, each, everything, has_patterns, numbers, opened, patterns_in, stacked
from .payload import Call, name_of, view


def unknown(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """The result of a function whose structure is not known: it depends on all that it got."""
    seen_as_view = view_by(function, args, kwargs)
    if seen_as_view is not None:
        return seen_as_view
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
            p.write(new.varies, new.rows)
    return each(after, found)


def view_by(function: Call, args: Any, kwargs: Any) -> Pattern | None:
    """The result of a function that takes a view of its first argument, as it does of the elements' numbers."""
    source = args[0] if args else None
    if not isinstance(source, Pattern) or function is view or has_patterns([args[1:], kwargs]):
        return None
    ids = numbers(source.shape)
    try:
        places = function(ids, *args[1:], **kwargs)
    except Exception:
        return None
    if not isinstance(places, np.ndarray) or places.dtype != ids.dtype or not np.may_share_memory(places, ids):
        return None
    found = function(source.array, *args[1:], **kwargs)
    if np.array_equal(np.ravel(source.array)[places], found, equal_nan=source.dtype.kind in "fc"):
        return source.view_of(found, places)
    return None


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
        p.write(new.varies, new.rows)
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

"""Colourings: which columns of a sparse matrix are computed together, because no row has two of them.

All of them are greedy, in one pass over the nonzeros: a row keeps the colours it has seen as the bits of one integer,
so that the first colour free for a column is the lowest bit that none of its rows has.

Gebremedhin, Manne and Pothen, What Color Is Your Jacobian? Graph Coloring for Computing Derivatives (2005).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

_DENSE = 3
"""Both are coloured without being asked for where there are this many times more colours than nonzeros in a row."""

_PATIENCE = 2
"""How many passes over the colours in a row may save none."""

_TRIES = 8
"""How many numbers of dense rows are tried when rows and columns are coloured together."""


class Colours(NamedTuple):
    """A colour for each column and for each row; -1 for those that are not computed."""

    columns: Array
    rows: Array


def columns(matrix: Any) -> Array:
    """A colour for each column of a CSR matrix, such that no row has two columns of one colour; -1 for empty columns.

    A distance-2 colouring of the columns in the bipartite graph of rows and columns.
    """
    return _greedy(_rows_of(matrix), matrix.shape[0])


def best_columns(matrix: Any) -> Array:
    """The better colouring of two orders, as the columns stand and the fullest first, and then with fewer colours.

    In an order that takes one colour's columns after another's, no more colours are needed than before, and often fewer
    (Culberson's iterated greedy colouring). The rarest colours come first, until that has not taken a colour away for
    some passes.
    """
    rows_of, rows = _rows_of(matrix), matrix.shape[0]
    found, fewest = _greedy(rows_of, rows), widest(matrix)
    lengths = np.fromiter(map(len, rows_of), np.int64)
    if count(found) > fewest and lengths.min() < lengths.max():
        other = _greedy(rows_of, rows, np.argsort(-lengths, kind="stable"))
        found = other if count(other) < count(found) else found
    idle = 0
    while count(found) > fewest and idle < _PATIENCE:
        of_colour = np.bincount(found[found >= 0])
        other = _greedy(rows_of, rows, np.lexsort((found, np.where(found >= 0, of_colour[found], 0))))
        idle = 0 if count(other) < count(found) else idle + 1
        found = other
    return found


def _rows_of(matrix: Any) -> list[list[int]]:
    """The rows of the nonzeros of each column."""
    csc = matrix.tocsc()
    rows = csc.indices.tolist()
    return [rows[a:b] for a, b in itertools.pairwise(csc.indptr.tolist())]


def _greedy(rows_of: list[list[int]], rows: int, order: Array | None = None) -> Array:
    """Each column in its turn gets the first colour that is free: -1 for a column without rows."""
    seen = [0] * rows
    found = [-1] * len(rows_of)
    for j in range(len(rows_of)) if order is None else order.tolist():
        mine = rows_of[j]
        taken = 0
        for i in mine:
            taken |= seen[i]
        free = ~taken & (taken + 1)  # the lowest bit that is not set
        for i in mine:
            seen[i] |= free
        if mine:
            found[j] = free.bit_length() - 1
    return np.array(found, np.int64)


def count(colours: Array) -> int:
    """How many colours there are."""
    return int(colours.max(initial=-1)) + 1


def widest(matrix: Any) -> int:
    """The most nonzeros of a row: no colouring of columns has fewer colours."""
    return int(np.diff(matrix.indptr).max(initial=0))


def both(matrix: Any, best: Colours) -> Colours:
    """Colours by which some dense rows are computed by rows, and the rest by columns; `best` if none are fewer."""
    lengths = np.diff(matrix.indptr)
    fullest = np.argsort(-lengths, kind="stable")
    ends = np.flatnonzero(np.diff(lengths[fullest])) + 1  # where rows become shorter
    for end in ends[:_TRIES].tolist():
        most = count(best.columns) + count(best.rows)
        if lengths[fullest[end]] >= most:
            continue
        of_rows = np.full(matrix.shape[0], -1)
        of_rows[fullest[:end]] = best_columns(_without(matrix, fullest[end:]).T.tocsr())[fullest[:end]]
        of_columns = best_columns(_without(matrix, fullest[:end]))
        if count(of_columns) + count(of_rows) < most:
            best = Colours(of_columns, of_rows)
    return best


def chosen(matrix: Any, by: str) -> Colours:
    """The colours of a Jacobian's pattern, by "columns", "rows" or "both"; "auto" takes the fewest."""
    rows, cols = matrix.shape
    transposed = matrix.T.tocsr()
    wide, high = widest(matrix), widest(transposed)
    alike = all(np.array_equal(getattr(matrix, a), getattr(transposed, a)) for a in ("indptr", "indices"))
    found: list[Colours] = []
    sides = ("columns", "rows") if wide <= high else ("rows", "columns")
    for side, least in zip(sides, sorted((wide, high)), strict=True):
        fewer = not found or (not alike and least < count(found[0].columns) + count(found[0].rows))
        if by == side or (by in ("auto", "both") and fewer):
            of_columns = best_columns(matrix) if side == "columns" else np.full(cols, -1)
            of_rows = best_columns(transposed) if side == "rows" else np.full(rows, -1)
            found.append(Colours(of_columns, of_rows))
    best = min(found, key=lambda c: count(c.columns) + count(c.rows))
    dense = count(best.columns) + count(best.rows) > _DENSE * matrix.nnz / max(rows, 1)
    return both(matrix, best) if by == "both" or (by == "auto" and dense) else best


def _without(matrix: Any, rows: Array) -> Any:
    """The matrix with these rows emptied."""
    kept = np.ones(matrix.shape[0], bool)
    kept[rows] = False
    indptr = np.concatenate(([0], np.cumsum(np.where(kept, np.diff(matrix.indptr), 0))))
    indices = matrix.indices[np.repeat(kept, np.diff(matrix.indptr))]
    return type(matrix)((np.ones(len(indices), bool), indices, indptr), shape=matrix.shape)


def star(matrix: Any) -> Array:
    """A colour for each row and column of a symmetric CSR matrix, such that each nonzero can be read from H s.

    Neighbours differ, and of a path of three whose ends are alike the middle has the lower colour: a star colouring
    (Coleman and Moré, 1984). The better of two orders is taken.
    """
    found = _star(matrix, np.argsort(-np.diff(matrix.indptr), kind="stable"))
    if count(found) <= 2:
        return found
    other = _star(matrix, np.arange(matrix.shape[0]))
    return other if count(other) <= count(found) else found


def _star(matrix: Any, order: Array) -> Array:
    starts, indices = matrix.indptr.tolist(), matrix.indices.tolist()
    found = [-1] * matrix.shape[0]
    seen = [0] * matrix.shape[0]  # the colours of the neighbours so far
    for v in order.tolist():
        near = indices[starts[v] : starts[v + 1]]
        if not near:
            continue
        taken = 0
        for w in near:
            if w != v:
                colour = found[w]
                # an uncoloured neighbour may get any colour; one that has a colour must have the lower one
                taken |= seen[w] if colour < 0 else (1 << colour) | (seen[w] & ((1 << colour) - 1))
        free = ~taken & (taken + 1)
        found[v] = free.bit_length() - 1
        for w in near:
            if w != v:
                seen[w] |= free
    return np.array(found, np.int64)

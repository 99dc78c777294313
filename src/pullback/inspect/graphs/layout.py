"""Places the boxes of a picture in rows through which gradients flow downwards, after Sugiyama.

There are four steps, each one pass or a few over the graph. A box stands one row below the lowest box that sends it
gradients. An edge that passes rows gets a place in each, so that it bends around boxes. Each row is sorted by the mean
places of its neighbours, in sweeps down and up. Then every box moves to the mean of its neighbours, as near as the
boxes beside it permit: least squares under minimal distances, which pooling neighbours solves exactly.

The page draws by the same steps (`layout` in page.js); a test compares the two.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures", 1981.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

GAP_X, GAP_Y = 24.0, 34.0
SWEEPS, MOVES = 6, 8
STRAIGHT = 8.0  # the pull of an edge that passes a row, relative to one that ends there


@dataclasses.dataclass(slots=True)
class Layout:
    """The middle of each box, the bends of each edge from its first box to its last, and the size of the whole."""

    places: list[tuple[float, float]]
    bends: list[list[tuple[float, float]]]
    width: float
    height: float


def layout(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Place boxes of these widths and heights. Every edge goes from a lower number to a higher one."""
    if not sizes:
        return Layout([], [], 0.0, 0.0)
    rows_of = _rows(len(sizes), edges)
    widths = [w for w, _ in sizes]
    paths = _paths(edges, rows_of, widths)
    above: list[list[int]] = [[] for _ in widths]
    below: list[list[int]] = [[] for _ in widths]
    for path in paths:
        for a, b in itertools.pairwise(path):
            if rows_of[b] - rows_of[a] == 1:
                below[a].append(b)
                above[b].append(a)
    rows = _ordered(rows_of, above, below)
    x = _moved(rows, widths, above, below, len(sizes))
    tops, height = _heights(rows, sizes)
    left = min(x[i] - widths[i] / 2 for i in range(len(widths)))
    width = max(x[i] + widths[i] / 2 for i in range(len(widths))) - left
    at = [(x[i] - left, tops[rows_of[i]]) for i in range(len(widths))]
    return Layout(at[: len(sizes)], [[at[i] for i in path] for path in paths], width, height)


def _rows(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The row of each box: one below the lowest box that sends it a gradient."""
    rows = [0] * count
    for a, b in sorted(edges):
        rows[b] = max(rows[b], rows[a] + 1)
    return rows


def _paths(edges: Sequence[tuple[int, int]], rows: list[int], widths: list[float]) -> list[list[int]]:
    """Each edge as the boxes and places it passes; places are added to `rows` and `widths`.

    The number of places is limited, and the shortest edges get them first; other edges go straight, across any boxes.
    """
    budget = 1000 + 4 * len(rows)
    spans = sorted((rows[b] - rows[a], i) for i, (a, b) in enumerate(edges))
    paths = [[a, b] for a, b in edges]
    for span, i in spans:
        budget -= span - 1
        if budget < 0:
            break
        a, b = edges[i]
        first = len(rows)
        rows += range(rows[a] + 1, rows[b])
        widths += [4.0] * (span - 1)
        paths[i] = [a, *range(first, first + span - 1), b]
    return paths


def _ordered(rows_of: list[int], above: list[list[int]], below: list[list[int]]) -> list[list[int]]:
    """The members of each row from left to right."""
    rows: list[list[int]] = [[] for _ in range(max(rows_of) + 1)]
    seen = [False] * len(rows_of)
    for start in range(len(rows_of)):  # depth first, so that boxes that belong together start side by side
        stack = [start]
        while stack:
            i = stack.pop()
            if not seen[i]:
                seen[i] = True
                rows[rows_of[i]].append(i)
                stack += reversed(below[i])
    place = [0.0] * len(rows_of)
    for row in rows:
        _number(row, place)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = above if downwards else below
        for row in rows if downwards else reversed(rows):
            keys = {i: _mean([place[j] for j in neighbours[i]], place[i]) for i in row}
            row.sort(key=keys.__getitem__)
            _number(row, place)
    return rows


def _number(row: list[int], place: list[float]) -> None:
    for k, i in enumerate(row):
        place[i] = float(k)


def _mean(values: list[float], otherwise: float) -> float:
    total = 0.0
    for value in values:
        total += value
    return total / len(values) if values else otherwise


def _moved(
    rows: list[list[int]], widths: list[float], above: list[list[int]], below: list[list[int]], boxes: int
) -> list[float]:
    """The horizontal middle of each member. Boxes with more rows below them are harder to move, so a trunk stays
    straight.
    """
    x = [0.0] * len(widths)
    mass = [1.0] * len(widths)
    for row in reversed(rows):
        for i in row:
            for j in below[i]:
                mass[i] = max(mass[i], mass[j] + 1.0)
    apart = []
    for row in rows:
        offsets, total = [], 0.0
        for k, i in enumerate(row):
            if k:
                total += (widths[row[k - 1]] + widths[i]) / 2 + GAP_X
            offsets.append(total)
        apart.append(offsets)
        for i, offset in zip(row, offsets, strict=True):
            x[i] = offset - total / 2
    for move in range(MOVES):
        downwards = move % 2 == 0
        numbers = range(len(rows)) if downwards else range(len(rows) - 1, -1, -1)
        last = move >= MOVES - 2
        for r in numbers:
            row = rows[r]
            wanted = []
            for i in row:
                pull = total = 0.0
                for j in [*above[i], *below[i]] if last else above[i] if downwards else below[i]:
                    weight = min(mass[i], mass[j]) * (STRAIGHT if i >= boxes and j >= boxes else 1.0)
                    pull, total = pull + weight, total + weight * x[j]
                wanted.append(total / pull if pull else x[i])
            for i, found in zip(row, _apart(wanted, apart[r], [mass[i] for i in row]), strict=True):
                x[i] = found
    return x


def _apart(wanted: list[float], offsets: list[float], masses: list[float]) -> list[float]:
    """The numbers nearest to `wanted`, by weighted least squares, that are at least `offsets` apart."""
    pools: list[tuple[float, float, int]] = []  # (mean, mass, count) of neighbours that touch
    for value, offset, mass in zip(wanted, offsets, masses, strict=True):
        mean, total, count = value - offset, mass, 1
        while pools and pools[-1][0] >= mean:
            other, more, many = pools.pop()
            mean, total, count = (mean * total + other * more) / (total + more), total + more, count + many
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _heights(rows: list[list[int]], sizes: Sequence[tuple[float, float]]) -> tuple[list[float], float]:
    """The middle of each row from the top, and the height of all."""
    middles, top = [], 0.0
    for row in rows:
        tall = max((sizes[i][1] for i in row if i < len(sizes)), default=0.0)
        middles.append(top + tall / 2)
        top += tall + GAP_Y
    return middles, top - GAP_Y

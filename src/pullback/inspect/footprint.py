"""The memory that a graph holds: by node, by line of the user's code, by shape.

Nodes keep tensors until the backward pass has run. `memory` walks the graph behind a tensor and asks each node what it
keeps; each piece of memory (a `Storage`: an array that owns its elements) is counted once. Some pieces are kept anyway,
as a leaf or in the caller's variables. The others would be free without the graph. The result holds only numbers and
words, and no part of the graph.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..autograd.node import FREED, AccumulateGrad, reachable
from ..diagnose.places import at, named_tensors, place_of_node
from ..errors import describe, message
from ..tensor.printing import count_of_bytes as size
from ..tensor.tensor import Tensor, need_tensor
from .pieces import Piece, data_of, kept_by, piece_of


@dataclass(frozen=True)
class Storage:
    """A piece of memory that nodes of the graph hold.

    holders: the numbers of the nodes. kept: another holder: "a leaf", a variable's name, or "". shapes: the shapes of
    the tensors in it. device: where it lies.
    """

    nbytes: int
    holders: tuple[int, ...]
    kept: str
    shapes: tuple[str, ...]
    device: str = "cpu"


@dataclass(frozen=True)
class Row:
    """Some of the nodes: the bytes they hold, and those that only they hold, which would be free without them."""

    label: str
    count: int
    holds: int
    frees: int


@dataclass(frozen=True)
class GraphMemory:
    """The result of `memory`: tables as `str`, bars as `bars()`, `svg()` and `html()`. All figures are bytes.

    nodes: the name and the line of each. storages: the memory they hold. overhead: roughly the size of the nodes
    themselves. freed: whether a backward pass has freed some already. packed: values that hooks have packed, of unknown
    size.
    """

    nodes: tuple[tuple[str, str], ...]
    storages: tuple[Storage, ...]
    overhead: int
    freed: bool
    packed: int

    @property
    def total(self) -> int:
        """The bytes that the graph holds, each piece of memory once."""
        return sum(s.nbytes for s in self.storages)

    @property
    def kept(self) -> int:
        """The bytes of these that leaves and the caller's variables keep anyway."""
        return sum(s.nbytes for s in self.storages if s.kept)

    def by_node(self) -> list[Row]:
        """A row for each kind of node."""
        return self._rows(lambda i: self.nodes[i][0])

    def by_line(self) -> list[Row]:
        """A row for each line of the user's code, if origins were recorded."""
        return self._rows(lambda i: self.nodes[i][1])

    def by_shape(self) -> list[Row]:
        """A row for each shape and dtype."""
        return self._pieces(lambda s: " and ".join(s.shapes))

    def by_device(self) -> list[Row]:
        """A row for each device."""
        return self._pieces(lambda s: s.device)

    def _pieces(self, key: Callable[[Storage], str]) -> list[Row]:
        rows: dict[str, list[Storage]] = {}
        for s in self.storages:
            rows.setdefault(key(s), []).append(s)
        found = [
            Row(k, len(v), sum(s.nbytes for s in v), sum(s.nbytes for s in v if not s.kept)) for k, v in rows.items()
        ]
        return sorted(found, key=lambda row: -row.holds)

    def frees_without(self, *words: str) -> int:
        """The bytes that would be free without the nodes that have one of these words in their name or line.

        Recomputing those nodes in the backward pass (`pullback.utils.checkpoint`) would save as much.
        """
        chosen = {i for i, node in enumerate(self.nodes) if any(word in part for word in words for part in node)}
        return sum(s.nbytes for s in self.storages if not s.kept and chosen.issuperset(s.holders))

    def _rows(self, key: Callable[[int], str]) -> list[Row]:
        groups: dict[str, list[int]] = {}
        for i in range(len(self.nodes)):
            groups.setdefault(key(i), []).append(i)
        held: dict[str, list[int]] = {label: [0, 0] for label in groups}
        for s in self.storages:
            labels = {key(i) for i in s.holders}
            for label in labels:
                held[label][0] += s.nbytes
                held[label][1] += s.nbytes if len(labels) == 1 and not s.kept else 0
        rows = [Row(label, len(members), *held[label]) for label, members in groups.items()]
        return sorted((row for row in rows if row.holds), key=lambda row: -row.holds)

    # Pictures -------------------------------------------------------------------------------------------------------

    def _summary(self) -> list[str]:
        leaves = sum(name == AccumulateGrad.__name__ for name, _ in self.nodes)
        counted = f"{len(self.nodes) - leaves} nodes and {leaves} {'leaf' if leaves == 1 else 'leaves'}"
        lines = [
            f"{counted} hold {size(self.total)} in {len(self.storages)} pieces of memory, "
            f"and are about {size(self.overhead)} themselves."
        ]
        if any(s.device != "cpu" for s in self.storages):
            lines.append("; ".join(f"{size(row.holds)} on {row.label}" for row in self.by_device()) + ".")
        if self.kept:
            lines.append(f"{size(self.kept)} of it is kept by leaves and variables anyway.")
        free = self.total - self.kept
        lines.append(f"{size(free)} would be free without the graph: after backward(), or when the loss is forgotten.")
        names = sorted({s.kept for s in self.storages if s.kept.startswith("`")})
        if names:
            lines.append(f"Variables that keep some: {', '.join(names[:8])}.")
        if self.packed:
            lines.append(f"{self.packed} saved values are packed by hooks, and are not counted.")
        if self.freed:
            lines.append("A backward pass has run through it and freed what its nodes had saved.")
        line = next((row for row in self.by_line() if row.frees and row.label != _UNKNOWN), None)
        if line is not None:
            lines.append(f"A checkpoint around {line.label} would free {size(line.frees)} until backward.")
        elif any(row.label == _UNKNOWN for row in self.by_line()):
            lines.append("Lines were not recorded: compute the loss within pullback.autograd.record_origins().")
        return lines

    def _tables(self) -> list[tuple[str, list[Row]]]:
        lines = [row for row in self.by_line() if row.label != _UNKNOWN]
        tables = [("by node", self.by_node()), ("by line", lines), ("by shape", self.by_shape())]
        return [(title, rows) for title, rows in tables if rows]

    def __str__(self) -> str:
        text = self._summary()
        for title, rows in self._tables():
            text += ["", f"{title:<48} {'count':>6} {'holds':>10} {'frees':>10}"]
            text += [
                f"{_short(row.label, 48):<48} {row.count:>6} {size(row.holds):>10} {size(row.frees):>10}"
                for row in rows[:_ROWS]
            ]
            if len(rows) > _ROWS:
                text.append(f"... and {len(rows) - _ROWS} more")
        return "\n".join(text)

    __repr__ = __str__

    def bars(self, by: str = "node", width: int = 40) -> str:
        """A bar chart for a terminal. by: "node", "line", "shape" or "device". Full blocks: free; light: held."""
        rows = self._chosen(by)[:_ROWS]
        most = max((row.holds for row in rows), default=1) or 1
        text = []
        for row in rows:
            full, all_ = (round(width * n / most) for n in (row.frees, row.holds))
            text.append(f"{_short(row.label, 40):<40} {'█' * full}{'░' * (max(all_, 1) - full)} {size(row.holds)}")
        return "\n".join(text)

    def svg(self, by: str = "node") -> str:
        """The same chart as the text of an SVG picture."""
        rows = self._chosen(by)[:_ROWS]
        most = max((row.holds for row in rows), default=1) or 1
        height = 24 * len(rows) + 30
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}" '
            'font-family="system-ui, sans-serif" font-size="12" role="img">',
            f"<title>Memory held by the graph, by {html.escape(by)}</title>",
            '<text x="300" y="14" fill="#3b6ea5">would be free</text><text x="400" y="14" fill="#8a94a0">held by '
            "others too</text>",
        ]
        for i, row in enumerate(rows):
            y, full, whole = 24 * i + 24, 340 * row.frees / most, 340 * row.holds / most
            label = html.escape(_short(row.label, 44))
            parts.append(
                f"<g><title>{html.escape(row.label)}: holds {row.holds} bytes, frees {row.frees}</title>"
                f'<text x="290" y="{y + 14}" text-anchor="end" fill="#5a6570">{label}</text>'
                f'<rect x="300" y="{y + 2}" width="{max(whole, 1):.1f}" height="16" fill="#b9c3cd"/>'
                f'<rect x="300" y="{y + 2}" width="{full:.1f}" height="16" fill="#3b6ea5"/>'
                f'<text x="{306 + whole:.1f}" y="{y + 14}" fill="#5a6570">{size(row.holds)}</text></g>'
            )
        return "\n".join([*parts, "</svg>"])

    def html(self) -> str:
        """A page with the summary and the three charts, complete in itself."""
        body = "".join(f"<p>{html.escape(line)}</p>" for line in self._summary())
        for title, _ in self._tables():
            body += f"<h2>{title}</h2>{self.svg(title.removeprefix('by '))}"
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Memory of the graph</title><style>'
            "body{font:14px system-ui,sans-serif;margin:2em;max-width:52em;color:#222;background:#fff}"
            "h2{font-size:1.1em}svg{max-width:100%;height:auto}</style></head><body><h1>Memory of the graph</h1>"
            f"{body}</body></html>"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._summary()[0])}</p>{self.svg()}"

    def _chosen(self, by: str) -> list[Row]:
        rows = {"node": self.by_node, "line": self.by_line, "shape": self.by_shape, "device": self.by_device}
        if by not in rows:
            expected = "by 'node', 'line', 'shape' or 'device'"
            raise ValueError(message("memory chart", expected=expected, found=repr(by)))
        return rows[by]()


_ROWS = 12
_UNKNOWN = "(line not recorded)"


def _short(text: str, n: int) -> str:
    return text if len(text) <= n else "..." + text[3 - n :]


def memory(loss: Tensor) -> GraphMemory:
    """The memory that the graph behind a tensor holds, each piece of it counted once.

    loss: a Tensor of any shape that requires grad. TypeError for anything else, RuntimeError for a tensor without a
    graph. Nothing is computed, and nothing is kept.

    >>> import pullback
    >>> x = pullback.ones(256, requires_grad=True)
    >>> found = pullback.inspect.memory(x.exp().tanh().sum())
    >>> print(found)
    3 nodes and 1 leaf hold 2.0 KiB in 2 pieces of memory, and are about ...
    2.0 KiB would be free without the graph: after backward(), or when the loss is forgotten.
    Lines were not recorded: compute the loss within pullback.autograd.record_origins().
    <BLANKLINE>
    by node                                           count      holds      frees
    TanhBackward0                                         1    1.0 KiB    1.0 KiB
    ExpBackward0                                          1    1.0 KiB    1.0 KiB
    <BLANKLINE>
    by shape                                          count      holds      frees
    float32[256]                                          2    2.0 KiB    2.0 KiB
    """
    need_tensor("memory(): argument loss", loss)
    edge = loss._edge or loss._leaf
    if not loss._requires_grad or edge is None:
        raise RuntimeError(
            message(
                "memory(): argument loss",
                expected="a Tensor with a graph",
                found=f"{describe(loss)} without one",
                do="compute it from tensors that require grad; pullback.explain(loss) says why it has none",
            )
        )
    nodes = sorted(reachable([edge[0]]), key=lambda node: node._order)
    held: dict[int, tuple[Piece, list[int], dict[str, None]]] = {}
    freed, packed, overhead = False, 0, 0
    for i, node in enumerate(nodes):
        overhead += sys.getsizeof(node) + sys.getsizeof(node._edges)
        for value in kept_by(node):
            if value is FREED:
                freed = True
            elif (data := data_of(value)) is None:
                packed += 1
            else:
                piece = piece_of(data)
                _, holders, shapes = held.setdefault(id(piece.owner), (piece, [], {}))
                if not holders or holders[-1] != i:
                    holders.append(i)
                shapes[f"{data.dtype}{list(data.shape)}"] = None
    kept = _kept_anyway(nodes)
    storages = [
        Storage(piece.nbytes, tuple(holders), kept.get(number, ""), tuple(shapes), piece.device)
        for number, (piece, holders, shapes) in held.items()
    ]
    names = tuple((node.name(), _line(node)) for node in nodes)
    return GraphMemory(names, tuple(sorted(storages, key=lambda s: -s.nbytes)), overhead, freed, packed)


def _line(node: Any) -> str:
    place = place_of_node(node)
    return _UNKNOWN if place is None else at(place)


def _kept_anyway(nodes: Sequence[Any]) -> dict[int, str]:
    """The other holders of memory, by the id of each array: the caller's variable, or "a leaf"."""
    kept = {id(piece_of(t._data).owner): f"`{name}`" for name, t in reversed(list(named_tensors()))}
    for node in nodes:
        if isinstance(node, AccumulateGrad):
            kept[id(piece_of(node.variable._data).owner)] = "a leaf"
    return kept


def held_by(value: Any) -> str:
    """What the graph of a value holds, in a sentence or two; "" for a value without a graph."""
    if not isinstance(value, Tensor) or not value._requires_grad or value._edge is None:
        return ""
    found = memory(value)
    most = ", ".join(f"{row.label} ({row.count}) {size(row.holds)}" for row in found.by_node()[:3])
    return " ".join([*found._summary()[:2], f"Most of it: {most}." if most else ""]).strip()


errors.doors(globals(), "memory")

"""The picture for a terminal: a line for each box, in the order of the backward pass, indented only where it forks."""

from __future__ import annotations

from collections.abc import Collection

from ...tensor.printing import count_of_bytes
from . import labels
from .description import LEAF, LOSS, USER, Description
from .repeats import Folding, visible

_COLOURS = {LOSS: "1", LEAF: "32", USER: "33", "operation": "34", "group": "35"}


def text(description: Description, folding: Folding, opened: Collection[int], colour: bool = False) -> str:
    """Draw a graph as lines of text.

    A line stands above the line that it sends its gradient to. If there are several, each gets a branch, the longest
    last and in the same column, so that a chain stays one column however long it is. A box with several senders is
    drawn below the last of them, and only named below the others. colour: use a terminal's escape codes.
    """
    shown = visible(description, folding, opened)
    below: list[list[int]] = [[] for _ in shown.items]
    waiting = [0] * len(shown.items)
    for source, target in shown.edges:
        below[source].append(target)
        waiting[target] += 1
    heights = [0] * len(shown.items)
    for place in range(len(shown.items) - 1, -1, -1):
        heights[place] = max((heights[way] + 1 for way in below[place]), default=0)
    shared = {place for place, count in enumerate(waiting) if count > 1}
    named: set[int] = set()
    lines = []
    stack = [(0, "", "")]
    while stack:
        place, lead, rest = stack.pop()
        waiting[place] -= 1
        line = _Line(description, folding, *shown.items[place], place in shared, colour)
        if not below[place] and place in named:
            lines.append(f"{lead}{line.head}  (above)")
        elif below[place] and waiting[place] > 0:
            lines.append(f"{lead}{line.head}  (below)")
        else:
            lines.append(lead + "  ".join([line.head, *line.details]))
            ways = sorted(below[place], key=heights.__getitem__)
            branches = [(way, rest + "├─ ", rest + "│  ") for way in ways[:-1]]
            for way in ways[-1:]:
                ends = bool(branches) and not below[way]
                branches.append((way, rest + "└─ ", rest + "   ") if ends else (way, rest, rest))
            stack += reversed(branches)
        named.add(place)
    return "\n".join([*lines, _total(description)]) + "\n"


class _Line:
    """A box on one line: its name, and the details shown where it is drawn."""

    def __init__(
        self, description: Description, folding: Folding, is_group: bool, i: int, shared: bool, colour: bool
    ) -> None:
        if is_group:
            kind = "group"
            name, *words = labels.of_group(description, folding.groups[i], most=5)
            number = f" (repeat {i})" if shared else ""
            self.details = [", ".join(words)]
        else:
            info = description.nodes[i]
            kind = info.kind
            name, *self.details = labels.of_node(info)
            number = f" #{info.made}" if info.made else ""
            if kind == LEAF:
                number = " (leaf)" if info.variable else f" {i}" if shared else ""
        self.head = (f"\033[{_COLOURS[kind]}m{name}\033[0m" if colour else name) + number


def _total(description: Description) -> str:
    nodes = labels.counted(len(description.operations), "node")
    leaves = labels.counted(sum(info.kind == LEAF for info in description.nodes), "leaf", "leaves")
    return f"{nodes}, {leaves}, {count_of_bytes(description.nbytes)} saved"

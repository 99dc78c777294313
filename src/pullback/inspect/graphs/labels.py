"""The text in the boxes of a picture, in all its forms, and the format of numbers, sizes and shapes there."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...tensor.printing import count_of_bytes
from .description import LEAF, LOSS, Description, NodeInfo, Values, bytes_kept
from .repeats import Group

WIDEST = 34  # characters of a line in a box


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things.

    >>> counted(1, "node"), counted(2, "leaf", "leaves")
    ('1 node', '2 leaves')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def number(value: float) -> str:
    """A norm with three digits."""
    return f"{value:.3g}"


def outputs(info: NodeInfo) -> str:
    """The shapes and dtypes of a node's outputs.

    >>> outputs(NodeInfo(1, "MulBackward0", "operation", outputs=[((2, 3), "float32")]))
    '[2, 3] float32'
    """
    rows = _summed((f"{list(out[0])} {out[1]}" for out in info.outputs if out), most=3)
    return ", ".join(rows)


def gradient(values: Values | None) -> str:
    """The norm of a gradient, or ""."""
    known = values is not None and not (math.isnan(values.norm) and values.elements is None)
    return f"|grad| {number(values.norm)}" if values is not None and known else ""


def title(info: NodeInfo) -> str:
    """The title of a box: the name of a leaf or node, a node's after the name of its tensor, if known."""
    if info.kind == LEAF:
        return info.variable or "leaf"
    return f"{info.variable} = {info.name}" if info.variable and info.kind != LOSS else info.name


def of_node(info: NodeInfo) -> list[str]:
    """The lines of the box of a node."""
    lines = [title(info), outputs(info)]
    if info.saved:
        titles = dict.fromkeys(s.title for s in info.saved)
        lines.append(f"saves {count_of_bytes(info.nbytes)}: {', '.join(titles)}")
    elif info.state == "freed":
        lines.append("saved values freed")
    if info.grad is not None:
        lines.append(gradient(info.grad))
    return [short(line) for line in lines if line]


def of_group(description: Description, group: Group, most: int = 9) -> list[str]:
    """The lines of the box of a folded group: "x 12", or which block it is, and up to `most` of the operations in a
    block.
    """
    nodes = [description.nodes[i] for i in group.members]
    block = [info for info in nodes if group.start < info.made <= group.start + group.period]
    block.sort(key=lambda info: -info.made)
    leaves = [info for info in nodes if info.kind == LEAF]
    head = f"block {group.block}" if group.block else f"x {group.count}"
    lines = [head, *_summed((info.name for info in block), most)]
    if not group.period:
        lines = [counted(len(leaves), "leaf", "leaves"), *_summed((outputs(info) for info in leaves), most=3)]
    elif leaves:
        lines.append(counted(len(leaves), "leaf", "leaves"))
    if saved := bytes_kept(nodes):
        lines.append(f"saves {count_of_bytes(saved)}")
    return [short(line) for line in lines]


def _summed(names: Iterable[str], most: int) -> list[str]:
    """Words in a row, equal neighbours counted together, at most `most` of them."""
    rows: list[list[object]] = []
    for name in names:
        if rows and rows[-1][0] == name:
            rows[-1][1] = int(str(rows[-1][1])) + 1
        else:
            rows.append([name, 1])
    lines = [str(name) if count == 1 else f"{name} x {count}" for name, count in rows]
    return lines if len(lines) <= most else [*lines[: most - 1], f"and {len(lines) - most + 1} more"]


def short(text: str) -> str:
    """A line that fits into a box."""
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


LINE, PADDING, CHARACTER = 16.0, 10.0, 7.3
"""The height of a line, the margin inside a box, and the width of a character in a monospaced font of 12 pixels."""


def size(lines: list[str]) -> tuple[float, float]:
    """The width and height of the box around some lines."""
    return max(len(line) for line in lines) * CHARACTER + 2 * PADDING, len(lines) * LINE + PADDING

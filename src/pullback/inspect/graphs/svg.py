"""The picture as SVG, in light and dark: for a file of its own, or inside a notebook."""

from __future__ import annotations

import html
import itertools
from collections.abc import Collection

from ...tensor.printing import count_of_bytes
from . import labels
from .description import LEAF, LOSS, Description
from .layout import layout
from .repeats import Folding, visible

MARGIN = 16.0

# One colour for each kind, and a shape: a leaf is round, a Function has a strong frame, a group has a second frame
# behind it.
STYLE = """
.pb-paper{fill:#ffffff}
.pb-box{fill:#eef2f7;stroke:#8496ad}
.pb-function{fill:#fdf0e1;stroke:#c26a10;stroke-width:2.5}
.pb-leaf{fill:#e6f4ea;stroke:#3f8f5b}
.pb-loss{fill:#26354a;stroke:#26354a}
.pb-group{fill:#efeafb;stroke:#7a5fc0}
.pb-line{fill:none;stroke:#8496ad;stroke-width:1.3}
.pb-far{stroke-opacity:.35}
.pb-head{fill:#8496ad}
.pb text{font:12px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1b2533}
.pb .pb-title{font-weight:bold}
.pb .pb-many{fill:#5b6b80;font-size:11px;paint-order:stroke;stroke:#ffffff;stroke-width:4px}
.pb .pb-on-loss{fill:#ffffff}
@media (prefers-color-scheme:dark){
.pb-paper{fill:#161b22}
.pb-box{fill:#222c3a;stroke:#70849e}
.pb-function{fill:#3a2a17;stroke:#e09a4e}
.pb-leaf{fill:#1b3325;stroke:#63b783}
.pb-loss{fill:#d5dfec;stroke:#d5dfec}
.pb-group{fill:#2c2544;stroke:#a690e6}
.pb-line{stroke:#70849e}
.pb-head{fill:#70849e}
.pb text{fill:#e3e9f1}
.pb .pb-many{fill:#9fb0c5;stroke:#161b22}
.pb .pb-on-loss{fill:#161b22}
}
"""

_CLASSES = {LOSS: "loss", LEAF: "leaf", "function": "function", "operation": "box"}


def svg(description: Description, folding: Folding, opened: Collection[int]) -> str:
    """Draw a graph with all groups folded but those `opened`."""
    shown = visible(description, folding, opened)
    boxes = []
    for is_group, i in shown.items:
        info = None if is_group else description.nodes[i]
        lines = labels.of_group(description, folding.groups[i]) if info is None else labels.of_node(info)
        boxes.append(("group" if info is None else _CLASSES[info.kind], lines, _tip(description, folding, is_group, i)))
    sizes = [labels.size(lines) for _, lines, _ in boxes]
    edges = list(shown.edges)
    drawn = layout(sizes, edges)
    width, height = drawn.width + 2 * MARGIN, drawn.height + 2 * MARGIN
    told = f"The graph behind {labels.outputs(description.nodes[0])}: {len(description.operations)} nodes"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pb" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{html.escape(told)}</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="pb-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" markerHeight="9" '
        'markerUnits="userSpaceOnUse" orient="auto"><path class="pb-head" d="M0 0L8 4L0 8z"/></marker></defs>',
        '<rect class="pb-paper" width="100%" height="100%"/>',
        f'<g transform="translate({MARGIN:.0f} {MARGIN:.0f})">',
    ]
    for edge, bends in zip(edges, drawn.bends, strict=True):
        parts.append(_line(bends, sizes[edge[0]][1], sizes[edge[1]][1], shown.edges[edge]))
    for (kind, lines, tip), (x, y), (w, h) in zip(boxes, drawn.places, sizes, strict=True):
        parts.append(_box(kind, lines, tip, x, y, w, h))
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _line(bends: list[tuple[float, float]], above: float, below: float, many: int) -> str:
    """An edge from the lower side of its first box, around others, to the upper side of its last."""
    points = [(bends[0][0], bends[0][1] + above / 2), *bends[1:-1], (bends[-1][0], bends[-1][1] - below / 2)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        half = (y0 + y1) / 2
        path += f"C{x0:.1f} {half:.1f} {x1:.1f} {half:.1f} {x1:.1f} {y1:.1f}"
    far = " pb-far" if len(bends) == 2 and points[1][1] - points[0][1] > 400 else ""
    line = f'<path class="pb-line{far}" d="{path}" marker-end="url(#pb-arrow)"/>'
    if many > 1:
        (x0, y0), (x1, y1) = points[-2:]
        line += f'<text class="pb-many" x="{(x0 + x1) / 2 + 5:.1f}" y="{(y0 + y1) / 2 + 4:.1f}">x {many}</text>'
    return line


def _box(kind: str, lines: list[str], tip: str, x: float, y: float, w: float, h: float) -> str:
    left, top = x - w / 2, y - h / 2
    radius = min(h / 2, 20) if kind in ("leaf", "loss") else 5
    at = f'width="{w:.1f}" height="{h:.1f}" rx="{radius:.0f}"'
    behind = f'<rect class="pb-group" x="{left + 5:.1f}" y="{top + 5:.1f}" {at}/>' if kind == "group" else ""
    colour = " pb-on-loss" if kind == "loss" else ""
    text = "".join(
        f'<text class="{"pb-title" if k == 0 else "pb-text"}{colour}" x="{x:.1f}" '
        f'y="{top + labels.PADDING / 2 + labels.LINE * (k + 0.75):.1f}" text-anchor="middle">{html.escape(line)}</text>'
        for k, line in enumerate(lines)
    )
    frame = f'<rect class="pb-{kind}" x="{left:.1f}" y="{top:.1f}" {at}/>'
    label, told = html.escape(", ".join(lines)), html.escape(tip)
    return f'<g aria-label="{label}"><title>{told}</title>{behind}{frame}{text}</g>'


def _tip(description: Description, folding: Folding, is_group: bool, i: int) -> str:
    """What a browser shows when the mouse rests on a box."""
    if is_group:
        return ", ".join(labels.of_group(description, folding.groups[i]))
    info = description.nodes[i]
    lines = [f"{labels.title(info)} {labels.outputs(info)}"]
    lines += [f"saves {s.name}: {s.values}, {count_of_bytes(s.nbytes)}, {s.owner}" for s in info.saved]
    if info.origin:
        lines.append(f"{info.origin[0]}:{info.origin[1]}")
    return "\n".join(lines)

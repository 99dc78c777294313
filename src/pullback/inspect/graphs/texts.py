"""The picture as text: Mermaid, which GitHub, GitLab, Jupyter and most editors draw, and DOT, which Graphviz draws."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection

from . import labels
from .description import LEAF, LOSS, USER, Description
from .repeats import Folding, Visible, visible

# The characters with a special meaning inside Mermaid's quoted labels, and the entities that stand for them.
_ENTITIES = str.maketrans({"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\n": " "})


def mermaid(description: Description, folding: Folding, opened: Collection[int]) -> str:
    """The text of a Mermaid flowchart. The arrow out of `Loss` carries `grad_output`, every other one `grad_input`.

    Syntax: https://mermaid.js.org/syntax/flowchart.html.
    """
    shown = visible(description, folding, opened)
    return "\n".join(_Mermaid(description, folding, shown).lines)


class _Mermaid:
    """The lines of the flowchart, and the identifier of each box in them."""

    def __init__(self, description: Description, folding: Folding, shown: Visible) -> None:
        self.lines = ["graph LR"]
        self._description, self._folding, self._shown = description, folding, shown
        self._known = {0: "Loss"}
        self._count = {"Loss": 1}  # for each identifier in use, how often its name was requested
        below = _below(shown)
        queue, seen = deque([0]), {0}
        while queue:  # breadth first from the loss, so that the text begins like the backward pass
            source = queue.popleft()
            for target, many in below[source]:
                label = "grad_input" if source else "grad_output"
                start = self._box(source)
                end = self._box(target)
                self.lines += [f"    {start} -->|{label}| {end}"] * many
                if target not in seen:
                    seen.add(target)
                    queue.append(target)

    def _box(self, place: int) -> str:
        """The identifier of a box, which is drawn on first use."""
        if place in self._known:
            return self._known[place]
        is_group, i = self._shown.items[place]
        if is_group:
            wish = f"repeated_{i}"
            lines = labels.of_group(self._description, self._folding.groups[i])
            label, left, right = ", ".join(lines), "[[", "]]"
        else:
            info = self._description.nodes[i]
            if info.kind == LEAF:
                shape = info.outputs[0][0] if info.outputs[0] else ()
                label, left, right = f"{info.variable} {shape}".strip(), "([", "])"
                wish = f"leaf_{info.variable}" if info.variable else "leaf"
            else:
                wish = label = info.name
                left, right = "[", "]"
        found = self._known[place] = self._identifier(wish)
        if found != label:
            self.lines.append(f'    {found}{left}"{label.translate(_ENTITIES)}"{right}')
        return found

    def _identifier(self, wish: str) -> str:
        """A valid identifier that is not in use: `wish`, or `wish_2`, `wish_3`, ..."""
        wish = re.sub(r"[^A-Za-z0-9_]", "_", wish)
        found = wish
        while found in self._count:
            self._count[wish] += 1
            found = f"{wish}_{self._count[wish]}"
        self._count[found] = 1
        return found


def _below(shown: Visible) -> list[list[tuple[int, int]]]:
    """For each box, the boxes that it sends gradients to, and along how many edges."""
    below: list[list[tuple[int, int]]] = [[] for _ in shown.items]
    for (source, target), many in shown.edges.items():
        below[source].append((target, many))
    return below


_DOT_STYLES = {
    LOSS: 'shape=box style="rounded,filled" fillcolor="#26354a" fontcolor=white',
    LEAF: 'shape=box style="rounded,filled" fillcolor="#e6f4ea"',
    USER: 'shape=box style=filled penwidth=2.5 fillcolor="#fdf0e1"',
    "operation": 'shape=box style=filled fillcolor="#eef2f7"',
}


def dot(description: Description, folding: Folding, opened: Collection[int]) -> str:
    """The text of a DOT digraph. Language: https://graphviz.org/doc/info/lang.html."""
    shown = visible(description, folding, opened)
    lines = ["digraph graph_of_loss {", '    node [fontname="monospace" fontsize=11];']
    for place, (is_group, i) in enumerate(shown.items):
        if is_group:
            words = labels.of_group(description, folding.groups[i])
            style = 'shape=box peripheries=2 style=filled fillcolor="#efeafb"'
        else:
            words, style = labels.of_node(description.nodes[i]), _DOT_STYLES[description.nodes[i].kind]
        lines.append(f"    n{place} [label={_quoted(words)} {style}];")
    for (source, target), many in shown.edges.items():
        lines.append(f"    n{source} -> n{target}" + (f' [label="x {many}"];' if many > 1 else ";"))
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(lines: list[str]) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'

"""The picture as one page of HTML that needs no network: page.html with page.css, page.js and the graph as JSON in it.

The page draws the graph itself, because folding changes the drawing. All text of the graph reaches it as JSON
that cannot close a tag, and is put on the page as text.
"""

from __future__ import annotations

import functools
import html
import json
import linecache
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...tensor.printing import count_of_bytes
from . import labels, svg
from .description import Description, NodeInfo, Values
from .recording import Step
from .repeats import Folding, first_of, rank_of
from .rules import Rule


def page(
    description: Description,
    folding: Folding,
    opened: Collection[int],
    rules: Mapping[str, Rule],
    steps: Sequence[Step],
) -> str:
    """The page of a graph, with all groups folded but those `opened`."""
    loss = description.nodes[0]
    title = f"{loss.variable or 'loss'} {labels.outputs(loss)}: {labels.counted(len(description.operations), 'node')}"
    data = {
        "title": title,
        "nodes": [_node(info) for info in description.nodes],
        "groups": [
            {
                "start": group.start,
                "period": group.period,
                "count": group.count,
                "parent": group.parent,
                "rank": rank_of(description, group),
                "first": first_of(description, group),
                "block": group.block,
                "lines": labels.of_group(description, group),
            }
            for group in folding.groups
        ],
        "home": folding.home,
        "opened": sorted(opened),
        "rules": {key: [rule.call, rule.words, rule.formula, rule.place] for key, rule in rules.items()},
        "steps": [
            {
                "number": step.number,
                "received": [_values(v) for v in step.received],
                "sent": [_values(v) for v in step.sent],
                "freed": step.freed,
            }
            for step in steps
        ],
        "saved": count_of_bytes(description.nbytes),
    }
    parts = {
        "TITLE": html.escape(title),
        "STYLE": svg.STYLE + _file("page.css"),
        "SCRIPT": _file("page.js"),
        "DATA": json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
    }
    return re.sub(r"@@([A-Z]+)@@", lambda match: parts[match[1]], _file("page.html"))


@functools.cache
def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _node(info: NodeInfo) -> dict[str, Any]:
    """The facts about a node for the page; empty ones are left out."""
    found: dict[str, Any] = {
        "kind": info.kind,
        "name": info.name,
        "lines": labels.of_node(info),
        "arguments": info.arguments,
        "edges": [[edge.target, edge.argument, edge.output] for edge in info.edges],
        "outputs": labels.outputs(info),
        "made": info.made,
        "rule": info.rule,
        "state": info.state,
        "variable": info.variable,
        "saved": [
            {"name": s.name, "bytes": count_of_bytes(s.nbytes), "owner": s.owner, "values": _values(s.values)}
            for s in info.saved
        ],
        "attributes": info.attributes,
        "value": _values(info.value),
        "grad": _values(info.grad),
    }
    if info.origin is not None:
        file, line, function = info.origin
        found["origin"] = [f"{file}:{line}", function, linecache.getline(file, line).strip()]
    return {key: value for key, value in found.items() if value or key in ("edges", "made")}


def _values(values: Values | None) -> dict[str, Any] | None:
    """A tensor for the page: type, norm as text (JSON has no infinity), elements, and the width of a row."""
    if values is None:
        return None
    found: dict[str, Any] = {"type": str(values), "norm": labels.number(values.norm)}
    if values.elements is not None:
        found |= {"elements": values.elements, "row": values.shape[-1] if values.shape else 1}
    return found

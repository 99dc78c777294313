"""`graph`: the graph behind a tensor as a picture, and `Graph`, the picture in all its forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import errors
from ...diagnose.places import user_frames
from ...nn import Module
from ...tensor.tensor import Tensor, need_tensor
from . import names as naming
from .description import Description, collect
from .page import page
from .recording import Step, run
from .repeats import LARGE, fold
from .rules import Rule, key_of, rule_of
from .svg import svg
from .terminal import text
from .texts import dot, mermaid


def graph(
    loss: Tensor,
    names: Mapping[str, Any] | Module | None = None,
    *,
    fold: bool | None = None,
    backward: bool = False,
    gradient: Tensor | None = None,
    retain_graph: bool = False,
) -> Graph:
    """The graph that ``loss.backward()`` walks, as a picture: SVG, a page of HTML, DOT, Mermaid, or text.

    Arrows go the way of the gradients: from the loss, of any shape and dtype, down to the leaves. A box shows the
    operation, the shape and dtype of its result, the bytes that it keeps for its backward, and the norm of the gradient
    if the tensor has one. Inputs that need no gradient are not drawn.

    Args:
        loss: a Tensor that requires grad.
        names: names for leaves and results: a dict from names to tensors (or to dicts and lists of them), a module, or
            None for the variables of the caller.
        fold: draw repeats as one box ("x 12"); None: if the graph has more than 60 nodes.
        backward: run the backward pass, a real ``loss.backward(gradient, retain_graph)``: it adds to ``.grad``
            and, unless `retain_graph`, frees the saved tensors. The page then steps through it.
        gradient: the gradient of the loss, for `backward`; None stands for 1 if the loss has one element.
        retain_graph: whether `backward` keeps the saved tensors.

    Raises:
        TypeError: `loss` is not a Tensor, or `names` has no names.
        RuntimeError: `loss` does not require a gradient. Errors of ``loss.backward()`` pass through.

    >>> import pullback
    >>> w = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> print(pullback.inspect.graph((w.sin() * w).sum(), backward=True))
    Loss  [] float32
    SumBackward0 #3  [] float32
    MulBackward0 #2  [2] float32  saves 16 B: input, w
    ├─ w (leaf)  [2] float32  |grad| 1.38
    SinBackward0 #1  [2] float32  saves 8 B: w
    w (leaf)  (above)
    3 nodes, 1 leaf, 16 B saved
    """
    need_tensor("graph(): argument loss", loss)
    if not loss.requires_grad:
        raise RuntimeError(
            errors.message(
                "graph(): argument loss",
                expected="a Tensor that requires a gradient",
                found=f"{errors.describe(loss)} without a graph",
                do="compute it, outside no_grad(), from tensors with requires_grad=True",
            )
        )
    known = naming.of_frame(next(user_frames(), None)) if names is None else naming.given(names)
    description = collect(loss, known)
    rules: dict[str, Rule] = {}
    for node, info in zip(description.live[1:], description.nodes[1:], strict=True):
        info.rule = key_of(node)
        if info.rule not in rules:
            rules[info.rule] = rule_of(node)
    try:
        steps = run(description, gradient, retain_graph) if backward else []
    finally:
        description.forget()
    return Graph(description, rules, steps, fold)


class Graph:
    """The graph behind a tensor, described once; each method is a way to look at it. `pullback.inspect.graph` makes it.

    It holds no tensor and keeps no graph alive. `nodes` are its nodes, the loss first; `steps` the turns of the nodes
    in the backward pass that was run, if one was; `rules` the formulas. In a notebook it shows as a picture.
    """

    def __init__(
        self, description: Description, rules: dict[str, Rule], steps: list[Step], folded: bool | None
    ) -> None:
        self._description = description
        self.nodes = description.nodes
        self.rules = rules
        self.steps = steps
        self._folding = fold(description)
        large = len(self.nodes) > LARGE
        self._opened = () if (large if folded is None else folded) else range(len(self._folding.groups))

    @property
    def repeats(self) -> list[tuple[int, int]]:
        """The repeats in the graph, outer ones first: the operations of a block, and how many blocks."""
        return [(group.period, group.count) for group in self._folding.groups if group.period and not group.block]

    @property
    def nbytes(self) -> int:
        """The bytes that the graph keeps for its backward; shared memory counts once."""
        return self._description.nbytes

    def svg(self) -> str:
        """The picture as SVG. It has colours for light and dark, and is complete in itself."""
        return svg(self._description, self._folding, self._opened)

    def html(self) -> str:
        """One page that needs no network: to zoom, search and fold, with the facts about each node, and all steps."""
        return page(self._description, self._folding, self._opened, self.rules, self.steps)

    def dot(self) -> str:
        """The picture in DOT, for Graphviz."""
        return dot(self._description, self._folding, self._opened)

    def mermaid(self) -> str:
        """The picture as a Mermaid flowchart, which GitHub, GitLab and Jupyter draw in place."""
        return mermaid(self._description, self._folding, self._opened)

    def text(self, *, colour: bool = False) -> str:
        """The picture as lines of text, for a terminal."""
        return text(self._description, self._folding, self._opened, colour)

    def as_dict(self) -> dict[str, Any]:
        """The whole description as numbers, strings, lists and dicts, for JSON."""
        return {
            "nodes": [dataclasses.asdict(node) for node in self.nodes],
            "repeats": [dataclasses.asdict(group) for group in self._folding.groups],
            "rules": {key: dataclasses.asdict(rule) for key, rule in self.rules.items()},
            "steps": [dataclasses.asdict(step) for step in self.steps],
            "nbytes": self.nbytes,
        }

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file, in the form given by its ending: .html, .svg, .dot, .mmd or .txt.

        Raises `ValueError` for any other ending.
        """
        path = Path(path)
        if path.suffix not in FORMS:
            raise ValueError(
                errors.message(
                    "Graph.save()",
                    expected=f"a file name that ends with {', '.join(FORMS)}",
                    found=repr(str(path)),
                    do="choose the form by the ending; for PNG or PDF, save .dot and have Graphviz draw it",
                )
            )
        path.write_text(FORMS[path.suffix](self).rstrip("\n") + "\n", encoding="utf-8")
        return path

    def __str__(self) -> str:
        return self.text().rstrip("\n")

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes>"

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto;max-height:40em">{self.svg()}</div>'

    def _repr_svg_(self) -> str:
        return self.svg()


FORMS = {".html": Graph.html, ".svg": Graph.svg, ".dot": Graph.dot, ".mmd": Graph.mermaid, ".txt": Graph.text}
"""The forms of a picture, by file ending."""

errors.doors(globals(), "graph")

"""The graph behind a tensor as Mermaid text: the picture that explains a backward pass, drawn from the real thing.

The walk follows `grad_fn.next_functions` from the root, that is, in the direction in which gradients flow: each arrow
leaves the node whose backward produces a gradient and ends at the node (or the leaf) that receives it. The walk keeps
its own queue, so that a chain of a million nodes is drawn by a loop.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from .._tensor import Tensor
from ..autograd.node import AccumulateGrad
from ..errors import describe, message

# What Mermaid's grammar gives a meaning of its own inside a quoted label, and the entity that stands for it.
_ENTITIES = str.maketrans({"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\n": " "})


def mermaid(root: Tensor, names: Mapping[str, Tensor] | None = None) -> str:
    """Draw the graph that `root.backward()` would walk, as the text of a Mermaid flowchart.

    `root`, of any shape and dtype, is drawn as `Loss`. Each node of the graph is one box with the node's name, each
    leaf a rounded box with its shape and, if `names` has it, its name. The arrow out of `Loss` carries `grad_output`,
    every other one `grad_input`. Inputs that need no gradient are not drawn. The same program gives the same text.

    Raises `TypeError` if `root` is not a Tensor, `RuntimeError` if it does not require a gradient.

    Syntax: https://mermaid.js.org/syntax/flowchart.html.

    >>> import pullback
    >>> from pullback.inspect import mermaid
    >>> w = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> print(mermaid((w * w).sum(), {"w": w}))
    graph LR
        Loss -->|grad_output| SumBackward0
        SumBackward0 -->|grad_input| MulBackward0
        leaf_w(["w (2,)"])
        MulBackward0 -->|grad_input| leaf_w
        MulBackward0 -->|grad_input| leaf_w
    """
    if not isinstance(root, Tensor):
        raise TypeError(message("mermaid(): argument root", expected="a Tensor", found=describe(root)))
    if not root.requires_grad:
        raise RuntimeError(
            message(
                "mermaid(): argument root",
                expected="a Tensor that requires a gradient",
                found=f"{describe(root)} without a graph",
                do="compute it, outside no_grad(), from tensors with requires_grad=True",
            )
        )
    picture = _Picture({id(tensor): name for name, tensor in (names or {}).items()})
    if root.grad_fn is None:
        picture.arrow("Loss", "grad_output", picture.leaf(root))
    else:
        picture.arrow("Loss", "grad_output", picture.box(root.grad_fn))
        for node, receiver in _edges(root.grad_fn):
            picture.arrow(picture.box(node), "grad_input", picture.box(receiver))
    return "\n".join(picture.lines)


def _edges(root: Any) -> Iterator[tuple[Any, Any]]:
    """Every (node, receiver of a gradient of it) of the graph, breadth first, each node once."""
    seen = {root}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for receiver, _ in node.next_functions:
            if receiver is None:
                continue
            yield node, receiver
            if receiver not in seen:
                seen.add(receiver)
                queue.append(receiver)


class _Picture:
    """The lines drawn so far, and the identifier under which each node and leaf is known in them."""

    def __init__(self, names: dict[int, str]) -> None:
        self.lines = ["graph LR"]
        self._names = names
        self._known: dict[Any, str] = {}
        self._count = {"Loss": 1}  # for each identifier in use, how many of its name were asked for

    def arrow(self, start: str, label: str, end: str) -> None:
        self.lines.append(f"    {start} -->|{label}| {end}")

    def box(self, node: Any) -> str:
        """The identifier of a node of the graph, drawn when it is first asked for."""
        if node in self._known:
            return self._known[node]
        if isinstance(node, AccumulateGrad):
            identifier = self._known[node] = self.leaf(node.variable)
            return identifier
        label = node.name()
        identifier = self._known[node] = self._identifier(label)
        if identifier != label:
            self.lines.append(f'    {identifier}["{label.translate(_ENTITIES)}"]')
        return identifier

    def leaf(self, tensor: Tensor) -> str:
        """The identifier of a leaf that has not been drawn yet."""
        name = self._names.get(id(tensor), "")
        label = f"{name} {tuple(tensor.shape)}".strip()
        identifier = self._identifier(f"leaf_{name}" if name else "leaf")
        self.lines.append(f'    {identifier}(["{label.translate(_ENTITIES)}"])')
        return identifier

    def _identifier(self, wish: str) -> str:
        """A valid identifier that nothing else has: `wish`, or `wish_2`, `wish_3`, ..."""
        wish = re.sub(r"[^A-Za-z0-9_]", "_", wish)
        found = wish
        while found in self._count:
            self._count[wish] += 1
            found = f"{wish}_{self._count[wish]}"
        self._count[found] = 1
        return found

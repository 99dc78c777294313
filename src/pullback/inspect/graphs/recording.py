"""Records a real backward pass node by node: the gradients that arrive, those sent on, and whether saved tensors are
freed.

Every node gets a hook before and one after its turn. They only read; the order is the engine's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ...autograd.context import FunctionNode
from ...autograd.node import FREED
from ...table.nodes import OpNode
from ...tensor.tensor import Tensor
from .description import Description, NodeInfo, Values, read_gradients, values_of


@dataclasses.dataclass(slots=True)
class Step:
    """One node's turn. received: the gradient of each of its outputs. sent: those of its inputs, in the order of
    `next_functions`.

    freed: whether the node has released the tensors that it saved.
    """

    number: int
    received: list[Values | None]
    sent: list[Values | None] = dataclasses.field(default_factory=list)
    freed: bool = False


def run(description: Description, gradient: Tensor | None, retain_graph: bool) -> list[Step]:
    """Run ``loss.backward(gradient, retain_graph)`` on a described graph, and record every node's turn."""
    loss, *objects = description.live
    steps: list[Step] = []
    handles = []
    untouched = [node for node in objects if node._hooks is None]
    try:
        for info, node in zip(description.nodes[1:], objects, strict=True):
            handles += _observe(node, info, steps, description.small)
        loss.backward(gradient, retain_graph=retain_graph)
    finally:
        for handle in handles:
            handle.remove()
        for node in untouched:
            hooks = node._hooks
            if hooks and not (hooks.before or hooks.after or hooks.of_output or hooks.retained):
                node._hooks = None  # as before: a node without hooks runs faster
    read_gradients(description)
    return steps


def _observe(node: Any, info: NodeInfo, steps: list[Step], small: int) -> list[Any]:
    """Add hooks that append every turn of a node to `steps`; return their handles."""
    running: list[Step] = []

    def before(received: Sequence[Tensor | None]) -> None:
        running.append(Step(info.number, _noted(received, small)))
        steps.append(running[-1])

    def after(sent: Sequence[Tensor | None], received: Sequence[Tensor | None]) -> None:
        step = running.pop()
        step.sent = _noted(sent, small)
        step.freed = info.state not in ("nothing", "freed") and _is_freed(node)

    return [node.register_prehook(before), node.register_hook(after)]


def _noted(gradients: Sequence[Tensor | None], small: int) -> list[Values | None]:
    return [None if g is None else values_of(g, small) for g in gradients]


def _is_freed(node: Any) -> bool:
    held: Any = node.saved if isinstance(node, OpNode) else node._saved if isinstance(node, FunctionNode) else None
    return held is FREED

"""A step of a loop by itself: its operations apart from those of the trace, its graph apart from what was made before.

`apart` notes the operations of a step in a list of their own, `partial` gives its partial derivatives, and `alike` says
whether it did the same when it ran twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..autograd.api import grad
from ..autograd.context import FunctionNode
from ..autograd.node import AccumulateGrad, Node, begin, edge_of
from ..autograd.roots import GradientEdge
from ..interpreters.functions import recording
from ..interpreters.traced import Entry, Ref, Trace, Traced, copied
from ..tensor.tensor import Edge, Tensor, wrap
from .trace.whole_calls import LoopOp

Key = tuple[Node, int]
"""An output of a node."""


class NotRolledError(Exception):
    """Why the steps of a loop are written out, in words."""


class Ran(NamedTuple):
    """A step that has run: its entries, the numbers of its arguments and of what it gives, and these as tensors.

    began: the place, in the order of nodes, where it began; first: its first number.
    """

    entries: list[Entry]
    carries: list[Tensor | None]
    xs: list[Tensor]
    taken: list[Any]
    nexts: list[Any]
    ys: list[Any]
    model: Any
    began: int
    first: int


class Part(NamedTuple):
    """The entries of a step as a trace, to be lowered."""

    inputs: list[int]
    examples: list[Any]
    entries: list[Entry]
    on_gpu: bool
    met: tuple[int, ...] = ()


@contextlib.contextmanager
def apart(level: Trace) -> Iterator[list[Entry]]:
    """A context in which a trace notes operations in a list of their own, and writes to nothing from before."""
    before = level.entries, level.step_began
    try:
        level.entries, level.step_began = [], len(level.examples)
        yield level.entries
    finally:
        level.entries, level.step_began = before


def stand_in(level: Trace, number: int, index: Any = ..., requires_grad: bool = False) -> Tensor:
    """A new value, like a value of a trace or a part of it, that is an argument of the step of a loop."""
    t = wrap(level.new(copied(level.examples[number][index]), level.gpus[number]))
    t._requires_grad = requires_grad
    return t


class _Cut(Node):
    """What an edge of a step leads to instead of a node from before: a place where its gradient is found."""

    __slots__ = ()

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        return [g]


def partial(
    level: Trace,
    outs: Sequence[Tensor],
    vectors: Sequence[Any],
    began: int,
    first: int,
    own: set[Any],
    recorded: bool,
) -> dict[Key, tuple[Edge, Any]]:
    """The gradients by all that a graph leads to and was made before it began, each as if the others were constants;
    by the key of each, with the edge to it. own: leaves among these that were made since."""
    with recording(True):
        outs = [t.clone() for t in outs]  # a result may itself be from before
    places = _cut([edge_of(t)[0] for t in outs], level, began, first, own)
    if not places:
        return {}
    ends = [GradientEdge(place, 0) for place, _ in places.values()]
    found = grad(outs, ends, vectors, create_graph=recorded, allow_unused=True)  # type: ignore[arg-type]
    return {key: (edge, g) for (key, (_, edge)), g in zip(places.items(), found, strict=True)}


def _cut(nodes: Iterable[Node], level: Trace, began: int, first: int, own: set[Any]) -> dict[Key, tuple[_Cut, Edge]]:
    """Cut off the graph of some nodes from what was made before it began."""
    places: dict[Key, tuple[_Cut, Edge]] = {}
    stack, seen = list(nodes), set(nodes)
    while stack:
        node = stack.pop()
        leaf_hooks = any(leaf.hooks or leaf.post_hooks for leaf in own)
        if isinstance(node, FunctionNode) or node._hooks is not None or leaf_hooks:
            raise NotRolledError("code of yours runs in its backward: a Function's, or a hook")
        edges: list[Any] = []
        for edge in node._edges:
            target: Any = edge and edge[0]
            if isinstance(target, _Cut):  # of an earlier pass through the same graph
                (below,) = target._edges
                assert edge is not None
                assert below is not None
                edge, target = (*below[:2], *edge[2:]), below[0]
            if target is None or (not target._edges and target not in own and _is_made_in(level, target, first)):
                edges.append(edge)
            elif target._edges and target._order < began:
                edges.append(edge)
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
            else:
                assert edge is not None
                key = target, edge[1]
                if key not in places:
                    made = begin(_Cut(), [edge])
                    made._order = began + len(places) / 2**20  # type: ignore[assignment] # older than all of the graph
                    places[key] = made, edge
                edges.append((places[key][0], 0, *edge[2:]))
        node._edges = tuple(edges)
    return places


def _is_made_in(level: Trace, leaf: AccumulateGrad, first: int) -> bool:
    """Whether a leaf was made by the step."""
    held = getattr(leaf, "_data", None)
    return isinstance(held, Traced) and held.level is level and held.number >= first and held.number not in level.met


def numbers(tree: Any) -> Iterator[int]:
    if isinstance(tree, Ref):
        yield tree.number
    elif isinstance(tree, dict):
        yield from numbers(tuple(tree.values()))
    elif isinstance(tree, (tuple, list)):
        for part in tree:
            yield from numbers(part)


def alike(level: Trace, one: Ran, other: Ran) -> bool:
    """Whether a step did the same when it ran twice."""
    same: dict[int, int] = {}

    def pair(a: Any, b: Any) -> bool:
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            return equal(Ref(level.number_of(a)), Ref(level.number_of(b)))
        return a is None and b is None

    def equal(a: Any, b: Any) -> bool:
        if isinstance(a, Ref):
            if not isinstance(b, Ref):
                return False
            return same.get(a.number, a.number) == b.number or constants(a.number, b.number)
        if isinstance(a, (tuple, list)):
            return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
        if isinstance(a, dict):
            return type(a) is type(b) and [*a] == [*b] and equal([*a.values()], [*b.values()])
        if isinstance(a, (np.ndarray, np.generic)):
            return type(a) is type(b) and arrays(a, b)
        return a is b or (
            type(a) is type(b) and (repr(a) == repr(b) if isinstance(a, (float, complex)) else bool(a == b))
        )

    def arrays(a: Any, b: Any) -> bool:
        return bool(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())

    def constants(a: int, b: int) -> bool:
        return a in level.met and b in level.met and arrays(level.examples[a], level.examples[b])

    def ops(a: Any, b: Any) -> bool:
        if isinstance(a, LoopOp):
            return isinstance(b, LoopOp) and a.run == b.run
        return a is b or (a is not None and b is not None and a.name == b.name and a.forward is b.forward)

    for a, b in zip((*one.carries, *one.xs), (*other.carries, *other.xs), strict=True):
        if a is not None and b is not None:
            same[level.number_of(a)] = level.number_of(b)
    if len(one.entries) != len(other.entries):
        return False
    for first, second in zip(one.entries, other.entries, strict=True):
        if not (ops(first.op, second.op) and equal(first.args, second.args) and equal(first.kwargs, second.kwargs)):
            return False
        same.update(zip(first.results, second.results, strict=True))
    outs = [*one.nexts, *one.ys], [*other.nexts, *other.ys]
    return len(outs[0]) == len(outs[1]) and all(map(pair, *outs))

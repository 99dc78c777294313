"""The engine against the plain loop that it stands for, on random graphs: the same order, the same bits.

`Plain` is the loop of `docs/how_it_works.md` with what a real pass adds, written without any shortcut: every node and
every leaf goes through one heap, sums are new arrays, and which nodes are needed is found by looking at all of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import AccumulateGrad, Function, backward, engine, grad
from pullback.autograd.engine import fit
from pullback.autograd.node import leaf_edge, reachable
from pullback.tensor.tensor import Tensor, wrap

Events = list[tuple[str, Any]]
GRAPHS = 120
NODES = 14


# -- random graphs -----------------------------------------------------------------------------------------------------


class Noted(Function):
    """Multiplies by a number, and notes in `events` that its backward ran."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, events: Any, number: int) -> Any:
        ctx.factor, ctx.events, ctx.number = factor, events, number
        return x * factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.events.append(("ran", ctx.number))
        return g * ctx.factor, None, None, None


class Nothing(Function):
    """Twice its second argument; backward returns None for the first."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, events: Any, number: int) -> Any:
        ctx.events, ctx.number = events, number
        return y * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.events.append(("ran", ctx.number))
        return None, g * 2, None, None


class Pair(Function):
    """Two outputs; one may go unused."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, events: Any, number: int) -> Any:
        ctx.events, ctx.number = events, number
        return x * 0.5, y * 1.5

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.events.append(("ran", ctx.number))
        return a * 0.5, b * 1.5, None, None


class Graph:
    """A random graph: its leaves, the tensors that were made, the roots of a pass, and what ran in it."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.events: Events = []
        shapes = [(3,), (1,), (2, 3)]
        self.leaves = [
            pullback.tensor(rng.uniform(0.5, 1.5, shapes[rng.integers(3)]), requires_grad=True) for _ in range(3)
        ]
        self.made: list[Any] = []
        for number in range(NODES):
            self._grow(rng, number)
        for number, t in enumerate(self.leaves):
            if rng.random() < 0.5:
                t.register_hook(self._hook("leaf", number, rng.random() < 0.5))
        count = int(rng.integers(1, 4))
        self.roots = [self.made[-1], *(self.made[i] for i in rng.integers(0, len(self.made), count - 1))]
        if rng.random() < 0.2:
            self.roots.append(self.leaves[0])
        self.vectors = [pullback.tensor(rng.uniform(0.5, 1.5, t.shape)) for t in self.roots]
        below = set(reachable([(t._edge or leaf_edge(t))[0] for t in self.roots[:1]]))
        candidates = [t for t in (*self.leaves, *self.made[:-1]) if (t._edge or leaf_edge(t))[0] in below]
        self.inputs = [candidates[i] for i in set(rng.integers(0, len(candidates), 3).tolist())]

    def _grow(self, rng: Any, number: int) -> None:
        """One more operation on random tensors, the latest more often, and hooks on its result now and then."""
        every = [*self.leaves, *self.made]

        def operand() -> Any:
            return every[-1 - int(rng.integers(min(4, len(every))))] if rng.random() < 0.6 else rng.choice(len(every))

        x, y = (every[o] if isinstance(o, (int, np.integer)) else o for o in (operand(), operand()))
        kind = int(rng.integers(7))
        if kind == 0:
            out = x * y
        elif kind == 1:
            out = x + y
        elif kind == 2:
            out = x.sum(0, True) * 0.1
        elif kind == 3:
            out = Nothing.apply(x, y, self.events, number)
        elif kind == 4:
            self.made.append(Pair.apply(x, y, self.events, number)[int(rng.integers(2))])
            return
        else:
            out = Noted.apply(x, 0.5 + float(rng.random()), self.events, number)
        if rng.random() < 0.2:
            out.register_hook(self._hook("hook", number, rng.random() < 0.5))
        if rng.random() < 0.2:
            out.grad_fn.register_hook(lambda sent, got: self.events.append(("after", number)))
        self.made.append(out)

    def _hook(self, kind: str, number: int, replaces: bool) -> Callable[[Any], Any]:
        def hook(g: Any) -> Any:
            self.events.append((kind, number))
            return g * 2 if replaces and g is not None else None

        return hook


# -- the plain loop ----------------------------------------------------------------------------------------------------


class Plain:
    """A pass over a graph: `arrived` has the sums of leaves, `came` the gradients at all outputs of all nodes."""

    def __init__(self, graph: Graph, targets: set[Any] | None, taped: bool) -> None:
        edges = [t._edge or leaf_edge(t) for t in graph.roots]
        self.taped = taped
        self.nodes = list(reachable(edge[0] for edge in edges))
        if targets is not None:
            self.nodes = [node for node in self.nodes if targets & set(reachable([node]))]
        self.needed = set(self.nodes)
        self.targets = targets or set()
        self.waiting: dict[Any, list[Any]] = {}
        self.like: dict[Any, Any] = {}
        self.heap: list[tuple[Any, int, Any]] = []
        self.arrived: dict[Any, Any] = {}
        self.came: dict[Any, list[Any]] = {}
        self._roots = [edge[0] for edge in edges]
        self._deliver(edges, [v if taped else v._data for v in graph.vectors], None)
        while self.heap:
            self._run(heapq.heappop(self.heap)[2])

    def _deliver(self, edges: Any, grads: Sequence[Any], node: Any) -> None:
        for edge, g in zip(edges, grads, strict=True):
            if not edge or edge[0] not in self.needed:
                continue
            target, nr = edge[:2]
            if g is None and not target._edges and not target.hooks:
                continue
            if target not in self.waiting:
                self.waiting[target] = [None] * target._outputs
                heapq.heappush(self.heap, (self._place(target), id(target), target))
            self.like[target] = edge
            if g is not None:
                g = fit(g, edge, node)
                held = self.waiting[target][nr]
                self.waiting[target][nr] = g if held is None else np.add(held, g)

    def _place(self, node: Any) -> tuple[int, int]:
        """Newest first; a leaf next after its last consumer, in the order of that one's arguments."""
        if node._edges:
            return node._order, 0
        uses = [(n._order, i + 1) for n in self.nodes for i, edge in enumerate(n._edges) if edge and edge[0] is node]
        return max(uses, default=(-(2**64), self._roots.index(node) if node in self._roots else 0))

    def _run(self, node: Any) -> None:
        slots = self.waiting.pop(node)
        ends = node in self.targets and not any(e and e[0] in self.needed for e in node._edges)
        if not ends:  # a gradient that is asked for on the way is noted before the hooks
            self.came[node] = [*slots]
        hooks = node.hooks if not node._edges else {}
        if node._hooks is not None:
            hooks = node._hooks.of_output.get(0, {})
        for hook in hooks.values():
            new = hook(slots[0] if self.taped or slots[0] is None else wrap(slots[0]))
            if new is not None:
                slots[0] = new if self.taped else new._data
        if not node._edges:
            self.arrived[node] = slots[0]
            return
        if ends:
            self.came[node] = slots
            return
        needed = self.needed if self.targets else None
        if all(g is None for g in slots):
            sent = node._run_empty(self.like[node][2], self.like[node][3], self.taped, needed, True)
        else:
            sent = node._run(slots if node._outputs > 1 else slots[0], self.taped, needed, True)
        for hook in () if node._hooks is None else node._hooks.after.values():
            hook((), ())
        self._deliver(node._edges, sent, node)


def _values(tensors: Sequence[Any]) -> list[Any]:
    return [None if t is None else np.array(getattr(t, "_data", t)) for t in tensors]


def _taken(graph: Graph) -> Events:
    events = [*graph.events]
    graph.events.clear()
    return events


def differences(seed: int, create_graph: bool) -> list[str]:
    """In what `backward` and `grad` differ from the plain loop on the graph of a seed."""
    graph = Graph(seed)
    edges = [t._edge or leaf_edge(t) for t in graph.inputs]
    leaves = [leaf_edge(t)[0] for t in graph.leaves]
    found = []
    with pullback.set_grad_enabled(create_graph):
        plain = Plain(graph, None, create_graph)
        expected = [plain.arrived.get(leaf) for leaf in leaves]
        events = _taken(graph)
        towards = Plain(graph, {edge[0] for edge in edges}, create_graph)
        wanted = [
            towards.came.get(node, [None] * 9)[nr] if node._edges else towards.arrived.get(node)
            for node, nr, _, _ in edges
        ]
        events_towards = _taken(graph)
    returned = grad(
        graph.roots, graph.inputs, graph.vectors, retain_graph=True, create_graph=create_graph, allow_unused=True
    )
    if not _same(_values(returned), _values(wanted)):
        found.append(f"grad: {_values(returned)}, and not {_values(wanted)}")
    if (took := _taken(graph)) != events_towards:
        found.append(f"grad: {took}, and not {events_towards}")
    if not create_graph:
        backward(graph.roots, graph.vectors, retain_graph=True)
        grads = [t.grad for t in graph.leaves]
        if not _same(_values(grads), _values(expected)):
            found.append(f"backward: {_values(grads)}, and not {_values(expected)}")
        if (took := _taken(graph)) != events:
            found.append(f"backward: {took}, and not {events}")
    return found


def _same(a: list[Any], b: list[Any]) -> bool:
    return all((x is None) == (y is None) and (x is None or np.array_equal(x, y)) for x, y in zip(a, b, strict=True))


# -- the tests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_engine_does_what_the_plain_loop_does(create_graph: bool) -> None:
    wrong = {seed: found for seed in range(GRAPHS) if (found := differences(seed, create_graph))}
    assert not wrong, wrong


def test_the_graphs_have_what_can_go_wrong() -> None:
    graphs = [Graph(seed) for seed in range(GRAPHS)]
    assert any(len(graph.roots) > 2 for graph in graphs)
    assert any(graph.roots[-1] is graph.leaves[0] for graph in graphs)
    assert any(t._edge is None and leaf_edge(t)[0].hooks for graph in graphs for t in graph.inputs)
    assert any(t._edge is not None for graph in graphs for t in graph.inputs)
    kinds = {event[0] for graph in graphs for _ in [backward(graph.roots, graph.vectors)] for event in graph.events}
    assert kinds == {"ran", "hook", "leaf", "after"}


def _latest_first(heap: Any, item: Any) -> Any:
    """As `heapreplace`, but of the one that came last and not of the newest."""
    return item


def _oldest(heap: Any) -> Any:
    oldest = max(heap, key=lambda item: item[0])
    heap.remove(oldest)
    heapq.heapify(heap)
    return oldest


def _forgetful(held: Any, g: Any, own: Any, mark: Any, taped: bool) -> Any:
    return g


def _in_place_always(held: Any, g: Any, own: Any, mark: Any, taped: bool) -> Any:
    return g if held is None else np.add(held, g, held) if isinstance(held, np.ndarray) else np.add(held, g)


FAULTS = {
    "heapreplace": _latest_first,
    "heappop": _oldest,
    "_sum": _forgetful,
    "_sum in place": _in_place_always,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_engine_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, name.partition(" ")[0], FAULTS[name])

    def goes_wrong(seed: int) -> bool:
        try:
            return bool(differences(seed, False))
        except Exception:
            return True

    assert any(goes_wrong(seed) for seed in range(GRAPHS))


def test_leaves_with_hooks_as_roots_come_first_and_in_their_order() -> None:
    order: list[str] = []
    a, b, c = (pullback.ones(2, requires_grad=True) for _ in range(3))
    for name, t in zip("abc", (a, b, c), strict=True):
        t.register_hook(lambda g, name=name: order.append(name))
    y = c * 2
    y.register_hook(lambda g: order.append("y"))
    backward([b, y, a], [pullback.ones(2)] * 3)
    assert order == ["b", "a", "y", "c"]
    assert isinstance(leaf_edge(a)[0], AccumulateGrad)
    assert isinstance(a.grad, Tensor)

"""The engine: sends gradients back through the graph.

    pop the newest node that waits -> its hooks -> its rule -> gradients along its edges -> leaves' .grad

`Pass.run` is that loop, and `execute` surrounds it. The loop works on raw payloads. If the pass is *taped* it works on
Tensors: because the pass is itself recorded (`create_graph=True`), or because the payloads belong to a transform.
Gradients on their way are kept in the pass's own dictionaries and never on the nodes, so an exception leaves the graph
unchanged. The result of a rule is made to fit its edge here and nowhere else: a broadcast is summed away, a dtype is
cast back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush, heapreplace
from math import inf
from operator import attrgetter
from sys import getrefcount
from typing import Any, ClassVar, cast

import numpy as np

from ..tensor.arrays import broadcasts_to, spread, sum_to_shape
from ..tensor.memory import ONE_LOCAL
from ..tensor.modes import thread, within
from ..tensor.tensor import Edge, Tensor
from .hooks import fire_around, fire_of_leaf, fire_of_outputs
from .inner_passes import is_deep, on_an_empty_stack
from .node import AccumulateGrad, Node, reachable, retain

Captures = dict[Node, dict[int, Any]]


class Together:
    """What several processes do before a pass that each runs its part in; `distributed` puts it here.

    meet: called with the roots, the nodes to go towards, whether the pass is taped, and whether nodes keep what they
    saved; returns the first two.
    """

    meet: ClassVar[Callable[[Any, Any, bool, bool], tuple[Any, Any]] | None] = None


# Before the place of every node in the order.
_FIRST = -(2**64)


def execute(
    roots: Sequence[tuple[Edge, Any]],
    *,
    keep: bool,
    taped: bool,
    towards: set[Node] | None = None,
    captures: Captures | None = None,
    accumulate: bool = True,
    recorded: bool = False,
    look: Callable[[Iterable[Any]], None] | None = None,
) -> dict[Any, Any]:
    """Run the backward pass that starts with the gradients `roots`.

    keep: nodes keep their saved values. taped: gradients are Tensors instead of payloads. towards: run only the nodes
    that lead to these, unless None; for a single root that leads to none of them, run the hooks. captures: for these
    nodes, note the gradients of these outputs. accumulate: add the gradients of leaves to their ``.grad`` when the pass
    ends; else they are returned, by `AccumulateGrad`. recorded: whether the pass is itself recorded.
    """
    if Together.meet is not None:
        roots, towards = Together.meet(roots, towards, taped, keep)
    modes = thread.modes
    if modes.running_pass is not None and is_deep():
        again = functools.partial(execute, roots, keep=keep, taped=taped, towards=towards, captures=captures)
        return on_an_empty_stack(functools.partial(again, accumulate=accumulate, recorded=recorded))
    edges, needed = [edge for edge, _ in roots], None
    if towards is not None:
        captures, needed = captures or {}, needed_nodes(edges, towards)
        if len(edges) == 1 and (root := edges[0][0]) not in needed:
            needed.add(root)
            accumulate = False
            if root._edges:
                captures[root] = {}  # none of its gradients is wanted, so it does not run
    before = modes.grad_enabled, modes.needed, modes.running_pass, modes.running
    running = Pass(edges, keep, taped, needed, captures, accumulate)
    try:
        try:
            modes.grad_enabled = recorded and not modes.inference
            modes.needed, modes.running_pass = needed, running
            arrived = running.run([g for _, g in roots])
            if accumulate:
                if look is not None:
                    look(arrived.values())
                if arrived and type(next(iter(arrived.values()))) is not np.ndarray:
                    _all_or_none(arrived, taped)
                for leaf in list(arrived):
                    leaf.arrive(*_taken(arrived, leaf), taped)
            for callback in running.callbacks:
                callback()
        finally:
            modes.grad_enabled, modes.needed, modes.running_pass, modes.running = before
    except BaseException:  # an interrupt may have come as they were put back
        modes.grad_enabled, modes.needed, modes.running_pass, modes.running = before
        raise
    return arrived


def _all_or_none(arrived: dict[Any, Any], taped: bool) -> None:
    """Give leaves on a device their gradients; or none, if the memory for one is missing.

    Those that have a gradient already come last: nothing is allocated for them.
    """
    leaves = sorted(arrived, key=lambda leaf: leaf.variable._grad is not None)
    before = [(leaf.variable, leaf.variable._grad) for leaf in leaves]
    try:
        for leaf in leaves:
            leaf.arrive(*_taken(arrived, leaf), taped)
    except MemoryError:
        for variable, grad in before:
            variable._grad = grad
        raise


def _taken(arrived: dict[Any, Any], leaf: AccumulateGrad) -> tuple[bool, Any]:
    """Take out the gradient that arrived at a leaf: returns whether it is unshared, and the gradient."""
    g = arrived.pop(leaf)
    return getrefcount(g) <= ONE_LOCAL, g


def queue_callback(callback: Callable[[], None]) -> None:
    """Call a function without arguments when the backward pass that is running in this thread ends without an error."""
    if thread.modes.running_pass is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    thread.modes.running_pass.callbacks.append(callback)


class Pass:
    """A backward pass: its options (as in `execute`), the nodes that it will reach, and the callbacks at its end.

    roots: the edges along which it starts.
    """

    __slots__ = (
        "__weakref__",
        "_found",
        "_like",
        "_places",
        "_watcher",
        "accumulate",
        "callbacks",
        "captures",
        "keep",
        "needed",
        "roots",
        "taped",
    )

    def __init__(
        self,
        roots: Sequence[Edge],
        keep: bool,
        taped: bool,
        needed: set[Node] | None,
        captures: Captures | None,
        accumulate: bool,
    ) -> None:
        self.roots, self.keep, self.taped, self.needed = roots, keep, taped, needed
        self.captures, self.accumulate = captures, accumulate
        self.callbacks: list[Callable[[], None]] = []
        self._like: dict[Node, Edge] = {}  # for nodes that got None: an edge to each
        self._watcher = thread.modes.watcher
        self._found: set[Node] | None = None
        self._places: dict[Node, float] | None = None

    def run(self, grads: Sequence[Any]) -> dict[Any, Any]:
        """Deliver `grads` to the roots; run the newest node that waits and deliver its gradients, until no node waits.

        Every node that uses a result is newer than the node that made it. So the newest node that waits has received
        all its gradients. Waiting nodes are in the heap, with their gradients in `waiting`; all but `latest`, which
        came last and is most often the next to run. Returns the gradients that arrived at leaves; only leaves with
        hooks take part in the order.
        """
        taped, needed, keep, captures = self.taped, self.needed, self.keep, self.captures
        heap: list[tuple[float, Node]] = []  # the nodes that wait, the newest first
        waiting: dict[Node, Any] = {}  # their gradients so far
        arrived: dict[Any, Any] = {}  # the gradients of leaves without hooks
        own: set[Any] = set()  # sums in unshared memory: they are added to in place
        watched = self._watcher is not None
        edges: Sequence[Any] = self.roots
        node = latest = latest_g = cast(Any, None)  # the node that runs; the one that came last, and its gradient
        while True:
            i, count = 0, len(grads)
            while i < count:  # most often once, for which the iterator of a `for` costs too much
                edge, g = edges[i], grads[i]
                i += 1
                if not edge:
                    continue
                target, nr, shape, dtype = edge
                if needed is not None and target not in needed:
                    continue
                if g is None:
                    self._like[target] = edge
                elif taped or g.shape != shape or g.dtype is not dtype:
                    g = fit(g, edge, node)
                if target is latest:
                    latest_g = _added(latest_g, g, target, nr, own, taped)
                elif waiting and target in waiting:
                    waiting[target] = _added(waiting[target], g, target, nr, own, taped)
                elif target._edges:
                    if latest is not None:
                        waiting[latest] = latest_g
                        heappush(heap, (latest._order, latest))
                    latest = target
                    latest_g = g if target._outputs == 1 else _added(None, g, target, nr, own, taped)
                elif target in arrived:
                    if g is not None:
                        arrived[target] = _sum(arrived[target], g, own, target, taped)
                elif target.hooks or target.post_hooks or target._hooks:
                    waiting[target] = g
                    heappush(heap, (self.place(target), target))
                elif g is not None:
                    arrived[target] = g
            grads = g = None  # type: ignore[assignment] # keeps no reference while the next node runs
            if latest is None:
                if not heap:
                    return arrived
                node = heappop(heap)[1]
                g = waiting.pop(node)
            elif heap and heap[0][0] < latest._order:
                waiting[latest] = latest_g
                node = heapreplace(heap, (latest._order, latest))[1]
                g = waiting.pop(node)
            else:
                node, g = latest, latest_g
            latest = latest_g = None
            edges = node._edges
            if edges and node._hooks is None and g is not None and not (watched or (captures and node in captures)):
                grads = node._run(g, taped, needed, keep)  # as most do
            else:
                grads = self._turn(node, g, arrived)

    def _turn(self, node: Any, g: Any, arrived: dict[Any, Any]) -> Sequence[Any]:
        """Run a node that has hooks, is captured, is a leaf, got None or is watched. Returns its gradients."""
        taped, needed = self.taped, self.needed
        wanted = self.captures.get(node) if self.captures else None
        goes_on = wanted is None or needed is None or any(edge and edge[0] in needed for edge in node._edges)
        if wanted is not None and goes_on:  # before its hooks, as PyTorch has it; of a node that ends here, after them
            _capture(wanted, g, node)
        if node._hooks is not None:
            values = fire_of_outputs(node, g, taped)
            for nr, ref in node._hooks.retained.items():
                tensor = ref()
                if tensor is not None and values[nr] is not None:
                    retain(tensor, values[nr], taped)
            g = values if node._outputs > 1 else values[0]
        if not goes_on:
            _capture(cast(Any, wanted), g, node)
            return ()
        if not node._edges:
            if self.accumulate:
                node.arrive(False, g, taped)
            else:
                arrived[node] = fire_of_leaf(node, g, taped)
            return ()
        if self._watcher is None:
            return self._run(node, g)
        return within(thread.modes, {"running": node}, self._run, node, g)

    def _run(self, node: Any, g: Any) -> Sequence[Any]:
        """Run a node between its hooks, under the watcher if there is one."""
        seen = functools.partial(self._seen, node, self._like.get(node) or _like(g))
        return seen(g) if node._hooks is None else fire_around(node, g, seen, self.taped)

    def _seen(self, node: Any, like: Any, g: Any) -> Sequence[Any]:
        """Run a node under the watcher. Hooks behind a built-in node see gradients that fit; a Function's stay."""
        rule = functools.partial(self._rule, node, like, g)
        grads = rule() if self._watcher is None else self._watcher(node, g, rule)
        if node._hooks is None or not node._hooks.after or type(node)._check_gradient is not Node._check_gradient:
            return grads
        pairs = zip(grads, node._edges, strict=True)
        return [fit(grad, edge, node) if edge and grad is not None else None for grad, edge in pairs]

    def _rule(self, node: Node, like: Any, g: Any) -> Sequence[Any]:
        """The gradients that a node sends for `g`, or for zeros like `like` if none came or hooks took it away."""
        if g is None or (node._outputs > 1 and all(part is None for part in g)):
            return node._run_empty(like[2], like[3], self.taped, self.needed, self.keep)
        return node._run(g, self.taped, self.needed, self.keep)

    def reaches(self, node: Node) -> bool:
        """Whether a gradient will come to a node."""
        if self.needed is not None:
            return node in self.needed
        if self._found is None:
            self._found = set(reachable(edge[0] for edge in self.roots))
        return node in self._found

    def place(self, leaf: AccumulateGrad) -> float:
        """The place of a leaf with hooks in the order of nodes: next after its last consumer; for a root, before
        all."""
        places = self._places
        if places is None:
            places = self._places = {}
            self.reaches(leaf)
            nodes = self.needed if self.needed is not None else self._found
            for node in nodes or ():
                for i, edge in enumerate(node._edges):
                    if edge and not edge[0]._edges:
                        place = node._order + (i + 1) / (len(node._edges) + 1)
                        places[edge[0]] = max(place, places.get(edge[0], -inf))
        found = places.get(leaf)
        return _FIRST + [edge[0] for edge in self.roots].index(leaf) if found is None else found


def _like(g: Any) -> Any:
    """An edge with the shape and dtype of the only gradient of a node, before hooks take that away."""
    data = g._data if isinstance(g, Tensor) else g
    return None, 0, getattr(data, "shape", ()), getattr(data, "dtype", None)


def _capture(wanted: dict[int, Any], g: Any, node: Node) -> None:
    """Note the gradients that are wanted of a node."""
    for nr in wanted:
        wanted[nr] = g if node._outputs == 1 or g is None else g[nr]


def fit(g: Any, edge: Edge, node: Node | None) -> Any:
    """Give a gradient that `node` sends along `edge` the shape and the dtype of its tensor."""
    data: Any = g._data if isinstance(g, Tensor) else g
    shape, found = edge[2], data.shape
    dtype: Any = edge[3]
    if dtype is None:  # any dtype will do: a leaf with `grad_dtype` None
        dtype = data.dtype
    if found != shape or data.dtype != dtype:
        if node is not None:
            node._check_gradient(data, edge)
        if found != shape:
            repeated = len(found) <= len(shape) and broadcasts_to(found, shape)
            g = spread(g, shape) if repeated else sum_to_shape(g, shape)
        if data.dtype != dtype:
            if data.dtype.kind == "c" and dtype.kind != "c":
                g = np.real(g)
            g = g.to(dtype) if isinstance(g, Tensor) else g.astype(dtype)
    return g


def _added(held: Any, g: Any, target: Any, nr: int, own: set[Any], taped: bool) -> Any:
    """The gradient of `target` with `g` added at its output `nr`: one gradient, or a list for several outputs."""
    if g is None:
        return held
    if target._outputs == 1:
        return _sum(held, g, own, target, taped)
    slots = [None] * target._outputs if held is None else held
    slots[nr] = _sum(slots[nr], g, own, (target, nr), taped)
    return slots


def _sum(held: Any, g: Any, own: set[Any], mark: Any, taped: bool) -> Any:
    """The sum of the held gradient, if any, and `g`: in place if `own` says that its memory is unshared."""
    if held is None:
        return g
    if mark in own and type(g) is np.ndarray:  # it may be sparse beside a dense one
        return np.add(held, g, held)
    total = np.add(held, g)
    if type(total) is np.ndarray and not taped:
        own.add(mark)
    else:
        own.discard(mark)
    return total


def needed_nodes(roots: Sequence[Edge], targets: set[Node]) -> set[Node]:
    """The nodes on some path from `roots` to `targets`; nodes older than every target are not searched."""
    oldest = -inf
    for node in targets:
        if not node._edges:  # a leaf, which may be older than any node, unless a transform made it
            transform = getattr(node, "transform", None)
            oldest = max(oldest, inf if transform is None else transform.since)
        else:
            oldest = max(oldest, node._order)
    found: set[Node] = set()
    seen = {edge[0] for edge in roots}
    stack = [*seen]
    inner = []
    while stack:
        node = stack.pop()
        if node in targets:
            found.add(node)
        if node._order > oldest:
            continue
        inner.append(node)
        for edge in node._edges:
            if edge:
                following = edge[0]
                if not following._edges:  # leaves: there may be many
                    if following in targets:
                        found.add(following)
                elif following not in seen:
                    seen.add(following)
                    stack.append(following)
    inner.sort(key=_AGE, reverse=True)
    for node in inner:
        for edge in node._edges:
            if edge and edge[0] in found:
                found.add(node)
                break
    return found


_AGE = attrgetter("_order")

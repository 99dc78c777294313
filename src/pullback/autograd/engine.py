"""The engine: sends gradients back through the graph.

    pop the newest node that waits -> its hooks -> its rule -> gradients along its edges -> leaves' .grad

`_loop` is that loop, and `execute` what surrounds it. It works on raw payloads; when the pass is *taped*, on Tensors:
as it is where the pass is itself recorded (`create_graph=True`), or where the payloads are those of a transform. What
travels is kept in the loop's own dictionaries, never on the nodes, so an exception leaves the graph as it was. Whatever
a rule returns is made to fit the edge it travels along, here and nowhere else: a broadcast is summed away, a dtype is
cast back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf
from operator import attrgetter
from sys import getrefcount
from typing import Any, cast

import numpy as np

from .. import errors
from ..diagnose.anomaly import before_run, check_nan, warn_of
from ..tensor.arrays import broadcasts_to, spread, sum_to_shape
from ..tensor.modes import thread
from ..tensor.tensor import Edge, Tensor, wrap
from .nesting import is_deep, on_an_empty_stack
from .node import AccumulateGrad, Node, reachable, retain

Captures = dict[Node, dict[int, Any]]


def _references_of_a_local() -> int:
    value = object()
    return getrefcount(value)


# What getrefcount says of an object that nothing but one local variable refers to: it differs between versions of
# Python.
_ONE_LOCAL = _references_of_a_local()


def execute(
    roots: Sequence[tuple[Edge, Any]],
    *,
    keep: bool,
    taped: bool,
    needed: set[Node] | None = None,
    captures: Captures | None = None,
    accumulate: bool = True,
    recorded: bool = False,
) -> dict[Any, Any]:
    """Run the backward pass that starts with the gradients `roots`.

    keep: nodes keep what they saved. taped: gradients are Tensors and not payloads, because the pass is recorded
    itself, or because payloads are those of a transform, which only Tensors know how to work with. needed: the only
    nodes to visit, unless None. captures: for these nodes, note the gradients of these outputs. accumulate: what has
    arrived at leaves is added to their ``.grad`` when the pass has ended; else it is returned, by `AccumulateGrad`.
    recorded: whether the pass is.
    """
    modes = thread.modes
    before = modes.grad_enabled, modes.needed, modes.running_pass
    edges = [edge for edge, _ in roots]
    if modes.running_pass is not None and is_deep():
        again = functools.partial(execute, roots, keep=keep, taped=taped, needed=needed, captures=captures)
        return on_an_empty_stack(functools.partial(again, accumulate=accumulate, recorded=recorded))
    modes.grad_enabled = recorded and not modes.inference
    modes.needed, modes.running_pass = needed, Pass(edges, needed)
    try:
        arrived = _loop(edges, [g for _, g in roots], keep, taped, needed, captures, accumulate)
        if accumulate:
            for node in list(arrived):
                _arrive(*_taken(arrived, node), taped)
        for callback in modes.running_pass.callbacks:
            callback()
    finally:
        modes.grad_enabled, modes.needed, modes.running_pass = before
    return arrived


def _taken(arrived: dict[Any, Any], node: AccumulateGrad) -> tuple[bool, AccumulateGrad, Any]:
    """Take out the gradient that arrived at a leaf: whether nobody else can see it, the leaf's node, and it."""
    g = arrived.pop(node)
    return getrefcount(g) <= _ONE_LOCAL, node, g


class Pass:
    """A backward pass that is running: which nodes it will reach, and what is to be called when it ends."""

    __slots__ = ("__weakref__", "_found", "_places", "_roots", "callbacks", "needed")

    def __init__(self, roots: Sequence[Edge], needed: set[Node] | None) -> None:
        self._roots, self.needed = roots, needed
        self._found: set[Node] | None = None
        self._places: dict[Node, float] | None = None
        self.callbacks: list[Callable[[], None]] = []

    def reaches(self, node: Node) -> bool:
        """Whether a gradient will come to a node."""
        if self.needed is not None:
            return node in self.needed
        if self._found is None:
            self._found = set(reachable(edge[0] for edge in self._roots))
        return node in self._found

    def place(self, leaf: AccumulateGrad) -> float:
        """Where a leaf with hooks stands in the order of nodes: next after the last of its consumers in this pass."""
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
        return places.get(leaf, -inf)  # a root


def queue_callback(callback: Callable[[], None]) -> None:
    """Call a function without arguments when the backward pass that is running in this thread ends without an error."""
    if thread.modes.running_pass is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    thread.modes.running_pass.callbacks.append(callback)


def _loop(
    edges: Any, grads: Any, keep: bool, taped: bool, needed: set[Any] | None, captures: Any, accumulate: bool
) -> dict[Any, Any]:
    """Deliver `grads` along `edges`, run the newest node that waits, deliver what it sends, until nothing waits.

    Returns what has arrived at leaves; only leaves with hooks take part in the order.
    """
    waiting: dict[Node, Any] = {}
    arrived: dict[Any, Any] = {}
    anomaly = thread.modes.anomaly
    own: set[Any] = set()  # the sums whose memory is this function's, to be added to in place
    heap: list[tuple[float, Node]] = []
    empty: dict[Node, Edge] = {}  # the edges along which None came to nodes, which run all the same
    # `newest` waits outside of both, with its gradient `newest_g`: it is most often the next node
    node, newest, newest_g = cast(Any, None), cast(Any, None), cast(Any, None)
    while True:
        i, count = 0, len(grads)
        while i < count:  # most often once, for which the iterator of a `for` costs too much
            edge, g = edges[i], grads[i]
            i += 1
            if g is None or not edge:
                if edge and newest is not edge[0] and (needed is None or edge[0] in needed):
                    _expect(waiting, heap, empty, edge)
                continue
            target, nr, shape, dtype = edge
            if needed is not None and target not in needed:
                continue
            if taped or g.shape != shape or g.dtype is not dtype:
                g = fit(g, edge, node)
            if not target._edges:  # a leaf's
                if target in arrived:
                    if target in own:  # as `_plus` does, without a call
                        _add_into(arrived[target], g, arrived[target])
                    else:
                        arrived[target] = _plus(arrived[target], g, own, target, taped)
                elif not (target.hooks or target.post_hooks or target._hooks):
                    arrived[target] = g
                else:
                    _merge(waiting, own, heap, target, thread.modes.running_pass.place(target), nr, g, taped)
            elif newest is None and not (waiting and target in waiting) and target._outputs == 1:
                newest, newest_g = target, g
            elif newest is target:
                newest_g = _plus(newest_g, g, own, target, taped)
            else:
                if newest is not None and target._order < newest._order:
                    waiting[newest] = newest_g
                    heappush(heap, (newest._order, newest))
                    newest = None
                _merge(waiting, own, heap, target, target._order, nr, g, taped)
        grads = g = None
        if newest is not None and not (heap and heap[0][0] < newest._order):
            node, g = newest, newest_g
            newest = newest_g = None
        elif heap:
            node = heappop(heap)[1]
            g = waiting.pop(node)
        else:
            return arrived
        edges = node._edges
        if edges and node._hooks is None and g is not None and not (anomaly or (captures and node in captures)):
            grads = node._run(g, taped, needed, keep)  # as most do
        else:
            grads = _turn(node, g, empty.get(node), arrived, captures, taped, needed, keep, accumulate)


def _turn(
    node: Any,
    g: Any,
    like: Any,
    arrived: dict[Any, Any],
    captures: Any,
    taped: bool,
    needed: set[Any] | None,
    keep: bool,
    accumulate: bool,
) -> Sequence[Any]:
    """What `_loop` does with a node that has hooks, or is captured, or a leaf, or got None, or where all are watched.

    like: as `_run` has it, if no gradient came. Returns what the node sends on.
    """
    if node._hooks is not None:
        g = _before(node, g, taped)
    if captures and node in captures and not _capture(captures[node], g, node, needed):
        return ()
    if node._edges:
        return (_watched_run if thread.modes.anomaly else _hooked_run)(node, g, like, taped, needed, keep)
    if accumulate:
        _arrive(False, node, g, taped)
    else:
        arrived[node] = _leaf_hooks(node, g, taped)
    return ()


def _expect(waiting: Any, heap: Any, empty: Any, edge: Edge) -> None:
    """Have a node that None was sent to run in its turn, also if nothing else comes; a leaf only for its hooks."""
    target: Any = edge[0]
    if target in waiting:
        return
    place = target._order
    if not target._edges:
        if not (target.hooks or target.post_hooks or target._hooks):
            return
        place = thread.modes.running_pass.place(target)
    waiting[target] = None
    empty[target] = edge
    heappush(heap, (place, target))


def _run(node: Node, g: Any, like: Any, taped: bool, needed: set[Node] | None, keep: bool) -> Sequence[Any]:
    """Run a node; where no gradient came, or hooks took it away, as if it were one like `like`, of zeros."""
    if g is None or (node._outputs > 1 and all(part is None for part in g)):
        return node._run_empty(like[2], like[3], taped, needed, keep)
    return node._run(g, taped, needed, keep)


def _like(g: Any) -> Any:
    """An edge that says of what shape and dtype the one gradient of a node is, before hooks take it away."""
    data = g._data if isinstance(g, Tensor) else g
    return None, 0, getattr(data, "shape", ()), getattr(data, "dtype", None)


def _hooked_run(node: Node, g: Any, like: Any, taped: bool, needed: set[Node] | None, keep: bool) -> Sequence[Any]:
    """What `_loop` does to run a node that has hooks."""
    like = like or _like(g)
    if node._hooks is not None:
        g = _prehooks(node, g, taped)
    grads = _run(node, g, like, taped, needed, keep)
    return grads if node._hooks is None else _after(node, grads, g, taped)


def _watched_run(node: Node, g: Any, like: Any, taped: bool, needed: set[Node] | None, keep: bool) -> Sequence[Any]:
    """What `_loop` does to run a node, in anomaly mode: an error names the forward call, and NaN is one."""
    modes = thread.modes
    before, modes.running = modes.running, node
    try:
        like = like or _like(g)
        if node._hooks is not None:
            g = _prehooks(node, g, taped)
        saved = before_run(node, g) if modes.check_nan else ()
        try:
            grads = _run(node, g, like, taped, needed, keep)
            if modes.check_nan:
                check_nan(node, grads, g, saved)
        except Exception:
            warn_of(node)
            raise
        return grads if node._hooks is None else _after(node, grads, g, taped)
    finally:
        modes.running = before


def _capture(wanted: dict[int, Any], g: Any, node: Node, needed: set[Node] | None) -> bool:
    """Note the gradients that are wanted of a node; whether it also leads on to others, as all that are needed do."""
    for nr in wanted:
        wanted[nr] = g if node._outputs == 1 else g[nr]
    return needed is None or any(edge and edge[0] in needed for edge in node._edges)


def _arrive(unshared: bool, node: AccumulateGrad, g: Any, taped: bool) -> None:
    """What happens at a leaf: its hooks, then the gradient is accumulated."""
    if node.hooks:
        g = _leaf_hooks(node, g, taped)
        unshared = False
    if node._hooks is None:
        node.accumulate(g, taped, unshared)
    else:
        g = _prehooks(node, g, taped)
        node.accumulate(g, taped, False)
        _after(node, (), g, taped)


def fit(g: Any, edge: Edge, node: Node | None) -> Any:
    """Make a gradient that `node` sends along `edge` the shape and dtype of what it is the gradient of."""
    data: Any = g._data if isinstance(g, Tensor) else g
    shape, found = edge[2], data.shape
    dtype: Any = edge[3]
    if dtype is None:  # any will do: of a leaf whose `grad_dtype` is None
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


def _merge(waiting: Any, own: set[Any], heap: Any, target: Any, place: float, nr: int, g: Any, taped: bool) -> None:
    """Have `g` wait at output `nr` of `target`, added to what waits there already. place: the target's in the heap."""
    if target not in waiting:
        heappush(heap, (place, target))
        waiting[target] = g if target._outputs == 1 else None
    elif target._outputs == 1:
        _add(waiting, target, own, target, g, taped)
    if target._outputs > 1:
        if waiting[target] is None:
            waiting[target] = [None] * target._outputs
        _add(waiting[target], nr, own, (target, nr), g, taped)


def _add(slots: Any, key: Any, own: set[Any], mark: Any, g: Any, taped: bool) -> None:
    """Add `g` to what is in a slot: in place, where `own` says that its memory is nobody else's."""
    held = slots[key]
    slots[key] = g if held is None else _plus(held, g, own, mark, taped)


def _plus(held: Any, g: Any, own: set[Any], mark: Any, taped: bool) -> Any:
    if mark in own:
        return np.add(held, g, held)
    total = np.add(held, g)
    if type(total) is np.ndarray and not taped:
        own.add(mark)
    return total


def _as_tensors(g: Any, count: int = 1) -> list[Any]:
    values = [None] * count if g is None else g if isinstance(g, (list, tuple)) else [g]
    return [v if v is None or isinstance(v, Tensor) else wrap(v) for v in values]


def _raw(values: Sequence[Any], taped: bool) -> list[Any]:
    return [v._data if isinstance(v, Tensor) and not (taped or v.is_sparse) else v for v in values]


def _replacement(hook: Any, new: Any, old: Any) -> Any:
    """What a hook returned, checked against what it was given."""
    if new is None:
        return old
    name = getattr(hook, "__qualname__", type(hook).__name__)
    if old is None:
        raise RuntimeError(f"hook '{name}': can't replace a None gradient with a non-None value")
    if not isinstance(new, Tensor):
        raise TypeError(
            errors.message(f"hook '{name}'", expected="to return a Tensor or None", found=type(new).__name__)
        )
    if new._data.shape != old._data.shape:
        raise RuntimeError(
            errors.message(
                f"hook '{name}' has changed the size of value",
                expected=str(list(old._data.shape)),
                found=str(list(new._data.shape)),
            )
        )
    if new._data.dtype != old._data.dtype:
        raise RuntimeError(
            errors.message(
                f"hook '{name}' has changed the type of value", expected=str(old.dtype), found=str(new.dtype)
            )
        )
    return new


def _replacements(hook: Any, new: Any, old: list[Any]) -> list[Any]:
    """What a node's hook returned, checked against what it was given: None, or a tuple that may take gradients away."""
    if new is None:
        return old
    name = getattr(hook, "__qualname__", type(hook).__name__)
    if not isinstance(new, tuple):
        raise TypeError(
            errors.message(f"hook '{name}'", expected="to return a tuple or None", found=type(new).__name__)
        )
    if len(new) != len(old):
        raise RuntimeError(
            errors.message(
                f"hook '{name}' has returned an incorrect number of values", expected=str(len(old)), found=str(len(new))
            )
        )
    return [None if n is None else _replacement(hook, n, o) for n, o in zip(new, old, strict=True)]


def _before(node: Node, g: Any, taped: bool) -> Any:
    """Fire the hooks of a node's outputs, then keep the gradients that are to be retained."""
    hooks = node._hooks
    assert hooks is not None
    values = _as_tensors(g, node._outputs)
    for nr, fns in hooks.of_output.items():
        for fn in list(fns.values()):
            values[nr] = _replacement(fn, fn(values[nr]), values[nr])
    raw = _raw(values, taped)
    for nr, ref in hooks.retained.items():
        tensor = ref()
        if tensor is not None and raw[nr] is not None:
            retain(tensor, raw[nr], taped)
    return raw if node._outputs > 1 else raw[0]


def _prehooks(node: Node, g: Any, taped: bool) -> Any:
    """Fire the hooks in front of a node that is about to run; None if no gradient is left."""
    assert node._hooks is not None
    if not node._hooks.before:
        return g
    values = _as_tensors(g, node._outputs)
    for fn in list(node._hooks.before.values()):
        values = _replacements(fn, fn(tuple(values)), values)
    raw = _raw(values, taped)
    return raw if node._outputs > 1 else raw[0]


def _after(node: Node, grads: Sequence[Any], g: Any, taped: bool) -> Sequence[Any]:
    """Fire the hooks behind a node, which see its gradients both ways and may replace those it sends on."""
    assert node._hooks is not None
    if not node._hooks.after:
        return grads
    edges = node._edges
    if type(node)._check_gradient is Node._check_gradient:  # a Function's are shown as its backward returned them
        grads = [
            fit(grad, edge, node) if edge and grad is not None else None
            for grad, edge in zip(grads, edges, strict=True)
        ]
    received, sent = tuple(_as_tensors(g, node._outputs)), _as_tensors(list(grads))
    # an operation has no edges for the inputs that need none; its hooks get None in their places
    numbers = iter([i for i, edge in enumerate(edges) if edge])
    slots = [next(numbers) if following else None for following, _ in node.next_functions]
    values = [None if i is None else sent[i] for i in slots]
    for fn in list(node._hooks.after.values()):
        values = _replacements(fn, fn(tuple(values), received), values)
    for i, value in zip(slots, values, strict=True):
        if i is not None:
            sent[i] = value
    return _raw(sent, taped)


def _leaf_hooks(node: AccumulateGrad, g: Any, taped: bool) -> Any:
    value = _as_tensors(g)[0]
    for fn in list(node.hooks.values()):
        value = _replacement(fn, fn(value), value)
    return _raw([value], taped)[0]


def needed_nodes(roots: Sequence[Edge], targets: set[Node]) -> set[Node]:
    """The nodes on some path from `roots` to `targets`; those older than every target cannot be."""
    oldest = -inf
    for node in targets:
        if not node._edges:  # a leaf, which may be older than any node
            oldest = inf
            break
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
                if not following._edges:  # a leaf's, of which there may be many
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
_add_into: Any = np.add  # any, for its type knows of no result by position

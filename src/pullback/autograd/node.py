"""Node: one recorded operation, and what all kinds of node have in common.

A node knows the edges along which it sends gradients on, the place it takes in the order of creation, and its hooks.
What it does when a gradient arrives is its `run`; built-in operations (`ops/table.py`), user-defined Functions
(`function.py`) and `AccumulateGrad` below are the three kinds.

Order. Every node takes the next number when it is made, counting *down*: a node's consumers are all made after it, so
the smallest number among the nodes that wait is always one whose consumers have all run. The count is shared by all
threads, because a graph may be built by several.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._memory import LeafState
from .._tensor import Edge, Tensor, wrap

next_order = itertools.count(0, -1).__next__
_next_id = itertools.count().__next__

NO_GRADIENT: Any = ()
"""Stands in the place of an edge where there can be no gradient at all; None where there merely is none wanted."""

# Held while the gradient of a leaf or the leaf's one accumulator is replaced: graphs of several threads may share the
# leaf.
_LOCK = threading.RLock()

FREED: Any = object()
"""What stands in the place of a node's saved values once they were dropped."""


class RemovableHandle:
    """Returned by every `register_...hook`: `remove()` takes the hook away, as does leaving a `with` block."""

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise TypeError(f"a hook must be callable, not {type(hook).__name__}")
        self._hooks = hooks
        self.id = _next_id()
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one node, in the order in which they fire: tensors', the node's before, retained grads, after."""

    __slots__ = ("after", "before", "of_output", "retained")

    def __init__(self) -> None:
        self.of_output: dict[int, dict[int, Callable[..., Any]]] = {}
        self.before: dict[int, Callable[..., Any]] = {}
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        self.after: dict[int, Callable[..., Any]] = {}

    def retains(self, nr: int) -> bool:
        """Whether output `nr` keeps its gradient."""
        return nr in self.retained


class Node:
    """One recorded operation.

    ``next_functions`` are the nodes its gradients go to, ``name()`` says what it computes, ``metadata`` is a dict for
    whoever looks at the graph. `register_prehook(f)` calls ``f(grad_outputs)`` before the node runs,
    `register_hook(f)` calls ``f(grad_inputs, grad_outputs)`` after; either may return replacements (a tuple).
    """

    __slots__ = ("__weakref__", "_edges", "_hooks", "_metadata", "_order")

    _outputs = 1
    """How many tensors the operation made."""

    _edges: Sequence[Edge | None]
    _hooks: Hooks | None
    _order: int

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        """The gradients to send along `edges`, given `g` (a list where the node has several outputs).

        Raw payloads, or Tensors when the pass is taped, i.e. itself recorded. `needed`, unless None, are the only
        nodes worth a gradient. Unless `keep`, what was saved for this is dropped.
        """
        raise NotImplementedError

    def _check_gradient(self, data: Any, edge: Edge) -> None:
        """Refuse a gradient along `edge` of a wrong shape or dtype; a built-in rule's is made to fit."""

    def name(self) -> str:
        """The name a repr shows, e.g. ``MulBackward0``."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """For every tensor input, the node its gradient goes to and which of its outputs it is, or (None, 0)."""
        return tuple((e[0], e[1]) if e else (None, 0) for e in self._edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict of one's own."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[Any, Any] = {}
            return self._metadata

    def _sequence_nr(self) -> int:
        return -self._order

    def _make_hooks(self) -> Hooks:
        """This node's hooks, made when first asked for: most nodes have none."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node has run."""
        return RemovableHandle(self._make_hooks().after, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before this node runs."""
        return RemovableHandle(self._make_hooks().before, fn)


class AccumulateGrad(Node):
    """The end of a path: adds what arrives to ``variable.grad``.

    A leaf holds it weakly and it holds the leaf, so it lives as long as a graph refers to it. It takes its number
    before the first consumer's, so it runs once all consumers have.
    """

    __slots__ = ("dtype", "shape", "variable")

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    variable: Tensor

    def accumulate(self, g: Any, taped: bool, unshared: bool) -> None:
        """Add `g` to the leaf's gradient and run the leaf's post-accumulation hooks.

        `unshared` promises that nobody else can see the memory of `g`, so that it may become the gradient without a
        copy.
        """
        leaf = self.variable
        if not leaf._requires_grad:  # no longer
            return
        add_grad(leaf, g, taped, unshared)
        if leaf._leaf is not None and leaf._leaf.post_hooks:
            for hook in list(leaf._leaf.post_hooks.values()):
                hook(leaf)


def add_grad(t: Tensor, g: Any, taped: bool, unshared: bool) -> None:
    """Add `g` to ``t.grad``: in place where there is one already, unless the pass is taped."""
    with _LOCK:
        held = t._grad
        if taped:
            t._grad = np.copy(g) if held is None else np.add(held, g)  # type: ignore[assignment]
        elif isinstance(g, Tensor):  # a sparse one, which no array can hold
            t._grad = g if held is None else held + (g if type(held) is type(g) else g.to_dense())
        elif held is None:
            owned = unshared and isinstance(g, np.ndarray) and g.base is None and g.flags.writeable
            t._grad = wrap(g if owned else np.array(g))
        elif isinstance(held._data, np.ndarray) and held._data.flags.writeable:
            np.add(held._data, g, out=held._data, casting="same_kind")
            held._bump()
        else:
            t._grad = wrap(np.add(held.to_dense()._data if hasattr(held, "to_dense") else held._data, g))


def carry_retained(t: Tensor, old: Edge, new: Edge) -> None:
    """If `t`, once the output at `old` and now that at `new`, retains its gradient, retain the new one."""
    hooks = old[0]._hooks
    if hooks is not None and old[1] in hooks.retained and hooks.retained[old[1]]() is t:
        new[0]._make_hooks().retained[new[1]] = hooks.retained.pop(old[1])


def leaf_edge(t: Tensor) -> Edge:
    """The edge to a leaf's `AccumulateGrad`."""
    state = t._leaf
    acc: Any = state and state.accumulator and state.accumulator()
    if acc is None:
        with _LOCK:
            state = t._leaf or leaf_state(t)
            acc = state.accumulator and state.accumulator()
            if acc is None:  # still: no other thread has made it
                acc = AccumulateGrad()
                acc._edges = ()
                acc._hooks = None
                acc.variable, data = t, t._data
                acc.shape, acc.dtype = data.shape, data.dtype
                acc._order = next_order()
                state.accumulator = weakref.ref(acc)
    return (acc, 0, acc.shape, acc.dtype)


def leaf_state(t: Tensor) -> LeafState:
    """A leaf's `LeafState`, made when first asked for."""
    with _LOCK:
        if t._leaf is None:
            t._leaf = LeafState()
        return t._leaf


def second_backward(name: str) -> RuntimeError:
    """The error of a graph used again after its saved values were freed."""
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        f"already been freed): {name} dropped what it saved when the first backward had run.\n"
        "  What to do: pass retain_graph=True to the first backward() or grad(), or compute the output again."
    )


def written_since(node: Node, t: Tensor, expected: int) -> RuntimeError:
    """The error of a saved tensor whose memory was written to between forward and backward."""
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: a {t.dtype} "
        f"tensor of shape {list(t._data.shape)}, saved by {node.name()}, is at version {t._version}; expected version "
        f"{expected} instead.\n"
        "  What to do: do not write to it between forward and backward; write to a clone(), or use the out-of-place "
        "operation."
    )

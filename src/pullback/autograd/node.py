"""Node: one recorded operation, the base of all kinds of node.

A node knows the edges that it sends gradients along, its place in the order of creation, and its hooks. Its `_run`
computes the gradients to send when a gradient arrives. There are three kinds: built-in operations (`table/nodes.py`),
user-defined Functions (`context.py`), and `AccumulateGrad` below.

Edges. An edge leads to one output of a node: the node, the number of the output, its shape and its dtype. If no
gradient is wanted, there is None instead of an edge, and never another value.

Order. Every node but a leaf's takes the next number when it is made, counting *down*: a node's consumers are all made
after it, so the waiting node with the smallest number has no consumer left to run. The count is
shared by all threads, because a graph may be built by several. `begin` is where a node takes its number.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import errors
from ..tensor.gpu import gpu_of
from ..tensor.memory import INFERENCE, check_fit, next_order
from ..tensor.modes import thread
from ..tensor.protocol import is_foreign
from ..tensor.tensor import Edge, Lifted, Tensor, wrap, wrap_as
from ..tensor.views import refuse_inference
from .hooks import Hooks, RemovableHandle, fire_accumulated, fire_around, fire_of_leaf

# Held while the gradient of a leaf or the leaf's one accumulator is replaced: graphs of several threads may share the
# leaf.
_LOCK = threading.RLock()

FREED: Any = object()
"""Stands for a node's saved values once they were dropped."""


class Node:
    """One recorded operation.

    ``next_functions`` are the nodes its gradients go to, ``name()`` names the operation, ``metadata`` is a dict for the
    user's notes. `register_prehook(f)` calls ``f(grad_outputs)`` before the node runs, `register_hook(f)` calls
    ``f(grad_inputs, grad_outputs)`` after; either may return replacements (a tuple).
    """

    __slots__ = ("__weakref__", "_edges", "_hooks", "_metadata", "_order")

    _outputs = 1
    """The number of tensors that the operation made."""

    _edges: Sequence[Edge | None]
    _hooks: Hooks | None
    _order: int

    @property
    def _alone(self) -> bool:
        """Whether the user has the first of the tensors alone."""
        return False

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        """The gradients to send along `edges`, given `g` (a list if the node has several outputs).

        Raw payloads, or Tensors when the pass is taped, i.e. itself recorded. `needed`, unless None, are the only nodes
        worth a gradient. Unless `keep`, the saved values are dropped.
        """
        raise NotImplementedError

    def _run_empty(self, shape: Any, dtype: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        """The gradients to send along `edges` if none came; an output of this node has `shape` and `dtype`."""
        return [None] * len(self._edges)

    def _check_gradient(self, data: Any, edge: Edge) -> None:
        """Refuse a gradient along `edge` of a wrong shape or dtype; a built-in rule's is made to fit."""

    def name(self) -> str:
        """The name a repr shows, e.g. ``MulBackward0``."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """For every tensor input, the node its gradient goes to and the number of that node's output, or (None, 0)."""
        return tuple((None, 0) if e is None else (e[0], e[1]) for e in self._edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's notes."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[Any, Any] = {}
            return self._metadata

    @property
    def requires_grad(self) -> bool:
        """True: a tensor that requires no gradient has no node."""
        return True

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"cannot pickle or copy {self.name()!r}, a node of the graph.\n"
            "  What to do: keep tensors; detach() them first."
        )

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


N = TypeVar("N", bound=Node)


def begin(node: N, edges: Sequence[Edge | None]) -> N:
    """Start a node that was just created: it gets its edges, no hooks, and then the next number in the order.

    The edges exist before this is called, so every node they lead to has a number already. `binary` in
    `table/calls.py` writes these lines out, because a call costs too much there.
    """
    node._edges, node._hooks = edges, None
    node._order = next_order()
    return node


def reachable(roots: Iterable[Any], within: set[Any] | None = None) -> Iterator[Any]:
    """The nodes that gradients from `roots` reach, each once; only nodes of a set, if one is given."""
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen or (within is not None and node not in within):
            continue
        seen.add(node)
        yield node
        stack += [edge[0] for edge in node._edges if edge is not None]


class AccumulateGrad(Node):
    """The end of a path: adds the arriving gradient to ``variable.grad``.

    A leaf owns it, by the edge in ``_leaf``, and it refers to the leaf weakly. So it is made once, it outlives the
    graphs that end in it, and there is no cycle. It holds the parts of a dead leaf that a graph needs: the payload and
    the hooks. It has no place in the order of nodes: the engine sums the arriving gradients and adds the sum when the
    pass ends; if there are hooks, as soon as the last consumer has run.
    """

    __slots__ = ("_class", "_data", "_variable", "hooks", "post_hooks", "transform")

    _variable: weakref.ref[Tensor]

    def __init__(self, t: Tensor) -> None:
        self._edges, self._hooks = (), None
        self._variable, self._class, self._data = weakref.ref(t), type(t), t._data
        self.hooks: dict[int, Callable[..., Any]] = {}
        self.post_hooks: dict[int, Callable[..., Any]] = {}
        self.transform: Any = None  # for a leaf made by a transform of `func`: whether that runs
        self._order = 1 - 2**64  # `_sequence_nr` is then 2**64 - 1, as in torch: it runs first

    @property
    def variable(self) -> Tensor:
        """The leaf. If no reference to it is left, it is made again."""
        t = self._variable()
        if t is None:
            with _LOCK:
                t = self._variable()
                if t is None:
                    t = wrap_as(self._class, self._data)
                    t._requires_grad, t._leaf = True, _edge_to(self, t)
                    self._variable = weakref.ref(t)
        return t

    def renew(self) -> None:
        """Give the leaf another node instead of this one, because its shape or dtype has changed."""
        t = self.variable
        new = AccumulateGrad(t)
        new.hooks, new.post_hooks, new.transform = self.hooks, self.post_hooks, self.transform
        node, nr, shape, dtype = _edge_to(new, t)
        held: Any = t._leaf and t._leaf[3]
        if held is None or held != self._data.dtype:  # not the leaf's own: `grad_dtype` was set, and stays
            dtype = held
        t._leaf = node, nr, shape, dtype

    def arrive(self, unshared: bool, g: Any, taped: bool) -> None:
        """Run the hooks, and add `g` to the leaf's gradient.

        `unshared` promises that nobody else can see the memory of `g`, so it may become the gradient without a copy.
        """
        if self.hooks:
            g, unshared = fire_of_leaf(self, g, taped), False
        if self._hooks is None:
            self._accumulate(unshared, taped, g)
        else:
            fire_around(self, g, functools.partial(self._accumulate, False, taped), taped)

    def _accumulate(self, unshared: bool, taped: bool, g: Any) -> tuple[()]:
        """Add `g` to the leaf's gradient and run the leaf's post-accumulation hooks; it sends nothing on."""
        leaf = self.variable
        if not leaf._requires_grad:  # no longer
            return ()
        if leaf._edge is not None:
            raise RuntimeError(
                "leaf variable has been moved into the graph interior: after it was used it was taken out of the "
                "graph, and then written to by a recorded operation, so that it is no leaf any more.\n"
                "  What to do: write to it within pullback.no_grad(), or call backward() before the write."
            )
        if g is not None:  # as if a Function sent None; the hooks are still called
            add_grad(leaf, g, taped, unshared)
        if self.post_hooks:
            fire_accumulated(self.post_hooks, leaf)
        return ()


def add_grad(t: Tensor, g: Any, taped: bool, unshared: bool) -> None:
    """Add `g` to ``t.grad``: in place if there is one already, unless the pass is taped."""
    with _LOCK:
        held = t._grad
        if taped:
            check_fit("gradient", t, g)
            if held is None and type(g) is Tensor and not (g._requires_grad or thread.modes.levels):  # in no graph
                t._grad = wrap(laid_out(t._data, g._data, False))
            else:
                t._grad = np.copy(g) if held is None else np.add(held, g)  # type: ignore[assignment]
        elif isinstance(g, Tensor):  # a sparse one, which no array can hold
            _add_sparse(t, held, g, unshared)
        elif held is not None and _takes_sums(data := held._data):
            if held._version_of is INFERENCE:
                refuse_inference(held)
            try:
                np.add(data, g, out=data, casting="same_kind")
            except ValueError:
                raise _does_not_fit(t, held, g) from None
            except TypeError:
                if isinstance(g, np.ndarray):
                    raise
                t._grad = wrap(np.add(data, g))  # a payload, which no array can hold
                return
            held._bump()
        else:
            t._grad = wrap(laid_out(t._data, g, unshared) if held is None else np.add(_dense(held), g))


def _takes_sums(data: Any) -> bool:
    """Whether gradients are added to an array in place: to one of NumPy that is not read-only, and to one of a GPU."""
    return data.flags.writeable if isinstance(data, np.ndarray) else is_foreign(data)


def laid_out(like: Any, g: Any, unshared: bool) -> Any:
    """`g` in separate memory with the layout of the payload `like`; `g` itself, if it is so already."""
    if not isinstance(like, np.ndarray) or not isinstance(g, np.ndarray):
        own = unshared and gpu_of(g) is not None and g.base is None and g.strides == like.strides
        return g if own else np.copy(g)
    if unshared and g.base is None and g.flags.writeable and g.strides == like.strides:
        return g
    own = np.empty_like(like, g.dtype)
    own[...] = g
    return own


def _dense(held: Tensor) -> Any:
    return held.to_dense()._data if hasattr(held, "to_dense") else held._data


def _does_not_fit(t: Tensor, held: Tensor, g: Any) -> RuntimeError:
    """The error of a gradient that does not fit the present one: the tensor's data had another shape before."""
    said = errors.broadcast_message([held._data.shape, g.shape])
    if said is None:
        said = f"output with shape {list(held._data.shape)} doesn't match the broadcast shape {list(g.shape)}"
    return RuntimeError(
        errors.message(
            f"the gradient of a leaf: {said}; .data was given another shape",
            expected=f".grad of shape {list(t._data.shape)}",
            found=str(list(held._data.shape)),
            do="set .grad to None where .data gets another shape",
        )
    )


def _add_sparse(t: Tensor, held: Tensor | None, g: Any, unshared: bool) -> None:
    """Add a sparse `g` to ``t.grad``, which stays the same object if it can hold the sum."""
    if held is None:
        values = getattr(g._data, "values", g._data)  # the sum with a dense one is dense
        t._grad = g if unshared and values.base is None else g.clone()
        return
    total: Any = held + (g if type(held) is type(g) else g.to_dense())
    if type(total) is not type(held):
        t._grad = total
        return
    refuse_inference(held)
    if isinstance(held._data, np.ndarray) and held._data.flags.writeable:
        held._data[...] = total._data
    else:
        held._data = total._data
    held._bump()


def retain(t: Tensor, g: Any, taped: bool) -> None:
    """Add `g` to the ``.grad`` of a tensor that is not a leaf: not in place, since a graph may refer to the old one."""
    if isinstance(g, Lifted) and not isinstance(t, Lifted):
        g = g._data.level.kept(g)
    if t._grad is not None and not taped:
        t._grad = t._grad.detach().clone()
    add_grad(t, g, taped, False)


def carry_retained(t: Tensor, old: Edge, new: Edge) -> None:
    """If `t`, formerly the output at `old` and now at `new`, retains its gradient, retain the new one."""
    hooks = old[0]._hooks
    if hooks is not None and old[1] in hooks.retained and hooks.retained[old[1]]() is t:
        new[0]._make_hooks().retained[new[1]] = hooks.retained.pop(old[1])


def edge_of(t: Tensor) -> Edge:
    """The edge to a tensor that requires grad: to its node's output, or to a leaf's `AccumulateGrad`.

    On the paths of every operation (`record`, `binary`, a Function's arguments) this line is written out, because a
    call for each argument costs too much.
    """
    return t._edge or t._leaf or leaf_edge(t)


def leaf_edge(t: Tensor) -> Edge:
    """The edge to a leaf's `AccumulateGrad`, which is made on first use."""
    edge = t._leaf
    if edge is None:
        with _LOCK:
            edge = t._leaf
            if edge is None:  # still: no other thread has made it
                edge = t._leaf = _edge_to(AccumulateGrad(t), t)
    return edge


def _edge_to(acc: AccumulateGrad, t: Tensor) -> Edge:
    return (acc, 0, t._data.shape, t._data.dtype)

"""Function: the plug-in interface, by which anyone adds a node to the graph.

A subclass says how to compute (`forward`) and how a gradient goes back (`backward`), both static methods. Each call
of `apply` makes one
`FunctionNode`: it is the ``ctx`` that both methods get, and it is the output's ``grad_fn``. What one call needs to
remember lives there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..tensor.modes import LEVELS, thread
from ..tensor.tensor import Lifted, Tensor
from .context import ClearingNode, FunctionNode
from .contract import Contract, adopt_vjp, box_gradients, check
from .node import NO_GRADIENT, NOT_A_TENSOR, Node, leaf_edge, next_order
from .outputs import attach, holds_tensors, is_among, keep, outside
from .structure import CONTAINERS, leaves, rebuild


class Function:
    """A differentiable operation of one's own. Subclass it, write two static methods, and call it through `apply`.

    ``forward(ctx, *args)`` computes; it may save tensors with ``ctx.save_for_backward`` and set any attribute on
    ``ctx``. ``backward(ctx, *grad_outputs)`` gets the gradient of the loss with respect to each output and returns one
    for each argument of forward, None where there is none: the vector-Jacobian product ``grad_output^T J``.
    Alternatively ``forward(*args)`` computes only and ``setup_context(ctx, inputs, output)`` saves.

    Arguments may be tensors, anything else, or nested dicts, lists and tuples of tensors; their gradients nest alike.

    >>> import pullback
    >>> class Cube(pullback.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad_output
    >>> x = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y
    tensor([1., 8.], grad_fn=<CubeBackward>)
    >>> y.sum().backward()
    >>> x.grad
    tensor([ 3., 12.])

    See https://docs.pytorch.org/docs/stable/notes/extending.html#extending-autograd.
    """

    _is_root = True
    _contract: ClassVar[Contract]
    _node_class: ClassVar[type[FunctionNode]]
    _backward_cls: ClassVar[type[FunctionNode]]  # the same, under torch's name

    generate_vmap_rule: ClassVar[bool] = False
    """Whether `vmap` reads forward, backward and jvp, which are then written in operations on tensors, for a batch."""

    clear_saved_tensors_on_access: ClassVar[bool] = False
    """Whether ``ctx.saved_tensors`` can be looked at once only, and is let go by that: for less memory in backward."""

    boxed_grads_call: ClassVar[bool] = False
    """Whether backward is given the gradients in one list, ``backward(ctx, grads)``, to take them out as it goes."""

    forward: Any

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradient of each argument of forward, given that of each output: for a subclass to define."""
        name = ctx._forward_cls.__name__
        raise NotImplementedError(
            f"{name} has no backward, so it cannot be differentiated: you must implement either the backward or the "
            "vjp method.\n  What to do: add\n    @staticmethod\n    def backward(ctx, grad_output):"
        )

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "vjp" in cls.__dict__:
            adopt_vjp(cls)
        if cls.boxed_grads_call:
            box_gradients(cls)
        if not abstract:
            check(cls)
            cls._contract = Contract(cls)
            base = ClearingNode if cls.clear_saved_tensors_on_access else FunctionNode
            cls._backward_cls = cls._node_class = type(
                f"{cls.__name__}Backward", (base,), {"_forward_cls": cls, "__module__": cls.__module__}
            )

    def __new__(cls, *args: Any, **kwargs: Any) -> Function:
        """A Function has no use for instances; what looks like a call is told to use `apply`."""
        if args or kwargs:
            raise _use_apply(cls)
        return super().__new__(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise _use_apply(type(self))

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call forward, and make its tensors the outputs of a new node if any argument requires grad."""
        try:
            contract = cls._contract
        except AttributeError:
            raise TypeError(f"{cls.__name__} is abstract; apply belongs to a subclass with a forward") from None
        node = cls._node_class()
        node._hooks = None
        if kwargs or contract.separate:
            args, kwargs = contract.bind(node, args, kwargs)
            inputs = (*args, *kwargs.values())
        else:
            inputs = args
        modes = thread.modes
        recording = modes.grad_enabled
        wanted = nested = False
        for a in inputs:
            if type(a) is not Tensor or a._requires_grad:
                edges: list[Any] = []
                for a in inputs:
                    if type(a) is not Tensor and not isinstance(a, Tensor):
                        nested = nested or (isinstance(a, CONTAINERS) and holds_tensors(a))
                        edges.append(NOT_A_TENSOR)
                    elif a._requires_grad:
                        wanted = True
                        edges.append((a._edge or a._leaf or leaf_edge(a)) if recording else True)
                    else:
                        edges.append(None if a._data.dtype.kind in "fcV" else NO_GRADIENT)
                node._edges = _connect_nested(node, inputs, recording) if nested else edges
                break
        else:  # nothing that could require a gradient
            node._edges = (None,) * len(inputs)
        modes.grad_enabled = False
        try:
            if LEVELS.n and (level := _level_of(inputs)) is not None:
                out, wanted = _at_level(level, node, inputs, args, kwargs, recording)
            elif kwargs or contract.separate:
                out = _forward(cls, node, inputs, args, kwargs)
            else:
                out = cls.forward(node, *args)
        finally:
            modes.grad_enabled = recording
        if not (recording and (wanted or (nested and any(node._edges)))):
            return outside(node, out, tuple(leaves(inputs)) if nested else inputs)
        node._order = next_order()
        if type(out) is Tensor and not out._requires_grad and not node._marked:
            data = out._data
            if data.dtype.kind in "fcV" and 1 in contract.counts and not nested and not is_among(out, inputs):
                out._edge, out._requires_grad = (node, 0, data.shape, data.dtype), True
                if node._saved:
                    keep(node, (out,), (out,))
                if modes.watch is not None:
                    modes.watch(node)
                return out
        result = attach(node, out, inputs)
        if modes.watch is not None:
            modes.watch(node)
        return result


def _forward(
    cls: type[Function], node: FunctionNode, inputs: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What forward returns, where it takes keywords, or where `setup_context` looks after the context."""
    if not cls._contract.separate:
        return cls.forward(node, *args, **kwargs)
    out = cls.forward(*args, **kwargs)
    cls.setup_context(node, inputs, out)  # type: ignore[attr-defined]
    return out


def _level_of(inputs: tuple[Any, ...]) -> Any:
    """The highest level of a transform that one of the arguments belongs to, or None."""
    levels = [leaf._data.level for leaf in leaves(inputs) if isinstance(leaf, Lifted)]
    return max(levels, key=lambda level: level.number, default=None)


def _at_level(
    level: Any,
    node: FunctionNode,
    inputs: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    recording: bool,
) -> tuple[Any, bool]:
    """What a level makes of a call, and whether an argument of that level requires grad."""
    node._edges = _edges_at(level, node._edges, inputs)
    out = level.custom(node._forward_cls, node, args, kwargs, recording)
    return out, any(node._edges)


def _edges_at(level: Any, edges: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """The edges to arguments of a level; what is tracked below is recorded there."""
    return [
        edge if not edge or level.shares_graph or (isinstance(t, Lifted) and t._data.level is level) else None
        for edge, t in zip(edges, leaves(inputs) if len(edges) != len(inputs) else inputs, strict=True)
    ]


def _use_apply(cls: type) -> TypeError:
    return TypeError(
        f"{cls.__name__} is not called itself: its methods are static, and each call makes a node of the graph.\n"
        f"  What to do: write {cls.__name__}.apply(...)."
    )


def _connect_nested(node: FunctionNode, inputs: tuple[Any, ...], recording: bool) -> list[Any]:
    """The node's edges where arguments nest: one for each leaf of each argument."""
    node._arguments = [rebuild(a, iter(lambda: None, 0)) for a in inputs]
    return [_edge_of(leaf, recording) for a in inputs for leaf in leaves(a)]


def _edge_of(a: Any, recording: bool) -> Any:
    """The edge to an argument, or what stands in its place."""
    if not isinstance(a, Tensor):
        return NOT_A_TENSOR
    if not a._requires_grad:
        return None if a._data.dtype.kind in "fcV" else NO_GRADIENT
    return (a._edge or a._leaf or leaf_edge(a)) if recording else True


class _OnceNode(Node):
    """Stands behind the result of a backward that cannot be differentiated again, and says so when it is reached."""

    __slots__ = ("_name",)

    def __init__(self, ctx: Node) -> None:
        self._order, self._hooks, self._edges, self._name = next_order(), None, ctx._edges, ctx.name()

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable: the backward of "
            f"{self._name} has no derivative.\n"
            "  What to do: write that backward in tensor operations and remove the mark."
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward that calls code which is not recorded (NumPy, C): differentiating it again is an error, not a
    silent zero.

    >>> import numpy as np, pullback
    >>> class Sine(pullback.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.x = x.detach().numpy()
    ...         return pullback.from_numpy(np.sin(ctx.x))
    ...     @staticmethod
    ...     @pullback.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         return pullback.from_numpy(g.numpy() * np.cos(ctx.x))
    """

    if isinstance(fn, staticmethod):  # the decorators in the other order mean the same
        return staticmethod(once_differentiable(fn.__func__))

    def once(ctx: Any, *grads: Any) -> Any:
        recorded = thread.modes.grad_enabled
        thread.modes.grad_enabled = False
        try:
            if recorded:
                grads = rebuild(grads, iter([g.detach() if isinstance(g, Tensor) else g for g in leaves(grads)]))
            found = fn(ctx, *grads)
        finally:
            thread.modes.grad_enabled = recorded
        if not recorded:
            return found

        def guarded(t: Any) -> Any:
            if not isinstance(t, Tensor):
                return t
            t = t.detach()
            t._edge = (_OnceNode(ctx), 0, t._data.shape, t._data.dtype)
            t._requires_grad = True
            return t

        return (
            rebuild(found, iter([guarded(t) for t in leaves(found)]))
            if isinstance(found, CONTAINERS)
            else guarded(found)
        )

    @functools.wraps(fn)
    def backward(ctx: Any, *grads: Any) -> Any:
        level = _level_of(grads) if LEVELS.n else None
        return once(ctx, *grads) if level is None else level.each(once, ctx, grads)

    return backward


FunctionCtx = FunctionNode
BackwardCFunction = FunctionNode


class InplaceFunction(Function, abstract=True):
    """A `Function` under a name of old, when the classes for writing in place and for nested arguments were others."""


class NestedIOFunction(Function, abstract=True):
    """A `Function` under a name of old; each of them takes and returns nested dicts, lists and tuples of tensors."""

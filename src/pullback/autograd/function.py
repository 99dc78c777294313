"""Function: the plug-in interface for adding user-defined nodes to the graph.

A subclass defines the computation (`forward`) and its gradient (`backward`), both static methods. Each call
of `apply` makes one `FunctionNode`: it is the ``ctx`` that both methods get, and it is the output's ``grad_fn``. It
holds the state of one call.

`apply` is also where values that nest come in and go out. `_enter` flattens the arguments. `_leave` flattens the
results and nests them again once they are outputs of the node. In between there are only leaves, and a `Door` to the
user's methods.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, TypeVar, overload

from numpy import ndarray

from ..tensor.memory import ONE_LOCAL, WRITES
from ..tensor.modes import LEVELS, lowered, thread, within
from ..tensor.nested import CONTAINERS, leaves
from ..tensor.tensor import Edge, Lifted, Tensor
from .context import ClearingNode, FunctionNode
from .contract import MISSING, Contract, adopt_vjp, box_gradients, check, methods_of, missing
from .node import Node, begin, leaf_edge
from .outputs import attach, is_among, keep, outside
from .structure import Door, Nesting, changed, holds_tensors

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:  # `apply` takes and returns what forward does; a checker reads that off these
    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)

    class _Direct(Protocol[P, R_co]):
        @staticmethod
        def forward(ctx: Any, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    class _Separate(Protocol[P, R_co]):
        @staticmethod
        def forward(*args: P.args, **kwargs: P.kwargs) -> R_co: ...
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> Any: ...


class Function:
    """A user-defined differentiable operation. Subclass it, write two static methods, and call it through `apply`.

    ``forward(ctx, *args)`` computes; it may save tensors with ``ctx.save_for_backward`` and set any attribute on
    ``ctx``. ``backward(ctx, *grad_outputs)`` gets the gradient of the loss with respect to each output and returns a
    gradient (or None) for each argument of forward: the vector-Jacobian product ``grad_output^T J``. Alternatively
    ``forward(*args)`` computes only and ``setup_context(ctx, inputs, output)`` saves.

    Arguments may be tensors, other objects, or nested dicts, lists and tuples of tensors; gradients nest likewise.

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
    """Whether `vmap` batches forward, backward and jvp by running them; they must use operations on tensors."""

    clear_saved_tensors_on_access: ClassVar[bool] = False
    """Whether ``ctx.saved_tensors`` can be read only once, which releases it: for less memory in backward."""

    boxed_grads_call: ClassVar[bool] = False
    """Whether backward gets the gradients in one list, ``backward(ctx, grads)``, to take them out one by one."""

    if TYPE_CHECKING:  # a subclass writes these with arguments of its own

        @staticmethod
        def forward(*args: Any, **kwargs: Any) -> Any: ...
        @staticmethod
        def backward(*args: Any, **kwargs: Any) -> Any: ...
        @staticmethod
        def jvp(*args: Any, **kwargs: Any) -> Any: ...
        @staticmethod
        def vmap(*args: Any, **kwargs: Any) -> Any: ...

    else:

        @staticmethod
        def backward(ctx, *grad_outputs):
            """The gradient of each argument of forward, from that of each output; a subclass defines it."""
            name = getattr(ctx, "_forward_cls", Function).__name__
            raise NotImplementedError(
                f"{name} has no backward, so it cannot be differentiated: you must implement either the backward or "
                "the vjp method.\n  What to do: add\n    @staticmethod\n    def backward(ctx, grad_output):"
            )

    vjp = backward

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "vjp" in cls.__dict__:
            adopt_vjp(cls)
        if cls.boxed_grads_call:
            box_gradients(cls)
        if not (abstract or _comes_later(cls)):
            check(cls)
            cls._contract = Contract(cls)
            base = ClearingNode if cls.clear_saved_tensors_on_access else FunctionNode
            cls._backward_cls = cls._node_class = type(
                f"{cls.__name__}Backward", (base,), {"_forward_cls": cls, "__module__": cls.__module__}
            )

    def __new__(cls, *args: Any, **kwargs: Any) -> Function:
        """A Function has no instances; calling the class is refused, with a hint to use `apply`."""
        if args or kwargs:
            raise _use_apply(cls)
        return super().__new__(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise _use_apply(type(self))

    @overload
    @classmethod
    def apply(cls: type[_Separate[P, R_co]], *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    @classmethod
    def apply(cls: type[_Direct[P, R_co]], *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @classmethod
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Call forward, and make its tensors the outputs of a new node if any argument requires grad."""
        try:
            contract = cls._contract
        except AttributeError:
            raise TypeError(f"{cls.__name__} is abstract; apply belongs to a subclass with a forward") from None
        inputs = args
        if kwargs or contract.separate:
            args, kwargs = contract.bind(args, kwargs)
            inputs = (*args, *kwargs.values())
        for a in inputs:
            if type(a) is not Tensor or a._requires_grad:
                node, flat, wanted = _enter(cls._node_class(), inputs)
                break
        else:  # no argument can require a gradient
            node, flat, wanted = begin(cls._node_class(), (None,) * len(inputs)), inputs, False
            node._constants = node._others = 0
        modes = thread.modes
        recording = modes.grad_enabled
        try:
            try:
                modes.grad_enabled = False
                if LEVELS.n:
                    out, wanted = _under_levels(cls, node, inputs, flat, args, kwargs, recording)
                elif kwargs or contract.separate:
                    out = _forward(cls, node, inputs, args, kwargs)
                else:
                    out = cls.forward(node, *args)
            finally:
                modes.grad_enabled = recording
        except BaseException as error:
            modes.grad_enabled = recording  # an interrupt may have come as it was put back
            if isinstance(error, TypeError):
                contract.bind(args, kwargs, error)  # where forward cannot take them, the error says what to do
            raise
        recorded = recording and wanted
        if type(out) is not Tensor and (type(out) is not Lifted or node._door is not None):
            out = _leave(node, out, flat, recorded)
        else:
            fresh = getrefcount(out) <= ONE_LOCAL  # neither an argument nor saved
            if not recorded:
                if not fresh or out._view is not None:
                    (out,) = outside(node, (out,), flat)
            elif (
                out._requires_grad
                or node._marked
                or (data := out._data).dtype.kind not in "fcV"
                or (type(data) is not ndarray and type(out) is Tensor)  # of a device, which is noted
                or 1 not in contract.counts
                or (not fresh and is_among(out, flat))
            ):
                (out,) = attach(node, (out,), flat, 1)
            else:
                out._edge, out._requires_grad = (node, 0, data.shape, data.dtype), True
                if node._saved and (WRITES.n or not fresh):
                    keep(node, (out,), (out,))
        if recorded and modes.watch is not None:
            modes.watch(node)
        return out


def _enter(node: FunctionNode, inputs: Sequence[Any]) -> tuple[FunctionNode, Sequence[Any], bool]:
    """Start the node of a call with these arguments.

    Returns the node, which has an edge or None for each leaf; the leaves; and whether there is an edge at all.
    """
    edges: list[Edge | None] = []
    wanted, constants, others = False, 0, 0
    for a in inputs:
        if type(a) is Tensor or isinstance(a, Tensor):
            if a._requires_grad:
                wanted = True
                edges.append(a._edge or a._leaf or leaf_edge(a))  # `edge_of`, without a call for each argument
                continue
            if a._data.dtype.kind not in "fcV":
                constants |= 1 << len(edges)
        elif isinstance(a, CONTAINERS) and holds_tensors(a):
            node._door = Door(arguments=Nesting(inputs))
            return _enter(node, list(leaves(inputs)))
        else:
            others |= 1 << len(edges)
        edges.append(None)
    node._constants, node._others = constants, others
    return begin(node, tuple(edges)), inputs, wanted


def _leave(node: FunctionNode, out: Any, inputs: Sequence[Any], recorded: bool) -> Any:
    """Forward's results as `apply` returns them: outputs of the node if the call is recorded."""
    door = node._door
    if door is not None and door.results is not None:  # a level has opened them
        return door.close(_outputs(node, out, inputs, recorded, len(door.results)))
    given: Sequence[Any] = out if type(out) is tuple else (out,)
    for part in given:
        if type(part) is not Tensor and holds_tensors(part):
            door = node._door = door or Door()
            return door.close(_outputs(node, door.open(out), inputs, recorded, len(given)))
    found = _outputs(node, given, inputs, recorded, len(given))
    if found is given:
        return out
    return tuple(found) if type(out) is tuple else found[0]


def _outputs(node: FunctionNode, flat: Sequence[Any], inputs: Sequence[Any], recorded: bool, count: int) -> Any:
    """The leaves of forward's results, with their places in the graph. count: the gradients that backward gets."""
    return attach(node, flat, inputs, count) if recorded else outside(node, flat, inputs)


def _forward(
    cls: Any, node: FunctionNode, inputs: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a forward that takes keywords, or one whose context is filled in by `setup_context`."""
    if not cls._contract.separate:
        return cls.forward(node, *args, **kwargs)
    out = cls.forward(*args, **kwargs)
    cls.setup_context(node, inputs, out)
    return out


def _under_levels(
    cls: type[Function],
    node: FunctionNode,
    inputs: tuple[Any, ...],
    flat: Sequence[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    recording: bool,
) -> tuple[Any, bool]:
    """The results of a call within transforms, and whether an argument requires grad there."""
    level = _level_of(flat)
    if level is None:  # forward sees plain tensors, and so do transforms inside of it
        return lowered(0, _forward, cls, node, inputs, args, kwargs), any(node._edges)
    nested = Nesting(inputs if flat is not inputs else [None] * len(inputs))  # containers without a tensor are leaves
    node._edges, node._door = _edges_at(level, node._edges, flat), Door(nested, tuple(kwargs))
    return level.custom(node, flat, recording), any(node._edges)


def _level_of(values: Sequence[Any]) -> Any:
    """The highest level of a transform that one of the values belongs to, or None."""
    found: Any = None
    for value in values:
        if isinstance(value, Lifted):
            level = value._data.level
            if not level.open:
                raise value._data.escaped()
            if found is None or level.number > found.number:
                found = level
    return found


def _edges_at(level: Any, edges: Sequence[Edge | None], inputs: Sequence[Any]) -> Sequence[Edge | None]:
    """The edges to arguments of a level; arguments tracked on a lower level are recorded there."""
    if level.shares_graph:
        return edges
    of_level = [isinstance(t, Lifted) and t._data.level is level for t in inputs]
    return [edge if kept else None for edge, kept in zip(edges, of_level, strict=True)]


def _comes_later(cls: type) -> bool:
    """Whether a class gets its attributes later, with what is made of them here: cloudpickle makes it empty first."""
    if "forward" in methods_of(cls):
        return False
    frame: Any = sys._getframe(1)
    while frame.f_code.co_name == "__init_subclass__":
        frame = frame.f_back
    return frame.f_code is types.new_class.__code__


def _use_apply(cls: type) -> TypeError:
    return TypeError(
        f"{cls.__name__} is not called itself: its methods are static, and each call makes a node of the graph.\n"
        f"  What to do: write {cls.__name__}.apply(...)."
    )


class _OnceNode(Node):
    """The node behind a backward that cannot be differentiated again; it raises when a gradient reaches it."""

    __slots__ = ("_name",)

    def __init__(self, ctx: Node) -> None:
        begin(self, ctx._edges)
        self._name = ctx.name()

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable: the backward of "
            f"{self._name} has no derivative.\n"
            "  What to do: write that backward in tensor operations and remove the mark."
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward that calls unrecorded code (NumPy, C): differentiating it again raises an error
    instead of giving a silent zero.

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

    if isinstance(fn, staticmethod):  # the other order of the two decorators means the same
        return staticmethod(once_differentiable(fn.__func__))

    def once(ctx: Any, *grads: Any) -> Any:
        recorded = thread.modes.grad_enabled
        found = within(
            thread.modes, {"grad_enabled": False}, fn, ctx, *(changed(Tensor.detach, grads) if recorded else grads)
        )
        if not recorded:
            return found

        def guarded(t: Tensor) -> Tensor:
            t = t.detach()
            t._edge = (_OnceNode(ctx), 0, t._data.shape, t._data.dtype)
            t._requires_grad = True
            return t

        return changed(guarded, found)

    @functools.wraps(fn)
    def backward(ctx: Any, *grads: Any) -> Any:
        level = _level_of(list(leaves(grads))) if LEVELS.n else None
        return once(ctx, *grads) if level is None else level.each(once, ctx, grads)

    return backward


for _name, _said in MISSING.items():
    setattr(Function, _name, staticmethod(missing(_name, _said)))

FunctionCtx = FunctionNode
BackwardCFunction = FunctionNode


class InplaceFunction(Function, abstract=True):
    """A `Function` under its deprecated name: torch once had this class for writing in place."""


class NestedIOFunction(Function, abstract=True):
    """A `Function` under its deprecated name: every Function takes nested dicts, lists and tuples of tensors."""

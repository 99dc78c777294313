"""Makes forward's results the outputs of its node: gives them their places in the graph, and keeps saved tensors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from .. import errors
from ..tensor.arrays import zeros_beside
from ..tensor.memory import INFERENCE, ONE_ELEMENT, WRITES, View
from ..tensor.modes import thread
from ..tensor.protocol import is_foreign
from ..tensor.tensor import Tensor, wrap
from ..tensor.views import Lost
from .context import FunctionNode
from .contract import place
from .node import carry_retained


def attach(node: FunctionNode, given: Sequence[Any], inputs: Sequence[Any], gradients: int) -> Sequence[Any]:
    """Make the tensors among forward's results the outputs of `node`, which keeps the tensors that forward saved.

    inputs: the arguments of the call. gradients: the number that backward will get.
    """
    types: list[Any] = []
    for o in given:  # no comprehension: it would be one more call
        types.append((o._data.shape, o._data.dtype) if isinstance(o, Tensor) else None)
    if not any(types):
        _refuse_arrays(node, given)
        return given
    if types[0] is not None and type(data := given[0]._data) is not np.ndarray and is_foreign(data):
        node._like = zeros_beside(data, (0,))
    contract = node._forward_cls._contract
    if gradients not in contract.counts:
        contract.accept(gradients)
    if len(given) > 1:
        node._outputs, node._output_types = len(types), types
    if node._dirty:
        _check_dirty(node, given, inputs)
    # an output without grad can only be an input without grad
    passive: Sequence[Any] = ()
    if None in node._edges:
        passive = [a for a, e in zip(inputs, node._edges, strict=True) if e is None and isinstance(a, Tensor)]
    attached: list[Any] = []
    simple = not (node._marked or passive)
    for nr, o in enumerate(given):
        if isinstance(o, Tensor):
            if simple and o._data.dtype.kind in "fcV" and not o._requires_grad:
                o._edge, o._requires_grad = (node, nr, o._data.shape, o._data.dtype), True
            else:
                o = _output_of(node, o, nr, passive)
        attached.append(o)
    if contract.separate:
        check_saved(node, given, inputs)
    if node._saved:
        keep(node, given, attached)
    if node._marked:
        node._dirty = node._non_differentiable = ()
    return attached


def _refuse_arrays(node: FunctionNode, given: Sequence[Any]) -> None:
    """Refuse an array among outputs without a tensor: it was meant to have a gradient."""
    for o in given:
        if isinstance(o, (np.ndarray, np.generic)):
            cls = node._forward_cls
            raise TypeError(
                errors.message(
                    f"{cls.__name__}.forward ({place(cls.forward)})",
                    expected="to return a Tensor",
                    found=errors.describe(o),
                    do="return pullback.from_numpy(array)",
                )
            )
        errors.refuse_foreign(f"{node._forward_cls.__name__}.forward", (o,))


def is_among(t: Any, others: Sequence[Any]) -> bool:
    """Whether `t` itself, not merely an equal one, is one of `others`."""
    for o in others:  # noqa: SIM110 - a generator costs on the hot path
        if t is o:
            return True
    return False


def check_saved(node: FunctionNode, given: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Refuse to save, in `setup_context`, an input that forward returned itself: perhaps the output was meant."""
    for t in (*node._saved, *getattr(node, "saved_for_forward", ())):
        if t is not None and is_among(t, given) and is_among(t, inputs) and not is_among(t, node._dirty):
            raise RuntimeError(
                "An input that has been returned as-is as output is being saved for backward. This is not supported if "
                "you override setup_context(), because the output is then another tensor.\n"
                "  What to do: return a view of the input from forward, e.g. x.view_as(x), and save that or x."
            )


def _check_dirty(node: FunctionNode, given: Sequence[Any], inputs: Sequence[Any]) -> None:
    for t in node._dirty:
        if not is_among(t, given):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                f"that are modified inplace must all be outputs of the Function ({node._forward_cls.__name__})."
            )
        if t._requires_grad and t._edge is None:
            raise _written_leaf(node)
        if t._view is not None and sum(isinstance(o, Tensor) for o in given) > 1:
            raise RuntimeError(
                f"If your Function modifies inplace an input that is a view of another Tensor, it cannot return more "
                f"than one tensor, as {node._forward_cls.__name__}.forward does.\n"
                "  What to do: give it a clone() of that input."
            )
        if not is_among(t, inputs):
            if t._view is not None:
                raise RuntimeError(
                    f"{node._forward_cls.__name__}.forward: ctx.mark_dirty() received a tensor that was not an input. "
                    "It is a view of another, of which nobody could know that it was written to.\n"
                    "  What to do: mark only inputs that were written to in place."
                )
            warnings.warn(
                f"{node._forward_cls.__name__}.forward: ctx.mark_dirty() received a tensor that was not an input. "
                "Mark only inputs that were written to in place.",
                stacklevel=errors.callers_level(),
            )


def _written_leaf(node: FunctionNode) -> RuntimeError:
    return RuntimeError(
        "a leaf Variable that requires grad has been used in an in-place operation.\n"
        f"  What to do: give {node._forward_cls.__name__}.apply a clone() of it, or write within pullback.no_grad()."
    )


def _output_of(node: FunctionNode, t: Tensor, nr: int, passive: Sequence[Any]) -> Tensor:
    """`t` as output `nr` of `node`. If `t` has a place in the graph already, an alias of it becomes the output."""
    data = t._data
    differentiable = data.dtype.kind in "fcV"
    if node._marked:
        differentiable = differentiable and not is_among(t, node._non_differentiable)
        if differentiable and is_among(t, node._dirty):
            return _written(node, t, nr)
    if t._edge is not None and t._edge[0] is node:  # it was returned before: the last of its places counts
        t._edge = (node, nr, data.shape, data.dtype)
        return t
    if t._requires_grad or (passive and is_among(t, passive) and (differentiable or not is_among(t, node._dirty))):
        t = _alias(t, "function")
    if differentiable:
        t._edge = (node, nr, data.shape, data.dtype)
        t._requires_grad = True
    return t


def _alias(t: Tensor, made: str) -> Tensor:
    """A view of all of `t`, outside the graph. made: as in `View`. An inference tensor has an alias that is no view."""
    alias = t.detach()
    if t._version_of is not INFERENCE:
        alias._view = View(t, made=made)
        t._share_version().add_view(alias)
    return alias


def _written(node: FunctionNode, t: Tensor, nr: int) -> Tensor:
    """`t`, an input that forward wrote to, as output `nr` of `node`. A gradient it has kept is of the old value."""
    t._grad = None
    edge = (node, nr, t._data.shape, t._data.dtype)
    memory = t._version_of
    if t._view is not None or (memory is not None and any(view() is not None for view in memory.views)):
        new = wrap(t._data)
        new._edge, new._requires_grad = edge, True
        t.copy_(new)  # a copy onto itself: it gives every view of this memory its new place in the graph
        t._share_version().put_back(t._version - 1)  # forward's write was counted
        return t
    if t._edge is not None:
        carry_retained(t, t._edge, edge)
    t._edge, t._requires_grad = edge, True
    return t


def keep(node: FunctionNode, given: Sequence[Any], attached: Sequence[Any]) -> None:
    """Keep the tensors that forward saved (outputs without their history), and the versions of all."""
    saved = list(node._saved)
    outputs: dict[int, int] = {}
    for nr, (o, a) in enumerate(zip(given, attached, strict=True)):
        if isinstance(o, Tensor):
            for i, t in enumerate(saved):
                # a view that was written to leads to this node through its base
                if t is o and a._edge is not None and (a._edge[0] is node or is_among(t, node._dirty)):
                    saved[i] = alias = wrap(t._data)
                    alias._version_of = t._share_version()
                    outputs[i] = a._edge[1] if a._edge[0] is node else nr
    node._saved = tuple(saved)
    if outputs:
        node._saved_outputs = outputs
    if WRITES.n and any(t is not None and t._version_of is not None and t._version_of.n for t in saved):
        node._versions = tuple(0 if t is None else t._version for t in saved)


def outside(node: FunctionNode, given: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    """The results of a call that is not recorded: an input that is returned comes out as a detached alias."""
    if node._forward_cls._contract.separate:
        check_saved(node, [o for o in given if isinstance(o, Tensor) and not o._requires_grad], inputs)
    if thread.modes.grad_enabled and any(isinstance(t, Lost) for t in node._dirty):
        raise _written_leaf(node)  # a view, made without recording, of what requires grad
    returned = False
    for o in given:
        # forward returned it, and another reference to it may exist
        if getrefcount(o) > ONE_ELEMENT and is_among(o, inputs):
            returned = True
        elif type(o) is Tensor and o._view is not None and thread.modes.grad_enabled:
            o._view.made = "function"
    return [_alias_outside(node, o, inputs) for o in given] if returned else given


def _alias_outside(node: FunctionNode, o: Any, inputs: Sequence[Any]) -> Any:
    if not isinstance(o, Tensor) or not is_among(o, inputs):
        return o
    if not o._requires_grad and is_among(o, node._dirty):
        return o
    made = "function" if thread.modes.grad_enabled else "no_grad"
    return o.detach() if o._requires_grad else _alias(o, made)

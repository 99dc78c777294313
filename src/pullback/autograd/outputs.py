"""How forward's outputs become those of its node: their places in the graph, and what is kept of what was saved."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from .. import errors
from ..tensor.memory import INFERENCE, WRITES, View
from ..tensor.modes import thread
from ..tensor.tensor import Tensor, wrap
from .context import FunctionNode
from .contract import place, wrong_parameters
from .node import carry_retained
from .structure import CONTAINERS, leaves, rebuild


def attach(node: FunctionNode, out: Any, inputs: tuple[Any, ...]) -> Any:
    """Make forward's tensors the outputs of `node`, and keep what it saved."""
    given: Sequence[Any] = out if type(out) is tuple else (out,)
    types: list[Any] = []
    for o in given:
        if isinstance(o, Tensor):
            types.append((o._data.shape, o._data.dtype))
        elif isinstance(o, CONTAINERS) and holds_tensors(o):
            return _attach_nested(node, out, given, inputs)
        else:
            types.append(None)
    if not any(types):
        _refuse_arrays(node, given)
        return out
    _accept_outputs(node, len(given))
    if len(given) > 1:
        node._outputs = len(types)
        node._output_types = types
    attached = _attach_all(node, given, inputs)
    return tuple(attached) if type(out) is tuple else attached[0]


def _refuse_arrays(node: FunctionNode, given: Sequence[Any]) -> None:
    """Outputs among which there is no tensor have no gradient; an array among them was meant to have one."""
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


def _attach_nested(node: FunctionNode, out: Any, parts: Sequence[Any], inputs: tuple[Any, ...]) -> Any:
    """`attach` where outputs nest: the node's outputs are their leaves."""
    held = [
        part if holds_tensors(part) else None for part in parts
    ]  # the others stay as they are, for a gradient of None
    given = list(leaves(held))
    types = [(o._data.shape, o._data.dtype) if isinstance(o, Tensor) else None for o in given]
    node._results = rebuild(held, iter(lambda: None, 0))
    _accept_outputs(node, len(parts))
    node._outputs = len(types)
    node._output_types = types
    attached = rebuild(held, iter(_attach_all(node, given, inputs)))
    rebuilt = tuple(part if h is None else a for part, h, a in zip(parts, held, attached, strict=True))
    return rebuilt if type(out) is tuple else rebuilt[0]


def holds_tensors(tree: Any) -> bool:
    return any(isinstance(leaf, Tensor) for leaf in leaves(tree))


def _accept_outputs(node: FunctionNode, gradients: int) -> None:
    """Refuse more or fewer outputs than backward can take gradients for."""
    contract = node._forward_cls._contract
    if gradients not in contract.counts:
        least, most = contract.backward_takes
        if gradients < least or (most is not None and gradients > most):
            raise wrong_parameters(node._forward_cls, node._forward_cls.backward, gradients)
        contract.counts.add(gradients)


def _attach_all(node: FunctionNode, given: Sequence[Any], inputs: tuple[Any, ...]) -> list[Any]:
    """Each tensor of `given` as an output of `node`; what is not a tensor stays as it is."""
    flat = inputs if node._arguments is None else tuple(leaves(inputs))
    if node._dirty:
        _check_dirty(node, given, flat)
    # an output that requires no grad can only be one of the inputs that do not either
    passive: Sequence[Any] = ()
    if None in node._edges:
        passive = [a for a, edge in zip(flat, node._edges, strict=True) if edge is None]
    attached: list[Any] = []
    simple = not (node._marked or passive)
    for nr, o in enumerate(given):
        if isinstance(o, Tensor):
            if simple and o._data.dtype.kind in "fcV" and not o._requires_grad:
                o._edge, o._requires_grad = (node, nr, o._data.shape, o._data.dtype), True
            else:
                o = _output_of(node, o, nr, passive)
        attached.append(o)
    if node._saved:
        if node._forward_cls._contract.separate:
            _check_saved(node, given, flat)
        keep(node, given, attached)
    if node._marked:
        node._dirty = node._non_differentiable = ()
    return attached


def is_among(t: Any, others: Sequence[Any]) -> bool:
    """Whether `t` itself, not merely an equal one, is one of `others`."""
    for o in others:  # noqa: SIM110 - a generator costs on the hot path
        if t is o:
            return True
    return False


def _check_saved(node: FunctionNode, given: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Refuse to save, in `setup_context`, an input that forward returned as it is: it may be meant as the output."""
    for t in node._saved:
        if t is not None and is_among(t, given) and is_among(t, inputs) and not is_among(t, node._dirty):
            raise RuntimeError(
                "An input that has been returned as-is as output is being saved for backward. This is not supported "
                f"if you override setup_context, because {node._forward_cls.__name__}'s output is then another tensor."
                "\n  What to do: return a view of the input from forward, e.g. x.view_as(x), and save that or x."
            )


def _check_dirty(node: FunctionNode, given: Sequence[Any], inputs: Sequence[Any]) -> None:
    for t in node._dirty:
        if not is_among(t, given):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                f"that are modified inplace must all be outputs of the Function ({node._forward_cls.__name__})."
            )
        if t._requires_grad and t._edge is None:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation.\n"
                f"  What to do: give {node._forward_cls.__name__}.apply a clone() of it, or write within "
                "pullback.no_grad()."
            )
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


def _output_of(node: FunctionNode, t: Tensor, nr: int, passive: Sequence[Any]) -> Tensor:
    """`t` as output `nr` of `node`; if it has a place in the graph already, an alias takes this one."""
    data = t._data
    differentiable = data.dtype.kind in "fcV"
    if node._marked:
        differentiable = differentiable and not is_among(t, node._non_differentiable)
        if differentiable and is_among(t, node._dirty):
            return _written(node, t, nr)
    if t._edge is not None and t._edge[0] is node:  # it was returned before: the last of its places counts
        t._edge = (node, nr, data.shape, data.dtype)
        return t
    if t._requires_grad or (passive and is_among(t, passive)):
        t = _alias(t, "function")
    if differentiable:
        t._edge = (node, nr, data.shape, data.dtype)
        t._requires_grad = True
    return t


def _alias(t: Tensor, made: str) -> Tensor:
    """A view of all of `t`, outside the graph. made: as in `View`."""
    alias = t.detach()
    alias._view = View(t, made=made)
    t._share_version().add_view(alias)
    return alias


def _written(node: FunctionNode, t: Tensor, nr: int) -> Tensor:
    """`t`, an input that forward wrote to, as output `nr` of `node`."""
    edge = (node, nr, t._data.shape, t._data.dtype)
    memory = t._version_of
    if t._view is not None or (memory is not None and any(view() is not None for view in memory.views)):
        new = wrap(t._data)
        new._edge, new._requires_grad = edge, True
        t.copy_(new)  # of itself: which gives all that look at this memory their new places in the graph
        t._share_version().n -= 1  # forward's write was counted
        return t
    if t._edge is not None:
        carry_retained(t, t._edge, edge)
    t._edge, t._requires_grad = edge, True
    return t


def keep(node: FunctionNode, given: Sequence[Any], attached: Sequence[Any]) -> None:
    """Turn what forward saved into what the node keeps: outputs without their history, and the versions of all."""
    saved = list(node._saved)
    outputs: dict[int, int] = {}
    for nr, (o, a) in enumerate(zip(given, attached, strict=True)):
        if isinstance(o, Tensor):
            for i, t in enumerate(saved):
                # the place in the graph of a view that was written to leads to this node by that of its base
                if t is o and a._edge is not None and (a._edge[0] is node or is_among(t, node._dirty)):
                    saved[i] = alias = wrap(t._data)
                    alias._version_of = t._share_version()
                    outputs[i] = a._edge[1] if a._edge[0] is node else nr
    node._saved = tuple(saved)
    if outputs:
        node._saved_outputs = outputs
    if WRITES.n and any(t is not None and t._version_of is not None and t._version_of.n for t in saved):
        node._versions = tuple(0 if t is None else t._version for t in saved)


def _references_of_an_element() -> int:
    (value,) = elements = (object(),)
    return getrefcount(value) if elements else 0


# What getrefcount says of an object that a tuple and one local variable refer to, in this version of Python.
_NEW = _references_of_an_element()


def outside(node: FunctionNode, out: Any, inputs: Sequence[Any]) -> Any:
    """The result of a call that is not recorded: an input that is returned comes out as a detached alias."""
    for o in out if type(out) is tuple else (out,):
        if type(o) is not Tensor and isinstance(o, CONTAINERS) and holds_tensors(o):
            break
        if getrefcount(o) > _NEW:  # somebody may hold it but who has just returned it
            for a in inputs:
                if a is o:
                    break
            else:
                a = None
            if a is not None:
                break
        if type(o) is Tensor and o._view is not None and thread.modes.grad_enabled:
            o._view.made = "function"
    else:  # most often, no input is returned
        return out
    return rebuild(out, iter([_alias_outside(node, o, inputs) for o in leaves(out)]))


def _alias_outside(node: FunctionNode, o: Any, inputs: Sequence[Any]) -> Any:
    if not isinstance(o, Tensor) or not is_among(o, inputs):
        return o
    if not o._requires_grad and is_among(o, node._dirty):
        return o
    made = "function" if thread.modes.grad_enabled else "no_grad"
    return o.detach() if o._requires_grad or o._version_of is INFERENCE else _alias(o, made)

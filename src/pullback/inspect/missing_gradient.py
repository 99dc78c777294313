"""Why a tensor has no gradient: `explain` names the cause, the place and the way out.

It looks for these causes in order: the tensor does not require grad (and why), it is not a leaf, nothing recorded has
used it, the loss does not lead to it, no backward pass has run, or one has run and something on the way kept the
gradient. Every answer is one function below that returns an `Explanation`. Most facts are always known; the lines of
the user's code are known if `pullback.autograd.record_origins` was on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.context import FunctionNode
from ..autograd.contract import place as place_of_function
from ..autograd.node import FREED, AccumulateGrad, Node, reachable
from ..diagnose.origins import GRADIENTS, LEFT, ORIGINS, PASSES, TAKEN, Gradient, Loss
from ..diagnose.places import Place, place_of_node, variables
from ..errors import describe, message
from ..nn import Module
from ..tensor.modes import thread
from ..tensor.tensor import Tensor
from .disconnected import LOST, Explanation, assigned_anew, called, cause_of, made_at, placed, requires_none, unrecorded

ASK = "say explain(tensor, loss=loss)"
"""The words of an answer that ask the user to call again with the loss."""


def explain(t: Any, loss: Tensor | None = None) -> Explanation:
    """Say why a tensor has no gradient: why `grad` is None, or `grad_fn`, or why it does not require grad.

    t: the tensor, of any shape and dtype (for an array or a number, the answer is why it has none), or a Module, whose
    parameters without a gradient are listed. loss: the tensor that `backward` was, or is to be, called on; with it, the
    graph between the two is examined. Nothing is computed and no gradient changes. TypeError for anything else.

    If `pullback.autograd.record_origins` was on while the program ran, the answer names the lines of the cause.

    >>> import pullback
    >>> w = pullback.ones(2, requires_grad=True)
    >>> h = w * 2
    >>> h.sum().backward()
    >>> print(pullback.explain(h))
    grad is None: this tensor is not a leaf, it was made by MulBackward0, and backward() fills the .grad of leaves only.
      It was computed from the leaf `w`, whose .grad is there.
      What to do: call retain_grad() on it before backward(), or ask for it: pullback.autograd.grad(loss, tensor).
    """
    if isinstance(t, (np.ndarray, np.generic, bool, int, float, complex)):
        return _not_a_tensor(t)
    for value, name in ((t, "argument t"), *(((loss, "loss"),) if loss is not None else ())):
        if not isinstance(value, Tensor) and not (value is t and isinstance(value, Module)):
            do = "pass the tensor itself, x, and not its gradient, x.grad" if value is None else ""
            raise TypeError(message(f"explain(): {name}", expected="a Tensor", found=describe(value), do=do))
    if isinstance(t, Module):
        return _module(t, loss)
    if t._grad is not None:
        return _present(t)
    if not t.requires_grad:
        return requires_none(t)
    if not t.is_leaf and not t.retains_grad:
        return _inner(t)
    found = _recorded(t, GRADIENTS.get(t))
    if found is not None:
        return found
    return _seen_from(t, loss) if loss is not None else _leaf(t)


# Values that are not tensors, and tensors that have a gradient --------------------------------------------------------


def _not_a_tensor(value: Any) -> Explanation:
    what = "a NumPy array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    taken = [loss for loss in TAKEN if isinstance(value, np.ndarray) == (loss.kind in ("numpy", "__array__"))]
    return Explanation(
        "numpy",
        f"There is no gradient: this is {what}, which belongs to no graph. NumPy and Python compute without one.",
        "compute with tensors; NumPy's functions take them and are recorded. numpy(), item() and float() lead out.",
        placed(*((f"{loss.kind}() of a {loss.of}, which requires grad", loss.place) for loss in reversed(taken))),
        () if taken else unrecorded(value),
    )


def _module(module: Module, loss: Tensor | None) -> Explanation:
    """The explanation for all parameters of a module."""
    answers = {name: explain(p, loss) for name, p in module.named_parameters()}
    without = {name: found for name, found in answers.items() if found.cause != "present"}
    if not without:
        return Explanation("present", f"There is a gradient of each of its {len(answers)} parameters.")
    lines = [f"{name}: {found.why.rstrip(':')}" for name, found in without.items()]
    more = [f"... and {len(lines) - _SHOWN} more."] if len(lines) > _SHOWN else []
    cures = dict.fromkeys(found.do for found in without.values())
    return Explanation(
        "module",
        f"{len(without)} of the {len(answers)} parameters have no gradient:",
        next(iter(cures)) if len(cures) == 1 else "ask about one of them alone, which says what to do about it.",
        notes=(*lines[:_SHOWN], *more, *unrecorded(next(module.parameters()))),
    )


_SHOWN = 20


def _present(t: Tensor) -> Explanation:
    assert t._grad is not None
    events = GRADIENTS.get(t)
    zero = not np.any(np.asarray(t._grad._data)) if isinstance(t._grad._data, np.ndarray) else False
    notes = ["All of it is 0: what was computed from this tensor has slope 0 here, or is not used."] if zero else []
    return Explanation(
        "present",
        f"There is a gradient, a {describe(t._grad)}.",
        places=placed(("It arrived with the backward pass at", events.arrived if events else None)),
        notes=tuple(notes),
    )


# Tensors that require grad --------------------------------------------------------------------------------------------


def _inner(t: Tensor) -> Explanation:
    """The explanation for a tensor that is not a leaf and does not retain its gradient."""
    assert t._edge is not None
    node = t._edge[0]
    leaves = _leaves(node)
    notes, do = [], "call retain_grad() on it before backward(), or ask for it: pullback.autograd.grad(loss, tensor)."
    if len(leaves) == 1:
        named = variables(lambda v: v is leaves[0])
        if named:
            state = "is there" if leaves[0]._grad is not None else "is None as well"
            notes.append(f"It was computed from the leaf `{named[0]}`, whose .grad {state}.")
        else:
            assigned = assigned_anew(t, place_of_node(node))
            if assigned is not None:
                return _anew(*assigned, node, leaves[0])
            anew = "" if _operation(node) == "to()" else "; or the variable was assigned anew, as in w = w - step"
            notes.append(
                "The leaf it was computed from has no name in your code: requires_grad was set on a temporary, which "
                f"{_operation(node)} then turned into this tensor{anew}."
            )
            in_place = " Change a parameter in place: with pullback.no_grad(): w -= step." if anew else ""
            do = f"set it on the result: x = pullback.tensor(...).to(...).requires_grad_().{in_place} Or {do}"
    return Explanation(
        "non-leaf",
        f"grad is None: this tensor is not a leaf, it was made by {node.name()}, and backward() fills the .grad of "
        "leaves only.",
        do,
        placed(("made", place_of_node(node))),
        tuple(notes),
    )


def _anew(name: str, place: Place, node: Node, leaf: Tensor) -> Explanation:
    """The explanation when a variable held a leaf and got a result computed from it: ``w = w - 0.1 * w.grad``."""
    got = "" if leaf._grad is None else " The leaf has its gradient, but no variable holds it any more."
    return Explanation(
        "reassigned",
        f"grad is None: `{name}` was assigned anew. It is not the leaf any more, but a new tensor, made from it by "
        f"{_operation(node)}, and backward() fills the .grad of leaves only.{got}",
        f"change the leaf in place: with pullback.no_grad(): {name} -= step. Or make the new tensor a leaf: {name} = "
        f"({name} - step).detach().requires_grad_().",
        placed(("assigned anew", place)),
    )


def _operation(node: Any) -> str:
    op = None if isinstance(node, FunctionNode) else getattr(node, "op", None)
    return node.name() if op is None else called("to" if op.name == "_to_copy" else op.name)


_MANY = 10_000
_NOTES = 20


def _leaves(node: Any) -> list[Tensor]:
    """The leaves of a graph; those of a large graph only in part."""
    found = []
    for i, other in enumerate(reachable([node])):
        if isinstance(other, AccumulateGrad):
            found.append(other.variable)
        if i > _MANY:
            break
    return found


def _recorded(t: Tensor, events: Gradient | None) -> Explanation | None:
    """The explanation by recorded events, for a tensor that could have a gradient."""
    if events is None:
        return None
    if events.cleared is not None:
        place, name = events.cleared
        return Explanation(
            "cleared",
            "grad is None, because it was cleared" + (f" by {name}()." if name and name != "grad" else "."),
            "read .grad before it is cleared (zero_grad sets it to None), or call zero_grad(set_to_none=False).",
            placed(("cleared", place), ("the gradient had arrived with the backward pass at", events.arrived)),
        )
    if events.none is not None:
        return _returned_none(*events.none)
    if events.returned is not None:
        return Explanation(
            "returned",
            "grad is None: pullback.autograd.grad() returns gradients, it does not put them into .grad.",
            "use what grad() returned, or call backward().",
            placed(("grad() was called", events.returned)),
        )
    return None


def _returned_none(name: str, argument: str, place: str) -> Explanation:
    return Explanation(
        "returned-none",
        f"grad is None, because {name}.backward returned None for {argument!r}.",
        f"return its gradient there ({place}), for the argument in its place: one for each argument of forward.",
    )


def _leaf(t: Tensor) -> Explanation:
    """The explanation for a leaf (or a tensor that retains its gradient) about which nothing was recorded."""
    if t._edge is None and t._leaf is None:
        notes = () if thread.modes.grad_enabled else ("Recording is off at this moment, where explain() is called.",)
        return Explanation(
            "unused",
            "grad is None: no recorded operation has used this tensor yet.",
            "compute the loss from it, outside of no_grad(); if it was assigned anew, compute the loss again.",
            (*made_at(ORIGINS.get(t)), *_left(LEFT.get(t) or ())),
            (*notes, "If it was assigned anew since (w = ...), the loss leads to the tensor that had its name before."),
        )
    if PASSES and not unrecorded(t) and not _passed(t):
        last = PASSES[-1]
        return Explanation(
            "not-reached",
            "grad is None: the backward pass did not reach this tensor, the loss was not computed from it.",
            f"{ASK} to be told what lies between them.",
            (*placed(("it was run", last.place)), *_left(LEFT.get(t) or ())),
        )
    return Explanation(
        "no-backward",
        "grad is None: an operation has used this tensor, but no gradient has arrived: backward() was not called, or "
        "on something that does not depend on it, or the gradient was cleared since (zero_grad).",
        f"call backward() on the loss; {ASK} to be told what lies between them.",
        notes=unrecorded(t),
    )


def _passed(t: Tensor) -> bool:
    events = GRADIENTS.get(t)
    return events is not None and events.passed


# As seen from a loss --------------------------------------------------------------------------------------------------


def _seen_from(t: Tensor, loss: Tensor) -> Explanation:
    """The explanation for a tensor that can have a gradient, given the loss that backward() is called on."""
    if not loss._requires_grad:
        inner, made = requires_none(loss), ORIGINS.get(loss)
        left = [one for one in LEFT.get(t) or () if made is not None and made.values and one.detail < made.order]
        if inner.cause == "never-set" and left:
            return Explanation(
                "numpy",
                "grad is None, because the loss is not connected to anything: it was made of values that went through "
                "NumPy or Python, as those of this tensor did before.",
                f"{LOST[left[-1].kind][2]}.",
                (*_left(left), *made_at(made)),
            )
        return Explanation(
            inner.cause,
            f"grad is None, because the loss is not connected to anything. Of the loss: {inner.why}",
            inner.do,
            inner.places,
            inner.notes,
        )
    root = loss._edge[0] if loss._edge is not None else loss._leaf and loss._leaf[0]
    nodes = list(reachable([root])) if root else []
    edge = t._edge or t._leaf
    end = edge[0] if edge is not None else None
    if loss is not t and not any(node is end for node in nodes):
        return _not_reached(t, nodes)
    leading = _leading_to(end, nodes)
    for node in nodes:
        for target, said in node.metadata.get("returned_none", {}).items():
            if target in leading:
                return _returned_none(*said)
    freed = next((node for node in nodes if _is_freed(node)), None)
    if freed is None:
        return Explanation(
            "no-backward",
            "grad is None: the loss leads to this tensor, but most likely backward() has not been called on the loss.",
            "call loss.backward(). (autograd.grad() returns gradients, and leaves .grad alone.)",
            notes=_may_return_none([n for n in nodes if n in leading]),
        )
    return _freed(t, nodes, end, freed)


def _is_freed(node: Any) -> bool:
    return getattr(node, "saved", None) is FREED or getattr(node, "_saved", None) is FREED


def _leading_to(target: Any, nodes: Sequence[Any]) -> set[Any]:
    """`target`, and the nodes of a graph from which a gradient goes to it."""
    consumers: dict[Any, list[Any]] = {}
    for node in nodes:
        for edge in node._edges:
            if edge:
                consumers.setdefault(edge[0], []).append(node)
    found, stack = {target}, [target]
    while stack:
        for node in consumers.get(stack.pop(), ()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


def _may_return_none(between: Sequence[Any]) -> tuple[str, ...]:
    """Notes on the Functions among the nodes between a loss and a tensor; only on the first `_NOTES`."""
    return tuple(
        f"- {n._forward_cls.__name__}.backward ({place_of_function(n._forward_cls.backward)}) lies between them, and "
        "may have returned None;"
        for n in [n for n in between if isinstance(n, FunctionNode)][:_NOTES]
    )


def _freed(t: Tensor, nodes: Sequence[Any], target: Any, freed: Any) -> Explanation:
    """The explanation when a backward pass has run through the graph, and yet there is no gradient."""
    first = freed.metadata.get("freed")
    leading = _leading_to(target, nodes)
    between = [n for n in nodes if n in leading]
    notes = _may_return_none(between)
    retained = ["- retain_grad() was called on it only after that pass;"] if t._edge is not None else []
    return Explanation(
        "freed",
        "grad is None: the loss leads to this tensor, and a backward pass has already run and freed the graph. One of "
        "these is so:",
        "compute the loss again and call loss.backward() on it.",
        placed((f"freed by {first[1]}()", first[0])) if first else (),
        (
            *notes,
            *retained,
            "- it was autograd.grad(), which returns gradients, or backward(inputs=...) without this tensor;",
            "- .grad was cleared since, by zero_grad() or by assigning None.",
            *(() if first else unrecorded(t)),
        ),
    )


def _not_reached(t: Tensor, nodes: Sequence[Any]) -> Explanation:
    """The explanation when the graph of the loss does not lead to the tensor."""
    cuts = [(loss, node) for node in nodes for loss in node.metadata.get("cut", ())]
    exact = [loss for loss, _ in cuts if loss.source is not None and loss.source() is t]
    for loss in exact or [loss for loss, _ in cuts]:
        what, because, do = LOST[loss.kind]
        own = "it" if exact else f"a {loss.of}, on the way to the loss,"
        return Explanation(
            cause_of(loss.kind),
            f"grad is None, because the loss does not lead to this tensor: {own} was cut off by {what}; {because}.",
            f"{do}.",
            placed(("cut off", loss.place)),
        )
    twin = _twin(t, nodes)
    if twin is not None:
        return Explanation(
            "reassigned",
            "grad is None, because the loss does not lead to this tensor, but to another one of the same shape, which "
            "no variable holds any more: the tensor was made anew after the loss was computed.",
            "compute the loss after that; change a parameter in place instead: with pullback.no_grad(): w -= step. An "
            "optimiser has to be given the new one.",
            made_at(ORIGINS.get(t)),
        )
    used = "" if t._edge is not None or t._leaf is not None else " No recorded operation has used it at all."
    ends = [node.variable for node in nodes if isinstance(node, AccumulateGrad)]
    names = variables(lambda v: any(v is end for end in ends))
    found = ", ".join(f"`{name}`" for name in names)
    left = LEFT.get(t)
    return Explanation(
        "not-reached",
        f"grad is None, because the loss does not lead to this tensor.{used}",
        f"{LOST[left[-1].kind][2]}."
        if left
        else "compute the loss from it: without detach(), no_grad(), item() or NumPy in between.",
        _left(left or ()),
        ((f"The loss leads to {found}.",) if found else ()) + unrecorded(t),
    )


def _left(losses: Iterable[Loss]) -> tuple[tuple[str, Place], ...]:
    """Where the values of a leaf, or of what was computed from it, left the graph."""
    ways = [(f"its values left the graph by {called(loss.kind)} of a {loss.of}", loss.place) for loss in losses]
    return placed(*dict.fromkeys(ways))


def _twin(t: Tensor, nodes: Sequence[Any]) -> Tensor | None:
    """A leaf of the graph with the shape and dtype of `t` that no variable of the user holds."""
    ends = [node.variable for node in nodes if isinstance(node, AccumulateGrad)]
    like = [leaf for leaf in ends if leaf._data.shape == t._data.shape and leaf._data.dtype == t._data.dtype]
    return next((leaf for leaf in like if not variables(_is(leaf))), None)


def _is(t: Tensor) -> Callable[[Any], bool]:
    return lambda value: value is t


errors.doors(globals(), "explain")

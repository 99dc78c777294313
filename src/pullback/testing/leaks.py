"""The check for leaks: objects that stay alive after a call, and the attribute of ctx, class or module behind it."""

from __future__ import annotations

import functools
import gc
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..autograd.context import FunctionNode
from ..tensor.tensor import Tensor
from .corrections.findings import Finding
from .corrections.patches import left_out
from .higher import kept_values
from .sharing import attributes_of, saving, state_of, stored
from .subject import Run, Subject, drawn

REACH = 5_000  # the most objects examined to find out which holds another
CONTAINERS = (dict, list, tuple, set, types.FunctionType, types.CellType, types.MethodType)


def check_lifetimes(subject: Subject) -> Iterator[Finding]:
    """After backward, the graph keeps only the values it still needs; once the outputs are gone, nothing is kept."""
    before = gc.isenabled()
    try:
        gc.disable()
        left, attributes, cycle = _call_and_forget(subject)
        alive = _living(left)
        if alive:
            gc.collect()
            alive_still = _living(left)
            if alive_still:
                yield _kept_alive(subject, alive_still, left)
            else:
                yield _cycle(subject, alive, cycle)
    finally:
        if before:
            gc.enable()
    for name, what in attributes.items():
        if name != cycle:
            yield _kept_on_ctx(subject, name, what)


Left = list[tuple[str, "weakref.ref[Any]"]]
"""The objects that a call made or was given, by name."""


def _call_and_forget(subject: Subject) -> tuple[Left, dict[str, str], str | None]:
    """Run forward and backward and release everything.

    Returns weak references to the objects that took part, the attributes of ctx that hold tensors or arrays after
    backward, and the one of these that leads back to ctx.
    """
    run = Run(subject, subject.copies(), functools.partial(subject.call, subject.function))
    if not run.tracked:
        return [], {}, None
    node = run.node
    left: Left = [("ctx", weakref.ref(node))]
    for i, t in enumerate(run.inputs):
        if isinstance(t, Tensor):
            left += [(subject.names[i], weakref.ref(t)), (f"the array of {subject.names[i]}", weakref.ref(t._data))]
    for k, t in enumerate(run.outputs):
        left += [(f"output {k}", weakref.ref(t)), (f"the array of output {k}", weakref.ref(t._data))]
    run.vjp([drawn(t._data, np.random.default_rng(17)) for t in run.tracked], retain_graph=False)
    attributes, cycle = {}, None
    for name, value in attributes_of(node):
        if _leads_to(value, node):
            cycle = name
        held = _tensors_in(value)
        if held:
            attributes[name] = held[0]
    return left, attributes, cycle


def _living(left: Left) -> list[str]:
    return [name for name, ref in left if ref() is not None]


def _tensors_in(value: Any) -> list[str]:
    """Descriptions of the tensors and arrays of more than one element in a value."""
    if isinstance(value, Tensor):
        return [f"a tensor of shape {list(value._data.shape)}"] if value._data.size > 1 else []
    if isinstance(value, np.ndarray):
        return [f"an array of shape {list(value.shape)}"] if value.size > 1 else []
    if isinstance(value, (list, tuple)):
        return [what for part in value for what in _tensors_in(part)]
    return [what for part in value.values() for what in _tensors_in(part)] if isinstance(value, dict) else []


def _leads_to(start: Any, *ends: Any) -> bool:
    """Whether an object refers, through tensors, nodes, containers and closures, to one of the others."""
    goals = {id(end) for end in ends}
    seen: set[int] = set()
    stack = [start]
    while stack and len(seen) < REACH:
        value = stack.pop()
        if id(value) in goals:
            return True
        if id(value) in seen or not isinstance(value, (Tensor, FunctionNode, np.ndarray, *CONTAINERS)):
            continue
        seen.add(id(value))
        if isinstance(value, Tensor):
            stack += [value._data, value._edge and value._edge[0]]
        elif isinstance(value, types.FunctionType):
            stack += value.__closure__ or ()
        elif not (isinstance(value, dict) and "__name__" in value):
            stack += gc.get_referents(value)
    return False


def _cycle(subject: Subject, alive: list[str], cycle: str | None) -> Finding:
    name = cycle or "..."
    method, line = stored(subject, name)
    return Finding(
        "reference-cycle",
        "everything to be freed with the last reference to the outputs",
        f"{', '.join(alive[:3])} alive until the garbage collector ran",
        f"ctx.{name} leads back to ctx: an output refers to its node, which is ctx, and ctx to the output."
        if cycle
        else "Something refers to ctx and is referred to by it.",
        line,
        f"keep nothing on ctx that leads back to it: leave out ctx.{name}, or save the tensor by save_for_backward",
        (*saving(subject, name), left_out(method, method.stores(name)) if method else ()),
    )


def _kept_alive(subject: Subject, alive: list[str], left: Left) -> Finding:
    objects = [o for o in (ref() for _, ref in left) if o is not None]
    holders = [name for name, value in state_of(subject).items() if _holds(value, objects)]
    del objects
    method = subject.method("forward")
    who = holders[0] if holders else "something outside of ctx"
    key = who.rpartition(".")[2]
    found = []
    for candidate in (method, subject.method("setup_context"), subject.method("backward")):
        for statement in candidate.statements() if candidate else ():
            if holders and key in candidate.at(statement).text:
                found.append((candidate, statement))
    return Finding(
        "kept-alive",
        "tensors of a call to be freed when its outputs are",
        f"{', '.join(alive[:3])} still alive",
        f"{who} holds them, and grows or lingers with every call.",
        found[0][0].at(found[0][1]) if found else method.head(),
        "leave it out: what belongs to one call lives on its ctx",
        tuple(left_out(*place) for place in found[:1]),
    )


def _holds(value: Any, objects: list[Any]) -> bool:
    return not isinstance(value, (type, types.ModuleType)) and _leads_to(value, *objects)


def _kept_on_ctx(subject: Subject, name: str, what: str) -> Finding:
    _, line = stored(subject, name)
    return Finding(
        "kept-on-ctx",
        "what backward needs to be freed once it has run",
        f"{what} still on ctx.{name}",
        "An attribute of ctx lives as long as the output, and a write to it between forward and backward is not "
        "noticed; what save_for_backward keeps is freed and checked.",
        line,
        _saved_instead(subject, name),
        tuple(saving(subject, name)),
    )


def _saved_instead(subject: Subject, name: str) -> str:
    """How to keep for backward what an attribute of ctx holds, in words; where that loses a derivative, as the finding
    about that says.
    """
    if "lost-derivative" in subject.broken:
        for what, _, advice, _ in kept_values(subject):
            if what == f"ctx.{name}":
                return advice
    value = dict(attributes_of(subject.run().node)).get(name)
    array = ", made a tensor by from_numpy" if isinstance(value, np.ndarray) else ""
    return f"save it by ctx.save_for_backward{array}, and read it from ctx.saved_tensors in backward"

"""The checks on sharing: memory with the inputs, state with other calls, tensors from outside."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..autograd.context import FunctionNode
from ..autograd.grad_mode import no_grad
from ..tensor.nested import leaves
from ..tensor.tensor import Tensor
from .corrections.findings import Finding, Line
from .corrections.patches import Patch, edited, named
from .corrections.rewrites import all_saved, saved
from .corrections.source import Method, text
from .first_runs import largest_gap
from .higher import kept_values
from .subject import Subject, numbers

# Aliases -------------------------------------------------------------------------------------------------------------


def check_aliases(subject: Subject) -> Iterator[Finding]:
    """An output that shares memory with an input or another output also shares its version counter."""
    run = subject.run()
    named = [(subject.names[i], t) for i, t in enumerate(run.inputs) if isinstance(t, Tensor)]
    named += [(f"output {k}", t) for k, t in enumerate(run.outputs)]
    first = len(named) - len(run.outputs)
    forward = subject.method("forward")
    for k, (what, out) in enumerate(named[first:]):
        for name, t in named[: first + k]:
            tracked = out._version_of is not None and out._version_of is t._version_of
            if tracked or out is t or not _overlap(out, t):
                continue
            found = forward.gradient(k) if forward else None
            patch = edited(forward, (found[1], f"({text(found[1])}).clone()")) if found else ()
            yield Finding(
                "untracked-alias",
                f"{what} to have memory of its own, or to be a view made by operations on tensors",
                f"an array that lies in the memory of {name}",
                f"A write to one changes the other, and no operation that saved it will notice: {name} left the "
                "library by numpy() or .data, and came back.",
                forward.at(found[0]) if found else forward.head(),
                "return a clone, or compute with the tensor itself",
                (patch,),
            )
            return


def _overlap(a: Tensor, b: Tensor) -> bool:
    try:
        return bool(np.shares_memory(a._data, b._data, max_work=10_000))  # type: ignore[arg-type]
    except (np.exceptions.TooHardError, TypeError):
        return False


# Shared state --------------------------------------------------------------------------------------------------------


def check_interleaved(subject: Subject) -> Iterator[Finding]:
    """A second call between forward and backward of a first one changes nothing for the first."""
    alone = subject.run()
    if not alone.tracked or "input-modified" in subject.broken:
        return
    seeds = alone.seeds(np.random.default_rng(16))
    expected = alone.vjp(seeds)
    before = state_of(subject)
    first = subject.run()
    state = [name for name, value in state_of(subject).items() if before.get(name) is not value]
    values = [np.array(numbers(t)) for t in first.outputs]
    second = subject.run(subject.moved())
    gap, what = largest_gap([numbers(t) for t in first.outputs], values), "the outputs"
    if gap == 0:
        what = "the gradients"
        try:
            gap = largest_gap(first.vjp(seeds), expected)
            returned = [g for g in leaves(subject.log.returned) if isinstance(g, Tensor)]
            values = [np.array(numbers(g)) for g in returned]
            second.vjp(second.seeds(np.random.default_rng(19)))
            gap = max(gap, largest_gap([numbers(g) for g in returned], values))
        except Exception:
            gap = np.inf
    if gap == 0:
        return
    method = subject.method("forward")
    held = ", ".join(state) or "something outside of ctx"
    statement = next(filter(None, (method.stores(name.rpartition(".")[2]) for name in state)), None) if method else None
    yield Finding(
        "shared-state",
        f"{what} of a call to be its own, whatever is called after it",
        f"{what} of the first call changed by a second one",
        f"{held} belongs to all calls; what belongs to one call lives on its ctx.",
        method.at(statement) if statement is not None else method.head(),
        "keep it on ctx, or save it by ctx.save_for_backward, and read it from there in backward",
    )


def state_of(subject: Subject) -> dict[str, Any]:
    """The attributes of a Function's class and of its module, by name."""
    found: dict[str, Any] = {}
    for cls in subject.function.__mro__:
        if cls.__dict__.get("_is_root"):
            break
        found |= {f"{cls.__name__}.{name}": value for name, value in vars(cls).items() if name != "_contract"}
    held = getattr(subject.method("forward").fn, "__globals__", {})
    return found | {name: value for name, value in held.items() if not name.startswith("__")}


# Writes in between ---------------------------------------------------------------------------------------------------


def check_writes_between(subject: Subject) -> Iterator[Finding]:
    """A write to an input between forward and backward is an error, or does not matter; it never changes a gradient."""
    if subject.broken & {"input-modified", "shared-state"}:
        return
    run = subject.run()
    if not run.tracked:
        return
    seeds = run.seeds(np.random.default_rng(20))
    expected = run.vjp(seeds)
    for leaf in subject.moving:
        if leaf in subject.dirty:
            continue
        run = subject.run()
        with no_grad():
            run.inputs[leaf].add_(1)
        try:
            found = run.vjp(seeds)
        except Exception:  # the usual case: refused, as it should be
            continue
        if largest_gap(found, expected) > 0:
            name = subject.names[leaf]
            keys = [key for key, value in attributes_of(run.node) if lies_in(value, run.inputs[leaf])]
            _, line = stored(subject, keys[0] if keys else "...")
            held = f"ctx.{keys[0]}" if keys else "Something other than save_for_backward"
            yield Finding(
                "unchecked-write",
                f"an error in backward after a write to {name} in between, as from a tensor that was saved",
                "another gradient, and no error",
                f"{held} keeps {name}, where nobody counts the writes to it.",
                line,
                f"save {name} by ctx.save_for_backward, and read it from ctx.saved_tensors in backward",
                tuple(patch for key in keys for patch in saving(subject, key)),
            )
            return


def saving(subject: Subject, name: str) -> Iterator[Patch]:
    """The patches that save by save_for_backward what an attribute of ctx holds, or the input that it lies in."""
    run, (keeper, _), backward = subject.run(), stored(subject, name), subject.method("backward")
    statement = keeper.stores(name) if keeper else None
    if statement is None or not backward:
        return
    value = dict(attributes_of(run.node)).get(name)
    separate = subject.function._contract.separate
    for i in subject.moving:
        if lies_in(value, run.inputs[i]) and not separate:
            yield saved(keeper, backward, name, subject.names[i])
    kept, given = attributes_of(run.node), [(subject.names[i], run.inputs[i]) for i in subject.moving]
    held = {key: of for key, value in kept for of, t in given if lies_in(value, t)}
    if len(held) > 1 and not separate:
        yield all_saved(keeper, backward, held)
    if "lost-derivative" in subject.broken:
        for what, _, _, patch in kept_values(subject):
            if what == f"ctx.{name}":
                yield patch
    yield saved(keeper, backward, name, text(statement.value))
    if isinstance(value, np.ndarray):
        function, needed = named(keeper, "from_numpy")
        yield (*saved(keeper, backward, name, f"{function}({text(statement.value)})"), *needed)


def attributes_of(node: FunctionNode) -> list[tuple[str, Any]]:
    """The attributes that the user's code has set on ctx."""
    own = vars(node).items()
    return [(key, value) for key, value in own if not hasattr(FunctionNode, key) and key != "saved_for_forward"]


def lies_in(value: Any, t: Tensor) -> bool:
    """Whether a value is a tensor or array in the memory of a tensor, or holds one."""
    if isinstance(value, (list, tuple)):
        return any(lies_in(part, t) for part in value)
    data = value._data if isinstance(value, Tensor) else value
    return isinstance(data, np.ndarray) and np.may_share_memory(data, t._data)


def stored(subject: Subject, name: str) -> tuple[Method, Line | None]:
    """The method that stores an attribute on ctx, and the line where it does so."""
    for method in (subject.method("setup_context"), subject.method("forward")):
        statement = method.stores(name) if method else None
        if statement is not None:
            return method, method.at(statement)
    method = subject.method("forward")
    return method, method.head()


# Tensors from outside -------------------------------------------------------------------------------------------------


def check_outside(subject: Subject) -> Iterator[Finding]:
    """forward uses no tensors that require grad except its arguments; backward could not give others a gradient."""
    forward = subject.method("forward")
    try:
        used = inspect.getclosurevars(forward.fn)
    except (TypeError, ValueError):
        return
    read = {i.argval for i in dis.get_instructions(forward.fn) if i.opname == "LOAD_GLOBAL"}  # not an attribute
    outside = {**{name: value for name, value in used.globals.items() if name in read}, **used.nonlocals}
    for cls in (value for value in (*outside.values(), subject.function) if isinstance(value, type)):
        outside |= {f"{cls.__name__}.{name}": value for name, value in vars(cls).items() if name in used.unbound}
    for name, value in outside.items():
        if isinstance(value, Tensor) and value.requires_grad:
            line = forward.head()
            yield Finding(
                "hidden-parameter",
                "every tensor that requires grad to be an argument of forward",
                f"{name}, of shape {list(value.shape)}, which comes from outside",
                "Nothing is recorded within forward, so its gradient is lost, and nobody says so.",
                line,
                f"make it an argument of forward, with a gradient in backward, and pass it to {subject.name}.apply",
            )
            return

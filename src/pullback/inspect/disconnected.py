"""Finds why a tensor does not require grad: it was taken out of the graph, or never was in one.

Where origins were recorded (`diagnose/origins.py`), the first cause is known. Otherwise the answer rests on visible
facts: the mode, the dtype, the views, and whether the tensor lies in the memory of one that does require grad.
"""

from __future__ import annotations

import ast
import gc
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..diagnose.origins import MARKED, ORIGINS, TAKEN, Loss, Origin, losses_of
from ..diagnose.places import Place, at, locals_of, place_of, user_frames, variables
from ..errors import describe
from ..tensor.modes import thread
from ..tensor.tensor import Tensor

SWITCH_ON = (
    "Lines were not recorded. To have them: run the program within `with pullback.autograd.record_origins():`, or as "
    "`python -m pullback explain FILE.py:variable`."
)


@dataclass(frozen=True)
class Explanation:
    """An answer of `explain`; `str` and `repr` give it as text.

    cause: one word for programs, e.g. "detach" or "non-leaf". why: a sentence. places: the events, as pairs of words
    and a place (file, line, function), the most informative first. do: what to do. notes: further facts.
    """

    cause: str
    why: str
    do: str = ""
    places: tuple[tuple[str, Place], ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.why, *(f"  {what}: {at(place)}" for what, place in self.places)]
        lines += [f"  {note}" for note in self.notes]
        return "\n".join([*lines, f"  What to do: {self.do}"] if self.do else lines)

    __repr__ = __str__


def called(name: str) -> str:
    """A call in words: ``mul()``."""
    return f"{name}()" if name.replace(".", "").isidentifier() else name


def placed(*pairs: tuple[str, Place | None]) -> tuple[tuple[str, Place], ...]:
    return tuple((what, place) for what, place in pairs if place is not None)


def unrecorded(t: Any) -> tuple[str, ...]:
    """The hint to record origins, if that of this tensor was not recorded."""
    return () if thread.modes.recording or ORIGINS.get(t) is not None else (SWITCH_ON,)


def names_of(t: Tensor) -> str:
    return "`" + "`, `".join(names) + "`" if (names := variables(lambda v: v is t)) else describe(t)


# Tensors that do not require grad -------------------------------------------------------------------------------------

LOST = {
    "detach": ("detach()", "detach() takes a tensor out of the graph", "compute with the tensor itself"),
    "data": (".data", ".data is the tensor without its graph", "compute with the tensor itself"),
    "detach_": ("detach_()", "detach_() took the tensor itself out of the graph", "leave detach_() out"),
    "numpy": (
        "NumPy",
        "its values went through NumPy, which keeps no graph",
        "call NumPy's functions on the tensor itself (numpy.sin(t) is recorded), or write a Function around that code",
    ),
    "no_grad": ("no_grad()", "it was made while recording was off", "compute it outside of no_grad()"),
    "inference_mode": (
        "inference_mode()",
        "it was made in inference mode, whose tensors never belong to a graph",
        "compute it outside of inference_mode(), from a clone() of what was made inside",
    ),
    "forward": (
        "forward()",
        "it was made inside the forward of a Function, where operations are not recorded",
        "return it from forward as an output; only outputs get a gradient, by backward",
    ),
    "backward": (
        "backward()",
        "it was made by a backward pass that was not itself recorded",
        "pass create_graph=True to backward() or grad()",
    ),
    "integer": (
        "its dtype",
        "integers and bools have no gradient",
        "keep to floating point, e.g. use softmax instead of argmax; convert indices only where they are indices",
    ),
    "constant": (
        "the operation",
        "the operation that made it has no derivative, or derivative 0 everywhere",
        "use an operation that is differentiable, or a Function with a gradient of your own (straight-through)",
    ),
    "requires_grad": ("requires_grad", "requires_grad was set to False", "leave that out, or set it to True again"),
}
LOST["__array__"] = LOST["numpy"]
_NUMBERS = ("item", "tolist", "float", "int", "complex")
for _name in _NUMBERS:
    LOST[_name] = (
        f"{_name}()",
        f"{_name}() takes the values out as Python's numbers, which belong to no graph",
        f"compute with the tensor itself; leave {_name}() for what is printed",
    )
LOST["float"] = (  # which NumPy calls as well
    *LOST["float"][:2],
    "compute with the tensor itself, and let an array that it is written into begin with numpy.zeros_like(t, "
    "shape=...); leave float() for what is printed",
)


def cause_of(kind: str) -> str:
    """The cause as one word for programs; NumPy's and Python's ways out of the graph share a word."""
    return "numpy" if kind == "__array__" or kind in _NUMBERS else kind


def requires_none(t: Tensor) -> Explanation:
    """The explanation for a tensor that does not require grad."""
    marked = MARKED.get(t)
    if marked is not None:
        return Explanation(
            "non-differentiable",
            f"requires_grad is False, because {marked[0]}.forward marked this output as not differentiable.",
            "leave ctx.mark_non_differentiable out, and let backward return its gradient",
            placed(("marked", marked[1])),
        )
    losses = losses_of(t)
    made = ORIGINS.get(t)
    if losses:
        return _lost(t, losses, made)
    if t.is_inference():
        return _of_kind("inference_mode", "requires_grad is False, because of {}: {}.", made_at(made), unrecorded(t))
    if t._data.dtype.kind not in "fcV":
        return _of_kind("integer", f"requires_grad is False, because of {{}} {t.dtype}: {{}}.", made_at(made))
    return _never_set(t, made) if made is not None else _unknown(t)


def _of_kind(kind: str, text: str, places: Any = (), notes: tuple[str, ...] = ()) -> Explanation:
    what, because, do = LOST[kind]
    return Explanation(cause_of(kind), text.format(what, because), f"{do}.", places, notes)


def made_at(made: Origin | None) -> tuple[tuple[str, Place], ...]:
    if made is None or made.place is None:
        return ()
    within = (f"{made.mode}() was entered", made.mode_place) if isinstance(made.mode_place, tuple) else ("", None)
    return placed((f"made by {called(made.name)}", made.place), within)


def _lost(t: Tensor, losses: Sequence[Loss], made: Origin | None) -> Explanation:
    """The explanation when a recorded event lost the gradient, of this tensor or of one that it was computed from."""
    first = next((loss for loss in losses if cause_of(loss.kind) == "numpy"), losses[0])
    what, because, do = LOST[first.kind]
    source = first.source() if first.source is not None else None
    of = names_of(source) if source is not None and source is not t else first.of
    pairs: list[tuple[str, Place | None]] = []
    happened = {
        "integer": f"made {first.detail} by {called(first.of)}",
        "constant": f"made by {called(first.of)}",
        "no_grad": "made",
        "inference_mode": "made",
        "forward": f"made inside {first.detail}.forward",
        "requires_grad": "set to False",
    }.get(first.kind, f"{first.kind}{'' if first.kind == 'data' else '()'} of {of}")
    pairs.append((happened, first.place))
    if isinstance(first.detail, tuple):
        pairs.append((f"{first.kind}() was entered", first.detail))
    pairs += [
        (f"{'before' if first is not losses[0] else 'then'} {loss.kind}()", loss.place)
        for loss in losses
        if loss is not first
    ]
    if made is not None and made.place != first.place and source is not t:
        pairs.append((f"this tensor was made from it by {called(made.name)}", made.place))
    if first.kind in ("no_grad", "inference_mode", "forward"):
        because += f", from {of}, which requires grad"
    return Explanation(
        cause_of(first.kind),
        f"requires_grad is False, because of {what}: {because}.",
        f"{do}.",
        placed(*pairs),
    )


def recorded(t: Tensor) -> str:
    """Why a tensor does not require grad, in words, where its origin was recorded; else an empty text."""
    return str(requires_none(t)) if ORIGINS.get(t) is not None else ""


def _never_set(t: Tensor, made: Origin) -> Explanation:
    """The explanation when its origin is known, and nothing was lost there."""
    off = f" under {made.mode}()" if made.mode in ("no_grad", "inference_mode") else ""
    taken = [loss for loss in reversed(TAKEN) if made.values and loss.detail < made.order]
    notes = [f"  {loss.kind}() of a {loss.of} at {at(loss.place)}" for loss in taken]
    do = "set requires_grad=True where it is made, or requires_grad_() on it; or compute it from a tensor that has it."
    return Explanation(
        "never-set",
        f"requires_grad is False: it was made{off} by {called(made.name)}, nothing that it was made of requires grad, "
        "and requires_grad was never set.",
        f"{LOST[taken[0].kind][2]}. If its values are none of these: {do}" if taken else do,
        made_at(made),
        ("Its values come from NumPy or Python, and may be those that were taken out of the graph here:", *notes)
        if taken
        else (),
    )


def _unknown(t: Tensor) -> Explanation:
    """The explanation when nothing was recorded: only its memory and its views can be examined."""
    notes: list[str] = []
    if not thread.modes.grad_enabled:
        notes.append("Recording is off at this moment: no_grad() or set_grad_enabled(False) is in force here.")
    view = t._view
    if view is not None and getattr(view, "made", "") == "no_grad" and view.base._requires_grad:
        return _of_kind(
            "no_grad",
            f"requires_grad is False, because of {{}}: this view of {names_of(view.base)} was made while recording was "
            "off.",
            notes=unrecorded(t),
        )
    assigned = _assignment(t)
    if assigned is not None:
        kind, place = assigned
        return _of_kind(
            kind,
            "requires_grad is False, most likely because of {}: {}.",
            placed(("assigned", place)),
            unrecorded(t),
        )
    if t._leaf is not None:
        return _of_kind(
            "requires_grad",
            "requires_grad is False, because of {}: it did require grad when an operation used it, and {}.",
            notes=unrecorded(t),
        )
    for other in _sharing(t):
        counted = other._version_of is not None and other._version_of is t._version_of
        kind = "detach" if counted else "data"
        return _of_kind(
            kind,
            f"requires_grad is False, because of {'detach()' if counted else '.data or NumPy'}: it lies in the memory "
            f"of {names_of(other)}, which requires grad, but is not connected to it. {{1}}.",
            notes=unrecorded(t),
        )
    return Explanation(
        "unknown",
        "requires_grad is False, and it has no grad_fn. One of these is so:",
        "set requires_grad=True on the leaf that is meant; find what cut the tensor off by recording, as said above."
        if unrecorded(t)
        else "set requires_grad=True on the leaf that is meant.",
        (),
        (
            "- requires_grad was never set, on it or on what it was computed from (an assignment makes a new tensor);",
            "- it was computed under no_grad() or set_grad_enabled(False), or in the forward of a Function;",
            "- it comes from detach(), .data, item() or NumPy;",
            "- the operation that made it has no derivative (round, sign, comparisons, argmax).",
            *notes,
            *unrecorded(t),
        ),
    )


def _sharing(t: Tensor) -> Iterator[Tensor]:
    """Living tensors that require grad and lie in the same memory."""
    if not isinstance(t._data, np.ndarray) or not t._data.size:
        return
    for other in gc.get_objects():
        if issubclass(type(other), Tensor) and other is not t:
            data = getattr(other, "_data", None)
            if isinstance(data, np.ndarray) and np.may_share_memory(data, t._data) and other._requires_grad:
                yield other


_CALLS = {
    "detach": "detach",
    "data": "data",
    "numpy": "numpy",
    "item": "item",
    "tolist": "tolist",
    "detach_": "detach_",
}
_MODES = {"no_grad": "no_grad", "inference_mode": "inference_mode", "set_grad_enabled": "no_grad"}


def _assignment(t: Tensor) -> tuple[str, Place] | None:
    """The call or mode that takes `t` out of the graph, in the user's source where a variable was assigned it."""
    for frame in user_frames():
        names = {name for name, value in locals_of(frame).items() if value is t}
        file, line, function = place_of(frame)
        tree = _source(file) if names else None
        if tree is None:
            continue
        found = None
        for statement, kind in _assignments(tree, ""):
            targets = {
                part.id for target in statement.targets for part in ast.walk(target) if isinstance(part, ast.Name)
            }
            if targets & names and statement.lineno <= line:
                attributes = [part.attr for part in ast.walk(statement.value) if isinstance(part, ast.Attribute)]
                inside = next((_CALLS[name] for name in attributes if name in _CALLS), "")
                found = (inside or kind, (file, statement.lineno, function)) if inside or kind else None
        return found
    return None


def _source(file: str) -> ast.AST | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None


def assigned_anew(t: Tensor, made: Place | None) -> tuple[str, Place] | None:
    """The variable that holds `t` and held another tensor before, ``w = w - step``, and the place (`made`, if known).

    It is read from the source of the user's functions: assignments to that variable with the variable on the right.
    """
    for frame in user_frames():
        file, line, function = place_of(frame)
        names = {name for name, value in locals_of(frame).items() if value is t}
        names |= {f"self.{name}" for name, value in _attributes(frame) if value is t}
        tree = _source(made[0] if made is not None else file) if names else None
        if tree is None:
            continue
        found = None
        for statement, _ in _assignments(tree if function == "<module>" else _scope(tree, function, line), ""):
            used = {ast.unparse(part) for part in ast.walk(statement.value) if isinstance(part, ast.expr)}
            again = names & used & {ast.unparse(target) for target in statement.targets}
            if made is not None and not statement.lineno <= made[1] <= (statement.end_lineno or statement.lineno):
                continue
            if again and (found is None or statement.lineno <= line):
                found = min(again), made or (file, statement.lineno, function)
        if found is not None:
            return found
    return None


def _attributes(frame: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(locals_of(frame).get("self"), "__dict__", {}).items()


def _scope(tree: ast.AST, function: str, line: int) -> ast.AST:
    """The function of that name around a line of a file, or the whole file."""
    scopes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function]
    return next((n for n in scopes if n.lineno <= line <= (n.end_lineno or n.lineno)), tree)


def _assignments(tree: ast.AST, kind: str) -> Iterator[tuple[ast.Assign, str]]:
    """The assignments in a piece of source, each with the mode that a `with` around it sets."""
    for child in ast.iter_child_nodes(tree):
        inside = kind
        if isinstance(child, ast.With):
            called = [part for item in child.items for part in ast.walk(item.context_expr)]
            names = [getattr(part, "attr", getattr(part, "id", "")) for part in called]
            inside = next((_MODES[name] for name in names if name in _MODES), kind)
        if isinstance(child, ast.Assign):
            yield child, inside
        yield from _assignments(child, inside)

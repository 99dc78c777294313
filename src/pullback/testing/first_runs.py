"""The checks that come first: forward runs, twice with the same result, and leaves its inputs alone; so does backward.

A failure here would fail every other check as well, so those are then left out.
"""

from __future__ import annotations

import ast
import functools
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..diagnose.gradcheck.problem import Array
from ..tensor.nested import leaves
from ..tensor.tensor import Tensor
from .corrections.findings import Finding, Line
from .corrections.patches import (
    Patch,
    before,
    below,
    edited,
    first,
    left_out,
    merged,
    named,
    once_differentiable,
    wrapped,
)
from .corrections.rewrites import arrays_read, inputs_saved, keeping_axes, on_tensors, out_of_place
from .corrections.source import Method, described, line_of_error, line_that, line_that_differs, remedy, text
from .derivatives import summed
from .subject import Run, Subject, numbers

ATTEMPTS = 4  # repetitions before results count as equal: a few random numbers may be the same twice by chance

REFUSALS = {
    "incorrect number of gradients": "gradient-count",
    "as gradient of": "gradient-type",
    "different from None at position": "gradient-for-non-tensor",
    "invalid gradient at index": "gradient-shape",
    "returned a gradient of dtype": "gradient-dtype",
}
"""Words in the engine's errors, and the codes of their findings."""


def check_forward(subject: Subject) -> Iterator[Finding]:
    """forward runs for these inputs."""
    try:
        subject.dirty = subject.written()
        outputs = subject.run().outputs
    except Exception as error:
        forward = subject.method("forward")
        line, patches = _no_tensors(subject, error)
        advice = remedy(error) or "audit with inputs, and dtypes=, that forward takes; or mend this line"
        expected = "a result for these inputs"
        yield Finding("forward-raises", expected, described(error), "", line, advice, patches)
        return
    forward = subject.method("forward")
    found = forward.returned() if forward else None
    line = forward.at(found[0]) if found else forward.head()
    if not outputs:
        yield Finding("no-gradient", "a tensor among the outputs", "none", "", line, "return the result as a tensor")
    elif not any(t.is_floating_point() or t.is_complex() for t in outputs) and not _marks(subject):
        yield Finding(
            "no-derivative",
            "an output of floating point or complex numbers",
            f"outputs of {', '.join(dict.fromkeys(str(t.dtype.name) for t in outputs))} alone",
            "Whole numbers have no derivative, so no gradient flows back.",
            line,
            "say so by ctx.mark_non_differentiable of the outputs",
            (_marking(forward),),
        )


def _marks(subject: Subject) -> bool:
    """Whether a method says of an output that it has no derivative."""
    methods = (subject.method(name).fn for name in ("forward", "setup_context"))
    return any("mark_non_differentiable" in fn.__code__.co_names for fn in methods if hasattr(fn, "__code__"))


def _marking(forward: Method) -> Patch:
    """The results of forward, marked as non-differentiable before they are returned."""
    found = forward.returned() if forward else None
    if found is None:
        return ()
    statement, values = found
    mark = f"{forward.parameter(0, 'ctx')}.mark_non_differentiable"
    if all(isinstance(value, ast.Name) for value in values):
        return before(forward, statement, f"{mark}({', '.join(map(text, values))})")
    if len(values) > 1:
        return ()
    lines = [f"output = {text(values[0])}", f"{mark}(output)", "return output"]
    return edited(forward, (statement, below(statement, lines)))


def _no_tensors(subject: Subject, error: Exception) -> tuple[Line | None, tuple[Patch, ...]]:
    """The line on which forward fails, and tensors instead of the arrays that it returns or saves, if that is why."""
    forward, backward = subject.method("forward"), subject.method("backward")
    line = line_of_error(error, forward)
    if not forward or "from_numpy" not in str(error):
        return line, ()
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__) if f.f_code.co_name == "save_for_backward"]
    if frames:
        return _arrays_saved(subject, frames[0].f_locals["tensors"])
    found = forward.returned()
    if found is None:
        return line, ()
    statement, values = found
    sets = [[value] for value in values] + ([values] if len(values) > 1 else [])
    tensors = [wrapped(forward, "from_numpy", *some) for some in sets]
    once = once_differentiable(backward)
    return forward.at(statement), (*tensors, *(merged(patch, once) for patch in tensors))


def _arrays_saved(subject: Subject, values: Sequence[Any]) -> tuple[Line | None, tuple[Patch, ...]]:
    """The line that saves arrays among these values, and tensors instead: the inputs themselves, where they are these.
    backward then computes with the tensors, or with their arrays.
    """
    keepers = [subject.method("setup_context"), subject.method("forward")]
    keeper, backward = next(keeper for keeper in keepers if keeper), subject.method("backward")
    saves = list(keeper.calls("save_for_backward"))
    if not saves:
        return keeper.head(), ()
    statement, call = saves[-1]
    arrays = [i for i, value in enumerate(values) if isinstance(value, np.ndarray)]
    if len(call.args) != len(values):
        return keeper.at(statement), ()
    function, needed = named(keeper, "from_numpy")
    wraps = {i: f"{function}({text(call.args[i])})" for i in arrays}
    all_wrapped = edited(keeper, *((call.args[i], code) for i, code in wraps.items()))
    itself = inputs_saved(keeper, lambda i: wraps.get(i, ""))
    uses_it = any(f"{function}(" in change.text for change in itself)
    once = once_differentiable(backward)
    read = arrays_read(backward, arrays)
    kept = [(*itself, *(needed if uses_it else ())), (*all_wrapped, *needed)]
    ways = [(), on_tensors(backward), once, merged(read, once)]
    return keeper.at(statement), tuple(merged(k, *([way] if way else [])) for k in kept if k for way in ways)


# Determinism ---------------------------------------------------------------------------------------------------------


def check_determinism(subject: Subject) -> Iterator[Finding]:
    """forward gives the same result twice; if it is random, at least with the same seed."""
    forward = subject.method("forward")
    gap = _gap(subject)
    if gap == 0:
        return
    subject.random = True
    again = _gap(subject)
    if again == 0:
        yield Finding(
            "random",
            "the same result from two calls",
            f"a difference of {gap:.3g}, and none with the same random seed",
            "It draws random numbers; every other check holds the seed fixed.",
            advice="nothing, if backward uses the numbers that forward drew",
        )
        return
    yield Finding(
        "not-deterministic",
        "the same result from two calls with the same inputs and the same random seed",
        f"results that differ by {again:.3g}",
        "It draws from a generator of its own, or depends on what earlier calls left behind; finite differences of it "
        "are noise.",
        forward.head(),
        "draw with pullback's or NumPy's global generator, or take the random numbers as an argument",
    )


def _gap(subject: Subject) -> float:
    """The largest difference between the results of a few calls."""
    first, *others = ([numbers(t) for t in subject.run().outputs] for _ in range(ATTEMPTS))
    return max(largest_gap(first, other) for other in others)


def largest_gap(a: Sequence[Array | None], b: Sequence[Array | None]) -> float:
    """The largest difference between arrays, with nan equal to nan and None as zero; inf if shapes differ."""
    worst = 0.0 if len(a) == len(b) else np.inf
    for x, y in zip(a, b, strict=False):
        x, y = (np.zeros(()) if v is None else np.asarray(v) for v in (x, y))
        if x.shape != y.shape and x.ndim and y.ndim:
            return np.inf
        if x.dtype.kind not in "fc":
            worst = max(worst, 0.0 if np.array_equal(x, y) else 1.0)
            continue
        with np.errstate(all="ignore"):
            gap = np.abs(x - y)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        worst = max(worst, float(np.where(same, 0, np.nan_to_num(gap, nan=np.inf)).max(initial=0)))
    return worst


# Writes --------------------------------------------------------------------------------------------------------------


def check_inputs_unmodified(subject: Subject) -> Iterator[Finding]:
    """forward writes to no input that is not marked dirty."""
    flat = subject.copies()
    before = _arrays(flat)
    subject.run(flat)
    for i, (then, now) in enumerate(zip(before, _arrays(flat), strict=True)):
        if then is None or now is None or np.array_equal(then, now, equal_nan=then.dtype.kind in "fc"):
            continue
        first_at = np.flatnonzero((then != now) & ~((then != then) & (now != now)))[0]
        forward, name, fresh = subject.method("forward"), subject.names[i], subject.copies()
        line = line_that(_is_changed(fresh[i], then), functools.partial(subject.run, fresh), forward)
        yield Finding(
            "input-modified",
            f"{name} to be the same after forward",
            f"other values in it, first {then.flat[first_at]:.6g} became {now.flat[first_at]:.6g}",
            "The caller, and every operation that saved this tensor, sees the write; mark it with ctx.mark_dirty and "
            "return it, or write to a clone.",
            line or forward.head(),
            "write to a clone, or mark it dirty and return it",
            (out_of_place(forward, line), first(forward, f"{name} = {name}.clone()")),
        )


def _arrays(flat: Sequence[Any]) -> list[Array | None]:
    return [np.array(numbers(t)) if isinstance(t, Tensor) else None for t in flat]


def _is_changed(t: Tensor, then: Array) -> Callable[[], bool]:
    return lambda: not np.array_equal(numbers(t), then, equal_nan=then.dtype.kind in "fc")


# backward ------------------------------------------------------------------------------------------------------------


def check_backward(subject: Subject) -> Iterator[Finding]:
    """backward runs, and returns values that can be gradients of these inputs."""
    run = subject.run()
    if not run.tracked:
        return
    try:
        run.vjp(run.seeds(np.random.default_rng(6)))
    except Exception as error:
        backward = subject.method("backward")
        code = next((code for words, code in REFUSALS.items() if words in str(error)), "backward-raises")
        expected, advice, patches = _refused(subject, code)
        found = backward.returned() if backward else None
        line = backward.at(found[0]) if found and code != "backward-raises" else line_of_error(error, backward)
        line = line or subject.method("forward").head()
        said = f"{described(error)}, in {subject.name}.backward" if code == "backward-raises" else described(error)
        advice = advice if code == "gradient-count" else remedy(error) or advice
        yield Finding(code, expected, said, "", line, advice, patches)


def _refused(subject: Subject, code: str) -> tuple[str, str, tuple[Patch, ...]]:
    """The expected result if backward fails, and what to do, in words and as code."""
    backward = subject.method("backward")
    found = backward.returned() if backward else None
    values = found[1] if found is not None else []
    names = list(
        {place: name.partition("[")[0] for place, name in zip(subject.places, subject.names, strict=True)}.values()
    )
    if code == "gradient-count":
        wanted = [text(value) for value in values][: len(names)] + ["None"] * (len(names) - len(values))
        moving = {subject.names[i].partition("[")[0] for i in subject.moving}
        forgotten = not moving.isdisjoint(names[len(values) :])  # None for it would be a gradient that is lost
        patch = edited(backward, (found[0], f"return {', '.join(wanted)}")) if found and not forgotten else ()
        expected = f"one gradient for each argument of forward: {', '.join(names)}"
        which = ", also that of " + " and ".join(n for n in names[len(values) :] if n in moving) if forgotten else ""
        advice = f"return one for each, in this order{which}; None for an argument that has none"
        return expected, advice, (patch,)
    if code == "gradient-type":
        advice = "return a tensor for each argument, or None"
        return "a tensor, or None, for each argument", advice, tuple(_tensors_returned(subject, values))
    if code == "gradient-for-non-tensor":
        kinds = dict(zip(subject.names, subject.flat, strict=True))
        other = [n for n in names if not (isinstance(kinds.get(n), Tensor) and kinds[n]._data.dtype.kind in "fc")]
        wrong = [value for n, value in zip(names, values, strict=False) if n in other]
        patch = edited(backward, *((value, "None") for value in wrong))
        return "None for an argument that is not a tensor of floating point", "return None for it", (patch,)
    if code == "gradient-shape":
        patches = (summed(subject, i, "({}).expand({})") for i in range(len(subject.moving)))
        return "a gradient of the shape of its input", "give it the shape of its input", tuple(patches)
    if code == "gradient-dtype":
        expected = "a gradient of the same kind of numbers as its input"
        real = tuple(edited(backward, (value, f"({text(value)}).real")) for value in values)
        return expected, "return the real part", real
    return "gradients", "mend this line", tuple(keeping_axes(backward))


def _tensors_returned(subject: Subject, values: Sequence[ast.expr]) -> Iterator[Patch]:
    """The gradients as a tuple of tensors, where they are in another container, or arrays."""
    backward = subject.method("backward")
    if len(values) == 1:
        (value,) = values
        inside = value.elts if isinstance(value, ast.Set) else value.values if isinstance(value, ast.Dict) else []
        yield edited(backward, (value, ", ".join(map(text, inside)))) if inside else ()
        yield edited(backward, (value, f"tuple({text(value)})"))
    yield on_tensors(backward)
    returned = subject.log.each(subject.run().node)
    arrays = [value for value, g in zip(values, returned, strict=False) if isinstance(g, np.ndarray)]
    tensors = wrapped(backward, "from_numpy", *arrays)
    yield tensors
    yield merged(tensors, once_differentiable(backward))


def check_warnings(subject: Subject) -> Iterator[Finding]:
    """Neither forward nor backward warns; the warning about a gradient's shape is a finding of its own."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        run = subject.run()
        if run.tracked:
            run.vjp(run.seeds(np.random.default_rng(21)))
    for message in dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in given):
        if "returned a gradient of shape" not in message:
            said = message.splitlines()[0].rstrip(".")
            forward = subject.method("forward")
            words = said.partition("ctx.")[2].partition("(")[0]
            calls = [statement for statement, _ in forward.calls(words)] if words else []
            yield Finding(
                "warned",
                "no warning",
                said,
                "Where warnings are errors, it fails.",
                forward.at(calls[0]) if calls else forward.head(),
                "do what the warning says",
                tuple(left_out(forward, call) for call in calls),
            )


def check_backward_writes(subject: Subject) -> Iterator[Finding]:
    """backward leaves the incoming gradient, the inputs and the saved tensors unchanged."""
    run = subject.run()
    if not run.tracked:
        return
    seeds = run.seeds(np.random.default_rng(7))
    backward = subject.method("backward")
    held = [t for t in (*run.inputs, *_saved(run)) if isinstance(t, Tensor)]
    before = _arrays(held)
    run.vjp(seeds)
    for k, (then, g) in enumerate(zip(subject.log.before, leaves(subject.log.given), strict=True)):
        if then is not None and not np.array_equal(then, numbers(g), equal_nan=True):
            yield _grad_output_modified(subject, k, then)
            break
    for then, t in zip(before, held, strict=True):
        if then is not None and not np.array_equal(then, numbers(t), equal_nan=then.dtype.kind in "fc"):
            again = subject.run()
            which = next(i for i, other in enumerate(held) if other is t)
            fresh = [o for o in (*again.inputs, *_saved(again)) if isinstance(o, Tensor)][which]
            line = line_that(_is_changed(fresh, then), functools.partial(again.vjp, seeds), backward)
            yield Finding(
                "backward-modifies",
                "the inputs and the saved tensors to be the same after backward",
                f"other values in a saved tensor of shape {list(then.shape)}",
                "They belong to the caller and to later passes over the graph.",
                line or backward.head(),
                "write to a clone",
                (out_of_place(backward, line),),
            )
            return


def _saved(run: Run) -> list[Any]:
    saved = run.node._saved
    return list(saved) if isinstance(saved, tuple) else []


def _grad_output_modified(subject: Subject, k: int, then: Array) -> Finding:
    backward, log = subject.method("backward"), subject.log
    run = subject.run()
    log.clear()

    def changed() -> bool:
        given = list(zip(leaves(log.given), log.before, strict=True))[k : k + 1]
        return any(b is not None and not np.array_equal(numbers(g), b, equal_nan=True) for g, b in given)

    seeds = run.seeds(np.random.default_rng(7))
    line = line_that(changed, lambda: run.vjp(seeds), backward)
    name = backward.parameter(1 + k, "grad_output")
    return Finding(
        "grad-output-modified",
        f"{name} to be the same after backward",
        "other values in it",
        "It belongs to the engine, which may hand the same tensor to other nodes; write to a clone.",
        line or backward.head(),
        "write to a clone",
        (out_of_place(backward, line), first(backward, f"{name} = {name}.clone()")),
    )


def check_backward_repeats(subject: Subject) -> Iterator[Finding]:
    """A second pass over the same graph gives the same gradients."""
    run = subject.run()
    if not run.tracked or subject.broken & {"backward-modifies", "grad-output-modified"}:
        return
    backward = subject.method("backward")
    seeds = run.seeds(np.random.default_rng(8))
    first = run.vjp(seeds)
    expected = "the same gradients from a second pass over a graph that was retained"
    why = (
        "backward must not use up what forward kept, nor draw random numbers of its own: forward saves what it drew, "
        "e.g. a mask."
    )
    try:
        gap = max(largest_gap(first, run.vjp(seeds)) for _ in range(ATTEMPTS))
    except Exception as error:
        line = line_of_error(error, backward)
        advice = "read what ctx keeps; do not pop, delete or overwrite it"
        yield Finding("backward-not-repeatable", expected, described(error), why, line, advice)
        return
    if gap > 0:
        line = line_that_differs(lambda: run.vjp(seeds), backward) or backward.head()
        advice = "save what forward drew by ctx.save_for_backward, and read it from ctx.saved_tensors"
        yield Finding("backward-not-repeatable", expected, f"a difference of {gap:.3g}", why, line, advice)

"""The checks of backward's behaviour: which gradients are wanted, which outputs were used, and the shape, dtype, device
and layout of the tensors it gets and returns.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..autograd import context
from ..diagnose.gradcheck.problem import Array, copied
from ..table import calls
from ..tensor.tensor import Tensor, wrap
from .corrections.findings import Finding, Line
from .corrections.patches import Patch, edited, first, left_out
from .corrections.rewrites import by_reshape, in_one_precision, on_tensors
from .corrections.source import Method, described, executed, line_of_error, text, works
from .derivatives import SUMMED, compare, summed
from .first_runs import largest_gap
from .subject import Run, Subject, drawn

APART = (str(context.__file__), str(calls.__file__))
"""The files of ctx and of calls of operations: they say which gradients are wanted, and record; that work is not
backward's.
"""


def _gradient_line(subject: Subject, i: int, form: str = "{}") -> tuple[Line | None, Patch]:
    """The line that computes the gradient of the i-th moving input, and the gradient in another form."""
    backward = subject.method("backward")
    found = backward.gradient(subject.places[subject.moving[i]]) if backward else None
    if found is None:
        return backward.head(), ()
    statement, value = found
    return backward.at(statement), edited(backward, (value, form.format(f"({text(value)})")))


# Shape, dtype and device ---------------------------------------------------------------------------------------------


def check_gradient_shapes(subject: Subject) -> Iterator[Finding]:
    """Every gradient has the shape of its input; otherwise the engine would sum or broadcast it to that shape."""
    run = subject.run()
    if not run.tracked:
        return
    run.vjp(run.seeds(np.random.default_rng(9)))
    returned = subject.log.each(run.node)
    for i, leaf in enumerate(subject.moving):
        g, x = returned[subject.edge(run.node, leaf)], run.inputs[leaf]
        if isinstance(g, Tensor) and g._data.shape != x._data.shape:
            wanted = f"{subject.method('backward').parameter(0, 'ctx')}.needs_input_grad[{subject.places[leaf]}]"
            yield Finding(
                "gradient-shape",
                f"a gradient of shape {list(x._data.shape)} for {subject.where(i)}",
                f"one of shape {list(g._data.shape)}",
                "It is summed over the axes that forward broadcast, which is a guess; backward should do it.",
                _gradient_line(subject, i)[0],
                f"make it of the shape of {subject.where(i)} in backward, by sum_to_size",
                tuple(summed(subject, i, form) for form in (SUMMED, f"{SUMMED} if {wanted} else None")),
            )


def check_dtypes(subject: Subject) -> Iterator[Finding]:
    """Outputs have the precision of the inputs, gradients the dtype of their inputs, and all lie on one device."""
    for dtype in subject.dtypes:
        if dtype in subject.refused:
            continue
        run = subject.run(dtype=dtype)
        if not run.tracked:
            return
        widths = {_precision(t) for t in run.wanted}
        changed = [(k, t) for k, t in enumerate(run.outputs) if _precision(t) not in {*widths, 0}]
        for k, t in changed[:1]:
            yield _changed_precision(subject, k, t, dtype)
        run.vjp(run.seeds(np.random.default_rng(10)))
        returned = subject.log.each(run.node)
        for i, leaf in enumerate(subject.moving):
            g, x = returned[subject.edge(run.node, leaf)], run.inputs[leaf]
            if isinstance(g, Tensor) and g._data.dtype != x._data.dtype and not changed:
                grads = subject.method("backward").parameter(1, "grad_output")
                line, cast = _gradient_line(subject, i, f"{{}}.to({grads}.dtype)")
                name = subject.where(i)
                yield Finding(
                    "gradient-dtype",
                    f"a gradient of {x.dtype.name} for {name}, which is {x.dtype.name}",
                    f"one of {g.dtype.name}",
                    "It is cast back, so time and memory were spent on digits that are thrown away, or digits are "
                    "missing.",
                    line,
                    f"compute in {grads}.dtype throughout",
                    (in_one_precision(subject.method("backward")), cast),
                )
        yield from _devices(subject, run, returned)


def _precision(t: Tensor) -> int:
    """Bytes of a real number; 0 for a tensor that is not floating point or complex."""
    kind = t._data.dtype.kind
    return t._data.dtype.itemsize // (2 if kind == "c" else 1) if kind in "fcV" else 0


def _changed_precision(subject: Subject, k: int, t: Tensor, dtype: Any) -> Finding:
    forward = subject.method("forward")
    returned = forward.returned() if forward else None
    found = (returned[0], returned[1][k]) if returned is not None and k < len(returned[1]) else None
    patches: tuple[Patch, ...] = (in_one_precision(forward),)
    if found is not None:
        patches += (edited(forward, (found[1], f"({text(found[1])}).to({subject.where(0)}.dtype)")),)
    return Finding(
        "output-dtype",
        f"an output of the precision of the inputs, {dtype.name}",
        f"output {k} of {t.dtype.name}",
        "Everything after it is computed in that precision too; if this is not meant, a NumPy scalar or array of "
        "another dtype has crept in.",
        forward.at(found[0]) if found else forward.head(),
        f"compute in the dtype of {subject.where(0)}, or convert the output to it",
        patches,
    )


def _devices(subject: Subject, run: Run, returned: Sequence[Any]) -> Iterator[Finding]:
    devices = {str(t.device) for t in run.wanted}
    for what, t in [("output", t) for t in run.outputs] + [("gradient", g) for g in returned if g is not None]:
        if str(t.device) not in devices:
            method = subject.method("forward" if what == "output" else "backward")
            found = method.returned() if method else None
            yield Finding(
                "device",
                f"an {what} on {', '.join(sorted(devices))}, where the inputs are".replace("an g", "a g"),
                f"one on {t.device}",
                line=method.at(found[0]) if found else method.head(),
                advice="make new tensors with x.new_zeros or zeros_like, which keep device and dtype",
            )
            return


# Which gradients are wanted ------------------------------------------------------------------------------------------


def check_needs_input_grad(subject: Subject) -> Iterator[Finding]:
    """If a gradient is not wanted, the others stay the same, and nothing is computed for it."""
    reference = subject.run()
    n = len(subject.moving)
    if n < 2 or not reference.tracked:
        return
    seeds = reference.seeds(np.random.default_rng(11))
    expected = reference.vjp(seeds)
    free = [g is None or _is_given(g, subject) for g in subject.log.each(reference.node)]
    for i in range(n):
        for needs in ([k != i for k in range(n)], [k == i for k in range(n)]):
            finding = _with_needs(subject, needs, seeds, expected)
            if finding is not None:
                yield finding
                return
    backward = subject.method("backward")
    for i, leaf in enumerate(subject.moving):
        run = subject.run(needs=[k != i for k in range(n)])
        run.vjp(seeds)
        g = subject.log.each(run.node)[subject.edge(run.node, leaf)]
        if free[subject.edge(reference.node, leaf)] or _is_given(g, subject):
            continue
        if g is not None:
            yield _unneeded(subject, i, "unneeded-gradient", "a gradient")
            continue
        full, less = (functools.partial(r.vjp, seeds) for r in (reference, run))
        if not works(executed(full, backward, APART) - executed(less, backward, APART)):
            yield _unneeded(subject, i, "unneeded-work", "None, after the same computations as for a gradient")


def _with_needs(
    subject: Subject, needs: list[bool], seeds: Sequence[Array], expected: Sequence[Array | None]
) -> Finding | None:
    """A finding if some gradient differs when only these are wanted."""
    wanted = [i for i, need in enumerate(needs) if need]
    names = ", ".join(subject.where(i) for i in wanted)
    why = (
        "ctx.needs_input_grad has one entry for each argument of forward, in order, arguments that are not tensors "
        "included."
    )
    run = subject.run(needs=needs)
    try:
        found = run.vjp(seeds)
    except Exception as error:
        backward = subject.method("backward")
        line = line_of_error(error, backward)
        what = f"gradients where only those of {names} are wanted"
        advice = "compute each gradient under its own `if ctx.needs_input_grad[i]:`"
        return Finding("needs-input-grad", what, described(error), why, line, advice)
    for i, g in zip(wanted, found, strict=True):
        if largest_gap([g], [expected[i]]) > 1e-9 * (1 + np.abs(0 if g is None else g).max(initial=0)):
            line, _ = _gradient_line(subject, i)
            place = subject.places[subject.moving[i]]
            name = subject.where(i)
            return Finding(
                "needs-input-grad",
                f"the gradient of {name} to be the same whichever others are wanted",
                f"{'none' if g is None else 'another one'} where only {names} require{'s' * (len(wanted) == 1)} grad",
                why,
                line,
                f"ask ctx.needs_input_grad[{place}], because {name} is argument {place} of forward",
                (_asking(subject, place),),
            )
    return None


def _asking(subject: Subject, place: int) -> Patch:
    """Another number in ``gradient if ctx.needs_input_grad[i] else None``, the gradient of a given argument."""
    backward = subject.method("backward")
    found = backward.gradient(place) if backward else None
    if found is None:
        return ()
    for node in ast.walk(found[0]):
        asked = node.test if isinstance(node, ast.IfExp) and node.body is found[1] else None
        if isinstance(asked, ast.Subscript):
            return edited(backward, (asked.slice, str(place)))
    return ()


def _is_given(t: Any, subject: Subject) -> bool:
    """Whether a gradient is the incoming one itself, which costs nothing."""
    given = [g for g in subject.log.given if isinstance(g, Tensor)]
    return isinstance(t, Tensor) and any(t is g or np.shares_memory(t._data, g._data) for g in given)


def _unneeded(subject: Subject, i: int, code: str, found: str) -> Finding:
    place, name = subject.places[subject.moving[i]], subject.where(i)
    ctx = subject.method("backward").parameter(0, "ctx")
    line, patch = _gradient_line(subject, i, f"{{}} if {ctx}.needs_input_grad[{place}] else None")
    return Finding(
        code,
        f"None for {name}, and no work done for it, where ctx.needs_input_grad[{place}] is False",
        found,
        "It is dropped, so the result is right, and the time is lost.",
        line,
        f"compute it only if {ctx}.needs_input_grad[{place}], and return None for it otherwise",
        (patch,),
    )


# Unused outputs ------------------------------------------------------------------------------------------------------


def check_unused_outputs(subject: Subject) -> Iterator[Finding]:
    """Where only one of several outputs is used, backward takes None, or zeros, for the others."""
    run = subject.run()
    if len(run.tracked) < 2:
        return
    seeds = run.seeds(np.random.default_rng(12))
    backward = subject.method("backward")
    keepers = [subject.method(name) for name in ("forward", "setup_context")]
    patches = tuple(left_out(m, statement) for m in keepers for statement, _ in m.calls("set_materialize_grads"))
    for k in range(len(seeds)):
        other = 1 if k == 0 else 0
        name = backward.parameter(1 + other, f"grad_{other}")
        expected = f"gradients where only output {k} is used, and {name} is None"
        why = (
            "After ctx.set_materialize_grads(False) the gradient of an output that was not used is None, which stands "
            "for zeros."
        )
        advice = f"ask whether {name} is None before it is used, or leave out ctx.set_materialize_grads(False)"
        try:
            alone = run.vjp([s if j == k else None for j, s in enumerate(seeds)])
        except Exception as error:
            line = line_of_error(error, backward)
            yield Finding("unused-output", expected, described(error), why, line, advice, patches)
            return
        zeros = run.vjp([s if j == k else np.zeros_like(s) for j, s in enumerate(seeds)])
        for i, (a, b) in enumerate(zip(alone, zeros, strict=True)):
            if largest_gap([a], [b]) > 1e-9:
                line, _ = _gradient_line(subject, i)
                found = f"another gradient of {subject.where(i)} than with zeros in its place"
                yield Finding("unused-output", expected, found, why, line, advice, patches)
                return


def check_linearity(subject: Subject) -> Iterator[Finding]:
    """backward is linear in the incoming gradient: zeros give zeros, and sums add up."""
    run = subject.run()
    if not run.tracked:
        return
    rng = np.random.default_rng(13)
    v, w = run.seeds(rng), run.seeds(rng)
    none = run.vjp([np.zeros_like(a) for a in v])
    sums = zip(run.vjp(v), run.vjp(w), run.vjp([a + b for a, b in zip(v, w, strict=True)]), strict=True)
    for i, (zero, (a, b, both)) in enumerate(zip(none, sums, strict=True)):
        if zero is None or a is None or b is None or both is None or not np.isfinite(a).all():
            continue
        name = subject.method("backward").parameter(1, "grad_output")
        line, patch = _gradient_line(subject, i, f"{name} * {{}}")
        size = np.abs(zero).max(initial=0)
        gap = np.abs(both - (a + b)).max(initial=0)
        if size == 0 and gap <= subject.rounding * (1 + np.abs(both).max(initial=0)):
            continue
        found = f"{size:.3g} for zeros" if size else f"a difference of {gap:.3g}"
        yield Finding(
            "not-linear",
            f"the gradient of {subject.where(i)} for zeros to be zero, and those for v and w to add up to that for "
            "v + w",
            found,
            "backward computes grad_output times the derivative, whatever grad_output is.",
            line,
            f"return {name} times the derivative, without another use of {name}",
            (patch,),
        )
        return


# Layouts and sizes ---------------------------------------------------------------------------------------------------


def strided(data: Array) -> Array:
    """The same values, every second element of a larger array, the last axis backwards."""
    if data.ndim == 0 or data.size == 0:
        return data
    room = np.zeros([2 * n for n in data.shape], data.dtype)
    view = room[(slice(None, None, 2),) * (data.ndim - 1) + (slice(None, None, -2),)]
    view[...] = data
    return view


def turned(data: Array) -> Array:
    """The same values with the axes in the other order in memory."""
    return np.asfortranarray(data) if data.ndim > 1 else strided(data)


def check_layouts(subject: Subject) -> Iterator[Finding]:
    """Inputs and incoming gradients that are not contiguous give the same results as contiguous ones."""
    reference = subject.run()
    if not reference.tracked:
        return
    seeds = reference.seeds(np.random.default_rng(14))
    expected = reference.vjp(seeds)
    values = [t._data for t in reference.outputs]
    why = "Native code, reshape of strides, or a view was relied on; contiguous() makes a copy where one is needed."
    names = [subject.where(i) for i in range(len(subject.moving))]
    for arrange in (strided, turned):
        flat = subject.copies()
        for leaf in flat:
            if isinstance(leaf, Tensor):
                leaf._data = arrange(leaf._data)
        forward = subject.method("forward")
        try:
            run = subject.run(flat)
        except Exception as error:
            line = line_of_error(error, forward)
            what = "a result for inputs that are not contiguous"
            yield Finding("layout-refused", what, described(error), "", line, *_reshaped(forward, names))
            break
        finding = _off(subject, [t._data for t in run.outputs], values)
        line = forward.head()
        if not finding:
            try:
                finding = _off(subject, run.vjp(seeds), expected)
            except Exception as error:
                finding, line = described(error), line_of_error(error, subject.method("backward"))
        if finding:
            what = "the same results from inputs that are not contiguous"
            yield Finding("non-contiguous-input", what, finding, why, line, *_reshaped(forward, names))
            break
    backward = subject.method("backward")
    ones = [np.ones_like(s) for s in seeds]
    flats = [np.broadcast_to(np.ones((), s.dtype), s.shape) for s in seeds]
    for given, plain in (([strided(s) for s in seeds], seeds), ([turned(s) for s in seeds], seeds), (flats, ones)):
        try:
            finding = _off(subject, reference.vjp(given, laid_out=True), reference.vjp(plain))
            line = backward.head()
        except Exception as error:
            finding, line = described(error), line_of_error(error, backward)
        if finding and "grad-output-modified" not in subject.broken:
            fix = _reshaped(backward, [backward.parameter(1 + k, "grad_output") for k in range(len(seeds))])
            what = "the same gradients for an incoming gradient that is not contiguous (as that of sum() is not)"
            yield Finding("non-contiguous-gradient", what, finding, why, line, *fix)
            return


def _reshaped(method: Method, names: Sequence[str]) -> tuple[str, tuple[Patch, ...]]:
    """In words and as code: reshape() for view(), which copies if needed; or contiguous copies to begin with."""
    copies = (first(method, f"{name} = {name}.contiguous()") for name in names)
    return f"make {' and '.join(names)} contiguous first, or use reshape for view", (by_reshape(method), *copies)


def _off(subject: Subject, found: Sequence[Array | None], expected: Sequence[Array | None]) -> str:
    """The distance between two sets of arrays, in words; empty if they agree."""
    gap = largest_gap(found, expected)
    scale = max((np.abs(e).max(initial=0) for e in expected if e is not None), default=0)
    return f"results that differ by {gap:.3g}" if gap > subject.rounding * (1 + scale) else ""


def check_zero_dim(subject: Subject) -> Iterator[Finding]:
    """0-d inputs, for a Function that is elementwise or reduces everything, judging by shapes."""
    shapes = [t._data.shape for t in subject.flat if isinstance(t, Tensor)]
    outputs = {t._data.shape for t in subject.run().outputs}
    try:
        whole = np.broadcast_shapes(*shapes)
    except ValueError:
        return
    if not any(shapes) or outputs not in ({whole}, {()}):
        return
    flat = subject.copies()
    for leaf in flat:
        if isinstance(leaf, Tensor):
            leaf._data = leaf._data.ravel()[0].reshape(()) if leaf._data.size else leaf._data
    yield from _resized(subject, flat, "zero-dim", "0-d inputs")


def check_empty(subject: Subject) -> Iterator[Finding]:
    """Inputs without elements: each axis length in turn is replaced by zero wherever it occurs."""
    lengths = {n for t in subject.flat if isinstance(t, Tensor) for n in t._data.shape} - {0}
    for n in sorted(lengths):
        flat = subject.copies()
        for leaf in flat:
            if isinstance(leaf, Tensor):
                leaf._data = leaf._data[tuple(slice(0 if m == n else None) for m in leaf._data.shape)]
        found = list(_resized(subject, flat, "empty", f"inputs whose axes of length {n} have no elements"))
        if found:
            yield found[0]
            return


def _plain(t: Tensor) -> Tensor:
    """A contiguous copy, which requires grad where the tensor does."""
    made = wrap(np.array(t._data, order="C"))
    made._requires_grad = t._requires_grad
    return made


def _resized(subject: Subject, flat: list[Any], code: str, what: str) -> Iterator[Finding]:
    """Findings on backward for inputs of other sizes, if forward takes them at all."""
    kept = [_plain(t) if isinstance(t, Tensor) else t for t in flat]
    try:
        run = subject.run([copied(t) if isinstance(t, Tensor) else t for t in kept])
        finite = all(np.isfinite(t._data).all() for t in run.outputs if t._data.dtype.kind in "fc")
    except Exception:  # forward may refuse a size
        return
    if not run.tracked or not finite:
        return
    backward = subject.method("backward")
    fix = "keep shapes in backward: x.shape, keepdim=True, sum_to_size; or have forward refuse such inputs"
    expected = f"gradients for {what}, which forward takes"
    try:
        run.vjp([drawn(t._data, np.random.default_rng(15)) for t in run.tracked])
    except Exception as error:
        line = line_of_error(error, backward)
        yield Finding(code, expected, described(error), "", line, fix, (on_tensors(backward),))
        return
    returned = subject.log.each(run.node)
    for i, leaf in enumerate(subject.moving):
        g, x = returned[subject.edge(run.node, leaf)], run.inputs[leaf]
        if isinstance(g, Tensor) and g._data.shape != x._data.shape and "gradient-shape" not in subject.broken:
            line, _ = _gradient_line(subject, i)
            found = f"a gradient of shape {list(g._data.shape)} for {subject.where(i)} of {list(x._data.shape)}"
            yield Finding(code, expected, found, "", line, fix)
            return
    if "wrong-derivative" not in subject.broken:
        found_here = list(compare(subject, subject.problem(kept), code, f" for {what}"))
        yield from (f for f in found_here if f.code == code)

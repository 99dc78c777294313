"""The checks of first derivatives: in float64 against finite differences, and in float32.

Finite differences and the search for kinks are `gradcheck`'s. In float64 they decide; float32 results are compared with
float64 as well, because differences in float32 itself have only two or three digits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..autograd.grad_mode import enable_grad
from ..diagnose.gradcheck import disagreement
from ..diagnose.gradcheck.checking import Found, described_pair, disagreements, kinks, noise_cause
from ..diagnose.gradcheck.problem import Array, Call, Options, Problem, numerical, random_like
from .corrections.findings import Finding, Line
from .corrections.patches import Patch, edited, left_out, shape_of
from .corrections.rewrites import keeping_axes
from .corrections.source import described, line_of_error, text
from .subject import Subject

LARGEST = 20_000  # entries of Jacobians that are computed in full; larger ones only along a random direction
SUMMED = "({}).sum_to_size({})"
SINGLE = 1e-3  # the error allowed in float32, relative to the largest entry


# First derivatives ---------------------------------------------------------------------------------------------------


def check_first_derivative(subject: Subject) -> Iterator[Finding]:
    """backward against finite differences in float64."""
    yield from compare(subject, subject.problem(), "wrong-derivative")


def compare(subject: Subject, problem: Problem, code: str, given: str = "") -> Iterator[Finding]:
    """Compare backward with finite differences at the point of a problem; `given` describes a special point."""
    with enable_grad(), np.errstate(all="ignore"):
        call = Call(problem)
        if not call.outputs:
            yield from _constant(subject, Call(problem, constant=True))
            return
        base = call.values()
        found = disagreements(call, subject.options, *directions(call))
        if found and not subject.single and noise_cause(call):  # the reason is that it computes in float32
            subject.coarsen()
            found = disagreements(call, subject.options, *directions(call))
        for f in found:
            if not (np.isfinite(base[f.k]).all() and np.isfinite(f.numerical).all()):
                yield _not_finite(call, f)
                continue
            pair = described_pair(call, subject.options, f, found, base, kinks(call, subject.options, f, base))
            if (f.wrong & ~pair.kinks.excused & steady(call, subject.options, f)).any():
                yield _wrong(subject, f, pair, code, given)
            elif code == "wrong-derivative":
                yield _kink(pair)


def directions(call: Call) -> tuple[Sequence[Any], Sequence[Any]]:
    """All entries of the Jacobians, or a random direction where there are too many."""
    size = sum(o._data.size for o in call.outputs) * sum(x._data.size for x in call.inputs)
    if size <= LARGEST:
        return [None] * len(call.inputs), [None] * len(call.outputs)
    rng = np.random.default_rng(0)
    return random_like(call.inputs, rng, real=True), random_like(call.outputs, rng, real=True)


def _constant(subject: Subject, call: Call) -> Iterator[Finding]:
    """If no output of a Function requires grad, the Function must not depend on its inputs."""
    rng, base = np.random.default_rng(0), call.values()
    for i, step in enumerate(random_like(call.inputs, rng)):
        for label, then, now in zip(call.labels, base, call.values(i, 1e-3 * step), strict=True):
            if not np.array_equal(then, now, equal_nan=True):
                forward = subject.method("forward")
                marks = [statement for statement, _ in forward.calls("mark_non_differentiable")]
                yield Finding(
                    "no-gradient",
                    f"{label.short} to require grad, because it changes with {subject.where(i)}",
                    "no output that requires grad",
                    "What is marked non-differentiable, or is not a tensor, gets no gradient.",
                    forward.at(marks[0]) if marks else forward.head(),
                    "leave ctx.mark_non_differentiable out for an output that has a derivative",
                    tuple(left_out(forward, mark) for mark in marks),
                )
                return


def _not_finite(call: Call, f: Found) -> Finding:
    where = f"{call.labels[f.k].short} with respect to {call.problem.labels[f.i].short}"
    return Finding(
        "not-finite",
        "finite values to compare",
        f"inf or nan in {where}",
        "The inputs lie at or beyond the border of what forward is defined for.",
        advice="audit with inputs within the domain, such as x.abs() + 0.5",
    )


def steady(call: Call, options: Options, f: Found) -> Array:
    """Which entries stay the same with larger steps. At a jump the quotient grows as the step shrinks, even if the
    function takes the middle value there, so that both one-sided quotients are equal.
    """
    if f.numerical.shape[1:] != (call.outputs[f.k]._data.size, call.inputs[f.i]._data.size):  # a random direction
        return np.ones_like(f.wrong)
    wider = numerical(call, f.i, None, [None] * len(call.outputs), 8 * options.eps)[f.k][0]
    return np.asarray(np.isclose(wider, f.numerical, rtol=0.1, atol=0.01))


def _kink(pair: disagreement.Pair) -> Finding:
    """Backward is between the one-sided derivatives wherever it differs from their mean, or it is at a jump."""
    sentences = pair.kinks.sentences[: disagreement.SHOWN_KINKS]
    return Finding(
        "kink",
        "a derivative from both sides that is the same",
        "; ".join(sentence.rstrip(".") for sentence in sentences) or f"a jump of {pair.output.short}",
        "What backward gives lies between the two, so it may be right.",
        advice="audit at other points to have the derivative compared there, too",
    )


def _wrong(subject: Subject, f: Found, pair: disagreement.Pair, code: str, given: str) -> Finding:
    expected, came, name = worst(pair)
    shared, rule = _rule(pair)
    why = f"{np.count_nonzero(f.wrong)} of {f.wrong.size} entries differ{given}."
    if shared:
        why += f" What they share: {shared}."
    if f.numerical.size == 1 and pair.point.size * pair.value.size > 1:
        why = f"This is along random directions, for there are too many entries{given}."
    elif pair.kinks.sentences:
        why += " " + " ".join(pair.kinks.sentences[:2])
    fact = f"{name} = {expected}"
    line, advice, patches = _mended(subject, f, pair, rule, fact)
    return Finding(code, f"{fact} (finite differences)", f"{came} (backward)", why, line, advice, patches)


def worst(pair: disagreement.Pair) -> tuple[str, str, str]:
    """The worst entry: by finite differences, by backward, and its name."""
    if pair.numerical.shape[1:] != (pair.value.size, pair.point.size):
        part, row, column = 0, 0, 0
        name = f"the derivative of {pair.output.short} with respect to {pair.input.short}, along random directions"
    else:
        gap = np.where(pair.wrong, np.nan_to_num(np.abs(pair.analytical - pair.numerical), nan=np.inf), -1)
        part, row, column = (int(k) for k in np.unravel_index(np.argmax(gap), gap.shape))
        output = disagreement.PARTS[len(gap)][part] + disagreement.element(pair.output, row, pair.value)
        name = f"d {output} / d {disagreement.element(pair.input, column, pair.point)}"
    at = part, row, column
    return disagreement.number(pair.numerical[at]), disagreement.number(pair.analytical[at]), name


def _rule(pair: disagreement.Pair) -> tuple[str | None, str]:
    """The pattern of the wrong entries, in words, and the name of the rule that found it."""
    N, A = (np.where(pair.kinks.there, 0, J) for J in (pair.numerical, pair.analytical))
    if pair.numerical.shape[1:] != (pair.value.size, pair.point.size):
        return None, ""
    for rule in disagreement.RULES:
        found = rule(pair, N, A)
        if found:
            return found, rule.__name__.lstrip("_")
    return None, ""


def _mended(
    subject: Subject, f: Found, pair: disagreement.Pair, rule: str, fact: str
) -> tuple[Line | None, str, tuple[Patch, ...]]:
    """The line that computes a gradient, and what to do, in words and, as far as the wrong entries show it, as code."""
    backward = subject.method("backward")
    place = subject.places[subject.moving[f.i]]
    found = backward.gradient(place) if backward else None
    grads = backward.parameter(1 + min(f.k, 1), "grad_output")
    advice = f"have backward give {grads} times the derivative of {pair.output.short}, so that {fact}"
    if found is None:
        return backward.head(), advice, ()
    statement, value = found
    line = backward.at(statement)
    if rule == "exchanged":
        whole = backward.returned()
        if whole is not None and len(whole[1]) == 2:
            computed = [value for k in range(2) if (there := backward.gradient(k)) for value in there[1:]]
            swaps = (edited(backward, (a, text(b)), (b, text(a))) for a, b in (whole[1], computed))
            return backward.at(whole[0]), advice, tuple(swaps)
    if rule == "not_kept":
        return line, f"{advice}; a sum lacks keepdim=True", tuple(keeping_axes(backward))
    if rule == "missing_sum":
        return line, advice, (summed(subject, f.i),)
    new = _new_value(rule, value, pair, grads)
    return line, advice, (edited(backward, (value, new)),) if new is not None else ()


def summed(subject: Subject, i: int, form: str = SUMMED) -> Patch:
    """The gradient of the i-th moving input, made to have the shape of the input."""
    backward, separate = subject.method("backward"), subject.function._contract.separate
    keeper = subject.method("setup_context" if separate else "forward")
    leaf, name = subject.moving[i], subject.where(i)
    found = backward.gradient(subject.places[leaf]) if backward else None
    if found is None:
        return ()
    source = f"{keeper.parameter(1, 'inputs')}[{subject.places[leaf]}]" if separate else name
    shape, needed = shape_of(backward, keeper, name, source)
    return (*edited(backward, (found[1], form.format(text(found[1]), shape))), *needed)


def _new_value(rule: str, value: ast.expr, pair: disagreement.Pair, grads: str) -> str | None:
    """The expression for a gradient, corrected by the pattern of the wrong entries; None if that gives no
    correction."""
    N, A = pair.numerical, pair.analytical
    old = text(value)
    if rule == "factor":
        c = complex(np.vdot(N, A) / np.vdot(N, N).real)
        if np.isclose(c, -1):
            return f"-({old})"
        lengths = {*pair.point.shape, *pair.value.shape, pair.point.size, pair.value.size} - {
            2
        }  # any of these may be meant
        for form, v in (("{1} * ({0})", 1 / c.real if c.real else 0.0), ("({0}) / {1}", c.real)):
            n = round(v)
            if n and abs(c.imag) < 1e-4 * abs(c) and np.isclose(v, n, rtol=1e-4) and n not in lengths:
                return form.format(old, n)
        return None
    if rule == "transpose":
        return _transposed(old)
    if rule == "conjugate" and old.startswith(f"{grads} * "):
        return f"{grads} * ({old.removeprefix(f'{grads} * ')}).conj()"
    return None


def _transposed(old: str) -> str:
    """A product with the transposition of its right operand toggled; anything else transposed as a whole."""
    left, product, right = old.rpartition(" @ ")
    if not product:
        return f"({old}).mT"
    for suffix in (".t()", ".T", ".mT", ".transpose(0, 1)"):
        if right.endswith(suffix):
            return f"{left} @ {right.removesuffix(suffix)}"
    return f"{left} @ {right}.mT"


# float32 -------------------------------------------------------------------------------------------------------------


def check_float32(subject: Subject) -> Iterator[Finding]:
    """forward and backward in other dtypes against float64, which finite differences check."""
    rng = np.random.default_rng(1)
    reference = subject.run()
    for dtype in subject.dtypes:
        if dtype.itemsize >= 8 or subject.single:
            continue
        try:
            run = subject.run(dtype=dtype)
        except Exception as error:
            subject.refused.add(dtype)
            yield _refused(subject, dtype, error)
            continue
        if subject.random:  # another dtype draws other numbers
            continue
        pairs = zip(reference.outputs, run.outputs, strict=False)
        for k, (wide, narrow) in enumerate(pairs):
            if wide._data.dtype.kind in "fc" and not _close(narrow._data, wide._data, dtype):
                forward = subject.method("forward")
                yield Finding(
                    "wrong-value-float32",
                    f"output {k} to be the same number in {dtype.name} as in float64, {_sample(wide._data)}",
                    f"{_sample(narrow._data)}",
                    "Something in forward depends on the dtype, or loses its digits by cancellation.",
                    forward.head(),
                    "compute in x.dtype, in a form that keeps the digits, such as expm1(x) for exp(x) - 1",
                )
                return
        if len(run.tracked) != len(reference.tracked) or "wrong-derivative" in subject.broken:
            return
        seeds = reference.seeds(rng)
        grads = run.vjp([np.asarray(s, t._data.dtype) for s, t in zip(seeds, run.tracked, strict=True)])
        for i, pair in enumerate(zip(reference.vjp(seeds), grads, strict=True)):
            a, b = (np.zeros(1) if g is None else g for g in pair)
            if not _close(b, a, dtype):
                backward = subject.method("backward")
                found = backward.gradient(subject.places[subject.moving[i]]) if backward else None
                yield Finding(
                    "wrong-derivative-float32",
                    f"the gradient of {subject.where(i)} to be the same number in {dtype.name} as in float64, where "
                    f"finite differences agree with it: {_sample(a)}",
                    f"{_sample(b)}",
                    "Something in backward depends on the dtype, or loses its digits by cancellation.",
                    backward.at(found[0]) if found else backward.head(),
                    "compute in the dtype of the incoming gradient, without a branch on the dtype",
                )


def _refused(subject: Subject, dtype: Any, error: Exception) -> Finding:
    return Finding(
        "dtype-refused",
        f"a result for inputs of {dtype.name}",
        described(error),
        "If that is meant, audit it in the dtypes it takes.",
        line_of_error(error, subject.method("forward")),
        "mend this line, or give dtypes= to the audit",
    )


def _close(narrow: Array, wide: Array, dtype: Any) -> bool:
    if narrow.shape != wide.shape or not np.isfinite(wide).all():
        return narrow.shape == wide.shape
    scale = np.abs(wide).max(initial=0)
    loss = max(SINGLE, 50 * float(np.finfo(dtype.numpy).eps)) if dtype.is_floating_point else SINGLE
    with np.errstate(all="ignore"):
        gap = np.abs(narrow.astype(wide.dtype) - wide).max(initial=0)
    return bool(gap <= loss * scale + 1e-5)


def _sample(a: Array) -> str:
    return np.array2string(a.ravel()[:3], precision=6, threshold=3) if a.size > 1 else disagreement.number(a.ravel()[0])

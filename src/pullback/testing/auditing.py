"""`audit`: all checks of a Function, in order, with one result.

A check is a function that takes the `Subject` and yields findings. `CHECKS` lists them, with a title for the result and
the condition under which each applies. The first ones are gates: if one finds a fault, the other checks are not run.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import errors
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad
from ..diagnose.gradcheck.problem import Options
from ..tensor.dtypes import dtype as DType  # noqa: N812 - a class with torch's name
from ..tensor.dtypes import float32, float64
from . import batches, conduct, derivatives, first_runs, higher, leaks, sharing
from .corrections.findings import CODES, FAULT, Audit, Finding, sorted_findings
from .corrections.source import described, line_of_error, remedy
from .corrections.trials import Trials
from .subject import Subject


@dataclass(frozen=True)
class Check:
    """One check: its title, its function, the reason why it does not apply (or None), and whether it is a gate."""

    title: str
    run: Callable[[Subject], Iterator[Finding]]
    unless: Callable[[Subject], str | None] = lambda subject: None
    gate: bool = False


def _without_jvp(subject: Subject) -> str | None:
    return _unsteady(subject) if "jvp" in subject.function._contract.methods else "there is no jvp"


def _without_vmap(subject: Subject) -> str | None:
    has = "vmap" in subject.function._contract.methods or getattr(subject.function, "generate_vmap_rule", False)
    if not has:
        return "there is no vmap rule"
    return "it draws random numbers" if subject.random else _unsteady(subject)


UNSTEADY = {
    "not-deterministic": "forward is not deterministic",
    "backward-not-repeatable": "backward cannot be repeated",
    "backward-modifies": "backward changes what was saved",
}


def _unsteady(subject: Subject) -> str | None:
    return next((why for code, why in UNSTEADY.items() if code in subject.broken), None)


CHECKS = (
    Check("forward runs", first_runs.check_forward, gate=True),
    Check("forward is deterministic", first_runs.check_determinism),
    Check("inputs are not modified", first_runs.check_inputs_unmodified),
    Check("backward runs", first_runs.check_backward, gate=True),
    Check("no warnings", first_runs.check_warnings),
    Check("backward modifies nothing", first_runs.check_backward_writes),
    Check("backward can be repeated", first_runs.check_backward_repeats),
    Check("shapes of gradients", conduct.check_gradient_shapes),
    Check("first derivatives", derivatives.check_first_derivative, _unsteady),
    Check("linearity of backward", conduct.check_linearity, _unsteady),
    Check("other dtypes", derivatives.check_float32, _unsteady),
    Check("dtypes and devices", conduct.check_dtypes),
    Check("second derivatives", higher.check_second_derivative, _unsteady),
    Check("forward mode", higher.check_forward_mode, _without_jvp),
    Check("vmap", batches.check_vmap, _without_vmap),
    Check("needs_input_grad", conduct.check_needs_input_grad, _unsteady),
    Check("unused outputs", conduct.check_unused_outputs, _unsteady),
    Check("aliases", sharing.check_aliases),
    Check("layouts", conduct.check_layouts, _unsteady),
    Check("0-d inputs", conduct.check_zero_dim, _unsteady),
    Check("empty inputs", conduct.check_empty, _unsteady),
    Check("interleaved calls", sharing.check_interleaved, _unsteady),
    Check("writes between forward and backward", sharing.check_writes_between, _unsteady),
    Check("tensors from outside", sharing.check_outside),
    Check("lifetimes", leaks.check_lifetimes),
)


def audit(
    function: type[Function],
    *inputs: Any,
    kwargs: dict[str, Any] | None = None,
    dtypes: Sequence[DType] = (float32, float64),
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    progress: Callable[[str, int, int], None] | None = None,
    ignore: Collection[str] = (),
) -> Audit:
    """Check whether a `Function` keeps its contract; report for each breach the expected and actual result, and the
    cure.

    Derivatives are compared in float64 with central differences ``(f(x + eps e) - f(x - eps e)) / (2 eps)``, entry by
    entry: ``|analytical - numerical| <= atol + rtol |numerical|``; kinks are recognised by their one-sided differences
    and are not faults. Beyond first and second derivatives the audit looks at forward mode and the `vmap` rule, at
    ``needs_input_grad``, unused outputs, writes to foreign memory, aliases, determinism, dtypes, layouts, 0-d and
    empty inputs, state shared between calls, and memory that stays alive. docs/audit.md lists all findings.

    The inputs are copied for every call, so the caller's tensors stay unchanged. As in `gradcheck`, the inputs that
    require grad are differentiated; if there are none, all floating point and complex inputs are.

    A correction is shown as code only if it mends: it is put into a copy of the class, made from its source, and the
    copy is audited. Where none does, the finding says in words what to do.

    Args:
        function: the subclass of `Function`, not its ``apply``.
        inputs: the arguments of ``forward`` without ctx, of any shape, nested as `apply` allows; small ones, because
            the number of calls grows with their elements.
        kwargs: arguments by keyword.
        dtypes: the precisions in which it has to work; complex inputs get the complex dtype of the same precision.
        eps, atol, rtol: as in `gradcheck`.
        progress: called before each check with its title, its number and the number of checks.
        ignore: the codes of intended findings, e.g. "wrong-derivative" for a straight-through estimator; they are
            listed as accepted and fail nothing. The class's own ``audit_ignore`` adds to them.

    Returns:
        An `Audit`: ``ok``, ``findings``, ``as_markdown()``, ``as_dict()``, and readable text.

    Raises:
        TypeError: `function` is not a Function with a forward, or its arguments do not fit the inputs.
        ValueError: there is no floating point or complex tensor among the inputs; or `ignore` has a code that does not
            exist.
        RuntimeError: an input that is differentiated has overlapping memory.

    >>> import pullback
    >>> class Square(pullback.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return grad_output * x
    >>> result = audit(Square, pullback.tensor([1.0, 2.0]))
    >>> result.ok
    False
    >>> finding = result.findings[0]
    >>> finding.code, finding.expected, finding.found
    ('wrong-derivative', 'd output[1] / d x[1] = 4.0 (finite differences)', '2.0 (backward)')
    >>> finding.line.text.strip(), finding.corrected
    ('return grad_output * x', 'return 2 * (grad_output * x)')
    """
    if isinstance(function, type) and errors.is_of_pytorch(function):
        raise TypeError(errors.foreign_function(f"audit(): {function.__name__}"))
    if not (isinstance(function, type) and issubclass(function, Function) and "_contract" in dir(function)):
        raise TypeError(
            errors.message(
                "audit()",
                expected="a subclass of autograd.Function with a forward",
                found=getattr(function, "__qualname__", None) or errors.describe(function),
                do="pass the class itself: audit(MyFunction, x), not MyFunction.apply",
            )
        )
    ignored = _codes(ignore) | _codes(getattr(function, "audit_ignore", ()))
    options = Options(eps, atol, rtol, 0.0, False, False, False)
    with warnings.catch_warnings(), np.errstate(all="ignore"), enable_grad():
        warnings.simplefilter("ignore")  # the checks find the faults that cause the warnings

        def audited(cls: type[Function], elsewhere: bool) -> dict[str, list[Finding]]:
            subject = Subject(cls, inputs, kwargs or {}, dtypes, options)
            if elsewhere:
                subject.move_away()
            return _checked(subject, None)[0]

        found, skipped = _checked(Subject(function, inputs, kwargs or {}, dtypes, options), progress)
        trials = Trials(function, found, audited)
        findings = sorted_findings([f for each in found.values() for f in each])
        left = tuple(trials.settled([f for f in findings if f.code not in ignored]))
        accepted = tuple(trials.settled([f for f in findings if f.code in ignored]))
    return Audit(function.__name__, left, tuple(found), skipped, accepted)


def _checked(
    subject: Subject, progress: Callable[[str, int, int], None] | None
) -> tuple[dict[str, list[Finding]], dict[str, str]]:
    """The findings of each check that was made, by its title; and why the others were not made."""
    found: dict[str, list[Finding]] = {}
    skipped: dict[str, str] = {}
    for number, check in enumerate(CHECKS):
        reason = next((f"because {c.title!r} failed" for c in CHECKS if c.gate and c.title in subject.broken), None)
        reason = reason or check.unless(subject)
        if reason is not None:
            skipped[check.title] = reason
            continue
        if progress is not None:
            progress(check.title, number, len(CHECKS))
        new = found[check.title] = _findings(check, subject)
        if check.gate and any(f.severity == FAULT for f in new):
            subject.broken.add(check.title)
        subject.broken.update(f.code for f in new)
    return found, skipped


def _codes(given: Collection[str]) -> set[str]:
    """The given codes of findings; ValueError if one does not exist."""
    codes = {given} if isinstance(given, str) else set(given)
    for code in sorted(codes - CODES.keys()):
        close = difflib.get_close_matches(code, CODES, 1)
        raise ValueError(
            errors.message(
                "audit(): ignore",
                expected="codes of findings, such as 'wrong-derivative'",
                found=repr(code),
                do=f"did you mean {close[0]!r}?" if close else "docs/audit.md lists them",
            )
        )
    return codes


def _findings(check: Check, subject: Subject) -> list[Finding]:
    """The findings of one check; an error that the Function raises meanwhile is a finding."""
    try:
        return list(check.run(subject))
    except Exception as error:
        method = subject.method("backward")
        return [
            Finding(
                "check-raises",
                f"the Function to run while this was checked: {check.title}",
                described(error),
                "",
                line_of_error(error, method),
                remedy(error) or "have the Function take inputs that are moved a little, or audit it at others",
            )
        ]


errors.doors(globals(), "audit")

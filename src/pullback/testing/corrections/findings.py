"""Findings of an audit: their kinds, a single one, and the result of an audit in its several forms.

`CODES` lists everything that can be found. A finding names one of them, gives the expected and the actual result, and
shows the user's own line with its correction, as code or in words. The table in docs/audit.md is printed from it.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FAULT, WARNING, NOTE = "fault", "warning", "note"
SEVERITIES = (FAULT, WARNING, NOTE)


@dataclass(frozen=True)
class Code:
    """One kind of finding: its severity, and its meaning in a sentence."""

    severity: str
    meaning: str


CODES = {
    "forward-raises": Code(FAULT, "forward fails for the inputs that were given."),
    "backward-raises": Code(FAULT, "backward fails."),
    "no-derivative": Code(NOTE, "All outputs are whole numbers, which have no derivative; forward does not say so."),
    "no-gradient": Code(FAULT, "No output requires grad, although outputs change with the inputs."),
    "gradient-count": Code(FAULT, "backward returns more or fewer gradients than forward has arguments."),
    "gradient-type": Code(FAULT, "backward returns something else than a tensor or None."),
    "gradient-for-non-tensor": Code(FAULT, "backward returns a gradient for an argument that can have none."),
    "gradient-shape": Code(FAULT, "A gradient has another shape than its input, if one that broadcasts to it."),
    "gradient-dtype": Code(FAULT, "A gradient has another dtype than its input, where the outputs keep it."),
    "device": Code(FAULT, "An output or a gradient lies on another device than the inputs."),
    "wrong-derivative": Code(FAULT, "backward and finite differences disagree."),
    "kink": Code(NOTE, "The inputs lie on a kink or jump, where backward may choose; it chose between the two sides."),
    "not-linear": Code(FAULT, "backward is not linear in the incoming gradient."),
    "wrong-derivative-float32": Code(FAULT, "backward is right in float64 and wrong in float32."),
    "wrong-value-float32": Code(FAULT, "forward computes something else in float32 than in float64."),
    "dtype-refused": Code(WARNING, "forward fails for inputs of another precision."),
    "output-dtype": Code(WARNING, "forward changes the precision: float64 comes out where float32 went in, say."),
    "lost-derivative": Code(
        FAULT,
        "A second derivative lacks what flows through a value that forward computed and kept: to backward that value "
        "is a constant.",
    ),
    "wrong-second-derivative": Code(FAULT, "The derivative of backward and finite differences of it disagree."),
    "second-derivative-raises": Code(FAULT, "backward cannot be recorded, and is not marked `once_differentiable`."),
    "forward-mode": Code(
        FAULT, "`jvp` and backward are not the two sides of one Jacobian: `<u, Jv>` is not `<J^T u, v>`."
    ),
    "vmap-rule": Code(FAULT, "Under `vmap` it gives something else than in a loop."),
    "needs-input-grad": Code(FAULT, "A gradient changes, or goes missing, when that of another input is not wanted."),
    "unneeded-gradient": Code(WARNING, "backward computes and returns a gradient that nobody wants."),
    "unneeded-work": Code(WARNING, "backward returns None for a gradient that nobody wants, but computes it."),
    "unused-output": Code(FAULT, "backward fails, or errs, where one of several outputs is not used."),
    "input-modified": Code(FAULT, "forward writes to an input that is not marked dirty."),
    "backward-modifies": Code(FAULT, "backward writes to an input, or to what was saved."),
    "grad-output-modified": Code(FAULT, "backward writes to the incoming gradient."),
    "untracked-alias": Code(FAULT, "An output shares memory with an input or an output, and nobody knows."),
    "not-deterministic": Code(FAULT, "forward gives different results for the same inputs and the same random seed."),
    "random": Code(NOTE, "forward draws random numbers; it was checked with the seed held fixed."),
    "backward-not-repeatable": Code(FAULT, "A second pass over a retained graph fails, or gives other gradients."),
    "layout-refused": Code(WARNING, "forward fails for inputs that are not contiguous."),
    "non-contiguous-input": Code(FAULT, "Inputs with another layout in memory give other results."),
    "non-contiguous-gradient": Code(FAULT, "An incoming gradient with another layout gives other gradients."),
    "zero-dim": Code(FAULT, "forward takes 0-d tensors, but backward fails or errs for them."),
    "empty": Code(FAULT, "forward takes tensors without elements, but backward fails or errs for them."),
    "hidden-parameter": Code(
        FAULT, "forward uses a tensor that requires grad and is no argument; its gradient is lost."
    ),
    "unchecked-write": Code(FAULT, "A write to an input between forward and backward changes the gradient unnoticed."),
    "shared-state": Code(FAULT, "Two calls share state: the second call changes the gradients of the first."),
    "kept-alive": Code(FAULT, "Tensors of a call outlive it and its graph."),
    "reference-cycle": Code(FAULT, "A call's memory returns only when the garbage collector runs."),
    "kept-on-ctx": Code(
        WARNING,
        "An attribute of ctx holds a tensor or array: it is not freed after backward, nor checked for writes.",
    ),
    "not-finite": Code(NOTE, "Values or derivatives are not finite at these inputs, so they could not be compared."),
    "warned": Code(WARNING, "forward or backward gives a warning."),
    "check-raises": Code(FAULT, "The Function raised an error while one of the checks ran it."),
}


@dataclass(frozen=True)
class Line:
    """A line of the user's code, or the lines of one statement."""

    file: str
    number: int
    text: str

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.number}"

    def numbers(self) -> set[int]:
        """The numbers of its lines in the file."""
        return set(range(self.number, self.number + len(self.text.splitlines())))


@dataclass(frozen=True)
class Change:
    """A line of the user's code, or several, and the text that stands there instead; none if it is left out."""

    line: Line
    text: str

    def diff(self) -> list[str]:
        """The lines that go, that come and that stay, each behind ``-``, ``+`` or a space."""
        lines = difflib.ndiff(self.line.text.splitlines(), self.text.splitlines())
        return [line[0] + line[2:] for line in lines if line[0] != "?"]


@dataclass(frozen=True)
class Finding:
    """One finding: its code, the expected and the actual result, the reason, the line, and what to do.

    patches: the corrections as code, to be tried in this order, each as its changes. In the result of an audit it is
    the one that was tried on a copy of the Function and mends it, or none. advice: what to do, in words, where there
    is none. above: the code of an earlier finding with the same changes, which are printed there.
    """

    code: str
    expected: str
    found: str
    why: str = ""
    line: Line | None = None
    advice: str = ""
    patches: tuple[tuple[Change, ...], ...] = ()
    above: str = ""

    @property
    def severity(self) -> str:
        """``"fault"``, ``"warning"`` or ``"note"``."""
        return CODES[self.code].severity

    @property
    def reason(self) -> str:
        """The expected and the actual result and the reason, in full sentences."""
        parts = [f"Expected {self.expected}; found {self.found}."]
        return " ".join([*parts, self.why] if self.why else parts)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes that mend it, if there are any."""
        return self.patches[0] if self.patches else ()

    @property
    def shown(self) -> tuple[Change, ...]:
        """The changes that are printed with it: none that stand above."""
        return () if self.above else self.changes

    @property
    def corrected(self) -> str:
        """The corrected lines, without their indentation; several changes stand one below the other."""
        return "\n".join(textwrap.dedent(change.text) for change in self.changes)

    @property
    def todo(self) -> str:
        """What to do in words, where no code says it."""
        if self.above:
            return f"The correction of `{self.above}` above mends it, too."
        return f"What to do: {self.advice}." if self.advice and not self.changes else ""

    def __str__(self) -> str:
        lines = [f"{self.severity} {self.code}: {self.reason}"]
        for change in self.shown:
            shown = [(line[0], line[1:]) for line in change.diff()]
            bare = textwrap.dedent("\n".join(text for _, text in shown)).splitlines()
            lines.append(f"  at {change.line.place}")
            lines += [f"  {mark} {text}" for (mark, _), text in zip(shown, bare, strict=True)]
        if self.line is not None and not self.changes:
            bare = textwrap.dedent(self.line.text).splitlines()
            lines += [f"  at {self.line.place}", *(f"  > {text}" for text in bare)]
        return "\n".join([*lines, f"  {self.todo}"] if self.todo else lines)

    def as_dict(self) -> dict[str, Any]:
        """The finding in JSON's types."""
        line = self.line
        return {
            "code": self.code,
            "severity": self.severity,
            "reason": self.reason,
            "expected": self.expected,
            "found": self.found,
            "why": self.why,
            "line": None if line is None else _as_dict(line) | {"text": line.text.strip()},
            "corrected": self.corrected,
            "changes": [{**_as_dict(change.line), "new": change.text} for change in self.changes],
            "advice": "" if self.changes else self.advice,
        }


def _as_dict(line: Line) -> dict[str, Any]:
    return {"file": line.file, "number": line.number, "text": line.text}


@dataclass(frozen=True)
class Audit:
    """The result of `audit`: the findings, most severe first, and which checks were made.

    function: the name of the Function. checks: the titles of the checks that were made. skipped: those that do not
    apply, each with the reason. accepted: the ignored findings, which fail nothing. Its text is for a terminal;
    `as_markdown` and `as_dict` are for pages and programs.
    """

    function: str
    findings: tuple[Finding, ...]
    checks: tuple[str, ...]
    skipped: dict[str, str]
    accepted: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no fault was found; warnings and notes are allowed."""
        return not self.of(FAULT)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the findings, each once, in the order of the findings."""
        return tuple(dict.fromkeys(finding.code for finding in self.findings))

    def of(self, severity: str) -> list[Finding]:
        """The findings of one severity."""
        return [finding for finding in self.findings if finding.severity == severity]

    @property
    def summary(self) -> str:
        """How many findings of each severity there are, in a line."""
        counts = [(len(self.of(severity)), severity) for severity in SEVERITIES]
        told = [f"{n} {name}{'s' * (n != 1)}" for n, name in counts if n]
        return ", ".join([*told, f"{len(self.accepted)} accepted"] if self.accepted else told) or "nothing found"

    def __str__(self) -> str:
        head = f"audit of {self.function}: {self.summary} ({len(self.checks)} checks)"
        shown = [*map(str, self.findings), *map(as_accepted, self.accepted)]
        return "\n".join([head, *("\n" + text for text in shown)])

    def as_markdown(self) -> str:
        """The result as a section of a Markdown page, with the lines as diffs."""
        mark = "passes" if self.ok else "fails"
        parts = [f"## `{self.function}` {mark} its audit: {self.summary}"]
        for finding in self.findings:
            parts.append(f"**{finding.severity}** `{finding.code}` {finding.reason}")
            diff = [text for change in finding.shown for text in (f"# {change.line.place}", *change.diff())]
            if not finding.changes and finding.line is not None:
                diff = [f"# {finding.line.place}", *(f" {text}" for text in finding.line.text.splitlines())]
            if diff:
                parts.append("\n".join(["```diff", *diff, "```"]))
            if finding.todo:
                parts.append(finding.todo)
        parts += [f"**accepted** `{finding.code}` {finding.reason}" for finding in self.accepted]
        parts.append(f"Checked: {', '.join(self.checks)}.")
        if self.skipped:
            parts.append("Not checked: " + "; ".join(f"{name} ({why})" for name, why in self.skipped.items()) + ".")
        return "\n\n".join(parts) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """The result in JSON's types: dicts, lists, strings, numbers, booleans and None."""
        return {
            "function": self.function,
            "ok": self.ok,
            "summary": self.summary,
            "findings": [finding.as_dict() for finding in self.findings],
            "accepted": [finding.as_dict() for finding in self.accepted],
            "checks": list(self.checks),
            "skipped": dict(self.skipped),
        }


def as_accepted(finding: Finding) -> str:
    """A finding that is ignored, in a line."""
    return f"accepted {finding.code}: {finding.reason}"


def codes_as_markdown() -> str:
    """The table of findings in docs/audit.md."""
    rows = [f"| `{name}` | {code.severity} | {code.meaning} |" for name, code in CODES.items()]
    return "\n".join(["| code | severity | meaning |", "| --- | --- | --- |", *rows]) + "\n"


def sorted_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings by severity, then in the order in which they were made, without duplicates."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda finding: SEVERITIES.index(finding.severity)))

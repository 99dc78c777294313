"""A correction is shown as code only if it mends: it is put into a copy of the class, and the copy is audited."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...autograd.function import Function
from .findings import Change, Finding
from .source import Method

Found = Mapping[str, Sequence[Finding]]
"""The findings of an audit, by the titles of the checks that were made."""

METHODS = ("forward", "backward", "setup_context", "jvp", "vmap")


class Trials:
    """The corrections tried in one audit. audited: audits a class as the Function was, or with inputs of other values,
    without corrections.
    """

    def __init__(
        self, function: type[Function], found: Found, audited: Callable[[type[Function], bool], Found]
    ) -> None:
        self.function, self.found, self.audited = function, found, audited
        self.made: dict[tuple[tuple[Change, ...], bool], Found | None] = {}

    def settled(self, finding: Finding) -> Finding:
        """The finding with the one of its patches that mends the Function and leaves the fewest findings, or none."""
        mending: list[tuple[int, tuple[Change, ...]]] = []
        for patch in finding.patches:
            after = self._after(patch, False) if _is_clear(patch) else None
            if (
                after is not None
                and _mends(finding.code, self.found, after)
                and self._holds(finding.code, patch, after)
            ):
                left = sum(map(len, after.values()))
                mending.append((left, patch))
                if not left:
                    break
        chosen = (min(mending, key=lambda pair: pair[0])[1],) if mending else ()
        return dataclasses.replace(finding, patches=chosen)

    def _holds(self, code: str, patch: tuple[Change, ...], after: Found) -> bool:
        """Whether a patch mends with inputs of other values as well; a factor may be right for some values alone."""
        elsewhere = self._after(patch, True)
        return elsewhere is not None and _counts(elsewhere)[code] <= _counts(after)[code]

    def _after(self, patch: tuple[Change, ...], elsewhere: bool) -> Found | None:
        """The findings with a patch; None if the class cannot be made anew."""
        if (patch, elsewhere) not in self.made:
            try:
                copy = rebuilt(self.function, patch)
                self.made[patch, elsewhere] = None if copy is None else self.audited(copy, elsewhere)
            except Exception:  # whatever it is, the patch is no correction
                self.made[patch, elsewhere] = None
        return self.made[patch, elsewhere]


def _is_clear(patch: tuple[Change, ...]) -> bool:
    """Whether a patch changes each of its lines, and none twice."""
    at = [(c.line.file, c.line.number + k) for c in patch for k in range(len(c.line.text.splitlines()))]
    return bool(patch) and len(set(at)) == len(at) and all(c.text != c.line.text for c in patch)


def _mends(code: str, before: Found, after: Found) -> bool:
    """Whether a finding is gone, and no check that was made before finds anything new."""
    new = any(
        title not in after or Counter(f.code for f in after[title]) - Counter(f.code for f in found)
        for title, found in before.items()
    )
    return _counts(after)[code] < _counts(before)[code] and not new


def _counts(found: Found) -> Counter[str]:
    return Counter(f.code for each in found.values() for f in each)


def rebuilt(function: type[Function], patch: Sequence[Change]) -> type[Function] | None:
    """A copy of a class, made from its source with some changes; None if that is not available.

    What its methods see from outside, they see in the copy as well. Decorators of the class are left out, for they may
    enter it somewhere.
    """
    own = (Method(function, name) for name in METHODS if name in vars(function))
    method = next(filter(None, own), None)
    if method is None or method.of is None or method.of.name != function.__name__:
        return None
    scope = dict(method.fn.__globals__)
    for name in METHODS:
        scope |= _closed_over(Method(function, name).fn)
    first, last = method.of.lineno, method.of.end_lineno or 0
    lines = list(method.lines[first - 1 : last])
    for change in sorted(patch, key=lambda change: -change.line.number):
        if change.line.file != method.file:
            return None
        at = change.line.number - first
        if 0 <= at < len(lines):
            end = at + len(change.line.text.splitlines())
            lines[at:end] = [f"{text}\n" for text in change.text.splitlines()]
        elif change.text.startswith(("import ", "from ")):
            exec(change.text.removesuffix(change.line.text), scope)
        else:
            return None
    head = "if True:\n" if lines[0][:1].isspace() else ""
    flags = method.fn.__code__.co_flags & annotations.compiler_flag
    exec(compile(head + "".join(lines), f"<{function.__name__}, corrected>", "exec", flags, True), scope)
    copy = scope[function.__name__]
    return copy if isinstance(copy, type) and issubclass(copy, Function) else None


def _closed_over(fn: Any) -> dict[str, Any]:
    """The variables of the functions around a method that it uses."""
    found = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    return found

"""A correction is shown as code only if it mends: it is put into a copy of the class, and the copy is audited."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...autograd.function import Function
from .findings import Change, Finding
from .patches import Patch, merged, touch
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
        self.made: dict[tuple[Patch, bool], Found | None] = {}

    def settled(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings, each with the one of its patches that mends the Function, or none. Those that change the same
        lines share a patch, which mends them all; and all that are shown may be made together.
        """
        groups: list[tuple[Patch, list[int]]] = []  # a patch, and the numbers of the findings that it mends
        alone = [self._alone(finding) for finding in findings]

        def mends(members: Sequence[int], patch: Patch) -> bool:
            return self._mends([findings[k].code for k in members], patch)

        for i, patch in enumerate(alone):
            near = [group for group in groups if touch(group[0], patch)]
            before, members = merged(*(p for p, _ in near)), [*(k for _, ks in near for k in ks), i]
            both = merged(before, patch) if near else patch
            found = next((p for p in dict.fromkeys((before, both, patch)) if mends(members, p)), None)
            if found is not None:
                groups = [*(group for group in groups if group not in near), (found, members)]
        groups.sort(key=lambda group: min(group[1]))
        while len(groups) > 1 and not mends([k for _, ks in groups for k in ks], merged(*(p for p, _ in groups))):
            groups.pop()
        settled = [dataclasses.replace(finding, patches=()) for finding in findings]
        for i, patch in enumerate(alone):
            if patch and groups:  # where it has no group
                code = findings[min(groups[0][1])].code
                settled[i] = dataclasses.replace(settled[i], advice=f"correct `{code}`, and audit it again")
        for patch, members in groups:
            first, *others = sorted(members)
            settled[first] = dataclasses.replace(findings[first], patches=(patch,))
            for k in others:
                settled[k] = dataclasses.replace(findings[k], patches=(patch,), above=findings[first].code)
        return settled

    def _alone(self, finding: Finding) -> Patch:
        """The one of a finding's patches that mends it and leaves the fewest findings, or none."""
        mending: list[tuple[int, Patch]] = []
        for patch in finding.patches:
            if self._mends([finding.code], patch):
                left = sum(map(len, (self._after(patch, False) or {}).values()))
                mending.append((left, patch))
                if not left:
                    break
        return min(mending, key=lambda pair: pair[0])[1] if mending else ()

    def _mends(self, codes: Sequence[str], patch: Patch) -> bool:
        """Whether a patch mends findings of these codes, and with inputs of other values as well; a factor may be right
        for some values alone.
        """
        after = self._after(patch, False) if _is_clear(patch) else None
        if after is None or not _are_gone(codes, self.found, after):
            return False
        elsewhere = self._after(patch, True)
        return elsewhere is not None and all(_counts(elsewhere)[code] <= _counts(after)[code] for code in codes)

    def _after(self, patch: Patch, elsewhere: bool) -> Found | None:
        """The findings with a patch; None if the class cannot be made anew."""
        if (patch, elsewhere) not in self.made:
            try:
                copy = rebuilt(self.function, patch)
                self.made[patch, elsewhere] = None if copy is None else self.audited(copy, elsewhere)
            except Exception:  # whatever it is, the patch is no correction
                self.made[patch, elsewhere] = None
        return self.made[patch, elsewhere]


def _is_clear(patch: Patch) -> bool:
    """Whether a patch changes each of its lines, and none twice."""
    at = [(c.line.file, number) for c in patch for number in c.line.numbers()]
    return bool(patch) and len(set(at)) == len(at) and all(c.text != c.line.text for c in patch)


def _are_gone(codes: Sequence[str], before: Found, after: Found) -> bool:
    """Whether findings are gone, and no check that was made before finds anything new."""
    new = any(
        title not in after or Counter(f.code for f in after[title]) - Counter(f.code for f in found)
        for title, found in before.items()
    )
    return Counter(codes) <= _counts(before) - _counts(after) and not new


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

"""A program that is written in another way: every edit of the findings, the inner ones first."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from .advice import Finding
from .edits import Edit, same_code
from .program_text import Text

_ROUNDS = 50


class Rewriting:
    """The text of a program while it is edited. `done` has what was written, by the lines of the program as it was."""

    def __init__(self, source: str, read: Callable[[str], list[Finding]]) -> None:
        self.source, self.read = source, read
        self.done: list[Finding] = []
        self._refused: set[tuple[str, ...]] = set()
        self._lines = list(range(len(source) + 2))  # the line as it was, by the line as it is
        self._needs: dict[str, None] = {}
        for _ in range(_ROUNDS):
            if not self._round():
                break
        if self._needs:
            self.source = _with_imports(self.source, list(self._needs))

    def _round(self) -> bool:
        """Apply the edits that have no other inside, read the program again, and say whether there were any."""
        told = [f for f in self.read(self.source) if f.edits and (f.kind, f.written, f.write) not in self._refused]
        chosen: list[Finding] = []
        for f in sorted(told, key=_length):
            if not any(_meet(e, other) for e in f.edits for c in chosen for other in c.edits):
                chosen.append(f)
        if not self._apply(chosen):
            for f in chosen:
                if not self._apply([f]):
                    self._refused.add((f.kind, f.written, f.write))
                else:
                    break  # the places of the others have changed
        return bool(told)

    def _apply(self, chosen: list[Finding]) -> bool:
        """Apply the edits of findings; not, if the program would be broken, or would mean something else."""
        edits = sorted(e for f in chosen for e in f.edits)
        new, marked = (_edited(self.source, edits, brackets) for brackets in (False, True))
        if not same_code(new, marked):
            return False
        self.done += [self._as_it_was(f) for f in chosen]
        data = self.source.encode()
        for e in reversed(edits):
            first = _count(data[: e.begin].decode()) + 1
            last = first + _count(data[e.begin : e.end].decode())
            taken = self._lines[first : last + 1]
            lines = 1 + _count(e.text)
            self._lines[first : last + 1] = [taken[min(i, len(taken) - 1)] for i in range(lines)]
        self.source = new
        self._needs |= dict.fromkeys(n for e in edits for n in e.needs)
        return True

    def _as_it_was(self, f: Finding) -> Finding:
        """A finding with the lines of the program as it was."""

        def lines(found: re.Match[str]) -> str:
            return re.sub(r"\d+", lambda n: str(self._lines[int(n[0])]), found[0])

        return f._replace(line=self._lines[f.line], why=re.sub(r"\blines? \d+(, \d+)*", lines, f.why))


def _length(f: Finding) -> tuple[int, int]:
    return max(e.end - e.begin for e in f.edits), f.edits[0].begin


def _meet(one: Edit, other: Edit) -> bool:
    """Whether two edits are in each other's way: one has the other inside, or they add at one place."""
    if one.begin == one.end and other.begin == other.end:
        return one.begin == other.begin
    return one.begin < other.end and other.begin < one.end


def _edited(source: str, edits: list[Edit], brackets: bool) -> str:
    data = source.encode()
    for e in sorted(edits, reverse=True):
        text = f"({e.text})" if brackets and e.is_value else e.text
        data = data[: e.begin] + text.encode() + data[e.end :]
    return data.decode()


def _count(text: str) -> int:
    return len(re.findall(r"\r\n|\r|\n", text))


def _with_imports(source: str, modules: list[str]) -> str:
    """A program with imports after its first ones."""
    program = Text(source)
    body = program.tree.body
    there = {ast.unparse(n) for n in body if isinstance(n, ast.Import)}
    lines = [f"import {m}" for m in sorted(modules) if f"import {m}" not in there]
    leading = 0
    while leading < len(body) and (isinstance(body[leading], ast.Import | ast.ImportFrom) or _is_text(body[leading])):
        leading += 1
    if not lines:
        return source
    newline = program.newline
    alone = [i for i in range(leading) if i + 1 == len(body) or (body[i].end_lineno or 0) < body[i + 1].lineno]
    if alone:  # after the last of them that does not share its line
        last = body[alone[-1]]
        at = program.line(last.end_lineno or last.lineno)[1]
        added = "".join(newline + line for line in lines)
    else:
        first = body[0]
        decorators = getattr(first, "decorator_list", [])
        at = program.line(min([first.lineno, *(d.lineno for d in decorators)]))[0]
        added = "".join(line + newline for line in lines)
    return (program.data[:at] + added.encode() + program.data[at:]).decode()


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

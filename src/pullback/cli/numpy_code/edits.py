"""What an editor would do for a finding: bytes of the program, and the text that replaces them."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from .dependence import Program

ATOMS = ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Tuple, ast.ListComp
_IN_BRACKETS = ast.Call, ast.keyword, ast.List, ast.Subscript


class Edit(NamedTuple):
    """A text for the bytes from `begin` to `end`; a whole expression, if `is_value`. It needs these imports."""

    begin: int
    end: int
    text: str
    is_value: bool = False
    needs: tuple[str, ...] = ()


class Editor:
    """The edits of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def replaced(self, node: ast.AST, text: str, needs: str = "") -> tuple[Edit, ...]:
        """A node that is replaced; nothing, where the text does not fit there."""
        program = self.program
        required = (*([needs] if needs else []), *self._numpy(text))
        value = _value(text)
        if value is None or not isinstance(node, ast.expr):
            parent = program.parents.get(node)
            whole = parent if isinstance(node, ast.expr) and isinstance(parent, ast.Expr) else node
            if not isinstance(whole, ast.stmt) or not _is_code(text):
                return ()
            return (Edit(*program.span(whole), text, False, required),)
        stands = _value(program.text(node))
        if stands is None or _dump(stands) != _dump(node):
            return ()  # as in an f-string, whose parts have no places before Python 3.12
        parent = program.parents[node]
        called = isinstance(parent, ast.Call) and parent.func is node
        owner = isinstance(parent, ast.Subscript) and parent.value is node
        enclosed = isinstance(parent, _IN_BRACKETS) and not called and not owner
        if not self._fits(node, text) or (not enclosed and not _stands_alone(text)):
            text = f"({text})"
        return (Edit(*program.span(node), text, True, required),)

    def _fits(self, node: ast.expr, text: str) -> bool:
        """Whether a text needs no brackets, in the expression around it."""
        whole: ast.AST = node
        while isinstance(self.program.parents[whole], ast.expr):
            whole = self.program.parents[whole]
        (first, last), (begin, end) = self.program.span(whole), self.program.span(node)
        before, after = (self.program.data[a:b].decode() for a, b in ((first, begin), (end, last)))
        return same_code(f"({before}{text}{after}\n)", f"({before}({text}\n){after}\n)")

    def statements(self, node: ast.stmt, *texts: str) -> tuple[Edit, ...]:
        """A statement that is replaced by several."""
        return (Edit(*self.program.span(node), self.between(node).join(texts)),)

    def after(self, node: ast.stmt, text: str) -> tuple[Edit, ...]:
        """A statement that is added after another."""
        begin, end = self.program.span(node)
        first, last = self.program.line(node.lineno)[0], self.program.line(node.end_lineno or node.lineno)[1]
        indent, rest = self.program.data[first:begin].decode(), self.program.data[end:last].decode()
        if indent.strip() or not re.fullmatch(r"\s*(#.*)?", rest):
            return (Edit(end, end, f"; {text}", False, self._numpy(text)),)
        return (Edit(last, last, f"{self.program.newline}{indent}{text}", False, self._numpy(text)),)

    def before(self, node: ast.stmt, text: str) -> tuple[Edit, ...]:
        """A statement that is added before another."""
        begin = self.program.span(node)[0]
        return (Edit(begin, begin, f"{text}{self.between(node)}", False, self._numpy(text)),)

    def inserted(self, node: ast.stmt, place: int, text: str) -> tuple[Edit, ...]:
        """A text that is added within a node."""
        begin = self.program.span(node)[0] + place
        return (Edit(begin, begin, text),)

    def between(self, node: ast.stmt) -> str:
        """What stands between a statement and one before it: a new line, if it begins one."""
        first, begin = self.program.line(node.lineno)[0], self.program.span(node)[0]
        indent = self.program.data[first:begin].decode()
        return "; " if indent.strip() else f"{self.program.newline}{indent}"

    def _numpy(self, text: str) -> tuple[str, ...]:
        """The import of NumPy, if the text needs it and the module has none."""
        name = self.program.numpy
        return (f"numpy as {name}",) if re.search(rf"\b{name}\.", text) and not self._has_numpy(name) else ()

    def _has_numpy(self, name: str) -> bool:
        imports = (n for n in self.program.module.own() if isinstance(n, ast.Import))
        return any(a.name == "numpy" and (a.asname or a.name) == name for n in imports for a in n.names)


def operand(text: str) -> str:
    """A text as an operand: in brackets, where it is more than a name, a call or a number."""
    return text if isinstance(_value(text), ATOMS) else f"({text})"


def same_code(one: str, other: str) -> bool:
    """Whether two texts are the same program."""
    try:
        return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
    except (SyntaxError, ValueError):
        return False


def _value(text: str) -> ast.expr | None:
    """A text as an expression, which may go over lines; or None."""
    try:
        return ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _stands_alone(text: str) -> bool:
    """Whether a text is one expression without brackets around it."""
    try:
        return bool(ast.parse(text, mode="eval"))
    except SyntaxError:
        return False


def _is_code(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except (SyntaxError, ValueError):
        return False


def _dump(node: ast.AST) -> str:
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()")

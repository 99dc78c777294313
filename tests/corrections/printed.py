"""The corrections that the library prints, read from its source, and those that a program printed.

An error says what to do behind "What to do:". The source gives that text as the argument `do` of `errors.message`, as a
variable of that name, as an entry of a dict called INSTEAD, or in the words of the message itself. What is only known
when the error is raised is a gap in the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pullback

SOURCE = Path(pullback.__file__).parent
BEGINS = "What to do"
GAP = "\0"
# Code in a correction: a call, an argument by keyword, a decorator, a dotted name, what stands in backticks.
CODE = re.compile(r"\w\(|\w=|`|@\w|\w\.[a-z_]\w*\b|\w\[")
# Code that is to be left out, or replaced: "without out=", "for numpy.array([a, b])", "leave script() and trace() out".
_ARGUMENTS = r"\([^()]*(?:\([^()]*\))?[^()]*\)"
_AWAY = re.compile(
    rf"\b(?:for|without|instead of|leave(?: out)?|not) [\w.]+(?:=\w*|{_ARGUMENTS})"
    rf"(?: (?:and|or) [\w.]+{_ARGUMENTS})?"
)
NAMES = frozenset({"do", "todo", "WRITTEN", "_WRITTEN", "_JOINED", "_OF_NUMBERS", "_OF_OPERAND", "_DO"})
TABLES = frozenset({"INSTEAD", "_INSTEAD", "_OF_NUMPY", "_DRAWN", "_WRITE", "_WITHOUT"})


def texts(node: ast.expr) -> list[str]:
    """What an expression may be as text, with gaps.

    >>> texts(ast.parse("f'write {name}.apply' + ('()' if x else '(...)')", mode="eval").body)
    ['write \\x00.apply()', 'write \\x00.apply(...)']
    """
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.JoinedStr(values=parts):
            found = [""]
            for part in parts:
                found = [a + b for a in found for b in texts(part)]
            return found
        case ast.FormattedValue(value=value):
            return texts(value)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [a + b for a in texts(left) for b in texts(right)]
        case ast.IfExp(body=body, orelse=orelse):
            return texts(body) + texts(orelse)
    return [GAP]


def in_source(source: str) -> Iterator[tuple[int, str]]:
    """The corrections in a source, and their lines."""
    tree = ast.parse(source)
    whole = (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.BinOp))
    inside = {id(part) for node in whole for part in _parts(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "do":
            found = [(node.value, texts(node.value))]
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {t.id for t in targets if isinstance(t, ast.Name)}
            found = [(node.value, texts(node.value))] if names & NAMES else []
            if names & TABLES and isinstance(node.value, ast.Dict):
                found = [(value, texts(value)) for value in node.value.values]
        elif isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and id(node) not in inside:
            found = [(node, [t.split(BEGINS, 1)[1].split(":", 1)[-1] for t in texts(node) if BEGINS in t])]
        else:
            continue
        for where, some in found:
            for text in some:
                yield where.lineno, text.split(f"{BEGINS}:", 1)[-1].strip(" .\n")


def _parts(node: ast.expr) -> Iterator[ast.AST]:
    for part in ast.walk(node):
        if part is not node and isinstance(part, ast.Constant | ast.JoinedStr | ast.BinOp):
            yield part


@cache
def with_code() -> dict[str, str]:
    """Every correction in the source that has code in it, and where it is said first."""
    found: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for _, text in in_source(path.read_text("utf-8")):
            if CODE.search(text):
                found.setdefault(text, path.relative_to(SOURCE).as_posix())
    return found


def is_said(correction: str, printed: str) -> bool:
    """Whether what was printed has this correction, whatever stands in its gaps.

    >>> is_said("write \\x00.apply()", "F is a class.\\n  What to do: write F.apply().")
    True
    """
    parts = (re.escape(part) for part in re.sub(f"{GAP}+", GAP, correction.replace("{}", GAP)).split(GAP))
    return re.search("(?s:.*?)".join(parts), printed.split(BEGINS, 1)[-1]) is not None


def names_of_code(printed: str) -> set[str]:
    """The functions that the corrections of a message call, and the arguments that they give by keyword.

    >>> sorted(names_of_code("lost.\\n  What to do: write x.sum(dim=0), or `y = numpy.exp(x)` before."))
    ['dim=', 'exp(', 'sum(', 'y=']
    """
    said = _AWAY.sub(" ", printed.split(BEGINS, 1)[-1])
    calls = {f"{name}(" for name in re.findall(r"(\w+)\(", said)}
    return calls | {f"{name}=" for name in re.findall(r"(\w+) ?=(?!=)", said)}

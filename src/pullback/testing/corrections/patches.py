"""Patches: changes to the lines of the user's file, made from pieces of its syntax tree.

New code is put where the old piece stood; the rest of the line, and each comment, stays as its author wrote it. A name
of the library is written as the file can reach it, or its import is a change as well.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
import sys
from collections.abc import Iterable, Sequence

from .findings import Change, Line
from .source import Method

ROOT = __name__.partition(".")[0]

ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple)  # they need no parentheses

Patch = tuple[Change, ...]


def edited(method: Method, *pairs: tuple[ast.AST, str]) -> Patch:
    """The changes that put new code in place of pieces of the tree; a statement is left out for the empty text.

    Comments inside a piece are put above. There are no changes if the code stays the same.
    """
    changes = []
    for start, end in _ranges(node for node, _ in pairs):
        whole = "".join(method.lines[start - 1 : end]).encode()
        new = whole
        inside = [(n, code) for n, code in pairs if start <= _at(n)[0] <= end]
        for node, code in sorted(inside, key=lambda pair: _at(pair[0]), reverse=True):
            line, column, last, stop = _at(node)
            before = sum(len(text.encode()) for text in method.lines[start - 1 : line - 1]) + column
            after = sum(len(text.encode()) for text in method.lines[start - 1 : last - 1]) + stop
            new = new[:before] + _fitting(method, node, code).encode() + new[after:]
        old, text = whole.decode().rstrip(), new.decode().rstrip()
        if text != old:
            places = sorted(_at(node) for node, _ in inside)
            above = [comment for place in places for comment in method.comments(place[:2], place[2:])]
            text = "\n".join([*(_indent(old) + comment for comment in above), *([text] if text else [])])
            changes.append(Change(Line(method.file, start, old), text))
    return tuple(changes)


def _at(node: ast.AST) -> tuple[int, int, int, int]:
    assert isinstance(node, (ast.expr, ast.stmt))
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _ranges(nodes: Iterable[ast.AST]) -> list[tuple[int, int]]:
    """The lines on which pieces of the tree lie, as ranges that do not overlap."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((_at(node)[0], _at(node)[2]) for node in nodes):
        if found and start <= found[-1][1]:
            start, end = found[-1][0], max(end, found.pop()[1])
        found.append((start, end))
    return found


def _fitting(method: Method, node: ast.AST, code: str) -> str:
    """Code for the place of a piece of the tree, in parentheses where that has to be."""
    if not isinstance(node, ast.expr):
        return code
    tree = ast.parse(code, mode="eval").body
    around = next(n for n in ast.walk(method.module) if any(child is node for child in ast.iter_child_nodes(n)))
    alone = isinstance(tree, ATOMS) or isinstance(around, (ast.stmt, ast.Tuple, ast.List, ast.keyword))
    alone = alone or (isinstance(around, ast.IfExp) and around.body is node and not isinstance(tree, ast.IfExp))
    return ast.unparse(tree) if alone else f"({ast.unparse(tree)})"


def before(method: Method, node: ast.stmt, code: str) -> Patch:
    """Code on a line of its own before a statement."""
    line = method.at(node)
    return (Change(line, f"{_indent(line.text)}{code}\n{line.text}"),)


def first(method: Method, code: str) -> Patch:
    """Code as the first statement of a method, after its docstring."""
    if method.tree is None:
        return ()
    body = method.tree.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    return before(method, body[documented], code)


def named(method: Method, path: str) -> tuple[str, Patch]:
    """How the user's file can write a public name of the library, such as "from_numpy", and the import it needs."""
    scope = getattr(method.fn, "__globals__", {})
    root = sys.modules[ROOT]
    target = operator.attrgetter(path)(root)
    for name, value in scope.items():
        if value is target:
            return name, ()
    for name, value in scope.items():
        if value is root:
            return f"{name}.{path}", ()
    home, _, name = f"{ROOT}.{path}".rpartition(".")
    return name, _imported(method, f"from {home} import {name}")


def _imported(method: Method, statement: str) -> Patch:
    """An import, after the first one of the library in the file, or before the class."""
    if not method or method.of is None:
        return ()
    for node in method.module.body:
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if any(name.partition(".")[0] == ROOT for name in names):
            line = method.at(node)
            return (Change(line, f"{line.text}\n{statement}"),)
    line = method.at(method.of.decorator_list[0] if method.of.decorator_list else method.of)
    line = Line(line.file, line.number, line.text.splitlines()[0])
    return (Change(line, f"{_indent(line.text)}{statement}\n{line.text}"),)


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def once_differentiable(method: Method) -> Patch:
    """backward, marked as one that has no derivative."""
    line = method.head()
    if line is None:
        return ()
    name, needed = named(method, "autograd.function.once_differentiable")
    return (Change(line, f"{_indent(line.text)}@{name}\n{line.text}"), *needed)


def wrapped(method: Method, path: str, *nodes: ast.expr) -> Patch:
    """Expressions as arguments of a function of the library."""
    name, needed = named(method, path)
    return (*edited(method, *((node, f"{name}({ast.unparse(node)})") for node in nodes)), *needed) if nodes else ()


def shape_of(backward: Method, keeper: Method, name: str, source: str) -> tuple[str, Patch]:
    """An expression in backward for the shape of one of forward's arguments, and the change that keeps it on ctx.

    keeper: the method that can; source: what it calls the argument.
    """
    if name in backward.fn.__code__.co_varnames:
        return f"{name}.shape", ()
    kept = f"{name.partition('[')[0]}_shape"
    change = first(keeper, f"{keeper.parameter(0, 'ctx')}.{kept} = {source}.shape")
    return f"{backward.parameter(0, 'ctx')}.{kept}", change


def merged(*patches: Patch) -> Patch:
    """Several patches as one, which makes the changes of each. Nothing, if one of them is nothing, or if two give the
    same words of the file another text each.
    """
    made: list[Change] = []
    for change in (change for patch in patches for change in patch):
        both: Change | None = change
        for other in [other for other in made if _overlap(other, change)]:
            made.remove(other)
            both = both and _both(other, both)
        if both is None:
            return ()
        made.append(both)
    return tuple(made) if all(patches) else ()


def touch(a: Patch, b: Patch) -> bool:
    """Whether two patches change the same lines."""
    return any(_overlap(one, other) for one in a for other in b)


def _overlap(a: Change, b: Change) -> bool:
    return a.line.file == b.line.file and bool(a.line.numbers() & b.line.numbers())


def _both(a: Change, b: Change) -> Change | None:
    """Two changes of lines that overlap, as one; None if they replace the same words."""
    lines = {
        n: text for c in (a, b) for n, text in zip(sorted(c.line.numbers()), c.line.text.splitlines(), strict=True)
    }
    old = _words(lines[n] for n in sorted(lines))
    edits: list[tuple[int, int, list[str]]] = []
    for c in (a, b):
        own = c.line.numbers()
        above, under = ([lines[n] for n in sorted(lines) if within(n)] for within in (min(own).__gt__, max(own).__lt__))
        new = _words([*above, *c.text.splitlines(), *under])
        steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        edits += [(start, end, new[i:j]) for tag, start, end, i, j in steps if tag != "equal"]
    made: list[str] = []
    at, here = 0, list[str]()  # up to where it is done, and what was put there
    unique = [edit for k, edit in enumerate(edits) if edit not in edits[:k]]
    for start, end, words in sorted(unique, key=lambda edit: edit[:2]):
        if start == at and here[: len(words)] == words:  # an import that both need
            continue
        if start < at:
            return None
        shared = here if start == end == at and words[: len(here)] == here else []
        made += [*old[at:start], *words[len(shared) :]]
        at, here = end, words
    line = Line(a.line.file, min(lines), "\n".join(lines[n] for n in sorted(lines)))
    return Change(line, "".join([*made, *old[at:]]).removesuffix("\n"))


def _words(lines: Iterable[str]) -> list[str]:
    return re.findall(r"\w+|\W", "".join(f"{line}\n" for line in lines))


def below(statement: ast.stmt, lines: Sequence[str]) -> str:
    """Lines of code that begin where a statement does."""
    return ("\n" + " " * statement.col_offset).join(lines)


def left_out(method: Method, node: ast.stmt | None) -> Patch:
    """A statement left out."""
    return () if node is None else edited(method, (node, ""))

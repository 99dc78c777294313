"""The user's own code: the line that a finding is about, and that line with one expression replaced.

If the source is available (`inspect.getsource`), a method is parsed into a syntax tree. Running the method under
Python's own tracing shows which line wrote to an array, and which instructions ran.
"""

from __future__ import annotations

import ast
import dis
import inspect
import sys
import textwrap
import tokenize
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ..autograd.function import Function
from .findings import Line

Instruction = tuple[CodeType, int]
"""A piece of code and the offset of one of its instructions."""

WORK = ("CALL", "BINARY", "UNARY", "COMPARE", "FORMAT", "PRECALL")
"""Prefixes of the names of instructions that compute; other instructions only move values."""

ATTEMPTS = 10  # repetitions of a pass, to see random numbers differ


class Method:
    """One method of a Function as its author wrote it; falsy if the source is not available."""

    def __init__(self, cls: type, name: str) -> None:
        found = getattr(cls, name, None)
        self.fn: Any = _nothing if found is None or found is getattr(Function, name, None) else inspect.unwrap(found)
        self.file = self.fn.__code__.co_filename if hasattr(self.fn, "__code__") else "?"
        self._tree: ast.FunctionDef | None = None
        try:
            lines, self._first = inspect.getsourcelines(self.fn)
            tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        except (OSError, TypeError, SyntaxError, IndexError, tokenize.TokenError):  # the file has changed
            return
        if isinstance(tree, ast.FunctionDef) and self.fn is not _nothing:
            self._tree, self._lines = tree, lines

    def __bool__(self) -> bool:
        return self._tree is not None

    def parameter(self, i: int, default: str) -> str:
        """The name of the i-th parameter."""
        names = list(inspect.signature(self.fn).parameters) if self.fn is not _nothing else []
        return names[i] if i < len(names) else default

    def line(self, number: int | None) -> Line | None:
        """A line by its number in the file."""
        if not self or number is None or not self._first <= number < self._first + len(self._lines):
            return None
        return Line(self.file, number, self._lines[number - self._first].rstrip())

    def at(self, node: ast.AST) -> Line | None:
        """The line on which a piece of the tree begins; for a statement of several lines, all of them, joined."""
        start, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        text = " ".join(line.strip() for line in self._lines[start - 1 : end])
        indent = len(self._lines[start - 1]) - len(self._lines[start - 1].lstrip())
        return Line(self.file, self._first + start - 1, " " * indent + text)

    def head(self) -> Line | None:
        """The line with the ``def``."""
        return self.line(self._first + self._tree.lineno - 1) if self._tree else None

    def decorator(self) -> Line | None:
        """The line with the ``@staticmethod``; another decorator goes before it."""
        return self.line(self._first) if self._tree else None

    def statements(self) -> Iterator[ast.stmt]:
        """All statements, nested ones included, in the order of the text."""
        found = [node for node in ast.walk(self._tree) if isinstance(node, ast.stmt)] if self._tree else []
        yield from sorted(found[1:], key=lambda node: node.lineno)

    def calls(self, name: str) -> Iterator[tuple[ast.stmt, ast.Call]]:
        """The statements that are calls ``something.name(...)``."""
        for statement in self.statements():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                called = statement.value.func
                if isinstance(called, ast.Attribute) and called.attr == name:
                    yield statement, statement.value

    def stores(self, attribute: str) -> ast.Assign | None:
        """The statement ``something.attribute = ...``."""
        for statement in self.statements():
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    parts = target.elts if isinstance(target, ast.Tuple) else [target]
                    if any(isinstance(part, ast.Attribute) and part.attr == attribute for part in parts):
                        return statement
        return None

    def returned(self) -> tuple[ast.Return, list[ast.expr]] | None:
        """The last return statement, and the expressions it returns."""
        found = [s for s in self.statements() if isinstance(s, ast.Return) and s.value is not None]
        if not found or found[-1].value is None:
            return None
        value = found[-1].value
        return found[-1], list(value.elts) if isinstance(value, ast.Tuple) else [value]

    def gradient(self, i: int) -> tuple[ast.stmt, ast.expr] | None:
        """The statement that computes the i-th returned value, and the expression for it in that statement."""
        found = self.returned()
        if found is None or i >= len(found[1]):
            return None
        statement: ast.stmt = found[0]
        value = _chosen(found[1][i])
        if isinstance(value, ast.Name):
            name = value.id
            for other in self.statements():
                if isinstance(other, ast.Assign) and not isinstance(other.value, ast.Constant):
                    target = other.targets[0]
                    if isinstance(target, ast.Name) and target.id == name:
                        return other, _chosen(other.value)
        return statement, value


def _chosen(value: ast.expr) -> ast.expr:
    """The gradient in ``gradient if wanted else None``."""
    return value.body if isinstance(value, ast.IfExp) and not isinstance(value.body, ast.Constant) else value


def _nothing() -> None:
    """Stands in for a method that does not exist."""


def replaced(statement: ast.stmt, old: ast.expr, new: str) -> str:
    """The statement with one of its expressions, or the whole statement if the expression is not in it, replaced."""

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return ast.parse(new, mode="eval").body if node is old else self.generic_visit(node)

    return ast.unparse(Swap().visit(statement))


def shape_of(method: Method, name: str) -> tuple[str, str]:
    """An expression for the shape of one of forward's arguments in backward, and the further code that it needs."""
    if name in getattr(method.fn, "__code__", _nothing.__code__).co_varnames:
        return f"{name}.shape", ""
    plain = name.partition("[")[0]
    return f"ctx.{plain}_shape", f"  # with ctx.{plain}_shape = {plain}.shape in forward"


def text(node: ast.AST) -> str:
    """The text of an expression."""
    return ast.unparse(node)


def described(error: BaseException) -> str:
    """An error in one line, without its remedy."""
    return f"{type(error).__name__}: {str(error).splitlines()[0].rstrip('.') if str(error) else 'no message'}"


def remedy(error: BaseException) -> str:
    """The remedy that an error of the library names."""
    _, said, what = str(error).partition("What to do: ")
    return f"What to do: {what.splitlines()[0].rstrip('.')}." if said else ""


def remedy_lines(error: BaseException) -> str:
    """The lines of code that an error of the library tells the user to write, if any."""
    return textwrap.dedent("\n".join(str(error).partition("What to do: ")[2].splitlines()[1:]))


def arose_in(error: BaseException, method: Method) -> bool:
    """Whether an error arose while a method ran."""
    places = ((f.f_code.co_filename, f.f_code.co_name) for f, _ in traceback.walk_tb(error.__traceback__))
    return (method.file, getattr(method.fn, "__name__", "")) in places


def line_of_error(error: BaseException, method: Method) -> Line | None:
    """The line of the user's file in which an error arose."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == method.file]
    frames = [f for f in frames if f.name == getattr(method.fn, "__name__", "")] or frames
    if not frames:
        return method.head()
    return Line(frames[-1].filename, frames[-1].lineno or 0, frames[-1].line or "")


class traced:  # noqa: N801 - a context manager
    """A context in which `each` gets the trace events of one file; the earlier trace function is then restored."""

    def __init__(self, file: str, each: Callable[[FrameType, str], None]) -> None:
        self.file, self.each = file, each

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        sys.settrace(self._call)

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self.before)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._event if frame.f_code.co_filename == self.file else None

    def _event(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.each(frame, event)
        return self._event


def line_that(changed: Callable[[], bool], run: Callable[[], Any], method: Method) -> Line | None:
    """The first line of the user's file that changes something while `run` runs."""
    last: dict[FrameType, int] = {}
    found: list[int] = []

    def each(frame: FrameType, event: str) -> None:
        if not found and frame in last and changed():
            found.append(last[frame])
        last[frame] = frame.f_lineno

    with traced(method.file, each):
        try:
            run()
        except Exception:  # it has run before; only the line matters now
            return None
        finally:
            last.clear()
    return method.line(found[0]) if found else None


def line_that_differs(run: Callable[[], Any], method: Method) -> Line | None:
    """The first line after which a local tensor differs between two runs of `run`."""
    before = _locals(run, method)
    for _ in range(ATTEMPTS):
        for (number, first), (other, second) in zip(before, _locals(run, method), strict=False):
            if number != other or first.keys() != second.keys():
                return None
            if not all(np.array_equal(a, second[name], equal_nan=a.dtype.kind in "fc") for name, a in first.items()):
                return method.line(number)
    return None


def _locals(run: Callable[[], Any], method: Method) -> list[tuple[int, dict[str, Any]]]:
    """The lines of a method as they run, each with copies of the tensors and arrays it leaves in local variables."""
    found: list[tuple[int, dict[str, Any]]] = []
    last: list[int] = []

    def each(frame: FrameType, event: str) -> None:
        if frame.f_code is method.fn.__code__:
            if last:
                held = {name: getattr(value, "_data", value) for name, value in frame.f_locals.items()}
                arrays = {name: np.array(value) for name, value in held.items() if isinstance(value, np.ndarray)}
                found.append((last.pop(), arrays))
            last.append(frame.f_lineno)

    with traced(method.file, each):
        run()
    return found


def executed(run: Callable[[], Any], method: Method, but: Collection[str]) -> Counter[Instruction]:
    """How often each instruction runs in a method and in its callees, except in functions of some files."""
    found: Counter[Instruction] = Counter()
    inside: list[FrameType] = []

    def call(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code is method.fn.__code__:
            inside.append(frame)
        if not inside or frame.f_code.co_filename in but:
            return None
        frame.f_trace = each  # before it is asked for instructions: Python 3.13 looks for it then
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return each

    def each(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            found[frame.f_code, frame.f_lasti] += 1
        elif event == "return" and inside and frame is inside[-1]:
            inside.pop()
        return each

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks only as it starts if any frame wants them
    try:
        sys.settrace(call)
        run()
    finally:
        sys.settrace(before)
    return found


def works(instructions: Counter[Instruction]) -> bool:
    """Whether any of these instructions computes something."""
    for code in {code for code, _ in instructions}:
        offsets = {offset for c, offset in instructions if c is code}
        names = (i.opname for i in dis.get_instructions(code) if i.offset in offsets)
        if any(name.startswith(WORK) for name in names):
            return True
    return False

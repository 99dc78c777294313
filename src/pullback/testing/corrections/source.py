"""The user's own code: the line that a finding is about.

If the source is available (`inspect.findsource`), it is parsed into a syntax tree. Running the method under
Python's own tracing shows which line wrote to an array, and which instructions ran.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import io
import sys
import tokenize
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ...autograd.function import Function
from .findings import Line

Instruction = tuple[CodeType, int]
"""A piece of code and the offset of one of its instructions."""

WORK = ("CALL", "BINARY", "UNARY", "COMPARE", "FORMAT", "PRECALL")
"""Prefixes of the names of instructions that compute; other instructions only move values."""

ATTEMPTS = 10  # repetitions of a pass, to see random numbers differ


@functools.lru_cache(maxsize=8)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


@functools.lru_cache(maxsize=8)
def _comments(source: str) -> list[tuple[tuple[int, int], str]]:
    """The comments of a file, each with the number of its line and its column in bytes."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [token for token in tokens if token.type == tokenize.COMMENT]
    return [((t.start[0], len(t.line[: t.start[1]].encode())), t.string) for t in found]


class Method:
    """One method of a Function as its author wrote it; falsy if the source is not available.

    lines: those of the whole file. of: the class around it.
    """

    def __init__(self, cls: type, name: str) -> None:
        found = getattr(cls, name, None)
        self.fn: Any = _nothing if found is None or found is getattr(Function, name, None) else inspect.unwrap(found)
        self.file = self.fn.__code__.co_filename if hasattr(self.fn, "__code__") else "?"
        self.tree: ast.FunctionDef | None = None
        self.of: ast.ClassDef | None = None
        if self.fn is _nothing or not hasattr(self.fn, "__code__"):
            return
        try:
            self.lines = inspect.findsource(self.fn)[0]
            self.module = _parsed("".join(self.lines))
        except (OSError, TypeError, SyntaxError, IndexError, tokenize.TokenError):  # the file has changed
            return
        for cls_node in (node for node in ast.walk(self.module) if isinstance(node, ast.ClassDef)):
            for node in cls_node.body:
                if isinstance(node, ast.FunctionDef) and _first(node) == self.fn.__code__.co_firstlineno:
                    self.tree, self.of = node, cls_node

    def __bool__(self) -> bool:
        return self.tree is not None

    def parameter(self, i: int, default: str) -> str:
        """The name of the i-th parameter."""
        names = list(inspect.signature(self.fn).parameters) if self.fn is not _nothing else []
        return names[i] if i < len(names) else default

    def inputs(self) -> list[str]:
        """The inputs of the call, as forward or setup_context can write them."""
        names = list(inspect.signature(self.fn).parameters)[1:]
        if getattr(self.fn, "__name__", "") != "setup_context":
            return names
        taken = [s for s in self.statements() if isinstance(s, ast.Assign) and text(s.value) == names[0]]
        parts = [part for s in taken for t in s.targets for part in (t.elts if isinstance(t, ast.Tuple) else [])]
        return [*map(text, parts), *(f"{names[0]}[{i}]" for i in range(max(1, len(parts)) + 9))]

    def line(self, number: int | None) -> Line | None:
        """A line of the method by its number in the file."""
        if self.tree is None or number is None or not _first(self.tree) <= number <= (self.tree.end_lineno or 0):
            return None
        return Line(self.file, number, self.lines[number - 1].rstrip())

    def at(self, node: ast.AST) -> Line:
        """The lines of a piece of the tree."""
        start, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        return Line(self.file, start, "".join(self.lines[start - 1 : end]).rstrip())

    def comments(self, start: tuple[int, int], end: tuple[int, int]) -> list[str]:
        """The comments between two places, each the number of a line and a column in bytes."""
        return [comment for place, comment in _comments("".join(self.lines)) if start <= place < end]

    def head(self) -> Line | None:
        """The line with the ``def``."""
        return self.line(self.tree.lineno) if self.tree else None

    def statements(self) -> Iterator[ast.stmt]:
        """All statements, nested ones included, in the order of the text."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)] if self.tree else []
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
        return found[-1], list(value.elts) if isinstance(value, (ast.Tuple, ast.List)) else [value]

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


def _first(node: ast.FunctionDef | ast.ClassDef) -> int:
    """The number of the first line, that of a decorator if there is one."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def text(node: ast.AST) -> str:
    """The text of an expression."""
    return ast.unparse(node)


def described(error: BaseException) -> str:
    """An error in one line, without its remedy."""
    return f"{type(error).__name__}: {str(error).splitlines()[0].rstrip('.') if str(error) else 'no message'}"


def remedy(error: BaseException) -> str:
    """The remedy that an error of the library names."""
    return " ".join(str(error).partition("What to do: ")[2].split()).rstrip(".:")


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

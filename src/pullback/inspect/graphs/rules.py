"""The formulas of a node, for its operation and its gradient, read from the source code.

An operation's rule is often an expression in the entry of the table, with others around it on the line; the positions
that Python keeps for its tracebacks give its beginning and end.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import Any

from ...autograd.context import FunctionNode
from ...table.nodes import OpNode


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """call: the call. words: a line that describes it. formula: the source of the derivative, found at
    `place`, a file and a line.
    """

    call: str
    words: str
    formula: str
    place: str


def key_of(node: Any) -> str:
    """A key for the rule of a node, the same for all nodes with this rule."""
    if isinstance(node, OpNode):
        return f"{node.op.name} {node.plan.wanted}"
    if isinstance(node, FunctionNode):
        cls = node._forward_cls
        return f"{cls.__module__}.{cls.__qualname__} {id(cls)}"
    return type(node).__name__


def rule_of(node: Any) -> Rule:
    """The rule of a node."""
    if isinstance(node, OpNode):
        return _of_operation(node)
    if isinstance(node, FunctionNode):
        return _of_function(node._forward_cls)
    return Rule("", _first_line(type(node)), "", "")


def _of_operation(node: OpNode) -> Rule:
    op = node.op
    wanted = [op.params[i] for i in node.plan.wanted]
    formulas = []
    for name in wanted:
        rule = op.rules[name]
        source = _expression(rule)
        formulas.append(f"grad_{name} = {source}" if source else f"# grad_{name}\n{_source(rule)}")
    return Rule(op.name, _first_line(op.call), "\n".join(formulas), _place(op.rules[wanted[0]]) if wanted else "")


def _of_function(cls: Any) -> Rule:
    written = "vjp" if "vjp" in vars(cls) else "backward"
    parts = [
        _source(getattr(cls, name)) for name in ("forward", "setup_context", written) if name in cls._contract.methods
    ]
    formula = "\n".join(part for part in parts if part)
    return Rule(f"{cls.__name__}.apply", _first_line(cls), formula, _place(getattr(cls, written)))


def names_of_saved(cls: Any) -> list[str]:
    """The variables to which a Function's backward unpacks ``ctx.saved_tensors``; none if it does not, or no source."""
    method = getattr(cls, "backward", None)
    source = _source(method) if method is not None else ""
    try:
        body = ast.walk(ast.parse(source))
    except SyntaxError:  # a lambda in the middle of a line
        return []
    for part in body:
        if (
            isinstance(part, ast.Assign)
            and isinstance(part.value, ast.Attribute)
            and part.value.attr == "saved_tensors"
        ):
            target = part.targets[0]
            if isinstance(target, (ast.Tuple, ast.List)) and all(isinstance(t, ast.Name) for t in target.elts):
                return [ast.unparse(t) for t in target.elts]
    return []


def _first_line(thing: Any) -> str:
    """The first line of its own docstring."""
    text = (thing.__doc__ or "").strip()
    return text.splitlines()[0].replace("``", "") if text else ""


def _source(fn: Callable[..., Any]) -> str:
    """The source of a function; "" if it is not available."""
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(fn))).rstrip()
    except (OSError, TypeError):
        return ""


def _place(fn: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def _expression(rule: Callable[..., Any]) -> str:
    """The expression that a rule returns, if the rule is a single expression on one line; else ""."""
    code = rule.__code__
    spans = [(line, start, end) for line, last, start, end in code.co_positions() if line == last and end]
    lines = {line for line, _, _ in spans}
    if len(lines) != 1:
        return ""
    written = linecache.getline(code.co_filename, lines.pop() or 0).encode()
    text = written[min(start or 0 for _, start, _ in spans) : max(end or 0 for _, _, end in spans)].decode()
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return ""
    return text

"""What is set for a while is set within the `try` that puts it back, for an exception may come at any line.

`tests/interrupts.py` raises at the lines that its programs reach. This reads all of the library: no statement before a
`try` sets what the `finally`, or the `except BaseException`, of that `try` puts back; and a mode of the thread is set
within a `try`, in a function that puts it back, or by one of `SETTERS`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pullback

LIBRARY = Path(pullback.__file__).parent

OPPOSITES = {
    "gc.enable": "gc.disable",
    "tracemalloc.stop": "tracemalloc.start",
    "sys.modules.pop": "sys.modules[]",
}
"""Where one function puts back what another one, or a subscript, sets."""

SETTERS = {
    "autograd/grad_mode.py:_set": "sets the mode for the user, until it is set again",
    "autograd/grad_mode.py:__init__": "the same: as in PyTorch, the call sets the mode",
    "autograd/saved.py:changed": "computes one mode from others",
    "diagnose/listeners.py:note_places": "computes one mode from others",
    "diagnose/anomaly.py:_set": "is called within the try of __enter__",
    "tensor/overrides.py:_set": "is called within the try of __enter__",
    "tensor/overrides.py:_leave": "puts the mode back",
    "table/levels.py:_close": "puts the mode back",
}
"""The functions that set a mode of the thread outside every `try`, and why they may."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def places(statement: ast.AST, writers: dict[str, set[str]]) -> set[str]:
    """What a statement sets: attributes, subscripts, global names, and functions that set something when called."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(ast.unparse(node))
            if isinstance(node, ast.Subscript):
                found.add(f"{ast.unparse(node.value)}[]")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            found |= writers.get(called, set())
            if called.rpartition(".")[2].startswith(("set", "chdir", "enable", "disable", "start", "stop", "pop")):
                found.add(called)
            if called == "setattr":
                found.add(f"setattr {ast.unparse(node.args[0])}")
    return found | {OPPOSITES[one] for one in found if one in OPPOSITES}


def put_back(block: ast.Try, writers: dict[str, set[str]]) -> set[str]:
    """What the `finally` and the `except BaseException` of a `try` set."""
    handlers = [h for h in block.handlers if h.type is not None and ast.unparse(h.type) == "BaseException"]
    statements = [*block.finalbody, *[s for h in handlers for s in h.body]]
    return set().union(*[places(s, writers) for s in statements])


def local_names(function: Function) -> set[str]:
    """The names that a function assigns for itself alone."""
    shared = {
        name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    }
    assigned = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return assigned - shared


def before_its_try(function: Function, writers: dict[str, set[str]]) -> Iterator[str]:
    """What a function sets too early: before the `try` that puts it back, in the blocks around that."""

    def visit(body: list[ast.stmt], earlier: list[ast.stmt]) -> Iterator[str]:
        for i, statement in enumerate(body):
            so_far = [*earlier, *body[:i]]
            if isinstance(statement, ast.Try) and (back := put_back(statement, writers) - local_names(function)):
                for one in so_far:
                    if not isinstance(one, ast.FunctionDef) and (early := places(one, writers) & back):
                        yield f"{function.name}, line {one.lineno}: sets {', '.join(sorted(early))} before its try"
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, None)
                if isinstance(inner, list) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                    # what a `try` around puts back may be set anywhere in it
                    yield from visit(inner, [] if isinstance(statement, ast.Try) else so_far)

    yield from visit(function.body, [])


def modes_in_the_open(function: Function) -> Iterator[str]:
    """The modes of the thread that a function sets outside every `try`."""
    if function.name in ("__exit__", "_put_back"):
        return
    names = {"thread.modes"} | {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and "thread.modes" in ast.unparse(node.value).split(", ")
        for target in ast.walk(node.targets[0])
        if isinstance(target, ast.Name) and target.id == "modes"
    }

    def visit(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Try):
            return
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in names:
            yield f"{function.name}, line {node.lineno}: sets {ast.unparse(node)} outside a try"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr" and ast.unparse(node.args[0]) in names:
            yield f"{function.name}, line {node.lineno}: sets a mode outside a try"
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.FunctionDef, ast.Lambda)):
                yield from visit(child)

    for statement in function.body:
        yield from visit(statement)


def faults(source: str) -> list[str]:
    """All that a file sets in the wrong place."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    writers = {
        function.name: {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
        for function in functions
    }
    return [fault for f in functions for fault in (*before_its_try(f, writers), *modes_in_the_open(f))]


def test_what_is_put_back_is_set_within_the_try() -> None:
    found = [
        f"{path.relative_to(LIBRARY).as_posix()}:{fault}"
        for path in sorted(LIBRARY.rglob("*.py"))
        for fault in faults(path.read_text("utf-8"))
    ]
    may = {fault.partition(",")[0] for fault in found if fault.endswith("outside a try")} & set(SETTERS)
    assert [fault for fault in found if fault.partition(",")[0] not in may] == []
    assert may == set(SETTERS), "listed, and set nothing"


WRONG = {
    "an attribute": """
def f(self):
    before = self.on
    self.on = True
    try:
        return work()
    finally:
        self.on = before
""",
    "an attribute, in a block around": """
def f(self, wanted):
    before = self.on
    if wanted:
        self.on = True
    with lock:
        try:
            return work()
        finally:
            self.on = before
""",
    "a step": """
def f():
    cache.depth += 1
    try:
        yield
    finally:
        cache.depth -= 1
""",
    "one of several": """
def f():
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = a, b
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
""",
    "an item": """
def f(module):
    sys.modules[NAME] = module
    try:
        return work()
    finally:
        del sys.modules[NAME]
""",
    "a call": """
def f():
    before = sys.gettrace()
    sys.settrace(each)
    try:
        return work()
    finally:
        sys.settrace(before)
""",
    "the opposite call": """
def f():
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()
""",
    "a global, in a function": """
def choose(value):
    global options
    options = value

def f(value):
    global options
    before = options
    choose(value)
    try:
        yield
    finally:
        options = before
""",
    "an except that puts it back": """
def f(self):
    self.on = True
    try:
        return work()
    except BaseException:
        self.on = False
        raise
""",
    "no try at all": """
def f():
    modes = thread.modes
    modes.inference = True
    result = work()
    modes.inference = False
    return result
""",
    "no try, by its name": """
def f(name):
    setattr(thread.modes, name, True)
""",
}

RIGHT = {
    "set within": """
def f(self):
    before = self.on
    try:
        self.on = True
        return work()
    finally:
        self.on = before
""",
    "set within the outer one of two": """
def f():
    modes = thread.modes
    before = modes.inference
    try:
        try:
            modes.inference = True
            return work()
        finally:
            modes.inference = before
    except BaseException:
        modes.inference = before
        raise
""",
    "another attribute": """
def f(self):
    self.count = 0
    try:
        self.on = True
        return work()
    finally:
        self.on = False
""",
    "a name of its own": """
def f():
    found = None
    try:
        found = work()
    finally:
        found = None
""",
    "an error that is answered": """
def f(self):
    self.value = 0
    try:
        self.value = int(text)
    except ValueError:
        self.value = 1
""",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_planted_fault_is_found(name: str) -> None:
    assert faults(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_left_alone(name: str) -> None:
    assert faults(RIGHT[name]) == []

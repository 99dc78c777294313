"""Which Tensor an array may be made like: one that it gets values of, or else one that the function gets."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from .certain import Certain
from .dependence import CONSTANT, VALUE, Program, Scope, key_of

Given = tuple[ast.expr, Scope]
"""An expression, and the scope that it stands in."""


def tensor_for(program: Program, scope: Scope, at: ast.stmt, written: list[ast.AST]) -> str:
    """The text of a Tensor that is there before a statement, for an array that these nodes write to; or "".

    It is computed of what the written values are computed of: of the parameters that are looked for, not of data alone.
    """
    search = _Search(program, scope, at)
    most = rank_of_writes(program, written)
    ranked = [(rank(program, *g), g[0]) for node in written for g in search.of_write(node)]
    found = (program.text(value) for r, value in sorted(ranked, key=lambda pair: pair[0]) if r <= most)
    return next(itertools.chain(found, search.of_entries(most), search.of_parameters(most)), "")


def rank_of_writes(program: Program, written: list[ast.AST]) -> int:
    """The least rank of what is written."""
    given = ((v, program.scope_of(node)) for node in written for v in _values(program, node))
    return min((rank(program, *g) for g in given), default=LAST)


def rank(program: Program, value: ast.AST, scope: Scope) -> int:
    """The place of the first parameter that a value is computed of, where the program is called from outside.

    Functions have what is looked for first, and data after it.
    """
    waiting, seen, found = [(value, scope)], set(), LAST
    while waiting:
        value, scope = waiting.pop()
        if (value, scope) in seen:
            continue
        seen.add((value, scope))
        parts = list(ast.iter_child_nodes(value))
        if isinstance(value, ast.Name) and value.id in scope.parameters:
            calls = [(v, c) for n, v, c in program.given(scope) if n == value.id and not program.is_outside(c)]
            own = [p for p in scope.parameters if p != "self" and scope.levels.get(p) == VALUE]
            if not calls and value.id in own:  # an object that is made outside holds data
                found = min(found, own.index(value.id) + (_OF_OBJECTS if scope.name == "__init__" else 0))
            waiting += calls
        elif isinstance(value, ast.expr) and key_of(value) and (bound := program.bindings(value, scope)):
            waiting += [(v, s) for s, v in bound]
            continue
        elif isinstance(value, ast.Call) and not program.full_name(value.func):
            inner = program.functions.get(key_of(value.func).lstrip("."), [])
            waiting += [(r, s) for s in inner for r in s.returned]
            parts = parts[1:] if isinstance(value.func, ast.Name) else parts
        waiting += [(part, scope) for part in parts]
    return found


def _values(program: Program, write: ast.AST) -> list[ast.expr]:
    """What a write computes its value of."""
    match write:
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            return [value]
        case ast.Call(args=args, keywords=keywords):
            return [*reversed(args), *(k.value for k in keywords)]
        case ast.expr():  # what is given to a function that writes to it
            call = program.parents.get(write)
            return [a for a in call.args if a is not write] if isinstance(call, ast.Call) else []
    return []


class _Search(Certain):
    """What there is before a statement of a scope."""

    def __init__(self, program: Program, scope: Scope, at: ast.stmt) -> None:
        super().__init__(program, scope)
        self.at = at
        self._seen: set[ast.AST] = set()

    def of_write(self, node: ast.AST) -> Iterator[Given]:
        """The names, attributes and entries that a write computes its value of."""
        for value in _values(self.program, node):
            yield from self._of(value, self.program.scope_of(node))

    def of_entries(self, most: int) -> Iterator[str]:
        """The entries, ``p["rate"]``, of parameters of the function, or of those around it, that the file takes."""
        taken = [n for n in ast.walk(self.program.tree) if isinstance(n, ast.Subscript) and key_of(n)]
        scope: Scope | None = self.scope
        while scope is not None:
            for n in taken:
                name = n.value.id if isinstance(n.value, ast.Name) else ""
                if (
                    name in scope.parameters
                    and isinstance(n.ctx, ast.Load)
                    and rank(self.program, n.value, scope) <= most
                ):
                    yield self.program.text(n)
            scope = scope.parent

    def of_parameters(self, most: int) -> Iterator[str]:
        """The parameters that are computed with, of the function and of those around it."""
        scope: Scope | None = self.scope
        while scope is not None:
            for name in scope.parameters:
                depends = scope.levels.get(name) == VALUE and not self._gets_constants(name, scope)
                depends &= name != "self" and rank(self.program, ast.Name(name, ast.Load()), scope) <= most
                if depends and self._is_number_or_array(name, scope):
                    yield name
            scope = scope.parent

    def _of(self, value: ast.AST, scope: Scope) -> Iterator[Given]:
        """The names, attributes and entries in a value: those that are there, and what others are computed of."""
        if value in self._seen:
            return
        self._seen.add(value)
        if isinstance(value, ast.expr) and key_of(value):
            if self.program.full_name(value):
                return
            if self.program.level(value, scope) == VALUE:
                plain = any(self.program.level(v, s) == CONSTANT for s, v in self.program.bindings(value, scope))
                if not plain and self._is_there(value, scope) and not self._is_object(value):
                    yield value, scope
                else:
                    for home, other in self.program.bindings(value, scope):
                        yield from self._of(other, home)
                    yield from self._given(value, scope)
            return
        parts: list[ast.AST] = list(ast.iter_child_nodes(value))
        match value:
            case ast.Call(func=func, args=args, keywords=keywords):
                owner = [func.value] if isinstance(func, ast.Attribute) and not self.program.full_name(func) else []
                parts = [*owner, *args, *(k.value for k in keywords)]
            case ast.Subscript(value=of):
                parts = [of]
            case ast.Attribute(value=of):
                parts = [of]
            case ast.Lambda():
                return
        for part in parts:
            yield from self._of(part, scope)
        if isinstance(value, ast.Call) and not self.program.full_name(value.func):
            for inner in self.program.functions.get(key_of(value.func).lstrip("."), []):
                for result in inner.returned:
                    yield from self._of(result, inner)

    def _given(self, value: ast.expr, scope: Scope) -> Iterator[Given]:
        """What a parameter of another function is given, where that is called."""
        if scope is not self.scope and isinstance(value, ast.Name) and value.id in scope.parameters:
            for name, given, caller in self.program.given(scope):
                if name == value.id:
                    yield from self._of(given, caller)

    def _is_there(self, value: ast.expr, scope: Scope) -> bool:
        """Whether an expression of a scope may stand in the statement, with the value that it has there."""
        root = value
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name):
            return False
        if root.id == "self" and scope.of_class == self.scope.of_class and "self" in self.scope.parameters:
            scope = self.scope  # another method has the same object
        home = self.program.home(root.id, scope)
        if home is None or home is not self.program.home(root.id, self.scope) or self._gets_constants(root.id, home):
            return False
        if home is not self.scope:
            return home is not self.program.module or self._is_bound(root, home)
        if isinstance(value, ast.Attribute | ast.Subscript):
            places = [v for _, v in self.program.bindings(value, scope)]
            own = [v for v in places if self.program.scope_of(v) is self.scope]
            before = [v for v in own if v.lineno < self.at.lineno]
            if (own and not before) or (places and self.scope.name == "__init__" and not before):
                return False
        return root.id in self.scope.parameters or self._is_bound(root, home)

    def _gets_constants(self, name: str, scope: Scope) -> bool:
        """Whether a parameter gets constants alone, where functions of the file call this one with their values."""
        if name not in scope.parameters or name == "self":
            return False
        given = [(value, caller) for n, value, caller in self.program.given(scope) if n == name]
        levels = [self.program.level(v, caller) for v, caller in given if not self.program.is_outside(caller)]
        return bool(levels) and max(levels) != VALUE

    def _is_bound(self, name: ast.Name, home: Scope) -> bool:
        """Whether a name is bound before the statement, whatever branches are taken."""
        around: list[ast.AST] = [self.at]
        beside: list[ast.AST] = []
        while (parent := self.program.parents.get(around[-1])) is not None:
            bodies = [body for _, body in ast.iter_fields(parent) if isinstance(body, list) and around[-1] in body]
            beside += [s for body in bodies for s in body]
            around.append(parent)
        for node in home.own():
            if not isinstance(node, ast.Name) or node.id != name.id or not isinstance(node.ctx, ast.Store):
                continue
            statement: ast.AST = node
            while not isinstance(statement, ast.stmt | ast.comprehension):
                statement = self.program.parents[statement]
            if isinstance(statement, ast.AugAssign | ast.comprehension) or statement.lineno >= self.at.lineno:
                continue
            of_header = isinstance(statement, ast.For | ast.With)
            if statement in around if of_header else statement in beside:
                return True
        return False

    def _is_object(self, value: ast.expr) -> bool:
        """Whether a value is a list, or is called, or has attributes and entries by names: it is no array."""
        if self.is_list(value):
            return True
        if not isinstance(value, ast.Name):
            return False
        uses = (n for n in ast.walk(self.program.tree) if isinstance(n, ast.Name) and n.id == value.id)
        return any(self._is_use_of_object(n) for n in uses)

    def _is_use_of_object(self, name: ast.Name) -> bool:
        match self.program.parents.get(name):
            case ast.Call(func=func):
                return func is name
            case ast.Subscript(value=value) as parent:
                return value is name and key_of(parent) != ""
            case ast.Attribute() as parent:
                call = self.program.parents.get(parent)
                if isinstance(call, ast.Call) and call.func is parent:
                    return any(s.of_class for s in self.program.functions.get(parent.attr, []))
                return parent.attr not in _OF_ARRAYS
        return False

    def _is_number_or_array(self, name: str, scope: Scope) -> bool:
        """Whether a parameter is computed with."""
        uses = [n for n in scope.own() if isinstance(n, ast.Name) and n.id == name]
        if any(self._is_use_of_object(n) or self.is_list(n) for n in uses):
            return False
        for n in uses:
            match self.program.parents[n]:
                case ast.BinOp() | ast.UnaryOp() | ast.AugAssign() | ast.Subscript() | ast.For():
                    return True
                case ast.Call(func=func) if self.program.full_name(func).startswith(("numpy.", "math.", "scipy.")):
                    return True
        return False


_OF_OBJECTS = 1 << 10
"""Added to the rank of what a constructor gets from outside."""

LAST = 1 << 30
"""The rank of a constant."""

_OF_ARRAYS = frozenset("shape size ndim dtype T real imag flat".split())

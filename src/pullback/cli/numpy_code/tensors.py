"""Which Tensor an array may be made like: one that it gets values of, or else one that the function gets."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from .certain import Certain
from .dependence import CONSTANT, VALUE, Program, Scope, defaults_of, key_of, root_of
from .states import State

Given = tuple[ast.expr, Scope]
"""An expression, and the scope that it stands in."""


def tensor_for(program: Program, scope: Scope, at: ast.stmt, written: list[ast.AST]) -> str:
    """The text of a Tensor that is there before a statement, for an array that these nodes write to; or "".

    It is computed of what the written values are computed of: of the parameters that are looked for, not of data alone.
    """
    search = _Search(program, scope, at)
    most = rank_of_writes(program, written)
    given = [g for node in written for g in search.of_write(node)]
    ranked = [(rank(program, *g), search.distance(g[0]), g[0]) for g in given]
    found = (program.text(value) for r, _, value in sorted(ranked, key=lambda found: found[:2]) if r <= most)
    return next(itertools.chain(found, search.of_entries(most), search.of_parameters(most)), "")


def state_for(program: Program, scope: Scope, at: ast.stmt, known: set[State]) -> str:
    """The state that there is before a statement of a right-hand side, or of a function inside of it; or ""."""
    search, home = _Search(program, scope, at), scope
    while home.parent is not None:
        for name in (p for p in home.parameters if (home, p) in known):
            if program.home(name, scope) is home and search.is_array_of(name, home):
                return name
        home = home.parent
    return ""


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
        if isinstance(value, ast.Name):
            scope = program.home(value.id, scope) or scope
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
        taken = [n for s in self.program.scopes for n in s.own() if isinstance(n, ast.Subscript)]
        scope: Scope | None = self.scope
        while scope is not None:
            for n in taken:
                known = isinstance(n.value, ast.Name) and n.value.id in scope.parameters and self._is_entry(n)
                if known and isinstance(n.ctx, ast.Load) and rank(self.program, n.value, scope) <= most:
                    yield self.program.text(n)
            scope = scope.parent

    def of_parameters(self, most: int) -> Iterator[str]:
        """The parameters that are computed with, of the function and of those around it."""
        scope: Scope | None = self.scope
        while scope is not None:
            for name in scope.parameters:
                depends = scope.levels.get(name) == VALUE and not self._gets_constants(name, scope)
                depends &= name != "self" and rank(self.program, ast.Name(name, ast.Load()), scope) <= most
                here = self._is_bound(ast.Name(name, ast.Load()), scope)
                if depends and here and self._is_number_or_array(name, scope):
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
                    if root_of(value) is not value:  # a part, as x[i].real
                        yield from self._of(root_of(value), scope)
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
        if not isinstance(root, ast.Name) or any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(value)):
            return False
        if root.id == "self" and scope.of_class == self.scope.of_class and "self" in self.scope.parameters:
            scope = self.scope  # another method has the same object
        home = self.program.home(root.id, scope)
        if home is None or self._gets_constants(root.id, home):
            return False
        names = [n for n in ast.walk(value) if isinstance(n, ast.Name)]
        if not all(self._is_bound(n, scope) and (n is value or self._stays(n)) for n in names):
            return False
        return home is not self.scope or value is root or self._is_set(value, root)

    def _is_set(self, value: ast.expr, root: ast.Name) -> bool:
        """Whether an attribute or an entry is there before the statement."""
        places = self.program.bindings(value, self.scope)
        own = [v for _, v in places if self.program.scope_of(v) is self.scope]
        if self.scope.name == "__init__" or not places:
            return not places or any(map(self._is_run, own))
        if own or root.id == "self":
            return any(map(self._is_run, own)) or any(s.name in _BEGINNINGS for s, _ in places)
        return True

    def _gets_constants(self, name: str, scope: Scope) -> bool:
        """Whether a parameter gets constants alone, where functions of the file call this one with their values."""
        if name not in scope.parameters or name == "self":
            return False
        given = [(value, caller) for n, value, caller in self.program.given(scope) if n == name]
        levels = [self.program.level(v, caller) for v, caller in given if not self.program.is_outside(caller)]
        return bool(levels) and max(levels) != VALUE

    def _gets_lists(self, name: str, scope: Scope) -> bool:
        """Whether a function of the file gives a list for a parameter."""
        return any(n == name and Certain(self.program, c).is_list(v) for n, v, c in self.program.given(scope))

    def _is_bound(self, name: ast.Name, scope: Scope) -> bool:
        """Whether a name of a scope is the same name at the statement, and is bound before, whatever branches run."""
        home = self.program.home(name.id, self.scope)
        if home is None or home is not self.program.home(name.id, scope):
            return False
        if any(_unbinds(n, name.id) for n in home.own()):
            return False
        return name.id in home.parameters or any(map(self._is_run, _changes(name.id, home)))

    def _stays(self, name: ast.Name) -> bool:
        """Whether a name is bound to nothing else after the statement."""
        home = self.program.home(name.id, self.scope)
        return home is not None and all(n.lineno < self.at.lineno for n in _changes(name.id, home))

    def _is_run(self, node: ast.AST) -> bool:
        """Whether a node is run before the statement, whatever branches are taken."""
        around: list[ast.AST] = [self.at]
        beside: list[ast.AST] = []
        while (parent := self.program.parents.get(around[-1])) is not None:
            bodies = [body for _, body in ast.iter_fields(parent) if isinstance(body, list) and around[-1] in body]
            beside += [s for body in bodies for s in body]
            around.append(parent)
        statement = node
        while not isinstance(statement, ast.stmt | _PERHAPS):
            statement = self.program.parents[statement]
        if isinstance(statement, ast.AugAssign | _PERHAPS) or statement.lineno >= self.at.lineno:
            return False
        if isinstance(statement, ast.For | ast.With):
            return any(s in around for s in statement.body)
        return statement in beside

    def _is_object(self, value: ast.expr) -> bool:
        """Whether a value is a list, or is called, or has attributes and entries by names: it is no array."""
        if self.is_list(value):
            return True
        if not isinstance(value, ast.Name):
            return False
        home = self.program.home(value.id, self.scope)
        if home is not None and self._gets_lists(value.id, home):
            return True
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

    def distance(self, value: ast.expr) -> int:
        """What the function gets or computes is near; then what has a default, as a number; then what is outside."""
        root = next(n for n in ast.walk(value) if isinstance(n, ast.Name))  # the outer ones come first
        if root.id == "self" or self.program.home(root.id, self.scope) is not self.scope:
            return 2
        is_given = root.id in self.scope.parameters
        return int(is_given and root.id in defaults_of(self.scope.node.args))  # type: ignore[attr-defined]

    def is_array_of(self, name: str, scope: Scope) -> bool:
        """Whether nothing shows that a parameter is, or becomes, a list, an object or a constant."""
        levels = [self.program.level(v, scope) for v in scope.bound.get(name, [])]
        uses = [n for n in scope.own() if isinstance(n, ast.Name) and n.id == name]
        deleted = any(_unbinds(n, name) for n in scope.own())
        return (
            CONSTANT not in levels
            and not deleted
            and not any(self.is_list(n) or self._is_use_of_object(n) for n in uses)
        )

    def _is_entry(self, node: ast.Subscript) -> bool:
        """Whether a node is an entry that may stand in the statement, or of what its function is given there."""
        scope, name = self.program.scope_of(node), key_of(node.value)
        if not key_of(node) or self._is_there(node, scope):
            return key_of(node) != ""
        home = self.program.home(name, scope)
        given = self.program.given(home) if home is not None else ()
        return any(n == name == key_of(v) and self._is_there(v, caller) for n, v, caller in given)

    def _is_number_or_array(self, name: str, scope: Scope) -> bool:
        """Whether a parameter is computed with."""
        uses = [n for n in scope.own() if isinstance(n, ast.Name) and n.id == name]
        if self._gets_lists(name, scope) or any(self._is_use_of_object(n) or self.is_list(n) for n in uses):
            return False
        for n in uses:
            match self.program.parents[n]:
                case ast.BinOp() | ast.UnaryOp() | ast.AugAssign() | ast.Subscript() | ast.For():
                    return True
                case ast.Call(func=func) if self.program.full_name(func).startswith(("numpy.", "math.", "scipy.")):
                    return True
        return False


def _unbinds(node: ast.AST, name: str) -> bool:
    """Whether a name is deleted, which the end of ``except Error as name:`` does, too."""
    if isinstance(node, ast.ExceptHandler):
        return node.name == name
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del)


def _changes(name: str, home: Scope) -> list[ast.Name]:
    """Where a scope binds a name."""
    return [n for n in home.own() if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]


_PERHAPS = ast.comprehension | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.BoolOp | ast.IfExp
"""Where a part may run or not."""

_BEGINNINGS = frozenset({"__init__", "__post_init__"})

_OF_OBJECTS = 1 << 10
"""Added to the rank of what a constructor gets from outside."""

LAST = 1 << 30
"""The rank of a constant."""

_OF_ARRAYS = frozenset("shape size ndim dtype T real imag flat".split())

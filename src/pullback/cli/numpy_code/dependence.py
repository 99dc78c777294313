"""What of a NumPy program may depend on its parameters, read from its text alone: `pullback port` asks it.

A value has a level: a *constant*; a *place*, which is computed of the parameters and has no derivative, as a mask or a
position; or a *value*. A function's parameters are values, unless they are plainly integers or strings. In a file
without functions, its numbers are the parameters.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .program_text import Text

CONSTANT, PLACE, VALUE = 0, 1, 2
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_words = str.split
MAKERS = frozenset(_words("zeros empty ones full eye identity"))
_INTEGER_ARGUMENTS = MAKERS | {"range"}
_PLACES = frozenset(
    _words("""argmax argmin argsort argwhere nonzero flatnonzero searchsorted digitize isfinite isnan isinf isclose any
    all sign floor ceil rint trunc greater less equal logical_and logical_or logical_not count_nonzero isin lexsort""")
)
_CONSTANTS = frozenset(
    _words("""shape size ndim dtype result_type finfo iinfo allclose array_equal diag_indices tril_indices triu_indices
    ix_ iscomplexobj isrealobj empty_like zeros_like ones_like""")
)
_OF_TEXT = frozenset(
    _words("index count keys split format join strip startswith endswith lower upper exists open detach")
)
_BUILTIN_CONSTANTS = frozenset(_words("len range isinstance str print open hasattr type int bool repr format id"))
_SAME = frozenset(_words("T real imag flat mT"))


@dataclass(eq=False)
class Scope:
    """A function, or the module: what its names are bound to, and the levels that follow."""

    node: ast.AST
    parent: Scope | None
    name: str = ""
    of_class: str = ""
    parameters: list[str] = field(default_factory=list)
    bound: dict[str, list[ast.expr]] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    result: int = 0
    returned: list[ast.expr] = field(default_factory=list)

    def own(self) -> Iterator[ast.AST]:
        """The nodes of its body, without those of functions inside of it."""
        body = self.node.body  # type: ignore[attr-defined]
        waiting: list[ast.AST] = list(reversed(body)) if isinstance(body, list) else [body]
        while waiting:
            node = waiting.pop()
            yield node
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                waiting += node.decorator_list
            elif not isinstance(node, ast.Lambda):
                waiting += reversed(list(ast.iter_child_nodes(node)))


def key_of(node: ast.AST) -> str:
    """What a value is followed by: a name, ``.attribute`` or ``['entry']``, those of one spelling as one; or ""."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return f".{name}"
        case ast.Subscript(slice=ast.Constant(value=str(entry))):
            return f"[{entry!r}]"
    return ""


def root_of(target: ast.expr) -> ast.expr:
    """What a write to an element, a slice or a part (``.real``) of it writes to."""
    while (isinstance(target, ast.Subscript) and not key_of(target)) or _is_same(target):
        target = target.value  # type: ignore[attr-defined]
    return target


def _is_same(node: ast.expr) -> bool:
    """Whether it is an array's ``.T`` or ``.real``: of ``self`` it is an attribute like others."""
    named = isinstance(node, ast.Attribute) and node.attr in _SAME
    return named and not (isinstance(node.value, ast.Name) and node.value.id == "self")  # type: ignore[attr-defined]


class Program(Text):
    """A parsed file, with the scopes in it and the levels of what is bound."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._levels: dict[ast.AST, int] = {}  # as of this round
        self.imported: dict[str, str] = {}
        self.module = Scope(self.tree, None)
        self.scopes = [self.module]
        self.integers: dict[Scope | None, set[str]] = {}
        self.functions: dict[str, list[Scope]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.calls: dict[str, list[tuple[Scope, ast.Call]]] = {}
        self.taken: set[str] = set()  # functions that are handed on as values
        self.shared: dict[str, list[tuple[Scope, ast.expr]]] = {}
        self.shared_levels: dict[str, int] = {}
        self.parts: list[tuple[Scope, str, ast.expr]] = []  # what is written to a part of what a name holds
        self._enter(self.module, "")
        self._scope_of = {scope.node: scope for scope in self.scopes}
        for scope, key, value in self.parts:
            if (home := self.home(key, scope)) is not None:
                home.bound.setdefault(key, []).append(value)
        self.is_script = not self.functions
        self.numpy = next((name for name, home in self.imported.items() if home == "numpy"), "np")
        self._words = set(re.findall(r"\w+", source))
        self.tensor = self.free_name("t", "tensor", "a_tensor", "any_tensor")
        self._settle()

    def free_name(self, *names: str) -> str:
        """The first of these names that the program has not, or the last."""
        return next((name for name in names if name not in self._words), names[-1])

    # -- what is there -------------------------------------------------------------------------------------------------

    def _enter(self, scope: Scope, of_class: str) -> None:
        classes = {id(c): n.name for n in scope.own() if isinstance(n, ast.ClassDef) for c in n.body}
        called = set()
        for node in scope.own():
            match node:
                case ast.Import(names=names):
                    for a in names:
                        self.imported[a.asname or a.name.partition(".")[0]] = (
                            a.name if a.asname else a.name.partition(".")[0]
                        )
                case ast.ImportFrom(module=str(home), names=names, level=0):
                    self.imported.update({a.asname or a.name: f"{home}.{a.name}" for a in names})
                case ast.ClassDef(name=name):
                    self.classes[name] = node
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    self._function(node, scope, classes.get(id(node), ""))
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                    called.add(id(node.func))
                    self.calls.setdefault(name, []).append((scope, node))
                    self._integers(scope, [*node.args] if name in _INTEGER_ARGUMENTS else [], node)
                case ast.Subscript(slice=index, ctx=_):
                    self._integers(scope, _slices(index), None)
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()) if (
                    id(node) not in called
                ):
                    self.taken.add(name)
                case ast.Return(value=ast.expr() as value):
                    scope.returned.append(value)
            for key, value, by in _bindings(node):
                if key.isidentifier() and isinstance(by, ast.Name):
                    scope.bound.setdefault(key, []).append(value)
                elif key.isidentifier():
                    self.parts.append((scope, key, value))
                elif key:
                    self.shared.setdefault(key, []).append((scope, value))

    def _function(self, node: Function, parent: Scope, of_class: str) -> None:
        a = node.args
        name = getattr(node, "name", "")
        scope = Scope(node, parent, name, of_class, [p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]])
        scope.parameters += [p.arg for p in (a.vararg, a.kwarg) if p is not None]
        self.scopes.append(scope)
        if isinstance(node, ast.Lambda):
            scope.returned.append(node.body)
        else:
            self.functions.setdefault(name, []).append(scope)
        self._enter(scope, of_class)

    def _integers(self, scope: Scope, found: list[ast.expr], call: ast.Call | None) -> None:
        """Enter what sizes, ranges and slices are made of: it is a whole number."""
        if call is not None and found and key_of(call.func) != "range":
            found = found[:2] if key_of(call.func) == ".eye" else found[:1]
        while found:
            node = found.pop()
            match node:
                case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv()):
                    found += [node.left, node.right]
                case ast.Tuple() | ast.List():
                    found += node.elts
                case ast.UnaryOp():
                    found.append(node.operand)
                case _ if key := key_of(node):
                    self.integers.setdefault(scope if key.isidentifier() else None, set()).add(key)

    # -- levels --------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        self.open = {scope for scope in self.scopes[1:] if self._is_open(scope)}
        for scope in self.scopes[1:]:
            for name, begin in _parameters(scope.node):
                scope.levels[name] = begin if scope in self.open or (scope.of_class and name == "self") else CONSTANT
        while self._round():
            pass
        for scope in set(self.scopes[1:]) - self.open:
            if not any(level for name, level in scope.levels.items() if name in scope.parameters and name != "self"):
                self.open.add(scope)  # it is only called with constants: with data, as it seems
                scope.levels.update(_parameters(scope.node))
        while self._round():
            pass

    def _is_open(self, scope: Scope) -> bool:
        """Whether a function may be called with what is not written here: it is not called by functions alone."""
        name, places = self._name(scope), self.places(scope)
        several = len(self.functions.get(scope.name, [])) > 1 and scope.name != "__init__"
        starred = any(isinstance(a, ast.Starred) for _, c in places for a in c.args)
        starred |= any(k.arg is None for _, c in places for k in c.keywords)
        outside = not places or any(self.is_outside(caller) for caller, _ in places)
        return outside or several or starred or name in self.taken

    def _name(self, scope: Scope) -> str:
        return scope.of_class if scope.name == "__init__" else scope.name

    def places(self, scope: Scope) -> list[tuple[Scope, ast.Call]]:
        """The calls of a function of the file, each with the scope where it is."""
        as_method = scope.of_class != "" and scope.name != "__init__"
        calls = self.calls.get(self._name(scope), [])
        return [
            (s, c) for s, c in calls if isinstance(c.func, ast.Attribute) == as_method and not self.full_name(c.func)
        ]

    def is_outside(self, scope: Scope) -> bool:
        """Whether a scope begins with data: the module, and functions as main(), which get no values."""
        return scope is self.module or (scope.name == "main" or VALUE not in dict(_parameters(scope.node)).values())

    def is_entry(self, scope: Scope) -> bool:
        """Whether a function is called from outside alone: what it gets may be what requires grad."""
        places = self.places(scope)
        return not scope.of_class and scope.parent is self.module and all(self.is_outside(s) for s, _ in places)

    def _round(self) -> bool:
        changed = False
        self._levels.clear()
        for scope in self.scopes:
            for name, values in scope.bound.items():
                changed |= _raise(scope.levels, name, self._bound(name, values, scope))
            if scope is not self.module and scope not in self.open:
                for name, value, caller in self.given(scope):
                    known = dict(_parameters(scope.node)).get(name, VALUE)
                    changed |= _raise(scope.levels, name, min(known, self.level(value, caller)))
            before, scope.result = scope.result, max([scope.result, *(self.level(v, scope) for v in scope.returned)])
            changed |= before != scope.result
        for key, pairs in self.shared.items():
            changed |= _raise(self.shared_levels, key, max(self.level(v, s) for s, v in pairs))
        return changed

    def given(self, scope: Scope) -> Iterator[tuple[str, ast.expr, Scope]]:
        """What a function of the file is called with: the parameter, the value and the caller."""
        skipped = 1 if scope.of_class else 0
        for caller, call in self.places(scope):
            yield from ((n, v, caller) for n, v in zip(scope.parameters[skipped:], call.args, strict=False))
            yield from ((k.arg, k.value, caller) for k in call.keywords if k.arg in scope.parameters)

    def _bound(self, name: str, values: list[ast.expr], scope: Scope) -> int:
        if scope is self.module and self.is_script and any(map(self._is_number, values)):
            return CONSTANT if name in self.integers.get(scope, ()) else VALUE
        return max(self.level(value, scope) for value in values)

    def _is_number(self, value: ast.expr) -> bool:
        """Whether a value is a number with a point, or an array of such: a parameter of a script."""
        if self.full_name(getattr(value, "func", value)) == "numpy.array":
            value = value.args[0]  # type: ignore[attr-defined]
        return any(isinstance(c, ast.Constant) and isinstance(c.value, float) for c in _literals(value))

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope that a node is in."""
        while (node := self.parents[node]) not in self._scope_of:
            pass
        return self._scope_of[node]

    def home(self, name: str, scope: Scope) -> Scope | None:
        """The scope that binds a name."""
        while scope is not None and name not in scope.bound and name not in scope.parameters:
            scope = scope.parent  # type: ignore[assignment]
        return scope

    def bindings(self, node: ast.expr, scope: Scope) -> list[tuple[Scope, ast.expr]]:
        """All that a name, an attribute or an entry is bound to, with the scopes where it is."""
        key = key_of(node)
        if key.isidentifier():
            home = self.home(key, scope)
            return [(home, value) for value in home.bound.get(key, [])] if home is not None else []
        return self.shared.get(key, [])

    def full_name(self, node: ast.AST) -> str:
        """The name below ``numpy.``, ``scipy.`` or ``math.`` of what was imported, e.g. numpy.linalg.inv; or ""."""
        match node:
            case ast.Name(id=name):
                return self.imported.get(name, "")
            case ast.Attribute(value=value, attr=name):
                home = self.full_name(value)
                return f"{home}.{name}" if home else ""
        return ""

    def level(self, node: ast.AST | None, scope: Scope) -> int:
        """How far a value may depend on the parameters."""
        if node is None:
            return CONSTANT
        if node not in self._levels:
            self._levels[node] = self._level(node, scope)
        return self._levels[node]

    def _level(self, node: ast.AST, scope: Scope) -> int:
        match node:
            case ast.Constant() | ast.JoinedStr():
                return CONSTANT
            case ast.Name(id=name):
                home = self.home(name, scope)
                if home is None:  # a function inside of another may read the parameters
                    own = (s for s in self.functions.get(name, []) if s.parent is not self.module and not s.of_class)
                    return max((s.result for s in own), default=CONSTANT)
                return CONSTANT if name in self.integers.get(home, ()) else home.levels.get(name, CONSTANT)
            case ast.Attribute(attr="shape" | "size" | "ndim" | "dtype"):
                return CONSTANT
            case ast.Attribute() | ast.Subscript() if key := key_of(node):
                if self.full_name(node) or key in self.integers.get(None, ()):
                    return CONSTANT
                if key in self.shared and not _is_same(node):
                    return self.shared_levels.get(key, CONSTANT)
                return self.level(node.value, scope)
            case ast.Subscript(value=value):
                return self.level(value, scope)
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
                return CONSTANT
            case ast.Compare():
                return min(PLACE, self._highest(node, scope))
            case ast.IfExp(body=body, orelse=other):
                return max(self.level(body, scope), self.level(other, scope))
            case ast.UnaryOp(op=ast.Not()):
                return min(PLACE, self._highest(node, scope))
            case (
                ast.ListComp(elt=value)
                | ast.SetComp(elt=value)
                | ast.GeneratorExp(elt=value)
                | ast.DictComp(value=value)
            ):
                return self.level(value, scope)
            case ast.Lambda():
                inner = next((s for s in self.scopes if s.node is node), scope)
                return self.level(node.body, inner)
            case ast.Call():
                return self._of_call(node, scope)
        return self._highest(node, scope)

    def _highest(self, node: ast.AST, scope: Scope) -> int:
        return max((self.level(c, scope) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)), default=0)

    def given_to(self, call: ast.Call, scope: Scope) -> int:
        """The highest level among the arguments of a call."""
        return max((self.level(v, scope) for v in [*call.args, *(k.value for k in call.keywords)]), default=CONSTANT)

    def _of_call(self, call: ast.Call, scope: Scope) -> int:
        full, name = self.full_name(call.func), key_of(call.func).lstrip(".")
        if full:
            last = full.rpartition(".")[2]
            if last in _CONSTANTS or (last in MAKERS and last != "full"):
                return CONSTANT
            return min(PLACE if last in _PLACES else VALUE, self.given_to(call, scope))
        if isinstance(call.func, ast.Name):
            if name in _BUILTIN_CONSTANTS and self.home(name, scope) is None:
                return CONSTANT
            given = self.given_to(call, scope)
            own = [s for s in self.functions.get(name, []) if not s.of_class]
            inside = [s.result for s in own if s.returned]
            if inside or name in self.classes or hasattr(builtins, name):
                nested = any(s.parent is not self.module for s in own)
                return max(inside, default=given) if nested else min(given, max(inside, default=VALUE))
            return max(given, self.level(call.func, scope))
        if name in _OF_TEXT:
            return CONSTANT
        if inside := [s.result for s in self.functions.get(name, []) if s.of_class and s.returned]:
            return min(max(inside), max(self.given_to(call, scope), self.level(_owner(call), scope)))
        found = max(self.given_to(call, scope), self.level(_owner(call), scope))
        to_whole = name == "astype" and any(key_of(a) in ("int", "bool") for a in call.args)
        return min(PLACE if name in _PLACES or to_whole else VALUE, found)


def _owner(call: ast.Call) -> ast.expr:
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


def _raise(levels: dict[str, int], name: str, level: int) -> bool:
    higher = level > levels.get(name, CONSTANT)
    levels[name] = max(level, levels.get(name, CONSTANT))
    return higher


def _literals(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _literals(part)
        case ast.UnaryOp(operand=operand):
            yield from _literals(operand)
        case _:
            yield node


def _slices(index: ast.expr) -> list[ast.expr]:
    """The ends of the slices in an index; what else is there may be a mask."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    ends = [end for p in parts if isinstance(p, ast.Slice) for end in (p.lower, p.upper, p.step)]
    return [end for end in ends if end is not None]


def defaults_of(a: ast.arguments) -> dict[str, ast.expr]:
    """The defaults of parameters."""
    places = [p.arg for p in [*a.posonlyargs, *a.args]]
    named = {p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
    return dict(zip(reversed(places), reversed(a.defaults), strict=False)) | named


def _parameters(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The parameters of a function, each with its level: those of text and whole numbers are constants."""
    a: ast.arguments = node.args  # type: ignore[attr-defined]
    defaults = defaults_of(a)
    for p in [
        *a.posonlyargs,
        *a.args,
        *a.kwonlyargs,
        *([a.vararg] if a.vararg else []),
        *([a.kwarg] if a.kwarg else []),
    ]:
        begins = defaults.get(p.arg)
        plain = isinstance(begins, ast.Constant) and isinstance(begins.value, int | str)
        plain |= isinstance(p.annotation, ast.Name) and p.annotation.id in ("int", "str", "bool")
        yield p.arg, CONSTANT if plain else VALUE


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    """The keys that a node binds, or writes a part of, each with the value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _unpacked(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield from _unpacked(target, value)
        case ast.NamedExpr(target=target, value=value):
            yield from _unpacked(target, value)
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from _iterated(target, value)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield from _unpacked(target, value)
        case ast.Call(func=ast.Attribute(value=owner, attr="append" | "extend" | "insert" | "fill" | "update")):
            for value in [*node.args[-1:], *(k.value for k in node.keywords)]:
                yield key_of(root_of(owner)), value, node
        case ast.Call(func=ast.Attribute(attr="copyto" | "fill_diagonal" | "put" | "place" | "putmask" | "at")):
            if len(node.args) > 1:
                yield key_of(root_of(node.args[0])), node.args[-1], node
        case ast.keyword(arg="out", value=target):
            yield key_of(root_of(target)), target, node


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    if isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value] * len(target.elts)
        for t, v in zip(target.elts, parts, strict=False):
            yield from _unpacked(t.value if isinstance(t, ast.Starred) else t, v)
    else:
        yield key_of(root_of(target)), value, target


def _iterated(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    match target, value:
        case ast.Tuple(elts=[first, second]), ast.Call(func=ast.Name(id="enumerate"), args=[of, *_]):
            yield from _unpacked(first, ast.Constant(0))
            yield from _iterated(second, of)
        case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=args) if len(args) == len(parts):
            for t, v in zip(parts, args, strict=True):
                yield from _iterated(t, v)
        case ast.Tuple(elts=[first, second]), ast.Call(func=ast.Attribute(value=of, attr="items")):
            yield from _unpacked(first, ast.Constant(""))
            yield from _unpacked(second, of)
        case _:
            yield from _unpacked(target, value)

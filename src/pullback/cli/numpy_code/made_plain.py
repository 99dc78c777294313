"""Arrays that are made plain, and get values of the parameters later: an array holds no graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from .advice import ENTRIES, KINDS, Finding, Reader
from .dependence import CONSTANT, MAKERS, VALUE, Program, Scope, key_of, root_of
from .edits import Edit
from .states import is_state, states
from .tensors import LAST, rank, rank_of_writes, state_for, tensor_for

_words = str.split
_WHOLE = frozenset(_words("int bool int64 int32 int8 uint8 object str"))
_ARRAYS = MAKERS | frozenset(_words("array linspace arange tile repeat concatenate sin cos exp"))
_WRITERS = frozenset(_words("copyto fill_diagonal put place putmask at"))


class Write(NamedTuple):
    """A write to a part of what a key holds (or, with +=, to all of it)."""

    line: int
    level: int
    whole: bool
    node: ast.AST


Key = tuple[Scope | None, str]


def written(program: Program) -> dict[Key, list[Write]]:
    """All writes of a program, by the key that is written to and the scope of its name."""
    found: dict[Key, list[Write]] = {}

    def enter(target: ast.expr, value: ast.expr | None, node: ast.AST, scope: Scope, whole: bool = False) -> None:
        key = key_of(root_of(target))
        if key:
            home = program.home(key, scope) if key.isidentifier() else None
            level = VALUE if value is None else program.level(value, scope)
            found.setdefault((home, key), []).append(Write(node.lineno, level, whole, node))  # type: ignore[attr-defined]

    for scope in program.scopes:
        for node in scope.own():
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target, part in pairs(targets, value):
                        if root_of(target) is not target:
                            enter(target, part, node, scope)
                case ast.AugAssign(target=target, value=value):
                    enter(target, value, node, scope, whole=root_of(target) is target)
                case ast.Call(func=ast.Attribute(attr=name), args=[target, *_, value]) if name in _WRITERS:
                    enter(target, value, node, scope)
                case ast.Call(func=ast.Attribute(value=owner, attr="fill"), args=[value]):
                    enter(owner, value, node, scope)
                case ast.Call(keywords=keywords):
                    for k in keywords:
                        if k.arg == "out" and program.given_to(node, scope) == VALUE:
                            enter(k.value, None, node, scope)
    for scope in program.scopes[1:]:  # a function that writes to what it is given
        for parameter, given, caller in list(program.given(scope)):
            inner = [w for w in found.get((scope, parameter), []) if not w.whole]
            if inner and (key := key_of(given)):
                home = program.home(key, caller) if key.isidentifier() else None
                most = max(w.level for w in inner)
                found.setdefault((home, key), []).append(Write(given.lineno, most, False, given))
    return found


def pairs(targets: list[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with its part of the value, where that is written as a tuple."""
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            parts = value.elts if same else [value] * len(target.elts)  # type: ignore[attr-defined]
            yield from zip(target.elts, parts, strict=True)
        else:
            yield target, value


class AboutWrites(Reader):
    """A reader that knows all writes of the program."""

    def __init__(self, program: Program, scope: Scope, found: list[Finding], writes: dict[Key, list[Write]]) -> None:
        super().__init__(program, scope, found)
        self.writes = writes
        self.own = list(scope.own())

    def of(self, node: ast.expr) -> list[Write]:
        """The writes to what a name, an attribute or an entry holds."""
        key = key_of(node)
        home = self.program.home(key, self.scope) if key.isidentifier() else None
        return self.writes.get((home, key), [])

    def maker(self, func: ast.expr) -> str:
        """The name of a function of NumPy that makes a plain array, as zeros or zeros_like; or ""."""
        home, _, name = self.program.full_name(func).rpartition(".")
        known = name in MAKERS or (name.removesuffix("_like") in MAKERS and name.endswith("_like"))
        return name if home == "numpy" and known else ""


class MadePlain(AboutWrites):
    """What is found where arrays are made."""

    def read(self) -> None:
        """Look at what every name is bound to."""
        for node in self.own:
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target, part in pairs(targets, value):
                        if root_of(target) is target and key_of(target):
                            self._bound(node, target, part)
                case ast.AnnAssign(target=target, value=ast.expr() as value) if key_of(target):
                    self._bound(node, target, value)

    def _bound(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        writes = [w for w in self.of(target) if w.level == VALUE]
        parts = sorted({w.line for w in writes if not w.whole})
        most = rank_of_writes(self.program, [w.node for w in writes])
        makers = list(self._makers(value, most))
        constant = not makers and self._is_constant_array(value)
        why = f"written to in line{'s' if len(parts) > 1 else ''} {_listed(parts)}"
        if parts and self._matrix(value):
            self.add(node, "entries", ENTRIES, why=f"SciPy's matrix holds numbers; {why}", edits=())
        elif parts and constant:
            if any(self._is_a_tensor(v) for _, v in self.program.bindings(target, self.scope)):
                return
            a, t = self.text(target), self._tensor(node, writes)
            write = f"{a} = {a} + np.zeros_like({t or self.program.tensor}, float, shape=np.shape({a}))"
            sure = isinstance(node, ast.Assign) and len(node.targets) == 1 and self.is_computed(value)
            # An array of whole numbers stays one, and cuts off what is written to it.
            numbers = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant)]
            sure &= self._name(value) != "array" or any(isinstance(n, float | complex) for n in numbers)
            edits = self.edit.after(node, self.numpys(write)) if t and sure else ()
            self._like(t, node, "made", f"{write} after it", why, edits)
        elif parts or (makers and writes and isinstance(target, ast.Attribute)):  # other arrays may be made of it
            t = self._tensor(node, writes)
            for call in makers:
                self._made(call, t, why if parts else f"written to in line {writes[0].line}")
        elif makers or constant:
            for w in writes:
                if isinstance(w.node, ast.AugAssign):
                    sure = self.is_unshared(target) and not any(map(self._of_other_dtype, makers))
                    self.add(w.node, "whole", self.in_full(w.node), edits=None if sure else ())

    def _tensor(self, node: ast.stmt, writes: list[Write]) -> str:
        """The Tensor that an array is made like: the state of a right-hand side first."""
        self.state = state_for(self.program, self.scope, node, states(self.program))
        return self.state or tensor_for(self.program, self.scope, node, [w.node for w in writes])

    def _matrix(self, value: ast.expr) -> bool:
        full = self.program.full_name(value.func) if isinstance(value, ast.Call) else ""
        return full.startswith("scipy.sparse.")

    def _makers(self, value: ast.expr, most: int) -> Iterator[ast.Call]:
        """The calls that make plain arrays, in what is bound. most: the rank of what is written to them."""
        match value:
            case ast.Call(func=func):
                if self.maker(func) and not self._is_whole(value, most):
                    yield value
            case ast.IfExp(body=body, orelse=other):
                yield from [*self._makers(body, most), *self._makers(other, most)]
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                for part in parts:
                    yield from self._makers(part, most)
            case ast.ListComp(elt=part) | ast.DictComp(value=part):
                yield from self._makers(part, most)
            case ast.Dict(values=parts):
                for part in parts:
                    yield from self._makers(part, most)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                yield from [*self._makers(left, most), *self._makers(right, most)]

    def _is_whole(self, call: ast.Call, most: int = LAST) -> bool:
        """Whether an array is of whole numbers or of objects; or has a Tensor to begin with, and not data."""
        name = self.maker(call.func)
        if name.endswith("_like"):
            like = call.args[:1]
            if any(is_state(self.program, a, self.scope) for a in like):
                return True
            return not any(
                self.level(a) == CONSTANT or self._plain(a) or rank(self.program, a, self.scope) > most for a in like
            )
        dtype = self._dtype(call, name)
        return bool(dtype) and dtype.rpartition(".")[2].strip("'\"") in _WHOLE

    def _plain(self, node: ast.expr) -> list[ast.Call]:
        """The calls that make plain arrays, with which a name or an attribute begins, and that nothing here changes."""
        if any(w.level == VALUE for w in self.of(node)):
            return []
        values = (v for _, v in self.program.bindings(node, self.scope) if isinstance(v, ast.Call))
        return [v for v in values if (name := self.maker(v.func)) and not name.endswith("_like")]

    def _of_other_dtype(self, call: ast.Call) -> bool:
        """Whether a call makes an array of a dtype that is given, and not float."""
        return self._dtype(call, self.maker(call.func)).rpartition(".")[2] not in ("", "float", "float64")

    def _dtype(self, call: ast.Call, name: str) -> str:
        place = {"full": 2, "eye": 3}.get(name, 1)
        given = [k.value for k in call.keywords if k.arg == "dtype"] or call.args[place : place + 1]
        return self.text(given[0]) if given else ""

    def _like(
        self, t: str, node: ast.AST, kind: str, write: str, why: str, edits: tuple[Edit, ...] | None = None
    ) -> None:
        """Enter that an array is made like a Tensor; it is not chosen by itself, where `t` is ""."""
        chosen = f"{t} has to be a Tensor; any other parameter that is one would do"
        if self.state:
            chosen = f"{t} is the state: what a solver calls the function with is a Tensor"
        any_one = f"{self.program.tensor} is any Tensor that the function gets; if it gets none, make it where one is"
        reason = KINDS[kind][1].format(t=chosen if t else any_one)
        self.add(node, kind, write, why=f"{reason}; {why}", edits=edits if t else ())

    def _made(self, call: ast.Call, chosen: str, why: str) -> None:
        name, texts = self.maker(call.func), [*map(self.text, call.args)]
        named = {k.arg: self.text(k.value) for k in call.keywords}
        np, t = self.text(call.func).rpartition(".")[0] or "np", chosen or self.program.tensor
        if name.endswith("_like"):
            value = [texts[1] if len(texts) > 1 else named.get("fill_value", "value")] if name == "full_like" else []
            known = isinstance(call.args[0], ast.Name | ast.Attribute)
            kind = (
                texts[1 + len(value) :] or [named.get("dtype", f"{np}.result_type({texts[0]})" if known else "float")]
            )[0]
            given = ", ".join([t, *value, kind])
            self._like(chosen, call, "made", f"{np}.{name}({given}, shape=np.shape({texts[0]}))", why)
            return
        dtype = self._dtype(call, name) or "float"
        shape = texts[0] if texts else named.get("shape", named.get("N", "n"))
        if name in ("eye", "identity"):
            columns = texts[1] if name == "eye" and len(texts) > 1 else named.get("M", shape)
            write = f"{self.text(call)} + {np}.zeros_like({t}, float, shape=({shape}, {columns}))"
            self._like(chosen, call, "eye", write, why, () if self._of_other_dtype(call) else None)
        elif name == "full":
            filled = texts[1] if len(texts) > 1 else named.get("fill_value", "value")
            kind = "complex" if filled.endswith("j") and not self._dtype(call, name) else dtype
            sure = bool(self._dtype(call, name)) or not re.fullmatch(r"-?\d+", filled)  # an integer makes whole numbers
            write = f"{np}.full_like({t}, {filled}, {kind}, shape={shape})"
            self._like(chosen, call, "made", write, why, None if sure else ())
        else:
            sure = "order" not in named and len(texts) < 3
            write = f"{np}.{name}_like({t}, {dtype}, shape={shape})"
            self._like(chosen, call, "made", write, why, None if sure else ())

    def _is_constant_array(self, value: ast.expr) -> bool:
        """Whether a value is plainly an array of constants: a call of NumPy's, or its copy, or computed of such."""
        match value:
            case ast.Call(func=ast.Attribute(value=owner, attr="copy" | "astype" | "reshape")) if not self._name(value):
                values = [v for _, v in self.program.bindings(owner, self.scope) if isinstance(v, ast.Call)]
                return self.level(owner) == CONSTANT and any(map(self._of_numbers, values))
            case ast.Call():
                return self._of_numbers(value)
            case ast.BinOp(left=left, right=right):
                both = [self._is_constant_array(left), self._is_constant_array(right)]
                return any(both) and self.level(value) == CONSTANT and not self._is_a_tensor(value)
        return False

    def _is_a_tensor(self, value: ast.AST) -> bool:
        """Whether ``np.zeros_like(t)`` of a Tensor is added to a value."""
        match value:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._is_a_tensor(left) or self._is_a_tensor(right)
            case ast.Call(func=func, args=[first, *_]):
                return self.maker(func).endswith("_like") and self.level(first) != CONSTANT
        return False

    def _of_numbers(self, call: ast.Call) -> bool:
        """Whether a call of NumPy's makes an array of constants, which are no whole numbers."""
        dtypes = [self.text(k.value).strip("'\"").rpartition(".")[2] for k in call.keywords if k.arg == "dtype"]
        known = self._name(call) in _ARRAYS and self.level(call) == CONSTANT and not set(dtypes) & _WHOLE
        return known and not (self._name(call) in MAKERS and self._is_whole(call))

    def _name(self, call: ast.expr) -> str:
        home, _, name = self.program.full_name(getattr(call, "func", call)).rpartition(".")
        return name if home == "numpy" else ""


def _listed(lines: list[int], most: int = 4) -> str:
    return ", ".join(map(str, lines[:most])) + (", ..." if len(lines) > most else "")

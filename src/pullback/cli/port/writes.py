"""Writes to arrays: into arrays that are made plain, over what a derivative needs, and to what has two names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from .advice import ENTRIES, Finding, Reader, operand
from .dependence import CONSTANT, MAKERS, PLACE, VALUE, Program, Scope, key_of, root_of

_words = str.split
_KEPT = frozenset(_words("exp exp2 expm1 sqrt cbrt tanh tan solve inv pinv cholesky hypot norm prod"))
"""Functions whose derivative is computed from their result."""

_LINEAR = frozenset(
    _words("""sum mean diff roll concatenate stack hstack vstack pad cumsum copy reshape transpose ravel flatten real
    imag conj zeros_like ones_like empty_like full_like where flip len float range trace diagonal shape interp diag
    tril triu squeeze swapaxes moveaxis expand_dims broadcast_to exp sqrt tanh floor ceil argmax argmin argsort isnan
    isfinite fft ifft rfft irfft any all astype searchsorted nonzero ptp tile repeat take gradient""")
)
"""Functions that keep nothing of their argument for the backward pass."""

_REDUCE = frozenset(_words("max min amax amin norm median percentile quantile dot vdot inner outer std var sort"))
"""Functions of arrays that keep their argument."""

_WHOLE = frozenset(_words("int bool int64 int32 int8 uint8 object str"))
_ARRAYS = MAKERS | frozenset(_words("array linspace arange tile repeat concatenate sin cos exp"))


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
                    for target, part in _pairs(targets, value):
                        if root_of(target) is not target:
                            enter(target, part, node, scope)
                case ast.AugAssign(target=target, value=value):
                    enter(target, value, node, scope, whole=root_of(target) is target)
                case ast.Call(func=ast.Attribute(attr=name), args=[target, *_, value]) if name in (
                    *("copyto", "fill_diagonal", "put", "place", "putmask", "at"),
                ):
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


def _pairs(targets: list[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            parts = value.elts if same else [value] * len(target.elts)  # type: ignore[attr-defined]
            yield from zip(target.elts, parts, strict=True)
        else:
            yield target, value


class Writes(Reader):
    """What is found in statements that write, and at what they write to."""

    def __init__(
        self, program: Program, scope: Scope, found: list[Finding], all_writes: dict[Key, list[Write]]
    ) -> None:
        super().__init__(program, scope, found)
        self.writes = all_writes
        self.own = list(scope.own())

    def of(self, node: ast.expr) -> list[Write]:
        """The writes to what a name, an attribute or an entry holds."""
        key = key_of(node)
        home = self.program.home(key, self.scope) if key.isidentifier() else None
        return self.writes.get((home, key), [])

    def read(self) -> None:
        """Look at every statement of the scope."""
        self.here = [
            n for n in self.own
            if isinstance(n, ast.AugAssign) or (isinstance(n, ast.Assign) and root_of(n.targets[0]) is not n.targets[0])
        ]  # fmt: skip
        for node in self.own:
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
                self._later(node, node.value)
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target, part in _pairs(targets, value):
                        if root_of(target) is target and key_of(target):
                            self._bound(node, target, part)
                        elif isinstance(target, ast.Subscript):
                            self._overwrites(node, target, part, None)
                            self._to_copy(node, target, self.text(part))
                            self._missing(node, target, part)
                    self._swap(node, targets, value)
                    self._unpacked(node, targets, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value) if key_of(target):
                    self._bound(node, target, value)
                case ast.AugAssign(target=target, value=value, op=op):
                    self._overwrites(node, target, value, op)
                    self._added(node, target, value)
                case ast.For(target=ast.Name(id=row), iter=ast.expr() as rows):
                    self._rows(node, row, rows)
        self._given()

    # -- made plain ----------------------------------------------------------------------------------------------------

    def _bound(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        writes = [w for w in self.of(target) if w.level == VALUE]
        parts = sorted({w.line for w in writes if not w.whole})
        makers = list(self._makers(value))
        constant = not makers and self._is_constant_array(value)
        why = f"written to in line{'s' if len(parts) > 1 else ''} {_listed(parts)}"
        if parts and self._matrix(value):
            self.add(node, "entries", ENTRIES, why=f"SciPy's matrix holds numbers; {why}")
        elif parts and constant:
            a = self.text(target)
            self.add(node, "made", f"{a} = {a} + np.zeros_like(t, shape=np.shape({a})) after it", why=why)
        elif parts:
            for call in makers:
                self._made(call, why)
        elif makers or constant:
            for w in writes:
                if isinstance(w.node, ast.AugAssign):
                    a, of = self.text(w.node.target), self.text(w.node.value)
                    self.add(w.node, "whole", f"{a} = {a} {_sign(w.node.op)} {operand(of)}")
        if self.level(value) == VALUE:
            self._is_kept(node, target, value)
            self._element(node, target, value)

    def _matrix(self, value: ast.expr) -> bool:
        full = self.program.full_name(value.func) if isinstance(value, ast.Call) else ""
        return full.startswith("scipy.sparse.")

    def _makers(self, value: ast.expr) -> Iterator[ast.Call]:
        """The calls that make plain arrays, in what is bound."""
        match value:
            case ast.Call(func=func):
                if self._maker(func) and not self._is_whole(value):
                    yield value
            case ast.IfExp(body=body, orelse=other):
                yield from [*self._makers(body), *self._makers(other)]
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                for part in parts:
                    yield from self._makers(part)
            case ast.ListComp(elt=part) | ast.DictComp(value=part):
                yield from self._makers(part)
            case ast.Dict(values=parts):
                for part in parts:
                    yield from self._makers(part)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                yield from [*self._makers(left), *self._makers(right)]

    def _maker(self, func: ast.expr) -> str:
        home, _, name = self.program.full_name(func).rpartition(".")
        known = name in MAKERS or (name.removesuffix("_like") in MAKERS and name.endswith("_like"))
        return name if home == "numpy" and known else ""

    def _is_whole(self, call: ast.Call) -> bool:
        """Whether an array is of whole numbers or of objects; or has a Tensor to begin with."""
        name = self._maker(call.func)
        if name.endswith("_like"):
            return not call.args or self.level(call.args[0]) != CONSTANT
        dtype = self._dtype(call, name)
        return bool(dtype) and dtype.rpartition(".")[2].strip("'\"") in _WHOLE

    def _dtype(self, call: ast.Call, name: str) -> str:
        place = {"full": 2, "eye": 3}.get(name, 1)
        given = [k.value for k in call.keywords if k.arg == "dtype"] or call.args[place : place + 1]
        return self.text(given[0]) if given else ""

    def _made(self, call: ast.Call, why: str) -> None:
        name, texts = self._maker(call.func), [*map(self.text, call.args)]
        named = {k.arg: self.text(k.value) for k in call.keywords}
        np = self.text(call.func).rpartition(".")[0] or "np"
        if name.endswith("_like"):
            rest = "".join(f", {a}" for a in texts[1:])
            self.add(call, "made", f"{np}.{name}(t{rest}, shape=np.shape({texts[0]}))", why=why)
            return
        dtype = self._dtype(call, name)
        dtype = f", dtype={dtype}" if dtype else ""
        shape = texts[0] if texts else named.get("shape", named.get("N", "n"))
        if name in ("eye", "identity"):
            columns = texts[1] if name == "eye" and len(texts) > 1 else named.get("M", shape)
            self.add(call, "eye", f"{self.text(call)} + {np}.zeros_like(t, shape=({shape}, {columns}))", why=why)
        elif name == "full":
            value = texts[1] if len(texts) > 1 else named.get("fill_value", "value")
            self.add(call, "made", f"{np}.full_like(t, {value}, shape={shape}{dtype})", why=why)
        else:
            self.add(call, "made", f"{np}.{name}_like(t, shape={shape}{dtype})", why=why)

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
                return any(both) and self.level(value) == CONSTANT
        return False

    def _of_numbers(self, call: ast.Call) -> bool:
        """Whether a call of NumPy's makes an array of constants, which are no whole numbers."""
        dtypes = [self.text(k.value).strip("'\"").rpartition(".")[2] for k in call.keywords if k.arg == "dtype"]
        known = self._name(call) in _ARRAYS and self.level(call) == CONSTANT and not set(dtypes) & _WHOLE
        return known and not (self._name(call) in MAKERS and self._is_whole(call))

    def _name(self, call: ast.Call) -> str:
        home, _, name = self.program.full_name(call.func).rpartition(".")
        return name if home == "numpy" else ""

    # -- what a derivative needs ---------------------------------------------------------------------------------------

    def _overwrites(self, node: ast.stmt, target: ast.expr, value: ast.expr, op: ast.operator | None) -> None:
        """A value that is computed of what it is written over, by an operation that keeps it."""
        if self.level(value) != VALUE or max(self.level(target), self.level(root_of(target))) != VALUE:
            return
        kept = next(self._kept(value, target), None)
        if kept is None:
            return
        t, v = self.text(target), self.text(value)
        if op is not None:
            new = f"{t} {_sign(op)} {operand(v)}"
            self.add(
                node,
                "overwritten",
                f"{t} = {new}" if key_of(target) else f"{self.text(kept)}.copy() for {self.text(kept)}",
            )
        elif isinstance(target, ast.Subscript) and _is_whole(target.slice):
            self.add(node, "overwritten", f"{self.text(target.value)} = {v}")
        else:
            k = self.text(kept)
            self.add(node, "overwritten", f"{t} = {v.replace(k, f'{k}.copy()', 1)}")

    def _later(self, node: ast.stmt, value: ast.expr) -> None:
        """What an operation keeps of an array that is written to in a later line."""
        for write in self.here:
            target = write.target if isinstance(write, ast.AugAssign) else write.targets[0]
            root = root_of(target)
            if write.lineno <= node.lineno or self.level(root) != VALUE or self.is_list(root):
                continue
            kept = next(self._kept(value, target), None)
            mended = (
                isinstance(target, ast.Subscript) and _is_whole(target.slice) and any(self._kept(write.value, target))
            )
            if kept is None or mended or self._is_rebound(root, node.lineno, write.lineno):
                continue
            k = self.text(kept)
            if isinstance(write, ast.AugAssign) and key_of(target):
                new = f"{self.text(target)} = {self.text(target)} {_sign(write.op)} {operand(self.text(write.value))}"
                self.add(
                    write, "overwritten", new, why=f"a derivative needs what it writes over: see line {node.lineno}"
                )
            else:
                self.add(
                    kept,
                    "overwritten",
                    f"{k}.copy()",
                    k,
                    why=f"its derivative needs it, and line {write.lineno} writes over it",
                )
            return

    def _is_rebound(self, root: ast.expr, first: int, last: int) -> bool:
        """Whether a name gets another value between two lines, or in the first."""
        return any(
            isinstance(n, ast.Assign) and first <= n.lineno < last and self.text(t) == self.text(root)
            for n in self.own if isinstance(n, ast.Assign) for t in n.targets
        )  # fmt: skip

    def _kept(self, value: ast.expr, target: ast.expr) -> Iterator[ast.expr]:
        """The reads of what is written to that stand, as they are, in an operation that keeps its operands."""
        for node in ast.walk(value):
            is_array = False  # plainly, so that an element is no number
            match node:
                case ast.BinOp(left=left, op=ast.Mult() | ast.MatMult(), right=right):
                    reads = [a for a, b in ((left, right), (right, left)) if self.level(b) == VALUE]
                case ast.BinOp(left=left, op=ast.Div(), right=right):
                    reads = [*([left] if self.level(right) == VALUE else []), right]
                case ast.BinOp(left=left, op=ast.Pow()):
                    reads = [left]
                case ast.Call(func=func, args=args) if key_of(func).lstrip(".") not in _LINEAR:
                    called = isinstance(func, ast.Attribute) and not self.program.full_name(func)
                    reads = [*args, *([func.value] if called else [])]  # type: ignore[attr-defined]
                    is_array = key_of(func).lstrip(".") in _REDUCE
                case _:
                    continue
            yield from (r for r in reads if self._overlaps(r, target, is_array))

    def _overlaps(self, read: ast.expr, target: ast.expr, is_array: bool) -> bool:
        """Whether a read is of the array that is written to, and more than a number of it, which is written over."""
        one, other = (root_of(e) for e in (read, target))
        if not key_of(one) or self.text(one) != self.text(other):
            return False
        a, b = self._index(read), self._index(target)
        if a is None or b is None:
            return a is None
        for left, right in zip(a, b, strict=False):
            indices = not isinstance(left, ast.Slice) and not isinstance(right, ast.Slice)
            if (indices and self.text(left) != self.text(right)) or (not indices and _are_apart(left, right)):
                return False
        return is_array or self._is_part(a, one)

    def _index(self, node: ast.expr) -> list[ast.expr] | None:
        if not isinstance(node, ast.Subscript) or key_of(node):
            return None
        return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]

    def _is_part(self, index: list[ast.expr], array: ast.expr) -> bool:
        """Whether an index is plainly of more than one number: it has a slice, or others have more axes."""
        if any(isinstance(i, ast.Slice) for i in index):
            return True
        if any(self.level(i) == PLACE for i in index):
            return False  # a mask: what it takes is a copy
        lengths = [
            len(self._index(n) or ())
            for n in self.own
            if isinstance(n, ast.Subscript) and self.text(n.value) == self.text(array)
        ]
        shaped = [
            len(v.args[0].elts)
            for _, v in self.program.bindings(array, self.scope)
            if isinstance(v, ast.Call) and self._maker(v.func) and v.args and isinstance(v.args[0], ast.Tuple)
        ]
        return len(index) < max([*lengths, *shaped], default=0)

    def _is_kept(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        """A result that its own derivative needs, and that is written to later."""
        if not isinstance(value, ast.Call) or not self.of(target):
            return
        later = [w.line for w in self.of(target) if w.line > node.lineno]
        if not later:
            return
        name = self.program.full_name(value.func).rpartition(".")[2]
        if name in _KEPT:
            self.add(
                node,
                "result",
                f"{self.text(target)} = {self.text(value)}.copy()",
                why=f"its derivative needs the result, which is written to in line {later[0]}",
            )
        elif key_of(value.func) == ".flatten":
            x = self.text(value.func.value)  # type: ignore[attr-defined]
            self.add(
                node, "flatten", f"{self.text(target)} = np.ravel({x}).copy()", why=f"written to in line {later[0]}"
            )

    # -- what has two names --------------------------------------------------------------------------------------------

    def _element(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        """An element that is read, before the array is written to there, and used after."""
        index = self._index(value)
        if index is None or not isinstance(target, ast.Name) or self.is_list(root_of(value)):
            return
        for write in self.of(root_of(value)):
            if write.line <= node.lineno or write.whole or not isinstance(write.node, ast.Assign | ast.AugAssign):
                continue
            used = any(
                isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) and n.lineno > write.line
                for n in self.own
            )
            places = write.node.targets if isinstance(write.node, ast.Assign) else [write.node.target]
            if used and any(self.text(p) == self.text(value) for p in places):
                why = f"written to in line {write.line}"
                self.add(node, "element", f"{target.id} = {self.text(value)}.copy()", why=why)
                return

    def _swap(self, node: ast.Assign, targets: list[ast.expr], value: ast.expr) -> None:
        match targets, value:
            case [ast.Tuple(elts=[ast.Subscript() as a, ast.Subscript() as b])], ast.Tuple(elts=[c, d]):
                same = {self.text(a), self.text(b)} == {self.text(c), self.text(d)}
                if same and self.level(a.value) == VALUE and not self.is_list(a.value):
                    if self.text(a.value) == self.text(b.value) and not isinstance(a.slice, ast.Tuple | ast.Slice):
                        i, j, x = self.text(a.slice), self.text(b.slice), self.text(a.value)
                        self.add(node, "swap", f"{x}[[{i}, {j}]] = {x}[[{j}, {i}]]")
                    else:
                        copies = f"{self.text(c)}.copy(), {self.text(d)}.copy()"
                        self.add(node, "swap", f"{self.text(a)}, {self.text(b)} = {copies}")

    def _unpacked(self, node: ast.Assign, targets: list[ast.expr], value: ast.expr) -> None:
        if isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Name) and self.level(value) == VALUE:
            later = [w for w in self.of(value) if w.line > node.lineno and not w.whole]
            if later and not self.is_list(value):
                write = f"{self.text(targets[0])} = {value.id}.copy()"
                self.add(
                    node, "swap", write, why=f"an element is a view; {value.id} is written to in line {later[0].line}"
                )

    def _added(self, node: ast.AugAssign, target: ast.expr, value: ast.expr) -> None:
        """``s += t`` of a number that is an element, or that has another name."""
        if not isinstance(target, ast.Name) or self.level(value) != VALUE:
            return
        name = target.id
        home = self.program.home(name, self.scope)
        values = home.bound.get(name, []) if home is not None else []
        number = any(isinstance(v, ast.Constant) and isinstance(v.value, int | float) for v in values)
        element = any(
            (index := self._index(v)) and not any(isinstance(i, ast.Slice) for i in index)
            and self.level(v) == VALUE and not self.is_list(root_of(v)) and not self._is_part(index, root_of(v))
            for v in values
        )  # fmt: skip
        other = number and any(
            isinstance(n, ast.Assign) and isinstance(n.value, ast.Name) and n.value.id == name
            and isinstance(n.targets[0], ast.Name) and n.targets[0].id != name
            for n in self.own
        )  # fmt: skip
        if element or other:
            self.add(node, "added", f"{name} = {name} {_sign(node.op)} {operand(self.text(value))}")

    def _to_copy(self, node: ast.stmt, target: ast.Subscript, value: str) -> None:
        match target.value:
            case ast.Call(func=func, args=[y, *_]) if self.program.full_name(func) in ("numpy.flip", "numpy.rot90"):
                at = target.slice.value if isinstance(target.slice, ast.Constant) else None
                place = f"{-1 - at}" if isinstance(at, int) and at >= 0 else "..."
                self.add(node, "flip", f"{self.text(y)}[{place}] = {value}, its place in {self.text(y)}")

    def _missing(self, node: ast.stmt, target: ast.Subscript, value: ast.expr) -> None:
        match target.slice:
            case ast.Call(func=func, args=[data]) if self.program.full_name(func) == "numpy.isnan":
                if isinstance(value, ast.Constant) and self.level(root_of(target)) == VALUE:
                    d, r = self.text(data), self.text(target.value)
                    before = f"missing = np.isnan({d}); {d} = np.nan_to_num({d}) before {r} is computed"
                    self.add(node, "missing", f"{before}, and {r}[missing] = {self.text(value)} here")

    def _rows(self, loop: ast.For, row: str, rows: ast.expr) -> None:
        if self.level(rows) != VALUE or self.is_list(rows) or not key_of(rows):
            return
        for node in (n for s in loop.body for n in ast.walk(s)):
            match node:
                case ast.AugAssign(target=target) | ast.Assign(targets=[ast.Subscript() as target]):
                    root = root_of(target)
                    if isinstance(root, ast.Name) and root.id == row:
                        a, statement = self.text(rows), self.text(node)
                        each = re.sub(rf"\b{row}\b", f"{a}[i]", statement)
                        before = f"for {row} in {a}: {statement}"
                        self.add(loop, "rows", f"for i in range(len({a})): {each}", before)
                        return

    def _given(self) -> None:
        """Writes to what the function was given: what requires grad is not written to."""
        if isinstance(self.scope.node, ast.Lambda | ast.Module) or not self.program.is_entry(self.scope):
            return
        for name in self.scope.parameters:
            rebound = [v for v in self.scope.bound.get(name, ()) if not self._is_written_part(v)]
            writes = self.writes.get((self.scope, name), [])
            direct = [w for w in writes if isinstance(w.node, ast.Assign | ast.AugAssign)]
            if direct and not rebound and self.scope.levels.get(name) == VALUE and name != "self":
                self.add(direct[0].node, "given", f"{name} = {name}.copy() before it")

    def _is_written_part(self, value: ast.expr) -> bool:
        ids = {id(n.value) for n in self.own if isinstance(n, ast.AugAssign)}
        ids |= {
            id(n.value) for n in self.own if isinstance(n, ast.Assign) and any(root_of(t) is not t for t in n.targets)
        }
        return id(value) in ids


def _listed(lines: list[int], most: int = 4) -> str:
    return ", ".join(map(str, lines[:most])) + (", ..." if len(lines) > most else "")


def _is_whole(index: ast.expr) -> bool:
    """Whether an index is ``[:]`` or ``[...]``."""
    return ast.unparse(index) in (":", "...")


def _are_apart(left: ast.expr, right: ast.expr) -> bool:
    """Whether one slice begins where the other ends, or one ends before, or begins after, an index."""
    one, other = (_ends(e) for e in (left, right))
    return one[1] == other[0] or other[1] == one[0] or f"{one[0]} + 1" == other[0] or f"{other[0]} + 1" == one[0]


def _ends(index: ast.expr) -> tuple[str, str]:
    """Where a slice begins and ends, as text; of an index, itself and a place of its own."""
    if isinstance(index, ast.Slice):
        return ast.unparse(index.lower) if index.lower else "begin", ast.unparse(index.upper) if index.upper else "end"
    return ast.unparse(index), f"after {ast.unparse(index)}"


_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@", ast.FloorDiv: "//",
    ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip


def _sign(op: ast.operator) -> str:
    return _SIGNS.get(type(op), "+")

"""Writes over what a derivative needs, and to what has two names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from .certain import HOMES
from .dependence import PLACE, VALUE, key_of, root_of
from .edits import Edit
from .made_plain import AboutWrites, pairs

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


class Writes(AboutWrites):
    """What is found in statements that write, and at what they write to."""

    def read(self) -> None:
        """Look at every statement of the scope."""
        self.here = [
            (n, t, v) for n in self.own if isinstance(n, ast.Assign | ast.AugAssign)
            for t, v in (pairs(n.targets, n.value) if isinstance(n, ast.Assign) else [(n.target, n.value)])
            if isinstance(n, ast.AugAssign) or root_of(t) is not t
        ]  # fmt: skip
        for node in self.own:
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
                self._later(node, node.value)
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target, part in pairs(targets, value):
                        if root_of(target) is target and key_of(target) and self.level(part) == VALUE:
                            self._is_kept(node, target, part)
                            self._element(node, target, part)
                        elif isinstance(target, ast.Subscript):
                            self._overwrites(node, target, part)
                            self._to_copy(node, target, self.text(part))
                            self._missing(node, target, part)
                    self._swap(node, targets, value)
                    self._unpacked(node, targets, value)
                case ast.AugAssign(target=target, value=value):
                    self._overwrites(node, target, value)
                    self._added(node, target, value)
                case ast.For(target=ast.Name(id=row), iter=ast.expr() as rows):
                    self._rows(node, row, rows)
        self._given()

    # -- what a derivative needs ---------------------------------------------------------------------------------------

    def _overwrites(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        """A value that is computed of what it is written over, by an operation that keeps it."""
        if self.level(value) != VALUE or max(self.level(target), self.level(root_of(target))) != VALUE:
            return
        kept = list(self._kept(value, target))
        if not kept:
            return
        if isinstance(node, ast.AugAssign):
            if key_of(target):
                self._rebound(node, target, self.in_full(node))
            else:
                for k in kept:
                    write = f"{self.text(k)}.copy()"
                    self.add(node, "overwritten", f"{write} for {self.text(k)}", edits=self._copied(k))
        elif isinstance(target, ast.Subscript) and _is_whole(target.slice):
            self._rebound(node, target.value, f"{self.text(target.value)} = {self.text(value)}")
        else:
            edits = [self._copied(k) for k in kept]
            write = f"{self.text(target)} = {self._with_copies(value, kept)}"
            self.add(node, "overwritten", write, edits=tuple(e for own in edits for e in own) if all(edits) else ())

    def _with_copies(self, value: ast.expr, kept: list[ast.expr]) -> str:
        """The text of a value with copies of what is kept."""
        begin, end = self.program.span(value)
        data = self.program.data[:end]
        for _, place in sorted((self.program.span(k) for k in kept), reverse=True):
            data = data[:place] + b".copy()" + data[place:]
        return data[begin:].decode()

    def _copied(self, kept: ast.expr) -> tuple[Edit, ...]:
        """The copy of what is read, where that is only computed with: a function of the file may write to it."""
        parent = self.program.parents[kept]
        if isinstance(parent, ast.Attribute):
            sure = parent.attr in _REDUCE | _LINEAR
        else:
            sure = not isinstance(parent, ast.Call) or self.program.full_name(parent.func).startswith("numpy.")
        return self.at(kept, f"{self.text(kept)}.copy()") if sure else ()

    def _rebound(self, node: ast.stmt, target: ast.expr, write: str, why: str = "") -> None:
        """A name that gets another array for one that is written over: if no other name has that."""
        self.add(node, "overwritten", write, why=why, edits=None if self.is_unshared(target) else ())

    def _later(self, node: ast.stmt, value: ast.expr) -> None:
        """What an operation keeps of an array that is written to in a later line."""
        told: set[ast.expr] = set()
        renewed: set[str] = set()
        for write, target, written in self.here:
            root = root_of(target)
            if not self._is_later(write, node) or self.level(root) != VALUE or self.is_list(root):
                continue
            kept = [k for k in self._kept(value, target) if k not in told and self.text(root) not in renewed]
            if write.lineno < node.lineno:
                kept = [k for k in kept if not self._moves(k, target, self._loop(write, node))]
            rebound = isinstance(target, ast.Subscript) and _is_whole(target.slice) and any(self._kept(written, target))
            if not kept or rebound or self._is_rebound(root, node, write):
                continue
            if isinstance(write, ast.AugAssign) and key_of(target):
                why = f"a derivative needs what it writes over: see line {node.lineno}"
                self._rebound(write, target, self.in_full(write), why)
                renewed.add(self.text(root))
                continue
            why = f"its derivative needs it, and line {write.lineno} writes over it"
            for k in kept:
                told.add(k)
                self.add(k, "overwritten", f"{self.text(k)}.copy()", why=why, edits=self._copied(k))

    def _is_later(self, write: ast.stmt, node: ast.stmt) -> bool:
        """Whether a write is run after a statement: below it, or above it in a loop around both."""
        return write.lineno > node.lineno or (write is not node and self._loop(write, node) is not None)

    def _loop(self, *nodes: ast.stmt) -> ast.For | ast.While | None:
        """The innermost loop of the scope around all of these."""
        loops = (n for n in self.own if isinstance(n, ast.For | ast.While))
        within = [n for n in loops if all(n.lineno < s.lineno <= (n.end_lineno or 0) for s in nodes)]
        return max(within, key=lambda n: n.lineno, default=None)

    def _moves(self, read: ast.expr, target: ast.expr, loop: ast.AST | None) -> bool:
        """Whether an index of a read and of a write is another in the next round of a loop: what it writes is apart."""
        bound = {n.id for n in ast.walk(loop or read) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        both = zip(self._index(read) or (), self._index(target) or (), strict=False)
        names = (n for i, j in both if self.text(i) == self.text(j) for n in ast.walk(i))
        return any(isinstance(n, ast.Name) and n.id in bound for n in names)

    def _is_rebound(self, root: ast.expr, node: ast.stmt, write: ast.stmt) -> bool:
        """Whether a name gets another value in a statement, or between it and a write."""
        first, last = node.lineno, write.lineno
        loop = self._loop(node, write)
        around = range(first, last)
        if last <= first and loop is not None:
            around = range(loop.lineno, (loop.end_lineno or 0) + 1)
        return any(
            n.lineno in around and self.text(t) == self.text(root)
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
        if any(isinstance(i, ast.Slice) or (isinstance(i, ast.Constant) and i.value is ...) for i in index):
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
            if isinstance(v, ast.Call) and self.maker(v.func) and v.args and isinstance(v.args[0], ast.Tuple)
        ]
        return len(index) < max([*lengths, *shaped], default=0)

    def _is_kept(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        """A result that its own derivative needs, and that is written to later."""
        if not isinstance(value, ast.Call) or not self.of(target):
            return
        later = [w.line for w in self.of(target) if w.line > node.lineno]
        if not later:
            return
        a, why = self.text(target), f"written to in line {later[0]}"
        full = self.program.full_name(value.func)
        if full.rpartition(".")[2] in _KEPT and full.startswith(HOMES):
            copy = f"{self.text(value)}.copy()"
            self.add(node, "result", f"{a} = {copy}", why=why, edits=self.at(value, copy))
        elif key_of(value.func) == ".flatten":
            x = self.text(value.func.value)  # type: ignore[attr-defined]
            copy = f"np.ravel({x}).copy()"
            self.add(node, "flatten", f"{a} = {copy}", why=why, edits=self.at(value, copy))

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
                copy = f"{self.text(value)}.copy()"
                number = not self._is_part(index, root_of(value))
                self.add(
                    node, "element", f"{target.id} = {copy}", why=why, edits=self.at(value, copy) if number else ()
                )
                return

    def _swap(self, node: ast.Assign, targets: list[ast.expr], value: ast.expr) -> None:
        match targets, value:
            case [ast.Tuple(elts=[ast.Subscript() as a, ast.Subscript() as b])], ast.Tuple(elts=[c, d]):
                same = {self.text(a), self.text(b)} == {self.text(c), self.text(d)}
                if same and self.level(a.value) == VALUE and not self.is_list(a.value):
                    if self.text(a.value) == self.text(b.value) and not isinstance(a.slice, ast.Tuple | ast.Slice):
                        i, j, x = self.text(a.slice), self.text(b.slice), self.text(a.value)
                        write = f"{x}[[{i}, {j}]] = {x}[[{j}, {i}]]"
                        self.add(node, "swap", write, edits=None if self.is_array(a.value) else ())
                    else:
                        copies = f"{self.text(c)}.copy(), {self.text(d)}.copy()"
                        write = f"{self.text(a)}, {self.text(b)} = {copies}"
                        numbers = not any(self._is_part(self._index(e) or [], e.value) for e in (a, b))
                        self.add(node, "swap", write, edits=None if numbers else ())

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
            self.add(node, "added", self.in_full(node), edits=None if number and not element else ())

    def _to_copy(self, node: ast.stmt, target: ast.Subscript, value: str) -> None:
        match target.value:
            case ast.Call(func=func, args=[y, *_]) if self.program.full_name(func) in ("numpy.flip", "numpy.rot90"):
                at = target.slice.value if isinstance(target.slice, ast.Constant) else None
                place = f"{-1 - at}" if isinstance(at, int) and at >= 0 else "..."
                write = f"{self.text(y)}[{place}] = {value}, its place in {self.text(y)}"
                self.add(node, "flip", write, edits=())

    def _missing(self, node: ast.stmt, target: ast.Subscript, value: ast.expr) -> None:
        match target.slice:
            case ast.Call(func=func, args=[data]) if self.program.full_name(func) == "numpy.isnan":
                if isinstance(value, ast.Constant) and self.level(root_of(target)) == VALUE:
                    d, r = self.text(data), self.text(target.value)
                    before = f"missing = np.isnan({d}); {d} = np.nan_to_num({d}) before {r} is computed"
                    self.add(node, "missing", f"{before}, and {r}[missing] = {self.text(value)} here", edits=())

    def _rows(self, loop: ast.For, row: str, rows: ast.expr) -> None:
        if self.level(rows) != VALUE or self.is_list(rows) or not key_of(rows):
            return
        for node in (n for s in loop.body for n in ast.walk(s)):
            match node:
                case ast.AugAssign(target=target) | ast.Assign(targets=[ast.Subscript() as target]):
                    root = root_of(target)
                    if isinstance(root, ast.Name) and root.id == row:
                        a, statement = self.text(rows), self.text(node)
                        i = self.program.free_name("i", "k", "row_number")
                        each = re.sub(rf"\b{row}\b", f"{a}[{i}]", statement)
                        before = f"for {row} in {a}: {statement}"
                        # of an array with one axis, the rows are numbers, which such a loop leaves as they are
                        self.add(loop, "rows", f"for {i} in range(len({a})): {each}", before, edits=())
                        return

    def _given(self) -> None:
        """Writes to what the function was given: what requires grad is not written to."""
        if isinstance(self.scope.node, ast.Lambda | ast.Module) or not self.program.is_entry(self.scope):
            return
        for name in self.scope.parameters:
            rebound = [v for v in self.scope.bound.get(name, ()) if not self._is_written_part(v)]
            writes = self.writes.get((self.scope, name), [])
            direct = [w for w in writes if isinstance(w.node, ast.Assign | ast.AugAssign)]
            for_caller = not any(self._names(v, name) for v in self.scope.returned)  # a copy would not reach it
            if direct and not rebound and self.scope.levels.get(name) == VALUE and name != "self" and not for_caller:
                write = f"{name} = {name}.copy()"
                first: ast.stmt = self._outermost_loop(direct[0].node)
                edits = self.edit.before(first, write) if self._gets_new(name) else ()
                self.add(first, "given", f"{write} before it", edits=edits)

    def _outermost_loop(self, node: ast.AST) -> Any:
        """The outermost loop of the function around a statement; or the statement."""
        around = [node]
        while (parent := self.program.parents[around[-1]]) is not self.scope.node:
            around.append(parent)
        return next((n for n in reversed(around) if isinstance(n, ast.For | ast.While)), node)

    def _gets_new(self, name: str) -> bool:
        """Whether all calls give what no name refers to, so that nobody misses what is written to it."""
        given = [v for parameter, v, _ in self.program.given(self.scope) if parameter == name]
        return bool(given) and all(isinstance(v, ast.Call | ast.BinOp | ast.Constant) for v in given)

    def _names(self, value: ast.AST, name: str) -> bool:
        return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value))

    def _is_written_part(self, value: ast.expr) -> bool:
        ids = {id(n.value) for n in self.own if isinstance(n, ast.AugAssign)}
        ids |= {
            id(n.value) for n in self.own if isinstance(n, ast.Assign) and any(root_of(t) is not t for t in n.targets)
        }
        return id(value) in ids


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

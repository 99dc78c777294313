"""Calls and operators that take numbers, arrays or lists, and methods that are PyTorch's on a Tensor."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...tensor.protocol import INSTEAD
from .advice import Reader
from .dependence import CONSTANT, PLACE, VALUE, key_of
from .edits import operand

_words = str.split
_ALWAYS = frozenset(_words("take searchsorted ptp argpartition compress choose"))
_OF_MATH = {name: f"arc{name[1:]}" for name in _words("asin acos atan atan2 asinh acosh atanh")}
_OF_MATH |= {"fabs": "abs", "pow": "power", "fsum": "sum", "lgamma": "gammaln"}
_TO_WHOLE = frozenset(_words("floor ceil trunc remainder modf frexp ldexp"))
"""Functions of `math` whose results are not NumPy's: whole numbers, or another remainder."""
_OF_SPECIAL = frozenset(_words("gamma gammaln erf erfc"))
_PLAIN = frozenset(_words("None float complex float64 complex128 double"))
_TESTS = frozenset(_words("isnan isinf isfinite isclose comb factorial gcd lcm perm"))
_JOIN = frozenset(
    _words("""stack concatenate hstack vstack dstack column_stack row_stack block append meshgrid select insert einsum
    piecewise broadcast_arrays array asarray full_like full zeros_like ones_like empty_like array_split split
    save savez savetxt shape r_ c_ tile reshape zeros ones empty full pad moveaxis transpose roll lexsort fromiter
    unravel_index ravel_multi_index cross_ ix_ einsum_path linspace apply_over_axes vectorize broadcast_to flip
    multi_dot histogramdd""")
)
_DRAWS = frozenset(
    _words("""normal lognormal uniform exponential gamma beta gumbel laplace logistic standard_gamma standard_t wald
    weibull rayleigh triangular chisquare multivariate_normal""")
)
_DRAWS_OF_NUMBERS = frozenset(_words("poisson binomial choice multinomial geometric negative_binomial"))
_NEEDS_POSITIVE = frozenset(_words("sqrt log log2 log10 log1p arccos arcsin arccosh power"))


class Expressions(Reader):
    """What is found in single expressions."""

    def read(self) -> None:
        """Look at every expression of the scope."""
        nodes = list(self.scope.own())
        self.harmless = {id(inner) for node in nodes for part in _shown(node) for inner in ast.walk(part)}
        self.alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            match node:
                case ast.Call():
                    self._call(node)
                case ast.Subscript(value=value, slice=index):
                    self._subscript(node, value, index)
                case ast.Assign(targets=[ast.Attribute(attr="flat", value=y)], value=value) if (
                    self.level(value) >= PLACE and key_of(y) != "self"
                ):
                    a = self.text(y)
                    self.add(node, "memory", f"{a}[...] = np.resize({self.text(value)}, np.shape({a}))")
                case ast.Attribute(attr="flat", value=value, ctx=ast.Load()) if self.level(value) >= PLACE:
                    self._flat(node, f"{operand(self.text(value))}.reshape(-1)")
                case ast.Compare(left=left, comparators=[right]) if any(map(self._is_dtype, (left, right))):
                    self._dtype(node, left, right)
                case ast.BinOp(left=left, right=right):
                    for one, other in ((left, right), (right, left)):
                        numbers = isinstance(one, ast.List) and all(isinstance(e, ast.Constant) for e in one.elts)
                        if numbers and not self.is_list(other) and self.level(other) == VALUE:
                            self._operand(node, one, other)

    def _is_dtype(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "dtype" and self.level(node.value) >= PLACE

    def _dtype(self, node: ast.expr, left: ast.expr, right: ast.expr) -> None:
        one = left if self._is_dtype(left) else right
        ours, text = self.text(one), f"np.dtype({self.text(one)})"
        self.add(node, "dtype", self.text(node).replace(ours, text), edits=self.at(one, text))

    def _flat(self, node: ast.Attribute, write: str) -> None:
        parent = self.program.parents[node]
        reads = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load)
        reads |= isinstance(parent, ast.For | ast.comprehension)
        self.add(node, "memory", write, why="a Tensor has no flat", edits=None if reads else ())

    def _operand(self, node: ast.BinOp, one: ast.expr, other: ast.expr) -> None:
        """A list beside a value; of two lists + makes one, so the value has to be an array for sure."""
        text = f"np.array({self.text(one)})"
        sure = not isinstance(node.op, ast.Add | ast.Mult) or self.is_array(
            other
        )  # or the list is added to, or repeated
        self.add(node, "operand", text, self.text(one), edits=self.at(one, text) if sure else ())

    def _subscript(self, node: ast.Subscript, value: ast.expr, index: ast.expr) -> None:
        if (full := self.program.full_name(value)) in ("numpy.r_", "numpy.c_"):
            if self.level(index) == VALUE:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                wrapped = [
                    t if self.is_list(e) else f"np.atleast_1d({t})"
                    for e, t in zip(parts, map(self.text, parts), strict=True)
                ]
                joined = ", ".join(wrapped if full == "numpy.r_" else map(self.text, parts))
                function = "np.concatenate" if full == "numpy.r_" else "np.column_stack"
                plain = not any(isinstance(e, ast.Slice) or _is_string(e) for e in parts)
                self.add(node, "joined", f"{function}([{joined}])", edits=None if plain else ())
            return
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        for axis, part in enumerate(parts):
            if (
                isinstance(part, ast.Slice)
                and _is_negative(part.step)
                and self.level(value) >= PLACE
                and not self.is_list(value)
            ):
                rest = [":" if p is part else self.text(p) for p in parts]
                before = self.text(value) if all(r == ":" for r in rest) else f"{self.text(value)}[{', '.join(rest)}]"
                if part.lower is part.upper is None and part.step.operand.value == 1:  # type: ignore[union-attr]
                    taken = [p for p in parts[:axis] if not isinstance(p, ast.Slice)]
                    others = [p for p in parts if not isinstance(p, ast.Slice)]
                    sure = isinstance(node.ctx, ast.Load) and all(map(self._is_integer, others))
                    write = f"np.flip({before}, {axis - len(taken)})"
                    self.add(node, "step", write, edits=None if sure else ())
                else:
                    self.add(node, "step", f"np.flip(part, {axis}) of a part with a positive step", edits=())

    def _is_integer(self, index: ast.expr) -> bool:
        """Whether an index is plainly a whole number, which takes an axis away."""
        if isinstance(index, ast.UnaryOp):
            return self._is_integer(index.operand)
        if isinstance(index, ast.Constant):
            return isinstance(index.value, int)
        values = [v for _, v in self.program.bindings(index, self.scope)] if isinstance(index, ast.Name) else []
        return bool(values) and all(
            isinstance(v, ast.Constant) or (isinstance(v, ast.Call) and key_of(v.func) == "range") for v in values
        )

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call) -> None:
        full = self.program.full_name(call.func)
        home, _, name = full.rpartition(".")
        if home == "math":
            self._math(call, name)
        elif full.startswith("numpy.random."):
            self._draw(call, name)
        elif full.startswith("numpy.") and not full.startswith("numpy.ma."):
            self._numpy(call, full, name)
        elif isinstance(call.func, ast.Name):
            self._builtin(call, call.func.id)
        elif isinstance(call.func, ast.Attribute) and not full:
            if call.func.attr == "normal" or call.func.attr in _DRAWS | _DRAWS_OF_NUMBERS:
                self._draw(call, call.func.attr)
            elif not self._is_own(call.func.attr) and not self._is_scipys(call.func.value):
                self._method(call, call.func.value, call.func.attr)
        for k in call.keywords:
            if k.arg == "out" and max(self.program.given_to(call, self.scope), self.level(call.func)) == VALUE:
                rest = f"{self.text(call.func)}({', '.join(self.arguments(call, ('out',)))})"
                sure = full.startswith("numpy.") and not any(other.arg == "where" for other in call.keywords)
                sure &= self.text(k.value) in map(self.text, call.args)  # or it has another shape
                self._rebound(call, "memory", k.value, rest, sure)

    def _rebound(self, call: ast.Call, kind: str, target: ast.expr, value: str, sure: bool = True) -> None:
        """A call that writes to an array, for which a name gets another value: if no other name has the array."""
        sure &= not isinstance(target, ast.Tuple) and self.is_unshared(target)
        self.add(call, kind, f"{self.text(target)} = {value}", edits=None if sure else ())

    def _is_own(self, name: str) -> bool:
        """Whether a method is one of a class of the file."""
        return any(scope.of_class for scope in self.program.functions.get(name, []))

    def _is_scipys(self, node: ast.expr) -> bool:
        """Whether a value is made by a call of SciPy's."""
        made = [node, *(v for _, v in self.program.bindings(node, self.scope))]
        return any(isinstance(v, ast.Call) and self.program.full_name(v.func).startswith("scipy.") for v in made)

    def _builtin(self, call: ast.Call, name: str) -> None:
        if not call.args or self.program.home(name, self.scope) is not None:
            return
        first, given = call.args[0], self.program.given_to(call, self.scope)
        if name in ("float", "complex") and given == VALUE and id(call) not in self.harmless:
            parts = [operand(t) for t in map(self.text, call.args)]
            plain = self._as_float(first) if name == "float" else f"{parts[0]} + 0j"
            write = f"{parts[0]} + 1j * {parts[1]}" if len(parts) > 1 else plain
            self.add(call, "number", write, edits=() if any(map(self._is_of_others, ast.walk(call))) else None)
        elif name == "isinstance" and self.level(first) == VALUE:
            asked = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(call.args[1])}
            if asked & {"float", "ndarray", "floating", "float64", "Number", "Real", "number", "generic"}:
                write = f"np.ndim({self.text(first)}) {'>' if 'ndarray' in asked else '=='} 0"
                self.add(call, "test", write, edits=())  # it may be a list, or None

    def _as_float(self, node: ast.expr) -> str:
        """A value that may be a whole number, as a float that keeps the gradient."""
        return self.text(node) if self.is_float(node) else f"1.0 * {operand(self.text(node))}"

    def _is_of_others(self, node: ast.AST) -> bool:
        """Whether a function of another library is called, which may give what is no number of NumPy's."""
        home = self.program.full_name(node.func) if isinstance(node, ast.Call) else ""
        return home != "" and not f"{home}.".startswith(("numpy.", "scipy.", "math."))

    def _math(self, call: ast.Call, name: str) -> None:
        if self.program.given_to(call, self.scope) != VALUE or name in _TESTS:
            return
        texts = self.arguments(call)
        new = _OF_MATH.get(name, name)
        home = "pullback.scipy.special" if new in _OF_SPECIAL else "np"
        if name == "log" and len(texts) == 2:
            self.add(call, "math", f"np.log({texts[0]}) / np.log({texts[1]})")
        elif name == "hypot" and len(texts) == 3:
            self.add(call, "math", f"np.hypot(np.hypot({texts[0]}, {texts[1]}), {texts[2]})")
        elif name == "pow" and len(texts) == 2:
            self.add(call, "math", f"np.power({self._as_float(call.args[0])}, {texts[1]})")
        elif name == "dist":
            self.add(call, "math", f"np.linalg.norm(np.subtract({', '.join(texts)}))")
        else:
            sure = (home != "np" or hasattr(np, new)) and name not in _TO_WHOLE and name != "fsum"
            sure &= not any(isinstance(a, ast.Starred | ast.GeneratorExp) for a in call.args)
            needs = home * (home != "np")
            edits = self.at(call.func, f"{home}.{new}", needs) if sure else ()
            self.add(call, "math", f"{home}.{new}({', '.join(texts)})", edits=edits)

    def _draw(self, call: ast.Call, name: str) -> None:
        where = ("low", "high") if name == "uniform" else ("loc", "scale")
        given = [*call.args[:2], *(k.value for k in call.keywords if k.arg in (*where, "lam", "p", "a", "mean"))]
        if max(map(self.level, given), default=0) != VALUE:
            return
        if name == "normal":
            named = {k.arg: self.text(k.value) for k in call.keywords}
            texts = dict(zip(("loc", "scale", "size"), map(self.text, call.args), strict=False)) | named
            loc, scale = texts.get("loc", "0.0"), texts.get("scale", "1.0")
            fixed = [operand(t) for t in (loc, scale) if not re.fullmatch(r"[\d.e+-]+", t)]
            size = texts.get("size", f"np.shape({' + '.join(fixed or [loc])})")
            parts = [] if texts.get("loc", "0") in ("0", "0.0") else [f"{operand(loc)} + "]
            parts += [] if scale == "1.0" else [f"{operand(scale)} * "]
            write = f"{''.join(parts)}{self.text(call.func)}(size={size})"
            calls = (n for a in given for n in ast.walk(a) if isinstance(n, ast.Call))
            again = "size" not in texts and not all(self._is_pure(n) for n in calls)
            sure = self._is_numpys_generator(call.func) and not again  # what is called stands twice
            self.add(call, "draw", write, edits=None if sure else ())
        elif name in _DRAWS:
            self.add(
                call,
                "draw",
                f"the rvs() of pullback.scipy.stats for {name}, or a draw of fixed numbers that is transformed",
                edits=(),
            )
        elif name in _DRAWS_OF_NUMBERS:
            self.add(
                call,
                "draw",
                f"{name}() of t.detach().numpy()",
                why="if it depends on the parameters: what is drawn among integers has no derivative",
                edits=(),
            )

    def _is_pure(self, call: ast.Call) -> bool:
        """Whether a call is of NumPy's, and draws nothing."""
        full = self.program.full_name(call.func)
        return full.startswith("numpy.") and not full.startswith("numpy.random.")

    def _is_numpys_generator(self, func: ast.expr) -> bool:
        """Whether a method is plainly one of a generator of NumPy's."""
        if self.program.full_name(func).startswith("numpy.random."):
            return True
        owner = func.value if isinstance(func, ast.Attribute) else func
        made = [v.func for _, v in self.program.bindings(owner, self.scope) if isinstance(v, ast.Call)]
        return "rng" in key_of(owner) or any(self.program.full_name(f).startswith("numpy.random.") for f in made)

    def _method(self, call: ast.Call, owner: ast.expr, name: str) -> None:
        if self.level(owner) < PLACE:
            return
        x, given = self.text(owner), self.arguments(call)
        instead = f"np.{name}({', '.join([x, *given])})"
        axis = bool(call.args) or any(k.arg == "axis" and self.text(k.value) != "None" for k in call.keywords)
        in_order = any(k.arg == "order" for k in call.keywords)
        if name in ("std", "var"):
            self.add(call, "std", instead)
        elif name in ("max", "min") and axis:
            self.add(call, "max", instead)
        elif (
            name in ("sort", "partition")
            and id(call) in self.alone
            and not self.is_list(owner)
            and not _sorts_lists(call)
        ):
            self._rebound(call, "sort", owner, instead)
        elif name in ("nonzero", "repeat") and not (name == "repeat" and self.is_list(owner)):
            self.add(call, name, instead)
        elif name == "transpose" and len(call.args) != 2:
            order = f", ({', '.join(given)})" if len(given) > 1 else "".join(f", {g}" for g in given)
            self.add(call, "method", f"np.transpose({x}{order})")
        elif name == "dot":
            product = len(given) == 1 and not (call.args and self.is_number(call.args[0]))
            write = f"{operand(x)} @ {operand(given[0])}" if product else instead
            self.add(call, "method", write, why="PyTorch's method takes two vectors")
        elif name == "compress" and given:
            self.add(call, "method", f"np.compress({', '.join([given[0], x, *given[1:]])})")
        elif (
            name in _ALWAYS
            or (name in ("cumsum", "cumprod") and not axis)
            or (name in ("ravel", "reshape") and in_order)
        ):
            if name == "reshape" and len(call.args) > 1:
                order = ", ".join(given[len(call.args) :])
                instead = f"np.reshape({x}, ({', '.join(given[: len(call.args)])}), {order})"
            self.add(call, "method", instead)
        elif name in ("flatten", "ravel") and given:
            self.add(call, "method", f"np.ravel({', '.join([x, *given])}).copy()" if name == "flatten" else instead)
        elif name in ("item", "tolist") and self.level(owner) == VALUE and id(call) not in self.harmless:
            place = f"{operand(x)}.reshape(-1)[{given[0]}]" if len(given) == 1 else f"{operand(x)}[{', '.join(given)}]"
            sure = name == "item" and (bool(given) or self.is_number(owner))
            self.add(call, "number", place if given else x, edits=None if sure else ())
        elif name == "fill" and given:
            self.add(call, "memory", f"{operand(x)}[...] = {given[0]}", edits=None if len(given) == 1 else ())

    def _numpy(self, call: ast.Call, full: str, name: str) -> None:
        if not call.args:
            return
        first, texts, given = call.args[0], [*map(self.text, call.args)], self.program.given_to(call, self.scope)
        if name in ("fill_diagonal", "copyto", "put", "place", "putmask") and given >= PLACE and len(texts) > 1:
            self._written_by_numpy(call, name, texts)
        elif name in ("vectorize", "frompyfunc", "nditer", "ndenumerate", "asmatrix", "matrix", "fromiter"):
            self._without_protocol(call, name, texts, given)
        elif given != VALUE:
            return
        elif name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
            self._array(call, first, name)
        elif name in ("float64", "float32", "double", "float16", "complex128"):
            sure = name in ("float64", "double") and not self.is_list(first)
            write = self._as_float(first) if sure else texts[0]
            self.add(call, "number", write, edits=None if sure else ())
        elif name == "isscalar":
            self.add(call, "test", f"np.ndim({texts[0]}) == 0", edits=())  # it may be a string, or None
        elif name == "full" and len(texts) > 1 and self.level(call.args[1]) == VALUE and not self._is_written(call):
            other = len(texts) > 2 or any(k.arg == "dtype" for k in call.keywords)
            self.add(call, "full", f"{operand(texts[1])} * np.ones({texts[0]})", edits=() if other else None)
        elif name == "full_like" and self.level(first) == CONSTANT and not self._is_written(call):
            other = len(texts) > 2 or bool(call.keywords)
            self.add(call, "full", f"{operand(texts[1])} * np.ones_like({texts[0]})", edits=() if other else None)
        elif name == "arange":
            self._arange(call, texts)
        elif name == "nan_to_num" and any(k.arg == "copy" and self.text(k.value) == "False" for k in call.keywords):
            self._rebound(call, "diagonal", first, f"np.nan_to_num({', '.join(self.arguments(call, ('copy',)))})")
        elif name == "where" and len(texts) == 3:
            self._where(call)
        elif (function := _numpys(full)) is not None and function in INSTEAD and not name.startswith("save"):
            self.add(call, "no rule", INSTEAD[function].removeprefix("write "), edits=())
        else:
            self._lists(call, name)

    def _arange(self, call: ast.Call, texts: list[str]) -> None:
        steps = {1: [], 2: call.args[:1]}.get(len(texts), [*call.args[:1], *call.args[2:]])
        if max(map(self.level, steps), default=CONSTANT) == VALUE:
            by = f"{operand(texts[2])} * " if len(texts) > 2 else ""
            self.add(call, "arange", f"{operand(texts[0])} + {by}np.arange(n), of n numbers", edits=())

    def _is_written(self, call: ast.Call) -> bool:
        return any(f.kind == "made" and (f.line, f.column) == (call.lineno, call.col_offset) for f in self.found)

    def _written_by_numpy(self, call: ast.Call, name: str, texts: list[str]) -> None:
        y, value = texts[0], texts[-1]
        instead = {
            "fill_diagonal": f"{y}[np.diag_indices(min({y}.shape))] = {value}",
            "copyto": f"{y}[...] = {texts[1]}",
            "put": f"{y}.reshape(-1)[{texts[1]}] = {value}",
        }
        if name != "copyto" or not any(k.arg == "where" for k in call.keywords):
            number = isinstance(call.args[-1], ast.Constant)  # of others, NumPy takes the first, or repeats them
            masked = number and isinstance(call.args[1], ast.Compare)
            sure = masked if name in ("put", "place", "putmask") else not call.keywords and len(texts) == 2
            kind = "diagonal" if name == "fill_diagonal" else "memory"
            write = instead.get(name, f"{y}[{texts[1]}] = {value}")
            self.add(call, kind, write, edits=None if sure and name != "put" else ())
        else:
            where = next(self.text(k.value) for k in call.keywords if k.arg == "where")
            self.add(call, "memory", f"{y}[...] = np.where({where}, {texts[1]}, {y})")

    def _without_protocol(self, call: ast.Call, name: str, texts: list[str], given: int) -> None:
        if name in ("vectorize", "frompyfunc"):
            whole = f"pullback.vmap({texts[0]}), or call {texts[0]} on the whole, with np.where for if"
            self.add(call, "vectorize", whole, edits=())
        elif given == VALUE and name == "fromiter":
            several = isinstance(call.args[0], ast.GeneratorExp)
            write = f"np.stack([{texts[0][1:-1]}])" if several else f"np.stack(list({texts[0]}))"
            self.add(call, "joined", write, edits=None if texts[1:] == ["float"] and not call.keywords else ())
        elif given == VALUE and name.startswith("nd"):
            self.add(call, "joined", "a loop over np.ndindex(x.shape)", edits=())
        elif given == VALUE:
            self.add(call, "joined", f"{texts[0]}, with @ for products", edits=())

    def _array(self, call: ast.Call, first: ast.expr, name: str) -> None:
        named = {k.arg: self.text(k.value) for k in call.keywords}
        dtype = named.pop("dtype", self.text(call.args[1]) if len(call.args) > 1 else "None")
        sure = len(call.args) < 3 and not named and dtype.rpartition(".")[2].strip("'\"") in _PLAIN
        sure &= name == "array" or (name != "asanyarray" and not self._is_written_to(call))
        to = "" if dtype == "None" else f".astype({dtype})"
        if not self.is_list(first):
            text = self.text(first)
            same = name != "array" and self.is_array(first) and not to
            self.add(call, "asarray", text if same else f"np.copy({text}){to}", edits=None if sure else ())
            return
        joined = self.joined(first)
        kind = "array" if joined.startswith("np.stack") and not _has_rows(first) else "block"
        self.add(call, kind, joined + to, edits=None if sure else ())

    def joined(self, values: ast.expr) -> str:
        """A list of values as an array: of numbers in rows by np.block, which joins what has axes in another way."""
        text = self.text(values)
        if isinstance(values, ast.GeneratorExp):
            return f"np.stack([{text[1:-1]}])"
        if not _has_rows(values):
            return f"np.stack({text})"
        rows = values.elts if isinstance(values, ast.List | ast.Tuple) else []
        if all(map(_is_row, rows)) and any(map(self.is_number, itertools.chain(*map(_elements, rows)))):
            return f"np.block({self._in_lists(values)})"
        if isinstance(values, ast.ListComp):
            rest = text[1:].removeprefix(self.text(values.elt))
            return f"np.stack([{self.joined(values.elt)}{rest})"
        return f"np.stack([{', '.join(self.joined(r) if _is_row(r) else self.text(r) for r in rows)}])"

    def _in_lists(self, node: ast.expr) -> str:
        """Rows of values as lists, also where they are written as tuples."""
        if isinstance(node, ast.List | ast.Tuple):
            return f"[{', '.join(map(self._in_lists, node.elts))}]"
        return self.text(node)

    def _is_written_to(self, call: ast.Call) -> bool:
        """Whether what asarray gives, perhaps the caller's array, may be written to."""
        parent = self.program.parents[call]
        if isinstance(parent, ast.Return) or (
            isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load)
        ):
            return True
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and key_of(parent.targets[0]):
            return not self.is_only_read(parent.targets[0])
        return not self._is_read(call)

    def _lists(self, call: ast.Call, name: str) -> None:
        """Lists of values that a function of NumPy would make arrays of."""
        for arg in [] if name in _JOIN else call.args[:3]:
            if self.is_list(arg) and not isinstance(arg, ast.Tuple) and self.level(arg) == VALUE:
                joined = self.joined(arg)
                given = [joined if a is arg else self.text(a) for a in call.args]
                rest = self.arguments(call)[len(call.args) :]
                write = f"{self.text(call.func)}({', '.join([*given, *rest])})"
                self.add(call, "list", write, edits=self.at(arg, joined))
                return

    def _where(self, call: ast.Call) -> None:
        condition, *branches = call.args
        asked = {
            self.text(n)
            for n in ast.walk(condition)
            if isinstance(n, ast.Name | ast.Subscript) and self.level(n) == VALUE
        }
        for branch in branches:
            for inner in ast.walk(branch):
                for risky in self._risky(inner):
                    inside = {self.text(n) for n in ast.walk(risky) if isinstance(n, ast.Name | ast.Subscript)}
                    if x := next(iter(sorted(asked & inside)), ""):
                        safe = f"np.where({self.text(condition)}, {x}, 1.0)"
                        where = safe if branch is branches[0] else f"np.where({self.text(condition)}, 1.0, {x})"
                        self.add(call, "nan", f"{where} for {x} in {self.text(branch)}", edits=())
                        return

    def _risky(self, node: ast.AST) -> Iterator[ast.expr]:
        """The arguments at which a function may have no finite derivative."""
        match node:
            case ast.Call(func=func, args=[first, *_]):
                if self.program.full_name(func).rpartition(".")[2] in _NEEDS_POSITIVE:
                    yield first
            case ast.BinOp(op=ast.Div(), right=right):
                yield right
            case ast.BinOp(op=ast.Pow(), left=left, right=ast.Constant(value=float(power))) if power != int(power):
                yield left


def _shown(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node where a number is only shown, or asked: no gradient ends there."""
    match node:
        case ast.JoinedStr():
            yield node
        case ast.Call(func=ast.Name(id="print" | "str" | "repr" | "int" | "range")):
            yield from node.args
        case ast.Call(func=ast.Attribute(attr="format" | "info" | "debug" | "warning" | "write" | "warn")):
            yield from [*node.args, *(k.value for k in node.keywords)]
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
            yield right
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            yield test
        case ast.Compare():
            yield node
        case ast.Subscript(slice=index):
            yield index


def _elements(node: ast.expr) -> list[ast.expr]:
    return [node.elt] if isinstance(node, ast.ListComp | ast.GeneratorExp) else list(getattr(node, "elts", []))


def _is_row(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.ListComp | ast.Tuple)


def _has_rows(node: ast.expr) -> bool:
    return any(map(_is_row, _elements(node)))


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_negative(step: ast.expr | None) -> bool:
    return isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub) and isinstance(step.operand, ast.Constant)


def _sorts_lists(call: ast.Call) -> bool:
    return any(k.arg in ("key", "reverse") for k in call.keywords)


def _numpys(full: str) -> Any:
    """The function of NumPy of this name, or None."""
    found: Any = np
    for name in full.split(".")[1:]:
        found = getattr(found, name, None)
    return found

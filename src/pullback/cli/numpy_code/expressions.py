"""Calls and operators that take numbers, arrays or lists, and methods that are PyTorch's on a Tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...tensor.protocol import INSTEAD
from .advice import Reader, operand
from .dependence import CONSTANT, PLACE, VALUE

_words = str.split
_ALWAYS = frozenset(_words("take searchsorted ptp argpartition compress choose"))
_OF_MATH = {name: f"arc{name[1:]}" for name in _words("asin acos atan atan2 asinh acosh atanh")}
_OF_MATH |= {"fabs": "abs", "pow": "power", "fsum": "sum", "dist": "linalg.norm", "lgamma": "gammaln"}
_OF_SPECIAL = frozenset(_words("gamma gammaln erf erfc"))
_TESTS = frozenset(_words("isnan isinf isfinite isclose comb factorial gcd lcm perm"))
_JOIN = frozenset(
    _words("""stack concatenate hstack vstack dstack column_stack row_stack block append meshgrid select insert einsum
    piecewise broadcast_arrays array asarray full_like full zeros_like ones_like empty_like array_split split
    save savez savetxt shape r_ c_ tile reshape zeros ones empty full pad moveaxis transpose roll lexsort fromiter
    unravel_index ravel_multi_index cross_ ix_ einsum_path linspace apply_over_axes vectorize broadcast_to flip""")
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
        self.nested = {id(e) for n in nodes if isinstance(n, ast.List | ast.ListComp) for e in _elements(n)}
        for node in nodes:
            match node:
                case ast.Call():
                    self._call(node)
                case ast.Subscript(value=value, slice=index):
                    self._subscript(node, value, index)
                case ast.Assign(targets=[ast.Attribute(attr="flat", value=y)], value=value) if (
                    self.level(value) >= PLACE
                ):
                    a = self.text(y)
                    self.add(node, "memory", f"{a}[...] = np.reshape({self.text(value)}, np.shape({a}))")
                case ast.Attribute(attr="flat", value=value, ctx=ast.Load()) if self.level(value) >= PLACE:
                    self.add(node, "memory", f"{self.text(value)}.reshape(-1)", why="a Tensor has no flat")
                case ast.Compare(left=left, comparators=[right]) if any(map(self._is_dtype, (left, right))):
                    self._dtype(node, left, right)
                case ast.BinOp(left=left, right=right):
                    for one, other in ((left, right), (right, left)):
                        numbers = isinstance(one, ast.List) and all(isinstance(e, ast.Constant) for e in one.elts)
                        if numbers and not self.is_list(other) and self.level(other) == VALUE:
                            self.add(node, "operand", f"np.array({self.text(one)})", self.text(one))

    def _is_dtype(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "dtype" and self.level(node.value) >= PLACE

    def _dtype(self, node: ast.expr, left: ast.expr, right: ast.expr) -> None:
        one = left if self._is_dtype(left) else right
        self.add(node, "dtype", self.text(node).replace(self.text(one), f"np.dtype({self.text(one)})"))

    def _subscript(self, node: ast.Subscript, value: ast.expr, index: ast.expr) -> None:
        if (full := self.program.full_name(value)) in ("numpy.r_", "numpy.c_"):
            if self.level(index) == VALUE:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                wrapped = [
                    t if self.is_list(e) else f"np.atleast_1d({t})"
                    for e, t in zip(parts, map(self.text, parts), strict=True)
                ]
                joined = ", ".join(wrapped if full == "numpy.r_" else map(self.text, parts))
                self.add(node, "joined", f"np.{'concatenate' if full == 'numpy.r_' else 'column_stack'}([{joined}])")
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
                    self.add(node, "step", f"np.flip({before}, {axis})")
                else:
                    self.add(node, "step", f"np.flip(part, {axis}) of a part with a positive step")

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call) -> None:
        full = self.program.full_name(call.func)
        home, _, name = full.rpartition(".")
        if home == "math":
            self._math(call, name)
        elif full.startswith("numpy.random."):
            self._draw(call, name)
        elif full.startswith("numpy."):
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
                self.add(call, "memory", f"{self.text(k.value)} = {rest}")

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
            self.add(call, "number", f"({parts[0]} + 1j * {parts[1]})" if len(parts) > 1 else self.text(first))
        elif name == "isinstance" and self.level(first) == VALUE:
            asked = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(call.args[1])}
            if asked & {"float", "ndarray", "floating", "float64", "Number", "Real", "number", "generic"}:
                self.add(call, "test", f"np.ndim({self.text(first)}) {'>' if 'ndarray' in asked else '=='} 0")

    def _math(self, call: ast.Call, name: str) -> None:
        if self.program.given_to(call, self.scope) != VALUE or name in _TESTS:
            return
        name = _OF_MATH.get(name, name)
        home = "pullback.scipy.special" if name in _OF_SPECIAL else "np"
        self.add(call, "math", f"{home}.{name}({', '.join(self.arguments(call))})")

    def _draw(self, call: ast.Call, name: str) -> None:
        where = ("low", "high") if name == "uniform" else ("loc", "scale")
        given = [*call.args[:2], *(k.value for k in call.keywords if k.arg in (*where, "lam", "p", "a", "mean"))]
        if max(map(self.level, given), default=0) != VALUE:
            return
        if name == "normal":
            named = {k.arg: self.text(k.value) for k in call.keywords}
            texts = dict(zip(("loc", "scale", "size"), map(self.text, call.args), strict=False)) | named
            loc, scale = texts.get("loc", "0.0"), texts.get("scale", "1.0")
            size = texts.get("size", f"np.shape({loc})")
            self.add(call, "draw", f"{loc} + {operand(scale)} * {self.text(call.func)}(size={size})")
        elif name in _DRAWS:
            self.add(
                call,
                "draw",
                f"the rvs() of pullback.scipy.stats for {name}, or a draw of fixed numbers that is transformed",
            )
        elif name in _DRAWS_OF_NUMBERS:
            self.add(
                call,
                "draw",
                f"{name}() of t.detach().numpy()",
                why="if it depends on the parameters: what is drawn among integers has no derivative",
            )

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
            self.add(call, "sort", f"{x} = {instead}")
        elif name in ("nonzero", "repeat") and not (name == "repeat" and self.is_list(owner)):
            self.add(call, name, instead)
        elif name == "transpose" and len(call.args) != 2:
            order = f", ({', '.join(given)})" if len(given) > 1 else "".join(f", {g}" for g in given)
            self.add(call, "method", f"np.transpose({x}{order})")
        elif name == "dot":
            self.add(call, "method", instead, why="PyTorch's method takes two vectors")
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
            self.add(call, "number", f"{x}[{given[0]}]" if given else x)
        elif name == "fill" and given:
            self.add(call, "memory", f"{x}[...] = {given[0]}")

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
            self.add(call, "number", texts[0])
        elif name == "isscalar":
            self.add(call, "test", f"np.ndim({texts[0]}) == 0")
        elif name == "full" and len(texts) > 1 and self.level(call.args[1]) == VALUE and not self._is_written(call):
            self.add(call, "full", f"{operand(texts[1])} * np.ones({texts[0]})")
        elif name == "full_like" and self.level(first) == CONSTANT and not self._is_written(call):
            self.add(call, "full", f"{operand(texts[1])} * np.ones_like({texts[0]})")
        elif name == "arange":
            self._arange(call, texts)
        elif name == "nan_to_num" and any(k.arg == "copy" and self.text(k.value) == "False" for k in call.keywords):
            self.add(call, "diagonal", f"{texts[0]} = np.nan_to_num({', '.join(self.arguments(call, ('copy',)))})")
        elif name == "where" and len(texts) == 3:
            self._where(call)
        elif (function := _numpys(full)) is not None and function in INSTEAD and not name.startswith("save"):
            self.add(call, "no rule", INSTEAD[function].removeprefix("write "))
        else:
            self._lists(call, name)

    def _arange(self, call: ast.Call, texts: list[str]) -> None:
        steps = {1: [], 2: call.args[:1]}.get(len(texts), [*call.args[:1], *call.args[2:]])
        if max(map(self.level, steps), default=CONSTANT) == VALUE:
            by = f"{operand(texts[2])} * " if len(texts) > 2 else ""
            self.add(call, "arange", f"{operand(texts[0])} + {by}np.arange(n), of n numbers")

    def _is_written(self, call: ast.Call) -> bool:
        return any(f.kind == "made" and (f.line, f.column) == (call.lineno, call.col_offset) for f in self.found)

    def _written_by_numpy(self, call: ast.Call, name: str, texts: list[str]) -> None:
        y, value = texts[0], texts[-1]
        instead = {
            "fill_diagonal": f"{y}[np.diag_indices(len({y}))] = {value}",
            "copyto": f"{y}[...] = {texts[1]}",
            "put": f"{y}.reshape(-1)[{texts[1]}] = {value}",
        }
        if name != "copyto" or not any(k.arg == "where" for k in call.keywords):
            self.add(
                call,
                "diagonal" if name == "fill_diagonal" else "memory",
                instead.get(name, f"{y}[{texts[1]}] = {value}"),
            )
        else:
            where = next(self.text(k.value) for k in call.keywords if k.arg == "where")
            self.add(call, "memory", f"{y}[...] = np.where({where}, {texts[1]}, {y})")

    def _without_protocol(self, call: ast.Call, name: str, texts: list[str], given: int) -> None:
        if name in ("vectorize", "frompyfunc"):
            self.add(
                call, "vectorize", f"pullback.vmap({texts[0]}), or call {texts[0]} on the whole, with np.where for if"
            )
        elif given == VALUE and name == "fromiter":
            self.add(call, "joined", f"np.stack([{texts[0].strip('()')}])")
        elif given == VALUE and name.startswith("nd"):
            self.add(call, "joined", "a loop over np.ndindex(x.shape)")
        elif given == VALUE:
            self.add(call, "joined", f"{texts[0]}, with @ for products")

    def _array(self, call: ast.Call, first: ast.expr, name: str) -> None:
        text = self.text(first)
        if id(call) in self.nested or not self.is_list(first):
            copies = name == "array" and not any(k.arg == "copy" for k in call.keywords) and id(call) not in self.nested
            self.add(call, "asarray", f"np.copy({text})" if copies else text)
        elif any(isinstance(e, ast.List | ast.ListComp | ast.Tuple) for e in _elements(first)):
            self.add(
                call,
                "block",
                f"np.block({text.replace('(', '[').replace(')', ']') if isinstance(first, ast.Tuple) else text})",
            )
        else:
            self.add(call, "array", f"np.stack({f'[{text[1:-1]}]' if isinstance(first, ast.GeneratorExp) else text})")

    def _lists(self, call: ast.Call, name: str) -> None:
        """Lists of values that a function of NumPy would make arrays of."""
        for arg in [] if name in _JOIN else call.args[:3]:
            if self.is_list(arg) and not isinstance(arg, ast.Tuple) and self.level(arg) == VALUE:
                rows = any(isinstance(e, ast.List | ast.ListComp) for e in _elements(arg))
                joined = f"np.{'block' if rows else 'stack'}({self.text(arg)})"
                given = [joined if a is arg else self.text(a) for a in call.args]
                rest = self.arguments(call)[len(call.args) :]
                self.add(call, "list", f"{self.text(call.func)}({', '.join([*given, *rest])})")
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
                        self.add(call, "nan", f"{where} for {x} in {self.text(branch)}")
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

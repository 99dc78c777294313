"""What is plainly so, whatever a program gets: a list, a number, an array that has no other name."""

from __future__ import annotations

import ast

from .dependence import Program, Scope, key_of, root_of

_words = str.split
_VIEWS = frozenset(
    _words("""reshape ravel transpose asarray asanyarray ascontiguousarray squeeze atleast_1d atleast_2d swapaxes
    moveaxis broadcast_to diag diagonal real imag split array_split hsplit vsplit flip fliplr flipud rot90 expand_dims
    view broadcast_arrays require einsum atleast_3d sliding_window_view nan_to_num""")
)
_NEW = frozenset(
    _words("copy astype dot flatten repeat sum mean max min std var prod cumsum cumprod clip round take ptp")
)
HOMES = ("numpy.", "scipy.", "pullback.scipy.")
"""How the full names of functions begin that compute and write to nothing they are given."""

_SHARE = "numpy.ma."
_MEANS = frozenset(_words("mean std var"))
_FLOATS = _MEANS | frozenset(
    _words("""exp expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh arctan arctan2 hypot norm trapezoid interp
    linspace""")
)
_WRITING = frozenset(_words("sort partition fill put itemset resize setflags"))
_SHAPES = frozenset(_words("shape size ndim dtype itemsize nbytes"))
_READERS = frozenset(
    _words("len float int abs print sum min max round complex bool str repr isinstance type enumerate")
)
_TO_NUMBER = frozenset(_words("sum mean max min prod std var ptp trace det norm median"))


class Certain:
    """One scope of a program, and what is certain of the values in it."""

    def __init__(self, program: Program, scope: Scope) -> None:
        self.program, self.scope = program, scope

    def is_list(self, node: ast.expr) -> bool:
        """Whether a value is plainly a list."""
        if isinstance(node, ast.List | ast.ListComp | ast.GeneratorExp | ast.Tuple):
            return True
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id in ("list", "sorted", "tuple", "zip", "map")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add):
            return self.is_list(node.left) or self.is_list(node.right)
        values = self.program.bindings(node, self.scope) if isinstance(node, ast.Name | ast.Attribute) else []
        return any(
            isinstance(v, ast.List | ast.ListComp) or (isinstance(v, ast.Call) and self.is_list(v)) for _, v in values
        )

    def is_array(self, node: ast.expr) -> bool:
        """Whether a value is plainly no list: computed by NumPy, or by what lists have not."""
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
                return self.is_array(left) or self.is_array(right)
            case ast.BinOp() | ast.UnaryOp():
                return True
            case ast.Call(func=func):
                return self.program.full_name(func).startswith("numpy.")
            case ast.Subscript(value=value):
                return self.is_array(value)
            case ast.Name(id=name):
                values = self._values(name)
                return bool(values) and name not in self.scope.parameters and all(map(self.is_array, values))
        return False

    def is_number(self, node: ast.expr) -> bool:
        """Whether a value is plainly a number, without axes."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, int | float | complex)
            case ast.UnaryOp(operand=value):
                return self.is_number(value)
            case ast.BinOp(left=left, right=right):
                return self.is_number(left) and self.is_number(right)
            case ast.Call(func=func, args=args, keywords=[]):
                home, _, name = self.program.full_name(func).rpartition(".")
                if home == "math" or (not home and key_of(func) in ("float", "len")):
                    return True
                if home == "numpy" or home == "numpy.linalg":
                    return (name in _TO_NUMBER and len(args) == 1) or (bool(args) and all(map(self.is_number, args)))
                return isinstance(func, ast.Attribute) and name == "" and func.attr in _TO_NUMBER and not args
        return False

    def is_float(self, node: ast.expr) -> bool:
        """Whether a number, or the elements of an array, are plainly no whole numbers."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, float)
            case ast.UnaryOp(operand=value):
                return self.is_float(value)
            case ast.BinOp(op=ast.Div()):
                return True
            case ast.BinOp(left=left, right=right):
                return self.is_float(left) or self.is_float(right)
            case ast.Call(func=func):
                full, name = self.program.full_name(func), key_of(func).lstrip(".")
                return name in (_FLOATS if full.startswith(HOMES) else _MEANS)
            case ast.Subscript(value=value):
                return self.is_float(value)
        return False

    def is_only_read(self, target: ast.expr) -> bool:
        """Whether what a name or an attribute holds is nowhere written to, as far as the file shows."""
        key = key_of(target)
        for node in ast.walk(self.program.tree):
            match node:
                case ast.AugAssign(target=place):
                    written = root_of(place)
                case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store(), attr="flat"):
                    written = root_of(node)
                case ast.Call(func=ast.Attribute(value=written, attr=name)) if name in _WRITING:
                    pass
                case ast.keyword(arg="out", value=written):
                    pass
                case _:
                    continue
            if key_of(written) == key:
                return False
        return isinstance(target, ast.Attribute) or (
            isinstance(target, ast.Name)
            and all(
                self._is_read(n)
                for n in self.scope.own()
                if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
            )
        )

    def is_computed(self, value: ast.expr) -> bool:
        """Whether a value is an array of its own, and no view of another."""
        match value:
            case ast.BinOp() | ast.UnaryOp():
                return True
            case ast.Call(func=func, keywords=keywords) if not any(k.arg == "copy" for k in keywords):
                full, name = self.program.full_name(func), key_of(func).lstrip(".")
                return (full.startswith(HOMES) and name not in _VIEWS) or (not full and name in _NEW)
        return False

    def is_unshared(self, node: ast.expr) -> bool:
        """Whether a name of this scope alone has an array, so that it may get another one, which is computed of it."""
        if not isinstance(node, ast.Name) or self.program.home(node.id, self.scope) is not self.scope:
            return False
        uses = [
            (scope, n)
            for scope in self.program.scopes
            for n in scope.own()
            if isinstance(n, ast.Name) and n.id == node.id and self.program.home(n.id, scope) is self.scope
        ]
        if node.id in self.scope.parameters or any(scope is not self.scope for scope, _ in uses):
            return False
        for n in self.scope.own():
            if isinstance(n, ast.Global | ast.Nonlocal) and node.id in n.names:
                return False
        return all(self._is_new(n) if isinstance(n.ctx, ast.Store) else self._is_read(n) for _, n in uses)

    def _values(self, name: str) -> list[ast.expr]:
        """What a name is bound to, each time."""
        own = (n for n in self.scope.own() if isinstance(n, ast.Assign))
        return [n.value for n in own for t in n.targets if isinstance(t, ast.Name) and t.id == name]

    def _is_new(self, name: ast.Name) -> bool:
        """Whether a name is bound to what was computed for it."""
        parent = self.program.parents[name]
        whole = self.program.parents.get(parent)
        if isinstance(parent, ast.AugAssign):
            return True
        value: ast.expr | None = None
        if isinstance(parent, ast.AnnAssign) or (isinstance(parent, ast.Assign) and len(parent.targets) == 1):
            value = parent.value
        elif isinstance(parent, ast.Tuple) and isinstance(whole, ast.Assign) and isinstance(whole.value, ast.Tuple):
            value = dict(zip(parent.elts, whole.value.elts, strict=False)).get(name)
        match value:
            case ast.Constant() | ast.Compare():
                return True
            case ast.expr():
                return self.is_computed(value)
        return False

    def _is_read(self, node: ast.expr) -> bool:
        """Whether a value is only computed with here, so that nothing else refers to it afterwards."""
        parent = self.program.parents[node]
        match parent:
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.Return() | ast.FormattedValue():
                return True
            case ast.AugAssign() | ast.Expr() | ast.If() | ast.While() | ast.Assert():
                return True
            case ast.Subscript(value=value, ctx=ctx):
                return value is not node or not isinstance(ctx, ast.Load) or self._is_read(parent)
            case ast.Attribute(attr=name):
                call = self.program.parents[parent]
                if isinstance(call, ast.Call) and call.func is parent:
                    return name not in _VIEWS or self._is_read(call)
                return name in _SHAPES or self._is_read(parent)
            case ast.Call(func=ast.Name(id=name)) if not self.program.full_name(parent.func):
                return name in _READERS and self.program.home(name, self.scope) is None
            case ast.Call(func=ast.Attribute(attr="dot")):
                return True
            case ast.Call(func=func):
                full = self.program.full_name(func)
                return (
                    full.startswith(HOMES)
                    and not full.startswith(_SHARE)
                    and (full.rpartition(".")[2] not in _VIEWS or self._is_read(parent))
                )
            case ast.keyword(arg=name):
                call = self.program.parents[parent]
                alone = isinstance(self.program.parents[call], ast.Expr)
                of_numpy = isinstance(call, ast.Call) and self.program.full_name(call.func).startswith("numpy.")
                return of_numpy and (alone or name != "out")
            case ast.List() | ast.Tuple():
                return isinstance(self.program.parents[parent], ast.Return | ast.Call) and self._is_read(parent)
        return False

"""SciPy's functions in a program: where `pullback.scipy` has them, under which name, and where it has not."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from typing import Any

from .advice import ENTRIES, Reader
from .dependence import VALUE, Program, Scope, key_of
from .edits import Edit

_OLDER = {"diags": "diags_array", "eye": "eye_array", "identity": "eye_array", "spdiags": "diags_array"}
_ENTRIES = ("lil_matrix", "dok_matrix", "lil_array", "dok_array")
_LIKE_SCIPYS = ("coo_matrix", "bsr_matrix", "bsr_array", "dia_matrix", "dia_array")
ABSENT = "if it is there: SciPy is not installed here, so its names were not looked up"
IF_INNER = "if its result is differentiated: a solver that is called at the end, with jac=, stays SciPy's"
_OUTER = "minimize least_squares minimize_scalar root fsolve curve_fit".split()


Needed = dict[str, list[tuple[Scope, ast.Call]]]
"""The calls of SciPy's functions that get values of the parameters, by the function."""


class Names:
    """What `pullback.scipy` has; nothing, where SciPy is not installed."""

    def __init__(self) -> None:
        try:
            mirror = importlib.import_module("pullback.scipy.mirror")
            self.packages: dict[str, Any] = mirror.load()
            self.refused: dict[str, str] = mirror.REFUSED
            self.instead: dict[str, str] = mirror.INSTEAD
            self.direct = self._direct(mirror.MIRRORS)
            self.installed = True
        except ModuleNotFoundError:
            self.packages, self.refused, self.instead, self.direct, self.installed = {}, {}, {}, set(), False

    def _direct(self, mirrors: dict[str, Any]) -> set[str]:
        """The functions of scipy.special that take Tensors as they are."""
        scipys = importlib.import_module("scipy.special")
        new = importlib.import_module("pullback.scipy.special.handed_on")._NEW
        rules = importlib.import_module("pullback.tensor.protocol").NUMPY
        names = [n for n in scipys.__all__ if n not in new]
        return {n for n in names if f"scipy.special.{getattr(getattr(scipys, n), '__name__', '')}" in rules}

    def split(self, full: str) -> tuple[str, str]:
        """The package and the function in a name as scipy.stats.norm.pdf: ("stats", "norm")."""
        rest = full.removeprefix("scipy.")
        package = next((p for p in sorted(self.packages, key=len, reverse=True) if f"{rest}.".startswith(f"{p}.")), "")
        if not package:
            package = rest.rpartition(".")[0]
        return package, rest[len(package) + 1 :].partition(".")[0]

    def newer(self, package: str, name: str) -> str:
        """The name under which `pullback.scipy` has a function, perhaps SciPy's newer one; or ""."""
        known = dir(self.packages[package]) if package in self.packages else ()
        names = name, _OLDER.get(name, "") if package == "sparse" else "", f"{name.removesuffix('_matrix')}_array"
        return next((n for n in names if n and n in known), "csr_array" if name in _LIKE_SCIPYS and known else "")


class OfSciPy:
    """The findings about SciPy in a whole file: a line for each import, and for each use that cannot be imported."""

    def __init__(self, program: Program, reader: Reader) -> None:
        self.program, self.reader = program, reader
        self.names = Names()

    def read(self) -> None:
        """Find the names that get values of the parameters; then the imports of these."""
        needed: Needed = {}
        for scope in self.program.scopes:
            for node in scope.own():
                for call in self._needed(node, scope):
                    needed.setdefault(self.program.full_name(call.func), []).append((scope, call))
        here: dict[str, str] = {}
        for full, places in needed.items():
            package, name = self.names.split(full)
            if package.startswith(("constants", "io")) or (package == "special" and name in self.names.direct):
                continue
            if package == "sparse" and name in _ENTRIES:
                self._report(places, "entries", lambda call: ENTRIES)
            elif newer := self.names.newer(package, name):
                here[full] = newer
                if package == "sparse" and name != newer:
                    self._report(places, "sparse", lambda call, newer=newer: self._renamed(call, newer))
            elif f"{package}.{name}" in self.names.refused:
                self._refused(places, package, name)
            elif do := self.names.instead.get(f"{package}.{name}"):
                self._report(places, "unknown", lambda call, do=do: do.removeprefix("write "))
            elif self.names.installed:
                cls = "".join(part.capitalize() for part in name.split("_"))
                self._report(
                    places, "unknown", lambda call, cls=cls: f"{cls}.apply(...) of a pullback.autograd.Function"
                )
            else:
                here[full] = name
        self._imports(here, needed)

    def _needed(self, node: ast.AST, scope: Scope) -> Iterator[ast.Call]:
        """The calls of SciPy's functions that get values of the parameters, or whose results do."""
        level = self.program.level
        match node:
            case ast.Call(func=func):
                if self._is_scipys(node):
                    outer = self.program.full_name(func).rpartition(".")[2] in _OUTER
                    given = self.program.given_to(node, scope) == VALUE or self._closes(node, scope)
                    if given and not (outer and any(k.arg == "jac" for k in node.keywords)):
                        yield node
                elif self.program.given_to(node, scope) == VALUE:
                    made = func.value if isinstance(func, ast.Attribute) else func
                    yield from self._made(made, scope)
            case ast.BinOp(left=left, right=right):
                for one, other in ((left, right), (right, left)):
                    if level(other, scope) == VALUE:
                        calls = self._made(one, scope)
                        yield from (c for c in calls if self.program.full_name(c.func).startswith("scipy.sparse."))

    def _closes(self, call: ast.Call, scope: Scope) -> bool:
        """Whether a function inside of a function is among the arguments: it may read the parameters."""
        names = {a.id for a in call.args if isinstance(a, ast.Name)}
        inner = {s.name: s for s in self.program.scopes if s.parent is scope and scope.parent is not None}
        return any(
            self.program.level(value, inner[name]) == VALUE
            for name in names & inner.keys()
            for value in inner[name].returned
        )

    def _made(self, node: ast.expr, scope: Scope) -> list[ast.Call]:
        """The calls of SciPy's functions that a value is made by."""
        values = [node, *(v for _, v in self.program.bindings(node, scope))]
        return [v for v in values if isinstance(v, ast.Call) and self._is_scipys(v)]

    def _is_scipys(self, call: ast.Call) -> bool:
        return self.program.full_name(call.func).startswith("scipy.")

    # -- what is said --------------------------------------------------------------------------------------------------

    def _report(self, places: list[tuple[Scope, ast.Call]], kind: str, write: Any, why: str = "") -> None:
        for call in {id(c): c for _, c in places}.values():
            self.reader.add(call, kind, write(call), why=why, edits=())

    def _renamed(self, call: ast.Call, newer: str) -> str:
        given = self.reader.arguments(call)
        if newer == "diags_array" and len(call.args) > 1:
            given[1] = f"offsets={given[1]}"
        prefix = self.reader.text(call.func).rpartition(".")[0]
        home = f"{'pullback.' * prefix.startswith('scipy.')}{prefix}." if prefix else ""
        return f"{home}{newer}({', '.join(given)})"

    def _refused(self, places: list[tuple[Scope, ast.Call]], package: str, name: str) -> None:
        if package == "optimize" and all(c.args and key_of(c.args[0]) for _, c in places):
            return  # a solver that calls the program: it stays SciPy's

        scopes = {id(call): scope for scope, call in places}

        def value(node: ast.expr, call: ast.Call) -> str:
            text = self.reader.text(node)
            is_value = self.program.level(node, scopes[id(call)]) == VALUE
            return f"pullback.as_tensor({text}).detach().numpy()" if is_value else text

        def write(call: ast.Call) -> str:
            values = [value(a, call) for a in call.args]
            rest = self.reader.arguments(call)[len(call.args) :]
            return f"{self.reader.text(call.func)}({', '.join([*values, *rest])})"

        self._report(
            places,
            "refused",
            write,
            why=f"of Tensors and arrays; import pullback; {self.names.refused[f'{package}.{name}']}",
        )

    def _imports(self, here: dict[str, str], needed: Needed) -> None:
        for node in ast.walk(self.program.tree):
            match node:
                case ast.ImportFrom(module=str(home), names=names, level=0) if home.partition(".")[0] == "scipy":
                    self._from(node, home, names, here, needed)
                case ast.Import(names=names):
                    for a in names:
                        if a.asname and a.name.startswith("scipy."):
                            self._whole(node, a.name, a.asname, here, needed)
        for full, newer in here.items():
            package, name = self.names.split(full)
            for _, call in needed[full]:
                text = self.reader.text(call.func)
                if text.startswith("scipy.") and name == newer:
                    write = f"pullback.{text}"
                    sure = self.names.installed and name not in _OUTER
                    edits = self.reader.at(call.func, write, f"pullback.scipy.{package}") if sure else ()
                    why = "SciPy computes on arrays; import pullback before"
                    self.reader.add(call, "scipy", write, text, why, edits=edits)

    def _whole(self, node: ast.Import, package: str, alias: str, here: dict[str, str], needed: Needed) -> None:
        """``import scipy.linalg as sl``."""
        used = {full.rpartition(".")[2] for full in here if full.startswith(f"{package}.")}
        parent, _, last = package.rpartition(".")
        if used:
            write = f"from pullback.{parent} import {last}" + f" as {alias}" * (alias != last)
            why = IF_INNER if used <= set(_OUTER) else ""
            sure = len(node.names) == 1 and self._has_all(package, alias, needed)
            self.reader.add(node, "scipy", write, why=why, edits=None if sure else ())

    def _is_always(self, full: str, needed: Needed) -> bool:
        """Whether a solver is differentiated wherever it is called: it returns Tensors, of functions of arrays too."""
        calls = [n for n in ast.walk(self.program.tree) if isinstance(n, ast.Call)]
        there = {id(call) for _, call in needed.get(full, [])}
        others = [c for c in calls if self.program.full_name(c.func) == full and id(c) not in there]
        return not others or not full.startswith(("scipy.integrate.", "scipy.optimize."))

    def _has_all(self, package: str, alias: str, needed: Needed) -> bool:
        """Whether `pullback.scipy` has all that a program takes from a package, and no solver that may stay."""
        known = dir(self.names.packages.get(package.removeprefix("scipy.")))
        used = {
            n.attr
            for n in ast.walk(self.program.tree)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == alias
        }
        sure = all(self._is_always(f"{package}.{name}", needed) for name in used)
        return self.names.installed and sure and used <= set(known) - set(_OUTER)

    def _from(
        self, node: ast.ImportFrom, home: str, names: list[ast.alias], here: dict[str, str], needed: Needed
    ) -> None:
        taken: list[str] = []
        left: list[str] = []
        sure = self.names.installed
        if not any(f"{full}.".startswith(f"{home}.{a.name}.") for full in here for a in names):
            return
        for a in names:
            own = f"{home}.{a.name}"
            renamed = f" as {a.asname}" if a.asname else ""
            if own in here:
                taken.append(here[own] + renamed * (here[own] == a.name))
                sure &= here[own] == a.name not in _OUTER and self._is_always(own, needed)
            elif any(full.startswith(f"{own}.") for full in here):
                taken.append(a.name + renamed)
                package = own.removeprefix("scipy.") in self.names.packages
                sure &= not package or self._has_all(own, a.asname or a.name, needed)
            elif a.name not in _ENTRIES:
                (taken if self.names.newer(*self.names.split(own)) == a.name else left).append(a.name + renamed)
            else:
                sure = False
        why = IF_INNER if set(taken) <= set(_OUTER) else "" if self.names.installed else ABSENT
        write = f"from pullback.{home} import {', '.join(dict.fromkeys(taken))}"
        rest = f"from {home} import {', '.join(left)}"
        edits: tuple[Edit, ...] = ()
        if sure and left:
            edits = self.reader.edit.statements(node, write, rest)
        elif sure:
            edits = self.reader.edit.inserted(node, self.reader.text(node).index("scipy"), "pullback.")
        self.reader.add(node, "scipy", f"{write}; {rest}" if left else write, why=why, edits=edits)

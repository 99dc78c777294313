"""Which parameters are a state: what a solver of SciPy's calls a function of the file with, a Tensor."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from .dependence import VALUE, Program, Scope, root_of

State = tuple[Scope, str]
"""A function, and the parameter that is its state."""

_SECOND = frozenset({"solve_ivp", "solve_bvp", "curve_fit"})
"""Solvers that call a function of another variable and the state."""


@functools.lru_cache(maxsize=1)
def states(program: Program) -> set[State]:
    """The states of all functions: of those that a solver is given, and of those that they hand their state on to."""
    waiting = [s for calls in program.calls.values() for caller, call in calls for s in _given(program, caller, call)]
    handed = [(f, p, v, caller) for f in program.scopes[1:] for p, v, caller in program.given(f)]
    found: set[State] = set()
    while waiting:
        state = waiting.pop()
        plain = any(
            (f, p) == state and program.level(v, caller) != VALUE and not program.is_outside(caller)
            for f, p, v, caller in handed
        )
        if state not in found and not plain:
            found.add(state)
            waiting += [(f, p) for f, p, v, caller in handed if _is_part(program, v, caller, state)]
    return found


def is_state(program: Program, value: ast.expr, scope: Scope) -> bool:
    """Whether a value in a scope is a state by name."""
    return isinstance(value, ast.Name) and (program.home(value.id, scope), value.id) in states(program)


def _given(program: Program, caller: Scope, call: ast.Call) -> Iterator[State]:
    """The states of the functions that a call of a solver gives to it."""
    home, _, name = program.full_name(call.func).rpartition(".")
    if home.removeprefix("pullback.") in ("scipy.integrate", "scipy.optimize"):
        named = {k.arg: k.value for k in call.keywords}
        place = 1 if name in _SECOND or ast.unparse(named.get("tfirst", call.func)) == "True" else 0
        for value in [*call.args, *named.values()]:
            for function, first in _functions(program, value, caller):
                yield from ((function, p) for p in function.parameters[first + place : first + place + 1])


def _functions(program: Program, value: ast.expr, scope: Scope, follow: bool = True) -> Iterator[tuple[Scope, int]]:
    """The functions of the file that a value may be, each with the place of the first argument of a call."""
    match value:
        case ast.Lambda():
            yield from ((s, 0) for s in program.scopes if s.node is value)
        case ast.Name(id=name):
            yield from ((s, 0) for s in program.functions.get(name, []) if not s.of_class)
            for home, bound in program.bindings(value, scope) if follow else ():
                yield from _functions(program, bound, home, follow=False)
        case ast.Attribute(attr=name):
            own = (s for s in program.functions.get(name, []) if s.of_class)
            yield from ((s, int(s.parameters[:1] == ["self"])) for s in own)
        case ast.Call(func=func, args=[function, *rest]) if program.full_name(func) == "functools.partial":
            yield from ((s, first + len(rest)) for s, first in _functions(program, function, scope, follow))


def _is_part(program: Program, value: ast.expr, caller: Scope, state: State) -> bool:
    """Whether a value is a state, or plainly a part of it."""
    scope, name = state
    root = root_of(value)
    if not isinstance(root, ast.Name) or program.home(root.id, caller) is not scope:
        return False
    roots = [root_of(v) for v in scope.bound.get(root.id, [])]
    of_state = [isinstance(r, ast.Name) and r.id == name for r in roots]
    return all(of_state) and (bool(of_state) or root.id == name)

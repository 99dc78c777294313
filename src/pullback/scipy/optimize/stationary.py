"""Stationary points under bounds and constraints, as equations.

At a minimum of `f` under ``l <= c(x) <= u`` there are multipliers with ``grad f = c'^T m``. A row of `c` that lies at
neither bound has the multiplier zero; one at its lower bound a positive, one at its upper bound a negative one
(Karush, Kuhn and Tucker; Nocedal and Wright, Numerical Optimization, 2006, chapter 12). These are the unknowns
``z = (x, m)`` of one equation, whose derivative is that of the minimum (Fiacco, Introduction to Sensitivity and
Stability Analysis, 1983). Bounds of unknowns are rows with ``c(x) = x``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from ... import errors
from ...autograd.grad_mode import no_grad
from ...func.reverse import vjp
from ...ops.elementwise.limits import where as choose
from ...ops.make.of_size import ones_like
from ...ops.shape.joining import cat
from ...ops.shape.reshape import expand, reshape
from ...tensor.modes import thread
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, array_of, as_tensor, floating
from ..direct_calls import is_seen
from ..implicit import Implicit
from ..jacobians import jacobian
from ..repeated_calls import Derivative
from ..solutions import pulled
from ..user_functions import arguments, value_of
from .outcomes import Problem

_NEAR = (1e-4, 1e-3, 1e-2)  # relative to a bound: what may lie at it, if nothing nearer explains the slope
_LEFT = 1e-2  # relative to the slope: what multipliers need not explain of it
_DEPENDENT = 1e-10  # relative: gradients of constraints that depend on each other, but for rounding
_NOTHING = 1e-5  # relative to the gradient: a multiplier that may be zero


class Rows(NamedTuple):
    """A constraint ``lower <= fun(x, *args) <= upper``. name: what a user calls it."""

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    lower: Any
    upper: Any
    given: Any


def rows_of(where: str, bounds: Any, constraints: Any, count: int) -> list[Rows]:
    """Bounds and constraints in any of SciPy's forms."""
    found = []
    if bounds is not None:
        lower, upper = _bounds(where, bounds, count)
        found.append(Rows("bounds", lambda x: x, (), lower, upper, None))
    if isinstance(constraints, (dict, scipy.optimize.LinearConstraint, scipy.optimize.NonlinearConstraint)):
        constraints = [constraints]
    for i, c in enumerate(constraints or ()):
        name = f"constraints[{i}]"
        if isinstance(c, dict):
            upper = 0.0 if c["type"].lower() == "eq" else np.inf
            found.append(Rows(name, c["fun"], tuple(c.get("args", ())), 0.0, upper, c))
        elif isinstance(c, scipy.optimize.LinearConstraint):
            found.append(Rows(name, lambda x, a: a @ x, (as_tensor(np.atleast_2d(c.A)),), c.lb, c.ub, c))
        else:
            found.append(Rows(name, c.fun, (), c.lb, c.ub, c))
    return found


def _bounds(where: str, bounds: Any, count: int) -> tuple[Any, Any]:
    if isinstance(bounds, scipy.optimize.Bounds):
        return bounds.lb, bounds.ub
    pairs = list(bounds)
    if len(pairs) != count:
        raise ValueError(f"{where}: The number of bounds is not compatible with the length of `x0`.")
    sides = [
        [s if p is None else p for p in side]
        for side, s in zip(zip(*pairs, strict=True), (-np.inf, np.inf), strict=True)
    ]
    return side(sides[0]), side(sides[1])


def side(values: Sequence[Any]) -> Any:
    tensors = any(isinstance(v, Tensor) for v in values)
    return as_tensor([floating(v) for v in values]) if tensors else np.array(values, dtype=float)


def _slope(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The gradient of a function to a number."""
    value, pull = vjp(f, x)
    found: Tensor = pull(ones_like(value))[0]
    return found


class Program(Problem):
    """A function to minimise, with constraints."""

    def __init__(self, where: str, fun: Any, x0: Any, args: Any, rows: Sequence[Rows] = (), source: Any = None) -> None:
        self.rows, own = list(rows), arguments(args)
        self.own = self._count = len(own)
        every = (*own, *[(r.args, r.lower, r.upper) for r in self.rows])
        super().__init__(where, fun, x0, every, flat=True, source=source)
        self.is_program = False  # whether the function and its gradient run as a program in this solution
        if self.rows:
            self.given.find_reads(
                where, self._everything, self.start, fun=(source or fun, *[r.fun for r in rows]), by_all=True
            )

    def called(self, fun: Any, x: Tensor, *parameters: Any) -> Any:
        """What a function of the unknowns and ``args=`` returns."""
        return self.given.call(fun, (x,), parameters, self.own)

    def __call__(self, x: Tensor, *parameters: Any) -> Tensor:
        """The value, a number."""
        found = super().__call__(x, *parameters)
        if found.numel() != 1:
            raise ValueError(
                errors.message(
                    f"{self.where}: the function to minimise must return a number",
                    found=errors.describe(found),
                    do="end it with a sum or a mean",
                )
            )
        return reshape(found, ())

    def _whole(self) -> Callable[[Any], Callable[..., Any]]:
        whole = super()._whole()
        return lambda f: lambda *given: reshape(whole(f)(*given), ())

    def parts(self, x: Tensor, *parameters: Any) -> list[tuple[Tensor, Tensor, Tensor]]:
        """For each constraint its values, and their lower and upper bounds."""
        trees = self.given.filled(parameters)[self.own :]
        found = []
        with self.given.reading(parameters):
            for row, (args, lower, upper) in zip(self.rows, trees, strict=True):
                value = reshape(value_of(row.fun, self.where, self.given.as_it_was(row.fun)(x, *args)), (-1,))
                sides = [expand(floating(side), value.shape) for side in (lower, upper)]
                found.append((value, sides[0], sides[1]))
        return found

    def constraints(self, x: Tensor, *parameters: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The values of all rows, and their bounds."""
        values, lower, upper = zip(*self.parts(x, *parameters), strict=True)
        return cat(values), cat(lower), cat(upper)

    def _everything(self, x: Tensor, *parameters: Any) -> Tensor:
        values, lower, upper = self.constraints(x, *parameters)
        sides = choose(np.isfinite(lower), lower, 0).sum() + choose(np.isfinite(upper), upper, 0).sum()
        return self(x, *parameters) + values.sum() + sides

    def slope(self, x: Tensor, *parameters: Any) -> Tensor:
        """The gradient of the function to minimise."""
        return _slope(lambda y: self(y, *parameters), x)

    def derivative(self, name: Any, of: Any, head: Sequence[Tensor], parameters: Sequence[Any]) -> Any:
        """The arrays of a derivative of the function that may be a program; None where they are to be had as usual.

        of: from a function, the tensors of the head, and its arguments to the derivative's results.
        """
        if not self.is_program or self.rows or self.given.as_it_was(self.fun) is not self.fun:
            return None
        calls = self.calls(parameters)
        if calls.args is None:
            return None
        return Derivative(calls, name, lambda f: lambda *given: of(f, *given))([*head, *calls.args])

    # The equation ------------------------------------------------------------------------------------------------

    def residual(self, z: Tensor, _: Tensor, *parameters: Any) -> Tensor:
        """The conditions of a stationary point, for the unknowns and the multipliers."""
        if not self.rows:
            return self.slope(z, *parameters)
        x, m = z[: self.shape[0]], z[self.shape[0] :]

        def lagrangian(y: Tensor) -> Tensor:
            return self(y, *parameters) - (m * self.constraints(y, *parameters)[0]).sum()

        values, lower, upper = self.constraints(x, *parameters)
        active = choose((m != 0) | (lower == upper), values - choose((m > 0) | (lower == upper), lower, upper), m)  # type: ignore[comparison-overlap]
        return cat([_slope(lagrangian, x), active])

    def completed(self, x: Array, parameters: Sequence[Any]) -> Array:
        """The unknowns with their multipliers, zero where a row is not active."""
        if not self.rows:
            return x
        values, lower, upper = self.at(x, parameters)
        with no_grad():
            slope = array_of(self.slope(wrap(x), *parameters))
            matrix = array_of(jacobian(lambda y: self.constraints(y, *parameters)[0], wrap(x)))
        gaps = np.minimum(np.abs(values - lower), np.abs(upper - values))
        nearer = np.where(values - lower <= upper - values, lower, upper)
        scale = 1 + np.abs(np.where(np.isfinite(nearer), nearer, 0))
        found = [
            _multipliers(slope, matrix, gaps, gaps <= near * scale, lower == upper, nearer == lower) for near in _NEAR
        ]
        for m in found:  # a method with a barrier stops short of a bound: what is left of the slope tells
            if np.max(np.abs(slope - matrix.T @ m), initial=0.0) <= _LEFT * (1 + np.max(np.abs(slope), initial=0.0)):
                return np.concatenate([x, m])
        return np.concatenate([x, found[0]])

    def named(self, number: int, parameters: Sequence[Any]) -> str:
        """What a user calls a row of `constraints`: the bound of an unknown, or a value of a constraint."""
        with no_grad():
            sizes = [value.numel() for value, _, _ in self.parts(self.start, *parameters)]
        names = [
            f"the bound of x[{i}]" if row.name == "bounds" else f"value {i} of {row.name}"
            for row, size in zip(self.rows, sizes, strict=True)
            for i in range(size)
        ]
        return names[number]

    def at(self, x: Array, parameters: Sequence[Any]) -> list[Array]:
        with no_grad():
            return [array_of(v) for v in self.constraints(wrap(np.array(x)), *parameters)]

    def equation(self, run: Callable[..., Array]) -> Implicit:
        """The conditions as an equation, which refuses derivatives where a bound is reached without a force."""
        return Optimality(self, run)


def _multipliers(slope: Array, matrix: Array, gaps: Array, active: Array, equal: Array, below: Array) -> Array:
    """The multipliers of a stationary point if `active` rows alone may have one. below: near the lower bound."""
    m = np.zeros(gaps.size)
    for _ in range(gaps.size + 1):
        m[:] = 0.0
        m[active] = np.linalg.lstsq(matrix[active].T, slope, rcond=None)[0]
        away = np.where(below, m, -m) < gaps  # a multiplier of the wrong sign, or a bound not reached
        if not (active & away & ~equal).any():
            break
        active = active & (equal | ~away)
    return m


def _slope_and_hessian(f: Callable[..., Tensor], x: Tensor, *args: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient by `x`, and its Jacobian."""

    def of_x(y: Tensor) -> Tensor:
        return _slope(lambda z: f(z, *args), y)

    return of_x(x), jacobian(of_x, x)


def _pulled(which: Sequence[bool], f: Callable[..., Tensor], w: Tensor, x: Tensor, *args: Tensor) -> Any:
    """The gradients of ``w`` times the gradient by `x`, by those of the arguments that are wanted."""
    found = pulled(lambda *qs: _slope(lambda y: f(y, *qs), x), args, which[: len(args)], w)
    return tuple([g for g in found if g is not None])


class Optimality(Implicit):
    """The conditions of a minimum; its solution has a derivative where each row is active or inactive for sure."""

    def __init__(self, program: Program, run: Callable[..., Array]) -> None:
        super().__init__(program.where, program.residual, run, program.pattern)
        self.program = program
        self._last: tuple[Array, Array] | None = None  # unknowns, and the conditions there

    def value(self, x: Tensor, inputs: Sequence[Tensor]) -> Array:
        """The conditions at a solution."""
        if self._last is not None and np.array_equal(self._last[0], array_of(x)):
            return self._last[1]
        return super().value(x, inputs)

    def _dense(self, of_x: Callable[[Tensor], Tensor], x: Tensor, inputs: Sequence[Tensor]) -> Array:
        found = self.program.derivative("Hessian", _slope_and_hessian, (x,), inputs[1:])
        if found is None:
            return super()._dense(of_x, x, inputs)
        self._last = array_of(x), found[0]
        matrix: Array = found[1]
        return matrix

    def pulled(self, x: Tensor, ps: Sequence[Tensor], wanted: Sequence[bool], w: Tensor) -> list[Tensor | None]:
        """The vjp of the conditions for the cotangent `w`, for the parameters that are wanted."""
        which, found = tuple(wanted[1:]), None
        if not (thread.modes.grad_enabled or is_seen((w, x, *ps)) or wanted[0] or True in which[self.program.own :]):
            found = self.program.derivative(("pulled", which), partial(_pulled, which), (w, x), ps[1:])
        if found is None:
            return pulled(lambda *qs: self.residual(x, *qs), ps, wanted, w)
        gradients = iter(found)
        return [wrap(np.array(next(gradients))) if is_wanted else None for is_wanted in wanted]

    def _factorise(self, x: Tensor, inputs: Sequence[Any]) -> Any:
        program = self.program
        if program.rows:
            n = program.shape[0]
            z, parameters = array_of(x), [p.detach() for p in inputs[1:]]
            values, lower, upper = program.at(z[:n], parameters)
            with no_grad():
                size = float(np.max(np.abs(array_of(program.slope(wrap(z[:n]), *parameters))), initial=0.0))
            gaps = np.minimum(np.abs(values - lower), np.abs(upper - values)) / (1 + np.abs(values))
            weak = (gaps <= _NOTHING) & (np.abs(z[n:]) <= _NOTHING * (1 + size)) & (lower != upper)
            if weak.any():
                i = int(np.argmax(weak))
                gap, limits = gaps[i] * (1 + abs(values[i])), (_NOTHING * (1 + abs(values[i])), _NOTHING * (1 + size))
                raise RuntimeError(self._weak(i, parameters, gap, z[n + i], limits))
        try:
            return super()._factorise(x, inputs)
        except RuntimeError as error:
            if program.rows:
                self._check_independent(z, parameters, error)
            raise

    def _weak(
        self, number: int, parameters: Sequence[Any], gap: float, multiplier: float, limits: tuple[float, float]
    ) -> str:
        return errors.message(
            f"{self.where}: {self.program.named(number, parameters)} is reached, but has no multiplier: on one side "
            "of it the minimum follows it and on the other it does not. At this kink there is no derivative (distance "
            f"{gap:.2g}, multiplier {abs(multiplier):.2g}; a derivative needs a distance above {limits[0]:.2g} or a "
            f"multiplier above {limits[1]:.2g})",
            do="change the parameters a little to either side, or detach() them",
        )

    def _check_independent(self, z: Array, parameters: Sequence[Any], error: RuntimeError) -> None:
        """RuntimeError that names active constraints whose gradients depend on each other."""
        n = self.program.shape[0]
        _, lower, upper = self.program.at(z[:n], parameters)
        active = np.flatnonzero((z[n:] != 0) | (lower == upper))
        with no_grad():
            whole = array_of(jacobian(lambda y: self.program.constraints(y, *parameters)[0], wrap(z[:n].copy())))
        left, sizes, _ = np.linalg.svd(whole[active])
        rank = int((sizes > _DEPENDENT * np.max(sizes, initial=0.0)).sum())
        among = active[(np.abs(left[:, rank:]) > _DEPENDENT).any(1)]
        if among.size:
            names = ", ".join(self.program.named(int(i), parameters) for i in among)
            raise RuntimeError(
                errors.message(
                    f"{self.where}: {names} are linearly dependent at the minimum: it may be unique, but its "
                    "multipliers are not, so there is no derivative",
                    do="remove one of them: what follows from the others holds without it",
                )
            ) from error

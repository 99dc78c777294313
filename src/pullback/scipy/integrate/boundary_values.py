"""`solve_bvp`: boundary value problems, by the implicit function theorem at the collocation solution."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from ... import errors
from ...ops.make.conversion import to
from ...ops.shape.joining import concatenate
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, array_of, as_tensor, floating
from ..closed_functions import Closed, call, root
from ..mirror import mirrors
from ..user_functions import ON_FAILURE, Given, check_choice, check_function, not_converged, plain_setting, value_of

_WHERE = "pullback.scipy.integrate.solve_bvp"

_MESHES = 5  # how often samples are solved again for a mesh of one size
_FULL = 1  # SciPy's status of a mesh with more than max_nodes points
_APART = 1e-12  # points of a mesh that are nearer are one


class _Problem:
    """The equations, on the mesh that SciPy chose.

    runs: SciPy's results, of each sample under `vmap`. before: those of the same samples on coarser meshes.
    """

    def __init__(
        self, fun: Any, bc: Any, guess: Array, p: Array | None, s: Array | None, settings: dict[str, Any]
    ) -> None:
        self.given = Given()
        self.fun, self.bc, self.guess, self.p, self.settings = fun, bc, guess, p, settings
        self.s = None if s is None else np.asarray(s, guess.dtype)
        self.at_start = None if self.s is None else np.linalg.pinv(np.eye(len(guess)) - self.s)
        self.mesh: Array = np.empty(0)
        self.runs: list[Any] = []
        self.before: list[Any] = []

    def solved(self, a: Any, b: Any, *read: Any) -> Any:
        """The numbers of the runs, whose meshes have one size.

        Where those of samples differ, all are solved again on the points of all of them, each from its own solution.
        """
        for _ in range(_MESHES):
            self.runs = []
            (which,) = call(Closed(self.plan), a, b, *read)
            runs = [r for r in self.runs if r.status == 0]
            if len({r.x.size for r in runs}) <= 1:
                break
            every = np.unique(np.concatenate([_relative(r.x) for r in runs]))
            apart = np.diff(every, prepend=-1.0) > _APART
            self.mesh, self.before = every[apart | (every == 1.0)], self.runs
        size = min([r.x.size for r in runs], default=self.runs[0].x.size)
        for r in self.runs:
            if r.status:  # it is made NaN
                r.x = r.x[0] + (r.x[-1] - r.x[0]) * np.linspace(0, 1, size)
                r.y = np.full((r.y.shape[0], size), np.nan)
        return which

    def plan(self, a: Tensor, b: Tensor, *read: Tensor) -> tuple[Tensor]:
        """Run SciPy on the initial mesh between the ends; the result is the number of the run."""
        mesh = float(a._data) + (float(b._data) - float(a._data)) * self.mesh
        mesh[-1] = float(b._data)

        def fun(x: Any, y: Any, *p: Any) -> Array:
            return self.slope(read, wrap(x), wrap(np.array(y)), *map(wrap, p))._data

        def bc(ya: Any, yb: Any, *p: Any) -> Array:
            return self.boundary(read, wrap(np.array(ya)), wrap(np.array(yb)), *map(wrap, p))._data

        guess, p = self.guess.copy(), self.p
        if self.before:
            last = self.before[len(self.runs)]
            guess, p = last.sol(mesh), last.p
        with self.given.running():
            found = scipy.integrate.solve_bvp(fun, bc, mesh, guess, p, self.s, **self.settings)
        self.runs.append(found)
        return (wrap(np.array(len(self.runs) - 1)),)

    def slope(self, read: Sequence[Any], *x_y_p: Any) -> Any:
        return value_of(self.fun, _WHERE, self.given.call(self.fun, x_y_p, read))

    def boundary(self, read: Sequence[Any], *ya_yb_p: Any) -> Any:
        return value_of(self.bc, _WHERE, self.given.call(self.bc, ya_yb_p, read))

    def find(self, which: Array, *_: Array) -> Array:
        """The unknowns that SciPy found: the states at the mesh and the parameters, as one array."""
        found = self.runs[int(which)]
        return found.y.reshape(-1) if found.p is None else np.concatenate([found.y.reshape(-1), found.p])

    def points(self, which: Tensor, a: Any, b: Any) -> tuple[Any]:
        """The mesh, which moves with its ends."""
        x = self.runs[int(which._data)].x
        return (a + (b - a) * ((x - x[0]) / (x[-1] - x[0])),)

    def unknowns(self, z: Any, size: int) -> tuple[Any, list[Any]]:
        """The states at the mesh, a row for each component, and the parameters."""
        n = len(self.guess)
        return reshape(z[: n * size], (n, size)), ([] if self.p is None else [z[n * size :]])

    def residual(self, z: Any, which: Tensor, a: Any, b: Any, *read: Any) -> tuple[Any]:
        """The collocation equations of the fourth order (Kierzenka and Shampine, 2001), and the boundary conditions."""
        (x,) = self.points(which, a, b)
        y, p = self.unknowns(z, x.shape[0])
        h = x[1:] - x[:-1]
        f = self.derivative(x, y, p, a, read)
        middle = 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (f[:, 1:] - f[:, :-1])
        slope = self.slope(read, x[:-1] + 0.5 * h, middle, *p)
        if self.s is not None:
            slope = slope + (wrap(self.s) @ middle) / (x[:-1] + 0.5 * h - a)
        rest = y[:, 1:] - y[:, :-1] - h / 6 * (f[:, :-1] + f[:, 1:] + 4 * slope)
        return (concatenate([reshape(rest, (-1,)), self.boundary(read, y[:, 0], y[:, -1], *p)], 0),)

    def derivative(self, x: Any, y: Any, p: Sequence[Any], a: Any, read: Sequence[Any]) -> Any:
        """dy/dx at the mesh, with the singular term."""
        f = self.slope(read, x, y, *p)
        if self.s is None:
            return f
        first = wrap(self.at_start) @ f[:, :1]
        return concatenate([first, f[:, 1:] + (wrap(self.s) @ y[:, 1:]) / (x[1:] - a)], 1)


def _relative(x: Array) -> Array:
    """A mesh between 0 and 1."""
    return (x - x[0]) / (x[-1] - x[0])


class CubicSolution:
    """The solution as a cubic spline, from its values and slopes at the mesh. x: the mesh. nu: which derivative."""

    def __init__(self, x: Any, y: Any, yp: Any) -> None:
        self.x = x
        h = x[1:] - x[:-1]
        chord = (y[:, 1:] - y[:, :-1]) / h
        bend = (yp[:, :-1] + yp[:, 1:] - 2 * chord) / h
        self._parts = (bend / h, (chord - yp[:, :-1]) / h - bend, yp[:, :-1], y[:, :-1])

    def __call__(self, x: Any, nu: int = 0) -> Any:
        """The states at `x`: shape (n,) for a number, (n, *x.shape) for an array. Tensors in `x` are differentiated."""
        x = to(floating(x), np.float64)

        def segment(x: Tensor, knots: Tensor) -> tuple[Tensor]:
            found = np.searchsorted(knots._data, x._data, side="right") - 1
            return (wrap(np.clip(found, 0, knots.shape[0] - 2)),)

        (i,) = call(Closed(segment), x.detach(), self.x.detach())
        s = x - self.x[i]
        total: Any = 0.0
        for power, part in zip((3, 2, 1, 0), self._parts, strict=True):
            if power >= nu:
                factor = np.prod(np.arange(power - nu + 1, power + 1), dtype=np.float64)
                total = total + float(factor) * part[:, i] * s ** (power - nu)
        return total


@mirrors(
    "integrate.solve_bvp",
    derivative="implicit function theorem at the collocation solution; the ends of x too",
    limits="the equations' Jacobian is dense",
)
def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    tol: Any = 0.001,
    max_nodes: Any = 1000,
    verbose: Any = 0,
    bc_tol: Any = None,
    *,
    on_failure: str = "raise",
) -> Any:
    """Solve ``dy/dx = fun(x, y, p) + S y / (x - a)`` with ``bc(y(a), y(b), p) = 0``.

    Args:
        fun, bc: are called with Tensors: x of shape (m,), y of shape (n, m), p of shape (k,). Tensors that they read
            besides are differentiated; as in SciPy there is no ``args=``.
        x: the first mesh. Its ends are differentiated; the points between move with them in proportion.
        y, p: first guesses, which the solution does not depend on.
        on_failure: "raise" a RuntimeError with SciPy's message, or "nan": values and gradients are NaN. Under `vmap`
            those of the samples that failed are.

    Returns:
        SciPy's BVPResult with Tensors p, x, y, yp, with ``sol(x)``, and with ``gradient_error``: the largest relative
        residual, which bounds how exact the equations are solved.

    Under `vmap` SciPy may choose another mesh for each sample. Then all samples are solved again on the points of all
    these meshes, so that the results have one size.

    The derivative is that of the collocation equations r = 0 on the last mesh, ``dz = -(dr/dz)^-1 dr``, where z are the
    unknowns.

    >>> import numpy as np, pullback
    >>> k = pullback.tensor(1.0, dtype=pullback.float64, requires_grad=True)
    >>> sol = solve_bvp(
    ...     lambda x, y: [y[1], -k * y[0]], lambda a, b: [a[0], b[0] - 1], [0.0, 0.5, 1.0], np.ones((2, 3)), tol=1e-6
    ... )
    >>> sol.sol(0.5)[0].backward()  # of sin(sqrt(k) / 2) / sin(sqrt(k))
    >>> round(k.grad.item(), 4)
    0.0778
    """
    check_choice(_WHERE, "on_failure", on_failure, ON_FAILURE)
    for name, value in (("fun", fun), ("bc", bc)):
        check_function(_WHERE, value, name)
    given = {"S": S, "tol": tol, "max_nodes": max_nodes, "verbose": verbose, "bc_tol": bc_tol}
    settings = dict(zip(given, plain_setting(_WHERE, **given), strict=True))
    for name, jac in (("fun_jac", fun_jac), ("bc_jac", bc_jac)):
        if jac is not None:
            settings[name] = _of_arrays(jac)
    x = to(as_tensor(x), np.float64)
    guess, start = (None if v is None else array_of(as_tensor(v).detach()) for v in (y, p))
    guess = guess.astype(np.complex128 if guess.dtype.kind == "c" else np.float64)  # type: ignore[union-attr]
    if x.dim() != 1 or guess.ndim != 2:
        scipy.integrate.solve_bvp(fun, bc, array_of(x), guess)  # which raises
    problem = _Problem(
        fun, bc, guess, None if start is None else start.astype(guess.dtype), settings.pop("S"), settings
    )
    a, b = x[0], x[-1]
    problem.mesh = _prepared(problem, x)
    read = problem.given.inputs
    which = problem.solved(*[v.detach() for v in (a, b, *read)])
    runs = list(problem.runs)
    worst = max(runs, key=lambda r: r.status)
    if worst.status and on_failure == "raise":
        do = "change the first guess y, the mesh x or tol"
        if worst.status == _FULL:
            do = f"raise max_nodes above {max_nodes}, give a larger tol, or a first guess y that is nearer"
        raise not_converged(_WHERE, worst.message, do)
    if len({r.x.size for r in runs}) > 1:
        raise RuntimeError(
            errors.message(
                f"{_WHERE}: under vmap the samples have meshes of different sizes, and were solved on those of all of "
                f"them {_MESHES - 1} times",
                do="give a finer mesh x, or a larger tol",
            )
        )
    z = root(Closed(problem.residual), problem.find, which, a, b, *read)
    (mesh,) = call(Closed(problem.points), which, a, b)
    states, parameters = problem.unknowns(z, worst.x.size)
    slopes = problem.derivative(mesh, states, parameters, a, read)
    fields = dict(worst)
    fields.update(x=mesh, y=states, yp=slopes, p=parameters[0] if parameters else None)
    fields.update(sol=CubicSolution(mesh, states, slopes), gradient_error=float(np.max(worst.rms_residuals)))
    return type(worst)(fields)


def _of_arrays(jac: Callable[..., Any]) -> Callable[..., Any]:
    """A Jacobian of the user's as SciPy calls it."""

    @functools.wraps(jac, assigned=("__name__",), updated=())
    def called(*values: Any) -> Any:
        found = jac(*[wrap(np.array(v)) for v in values])
        if isinstance(found, tuple):
            return tuple(None if f is None else array_of(as_tensor(f)) for f in found)
        return array_of(as_tensor(found))

    return called


def _prepared(problem: _Problem, x: Any) -> Array:
    """The first mesh between 0 and 1. The tensors that the functions read are noted."""

    def relative(x: Tensor) -> tuple[Tensor]:
        v = x._data
        return (wrap((v - v[0]) / (v[-1] - v[0]) if v.size > 1 and v[-1] != v[0] else v - v[0]),)

    mesh = call(Closed(relative), x.detach())[0]
    p = [] if problem.p is None else [wrap(problem.p)]
    y = wrap(problem.guess)
    problem.given.find_reads(_WHERE, problem.fun, x, y, *p)
    problem.given.find_reads(_WHERE, problem.bc, y[:, 0], y[:, -1], *p)
    while type(mesh._data) is not np.ndarray:  # the samples of a transform have the first one's proportions
        mesh = mesh._data.inside if mesh._data.inside is not None else mesh.detach()
    found: Array = mesh._data
    return found


__all__ = ["CubicSolution", "solve_bvp"]

"""Minima and roots with gradients: `python -m benchmarks.scipy_optimize`.

The Rosenbrock function of 100 unknowns is minimised by BFGS, and the gradient of the minimum with respect to a
parameter is computed: by `pullback.scipy.optimize.minimize`, warm (which then runs the function as a program, and as it
is written where tracing is switched off), and by jaxopt, if it is installed, compiled and warm, at the same tolerance
of the gradient's norm. SciPy alone, with a gradient in bare NumPy, is the least time that
SciPy's method takes. A nonlinear diffusion equation of 99,856 unknowns is solved by SciPy's Krylov method, without
derivatives and by `pullback.scipy.optimize.root`, which finds the sparse Jacobian from the function. Values are
compared before anything is timed; the sides take turns, on one core, since JAX has threads of its own; a time is the
median processor time of its rounds.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

import pullback
from pullback.scipy import optimize

ROUNDS = 7
SIZE, TOLERANCE = 100, 1e-6
SIDE = 316


def rosenbrock(x: Any, a: Any) -> Any:
    """Its minimum moves with `a`, because of the last term."""
    return (a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() + 0.01 * a * ((x - 0.5) ** 2).sum()


def start() -> Any:
    return np.full(SIZE, 0.5)


# Both sides end where the Euclidean norm of the gradient is below the tolerance.
OPTIONS = {"gtol": TOLERANCE, "norm": 2}


def by_hand(x: Any, a: float) -> tuple[float, Any]:
    """The value and the gradient in bare NumPy."""
    d = x[1:] - x[:-1] ** 2
    value = (a * d**2 + (1 - x[:-1]) ** 2).sum() + 0.01 * a * ((x - 0.5) ** 2).sum()
    slope = 0.02 * a * (x - 0.5)
    slope[1:] += 2 * a * d
    slope[:-1] -= 4 * a * d * x[:-1] + 2 * (1 - x[:-1])
    return value, slope


def alone() -> Any:
    """SciPy's minimum, with the gradient written by hand, and no derivative of the minimum."""
    return scipy.optimize.minimize(by_hand, start(), (10.0,), method="BFGS", jac=True, options=OPTIONS)


def ours(function: Callable[..., Any] = rosenbrock) -> tuple[float, float]:
    """The sum of the unknowns at the minimum, and its derivative."""
    a = pullback.tensor(10.0, dtype=pullback.float64, requires_grad=True)
    found = optimize.minimize(function, start(), (a,), method="BFGS", options=OPTIONS)
    total = found.x.sum()
    (slope,) = pullback.autograd.grad(total, a)
    return total.item(), slope.item()


def theirs() -> tuple[Callable[[], tuple[float, float]], int]:
    """The same by jaxopt; and its number of iterations."""
    import jax
    import jaxopt

    jax.config.update("jax_enable_x64", True)
    solver = jaxopt.BFGS(fun=rosenbrock, tol=TOLERANCE, maxiter=500, implicit_diff=True)
    begin = jax.numpy.asarray(start())
    both = jax.jit(jax.value_and_grad(lambda a: solver.run(begin, a).params.sum()))

    def run() -> tuple[float, float]:
        total, slope = both(10.0)
        return float(total), float(slope)

    return run, int(solver.run(begin, 10.0).state.iter_num)


def diffusion(x: Any, k: Any) -> Any:
    """Heat that flows the better the hotter it is, with a source, on a square."""
    side = round(x.shape[0] ** 0.5)
    u = np.pad(x.reshape(side, side), 1)
    c = 1 + k * u**2
    across = (c[1:, 1:-1] + c[:-1, 1:-1]) / 2 * (u[1:, 1:-1] - u[:-1, 1:-1])
    along = (c[1:-1, 1:] + c[1:-1, :-1]) / 2 * (u[1:-1, 1:] - u[1:-1, :-1])
    return ((across[1:] - across[:-1] + along[:, 1:] - along[:, :-1]) * (side + 1) ** 2 + 10.0).reshape(-1)


def medians(*works: Callable[[], Any]) -> list[float]:
    """The median milliseconds of works that take turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, column in zip(works, times, strict=True):
            began = time.process_time()
            work()
            column.append(1000 * (time.process_time() - began))
    return [statistics.median(column) for column in times]


def minima() -> list[tuple[str, str]]:
    """BFGS with its gradient."""
    near = alone().x  # a root of the gradient has more digits than a minimum of the values
    exact = [
        scipy.optimize.root(lambda x, a=10.0 + s: by_hand(x, a)[1], near, tol=1e-13).x.sum() for s in (1e-3, 0.0, -1e-3)
    ]
    right = exact[1], (exact[0] - exact[2]) / 2e-3
    compiled = pullback.compile(rosenbrock)

    def untraced() -> tuple[float, float]:
        pullback.scipy.set_tracing(False)
        try:
            return ours()
        finally:
            pullback.scipy.set_tracing(True)

    named: dict[str, Callable[[], Any]] = {
        "SciPy, gradient by hand, no derivative of the minimum": alone,
        "pullback, warm": ours,
        "pullback, the function compiled": lambda: ours(compiled),
        "pullback, tracing off": untraced,
    }
    count = alone().nit
    iterations = [count] * len(named)
    if importlib.util.find_spec("jaxopt") is not None:
        named["jaxopt, compiled"], steps = theirs()
        iterations.append(steps)
    np.testing.assert_allclose(alone().x.sum(), right[0], rtol=1e-7)
    np.testing.assert_allclose(ours(), right, rtol=1e-5)
    for work in list(named.values())[1:]:
        for _ in range(3):  # warm
            np.testing.assert_allclose(work(), right, rtol=1e-5)
    times = medians(*named.values())
    title = f"BFGS, Rosenbrock of {SIZE} unknowns: "
    return [
        (f"{title if i == 0 else '... '}{name}", f"{t:.1f} ms, {t / times[0]:.2f} of SciPy's, {n} iterations")
        for i, (name, t, n) in enumerate(zip(named, times, iterations, strict=True))
    ]


def roots() -> list[tuple[str, str]]:
    """A large sparse system."""
    begin, options = np.zeros(SIDE**2), {"fatol": 1e-6}
    k = pullback.tensor(1.0, dtype=pullback.float64, requires_grad=True)

    def alone() -> Any:
        return scipy.optimize.root(diffusion, begin, (1.0,), method="krylov", options=options)

    def solved() -> Any:
        return optimize.root(diffusion, begin, (k,), method="krylov", options=options)

    def both() -> Any:
        return pullback.autograd.grad(solved().x.sum(), k)

    right, found = alone(), solved()
    np.testing.assert_allclose(found.x.detach().numpy(), right.x, atol=1e-6)
    (slope,) = pullback.autograd.grad(found.x.sum(), k)
    step = 1e-3
    sides = [
        optimize.root(diffusion, found.x.detach(), (1 + s,), method="krylov", options=options).x.sum()
        for s in (step, -step)
    ]
    np.testing.assert_allclose(slope.item(), (sides[0] - sides[1]).item() / (2 * step), rtol=1e-4)
    theirs, mine, gradient = medians(alone, solved, both)
    return [
        (f"root, {SIDE**2:,} unknowns: SciPy's Krylov method", f"{theirs:.0f} ms, {right.nit} iterations"),
        ("... pullback, sparse Jacobian", f"{mine:.0f} ms, {mine / theirs:.2f} of SciPy's, {found.nit} iterations"),
        ("... and the gradient", f"{gradient:.0f} ms, {gradient / theirs:.2f} of SciPy's"),
    ]


def main() -> int:
    """Print the table."""
    pullback.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print("| work | measured |\n| --- | --- |")
    for row in [*minima(), *roots()]:
        print(f"| {row[0]} | {row[1]} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

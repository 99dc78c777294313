"""Sparse Jacobians and Hessians against dense ones, and against asdex (JAX): `python -m benchmarks.sparse`.

Values are compared before anything is timed. The libraries take turns, on one thread; a time is the least of its
rounds, that of a plan or a compilation is of the first in the process, for both, after imports. asdex is left out where
it is not installed.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse  # noqa: F401 - as asdex, which imports it: no side's imports are timed

import pullback
from pullback.func import hessian, jacfwd, jvp, sparse, vmap

ROUNDS = 20


def brusselator(lib: Any, concatenate: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    """Reaction and diffusion of two fields on a torus, in either library."""

    def f(z: Any) -> Any:
        g = round((z.shape[0] // 2) ** 0.5)
        u, v = z[: g * g].reshape(g, g), z[g * g :].reshape(g, g)

        def laplacian(w: Any) -> Any:
            return lib.roll(w, 1, 0) + lib.roll(w, -1, 0) + lib.roll(w, 1, 1) + lib.roll(w, -1, 1) - 4 * w

        first = 1 + u * u * v - 4.4 * u + 10 * laplacian(u)
        second = 3.4 * u - u * u * v + 10 * laplacian(v)
        return concatenate([first.reshape(-1), second.reshape(-1)])

    return f


def rosenbrock(x: Any) -> Any:
    """The extended Rosenbrock function."""
    return (100 * (x[1::2] - x[::2] ** 2) ** 2 + (1 - x[::2]) ** 2).sum()


OURS = brusselator(pullback, pullback.cat)


def timed(work: Callable[[], Any]) -> float:
    """The milliseconds of one call."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def least(*works: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """The least milliseconds of each, called in turn."""
    times = [[timed(work) for work in works] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def megabytes(work: Callable[[], Any]) -> float:
    """The most memory that a call takes beyond what there was, in MB."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def asdex_side(
    array: np.ndarray[Any, Any], dense: np.ndarray[Any, Any]
) -> tuple[float, float, Callable[[], Any]] | None:
    """The milliseconds that asdex plans and compiles, and its Jacobian; None where it is not installed."""
    try:
        import asdex
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    x, made = jax.numpy.asarray(array), {}
    f = brusselator(jax.numpy, jax.numpy.concatenate)
    plan = timed(lambda: made.update(f=jax.jit(asdex.jacobian(f, x))))
    compiling = timed(lambda: jax.block_until_ready(made["f"](x)))
    found = made["f"](x)
    np.testing.assert_allclose(np.asarray(found.todense() if hasattr(found, "todense") else found), dense, rtol=1e-12)
    return plan, compiling, lambda: jax.block_until_ready(made["f"](x))


def small() -> list[tuple[str, str]]:
    """The Brusselator with 2,048 unknowns."""
    array = np.random.default_rng(0).uniform(size=2048)
    x, made = pullback.from_numpy(array), {}
    in_numpy = functools.partial(pullback.compile, backend="numpy")
    plan = timed(lambda: made.update(plan=sparse.jacobian_plan(OURS, x)))
    eager, planned, compiled = (
        sparse.sparse_jacobian(OURS, made["plan"], compile=how) for how in (None, in_numpy, pullback.compile)
    )
    planning, first = timed(lambda: planned(x)), timed(lambda: compiled(x))
    again = timed(lambda: sparse.sparse_jacobian(OURS, made["plan"], compile=pullback.compile)(x))
    dense = jacfwd(OURS)(x).numpy()
    for found in (eager(x), planned(x), compiled(x)):
        np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12)
    theirs = asdex_side(array, dense)
    sides = [eager, planned, compiled]
    *ours, other = least(*(lambda of=of: of(x) for of in sides), theirs[2] if theirs else lambda: None)
    (whole,) = least(lambda: jacfwd(OURS)(x), rounds=10)
    along = pullback.from_numpy(made["plan"].seeds("columns"))
    parts = least(
        lambda: OURS(x),
        lambda: jvp(OURS, (x,), (along[0],)),
        lambda: vmap(lambda v: jvp(OURS, (x,), (v,))[1])(along),
    )
    rows = [
        ("Brusselator, 2,048 unknowns: plan", f"{plan:.1f} ms"),
        ("... `jacfwd`", f"{whole:.0f} ms"),
        ("... Jacobian, eager, checked", f"{ours[0]:.2f} ms"),
        (
            f"... of that: the function; along one direction; along {len(along)} in one batch",
            " ms; ".join(f"{part:.2f}" for part in parts) + " ms",
        ),
        ("... compiled to NumPy: once; a Jacobian, checked", f"{planning:.0f} ms; {ours[1]:.2f} ms"),
        (
            "... compiled to C: once, and when it is in the cache; a Jacobian, checked",
            f"{first:.0f} ms, {again:.0f} ms; {ours[2]:.2f} ms",
        ),
    ]
    rows.append(
        (
            "... Jacobian, checked, as a part of `jacfwd`: eager, in NumPy, in C",
            ", ".join(f"1/{whole / time:.0f}" for time in ours),
        )
    )
    if theirs:
        total = theirs[0] + theirs[1]
        shares = [f"{(plan + once) / total:.2f}" for once in (planning, first, again)]
        ratios = ", ".join(f"{time / other:.2f}" for time in ours)
        rows += [
            (
                "... asdex: plan and compilation; ours to that, in NumPy, in C, in C from the cache",
                f"{total:.0f} ms; {', '.join(shares)}",
            ),
            ("... asdex: Jacobian; ours to that, eager, in NumPy, in C", f"{other:.2f} ms; {ratios}"),
        ]
    return rows


def large() -> list[tuple[str, str]]:
    """1e5 unknowns: the Brusselator's Jacobian, and the Hessian of the Rosenbrock function."""
    rows = []
    for name, f, n, kind in (
        ("Brusselator", OURS, 2 * 224**2, "jacobian"),
        ("Rosenbrock", rosenbrock, 10**5, "hessian"),
    ):
        x, made = pullback.from_numpy(np.random.default_rng(0).uniform(size=n)), {}
        plan = timed(lambda f=f, x=x, k=kind, m=made: m.update(plan=getattr(sparse, f"{k}_plan")(f, x)))
        of = getattr(sparse, f"sparse_{kind}")(f, made["plan"])
        compiled = getattr(sparse, f"sparse_{kind}")(f, made["plan"], compile=pullback.compile)
        assert abs(of(x) - compiled(x)).max() < 1e-9
        least_of = least(lambda of=of, x=x: of(x), lambda of=compiled, x=x: of(x), rounds=5)
        nonzeros, memory = made["plan"].sparsity.matrix.nnz, megabytes(lambda of=of, x=x: of(x))
        rows += [
            (f"{name}, {n:,} unknowns, {nonzeros:,} nonzeros: plan", f"{plan / 1000:.2f} s"),
            (f"... {kind.capitalize()}, checked; compiled", f"{least_of[0]:.0f} ms; {least_of[1]:.0f} ms"),
            ("... its memory at most", f"{memory:.0f} MB, {1e6 * memory / nonzeros:.0f} bytes for a nonzero"),
        ]
        few = x[:200] if kind == "hessian" else x[:128]
        dense = (hessian if kind == "hessian" else jacfwd)(f)(few).numpy()
        np.testing.assert_allclose(getattr(sparse, f"sparse_{kind}")(f)(few).toarray(), dense, rtol=1e-10, atol=1e-12)
    return rows


def main() -> int:
    pullback.set_num_threads(1)
    print("| work | measured |\n| --- | --- |")
    with tempfile.TemporaryDirectory() as os.environ["PULLBACK_CACHE"]:  # as on a machine that has compiled nothing yet
        for row in [*small(), *large()]:
            print(f"| {row[0]} | {row[1]} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

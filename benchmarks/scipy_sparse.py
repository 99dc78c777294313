"""Sparse systems and eigenpairs with derivatives against SciPy's functions alone: `python -m benchmarks.scipy_sparse`.

Values and gradients are compared before anything is timed. The works take turns, on one thread; a time is the least of
its rounds.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import pullback
from pullback.scipy.sparse import csr_array
from pullback.scipy.sparse import linalg as ours

ROUNDS = 7
SIDE = 141  # N = 19,881 unknowns, 98,841 nonzeros


def heat(side: int) -> scipy.sparse.csr_array:
    """The five-point Laplacian of a square, with a mass and a drift."""
    along = scipy.sparse.diags_array([-1.1, 2.0, -0.9], offsets=[-1, 0, 1], shape=(side, side))
    return scipy.sparse.csr_array(scipy.sparse.kronsum(along, along) + 0.1 * scipy.sparse.eye_array(side**2))


def least(*works: Callable[[], float]) -> list[float]:
    """The least milliseconds that each reports, called in turn."""
    times = [[work() for work in works] for _ in range(ROUNDS)]
    return [1000 * min(column) for column in zip(*times, strict=True)]


def timed(work: Callable[[], Any]) -> float:
    """The seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def after(prepare: Callable[[], Any], work: Callable[[Any], Any]) -> float:
    """The seconds of `work` on what `prepare` makes, which is not timed."""
    made = prepare()
    return timed(lambda: work(made))


def megabytes(prepare: Callable[[], Any], work: Callable[[Any], Any]) -> float:
    """The most memory that `work` takes beyond what there was, in MB."""
    made = prepare()
    tracemalloc.start()
    work(made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def systems() -> list[tuple[str, str]]:
    """`spsolve`: forward, backward, and a Hessian times a vector."""
    a, rng = heat(SIDE), np.random.default_rng(0)
    b, g = rng.standard_normal((2, a.shape[0]))
    values = pullback.from_numpy(a.data).requires_grad_()
    right = pullback.from_numpy(b).requires_grad_()
    cotangent = pullback.from_numpy(g)

    def forward() -> Any:
        return ours.spsolve(csr_array((values, a.indices, a.indptr), shape=a.shape), right)

    def backward(x: Any) -> Any:
        return pullback.autograd.grad(x, [values, right], cotangent)

    def first() -> Any:
        return pullback.autograd.grad(forward(), values, cotangent, create_graph=True)[0]

    x = scipy.sparse.linalg.spsolve(a.tocsc(), b)
    w = scipy.sparse.linalg.spsolve(a.T.tocsc(), g)
    found = forward()
    by_values, by_right = backward(found)
    rows = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    np.testing.assert_allclose(found.detach().numpy(), x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_right.numpy(), w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_values.numpy(), -w[rows] * x[a.indices], rtol=1e-8, atol=1e-8)
    theirs, there, back, twice = least(
        lambda: timed(lambda: scipy.sparse.linalg.spsolve(a, b)),
        lambda: timed(forward),
        lambda: after(forward, backward),
        lambda: after(first, lambda h: pullback.autograd.grad(h.sum(), values)),
    )
    memory = megabytes(forward, backward)
    return [
        (f"spsolve, {a.shape[0]:,} unknowns, {a.nnz:,} nonzeros: SciPy, no derivatives", f"{theirs:.1f} ms"),
        ("... forward", f"{there:.1f} ms, {there / theirs:.2f} of SciPy's"),
        ("... backward", f"{back:.1f} ms, {back / there:.3f} of forward, {back / theirs:.3f} of SciPy's"),
        ("... Hessian times a vector, after the gradient", f"{twice:.1f} ms, {twice / there:.3f} of forward"),
        ("... memory of backward at most", f"{memory:.1f} MB, {1e6 * memory / a.nnz:.0f} bytes for a nonzero"),
    ]


def pairs() -> list[tuple[str, str]]:
    """`eigsh`: the lowest pair by shift and invert, and the gradient of a loss of values and vectors."""
    a = heat(71)
    a = scipy.sparse.csr_array((a + a.T) / 2)
    values = pullback.from_numpy(a.data).requires_grad_()
    weight = pullback.from_numpy(np.random.default_rng(0).standard_normal((a.shape[0], 1)))
    side = {"k": 1, "sigma": 0.0}

    def forward() -> Any:
        return ours.eigsh(csr_array((values, a.indices, a.indptr), shape=a.shape), **side)

    def backward(pair: Any) -> Any:
        return pullback.autograd.grad(pair[0].sum() + (weight * pair[1] ** 2).sum(), values)[0]

    w, v = scipy.sparse.linalg.eigsh(a.tocsc(), rng=0, **side)
    pair = forward()
    np.testing.assert_allclose(pair[0].detach().numpy(), w, rtol=1e-9)
    np.testing.assert_allclose(pair[1].detach().numpy() ** 2, v**2, atol=1e-9)
    gradient, step = backward(pair).numpy(), 1e-5
    moved = scipy.sparse.csr_array((np.sin(a.data * 3) * a.data, a.indices, a.indptr), shape=a.shape)

    def loss(t: float) -> float:
        w, v = scipy.sparse.linalg.eigsh(scipy.sparse.csc_array(a + t * moved), rng=0, **side)
        return float(w.sum() + (weight.numpy() * v**2).sum())

    np.testing.assert_allclose(gradient @ moved.data, (loss(step) - loss(-step)) / (2 * step), rtol=1e-5)
    theirs, there, back = least(
        lambda: timed(lambda: scipy.sparse.linalg.eigsh(a.tocsc(), rng=0, **side)),
        lambda: timed(forward),
        lambda: after(forward, backward),
    )
    return [
        (f"eigsh, {a.shape[0]:,} unknowns, the lowest pair by sigma=0: SciPy, no derivatives", f"{theirs:.1f} ms"),
        ("... forward", f"{there:.1f} ms"),
        ("... backward through the value and the vector", f"{back:.1f} ms, {back / there:.2f} of forward"),
    ]


def main() -> int:
    pullback.set_num_threads(1)
    print("| work | measured |\n| --- | --- |")
    for row in [*systems(), *pairs()]:
        print(f"| {row[0]} | {row[1]} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""<v, J u> = <J^T v, u>, summed over the ranks, for every differentiable collective; first and second order.

J u by forward mode, J^T v by reverse mode. Inner products are those of the spaces: of varying tensors the sum over the
ranks, of replicated ones once. The second order does the same with the gradient of a function that is not linear, and
compares its derivative with the transpose of it.
"""

import sys

import numpy as np

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F
from pullback.func import grad, jvp

dist.init_process_group(timeout=60)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
DTYPE = getattr(pullback, sys.argv[1])
SUM, AVG = dist.ReduceOp.SUM, dist.ReduceOp.AVG


def random(shape, seed, placement):
    """Random numbers: of each rank its own, or the same on all."""
    g = np.random.default_rng([seed, RANK if placement == "varying" else 99])
    found = g.standard_normal(shape) + (1j * g.standard_normal(shape) if DTYPE.is_complex else 0)
    t = pullback.tensor(found, dtype=DTYPE)
    return dist.replicate(t) if placement == "replicated" else t


def like(t, seed, placement=""):
    return random(tuple(t.shape), seed, placement or dist.placement(t))


def inner(a, b):
    """Re <a, b>: over the ranks where `a` is varying, else once."""
    total = pullback.tensor(float(np.real(np.vdot(a.detach().numpy(), b.detach().numpy()))), dtype=pullback.float64)
    if dist.placement(a) == "varying":
        dist.all_reduce(total)
    return float(total)


def as_list(x):
    return [x[i] for i in range(SIZE)]


def ring(x):
    return F.sendrecv(x, (RANK + 1) % SIZE, (RANK - 1) % SIZE)


def line(x):
    return F.sendrecv(x, RANK + 1 if RANK + 1 < SIZE else None, RANK - 1 if RANK else None)


def uneven(x):
    """Rank i sends i + j + 1 rows to rank j."""
    given = [x[: RANK + j + 1] * (j + 1) for j in range(SIZE)]
    return F.all_to_all([x[: RANK + j + 1] for j in range(SIZE)], given)


LAST = SIZE - 1
CASES = {  # name: the function, the placement and the shape of its argument
    "all_reduce": (F.all_reduce, "varying", (3,)),
    "all_reduce of no axis": (F.all_reduce, "varying", ()),
    "all_reduce of nothing": (F.all_reduce, "varying", (0, 2)),
    "all_reduce AVG": (lambda x: F.all_reduce(x, AVG), "varying", (2, 3)),
    "all_reduce PRODUCT": (lambda x: F.all_reduce(x, dist.ReduceOp.PRODUCT), "varying", (3,)),
    "all_reduce of parts": (lambda x: F.all_reduce(dist.partial(x) * 2 + dist.partial(x)), "varying", (3,)),
    "varying": (dist.varying, "replicated", (3, 2)),
    "varying, differently": (lambda x: dist.varying(x) * (RANK + 1), "replicated", (3,)),
    "broadcast": (lambda x: F.broadcast(x, LAST), "varying", (3, 2)),
    "all_gather": (F.all_gather, "varying", (3,)),
    "all_gather_into_tensor": (F.all_gather_into_tensor, "varying", (3, 2)),
    "all_gather, differently": (lambda x: dist.varying(F.all_gather(x)[LAST]) * (RANK + 1), "varying", (3,)),
    "reduce": (lambda x: F.reduce(x, LAST), "varying", (3,)),
    "reduce AVG": (lambda x: F.reduce(x, 0, AVG), "varying", (3,)),
    "gather": (lambda x: F.gather(x, LAST), "varying", (3,)),
    "scatter": (lambda x: F.scatter(as_list(x), LAST), "varying", (SIZE, 3)),
    "reduce_scatter": (lambda x: F.reduce_scatter(x[0], as_list(x)), "varying", (SIZE, 3)),
    "reduce_scatter AVG": (lambda x: F.reduce_scatter(x[0], as_list(x), AVG), "varying", (SIZE, 3)),
    "all_to_all": (lambda x: F.all_to_all(as_list(x), as_list(x)), "varying", (SIZE, 3)),
    "all_to_all, uneven": (uneven, "varying", (2 * SIZE, 2)),
    "sendrecv in a ring": (ring, "varying", (3,)),
    "sendrecv in a line": (line, "varying", (2, 2)),
    "halo": (lambda x: dist.halo(x, 1, 2), "varying", (2, 3)),
    "periodic halo": (lambda x: dist.halo(x, 0, periodic=True), "varying", (2, 3)),
    "transposed memory": (lambda x: F.all_reduce(x.T), "varying", (2, 3)),
}
if not DTYPE.is_complex:
    CASES["all_reduce MAX"] = (lambda x: F.all_reduce(x, dist.ReduceOp.MAX), "varying", (4,))
    CASES["all_reduce MIN"] = (lambda x: F.all_reduce(x, dist.ReduceOp.MIN), "varying", (4,))


def parts(y):
    return y if isinstance(y, tuple) else (y,)


def close(name, a, b):
    error = abs(a - b) / max(1.0, abs(a), abs(b))
    assert error <= 1e-12, f"rank {RANK}: {name}: {a!r} and {b!r} differ by {error:.1e}"


def first_order(name, fn, x, u):
    _, pushed = jvp(lambda x: parts(fn(x)), (x,), (u,))
    x = x.detach().requires_grad_()
    out = parts(fn(x))
    v = [like(y, 10 + i) for i, y in enumerate(out)]
    (pulled,) = pullback.autograd.grad(out, x, v)
    assert dist.placement(pulled) == dist.placement(x), name
    close(name, sum(inner(a, b) for a, b in zip(v, pushed, strict=True)), inner(pulled, u))


def loss(fn, x, weights):
    """A number that does not depend on x linearly."""
    total = 0
    for y, w in zip(parts(fn(x.sin() * x)), weights, strict=True):
        total = total + (y * y * w).abs().sum()
    return total


def second_order(name, fn, x, u):
    weights = [like(y, 20 + i) for i, y in enumerate(parts(fn(x)))]
    v = like(x, 2)
    _, forward = jvp(grad(lambda x: loss(fn, x, weights)), (x,), (u,))
    x = x.detach().requires_grad_()
    (g,) = pullback.autograd.grad(loss(fn, x, weights), x, create_graph=True)
    (reverse,) = pullback.autograd.grad(g, x, v)
    assert dist.placement(reverse) == dist.placement(x), name
    close(f"{name}, second order", inner(v, forward), inner(reverse, u))


for name, (fn, placement, shape) in CASES.items():
    x = random(shape, 0, placement)
    first_order(name, fn, x, random(shape, 1, placement))
    second_order(name, fn, x, random(shape, 1, placement))
print("passed", flush=True)

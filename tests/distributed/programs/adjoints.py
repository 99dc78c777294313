"""<v, J u> = <J^T v, u>, summed over the ranks, of every collective and of what is made of them; both orders.

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


def random(shape, seed, placement, dtype=DTYPE):
    """Random numbers: of each rank its own, or the same on all."""
    g = np.random.default_rng([seed, RANK if placement == "varying" else 99])
    found = g.standard_normal(shape) + (1j * g.standard_normal(shape) if dtype.is_complex else 0)
    t = pullback.tensor(found, dtype=dtype)
    return dist.replicate(t) if placement == "replicated" else t


def like(t, seed, placement=""):
    return random(tuple(t.shape), seed, placement or dist.placement(t), t.dtype)


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


GRID = dist.Grid((2, SIZE // 2) if SIZE % 2 == 0 else (1, SIZE), periodic=(True, False))
LINE = GRID.line(1)
RIGHT = random((5,), 7, "varying")


def shifted(x, k=None):
    """A Hermitian, positive definite matrix over all cells of all ranks."""
    e = dist.halo(x, 0)
    shift = 4 if k is None else 4 + (k * k.conj()).real
    return shift * x - e[2:] - e[:-2]


def upwind(x, k=None):
    """One that is not symmetric."""
    shift = 4 if k is None else 4 + 0.1 * k
    return shift * x - 1.5 * dist.halo(x, 0)[:-2]


def upwind_of_all(x, k):
    return upwind(x, dist.varying(k))


LAST = SIZE - 1
COLLECTIVES = {  # name: the function, the placement and the shape of its argument
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
    COLLECTIVES["all_reduce MAX"] = (lambda x: F.all_reduce(x, dist.ReduceOp.MAX), "varying", (4,))
    COLLECTIVES["all_reduce MIN"] = (lambda x: F.all_reduce(x, dist.ReduceOp.MIN), "varying", (4,))
OPERATIONS = {
    "halo of a grid": (lambda x: dist.halo(dist.halo(x, 0, 1, grid=GRID), 1, 2, grid=GRID), "varying", (2, 3)),
    "halo along a line of a grid": (lambda x: dist.halo(x, 1, 1, group=LINE), "varying", (2, 3)),
    "fft": (lambda x: dist.fft(x, 0), "varying", (3, 5)),
    "fft, uneven": (lambda x: dist.fft(x[:, : RANK + 1], 1, "ortho"), "varying", (3, SIZE)),
    "fft of one line": (lambda x: dist.fft(x, 0), "varying", (3,)),
    "ifft": (lambda x: dist.ifft(x, -2), "varying", (2, 2, 3)),
    "dot": (lambda x: dist.dot(x, x * (RANK + 2)), "varying", (2, 3)),
    "vdot": (lambda x: dist.vdot(x, x * (RANK + 2)), "varying", (2, 3)),
    "norm": (dist.norm, "varying", (2, 3)),
    "norm of order 3": (lambda x: dist.norm(x, 3), "varying", (2, 3)),
    "cg": (lambda x: dist.cg(shifted, x, rtol=1e-14), "varying", (5,)),
    "cg, by its parameters": (lambda k: dist.cg(shifted, RIGHT, (k,), rtol=1e-14), "varying", (5,)),
    "cg, by both": (lambda k: dist.cg(shifted, k * k, (k,), rtol=1e-14), "varying", (5,)),
    "gmres": (lambda x: dist.gmres(upwind, x, rtol=1e-14), "varying", (5,)),
    "gmres, by its parameters": (lambda k: dist.gmres(upwind, RIGHT, (k,), rtol=1e-14), "varying", (5,)),
    "gmres, by one of all": (lambda k: dist.gmres(upwind_of_all, RIGHT, (k,), rtol=1e-14), "replicated", ()),
}


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


for name, (fn, placement, shape) in {"collectives": COLLECTIVES, "operations": OPERATIONS}[sys.argv[2]].items():
    x = random(shape, 0, placement)
    first_order(name, fn, x, random(shape, 1, placement))
    second_order(name, fn, x, random(shape, 1, placement))
print("passed", flush=True)

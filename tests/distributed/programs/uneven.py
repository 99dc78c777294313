"""Parts of different shapes, gathered: values, and derivatives of both orders and modes, against NumPy."""

import numpy as np
import pytest

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F
from pullback.func import jvp, vmap

dist.init_process_group(timeout=20)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
RNG = np.random.default_rng(0)
for dtype in (np.float64, np.complex128):
    parts = [RNG.standard_normal((r % 3, 2)) + (1j if dtype is np.complex128 else 0) for r in range(SIZE)]  # some empty
    whole = np.concatenate(parts)
    x = pullback.tensor(parts[RANK], requires_grad=True)
    found = F.all_gather(x, uneven=True)
    assert [dist.placement(p) for p in found] == ["replicated"] * SIZE
    for p, q in zip(found, parts, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q)
    joined = F.all_gather_into_tensor(x, uneven=True)
    np.testing.assert_array_equal(joined.detach().numpy(), whole)
    loss = (joined.abs() ** 4).sum()
    (g,) = pullback.autograd.grad(loss, x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), 4 * np.abs(parts[RANK]) ** 2 * parts[RANK], rtol=1e-12)
    again = F.all_reduce((g.abs() ** 2).sum())
    (h,) = pullback.autograd.grad(again, x)
    np.testing.assert_allclose(h.numpy(), 96 * np.abs(parts[RANK]) ** 4 * parts[RANK], rtol=1e-11)
    # <v, J u> = <J^T v, u>, over all ranks
    u = [RNG.standard_normal(p.shape) for p in parts]
    v = RNG.standard_normal(whole.shape).astype(dtype)
    _, pushed = jvp(
        lambda x: F.all_gather_into_tensor(x, uneven=True), (x.detach(),), (pullback.tensor(u[RANK].astype(dtype)),)
    )
    np.testing.assert_allclose(pushed.numpy(), np.concatenate(u), rtol=1e-12)
    (pulled,) = pullback.autograd.grad(joined, x, dist.replicate(pullback.tensor(v)))
    right = dist.vdot(pulled, pullback.tensor(u[RANK].astype(dtype))).item()
    assert abs(np.vdot(v, np.concatenate(u)) - right) < 1e-12
    rows = pullback.tensor(np.stack([parts[RANK], 2 * parts[RANK]]))
    batched = vmap(lambda x: F.all_gather_into_tensor(x, uneven=True))(rows)
    np.testing.assert_array_equal(batched.numpy(), np.stack([whole, 2 * whole]))

for make in (lambda r: pullback.ones(r), lambda r: pullback.ones(2, r).bool().T, lambda r: pullback.ones(r).bfloat16()):
    into = [make(r) * 0 if make(r).dtype != pullback.bool else ~make(r) for r in range(SIZE)]
    dist.all_gather(into, make(RANK))
    assert all((t == 1).all() and t.shape == make(r).shape for r, t in enumerate(into))
    assert all((t == 1).all() for t in F.all_gather(make(RANK), uneven=True))
numbers = F.all_gather(pullback.tensor(RANK), uneven=True)
assert [n.item() for n in numbers] == [*range(SIZE)]
if SIZE > 1:
    with pytest.raises(dist.DistBackendError, match="else uneven=True"):
        F.all_gather(pullback.ones(RANK))
    with pytest.raises((ValueError, dist.DistBackendError)):
        dist.all_gather([pullback.zeros(1 + RANK)] * SIZE, pullback.ones(1 + RANK))
    with pytest.raises((RuntimeError, dist.DistBackendError)):
        F.all_gather_into_tensor(pullback.ones(2, 1 + RANK), uneven=True)
    with pytest.raises(dist.DistBackendError, match="the ranks call different collectives"):
        F.all_gather(pullback.ones(2).to(pullback.float64 if RANK else pullback.float32), uneven=True)
    with pytest.raises(dist.DistBackendError, match="the ranks call different collectives"):
        F.all_gather(pullback.ones(2), uneven=RANK == 0)
dist.barrier()
print("passed", flush=True)

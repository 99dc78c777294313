"""The collectives in place: values in every dtype and layout, in groups; and what is refused."""

import os
from datetime import timedelta

import numpy as np

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F

dist.init_process_group("mpi", timeout=timedelta(seconds=30))
RANK, SIZE = dist.get_rank(), dist.get_world_size()
NEXT, BEFORE, LAST = (RANK + 1) % SIZE, (RANK - 1) % SIZE, SIZE - 1
DTYPES = [pullback.float16, pullback.float32, pullback.float64, pullback.complex64, pullback.complex128, pullback.int32]
DTYPES += [pullback.int64, pullback.uint8, pullback.bfloat16]
EACH = np.arange(SIZE)


def of(rank, dtype=pullback.float64, shape=(2, 3)):
    """The tensor that a rank has."""
    return pullback.tensor(np.full(shape, rank + 1.0)).to(dtype)


def equal(t, value):
    assert np.array_equal(t.to(pullback.complex128).numpy(), np.broadcast_to(value, t.shape)), (RANK, t, value)


def refused(kind, said, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as error:
        assert said in str(error), (said, str(error))
    else:
        raise AssertionError(f"{call.__name__}{args} is not refused")


def layouts(dtype):
    yield of(RANK, dtype)
    yield of(RANK, dtype).T
    yield of(RANK, dtype, (4, 6))[::2, ::2]
    yield of(RANK, dtype, ())
    yield of(RANK, dtype, (0, 3))


for dtype in DTYPES:
    for t in layouts(dtype):
        dist.all_reduce(t)
        equal(t, (EACH + 1).sum())
    for t in layouts(dtype):
        dist.broadcast(t, LAST)
        equal(t, SIZE)
    for t in layouts(dtype):
        found = [pullback.zeros_like(t) for _ in EACH]
        dist.all_gather(found, t)
        for r in EACH:
            equal(found[r], r + 1)
        found = [pullback.zeros_like(t) for _ in EACH]
        dist.all_to_all(found, [t * (r + 1) for r in range(SIZE)])
        for r in EACH:
            equal(found[r], (r + 1) * (RANK + 1))
t = of(RANK, shape=(SIZE,))
dist.all_reduce(t, dist.ReduceOp.PRODUCT)
equal(t, np.prod(EACH + 1.0))
for op, value in [(dist.ReduceOp.MAX, SIZE), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.AVG, (EACH + 1).mean())]:
    t = of(RANK)
    version = t._version
    dist.all_reduce(t, op)
    equal(t, value)
    assert t._version > version
flag = pullback.tensor([RANK == 0, True])
dist.all_reduce(flag, dist.ReduceOp.MIN)
assert flag.tolist() == [SIZE == 1, True]
work = dist.all_reduce(t := of(RANK), async_op=True)
assert work.wait() and work.is_completed()
equal(t, (EACH + 1).sum())
dist.reduce(t := of(RANK), LAST)
equal(t, (EACH + 1).sum() if RANK == LAST else RANK + 1)
found = [of(0) for _ in EACH]
dist.gather(of(RANK), found if RANK == 0 else None)
for r in EACH:
    equal(found[r], r + 1 if RANK == 0 else 1)
dist.scatter(t := of(0), [of(10 * r) for r in range(SIZE)] if RANK == LAST else None, LAST)
equal(t, 10 * RANK + 1)
dist.reduce_scatter(t := of(0), [of(RANK + r) for r in range(SIZE)])
equal(t, (EACH + RANK + 1).sum())
dist.all_gather_into_tensor(t := pullback.zeros(SIZE * 2, 3, dtype=pullback.float64), of(RANK))
equal(t, np.repeat(EACH + 1, 2)[:, None])
objects = [{"rank": RANK}, None] if RANK == 0 else [None, None]
dist.broadcast_object_list(objects)
assert objects == [{"rank": 0}, None]
everyone = [None] * SIZE
dist.all_gather_object(everyone, ("rank", RANK))
assert everyone == [("rank", r) for r in range(SIZE)]
if SIZE > 1:
    works = [dist.isend(of(RANK), NEXT), dist.irecv(t := of(0), BEFORE)]
    assert all(work.wait() for work in works)
    equal(t, BEFORE + 1)
    if RANK == 0:
        dist.send(of(7).T, 1)
    elif RANK == 1:
        t = of(0).T
        assert dist.recv(t, 0) == 0
        equal(t, 8)
    refused(ValueError, "should not be the same as the rank", dist.send, t, RANK)

# groups
WHOLE = dist.replicate(pullback.ones((), dtype=pullback.float64))
odd = dist.new_group([r for r in range(SIZE) if r % 2] or [0])
members = [r for r in range(SIZE) if r % 2] or [0]
if RANK in members:
    assert dist.get_rank(odd) == members.index(RANK) and dist.get_world_size(odd) == len(members)
    dist.all_reduce(t := of(RANK), group=odd)
    equal(t, sum(r + 1 for r in members))
    x = of(RANK).requires_grad_()
    F.broadcast(x, members[-1], group=odd).sum().backward()
    equal(x.grad, members[-1] == RANK)
    if len(members) < SIZE:
        refused(ValueError, "not part of group", dist.broadcast, t, 0, group=odd)
        refused(RuntimeError, "different groups", lambda: F.all_reduce(x.sum(), group=odd) + WHOLE)
else:
    assert dist.get_rank(odd) == dist.get_world_size(odd) == -1
    refused(ValueError, "Invalid process group", dist.all_reduce, of(RANK), group=odd)

# what is refused, and changes nothing
x = of(RANK).requires_grad_()
refused(RuntimeError, "requires grad", dist.all_reduce, x)
with pullback.no_grad():
    dist.all_reduce(x)
frozen = pullback.from_numpy(np.ones(3)).detach()
frozen._data.flags.writeable = False
refused(RuntimeError, "read-only", dist.all_reduce, frozen)
refused(TypeError, "expected a Tensor", dist.all_reduce, np.ones(3))
refused(ValueError, "op", dist.all_reduce, of(0), "MEAN")
refused(ValueError, "does not support MAX on complex", dist.all_reduce, of(0, pullback.complex64), dist.ReduceOp.MAX)
refused(RuntimeError, "SUM of bool", dist.all_reduce, pullback.tensor([True]))
refused(RuntimeError, "AVG of int64", dist.all_reduce, of(0, pullback.int64), dist.ReduceOp.AVG)
refused(ValueError, "a tensor for each of", dist.all_gather, [of(0)] * (SIZE + 1), of(0))
refused(ValueError, "expected tensors of float64[2, 3]", dist.all_gather, [of(0).T] * SIZE, of(0))
refused(ValueError, "not part of group", dist.broadcast, of(0), SIZE)
refused(ValueError, "twice", dist.init_process_group)
refused(ValueError, "world_size", dist.new_group, [0, 0])
refused(ValueError, "world_size", dist.new_group, [SIZE])
refused(RuntimeError, "placement", dist.all_reduce, dist.replicate(of(0)))
refused(RuntimeError, "leave it out", F.all_reduce, dist.replicate(of(0)))
refused(RuntimeError, "varying(x)", F.all_to_all, [dist.replicate(of(0))] * SIZE, [dist.replicate(of(0))] * SIZE)

# in a process that was forked
if SIZE > 1 and hasattr(os, "fork"):
    child = os.fork()
    if not child:
        try:
            dist.all_reduce(of(0))
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
dist.barrier()
dist.destroy_process_group()
refused(ValueError, "has not been initialized", dist.get_rank)
print("passed", flush=True)

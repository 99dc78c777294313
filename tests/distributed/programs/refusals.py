"""Calls that one rank refuses, and programs that catch it: every rank raises, and the next collective is right."""

import functools

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F

dist.init_process_group(timeout=20)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
LAST = SIZE - 1


def ones(*shape, dtype=pullback.float32):
    return pullback.ones(*shape, dtype=dtype)


def several(n=SIZE, *shape):
    return [ones(*(shape or (2,))) for _ in range(n)]


def at(rank, there, elsewhere=None):
    return there if rank == RANK else elsewhere


def frozen(t):
    t._data.flags.writeable = False
    return t


t, plain = ones(2), ones(2)
placed = dist.replicate(ones(2))
WRONG = {  # calls; rank `bad` refuses an argument that another rank would take
    "gather_": lambda bad: dist.gather(t, at(bad, several(SIZE + 1)), bad),
    "gather_ of another shape": lambda bad: dist.gather(t, at(bad, several(SIZE, 3)), bad),
    "gather_ without a list": lambda bad: dist.gather(t, None, bad),
    "gather_ with a list too many": lambda bad: dist.gather(t, several() if RANK in (bad, LAST) else None, LAST),
    "scatter_": lambda bad: dist.scatter(t, at(bad, several(SIZE + 1)), bad),
    "scatter_ of another dtype": lambda bad: dist.scatter(t, at(bad, [x.double() for x in several()]), bad),
    "all_gather_": lambda bad: dist.all_gather(at(bad, several(SIZE + 1), several()), t),
    "all_gather_ not of tensors": lambda bad: dist.all_gather(at(bad, [1] * SIZE, several()), t),
    "all_gather_into_tensor_": lambda bad: dist.all_gather_into_tensor(ones(at(bad, 1, 2 * SIZE)), t),
    "all_gather_object": lambda bad: dist.all_gather_object([None] * at(bad, SIZE + 1, SIZE), 1),
    "all_gather_object of no pickle": lambda bad: dist.all_gather_object([None] * SIZE, at(bad, lambda: 1, 1)),
    "broadcast_object_list": lambda bad: dist.broadcast_object_list(at(bad, (1,), [1])),
    "broadcast_object_list of no pickle": lambda bad: dist.broadcast_object_list([at(bad, lambda: 1, 1)], bad),
    "all_reduce_": lambda bad: dist.all_reduce(at(bad, 3, t)),
    "all_reduce_ read-only": lambda bad: dist.all_reduce(at(bad, frozen(ones(2)), t)),
    "all_reduce_ placed": lambda bad: dist.all_reduce(at(bad, placed, t)),
    "all_reduce_ async": lambda bad: dist.all_reduce(t, at(bad, "NONE", "SUM"), async_op=True),
    "reduce_": lambda bad: dist.reduce(t, at(bad, SIZE + 3, 0)),
    "broadcast_": lambda bad: dist.broadcast(at(bad, t.clone().requires_grad_(), t), 0),
    "reduce_scatter_": lambda bad: dist.reduce_scatter(t, at(bad, several(SIZE, 3), several())),
    "all_to_all_": lambda bad: dist.all_to_all(several(), at(bad, several(SIZE + 1), several())),
    "all_to_all_ that does not fit": lambda bad: dist.all_to_all(several(), at(bad, several(SIZE, 3), several())),
    "all_reduce": lambda bad: F.all_reduce(at(bad, placed, plain)),
    "all_reduce of no tensor": lambda bad: F.all_reduce(at(bad, 1.0, plain)),
    "sendrecv of no tensor": lambda bad: F.sendrecv(at(bad, [1.0], plain), None, None),
    "fft of no tensor": lambda bad: dist.fft(at(bad, [1.0], plain), 0),
    "all_reduce op": lambda bad: F.all_reduce(plain, at(bad, "NONE", "MAX")),
    "broadcast": lambda bad: F.broadcast(plain, at(bad, -1, 0)),
    "all_gather": lambda bad: F.all_gather(at(bad, dist.partial(plain), plain)),
    "all_gather_into_tensor": lambda bad: F.all_gather_into_tensor(at(bad, pullback.ones(()), plain)),
    "reduce": lambda bad: F.reduce(plain, 0, at(bad, "MAX", "SUM")),
    "gather": lambda bad: F.gather(plain, at(bad, SIZE, 0)),
    "scatter": lambda bad: F.scatter(at(bad, several(SIZE + 1), several())),
    "reduce_scatter": lambda bad: F.reduce_scatter(ones(at(bad, 3, 2)), several()),
    "all_to_all": lambda bad: F.all_to_all(several(), at(bad, several(SIZE + 1), several())),
    "sendrecv": lambda bad: F.sendrecv(plain, at(bad, SIZE), None),
    "replicate": lambda bad: dist.replicate(at(bad, plain.clone().requires_grad_() * 2, plain)),
    "dot": lambda bad: dist.dot(plain, ones(at(bad, 3, 2))),
    "norm": lambda bad: dist.norm(at(bad, ones(2).int(), plain)),
    "halo": lambda bad: dist.halo(ones(at(bad, 1, 2)), 0, width=2),
    "halo axis": lambda bad: dist.halo(plain, at(bad, 1, 0)),
    "fft": lambda bad: dist.fft(plain, at(bad, 1, 0)),
    "cg": lambda bad: dist.cg(lambda x: x, at(bad, placed, plain)),
    "clip_grad_norm_": lambda bad: dist.clip_grad_norm_(at(bad, [3], []), 1.0),
    "clip_grad_norm_ of one replicated of another shape": lambda bad: dist.clip_grad_norm_(
        at(bad, with_gradient(placed), []), 1.0
    ),
    "clip_grad_norm_ order": lambda bad: dist.clip_grad_norm_([], 1.0, at(bad, 0.5, 2.0)),
    "norm order": lambda bad: dist.norm(plain, at(bad, 0.5, 2.0)),
    "gmres restart": lambda bad: dist.gmres(lambda x: x, plain, restart=at(bad, 0, 5)),
    "replicate of no tensor": lambda bad: dist.replicate(at(bad, 1.0, plain)),
    "DistributedDataParallel of no module": lambda bad: dist.DistributedDataParallel(at(bad, 3, network())),
    "DistributedDataParallel without parameters": lambda bad: dist.DistributedDataParallel(
        at(bad, pullback.nn.Tanh(), network())
    ),
    "ZeroRedundancyOptimizer of no class": lambda bad: zero(at(bad, 3, pullback.optim.SGD)),
    "ZeroRedundancyOptimizer of LBFGS": lambda bad: zero(at(bad, pullback.optim.LBFGS, pullback.optim.SGD)),
    "ZeroRedundancyOptimizer lr": lambda bad: zero(pullback.optim.SGD, lr=at(bad, -1.0, 1.0)),
    "consolidate_state_dict": lambda bad: OPTIMIZER.consolidate_state_dict(at(bad, SIZE, 0)),
    "Grid": lambda bad: dist.Grid((at(bad, SIZE + 1, SIZE),)),
    "Grid periodic": lambda bad: dist.Grid((SIZE,), at(bad, (True, True), (True,))),
    "Grid line": lambda bad: GRID.line(at(bad, 1, 0)),
    "new_group": lambda bad: dist.new_group([0, at(bad, SIZE, 1)]),
    "new_group backend": lambda bad: dist.new_group([0], backend=at(bad, "nccl", "mpi")),
    "new_group timeout": lambda bad: dist.new_group([0], timeout=at(bad, -1, 5)),
    "new_group of another shape": lambda bad: dist.new_group([at(bad, 0, 1)]),
    "Grid of another shape": lambda bad: dist.Grid(at(bad, (1, SIZE), (SIZE, 1))),
    "consolidate_state_dict of another shape": lambda bad: OPTIMIZER.consolidate_state_dict(at(bad, 1, 0)),
    "halo width of another shape": lambda bad: dist.halo(plain, 0, at(bad, 2, 1)),
    "halo periodic of another shape": lambda bad: dist.halo(plain, 0, periodic=bad == RANK),
    "halo axis of another shape": lambda bad: dist.halo(ones(4, 4), at(bad, 1, 0)),
    "fft axis of another shape": lambda bad: dist.fft(ones(4, 4), at(bad, 1, 0)),
    "fft norm of another shape": lambda bad: dist.fft(plain, 0, at(bad, "ortho")),
    "norm order of another shape": lambda bad: dist.norm(plain, at(bad, 1, 2)),
    "cg rtol of another shape": lambda bad: dist.cg(lambda x: x, plain, rtol=at(bad, 0.1)),
    "gmres restart of another shape": lambda bad: dist.gmres(lambda x: x, plain, restart=at(bad, 3, 4)),
    "DistributedDataParallel of another shape": lambda bad: dist.DistributedDataParallel(
        network(), find_unused_parameters=bad == RANK
    ),
    "ZeroRedundancyOptimizer of another shape": lambda bad: zero(pullback.optim.SGD, lr=at(bad, 0.1, 0.2)),
    "another shape": lambda bad: F.all_reduce(ones(at(bad, 3, 2))),
}


def network():
    return pullback.nn.Linear(2, 1)


def zero(cls, lr=0.1):
    return dist.ZeroRedundancyOptimizer([ones(2).requires_grad_()], cls, lr=lr)


GRID, OPTIMIZER = dist.Grid((SIZE,)), zero(pullback.optim.SGD)


def with_gradient(x):
    x = x.detach().requires_grad_()
    (x * x).sum().backward()
    return [x]


def error_of(call):
    try:
        call()
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        return error
    return None


for bad in {0, LAST}:
    for name, call in WRONG.items():
        if name == "gather_ with a list too many" and bad == LAST:
            continue
        error = error_of(lambda call=call, bad=bad: call(bad))
        assert error is not None, (RANK, bad, name)
        if bad != RANK and not name.endswith(("fit", "shape", "without a list")):
            assert isinstance(error, dist.DistBackendError), (RANK, bad, name, error)
            assert f"rank {bad}: refuses" in str(error) and "refusals.py:" in str(error), (name, error)
        found = F.all_gather(pullback.tensor([RANK, bad]))  # all are in step
        assert [x.tolist() for x in found] == [[r, bad] for r in range(SIZE)], (name, found)
assert t.tolist() == plain.tolist() == [1.0, 1.0]

# what two ranks tell each other, although as many bytes come as are expected
PAIRS = [
    (ones(4), ones(2, dtype=pullback.float64)),
    (ones(4), ones(2, 2)),
    (ones(3), ones(4)),
    (ones(5), ones(4)),
    (ones(100000), ones(4)),
    (ones(4, dtype=pullback.int32), ones(4)),
]


def differs(call):
    error = error_of(call)
    assert isinstance(error, dist.DistBackendError), (RANK, error)
    assert ("expects" if RANK == 0 else "has sent") in str(error), error
    assert f"rank {1 - RANK}" in str(error), error
    assert "refusals.py:" in str(error), error


for pair in PAIRS if RANK < 2 else []:
    into = pair[RANK].clone() * 7
    differs(lambda into=into: (dist.recv if RANK else dist.send)(into, 1 - RANK, tag=3))
    work = (dist.irecv if RANK else dist.isend)(into, 1 - RANK, tag=3)
    differs(work.wait)
    differs(work.wait)
    assert into.tolist() == (pair[RANK] * 7).tolist()
    good = pullback.full((3,), RANK + 1.0)  # the next message is the next one
    (dist.recv if RANK else dist.send)(good, 1 - RANK, tag=3)
    assert good.tolist() == [1.0] * 3
# what one of two ranks refuses is told to the other, whichever it is, and however large the message
to_other = functools.partial(dist.recv if RANK else dist.send, **{"src" if RANK else "dst": 1 - RANK}, tag=5)
NOT_SENT = {"no tensor": 3, "placed": placed, "requires grad": plain.clone().requires_grad_()}
for bad in (0, 1) if RANK < 2 else ():
    for name, given in NOT_SENT.items():
        for size in (3, 1_000_000):
            x = at(bad, given, ones(size))
            error = error_of(lambda x=x: to_other(x))
            assert error is not None, (RANK, bad, name)
            if bad != RANK:
                assert isinstance(error, dist.DistBackendError), error
                assert f"rank {bad} refuses {'irecv' if bad else 'isend'}() at" in str(error), error
                assert "refusals.py:" in str(error), error
            good = pullback.full((size,), RANK + 1.0)
            to_other(good)
            assert good[-1].item() == 1.0
for tag in (-1, 1 << 40, "a"):
    error = error_of(lambda tag=tag: dist.send(ones(2), (RANK + 1) % SIZE, tag=tag))
    assert isinstance(error, ValueError), error
dist.barrier()

# both ways at once, in either order, and with several tags
if RANK < 2:
    into = [pullback.zeros(1000) for _ in range(4)]
    gone = [dist.isend(pullback.full((1000,), 10.0 * RANK + k), 1 - RANK, tag=k) for k in range(4)] if RANK else []
    come = [dist.irecv(x, 1 - RANK, tag=k) for k, x in enumerate(into)]
    if RANK == 0:
        gone = [dist.isend(pullback.full((1000,), 10.0 * RANK + k), 1 - RANK, tag=k) for k in range(4)]
    for work in reversed([*gone, *come]):
        work.wait()
    assert [x[0].item() for x in into] == [10.0 * (1 - RANK) + k for k in range(4)]
dist.barrier()

# halves that do not belong together: the group is broken, and says so for ever
error = error_of(lambda: dist.halo(ones(1, 2, 3) if RANK else ones(1, 3, 2), 0, periodic=True))
assert isinstance(error, dist.DistBackendError) or 2 <= RANK < LAST, error
if error is not None:  # on three ranks and more, some have the right neighbours, or only wait in vain
    said = "other data" if RANK < 2 else "waits in"
    assert said in str(error), error
    for call in (lambda: dist.all_reduce(t), lambda: dist.send(t, 0 if RANK else 1), lambda: F.all_reduce(t)):
        again = error_of(call)
        assert isinstance(again, dist.DistBackendError), again
        assert "no longer in step" in str(again), again
print("passed", flush=True)

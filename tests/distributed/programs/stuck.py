"""Programs that would hang, or whose ranks fail or die: the second argument says how. Each has to end by itself."""

import os
import signal
import sys
import time

import numpy as np

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F

HOW = sys.argv[1]
if HOW.endswith("unseen"):  # as with a launcher that does not tell
    del os.environ["MPI_LOCALNRANKS"]
if "before" in HOW and os.environ["PMI_RANK"] == "1":
    if HOW.startswith("raises"):
        raise KeyError("on purpose")
    if HOW.startswith("ends"):
        sys.exit()
    os.kill(os.getpid(), signal.SIGKILL)
if HOW.endswith("computes"):
    time.sleep(100)
if HOW.startswith("never_begins") and os.environ["PMI_RANK"] == "1":
    if "with_mpi" in HOW:
        from mpi4py import MPI  # noqa: F401
    time.sleep(100)
dist.init_process_group(timeout=3)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
FIRST = RANK == 0
x = dist.varying(pullback.ones(3, requires_grad=True))
t = pullback.ones(3)


def ring(x):
    return F.sendrecv(x, (RANK + 1) % SIZE, (RANK - 1) % SIZE)


def raises():
    if FIRST:
        raise KeyError("on purpose")
    dist.all_reduce(t)


def raises_later():
    dist.all_reduce(t)
    if FIRST:
        pullback.ones(2) @ pullback.ones(3)
    dist.broadcast(t, 0)


def raises_in_backward():
    y = dist.varying(F.all_reduce(x))
    if FIRST:
        y.register_hook(lambda g: 1 / 0)
    F.all_reduce((ring(y) * y).sum()).backward()


def raises_in_a_function():
    class Bad(pullback.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if FIRST:
                raise ValueError("on purpose")
            return g

    F.all_reduce(Bad.apply(ring(x)).sum()).backward()


def ends():
    if FIRST:
        sys.exit(0)
    dist.all_reduce(t)


def ends_without_a_word():
    if FIRST:
        os._exit(3)
    dist.all_reduce(t)


def ends_well_without_a_word():
    if FIRST:
        os._exit(0)
    dist.all_reduce(t)


def killed():
    dist.all_reduce(t)
    if FIRST:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(t)


def crashed():
    dist.all_reduce(t)
    if FIRST:
        os.kill(os.getpid(), signal.SIGSEGV)
    dist.barrier()


def another_collective():
    F.all_reduce(x) if FIRST else F.broadcast(x, 0)


def another_shape():
    F.all_reduce(pullback.ones(2 if FIRST else 3))


def another_dtype():
    F.all_reduce(pullback.ones(3, dtype=pullback.float64 if FIRST else pullback.float32))


def another_op():
    F.all_reduce(x, dist.ReduceOp.AVG if FIRST else dist.ReduceOp.SUM)


def another_root():
    F.broadcast(x, 0 if FIRST else 1)


def another_shape_in_place():
    dist.all_reduce(pullback.ones(2 if FIRST else 3))


def another_dtype_in_place():
    dist.broadcast(pullback.ones(4) if FIRST else pullback.ones(2, dtype=pullback.float64), 0)


def another_op_in_place():
    dist.all_reduce(t, dist.ReduceOp.SUM if FIRST else dist.ReduceOp.MAX)


def another_root_in_place():
    dist.gather(t, [t.clone() for _ in range(SIZE)], RANK)


def more_than_expected():
    dist.send(pullback.ones(4), 1) if FIRST else dist.recv(t, 0)


def less_than_expected():
    dist.send(pullback.ones(2), 1) if FIRST else dist.recv(t, 0)


def another_dtype_than_expected():
    dist.send(pullback.ones(6), 1) if FIRST else dist.recv(pullback.ones(3, dtype=pullback.float64), 0)


def another_shape_than_expected():
    dist.send(pullback.ones(3, 2), 1) if FIRST else dist.recv(pullback.ones(2, 3), 0)


def does_not_fit():
    dist.all_to_all([pullback.zeros(2)] * SIZE, [pullback.ones(2), pullback.ones(2 + RANK)])


def other_objects():
    dist.broadcast_object_list([1] if FIRST else [1, 2])


def never_comes():
    if FIRST:
        while True:
            time.sleep(0.01)
    dist.all_reduce(t)


def computes_for_ever():
    if FIRST:
        while True:
            np.ones(100).sum()
    F.all_reduce(x)


def nobody_sends():
    if FIRST:
        dist.recv(t, 1)
    else:
        dist.recv(t, 0)


def sends_past():
    F.sendrecv(x, 1, 1) if FIRST else F.sendrecv(x, None, None)


def only_one_goes_back():
    y = F.all_reduce(ring(x * 2).sum())
    if FIRST:
        y.backward()
    else:
        dist.barrier()


def dropped():
    y = ring(x * 2)
    if FIRST:
        (y * y).sum().backward()
    else:
        del y
        (x * x).sum().backward()


def another_order():
    if FIRST:
        dist.all_reduce(t)
        dist.broadcast(t, 0)
    else:
        dist.broadcast(t, 0)
        dist.all_reduce(t)


def no_barrier():
    if not FIRST:
        dist.barrier()
        return
    dist.recv(t, 1)


def one_makes_a_group():
    if FIRST:
        dist.new_group([0])
    else:
        dist.all_reduce(pullback.ones(1000))


def across_groups():
    a, b = dist.new_group([0, 1]), dist.new_group([0, 1])
    dist.all_reduce(t, group=a if FIRST else b)


def not_the_same():
    dist.replicate(pullback.ones(2) * RANK)


def another_graph():
    y = F.all_reduce(dist.varying(dist.replicate(t).requires_grad_()).sum())
    if FIRST:
        dist.varying(y)
    y.backward()


def a_list_that_one_refuses():
    dist.gather(t, [t.clone() for _ in range(SIZE + 1)] if FIRST else None, 0)


def not_the_same_gradient():
    dist.check()
    w = dist.replicate(t).requires_grad_()
    y = F.all_reduce((dist.varying(w) ** 2).sum())
    (y * (RANK + 1)).backward()  # a number that is taken to be the same


def sent_to_no_one():
    dist.send(pullback.ones(1000000), 1 - RANK if RANK < 2 else 0)


globals()[HOW]()
print("passed", flush=True)

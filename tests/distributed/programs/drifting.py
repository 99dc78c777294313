"""Leaves behind a loss of all ranks that nobody has placed: refused where they may be copies of one parameter."""

import numpy as np
import pytest

import pullback
import pullback.distributed as dist
from pullback import nn
from pullback.distributed import moves
from pullback.distributed.nn.functional import all_gather, all_reduce, broadcast, sendrecv

dist.init_process_group(timeout=20)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
x = pullback.arange(3.0).double() + RANK  # this rank's data
COPIES = "each would get the gradient by its own copy"


def leaf(*values):
    return pullback.tensor(values or (1.0, 2.0, 3.0), dtype=pullback.float64, requires_grad=True)


def refused(loss, *words):
    """On every rank, again and again, and without a trace."""
    for _ in range(2):
        with pytest.raises(RuntimeError, match=COPIES) as error:
            loss().backward()
        for word in (*words, "drifting.py:", "distributed.varying(x)"):
            assert word in str(error.value), (word, error.value)


def right(loss, t, expected):
    t.grad = None
    loss().backward()
    np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-12)


LOSSES = {
    "a sum": lambda w: all_reduce(((w * x) ** 2).sum()),
    "a mean": lambda w: all_reduce(((w * x) ** 2).sum(), dist.ReduceOp.AVG) * SIZE,
    "an inner product": lambda w: dist.dot(w * x, w * x),
    "a norm": lambda w: dist.norm(w * x) ** 2,
    "all gathered": lambda w: sum((p**2).sum() for p in all_gather(w * x)),
    "beyond another communication": lambda w: all_reduce((sendrecv(w * x, RANK, RANK) ** 2).sum()),
    "partial": lambda w: all_reduce(dist.partial((w * x) ** 2) * 2).sum() / 2,
    "beyond two": lambda w: all_reduce((dist.varying(all_reduce(((w * x) ** 2).sum())) / SIZE).sum()),
}
for loss in LOSSES.values():
    w = leaf()
    slope = 2 * w.detach().numpy() * x.numpy() ** 2
    if SIZE > 1:
        refused(lambda loss=loss, w=w: loss(w), "float64[3]", "distributed.replicate(x)")
        assert w.grad is None
    (g,) = pullback.autograd.grad(loss(w), w)  # by which tensor, is said
    np.testing.assert_allclose(g.numpy(), slope, rtol=1e-12)
    np.testing.assert_allclose(pullback.func.grad(loss)(w.detach()).numpy(), slope, rtol=1e-12)
    assert dist.varying(w) is w
    right(lambda loss=loss, w=w: loss(w), w, slope)
    early = dist.varying(leaf().detach()).requires_grad_()
    right(lambda loss=loss, w=early: loss(w), early, slope)
    replicated = dist.replicate(leaf())
    total = 2 * w.detach().numpy() * np.sum([(np.arange(3.0) + r) ** 2 for r in range(SIZE)], axis=0)
    right(lambda loss=loss, w=replicated: loss(dist.varying(w)), replicated, total)

# other values on each rank: its own, and so for ever
own = leaf(1.0 + RANK, 2.0, 3.0)
right(lambda: LOSSES["a sum"](own), own, 2 * own.detach().numpy() * x.numpy() ** 2)
with pullback.no_grad():
    own.copy_(pullback.ones(3))
right(lambda: LOSSES["a sum"](own), own, 2 * x.numpy() ** 2)

# beside others, on one rank alone, empty, for printing alone
if SIZE > 1:
    same = leaf()
    refused(lambda: all_reduce(((same * own * x) ** 2).sum()), "float64[3]")
    replicated.grad = None
    refused(lambda: all_reduce((same * x).sum()) + (replicated**2).sum(), "float64[3]")
    assert same.grad is replicated.grad is None
only = leaf() if RANK == 0 else x
all_reduce((only * x).sum()).backward()
empty = pullback.zeros(0, requires_grad=True)
all_reduce(empty.sum()).backward()
first = leaf()  # of the first rank alone: no copy of it counts
(broadcast(first, 0) * 2).sum().backward()
assert first.grad.tolist() == [2.0 * (RANK == 0)] * 3
local = leaf()
((local * x) ** 2).sum().backward()  # each rank's own loss, and sums by hand
dist.all_reduce(local.grad)
np.testing.assert_allclose(local.grad.numpy(), total, rtol=1e-12)
all_reduce((local * x).sum())  # to be printed

# a network: its parameters are said to be each rank's own, or are one network by DistributedDataParallel
pullback.manual_seed(0 if SIZE % 2 else RANK)
net = nn.Linear(3, 1).double()
if SIZE > 1:
    refused(lambda: all_reduce(net(x).sum()), "a Parameter", "DistributedDataParallel")
    assert all(p.grad is None for p in net.parameters())
for p in net.parameters():
    dist.varying(p)
right(lambda: all_reduce(net(x).sum()), net.weight, x[None].numpy())
wrapped = dist.DistributedDataParallel(nn.Linear(3, 1).double())
loss = wrapped(x).sum()
shown = all_reduce(loss)
loss.backward()


# a loop with a sum in each turn: a graph that grows is looked at once, and what is refused stays so
def turns(w, number):
    state, total = w * x, 0.0
    for _ in range(number):
        state = (sendrecv(state, RANK, RANK) * 0.5).sin() + 0.1
        total = total + all_reduce((state**2).sum())
    return total


def looked_at(number):
    """How many nodes are looked at for a loss of some turns."""
    found, before = [], moves._not_said
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves, "_OFTEN", 1)
        patch.setattr(moves, "_not_said", lambda tensors: found.append(before(tensors)) or found[-1])
        turns(dist.varying(leaf()), number)
    return sum(len(passed) for _, passed in found)


if SIZE > 1:
    assert looked_at(40) - looked_at(20) <= 20 * 12
    w = leaf()
    refused(lambda: turns(w, 30), "float64[3]")
    v = dist.varying(leaf())
    with pytest.raises(RuntimeError, match=COPIES):
        (turns(v, 30) + turns(w, 3)).backward()
    turns(v, 30).backward()

print("passed", flush=True)

"""Programs that give each rank another step, or gradients too small: refused on every rank, or right."""

import numpy as np
import pytest

import pullback
import pullback.distributed as dist
from pullback import nn, optim
from pullback.distributed.nn.functional import all_reduce

dist.init_process_group(timeout=60)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
RNG = np.random.default_rng(7)
X, Y = (pullback.tensor(RNG.standard_normal((6 * SIZE, n))) for n in (3, 1))
MINE = slice(6 * RANK, 6 * RANK + 6)


def network():
    pullback.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()


def local(model):
    return ((model(X[MINE]) - Y[MINE]) ** 2).mean()


def mean_of_all(model):
    return all_reduce(local(model).detach(), op=dist.ReduceOp.AVG)


# a loss of all ranks, through a network whose gradients are means already
model = dist.DistributedDataParallel(network())
for loss in (lambda: all_reduce(local(model), op=dist.ReduceOp.AVG), lambda: all_reduce(local(model))):
    with pytest.raises(RuntimeError, match="a loss of all ranks, through DistributedDataParallel"):
        loss().backward()
    assert all(p.grad is None for p in model.parameters())
with model.no_sync(), pytest.raises(RuntimeError, match="a loss of all ranks, through DistributedDataParallel"):
    all_reduce(local(model)).backward()
with pytest.raises(RuntimeError, match="a loss of all ranks, through DistributedDataParallel"):
    pullback.autograd.grad(all_reduce(local(model)), [*model.parameters()])
local(model).backward()  # the next pass is right
whole = network()
((whole(X) - Y) ** 2).mean().backward()
for p, q in zip(model.parameters(), whole.parameters(), strict=True):
    np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-10)
other = dist.replicate(pullback.ones(2)).requires_grad_()
local(model)  # it waits for a pass; one that does not reach it may begin at a loss of all ranks
(other * other).sum().backward()
assert other.grad.tolist() == [2.0, 2.0]
local(model).backward()


# LBFGS
def stepped(params, evaluate):
    optimizer = optim.LBFGS(params, max_iter=5, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        return evaluate()

    optimizer.step(closure)


def own_loss():
    loss = local(model)
    loss.backward()
    return loss


def loss_of_all():
    own_loss()
    return mean_of_all(model).numpy().item()


if SIZE > 1:
    with pytest.raises(RuntimeError, match="losses that differ among the ranks"):
        stepped(model.parameters(), own_loss)
stepped(model.parameters(), loss_of_all)
for p in model.parameters():
    held = [None] * SIZE
    dist.all_gather_object(held, p.detach().numpy().tobytes())
    assert len({*held}) == 1, "the ranks hold different parameters"

part = pullback.full((3,), float(RANK + 1), dtype=pullback.float64, requires_grad=True)
shared = dist.replicate(pullback.ones(3).double()).requires_grad_()


def of_parts():
    loss = all_reduce((part**2).sum())
    loss.backward()
    return loss


def of_both():
    loss = all_reduce((part**2 * dist.varying(shared)).sum())
    loss.backward()
    return loss


def own_of_shared():
    loss = (dist.varying(shared) ** 2).sum() * (RANK + 1)
    loss.backward()
    return loss


if SIZE > 1:
    for params, evaluate, words in (
        ([part], of_parts, "a loss of all ranks, and parameters of each rank's own"),
        ([part, shared], of_both, "parameters of each rank's own beside replicated ones"),
        ([shared], own_of_shared, "replicated parameters, and a loss of each rank's own"),
    ):
        with pytest.raises(RuntimeError, match=words):
            stepped(params, evaluate)


# a schedule that looks at the loss
def lowered(params, metric):
    optimizer = optim.SGD(params, lr=1.0)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for _ in range(3):
        schedule.step(metric)
    return optimizer.param_groups[0]["lr"]


OWN = local(model).detach()
for params in ([*model.parameters()], [shared]):
    if SIZE > 1:
        for metric in (OWN, float("nan") if RANK else 1.0):
            with pytest.raises(
                RuntimeError, match=r"ReduceLROnPlateau.step\(\) at .*misuse.py:\d+: the ranks hold"
            ) as error:
                lowered(params, metric)
            assert "all_reduce(x, AVG)" in str(error.value)
    assert lowered(params, mean_of_all(model)) == pytest.approx(0.01)
assert lowered([part], OWN) == pytest.approx(0.01)
zero = dist.ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=1.0)
if SIZE > 1:
    with pytest.raises(RuntimeError, match="the ranks hold different values"):
        optim.lr_scheduler.ReduceLROnPlateau(zero).step(OWN)

mine = pullback.tensor([float(RANK)], requires_grad=True)  # each rank may have a problem of its own


def own_problem():
    loss = ((mine - 3) ** 2).sum()
    loss.backward()
    return loss


stepped([mine], own_problem)
np.testing.assert_allclose(mine.detach().numpy(), [3.0], rtol=1e-6)
print("passed", flush=True)

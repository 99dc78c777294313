"""`DistributedDataParallel` against the whole batch on one process; a heat equation on a split grid too."""

import pathlib
import sys
from types import SimpleNamespace

import numpy as np
from pullback.nn.parallel import DistributedDataParallel
from pullback.utils.data.distributed import DistributedSampler

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F
from pullback import nn
from pullback.utils.data import DataLoader, TensorDataset

dist.init_process_group(timeout=60)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
ROWS = 12 * SIZE


def net(seed):
    pullback.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.BatchNorm1d(16, momentum=0.0), nn.Linear(16, 3))


def data(*shape, seed):
    return pullback.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=pullback.float32)


def gradients(module):
    return [p.grad.numpy() for p in module.parameters()]


def close(a, b, most=1e-6):
    error = max(np.abs(x - y).max() / max(1.0, np.abs(y).max()) for x, y in zip(a, b, strict=True))
    assert error <= most, (RANK, error)


X, Y = data(ROWS, 5, seed=1), data(ROWS, 3, seed=2)
MINE = slice(RANK * 12, (RANK + 1) * 12)


def loss(model, x, y):
    return ((model(x) - y) ** 2).mean()


def one_gradient():
    whole = net(0).eval()
    loss(whole, X, Y).backward()
    for mb in (25, 1e-4):
        model = DistributedDataParallel(net(RANK).eval(), bucket_cap_mb=mb)
        loss(model, X[MINE], Y[MINE]).backward()
        close(gradients(model), gradients(whole))
        loss(model, X[MINE], Y[MINE]).backward()
        close(gradients(model), [2 * g for g in gradients(whole)])
        model.zero_grad()
        with model.no_sync():
            loss(model, X[MINE], Y[MINE]).backward()
        loss(model, X[MINE], Y[MINE]).backward()
        close(gradients(model), [2 * g for g in gradients(whole)])


def progress():
    """MPI goes on with sums that have begun only while it is called: it is, as further gradients come."""
    model, asked = DistributedDataParallel(net(0).eval(), bucket_cap_mb=1e-4), []

    class Comm:
        def __init__(self, comm):
            self.comm = comm

        def __getattr__(self, name):
            return getattr(self.comm, name)

        def Iallreduce(self, *args):
            request, number = self.comm.Iallreduce(*args), len([what for what, _ in asked if what == "starts"])
            asked.append(("starts", number))
            return SimpleNamespace(Test=lambda: asked.append(("looked", number)) or request.Test())

    if SIZE > 1:
        before, model.group.comm = model.group.comm, Comm(model.group.comm)
        loss(model, X[MINE], Y[MINE]).backward()
        model.group.comm = before
        last = max(number for what, number in asked if what == "starts")
        assert last > 1 and asked.index(("looked", 0)) < asked.index(("starts", last)), asked


def steps():
    """100 steps of training: equal losses."""
    whole, model = net(0).eval(), DistributedDataParallel(net(RANK).eval())
    optimizers = [pullback.optim.Adam(m.parameters(), lr=0.01) for m in (whole, model)]
    for _ in range(100):
        for optimizer in optimizers:
            optimizer.zero_grad()
        expected = loss(whole, X, Y)
        expected.backward()
        found = loss(model, X[MINE], Y[MINE])
        found.backward()
        mean = F.all_reduce(found.detach(), dist.ReduceOp.AVG)
        assert abs(mean.item() - expected.item()) <= 1e-5 * max(1, expected.item()), (mean, expected)
        for optimizer in optimizers:
            optimizer.step()
    assert expected.item() < 0.7


def unused():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return self.a(x) if RANK == 0 else self.b(x)

    module = Two()
    model = DistributedDataParallel(module, find_unused_parameters=True)
    model(pullback.ones(1, 2)).sum().backward()
    assert np.allclose(module.a.weight.grad.numpy(), 1 / SIZE)
    assert SIZE == 1 or np.allclose(module.b.weight.grad.numpy(), (SIZE - 1) / SIZE)
    assert module.c.weight.grad is None and (SIZE > 1 or module.b.weight.grad is None)
    module.c.requires_grad_(False)
    strict = DistributedDataParallel(module)
    if SIZE == 1:
        try:
            strict(pullback.ones(1, 2)).sum().backward()
        except RuntimeError as error:
            assert "b.weight" in str(error) and "find_unused_parameters" in str(error)
        else:
            raise AssertionError("not refused")


def sampler():
    dataset = TensorDataset(pullback.arange(10 * SIZE + 1))
    for drop in (False, True):
        own = DistributedSampler(dataset, drop_last=drop)
        own.set_epoch(3)
        loader = DataLoader(dataset, batch_size=4, sampler=own)
        seen = [int(i) for (batch,) in loader for i in batch]
        everyone = [None] * SIZE
        dist.all_gather_object(everyone, seen)
        assert len({len(part) for part in everyone}) == 1
        found = {i for part in everyone for i in part}
        assert len(found) == (10 * SIZE if drop and SIZE > 1 else 10 * SIZE + 1)


class Odd(nn.Module):
    """Parameters of every kind: complex, without an axis, empty, of 16 bits, frozen; others on each rank."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(RANK)
        self.z = nn.Parameter(pullback.tensor(rng.standard_normal()).double())
        self.c = nn.Parameter(pullback.tensor(rng.standard_normal(3) + 1j * rng.standard_normal(3)))
        self.e = nn.Parameter(pullback.zeros(0).double())
        self.t = nn.Parameter(pullback.tensor(rng.standard_normal((4, 3))).T)
        self.b = nn.Parameter(pullback.tensor(rng.standard_normal((3, 2))).bfloat16())
        self.h = nn.Parameter(pullback.tensor(rng.standard_normal(3)).half())
        self.f = nn.Parameter(pullback.ones(2).double(), requires_grad=False)
        self.y = nn.Parameter(pullback.tensor(rng.standard_normal()).double())

    def forward(self, x):
        found = ((x * self.c).abs() ** 2 * self.z * self.y).sum(1) + self.e.sum() + (x @ self.t).sin().sum(1)
        return found + (x.bfloat16() @ self.b).double().sum(1) + (x * self.h.double()).sum(1) * self.f.sum()


def odd_parameters():
    rows = pullback.tensor(np.random.default_rng(5).standard_normal((4 * SIZE, 3)))
    for cap in (25, 1e-5):
        model = DistributedDataParallel(Odd(), bucket_cap_mb=cap)
        whole = Odd()
        whole.load_state_dict(model.module.state_dict())
        model(rows[4 * RANK : 4 * RANK + 4]).mean().backward()
        whole(rows).mean().backward()
        for (name, p), q in zip(model.module.named_parameters(), whole.parameters(), strict=True):
            assert (p.grad is None) == (name == "f"), name
            if p.grad is not None:
                mine, theirs = (g.to(pullback.complex128).numpy() for g in (p.grad, q.grad))
                np.testing.assert_allclose(
                    mine, theirs, rtol=2e-2 if name in "bh" else 1e-12, atol=1e-2 * (name in "bh")
                )


def clipping():
    p = pullback.zeros(3, requires_grad=True)
    for order in (2.0, 1.0, float("inf")):
        p.grad = pullback.full((3,), RANK + 1.0)
        whole = np.repeat(np.arange(SIZE) + 1.0, 3)
        norm = dist.clip_grad_norm_([p], 0.5, order)
        assert abs(norm.item() - np.linalg.norm(whole, order)) < 1e-12
        assert np.allclose(p.grad.numpy(), (RANK + 1) * 0.5 / norm.item(), rtol=1e-5)
    for order in (2.0, 1.0, 3.0, float("inf")):
        clipping_of_what_is_shared(order)


def clipping_of_what_is_shared(order):
    """Gradients that are the same on every rank count once, beside others: those of one vector, on one process."""
    own = (pullback.arange(3.0) + 3 * RANK).double().requires_grad_()
    shared = dist.replicate(pullback.arange(2.0).double() - 4).requires_grad_()
    model = DistributedDataParallel(net(0).eval())
    loss(model, X[MINE], Y[MINE]).backward()
    F.all_reduce((own**2).sum() + (dist.varying(shared) * own.detach().sum()).sum()).backward()
    params = [own, shared, *model.parameters()]
    before = [np.array(p.grad.numpy()) for p in params]
    whole = [2 * np.arange(3.0 * SIZE), before[1], *before[2:]]
    assert np.allclose(before[1], np.arange(3 * SIZE).sum(), rtol=1e-12)
    expected = np.linalg.norm(np.concatenate([g.ravel() for g in whole]), order)
    norm = dist.clip_grad_norm_(params, 0.5, order)
    assert np.isclose(norm.item(), expected, rtol=1e-12), (norm, expected)
    for p, g in zip(params, before, strict=True):
        assert np.allclose(p.grad.numpy(), g * 0.5 / (expected + 1e-6), rtol=1e-6)
    assert dist.placement(shared.grad) == "replicated"
    group = dist.new_group([0])
    if SIZE > 1 and RANK == 0:
        try:
            dist.clip_grad_norm_(params, 0.5, group=group)
        except RuntimeError as error:
            assert "whose gradient is the same on" in str(error)
        else:
            raise AssertionError("not refused")


def zero_redundancy():
    """Equal to the optimiser itself, with a part of its state; saved as one, and in parts."""
    folder = pathlib.Path(sys.argv[2])
    both = []
    for split in (False, True):
        model = DistributedDataParallel(net(0).eval())
        params = [{"params": [p], "lr": 0.01 * (i + 1)} for i, p in enumerate(model.parameters())]
        kind = (dist.ZeroRedundancyOptimizer, pullback.optim.Adam) if split else (pullback.optim.Adam,)
        optimizer = kind[0](params, *kind[1:], lr=0.1)
        schedule = pullback.optim.lr_scheduler.StepLR(optimizer, 3)
        for i in range(8):
            optimizer.zero_grad()
            loss(model, X[MINE], Y[MINE]).backward()
            optimizer.step()
            schedule.step()
            if split and i == 4:
                saved(optimizer, folder)
        both.append((model, optimizer))
    (whole, one), (model, split) = both
    for p, q in zip(model.parameters(), whole.parameters(), strict=True):
        assert np.array_equal(p.detach().numpy(), q.detach().numpy())
    assert len(one.state) == 6
    held = [None] * SIZE
    dist.all_gather_object(held, len(split.state))
    assert sum(held) == 6 and max(held) <= (6, 4, 4, 3)[SIZE - 1], held
    try:
        split.state_dict()
    except RuntimeError as error:
        assert "consolidate_state_dict" in str(error)
    else:
        raise AssertionError("not refused")
    split.consolidate_state_dict(to=SIZE - 1)
    if RANK == SIZE - 1:
        mine, theirs = split.state_dict(), one.state_dict()
        assert mine["state"].keys() == theirs["state"].keys()
        for i, state in theirs["state"].items():
            assert all(np.array_equal(state[k].numpy(), mine["state"][i][k].numpy()) for k in state)


def saved(optimizer, folder):
    """What is saved and loaded changes nothing: from the first rank, and by each."""
    dist.save(optimizer.optim.state_dict(), folder / "parts", sharded=True)
    optimizer.load_state_dict(dist.load(folder / "parts", sharded=True))
    optimizer.consolidate_state_dict()
    dist.save(optimizer.state_dict() if RANK == 0 else None, folder / "whole.pt")
    optimizer.load_state_dict(dist.load(folder / "whole.pt"))
    assert len(list((folder / "parts").iterdir())) == SIZE
    for call, said in (
        (lambda: dist.save(1, folder / "none" / "x.pt"), "none"),
        (lambda: dist.load(folder / "none.pt"), "none.pt"),
        (lambda: dist.load(folder / "others", sharded=True), f"the files of {SIZE} ranks"),
    ):
        if RANK == 0:
            (folder / "others").mkdir(exist_ok=True)
            (folder / "others" / "rank-00000-of-00099.pt").touch()
        dist.barrier()
        try:
            call()
        except (RuntimeError, OSError, ValueError) as error:
            assert said in str(error), error
        else:
            raise AssertionError("not refused")


def heat():
    """The gradient by the initial state and the conductivity, and a Hessian-vector product, against one process."""
    n, times = 16 * SIZE, 20
    cells = np.arange(n) * 2 * np.pi / n
    start, target = np.sin(cells) + 0.3 * np.cos(3 * cells), 0.7 * np.roll(np.sin(cells), 3)
    conductivity, direction = 0.2 + 0.1 * np.sin(2 * cells), np.cos(5 * cells)
    part = slice(RANK * 16, RANK * 16 + 16)

    def run(u, k, target, borders, total):
        for _ in range(times):
            e = borders(u)
            u = u + k * (e[2:] - 2 * e[1:-1] + e[:-2])
        return total(((u - target) ** 2).sum())

    def derivatives(borders, total, part):
        u, k = (pullback.tensor(a[part], requires_grad=True) for a in (start, conductivity))
        value = run(u, k, pullback.tensor(target[part]), borders, total)
        gu, gk = pullback.autograd.grad(value, (u, k), create_graph=True)
        product = total((gk * pullback.tensor(direction[part])).sum())
        return value, gu, gk, *pullback.autograd.grad(product, (u, k))

    for periodic in (True, False):

        def on_one(u, periodic=periodic):
            edge = (u[-1:], u[:1]) if periodic else (0 * u[:1], 0 * u[:1])
            return pullback.cat([edge[0], u, edge[1]])

        whole = derivatives(on_one, lambda s: s, slice(None))
        split = derivatives(lambda u, p=periodic: dist.halo(u, 0, periodic=p), F.all_reduce, part)
        assert abs(whole[0].item() - split[0].item()) <= 1e-12
        for a, b in zip(split[1:], whole[1:], strict=True):
            assert np.abs(a.detach().numpy() - b.detach().numpy()[part]).max() <= 1e-12


globals()[sys.argv[1]]()
print("passed", flush=True)

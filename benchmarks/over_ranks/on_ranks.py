"""What is measured on several ranks: `mpiexec -n 2 python -m benchmarks.over_ranks.on_ranks PART TURNS`.

Values are compared before anything is timed, and the sides take turns. Rank 0 writes one line of JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pullback.nn.parallel import DistributedDataParallel

import pullback
import pullback.distributed as dist
from benchmarks.over_ranks.watched import Log, at_once, never, starting, watching
from pullback import nn
from pullback.distributed.nn.functional import all_reduce
from pullback.distributed.process_group import Group, the_world

LAYERS, WIDTH, ROWS = 8, 353, 256  # of the network: 999,696 parameters; the rows of a rank's part of a batch
BUCKET_MB = 0.477  # room for the gradients of one layer, and not for more
BLOCK = 128  # cells of a rank's part of the grid, along each axis
SIZES = (1, 64, 1024, 16_384, 131_072, 1_048_576)  # numbers in a message, float32

Sides = dict[str, Callable[[], Any]]


def in_turns(group: Group, sides: Sides, turns: int, calls: int) -> dict[str, list[float]]:
    """Microseconds a call, of each side in each turn; a turn of a side is some calls, after a barrier."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(-1, turns):  # the first is not counted
        for name, side in sides.items():
            dist.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                side()
            if turn >= 0:
                found[name].append((time.perf_counter() - start) / calls * 1e6)
    return found


def same(found: Any, expected: Any, most: float = 1e-6) -> None:
    """Refuse to time what differs, on any rank."""
    error = np.abs(np.asarray(found) - np.asarray(expected)).max()
    assert error <= most, f"rank {dist.get_rank()}: {found} instead of {expected}"


def latency(group: Group, turns: int) -> dict[str, Any]:
    """A sum of ten numbers, forward and backward, beside two sums by mpi4py alone."""
    rank, size, comm = group.rank, group.size, group.comm
    x = (pullback.arange(10.0) + rank).requires_grad_()
    w = dist.replicate(pullback.ones(10)).requires_grad_()
    one = dist.replicate(pullback.ones(10))
    given, taken, back = x.detach().numpy().copy(), np.empty(10, np.float32), np.empty(10, np.float32)

    def ours() -> Any:
        y = all_reduce(x)
        return y, pullback.autograd.grad(y, x, one)[0]

    def both_ways() -> Any:
        y = all_reduce(dist.varying(w) * x)
        return y, pullback.autograd.grad(y, w, one)[0]

    def bare() -> Any:
        comm.Allreduce(given, taken)
        comm.Allreduce(given, back)
        return taken, back

    total = size * np.arange(10) + size * (size - 1) / 2
    for value in (bare()[0], bare()[1], ours()[0].detach().numpy(), both_ways()[0].detach().numpy()):
        same(value, total)
    same(ours()[1].numpy(), 1)
    same(both_ways()[1].numpy(), total)
    return in_turns(group, {"bare": bare, "all_reduce": ours, "varying, all_reduce": both_ways}, turns, 50)


def network() -> nn.Module:
    """The network of the step; the same on every rank."""
    pullback.manual_seed(0)
    return nn.Sequential(*(layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.Tanh())))


def step(group: Group, turns: int) -> dict[str, Any]:
    """A step of `DistributedDataParallel`, with its sums while backward goes on, each waited for at once, and without.

    Where nothing is sent, gradients are not those of the batch; the others are compared with one process.
    """
    model = DistributedDataParallel(network(), bucket_cap_mb=BUCKET_MB)
    whole = pullback.tensor(
        np.random.default_rng(0).standard_normal((ROWS * group.size, WIDTH)), dtype=pullback.float32
    )
    rows = whole[group.rank * ROWS : (group.rank + 1) * ROWS]

    def run(net: nn.Module, data: pullback.Tensor) -> None:
        net.zero_grad()
        (net(data) ** 2).mean().backward()

    def without() -> None:
        with model.no_sync():
            run(model, rows)

    def started(start: Any) -> None:
        with starting(group, start):
            run(model, rows)

    alone = network()
    run(alone, whole)
    for side in (lambda: run(model, rows), lambda: started(at_once)):
        side()
        for p, q in zip(model.parameters(), alone.parameters(), strict=True):
            same(p.grad.numpy(), q.grad.numpy(), 1e-6 * float(np.abs(q.grad.numpy()).max()) + 1e-12)
    sides = {
        "without communication": without,
        "buckets filled, nothing sent": lambda: started(never),
        "sums while backward goes on": lambda: run(model, rows),
        "each sum at once": lambda: started(at_once),
        "a process alone, whole batch": lambda: run(alone, whole),
    }
    found: dict[str, Any] = in_turns(group, sides, turns, 1)
    return found | {"parameters": sum(p.numel() for p in model.parameters()), "trace": trace(group, model, rows)}


def trace(group: Group, model: Any, rows: pullback.Tensor) -> list[tuple[str, float]]:
    """What happened in a step, in order, with milliseconds since the beginning of backward. Sums that have finished are
    looked for when a gradient has come."""
    log: Log = []
    weights = {id(p): name for name, p in model.module.named_parameters() if name.endswith("weight")}
    with watching(group, log) as (data, _):

        def came(p: pullback.Tensor) -> None:
            log.append((f"gradient of {weights[id(p)]}", time.perf_counter()))
            data.look()

        handles = [p.register_post_accumulate_grad_hook(came) for p in model.parameters() if id(p) in weights]
        loss = (model(rows) ** 2).mean()
        dist.barrier()
        log.append(("backward begins", time.perf_counter()))
        loss.backward()
        log.append(("backward ended", time.perf_counter()))
    for handle in handles:
        handle.remove()
    return [(text, (at - log[0][1]) * 1e3) for text, at in log]


def links(group: Group, turns: int) -> dict[str, Any]:
    """Times of a sum and of an exchange by mpi4py alone, for messages of several sizes; microseconds."""
    comm, mpi = group.comm, group.world.mpi
    comm = mpi.COMM_SELF if comm is None else comm
    other = (comm.rank + 1) % comm.size
    found: dict[str, Any] = {"sum": {}, "exchange": {}}
    for size in SIZES:
        a, b = np.full(size, comm.rank + 1, np.float32), np.empty(size, np.float32)
        sides: Sides = {
            "sum": lambda a=a, b=b: comm.Allreduce(a, b),
            "exchange": lambda a=a, b=b: comm.Sendrecv(a, other, 0, b, other, 0),
        }
        for name, value in (("sum", comm.size * (comm.size + 1) / 2), ("exchange", other + 1)):
            sides[name]()
            same(b, value)
        for name, times in in_turns(group, sides, turns, max(1, 2000 // (20 + size // 64))).items():
            found[name][str(a.nbytes)] = statistics.median(times)
    return found


def counts(group: Group, turns: int) -> dict[str, Any]:
    """What a rank gives to MPI in a step of the network, and in a time step on a grid, forward and backward."""
    model = DistributedDataParallel(network(), bucket_cap_mb=BUCKET_MB)
    rows = pullback.ones(2, WIDTH)
    found = {}

    def of_network() -> None:
        (model(rows) ** 2).mean().backward()

    size = group.size
    grid = dist.Grid((size // 2, 2) if size % 2 == 0 else (size, 1))
    u = pullback.ones(BLOCK, BLOCK, dtype=pullback.float64, requires_grad=True)

    def of_grid() -> None:
        a, b = dist.halo(u, 0, grid=grid), dist.halo(u, 1, grid=grid)
        (u + 0.1 * (a[2:] + a[:-2] + b[:, 2:] + b[:, :-2] - 4 * u)).sum().backward()

    for name, work in (("network", of_network), ("grid", of_grid)):
        work()
        if group.comm is None:
            mine = [0, 0, 0]
        else:
            with watching(group) as (data, control):
                work()
            mine = [data.messages, data.bytes, control.messages]
        every: list[Any] = [None] * size
        dist.all_gather_object(every, mine)
        found[name] = dict(zip(("messages", "bytes", "agreements"), map(max, zip(*every, strict=True)), strict=True))
    return found


PARTS = {"latency": latency, "step": step, "links": links, "counts": counts}

if __name__ == "__main__":
    dist.init_process_group(timeout=120)
    part, said = sys.argv[1], sys.argv[2]
    result = PARTS[part](the_world().groups[0], int(said))
    if dist.get_rank() == 0:
        print(json.dumps(result), flush=True)
    dist.destroy_process_group()

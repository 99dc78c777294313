"""Replicated parameters, fitted by data in parts: every optimiser does on each rank what it does with the whole."""

import numpy as np

import pullback
import pullback.distributed as dist
from pullback import optim
from pullback.distributed.nn.functional import all_reduce

dist.init_process_group(timeout=60)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
RNG = np.random.default_rng(5)
X, Y = (pullback.tensor(RNG.standard_normal((4 * SIZE, n))) for n in (3, 2))
MINE = slice(4 * RANK, 4 * RANK + 4)


def residual(x, y, w, b):
    return ((x @ w + b - y) ** 2).exp().sqrt().sum()


def fitted(make, place, loss):
    start = np.random.default_rng(6)
    params = [place(pullback.tensor(start.standard_normal(shape))).requires_grad_() for shape in ((3, 2), (1, 2))]
    optimizer = make(params)

    def closure():
        optimizer.zero_grad()
        found = loss(*params)
        found.backward()
        return found

    for _ in range(4):
        optimizer.step(closure)
    return params


def in_parts(w, b):
    return all_reduce(residual(X[MINE], Y[MINE], dist.varying(w), dist.varying(b)))


def adam(params):
    return optim.Adam(params, lr=0.1)


def adam_in_parts(params):
    return dist.ZeroRedundancyOptimizer(params, optim.Adam, lr=0.1)


def lbfgs(params):
    return optim.LBFGS(params, lr=0.1, max_iter=6)


def strong_wolfe(params):
    return optim.LBFGS(params, max_iter=6, line_search_fn="strong_wolfe")


SAME = [(make, make) for make in (adam, lbfgs, strong_wolfe, optim.Adafactor, optim.Muon, optim.AdamW)]
for make, alone in [(adam_in_parts, adam), *SAME]:
    expected = fitted(alone, lambda t: t, lambda w, b: residual(X, Y, w, b))
    for mine, theirs in zip(fitted(make, dist.replicate, in_parts), expected, strict=True):
        assert dist.placement(mine) == "replicated"
        own = mine.detach().numpy()
        np.testing.assert_allclose(own, theirs.detach().numpy(), rtol=1e-9, atol=1e-9, err_msg=make.__name__)
        dist.replicate(pullback.tensor(own))  # the same bytes on every rank
print("passed", flush=True)

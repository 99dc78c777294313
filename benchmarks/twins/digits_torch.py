"""The digit classifier in PyTorch, alone or on the processes that mpiexec starts, which meet by Gloo."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from sklearn import datasets, model_selection
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

EPOCHS, BATCH, NOISE, WIDTHS = 5, 64, 0.6, (64, 256, 128, 10)
RANK, SIZE = (int(os.environ.get(f"PMI_{what}", default)) for what, default in (("RANK", 0), ("SIZE", 1)))
if SIZE > 1:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29531"}
    dist.init_process_group("gloo", rank=RANK, world_size=SIZE)


class Swish(torch.autograd.Function):
    """x * sigmoid(x), as a node of one's own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad_output * (s + x * s * (1 - s))


class Network(torch.nn.Module):
    """``swish(x @ w + b)`` twice, then ``x @ w + b``."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        rng, self.parts = np.random.default_rng(seed), torch.nn.ParameterDict()
        for i, (inputs, outputs) in enumerate(itertools.pairwise(WIDTHS), start=1):
            weights = rng.normal(scale=inputs**-0.5, size=(inputs, outputs)).astype(np.float32)
            self.parts |= {f"w{i}": torch.tensor(weights), f"b{i}": torch.zeros(outputs)}
        self.double()

    def forward(self, images: Any) -> Any:
        p, x = self.parts, torch.tensor(images)
        x = Swish.apply(x @ p["w1"] + p["b1"])
        x = Swish.apply(x @ p["w2"] + p["b2"])
        return x @ p["w3"] + p["b3"]


def solve() -> dict[str, Any]:
    """What the page finds, by its names. The order of the digits is that of the page, and not PyTorch's sampler's."""
    images, labels = datasets.load_digits(return_X_y=True)
    train_x, _, train_y, _ = model_selection.train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=0
    )
    train_x = ((train_x - train_x.mean(axis=0)) / 8).astype(np.float32)
    model: torch.nn.Module = Network(seed=0)
    if SIZE > 1:
        model = DistributedDataParallel(model)
    optimizer, rng = torch.optim.Adam(model.parameters(), lr=5e-3), np.random.default_rng(0)
    losses = []
    for epoch in range(EPOCHS):
        order = np.random.default_rng(epoch).permutation(len(train_y))[RANK::SIZE]
        for step in range(len(train_y) // BATCH):
            mine = order[step * BATCH // SIZE : (step + 1) * BATCH // SIZE]
            noise = NOISE * rng.standard_normal((BATCH, 64))
            loss = cross_entropy(model(train_x[mine] + noise[RANK::SIZE]), torch.tensor(train_y[mine]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            shown = loss.detach()
            if SIZE > 1:
                dist.all_reduce(shown)
            losses.append(shown.item() / SIZE)
    return {"losses": losses}

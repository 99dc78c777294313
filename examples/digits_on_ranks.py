"""The network of `pullback demo`, trained on handwritten digits by several ranks: the losses are those of one process.

Start it by ``pullback run -n 4 examples/digits_on_ranks.py``, by ``mpiexec -n 4 python examples/digits_on_ranks.py``,
or alone. Three things make a training loop one of many ranks: the sampler gives each its part of a batch,
`DistributedDataParallel` sums gradients, and `all_reduce` the losses that are shown. It needs scikit-learn.
"""

import numpy as np
from pullback.nn.parallel import DistributedDataParallel
from pullback.utils.data.distributed import DistributedSampler

import pullback as torch
import pullback.distributed as dist
from pullback.cli import demo
from pullback.distributed.nn.functional import all_reduce

EPOCHS = 5
DIGITS = demo.load_digits()
STEPS = len(DIGITS.train_y) // demo.BATCH  # the last digits, which fill no batch, are left out


class Network(torch.nn.Module):
    """``swish(x @ w + b)`` twice, then ``x @ w + b``, in float64, so that rounding does not hide what differs."""

    def __init__(self, seed):
        super().__init__()
        self.parts = torch.nn.ParameterDict(demo.new_parameters(np.random.default_rng(seed)))
        self.double()

    def forward(self, images):
        return demo.logits(self.parts, images)


def train(model, rank, size):
    """The loss of each step on this rank's part of the batch. rank, size: 0, 1 for the whole batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=demo.LEARNING_RATE)
    sampler, rng = DistributedSampler(DIGITS.train_y, size, rank), np.random.default_rng(0)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        order = np.array(list(sampler))  # every n-th of one order, so a batch is the same for any number of ranks
        for step in range(STEPS):
            mine = order[step * demo.BATCH // size : (step + 1) * demo.BATCH // size]
            noise = demo.NOISE * rng.standard_normal((demo.BATCH, 64))  # of the whole batch, the same on each rank
            loss = torch.nn.functional.cross_entropy(
                model(DIGITS.train_x[mine] + noise[rank::size]), torch.tensor(DIGITS.train_y[mine])
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.detach()


def main() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    assert demo.BATCH % size == 0, "the means of parts are the mean of the whole if the parts are of one size"
    model = DistributedDataParallel(Network(seed=rank))  # it begins as the first rank's
    losses = [all_reduce(loss, dist.ReduceOp.AVG).item() for loss in train(model, rank, size)]
    right = np.mean(demo.predict(model.module.parts, DIGITS.test_x.astype(float)) == DIGITS.test_y)
    if rank == 0:
        print(f"{size} ranks, {len(losses)} steps: loss {losses[0]:.6f} to {losses[-1]:.6f}; {right:.1%} right")
        alone = [loss.item() for loss in train(Network(seed=0), 0, 1)]
        differ = np.abs(np.subtract(losses, alone)).max()
        print(f"largest difference from the losses of one process: {differ:.0e}")
        assert differ < 1e-9
        assert right > 0.95
    if size == 1:
        print("gradcheck:", demo.check_swish())


if __name__ == "__main__":
    dist.init_process_group()
    main()
    dist.destroy_process_group()

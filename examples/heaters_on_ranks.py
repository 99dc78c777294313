"""Heaters below a plate, found from thermometers, on a grid that is split over ranks.

Start it by ``pullback run -n 4 examples/heaters_on_ranks.py heaters.png``, by mpiexec, or alone; the picture needs
matplotlib. The plate is cold beyond its edges, ``du/dt = div(c grad u) + q``, and q is unknown. Each rank has a block.
What crosses its border depends on a neighbour's cells, which `halo` brings; backward adds their gradients where they
came from. So the gradient is that of the whole plate on one process, which is checked. The misfit is a quadratic: its
gradient is ``A q - b``, and `cg` finds the q where that is zero, by products with A alone.
"""

import sys

import numpy as np

import pullback as torch
import pullback.distributed as dist
from pullback.distributed.nn.functional import all_reduce

N, STEPS, ERROR, ROUGH = 24, 16, 0.05, 0.2  # cells along each axis, time steps; what is expected of readings and of q
X, Y = np.meshgrid(*[(np.arange(N) + 0.5) / N] * 2, indexing="ij")
TRUE = 1.0 * (np.hypot(X - 0.3, Y - 0.35) < 0.17) + 0.6 * (abs(X - 0.7) + abs(Y - 0.65) < 0.22)
CONDUCTIVITY = 0.5 + 0.4 * X
PLACES = np.zeros((N, N))
PLACES[1::2, 1::2] = 1  # of the thermometers


def temperatures(q, grid):
    """Of each fourth step, on this rank's block. q: the heat of its cells in a step."""
    c, u = torch.tensor(CONDUCTIVITY[grid.part((N, N))]), torch.zeros_like(q)
    a, b = dist.halo(c, 0, grid=grid), dist.halo(c, 1, grid=grid)
    down, across = (a[1:] + a[:-1]) / 2, (b[:, 1:] + b[:, :-1]) / 2  # between cells
    for step in range(1, STEPS + 1):
        a, b = dist.halo(u, 0, grid=grid), dist.halo(u, 1, grid=grid)
        u = u + 0.25 * ((down * a.diff(dim=0)).diff(dim=0) + (across * b.diff(dim=1)).diff(dim=1)) + q
        if step % 4 == 0:
            yield u


def misfit(q, readings, grid):
    """Half the squares of the thermometers' errors, and of the differences of q from cell to cell; of this block."""
    places = torch.tensor(PLACES[grid.part((N, N))]) / ERROR
    errors = [places * (u - read) for u, read in zip(temperatures(q, grid), readings, strict=True)]
    bends = [dist.halo(q, 0, grid=grid).diff(dim=0)[1:], dist.halo(q, 1, grid=grid).diff(dim=1)[:, 1:]]
    return (sum((e * e).sum() for e in errors) + sum((e * e).sum() for e in bends) / ROUGH**2) / 2


def gradient(q, readings, grid):
    q = q.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(all_reduce(misfit(q, readings, grid), group=grid.group), q)[0]


def draw(file, found, reading):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3), layout="constrained")
    read = np.where(PLACES, reading, np.nan)
    shown = {"heaters, found": found, "heaters, true": TRUE, "the last readings": read}
    for (title, values), axes in zip(shown.items(), figure.subplots(1, 3), strict=True):
        figure.colorbar(axes.imshow(values), ax=axes)
        axes.set_title(title)
    figure.savefig(file)


def main() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    grid = dist.Grid((size // 2, 2) if size % 2 == 0 else (size, 1))
    alone = dist.Grid((1, 1), group=[dist.new_group([r]) for r in range(size)][rank])  # the whole plate, on this rank
    noise = torch.tensor(np.random.default_rng(0).normal(0, ERROR, (STEPS // 4, N, N)))
    readings = [u + e for u, e in zip(temperatures(torch.tensor(TRUE), alone), noise, strict=True)]
    own = [reading[grid.part((N, N))] for reading in readings]
    zero, guess = torch.zeros_like(own[0]), torch.tensor(X + Y)
    b = -gradient(zero, own, grid)
    q = dist.cg(lambda q: gradient(q, [zero] * len(own), grid), b, rtol=1e-3)
    slope, blocks = gradient(guess[grid.part((N, N))], own, grid), [None] * size
    dist.all_gather_object(blocks, (grid.part((N, N)), q.numpy(), slope.numpy()))
    found, slope = np.empty((2, N, N))
    for part, *block in blocks:
        found[part], slope[part] = block
    if rank == 0:
        whole = gradient(guess, readings, alone).numpy()
        differ, error = np.abs(slope - whole).max() / np.abs(whole).max(), np.sqrt(np.mean((found - TRUE) ** 2))
        print(f"{size} ranks: the gradient differs from that of one process by {differ:.0e} of it")
        print(f"heaters: found with an error of {error:.6f}, root of the mean square; they give up to {TRUE.max()}")
        assert differ < 1e-12
        assert error < 0.12
        for file in [name for name in sys.argv[1:] if name.endswith(".png")]:
            draw(file, found, readings[-1].numpy())
    if size == 1:
        print("gradcheck:", torch.autograd.gradcheck(lambda s: misfit(s * q, own, grid), torch.tensor(0.5)))


if __name__ == "__main__":
    dist.init_process_group()
    main()
    dist.destroy_process_group()

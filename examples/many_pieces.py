"""Independent pieces of work on many processes, by Dask or by Ray: a sweep, and gradients of every sample.

``python examples/many_pieces.py``, with ``dask`` or ``ray`` behind it (``pip install dask``, ``pip install ray``).
Nothing is differentiated across processes here, so neither has to know of gradients: a function goes there and tensors
come back, by pickling. Both pickle closures and lambdas, too.
"""

import sys

import numpy as np

import pullback as torch


def in_processes(kind):
    """A map over items: here, in two processes of Dask's, or in two of Ray's."""
    if kind == "dask":
        import dask

        return lambda f, items: dask.compute(*map(dask.delayed(f), items), scheduler="processes", num_workers=2)
    if kind == "ray":
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        return lambda f, items: ray.get([ray.remote(f).remote(item) for item in items])
    return lambda f, items: [f(item) for item in items]


def main() -> None:
    kind = next(iter(sys.argv[1:]), "")
    mapped = in_processes(kind)
    rng = np.random.default_rng(0)
    x, y = torch.tensor(rng.standard_normal((12, 3))), torch.tensor(rng.standard_normal(12))

    def fitted(decay):
        """The weights, and the loss without the decay, after some steps of descent. A closure over the data."""
        w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        for _ in range(50):
            (slope,) = torch.autograd.grad(((x @ w - y) ** 2).mean() + decay * (w * w).sum(), w)
            w = (w - 0.2 * slope).detach().requires_grad_()
        return w, ((x @ w.detach() - y) ** 2).mean().item()

    decays = [0.0, 0.1, 0.3, 1.0]
    found = mapped(fitted, decays)
    for decay, (w, loss) in zip(decays, found, strict=True):
        assert w.requires_grad
        assert w.tolist() == fitted(decay)[0].tolist()
        print(f"decay {decay}: loss {loss:.6f}")

    w = found[0][0]
    loss = lambda w, x, y: (x @ w - y) ** 2  # noqa: E731
    of_samples = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))
    parts = mapped(lambda part: of_samples(w.detach(), x[part], y[part]), [slice(0, 6), slice(6, 12)])
    whole = 2 * (x @ w.detach() - y)[:, None] * x
    print("largest error of a sample's gradient:", f"{(torch.cat(list(parts)) - whole).abs().max().item():.0e}")
    assert torch.allclose(torch.cat(list(parts)), whole)
    print("gradcheck:", torch.autograd.gradcheck(lambda w: loss(w, x, y), w))


if __name__ == "__main__":
    main()

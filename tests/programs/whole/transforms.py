"""Whole programs of transforms, and of work on arrays."""

from __future__ import annotations

from typing import Any

from tests.programs.whole.common import below, blobs, filled, numbers
from tests.side_by_side import programs

PROGRAMS, program = programs()
ABSOLUTE = 1e-9  # long computations


# Transforms of functions ----------------------------------------------------------------------------------------------


@program
def gradients_of_each_sample(lib: Any) -> Any:
    nn, func, values = lib.nn, below(lib, "func"), numbers()
    images, label = blobs(lib, values, 12)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 3))
    parameters = {name: p.detach() for name, p in filled(lib, model, values).named_parameters()}

    def loss(parameters: Any, image: Any, label: Any) -> Any:
        scores = func.functional_call(model, parameters, (image.unsqueeze(0),))
        return nn.functional.cross_entropy(scores, label.unsqueeze(0))

    each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, images, label)
    models = [filled(lib, nn.Linear(3, 2), values) for _ in range(4)]
    stacked, buffers = func.stack_module_state(models)
    x = lib.from_numpy(values.randn(5, 3))
    ensemble = func.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(stacked, buffers)
    return each, ensemble


@program
def matrices_of_derivatives(lib: Any) -> Any:
    func, functional, values = below(lib, "func"), lib.autograd.functional, numbers()
    forward_ad = below(lib, "autograd.forward_ad")
    weight, x, v = (lib.from_numpy(values.randn(*size)) for size in ((4, 4), (4,), (4,)))

    def layer(weight: Any, x: Any) -> Any:
        return (weight @ x).tanh()

    def energy(x: Any) -> Any:
        return layer(weight, x).pow(3).sum()

    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(lib.exp(forward_ad.make_dual(x, v)).cumsum(0)).tangent
    leaf = x.clone().requires_grad_()
    rows = lib.eye(4, dtype=lib.float64)
    return (
        func.jacrev(layer, argnums=1)(weight, x),
        func.jacfwd(layer, argnums=(0, 1))(weight, x),
        func.hessian(energy)(x),
        functional.hessian(energy, x),
        functional.hvp(energy, x, v)[1],
        func.jvp(func.grad(energy), (x,), (v,))[1],
        func.vjp(energy, x)[1](lib.ones((), dtype=lib.float64)),
        func.vmap(lambda x: func.hessian(energy)(x).trace())(weight),
        tangent,
        lib.autograd.grad(leaf.exp(), leaf, grad_outputs=rows, is_grads_batched=True)[0],
    )


# Arrays ---------------------------------------------------------------------------------------------------------------


@program
def sums_of_einstein(lib: Any) -> Any:
    values = numbers()
    a, b, c = (lib.from_numpy(values.randn(*size)).requires_grad_() for size in ((4, 5, 6), (4, 6, 3), (5,)))
    results = (
        lib.einsum("bij,bjk->bik", a, b),
        lib.einsum("...ij,...jk,i", a, b, c),
        lib.einsum("bii->b", a[:, :, :5]),
        lib.einsum(a, [0, 1, 2], [2, 0]),
        lib.einsum("i,j->ij", c, c),
        lib.tensordot(a, b, dims=([0, 2], [0, 1])),
        lib.baddbmm(a @ b, a, b, beta=0.5),
        lib.kron(c, c[:2]),
        lib.einsum("bnd,bmd->bnm", a, a).diagonal(dim1=-2, dim2=-1),
    )
    sum(result.sin().sum() for result in results).backward()
    return results, a.grad, b.grad, c.grad


@program
def convolution_by_fourier(lib: Any) -> Any:
    F, values = lib.nn.functional, numbers()
    x, k, image = (lib.from_numpy(values.randn(*size)).requires_grad_() for size in ((3, 50), (50,), (8, 8)))
    y = lib.fft.irfft(lib.fft.rfft(x, n=100) * lib.fft.rfft(k, n=100), n=100)[..., :50]
    direct = F.conv1d(F.pad(x[:, None], (49, 0)), k.flip(0)[None, None]).squeeze(1)
    spectrum = lib.fft.fftshift(lib.fft.fft2(image, norm="ortho")).abs().pow(2)
    waves = lib.stft(x, 16, hop_length=4, window=lib.hann_window(16, dtype=lib.float64), return_complex=True)
    ((y**2).mean() + direct.sin().sum() + spectrum.sum(0).log().sum() + waves.abs().sum()).backward()
    return y, direct, waves, x.grad, k.grad, image.grad


@program
def graph_network(lib: Any) -> Any:
    values = numbers()
    source, target = lib.from_numpy(values.randint(0, 7, (2, 30)))
    x, weight = (lib.from_numpy(values.randn(*size)).requires_grad_() for size in ((7, 5), (5, 4)))
    h = x @ weight
    to = target[:, None].expand(-1, 4)
    empty = lib.zeros(7, 4, dtype=lib.float64)
    total = empty.index_add(0, target, h[source])
    mean = total / lib.bincount(target, minlength=7).clamp(min=1).unsqueeze(-1)
    largest = empty.scatter_reduce(0, to, h[source], reduce="amax", include_self=False)
    average = empty.scatter_reduce(0, to, h[source], "mean")
    added = empty.scatter_add(0, to, h[source])
    score = (h[source] * h[target]).sum(-1)
    lowest = lib.full((7,), -1e9, dtype=lib.float64)
    score = (score - lowest.scatter_reduce(0, target, score, "amax")[target]).exp()
    attention = score / lib.zeros(7, dtype=lib.float64).index_add(0, target, score)[target]
    near, where = lib.topk(mean, 3, dim=1)
    links = lib.zeros(7, 7, dtype=lib.float64)
    links[source, target] = 1.0
    links[lib.arange(7), lib.arange(7)] += 1
    z = (links / links.sum(1, keepdim=True)) @ h
    z[z > 1] = 1.0
    z[0, ::2] *= 3
    z[:, -1] = largest[:, 0]
    parts = (total, mean, largest, average, added, attention, near, mean.gather(1, where), z, z.masked_select(z > 0.5))
    sum(part.sin().sum() for part in parts).backward()
    return parts, where, (z > 0.5).nonzero(), lib.unique(target, return_counts=True), x.grad, weight.grad

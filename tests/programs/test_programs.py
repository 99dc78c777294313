"""Whole programs, of the kinds in tutorials and in scientists' daily work, end with the same numbers in both libraries.

A program is given a library; its data and the initial values of its parameters come from NumPy, the same in both.
"""

from __future__ import annotations

import importlib
import io
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from tests.side_by_side import Program, name_of, programs

PROGRAMS, program = programs()


def numbers() -> np.random.RandomState:
    """The same numbers for every program and library; a stream of NumPy's that never changes."""
    return np.random.RandomState(7)


def filled(lib: Any, module: Any, values: np.random.RandomState, scale: float = 0.3) -> Any:
    """The module in double precision, with parameters from the given random numbers."""
    module.to(lib.float64)
    with lib.no_grad():
        for parameter in module.parameters():
            parameter.copy_(lib.from_numpy(scale * values.randn(*parameter.shape)))
    return module


def below(lib: Any, name: str) -> Any:
    """A module of the library by its path."""
    return importlib.import_module(f"{lib.__name__}.{name}")


def blobs(lib: Any, values: np.random.RandomState, count: int = 90) -> tuple[Any, Any]:
    """Images of 8 by 8, each with a bright third, and which third it is."""
    label = np.arange(count) % 3
    images = values.rand(count, 1, 8, 8)
    for image, k in zip(images, label, strict=True):
        image[0, :, 3 * k : 3 * k + 2] += 1
    return lib.from_numpy(images), lib.from_numpy(label)


# Fits -----------------------------------------------------------------------------------------------------------------


@program
def polynomial_by_hand(lib: Any) -> Any:
    x = lib.linspace(-math.pi, math.pi, 500, dtype=lib.float64)
    y = lib.sin(x)
    a, b, c, d = (lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in numbers().randn(4).tolist())
    for _ in range(50):
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
        loss.backward()
        with lib.no_grad():
            for p in (a, b, c, d):
                p -= 4e-6 * p.grad
                p.grad = None
    return loss, a, b, c, d


@program
def legendre_polynomial_as_a_function(lib: Any) -> Any:
    class LegendrePolynomial3(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 0.5 * (5 * x**3 - 3 * x)

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * x**2 - 1)

    x = lib.linspace(-math.pi, math.pi, 500, dtype=lib.float64)
    a, b, c, d = (lib.full((), v, dtype=lib.float64, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
    optimizer = lib.optim.SGD([a, b, c, d], lr=2e-5)
    for _ in range(50):
        loss = (a + b * LegendrePolynomial3.apply(c + d * x) - lib.sin(x)).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss, a, b, c, d


@program
def polynomial_with_a_module(lib: Any) -> Any:
    x = lib.linspace(-math.pi, math.pi, 500, dtype=lib.float64)
    powers = x.unsqueeze(-1).pow(lib.tensor([1, 2, 3]))
    model = filled(lib, lib.nn.Sequential(lib.nn.Linear(3, 1), lib.nn.Flatten(0, 1)), numbers())
    loss_fn = lib.nn.MSELoss(reduction="sum")
    optimizer = lib.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in range(50):
        loss = loss_fn(model(powers), lib.sin(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss, dict(model.named_parameters()), repr(model), repr(optimizer)


@program
def gaussian_process_with_lbfgs(lib: Any) -> Any:
    x = lib.linspace(0, 1, 25, dtype=lib.float64)
    y = lib.sin(6 * x) + 0.1 * lib.from_numpy(numbers().randn(25))
    length, scale, noise = (lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in (-1.0, 0.0, -2.0))

    def kernel(a: Any, b: Any) -> Any:
        return scale.exp() ** 2 * lib.exp(-0.5 * (a[:, None] - b).square() / length.exp() ** 2)

    def covariance() -> Any:
        return kernel(x, x) + noise.exp() ** 2 * lib.eye(25, dtype=x.dtype)

    def by_cholesky() -> Any:
        factor = lib.linalg.cholesky(covariance())
        return 0.5 * y @ lib.cholesky_solve(y[:, None], factor).squeeze() + factor.diagonal().log().sum()

    def by_logdet() -> Any:
        return 0.5 * y @ lib.linalg.solve(covariance(), y) + 0.5 * lib.logdet(covariance())

    first = [lib.autograd.grad(by(), (length, scale, noise)) for by in (by_cholesky, by_logdet)]
    optimizer = lib.optim.LBFGS([length, scale, noise], max_iter=10, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = by_cholesky()
        loss.backward()
        return loss

    optimizer.step(closure)
    at = lib.linspace(-0.2, 1.2, 7, dtype=lib.float64)
    with lib.no_grad():
        factor = lib.linalg.cholesky(covariance())
        half = lib.linalg.solve_triangular(factor, kernel(x, at), upper=False)
        mean = kernel(at, x) @ lib.cholesky_solve(y[:, None], factor)
        return first, length, scale, noise, mean, (kernel(at, at) - half.mT @ half).diagonal()


@program
def complex_least_squares(lib: Any) -> Any:
    values = numbers()
    matrix = lib.from_numpy(values.randn(3, 2) + 1j * values.randn(3, 2))
    target = lib.from_numpy(values.randn(3) + 1j * values.randn(3))
    z = lib.tensor([1 + 1j, 0.5 - 2j], dtype=lib.complex128, requires_grad=True)
    optimizer = lib.optim.Adam([z], lr=0.05)
    for _ in range(30):
        optimizer.zero_grad()
        loss = (matrix @ z - target).abs().square().sum()
        loss.backward()
        optimizer.step()
    return loss, z, z.grad


# Networks -------------------------------------------------------------------------------------------------------------


@program
def multilayer_perceptron(lib: Any) -> Any:
    nn, values = lib.nn, numbers()
    images, label = blobs(lib, values)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 3)
    )
    filled(lib, model, values)
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = lib.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, steps_per_epoch=3, epochs=4)
    norms = []
    for _ in range(4):
        model.train()
        for batch in lib.from_numpy(values.permutation(90)).split(30):
            loss = nn.functional.cross_entropy(model(images[batch]), label[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
            optimizer.step()
            scheduler.step()
    model.eval()
    file = io.BytesIO()
    lib.save(model.state_dict(), file)
    file.seek(0)
    layers = nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 3)
    again = nn.Sequential(*layers)
    again.to(lib.float64).load_state_dict(lib.load(file, weights_only=True))
    again.eval()
    with lib.no_grad():
        accuracy = (again(images).argmax(dim=1) == label).double().mean()
    return loss, norms, accuracy, scheduler.get_last_lr(), list(model.state_dict()), again(images[:2])


@program
def convolutional_network(lib: Any) -> Any:
    nn, F, values = lib.nn, lib.nn.functional, numbers()

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.conv2 = nn.Conv2d(4, 6, 3, padding="same")
            self.fc = nn.Linear(24, 3)

        def forward(self, x: Any) -> Any:
            x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), (2, 2))
            return F.log_softmax(self.fc(lib.flatten(x, 1)), dim=1)

    images, label = blobs(lib, values)
    net = filled(lib, Net(), values)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = lib.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    losses = []
    for _ in range(3):
        for x, y in zip(images.split(30), label.split(30), strict=True):
            optimizer.zero_grad()
            loss = F.nll_loss(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    net.eval()
    with lib.no_grad():
        found = net(images).argmax(dim=1, keepdim=True)
        return losses, found.eq(label.view_as(found)).sum().item(), net(images[:3]), repr(net)


@program
def character_lstm(lib: Any) -> Any:
    nn = lib.nn
    text = "the quick brown fox jumps over the lazy dog. " * 4
    letters = sorted(set(text))
    data = lib.tensor([letters.index(letter) for letter in text])

    class Reader(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(len(letters), 8)
            self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True)
            self.gru = nn.GRU(12, 12, batch_first=True)
            self.out = nn.Linear(12, len(letters))

        def forward(self, x: Any, state: Any = None) -> Any:
            x, state = self.lstm(self.embedding(x), state)
            return self.out(self.gru(x)[0]), state

    model = filled(lib, Reader(), numbers())
    optimizer = lib.optim.Adam(model.parameters(), lr=3e-3)
    state, losses = None, []
    for start in range(0, 100, 16):
        x, y = data[start : start + 64].view(4, 16), data[start + 1 : start + 65].view(4, 16)
        out, state = model(x, state)
        state = tuple(s.detach() for s in state)
        loss = nn.CrossEntropyLoss()(out.reshape(-1, len(letters)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses, state, lib.softmax(out[0, -1], dim=-1)


@program
def transformer_encoder(lib: Any) -> Any:
    nn, values = lib.nn, numbers()

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 16)
            position = lib.arange(50).unsqueeze(1)
            frequency = lib.exp(lib.arange(0, 16, 2) * (-math.log(10000.0) / 16))
            waves = lib.zeros(50, 1, 16)
            waves[:, 0, 0::2] = lib.sin(position * frequency)
            waves[:, 0, 1::2] = lib.cos(position * frequency)
            self.register_buffer("waves", waves)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, 0.0), 2)
            self.out = nn.Linear(16, 20)

        def forward(self, x: Any, mask: Any) -> Any:
            return self.out(self.encoder(self.embedding(x) * 4 + self.waves[: len(x)], mask))

    model = filled(lib, Model(), values)
    tokens = lib.from_numpy(values.randint(0, 20, (11, 3)))
    mask = nn.Transformer.generate_square_subsequent_mask(10).to(lib.float64)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(tokens[:-1], mask).view(-1, 20), tokens[1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses, model.embedding.weight.grad


@program
def attention_by_hand(lib: Any) -> Any:
    F, values = lib.nn.functional, numbers()
    x = lib.from_numpy(values.randn(2, 6, 8)).requires_grad_()
    weight = lib.from_numpy(values.randn(8, 24)).requires_grad_()
    q, k, v = (part.view(2, 6, 2, 4).transpose(1, 2) for part in (x @ weight).split(8, dim=2))
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    scores = scores.masked_fill(lib.tril(lib.ones(6, 6)).view(1, 1, 6, 6) == 0, float("-inf"))
    y = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(2, 6, 8)
    built_in = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 6, 8)
    F.gelu(F.layer_norm(y, (8,))).pow(2).sum().backward()
    return y, built_in, x.grad, weight.grad


@program
def variational_autoencoder(lib: Any) -> Any:
    nn, F, values = lib.nn, lib.nn.functional, numbers()

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.mean, self.logvar = nn.Linear(64, 20), nn.Linear(20, 3), nn.Linear(20, 3)
            self.decoder = nn.Sequential(nn.Linear(3, 20), nn.ReLU(), nn.Linear(20, 64), nn.Sigmoid())

        def forward(self, x: Any) -> Any:
            h = F.relu(self.hidden(x.view(-1, 64)))
            mean, logvar = self.mean(h), self.logvar(h)
            noise = lib.from_numpy(values.randn(*mean.shape))
            return self.decoder(mean + noise * lib.exp(0.5 * logvar)), mean, logvar

    images = blobs(lib, values)[0] / 2
    model = filled(lib, Model(), values)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        for batch in images.split(30):
            again, mean, logvar = model(batch)
            loss = F.binary_cross_entropy(again, batch.view(-1, 64), reduction="sum")
            loss = loss - 0.5 * lib.sum(1 + logvar - mean.pow(2) - logvar.exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@program
def physics_informed_network(lib: Any) -> Any:
    nn, values = lib.nn, numbers()
    net = filled(
        lib, nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 1)), values
    )
    optimizer = lib.optim.Adam(net.parameters(), lr=1e-2)
    x, t = (lib.from_numpy(values.rand(40, 1)).requires_grad_(True) for _ in range(2))
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        u = net(lib.cat([x, t], dim=1))
        (u_x,) = lib.autograd.grad(u, x, grad_outputs=lib.ones_like(u), create_graph=True)
        u_t = lib.autograd.grad(u.sum(), t, create_graph=True)[0]
        u_xx = lib.autograd.grad(u_x, x, lib.ones_like(u_x), create_graph=True)[0]
        start = net(lib.hstack((x, lib.zeros_like(t)))) + lib.sin(math.pi * x)
        loss = lib.mean((u_t + u * u_x - 0.01 / math.pi * u_xx) ** 2) + lib.mean(start**2)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@program
def checkpointed_blocks(lib: Any) -> Any:
    nn, values = lib.nn, numbers()
    checkpoint = below(lib, "utils.checkpoint").checkpoint
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(5, 5), nn.GELU()) for _ in range(3)])
    filled(lib, blocks, values)
    x = lib.from_numpy(values.randn(4, 5)).requires_grad_()
    for reentrant in (False, True):
        h = x
        for block in blocks:
            h = checkpoint(block, h, use_reentrant=reentrant)
        h.sum().backward()
    return x.grad, [p.grad for p in blocks.parameters()]


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


# The comparison -------------------------------------------------------------------------------------------------------


def same(ours: Any, theirs: Any) -> None:
    """Fail unless the results are equal but for the rounding of a long computation."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            same(mine, other)
    elif hasattr(theirs, "detach"):
        assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-7, atol=1e-9, strict=True)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-7, abs=1e-9)
    else:
        assert ours == theirs


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_ends_with_the_numbers_of_torch(program: Program) -> None:
    torch: ModuleType = pytest.importorskip("torch")
    importlib.import_module("torch.utils.checkpoint")
    same(program(pullback), program(torch))


def test_numpy_code_on_tensors() -> None:
    """NumPy's functions give the gradients that the library's own give, which are compared with torch's elsewhere."""
    torch = pullback

    def leaf() -> pullback.Tensor:
        return torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)

    x, b = leaf(), np.array([1.0, 2.0])
    by_numpy = (
        np.sin(x).sum() + np.linalg.solve(x, b).sum() + np.where(x > 1.5, x, -x).prod() + np.max(np.cumsum(x, axis=0))
        + np.var(np.outer(x[0], b)) + np.linalg.norm(np.linalg.inv(x)) + np.abs(np.fft.fft(x)).sum()
    )  # fmt: skip
    by_numpy.backward()
    y, c = leaf(), torch.from_numpy(b)
    ours = (
        torch.sin(y).sum() + torch.linalg.solve(y, c).sum() + torch.where(y > 1.5, y, -y).prod() + y.cumsum(0).max()
        + torch.outer(y[0], c).var(correction=0) + torch.linalg.inv(y).norm() + torch.fft.fft(y).abs().sum()
    )  # fmt: skip
    ours.backward()
    np.testing.assert_allclose(by_numpy.detach().numpy(), ours.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12)

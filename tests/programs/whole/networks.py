"""Whole programs that train networks."""

from __future__ import annotations

import io
import math
from typing import Any

from tests.programs.whole.common import below, blobs, filled, numbers
from tests.side_by_side import programs

PROGRAMS, program = programs()
ABSOLUTE = 1e-9  # long computations


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

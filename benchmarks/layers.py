"""Rows of models made of `nn` layers, as people write them: the loss and the gradients of all parameters.

PyTorch and pullback run the same program; "compiled" and "inductor" are that program under `compile`. JAX has no
layers of its own: its side, where there is one, is the same mathematics in `jax.lax`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Arrays, Program, Row

_Build = Callable[[ModuleType], Any]
"""Make the model of a library; its parameters are replaced."""


def _parameters(shapes: list[tuple[int, ...]]) -> Arrays:
    """Values for parameters of these shapes: weights scaled by their inputs; vectors near 0."""
    rng = np.random.default_rng(3)
    scales = [1 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.1 for shape in shapes]
    return [(rng.standard_normal(n) * scale).astype(np.float32) for n, scale in zip(shapes, scales, strict=True)]


def _gradients(torch: ModuleType, build: _Build, inputs: np.ndarray, labels: np.ndarray, compiled: bool) -> Program:
    model = build(torch)
    parameters = list(model.parameters())
    with torch.no_grad():
        for p, values in zip(parameters, _parameters([tuple(p.shape) for p in parameters]), strict=True):
            p.copy_(torch.tensor(values))
    given = torch.tensor(inputs), torch.tensor(labels)

    def loss(x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())

    called = torch.compile(loss) if compiled else loss

    def work(_: None) -> Any:
        value = called(*given)
        return value, *torch.autograd.grad(value, parameters)

    return Program(work, lambda found: [t.detach().numpy() for t in found])


def _compiled_by_jax(jax: ModuleType, loss: Any, shapes: list[tuple[int, ...]], *data: np.ndarray) -> Program:
    both = jax.jit(jax.value_and_grad(loss))
    parameters = [jax.numpy.asarray(p) for p in _parameters(shapes)]
    given = [jax.numpy.asarray(a) for a in data]
    return Program(
        lambda _: jax.block_until_ready(both(parameters, *given)), lambda r: [np.asarray(a) for a in (r[0], *r[1])]
    )


# -- a convolutional network -------------------------------------------------------------------------------------------


def _convnet(torch: ModuleType) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


_SHAPES = [(16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (10, 128), (10,)]
_IMAGES = np.random.default_rng(4).standard_normal((64, 1, 8, 8)).astype(np.float32)
_DIGITS = np.random.default_rng(5).integers(0, 10, 64)


def _convnet_in_jax(jax: ModuleType) -> Program:
    lax = jax.lax

    def layer(x: Any, kernel: Any, bias: Any) -> Any:
        y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME") + bias[:, None, None]
        return lax.reduce_window(jax.nn.relu(y), -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(p: Any, x: Any, y: Any) -> Any:
        x = layer(layer(x, p[0], p[1]), p[2], p[3])
        logits = x.reshape(len(y), -1) @ p[4].T + p[5]
        return -jax.nn.log_softmax(logits)[np.arange(len(y)), y].mean()

    return _compiled_by_jax(jax, loss, _SHAPES, _IMAGES, _DIGITS)


# -- a language model --------------------------------------------------------------------------------------------------

_WIDTH, _HEADS, _LENGTH, _LETTERS = 128, 4, 64, 65


def _gpt(torch: ModuleType) -> Any:
    """Two blocks with `scaled_dot_product_attention`."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
            self.qkv, self.out = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
            self.up, self.down = nn.Linear(_WIDTH, 4 * _WIDTH), nn.Linear(4 * _WIDTH, _WIDTH)

        def forward(self, x: Any) -> Any:
            heads = self.qkv(self.before(x)).view(*x.shape[:2], 3, _HEADS, _WIDTH // _HEADS)
            q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
            found = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(found.transpose(1, 2).reshape(x.shape))
            return x + self.down(nn.functional.gelu(self.up(self.between(x))))

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(_LETTERS, _WIDTH), nn.Embedding(_LENGTH, _WIDTH)
            self.blocks = nn.Sequential(Block(), Block())
            self.last, self.head = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _LETTERS)
            self.numbers = torch.arange(_LENGTH)

        def forward(self, x: Any) -> Any:
            return self.head(self.last(self.blocks(self.letters(x) + self.places(self.numbers))))

    return Model()


def _shapes_of_gpt() -> list[tuple[int, ...]]:
    linear = [(3 * _WIDTH, _WIDTH), (_WIDTH, _WIDTH), (4 * _WIDTH, _WIDTH), (_WIDTH, 4 * _WIDTH)]
    block = [(_WIDTH,)] * 4 + [shape for weight in linear for shape in (weight, weight[:1])]
    ends = [(_LETTERS, _WIDTH), (_LENGTH, _WIDTH)], [(_WIDTH,), (_WIDTH,), (_LETTERS, _WIDTH), (_LETTERS,)]
    return [*ends[0], *block, *block, *ends[1]]


def _gpt_in_jax(jax: ModuleType) -> Program:
    nn = jax.nn

    def norm(x: Any, gain: Any, shift: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jax.numpy.sqrt(x.var(-1, keepdims=True) + 1e-5) * gain + shift

    def block(x: Any, p: Any) -> Any:
        heads = (norm(x, *p[0:2]) @ p[4].T + p[5]).reshape(*x.shape[:2], 3, _HEADS, _WIDTH // _HEADS)
        found = nn.dot_product_attention(heads[:, :, 0], heads[:, :, 1], heads[:, :, 2], is_causal=True)
        x = x + found.reshape(x.shape) @ p[6].T + p[7]
        return x + nn.gelu(norm(x, *p[2:4]) @ p[8].T + p[9], approximate=False) @ p[10].T + p[11]

    def loss(p: Any, x: Any, y: Any) -> Any:
        x = block(block(p[0][x] + p[1], p[2:14]), p[14:26])
        logits = (norm(x, *p[26:28]) @ p[28].T + p[29]).reshape(-1, _LETTERS)
        return -jax.numpy.take_along_axis(nn.log_softmax(logits), y.reshape(-1, 1), 1).mean()

    return _compiled_by_jax(jax, loss, _shapes_of_gpt(), _TEXT[:, :-1], _TEXT[:, 1:])


_TEXT = np.random.default_rng(6).integers(0, _LETTERS, (8, _LENGTH + 1))


def _row(name: str, title: str, build: _Build, data: tuple[np.ndarray, np.ndarray], jit: Any) -> Row:
    sides = {
        "torch": lambda module: _gradients(module, build, *data, compiled=False),
        "pullback": lambda module: _gradients(module, build, *data, compiled=False),
        "compiled": lambda module: _gradients(module, build, *data, compiled=True),
        "inductor": lambda module: _gradients(module, build, *data, compiled=True),
        "jit": jit,
    }
    budgets = {("compiled", "pullback"): 1.0, ("compiled", "jit"): 1.0}
    return Row(name, f"{title}: the loss and its gradients", 1, 0.9, sides, budgets, tolerance=2e-3)


ROWS = [
    _row(
        "convnet-nn",
        "convnet on 64 images of 8 x 8 with `nn` layers",
        _convnet,
        (_IMAGES, _DIGITS),
        _convnet_in_jax,
    ),
    _row(
        "gpt",
        "GPT of two blocks with `nn` layers and fused attention, d 128, 4 heads, sequence 64, batch 8",
        _gpt,
        (_TEXT[:, :-1], _TEXT[:, 1:]),
        _gpt_in_jax,
    ),
]

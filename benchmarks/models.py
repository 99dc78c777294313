"""Rows of whole models: training steps and gradients as people write them, eager and compiled.

The mathematics of a model is written once, for PyTorch, pullback and JAX alike, in the few operations that have one
name in all three; "compiled" is pullback with `pullback.compile`, "inductor" PyTorch with `torch.compile`, "jit" JAX
compiled.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Arrays, Program, Row

RNG = np.random.default_rng(2)


def _normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def _detached(tensors: Any) -> Arrays:
    return [tensor.detach().numpy() for tensor in tensors]


def _numpy(arrays: Any) -> Arrays:
    return [np.asarray(array) for array in arrays]


# -- MLP 784-256-256-10, one step of Adam ------------------------------------------------------------------------------

_SIZES = (784, 256, 256, 10)
_WEIGHTS = [_normal(b, a, scale=1 / math.sqrt(a)) for a, b in itertools.pairwise(_SIZES)]
_BIASES = [np.zeros(n, np.float32) for n in _SIZES[1:]]
RATE, BETA1, BETA2, EPS = 1e-3, 0.9, 0.999, 1e-8


def _batch(size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(size)
    return rng.standard_normal((size, 784)).astype(np.float32), rng.integers(0, 10, size)


def _mlp(torch: ModuleType, size: int, compiled: bool = False) -> Program:
    """The usual program, with modules and an optimiser; compiled: the whole step, as one function."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    with torch.no_grad():
        for layer, weight, bias in zip(list(model)[::2], _WEIGHTS, _BIASES, strict=True):
            layer.weight.copy_(torch.tensor(weight))
            layer.bias.copy_(torch.tensor(bias))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    images, labels = (torch.tensor(a) for a in _batch(size))

    def step(images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    step = torch.compile(step) if compiled else step

    def work(_: None) -> Any:
        return [step(images, labels), *model.parameters()]

    return Program(work, lambda found: [np.array(a) for a in _detached(found)])


def _mlp_step(value_and_grad: Callable[..., Any], loss: Callable[..., Any], sqrt: Callable[[Any], Any]) -> Any:
    """One step of Adam as a function of all state that it changes; `n` is the number of the step, a tensor."""

    def step(parameters: Any, means: Any, squares: Any, n: Any, images: Any, hot: Any) -> Any:
        value, gradients = value_and_grad(loss)(parameters, images, hot)
        n = n + 1
        first, second = 1 - BETA1**n, 1 - BETA2**n
        means = [BETA1 * m + (1 - BETA1) * g for m, g in zip(means, gradients, strict=True)]
        squares = [BETA2 * s + (1 - BETA2) * g * g for s, g in zip(squares, gradients, strict=True)]
        parameters = [
            p - RATE * (m / first) / (sqrt(s / second) + EPS)
            for p, m, s in zip(parameters, means, squares, strict=True)
        ]
        return value, parameters, means, squares, n

    return step


def _mlp_loss(relu: Any, log_softmax: Any) -> Any:
    def loss(parameters: Any, images: Any, hot: Any) -> Any:
        x = images
        for i in range(0, 6, 2):
            x = x @ parameters[i].T + parameters[i + 1]
            x = relu(x) if i < 4 else x
        return -(log_softmax(x) * hot).sum() / x.shape[0]

    return loss


def _mlp_compiled(lib: ModuleType, size: int) -> Program:
    """As a function of its state, compiled whole: forward, backward and update."""
    jax = lib.__name__ == "jax"
    array = lib.numpy.asarray if jax else lib.tensor
    images, labels = _batch(size)
    given = [array(images), array(np.eye(10, dtype=np.float32)[labels])]
    start = [array(a) for pair in zip(_WEIGHTS, _BIASES, strict=True) for a in pair]
    zeros = [array(np.zeros(p.shape, np.float32)) for p in start]
    state: list[Any] = [start, zeros, zeros, array(np.float32(0))]
    if jax:
        step = lib.jit(_mlp_step(lib.value_and_grad, _mlp_loss(lib.nn.relu, lib.nn.log_softmax), lib.numpy.sqrt))
    else:
        functional = lib.nn.functional

        def value_and_grad(loss: Any) -> Any:
            both = lib.func.grad_and_value(loss)
            return lambda *args: both(*args)[::-1]

        loss = _mlp_loss(functional.relu, lambda x: functional.log_softmax(x, dim=-1))
        step = lib.compile(_mlp_step(value_and_grad, loss, lib.sqrt))

    def work(_: None) -> Any:
        value, *state[:] = step(*state, *given)
        return lib.block_until_ready([value, *state[0]]) if jax else [value, *state[0]]

    return Program(work, _numpy if jax else _detached)


def _mlp_row(size: int) -> Row:
    return Row(
        f"mlp-{size}",
        f"a training step of the MLP 784-256-256-10, batch {size}, Adam",
        1,
        1.0,
        {
            "torch": lambda module: _mlp(module, size),
            "pullback": lambda module: _mlp(module, size),
            "compiled": lambda module: _mlp_compiled(module, size),
            "inductor": lambda module: _mlp_compiled(module, size),
            "jit": lambda module: _mlp_compiled(module, size),
        },
        {("compiled", "jit"): 1.0, ("compiled", "inductor"): 1.0},
        tolerance=1e-2,  # Adam's first step divides a gradient by its size, however small
    )


def _step_row(size: int) -> Row:
    return Row(
        f"step-{size}",
        f"the same step of batch {size} as people write it, with `nn` and `optim.Adam`, in one compiled function",
        1,
        None,
        {
            "torch": lambda module: _mlp(module, size),
            "compiled": lambda module: _mlp(module, size, compiled=True),
            "inductor": lambda module: _mlp(module, size, compiled=True),
            "jit": lambda module: _mlp_compiled(module, size),
        },
        {("compiled", "jit"): 1.0, ("compiled", "inductor"): 1.0},
        tolerance=1e-2,
    )


# -- gradients of models in basic operations ---------------------------------------------------------------------------


def _scan(step: Any, carry: Any, xs: Any) -> Any:
    """A loop of Python's, for a library that has no such function."""
    for x in xs:
        carry, _ = step(carry, x)
    return carry, None


class Basics:
    """The operations by one name; the differences between the libraries are here."""

    def __init__(self, lib: ModuleType) -> None:
        jax = lib.__name__ == "jax"
        home = lib.numpy if jax else lib
        self.tanh, self.exp, self.sqrt = home.tanh, home.exp, home.sqrt
        self.maximum = home.maximum
        self.array = lib.numpy.asarray if jax else lib.tensor
        self.transposed = home.transpose if jax else lambda x, axes: x.permute(axes)
        self.mean = lambda x: x.mean(-1, keepdims=True)
        self.total = lambda x: x.sum(-1, keepdims=True)
        self.scan = lib.lax.scan if jax else getattr(getattr(lib, "func", None), "scan", _scan)
        self.largest = (lambda x: x.max(-1, keepdims=True)) if jax else (lambda x: x.amax(-1, keepdim=True))


def _rnn(b: Basics, p: Sequence[Any], x: Any) -> Any:
    w, u, bias = p
    h = total = x[0] * 0
    for step in range(200):
        h = b.tanh(x[step] @ w + h @ u + bias)
        total = total + h  # a gradient for each step: the last one's alone would fade to subnormal numbers
    return (total * total).mean()


def _rnn_by_scan(b: Basics, p: Sequence[Any], x: Any) -> Any:
    w, u, bias = p

    def step(carry: Any, element: Any) -> Any:
        h, total = carry
        h = b.tanh(element @ w + h @ u + bias)
        return (h, total + h), None

    start = x[0] * 0
    (_, total), _ = b.scan(step, (start, start), x)
    return (total * total).mean()


_RNN = ([_normal(128, 128, scale=0.08), _normal(128, 128, scale=0.08), _normal(128)], _normal(200, 32, 128))


def _norm(b: Basics, x: Any, gain: Any, shift: Any) -> Any:
    centred = x - b.mean(x)
    return centred / b.sqrt(b.mean(centred * centred) + 1e-5) * gain + shift


def _transformer(b: Basics, p: Sequence[Any], x: Any) -> Any:
    qkv, out, up, down, g1, s1, g2, s2 = p
    batch, length, width = x.shape
    y = _norm(b, x, g1, s1) @ qkv
    q, k, v = (
        b.transposed(y[..., i * width : (i + 1) * width].reshape(batch, length, 4, width // 4), (0, 2, 1, 3))
        for i in range(3)
    )
    scores = q @ b.transposed(k, (0, 1, 3, 2)) / math.sqrt(width / 4)
    weights = b.exp(scores - b.largest(scores))
    weights = weights / b.total(weights)
    x = x + b.transposed(weights @ v, (0, 2, 1, 3)).reshape(batch, length, width) @ out
    h = _norm(b, x, g2, s2) @ up
    h = 0.5 * h * (1 + b.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h * h * h)))
    x = x + h @ down
    return (x * x).mean()


_TRANSFORMER = (
    [
        _normal(128, 384, scale=0.08),
        _normal(128, 128, scale=0.08),
        _normal(128, 512, scale=0.08),
        _normal(512, 128, scale=0.04),
        *(np.full(128, v, np.float32) for v in (1, 0, 1, 0)),
    ],
    _normal(8, 64, 128),
)


def _convolved(b: Basics, x: Any, kernel: Any) -> Any:
    """A 3 x 3 convolution without padding: the sum over the nine places of a product with the kernel's matrix there."""
    _, h, w, _ = x.shape
    total = None
    for i in range(3):
        for j in range(3):
            part = x[:, i : h - 2 + i, j : w - 2 + j, :] @ kernel[i * 3 + j]
            total = part if total is None else total + part
    return total


def _convnet(b: Basics, p: Sequence[Any], x: Any) -> Any:
    first, second, head = p
    y = _convolved(b, x, first)
    y = b.maximum(y, y * 0)
    y = _convolved(b, y, second)
    y = b.maximum(y, y * 0)
    y = y.reshape(x.shape[0], -1) @ head
    return (y * y).mean()


_CONVNET = (
    [_normal(9, 1, 16, scale=0.3), _normal(9, 16, 32, scale=0.08), _normal(512, 10, scale=0.05)],
    _normal(64, 8, 8, 1),
)


def _gradients(lib: ModuleType, model: Any, data: Any, compiled: bool = False) -> Program:
    basics = Basics(lib)
    parameters, x = [basics.array(p) for p in data[0]], basics.array(data[1])

    def loss(p: Any, x: Any) -> Any:
        return model(basics, p, x)

    if lib.__name__ == "jax":
        both = lib.jit(lib.value_and_grad(loss))
        return Program(lambda _: lib.block_until_ready(both(parameters, x)), lambda r: _numpy([r[0], *r[1]]))
    for p in parameters:
        p.requires_grad_()
    called = lib.compile(loss) if compiled else loss

    def work(_: None) -> Any:
        value = called(parameters, x)
        return value, *lib.autograd.grad(value, parameters)

    return Program(work, _detached)


def _model_row(name: str, title: str, model: Any, data: Any, budget: float = 1.0) -> Row:
    return Row(
        name,
        f"{title}, in basic operations: the loss and its gradients",
        1,
        budget,
        {
            "torch": lambda module: _gradients(module, model, data),
            "pullback": lambda module: _gradients(module, model, data),
            "compiled": lambda module: _gradients(module, model, data, compiled=True),
            "inductor": lambda module: _gradients(module, model, data, compiled=True),
            "jit": lambda module: _gradients(module, model, data),
        },
        {("compiled", "jit"): 1.0, ("compiled", "inductor"): 1.0},
        tolerance=2e-3,
    )


ROWS = [
    _mlp_row(64),
    _mlp_row(512),
    _step_row(64),
    _step_row(512),
    _model_row("rnn", "tanh RNN of 200 steps, batch 32, hidden 128", _rnn, _RNN),
    _model_row("scan", "the same RNN by scan() (a loop of Python's for PyTorch)", _rnn_by_scan, _RNN),
    _model_row("transformer", "transformer block, d 128, 4 heads, sequence 64, batch 8", _transformer, _TRANSFORMER),
    _model_row("convnet", "convnet on 64 images of 8 x 8", _convnet, _CONVNET, 0.9),
]

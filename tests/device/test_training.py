"""Steps of training on the fake device: they wait for it never, and what they compute is what NumPy's arrays give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.tensor import protocol
from pullback.tensor.tensor import Tensor, wrap

from .fake import DeviceArray

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _no_check_is_left() -> Iterator[None]:
    yield
    protocol.DUE.clear()


def real(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


class Block(nn.Module):
    """A block of a transformer over embedded words, with a mask of the future."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        # no biases: a bias of the keys changes nothing, so that its gradient is rounding, which Adam makes steps of
        self.attention = nn.MultiheadAttention(8, 2, bias=False, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(8), nn.LayerNorm(8)])
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.out = nn.Linear(8, 11)

    def forward(self, words: Tensor) -> Tensor:
        x = self.embed(words)
        y = self.norms[0](x)
        q = k = v = y.reshape(*y.shape[:2], 2, 4).transpose(1, 2)
        x = x + nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.out(x + self.inner(self.norms[1](x)))


def mlp() -> tuple[Any, Any, Any]:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    return model, real(4, 6), np.array([0, 2, 1, 1])


def transformer() -> tuple[Any, Any, Any]:
    return Block(), RNG.integers(0, 11, (2, 5)), RNG.integers(0, 11, 10)


def convnet() -> tuple[Any, Any, Any]:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, stride=2),
        nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip
    return model, real(4, 1, 8, 8), np.array([0, 2, 1, 1])


def trained(make: Callable[[], Any], optimiser: Any, place: Callable[[Any], Any]) -> tuple[list[Any], int]:
    """The parameters and the loss after three steps, and how often the last two waited. place: what tensors hold."""
    global RNG
    RNG = np.random.default_rng(0)
    pullback.manual_seed(0)
    model, x, target = make()
    for t in [*model.parameters(), *model.buffers()]:
        t._set_payload(place(t._data))
    steps = optimiser(model.parameters())
    x, target, loss, before = wrap(place(x)), wrap(place(target)), None, 0
    for step in range(3):
        before = before if step != 1 else DeviceArray.waits.total()
        steps.zero_grad()
        found = model(x)
        loss = nn.functional.cross_entropy(found.reshape(-1, found.shape[-1]), target)
        loss.backward()
        steps.step()
    return [*(p._data for p in model.parameters()), loss._data], DeviceArray.waits.total() - before


OPTIMISERS = {
    "SGD": lambda p: pullback.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: pullback.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: pullback.optim.AdamW(p, lr=0.01),
    "RMSprop": lambda p: pullback.optim.RMSprop(p, lr=0.01),
    "Adagrad": lambda p: pullback.optim.Adagrad(p, lr=0.01),
}


@pytest.mark.parametrize(
    ("make", "optimiser"),
    [(mlp, name) for name in OPTIMISERS] + [(transformer, "AdamW"), (convnet, "SGD")],
)
def test_steps_wait_never(make: Any, optimiser: str) -> None:
    wanted, _ = trained(make, OPTIMISERS[optimiser], np.copy)
    DeviceArray.waits.clear()
    found, waits = trained(make, OPTIMISERS[optimiser], lambda a: DeviceArray(np.copy(a)))
    assert waits == 0, DeviceArray.waits
    for mine, theirs in zip(found, wanted, strict=True):
        assert type(mine) is DeviceArray
        np.testing.assert_allclose(mine.inner, theirs, rtol=2e-4, atol=1e-5)


def test_a_position_out_of_bounds_is_told_where_the_host_waits_next() -> None:
    table, index = wrap(DeviceArray(real(3, 2))), wrap(DeviceArray(np.array([0, 1])))
    assert nn.functional.embedding(index, table).sum().item() == pytest.approx(float(table._data.inner[:2].sum()))
    wrong = wrap(DeviceArray(np.array([[0], [2], [-2]])))
    DeviceArray.waits.clear()
    found = pullback.gather(table, 0, wrong)
    assert DeviceArray.waits.total() == 0
    with pytest.raises(RuntimeError, match=r"gather\(\): an index is out of bounds for a dimension of size 3"):
        found.sum().item()
    assert table.sum().item() == pytest.approx(float(table._data.inner.sum())), "it is told once"

"""Random numbers on the device that is not there: a generator for each device, with a state of its own."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import cuda, nn
from pullback.nn import functional as F  # noqa: N812 - torch's custom
from pullback.tensor.tensor import Tensor

from .fake import DeviceArray

pytestmark = pytest.mark.usefixtures("gpu")


def numbers(t: Tensor) -> list[float]:
    assert type(t._data) is DeviceArray
    found: list[float] = t.tolist()
    return found


def test_a_seed_starts_the_streams_of_all_devices_and_each_goes_on_alone() -> None:
    pullback.manual_seed(3)
    host = [pullback.rand(2).tolist() for _ in range(2)]
    assert [numbers(pullback.rand(2, device="cuda")) for _ in range(2)] == host
    assert numbers(pullback.rand(2, device="cuda:1")) == host[0]
    pullback.manual_seed(3)
    pullback.rand(5, device="cuda")
    assert pullback.rand(2).tolist() == host[0], "a draw for a GPU leaves the stream of the host where it was"


def test_a_generator_of_a_gpu() -> None:
    g = pullback.Generator(device="cuda").manual_seed(5)
    assert g.device == pullback.device("cuda", 0)
    assert g.initial_seed() == 5
    a = numbers(pullback.randn(3, generator=g, device="cuda"))
    state = g.get_state()
    assert state.device.type == "cpu"
    b = numbers(pullback.randn(3, generator=g, device="cuda"))
    assert a != b
    assert numbers(pullback.randn(3, generator=g.set_state(state), device="cuda")) == b
    copy = g.clone_state()
    assert copy.device == g.device
    assert pullback.Generator("cuda:1").device == pullback.device("cuda:1")


DRAWS: list[tuple[str, Any]] = [
    ("rand", lambda g, d: pullback.rand(2, generator=g, device=d)),
    ("randn", lambda g, d: pullback.randn(2, generator=g, device=d)),
    ("randint", lambda g, d: pullback.randint(5, (2,), generator=g, device=d)),
    ("randperm", lambda g, d: pullback.randperm(5, generator=g, device=d)),
    ("rand_like", lambda g, d: pullback.rand_like(pullback.zeros(2, device=d), generator=g)),
    ("randn_like", lambda g, d: pullback.randn_like(pullback.zeros(2, device=d), generator=g)),
    ("randint_like", lambda g, d: pullback.randint_like(pullback.zeros(2, device=d), 5, generator=g)),
    ("normal", lambda g, d: pullback.normal(0.0, 1.0, (2,), generator=g, device=d)),
    ("normal", lambda g, d: pullback.normal(pullback.zeros(2, device=d), 2.0, generator=g)),
    ("normal", lambda g, d: pullback.normal(pullback.zeros(2, device=d), pullback.ones(2, device=d), generator=g)),
    ("bernoulli", lambda g, d: pullback.bernoulli(pullback.full((9,), 0.5, device=d), generator=g)),
    ("bernoulli", lambda g, d: pullback.bernoulli(pullback.zeros(9, device=d), 0.5, generator=g)),
    ("poisson", lambda g, d: pullback.poisson(pullback.full((9,), 2.0, device=d), generator=g)),
    ("multinomial", lambda g, d: pullback.multinomial(pullback.ones(9, device=d), 3, generator=g)),
    *(
        (name, lambda g, d, name=name, args=args: getattr(pullback.ones(9, device=d), name)(*args, generator=g))
        for name, args in {
            "normal_": (), "uniform_": (), "bernoulli_": (), "exponential_": (), "geometric_": (0.5,), "cauchy_": (),
            "log_normal_": (), "random_": (),
        }.items()
    ),
    ("init.trunc_normal_", lambda g, d: nn.init.trunc_normal_(pullback.zeros(9, device=d), generator=g)),
    ("init.orthogonal_", lambda g, d: nn.init.orthogonal_(pullback.zeros(3, 3, device=d), generator=g)),
    ("init.sparse_", lambda g, d: nn.init.sparse_(pullback.zeros(3, 3, device=d), 0.4, generator=g)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "draw"), DRAWS)
def test_every_draw_takes_the_generator_of_its_device(name: str, draw: Any) -> None:
    pullback.manual_seed(1)
    wanted = draw(None, "cpu").tolist()
    assert numbers(draw(None, "cuda")) == wanted, "the default generator of the device"
    assert numbers(draw(pullback.Generator("cuda").manual_seed(1), "cuda")) == wanted
    with pytest.raises(RuntimeError, match=r"Expected a 'cuda' device type for generator but found 'cpu'"):
        draw(pullback.Generator(), "cuda")
    with pytest.raises(RuntimeError, match=r"(?s)Expected a 'cpu' device type for generator but found 'cuda'.*'cpu'\)"):
        draw(pullback.Generator("cuda"), "cpu")


@pytest.mark.parametrize(
    "layer",
    [
        lambda x: F.dropout(x, 0.5),
        lambda x: F.alpha_dropout(x, 0.5, True),
        lambda x: F.feature_alpha_dropout(x[None], 0.5, True),
        lambda x: F.rrelu(x, training=True),
        lambda x: F.gumbel_softmax(x),
        lambda x: F.gumbel_softmax(x, hard=True),
        lambda x: F.fractional_max_pool2d(x.reshape(1, 4, 4), 2, output_size=2),
        lambda x: F.dropout(x.clone(), 0.5, inplace=True),
    ],
)
def test_layers_that_draw(layer: Any) -> None:
    x = pullback.linspace(-1.0, 1.0, 16)
    pullback.manual_seed(2)
    wanted = layer(x)
    found = layer(x.cuda().requires_grad_())
    assert type(found._data) is DeviceArray
    assert pullback.allclose(found.detach().cpu(), wanted)
    found.sum().backward()


def test_the_words_of_cuda() -> None:
    cuda.manual_seed(7)
    assert cuda.initial_seed() == 7
    state = cuda.get_rng_state()
    a = numbers(pullback.rand(2, device="cuda"))
    cuda.set_rng_state(state)
    assert numbers(pullback.rand(2, device="cuda")) == a
    cuda.manual_seed_all(7)
    assert numbers(pullback.rand(2, device="cuda:1")) == a
    states = cuda.get_rng_state_all()
    assert len(states) == 2
    b = [numbers(pullback.rand(2, device=d)) for d in ("cuda:0", "cuda:1")]
    cuda.set_rng_state_all(states)
    assert [numbers(pullback.rand(2, device=d)) for d in ("cuda:0", "cuda:1")] == b
    cuda.seed()
    cuda.seed_all()
    with cuda.device(1):
        cuda.manual_seed(9)
        assert cuda.initial_seed() == 9


def test_what_keeps_the_numbers_keeps_those_of_the_gpu() -> None:
    x = pullback.ones(8, device="cuda", requires_grad=True)
    pullback.manual_seed(4)
    with pullback.random.fork_rng():
        first = numbers(pullback.rand(3, device="cuda"))
    assert numbers(pullback.rand(3, device="cuda")) == first
    for use_reentrant in (False, True):
        y = pullback.utils.checkpoint.checkpoint(lambda t: F.dropout(t * 1, 0.5), x, use_reentrant=use_reentrant)
        x.grad = None
        y.sum().backward()
        assert numbers(x.grad) == numbers(y.detach()), "the second run leaves out the same elements"


def test_a_draw_for_a_gpu_does_not_wait() -> None:
    x = pullback.ones(8, device="cuda")
    DeviceArray.waits.clear()
    F.dropout(x, 0.5)
    pullback.randn(3, device="cuda")
    pullback.normal(x, 1.0)
    x.uniform_()
    assert not DeviceArray.waits

"""Random numbers: arguments and errors as torch's, distributions, seeds and states, and transforms that draw."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import grad, jvp, vmap
from tests.oracle import array_of, call, cases, name_of


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


# Arguments ------------------------------------------------------------------------------------------------------------

# What is drawn differs from torch's, but for what can only be drawn in one way; dtype, shape and requires_grad do not.
DRAWS = cases("""
torch.rand(3) | torch.rand(2, 3) | torch.rand((2, 3)) | torch.rand(()) | torch.rand(0) | torch.rand(size=(2,))
torch.rand() | torch.rand(2, generator=None) | torch.rand(2, generator=torch.Generator()) | torch.rand(2, generator=3)
torch.rand(-1) | torch.rand(2, out=torch.empty(2, dtype=torch.float64)) | torch.rand(2, dtype=torch.complex64)
torch.rand(2, dtype=torch.float16) | torch.rand(2, dtype=torch.bool) | torch.rand(2, dtype=torch.int64)
torch.rand(2, requires_grad=True) | torch.rand(2, device='cpu') | torch.randn()
torch.randn(2, out=torch.empty(2, dtype=torch.int64)) | torch.randn(2, 2, dtype=torch.float64)
torch.randn(2, layout=torch.strided) | torch.randn(2, dtype=torch.complex128, requires_grad=True)
torch.randn(2, dtype=torch.int32) | torch.randn(2, pin_memory=False) | torch.randint(10) | torch.randint(10, (2,))
torch.randint(3, 10, (2,)) | torch.randint(low=3, high=10, size=(2,)) | torch.randint(high=10, size=(2,))
torch.randint(0, (2,)) | torch.randint(3.5, (2,)) | torch.randint(0, 2**40, (2,), dtype=torch.int32)
torch.randint(0, 300, (2,), dtype=torch.uint8) | torch.randint(-1, 10, (2,), dtype=torch.uint8)
torch.randint(0, 2, (2,), dtype=torch.bool) | torch.randint(0, 3, (2,), dtype=torch.bool)
torch.randint(0, 2**63, (2,)) | torch.randint(0, 2**63 - 1, (2,)) | torch.randint(-2**63, 2**63 - 1, (2,))
torch.randint(0, 5, (2,), dtype=torch.float32) | torch.randint(0, 2**25, (2,), dtype=torch.float32)
torch.randint(0, 5, (2,), dtype=torch.complex64) | torch.randint(0, 5, 3) | torch.randint(0, 5, size=[])
torch.randint(0, 5, (2,), out=torch.empty(2)) | torch.randint(n, n + 4, (2,)) | torch.randint(5, 3, (2,))
torch.randint(7, 8, (2,)) | torch.randint_like(x, 5) | torch.randint_like(x, 2, 5)
torch.randint_like(x, low=2, high=5) | torch.randint_like(x, 5, 2) | torch.randint_like(x, n)
torch.randint_like(x, 5, dtype=torch.int64, generator=None) | torch.randint_like(x, 4, 5)
torch.randint_like(i, 300, dtype=torch.uint8) | torch.randint_like(3, 5)
torch.rand_like(x, generator=torch.Generator()) | torch.rand_like(i) | torch.randn_like(i)
torch.randn_like(i, dtype=torch.float64) | torch.randn_like(y.T) | torch.rand_like(x, requires_grad=True)
torch.rand_like([1.0]) | torch.randn_like(y.T, memory_format=torch.contiguous_format)
torch.rand_like(x, dtype=torch.complex64) | torch.randperm(5) | torch.randperm(5, dtype=torch.float32)
torch.randperm(5, dtype=torch.uint8) | torch.randperm(300, dtype=torch.uint8) | torch.randperm(1)
torch.randperm(3000, dtype=torch.float16) | torch.randperm(5, dtype=torch.bool) | torch.randperm(2.5)
torch.randperm(-1) | torch.randperm(0) | torch.randperm(n) | torch.randperm(3, out=torch.empty(3, dtype=torch.int32))
torch.randperm(3, out=torch.empty(3, dtype=torch.int32), dtype=torch.int64) | torch.normal(x, x.abs())
torch.normal(torch.zeros(3), torch.ones(2, 1)) | torch.normal(torch.zeros(3), torch.ones(2))
torch.normal(0.0, x.abs()) | torch.normal(x) | torch.normal(x, 2.0) | torch.normal(0.0, 1.0, (2, 3))
torch.normal(0, 1, size=(2, 3)) | torch.normal(0.0, 1.0)
torch.normal(mean=0.0, std=1.0, size=(2,), dtype=torch.float64)
torch.normal(torch.zeros(3, dtype=torch.float64), torch.ones(3))
torch.normal(torch.zeros(3), torch.ones(3, dtype=torch.float64)) | torch.normal(i, 1.0) | torch.normal(0.0, i)
torch.normal(x, -1.0) | torch.normal(x, -x.abs()) | torch.normal(0.0, -1.0, (2,)) | torch.normal(w, torch.ones(2))
torch.normal(x, 1.0, out=torch.empty(2)) | torch.normal(0.0, z) | torch.normal(z, 1.0)
torch.normal(z, torch.ones(2)) | torch.normal(0.0, 1.0, (2,), dtype=torch.complex64)
torch.normal(0.0, 1.0, (2,), dtype=torch.int64) | torch.normal(x, x, (2,))
torch.normal(torch.tensor(0.0), torch.tensor(1.0)) | torch.normal(2.0, 0.0, (2,)) | torch.normal(x, 0.0)
torch.normal(0.0, float('nan'), (2,)) | torch.normal(x, torch.tensor([1.0, float('nan')]))
torch.normal(torch.zeros(0), 1.0) | torch.normal(x, 1.0, generator=torch.Generator()) | torch.bernoulli(c)
torch.bernoulli(c.double()) | torch.bernoulli(c * 1.5) | torch.bernoulli(-c) | torch.bernoulli(c / 0)
torch.bernoulli(i) | torch.bernoulli(i, 0.5) | torch.bernoulli(x, 1.0) | torch.bernoulli(x, p=0.0)
torch.bernoulli(x, 1.5) | torch.bernoulli(c, out=torch.empty(2, dtype=torch.int64)) | torch.bernoulli(c.half())
torch.bernoulli(c.bool()) | torch.bernoulli(c + 0j) | torch.bernoulli(w) | torch.bernoulli(0.5) | x.bernoulli(0.0)
torch.ones(2).bernoulli() | x.bernoulli(c) | torch.bernoulli(torch.zeros(0))
torch.bernoulli(c, generator=torch.Generator()) | torch.bernoulli(z, 0.5)
torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 1) | torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 2, True)
torch.multinomial(torch.ones(3), 4) | torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 3, replacement=True)
torch.multinomial(torch.ones(3), 0) | torch.multinomial(torch.ones(3), -1)
torch.multinomial(torch.tensor([0.0, -1.0, 2.0]), 1) | torch.multinomial(torch.zeros(3), 1)
torch.multinomial(torch.tensor([0.0, float('nan')]), 1) | torch.multinomial(torch.tensor([0.0, float('inf')]), 1)
torch.multinomial(i, 1) | torch.multinomial(torch.tensor([[0.0, 1, 0], [1, 0, 0]]), 1)
torch.multinomial(torch.tensor(1.0), 1) | torch.multinomial(torch.ones(2, 2, 2), 1)
torch.multinomial(torch.ones(0, 2), 1) | torch.multinomial(torch.ones(2, 0), 1)
torch.multinomial(torch.ones(2), 1, out=torch.empty(1))
torch.multinomial(torch.ones(2), 1, out=torch.empty(1, dtype=torch.int64)) | torch.multinomial(z, 1)
torch.multinomial(torch.ones(2, dtype=torch.float64), 1) | torch.multinomial(torch.ones(2).half(), 1)
torch.multinomial(w, 1) | torch.ones(2).multinomial(2) | torch.multinomial([1.0], 1)
torch.multinomial(torch.ones(2, 5), 3) | torch.multinomial(torch.ones(2, 2), 7, True) | torch.poisson(torch.zeros(2))
torch.poisson(i) | torch.poisson(-x) | torch.poisson(x / 0 * 0) | torch.poisson(w) | torch.poisson(z)
torch.poisson(c.half()) | torch.poisson(2.0) | torch.poisson(torch.full((2, 2), 1e10)) | torch.poisson(torch.zeros(0))
torch.poisson(c, torch.Generator()) | x.normal_() | x.normal_(2.0, 0.0)
x.normal_(mean=1, std=2, generator=torch.Generator()) | x.normal_(0, -1) | i.normal_() | z.normal_() | w.normal_()
(w * 1).normal_() | x.uniform_() | x.uniform_(1, 0) | x.uniform_(2, 2) | x.uniform_(0, float('inf'))
x.uniform_(0, 1e39) | i.uniform_() | z.uniform_() | x.uniform_(from_=1, to=2) | x.uniform_(to=2, **{'from': 1})
x.uniform_(-3e38, 3e38) | x.uniform_(1, 2, 3) | x.half().uniform_(0, 70000) | x.double().uniform_(-1, 1)
x.bernoulli_(1) | x.bernoulli_(1.5) | x.bernoulli_(c) | x.bernoulli_(torch.ones(3)) | y.bernoulli_(torch.ones(3))
i.bernoulli_(c.double()) | i.bernoulli_(i) | torch.zeros(2, dtype=torch.bool).bernoulli_(1) | z.bernoulli_(1)
x.bernoulli_() | x.bernoulli_(p=0) | x.bernoulli_('a') | i.bernoulli_(c * 2) | x.exponential_() | x.exponential_(0)
x.exponential_(-1) | x.exponential_(lambd=float('inf')) | i.exponential_() | x.double().exponential_(2)
z.exponential_() | x.geometric_(0) | x.geometric_(1) | x.geometric_(1.5) | x.geometric_() | i.geometric_(0.9)
torch.zeros(2, dtype=torch.bool).geometric_(0.9) | z.geometric_(0.9) | x.geometric_(torch.tensor(0.5))
x.half().geometric_(0.5) | x.cauchy_() | x.cauchy_(0, -1) | x.cauchy_(0, 0) | x.cauchy_(median=5, sigma=1e-9)
i.cauchy_() | x.log_normal_() | x.log_normal_(0, -1) | x.log_normal_(0, 0) | i.log_normal_()
x.log_normal_(mean=1, std=0.1) | z.log_normal_() | z.cauchy_() | x.random_() | x.random_(3, 3) | x.random_(5, 3)
x.random_(0) | x.random_(1) | x.bool().random_() | x.byte().random_(300) | x.byte().random_(-1, 10)
x.bool().random_(3) | z.random_() | x.random_(2.5) | x.random_(0, to=1) | x.half().random_(0, 70000)
x.half().random_(0, 3000) | x.random_(0, 2**25) | x.random_(2, None) | x.char().random_(-128, None)
x.random_(generator=torch.Generator()) | y[:, :1].expand(2, 3).random_() | x.random_(1, 2, 3) | i.random_(2**62)
torch.manual_seed(2**64) | torch.Generator().manual_seed(-(2**63) - 1) | torch.Generator().manual_seed(1.5)
torch.Generator().manual_seed('a') | torch.Generator('cuda') | torch.set_rng_state(torch.zeros(3))
torch.set_rng_state(torch.zeros(3, dtype=torch.uint8)) | torch.set_rng_state([1])
""")
ALONE = cases("""
torch.randint(7, 8, (2,)) | torch.randint_like(x, 4, 5) | torch.randperm(1) | torch.normal(2.0, 0.0, (2,))
torch.randint(1, size=(2,)) | torch.randint(high=1, size=(2,)) | torch.randint(1, size=(2, 1), dtype=torch.float64)
torch.normal(x, 0.0) | torch.bernoulli(c) | torch.bernoulli(x, 1.0) | torch.bernoulli(x, p=0.0)
torch.bernoulli(c, out=torch.empty(2, dtype=torch.int64)) | torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 1)
torch.multinomial(torch.tensor([[0.0, 1, 0], [1, 0, 0]]), 1)
torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 3, replacement=True) | torch.poisson(torch.zeros(2))
x.normal_(2.0, 0.0) | x.uniform_(2, 2) | x.bernoulli_(1) | x.bernoulli_(c) | x.exponential_(lambd=float('inf'))
x.random_(1) | x.random_(0, to=1)
""")


def drawn(lib: ModuleType, code: str) -> Any:
    """What an expression gives, or its exception."""
    known = {
        "torch": lib,
        "x": lib.tensor([0.5, 2.0]),
        "y": lib.ones(2, 3),
        "c": lib.tensor([0.0, 1.0]),
        "i": lib.tensor([3, 0]),
        "z": lib.tensor([1j, 2.0]),
        "w": lib.tensor([0.5, 0.25], requires_grad=True),
        "n": lib.tensor(3),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(lib, eval, code, known)


@pytest.mark.torch
@pytest.mark.parametrize("code", DRAWS)
def test_arguments_are_taken_and_refused_as_by_torch(torch: ModuleType, code: str) -> None:
    ours, theirs = drawn(pullback, code), drawn(torch, code)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), f"{ours!r}, expected {theirs!r}"
        return
    assert not isinstance(ours, Exception), repr(ours)
    assert (name_of(ours.dtype), ours.shape, ours.requires_grad) == (
        name_of(theirs.dtype),
        theirs.shape,
        theirs.requires_grad,
    )
    assert ours.stride() == theirs.stride() or not ours.numel()


@pytest.mark.torch
@pytest.mark.parametrize("code", ALONE)
def test_what_can_only_be_drawn_in_one_way(torch: ModuleType, code: str) -> None:
    assert drawn(pullback, code).tolist() == drawn(torch, code).tolist()


def test_what_is_refused_changes_nothing() -> None:
    x = pullback.ones(3)
    before = pullback.get_rng_state().tolist()
    for code in [c for c in DRAWS if c.startswith("x.")]:
        known = {"x": x, "torch": pullback, "c": pullback.tensor([0.0, 1.0, 2.0])}
        if isinstance(call(pullback, eval, code, known), Exception):
            assert x.tolist() == [1.0] * 3, code
            assert x._version == 0
        x = pullback.ones(3)
        pullback.set_rng_state(pullback.tensor(before, dtype=pullback.uint8))
    leaf = pullback.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.uniform_()
    assert pullback.get_rng_state().tolist() == before


# Distributions --------------------------------------------------------------------------------------------------------

MANY = 200_000


def _of(dtype: str) -> Any:
    return pullback.empty(MANY, dtype=getattr(pullback, dtype))


# A draw, and the distribution function that it should have.
CONTINUOUS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "rand": (lambda: pullback.rand(MANY), lambda x: x),
    "rand float64": (lambda: pullback.rand(MANY, dtype=pullback.float64), lambda x: x),
    "rand complex": (lambda: pullback.rand(MANY, dtype=pullback.complex64).imag, lambda x: x),
    "randn": (lambda: pullback.randn(MANY), lambda x: _phi(x)),
    "randn float64": (lambda: pullback.randn(MANY, dtype=pullback.float64), lambda x: _phi(x)),
    "randn complex": (lambda: pullback.randn(MANY, dtype=pullback.complex64).real, lambda x: _phi(x * math.sqrt(2))),
    "normal": (lambda: pullback.normal(pullback.full((MANY,), 3.0), 2.0), lambda x: _phi((x - 3) / 2)),
    "normal of std": (lambda: pullback.normal(1.0, pullback.full((MANY,), 0.5)), lambda x: _phi((x - 1) / 0.5)),
    "normal of size": (lambda: pullback.normal(-1.0, 4.0, (MANY,)), lambda x: _phi((x + 1) / 4)),
    "normal_": (lambda: _of("float32").normal_(-2.0, 0.5), lambda x: _phi((x + 2) / 0.5)),
    "normal_ complex": (lambda: _of("complex64").normal_(1.0, 2.0).real, lambda x: _phi((x - 1) / math.sqrt(2))),
    "uniform_": (lambda: _of("float64").uniform_(-1, 3), lambda x: (x + 1) / 4),
    "exponential_": (lambda: _of("float32").exponential_(2.0), lambda x: 1 - np.exp(-2 * x)),
    "cauchy_": (lambda: _of("float32").cauchy_(1.0, 2.0), lambda x: 0.5 + np.arctan((x - 1) / 2) / np.pi),
    "log_normal_": (lambda: _of("float64").log_normal_(0.5, 0.25), lambda x: _phi((np.log(x) - 0.5) / 0.25)),
}


def _phi(x: Any) -> Any:
    return 0.5 * (1 + np.vectorize(math.erf)(np.asarray(x, np.float64) / math.sqrt(2)))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_draws_have_their_distribution(name: str) -> None:
    draw, distribution = CONTINUOUS[name]
    x = np.sort(array_of(draw()).astype(np.float64))
    # Kolmogorov and Smirnov: with probability 1e-6, sqrt(n) times the largest distance is above 2.7
    steps = np.arange(len(x) + 1) / len(x)
    expected = distribution(x)
    distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    assert distance * math.sqrt(len(x)) < 2.7


def _choice(weights: list[float], **how: Any) -> Callable[[], Any]:
    return lambda: pullback.multinomial(pullback.tensor(weights), MANY, replacement=True, **how)


DISCRETE: dict[str, tuple[Callable[[], Any], dict[float, float]]] = {
    "randint": (lambda: pullback.randint(-1, 3, (MANY,)), dict.fromkeys((-1, 0, 1, 2), 0.25)),
    "randint uint8": (lambda: pullback.randint(4, (MANY,), dtype=pullback.uint8), dict.fromkeys(range(4), 0.25)),
    "randint_like": (lambda: pullback.randint_like(_of("float32"), 2), dict.fromkeys((0, 1), 0.5)),
    "random_": (lambda: _of("int64").random_(5, 7), dict.fromkeys((5, 6), 0.5)),
    "random_ bool": (lambda: _of("bool").random_(), dict.fromkeys((0, 1), 0.5)),
    "bernoulli": (lambda: pullback.bernoulli(pullback.full((MANY,), 0.2)), {0: 0.8, 1: 0.2}),
    "bernoulli p": (lambda: pullback.bernoulli(_of("int64"), 0.7), {0: 0.3, 1: 0.7}),
    "bernoulli_": (lambda: _of("bool").bernoulli_(0.4), {0: 0.6, 1: 0.4}),
    "bernoulli_ of": (lambda: _of("float32").bernoulli_(pullback.tensor([0.1])), {0: 0.9, 1: 0.1}),
    "geometric_": (lambda: _of("int64").geometric_(0.5).clamp(max=4), {1: 0.5, 2: 0.25, 3: 0.125, 4: 0.125}),
    "poisson": (
        lambda: pullback.poisson(pullback.full((MANY,), 1.5)).clamp(max=3),
        {k: math.exp(-1.5) * 1.5**k / math.factorial(k) for k in range(3)}
        | {3: 1 - math.exp(-1.5) * (1 + 1.5 + 1.125)},
    ),
    "multinomial": (_choice([1.0, 0.0, 2.0, 5.0, 0.0]), {0: 0.125, 2: 0.25, 3: 0.625}),
    "multinomial of one each": (
        lambda: pullback.multinomial(pullback.tensor([[1.0, 3.0, 0.0]]).expand(MANY, 3), 1)[:, 0],
        {0: 0.25, 1: 0.75},
    ),
    # without replacement, the second is drawn from what the first has left
    "multinomial, the second": (
        lambda: pullback.multinomial(pullback.tensor([[1.0, 1.0, 2.0]]).expand(MANY, 3), 2)[:, 1],
        {0: 0.25 / 3 + 0.25, 1: 0.25 / 3 + 0.25, 2: 2 * 0.25 * 2 / 3},
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_draws_have_their_distribution(name: str) -> None:
    draw, expected = DISCRETE[name]
    values, counts = np.unique(array_of(draw()).astype(np.float64), return_counts=True)
    assert set(values.tolist()) == {float(v) for v in expected}
    for value, count in zip(values.tolist(), counts, strict=True):
        p = expected[value]
        assert abs(count - MANY * p) < 5 * math.sqrt(MANY * p * (1 - p)), value


def test_permutations_are_uniform() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        found = tuple(pullback.randperm(3).tolist())
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 1000) < 5 * math.sqrt(1000) for count in counts.values())
    rows = pullback.multinomial(pullback.ones(50, 4), 4)
    assert rows.sort(1)[0].tolist() == [[0, 1, 2, 3]] * 50


def test_no_uniform_number_is_rounded_to_1() -> None:
    for dtype in (pullback.float16, pullback.float32, pullback.float64):
        x = pullback.rand(MANY, dtype=dtype)
        assert x.min().item() >= 0
        assert x.max().item() < 1
    whole = pullback.empty(MANY).random_()
    assert whole.max().item() > 2**23
    assert (whole == whole.floor()).all()
    assert pullback.empty(MANY, dtype=pullback.int64).random_().max().item() > 2**62
    assert pullback.empty(MANY, dtype=pullback.int8).random_(-128, None).min().item() == -128


# Gradients ------------------------------------------------------------------------------------------------------------


def test_a_normal_draw_is_differentiated_through_mean_and_std() -> None:
    mean, std = pullback.zeros(3, requires_grad=True), pullback.full((2, 1), 2.0, requires_grad=True)
    pullback.manual_seed(1)
    y = pullback.normal(mean, std)
    y.square().sum().backward()
    z = (y / 2).detach()
    assert mean.grad is not None
    assert std.grad is not None
    np.testing.assert_allclose(array_of(mean.grad), array_of(2 * y).sum(0), rtol=1e-6)
    np.testing.assert_allclose(array_of(std.grad), array_of(2 * y * z).sum(1, keepdims=True), rtol=1e-6)
    tangent = jvp(lambda m: pullback.normal(m, 1.0), (pullback.zeros(2),), (pullback.ones(2),))[1]
    assert tangent.tolist() == [1.0, 1.0]


def test_of_other_draws_the_derivative_is_zero() -> None:
    for draw in (pullback.bernoulli, pullback.poisson):
        p = pullback.full((3,), 0.5, requires_grad=True)
        (g,) = pullback.autograd.grad(draw(p).sum(), p)
        assert g.tolist() == [0.0] * 3
    x = pullback.ones(3, requires_grad=True)
    y = x * 2
    y.normal_()
    (g,) = pullback.autograd.grad(y.sum(), x)
    assert g.tolist() == [0.0] * 3


# Seeds and states -----------------------------------------------------------------------------------------------------


def test_a_state_can_be_kept_and_returned_to() -> None:
    state = pullback.get_rng_state()
    assert (state.dtype, state.ndim) == (pullback.uint8, 1)
    # a draw of 32 bits leaves half of what the stream made for the next
    first = pullback.rand(3), pullback.randn(2, dtype=pullback.float64), pullback.randint(9, (3,))
    middle = pullback.random.get_rng_state()
    second = pullback.rand(5)
    pullback.set_rng_state(state)
    again = pullback.rand(3), pullback.randn(2, dtype=pullback.float64), pullback.randint(9, (3,))
    assert [t.tolist() for t in again] == [t.tolist() for t in first]
    pullback.random.set_rng_state(middle.clone())
    assert pullback.rand(5).tolist() == second.tolist()


def test_generators() -> None:
    assert pullback.Generator().initial_seed() == pullback.Generator("cpu").initial_seed() == 67280421310721
    g = pullback.Generator(device="cpu").manual_seed(2**64 - 1)
    assert (g.initial_seed(), str(g.device)) == (2**64 - 1, "cpu")
    assert pullback.Generator().manual_seed(-1).initial_seed() == 2**64 - 1
    pullback.rand(3, generator=g)
    other = g.clone_state()
    assert (other.initial_seed(), other.get_state().tolist()) == (g.initial_seed(), g.get_state().tolist())
    assert pullback.rand(3, generator=other).tolist() == pullback.rand(3, generator=g).tolist()
    assert g.seed() == g.initial_seed() != other.initial_seed()
    for duplicate in (copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert pullback.rand(2, generator=duplicate).tolist() == pullback.rand(2, generator=g.clone_state()).tolist()


def test_the_default_generator() -> None:
    assert pullback.manual_seed(5) is pullback.default_generator is pullback.random.default_generator
    assert pullback.initial_seed() == pullback.random.initial_seed() == 5
    a = pullback.rand(2).tolist()
    assert pullback.seed() == pullback.initial_seed() != 5
    assert pullback.rand(2).tolist() != a
    pullback.manual_seed("5")
    assert pullback.rand(2).tolist() == a


def test_a_fork_leaves_the_generator_as_it_was() -> None:
    state = pullback.get_rng_state().tolist()
    with pullback.random.fork_rng(devices=[], enabled=True):
        pullback.manual_seed(3)
        inside = pullback.rand(2).tolist()
    assert pullback.get_rng_state().tolist() == state
    with pytest.raises(RuntimeError), pullback.random.fork_rng():
        pullback.normal(pullback.rand(2), -1.0)
    assert pullback.get_rng_state().tolist() == state
    with pullback.random.fork_rng(enabled=False):
        pullback.manual_seed(3)
        assert pullback.rand(2).tolist() == inside
    assert pullback.get_rng_state().tolist() != state


def test_a_seed_gives_these_numbers_on_every_machine() -> None:
    pullback.manual_seed(0)
    assert pullback.rand(2, dtype=pullback.float64).tolist() == [0.6369616873214543, 0.2697867137638703]
    assert pullback.randint(100, (3,)).tolist() == [30, 4, 7]


def test_numpys_own_stream_is_left_alone() -> None:
    np.random.seed(3)
    expected = np.random.rand()
    np.random.seed(3)
    pullback.rand(100)
    assert np.random.rand() == expected


# Within transforms ----------------------------------------------------------------------------------------------------

WITHIN: dict[str, Callable[[Any], Any]] = {
    "rand": lambda x: pullback.rand(4),
    "randn": lambda x: pullback.randn(2, 2, dtype=pullback.float64),
    "rand_like": pullback.rand_like,
    "randint": lambda x: pullback.randint(1000, (4,)),
    "randint_like": lambda x: pullback.randint_like(x, 1000),
    "randperm": lambda x: pullback.randperm(20),
    "normal": lambda x: pullback.normal(pullback.zeros(4), pullback.ones(1)),
    "bernoulli": lambda x: pullback.bernoulli(pullback.full((40,), 0.5)),
    "multinomial": lambda x: pullback.multinomial(pullback.ones(20), 5),
    "poisson": lambda x: pullback.poisson(pullback.full((40,), 5.0)),
    "normal_": lambda x: pullback.zeros_like(x).normal_(),
    "uniform_": lambda x: x.new_empty(4).uniform_(),
    "bernoulli_": lambda x: x.new_empty(40).bernoulli_(0.5),
    "bernoulli_ of": lambda x: x.new_empty(40).bernoulli_(pullback.full((40,), 0.5)),
    "exponential_": lambda x: pullback.zeros_like(x).exponential_(),
    "random_": lambda x: pullback.zeros_like(x).random_(1000),
}
OF_VARYING: dict[str, Callable[[Any], Any]] = {
    "normal": lambda x: pullback.normal(x, 1.0),
    "normal of std": lambda x: pullback.normal(pullback.zeros(1), x),
    "bernoulli": lambda x: pullback.bernoulli(x / 100),
    "multinomial": lambda x: pullback.multinomial(x, 2),
    "multinomial, replaced": lambda x: pullback.multinomial(x, 5, replacement=True),
    "poisson": pullback.poisson,
    "bernoulli_": lambda x: pullback.zeros_like(x).bernoulli_(x / 100),
}


def _batch() -> Any:
    return pullback.arange(1.0, 13).reshape(3, 4)


@pytest.mark.parametrize("name", WITHIN)
def test_vmap_draws_once_or_for_each_or_refuses(name: str) -> None:
    x, f = _batch(), WITHIN[name]
    with pytest.raises(RuntimeError, match=r"randomness error mode.\n  What to do: pass randomness='different'"):
        vmap(f)(x)
    same = vmap(f, randomness="same")(x).tolist()
    assert same[0] == same[1] == same[2]
    different = vmap(f, randomness="different")(x).tolist()
    assert len({str(row) for row in different}) == 3
    assert np.shape(same) == np.shape(different) == (3, *np.shape(f(x[0])))


@pytest.mark.parametrize("name", OF_VARYING)
def test_vmap_draws_what_depends_on_a_tensor_that_varies(name: str) -> None:
    x, f = _batch(), OF_VARYING[name]
    for randomness, text in (("error", "randomness error mode"), ("same", "same randomness with a batched tensor")):
        with pytest.raises(RuntimeError, match=text):
            vmap(f, randomness=randomness)(x)
    found = vmap(f, randomness="different")(x)
    assert found.shape == (3, *f(x[0]).shape)
    assert found.dtype is f(x[0]).dtype


def test_rows_of_a_batch_have_their_own_parameters() -> None:
    weights = pullback.eye(3) + 0.0
    assert vmap(lambda w: pullback.multinomial(w, 1), randomness="different")(weights).tolist() == [[0], [1], [2]]
    assert vmap(pullback.bernoulli, randomness="different")(weights).tolist() == weights.tolist()
    means = pullback.tensor([[0.0], [100.0]])
    found = vmap(lambda m: pullback.normal(m, pullback.ones(3)), randomness="different")(means)
    assert found.shape == (2, 3)
    assert found[0].abs().max() < 10 < found[1].min()


def test_nested_vmaps_are_each_told() -> None:
    def draws(outer: str, inner: str) -> list[list[float]]:
        def f(x: Any) -> Any:
            return vmap(lambda y: pullback.rand(()), randomness=inner)(x)

        return vmap(f, randomness=outer)(pullback.zeros(2, 3)).tolist()  # type: ignore[no-any-return]

    def kinds(rows: list[list[float]]) -> tuple[int, int]:
        return len({str(r) for r in rows}), len(set(rows[0]))

    assert kinds(draws("different", "different")) == (2, 3)
    assert kinds(draws("same", "different")) == (1, 3)
    assert kinds(draws("different", "same")) == (2, 1)
    assert kinds(draws("same", "same")) == (1, 1)
    for outer, inner in (("error", "different"), ("same", "error")):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            draws(outer, inner)


def test_other_transforms_draw_as_if_they_were_not_there() -> None:
    def f(x: Any) -> Any:
        return (x * pullback.rand(3)).sum()

    pullback.manual_seed(1)
    expected = pullback.rand(3).tolist()
    pullback.manual_seed(1)
    assert grad(f)(pullback.ones(3)).tolist() == expected
    pullback.manual_seed(1)
    assert jvp(f, (pullback.ones(3),), (pullback.ones(3),))[1].item() == pytest.approx(sum(expected))
    rows = vmap(grad(f), randomness="different")(pullback.ones(2, 3)).tolist()
    assert rows[0] != rows[1]


def test_what_varies_cannot_be_written_to_what_does_not() -> None:
    outside = pullback.zeros(3)
    with pytest.raises(RuntimeError, match="inplace arithmetic is not possible on a tensor from outside"):
        vmap(lambda x: outside.normal_(), randomness="different")(pullback.zeros(2))
    assert outside.tolist() == [0.0] * 3


@pytest.mark.parametrize("name", ["normal_", "uniform_", "exponential_", "geometric_", "cauchy_", "log_normal_"])
def test_a_parameter_of_a_distribution_is_one_real_number(name: str) -> None:
    t = pullback.full((2, 3), 7.0)
    for refused in (pullback.tensor([0.5, 0.6]), pullback.tensor([0.5]), pullback.tensor(0.5, requires_grad=True)):
        with pytest.raises(TypeError, match=rf"^{name}\(\): expected \w+ to be a number, found Tensor of"):
            getattr(t, name)(refused)
    for refused in ("a", 1j, None):
        with pytest.raises(TypeError, match=rf"^{name}\(\): expected \w+ to be a number"):
            getattr(t, name)(refused)
    assert t.tolist() == [[7.0] * 3] * 2  # nothing was written
    for taken in (0.5, np.float32(0.5), pullback.tensor(0.5)):
        pullback.manual_seed(0)
        found = getattr(pullback.empty(3), name)(taken).tolist()
        pullback.manual_seed(0)
        assert found == getattr(pullback.empty(3), name)(0.5).tolist()


def test_poisson_of_one_number() -> None:
    pullback.manual_seed(0)
    found = pullback.poisson(pullback.tensor(4.0))
    assert (found.shape, found.dtype) == ((), pullback.float32)
    assert found.item() == int(found.item()) >= 0

"""bfloat16 in operations: values of every entry against torch's kernels, gradients, transforms, a step of training.

Its numbers have 8 bits: results agree to about 1 percent, where both round once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import grad, jvp, vmap
from pullback.ops import TABLE
from pullback.table.samples import DType, Sample
from tests.oracle import difference, resolve, tensors_of

pytest.importorskip("ml_dtypes")

B = pullback.bfloat16


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def converted(lib: ModuleType, sample: Sample) -> Sample:
    """A sample with its float32 arrays as tensors of bfloat16."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            t = lib.from_numpy(leaf.copy())
            return t.to(lib.bfloat16) if leaf.dtype == np.float32 else t
        return getattr(lib, leaf.name) if isinstance(leaf, DType) else leaf

    return sample.replaced(change)


def outcome(lib: ModuleType, name: str, made: Sample) -> Any:
    """The results of a call, each as its dtype and its values, or None where torch has no kernel."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sample = converted(lib, made)
            found = resolve(lib, name)(*sample.args, **sample.kwargs)
    except Exception as error:
        return error
    parts = [t.detach() for t in tensors_of(found) if isinstance(t, lib.Tensor)]
    return [(str(t.dtype).split(".")[1], np.array(t.tolist())) for t in parts]


# Entries in which torch rounds every step, refuses, or (bincount) promotes to float64.
ROUNDED = (
    "linalg.matrix_exp addbmm nn.functional.adaptive_avg_pool3d nn.functional.grid_sample bincount addcdiv stft"
).split()
NAMES = [n for n in TABLE if not n.rpartition(".")[2].startswith("_") and n not in ROUNDED and "sparse" not in n]


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_operations_give_what_torch_gives(torch: ModuleType, name: str) -> None:
    wrong = []
    for sample in TABLE[name].domain("samples")[:6]:
        made = sample.arrays("float32")
        theirs = outcome(torch, name, made)
        if isinstance(theirs, Exception):
            continue
        ours = outcome(pullback, name, made)
        if isinstance(ours, Exception):
            wrong.append(f"{sample}: {ours!r}")
            continue
        for (d, a), (e, b) in zip(ours, theirs, strict=True):
            same = a.dtype.kind not in "fc" or np.allclose(a, b, rtol=3e-2, atol=3e-2, equal_nan=True)
            wrong += [] if d == e and a.shape == b.shape and same else [f"{sample}: {d} {a}, expected {e} {b}"]
    assert not wrong, "\n".join(wrong)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda lib, x: (x * 2.5 + x / (x * x + 1)).sum(),
    "matrix product": lambda lib, x: (x @ x.T).square().mean(),
    "softmax": lambda lib, x: (x.softmax(-1) * x).sum(),
    "views": lambda lib, x: (x[1:].T.reshape(-1) * 3).sum(),
    "a write": lambda lib, x: (x * 1).mul_(2).index_fill_(0, lib.tensor([0]), 0.5).exp().sum(),
    "joined": lambda lib, x: lib.cat([x, x * 2], 1).std(),
    "float32 beside it": lambda lib, x: (x * lib.ones(2, 1)).float().sum(),
    "norm": lambda lib, x: lib.linalg.norm(x),
    "cross entropy": lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([0, 2])),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_torch(torch: ModuleType, name: str) -> None:
    found = []
    for lib in (pullback, torch):
        x = lib.tensor([[0.5, -1.25, 2.0], [1.0, 0.75, -0.5]]).to(lib.bfloat16).requires_grad_()
        y = FUNCTIONS[name](lib, x)
        y.backward()
        assert x.grad.dtype is lib.bfloat16
        found.append((str(y.dtype).split(".")[1], y.item(), np.array(x.grad.tolist())))
    (d, a, g), (e, b, h) = found
    assert d == e
    assert a == pytest.approx(b, rel=2e-2, abs=2e-2)
    np.testing.assert_allclose(g, h, rtol=4e-2, atol=4e-2)


def test_a_sum_of_many_is_not_lost() -> None:
    assert pullback.ones(1000, dtype=B).sum().item() == 1000.0
    assert pullback.ones(1000, dtype=B).sum(dtype=pullback.float32).dtype is pullback.float32


def test_what_looks_at_memory_does_not_copy_it() -> None:
    x = pullback.zeros(2, 3, dtype=B)
    x.T[0].fill_(1.5)
    x[1, 2] = 2.5
    x += 1
    assert x.tolist() == [[2.5, 1.0, 1.0], [2.5, 1.0, 3.5]]
    assert "dtype=pullback.bfloat16" in repr(x)
    assert x.is_floating_point()


VIEWS = {
    "split": lambda t: t.split(2)[1],
    "chunk": lambda t: t.chunk(2, 1)[1],
    "tensor_split": lambda t: t.tensor_split((1, 3))[1],
    "unbind": lambda t: t.unbind(1)[2],
    "unfold": lambda t: t.unfold(0, 2, 2)[1],
    "as_strided": lambda t: t.as_strided((2, 3), (6, 2), 1),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", VIEWS)
def test_pieces_and_windows_look_at_the_memory_of_the_tensor(torch: ModuleType, name: str) -> None:
    found = []
    for lib in (pullback, torch):
        x = (lib.arange(24.0).reshape(4, 6) / 8).to(lib.bfloat16)
        part = VIEWS[name](x)
        assert part._base is x
        part.detach().fill_(7.0)
        leaf = x.clone().requires_grad_()
        (VIEWS[name](leaf) ** 2).sum().backward()
        found.append((x.float(), leaf.grad.float()))
    assert not difference(*found)


def test_what_is_written_to_the_rows_of_a_loop_stays() -> None:
    x = pullback.zeros(3, 2, dtype=B)
    for i, row in enumerate(x):
        row.fill_(i)
    assert x.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_transforms() -> None:
    x = pullback.tensor([1.0, 2.0, 3.0], dtype=B)
    assert grad(lambda t: (t * t).sum())(x).tolist() == [2.0, 4.0, 6.0]
    assert jvp(lambda t: t * t, (x,), (x,))[1].tolist() == [2.0, 8.0, 18.0]
    assert vmap(lambda t: t * 2 + x)(pullback.ones(2, 3, dtype=B)).dtype is B
    per_sample = vmap(grad(lambda t: (t * t).sum()))(x.reshape(3, 1))
    assert (per_sample.dtype, per_sample.tolist()) == (B, [[2.0], [4.0], [6.0]])


def test_a_function_of_ones_own() -> None:
    class Double(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = pullback.ones(2, dtype=B, requires_grad=True)
    y = Double.apply(x)
    y.sum().backward()
    assert (y.dtype, x.grad.dtype, x.grad.tolist()) == (B, B, [2.0, 2.0])


def test_a_layer_is_trained() -> None:
    layer = pullback.nn.Linear(3, 1, dtype=B)
    optimiser = pullback.optim.SGD(layer.parameters(), lr=0.05, momentum=0.9)
    x = pullback.randn(64, 3).to(B)
    y = x @ pullback.tensor([[1.0], [-2.0], [0.5]], dtype=B)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = pullback.nn.functional.mse_loss(layer(x), y)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.02 * losses[0]
    assert layer.weight.dtype is B


@pytest.mark.torch
def test_infinities_become_the_largest_numbers_of_bfloat16(torch: ModuleType) -> None:
    given = [np.inf, -np.inf, np.nan, 1.0]
    for named in ({}, {"nan": 2.0}, {"posinf": 3.0}, {"neginf": None, "nan": 0.5}):
        ours, theirs = (lib.tensor(given, dtype=lib.bfloat16).nan_to_num(**named) for lib in (pullback, torch))
        assert ours.dtype is B
        assert ours.tolist() == theirs.tolist()
    x = pullback.tensor(given, dtype=B, requires_grad=True)
    pullback.nan_to_num(x, 0.0, 5.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 0, 0, 1]


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    [
        "L.matmul(b, x)",
        "L.matmul(x, b)",
        "L.dot(b[0], x[0])",
        "L.nn.functional.linear(b, x)",
        "L.nn.functional.conv1d(b[None], x[None])",
        "L.linalg.solve(b, x)",
    ],
)
def test_products_take_operands_of_one_dtype(torch: ModuleType, code: str) -> None:
    for lib in (pullback, torch):
        with pytest.raises(RuntimeError, match="type"):
            eval(code, {"L": lib, "b": lib.ones(2, 2).bfloat16(), "x": lib.ones(2, 2)})
    assert (pullback.ones(2).bfloat16() + pullback.ones(2)).dtype == pullback.float32


@pytest.mark.torch
def test_quotients_added_are_near_those_of_torch(torch: ModuleType) -> None:
    ours, theirs = (
        lib.addcdiv(*(lib.tensor([1.5, -2.25, n], dtype=lib.bfloat16) for n in (3.0, 0.5, 7.0)), value=0.5)
        for lib in (pullback, torch)
    )
    assert ours.dtype is pullback.bfloat16
    np.testing.assert_allclose(ours.float().numpy(), theirs.float().numpy(), rtol=2**-7)


def test_a_number_that_is_looked_for_is_rounded_as_one_that_is_compared() -> None:
    x = pullback.tensor([0.3, 1.0], dtype=pullback.bfloat16)
    for looked_for in (0.3, pullback.tensor(0.3)):
        assert pullback.isin(x, looked_for).tolist() == (x == looked_for).tolist() == [True, False]
    assert pullback.isin(0.3, x).tolist() is True
    assert pullback.isin(x, 0.3, invert=True).tolist() == [False, True]

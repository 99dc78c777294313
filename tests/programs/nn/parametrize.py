"""Parametrized modules: what is trained, what is used, what is refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import pullback
from pullback.nn.utils import parametrize as ours
from tests.side_by_side import programs

PROGRAMS, program = programs()


def parametrize(lib: Any) -> Any:
    return ours if lib is pullback else __import__("torch.nn.utils.parametrize", fromlist=["cached"])


def made(lib: Any, name: str) -> Any:
    """A parametrization: of a matrix that is symmetric, a product, a number ..."""

    class Symmetric(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).mT

    class Skew(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu(1) - x.triu(1).mT

        def right_inverse(self, x: Any) -> Any:
            return x.triu(1)

    class Scaled(lib.nn.Module):
        calls = 0

        def forward(self, x: Any) -> Any:
            type(self).calls += 1
            return x * 2

        def right_inverse(self, x: Any) -> Any:
            return x / 2

    class Product(lib.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a @ b

        def right_inverse(self, x: Any) -> Any:
            return x[:, :1], x[:1]

    class Number(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return 3

    class Row(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:1]

    class Double(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.double()

    class BackToNothing(Scaled):
        def right_inverse(self, x: Any) -> Any:
            return 3

    return {k: v for k, v in locals().items() if k != "lib"}[name]()


def linear(lib: Any) -> Any:
    layer = lib.nn.Linear(3, 3)
    with lib.no_grad():
        for i, p in enumerate(layer.parameters()):
            p.copy_(lib.tensor(np.random.default_rng(i).normal(size=tuple(p.shape)), dtype=lib.float32))
    return layer


def with_(lib: Any, *names: str, **options: Any) -> Any:
    layer = linear(lib)
    for name in names:
        assert parametrize(lib).register_parametrization(layer, "weight", made(lib, name), **options) is layer
    return layer


def trained(lib: Any, layer: Any) -> Any:
    """What a layer makes of an input, and the gradients of all that is trained."""
    x = lib.tensor([[1.0, -2.0, 0.5]], requires_grad=True)
    y = layer(x)
    (y * y).sum().backward()
    return y.detach(), x.grad, {name: p.grad for name, p in layer.named_parameters()}


@program
def one(lib: Any) -> Any:
    layer = with_(lib, "Symmetric")
    return trained(lib, layer), layer.weight.detach(), list(layer.state_dict()), repr(layer)


@program
def one_with_a_right_inverse(lib: Any) -> Any:
    layer = with_(lib, "Skew")
    before = layer.weight.detach()
    layer.weight = lib.arange(9.0).reshape(3, 3)
    return trained(lib, layer), before, layer.weight.detach()


@program
def several_after_one_another(lib: Any) -> Any:
    layer = with_(lib, "Skew", "Scaled")
    return trained(lib, layer), len(layer.parametrizations.weight), repr(layer.parametrizations)


@program
def in_terms_of_two(lib: Any) -> Any:
    layer = with_(lib, "Product")
    return trained(lib, layer), list(layer.state_dict()), [type(p).__name__ for p in layer.parameters()]


@program
def a_buffer(lib: Any) -> Any:
    norm = lib.nn.BatchNorm1d(2)
    parametrize(lib).register_parametrization(norm, "running_mean", made(lib, "Scaled"))
    return list(norm.state_dict()), [name for name, _ in norm.named_buffers()], norm.running_mean


@program
def what_is_parametrized(lib: Any) -> Any:
    layer, is_ = with_(lib, "Scaled"), parametrize(lib).is_parametrized
    names = [name for name, _ in layer.named_modules()]
    kind = parametrize(lib).type_before_parametrizations(layer).__name__
    return is_(layer), is_(layer, "weight"), is_(layer, "bias"), is_(linear(lib)), names, kind, type(layer).__name__


@program
def computed_once_while_cached(lib: Any) -> Any:
    layer = with_(lib, "Scaled", unsafe=True)
    counter = type(layer.parametrizations.weight[0])
    found = [counter.calls]
    layer.weight.sum() + layer.weight.sum()
    found.append(counter.calls)
    with parametrize(lib).cached():
        with parametrize(lib).cached():
            first = layer.weight
        same = layer.weight is first
        layer(lib.ones(1, 3))
        found.append(counter.calls)
    return found, same, layer.weight is first


@program
def removed(lib: Any) -> Any:
    layer = with_(lib, "Skew")
    trained_one = layer.parametrizations.weight.original
    assert parametrize(lib).remove_parametrizations(layer, "weight") is layer
    return layer.weight is trained_one, layer.weight.detach(), list(layer.state_dict()), type(layer).__name__


@program
def removed_with_the_original_left(lib: Any) -> Any:
    layer = with_(lib, "Skew")
    parametrize(lib).remove_parametrizations(layer, "weight", leave_parametrized=False)
    return trained(lib, layer), layer.weight.detach()


@program
def removed_in_terms_of_two(lib: Any) -> Any:
    layer = with_(lib, "Product")
    parametrize(lib).remove_parametrizations(layer, "weight")
    return trained(lib, layer), type(layer.weight).__name__


@program
def one_of_two_removed(lib: Any) -> Any:
    layer = with_(lib, "Scaled")
    parametrize(lib).register_parametrization(layer, "bias", made(lib, "Scaled"))
    parametrize(lib).remove_parametrizations(layer, "weight")
    return list(layer.state_dict()), parametrize(lib).is_parametrized(layer, "bias"), trained(lib, layer)


@program
def a_copy(lib: Any) -> Any:
    layer = with_(lib, "Scaled")
    twin = copy.deepcopy(layer)
    with lib.no_grad():
        layer.parametrizations.weight.original.zero_()
    return twin.weight.detach(), layer.weight.detach(), trained(lib, twin)


@program
def a_state_that_is_loaded(lib: Any) -> Any:
    layer, other = with_(lib, "Symmetric"), with_(lib, "Symmetric")
    with lib.no_grad():
        other.parametrizations.weight.original.mul_(3)
    layer.load_state_dict(other.state_dict())
    return layer.weight.detach()

"""Parametrized modules, side by side with PyTorch's: what is trained, what is used, what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.nn.utils import parametrize as ours
from tests.programs.nn.parametrize import linear, made, parametrize, with_

REFUSED: dict[str, Callable[[Any], Any]] = {
    "A parametrization must return a tensor. Got int.": lambda lib: with_(lib, "Number"),
    "may not change the shape of the tensor": lambda lib: with_(lib, "Row"),
    "may not change the dtype of the tensor": lambda lib: with_(lib, "Skew", "Double"),
    "'right_inverse' must return a Tensor or a Sequence": lambda lib: with_(lib, "BackToNothing"),
    "element with name 'weigth'": lambda lib: parametrize(lib).register_parametrization(
        linear(lib), "weigth", made(lib, "Skew")
    ),
    "does not have a parametrization on bias": lambda lib: parametrize(lib).remove_parametrizations(
        with_(lib, "Skew"), "bias"
    ),
    "in terms of a sequence of tensors": lambda lib: parametrize(lib).remove_parametrizations(
        with_(lib, "Product"), "weight", leave_parametrized=False
    ),
    "does not implement right_inverse": lambda lib: setattr(with_(lib, "Symmetric"), "weight", lib.ones(3, 3)),
    "only supported through state_dict": lambda lib: pickle.dumps(with_(lib, "Skew")),
}


@pytest.mark.torch
@pytest.mark.parametrize("words", REFUSED)
def test_what_torch_refuses_is_refused_in_its_words(words: str) -> None:
    torch = pytest.importorskip("torch")
    for lib in (pullback, torch):
        with pytest.raises((ValueError, RuntimeError), match=words) as caught:
            REFUSED[words](lib)
        if lib is pullback:
            kind = caught.type
    assert kind is caught.type


def test_a_refused_parametrization_has_changed_nothing() -> None:
    class Cut(pullback.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:1]

        def right_inverse(self, x: Any) -> Any:
            return x * 0

    layer = linear(pullback)
    before, weight = layer.weight.tolist(), layer.weight
    with pytest.raises(ValueError, match="may not change the shape"):
        ours.register_parametrization(layer, "weight", Cut())
    assert layer.weight is weight
    assert weight.tolist() == before
    assert not ours.is_parametrized(layer)


def test_a_value_of_another_shape_is_refused_where_it_is_assigned() -> None:
    layer = with_(pullback, "Skew")
    with pytest.raises(ValueError, match=r"of shape \[3, 3\], as before; found .*\[2, 2\]|expected .*\[3, 3\]"):
        layer.weight = pullback.ones(2, 2)

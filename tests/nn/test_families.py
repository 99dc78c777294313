"""Functions and layers that differ in their number of dimensions alone: one description, and each name complete."""

from __future__ import annotations

import copy
import doctest
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pullback
import pullback.nn.functional as F  # noqa: N812 - the field's name for it
from pullback import nn

FAMILIES = [
    "conv1d conv2d conv3d",
    "conv_transpose1d conv_transpose2d conv_transpose3d",
    "max_pool1d max_pool2d max_pool3d",
    "max_unpool1d max_unpool2d max_unpool3d",
    "avg_pool2d avg_pool3d",
    "lp_pool1d lp_pool2d lp_pool3d",
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d",
    "fractional_max_pool2d fractional_max_pool3d",
]
FUNCTIONS = " ".join([*FAMILIES, "avg_pool1d"]).split()

LAYERS: dict[str, tuple[Any, ...]] = {
    "Conv2d": (2, 3, 3),
    "ConvTranspose1d": (2, 3, 3),
    "MaxPool2d": (2,),
    "MaxUnpool3d": (2,),
    "AvgPool1d": (2,),
    "AvgPool3d": (2,),
    "LPPool2d": (2, 2),
    "AdaptiveMaxPool1d": (2,),
    "AdaptiveAvgPool2d": (2,),
    "FractionalMaxPool2d": (2, 3),
    "ZeroPad2d": (1,),
    "CircularPad1d": (1,),
    "ELU": (),
    "Softshrink": (),
    "LogSoftmax": (0,),
    "HingeEmbeddingLoss": (),
    "CrossEntropyLoss": (),
    "TransformerDecoderLayer": (4, 2, 8),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_one_signature(family: str) -> None:
    first, *others = (inspect.signature(getattr(F, name)) for name in family.split())
    assert "space" not in first.parameters
    assert all(other == first for other in others)


def test_the_average_in_one_dimension_takes_no_divisor() -> None:
    two = [*inspect.signature(F.avg_pool2d).parameters.values()]
    assert [*inspect.signature(F.avg_pool1d).parameters.values()] == two[:-1]
    assert two[-1].name == "divisor_override"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_family_has_its_name_and_an_example(name: str) -> None:
    function: Callable[..., Any] = getattr(F, name)
    assert function.__name__ == function.__qualname__ == name
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_python_s_errors_about_arguments_name_the_public_function(name: str) -> None:
    function: Callable[..., Any] = getattr(F, name)
    count = len(inspect.signature(function).parameters)
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'nonsense'"):
        function(pullback.ones(1, 1, 4, 4), nonsense=1)
    with pytest.raises(
        TypeError, match=rf"^{name}\(\) takes .*{count} positional arguments but {count + 1} were given"
    ):
        function(*[pullback.ones(1)] * (count + 1))


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_of_a_family_is_copied_and_pickled(name: str) -> None:
    layer = getattr(nn, name)(*LAYERS[name])
    assert repr(layer).startswith(f"{name}(")
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(twin) is type(layer)
        assert repr(twin) == repr(layer)
        assert [*twin.state_dict()] == [*layer.state_dict()]


def test_losses_with_the_same_settings_take_them_in_torch_s_order() -> None:
    assert [*inspect.signature(nn.CrossEntropyLoss).parameters] == [
        *("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing")
    ]
    assert [*inspect.signature(nn.BCEWithLogitsLoss).parameters] == [
        *("weight", "size_average", "reduce", "reduction", "pos_weight")
    ]
    margins = {
        name: inspect.signature(getattr(nn, name)).parameters["margin"].default
        for name in ("HingeEmbeddingLoss", "CosineEmbeddingLoss", "MarginRankingLoss")
    }
    assert margins == {"HingeEmbeddingLoss": 1.0, "CosineEmbeddingLoss": 0.0, "MarginRankingLoss": 0.0}


def test_a_packed_sequence_is_pickled_at_its_public_path() -> None:
    packed = nn.utils.rnn.pack_sequence([pullback.tensor([1, 2]), pullback.tensor([3])])
    written = pickle.dumps(packed)
    assert b"pullback.nn.utils.rnn" in written
    assert repr(pickle.loads(written)) == repr(packed)

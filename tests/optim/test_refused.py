"""A step or a state that is refused changes nothing: no parameter, no state, no option."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn, optim

ELEMENTWISE = ["Adadelta", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]
OPTIONS: dict[str, dict[str, Any]] = {"SGD": {"momentum": 0.9}}


def stepped(name: str) -> tuple[Any, list[Any]]:
    """An optimiser that has made a step, and its parameters, in two groups."""
    params = [pullback.tensor([1.0, 2.0], requires_grad=True) for _ in range(4)]
    made = getattr(optim, name)([{"params": params[:2]}, {"params": params[2:]}], lr=0.1, **OPTIONS.get(name, {}))
    for p in params:
        p.grad = pullback.tensor([0.5, -1.0])
    made.step()
    return made, params


def seen(optimiser: Any, params: list[Any]) -> Any:
    """All that a step or a state may change."""
    return [p.tolist() for p in params], shown(optimiser.state_dict())


def shown(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: shown(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [shown(value) for value in tree]
    return tree.tolist() if isinstance(tree, pullback.Tensor) else tree


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("name", [*ELEMENTWISE, "Adafactor"])
def test_a_sparse_gradient_in_the_last_place_changes_nothing(name: str, fresh: bool) -> None:
    optimiser, params = stepped(name)
    if fresh:
        optimiser = getattr(optim, name)(params, lr=0.1, **OPTIONS.get(name, {}))
    params[-1].grad = None
    params[-1].grad = pullback.sparse_coo_tensor(pullback.tensor([[0]]), pullback.tensor([1.0]), (2,))
    before = seen(optimiser, params)
    with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients"):
        optimiser.step()
    assert seen(optimiser, params) == before
    params[-1].grad = params[-1].grad.to_dense()
    optimiser.step()
    assert seen(optimiser, params)[0] != before[0]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_state_of_another_size_in_the_last_place_is_refused_and_changes_nothing(name: str) -> None:
    optimiser, params = stepped(name)
    saved = copy.deepcopy(optimiser.state_dict())
    arrays = [key for key, value in saved["state"][3].items() if getattr(value, "shape", ()) == (2,)]
    assert arrays
    saved["param_groups"][0]["lr"] = 7.0
    for key in arrays:
        wrong = copy.deepcopy(saved)
        wrong["state"][3][key] = pullback.ones(3)
        before = seen(optimiser, params)
        with pytest.raises(ValueError, match=rf"load_state_dict\(\): {key}: expected the shape .*\[2\], found \[3\]"):
            optimiser.load_state_dict(wrong)
        assert seen(optimiser, params) == before
    optimiser.load_state_dict(saved)
    assert optimiser.param_groups[0]["lr"] == 7.0


def test_a_sparse_entry_in_the_last_place_leaves_a_module_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    given = {key: pullback.ones_like(value) for key, value in before.items()}
    given["1.bias"] = given["1.bias"].to_sparse()
    with pytest.raises(RuntimeError, match=r'named "1.bias": expected a dense tensor, found a sparse tensor'):
        model.load_state_dict(given)
    for key, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key].numpy())

"""What someone who knows PyTorch tries on the first day, and where the answer was once surprising."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch


@pytest.mark.parametrize(
    ("layer", "shape"), [(torch.nn.Linear(3, 4), (2, 3)), (torch.nn.Conv1d(3, 4, 1), (2, 3, 5))], ids=["linear", "conv"]
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.float64], ids=str)
def test_an_input_of_another_dtype_is_what_to_convert(layer: Any, shape: tuple[int, ...], dtype: Any) -> None:
    with pytest.raises(RuntimeError, match=r"found Parameter of float32.*\n.*convert the input, as x\.to\(.*float32\)"):
        layer(torch.ones(shape, dtype=dtype))


def test_the_remedy_for_item_in_vmap_is_on_a_line_of_its_own() -> None:
    with pytest.raises(RuntimeError, match=r"not one value but many\.\n  What to do: ") as caught:
        torch.func.vmap(lambda x: x.item())(torch.ones(3))
    assert "\\n" not in str(caught.value)


def test_arguments_are_called_tensors_where_tensors_were_passed() -> None:
    with pytest.raises(RuntimeError, match=r"Tensor of float32\[3\], Tensor of float32\[4\]") as caught:
        torch.ones(3) + torch.ones(4)
    assert "ndarray" not in str(caught.value)


def test_what_is_missing_in_utils_says_so() -> None:
    with pytest.raises(
        AttributeError, match=r"'nothing': it is not in pullback, or not yet .dir\(pullback\.utils\) lists what is.\.$"
    ):
        torch.utils.nothing  # noqa: B018


def test_numpy_writes_a_tensor_into_an_array_where_no_gradient_is_lost() -> None:
    total = np.zeros(2)
    total += torch.tensor([1.0, 2.0])
    np.add(total, torch.ones(2, requires_grad=True).detach(), out=total)
    with torch.no_grad():
        total *= torch.full((2,), 2.0, requires_grad=True)
    assert type(total) is np.ndarray
    assert total.tolist() == [4.0, 6.0]


def test_numpy_refuses_to_write_where_a_gradient_is_lost() -> None:
    total, tensor = np.zeros(2), torch.zeros(2)
    with pytest.raises(TypeError, match=r"write a = a \+ t for a \+= t"):
        total += torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="cannot be written into out="):
        np.add(total, 1.0, out=tensor)
    with pytest.raises(TypeError, match="cannot be written into out="):
        torch.func.vmap(lambda t: np.add(1.0, t, out=total))(torch.ones(3, 2))
    assert total.tolist() == tensor.tolist() == [0.0, 0.0]


def test_a_target_that_is_one_hot_is_told_of() -> None:
    with pytest.raises(RuntimeError, match=r"as target.*\n.*target\.float\(\)"):
        torch.nn.functional.cross_entropy(torch.ones(2, 2), torch.tensor([[1, 0], [0, 1]]))


def test_logits_where_probabilities_belong() -> None:
    with pytest.raises(RuntimeError, match=r"pass sigmoid.* or give the logits to binary_cross_entropy_with_logits"):
        torch.nn.functional.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0]))
    with pytest.raises(RuntimeError, match="pass probabilities as target"):
        torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([2.0]))


def test_a_name_that_is_nearly_right() -> None:
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        torch.sotfmax  # noqa: B018
    with pytest.raises(AttributeError) as raised:
        torch.qwerty  # noqa: B018
    assert "did you mean" not in str(raised.value)


def test_distributions_say_what_there_is_instead() -> None:
    with pytest.raises(ImportError, match=r"scipy\.stats"):
        from pullback.compat.distributions import Normal  # noqa: F401
    with pytest.raises(ImportError, match=r"pullback\.normal"):
        torch.distributions.Normal  # noqa: B018

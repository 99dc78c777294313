"""Augmented assignments to tensors without axes, where a program for arrays has numbers: told where the two differ."""

from __future__ import annotations

import linecache
import operator
import subprocess
import sys
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func


def vector() -> Any:
    return pullback.tensor([1.0, 2.0, 3.0], dtype=pullback.float64, requires_grad=True) * 1


def told(program: Callable[..., Any], *args: Any) -> list[str]:
    """The lines that a program is told of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(*args)
    assert all("changes a tensor without axes in place" in str(one.message) for one in caught)
    return [linecache.getline(one.filename, one.lineno).strip() for one in caught]


# Programs that compute something else than with numbers. "shared" marks the line.


def an_element_is_summed_up(x: Any) -> Any:
    s = x[0]
    for i in range(1, 2):
        s += x[i]  # shared
    return s * x[0]


def the_old_value_is_compared(x: Any) -> Any:
    s = np.sum(x)
    old = s
    s += x[0]  # shared
    return s - old


def a_position_is_kept(x: Any) -> Any:
    i = np.argmax(x)
    j = i
    i -= 1  # shared
    return x[j]


def a_history_is_kept(x: Any) -> Any:
    error, history = np.sum(x), []
    history.append(error)
    error /= 2  # shared
    return history[0] + error


def an_attribute_is_kept(x: Any) -> Any:
    state = SimpleNamespace(time=np.sum(x))
    state.before = state.time
    state.time *= 2  # shared
    return state.time - state.before


def an_argument_is_changed(x: Any) -> Any:
    def doubled(s: Any) -> Any:
        s += s  # shared
        return s

    total = np.sum(x)
    return doubled(total) + total


def a_constant_is_kept(x: Any) -> Any:
    c = np.max(np.zeros_like(x))
    before = c
    c += 1  # shared
    return before * x


def an_item_is_kept(x: Any) -> Any:
    state, history = {"energy": 0.0}, []
    for i in range(3):
        state["energy"] += x[i] ** 2  # shared
        history.append(state["energy"])
    return sum(h * h for h in history)


def an_item_is_compared(x: Any) -> Any:
    numbers = [np.sum(x), np.sum(x)]
    old = numbers[1]
    numbers[1] *= 0.5  # shared
    return numbers[1] - old


def a_row_is_listed(x: Any) -> Any:
    row = [x[j] for j in range(3)]
    row[1] -= x[0]  # shared
    return row[1] * x[1]


def a_dict_is_copied(x: Any) -> Any:
    numbers = {"a": np.sum(x)}
    others = dict(numbers)
    others["a"] += 1  # shared
    return numbers["a"] - others["a"]


def items_of_items_are_kept(x: Any) -> Any:
    numbers = {"a": [np.sum(x)] * 2}
    numbers["a"][0] += x[0]  # shared
    return numbers["a"][0] - numbers["a"][1]


SHARED = [
    an_item_is_kept, an_item_is_compared, a_row_is_listed, a_dict_is_copied, items_of_items_are_kept,
    an_element_is_summed_up, the_old_value_is_compared, a_position_is_kept, a_history_is_kept, an_attribute_is_kept,
    an_argument_is_changed, a_constant_is_kept,
]  # fmt: skip


@pytest.mark.parametrize("program", SHARED, ids=lambda f: f.__name__)
def test_what_differs_from_numbers_is_told_at_its_line(program: Callable[..., Any]) -> None:
    (line,) = set(told(program, vector()))
    assert line.endswith("# shared")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = program(vector()).detach().numpy()
    assert not np.array_equal(found, program(np.array([1.0, 2.0, 3.0])))  # or it would not have to be told


def test_a_series_that_ends_where_it_is_exact_is_told() -> None:
    def exponential(x: Any) -> Any:
        s, old, term, k = x * 1.0, 0.0, x * 1.0, 1
        while abs(s - old) > 1e-10:
            old = s
            term = term * x / k
            s += term  # shared
            k += 1
        return s

    x = pullback.tensor(0.5, dtype=pullback.float64, requires_grad=True)
    assert set(told(exponential, x)) == {"s += term  # shared"}


# Programs that compute what they do with numbers.


def a_sum(x: Any) -> Any:
    s = np.sum(x)
    for i in range(3):
        s += x[i]
    s *= 2
    s -= x[0]
    return s


def a_sum_of_copies(x: Any) -> Any:
    s = x[0].copy()
    s += x[1]
    return s * x[0]


def elements(x: Any) -> Any:
    x = x * 1
    x[0] += 1
    x[1] *= x[0]
    x[1:] -= 1
    return x


def in_a_dict(x: Any) -> Any:
    sums = {"a": np.sum(x)}
    sums["a"] += x[0]
    return sums["a"]


def in_a_list(x: Any) -> Any:
    sums = [np.sum(x), x[1] * 2]
    for i in range(2):
        sums[i] += x[0]
        sums[i] -= 1
    return sums[0] * sums[1]


def in_a_nested_list(x: Any) -> Any:
    rows = [[x[i] * x[j] for j in range(3)] for i in range(3)]
    for i in range(3):
        rows[i][i] += 1
        rows[0][i] *= rows[i][i]
    return rows[0][2] + rows[1][1]


def an_attribute(x: Any) -> Any:
    state = SimpleNamespace(time=np.sum(x))
    state.time += 1
    state.time *= 2
    return state.time


def a_result_of_its_own(x: Any) -> Any:
    def raised(s: Any) -> Any:
        s += 1
        return s

    return raised(np.sum(x))


def a_number_of_numpys(x: Any) -> Any:
    s = np.float64(2.0)
    s += np.sum(x)
    s += 1
    return s


RIGHT = [
    a_sum,
    a_sum_of_copies,
    elements,
    in_a_dict,
    in_a_list,
    in_a_nested_list,
    an_attribute,
    a_result_of_its_own,
    a_number_of_numpys,
]


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_what_is_as_with_numbers_is_not_told(program: Callable[..., Any]) -> None:
    assert not told(program, vector())
    np.testing.assert_array_equal(program(vector()).detach().numpy(), program(np.array([1.0, 2.0, 3.0])))


def test_a_step_without_recording_is_not_told() -> None:
    w = pullback.tensor(2.0, requires_grad=True)
    parameters = [w]
    with pullback.no_grad():
        w -= 0.1
    assert parameters[0].item() == pytest.approx(1.9)


def test_a_loss_that_is_added_to_is_not_told() -> None:
    def trained() -> None:
        model = pullback.nn.Linear(3, 1)
        loss = pullback.nn.functional.mse_loss(model(pullback.ones(2, 3)), pullback.zeros(2, 1))
        loss += 0.1 * sum((p**2).sum() for p in model.parameters())
        loss /= 2
        loss.backward()

    assert not told(trained)


def test_what_says_that_it_writes_is_not_told() -> None:
    x = vector()
    s = x[0]
    total = np.sum(x)
    kept = [total]
    assert not told(lambda: (s.add_(1), total.mul_(2), operator.iadd(total, 1), total.__iadd__(1)))
    assert kept[0].item() == 14


def test_transforms_do_not_tell_a_sum() -> None:
    x = vector().detach()
    for transformed in (
        func.grad(a_sum),
        func.hessian(a_sum),
        lambda x: func.jvp(a_sum, (x,), (x,)),
        lambda x: func.vmap(a_sum)(x.expand(2, 3)),
        pullback.compile(a_sum, backend="numpy"),
    ):
        assert not told(transformed, x)
    assert told(func.grad(lambda x: an_element_is_summed_up(x * 1)), x) == ["s += x[i]  # shared"]


def test_a_compiled_function_is_told_of_nothing() -> None:
    x = vector().detach()
    assert not told(pullback.compile(lambda x: an_element_is_summed_up(x * 1), backend="numpy"), x)


FRAMES = """
import warnings
import torch
import torch._dynamo
import numpy as np
import pullback

torch._dynamo.eval_frame.set_eval_frame(False)  # as within a compiled function

def raised(s):
    s += 1
    return s

x = pullback.ones(3, requires_grad=True)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    raised(np.sum(x))
assert not said, said[0]

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    numbers = {"a": np.sum(x)}
    numbers["a"] += 1
    assert not said, said[0]
    kept = numbers["a"]
    numbers["a"] += 1
    kept += 1
assert len(said) == 2, said
"""


@pytest.mark.torch
def test_an_argument_is_not_told_where_frames_run_in_another_way() -> None:
    """The caller of a function then holds its arguments as well."""
    run = subprocess.run([sys.executable, "-c", FRAMES], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_method_that_does_the_same_is_named() -> None:
    s = np.sum(vector())
    old = s
    with pytest.warns(UserWarning, match=r"What to do: write s = s \+ t for s \+= t; or s\.pow_\(t\) where"):
        s **= 2
    assert old is s

"""Anomaly mode: which forward call a failing backward belongs to, and gradients that are NaN."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from side_by_side import Program, leaf, name_of, outcomes, programs

import pullback
from pullback.autograd import Function, detect_anomaly, set_detect_anomaly

PROGRAMS, program = programs()


class Broken(Function):
    """Its backward fails."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise ArithmeticError("broken")


def _forward(x: Any) -> Any:
    return Broken.apply(x * 2)  # the line that is to be named


def _warned(act: Callable[[], Any], error: type[Exception]) -> str:
    """The warnings of something that raises an error, and the error's message."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(error) as raised:
            act()
    return "\n".join([*(str(w.message) for w in caught), str(raised.value)])


@program
def nan_is_an_error(lib: Any) -> Any:
    x = leaf(lib, [0.0, 1.0])
    with lib.autograd.detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x.sqrt() * 0).sum().backward()


@program
def nan_is_none_where_it_is_not_looked_for(lib: Any) -> Any:
    x = leaf(lib, [0.0, 1.0])
    with lib.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).sum().backward()
    return str(x.grad[0].item())


@program
def the_modes_are_told(lib: Any) -> Any:
    def told() -> list[bool]:
        return [lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()]

    found = [told()]
    with lib.autograd.detect_anomaly():
        found.append(told())
        with lib.autograd.set_detect_anomaly(False):
            found.append(told())
        with lib.autograd.detect_anomaly(check_nan=False):
            found.append(told())
        found.append(told())
    lib.autograd.set_detect_anomaly(True, check_nan=False)
    found.append(told())
    lib.autograd.set_detect_anomaly(False)
    return [*found, told()]


@program
def an_error_in_a_hook_is_passed_on(lib: Any) -> Any:
    def hook(g: Any) -> Any:
        raise ArithmeticError

    x = leaf(lib, [1.0])
    y = x * 2
    y.register_hook(hook)
    with lib.autograd.detect_anomaly():
        y.sum().backward()


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_as_in_torch(program: Program) -> None:
    ours, theirs = outcomes(program)
    assert ours == theirs


def test_the_forward_call_is_named() -> None:
    x = pullback.ones(2, requires_grad=True)
    with detect_anomaly():
        y = _forward(x).sum()
        text = _warned(y.backward, ArithmeticError)
    assert "Error detected in BrokenBackward. Traceback of forward call that caused the error" in text
    assert "return Broken.apply(x * 2)  # the line that is to be named" in text
    assert f'File "{__file__}"' in text
    assert "pullback/autograd" not in text  # the library's own frames are left out


def test_a_nan_is_placed() -> None:
    x = pullback.tensor([1.0, 0.0, 4.0], requires_grad=True)
    with detect_anomaly():
        y = (x.sqrt() * 0).sum()
        text = _warned(y.backward, RuntimeError)
    assert "Function 'SqrtBackward0' returned nan values in its 0th output: 1 of 3 elements, first at index [1]" in text
    assert "The forward call:" in text
    assert __file__ in text
    assert x.grad is None


def test_without_forward_information_that_is_said() -> None:
    y = _forward(pullback.ones(2, requires_grad=True)).sum()
    with detect_anomaly():
        text = _warned(y.backward, ArithmeticError)
    assert "No forward pass information available" in text


def test_the_backward_call_that_made_a_node_is_named() -> None:
    x = pullback.tensor([0.0, 1.0], requires_grad=True)
    with detect_anomaly(check_nan=True):
        y = (x**1.5).sum()
        (g,) = pullback.autograd.grad(y, x, create_graph=True)
        (h,) = pullback.autograd.grad(g.sum(), x, create_graph=True)
        text = _warned(lambda: (h * 0).sum().backward(), RuntimeError)
    assert "Previous calculation was induced by" in text


def test_anomaly_mode_belongs_to_a_thread() -> None:
    found: list[bool] = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: found.append(pullback.is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert found == [False]


def test_the_mode_is_left_after_an_error() -> None:
    with pytest.raises(ArithmeticError), set_detect_anomaly(True):
        raise ArithmeticError
    assert not pullback.is_anomaly_enabled()
    x = pullback.ones(1, requires_grad=True)
    assert "origin" not in (x * 2).grad_fn.metadata

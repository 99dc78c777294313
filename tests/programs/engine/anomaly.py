"""Anomaly mode."""

from __future__ import annotations

import warnings
from typing import Any

from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


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
def a_nan_of_the_forward_that_no_gradient_arrives_at(lib: Any) -> Any:
    x = leaf(lib, [4.0, -1.0])
    with lib.autograd.detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib.where(x > 0, x.log(), lib.zeros(2)).sum().backward()
    return x.grad


@program
def a_nan_of_the_forward_that_reaches_the_gradient(lib: Any) -> Any:
    x = leaf(lib, [4.0, -1.0])
    with lib.autograd.detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x.sqrt().sum().backward()


@program
def an_error_in_a_hook_is_passed_on(lib: Any) -> Any:
    def hook(g: Any) -> Any:
        raise ArithmeticError

    x = leaf(lib, [1.0])
    y = x * 2
    y.register_hook(hook)
    with lib.autograd.detect_anomaly():
        y.sum().backward()

"""Anomaly mode."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any

from tests.side_by_side import function, leaf, programs, refused

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


def _warnings(call: Callable[[], Any]) -> list[str]:
    """The first sentences of the warnings, without the stacks of calls."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        refused(call)
    said = [re.sub(r"Traceback of forward call that (.*?):\n.*", r"(\1)", str(w.message), flags=re.S) for w in found]
    return [text.partition(" (Triggered")[0] for text in said if "torch.jit" not in text]


@program
def each_mode_that_is_made_warns(lib: Any) -> Any:
    def twice() -> None:
        mode = lib.autograd.detect_anomaly()
        for _ in range(2):
            with mode, lib.autograd.set_detect_anomaly(True):
                pass
        with lib.autograd.detect_anomaly(check_nan=False):
            pass

    return _warnings(twice)


@program
def the_warnings_of_an_error_in_a_second_derivative(lib: Any) -> Any:
    def fail(ctx: Any, g: Any) -> Any:
        raise ValueError

    Inner = function(lib, lambda ctx, x: x * 1, fail)
    Outer = function(lib, lambda ctx, x: x * 1, lambda ctx, g: Inner.apply(g))

    def run(of_forward: bool, of_backward: bool, of_second: bool) -> None:
        x = leaf(lib, [1.0, 2.0])
        with lib.autograd.set_detect_anomaly(of_forward):
            y = (Outer.apply(x * 2) ** 2).sum()
        with lib.autograd.set_detect_anomaly(of_backward):
            (g,) = lib.autograd.grad(y, x, create_graph=True)
        with lib.autograd.set_detect_anomaly(of_second):
            g.sum().backward()

    modes = itertools.product((False, True), repeat=3)
    return {str(given): _warnings(lambda given=given: run(*given)) for given in modes}

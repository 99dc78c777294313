"""The kind with reentrance, and backward passes inside of parts."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.programs.checkpoint.common import _checkpoint, plainly
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


# The kind with reentrance ---------------------------------------------------------------------------------------------


@program
def reentrance_takes_no_context(lib: Any) -> Any:
    return _checkpoint(lib)(lib.sin, leaf(lib, [1.0]), use_reentrant=True, context_fn=lambda: (None, None))


@program
def reentrance_takes_no_debug(lib: Any) -> Any:
    return _checkpoint(lib)(lib.sin, leaf(lib, [1.0]), use_reentrant=True, debug=True)


@program
def reentrance_follows_no_tensor_in_a_list(lib: Any) -> Any:
    a, b = leaf(lib, [2.0]), leaf(lib, [3.0])
    _checkpoint(lib)(lambda a, bs: a * bs[0], a, [b], use_reentrant=True).backward()
    return a.grad, b.grad


@program
def reentrance_with_inputs_to_backward(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    _checkpoint(lib)(lib.sin, x, use_reentrant=True).backward(inputs=[x])


@program
def reentrance_without_a_result_that_requires_grad(lib: Any) -> Any:
    _checkpoint(lib)(lambda x: x.sin().detach(), leaf(lib, [1.0]), use_reentrant=True).backward()


@program
def reentrance_twice_without_retaining(lib: Any) -> Any:
    y = _checkpoint(lib)(lib.sin, leaf(lib, [1.0]), use_reentrant=True)
    y.backward()
    y.backward()


@program
def reentrance_twice(lib: Any) -> Any:
    x, calls = leaf(lib, [1.0]), []
    y = _checkpoint(lib)(lambda x: (calls.append(1), x.sin())[1], x, use_reentrant=True)
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, len(calls)


@program
def reentrance_with_other_results_and_arguments(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y, k, none = _checkpoint(lib)(lambda x, n, m: (x.sin(), n, m), x, 3, None, use_reentrant=True)
    y.backward()
    return x.grad, k, none


@program
def the_mode_in_a_part_with_reentrance(lib: Any) -> Any:
    x, seen = leaf(lib, [1.0]), []
    _checkpoint(lib)(lambda x: (seen.append(lib.is_grad_enabled()), x.sin())[1], x, use_reentrant=True).backward()
    return seen


def a_part_in_another(lib: Any, outside: bool, inside: bool) -> Any:
    """Two parts, with reentrance or without: the gradient, and what ran in which order."""
    c, x, log = _checkpoint(lib), leaf(lib, [0.3, 0.4]), []

    def inner(x: Any) -> Any:
        log.append("inner")
        return x.sin().exp()

    def outer(x: Any) -> Any:
        log.append("outer")
        return c(inner, x, use_reentrant=inside).sin()

    c(outer, x, use_reentrant=outside).sum().backward()
    return x.grad, log


@program
def a_part_with_reentrance_in_one_without(lib: Any) -> Any:
    return a_part_in_another(lib, outside=False, inside=True)


@program
def a_part_without_reentrance_in_one_with(lib: Any) -> Any:
    return a_part_in_another(lib, outside=True, inside=False)


# Backward passes inside of parts --------------------------------------------------------------------------------------


class Kit:
    """Parts and gradients of functions, to be put into each other; `log` tells which part ran."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.log = lib, []

    def part(self, f: Any, name: str = "") -> Any:
        """A function as a part."""
        return lambda x: _checkpoint(self.lib)(lambda a: (self.log.append(name), f(a))[1], x, use_reentrant=False)

    def gradient(self, f: Any) -> Any:
        """The gradient of the sum of a function's elements, recorded."""

        def of(x: Any) -> Any:
            with self.lib.enable_grad():
                return self.lib.autograd.grad(f(x).sum(), x, create_graph=True)[0]

        return of


NESTED: dict[str, Any] = {
    "part_of_a_gradient": lambda k: k.part(k.gradient(plainly)),
    "gradient_of_a_part": lambda k: k.gradient(k.part(plainly)),
    "part_of_a_gradient_of_a_part": lambda k: k.part(k.gradient(k.part(plainly, "in")), "out"),
    "part_of_a_part_of_a_gradient": lambda k: k.part(k.part(k.gradient(plainly), "in"), "out"),
    "gradient_of_a_part_of_a_gradient": lambda k: k.gradient(k.part(k.gradient(plainly))),
    "part_of_two_gradients": lambda k: k.part(k.gradient(k.gradient(plainly))),
    "all_by_turns": lambda k: k.part(k.gradient(k.part(k.gradient(plainly), "in")), "out"),
    "gradient_of_two_parts": lambda k: k.gradient(k.part(k.part(plainly, "in"), "out")),
}


def _nested(lib: Any, name: str, early_stop: bool) -> Any:
    kit, x = Kit(lib), leaf(lib, [0.3, 0.4])
    build = NESTED[name](kit)
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    with lib.utils.checkpoint.set_checkpoint_early_stop(early_stop):
        y = build(x)
    y.sum().backward()
    return y, x.grad, kit.log


for _name in NESTED:
    for _early_stop in (True, False):

        def _program(lib: Any, name: str = _name, early_stop: bool = _early_stop) -> Any:
            return _nested(lib, name, early_stop)

        _program.__name__ = f"{_name}_{'early_stop' if _early_stop else 'to_the_end'}"
        program(_program)

"""What hooks may return and write: replacements, refused results in PyTorch's words, and writes to the gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tests.side_by_side import constant, function, leaf, programs, refused, says

PROGRAMS, program = programs()


def _through(lib: Any, register: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    """A backward pass through two operations, with hooks that `register` puts on the leaf and on the middle."""
    x = leaf(lib, [1.0, 2.0])
    y = x * 3
    register(x, y)

    def run() -> Any:
        (y * 2).sum().backward()
        return x.grad

    return run


def _answer(lib: Any, register: Callable[[Any, Any], Any], phrase: str) -> Any:
    run, found = _through(lib, register), []
    error = refused(lambda: found.append(run()))
    return says(_through(lib, register), phrase) if error else found[0]


@program
def of_a_tensor(lib: Any) -> Any:
    def on(result: Any, phrase: str) -> list[Any]:
        return [
            _answer(lib, lambda x, y: x.register_hook(lambda g: result), phrase),
            _answer(lib, lambda x, y: y.register_hook(lambda g: result), phrase),
        ]

    return {
        "a number": on(5, "expected Variable, but hook returned 'int'"),
        "a list": on([1.0, 2.0], "expected Variable, but hook returned 'list'"),
        "a tuple": on((constant(lib, [1.0, 2.0]),), "expected Variable, but hook returned 'tuple'"),
        "another shape": on(constant(lib, [1.0]), "hook '"),
        "another dtype": on(constant(lib, [1.0, 2.0], "float32"), "hook '"),
        "a tensor": on(constant(lib, [7.0, 8.0]), ""),
    }


@program
def after_accumulation(lib: Any) -> Any:
    def on(result: Any, phrase: str) -> Any:
        return _answer(lib, lambda x, y: x.register_post_accumulate_grad_hook(lambda x: result), phrase)

    return {
        "a number": on(5, "expected Variable, but hook returned 'int'"),
        "a tensor": on(constant(lib, [1.0, 2.0]), "Tensor post accumulate grad hooks should return None"),
    }


@program
def of_a_node(lib: Any) -> Any:
    new = constant(lib, [7.0, 8.0])

    def on(result: Any, phrase: str) -> list[Any]:
        return [
            _answer(lib, lambda x, y: y.grad_fn.register_hook(lambda i, o: result), phrase),
            _answer(lib, lambda x, y: y.grad_fn.register_prehook(lambda o: result), phrase),
        ]

    return {
        "a number": on(5, "expected tuple, but hook returned 'int'"),
        "a string in a tuple": on(("a",), ""),
        "two": on((new, new), "has returned an incorrect number"),
        "none": on((), "has returned an incorrect number"),
        "a tensor alone": on(new, "expected tuple, but hook returned 'Tensor'"),
        "a list": on([new], "expected tuple, but hook returned 'list'"),
    }


@program
def a_gradient_for_none(lib: Any) -> Any:
    F = function(lib, lambda ctx, x: x * 1, lambda ctx, g: None)
    x = leaf(lib, [1.0, 2.0])
    y = F.apply(x)
    y.grad_fn.register_hook(lambda i, o: (constant(lib, [1.0, 2.0]),))
    return says(y.sum().backward, "can't replace a None gradient with a non-None value")


class _Twice:
    def __call__(self, g: Any) -> Any:
        return g * 2

    def of_node(self, inputs: Any, outputs: Any) -> Any:
        return tuple(g * 5 for g in inputs if g is not None) + (None,) * sum(g is None for g in inputs)


@program
def callables_of_every_kind(lib: Any) -> Any:
    def register(x: Any, y: Any) -> None:
        x.register_hook(_Twice())
        x.register_hook(_Twice().__call__)
        x.register_hook(functools.partial(lambda scale, g: g * scale, 3))
        y.grad_fn.register_hook(_Twice().of_node)
        x.register_hook(lib.neg)

    return _through(lib, register)()


@program
def a_class_as_a_hook(lib: Any) -> Any:
    return says(_through(lib, lambda x, y: x.register_hook(dict)), "")


@program
def a_hook_that_writes_to_the_gradient(lib: Any) -> Any:
    def found(on_middle: bool) -> Any:
        x = leaf(lib, [1.0, 2.0])
        y = x * 3
        (y if on_middle else x).register_hook(lambda g: g.mul_(2))
        (y * 2 + y.view(2)).sum().backward(retain_graph=True)
        first = x.grad.clone()
        return first, lib.autograd.grad((y * 2).sum(), [x, y], retain_graph=True)

    return found(True), found(False)


@program
def a_hook_that_writes_over_views(lib: Any) -> Any:
    x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    rows = y.view(4)
    seen = []
    rows.register_hook(lambda g: (seen.append(g.clone()), g.zero_())[1])
    y.register_hook(lambda g: g.add_(1))
    captured = lib.autograd.grad((rows[:2] * y[0]).sum() + y.sum(), [x, y, rows], retain_graph=True)
    return captured, seen


@program
def order_of_the_hooks_of_a_leaf(lib: Any) -> Any:
    told: list[str] = []

    def say(word: str) -> Any:
        return lambda *given: told.append(word)

    a, b = leaf(lib, [1.0]), leaf(lib, [2.0])
    nodes = {name: t.view_as(t).grad_fn.next_functions[0][0] for name, t in (("a", a), ("b", b))}
    for name, t in (("a", a), ("b", b)):
        t.register_post_accumulate_grad_hook(say(f"{name} accumulated"))
        t.register_hook(say(f"{name}"))
        t.register_post_accumulate_grad_hook(say(f"{name} accumulated, second"))
        nodes[name].register_hook(say(f"{name} after its node"))
        nodes[name].register_prehook(say(f"{name} before its node"))
    c = a * b
    d = c * a
    c.register_hook(say("c"))
    d.register_hook(say("d"))
    d.sum().backward()
    return told

"""Hooks around the call of a module, and on its backward pass."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tests.programs.nn.common import affine, error_of, words_of
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()
COMPLETE = True


# hooks around a call --------------------------------------------------------------------------------------------------


@program
def hooks_see_and_replace(lib: Any) -> Any:
    m, seen = affine(lib)(), []
    x = lib.ones(2)

    def note(name: str, result: Any = None) -> Callable[..., Any]:
        def hook(module: Any, *args: Any) -> Any:
            seen.append((name, module is m, args))
            return result

        return hook

    handles = [
        m.register_forward_pre_hook(note("pre 1", (x * 2,))),
        m.register_forward_pre_hook(note("pre 2", x * 3)),  # one argument, without a tuple
        m.register_forward_pre_hook(note("pre 0"), prepend=True),
        m.register_forward_pre_hook(note("pre kwargs", ((x * 5,), {"scale": 7.0})), with_kwargs=True),
        m.register_forward_hook(note("post 1")),
        m.register_forward_hook(note("post 2", x * 100)),
        m.register_forward_hook(note("post 0"), prepend=True),
        m.register_forward_hook(note("post kwargs"), with_kwargs=True),
    ]
    found = [m(x, scale=2.0)]
    for handle in handles[1::2]:
        handle.remove()
    found.append(m(x, scale=2.0))
    for handle in handles:
        handle.remove()
    return [*found, m(x, scale=2.0), seen]


@program
def what_a_pre_hook_must_return(lib: Any) -> Any:
    found = []
    for result in (3, (1,), [(), {}], ((1,), {}, 2)):
        m = lib.nn.Identity()
        m.register_forward_pre_hook(lambda module, args, kwargs, result=result: result, with_kwargs=True)
        found.append(words_of(lambda m=m: m(lib.ones(1))))
    return found


@program
def a_hook_that_is_always_called(lib: Any) -> Any:
    class Bad(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            raise KeyError("forward")

    seen: list[Any] = []
    found = []
    for m in (Bad(), lib.nn.Identity()):
        m.register_forward_hook(lambda module, args, result: seen.append("first"))

        def second(module: Any, args: Any, result: Any) -> Any:
            seen.append(("second", args, result))
            if result is not None:
                raise ValueError("hook")
            return 3

        m.register_forward_hook(second, always_call=True)
        m.register_forward_hook(
            lambda m, args, kw, r: seen.append(("third", args, kw, r)), always_call=True, with_kwargs=True
        )
        found.append(error_of(lambda m=m: m(lib.ones(1))))
    return [found, seen]


# hooks on the backward pass -------------------------------------------------------------------------------------------


def watched(lib: Any, m: Any, seen: list[Any], change: Any = None, pre_change: Any = None) -> Any:
    """The module with hooks that note the gradients they see, and return what a function makes of them."""

    def hook(module: Any, grad_inputs: Any, grad_outputs: Any) -> Any:
        seen.append((type(module).__name__, grad_inputs, grad_outputs))
        return change and change(grad_inputs)

    def pre_hook(module: Any, grad_outputs: Any) -> Any:
        seen.append((type(module).__name__, grad_outputs))
        return pre_change and pre_change(grad_outputs)

    m.register_full_backward_pre_hook(pre_hook)
    m.register_full_backward_hook(hook)
    return m


@program
def gradients_pass_the_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    m = lib.nn.Sequential(affine(lib)(), affine(lib)()).double()
    for c in m.modules():
        watched(lib, c, seen)
    x = leaf(lib, [1.0, 2.0])
    m(x).sum().backward()
    return [x.grad, [p.grad for p in m.parameters()], seen]


@program
def gradients_are_replaced_by_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    m = affine(lib)().double()
    watched(lib, m, seen, change=lambda gs: tuple(g * 10 for g in gs), pre_change=lambda gs: tuple(g * 3 for g in gs))
    watched(lib, m, seen, change=lambda gs: [gs[0] + 1])
    m.register_full_backward_hook(lambda *args: seen.append("first"), prepend=True)
    m.register_full_backward_pre_hook(lambda *args: seen.append("first of all"), prepend=True)
    x = leaf(lib, [1.0, 2.0])
    m(x).sum().backward()
    return [x.grad, m.weight.grad, m.bias.grad, seen]


class Both:
    """Makes modules of several inputs and outputs."""

    @staticmethod
    def of(lib: Any, fn: Callable[..., Any]) -> Any:
        class Module(lib.nn.Module):
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                return fn(*args, **kwargs)

        return Module()


@program
def several_inputs_and_outputs(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, Both.of(lib, lambda a, n, b, c, i: (a * n, b * 3, "text", c, i)), seen)
    a, b, c = leaf(lib, [1.0]), leaf(lib, [2.0]), constant(lib, [3.0])
    results = m(a, 4.0, b, c, lib.tensor([1]))
    (results[0] * 5).sum().backward(retain_graph=True)
    (results[1] * 5).sum().backward()
    return [a.grad, b.grad, results[2:], results[0].grad_fn, seen]


@program
def inputs_that_have_no_gradients(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, affine(lib)().double(), seen)
    m(constant(lib, [1.0, 2.0])).sum().backward()
    with lib.no_grad():
        m(leaf(lib, [1.0, 2.0]))
    m(x=leaf(lib, [1.0, 2.0])).sum().backward()  # only positional arguments have theirs
    return [m.weight.grad, seen]


@program
def what_a_backward_hook_must_return(lib: Any) -> Any:
    found: list[Any] = []
    for change, pre_change in (
        (lambda gs: (), None),
        (lambda gs: (*gs, None), None),
        (None, lambda gs: ()),
        (lambda gs: (gs[0].sum(),), None),
        (None, lambda gs: (gs[0].sum(),)),
        (lambda gs: (None,), None),
    ):
        for x in (leaf(lib, [1.0, 2.0]), constant(lib, [1.0, 2.0])):
            m = watched(lib, affine(lib)().double(), [], change, pre_change)
            error = error_of(lambda m=m, x=x: m(x).sum().backward())
            # of a pass that has failed, torch keeps the gradients of leaves that were done; see docs/differences.md
            found.append((error, x.grad, m.weight.grad if error is None else None))
    return found


@program
def hooks_and_higher_derivatives(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, Both.of(lib, lambda x: x * x * x), seen, change=lambda gs: (gs[0] * 2,))
    x = leaf(lib, [2.0])
    (g,) = lib.autograd.grad(m(x), x, create_graph=True)
    seen = seen[:]
    (h,) = lib.autograd.grad(g, x)
    return [g.detach(), h, seen]


@program
def hooks_in_two_passes_over_one_graph(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, affine(lib)().double(), seen)
    x = leaf(lib, [1.0, 2.0])
    y = m(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return [x.grad, seen]


@program
def hooks_and_results_that_are_no_tensors(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, Both.of(lib, lambda x: {"y": x * 2}), seen)
    x = leaf(lib, [1.0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        m(x)["y"].sum().backward()
    return [x.grad, seen, [w.category.__name__ for w in said]]


@program
def hooks_and_named_tuples(lib: Any) -> Any:
    Pair = namedtuple("Pair", "a b")
    m = watched(lib, Both.of(lib, lambda x: Pair(x * 2, x * 3)), [])
    y = m(leaf(lib, [1.0]))
    return [type(y).__name__, y.a, y.b]


@program
def what_is_hooked_may_not_be_written_in_place(lib: Any) -> Any:
    x = leaf(lib, [1.0]) * 1
    m = watched(lib, Both.of(lib, lambda x: x.mul_(2)), [])
    n = watched(lib, Both.of(lib, lambda x: x * 2), [])
    return [error_of(lambda: m(x)), error_of(lambda: n(x).mul_(2))]

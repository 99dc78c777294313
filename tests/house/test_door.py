"""One door for nesting: `apply` flattens values that nest and nests them again, and nothing between sees a container.

A Function with arguments and results that nest is run eagerly and under every transform. Its containers are of classes
of their own, and no frame of the heart, the levels or the table may hold one, but for the door itself. Every context
that its methods get was begun as all nodes are. The watcher is itself checked, against planted faults.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import Function, forward_ad
from pullback.autograd.function import FunctionNode, once_differentiable
from pullback.interpreters.dual import Jvp
from pullback.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

LIBRARY = Path(pullback.__file__).parent
BETWEEN = tuple(str(LIBRARY / room) for room in ("autograd", "interpreters", "table", "utils/selective.py"))

# Where values go in and out.
DOOR = {
    "autograd/structure.py",
    "interpreters/user_methods.py",
    "autograd/function.py:apply",
    "autograd/function.py:_enter",
    "autograd/function.py:_under_levels",
    "autograd/function.py:_leave",
    "autograd/function.py:_forward",
    "autograd/contract.py:Contract.bind",
}
# A decorator of the user's backward, and the function that runs such a backward for each of a batch: the user's side.
OF_BACKWARD = {
    f"{at}{inner}"
    for at in (
        "autograd/function.py:once_differentiable.<locals>.",
        "interpreters/functions.py:backward_of_each",
        "interpreters/batched.py:Vmap.each",
        "table/levels.py:Level.each",
    )
    for inner in ("", "backward", "once", ".<locals>.stacked", ".<locals>.<lambda>", ".<locals>.<listcomp>")
}


class Box(dict[str, Any]):
    """The container of arguments."""


class Row(list[Any]):
    """The container of results."""


def holds(value: Any) -> bool:
    """Whether a value is one of our containers, or a plain one in which there is one."""
    if isinstance(value, (Box, Row)):
        return True
    if type(value) is dict:
        value = value.values()
    return type(value) in (list, tuple, type({}.values())) and any(isinstance(part, (Box, Row)) for part in value)


def sightings(work: Callable[[], Any]) -> set[str]:
    """Where, outside the door, a frame held one of our containers while `work` ran."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event != "return" or not code.co_filename.startswith(BETWEEN):
            return
        path = Path(code.co_filename).relative_to(LIBRARY).as_posix()
        place = f"{path}:{code.co_qualname}"
        if {path, f"{path}:{code.co_name}", place} & DOOR or place in OF_BACKWARD:
            return
        held = [name for name, value in frame.f_locals.items() if holds(value)]
        found.update(f"{place}: {name}" for name in held)
        if holds(arg):
            found.add(f"{place}: its result")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


# A Function of every form --------------------------------------------------------------------------------------------

CONTEXTS: list[Any] = []  # those that the user's methods have got


NOTING = [True]  # not in a function that is compiled, which sets nothing outside


def note(ctx: Any) -> None:
    if NOTING[0] and isinstance(ctx, FunctionNode):
        CONTEXTS.append(ctx)


def product(tree: Any, scale: Any) -> Row:
    return Row([tree["a"] * tree["b"], (tree["a"] * scale,)])


class Combined(Function):
    """Forward takes ctx."""

    @staticmethod
    def forward(ctx: Any, tree: Any, *, scale: Any) -> Any:
        note(ctx)
        ctx.save_for_backward(tree["a"], tree["b"], scale["s"])
        return product(tree, scale["s"])

    @staticmethod
    def backward(ctx: Any, row: Any) -> Any:
        note(ctx)
        a, b, s = ctx.saved_tensors
        g, (h,) = row
        return Box(a=g * b + h * s, b=g * a), Box(s=h * a)

    @staticmethod
    def jvp(ctx: Any, tree: Any, scale: Any) -> Any:
        note(ctx)
        a, b, s = ctx.saved_tensors
        return Row([tree["a"] * b + a * tree["b"], (tree["a"] * s + a * scale["s"],)])


class Separate(Function):
    """Forward takes no ctx; vmap reads the methods."""

    generate_vmap_rule = True

    @staticmethod
    def forward(tree: Any, *, scale: Any) -> Any:
        return product(tree, scale["s"])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        note(ctx)
        tree, scale = inputs
        assert isinstance(output, Row)
        assert isinstance(output[1], tuple)
        ctx.save_for_backward(tree["a"], tree["b"], scale["s"])
        ctx.save_for_forward(tree["a"], tree["b"], scale["s"])

    backward = staticmethod(Combined.backward)
    jvp = staticmethod(Combined.jvp)


class Own(Separate):
    """It has a vmap of its own."""

    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: Any, tree: Any, scale: Any) -> Any:
        dims, of_scale = in_dims
        assert isinstance(dims, Box)
        assert isinstance(of_scale, Box)
        assert of_scale["s"] is None
        a, b = (tree[k] if dims[k] == 0 else tree[k].expand(info.batch_size, *tree[k].shape) for k in "ab")
        first, second = Own.apply(Box(a=a, b=b), scale=scale)
        return Row([first, second]), Row([0, (0,)])


class Once(Separate):
    """Its backward computes outside the library."""

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, row: Any) -> Any:
        a, b, s = (t.numpy() for t in ctx.saved_tensors)
        g, h = row[0].numpy(), row[1][0].numpy()
        return Box(
            a=pullback.from_numpy(g * b + h * s), b=pullback.from_numpy(g * a)
        ), Box(s=pullback.from_numpy(h * a))  # fmt: skip


# What is run ----------------------------------------------------------------------------------------------------------


def points() -> tuple[Any, Any, Any]:
    return tuple(pullback.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 5.0], [7.0, 11.0]))


def loss(function: type[Function]) -> Callable[..., Any]:
    def call(a: Any, b: Any, s: Any) -> Any:
        first, (second,) = function.apply(Box(a=a, b=b), scale=Box(s=s))
        return (first * second).sum()

    return call


def plain(a: Any, b: Any, s: Any) -> Any:
    """The same in operations."""
    return (a * b * (a * s)).sum()


def detached() -> tuple[Any, Any, Any]:
    return tuple(t.detach() for t in points())


def eager(f: Any) -> Any:
    values = points()
    f(*values).backward()
    return [t.grad for t in values]


def second_order(f: Any) -> Any:
    values = points()
    (g,) = pullback.autograd.grad(f(*values), values[:1], create_graph=True)
    return pullback.autograd.grad(g.sum(), values)


def reverse(f: Any) -> Any:
    return func.grad(f, (0, 1, 2))(*detached())


def reverse_of_reverse(f: Any) -> Any:
    values = detached()
    return func.grad(lambda a: func.grad(f)(a, *values[1:]).sum())(values[0])


def forward(f: Any) -> Any:
    return func.jvp(f, detached(), detached())


def forward_of_forward(f: Any) -> Any:
    values = detached()
    return func.jvp(lambda *v: func.jvp(f, v, values)[1], values, values)


def forward_of_reverse(f: Any) -> Any:
    return func.hessian(f)(*detached())


def forward_of_tracked(f: Any) -> Any:
    values = points()
    with forward_ad.dual_level():
        out = f(forward_ad.make_dual(values[0], values[1].detach()), *values[1:])
        tangent = forward_ad.unpack_dual(out).tangent
        return pullback.autograd.grad(tangent, values)


def batched(f: Any) -> Any:
    a, b, s = detached()
    return func.vmap(f, (0, None, None))(pullback.stack([a, b, s]), b, s)


def batched_reverse(f: Any) -> Any:
    a, b, s = detached()
    return func.vmap(func.grad(f, (0, 1)), (0, 0, None))(pullback.stack([a, b]), pullback.stack([b, s]), s)


def jacobians(f: Any) -> Any:
    a, b, s = detached()
    return func.jacrev(func.jacfwd(f))(a, b, s)


def rows(f: Any) -> Any:
    return func.jacrev(f)(*detached())


def kept(f: Any) -> Any:
    values = points()
    chosen = lambda: create_selective_checkpoint_contexts([pullback.mul])  # noqa: E731
    checkpoint(f, *values, use_reentrant=False, context_fn=chosen).backward()
    return [t.grad for t in values]


def traced(f: Any) -> Any:
    compiled, values = pullback.compile(f), points()
    NOTING[0] = False
    try:
        compiled(*values).backward()
    finally:
        NOTING[0] = True
    return [t.grad for t in values]


EVERYWHERE = [
    eager, second_order, reverse, reverse_of_reverse, forward, forward_of_forward, forward_of_reverse,
    forward_of_tracked, kept, traced,
]  # fmt: skip
BATCHED = [batched, batched_reverse, jacobians]
CASES = [
    *((Combined, run) for run in EVERYWHERE),
    *((Separate, run) for run in EVERYWHERE + BATCHED),
    *((Own, run) for run in EVERYWHERE + BATCHED[:2]),
    *((Once, run) for run in (eager, reverse, rows)),
]


def flat(found: Any) -> Iterator[Any]:
    for part in found if isinstance(found, (tuple, list)) else [found]:
        if isinstance(part, (tuple, list)):
            yield from flat(part)
        else:
            yield part.detach().numpy()


@pytest.mark.parametrize(("function", "run"), CASES, ids=lambda v: v.__name__)
def test_nothing_between_sees_a_container(function: type[Function], run: Callable[[Any], Any]) -> None:
    found: list[Any] = []
    CONTEXTS.clear()
    assert sightings(lambda: found.append(run(loss(function)))) == set()
    for got, expected in zip(flat(found[0]), flat(run(plain)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert CONTEXTS or function is Once or run is traced
    for ctx in CONTEXTS:
        assert isinstance(ctx._order, int)
        assert ctx._hooks is None
        assert len(ctx._edges) == 3
        assert len(ctx.needs_input_grad) == 2


def test_a_context_of_a_transform_takes_hooks() -> None:
    class Watched(Separate):
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.register_hook(lambda sent, got: None).remove()
            Separate.setup_context(ctx, inputs, output)

    for run in (reverse, forward, batched):
        run(loss(Watched))


# The watcher, against planted faults ----------------------------------------------------------------------------------

PLANTED = """
def custom(self, node, operands, enabled):
    {body}
    return custom_before(self, node, operands, enabled)
"""


@pytest.mark.parametrize(
    "body",
    [
        "values = node._door.arguments.nested(operands)",
        "(lambda value: None)(*node._door.arguments.nested(operands)[:1])",
        "(lambda **named: None)(tree=node._door.arguments.nested(operands)[0])",
        "(lambda: node._door.arguments.nested(operands))()",
    ],
)
def test_a_level_that_nests_is_found(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {"custom_before": Jvp.custom}
    exec(compile(PLANTED.format(body=body), str(LIBRARY / "interpreters" / "planted.py"), "exec"), names)
    monkeypatch.setattr(Jvp, "custom", names["custom"])
    (found, *_) = sightings(lambda: forward(loss(Separate)))
    assert found.startswith("interpreters/planted.py:custom")
    assert sightings(lambda: reverse(loss(Separate))) == set()


def test_a_door_that_is_not_on_the_list_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "DOOR", DOOR - {"interpreters/user_methods.py"})
    assert sightings(lambda: forward(loss(Separate))) == {
        "interpreters/user_methods.py:call_jvp: pushed",
    }

"""Function: the plug-in interface, clause by clause.

What a node of one's own can take and return, what its context remembers, and what happens on the way back. Refusals at
the definition, and of what backward returns, are in `test_definition.py`; when memory comes back, in `test_memory.py`.
The programs at the end run in PyTorch, too, and must come to the same.
"""

from __future__ import annotations

import gc
import inspect
import traceback
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any, ClassVar

import numpy as np
import pytest

import pullback
from pullback.autograd import Function, grad
from pullback.autograd.function import once_differentiable
from tests.side_by_side import constant, leaf

Pair = namedtuple("Pair", "a b")


def double(values: Any) -> pullback.Tensor:
    return constant(pullback, values)


def wanting(values: Any) -> pullback.Tensor:
    return leaf(pullback, values)


class Product(Function):
    """x * y, which notes what it needs."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x


class Scaled(Function):
    """x * factor ** power: arguments with defaults and keywords."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: Any = 2.0, *, power: int = 1) -> Any:
        ctx.slope = factor**power
        return x * ctx.slope

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.slope, None, None


class ScaledApart(Function):
    """The same in the other style, where forward only computes."""

    @staticmethod
    def forward(x: Any, factor: Any = 2.0, *, power: int = 1) -> Any:
        return x * factor**power

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.inputs, ctx.output_was = inputs[1:], output is not None
        ctx.slope = inputs[1] ** inputs[2]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.slope, None, None


class Twice(Function):
    """Two outputs, and backward notes what it was given."""

    @staticmethod
    def forward(ctx: Any, x: Any, materialize: bool = True) -> Any:
        ctx.set_materialize_grads(materialize)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.given = a, b
        return (0 if a is None else a * 2) + (0 if b is None else b * 3), None


# apply: how arguments are given ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [Scaled, ScaledApart])
@pytest.mark.parametrize(
    ("args", "kwargs", "slope"),
    [
        ((), {}, 2.0),
        ((3.0,), {}, 3.0),
        ((), {"factor": 3.0}, 3.0),
        ((3.0,), {"power": 2}, 9.0),
        ((), {"power": 3}, 8.0),
        ((), {"power": 2, "factor": 5.0}, 25.0),
    ],
)
def test_arguments_by_position_keyword_and_default(function: Any, args: Any, kwargs: Any, slope: float) -> None:
    x = wanting([1.0, -2.0])
    y = function.apply(x, *args, **kwargs)
    assert y.tolist() == [slope, -2 * slope]
    y.sum().backward()
    assert x.grad.tolist() == [slope, slope]


def test_all_arguments_by_keyword() -> None:
    x, y = wanting([2.0]), wanting([5.0])
    Product.apply(y=y, x=x).backward()
    assert (x.grad.item(), y.grad.item()) == (5.0, 2.0)


FORWARDS: list[Any] = [
    lambda x: pullback.ones(1),
    lambda x, n=2.0: pullback.ones(1),
    lambda x, n=2.0, *more: pullback.ones(1),
    lambda *tensors: pullback.ones(1),
    lambda x, *more, m=None: pullback.ones(1),
    lambda x, *, m: pullback.ones(1),
    lambda x, n=None, /, k=(), **named: pullback.ones(1),
]


@pytest.mark.parametrize("forward", FORWARDS, ids=[str(inspect.signature(f)) for f in FORWARDS])
@pytest.mark.parametrize("count", range(5))
def test_arguments_come_to_setup_context_as_python_binds_them(forward: Any, count: int) -> None:
    seen, method = [], forward

    class Bound(Function):
        forward = staticmethod(method)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            seen.append(inputs)

        @staticmethod
        def backward(ctx: Any, *g: Any) -> Any: ...

    args = tuple(pullback.ones(1) for _ in range(count))
    try:
        bound = inspect.signature(forward).bind(*args)
    except TypeError:
        with pytest.raises(TypeError, match=r"In Bound.forward"):
            Bound.apply(*args)
        return
    bound.apply_defaults()
    Bound.apply(*args)
    (inputs,) = seen
    expected = (*bound.args, *bound.kwargs.values())
    assert len(inputs) == len(expected)
    assert all(a is b for a, b in zip(inputs, expected, strict=True))


def test_a_gradient_finds_its_argument_past_defaults_that_were_left_out() -> None:
    class Third(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, shift: float = 0.0, w: Any = None) -> Any:
            ctx.save_for_backward(x, w)
            return x * w + shift

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return g * w, None, g * x

    x, w = wanting([2.0]), wanting([5.0])
    Third.apply(x, w=w).backward()
    assert (x.grad.item(), w.grad.item()) == (5.0, 2.0)


def test_a_keyword_only_tensor_has_its_gradient_in_the_order_of_the_signature() -> None:
    class Sum(Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any, weight: Any, bias: Any = None) -> Any:
            ctx.save_for_backward(weight, *xs)
            return weight * sum(xs) + (0 if bias is None else bias)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            weight, *xs = ctx.saved_tensors
            return (*[g * weight for _ in xs], g * sum(xs), g)

    x, y, w, b = wanting([2.0]), wanting([3.0]), wanting([10.0]), wanting([1.0])
    Sum.apply(x, y, bias=b, weight=w).backward()
    assert [t.grad.item() for t in (x, y, w, b)] == [10.0, 10.0, 5.0, 1.0]


@pytest.mark.parametrize("function", [Scaled, ScaledApart])
def test_a_wrong_keyword_names_the_function_and_the_keyword(function: Any) -> None:
    with pytest.raises(TypeError, match=rf"{function.__name__}\.forward\(\).*'exponent'"):
        function.apply(wanting([1.0]), exponent=2)
    assert pullback.is_grad_enabled()


class WithoutContext(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2


class AnyName(Function):
    @staticmethod
    def forward(context: Any, x: Any, factor: Any = 2) -> Any:
        return x * factor


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: WithoutContext.apply(x), "takes 1 positional argument but 2 were given"),
        (lambda x: WithoutContext.apply(x=x), "multiple values for argument 'x'"),
        (lambda x: WithoutContext.apply(x.detach()), "takes 1 positional argument but 2 were given"),
        (
            lambda x: pullback.func.grad(lambda t: WithoutContext.apply(t).sum())(x.detach()),
            "takes 1 positional argument",
        ),
        (lambda x: pullback.vmap(WithoutContext.apply)(x.detach()), "setup_context"),
    ],
)
def test_a_forward_without_ctx_or_setup_context_is_told_what_to_write(call: Any, words: str) -> None:
    with pytest.raises((TypeError, RuntimeError), match=words) as caught:
        call(wanting([1.0, 2.0]))
    if not isinstance(caught.value, RuntimeError):  # `vmap` reads no forward that takes ctx
        said = str(caught.value)
        assert f"In WithoutContext.forward ({__file__}:" in said
        assert "which is given ctx and 1 argument." in said
        assert "@staticmethod\n    def forward(ctx, x):\nor add a setup_context(ctx, inputs, output)." in said
    assert pullback.is_grad_enabled()


@pytest.mark.parametrize("arguments", [(), (1, 2, 3)])
def test_a_forward_with_ctx_is_not_told_to_take_it(arguments: Any) -> None:
    with pytest.raises(TypeError, match=r"(?s)argument.*What to do: give AnyName.apply \(x, factor\)\.$"):
        AnyName.apply(*arguments)
    with pytest.raises(
        TypeError, match=r"(?s)too many positional.*What to do: give ScaledApart.apply \(x, factor, power\)"
    ):
        ScaledApart.apply(1, 2, 3)


def test_a_type_error_of_the_users_own_stays_as_it_is() -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return len(3)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match=r"^object of type 'int' has no len\(\)$"):
        Fails.apply(wanting([1.0]))


def test_setup_context_gets_all_inputs_in_their_places_and_the_output() -> None:
    y = ScaledApart.apply(wanting([1.0]), power=3)
    assert y.grad_fn.inputs == (2.0, 3)
    assert y.grad_fn.output_was


def test_setup_context_knows_what_needs_a_gradient() -> None:
    seen = []

    class Sum(Function):
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            assert not pullback.is_grad_enabled()
            return x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            assert not pullback.is_grad_enabled()
            seen.append((ctx.needs_input_grad, len(inputs), output.requires_grad))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    Sum.apply(wanting([1.0]), double([1.0]))
    assert seen == [((True, False), 2, False)]


def test_what_setup_context_marks_and_saves_counts() -> None:
    class Parts(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp(), x.floor()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output[0])
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, g: Any, none: Any) -> Any:
            assert none is None
            return g * ctx.saved_tensors[0]

    x = wanting([0.0])
    y, whole = Parts.apply(x)
    assert (y.requires_grad, whole.requires_grad) == (True, False)
    y.backward()
    assert x.grad.item() == 1.0


# what goes in and comes out -------------------------------------------------------------------------------------------


def test_inputs_that_are_no_tensors_reach_forward_as_they_are() -> None:
    seen = []
    things = (None, 3, 2.5, "a", [1, 2], {"k": (1,)}, np.ones(2), object())

    class Takes(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *rest: Any) -> Any:
            seen.extend(rest)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (g, *[None for _ in ctx.needs_input_grad[1:]])

    x = wanting([1.0])
    Takes.apply(x, *things).backward()
    assert all(a is b for a, b in zip(seen, things, strict=True))
    assert x.grad.item() == 1.0


def test_outputs_that_are_no_tensors_come_out_as_they_are_and_have_no_gradient() -> None:
    things = (None, "a", 3, (1, 2), {"n": 1}, [])

    class Returns(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return (*things[:3], x * 2, *things[3:])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            ctx.given = grads
            return grads[3] * 2

    x = wanting([1.0])
    out = Returns.apply(x)
    assert all(a is b for a, b in zip((*out[:3], *out[4:]), things, strict=True))
    out[3].backward()
    given = out[3].grad_fn.given
    assert [g is None for g in given] == [i != 3 for i in range(7)]
    assert x.grad.item() == 2.0


@pytest.mark.parametrize("out", [None, 3.0, "a", (), (1, 2), [1], {"a": None}], ids=repr)
def test_a_forward_without_a_tensor_returns_what_it_returned(out: Any) -> None:
    class Effect(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return out

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return None

    for x in (double([1.0]), wanting([1.0])):
        found = Effect.apply(x)
        assert found == out
        assert type(found) is type(out)


def test_a_tuple_of_one_stays_a_tuple() -> None:
    class One(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return (x * 2,)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = wanting([1.0])
    out = One.apply(x)
    assert type(out) is tuple
    (y,) = out
    y.backward()
    assert x.grad.item() == 2.0


def test_several_outputs_are_numbered_outputs_of_one_node() -> None:
    a, b = Twice.apply(wanting([1.0]))
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)


@pytest.mark.parametrize("used", [(True, False), (False, True), (True, True)])
def test_an_output_that_is_not_used_gives_zeros(used: tuple[bool, bool]) -> None:
    x = wanting([1.0, 2.0])
    outs = Twice.apply(x)
    node = outs[0].grad_fn
    sum(o.sum() for o, use in zip(outs, used, strict=True) if use).backward()
    assert [g.tolist() for g in node.given] == [[float(use)] * 2 for use in used]
    assert x.grad.tolist() == [2.0 * used[0] + 3.0 * used[1]] * 2


@pytest.mark.parametrize("used", [(True, False), (False, True), (True, True)])
def test_without_materialized_grads_it_gives_none(used: tuple[bool, bool]) -> None:
    x = wanting([1.0, 2.0])
    outs = Twice.apply(x, False)
    node = outs[0].grad_fn
    sum(o.sum() for o, use in zip(outs, used, strict=True) if use).backward()
    assert [g is not None for g in node.given] == list(used)
    assert x.grad.tolist() == [2.0 * used[0] + 3.0 * used[1]] * 2


def test_integer_and_boolean_outputs_require_no_grad() -> None:
    class Parts(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.argmax(), x > 0, x * 2

        @staticmethod
        def backward(ctx: Any, index: Any, positive: Any, g: Any) -> Any:
            ctx.given = index, positive
            return g * 2

    x = wanting([1.0, -2.0])
    index, positive, y = Parts.apply(x)
    assert [t.requires_grad for t in (index, positive, y)] == [False, False, True]
    assert index.is_leaf
    y.sum().backward()
    index, positive = y.grad_fn.given
    assert (index.item(), index.shape, positive.tolist()) == (0, (), [False, False])
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_only_output_of_integers_requires_no_grad() -> None:
    class Where(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.argmax()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise AssertionError

    assert not Where.apply(wanting([1.0, 2.0])).requires_grad


class Returned(Function):
    """Returns its first input as it came, next to what is computed from the second."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x, y * 2

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * 10, h * 2


def test_an_input_that_is_returned_comes_out_as_an_alias() -> None:
    x, y = wanting([1.0]), wanting([1.0])
    out, _ = Returned.apply(x, y)
    assert out is not x
    assert out.data_ptr() == x.data_ptr()
    assert (x.grad_fn, x.requires_grad) == (None, True)
    out.backward()
    assert x.grad.item() == 10.0


def test_so_does_one_that_requires_no_grad() -> None:
    x, y = double([1.0]), wanting([1.0])
    out, _ = Returned.apply(x, y)
    assert (out.requires_grad, x.requires_grad, x.grad_fn) == (True, False, None)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
def test_an_only_output_that_is_an_input_never_is_that_object(nested: bool, recording: bool, wanted: bool) -> None:
    class First(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x[0] if nested else x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return ([g], None) if nested else (g, None)

    x, y = double([1.0]), leaf(pullback, [2.0]) if wanted else double([2.0])
    for _ in range(2):  # the second call takes a shorter way, as far as it may
        with pullback.set_grad_enabled(recording):
            out = First.apply([x] if nested else x, y)
        assert out is not x
        assert (x.requires_grad, x.grad_fn) == (False, None)
        assert out.requires_grad == (recording and wanted)


def test_an_alias_must_not_be_written_to_while_recording() -> None:
    out, _ = Returned.apply(wanting([1.0]) * 1, wanting([1.0]))
    with pytest.raises(RuntimeError, match="custom Function"):
        out.mul_(2)


def test_a_tensor_that_is_returned_twice_is_the_later_output() -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 1
            return y, y

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            return a * 2 + b * 20

    x = wanting([1.0])
    a, b = Both.apply(x)
    (a * 3 + b * 5).backward()
    assert a is b
    assert (a.output_nr, x.grad.item()) == (1, 160.0)


# nested arguments and outputs -----------------------------------------------------------------------------------------


class Nested(Function):
    """Takes and returns whatever nests; each tensor t becomes t * k for k = 2, 3, ... in their order."""

    @staticmethod
    def forward(ctx: Any, tree: Any, k: int = 2) -> Any:
        ctx.k = k
        return _scaled(tree, iter(range(k, 100)))

    @staticmethod
    def backward(ctx: Any, tree: Any) -> Any:
        ctx.given = tree
        return _scaled(tree, iter(range(ctx.k, 100))), None


def _scaled(tree: Any, factors: Any) -> Any:
    if isinstance(tree, dict):
        return type(tree)((key, _scaled(value, factors)) for key, value in tree.items())
    if hasattr(tree, "_fields"):
        return type(tree)(*(_scaled(value, factors) for value in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(_scaled(value, factors) for value in tree)
    return tree * next(factors) if isinstance(tree, pullback.Tensor) else tree


def _same_shape(a: Any, b: Any) -> bool:
    """Whether two trees nest alike, in containers of the same types."""
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(_same_shape(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same_shape, a, b))
    return not isinstance(b, (dict, list, tuple))


TREES = {
    "list": lambda x, y, z: [x, y, z],
    "dict": lambda x, y, z: {"x": x, "y": y, "z": z},
    "ordered dict": lambda x, y, z: OrderedDict([("b", x), ("a", y), ("c", z)]),
    "namedtuple": lambda x, y, z: Pair(x, [y, z]),
    "list of one": lambda x, y, z: [{"all": (x, y, z)}],
    "mixed": lambda x, y, z: {"x": (x,), "rest": [Pair(y, None), {"z": z, "n": 3, "none": None}], "empty": []},
    "list in a list": lambda x, y, z: [[x], [[y, z]]],
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_nested_arguments_have_gradients_in_the_same_structure(tree: Any) -> None:
    x, y, z = wanting([1.0]), wanting([10.0, 20.0]), wanting(5.0)
    given = tree(x, y, z)
    out = Nested.apply(given)
    assert _same_shape(given, out)
    tensors = [t for t in _leaves(out) if isinstance(t, pullback.Tensor)]
    assert [t.tolist() for t in tensors] == [[2.0], [30.0, 60.0], 20.0]
    sum(t.sum() * c for t, c in zip(tensors, (1, 10, 100), strict=True)).backward()
    assert _same_shape(given, tensors[0].grad_fn.given)
    assert (x.grad.tolist(), y.grad.tolist(), z.grad.tolist()) == ([2.0], [30.0, 30.0], 400.0)


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in _leaves(value)]
    if isinstance(tree, (list, tuple)):
        return [leaf for value in tree for leaf in _leaves(value)]
    return [tree]


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_only_what_requires_grad_in_a_tree_gets_one(tree: Any) -> None:
    x, y, z = wanting([1.0]), double([10.0, 20.0]), wanting(5.0)
    out = Nested.apply(tree(x, y, z))
    (first, *_, last) = [t for t in _leaves(out) if isinstance(t, pullback.Tensor)]
    (first.sum() + last).backward()
    assert (x.grad.tolist(), y.grad, z.grad.tolist()) == ([2.0], None, 4.0)


def test_a_defaultdict_is_taken_and_returned_as_one() -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, d: Any) -> Any:
            out = defaultdict(list, {key: value * 2 for key, value in d.items()})
            return out

        @staticmethod
        def backward(ctx: Any, d: Any) -> Any:
            assert isinstance(d, defaultdict)
            return {key: value * 2 for key, value in d.items()}

    x = wanting([1.0])
    out = Doubled.apply(defaultdict(list, {"x": x}))
    assert isinstance(out, defaultdict)
    out["x"].backward()
    assert x.grad.item() == 2.0


class Weighted(Function):
    """A tree and a number; each of its methods notes what it is told of the gradients that are wanted."""

    generate_vmap_rule = True
    seen: ClassVar[list[Any]] = []

    @staticmethod
    def forward(tree: Any, n: float) -> Any:
        return tree["a"] * n + tree["b"][0]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.n = inputs[1]
        Weighted.seen.append(ctx.needs_input_grad)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        Weighted.seen.append(ctx.needs_input_grad)
        return {"a": g * ctx.n, "b": [g]}, None

    @staticmethod
    def jvp(ctx: Any, tree: Any, n: None) -> Any:
        return tree["a"] * ctx.n + tree["b"][0]


def test_transforms_tell_of_each_argument_that_nests_whether_its_gradient_is_wanted() -> None:
    def weighted(a: Any) -> Any:
        return Weighted.apply({"a": a, "b": [pullback.ones(())]}, 3.0)

    Weighted.seen.clear()
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    pullback.func.vmap(weighted)(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert pullback.func.vmap(pullback.func.grad(weighted))(x.detach()).tolist() == [3.0, 3.0]
    assert pullback.func.jvp(weighted, (pullback.tensor(2.0),), (pullback.tensor(1.0),))[1].item() == 3.0
    assert {len(needed) for needed in Weighted.seen} == {2}
    assert (True, False) in Weighted.seen
    assert not any(needed[1] for needed in Weighted.seen)


@pytest.mark.parametrize("recorded", [True, False])
def test_an_edge_is_an_edge_or_none(recorded: bool) -> None:
    x, made = pullback.ones(2, requires_grad=True), []

    class Mixed(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            made.append((ctx._edges, ctx.needs_input_grad, ctx.next_functions))
            return args[0] * 2

    with pullback.set_grad_enabled(recorded):
        y = Mixed.apply(x, pullback.ones(2), pullback.ones(2).long(), 3.0, "word", None, x * 2)
    edges, needed, following = made[0]
    assert [edge if edge is None else len(edge) for edge in edges] == [4, *[None] * 5, 4 if recorded else None]
    assert needed == (True, *[False] * 5, recorded)
    assert [node is None for node, _ in following] == [False, True, True, not recorded]
    assert y.requires_grad is recorded


def test_a_gradient_that_nobody_wants_costs_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, c: Any) -> Any:
            return x * c

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, g

    asked: list[int] = []
    monkeypatch.setattr(type(Product._contract), "argument", lambda self, i: asked.append(i) or "x")
    x = pullback.ones(2, requires_grad=True)
    Product.apply(x, pullback.ones(2)).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert asked == []
    with pytest.raises(RuntimeError, match="forward input 'x' was not a Tensor of floating point"):
        Product.apply(x, 3.0).sum().backward()
    assert asked == [1]


def test_a_node_has_its_place_in_the_order_before_forward_runs() -> None:
    inside: list[Any] = []

    class Recording(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with pullback.enable_grad():
                inside.append(x.detach().requires_grad_() * 2)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = pullback.ones(2, requires_grad=True) * 1
    y = Recording.apply(x)
    numbers = [t.grad_fn._sequence_nr() for t in (x, y, inside[0], y * 2)]
    assert numbers == sorted(numbers)


class Several(Function):
    """Some arguments nest: the gradients stand in a row, those of a tree in its structure."""

    @staticmethod
    def forward(ctx: Any, tree: Any, x: Any, n: int) -> Any:
        ctx.needed_in_forward = ctx.needs_input_grad
        return tree["a"] * 2 + tree["b"][0] * 3 + x * n

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.needed = ctx.needs_input_grad
        return ctx.answer(g)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda g: ({"a": g * 2, "b": [g * 3]}, g * 4, None), (2.0, 3.0, 4.0)),
        (lambda g: [{"a": g * 2, "b": (g * 3,)}, g * 4], None),
        (lambda g: ({"b": [g * 3], "a": g * 2}, g * 4, None), (2.0, 3.0, 4.0)),
        (lambda g: ({"a": g * 2, "b": None}, g * 4, None), (2.0, None, 4.0)),
        (lambda g: (None, g * 4, None), (None, None, 4.0)),
        (lambda g: ({"a": g * 2, "b": [g * 3]}, None, None, None), (2.0, 3.0, None)),
    ],
    ids=["full", "too few", "other order", "part none", "none", "one none more"],
)
def test_gradients_of_several_arguments_some_of_which_nest(answer: Any, expected: Any) -> None:
    a, b, x = wanting([1.0]), wanting([1.0]), wanting([1.0])
    y = Several.apply({"a": a, "b": [b]}, x, 4)
    y.grad_fn.answer = answer
    if expected is None:
        with pytest.raises(RuntimeError, match=r"expected 3, got 2.*\n.*tree, x, n"):
            y.backward()
        return
    y.backward()
    assert tuple(t.grad and t.grad.item() for t in (a, b, x)) == expected
    assert y.grad_fn.needed_in_forward == y.grad_fn.needed == (True, True, False)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda g: ({"a": g}, g, None), r"gradient of 'tree'.*keys \['a', 'b'\].*\['a'\]"),
        (lambda g: ([g, g], g, None), r"gradient of 'tree'.*a dict.*a list of 2"),
        (lambda g: ({"a": g, "b": [g, g]}, g, None), r"'tree'\['b'\].*list of 1 elements.*list of 2"),
        (lambda g: ({"a": g, "b": g}, g, None), r"'tree'\['b'\].*list of 1 elements.*a Tensor"),
    ],
)
def test_a_gradient_that_nests_otherwise_is_refused_with_its_place(answer: Any, words: str) -> None:
    y = Several.apply({"a": wanting([1.0]), "b": [wanting([1.0])]}, wanting([1.0]), 4)
    y.grad_fn.answer = answer
    with pytest.raises(TypeError, match=words):
        y.backward()


class OnlyArgument(Function):
    @staticmethod
    def forward(ctx: Any, tree: Any) -> Any:
        return sum(t * (k + 2) for k, t in enumerate(_leaves(tree)))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return ctx.answer(g)


@pytest.mark.parametrize(
    ("tree", "answer"),
    [
        (lambda x, y: [x, y], lambda g: [g * 2, g * 3]),
        (lambda x, y: [x, y], lambda g: ([g * 2, g * 3],)),
        (lambda x, y: [x, y], lambda g: (g * 2, g * 3)),
        (lambda x, y: (x, y), lambda g: (g * 2, g * 3)),
        (lambda x, y: (x, y), lambda g: ((g * 2, g * 3), None)),
        (lambda x, y: Pair(x, y), lambda g: Pair(g * 2, g * 3)),
        (lambda x, y: Pair(x, y), lambda g: (g * 2, g * 3)),
        (lambda x, y: Pair(x, y), lambda g: (Pair(g * 2, g * 3),)),
        (lambda x, y: [(x, y)], lambda g: [(g * 2, g * 3)]),
        (lambda x, y: [(x, y)], lambda g: ([(g * 2, g * 3)],)),
        (lambda x, y: ((x,), y), lambda g: ((g * 2,), g * 3)),
        (lambda x, y: {"x": x, "y": y}, lambda g: {"x": g * 2, "y": g * 3}),
        (lambda x, y: {"x": x, "y": y}, lambda g: ({"x": g * 2, "y": g * 3},)),
    ],
)
def test_the_gradient_of_an_only_argument_may_stand_alone_or_in_a_row(tree: Any, answer: Any) -> None:
    x, y = wanting(1.0), wanting(1.0)
    out = OnlyArgument.apply(tree(x, y))
    out.grad_fn.answer = answer
    out.backward()
    assert (x.grad.item(), y.grad.item()) == (2.0, 3.0)


def test_a_row_of_gradients_may_be_a_list_or_a_namedtuple() -> None:
    for row in (list, tuple, lambda gradients: Pair(*gradients)):

        class Returns(Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                return x * 2 + y * 3

            @staticmethod
            def backward(ctx: Any, g: Any, row: Any = row) -> Any:
                return row([g * 2, g * 3])

        x, y = wanting([1.0]), wanting([1.0])
        Returns.apply(x, y).backward()
        assert (x.grad.item(), y.grad.item()) == (2.0, 3.0)


def test_no_output_of_a_tree_is_an_input() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, tree: Any, y: Any) -> Any:
            return {"same": tree[0], "new": y * 2}

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return [g["same"]], g["new"] * 2

    x, y = double([1.0]), wanting([1.0])
    out = Same.apply([x], y)
    assert out["same"] is not x
    assert (x.requires_grad, out["same"].requires_grad) == (False, True)


# mark_dirty -----------------------------------------------------------------------------------------------------------


class Doubling(Function):
    """Writes 2 x over x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class DoublingMemory(Function):
    """The same, through code that knows nothing of versions."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        memory = x.detach().numpy()
        memory *= 2
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


@pytest.mark.parametrize("function", [Doubling, DoublingMemory])
def test_a_dirty_input_is_the_output(function: Any) -> None:
    w = wanting([1.0, 2.0])
    x = w * 3
    y = function.apply(x)
    assert y is x
    assert (y.tolist(), y.grad_fn.name()) == ([6.0, 12.0], f"{function.__name__}Backward")
    y.sum().backward()
    assert w.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("function", [Doubling, DoublingMemory])
@pytest.mark.parametrize("written_before", [False, True])
def test_a_dirty_input_that_was_saved_before_is_noticed(function: Any, written_before: bool) -> None:
    w = wanting([1.0])
    x = w * 1
    if written_before:
        x.add_(1)
    square = x * x
    function.apply(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()


def test_a_leaf_that_requires_grad_must_not_be_dirty() -> None:
    with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad.*\n.*Doubling\.apply a clone"):
        Doubling.apply(wanting([1.0]))


def test_a_leaf_that_requires_none_becomes_the_output() -> None:
    class AddTo(Function):
        @staticmethod
        def forward(ctx: Any, total: Any, x: Any) -> Any:
            ctx.mark_dirty(total)
            return total.add_(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    total, x = double([1.0]), wanting([2.0])
    out = AddTo.apply(total, x)
    assert out is total
    assert (total.requires_grad, total.is_leaf, total.item()) == (True, False, 3.0)
    out.backward()
    assert x.grad.item() == 1.0


def test_what_is_dirty_must_be_returned() -> None:
    class Forgets(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2) * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    with pytest.raises(RuntimeError, match=r"dirty.*not returned as output.*Forgets"):
        Forgets.apply(wanting([1.0]) * 1)


def test_what_is_dirty_should_be_an_input() -> None:
    class Marks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = wanting([1.0])
    with pytest.warns(UserWarning, match="Marks.*not an input") as caught:
        y = Marks.apply(x)
    assert caught[0].filename == __file__
    y.backward()
    assert x.grad.item() == 2.0


@pytest.mark.parametrize("method", ["mark_dirty", "mark_non_differentiable"])
def test_only_tensors_can_be_marked(method: str) -> None:
    class Marks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            getattr(ctx, method)(x, 3.0)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(RuntimeError, match=rf"{method}\(\): expected Tensors, found float 3.0"):
        Marks.apply(wanting([1.0]) * 1)


def test_a_dirty_view_changes_the_gradient_of_its_base() -> None:
    w = wanting([1.0, 2.0, 3.0])
    base = w * 3
    view = base[:2]
    assert Doubling.apply(view) is view
    assert base.tolist() == [6.0, 12.0, 9.0]
    base.sum().backward()
    assert w.grad.tolist() == [6.0, 6.0, 3.0]


def test_the_dirty_view_itself_has_its_gradient_too() -> None:
    w = wanting([1.0, 2.0, 3.0])
    view = (w * 3)[:2]
    Doubling.apply(view).sum().backward()
    assert w.grad.tolist() == [6.0, 6.0, 0.0]


def test_a_dirty_base_changes_the_gradient_of_its_views() -> None:
    w = wanting([1.0, 2.0, 3.0])
    base = w * 3
    view = base[:2]
    assert Doubling.apply(base) is base
    view.sum().backward()
    assert (view.tolist(), w.grad.tolist()) == ([6.0, 12.0], [6.0, 6.0, 0.0])


def test_a_view_of_a_leaf_must_not_be_dirty() -> None:
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        Doubling.apply(wanting([1.0, 2.0])[:1])


@pytest.mark.parametrize("recording", [False, True])
def test_a_dirty_input_without_grad_is_returned_itself(recording: bool) -> None:
    x = double([1.0])
    with pullback.set_grad_enabled(recording):
        assert Doubling.apply(x) is x
    assert x.item() == 2.0
    assert x._version > 0


def test_a_dirty_leaf_may_be_written_to_where_nothing_is_recorded() -> None:
    x = wanting([1.0])
    with pullback.no_grad():
        y = Doubling.apply(x)
    assert (x.item(), x.requires_grad, y.requires_grad) == (2.0, True, False)


def test_a_retained_gradient_follows_the_dirty_tensor() -> None:
    x = wanting([1.0]) * 1
    x.retain_grad()
    y = Doubling.apply(x)
    (y * 5).backward()
    assert x.grad.item() == 5.0


@pytest.mark.parametrize("of_view", [False, True])
def test_a_dirty_tensor_loses_the_gradient_of_its_old_value(of_view: bool) -> None:
    x = wanting([1.0])
    y = (x * 3).view(1) if of_view else x * 3
    y.retain_grad()
    grad(y.sum(), x, retain_graph=True)
    assert y.grad.item() == 1.0
    Doubling.apply(y)
    assert (y.grad, y.retains_grad) == (None, True)
    (y * y).backward()
    assert (y.grad.item(), x.grad.item()) == (12.0, 72.0)


# mark_non_differentiable ----------------------------------------------------------------------------------------------


def test_a_marked_output_requires_no_grad_and_gives_zeros() -> None:
    class Parts(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            whole = x.floor()
            ctx.mark_non_differentiable(whole)
            return whole, x - whole

        @staticmethod
        def backward(ctx: Any, none: Any, g: Any) -> Any:
            ctx.given = none
            return g

    x = wanting([1.5])
    whole, rest = Parts.apply(x)
    assert (whole.requires_grad, whole.grad_fn) == (False, None)
    (whole * rest).backward()
    assert rest.grad_fn.given.tolist() == [0.0]
    assert x.grad.item() == 1.0


@pytest.mark.parametrize("dirty", [False, True])
@pytest.mark.parametrize("is_leaf", [False, True])
def test_a_marked_output_that_is_an_input_leaves_the_graph(dirty: bool, is_leaf: bool) -> None:
    class Marks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_non_differentiable(x)
            if dirty:
                ctx.mark_dirty(x)
            return x, x * 2

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return h * 2

    x = wanting([1.0]) if is_leaf else wanting([1.0]) * 1
    if dirty and is_leaf:
        with pytest.raises(RuntimeError, match="leaf"):
            Marks.apply(x)
        return
    y, z = Marks.apply(x)
    assert (y is x, y.requires_grad, y.grad_fn) == (False, False, None)
    assert x.requires_grad
    assert z.requires_grad


def test_materialize_grads_is_a_bool() -> None:
    with pytest.raises(TypeError, match=r"set_materialize_grads\(\): expected a bool, found int 1"):
        Twice.apply(wanting([1.0]), 1)


# what the context remembers -------------------------------------------------------------------------------------------


def test_saved_inputs_come_back_as_the_same_objects() -> None:
    class Keeps(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, c: Any) -> Any:
            inner = x * w
            out = inner * c
            ctx.save_for_backward(x, w, None, c, inner, out)
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ctx.found = ctx.saved_tensors
            ctx.again = ctx.get_saved_variables()
            return g, g, None

    x, w, c = wanting([2.0]) * 1, wanting([3.0]), double([4.0])
    y = Keeps.apply(x, w, c)
    node = y.grad_fn
    y.backward()
    assert node.found[0] is x
    assert node.found[1] is w
    assert node.found[2] is None
    assert node.found[3] is c
    inner, out = node.found[4:]
    assert (inner.item(), inner.requires_grad) == (6.0, False)
    assert (out.item(), out.requires_grad, out.grad_fn is node, out is y) == (24.0, True, True, False)
    assert [t if t is None else t.item() for t in node.again] == [2.0, 3.0, None, 4.0, 6.0, 24.0]


def test_saving_again_replaces_what_was_saved() -> None:
    class Keeps(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, x)
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * len(ctx.saved_tensors)

    x = wanting([1.0])
    Keeps.apply(x).backward()
    assert x.grad.item() == 1.0


def test_what_is_saved_for_forward_does_not_replace_what_is_saved_for_backward() -> None:
    class Keeps(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.save_for_forward(x, x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * len(ctx.saved_tensors)

    x = wanting([1.0])
    Keeps.apply(x).backward()
    assert x.grad.item() == 1.0


def test_only_tensors_are_saved_for_backward() -> None:
    class Keeps(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, alpha: Any) -> Any:
            ctx.save_for_backward(x, alpha)
            return x * alpha

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise AssertionError

    with pytest.raises(TypeError, match=r"save_for_backward\(\).*found float(.|\n)*ctx\.alpha = alpha"):
        Keeps.apply(wanting([1.0]), 3.0)
    assert pullback.is_grad_enabled()


@pytest.mark.parametrize("value", [3, None, "text", [1, 2], {"k": 1}, np.ones(2), len], ids=repr)
@pytest.mark.parametrize("name", "alpha x shape dim stride padding input weight saved value".split())
def test_any_attribute_can_be_set(name: str, value: Any) -> None:
    class Sets(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            setattr(ctx, name, value)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert getattr(ctx, name) is value
            return g * 2

    x = wanting([1.0])
    y = Sets.apply(x)
    y.backward()
    assert x.grad.item() == 2.0
    assert getattr(y.grad_fn, name) is value


@pytest.mark.parametrize("name", "edges hooks name order outputs run".split())
def test_also_one_that_is_called_like_something_the_engine_uses(name: str) -> None:
    class Sets(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            setattr(ctx, name, "mine")
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert getattr(ctx, name) == "mine"
            return g * 2

    x = wanting([1.0])
    y = Sets.apply(x * 1)
    assert "SetsBackward" in repr(y)
    (y * 2).backward()
    assert x.grad.item() == 4.0


def test_an_attribute_that_was_not_set_is_an_attribute_error() -> None:
    class Reads(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.alpha

    with pytest.raises(AttributeError, match="alpha"):
        Reads.apply(wanting([1.0])).backward()


def test_each_call_has_a_context_of_its_own() -> None:
    x = wanting([1.0])
    a, b = Scaled.apply(x, 3.0), Scaled.apply(x, 5.0)
    assert a.grad_fn is not b.grad_fn
    assert (a.grad_fn.slope, b.grad_fn.slope) == (3.0, 5.0)


def test_the_context_is_the_node_and_is_named_after_the_class() -> None:
    contexts = []

    class Cube(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            contexts.append(ctx)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            contexts.append(ctx)
            return g

    x = wanting([1.0])
    y = Cube.apply(x)
    node = y.grad_fn
    y.backward()
    assert contexts == [node, node]
    assert node.name() == type(node).__name__ == "CubeBackward"
    assert isinstance(node, pullback.autograd.Node)
    assert repr(y) == "tensor([1.], dtype=pullback.float64, grad_fn=<CubeBackward>)"
    assert node.next_functions[0][0].variable is x
    node.metadata["note"] = 1
    assert node.metadata == {"note": 1}


def test_next_functions_lead_to_what_made_the_inputs() -> None:
    x, y = wanting([2.0]), wanting([3.0])
    square = x * x
    node = Product.apply(square, y).grad_fn
    assert [(n.name(), i) for n, i in node.next_functions] == [("MulBackward0", 0), ("AccumulateGrad", 0)]
    assert node.next_functions[0][0] is square.grad_fn
    assert Product.apply(double([1.0]), y).grad_fn.next_functions[0] == (None, 0)
    second = Twice.apply(x)[1]
    assert Product.apply(second, y).grad_fn.next_functions[0] == (second.grad_fn, 1)


@pytest.mark.torch
def test_next_functions_have_no_place_for_what_is_no_tensor() -> None:
    def places(lib: Any) -> list[list[tuple[Any, int]]]:
        class Scaled(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, k: float, name: str, y: Any = None) -> Any:
                return x * k

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g, None, None, None

        x = lib.ones(2, requires_grad=True)
        others = None, lib.ones(2), x, lib.tensor(3), lib.tensor([True, False])
        calls = [(x, 1.5, "s"), *((x, 1.5, "s", y) for y in others), (x, lib.tensor(2), "s")]
        nodes = [Scaled.apply(*args).grad_fn for args in calls]
        return [[(node and node.name().rpartition("::")[2], i) for node, i in n.next_functions] for n in nodes]

    assert places(pullback) == places(pytest.importorskip("torch"))


# needs_input_grad -----------------------------------------------------------------------------------------------------


class Watching(Function):
    """x * y; tells what is wanted, in forward and in backward, and computes only that."""

    seen: list[Any]

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        Watching.seen.append(ctx.needs_input_grad)
        ctx.inputs = x.detach(), y.detach() if isinstance(y, pullback.Tensor) else y
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.inputs
        Watching.seen.append(ctx.needs_input_grad)
        return g * y if ctx.needs_input_grad[0] else None, g * x if ctx.needs_input_grad[1] else None


@pytest.fixture
def seen() -> list[Any]:
    Watching.seen = []
    return Watching.seen


def test_needs_input_grad_tells_which_inputs_require_one(seen: list[Any]) -> None:
    x, y = wanting([2.0]), wanting([3.0])
    Watching.apply(x, y).backward()
    Watching.apply(x, y.detach()).backward()
    Watching.apply(x, 4.0).backward()
    assert seen == [(True, True)] * 2 + [(True, False)] * 4


def test_without_recording_it_still_tells(seen: list[Any]) -> None:
    with pullback.no_grad():
        Watching.apply(wanting([1.0]), double([1.0]))
    Watching.apply(double([1.0]), double([1.0]))
    assert seen == [(True, False), (False, False)]


@pytest.mark.parametrize("by_backward", [False, True])
@pytest.mark.parametrize("which", [0, 1])
def test_in_a_pass_that_reaches_for_some_inputs_only_these_are_wanted(
    seen: list[Any], which: int, by_backward: bool
) -> None:
    leaves = wanting([2.0]), wanting([3.0])
    y = Watching.apply(leaves[0] * 1, leaves[1] * 1)
    if by_backward:
        y.backward(inputs=[leaves[which]])
        found = leaves[which].grad
    else:
        (found,) = grad(y, leaves[which])
    assert found.item() == (3.0, 2.0)[which]
    assert seen[1] == (which == 0, which == 1)
    assert leaves[1 - which].grad is None


def test_the_same_input_twice_is_wanted_twice(seen: list[Any]) -> None:
    x = wanting([3.0])
    assert grad(Watching.apply(x, x), x)[0].item() == 6.0
    assert seen == [(True, True)] * 2


def test_only_what_lies_on_the_way_to_an_inner_tensor_is_wanted(seen: list[Any]) -> None:
    a, b = wanting([2.0]) * 1, wanting([3.0]) * 1
    assert grad(Watching.apply(a, b), a)[0].item() == 3.0
    assert seen[1] == (True, False)


def test_outside_of_a_pass_a_node_tells_as_in_forward(seen: list[Any]) -> None:
    x, y = wanting([2.0]), wanting([3.0])
    node = Watching.apply(x, y).grad_fn
    assert node.needs_input_grad == (True, True)


def test_a_node_that_is_made_during_a_pass_tells_of_itself(seen: list[Any]) -> None:
    class Outer(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            with pullback.enable_grad():
                y = Watching.apply(x, wanting([3.0]))
            seen.append(y.grad_fn.needs_input_grad)
            y.backward(inputs=[x])
            return g * 2

    x = wanting([1.0])
    grad(Outer.apply(x), x)
    assert seen == [(True, True), (True, True), (True, False)]


# higher derivatives ---------------------------------------------------------------------------------------------------


class Cubed(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


class Exponential(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return y * g


def derivatives(y: Any, x: Any, order: int) -> list[float]:
    found = []
    for _ in range(order):
        (y,) = grad(y, x, create_graph=True)
        found.append(y.item())
    return found


def test_a_backward_of_tensor_operations_can_be_differentiated_again() -> None:
    x = wanting(2.0)
    assert derivatives(Cubed.apply(x), x, 4) == [12.0, 12.0, 6.0, 0.0]


def test_also_through_a_saved_output() -> None:
    x = wanting(0.0)
    assert derivatives(Exponential.apply(x) * 2, x, 5) == [2.0] * 5


def test_a_backward_that_calls_a_function_can_be_differentiated_again() -> None:
    class Sine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * Cosine.apply(ctx.saved_tensors[0])

    class Cosine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.cos()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g * Sine.apply(ctx.saved_tensors[0])

    x = wanting(0.0)
    assert derivatives(Sine.apply(x), x, 5) == [1.0, 0.0, -1.0, 0.0, 1.0]


def test_grad_mode_in_forward_and_backward() -> None:
    modes = []

    class Tells(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            modes.append(pullback.is_grad_enabled())
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            modes.append((pullback.is_grad_enabled(), g.requires_grad))
            return g

    x = wanting([1.0])
    y = Tells.apply(x)
    y.backward()
    with pullback.no_grad():
        Tells.apply(x * 1)
    grad(Tells.apply(x), x, create_graph=True)
    v = wanting([1.0])
    grad(Tells.apply(x), x, v, create_graph=True)
    assert modes == [False, (False, False), False, False, (True, False), False, (True, True)]


def numpy_cube(ctx: Any, g: Any) -> Any:
    (x,) = ctx.saved_tensors
    return pullback.from_numpy(3 * x.detach().numpy() ** 2 * g.numpy())


def test_once_differentiable_runs_unrecorded_and_works_once() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            assert not pullback.is_grad_enabled()
            return numpy_cube(ctx, g)

    x = wanting([2.0])
    inner = x * 1
    modes = []
    inner.register_hook(lambda g: modes.append(pullback.is_grad_enabled()))
    Once.apply(inner).backward(retain_graph=True)
    assert (x.grad.item(), x.grad.requires_grad) == (12.0, False)
    grad(Once.apply(inner), x, create_graph=True)
    assert modes == [False, True]
    assert Once.backward.__name__ == "backward"


@pytest.mark.parametrize("vector", [False, True], ids=["constant grad_output", "grad_output that requires grad"])
@pytest.mark.parametrize("nested", [False, True])
def test_once_differentiable_twice_is_an_error_never_silent(vector: bool, nested: bool) -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x = x["x"] if nested else x
            ctx.save_for_backward(x)
            return {"y": x**3} if nested else x**3

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            found = numpy_cube(ctx, g["y"] if nested else g)
            return {"x": found} if nested else found

    x = wanting([2.0])
    y = Once.apply({"x": x} if nested else x)
    y = y["y"] if nested else y
    v = wanting([1.0]) if vector else double([1.0])
    (first,) = grad(y, x, v, create_graph=True)
    assert (first.item(), first.requires_grad) == (12.0, True)
    with pytest.raises(RuntimeError, match=r"differentiate twice.*@once_differentiable.*OnceBackward"):
        (first * x).backward()
    assert x.grad is None


def test_once_differentiable_with_several_and_missing_gradients() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int, y: Any) -> Any:
            return x * n + y

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, None, None

    x, y = wanting([1.0]), wanting([1.0])
    gx, gy = grad(Once.apply(x, 2, y), [x, y], create_graph=True, allow_unused=True)
    assert (gx.item(), gy) == (2.0, None)


# recording off, inheritance, other names ------------------------------------------------------------------------------


def test_without_recording_there_is_no_node() -> None:
    x = wanting([1.0])
    with pullback.no_grad():
        y = Scaled.apply(x)
    assert (y.requires_grad, y.grad_fn, y.item()) == (False, None, 2.0)


def test_without_an_input_that_requires_grad_there_is_no_node() -> None:
    y = Scaled.apply(double([1.0]))
    assert (y.requires_grad, y.grad_fn) == (False, None)


def test_forward_may_record_a_graph_of_its_own() -> None:
    class Inner(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with pullback.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x**3
            return ctx.y.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return grad(ctx.y, ctx.x, g)[0]

    x = wanting([2.0])
    Inner.apply(x * 2).backward()
    assert x.grad.item() == 96.0


def test_what_forward_recorded_of_its_input_is_not_the_gradient() -> None:
    class Overrides(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with pullback.enable_grad():
                return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 7

    x = wanting([1.0])
    Overrides.apply(x).backward()
    assert x.grad.item() == 7.0


def test_a_function_in_a_forward_and_in_a_backward() -> None:
    class Outer(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return Cubed.apply(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return Product.apply(g, 3 * ctx.saved_tensors[0] ** 2)

    x = wanting(2.0)
    assert derivatives(Outer.apply(x), x, 3) == [12.0, 12.0, 6.0]


def test_methods_are_inherited_one_by_one() -> None:
    class Child(Cubed):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return Cubed.backward(ctx, g) * 10

    x = wanting([1.0])
    y = Child.apply(x)
    y.backward()
    assert (y.grad_fn.name(), x.grad.item()) == ("ChildBackward", 30.0)


def test_methods_may_come_from_a_class_that_is_no_function() -> None:
    class Saves:
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

    class Square(Saves, Function):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    x = wanting([3.0])
    Square.apply(x).backward()
    assert x.grad.item() == 6.0


def test_a_child_may_be_of_the_other_style() -> None:
    class Child(Scaled):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 5

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.slope = 5

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.slope

    x = wanting([1.0])
    Child.apply(x).backward()
    assert x.grad.item() == 5.0


def test_vjp_is_another_name_of_backward() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    class Child(Square):
        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return 10 * Square.vjp(ctx, g)

    class Grandchild(Child):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 100 * Square.vjp(ctx, g)

    for function, expected in ((Square, 6.0), (Child, 60.0), (Grandchild, 600.0)):
        x = wanting([3.0])
        function.apply(x).backward()
        assert x.grad.item() == expected


@pytest.mark.parametrize("name", ["backward", "vjp"])
def test_an_abstract_base_may_lack_a_forward(name: str) -> None:
    def halve(ctx: Any, g: Any) -> Any:
        return g / 2

    base = type("Base", (Function,), {name: staticmethod(halve)}, abstract=True)
    with pytest.raises(TypeError, match="Base is abstract"):
        base.apply(wanting([1.0]))

    class Half(base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x / 2

    x = wanting([1.0])
    Half.apply(x).backward()
    assert x.grad.item() == 0.5


def test_a_function_without_backward_says_so_when_it_is_needed() -> None:
    class Forward(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    y = Forward.apply(wanting([1.0]))
    assert y.requires_grad
    with pytest.raises(NotImplementedError, match=r"Forward has no backward(.|\n)*def backward\(ctx, grad_output\):"):
        y.backward()


# passes within passes, and faults -------------------------------------------------------------------------------------


def test_backward_may_run_a_backward_pass() -> None:
    class Reentrant(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with pullback.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x**3).sum().backward()
            assert pullback.is_grad_enabled() == taped
            return x.grad * g

    for taped in (False, True):
        x = wanting([2.0])
        y = Reentrant.apply(Reentrant.apply(x * 1) * 1)
        y.backward(create_graph=taped)
        assert x.grad.item() == 9 * 2.0**8


def test_a_pass_within_a_pass_that_reaches_for_some_inputs() -> None:
    class Reentrant(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with pullback.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (inner,) = grad(x**2, x)
            assert ctx.needs_input_grad == (True,)
            return inner * g

    x, w = wanting([3.0]), wanting([1.0])
    (found,) = grad(Reentrant.apply(x * w), x)
    assert found.item() == 6.0


def test_an_inner_pass_that_fails_leaves_the_outer_one_its_modes() -> None:
    class Tries(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with pytest.raises(RuntimeError), pullback.enable_grad():
                (wanting([1.0, 2.0]) * 2).backward()
            assert not pullback.is_grad_enabled()
            return g * 2

    x = wanting([1.0])
    Tries.apply(x).backward()
    assert x.grad.item() == 2.0


class Faulty(Function):
    """Raises where its switches say."""

    in_forward = in_setup = in_backward = False

    @staticmethod
    def forward(x: Any) -> Any:
        if Faulty.in_forward:
            raise ArithmeticError("forward broke")  # in forward
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        if Faulty.in_setup:
            raise ArithmeticError("setup broke")  # in setup
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if Faulty.in_backward:
            raise ArithmeticError("backward broke")  # in backward
        return 2 * ctx.saved_tensors[0] * g


@pytest.mark.parametrize("where", ["forward", "setup"])
@pytest.mark.parametrize("recording", [False, True])
def test_an_exception_in_forward_restores_the_mode_and_ends_in_the_users_line(
    monkeypatch: pytest.MonkeyPatch, where: str, recording: bool
) -> None:
    monkeypatch.setattr(Faulty, f"in_{where}", True)
    with pullback.set_grad_enabled(recording):
        with pytest.raises(ArithmeticError) as caught:
            Faulty.apply(wanting([1.0]))
        assert pullback.is_grad_enabled() == recording
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, str(last.line).rpartition("# ")[2]) == (__file__, f"in {where}")


@pytest.mark.parametrize("taped", [False, True])
@pytest.mark.parametrize("inputs", [False, True])
def test_an_exception_in_backward_leaves_everything_as_it_was(
    monkeypatch: pytest.MonkeyPatch, taped: bool, inputs: bool
) -> None:
    x, w = wanting([3.0]), wanting([2.0])
    w.grad = before = double([5.0])
    factor = w * 1  # the leaf's node is older than what breaks, so its turn would come later
    y = Faulty.apply(x * 1) * factor
    monkeypatch.setattr(Faulty, "in_backward", True)
    with pytest.raises(ArithmeticError) as caught:
        y.backward(retain_graph=True, create_graph=taped, inputs=[x] if inputs else None)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, str(last.line).rpartition("# ")[2]) == (__file__, "in backward")
    assert pullback.is_grad_enabled()
    assert x.grad is None
    assert w.grad is before
    assert before.tolist() == [5.0]
    monkeypatch.setattr(Faulty, "in_backward", False)
    y.backward()
    assert (x.grad.item(), w.grad.item()) == (12.0, 14.0)


def test_a_node_that_raised_keeps_what_it_saved_even_where_nothing_is_retained(monkeypatch: pytest.MonkeyPatch) -> None:
    x = wanting([3.0])
    y = Faulty.apply(x)
    monkeypatch.setattr(Faulty, "in_backward", True)
    with pytest.raises(ArithmeticError):
        y.backward()
    monkeypatch.setattr(Faulty, "in_backward", False)
    y.backward()
    assert x.grad.item() == 6.0


def test_a_call_leaves_nothing_behind_when_forward_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Faulty, "in_forward", True)
    x = wanting([1.0])
    with pytest.raises(ArithmeticError):
        Faulty.apply(x)
    gc.collect()
    assert (x.is_leaf, x.requires_grad, x.grad) == (True, True, None)

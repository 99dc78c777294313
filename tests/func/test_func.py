"""Transforms of functions, side by side with torch.func: values, structure, nesting, graphs that go on, refusals."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import Function, forward_ad
from tests.programs.func.common import f_of, points
from tests.programs.func.functions import cube, cube_jvp
from tests.side_by_side import constant, leaf


def test_backward_inside_of_a_transform() -> None:
    """torch refuses; here it is one more pass, which reaches the leaves it leads to."""
    w = leaf(pullback, [1.0, 2.0])

    def f(x: Any) -> Any:
        (w * w).sum().backward()
        return (x * w.grad).sum()

    assert pullback.func.grad(f)(constant(pullback, [5.0, 6.0])).tolist() == [2.0, 4.0]


def test_a_captured_tensor_may_be_written() -> None:
    """torch refuses to write what a transform did not make; here it is as if there were no transform."""
    count = constant(pullback, [1.0, 2.0])

    def f(x: Any) -> Any:
        count.mul_(2.0)
        return (x * count).sum()

    assert pullback.func.grad(f)(constant(pullback, [5.0, 6.0])).tolist() == [2.0, 4.0]
    assert count.tolist() == [2.0, 4.0]
    assert not count.requires_grad


@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "jacrev", "hessian"])
def test_a_captured_tensor_keeps_values_and_no_place_in_the_graph_of_a_transform(transform: str) -> None:
    kept = constant(pullback, [1.0, 2.0])
    view = kept[:1]

    def f(x: Any) -> Any:
        kept.copy_(x)
        return (x * kept).sum()

    x = constant(pullback, [5.0, 6.0])
    if transform == "grad":
        assert pullback.func.grad(f)(x).tolist() == [10.0, 12.0]
    elif transform == "vjp":
        _, pull = pullback.func.vjp(f, x)
        assert pull(pullback.ones((), dtype=pullback.float64))[0].tolist() == [10.0, 12.0]
    elif transform == "jvp":
        assert pullback.func.jvp(f, (x,), (x,))[1].item() == 122.0
    else:
        getattr(pullback.func, transform)(f)(x)
    for t in (kept, view):
        assert not t.requires_grad
        assert t.grad_fn is None
    assert kept.tolist() == [5.0, 6.0]
    kept.mul_(2.0)
    assert view.tolist() == [10.0]


def test_a_captured_tensor_stays_in_the_graph_of_what_goes_on() -> None:
    """An outer transform, or a backward pass by hand, follows what was written; when it has ended, nothing does."""
    kept, w = constant(pullback, [1.0]), leaf(pullback, [3.0])

    def inner(x: Any) -> Any:
        kept.copy_(x * w)
        return (x * kept).sum()

    pullback.func.grad(inner)(constant(pullback, [2.0]))
    assert kept.requires_grad
    kept.sum().backward()
    assert w.grad.tolist() == [2.0]
    other = constant(pullback, [1.0])

    def outer(y: Any) -> Any:
        def within(x: Any) -> Any:
            other.copy_(x * y)
            return (x * other).sum()

        return pullback.func.grad(within)(constant(pullback, [2.0])).sum() + other.sum()

    assert pullback.func.grad(outer)(constant(pullback, [5.0])).tolist() == [4.0 + 2.0]
    assert not other.requires_grad


def test_a_result_that_is_a_captured_tensor() -> None:
    kept = constant(pullback, [0.0])

    def f(x: Any) -> Any:
        kept.copy_(x)
        return kept.mul_(x)

    value, pull = pullback.func.vjp(f, constant(pullback, [3.0]))
    assert value.tolist() == [9.0]
    assert pull(pullback.ones_like(value))[0].tolist() == [6.0]
    assert not kept.requires_grad


def test_transforms_work_where_torch_refuses() -> None:
    """Hooks on what is saved, Functions without setup_context, retain_grad inside; complex numbers."""
    x = constant(pullback, [2.0])
    with pullback.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert pullback.func.grad(lambda a: (a**2).sum())(x).tolist() == [4.0]

    class Square(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    assert pullback.func.grad(lambda a: Square.apply(a).sum())(x).tolist() == [4.0]

    def by_hand(a: Any) -> Any:
        b = a.detach().requires_grad_()
        c = b * b
        c.retain_grad()
        c.sum().backward()
        return (a * b.grad * c.grad).sum()

    assert pullback.func.grad(by_hand)(x).tolist() == [4.0]
    z = pullback.tensor([1 + 1j])
    assert pullback.func.jacfwd(lambda a: a * a)(z).tolist() == [[2 + 2j]]
    assert pullback.func.jacrev(lambda a, *, k: a * k)(x, k=3.0).tolist() == [[3.0]]


def test_what_is_inside_of_a_tensor_of_a_transform() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append((pullback.func.debug_unwrap(x, recurse=False), pullback.func.debug_unwrap(x)))
        return x * 2

    pullback.vmap(pullback.vmap(f))(pullback.ones(2, 3))
    once, wholly = seen[0]
    assert type(once) is not pullback.Tensor
    assert type(wholly) is pullback.Tensor
    assert list(wholly.shape) == [2, 3]
    whole = pullback.ones(2, 3)
    pullback.vmap(pullback.vmap(f))(whole)
    assert seen.pop()[1] is whole
    pullback.func.jvp(f, (pullback.ones(1),), (pullback.ones(1),))
    assert seen[1][0].tolist() == [1.0]
    assert pullback.func.debug_unwrap(pullback.ones(1, requires_grad=True)).requires_grad is False


def test_jvp_of_an_argument_multiplied_by_itself_in_place() -> None:
    """torch's tangent uses the primal that has been overwritten already; it should be 2 x t."""
    x, t = points(pullback)
    expected = (2 * x * t).tolist()
    _, tangent = pullback.func.jvp(lambda a: a.mul_(a), (x,), (t,))
    assert tangent.tolist() == pytest.approx(expected)


def test_jacfwd_by_the_last_argument() -> None:
    """torch's jacfwd gives zeros for negative argnums."""
    x, y = points(pullback)
    f = f_of(pullback)
    for ours, other in zip(pullback.func.jacfwd(f, -1)(x, y), pullback.func.jacrev(f, 1)(x, y), strict=True):
        np.testing.assert_allclose(ours.numpy(), other.numpy())


def test_jacfwd_in_chunks() -> None:
    """torch's jacfwd has no chunk_size."""
    x, y = points(pullback)
    whole = pullback.func.jacfwd(f_of(pullback), (0, 1))(x, y)
    for n in (1, 2, 7):
        for a, b in zip(whole, pullback.func.jacfwd(f_of(pullback), (0, 1), chunk_size=n)(x, y), strict=True):
            for c, d in zip(a, b, strict=True):
                assert c.tolist() == d.tolist()
    with pytest.raises(ValueError, match="chunk_size"):
        pullback.func.jacfwd(pullback.sin, chunk_size=0)(x)


def test_the_gradient_by_a_sparse_matrix_is_at_its_places() -> None:
    """torch's is dense for a product with a dense matrix."""
    values, b = constant(pullback, [3.0, 4.0]), constant(pullback, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    s = pullback.sparse_coo_tensor(pullback.tensor([[0, 1], [2, 0]]), values, (2, 3)).coalesce()
    g = pullback.func.grad(lambda a: ((a @ b) ** 2).sum())(s)
    dense = pullback.func.grad(lambda a: ((a @ b) ** 2).sum())(s.to_dense())
    assert g.is_sparse
    assert g.coalesce().values().tolist() == [dense[0, 2].item(), dense[1, 0].item()]
    assert pullback.func.grad(lambda a: b.sum())(s).to_dense().tolist() == [[0.0] * 3] * 2
    tracked = s.detach().requires_grad_()
    again = pullback.func.grad(lambda a: ((a @ b) ** 2).sum())(tracked)
    (outer,) = pullback.autograd.grad(again.coalesce().values().sum(), tracked)
    assert outer.is_sparse


def test_a_pull_made_where_nothing_is_recorded_is_a_constant_function() -> None:
    """torch's goes on being recorded: "this one is a little weird", its own tests say."""
    x = leaf(pullback, 3.0)
    with pullback.no_grad():
        _, pull = pullback.func.vjp(lambda a: a**2, x)
    (y,) = pull(constant(pullback, 1.0))
    assert y.tolist() == 6.0
    assert not y.requires_grad


def test_a_transform_leaves_nothing_on_its_arguments() -> None:
    """Neither a graph nor a gradient on the argument, nor a graph on what it returns."""
    x = constant(pullback, [1.0, 2.0])
    for f in (pullback.func.grad, pullback.func.jacrev, pullback.func.hessian):
        out = f(lambda a: (a**3).sum())(x)
        assert not out.requires_grad
        assert out.grad_fn is None
    y, pull = pullback.func.vjp(lambda a: a**3, x)
    assert not y.requires_grad
    assert not pull(y)[0].requires_grad
    assert x.grad is None
    assert not x.requires_grad


def test_a_function_in_forward_mode_twice() -> None:
    """torch's tangent of the inner tangent is 0: what `save_for_forward` kept is not followed by the outer jvp."""
    x, t = points(pullback)
    f = cube(pullback, jvp=cube_jvp).apply
    _, second = pullback.func.jvp(lambda a: pullback.func.jvp(f, (a,), (t,))[1], (x,), (t,))
    assert second.tolist() == pytest.approx((6 * x * t * t).tolist())


def test_a_jvp_of_none_is_zero() -> None:
    """torch fails an internal assertion."""
    x, t = points(pullback)
    _, tangent = pullback.func.jvp(cube(pullback, jvp=lambda ctx, t: None).apply, (x,), (t,))
    assert tangent.tolist() == [0.0, 0.0, 0.0]


# linearize of functions that write ------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["minimum", "mul", "add", "atan2"])
@pytest.mark.parametrize("mode", ["jacfwd", "linearize", "jvp", "make_dual"])
def test_the_tensor_that_is_the_argument_may_be_written_to_by_its_own_name(mode: str, op: str) -> None:
    """Both are one memory: the argument has the new value, and its own tangent; the tensor has that of the write."""
    x = pullback.tensor(-1.5)

    def f(t: Any) -> Any:
        x.sub_(t * 0.5)
        return getattr(pullback, op)(x, t)

    one = pullback.ones(())
    if mode == "jacfwd":
        found = func.jacfwd(f)(x)
    elif mode == "linearize":
        value, push = func.linearize(f, x)
        assert value.item() == getattr(pullback, op)(pullback.tensor(-0.75), pullback.tensor(-0.75)).item()
        found = push(one).clone()
    elif mode == "jvp":
        found = func.jvp(f, (x,), (one,))[1]
    else:
        with forward_ad.dual_level():
            found = forward_ad.unpack_dual(f(forward_ad.make_dual(x, one))).tangent.clone()
    assert x.item() == -0.75
    at = pullback.tensor(-0.75)
    expected = func.jvp(lambda a, b: getattr(pullback, op)(a, b), (at, at), (one * -0.5, one))[1]
    assert found.item() == pytest.approx(expected.item())


def _writes_its_argument(a: Any) -> Any:
    a.mul_(2)
    return a * a


def _writes_a_view_of_it(a: Any) -> Any:
    a.view(2, 1)[0].mul_(3)
    return a * a


def _writes_a_result(a: Any) -> Any:
    b = pullback.zeros(2)
    b.copy_(a)
    b[0] = a[1] * 2
    return b * a


@pytest.mark.parametrize("f", [_writes_its_argument, _writes_a_view_of_it, _writes_a_result])
def test_linearize_of_a_function_that_writes_in_place_is_what_jvp_is(f: Callable[[Any], Any]) -> None:
    """PyTorch 2.13 is no oracle: it runs the writes again with each call of the function it returns."""
    v = pullback.tensor([1.0, -2.0])
    x, other = pullback.tensor([1.0, 2.0]), pullback.tensor([1.0, 2.0])
    y, along = pullback.func.jvp(f, (other,), (v.clone(),))
    value, push = pullback.func.linearize(f, x)
    for _ in range(2):
        assert push(v).tolist() == along.tolist()
    assert (value.tolist(), x.tolist()) == (y.tolist(), other.tolist())
    assert push(v * 2).tolist() == (along * 2).tolist()


Pair = namedtuple("Pair", ["first", "second"])


class Nests(Function):
    """Its result nests as `made` does; it gives what `pushed` and `dims` make of it to forward mode and vmap."""

    made: Any
    pushed: Any = None
    dims: Any = None

    @classmethod
    def forward(cls, x: Any) -> Any:
        return cls.made(x * 2, x * 3)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @classmethod
    def jvp(cls, ctx: Any, t: Any) -> Any:
        return (cls.pushed or cls.made)(t * 2, t * 3)

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, x: Any) -> Any:
        return cls.made(x * 2, pullback.stack([x[:, 0] * 3, x[:, 1] * 3])), cls.dims


def nests(**how: Any) -> Any:
    return type(
        "Nests", (Nests,), {name: staticmethod(value) if callable(value) else value for name, value in how.items()}
    )


NESTED: dict[str, tuple[Any, Any]] = {
    "a tuple": (lambda a, b: (a, b), lambda out: out),
    "a list": (lambda a, b: [a, b], lambda out: out),
    "a dict": (lambda a, b: {"b": a, "a": b}, lambda out: (out["b"], out["a"])),
    "a named tuple": (Pair, lambda out: (out.first, out.second)),
    "a dict beside a number": (lambda a, b: ({"b": a}, [3], b), lambda out: (out[0]["b"], out[2])),
}


@pytest.mark.parametrize("kind", NESTED)
def test_results_that_nest_have_their_tangents_and_axes(kind: str) -> None:
    made, parts = NESTED[kind]
    x, t = pullback.tensor([1.0, 2.0]), pullback.tensor([3.0, 4.0])
    dims = made(0, 1) if kind != "a dict beside a number" else ({"b": 0}, [None], 1)
    function = nests(made=made, dims=dims)

    def flat(x: Any) -> Any:
        return parts(function.apply(x))

    out, pushed = pullback.func.jvp(flat, (x,), (t,))
    assert [o.tolist() for o in out] == [[2, 4], [3, 6]]
    assert [o.tolist() for o in pushed] == [[6, 8], [9, 12]]
    rows = pullback.tensor([[1.0, 2.0], [5.0, 6.0]])
    assert [o.tolist() for o in pullback.vmap(flat)(rows)] == [[[2, 4], [10, 12]], [[3, 6], [15, 18]]]


@pytest.mark.parametrize(
    ("pushed", "error", "words"),
    [
        (lambda a, b: a, RuntimeError, r"invalid number of forward gradients \(expected 2 but got 1\)"),
        (lambda a, b: (a, b, b), RuntimeError, r"invalid number of forward gradients \(expected 2 but got 3\)"),
        (
            lambda a, b: (a, {"d": b}),
            TypeError,
            r"Nests.jvp: tangent of output 1: expected a dict with the keys \['c'\]",
        ),
        (lambda a, b: (a, {"c": 3}), RuntimeError, "expected a Tensor or None, found "),
    ],
)
def test_tangents_that_nest_otherwise_are_refused(pushed: Any, error: Any, words: str) -> None:
    function, x = nests(made=lambda a, b: (a, {"c": b}), pushed=pushed), pullback.tensor([1.0, 2.0])
    with pytest.raises(error, match=words):
        pullback.func.jvp(lambda x: function.apply(x)[0], (x,), (x,))


@pytest.mark.parametrize(
    "dims", [(0,), [0, 0], (0, 0, 0), (0, {"d": 0}), (0, [0]), ("0", 0), {"c": 0}, (0, {"c": "0"})]
)
def test_axes_that_nest_otherwise_are_refused(dims: Any) -> None:
    function = nests(made=lambda a, b: (a, {"c": b}), dims=dims)
    with pytest.raises(
        RuntimeError, match=r"Nests.vmap returned an incompatible \(output, out_dims\).* to nest as the"
    ):
        pullback.vmap(function.apply)(pullback.ones(2, 2))


@pytest.mark.parametrize("dims", [None, 0, (0, 0), (0, None), (None, {"c": 0})])
def test_an_axis_or_none_stands_for_a_branch(dims: Any) -> None:
    function = nests(made=lambda a, b: (a, {"c": b}), dims=dims)
    out = pullback.vmap(lambda x: function.apply(x)[1]["c"])(pullback.tensor([[1.0, 2.0], [3.0, 4.0]]))
    whole = [[3.0, 9.0], [6.0, 12.0]]
    constant = dims is None or (type(dims) is tuple and dims[1] is None)
    assert out.tolist() == ([whole, whole] if constant else whole)


# Where PyTorch 2.13 is wrong, or refuses ------------------------------------------------------------------------------


def _cubed_in_place(a: Any) -> Any:
    return a.addcmul_(a, a, value=0.5)


@pytest.mark.parametrize("x", [2.0, -1.5])
def test_a_tensor_multiplied_by_itself_in_place_has_the_tangent_of_its_old_values(x: float) -> None:
    """The derivative of x + x^2 / 2 is 1 + x. PyTorch 2.13 takes x as it is after the write."""
    for f, expected in ((_cubed_in_place, 1 + x), (lambda a: a.mul_(a), 2 * x)):
        assert pullback.func.jvp(f, (pullback.tensor([x]),), (pullback.ones(1),))[1].tolist() == [expected]


def test_a_tangent_is_not_that_of_an_argument_that_is_written_to_later() -> None:
    """PyTorch 2.13: the remainder shares its tangent with the argument."""

    def f(a: Any) -> Any:
        rest = a % 1.5
        a[a > 1] = 0.25
        return rest

    x = pullback.tensor([0.5, 1.25, 2.0])
    assert pullback.func.jvp(f, (x,), (pullback.ones(3),))[1].tolist() == [1.0, 1.0, 1.0]


def test_the_tangent_of_a_number_times_1j_has_the_dtype_of_the_result() -> None:
    value, tangent = pullback.func.jvp(lambda a: a * 1j, (pullback.tensor(2.0),), (pullback.tensor(3.0),))
    assert (value.dtype, tangent.dtype, tangent.item()) == (pullback.complex64, pullback.complex64, 3j)


def test_dtypes_are_promoted_as_for_one_element() -> None:
    """Of one element, both operands are 0-d; PyTorch 2.13 counts the axis of the batch."""
    row, number = pullback.ones(2, dtype=pullback.float16), pullback.tensor(1.5, dtype=pullback.float64)
    assert pullback.vmap(lambda t: pullback.where(t > 2, t, number))(row).dtype == pullback.float64
    assert pullback.where(row[0] > 2, row[0], number).dtype == pullback.float64


@pytest.mark.parametrize("parts", [lambda t: t.chunk(2, -1), lambda t: t.unbind(-1), lambda t: t.split(1, -1)])
def test_a_part_of_several_may_be_written_to_under_vmap_and_keeps_its_history(parts: Callable[[Any], Any]) -> None:
    def f(t: Any) -> Any:
        parts(t)[0].mul_(t.detach()[..., :1].squeeze() * 0 + 3)
        return t

    x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    found = pullback.vmap(f)(y)
    assert found.tolist() == y.tolist() == [[3.0, 2.0], [9.0, 4.0]]
    assert pullback.autograd.grad(found.sum(), x)[0].tolist() == [[3.0, 1.0], [3.0, 1.0]]


def test_what_linearize_gives_is_a_constant() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    _, push = pullback.func.linearize(lambda t: t * t, x)
    assert not push(pullback.ones(2)).requires_grad

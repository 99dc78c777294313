"""What pullback's answers are where `meant.py` lets the libraries differ."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import forward_ad
from tests.random_programs import comparing, evidence, meant
from tests.random_programs.catalogue import BATCHED, TRANSFORMS
from tests.random_programs.running import quietly
from tests.random_programs.steps import Program, Step, written


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float64"])
def test_an_integer_operand_does_not_overflow_in_a_gradient(name: str, dtype: str) -> None:
    x = pullback.tensor([0.5, 2.0], dtype=pullback.float64, requires_grad=True)
    whole = pullback.tensor([251, 3]).to(getattr(pullback, dtype))
    getattr(pullback, name)(x.detach(), whole, x, value=2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == ([502.0, 6.0] if name == "addcmul" else [-502.0 / 0.25, -6.0 / 4.0])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "bool", "int64"])
def test_an_integer_beside_an_angle_does_not_overflow_in_a_gradient(dtype: str) -> None:
    y = pullback.tensor([0.5, 2.0], dtype=pullback.float64)
    whole = pullback.tensor([120, 3]).to(getattr(pullback, dtype))
    for turned in (False, True):

        def angle(y: pullback.Tensor, whole: pullback.Tensor, turned: bool = turned) -> pullback.Tensor:
            return pullback.atan2(y, whole) if turned else pullback.atan2(whole, y)

        for n in (whole, whole.double()):
            x = y.clone().requires_grad_()
            (g,) = pullback.autograd.grad(angle(x, n).sum(), x, create_graph=True)
            (second,) = pullback.autograd.grad(g.sum(), x)
            along = pullback.func.jvp(lambda x, n=n: angle(x, n), (y,), (pullback.ones_like(y),))[1]
            found = [g.tolist(), second.tolist(), along.tolist()]
            if n is whole:
                first = found
        np.testing.assert_allclose(first, found, rtol=1e-14)


@pytest.mark.parametrize("make", [lambda t: t.tile(2), lambda t: t.repeat(2), lambda t: pullback.stack([t, t])])
def test_what_is_repeated_of_an_inference_tensor_may_be_written_to(make: object) -> None:
    w = pullback.tensor(3.0, requires_grad=True)
    with pullback.inference_mode():
        t = pullback.tensor([1.0, 2.0]) * 2
    with pullback.no_grad():
        y = make(t)  # type: ignore[operator]
    assert not y._is_view()
    y.add_(w)
    y.sum().backward()
    assert (y.flatten().tolist(), w.grad.tolist() if w.grad is not None else None) == ([5.0, 7.0, 5.0, 7.0], 4.0)


def test_a_tangent_under_no_grad_is_a_constant() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    for view in (lambda t: t[...], lambda t: t.view_as(t), lambda t: t * 2):
        with forward_ad.dual_level(), pullback.no_grad():
            tangent = forward_ad.unpack_dual(view(forward_ad.make_dual(x, x * 1))).tangent
        assert tangent is not None
        assert not tangent.requires_grad


def test_third_derivatives_of_a_power_whose_exponent_is_1() -> None:
    base = pullback.tensor(1.5, dtype=pullback.float64, requires_grad=True)
    exponent = pullback.tensor(1.0, dtype=pullback.float64, requires_grad=True)
    for order in ((base, base, exponent), (base, exponent, base), (exponent, base, base)):
        found = base**exponent
        for t in order:
            (found,) = pullback.autograd.grad(found, t, create_graph=True)
        assert found.item() == pytest.approx(1 / 1.5)  # of (e - 1) b ** (e - 2) + e b ** (e - 2), at e = 1


def test_a_gradient_that_is_passed_in_is_not_what_is_added_to() -> None:
    x = pullback.tensor([0.5, -1.5], requires_grad=True)
    y = x[:, None]
    y.backward(y.detach(), retain_graph=True)
    y.sum().backward()
    assert (x.tolist(), x.grad.tolist() if x.grad is not None else None) == ([0.5, -1.5], [1.5, -0.5])


def test_a_hook_on_saved_tensors_that_gives_back_what_was_written_to_is_refused() -> None:
    for f in (lambda x: x.exp(), lambda x: x.tanh()):
        x = pullback.tensor([1.0, 2.0], requires_grad=True)
        for keep, refuses in ((lambda t: t, True), (lambda t: t.detach(), True), (lambda t: t.clone(), False)):
            with pullback.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
                y = f(x)
            (right,) = pullback.autograd.grad(y.sum(), x, retain_graph=True)
            y.mul_(2)
            if refuses:
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    pullback.autograd.grad(y.sum(), x)
            else:
                assert pullback.allclose(pullback.autograd.grad(y.sum(), x)[0], 2 * right)


def test_a_hook_of_a_tensor_from_outside_is_called_if_it_is_what_a_transformed_function_returns() -> None:
    outside, calls = pullback.tensor([2.0], requires_grad=True), []
    outside.register_hook(lambda g: calls.append(g.tolist()))
    for same in (lambda: outside, lambda: outside.float(), lambda: outside.to(pullback.float32)):
        _, pull = pullback.func.vjp(lambda t, same=same: same(), pullback.ones(1))
        assert pull(pullback.ones(1))[0].tolist() == [0.0]
    assert calls == [[1.0]] * 3


def test_the_tangent_of_a_real_result_is_real() -> None:
    x = pullback.tensor([3.0 + 4.0j], dtype=pullback.complex128)
    value, tangent = pullback.func.jvp(pullback.abs, (x,), (pullback.ones_like(x),))
    assert (value.dtype, tangent.dtype) == (pullback.float64, pullback.float64)
    assert tangent.tolist() == pytest.approx([0.6])


def test_gelu_of_a_large_negative_number_is_a_tiny_one() -> None:
    found = pullback.nn.functional.gelu(pullback.tensor(-6.0)).item()
    assert found == pytest.approx(-5.9195e-09, rel=1e-3)  # -6 Phi(-6)


def test_what_take_makes_under_no_grad_may_be_written_to_within_vmap() -> None:
    def f(t: pullback.Tensor) -> pullback.Tensor:
        with pullback.no_grad():
            taken = t.take(pullback.tensor([0, 0]))
        taken += t
        return taken

    x = pullback.tensor([1.5, 2.0])
    assert pullback.func.grad(lambda s: pullback.vmap(f)(s).sum())(x).tolist() == [2.0, 2.0]


def test_integers_in_windows_that_share_elements_are_not_clamped_in_place() -> None:
    t = pullback.tensor([2, 4, 3]).unfold(0, 2, 1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        t.clamp_(-0.75, 0.75)
    assert t.tolist() == [[2, 4], [4, 3]]


def test_what_a_transform_returns_of_a_view_made_under_no_grad_is_a_constant() -> None:
    x = pullback.ones(3, 2, requires_grad=True)
    with pullback.no_grad():
        v = x.diagonal()
    assert not pullback.vmap(lambda t: v.narrow(-1, 1, 1))(x).requires_grad


def test_a_view_made_under_no_grad_shows_a_later_write_within_a_transform() -> None:
    def f(x: pullback.Tensor) -> pullback.Tensor:
        with pullback.no_grad():
            v = x[-1:]
        x[x > 1] = 1.0
        return v

    x = pullback.tensor([0.5, 2.0]) * 1
    assert pullback.func.jvp(f, (x,), (pullback.ones(2),))[0].tolist() == [1.0]


def test_a_hook_of_a_node_sees_no_gradient_that_nobody_asks_for() -> None:
    empty, seen = pullback.tensor([], requires_grad=True), []
    y = pullback.cat([pullback.ones(1, 3), empty])
    assert y.grad_fn is not None
    y.grad_fn.register_hook(lambda given, came: seen.append([None if g is None else tuple(g.shape) for g in given]))
    pullback.autograd.grad(y.sum(), [empty], materialize_grads=True)
    assert seen == [[None, (0,)]]


def test_baddbmm_refuses_another_shape_than_the_products_within_vmap() -> None:
    x = pullback.ones(2, 1, 3)
    with pytest.raises(RuntimeError, match="expected input to be broadcast to the shape of the product"):
        pullback.vmap(lambda t: pullback.baddbmm(t, x, x.mT))(x)


def test_a_function_that_wrote_to_a_view_of_a_leaf_and_was_refused() -> None:
    class Doubled(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            ctx.mark_dirty(t.mul_(2))
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    leaf = pullback.tensor([1.25]).view(1).requires_grad_()
    other = leaf.expand(2, 1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place"):
        Doubled.apply(leaf)
    assert other.requires_grad


def test_a_remainder_of_zero_has_the_sign_of_the_divisor() -> None:
    x = pullback.tensor([-4.5, 4.5, -0.0])
    assert pullback.signbit(x % 1.5).tolist() == [False] * 3
    assert pullback.signbit(x % -1.5).tolist() == [True] * 3


def test_index_fill_refuses_elements_that_share_memory() -> None:
    x = pullback.ones(4).expand(2, 4)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.index_fill_(-1, pullback.tensor([1]), 3.0)


def test_as_strided_of_another_layout_within_a_transform_is_not_written_to() -> None:
    x = pullback.arange(6.0).reshape(3, 2)[:, :1]
    with pytest.raises(RuntimeError, match="expected writable memory, found a read-only array"):
        pullback.func.jvp(lambda t: t.as_strided((2,), (2,)).mul_(2), (x,), (x,))


def test_equal_numbers_share_the_derivative_of_their_minimum() -> None:
    x = pullback.tensor([0.5, 0.5], requires_grad=True)
    pullback.minimum(x[0], x[1]).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, 0.5]


# And a fault of ours is no such difference ---------------------------------------------------------------------------

FORWARD = "lib.func.jvp({0}, ({1},), (lib.ones_like({1}),))[1]"
BODIES = {
    "a tensor multiplied by itself in place": ("{0}.mul_({0})", "w", "w", FORWARD),
    "in forward mode torch's result shares its tangent": ("{0}.mul_(3)", "w", "rest", FORWARD),
    "a second `jvp` of a Function": (
        "F.Modern.apply({0})",
        "t",
        "result",
        "lib.func.jacfwd(lib.func.jacfwd({0}))({1}).clone(memory_format=lib.contiguous_format)",
    ),
}


def _of_body(name: str) -> Program:
    line, on, result, transform = BODIES[name]
    steps = (
        Step("{0} * 2", ("t",), "w"),
        Step("{0} % 1.5", ("w",), "rest"),
        Step(line, (on,), "result"),
    )
    start = written("x = lib.tensor([0.5, -1.0, 1.5], dtype=lib.float64, requires_grad=True)")
    return (*start, Step("{0}", (result,), "f", body=steps, parameters=("t",)), Step(transform, ("f", "x"), "r"))


@pytest.mark.torch
@pytest.mark.parametrize("name", BODIES)
def test_a_wrong_derivative_of_ours_is_not_meant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    program = _of_body(name)
    with quietly():
        what, answers = comparing.between_libraries(program)
        assert what == "values of r"
        assert meant.reason_of(what, answers, program).startswith(name)
        for transform in ("jvp", "jacfwd"):
            inner = getattr(pullback.func, transform)
            monkeypatch.setattr(pullback.func, transform, lambda *args, inner=inner: _enlarged(inner(*args)))
        what, answers = comparing.between_libraries(program)
        assert what == "values of r"
        assert meant.reason_of(what, answers, program) == ""


def _enlarged(found: Any) -> Any:
    if callable(found):
        return lambda *args: found(*args) * 1.75
    return found[0], found[1] * 1.75


@pytest.mark.torch
def test_a_wrong_gradient_of_layer_norm_is_not_meant() -> None:
    pytest.importorskip("torch")
    for dtype in ("float32", "float64"):
        program = written(
            f"x = lib.tensor([0.5, -1.0, 1.5], dtype=lib.{dtype}, requires_grad=True);"
            "y = lib.nn.functional.layer_norm(x, (3,))"
        )
        shown = evidence.Shown("gradients of y", "[[float32, [1.0]]]  |  [[float32, [2.0]]]", program)
        assert evidence.same_in_double(shown)
    layer_norm = pullback.nn.functional.layer_norm
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            pullback.nn.functional, "layer_norm", lambda x, shape: layer_norm(x * 1.25, shape) + x - x.detach()
        )
        assert meant.reason_of(shown.what, shown.answers, shown.program) == ""


@pytest.mark.torch
def test_a_second_derivative_of_what_writes_to_its_argument_is_checked() -> None:
    pytest.importorskip("torch")
    function = Step(
        "{0}", ("w",), "f", body=(Step("{0}.addcmul_({0}, {0}, value=0.5)", ("t",), "w"),), parameters=("t",)
    )
    for start in ("1.0", "[1.0, -2.0]"):
        program = (
            *written(f"x = lib.tensor({start}, dtype=lib.float64)"),
            function,
            Step("lib.func.jacfwd(lib.func.jacfwd({0}))({1})", ("f", "x"), "r"),
        )
        with quietly():
            what, answers = comparing.between_libraries(program)
            assert what == "values of r"
            assert meant.reason_of(what, answers, program).startswith("a tensor multiplied by itself in place")
            inner = pullback.func.jacfwd
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(pullback.func, "jacfwd", lambda *args, inner=inner: _enlarged(inner(*args)))
                assert not evidence.right(evidence.Shown(what, answers, program))


OPEN_AXES = Step("lib.lerp({0}, {1}, 0.25)", ("v", "w"), "r")
OPEN = (
    *written("x = lib.tensor([[-1.5, 1.0], [-0.5, -2.0]], dtype=lib.float64); w = x.t(); v = w.unsqueeze(-1)"),
    OPEN_AXES,
)
SETTLED = (*written("x = lib.tensor([[-1.5, 1.0], [-0.5, -2.0]]); w = x.t(); v = w"), OPEN_AXES)


@pytest.mark.torch
def test_a_layout_is_meant_only_where_operands_leave_it_open_and_ours_is_one_of_theirs() -> None:
    pytest.importorskip("torch")

    def reason(program: Program, lerp: Any) -> str:
        with quietly(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(pullback, "lerp", lerp)
            what, answers = comparing.between_libraries(program)
            assert what == "layout of lib.lerp({0}, {1}, 0.25)"
            return meant.reason_of(what, answers, program)

    lerp = pullback.lerp
    assert "an order that an operand has" in reason(OPEN, lerp)
    # with other values, with gaps, in an order that no operand has, and where nothing is open
    assert reason(OPEN, lambda *args: lerp(*args) * 1.5) == ""
    assert reason(OPEN, lambda *args: pullback.stack([lerp(*args)] * 2, -1)[..., 0]) == ""
    assert reason(OPEN, lambda *args: lerp(*args).contiguous()) == ""
    assert reason(SETTLED, lambda *args: lerp(*args).contiguous()) == ""


def test_each_form_that_goes_forward_has_a_definition() -> None:
    goes = r"func\.jvp\(|jacfwd|forward_mode|hessian|linearize"
    forms = [form for form in (*TRANSFORMS, *BATCHED) if re.search(goes, form) and ")[0]" not in form]
    assert len(forms) >= 9
    for definitions in (evidence._REVERSE, evidence._QUOTIENTS):
        for form in forms:
            found = evidence.by_definition(form, definitions)
            assert not re.search(goes, found), form


@pytest.mark.parametrize("view", [lambda t: t[...], lambda t: t.view_as(t), lambda t: t[0:2]])
def test_a_write_to_a_view_of_a_tensor_from_outside_reaches_it(view: Any) -> None:
    outside = pullback.tensor([1.0, 2.0])

    def fn(t: Any) -> Any:
        view(outside).copy_(t * 3)
        return outside

    assert pullback.func.jacrev(fn)(pullback.tensor([5.0, 7.0])).tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert outside.tolist() == [15.0, 21.0]
    assert pullback.func.jacfwd(fn)(pullback.tensor([5.0, 7.0])).tolist() == [[3.0, 0.0], [0.0, 3.0]]


def test_the_tangent_of_a_linear_function_is_a_constant() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, pullback.ones(2)) / 4).tangent
    assert tangent is not None
    assert (tangent.tolist(), tangent.requires_grad) == ([0.25, 0.25], False)
    assert not pullback.func.jacfwd(pullback.func.jacfwd(lambda t: 0 * t))(x).requires_grad


def test_the_hessian_of_log_softmax_along_ones_vanishes() -> None:
    x = pullback.tensor([0.75, 0.0, 2.0, -0.5], dtype=pullback.float64, requires_grad=True)
    y = x.log_softmax(-1)
    (first,) = pullback.autograd.grad((y * y * y).sum(), x, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), x)
    assert second.abs().max().item() < 1e-12


def test_third_derivatives_of_layer_norm() -> None:
    weights = pullback.tensor([1.0, -2.0, 0.5], dtype=pullback.float64)

    def second(x: pullback.Tensor) -> pullback.Tensor:
        found = (pullback.nn.functional.layer_norm(x, (3,)) * weights).sum() ** 2
        for _ in range(2):
            (found,) = pullback.autograd.grad((found * weights).sum(), x, create_graph=True)
        return (found * weights).sum()

    x = pullback.tensor([0.5, 2.25, 3.75], dtype=pullback.float64, requires_grad=True)
    (third,) = pullback.autograd.grad(second(x), x)
    steps = pullback.eye(3, dtype=pullback.float64) * 1e-4
    moved = [[(x + sign * step).detach().requires_grad_() for sign in (1, -1)] for step in steps]
    quotients = [(second(up) - second(down)).item() / 2e-4 for up, down in moved]
    assert third.tolist() == pytest.approx(quotients, rel=1e-5)


@pytest.mark.torch
def test_a_wrong_answer_in_half_precision_is_not_meant() -> None:
    pytest.importorskip("torch")
    program = written(
        "x = lib.tensor([-0.5, 0.25], dtype=lib.float16);"
        "r = lib.func.jacfwd(lambda t: t.clone().addcmul_(t, t, value=0.5))(x)"
    )
    shown = evidence.Shown("values of r", "[float16, []]  |  [float16, []]", program)
    assert evidence.right(shown)
    inner = pullback.func.jacfwd
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pullback.func, "jacfwd", lambda *args: lambda x: inner(*args)(x) * 1.75)
        assert not evidence.right(shown)


def test_a_tensor_written_to_before_a_checkpoint_runs_again_is_refused() -> None:
    w = pullback.tensor([0.5, 2.0], requires_grad=True)
    x = pullback.tensor([1.0, 3.0], requires_grad=True)
    y = pullback.utils.checkpoint.checkpoint(lambda t: pullback.atan2(w, t), x, use_reentrant=False)
    with pullback.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert w.grad is None
    assert x.grad is None


def test_a_second_derivative_of_an_angle_at_the_origin_is_zero() -> None:
    y = pullback.zeros(2, requires_grad=True)
    along = pullback.func.jvp(lambda t: pullback.atan2(y, t), (pullback.zeros(2),), (pullback.ones(2),))[1]
    assert pullback.autograd.grad(along.sum(), y)[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("ours", "theirs", "known"),
    [
        ("[[float32, [1.0]], None]", "[[float32, [1.0]], [float32, [[0.0, 4.484155085839415e-44]]]]", True),
        ("[[float32, [1.0]], None]", "[[float32, [1.0]], [float32, [[0.0, 0.5]]]]", False),
        ("[[float32, [1.0]], None]", "[[float32, [2.0]], [float32, [[0.0, 1e-44]]]]", False),
        ("[None, [float32, [1.0]]]", "[[float32, [0.0]], [float32, [1.0]]]", True),
        ("[None, [float32, [1.0]]]", "[[float32, [3.0]], [float32, [1.0]]]", False),
    ],
)
def test_what_lay_in_memory_is_told_from_a_gradient(ours: str, theirs: str, known: bool) -> None:
    assert evidence.only_denormal(ours, theirs) is known


def test_a_backward_that_needs_what_was_freed_adds_nothing() -> None:
    v1, v3 = (pullback.tensor([1.5, 2.0], requires_grad=True) for _ in range(2))
    v4 = v3.exp()
    v4.sum().backward()
    v5 = v4 * v1
    before = v3.grad.tolist()
    with pytest.raises(RuntimeError, match="a second time"):
        pullback.autograd.backward([v5.sum(), (v5 * v5).sum()])
    assert (v1.grad, v3.grad.tolist()) == (None, before)


def test_vjp_refuses_a_view_made_without_recording_whose_base_was_written_to() -> None:
    def f(x: Any) -> Any:
        with pullback.no_grad():
            part = x.split(1, 0)[0]
            x.tanh_()
        return part

    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        pullback.func.vjp(f, pullback.tensor([0.5, 1.0], requires_grad=True))


def test_a_gradient_that_does_not_depend_on_what_was_written() -> None:
    x = pullback.tensor([1.5, -1.0], requires_grad=True)
    with pullback.no_grad():
        whole = x.index_select(0, pullback.tensor([0, 1])) * 2
        part = whole[:1]
    error = pullback.nn.functional.mse_loss(part, x[:1])
    whole.sub_(x)
    (g,) = pullback.autograd.grad(error, x)
    assert g.tolist() == [-3.0, 0.0]  # 2 * (x - 2 * 1.5)


@pytest.mark.parametrize("axes", [(0, -1), (0, 1)])
def test_a_view_whose_axes_are_changed_in_place_and_that_is_written_to(axes: tuple[int, int]) -> None:
    weights = pullback.arange(8, dtype=pullback.float64).reshape(2, 2, 2)

    def f(x: pullback.Tensor, in_place: bool) -> pullback.Tensor:
        turned = pullback.view_as_real(pullback.view_as_complex(x) * 1)
        turned = turned.transpose_(*axes) if in_place else turned.transpose(*axes)
        return (turned.pow_(2) * weights).sum()

    x = pullback.randn(2, 2, 2, dtype=pullback.float64, requires_grad=True)
    found, wanted = (pullback.autograd.grad(f(x, how), x)[0] for how in (True, False))
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    assert pullback.autograd.gradcheck(lambda x: f(x, True), x)


def test_a_leaf_that_a_function_must_not_write_to_keeps_its_views() -> None:
    class Doubled(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    leaf = pullback.tensor([[1.0 + 2j, 3.0j]]).hsplit(1)[0].requires_grad_()
    view = pullback.view_as_real(leaf)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place"):
        Doubled.apply(leaf)
    assert view.grad_fn is not None
    view.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[1 + 1j, 1 + 1j]]


def test_what_masked_scatter_makes_without_recording_may_be_written_to_in_a_transform() -> None:
    def f(t: Any) -> Any:
        with pullback.no_grad():
            made = t.masked_scatter(t.detach() == t.detach(), t)
        made += t
        return made

    x = pullback.tensor([[0.0, 1.25], [-2.0, 2.0]])
    along = pullback.func.vmap(lambda t: pullback.func.jvp(f, (t,), (t * 1,))[1])(x)
    assert along.tolist() == (2 * x).tolist()  # `no_grad` leaves tangents as they are


@pytest.mark.parametrize("dtype", [pullback.uint8, pullback.float64])
def test_mse_loss_is_that_of_the_values_before_a_write_through_data(dtype: Any) -> None:
    x = pullback.tensor([1.5, -1.0], dtype=pullback.float64, requires_grad=True)
    for place in (0, 1):
        other = pullback.tensor([4, 1], dtype=dtype)
        loss = pullback.nn.functional.mse_loss(*((x, other) if place else (other, x)))
        other.data.mul_(2)
        assert pullback.autograd.grad(loss, x)[0].tolist() == [-2.5, -2.0]  # x - (4, 1)


def test_the_function_that_vjp_gives_is_that_of_its_call_or_refused() -> None:
    def pulled(product: Any) -> Any:
        def f(t: Any) -> Any:
            part = t[..., ::2]
            with pullback.no_grad():
                part.neg_()
            return product(part, t)

        x = pullback.tensor([[0.5, 0.5], [0.25, 2.0]])
        pull = pullback.func.vjp(f, x)[1]
        return pull(pullback.ones_like(f(x)))[0].tolist()

    assert pulled(pullback.linalg.vecdot) == [[-0.5, -0.5], [1.5, -0.25]]  # at [[-0.5, 0.5], [-0.25, 2]]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pulled(lambda a, b: a * b)


@pytest.mark.parametrize("values", [[], [0.5, 2.0]])
def test_a_hook_has_no_values_to_look_at_in_several_passes_at_once(values: list[float]) -> None:
    x = pullback.tensor(values, requires_grad=True)
    x.register_hook(lambda g: g.numpy() * 2)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"NumPy cannot have the values of a tensor inside of vmap"):
        pullback.autograd.grad(y, [x], pullback.ones(2, *y.shape), is_grads_batched=True)


def test_a_write_to_no_elements_reaches_no_other_part() -> None:
    x = pullback.tensor([[1.25, 1.0]], requires_grad=True)
    part = pullback.tensor([[1.5, -1.0]])[1:]
    y = part * x
    part.t().fill_(0.5)
    assert pullback.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [[0.0, 0.0]]
    part.fill_(0.5)  # the saved tensor itself
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pullback.autograd.grad(y.sum(), x)


def test_a_second_derivative_of_gelu_frees_its_node() -> None:
    x = pullback.tensor([2.0], dtype=pullback.float64, requires_grad=True)
    y = pullback.nn.functional.gelu(x)
    y.zero_()
    for keep in (True, False):
        (g,) = pullback.autograd.grad((y * y * y).sum(), x, create_graph=True)
        pullback.autograd.grad(g.sum(), x, retain_graph=keep)
        if keep:
            assert pullback.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [0.0]
    with pytest.raises(RuntimeError, match=r"a second time(.|\n)*GeluBackward0"):
        pullback.autograd.grad(y.sum(), x)


def test_a_part_that_a_write_did_not_reach_is_apart_from_hooks_that_its_base_gets_then() -> None:
    def gradient(hooked: str) -> list[float]:
        x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
        base = x * 1
        left, right = base.tensor_split(2)
        if hooked == "before":
            base.register_hook(lambda g: g * 2)
        right.zero_()
        if hooked == "after":
            base.register_hook(lambda g: g * 2)
        return pullback.autograd.grad(left.sum() + base.sum(), x)[0].tolist()

    assert gradient("before") == [4.0, 4.0, 0.0]
    assert gradient("after") == [3.0, 3.0, 0.0]


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_no_nan_comes_past_the_mask_of_an_extreme(name: str) -> None:
    x = pullback.tensor([0.0, -0.5], dtype=pullback.float64, requires_grad=True)
    y = pullback.hypot(x, pullback.tensor(0.0)) * (1 if name == "amax" else -1)
    (first,) = pullback.autograd.grad(getattr(y, name)(-1) ** 3, x, create_graph=True)
    assert first[1].item() == pytest.approx(-0.75 if name == "amax" else 0.75)
    (second,) = pullback.autograd.grad(first.sum(), x)
    assert second[1].item() == pytest.approx(3.0 if name == "amax" else -3.0)


@pytest.mark.parametrize("dtype", [pullback.complex64, pullback.complex128])
def test_the_logistic_function_far_to_the_left_is_zero(dtype: pullback.dtype) -> None:
    z = pullback.tensor([complex(-100, 1), complex(-800, 2)], dtype=dtype, requires_grad=True)
    y = z.sigmoid()
    expected = [np.exp(complex(-100, 1)), 0.0]  # 1 / (1 + exp(-z)) is exp(z) there
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-5, atol=1e-43)
    (g,) = pullback.autograd.grad(y.real.sum(), z)
    np.testing.assert_allclose(g.numpy(), np.conj(expected), rtol=1e-5, atol=1e-43)


def test_a_write_by_a_mask_that_takes_nothing_is_freed_of_nothing_and_one_that_takes_is() -> None:
    x = pullback.tensor([[0.5, -1.0, 0.5]], requires_grad=True)
    for taken, base in ((False, -x), (True, -x)):
        part = base[-1:, 0].reshape((1, 1))
        part[(part < 1) == taken] = 1.0
        part.sum().backward()
        if taken:
            with pytest.raises(RuntimeError, match="a second time"):
                pullback.autograd.grad(part.sum(), x)
        else:
            assert pullback.autograd.grad(part.sum(), x)[0].tolist() == [[-1.0, 0.0, 0.0]]
    assert x.grad is not None
    assert x.grad.tolist() == [[-1.0, 0.0, 0.0]]


def test_gelu_of_windows_that_share_memory_is_that_of_their_copy() -> None:
    x = pullback.tensor([[1.0, 1.5], [1.0, -1.5], [0.25, 1.5]], dtype=pullback.bfloat16, requires_grad=True)
    windows = x.unfold(-2, 2, 1)
    found = pullback.nn.functional.gelu(windows)
    assert found.tolist() == pullback.nn.functional.gelu(windows.clone()).tolist()
    assert pullback.autograd.grad(found.sum(), x)[0].isfinite().all()


def test_a_write_by_a_mask_to_repeated_elements_is_refused_before_it_has_written() -> None:
    t = pullback.tensor([5, 0, 1], dtype=pullback.uint8)
    repeated = t.expand(2, 3)

    def f(t: pullback.Tensor) -> pullback.Tensor:
        t[t > 1] = 1.0
        return t

    for call in (lambda: f(repeated), lambda: pullback.autograd.functional.vjp(f, repeated, f(repeated))):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            call()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        repeated.copy_(repeated)
    assert t.tolist() == [5, 0, 1]


@pytest.mark.parametrize("values", [[], [0.5, 1.5]])
def test_a_tensor_multiplied_by_itself_in_place_has_the_gradient_of_its_square(values: list[float]) -> None:
    x = pullback.tensor(values, dtype=pullback.float64, requires_grad=True)
    y = x**3
    y.mul_(y)
    assert pullback.autograd.grad(y.sum(), x)[0].tolist() == pytest.approx([6 * v**5 for v in values])


def test_equal_elements_keep_their_order_in_a_sort_of_many() -> None:
    x = pullback.tensor([1.0, 0.5] * 200, dtype=pullback.bfloat16, requires_grad=True)
    found, order = x.sort()
    assert order.tolist() == [*range(1, 400, 2), *range(0, 400, 2)]
    weights = pullback.arange(400.0).remainder(7).bfloat16()
    (g,) = pullback.autograd.grad(found, x, weights)
    assert g[order].tolist() == weights.tolist()


def test_parts_of_a_complex_result_whose_axes_are_changed_in_place_have_these_axes() -> None:
    x = pullback.tensor([2 + 1j, 0.5 + 1j, 0.75 + 2j], dtype=pullback.complex64, requires_grad=True)
    y = x * 2
    parts = pullback.view_as_real(y)
    parts.t_()
    y += x
    (g,) = pullback.autograd.grad(parts, x, pullback.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert g.tolist() == [3 + 12j, 6 + 15j, 9 + 18j]


@pytest.mark.parametrize("part", [lambda t: t.select(1, 0), lambda t: t.narrow(1, 0, 1), lambda t: t[:, :1]])
def test_a_part_stays_valid_if_a_mask_takes_elements_beside_it_alone(part: Any) -> None:
    x = pullback.tensor([2.0], requires_grad=True)
    t = pullback.tensor([[0.0, 2.0], [-2.0, 3.0]])
    y = part(t) * x
    t.masked_fill_(t > 1, 0.25)
    assert pullback.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [-2.0]
    t.masked_fill_(t < 0, 0.25)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pullback.autograd.grad(y.sum(), x)


def test_a_part_that_a_write_did_not_reach_needs_nothing_that_a_pass_frees() -> None:
    x = pullback.tensor([[-1.0, 0.75, -2.25]], requires_grad=True)
    base = -x
    parts = base[..., 0], base[..., 2]
    base.masked_fill_(base > 2, 0.25)
    expected = [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    for part, gradient in zip(parts, expected, strict=True):
        assert pullback.autograd.grad(part.sum(), x)[0].tolist() == [list(gradient)]
    assert pullback.autograd.grad(parts[0].sum(), x)[0].tolist() == [[-1.0, 0.0, 0.0]]
    with pytest.raises(RuntimeError, match="a second time"):
        pullback.autograd.grad(parts[1].sum(), x)


def test_a_second_derivative_of_a_tangent_of_softplus_frees_its_sigmoid() -> None:
    x = pullback.tensor([1.25, -0.5], dtype=pullback.float64, requires_grad=True)
    y = pullback.func.jvp(pullback.nn.functional.softplus, (x,), (pullback.ones_like(x),))[1] ** 0
    for keep in (True, False):
        (g,) = pullback.autograd.grad((y * y * y).sum(), x, create_graph=True)
        pullback.autograd.grad(g.sum(), x, retain_graph=keep)
        if keep:
            assert pullback.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match=r"a second time(.|\n)*SigmoidBackward0"):
        pullback.autograd.grad(y.sum(), x)


def test_a_tangent_of_what_joins_no_elements_has_the_axis_of_the_batch() -> None:
    def tangent(t: pullback.Tensor) -> pullback.Tensor:
        return pullback.func.jvp(lambda t: pullback.cat([t, t], -1).add_(t, alpha=2), (t,), (t * 1,))[1]

    assert pullback.vmap(tangent)(pullback.ones(2, 0)).shape == (2, 0)
    assert pullback.vmap(tangent)(pullback.ones(2, 1)).tolist() == [[3.0, 3.0]] * 2


def test_a_view_without_recording_of_a_second_derivative_that_is_constant_is_one() -> None:
    x = pullback.tensor([[0.0, 1.0], [0.75, 0.0]], dtype=pullback.float64, requires_grad=True)
    second = pullback.func.jacfwd(pullback.func.jacrev(lambda t: t @ t.t()))(x)
    assert not second.requires_grad
    with pullback.no_grad():
        view = second.narrow(1, 1, 1)
    with pytest.raises(RuntimeError, match="does not require grad"):
        pullback.autograd.grad(view.sum(), [x, view], allow_unused=True)
    factor = pullback.tensor(2.0, dtype=pullback.float64, requires_grad=True)
    second.mul_(factor)
    found = pullback.autograd.grad(second.sum(), [factor, x], allow_unused=True)
    assert found[0].item() == 16.0
    assert found[1] is None

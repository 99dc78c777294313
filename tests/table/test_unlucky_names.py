"""What an argument is called decides nothing: operations of every kind are entered with every unlucky name there is.

Each operation is written out under the name, entered, tried in every mode, and taken out again: its value, a keyword
call, `out=`, `vmap` against a loop, `jvp` against a difference, double backward against the derivative it must be, a
second `backward()`, and `compile`. What a rule saved alone decides whether a node can run again.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor
from pullback.func import jvp, vmap
from pullback.interpreters.batch_rules import by_positions, by_row, dims
from pullback.table import entry
from pullback.table.calls import on
from pullback.table.tensor_methods import enter_methods
from pullback.tensor.tensor import NUMPY

AXES = "axis axes dim dims dim0 dim1 dimension keepdim keepdims"
SIZES = "n size sizes shape step stride offset pad norm repeats lengths geometry diagonal shifts inverse"
RESULTS = "out out0 out1 g grad saved plan name node result input_shape x_shape v_shape other_shape"
TENSORS = "input other x self value values alpha beta mask index condition tensors tensor weight dtype"
MECHANISM = "op args kwargs level call rule rules view batch jvp cut home numbers narrow samples method function"
NAMES = " ".join((AXES, SIZES, RESULTS, TENSORS, MECHANISM)).split()

_numbers = itertools.count()

ROWS = np.array([[1.0, 3.0, 2.0], [0.5, -1.0, 4.0]])
STEP = 1e-6


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    """Leave the table as it was found: entries, functions, methods, and NumPy functions with a rule."""
    held: list[tuple[dict[Any, Any], dict[Any, Any]]] = [
        (place, dict(place)) for place in (entry.TABLE, entry.METHODS, NUMPY, *entry.NAMES.values())
    ]
    methods = {*vars(Tensor)}
    yield
    for place, before in held:
        place.clear()
        place.update(before)
    for name in {*vars(Tensor)} - methods:
        delattr(Tensor, name)


def written(source: str, **known: Any) -> Callable[..., Any]:
    """The function `f` of a source text."""
    space = {"np": np, "on": on, **known}
    exec(source, space)
    found: Callable[..., Any] = space["f"]
    found.__name__ = f"unlucky_{next(_numbers)}"  # each is another operation
    return found


def rule(text: str, *needs: str) -> Any:
    """A rule that names the unlucky argument; the cotangent is called `u`, as an argument may be called `g`."""
    return eval(f"lambda {', '.join(('u', *needs))}: {text}", {"np": np, "on": on})


def other_than(name: str, wanted: str) -> str:
    """A name for the rest of the arguments."""
    return wanted if wanted != name else f"{wanted}_"


def leaf(values: Any = ROWS) -> Tensor:
    return pullback.tensor(values, dtype=pullback.float64, requires_grad=True)


def check(call: Callable[[Tensor], Tensor], right: Callable[[Any], Any]) -> None:
    """Hold an operation of one tensor to what it is in NumPy, in every mode."""
    x, v = leaf(), np.linspace(-1.0, 1.0, ROWS.size).reshape(ROWS.shape)
    np.testing.assert_allclose(call(x).detach().numpy(), right(ROWS))
    many = np.stack([ROWS, 2 * ROWS, ROWS - 1])
    np.testing.assert_allclose(vmap(call)(pullback.tensor(many)).numpy(), np.stack([right(r) for r in many]))
    _, tangent = jvp(call, (x.detach(),), (pullback.tensor(v),))
    difference = (right(ROWS + STEP * v) - right(ROWS - STEP * v)) / (2 * STEP)
    np.testing.assert_allclose(tangent.numpy(), difference, atol=1e-7)
    assert pullback.autograd.gradcheck(call, (x,))
    assert pullback.autograd.gradgradcheck(call, (x,))
    squares = vmap(pullback.func.grad(lambda t: (call(t) ** 2).sum()))(pullback.tensor(many))
    for row, found in zip(many, squares, strict=True):
        one = leaf(row)
        (call(one) ** 2).sum().backward()
        assert one.grad is not None
        np.testing.assert_allclose(found.numpy(), one.grad.numpy())
    compiled = pullback.compile(call, backend="numpy")
    for _ in range(2):
        np.testing.assert_allclose(compiled(x).detach().numpy(), right(ROWS))


def check_keywords(call: Callable[[Tensor], Tensor], right: Callable[[Any], Any]) -> None:
    """Hold a call with arguments by name to NumPy, of one tensor and of many."""
    many = np.stack([ROWS, 2 * ROWS])
    np.testing.assert_allclose(call(leaf()).detach().numpy(), right(ROWS))
    np.testing.assert_allclose(vmap(call)(pullback.tensor(many)).numpy(), np.stack([right(r) for r in many]))
    _, tangent = jvp(call, (leaf().detach(),), (pullback.tensor(ROWS),))
    assert tangent.shape == right(ROWS).shape


def runs_twice(result: Tensor) -> bool:
    """Whether a graph of one operation can be run backward again; otherwise the error is the usual one."""
    ones = pullback.ones_like(result)
    result.backward(ones)
    with contextlib.suppress(RuntimeError):
        result.backward(ones)
        return True
    with pytest.raises(RuntimeError, match="second time"):
        result.backward(ones)
    return False


def check_out(call: Callable[..., Any], name: str, *args: Any) -> None:
    """``out=`` is written to, unless an argument has that name."""
    if name != "out":
        out = pullback.empty(ROWS.shape, dtype=pullback.float64)
        assert call(*args, out=out) is out
        np.testing.assert_allclose(out.numpy(), call(*args).detach().numpy())


def differences(x: Any, axis: int) -> Any:
    return np.subtract(np.roll(x, 1, axis), x)


@pytest.mark.parametrize("name", NAMES)
def test_an_axis(name: str) -> None:
    x = other_than(name, "x")
    forward = written(f"def f({x}, {name}): return np.subtract(np.roll({x}, 1, {name}), {x})")
    adjoint = rule(f"np.subtract(np.roll(u, -1, {name}), u)", name)
    call = entry.linear(batch=dims(name), rules={x: adjoint})(forward)
    for axis in (0, -1):
        check(lambda t, axis=axis: call(t, axis), lambda a, axis=axis: differences(a, axis))
        check_keywords(lambda t, axis=axis: call(t, **{name: axis}), lambda a, axis=axis: differences(a, axis))
    assert runs_twice(call(leaf(), 1))
    check_out(call, name, leaf().detach(), 0)
    rows = vmap(lambda t: call(t, 0))(pullback.tensor(ROWS.T))  # one axis each
    np.testing.assert_allclose(rows.numpy(), differences(ROWS.T, 1))


@pytest.mark.parametrize("name", NAMES)
def test_axes_that_are_reduced(name: str) -> None:
    x = other_than(name, other_than(name.removesuffix("_shape"), "x"))
    keep = other_than(name, "keepdim")
    forward = written(f"def f({x}, {name}=None, {keep}=False): return np.sum({x}, axis={name}, keepdims={keep})")
    spread = f"np.broadcast_to(u if {keep} or {name} is None else np.expand_dims(u, {name}), {x}_shape)"
    adjoint = rule(spread, f"{x}_shape", name, keep)
    call = entry.linear(batch=dims(name, keeps=keep), rules={x: adjoint})(forward)
    check(lambda t: call(t, 1, True), lambda a: a.sum(1, keepdims=True))
    check(lambda t: call(t, (0, 1)), lambda a: a.sum())
    check(lambda t: call(t), lambda a: a.sum())
    check_keywords(lambda t: call(t, **{keep: False, name: 0}), lambda a: a.sum(0))
    assert runs_twice(call(leaf(), 1))


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_number(name: str, told: bool) -> None:
    x = other_than(name, "x")
    forward = written(f"def f({x}, {name}): return np.multiply({x}, {name})")
    facts = {"numbers": name} if told else {}
    call = entry.linear(batch="leading", rules={x: rule(f"np.multiply(u, {name})", name)}, **facts)(forward)
    check(lambda t: call(t, 2.5), lambda a: 2.5 * a)
    check_keywords(lambda t: call(t, **{name: 3}), lambda a: 3 * a)
    assert runs_twice(call(leaf(), 2.5))
    check_out(call, name, leaf().detach(), 2.0)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_complex_number(name: str, told: bool) -> None:
    """A rule gets the conjugate of a number, too."""
    x = other_than(name, "x")
    forward = written(f"def f({x}, {name}): return np.multiply({x}, {name})")
    facts = {"numbers": name} if told else {}
    call = entry.linear(batch="leading", rules={x: rule(f"np.multiply(u, {name})", name)}, **facts)(forward)
    z = pullback.tensor(ROWS + 1j, dtype=pullback.complex128, requires_grad=True)
    assert pullback.autograd.gradcheck(lambda t: call(t, 1 - 2j), (z,))
    assert runs_twice(call(z, 1 - 2j))


@pytest.mark.parametrize("name", NAMES)
def test_an_annotated_number(name: str) -> None:
    x = other_than(name, "x")
    forward = written(f"def f({x}, {name}: int | None = 2): return np.multiply({x}, {name})")
    call = entry.special(batch="leading", rules={x: rule(f"np.multiply(u, {name})", name)})(forward)
    assert not call.op.decides_late
    check(lambda t: call(t), lambda a: 2 * a)
    assert runs_twice(call(leaf()))


@pytest.mark.parametrize("name", NAMES)
def test_a_sequence(name: str) -> None:
    x = other_than(name, "x")
    forward = written(f"def f({x}, {name}): return np.roll({x}, {name}, (-2, -1))")
    back = rule(f"np.roll(u, tuple(-k for k in {name}), (-2, -1))", name)
    call = entry.linear(batch="leading", rules={x: back})(forward)
    check(lambda t: call(t, (1, 2)), lambda a: np.roll(a, (1, 2), (0, 1)))
    assert runs_twice(call(leaf(), (1, 2)))


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_that_has_no_derivative(name: str) -> None:
    x = other_than(name, "x")
    forward = written(f"def f({x}, {name}): return np.multiply({x}, {name})")
    call = entry.linear(batch="leading", rules={x: rule(f"np.multiply(u, {name})", name)})(forward)
    weight = pullback.tensor(ROWS + 1)
    check(lambda t: call(t, weight), lambda a: a * (ROWS + 1))
    check_keywords(lambda t: call(t, **{name: weight}), lambda a: a * (ROWS + 1))
    assert not runs_twice(call(leaf(), weight))
    result = call(leaf(), weight)
    result.backward(pullback.ones_like(result), retain_graph=True)
    result.backward(pullback.ones_like(result))
    result = call(leaf(), weight)
    weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@pytest.mark.parametrize("name", NAMES)
def test_tensors_in_a_sequence(name: str) -> None:
    x = other_than(name, "x")
    forward = written(f"def f({x}, {name}): return np.take({x}, {name}[0], -1)")
    back = rule(f"np.take(u, np.argsort({name}[0]), -1)", name)
    call = entry.linear(rules={x: back})(forward)
    order = np.array([2, 0, 1])
    assert not runs_twice(call(leaf(), (order,)))
    np.testing.assert_allclose(call(leaf(), (order,)).detach().numpy(), ROWS[:, order])


@pytest.mark.parametrize("name", NAMES)
def test_both_operands(name: str) -> None:
    x = other_than(name, "x")
    source = f"def f({x}, {name}): return np.multiply({x}, {name})"
    rules = {x: rule(f"np.multiply(u, {name})", name), name: rule(f"np.multiply(u, {x})", x)}
    weight = leaf(ROWS + 1)
    for call in (
        entry.bilinear(batch="leading", rules=rules)(written(source)),
        entry.special(rules=rules)(written(source)),
        entry.pointwise(rules=rules)(written(source)),
    ):
        check(lambda t, call=call: call(t, weight.detach()), lambda a: a * (ROWS + 1))
        check(lambda t, call=call: call(weight.detach(), t), lambda a: a * (ROWS + 1))
        check(lambda t, call=call: call(t, t), lambda a: a * a)
        check_keywords(lambda t, call=call: call(weight.detach(), **{name: t}), lambda a: a * (ROWS + 1))
        assert not runs_twice(call(leaf(), weight))
        check_out(call, name, leaf().detach(), weight.detach())


@pytest.mark.parametrize("name", NAMES)
def test_the_one_operand_and_the_result(name: str) -> None:
    """The tensor itself has the name; the rule names the result, unless that is what the tensor is called."""
    if name == "out":
        back = {"out": rule("np.multiply(u, np.exp(out))", "out")}  # the argument
    else:
        back = {name: rule("np.multiply(u, out)", "out")}
    source = f"def f({name}): return np.exp({name})"
    ways = (entry.special(batch="leading", rules=back), entry.pointwise(rules=back))
    for call in [way(written(source)) for way in ways]:
        check(call, np.exp)
        check_keywords(lambda t, call=call: call(**{name: t}), np.exp)
        assert not runs_twice(call(leaf()))
        twin = leaf().clone()
        check_out(call, name, twin.detach())


@pytest.mark.parametrize("name", NAMES)
def test_several_results(name: str) -> None:
    """A rule of an operation with several results, which it names `out0`, beside an argument of the name."""
    x = other_than(name, "x")
    first = "out0" if name != "out0" else "out1"
    forward = written(f"def f({x}, {name}): return np.multiply({x}, {name}), np.multiply({x}, {name})")
    back = rule(f"np.multiply(np.add(*[np.zeros_like({first}) if k is None else k for k in u]), {name})", name, first)
    call = entry.special(rules={x: back})(forward)
    for i in (0, 1):
        check(lambda t, i=i: call(t, 2.0)[i], lambda a: 2 * a)


@pytest.mark.parametrize("name", NAMES)
def test_a_composite(name: str) -> None:
    x = other_than(name, "x")
    body = written(f"def f({x}, {name}): return {x} * {name}")
    body.__annotations__ = {x: "Tensor"}
    call = entry.composite()(body)
    check(lambda t: call(t, 2.0), lambda a: 2 * a)
    check_keywords(lambda t: call(t, **{name: 2.0}), lambda a: 2 * a)
    check_keywords(lambda t: call(**{x: t, name: t}), lambda a: a * a)
    check_out(call, name, leaf().detach(), 2.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_keyword_only_number(name: str) -> None:
    x = other_than(name, "x")
    forward = written(f"def f({x}, *, {name}=2.0): return np.multiply({x}, {name})")
    forward.__annotations__ = {name: "float"}
    call = entry.linear(batch="leading", rules={x: lambda u: 2.5 * u})(forward)
    check_keywords(lambda t: call(t, **{name: 2.5}), lambda a: 2.5 * a)


@pytest.mark.parametrize("name", NAMES)
def test_joined_tensors(name: str) -> None:
    axis = other_than(name, "dim")
    forward = written(f"def f({name}, {axis}=0): return np.concatenate({name}, {axis})")
    parts = f"[p for p in np.split(u, np.cumsum([s[{axis}] for s in {name}_shape])[:-1], {axis})]"
    call = entry.joining(rules={name: eval(f"lambda u, {name}_shape, {axis}: {parts}", {"np": np})})(forward)
    for given in ({}, {axis: 1}):
        check(
            lambda t, given=given: call([t, 2 * t], **given),
            lambda a, given=given: np.concatenate([a, 2 * a], *given.values()),
        )
    check_keywords(lambda t: call(**{name: [t, t], axis: 1}), lambda a: np.concatenate([a, a], 1))
    assert runs_twice(call([leaf(), leaf()], 1))


@pytest.mark.parametrize("name", NAMES)
def test_positions_along_an_axis(name: str) -> None:
    """The rules of `vmap` for positions: the axis has the name, then the positions have it."""
    x = other_than(name, "x")
    index = other_than(name, "index")
    order = pullback.tensor([[2, 0, 1], [1, 1, 0]])
    forward = written(f"def f({x}, {name}, {index}): return np.take_along_axis({x}, {index}, {name})")
    call = entry.constant(batch=by_positions(name), function=False)(forward)
    many = np.stack([ROWS, 2 * ROWS])
    each = np.stack([np.take_along_axis(r, order.numpy(), 1) for r in many])
    np.testing.assert_allclose(vmap(lambda t: call(t, -1, order))(pullback.tensor(many)).numpy(), each)
    axis = other_than(name, "dim")
    forward = written(f"def f({x}, {axis}, {name}): return np.take({x}, {name}, {axis})")
    call = entry.constant(batch=by_row(axis, name), function=False)(forward)
    found = vmap(lambda t: call(t, 1, order[0]))(pullback.tensor(many))
    np.testing.assert_allclose(found.numpy(), many[:, :, [2, 0, 1]])


def test_a_twin_with_an_argument_called_self() -> None:
    forward = written("def f(x, self): return np.multiply(x, self)")
    entry.pointwise(x=lambda u, self: u * self)(forward)
    enter_methods()
    x: Any = pullback.tensor(ROWS)
    assert getattr(x, f"{forward.__name__}_")(self=2.0) is x
    np.testing.assert_allclose(x.numpy(), 2 * ROWS)


# -- entries that name what is not there -------------------------------------------------------------------------------


def take(x: Any, axes: Any) -> Any:
    """An operation along an axis."""
    return np.take(x, 0, axes)


@pytest.mark.parametrize(
    "facts",
    [
        {"batch": dims("dim")},
        {"batch": dims("axes", keeps="keepdim")},
        {"batch": by_positions("dim")},
        {"batch": by_row("axes", "index")},
        {"batch": "dims"},
        {"batch": "axes"},
        {"numbers": "dim"},
        {"numbers": "axes dim"},
    ],
)
def test_a_fact_about_an_argument_that_there_is_not_is_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="table entry 'take'") as refusal:
        entry.linear(x=lambda u: u, **facts)(take)
    assert "What to do" in str(refusal.value)


def test_a_rule_that_could_be_a_fact_is_refused() -> None:
    forward = written("def f(x, view): return np.multiply(x, view)")
    with pytest.raises(TypeError, match=r"rules=\{'view'"):
        entry.bilinear(x=lambda u, view: u * view, view=lambda u, x: u * x)(forward)


def test_a_misspelt_fact_is_refused() -> None:
    with pytest.raises(TypeError, match="table entry 'take': 'methd' is neither a fact nor the rule of an argument"):
        entry.linear(x=lambda u: u, methd=False)(take)

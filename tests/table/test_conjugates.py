"""Complex numbers in the rules of every kind of operation: what was saved is conjugated, unless the entry says not to.

Operations are entered here in both ways: written as for real numbers, and, where a function is not holomorphic, with a
rule of complex numbers and ``conjugate=False``. Each is compared with finite differences in all modes; and each entered
with the other convention has to fail that comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback
from pullback.autograd import gradcheck, gradgradcheck
from pullback.func import jvp, vjp, vmap
from pullback.ops import TABLE
from pullback.table import entry

Call = Callable[..., Any]


class Case(NamedTuple):
    """A way to enter an operation, given `conjugate`; the shapes of its arguments, and what comes after them."""

    enter: Callable[[bool], Call]
    shapes: Sequence[tuple[int, ...]]
    more: tuple[Any, ...] = ()
    conjugate: bool = True


_HIDDEN: Any = {"method": False, "function": False, "inplace": False}


def _elementwise(conjugate: bool) -> Call:
    rule = {"input": lambda g, input: g * (3 * input * input)}
    return entry.elementwise("_cubed", lambda z: z * z * z, "``z ** 3``.", conjugate=conjugate, **rule, **_HIDDEN)


def _elementwise_of_result(conjugate: bool) -> Call:
    rule = {"input": lambda g, out: g * out}
    return entry.elementwise("_raised", lambda z: np.exp(z), "``exp(z)``.", conjugate=conjugate, **rule, **_HIDDEN)


def _elementwise_of_two(conjugate: bool) -> Call:
    rules = {"input": lambda g, other: g / other, "other": lambda g, other, out: -g * out / other}
    return entry.elementwise("_over", lambda a, b: a / b, "``a / b``.", conjugate=conjugate, **rules, **_HIDDEN)


def _pointwise(conjugate: bool) -> Call:
    @entry.pointwise(conjugate=conjugate, input=lambda g, input, n: g * n * input ** (n - 1), **_HIDDEN)
    def _whole_power(input: Any, n: int) -> Any:
        return input**n

    return _whole_power


def _linear(conjugate: bool) -> Call:
    @entry.linear(conjugate=conjugate, input=lambda g, factor: np.flip(g, -1) * factor, **_HIDDEN)
    def _scaled_and_turned(input: Any, factor: complex) -> Any:
        return np.flip(input * factor, -1)

    return _scaled_and_turned


def _bilinear(conjugate: bool) -> Call:
    @entry.bilinear(
        conjugate=conjugate,
        input=lambda g, other: np.matmul(g, np.swapaxes(other, -1, -2)),
        other=lambda g, input: np.matmul(np.swapaxes(input, -1, -2), g),
        batch="leading",
        **_HIDDEN,
    )
    def _rows_by_columns(input: Any, other: Any) -> Any:
        return np.matmul(input, other)

    return _rows_by_columns


def _special(conjugate: bool) -> Call:
    @entry.special(conjugate=conjugate, input=lambda g, input, out: np.expand_dims(g / out, -1) * input, **_HIDDEN)
    def _root_of_squares(input: Any) -> Any:
        return np.sqrt(np.sum(input * input, axis=-1))

    return _root_of_squares


def _special_by_one_of_two(conjugate: bool) -> Call:
    @entry.special(
        conjugate=conjugate,
        input=lambda g, other: g * other * other,
        other=lambda g, input, other: 2 * g * input * other,
        **_HIDDEN,
    )
    def _by_square(input: Any, other: Any) -> Any:
        return input * other * other

    return _by_square


def _tuple_rule(g: Any, input: Any, out0: Any) -> Any:
    found = np.zeros_like(input)
    if g[0] is not None:
        found = found + g[0] * out0
    return found if g[1] is None else found + 2 * g[1] * input


def _special_of_two_results(conjugate: bool) -> Call:
    @entry.special(conjugate=conjugate, input=_tuple_rule, **_HIDDEN)
    def _exponential_and_square(input: Any) -> Any:
        return np.exp(input), input * input

    return _exponential_and_square


# Not holomorphic


def _modulus_rule(g: Any, input: Any) -> Any:
    size = np.abs(input)
    return g * size + input * np.real(np.conj(g) * input) / size


def _longer(conjugate: bool) -> Call:
    rule = {"input": _modulus_rule}
    return entry.elementwise(
        "_longer", lambda z: z * np.abs(z), "``z |z|``.", holomorphic=False, conjugate=conjugate, **rule, **_HIDDEN
    )


def _special_longer(conjugate: bool) -> Call:
    @entry.special(conjugate=conjugate, input=_modulus_rule, **_HIDDEN)
    def _longer_too(input: Any) -> Any:
        return input * np.abs(input)

    return _longer_too


def _mirrored(conjugate: bool) -> Call:
    @entry.linear(conjugate=conjugate, input=lambda g, factor: np.conj(g) * factor, **_HIDDEN)
    def _conjugate_by(input: Any, factor: complex) -> Any:
        return np.conj(input) * factor

    return _conjugate_by


def _inner(conjugate: bool) -> Call:
    @entry.bilinear(
        conjugate=conjugate, input=lambda g, other: np.conj(g) * other, other=lambda g, input: g * input, **_HIDDEN
    )
    def _each_with_conjugate(input: Any, other: Any) -> Any:
        return np.conj(input) * other

    return _each_with_conjugate


def _special_of_real_and_complex(conjugate: bool) -> Call:
    def rule(g: Any, input: Any) -> Any:
        found = np.zeros_like(input) if g[0] is None else 2 * g[0] * input
        return found if g[1] is None else found + 2 * g[1] * np.conj(input)

    @entry.special(conjugate=conjugate, input=rule, **_HIDDEN)
    def _squares(input: Any) -> Any:
        return np.square(np.real(input)) + np.square(np.imag(input)), input * input

    return _squares


CASES = {
    "elementwise": Case(_elementwise, [(2, 3)]),
    "elementwise, by its result": Case(_elementwise_of_result, [(2, 3)]),
    "elementwise, of two": Case(_elementwise_of_two, [(2, 3), (3,)]),
    "pointwise": Case(_pointwise, [(2, 3)], (3,)),
    "linear": Case(_linear, [(2, 3)], (1.5 - 0.5j,)),
    "bilinear": Case(_bilinear, [(2, 3), (3, 2)]),
    "special": Case(_special, [(2, 3)]),
    "special, of two": Case(_special_by_one_of_two, [(2, 3), (2, 3)]),
    "special, of two results": Case(_special_of_two_results, [(2, 3)]),
    "elementwise, not holomorphic": Case(_longer, [(2, 3)], conjugate=False),
    "special, not holomorphic": Case(_special_longer, [(2, 3)], conjugate=False),
    "linear, not holomorphic": Case(_mirrored, [(2, 3)], (1.5 - 0.5j,), conjugate=False),
    "bilinear, not holomorphic": Case(_inner, [(2, 3), (2, 3)], conjugate=False),
    "special, of a real and a complex result": Case(_special_of_real_and_complex, [(2, 3)], conjugate=False),
}
everyone = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def operation() -> Iterator[Callable[[str, bool], Call]]:
    """Enter a case's operation, with its convention or the other one; it leaves the table with the test."""
    before = dict(TABLE)

    def entered(name: str, as_meant: bool = True) -> Call:
        case = CASES[name]
        call = case.enter(case.conjugate is as_meant)
        return lambda *inputs: call(*inputs, *case.more)

    yield entered
    TABLE.clear()
    TABLE.update(before)


def numbers(shape: tuple[int, ...], seed: int) -> pullback.Tensor:
    """Complex numbers whose real part is positive, away from every branch cut met here."""
    rng = np.random.default_rng(seed)
    return pullback.tensor(rng.uniform(0.7, 1.4, shape) + 1j * rng.uniform(0.2, 0.6, shape))


def inputs_of(name: str, seed: int = 0) -> list[pullback.Tensor]:
    return [numbers(shape, seed + i) for i, shape in enumerate(CASES[name].shapes)]


def as_tuple(found: Any) -> tuple[pullback.Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


@everyone
def test_first_and_second_derivatives(operation: Any, name: str) -> None:
    function, inputs = operation(name), inputs_of(name)
    assert gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, inputs)


@everyone
def test_the_other_convention_is_wrong(operation: Any, name: str) -> None:
    function, inputs = operation(name, as_meant=False), inputs_of(name)
    assert not gradcheck(function, inputs, raise_exception=False)


@everyone
def test_forward_mode(operation: Any, name: str) -> None:
    function, inputs, along = operation(name), inputs_of(name), inputs_of(name, 10)
    _, tangents = jvp(function, tuple(inputs), tuple(along))
    h = 1e-6
    ahead = as_tuple(function(*(x + h * t for x, t in zip(inputs, along, strict=True))))
    behind = as_tuple(function(*(x - h * t for x, t in zip(inputs, along, strict=True))))
    for found, high, low in zip(as_tuple(tangents), ahead, behind, strict=True):
        assert np.allclose(found.numpy(), (high - low).numpy() / (2 * h), rtol=1e-7, atol=1e-8)


def pulled(function: Call) -> Call:
    """The gradients of all inputs, given a cotangent of ones and i."""

    def gradients(*inputs: pullback.Tensor) -> Any:
        outputs, pull = vjp(lambda *xs: as_tuple(function(*xs)), *inputs)
        return pull(tuple(np.ones_like(o) * (1 + 1j if o.is_complex() else 1) for o in outputs))

    return gradients


@everyone
def test_batched(operation: Any, name: str) -> None:
    function, rows = operation(name), [inputs_of(name, 10 * i) for i in range(3)]
    stacked = [pullback.stack(column) for column in zip(*rows, strict=True)]
    for each in (lambda *xs: as_tuple(function(*xs)), pulled(function)):
        expected = zip(*(each(*row) for row in rows), strict=True)
        for found, parts in zip(vmap(each)(*stacked), expected, strict=True):
            assert np.allclose(found.numpy(), np.stack([p.numpy() for p in parts]), rtol=1e-12)


@everyone
def test_recorded_and_compiled_as_the_ordinary_pass(operation: Any, name: str) -> None:
    function = operation(name)

    def gradients(call: Call, create_graph: bool) -> list[Any]:
        inputs = [x.requires_grad_() for x in inputs_of(name)]
        outputs = as_tuple(call(*inputs))
        weights = [np.ones_like(o.detach()) * (1 - 2j if o.is_complex() else 1) for o in outputs]
        found = pullback.autograd.grad(outputs, inputs, weights, create_graph=create_graph)
        return [g.detach().numpy() for g in found]

    expected = gradients(function, False)
    for call, create_graph in ((function, True), (pullback.compile(function), False)):
        for found, right in zip(gradients(call, create_graph), expected, strict=True):
            assert np.allclose(found, right, rtol=1e-12)


@everyone
def test_only_the_gradient_asked_for(operation: Any, name: str) -> None:
    function, inputs = operation(name), [x.requires_grad_() for x in inputs_of(name)]
    weights = [np.ones_like(o.detach()) for o in as_tuple(function(*inputs))]
    every = pullback.autograd.grad(as_tuple(function(*inputs)), inputs, weights)
    for i, right in enumerate(every):
        (found,) = pullback.autograd.grad(as_tuple(function(*inputs)), [inputs[i]], weights)
        assert np.array_equal(found.numpy(), right.numpy())


@everyone
def test_saved_attributes_are_as_given(operation: Any, name: str) -> None:
    """What a node shows of what it saved is not conjugated."""
    function, inputs = operation(name), [x.requires_grad_() for x in inputs_of(name)]
    outputs = as_tuple(function(*inputs))
    known = [t.detach().numpy() for t in (*inputs, *outputs)]
    for saved in outputs[0].grad_fn.saved_tensors:
        assert any(saved.shape == k.shape and np.array_equal(saved.detach().numpy(), k) for k in known)

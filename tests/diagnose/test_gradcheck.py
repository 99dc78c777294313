"""gradcheck and gradgradcheck: right functions pass, and every planted fault is caught and called by its name.

The functions are written for a namespace `lib`, which is this library or, where it is installed, PyTorch: the verdicts
of the two must agree. Where this library is stricter on purpose, that is said.
"""

from __future__ import annotations

import gc
import inspect
import re
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.diagnose.gradcheck.checking import GradcheckError, gradcheck, gradgradcheck

Built = tuple[Callable[..., Any], Any]
Builder = Callable[[Any], Built]


def f64(lib: Any, *values: Any, grad: bool = True) -> Any:
    """A float64 tensor of `lib` with the values of an array."""
    array = np.array(values[0] if len(values) == 1 else values, dtype=np.float64)
    return lib.from_numpy(array).requires_grad_(grad)


def c128(lib: Any, *values: Any) -> Any:
    return lib.from_numpy(np.array(values, dtype=np.complex128)).requires_grad_()


def grid(lib: Any, *shape: int, start: float = 1.0) -> Any:
    """A float64 tensor without zeros, ties or symmetries."""
    return f64(lib, np.sin(start + np.arange(np.prod(shape))).reshape(shape) * 2 + 0.1)


def function(lib: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """`apply` of a Function that saves its inputs; backward gets ctx, the inputs and the grad_outputs."""

    class Op(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return backward(*ctx.saved_tensors, *grads)

    return Op.apply


# -- what is right -----------------------------------------------------------------------------------------------------


def own_matmul(lib: Any) -> Built:
    op = function(lib, lambda a, b: a @ b, lambda a, b, g: (g @ b.transpose(0, 1), a.transpose(0, 1) @ g))
    return op, (grid(lib, 3, 3), grid(lib, 3, 2))


def own_sine(lib: Any) -> Built:
    return function(lib, lambda x: lib.sin(x), lambda x, g: g * lib.cos(x)), grid(lib, 4)


def two_outputs(lib: Any) -> Built:
    op = function(lib, lambda x, y: (x * y, x + y), lambda x, y, g, h: (g * y + h, g * x + h))
    return op, (grid(lib, 3), grid(lib, 3))


def undefined_taken(lib: Any) -> Built:
    """Two outputs whose backward is given None for the one that is not used."""

    class Op(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            if g is None and h is None:
                return None
            return 3 * h if g is None else 2 * g if h is None else 2 * g + 3 * h

    return Op.apply, (grid(lib, 3),)


def integer_output(lib: Any) -> Built:
    return lambda x: (x * x, x.argmax()), (grid(lib, 3),)


def unused_input(lib: Any) -> Built:
    return lambda x, y: x * x, (grid(lib, 3), grid(lib, 2))


RIGHT: dict[str, Builder] = {
    "sin": lambda lib: (lib.sin, grid(lib, 3)),
    "sin, as a Function": own_sine,
    "matmul": lambda lib: (lib.matmul, (grid(lib, 2, 3), grid(lib, 3, 2))),
    "matmul, as a Function": own_matmul,
    "prod": lambda lib: (lambda x: x.prod(), (grid(lib, 4),)),
    "softmax": lambda lib: (lambda x: lib.softmax(x, 1), (grid(lib, 2, 3),)),
    "broadcast": lambda lib: (lambda x, b: x * b, (grid(lib, 4, 3), grid(lib, 3))),
    "complex product": lambda lib: (lambda z, w: z * w, (c128(lib, 1 + 2j, -0.5j), c128(lib, 0.3, 2 - 1j))),
    "complex absolute value": lambda lib: (lambda z: z.abs(), (c128(lib, 1 + 2j, -0.5j),)),
    "complex from real": lambda lib: (lambda x: lib.exp(1j * x), (grid(lib, 3),)),
    "complex and real": lambda lib: (lambda z, x: z.conj() * x, (c128(lib, 1 + 2j), grid(lib, 1))),
    "two outputs": two_outputs,
    "None for an unused output": undefined_taken,
    "an integer output": integer_output,
    "an unused input": unused_input,
    "the input itself": lambda lib: (lambda x: x, (grid(lib, 3),)),
    "no dimension": lambda lib: (lambda x: x * x, (f64(lib, 1.5),)),
    "no element": lambda lib: (lambda x: x * x, (lib.zeros(0, 3, dtype=lib.float64).requires_grad_(),)),
    "nothing differentiable": lambda lib: (lambda x: x.argmax(), (grid(lib, 3),)),
    "an input that is not to be checked": lambda lib: (lambda x, n: x * n, (grid(lib, 3), f64(lib, 2.0, grad=False))),
    "not contiguous": lambda lib: (lambda x: x * x, (f64(lib, np.ones((4, 6))[::2, ::3].T * 1.5),)),
}


@pytest.mark.parametrize("build", RIGHT.values(), ids=RIGHT.keys())
def test_what_is_right_passes(build: Builder) -> None:
    assert gradcheck(*build(pullback)) is True
    assert gradcheck(*build(pullback), fast_mode=True) is True


@pytest.mark.parametrize(
    "name", [name for name in RIGHT if name not in ("an integer output", "nothing differentiable", "the input itself")]
)
def test_what_is_right_passes_to_second_order(name: str) -> None:
    assert gradgradcheck(*RIGHT[name](pullback)) is True
    assert gradgradcheck(*RIGHT[name](pullback), fast_mode=True) is True


# -- planted faults ----------------------------------------------------------------------------------------------------


def wrong(forward: Callable[..., Any], backward: Callable[..., Any], *shapes: tuple[int, ...]) -> Builder:
    """A Function with a fault, and inputs of these shapes."""
    return lambda lib: (
        function(lib, forward, backward),
        tuple(grid(lib, *shape, start=1.0 + k) for k, shape in enumerate(shapes)),
    )


def on_complex(backward: Callable[[Any, Any], Any], forward: Callable[[Any], Any] = lambda z: z * z * z) -> Builder:
    return lambda lib: (function(lib, forward, backward), (c128(lib, 1 + 2j, -0.5 + 0.25j),))


def at(func: Callable[[Any, Any], Any], *values: float) -> Builder:
    """`func(lib, x)` at the point with these coordinates."""
    return lambda lib: (lambda x: func(lib, x), (f64(lib, list(values)),))


def bias_fault(gradient: Callable[[Any], Any]) -> Builder:
    """A bias added to rows, with a right gradient for the rows."""
    return wrong(lambda x, b: x + b, lambda x, b, g: (g, gradient(g)), (4, 3), (3,))


def writes_to_grad_output(lib: Any) -> Any:
    """A square whose gradients are right, computed in the memory of grad_output."""

    def backward(x: Any, g: Any) -> Any:
        g.mul_(2)
        return g / 2 * x * 2

    return function(lib, lambda x: x * x, backward)


def none_for_b(lib: Any) -> Built:
    return function(lib, lambda a, b: a * b, lambda a, b, g: (g * b, None)), (grid(lib, 3), grid(lib, 3))


def random_backward(lib: Any) -> Built:
    rng = np.random.default_rng(0)
    return function(lib, lambda x: x * x, lambda x, g: g * 2 * x * (1 + 1e-9 * rng.standard_normal())), (grid(lib, 3),)


def random_forward(lib: Any) -> Built:
    rng = np.random.default_rng(0)
    return lambda x: x * rng.standard_normal(), (grid(lib, 3),)


def lost_to_rounding(slope: float) -> Builder:
    return lambda lib: (lambda x: x * slope + 1e9, (grid(lib, 3),))


class MissingError(Exception):
    """Raised by a backward that does not take None."""


def undefined_refused(lib: Any) -> Built:
    class Op(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            if g is None or h is None:
                raise MissingError("a gradient is missing")
            return 2 * g + 3 * h

    return Op.apply, (grid(lib, 3),)


def undefined_as_ones(lib: Any) -> Built:
    class Op(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            g, h = (v if v is not None else lib.ones(3, dtype=lib.float64) for v in (g, h))
            return 2 * g + 3 * h

    return Op.apply, (grid(lib, 3),)


def softmax_by_element(lib: Any) -> Built:
    op = function(lib, lambda x: lib.softmax(x, 0), lambda x, g: g * lib.softmax(x, 0) * (1 - lib.softmax(x, 0)))
    return op, (grid(lib, 4),)


def no_last_element(x: Any, g: Any) -> Any:
    g = g.clone()
    g[2] = 0
    return g * 2 * x


# For each fault what the message must say.
WRONG: dict[str, tuple[Builder, list[str]]] = {
    "a factor": (
        wrong(lambda x: x.sin(), lambda x, g: 2 * g * x.cos(), (3,)),
        ["gradcheck(Op.apply)", "output 0 with respect to input 0 (inputs[0])", "analytical = 2 x numerical"],
    ),
    "a factor of a half": (wrong(lambda x: x * x, lambda x, g: g * x, (3,)), ["analytical = 1/2 x numerical"]),
    "a negative factor": (wrong(lambda x: x * x, lambda x, g: -g * x, (3,)), ["analytical = -1/2 x numerical"]),
    "an odd factor": (wrong(lambda x: x.sin(), lambda x, g: 1.7 * g * x.cos(), (3,)), ["analytical = 1.7 x numerical"]),
    "the sign": (wrong(lambda x: x.sin(), lambda x, g: -g * x.cos(), (3,)), ["the sign: analytical = -numerical"]),
    "some signs": (
        wrong(lambda x: x.abs(), lambda x, g: g, (4,)),
        ["the magnitudes agree", "have the wrong sign"],
    ),
    "a left operand not transposed": (
        wrong(lambda a, b: a @ b, lambda a, b, g: (g @ b, a.transpose(0, 1) @ g), (3, 3), (3, 3)),
        ["input 0 (inputs[0])", "is the transpose of the numerical one", "g @ B where g @ B.T is meant"],
    ),
    "a right operand not transposed": (
        wrong(lambda a, b: a @ b, lambda a, b, g: (g @ b.transpose(0, 1), a @ g), (3, 3), (3, 3)),
        ["input 1 (inputs[1])", "is the transpose of the numerical one"],
    ),
    "a gradient not transposed": (
        wrong(lambda x: x.transpose(0, 1) * 2, lambda x, g: 2 * g, (3, 3)),
        ["the analytical gradient is transposed: axes 0 and 1 of inputs[0] are interchanged"],
    ),
    "a gradient reshaped, not transposed": (
        wrong(lambda x: x.transpose(0, 1) * 2, lambda x, g: 2 * g.reshape(2, 3), (2, 3)),
        ["the analytical gradient is transposed: axes 0 and 1 of inputs[0] are interchanged"],
    ),
    "a sum over the wrong axis": (
        wrong(lambda x, b: x + b, lambda x, b, g: (g, g.sum(1)), (3, 3), (3,)),
        ["axes 0 and 1 of grad_output are interchanged", "summed over the wrong one"],
    ),
    "a missing sum": (
        bias_fault(lambda g: g[0]),
        ["input 1", "of axis 0 of grad_output only index 0 counts", "broadcasts inputs[1], is missing"],
    ),
    "a mean in the place of a sum": (
        bias_fault(lambda g: g.mean(0)),
        ["analytical = 1/4 x numerical (4 is the length of axis 0 of output: a mean where a sum is meant"],
    ),
    "a sum too many": (
        wrong(lambda x: 2 * x, lambda x, g: 2 * g.sum(0).expand(4, 3), (4, 3)),
        ["summed over axis 0 of inputs[0] and repeated along it", "one too many"],
    ),
    "a sum whose axis is not kept": (
        wrong(lambda x: x - x.mean(dim=1, keepdim=True), lambda x, g: g - g.mean(dim=1), (3, 3)),
        ["a sum over axis 1 of inputs[0] is spread over axis 1", "without keepdim=True"],
    ),
    "a weighted sum whose axis is not kept": (
        wrong(lambda x: x.softmax(1), lambda x, g: x.softmax(1) * (g - (g * x.softmax(1)).sum(1)), (2, 2)),
        ["without keepdim=True"],
    ),
    "gradients in the wrong order": (
        wrong(lambda a, b: a * b, lambda a, b, g: (g * a, g * b), (3,), (3,)),
        ["the analytical gradient for inputs[0] is the one for inputs[1]", "another order"],
    ),
    "None for an input": (
        none_for_b,
        ["backward gave no gradient (None) for inputs[1]", "leads there by OpBackward", "a backward returned None"],
    ),
    "zeros for an input": (
        wrong(lambda a, b: a * b, lambda a, b, g: (g * b, 0 * b), (3,), (3,)),
        ["backward gave zeros for inputs[1], although output changes with it"],
    ),
    "a dependence that leaves the graph": (
        lambda lib: (lambda x, y: x * y.detach(), (grid(lib, 3), grid(lib, 3))),
        ["input 1 (y)", "backward gave no gradient (None) for y", "leaves it by detach()"],
    ),
    "an output that leaves the graph": (
        lambda lib: (lambda x: x.detach() * 2, (grid(lib, 3),)),
        ["Numerical gradient for function expected to be zero", "output 0 changes with input 0 (x)"],
    ),
    "a gradient out of nowhere": (
        wrong(lambda a, b: a * 2, lambda a, b, g: (g * 2, g), (3,), (3,)),
        ["backward gave a gradient for inputs[1], although output does not change with it"],
    ),
    "only the diagonal": (softmax_by_element, ["the analytical Jacobian is diagonal", "are missing"]),
    "an element without gradient": (
        wrong(lambda x: x * x, no_last_element, (3,)),
        ["1 entries are zero in the analytical Jacobian only; no gradient at all reaches inputs[0][2]"],
    ),
    "a gradient that ignores a mask": (
        wrong(lambda x: x * (x > 0.5), lambda x, g: g, (4,)),
        ["entries are zero in the numerical Jacobian only: there the output does not change"],
    ),
    "nothing in common": (
        wrong(lambda x: x * x, lambda x, g: g * x * x * x + g, (4,)),
        ["no factor, sign, transpose, sum or zeros that could be told"],
    ),
    "a missing conjugate": (on_complex(lambda z, g: g * 3 * z * z), ["complex conjugate", "conj() is missing"]),
    "a missing imaginary part": (
        on_complex(lambda z, g: (g * (3 * z * z).conj() + (g * (3 * z * z).conj()).conj()) / 2),
        ["the imaginary part of the gradient is missing"],
    ),
    "a factor of i": (on_complex(lambda z, g: 1j * g * (3 * z * z).conj()), ["analytical = 0+1j x numerical"]),
    "a complex magnitude": (
        on_complex(lambda z, g: g * 2 * z, lambda z: z.abs() * z.abs() * 3),
        ["analytical = 1/3 x numerical"],
    ),
    "grad_output is ignored": (
        wrong(lambda x: x.sin(), lambda x, g: x.cos(), (3,)),
        ["backward not multiplied by grad_output", "input 0 (inputs[0])"],
    ),
    "a random backward": (random_backward, ["Backward is not reentrant", "not deterministic", "nondet_tol is 0"]),
    "a random forward": (random_forward, ["func is not deterministic", "differ in output 0"]),
    "float32 inside": (
        lambda lib: (lambda x: lib.sin(x.float()), (grid(lib, 3),)),
        ["the function computes in float32", "output 0 (float32)", "are noise"],
    ),
    "float32 inside, and back": (
        lambda lib: (lambda x: lib.sin(x.float()).double(), (grid(lib, 3),)),
        ["the function computes in float32", "output 0 (float64)"],
    ),
    "nothing left by rounding": (lost_to_rounding(1e-3), ["rounding error of the finite differences"]),
    "little left by rounding": (lost_to_rounding(1.0), ["rounding error of the finite differences", "larger eps"]),
    "None is not taken": (
        undefined_refused,
        ["Expected backward function to handle undefined output grads", "MissingError: a gradient is missing"],
    ),
    "None is taken for ones": (undefined_as_ones, ["does not treat undefined output grads (None) as zeros"]),
    "a kink": (
        at(lambda lib, x: lib.relu(x), 1.0, -1.0, 0.0),
        ["x[2] = 0.0 is at a kink: left derivative 0, right derivative 1; move the point", "no other difference"],
    ),
    "a kink of abs": (
        lambda lib: (function(lib, lambda x: x.abs(), lambda x, g: g * ((x >= 0) * 2.0 - 1)), (f64(lib, [1.0, 0.0]),)),
        ["inputs[0][1] = 0.0 is at a kink: left derivative -1, right derivative 1"],
    ),
    "a kink at a tie": (
        at(lambda lib, x: lib.where(x[0] >= 3 * x[1], x[0], 3 * x[1]), 3.0, 1.0),
        ["x[0] = 3.0 is at a kink: left derivative 0, right derivative 1", "x[1] = 1.0 is at a kink"],
    ),
    "a kink nearby": (
        at(lambda lib, x: lib.relu(x), 4e-7),
        ["x[0] = 4e-07 is within 1e-06 of a kink"],
    ),
    "a jump": (
        at(lambda lib, x: x + 3 * (x >= 1.0), 1.0, 2.0),
        ["x[0] = 1.0 is at a jump: the output changes by 3 around it", "no other difference"],
    ),
    "a strong bend": (
        at(lambda lib, x: 1 / x, 1e-5, 1.0),
        ["x[0] = 1e-05 is where the output bends too strongly for eps=1e-06"],
    ),
    "the border of the domain": (
        at(lambda lib, x: lib.sqrt(x), 0.0, 1.0),
        ["finite differences are not finite, first for x[0]"],
    ),
    "a kink, and what lies beyond it": (
        lambda lib: (function(lib, lambda x: lib.relu(x), lambda x, g: 3 * g), (f64(lib, [0.0]),)),
        ["is at a kink: left derivative 0, right derivative 1", "does not lie between the two"],
    ),
    "a strong bend does not excuse": (
        lambda lib: (function(lib, lambda x: 1000 * x * x, lambda x, g: g * (1 + 2000 * x)), (f64(lib, [0.0, 0.0]),)),
        ["backward gave a gradient for inputs[0], although output does not change with it"],
    ),
    "a kink, and a factor": (
        lambda lib: (function(lib, lambda x: lib.relu(x), lambda x, g: 3 * g * (x > 0)), (f64(lib, [0.0, 1.0, 2.0]),)),
        ["is at a kink", "There are other differences", "analytical = 3 x numerical (3 is the length of axis 0"],
    ),
}


@pytest.mark.parametrize(("build", "phrases"), WRONG.values(), ids=WRONG.keys())
def test_a_planted_fault_is_caught_and_named(build: Builder, phrases: list[str]) -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(*build(pullback))
    for phrase in phrases:
        assert phrase in str(caught.value)
    assert gradcheck(*build(pullback), raise_exception=False) is False


# What PyTorch lets pass: the Jacobian is right, the backward is not.
STRICTER: dict[str, tuple[Builder, list[str]]] = {
    "a grad_output is changed": (
        lambda lib: (writes_to_grad_output(lib), (grid(lib, 3),)),
        ["the backward of OpBackward changes grad_output 0 in place", "clone()"],
    ),
    "a grad_output inside is changed": (
        lambda lib: (lambda x: (writes_to_grad_output(lib)(x) * 3).sin(), (grid(lib, 3),)),
        ["the backward of OpBackward changes grad_output 0 in place"],
    ),
    "a square of grad_output": (
        wrong(lambda x: x.sin(), lambda x, g: g * g * x.cos(), (3,)),
        ["backward is not linear in grad_output", "input 0 (inputs[0])"],
    ),
}


@pytest.mark.parametrize(("build", "phrases"), STRICTER.values(), ids=STRICTER.keys())
def test_a_fault_that_the_jacobian_does_not_show_is_caught(build: Builder, phrases: list[str]) -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(*build(pullback))
    for phrase in phrases:
        assert phrase in str(caught.value)


# -- the second derivative ---------------------------------------------------------------------------------------------


def constant_inside(lib: Any) -> Built:
    """a * b**2, whose backward takes b**2 for a constant."""

    class Op(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            ctx.square = (b * b).detach()
            return a * ctx.square

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * ctx.square, 2 * g * a * b

    return Op.apply, (grid(lib, 2), grid(lib, 2))


def detached_inside(lib: Any) -> Built:
    """x**3, whose backward takes one of the two factors x for a constant."""
    return function(lib, lambda x: x**3, lambda x, g: 3 * x * x.detach() * g), (grid(lib, 2),)


def all_detached(lib: Any) -> Built:
    op = function(lib, lambda x: x**3, lambda x, g: (3 * x * x * g).detach())
    return op, (grid(lib, 2),)


WRONG_TWICE: dict[str, tuple[Builder, list[str]]] = {
    "a dropped mixed term": (
        constant_inside,
        [
            "gradgradcheck(Op.apply)",
            "output 0 (the gradient with respect to a) with respect to input 1 (b)",
            "a term of the second derivative is dropped: grad_a changes with b",
            "ctx.saved_tensors",
        ],
    ),
    "half of a second derivative": (
        detached_inside,
        ["analytical = 1/2 x numerical", "In a second derivative this is often a dropped term", "ctx.saved_tensors"],
    ),
    "a backward outside of the graph": (
        all_detached,
        ["Numerical gradient for function expected to be zero", "the gradient with respect to inputs[0]"],
    ),
}


@pytest.mark.parametrize(("build", "phrases"), WRONG_TWICE.values(), ids=WRONG_TWICE.keys())
def test_a_wrong_second_derivative_is_caught_and_named(build: Builder, phrases: list[str]) -> None:
    assert gradcheck(*build(pullback)), "the first derivative is right"
    with pytest.raises(GradcheckError) as caught:
        gradgradcheck(*build(pullback))
    for phrase in phrases:
        assert phrase in str(caught.value)
    assert gradgradcheck(*build(pullback), raise_exception=False) is False
    assert gradgradcheck(*build(pullback), raise_exception=False, fast_mode=True) is False


def test_the_second_derivative_varies_the_given_grad_outputs_too() -> None:
    lib = pullback
    seen = []

    def func(x: Any) -> Any:
        return x * x

    def backward(x: Any, g: Any) -> Any:
        seen.append(np.array(g.detach()))
        return 2 * x * g

    vector = lib.tensor([0.5, -2.0, 4.0])
    assert gradgradcheck(function(lib, func, backward), (grid(lib, 3),), vector)
    assert np.array_equal(seen[0], [0.5, -2.0, 4.0])
    assert {s.dtype for s in seen} == {np.dtype(np.float64)}
    assert any(abs(s[0] - 0.5 - 1e-6) < 1e-12 for s in seen), "grad_output is moved as well"
    with pytest.raises(RuntimeError, match="a grad_output for each differentiable output: 1, found 2"):
        gradgradcheck(func, (grid(lib, 3),), (vector, vector))


def test_non_contiguous_grad_outputs_reach_backward() -> None:
    strides = set()

    def backward(x: Any, g: Any) -> Any:
        strides.add(g.stride())
        return 2 * x * g

    op = function(pullback, lambda x: x * x, backward)
    assert gradgradcheck(op, (grid(pullback, 3),), gen_non_contig_grad_outputs=True)
    assert (2,) in strides


def test_a_backward_that_cannot_be_differentiated_says_so() -> None:
    class Once(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @pullback.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    assert gradcheck(Once.apply, grid(pullback, 3))
    with pytest.raises(RuntimeError, match="once_differentiable") as caught:
        gradgradcheck(Once.apply, grid(pullback, 3))
    assert not isinstance(caught.value, GradcheckError)


def test_a_constant_function_passes_to_second_order() -> None:
    assert gradgradcheck(lambda x: x.argmax(), grid(pullback, 3))
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradgradcheck(lambda x: x.detach() * 2, grid(pullback, 3))


# -- the inputs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_line_a_beginner_writes(dtype: str) -> None:
    x = pullback.tensor([0.5, -0.25, 2.0], dtype=getattr(pullback, dtype))
    seen = set()

    def square(x: Any) -> Any:
        seen.add((x.dtype, x.requires_grad))
        return x * x

    assert gradcheck(square, x)
    assert gradgradcheck(square, [x])
    assert seen == {(pullback.float64, True)}
    assert (x.dtype, x.requires_grad) == (getattr(pullback, dtype), False)


def test_complex64_becomes_complex128() -> None:
    seen = set()

    def square(z: Any) -> Any:
        seen.add(z.dtype)
        return z * z

    assert gradcheck(square, pullback.tensor([1 + 2j, -0.5j]))
    assert seen == {pullback.complex128}


def test_only_what_requires_grad_is_checked_if_anything_does() -> None:
    op = function(pullback, lambda a, b: a * b, lambda a, b, g: (g * b, None))
    a, b = grid(pullback, 3), f64(pullback, np.ones(3), grad=False)
    assert gradcheck(op, (a, b)), "the wrong gradient is not asked for"
    assert not gradcheck(op, (a.detach(), b), raise_exception=False), "nothing requires grad, so everything is checked"


def test_the_callers_tensors_are_left_as_they_were() -> None:
    x = pullback.tensor([1.0, 2.0, 3.0], dtype=pullback.float64, requires_grad=True)
    y = pullback.tensor([4.0, 5.0, 6.0])
    n = pullback.tensor([1, 2, 3])
    (x * x).sum().backward()
    before = [(t.tolist(), t.requires_grad, t._version, t.dtype) for t in (x, y, n)]

    def func(x: Any, y: Any, n: Any) -> Any:
        assert x is not given[0]
        assert y is not given[1]
        n.add_(1)
        with pullback.no_grad():
            y.mul_(2)
        return x * x + y.detach()

    given = (x, y, n)
    assert gradcheck(func, given)
    assert gradgradcheck(func, given)
    assert not gradcheck(function(pullback, lambda x: x * x, lambda x, g: g * x), x, raise_exception=False)
    assert [(t.tolist(), t.requires_grad, t._version, t.dtype) for t in given] == before
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert y.grad is None


def test_arguments_that_are_not_tensors_pass_through() -> None:
    marker = object()

    def func(x: Any, factor: float, option: Any, name: str, array: Any) -> Any:
        assert option is marker
        assert name == "name"
        assert array is given[4]
        return x * factor

    given = (grid(pullback, 3), 2.5, marker, "name", np.ones(2))
    assert gradcheck(func, given)


def test_nested_inputs_and_outputs() -> None:
    def layer(params: dict[str, Any], x: Any) -> Any:
        y = params["w"] @ x + params["b"][0]
        return {"y": y, "parts": [y * 2, (None, y.sum())], "count": 3}

    params = {"w": grid(pullback, 2, 3), "b": [grid(pullback, 2)]}
    assert gradcheck(layer, (params, grid(pullback, 3)))
    assert gradgradcheck(layer, (params, grid(pullback, 3)))

    def cut(params: dict[str, Any], x: Any) -> Any:
        return {"y": params["w"] @ x, "z": x.sum() * params["b"][0].detach()}

    with pytest.raises(GradcheckError) as caught:
        gradcheck(cut, (params, grid(pullback, 3)))
    assert "for output 0['z'] with respect to input 0['b'][0] (params['b'][0])" in str(caught.value)
    assert "d output['z'][1] / d params['b'][0][1]" in str(caught.value)


def test_func_meets_the_layout_of_the_inputs() -> None:
    """The order of the axes, their direction, gaps: a kernel that reads memory wrongly must be found out."""
    base = np.arange(48.0).reshape(4, 6, 2) + 1
    for array in (base, base.T, base[::2, ::3], base[:, ::-1], base[:1, :, 1:], base[::-2, None, 3, :], base[:0]):
        seen = []

        def square(x: Any, seen: list[Any] = seen) -> Any:
            seen.append(x)
            return x * x

        assert gradcheck(square, pullback.from_numpy(array), fast_mode=True)
        assert np.array_equal(seen[0].detach().numpy(), array)
        assert seen[0].shape == array.shape
        if array.size:
            steps = [s for s, n in zip(seen[0].stride(), array.shape, strict=True) if n > 1]
            assert steps == [s // 8 for s, n in zip(array.strides, array.shape, strict=True) if n > 1]


def test_no_tensor_to_check_is_an_error() -> None:
    for inputs in ((), (pullback.tensor([1, 2]), "a"), 3.0):
        with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
            gradcheck(lambda *args: args[0], inputs)
    with pytest.raises(ValueError, match=r"found Tensor of int64\[2\], str 'a'"):
        gradcheck(lambda *args: args[0], (pullback.tensor([1, 2]), "a"))


def test_overlapping_memory_is_an_error() -> None:
    wide = grid(pullback, 3).detach().expand(2, 3)
    windows = pullback.from_numpy(np.lib.stride_tricks.sliding_window_view(np.arange(5.0), 3))
    for x in (wide, windows):
        with pytest.raises(RuntimeError, match=r"input 0 \(x\) has .*overlapping memory(.|\n)*pass x.clone()"):
            gradcheck(lambda x: x * 2, x)
        assert gradcheck(lambda x: x * 2, x.clone())
    assert gradcheck(lambda x, y: x * y, (grid(pullback, 2, 3), wide)), "it is not moved: it does not require grad"


def test_what_func_returns_has_to_be_a_tensor() -> None:
    for result in (None, 1.0, np.ones(2)):
        with pytest.raises(TypeError, match="expected func to return a Tensor"):
            gradcheck(lambda x, result=result: result, grid(pullback, 2))


def test_nothing_checked_is_said() -> None:
    outside = grid(pullback, 3)
    with pytest.warns(UserWarning, match="nothing was checked"):
        assert gradcheck(lambda x: (), grid(pullback, 3))
    for check in (gradcheck, gradgradcheck):
        with pytest.warns(UserWarning, match="nothing was checked, because no output depends on the inputs") as seen:
            assert check(lambda x: outside * 2, grid(pullback, 3))
        assert seen[0].filename == __file__
    assert outside.grad is None


# -- the surroundings --------------------------------------------------------------------------------------------------


class ProblemError(Exception):
    """Raised by functions under test."""


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_what_func_raises_passes_through_unchanged(check: Any, where: str) -> None:
    error = ProblemError("from func")

    def fail(*args: Any) -> Any:
        raise error

    func = fail if where == "forward" else function(pullback, lambda x: x * 2, fail)
    for raise_exception in (True, False):
        with pytest.raises(ProblemError) as caught:
            check(func, grid(pullback, 3), raise_exception=raise_exception)
        assert caught.value is error
        assert caught.value.__cause__ is None
    assert pullback.is_grad_enabled()


def test_no_random_number_of_the_user_is_used() -> None:
    before = pullback.default_generator.get_state(), np.random.get_state()
    for fast in (False, True):
        gradcheck(pullback.sin, grid(pullback, 3), fast_mode=fast)
        gradgradcheck(pullback.sin, grid(pullback, 3), fast_mode=fast)
        gradcheck(WRONG["a factor"][0](pullback)[0], grid(pullback, 3), raise_exception=False)
    after = pullback.default_generator.get_state(), np.random.get_state()
    assert str(before) == str(after)


def test_two_runs_say_the_same() -> None:
    texts = set()
    for _ in range(2):
        with pytest.raises(GradcheckError) as caught:
            gradcheck(*WRONG["nothing in common"][0](pullback), fast_mode=True)
        texts.add(str(caught.value))
    assert len(texts) == 1


@pytest.mark.parametrize("mode", [pullback.no_grad, pullback.enable_grad])
def test_the_grad_mode_outside_does_not_matter_and_stays(mode: Any) -> None:
    with mode():
        enabled = pullback.is_grad_enabled()
        assert gradcheck(pullback.sin, grid(pullback, 3))
        assert gradgradcheck(pullback.sin, grid(pullback, 3))
        assert pullback.is_grad_enabled() is enabled
        assert not gradcheck(*WRONG["a factor"][0](pullback), raise_exception=False)
        assert pullback.is_grad_enabled() is enabled


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("build", [own_sine, WRONG["a factor"][0], detached_inside])
def test_no_graph_outlives_the_check(check: Any, build: Builder) -> None:
    op, inputs = build(pullback)
    seen: list[weakref.ref[Any]] = []

    def func(x: Any) -> Any:
        y = op(x)
        seen.append(weakref.ref(y.grad_fn))
        return y

    gc.disable()
    try:
        check(func, inputs, raise_exception=False)
        assert len(seen) > 5
        assert all(node() is None for node in seen)
    finally:
        gc.enable()


# -- the options -------------------------------------------------------------------------------------------------------


class Square(pullback.autograd.Function):
    """With rules for every mode; `wrong` says which of them is not the derivative."""

    wrong = ""

    @staticmethod
    def forward(x: Any) -> Any:
        return x**2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * Same.apply(x) * g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return (3 if Square.wrong == "jvp" else 2) * ctx.saved_for_forward[0] * t

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return Square.apply(x), 0


class Same(pullback.autograd.Function):
    """The identity, used by the backward of `Square`."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return (2 if Square.wrong == "second" else 1) * t

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return Same.apply(x), in_dims[0]


ALL_MODES = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}


def test_every_mode_is_checked_where_that_is_asked_for() -> None:
    x, w = grid(pullback, 2, 3), grid(pullback, 3, 2)
    assert gradcheck(Square.apply, x, **ALL_MODES)
    assert gradcheck(lambda x, w: ((x @ w).tanh(), x.exp()), (x, w), **ALL_MODES)
    assert gradcheck(lambda z: z.exp() * z.abs(), pullback.complex(x, x + 1), **ALL_MODES)
    assert gradcheck(Square.apply, x, check_backward_ad=False, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(Square.apply, x, check_fwd_over_rev=True, check_batched_grad=True)
    assert gradgradcheck(lambda x, w: ((x @ w).tanh(), x**3), (x, w), check_fwd_over_rev=True)


def test_a_wrong_jvp_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Square, "wrong", "jvp")
    x = grid(pullback, 2)
    assert gradcheck(Square.apply, x)
    with pytest.raises(
        GradcheckError, match="Jacobian computed with forward mode mismatch for output 0 with respect to input 0"
    ):
        gradcheck(Square.apply, x, check_forward_ad=True)
    assert not gradcheck(Square.apply, x, check_forward_ad=True, raise_exception=False)
    assert not gradcheck(Square.apply, x, check_forward_ad=True, fast_mode=True, raise_exception=False)


def test_a_wrong_jvp_within_backward_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Square, "wrong", "second")
    x = grid(pullback, 2)
    assert gradcheck(Square.apply, x, check_forward_ad=True)
    assert gradgradcheck(Square.apply, x)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch"):
        gradgradcheck(Square.apply, x, check_fwd_over_rev=True)


def test_a_backward_that_does_not_work_under_vmap_is_found() -> None:
    class Once(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g.detach().numpy()

    with pytest.raises(GradcheckError, match="backward does not work under vmap"):
        gradcheck(Once.apply, grid(pullback, 2), check_batched_grad=True)


def test_options_that_contradict_each_other_are_refused_as_in_torch() -> None:
    x = grid(pullback, 2)
    for options, says in (
        ({"check_backward_ad": False}, "Expected at least one of check_forward_ad or check_backward_ad to be True"),
        (
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            "Setting check_batched_grad=True requires check_backward_ad to be True",
        ),
        (
            {"check_batched_forward_grad": True},
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
        ),
    ):
        with pytest.raises(AssertionError, match=f"^{says}\n"):
            gradcheck(pullback.sin, x, **options)
    forward = {"check_rev_over_rev": False, "check_fwd_over_rev": True}
    for options, says in (
        ({"check_rev_over_rev": False}, "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"),
        (forward, "Setting check_undefined_grad=True requires check_rev_over_rev to be True"),
        (
            {**forward, "check_undefined_grad": False, "check_batched_grad": True},
            "Setting check_batched_grad=True requires check_rev_over_rev to be True",
        ),
    ):
        with pytest.raises(AssertionError, match=f"^{says}\n"):
            gradgradcheck(pullback.sin, x, **options)


def test_nondet_tol_lets_small_differences_pass() -> None:
    assert gradcheck(*random_backward(pullback), nondet_tol=1e-6)
    assert not gradcheck(*random_backward(pullback), nondet_tol=1e-12, raise_exception=False)


def test_undefined_gradients_can_be_left_unchecked() -> None:
    assert gradcheck(*undefined_refused(pullback), check_undefined_grad=False)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(*undefined_refused(pullback))
    assert isinstance(caught.value.__cause__, MissingError)


def test_dtypes_of_gradients_are_checked_on_request() -> None:
    func, inputs = own_sine(pullback)
    assert gradcheck(func, inputs, check_grad_dtypes=True)
    op = function(pullback, lambda x: x * 2, lambda x, g: (g * 2).float())
    assert gradcheck(op, inputs)
    with pytest.raises(
        GradcheckError, match=r"dtype mismatch: the backward of OpBackward returns float32 for 'inputs\[0\]'"
    ):
        gradcheck(op, inputs, check_grad_dtypes=True)


def test_the_tolerances_count() -> None:
    op = function(pullback, lambda x: x * 1.0, lambda x, g: g * 1.01)
    assert not gradcheck(op, grid(pullback, 3), raise_exception=False)
    assert gradcheck(op, grid(pullback, 3), rtol=0.02)
    assert gradcheck(op, grid(pullback, 3), atol=0.02)
    steep = at(lambda lib, x: 1 / x, 1e-5, 1.0)
    assert gradcheck(*steep(pullback), eps=1e-9)


@pytest.mark.parametrize("masked", [None, False, True])
def test_masked_changes_nothing_for_dense_tensors(masked: Any) -> None:
    assert gradcheck(pullback.sin, grid(pullback, 3), masked=masked)
    assert not gradcheck(*WRONG["a factor"][0](pullback), masked=masked, raise_exception=False)


def sparse(lib: Any) -> Any:
    """A sparse tensor of two elements, in an order that is not that of its places."""
    return lib.sparse_coo_tensor([[1, 0], [0, 1]], [3.0, 2.0], (2, 2), dtype=lib.float64).requires_grad_()


SPARSE: dict[str, Any] = {
    "a product": lambda lib: lambda s, w: lib.sparse.mm(s, w),
    "dense": lambda lib: lambda s, w: s.to_dense() * w,
    "several outputs": lambda lib: lambda s, w: (lib.sparse.mm(s, w), w * 2),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_inputs_are_checked_at_their_places(name: str, fast: bool) -> None:
    w = grid(pullback, 2, 2)
    assert gradcheck(SPARSE[name](pullback), (sparse(pullback), w), masked=True, fast_mode=fast)
    assert gradgradcheck(SPARSE[name](pullback), (sparse(pullback), w), masked=True, fast_mode=fast)
    wrong = function(pullback, lambda x: x * 1.0, lambda x, g: g * 2)
    with pytest.raises(GradcheckError, match="a constant factor"):
        gradcheck(lambda s: wrong(s.to_dense()), sparse(pullback), masked=True, fast_mode=fast)


def test_what_cannot_be_checked_of_sparse_tensors_is_said() -> None:
    with pytest.raises(ValueError, match="masked=True"):
        gradcheck(lambda s: s.to_dense(), sparse(pullback))
    with pytest.raises(ValueError, match="Sparse output"):
        gradcheck(lambda d: d.to_sparse(), grid(pullback, 2, 2))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["a product", "dense"])
def test_torch_agrees_on_sparse_inputs(torch: Any, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.autograd.gradcheck(SPARSE[name](torch), (sparse(torch), grid(torch, 2, 2)), masked=True)


def test_fast_mode_catches_the_faults_and_shows_the_entries() -> None:
    for name in ("a factor", "the sign", "a left operand not transposed", "a missing sum", "a missing conjugate"):
        build, phrases = WRONG[name]
        with pytest.raises(GradcheckError) as caught:
            gradcheck(*build(pullback), fast_mode=True)
        assert "Along random directions, output 0 with respect to input" in str(caught.value)
        assert phrases[-1] in str(caught.value)


def test_fast_mode_says_when_the_entries_agree() -> None:
    """Errors within the tolerance of each entry can exceed that of a number in which the entries cancel."""
    texts = []
    for n in range(2, 22):
        sign = f64(pullback, (-1.0) ** np.arange(n), grad=False)
        op = function(pullback, lambda x, s: (x * s).sum(), lambda x, s, g: (g * (s + 0.0009), None))
        x = f64(pullback, np.ones(n))
        assert gradcheck(op, (x, sign))
        if not gradcheck(op, (x, sign), fast_mode=True, raise_exception=False):
            texts.append(message(op, (x, sign), fast_mode=True))
    assert 0 < len(texts) < 20
    assert all("Entry by entry they agree: the check passes with fast_mode=False." in text for text in texts)


def test_fast_mode_does_not_compute_a_large_jacobian() -> None:
    calls = []

    def double(x: Any) -> Any:
        calls.append(1)
        return x * 2

    x = f64(pullback, np.linspace(0, 1, 3000))
    assert gradcheck(function(pullback, double, lambda x, g: g * 2), x, fast_mode=True)
    with pytest.raises(GradcheckError, match="to see the entries, check smaller inputs"):
        gradcheck(function(pullback, double, lambda x, g: g), x, fast_mode=True)
    assert len(calls) < 20


# -- the report --------------------------------------------------------------------------------------------------------


def message(func: Callable[..., Any], inputs: Any, **options: Any) -> str:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(func, inputs, **options)
    return str(caught.value)


def test_the_worst_entries_come_first_with_both_values() -> None:
    op = function(pullback, lambda x: x * 2, lambda x, g: g * f64(pullback, [2.0, 2.5, 6.0], grad=False))
    text = message(op, f64(pullback, [1.0, 2.0, 3.0]))
    lines = [line.strip() for line in text.splitlines() if line.startswith("    d ")]
    assert lines == [
        "d output[2] / d inputs[0][2]: numerical 2.0, analytical 6.0 (difference 4, relative 2)",
        "d output[1] / d inputs[0][1]: numerical 2.0, analytical 2.5 (difference 0.5, relative 0.25)",
    ]
    assert "[[2. 0. 0.]\n     [0. 2. 0.]\n     [0. 0. 2.]]" in text, "the numerical Jacobian"
    assert "[[2.  0.  0. ]\n     [0.  2.5 0. ]\n     [0.  0.  6. ]]" in text, "the analytical one"


def test_large_jacobians_are_summarised() -> None:
    text = message(function(pullback, lambda x: x * 2, lambda x, g: g), f64(pullback, np.linspace(0, 1, 60)))
    assert "60 of 3600 entries differ" in text
    assert text.count("    d ") == 5
    assert " ... " in text
    assert len(text.splitlines()) < 40


def test_every_pair_that_disagrees_is_named() -> None:
    op = function(pullback, lambda *xs: sum(xs[1:], xs[0]), lambda *xs: tuple(2 * xs[-1] for _ in xs[:-1]))
    text = message(op, tuple(f64(pullback, [1.0, 2.0]) for _ in range(5)))
    assert text.count("Jacobian mismatch") == 3
    assert (
        "And 2 more: output 0 with respect to input 3 (inputs[3]); output 0 with respect to input 4 (inputs[4])."
        in text
    )


def scattered(size: float, factor: float = 1.0) -> Callable[..., Any]:
    """The sine, with values that scatter by `size` as those of a solver do."""
    return function(
        pullback,
        lambda x: x.sin() + size * (1e9 * x + 1).sin() * (3e8 * x).cos(),
        lambda x, g: factor * g * x.cos(),
    )


def test_noise_is_no_kink_and_the_step_that_passes_is_named() -> None:
    x = f64(pullback, [0.5, 0.7, 1.1])
    with pytest.raises(GradcheckError) as caught:
        gradcheck(scattered(1e-8), (x,))
    text = str(caught.value)
    assert not re.search("kink|jump", text)
    assert re.search(r"func is noisy at eps=1e-06: its values scatter by about [1-9]e-09 around", text)
    assert "Tighten the solver's tolerances (rtol=, atol=), or pass eps=" in text
    assert "There is no other difference" in text
    (eps,) = re.findall(r"pass eps=(\S+), with which they agree\.", text)
    assert gradcheck(scattered(1e-8), (x,), eps=float(eps))


@pytest.mark.parametrize("factor", [2.0, 1.05, 0.0])
def test_noise_does_not_excuse_a_wrong_backward(factor: float) -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(scattered(1e-8, factor), (f64(pullback, [0.5, 0.7, 1.1]),))
    text = str(caught.value)
    assert not re.search("is noisy|no other difference|kink|jump", text)


def test_noise_beside_a_kink_is_told_from_it() -> None:
    f = scattered(1e-8)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: f(x) + (x - 0.7).relu(), (f64(pullback, [0.5, 0.7, 1.1]),))
    text = str(caught.value)
    assert "func is noisy" in text
    assert "with which they agree" not in text
    assert re.findall(r"(\S+) = \S+ is \w+ a kink: left derivative", text) == ["x[1]"]


def test_noise_in_complex_numbers() -> None:
    x = pullback.tensor([0.5 + 0.2j, 0.7 - 0.1j], dtype=pullback.complex128)
    f = function(
        pullback,
        lambda z: z * z + 1e-8 * (1e9 * z.real + 7e8 * z.imag).sin(),
        lambda z, g: g * (2 * z).conj(),
    )
    with pytest.raises(GradcheckError, match=r"func is noisy at eps=1e-06(.|\n)*pass eps=1e-05"):
        gradcheck(f, (x,))
    assert gradcheck(f, (x,), eps=1e-5)


@pytest.mark.parametrize("rate", [1e3, 1e4])
@pytest.mark.parametrize("error", [1.002, 0.998, 0.99, 0.8])
def test_a_curve_that_bends_strongly_is_not_called_noise(rate: float, error: float) -> None:
    """Its differences meet a wrong backward at some larger step, but as smooth ones do."""
    f = function(pullback, lambda x: (rate * x).sin() / rate, lambda x, g: g * error * (rate * x).cos())
    with pytest.raises(GradcheckError) as caught:
        gradcheck(f, (f64(pullback, [0.0, 1.0]),))
    assert "noisy" not in str(caught.value)


def test_nothing_is_searched_where_the_check_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    assert gradcheck(lambda x: calls.append(1) or x.sin(), (f64(pullback, [0.5]),))
    passed = len(calls)
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: calls.append(1) or scattered(1e-8)(x), (f64(pullback, [0.5]),))
    assert passed < 8 < len(calls) - passed


def test_many_kinks_are_counted() -> None:
    text = message(pullback.relu, f64(pullback, np.zeros(9)))
    assert text.count("is at a kink") == 5
    assert "... and 4 more such elements." in text


def test_names_come_from_the_function() -> None:
    def forget(weight: Any, *rest: Any, scale: float = 2.0) -> Any:
        return weight.detach() * rest[0] * rest[1].detach() * scale

    text = message(forget, (grid(pullback, 2), grid(pullback, 2), grid(pullback, 2)))
    assert "gradcheck(forget)" in text
    assert "input 0 (weight)" in text
    assert "input 2 (rest[1])" in text

    class Amplifier:
        def __call__(self, gain: Any) -> Any:
            return gain.detach()

    assert "gradcheck(Amplifier)" in message(Amplifier(), grid(pullback, 2))
    assert "input 0 (gain)" in message(Amplifier(), grid(pullback, 2))


def test_a_shape_that_depends_on_the_values_is_an_error() -> None:
    def kept(x: Any) -> Any:
        return x[: 1 + int(x.detach()[0] > 1.0)] * 2

    def rounded(x: Any) -> Any:
        return x.float() if x.detach()[0] > 1.0 else x

    for func, what in ((kept, "shape"), (rounded, "dtype")):
        expected = f"outputs with the same {what} when inputs are perturbed. output 0 gets another when input 0"
        for options in ({}, {"fast_mode": True}, {"raise_exception": False}):
            with pytest.raises(AssertionError, match=expected):
                gradcheck(func, f64(pullback, [1.0, 2.0]), **options)


def test_a_sparse_gradient_of_a_dense_input_is_found() -> None:
    op = function(pullback, lambda x: x * 1, lambda x, g: g.to_sparse())
    with pytest.raises(GradcheckError, match="grad is incorrect layout: that of input 0"):
        gradcheck(op, grid(pullback, 2))
    assert not gradcheck(op, grid(pullback, 2), raise_exception=False)


def test_a_gradient_that_is_not_summed_passes_with_a_warning() -> None:
    """As in PyTorch the sum over what forward broadcast is made up for; the warning says where it is missing."""
    op = function(pullback, lambda x, b: x + b, lambda x, b, g: (g, g))
    with pytest.warns(UserWarning, match="it was summed over the axes that forward broadcast"):
        assert gradcheck(op, (grid(pullback, 4, 3), grid(pullback, 3)))


# -- the verdicts of PyTorch -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def torch_says(torch: Any, check: str, built: Built) -> bool:
    """Its verdict; an error that a backward raised is a verdict, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(torch.autograd, check)(*built, raise_exception=False)
        except MissingError:
            return False


@pytest.mark.torch
@pytest.mark.parametrize("name", RIGHT)
def test_torch_agrees_on_what_is_right(torch: Any, name: str) -> None:
    assert torch_says(torch, "gradcheck", RIGHT[name](torch)) is True


@pytest.mark.torch
@pytest.mark.parametrize("name", WRONG)
def test_torch_agrees_on_what_is_wrong(torch: Any, name: str) -> None:
    assert torch_says(torch, "gradcheck", WRONG[name][0](torch)) is False


@pytest.mark.torch
@pytest.mark.parametrize("name", WRONG_TWICE)
def test_torch_agrees_on_what_is_wrong_twice(torch: Any, name: str) -> None:
    assert torch_says(torch, "gradcheck", WRONG_TWICE[name][0](torch)) is True
    assert torch_says(torch, "gradgradcheck", WRONG_TWICE[name][0](torch)) is False


@pytest.mark.torch
@pytest.mark.parametrize("name", STRICTER)
def test_torch_lets_pass_what_the_jacobian_does_not_show(torch: Any, name: str) -> None:
    assert torch_says(torch, "gradcheck", STRICTER[name][0](torch)) is True


def with_rules(lib: Any, back: Any, push: Any = None) -> Any:
    """A function with these rules for the square, and what every mode asks for."""

    class Squared(lib.autograd.Function):
        generate_vmap_rule = True
        backward = staticmethod(back)

        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        if push is not None:
            jvp = staticmethod(push)

    return Squared.apply


def right(ctx: Any, g: Any) -> Any:
    return g * 2 * ctx.saved_tensors[0]


def drifting(amount: float) -> Any:
    """A backward that gives something else each time."""
    calls = [0]

    def back(ctx: Any, g: Any) -> Any:
        calls[0] += 1
        return g * 2 * ctx.saved_tensors[0] + amount * calls[0]

    return back


def real(lib: Any) -> Any:
    return f64(lib, [1.0, 2.0, 0.5])


def pushed(factor: float) -> Any:
    return lambda ctx, t: factor * ctx.saved_tensors[0] * t


# What to check, at what inputs, and with what arguments: of each both libraries say the same, and in fast mode too.
ARGUMENTS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "forward mode": (lambda lib: with_rules(lib, right, pushed(2)), real, {"check_forward_ad": True}),
    "wrong forward mode": (lambda lib: with_rules(lib, right, pushed(3)), real, {"check_forward_ad": True}),
    "wrong forward mode, unasked": (lambda lib: with_rules(lib, right, pushed(3)), real, {}),
    "forward mode alone": (
        lambda lib: with_rules(lib, lambda ctx, g: g * 9, pushed(2)),
        real,
        {"check_forward_ad": True, "check_backward_ad": False},
    ),
    "batched": (lambda lib: with_rules(lib, right), real, {"check_batched_grad": True}),
    "batched forward mode": (
        lambda lib: with_rules(lib, right, pushed(2)),
        real,
        {"check_forward_ad": True, "check_batched_forward_grad": True},
    ),
    "a batch that asks for a value": (
        lambda lib: with_rules(lib, lambda ctx, g: right(ctx, g) * (1 if g.sum().item() > -1e9 else 0)),
        real,
        {"check_batched_grad": True},
    ),
    "not deterministic": (lambda lib: with_rules(lib, drifting(1e-3)), real, {}),
    "a little so": (lambda lib: with_rules(lib, drifting(1e-12)), real, {}),
    "a little so, allowed": (lambda lib: with_rules(lib, drifting(1e-12)), real, {"nondet_tol": 1e-6}),
    "dtypes": (lambda lib: lib.sin, real, {"check_grad_dtypes": True}),
    "a large step": (lambda lib: lambda x: x**3, real, {"eps": 1.0}),
    "atol": (lambda lib: with_rules(lib, lambda ctx, g: right(ctx, g) + 1e-3 * g), real, {"atol": 1e-2}),
    "no atol": (lambda lib: with_rules(lib, lambda ctx, g: right(ctx, g) + 1e-2 * g), real, {}),
    "rtol": (lambda lib: with_rules(lib, lambda ctx, g: 1.005 * right(ctx, g)), real, {"rtol": 1e-2}),
    "no rtol": (lambda lib: with_rules(lib, lambda ctx, g: 1.005 * right(ctx, g)), real, {}),
    "undefined gradients unchecked": (lambda lib: lambda x: (x * 2, x**2), real, {"check_undefined_grad": False}),
    "masked": (lambda lib: lib.sin, real, {"masked": True}),
    "one of two results": (lambda lib: lambda x: (x * 2, with_rules(lib, lambda ctx, g: g)(x)), real, {}),
    "a kink": (lambda lib: lambda x: (x - 1).abs(), real, {}),
    "without axes": (lambda lib: lib.sin, lambda lib: f64(lib, 1.0), {}),
    "empty": (lambda lib: lib.sin, lambda lib: f64(lib, []), {}),
}


@pytest.mark.torch
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_torch_agrees_on_every_argument(torch: Any, name: str, fast: bool) -> None:
    build, at, how = ARGUMENTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.autograd.gradcheck(build(torch), at(torch), raise_exception=False, fast_mode=fast, **how)
    assert gradcheck(build(pullback), at(pullback), raise_exception=False, fast_mode=fast, **how) is theirs
    if not theirs:
        with pytest.raises(GradcheckError):
            gradcheck(build(pullback), at(pullback), fast_mode=fast, **how)


TWICE: dict[str, tuple[Any, dict[str, Any]]] = {
    "plainly": (lambda lib: lib.sin, {}),
    "several results": (lambda lib: lambda x: (x * 2, x**2), {}),
    "a frozen factor": (lambda lib: with_rules(lib, lambda ctx, g: g * 2 * ctx.saved_tensors[0].detach()), {}),
    "forward over reverse": (lambda lib: lib.sin, {"check_fwd_over_rev": True}),
    "forward over reverse alone": (
        lambda lib: lib.sin,
        {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False},
    ),
    "batched": (lambda lib: lib.sin, {"check_batched_grad": True}),
    "vectors with gaps": (lambda lib: lib.sin, {"gen_non_contig_grad_outputs": True}),
    "linear": (lambda lib: lambda x: x * 2, {}),
}


@pytest.mark.torch
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", TWICE)
def test_torch_agrees_on_every_argument_twice(torch: Any, name: str, fast: bool) -> None:
    build, how = TWICE[name]
    theirs = torch.autograd.gradgradcheck(build(torch), real(torch), raise_exception=False, fast_mode=fast, **how)
    assert gradgradcheck(build(pullback), real(pullback), raise_exception=False, fast_mode=fast, **how) is theirs


def doubled(lib: Any, back: Any, push: Any = None) -> Any:
    """Twice its argument, with these rules; backward gets None for a gradient that is not there."""

    class Doubled(lib.autograd.Function):
        backward = staticmethod(back)

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        if push is not None:
            jvp = staticmethod(push)

    return Doubled.apply


def fails(ctx: Any, g: Any) -> Any:
    if g is None:
        raise RuntimeError("no gradient")
    return g * 2


def double(ctx: Any, t: Any) -> Any:
    return None if t is None else t * 2


def triple(ctx: Any, t: Any) -> Any:
    return None if t is None else t * 3


def triple_real(ctx: Any, t: Any) -> Any:
    return None if t is None else t.real * 3 + t.imag * 2j


def complex_point(lib: Any) -> Any:
    return lib.tensor([1.0 + 1.0j], dtype=lib.complex128, requires_grad=True)


IMAGINARY, REAL_PART = "While considering the imaginary part of complex", "While considering the real part of complex"
FORWARD = {"check_forward_ad": True}
PHRASES: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "a gradient made of none": (
        lambda lib: doubled(lib, lambda ctx, g: f64(lib, [1.0, 2.0, 3.0]) if g is None else g * 2),
        real,
        {},
        "Expected all input grads to be undefined or zero when all output grads are undefined or zero",
    ),
    "no gradient is an error": (
        lambda lib: doubled(lib, fails),
        real,
        {},
        "Expected backward function to handle undefined output grads",
    ),
    "a repeated axis": (
        lambda lib: lib.sin,
        lambda lib: lib.ones(1, dtype=lib.float64).expand(3).requires_grad_(),
        {},
        "input.* has a dimension with stride 0",
    ),
    "fast": (lambda lib: doubled(lib, triple), real, {"fast_mode": True}, "computed\\s+in fast mode"),
    "both parts": (
        lambda lib: doubled(lib, triple),
        complex_point,
        {},
        f"{IMAGINARY} outputs only, Jacobian mismatch for output 0 with respect to input 0",
    ),
    "the real part": (
        lambda lib: doubled(lib, triple_real),
        complex_point,
        {},
        f"{REAL_PART} outputs only, Jacobian mismatch for output 0 with respect to input 0",
    ),
    "both parts of a tangent": (
        lambda lib: doubled(lib, double, triple),
        complex_point,
        FORWARD,
        f"{IMAGINARY} inputs only, Jacobian computed with forward mode mismatch for output 0 with respect to input 0",
    ),
    "the real part of a tangent": (
        lambda lib: doubled(lib, double, triple_real),
        complex_point,
        FORWARD,
        f"{REAL_PART} inputs only, Jacobian computed with forward mode mismatch for output 0 with respect to input 0",
    ),
    "no tensor that can move": (
        lambda lib: lib.sin,
        lambda lib: lib.tensor([1, 2]),
        {},
        "gradcheck expects at least one input tensor to require gradient",
    ),
    "not repeatable": (lambda lib: random_backward(lib)[0], real, {}, "Backward is not reentrant"),
    "a sparse output": (
        lambda lib: lambda v: lib.sparse_coo_tensor(lib.tensor([[0, 2, 1]]), v, (3,)),
        real,
        {},
        "Sparse output is not supported at gradcheck yet",
    ),
}


@pytest.mark.parametrize("lib", ["pullback", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", PHRASES)
def test_key_phrases_are_those_of_torch(name: str, lib: str) -> None:
    build, at, how, says = PHRASES[name]
    module = pytest.importorskip(lib)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((RuntimeError, ValueError), match=says):
            module.autograd.gradcheck(build(module), at(module), **how)


@pytest.mark.torch
@pytest.mark.parametrize("check", ["gradcheck", "gradgradcheck"])
def test_the_signature_is_that_of_torch(torch: Any, check: str) -> None:
    ours = inspect.signature({"gradcheck": gradcheck, "gradgradcheck": gradgradcheck}[check]).parameters
    theirs = inspect.signature(getattr(torch.autograd, check)).parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]
    assert issubclass(GradcheckError, RuntimeError)


def _of_units(p: pullback.Tensor) -> pullback.Tensor:
    return pullback.stack([pullback.exp(-p[0] / 6e-6), (p[1] / 3e-14) ** 3, p[2].sqrt(), p[3] ** 2])


@pytest.mark.parametrize("values", [[6e-6, 3e-14, 1.0, 2.0], [1.0, -3e-14, 2e-7, 2.0]])
def test_an_input_that_is_small_beside_the_step_is_told_of(values: list[float]) -> None:
    p = pullback.tensor(values, dtype=pullback.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as error:
        gradcheck(_of_units, p)
    message = str(error.value)
    assert "is small beside eps=1e-06, by which it is moved" in message
    assert "jump" not in message
    factors = pullback.ones_like(p)
    assert gradcheck(lambda s: _of_units(s * p.detach()), factors)  # as it says


def test_a_wrong_gradient_of_a_small_input_is_called_wrong() -> None:
    class Tripled(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: pullback.Tensor) -> pullback.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: pullback.Tensor) -> pullback.Tensor:
            return g * 3

    x = pullback.tensor([3e-14, 1.0], dtype=pullback.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match=r"a constant factor: analytical = 1\.5 x numerical"):
        gradcheck(Tripled.apply, x)


def test_the_collector_is_as_before_and_takes_young_cycles() -> None:
    before, seen = gc.get_threshold(), []

    def cyclic(x: pullback.Tensor) -> pullback.Tensor:
        seen.append(gc.get_threshold())
        loop: list[Any] = [x]
        loop.append(loop)
        return x.sin()

    x = pullback.ones(2, dtype=pullback.float64, requires_grad=True)
    assert gradcheck(cyclic, x)
    assert all(there[:2] == before[:2] and there[2] >= 1000 for there in seen)
    assert gc.get_threshold() == before
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x: x / (1 // 0), x)
    assert gc.get_threshold() == before


def test_an_input_without_any_gradient_comes_first() -> None:
    class Lost(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: pullback.Tensor, y: pullback.Tensor) -> pullback.Tensor:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: pullback.Tensor) -> tuple[pullback.Tensor, None]:
            return g * 3, None

    x, y = (pullback.tensor(v, dtype=pullback.float64, requires_grad=True) for v in (2.0, 5.0))
    with pytest.raises(GradcheckError) as error:
        gradcheck(Lost.apply, (x, y))
    sections = str(error.value).split("Jacobian mismatch for")[1:]
    assert ["(y)" in section.partition(":")[0] for section in sections] == [True, False]

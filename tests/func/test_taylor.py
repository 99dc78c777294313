"""Taylor mode: `func.jet` and what is built on it, against nested forward mode, and nested with all other transforms.

Every entry of the table is tried in tests/table/test_jets.py.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import Function
from pullback.interpreters.jets import Collapsed
from pullback.tensor.memory import KEEPERS
from pullback.tensor.nested import leaves

Tensor = Any
K = 4


def along_path(f: Callable[..., Tensor], x: Tensor, series: list[Tensor]) -> list[Tensor]:
    """The derivatives of ``f(x(t))`` at 0 by nested forward mode."""

    def path(t: Tensor) -> Tensor:
        return f(x + sum(c * t ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(series)))

    found, zero, one = [], pullback.zeros((), dtype=x.dtype), pullback.ones((), dtype=x.dtype)
    for _ in range(len(series) + 1):
        found.append(path(zero))
        path = (lambda g: lambda t: func.jvp(g, (t,), (one,))[1])(path)
    return found


def vector(n: int = 3, complex: bool = False) -> Tensor:
    rng = np.random.default_rng(7)
    values = rng.uniform(0.3, 1.2, n) + (1j * rng.uniform(0.3, 1.2, n) if complex else 0)
    return pullback.tensor(values)


def series_of(x: Tensor, order: int = K) -> list[Tensor]:
    rng = np.random.default_rng(8)
    return [pullback.tensor(0.3 * rng.standard_normal(x.shape)).to(x.dtype) for _ in range(order)]


def assert_jet(f: Callable[..., Tensor], x: Tensor, order: int = K) -> None:
    series = series_of(x, order)
    value, found = func.jet(f, (x,), (series,))
    for mine, theirs in zip([value, *found], along_path(f, x, series), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-10)


class Cube(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(inputs[0])
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 3 * ctx.saved_tensors[0] ** 2

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        return t * 3 * ctx.saved_tensors[0] ** 2


MATRIX = pullback.eye(3, dtype=pullback.float64) * 3
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "product": lambda x: x * x.sin() * 2,
    "quotient": lambda x: x.sigmoid() / (x + 2) - 1 / x,
    "rates": lambda x: x.exp() + x.tanh() + x.sigmoid(),
    "power": lambda x: x**2.5 + x**3 + 2**x,
    "softmax": lambda x: pullback.softmax(x * x, 0),
    "logsumexp": lambda x: pullback.logsumexp(x * x, 0),
    "norm": lambda x: x.norm(),
    "running product": lambda x: x.cumprod(0),
    "inverse": lambda x: (pullback.outer(x, x) + MATRIX).inverse(),
    "solution": lambda x: pullback.linalg.solve(pullback.outer(x, x) + MATRIX, x),
    "triangular": lambda x: pullback.linalg.solve_triangular(pullback.outer(x, x) + MATRIX, x[:, None], upper=True),
    "factor": lambda x: pullback.linalg.cholesky(pullback.outer(x, x) + MATRIX),
    "determinant": lambda x: pullback.linalg.det(pullback.outer(x, x.exp()) + MATRIX),
    "eigenvalues": lambda x: pullback.linalg.eigvalsh(pullback.outer(x, x) + pullback.diag(x * 3)),
    "branches": lambda x: pullback.where(x > 0.5, x * x, x.exp()) + x.max() ** 2,
    "kept apart": lambda x: x.detach() * x + x.floor(),
    "custom": lambda x: Cube.apply(x) * x,
    "batched": lambda x: func.vmap(lambda a: a.sin() * x)(x),
    "forward mode": lambda x: func.jvp(lambda a: a.sin() * x, (x,), (x * x,))[1],
    "reverse mode": lambda x: func.grad(lambda a: (a.exp() * x).sum())(x * x),
    "taylor mode": lambda x: func.jet(pullback.sin, (x,), ([x, x * x],))[1][1],
    "a constant": lambda x: pullback.ones(2, dtype=pullback.float64),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_orders_are_those_of_nested_forward_mode(name: str) -> None:
    assert_jet(FUNCTIONS[name], vector())


@pytest.mark.parametrize("name", ["product", "quotient", "rates", "power", "running product", "solution"])
def test_of_complex_numbers(name: str) -> None:
    f = FUNCTIONS[name] if name != "solution" else lambda x: pullback.linalg.solve(pullback.outer(x, x) + MATRIX, x)
    assert_jet(f, vector(complex=True), 3)


def test_an_analytic_function_against_a_contour_integral() -> None:
    """Cauchy's formula: the coefficients of f(x + v t) are those of its Fourier series on a circle."""
    x, v = 0.4, 0.7
    circle = np.exp(2j * np.pi * np.arange(64) / 64)
    values = np.exp(np.sin(x + v * circle)) / (2 + x + v * circle)
    expected = np.fft.fft(values).real / 64
    terms = [pullback.tensor(v, dtype=pullback.float64), *[pullback.zeros((), dtype=pullback.float64)] * 7]
    f = lambda a: a.sin().exp() / (2 + a)  # noqa: E731
    value, found = func.jet(f, (pullback.tensor(x, dtype=pullback.float64),), (terms,), factorial_scaled=False)
    np.testing.assert_allclose([t.item() for t in [value, *found]], expected[:9], rtol=1e-10, atol=1e-14)


def test_of_several_arguments_and_nested_results() -> None:
    x, y = vector(), vector() + 1
    zero = pullback.zeros_like(x)
    value, series = func.jet(lambda a, b: {"product": a * b, "both": (a, b)}, (x, y), ([y, zero], [x, zero]))
    assert value["product"].tolist() == (x * y).tolist()
    assert [t.tolist() for t in series["product"]] == [(x * x + y * y).tolist(), (2 * x * y).tolist()]
    assert [t.tolist() for t in series["both"][0]] == [y.tolist(), zero.tolist()]


def test_of_order_zero() -> None:
    calls = []
    value, series = func.jet(lambda x: calls.append(1) or x * 2, (vector(),), ([],))
    assert (value.tolist(), series, len(calls)) == ((vector() * 2).tolist(), [], 1)


def test_control_flow_follows_the_value() -> None:
    assert_jet(lambda x: x * x if x.sum() > 0 else x, vector())
    with pytest.raises(RuntimeError, match="its series would be lost"):
        func.jet(lambda x: x * float(x[0]), (vector(),), (series_of(vector()),))


def overwritten(x: Tensor) -> Tensor:
    y = x.exp()
    y.mul_(x).add_(1).relu_()
    return y


def parts_overwritten(x: Tensor) -> Tensor:
    y = x.sin()
    first, rest = y[0], y[1:]
    turned = rest.reshape(2, 1)
    first.mul_(3)
    y.mul_(x)
    turned[1] = x[0] * first
    rest[0] = 2.0
    return pullback.cat([y * y, rest, turned[:, 0].exp(), first[None]])


def gathered(x: Tensor) -> Tensor:
    out = pullback.zeros(2, 3, dtype=x.dtype)
    row = out[1]
    out[0] = x * x
    row += x.exp()
    row[0].zero_()
    return out * out


def overwritten_before_use(x: Tensor) -> Tensor:
    y, kept = x.sin(), x.detach()
    y[1] = y[0] * y[2]
    z = y * y
    y.zero_()
    y += kept
    return z + y * x


WRITES = {f.__name__: f for f in (overwritten, parts_overwritten, gathered, overwritten_before_use)}


@pytest.mark.filterwarnings("ignore:An element that was taken by an index")  # `parts_overwritten` uses one on purpose
@pytest.mark.parametrize("name", WRITES)
def test_a_write_in_place(name: str) -> None:
    assert_jet(WRITES[name], vector())
    if name != "gathered":  # vmap has no tensor from outside written to
        assert_jet(lambda x: func.vmap(WRITES[name])(pullback.stack([x, x * x])), vector(), 3)


def set_element(x: Tensor) -> Tensor:
    y = x.clone()
    y[0] = y[1].clone() * x[2]
    return y.mul_(0.5).square().sum()


def write_a_view(x: Tensor) -> Tensor:
    y = x.clone()
    y[1:].add_(x[0].sin())
    return (y * y).sum()


@pytest.mark.parametrize("f", [set_element, write_a_view, lambda x: x.clone().mul_(x).mul_(x).sum()])
def test_a_write_whose_values_vary_over_another_batch_than_the_derivative_that_they_replace(f: Any) -> None:
    """The direction is the same for all points, and what is written belongs to a point."""
    points, v = pullback.stack([vector(), vector() * 2]), pullback.tensor([1.0, 0.5, -1.0], dtype=vector().dtype)
    derivatives: list[Callable[[Tensor], Tensor]] = [
        func.laplacian(f),
        lambda x: func.jvp(f, (x,), (v,))[1],
        lambda x: func.jvp(lambda x: func.jvp(f, (x,), (v,))[1], (x,), (v,))[1],
        lambda x: func.jet(f, (x,), ([v, v],))[1][1],
        func.jacfwd(func.jacfwd(f)),
        func.jacfwd(func.grad(f)),
    ]
    for derivative in derivatives:
        assert_same(func.vmap(derivative)(points), pullback.stack([derivative(x) for x in points]))
    y = vector()
    found = func.jacfwd(func.jacfwd(f))(y)
    assert_same(found, func.jacfwd(lambda x: along_gradient(f, x))(y))


def along_gradient(f: Any, x: Tensor) -> Tensor:
    """The gradient, one direction after the other."""
    return pullback.stack([func.jvp(f, (x,), (e,))[1] for e in pullback.eye(3, dtype=x.dtype)])


def test_a_write_in_place_within_reverse_mode() -> None:
    def written(a: Tensor) -> Tensor:
        y = a.sin() * 2
        y[1:].add_(a[0] ** 3)
        y[0] = a[1] * a[2]
        return (y * y).sum()

    assert_jet(lambda x: func.grad(written)(x * x), vector(), 3)


def test_a_write_to_the_argument() -> None:
    """It changes the argument, as under `jvp`, and not a series that is the same tensor."""
    x = vector()
    before = x.clone()
    value, (first,) = func.jet(lambda a: a.mul_(a), (x,), ([x],))
    assert (x.tolist(), value.tolist()) == ((before * before).tolist(),) * 2
    assert first.tolist() == (2 * before * before).tolist()


def test_a_tensor_from_outside_keeps_its_value_after_a_write() -> None:
    out = pullback.zeros(3, dtype=pullback.float64)
    func.jet(lambda a: out.add_(a * a), (vector(),), (series_of(vector()),))
    assert out.tolist() == (vector() * vector()).tolist()


def test_an_entry_without_a_derivative_is_refused_by_name() -> None:
    one = pullback.ones(2, dtype=pullback.float64)
    with pytest.raises(NotImplementedError, match=r"igamma\(\) by input"):
        func.jet(lambda x: pullback.igamma(x, one), (one,), ([one, one],))


@pytest.mark.parametrize(
    ("primals", "series", "error", "said"),
    [
        (pullback.ones(2), ([pullback.ones(2)],), TypeError, "primals to be a tuple"),
        ((pullback.ones(2),), pullback.ones(2), TypeError, "series to be a tuple"),
        ((), (), ValueError, "a series for each of"),
        ((pullback.ones(2),), ([], []), ValueError, "a series for each of"),
        ((pullback.ones(2, dtype=pullback.int64),), ([],), TypeError, "floating point or complex"),
        ((1.0,), ([],), TypeError, "primal 0 to be a Tensor"),
        ((pullback.ones(2),) * 2, ([pullback.ones(2)], []), ValueError, "series 1 to be a list of 1"),
        ((pullback.ones(2),), ([pullback.ones(3)],), ValueError, "term 1 of series 0 to be like its primal"),
        ((pullback.ones(2),), ([pullback.ones(2).double()],), ValueError, "term 1 of series 0 to be like its primal"),
        ((pullback.ones(2),), ([1.0],), ValueError, "found float 1.0"),
        ((pullback.ones(2),), (pullback.ones(2),), ValueError, r"series 0 to be a list of Tensors, found Tensor"),
        (
            (pullback.tensor(1.0),),
            (pullback.tensor(1.0),),
            ValueError,
            "series 0 to be a list of Tensors, found Tensor",
        ),
    ],
)
def test_what_does_not_match_is_refused(primals: Any, series: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        func.jet(pullback.sin, primals, series)


def test_a_function_that_returns_no_tensor_is_refused() -> None:
    for f in (lambda x: 1.0, lambda x: None, lambda x: (), lambda x: (x, 2)):
        for call in (
            lambda f=f: func.jet(f, (vector(),), (series_of(vector()),)),
            lambda f=f: func.jet(f, (vector(),), ([],)),
            lambda f=f: func.laplacian(f)(vector()),
            lambda f=f: func.derivatives(f, 2)(vector()),
        ):
            with pytest.raises(
                RuntimeError, match=r"(jet\(f, primals, series\)|laplacian\(f\)\(x\))[\s\S]*What to do: return"
            ):
                call()


def test_a_jet_is_differentiable() -> None:
    w = vector().requires_grad_()
    x = vector() + 0.5

    def last(w: Tensor) -> Tensor:
        return func.jet(lambda a: (a * w).sin(), (x,), ([pullback.ones_like(x), *[pullback.zeros_like(x)] * 2],))[1][2]

    last(w).sum().backward()
    by_hand = lambda w: (-(w**3) * (x * w).cos()).sum()  # noqa: E731
    np.testing.assert_allclose(w.grad.numpy(), func.grad(by_hand)(w.detach()).numpy(), rtol=1e-12)
    assert pullback.autograd.gradcheck(last, (w,))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("f", [Cube.apply, lambda x: Cube.apply(x.sin()) * x], ids=["alone", "within"])
def test_a_jet_of_a_function_of_ones_own_is_differentiable(f: Callable[[Tensor], Tensor], order: int) -> None:
    """By the primal and by each term of the series."""

    def gradients(terms: Callable[..., list[Tensor]]) -> list[Tensor]:
        x, series = vector().requires_grad_(), [c.requires_grad_() for c in series_of(vector(), order)]
        return list(pullback.autograd.grad(terms(x, series)[-1].sum(), [x, *series]))

    mine = gradients(lambda x, series: func.jet(f, (x,), (series,))[1])
    for a, b in zip(mine, gradients(lambda x, series: along_path(f, x, series)), strict=True):
        assert_same(a, b)


def test_a_jet_of_a_batch_and_a_batch_of_jets() -> None:
    x = pullback.stack([vector(), vector() * 2])
    series = [pullback.ones_like(x), pullback.zeros_like(x)]
    whole = func.jet(pullback.exp, (x,), (series,))[1]
    each = func.vmap(lambda a, b, c: tuple(func.jet(pullback.exp, (a,), ([b, c],))[1]))(x, *series)
    assert all(a.tolist() == b.tolist() for a, b in zip(whole, each, strict=True))


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_jet_of_a_compiled_function_and_one_compiled(backend: str) -> None:
    if backend == "c" and not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("there is no C compiler")
    f = lambda x: (x.sin() * x).softmax(0) / (1 + x)  # noqa: E731
    compiled = pullback.compile(f, backend=backend)
    compiled(vector())
    assert_jet(compiled, vector())
    jet = lambda x, *s: func.jet(f, (x,), (s,))  # noqa: E731
    x, series = vector(), series_of(vector())
    for mine, theirs in zip(
        leaves(pullback.compile(jet, backend=backend)(x, *series)), leaves(jet(x, *series)), strict=True
    ):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12)


def test_forward_mode_and_second_derivatives_of_a_jet() -> None:
    x = vector()
    zero = pullback.zeros_like(x)
    third = lambda a: func.jet(lambda b: (a * b).sin() * a, (x,), ([x, zero, zero],))[1][-1].sum()  # noqa: E731
    by_hand = lambda a: -(a**4 * x**3 * (a * x).cos()).sum()  # noqa: E731
    assert_same(func.jvp(third, (x,), (x,))[1], func.jvp(by_hand, (x,), (x,))[1])
    assert_same(func.hessian(third)(x), func.hessian(by_hand)(x))
    assert_same(func.jacrev(func.jacfwd(third))(x), func.hessian(by_hand)(x))


def test_the_hessian_of_a_laplacian_by_parameters() -> None:
    w, x = vector(), vector() * 0.5
    energy = lambda w: func.laplacian(lambda x: (w * x).sin().sum() ** 2)(x)  # noqa: E731
    by_hand = lambda w: func.hessian(lambda x: (w * x).sin().sum() ** 2)(x).diagonal().sum()  # noqa: E731
    assert_same(func.hessian(energy)(w), func.hessian(by_hand)(w))
    both = lambda w, x: func.laplacian(lambda x: (w * x).sin().sum() ** 2)(x)  # noqa: E731
    found = func.vmap(func.grad(both), in_dims=(None, 0))(w, pullback.stack([x, x * 2]))
    assert_same(found[0], func.grad(by_hand)(w))


def assert_same(mine: Tensor, theirs: Tensor) -> None:
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-10)


# Steps of random programs, of vectors of three numbers to such vectors.
STEPS: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a / (2 + b * b),
    lambda a, b: a.sin() - b.tanh(),
    lambda a, b: (a * a + 1).sqrt() + (b * b + 0.5).log(),
    lambda a, b: pullback.softmax(a, 0) * b,
    lambda a, b: pullback.linalg.solve(pullback.outer(a, a) + MATRIX, b),
    lambda a, b: pullback.where(a > b, a * b, a.exp() * 0.2),
    lambda a, b: pullback.cat([a[1:], b[:1]]).cumsum(0),
    lambda a, b: pullback.outer(a, b).max(1).values,
    lambda a, b: (a * 1).mul_(b).add_(a),
    lambda a, b: a.index_put((pullback.tensor([1]),), b[2:] * a[:1]),
    lambda a, b: func.vmap(lambda c: (c * b).sum().sin())(a),
    lambda a, b: func.grad(lambda c: (c * b).sin().sum())(a),
    lambda a, b: func.jvp(lambda c: c.sigmoid() * c, (a,), (b,))[1],
    lambda a, b: func.jet(lambda c: c.exp() * 0.1, (a * 0.3,), ([b, a],))[1][1],
    lambda a, b: Cube.apply(a * 0.5) + b,
    lambda a, b: pullback.utils.checkpoint.checkpoint(lambda c: c.sin() * b, a, use_reentrant=False),
]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chosen = [(STEPS[rng.integers(len(STEPS))], rng.integers(1 + k), rng.integers(1 + k)) for k in range(5)]

    def program(x: Tensor) -> Tensor:
        values = [x]
        for step, a, b in chosen:
            values.append(step(values[a], values[b]))
        return values[-1] + values[rng_last % len(values)]

    rng_last = int(rng.integers(6))
    assert_jet(program, vector(), 3)


def test_a_jet_that_has_escaped_is_refused() -> None:
    kept = []
    func.jet(lambda x: kept.append(x) or x, (vector(),), (series_of(vector()),))
    with pytest.raises(RuntimeError, match="may have escaped"):
        kept[0] + 1


# Operators ------------------------------------------------------------------------------------------------------------


def network(x: Tensor) -> Tensor:
    return ((x * x[0]).tanh() * x.sin()).sum() ** 2


def by_hessian(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: func.hessian(f)(x).diagonal().sum()


def test_derivatives_of_a_number() -> None:
    x = pullback.tensor(0.7, dtype=pullback.float64)
    expected, f = [], lambda x: x.exp() * x
    for _ in range(5):
        expected.append(f(x).item())
        f = func.grad(f)
    found = func.derivatives(lambda x: x.exp() * x, 4)(x)
    np.testing.assert_allclose([t.item() for t in found], expected, rtol=1e-12)
    assert len(func.derivatives(pullback.sin, 0)(x)) == 1
    assert func.derivatives(pullback.sin, 1)(vector())[1].tolist() == vector().cos().tolist()


@pytest.mark.parametrize("operator", [func.laplacian, func.biharmonic])
def test_an_operator_on_a_vector_without_elements_is_zero(operator: Any) -> None:
    found = operator(lambda x: x.square().sum() + 3)(pullback.ones(0, dtype=pullback.float64))
    assert (found.item(), found.dtype) == (0.0, pullback.float64)
    with pytest.raises(RuntimeError, match="return a Tensor"):
        operator(lambda x: None)(pullback.ones(0))


def test_the_laplacian_is_the_trace_of_the_hessian() -> None:
    x = vector(4)
    np.testing.assert_allclose(func.laplacian(network)(x).item(), by_hessian(network)(x).item(), rtol=1e-12)
    assert func.laplacian(lambda x: x[0] * 3)(x).item() == 0
    assert func.laplacian(lambda x: pullback.ones(()))(x).item() == 0


MIXING = np.array([[0.4, -0.3, 0.2], [0.1, 0.9, -0.6], [0.8, 0.2, 0.5]])


def written_weights(x: Tensor, w: Tensor) -> Tensor:
    v = w * 1
    y = x.sin() @ v
    v.mul_(3)
    return (y * y).sum() + (x @ v).sum() ** 2


def written_operand(x: Tensor, w: Tensor) -> Tensor:
    y = x.sin()
    z, shifted = y @ w, y + 1
    y.mul_(z.detach() + 2)
    return (z * y).exp().sum() + (shifted * x).sum()


def written_part(x: Tensor, w: Tensor) -> Tensor:
    z = x.tanh() @ w
    head, tail = z[:1], z[1:] * 2
    z[1:] = head * tail
    tail *= 3
    return (z * z).sum() + (head * tail).sum()


def written_array(x: Tensor, w: Tensor) -> Tensor:
    buffer = MIXING.copy()
    y = x.sin() @ pullback.from_numpy(buffer)
    buffer[:] = 7.0
    z = (x * w[0]).cos() * pullback.from_numpy(buffer[0])
    buffer[:] = -2.0
    return (y * z).sum()


def recorded_in_part(x: Tensor, w: Tensor) -> Tensor:
    with pullback.no_grad():
        y = x.sin() @ w
    return (y * (x @ w)).sum()


def last_layer(x: Tensor, w: Tensor) -> Tensor:
    return ((x @ w).tanh() @ w).sum()


SAVED_AND_WRITTEN = (written_operand, written_part)  # which reverse mode refuses


def by_forward_mode(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The Laplacian, one direction after the other."""

    def along(x: Tensor, v: Tensor) -> Tensor:
        return func.jvp(lambda x: func.jvp(f, (x,), (v,))[1], (x,), (v,))[1]

    return lambda x: sum(along(x, v) for v in pullback.eye(3, dtype=x.dtype))


@pytest.mark.parametrize(
    "f", [written_weights, written_operand, written_part, written_array, recorded_in_part, last_layer]
)
def test_what_an_operator_puts_off_has_the_values_of_its_place_in_the_program(f: Callable[..., Tensor]) -> None:
    x, w = vector(), pullback.tensor(MIXING, requires_grad=True)
    for order, operator in ((2, func.laplacian), (4, func.biharmonic)):
        nested = by_forward_mode if order == 2 else lambda g: by_forward_mode(by_forward_mode(g))

        mine, theirs = (of(lambda x: f(x, w))(x) for of in (operator, nested))
        assert_same(mine, theirs)
        if f not in SAVED_AND_WRITTEN:
            assert_same(*(pullback.autograd.grad(value, w)[0] for value in (mine, theirs)))
    points = pullback.stack([x, x * 0.5])
    values = lambda w, of: func.vmap(of(lambda x: f(x, w)))(points)  # noqa: E731
    assert_same(*(values(w.detach(), of) for of in (func.laplacian, by_forward_mode)))
    if f not in SAVED_AND_WRITTEN:
        loss = lambda w, of: values(w, of).square().sum()  # noqa: E731
        assert_same(*(func.grad(loss)(w.detach(), of) for of in (func.laplacian, by_forward_mode)))
    assert not KEEPERS


def test_an_operator_computes_no_coefficient_that_nobody_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    computed, product = [], Collapsed._product

    def counted(self: Any, op: Any, args: Any, kwargs: Any, k: int) -> Any:
        computed.append(k)
        return product(self, op, args, kwargs, k)

    monkeypatch.setattr(Collapsed, "_product", counted)
    w = pullback.tensor(MIXING, requires_grad=True)
    func.laplacian(lambda x: last_layer(x, w))(vector())
    assert sorted(computed) == [1, 2, 2]  # the first layer whole; of the second, the coefficient of the Laplacian


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_the_biharmonic_operator_is_the_laplacian_twice(n: int) -> None:
    x = vector(n)
    expected = by_hessian(by_hessian(network))(x).item()
    np.testing.assert_allclose(func.biharmonic(network)(x).item(), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("weights", [[1.0, 2.0, 0.5], [1.0, -1.0, 0.0], [1.0, -2.0, 1.1]])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_an_operator_is_the_weighted_sum_of_directional_derivatives(weights: list[float], order: int) -> None:
    x = vector()
    along = pullback.tensor(np.random.default_rng(3).standard_normal((3, 3)))
    zeros = [pullback.zeros_like(x)] * (order - 1)
    each = [func.jet(network, (x,), ([v, *zeros],))[1][-1].item() for v in along]
    found = func.linear_operator(network, order, along, weights)(x).item()
    np.testing.assert_allclose(found, np.dot(weights, each), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("weights", [[1.0, 2.0, 0.5], [1.0, 1.0, 1.0], [1.0, -2.0, 1.1], [0.0, 0.0, 0.0]])
def test_weights_and_directions_of_an_operator_are_differentiated(weights: list[float], order: int) -> None:
    """As in an equation whose coefficients are to be found."""
    x, f = vector(), lambda x: (x.sin() * x.roll(1)).sum() ** 2
    c, along = pullback.tensor(weights, dtype=x.dtype), pullback.tensor(MIXING)

    def plain(c: Tensor, along: Tensor) -> Tensor:
        zeros = [pullback.zeros_like(x)] * (order - 1)
        return sum(c[i] * func.jet(f, (x,), ([along[i], *zeros],))[1][-1] for i in range(3))

    mine = lambda c, along: func.linear_operator(f, order, along, c)(x)  # noqa: E731
    assert_same(mine(c, along), plain(c, along))
    for found, expected in zip(*(func.grad(g, (0, 1))(c, along) for g in (mine, plain)), strict=True):
        assert_same(found, expected)
    assert_same(*(func.grad(lambda along, g=g: g(c, along))(along) for g in (mine, plain)))
    apart = lambda c: func.linear_operator(f, order, along, [c[0], 2.0, c[2]])(x)  # noqa: E731
    assert_same(func.grad(apart)(c), func.grad(lambda c: plain(c, along))(c) * pullback.tensor([1.0, 0.0, 1.0]))
    many = pullback.stack([c, c + 1])
    assert_same(func.vmap(mine, (0, None))(many, along), pullback.stack([plain(one, along) for one in many]))
    assert_same(pullback.compile(mine, backend="numpy")(c, along), plain(c, along))


def test_operators_are_batched_trained_and_compiled() -> None:
    w = (vector(2) + 1).requires_grad_()
    points = pullback.stack([vector(2), vector(2) * 0.5, vector(2) * 2])
    f = lambda x: ((x * w).sin()).sum()  # noqa: E731
    found = func.vmap(func.laplacian(f))(points)
    expected = -(w**2 * (points * w).sin()).sum(1)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)
    (mine,) = pullback.autograd.grad((found**2).sum(), w)
    (theirs,) = pullback.autograd.grad((expected**2).sum(), w)
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12)
    g = lambda x: func.laplacian(network)(x)  # noqa: E731
    np.testing.assert_allclose(pullback.compile(g, backend="numpy")(points[0]).item(), g(points[0]).item(), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda: func.laplacian(network)(pullback.ones(2, 3)),
            TypeError,
            "expected a vector of floating point numbers",
        ),
        (lambda: func.laplacian(network)(1.0), TypeError, "expected a vector"),
        (lambda: func.biharmonic(network)(pullback.ones(2, dtype=pullback.int64)), TypeError, "expected a vector"),
        (lambda: func.derivatives(network, -1), ValueError, "at least 0"),
        (lambda: func.derivatives(network, 1.5), TypeError, "the order to be an integer"),
        (lambda: func.linear_operator(network, 0, pullback.eye(2)), ValueError, "at least 1"),
        (lambda: func.linear_operator(network, 2, [1.0]), TypeError, "directions to be a Tensor"),
        (lambda: func.linear_operator(network, 2, pullback.eye(2), [1.0]), ValueError, "2 weights"),
        (lambda: func.linear_operator(network, 2, pullback.eye(2), ["a", 1.0]), TypeError, "sequence of numbers"),
        (lambda: func.linear_operator(network, 2, pullback.eye(2), [1j, 1.0]), TypeError, "sequence of numbers"),
        (
            lambda: func.linear_operator(network, 2, pullback.eye(2), pullback.ones(2, dtype=pullback.complex64)),
            TypeError,
            "sequence of numbers",
        ),
        (
            lambda: func.laplacian(lambda x: (x.sum(), x))(vector()),
            TypeError,
            r"laplacian\(\): .*f to return one Tensor",
        ),
        (lambda: func.derivatives(network, 2)(1.0), TypeError, r"derivatives\(\): expected x to be a Tensor"),
        (
            lambda: func.linear_operator(network, 2, pullback.eye(2))(pullback.ones(3)),
            ValueError,
            "like the directions",
        ),
    ],
)
def test_what_no_operator_takes_is_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x.abs(), [0.0, 0.0, 0.0]),
        (lambda x: x.relu() + x * x, [0.0, 0.0, 2.0]),
        (lambda x: pullback.where(x >= 0, x * x, -x), [0.0, 0.0, 2.0]),
        (lambda x: pullback.stack([x, x + 1]).max(), [1.0, 1.0, 0.0]),
        (lambda x: x.sqrt(), [0.0, math.inf, None]),
    ],
    ids=["abs", "relu", "where", "max", "sqrt"],
)
def test_kinks_and_branch_points(f: Callable[[Tensor], Tensor], expected: list[float | None]) -> None:
    """All orders are those of the side that the first derivative is taken from; infinite or NaN where that is."""
    found = [t.item() for t in func.derivatives(f, 2)(pullback.zeros(()))]
    assert found[:2] == expected[:2]
    assert not math.isfinite(found[2]) if expected[2] is None else found[2] == expected[2]


class WritesBoth(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 2

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        return t.mul_(2)


def test_a_function_that_writes_to_its_tangent_is_refused() -> None:
    x = vector()
    with pytest.raises(RuntimeError, match="return new tensors from forward and jvp"):
        func.jet(lambda a: WritesBoth.apply(a * 1), (x,), ([x],))

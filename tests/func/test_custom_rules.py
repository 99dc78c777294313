"""`custom_vjp` and `custom_jvp`: rules under a decorator, with the behaviour of a `Function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import custom_jvp, custom_vjp
from pullback.autograd import gradcheck, gradgradcheck

F = pullback.func


@custom_vjp
def scaled_sin(x: Any, y: Any) -> Any:
    return pullback.sin(x) * y


scaled_sin.defvjp(
    lambda x, y: (pullback.sin(x) * y, (x, y)),
    lambda residuals, g: (g * residuals[1] * pullback.cos(residuals[0]), g * pullback.sin(residuals[0])),
)


@custom_jvp
def pushed_sin(x: Any, y: Any) -> Any:
    return pullback.sin(x) * y


@pushed_sin.defjvp
def _rule(primals: Any, tangents: Any) -> Any:
    (x, y), (s, t) = primals, tangents
    return pushed_sin(x, y), s * pullback.cos(x) * y + t * pullback.sin(x)


@custom_jvp
def by_argument(x: Any, y: Any) -> Any:
    return pullback.sin(x) * y


by_argument.defjvps(lambda t, out, x, y: t * pullback.cos(x) * y, lambda t, out, x, y: t * pullback.sin(x))

FUNCTIONS: dict[str, Callable[..., Any]] = {"vjp": scaled_sin, "jvp": pushed_sin, "jvps": by_argument}


def real(*shape: int) -> Any:
    return pullback.randn(*shape, dtype=pullback.float64, requires_grad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_two_orders(name: str) -> None:
    f, args = FUNCTIONS[name], (real(3), real(3))
    forward = name != "vjp"
    assert gradcheck(f, args, check_forward_ad=forward, check_batched_grad=True, check_batched_forward_grad=forward)
    assert gradgradcheck(f, args, check_fwd_over_rev=forward, check_batched_grad=True)
    assert type(f(*args).grad_fn).__name__ == f"{f.__name__}Backward"


@pytest.mark.parametrize("name", ["jvp", "jvps"])
def test_complex_arguments_beside_real_ones(name: str) -> None:
    f, z = FUNCTIONS[name], pullback.randn(3, dtype=pullback.complex128, requires_grad=True)
    for args in ((z, z), (real(3), z), (z, real(3))):
        assert gradcheck(f, args, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(f, args)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: lambda x, y: F.grad(lambda x, y: f(x, y).sum())(x, y),
    "vmap": lambda f: pullback.vmap(f),
    "vmap(grad)": lambda f: pullback.vmap(F.grad(f)),
    "grad(vmap)": lambda f: F.grad(lambda x, y: pullback.vmap(f)(x, y).sum()),
    "jacrev": lambda f: F.jacrev(f),
    "jacrev(jacrev)": lambda f: F.jacrev(F.jacrev(f)),
    "vmap(hessian), by reverse mode": lambda f: pullback.vmap(F.jacrev(F.jacrev(f))),
    "jvp": lambda f: lambda x, y: F.jvp(f, (x, y), (y, x)),
    "hessian": lambda f: F.hessian(f),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms(name: str, transform: str) -> None:
    x, y = real(3).detach(), real(3).detach()
    run = TRANSFORMS[transform]
    if name == "vjp" and transform in ("jvp", "hessian"):
        with pytest.raises((RuntimeError, NotImplementedError), match="jvp"):
            run(FUNCTIONS[name])(x, y)
        return
    expected = run(lambda x, y: pullback.sin(x) * y)(x, y)
    pullback.testing.assert_close(run(FUNCTIONS[name])(x, y), expected)


def test_arguments_residuals_and_results_nest() -> None:
    @custom_vjp
    def f(pair: Any, how: str = "plain", *, factor: float = 2.0) -> Any:
        return {"sum": pair["a"] + pair["b"]}, pair["a"] * factor

    f.defvjp(
        lambda pair, how, factor: (
            ({"sum": pair["a"] + pair["b"]}, pair["a"] * factor),
            {"how": how, "kept": [pair["a"], factor]},
        ),
        lambda res, g: ({"a": g[0]["sum"] + g[1] * res["kept"][1], "b": g[0]["sum"]}, None, None),
    )
    a, b = real(2), real(2)
    first, second = f({"a": a, "b": b}, factor=3.0)
    (first["sum"].sum() + 10 * second.sum()).backward()
    assert a.grad.tolist() == [31, 31]
    assert b.grad.tolist() == [1, 1]


def test_arguments_without_derivative() -> None:
    calls = []

    def applied(g: Any, x: Any, n: int) -> Any:
        for _ in range(n):
            x = g(x)
        return x

    f = custom_vjp(applied, nondiff_argnums=(0, 2))

    def bwd(g: Any, n: Any, res: Any, ct: Any) -> Any:
        calls.append((g, n))
        return (ct * 2**n,)

    f.defvjp(lambda g, x, n: (applied(g, x, n), None), bwd)
    x = real(2)
    double = lambda x: x * 2  # noqa: E731
    f(double, x, 3).sum().backward()
    assert x.grad.tolist() == [8, 8]
    assert calls == [(double, 3)]
    with pytest.raises(TypeError, match=r"argument 2 is one of nondiff_argnums, and requires grad"):
        f(double, x, real(1))

    @custom_jvp
    def powered(x: Any, n: int) -> Any:
        return x**n

    powered.defjvps(lambda t, out, x, n: t * n * x ** (n - 1), None)
    powered(x, 3).sum().backward()
    pullback.testing.assert_close(x.grad, 8 + 3 * x.detach() ** 2)
    held = custom_jvp(lambda n, x: x**n, nondiff_argnums=0)
    held.defjvp(lambda n, primals, tangents: (primals[0] ** n, tangents[0] * n * primals[0] ** (n - 1)))
    assert gradcheck(lambda x: held(3, x), (real(2),), check_forward_ad=True)


def test_the_function_itself_runs_where_no_gradient_is_wanted() -> None:
    runs = []
    f = custom_vjp(lambda x: (runs.append("fun"), x * 2)[1])
    f.defvjp(lambda x: (runs.append("fwd"), (x * 2, None))[1], lambda res, g: (g * 2,))
    f(pullback.ones(2))
    f(real(2))
    with pullback.no_grad():
        f(pullback.ones(2))
    assert runs == ["fun", "fwd", "fun"]


def test_a_saved_tensor_is_checked_and_freed() -> None:
    f = custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, (x,)), lambda res, g: (2 * g * res[0],))
    x = real(2)
    y = f(x).sum()
    with pullback.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    y = f(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def defined(fwd: Any, bwd: Any) -> Any:
    f = custom_vjp(lambda x, y: x * y)
    f.defvjp(fwd, bwd)
    return f


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no rule": (lambda: custom_vjp(scaled_sin.fun)(1, 2), AttributeError, r"No VJP defined.*\n.*scaled_sin\.defvjp"),
    "no rule of forward mode": (lambda: custom_jvp(scaled_sin.fun)(1, 2), AttributeError, r"No JVP.*\n.*\.defjvp"),
    "no function": (lambda: custom_vjp(3), TypeError, "expected a function, found int 3"),
    "a number that is none": (lambda: custom_vjp(scaled_sin.fun, 2), ValueError, "among 2 arguments, found .2,."),
    "any number of arguments": (lambda: custom_vjp(lambda *xs: xs[0]), TypeError, "a fixed number of arguments"),
    "too many arguments": (lambda: scaled_sin(1, 2, 3), TypeError, "too many positional arguments"),
    "no pair": (lambda: defined(lambda x, y: x * y, None)(real(2), real(2)), TypeError, "fwd must return a pair"),
    "no tuple": (
        lambda: defined(lambda x, y: (x * y, None), lambda res, g: g)(real(2), real(2)).sum().backward(),
        TypeError,
        "bwd must return a tuple",
    ),
    "too few gradients": (
        lambda: defined(lambda x, y: (x * y, None), lambda res, g: (g,))(real(2), real(2)).sum().backward(),
        RuntimeError,
        "expected 2, got 1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_rules_are_refused(name: str) -> None:
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=f"(?s){words}"):
        call()


def test_a_method_and_the_audit() -> None:
    class Layer:
        @custom_vjp
        def f(self, x: Any) -> Any:
            return x * 2

        f.defvjp(lambda self, x: (x * 2, None), lambda res, g: (None, g * 2))

    x = real(2)
    Layer().f(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert issubclass(scaled_sin.function, pullback.autograd.Function)
    for factor, right in ((1, True), (2, False)):
        sin = custom_vjp(lambda x: x.sin())
        sin.defvjp(lambda x: (x.sin(), (x,)), lambda residuals, g, k=factor: (k * g * residuals[0].cos(),))
        assert (not pullback.testing.audit(sin.function, real(3)).findings) is right

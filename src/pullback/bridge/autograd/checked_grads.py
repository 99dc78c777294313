"""autograd.test_util: derivatives against finite differences, in both modes and at any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from .passes import make_jvp, make_vjp
from .spaces import vspace
from .wrapping import get_name, unary_to_nary

TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> Any:
    """Whether two numbers differ by less than `TOL`, or by less than `RTOL` of their sum."""
    return abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL


def make_numerical_jvp(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """The derivative along a direction, by central differences."""
    space, out = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        ends = [f(space.add(x, space.scalar_mul(v, sign * EPS / 2))) for sign in (1.0, -1.0)]
        return out.scalar_mul(out.add(ends[0], out.scalar_mul(ends[1], -1.0)), 1.0 / EPS)

    return jvp


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """AssertionError if reverse mode disagrees with finite differences, along random directions."""
    vjp, y = make_vjp(f, x)
    x_space, y_space = vspace(x), vspace(y)
    x_v, y_v = x_space.randn(), y_space.randn()
    found = x_space.covector(vjp(y_space.covector(y_v)))
    assert vspace(found) == x_space, f"{get_name(f)}: the gradient is in {vspace(found)}, the argument in {x_space}"
    exact = x_space.inner_prod(x_v, found)
    numeric = y_space.inner_prod(y_v, make_numerical_jvp(f, x)(x_v))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}"
    )


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """AssertionError if forward mode disagrees with finite differences, along a random direction."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x: Any, y: Any) -> None:
    """AssertionError if two values are in different spaces, or differ along a random direction."""
    x_space, y_space = vspace(x), vspace(y)
    assert x_space == y_space, f"VSpace mismatch:\nx: {x_space}\ny: {y_space}"
    v = x_space.randn()
    assert scalar_close(x_space.inner_prod(x, v), x_space.inner_prod(y, v)), f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(f: Callable[[Any], Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """AssertionError if derivatives up to `order` disagree with finite differences.

    >>> import pullback.bridge.autograd.numpy as np
    >>> from pullback.bridge.autograd.test_util import check_grads
    >>> check_grads(np.sin, order=3)(np.array([0.5, 1.0]))
    """
    assert all(m in ("fwd", "rev") for m in modes), f"modes are 'fwd' and 'rev', found {modes}"
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:

            def pushed(x: Any, v: Any) -> Any:
                return make_jvp(f, x)(v)[1]

            pushed.__name__ = f"jvp_{get_name(f)}"
            check_grads(pushed, (0, 1), modes, order=order - 1)(x, vspace(x).randn())
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:

            def pulled(x: Any, v: Any) -> Any:
                return make_vjp(f, x)[0](v)

            pulled.__name__ = f"vjp_{get_name(f)}"
            check_grads(pulled, (0, 1), modes, order=order - 1)(x, vspace(f(x)).randn())


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """`check_grads` for all combinations of the values that are given for each argument."""

    def check(*choices: Any, **named: Any) -> None:
        pairs = [[(name, value) for value in values] for name, values in named.items()]
        for chosen in product(*choices):
            for chosen_named in product(*pairs):
                check_grads(fun, *args, **kwargs)(*chosen, **dict(chosen_named))

    return check

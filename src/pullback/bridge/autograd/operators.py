"""The differential operators: `grad`, `jacobian`, `hessian` and their like, each written with `make_vjp` or `make_jvp`.

An operator takes a function and the number of the argument to differentiate by (a tuple of numbers: a tuple of
gradients), and returns a function of the same arguments.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from . import passes
from .spaces import vspace
from .user_rules import defvjp_argnum, primitive
from .wrapping import unary_to_nary

make_vjp = unary_to_nary(passes.make_vjp)
make_jvp = unary_to_nary(passes.make_jvp)


def _one(name: str, ans: Any) -> Any:
    """The cotangent 1 of a result, which has one real element."""
    if type(ans) is np.float64:
        return 1.0
    space = vspace(ans)
    if space.size != 1:
        raise TypeError(
            f"{name} only applies to real scalar-output functions. Try jacobian, elementwise_grad or "
            f"holomorphic_grad.\n  Found: {space}."
        )
    return space.ones()


@unary_to_nary
def grad(fun: Callable[..., Any], x: Any) -> Any:
    """The gradient of a function with a real scalar result, of the type and structure of the argument.

    >>> import pullback.bridge.autograd.numpy as np
    >>> from pullback.bridge.autograd import grad
    >>> grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])

    Raises:
        TypeError: a result that is not one real number; an argument without a derivative, such as an int.
    """
    vjp, ans = passes.make_vjp(fun, x)
    return vjp(_one("Grad", ans))


@unary_to_nary
def elementwise_grad(fun: Callable[..., Any], x: Any) -> Any:
    """The sums of the columns of the Jacobian: its diagonal, if it is diagonal. The result of `fun` is real."""
    vjp, ans = passes.make_vjp(fun, x)
    if vspace(ans).iscomplex:
        raise TypeError("Elementwise_grad only applies to real-output functions.")
    return vjp(vspace(ans).ones())


@unary_to_nary
def deriv(fun: Callable[..., Any], x: Any) -> Any:
    """The derivative in the direction of ones, in forward mode."""
    return passes.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Callable[..., Any], x: Any) -> Any:
    """The Jacobian of a function of an array, with the axes of the result first, then those of the argument."""
    vjp, ans = passes.make_vjp(fun, x)
    space = vspace(ans)
    rows = [vjp(basis) for basis in space.standard_basis()]
    return np.reshape(np.stack(rows), space.shape + vspace(x).shape)


@unary_to_nary
def holomorphic_grad(fun: Callable[..., Any], x: Any) -> Any:
    """The derivative of a holomorphic function with one result."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return grad(lambda x: np.real(fun(x)))(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Any:
    """`grad` by the argument of this name."""
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


@unary_to_nary
def hessian(fun: Callable[..., Any], x: Any) -> Any:
    """The Jacobian of the Jacobian: the axes of the result, then those of the argument twice."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Callable[..., Any], x: Any) -> Any:
    """The function from ``v`` to the Hessian times ``v`` at a point, and the gradient there."""
    return passes.make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """A function of the arguments and a tensor: the Hessian contracted with the tensor."""
    fun_grad = grad(fun, argnum)

    def vector_dot_grad(*args: Any, **kwargs: Any) -> Any:
        *given, vector = args
        return np.tensordot(fun_grad(*given, **kwargs), vector, np.ndim(vector))

    return grad(vector_dot_grad, argnum)


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """A function of the arguments and a tensor: the tensor contracted with the Jacobian."""

    def vector_dot_fun(*args: Any, **kwargs: Any) -> Any:
        *given, vector = args
        return np.tensordot(vector, fun(*given, **kwargs), axes=np.ndim(vector))

    return jacobian(vector_dot_fun, argnum)


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Callable[..., Any], x: Any) -> Any:
    """The function from ``v`` to ``J v``, by transposing the vjp."""
    vjp, y = passes.make_vjp(fun, x)
    return passes.make_vjp(vjp, vspace(y).zeros())[0]


def _half_square(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f: Callable[..., Any], g: Callable[..., Any] = _half_square, f_argnum: int = 0) -> Any:
    """The function from ``v`` to the generalised Gauss-Newton matrix of ``g(f(x))`` times ``v``."""

    @unary_to_nary
    def of_one(f: Callable[..., Any], x: Any) -> Any:
        f_vjp, f_x = passes.make_vjp(f, x)
        g_hvp, grad_g_x = passes.make_vjp(grad(g), f_x)
        f_jvp, _ = passes.make_vjp(f_vjp, vspace(grad_g_x).zeros())
        return lambda v: f_vjp(g_hvp(f_jvp(v)))

    return of_one(f, f_argnum)


@unary_to_nary
def value_and_grad(fun: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """The value of a function with a real scalar result, and its gradient."""
    vjp, ans = passes.make_vjp(fun, x)
    return ans, vjp(_one("value_and_grad", ans))


@unary_to_nary
def grad_and_aux(fun: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """The gradient of the first of two results, and the second as it is."""
    vjp, (ans, aux) = passes.make_vjp(lambda x: tuple(fun(x)), x)
    return vjp((vspace(ans).ones(), vspace(aux).zeros())), aux


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the arguments of `fun`: the gradients by all of them, in an OrderedDict by their names."""
    signature = inspect.signature(fun)

    def gradfun(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(arguments: dict[str, Any]) -> Any:
            return fun(*(given := inspect.BoundArguments(signature, OrderedDict(arguments))).args, **given.kwargs)

        found = grad(of_dict)(dict(bound.arguments))
        return OrderedDict((name, found[name]) for name in bound.arguments)

    return gradfun


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function without what it keeps for the backward pass, which computes it again: less memory, more time."""
    wrapped = primitive(fun)
    defvjp_argnum(wrapped, lambda argnum, ans, args, kwargs: make_vjp(fun, argnum)(*args, **kwargs)[0])
    return wrapped

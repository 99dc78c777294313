"""`custom_vjp` and `custom_jvp`: a node written as functions under a decorator, as in JAX, beside the class `Function`.

Each makes a `Function` of what it is given: one node, the same engine and the same checks. There are two classes behind
a function: one for plain calls, and one whose forward and context are apart, for calls within transforms.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.function import Function
from ..tensor.modes import LEVELS
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Lifted, Tensor
from .reverse import vjp

_TENSOR = object()  # instead of a tensor among kept values


def _signature(where: str, fun: Any) -> inspect.Signature:
    """The arguments of a function. TypeError for one that does not say what it takes."""
    try:
        return inspect.signature(fun)
    except ValueError as error:
        raise TypeError(
            errors.message(
                f"{where}()",
                expected="a function whose arguments are known",
                found=errors.describe(fun),
                do="wrap it: lambda x: f(x)",
            )
        ) from error


def _numbers(where: str, given: Any, count: int) -> frozenset[int]:
    """The numbers of arguments, counted from 0."""
    try:
        numbers = [operator.index(n) for n in (given if isinstance(given, (list, tuple, set, frozenset)) else (given,))]
    except TypeError:
        raise TypeError(
            errors.message(
                f"{where}()",
                expected="nondiff_argnums to be an integer, or a tuple of integers",
                found=errors.describe(given),
            )
        ) from None
    if not all(-count <= n < count for n in numbers):
        raise ValueError(
            errors.message(f"{where}()", expected=f"nondiff_argnums among {count} arguments", found=f"{tuple(numbers)}")
        )
    return frozenset(n % count for n in numbers)


class _Ruled(Function, abstract=True):
    """A Function made of rules. ctx.kept: what its `_keep` kept beside tensors; None: a tuple of tensors was all."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        node: Any = cls.__dict__.get("_node_class")  # none in a class that gets its attributes later
        if node is not None:
            node.kept = None


class _Custom:
    """A function with rules of its own. function: the `Function` behind it, once the rules are given."""

    function: Any = None
    transformed: Any = None
    _apply: Any = None  # that of the function
    _plain = -1  # the number of arguments of a call that needs no more than `_apply`

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        where = type(self).__name__
        if not callable(fun):
            raise TypeError(errors.message(f"{where}()", expected="a function", found=errors.describe(fun)))
        self._signature = _signature(where, fun)
        kinds = [(p.name, p.kind) for p in self._signature.parameters.values()]
        self._named = [name for name, kind in kinds if kind is inspect.Parameter.KEYWORD_ONLY]
        if any(kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for _, kind in kinds):
            raise TypeError(
                errors.message(
                    f"{where}()",
                    expected="a function with a fixed number of arguments",
                    found=f"{fun.__name__}{self._signature}",
                    do="take them in a list or a dict",
                )
            )
        self._count = count = len(kinds)
        self._given = fun
        self.fun: Callable[..., Any] = self._with_names if self._named else fun
        self.nondiff = _numbers(where, nondiff_argnums, count)
        functools.update_wrapper(self, fun)

    def _with_names(self, *args: Any) -> Any:
        """The function, with the values of its keywords last."""
        first = self._count - len(self._named)
        return self._given(*args[:first], **dict(zip(self._named, args[first:], strict=True)))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == self._plain and not kwargs and not LEVELS.n:
            return self._apply(*args)
        return self._called(args, kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call whose arguments are looked at first."""
        if self.function is None:
            rule = type(self).__name__.removeprefix("custom_")
            raise AttributeError(
                f"No {rule.upper()} defined for the function {self._given.__name__} with {type(self).__name__}.\n"
                f"  What to do: call {self._given.__name__}.def{rule}(...) before it."
            )
        if kwargs or len(args) != self._count:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = (*bound.args, *bound.kwargs.values())
        for n in self.nondiff:
            if any(isinstance(t, Tensor) and t.requires_grad for t in leaves(args[n])):
                raise TypeError(
                    f"{self._given.__name__}: argument {n} is one of nondiff_argnums, and requires grad.\n"
                    "  What to do: leave it out of nondiff_argnums, or give its detach()."
                )
        within = LEVELS.n and any(isinstance(t, Lifted) for t in leaves(args))
        return (self.transformed if within else self.function).apply(*args)

    def _divided(self, values: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """The arguments of nondiff_argnums, and the others."""
        if not self.nondiff:
            return [], tuple(values)
        held = [v for n, v in enumerate(values) if n in self.nondiff]
        return held, tuple(v for n, v in enumerate(values) if n not in self.nondiff)

    def _made(self, **methods: Any) -> Any:
        """A `Function` with these methods, named after the function."""
        names = {name: staticmethod(method) if callable(method) else method for name, method in methods.items()}
        return type(self._given.__name__, (_Ruled,), {"__module__": self._given.__module__, **names})

    def _define(self, alone: dict[str, Any], apart: dict[str, Any], **methods: Any) -> None:
        """Make the two Functions, of the methods of each and of those that they share."""
        self.function = self._made(**alone, **methods)
        self.transformed = self._made(**apart, **methods, generate_vmap_rule=True)
        self._apply, self._plain = self.function.apply, -1 if self.nondiff else self._count


class custom_vjp(_Custom):  # noqa: N801 - JAX's name
    """A decorator for a function with a vjp of its own.

    Args:
        fun: takes and returns Tensors, which may be nested. It is called where no argument requires grad.
        nondiff_argnums: the numbers of arguments that are no Tensors, such as functions; `bwd` gets them first.

    ``f.defvjp(fwd, bwd)`` gives the rule: ``fwd`` takes the arguments of the function and returns its result and
    residuals of any structure; ``bwd(residuals, g)`` returns a tuple with a gradient, or None, for each argument.
    Tensors among the residuals are kept as `ctx.save_for_backward` keeps them. ``f.function`` is the `Function` behind
    it.

    Raises:
        AttributeError: the function is called before `defvjp`.
        TypeError: a rule that does not return what is said above.

    >>> import pullback
    >>> @pullback.custom_vjp
    ... def clipped(x, limit):
    ...     return x.clone()
    >>> clipped.defvjp(lambda x, limit: (x.clone(), limit), lambda limit, g: (g.clamp(-limit, limit), None))
    >>> x = pullback.ones(2, requires_grad=True)
    >>> (clipped(x, 0.5) * 3).sum().backward()
    >>> x.grad
    tensor([0.5000, 0.5000])

    See https://docs.jax.dev/en/latest/_autosummary/jax.custom_vjp.html.
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, nondiff_argnums)

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Give the rule: forward with residuals, and backward."""
        fun, nondiff, name = self.fun, self.nondiff, self._given.__name__

        def forward(ctx: Any, *args: Any) -> Any:
            if not any(ctx._edges):
                return fun(*args)
            pair = fwd(*args)
            if type(pair) is not tuple or len(pair) != 2:
                raise _wrong(name, "fwd", "a pair: the result, and residuals", pair)
            out, residuals = pair
            if type(out) is Tensor and type(residuals) is tuple and not nondiff:
                try:  # the most frequent results and residuals, shortly
                    ctx.save_for_backward(*residuals)
                    return out
                except TypeError:  # not all of them are Tensors
                    pass
            ctx.kept = type(out) is tuple, _keep(ctx, residuals), self._divided(args)[0]
            return out

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            forward(_Always(ctx), *inputs)

        def backward(ctx: Any, *gs: Any) -> Any:
            kept = ctx.kept
            if kept is None:
                found = bwd(ctx.saved_tensors, gs[0])
            else:
                found = bwd(*kept[2], _kept(ctx), gs if kept[0] else gs[0])
            if type(found) is not tuple:
                raise _wrong(name, "bwd", "a tuple with a gradient, or None, for each argument", found)
            if not nondiff:
                return found
            each = iter(found)
            count = len(found) + len(nondiff)
            return tuple(None if n in nondiff else next(each) for n in range(count))

        self._define({"forward": forward}, {"forward": fun, "setup_context": setup_context}, backward=backward)


class _Always:
    """A context for a forward that is wanted with its residuals."""

    _edges = (True,)

    def __init__(self, ctx: Any) -> None:
        vars(self)["_ctx"] = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


class custom_jvp(_Custom):  # noqa: N801 - JAX's name
    """A decorator for a function with a jvp of its own; in reverse mode the rule is transposed.

    Args:
        fun: takes and returns Tensors, which may be nested.
        nondiff_argnums: the numbers of arguments that are no Tensors; the rule gets them first.

    ``f.defjvp(rule)`` gives the rule: ``rule(primals, tangents)``, both tuples, returns the result and its tangent. It
    is written in operations on tensors, and linear in the tangents. ``f.defjvps(a, b)`` gives a rule for each argument
    instead, ``a(tangent, result, *primals)``, or None. ``f.function`` is the `Function` behind it.

    Raises:
        AttributeError: the function is called before `defjvp`.
        TypeError: a rule that does not return a pair.

    >>> import pullback
    >>> @pullback.custom_jvp
    ... def softplus(x):
    ...     return pullback.log1p(pullback.exp(x))
    >>> softplus.defjvps(lambda t, result, x: t * pullback.sigmoid(x))
    >>> x = pullback.tensor(0.0, requires_grad=True)
    >>> softplus(x).backward()
    >>> x.grad
    tensor(0.5000)

    See https://docs.jax.dev/en/latest/_autosummary/jax.custom_jvp.html.
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, nondiff_argnums)

    def defjvp(self, rule: Callable[..., Any]) -> None:
        """Give the rule for all arguments."""

        def pushed(held: Sequence[Any], primals: Any, tangents: Any) -> Any:
            pair = rule(*held, primals, tangents)
            if type(pair) is not tuple or len(pair) != 2:
                raise _wrong(self._given.__name__, "the rule", "a pair: the result, and its tangent", pair)
            return pair[1]

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.kept = type(output) is tuple, _keep(ctx, inputs)

        def forward(ctx: Any, *args: Any) -> Any:
            out = self.fun(*args)
            setup_context(ctx, args, out)
            return out

        def jvp(ctx: Any, *tangents: Any) -> Any:
            held, primals = self._divided(_kept(ctx))
            given = self._divided(tangents)[1]
            return pushed(held, primals, tuple(map(_tangent, primals, given)))

        def backward(ctx: Any, *gs: Any) -> Any:
            held, primals = self._divided(_kept(ctx))
            flat = list(leaves(primals))
            varied = [isinstance(p, Tensor) and (p.dtype.is_floating_point or p.dtype.is_complex) for p in flat]

            def linear(*chosen: Any) -> Any:
                parts = iter(chosen)
                filled = [next(parts) if v else _tangent(p, None) for p, v in zip(flat, varied, strict=True)]
                return pushed(held, primals, rebuild(primals, iter(filled)))

            _, pull = vjp(linear, *[np.zeros_like(p.detach()) for p, v in zip(flat, varied, strict=True) if v])
            found = iter(pull(gs if ctx.kept[0] else gs[0]))
            nested = iter(rebuild(primals, iter([next(found) if v else None for v in varied])))
            count = len(primals) + len(self.nondiff)
            return tuple(None if n in self.nondiff else next(nested) for n in range(count))

        apart = {"forward": self.fun, "setup_context": setup_context}
        self._define({"forward": forward}, apart, backward=backward, jvp=jvp)

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Give a rule for each argument: of the tangent, the result and the arguments."""

        def rule(*given: Any) -> Any:
            *held, primals, tangents = given
            out = self.fun(*self._joined(held, primals))
            parts = [
                r(t, out, *primals) for r, t in zip(rules, tangents, strict=True) if r is not None and t is not None
            ]
            return out, sum(parts[1:], parts[0]) if parts else np.zeros_like(out)

        self.defjvp(rule)

    def _joined(self, held: Sequence[Any], primals: Sequence[Any]) -> list[Any]:
        """All arguments, in their order."""
        first, others = iter(held), iter(primals)
        return [next(first if n in self.nondiff else others) for n in range(len(held) + len(primals))]


def _tangent(primal: Any, tangent: Any) -> Any:
    """The tangent of an argument: zeros for a Tensor without one, None for what has none."""
    if tangent is not None:
        return tangent
    if isinstance(primal, (dict, list, tuple)):
        return rebuild(primal, iter([_tangent(p, None) for p in leaves(primal)]))
    return np.zeros_like(primal.detach()) if isinstance(primal, Tensor) else None


def _keep(ctx: Any, values: Any) -> Callable[[Sequence[Any]], Any] | None:
    """Keep nested values for backward, the Tensors among them as `save_for_backward` does.

    Returns the function from the saved Tensors to the values; None for a tuple of Tensors, which needs none.
    """
    if type(values) is tuple:
        try:
            ctx.save_for_backward(*values)
            return None
        except TypeError:  # not all of them are Tensors
            pass
    flat = list(leaves(values))
    ctx.save_for_backward(*[v for v in flat if isinstance(v, Tensor)])
    others = [_TENSOR if isinstance(v, Tensor) else v for v in flat]
    tree = values
    if any(v is _TENSOR for v in others):  # the tree holds none of the Tensors
        tree = rebuild(values, iter([None] * len(flat)))

    def nested(tensors: Sequence[Any]) -> Any:
        each = iter(tensors)
        return rebuild(tree, iter([next(each) if v is _TENSOR else v for v in others]))

    return nested


def _kept(ctx: Any) -> Any:
    """The values that `_keep` kept."""
    nested = ctx.kept[1]
    return ctx.saved_tensors if nested is None else nested(ctx.saved_tensors)


def _wrong(name: str, rule: str, expected: str, found: Any) -> TypeError:
    return TypeError(errors.message(f"{name}: {rule} must return {expected}", found=errors.describe(found)))

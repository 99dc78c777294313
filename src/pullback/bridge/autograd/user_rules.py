"""`primitive` and `defvjp`: functions with rules of the user's own, each call a node by `autograd.Function`.

The function gets plain arrays and numbers. Its rules are called in the backward pass, with boxes where that pass is
itself differentiated and plain values where it is not. Arguments and results may nest; gradients do so likewise.

`trace`: a function whose operations make nodes of a class of the user's own, on payloads. It sees NumPy's functions as
this package calls them, also those of derivatives, which may be others than autograd's.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from ... import errors
from ...autograd.function import Function
from ...interpreters.payload import Payload, each
from ...tensor.modes import thread
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Lifted, Tensor, wrap
from .box import RAW, RULES, ArrayBox, boxed, getval, isbox
from .passes import INDEPENDENT, conj, fitted, tensor_of
from .spaces import boxed_vector, is_vector, received, send, token
from .wrapping import subval, wraps

primitive_vjps: dict[Any, Callable[..., Any]] = {}
"""For each primitive, ``rule(argnums, ans, args, kwargs)``: the function from ``g`` to these arguments' gradients."""

primitive_jvps: dict[Any, Callable[..., Any]] = {}
"""For each primitive, ``rule(argnums, gs, ans, args, kwargs)``: the tangent of the result."""

trace_primitives_map: dict[Any, Callable[..., Any]] = {}
"""The primitive made of each function."""


# Calls ----------------------------------------------------------------------------------------------------------------


class _Call:
    """One call of a primitive: its arguments, with the Tensors of the boxes among them taken out.

    argnums: the numbers of arguments with boxes. counts: the number of leaves in each of these.
    """

    def __init__(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Sequence[int]) -> None:
        self.fun, self.args, self.kwargs, self.argnums = fun, args, kwargs, argnums
        self.flat = [list(leaves(args[n])) for n in argnums]
        self.tensors = [leaf.tensor for found in self.flat for leaf in found if isbox(leaf)]
        self.out: Any = None

    def arguments(self, tensors: Iterable[Tensor], of: Callable[[Tensor], Any]) -> tuple[Any, ...]:
        """The arguments, with `of` the Tensors instead of the boxes."""
        each, made = iter(tensors), list(self.args)
        for n, found in zip(self.argnums, self.flat, strict=True):
            made[n] = rebuild(self.args[n], (_given(v, next(each), of) if isbox(v) else v for v in found))
        return tuple(made)

    def value(self, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
        """The results for plain values, as Tensors."""
        self.out = self.fun.fun(*self.arguments(tensors, lambda t: getval(ArrayBox(t))), **self.kwargs)
        return tuple(token() if is_vector(leaf) else wrap(np.asarray(leaf)) for leaf in leaves(self.out))

    def result(self, outs: Iterable[Any], of: Callable[[Tensor], Any]) -> Any:
        """The result, with `of` the Tensors instead of its leaves."""
        flat = zip(leaves(self.out), outs, strict=True)
        return rebuild(self.out, (_result(v, t, of) if is_vector(v) else of(t) for v, t in flat))

    def cotangent(self, ctx: Any, gs: Sequence[Any], outs: Sequence[Tensor]) -> Any:
        """The cotangents of the outputs, in the structure of the result."""
        flat = enumerate(zip(leaves(self.out), gs, outs, strict=True))
        return rebuild(self.out, (_received(ctx, i, v, g, o) for i, (v, g, o) in flat))

    def sent(self, gradients: Iterable[Any], tensors: Sequence[Tensor]) -> list[Tensor | None]:
        """The gradients of the arguments, as the rules return them, for each Tensor."""
        each, sent = iter(tensors), []
        for found, gradient in zip(self.flat, gradients, strict=True):
            given = [None] * len(found) if gradient is None else list(leaves(gradient))
            for leaf, g in zip(found, given, strict=True):
                if isbox(leaf):
                    t = next(each)
                    vector = type(leaf) is not ArrayBox
                    sent.append(None if g is None else send(leaf.tensor, g) if vector else conj(_cotangent(g, t)))
        return sent


def _cotangent(g: Any, t: Tensor) -> Tensor:
    """A gradient that a rule returned, as a Tensor of the dtype of its argument."""
    found = tensor_of(g)
    if found._data.dtype == t._data.dtype:
        return found
    return np.real(found) if found._data.dtype.kind == "c" and t._data.dtype.kind == "f" else found.to(t.dtype)


def _given(leaf: Any, t: Tensor, of: Callable[[Tensor], Any]) -> Any:
    """An argument's leaf: `of` the Tensor of an array; a vector, in its box where what is done with it is recorded."""
    return of(t) if type(leaf) is ArrayBox else leaf if thread.modes.grad_enabled else getval(leaf)


def _result(vector: Any, t: Tensor, of: Callable[[Tensor], Any]) -> Any:
    return boxed_vector(vector, t) if of is boxed and t._requires_grad else vector


def _received(ctx: Any, i: int, value: Any, g: Any, out: Tensor) -> Any:
    if is_vector(value):
        return received(ctx, i, value)
    zeros: Any = np.zeros_like
    return _seen(conj(zeros(out.detach()) if g is None else g))


def _seen(t: Tensor) -> Any:
    """A saved value as rules get it: a box if what they do with it is recorded, or is followed by a forward pass."""
    return boxed(t) if isinstance(t, Lifted) or thread.modes.grad_enabled else getval(ArrayBox(t))


class Primitive(Function):
    """The node of a call of a primitive."""

    @staticmethod
    def forward(call: Any, *tensors: Any) -> Any:
        outs = call.value(tensors)
        return outs[0] if len(outs) == 1 else outs

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call = inputs[0]
        outs = output if isinstance(output, tuple) else (output,)
        ctx.save_for_backward(*inputs[1:], *outs)
        ctx.save_for_forward(*inputs[1:], *outs)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        call, saved = ctx.call, ctx.saved_tensors
        tensors, outs = saved[: len(call.tensors)], saved[len(call.tensors) :]
        rule = primitive_vjps.get(call.fun)
        if rule is None:
            raise _undefined("VJP", call)
        values = call.arguments(tensors, _seen)
        vjp = rule(call.argnums, call.result(outs, _seen), values, call.kwargs)
        found = vjp(call.cotangent(ctx, gs, outs))
        return None, *call.sent(found, tensors)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        call, saved = ctx.call, ctx.saved_tensors
        tensors, outs = saved[: len(call.tensors)], saved[len(call.tensors) :]
        rule = primitive_jvps.get(call.fun)
        if rule is None:
            raise _undefined("JVP", call)
        each = iter([np.zeros_like(p) if t is None else t for t, p in zip(tangents[1:], tensors, strict=True)])
        moved = call.arguments(each, boxed)
        gs = [_zeros_beside(moved[n], call.args[n]) for n in call.argnums]
        ans, values = call.result(outs, boxed), call.arguments(tensors, boxed)
        flat = leaves(rule(call.argnums, gs, ans, values, call.kwargs))
        found = tuple(fitted(g, o) for g, o in zip(flat, outs, strict=True))
        return found[0] if len(found) == 1 else found


def _zeros_beside(tangent: Any, given: Any) -> Any:
    """The tangent of an argument that nests: zeros where it holds plain values."""
    flat = zip(leaves(tangent), leaves(given), strict=True)
    return rebuild(given, (t if type(v) is ArrayBox else np.zeros_like(v) for t, v in flat))


def _undefined(kind: str, call: _Call) -> NotImplementedError:
    name, rule = getattr(call.fun, "__name__", call.fun), f"def{kind.lower()}"
    said = f"{kind} of {name} wrt argnums {tuple(call.argnums)} not defined"
    return NotImplementedError(errors.message(said, do=f"give it by {rule}({name}, ...)"))


def _has_box(value: Any) -> bool:
    return isbox(value) or (isinstance(value, (list, tuple, dict)) and any(map(_has_box, _inside(value))))


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes on plain arrays, whose derivative is given by `defvjp` and `defjvp`.

    >>> import pullback.bridge.autograd.numpy as np
    >>> from pullback.bridge.autograd import grad
    >>> from pullback.bridge.autograd.extend import primitive, defvjp
    >>> @primitive
    ... def square(x):
    ...     return x * x
    >>> defvjp(square, lambda ans, x: lambda g: g * 2 * x)
    >>> float(grad(square)(3.0)), float(grad(grad(square))(3.0))
    (6.0, 2.0)

    Raises:
        NotImplementedError: the derivative is asked for by an argument without a rule.
    """

    @wraps(f_raw)
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        argnums = [n for n, a in enumerate(args) if _has_box(a)]
        if kwargs and any(map(_has_box, kwargs.values())):
            said = f"{f_wrapped.__name__}(): a traced value was given by keyword, where it has no rule"
            raise TypeError(errors.message(said, do="give it by position"))
        if not argnums:
            return f_raw(*args, **kwargs)
        call = _Call(f_wrapped, args, kwargs, argnums)
        if f_wrapped not in primitive_vjps and f_wrapped not in primitive_jvps:
            raise _undefined("VJP", call)
        outs = Primitive.apply(call, *call.tensors)
        return call.result(outs if isinstance(outs, tuple) else (outs,), boxed)

    f_wrapped.fun = f_raw
    f_wrapped._is_autograd_primitive = True
    with contextlib.suppress(TypeError):  # a function that cannot be hashed is in no map
        trace_primitives_map[f_raw] = f_wrapped
    return f_wrapped


def notrace_primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """A function without a derivative: it gets plain values instead of boxes."""

    @wraps(f_raw)
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    f_wrapped._is_primitive = True
    return f_wrapped


def register_notrace(trace_type: Any, primitive_fun: Any) -> None:
    """Say that a primitive has no derivative: its rules give zeros."""
    defvjp_argnums(primitive_fun, lambda argnums, ans, args, kwargs: lambda g: [None] * len(argnums))


# Rules ----------------------------------------------------------------------------------------------------------------


def _of(fun: Any) -> Any:
    """The primitive to enter rules for; a function of NumPy or SciPy becomes one, called on boxes from then on."""
    if getattr(fun, "_is_autograd_primitive", False) or not callable(fun):
        return fun
    fun = RAW.get(fun, fun)
    if fun not in RULES:
        RULES[fun] = primitive(fun)
    return RULES[fun]


def defvjp_argnums(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Give a rule ``vjpmaker(argnums, ans, args, kwargs)`` that returns a function from ``g`` to all gradients."""
    primitive_vjps[_of(fun)] = vjpmaker


def defvjp_argnum(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Give a rule ``vjpmaker(argnum, ans, args, kwargs)`` for any argument."""

    def all_of(argnums: Sequence[int], *args: Any) -> Callable[[Any], Iterable[Any]]:
        vjps = [vjpmaker(argnum, *args) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, all_of)


def defvjp(fun: Any, *vjpmakers: Any, argnums: Iterable[int] | None = None) -> None:
    """Give a rule ``vjpmaker(ans, *args, **kwargs)`` for each argument, or for those of `argnums`; None: zero."""
    makers = dict(zip(count() if argnums is None else argnums, vjpmakers, strict=False))
    for maker in makers.values():
        _check_rule("VJP", maker, fun)

    def all_of(wanted: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Iterable[Any]]:
        missing = [n for n in wanted if n not in makers]
        if missing:
            raise NotImplementedError(f"VJP of {fun.__name__} wrt argnum {missing[0]} not defined")
        vjps = [makers[n] and makers[n](ans, *args, **kwargs) for n in wanted]
        return lambda g: [vjp and vjp(g) for vjp in vjps]

    defvjp_argnums(fun, all_of)


def defjvp_argnums(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Give a rule ``jvpmaker(argnums, gs, ans, args, kwargs)`` for the tangent of the result."""
    primitive_jvps[_of(fun)] = jvpmaker


def defjvp_argnum(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Give a rule ``jvpmaker(argnum, g, ans, args, kwargs)``: the part that an argument has in the tangent."""

    def total(argnums: Sequence[int], gs: Sequence[Any], ans: Any, args: Any, kwargs: Any) -> Any:
        return sum_outgrads(jvpmaker(n, g, ans, args, kwargs) for n, g in zip(argnums, gs, strict=True))

    defjvp_argnums(fun, total)


def defjvp(fun: Any, *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """Give a rule ``jvpfun(g, ans, *args, **kwargs)`` for each argument; None: zero, "same": the function is linear."""
    rules = dict(zip(count() if argnums is None else argnums, jvpfuns, strict=False))
    for rule in rules.values():
        if rule != "same":
            _check_rule("JVP", rule, fun)

    def part(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        if argnum not in rules:
            raise NotImplementedError(f"JVP of {fun.__name__} wrt argnum {argnum} not defined")
        rule = rules[argnum]
        if rule is None:
            return rebuild(ans, (np.zeros_like(getval(leaf)) for leaf in leaves(ans)))
        return fun(*subval(args, argnum, g), **kwargs) if rule == "same" else rule(g, ans, *args, **kwargs)

    defjvp_argnum(fun, part)


def def_linear(fun: Any) -> None:
    """Say that a function is linear in each argument."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(*subval(args, argnum, g), **kwargs))


def _check_rule(kind: str, rule: Any, fun: Any) -> None:
    if rule is not None and not callable(rule):
        raise TypeError(f"Bad {kind} '{rule}' for '{getattr(fun, '__name__', fun)}'")


def add_outgrads(a: Any, b: Any) -> Any:
    """The sum of two gradients, which may nest."""
    each = iter([x + y for x, y in zip(leaves(a), leaves(b), strict=True)])
    return rebuild(a, each)


def sum_outgrads(gs: Iterable[Any]) -> Any:
    """The sum of gradients, which may nest."""
    return functools.reduce(add_outgrads, gs)


# Nodes of the user's own ----------------------------------------------------------------------------------------------


class Node:
    """The base class: a subclass has both methods. A root is made by `new_root`, the others by the functions called."""

    __slots__ = ()

    def __init__(
        self, value: Any, fun: Any, args: Any, kwargs: Any, parent_argnums: tuple[int, ...], parents: tuple[Any, ...]
    ) -> None:
        """The node of ``value = fun(*args, **kwargs)``; the arguments at `parent_argnums` are those of `parents`."""
        raise NotImplementedError(f"{type(self).__name__} has no __init__(value, fun, args, kwargs, argnums, parents)")

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """Set up the node of the argument."""
        raise NotImplementedError(f"{type(self).__name__} has no initialize_root()")

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> Any:
        """The node of the argument of a function."""
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root


class _Noted(Payload):
    """A value and its node."""

    def __init__(self, value: Any, node: Any) -> None:
        self.value, self.node = np.asarray(value), node
        self.shape, self.dtype = self.value.shape, self.value.dtype

    def numpy(self) -> Any:
        return self.value

    def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
        given, named = each(_value, args), each(_value, kwargs)
        found = function(*given, **named)
        if not isinstance(found, (np.ndarray, np.generic)) or found.dtype.kind not in "fc":
            return found  # a constant, which has no node
        nodes: list[tuple[int, Any]] = []
        for i, arg in enumerate(args):
            each(lambda part, i=i: nodes.append((i, part.node)) if isinstance(part, _Noted) else None, (arg,))
        return _Noted(found, type(self.node)(np.asarray(found)[()], function, given, named, *zip(*nodes, strict=True)))


def _value(part: Any) -> Any:
    return part.value if isinstance(part, _Noted) else part


def trace(start_node: Any, fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """The value of ``fun(x)`` and its node, where each function that is called makes a node of the root's class.

    start_node: the node of `x`, a number or an array. The node is None, with a warning, if `fun` does not use `x`.

    >>> import pullback.bridge.autograd.numpy as np
    >>> from pullback.bridge.autograd.tracer import Node, trace
    >>> class Named(Node):
    ...     def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
    ...         self.text = f"{fun.__name__}({', '.join(parent.text for parent in parents)})"
    ...     def initialize_root(self):
    ...         self.text = "x"
    >>> trace(Named.new_root(), lambda x: np.sin(x) * x, 0.0)[1].text
    'multiply(sin(x), x)'
    """
    found = fun(ArrayBox(wrap(_Noted(x, start_node))))
    payload = found.tensor._data if isinstance(found, ArrayBox) else None
    if isinstance(payload, _Noted):
        return payload.value[()], payload.node
    warnings.warn(INDEPENDENT, stacklevel=2)
    return found, None

"""The table of operations: what an entry is, and how a call through it becomes a node.

An entry is one of six kinds (`elementwise`, `linear`, `bilinear`, `special`, `composite`, `constant`), each a
decorator (elementwise: a
function) that takes the derivative rules and the forward computation, and puts the operation where people look for
it: a function of
`pullback`, a method of Tensor, and the NumPy functions whose rule it is.

A **forward** runs on payloads. It has torch's name and torch's arguments and calls NumPy functions.

A **rule** is named after the argument it differentiates, and says by the names of its own parameters what it needs:
the cotangent ``g``, any argument of the forward, the result ``out``, or ``<argument>_shape``. Only what the wanted
rules name is saved. It returns the gradient in any shape that broadcasts to, or was broadcast from, the argument's:
the engine makes it fit. It calls NumPy functions, so it works on raw payloads in an ordinary backward pass and on
Tensors in a recorded one.

An *elementwise* rule is linear in ``g`` and acts on each element alone, so it is its own transpose: with a tangent in
the place of ``g`` it is the forward-mode rule as well. For complex numbers the reverse rule of an elementwise or
bilinear operation is the same expression on the conjugates of what was saved (PyTorch's convention: the gradient is
the conjugate Wirtinger derivative); that is done here, not in the rule.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .. import _dtypes, errors
from .._tensor import NUMPY, Tensor
from .calls import apply, binary, general, join, operand, unary
from .nodes import ComplexNode, ManyNode, OpNode

Rule = Callable[..., Any]

TABLE: dict[str, Op] = {}
"""Every operation, by its name."""

KINDS = ("elementwise", "linear", "bilinear", "special", "composite", "constant")
_ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input"}


class Plan:
    """For one set of wanted gradients: what to save, and which rule gets which of it."""

    __slots__ = ("calls", "direct", "from_operands", "pick", "wanted", "with_out", "with_shapes")

    def __init__(self, op: Op, mask: int) -> None:
        self.wanted = tuple(i for i in range(len(op.params)) if mask >> i & 1)
        rules = [op.rules[op.params[i]] for i in self.wanted]
        names = list(dict.fromkeys(n for rule in rules for n in _needs(rule)))
        if len(rules) > 1:
            names.sort(key=lambda n: op.params.index(n) if n in op.params else len(op.params))
        shaped = tuple(i for i, p in enumerate(op.params) if f"{p}_shape" in names)
        order = [*op.params, "out", *(f"{op.params[i]}_shape" for i in shaped)]
        self.with_out = "out" in names
        self.with_shapes = shaped
        self.pick = _picker([order.index(n) for n in names])
        self.calls = tuple((rule, _picker([names.index(n) for n in _needs(rule)])) for rule in rules)
        # where there is one rule and it needs one value: that rule
        self.direct = rules[0] if len(rules) == len(names) == 1 else None
        # for operations of two arguments: 1, 2 or 3 if exactly the first, the second or both are saved, 0 for none,
        # -1 for more
        places = [order.index(n) for n in names]
        self.from_operands = {(): 0, (0,): 1, (1,): 2, (0, 1): 3}.get(tuple(places), -1) if len(op.params) == 2 else -1


def _picker(indices: list[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A fast function from a tuple to the tuple of some of its elements."""
    if not indices:
        return lambda values: ()
    if len(indices) == 1:
        return itemgetter(slice(indices[0], indices[0] + 1))
    return itemgetter(*indices)


def _needs(rule: Rule) -> tuple[str, ...]:
    """What a rule needs besides the cotangent: the names of its parameters after the first."""
    code = rule.__code__
    return code.co_varnames[1 : code.co_argcount]


class Op:
    """One entry of the table."""

    def __init__(
        self,
        name: str,
        kind: str,
        forward: Callable[..., Any],
        params: Sequence[str],
        rules: dict[str, Rule],
        *,
        view: bool = False,
        floats: bool = False,
    ) -> None:
        assert kind in KINDS
        self.name, self.kind, self.forward = name, kind, forward
        self.params = tuple(params)
        self.rules = rules
        self.call: Callable[..., Any] = forward  # what a user calls, once it is entered
        self.public = False  # whether it is a function of `pullback` itself
        self.view = view
        self.floats = floats  # integers are converted to the default floating type first
        self.defaults: tuple[Any, ...] = ()
        self.keyword_only: tuple[str, ...] = ()
        self.plans: dict[int, Plan] = {}
        self.bits = tuple((i, 1 << i) for i, p in enumerate(self.params) if p in rules)
        # which arguments are brought to one dtype: those with a derivative; all of them where there is none
        self.promoted = tuple(i for i, _ in self.bits) or tuple(range(len(self.params)))
        title = "".join(part.capitalize() for part in name.split("_"))
        self.node_class = type(f"{title}Backward0", (OpNode,), {"__slots__": (), "op": self, "__module__": __name__})
        self.complex_class = self.node_class
        if kind in ("elementwise", "bilinear"):
            self.complex_class = type(
                f"{title}Backward0", (ComplexNode,), {"__slots__": (), "op": self, "__module__": __name__}
            )
        for arg, rule in rules.items():
            unknown = set(_needs(rule)) - {*self.params, "out", *(f"{p}_shape" for p in self.params)}
            if arg not in self.params or unknown:
                raise TypeError(
                    f"table entry {name!r}: rule for {arg!r} names {sorted(unknown) or arg}, not an argument"
                )
            _name_rule(rule, f"{name}_rule_for_{arg}")

    def plan(self, mask: int) -> Plan:
        """The plan for the arguments whose bits are set in `mask`."""
        found = self.plans.get(mask)
        if found is None:
            found = self.plans[mask] = Plan(self, mask)
        return found

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Move keyword arguments into their places; NumPy's spellings of torch's (axis, keepdims) are understood."""
        places = len(self.params) - len(self.keyword_only)
        required = places - len(self.defaults)
        values: list[Any] = [*args]
        rest: dict[str, Any] = {}
        given: dict[int, Any] = {}
        for name, value in kwargs.items():
            key = name if name in self.params else _ALIASES.get(name, name)
            if key not in self.params:
                raise TypeError(
                    f"{self.name}() got an unexpected keyword argument {name!r}; it takes {', '.join(self.params)}"
                )
            if key in self.keyword_only:
                rest[key] = value
                continue
            i = self.params.index(key)
            if i < len(args) or i in given:
                raise TypeError(f"{self.name}() got multiple values for argument {name!r}")
            given[i] = value
        for i in range(len(args), max(given, default=-1) + 1):
            if i not in given and i < required:
                raise TypeError(f"{self.name}() missing required argument {self.params[i]!r}")
            values.append(given[i] if i in given else self.defaults[i - required])
        return tuple(values), rest

    def padded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All of the arguments, in order, with the defaults of those left out."""
        places = len(self.params) - len(self.keyword_only)
        missing = places - len(args)
        if missing:
            args = (*args, *self.defaults[len(self.defaults) - missing :])
        return args if not self.keyword_only else (*args, *(kwargs.get(k) for k in self.keyword_only))


def _name_rule(rule: Rule, name: str) -> None:
    """Give a rule that is a bare expression the name of its operation, for the traceback that passes through it."""
    if rule.__name__ == "<lambda>":
        rule.__code__ = rule.__code__.replace(co_name=name)
        rule.__name__ = name


# How an entry is written --------------------------------------------------------------------------------------------


def _publish(
    op: Op, call: Callable[..., Any], model: Callable[..., Any], numpy: Any, method: bool
) -> Callable[..., Any]:
    """Put the finished operation where people look for it, with the name, signature and words of `model`."""
    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = model.__doc__
    call.__module__ = "pullback"
    call.op = op  # type: ignore[attr-defined]
    op.call = call
    op.public = not op.name.startswith("_") and (method or not model.__module__.startswith("pullback.nn"))
    TABLE[op.name] = op
    if method:
        setattr(Tensor, op.name, call)
    NUMPY.update(numpy)
    return call


def elementwise(
    name: str,
    forward: Callable[..., Any],
    doc: str,
    *,
    floats: bool = False,
    dunder: str = "",
    alpha: bool = False,
    numpy: Any = None,
    method: bool = True,
    **rules: Rule,
) -> Callable[..., Any]:
    """Enter an elementwise operation of one argument (``input``) or two (``input``, ``other``); `forward` may be a
    ufunc.

    doc: its docstring, which begins with the formula. floats: integers are converted to the default floating type
    first. dunder: the operator it stands behind. alpha: it takes torch's ``alpha``, a factor of `other`. numpy: the
    NumPy functions it differentiates, if not `forward`.
    """
    count = forward.nin if isinstance(forward, np.ufunc) else len(inspect.signature(forward).parameters)
    op = Op(name, "elementwise" if rules else "constant", forward, ("input", "other")[:count], rules, floats=floats)
    return _enter_elementwise(op, doc, dunder, alpha, numpy, method)


def pointwise(*, numpy: Any = None, method: bool = True, **rules: Rule) -> Any:
    """Enter an elementwise operation of more arguments; those with a rule are brought to one dtype."""

    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("elementwise", forward, False, rules)

        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = op.bind(args, kwargs)
            if len(args) < len(op.params) - len(op.defaults):
                raise TypeError(f"{op.name}() takes {', '.join(op.params)}; found {len(args)} arguments")
            return general(op, op.padded(args, kwargs))

        return _publish(op, call, forward, numpy or {}, method)

    return enter


def constant(
    name: str,
    forward: Callable[..., Any],
    doc: str,
    *,
    floats: bool = False,
    dunder: str = "",
    numpy: Any = None,
    method: bool = True,
) -> Callable[..., Any]:
    """Enter an elementwise operation whose derivative is zero on purpose: a comparison, a rounding."""
    return elementwise(name, forward, doc, floats=floats, dunder=dunder, numpy=numpy, method=method)


def _enter_elementwise(op: Op, doc: str, dunder: str, alpha: bool, numpy: Any, method: bool) -> Callable[..., Any]:
    call = unary(op) if len(op.params) == 1 else binary(op)
    if alpha:
        plain = call

        def call(input: Any, other: Any, *, alpha: Any = 1) -> Any:
            return plain(input, other if alpha == 1 else _scaled(op.name, input, other, alpha))

    if dunder and len(op.params) == 1:
        setattr(Tensor, f"__{dunder}__", call)
    elif dunder:
        setattr(Tensor, f"__{dunder}__", binary(op, operator=True))
        if op.kind != "constant" or dunder in _REFLECTED:
            setattr(Tensor, f"__r{dunder}__", binary(op, operator=True, reflected=True))
    functions = numpy if numpy is not None else {op.forward: call} if isinstance(op.forward, np.ufunc) else {}
    call.__doc__ = doc
    return _publish(op, call, call, functions, method)


def _scaled(name: str, input: Any, other: Any, alpha: Any) -> Any:
    """``alpha * other``, for torch's ``input + alpha * other``."""
    whole = [_dtypes.CATEGORY[t._data.dtype.kind] <= 1 for t in (input, other) if isinstance(t, Tensor)]
    if isinstance(alpha, float) and all(whole):
        raise RuntimeError(
            errors.message(
                f"{name}(): For integral input tensors, argument alpha must not be a floating point number",
                found=f"alpha={alpha}",
                do=f"write alpha={int(alpha)}, or convert the tensor first",
            )
        )
    return TABLE["mul"].call(other, alpha) if isinstance(other, Tensor) else other * alpha


_REFLECTED = ("and", "or", "xor", "floordiv", "lshift", "rshift")


def _from_signature(kind: str, forward: Callable[..., Any], view: bool, rules: dict[str, Rule]) -> Op:
    parameters = inspect.signature(forward).parameters.values()
    op = Op(forward.__name__.rstrip("_"), kind, forward, [p.name for p in parameters], rules, view=view)
    op.keyword_only = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    op.defaults = tuple(p.default for p in parameters if p.kind is not p.KEYWORD_ONLY and p.default is not p.empty)
    return op


def _entry(
    kind: str, numpy: Any, method: bool, view: bool, rules: dict[str, Rule]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature(kind, forward, view, rules)

        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            return apply(op, args, kwargs)

        return _publish(op, call, forward, numpy or {}, method)

    return enter


def linear(*, numpy: Any = None, method: bool = True, view: bool = False, **rules: Rule) -> Any:
    """Enter an operation linear in one argument; its rule is the adjoint. view: it may share memory."""
    return _entry("linear", numpy, method, view, rules)


def bilinear(*, numpy: Any = None, method: bool = True, **rules: Rule) -> Any:
    """Enter an operation that is linear in each of two arguments; its rules are the two adjoints."""
    return _entry("bilinear", numpy, method, False, rules)


def special(*, numpy: Any = None, method: bool = True, **rules: Rule) -> Any:
    """Enter an operation with a vjp of its own for each argument it is differentiable in."""
    return _entry("special", numpy, method, False, rules)


def composite(*, numpy: Any = None, method: bool = True) -> Any:
    """Enter an operation whose body is other operations: it takes and returns Tensors and needs no rule."""

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(body.__name__.rstrip("_"), "composite", body, list(inspect.signature(body).parameters), {})

        tensors = [i for i, p in enumerate(inspect.signature(body).parameters.values()) if p.annotation == "Tensor"]

        @functools.wraps(body)
        def call(*args: Any, **kwargs: Any) -> Any:
            for i in tensors:
                if i < len(args) and not isinstance(args[i], Tensor):
                    args = (*args[:i], operand(op, args, i), *args[i + 1 :])
            return body(*args, **kwargs)

        return _publish(op, call, body, numpy or {}, method)

    return enter


def joining(*, numpy: Any = None, **rules: Rule) -> Any:
    """Enter an operation that joins a sequence of tensors; its one rule returns the gradients of all of them."""

    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        params = list(inspect.signature(forward).parameters)
        op = Op(forward.__name__, "linear", forward, params, rules)
        op.node_class = type(op.node_class.__name__, (ManyNode,), {"__slots__": (), "op": op, "__module__": __name__})
        op.complex_class = op.node_class

        @functools.wraps(forward)
        def call(tensors: Any, dim: int = 0) -> Tensor:
            return join(op, tensors, dim)

        return _publish(op, call, forward, numpy or {}, False)

    return enter

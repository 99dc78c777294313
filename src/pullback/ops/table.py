"""The table of operations: what an entry is, and how a call through it becomes a node.

An entry is one of six kinds (`elementwise`, `linear`, `bilinear`, `special`, `composite`, `constant`), each a decorator (elementwise: a
function) that takes the derivative rules and the forward computation, and puts the operation where people look for it: a function of
`pullback`, a method of Tensor, and the NumPy functions whose rule it is.

A **forward** runs on payloads. It has torch's name and torch's arguments and calls NumPy functions.

A **rule** is named after the argument it differentiates, and says by the names of its own parameters what it needs: the cotangent ``g``, any
argument of the forward, the result ``out``, or ``<argument>_shape``. Only what the wanted rules name is saved. It returns the gradient
in any shape that broadcasts to, or was broadcast from, the argument's: the engine makes it fit. It calls NumPy functions, so it works on raw payloads
in an ordinary backward pass and on Tensors in a recorded one.

An *elementwise* rule is linear in ``g`` and acts on each element alone, so it is its own transpose: with a tangent in the place of ``g`` it is
the forward-mode rule as well. For complex numbers the reverse rule of an elementwise or bilinear operation is the same expression on the
conjugates of what was saved (PyTorch's convention: the gradient is the conjugate Wirtinger derivative); that is done here, not in the rule.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .. import _dtypes, errors
from .._state import modes
from .._tensor import NUMPY, WRITES, Edge, Tensor, blank, wrap
from ..autograd.node import FREED, Node, leaf_edge, next_order, second_backward, written_since

Rule = Callable[..., Any]

TABLE: dict[str, Op] = {}
"""Every operation, by its name."""

KINDS = ("elementwise", "linear", "bilinear", "special", "composite", "constant")
_ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input"}
_ndarray = np.ndarray


class Plan:
    """For one set of wanted gradients: what to save, and which rule gets which of it."""

    __slots__ = ("calls", "direct", "from_operands", "pick", "saves_one", "wanted", "with_out", "with_shapes")

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
        # the one rule, where there is one: it takes all that is saved, in order
        self.direct = rules[0] if len(rules) == 1 else None
        self.saves_one = len(names) == 1
        # for operations of two arguments: 1, 2 or 3 if exactly the first, the second or both are saved, 0 for none, -1 for more
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
    code = rule.__code__  # type: ignore[attr-defined]
    return code.co_varnames[1 : code.co_argcount]


class Op:
    """One entry of the table."""

    def __init__(self, name: str, kind: str, forward: Callable[..., Any], params: Sequence[str], rules: dict[str, Rule],
                 *, view: bool = False, floats: bool = False) -> None:  # fmt: skip
        assert kind in KINDS
        self.name, self.kind, self.forward = name, kind, forward
        self.params = tuple(params)
        self.rules = rules
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
            self.complex_class = type(f"{title}Backward0", (ComplexNode,), {"__slots__": (), "op": self, "__module__": __name__})
        for arg, rule in rules.items():
            unknown = set(_needs(rule)) - {*self.params, "out", *(f"{p}_shape" for p in self.params)}
            if arg not in self.params or unknown:
                raise TypeError(f"table entry {name!r}: rule for {arg!r} names {sorted(unknown) or arg}, not an argument")
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
                raise TypeError(f"{self.name}() got an unexpected keyword argument {name!r}; it takes {', '.join(self.params)}")
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
        rule.__code__ = rule.__code__.replace(co_name=name)  # type: ignore[attr-defined]
        rule.__name__ = name


# Nodes --------------------------------------------------------------------------------------------------------------

class OpNode(Node):
    """A recorded call of an entry: the plan it follows, and what that plan saved.

    As long as the number `WRITES` is what it was when the node was made, nothing can have been written to since, and no version is looked at.
    """

    __slots__ = ("plan", "saved", "versions", "writes")

    op: Op
    plan: Plan
    saved: Sequence[Any]
    versions: tuple[int, ...] | None
    writes: int

    def run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        saved, plan = self.saved, self.plan
        if taped or self.writes != WRITES.n or saved is FREED:
            self.check()
        if not keep and saved:
            self.saved = FREED
        rule = plan.direct
        if rule is not None and plan.saves_one and not taped:
            value = saved[0]
            return (rule(g, value._data if isinstance(value, Tensor) else value),)
        values = self.values(saved, taped)
        if needed is None:
            return [rule(g, *pick(values)) for rule, pick in plan.calls]
        return [
            rule(g, *pick(values)) if edge is not None and edge[0] in needed else None
            for (rule, pick), edge in zip(plan.calls, self.edges, strict=True)
        ]

    def values(self, saved: Sequence[Any], taped: bool) -> Sequence[Any]:
        """What the rules get for what was saved: payloads or, when taped, Tensors."""
        if not taped:
            return [v._data if isinstance(v, Tensor) else v for v in saved]
        return [self._output(v) if isinstance(v, Tensor) and v._base is _SAVED_OUTPUT else v for v in saved]

    def check(self) -> None:
        """Refuse to go on if what was saved was freed, or written to since."""
        saved = self.saved
        if saved is FREED:
            raise second_backward(self.name())
        for i, value in enumerate(saved):
            version = value._version_of if isinstance(value, Tensor) else None
            if version is not None and version.n != (0 if self.versions is None else self.versions[i]):
                raise written_since(self, value, 0 if self.versions is None else self.versions[i])

    def _output(self, saved: Tensor) -> Tensor:
        """This node's result with its place in the graph; it is saved without, so that node and result form no cycle."""
        out = wrap(saved._data)
        out._edge = (self, 0, out._data.shape, out._data.dtype)
        out._requires_grad = True
        return out

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors the rules will need."""
        self.check()
        return tuple(v for v in OpNode.values(self, self.saved, True) if isinstance(v, Tensor))

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        edges = dict(zip(self.plan.wanted, self.edges, strict=True))
        slots = [i for i, p in enumerate(self.op.params) if p in self.op.rules]
        found = [edges.get(i) for i in slots]
        return tuple((None, 0) if e is None else (e[0], e[1]) for e in found)


class ComplexNode(OpNode):
    """A recorded elementwise or bilinear call with a complex result: its rules see the conjugates of what was saved."""

    __slots__ = ()

    def run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        saved = self.saved
        self.check()
        if not keep and saved:
            self.saved = FREED
        values = [np.conj(v) if getattr(v, "dtype", None) in _COMPLEX else v for v in self.values(saved, taped)]
        return [rule(g, *pick(values)) for rule, pick in self.plan.calls]


_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128), _dtypes.complex64, _dtypes.complex128)


class ManyNode(OpNode):
    """A recorded call whose first argument is a sequence of tensors (`cat`, `stack`): one rule gives all their gradients."""

    __slots__ = ()

    def run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        return self.plan.calls[0][0](g, *self.saved)  # sizes, no values: nothing that could be freed or written to

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return Node.next_functions.fget(self)  # type: ignore[attr-defined]


# Marks the detached copies of a node's own result among what it saved: they are nobody's view.
_SAVED_OUTPUT = wrap(np.empty(0))


def record(op: Op, mask: int, args: tuple[Any, ...], r: Any) -> Tensor:
    """A Tensor around the payload `r` that remembers it is `op` of `args`, with gradients for the arguments in `mask`."""
    plan = op.plans.get(mask) or op.plan(mask)
    out = _made_by(op.complex_class if r.dtype.kind == "c" else op.node_class, plan, r)
    node = out._edge[0]  # type: ignore[index]
    if plan.with_out or plan.with_shapes:
        args = (*args, _detached(out) if plan.with_out else None, *(args[i]._data.shape for i in plan.with_shapes))
    node.saved = saved = plan.pick(args)
    node.versions = _versions(saved) if WRITES.n else None
    node.edges = [args[i]._edge or leaf_edge(args[i]) for i in plan.wanted]
    return out


def _made_by(node_class: type[OpNode], plan: Plan, r: Any) -> Tensor:
    """A Tensor around `r` and the node that made it; the node's edges and saved values are the caller's to set."""
    node = node_class()
    node.order = next_order()
    node.hooks = None
    node.plan = plan
    node.writes = WRITES.n
    out = blank()
    out._data = r
    out._edge = (node, 0, r.shape, r.dtype)
    out._requires_grad = True
    out._grad = out._leaf = out._base = out._version_of = None
    return out


def record_pair(op: Op, mask: int, input: Any, other: Any, r: Any) -> Tensor:
    """`record` for two operands whose values are all that is saved: the same, without the generality. The hottest path there is."""
    plan = op.plans.get(mask) or op.plan(mask)
    which, dtype = plan.from_operands, r.dtype
    if which < 0 or dtype.kind == "c":
        return record(op, mask, (input, other), r)
    node = op.node_class()
    node.order = next_order()
    node.hooks = None
    node.plan = plan
    node.saved = (other,) if which == 2 else (input,) if which == 1 else (input, other) if which else ()
    node.writes = writes = WRITES.n
    node.versions = _versions(node.saved) if writes else None
    if mask == 1:
        node.edges = (input._edge or leaf_edge(input),)
    elif mask == 2:
        node.edges = (other._edge or leaf_edge(other),)
    else:
        node.edges = (input._edge or leaf_edge(input), other._edge or leaf_edge(other))
    out = blank()
    out._data = r
    out._edge = (node, 0, r.shape, dtype)
    out._requires_grad = True
    out._grad = out._leaf = out._base = out._version_of = None
    return out


def _versions(saved: Sequence[Any]) -> tuple[int, ...] | None:
    """The versions of the tensors among what is saved, or None if none of them was ever written to."""
    for value in saved:
        if isinstance(value, Tensor) and value._version_of is not None and value._version_of.n:
            return tuple(v._version if isinstance(v, Tensor) else 0 for v in saved)
    return None


def _detached(out: Tensor) -> Tensor:
    alias = wrap(out._data)
    alias._version_of = out._share_version()
    alias._base = _SAVED_OUTPUT
    return alias


def share_memory(view: Tensor, source: Tensor) -> Tensor:
    """Tie `view` to `source` if their payloads share memory: one version counter, one base."""
    base = view._data.base if isinstance(view._data, np.ndarray) else None
    if base is not None and (base is source._data or base is source._data.base):
        view._version_of = source._share_version()
        view._base = source if source._base is None else source._base
    return view


# Calls --------------------------------------------------------------------------------------------------------------


def apply(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an entry: forward on the payloads, then record it if that is wanted. The way of all but elementwise operations."""
    if kwargs:
        args, kwargs = op.bind(args, kwargs)
    if not args or not isinstance(args[0], Tensor):
        args = (_operand(op, args), *args[1:])
    payloads = [a._data if isinstance(a, Tensor) else a for a in args]
    try:
        r = op.forward(*payloads, **kwargs)
    except (ValueError, TypeError, IndexError) as error:
        raise errors.translate(op.name, payloads, error) from None
    if op.rules and modes.grad_enabled:
        mask = 0
        for i, bit in op.bits:
            if i < len(args) and isinstance(args[i], Tensor) and args[i]._requires_grad:
                mask |= bit
        if mask and (r.dtype.kind in "fc"):
            r = r if isinstance(r, _ndarray) or not isinstance(r, np.generic) else np.asarray(r)
            out = record(op, mask, op.padded(args, kwargs), r)
            return share_memory(out, args[0]) if op.view else out
    return share_memory(wrap(r), args[0]) if op.view else wrap(r)


def _operand(op: Op, args: tuple[Any, ...]) -> Tensor:
    """The first argument as a Tensor, or the error that it is not one."""
    if not args:
        raise TypeError(f"{op.name}() missing required argument {op.params[0]!r}")
    if isinstance(args[0], np.ndarray) and any(isinstance(a, Tensor) for a in args):
        return wrap(args[0])
    raise TypeError(
        errors.message(f"{op.name}()", expected=f"argument {op.params[0]!r} to be a Tensor", found=errors.describe(args[0]),
                       do="convert it with pullback.tensor(...) or pullback.from_numpy(...)")
    )  # fmt: skip


def on(call: Callable[..., Any], *args: Any) -> Any:
    """Call an operation from inside a rule: recorded if any argument is a Tensor, else its forward on the payloads."""
    return call(*args) if any(isinstance(a, Tensor) for a in args) else call.op.forward(*args)  # type: ignore[attr-defined]


def general(op: Op, args: tuple[Any, ...]) -> Any:
    """An elementwise call off the fast path: operands of different types, arrays among Tensors, nested payloads."""
    payloads = [a._data if isinstance(a, Tensor) else a for a in args]
    found = [payloads[i] for i in op.promoted if payloads[i] is not None]
    for p in found:
        if not hasattr(p, "dtype") and not isinstance(p, (bool, int, float, complex)):
            raise TypeError(
                errors.message(f"{op.name}()", expected="a Tensor, an array or a number", found=type(p).__name__,
                               do="convert it with pullback.tensor(...)")
            )  # fmt: skip
    dtype = _dtypes.result_type(found)
    if op.floats and dtype.kind in "biu":
        dtype = _dtypes.default()
    operands = [_cast(p, dtype) if i in op.promoted and p is not None else p for i, p in enumerate(payloads)]
    try:
        r = op.forward(*operands)
    except (ValueError, TypeError) as error:
        raise errors.translate(op.name, payloads, error) from None
    if type(r) is not _ndarray:
        r = np.asarray(r) if isinstance(r, np.generic) else r
    if modes.grad_enabled:
        mask = sum(bit for i, bit in op.bits if isinstance(args[i], Tensor) and args[i]._requires_grad)
        if mask and r.dtype.kind in "fc":
            return record(op, mask, args, r)
    return wrap(r)


def _cast(p: Any, dtype: np.dtype[Any]) -> Any:
    """A payload or a number as an operand of `dtype`."""
    if not hasattr(p, "dtype"):
        p = np.asarray(p)
    return p if p.dtype == dtype else p.astype(dtype)


def unary(op: Op) -> Callable[..., Any]:
    """The function that calls an elementwise operation of one argument: the hot path."""
    fn, floats, differentiable = op.forward, op.floats, bool(op.rules)

    def call(input: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(
                errors.message(f"{op.name}()", expected="a Tensor", found=errors.describe(input),
                               do="convert it with pullback.tensor(...) or pullback.from_numpy(...)")
            )  # fmt: skip
        x = input._data
        if floats and x.dtype.kind in "biu":
            return general(op, (input,))
        try:
            r = fn(x)
        except (ValueError, TypeError) as error:
            raise errors.translate(op.name, (input,), error) from None
        if type(r) is not _ndarray and isinstance(r, np.generic):
            r = np.asarray(r)
        if differentiable and input._requires_grad and modes.grad_enabled and r.dtype.kind in "fc":
            return record(op, 1, (input,), r)
        return wrap(r)

    return call


_NUMBERS = (float, int, bool)


def binary(op: Op, *, operator: bool = False, reflected: bool = False) -> Callable[..., Any]:
    """The function that calls an elementwise operation of two arguments: the hot path.

    operator: it stands behind `a + b`, so an operand it does not know is left to the other side. reflected: behind ``__radd__``.
    """
    fn, differentiable = op.forward, bool(op.rules)
    int_ok = not op.floats

    def call(input: Any, other: Any) -> Any:
        if type(input) is Tensor and type(other) is Tensor:
            x, y = input._data, other._data
            if x.dtype is not y.dtype or not (int_ok or x.dtype.kind in "fc"):
                return general(op, (input, other))
        elif type(input) is Tensor and type(other) in _NUMBERS and input._data.dtype.kind == "f":
            x, y = input._data, other
        elif operator and not isinstance(other, (Tensor, np.ndarray, np.generic, bool, int, float, complex)):
            return NotImplemented
        elif isinstance(input, Tensor) or isinstance(other, Tensor):
            return general(op, (other, input) if reflected else (input, other))
        else:
            raise TypeError(
                errors.message(f"{op.name}()", expected="a Tensor among the operands",
                               found=f"{errors.describe(input)} and {errors.describe(other)}",
                               do="convert one with pullback.tensor(...)")
            )  # fmt: skip
        if reflected:
            input, other, x, y = other, input, y, x
        try:
            r = fn(x, y)
        except (ValueError, TypeError) as error:
            raise errors.translate(op.name, (x, y), error) from None
        if type(r) is not _ndarray and isinstance(r, np.generic):
            r = np.asarray(r)
        if differentiable:
            mask = 1 if type(input) is Tensor and input._requires_grad else 0
            if type(other) is Tensor and other._requires_grad:
                mask += 2
            if mask and modes.grad_enabled:
                return record_pair(op, mask, input, other, r)
        return wrap(r)

    return call


# How an entry is written --------------------------------------------------------------------------------------------


def _publish(op: Op, call: Callable[..., Any], model: Callable[..., Any], numpy: Any, method: bool) -> Callable[..., Any]:
    """Put the finished operation where people look for it, with the name, signature and words of `model`."""
    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = model.__doc__
    call.__module__ = "pullback"
    call.op = op  # type: ignore[attr-defined]
    op.call = call  # type: ignore[attr-defined]
    TABLE[op.name] = op
    if method:
        setattr(Tensor, op.name, call)
    NUMPY.update(numpy)
    return call


def elementwise(name: str, forward: Callable[..., Any], doc: str, *, floats: bool = False, dunder: str = "", alpha: bool = False,
                numpy: Any = None, method: bool = True, **rules: Rule) -> Callable[..., Any]:  # fmt: skip
    """Enter an elementwise operation of one argument (``input``) or two (``input``, ``other``); `forward` may be a ufunc.

    doc: its docstring, which begins with the formula. floats: integers are converted to the default floating type first. dunder: the operator
    it stands behind. alpha: it takes torch's ``alpha``, a factor of `other`. numpy: the NumPy functions it differentiates, if not `forward`.
    """
    count = forward.nin if isinstance(forward, np.ufunc) else len(inspect.signature(forward).parameters)
    op = Op(name, "elementwise" if rules else "constant", forward, ("input", "other")[:count], rules, floats=floats)
    return _enter_elementwise(op, doc, dunder, alpha, numpy, method)


def pointwise(*, numpy: Any = None, method: bool = True, **rules: Rule) -> Any:
    """Enter an elementwise operation of more arguments, or with defaults; those that have a rule are brought to one dtype."""

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


def constant(name: str, forward: Callable[..., Any], doc: str, *, floats: bool = False, dunder: str = "", numpy: Any = None,
             method: bool = True) -> Callable[..., Any]:  # fmt: skip
    """Enter an elementwise operation whose derivative is zero on purpose: a comparison, a rounding."""
    return elementwise(name, forward, doc, floats=floats, dunder=dunder, numpy=numpy, method=method)


def _enter_elementwise(op: Op, doc: str, dunder: str, alpha: bool, numpy: Any, method: bool) -> Callable[..., Any]:
    call = unary(op) if len(op.params) == 1 else binary(op)
    if alpha:
        plain = call

        def call(input: Any, other: Any, *, alpha: Any = 1) -> Any:
            return plain(input, other if alpha == 1 else TABLE["mul"].call(other, alpha))  # type: ignore[attr-defined]

    if dunder and len(op.params) == 1:
        setattr(Tensor, f"__{dunder}__", call)
    elif dunder:
        setattr(Tensor, f"__{dunder}__", binary(op, operator=True))
        if op.kind != "constant" or dunder in _REFLECTED:
            setattr(Tensor, f"__r{dunder}__", binary(op, operator=True, reflected=True))
    functions = numpy if numpy is not None else {op.forward: call} if isinstance(op.forward, np.ufunc) else {}
    call.__doc__ = doc
    return _publish(op, call, call, functions, method)


_REFLECTED = ("and", "or", "xor", "floordiv", "lshift", "rshift")


def _from_signature(kind: str, forward: Callable[..., Any], view: bool, rules: dict[str, Rule]) -> Op:
    parameters = inspect.signature(forward).parameters.values()
    op = Op(forward.__name__.rstrip("_"), kind, forward, [p.name for p in parameters], rules, view=view)
    op.keyword_only = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    op.defaults = tuple(p.default for p in parameters if p.kind is not p.KEYWORD_ONLY and p.default is not p.empty)
    return op


def _entry(kind: str, numpy: Any, method: bool, view: bool, rules: dict[str, Rule]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature(kind, forward, view, rules)

        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            return apply(op, args, kwargs)

        return _publish(op, call, forward, numpy or {}, method)

    return enter


def linear(*, numpy: Any = None, method: bool = True, view: bool = False, **rules: Rule) -> Any:
    """Enter an operation that is linear in one argument; its rule is the adjoint. view: the result may share its memory."""
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
        return _publish(op, body, body, numpy or {}, method)

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
            return _join(op, tensors, dim)

        return _publish(op, call, forward, numpy or {}, False)

    return enter


def _join(op: Op, tensors: Any, dim: int) -> Tensor:
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            errors.message(f"{op.name}()", expected="a tuple or list of Tensors", found=errors.describe(tensors),
                           do=f"write {op.name}([a, b], dim)")
        )  # fmt: skip
    if not tensors:
        raise RuntimeError(f"{op.name}(): expected a non-empty list of Tensors")
    tensors = [wrap(t) if isinstance(t, np.ndarray) else t for t in tensors]
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(errors.message(f"{op.name}()", expected=f"element {i} to be a Tensor", found=errors.describe(t)))
    payloads = [t._data for t in tensors]
    dtype = _dtypes.result_type(payloads)
    try:
        r = op.forward([_cast(p, dtype) for p in payloads], dim)
    except (ValueError, TypeError) as error:
        raise errors.translate(op.name, payloads, error) from None
    if not (modes.grad_enabled and any(t._requires_grad for t in tensors) and dtype.kind in "fc"):
        return wrap(r)
    out = _made_by(op.node_class, op.plan(1), r)
    node = out.grad_fn
    node.versions = None
    node.saved = node.plan.pick((None, dim, tuple(p.shape for p in payloads)))
    edges: list[Edge | None] = [(t._edge or leaf_edge(t)) if t._requires_grad else None for t in tensors]
    node.edges = edges
    return out

"""The table of operations: what an entry is, and how a call through it becomes a node.

An entry is one of six kinds (`elementwise`, `linear`, `bilinear`, `special`, `composite`, `constant`), each a
decorator (elementwise: a function) that takes the derivative rules, the forward computation and what `About` lists,
and puts the operation where people look for it: a function of `pullback` or of one of its modules, a method of Tensor,
and the NumPy functions whose rule it is.

A **forward** runs on payloads. It has torch's name and torch's arguments and calls NumPy functions. It may return a
tuple, of which the outputs of floating point or complex numbers are differentiable.

**Checks** look at the Tensors of a public call before anything is computed, raise where it is wrong, and give the
forward its arguments; where they differ from the public ones, the checks have the public signature (see `checks.py`).

A **rule** is named after the argument it differentiates, and says by the names of its own parameters what it needs:
the cotangent ``g`` (of a tuple: a list, with None where none came), any argument of the forward, the result ``out``
(of a tuple: ``out0``, ``out1``...), or ``<argument>_shape``. Only what the wanted rules name is saved. It returns the
gradient in any shape that broadcasts to, or was broadcast from, the argument's: the engine makes it fit. It calls NumPy
functions, so it works on raw payloads in an ordinary backward pass and on Tensors in a recorded one.

An *elementwise* rule is linear in ``g`` and acts on each element alone, so it is its own transpose: with a tangent
instead of ``g`` it is the forward-mode rule as well.

A rule is written as for real numbers. The gradient of complex numbers is the conjugate Wirtinger derivative, as in
PyTorch: the same expression on the conjugates of what was saved. So where a result is complex, a rule of any kind gets
each saved complex value conjugated, `out` too; ``g`` comes as it is. In forward mode nothing is conjugated: neither
for a `jvp` nor for an elementwise rule. A function that is not holomorphic has no such derivative: `linalg.qr` depends
on the conjugate of its argument, too. Its rule is one of complex numbers, and its entry says ``conjugate=False``: it
gets what was saved as it is. So does, without a word, the rule of a complex argument with a real result (`abs`).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .. import errors
from ..tensor import dtypes
from ..tensor.modes import LEVELS
from ..tensor.overrides import dispatch, overriding
from ..tensor.tensor import NUMPY, Tensor
from .calls import apply, binary, detached, general, into, join, unary
from .checks import ALIASES, checked_call, composite_call
from .nodes import ComplexNode, ComplexTupleNode, CutNode, ManyNode, OpNode, TupleNode, saved_attributes
from .operands import older_form
from .samples import NO_PAIR, NO_UNARY, pairs
from .samples import unary as unary_samples

Rule = Callable[..., Any]

TABLE: dict[str, Op] = {}
"""Every operation, by its name: the path below `pullback`, e.g. ``sin`` or ``linalg.det``."""

NAMES: dict[str, dict[str, Callable[..., Any]]] = {"": {}, "linalg": {}, "fft": {}, "special": {}, "nn.functional": {}}
"""The functions of `pullback` itself ("") and of its modules, by their names there."""

KINDS = ("elementwise", "linear", "bilinear", "special", "composite", "constant")

_OUTPUT = re.compile(r"out\d+")

# Arguments that are numbers in every entry, or tuples of them.
_NUMBERS = frozenset(
    "axis diagonal dim dim0 dim1 dim2 dimension dims geometry inverse keepdim lengths n norm offset pad repeats shifts "
    "size step stride".split()
)


class Plan:
    """For one set of wanted gradients: what to save, and which rule gets which of it."""

    __slots__ = (
        "calls",
        "complex_class",
        "direct",
        "frees",
        "from_operands",
        "gradients",
        "names",
        "node_class",
        "only",
        "plain",
        "save",
        "wanted",
    )

    def __init__(self, op: Op, mask: int) -> None:
        self.wanted = tuple(i for i in range(len(op.params)) if mask >> i & 1)
        rules = [op.rules[op.params[i]] for i in self.wanted]
        names = list(dict.fromkeys(n for rule in rules for n in _needs(rule)))
        if len(rules) > 1:
            names.sort(key=lambda n: op.params.index(n) if n in op.params else len(op.params))
        self.names = tuple(names)  # of what is saved
        # whether there are tensors in that, which a pass frees; what saved none can run again, as in torch
        self.frees = not all(n.endswith("_shape") or n in _NUMBERS or (op.view and n not in op.rules) for n in names)
        self.plain = not self.frees and not op.joins  # what was saved is what the rules get: no tensors, nothing packed
        self.node_class = op.node_class
        self.complex_class = op.complex_class if self.frees else op.node_class  # else there is nothing to conjugate
        self.save = _saver(op, names)
        self.calls = tuple((rule, _picker([names.index(n) for n in _needs(rule)])) for rule in rules)
        self.gradients = _all_of(rules, names)
        # where there is one rule, it gets what was saved as it is; and as often, that is one value
        self.only: Any = rules[0] if len(rules) == 1 else None
        self.direct = self.only if len(names) == 1 else None
        # for operations of two arguments: 1, 2 or 3 if exactly the first, the second or both are saved, 0 for none,
        # -1 for more
        places = tuple(op.params.index(n) if n in op.params else -1 for n in names)
        self.from_operands = {(): 0, (0,): 1, (1,): 2, (0, 1): 3}.get(places, -1) if len(op.params) == 2 else -1


class Plans(dict[int, Plan]):
    """The plans of an entry by the arguments whose gradients are wanted, as bits; each is made when first needed."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def __missing__(self, mask: int) -> Plan:
        plan = self[mask] = Plan(self.op, mask)
        return plan


def _saver(op: Op, names: Sequence[str]) -> Callable[[Sequence[Any], Any], tuple[Any, ...]]:
    """The function from all the arguments of a call and its result to what is saved of them, under `names`.

    It is written out and compiled, as every recorded call goes through it.
    """
    places = {p: i for i, p in enumerate(op.params)}

    def source(name: str) -> str:
        if name in places:
            return f"args[{places[name]}]"
        if name == "out":
            return "detached(out)"
        if _OUTPUT.fullmatch(name):
            number = int(name.removeprefix("out"))
            return f"detached(out[{number}], {number})"
        shaped = f"args[{places[name.removesuffix('_shape')]}]"
        return f"tuple([t._data.shape for t in {shaped}])" if op.joins else f"{shaped}._data.shape"

    return _written("args, out", names and map(source, names), {"detached": detached})


def _all_of(rules: Sequence[Rule], names: Sequence[str]) -> Callable[[Any, Sequence[Any]], tuple[Any, ...]]:
    """The function from a cotangent and what was saved under `names` to what all of `rules` give."""
    known = {f"rule{i}": rule for i, rule in enumerate(rules)}
    values = [", ".join(["g", *(f"saved[{names.index(n)}]" for n in _needs(rule))]) for rule in rules]
    return _written("g, saved", [f"{rule}({given})" for rule, given in zip(known, values, strict=True)], known)


def _written(params: str, parts: Iterable[str], known: dict[str, Any]) -> Any:
    """A function of `params` that returns the tuple of `parts`, expressions in these and in what is `known`."""
    source = f"lambda {params}: ({''.join(f'{part}, ' for part in parts)})"
    return eval(compile(source, f"{__file__} (written)", "eval"), {"__name__": __name__, **known})


def _picker(indices: list[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A fast function from a tuple to the tuple of some of its elements."""
    if not indices:
        return itemgetter(slice(0))
    if len(indices) == 1:
        return itemgetter(slice(indices[0], indices[0] + 1))
    return itemgetter(*indices)


def _needs(rule: Rule) -> tuple[str, ...]:
    """What a rule needs besides the cotangent: the names of its parameters after the first."""
    code = rule.__code__
    return code.co_varnames[1 : code.co_argcount]


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class About:
    """What an entry says besides its computation and its rules.

    home: the module below `pullback` whose function it is ("linalg"), if not `pullback` itself. also: further names of
    it, each a path below `pullback`. numpy: the NumPy functions it differentiates, each with the function that takes
    its arguments. function: whether it is a function at all; method: whether it is a method of Tensor (None: where it
    is a function of `pullback` itself). inplace: whether it has an in-place twin, ``name_`` (None: elementwise
    operations do). out: whether it takes ``out=`` (None: functions outside `nn` do, unless they return a view). view:
    it may share memory with its first argument. node: torch's name of its nodes, where that does not follow from the
    name of the entry, or a function of the node that knows it. fits: what refuses a number among operands that are
    integers, by its place, its value and their dtype (None: it wraps around, as in torch's arithmetic). saved: torch's
    names of what its nodes saved (what follows ``_saved_``), each with ours, or with a function of saved values, which
    its parameters name.

    jvp: the forward-mode rule, where it is better than the one that follows from the kind: named parameters as a
    rule's, but the first is the tuple of tangents, one for each differentiable argument, None where there is none.
    holomorphic: False if the derivative of an elementwise operation of complex numbers is not itself complex (`abs`).
    conjugate: whether its rules get the conjugates of what was saved where the result is complex; False if they need
    the values themselves, as those of functions that are not holomorphic do (`sgn`, `linalg.qr`).
    cut: whether a rule of it, for complex results, has a branch cut along the real line (`pow`, by the logarithm).
    batch: how `vmap` puts an axis in front: "leading" (leading axes are a batch anyway), "matrices" (the same, of at
    least two axes each), "dims" (the axes that arguments name move on by one), or a function; None: by the kind, or by
    a loop.

    checks: what looks at the arguments of a public call before anything is computed, a function with the public
    signature, which may differ from the computation's (see `checks.py`). It raises, and returns the arguments of the
    computation, all of them, or None where they are those it was given.

    samples, kinks, refused, differs: its domain (see `samples.py`), lists or functions that return them.
    """

    home: str = ""
    also: str = ""
    numpy: Any = None
    function: bool = True
    method: bool | None = None
    inplace: bool | None = None
    out: bool | None = None
    view: bool = False
    node: Any = ""
    fits: Callable[[int, int, np.dtype[Any]], None] | None = None
    saved: Any = ()
    jvp: Callable[..., Any] | None = None
    holomorphic: bool = True
    conjugate: bool = True
    cut: bool = False
    batch: Any = None
    checks: Callable[..., Any] | None = None
    samples: Any = ()
    kinks: Any = ()
    refused: Any = ()
    differs: Any = ()


_ABOUT = frozenset(f.name for f in dataclasses.fields(About))


def _divided(given: dict[str, Any]) -> tuple[About, dict[str, Rule]]:
    """The keywords of an entry: what it says of itself, and its rules, which are named after arguments."""
    about = About(**{k: v for k, v in given.items() if k in _ABOUT})
    return about, {k: v for k, v in given.items() if k not in _ABOUT}


class Op:
    """One entry of the table."""

    def __init__(
        self,
        name: str,
        kind: str,
        forward: Callable[..., Any],
        params: Sequence[str],
        rules: dict[str, Rule],
        about: About,
        *,
        floats: bool = False,
    ) -> None:
        assert kind in KINDS
        self.name = f"{about.home}.{name}" if about.home else name
        self.kind, self.forward, self.about = kind, forward, about
        self.params = tuple(params)
        self.rules = rules
        self.call: Callable[..., Any] = forward  # what a user calls, once it is entered
        self.unchecked: Callable[..., Any] = forward  # the same with the arguments of `forward`, checked before
        self.public = self.params  # the names of a user's arguments
        self.factors: tuple[str, ...] = ()  # numbers that once stood among the tensors, and now have names
        self.view = about.view
        self.floats = floats  # integers are converted to the default floating type first
        self.elementwise = False  # whether it acts on each element alone
        self.joins = False  # whether the first argument is a sequence of tensors
        self.defaults: tuple[Any, ...] = ()
        self.keyword_only: tuple[str, ...] = ()
        self.plans = Plans(self)
        self.bits = tuple((i, 1 << i) for i, p in enumerate(self.params) if p in rules)
        self.differentiable = sum(bit for _, bit in self.bits)
        # which arguments are brought to one dtype: those with a derivative; all of them where there is none
        self.promoted = tuple(i for i, _ in self.bits) or tuple(range(len(self.params)))
        self.promotes = sum(1 << i for i in self.promoted)
        for arg, rule in rules.items():
            unknown = {n for n in _needs(rule) if not _OUTPUT.fullmatch(n)}
            unknown -= {*self.params, "out", *(f"{p}_shape" for p in self.params)}
            if arg not in self.params or unknown:
                raise TypeError(
                    f"table entry {name!r}: rule for {arg!r} names {sorted(unknown) or arg}, not an argument"
                )
            _name_rule(rule, f"{name}_rule_for_{arg}")

    @functools.cached_property
    def node_class(self) -> type[OpNode]:
        """The class of its nodes."""
        return self._node_class(ManyNode if self.joins else OpNode)

    @functools.cached_property
    def complex_class(self) -> type[OpNode]:
        """The class of its nodes where the result is complex."""
        if self.joins or not self.about.conjugate:
            return self.node_class
        return self._node_class(CutNode if self.about.cut else ComplexNode)

    @functools.cached_property
    def tuple_class(self) -> type[TupleNode]:
        """The class of its nodes where the result is a tuple."""
        return self._node_class(TupleNode)

    @functools.cached_property
    def complex_tuple_class(self) -> type[TupleNode | ComplexTupleNode]:
        """The class of its nodes where there is a complex number in a tuple of results."""
        return self._node_class(ComplexTupleNode) if self.about.conjugate else self.tuple_class

    def _node_class(self, base: Any) -> Any:
        title = "".join(part.capitalize() for part in re.split("[._]", self.name.removeprefix("nn.functional.")))
        name = self.about.node if isinstance(self.about.node, str) and self.about.node else f"{title}Backward0"
        named = {"__slots__": (), "op": self, "__module__": __name__}
        return type(name, (base,), {**saved_attributes(self), **named})

    def domain(self, what: str) -> list[Any]:
        """Its "samples", "kinks", "refused" calls, or what "differs" from torch."""
        found = getattr(self.about, what)
        return list(found() if callable(found) else found)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Move keyword arguments into their places; NumPy's spellings of torch's (axis, keepdims) are understood."""
        places = len(self.params) - len(self.keyword_only)
        required = places - len(self.defaults)
        values: list[Any] = [*args]
        rest: dict[str, Any] = {}
        given: dict[int, Any] = {}
        for name, value in kwargs.items():
            key = name if name in self.params else ALIASES.get(name, name)
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
        if len(args) >= len(self.params):
            return args
        if kwargs:
            args += self._tails[len(args)][: -len(self.keyword_only)]
            return (*args, *[kwargs.get(k) for k in self.keyword_only])
        return args + self._tails[len(args)]

    @functools.cached_property
    def _tails(self) -> list[tuple[Any, ...]]:
        """What is missing of the arguments, by how many are there; of those that are keyword-only, None."""
        places, named = len(self.params) - len(self.keyword_only), (None,) * len(self.keyword_only)
        tails = [self.defaults[max(len(self.defaults) - places + n, 0) :] + named for n in range(places)]
        return [*tails, *[named[i:] for i in range(len(named) + 1)]]


def _name_rule(rule: Rule, name: str) -> None:
    """Give a rule that is a bare expression the name of its operation, for the traceback that passes through it."""
    if rule.__name__ == "<lambda>":
        rule.__code__ = rule.__code__.replace(co_name=name)
        rule.__name__ = name


# How an entry is written --------------------------------------------------------------------------------------------


def _publish(
    op: Op, call: Callable[..., Any], model: Callable[..., Any], unchecked: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Put the finished operation where people look for it, with the name, signature and words of `model`.

    unchecked: the call with arguments that are checked, where `call` checks them.
    """
    about, name = op.about, op.name.rpartition(".")[2]
    call.__name__ = call.__qualname__ = name
    title = name if op.kind == "composite" or about.checks is not None else op.name
    errors.called(call, title, elementwise=op.elementwise)
    call.__doc__ = model.__doc__
    call.__module__ = "pullback" + f".{about.home}" * bool(about.home)
    call.op = op  # type: ignore[attr-defined]
    if unchecked is None:
        op.call = op.unchecked = call
    else:
        unchecked.__name__ = unchecked.__qualname__ = name
        errors.called(unchecked, title, elementwise=op.elementwise)
        unchecked.op = op  # type: ignore[attr-defined]
        op.call, op.unchecked = call, unchecked
    TABLE[op.name] = op
    method = not about.home if about.method is None else about.method
    if about.function and not name.startswith("_"):
        NAMES[about.home][name] = call
    if method:
        setattr(Tensor, name, call)
    for path in about.also.split():
        home, _, other = path.rpartition(".")
        NAMES[home][other] = call
        if method and not home:
            setattr(Tensor, other, call)
    NUMPY.update(about.numpy or {})
    return call


def alias(path: str, call: Callable[..., Any]) -> None:
    """Publish `call` under one more name, a path below `pullback`, as a function only."""
    home, _, name = path.rpartition(".")
    NAMES[home][name] = call


def elementwise(
    name: str,
    forward: Callable[..., Any],
    doc: str,
    *,
    floats: bool = False,
    dunder: str = "",
    alpha: bool = False,
    domain: str = "real",
    **given: Any,
) -> Callable[..., Any]:
    """Enter an elementwise operation of one argument (``input``) or two (``input``, ``other``); `forward` may be a
    ufunc.

    doc: its docstring, which begins with the formula. floats: integers are converted to the default floating type
    first. dunder: the operator it stands behind. alpha: it takes torch's ``alpha``, a factor of `other`. domain: where
    the values of its samples come from, unless `samples` are given. The rest: what `About` lists, and the rules.
    """
    about, rules = _divided(given)
    count = forward.nin if isinstance(forward, np.ufunc) else len(_parameters(forward)[0])
    if not about.samples:
        about.samples = functools.partial(unary_samples, domain) if count == 1 else functools.partial(pairs, domain)
    about.refused = about.refused or (NO_UNARY if count == 1 else NO_PAIR)
    params = ("input", "other")[:count]
    op = Op(name, "elementwise" if rules else "constant", forward, params, rules, about, floats=floats)
    op.elementwise = True
    call = unary(op) if count == 1 else binary(op)
    if alpha:
        plain = call

        def model(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> None:
            """What editors and stubs are told."""

        @functools.wraps(model)
        def call(input: Any, other: Any, *older: Any, alpha: Any = 1, out: Any = None) -> Any:
            if older:
                (input, other), given = older_form(name, 2, ("alpha",), (input, other, *older))
                alpha = given["alpha"]
            if out is not None:
                return into(out, op, (input, other), {"alpha": alpha} if alpha != 1 else {})
            if LEVELS.n and alpha != 1 and (kinds := overriding((input, other))):
                return dispatch(kinds, call, (input, other), {"alpha": alpha})
            return plain(input, other if alpha == 1 else _scaled(op.name, input, other, alpha))

    if dunder and count == 1:
        setattr(Tensor, f"__{dunder}__", call)
    elif dunder:
        setattr(Tensor, f"__{dunder}__", _operator(op))
        if op.kind != "constant" or dunder in _REFLECTED:
            setattr(Tensor, f"__r{dunder}__", _operator(op, reflected=True))
    if about.numpy is None and isinstance(forward, np.ufunc):
        about.numpy = {forward: call}
    call.__doc__ = doc
    if about.checks is None:
        return _publish(op, call, call)
    return _publish(op, checked_call(op, general), call, call)


def _operator(op: Op, reflected: bool = False) -> Callable[..., Any]:
    """What stands behind an operator of Python's, or behind its reflected form."""
    return errors.called(binary(op, operator=True, reflected=reflected), op.name, elementwise=True)


def constant(*named: Any, **given: Any) -> Any:
    """Enter an operation whose derivative is zero on purpose: a comparison, a rounding, a position.

    Elementwise: ``constant(name, forward, doc, ...)``, as `elementwise`. Else a decorator, as `special`.
    """
    return elementwise(*named, **given) if named else _entry("constant", given)


def pointwise(**given: Any) -> Any:
    """Enter an elementwise operation of more arguments; those with a rule are brought to one dtype."""

    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("elementwise", forward, given)
        op.elementwise = True

        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            if "out" in kwargs and "out" not in op.params and (out := kwargs.pop("out")) is not None:
                return into(out, op, args, kwargs)
            if kwargs or len(args) != len(op.params):
                args, kwargs = op.bind(args, kwargs)
                if len(args) < len(op.params) - len(op.defaults):
                    raise TypeError(f"{op.name}() takes {', '.join(op.params)}; found {len(args)} arguments")
                args = op.padded(args, kwargs)
            return general(op, args)

        if op.about.checks is None:
            return _publish(op, call, forward)
        return _publish(op, checked_call(op, general), forward, call)

    return enter


def linear(**given: Any) -> Any:
    """Enter an operation linear in one argument; its rule is the adjoint."""
    return _entry("linear", given)


def bilinear(**given: Any) -> Any:
    """Enter an operation that is linear in each of two arguments; its rules are the two adjoints."""
    return _entry("bilinear", given)


def special(**given: Any) -> Any:
    """Enter an operation with a vjp of its own for each argument it is differentiable in."""
    return _entry("special", given)


def composite(**given: Any) -> Any:
    """Enter an operation whose body is other operations: it takes and returns Tensors and needs no rule."""

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("composite", body, given)
        if op.about.checks is not None:
            raise TypeError(f"table entry {op.name!r}: the body of a composite checks its own arguments")
        return _publish(op, composite_call(op, body), body)

    return enter


def joining(**given: Any) -> Any:
    """Enter an operation that joins a sequence of tensors; its one rule returns the gradients of all of them."""

    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("linear", forward, {"method": False, **given})
        op.joins = True

        @functools.wraps(forward)
        def call(tensors: Any, dim: int = 0, *, out: Any = None, **named: Any) -> Tensor:
            if named:
                (tensors, dim), _ = op.bind((tensors, dim) if dim else (tensors,), named)
            return join(op, tensors, dim) if out is None else into(out, op, (tensors, dim), {})

        return _publish(op, call, forward)

    return enter


def _entry(kind: str, given: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature(kind, forward, given)

        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            return apply(op, args, kwargs)

        if op.about.checks is None:
            return _publish(op, call, forward)
        return _publish(op, checked_call(op, apply), forward, call)

    return enter


def _from_signature(kind: str, forward: Callable[..., Any], given: dict[str, Any]) -> Op:
    about, rules = _divided(given)
    params, defaults, keyword_only = _parameters(forward)
    op = Op(forward.__name__.rstrip("_") or "_", kind, forward, params, rules, about)
    op.defaults, op.keyword_only = defaults, keyword_only
    return op


def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[Any, ...], tuple[str, ...]]:
    """The names of a function's parameters, the defaults of those that have a place, and the keyword-only ones."""
    code = getattr(function, "__code__", None)
    if code is None:  # not a plain function: a partial, a builtin
        found = inspect.signature(function).parameters.values()
        return tuple(p.name for p in found if p.kind is not p.KEYWORD_ONLY), (), ()
    places, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    return names[:total], function.__defaults__ or (), names[places:total]


def _scaled(name: str, input: Any, other: Any, alpha: Any) -> Any:
    """``alpha * other``, for torch's ``input + alpha * other``."""
    whole = [dtypes.CATEGORY[t._data.dtype.kind] <= 1 for t in (input, other) if isinstance(t, Tensor)]
    if isinstance(alpha, float) and all(whole):
        raise RuntimeError(
            errors.message(
                f"{name}(): For integral input tensors, argument alpha must not be a floating point number",
                found=f"alpha={alpha}",
                do=f"write alpha={int(alpha)}, or convert the tensor first",
            )
        )
    if isinstance(alpha, int) and isinstance(other, Tensor) and other._data.dtype.kind in "iu":
        dtypes.refuse_overflow(alpha, other._data.dtype)
    return TABLE["mul"].call(other, alpha) if isinstance(other, Tensor) else other * alpha


_REFLECTED = ("and", "or", "xor", "floordiv", "lshift", "rshift")

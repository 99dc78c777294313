"""The table of operations: its entries, and the decorators that write them.

An entry is one of six kinds: `elementwise`, `linear`, `bilinear`, `special`, `composite` or `constant`. Each kind is a
decorator (elementwise: a function). It takes the forward computation, the derivative rules and the keywords that
`About` lists, and publishes the operation: as a function of `pullback` or of one of its modules, as a method of Tensor,
and under the NumPy functions that it differentiates.

A **forward** runs on payloads. It has torch's name and torch's arguments and calls NumPy functions. It may return a
tuple; outputs of floating point or complex numbers are differentiable.

**Checks** look at the Tensors of a public call before anything is computed. They raise where the call is wrong, and
return the forward's arguments. They have the public signature where it differs from the forward's (see `checks.py`).

A **rule** is named after the argument it differentiates. The names of its own parameters say what it needs: the
cotangent ``g`` (for a tuple: a list, with None where no cotangent came), any argument of the forward, the result
``out`` (for a tuple: ``out0``, ``out1``...), or ``<argument>_shape``. Only values that the wanted rules name are saved.
A rule returns the gradient in any shape that broadcasts to, or was broadcast from, the argument's: the engine makes it
fit. It calls NumPy functions, so it works on payloads in an ordinary backward pass and on Tensors in a recorded one.

An *elementwise* rule is linear in ``g`` and acts on each element alone, so it is its own transpose: given a tangent
instead of ``g``, it is the forward-mode rule as well.

Write a rule as for real numbers. The gradient of complex numbers is the conjugate Wirtinger derivative, as in PyTorch:
the same expression on the conjugates of the saved values. So where a result is complex, a rule of any kind gets each
saved complex value conjugated, including `out`; ``g`` is passed unchanged. In forward mode nothing is conjugated,
neither for a `jvp` nor for an elementwise rule. A function that is not holomorphic has no such derivative: `linalg.qr`
also depends on the conjugate of its argument. Its rule is written for complex numbers, and its entry says
``conjugate=False``: the rule gets the saved values unchanged. The rule of a complex argument with a real result (`abs`)
gets them unchanged too, without a keyword.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import errors
from ..tensor.modes import LEVELS
from ..tensor.overrides import dispatch, overriding
from ..tensor.tensor import NUMPY, Tensor
from .calls import apply, binary, general, into, join, unary
from .checks import SPELLINGS, checked_call, composite_call
from .nodes import ComplexNode, ComplexTupleNode, CutNode, LateNode, ManyNode, OpNode, TupleNode, saved_attributes
from .operands import older_form, scaled
from .plans import OUTPUT, Plans, Rule, needs
from .samples import NO_PAIR, NO_UNARY, pairs
from .samples import unary as unary_samples

_F = TypeVar("_F", bound=Callable[..., Any])

TABLE: dict[str, Op] = {}
"""Every operation by its name, the path below `pullback`, e.g. ``sin`` or ``linalg.det``."""

NAMES: dict[str, dict[str, Callable[..., Any]]] = {"": {}, "linalg": {}, "fft": {}, "special": {}, "nn.functional": {}}
"""The functions of `pullback` itself ("") and of its modules, by their names there."""

METHODS: dict[str, Any] = {}
"""What operations add to Tensor, by the name there, until `enter_methods` (`tensor_methods.py`) adds it."""

KINDS = ("elementwise", "linear", "bilinear", "special", "composite", "constant")

BATCHES = ("leading", "matrices", "loop", "refused")
"""The names that an entry may give as its `batch`; other ways of `vmap` are functions."""

FACTS_OF_HOMES: dict[str, dict[str, Any]] = {
    "linalg": {"narrow": "one dtype"},
    "special": {"narrow": "whole"},
    "nn.functional": {"narrow": "whole"},
}
"""Defaults of `About` for the entries of a module, by the module."""


_NUMBERS = {"int", "float", "complex", "bool", "str", "None"}


def _words(annotation: Any) -> set[str]:
    """The names of types in an annotation."""
    return {*re.findall(r"\w+", annotation if isinstance(annotation, str) else getattr(annotation, "__name__", ""))}


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class About:
    """The keywords of an entry besides its computation and its rules.

    home: the module below `pullback` that has the function ("linalg"), if not `pullback` itself. also: further names,
    each a path below `pullback`. said: its name in messages, where the user wrote another name. numpy: the NumPy
    functions it differentiates, each with the function that takes its arguments. function: whether it is published as a
    function. method: whether it is a method of Tensor (None: if it is a function of `pullback` itself).

    inplace: whether it has an in-place twin, ``name_`` (None: elementwise operations do); "exact": the twin refuses a
    result of another dtype than the tensor's; a function: what the twin computes, where it is not the operation. out:
    "exact" if a tensor given as ``out=`` must have the dtype of the result, "converted" if the result is converted to
    its dtype (None: a single result is converted, several are not). older: whether its keyword-only numbers may stand
    among the tensors, as in torch's older form of the call.

    view: whether it may share memory with its first argument. contiguous: whether its results lie in memory in the
    order of their axes, however the operands lie (None: all but elementwise operations and views do); if not, they
    lie as NumPy makes them, those of elementwise operations as the operands do. numbers: the arguments named by rules
    that are never tensors, only numbers, strings or tuples of them: a node that saved nothing else can run again, as
    in torch. Leave out arguments that the forward annotates so (``int``, ``bool | None``) and axes that `batch`
    names. None: each call is looked at. shape_from_values: whether the shape of the result depends on values, or a
    function of the arguments that says so.

    node: torch's name of its nodes, where that does not follow from the name of the entry, or a function from the node
    to the name. saved: torch's names of saved values (the part after ``_saved_``), each with our name, or with a
    function whose parameters name the saved values it needs.

    fits: a function that refuses a number among operands of integers, given its place, its value and their dtype
    (None: the number wraps around, as in torch's arithmetic). rounds: whether a number beside tensors of half
    precision has their precision, as bounds have in torch (a number that is computed with keeps its digits).
    narrow: how bfloat16 is handled. "one dtype": its floating point tensors must have the same dtype. "as the
    first": the result is bfloat16 as its first tensor is, whatever the dtype of the others. "itself": it reads
    bfloat16 directly, without conversion to float32. A function: from the given arguments by name to the arguments
    of the computation in float32. A composite with "" is left to its parts; otherwise, also with "whole", it is
    computed in float32 as a whole.

    jvp: the forward-mode rule, where it is better than the one that follows from the kind. Its parameters are named as
    a rule's, but the first is the tuple of tangents: one for each differentiable argument, None where there is none.
    holomorphic: False if the derivative of an elementwise operation of complex numbers is not itself complex (`abs`).
    conjugate: whether its rules get conjugates of the saved values where the result is complex. False if they need the
    values themselves, as the rules of functions that are not holomorphic do (`sgn`, `linalg.qr`).
    cut: whether a rule, for complex results, has a branch cut along the real line (`pow`, because of the logarithm).
    batch: how `vmap` puts an axis in front. "leading": leading axes are a batch anyway. "matrices": the same, for
    arguments of at least two axes. "loop", "refused", or a function, such as ``dims("dim")`` (the arguments it names
    are axes, which move on by one). None: the kind decides, or `vmap` loops. symbolic: the forward in operations that
    `compile` knows, for a forward that uses what only an array has: a function of an example result and of the
    arguments; "call": the forward is one call of the program.

    checks: a function that looks at the arguments of a public call before anything is computed. It has the public
    signature, which may differ from the computation's (see `checks.py`). It raises where the call is wrong. It returns
    all arguments of the computation, or None if they are the arguments it was given. A check of values is done by
    `check_values`, which does it in every mode.

    samples, kinks, refused, differs: its domain (see `samples.py`), lists or functions that return them.
    """

    home: str = ""
    also: str = ""
    said: str = ""
    numpy: Any = None
    function: bool = True
    method: bool | None = None
    inplace: bool | str | Callable[..., Any] | None = None
    out: bool | str | None = None
    older: bool = False
    view: bool = False
    contiguous: bool | None = None
    numbers: str | None = None
    shape_from_values: bool | Callable[..., bool] = False
    node: Any = ""
    saved: Any = ()
    fits: Callable[[int, int, np.dtype[Any]], None] | None = None
    rounds: bool = False
    narrow: str | Callable[[dict[str, Any]], dict[str, Any]] = ""
    jvp: Callable[..., Any] | None = None
    holomorphic: bool = True
    conjugate: bool = True
    cut: bool = False
    batch: Any = None
    checks: Callable[..., Any] | None = None
    symbolic: str | Callable[..., Any] = ""
    samples: Any = ()
    kinks: Any = ()
    refused: Any = ()
    differs: Any = ()


_ABOUT = frozenset(f.name for f in dataclasses.fields(About))


def _divided(kind: str, given: dict[str, Any], params: Sequence[str]) -> tuple[About, dict[str, Rule]]:
    """The keywords of an entry, divided into its `About` and its rules, which are named after arguments.

    The rule of an argument that has the name of a keyword of `About` is given in a dict: ``rules={"out": ...}``.
    """
    apart = given.pop("rules") if isinstance(given.get("rules"), dict) else None
    rules = {**(apart or {}), **{k: v for k, v in given.items() if k not in _ABOUT}}
    both = [k for k in params if k in _ABOUT and callable(given.get(k))]
    if both and apart is None and kind not in ("composite", "constant"):  # these have no rules
        raise TypeError(
            errors.message(
                f"table entry: {both[0]}= may be a fact about the operation or the rule of its argument",
                do=f"give the rule as rules={{{both[0]!r}: ...}}, or call the argument otherwise",
            )
        )
    facts = {k: v for k, v in given.items() if k in _ABOUT}
    return About(**FACTS_OF_HOMES.get(given.get("home", ""), {}) | facts), rules


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
        self.call: Callable[..., Any] = forward  # the function a user calls, once it is entered
        self.unchecked: Callable[..., Any] = forward  # the same for arguments of `forward` that were checked
        self.public = self.params  # the names of a user's arguments
        self.factors: tuple[str, ...] = ()  # numbers that stood among the tensors in torch's older form
        self.view = about.view
        self.exact = {"exact": True, "converted": False}.get(str(about.out))  # how strict `out=` is, if the entry says
        self.written_by = ""  # the operator that its in-place twin implements
        self.floats = floats  # integers are converted to the default floating type first
        self.elementwise = False  # whether it acts on each element alone
        kept = about.view or kind == "composite" if about.contiguous is None else not about.contiguous
        self.contiguous = not kept
        self.joins = False  # whether the first argument is a sequence of tensors
        self.defaults: tuple[Any, ...] = ()
        self.keyword_only: tuple[str, ...] = ()
        self.plans = Plans(self)
        self.bits = tuple((i, 1 << i) for i, p in enumerate(self.params) if p in rules)
        self.differentiable = sum(bit for _, bit in self.bits)
        # the arguments brought to one dtype: those with a derivative, or all where none has one
        self.promoted = tuple(i for i, _ in self.bits) or tuple(range(len(self.params)))
        self.promotes = sum(1 << i for i in self.promoted)
        for arg, rule in rules.items():
            if not hasattr(rule, "__code__"):
                raise TypeError(f"table entry {name!r}: {arg!r} is neither a fact nor the rule of an argument")
            unknown = {n for n in needs(rule) if not OUTPUT.fullmatch(n)}
            unknown -= {*self.params, *(f"{p}_shape" for p in self.params)}
            if arg not in self.params or unknown:
                raise TypeError(
                    f"table entry {name!r}: rule for {arg!r} names {sorted(unknown) or arg}, not an argument"
                )
            _name_rule(rule, f"{name}_rule_for_{arg}")
        self._check_names(name)
        self.title = ""  # torch's name of its nodes, in a copy made by `titled`
        self.constants: dict[str, Any] = {}  # attributes `_saved_...` of its nodes with a fixed value
        self.made: Callable[[Op], Callable[..., Any]] | None = None  # makes a function that calls the entry
        self._titled: dict[Any, Callable[..., Any]] = {}

    def _check_names(self, name: str) -> None:
        """Refuse an entry that names arguments it does not have, or an unknown way of `vmap`."""
        for fact, named in (
            ("batch", getattr(self.about.batch, "names", ())),
            ("numbers", (self.about.numbers or "").split()),
        ):
            unknown = [n for n in named if n not in self.params]
            if unknown:
                raise TypeError(
                    errors.message(
                        f"table entry {name!r}: {fact}= names {', '.join(map(repr, unknown))}",
                        expected=f"some of its arguments, {', '.join(self.params)}",
                        found=" ".join(named),
                        do=f"name in {fact}= the parameters as the forward spells them",
                    )
                )
        if isinstance(self.about.batch, str) and self.about.batch not in BATCHES:
            raise TypeError(
                errors.message(
                    f"table entry {name!r}: no way of vmap is called batch={self.about.batch!r}",
                    expected=f"one of {', '.join(BATCHES)}, or a function",
                    do="where arguments are axes say which: batch=dims('dim')",
                )
            )

    @functools.cached_property
    def _plain(self) -> dict[str, bool]:
        """The arguments that are numbers, by the entry or an annotation; and whether each is certainly real."""
        annotated = {p: _words(a) for p, a in getattr(self.forward, "__annotations__", {}).items()}
        return (
            dict.fromkeys((self.about.numbers or "").split(), False)
            | {p: "complex" not in words for p, words in annotated.items() if words and words <= _NUMBERS}
            | dict.fromkeys(getattr(self.about.batch, "numbers", ()), True)
        )

    @functools.cached_property
    def decides_late(self) -> bool:
        """Whether only a call shows if it saved tensors: the entry does not say which arguments are numbers."""
        if self.about.numbers is not None or self.view or self.joins:
            return False
        unsaid = {*self.params} - {*self.rules} - {*self._plain}
        needed = [needs(rule) for rule in self.rules.values()]
        return any(
            not unsaid.isdisjoint(names) and all(n in unsaid or self.is_number(n) for n in names) for names in needed
        )

    def is_number(self, name: str) -> bool:
        """Whether a value that rules name is a number or a tuple of numbers, not a tensor."""
        if name in self.rules:
            return False
        if name in self.params:
            return name in self._plain or self.view
        return not OUTPUT.fullmatch(name)  # otherwise the shape of an argument

    def is_real(self, name: str) -> bool:
        """Whether a value that rules name is certainly not complex, and not a tensor: a shape, an axis."""
        if name in self.params:
            return name not in self.rules and (self._plain.get(name, False) or self.view)
        return not OUTPUT.fullmatch(name)

    def titled(self, title: str, **saved: Any) -> Callable[..., Any]:
        """A function that calls this entry, with nodes of another name: for a composite of this one operation.

        saved: values that torch's node of that name has as ``_saved_...`` and the name implies.
        """
        key = (title, *saved.items())
        if key not in self._titled:
            assert self.made is not None
            op = copy.copy(self)
            op.about = dataclasses.replace(self.about, node=title)
            op.title, op.constants, op.plans, op._titled = title, saved, Plans(op), {}
            for made in [name for name, value in vars(Op).items() if isinstance(value, functools.cached_property)]:
                op.__dict__.pop(made, None)
            call = self._titled[key] = errors.called(self.made(op), self.name, elementwise=self.elementwise)
            call.op, call.__name__ = op, self.call.__name__  # type: ignore[attr-defined]
        return self._titled[key]

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
        """The class of its nodes where the result is a tuple with a complex number in it."""
        return self._node_class(ComplexTupleNode) if self.about.conjugate else self.tuple_class

    def _node_class(self, base: Any) -> Any:
        title = "".join(part.capitalize() for part in re.split("[._]", self.name.removeprefix("nn.functional.")))
        name = self.about.node if isinstance(self.about.node, str) and self.about.node else f"{title}Backward0"
        named = {"__slots__": (), "op": self, "__module__": __name__}
        constants = {f"_saved_{title}": value for title, value in self.constants.items()}
        bases = (LateNode, base) if self.decides_late else (base,)
        return type(name, bases, {**saved_attributes(self), **constants, **named})

    def domain(self, what: str) -> list[Any]:
        """Its "samples", "kinks", "refused" calls, or the records of where it "differs" from torch."""
        found = getattr(self.about, what)
        return list(found() if callable(found) else found)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Move keyword arguments into their places. NumPy's spellings (axis, keepdims) are understood."""
        places = len(self.params) - len(self.keyword_only)
        required = places - len(self.defaults)
        values: list[Any] = [*args]
        rest: dict[str, Any] = {}
        given: dict[int, Any] = {}
        for name, value in kwargs.items():
            key = name if name in self.params else SPELLINGS.get(name, name)
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
        """All arguments, in order, with defaults for those left out."""
        if len(args) >= len(self.params):
            return args
        if kwargs:
            args += self.tails[len(args)][: -len(self.keyword_only)]
            return (*args, *[kwargs.get(k) for k in self.keyword_only])
        return args + self.tails[len(args)]

    @functools.cached_property
    def tails(self) -> list[tuple[Any, ...]]:
        """The defaults to append, by how many arguments were given; None for keyword-only ones."""
        places, named = len(self.params) - len(self.keyword_only), (None,) * len(self.keyword_only)
        tails = [self.defaults[max(len(self.defaults) - places + n, 0) :] + named for n in range(places)]
        return [*tails, *[named[i:] for i in range(len(named) + 1)]]


def _name_rule(rule: Rule, name: str) -> None:
    """Name a lambda rule after its operation, for tracebacks that pass through it."""
    if rule.__name__ == "<lambda>":
        rule.__code__ = rule.__code__.replace(co_name=name)
        rule.__name__ = name


def titled(call: Callable[..., Any], title: str, **saved: Any) -> Callable[..., Any]:
    """The operation `call` with nodes of another of torch's names: for composites of this one operation.

    saved: values that torch's node has as ``_saved_...`` and the name implies.
    """
    op: Op = call.op  # type: ignore[attr-defined]
    return op.titled(title, **saved)


# How an entry is written --------------------------------------------------------------------------------------------


def _publish(
    op: Op,
    call: Callable[..., Any],
    model: Callable[..., Any],
    made: Callable[[Op], Callable[..., Any]] | None = None,
    unchecked: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Publish the finished operation under its names, with the signature and docstring of `model`.

    made: makes the function that calls an entry like this one, for `Op.titled`. unchecked: that function, for arguments
    that were checked already, where `call` checks them.
    """
    op.made = made or op.made
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
        METHODS[name] = call
    for path in about.also.split():
        home, _, other = path.rpartition(".")
        NAMES[home][other] = call
        if method and not home:
            METHODS[other] = call
    NUMPY.update(about.numpy or {})
    return call


def alias(path: str, call: Callable[..., Any]) -> None:
    """Publish `call` under one more name, a path below `pullback`, as a function only."""
    home, _, name = path.rpartition(".")
    NAMES[home][name] = call


def method(name: str) -> Callable[[_F], _F]:
    """A decorator: make the function, which is no entry of the table, a method of Tensor."""

    def enter(function: _F) -> _F:
        METHODS[name] = function
        return function

    return enter


def elementwise(
    name: str,
    forward: Callable[..., Any],
    doc: str,
    *,
    floats: bool = False,
    dunder: str = "",
    alpha: Callable[[Any, Any], Any] | None = None,
    domain: str = "real",
    **given: Any,
) -> Callable[..., Any]:
    """Enter an elementwise operation of one argument (``input``) or two (``input``, ``other``).

    forward: a function or a ufunc. doc: the docstring, which begins with the formula. floats: integers are converted to
    the default floating type first. dunder: the operator it implements, with its forms, as "add radd iadd". alpha: it
    takes torch's ``alpha``, a factor of `other`; this function multiplies the two. domain: the domain of its samples'
    values, unless `samples` are given. The rest: the keywords that `About` lists, and the rules.
    """
    count = forward.nin if isinstance(forward, np.ufunc) else len(_parameters(forward)[0])
    params = ("input", "other")[:count]
    about, rules = _divided("elementwise", given, params)
    if not about.samples:
        about.samples = functools.partial(unary_samples, domain) if count == 1 else functools.partial(pairs, domain)
    about.refused = about.refused or (NO_UNARY if count == 1 else NO_PAIR)
    op = Op(name, "elementwise" if rules else "constant", forward, params, rules, about, floats=floats)
    op.elementwise, op.contiguous = True, bool(about.contiguous)

    def made(op: Op) -> Callable[..., Any]:
        call = unary(op) if count == 1 else binary(op)
        return call if alpha is None else _with_alpha(op, call, alpha)

    call = made(op)
    operator, *further = dunder.split() or [""]
    for word in dunder.split():
        if word == operator and count == 1:
            METHODS[f"__{word}__"] = call
        elif word in (operator, f"r{operator}"):
            METHODS[f"__{word}__"] = _operator(op, reflected=word in further)
        elif word == f"i{operator}":
            op.written_by = word
        else:
            raise TypeError(f"table entry {name!r}: {word!r} in dunder= is no form of {operator!r}")
    if about.numpy is None and isinstance(forward, np.ufunc):
        about.numpy = {forward: call}
    call.__doc__ = doc
    if about.checks is None:
        return _publish(op, call, call, made)
    return _publish(op, checked_call(op, general), call, made, call)


def _with_alpha(op: Op, plain: Callable[..., Any], product: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The function `plain`, which calls an entry, extended by torch's ``alpha``, a factor of its second argument."""

    def model(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> None:
        """The signature that editors and stubs show."""

    @functools.wraps(model)
    def call(input: Any, other: Any, *older: Any, alpha: Any = 1, out: Any = None) -> Any:
        if older:
            (input, other), given = older_form(op.name, 2, ("alpha",), (input, other, *older))
            alpha = given["alpha"]
        if out is not None:
            return into(out, op, (input, other), {"alpha": alpha} if alpha != 1 else {})
        if LEVELS.n and alpha != 1 and (kinds := overriding((input, other))):
            return dispatch(kinds, op.call, (input, other), {"alpha": alpha})
        return plain(input, other if alpha == 1 else scaled(op.name, input, other, alpha, product))

    return call


def _operator(op: Op, reflected: bool = False) -> Callable[..., Any]:
    """The method for a Python operator, or for its reflected form."""
    return errors.called(binary(op, operator=True, reflected=reflected), op.name, elementwise=True)


def constant(*named: Any, **given: Any) -> Any:
    """Enter an operation whose derivative is zero on purpose: a comparison, a rounding, a position.

    Elementwise: ``constant(name, forward, doc, ...)``, as `elementwise`. Otherwise a decorator, as `special`.
    """
    return elementwise(*named, **given) if named else _entry("constant", given)


def pointwise(**given: Any) -> Any:
    """Enter an elementwise operation of more arguments. Arguments with a rule are brought to one dtype."""

    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("elementwise", forward, given)
        op.elementwise, op.contiguous = True, bool(op.about.contiguous)

        def made(op: Op) -> Callable[..., Any]:
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

            return call

        unchecked = made(op)
        if op.about.checks is None:
            return _publish(op, unchecked, forward, made)
        return _publish(op, checked_call(op, general), forward, made, unchecked)

    return enter


def linear(**given: Any) -> Any:
    """Enter an operation linear in one argument; its rule is the adjoint."""
    return _entry("linear", given)


def bilinear(**given: Any) -> Any:
    """Enter an operation that is linear in each of two arguments; its rules are the two adjoints."""
    return _entry("bilinear", given)


def special(**given: Any) -> Any:
    """Enter an operation with a vjp of its own for each differentiable argument."""
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
    """Enter an operation that joins a sequence of tensors. Its one rule returns all their gradients."""

    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("linear", forward, {"method": False, **given})
        op.joins = True

        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Tensor:
            if kwargs or len(args) not in (1, 2):
                return unusual(args, kwargs)
            return join(op, args[0], args[1] if len(args) == 2 else op.defaults[0])

        def unusual(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
            out = kwargs.pop("out", None) if "out" not in op.params else None
            if not args and op.params[0] not in kwargs:
                raise TypeError(f"{op.name}() missing 1 required positional argument: {op.params[0]!r}")
            if len(args) > 2:
                raise TypeError(f"{op.name}() takes from 1 to 2 positional arguments but {len(args)} were given")
            args = op.padded(op.bind(args, kwargs)[0], {})
            return join(op, *args) if out is None else into(out, op, args, {})

        return _publish(op, call, forward)

    return enter


def _entry(kind: str, given: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature(kind, forward, given)

        def made(op: Op) -> Callable[..., Any]:
            @functools.wraps(forward)
            def call(*args: Any, **kwargs: Any) -> Any:
                return apply(op, args, kwargs)

            return call

        unchecked = made(op)
        if op.about.checks is None:
            return _publish(op, unchecked, forward, made)
        return _publish(op, checked_call(op, apply), forward, made, unchecked)

    return enter


def _from_signature(kind: str, forward: Callable[..., Any], given: dict[str, Any]) -> Op:
    params, defaults, keyword_only = _parameters(forward)
    name = given.pop("name") if isinstance(given.get("name"), str) else forward.__name__.rstrip("_") or "_"
    about, rules = _divided(kind, given, params)
    op = Op(name, kind, forward, params, rules, about)
    op.defaults, op.keyword_only = defaults, keyword_only
    return op


def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[Any, ...], tuple[str, ...]]:
    """A function's parameters: their names, the defaults of positional ones, and the keyword-only names."""
    code = getattr(function, "__code__", None)
    if code is None:  # not a plain function: a partial, a builtin
        found = inspect.signature(function).parameters.values()
        return tuple(p.name for p in found if p.kind is not p.KEYWORD_ONLY), (), ()
    places, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    return names[:total], function.__defaults__ or (), names[places:total]

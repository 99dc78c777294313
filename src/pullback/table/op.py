"""`Op`: one entry of the table, and `About`: the keywords of an entry besides its computation and its rules.

The rest of the table knows entries, but an entry does not know how it is written, called or recorded: this file imports
no other of its folder. `entry.py` has the decorators that write entries.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import errors

KINDS = ("elementwise", "linear", "bilinear", "special", "composite", "constant")

BATCHES = ("leading", "matrices", "loop", "refused")
"""The names that an entry may give as its `batch`; other ways of `vmap` are functions."""

NARROW_OF_HOMES = {"linalg": "one dtype", "special": "whole", "nn.functional": "whole"}
"""The default of `About.narrow`, the handling of bfloat16, for the entries of a module."""

NO_OUT = ("nn.functional", "masked")
"""The modules whose entries take no ``out=``, unless they say so."""

SPELLINGS: dict[str, str] = {}
"""Other spellings of arguments, for every operation: `ops` fills in NumPy's names for torch's."""

Rule = Callable[..., Any]

OUTPUT = re.compile(r"out\d*")
"""A rule's names for the result, or for one of several."""


def needs(rule: Rule) -> tuple[str, ...]:
    """The values a rule needs besides the cotangent: the names of its parameters after the first."""
    code = rule.__code__
    return code.co_varnames[1 : code.co_argcount]


_NUMBERS = {"None", *(number.__name__ for number in (int, float, complex, bool, str))}


def _words(annotation: Any) -> set[str]:
    """The names of types in an annotation."""
    return {*re.findall(r"\w+", annotation if isinstance(annotation, str) else getattr(annotation, "__name__", ""))}


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class About:
    """The keywords of an entry besides its computation and its rules.

    home: the module below `pullback` that has the function ("linalg"), if not `pullback` itself. also: further names,
    each a path below `pullback`. said: its name in messages, if the user's call has another name. numpy: the NumPy
    functions it differentiates, each with the function that takes its arguments. function: whether it is published as a
    function. method: whether it is a method of Tensor (None: if it is a function of `pullback` itself). front: whether
    users call it through a function of another signature, which the decorator `front` publishes under these names.

    inplace: whether it has an in-place twin, ``name_`` (None: elementwise operations do); "exact": the twin refuses a
    result whose dtype is not the tensor's; a function: the computation of the twin, if it is not the operation's.
    out: "exact" if a tensor given as ``out=`` must have the dtype of the result, "converted" if the result is converted
    to its dtype; True: a single result is converted, several are not. The name of an argument: it says the dtype of the
    result, which is that of `out` if it is not given. False: there is no ``out=``. None: False for views and in the
    modules of `NO_OUT`, else True.
    truths: the arguments declared as ``bool`` that may be anything, by whether it is true, as in torch's functions that
    are written in Python.
    older: whether its keyword-only numbers may stand among the tensors, as in torch's older form of the call.

    view: whether it may share memory with its first argument. contiguous: whether its results lie in memory in the
    order of their axes, for every layout of the operands (None: all except elementwise operations and views); if not,
    they have NumPy's layout, those of elementwise operations that of the operands.

    numbers: the arguments named by rules that are never
    tensors, only numbers, strings or tuples of them: a node that saved nothing else can run again, as in torch. Leave
    out arguments that the forward annotates so (``int``, ``bool | None``) and axes that `batch` names. None: it is
    decided for each call. shape_from_values: whether the shape of the result depends on values, or a function of the
    arguments that says so.

    node: torch's name of its nodes, if it does not follow from the entry's name, or a function from the node to the
    name. saved: torch's names of saved values (the part after ``_saved_``), each with our name, or with a function
    whose parameters name the saved values it needs.

    fits: a function that refuses a number among operands of integers, given its place, its value and their dtype (None:
    the number wraps around, as in torch's arithmetic). rounds: whether a number next to tensors of half precision is
    rounded to it, as bounds are in torch (a number in arithmetic keeps its digits). scalars: the arguments that are
    numbers the computation brings to the dtype of its floating point tensors, which is float32 beside 16 bits; bounds:
    those that it brings to the very dtype of the tensors. A finite one that this dtype cannot hold is refused by the
    door, as it would become infinite. narrow: how bfloat16 is handled.
    "one dtype": its floating point tensors must have the same dtype. "as the first": the result is bfloat16 if its
    first tensor is, for every dtype of the others. "with the first": so too, and no other tensor is bfloat16 unless the
    first is. "itself": it reads bfloat16 directly, without conversion to
    float32. A function: from the given arguments by name to the arguments of the computation in float32. A composite
    with "" is left to its parts; otherwise, also with "whole", it is computed in float32 as a whole. None: as
    `NARROW_OF_HOMES` says.

    alone: whether users get the first of its results alone. The others are for its rules, and for a second derivative,
    which then comes to the node without a gradient of the first: no hook on it is called.

    flat: whether its derivative is constant piece by piece: as in torch it depends on the operand all the same, with a
    second derivative of zero, so that code that differentiates twice need not know.

    jvp: the forward-mode rule, if it is better than the one that follows from the kind. Its parameters are named like a
    rule's, but the first is the tuple of tangents: one for each differentiable argument, or None. series: the rule of
    Taylor mode, where it is faster than what follows from the derivative: "product" of its two arguments, or a function
    of a `Series`, of the arguments and of the result (see `interpreters/series_rules.py`). holomorphic: False if
    the derivative of an elementwise operation of complex numbers is not itself complex (`abs`). conjugate: whether its
    rules get conjugates of the saved values if the result is complex. False if they need the values themselves, as the
    rules of functions that are not holomorphic do (`sgn`, `linalg.qr`). cut: whether a rule, for complex results, has a
    branch cut along the real line (`pow`, because of the logarithm). batch: the way `vmap` puts an axis in front.
    "leading": leading axes are a batch anyway. "matrices": the same, for arguments of at least two axes. "loop",
    "refused", or a function, such as ``dims("dim")`` (the arguments it names are axes, which move on by one). None: the
    kind decides, or `vmap` loops. symbolic: the forward in operations that `compile` knows, for a forward that works on
    arrays alone: a function of an example result and of the arguments; "call": the forward is one call of the program.
    fused: whether the forward and the rules run as loops in C on large arrays, where there is a compiler; of a
    composite, whether its parts do.

    checks: a function that examines the arguments of a public call before anything is computed. It has the public
    signature, which may differ from the computation's (see `checks.py`). It raises if the call is wrong. It returns all
    arguments of the computation, or None for the arguments as passed. A check of values is done by `check_values`,
    which does it in every mode.

    samples, kinks, refused, differs: its domain (see `samples.py`), as lists or functions that return lists.
    """

    home: str = ""
    also: str = ""
    front: bool = False
    said: str = ""
    numpy: Any = None
    function: bool = True
    method: bool | None = None
    inplace: bool | str | Callable[..., Any] | None = None
    out: bool | str | None = None
    truths: str = ""
    older: bool = False
    view: bool = False
    contiguous: bool | None = None
    numbers: str | None = None
    shape_from_values: bool | Callable[..., bool] = False
    node: Any = ""
    saved: Any = ()
    fits: Callable[[int, int, np.dtype[Any]], None] | None = None
    rounds: bool = False
    scalars: str = ""
    bounds: str = ""
    narrow: str | Callable[[dict[str, Any]], dict[str, Any]] | None = None
    alone: bool = False
    flat: bool = False
    jvp: Callable[..., Any] | None = None
    series: str | Callable[..., Any] | None = None
    holomorphic: bool = True
    conjugate: bool = True
    cut: bool = False
    batch: Any = None
    checks: Callable[..., Any] | None = None
    symbolic: str | Callable[..., Any] = ""
    fused: bool = False
    samples: Any = ()
    kinks: Any = ()
    refused: Any = ()
    differs: Any = ()


_ABOUT = frozenset(f.name for f in dataclasses.fields(About))


def divided(kind: str, given: dict[str, Any], params: Sequence[str]) -> tuple[About, dict[str, Rule]]:
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
    about = About(**facts)
    if about.narrow is None:
        about.narrow = NARROW_OF_HOMES.get(about.home, "")
    return about, rules


class Over:
    """The entry that puts values over all of a tensor, called as ``put(input, values)``; `assembly.py` puts it here."""

    op: ClassVar[Op]


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
        self.call: Callable[..., Any] = forward  # the public function, once it is entered
        self.unchecked: Callable[..., Any] = forward  # the same, for checked arguments of `forward`
        self.public = self.params  # the names of a user's arguments
        self.places = len(self.params)  # how many of them may be given by place
        self.variadic, self.whole = False, 0  # any number by place; the first place of an integer (`door.py`)
        self.kinds: dict[str, Any] = {}  # what its public signature declares (see `door.py`)
        self.admitted: set[tuple[Any, ...]] = set()  # types of arguments that the door admitted
        self.factors: tuple[str, ...] = ()  # numbers that stood among the tensors in torch's older form
        self.view, self.fused = about.view, about.fused
        named = isinstance(about.out, str) and about.out not in ("exact", "converted")
        self.typed_by = str(about.out) if named else ""  # the argument that says the dtype of the result
        self.exact = True if self.typed_by else {"exact": True, "converted": False}.get(str(about.out))  # as for `out=`
        self.takes_out = (
            about.out if type(about.out) is bool else about.out is not None or not (about.view or about.home in NO_OUT)
        )
        self.written_by = ""  # the operator that its in-place twin implements
        self.floats = floats  # integers are converted to the default floating type first
        self.elementwise = False  # whether it acts on each element alone
        kept = about.view or kind == "composite" if about.contiguous is None else not about.contiguous
        self.contiguous = not kept
        self.joins = False  # whether the first argument is a sequence of tensors
        self.defaults: tuple[Any, ...] = ()
        self.keyword_only: tuple[str, ...] = ()
        self.plans: Any = None  # the `Plans` of its calls (see `nodes.py`), made when it is entered
        self.bits = tuple((i, 1 << i) for i, p in enumerate(self.params) if p in rules)
        self.differentiable = sum(bit for _, bit in self.bits)
        # the arguments brought to one dtype: those with a derivative, or all if none has one
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
        self.place = ""  # the file and line that enter it
        self.title = ""  # torch's name of its nodes, in a copy made by `titled`
        self.constants: dict[str, Any] = {}  # attributes `_saved_...` of its nodes with a fixed value
        self.made: Callable[[Op], Callable[..., Any]] | None = None  # makes a function that calls the entry
        self.copies: dict[Any, Callable[..., Any]] = {}  # the functions that `titled` made

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
            | {p: complex.__name__ not in words for p, words in annotated.items() if words and words <= _NUMBERS}
            | dict.fromkeys(getattr(self.about.batch, "numbers", ()), True)
        )

    @functools.cached_property
    def decides_late(self) -> bool:
        """Whether only a call shows if it saved tensors: the entry does not say which arguments are numbers, or an
        argument with a gradient may be one."""
        if not self._plain.keys().isdisjoint(self.rules):
            return True
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

    def copy(self, title: str, constants: dict[str, Any]) -> Op:
        """The same entry with nodes of another name, which have `constants` as attributes ``_saved_...``."""
        op = copy.copy(self)
        op.about = dataclasses.replace(self.about, node=title)
        op.title, op.constants, op.copies = title, constants, {}
        for made in [name for name, value in vars(Op).items() if isinstance(value, functools.cached_property)]:
            op.__dict__.pop(made, None)
        return op

    def domain(self, what: str) -> list[Any]:
        """Its "samples", "kinks", "refused" calls, or the records of its differences from torch ("differs")."""
        found = getattr(self.about, what)
        return list(found() if callable(found) else found)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Move keyword arguments to their positions. NumPy's spellings (axis, keepdims) are understood."""
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

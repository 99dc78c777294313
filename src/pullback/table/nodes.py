"""The nodes of built-in operations, which run the rules on the saved values, and their plans.

A `Plan` says, for one set of wanted gradients, which values a node saves and which ones each rule gets: the names of a
rule's parameters say what it needs (see `entry.py`). It is made when that set is wanted for the first time. It
generates the functions that every recorded call runs: one that saves, one that calls the rules.
"""

from __future__ import annotations

import copy
import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from .. import errors
from ..autograd.engine import fit
from ..autograd.node import FREED, AccumulateGrad, Node
from ..autograd.saved import Packed, PackedTuple, SavedTensor, check_memory, pack_all, second_backward, written_since
from ..tensor import dtypes
from ..tensor.memory import WRITES, LevelPayload, View, is_written_since
from ..tensor.modes import thread
from ..tensor.tensor import Tensor, is_tracked, wrap
from ..tensor.views import before_write
from .op import OUTPUT, Op, Over, Rule, needs


class OpNode(Node):
    """A recorded call of an entry: its plan, and the values that plan saved.

    While the counter `WRITES` is the same as when the node was made, no tensor was written to, and versions need not be
    compared.
    """

    __slots__ = ("plan", "saved", "versions", "writes")

    op: Op
    plan: Plan
    saved: Sequence[Any]
    versions: tuple[int, ...] | None
    writes: int

    @property
    def _alone(self) -> bool:
        return self.op.about.alone

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        values, plan = self.saved, self.plan
        if not plan.plain:
            if taped or self.writes != WRITES.n or values is FREED:
                self.check()
            if not keep:
                self.saved = FREED
            if plan.direct is not None and not taped and type(values[0]) is Tensor:
                return (plan.direct(g, values[0]._data),)
            if taped or type(values) is PackedTuple:
                values = self.values(values, taped)
                if taped and self.op.about.flat:
                    g = beside(g, values)
            else:
                values = [v._data if isinstance(v, Tensor) else v for v in values]
        if plan.only is not None:  # certainly wanted, or the node would not run
            return (plan.only(g, *values),)
        if needed is None:
            return plan.gradients(g, values)
        sent = []  # no comprehension: it would be one more call
        for (rule, pick), edge in zip(plan.calls, self._edges):  # noqa: B905 - a keyword costs on the hot path
            sent.append(rule(g, *pick(values)) if edge[0] in needed else None)  # type: ignore[index]
        return sent

    def values(self, saved: Sequence[Any], taped: bool) -> Sequence[Any]:
        """The saved values as the rules get them: payloads or, when taped, Tensors."""
        if type(saved) is PackedTuple:
            saved = saved.unpacked(self)
        if not taped:
            return [v._data if isinstance(v, Tensor) else v for v in saved]
        return [self._output(v) if isinstance(v, Tensor) and type(v._view) is SavedOutput else v for v in saved]

    def _kept(self) -> Any:
        """The saved values, packed or not; FREED once they were dropped."""
        return self.saved

    def _pack(self, pack: Any, unpack: Any, only: int | None = None) -> None:
        """Have hooks pack the saved values, or the one numbered `only`. If all, versions are no longer checked."""
        self.saved = pack_all(self.saved, lambda i, v: _place(v), pack, unpack, only)
        if only is None:
            self.versions = None

    def check(self) -> None:
        """Raise if the saved values were freed, or written to since."""
        saved = self.saved
        if saved is FREED:
            raise second_backward(self)
        for i, value in enumerate(saved):
            version = value._version_of if isinstance(value, Tensor) else None
            expected = 0 if self.versions is None else self.versions[i]
            if version is not None and version.n != expected and is_written_since(value, expected):
                raise written_since(self, value, expected)
        if self.writes < WRITES.detached:
            self._refuse_detached()
        if WRITES.moved < self._order:
            check_memory(self, saved)

    def _refuse_detached(self) -> None:
        """Raise if a saved argument lost its place in the graph, and so its derivative."""
        edges = dict(zip(self.plan.wanted, self._edges, strict=False))
        for name, value in zip(self.plan.names, self.saved, strict=False):
            if isinstance(value, Tensor) and value._edge is None and type(value._view) is not SavedOutput:
                edge = edges.get(self.op.params.index(name) if name in self.op.params else -1)
                if edge is not None and not isinstance(edge[0], AccumulateGrad):
                    raise RuntimeError(
                        f"Trying to use a saved tensor that has been detached in-place: {self.name()} saved {name!r}, "
                        "which then left the graph by detach_().\n"
                        "  What to do: use detach() instead, which leaves the tensor as it is."
                    )

    def _output(self, saved: Tensor) -> Tensor:
        """This node's saved result with its place in the graph; it is saved without, to avoid a reference cycle."""
        out = wrap(saved._data)
        assert saved._view is not None
        out._version_of = saved._version_of
        out._edge = (self, saved._view.args[0], out._data.shape, out._data.dtype)
        out._requires_grad = True
        return out

    def name(self) -> str:
        """The name a repr shows: torch's name of the node, e.g. ``MulBackward0``."""
        named = self.op.about.node
        return named(self) if callable(named) else type(self).__name__

    def saved_as(self, name: str) -> Any:
        """The value saved under a rule's parameter name: a number or a tuple of numbers."""
        return self.saved[self.plan.names.index(name)]

    def __call__(self, *gradients: Any) -> Any:
        """The gradients this node sends on, given those of its outputs: one, or a tuple.

        No hook is called, nothing is accumulated, and no saved value is freed.
        """
        if len(gradients) != self._outputs:
            raise TypeError(f"{self.name()} expected {self._outputs} arguments, got {len(gradients)} instead")
        for i, g in enumerate(gradients):
            if g is not None and not isinstance(g, Tensor):
                raise TypeError(f"{self.name()}: argument {i} is not a Tensor but {type(g).__name__}")
        sent: Sequence[Any] = [None] * len(self._edges)
        if any(g is not None for g in gradients):
            given = list(gradients) if self._outputs > 1 else gradients[0]
            made = zip(self._run(given, True, None, True), self._edges, strict=True)
            sent = [g if g is None or edge is None else fit(g, edge, self) for g, edge in made]
        each = iter(sent)
        found = tuple(None if following is None else next(each) for following, _ in self.next_functions)
        return found[0] if len(found) == 1 else found

    def saved_under(self, title: str) -> Any:
        """The value of ``_saved_<title>``: a saved argument or result, or a value computed from saved ones."""
        known = self._known_as(title)
        found = [self._value_of(self._number_of(name, title)) for name in _names_in(known)]
        return known(*found) if callable(known) else found[0]

    def raw_saved_under(self, title: str) -> SavedTensor:
        """The value of ``_raw_saved_<title>``, which registers hooks on the saved value."""
        numbers = [self._number_of(name, title) for name in _names_in(self._known_as(title))]
        return SavedTensor(self, numbers[0] if len(numbers) == 1 else None)

    def __dir__(self) -> list[str]:
        """The attributes; among the ``_saved_`` names, only those with a saved value."""
        return [name for name in super().__dir__() if not self._lacks(name)]

    def _lacks(self, name: str) -> bool:
        _, is_saved, title = name.partition("_saved_")
        if not is_saved or not isinstance(getattr(type(self), name), property):
            return False
        known = self._known_as(title)
        try:
            numbers = [self._number_of(each, title) for each in _names_in(known)]
            if callable(known) and known is SAVED_NAMES.get(title) and self.saved is not FREED:
                self.saved_under(title)  # computed from a shape, so nothing is unpacked
        except (AttributeError, IndexError):  # IndexError: the shape lacks that axis
            return True
        return all(number is None for number in numbers)

    def _known_as(self, title: str) -> str | Callable[..., Any]:
        """Our name (or function) for torch's name of a saved value: the entry's, the common one, or the same name."""
        own = dict(self.op.about.saved)
        if title in own or title in self.plan.names:
            return own.get(title, title)
        return SAVED_NAMES.get(title, title)

    def _number_of(self, name: str, title: str) -> int | None:
        """The number of a saved value; None for a value that the wanted gradients do not need."""
        spellings = name.split()
        for spelling in spellings:
            if spelling in self.plan.names:
                return self.plan.names.index(spelling)
        if any(spelling in self.op.rules for spelling in (title, *spellings)):
            return None
        kept = ", ".join(f"_saved_{n}" for n in self.plan.names) or "nothing"
        raise AttributeError(f"{self.name()} has no attribute '_saved_{title}'; it saved {kept}")

    def _value_of(self, number: int | None) -> Any:
        """The saved value of that number. The others stay packed."""
        if number is None:
            return None
        self.check()
        one = (self.saved[number],)
        return OpNode.values(self, PackedTuple(one) if type(self.saved) is PackedTuple else one, True)[0]

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors the rules will need."""
        self.check()
        return tuple(v for v in OpNode.values(self, self.saved, True) if isinstance(v, Tensor))

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        edges = dict(zip(self.plan.wanted, self._edges, strict=True))
        slots = [i for i, p in enumerate(self.op.params) if p in self.op.rules]
        found = [edges.get(i) for i in slots]
        return tuple((None, 0) if e is None else (e[0], e[1]) for e in found)


def beside(g: Any, values: Sequence[Any]) -> Any:
    """What the rule of an entry that is `flat` gets: `g`, which depends on tracked `values` with the derivative 0."""
    if thread.modes.grad_enabled:
        for v in values:
            if isinstance(v, Tensor) and is_tracked(v) and (v.shape, v.dtype) == (g.shape, g.dtype):
                return Over.op.unchecked(v, g)
    return g


SAVED_NAMES: dict[str, str | Callable[..., Any]] = {}
"""For attributes ``_saved_...`` of any node: the names that the value may be saved under here, or a function of saved
values, named by its parameters, that computes it. `ops` fills in torch's names. An entry may add names
(`About.saved`)."""


def saved_attributes(op: Op) -> dict[str, property]:
    """Attributes for the class of an operation's nodes: ``_saved_<argument>`` and the like, also by torch's names.

    They are properties, because a ``__getattr__`` would slow down every attribute of a node.
    """
    titles = {*op.params, *(f"{p}_shape" for p in op.params), "out", *SAVED_NAMES, *dict(op.about.saved)}
    return {name: found for title in titles for name, found in _saved_and_raw(title)}


@functools.cache
def _saved_and_raw(title: str) -> tuple[tuple[str, property], ...]:
    return (
        (f"_saved_{title}", property(partial(OpNode.saved_under, title=title))),
        (f"_raw_saved_{title}", property(partial(OpNode.raw_saved_under, title=title))),
    )


def _names_in(known: str | Callable[..., Any]) -> tuple[str, ...]:
    """The names of the saved values behind an attribute."""
    if isinstance(known, str):
        return (known,)
    code = known.__code__
    return code.co_varnames[: code.co_argcount]


def dims_of(dim: Any) -> Any:
    """Dimensions as torch's nodes have them: a tuple, even for a single one."""
    return (dim,) if isinstance(dim, int) else dim


def tensor_of(value: Any) -> Any:
    """A saved operand as torch's nodes have it: a tensor, even if it was a number."""
    return wrap(np.asarray(value)) if isinstance(value, (bool, int, float, complex)) else value


def _place(value: Tensor) -> int | None:
    """The number of a saved tensor among its own node's results, or None."""
    return value._view.args[0] if type(value._view) is SavedOutput else None


class ComplexNode(OpNode):
    """A recorded call with a complex result: its rules get the conjugates of the saved values."""

    __slots__ = ()

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        plan, saved = self.plan, self.saved
        self.check()
        if plan.frees and not keep:
            self.saved = FREED
        values = conjugated(self.values(saved, taped))
        if needed is None or plan.only is not None:
            return plan.gradients(g, values)
        chosen = zip(plan.calls, self._edges, strict=True)
        return [rule(g, *pick(values)) if edge[0] in needed else None for (rule, pick), edge in chosen]  # type: ignore[index]


class CutNode(ComplexNode):
    """A `ComplexNode` whose rules have a branch cut along the real line. They get real numbers as complex ones, so that
    the sign of the imaginary zero shows the side of the cut that a conjugate lies on."""

    __slots__ = ()

    def values(self, saved: Sequence[Any], taped: bool) -> Sequence[Any]:
        return [v if v is None or _is_complex(v) else np.add(v, 0j) for v in super().values(saved, taped)]


def conjugated(values: Sequence[Any]) -> list[Any]:
    """The values with complex ones conjugated, as rules get them if the result is complex."""
    return [np.conj(v) if _is_complex(v) else v for v in values]


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex) or getattr(value, "dtype", None) in _COMPLEX


_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128), dtypes.complex64, dtypes.complex128)


class LateNode:
    """A base class of nodes, for entries that do not say which arguments are numbers.

    A backward pass frees the saved values only if there are tensors among them. So a node that saved only numbers can
    run again.
    """

    __slots__ = ()

    saved: Any

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        return super()._run(g, taped, needed, keep or not _holds_data(self.saved))  # type: ignore[misc]


def _holds_data(saved: Any) -> bool:
    """Whether a node saved tensors or arrays, packed by hooks or not; also True if they were freed."""
    if isinstance(saved, (tuple, list)):
        return any(map(_holds_data, saved))
    return saved is FREED or isinstance(saved, (Tensor, np.ndarray, LevelPayload, Packed))


class ManyNode(OpNode):
    """A recorded call on a sequence of tensors (`cat`, `stack`): one rule gives all their gradients."""

    __slots__ = ()

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        return self.plan.only(g, *self.saved)  # only sizes are saved: nothing can be freed or written to

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return Node.next_functions.fget(self)  # type: ignore[attr-defined]


class TupleNode(OpNode):
    """A recorded call with several results: its rules get a list of cotangents, with None for missing ones."""

    __slots__ = ("_outputs",)


class ComplexTupleNode(ComplexNode):
    """A `TupleNode` with a complex number among its results."""

    __slots__ = ("_outputs",)


def note_versions(node: OpNode) -> None:
    """Note the versions of the tensors a node saved, None if none was ever written to: they must be the same when it
    runs. An element is saved by its value: a program for arrays overwrites it as the number that it would be there.
    """
    node.versions = None
    for value in node.saved:
        if isinstance(value, Tensor) and (memory := value._version_of) is not None and (memory.n or _is_element(value)):
            node.saved = saved = tuple([before_write(v) if _is_element(v) else v for v in node.saved])
            versions = tuple([v._version if isinstance(v, Tensor) else 0 for v in saved])
            node.versions = versions if any(versions) else None
            return


def _is_element(value: Any) -> bool:
    """Whether a value that is to be saved is a tensor without axes that is a view."""
    return (
        isinstance(value, Tensor)
        and (how := value._view) is not None
        and how.op is not None
        and type(value._data) is np.ndarray
        and not value._data.ndim
    )


class SavedOutput(View):
    """Marks a saved tensor as the detached alias of the node's own result, and holds the number of that result.

    The alias is not a real view, and only the node holds it, so node and result form no reference cycle.
    """

    __slots__ = ()

    base: Any = None

    def __init__(self, number: int) -> None:
        self.args = (number,)
        self.parent = self.op = None  # type: ignore[assignment]
        self.made, self.reached = "", math.inf


SAVED_OUTPUTS = tuple(SavedOutput(i) for i in range(8))


def detached(out: Tensor, number: int = 0) -> Tensor:
    """A node's own result as the node saves it."""
    alias = wrap(out._data)
    alias._version_of = out._share_version()
    alias._view = SAVED_OUTPUTS[number]
    return alias


# Plans ----------------------------------------------------------------------------------------------------------------


class Plan:
    """For one set of wanted gradients: the values to save, and the ones each rule gets."""

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

    def __init__(self, plans: Plans, mask: int) -> None:
        op = plans.op
        self.wanted = tuple(i for i in range(len(op.params)) if mask >> i & 1)
        rules = [op.rules[op.params[i]] for i in self.wanted]
        names = list(dict.fromkeys(n for rule in rules for n in needs(rule)))
        if len(rules) > 1:
            names.sort(key=lambda n: op.params.index(n) if n in op.params else len(op.params))
        self.names = tuple(names)  # of the saved values
        # whether tensors are saved, which a backward pass frees; a node that saved none can run again, as in torch
        self.frees = not all(op.is_number(n) for n in names)
        self.plain = not self.frees and not op.joins  # the rules get the saved values: no tensors, not packed
        self.node_class = plans.node_class
        self.complex_class = plans.node_class if all(map(op.is_real, names)) else plans.complex_class
        self.save = _saver(op, names)
        self.calls = tuple((rule, _picker([names.index(n) for n in needs(rule)])) for rule in rules)
        self.gradients = _all_of(rules, names)
        # a single rule gets the saved values directly; often there is only one value
        self.only: Any = rules[0] if len(rules) == 1 else None
        self.direct = self.only if len(names) == 1 else None
        # for operations of two arguments: 1, 2 or 3 if exactly the first, the second or both are saved, 0 for none,
        # -1 for more
        places = tuple(op.params.index(n) if n in op.params else -1 for n in names)
        self.from_operands = {(): 0, (0,): 1, (1,): 2, (0, 1): 3}.get(places, -1) if len(op.params) == 2 else -1

    def changed(self, change: Callable[[Rule], Rule]) -> Plan:
        """A plan that saves the same values, and calls what `change` makes of each rule."""
        rules = {rule: change(rule) for rule, _ in self.calls}
        made = copy.copy(self)
        calls = made.calls = tuple([(rules[rule], pick) for rule, pick in self.calls])
        made.only, made.direct = (rule and rules[rule] for rule in (self.only, self.direct))
        made.gradients = lambda g, saved: tuple([rule(g, *pick(saved)) for rule, pick in calls])
        return made


class Plans(dict[int, Plan]):
    """The plans of an entry, by the arguments that want gradients (as bits), and the classes of its nodes.

    Each is made when first needed.
    """

    def __init__(self, op: Op) -> None:
        self.op = op

    def __missing__(self, mask: int) -> Plan:
        plan = self[mask] = Plan(self, mask)
        return plan

    @functools.cached_property
    def node_class(self) -> type[OpNode]:
        """The class of its nodes."""
        return self._made(ManyNode if self.op.joins else OpNode)

    @functools.cached_property
    def complex_class(self) -> type[OpNode]:
        """The class of its nodes where the result is complex."""
        if self.op.joins or not self.op.about.conjugate:
            return self.node_class
        return self._made(CutNode if self.op.about.cut else ComplexNode)

    @functools.cached_property
    def tuple_class(self) -> type[TupleNode]:
        """The class of its nodes where the result is a tuple."""
        return self._made(TupleNode)

    @functools.cached_property
    def complex_tuple_class(self) -> type[TupleNode | ComplexTupleNode]:
        """The class of its nodes where the result is a tuple with a complex number in it."""
        return self._made(ComplexTupleNode) if self.op.about.conjugate else self.tuple_class

    def _made(self, base: Any) -> Any:
        op = self.op
        title = "".join(part.capitalize() for part in re.split("[._]", op.name.removeprefix("nn.functional.")))
        name = op.about.node if isinstance(op.about.node, str) and op.about.node else f"{title}Backward0"
        named = {"__slots__": (), "op": op, "__module__": __name__}
        constants = {f"_saved_{title}": value for title, value in op.constants.items()}
        bases = (LateNode, base) if op.decides_late else (base,)
        return type(name, bases, {**saved_attributes(op), **constants, **named})


def under_title(op: Op, title: str, contiguous: bool = False, **saved: Any) -> Callable[..., Any]:
    """A function that calls an entry, with nodes of another name: for an operation that is this one under a title.

    saved: values that torch's node of that name has as ``_saved_...`` and the name implies.
    """
    key = (title, contiguous, *saved.items())
    if key not in op.copies:
        assert op.made is not None
        other = op.copy(title, saved)
        other.plans, other.contiguous = Plans(other), op.contiguous or contiguous
        other.unchecked = op.made(other)
        found = op.copies[key] = errors.called(other.unchecked, op.name, elementwise=op.elementwise)
        found.op, found.__name__ = other, op.call.__name__  # type: ignore[attr-defined]
    return op.copies[key]


def _saver(op: Op, names: Sequence[str]) -> Callable[[Sequence[Any], Any], tuple[Any, ...]]:
    """A function from all arguments of a call and its result to the tuple of values saved under `names`.

    It is generated and compiled because every recorded call goes through it.
    """
    places = {p: i for i, p in enumerate(op.params)}

    def source(name: str) -> str:
        if name in places:
            return f"args[{places[name]}]"
        if name == "out":
            return "detached(out)"
        if OUTPUT.fullmatch(name):
            number = int(name.removeprefix("out"))
            return f"detached(out[{number}], {number})"
        shaped = f"args[{places[name.removesuffix('_shape')]}]"
        return f"tuple([t._data.shape for t in {shaped}])" if op.joins else f"{shaped}._data.shape"

    return _written("args, out", names and map(source, names), {"detached": detached})


def _all_of(rules: Sequence[Rule], names: Sequence[str]) -> Callable[[Any, Sequence[Any]], tuple[Any, ...]]:
    """A function from a cotangent and the values saved under `names` to the gradients that `rules` return."""
    known = {f"rule{i}": rule for i, rule in enumerate(rules)}
    values = [", ".join(["g", *(f"saved[{names.index(n)}]" for n in needs(rule))]) for rule in rules]
    return _written("g, saved", [f"{rule}({given})" for rule, given in zip(known, values, strict=True)], known)


def _written(params: str, parts: Iterable[str], known: dict[str, Any]) -> Any:
    """A function of `params` that returns the tuple of `parts`: expressions in `params` and the `known` names."""
    source = f"lambda {params}: ({''.join(f'{part}, ' for part in parts)})"
    return eval(compile(source, f"{__file__} (written)", "eval"), {"__name__": __name__, **known})


def _picker(indices: list[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A fast function from a tuple to the tuple of some of its elements."""
    if not indices:
        return itemgetter(slice(0))
    if len(indices) == 1:
        return itemgetter(slice(indices[0], indices[0] + 1))
    return itemgetter(*indices)


# Large calls in C, by loops that `compile/eager/kernel.py` makes of the entry's own functions, loaded at the first call


class Fused:
    """Whether large calls run in C (`pullback.backends.fused`), and what makes the loops; `assembly.py` puts it here.

    kernel: called with a function of arrays, the name of its entry, and whether that is elementwise. What it returns is
    called as the function is, and gives None where the function itself has to run. in_place: makes the loop of a rule
    that writes to its arrays, which says whether it has run (`compile/eager/in_place.py`).
    """

    enabled: ClassVar[bool] = True
    kernel: ClassVar[Callable[[Callable[..., Any], str, bool], Callable[..., Any]]]
    in_place: ClassVar[Callable[[Callable[..., None], str, int], Callable[..., bool]]]


def by_kernel(op: Op) -> Callable[..., Any]:
    """The forward of an entry for large arrays: in C where it can."""
    return _guarded(op.forward, op.name, op.elementwise)


def with_kernels(out: Any) -> Any:
    """The result of a call, or a tuple of them, whose node, if there is one, runs its rules in C as well."""
    edge = next((t._edge for t in (out if isinstance(out, tuple) else (out,)) if t._edge is not None), None)
    if edge is not None:
        node: Any = edge[0]
        node.plan = _in_c(node.plan, node.op)
    return out


@functools.cache
def _in_c(plan: Plan, op: Op) -> Plan:
    """A plan that saves the same values and calls the same rules, in C where it can: all together, or some alone."""
    made = plan.changed(lambda rule: _guarded(rule, op.name, op.elementwise))
    together = _guarded(lambda g, *saved: plan.gradients(g, saved), op.name, op.elementwise)
    made.gradients = lambda g, saved: together(g, *saved)
    return made


@functools.cache
def _guarded(function: Callable[..., Any], *about: Any) -> Callable[..., Any]:
    """A forward or a rule, in C on arrays. On anything else, such as the Tensors of a recorded pass, it is as it is."""

    def run(first: Any, *others: Any, **named: Any) -> Any:
        found = None
        if Fused.enabled and (type(first) is np.ndarray or type(first) is list):
            found = _kernel(function, *about)(first, *others, **named)
        return function(first, *others, **named) if found is None else found

    return run


@functools.cache
def _kernel(function: Callable[..., Any], *about: Any) -> Callable[..., Any]:
    return Fused.kernel(function, *about)

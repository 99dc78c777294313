"""Plans: for each set of wanted gradients, the values that a node saves and the values that each rule gets.

The names of a rule's parameters say what it needs (see `entry.py`). A plan is made when a set of gradients is wanted
for the first time. It generates the functions that every recorded call runs: one that saves, one that calls the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from .calls import detached

if TYPE_CHECKING:
    from .entry import Op

Rule = Callable[..., Any]

OUTPUT = re.compile(r"out\d*")
"""A rule's names for the result, or for one of several."""


def needs(rule: Rule) -> tuple[str, ...]:
    """The values a rule needs besides the cotangent: the names of its parameters after the first."""
    code = rule.__code__
    return code.co_varnames[1 : code.co_argcount]


class Plan:
    """For one set of wanted gradients: the values to save, and the values that each rule gets."""

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
        names = list(dict.fromkeys(n for rule in rules for n in needs(rule)))
        if len(rules) > 1:
            names.sort(key=lambda n: op.params.index(n) if n in op.params else len(op.params))
        self.names = tuple(names)  # of the saved values
        # whether tensors are saved, which a backward pass frees; a node that saved no tensor can run again, as in torch
        self.frees = not all(op.is_number(n) for n in names)
        self.plain = not self.frees and not op.joins  # the rules get the saved values: no tensors, not packed
        self.node_class = op.node_class
        self.complex_class = op.node_class if all(map(op.is_real, names)) else op.complex_class
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


class Plans(dict[int, Plan]):
    """The plans of an entry, by the arguments that want gradients (as bits). Each is made when first needed."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def __missing__(self, mask: int) -> Plan:
        plan = self[mask] = Plan(self.op, mask)
        return plan


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

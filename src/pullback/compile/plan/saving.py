"""The choice of values that forward keeps for backward; backward recomputes the others.

Values that are in memory anyway are kept: arguments, results, and the results of calls and reductions. Elementwise
values that forward does not write are recomputed from these. That costs no memory, and little time compared with
reading. A value is still kept if computing it takes long, or if recomputing it would keep more memory alive than the
value itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..backends.steps import facts, function
from ..trace.program import Value, reachable
from .fuse import LoopStage, Stage, source

COST_LIMIT = 40
"""The cost of recomputing an element, in additions."""


class Saving:
    """The values of the forward pass that a backward pass gets."""

    def __init__(
        self,
        stages: Sequence[Stage],
        arguments: Iterable[Value],
        cotangents: Iterable[Value],
        gradients: Sequence[Value],
    ) -> None:
        self.arguments = set(arguments)
        self.written = {v for s in stages for v in (s.outputs if isinstance(s, LoopStage) else (s.value,))}
        self.made = set(reachable(self.written, self.arguments))
        self.saved: dict[Value, None] = {}
        self.recomputed: dict[Value, None] = {}
        self._costs: dict[Value, float] = {}
        follows = set(cotangents)
        wanted: list[Value] = []
        for value in reachable(gradients, self.arguments | follows):
            if any(a in follows for a in value.args):
                follows.add(value)
                wanted += [a for a in value.args if a not in follows]
        wanted += [g for g in gradients if g not in follows]
        self._want_all(wanted)

    def _want(self, value: Value) -> None:
        """Make sure that backward has a value."""
        if value in self.saved or value in self.recomputed or value.kind in ("const", "array"):
            return
        if value in self.arguments or (value.kind == "item" and value.args[0] in self.made):
            self.saved[value] = None
        elif value.kind in ("reshaped", "broadcast") or is_view(value) or value not in self.made:
            self.recomputed[value] = None
            self._want_all(value.args)
        elif value.kind != "map" or value in self.written or not self._worthwhile(value):
            self.saved[value] = None
        else:
            self.recomputed[value] = None
            self._want_all(value.args)

    def _want_all(self, values: Iterable[Value]) -> None:
        """Make sure that backward has values: earlier ones first, since later ones may be made from them."""
        for value in sorted(set(values), key=lambda v: v.number):
            self._want(value)

    def _worthwhile(self, value: Value) -> bool:
        """Whether to recompute an elementwise value."""
        if self._cost(value) > COST_LIMIT:
            return False
        extra = sum(v.nbytes for v in self._leaves(value) if v not in self.saved and v not in self.arguments)
        return extra <= value.nbytes

    def _leaves(self, value: Value) -> set[Value]:
        found: set[Value] = set()
        stack, seen = [value], {value}
        while stack:
            for arg in stack.pop().args:
                arg = source(arg)
                if arg in seen or arg.kind in ("const", "array"):
                    continue
                seen.add(arg)
                kept = arg in self.saved or arg in self.arguments or arg in self.written
                if arg.kind == "map" and not kept:
                    stack.append(arg)
                else:
                    found.add(arg)
        return found

    def _cost(self, value: Value) -> float:
        """The cost of computing an element from values in memory."""
        value = source(value)
        in_memory = value.kind != "map" or value in self.saved or value in self.arguments or value in self.written
        if in_memory:
            return 0
        if value not in self._costs:
            self._costs[value] = facts(value.fn).cost + sum(self._cost(a) for a in value.args)
        return self._costs[value]


def is_view(value: Value) -> bool:
    """Whether a call returns a view of its argument."""
    return value.kind == "call" and bool(getattr(value.fn, "view", False) or function(value.fn).view)

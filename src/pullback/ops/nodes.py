"""The nodes of built-in operations: which rules to run, and on what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _dtypes
from .._memory import WRITES, View
from .._tensor import Tensor, wrap
from ..autograd.misuse import second_backward, written_since
from ..autograd.node import FREED, Node
from ..autograd.watching import PackedTuple, pack_all

if TYPE_CHECKING:
    from .table import Op, Plan


class OpNode(Node):
    """A recorded call of an entry: the plan it follows, and what that plan saved.

    As long as the number `WRITES` is what it was when the node was made, nothing can have been written to since, and
    no version is looked at.
    """

    __slots__ = ("plan", "saved", "versions", "writes")

    op: Op
    plan: Plan
    saved: Sequence[Any]
    versions: tuple[int, ...] | None
    writes: int

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        saved, plan = self.saved, self.plan
        if taped or self.writes != WRITES.n or saved is FREED:
            self.check()
        if not keep and saved:
            self.saved = FREED
        if plan.direct is not None and not taped:
            value = saved[0]
            return (plan.direct(g, value._data if type(value) is Tensor else self.values(saved, False)[0]),)
        return self._run_rules(g, self.values(saved, taped), needed)

    def _run_rules(self, g: Any, values: Sequence[Any], needed: set[Any] | None) -> Sequence[Any]:
        # apart from run, whose locals would have to live in cells if it held a comprehension
        if needed is None:
            return [rule(g, *pick(values)) for rule, pick in self.plan.calls]
        return [
            rule(g, *pick(values)) if edge is not None and edge[0] in needed else None
            for (rule, pick), edge in zip(self.plan.calls, self._edges, strict=True)
        ]

    def values(self, saved: Sequence[Any], taped: bool) -> Sequence[Any]:
        """What the rules get for what was saved: payloads or, when taped, Tensors."""
        if type(saved) is PackedTuple:
            saved = saved.unpacked(self)
        if not taped:
            return [v._data if isinstance(v, Tensor) else v for v in saved]
        return [self._output(v) if isinstance(v, Tensor) and type(v._view) is SavedOutput else v for v in saved]

    def _pack(self, pack: Any, unpack: Any) -> None:
        """Have hooks pack what was saved; its versions are then theirs to look after."""
        self.saved = pack_all(self.saved, lambda i, v: _place(v), pack, unpack)
        self.versions = None

    def check(self) -> None:
        """Refuse to go on if what was saved was freed, or written to since."""
        saved = self.saved
        if saved is FREED:
            raise second_backward(self)
        for i, value in enumerate(saved):
            version = value._version_of if isinstance(value, Tensor) else None
            if version is not None and version.n != (0 if self.versions is None else self.versions[i]):
                raise written_since(self, value, 0 if self.versions is None else self.versions[i])

    def _output(self, saved: Tensor) -> Tensor:
        """This node's result with its place in the graph, without which it is saved: they form no cycle."""
        out = wrap(saved._data)
        assert saved._view is not None
        out._edge = (self, saved._view.args[0], out._data.shape, out._data.dtype)
        out._requires_grad = True
        return out

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


def _place(value: Tensor) -> int | None:
    """Which of its own node's results a saved tensor is."""
    return value._view.args[0] if type(value._view) is SavedOutput else None


class ComplexNode(OpNode):
    """A recorded elementwise or bilinear call with a complex result: its rules see the conjugates of what was saved."""

    __slots__ = ()

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        saved = self.saved
        self.check()
        if not keep and saved:
            self.saved = FREED
        values = [np.conj(v) if _is_complex(v) else v for v in self.values(saved, taped)]
        return [rule(g, *pick(values)) for rule, pick in self.plan.calls]


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex) or getattr(value, "dtype", None) in _COMPLEX


_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128), _dtypes.complex64, _dtypes.complex128)


class ManyNode(OpNode):
    """A recorded call on a sequence of tensors (`cat`, `stack`): one rule gives all their gradients."""

    __slots__ = ()

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        return self.plan.calls[0][0](g, *self.saved)  # sizes, no values: nothing that could be freed or written to

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return Node.next_functions.fget(self)  # type: ignore[attr-defined]


class TupleNode(OpNode):
    """A recorded call with several results: its rules get a list of cotangents, None for those that did not come."""

    __slots__ = ("_outputs",)


class SavedOutput(View):
    """Marks the detached copy of a node's own result, whose number it holds, among what the node saved.

    It is nobody's view, and no tensor that anybody else has: so the node and its result form no cycle.
    """

    __slots__ = ()

    def __init__(self, number: int) -> None:
        self.args = (number,)
        self.base = self.parent = self.op = None  # type: ignore[assignment]
        self.made = ""


SAVED_OUTPUTS = tuple(SavedOutput(i) for i in range(8))

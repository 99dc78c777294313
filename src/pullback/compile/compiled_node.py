"""The one node that a call of a compiled function makes, and the node of its gradients.

Backward runs the compiled plan. A recorded pass runs it too, and leaves a `SecondNode` behind. Only for a second
derivative, the original function runs again and is differentiated twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..autograd.api import grad
from ..autograd.node import FREED, Node, begin, edge_of
from ..autograd.saved import PackedTuple, pack_all, second_backward, written_since
from ..interpreters.functions import recording
from ..table.levels import depth
from ..tensor.memory import WRITES
from ..tensor.modes import lowered, restoring, thread
from ..tensor.tensor import Lifted, Tensor, wrap

if TYPE_CHECKING:
    from .signature import Entry


class CompiledNode(Node):
    """A call of a compiled function: its arguments, and the values that forward left for backward."""

    __slots__ = ("_arrays", "_outputs", "_tensors", "_versions", "_writes", "entry", "saved")

    entry: Entry
    saved: Any  # arrays; those that are arguments or results too are among the tensors

    def __init__(
        self, entry: Entry, tensors: Sequence[Tensor], arrays: Sequence[Any], results: Sequence[Tensor], saved: Any
    ) -> None:
        begin(self, [edge_of(t) if t._requires_grad else None for t in tensors])
        self.entry, self.saved, self._arrays = entry, saved, arrays
        self._outputs = len(entry.tracked)
        # saved results are kept as other tensors on their memory: the results would form a cycle with the node
        held: list[Any] = [*tensors, *(results[i].detach() for i in entry.saved_results)]
        self._tensors: Any = tuple(held)
        self._writes = WRITES.n
        self._versions = None
        if WRITES.n:
            self._versions = [0 if t._version_of is None else t._version_of.n for t in held]

    def check(self, all_tensors: bool = False) -> None:
        """Refuse if the saved values were freed, or written to since."""
        if self.saved is FREED:
            raise second_backward(self)
        arrays, tensors = self._arrays, self._tensors
        if type(tensors) is PackedTuple:
            return
        for i in range(len(arrays)) if all_tensors else self.entry.read_arguments:
            if tensors[i]._data is not arrays[i]:  # some of what is needed was computed from the former memory
                raise replaced_since(self, self.entry.environment.label(tensors[i]) or f"argument {i}")
        if self._writes == WRITES.n:
            return
        for i, t in enumerate(self._tensors):
            if t._version_of is None or not (all_tensors or i in self.entry.read):
                continue
            expected = 0 if self._versions is None else self._versions[i]
            if t._version_of.n != expected:
                raise written_since(self, t, expected)

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that backward will need."""
        self.check()
        tensors = self._unpacked()
        return (*(tensors[i] for i in sorted(self.entry.read)), *(wrap(a) for a in self.saved))

    def _unpacked(self) -> Sequence[Tensor]:
        held = self._tensors
        return held.unpacked(self) if type(held) is PackedTuple else held

    def _pack(self, pack: Any, unpack: Any) -> None:
        self._tensors = pack_all(self._tensors, lambda i, v: None, pack, unpack)

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        self.check()
        tensors = self._unpacked()
        given = g if self._outputs > 1 else [g]
        wanted = tuple(e is not None and (needed is None or e[0] in needed) for e in self._edges)
        again = False
        if not self.entry.plain:
            if self.entry.traced.users:
                self.entry.refuse_changes()
            all_wanted = needed is None or all(e is None or e[0] in needed for e in self._edges)
            again = bool(self.entry.traced.problem) or self.entry.asks(taped, all_wanted)
        if again or (taped and any(isinstance(t, Lifted) for t in given)):
            made = self._by_operations(tensors, given, wanted, thread.modes.grad_enabled and taped)
            return made if taped else [None if t is None else t._data for t in made]
        found: Sequence[Any] = self.entry.backward(tensors, self.saved, given, wanted)
        if taped:
            found = self._recorded(tensors, given, found)
        if not keep and self.entry.frees:
            self.saved, self._tensors, self._arrays = FREED, (), ()
        return found

    def _recorded(self, tensors: Sequence[Tensor], given: Sequence[Any], found: Sequence[Any]) -> list[Tensor | None]:
        """The gradients as tensors; in a recorded pass they are the outputs of a separate node."""
        made = [None if a is None else wrap(a) for a in found]
        if thread.modes.grad_enabled:
            chosen = [i for i, t in enumerate(made) if t is not None]
            node = SecondNode(self, [*tensors[: len(self._edges)]], given, chosen)
            for k, t in enumerate(t for t in made if t is not None):
                t._edge, t._requires_grad = (node, k, t._data.shape, t._data.dtype), True
        return made

    def _by_operations(
        self, tensors: Sequence[Tensor], given: Sequence[Any], wanted: Sequence[bool], recorded: bool
    ) -> list[Tensor | None]:
        """Run the original function, in operations that a transform can interpret, and differentiate that."""
        self.check(all_tensors=True)
        given = [c if c is None or isinstance(c, Tensor) else wrap(c) for c in given]
        return gradients(self, tensors[: len(self._edges)], given, wanted, recorded)


def replaced_since(node: Node, name: str) -> RuntimeError:
    """The error of a tensor that has other memory than it had in forward."""
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified: {name} got other memory, or another "
        f"shape, since it was used by {node.name()}: .data was set, perhaps.\n"
        "  What to do: call backward() before; or write to it in place, by copy_()."
    )


@restoring()
def gradients(
    node: CompiledNode, inputs: Sequence[Tensor], given: Sequence[Any], wanted: Sequence[bool], recorded: bool
) -> list[Tensor | None]:
    """The gradients of the wanted inputs, operation by operation; recorded from the inputs on if `recorded`."""
    with recording(True):
        aliases = [
            alias(t, recorded) if e and i < node.entry.reached else t
            for i, (t, e) in enumerate(zip(inputs, node._edges, strict=True))
        ]
        outs = lowered(depth(aliases), node.entry.again, aliases)  # as in forward: cotangents may have transforms above
        pairs = [(outs[i], c) for i, c in zip(node.entry.tracked, given, strict=True) if c is not None]
        by = [a for a, w in zip(aliases, wanted, strict=True) if w]
        found = iter(grad([o for o, _ in pairs], by, [c for _, c in pairs], create_graph=recorded, allow_unused=True))
    return [next(found) if w else None for w in wanted]


def alias(t: Tensor, recorded: bool) -> Tensor:
    """A stand-in for `t`: differentiating by it leaves out all other uses of `t`."""
    if recorded and t._requires_grad:
        return t.view_as(t)
    made = wrap(t._data)
    made._version_of = t._share_version()
    made._requires_grad = t._data.dtype.kind in "fcV"
    return made


class SecondNode(Node):
    """The gradients of a compiled function, as functions of its arguments and of the cotangents."""

    __slots__ = ("_arrays", "_chosen", "_given", "_inputs", "_node", "_outputs", "_versions")

    def __init__(self, node: CompiledNode, inputs: list[Tensor], given: Sequence[Any], chosen: list[int]) -> None:
        tensors = [*inputs, *given]
        begin(self, [edge_of(t) if t is not None and t._requires_grad else None for t in tensors])
        self._node: Any = node
        self._inputs, self._given, self._chosen, self._outputs = inputs, list(given), chosen, len(chosen)
        self._versions = [0 if t is None or t._version_of is None else t._version_of.n for t in tensors]
        self._arrays = [None if t is None else t._data for t in tensors]

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        if self._node is None:
            raise second_backward(self)
        if self._node.entry.traced.users:
            self._node.entry.refuse_changes()
        for t, version, array in zip((*self._inputs, *self._given), self._versions, self._arrays, strict=True):
            if t is not None and t._version_of is not None and t._version_of.n != version:
                raise written_since(self, t, version)
            if t is not None and t._data is not array:
                raise replaced_since(self, self._node.entry.environment.label(t) or "an argument")
        taped_on = taped and thread.modes.grad_enabled
        with recording(True):
            vectors = [v if isinstance(v, Tensor) or v is None else wrap(v) for v in (g if self._outputs > 1 else [g])]
            reached = self._node.entry.reached
            inputs = [
                alias(t, taped_on) if e and i < reached else t
                for i, (t, e) in enumerate(zip(self._inputs, self._node._edges, strict=True))
            ]
            given = [None if t is None else alias(t, taped_on) for t in self._given]
            wanted = [i in self._chosen for i in range(len(inputs))]
            first = gradients(self._node, inputs, given, wanted, True)
            pairs = [
                (first[i], v)
                for i, v in zip(self._chosen, vectors, strict=True)
                if v is not None and first[i] is not None and first[i].requires_grad  # type: ignore[union-attr]
            ]
            by = [t if e else None for t, e in zip((*inputs, *given), self._edges, strict=True)]
            chosen = [t for t in by if t is not None]
            found = iter(
                grad([f for f, _ in pairs], chosen, [v for _, v in pairs], create_graph=taped_on, allow_unused=True)  # type: ignore[misc]
                if pairs and chosen
                else [None] * len(chosen)
            )
        if not keep:
            self._node = None
        results = [None if t is None else next(found) for t in by]
        return results if taped else [None if t is None else t._data for t in results]

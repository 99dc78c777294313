"""The plain description of a graph that its pictures are drawn from. It holds no tensor and no node.

`collect` walks the graph behind a tensor once, with a queue of its own, so that a chain of a million nodes is read by a
loop. It changes nothing: it unpacks no value that a hook has packed, makes no attribute, and writes to no saved value.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...autograd.context import FunctionNode
from ...autograd.node import FREED, AccumulateGrad, edge_of
from ...autograd.saved import Packed, PackedTuple
from ...table.nodes import ManyNode, OpNode, SavedOutput
from ...tensor.tensor import Tensor
from ..pieces import data_of, kept_by, piece_of
from .names import Names
from .rules import names_of_saved

LOSS, LEAF, USER, BUILT_IN = "loss", "leaf", "function", "operation"
"""The kinds of nodes: the start of the backward pass, a leaf, a Function's node, the node of an operation of the
library.
"""

SMALL = 64
"""Tensors of at most this many elements are described with their values; in a graph of more than `MANY` nodes, fewer.
"""

MANY = 1000

HUGE = 1 << 20
"""Tensors with more elements are measured in their own precision, without a copy."""


@dataclasses.dataclass(frozen=True, slots=True)
class Values:
    """A short description of a tensor: shape, dtype, norm, and its elements row by row (None if they are many)."""

    shape: tuple[int, ...]
    dtype: str
    norm: float
    elements: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"{list(self.shape)} {self.dtype}"


@dataclasses.dataclass(frozen=True, slots=True)
class Saved:
    """One tensor that a node keeps for its backward.

    name: its name in the rule. owner: the owner of its memory, in words. title: its name in the program, else that in
    the rule. nbytes: those of its elements; the memory that it keeps may be larger (`NodeInfo.pieces`).
    """

    name: str
    title: str
    values: Values
    nbytes: int
    owner: str


@dataclasses.dataclass(frozen=True, slots=True)
class Edge:
    """The way of a gradient: to output `output` of the node numbered `target`, as the gradient of `argument`."""

    target: int
    output: int
    argument: str


@dataclasses.dataclass(slots=True)
class NodeInfo:
    """One node. Nodes are numbered in the order in which a walk from the loss (number 0) reaches them.

    made: its place, from 1, in the order of this graph's operations in the forward pass; 0 for a leaf and the loss.
    outputs: shape and dtype of each output, None if nothing in this graph uses it. arguments: the names of the
    arguments behind its `next_functions`. edges: the ways of their gradients, without those that lead nowhere.
    variable: the name of the tensor that it made, or of the leaf. state: the state of the saved tensors ("kept",
    "freed", "packed by a hook", "nothing"). pieces: the bytes of each piece of memory that it keeps, by a number.
    rule: the key of its formula in `Description.rules`. grad: the gradient that its tensor holds.
    """

    number: int
    name: str
    kind: str
    made: int = 0
    outputs: list[tuple[tuple[int, ...], str] | None] = dataclasses.field(default_factory=list)
    arguments: list[str] = dataclasses.field(default_factory=list)
    edges: list[Edge] = dataclasses.field(default_factory=list)
    variable: str = ""
    state: str = "nothing"
    saved: list[Saved] = dataclasses.field(default_factory=list)
    pieces: dict[int, int] = dataclasses.field(default_factory=dict)
    attributes: dict[str, str] = dataclasses.field(default_factory=dict)
    origin: tuple[str, int, str] | None = None
    rule: str = ""
    value: Values | None = None
    grad: Values | None = None

    @property
    def nbytes(self) -> int:
        """The bytes it keeps; memory that is saved twice counts once."""
        return sum(self.pieces.values())


@dataclasses.dataclass(slots=True)
class Description:
    """The nodes, the loss first, and the live objects behind them, which `forget` releases."""

    nodes: list[NodeInfo]
    live: list[Any]
    small: int

    @property
    def operations(self) -> list[NodeInfo]:
        """The nodes that operations and Functions made, in the order in which the forward pass made them."""
        return sorted((n for n in self.nodes if n.made), key=lambda n: n.made)

    @property
    def nbytes(self) -> int:
        """The bytes the graph keeps; memory that several nodes share counts once."""
        return bytes_kept(self.nodes)

    def forget(self) -> None:
        """Release the graph."""
        self.live = []


def bytes_kept(nodes: Iterable[NodeInfo]) -> int:
    """The bytes that these nodes keep, each piece of memory once, and whole where a view of it is saved."""
    return sum({number: nbytes for info in nodes for number, nbytes in info.pieces.items()}.values())


def collect(loss: Tensor, names: Names) -> Description:
    """Describe the graph that ``loss.backward()`` would walk."""
    edge = edge_of(loss)
    objects, numbers = _walk(edge[0])
    small = SMALL if len(objects) <= MANY else SMALL // 16
    root = NodeInfo(0, "Loss", LOSS, outputs=[(tuple(loss.shape), loss.dtype.name)], value=values_of(loss, small))
    root.variable = names.of_tensor(loss)
    found = [root, *(_of_node(node, i, numbers, names, small) for i, node in enumerate(objects, 1))]
    root.edges = [Edge(1, edge[1], "")]
    for way in [edge, *(way for node in objects for way in node._edges if way)]:
        _note_output(found[numbers[way[0]]], way)
    made = sorted((node._order, info) for node, info in zip(objects, found[1:], strict=True) if info.kind != LEAF)
    for place, (_, info) in enumerate(reversed(made), 1):
        info.made = place
    description = Description(found, [loss, *objects], small)
    read_gradients(description)
    return description


def _walk(first: Any) -> tuple[list[Any], dict[Any, int]]:
    """The nodes reachable from one, breadth first, and the number of each, from 1."""
    numbers: dict[Any, int] = {first: 1}
    objects = [first]
    queue = deque(objects)
    while queue:
        for edge in queue.popleft()._edges:
            if edge and edge[0] not in numbers:
                objects.append(edge[0])
                numbers[edge[0]] = len(objects)
                queue.append(edge[0])
    return objects, numbers


def _note_output(info: NodeInfo, edge: Any) -> None:
    _, nr, shape, dtype = edge
    info.outputs += [None] * (nr + 1 - len(info.outputs))
    info.outputs[nr] = (tuple(shape), _dtype_name(dtype))


def _dtype_name(dtype: Any) -> str:
    return "bfloat16" if dtype.kind == "V" else str(dtype)


def _of_node(node: Any, number: int, numbers: dict[Any, int], names: Names, small: int) -> NodeInfo:
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        outputs: list[Any] = [(tuple(leaf.shape), leaf.dtype.name)]
        info = NodeInfo(number, "AccumulateGrad", LEAF, outputs=outputs, value=values_of(leaf, small))
        info.variable = names.of_tensor(leaf)
        return info
    user = isinstance(node, FunctionNode)
    info = NodeInfo(number, node.name(), USER if user else BUILT_IN)
    info.arguments, of_edges = _arguments(node)
    info.edges = [Edge(numbers[e[0]], e[1], argument) for e, argument in zip(node._edges, of_edges, strict=True) if e]
    info.variable = names.of_edge(node)
    info.origin = _origin(node)
    info.state, info.saved = _saved(node, numbers, names, small)
    info.pieces = _pieces(node)
    if user:
        info.attributes = {k: _brief(v) for k, v in vars(node).items() if not k.startswith("_")}
        if node._output_types is not None:
            info.outputs = [(tuple(t[0]), _dtype_name(t[1])) for t in node._output_types if t]
    return info


def _arguments(node: Any) -> tuple[list[str], list[str]]:
    """The names of the arguments behind a node's `next_functions`, and of those behind its edges."""
    count = len(node._edges)
    if isinstance(node, FunctionNode):
        names = [node._argument(i) for i in range(count)]
        return names, names
    if isinstance(node, ManyNode):
        names = [f"{node.op.params[0]}[{i}]" for i in range(count)]
        return names, names
    if isinstance(node, OpNode):
        params = node.op.params
        return [p for p in params if p in node.op.rules], [params[i] for i in node.plan.wanted]
    return [""] * count, [""] * count


def _origin(node: Any) -> tuple[str, int, str] | None:
    """The line that made a node, if recorded. Reading `metadata` itself would create a dict for every node."""
    stack = getattr(node, "_metadata", {}).get("origin")
    return tuple(stack[-1]) if stack else None


def _saved(node: Any, numbers: dict[Any, int], names: Names, small: int) -> tuple[str, list[Saved]]:
    """The state of a node's saved tensors, and these tensors."""
    if isinstance(node, FunctionNode):
        held: Any = node._saved
        labels = [f"saved_tensors[{i}]" for i in range(len(held) if held is not FREED else 0)]
        own = node._saved_outputs or {}
    elif isinstance(node, OpNode):
        held, own = node.saved, {}
        labels = list(node.plan.names)
    else:
        return "nothing", []
    if held is FREED:
        return "freed", []
    if type(held) is PackedTuple:
        packed = any(isinstance(v, Packed) for v in held)
        return ("packed by a hook" if packed else "nothing"), []
    found = []
    for i, (label, value) in enumerate(zip(labels, held, strict=False)):
        if isinstance(value, Tensor):
            mine = i in own or type(value._view) is SavedOutput
            owner = "its own result" if mine else _owner(value, numbers, names)
            title = "result" if mine else names.of_tensor(value) or _own_name(node, i, value) or label
            found.append(Saved(label, title, values_of(value, small), _nbytes(value), owner))
    return ("kept" if found else "nothing"), found


def _pieces(node: Any) -> dict[int, int]:
    kept = (data_of(value) for value in kept_by(node) if value is not FREED)
    pieces = (piece_of(data) for data in kept if data is not None)
    return {id(piece.owner): piece.nbytes for piece in pieces}


def _own_name(node: Any, i: int, value: Tensor) -> str:
    """What a Function calls the tensor that it saved i-th: its argument of forward, or the variable of backward."""
    if not isinstance(node, FunctionNode):
        return ""
    edge = value._edge or value._leaf
    if edge is not None:
        for k, (node_of, output) in enumerate((e[0], e[1]) if e else (None, 0) for e in node._edges):
            if node_of is edge[0] and output == edge[1]:
                return str(node._argument(k))
    unpacked = names_of_saved(node._forward_cls)
    return unpacked[i] if i < len(unpacked) else ""


def _owner(t: Tensor, numbers: dict[Any, int], names: Names) -> str:
    """The owner of a saved tensor's memory, in words: a leaf, a constant, or the result of a node."""
    name = names.of_tensor(t)
    if t._edge is not None:
        known = t._edge[0] in numbers
        made = f"result of {t._edge[0].name()}" + ("" if known else ", outside this graph")
        return f"{name}, {made}" if name else made
    kind = "leaf" if t._requires_grad else "constant"
    return f"{kind} {name}".strip()


def _nbytes(t: Tensor) -> int:
    return int(getattr(t._data, "nbytes", 0))


def _brief(value: Any) -> str:
    """An attribute of a ctx in at most a line."""
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{type(value).__name__} of shape {list(value.shape)}"
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    return type(value).__name__


def values_of(t: Tensor, small: int) -> Values:
    """The description of a tensor, with its elements if there are at most `small`."""
    data = t._data
    if isinstance(data, np.ndarray) and data.dtype.kind == "V":
        data = t.detach().float()._data
    shape, dtype = tuple(t.shape), t.dtype.name
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "fcbiu":
        return Values(shape, dtype, math.nan, None)
    flat = data.ravel()
    as_is = data.dtype.kind == "c" or (data.size > HUGE and data.dtype in (np.float32, np.float64))
    with np.errstate(all="ignore"):
        norm = float(np.linalg.norm(flat if as_is else flat.astype(np.float64)))
    elements = tuple(f"{v:.4g}" for v in flat.tolist()) if data.size <= small else None
    return Values(shape, dtype, norm, elements)


def read_gradients(description: Description) -> None:
    """Record the gradients that leaves, and tensors that retain theirs, hold now."""
    for node, info in zip(description.live[1:], description.nodes[1:], strict=True):
        for t in _holders(node, info):
            if t is not None and isinstance(t._grad, Tensor):
                info.grad = values_of(t._grad, description.small)


def _holders(node: Any, info: NodeInfo) -> Iterable[Tensor | None]:
    if info.kind == LEAF:
        return [node.variable]
    return [] if node._hooks is None else [ref() for ref in node._hooks.retained.values()]

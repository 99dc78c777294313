"""The parts of an index that give a view: integers, slices, None, Ellipsis. (Subscripts: `index/subscripts.py`.)"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...interpreters.batch_rules import by
from ...table.calls import on
from ...table.entry import linear
from ...tensor.arrays import zeros_beside
from ...tensor.memory import WRITES, next_write

_FULL = slice(None)


def _prefixed(shape: Any, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """vmap: everything along the axis of the batch."""
    return ((slice(None), *index),)


@linear(
    name="_place",
    method=False,
    batch=by(lambda full, index, shape: (*_prefixed(full, index), (full[0], *shape))),
    symbolic="call",
    numbers="",
    input=lambda g, index: on(getitem, g, index),
)
def placed(input: Any, index: Any, shape: Any) -> Any:
    """Zeros of `shape` with `input` at `index`, which gives a view: the adjoint of taking it."""
    out = zeros_beside(input, shape)
    out[index] = input
    return out


def _last_step(index: Any, rank: int) -> tuple[Any, int]:
    """The last step of an index, and its dimension. In torch each step of an index is a node."""
    steps = [i for i, part in enumerate(index) if part is not Ellipsis and part != _FULL]
    last = steps[-1] if steps else index.index(_FULL) if _FULL in index else 0
    taken = sum(part is not None and part is not Ellipsis for part in index)
    widths = [rank - taken if part is Ellipsis else int(part is None or isinstance(part, slice)) for part in index]
    return index[last] if index else Ellipsis, sum(widths[:last])


def _node_of_getitem(node: Any) -> str:
    """Torch's name for the node of the last step of an index."""
    part, _ = _last_step(node.saved_as("index"), 0)
    if part is None or part is Ellipsis:
        return "AliasBackward0" if part is Ellipsis else "UnsqueezeBackward0"
    return "SliceBackward0" if isinstance(part, slice) else "SelectBackward0"


def _slice_of(index: Any) -> slice:
    part, _ = _last_step(index, 0)
    if not isinstance(part, slice):
        raise AttributeError("the last step of the index is no slice: it has no start, end and step")
    return part


def outside(error: IndexError, input: Any) -> IndexError:
    """NumPy's error about an index, in the words of torch."""
    shape = f"; the tensor has shape {list(input.shape)}."
    if not input.ndim:
        return IndexError(
            f"invalid index of a 0-dim tensor: {error}{shape}\n  What to do: leave the index out: it is its only "
            "element. .item() gives the number alone, without a gradient."
        )
    found = str(error).replace("for axis", "for dimension")
    if "non-empty take from an empty" in found:
        found = "a position is out of bounds for dimension with size 0"
    return IndexError(f"index: {found}{shape}")


def part_of(input: Any, index: Any) -> Any:
    """`input[index]`. An empty part lies where its slices begin; NumPy's begins with the input."""
    found = input[index]
    if type(found) is not np.ndarray or type(input) is not np.ndarray or found.size or not input.size:
        return found  # also an element of an array of objects, which has no size
    return _empty_part(input, index)


def _empty_part(input: Any, index: Any) -> Any:
    parts, axis = list(index), 0
    for i, part in enumerate(parts):
        if part is Ellipsis:
            axis = input.ndim - sum(p is not None for p in parts[i + 1 :])
        elif part is not None:
            start, stop, _ = part.indices(n := input.shape[axis]) if isinstance(part, slice) else (0, 1, 1)
            if start >= stop:
                lead, parts[i] = (slice(None),) * axis, slice(0)
                if start == n:  # just behind the last element
                    input, start = input[(*lead, slice(n - 1, None))], 1
                    shape = (*input.shape[:axis], 2, *input.shape[axis + 1 :])
                    input = np.lib.stride_tricks.as_strided(input, shape, input.strides)
                input = input[(*lead, slice(start, None))]
            axis += 1
    return input[tuple(parts)]


@linear(
    name="_getitem",
    method=False,
    view=True,
    node=_node_of_getitem,
    saved={
        "dim": lambda index, input_shape: _last_step(index, len(input_shape))[1],
        "index": lambda index: _last_step(index, 0)[0],
        "start": lambda index: _slice_of(index).start or 0,
        "end": lambda index: sys.maxsize if _slice_of(index).stop is None else _slice_of(index).stop,
        "step": lambda index: _slice_of(index).step or 1,
    },
    batch=by(_prefixed),
    symbolic=lambda out, input, index: input[(*index, ...) if ... not in index else index],
    input=lambda g, index, input_shape: on(placed, g, index, input_shape),
)
def getitem(input: Any, index: Any) -> Any:
    """`input[index]`, for an index that gives a view."""
    try:
        found = part_of(input, index)
        if not isinstance(found, np.generic):
            return found
        if not WRITES.n:
            WRITES.n = next_write()  # as after a write, nodes look at what they save: elements are saved by value
        # NumPy gives a number where all axes are indexed; with an Ellipsis it gives a 0-d view, as torch does
        return input[(*index, Ellipsis)]
    except IndexError as error:
        raise outside(error, input) from None

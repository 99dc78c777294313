"""The words of two errors of a backward pass: a graph that was used before, and a saved tensor that was written to.

They tell what is known anyway, the names of operations and of the user's variables; with `record_origins` the lines
as well.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, NamedTuple

from ..tensor.memory import Version
from ..tensor.modes import thread
from ..tensor.tensor import Tensor
from .places import Place, at, place_of_node, variables


class Write(NamedTuple):
    """One write in place: which version it made, where, and by what."""

    version: int
    place: Place | None
    name: str


WRITTEN: weakref.WeakKeyDictionary[Version, deque[Write]] = weakref.WeakKeyDictionary()
"""The last writes to memory, as far as origins were recorded."""

SWITCH_ON = "run it within `with pullback.autograd.record_origins():` to be told the lines"


def second_backward(node: Any) -> RuntimeError:
    """The error of a graph used again after its saved values were freed."""
    freed = node.metadata.get("freed")
    made = place_of_node(node)
    older = _from_an_earlier_pass(node)
    lines = [f"  It was made at {at(made)}"] if made else []
    if freed is not None:
        lines.append(f"  The first backward, {freed[1]}(), was at {at(freed[0])}")
    elif not thread.modes.recording:
        lines.append(f"  Where the first backward was is not known: {SWITCH_ON}.")
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        f"already been freed): {node.name()} dropped what it saved when the first backward had run.\n"
        + "".join(line + "\n" for line in lines)
        + older * "  It belongs to an earlier pass: what this pass began at was computed since, from a tensor of it.\n"
        + "  What to do: Specify retain_graph=True in the first backward() or grad(), or compute the output again; cut "
        "off a tensor that leads back into an earlier pass, as the state of a loop does: h = h.detach()."
    )


def _from_an_earlier_pass(node: Any) -> bool:
    """Whether the running pass began at nodes that the pass which freed `node` did not reach, if that was recorded."""
    running = thread.modes.running_pass
    if running is None or "freed" not in node.metadata:
        return False
    return any("freed" not in edge[0].metadata for edge in running._roots)


def written_since(node: Any, t: Tensor, expected: int) -> RuntimeError:
    """The error of a saved tensor whose memory was written to between forward and backward."""
    version = t._version_of
    names = variables(lambda v: v._version_of is version)
    name = "`" + "` or `".join(names) + "`, " if names else ""
    last = _last_writer(node, t)
    text = (
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {name}a "
        f"{t.dtype} tensor of shape {list(t._data.shape)}, saved by {node.name()}, is at version {t._version}; "
        f"expected version {expected} instead.\n"
    )
    saved = place_of_node(node)
    writes = [w for w in WRITTEN.get(version, ()) if w.version > expected] if version is not None else []
    if saved:
        text += f"  It was saved by {node.name()} at {at(saved)}\n"
    if writes:
        first = writes[0]
        by = f"{first.name}()" if not first.name.startswith("__") else first.name
        text += f"  It was then changed by {by} at {at(first.place)}\n"
        if len(writes) > 1:
            text += f"  and {len(writes) - 1} more time(s), last by {writes[-1].name} at {at(writes[-1].place)}\n"
    else:
        by = "Where it was changed" if last is None else f"It was changed by the operation of {last.name()}; where,"
        text += f"  {by} is not known: {SWITCH_ON}.\n"
    return RuntimeError(
        text + "  What to do: do not write to it between forward and backward; write to a clone(), or use the "
        "out-of-place operation."
    )


def _last_writer(node: Any, t: Tensor) -> Any:
    """The node of the recorded write that changed `t` after `node` saved it, if the tensor itself tells."""
    edge = t._place  # a view that lost it does not tell, but had one
    return edge[0] if edge is not None and edge[0]._order < node._order else None

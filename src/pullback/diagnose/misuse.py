"""Details for two errors of a backward pass: a graph that was used before, a saved tensor that was written to.

They always name operations and the user's variables, and with `record_origins` the lines as well. The errors
themselves belong to the heart (`autograd/saved.py`), which is given these details by `assembly.py`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..autograd.node import reachable
from ..tensor.memory import Version, is_written_since
from ..tensor.modes import thread
from ..tensor.tensor import Tensor
from .places import Place, at, place_of_node, variables


class Write(NamedTuple):
    """One in-place write: the version it made, its line, and the operation."""

    version: int
    place: Place | None
    name: str


WRITTEN: weakref.WeakKeyDictionary[Version, deque[Write]] = weakref.WeakKeyDictionary()
"""The last writes to each memory, as far as origins were recorded."""

SWITCH_ON = "run it within `with pullback.autograd.record_origins():` to be told the lines"


def of_freed(node: Any) -> str:
    """Lines about a node whose saved values were freed: where it was made and where the first backward ran."""
    freed = node.metadata.get("freed")
    made = place_of_node(node)
    lines = [f"  It was made at {at(made)}"] if made else []
    if freed is not None:
        lines.append(f"  The first backward, {freed[1]}(), was at {at(freed[0])}")
    elif not thread.modes.recording:
        lines.append(f"  Where the first backward was is not known: {SWITCH_ON}.")
    if _from_an_earlier_pass(node):
        lines.append(
            "  It belongs to an earlier pass: what this pass began at was computed since, from a tensor of it."
        )
    return "".join(line + "\n" for line in lines)


def _from_an_earlier_pass(node: Any) -> bool:
    """Whether the running pass began at nodes that the pass which freed `node` did not reach, if that was recorded."""
    running = thread.modes.running_pass
    if running is None or "freed" not in node.metadata:
        return False
    return any("freed" not in edge[0].metadata for edge in running.roots)


def of_written(node: Any, t: Tensor, expected: int) -> tuple[str, str]:
    """The variables that hold the memory of `t`, which `node` saved, and lines about where it was saved and written."""
    version = t._version_of
    whole = variables(lambda v: v._version_of is version and v._view is None)  # it is what is to be copied
    names = list(dict.fromkeys([*whole, *variables(lambda v: v._version_of is version)]))
    text = _where_saved(node)
    writes = [w for w in WRITTEN.get(version, ()) if w.version > expected] if version is not None else []
    if writes:
        first = writes[0]
        by = f"{first.name}()" if not first.name.startswith("__") else first.name
        text += f"  It was then changed by {by} at {at(first.place)}\n"
        if len(writes) > 1:
            text += f"  and {len(writes) - 1} more time(s), last by {writes[-1].name} at {at(writes[-1].place)}\n"
    else:
        last = _last_writer(node, t)
        by = "Where it was changed" if last is None else f"It was changed by the operation of {last.name()}; where,"
        text += f"  {by} is not known: {SWITCH_ON}.\n"
    return _one_of(names), text + _also_written(node)


_SHOWN = 8  # lines of other nodes
_LOOKED_AT = 20_000  # nodes


def _also_written(node: Any) -> str:
    """Lines about the other nodes of the pass whose saved tensors were written to as well, to be mended at once."""
    own = place_of_node(node)
    found = sorted(filter(_is_stale, _of_the_pass(node)), key=lambda n: n._order, reverse=True)
    places = list(dict.fromkeys(p for n in found if (p := place_of_node(n)) is not None and p != own))
    if not places:
        return ""
    text = "  What was saved at these lines was written to as well:\n"
    text += "".join(f"    {at(place)}\n" for place in places[:_SHOWN])
    return text + (f"    and {len(places) - _SHOWN} more\n" if len(places) > _SHOWN else "")


def _of_the_pass(node: Any) -> Iterator[Any]:
    """The nodes that the running backward pass reaches, or if there is none, those that it would reach from `node`."""
    running = thread.modes.running_pass
    roots = [node] if running is None else [edge[0] for edge in running.roots]
    return islice(reachable(roots), _LOOKED_AT)


def _is_stale(node: Any) -> bool:
    """Whether a tensor that a node saved was written to since."""
    saved = getattr(node, "saved", getattr(node, "_saved", ()))
    versions = getattr(node, "versions", getattr(node, "_versions", None))
    if not isinstance(saved, (tuple, list)):
        return False
    return any(
        isinstance(t, Tensor) and is_written_since(t, versions[i] if versions else 0) for i, t in enumerate(saved)
    )


def of_replaced(node: Any, t: Tensor) -> tuple[str, str]:
    """The variables that hold `t`, which `node` saved, and a line about where it was saved, if that is known."""
    return _one_of(variables(lambda v: v is t)), _where_saved(node)


def _where_saved(node: Any) -> str:
    place = place_of_node(node)
    return f"  It was saved by {node.name()} at {at(place)}\n" if place else ""


def _one_of(names: Sequence[str]) -> str:
    return "`" + "` or `".join(names) + "`, " if names else ""


def _last_writer(node: Any, t: Tensor) -> Any:
    """The node of the recorded write that changed `t` after `node` saved it, if the tensor itself knows it."""
    base = None if t._view is None else t._view.base
    edge = (t if base is None else base)._place  # a view gets a new node after a write to its base
    return edge[0] if edge is not None and edge[0]._order < node._order else None

"""What may be told of every node that is made, in this thread: where it was made, and that its saved values are packed.

Most of the time nobody asks, and making a node costs nothing more for it: `watch` is looked at only where a write in
place was ever counted, and so whoever begins to watch counts one.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .._memory import WRITES, next_write
from .._state import thread
from .._tensor import Edge, Tensor, wrap
from .node import leaf_edge


class Packed:
    """What a pack hook made of a saved tensor, the hook that undoes it, and the tensor's place in the graph."""

    __slots__ = ("_edge", "_held", "_place", "_requires_grad", "_unpack")

    def __init__(self, t: Tensor, place: Any, pack: Callable[..., Any], unpack: Callable[..., Any]) -> None:
        self._place = place  # the number of the output of the node itself that it is, or None
        self._edge: Edge | None = None if not t._requires_grad or place is not None else t._edge or leaf_edge(t)
        self._unpack = unpack
        given = t
        if place is not None:  # its place in the graph would keep the node alive that keeps it
            given = wrap(t._data)
            given._version_of, given._requires_grad = t._share_version(), True
        self._requires_grad = given._requires_grad
        version = given._version
        with unwatched():
            self._held = pack(given)
        if given._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place: the operation that saved it would compute "
                "with other values.\n  What to do: let the hook return a new value, e.g. of a clone()."
            )

    def tensor(self, node: Any) -> Tensor:
        """The tensor that was saved."""
        with unwatched():
            t = self._unpack(self._held)
        if not isinstance(t, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}."
            )
        found = wrap(t._data)
        if self._place is not None:
            found._edge, found._requires_grad = (node, self._place, t._data.shape, t._data.dtype), True
        elif self._requires_grad:
            found._edge, found._requires_grad = self._edge, True
        return found


class PackedTuple(tuple[Any, ...]):
    """The saved values of a node whose tensors are packed."""

    __slots__ = ()

    def unpacked(self, node: Any) -> list[Any]:
        """The values themselves."""
        return [v.tensor(node) if isinstance(v, Packed) else v for v in self]


class unwatched:  # noqa: N801 - a context manager
    """Within it nothing is recorded or packed: a hook's own operations are not hooked."""

    def __enter__(self) -> None:
        modes = thread.modes
        self._before = modes.pack_hooks, modes.grad_enabled
        modes.pack_hooks, modes.grad_enabled = (), False

    def __exit__(self, *exc: object) -> None:
        thread.modes.pack_hooks, thread.modes.grad_enabled = self._before


def changed() -> None:
    """Look at every node from now on if there is something to be told of it."""
    modes = thread.modes
    modes.watch = watch if modes.pack_hooks or modes.origins else None
    WRITES.n = next_write()


def watch(node: Any) -> None:
    """Note where a node was made, and pack what it saved, if that is wanted."""
    modes = thread.modes
    if modes.origins:
        node.metadata["origin"] = user_stack(deepest_only=modes.origins == 1)
        if modes.running is not None:
            node.metadata["parent"] = modes.running
    if modes.pack_hooks:
        pack, unpack = modes.pack_hooks[-1]
        if pack is None:
            raise RuntimeError(unpack)
        node._pack(pack, unpack)


def pack_all(saved: Sequence[Any], places: Callable[[int, Any], Any], pack: Any, unpack: Any) -> PackedTuple:
    """Saved values with their tensors packed. places: which output of its own node a tensor is, or None."""
    return PackedTuple(
        Packed(v, places(i, v), pack, unpack) if isinstance(v, Tensor) else v for i, v in enumerate(saved)
    )


Place = tuple[str, int, str]
"""A file, a line and the name of a function."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_stack(deepest_only: bool = False) -> list[Place]:
    """Where the user's code stands, innermost last: without the frames of this package."""
    frame: Any = sys._getframe(1)
    found: list[Place] = []
    while frame is not None and not (found and deepest_only):
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return found[::-1]


def formatted(stack: Sequence[Place]) -> str:
    """A stack as a traceback shows it."""
    lines = []
    for file, line, name in stack:
        source = linecache.getline(file, line).strip()
        lines.append(f'  File "{file}", line {line}, in {name}\n' + (f"    {source}\n" if source else ""))
    return "".join(lines)

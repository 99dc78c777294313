"""What may be told of every node and tensor that is made, in this thread: where it was made, what it saved, its values.

Most of the time nobody asks, and making one costs nothing more for it. Of nodes, `watch` is looked at only where a
write in place was ever counted, and so whoever begins to watch counts one. Of tensors, every way to make one sets the
slot `_grad`: while somebody asks, a descriptor of Python's, `Tap`, stands in the place of that slot.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from .._memory import WRITES, next_write
from .._state import thread
from .._tensor import Edge, Tensor, wrap
from .node import leaf_edge
from .places import user_place, user_stack


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
        self._before = modes.pack_hooks, modes.grad_enabled, modes.watch
        modes.pack_hooks, modes.grad_enabled = (), False

    def __exit__(self, *exc: object) -> None:
        modes = thread.modes
        modes.pack_hooks, modes.grad_enabled, modes.watch = self._before  # a hook may have had hooks of its own


def changed() -> None:
    """Look at every node and tensor from now on if there is something to be told of it."""
    modes = thread.modes
    modes.origins = 2 if modes.anomaly else modes.recording
    modes.watch = watch if modes.pack_hooks or modes.origins else None
    WRITES.n = next_write()


def watch(node: Any) -> None:
    """Note where a node was made, and pack what it saved, if that is wanted."""
    modes = thread.modes
    if modes.origins:
        node.metadata["origin"] = user_stack() if modes.origins == 2 else user_place()
        if modes.running is not None:
            node.metadata["parent"] = modes.running
    for tell in modes.tells_nodes:
        tell(node)
    if modes.pack_hooks:
        pack, unpack = modes.pack_hooks[-1]
        node._pack(pack, unpack)


def pack_all(saved: Sequence[Any], places: Callable[[int, Any], Any], pack: Any, unpack: Any) -> PackedTuple:
    """Saved values with their tensors packed. places: which output of its own node a tensor is, or None."""
    return PackedTuple(
        Packed(v, places(i, v), pack, unpack) if isinstance(v, Tensor) else v for i, v in enumerate(saved)
    )


# Tensors --------------------------------------------------------------------------------------------------------------


class Tap:
    """Stands in the place of a slot of a class; `told(object, old, new)` hears of what is set. `new` marks a first one.

    A slot is put back when nobody listens any more. CPython forgets what it learned of a class that is changed, and
    learns it a thousand times at most: so a tap that was put in and out a hundred times stays, and asks each time
    whether this thread listens.
    """

    STAYS = 100

    def __init__(self, cls: type, slot: str, told: Callable[[Any, Any, Any], None], listens: str) -> None:
        self._cls, self._name, self._told, self._listens = cls, slot, told, listens
        self._slot = cls.__dict__[slot]
        self._get, self._set, self._delete = self._slot.__get__, self._slot.__set__, self._slot.__delete__
        # by the modes of their threads, how often each listens: a thread may end without having closed
        self._users: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._times = 0
        self._lock = threading.Lock()

    def __get__(self, t: Any, owner: Any = None) -> Any:
        return self if t is None else self._get(t, owner)

    def __set__(self, t: Any, value: Any) -> None:
        if not getattr(thread.modes, self._listens):
            self._set(t, value)
            return
        try:
            old = self._get(t)
        except AttributeError:
            old = MISSING
        self._set(t, value)
        self._told(t, old, value)

    def __delete__(self, t: Any) -> None:
        self._delete(t)

    def open(self) -> None:
        """Put the tap in, unless it is there."""
        with self._lock:
            self._users[thread.modes] = self._users.get(thread.modes, 0) + 1
            if vars(self._cls)[self._name] is not self:
                setattr(self._cls, self._name, self)

    def close(self) -> None:
        """Put the slot back, if nobody else listens."""
        with self._lock:
            left = self._users.pop(thread.modes, 1) - 1
            if left:
                self._users[thread.modes] = left
            if not self._users and self._times < self.STAYS:
                self._times += 1
                setattr(self._cls, self._name, self._slot)


MISSING: Any = object()
"""The value of a slot that was never set."""


def _tensor_set(t: Tensor, old: Any, new: Any) -> None:
    if old is MISSING:
        for tell in thread.modes.tells_tensors:
            tell(t)
    elif thread.modes.recording:
        for tell in GRADIENTS_SET:
            tell(t, old, new)


GRADIENTS_SET: list[Callable[[Tensor, Any, Any], None]] = []
"""What hears of every ``.grad`` that is set where origins are recorded."""

TENSORS = Tap(Tensor, "_grad", _tensor_set, "tells_tensors")

V = TypeVar("V")


class _Key(weakref.ref[Any]):
    """A weak reference that knows under which number it is kept."""

    __slots__ = ("number",)

    number: int


class ByTensor(Generic[V]):
    """Something known of tensors, or of arrays, for as long as they live; they are told apart by identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[_Key, V]] = {}
        self._forget: Callable[[Any], None] = self._drop

    def _drop(self, key: _Key) -> None:
        if key.number in self._known and self._known[key.number][0] is key:
            del self._known[key.number]

    def get(self, key: Any) -> V | None:
        """What is known of one, or None."""
        found = self._known.get(id(key))
        return found[1] if found is not None and found[0]() is key else None

    def put(self, key: Any, value: V) -> None:
        """Remember something of one."""
        ref = _Key(key, self._forget)
        ref.number = id(key)
        self._known[ref.number] = (ref, value)

    def __len__(self) -> int:
        return len(self._known)

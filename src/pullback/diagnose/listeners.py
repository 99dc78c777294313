"""Listening to every node and tensor that is made in this thread, and notes about tensors for as long as they live.

The heart announces nodes (`autograd/saved.py`). Every way to make a tensor sets the slot `_grad`: while somebody
listens, a Python descriptor, `Tap`, replaces that slot. While nobody listens, making a tensor costs nothing more.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ..autograd.saved import changed
from ..tensor.modes import thread
from ..tensor.tensor import Tensor
from .places import user_place, user_stack

# Nodes ----------------------------------------------------------------------------------------------------------------


def note_places() -> None:
    """From now on, note where each node is made, if anomaly mode or the recording of origins needs it."""
    modes = thread.modes
    others = tuple(tell for tell in modes.tells_nodes if tell is not _note_place)
    wanted = modes.watcher is not None or modes.recording
    modes.tells_nodes = (_note_place, *others) if wanted else others
    changed()


def _note_place(node: Any) -> None:
    modes = thread.modes
    whole = modes.watcher is not None or modes.recording > 1
    node.metadata["origin"] = user_stack() if whole else user_place()
    if modes.running is not None:
        node.metadata["parent"] = modes.running


# Tensors --------------------------------------------------------------------------------------------------------------


class Users:
    """Who listens, in each thread; each is there once. A thread may end without having closed."""

    def __init__(self) -> None:
        self._of: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()  # by the modes of the thread

    def add(self, who: Any) -> None:
        """Note that somebody listens in this thread."""
        self._of.setdefault(thread.modes, set()).add(who)

    def discard(self, who: Any) -> bool:
        """Note that somebody listens no longer; whether nobody does, in any thread."""
        here = self._of.get(thread.modes)
        if here is not None:
            here.discard(who)
            if not here:
                del self._of[thread.modes]
        return not self._of


class Tap:
    """Replaces a slot of a class; calls `told(object, old, new)` when the slot is set, `old` being `MISSING` at first.

    listens: the attribute of the modes that says whether a thread listens. The slot is put back when nobody listens any
    more. CPython drops its caches for a class that is changed, and fills them a thousand times at most. So a tap that
    was put in and out a hundred times stays, and checks each time whether this thread listens.
    """

    STAYS = 100

    def __init__(self, cls: type, slot: str, told: Callable[[Any, Any, Any], None], listens: str) -> None:
        self._cls, self._name, self._told, self._listens = cls, slot, told, listens
        self._slot = cls.__dict__[slot]
        self._get, self._set, self._delete = self._slot.__get__, self._slot.__set__, self._slot.__delete__
        self._users = Users()
        self._times = 0
        self._lock = threading.RLock()

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

    def open(self, who: Any) -> None:
        """Put the tap in for somebody, unless it is there."""
        with self._lock:
            self._users.add(who)
            if vars(self._cls)[self._name] is not self:
                setattr(self._cls, self._name, self)

    def close(self, who: Any) -> None:
        """Put the slot back, if nobody else listens. A second time does nothing."""
        with self._lock:
            unused = self._users.discard(who)
            if unused and self._times < self.STAYS and vars(self._cls)[self._name] is self:
                self._times += 1
                setattr(self._cls, self._name, self._slot)


MISSING: Any = object()
"""The value of a slot that has never been set."""


def _tensor_set(t: Tensor, old: Any, new: Any) -> None:
    if old is MISSING:
        for tell in thread.modes.tells_tensors:
            tell(t)
    elif thread.modes.recording:
        for tell in GRADIENTS_SET:
            tell(t, old, new)


GRADIENTS_SET: list[Callable[[Tensor, Any, Any], None]] = []
"""The tap that hears of every ``.grad`` that is set while origins are recorded."""

TENSORS = Tap(Tensor, "_grad", _tensor_set, "tells_tensors")

V = TypeVar("V")


class _Key(weakref.ref[Any]):
    """A weak reference that knows the number it is kept under."""

    __slots__ = ("number",)

    number: int


class ByTensor(Generic[V]):
    """Notes about tensors, or arrays, kept as long as these live; the key is identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[_Key, V]] = {}
        self._forget: Callable[[Any], None] = self._drop

    def _drop(self, key: _Key) -> None:
        if key.number in self._known and self._known[key.number][0] is key:
            del self._known[key.number]

    def get(self, key: Any) -> V | None:
        """The note about an object, or None."""
        found = self._known.get(id(key))
        return found[1] if found is not None and found[0]() is key else None

    def put(self, key: Any, value: V) -> None:
        """Keep a note about an object."""
        ref = _Key(key, self._forget)
        ref.number = id(key)
        self._known[ref.number] = (ref, value)

    def __len__(self) -> int:
        return len(self._known)

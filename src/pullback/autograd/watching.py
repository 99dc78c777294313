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

from ..diagnose.places import user_place, user_stack
from ..tensor.memory import WRITES, next_write
from ..tensor.modes import thread
from ..tensor.tensor import Edge, Tensor, wrap
from .node import FREED, leaf_edge


class Packed:
    """What a pack hook made of a saved tensor, the hook that undoes it, and the tensor's place in the graph."""

    __slots__ = ("_edge", "_held", "_place", "_requires_grad", "_unpack")

    _version_of = None  # no writes are looked for: they are the hooks' to look after

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
        if self._place is None and not (self._requires_grad or t._requires_grad):
            return t
        found = wrap(t._data)
        if self._place is not None:
            found._edge, found._requires_grad = (node, self._place, t._data.shape, t._data.dtype), True
        elif self._requires_grad:
            assert self._edge is not None
            if self._edge[0]._edges:
                found._edge = self._edge
            else:  # a leaf's
                found._leaf = self._edge
            found._requires_grad = True
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


def pack_all(
    saved: Sequence[Any], places: Callable[[int, Any], Any], pack: Any, unpack: Any, only: int | None = None
) -> PackedTuple:
    """Saved values with their tensors packed, or `only` one. places: which of its node's outputs one is, or None."""
    return PackedTuple(
        Packed(v, places(i, v), pack, unpack) if isinstance(v, Tensor) and only in (None, i) else v
        for i, v in enumerate(saved)
    )


class SavedTensor:
    """A tensor that a node saved, as ``grad_fn._raw_saved_...`` gives it, to be packed after the fact.

    >>> import pullback
    >>> x = pullback.tensor([3.0], requires_grad=True)
    >>> y = x**2
    >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.numpy().tolist(), pullback.tensor)
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    __slots__ = ("_node", "_number")

    def __init__(self, node: Any = None, number: int | None = None) -> None:
        if node is None:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden: nodes make them.\n"
                "  What to do: read grad_fn._raw_saved_... of what an operation returned."
            )
        self._node, self._number = node, number  # None: the node does without that tensor

    def _held(self) -> Any:
        saved = self._node._kept()
        return saved if saved is FREED else None if self._number is None else saved[self._number]

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Pack this tensor with `pack_hook` now; `unpack_hook` gives it back when the backward pass needs it.

        RuntimeError if it was packed or freed before, or if there is none; TypeError for a hook that is not callable.
        """
        held = self._held()
        if held is FREED:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed: a backward pass has run.\n"
                "  What to do: Specify retain_graph=True there, or register the hooks before it."
            )
        if isinstance(held, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set, here or by "
                "saved_tensors_hooks(): there can be one pair."
            )
        if not isinstance(held, Tensor):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden: "
                f"{self._node.name()} saved no tensor there."
            )
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise TypeError(f"register_hooks(): a hook must be callable, not {type(hook).__name__}")
        self._node._pack(pack_hook, unpack_hook, self._number)

    @property
    def data(self) -> Any:
        """What `pack_hook` returned; the tensor where there are no hooks, None where there is none (any more)."""
        held = self._held()
        return held._held if isinstance(held, Packed) else held if isinstance(held, Tensor) else None

    @property
    def unpack_hook(self) -> Any:
        """The hook that undoes it; None where there are no hooks."""
        held = self._held()
        return held._unpack if isinstance(held, Packed) else None


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

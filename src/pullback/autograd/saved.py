"""Saved tensors: packing by hooks, watching new nodes, and the two errors of using a saved tensor too late.

`saved_tensors_hooks` packs the tensors that a node saves; the node then holds a `PackedTuple`. `watch` calls every
listener to new nodes. Usually there is none, and a node costs nothing more: `watch` is considered only once an in-place
write was counted, so a new listener counts one (`changed`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .. import errors
from ..tensor.memory import WRITES, next_write
from ..tensor.modes import thread, within
from ..tensor.tensor import Edge, Tensor, wrap
from ..tensor.views import unmark
from .node import FREED, edge_of


class Packed:
    """A saved tensor packed by a hook, the hook that unpacks it, and the tensor's place in the graph."""

    __slots__ = ("_edge", "_held", "_memory", "_place", "_requires_grad", "_unpack", "_version")

    _version_of = None  # the hooks are responsible for the values; `tensor` checks those that lie where they lay

    def __init__(self, t: Tensor, place: Any, pack: Callable[..., Any], unpack: Callable[..., Any]) -> None:
        self._place = place  # its number among its node's outputs, or None
        self._edge: Edge | None = edge_of(t) if t._requires_grad and place is None else None
        self._unpack = unpack
        given = t
        if place is not None:  # with its place in the graph, it and the node would form a cycle
            given = wrap(t._data)
            given._version_of, given._requires_grad = t._share_version(), True
        self._requires_grad = given._requires_grad
        self._memory, self._version = given._share_version(), given._version
        self._held = unwatched(pack, given, grad_enabled=False)
        if given._version != self._version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place: the operation that saved it would compute "
                "with other values.\n  What to do: let the hook return a new value, e.g. of a clone()."
            )

    def tensor(self, node: Any) -> Tensor:
        """The tensor that was saved."""
        t = unwatched(self._unpack, self._held)
        if not isinstance(t, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}."
            )
        if t._version_of is self._memory and t._version != self._version:
            raise written_since(node, t, self._version)
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


def unwatched(work: Callable[..., Any], *args: Any, **modes: Any) -> Any:
    """``work(*args)``, where nothing is packed: a hook's own operations are not hooked. modes: others to set."""
    watch = thread.modes.watch  # a hook may have hooks of its own
    return within(thread.modes, {"pack_hooks": (), "watch": watch, **modes}, work, *args)


def changed() -> None:
    """Start or stop watching new nodes: a listener wants them, or hooks pack their saved tensors."""
    modes = thread.modes
    modes.watch = watch if modes.pack_hooks or modes.tells_nodes else None
    WRITES.n = next_write()


def watch(node: Any) -> None:
    """Announce a new node to the listeners, and pack its saved tensors, if hooks are set."""
    modes = thread.modes
    for tell in modes.tells_nodes:
        tell(node)
    if modes.pack_hooks:
        pack, unpack = modes.pack_hooks[-1]
        node._pack(pack, unpack)


def pack_all(
    saved: Sequence[Any], places: Callable[[int, Any], Any], pack: Any, unpack: Any, only: int | None = None
) -> PackedTuple:
    """Saved values with their tensors packed, or `only` one of them.

    places: a function that returns a value's number among its node's outputs, or None.
    """
    return PackedTuple(
        Packed(v, places(i, v), pack, unpack) if isinstance(v, Tensor) and only in (None, i) else v
        for i, v in enumerate(saved)
    )


class SavedTensor:
    """A tensor that a node saved, as returned by ``grad_fn._raw_saved_...``, so that it can be packed later.

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
        self._node, self._number = node, number  # None: the node needs no such tensor

    def _held(self) -> Any:
        saved = self._node._kept()
        return saved if saved is FREED else None if self._number is None else saved[self._number]

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Pack this tensor with `pack_hook` now; `unpack_hook` gives it back when the backward pass needs it.

        RuntimeError if it was packed or freed before, or does not exist; TypeError for a hook that is not callable.
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
        """The result of `pack_hook`; without hooks the tensor, or None if there is no tensor (any more)."""
        held = self._held()
        return held._held if isinstance(held, Packed) else held if isinstance(held, Tensor) else None

    @property
    def unpack_hook(self) -> Any:
        """The hook that undoes the packing; None without hooks."""
        held = self._held()
        return held._unpack if isinstance(held, Packed) else None


# Errors ---------------------------------------------------------------------------------------------------------------


class Details:
    """Details from outside the graph for the errors below. `assembly.py` puts functions of `diagnose` here.

    of_freed: lines about a node whose saved values were freed. of_written: the variables that hold a saved tensor which
    was written to, and lines about where it was saved and written. of_replaced: the same for one that got other memory.
    of_root: why a tensor that a pass is to begin at requires no grad, and what to do, where origins were recorded.
    """

    of_freed: ClassVar[Callable[[Any], str]] = lambda node: ""
    of_written: ClassVar[Callable[[Any, Tensor, int], tuple[str, str]]] = lambda node, t, expected: ("", "")
    of_replaced: ClassVar[Callable[[Any, Tensor], tuple[str, str]]] = lambda node, t: ("", "")
    of_root: ClassVar[Callable[[Tensor], str]] = lambda t: ""


def second_backward(node: Any) -> RuntimeError:
    """The error of a graph used again after its saved values were freed."""
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        f"already been freed): {node.name()} dropped what it saved when the first backward had run.\n"
        f"{Details.of_freed(node)}"
        "  What to do: Specify retain_graph=True in the first backward() or grad(), or compute the output again; cut "
        "off a tensor that leads back into an earlier pass, as the state of a loop does: h = h.detach()."
    )


def check_memory(node: Any, saved: Sequence[Any]) -> None:
    """Warn if a saved tensor got other memory since its node was made: its version is still the same."""
    for t in saved:  # for those that are packed, the hooks are responsible
        if isinstance(t, Tensor) and WRITES.replaced_since(t, node._order):
            names, lines = Details.of_replaced(node, t)
            warnings.warn(
                f"one of the variables needed for gradient computation got other memory: {names}a {t.dtype} tensor of "
                f"shape {list(t._data.shape)}, saved by {node.name()}; its .data was set since. The gradient is "
                "computed with the new values where they are read again, and with the old ones in all that was "
                f"computed before, as in PyTorch, which does not say so.\n{lines}  What to do: call backward() before; "
                "or write to it in place, by copy_(), which is checked. If the new memory holds the same values, the "
                'gradient is right: hide this by warnings.filterwarnings("ignore", message=".*got other memory").',
                stacklevel=errors.callers_level(),
            )


def written_since(node: Any, t: Tensor, expected: int) -> RuntimeError:
    """The error of a saved tensor whose memory was written to between forward and backward."""
    unmark(t)
    names, lines = Details.of_written(node, t, expected)
    name = names.split("`")[1] if names else "y"
    copied = f"{name}.clone()" if names else f"{name}.copy()"
    do = f"compute the new values first, then write them to a copy: for `{name}[i] /= n`, "
    do += f"`new = {name}[i] / n; {name} = {copied}; {name}[i] = new`"
    do += f" (`{name}.copy()` in code that takes arrays as well)" if names else ""
    do += f"; where all of {name} is written, `{name} = {name} / n`"
    if t._view is None or t._view.parent is not None:  # it is no result of the node: a copy may be read
        do += f"; in a function that writes for its caller, `{name}[i] = {name}[i].copy() / n`"
    if t._requires_grad and t._place is None:
        leaf = name if names else "saved"
        do = f"call backward() before the write, or give a copy, `{leaf}.clone()`, to the operation that saved it"
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {names}a "
        f"{t.dtype} tensor of shape {list(t._data.shape)}, saved by {node.name()}, is at version {t._version}; "
        f"expected version {expected} instead.\n{lines}  What to do: {do}."
    )

"""Tools for the graph, as in `torch.autograd.graph`: hooks on saved tensors, edges, hooks on several gradients."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.hooks import RemovableHandle
from ..autograd.node import Node, edge_of
from ..autograd.roots import GradientEdge
from ..autograd.saved import changed, unwatched
from ..tensor.memory import Keepers
from ..tensor.modes import Setting, thread
from ..tensor.tensor import Tensor, need_tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place in the graph where the gradient of a tensor is computed.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> pullback.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    need_tensor("get_gradient_edge()", tensor)
    if not tensor._requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = edge_of(tensor)
    return GradientEdge(edge[0], edge[1], edge)


def increment_version(tensor: Any) -> None:
    """Count a write to the memory of a tensor, or of several, that the tensor itself did not notice."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        t._bump()


class saved_tensors_hooks(Setting):  # noqa: N801 - torch's name
    """Within it, `pack_hook` packs the tensors that operations save for backward, and `unpack_hook` gives them back.

    ``pack_hook(tensor)`` may return anything; ``unpack_hook`` gets it when the backward pass needs the tensor, and must
    return a Tensor with the same values, shape and dtype. If such blocks are nested, the innermost is used. Neither
    hook may write to the tensor it gets.

    >>> import pullback
    >>> kept = []
    >>> def pack(t):
    ...     kept.append(t.numpy())
    ...     return len(kept) - 1
    >>> x = pullback.tensor([3.0], requires_grad=True)
    >>> with pullback.autograd.graph.saved_tensors_hooks(pack, lambda i: pullback.from_numpy(kept[i])):
    ...     y = x**2
    >>> y.backward()
    >>> x.grad
    tensor([6.])

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks.
    """

    _mode, _follow = "pack_hooks", staticmethod(changed)

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def _value(self, before: tuple[Any, ...]) -> tuple[Any, ...]:
        if thread.modes.hooks_disabled is not None:
            raise RuntimeError(thread.modes.hooks_disabled)
        return (*before, (self.pack_hook, self.unpack_hook))


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - torch's name
    """Within it, the tensors that operations save are kept as copies in the host's memory.

    pin_memory: of those of a GPU, in memory from which a GPU copies by itself. device_type: without effect.

    >>> import pullback
    >>> x = pullback.tensor([3.0], requires_grad=True)
    >>> with pullback.autograd.graph.save_on_cpu(pin_memory=True):
    ...     y = x**2
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Tensor) -> Any:
            if t.device.type == "cpu":
                return t.clone()
            return t.device, t.cpu().pin_memory() if pin_memory else t.cpu()

        def unpack(packed: Any) -> Tensor:
            return packed if isinstance(packed, Tensor) else packed[1].to(packed[0], non_blocking=pin_memory)

        super().__init__(pack, unpack)


class _Kept:
    """A saved tensor; from the first write to its memory on, a clone of its old values."""

    __slots__ = ("__weakref__", "cloned", "saved", "version")

    def __init__(self, t: Tensor) -> None:
        self.saved: Tensor | None = t.detach()
        self.version, self.cloned = t._version, False

    def keep(self) -> None:
        """Make the clone."""
        if self.saved is not None and self.saved._version == self.version:
            self.saved = unwatched(self.saved.clone)
            self.version, self.cloned = 0, True


class _Mutable:
    """All tensors that `allow_mutation_on_saved_tensors` has saved; ``len()`` is the number of cloned ones."""

    def __init__(self) -> None:
        self._all: list[weakref.ref[_Kept]] = []
        self._latest: weakref.WeakValueDictionary[Any, _Kept] = weakref.WeakValueDictionary()
        self._keepers = Keepers()
        self._over = False

    def pack(self, t: Tensor) -> _Kept:
        """Save a tensor; if its present version is saved already, both share the entry and the clone."""
        memory, array = t._share_version(), t._data
        place = (array.__array_interface__["data"][0], array.strides) if type(array) is np.ndarray else object()
        key = (id(memory), t._version, place, array.shape, array.dtype)
        found = self._latest.get(key)
        if found is not None and not found.cloned:
            return found
        kept = self._latest[key] = _Kept(t)
        ref = weakref.ref(kept)
        self._all.append(ref)

        def keep() -> None:
            if (found := ref()) is not None:
                found.keep()

        self._keepers.add(t, keep)
        return kept

    def unpack(self, kept: _Kept) -> Tensor:
        """The tensor with its values at the time of saving."""
        if self._over:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded.\n  What to do: call backward() within it."
            )
        assert kept.saved is not None
        if kept.saved._version != kept.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation that "
                "allow_mutation_on_saved_tensors() was not told of beforehand, as an optimiser's step.\n"
                "  What to do: call backward() before that."
            )
        return kept.saved

    def __len__(self) -> int:
        return sum(kept.cloned for ref in self._all if (kept := ref()) is not None)

    def clear(self) -> None:
        """Forget everything; no saved tensor can be used afterwards."""
        self._over = True
        self._keepers.clear()
        for ref in self._all:
            if (kept := ref()) is not None:
                kept.saved = None
        self._all = []


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Mutable]:
    """Within it, a tensor that was saved for backward may be written to: it is cloned first, for backward.

    Forward and backward both have to run within it. RuntimeError if it is nested in itself.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> with pullback.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y**2).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 2.])

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.allow_mutation_on_saved_tensors.
    """
    if any(isinstance(getattr(pack, "__self__", None), _Mutable) for pack, _ in thread.modes.pack_hooks):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    saved = _Mutable()
    try:
        with saved_tensors_hooks(saved.pack, saved.unpack):
            yield saved
    finally:
        saved.clear()


class disable_saved_tensors_hooks(Setting):  # noqa: N801 - torch's name
    """Within it, `saved_tensors_hooks` raises a RuntimeError with this message; so does this if one is active."""

    _mode = "hooks_disabled"

    def __init__(self, error_message: str) -> None:
        super().__init__()
        self._message = error_message

    def _value(self, before: str | None) -> str:
        if thread.modes.pack_hooks:
            raise RuntimeError(self._message)
        return self._message

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with disable_saved_tensors_hooks(self._message):
                return fn(*args, **kwargs)

        return call


class _Handles:
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class _State:
    """The gradients of some tensors that are known already, for each running backward pass.

    It holds neither the passes nor the nodes. The tensors' hooks hold it.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._nodes = [weakref.ref(edge_of(t)[0]) for t in tensors]
        self._lock = threading.Lock()
        self._known: weakref.WeakKeyDictionary[Any, tuple[list[Tensor | None], int]] = weakref.WeakKeyDictionary()

    def first(self) -> bool:
        """Whether this gradient is the first known in its pass."""
        running = thread.modes.running_pass
        with self._lock:
            seen = running in self._known
            self._known[running] = [], 0
            return not seen

    def arrived(self, i: int, grad: Tensor) -> list[Tensor | None] | None:
        """All the gradients, if this was the last one missing; else None."""
        running = thread.modes.running_pass
        with self._lock:
            grads, missing = self._known.get(running) or ([None] * len(self._nodes), self._reached(running))
            grads[i] = grad
            if missing > 1:
                self._known[running] = grads, missing - 1
                return None
            self._known.pop(running, None)
            return grads

    def _reached(self, running: Any) -> int:
        """The number of the gradients that a pass will compute."""
        return sum(node is not None and running.reaches(node) for node in (ref() for ref in self._nodes))


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all") -> Any:
    """Call `fn` when the gradients of several tensors are known.

    mode: "all": once for each backward pass, when the last gradient is known, with the list of them (None for those the
    pass does not compute); "any": with the first gradient that is known.

    >>> import pullback
    >>> a, b = (pullback.ones(1, requires_grad=True) for _ in range(2))
    >>> handle = pullback.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print(grads))
    >>> (a * 2 + b).backward()
    [tensor([2.]), tensor([1.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    state = _State(tensors)

    def hook_of(i: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            if mode == "any":
                if state.first():
                    fn(grad)
            elif (grads := state.arrived(i, grad)) is not None:
                fn(grads)

        return hook

    return _Handles([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


errors.doors(
    globals(),
    "disable_saved_tensors_hooks get_gradient_edge increment_version register_multi_grad_hook save_on_cpu "
    "saved_tensors_hooks",
)

"""Hooks: user functions that see gradients on their way, and may replace them.

`Hooks` holds those of one node, and `RemovableHandle` removes one. The engine calls the functions below only for nodes
with hooks. A hook gets Tensors and returns None or replacements, which are checked here: a replacement must have the
shape and the dtype of the original.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..tensor.tensor import Tensor, wrap

__all__ = ["RemovableHandle"]


def __dir__() -> list[str]:
    return sorted(__all__)


_next_id = itertools.count().__next__


class RemovableHandle:
    """Returned by every `register_...hook`: `remove()` removes the hook, as does leaving a `with` block."""

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise TypeError(f"a hook must be callable, not {type(hook).__name__}")
        self._hooks = hooks
        self.id = _next_id()
        hooks[self.id] = hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one node, in firing order: of its outputs, before it, retained gradients, after it.

    of_output: a tensor's hooks, by its output number. retained: the tensors that keep their gradient.
    """

    __slots__ = ("after", "before", "of_output", "retained")

    def __init__(self) -> None:
        self.of_output: dict[int, dict[int, Callable[..., Any]]] = {}
        self.before: dict[int, Callable[..., Any]] = {}
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        self.after: dict[int, Callable[..., Any]] = {}

    def retains(self, nr: int) -> bool:
        """Whether output `nr` keeps its gradient."""
        return nr in self.retained


# Called by the engine, with gradients as payloads, or as Tensors if the pass is taped ----------------------


def fire_of_outputs(node: Any, g: Any, taped: bool) -> list[Any]:
    """Call the hooks of a node's outputs; returns the gradients of all outputs, with the hooks' replacements."""
    values = as_tensors(g, node._outputs)
    for nr, fns in node._hooks.of_output.items():
        if values[nr] is None and node._alone:
            continue
        for fn in list(fns.values()):
            values[nr] = _replacement(fn, fn(values[nr]), values[nr])
    return _raw(values, taped)


def fire_around(node: Any, g: Any, run: Callable[[Any], Sequence[Any]], taped: bool) -> Sequence[Any]:
    """Run a node between its pre-hooks and its hooks. Returns the gradients it sends on."""
    if node._hooks.before:
        g = _before(node, g, taped)
    grads = run(g)
    return _after(node, grads, g, taped) if node._hooks.after else grads


def _before(node: Any, g: Any, taped: bool) -> Any:
    """Call the pre-hooks of a node that is about to run; None if they leave no gradient."""
    values = as_tensors(g, node._outputs)
    for fn in list(node._hooks.before.values()):
        values = _replacements(fn, fn(tuple(values)), values)
    raw = _raw(values, taped)
    return raw if node._outputs > 1 else raw[0]


def _after(node: Any, grads: Sequence[Any], g: Any, taped: bool) -> Sequence[Any]:
    """Call the hooks after a node. They see the gradients it got (`g`) and sent, and may replace the latter."""
    received, sent = tuple(as_tensors(g, node._outputs)), as_tensors(list(grads))
    # an operation has no edges for inputs that need no gradient; its hooks get None for these
    numbers = iter([i for i, edge in enumerate(node._edges) if edge])
    slots = [next(numbers) if following else None for following, _ in node.next_functions]
    values = [None if i is None else sent[i] for i in slots]
    for fn in list(node._hooks.after.values()):
        values = _replacements(fn, fn(tuple(values), received), values)
    for i, value in zip(slots, values, strict=True):
        if i is not None:
            sent[i] = value
    return _raw(sent, taped)


def fire_of_leaf(node: Any, g: Any, taped: bool) -> Any:
    """Call the hooks of a leaf; returns its gradient or their replacement."""
    value = as_tensors(g)[0]
    for fn in list(node.hooks.values()):
        value = _replacement(fn, fn(value), value)
    return _raw([value], taped)[0]


def fire_accumulated(hooks: dict[int, Callable[..., Any]], leaf: Tensor) -> None:
    """Call a leaf's hooks after its gradient was added to; they cannot replace it."""
    for hook in list(hooks.values()):
        found = hook(leaf)
        if found is not None and found is not leaf:
            if not isinstance(found, Tensor):
                raise _no_tensor(hook, found)
            raise RuntimeError(
                f"Tensor post accumulate grad hooks should return None; {_name(hook)!r} returned a tensor.\n"
                "  What to do: to change the gradient, write to tensor.grad within the hook, or use register_hook()."
            )


def as_tensors(g: Any, count: int = 1) -> list[Any]:
    """Gradients as hooks get them: one, several or (for `count` of them) none, in a list of Tensors and None."""
    values = [None] * count if g is None else g if isinstance(g, (list, tuple)) else [g]
    return [v if v is None or isinstance(v, Tensor) else wrap(v) for v in values]


def _raw(values: Sequence[Any], taped: bool) -> list[Any]:
    """Gradients in the form that is sent on: sparse ones stay Tensors, since no array can hold them."""
    return [v._data if isinstance(v, Tensor) and not taped and v._in_array else v for v in values]


# Checks of what hooks return ------------------------------------------------------------------------------------------


def _name(hook: Any) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


def _no_tensor(hook: Any, found: Any) -> TypeError:
    return TypeError(
        f"expected Variable, but hook returned '{type(found).__name__}'\n"
        f"  What to do: let hook '{_name(hook)}' return a Tensor or None."
    )


def _replacement(hook: Any, new: Any, old: Any) -> Any:
    """A hook's result, checked against its argument; the argument itself if the hook returned None."""
    if new is None:
        return old
    name = _name(hook)
    if old is None:
        raise RuntimeError(f"can't replace a None gradient with a non-None value, as hook '{name}' does")
    if not isinstance(new, Tensor):
        raise _no_tensor(hook, new)
    if new._data.shape != old._data.shape:
        raise RuntimeError(
            errors.message(
                f"hook '{name}' has changed the size of value",
                expected=str(list(old._data.shape)),
                found=str(list(new._data.shape)),
            )
        )
    if new._data.dtype != old._data.dtype:
        raise RuntimeError(
            errors.message(
                f"hook '{name}' has changed the type of value", expected=str(old.dtype), found=str(new.dtype)
            )
        )
    return new


def _replacements(hook: Any, new: Any, old: list[Any]) -> list[Any]:
    """The result of a node's hook: None, or a tuple of replacements, in which None removes a gradient."""
    if new is None:
        return old
    name = _name(hook)
    if not isinstance(new, tuple):
        raise TypeError(
            f"expected tuple, but hook returned '{type(new).__name__}'\n"
            f"  What to do: let hook '{name}' return a tuple with a Tensor or None for each gradient, or None."
        )
    if len(new) != len(old):
        raise RuntimeError(
            errors.message(
                f"hook '{name}' has returned an incorrect number of values", expected=str(len(old)), found=str(len(new))
            )
        )
    return [None if n is None else _replacement(hook, n, o) for n, o in zip(new, old, strict=True)]

"""Compiled `forward` and `backward` of a `Function`: values read from ``ctx`` are arguments, values set there results.

The method becomes a function of tensors. While it is traced, a stand-in for ``ctx`` hands out saved tensors and
attributes, and collects all that is saved, set and marked; afterwards the same is done to the real ``ctx``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.context import FunctionNode
from ..autograd.node import FREED


class Context:
    """Stands for ``ctx`` while a method of a Function is traced."""

    def __init__(self, saved: tuple[Any, ...], needs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        self._calls: list[tuple[str, tuple[Any, ...]]] = []
        self._before = dict(attributes)
        self.saved_tensors, self.needs_input_grad = saved, needs

    def _left(self) -> tuple[Any, Any]:
        """The calls made on it, and the attributes set on it."""
        own = {"_calls", "_before", "saved_tensors", "needs_input_grad"}
        nothing = object()
        given = {k: v for k, v in vars(self).items() if k not in own and self._before.get(k, nothing) is not v}
        return self._calls, given


def _noted(name: str) -> Callable[..., None]:
    def call(self: Context, *args: Any) -> None:
        self._calls.append((name, args))

    call.__name__ = name
    call.__doc__ = f"Have `{name}` called on the real ``ctx``."
    return call


_CALLS = ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads")
for _name in _CALLS:
    setattr(Context, _name, _noted(_name))


def of_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a Function as a function of the contents of ``ctx`` and its arguments; it returns the new ones."""

    def call(saved: Any, needs: Any, attributes: Any, *args: Any, **kwargs: Any) -> Any:
        ctx = Context(saved, needs, attributes)
        return method(ctx, *args, **kwargs), ctx._left()

    call.__name__ = call.__qualname__ = getattr(method, "__name__", "method")
    return call


def held(ctx: FunctionNode) -> tuple[Any, Any, Any]:
    """The contents of a context: saved tensors, which gradients are wanted, the user's attributes."""
    saved = () if ctx._saved is FREED or not len(ctx._saved) else ctx.saved_tensors
    attributes = {k: v for k, v in vars(ctx).items() if not k.startswith("_") and k not in _OWN}
    return tuple(saved), ctx.needs_input_grad, attributes


_OWN = frozenset(("saved_for_forward", "metadata"))


def tell(ctx: FunctionNode, left: tuple[Any, Any]) -> None:
    """Repeat on the real context the calls made on its stand-in."""
    calls, attributes = left
    for name, args in calls:
        getattr(ctx, name)(*args)
    for name, value in attributes.items():
        setattr(ctx, name, value)

"""Calling a module, and the hooks around a call.

    pre-hooks -> [identity] -> forward -> hooks -> [identity]

Hooks on the backward pass belong to two nodes that compute nothing, one after the inputs and one after the outputs. The
gradient of the outputs passes the second node, the gradient of the inputs the first. Both nodes are made only if there
are such hooks.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import numpy as np

from .. import errors
from ..autograd.function import Function
from ..autograd.hooks import RemovableHandle
from ..tensor.modes import thread
from ..tensor.tensor import Tensor, wrap

Hook = Callable[..., Any]

if TYPE_CHECKING:  # a call takes and returns what `forward` does
    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)

    class _Forward(Protocol[P, R_co]):
        def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


@dataclass(frozen=True, slots=True)
class _PreHook:
    """A forward pre-hook, and whether it takes the keyword arguments."""

    fn: Hook
    with_kwargs: bool

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The arguments for forward: those of the call, unless the hook returns others."""
        found = self.fn(module, args, kwargs) if self.with_kwargs else self.fn(module, args)
        if found is None:
            return args, kwargs
        if not self.with_kwargs:
            return found if isinstance(found, tuple) else (found,), kwargs
        if not isinstance(found, tuple) or len(found) != 2:
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {found}."
            )
        return found


@dataclass(frozen=True, slots=True)
class _ForwardHook:
    """A forward hook, whether it takes the keyword arguments, and whether it is called even if forward fails."""

    fn: Hook
    with_kwargs: bool
    always_call: bool

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """The result of the call: that of forward, unless the hook returns another."""
        extra = (kwargs,) if self.with_kwargs else ()
        found = self.fn(module, args, *extra, result)
        return result if found is None else found


class BackwardHookFunction(Function):
    """The identity, as a node for hooks."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:
        """The tensors themselves; they come out as aliases."""
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """The gradients themselves."""
        return grads


class _Crossing:
    """One call of a module with backward hooks: it brings together the gradients at the two ends.

    A place is the position, among the inputs or the outputs, of a tensor that requires grad; None if there is no such
    tensor. As in torch, a hook gets zeros for the input tensors that do not require grad.
    """

    def __init__(self, module: Any, pre_hooks: Sequence[Hook], hooks: Sequence[Hook]) -> None:
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.inputs = self.outputs = 0
        self.passive: dict[int, Any] = {}
        self.input_places: list[int] | None = None
        self.output_places: list[int] | None = None
        self.grad_outputs: Sequence[Any] | None = None  # set while the backward pass is between the two nodes

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments for forward, as outputs of the first node."""
        self.inputs = len(args)
        for i, a in enumerate(args):
            if isinstance(a, Tensor) and not a.requires_grad:
                self.passive[i] = a.shape, a.dtype.numpy
        args, self.input_places = _behind_a_node(args, self._at_inputs)
        return args

    def leave(self, result: Any) -> Any:
        """The result for the caller, as outputs of the second node."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=errors.callers_level(),
            )
        values = result if isinstance(result, tuple) else (result,)
        self.outputs = len(values)
        values, self.output_places = _behind_a_node(values, self._at_outputs)
        return values if isinstance(result, tuple) else values[0]

    def _at_outputs(self, _: Any, grad_outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call the pre-hooks; and, if no input waits for a gradient, the hooks."""
        assert self.output_places is not None
        at = dict(zip(self.output_places, grad_outputs, strict=True))
        grads: Sequence[Any] = tuple(at.get(i) for i in range(self.outputs))
        for hook in self.pre_hooks:
            found = hook(self.module, grads)
            if found is not None:
                grads = _of_length(found, self.outputs, "pre hook returned an invalid number of grad_output")
        if self.input_places is None:
            self._without_inputs(grads)
        else:
            self.grad_outputs = grads
        return tuple(grads[i] for i in self.output_places)

    def _without_inputs(self, grads: Sequence[Any]) -> None:
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients.",
                stacklevel=errors.callers_level(),
            )
        for hook in self.hooks:
            found = hook(self.module, (None,) * self.inputs, grads)
            if found is not None and not (isinstance(found, tuple) and all(g is None for g in found)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )

    def _at_inputs(self, grad_inputs: tuple[Any, ...], _: Any) -> tuple[Any, ...] | None:
        """Call the hooks: the gradients of both ends are known."""
        assert self.input_places is not None
        if self.grad_outputs is None:  # the gradient did not come through the outputs, as in a second backward pass
            return None
        at: dict[int, Any] = {i: wrap(np.zeros(*kind)) for i, kind in self.passive.items()}
        at.update(zip(self.input_places, grad_inputs, strict=True))
        grads: Sequence[Any] = tuple(at.get(i) for i in range(self.inputs))
        for hook in self.hooks:
            found = hook(self.module, grads, self.grad_outputs)
            if found is not None:
                grads = _of_length(found, self.inputs, "hook returned an invalid number of grad_input")
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_places)


def _behind_a_node(values: tuple[Any, ...], hook: Hook) -> tuple[tuple[Any, ...], list[int] | None]:
    """`values`, with tensors that require grad as outputs of a node that calls `hook` after it ran; and their
    places."""
    places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
    if not places or not thread.modes.grad_enabled:
        return values, None
    tensors = BackwardHookFunction.apply(*(values[i] for i in places))
    tensors[0].grad_fn.register_hook(hook)
    new = list(values)
    for i, t in zip(places, tensors, strict=True):
        new[i] = t
    return (tuple(new) if type(values) is tuple else type(values)(*new)), places  # otherwise a named tuple


def _of_length(found: Any, count: int, problem: str) -> Sequence[Any]:
    if isinstance(found, Tensor) or len(found) != count:
        got = "a Tensor" if isinstance(found, Tensor) else len(found)
        raise RuntimeError(
            errors.message(
                f"Backward {problem}, got {got}, but expected {count}",
                do="return None, or a tuple with a gradient (or None) for each",
            )
        )
    return found


class HookedCall:
    """The part of Module that calls: `forward`, and the hooks around it."""

    forward: Hook
    _backward_hooks: OrderedDict[int, Hook]
    _backward_pre_hooks: OrderedDict[int, Hook]
    _forward_hooks: OrderedDict[int, _ForwardHook]
    _forward_pre_hooks: OrderedDict[int, _PreHook]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)``, with `with_kwargs` ``hook(module, args, kwargs)``, before `forward`.

        Unless it returns None, it returns the arguments for forward: a value or a tuple; with `with_kwargs` a tuple and
        a dict. `prepend`: call it before the hooks that are registered already.
        """
        return _register(self._forward_pre_hooks, hook, _PreHook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, result)``, or ``hook(module, args, kwargs, result)``, after `forward`.

        Unless it returns None, it returns the result of the call. `always_call`: call it also if forward or another
        hook raises; an unknown result is None then, and an error in the hook becomes a warning.

        >>> import pullback
        >>> layer = pullback.nn.Identity()
        >>> handle = layer.register_forward_hook(lambda module, args, result: print(args, result))
        >>> with handle:
        ...     y = layer(pullback.zeros(1))
        (tensor([0.]),) tensor([0.])
        """
        return _register(self._forward_hooks, hook, _ForwardHook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_outputs)`` when the gradient of the result is known, before it is sent on.

        Unless it returns None, it returns the gradients to use instead: a tuple, one for each output. An input or a
        result that requires grad may then not be written in place.
        """
        return _register(self._backward_pre_hooks, hook, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_inputs, grad_outputs)`` when the gradients of the inputs are known.

        There is a gradient, or None, for each positional argument and each output. Unless the hook returns None, it
        returns the gradients to use for the inputs: a tuple. An input or a result that requires grad may then not be
        written in place.
        """
        return _register(self._backward_hooks, hook, hook, prepend)

    if TYPE_CHECKING:

        def __call__(self: _Forward[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    else:

        def __call__(self, *args, **kwargs):
            try:
                if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
                    return self._call_hooked(args, kwargs)
                return self.forward(*args, **kwargs)
            except Exception as error:
                if not errors.named(error):
                    errors.rename(type(self).__name__, error, (*args, *kwargs.values()), keep=True)
                raise

    def _call_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        result = None
        try:
            for pre_hook in list(self._forward_pre_hooks.values()):
                args, kwargs = pre_hook(self, args, kwargs)
            crossing = None
            if self._backward_hooks or self._backward_pre_hooks:
                crossing = _Crossing(self, [*self._backward_pre_hooks.values()], [*self._backward_hooks.values()])
                args = crossing.enter(args)
            result = self.forward(*args, **kwargs)
            for number, hook in list(self._forward_hooks.items()):
                called.add(number)
                result = hook(self, args, kwargs, result)
            return result if crossing is None else crossing.leave(result)
        except Exception:
            self._call_those_left(called, args, kwargs, result)
            raise

    def _call_those_left(self, called: set[int], args: Any, kwargs: Any, result: Any) -> None:
        """After a failure, call the remaining hooks registered with `always_call`."""
        for number, hook in list(self._forward_hooks.items()):
            if hook.always_call and number not in called:
                try:
                    result = hook(self, args, kwargs, result)
                except Exception as error:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                        stacklevel=errors.callers_level(),
                    )


def _register(hooks: OrderedDict[int, Any], hook: Hook, entry: Any, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks, hook)
    hooks[handle.id] = entry
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


errors.doors(
    HookedCall,
    "register_forward_pre_hook register_forward_hook register_full_backward_pre_hook register_full_backward_hook",
)

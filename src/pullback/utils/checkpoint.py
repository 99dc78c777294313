"""Checkpointing: a part of the forward pass keeps nothing for backward, and is computed again when backward needs it.

Without reentrance (`use_reentrant=False`, the default): every tensor that an operation in the part would save is
replaced by its number, through `saved_tensors_hooks`. When a backward pass first asks for one, the part runs again, and
the tensors it saves this time are found by number. The arguments are saved by a node of their own, so that an outer
checkpoint covers them as well. With reentrance: the part is one node, whose backward runs it again and sends the
gradients through the graph recorded then, by a backward pass inside the backward pass.

A policy may let some operations of a part keep their results: see `selective.py`.
"""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from .. import autograd, errors
from ..autograd import Function
from ..ops.make.generators import same_random_numbers, states
from ..table.levels import depth
from ..tensor.modes import lowered, restoring, thread
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Lifted, Tensor, is_tracked
from .checkpoint_log import Log, report
from .graph import saved_tensors_hooks
from .selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    Watching,
    create_selective_checkpoint_contexts,
)
from .time_steps import checkpoint_steps, explain_steps

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "checkpoint_steps",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "explain_steps",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


def __dir__() -> list[str]:
    return sorted(__all__)


Contexts = Callable[[], tuple[Any, Any]]


class CheckpointError(RuntimeError):
    """The part saved different tensors the second time: it is not deterministic."""


# Programs match the errors and warnings of this module by these words.
_WHO = "torch.utils.checkpoint"
_DIFFERENT = f"{_WHO}: A different number of tensors was saved during the original forward and recomputation"
_SAME = "  What to do: let the function do the same each time; it must not depend on what changes in between."
_TIP = (
    "\n  To see which operations ran each time, pass debug=True to checkpoint(...), or call it within "
    "set_checkpoint_debug_enabled(True)."
)


class _Stop(Exception):  # noqa: N818 - not an error: everything needed has been recomputed
    pass


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing: the default contexts of `checkpoint` for the first and the second run."""
    return contextlib.nullcontext(), contextlib.nullcontext()


# Settings for all parts, whatever the arguments of `checkpoint`; None: not set. Each thread has its own settings, but a
# nested backward pass has those of the pass that waits for it.
_EARLY_STOP: ContextVar[bool | None] = ContextVar("early_stop", default=None)
_DEBUG: ContextVar[bool | None] = ContextVar("debug", default=None)
_GROUP: ContextVar[GraphExecGroup | None] = ContextVar("group", default=None)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether a second run stops once everything needed is recomputed, whatever the arguments of `checkpoint`."""
    before = _EARLY_STOP.get()
    try:
        try:
            _EARLY_STOP.set(enable)
            yield
        finally:
            _EARLY_STOP.set(before)
    except BaseException:  # an interrupt may have come as it was put back
        _EARLY_STOP.set(before)
        raise


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Whether parts made within it have `debug`, whatever the arguments of `checkpoint`; None: as the arguments say."""
    before = _DEBUG.get()
    try:
        try:
            _DEBUG.set(enabled)
            yield
        finally:
            _DEBUG.set(before)
    except BaseException:  # an interrupt may have come as it was put back
        _DEBUG.set(before)
        raise


class GraphExecGroup:
    """Several backward passes as one: they share the results that the first of them recomputed.

    Outside it, each backward pass runs a part again. Each value is handed out once, so the passes must need different
    values, e.g. for several outputs.

    >>> import pullback
    >>> x = pullback.ones(1, requires_grad=True)
    >>> part = lambda x: (x.exp(), x.sin())
    >>> a, b = pullback.utils.checkpoint.checkpoint(part, x, use_reentrant=False, early_stop=False)
    >>> with pullback.utils.checkpoint.GraphExecGroup():
    ...     a.backward(retain_graph=True)
    ...     b.backward()
    """

    def __enter__(self) -> GraphExecGroup:
        if _GROUP.get() is not None:
            raise RuntimeError("GraphExecGroup cannot be nested.\n  What to do: leave the inner one away.")
        try:
            _GROUP.set(self)
            return self
        except BaseException:
            _GROUP.set(None)
            raise

    def __exit__(self, *exc: object) -> None:
        _GROUP.set(None)


@restoring("checkpoint")
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, which keeps nothing for backward but its arguments.

    Inside `vmap`, `jvp` and a part with a policy of its own it is a plain call: everything is kept.

    Args:
        use_reentrant: None is False, with a warning. If True, compute again in a backward pass inside the backward
            pass. Only for `backward()` without `inputs`, and only tensors that are arguments themselves, not in lists
            or keywords, are tracked.
        context_fn: returns two context managers, in which the part runs at first and again.
        determinism_check: "default": CheckpointError if shapes or dtypes differ the second time; "none".
        debug: a CheckpointError also lists the operations of both runs, and the lines they were called from. Without
            reentrance and `context_fn` only.
        early_stop: stop the second run once everything needed is recomputed.
        preserve_rng_state: the second run draws the same random numbers.

    >>> import pullback
    >>> x = pullback.tensor([0.5, 1.0], requires_grad=True)
    >>> pullback.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([1.4174, 1.2534])

    See https://docs.pytorch.org/docs/stable/checkpoint.html.
    """
    if use_reentrant is None:
        _warn_of_the_default(_WHO)
    if use_reentrant:
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False.\n"
                "  What to do: pass use_reentrant=False."
            )
        if kwargs:
            raise ValueError(
                f"Unexpected keyword arguments: {', '.join(kwargs)}\n"
                "  What to do: pass use_reentrant=False; with use_reentrant=True the function gets none."
            )
        check_backward_validity(args)
        tensors = [a for a in args if isinstance(a, Tensor)]
        rest = _Rest([_HERE if isinstance(a, Tensor) else a for a in args])
        return CheckpointFunction.apply(function, preserve_rng_state, rest, *tensors)
    if debug if (asked_debug := _DEBUG.get()) is None else asked_debug:
        if context_fn is not noop_context_fn:
            raise ValueError(
                "debug=True is incompatible with non-default context_fn\n  What to do: leave one of the two away."
            )
        context_fn = _logs
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if not thread.modes.grad_enabled or any(isinstance(t, Lifted) for t in leaves((args, kwargs))):
        return function(*args, **kwargs)  # a transform's tensors are gone when the part would run again
    first, again = context_fn()
    stops = early_stop if (asked := _EARLY_STOP.get()) is None else asked
    part = _Part(function, args, kwargs, (first, again), determinism_check == "default", stops, preserve_rng_state)
    with saved_tensors_hooks(part.pack, lambda packed: packed.value()), first:
        found = _run(first, function, args, kwargs)
    part.whole = True
    return found


def _logs() -> tuple[Any, Any]:
    """The contexts of a part with `debug`."""
    return Log(), Log()


def _warn_of_the_default(who: str) -> None:
    warnings.warn(
        f"{who}: the use_reentrant parameter should be passed explicitly. Without it there is no reentrance here, as "
        "with use_reentrant=False, which is recommended; PyTorch's default is use_reentrant=True.",
        stacklevel=errors.callers_level(),
    )


def _run(context: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run the function within a context, which may watch its operations."""
    return context.run_part(function, args, kwargs) if isinstance(context, Watching) else function(*args, **kwargs)


def check_backward_validity(inputs: Any) -> None:
    """Warn if no input is a tensor that requires grad: a checkpoint with reentrance then passes no gradient on."""
    if not any(isinstance(t, Tensor) and t.requires_grad for t in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=errors.callers_level()
        )


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same inputs, with each tensor replaced by a leaf on its memory that requires grad if the tensor does.

    >>> import pullback
    >>> pullback.utils.checkpoint.detach_variable((pullback.ones(1, requires_grad=True) * 2, 3))
    (tensor([2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(errors.message("detach_variable()", expected="a tuple", found=errors.describe(inputs)))
    return tuple(t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in inputs)


class _Arguments(Function):
    """A node that saves the arguments of a part, so that hooks from outside see them; its result is not used."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Any:
        ctx.save_for_backward(*tensors)
        return anchor.detach().clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise AssertionError("nothing depends on it")


class _Number:
    """Stands for a tensor that was not saved: the n-th one of its part."""

    __slots__ = ("__weakref__", "kind", "n", "part")

    def __init__(self, part: _Part, n: int, t: Tensor) -> None:
        self.part, self.n, self.kind = part, n, (tuple(t.shape), t.dtype)

    def value(self) -> Tensor:
        return self.part.value(self)


class _Transforms:
    """A saved tensor of a transform in the part. Its graph ends with the transform, so it is just kept."""

    __slots__ = ("_held",)

    def __init__(self, t: Tensor) -> None:
        self._held = t

    def value(self) -> Tensor:
        return self._held


class _Part:
    """A part of a forward pass that can run again."""

    def __init__(
        self, function: Any, args: Any, kwargs: Any, contexts: Any, check: bool, stops: bool, preserve_rng: bool
    ) -> None:
        self.function, self.contexts, self.check, self.stops = function, contexts, check, stops
        self.rng = states() if preserve_rng else None
        self.numbers: list[weakref.ref[_Number]] = []
        self.whole = False  # whether the part has run to its end
        self.found: dict[int, Tensor] = {}  # recomputed in the running pass, and not handed out yet
        self.given: set[int] = set()  # the numbers handed out in that pass
        self.passing: Callable[[], Any] = lambda: None  # that pass; it holds the graph that the part is in
        flat = list(leaves((args, kwargs)))
        tensors = [t for t in flat if isinstance(t, Tensor)]
        self.structure = rebuild((args, kwargs), iter([_HERE if isinstance(t, Tensor) else t for t in flat]))
        self.tracked = [is_tracked(t) for t in tensors]
        tracked = next((t for t in tensors if is_tracked(t)), None)
        self.node = None if tracked is None else _Arguments.apply(tracked, *tensors).grad_fn
        self.held = tensors if tracked is None else []

    def pack(self, t: Tensor) -> _Number | _Transforms:
        """The number of a tensor that would be saved."""
        if isinstance(t, Lifted):
            return _Transforms(t)
        number = _Number(self, len(self.numbers), t)
        self.numbers.append(weakref.ref(number))
        return number

    def value(self, number: _Number) -> Tensor:
        """The tensor of that number, recomputed if this backward pass has not done so yet."""
        first, again = self.contexts
        if not isinstance(first, Log):
            return self._value(number)
        try:
            return self._value(number)
        except CheckpointError as error:
            raise CheckpointError(report(first, again, error)) from error

    def _value(self, number: _Number) -> Tensor:
        passing = _GROUP.get() or thread.modes.running_pass
        if passing is None or self.passing() is not passing:  # outside of a pass, each time
            self.passing, self.found, self.given = weakref.ref(passing) if passing else (lambda: None), {}, set()
        if number.n in self.given:
            said = f"{_WHO}: Unpack is being triggered for a tensor that was already unpacked once."
            if _GROUP.get() is not None:
                raise CheckpointError(
                    f"{said} Performing two backward calls that overlap, because they need the same saved tensor, is "
                    "not possible within a GraphExecGroup.\n"
                    "  What to do: leave the group away; each backward pass then runs the part again."
                )
            raise CheckpointError(f"{said}\n  What to do: read ctx.saved_tensors only once in backward.")
        self.given.add(number.n)
        if number.n not in self.found:
            self._run_again()
        if number.n not in self.found:
            raise CheckpointError(
                f"{_DIFFERENT}.\nexpected {len(self.numbers)}, found {len(self.found)}.\n{_SAME}{_TIP}"
            )
        return self.found.pop(number.n)

    @restoring()
    def _run_again(self) -> None:
        saved = self.held if self.node is None else self.node.saved_tensors
        given = iter([t.detach().requires_grad_() if r else t for t, r in zip(saved, self.tracked, strict=True)])
        args, kwargs = rebuild(self.structure, iter([next(given) if v is _HERE else v for v in leaves(self.structure)]))
        again = self.contexts[1]
        count, expected = 0, len(self.numbers)  # grows: a part may run a backward pass itself

        def pack(t: Tensor) -> Tensor:
            nonlocal count
            if isinstance(t, Lifted):
                return t
            n, count = count, count + 1
            if n < len(self.numbers):
                number = self.numbers[n]()
                if number is not None:
                    self._check(number, t)
                    self.found[n] = t.detach() if t._requires_grad else t
            if self.stops and count == expected:
                raise _Stop
            return t

        with same_random_numbers(self.rng), autograd.enable_grad(), again:
            try:
                with saved_tensors_hooks(pack, lambda t: t):  # as in forward: cotangents may have transforms above
                    lowered(depth(saved), _run, again, self.function, args, kwargs)
            except _Stop:
                return
        if self.check and self.whole and count != expected:
            more = "trying to save more tensors during recomputation than during the original forward pass"
            said = f"{_WHO}: {more}" if count > expected else _DIFFERENT
            raise CheckpointError(f"{said}.\nexpected {expected}, found {count}.\n{_SAME}{_TIP}")

    def _check(self, number: _Number, t: Tensor) -> None:
        found = (tuple(t.shape), t.dtype)
        if self.check and found != number.kind:
            raise CheckpointError(
                f"{_WHO}: Recomputed values for the following tensors have different metadata than during the forward "
                f"pass.\ntensor at position {number.n}: saved as {number.kind[1]} of shape {list(number.kind[0])}, and "
                f"is {found[1]} of shape {list(found[0])}.\n"
                f"  What to do: let the function do the same each time, or pass determinism_check='none'.{_TIP}"
            )


_HERE: Any = object()
"""The placeholder of a tensor among the arguments."""


class _Rest:
    """The arguments of a part that are not tensors, with `_HERE` in the tensors' places: nothing here is tracked."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def filled(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The arguments, with these tensors."""
        given = iter(tensors)
        return [next(given) if value is _HERE else value for value in self.values]


class CheckpointFunction(Function):
    """The part as one node, whose backward runs it again and does its own backward pass."""

    @staticmethod
    def forward(ctx: Any, function: Any, preserve_rng_state: bool, rest: _Rest, *tensors: Any) -> Any:
        """Run the part without recording it."""
        ctx.function, ctx.rng = function, states() if preserve_rng_state else None
        ctx.save_for_backward(*tensors)
        ctx.rest, ctx.tracked = rest, [is_tracked(t) for t in tensors]
        return function(*rest.filled(tensors))

    @staticmethod
    @restoring()
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the part again, recorded, and send the gradients through it."""
        if thread.modes.needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                ".backward().\n  What to do: use use_reentrant=False."
            )
        tensors = [t.detach().requires_grad_(r) for t, r in zip(ctx.saved_tensors, ctx.tracked, strict=True)]
        with same_random_numbers(ctx.rng), autograd.enable_grad():
            out = ctx.function(*ctx.rest.filled(tensors))
        outputs = out if isinstance(out, tuple) else (out,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads, strict=True)
            if isinstance(o, Tensor) and o.requires_grad and g is not None
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, None, *(t.grad for t in tensors))


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """A sequence of functions (or a `nn.Sequential`) applied one after the other in several parts; all but the last are
    checkpointed.

    >>> import pullback
    >>> x = pullback.ones(1, requires_grad=True)
    >>> steps = [pullback.sin, pullback.exp, pullback.cos]
    >>> pullback.utils.checkpoint.checkpoint_sequential(steps, 2, x, use_reentrant=False)
    tensor([-0.6809], grad_fn=<CosBackward0>)
    """
    if use_reentrant is None:
        _warn_of_the_default(f"{_WHO}.checkpoint_sequential")
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ", ".join(kwargs))
    steps: Sequence[Any] = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start: int, stop: int) -> Callable[[Any], Any]:
        def part(value: Any) -> Any:
            for step in steps[start:stop]:
                value = step(value)
            return value

        return part

    size = len(steps) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(run(start, end), input, use_reentrant=bool(use_reentrant), preserve_rng_state=preserve)
    return run(end, len(steps))(input)


errors.doors(
    globals(),
    "check_backward_validity checkpoint_sequential detach_variable "
    "set_checkpoint_debug_enabled set_checkpoint_early_stop",
)

"""Switching the recording of operations off and on, for the thread one is in.

Each mode is a context manager and a decorator, also of generators, whose mode holds only while their own code runs.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .._memory import WRITES, next_write
from .._state import INFERENCES, thread

F = TypeVar("F", bound=Callable[..., Any])


class _Mode:
    """A context manager that sets grad mode, and puts back what was there."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(thread.modes.grad_enabled)
        thread.modes.grad_enabled = self._enabled

    def __exit__(self, *exc: object) -> None:
        thread.modes.grad_enabled = self._before.pop()

    def _again(self) -> _Mode:
        """The same mode, to be entered for one call of what is decorated."""
        return _Mode(self._enabled)

    def __call__(self, fn: F) -> F:
        if inspect.isclass(fn):
            return self._class(fn)
        if inspect.isgeneratorfunction(fn):
            return self._generator(fn)  # type: ignore[return-value]

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return fn(*args, **kwargs)

        return call  # type: ignore[return-value]

    def _class(self, cls: Any) -> Any:
        warnings.warn(
            f"Decorating classes is deprecated: only {cls.__name__}.__init__ runs in this mode. Decorate that itself.",
            FutureWarning,
            stacklevel=3,
        )
        cls.__init__ = self(cls.__init__)
        return cls

    def _generator(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            inner = fn(*args, **kwargs)
            step, value = inner.send, None
            while True:
                try:
                    with self._again():
                        out = step(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    step, value = inner.send, (yield out)
                except GeneratorExit:
                    with self._again():
                        inner.close()
                    raise
                except BaseException as error:
                    step, value = inner.throw, error

        return call


class no_grad(_Mode):  # noqa: N801 - torch's name
    """Operations inside are not recorded: their results do not require grad.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> with pullback.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, fn: Callable[..., Any] | None = None) -> None:
        super().__init__(False)

    def __new__(cls, fn: Any = None) -> Any:
        """`@no_grad` without parentheses decorates as `@no_grad()` does."""
        return super().__new__(cls) if fn is None else cls()(fn)


class enable_grad(_Mode):  # noqa: N801 - torch's name
    """Operations inside are recorded, also within `no_grad`."""

    def __init__(self, fn: Callable[..., Any] | None = None) -> None:
        super().__init__(True)

    def __new__(cls, fn: Any = None) -> Any:
        """`@enable_grad` without parentheses decorates as `@enable_grad()` does."""
        return super().__new__(cls) if fn is None else cls()(fn)


class set_grad_enabled(_Mode):  # noqa: N801 - torch's name
    """Set grad mode now; as a context manager, put it back on leaving; as a decorator, only within the function.

    >>> import pullback
    >>> with pullback.set_grad_enabled(False):
    ...     pullback.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): expected a bool, found {type(mode).__name__}")
        super().__init__(mode)
        self._outside = thread.modes.grad_enabled
        thread.modes.grad_enabled = mode

    def __enter__(self) -> None:
        self._before.append(self._outside)
        thread.modes.grad_enabled = self._enabled

    def __call__(self, fn: F) -> F:
        thread.modes.grad_enabled = self._outside
        return super().__call__(fn)


class inference_mode(_Mode):  # noqa: N801 - torch's name
    """As `no_grad`, and for good: writes are not counted, and results can be part of no graph outside of it either.

    mode: False leaves an inference mode around it. In exchange the results, which ``is_inference()`` tells, are a
    little cheaper; outside they cannot be written to in place, be saved for backward or require gradients, but their
    clones can.

    >>> import pullback
    >>> with pullback.inference_mode():
    ...     y = pullback.ones(2) * 2
    >>> y.is_inference(), y.clone().is_inference()
    (True, False)

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)
        self._inference = mode
        self._outside: list[bool] = []

    def __new__(cls, mode: Any = True) -> Any:
        """`@inference_mode` without parentheses decorates as `@inference_mode()` does."""
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def _again(self) -> _Mode:
        return inference_mode(self._inference)

    def __enter__(self) -> None:
        super().__enter__()
        self._outside.append(thread.modes.inference)
        thread.modes.inference = self._inference
        INFERENCES.n += 1
        WRITES.n = next_write()  # from now on, what is saved is looked at

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        thread.modes.inference = self._outside.pop()
        INFERENCES.n -= 1


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return thread.modes.inference


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return thread.modes.grad_enabled

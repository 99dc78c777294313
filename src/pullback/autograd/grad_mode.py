"""Switching the recording of operations off and on, for the current thread.

Each mode is a context manager and a decorator. In a decorated generator, the mode holds only while its own code runs.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .. import errors
from ..tensor.memory import WRITES, next_write
from ..tensor.modes import INFERENCES, thread
from ..tensor.tensor import Tensor

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "set_fwd_grad_enabled",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "unsafe_preserve_version_counter",
]


def __dir__() -> list[str]:
    return sorted(__all__)


F = TypeVar("F", bound=Callable[..., Any])


def _set(enabled: bool) -> None:
    """Record operations or not; in inference mode they are never recorded."""
    modes = thread.modes
    modes.grad_enabled, modes.grad_asked = enabled and not modes.inference, enabled


class Mode:
    """A context manager that sets grad mode, and puts back what was there.

    Nothing is called between a mode's change and the end of `__enter__`: an interrupt there would leave it changed.
    """

    _inference: bool | None = None  # what inference mode becomes; None: it stays
    _made_in: bool | None = None  # the mode to put back, if it was changed before `__enter__`

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[tuple[bool, bool, bool]] = []

    def __enter__(self) -> None:
        modes = thread.modes
        before, depth = (modes.grad_enabled, modes.grad_asked, modes.inference), len(self._before)
        if (was := self._made_in) is not None:
            before = was and not modes.inference, was, modes.inference
        try:
            self._before.append(before)
            if self._inference is not None:
                INFERENCES.add((self, depth))
                WRITES.n = next_write()  # from now on, what is saved is looked at
                modes.inference = self._inference
            modes.grad_asked = self._enabled
            modes.grad_enabled = self._enabled and not modes.inference
        except BaseException:
            modes.grad_enabled, modes.grad_asked, modes.inference = before
            del self._before[depth:]
            INFERENCES.discard((self, depth))
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self._put_back()
        finally:
            self._put_back()  # all of it, where an interrupt came
            self._before.pop()

    def _put_back(self) -> None:
        modes = thread.modes
        modes.grad_enabled, modes.grad_asked, modes.inference = self._before[-1]
        if self._inference is not None:
            INFERENCES.discard((self, len(self._before) - 1))

    def _leave(self) -> None:
        """Put back what is not put back yet, because an interrupt came before `__exit__`."""
        while self._before:
            self._put_back()
            self._before.pop()

    def clone(self) -> Any:
        """Another context manager of the same mode; each call of a decorated function enters its own."""
        kind: Any = type(self)
        return kind()

    def __call__(self, fn: F) -> F:
        if inspect.isclass(fn):
            return self(self._making(fn))
        if inspect.isgeneratorfunction(fn):
            return self._generator(fn)  # type: ignore[return-value]

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            mode = self.clone()
            try:
                with mode:
                    return fn(*args, **kwargs)
            except BaseException:
                mode._leave()
                raise

        return errors.called(call, call.__name__)  # type: ignore[return-value]

    def _making(self, cls: Any) -> Any:
        """A function that makes objects of a class, which itself stays as it is."""
        warnings.warn(
            f"Decorating classes is deprecated: only {cls.__name__}.__init__ runs in this mode. Decorate that itself.",
            FutureWarning,
            stacklevel=errors.callers_level(),
        )

        def make(*args: Any, **kwargs: Any) -> Any:
            return cls(*args, **kwargs)

        make.__name__ = make.__qualname__ = cls.__name__
        return make

    def _generator(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            inner = fn(*args, **kwargs)
            step, value = inner.send, None
            while True:
                mode = self.clone()
                try:
                    with mode:
                        out = step(value)
                except StopIteration as stop:
                    return stop.value
                except BaseException:
                    mode._leave()
                    raise
                try:
                    step, value = inner.send, (yield out)
                except GeneratorExit:
                    with self.clone():
                        inner.close()
                    raise
                except BaseException as error:
                    step, value = inner.throw, error

        return errors.called(call, call.__name__)


class no_grad(Mode):  # noqa: N801 - torch's name
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


class enable_grad(Mode):  # noqa: N801 - torch's name
    """Operations inside are recorded, also within `no_grad`."""

    def __init__(self, fn: Callable[..., Any] | None = None) -> None:
        super().__init__(True)

    def __new__(cls, fn: Any = None) -> Any:
        """`@enable_grad` without parentheses decorates as `@enable_grad()` does."""
        return super().__new__(cls) if fn is None else cls()(fn)


class set_grad_enabled(Mode):  # noqa: N801 - torch's name
    """Set grad mode now; as a context manager, restore it on leaving; as a decorator, only within the function.

    >>> import pullback
    >>> with pullback.set_grad_enabled(False):
    ...     pullback.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): expected a bool, found {type(mode).__name__}")
        super().__init__(mode)
        self._made_in = is_grad_enabled()
        try:
            _set(mode)
        except BaseException:
            _set(bool(self._made_in))
            raise

    def __call__(self, fn: F) -> F:
        _set(bool(self._made_in))
        return super().__call__(fn)

    def clone(self) -> set_grad_enabled:
        """Another one for the same mode, which sets it at once."""
        return set_grad_enabled(self._enabled)


class inference_mode(Mode):  # noqa: N801 - torch's name
    """As `no_grad`, but permanent: writes are not counted, and the results can never be part of a graph.

    mode: False leaves the inference mode around it. The results are a little cheaper to make, and ``is_inference()`` is
    True for them. Outside, they cannot be written to in place, be saved for backward or require gradients; their clones
    can.

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

    def __new__(cls, mode: Any = True) -> Any:
        """`@inference_mode` without parentheses decorates as `@inference_mode()` does."""
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def clone(self) -> inference_mode:
        """Another context manager of the same mode."""
        return inference_mode(bool(self._inference))


class _Switch(Mode):
    """One of the other modes, set when this is made; as a context manager, it is restored on leaving."""

    _attribute: str  # the name of the thread's mode

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._was = getattr(thread.modes, self._attribute)
        setattr(thread.modes, self._attribute, mode)

    def __enter__(self) -> None:
        """The mode was set when this was made."""

    def __exit__(self, *exc: object) -> None:
        setattr(thread.modes, self._attribute, self._was)

    def __call__(self, fn: F) -> F:
        self.__exit__()
        return super().__call__(fn)

    def clone(self) -> Any:
        """Another one for the same mode, which sets it at once."""
        return type(self)(self._enabled)


class set_multithreading_enabled(_Switch):  # noqa: N801 - torch's name
    """Whether a backward pass may start threads: the setting is kept, but a pass never does.

    A backward pass runs in the calling thread. As in torch, the mode is set by the call; this is also a context manager
    and a decorator.
    """

    _attribute = "multithreading"


class set_fwd_grad_enabled(_Switch):  # noqa: N801 - torch's name
    """Set whether forward mode computes tangents, from the call on; as a context manager, restore it on leaving."""

    _attribute = "forward_enabled"


def is_multithreading_enabled() -> bool:
    """The setting of `set_multithreading_enabled` in this thread; True at first."""
    return thread.modes.multithreading


class unsafe_preserve_version_counter:  # noqa: N801 - torch's name
    """Within it, writes to the memory of these tensors are not counted, so changed saved tensors are not noticed.

    tensors: one, or a tuple of them.
    """

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self._tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        self._before = [t._share_version().n for t in self._tensors]

    def __enter__(self) -> None:
        """The versions were noted when this was made."""

    def __exit__(self, *exc: object) -> None:
        for t, n in zip(self._tensors, self._before, strict=True):
            t._share_version().put_back(n)


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return thread.modes.inference


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    modes = thread.modes
    return modes.grad_asked if modes.inference else modes.grad_enabled


errors.doors(globals(), "set_fwd_grad_enabled set_multithreading_enabled unsafe_preserve_version_counter")

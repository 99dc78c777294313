"""The protocol `__torch_function__`: how operations treat user-defined Tensor classes and modes.

An operation with an instance of such a class among its arguments asks the class: ``cls.__torch_function__(operation,
types, args, kwargs)``. The method inherited from Tensor calls the operation and gives the result the class of the
instance. A class may redefine it, and call ``super().__torch_function__`` for the inherited behaviour. A
`TorchFunctionMode` is asked in the same way, before the classes, for every operation while it is on.

It costs nothing until it is used: operations look for such instances only after a class was derived, and for modes only
while one is on.
"""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from .. import errors
from .modes import LEVELS, Count, thread, within
from .nested import instances
from .tensor import Lifted, Tensor, need_tensor, wrap_as

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "disabled_torch_function_impl",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "wrap_torch_function",
]


def __dir__() -> list[str]:
    return sorted(__all__)


_DERIVED: weakref.WeakSet[type] = weakref.WeakSet()

ASKED = Count()
"""What operations may have to ask: classes, as soon as one was derived, and modes. At 0 they look for nothing."""


def disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Set it as the `__torch_function__` of a class: operations then do not ask it, and results are plain Tensors."""
    return NotImplemented


class DisableTorchFunctionSubclass:
    """Within it, operations ask no class, and results are plain Tensors."""

    def __enter__(self) -> None:
        self._before = thread.modes.overrides, thread.modes.functions
        try:
            self._set()
        except BaseException:
            self.__exit__()
            raise

    def _set(self) -> None:
        thread.modes.overrides = False

    def __exit__(self, *exc: object) -> None:
        modes = thread.modes
        try:
            modes.overrides, modes.functions = self._before
        finally:
            modes.overrides, modes.functions = self._before  # all of it, where an interrupt came


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Within it, operations ask neither classes nor modes."""

    def _set(self) -> None:
        thread.modes.overrides, thread.modes.functions = False, ()


class TorchFunctionMode:
    """A mode that sees every operation of its thread while it is on: ``with Mode():``.

    A class derived from it has a method ``__torch_function__(self, func, types, args=(), kwargs=None)``, which returns
    the result of the operation. func: the function of `pullback` that was called, also if it was written as a method or
    an operator. types: the classes derived from Tensor among the arguments. Modes nest: the operations that a mode
    calls are seen by the modes around it, not by itself. A mode that returns NotImplemented leaves the operation to the
    classes.

    It sees the table's operations with their in-place twins, subscripts that are written to, the functions that make
    tensors, `backward` and `grad`; not attributes, other writes (`zero_`, `copy_`), or the inside of what is compiled.

    >>> import pullback
    >>> class Names(pullback.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     y = pullback.zeros(2).sin() + 1
    zeros
    sin
    add

    See https://docs.pytorch.org/docs/stable/notes/extending.html.
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        modes = thread.modes
        before = modes.functions
        try:
            ACTIVE.add((threading.get_ident(), id(self), len(before)))
            modes.functions = (*before, self)
            return self
        except BaseException:
            modes.functions = before
            ACTIVE.discard((threading.get_ident(), id(self), len(before)))
            raise

    def __exit__(self, *exc: object) -> None:
        before = thread.modes.functions
        try:
            self._leave(before)
        finally:
            self._leave(before)  # all of it, where an interrupt came

    def _leave(self, functions: tuple[Any, ...]) -> None:
        place = max([i for i, mode in enumerate(functions) if mode is self], default=len(functions))
        thread.modes.functions = functions[:place]
        ACTIVE.discard((threading.get_ident(), id(self), place))

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """Return the mode itself: the older form of ``with Mode():``."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`",
            stacklevel=errors.callers_level(),
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


class _Active(Count):
    """The modes that are on, in all threads. told: functions that hear whether there are any."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Callable[[bool], None]] = []

    def add(self, one: Any) -> None:
        super().add(one)
        LEVELS.add(("function mode", one))
        ASKED.add(("function mode", one))
        for tell in self.told:
            tell(self.n > 0)

    def discard(self, one: Any) -> None:
        super().discard(one)
        LEVELS.discard(("function mode", one))
        ASKED.discard(("function mode", one))
        for tell in self.told:
            tell(self.n > 0)


ACTIVE = _Active()


class _Own(Count):
    """The payloads that are alive of the library's own kinds of tensors, which operations ask while there are any."""

    __slots__ = ("kinds",)

    def __init__(self) -> None:
        super().__init__()
        self.kinds: set[type[Tensor]] = set()

    def _count(self) -> None:
        super()._count()
        before = -1
        while before != self.n:  # a payload may be made or die in another thread meanwhile
            before = self.n
            (LEVELS.add if before else LEVELS.discard)("own kinds")
            (ASKED.add if before else ASKED.discard)("own kinds")
            (_DERIVED.update if before else _DERIVED.difference_update)(self.kinds)


_OWN = _Own()


def own_kind(cls: type[Tensor], ask: Callable[..., Any]) -> None:
    """Let operations call ``ask(operation, types, args, kwargs)`` for a class of the library, also where those of users
    are not asked. They look for it while one of its payloads, which tell `alive`, exists.
    """
    cls.__torch_function__ = staticmethod(ask)  # type: ignore[attr-defined]
    _OWN.kinds.add(cls)


def alive(payload: Any, yes: bool) -> None:
    """Note that a payload of one of these classes was made, or that it dies."""
    (_OWN.add if yes else _OWN.discard)(id(payload))


def unasked(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call within which operations ask no class at all."""
    return within(thread.modes, {"overrides": None}, functools.partial(call, **kwargs), *args)


def overriding(values: Iterable[Any], own: bool = True) -> tuple[Any, ...]:
    """The objects that an operation on these arguments asks: the innermost mode, then classes, derived before base.

    own: whether the library's own kinds of tensors are among the classes; they come last.
    """
    if not ASKED.n:
        return ()
    modes = thread.modes
    found: list[Any] = []
    last: tuple[Any, ...] = ()
    if _DERIVED and modes.overrides is not None:
        for value in instances(values, Tensor):
            kind = type(value)
            if kind not in _DERIVED or kind in found or kind.__torch_function__ is disabled_torch_function_impl:
                continue
            if kind in _OWN.kinds:
                last = (kind,) if own else ()
            elif modes.overrides:
                place = next((i for i, other in enumerate(found) if issubclass(kind, other)), len(found))
                found.insert(place, kind)
    return (*modes.functions[-1:], *found, *last)


def dispatch(kinds: Sequence[Any], func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """The first result that is not NotImplemented, from the mode or a class; TypeError if there is none."""
    types = tuple(kind for kind in kinds if isinstance(kind, type) and kind not in _OWN.kinds)
    for kind in kinds:
        ask = kind.__torch_function__ if isinstance(kind, type) else _apart(kind)  # type: ignore[attr-defined]
        found = ask(func, types, args, kwargs)
        if found is not NotImplemented:
            return found
    name = getattr(func, "__name__", repr(func))
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: "
        f"{[kind.__name__ if isinstance(kind, type) else f'mode {kind!r}' for kind in kinds]}.\n"
        "  What to do: derive one of the classes from the other, or let its __torch_function__ take the other's types."
    )


def _apart(mode: TorchFunctionMode) -> Callable[..., Any]:
    """A mode's `__torch_function__`, within which the mode is off."""

    def ask(*given: Any) -> Any:
        if getattr(mode.__torch_function__, "__self__", mode) is not mode:
            raise RuntimeError(
                f"{type(mode).__name__}: defining a mode's __torch_function__ as a classmethod is not supported, "
                "please make it a plain method"
            )
        return within(thread.modes, {"functions": thread.modes.functions[:-1]}, mode.__torch_function__, *given)

    return ask


def _torch_function(
    cls: type[Tensor], func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
) -> Any:
    """Call an operation, and give its results this class; NotImplemented if an argument is of an unrelated class.

    func: the function of `pullback` for the operation, also if it was called as a method or an operator.
    types: the classes derived from Tensor among the arguments.
    """
    if _is_pytorchs(func):
        raise TypeError(
            errors.message(
                f"torch.{getattr(func, '__name__', func)}()",
                expected="tensors of torch",
                found="a Tensor of pullback",
                do="call the function of pullback, or make that of torch a node: pullback.bridge.torch.function(f)",
            )
        )
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    kwargs = kwargs or {}
    with DisableTorchFunctionSubclass():
        found = func(*args, **kwargs)
        return _converted(found, cls, _identities((*args, *kwargs.values())))


def _is_pytorchs(func: Any) -> bool:
    """Whether PyTorch asks, which has the same protocol, about an operation of its own: it takes no Tensors of ours."""
    home = getattr(func, "__module__", None) or getattr(getattr(func, "__objclass__", None), "__module__", None)
    return isinstance(home, str) and home.partition(".")[0] == "torch"


def _identities(values: Iterable[Any]) -> set[int]:
    found: set[int] = set()
    for value in values:
        found |= _identities(value) if isinstance(value, (tuple, list)) else {id(value)}
    return found


def _converted(value: Any, cls: type[Tensor], given: set[int]) -> Any:
    """Results as instances of this class; a result that was an argument becomes a view of it."""
    if isinstance(value, Tensor):
        if isinstance(value, (cls, Lifted)):
            return value
        if type(value) is Tensor and id(value) not in given:
            try:
                value.__class__ = cls
                return value
            except TypeError:  # a class with slots of its own
                pass
        return _as_subclass(value, cls)
    if isinstance(value, (tuple, list)) and any(isinstance(part, Tensor) for part in value):
        parts = [_converted(part, cls, given) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """A tensor of that class on the same memory, recorded in the graph after this one."""
    _check_class(cls)
    with DisableTorchFunctionSubclass():
        alias: Any = self.view_as(self)
    made = wrap_as(cls, alias._data)
    made._edge, made._requires_grad, made._version_of = alias._edge, alias._requires_grad, alias._version_of
    made._view = alias._view
    if alias._view is not None:
        alias._version_of.add_view(made)
    return made


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Tensor:
    """A leaf of that class on the memory of `data`, outside its graph."""
    _check_class(cls)
    need_tensor("_make_subclass()", data)
    made = wrap_as(cls, data._data)
    made._version_of = data._share_version()
    made.requires_grad = require_grad
    return made


def _check_class(cls: Any) -> None:
    if not isinstance(cls, type):
        raise TypeError(errors.message("as_subclass()", expected="a class", found=errors.describe(cls)))
    if not issubclass(cls, Tensor):
        raise TypeError(
            errors.message(
                "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible",
                found=cls.__name__,
            )
        )


def _register(cls: Any, /, **kwargs: Any) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    if cls.__torch_function__ is not disabled_torch_function_impl and not issubclass(cls, Lifted):
        _DERIVED.add(cls)
        ASKED.add("derived classes")
        LEVELS.add("classes")  # from now on, operations look at their arguments


# For the user's functions that ask as operations do -----------------------------------------------------


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments is of a class that overrides operations, or a mode is on."""
    try:
        return bool(overriding(relevant_args, own=False))
    except Exception as error:
        errors.rename("has_torch_function", error, (relevant_args,), keep=True)
        raise


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """The result of ``public_api(*args, **kwargs)`` from a mode, or from the classes among the relevant arguments.

    >>> import pullback
    >>> from pullback.overrides import handle_torch_function, has_torch_function
    >>> class Named(pullback.Tensor):
    ...     pass
    >>> def double(x):
    ...     if has_torch_function((x,)):
    ...         return handle_torch_function(double, (x,), x)
    ...     return 2 * x
    >>> type(double(Named([1.0]))).__name__
    'Named'
    """
    return dispatch(overriding(relevant_args, own=False), public_api, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]], *, _own: bool = False) -> Callable[..., Any]:
    """A decorator for such functions; `dispatcher` takes the function's arguments and returns the relevant ones."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            kinds = overriding(dispatcher(*args, **kwargs), _own) if LEVELS.n else ()
            return dispatch(kinds, call, args, kwargs) if kinds else func(*args, **kwargs)

        return errors.called(call, call.__name__)

    return decorate


by_first_argument = wrap_torch_function(lambda input=None, *args, **kwargs: (input,), _own=True)
"""The decorator for functions that make a tensor like another one."""

by_modes = wrap_torch_function(lambda *args, **kwargs: ())
"""The decorator for functions that make a tensor from other values: modes see them."""


def chosen(**named: Any) -> dict[str, Any]:
    """The keyword arguments that were given, among those whose default is None or False."""
    return {name: value for name, value in named.items() if value is not None and value is not False}


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a Tensor, or of a class with `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


errors.doors(globals(), "handle_torch_function wrap_torch_function")

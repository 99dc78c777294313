"""Calls without a Tensor: they are SciPy's own, on arrays, and give what SciPy gives.

So the constants of a program that only changed its imports stay arrays, computed as before. An object that is made of
arrays alone, a spline or a factorisation, is SciPy's in the same way, and ours where a Tensor comes (`OfArrays`).
A call that has a function among its arguments is ours: a solver calls it with Tensors.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from .. import errors
from ..autograd.grad_mode import inference_mode
from ..tensor.nested import CONTAINERS, leaves, rebuild
from ..tensor.tensor import Tensor

C = TypeVar("C")
_NUMBERS = frozenset(
    (int, float, complex, bool, str, bytes, type(None), np.float64, np.float32, np.int64, np.bool_, np.complex128)
)
_OURS = frozenset(("on_failure", "progress"))
"""Settings that SciPy's functions do not have."""

_FUNCTIONS = frozenset(("fun", "func", "matvec"))
"""What is called so is a function: solvers are ours, with their errors."""

_MAKERS: dict[str, Callable[..., Any]] = {}
"""Our functions as they are written, by SciPy's name."""

_MADE: weakref.WeakKeyDictionary[OfArrays, Any] = weakref.WeakKeyDictionary()
"""Objects of ours, which are no attributes: a program of `compile` sets none."""


class HoldsTensorsError(Exception):
    """An argument is no array, nor a setting: the call is ours."""


def as_scipys(value: Any) -> Any:
    """An argument as SciPy takes it. HoldsTensorsError for a Tensor, a function, and an object of ours that holds one.

    >>> as_scipys(2.0)
    2.0
    """
    kind = type(value)
    if kind in _NUMBERS:
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":  # it may hold Tensors
            raise HoldsTensorsError
        return value
    if issubclass(kind, CONTAINERS):
        flat = list(leaves(value))
        given = [as_scipys(leaf) for leaf in flat]
        same = all(a is b for a, b in zip(flat, given, strict=True))
        return value if same else rebuild(value, iter(given))
    if kind is OfArrays:
        return value._plain
    if isinstance(value, (type, np.random.Generator, np.random.RandomState)):
        return value
    if scipy.sparse.issparse(value):
        return as_scipys(value.data) if value.dtype.kind == "O" else value
    is_ours = isinstance(value, Tensor) or kind.__module__.partition(".")[0] == "pullback"
    if is_ours or callable(value) or hasattr(kind, "__torch_function__"):
        raise HoldsTensorsError
    return value


def alone(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """All arguments as SciPy takes them; None if a Tensor or a function is among them."""
    try:
        return tuple([as_scipys(a) for a in args]), {name: as_scipys(a) for name, a in kwargs.items()}
    except HoldsTensorsError:
        return None


@functools.cache
def scipys(name: str) -> Any:
    """SciPy's function or class, by its name below ``scipy.``; None where this SciPy has none."""
    package, _, own = name.rpartition(".")
    return getattr(importlib.import_module(f"scipy.{package}"), own, None)


def takes_functions(name: str, function: Callable[..., Any]) -> bool:
    """Whether a function is among the arguments of SciPy's function of that name."""
    taken = inspect.signature(function).parameters
    return name.startswith("optimize.") or not _FUNCTIONS.isdisjoint(taken) or name == "integrate.quad_vec"


def on_arrays(
    name: str, function: Callable[..., Any], made: Callable[..., Any], of_arrays: Callable[[Any], Any] | None
) -> Callable[..., Any]:
    """A function that is SciPy's where no Tensor and no function is among its arguments.

    made: the function as it is written, which makes ours of an object. of_arrays: makes an object of SciPy's one that
    may meet Tensors; by default that is `OfArrays`.
    """

    if takes_functions(name, function):
        return function
    _MAKERS[name] = made

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = alone(args, kwargs)
        if given is None:
            return function(*args, **kwargs)
        if scipys(name) is None or not _OURS.isdisjoint(kwargs):
            return _handed_back(function(*args, **kwargs))
        found = scipys(name)(*given[0], **given[1])
        if of_arrays is not None:
            return of_arrays(found)
        return OfArrays(found, _recipe(_made, name, given)) if _is_object(found) else found

    return call


def methods_on_arrays(kind: type[C]) -> type[C]:
    """A distribution's class whose methods are those of SciPy's, `_scipy`, where no Tensor is among the arguments."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_") and not hasattr(method, "on_arrays"):
            setattr(kind, name, _method_on_arrays(method))
    return kind


def _method_on_arrays(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = alone(args, kwargs)
        if given is None:
            return method(self, *args, **kwargs)
        return getattr(self._scipy, method.__name__)(*given[0], **given[1])

    call.on_arrays = True  # type: ignore[attr-defined]
    return call


def class_methods_on_arrays(name: str, kind: type) -> None:
    """Give the class methods of a class of ours, like ``BSpline.basis_element``, to SciPy where no Tensor comes."""
    for method, found in list(vars(kind).items()):
        if isinstance(found, classmethod) and method[0] != "_":
            setattr(kind, method, classmethod(_class_method_on_arrays(name, kind, found.__func__)))


def _class_method_on_arrays(name: str, entered: type, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(kind: type, *args: Any, **kwargs: Any) -> Any:
        given = alone(args, kwargs) if kind is entered else None
        if given is None:
            return method(kind, *args, **kwargs)
        found = getattr(scipys(name), method.__name__)(*given[0], **given[1])
        return OfArrays(found, _recipe(_of_class, method.__name__, given, entered))

    return call


def new_of_arrays(name: str, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OfArrays | None:
    """An object of SciPy's class, if all arguments are arrays and settings."""
    given = alone(args, kwargs)
    if given is None:
        return None
    return OfArrays(scipys(name)(*given[0], **given[1]), _recipe(_instance, kind, given))


def _recipe(step: Callable[..., Any], what: Any, given: Any, *before: Callable[..., Any]) -> Callable[[], Any]:
    """How ours is made, from arguments that stay as they are if the arrays are written to."""
    flat = [v.copy() if isinstance(v, np.ndarray) or scipy.sparse.issparse(v) else v for v in leaves(given)]
    return functools.partial(step, *before, what, *rebuild(given, iter(flat)))


def _made(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _MAKERS[name](*args, **kwargs)


def _instance(kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    ours: Any = object.__new__(kind)
    kind.__init__(ours, *args, **kwargs)  # type: ignore[misc]
    return ours


def _of_class(kind: type, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return getattr(kind, name).__wrapped__(kind, *args, **kwargs)


def _part(whole: Callable[[], Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return getattr(whole(), name)(*args, **kwargs)


def _changed(whole: Callable[[], Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    ours = whole()
    change = getattr(ours, name, None)
    if change is None:
        what = f"an object of arrays that was changed by {name}() cannot take a Tensor: {name} has no derivative here"
        raise TypeError(errors.message(what, do="make another object, of what it should hold"))
    change(*args, **kwargs)
    return ours


def _with_attribute(whole: Callable[[], Any], name: str, value: Any) -> Any:
    ours = whole()
    setattr(ours, name, value)
    return ours


def _is_object(found: Any) -> bool:
    return callable(found) or type(found).__name__ == "SuperLU"  # by its name: its package is slow to import


def _handed_back(result: Any) -> Any:
    """A result with arrays for its Tensors, as SciPy gives it."""
    flat = [leaf._data[()] if isinstance(leaf, Tensor) else leaf for leaf in leaves(result)]
    return rebuild(result, iter(flat))


class OfArrays:
    """An object of SciPy's that was made of arrays alone. Where a Tensor comes, it is the same object of ours.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> line = interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])
    >>> float(line(1.5)), line(pullback.tensor(1.5))
    (2.25, tensor(2.2500, dtype=pullback.float64))
    """

    def __init__(self, plain: Any, recipe: Callable[[], Any]) -> None:
        """plain: SciPy's object. recipe: makes ours, when it is first needed."""
        self.__dict__.update(_plain=plain, _recipe=recipe)

    def _ours(self) -> Any:
        found = _MADE.get(self)
        if found is None:
            with inference_mode(False):  # its tensors serve calls that are recorded, too
                found = _MADE.setdefault(self, self._recipe())
        return found

    def _call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        given = alone(args, kwargs)
        if given is None:
            return getattr(self._ours(), name)(*args, **kwargs)
        found = getattr(self._plain, name)(*given[0], **given[1])
        if found is None:  # it changed the object
            self._follow(_recipe(_changed, name, given, self._recipe))
        if _is_object(found):  # another such object, like the derivative of a spline
            return OfArrays(found, _recipe(_part, name, given, self._recipe))
        return found

    def _follow(self, recipe: Callable[[], Any]) -> None:
        self.__dict__["_recipe"] = recipe
        _MADE.pop(self, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("__call__", *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._plain, name)
        return functools.partial(self._call, name) if callable(found) else to_read(found)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._plain, name, value)
        self._follow(functools.partial(_with_attribute, self._recipe, name, value))

    def __dir__(self) -> Iterable[str]:
        return dir(self._plain)

    def __repr__(self) -> str:
        return repr(self._plain)


def to_read(found: Any) -> Any:
    """SciPy's array to read: what is written there would not reach what meets Tensors."""
    if isinstance(found, tuple):
        return tuple(map(to_read, found))
    if isinstance(found, np.ndarray):
        found = found.view()
        found.flags.writeable = False
    return found


__all__ = ["OfArrays", "class_methods_on_arrays", "methods_on_arrays", "new_of_arrays", "on_arrays", "takes_functions"]

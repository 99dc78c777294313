"""The function of this package that runs when a NumPy or SciPy function is called on a Tensor.

The table of operations fills `NUMPY`. Functions of scipy.special are entered by name, because SciPy may not be
installed.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import errors
from ..kept_gradients import CHOSEN
from .memory import LevelPayload
from .modes import thread

F = TypeVar("F", bound=Callable[..., Any])

NUMPY: dict[Any, Callable[..., Any]] = {}
"""For each NumPy function that is differentiable, the function that takes its arguments and returns Tensors.

A method of a ufunc is entered as the pair of both, ``(np.add, "reduce")``, or for all of them as ``(None, "outer")``:
that function takes the ufunc first. Functions of SciPy, which may not be installed, are named: "scipy.special.erf"."""

INSTEAD: dict[Any, str] = {}
"""For NumPy functions that are refused if a gradient would be lost: what to write instead. Keys as in `NUMPY`."""

_WITHOUT = {
    "where": CHOSEN,
    "dtype": "convert the operands or the result with .to(dtype)",
    **dict.fromkeys(("casting", "order", "subok", "signature"), "leave it out"),
}


def full_name(function: Any) -> str:
    """The name of a function of NumPy or SciPy with its module, as errors show it.

    >>> full_name(np.add), full_name(np.add.reduce), full_name(np.linalg.solve)
    ('numpy.add', 'numpy.add.reduce', 'numpy.linalg.solve')
    """
    if isinstance(owner := getattr(function, "__self__", None), np.ufunc):
        return f"{full_name(owner)}.{function.__name__}"
    name = function.__name__
    if not isinstance(function, np.ufunc):
        module = getattr(function, "__module__", None) or "numpy"
        return f"{module.replace('numpy._core', 'numpy')}.{name}"
    if getattr(np, name, None) is function:
        return f"numpy.{name}"
    return f"scipy.special.{name}" if _of_scipy(function) else str(name)


def _of_scipy(ufunc: Any) -> bool:
    """Whether it is a ufunc of scipy.special, perhaps one that only a function of it calls (zeta: _zeta)."""
    special = sys.modules.get("scipy.special")
    return any(getattr(home, ufunc.__name__, None) is ufunc for home in (special, getattr(special, "_ufuncs", None)))


def rule_of(ufunc: Any, method: str, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """The function for a ufunc or a ufunc's method, or None; TypeError for arguments that it does not take."""
    if method != "__call__":
        whole = NUMPY.get((None, method))
        return NUMPY.get((ufunc, method)) if whole is None else functools.partial(whole, ufunc)
    rule = NUMPY.get(ufunc)
    if rule is None and _of_scipy(ufunc):
        rule = NUMPY.get(f"scipy.special.{ufunc.__name__}")
    for argument in kwargs.keys() & _WITHOUT.keys() if rule is not None else ():
        raise TypeError(
            f"{full_name(ufunc)}(): the argument {argument}= is not supported for a Tensor.\n"
            f"  What to do: {_WITHOUT[argument].format(ufunc.__name__)}."
        )
    return rule


def without_rule(tensor: Any, function: Any, args: Any, kwargs: Any, instead: str = "") -> Any:
    """Call a NumPy function without a rule on the payloads; refuse it if a gradient would be lost.

    instead: what to write then, if not what `INSTEAD` says.
    """
    name = full_name(function)
    instead = instead or INSTEAD.get(function) or INSTEAD.get(name) or ""

    def payload(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(payload(v) for v in value)
        if isinstance(value, tensor) and value._requires_grad and thread.modes.grad_enabled:
            do = instead or "write it with functions that have one"
            raise TypeError(
                f"{name}() has no derivative rule for a Tensor, so its gradient would be lost.\n"
                f"  What to do: {do}, wrap it as a pullback.autograd.Function, or call it on t.detach().numpy() "
                "if no gradient is wanted."
            )
        if isinstance(value, tensor) and isinstance(value._data, LevelPayload):
            do = instead or "use functions that have one"
            raise RuntimeError(
                f"{name}() has no rule for a Tensor, and NumPy cannot have the values of a tensor inside of "
                f"{value._data.level.title}().\n  What to do: {do}, or wrap it as a pullback.autograd.Function."
            )
        return value._data if isinstance(value, tensor) else value

    return function(*[payload(a) for a in args], **{k: payload(v) for k, v in kwargs.items()})


def by_rule(function: Any, rule: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """``rule(*args, **kwargs)``. Where the rule takes no such arguments, the error names NumPy's function."""
    try:
        return rule(*args, **kwargs)
    except TypeError as error:
        before, _, said = str(error).partition(f"{getattr(rule, '__qualname__', '')}() ")
        if before or not said:
            raise
        do = "do its work before or after, e.g. numpy.sum(numpy.where(m, t, 0)) for numpy.sum(t, where=m)"
        if "'out'" in said:
            do = "use the result, t = numpy.clip(t, 0, 1) for numpy.clip(t, 0, 1, out=t)"
        said = f"{full_name(function)}() of a Tensor {said}"
        raise TypeError(f"{said}.\n  What to do: leave that out, and {do}.") from None


# Functions of arrays alone --------------------------------------------------------------------------------------------

_NO_PAYLOADS = frozenset({np.ndarray, int, float, complex, bool, str, tuple, type(None)})


def on_arrays(function: F, target: int | None = None, host: str = "") -> F:
    """Mark a function of this package that works on arrays alone: a payload that is no array is asked to carry it.

    target: the number of the argument that it writes to, if it returns nothing; an array there cannot hold a payload.
    host: what it needs the host's memory for, if it does.

    It is asked as NumPy's own functions ask, by ``__array_function__(function, types, args, kwargs)``. So a payload
    that holds an array calls the function on that, one that has its own way takes that, and one that refuses does so by
    the function's name. On arrays of another library, as CuPy's, the function runs as it does on NumPy's.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) not in _NO_PAYLOADS and is_payload(a):
                if target is not None and isinstance(args[target], np.ndarray):
                    raise _cannot_hold(args[target], a)
                return _handed(call, args, kwargs, host)
        return function(*args, **kwargs)

    call.on_arrays = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def on_host(reason: str) -> Callable[[F], F]:
    """As `on_arrays`, for a function that arrays of other devices have no counterpart of. reason: what it needs."""
    return functools.partial(on_arrays, host=reason)


def into_array(target: int) -> Callable[[F], F]:
    """As `on_arrays`, for a function that writes to its argument of this number, and returns nothing."""
    return functools.partial(on_arrays, target=target)


def _cannot_hold(array: Any, payload: Any) -> TypeError:
    return errors.NotConverted(
        errors.message(
            f"{errors.describe(array)} cannot hold a {type(payload).__name__}",
            do="compute a new tensor instead of writing it into one that holds an array",
        )
    )


def is_payload(value: Any) -> bool:
    """Whether a value computes by NumPy's protocols and is no array, or is a list with one that does."""
    if isinstance(value, list):
        return any(map(is_payload, value))
    kind = type(value)
    return hasattr(kind, "__array_function__") and not issubclass(kind, (np.ndarray, LevelPayload))


@functools.cache
def _of_another_library(kind: Any) -> bool:
    ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]  # as what stands for an array in a program
    own = (ours and not hasattr(kind, "of_gpu")) or issubclass(kind, (np.ndarray, LevelPayload))
    return hasattr(kind, "__array_function__") and not (own or hasattr(kind, "carry") or hasattr(kind, "_data"))


def is_foreign(value: Any) -> bool:
    """Whether a value is an array of another library, as CuPy's: it computes by NumPy's protocols with its own kind.

    It is neither a Tensor nor a payload that a class of `pullback.interpreters` makes.
    """
    kind: Any = type(value)
    return kind is not np.ndarray and _of_another_library(kind)


def is_array(value: Any) -> bool:
    """Whether a value is an array, a Tensor, or a payload that is neither."""
    return isinstance(value, np.ndarray) or is_payload(value)


def _handed(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], host: str) -> Any:
    """The result of the first payload among the arguments that carries a function; TypeError if none does."""
    given = [a for arg in args for a in (arg if isinstance(arg, list) else [arg]) if is_payload(a)]
    types = tuple({type(a): None for a in given})
    for payload in given:
        found = type(payload).__array_function__(payload, function, types, args, kwargs)
        if found is not NotImplemented:
            return found
    if all(map(is_foreign, given)):
        if host:
            kind = type(given[0])
            raise TypeError(
                errors.message(
                    f"{host}, and {kind.__module__}.{kind.__name__} has no counterpart",
                    do="compute it on the host, x.cpu(), or with other operations",
                )
            )
        return function.__wrapped__(*args, **kwargs)
    raise no_implementation(function, types)


def no_implementation(function: Any, types: Any) -> TypeError:
    """The error of a function that no payload carries, in the words of NumPy."""
    name = f"{function.__module__}.{function.__name__}".replace("numpy._core", "numpy")
    return TypeError(f"no implementation found for '{name}' on types that implement __array_function__: {list(types)}")


# Checks that wait for no device ---------------------------------------------------------------------------------------

DUE: dict[str, tuple[Any, Exception]] = {}
"""By what tells them apart: what the ``bool()`` of a check is asked of, as a mask on a device, and its error."""


def check_later(wrong: Any, error: Exception) -> None:
    """Raise `error` if a mask of a device holds anywhere: where the host waits for values next, not before.

    The last result of each message is kept, joined with those before it.
    """
    if hasattr(type(wrong), "of_gpu"):  # it stands for the mask in each run of a program
        raise NotImplementedError(errors.message("a check that is left for later", do="call the operation as a whole"))
    found, text = np.any(wrong), f"{type(wrong)} {error}"
    before = DUE.pop(text, None)
    DUE[text] = (found if before is None else np.logical_or(before[0], found), error)


def checks_due() -> None:
    """Raise the error of a check that failed on a device since values were looked at last."""
    while DUE:
        found, error = DUE.pop(next(iter(DUE)))
        if bool(found):
            raise error


def seen(data: Any) -> Any:
    """A payload, to look at its values: the checks that are due on a device come first."""
    if type(data) is not np.ndarray:
        checks_due()
    return data


def _is_differentiated(t: Any) -> bool:
    """Whether a derivative passes through a tensor, at any level."""
    if t._requires_grad and thread.modes.grad_enabled:
        return True
    data = t._data
    held = data.held if isinstance(data, LevelPayload) else ()
    return (len(held) > 1 and data.level.differentiates) or any(map(_is_differentiated, held))


def warn_of_item(t: Any, method: str) -> None:
    """Warn if the function of a solver takes a number from a tensor that is differentiated."""
    if not _is_differentiated(t):
        return
    said = f"the function of a solver takes a number, by {method}(), from a tensor that is differentiated"
    advice = f"compute with the tensor; where it is a constant, or is shown, write t.detach().{method}()"
    warnings.warn(
        errors.message(f"{said}: no derivative passes through it", do=advice), stacklevel=errors.callers_level()
    )

"""The door of an operation: an argument of a public call is of the type that its annotation declares, or is refused.

The public signature of an entry declares arguments as ``Tensor``, ``bool``, ``int``, ``int | Sequence[int]`` or
``float``, or as one of these or None. An integer has 64 bits, as in torch. `admit` looks at the arguments before
anything else sees them, and refuses in torch's words. Types that were admitted together are noted in `Op.admitted`: a
call with the same types costs one look into that set. `holding` looks at numbers: one that the dtype of the tensors
cannot hold is refused before it becomes infinite.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..tensor import dtypes
from ..tensor.nested import instances
from ..tensor.tensor import Tensor, wrap
from .op import SPELLINGS, Op


class Kind(NamedTuple):
    """What an annotation declares.

    words: torch's name of it. types: the types whose values are all admitted. takes: whether a value of another type is
    admitted. optional: whether None is.
    """

    words: str
    types: tuple[type, ...]
    takes: Callable[[Any], bool]
    optional: bool = False

    def of_type(self, value: Any) -> bool:
        """Whether every value of its type is admitted. A bool is no integer, as in torch."""
        if value is None:
            return self.optional
        return isinstance(value, self.types) and not (type(value) is bool and self.words == "int")


def _never(value: Any) -> bool:
    return False


def _is_whole(value: Any) -> bool:
    """Whether it is an integer, or a tensor or an array of one."""
    data = getattr(value, "_data", value)
    return not isinstance(value, bool) and (
        data.dtype.kind in "iu" if hasattr(data, "size") else hasattr(value, "__index__")
    )


def _is_real(value: Any) -> bool:
    """Whether it is a real number, or a tensor or an array without axes."""
    data = getattr(value, "_data", value)
    if hasattr(data, "size"):
        return data.dtype.kind in "biufV" and not data.shape
    return hasattr(value, "__float__")


def _anything(value: Any) -> bool:
    return True


_KINDS = {
    "Tensor": Kind("Tensor", (Tensor,), _never),
    "bool": Kind("bool", (bool,), _never),
    "int": Kind("int", (int,), _is_whole),
    "int | Sequence[int]": Kind("int or a list of ints", (int, tuple, list), _anything),  # the entry looks at elements
    "float": Kind("float", (float, int), _is_real),
}
_OPTIONAL = _KINDS | {f"{declared} | None": kind._replace(optional=True) for declared, kind in _KINDS.items()}
_WHOLE = ("int", "int or a list of ints")  # the words of integers
_BOUND = 2**63  # an integer of 64 bits lies below it
_LASTING = frozenset(("builtins", "numpy", "pullback"))
"""The packages whose types may be noted: those of a user come and go."""


def kinds_of(annotations: Mapping[str, Any], names: tuple[str, ...], truths: str) -> dict[str, Kind]:
    """What the annotations of a public signature declare, by the names of its arguments.

    truths: the arguments that may be anything, by whether it is true, though they are declared as ``bool``.
    """
    found = {}
    for name in names:
        kind = _OPTIONAL.get(str(annotations.get(name, "")))
        if kind is not None and name not in truths.split() and not name.startswith("_"):
            found[name] = kind
    return found


def first_whole(kinds: Mapping[str, Kind], names: Sequence[str]) -> int:
    """The place of the first argument that is declared as integers; 0 if there is none, as the first is a tensor."""
    return next((i for i, name in enumerate(names) if name in kinds and kinds[name].words in _WHOLE), 0)


def fit(args: tuple[Any, ...], first: int, low: int = -_BOUND, high: int = _BOUND) -> bool:
    """Whether the integers from this place on have 64 bits. Calls whose types are known pass here."""
    for value in args[first:]:
        kind = type(value)
        if kind is int:
            if not low <= value < high:
                return False
        elif (kind is tuple or kind is list) and any(map(_is_large, value)):
            return False
    return True


def _is_large(value: Any) -> bool:
    return type(value) is int and not -_BOUND <= value < _BOUND


def _refuse_large(op: Op, given: Iterable[tuple[str, Any]]) -> None:
    """Refuse an integer that 64 bits cannot hold: ValueError, or TypeError for one in a list, as in torch."""
    for name, value in given:
        kind = op.kinds.get(name if name in op.public else SPELLINGS.get(name, name))
        if kind is None or kind.words not in _WHOLE:
            continue
        said, todo = "Overflow when unpacking long long", "pass one between -2**63 and 2**63 - 1"
        if _is_large(value):
            found = f"{name}={value}"
            raise ValueError(
                errors.message(f"{op.name}(): {said}", expected="an integer of 64 bits", found=found, do=todo)
            )
        if type(value) in (tuple, list):
            for place, one in enumerate(value):
                if _is_large(one):
                    where = f'argument {name!r} failed to unpack the object at pos {place + 1} with error "{said}"'
                    raise TypeError(errors.message(f"{op.name}(): {where}", found=str(one), do=todo))


def admit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a public call. An array for a tensor, next to another tensor, becomes one.

    TypeError if an argument is not of the type that its annotation declares; ValueError for an integer of more than 64
    bits.
    """
    if op.whole or kwargs:
        _refuse_large(op, (*zip(op.public, args, strict=False), *kwargs.items()))
    types = (*map(type, args), *kwargs, *map(type, kwargs.values()))
    if types in op.admitted or (len(args) > op.places and not op.variadic):  # Python says that these are too many
        return args, kwargs
    lasting = all(t.__module__.partition(".")[0] in _LASTING for t in types if isinstance(t, type))
    given = list(zip(op.public[: op.places], args, strict=False))
    for place, (name, value) in enumerate((*given, *kwargs.items())):
        kind = op.kinds.get(name if name in op.public else SPELLINGS.get(name, name))
        if kind is None or kind.of_type(value):
            continue
        lasting = False
        if kind.words == "Tensor":
            taken = operand(op, name, value, (*args, *kwargs.values()))
            if place < len(given):
                args = (*args[:place], taken, *args[place + 1 :])
            else:
                kwargs = {**kwargs, name: taken}
        elif not kind.takes(value):
            called = op.name.replace("._", ".").lstrip("_")
            which = f"argument {name!r}" + (f" (position {place + 1})" if place < len(given) else "")
            raise TypeError(
                errors.message(
                    f"{called}(): {which} must be {kind.words}, not {_name(type(value))}",
                    found=errors.describe(value),
                )
            )
    if lasting:
        op.admitted.add(types)
    return args, kwargs


def _name(kind: type) -> str:
    """The name of a type in a message: to the author of the function, a transform's tensor is a Tensor."""
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__.replace("Lifted", "Tensor")


def operand(op: Op, name: str, value: Any, given: Iterable[Any]) -> Tensor:
    """An argument as a Tensor: an array becomes a constant if a Tensor is given as well. TypeError if it is neither."""
    if isinstance(value, np.ndarray) and any(isinstance(a, Tensor) for a in given):
        return wrap(dtypes.known(value))
    raise TypeError(
        errors.message(
            f"{op.name}()",
            expected=f"argument {name!r} to be a Tensor",
            found=errors.describe(value),
            do="convert it with pullback.tensor(...) or pullback.from_numpy(...)",
        )
    )


def holding(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    """The public function of an entry, with a look at its numbers first: see `About.scalars` and `About.bounds`."""
    exact = frozenset(op.about.bounds.split())
    named = (*op.about.scalars.split(), *exact)
    placed = [(op.public.index(name), name) for name in named]
    count = op.places

    @functools.wraps(call)
    def held(*args: Any, **kwargs: Any) -> Any:
        given = len(args)
        for place, name in placed:
            value = args[place] if place < given else kwargs.get(name) if kwargs else None
            if dtypes.is_large(value):
                _hold(op, value, name in exact, args, kwargs)
        if given > count and not op.variadic:  # torch's older form has numbers among the tensors
            for value in args:
                if dtypes.is_large(value):
                    _hold(op, value, bool(exact), args, kwargs)
        return call(*args, **kwargs)

    call.held = held  # type: ignore[attr-defined]  # what modes are told of
    return held


def _hold(op: Op, value: Any, exact: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a number that the dtype of the tensors of a call cannot hold, or the default dtype beside integers."""
    tensors = instances((*args, *kwargs.values()), Tensor)
    found = [t._data for t in tensors if t._data.dtype.kind in "fcV"]
    if not (found or type(value) is float):
        return
    dtype = dtypes.result_type(found or [value])
    if not exact and dtype.itemsize == 2:
        dtype = np.dtype(np.float32)
    try:
        dtypes.refuse_overflow(value, dtype)
    except (RuntimeError, OverflowError) as error:
        errors.rename(op.name, error, args)
        raise

"""The door of an operation: an argument of a public call is of the type that its annotation declares, or is refused.

The public signature of an entry declares arguments as ``Tensor``, ``bool``, ``int`` or ``float``, or as one of these or
None. `admit` looks at the arguments before anything else sees them, and refuses in torch's words. Types that were
admitted together are noted in `Op.admitted`: a call with the same types costs one look into that set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..tensor import dtypes
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


_KINDS = {
    "Tensor": Kind("Tensor", (Tensor,), _never),
    "bool": Kind("bool", (bool,), _never),
    "int": Kind("int", (int,), _is_whole),
    "float": Kind("float", (float, int), _is_real),
}
_LASTING = frozenset(("builtins", "numpy", "pullback"))
"""The packages whose types may be noted: those of a user come and go."""


def kinds_of(annotations: Mapping[str, Any], names: tuple[str, ...], truths: str) -> dict[str, Kind]:
    """What the annotations of a public signature declare, by the names of its arguments.

    truths: the arguments that may be anything, by whether it is true, though they are declared as ``bool``.
    """
    found = {}
    for name in names:
        declared = str(annotations.get(name, ""))
        kind = _KINDS.get(declared.removesuffix(" | None"))
        if kind is not None and name not in truths.split() and not name.startswith("_"):
            found[name] = kind._replace(optional=declared.endswith("None"))
    return found


def admit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a public call. An array for a tensor, next to another tensor, becomes one.

    TypeError if an argument is not of the type that its annotation declares.
    """
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

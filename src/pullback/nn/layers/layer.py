"""Small layers: the settings of a layer are fields of its class, and `layer` makes its `__init__` from them.

A class lists its arguments as a dataclass does, by annotations with defaults (those after ``_: KW_ONLY`` by keyword
alone). An editor and a type checker read them in the same way. Their values become attributes of the module, and its
repr unless the class says otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, dataclass_transform

from ... import errors
from ..module import Module

T = TypeVar("T", bound="type[Layer]")
_MOST_LAYERS = 1 << 16
FIRST = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Layer(Module):
    """A module with fields. Its repr shows them; `inplace` only if it is True."""

    _fields: ClassVar[dict[str, inspect.Parameter]] = {}
    _shown: ClassVar[str | None] = None  # the fields in the repr; None for all

    def __post_init__(self) -> None:
        """Called once the fields are set, for checks, buffers and parameters."""

    def extra_repr(self) -> str:
        """The fields with their values."""
        names = list(self._fields) if self._shown is None else self._shown.split()
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names if name != "inplace" or self.inplace)


@dataclass_transform()
def layer(cls: T) -> T:
    """Give a class the `__init__` that its annotations describe, with the arguments of its base layers."""
    fields = dict(cls._fields)
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for name, annotation in inspect.get_annotations(cls).items():
        if annotation == "KW_ONLY":
            kind = inspect.Parameter.KEYWORD_ONLY
        if annotation == "KW_ONLY" or annotation.startswith("ClassVar"):
            continue
        default = cls.__dict__.get(name, inspect.Parameter.empty)
        if default is not inspect.Parameter.empty:
            # a module registers no parameter or buffer with the name of a class attribute
            delattr(cls, name)
        fields[name] = inspect.Parameter(name, kind, default=default, annotation=annotation)
    cls._fields = fields
    cls.__init__ = _init(cls, fields)  # type: ignore[method-assign]
    errors.named_constructor(cls)
    return cls


def _init(cls: type[Layer], fields: dict[str, inspect.Parameter]) -> Callable[..., None]:
    signature = inspect.Signature([FIRST, *fields.values()], return_annotation=None)

    def __init__(self: Layer, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is the class's
        Module.__init__(self)
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            name = type(self).__name__
            raise TypeError(errors.message(f"{name}(): {error}", do=f"write {name}{_call(fields)}")) from None
        given.apply_defaults()
        vars(self).update((name, given.arguments[name]) for name in fields)
        self.__post_init__()

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    return __init__


def check_count(name: str, count: int) -> None:
    """Refuse a number of inner layers that would take minutes to make: it is a mistake."""
    if count > _MOST_LAYERS:
        raise ValueError(
            errors.message(f"argument {name}", expected=f"at most {_MOST_LAYERS} layers", found=str(count))
        )


def _call(fields: dict[str, inspect.Parameter]) -> str:
    """The arguments with their defaults, as source."""
    return str(inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in fields.values()]))

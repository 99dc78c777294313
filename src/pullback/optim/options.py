"""The options of optimisers: how a class declares them, and one table of the values each may have.

An optimiser lists its arguments as a dataclass does, by annotations in its body, `params` first; those after
``_: KW_ONLY`` are given by keyword alone. `algorithm` makes `__init__` from the list, and editors and type checkers
read it in the same way. Every group of parameters has these options, with these defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from .. import errors
from ..errors import describe, message
from ..tensor.tensor import Tensor
from .optimizer import Group, Optimizer

T = TypeVar("T", bound=type[Optimizer])

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass_transform()
def algorithm(cls: T) -> T:
    """Give an optimiser the `__init__` that its annotations describe.

    Before the groups are made, ``cls._prepare(options)`` checks the rules of this optimiser alone; ``__post_init__``
    does the rest after that.
    """
    arguments = [_SELF]
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for name, annotation in inspect.get_annotations(cls).items():
        if annotation == "KW_ONLY":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        default = cls.__dict__.get(name, inspect.Parameter.empty)
        if default is not inspect.Parameter.empty:
            delattr(cls, name)  # it is an option of the groups, not an attribute of the optimiser
        arguments.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    cls.__init__ = _init(cls, arguments)  # type: ignore[method-assign]
    errors.named_constructor(cls)
    return cls


def _init(cls: type[Optimizer], arguments: list[inspect.Parameter]) -> Callable[..., None]:
    signature = inspect.Signature(arguments, return_annotation="None")
    names = [argument.name for argument in arguments[2:]]
    order = [name for name in cls._order.split() if name in names] or names
    base: Any = next(kind for kind in cls.__mro__[1:] if not hasattr(vars(kind).get("__init__"), "__signature__"))

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it belongs to the class
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}.__init__() {error}") from None
        given.apply_defaults()
        _, params, *_ = given.arguments.values()
        options = {name: given.arguments[name] for name in order}
        self._prepare(options)
        base.__init__(self, params, options)
        self.__post_init__()

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__annotations__ = {a.name: a.annotation for a in arguments[1:]} | {"return": "None"}
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    return __init__


class Domain(NamedTuple):
    """The values that an option may have: in words, and as a predicate."""

    words: str
    holds: Callable[[float], bool]


NOT_NEGATIVE = Domain("zero or more", lambda value: value >= 0)
FRACTION = Domain("a number in [0, 1]", lambda value: 0 <= value <= 1)
RATE = Domain("a number in [0, 1)", lambda value: 0 <= value < 1)

DOMAINS = {
    "lr": NOT_NEGATIVE,
    "lr_decay": NOT_NEGATIVE,
    "eps": NOT_NEGATIVE,
    "momentum": NOT_NEGATIVE,
    "momentum_decay": NOT_NEGATIVE,
    "weight_decay": NOT_NEGATIVE,
    "initial_accumulator_value": NOT_NEGATIVE,
    "rho": FRACTION,
    "betas": RATE,
}
"""The domain of the option of this name in every optimiser; for a tuple, the domain of each element."""


def number(value: float | Tensor) -> float:
    """An option as a float; it may be given as a tensor of one element."""
    return value if type(value) is float else float(value)


def check_option(who: str, name: str, value: Any, domain: Domain) -> None:
    """Refuse an option outside its domain; both members of a pair are checked."""
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise ValueError(message(f"{who}: argument {name}", expected="two numbers", found=str(value)))
        for i, one in enumerate(value):
            check_option(who, f"{name}[{i}]", one, domain)
        return
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(
            message(f"{who}: argument {name}", expected="a number or a Tensor of 1 element", found=describe(value))
        )
    if not domain.holds(number(value)):
        raise ValueError(message(f"{who}: argument {name}", expected=domain.words, found=str(value)))


def check_options(who: str, options: Group) -> None:
    """Refuse options that are not in their domain, or that no optimiser supports."""
    for name, value in options.items():
        if name in DOMAINS:
            check_option(who, name, value, DOMAINS[name])
    if options.get("capturable"):
        raise NotImplementedError(
            message(
                f"{who}: argument capturable", expected="False: there is no device to capture a step on", found="True"
            )
        )
    if options.get("differentiable"):
        raise NotImplementedError(
            message(
                f"{who}: argument differentiable",
                expected="False, because a step writes in place and is not recorded",
                found="True",
                do="to differentiate through an update, write it in tensor operations: p - lr * grad",
            )
        )
    if options.get("foreach") and options.get("fused"):
        raise RuntimeError(message(who, expected="foreach or fused", found="both", do="pass one of them"))

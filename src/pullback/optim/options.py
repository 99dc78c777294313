"""What is asked of the options of optimisers: one table for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import describe, message
from ..tensor.tensor import Tensor
from .optimizer import Group


class Domain(NamedTuple):
    """The values an option may have: in words, and as a question."""

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
"""What is asked of an option of this name, whoever has it; of a tuple, of each of its elements."""


def number(value: float | Tensor) -> float:
    """An option as a float; it may be given as a tensor of one element."""
    return value if type(value) is float else float(value)


def check_option(who: str, name: str, value: Any, domain: Domain) -> None:
    """Refuse an option that is not in its domain; of a pair, each."""
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
    """Refuse options that no rule accepts."""
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

"""Tensors among the arguments of an operation, which may be sequences of them, nested to any depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def instances(values: Iterable[Any], kind: type[Any]) -> Iterator[Any]:
    """The instances of a class among values and in the tuples and lists among them, in order.

    >>> list(instances((1, "a", [2, (3,)]), int))
    [1, 2, 3]
    """
    for value in values:
        if isinstance(value, kind):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from instances(value, kind)


def any_instance(values: Iterable[Any], kind: type[Any]) -> bool:
    """Whether there is one. It is asked for each operation while a transform runs, so it makes no generator.

    >>> any_instance(("a", [None, (3,)]), int), any_instance(("a", []), int)
    (True, False)
    """
    for value in values:
        if isinstance(value, kind) or (isinstance(value, (tuple, list)) and any_instance(value, kind)):
            return True
    return False

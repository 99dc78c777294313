"""`list`, `tuple`, `dict`, `isinstance` and `type` of traced values: autograd.builtins.

A traced list, tuple or dict is one of boxes, so Python's own classes are enough: these give them back.
"""

from __future__ import annotations

import builtins
from typing import Any

from .box import getval
from .user_rules import notrace_primitive

isinstance = notrace_primitive(builtins.isinstance)
type = notrace_primitive(builtins.type)


class _Made(builtins.type):
    """The class of classes whose instances are those of another class, which they make."""

    made: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return builtins.isinstance(getval(instance), cls.made)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.made(*args, **kwargs)


class tuple(builtins.tuple, metaclass=_Made):  # noqa: N801 - autograd's name
    """A tuple of values, traced ones among them."""

    made = builtins.tuple


class list(builtins.list, metaclass=_Made):  # noqa: N801 - autograd's name
    """A list of values, traced ones among them."""

    made = builtins.list


class dict(builtins.dict, metaclass=_Made):  # noqa: N801 - autograd's name
    """A dict of values, traced ones among them."""

    made = builtins.dict


def make_sequence(seq_type: Any, *args: Any) -> Any:
    """A list or tuple of the values."""
    return seq_type(args)


def container_take(A: Any, idx: Any) -> Any:
    """``A[idx]``."""
    return A[idx]


def sequence_extend_right(seq: Any, *elts: Any) -> Any:
    """The sequence with values after it."""
    return seq + builtins.type(seq)(elts)


def sequence_extend_left(seq: Any, *elts: Any) -> Any:
    """The sequence with values before it."""
    return builtins.type(seq)(elts) + seq

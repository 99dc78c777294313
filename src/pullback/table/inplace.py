"""In-place twins: `x.add_(y)`, `x += y`.

A twin calls the operation, checks that the result fits, and only then writes. If the write is recorded, the tensor
becomes the output of the operation's node, and a stand-in for the tensor before the write is the node's input.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from sys import getrefcount
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..kept_gradients import assigned_to, left, tell_shared, without_underscore
from ..tensor import dtypes
from ..tensor.memory import LevelPayload
from ..tensor.modes import LEVELS, thread
from ..tensor.overrides import dispatch, overriding
from ..tensor.tensor import Tensor, is_tracked
from ..tensor.views import before_write
from .calls import OPERANDS, record
from .op import Op, Over
from .writing import Through, put, refuse_write, take_history


def twin_of(op: Op, name: str = "", method: Callable[..., Tensor] | None = None) -> Callable[..., Tensor]:
    """The in-place twin of an operation's function, or of the given method."""
    name, method = name or op.name.rpartition(".")[2], method or op.call
    exact = op.about.inplace == "exact"

    @functools.wraps(method)
    def twin(self: Tensor, /, *args: Any, **kwargs: Any) -> Tensor:
        try:
            others = (*args, *kwargs.values())
            if LEVELS.n and (kinds := overriding((self, *others))):
                return dispatch(kinds, twin, (self, *args), kwargs)
            refuse_write(self, others)
            recorded = thread.modes.grad_enabled and (  # at this level, or at a lower one
                is_tracked(self) or any(isinstance(o, Tensor) and is_tracked(o) for o in others)
            )
            old = self
            if recorded:  # also if an operand is `self`: it gets new values, and will hold the node that saved it
                old = before_write(self)
                args = tuple([old if a is self else a for a in args])
                kwargs = {key: old if a is self else a for key, a in kwargs.items()}
            result = method(old, *args, **kwargs)
            _check_fit(name, self, result, exact)
            put(self, result)
            if recorded and result._edge is None and old._requires_grad and _on_one_level(old, result):
                # locally constant: the old values go
                result = record(Over.op, 1, (old, result), old._data)
            take_history(self, result)
            return self
        except Exception as error:
            errors.rename(f"{name}_", error, (self, *args, *kwargs.values()))
            raise

    twin.__name__ = twin.__qualname__ = f"{name}_"
    errors.called(twin, f"{name}_")
    twin.__doc__ = f"`{name}`, written into this tensor, which is returned."
    return twin


def _on_one_level(t: Tensor, result: Tensor) -> bool:
    return getattr(t._data, "level", None) is getattr(result._data, "level", None)


@functools.cache
def _writer(op: Op) -> Callable[..., Tensor]:
    return twin_of(op, method=op.unchecked)


def write_into(op: Op, args: tuple[Any, ...]) -> Tensor:
    """Write the result of `op` into the first of its arguments, which have been checked."""
    return _writer(op)(*args)


def _check_fit(name: str, t: Tensor, result: Tensor, exact: bool) -> None:
    """Refuse a result that `t` cannot hold or, if `exact`, that has another dtype."""
    old, new = t._data, result._data
    if new.shape != old.shape:
        raise RuntimeError(f"output with shape {list(old.shape)} doesn't match the broadcast shape {list(new.shape)}")
    lost = dtypes.CATEGORY[new.dtype.kind] > dtypes.CATEGORY[old.dtype.kind]
    if lost or (exact and new.dtype != old.dtype):
        raise RuntimeError(
            errors.message(
                f"{name}_(): result type {result.dtype} can't be cast to the desired output type {t.dtype}",
                do=without_underscore(name, result.dtype),
            )
        )
    if old.dtype.kind == "c" and new.dtype.kind in "fV":
        raise RuntimeError(
            errors.message(
                f"In-place {name} is not supported for complex tensors", do=f"use {name}() without the underscore"
            )
        )


def operator_of(twin: Callable[..., Tensor], look: Callable[[str, Any, int], None] | None = None) -> Callable[..., Any]:
    """A twin as ``__iadd__`` and the like: NotImplemented for an operand it does not know.

    look: is given a tensor without axes and how many references there are to it; by default, `_look_at_number`.
    """
    name, look = twin.__name__, look or _look_at_number

    def call(self: Tensor, other: Any) -> Any:
        # what is no tensor is refused by the twin; no name here holds the payload, as a level may look who does
        if not getattr(getattr(self, "_data", None), "ndim", 1) and thread.modes.grad_enabled:
            look(name, self, getrefcount(self) - (_ALONE.twice if other is self else 0))
        return twin(self, other) if isinstance(other, OPERANDS) else left(name, self, other)

    call.__name__, call.__doc__ = name, twin.__doc__
    return errors.called(call, name)


class _Alone(NamedTuple):
    """What `look` is given of an object that only the target of an augmented assignment refers to.

    It depends on the version of Python. Where something runs Python's frames in its own way, as PyTorch's compiler
    does, the caller of a function holds the arguments as well. twice: how many more there are of ``s += s``.
    """

    name: int
    argument: int
    attribute: int
    item: int
    twice: int


def _counted() -> _Alone:
    found: list[int] = []
    look = operator_of(lambda self, _: self, lambda _, __, references: found.append(references))
    kind = type("Number", (), {"_data": np.zeros(()), "__iadd__": look, "__add__": lambda self, _: self})

    def assigned(number: Any) -> None:
        number += 0

    number = kind()
    number += 0
    assigned(kind())
    held = SimpleNamespace(number=kind())
    held.number += 0
    items = {0: kind()}
    items[0] += 0
    number += number
    return _Alone(found[0], found[1], found[2], found[3], found[4] - found[0])


_ALONE = _Alone(0, 0, 0, 0, 0)
_ALONE = _counted()
_LEAST = min(_ALONE[:4])


def _look_at_number(name: str, t: Tensor, references: int) -> None:
    """Tell that an augmented assignment changes more than a name: ``s += t`` with a number would change that alone.

    Of a tensor of a transform only the first is told: the transform may refer to it.
    """
    how, data = t._view, t._data
    if isinstance(data, LevelPayload) and data.inside is None:
        return  # it is traced
    taken = how is not None and how.op is Through.part and all(type(p) is int for p in how.args[0])
    if not taken and (isinstance(data, LevelPayload) or references <= _LEAST):
        return
    target = assigned_to()
    if taken and target and (target != "item" or references >= _ALONE.item):  # of a[0] += t, nothing refers to a[0]
        tell_shared(name, "the tensor that the element s was taken from")
    elif not taken and target and references > getattr(_counted() if target == "argument" else _ALONE, target):
        tell_shared(name, "everything that refers to the same tensor")

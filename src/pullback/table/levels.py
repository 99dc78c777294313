"""Levels: the nesting of interpreters.

A transform (`vmap`, `jvp`) opens a level and wraps the values it varies in Tensors whose payload belongs to that level.
Such a payload holds Tensors of lower levels. The highest level among an operation's arguments interprets it:
`interpret` hands the operation to that level, which calls it again on the Tensors inside, so that each lower level
interprets it in turn. No code is written for nested cases.

Reverse mode needs no level. The graph of a Tensor records the operations on it *at the level of its payload*; Tensors
of lower levels are tracked by the operations on the Tensors inside. A Tensor of a lower level is a constant to a higher
one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..tensor.memory import LevelPayload
from ..tensor.modes import LEVELS, thread
from ..tensor.nested import any_instance
from ..tensor.overrides import ASKED, overriding
from ..tensor.tensor import Lifted, Tensor, wrap
from ..tensor.views import payload_of
from .op import Op


class Level:
    """One transform that is running: a context manager that is the innermost level of its thread while it is open."""

    def __init__(self) -> None:
        self.number = 0  # its depth, from 1
        self.open = False

    def __enter__(self) -> Any:
        modes = thread.modes
        try:
            self.number = 1 + max([modes.hidden, *[level.number for level in modes.levels]])
            self.open = True
            LEVELS.add(self)
            modes.levels = (*modes.levels, self)
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self._close()
        finally:
            self._close()  # all of it, where an interrupt came

    def _close(self) -> None:
        """End: no tensor of this level can be computed with any more. A second time does nothing."""
        modes = thread.modes
        modes.levels = tuple([level for level in modes.levels if level is not self])
        self.open = False
        LEVELS.discard(self)

    @property
    def title(self) -> str:
        """The public name of the transform, for errors."""
        return type(self).__name__.lower()

    observes = False
    """Whether it sees every operation while it is open, and not only those on its own tensors."""

    differentiates = False
    """Whether rules run at this level, which cannot take bfloat16."""

    outlives_calls = False
    """Whether it is open outside of every call, so that a user's function may be given its tensors, and return some."""

    shares_graph = False
    """Whether tracked Tensors from below are recorded at this level, together with its own."""

    def custom(self, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
        """The results of a user's Function, whose context is `node`: a list of leaves, as the operands are.

        The user's methods, which see values as they nest, are called through ``node._door``. enabled: whether
        operations are recorded.
        """
        raise NotImplementedError

    def run(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The payload (or the tuple of payloads) of ``op(*args)``, some of whose Tensors are of this level."""
        raise NotImplementedError

    def refuse_random(self) -> None:
        """Raise if random numbers must not be drawn while this level is open."""

    def inside(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A context for the body of a composite, whose operations this level interprets."""
        return contextlib.nullcontext()

    def each(self, backward: Callable[..., Any], ctx: Any, gradients: tuple[Any, ...]) -> Any:
        """The result of a user's backward that calls unrecorded code, given gradients of this level."""
        return backward(ctx, *gradients)

    def kept(self, gradient: Tensor) -> Tensor:
        """The part of a gradient of this level that a tensor from outside retains."""
        return gradient

    def register(self, t: Tensor) -> None:
        """Note a new Tensor of this level."""

    def marked(self, t: Tensor) -> None:
        """Note that a leaf of this level requires grad from now on, or does so no longer."""

    def take_in(self, t: Tensor) -> None:
        """Turn a tensor from outside into one of this level, because values of this level are written to it."""
        raise RuntimeError(
            f"{self.title}: inplace arithmetic is not possible on a tensor from outside, which would "
            "carry values that belong to the transform out of it.\n"
            "  What to do: compute a new tensor, as y + x for y += x, or write to a tensor made inside, e.g. with "
            "pullback.zeros_like(x)."
        )

    def assign(self, t: Tensor, new: LevelPayload) -> None:
        """Write the values of `new` into the memory of `t`, a Tensor of this level."""
        data: Any = t._data
        data.assign(new)

    def adopt(self, t: Tensor) -> Tensor:
        """A Tensor from below as the argument of an operation at this level, if it shares the graph."""
        return t

    def array(self, a: Any) -> Tensor:
        """An array among the operands of an elementwise operation, as a Tensor."""
        return wrap(a)

    def constant(self, t: Tensor) -> LevelPayload:
        """A Tensor of a lower level as a payload of this one: a constant of this level."""
        raise NotImplementedError


class Around(LevelPayload):
    """A payload that is one Tensor, `value`, as its level sees it: nothing is added to the values, nothing left out."""

    __slots__ = ("value",)

    value: Tensor

    def of(self, value: Tensor) -> Any:
        """The payload of the same level, and with the same meaning, around another Tensor."""
        raise NotImplementedError

    @property
    def strides(self) -> Any:  # type: ignore[override]
        return self.value._data.strides

    @property
    def inside(self) -> Tensor:
        return self.value

    def detach(self) -> Any:
        return self.of(self.value.detach())

    def clone(self) -> Any:
        return self.of(self.value.clone())

    def assign(self, new: LevelPayload) -> None:
        assert isinstance(new, Around)
        self.value.copy_(new.value)


def interpreted(values: Any) -> bool:
    """Whether a level, or a class derived from Tensor, interprets a call with these arguments."""
    for value in values:
        if type(value) is not Tensor and (
            isinstance(value, Lifted) or (isinstance(value, (tuple, list)) and any_instance(value, Lifted))
        ):
            return True
    return bool(ASKED.n and overriding(values))


def call_body(op: Op, body: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a composite while a level is open."""
    given = (*args, *kwargs.values()) if kwargs else args
    if not any_instance(given, Lifted):
        return body(*args, **kwargs)
    level = highest(given)
    assert level is not None
    if type(level).inside is Level.inside:
        return body(*args, **kwargs)
    with level.inside(op, args, kwargs):
        return body(*args, **kwargs)


def mapped(change: Callable[[Tensor], Any], value: Any) -> Any:
    """The arguments of an operation with every Tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (tuple, list)):
        parts = [mapped(change, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def memory_of(data: Any) -> Any:
    """The array of a payload, for code outside of every transform; of one that several processes have, this one's."""
    return getattr(data, "memory", data._no_array)() if isinstance(data, LevelPayload) else data


def highest(values: Sequence[Any]) -> Level | None:
    """The highest level among the Tensors in some arguments."""
    found: Level | None = None
    for value in values:
        if type(value) is Tensor:
            continue
        if isinstance(value, Lifted):
            level = value._data.level
        elif not isinstance(value, (tuple, list)) or (level := highest(value)) is None:
            continue
        if not level.open:
            raise value._data.escaped()
        if found is None or level.number > found.number:
            found = level
    return found


def depth(values: Sequence[Any]) -> int:
    """The number of the highest level among the Tensors in some arguments; 0 if there is none."""
    level = highest(values)
    return 0 if level is None else level.number


def batches(t: Tensor | None) -> set[Level]:
    """The levels of `vmap` over which the values of a Tensor vary."""
    found = set()
    while isinstance(t, Lifted):
        if t._data.has_axis:
            found.add(t._data.level)
        t = t._data.inside
    return found


def has_room(t: Tensor, other: Tensor) -> bool:
    """Whether `t` can take the values of the other: it varies wherever that does."""
    return type(other) is Tensor or batches(other) <= batches(t)


def with_room(t: Tensor, other: Tensor) -> Tensor:
    """A copy of `t` that can take the values of the other."""
    if has_room(t, other):
        return t.clone()
    nothing: Any = np.zeros_like(other.detach()).sum().to(t.dtype)
    return np.where(True, t, nothing)  # type: ignore[return-value]


def inner(t: Tensor, level: Level) -> LevelPayload | None:
    """The payload of a Tensor, if it is one of `level`."""
    data = payload_of(t)
    return data if type(t) is not Tensor and isinstance(data, LevelPayload) and data.level is level else None


def to_current(t: Tensor) -> Tensor:
    """The same values as a Tensor of the innermost open level, where a gradient is to be recorded."""
    for level in thread.modes.levels:
        if not (isinstance(t._data, LevelPayload) and t._data.level.number >= level.number):
            t = wrap(level.constant(t))
    return t

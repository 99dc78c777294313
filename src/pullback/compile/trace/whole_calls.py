"""Functions whose forward works with values (in NumPy, SciPy or C): a program calls them as they are.

Such a call is one entry of the trace, made with arrays in each run of the program, so what it gives and raises is that
of eager mode. If it has results of other shapes than in the trace, the function is traced again (`OutgrownError`). Of a
Function whose forward has no ``ctx``, the other methods are traced like all else. If it has one, it keeps there what
only an eager call has: backward then runs the compiled function as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.structure import Door
from ...interpreters.functions import recording
from ...interpreters.traced import Trace, TraceError, ValuesError, refused
from ...ops.make.generators import default_generator
from ...table.op import About, Op
from ...tensor import dtypes
from ...tensor.gpu import gpu_of, to_gpu, to_host
from ...tensor.modes import thread, within
from ...tensor.tensor import Tensor, wrap
from .closure import Environment
from .code_names import is_library
from .mutations import State
from .program import Rounds
from .symbols import Opaque

Run = Callable[..., Sequence[Tensor]]


class OutgrownError(TraceError):
    """What a program calls as a whole gave something else than in the trace, on which the rest of the trace relies."""


class WholeOp(Op):
    """The entry of one such call.

    gpus: where its arguments lie. number: it is the n-th of its function, in every trace of that; None for a call in a
    backward, which depends on the gradients that are wanted. keeper: its argument that has things for backward in an
    attribute `kept`.
    """

    def __init__(
        self, level: Trace, name: str, run: Run, number: int | None, keeper: Any, gpus: Sequence[int | None]
    ) -> None:
        super().__init__(name, "constant", _not_decomposed, (), {}, About())
        self.unchecked = _checked(level, name, run, gpus)
        self.number, self.keeper = number, keeper

    def share(self, other: WholeOp) -> None:
        """Keep what is kept for backward in the same place as another trace of the same call."""
        if self.keeper is not None:
            self.keeper.kept = other.keeper.kept


class LoopRun:
    """A loop as a function of arrays, to be called by a program; a plan has a faster form of it. Two that do the same
    are equal."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds, self.__name__ = rounds, rounds.name
        self._key = rounds.key()

    def __eq__(self, other: object) -> bool:
        return type(other) is LoopRun and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        return self.rounds.example(*arrays)


class LoopOp(Op):
    """The entry of one loop."""

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds.name, "constant", _not_decomposed, (), {}, About())
        self.run = LoopRun(rounds)
        self.unchecked = self._on_tensors

    def _on_tensors(self, *given: Tensor) -> tuple[Tensor, ...]:
        return tuple(map(wrap, self.run(*[t._data for t in given])))


def _not_decomposed(*args: Any) -> Any:
    raise Opaque("it works with values, and is called as it is written")


def _checked(level: Trace, name: str, run: Run, gpus: Sequence[int | None]) -> Callable[..., tuple[Tensor, ...]]:
    """A call whose results have memory of their own, and the shapes and dtypes of the first call, in the trace.

    The examples of a trace lie on the host: in the first call they are sent to where the values lie, and results back.
    """
    first: list[Any] = []

    def call(*given: Tensor) -> tuple[Tensor, ...]:
        if not first:
            given = tuple([t if g is None else wrap(to_gpu(t._data, g)) for t, g in zip(given, gpus, strict=True)])
        outs = run(*given) if first else outside(level, run, *given)
        arrays = [_apart(t._data, given) for t in outs]
        kinds = [(a.shape, a.dtype) for a in arrays]
        if not first:
            if any(gpu_of(a) != next((g for g in gpus if g is not None), None) for a in arrays):
                raise refused(
                    f"the results of {name} lie on another device than its arguments", "give them on that one"
                )
            first.append(kinds)
            arrays = [*map(to_host, arrays)]
        if kinds != first[0]:
            raise OutgrownError(
                f"compile: the results of {name} have the shapes and dtypes {kinds}, and had {first[0]} when the "
                "function was traced."
            )
        return tuple(map(wrap, arrays))

    return call


def _apart(array: Any, given: Sequence[Tensor]) -> Any:
    """An array that shares memory with none of the arguments."""
    return np.copy(array) if array.base is not None or any(array is t._data for t in given) else array


def record(level: Trace, name: str, run: Run, tensors: Sequence[Tensor], keeper: Any = None) -> list[Tensor]:
    """The results of ``run(*tensors)``, which gets plain tensors, as an entry of a trace."""
    number = None if level.ended else sum(isinstance(entry.op, WholeOp) for entry in level.entries)
    op = WholeOp(level, name, run, number, keeper, [gpu_of(t._data) for t in tensors])
    return [wrap(payload) for payload in level.run(op, tuple(tensors), {})]


def must_freeze(environment: Environment) -> bool:
    """Whether what a function reads has changed, so that a call needs it as it was. RuntimeError if it has for good."""
    same = environment.guards.default is dtypes.default()
    if same and environment.holds_still():
        return False
    if name := environment.changed_for_good() if same else "the default dtype":
        raise RuntimeError(
            f"compile: {name} has changed since the function was called, and a derivative of it is asked for that "
            "needs the function again.\n  What to do: take all derivatives before the change; or pass what changes "
            "as an argument."
        )
    return True


def outside(level: Trace, work: Callable[..., Any], *args: Any) -> Any:
    """The result of ``work(*args)``, of plain tensors, as if nothing were traced. TraceError if it draws numbers."""
    modes, before = thread.modes, default_generator.get_state()
    hidden = max([modes.hidden, *[other.number for other in modes.levels]])
    found = within(modes, {"levels": (), "hidden": hidden}, work, *args)
    if not np.array_equal(default_generator.get_state()._data, before._data):
        default_generator.set_state(before)
        level.refuse_random()
    return found


def unchanged(level: Trace, roots: Sequence[Any], work: Callable[..., Any], *args: Any) -> Any:
    """As `outside`. TraceError, too, if it changes something that the roots reach: lists, variables."""
    environment = Environment(roots)
    state = State(environment, {}, tuple(roots))
    try:
        found = outside(level, work, *args)
    finally:
        problem = state.changed()
    if problem is not None:
        raise problem
    return found


class _Untraced(Door):
    """The door of a Function whose backward needs the context of an eager call."""

    __slots__ = ()

    def backward(self, ctx: Any, *grads: Any) -> Any:
        """Refuse: so the compiled function runs as it is written for its gradients."""
        name = ctx._forward_cls.__name__
        raise NotImplementedError(f"the forward of {name} works with values, and keeps what it found on its ctx")


def of_function(level: Trace, node: Any, operands: Sequence[Any], error: ValuesError) -> list[Any]:
    """The results of a Function whose forward needs values, which is recorded as one call.

    node: its context. error: why it was not traced, which is raised if this is no way either: its results are not all
    tensors, or it writes to its arguments.
    """
    cls, door = node._forward_cls, node._door
    separate = cls._contract.separate
    places = [i for i, v in enumerate(operands) if isinstance(v, Tensor)]
    tracked = [operands[i]._requires_grad for i in places]
    others: list[Any] = [None if isinstance(v, Tensor) else v for v in operands]
    kind = type(door) if separate else _Untraced
    changing = [] if is_library(cls.__module__) else [v for v in others if v is not None]
    constants: list[bool] = []  # whether each result has no gradient

    def run(*tensors: Tensor) -> list[Tensor]:
        made, given = kind(door.arguments, door._names), others.copy()
        for i, t, is_tracked in zip(places, tensors, tracked, strict=True):
            given[i] = wrap(t._data)
            given[i]._requires_grad = is_tracked
        try:
            with recording(not separate and not constants):
                if constants or not changing:
                    outs = made.call(cls.apply, given)
                else:
                    outs = unchanged(level, changing, made.call, cls.apply, given)
        finally:
            if any(given[i]._version for i in places):
                raise error
        if not all(isinstance(t, Tensor) for t in outs):
            raise error
        if not constants:
            node._door = made
            constants[:] = [not t._requires_grad for t in outs]
        return outs

    keeper = next((v for v in others if hasattr(v, "kept")), None)
    name = cls.__name__ if keeper is None else keeper.where
    outs = record(level, name, run, [operands[i] for i in places], keeper)
    if separate:
        node._door.setup_context(node, operands, outs)
    else:
        node._saved = node._dirty = ()
        node.mark_non_differentiable(*[t for t, constant in zip(outs, constants, strict=True) if constant])
    return outs

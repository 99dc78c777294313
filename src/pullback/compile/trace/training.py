"""What a traced function does to gradients and with optimizers: once the program has run, it is done to the real ones.

In a trace, `backward()` is the engine's ordinary pass: it gives the stand-ins of leaves traced gradients, which are
further results of the program. An optimizer takes its step outside of it: what stands for it notes the gradients
that the step finds. From then on the values of its parameters are unknown to the trace, and may not be used.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...autograd.node import Node, begin, edge_of, laid_out
from ...diagnose.places import formatted, user_place
from ...interpreters.traced import Trace, Traced, TraceError, WrittenInStepError, open_trace, refused
from ...table.writing import zero_gradients
from ...tensor.gpu import gpu_of
from ...tensor.memory import INFERENCE, LevelPayload
from ...tensor.modes import thread
from ...tensor.nested import leaves
from ...tensor.tensor import Lifted, Tensor, wrap
from ...tensor.views import overlaps
from .holders import is_object
from .late import LateError

raw_grad: Any = Tensor._grad


class Grad(NamedTuple):
    """A gradient: where it is among the results (None: there is none), whether it is written to the memory of the one
    from before the call, and whether it lies in memory as its tensor, as the engine makes one."""

    place: int | None
    kept: bool
    laid_out: bool = False


class Step(NamedTuple):
    """A step of an optimizer: its parameters' numbers among the inputs, and their gradients. line: the user's."""

    optimizer: Any
    params: list[int]
    grads: list[Grad]
    line: str


class Present(NamedTuple):
    """A gradient from before the call: its tensor's number among the inputs, its layout, and where the values are among
    the results that it gets in the end (None: it gets none)."""

    tensor: int
    layout: Any
    place: int | None


class Effects(NamedTuple):
    """What happens after a run of the program, to its inputs, by their numbers.

    absent: those that must have no gradient before the call; present: gradients that are further inputs. leaves: those
    that backward went to. steps: those of optimizers, in order. grads: the gradients in the end. held: all optimizers,
    with their parameters.
    """

    absent: list[int]
    present: list[Present]
    leaves: list[int]
    steps: list[Step]
    grads: list[tuple[int, Grad]]
    held: list[tuple[Any, list[int]]]

    def changed(self, count: int) -> list[tuple[int, str]]:
        """The inputs that are changed after the program, each with a line of the user's. count: of the inputs without
        gradients."""
        kept = {i for step in self.steps for i, g in zip(step.params, step.grads, strict=True) if g.kept}
        added = [(count + k, "") for k, p in enumerate(self.present) if p.place is not None or p.tensor in kept]
        return [*((i, step.line) for step in self.steps for i in step.params), *added]

    def inputs(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """All inputs: the gradients come last."""
        return [*tensors, *[tensors[p.tensor]._grad for p in self.present]]  # type: ignore[list-item]

    def hold(self, tensors: Sequence[Tensor]) -> bool:
        """Whether the inputs are as the program takes them to be."""
        return (
            all(tensors[i]._grad is None for i in self.absent)
            and all(_layout(tensors[p.tensor]._grad) == p.layout for p in self.present)
            and not any(unlike_a_leaf(tensors[i]) for i in self.leaves)
            and all(
                optimizer._is_plain() and [*map(id, parameters_of(optimizer))] == [id(tensors[i]) for i in params]
                for optimizer, params in self.held
            )
        )

    def follow(self, tensors: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Set the gradients, and have the optimizers take their steps."""
        before = {p.tensor: t for p, t in zip(self.present, tensors[len(tensors) - len(self.present) :], strict=True)}
        for step in self.steps:
            self._give(tensors, results, before, zip(step.params, step.grads, strict=True))
            step.optimizer.step()
        self._give(tensors, results, before, self.grads)
        for p in self.present:
            if p.place is not None:
                _write(before[p.tensor], results[p.place])

    def _give(
        self, tensors: Sequence[Tensor], results: Sequence[Tensor], before: dict[int, Tensor], grads: Any
    ) -> None:
        for i, (place, kept, is_laid_out) in grads:
            t = tensors[i]
            if place is None:
                t._grad = before[i] if kept else None
            elif kept:
                _write(before[i], results[place])
                t._grad = before[i]
            else:
                t._grad = results[place]
                if is_laid_out:
                    t._grad._data = laid_out(t._data, t._grad._data, True)


def _write(t: Tensor, values: Tensor) -> None:
    t._data[...] = values._data
    t._bump()


def _layout(g: Tensor | None) -> Any:
    """The dtype and layout of a gradient; None if there is none that can be an input."""
    if type(g) is not Tensor or g._requires_grad or g._edge is not None or g._version_of is INFERENCE:
        return None
    data: Any = g._data
    if isinstance(data, LevelPayload) or vars(g) or overlaps(data):
        return None
    if isinstance(data, np.ndarray) and not data.flags.writeable:
        return None
    return data.dtype, data.shape, data.strides, gpu_of(data)


def is_optimizer(value: Any) -> bool:
    """Whether it is an optimizer: its class says so. A trace takes its steps when the program has run."""
    return is_object(value) and any("_steps_after_programs" in vars(kind) for kind in type(value).__mro__)


def parameters_of(optimizer: Any) -> Iterator[Tensor]:
    """The parameters of an optimizer, group by group."""
    for group in getattr(optimizer, "param_groups", ()):
        yield from group["params"]


def has_hook(t: Tensor) -> bool:
    """Whether a leaf has a hook."""
    node = None if t._leaf is None else t._leaf[0]
    return node is not None and bool(node.hooks or node.post_hooks or node._hooks is not None)


def unlike_a_leaf(t: Tensor) -> str:
    """Why a gradient of the program would not become its `.grad`, and nothing else happen; "" if it would."""
    if t._edge is not None:
        return "was computed from others before the call"
    if t._leaf is None:
        return ""
    if has_hook(t):
        return "has a hook"
    return "" if t._leaf[3] == t._data.dtype else "has a grad_dtype"


class _Before(NamedTuple):
    """What stands for a gradient from before the call, with its first number and its memory."""

    tensor: Tensor
    number: int
    memory: Any


class Training:
    """The gradients of the inputs of one trace, and the steps that are taken in it.

    given: what stands for the inputs. Of each, `_known` says whether its gradient is one of the trace: it has been set,
    or has been read, and was None or became a further input.
    """

    def __init__(self, level: Trace, given: Sequence[Tensor]) -> None:
        self._level, self._given = level, given
        self._numbers = [level.held_number(t) for t in given]
        self._place = {id(t): i for i, t in enumerate(given)}
        self._known: set[int] = set()
        self._absent: set[int] = set()
        self._present: dict[int, _Before] = {}
        ids = [(known.id, id(known.grad)) for known in level.known.values()]
        self._times = Counter(itertools.chain.from_iterable(ids))  # how often an object is an input, or its gradient
        self._as_leaf: set[int] = set()  # whose gradients the engine made
        self._leaves: set[int] = set()
        self._by_user = False
        self._steps: list[tuple[Any, list[int], list[_Held], str]] = []
        self._held: dict[int, tuple[Any, list[int]]] = {}

    def read(self, t: Tensor) -> None:
        """Called before a gradient is read."""
        i = self._place.get(id(t))
        if i is None or i in self._known:
            return
        self._known.add(i)
        if (held := self._level.known[id(t)].grad) is None:
            self._absent.add(i)
            return
        if _layout(held) is None or self._times[id(held)] > 1:
            raise refused(
                ".grad of a tensor is read or added to, which holds a gradient that no program takes in: it is sparse, "
                "part of a graph, of inference mode, read-only, or another input as well, or has attributes of yours",
                "set it to None before: call zero_grad() at the beginning of the function, or outside of it",
            )
        known = self._level.lift(held._data)
        self._present[i] = _Before(known, self._level.held_number(known), known._data)
        raw_grad.__set__(t, known)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the gradients that are further inputs."""
        return [before.number for before in self._present.values()]

    @property
    def from_the_end(self) -> dict[int, int]:
        """Where these are among all inputs, counted from the end, by the ids of what stands for them."""
        return {id(before.tensor): k - len(self._present) for k, before in enumerate(self._present.values())}

    def set(self, t: Tensor, g: Tensor | None) -> None:
        """Set a gradient: for the engine, which adds up in the memory of the one that is there."""
        level = self._level
        if (i := self._place.get(id(t))) is not None:
            self.refuse_place()
            self._known.add(i)
            self._as_leaf.discard(i)
            if g is not None:
                self._refuse(i, t, g)
        if g is None or self._by_user:
            raw_grad.__set__(t, g)
            return
        held = raw_grad.__get__(t)
        if isinstance(held, Lifted):
            level.assign(held, _payload(level, g))
            held._bump()
            return
        if i is not None:
            payload = _payload(level, g)
            g = wrap(Traced(level, payload.number, laid_out(t._data.example, payload.example, False)))
            self._as_leaf.add(i)
        raw_grad.__set__(t, g)

    def set_by_user(self, t: Tensor, g: Tensor | None) -> None:
        """Set a gradient: it is another tensor from then on."""
        before = self._by_user
        if g is not None and id(t) in self._place:
            others = [other.tensor for other in self._present.values()]
            roots = [other._data.root for other in (*self._given, *others)]
            back = raw_grad.__get__(t) is g or g is self._before(self._place[id(t)])
            if not back and not (isinstance(g, Lifted) and isinstance(g._data, Traced) and g._data.root not in roots):
                raise refused(
                    ".grad of a tensor is set to a tensor from outside, or to a part of one: a program gives new ones",
                    "set it to a copy, t.clone(); or set it outside",
                )
        try:
            self._by_user = True
            Lifted.grad.__set__(t, g)  # type: ignore[attr-defined]
        finally:
            self._by_user = before

    def hold(self, optimizer: Any, params: Sequence[Tensor]) -> list[int]:
        """The numbers of an optimizer's parameters, which every call has to have."""
        self.refuse_place()
        if not optimizer._is_plain():
            raise refused(
                "an optimizer is used that has hooks, or is of a class of yours: no program knows what they do",
                "call its step() and zero_grad() outside",
            )
        found = [self._place[id(p)] for p in params]
        self._held[id(optimizer)] = (optimizer, found)
        return found

    def step(self, optimizer: Any, params: Sequence[Tensor]) -> None:
        """Note a step, after which the parameters have values that are not known."""
        level, places = self._level, self.hold(optimizer, params)
        given = {known.id for known in level.known.values()}
        options = [value for group in optimizer.param_groups for key, value in group.items() if key != "params"]
        kept = [value for state in optimizer.state.values() for value in state.values()]
        if any(id(t) in given for t in leaves([options, kept]) if isinstance(t, Tensor)):
            raise refused(
                "an optimizer takes its step, and the function uses a tensor of its options or its state itself",
                "use that tensor outside",
            )
        for i, p in zip(places, params, strict=True):
            number = level.held_number(p)
            if number != self._numbers[i] and number not in level.stale:
                raise refused(
                    "an optimizer takes its step after one of its parameters was written to in the function",
                    "write to parameters before the call or after it",
                )
        held = [self._now(i, p._grad) for i, p in zip(places, params, strict=True)]
        self._steps.append((optimizer, places, held, formatted(user_place())))
        for p in params:
            level.outdate(p)

    def ended(self, outs: list[Tensor]) -> Effects | None:
        """What is to be done after the program, if anything is; the gradients for it are added to the results."""
        made = [out for out in outs if isinstance(out, Lifted) and id(out) not in self._place]
        if any(raw_grad.__get__(out) is not None for out in made):
            raise LateError(
                "a result has a gradient, which a program does not give",
                "return its .grad as well, and set that outside.",
            )
        if not (self._known or self._steps):
            return None
        for known, _, memory in self._present.values():
            if known._data is not memory or known._requires_grad or vars(known):
                raise _reshaped()
        places: dict[int, int] = {}

        def place(i: int, held: _Held) -> Grad:
            g, of, kept, laid = held
            if g is None or (
                kept and self._level.held_number(g) == self._present[i].number
            ):  # as it was before the call
                return Grad(None, kept)
            if of is None or of._requires_grad or vars(of) or of._data.shape != self._given[i]._data.shape:
                raise _reshaped()
            number = self._level.number_of(g)
            if number not in places:
                same = [] if kept else [at for at, out in enumerate(outs) if out is of]
                if same and self._level.number_of(outs[same[0]]) == number:
                    places[number] = same[0]
                else:  # apart from what stands for a gradient from before: as a result, that is this one itself
                    places[number] = len(outs)
                    outs.append(wrap(_payload(self._level, g).clone()))
            return Grad(places[number], kept, laid)

        steps = [
            Step(optimizer, params, [*map(place, params, grads)], line)
            for optimizer, params, grads, line in self._steps
        ]
        finals: list[tuple[int, Grad]] = []
        present: dict[int, Present] = {}
        for i in sorted(self._known):
            g, before = raw_grad.__get__(self._given[i]), self._before(i)
            if before is not None:
                layout = _layout(self._level.known[id(self._given[i])].grad)
                present[i] = Present(i, layout, place(i, (before, before, True, False)).place)
            finals.append((i, Grad(None, True) if before is not None and g is before else place(i, self._now(i, g))))
        leaves = sorted(self._leaves)
        return Effects(
            *(sorted(self._absent), [present[i] for i in self._present], leaves, steps, finals),
            [*self._held.values()],
        )

    def _now(self, i: int, g: Tensor | None) -> _Held:
        """The gradient of an input, with its values now."""
        kept = g is not None and g is self._before(i)
        values = None if g is None else wrap(_payload(self._level, g).clone())
        return values, g, kept, i in self._as_leaf and not kept

    def _before(self, i: int) -> Tensor | None:
        """What stands for the gradient that an input had before the call, if that is a further input."""
        return self._present[i].tensor if i in self._present else None

    def refuse_place(self) -> None:
        """Raise in a loop of the program, which is then written out, and in what runs in a later backward."""
        if self._level.step_began >= 0:
            raise WrittenInStepError
        if self._level.ended:
            raise refused(
                ".grad of a tensor is used by a hook, or by the backward of a Function, in a backward after the call",
                "pass what they use as an argument",
                LaterGradError,
            )

    def _refuse(self, i: int, t: Tensor, g: Tensor) -> None:
        """Raise if a gradient cannot become that of an input: it is part of a graph, or more than that would happen."""
        if g._requires_grad:
            raise refused(
                "the .grad of a tensor becomes part of a graph, as by backward(create_graph=True): a program leaves no "
                "graph there",
                "compute gradients by pullback.autograd.grad(loss, parameters, create_graph=True)",
            )
        if self._by_user:
            return
        if self._level.sparse:
            raise refused(
                "backward() gives a sparse gradient (embedding(..., sparse=True)), which no program has",
                "leave sparse=True out, or call backward() outside",
            )
        if thread.modes.watcher is not None:
            raise refused(
                "backward() is called in anomaly mode, which looks at values", "switch it on outside of the function"
            )
        if why := self._level.known[id(t)].unlike_a_leaf:
            raise refused(
                f"backward() goes to a tensor (shape {list(t.shape)}) that {why}: a program sets the .grad of leaves, "
                "and nothing else happens to it",
                "take off the hook, or leave backward() outside; compute what was computed in the function",
            )
        self._leaves.add(i)


_Held = tuple[Tensor | None, Tensor | None, bool, bool]
"""A gradient of an input at some time: its values, itself, and as in `Grad`: `kept` and `laid_out`."""


def _reshaped() -> LateError:
    return LateError(
        "a gradient was given another shape, other memory, attributes, or a place in a graph: a program gives values "
        "alone",
        "set .grad to a new tensor, w.grad = w.grad.reshape(...), or do it outside.",
    )


def _payload(level: Trace, t: Tensor) -> Any:
    return t._data if isinstance(t._data, Traced) else level.constant(t)


class LaterGradError(TraceError):
    """Code of the user's that runs in a backward after the call uses `.grad`."""


class TracedOptimizer:
    """Stands for an optimizer while a function is traced: it takes steps, and clears gradients."""

    __slots__ = ("__optimizer", "__params")  # other names than those of a class of the user's

    def __init__(self, optimizer: Any, params: list[Tensor]) -> None:
        self.__optimizer, self.__params = optimizer, params

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the optimizer."""
        return type(self.__optimizer)

    def __bool__(self) -> bool:
        if hasattr(type(self.__optimizer), "__len__") or hasattr(type(self.__optimizer), "__bool__"):
            return self.__getattr__("the truth")
        return True

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of the parameters."""
        _training().hold(self.__optimizer, self.__params)
        zero_gradients(self.__params, set_to_none)

    def step(self, closure: Any = None) -> None:
        """Note that a step is to be taken."""
        training = _training()
        if closure is not None or not type(self.__optimizer)._steps_after_programs:
            raise refused(
                "a step of an optimizer calls a closure, which computes the loss again",
                "compile the closure's computation of the loss, and call step(closure) outside",
            )
        training.step(self.__optimizer, self.__params)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        what = "what an optimizer keeps" if name.startswith("_") else f"{name} of an optimizer"
        raise refused(
            f"{what} is used: a program takes its steps, step(), and clears gradients, zero_grad(), and nothing else",
            "use it outside of the compiled function, as schedules of the rate",
        )


def _training() -> Training:
    level = open_trace()
    assert level is not None
    found: Training = level.training
    return found


class SpentNode(Node):
    """The node of the results of a function that has used up their graph, by backward() or a step."""

    __slots__ = ()

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        begin(self, [edge_of(t) if t._requires_grad else None for t in tensors])

    def _pack(self, pack: Any, unpack: Any) -> None:
        """Do nothing: it saves nothing."""

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        raise RuntimeError(
            "Trying to backward through the graph a second time: the compiled function that gave this tensor has "
            "called backward() or step() itself, and keeps nothing for another pass.\n"
            "  What to do: call backward() in the function alone, or outside of it alone."
        )

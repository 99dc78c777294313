"""`Entry`: a compiled function for one signature: the plan of its forward, and of each backward when it is needed."""

from __future__ import annotations

import itertools
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..interpreters.functions import recording
from ..interpreters.traced import of_another_kind
from ..interpreters.traced_memory import is_whole
from ..tensor.arrays import zeros_beside
from ..tensor.gpu import gpu_of
from ..tensor.nested import leaves
from ..tensor.protocol import is_foreign, is_payload
from ..tensor.tensor import Tensor
from .backends.waiting import announced
from .plan.fuse import LoopStage, schedule
from .plan.on_gpu import OnGpu
from .plan.plan import OnHost, Plan
from .plan.replays import Graphs, Replayed
from .plan.rounds import rounds_plan
from .plan.saving import Saving
from .rolled import rolled
from .rolling import roll_up
from .trace.closure import Environment
from .trace.holders import equal, memory
from .trace.program import Value
from .trace.stand_in import MISSING, known_of
from .trace.tracing import NotTracedError, rebuilder, trace

Array = np.ndarray[Any, Any]
_OF_RECORDING = frozenset(("is_grad_enabled", "requires_grad", "grad_fn", "is_leaf"))
"""Names by which code asks whether a pass is recorded."""


class Options(NamedTuple):
    """The options for running loops."""

    backend: str | None
    threads: int
    graphs: Callable[[int], Graphs] | None = None  # of the GPU of a number, where programs run as CUDA graphs


class Entry:
    """The plans that calls of one signature run.

    tensors: the tensors that are read besides the arguments, by reference: first those found from the function
    (`reached` counts them and the arguments), then others met during the trace. tracked: the numbers of the results
    that require grad. read: the numbers of the tensors that backward reads, counted through all tensors and then
    through the saved results (`saved_results`). plain: whether backward runs the plan, and no code of the user's.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        given: Sequence[Tensor],
        environment: Environment,
        recorded: bool,
        options: Options,
    ) -> None:
        self.options, self.environment = options, environment
        self._call = call
        self._lock = threading.Lock()
        own = {id(t): i for i, t in enumerate(given)}
        self.shared = [(t, own[id(t)]) for t in environment.tensors if id(t) in own]
        outside = [t for t in environment.tensors if id(t) not in own]
        inputs = [*given, *outside]
        self._given, self.reached = len(given), len(inputs)
        for t in outside:
            if is_payload(t._data) and gpu_of(t._data) is None:
                raise of_another_kind(t._data, environment.place(t))
        self._recorded, self._known = recorded, [known_of(t) for t in inputs]
        self.traced = traced = trace(call, [t._data for t in inputs], self._known, rolled, roll_up, recorded)
        self._known = [known._replace(grad=None) for known in self._known]  # the entry must not keep it alive
        environment.note_caches()
        self.arguments = traced.arguments
        self.plain = not (traced.problem or traced.users)
        # whether the graph of the results has been used up by the function itself
        self.spent = traced.effects is not None and (bool(traced.problem) or not traced.tracked)
        self.tensors = [*outside, *traced.captured]
        self.kinds = [(t, t._data.dtype, t._data.shape, t._requires_grad, gpu_of(t._data)) for t in self.tensors]
        self._layouts = self._found_layouts(inputs) if traced.layouts else None
        guarded = environment.guards.holders if traced.written or traced.effects else []
        self.read_by_value = [holder for holder in guarded if memory(holder) is not None]
        self._apart: list[Any] = []  # the arrays that were last found not to share memory
        self.rebuilt = rebuilder(traced.tree)
        self.tracked = traced.tracked if any(traced.passed[i] is None for i in traced.tracked) else []
        self._number = {v: i for i, v in enumerate(traced.arguments)}
        # results that are arguments, or other results, are the same tensors
        self.own = [i for i, p in enumerate(traced.passed) if p is None and traced.same[i] == i]
        self.outs = [traced.outs[i] for i in self.own]
        # whether every result is a new tensor, and nothing is written to
        self.direct = len(self.own) == len(traced.outs) and not traced.written
        # the inputs that a call changes, each with a line of the user's
        self.changed = [*zip((i for i, _ in traced.written), traced.lines, strict=True)]
        if traced.effects is not None:
            self.changed += traced.effects.changed(len(given) + len(self.tensors))
        self._plan_forward()
        self._backwards: dict[Any, tuple[Plan, list[Any]]] = {}

    # Memory -----------------------------------------------------------------------------------------------------------

    def _found_layouts(self, tensors: Sequence[Tensor]) -> list[Any]:
        """How tensors lie in memory, as far as the function looked at it."""
        whole = self.traced.whole
        return [(t._data.strides, is_whole(t._data)) if whole else t._data.strides for t in tensors]

    def are_as_before(self, tensors: Sequence[Tensor]) -> bool:
        """Whether the arguments, and the tensors found from the function, lie in memory as when it was traced, and have
        the attributes that it asked for."""
        layouts, asked, effects = self._layouts, self.traced.asked, self.traced.effects
        if effects is not None and not effects.hold([*tensors, *self.tensors]):
            return False
        if layouts is None and not asked:
            return True
        given = [*tensors, *self.tensors][: self.reached]
        if layouts is not None and self._found_layouts(given) != layouts:
            return False
        return all((now := vars(given[i]).get(name, MISSING)) is v or equal(now, v) for i, name, v in asked)

    def shared_memory(self, tensors: Sequence[Tensor], more: Sequence[Array]) -> tuple[int, int] | None:
        """The numbers of an input that is written to, and of another, or of what is read by value (`read_by_value`, and
        then `more`, counted after the inputs), that shares memory with it; None if none does.

        Arrays that were looked at in the call before are not compared again with one another.
        """
        arrays = [*[t._data for t in tensors], *self.read_by_value, *more]
        if len(arrays) == len(self._apart) and all(map(operator.is_, arrays, self._apart)):
            return None
        before = self._apart
        new = [i for i, a in enumerate(arrays) if not (before and a is before[i])]
        written = [i for i, _ in self.changed]
        for i, j in {*itertools.product(written, new), *itertools.product({*written} & {*new}, range(len(arrays)))}:
            other = arrays[j] if is_foreign(arrays[j]) else memory(arrays[j])
            if i != j and other is not None and shares(arrays[i], other):
                return i, j
        self._apart = arrays
        return None

    # Forward ----------------------------------------------------------------------------------------------------------

    def _plan_forward(self) -> None:
        """Decide which values forward keeps, and plan it."""
        traced = self.traced
        results = [*self.outs, *(v for _, v in traced.written)]
        stages = schedule(results, self.arguments)
        kept: list[Value] = []
        self.saving: Saving | None = None
        if self.tracked and not traced.problem:
            gradients = [g for g in traced.gradients if g is not None]
            self.saving = Saving(stages, self.arguments, traced.cotangents, gradients)
            kept = [v for v in self.saving.saved if v not in self._number]
        self.saved_results, self.kept, self._held = [], [], []
        for value in kept:
            held = [i for i in self.own if traced.outs[i] is value]
            if held:
                self.saved_results.append(held[0])
                self._held.append(value)
            else:
                self.kept.append(value)
        if self.kept or self._held:
            stages = schedule([*results, *self.kept, *self._held], self.arguments)
        outs = [*results, *self.kept]
        fresh = [True] * len(self.outs) + [False] * (len(outs) - len(self.outs))
        self.forward = self._plan(stages, self.arguments, outs, fresh)
        saved = self.saving.saved if self.saving is not None else ()
        n = len(self.arguments)
        self.frees = bool(saved)  # whether a backward frees values that the node holds
        self.read_arguments = sorted({self._number[v] for v in saved if v in self._number})
        self.read = {*self.read_arguments, *range(n, n + len(self._held))}

    def _plan(
        self,
        stages: Any,
        inputs: Sequence[Value],
        outs: Sequence[Value],
        fresh: Sequence[bool],
        gradients: bool = False,
    ) -> Plan:
        backend, threads, graphs = self.options
        place: OnHost | OnGpu = OnHost(backend, threads)
        if (gpu := self.traced.gpu) is not None:
            held = self.arguments[self._given : self._given + len(self.tensors)]
            place = OnGpu(gpu, backend, self.traced.on_host, graphs and graphs(gpu), held)
        return Plan(stages, inputs, outs, place=place, fresh=fresh, plan_of=rounds_plan, given_away=gradients)

    def run(self, arrays: Sequence[Array]) -> Sequence[Any]:
        """What forward gives. Of a graph, results that are to be written to an argument may be that already."""
        run = self.forward.run
        if not self.traced.written or not isinstance(run, Replayed):
            return run(*arrays)
        first = len(self.outs)
        return run.into(arrays, {first + k: arrays[i] for k, (i, _) in enumerate(self.traced.written)})

    def unwritten(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The tensors, with copies instead of those that the function writes to."""
        written = {i for i, _ in self.traced.written}
        return [t.detach().clone() if i in written else t for i, t in enumerate(tensors)]

    def again(self, by: Sequence[Tensor]) -> list[Tensor]:
        """Run the function as it is written, and as it was when it was traced, on other tensors."""
        if self.traced.effects is not None:
            raise RuntimeError(
                "a second derivative goes through a compiled function that sets gradients or has an optimizer take "
                "its step: it would be done again.\n"
                "  What to do: leave zero_grad(), backward() and step() outside; or let the function run as it is "
                "written."
            )
        given = self.unwritten(by)[: self.reached]
        for i in {i for i, _, _ in self.traced.asked}:
            if not self._known[i].requires_grad:  # it is the user's own: all others are stand-ins
                given[i] = given[i].detach()
            vars(given[i]).update({n: v for k, n, v in self.traced.asked if k == i and v is not MISSING})
        with recording(self._recorded):
            result = self._call(given)
        return [t for t in leaves(result) if isinstance(t, Tensor)]

    # Backward ---------------------------------------------------------------------------------------------------------

    def asks(self, taped: bool, all_wanted: bool) -> bool:
        """Whether code of the user's that runs in backward asks what this pass is, which the traced one was not: it was
        not recorded, and went to all arguments."""
        if not self.traced.users or (not taped and all_wanted):
            return False
        named = self.environment.named()
        return (taped and not named.isdisjoint(_OF_RECORDING)) or (not all_wanted and "needs_input_grad" in named)

    def refuse_changes(self) -> None:
        """Raise if what the function reads has changed since it was traced: a Function's backward, or a hook, would
        read it as it is now."""
        if not self.environment.holds_still():
            raise RuntimeError(
                f"compile: {self.environment.changed() or 'what it reads'} has changed since the function was called, "
                "and code of yours runs in its backward (a Function's, or a hook), which may read it.\n"
                "  What to do: change it after backward(); or let such a function run as it is written, with "
                'backend="eager".'
            )

    def backward(
        self, tensors: Sequence[Tensor], saved: Sequence[Array], given: Sequence[Any], wanted: tuple[bool, ...]
    ) -> list[Array | None]:
        """The gradients of the wanted arguments, from cotangents (arrays, tensors or None)."""
        arrays = [getattr(c, "_data", c) for c in given]
        same = tuple([c is not None and c.size > 1 and not any(c.strides) for c in arrays])
        key = (wanted, tuple([c is not None for c in arrays]), same)
        found = self._backwards.get(key)
        if found is None:
            with self._lock:
                found = self._backwards.get(key)
                if found is None:
                    try:
                        with announced("a backward pass"):
                            found = self._backwards[key] = self._plan_backward(tensors, *key)
                    except NotTracedError:  # what it reads has changed for good: the trace of all cotangents must do
                        if all(key[1]) and not any(same):
                            raise
        if found is None:
            values = zip(arrays, self.traced.cotangents, strict=True)
            like = next(c for c in arrays if c is not None)
            every = [zeros_beside(like, v.shape, v.dtype) if c is None else np.copy(c) for c, v in values]
            return self.backward(tensors, saved, every, wanted)
        plan, places = found
        cotangents = [
            (c[(0,) * c.ndim] if repeated else c) for c, repeated in zip(arrays, same, strict=True) if c is not None
        ]
        results = plan.run(*[t._data for t in tensors], *saved, *cotangents)
        return [None if i is None else results[i] for i in places]

    def _plan_backward(
        self, tensors: Sequence[Tensor], wanted: tuple[bool, ...], present: tuple[bool, ...], same: tuple[bool, ...]
    ) -> tuple[Plan, list[Any]]:
        traced = self.traced
        if (not all(present) or any(same)) and traced.effects is not None:
            raise NotTracedError  # it would begin with the gradients of now
        if not all(present) or any(same):
            arrays = [t._data for t in tensors[: self.reached]]
            uniform = [s for s, p in zip(same, present, strict=True) if p]
            traced = trace(self._call, arrays, self._known, rolled, roll_up, self._recorded, traced, present, uniform)
        chosen = [g if w else None for g, w in zip(traced.gradients, wanted, strict=True)]
        outs = list(dict.fromkeys(g for g in chosen if g is not None))
        inputs = [*self.arguments, *self._held, *self.kept, *traced.cotangents]
        plan = self._plan(schedule(outs, inputs), inputs, outs, [True] * len(outs), True)
        return plan, [None if g is None else outs.index(g) for g in chosen]

    def backward_plans(self) -> list[Plan]:
        """The plans made so far; if there is none yet, one for all gradients is made."""
        if not self._backwards and self.saving is not None:
            wanted = tuple(k.requires_grad for k in self._known) + tuple(t._requires_grad for t in self.traced.captured)
            all_of_them = (True,) * len(self.tracked)
            key = (wanted, all_of_them, (False,) * len(self.tracked))
            with self._lock:
                self._backwards[key] = self._plan_backward((), *key)
        return [plan for plan, _ in self._backwards.values()]


def shares(a: Array, b: Array) -> bool:
    """Whether two arrays have an element in common; yes, where that takes long to find out, or a wait for a device."""
    if is_foreign(a) is not is_foreign(b) or not np.may_share_memory(a, b):
        return False
    if is_foreign(a):
        return True
    try:
        return np.shares_memory(a, b, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def loops(plan: Plan) -> list[LoopStage]:
    """The loops of a plan."""
    return [s for s in plan.stages if isinstance(s, LoopStage)]

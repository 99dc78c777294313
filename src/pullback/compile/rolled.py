"""The loops of a traced function: the step of a `scan` is traced once, with its derivative, and becomes a `Rounds`.

The step runs on stand-ins for a carry and an element. Its graph is cut where it leads to what was made before, so that
a pass through it gives its partial derivatives. Forward and backward are two loops of the program. The second goes the
other way; it carries the cotangents of the carries, and sums those of what all steps read.

A step that is not the same each time, since it counts, or writes to what it closes over, is not rolled up: `rolled`
returns None, and the steps are written out one after the other. A derivative of the backward loop writes them out, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..autograd.node import FREED, Node, begin, edge_of, next_order
from ..autograd.saved import second_backward
from ..interpreters.functions import recording
from ..interpreters.traced import Entry, Trace, Traced
from ..table.levels import inner
from ..tensor.modes import restoring, thread
from ..tensor.nested import filled, leaves, rebuild
from ..tensor.tensor import Edge, Tensor, wrap
from .backends.steps import function
from .plan.fuse import schedule
from .plan.saving import Saving
from .steps_alone import Key, NotRolledError, Part, Ran, alike, apart, numbers, partial, stand_in
from .trace.closure import Environment
from .trace.consumed import is_iterator
from .trace.lower import Lowered
from .trace.mutations import State
from .trace.program import Rounds, Value, reachable
from .trace.whole_calls import LoopOp, WholeOp


def rolled(
    level: Trace,
    name: str,
    step: Callable[..., tuple[Any, Any, Any]],
    carry: Any,
    xs: Any,
    given: list[Tensor],
    n: int,
    reverse: bool,
    init: Any,
    written_out: Callable[..., Any],
) -> Any:
    """The last carry and the results, or None; the arguments are those of `loop_in_trace`."""
    before = level.refusal, level.layouts, level.whole
    try:
        return _Scan(level, name, carry, xs, given, n, reverse, written_out).of(step, init)
    except NotRolledError as error:
        reason = str(error)
    except Exception as error:  # if it is the user's, the steps that are written out raise it again
        reason = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    level.refusal, level.layouts, level.whole = before
    level.written_out.append(f"{name}() of {n} steps: {reason}" if n > 0 else f"{name}(): {reason}")
    return None


class _Scan:
    """One loop of a traced function."""

    def __init__(
        self,
        level: Trace,
        name: str,
        carry: Any,
        xs: Any,
        given: list[Tensor],
        n: int,
        reverse: bool,
        written_out: Callable[..., Any],
    ) -> None:
        self.level, self.name, self.n, self.reverse = level, name, n, reverse
        self.carry, self.nest, self.written_out = carry, xs, written_out
        self.starts: list[Any] = [t if t is None else level.adopt(t) for t in leaves(carry)]
        self.given = [level.adopt(t) for t in given]
        if any(type(t) is not Tensor and inner(t, level) is None for t in (*self.given, *self.starts) if t is not None):
            raise NotRolledError("a tensor of another kind is among its arguments")
        self.records = thread.modes.grad_enabled
        self.tracked = [t is not None and self.records and t._requires_grad for t in self.starts]
        self.numbers = [level.number_of(t) for t in self.given]

    # The step ---------------------------------------------------------------------------------------------------------

    def of(self, step: Any, init: Any) -> Any:
        """The last carry and the results, after the loop was entered into the trace."""
        environment = Environment(step.args)
        if any(map(is_iterator, environment.reached())):
            raise NotRolledError("it takes from an iterator")
        state = State(environment, {}, ())
        plain = [(t, t._data.copy()) for t in environment.tensors if isinstance(t._data, np.ndarray)]
        try:
            ran = self._settled(step, init)
        finally:
            problem = state.changed()
            written = [(t, a) for t, a in plain if t._data.shape != a.shape or t._data.tobytes() != a.tobytes()]
            for t, array in written:
                t._data[...] = array
            changed = problem is not None or bool(written)
            plain.clear()  # what the function made, and nothing else holds, is a constant of its program
            written.clear()
            environment.guards.forget()
            vars(environment).clear()
        if changed:
            raise NotRolledError("it changes something that outlives a step")
        return self._entered(ran)

    def _settled(self, step: Any, init: Any) -> Ran:
        """The step as it runs from the second time on, when its carry has the dtype, and requires grad, as it will."""
        before: Ran | None = None
        while True:
            ran = self._run(step, init)
            init, moved = (), False
            for i, (held, taken, following) in enumerate(zip(ran.carries, ran.taken, ran.nexts, strict=True)):
                if taken is not held:
                    self.starts[i], moved = taken, True
                if following is not None and following._requires_grad and not self.tracked[i]:
                    self.tracked[i] = moved = True
            if moved:
                before = None
            elif before is None:
                before = ran
            elif alike(self.level, before, ran):
                return ran
            else:
                raise NotRolledError("its steps are not the same each time")

    def _run(self, step: Any, init: Any) -> Ran:
        """Run the step on stand-ins."""
        level = self.level
        starts = [None if t is None else level.number_of(t) for t in self.starts]
        place = (self.n - 1 if self.reverse else 0, ...)
        with apart(level) as entries:
            began, first = next_order(), len(level.examples)
            carries = [
                None if n is None else stand_in(level, n, ..., tracked)
                for n, tracked in zip(starts, self.tracked, strict=True)
            ]
            xs = [
                stand_in(level, n, place, self.records and t._requires_grad)
                for n, t in zip(self.numbers, self.given, strict=True)
            ]
            x = filled(self.nest, xs)
            taken, following, y = step(rebuild(self.carry, iter(carries)), x, 0, init)
            ys = [v if v is None else _as_tensor(level, v) for v in leaves(y)]
        if any(isinstance(entry.op, WholeOp) for entry in entries):
            raise NotRolledError("it calls a function that works with values")
        return Ran(entries, carries, xs, [*leaves(taken)], [*leaves(following)], ys, y, began, first)

    # Its derivative ---------------------------------------------------------------------------------------------------

    def _entered(self, ran: Ran) -> Any:
        """What the loop gives, once it is part of the trace."""
        level = self.level
        outs = [t for t in (*ran.nexts, *ran.ys) if t is not None]
        tracked = [t._requires_grad and self.records for t in outs]
        if any(t._data.dtype.kind not in "fc" for t, is_tracked in zip(outs, tracked, strict=True) if is_tracked):
            raise NotRolledError("a result requires grad, and is of a dtype that NumPy lacks")
        cotangents: list[Any] = [None] * len(outs)
        gradients: dict[Key, Any] = {}
        with apart(level) as backward:
            if any(tracked):
                chosen = [t for t, is_tracked in zip(outs, tracked, strict=True) if is_tracked]
                vectors = [stand_in(level, level.number_of(t)) for t in chosen]
                rest = iter(vectors)
                cotangents = [next(rest) if is_tracked else None for is_tracked in tracked]
                own = {edge_of(t)[0] for t in (*ran.carries, *ran.xs) if t is not None and t._requires_grad}
                gradients = partial(level, chosen, vectors, ran.began, ran.first, own, recorded=False)
        inside = [t for t in (*ran.carries, *ran.xs) if t is not None]
        own_keys = [edge_of(t)[:2] if t._requires_grad else None for t in inside]
        edges = {key: edge for key, (edge, _) in gradients.items() if key not in own_keys}
        if self.n < 0:  # it has no derivative
            backward, cotangents, gradients = [], [None] * len(outs), {}
        program = _Stepped(level, ran, backward, cotangents, own_keys, {k: g for k, (_, g) in gradients.items()}, edges)
        return _Loop(self, ran, program, tracked, edges).result()


class _Stepped:
    """The program of a step and of its derivative: forward and backward as `Rounds`, and what these take.

    Tensors from outside have numbers in the trace; `closures` of forward, and what is listed for backward, are such
    numbers, or say which result of the forward loop it is.
    """

    def __init__(
        self,
        level: Trace,
        ran: Ran,
        backward: list[Entry],
        cotangents: Sequence[Any],
        own_keys: Sequence[Any],
        gradients: dict[Key, Any],
        edges: dict[Key, Edge],
    ) -> None:
        def number(t: Any) -> int:
            return level.number_of(t)

        m = sum(t is not None for t in ran.carries)
        inside = [*map(number, [t for t in (*ran.carries, *ran.xs) if t is not None])]
        cots = [None if t is None else number(t) for t in cotangents]
        outs = [number(t) for t in (*ran.nexts, *ran.ys) if t is not None]
        found = {key: number(g) for key, g in gradients.items() if g is not None}
        entries = [*ran.entries, *backward]
        made = {n for entry in entries for n in entry.results} | {*inside, *cots}
        named = [*(n for entry in entries for n in numbers((entry.args, entry.kwargs))), *outs, *found.values()]
        self.outside = [n for n in dict.fromkeys(named) if n not in made]
        part: Any = Part(
            [*inside, *[n for n in cots if n is not None], *self.outside], level.examples, entries, level.on_gpu
        )
        lowered = Lowered(part, (), None, {}, ())
        values, self.program, self.opaque = lowered.values, lowered.program, lowered.opaque
        self.carries, self.xs = [values[n] for n in inside[:m]], [values[n] for n in inside[m:]]
        self.closures = [values[n] for n in self.outside]
        self.nexts, self.ys = [values[n] for n in outs[:m]], [values[n] for n in outs[m:]]
        self.cotangents = [None if n is None else values[n] for n in cots]
        self.own = [None if key is None or key not in found else values[found[key]] for key in own_keys]
        self.sums = [values[found[key]] if key in found else None for key in edges]

    def forward(self, name: str, n: int, reverse: bool) -> tuple[Rounds, list[int], list[int]]:
        """The loop, and the numbers among inputs and among closures of those that it takes."""
        wanted = [g for g in (*self.own, *self.sums) if g is not None]
        arguments = [*self.carries, *self.xs, *self.closures]
        cotangents = [c for c in self.cotangents if c is not None]
        saved = (
            Saving(schedule([*self.nexts, *self.ys], arguments), arguments, cotangents, wanted).saved if wanted else {}
        )
        self.saved = [v for v in saved if v not in arguments]
        self.histories = [i for i, v in enumerate(self.carries) if v in saved]
        kept = [self.nexts[i] for i in self.histories] + self.ys
        self.extra = [v for v in self.saved if v not in kept]
        ys = [*self.ys, *self.extra]
        xs, closures = _used([*self.nexts, *ys], self.xs), _used([*self.nexts, *ys], self.closures)
        taken = self.carries, [self.xs[i] for i in xs], [self.closures[i] for i in closures]
        return Rounds(name, n, reverse, taken, self.nexts, ys, self.histories), xs, closures

    def place_of(self, value: Value, reverse: bool) -> tuple[int, slice]:
        """The result of forward that has a value of each step, and the part of it."""
        m = len(self.carries)
        histories = m + len(self.ys) + len(self.extra)
        for k, i in enumerate(self.histories):
            if value in (self.carries[i], self.nexts[i]):
                later = (value is self.carries[i]) is reverse
                return histories + k, slice(1, None) if later else slice(0, -1)
        return m + [*self.ys, *self.extra].index(value), slice(None)

    def backward(self, name: str, n: int, reverse: bool) -> Backward:
        """The loop of the derivative."""
        m, program = len(self.carries), self.program
        tracked = [i for i in range(m) if self.own[i] is not None or self.cotangents[i] is not None]
        nexts: list[Value] = []
        carries: list[Value] = []
        for i in tracked:
            c = self.carries[i]
            known = self.cotangents[i]
            carries.append(program.input(c.shape, c.dtype) if known is None else known)
            found = self.own[i]
            nexts.append(program.const(0, c.dtype, c.shape) if found is None else found)
        elements = [i for i in range(len(self.xs)) if self.own[m + i] is not None]
        ys: list[Any] = [self.own[m + i] for i in elements]
        each: list[Any] = [*self.cotangents[m:], *self.xs, *self.saved, *[self.carries[i] for i in self.histories]]
        each = [v for v in dict.fromkeys(each) if v is not None]
        products: dict[int, tuple[Value, Value]] = {}
        for k, g in enumerate(self.sums):
            if g is None:
                continue
            factors = _factors(g, each)
            if factors is None:
                carries.append(program.input(g.shape, g.dtype))
                nexts.append(program.map(np.add.__name__, (carries[-1], g), g.dtype))
            else:
                products[k] = factors
                ys += [v for v in factors if v not in each and v not in ys]
        available = each
        outs: list[Any] = [*nexts, *ys]
        held = {*carries, *each, *self.closures}
        reads = {*reachable(outs, held)} & held
        each, closures = [v for v in each if v in reads], [i for i, v in enumerate(self.closures) if v in reads]
        taken = carries, each, [self.closures[i] for i in closures]
        rounds = Rounds(f"{name}, backward", n, not reverse, taken, nexts, ys)
        return Backward(rounds, tracked, elements, each, closures, products, available)


def _factors(g: Value, each: Sequence[Value]) -> tuple[Value, Value] | None:
    """The factors of a product whose sum over all steps is one product of all rows, ``left.T @ right``; None if it is
    none, or if the rows of all steps, where they are not kept anyway, would take much more memory than the sum."""
    if g.kind != "call" or not function(g.fn).product or g.params[1] or len(g.args) != 2:
        return None
    turned, right = g.args
    order = function(turned.fn).order if turned.kind == "call" else None
    if len(turned.shape) != 2 or len(right.shape) != 2 or order is None:
        return None
    (_, *how), named = turned.params
    left = turned.args[0]
    small = all(v in each or v.size <= 4 * g.size for v in (left, right))
    return (left, right) if small and order(2, *how, **named) == [1, 0] else None


class Backward(NamedTuple):
    """The loop of a derivative: the numbers of the carries and of the inputs that have a gradient, what it reads of
    each step, and the numbers of the closures that it reads. products: the factors of the sums that are products of
    all rows, by their numbers; `available`: what is known of each step without this loop."""

    rounds: Rounds
    carries: list[int]
    elements: list[int]
    each: list[Value]
    closures: list[int]
    products: dict[int, tuple[Value, Value]]
    available: list[Value]


class _Loop:
    """A loop that is part of a trace, and its derivative."""

    def __init__(self, scan: _Scan, ran: Ran, step: _Stepped, tracked: Sequence[bool], edges: dict[Key, Edge]) -> None:
        self.scan, self.step, self.model, self.tracked = scan, step, ran.model, list(tracked)
        self.level, self.nexts, self.ys = scan.level, ran.nexts, ran.ys
        self.starts = [t for t in scan.starts if t is not None]
        level = self.level
        rounds, xs, closures = step.forward(scan.name, scan.n, scan.reverse)
        self.outside = [_held(level, n) for n in step.outside]
        self.inputs = [_held(level, n) for n in scan.numbers]
        args = [_held(level, level.number_of(t)) for t in self.starts]
        args += [self.inputs[i] for i in xs] + [self.outside[i] for i in closures]
        self.found = _recorded(level, rounds, args)
        self.edges = [edge_of(t) if t._requires_grad and scan.records else None for t in (*self.starts, *scan.given)]
        self.edges += edges.values()

    def result(self) -> Any:
        """The last carry and the results, as the user has them."""
        m = len(self.starts)
        outs = [_held(self.level, self.level.number_of(t)) for t in self.found[: m + len(self.step.ys)]]
        if any(self.tracked):
            node = LoopNode(self, self.edges)
            chosen = [t for t, is_tracked in zip(outs, self.tracked, strict=True) if is_tracked]
            node._outputs = len(chosen)
            for k, t in enumerate(chosen):
                t._edge, t._requires_grad = (node, k, t._data.shape, t._data.dtype), True
        return filled(self.scan.carry, outs[:m]), filled(self.model, outs[m:])

    def gradients(self, given: Sequence[Any]) -> list[Any]:
        """The gradients for the edges, of cotangents of the results that are tracked (or None), by the loop."""
        level, step, m = self.level, self.step, len(self.starts)
        rest = iter(given)
        vectors = [next(rest) if is_tracked else None for is_tracked in self.tracked]
        rounds, carries, elements, each, closures, products, available = self.backward
        like = self.found[0] if self.found else self.outside[0]
        firsts = [vectors[i] for i in carries] + [None] * (len(rounds.carries) - len(carries))
        args = [_zeros(like, v.shape, v.dtype) if t is None else t for v, t in zip(rounds.carries, firsts, strict=True)]
        args += [self._of_each(value, vectors, like) for value in each]
        args += [self.outside[i] for i in closures]
        results = _recorded(level, rounds, args)
        found = iter(results)
        own: list[Any] = [None] * (m + len(self.inputs))
        for i in carries:
            own[i] = next(found)
        sums = [None if g is None or k in products else next(found) for k, g in enumerate(step.sums)]
        for i in elements:
            own[m + i] = next(found)
        of_steps = dict(zip(rounds.ys, results[len(rounds.carries) :], strict=True))
        for k, factors in products.items():
            parts = [self._of_each(v, vectors, like) if v in available else of_steps[v] for v in factors]
            left, right = (t.reshape(-1, t.shape[-1]) for t in parts)
            sums[k] = left.t() @ right
        return [None if edge is None else g for edge, g in zip(self.edges, [*own, *sums], strict=True)]

    def _of_each(self, value: Value, vectors: Sequence[Any], like: Tensor) -> Tensor:
        """A value of each step that is known when the derivative begins."""
        step = self.step
        if value in step.cotangents:
            i = step.cotangents.index(value)
            shape = (self.scan.n, *value.shape)
            return _zeros(like, shape, value.dtype) if vectors[i] is None else vectors[i]
        if value in step.xs:
            return self.inputs[step.xs.index(value)]
        i, part = step.place_of(value, self.scan.reverse)
        return self.found[i] if part == slice(None) else self.found[i][part]

    @functools.cached_property
    def backward(self) -> Backward:
        """The loop of its derivative."""
        return self.step.backward(self.scan.name, self.scan.n, self.scan.reverse)

    def by_operations(self, vectors: Sequence[Any], recorded: bool) -> tuple[list[Any], list[Key], int, int]:
        """The gradients for the edges, with the steps written out; the keys of what they are taken by; and where the
        graph of all that began."""
        scan = self.scan
        with recording(True):
            starts, given = [_view(t) for t in self.starts], [_view(t) for t in scan.given]
        carry = filled(scan.carry, starts)
        began, first = next_order(), len(self.level.examples)
        with recording(True):
            last, ys = scan.written_out(carry, given, n=scan.n)
            outs = [t for t in (*leaves(last), *leaves(ys)) if t is not None]
            own = [edge_of(t)[:2] if t._requires_grad else None for t in (*starts, *given)]
            keys: list[Any] = [*own, *[edge[:2] for edge in self.edges[len(own) :] if edge is not None]]
            chosen = [t for t, is_tracked in zip(outs, self.tracked, strict=True) if is_tracked]
            pairs = [(t, v) for t, v in zip(chosen, vectors, strict=True) if v is not None]
            ends, given_for = [t for t, _ in pairs], [v for _, v in pairs]
            found = partial(self.level, ends, given_for, began, first, set(), recorded=recorded)
        gradients = [
            None if edge is None else found.get(k, (None, None))[1] for edge, k in zip(self.edges, keys, strict=True)
        ]
        return gradients, keys, began, first


class LoopNode(Node):
    """A loop in the graph of a traced function: its backward is the loop of the derivative."""

    __slots__ = ("_loop", "_outputs")

    def __init__(self, loop: _Loop, edges: Sequence[Edge | None]) -> None:
        begin(self, edges)
        self._loop: Any = loop
        self._outputs = 1

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        loop = self._loop
        if loop is FREED:
            raise second_backward(self)
        if loop.scan.n < 0:
            raise ValueError(
                "Reverse-mode differentiation does not work for while_loop() in a compiled function, where a value of "
                "the function ends it.\n  What to do: use scan(), or fori_loop() with a number of steps; or take the "
                "gradient of the compiled function, which then runs as it is written."
            )
        given = [c if c is None or isinstance(c, Tensor) else wrap(c) for c in (g if self._outputs > 1 else [g])]
        if any(type(c) is not Tensor and inner(c, loop.level) is None for c in given if c is not None):
            return loop.by_operations(given, thread.modes.grad_enabled)[0]
        with recording(False):
            found = loop.gradients([None if c is None else _held(loop.level, loop.level.number_of(c)) for c in given])
        if thread.modes.grad_enabled:
            SecondLoopNode.after(loop, given, found)
        if not keep:
            self._loop = FREED
        return found if taped else [None if t is None else t._data for t in found]


class SecondLoopNode(Node):
    """The gradients of a loop as functions of what it takes: their derivatives write out the steps."""

    __slots__ = ("_chosen", "_given", "_loop", "_outputs")

    _loop: Any
    _given: list[Any]
    _chosen: list[int]

    @classmethod
    def after(cls, loop: _Loop, given: list[Any], found: list[Any]) -> None:
        """Make a node; the gradients become its outputs."""
        level = loop.level
        given = [None if t is None else level.adopt(t) for t in given]
        edges = [*loop.edges, *[edge_of(t) if t is not None and t._requires_grad else None for t in given]]
        node = begin(cls(), edges)
        node._loop, node._given = loop, given
        node._chosen = [i for i, t in enumerate(found) if t is not None]
        node._outputs = len(node._chosen)
        for k, t in enumerate([found[i] for i in node._chosen]):
            t._edge, t._requires_grad = (node, k, t._data.shape, t._data.dtype), True

    @restoring()
    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        loop, level = self._loop, self._loop.level
        recorded = taped and thread.modes.grad_enabled
        vectors = [v if v is None or isinstance(v, Tensor) else wrap(v) for v in (g if self._outputs > 1 else [g])]
        with recording(True):
            given = [None if t is None else _view(t) for t in self._given]
            once, keys, began, first = loop.by_operations(given, True)
            firsts = [once[i] for i in self._chosen]
            twice = [(t, v) for t, v in zip(firsts, vectors, strict=True) if t is not None and v is not None]
            twice = [(t, v) for t, v in twice if t._requires_grad]
            found: dict[Key, Any] = {}
            if twice:
                targets, directions = [t for t, _ in twice], [v for _, v in twice]
                found = partial(level, targets, directions, began, first, set(), recorded=recorded)
        own = [edge_of(t)[:2] if t is not None and t._requires_grad else None for t in given]
        results = [None if k is None else found.get(k, (None, None))[1] for k in (*keys, *own)]
        results = [None if edge is None else t for edge, t in zip(self._edges, results, strict=True)]
        return results if taped else [None if t is None else t._data for t in results]


def _recorded(level: Trace, rounds: Rounds, args: Sequence[Tensor]) -> list[Tensor]:
    with recording(False):
        return [wrap(payload) for payload in level.run(LoopOp(rounds), tuple(args), {})]


def _held(level: Trace, number: int) -> Tensor:
    """A tensor that stands for a value, whatever is written to others."""
    return wrap(Traced(level, number, level.examples[number]))


def _view(t: Tensor) -> Tensor:
    return t.view_as(t) if t._requires_grad else t


def _zeros(like: Tensor, shape: tuple[int, ...], dtype: Any) -> Tensor:
    data: Any = like._data
    return wrap(data.like(np.zeros(shape, dtype)))


def _as_tensor(level: Trace, value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(level.constant(wrap(np.asarray(value))))


def _used(outs: Sequence[Value], among: Sequence[Value]) -> list[int]:
    """The numbers of the values that outs need."""
    needed = {*reachable(outs)}
    return [i for i, v in enumerate(among) if v in needed]

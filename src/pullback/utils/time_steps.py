"""Checkpointing of time steps: ``state = step(state)`` many times over, as one node that keeps few of the states.

The forward pass keeps some states, the snapshots. The backward pass takes the steps in reverse. For each it needs the
state before it, which it computes again from the last snapshot, and puts snapshots that are used up to new places.
Where the snapshots are best is known: Griewank and Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000). The package
`checkpoint_schedules` gives the places, for snapshots in memory and, as a second level, on disk.

Each step is recorded by itself, and its gradients are computed in a backward pass of its own. That pass ends where the
step's graph ends: at its state, and at tensors from outside that the step uses, such as parameters in a closure. The
node of all steps sends the sums of their gradients on.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from .. import autograd, errors
from ..autograd import Function
from ..autograd.node import Node, begin, edge_of, leaf_edge, next_order
from ..autograd.roots import GradientEdge
from ..diagnose.progress import Progress
from ..ops.make.generators import go_back, same_random_numbers, states
from ..tensor.modes import restoring, thread
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Edge, Lifted, Tensor, wrap

Place = tuple[Any, int]
"""A node and the number of its output: where a tensor stands in a graph."""

_GIVEN: Any = object()
"""Stands for a leaf of the first state that the node is given; None is a leaf like others."""


class StepsPlan(NamedTuple):
    """What `checkpoint_steps` will do. Its text says it in words.

    n: the steps. snapshots, disk: the states kept in memory and on disk, besides the first. again: how many steps the
    backward pass takes again before it records each step once. state: the bytes of one state; None if not given.
    """

    n: int
    snapshots: int
    disk: int
    again: int
    state: int | None

    def __str__(self) -> str:
        each = self.n + self.again
        kept = f"{self.snapshots} states in memory" + (f" and {self.disk} on disk" if self.disk else "")
        lines = [
            f"{self.n:,} steps, with {kept} besides the first",
            f"  forward    {self.n:,} steps",
            f"  backward   {self.again:,} steps again, and each step once more, recorded: {each / max(self.n, 1):.2f} "
            "times the steps of forward",
        ]
        if self.state is not None:
            memory = (self.snapshots + 1) * self.state
            lines.append(
                f"  memory     {memory:,} bytes of snapshots"
                + (f", {self.disk * self.state:,} on disk" if self.disk else "")
                + f"; all {self.n:,} states would take {self.n * self.state:,}, without what their graphs save"
            )
        return "\n".join(lines)


def explain_steps(n: int, snapshots: int = 10, *, disk: int = 0, state: Any = None) -> StepsPlan:
    """What `checkpoint_steps` with these arguments will do, before it does it: print it.

    state: the first state, for the memory. Raises ValueError for numbers that `checkpoint_steps` refuses.

    The number of steps that are taken again is ``t(n + 1, c) - n``, with c states kept (the first one too) and

        t(n, c) = r n - binomial(c + r, r - 1),    r the least number with binomial(c + r, c) >= n,

    the least number of steps that reverses n (Griewank and Walther 2000, proposition 1). The state before the last step
    is not kept, since the backward pass begins later.

    >>> import pullback
    >>> print(pullback.utils.explain_steps(200, 10, state=pullback.zeros(20_000, dtype=pullback.float64)))
    200 steps, with 10 states in memory besides the first
      forward    200 steps
      backward   312 steps again, and each step once more, recorded: 2.56 times the steps of forward
      memory     1,760,000 bytes of snapshots; all 200 states would take 32,000,000, without what their graphs save
    """
    _check_numbers("explain_steps", n, snapshots, disk)
    size = None if state is None else sum(t.nbytes for t in leaves(state) if isinstance(t, Tensor))
    in_memory, on_disk = min(snapshots, max(n - 1, 0)), min(disk, max(n - 1 - snapshots, 0))
    return StepsPlan(n, in_memory, on_disk, _least(n + 1, in_memory + on_disk + 1) - n, size)


_MOST = 10**9  # steps, which take hours even if they do nothing


def _least(n: int, kept: int) -> int:
    """The least number of steps that reverses n of them, with so many states kept."""
    if n <= 1:
        return 0
    r = 1
    while math.comb(kept + r, kept) < n:
        r += 1
    return r * n - math.comb(kept + r, r - 1)


def _check_numbers(function: str, n: Any, snapshots: Any, disk: Any) -> None:
    for name, value in (("n", n), ("snapshots", snapshots), ("disk", disk)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(errors.message(f"{function}(): {name}", expected="an int", found=errors.describe(value)))
        if not 0 <= value <= _MOST:
            raise ValueError(
                errors.message(f"{function}(): {name}", expected=f"a number from 0 to {_MOST:,}", found=str(value))
            )


def checkpoint_steps(
    step: Callable[[Any], Any],
    state: Any,
    n: int,
    snapshots: int = 10,
    *,
    disk: int = 0,
    directory: str | Path | None = None,
    preserve_rng_state: bool = True,
    progress: bool | None = None,
) -> Any:
    """``state = step(state)``, n times over, as one node of the graph that keeps few states. Returns the last state.

    The gradients are those of the whole graph. The backward pass computes the states between the snapshots again, with
    as few steps as is possible; `explain_steps` says how many. It needs the extra `checkpoint`.

    Args:
        step: a function of a state that returns the next one. It must do the same each time that it gets the same
            state, and not write to it. It may be compiled. Tensors from outside that it uses, such as parameters in a
            closure or of a module, get their gradients.
        state: a Tensor, or dicts, lists and tuples of Tensors and other values; `step` returns the same nesting.
        n: how often `step` is called.
        snapshots: how many states are kept in memory, besides the first.
        disk: how many more are kept on disk, in files of `directory` (by default a temporary one), which are removed
            with the graph.
        preserve_rng_state: draw the same random numbers (of the default generator) again.
        progress: show a bar on the terminal; by default where a person waits for more than two seconds.

    With `create_graph` the backward pass records all steps at once, and keeps all states. Within `vmap`, forward mode
    and `compile` the steps are simply taken one after the other.

    Raises:
        ImportError: `checkpoint_schedules` is not installed.
        TypeError, ValueError: a number of steps or snapshots that is no int, is negative, or more than a billion.
        RuntimeError: a step returns another nesting than it was given, or writes to its state; a step of the backward
            pass uses a tensor that requires grad and that no step of the forward pass used.

    >>> import pullback
    >>> rate = pullback.tensor(0.1, dtype=pullback.float64, requires_grad=True)
    >>> first = pullback.ones(2, dtype=pullback.float64)
    >>> last = pullback.utils.checkpoint_steps(lambda u: u - rate * u, first, 1000, snapshots=5)
    >>> last.sum().backward()
    >>> bool(abs(rate.grad + 2 * 1000 * 0.9**999) < 1e-50)
    True
    """
    _check_numbers("checkpoint_steps", n, snapshots, disk)
    if not callable(step):
        raise TypeError(
            errors.message("checkpoint_steps(): step", expected="a function of a state", found=errors.describe(step))
        )
    tensors = [t for t in leaves(state) if isinstance(t, Tensor)]
    if n == 0 or not thread.modes.grad_enabled or any(isinstance(t, Lifted) for t in tensors):
        with _bar(progress) as bar:
            for i in range(n):
                bar("steps", i, n)
                state = step(state)
        return state
    run = _Run(step, state, n, snapshots, disk, directory, preserve_rng_state, progress)
    run.sweep(_detached(state))
    last, outside = run.state, run.outside
    inputs = [t for t in tensors if _is_differentiable(t)]
    if not outside and not any(t._requires_grad for t in inputs):
        return rebuild(run.tree, iter(last))
    results = iter(_Steps.apply(run, *inputs, *(_stand_in(edge) for edge in outside.values())))
    run.state = []
    return rebuild(run.tree, iter([next(results) if _is_differentiable(t) else t for t in last]))


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and value._data.dtype.kind in "fcV"


def _detached(state: Any) -> list[Any]:
    """The leaves of a state, outside the graph."""
    return [t.detach() if isinstance(t, Tensor) else t for t in leaves(state)]


def _stand_in(edge: Edge) -> Tensor:
    """A tensor at a place in the graph, whose values nobody reads."""
    t = wrap(np.broadcast_to(np.zeros((), edge[3]), edge[2]))
    t._edge, t._requires_grad = edge, True
    return t


def _bar(progress: bool | None) -> Progress:
    return Progress("checkpoint_steps", shows=progress)


class _Steps(Function):
    """All steps as one node."""

    @staticmethod
    def forward(ctx: Any, run: _Run, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The last state, which is known."""
        ctx.run = run
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[: len(inputs) - len(run.outside)])
        return tuple(t for t in run.state if _is_differentiable(t))

    @staticmethod
    @restoring()
    def backward(ctx: Any, *grads: Any) -> Any:
        """Send the gradients through all steps, the last one first."""
        backward = ctx.run.recorded if thread.modes.grad_enabled else ctx.run.backward
        return None, *backward(list(ctx.saved_tensors), list(grads))


class _Run:
    """The steps of one call, their snapshots, and the places in the graph of the tensors that they use."""

    def __init__(
        self,
        step: Callable[[Any], Any],
        state: Any,
        n: int,
        snapshots: int,
        disk: int,
        directory: Any,
        preserve: bool,
        progress: bool | None,
    ) -> None:
        self.step, self.tree, self.n = step, _shape_of(state), n
        self.levels, self.directory = (snapshots + 1, disk), directory
        self.rng = states() if preserve else None
        self.progress = progress
        self.outside: dict[Place, Edge] = {}
        self.state: list[Any] = []
        self.tensors = [isinstance(t, Tensor) for t in leaves(state)]
        self.rest = [_GIVEN if _is_differentiable(t) else t for t in leaves(state)]
        self.actions: Iterator[Any] | None = None  # what is left to do; None: nothing is kept
        self.kept: dict[int, _Snapshot] = {}
        self.folder: Any = None  # of the files; it goes with this object

    def sweep(self, first: list[Any], known: bool = False) -> None:
        """Take all steps from the first state, and keep snapshots. known: `outside` is complete."""
        self.state, self.kept = first, {}
        self.actions = iter(_schedule(self.n, *self.levels))
        with _bar(self.progress) as bar:
            for action in self.actions:
                kind = type(action).__name__
                if kind == "EndForward":
                    return
                if action.write_ics:
                    self._keep(action.n0, action.storage)
                for i in range(action.n0, min(action.n1, self.n)):  # the schedule has one step more, which is nothing
                    bar("steps", i, self.n)
                    self._advance(known)

    def backward(self, first: list[Tensor], grads: list[Any]) -> list[Any]:
        """The gradients of the state and of the tensors from outside, given those of the last state."""
        sums: dict[Place, Any] = dict.fromkeys(self.outside)
        with same_random_numbers(self.rng), _bar(self.progress) as bar:
            if self.actions is None:  # a second pass through the same graph
                given = iter(first)
                self.sweep([next(given).detach() if t is _GIVEN else t for t in self.rest], known=True)
            actions, self.actions = self.actions, None
            assert actions is not None
            for action in actions:
                kind = type(action).__name__
                if kind in ("Copy", "Move"):
                    self._load(action.n, kind == "Move")
                elif kind == "Forward" and not action.write_adj_deps:
                    if action.write_ics:
                        self._keep(action.n0, action.storage)
                    with autograd.no_grad():
                        for _ in range(action.n0, action.n1):
                            self.state = self._result(self.step(rebuild(self.tree, iter(self.state))))
                elif kind == "Reverse" and action.n0 < self.n:
                    bar("steps backward", self.n - action.n0, self.n)
                    grads = self._reverse(action.n0, grads, sums)
        self.kept, self.state = {}, []
        return [*grads, *sums.values()]

    def recorded(self, first: list[Tensor], grads: list[Any]) -> list[Any]:
        """The same, where the gradients are themselves recorded: all steps in one graph."""
        views = [t.view_as(t) for t in first]  # so that the state has a place of its own in the graph
        given = iter(views)
        state = [next(given) if t is _GIVEN else t for t in self.rest]
        began = next_order()
        with same_random_numbers(self.rng):
            for _ in range(self.n):
                state = self._result(self.step(rebuild(self.tree, iter(state))))
        outs = [_inside(t, began) for t in state if _is_differentiable(t)]
        pairs = [(o, g) for o, g in zip(outs, grads, strict=True) if g is not None and o._requires_grad]
        ends = [edge_of(v)[:2] if v._requires_grad else None for v in views]
        if not pairs:
            return [None] * (len(ends) + len(self.outside))
        found = _cut([o for o, _ in pairs], set(), began)
        self._check_outside("a step", [place for place in found if place not in ends])
        gradients = self._grad(pairs, [GradientEdge(end, 0) for end in found.values()], create_graph=True)
        by = dict(zip(found, gradients, strict=True))
        return [by.get(place) if place else None for place in (*ends, *self.outside)]

    def _advance(self, known: bool) -> None:
        """One step of the forward pass. It is recorded, to see which tensors it uses."""
        if known:
            with autograd.no_grad():
                self.state = self._result(self.step(rebuild(self.tree, iter(self.state))))
            return
        given, outs, began = self._record()
        tracked = [_inside(t, began) for t in outs if isinstance(t, Tensor) and t._requires_grad]
        for place, end in _cut(tracked, _own(given), began).items():
            self.outside.setdefault(place, cast(Edge, end._edges[0]))
        self.state = [t.detach() if isinstance(t, Tensor) else t for t in outs]

    def _record(self) -> tuple[list[Any], list[Any], int]:
        """Take one step from the state, recorded. Returns the state that it got, the next one, and when it began."""
        given = [t.detach().requires_grad_() if _is_differentiable(t) else t for t in self.state]
        versions = [t._version if isinstance(t, Tensor) else 0 for t in given]
        began = next_order()
        with autograd.enable_grad():
            outs = self._result(self.step(rebuild(self.tree, iter(given))))
        for t, version in zip(given, versions, strict=True):
            if isinstance(t, Tensor) and t._version != version:
                raise RuntimeError(
                    errors.message(
                        "checkpoint_steps()",
                        expected="a step that leaves its state as it is",
                        found=f"a write in place to a {t.dtype} tensor of shape {list(t.shape)}",
                        do="return a new tensor",
                    )
                )
        return given, outs, began

    def _reverse(self, i: int, grads: list[Any], sums: dict[Place, Any]) -> list[Any]:
        """The gradients of the state before step i, given those after it; adds those from outside to `sums`."""
        given, outs, began = self._record()
        results = [_inside(t, began) for t in outs if _is_differentiable(t)]
        inputs = [t for t in given if _is_differentiable(t)]
        pairs = [(o, g) for o, g in zip(results, grads, strict=True) if g is not None and o._requires_grad]
        if not pairs:
            return [None] * len(inputs)
        found = _cut([o for o, _ in pairs], _own(given), began)
        self._check_outside(f"step {i}", list(found))
        gradients = self._grad(pairs, [*inputs, *(GradientEdge(end, 0) for end in found.values())])
        for place, g in zip(found, gradients[len(inputs) :], strict=True):
            if g is not None:
                sums[place] = g if sums[place] is None else sums[place] + g
        return list(gradients[: len(inputs)])

    @staticmethod
    def _grad(pairs: list[tuple[Tensor, Any]], inputs: list[Any], create_graph: bool = False) -> tuple[Any, ...]:
        """The gradients of results, each with its own, with respect to tensors and places."""
        results, grads = zip(*pairs, strict=True)
        return autograd.grad(results, inputs, grads, create_graph=create_graph, allow_unused=True) if inputs else ()

    def _check_outside(self, who: str, places: Sequence[Place]) -> None:
        if any(place not in self.outside for place in places):
            raise RuntimeError(
                errors.message(
                    f"checkpoint_steps(): {who} of the backward pass",
                    expected="that it uses the same tensors as in the forward pass",
                    found="another one that requires grad, which would get no gradient",
                    do="make tensors that require grad outside of the step, and let it depend on its state alone",
                )
            )

    def _result(self, out: Any) -> list[Any]:
        """The leaves of the next state, which nest as those of the state, with a Tensor where that has one."""
        expected, found = _nesting(self.tree), ""
        if _shape_of(out) != self.tree:
            found = _nesting(_shape_of(out))
        else:
            values = list(leaves(out))
            lost = [
                v for v, is_tensor in zip(values, self.tensors, strict=True) if is_tensor and not isinstance(v, Tensor)
            ]
            if not lost:
                return values
            expected, found = "with a Tensor where that has one", errors.describe(lost[0])
        raise RuntimeError(
            errors.message(
                "checkpoint_steps()",
                expected=f"a step that returns a state like the one that it gets, {expected}",
                found=found,
                do="return the next state",
            )
        )

    def _keep(self, number: int, storage: Any) -> None:
        """Keep the state, which is that before step `number`, as a snapshot."""
        if storage.name == "DISK" and self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="pullback-steps-", dir=self.directory))
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        path = self.folder / str(number) if storage.name == "DISK" else None
        rng = None if self.rng is None else states()
        self.kept[number] = _Snapshot(self.state, rng, path)

    def _load(self, number: int, last: bool) -> None:
        """Go on from a snapshot; drop it, if it is not used any more."""
        snapshot = self.kept.pop(number) if last else self.kept[number]
        self.state = snapshot.state(last)
        if snapshot.rng is not None:
            go_back(snapshot.rng)


class _Snapshot:
    """A state that is kept, with the state of the random numbers. path: its arrays are in this file."""

    def __init__(self, state: list[Any], rng: Any, path: Path | None) -> None:
        self.rng, self.path = rng, path
        self.leaves: list[Any] = state
        if path is not None:
            self.leaves = [_Absent(*t._data.shape, t._data.dtype) if isinstance(t, Tensor) else t for t in state]
            with path.open("wb") as file:
                for t in state:
                    if isinstance(t, Tensor):
                        np.ascontiguousarray(t._data).tofile(file)

    def state(self, last: bool) -> list[Any]:
        """The leaves of the state. last: the file is not needed any more."""
        if self.path is None:
            return self.leaves
        with self.path.open("rb") as file:
            found = [leaf.read(file) if isinstance(leaf, _Absent) else leaf for leaf in self.leaves]
        if last:
            self.path.unlink()
        return found


class _Absent:
    """A tensor of a snapshot that is on disk."""

    def __init__(self, *kind: Any) -> None:
        *self.shape, self.dtype = kind

    def read(self, file: Any) -> Tensor:
        """The tensor, from the place in the file where it begins."""
        return wrap(np.fromfile(file, self.dtype, math.prod(self.shape)).reshape(self.shape))


class _Boundary(Node):
    """Where the graph of a step ends: a node that passes a gradient on to what was there before the step."""

    __slots__ = ()

    def _run(self, g: Any, taped: bool, needed: Any, keep: bool) -> Sequence[Any]:
        return [g]


def _cut(outs: Sequence[Tensor], own: set[Any], began: int) -> dict[Place, _Boundary]:
    """Put a `_Boundary` at the end of each path from `outs` to what was there when the order of nodes was `began`.

    A pass to these boundaries does not enter the graph beyond. own: the leaves at which a path may end.
    """
    found: dict[Place, _Boundary] = {}
    seen = {edge_of(t)[0] for t in outs}
    stack = [node for node in seen if node._edges]
    while stack:
        node = stack.pop()
        edges = list(node._edges)
        for i, edge in enumerate(edges):
            if edge is None or edge[0] in own:
                continue
            following, nr = edge[0], edge[1]
            if following._edges and following._order < began:
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
                continue
            end = found.get((following, nr))
            if end is None:
                end = found[following, nr] = begin(_Boundary(), [edge])
                end._order = cast(int, began + 1 - 1 / (len(found) + 1))  # older than the step, newer than all before
            edges[i] = (end, 0, edge[2], edge[3])
        node._edges = edges
    return found


def _own(given: Sequence[Any]) -> set[Any]:
    return {leaf_edge(t)[0] for t in given if isinstance(t, Tensor) and t._requires_grad}


def _inside(t: Tensor, began: int) -> Tensor:
    """A result of a step, as that of a node of the step, even if it was there before."""
    if t._requires_grad and (t._edge is None or t._edge[0]._order > began):
        with autograd.enable_grad():
            return t.view_as(t)
    return t


def _shape_of(state: Any) -> Any:
    """A state with `...` for each leaf: two states nest alike if these are equal."""
    return rebuild(state, iter([...] * sum(1 for _ in leaves(state))))


def _nesting(tree: Any) -> str:
    return "one value" if tree is ... else repr(tree).replace("Ellipsis", "...")


def _schedule(n: int, memory: int, disk: int) -> Any:
    """The places of the snapshots, the steps and the reverse steps. The schedule is that of n + 1 steps: its first
    sweep ends where ours does, after the last state."""
    try:
        from checkpoint_schedules import MultistageCheckpointSchedule
    except ImportError as error:
        raise ImportError(
            "checkpoint_steps() needs the package checkpoint_schedules, which knows where snapshots are best.\n"
            "  What to do: pip install 'pullback[checkpoint]'."
        ) from error
    return MultistageCheckpointSchedule(n + 1, memory, disk)


errors.doors(globals(), "checkpoint_steps explain_steps")

"""`function`: a torch function as a node of our graph, with derivatives of every order in both modes.

The node keeps torch's graph of the call, and every derivative is a pass of torch through it: the vjp of a node is
a node again whose graph is that of the pass. So nothing is computed a second time, and what the function changes as it
runs (buffers, random numbers) changes once. Only `vmap` calls the function again, in `torch.func.vmap`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import _engine_run_backward

from ... import errors
from ...autograd.function import Function
from ...tensor.modes import LEVELS, thread
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Lifted, Tensor, wrap
from ..hosts import check_function, name_of
from .exchange import array_of, has_derivative, to_torch


def function(f: Callable[..., Any]) -> Callable[..., Any]:
    """A torch function as a function of Tensors.

    Args:
        f: takes and returns torch tensors, which may be nested in dicts, lists and tuples. Arguments that are no
            Tensors are handed on. It gets the Tensors of a call as torch tensors on the same memory.

    The function made is a node of the graph, with derivatives of every order in reverse and forward mode, by passes
    through torch's graph of the call; under `vmap`, `f` is called in `torch.func.vmap`.

    Raises:
        TypeError: `f` is a `torch.nn.Module` (see `Module`); a result that is no torch tensor, or lies on a device.
        RuntimeError: `f` reads a torch tensor that requires grad and is not an argument.

    >>> import torch, pullback
    >>> from pullback.bridge.torch import function
    >>> softsign = function(torch.nn.functional.softsign)
    >>> x = pullback.tensor([1.0, 3.0], requires_grad=True)
    >>> softsign(x).sum().backward()
    >>> x.grad
    tensor([0.2500, 0.0625])
    """
    where = "pullback.bridge.torch.function()"
    if isinstance(f, torch.nn.Module):
        raise TypeError(
            errors.message(
                where,
                expected="a function",
                found="a torch.nn.Module",
                do="write pullback.bridge.torch.Module(module), which has its parameters",
            )
        )
    check_function(where, f)
    return made_function(f, f"the torch function {name_of(f)}")


def made_function(f: Callable[..., Any], where: str, first: Sequence[Any] = ()) -> Callable[..., Any]:
    """`function`, for what was checked. first: torch tensors that stand for the first arguments."""

    def called(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and all([isinstance(a, Tensor) for a in args]):  # noqa: C419 - a list is quicker than a generator
            foreign = Foreign(f, where, first)
            return foreign.nested(apply(foreign, args))
        tree = (args, kwargs)
        flat = list(leaves(tree))
        places = [i for i, leaf in enumerate(flat) if isinstance(leaf, Tensor)]

        def of_tensors(*ts: Any) -> Any:
            filled = flat.copy()
            for i, t in zip(places, ts, strict=True):
                filled[i] = t
            given, named = rebuild(tree, iter(filled))
            return f(*given, **named)

        foreign = Foreign(of_tensors, where, first)
        return foreign.nested(apply(foreign, [flat[i] for i in places]))

    functools.update_wrapper(called, f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    return called


class Foreign:
    """A torch function that takes tensors and returns a tuple of them.

    tree: what it returned last, with its nesting. first: torch tensors that stand for the first arguments, with their
    own memory and counters of writes. enabled: whether anything can be recorded in the next call. records: whether its
    graph is wanted. tracked: which arguments it may then begin at. graph: that of the last call.
    """

    tree: Any = None
    enabled = records = False
    tracked: Sequence[bool] = ()
    graph: Graph | None = None

    def __init__(self, f: Callable[..., Any], where: str, first: Sequence[Any] = ()) -> None:
        self.f, self.where, self.first = f, where, first

    def flat(self, *ts: Any) -> tuple[Any, ...]:
        """Call the function."""
        self.tree = out = self.f(*ts)
        found = (out,) if isinstance(out, torch.Tensor) else tuple(leaves(out))
        for leaf in found:
            if not isinstance(leaf, torch.Tensor):
                raise TypeError(
                    errors.message(
                        f"{self.where} must return torch tensors, or dicts, lists and tuples of them",
                        found=errors.describe(leaf),
                        do="return torch.as_tensor(value) for a number",
                    )
                )
        return found

    def nested(self, flat: Sequence[Any]) -> Any:
        """The results as the function nests them."""
        return flat[0] if isinstance(self.tree, torch.Tensor) else rebuild(self.tree, iter(flat))

    def run(self, ps: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The results for Tensors."""
        ts = [t.detach() for t in self.first]
        ts += [to_torch(p) for p in ps[len(ts) :]]
        if self.records:
            for t, p, tracked in zip(ts, ps, self.tracked, strict=True):
                if tracked and p._data.dtype.kind in "fcV":
                    t.requires_grad = True
        versions = [t._version for t in ts]
        modes, before = thread.modes, torch.is_grad_enabled()
        ours = modes.grad_enabled
        try:
            modes.grad_enabled = self.enabled  # so that what requires grad is not converted in it without a word
            torch._C._set_grad_enabled(self.enabled)
            outs = self.flat(*ts)
        except RuntimeError as error:
            raise _written(error, self.where) from error
        finally:
            torch._C._set_grad_enabled(before)
            modes.grad_enabled = ours
            for t, n, p in zip(ts, versions, ps, strict=True):
                if t._version != n:
                    p._bump()
        _refuse_captured(outs, ts, self.where)
        if self.records:
            self.graph = Graph(ts, outs)
        return taken_over(outs, ps)

    def vjp(self, wanted: Sequence[bool], floats: Sequence[bool], graph: Graph | None) -> Foreign:
        """The function of the cotangents and the arguments whose results are the gradients of the wanted arguments."""

        def pulled(*values: Any) -> Any:
            gs, ts = values[: len(floats)], list(values[len(floats) :])
            _, pull = torch.func.vjp(self._part(ts, wanted, floats), *_picked(ts, wanted))
            return pull(_picked(gs, floats))

        if graph is None:
            return Foreign(pulled, self.where)

        def passed(vectors: Sequence[Any], create: bool, batch: int | None) -> Any:
            return graph.pull(_picked(vectors, floats), wanted, floats, create, batch)

        return Again(pulled, self.where, graph, passed)

    def jvp(self, wanted: Sequence[bool], floats: Sequence[bool], graph: Graph | None) -> Foreign:
        """The function of tangents of the wanted arguments and of the arguments, whose results are the tangents."""

        def pushed(*values: Any) -> Any:
            n = sum(wanted)
            tangents, ts = values[:n], list(values[n:])
            ts = [t.contiguous() if w else t for t, w in zip(ts, wanted, strict=True)]  # torch refuses repeated memory
            return torch.func.jvp(self._part(ts, wanted, floats), _picked(ts, wanted), tangents)[1]

        if graph is None:
            return Foreign(pushed, self.where)

        def passed(vectors: Sequence[Any], create: bool, batch: int | None) -> Any:
            return graph.push(vectors, wanted, floats, create, batch)

        return Again(pushed, self.where, graph, passed)

    def vmap(self, dims: Sequence[int | None], randomness: str, size: int) -> Foreign:
        """The function of batches, whose results have the batch along their first axis."""
        return Foreign(torch.func.vmap(self.flat, in_dims=tuple(dims), randomness=randomness), self.where)

    def _part(self, ts: list[Any], wanted: Sequence[bool], floats: Sequence[bool]) -> Callable[..., Any]:
        """The function of the wanted arguments alone, to the results that have derivatives."""

        def part(*chosen: Any) -> Any:
            parts = iter(chosen)
            return _picked(self.flat(*[next(parts) if w else t for t, w in zip(ts, wanted, strict=True)]), floats)

        return part


class Again(Foreign):
    """A derivative as a pass through torch's graph of a call: of its vectors, and of the arguments of the call.

    general: the same function without the graph, for batches of arguments. batch: the number of vectors in a batch, if
    only the vectors vary.
    """

    def __init__(
        self, general: Callable[..., Any], where: str, held: Graph, passed: Callable[..., Any], batch: int | None = None
    ) -> None:
        super().__init__(general, where)
        self.held, self.passed, self.batch = held, passed, batch

    def run(self, ps: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The results of the pass."""
        ins = self.held.ins
        vectors = [to_torch(p) for p in ps[: len(ps) - len(ins)]]
        for v in vectors:
            if self.records and has_derivative(v):
                v.requires_grad_()
        self.tree = found = tuple(self.passed(vectors, self.records, self.batch))
        if self.records:
            self.graph = Graph([*vectors, *ins], found)
        return taken_over(found, ps)

    def vmap(self, dims: Sequence[int | None], randomness: str, size: int) -> Foreign:
        """A pass for all vectors, if the arguments of the call are the same for each."""
        n = len(dims) - len(self.held.ins)
        if self.batch is not None or any(d is not None for d in dims[n:]):
            return super().vmap(dims, randomness, size)

        def passed(vectors: Sequence[Any], create: bool, batch: int | None) -> Any:
            moved = [
                v.expand(size, *v.shape) if d is None else v.movedim(d, 0)
                for v, d in zip(vectors, dims[:n], strict=True)
            ]
            return self.passed(moved, create, size)

        general = super().vmap(dims, randomness, size)
        return Again(general.flat, self.where, self.held, passed, size)


class Graph:
    """torch's graph of a call: the tensors that it begins at, and the results."""

    __slots__ = ("ins", "outs")

    def __init__(self, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        self.ins, self.outs = ins, outs

    def pull(
        self, gs: Sequence[Any], wanted: Sequence[bool], floats: Sequence[bool], create: bool, batch: int | None
    ) -> list[Any]:
        """The gradients of the wanted arguments, from the cotangents of the results that have derivatives."""
        return _gradients(_picked(self.outs, floats), _picked(self.ins, wanted), gs, create, batch)

    def push(
        self, tangents: Sequence[Any], wanted: Sequence[bool], floats: Sequence[bool], create: bool, batch: int | None
    ) -> list[Any]:
        """The tangents of the results: the vjp is linear in the cotangents, and its own vjp is the jvp."""
        outs = _picked(self.outs, floats)
        at = [torch.zeros_like(o, requires_grad=True) for o in outs]
        pulled = _gradients(outs, _picked(self.ins, wanted), at, True, None)
        return _gradients(pulled, at, tangents, create, batch)


def _gradients(
    outs: Sequence[Any], ins: Sequence[Any], vectors: Sequence[Any], create: bool, batch: int | None
) -> list[Any]:
    """The gradients by a pass of torch; zeros where a result does not depend on an argument."""
    if len(outs) != 1 or not outs[0].requires_grad:
        pairs = [(o, v) for o, v in zip(outs, vectors, strict=True) if o.requires_grad]
        outs, vectors = [o for o, _ in pairs], [v for _, v in pairs]
    found: Sequence[Any] = [None] * len(ins)
    if outs and ins:
        if batch is None:  # as torch.autograd.grad calls it, which looks at the arguments for half of a small pass
            found = _engine_run_backward(
                tuple(outs), tuple(vectors), True, create, tuple(ins), allow_unreachable=True, accumulate_grad=False
            )
        else:
            found = torch.autograd.grad(
                outs, ins, vectors, retain_graph=True, create_graph=create, allow_unused=True, is_grads_batched=True
            )
    lead = () if batch is None else (batch,)
    return [g if g is not None else torch.zeros(lead + t.shape, dtype=t.dtype) for g, t in zip(found, ins, strict=True)]


def _picked(values: Sequence[Any], which: Sequence[bool]) -> tuple[Any, ...]:
    if False not in which:  # most often
        return tuple(values)
    return tuple([v for v, w in zip(values, which, strict=True) if w])


def taken_over(outs: Sequence[Any], ps: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Tensors on the memory of torch's results; copies where that is shared with arguments or other results."""
    taken = [p._data for p in ps]
    made = []
    for o in outs:
        a = array_of(o.detach())
        for b in taken:
            if np.may_share_memory(a, b):
                a = a.copy()
                break
        taken.append(a)
        made.append(wrap(a))
    return tuple(made)


def _written(error: RuntimeError, where: str) -> RuntimeError:
    """torch's error of a write to an argument that is differentiated, with what to do; another error as it is."""
    if "a leaf Variable that requires grad is being used in an in-place operation" not in str(error):
        return error
    return RuntimeError(
        errors.message(
            f"{where} writes to an argument that requires grad: {error}",
            do="let it write to a clone(), or make torch modules with inplace=False",
        )
    )


def _refuse_captured(outs: Sequence[Any], ts: Sequence[Any], where: str) -> None:
    """Refuse a function that reads, besides its arguments, torch tensors that require grad."""
    seen: set[Any] = set()
    own = {id(t) for t in ts}
    captured = False
    stack = []
    for o in outs:
        if o.grad_fn is not None:
            stack.append(o.grad_fn)
        elif o.requires_grad:
            captured = captured or id(o) not in own
    while stack and not captured:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            following = node.next_functions
            for further, _ in following:
                if further is not None:
                    stack.append(further)
            if not following:
                leaf = getattr(node, "variable", None)
                captured = leaf is not None and id(leaf) not in own
    if captured:
        raise RuntimeError(
            errors.message(
                f"{where} reads a torch tensor that requires grad and is not among its arguments: it would get no "
                "gradient",
                do="give the tensor as an argument, wrap a torch.nn.Module with pullback.bridge.torch.Module, or read "
                "its detach()",
            )
        )


# The node -------------------------------------------------------------------------------------------------------------


def apply(foreign: Foreign, ps: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The results of a foreign function, with their places in our graph."""
    lifted = LEVELS.n > 0 and any(isinstance(p, Lifted) for p in ps)
    foreign.enabled = lifted or thread.modes.grad_enabled
    foreign.tracked = tracked = [lifted or p._requires_grad for p in ps]
    foreign.records = lifted or (foreign.enabled and True in tracked)
    found = (TransformedTorchFunction if lifted else TorchFunction).apply(foreign, *ps)
    return found if type(found) is tuple else (found,)


class TorchFunction(Function):
    """A call of a torch function; its derivatives are calls of the same kind."""

    @staticmethod
    def forward(ctx: Any, foreign: Foreign, *ps: Tensor) -> Any:
        """Call it, and keep torch's graph and the arguments."""
        outs = foreign.run(ps)
        _keep(ctx, foreign, ps, outs)
        return outs if len(outs) > 1 else outs[0]

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        """A pass through torch's graph; one that is recorded or batched is a call of its own."""
        wanted = ctx.needs_input_grad[1:]
        ps, graph = ctx.saved_tensors, ctx.graph
        if graph is not None:
            for version, n, t in ctx.counts:
                if version.n != n:  # we wrote to a result; torch refuses if its graph needs it
                    torch.autograd.graph.increment_version(t)
        if graph is None or thread.modes.grad_enabled or (LEVELS.n and any(isinstance(g, Lifted) for g in gs)):
            found = apply(ctx.foreign.vjp(wanted, ctx.floats, graph), [*gs, *ps])
        else:
            vectors = [to_torch(g) for g, has in zip(gs, ctx.floats, strict=True) if has]
            found = taken_over(graph.pull(vectors, wanted, ctx.floats, False, None), gs)
        each = iter(found)
        return (None, *[next(each) if w else None for w in wanted])


class TransformedTorchFunction(TorchFunction):
    """The same where a transform runs, which needs the two halves of a forward apart."""

    @staticmethod
    def forward(foreign: Foreign, *ps: Tensor) -> Any:  # type: ignore[override]
        """Call it."""
        return foreign.run(ps)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep torch's graph, and the arguments."""
        foreign, *ps = inputs
        ctx.save_for_forward(*ps)
        _keep(ctx, foreign, ps, output)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Tensor | None) -> Any:
        """A call of the jvp."""
        ps = ctx.saved_tensors
        wanted = [t is not None and p._data.dtype.kind in "fcV" for t, p in zip(tangents, ps, strict=True)]
        found = iter(apply(ctx.foreign.jvp(wanted, ctx.floats, ctx.graph), [*_picked(tangents, wanted), *ps]))
        return tuple(next(found) if has else None for has in ctx.floats)

    @staticmethod
    def vmap(info: Any, in_dims: Any, foreign: Foreign, *ps: Tensor) -> Any:
        """A call for the whole batch."""
        found = apply(foreign.vmap(in_dims[1:], info.randomness, info.batch_size), ps)
        return found, (0,) * len(found)


def _keep(ctx: Any, foreign: Foreign, ps: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
    """Keep what the derivatives of a call need."""
    ctx.save_for_backward(*ps)
    ctx.foreign, ctx.graph = foreign, foreign.graph
    ctx.floats = [o._data.dtype.kind in "fcV" for o in outs]
    if ctx.graph is not None:
        constant = [o for o, t in zip(outs, ctx.graph.outs, strict=True) if not t.requires_grad]
        if constant:
            ctx.mark_non_differentiable(*constant)
        ctx.counts = [(v := o._share_version(), v.n, t) for o, t in zip(outs, ctx.graph.outs, strict=True)]

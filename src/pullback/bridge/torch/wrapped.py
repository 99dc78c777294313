"""`wrap`: a function of ours as a function of torch tensors, with derivatives of every order in both modes.

A call takes one of three ways. Without gradients the function is simply run. In reverse mode `Kept` runs it recorded
and keeps our graph for first derivatives. Under torch's transforms (`torch.func`, forward mode), and where memory is
saved (`torch.utils.checkpoint`), `Recomputed` keeps the arguments alone: its rules call the derivatives of the
function, which are functions of the same kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C import (
    _get_tracing_state,
    _len_torch_dispatch_stack,
    _vmapmode_decrement_nesting,
    _vmapmode_increment_nesting,
)
from torch._C._autograd import _get_current_graph_task_keep_graph, _top_saved_tensors_default_hooks
from torch._C._functorch import is_legacy_batchedtensor, peek_interpreter_stack
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from ... import errors, func
from ...autograd.engine import execute
from ...autograd.grad_mode import enable_grad, no_grad
from ...autograd.node import edge_of
from ...ops.make.generators import go_to, position
from ...tensor.modes import thread
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Tensor
from ...tensor.tensor import wrap as wrap_array
from ..hosts import check_function, name_of, refuse_captured, same_numbers, tensors_in
from .exchange import all_to_torch, array_of, has_derivative, to_pullback


class Foreign:
    """A function of ours that takes tensors and returns a tuple of them; its derivatives are of the same kind.

    tree: what it returned last, with its nesting. start, end: the positions of the random stream at the beginning and
    at the end of each run; None: wherever it is. read_only: whether it may not write to its arguments, because it is
    run again, or its schema says so. primals: in a derivative, the numbers of the arguments that are those of the
    function itself.
    """

    tree: Any = None
    start: Any = None
    end: Any = None
    primals: Sequence[int] | None = None

    def __init__(self, f: Callable[..., Any], where: str, read_only: bool = False) -> None:
        self.f, self.where, self.read_only = f, where, read_only

    def given(self, x: Any) -> Tensor:
        """The Tensor on the memory of a torch tensor outside of a graph."""
        a = array_of(x)
        if self.read_only:
            a = a.view()  # torch itself gives one array again
            a.flags.writeable = False
        made = wrap_array(a)
        made._version_of = None  # its writes are counted, in inference mode too
        return made

    def flat(self, *xs: Tensor) -> tuple[Tensor, ...]:
        """Call the function, every time with the same random numbers if `start` is set."""
        if self.start is None:
            out = self.f(*xs)
        else:
            with same_numbers(self.start):
                out = self.f(*xs)
                self.end = position()
        self.tree = out
        return (out,) if type(out) is Tensor else tensors_in(out, self.where)

    def nested(self, flat: Sequence[Any]) -> Any:
        """The results as the function nests them."""
        return flat[0] if isinstance(self.tree, Tensor) else rebuild(self.tree, iter(flat))

    def vjp(self, wanted: Sequence[bool], floats: Sequence[bool]) -> Foreign:
        """The function of the cotangents and the arguments whose results are the gradients of the wanted arguments."""

        def pulled(*values: Tensor) -> tuple[Tensor, ...]:
            cotangents, xs = values[: len(floats)], list(values[len(floats) :])
            _, pull = func.vjp(self._part(xs, wanted, floats), *_picked(xs, wanted))
            found: tuple[Tensor, ...] = pull(_picked(cotangents, floats))
            return found

        return self._derivative(pulled, len(floats), len(wanted))

    def jvp(self, wanted: Sequence[bool], floats: Sequence[bool]) -> Foreign:
        """The function of the arguments and of tangents of the wanted ones whose results are the tangents."""

        def pushed(*values: Tensor) -> tuple[Tensor, ...]:
            xs, tangents = list(values[: len(wanted)]), values[len(wanted) :]
            found: tuple[Tensor, ...] = func.jvp(self._part(xs, wanted, floats), _picked(xs, wanted), tangents)[1]
            return found

        return self._derivative(pushed, 0, len(wanted))

    def _derivative(self, f: Callable[..., Any], lead: int, count: int) -> Foreign:
        """A derivative, whose arguments from number `lead` on are the `count` ones of this function."""
        made = Foreign(f, self.where, read_only=True)
        made.primals = [lead + i for i in (range(count) if self.primals is None else self.primals)]
        return made

    def vmap(self, dims: Sequence[int | None], randomness: str) -> Foreign:
        """The function of batches, whose results have the batch along their first axis."""
        if self.primals is not None and all(dims[i] is None for i in self.primals):
            randomness = "same"  # the function itself was not batched
        made = Foreign(func.vmap(self.flat, in_dims=tuple(dims), randomness=randomness), self.where, read_only=True)
        made.primals = self.primals
        return made

    def _part(self, xs: list[Any], wanted: Sequence[bool], floats: Sequence[bool]) -> Callable[..., tuple[Tensor, ...]]:
        """The function of the wanted arguments alone, to the results that have derivatives."""

        def part(*chosen: Tensor) -> tuple[Tensor, ...]:
            parts = iter(chosen)
            return _picked(self.flat(*[next(parts) if w else x for x, w in zip(xs, wanted, strict=True)]), floats)

        return part


def _picked(values: Sequence[Any], which: Sequence[bool]) -> tuple[Any, ...]:
    return tuple(v for v, w in zip(values, which, strict=True) if w)


# The three ways -------------------------------------------------------------------------------------------------------


def is_traced() -> bool:
    """Whether torch records the operations of a program (`torch.fx`, `torch.jit.trace`), which sees none of ours."""
    return (_len_torch_dispatch_stack() > 0 and get_proxy_mode() is not None) or _get_tracing_state() is not None


def call(foreign: Foreign, xs: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a foreign function for torch tensors, with their places in torch's graph."""
    found: tuple[Any, ...]
    if is_traced():
        raise RuntimeError(
            errors.message(
                f"{foreign.where} is called while torch traces a program, which would keep its results as constants",
                do="make it with pullback.bridge.torch.op, whose calls are traced; in torch.func, use jvp instead of "
                "linearize",
            )
        )
    for x in xs:
        if is_legacy_batchedtensor(x):
            return _in_old_batch(foreign, xs)
    if (
        peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or _top_saved_tensors_default_hooks(True) is not None
    ):
        if foreign.start is None:
            foreign.start = position()
        found = Recomputed.apply(foreign, *xs)
        if foreign.end is not None:
            go_to(foreign.end)
        return found
    if not torch.is_grad_enabled():
        with no_grad():
            return run(foreign, xs)
    for x in xs:
        if x.requires_grad:
            found = Kept.apply(foreign, *xs)
            return found
    return run(foreign, xs)


def run(foreign: Foreign, xs: Sequence[Any]) -> tuple[Any, ...]:
    """Run the function without a graph."""
    given = [foreign.given(x.detach()) for x in xs]
    try:
        outs = foreign.flat(*given)
    finally:
        count_writes(given, xs)
    refuse_captured(outs, given, foreign.where)
    return all_to_torch(outs, given)


def count_writes(given: Sequence[Tensor], xs: Sequence[Any]) -> None:
    """Tell torch's counters which arguments the function has written to."""
    for p, x in zip(given, xs, strict=True):
        version = p._version_of
        if version is not None and version.n and not x.is_inference():
            torch.autograd.graph.increment_version(x)


def _in_old_batch(foreign: Foreign, xs: Sequence[Any]) -> tuple[Any, ...]:
    """The results where torch's first vmap runs, by which it batches backward passes (`is_grads_batched`)."""
    level = _vmapmode_increment_nesting() - 1
    _vmapmode_decrement_nesting()
    if level > 1:
        raise RuntimeError(
            errors.message(
                f"{foreign.where} is called in nested batches of torch's older vmap", do="use torch.func.vmap instead"
            )
        )
    batched = [is_legacy_batchedtensor(x) for x in xs]
    inner = [torch._remove_batch_dim(x, level, 1, 0) if b else x for x, b in zip(xs, batched, strict=True)]
    found = call(foreign.vmap([0 if b else None for b in batched], "error"), inner)
    return tuple(torch._add_batch_dim(o, 0, level) for o in found)


class Kept(torch.autograd.Function):
    """A node of torch's graph that keeps our graph of the call; second derivatives compute it again."""

    @staticmethod
    def forward(ctx: Any, foreign: Foreign, *xs: Any) -> tuple[Any, ...]:
        """Run the function recorded."""
        aliases, given = [], []
        ctx.wanted = ctx.needs_input_grad[1:]
        for x, wanted in zip(xs, ctx.wanted, strict=True):
            alias = x.detach()
            p = foreign.given(alias)
            p._requires_grad = wanted
            aliases.append(alias)
            given.append(p)
        ctx.start = position()
        try:
            if thread.modes.grad_enabled:
                outs = foreign.flat(*given)
            else:
                with enable_grad():
                    outs = foreign.flat(*given)
        finally:
            count_writes(given, xs)
        refuse_captured(outs, given, foreign.where)
        made = all_to_torch(outs, given)
        constant = [t for t, o in zip(made, outs, strict=True) if not o._requires_grad]
        if constant:
            ctx.mark_non_differentiable(*constant)
        ctx.save_for_backward(*xs)
        for t in made:
            aliases.append(t.detach())
        ctx.foreign = foreign
        ctx.kept = given, outs, aliases, [t._version for t in aliases]
        return made

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        """The gradients by our pass; where they are recorded or batched, by a call of the vjp."""
        wanted = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled() or peek_interpreter_stack() is not None or any(map(is_legacy_batchedtensor, gs)):
            ctx.foreign.start = ctx.start
            found = iter(
                call(
                    ctx.foreign.vjp(wanted, [g is not None and has_derivative(g) for g in gs]),
                    [*gs, *ctx.saved_tensors],
                )
            )
            return (None, *[next(found) if w else None for w in wanted])
        if ctx.kept is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                f"already been freed): {ctx.foreign.where} dropped its graph when the first backward had run.\n"
                "  What to do: Specify retain_graph=True in the first backward() or grad()."
            )
        given, outs, aliases, versions = ctx.kept
        for t, version, p in zip(aliases, versions, [*given, *outs], strict=True):
            if t._version != version:
                p._bump()  # our pass refuses if it needs what torch has written to
        keep = _get_current_graph_task_keep_graph()
        if not keep:
            ctx.kept = None
        pairs = [(edge_of(o), to_pullback(g)) for o, g in zip(outs, gs, strict=True) if o._requires_grad]
        inputs = [edge_of(p)[0] for p, w in zip(given, wanted, strict=True) if w]
        towards = None if wanted == ctx.wanted else set(inputs)  # all that the graph leads to, or a part
        roots = [(edge, seed._data) for edge, seed in pairs]
        arrived = execute(roots, keep=keep, taped=False, towards=towards, accumulate=False)
        grads = {node: g if isinstance(g, Tensor) else wrap_array(g) for node, g in arrived.items()}
        made = dict(zip(grads, all_to_torch(list(grads.values()), [seed for _, seed in pairs]), strict=True))
        each = iter(inputs)
        return (None, *[made.get(next(each)) if w else None for w in wanted])


class Recomputed(torch.autograd.Function):
    """A node that keeps the arguments alone; each of its rules is a call of a derivative, a foreign function again."""

    @staticmethod
    def forward(foreign: Foreign, *xs: Any) -> tuple[Any, ...]:
        """Run the function, which is run again."""
        foreign.read_only = True
        return run(foreign, xs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the arguments."""
        ctx.foreign, *xs = inputs
        ctx.save_for_backward(*xs)
        ctx.save_for_forward(*xs)
        ctx.floats = [has_derivative(o) for o in output]

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        """A call of the vjp."""
        wanted = ctx.needs_input_grad[1:]
        found = iter(call(ctx.foreign.vjp(wanted, ctx.floats), [*gs, *ctx.saved_tensors]))
        return (None, *[next(found) if w else None for w in wanted])

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        """A call of the jvp."""
        xs = ctx.saved_tensors
        wanted = [t is not None for t in tangents]
        found = iter(call(ctx.foreign.jvp(wanted, ctx.floats), [*xs, *_picked(tangents, wanted)]))
        return tuple(next(found) if has else None for has in ctx.floats)

    @staticmethod
    def vmap(info: Any, in_dims: Any, foreign: Foreign, *xs: Any) -> Any:
        """A call for the whole batch."""
        found = call(foreign.vmap(in_dims[1:], info.randomness), xs)
        return found, (0,) * len(found)


# The front ------------------------------------------------------------------------------------------------------------


def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours as a function of torch tensors.

    Args:
        f: takes and returns Tensors, which may be nested in dicts, lists and tuples: a plain function, the `apply` of a
            `Function`, a compiled function. Arguments that are no tensors are handed on. It gets the torch tensors of a
            call as Tensors on the same memory, of the same dtype; its results come back on their own memory.

    The function made has derivatives of every order: `torch.autograd` in reverse and forward mode, the transforms of
    `torch.func`, `torch.utils.checkpoint`. First derivatives in reverse mode use the graph of the call. All others run
    `f` again, with the same random numbers. `torch.compile` leaves it out of its graph; for a whole graph, see `op`.

    Raises:
        TypeError: a tensor on a device, sparse, or of a dtype that we do not have; a result that is no Tensor.
        RuntimeError: `f` reads a tensor that requires grad and is not an argument.

    >>> import torch, pullback
    >>> from pullback.bridge.torch import wrap
    >>> sinc = wrap(lambda x: pullback.sin(x) / x)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> sinc(x).sum().backward()
    >>> x.grad
    tensor([-0.3012, -0.4354])

    See https://docs.pytorch.org/docs/stable/notes/extending.html.
    """
    check_function("pullback.bridge.torch.wrap()", f)
    return made_wrapper(f)


def made_wrapper(f: Callable[..., Any], read_only: bool = False) -> Callable[..., Any]:
    """`wrap`, for what was checked."""
    where = f"the function {name_of(f)}"

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return apart(*args, **kwargs)
        if not kwargs and all([isinstance(a, torch.Tensor) for a in args]):  # noqa: C419 - a list is quicker
            foreign, xs = Foreign(f, where, read_only), list(args)
        else:
            of_tensors, xs = _with_constants(f, args, kwargs)
            foreign = Foreign(of_tensors, where, read_only)
        return foreign.nested(call(foreign, xs))

    functools.update_wrapper(wrapped, f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    apart = torch.compiler.disable(wrapped, reason=_APART)
    return wrapped


_APART = "a function of pullback.bridge.torch.wrap is run by itself; one of pullback.bridge.torch.op stays in the graph"


def _with_constants(f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The function of the tensors among the arguments alone, and these."""
    tree = (args, kwargs)
    flat = list(leaves(tree))
    places = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]

    def of_tensors(*xs: Tensor) -> Any:
        filled = flat.copy()
        for i, x in zip(places, xs, strict=True):
            filled[i] = x
        given, named = rebuild(tree, iter(filled))
        return f(*given, **named)

    return of_tensors, [flat[i] for i in places]

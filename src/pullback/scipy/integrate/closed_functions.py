"""A function of Tensors as one node whose derivatives are nodes of the same kind, and roots of such functions.

`Closed` is a function of its inputs and of tensors that it reads by itself (`captured`). Its vjp and its jvp are closed
functions again, so `call` gives every order in both modes, and `vmap` by one call for each sample. `root` is the
solution of ``residual(z, *inputs) = 0`` as a function of the inputs, by the implicit function theorem.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...autograd.function import Function
from ...autograd.grad_mode import enable_grad, no_grad
from ...func.forward import jvp
from ...func.reverse import Tracked, vjp
from ...func.vectorize import vmap
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...ops.shape.reshape import reshape
from ...tensor.modes import thread
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import array_of

_PASS: contextvars.ContextVar[object] = contextvars.ContextVar("the innermost call of gradients()")


def gradients(
    outs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    read: Sequence[Tensor],
    cotangents: Sequence[Any],
    create_graph: bool = False,
    keep: bool = False,
) -> list[Any]:
    """The gradients with respect to inputs and to tensors that a function reads, None where there is none.

    A tensor that it reads may be computed from another one that it reads. The second one's gradient is the direct one
    alone, because the first one's is sent on by its own node: a hook keeps it from being counted twice.
    """
    pairs = [(o, c) for o, c in zip(outs, cotangents, strict=True) if o.requires_grad]
    if not pairs or not (inputs or read):
        return [None] * (len(inputs) + len(read))
    inner = [i for i, r in enumerate(read) if r.grad_fn is not None] if len(read) > 1 else []
    kept: dict[int, Any] = {}
    own = _PASS.set(kept)
    handles = [read[i].register_hook(functools.partial(_keep, kept, i)) for i in inner]
    try:
        found = autograd.grad(
            [o for o, _ in pairs],
            [*inputs, *read],
            [c for _, c in pairs],
            retain_graph=keep or create_graph or bool(inner),
            create_graph=create_graph,
            allow_unused=True,
        )
    finally:
        for handle in handles:
            handle.remove()
        _PASS.reset(own)
    return [kept.get(i - len(inputs), g) for i, g in enumerate(found)] if kept else list(found)


def _keep(kept: dict[int, Any], number: int, g: Any) -> Any:
    """A hook that keeps a gradient and sends on zeros, in its own pass alone: not in those within it."""
    if _PASS.get() is not kept:
        return g
    kept[number] = g
    return g * 0


class Closed:
    """A function of Tensors, to a tuple of Tensors.

    read: the tensors besides its inputs that its results depend on. values: another way to the same values, on Tensors
    of plain arrays, where nothing is recorded.
    """

    __slots__ = ("fun", "read", "values")

    def __init__(
        self,
        fun: Callable[..., tuple[Tensor, ...]],
        read: Sequence[Tensor] = (),
        values: Callable[..., tuple[Tensor, ...]] | None = None,
    ) -> None:
        self.fun, self.read, self.values = fun, tuple(read), values or fun

    def vjp(self, wanted: Sequence[bool], outputs: Sequence[bool]) -> Closed:
        """The function of cotangents and inputs whose results are the gradients of what is wanted.

        wanted: of the inputs, and then of what it reads. outputs: those that have a cotangent.
        """
        own = wanted[: len(wanted) - len(self.read)]
        read = [r for r, w in zip(self.read, wanted[len(own) :], strict=True) if w]

        def pulled(*values: Tensor) -> tuple[Tensor, ...]:
            gs, xs = values[: sum(outputs)], values[sum(outputs) :]
            recorded = thread.modes.grad_enabled
            tracked = Tracked([x for x, w in zip(xs, own, strict=True) if w], "vjp")
            with enable_grad():
                outs = self.fun(*_filled(xs, own, tracked.aliases))
                tracked.close()
                outs = tuple(o for o, has in zip(outs, outputs, strict=True) if has)
                found = gradients(outs, tracked.aliases, read, gs, recorded)
            like = [*tracked.aliases, *read]
            every: list[Any] = [np.zeros_like(a.detach()) if g is None else g for g, a in zip(found, like, strict=True)]
            return tuple(every)

        return Closed(pulled, self.read)

    def jvp(self, wanted: Sequence[bool], outputs: Sequence[bool]) -> Closed:
        """The function of the tangents of the wanted inputs and of the inputs whose results are the tangents."""

        def pushed(*values: Tensor) -> tuple[Tensor, ...]:
            ts, xs = values[: sum(wanted)], values[sum(wanted) :]
            own = wanted[: len(xs)]

            def part(*chosen: Tensor) -> tuple[Tensor, ...]:
                outs = self.fun(*_filled(xs, own, chosen))
                return tuple(o for o, has in zip(outs, outputs, strict=True) if has)

            return jvp(part, tuple(x for x, w in zip(xs, own, strict=True) if w), tuple(ts))[1]

        return Closed(pushed, self.read)


def _filled(xs: Sequence[Any], which: Sequence[bool], chosen: Sequence[Any]) -> list[Any]:
    """The inputs, with the chosen ones in their places."""
    parts = iter(chosen)
    return [next(parts) if w else x for x, w in zip(xs, which, strict=True)]


def given(values: Sequence[Any]) -> list[Any]:
    """Those that are not None."""
    return [v for v in values if v is not None]


def call(closed: Closed, *xs: Any) -> tuple[Any, ...]:
    """The results of a closed function as one node."""
    found = Call.apply(closed, *xs, *closed.read)
    return found if type(found) is tuple else (found,)


class Call(Function):
    """A call of a closed function. Its inputs are followed by what the function reads."""

    @staticmethod
    def forward(closed: Closed, *xs: Tensor) -> Any:
        """Call it; nothing is recorded, and no input leads to a tensor that the function reads."""
        with no_grad():
            outs = closed.values(*[x.detach() for x in xs[: len(xs) - len(closed.read)]])
        return tuple([wrap(np.array(array_of(o))) for o in outs])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the inputs."""
        ctx.closed, *xs = inputs
        ctx.save_for_backward(*xs)
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(*xs)
        ctx.floats = tuple(o.dtype.is_floating_point or o.dtype.is_complex for o in output)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        """A call of the vjp."""
        wanted = ctx.needs_input_grad[1:]
        return None, *pulled_back(ctx.closed, wanted, ctx.floats, gs, ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, _: Any, *ts: Any) -> Any:
        """A call of the jvp."""
        return pushed_forward(ctx.closed, ctx.floats, ts, ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, in_dims: Any, closed: Closed, *xs: Tensor) -> Any:
        """One call for each sample."""
        return each(info.batch_size, in_dims[1:], xs, lambda *x: Call.apply(closed, *x))


def pulled_back(closed: Closed, wanted: Sequence[bool], floats: Sequence[bool], gs: Any, xs: Any) -> list[Any]:
    """The gradients of inputs and of what is read, from the cotangents `gs` of which some may be None."""
    outputs = tuple(f and g is not None for f, g in zip(floats, gs, strict=True))
    if not any(outputs) or not any(wanted):
        return [None] * len(wanted)
    own = xs[: len(xs) - len(closed.read)]
    grads = call(closed.vjp(wanted, outputs), *_picked(gs, outputs), *own)
    return _filled([None] * len(wanted), wanted, grads)


def pushed_forward(closed: Closed, floats: Sequence[bool], ts: Any, xs: Any) -> tuple[Any, ...]:
    """The tangents of the results, from those of inputs of which some may be None."""
    wanted = tuple(t is not None for t in ts)
    if not any(floats):
        return (None,) * len(floats)
    own = xs[: len(xs) - len(closed.read)]
    found = call(closed.jvp(wanted, floats), *given(ts), *own)
    return tuple(_filled([None] * len(floats), floats, found))


def _picked(values: Sequence[Any], which: Sequence[bool]) -> list[Any]:
    return [v for v, w in zip(values, which, strict=True) if w]


def each(size: int, dims: Sequence[int | None], xs: Sequence[Tensor], run: Callable[..., Any]) -> Any:
    """The results for each sample, stacked along a new first axis, and where that is."""
    moved = [x if d is None else movedim(x, d, 0) for x, d in zip(xs, dims, strict=True)]
    outs = [run(*[x if d is None else x[i] for x, d in zip(moved, dims, strict=True)]) for i in range(size)]
    if isinstance(outs[0], tuple):
        return tuple(stack(list(parts)) for parts in zip(*outs, strict=True)), (0,) * len(outs[0])
    return stack(outs), 0


# Roots ----------------------------------------------------------------------------------------------------------------


def root(residual: Closed, find: Callable[..., Any], *xs: Any) -> Any:
    """The solution z, an array of one axis, of ``residual(z, *xs) = 0``, with its derivatives of every order.

    find: the function from the arrays `xs` to the solution. By the implicit function theorem
    ``dz = -(dr/dz)^-1 (dr/dx) dx``; the Jacobian is dense.
    """
    return Root.apply(residual, find, *xs, *residual.read)


def _jacobian(residual: Closed, z: Any, xs: Sequence[Any]) -> Any:
    """The Jacobian with respect to z: a row for each residual, all of them in one batch."""

    def rows(z: Any, *xs: Any) -> tuple[Any]:
        _, pull = vjp(lambda z: residual.fun(z, *xs)[0], z)
        return (np.conj(vmap(pull)(wrap(np.eye(z.shape[0], dtype=z._data.dtype)))[0]),)

    return call(Closed(rows, residual.read), z, *xs)[0]


class Root(Function):
    """The root of a closed function of one array and of further inputs."""

    @staticmethod
    def forward(residual: Closed, find: Callable[..., Any], *xs: Tensor) -> Any:
        """Find it."""
        return wrap(np.array(find(*[array_of(x) for x in xs[: len(xs) - len(residual.read)]])))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the inputs and the root."""
        ctx.residual, _, *xs = inputs
        ctx.save_for_backward(output, *xs)
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(output, *xs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """Solve the adjoint system, and send the solution through the vjp of the residual."""
        if g is None:
            return (None,) * len(ctx.needs_input_grad)
        z, *every = ctx.saved_tensors
        residual = ctx.residual
        xs = every[: len(every) - len(residual.read)]
        adjoint = np.linalg.solve(np.conj(np.transpose(_jacobian(residual, z, xs))), -g)
        wanted = (False, *ctx.needs_input_grad[2:])
        return None, None, *pulled_back(residual, wanted, (True,), (adjoint,), (z, *every))[1:]

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, *ts: Any) -> Any:
        """Solve the linearised system."""
        z, *every = ctx.saved_tensors
        residual = ctx.residual
        xs = every[: len(every) - len(residual.read)]
        (moved,) = pushed_forward(residual, (True,), (None, *ts), (z, *every))
        return np.linalg.solve(_jacobian(residual, z, xs), -moved)

    @staticmethod
    def vmap(info: Any, in_dims: Any, residual: Closed, find: Any, *xs: Tensor) -> Any:
        """One root for each sample."""
        return each(info.batch_size, in_dims[2:], xs, lambda *x: Root.apply(residual, find, *x))


def column(t: Any) -> Any:
    """A tensor with one axis."""
    return reshape(t, (-1,))


__all__ = ["Closed", "call", "column", "each", "given", "gradients", "pulled_back", "pushed_forward", "root"]

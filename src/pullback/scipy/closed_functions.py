"""A function of Tensors as one node whose derivatives are nodes of the same kind, and roots of such functions.

The vjp and the jvp of a `Closed` function are closed functions again, so `call` gives every order in both modes, and
`vmap` by one call for each sample. `root` is the solution of ``residual(z, *inputs) = 0`` as a function of the inputs,
by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import autograd
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ..func.forward import jvp
from ..func.reverse import Tracked, vjp
from ..func.vectorize import vmap
from ..ops.elementwise.complex import view_as_complex, view_as_real
from ..ops.shape.axes import movedim
from ..ops.shape.joining import stack
from ..ops.shape.reshape import reshape
from ..tensor.modes import thread
from ..tensor.tensor import Tensor, is_tracked, wrap
from .array_nodes import Array, array_of
from .solutions import Solution


def gradients(out: Tensor, inputs: Sequence[Tensor], cotangent: Array, keep: bool = False) -> list[Any]:
    """The gradients with respect to leaves, as arrays; None where there is none. keep: the graph is used again."""
    if not out.requires_grad or not inputs:
        return [None] * len(inputs)
    found = autograd.grad([out], list(inputs), [wrap(cotangent)], retain_graph=keep, allow_unused=True)
    return [None if g is None else g._data for g in found]


class Closed:
    """A function of Tensors, to a tuple of Tensors, that depends on nothing else that is differentiated.

    values: another way to the same values, on Tensors of plain arrays, where nothing is recorded. tangents: how many of
    the first inputs are tangents.
    """

    __slots__ = ("fun", "tangents", "values")

    def __init__(
        self,
        fun: Callable[..., tuple[Tensor, ...]],
        values: Callable[..., tuple[Tensor, ...]] | None = None,
        tangents: int = 0,
    ) -> None:
        self.fun, self.values, self.tangents = fun, values or fun, tangents

    def vjp(self, wanted: Sequence[bool], outputs: Sequence[bool]) -> Closed:
        """The function of cotangents and inputs whose results are the gradients of the inputs that are wanted.

        outputs: those that have a cotangent.
        """

        def pulled(*values: Tensor) -> tuple[Tensor, ...]:
            gs, xs = values[: sum(outputs)], values[sum(outputs) :]
            recorded = thread.modes.grad_enabled
            tracked = Tracked(_picked(xs, wanted), "vjp")
            with enable_grad():
                outs = self._part(xs, wanted, outputs)(*tracked.aliases)
                tracked.close()
            goes_on = recorded and (tracked.goes_on(*outs) or any(map(is_tracked, gs)))
            found = tracked.gradients(outs, gs, False, goes_on)
            return tuple(tracked.released(found, recorded=True)) if goes_on else found

        return Closed(pulled)

    def jvp(self, wanted: Sequence[bool], outputs: Sequence[bool]) -> Closed:
        """The function of the tangents of the wanted inputs and of the inputs whose results are the tangents."""

        def pushed(*values: Tensor) -> tuple[Tensor, ...]:
            ts, xs = values[: sum(wanted)], values[sum(wanted) :]
            found: tuple[Tensor, ...] = jvp(self._part(xs, wanted, outputs), tuple(_picked(xs, wanted)), tuple(ts))[1]
            return found

        return Closed(pushed, tangents=sum(wanted))

    def _part(self, xs: Sequence[Tensor], wanted: Sequence[bool], outputs: Sequence[bool]) -> Callable[..., Any]:
        """The function from the wanted inputs to the outputs that count."""
        return lambda *chosen: tuple(_picked(self.fun(*_filled(xs, wanted, chosen)), outputs))


def _filled(xs: Sequence[Any], which: Sequence[bool], chosen: Sequence[Any]) -> list[Any]:
    """The inputs, with the chosen ones in their places."""
    parts = iter(chosen)
    return [next(parts) if w else x for x, w in zip(xs, which, strict=True)]


def given(values: Sequence[Any]) -> list[Any]:
    """Those that are not None."""
    return [v for v in values if v is not None]


def call(closed: Closed, *xs: Any) -> tuple[Any, ...]:
    """The results of a closed function as one node."""
    found = Call.apply(closed, *xs)
    return found if type(found) is tuple else (found,)


class Call(Function):
    """A call of a closed function."""

    @staticmethod
    def forward(closed: Closed, *xs: Tensor) -> Any:
        """Call it; nothing is recorded."""
        with no_grad():
            outs = closed.values(*[wrap(array_of(x)) for x in xs])
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
        """One call for each sample; one for all if they differ in tangents alone, as in a Jacobian."""
        dims = in_dims[1:]
        if any(d is not None for d in dims[closed.tangents :]):
            return each(info.batch_size, dims, xs, lambda *x: Call.apply(closed, *x))
        found = Call.apply(Closed(lambda *x: vmap(closed.fun, dims)(*x)), *xs)
        return found, (0,) * len(found) if type(found) is tuple else 0


def pulled_back(closed: Closed, wanted: Sequence[bool], floats: Sequence[bool], gs: Any, xs: Any) -> list[Any]:
    """The gradients of inputs, from the cotangents `gs`; None stands for zero."""
    outputs = tuple(f and g is not None for f, g in zip(floats, gs, strict=True))
    if not any(outputs) or not any(wanted):
        return [None] * len(wanted)
    grads = call(closed.vjp(wanted, outputs), *_picked(gs, outputs), *xs)
    return _filled([None] * len(wanted), wanted, grads)


def pushed_forward(closed: Closed, floats: Sequence[bool], ts: Any, xs: Any) -> tuple[Any, ...]:
    """The tangents of the results, from those of the inputs; None stands for zero."""
    wanted = tuple(t is not None for t in ts)
    if not any(floats):
        return (None,) * len(floats)
    found = call(closed.jvp(wanted, floats), *given(ts), *xs)
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


@dataclass(frozen=True)
class Root:
    """``residual(z, *inputs) = 0`` as an equation. find: from the arrays of the inputs to the solution."""

    of: Closed
    find: Callable[..., Array]

    columns = False

    def solve(self, *xs: Tensor) -> Array:
        """Find it."""
        return self.find(*map(array_of, xs))

    def residual(self, z: Tensor, *xs: Tensor) -> Tensor:
        """A node, so that the function gets plain arrays."""
        found: Tensor = call(self.of, z, *xs)[0]
        return found

    def inverse(self, adjoint: bool, r: Tensor, z: Tensor, *xs: Tensor) -> Tensor:
        """Solve with the dense Jacobian, or with its adjoint."""
        (matrix,) = call(Closed(self._jacobian), z, *xs)
        paired = r.dtype.is_complex
        right = reshape(view_as_real(r), (-1,)) if paired else r
        found: Any = np.linalg.solve(np.transpose(matrix) if adjoint else matrix, right)
        return view_as_complex(reshape(found, (-1, 2))) if paired else found

    def _jacobian(self, z: Any, *xs: Any) -> tuple[Any]:
        """With respect to z: a row for each residual, all of them in one batch.

        A complex number counts as its real and its imaginary part, for a function need not be holomorphic.
        """
        _, pull = vjp(lambda z: self.of.fun(z, *xs)[0], z)
        n, kind = z.shape[0], z._data.dtype
        if kind.kind != "c":
            return (vmap(pull)(wrap(np.eye(n, dtype=kind)))[0],)
        units = np.eye(2 * n).view(kind)
        return (reshape(view_as_real(vmap(pull)(wrap(units))[0]), (2 * n, 2 * n)),)


def root(residual: Closed, find: Callable[..., Any], *xs: Any) -> Any:
    """The solution z, an array of one axis, of ``residual(z, *xs) = 0``, with its derivatives of every order.

    find: the function from the arrays `xs` to the solution.
    """
    return Solution.apply(Root(residual, find), *xs)


def column(t: Any) -> Any:
    """A tensor with one axis."""
    return reshape(t, (-1,))


__all__ = ["Closed", "call", "column", "each", "given", "gradients", "pulled_back", "pushed_forward", "root"]

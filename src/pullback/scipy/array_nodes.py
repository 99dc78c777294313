"""Nodes whose values SciPy computes on plain arrays: linear maps and elementwise functions.

`linear` takes a function of arrays and its adjoint, and gives a node with every order in both modes: the derivative of
a linear map is the map itself, its backward is the adjoint, which is linear again. `elementwise` takes a ufunc and a
partial derivative for each argument, written on Tensors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..autograd.function import Function
from ..interpreters.traced import ValuesError, open_trace, refused
from ..ops.make.conversion import to
from ..ops.shape.axes import movedim
from ..ops.shape.joining import stack
from ..ops.shape.reshape import reshape, sum_to_size
from ..table.operands import is_complex
from ..tensor.tensor import Tensor, wrap

Array = np.ndarray[Any, Any]
Map = Callable[[Array], Array]


def array_of(value: Any) -> Array:
    """The plain array of a Tensor that belongs to no transform; of anything else, what NumPy makes of it.

    TypeError for a sparse tensor, and in a transform; TraceError in `compile`.
    """
    if not isinstance(value, Tensor):
        return np.asarray(value)
    if type(value._data) is not np.ndarray:
        if open_trace() is not None:
            raise refused(
                "a function of pullback.scipy computes on arrays, and gets a tensor of a program in a way that is "
                "not visible",
                "pass the tensor in its arguments",
                ValuesError,
            )
        raise TypeError(errors.message("pullback.scipy", expected="a dense tensor", found=errors.describe(value)))
    if value._data.dtype.kind == "V":
        raise TypeError(
            errors.message(
                "pullback.scipy: SciPy has no bfloat16", found=errors.describe(value), do="convert it with .float()"
            )
        )
    return value._data


def pairs(a: Array) -> Array:
    """Complex numbers as pairs of real ones, along the last axis; real numbers as they are."""
    return np.ascontiguousarray(a).view(a.real.dtype)


def tensor_of(value: Any) -> Tensor:
    """A result of SciPy's as a Tensor that owns its memory."""
    a = np.asarray(value)
    return wrap(a if a.flags.owndata and a.flags.writeable else np.array(a))


class _Read(threading.local):
    """What a solver puts for the tensors that a function reads, by their identity; see `substituted`."""

    def __init__(self) -> None:
        self.by: dict[int, Tensor] = {}


READ = _Read()


def as_tensor(value: Any) -> Tensor:
    """A Tensor as it is, or what a solver around has put for it; anything else as a Tensor.

    That is a number, an array, or a list that may hold Tensors.
    """
    if isinstance(value, Tensor):
        return READ.by.get(id(value), value) if READ.by else value
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, list, tuple)) for v in value):
        return stack([as_tensor(v) for v in value])
    return wrap(np.array(value))


def floating(value: Any) -> Tensor:
    """`as_tensor`, with integers and bools as float64, as SciPy converts them."""
    t = as_tensor(value)
    return to(t, np.float64) if t._data.dtype.kind in "biu" else t


# Linear maps ----------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A linear map of arrays and its adjoint, which for complex numbers is conjugated.

    shape, dtype: of the argument, which the adjoint's result has as well. batched: both take further axes in front.
    """

    apply: Map
    adjoint: Map
    batched: bool = False

    def turned(self) -> Pair:
        return Pair(self.adjoint, self.apply, self.batched)


class Linear(Function):
    """A linear map of one array."""

    @staticmethod
    def forward(pair: Pair, x: Tensor) -> Any:
        """Apply it."""
        return tensor_of(pair.apply(array_of(x)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the map, and whether its argument is real: then so is the gradient."""
        ctx.pair, x = inputs
        ctx.real = x._data.dtype.kind != "c"

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The adjoint."""
        found = Linear.apply(ctx.pair.turned(), g)
        return None, found.real if ctx.real and found._data.dtype.kind == "c" else found

    @staticmethod
    def jvp(ctx: Any, _: Any, t: Tensor) -> Any:
        """The map itself."""
        return Linear.apply(ctx.pair, t)

    @staticmethod
    def vmap(info: Any, in_dims: Any, pair: Pair, x: Tensor) -> Any:
        """One call for the batch, or one for each sample."""
        x = movedim(x, in_dims[1], 0)
        if pair.batched:
            return Linear.apply(pair, x), 0
        return stack([Linear.apply(pair, x[i]) for i in range(info.batch_size)]), 0


def linear(apply: Map, adjoint: Map, x: Any, *, batched: bool = False) -> Any:
    """``apply(x)`` for a linear map of arrays, with all its derivatives.

    apply, adjoint: functions of one array; they close over settings alone. batched: they take further axes in front.

    >>> import numpy as np, pullback
    >>> x = pullback.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> y = linear(np.diff, lambda g: np.concatenate([-g[:1], -np.diff(g), g[-1:]]), x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([-1., -0.,  1.])
    """
    return Linear.apply(Pair(apply, adjoint, batched), floating(x))


# Elementwise functions ------------------------------------------------------------------------------------------------


class Pointwise(NamedTuple):
    """A ufunc and its partial derivatives as functions of its arguments, on Tensors; None where there is none."""

    name: str
    ufunc: Callable[..., Any]
    partials: tuple[Callable[..., Any] | None, ...]

    def partial(self, number: int, xs: Sequence[Any]) -> Any:
        found = self.partials[number]
        if found is None:
            raise RuntimeError(
                errors.message(
                    f"{self.name} has no derivative with respect to argument {number}",
                    do="detach() it, or give a number",
                )
            )
        return found(*xs)


def _pulled(g: Any, slope: Any, x: Tensor) -> Any:
    """The gradient of an argument: of a complex one by the conjugate, real for a real one, in its shape."""
    found = g * (np.conj(slope) if is_complex(slope) else slope)
    found = found.real if found.is_complex() and not x.is_complex() else found
    return sum_to_size(found, x.shape) if found.shape != x.shape else found


class Elementwise(Function):
    """An elementwise function of arrays that broadcast."""

    @staticmethod
    def forward(op: Pointwise, *xs: Tensor) -> Any:
        """Call the ufunc."""
        return tensor_of(op.ufunc(*map(array_of, xs)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the arguments."""
        ctx.op, *xs = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*xs)
        ctx.save_for_forward(*xs)

    @staticmethod
    def backward(ctx: Any, g: Tensor | None) -> Any:
        """The partial derivatives times the cotangent."""
        if g is None:
            return (None,) * len(ctx.needs_input_grad)
        xs = ctx.saved_tensors
        wanted = ctx.needs_input_grad[1:]
        return None, *[_pulled(g, ctx.op.partial(i, xs), x) if wanted[i] else None for i, x in enumerate(xs)]

    @staticmethod
    def jvp(ctx: Any, _: Any, *ts: Tensor | None) -> Any:
        """The sum of the partial derivatives times the tangents."""
        terms = [t * ctx.op.partial(i, ctx.saved_tensors) for i, t in enumerate(ts) if t is not None]
        return sum(terms[1:], terms[0])

    @staticmethod
    def vmap(info: Any, in_dims: Any, op: Pointwise, *xs: Tensor) -> Any:
        """One call: the batch is the first axis of all."""
        dims = in_dims[1:]
        most = max(x.dim() - (d is not None) for x, d in zip(xs, dims, strict=True))
        moved = []
        for x, d in zip(xs, dims, strict=True):
            if d is not None:
                y = movedim(x, d, 0)
                x = reshape(y, (y.shape[0], *[1] * (most + 1 - y.dim()), *y.shape[1:]))
            moved.append(x)
        return Elementwise.apply(op, *moved), 0


def elementwise(name: str, ufunc: Callable[..., Any], *partials: Callable[..., Any] | None) -> Callable[..., Any]:
    """A function of Tensors from a ufunc and its partial derivatives, one for each argument.

    >>> import numpy as np, pullback, scipy.special
    >>> cosm1 = elementwise("cosm1", scipy.special.cosm1, lambda x: -np.sin(x))
    >>> x = pullback.tensor(0.5, requires_grad=True)
    >>> cosm1(x).backward()
    >>> x.grad
    tensor(-0.4794)
    """
    op = Pointwise(name, ufunc, partials)
    return lambda *xs: Elementwise.apply(op, *map(floating, xs))


__all__ = ["Array", "array_of", "as_tensor", "elementwise", "floating", "linear", "pairs", "tensor_of"]

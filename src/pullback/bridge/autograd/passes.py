"""`make_vjp` and `make_jvp` of a function of one argument: this package's transforms, with boxes at both ends.

The argument and the result may be a number, an array, or lists, tuples and dicts of them. The gradient of a complex
number is the conjugate of torch's: autograd's is ``du/dx - i du/dy`` for a real function ``u``.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import errors
from ...autograd.engine import execute
from ...autograd.grad_mode import enable_grad
from ...autograd.node import edge_of, leaf_edge
from ...func.forward import jvp as _jvp
from ...func.reverse import Tracked
from ...func.reverse import vjp as _vjp
from ...ops.elementwise.complex import conj as conjugate
from ...ops.elementwise.complex import real
from ...ops.shape.reshape import expand
from ...tensor.modes import LEVELS, thread
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Tensor, is_tracked, wrap
from .box import ArrayBox, Box, boxed, getval, isbox
from .spaces import any_vectors, boxed_vector, is_vector, one_pass, received, send, token, vspace

SINGLE = frozenset({float, np.float64, np.ndarray, ArrayBox})
"""The most frequent types of what does not nest."""

INDEPENDENT = "Output seems independent of input."


def tensor_of(value: Any, dtype: Any = None) -> Tensor:
    """The Tensor of a box, or a new one around an array or a number."""
    if type(value) is ArrayBox:
        return value.tensor
    return wrap(np.asarray(value, dtype))


def checked(value: Any) -> Tensor:
    """The Tensor of something to differentiate by; TypeError for what has no derivative."""
    if type(value) is ArrayBox:
        return value.tensor
    if isinstance(value, (float, complex, np.inexact)):
        return wrap(np.asarray(value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "fciub":
        return wrap(value if value.dtype.kind in "fc" else value.astype(np.float64))
    if is_vector(value):
        return value.tensor if isinstance(value, Box) else token()
    raise TypeError(
        errors.message(
            f"Can't differentiate w.r.t. type {type(value)}",
            expected="a float, a complex number, an array of them, or lists, tuples and dicts of these",
            found=errors.describe(value),
            do="give 3.0 instead of 3, and functions' other arguments outside of argnum",
        )
    )


def zeros(value: Any) -> Any:
    """Zeros like the value, which may nest."""
    zero = (vspace(v).zeros() if is_vector(v) else np.zeros_like(getval(v)) * 1.0 for v in leaves(value))
    return rebuild(value, zero)


def conj(t: Tensor) -> Tensor:
    """The conjugate: between autograd's gradients and torch's."""
    return conjugate(t) if t._data.dtype.kind == "c" else t


def fitted(value: Any, like: Tensor) -> Tensor:
    """A cotangent or tangent as a Tensor of the shape and the dtype of `like`."""
    t = tensor_of(value)
    if t._data.dtype == like._data.dtype and t._data.shape == like._data.shape:
        return t
    if t._data.dtype.kind == "c" and like._data.dtype.kind == "f":
        t = real(t)
    t = t.to(like.dtype)
    return t if t._data.shape == like._data.shape else expand(t, like._data.shape)


class _Traced:
    """A function of Tensors alone, which boxes them for the user's function and takes the boxes off its result.

    value: what the function returned, with the box leaves that depend on something in `outs`. single: whether it is a
    box itself, as it most often is.
    """

    def __init__(self, fun: Callable[[Any], Any], x: Any) -> None:
        self.fun, self.x = fun, x
        self.value: Any = None
        self.given: Sequence[Tensor] = ()
        self.places: list[bool] = [True]
        self.single = False

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        self.given = tensors
        x = ArrayBox(*tensors) if type(self.x) in SINGLE else rebuild(self.x, map(_box, leaves(self.x), tensors))
        self.value = self.fun(x)
        if type(self.value) is ArrayBox:
            self.single = True
            return (self.value.tensor,)
        flat = list(leaves(self.value))
        self.places = list(map(isbox, flat))
        return tuple(leaf.tensor for leaf in flat if isbox(leaf)) or (token(),)

    def result(self, found: Sequence[Any]) -> Any:
        """The user's result with `found` instead of the boxes."""
        if self.single:
            return boxed(found[0])
        each: Iterator[Any] = iter(found)
        flat = zip(self.places, leaves(self.value), strict=True)
        return rebuild(self.value, (_unboxed(leaf, next(each)) if p else leaf for p, leaf in flat))


def _box(leaf: Any, tensor: Tensor) -> Any:
    return boxed_vector(leaf, tensor) if is_vector(leaf) else ArrayBox(tensor)


def _unboxed(leaf: Any, found: Tensor) -> Any:
    return boxed(found) if type(leaf) is ArrayBox else leaf._value


class _Depth(threading.local):
    """How many `make_vjp` run in this thread, one within another."""

    n = 0


_depth = _Depth()


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """The function from cotangents ``g`` to ``J^T g``, and the value of `fun` at `x`."""
    single = type(x) in SINGLE
    primals = [checked(x)] if single else [checked(leaf) for leaf in leaves(x)]
    traced = _Traced(fun, x)
    before = _depth.n
    alone = not before and not LEVELS.n  # nothing else is traced, so the graph leads to `x` only
    try:
        _depth.n = before + 1
        outs, pull = _vjp_alone(traced, primals) if alone else _vjp(traced, *primals)
    finally:
        _depth.n = before
    if True not in traced.places:
        warnings.warn(INDEPENDENT, stacklevel=3)
        return (lambda g: zeros(x)), traced.result(())

    def vjp(g: Any) -> Any:
        """``J^T g``."""
        if traced.single:
            found = pull((conj(fitted(g, outs[0])),))
        else:
            flat = zip(leaves(g), traced.places, leaves(traced.value), strict=True)
            given = zip([(c, leaf) for c, p, leaf in flat if p], outs, strict=True)
            found = pull(
                tuple([conj(fitted(c, o)) if type(b) is ArrayBox else send(b.tensor, c) for (c, b), o in given])
            )
        if single:
            return boxed(conj(found[0]))
        each = zip(leaves(x), traced.given, found, strict=True)
        return rebuild(x, (received(*edge_of(a)[:2], v) if is_vector(v) else boxed(conj(t)) for v, a, t in each))

    return one_pass()(vjp) if any_vectors() else vjp, traced.result(outs)


def _vjp_alone(traced: _Traced, primals: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], Callable[..., Any]]:
    """`func.vjp` where no other derivative may follow: whether the graph leads further need not be found out."""
    tracked = _Leaves(primals)
    if thread.modes.grad_enabled:
        outputs = traced(*tracked.aliases)
    else:
        with enable_grad():
            outputs = traced(*tracked.aliases)
    tracked.close()

    def pull(cotangents: Sequence[Tensor]) -> Sequence[Tensor]:
        taped = any(map(is_tracked, cotangents))
        if taped or LEVELS.n:
            return tuple(tracked.released(tracked.gradients(outputs, cotangents, True, taped), recorded=taped))
        roots = [(edge_of(o), c._data) for o, c in zip(outputs, cotangents, strict=True) if o._requires_grad]
        arrived = execute(roots, keep=True, taped=False, accumulate=False)
        return [_own(arrived.get(edge_of(a)[0]), a) for a in tracked.aliases]

    return tuple([wrap(o._data) for o in outputs]), pull


class _Leaves(Tracked):
    """The arguments of a trace that is alone: `checked` made these Tensors, so they are leaves themselves.

    A box of a trace that has ended stands for its value.
    """

    def __init__(self, primals: Sequence[Tensor]) -> None:
        super().__init__((), "vjp")
        for p in primals:
            leaf = wrap(p._data) if p._requires_grad else p
            leaf._requires_grad = True
            leaf_edge(leaf)[0].transform = self.state
            self.aliases.append(leaf)


def _own(g: Any, like: Tensor) -> Tensor:
    """A gradient of the engine as a Tensor that may be written to; None stands for zeros."""
    if g is None:
        return wrap(np.zeros_like(like._data))
    return wrap(g if type(g) is np.ndarray and (g.base is None or g.flags.writeable) else np.copy(g))


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """The function from tangents ``v`` to the value of `fun` at `x` and ``J v``."""
    primals = tuple(checked(leaf) for leaf in leaves(x))
    if any_vectors() and any(map(is_vector, leaves(x))):
        raise NotImplementedError(errors.message("make_jvp() of a class of vectors", do="use the reverse mode"))

    def jvp(v: Any) -> tuple[Any, Any]:
        """The value, and ``J v``."""
        traced = _Traced(fun, x)
        tangents = tuple(fitted(t, p) for t, p in zip(leaves(v), primals, strict=True))
        outs, pushed = _jvp(traced, primals, tangents)
        if not any(traced.places):
            warnings.warn(INDEPENDENT, stacklevel=2)
            value = traced.result(())
            return value, zeros(value)
        flat = zip(leaves(traced.value), traced.places, strict=True)
        each = iter(pushed)
        moved = rebuild(traced.value, (boxed(next(each)) if p else zeros(leaf) for leaf, p in flat))
        return traced.result(outs), moved

    return jvp

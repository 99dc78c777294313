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
from ...autograd.grad_mode import enable_grad
from ...func.forward import jvp as _jvp
from ...func.reverse import Tracked
from ...func.reverse import vjp as _vjp
from ...ops.elementwise.complex import conj as conjugate
from ...ops.elementwise.complex import real
from ...ops.shape.reshape import expand
from ...tensor.modes import LEVELS
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Tensor, is_tracked, wrap
from .box import ArrayBox, boxed, getval

_INDEPENDENT = "Output seems independent of input."


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
    return rebuild(value, (np.zeros_like(getval(leaf)) * 1.0 for leaf in leaves(value)))


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

    value: what the function returned, with the box leaves that depend on something in `outs`.
    """

    def __init__(self, fun: Callable[[Any], Any], x: Any) -> None:
        self.fun, self.x = fun, x
        self.value: Any = None
        self.places: list[bool] = []

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        self.value = self.fun(rebuild(self.x, map(ArrayBox, tensors)))
        flat = list(leaves(self.value))
        self.places = [type(leaf) is ArrayBox for leaf in flat]
        return tuple(leaf.tensor for leaf in flat if type(leaf) is ArrayBox) or (wrap(np.zeros(())),)

    def result(self, found: Any) -> Any:
        """The user's result with `found` instead of the boxes."""
        each: Iterator[Any] = iter(found)
        return rebuild(
            self.value,
            (boxed(next(each)) if p else leaf for p, leaf in zip(self.places, leaves(self.value), strict=True)),
        )


class _Depth(threading.local):
    """How many `make_vjp` run in this thread, one within another."""

    n = 0


_depth = _Depth()


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """The function from cotangents ``g`` to ``J^T g``, and the value of `fun` at `x`."""
    primals = [checked(leaf) for leaf in leaves(x)]
    traced = _Traced(fun, x)
    before = _depth.n
    alone = not before and not LEVELS.n  # nothing else is traced, so the graph leads to `x` only
    try:
        _depth.n = before + 1
        outs, pull = _vjp_alone(traced, primals) if alone else _vjp(traced, *primals)
    finally:
        _depth.n = before
    if not any(traced.places):
        warnings.warn(_INDEPENDENT, stacklevel=3)
        return (lambda g: zeros(x)), traced.result(())

    def vjp(g: Any) -> Any:
        """``J^T g``."""
        given = [leaf for leaf, p in zip(leaves(g), traced.places, strict=True) if p]
        found = pull(tuple([conj(fitted(c, o)) for c, o in zip(given, outs, strict=True)]))
        return rebuild(x, (boxed(conj(t)) for t in found))

    return vjp, traced.result(outs)


def _vjp_alone(traced: _Traced, primals: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], Callable[..., Any]]:
    """`func.vjp` where no other derivative may follow: whether the graph leads further need not be found out."""
    with enable_grad():
        tracked = Tracked(primals, "vjp")
        outputs = traced(*tracked.aliases)
    tracked.close()

    def pull(cotangents: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if not any(map(is_tracked, cotangents)):
            return tracked.gradients(outputs, cotangents, True, False)
        return tuple(tracked.released(tracked.gradients(outputs, cotangents, True, True), recorded=True))

    return tuple([wrap(o._data) for o in outputs]), pull


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """The function from tangents ``v`` to the value of `fun` at `x` and ``J v``."""
    primals = tuple(checked(leaf) for leaf in leaves(x))

    def jvp(v: Any) -> tuple[Any, Any]:
        """The value, and ``J v``."""
        traced = _Traced(fun, x)
        tangents = tuple(fitted(t, p) for t, p in zip(leaves(v), primals, strict=True))
        outs, pushed = _jvp(traced, primals, tangents)
        if not any(traced.places):
            warnings.warn(_INDEPENDENT, stacklevel=2)
            value = traced.result(())
            return value, zeros(value)
        flat = zip(leaves(traced.value), traced.places, strict=True)
        each = iter(pushed)
        moved = rebuild(traced.value, (boxed(next(each)) if p else zeros(leaf) for leaf, p in flat))
        return traced.result(outs), moved

    return jvp

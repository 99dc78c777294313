"""Recursive filters: `lfilter` and what is made of it, differentiable in coefficients, signal and initial state.

With polynomials A and B of the delay, the filter solves ``A y = B x + zi``, where the initial state counts as the
first values of the right-hand side. So its derivatives are filters again: ``A dy = dB x + B dx - dA y + dzi``. The
adjoint runs backwards in time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from ... import errors
from ...autograd.function import Function
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...tensor.tensor import Tensor
from ..array_nodes import Array, array_of, floating, tensor_of
from ..mirror import mirrors
from ..user_functions import bare

_ONE = np.ones(1)


def _padded(x: Any, before: int, after: int) -> Any:
    """The last axis with zeros before and after it."""
    zeros = [np.zeros((*x.shape[:-1], max(n, 0)), x._data.dtype) for n in (before, after)]
    return np.concatenate([zeros[0], x, zeros[1]], axis=-1)


def _lagged(v: Any, x: Any, count: int) -> Any:
    """The sums of ``v[n] conj(x[n - k])`` for the lags k below `count`, over all signals."""
    n, x = v.shape[-1], np.conj(x)
    sums = [np.sum(v[..., k:] * x[..., : n - k]) for k in range(min(count, n))]
    return _padded(np.stack(sums), 0, count - len(sums)) if sums else tensor_of(np.zeros(count, v._data.dtype))


class LinearFilter(Function):
    """``A y = B x + zi`` along the last axis, with ``a[0] = 1``; zi has the shape of the signals, or is None."""

    @staticmethod
    def forward(b: Tensor, a: Tensor, x: Tensor, zi: Any) -> Any:
        """SciPy's filter, without the final state."""
        b_, a_, x_ = map(array_of, (b, a, x))
        if zi is None:
            return tensor_of(scipy.signal.lfilter(b_, a_, x_))
        return tensor_of(scipy.signal.lfilter(b_, a_, x_, zi=array_of(zi))[0])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep coefficients, signal and result."""
        b, a, x, zi = inputs
        ctx.state = None if zi is None else zi.shape[-1]
        ctx.save_for_backward(b, a, x, output)
        ctx.save_for_forward(b, a, x, output)
        ctx.kinds = [t if t is None else t._data.dtype.kind for t in inputs]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The filter of the reversed signal, reversed, and correlations with it."""
        b, a, x, y = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        bc, ac, turned = np.conj(b), np.conj(a), np.flip(g, -1)
        grads: list[Any] = [None] * 4
        if wanted[2]:
            grads[2] = np.flip(filtered(bc, ac, turned), -1)
        if wanted[0] or wanted[1] or wanted[3]:
            v = np.flip(filtered(_ONE, ac, turned), -1)
            if wanted[0]:
                grads[0] = _lagged(v, x, len(b))
            if wanted[1]:
                grads[1] = -_lagged(v, y, len(a))
            if wanted[3]:
                grads[3] = _padded(v[..., : ctx.state], 0, ctx.state - v.shape[-1])
        pairs = zip(grads, ctx.kinds, strict=True)
        return tuple([g if g is None or kind == "c" or g._data.dtype.kind != "c" else np.real(g) for g, kind in pairs])

    @staticmethod
    def jvp(ctx: Any, tb: Any, ta: Any, tx: Any, tz: Any) -> Any:
        """The filter of the tangents."""
        b, a, x, y = ctx.saved_tensors
        right = [filtered(b, _ONE, tx)] if tx is not None else []
        right += [filtered(tb, _ONE, x)] if tb is not None else []
        right += [-filtered(ta, _ONE, y)] if ta is not None else []
        if tz is not None:
            right += [_padded(tz[..., : x.shape[-1]], 0, x.shape[-1] - tz.shape[-1])]
        return filtered(_ONE, a, sum(right[1:], right[0]))

    @staticmethod
    def vmap(info: Any, in_dims: Any, b: Tensor, a: Tensor, x: Tensor, zi: Any) -> Any:
        """One call for many signals, or one for each filter."""
        batch = info.batch_size
        ts = [t if d is None else movedim(t, d, 0) for t, d in zip((b, a, x, zi), in_dims, strict=True)]
        if in_dims[0] is None and in_dims[1] is None:
            pair = [
                t if t is None or d is not None else t.expand(batch, *t.shape)
                for t, d in zip(ts[2:], in_dims[2:], strict=True)
            ]
            return LinearFilter.apply(b, a, *pair), 0
        each = [[t if d is None else t[i] for t, d in zip(ts, in_dims, strict=True)] for i in range(batch)]
        return stack([LinearFilter.apply(*one) for one in each]), 0


def filtered(b: Any, a: Any, x: Any, zi: Any = None) -> Any:
    """The filter along the last axis, of coefficients with ``a[0] = 1``."""
    b, a, x = (t if isinstance(t, Tensor) else tensor_of(np.asarray(t, x._data.dtype)) for t in (b, a, x))
    return LinearFilter.apply(b, a, x, zi)


def _first(x: Any, axis: int) -> Array:
    """The first element along the axis, for SciPy's checks; everything if there is no such axis."""
    a = bare(x)
    return np.take(a, range(min(1, a.shape[axis])), axis=axis) if -a.ndim <= axis < a.ndim else a


def _leading(name: str, a: Array) -> None:
    """ValueError if the filter divides by zero: SciPy has an error for it where `a` has several values."""
    if a.size and np.ravel(a)[0] == 0:
        raise ValueError(
            errors.message(
                f"signal.{name}: a[0] is 0, and the filter divides by it", do="leave out the leading zeros of a"
            )
        )


def _final_state(b: Any, a: Any, x: Any, y: Any, zi: Any) -> Any:
    """What would follow after the end: the tails of ``B x + zi - A y``, beyond the signal."""
    state, n = zi.shape[-1], x.shape[-1]
    if not state:
        return zi

    def tail(c: Any, s: Any) -> Any:
        last = s[..., max(n - state, 0) :]
        return filtered(c, _ONE, _padded(last, state - last.shape[-1], state))[..., state:]

    rest = zi[..., n:]
    return tail(b, x) - tail(a, y) + _padded(rest, 0, state - rest.shape[-1])


@mirrors("signal.lfilter", derivative="filters of the tangents; backward in time for the adjoint; b, a, x, zi")
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The recursive filter, differentiable in b, a, x and zi; ``(y, zf)`` if zi is given, as in SciPy.

    >>> import pullback
    >>> b = pullback.tensor([1.0, 0.5], requires_grad=True)
    >>> lfilter(b, [1.0, -0.5], [1.0, 0.0, 0.0]).sum().backward()
    >>> b.grad
    tensor([1.7500, 1.5000])
    """
    b, a, x = floating(b), floating(a), floating(x)
    state: Any = None if zi is None else floating(zi)
    if bare(a).size == 1:
        _leading("lfilter", bare(a))
    scipy.signal.lfilter(bare(b), bare(a), _first(x, axis), axis, None if state is None else bare(state))
    b, a = np.atleast_1d(b), np.atleast_1d(a)
    b, a = b / a[0], a / a[0]
    x = np.moveaxis(x, axis, -1)
    if state is None:
        return np.moveaxis(filtered(b, a, x), -1, axis)
    state = movedim(state, axis, -1)
    state = np.broadcast_to(state, (*x.shape[:-1], state.shape[-1]))
    y = filtered(b, a, x, state)
    zf = _final_state(b, a, x, y, state)
    return np.moveaxis(y, -1, axis), np.moveaxis(zf, -1, axis)


@mirrors("signal.lfilter_zi", derivative="a linear system of the coefficients, in recorded operations")
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of a filter whose response to a step is steady, differentiable in b and a.

    >>> import pullback
    >>> lfilter_zi(pullback.tensor([1.0, 1.0]), [1.0, -0.5])
    tensor([3.], dtype=pullback.float64)
    """
    b, a = np.atleast_1d(floating(b)), np.atleast_1d(floating(a))
    zeros = np.flatnonzero(bare(a))
    a = a[int(zeros[0]) :] if len(zeros) else a
    _leading("lfilter_zi", bare(a))
    scipy.signal.lfilter_zi(bare(b), bare(a))
    b, a = b / a[0], a / a[0]
    n, kind = max(len(a), len(b)), a._data.dtype
    b, a = (_padded(t, 0, n - len(t)) if len(t) < n else t for t in (b, a))
    shift = np.eye(n - 1, dtype=kind) - np.eye(n - 1, k=1, dtype=kind)
    first = np.eye(n - 1, dtype=kind)[:1]
    return np.linalg.solve(shift + a[1:, None] * first, b[1:] - a[1:] * b[0])


# Sections of second order ---------------------------------------------------------------------------------------------


@mirrors("signal.sosfilt", derivative="that of lfilter, section by section")
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A cascade of filters of second order, differentiable in sos, x and zi.

    >>> import pullback
    >>> sosfilt(pullback.tensor([[1.0, 1.0, 0.0, 1.0, 0.0, 0.0]]), [1.0, 2.0, 3.0])
    tensor([1., 3., 5.], dtype=pullback.float64)
    """
    sos, x = floating(sos), floating(x)
    state: Any = None if zi is None else floating(zi)
    given = None if state is None else bare(state)
    scipy.signal.sosfilt(np.ascontiguousarray(bare(sos)), _first(x, axis), axis, given)
    y, ends = np.moveaxis(x, axis, -1), []
    for i in range(len(sos)):
        b, a = sos[i, :3], sos[i, 3:]
        z = None if state is None else movedim(state[i], axis, -1)
        before, y = y, filtered(b, a, y, z)
        if z is not None:
            ends.append(np.moveaxis(_final_state(b, a, before, y, z), -1, axis))
    y = np.moveaxis(y, -1, axis)
    return y if state is None else (y, np.stack(ends))


@mirrors("signal.sosfilt_zi", derivative="that of lfilter_zi, section by section")
def sosfilt_zi(sos: Any) -> Any:
    """The state of a cascade whose response to a step is steady, differentiable in sos.

    >>> import pullback
    >>> sosfilt_zi(pullback.tensor([[1.0, 1.0, 0.0, 1.0, 0.0, 0.0]]))
    tensor([[1., 0.]])
    """
    sos = floating(sos)
    scipy.signal.sosfilt_zi(np.ascontiguousarray(bare(sos)))
    states, scale = [], 1.0
    for i in range(len(sos)):
        b, a = sos[i, :3], sos[i, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(states)


# Forward and backward -------------------------------------------------------------------------------------------------


def continued(x: Any, n: int, kind: str | None) -> Any:
    """The last axis continued by n values: even, odd, constant, or zeros."""
    if kind is None or n < 1:
        return x
    first, last = x[..., :1], x[..., -1:]
    if kind == "zeros":
        ends = [np.zeros((*x.shape[:-1], n), x._data.dtype)] * 2
    elif kind == "constant":
        ends = [np.take(x, [0] * n, axis=-1), np.take(x, [-1] * n, axis=-1)]
    else:
        ends = [np.flip(x[..., 1 : n + 1], -1), np.flip(x[..., -n - 1 : -1], -1)]
        if kind == "odd":
            ends = [2 * first - ends[0], 2 * last - ends[1]]
    return np.concatenate([ends[0], x, ends[1]], axis=-1)


def _there_and_back(run: Any, zi: Any, x: Any, axis: int, padtype: Any, edge: int) -> Any:
    """Filter forwards and backwards, from the states that are steady for the first value.

    run: a filter along the last axis, of a signal and a state. zi: the state, with the axis of time last.
    """
    x = continued(np.moveaxis(x, axis, -1), edge, padtype)
    for _ in range(2):
        x = np.flip(run(x, zi(x[..., :1])), -1)
    return np.moveaxis(x[..., edge : x.shape[-1] - edge], -1, axis)


@mirrors("signal.filtfilt", derivative="that of lfilter, forwards and backwards", limits="method='gust' is not here")
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: Any = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: Any = None,
) -> Any:
    """The filter forwards and backwards, without delay, differentiable in b, a and x.

    NotImplementedError for ``method="gust"``.

    >>> import pullback
    >>> filtfilt(pullback.tensor([0.5, 0.5]), [1.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    tensor([1., 2., 3., 4., 5., 6., 7.], dtype=pullback.float64)
    """
    if method == "gust":
        raise NotImplementedError("filtfilt: method='gust' has no derivatives here; use method='pad'")
    b, a, x = np.atleast_1d(floating(b)), np.atleast_1d(floating(a)), floating(x)
    scipy.signal.filtfilt(bare(b), bare(a), bare(x), axis, padtype, padlen, method, irlen)
    edge = 0 if padtype is None else 3 * max(len(a), len(b)) if padlen is None else padlen
    zi = lfilter_zi(b, a)
    b, a = b / a[0], a / a[0]
    n = len(zi) + 1
    b = _padded(b, 0, n - len(b)) if len(b) < n else b
    return _there_and_back(lambda x, z: filtered(b, a, x, z), lambda v: zi * v, x, axis, padtype, edge)


@mirrors("signal.sosfiltfilt", derivative="that of sosfilt, forwards and backwards")
def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    """A cascade of filters of second order, forwards and backwards, differentiable in sos and x.

    >>> import pullback
    >>> sosfiltfilt(pullback.tensor([[0.5, 0.0, 0.0, 1.0, 0.0, 0.0]]), [1.0, 2.0, 3.0, 4.0], padlen=0)
    tensor([0.2500, 0.5000, 0.7500, 1.0000], dtype=pullback.float64)
    """
    sos, x = floating(sos), floating(x)
    values = np.ascontiguousarray(bare(sos))
    scipy.signal.sosfiltfilt(values, bare(x), axis, padtype, padlen)
    taps = 2 * len(values) + 1 - min((values[:, 2] == 0).sum(), (values[:, 5] == 0).sum())
    edge = 0 if padtype is None else 3 * int(taps) if padlen is None else padlen
    zi = sosfilt_zi(sos)
    steady = lambda v: zi[(slice(None), *[None] * (v.ndim - 1))] * v  # noqa: E731
    return _there_and_back(lambda x, z: sosfilt(sos, x, zi=z)[0], steady, x, axis, padtype, edge)


@mirrors("signal.deconvolve", derivative="that of lfilter and convolve")
def deconvolve(signal: Any, divisor: Any) -> tuple[Any, Any]:
    """The quotient and the remainder of two polynomials, differentiable in both.

    >>> import pullback
    >>> deconvolve(pullback.tensor([1.0, 3.0, 2.0]), [1.0, 1.0])[0]
    tensor([1., 2.], dtype=pullback.float64)
    """
    num: Any = np.atleast_1d(floating(signal))
    den: Any = np.atleast_1d(floating(divisor))
    scipy.signal.deconvolve(bare(num), bare(den))
    size = len(num) - len(den) + 1
    if size < 1:
        return tensor_of(np.zeros(0)), num
    impulse: Any = np.eye(1, size, dtype=num._data.dtype)[0]
    quotient = filtered(num / den[0], den / den[0], tensor_of(impulse))
    product = filtered(den, _ONE, _padded(quotient, 0, len(den) - 1))
    return quotient, num - product

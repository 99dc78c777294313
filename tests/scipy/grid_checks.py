"""What every function on grids is tested for: SciPy's values, and derivatives of both orders in all modes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck
from pullback.scipy.mirror import HANDED_ON
from pullback.scipy.sparse.constant_arrays import MeetsTensors
from pullback.scipy.sparse.sparse_arrays import SparseArray, sparse
from pullback.tensor.nested import leaves


def numbers(*shape: int, seed: int = 0, low: float | None = None) -> np.ndarray[Any, Any]:
    """Random numbers: normal, or uniform from `low` to `low + 1`."""
    rng = np.random.default_rng([seed, *shape])
    return rng.normal(size=shape) if low is None else rng.uniform(low, low + 1, size=shape)


def complex_numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return numbers(*shape, seed=seed) + 1j * numbers(*shape, seed=seed + 1)


class OfTensors:
    """A module or an object of ours whose functions get Tensors for arrays: without any, a call is SciPy's own."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if getattr(found, "__module__", "").startswith(("scipy", "numpy")):  # handed on
            return found
        if not callable(found):
            return found
        if inspect.isroutine(found):
            of_tensors: Any = functools.wraps(found)(functools.partial(_called_with_tensors, found))
        else:
            of_tensors = OfTensors(found)
        if not isinstance(self._of, type):
            setattr(self, name, of_tensors)  # the same each time
        return of_tensors

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _called_with_tensors(self._of, *args, **kwargs)


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(leaf, (pullback.Tensor, SparseArray)) for leaf in leaves(value))


def _called_with_tensors(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    given = [_tensor_of(a) for a in args]
    named = {k: _tensor_of(a) for k, a in kwargs.items()}
    if not _holds_tensors((given, named)):
        at = next((i for i, v in enumerate(given) if isinstance(v, (np.ndarray, list, float))), None)
        if at is not None:
            given[at] = pullback.tensor(np.asarray(given[at]))
    return function(*given, **named)


def _tensor_of(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_tensor_of, value))
    if isinstance(value, MeetsTensors):
        return sparse("a test", value)
    is_data = isinstance(value, np.ndarray) and value.dtype.kind in "fc"
    return pullback.tensor(value) if is_data else value


def same(ours: Any, scipys: Any, rtol: float = 1e-11) -> None:
    """The result equals SciPy's: shape, kind, NaN, and numbers up to rounding."""
    found, wanted = ours.detach().numpy(), np.asarray(scipys)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    scale = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * (1 + scale))


def check_derivatives(f: Callable[..., Any], *arrays: Any, second: bool = True) -> None:
    """Backward, forward, batched, second order, forward over reverse, and vmap against a loop."""
    xs = [pullback.tensor(a, requires_grad=True) for a in arrays]
    assert gradcheck(f, xs, check_forward_ad=True, check_batched_grad=True)
    if second:
        assert gradgradcheck(f, xs)
    check_nested(f, *arrays)


def check_nested(f: Callable[..., Any], *arrays: Any) -> None:
    """Forward over reverse equals reverse over reverse; vmap over each argument equals a loop."""
    fixed = [pullback.tensor(a) for a in arrays]

    def total(*xs: Any) -> Any:
        out = f(*xs)
        return (out.real + out.imag if out.is_complex() else out).sin().sum()

    for i, x in enumerate(fixed):
        if x.is_complex():
            continue
        of_one = lambda v, i=i: total(*fixed[:i], v, *fixed[i + 1 :])  # noqa: E731
        direction = pullback.tensor(numbers(*x.shape, seed=7))
        forward = func.jvp(func.grad(of_one), (x,), (direction,))[1]
        backward = func.vjp(func.grad(of_one), x)[1](direction)[0]
        np.testing.assert_allclose(forward.numpy(), backward.numpy(), rtol=1e-7, atol=1e-8)
        batch = pullback.stack([x, x * 1.01])
        whole = func.vmap(lambda v, i=i: f(*fixed[:i], v, *fixed[i + 1 :]))(batch)
        for row, one in zip(whole, batch, strict=True):
            each = f(*fixed[:i], one, *fixed[i + 1 :])
            np.testing.assert_allclose(row.numpy(), each.numpy(), rtol=1e-9, atol=1e-10)


def check_adjoint(f: Callable[[Any], Any], scipys: Callable[[Any], Any], x: Any) -> None:
    """``<f(d), g> = <d, f*(g)>`` for a linear map, with SciPy's own f on the left."""
    t = pullback.tensor(x, requires_grad=True)
    y = f(t)
    kind = y.detach().numpy().dtype.kind
    g = complex_numbers(*y.shape, seed=3) if kind == "c" else numbers(*y.shape, seed=3)
    d = complex_numbers(*x.shape, seed=5) if np.iscomplexobj(x) else numbers(*x.shape, seed=5)
    y.backward(pullback.tensor(g))
    image = np.asarray(scipys(d)) - np.asarray(scipys(0 * d))
    left, right = np.real(np.vdot(g, image)), np.real(np.vdot(t.grad.numpy(), d))
    np.testing.assert_allclose(right, left, rtol=1e-10, atol=1e-10)


def same_signatures(ours: Any, scipys: Any) -> None:
    """All public functions have SciPy's arguments, in its order, with its defaults."""
    for name in sorted({*ours.__all__} - {*HANDED_ON[ours.__name__.removeprefix("pullback.scipy.")]}):
        pairs = [inspect.signature(getattr(m, name)).parameters.values() for m in (ours, scipys)]
        mine, theirs = ([(p.name, p.kind, str(p.default)) for p in ps] for ps in pairs)
        assert mine == theirs, name

"""Softmax and its kin: exponentials of what is along an axis, divided by their sum."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import _dtypes, errors
from ..._arrays import wrap_axis
from ..._tensor import Tensor
from ...ops import reductions
from ...ops.creation import arange
from ...ops.random import exponential
from ...ops.samples import A, D, Differs, S, V, along, inf, nan
from ...ops.table import alias, composite, special
from ._arguments import floating, tensors
from ._common import floats_only


def _samples() -> list[Any]:
    return [
        *along(0, 1, -1, keepdim=False, lists=False),
        S(A(2, 0), 1),
        S(A(2, 0), 0),
        S(A(0), 0),
        S(A(2, 3), 0, dtype=D("float64")),
        S(A(2, 3), dim=1),
    ]


_KINKS = [
    S(V([1000.0, 0.0, -1000.0]), 0),
    S(V([-inf, 0.0, 1.0]), 0),
    S(V([[-inf, -inf], [0.0, 1.0]]), 1),
    S(V([inf, 0.0]), 0),
    S(V([nan, 0.0]), 0),
]
_REFUSED = [S(A(2, 3), 2), S(A(2, 3), -3), S(A(), 1), S(A(2, 3), 0, nonsense=1)]


def _differs() -> list[Any]:
    return [Differs("torch looks at the dtype only where there are elements", "values", "int64 bool complex128", "0]")]


def _total(values: Any, axis: int) -> Any:
    return reductions.quiet(np.add.reduce, np.sum, values, axis=axis, keepdims=True)


def _softmax_rule(g: Any, out: Any, dim: Any) -> Any:
    return np.multiply(out, np.subtract(g, _total(np.multiply(g, out), dim)))


def _log_softmax_rule(g: Any, out: Any, dim: Any) -> Any:
    return np.subtract(g, np.multiply(np.exp(out), _total(g, dim)))


def _shifted(name: str, input: Any, dim: int, dtype: Any) -> tuple[Any, int]:
    """`input` less its maximum along `dim`, so that no exponential overflows."""
    if dtype is not None:
        input = input.astype(_dtypes.to_numpy(dtype))
    floats_only(name, input)
    axis = wrap_axis(dim, input.ndim)
    if not input.size:
        return np.copy(input), axis
    top = np.max(np.reshape(input, (1,)) if not input.ndim else input, axis=axis, keepdims=True)
    return np.subtract(input, top if input.ndim else input), axis


@special(
    also="special.softmax",
    batch="dims",
    input=_softmax_rule,
    samples=_samples,
    kinks=_KINKS,
    refused=lambda: [*_REFUSED, S([1.0], 0)],
    differs=_differs,
)
def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size.

    >>> import pullback
    >>> pullback.softmax(pullback.tensor([1000.0, 1000.0]), 0)
    tensor([0.5000, 0.5000])
    """
    e, axis = _shifted("softmax", input, dim, dtype)
    e = np.exp(e)
    return np.true_divide(e, _total(e, axis)) if e.ndim else e


@special(
    also="special.log_softmax",
    batch="dims",
    input=_log_softmax_rule,
    samples=_samples,
    kinks=_KINKS,
    refused=lambda: [*_REFUSED, S([1.0], 0)],
    differs=_differs,
)
def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """``x - log(sum(exp(x)))`` along `dim`, without the loss of precision of the logarithm of `softmax`."""
    shifted, axis = _shifted("log_softmax", input, dim, dtype)
    return np.subtract(shifted, np.log(_total(np.exp(shifted), axis))) if shifted.ndim else shifted


def _chosen_dim(name: str, dim: int | None, input: Tensor) -> int:
    """The axis that torch takes where none is given."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=errors.callers_level(),
    )
    return 0 if input._data.ndim in (0, 1, 3) else 1


@composite(home="nn.functional", samples=_samples, kinks=_KINKS, refused=_REFUSED, differs=_differs)
def softmax_(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size."""
    return softmax(input, _chosen_dim("softmax", dim, input), dtype=dtype)


@composite(home="nn.functional", samples=_samples, kinks=_KINKS, refused=_REFUSED, differs=_differs)
def log_softmax_(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`."""
    return log_softmax(input, _chosen_dim("log_softmax", dim, input), dtype=dtype)


@composite(home="nn.functional", samples=_samples, kinks=_KINKS, refused=_REFUSED, differs=_differs)
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """`softmax` of ``-input``."""
    return softmax(-input, _chosen_dim("softmin", dim, input), dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A choice along `dim`, drawn with the probabilities ``softmax(logits)``, that has a derivative.

    It is the softmax of ``(logits + noise) / tau`` with Gumbel noise (Jang et al. 2017, arXiv:1611.01144); the smaller
    `tau`, the nearer to 0 and 1. hard: 0 and 1 themselves, with the derivative of the softmax all the same.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=errors.callers_level())
    tensors("gumbel_softmax", logits=logits)
    floating("gumbel_softmax", logits)
    waits = exponential(logits._data.shape, logits._data.dtype)
    soft = softmax((logits - waits.log()) / tau, dim)
    if not hard:
        return soft
    axis = wrap_axis(dim, logits._data.ndim)
    chosen = soft.max(axis, keepdim=True)[1]
    positions = arange(logits.size(axis)).reshape(-1, *[1] * (logits._data.ndim - axis - 1))
    return (positions == chosen).to(soft.dtype) - soft.detach() + soft


alias("nn.functional.gumbel_softmax", gumbel_softmax)

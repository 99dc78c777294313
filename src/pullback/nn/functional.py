"""Functions of neural networks: softmax, the first losses, a linear layer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _dtypes, errors
from .._arrays import wrap_axis
from .._tensor import Tensor, wrap
from ..ops import elementwise, reductions
from ..ops.elementwise import sigmoid, square, where
from ..ops.elementwise import tanh as tanh
from ..ops.indexing import gather
from ..ops.products import matmul
from ..ops.table import composite, special

__all__ = [
    "cross_entropy",
    "linear",
    "log_softmax",
    "mse_loss",
    "nll_loss",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "tanh",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``, written into `input` if so asked; its derivative at 0 is 0."""
    return input.relu_() if inplace else elementwise.relu(input)


def _total(values: Any, axis: int) -> Any:
    return reductions.quiet(np.add.reduce, np.sum, values, axis=axis, keepdims=True)


def _softmax_rule(g: Any, out: Any, dim: Any) -> Any:
    return np.multiply(out, np.subtract(g, _total(np.multiply(g, out), dim)))


def _log_softmax_rule(g: Any, out: Any, dim: Any) -> Any:
    return np.subtract(g, np.multiply(np.exp(out), _total(g, dim)))


def refuse_all_but_floats(name: str, *values: Any) -> None:
    """Refuse payloads that are not of real floating point numbers."""
    for value in values:
        if value.dtype.kind != "f":
            raise NotImplementedError(
                errors.message(
                    f"{name}()",
                    expected="a floating point tensor",
                    found=errors.describe(value),
                    do="convert it with .float()",
                )
            )


def _shifted(name: str, input: Any, dim: int) -> tuple[Any, int]:
    """`input` less its maximum along `dim`, so that no exponential overflows."""
    refuse_all_but_floats(name, input)
    axis = wrap_axis(dim, input.ndim)
    if not input.size:
        return input, axis
    top = np.max(np.reshape(input, (1,)) if not input.ndim else input, axis=axis, keepdims=True)
    return np.subtract(input, top if input.ndim else input), axis


@special(input=_softmax_rule)
def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size.

    >>> import pullback
    >>> pullback.softmax(pullback.tensor([1000.0, 1000.0]), 0)
    tensor([0.5000, 0.5000])
    """
    e, axis = _shifted("softmax", input if dtype is None else input.astype(_dtypes.to_numpy(dtype)), dim)
    e = np.exp(e)
    return np.true_divide(e, _total(e, axis)) if e.ndim else e


@special(input=_log_softmax_rule)
def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """``x - log(sum(exp(x)))`` along `dim`, without the loss of precision of the logarithm of `softmax`."""
    shifted, axis = _shifted("log_softmax", input if dtype is None else input.astype(_dtypes.to_numpy(dtype)), dim)
    return np.subtract(shifted, np.log(_total(np.exp(shifted), axis))) if shifted.ndim else shifted


@composite(method=False)
def silu(input: Tensor) -> Tensor:
    """``x * sigmoid(x)``, also called Swish."""
    if not input.is_complex():
        refuse_all_but_floats("silu", input._data)
    return input * sigmoid(input)


@composite(method=False)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias`` with a weight of shape (out features, in features)."""
    for value in (input, weight):
        if not isinstance(value, Tensor):
            raise TypeError(errors.message("linear()", expected="Tensors", found=errors.describe(value)))
    out = matmul(input, weight.t())
    return out if bias is None else out + bias


def _reduced(name: str, values: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return reductions.mean(values)
    if reduction == "sum":
        return reductions.sum(values)
    if reduction == "none":
        return values
    raise ValueError(errors.message(f"{name}()", expected="reduction 'mean', 'sum' or 'none'", found=repr(reduction)))


@composite(method=False)
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The squared difference, averaged over all elements.

    >>> import pullback
    >>> pullback.nn.functional.mse_loss(pullback.tensor([1.0, 2.0]), pullback.tensor([1.0, 4.0]))
    tensor(2.)
    """
    if _dtypes.result_type([input._data, target._data]).kind != "f":
        refuse_all_but_floats("mse_loss", input._data, target._data)
    deviation = input - target
    if input._data.shape != target._data.shape:
        warnings.warn(
            f"mse_loss(): the target, of shape {list(target.shape)}, is broadcast with an input of shape "
            f"{list(input.shape)}, which is seldom what is meant.\n  What to do: give them the same shape.",
            stacklevel=2,
        )
    return _reduced("mse_loss", square(deviation), reduction)


def _check_classes(name: str, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> None:
    refuse_all_but_floats(name, input._data)
    shape, found = input._data.shape, target._data.shape
    if target._data.dtype.kind not in "iu":
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="class indices, an integer tensor, as target",
                found=errors.describe(target),
                do="convert it with target.long()",
            )
        )
    wanted = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    if not shape or found != wanted:
        raise ValueError(
            errors.message(
                f"{name}()",
                expected=f"a target of shape {list(wanted)} for an input of shape {list(shape)}",
                found=str(list(found)),
            )
        )
    classes = shape[1] if len(shape) > 1 else shape[0]
    if weight is not None and weight._data.shape != (classes,):
        raise RuntimeError(
            errors.message(
                f"{name}()", expected=f"a weight for each of {classes} classes", found=errors.describe(weight)
            )
        )
    used = target._data[target._data != ignore_index]
    bad = used[(used < 0) | (used >= classes)]
    if bad.size:
        raise IndexError(f"{name}(): Target {bad[0]} is out of bounds: expected classes 0 to {classes - 1}.")


@composite(method=False)
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """The negative log likelihood ``-input[n, target[n]]`` of classes, from log probabilities.

    input: ``(N, C)``, ``(C)`` or ``(N, C, d1, ...)``; target: class indices of the shape without C; weight: a factor
    for each class; targets equal to `ignore_index` count nothing. The mean is weighted.
    """
    _check_classes("nll_loss", input, target, weight, ignore_index)
    axis = 1 if input._data.ndim > 1 else 0
    counted = target._data != ignore_index
    index = np.expand_dims(np.where(counted, target._data, 0), axis)
    picked = gather(input, axis, wrap(index)).squeeze(axis)
    factor = np.asarray(counted, input._data.dtype)
    if weight is not None:
        factor = factor * np.asarray(weight._data)[np.where(counted, target._data, 0)]
    # where, not a product: an ignored entry of -inf must not become NaN
    losses = where(wrap(counted), -picked, 0) * factor
    if reduction == "mean":
        return reductions.sum(losses) / np.sum(factor).item()
    return _reduced("nll_loss", losses, reduction)


@composite(method=False)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy between logits and classes: `nll_loss` of `log_softmax`; or between logits and probabilities.

    input: logits of shape ``(N, C)``, ``(C)`` or ``(N, C, d1, ...)``; target: class indices, or probabilities of the
    input's shape.
    label_smoothing: how much of each class's weight is spread evenly over all (Szegedy et al. 2016, arXiv:1512.00567).

    >>> import pullback
    >>> pullback.nn.functional.cross_entropy(pullback.zeros(2, 4), pullback.tensor([0, 3]))
    tensor(1.3863)
    """
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    axis = 1 if input._data.ndim > 1 else 0
    logs = log_softmax(input, axis)
    if target._data.dtype.kind != "f":
        hard = nll_loss(logs, target, weight, ignore_index, reduction)
        if not label_smoothing:
            return hard
        return (1 - label_smoothing) * hard + label_smoothing * _smooth(
            logs, target, weight, ignore_index, reduction, axis
        )
    if target._data.shape != input._data.shape:
        raise RuntimeError(
            errors.message(
                "cross_entropy()",
                expected=f"probabilities of shape {list(input._data.shape)}",
                found=str(list(target.shape)),
            )
        )
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / input._data.shape[axis]
    losses = -reductions.sum(logs * target * _per_class(weight, input, axis), axis)
    if reduction == "mean":
        return reductions.sum(losses) / (losses.numel() or 1)
    return _reduced("cross_entropy", losses, reduction)


def _per_class(weight: Tensor | None, input: Tensor, axis: int) -> Any:
    if weight is None:
        return 1.0
    return weight.reshape([-1 if i == axis else 1 for i in range(input._data.ndim)])


def _smooth(
    logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, axis: int
) -> Tensor:
    """The part of label smoothing: the loss against every class alike."""
    counted = target._data != ignore_index
    every = -reductions.sum(logs * _per_class(weight, logs, axis), axis) / logs._data.shape[axis]
    losses = where(wrap(counted), every, 0)
    if reduction != "mean":
        return _reduced("cross_entropy", losses, reduction)
    weights = np.ones(logs._data.shape[axis]) if weight is None else weight._data
    return reductions.sum(losses) / float(np.sum(np.where(counted, weights[np.where(counted, target._data, 0)], 0)))

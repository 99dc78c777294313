"""Losses that are negative log likelihoods: the probability of the target, given a prediction."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .... import errors
from ....kernels.masks import only
from ....ops.elementwise.analysis import sigmoid
from ....ops.elementwise.limits import where
from ....ops.elementwise.powers import square
from ....ops.elementwise.value_checks import check_values
from ....ops.make.conversion import to
from ....ops.make.of_size import full_like
from ....table.calls import on
from ....table.entry import composite, pointwise
from ....table.operands import raise_where
from ....table.samples import A, Differs, S, V, inf, nan
from ....tensor import dtypes
from ....tensor.protocol import check_later, is_foreign
from ....tensor.tensor import Tensor
from ..activation import logsigmoid
from ..arguments import floating, refuse, tensors
from ..primitives import at_least
from .reduction import chosen_reduction, reduced
from .regression import NO_LOSS, REDUCTIONS, both


def _check_variance(var: Any) -> None:
    error = refuse("gaussian_nll_loss", "var to be at least 0", "a negative one", error=ValueError)
    raise_where(np.less(var, 0), error)


@composite(
    bounds="eps",
    truths="full",
    home="nn.functional",
    samples=lambda: [
        *(S(A(2, 3), A(2, 3), A(2, 3, domain="positive"), reduction=r) for r in REDUCTIONS),
        S(A(2, 3), A(2, 3), A(2, domain="positive"), True),
        S(A(2, 3), A(2, 3), A(2, 1, domain="positive"), full=True, reduction="none"),
        S(A(2, 3), A(2, 3), 0.5),
        S(A(2, 3), A(3), A(2, 3, domain="positive"), eps=0.5),
        S(A(), A(), A(domain="positive")),
        S(A(0), A(0), A(0), reduction="sum"),
    ],
    kinks=lambda: [S(V([1.0, 2.0, 0.0]), V([1.0, 3.0, 0.0]), V([0.0, 1e-9, 1e-6]), reduction="none")],
    refused=lambda: [
        S(A(2), A(2), A(3, domain="positive")),
        S(A(2, 3), A(2, 3), A(3, domain="positive")),
        S(A(2), A(2), V([1.0, -1.0])),
        S(A(2), A(2), -0.5),
        S(A(2), A(2), 1),
        S(A(2), A(2), A(2, domain="positive"), reduction="median"),
        S(A(2), A(2)),
    ],
)
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """``(log(var) + (input - target)**2 / var) / 2``: a target drawn around `input` with variance `var`.

    var: a float, or a tensor of the input's size, whose last axis may be missing or of length 1; a variance below `eps`
    counts as `eps`. full: with the constant ``log(2 pi) / 2``.
    """
    if isinstance(var, float):
        floating("gaussian_nll_loss", input, also="iu")
        var = full_like(input, var, dtype=dtypes.BY_NUMPY[dtypes.result_type([input._data, var])])
    tensors("gaussian_nll_loss", input=input, target=target, var=var)
    floating("gaussian_nll_loss", var)
    var = check_values(_check_variance, var)
    size, found = input._data.shape, var._data.shape
    if found == size[:-1] and found != size:
        var = var.unsqueeze(-1)
    elif found != size and (len(found) != len(size) or [n for n, m in zip(found, size, strict=True) if n != m] != [1]):
        raise refuse("gaussian_nll_loss", f"var of size {list(size)}", list(found), error=ValueError)
    reduction = chosen_reduction("gaussian_nll_loss", reduction)
    var = at_least(var, eps)
    losses = 0.5 * (var.log() + square(input - target) / var)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


@composite(
    home="nn.functional",
    samples=lambda: [
        *both(left="small", right="positive"),
        *(S(A(2, 3), A(2, 3, domain="positive"), full=True, reduction=r) for r in REDUCTIONS),
        *(S(A(2, 3, domain="positive"), A(2, 3, domain="positive"), False, f, eps=0.1) for f in (False, True)),
        S(A(2, 3), A(3, domain="positive")),
    ],
    kinks=lambda: [
        S(V([1.0, 2.0, 3.0]), V([0.0, 1.0, 2.0]), reduction="none"),
        S(V([1.0, 2.0, 3.0]), V([0.0, 1.0, 2.0]), full=True, reduction="none"),
        S(V([1.0, 2.0, 0.0]), V([0.0, 1.0, 2.0]), False, reduction="none"),
    ],
    refused=NO_LOSS,
    differs=lambda: [
        Differs(
            "the constant is left out if the target is at most 1, and so is its derivative",
            "kinks",
            sample="full=True",
        )
    ],
)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(input) - target * input``: a target drawn from a Poisson distribution of rate ``exp(input)``.

    log_input: False if the rate is `input` itself, to which `eps` is added in the logarithm. full: with Stirling's
    formula for ``log(target!)``, for targets above 1.
    """
    reduction = chosen_reduction("poisson_nll_loss", reduction, size_average, reduce)
    tensors("poisson_nll_loss", input=input, target=target)
    floating("poisson_nll_loss", input, target, also="iuc")
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        many = target > 1
        count = where(many, target, 1)
        losses = losses + where(many, count * count.log() - count + 0.5 * (2 * math.pi * count).log(), 0)
    return reduced(losses, reduction)


def _log_of_probability(p: Any) -> Any:
    return np.maximum(np.log(p), -100)


def _bce_rule(g: Any, input: Any, target: Any) -> Any:
    variance = np.maximum(np.multiply(np.subtract(1, input), input), 1e-12)
    return np.multiply(g, np.true_divide(np.subtract(input, target), variance))


@pointwise(
    home="nn.functional",
    node="BinaryCrossEntropyBackward0",
    saved={"reduction": lambda: 0, "weight": lambda: None},
    input=_bce_rule,
    target=lambda g, input: np.multiply(g, np.subtract(np.log(np.subtract(1, input)), np.log(input))),
)
def _bce(input: Any, target: Any) -> Any:
    for argument, value in (("input", input), ("target", target)):
        inside = np.logical_and(np.greater_equal(value, 0), np.less_equal(value, 1))
        if is_foreign(value):
            text = f"binary_cross_entropy(): all elements of {argument} should be between 0 and 1"
            check_later(np.logical_not(inside), RuntimeError(text))
        elif not np.all(inside):
            logits = "pass sigmoid(input), or give the logits to binary_cross_entropy_with_logits"
            raise refuse(
                "binary_cross_entropy",
                f"all elements of {argument} to be between 0 and 1",
                f"others, from {np.min(value)} to {np.max(value)}",
                logits if argument == "input" else "pass probabilities as target, as 0.0 and 1.0",
            )
    gain = np.multiply(target, _log_of_probability(input))
    return np.negative(np.add(gain, np.multiply(np.subtract(1, target), _log_of_probability(np.subtract(1, input)))))


_PROBABILITIES = V([[0.2, 0.7, 0.5], [0.9, 0.1, 0.4]])
_CLASSES = V([[0.1, 0.9, 0.3], [0.8, 0.2, 0.6]])
_COUNTS = V([2, 1, 3], "int64")


def same_size(name: str, input: Tensor, target: Tensor) -> None:
    """Refuse a target whose size is not the input's."""
    tensors(name, input=input, target=target)
    if input._data.shape != target._data.shape:
        raise refuse(
            name, f"a target of the input's size, {list(input._data.shape)}", list(target._data.shape), error=ValueError
        )


@composite(
    home="nn.functional",
    narrow="as the first",
    samples=lambda: [
        *(S(_PROBABILITIES, _CLASSES, reduction=r) for r in REDUCTIONS),
        *(S(_PROBABILITIES, _CLASSES, w, reduction=r) for r in REDUCTIONS for w in (_COUNTS, A(2, 1))),
        S(V(0.5), V(0.8)),
        S(A(0), A(0), reduction="sum"),
    ],
    kinks=lambda: [
        S(V([0.0, 1.0, 0.5, 0.3, 0.2]), V([0.0, 1.0, 1.0, 0.3, 0.0]), reduction="none"),
        S(V([0.0, 1.0]), V([1.0, 0.0]), reduction="none"),
    ],
    differs=lambda: [
        Differs("the bound of the variance, 1e-12, is of single precision in torch", "kinks", sample="[1.0, 0.0]"),
        Differs("torch adds 1e-12 to the divisor, in the second derivative only", "second", "float64"),
    ],
    refused=lambda: [
        S(_PROBABILITIES, V([0.0, 1.0, 0.3])),
        S(V([1.5]), V([1.0])),
        S(V([nan]), V([1.0])),
        S(V([0.5]), V([2.0])),
        S(_PROBABILITIES, _CLASSES, A(4)),
        S(_PROBABILITIES, _CLASSES, reduction="median"),
        S(V([1], "int64"), V([1], "int64")),
        S(V([0.5]), V([1.0], "float64")),
    ],
)
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, of probabilities; no logarithm is below -100.

    weight: a factor for each element, which broadcasts. The result has the dtype of `input`. From logits,
    `binary_cross_entropy_with_logits` is more exact.
    """
    reduction = chosen_reduction("binary_cross_entropy", reduction, size_average, reduce)
    same_size("binary_cross_entropy", input, target)
    floating("binary_cross_entropy", input)
    if target._data.dtype != input._data.dtype:
        raise refuse("binary_cross_entropy", f"a target of {input.dtype}, as the input is", errors.describe(target))
    losses = _bce(input, target)
    return reduced(losses if weight is None else to(losses * weight, input._data.dtype), reduction)


def _logits_rule(g: Any, input: Any, target: Any, pos_weight: Any) -> Any:
    if pos_weight is None:
        return np.multiply(g, np.subtract(on(sigmoid, input), target))
    factor = np.add(np.multiply(np.subtract(pos_weight, 1), target), 1)
    return np.multiply(g, np.subtract(np.subtract(1, target), np.multiply(factor, on(sigmoid, np.negative(input)))))


def _logits_rule_for_target(g: Any, input: Any, pos_weight: Any) -> Any:
    slope = np.negative(input)
    if pos_weight is not None:
        slope = np.subtract(slope, np.multiply(np.subtract(pos_weight, 1), on(logsigmoid, input)))
    return np.multiply(g, slope)


@pointwise(
    home="nn.functional",
    node="BinaryCrossEntropyWithLogitsBackward0",
    saved={"reduction": lambda: 0, "weight": lambda: None},
    input=_logits_rule,
    target=_logits_rule_for_target,
    pos_weight=lambda g, input, target: np.negative(np.multiply(g, np.multiply(target, on(logsigmoid, input)))),
)
def _bce_with_logits(input: Any, target: Any, pos_weight: Any = None) -> Any:
    gain = on(logsigmoid, input)
    if pos_weight is not None:
        gain = np.multiply(gain, np.add(np.multiply(np.subtract(pos_weight, 1), target), 1))
    return np.subtract(np.multiply(np.subtract(1, target), input), gain)


@composite(
    home="nn.functional",
    narrow="itself",
    samples=lambda: [
        *both(right="small"),
        *(
            S(A(2, 3), A(2, 3, domain="small"), weight=w, pos_weight=p, reduction=r)
            for r in REDUCTIONS
            for w in (None, A(2, 1))
            for p in (None, A(3, domain="positive"))
        ),
        S(A(2, 3), A(2, 3, domain="small"), _COUNTS, pos_weight=_COUNTS),
    ],
    kinks=lambda: [S(V([0.0, inf, -inf, 800.0, -800.0]), V([0.0, 1.0, 0.0, 0.5, 1.0]), reduction="none")],
    refused=lambda: [
        *NO_LOSS,
        S(A(2, 3), A(3)),
        S(A(2), A(2), A(3)),
        S(A(2), A(2), pos_weight=A(3)),
        S(A(2), V([1, 0], "int64")),
    ],
)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, for logits of any size.

    weight: a factor for each element, which broadcasts. pos_weight: a factor of the term for ``target == 1``.
    The result has the dtype of `target`.

    >>> import pullback
    >>> pullback.nn.functional.binary_cross_entropy_with_logits(pullback.tensor([0.0]), pullback.tensor([1.0]))
    tensor(0.6931)
    """
    name = "binary_cross_entropy_with_logits"
    reduction = chosen_reduction(name, reduction, size_average, reduce)
    same_size(name, input, target)
    floating(name, input, target, also="V")
    losses = _bce_with_logits(input, target, pos_weight)
    return reduced(to(losses if weight is None else losses * weight, target._data.dtype), reduction)


@pointwise(home="nn.functional", input=lambda g, input: np.multiply(g, np.add(np.log(input), 1)))
def _x_log_x(input: Any) -> Any:
    zero = np.equal(input, 0)
    return only(np.logical_not(zero), np.multiply(input, np.log(np.where(zero, 1, input))))


@composite(
    home="nn.functional",
    samples=lambda: [
        *both(right="positive")[1:],
        *(S(A(2, 3), A(2, 3), log_target=True, reduction=r) for r in (*REDUCTIONS[1:], "batchmean")),
        S(A(2, 3), A(2, 3, domain="positive"), reduction="batchmean"),
        S(A(), A(domain="positive"), reduction="batchmean"),
        S(A(2, 3), A(3, domain="positive"), reduction="sum"),
    ],
    kinks=lambda: [
        S(V([-1.0, -2.0]), V([0.5, 2.0]), reduction="none"),
        S(V([-1.0, -inf]), V([0.0, -0.5]), reduction="none", log_target=True),
    ],
    refused=lambda: [
        *NO_LOSS,
        S(A(2), A(3), reduction="sum"),
        S(V([1, 2], "int64"), V([1, 2], "int64"), reduction="sum"),
    ],
)
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)``: Kullback and Leibler's divergence of log probabilities from probabilities.

    reduction: also "batchmean", the sum divided by the length of the first axis: the mean divergence of a batch of
    distributions. log_target: the target holds log probabilities.
    """
    batch = reduction == "batchmean"
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "kl_div(): reduction: 'mean' divides by the number of elements, not by the number of distributions.\n"
            "  What to do: pass reduction='batchmean' for the mean divergence, which 'mean' is to become in torch.",
            stacklevel=errors.callers_level(),
        )
    reduction = chosen_reduction("kl_div", "sum" if batch else reduction, size_average, reduce)
    tensors("kl_div", input=input, target=target)
    floating("kl_div", input, target)
    losses = target.exp() * (target - input) if log_target else _x_log_x(target) - target * input
    total = reduced(losses, reduction)
    return total / input._data.shape[0] if batch and input._data.ndim else total


@composite(
    home="nn.functional",
    narrow="as the first",
    samples=lambda: both(right="real"),
    kinks=lambda: [
        S(V([1.0, -30.0, 30.0]), V([1.0, 1.0, -1.0])),
        S(V([-800.0, 800.0]), V([1.0, -1.0]), reduction="none"),
    ],
    refused=lambda: [*NO_LOSS, S(A(2), A(3))],
    differs=lambda: [
        Differs("800 and 1; torch's exponential overflows", "kinks", sample="800"),
        Differs("complex numbers have no margin", "values", "complex128"),
    ],
)
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """``log(1 + exp(-target * input))``, for targets 1 and -1, in the dtype of `input`."""
    reduction = chosen_reduction("soft_margin_loss", reduction, size_average, reduce)
    tensors("soft_margin_loss", input=input, target=target)
    losses = -logsigmoid(target * input)
    kind = input._data.dtype
    return reduced(to(losses, kind) if kind.kind == "f" else losses, reduction)

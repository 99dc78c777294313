"""Losses of classes: each example belongs to one class, or to several.

Classes lie along axis 1, or along the only axis. Operations in `targets.py` read and check targets of indices. The rest
are operations on tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import errors
from ....ops.elementwise.limits import relu as rectified
from ....ops.elementwise.limits import where
from ....ops.elementwise.powers import square
from ....ops.elementwise.softmax import log_softmax
from ....ops.elementwise.value_checks import check_values
from ....ops.reduce import sums
from ....ops.reduce.picking import pick
from ....table.entry import composite
from ....table.samples import A, Differs, S, V, index, inf
from ....tensor import dtypes
from ....tensor.arrays import arange_beside
from ....tensor.modes import LEVELS
from ....tensor.protocol import is_foreign
from ....tensor.tensor import Tensor, wrap
from ..activation import logsigmoid
from ..arguments import floating, refuse, tensors
from ..linear import linear as linear_layer
from .reduction import chosen_reduction, reduced
from .regression import NO_LOSS, REDUCTIONS, both
from .targets import _likelihoods, check_classes


def _axis(input: Tensor) -> int:
    return 1 if input._data.ndim > 1 else 0


def _refuse_weight(name: str, weight: Tensor | None, classes: int) -> None:
    if weight is not None and weight._data.shape != (classes,):
        raise refuse(name, f"a weight for each of {classes} classes", errors.describe(weight))


def _refuse_target(name: str, input: Tensor, target: Tensor) -> None:
    """Refuse a target that is not one class index for each element."""
    floating(name, input)
    shape, found = input._data.shape, target._data.shape
    if target._data.dtype.kind not in "iu":
        raise refuse(
            name,
            "class indices, an integer tensor, as target",
            errors.describe(target),
            "convert it with target.long()",
        )
    wanted = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    if not shape or found != wanted:
        raise refuse(
            name, f"a target of size {list(wanted)} for an input of size {list(shape)}", list(found), error=ValueError
        )


def _factors(weight: Tensor | None, target: Tensor, ignored: int) -> Tensor:
    """The weight of each element: 0, or the weight of its class."""
    counted: Any = np.not_equal(target, ignored)
    if weight is None:
        return counted
    index: Any = np.where(counted, target, 0)
    return where(counted, pick(weight.detach(), 0, index.reshape(-1)).reshape(target.shape), 0)


def _averaged(losses: Tensor, weight: Tensor | None, target: Tensor, ignored: int, reduction: str) -> Tensor:
    """As `reduced`, but the mean is weighted, over the elements that count."""
    if reduction != "mean":
        return reduced(losses, reduction)
    return sums.sum(losses) / sums.sum(_factors(weight, target, ignored))


_WEIGHT = V([0.5, 1.0, 2.0])
_LABELS = V([0, 1, 1, 2], "int64")
_IGNORING = V([0, 1, -100, 2], "int64")
_NOT_DIFFERENTIATED = [
    Differs("the weights of the classes have no derivative, as in torch", "slopes", sample="[0.5, 1.0, 2.0]")
]
_MARGINS = [Differs("torch has no second derivative", "second", "float64")]
_NO_CLASSES = [
    S(A(4, 3), index(3, 3)),
    S(A(4, 3), V([0, 1, 2, 3], "int64")),
    S(A(4, 3), V([0, 1, -1, 2], "int64")),
    S(A(4, 3), A(4)),
    S(A(4, 3), index(3, 4), A(2)),
    S(A(4, 3), index(3, 4), reduction="median"),
]


@composite(
    home="nn.functional",
    samples=lambda: [
        S(A(4, 3), index(3, 4)),
        S(A(3), index(3)),
        S(A(2, 3, 2), index(3, 2, 2)),
        S(A(2, 3, 2, 1), index(3, 2, 2, 1)),
        *(S(A(4, 3), index(3, 4), reduction=r) for r in REDUCTIONS),
        S(A(4, 3), index(3, 4), _WEIGHT),
        S(A(2, 3, 2), index(3, 2, 2), _WEIGHT, reduction="none"),
        S(A(3), index(3), _WEIGHT, reduction="sum"),
        S(A(4, 3), _IGNORING),
        S(A(4, 3), _LABELS, ignore_index=1),
        S(A(4, 3), _LABELS, _WEIGHT, ignore_index=1),
        S(A(3), V(-100, "int64")),
        S(A(2, 3), V([-100, -100], "int64")),
        S(A(0, 3), index(3, 0)),
        S(A(4, 3, layout="T"), index(3, 4)),
    ],
    kinks=lambda: [
        S(V([[-inf, 0.0], [-1.0, -inf]]), V([1, 0], "int64")),
        S(V([[-inf, 0.0], [-1.0, -inf]]), V([0, -100], "int64")),
    ],
    refused=lambda: [*_NO_CLASSES, S(A(), index(3))],
    differs=_NOT_DIFFERENTIATED,
)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood ``-input[n, target[n]]`` of classes, from log probabilities.

    input: ``(N, C)``, ``(C)`` or ``(N, C, d1, ...)``; target: class indices of the shape without C; weight: a factor
    for each class; targets equal to `ignore_index` do not count. The mean is weighted.
    """
    reduction = chosen_reduction("nll_loss", reduction, size_average, reduce)
    tensors("nll_loss", input=input, target=target)
    return _nll("nll_loss", input, target, weight, ignore_index, reduction)


def _nll(name: str, input: Tensor, target: Tensor, weight: Any, ignored: int, reduction: str) -> Tensor:
    _refuse_target(name, input, target)
    axis = _axis(input)
    _refuse_weight(name, weight, input._data.shape[axis])
    if weight is None and not LEVELS.n and not is_foreign(target._data):  # no transform reads the target
        return _likelihoods(input, target, axis, ignored, reduction)
    losses = _likelihoods(input, target, axis, ignored, "none")
    if weight is not None:
        losses = losses * _factors(weight, target, ignored)
    return _averaged(losses, weight, target, ignored, reduction)


@composite(
    home="nn.functional",
    fused=True,
    samples=lambda: [
        S(A(4, 3), index(3, 4)),
        S(A(3), index(3)),
        S(A(2, 3, 2), index(3, 2, 2)),
        *(S(A(4, 3), index(3, 4), reduction=r) for r in REDUCTIONS),
        S(A(4, 3), index(3, 4), _WEIGHT),
        S(A(4, 3), _IGNORING),
        S(A(4, 3), _LABELS, _WEIGHT, ignore_index=1),
        *(S(A(4, 3), index(3, 4), label_smoothing=0.1, reduction=r) for r in REDUCTIONS),
        *(S(A(4, 3), _IGNORING, _WEIGHT, label_smoothing=0.1, reduction=r) for r in REDUCTIONS),
        S(A(2, 3, 2), V([[0, 1], [2, -100]], "int64"), _WEIGHT, label_smoothing=0.2),
        S(A(3), index(3), label_smoothing=0.1),
        *(S(A(4, 3), A(4, 3, domain="probability"), reduction=r) for r in REDUCTIONS),
        S(A(4, 3), A(4, 3, domain="probability"), _WEIGHT),
        S(A(4, 3), A(4, 3, domain="probability"), _WEIGHT, label_smoothing=0.1),
        S(A(2, 3, 2), A(2, 3, 2, domain="positive"), _WEIGHT, reduction="none"),
        S(A(3), A(3, domain="positive")),
        S(A(0, 3), index(3, 0)),
        S(A(3), V(-100, "int64")),
        S(A(2, 3), V([-100, -100], "int64"), label_smoothing=0.1),
        S(A(4, 3, layout="T"), index(3, 4)),
    ],
    kinks=lambda: [
        S(V([[-inf, 0.0], [100.0, -1000.0]]), V([1, 0], "int64")),
        S(V([[-inf, 0.0], [1.0, 2.0]]), V([0, -100], "int64")),
    ],
    refused=lambda: [
        *_NO_CLASSES,
        S(A(4, 3), A(4, 2)),
        S(A(4, 3), index(3, 4, 3)),
        S(A(4, 3), A(4, 3), ignore_index=1),
        S(A(4, 3), index(3, 4), label_smoothing=1.5),
        S(A(4, 3), A(4, 3), A(2)),
    ],
    differs=_NOT_DIFFERENTIATED,
)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy between logits and classes, `nll_loss` of `log_softmax`; or between logits and probabilities.

    input: logits of shape ``(N, C)``, ``(C)`` or ``(N, C, d1, ...)``; target: class indices, or probabilities of the
    input's shape.
    label_smoothing: the part of a target that is spread over all classes (Szegedy et al. 2016, arXiv:1512.00567).

    >>> import pullback
    >>> pullback.nn.functional.cross_entropy(pullback.zeros(2, 4), pullback.tensor([0, 3]))
    tensor(1.3863)
    """
    reduction = chosen_reduction("cross_entropy", reduction, size_average, reduce)
    tensors("cross_entropy", input=input, target=target)
    if not 0 <= label_smoothing <= 1:
        raise refuse("cross_entropy", "label_smoothing between 0 and 1", label_smoothing)
    axis, shape = _axis(input), input._data.shape
    if target._data.shape == shape:
        return _of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    logs = log_softmax(input, axis)
    hard = _nll("cross_entropy", logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return hard
    every = -sums.sum(_times(logs, weight), axis) / shape[axis]
    every = where(np.not_equal(target, ignore_index), every, 0)
    smooth = _averaged(every, weight, target, ignore_index, reduction)
    return (1 - label_smoothing) * hard + label_smoothing * smooth


def _times(values: Tensor, weight: Tensor | None) -> Tensor:
    """The values, each multiplied by the weight of its class."""
    if weight is None:
        return values
    return values * weight.reshape([-1 if i == _axis(values) else 1 for i in range(values._data.ndim)])


def _of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Tensor:
    floating("cross_entropy", input)
    if target._data.dtype.kind != "f":
        raise refuse(
            "cross_entropy",
            "floating point numbers as target, class probabilities, as it is of the input's shape",
            errors.describe(target),
            f"convert it with target.{dtypes.to_default()}; or pass the class of each, "
            "target.argmax(1), instead of one-hot vectors",
        )
    axis, classes = _axis(input), input._data.shape[_axis(input)]
    if ignore_index >= 0:
        raise refuse("cross_entropy", "no ignore_index with a target of probabilities", ignore_index)
    _refuse_weight("cross_entropy", weight, classes)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    losses = -sums.sum(_times(log_softmax(input, axis) * target, weight), axis)
    if reduction == "mean":
        return sums.sum(losses) / (losses.numel() or 1)
    return reduced(losses, reduction)


@composite(
    home="nn.functional",
    samples=lambda: [
        S(A(4, 3), A(5, 3), index(5, 4)),
        S(A(3), A(5, 3), index(5)),
        S(A(4, 3), A(5, 2, 3), index(5, 4, 2), linear_bias=A(5, 2)),
        S(A(4, 3), A(3, 3), _IGNORING, linear_bias=A(3), weight=_WEIGHT, label_smoothing=0.1),
        S(A(4, 3), A(3, 3), _LABELS, ignore_index=1, reduction="none"),
        S(A(4, 3), A(3, 3), A(4, 3, domain="probability"), reduction="sum"),
    ],
    refused=lambda: [
        S(A(1, 4, 3), A(5, 3), index(5, 4)),
        S(A(4, 3), A(3), index(3, 4)),
        S(A(4, 3), A(5, 2), index(5, 4)),
        S(A(4, 3), A(5, 3), index(5, 4), linear_bias=A(4)),
        S(A(3), A(5, 2, 3), index(5, 2)),
        S(A(4, 3), A(3, 3), A(4, 3), ignore_index=1),
    ],
    differs=lambda: _NOT_DIFFERENTIATED,
)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of ``input @ linear_weight.T + linear_bias``.

    input: ``(N, in)`` or ``(in)``; linear_weight: ``(C, in)``, or ``(C, d1, ..., in)`` for logits ``(N, C, d1, ...)``;
    linear_bias: of the shape of the weight without its last axis. options: torch's ways to save memory; they have no
    effect here, and do not change the result in torch.
    """
    name = "linear_cross_entropy"
    tensors(name, input=input, linear_weight=linear_weight, target=target)
    shape, size = input._data.shape, linear_weight._data.shape
    if len(shape) not in (1, 2) or len(size) < 2 or shape[-1] != size[-1] or (len(shape) == 1 and len(size) > 2):
        raise refuse(name, "an input (N, in) and a weight (C, ..., in)", f"sizes {list(shape)} and {list(size)}")
    if linear_bias is not None and linear_bias._data.shape != size[:-1]:
        raise refuse(name, f"a bias of size {list(size[:-1])}", list(linear_bias._data.shape))
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear_layer(input, linear_weight.reshape(-1, size[-1]), bias).reshape(*shape[:-1], *size[:-1])
    if ignore_index is not None and target._data.shape == logits._data.shape:
        raise refuse(name, "no ignore_index with a target of probabilities", ignore_index)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


# Margins between classes ----------------------------------------------------------------------------------------------


def _vectors(name: str, input: Tensor) -> int:
    """The number of classes of an input, which is one vector or a batch of vectors."""
    floating(name, input)
    shape = input._data.shape
    if len(shape) > 2 or 0 in shape[-1:]:
        raise refuse(name, "an input of size (N, C) or (C), with at least one class", f"size {list(shape)}")
    return shape[-1] if shape else 1


@composite(
    scalars="margin",
    home="nn.functional",
    samples=lambda: [
        S(A(4, 3), index(3, 4)),
        S(A(3), index(3)),
        S(A(3), index(3, 1), reduction="none"),
        S(A(1, 3), index(3), reduction="none"),
        S(A(), index(1)),
        *(S(A(4, 3), index(3, 4), p=2, margin=0.7, reduction=r) for r in REDUCTIONS),
        *(S(A(4, 3), index(3, 4), 1, 1.5, _WEIGHT, reduction=r) for r in REDUCTIONS),
        S(A(4, 3, layout="T"), index(3, 4), 2, 1.0, _WEIGHT),
    ],
    kinks=lambda: [S(V([[1.0, 0.0, 2.0], [0.0, 0.0, -1.0]]), V([0, 1], "int64"), reduction="none")],
    refused=lambda: [
        S(A(4, 3), index(3, 3)),
        S(A(4, 3), V([0, 1, 2, 3], "int64")),
        S(A(4, 3), index(3, 4), p=3),
        S(A(2, 0), index(1, 2)),
        S(A(4, 3), index(3, 4), weight=A(2)),
        S(A(4, 3), index(3, 4), weight=A(1, 3)),
        S(A(4, 3, 2), index(3, 4)),
        S(A(4, 3), index(3, 4), reduction="median"),
        S(A(4, 3), A(4)),
    ],
    differs=lambda: [*_MARGINS, *_NOT_DIFFERENTIATED],
)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: Any = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum over i != y of max(0, margin - input[y] + input[i])**p``, over the number of classes; p is 1 or 2.

    input: scores ``(N, C)`` or ``(C)``; target: the class y of each example; weight: a factor for each class.
    """
    name = "multi_margin_loss"
    reduction = chosen_reduction(name, reduction, size_average, reduce)
    tensors(name, input=input, target=target)
    if p not in (1, 2):
        raise refuse(name, "p to be 1 or 2", p, error=ValueError)
    if weight is not None and weight._data.ndim != 1:
        raise refuse(name, "weight to have one axis", errors.describe(weight), error=ValueError)
    n = _vectors(name, input)
    _refuse_weight(name, weight, n)
    if target._data.dtype.kind not in "iu" or target._data.ndim > 1 or target._data.size * n != input._data.size:
        raise refuse(name, "a class index for each row of the input", errors.describe(target))
    rows, classes = input.reshape(-1, n), check_values(check_classes, target.long(), n).reshape(-1, 1)
    short = rectified(margin - pick(rows, 1, classes) + rows)
    short = where(wrap(arange_beside(classes, n)) != classes, square(short) if p == 2 else short, 0)
    losses = sums.sum(short, 1) / n
    if weight is not None:
        losses = losses * pick(weight.detach(), 0, classes.squeeze(1))
    return reduced(losses.reshape(target.shape), reduction)


@composite(
    home="nn.functional",
    samples=lambda: [
        *(S(A(2, 4), V([[3, 0, -1, 1], [2, -1, -1, -1]], "int64"), reduction=r) for r in REDUCTIONS),
        S(A(4), V([0, 3, 1, -1], "int64")),
        S(A(4), V([0, 3, 1, 2], "int64")),
        S(A(4, layout="step"), V([-1, 3, 1, 2], "int64"), reduction="none"),
        S(A(), V(0, "int64")),
    ],
    refused=lambda: [
        S(A(2, 4), index(3, 2)),
        S(A(4), V([4, 0, 0, 0], "int64")),
        S(A(4), V([-2, 0, 0, 0], "int64")),
        S(A(1, 2, 4), index(3, 1, 2, 4)),
        S(A(4), A(4)),
        S(A(4), index(4, 4), reduction="median"),
    ],
    differs=_MARGINS,
)
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """``sum over y, i of max(0, 1 - input[y] + input[i])``, y a target and i not, over the number of classes.

    input: scores ``(N, C)`` or ``(C)``; target: of the same size, the classes of each example, and -1 after the last.
    """
    name = "multilabel_margin_loss"
    reduction = chosen_reduction(name, reduction, size_average, reduce)
    tensors(name, input=input, target=target)
    n = _vectors(name, input)
    if target._data.dtype.kind not in "iu" or target._data.shape != input._data.shape:
        raise refuse(name, f"class indices of size {list(input._data.shape)}", errors.describe(target))
    rows, target = input.reshape(-1, n), target.reshape(-1, n)
    classes = check_values(check_classes, where(target.eq(-1), 0, target).long(), n)
    valid = np.equal(np.equal(target, -1).cumsum(1), 0)  # up to the first -1
    mine = (classes.unsqueeze(-1) == wrap(arange_beside(classes, n))) & valid.unsqueeze(-1)
    pairs = valid.unsqueeze(-1) & ~mine.any(-2).unsqueeze(-2)
    short = rectified(1 - pick(rows, 1, classes).unsqueeze(-1) + rows.unsqueeze(-2))
    losses = sums.sum(where(pairs, short, 0), (-2, -1)) / n
    return reduced(losses.reshape(input.shape[:-1]), reduction)


@composite(
    home="nn.functional",
    samples=lambda: [
        *both()[:4],
        S(A(3), A(3)),
        S(A(2, 3, 2), A(2, 3, 2), A(2), reduction="none"),
        S(A(2, 3), A(2, 3), A(3)),
        S(A(3, 2, layout="T"), A(3, 2, layout="step")),
    ],
    refused=lambda: [*NO_LOSS, S(A(2), A(3)), S(A(2), A(2), A(3))],
)
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of ``sigmoid(input)``, averaged over the last axis: each class is present or not."""
    reduction = chosen_reduction("multilabel_soft_margin_loss", reduction, size_average, reduce)
    tensors("multilabel_soft_margin_loss", input=input, target=target)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    losses = losses if weight is None else losses * weight
    return reduced(sums.sum(losses, -1) / losses.size(-1), reduction)

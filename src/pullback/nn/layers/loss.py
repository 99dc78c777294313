"""Losses as modules: the distance of a network's output from its target.

All take `reduction`: ``"mean"``, ``"sum"``, or ``"none"`` for the losses of the single elements. `size_average` and
`reduce` are torch's older names for it. The formulas are those of the functions of `nn.functional`. Losses with the
same settings in the same order derive from one class that holds these settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

from ... import errors
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from ..functional.losses.reduction import chosen_reduction
from .distance import PairwiseDistance
from .layer import Layer, layer


class _Loss(Layer):
    """A loss: its weights are buffers, and its repr shows nothing."""

    _shown = ""
    reduction: str

    def __post_init__(self) -> None:
        own = vars(self)
        average, reduce = own.pop("size_average", None), own.pop("reduce", None)
        if average is not None or reduce is not None:
            self.reduction = chosen_reduction(type(self).__name__, self.reduction, average, reduce)
        for name in ("weight", "pos_weight"):
            if name in own:
                self.register_buffer(name, own.pop(name))


@layer
class _ReducedLoss(_Loss):
    """A loss whose settings begin with the reduction."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@layer
class _BinaryLoss(_Loss):
    """A loss of targets that are 0 or 1, or probabilities, with a weight."""

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@layer
class _ClassLoss(_Loss):
    """A loss of class scores, with a weight for each class and a class that is ignored."""

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"


@layer
class _MarginLoss(_Loss):
    """A loss with a margin."""

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


class L1Loss(_ReducedLoss):
    """``|input - target|``.

    >>> import pullback
    >>> pullback.nn.L1Loss()(pullback.tensor([1.0, 2.0]), pullback.zeros(2))
    tensor(1.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_ReducedLoss):
    """``(input - target)^2``.

    >>> import pullback
    >>> pullback.nn.MSELoss()(pullback.tensor([1.0, 2.0]), pullback.zeros(2))
    tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


@layer
class SmoothL1Loss(_ReducedLoss):
    """``d^2 / (2 beta)`` where ``d = |input - target|`` is less than `beta`, else ``d - beta / 2``.

    >>> import pullback
    >>> pullback.nn.SmoothL1Loss(reduction="none")(pullback.tensor([0.5, 2.0]), pullback.zeros(2))
    tensor([0.1250, 1.5000])
    """

    beta: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


@layer
class HuberLoss(_Loss):
    """``d^2 / 2`` where ``d = |input - target|`` is less than `delta`, else ``delta (d - delta / 2)``.

    >>> import pullback
    >>> pullback.nn.HuberLoss("none", delta=2.0)(pullback.tensor([1.0, 3.0]), pullback.zeros(2))
    tensor([0.5000, 4.0000])
    """

    reduction: str = "mean"
    delta: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.delta, (float, int)):
            raise TypeError(
                errors.message("HuberLoss(): delta", expected="a number", found=errors.describe(self.delta))
            )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


@layer
class CrossEntropyLoss(_ClassLoss):
    """``-log softmax(input)[target]``, where `input` holds scores of classes along dimension 1.

    The target is a class for each place, or a probability for each class. `weight` holds one number for each class.

    >>> import pullback
    >>> pullback.nn.CrossEntropyLoss()(pullback.tensor([[1.0, 2.0]]), pullback.tensor([1]))
    tensor(0.3133)
    """

    label_smoothing: float = 0.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_ClassLoss):
    """``-input[target]``, where `input` holds logarithms of probabilities of classes along dimension 1.

    >>> import pullback
    >>> pullback.nn.NLLLoss()(pullback.tensor([[-2.0, -0.5]]), pullback.tensor([1]))
    tensor(0.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        weight, ignored = self.weight, self.ignore_index
        return F.nll_loss(input, target, weight=weight, ignore_index=ignored, reduction=self.reduction)


@layer
class PoissonNLLLoss(_Loss):
    """``exp(input) - target * input``, or with ``log_input=False`` ``input - target * log(input + eps)``.

    With `full`, Stirling's approximation of ``log(target!)`` is added.

    >>> import pullback
    >>> pullback.nn.PoissonNLLLoss()(pullback.zeros(1), pullback.ones(1))
    tensor(1.)
    """

    log_input: bool = True
    full: bool = False
    size_average: Any = None
    eps: float = 1e-8
    reduce: Any = None
    reduction: str = "mean"

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


@layer
class GaussianNLLLoss(_Loss):
    """``(log(var) + (input - target)^2 / var) / 2``, with `full` plus ``log(2 pi) / 2``; var is at least `eps`.

    >>> import pullback
    >>> pullback.nn.GaussianNLLLoss()(pullback.zeros(1), pullback.ones(1), pullback.ones(1))
    tensor(0.5000)
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


@layer
class KLDivLoss(_ReducedLoss):
    """``target * (log(target) - input)``: the divergence of ``exp(input)`` from the target.

    `reduction` may also be ``"batchmean"``. With `log_target` the target is given by its logarithm as well.

    >>> import pullback
    >>> pullback.nn.KLDivLoss(reduction="sum")(pullback.tensor([0.5, 0.5]).log(), pullback.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    log_target: bool = False

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_BinaryLoss):
    """``-(target log(input) + (1 - target) log(1 - input))``, where `input` holds probabilities.

    >>> import pullback
    >>> pullback.nn.BCELoss()(pullback.tensor([0.5]), pullback.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


@layer
class BCEWithLogitsLoss(_BinaryLoss):
    """`BCELoss` of ``sigmoid(input)``, without loss of digits; `pos_weight` is the weight of the targets that are 1.

    >>> import pullback
    >>> pullback.nn.BCEWithLogitsLoss()(pullback.tensor([0.0]), pullback.tensor([1.0]))
    tensor(0.6931)
    """

    pos_weight: Tensor | None = None

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


@layer
class HingeEmbeddingLoss(_MarginLoss):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    >>> import pullback
    >>> pullback.nn.HingeEmbeddingLoss()(pullback.tensor([0.5, 0.25]), pullback.tensor([1.0, -1.0]))
    tensor(0.6250)
    """

    margin: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_ReducedLoss):
    """``log(1 + exp(-target * input))``, for targets of 1 and -1.

    >>> import pullback
    >>> pullback.nn.SoftMarginLoss()(pullback.zeros(1), pullback.ones(1))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


@layer
class MultiMarginLoss(_Loss):
    """``sum_i max(0, margin - input[target] + input[i])^p / C`` over the classes that are not the target.

    >>> import pullback
    >>> pullback.nn.MultiMarginLoss()(pullback.tensor([[0.25, 0.75]]), pullback.tensor([1]))
    tensor(0.2500)
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p not in (1, 2):
            raise ValueError(errors.message("MultiMarginLoss(): p", expected="1 or 2", found=errors.describe(self.p)))
        if self.weight is not None and self.weight.ndim != 1:
            found = errors.describe(self.weight)
            raise ValueError(errors.message("MultiMarginLoss(): weight", expected="None or a 1D tensor", found=found))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        margin, weight = self.margin, self.weight
        return F.multi_margin_loss(input, target, p=self.p, margin=margin, weight=weight, reduction=self.reduction)


class MultiLabelMarginLoss(_ReducedLoss):
    """``sum_ij max(0, 1 - input[target[j]] + input[i]) / C`` over the classes i that are not targets.

    The targets of a sample are the classes before the first -1.

    >>> import pullback
    >>> pullback.nn.MultiLabelMarginLoss()(pullback.tensor([[0.0, 0.5]]), pullback.tensor([[1, -1]]))
    tensor(0.2500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_BinaryLoss):
    """The mean of `BCEWithLogitsLoss` over the classes. The target of a class is 1 where it is present, else 0.

    >>> import pullback
    >>> pullback.nn.MultiLabelSoftMarginLoss()(pullback.zeros(1, 2), pullback.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """``1 - cos(input1, input2)`` where the target is 1, ``max(0, cos(input1, input2) - margin)`` where it is -1.

    >>> import pullback
    >>> x, y = pullback.tensor([[1.0, 0.0]]), pullback.tensor([[0.0, 1.0]])
    >>> pullback.nn.CosineEmbeddingLoss()(x, y, pullback.tensor([1.0]))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """``max(0, -target (input1 - input2) + margin)``: with target 1 the first should be greater, with -1 the second.

    >>> import pullback
    >>> pullback.nn.MarginRankingLoss()(pullback.tensor([1.0]), pullback.tensor([3.0]), pullback.tensor([1.0]))
    tensor(2.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


def _check_margin(loss: Any) -> None:
    if not loss.margin > 0:
        where = f"{type(loss).__name__}(): margin"
        raise ValueError(errors.message(where, expected="to be greater than 0", found=errors.describe(loss.margin)))


@layer
class TripletMarginLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, where d is the distance in the norm `p`.

    With `swap`, ``d(positive, negative)`` is taken if it is smaller than ``d(anchor, negative)``.

    >>> import pullback
    >>> a, p, n = pullback.zeros(1, 1), pullback.ones(1, 1), pullback.full((1, 1), 1.5)
    >>> pullback.nn.TripletMarginLoss()(a, p, n)
    tensor(0.5000)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_margin(self)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        settings: dict[str, Any] = {"margin": self.margin, "p": self.p, "eps": self.eps, "swap": self.swap}
        return F.triplet_margin_loss(anchor, positive, negative, **settings, reduction=self.reduction)


@layer
class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance, a function or a module; `PairwiseDistance` unless given.

    >>> import pullback
    >>> loss = pullback.nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(-1))
    >>> loss(pullback.zeros(1, 1), pullback.ones(1, 1), pullback.full((1, 1), 1.5))
    tensor(0.5000)
    """

    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_margin(self)
        given = vars(self).pop("distance_function")
        self.distance_function = PairwiseDistance() if given is None else given

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        settings: dict[str, Any] = {"distance_function": self.distance_function, "margin": self.margin}
        settings |= {"swap": self.swap, "reduction": self.reduction}
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, **settings)


@layer
class CTCLoss(_Loss):
    """``-log`` of the probability of a sequence, summed over all its alignments with the steps (Graves et al., 2006).

    >>> import pullback
    >>> scores = pullback.zeros(2, 1, 2).log_softmax(2)  # two steps, one sample, blank and one class
    >>> pullback.nn.CTCLoss()(scores, pullback.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )

"""The last layer of a classifier, joined with its loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ... import errors
from ...ops.shape.joining import cat
from ...tensor.tensor import Tensor, wrap
from .. import functional as F  # noqa: N812 - the field's name for it
from ..containers import ModuleList, Sequential
from ..module import Module
from .linear import Linear


class LinearCrossEntropyLoss(Module):
    """`CrossEntropyLoss` of the output of a `Linear` for the input, (N, in_features) or (in_features,).

    With `out_features` there are that many positions, each with `num_classes` scores. torch's `options`, which divide
    the work, are refused: the work is not divided here.

    >>> import pullback
    >>> loss = pullback.nn.LinearCrossEntropyLoss(4, 3)
    >>> loss(pullback.zeros(2, 4), pullback.tensor([0, 2])).item()
    1.0986...

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.LinearCrossEntropyLoss.html.
    """

    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__()
        where = "LinearCrossEntropyLoss()"
        if weight is not None and tuple(weight.shape) != (num_classes,):
            expected = f"weight of shape {(num_classes,)}"
            raise RuntimeError(errors.message(where, expected=expected, found=errors.describe(weight)))
        if not 0 <= label_smoothing <= 1:
            found = errors.describe(label_smoothing)
            raise RuntimeError(errors.message(where, expected="label_smoothing from 0 to 1", found=found))
        if options is not None:
            raise NotImplementedError(errors.message(where, expected="no options", found=errors.describe(options)))
        self.reduction, self.num_classes, self.out_features = reduction, num_classes, out_features
        self.register_buffer("weight", weight)
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        scores = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, scores, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        where, shape = "LinearCrossEntropyLoss", (*input.shape[:-1], self.num_classes, *self.out_features)
        if input.ndim not in (1, 2) or (input.ndim == 1 and self.out_features):
            expected = "an input of 2 dimensions, or of 1 without out_features"
            raise RuntimeError(errors.message(where, expected=expected, found=errors.describe(input)))
        if self.ignore_index is not None and tuple(target.shape) == shape:
            expected = "no ignore_index where the target has probabilities"
            raise RuntimeError(errors.message(where, expected=expected, found=str(self.ignore_index)))
        return F.cross_entropy(
            self.linear(input).reshape(shape),
            target,
            weight=self.weight,
            ignore_index=-100 if self.ignore_index is None else self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        settings = f"in_features={self.linear.in_features}, num_classes={self.num_classes}"
        settings += f", out_features={self.out_features}, bias={self.linear.bias is not None}"
        settings += f", reduction={self.reduction}, ignore_index={self.ignore_index}"
        return f"{settings}, label_smoothing={self.label_smoothing}, options={self.options}"


class _ASMoutput(NamedTuple):
    """The logarithms of the probabilities of the targets, and the loss, which is minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over very many classes, the frequent ones first, in clusters (Grave et al., 2017).

    The head has a score for each class before ``cutoffs[0]``, and one for each cluster, which holds the classes from
    one cutoff to the next. The scores within cluster i = 1, 2, ... come through ``in_features // div_value ** i``
    features. The call takes (N, in_features) and classes (N,), or one of each, and returns `output`, the logarithms of
    their probabilities, and `loss`.

    >>> import pullback
    >>> layer = pullback.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[4, 10], div_value=2.0)
    >>> layer(pullback.zeros(3, 8), pullback.tensor([0, 5, 19])).output.shape
    pullback.Size([3])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveLogSoftmaxWithLoss.html.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where, bounds = "AdaptiveLogSoftmaxWithLoss(): cutoffs", [0, *cutoffs, n_classes]
        if len(bounds) == 2 or any(int(b) != b or a >= b for a, b in pairwise(bounds)):
            expected = f"integers that increase, from 1 to n_classes - 1 = {n_classes - 1}, one or more"
            raise ValueError(errors.message(where, expected=expected, found=str(list(cutoffs))))
        kind = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, bounds[1:]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = bounds[1], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**i)
            into, out = Linear(in_features, width, False, **kind), Linear(width, high - low, False, **kind)
            self.tail.append(Sequential(into, out))

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.ndim > 1 or input_.ndim != target_.ndim + 1 or input_.shape[:-1] != target_.shape:
            where, found = "AdaptiveLogSoftmaxWithLoss", f"{errors.describe(input_)} and {errors.describe(target_)}"
            expected = "an input (N, in_features) and a target (N,), or without N"
            raise RuntimeError(errors.message(where, expected=expected, found=found))
        input, target = (input_, target_) if target_.ndim else (input_.unsqueeze(0), target_.unsqueeze(0))
        classes = target.detach().numpy()
        if not ((classes >= 0) & (classes < self.n_classes)).all():
            where, expected = "AdaptiveLogSoftmaxWithLoss: target", f"classes from 0 to {self.n_classes - 1}"
            found = f"from {classes.min()} to {classes.max()}"
            raise RuntimeError(errors.message(where, expected=expected, found=found))
        cluster = np.searchsorted(self.cutoffs, classes, side="right")
        column = np.where(cluster, self.shortlist_size + cluster - 1, classes)
        output = _picked(self.head(input), column)
        for i, (low, _) in enumerate(pairwise(self.cutoffs)):
            rows = np.flatnonzero(cluster == i + 1)
            if rows.size:
                within = _picked(self.tail[i](input[wrap(rows)]), classes[rows] - low)
                output = output.index_add(0, wrap(rows), within)
        loss = -output.mean()
        return _ASMoutput(output if target_.ndim else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes, (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail, self.shortlist_size):
            parts.append(F.log_softmax(tail(input), 1) + head[:, i : i + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each sample, (N,); only the most likely clusters are computed."""
        found = self.head(input).argmax(1)
        rows = np.flatnonzero(found.numpy() >= self.shortlist_size)
        if rows.size:
            found[wrap(rows)] = self.log_prob(input[wrap(rows)]).argmax(1)
        return found


def _picked(scores: Tensor, column: Any) -> Tensor:
    """The logarithm of the softmax of each row at one column."""
    return F.log_softmax(scores, 1).gather(1, wrap(column[:, None])).squeeze(1)

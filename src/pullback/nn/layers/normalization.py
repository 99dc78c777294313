"""Normalization, as modules: values are shifted and scaled to mean 0 and variance 1, over a batch, a sample or a part.

Layers with parameters then multiply by `weight`, at first ones, and add `bias`, at first zeros.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, ClassVar

from ... import errors
from ...ops.make.of_size import empty, ones, zeros
from ...tensor import dtypes
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .. import init
from ..module import Module
from ..parameter import Parameter
from .layer import Layer, layer


class _Affine(Module):
    """A module with a weight and a bias that multiply and add at the end."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(self, shape: tuple[int, ...], weight: bool, bias: bool, **kind: Any) -> None:
        self.register_parameter("weight", Parameter(empty(*shape, **kind)) if weight else None)
        self.register_parameter("bias", Parameter(empty(*shape, **kind)) if weight and bias else None)

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        for name, parameter in self.named_parameters(recurse=False):
            (init.zeros_ if name == "bias" else init.ones_)(parameter)


class _Running(_Affine):
    """The common part of batch and instance normalization: running statistics."""

    _dims: ClassVar[tuple[int, int]]  # the numbers of dimensions an input may have
    _version = 2
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def _set_up(self, num_features: int, eps: float, momentum: float | None, **kind: Any) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        tracked = self.track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **kind) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **kind) if tracked else None)
        self.register_buffer("num_batches_tracked", zeros((), dtype=dtypes.int64) if tracked else None)

    def reset_running_stats(self) -> None:
        """Reset the statistics: mean 0, variance 1."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros, and reset the statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._dims:
            allowed = " or ".join(f"{n}D" for n in sorted(set(self._dims)))
            where = f"{type(self).__name__}: expected {allowed} input"
            raise ValueError(errors.message(where, found=errors.describe(input)))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        """Load also states that were saved before batches were counted."""
        version, counted = local_metadata.get("version"), self.num_batches_tracked
        if (version is None or version < 2) and counted is not None:
            state_dict.setdefault(f"{prefix}num_batches_tracked", counted)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make((num_features,), affine, bias, device=device, dtype=dtype)
        self._set_up(num_features, eps, momentum, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        counted = self.num_batches_tracked if self.training and self.track_running_stats else None
        momentum = 0.0 if self.momentum is None else self.momentum
        if counted is not None and self.momentum is None:  # the mean over all batches
            momentum = 1.0 / (float(counted) + 1.0)
        used = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if used else (None, None)
        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        if counted is not None:  # before: where a part is recomputed for its saved tensors, nothing after the last runs
            counted.add_(1)
        try:
            return F.batch_norm(input, mean, var, self.weight, self.bias, of_batch, momentum, self.eps)
        except (ValueError, TypeError, RuntimeError):  # what is refused counts as nothing
            if counted is not None:
                counted.sub_(1)
            raise


class BatchNorm1d(_BatchNorm):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel of (N, C) or (N, C, L), over the batch.

    In training, mean and variance are those of the batch, and `running_mean` and `running_var` move towards them by
    `momentum`; with None they are the means over all batches. After `eval()` the running statistics are used.

    >>> import pullback
    >>> pullback.nn.BatchNorm1d(1, affine=False)(pullback.tensor([[1.0], [3.0]]))
    tensor([[-1.0000],
            [ 1.0000]])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html.
    """

    _dims = 2, 3


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` of (N, C, H, W).

    >>> import pullback
    >>> norm = pullback.nn.BatchNorm2d(3)
    >>> norm(pullback.zeros(2, 3, 4, 4)).shape, norm.num_batches_tracked
    (pullback.Size([2, 3, 4, 4]), tensor(1))

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html.
    """

    _dims = 4, 4


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.BatchNorm3d(3)(pullback.zeros(2, 3, 2, 2, 2)).shape
    pullback.Size([2, 3, 2, 2, 2])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm3d.html.
    """

    _dims = 5, 5


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make((num_features,), affine, bias, device=device, dtype=dtype)
        self._set_up(num_features, eps, momentum, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.ndim == self._dims[0]
        channels = input.shape[0 if single else 1]
        if channels != self.num_features:
            text = f"{type(self).__name__}: expected {self.num_features} channels, num_features, found {channels}"
            if self.affine:
                raise ValueError(text)
            warnings.warn(f"{text}, which makes no difference as affine=False", stacklevel=errors.callers_level())
        of_sample, momentum = self.training or not self.track_running_stats, self.momentum or 0.0
        statistics = self.running_mean, self.running_var, self.weight, self.bias, of_sample, momentum, self.eps
        if single:
            return F.instance_norm(input[None], *statistics)[0]
        return F.instance_norm(input, *statistics)


class InstanceNorm1d(_InstanceNorm):
    """`BatchNorm1d` over each channel of each sample of (N, C, L) or (C, L). It has no parameters unless `affine`.

    >>> import pullback
    >>> pullback.nn.InstanceNorm1d(1)(pullback.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm1d.html.
    """

    _dims = 2, 3


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` of (N, C, H, W) or (C, H, W).

    >>> import pullback
    >>> pullback.nn.InstanceNorm2d(3, affine=True)(pullback.zeros(2, 3, 4, 4)).shape
    pullback.Size([2, 3, 4, 4])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm2d.html.
    """

    _dims = 3, 4


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` of (N, C, D, H, W) or (C, D, H, W).

    >>> import pullback
    >>> pullback.nn.InstanceNorm3d(3)(pullback.zeros(2, 3, 2, 2, 2)).shape
    pullback.Size([2, 3, 2, 2, 2])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm3d.html.
    """

    _dims = 4, 5


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    return tuple(normalized_shape) if isinstance(normalized_shape, Iterable) else (normalized_shape,)


class LayerNorm(_Affine):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions, whose sizes are `normalized_shape`.

    >>> import pullback
    >>> pullback.nn.LayerNorm(2, elementwise_affine=False)(pullback.tensor([[1.0, 3.0]]))
    tensor([[-1.0000,  1.0000]])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html.
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, bias, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        settings = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{settings}, bias={self.bias is not None}"


class RMSNorm(_Affine):
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last dimensions, whose sizes are `normalized_shape`.

    >>> import pullback
    >>> pullback.nn.RMSNorm(2, elementwise_affine=False)(pullback.tensor([[1.0, -1.0]]))
    tensor([[ 1., -1.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html.
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        shape = self.normalized_shape
        weight = Parameter(empty(*shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over each of `num_groups` groups of the channels of a sample.

    >>> import pullback
    >>> pullback.nn.GroupNorm(1, 2, affine=False)(pullback.tensor([[1.0, 3.0]]))
    tensor([[-1.0000,  1.0000]])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.GroupNorm.html.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            where, found = "GroupNorm(): num_channels", f"{num_channels} and {num_groups}"
            raise ValueError(errors.message(where, expected="to be divisible by num_groups", found=found))
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make((num_channels,), affine, bias, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        settings = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{settings}, bias={self.bias is not None}"


@layer
class LocalResponseNorm(Layer):
    """``x / (k + alpha * mean(x^2))^beta``, with the mean over `size` neighbouring channels.

    >>> import pullback
    >>> pullback.nn.LocalResponseNorm(2)(pullback.ones(1, 2, 1)).shape
    pullback.Size([1, 2, 1])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"

"""Linear and bilinear layers."""

from __future__ import annotations

import math
from typing import Any

from ... import errors
from ...ops.make.of_size import empty
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .. import init
from ..module import Module
from ..parameter import Parameter


class Linear(Module):
    """``y = x W^T + b``, for the last dimension of the input.

    `weight` is (out_features, in_features) and `bias` (out_features,); both begin uniform within
    ``1 / sqrt(in_features)``.

    >>> import pullback
    >>> layer = pullback.nn.Linear(3, 2)
    >>> layer(pullback.zeros(4, 3)).shape
    pullback.Size([4, 2])
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``y_k = x1^T A_k x2 + b_k``, for the last dimensions of two inputs.

    `weight` is (out_features, in1_features, in2_features) and `bias` (out_features,); both begin uniform within
    ``1 / sqrt(in1_features)``.

    >>> import pullback
    >>> pullback.nn.Bilinear(3, 4, 2)(pullback.zeros(5, 3), pullback.zeros(5, 4)).shape
    pullback.Size([5, 2])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Bilinear.html.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            where, found = "Bilinear(): in1_features", errors.describe(in1_features)
            raise ValueError(errors.message(where, expected="to be > 0", found=found))
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{sizes}, out_features={self.out_features}, bias={self.bias is not None}"

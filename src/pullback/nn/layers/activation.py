"""Activations: functions of each element, and softmax, as modules.

Those with `inplace` write into their input, if so asked, and return it.
"""

from __future__ import annotations

from typing import Any

from ... import errors
from ...ops.make.of_size import empty
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .. import init
from ..module import Module
from ..parameter import Parameter
from .layer import Layer, layer


@layer
class ReLU(Layer):
    """``max(0, x)``.

    >>> import pullback
    >>> pullback.nn.ReLU()(pullback.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


@layer
class ReLU6(Layer):
    """``min(max(0, x), 6)``.

    >>> import pullback
    >>> pullback.nn.ReLU6()(pullback.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


@layer
class RReLU(Layer):
    """``x`` where it is positive, else ``a x`` with a slope drawn for each element from [lower, upper).

    In use, not in training, the slope is the middle of the two.

    >>> import pullback
    >>> pullback.nn.RReLU(0.1, 0.3).eval()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


@layer
class LeakyReLU(Layer):
    """``x`` where it is positive, else ``negative_slope * x``.

    >>> import pullback
    >>> pullback.nn.LeakyReLU(0.1)(pullback.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 1e-2
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class PReLU(Module):
    """``x`` where it is positive, else ``weight * x``, with a slope that is trained.

    One slope for all, or one for each channel, which is dimension 1. It begins with `init`.

    >>> import pullback
    >>> pullback.nn.PReLU()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.2500,  2.0000], grad_fn=<PreluKernelBackward0>)
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to what they began with."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


@layer
class ELU(Layer):
    """``x`` where it is positive, else ``alpha (exp(x) - 1)``.

    >>> import pullback
    >>> pullback.nn.ELU()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


@layer
class CELU(Layer):
    """``x`` where it is positive, else ``alpha (exp(x / alpha) - 1)``.

    >>> import pullback
    >>> pullback.nn.CELU(2.0)(pullback.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


@layer
class SELU(Layer):
    """``scale * ELU(x)``, with constants that keep mean 0 and variance 1 (Klambauer et al., 2017).

    >>> import pullback
    >>> pullback.nn.SELU()(pullback.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


@layer
class GELU(Layer):
    """``x Phi(x)``, Phi the normal distribution; `approximate` by ``"tanh"``.

    >>> import pullback
    >>> pullback.nn.GELU()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    approximate: str = "none"

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


@layer
class SiLU(Layer):
    """``x sigmoid(x)``, also known as swish.

    >>> import pullback
    >>> pullback.nn.SiLU()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


@layer
class Mish(Layer):
    """``x tanh(log(1 + exp(x)))``.

    >>> import pullback
    >>> pullback.nn.Mish()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


@layer
class Sigmoid(Layer):
    """``1 / (1 + exp(-x))``.

    >>> import pullback
    >>> pullback.nn.Sigmoid()(pullback.tensor([-1.0, 2.0]))
    tensor([0.2689, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


@layer
class LogSigmoid(Layer):
    """``-log(1 + exp(-x))``.

    >>> import pullback
    >>> pullback.nn.LogSigmoid()(pullback.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


@layer
class Tanh(Layer):
    """``tanh(x)``.

    >>> import pullback
    >>> pullback.nn.Tanh()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.7616,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


@layer
class Tanhshrink(Layer):
    """``x - tanh(x)``.

    >>> import pullback
    >>> pullback.nn.Tanhshrink()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


@layer
class Softsign(Layer):
    """``x / (1 + |x|)``.

    >>> import pullback
    >>> pullback.nn.Softsign()(pullback.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


@layer
class Softplus(Layer):
    """``log(1 + exp(beta x)) / beta``, and ``x`` where ``beta x > threshold``.

    >>> import pullback
    >>> pullback.nn.Softplus()(pullback.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """

    beta: float = 1.0
    threshold: float = 20.0

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


@layer
class Hardtanh(Layer):
    """``x`` between `min_val` and `max_val`, and the nearest of the two outside.

    >>> import pullback
    >>> pullback.nn.Hardtanh()(pullback.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def __post_init__(self) -> None:
        if not self.max_val > self.min_val:
            found = f"{self.min_val} and {self.max_val}"
            raise AssertionError(errors.message("Hardtanh()", expected="min_val smaller than max_val", found=found))

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


@layer
class Hardsigmoid(Layer):
    """``min(max(0, x / 6 + 1 / 2), 1)``.

    >>> import pullback
    >>> pullback.nn.Hardsigmoid()(pullback.tensor([-3.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    inplace: bool = False
    _shown = ""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


@layer
class Hardswish(Layer):
    """``x hardsigmoid(x)``.

    >>> import pullback
    >>> pullback.nn.Hardswish()(pullback.tensor([-3.0, 0.0, 2.0]))
    tensor([-0.0000, 0.0000, 1.6667])
    """

    inplace: bool = False
    _shown = ""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


@layer
class Hardshrink(Layer):
    """``x`` where ``|x| > lambd``, else 0.

    >>> import pullback
    >>> pullback.nn.Hardshrink()(pullback.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """

    lambd: float = 0.5

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


@layer
class Softshrink(Layer):
    """``x - lambd`` above `lambd`, ``x + lambd`` below ``-lambd``, between them 0.

    >>> import pullback
    >>> pullback.nn.Softshrink()(pullback.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """

    lambd: float = 0.5

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


@layer
class Threshold(Layer):
    """``x`` where it is greater than `threshold`, else `value`.

    >>> import pullback
    >>> pullback.nn.Threshold(0.1, 20.0)(pullback.tensor([-1.0, 2.0]))
    tensor([20.,  2.])
    """

    threshold: float
    value: float
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


@layer
class GLU(Layer):
    """``a sigmoid(b)``, where a and b are the two halves of the input along `dim`.

    >>> import pullback
    >>> pullback.nn.GLU()(pullback.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


@layer
class Softmax(Layer):
    """``exp(x_i) / sum_j exp(x_j)`` along `dim`.

    >>> import pullback
    >>> pullback.nn.Softmax(dim=0)(pullback.tensor([1.0, 2.0]))
    tensor([0.2689, 0.7311])
    """

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=errors.callers_level())


@layer
class Softmin(Layer):
    """``exp(-x_i) / sum_j exp(-x_j)`` along `dim`.

    >>> import pullback
    >>> pullback.nn.Softmin(dim=0)(pullback.tensor([1.0, 2.0]))
    tensor([0.7311, 0.2689])
    """

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=errors.callers_level())


@layer
class LogSoftmax(Layer):
    """``x_i - log(sum_j exp(x_j))`` along `dim`.

    >>> import pullback
    >>> pullback.nn.LogSoftmax(dim=0)(pullback.tensor([1.0, 2.0]))
    tensor([-1.3133, -0.3133])
    """

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=errors.callers_level())


@layer
class Softmax2d(Layer):
    """The softmax over the channels at every place of a picture: of (N, C, H, W) or (C, H, W).

    >>> import pullback
    >>> pullback.nn.Softmax2d()(pullback.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(errors.message("Softmax2d: expected input to be 3D or 4D", found=errors.describe(input)))
        return F.softmax(input, -3, _stacklevel=errors.callers_level())

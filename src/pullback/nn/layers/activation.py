"""Activations: functions of each element, and softmax, as modules.

Those with `inplace` can write into their input and return it. Activations with the same settings derive from one class
that holds these settings; each says which function it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ... import errors
from ...ops.make.of_size import empty
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .. import init
from ..module import Module
from ..parameter import Parameter
from .layer import Layer, layer


@layer
class _Plain(Layer):
    """``_function(input)``."""

    _function: ClassVar[Callable[..., Tensor]]

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input)


@layer
class _MaybeInPlace(_Plain):
    """``_function(input)``, written into the input with `inplace`."""

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.inplace)


@layer
class _WithAlpha(_Plain):
    """``_function(input, alpha)``, written into the input with `inplace`."""

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.alpha, self.inplace)


@layer
class _WithLambda(_Plain):
    """``_function(input, lambd)``."""

    lambd: float = 0.5

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


@layer
class _Along(_Plain):
    """``_function(input)`` along a dimension."""

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.dim, _stacklevel=errors.callers_level())


class ReLU(_MaybeInPlace):
    """``max(0, x)``.

    >>> import pullback
    >>> pullback.nn.ReLU()(pullback.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    _function = staticmethod(F.relu)


class ReLU6(_MaybeInPlace):
    """``min(max(0, x), 6)``.

    >>> import pullback
    >>> pullback.nn.ReLU6()(pullback.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

    _function = staticmethod(F.relu6)


@layer
class RReLU(Layer):
    """``x`` where it is positive, else ``a x`` with a slope drawn for each element from [lower, upper).

    Outside training the slope is the mean of the two.

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

    There is one slope for all, or one for each channel, dimension 1. It begins as `init`.

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
        """Set the slopes to their first value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class ELU(_WithAlpha):
    """``x`` where it is positive, else ``alpha (exp(x) - 1)``.

    >>> import pullback
    >>> pullback.nn.ELU()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    _function = staticmethod(F.elu)


class CELU(_WithAlpha):
    """``x`` where it is positive, else ``alpha (exp(x / alpha) - 1)``.

    >>> import pullback
    >>> pullback.nn.CELU(2.0)(pullback.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    _function = staticmethod(F.celu)


class SELU(_MaybeInPlace):
    """``scale * ELU(x)``, with constants that keep mean 0 and variance 1 (Klambauer et al., 2017).

    >>> import pullback
    >>> pullback.nn.SELU()(pullback.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    _function = staticmethod(F.selu)


@layer
class GELU(Layer):
    """``x Phi(x)``, with the normal distribution Phi. `approximate` may be ``"tanh"``.

    >>> import pullback
    >>> pullback.nn.GELU()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    approximate: str = "none"

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class SiLU(_MaybeInPlace):
    """``x sigmoid(x)``, also known as swish.

    >>> import pullback
    >>> pullback.nn.SiLU()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    _function = staticmethod(F.silu)


class Mish(_MaybeInPlace):
    """``x tanh(log(1 + exp(x)))``.

    >>> import pullback
    >>> pullback.nn.Mish()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    _function = staticmethod(F.mish)


class Sigmoid(_Plain):
    """``1 / (1 + exp(-x))``.

    >>> import pullback
    >>> pullback.nn.Sigmoid()(pullback.tensor([-1.0, 2.0]))
    tensor([0.2689, 0.8808])
    """

    _function = staticmethod(F.sigmoid)


class LogSigmoid(_Plain):
    """``-log(1 + exp(-x))``.

    >>> import pullback
    >>> pullback.nn.LogSigmoid()(pullback.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """

    _function = staticmethod(F.logsigmoid)


class Tanh(_Plain):
    """``tanh(x)``.

    >>> import pullback
    >>> pullback.nn.Tanh()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.7616,  0.9640])
    """

    _function = staticmethod(F.tanh)


class Tanhshrink(_Plain):
    """``x - tanh(x)``.

    >>> import pullback
    >>> pullback.nn.Tanhshrink()(pullback.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """

    _function = staticmethod(F.tanhshrink)


class Softsign(_Plain):
    """``x / (1 + |x|)``.

    >>> import pullback
    >>> pullback.nn.Softsign()(pullback.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    _function = staticmethod(F.softsign)


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
    """``x`` between `min_val` and `max_val`, else the nearest of the two.

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


class Hardsigmoid(_MaybeInPlace):
    """``min(max(0, x / 6 + 1 / 2), 1)``.

    >>> import pullback
    >>> pullback.nn.Hardsigmoid()(pullback.tensor([-3.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    _function = staticmethod(F.hardsigmoid)
    _shown = ""


class Hardswish(_MaybeInPlace):
    """``x hardsigmoid(x)``.

    >>> import pullback
    >>> pullback.nn.Hardswish()(pullback.tensor([-3.0, 0.0, 2.0]))
    tensor([-0.0000, 0.0000, 1.6667])
    """

    _function = staticmethod(F.hardswish)
    _shown = ""


class Hardshrink(_WithLambda):
    """``x`` where ``|x| > lambd``, else 0.

    >>> import pullback
    >>> pullback.nn.Hardshrink()(pullback.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """

    _function = staticmethod(F.hardshrink)


class Softshrink(_WithLambda):
    """``x - lambd`` above `lambd`, ``x + lambd`` below ``-lambd``, between them 0.

    >>> import pullback
    >>> pullback.nn.Softshrink()(pullback.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """

    _function = staticmethod(F.softshrink)


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


class Softmax(_Along):
    """``exp(x_i) / sum_j exp(x_j)`` along `dim`.

    >>> import pullback
    >>> pullback.nn.Softmax(dim=0)(pullback.tensor([1.0, 2.0]))
    tensor([0.2689, 0.7311])
    """

    _function = staticmethod(F.softmax)


class Softmin(_Along):
    """``exp(-x_i) / sum_j exp(-x_j)`` along `dim`.

    >>> import pullback
    >>> pullback.nn.Softmin(dim=0)(pullback.tensor([1.0, 2.0]))
    tensor([0.7311, 0.2689])
    """

    _function = staticmethod(F.softmin)


class LogSoftmax(_Along):
    """``x_i - log(sum_j exp(x_j))`` along `dim`.

    >>> import pullback
    >>> pullback.nn.LogSoftmax(dim=0)(pullback.tensor([1.0, 2.0]))
    tensor([-1.3133, -0.3133])
    """

    _function = staticmethod(F.log_softmax)


@layer
class Softmax2d(Layer):
    """The softmax over the channels at every place of an image: of (N, C, H, W) or (C, H, W).

    >>> import pullback
    >>> pullback.nn.Softmax2d()(pullback.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(errors.message("Softmax2d: expected input to be 3D or 4D", found=errors.describe(input)))
        return F.softmax(input, -3, _stacklevel=errors.callers_level())

"""Initial values of parameters, written in place, outside any graph.

Bounds and spreads that follow from the shape use the fans of a matrix or of a convolution's kernel: ``fan_in`` is the
number of inputs of one output, ``shape[1]`` times the size of the kernel, and ``fan_out`` the number of outputs of one
input, with ``shape[0]``. Random numbers are drawn from `generator`, by default from pullback's own.

See https://docs.pytorch.org/docs/stable/nn.init.html.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .. import errors
from ..autograd.grad_mode import no_grad
from ..ops.make.generators import Generator
from ..ops.make.random import rand, randn
from ..tensor import dtypes
from ..tensor.tensor import Tensor, need_tensor, wrap

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def __dir__() -> list[str]:
    return sorted(__all__)


_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor for the input of a nonlinearity that keeps the variance of its output equal to that of the input.

    `param` is the slope of ``"leaky_relu"`` below 0, 0.01 unless given: the gain is ``sqrt(2 / (1 + slope ** 2))``.
    ValueError for an unknown nonlinearity.

    >>> import pullback
    >>> pullback.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}; known are leaky_relu, {', '.join(_GAINS)}")
    return _GAINS[nonlinearity]


# Constants and formulas -----------------------------------------------------------------------------------


def constant_(tensor: Tensor, val: float) -> Tensor:
    """``tensor[...] = val``."""
    return _fill("constant_", tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """``tensor[...] = 1``."""
    return _fill("ones_", tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """``tensor[...] = 0``."""
    return _fill("zeros_", tensor, 0.0)


def _fill(name: str, tensor: Any, value: float) -> Tensor:
    with no_grad():
        return need_tensor(f"{name}()", tensor).fill_(value)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix: a linear layer then passes on as many inputs as it can. `tensor` must be a matrix."""
    _refuse_all_but("eye_", tensor, (2,), "2 dimensions")
    return _write(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A kernel that passes on as many channels as it can: 1 in the middle for input i and output i, else 0.

    `tensor` must be a kernel: outputs, inputs and 1, 2 or 3 dimensions. Each of `groups` groups of outputs is set so.
    """
    _refuse_all_but("dirac_", tensor, (3, 4, 5), "3, 4, or 5 dimensions")
    outputs, inputs, *kernel = tensor.shape
    if outputs % groups:
        raise ValueError(f"dim 0 must be divisible by groups; found {outputs} and {groups}")
    values = np.zeros(tensor.shape)
    middle = tuple(n // 2 for n in kernel)
    each = outputs // groups
    for first in range(0, outputs, each or 1):
        for i in range(min(each, inputs)):
            values[(first + i, i, *middle)] = 1
    return _write(tensor, values)


# Random ---------------------------------------------------------------------------------------------------------------


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform on [a, b).

    >>> import pullback
    >>> weight = pullback.empty(1000)
    >>> _ = pullback.nn.init.uniform_(weight, -1, 1)
    >>> bool((weight >= -1).all() & (weight < 1).all())
    True
    """
    if a > b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}")
    with no_grad():
        return need_tensor("uniform_()", tensor).uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal, with mean `mean` and standard deviation `std`."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    with no_grad():
        return need_tensor("normal_()", tensor).normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal, with mean `mean` and standard deviation `std`, restricted to [a, b].

    Values outside are drawn again; if most would lie outside, they are drawn uniformly from [a, b] and kept with a
    probability in proportion to the density. RuntimeError if `std` is not positive, or a > b.
    """
    need_tensor("trunc_normal_()", tensor)
    if not (0 < std < math.inf and a <= b and math.isfinite(mean)):
        found = f"mean={mean}, std={std}, a={a}, b={b}"
        raise RuntimeError(errors.message("trunc_normal_()", expected="a finite mean, std > 0 and a <= b", found=found))
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=errors.callers_level(),
        )
    low, high = (a - mean) / std, (b - mean) / std
    likely = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2 > 0.3
    peak = min(max(low, 0.0), high)  # where the density is highest
    if not likely:  # leave out densities below e**-40 of the peak: the interval may be infinite
        reach = min(9.0, 40 / abs(peak)) if peak else 9.0
        low, high = max(low, peak - reach), min(high, peak + reach)
    values = np.empty(tensor.numel())
    left = np.arange(values.size)
    while left.size:
        if likely:
            drawn = _drawn(randn, tensor, (left.size,), generator)
            kept = (low <= drawn) & (drawn <= high)
        else:
            drawn = low + (high - low) * _drawn(rand, tensor, (left.size,), generator)
            chance = _drawn(rand, tensor, (left.size,), generator)
            kept = chance <= np.exp((peak**2 - drawn**2) / 2)
        values[left[kept]] = drawn[kept]
        left = left[~kept]
    # scaling back may round to just outside
    return _write(tensor, np.clip(mean + std * values, a, b).reshape(tensor.shape))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform on [-a, a) with ``a = gain * sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio, 2010)."""
    bound = math.sqrt(3) * _xavier_std("xavier_uniform_", tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with mean 0 and ``std = gain * sqrt(2 / (fan_in + fan_out))`` (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, _xavier_std("xavier_normal_", tensor, gain), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform on [-b, b) with ``b = gain * sqrt(3 / fan)`` (He et al., 2015).

    `mode` chooses the fan, ``"fan_in"`` or ``"fan_out"``; the gain is `calculate_gain` of `nonlinearity` and `a`.
    """
    std = _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with mean 0 and ``std = gain / sqrt(fan)`` (He et al., 2015); see `kaiming_uniform_`."""
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """``gain`` times a random matrix with orthonormal rows or columns, whichever are fewer (Saxe et al., 2013).

    A tensor of more dimensions is read as a matrix with ``shape[0]`` rows. The matrix is the Q of a random one, with
    signs that make its distribution uniform (Mezzadri, 2007).
    """
    if need_tensor("orthogonal_()", tensor).ndim < 2:
        raise ValueError(_dimensions("orthogonal_", tensor, "2 or more dimensions"))
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    shape = rows, tensor.numel() // rows
    drawn = _drawn(randn, tensor, (max(shape), min(shape)), generator)
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diagonal(r))
    with no_grad():
        return tensor.copy_(wrap((q if rows >= shape[1] else q.T).reshape(tensor.shape)) * gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal with mean 0 and standard deviation `std`, and in each column a fraction `sparsity` of zeros, rounded up.

    `tensor` must be a matrix (Martens, 2010).
    """
    _refuse_all_but("sparse_", tensor, (2,), "2 dimensions")
    zeros = math.ceil(sparsity * tensor.shape[0])
    normal_(tensor, 0.0, std, generator)
    order = np.argsort(_drawn(rand, tensor, tensor.shape, generator), axis=0)
    with no_grad():
        return tensor.masked_fill_(wrap(order < zeros).to(tensor.device), 0)


# Shared helpers -------------------------------------------------------------------------------------------------------


def _drawn(draw: Any, tensor: Tensor, shape: tuple[int, ...], generator: Any) -> np.ndarray[Any, Any]:
    """Numbers on the host, from the generator of the tensor's device."""
    made = draw(shape, generator=generator, dtype=dtypes.float64, device=tensor.device)
    return np.asarray(made.cpu()._data)


def _write(tensor: Tensor, values: np.ndarray[Any, Any]) -> Tensor:
    """`tensor`, with `values` written into it in its own dtype."""
    with no_grad():
        return tensor.copy_(wrap(values))


def _refuse_all_but(name: str, tensor: Any, dims: tuple[int, ...], words: str) -> None:
    if need_tensor(f"{name}()", tensor).ndim not in dims:
        raise ValueError(_dimensions(name, tensor, words))


def _dimensions(name: str, tensor: Tensor, words: str) -> str:
    return errors.message(f"Only tensors with {words} are supported by {name}()", found=f"shape {list(tensor.shape)}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The number of inputs of one output, and of outputs of one input."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions; found shape "
            f"{list(tensor.shape)}"
        )
    kernel = math.prod(tensor.shape[2:])
    return tensor.shape[1] * kernel, tensor.shape[0] * kernel


def _xavier_std(name: str, tensor: Any, gain: float) -> float:
    fans = sum(_calculate_fan_in_and_fan_out(need_tensor(f"{name}()", tensor)))
    return gain * math.sqrt(2 / fans) if fans else 0.0


def _kaiming_std(name: str, tensor: Any, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation; None for an empty tensor, which needs no values."""
    if not need_tensor(f"{name}()", tensor).numel():
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=errors.callers_level())
        return None
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(modes)}")
    fan = _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


errors.doors(
    globals(),
    "calculate_gain constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ "
    "sparse_ trunc_normal_ uniform_ xavier_normal_ xavier_uniform_ zeros_",
)

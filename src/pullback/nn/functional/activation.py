"""Activations: the nonlinear functions between layers.

Functions with bends choose their slope by a mask (`either`, `only`), so that the other slope may be infinite; at the
bends themselves the slope is torch's. Functions with exponentials are written so that nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...kernels.masks import either, only
from ...ops.elementwise.analysis import sigmoid, tanh
from ...ops.elementwise.limits import relu as rectified
from ...ops.elementwise.softmax import SHRINKS, leak, outside, sloped
from ...ops.make.generators import generator_for
from ...ops.make.random import uniform
from ...table.calls import on
from ...table.checks import Written
from ...table.entry import alias, composite, pointwise, titled
from ...table.inplace import write_into
from ...table.op import Op
from ...table.operands import converted, data_of, in_single, need_numbers, plain
from ...table.samples import CORNERS, NOT_TENSORS, A, Differs, S, on_one
from ...tensor import dtypes
from ...tensor.arrays import writable
from ...tensor.protocol import is_foreign
from ...tensor.tensor import Tensor
from .arguments import floating, floats_only, refuse


def _asked(inplace: bool, *args: Any) -> tuple[Any, ...]:
    """The arguments of a computation; with `inplace` its result is written into the first one."""
    return Written(args) if inplace else args


def _input_alone() -> Callable[..., Any]:
    """The checks of an activation without other arguments."""

    def checks(input: Tensor, inplace: bool = False) -> Any:
        return _asked(inplace, input)

    return checks


def _applied(inplace: bool, call: Callable[..., Any], *args: Any) -> Tensor:
    """The computation of another activation on checked arguments; with `inplace` it is written into the first."""
    op: Op = call.op  # type: ignore[attr-defined]
    found: Tensor = write_into(op, args) if inplace else op.unchecked(*args)
    return found


def with_twin(call: Callable[..., Any], also: str = "") -> None:
    """Publish the underscore form of an activation, which writes into its input. also: its further paths."""
    name = call.__name__

    def twin(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return call(input, *args, inplace=True, **kwargs)

    twin.__name__ = twin.__qualname__ = f"{name}_"
    errors.called(twin, f"{name}_")
    twin.__doc__ = f"`{name}`, written into `input`, which is returned."
    for path in (f"nn.functional.{name}_", *also.split()):
        alias(path, twin)


alias("nn.functional.tanh", tanh)
alias("nn.functional.sigmoid", sigmoid)


@composite(truths="inplace", home="nn.functional", samples=lambda: on_one(), kinks=CORNERS, refused=NOT_TENSORS)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``, written into `input` with `inplace`; its derivative at 0 is 0."""
    return _applied(inplace, rectified, input)


# Bounded on both sides --------------------------------------------------------------------------------------------


def _hardtanh_rule(g: Any, input: Any, min_val: float, max_val: float) -> Any:
    x = plain(input)
    return only(np.logical_not(np.logical_or(np.less_equal(x, min_val), np.greater_equal(x, max_val))), g)


def _check_hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    need_numbers("hardtanh", min_val=min_val, max_val=max_val)
    if min_val > max_val:
        raise refuse("hardtanh", "min_val <= max_val", f"{min_val} and {max_val}", error=ValueError)
    _refuse_beyond_integers(input, min_val, max_val)
    return _asked(inplace, input, min_val, max_val)


def _refuse_beyond_integers(input: Any, *bounds: float) -> None:
    """Refuse bounds that the integers of a tensor cannot hold. (The door looks at floating point ones.)"""
    if isinstance(input, Tensor) and input._data.dtype.kind in "iu":
        for bound in bounds:
            dtypes.refuse_overflow(bound, input._data.dtype)


@pointwise(
    bounds="min_val max_val",
    truths="inplace",
    home="nn.functional",
    checks=_check_hardtanh,
    flat=True,
    input=_hardtanh_rule,
    samples=lambda: on_one(S(A(3), -2.5, 0.5), S(A(2, 3), min_val=0, max_val=2), domain="between"),
    kinks=lambda: [*CORNERS, S(CORNERS[0].args[0], -0.5, 3.0)],
    refused=lambda: [*NOT_TENSORS, S(A(2), 1.0, -1.0), S(A(2), "x")],
)
def hardtanh(input: Any, min_val: float, max_val: float) -> Any:
    """`input` limited to ``[min_val, max_val]``; its derivative at the bounds is 0."""
    if input.dtype.kind == "b" or (input.dtype.kind == "u" and min_val < 0):
        raise refuse("hardtanh", "numbers that can be as small as min_val", errors.describe(input))
    if input.dtype.kind == "c":
        raise refuse("hardtanh", "real numbers, which have an order", errors.describe(input), error=NotImplementedError)
    kind = input.dtype.type
    return input.clip(kind(min_val), kind(max_val))


@composite(truths="inplace", home="nn.functional", samples=lambda: on_one(), kinks=CORNERS, refused=NOT_TENSORS)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input, 0), 6)``."""
    return _applied(inplace, hardtanh, input, 0, 6)


def _hardsigmoid_rule(g: Any, input: Any) -> Any:
    x = plain(input)
    return np.true_divide(only(np.logical_and(np.greater(x, -3), np.less(x, 3)), g), 6)


_SIXTH = "torch's derivative is 1/6 in single precision, whatever the dtype"


@pointwise(
    truths="inplace",
    home="nn.functional",
    checks=_input_alone(),
    flat=True,
    fused=True,
    input=_hardsigmoid_rule,
    samples=lambda: on_one(),
    kinks=CORNERS,
    refused=NOT_TENSORS,
    differs=lambda: [Differs(_SIXTH, check, "float64") for check in ("gradients", "second", "kinks")],
)
def hardsigmoid(input: Any) -> Any:
    """``min(max(input + 3, 0), 6) / 6``: `sigmoid` in three straight pieces."""
    floats_only("hardsigmoid", input)
    found = writable(np.add(input, 3))
    np.clip(found, 0, 6, out=found)
    found /= 6
    return found


def _hardswish_rule(g: Any, input: Any) -> Any:
    x = plain(input)
    inner = np.multiply(g, np.add(np.true_divide(input, 3), 0.5))
    return either(np.less(x, 3), only(np.greater(x, -3), inner), g)


@pointwise(
    truths="inplace",
    home="nn.functional",
    checks=_input_alone(),
    fused=True,
    input=_hardswish_rule,
    samples=lambda: on_one(),
    kinks=CORNERS,
    refused=NOT_TENSORS,
)
def hardswish(input: Any) -> Any:
    """``input * hardsigmoid(input)`` (Howard et al. 2019, arXiv:1905.02244)."""
    floats_only("hardswish", input)
    found = writable(np.add(input, 3))
    np.clip(found, 0, 6, out=found)
    found *= input
    found /= 6
    return found


# Shrinking ------------------------------------------------------------------------------------------------------------


@pointwise(
    out=True,
    home="nn.functional",
    flat=True,
    input=outside,
    samples=lambda: on_one(*SHRINKS),
    kinks=CORNERS,
    refused=lambda: [*NOT_TENSORS, S(A(2), "x"), S(A(2), -1.0)],
)
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """`input` moved towards 0 by `lambd`, but not past it."""
    floats_only("softshrink", input)
    need_numbers("softshrink", lambd=lambd)
    if lambd < 0:
        raise refuse("softshrink", "lambd to be at least 0", lambd)
    if input.dtype.char == "e":  # lambd keeps its digits
        wide = converted(input, np.float32)
        return np.subtract(wide, wide.clip(-lambd, lambd)).astype(input.dtype)
    return np.subtract(input, input.clip(-lambd, lambd))


def _refuse_bool(name: str, input: Tensor) -> None:
    if input._data.dtype.kind == "b":
        raise refuse(
            name, "numbers", errors.describe(input), f"convert it with .{dtypes.to_default()}", NotImplementedError
        )


@composite(home="nn.functional", samples=lambda: on_one(), kinks=CORNERS)
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    _refuse_bool("tanhshrink", input)
    return input - tanh(input)


@composite(home="nn.functional", samples=lambda: on_one(), kinks=CORNERS)
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""
    _refuse_bool("softsign", input)
    return input / (abs(input) + 1)


def _check_threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Any:
    need_numbers("threshold", threshold=threshold, value=value)
    _refuse_beyond_integers(input, threshold, value)
    return _asked(inplace, input, threshold, value)


@pointwise(
    scalars="threshold",
    bounds="value",
    truths="inplace",
    home="nn.functional",
    also="threshold",
    checks=_check_threshold,
    flat=True,
    input=lambda g, input, threshold: only(_above(plain(input), threshold), g),
    samples=lambda: [S(A(2, 3), 0.1, 20.0), S(A(3), threshold=-1, value=2), S(A(), 0.0, 0.0), S(A(0), 1, 1)],
    kinks=lambda: [S(CORNERS[0].args[0], 0.5, -2.0)],
    refused=lambda: [S(A(2)), S(A(2), 1.0), S([1.0], 1.0, 1.0), S(A(2), "x", 1.0)],
)
def threshold(input: Any, threshold: float, value: float) -> Any:
    """`input` where it is above `threshold`, else `value`."""
    if input.dtype.kind not in "iuf":
        raise refuse("threshold", "real numbers", errors.describe(input), error=NotImplementedError)
    made = np.asarray(value).astype(input.dtype)  # a negative number wraps around in unsigned integers
    return either(
        _above(input, threshold),
        input,
        made[()] if is_foreign(input) else made,
    )


def _above(input: Any, threshold: float) -> Any:
    """Where `input` is above a number, which keeps its digits beside half precision; also where it is NaN."""
    return np.logical_not(np.less_equal(input, in_single(threshold, input)))


# Leaks ----------------------------------------------------------------------------------------------------------------


_LEAKS = [S(A(2, 3), 0.3), S(A(3), negative_slope=-1.5), S(A(2), 1), S(A(2), 0.0)]


def _check_leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    need_numbers("leaky_relu", negative_slope=negative_slope)
    return _asked(inplace, input, negative_slope)


@pointwise(
    scalars="negative_slope",
    truths="inplace",
    home="nn.functional",
    checks=_check_leaky_relu,
    flat=True,
    fused=True,
    input=lambda g, input, negative_slope: leak(g, input, negative_slope),
    samples=lambda: on_one(*_LEAKS),
    kinks=CORNERS,
    refused=lambda: [*NOT_TENSORS, S(A(2), "x")],
)
def leaky_relu(input: Any, negative_slope: float) -> Any:
    """`input` where it is positive, else ``negative_slope * input``."""
    floats_only("leaky_relu", input)
    leak = np.multiply(input, in_single(negative_slope, input))
    return np.maximum(input, leak) if 0 < negative_slope <= 1 else either(np.greater(input, 0), input, leak)


@composite(
    scalars="lower upper",
    truths="inplace",
    home="nn.functional",
    also="rrelu",
    samples=lambda: on_one(S(A(3), 0.2, 0.4), S(A(3), lower=0.5, upper=0.5)),
    kinks=CORNERS,
    refused=lambda: [*NOT_TENSORS, S(A(2), 0.5, 0.1), S(A(2), 0.5, 0.1, True)],
)
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`leaky_relu` with slopes drawn from ``[lower, upper]`` in training, else with the mean of the two bounds."""
    need_numbers("rrelu", lower=lower, upper=upper)
    if lower > upper:
        raise refuse("rrelu", "lower <= upper", f"{lower} and {upper}")
    if training:
        floating("rrelu", input)
        drawn = uniform(input._data.shape, input._data.dtype, generator_for(input))
        found = _applied(inplace, sloped, input, drawn * (upper - lower) + lower)
    else:
        found = _applied(inplace, leaky_relu, input, (lower + upper) / 2)
    return found if inplace else found.contiguous()


# Exponentials ---------------------------------------------------------------------------------------------------------


def _elu_rule(g: Any, input: Any, alpha: float, scale: float, input_scale: float) -> Any:
    # in elements that are not chosen, the exponential could overflow
    flat = np.less_equal(plain(input), 0)
    below = np.less(plain(input), 0)  # at 0 itself the slope counts as constant, as in torch
    factor = in_single(alpha * scale * input_scale, input)
    slope = np.multiply(np.exp(np.multiply(only(below, input), in_single(input_scale, input))), factor)
    return either(flat, np.multiply(g, slope), np.multiply(g, scale))


def _check_elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    need_numbers("elu", alpha=alpha)
    return _asked(inplace, input, alpha, 1, 1)


@pointwise(
    scalars="alpha",
    truths="inplace",
    home="nn.functional",
    checks=_check_elu,
    fused=True,
    input=_elu_rule,
    samples=lambda: on_one(S(A(2, 3), 0.5), S(A(3), alpha=2), S(A(3), -1.0)),
    kinks=CORNERS,
    refused=lambda: [*NOT_TENSORS, S(A(2), "x")],
)
def elu(input: Any, alpha: float, scale: float, input_scale: float) -> Any:
    """`input` where it is positive, else ``alpha * (exp(input) - 1)`` (Clevert et al. 2016, arXiv:1511.07289)."""
    floats_only("elu", input)
    below = np.expm1(np.multiply(np.minimum(input, 0), in_single(input_scale, input)))
    below *= alpha * scale
    return np.add(below, np.multiply(np.maximum(input, 0), scale))


@composite(
    scalars="alpha",
    truths="inplace",
    home="nn.functional",
    also="celu",
    fused=True,
    samples=lambda: on_one(S(A(2, 3), 0.5), S(A(3), alpha=2)),
    kinks=lambda: [*CORNERS, S(CORNERS[0].args[0], 2.0)],
    refused=lambda: [*NOT_TENSORS, S(A(2), 0.0), S(A(2), "x")],
)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input / alpha) - 1)`` (Barron 2017, arXiv:1704.07483)."""
    need_numbers("celu", alpha=alpha)
    if not alpha:
        raise refuse("celu", "alpha other than 0", alpha)
    if inplace:
        return _applied(inplace, elu, input, alpha, 1, 1 / alpha)
    return titled(elu, "CeluBackward0")(input, alpha, 1, 1 / alpha)


# The numbers for which mean 0 and variance 1 are a fixed point (Klambauer et al. 2017, arXiv:1706.02515)
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@composite(
    truths="inplace",
    home="nn.functional",
    also="selu",
    fused=True,
    samples=lambda: on_one(),
    kinks=CORNERS,
    refused=NOT_TENSORS,
)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``1.0507 * elu(input, 1.6733)``, which keeps mean 0 and variance 1 from layer to layer."""
    return _applied(inplace, elu, input, SELU_ALPHA, SELU_SCALE, 1)


def _silu_rule(g: Any, input: Any) -> Any:
    s = on(sigmoid, input)
    return np.multiply(g, np.multiply(s, np.add(np.multiply(input, np.subtract(1, s)), 1)))


@pointwise(
    truths="inplace",
    home="nn.functional",
    checks=_input_alone(),
    fused=True,
    input=_silu_rule,
    samples=lambda: on_one(domain="real"),
    kinks=CORNERS,
    refused=NOT_TENSORS,
)
def silu(input: Any) -> Any:
    """``input * sigmoid(input)``, also called Swish.

    >>> import pullback
    >>> pullback.nn.functional.silu(pullback.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    if input.dtype.kind != "c":
        floats_only("silu", input)
    found = on(sigmoid, input)
    found *= input
    return found


def _halves(input: Any) -> tuple[Any, Any, Any]:
    """The parts of `mish` and its derivative: x (at most 40), e**x, and 1 / (e**x * (e**x + 2) + 2).

    The square of e**x stays finite; in half precision, e**x is 0 from -18 on, and x times a gradient might overflow.
    """
    x = np.clip(input, -18, 5.4) if data_of(input).dtype == np.float16 else np.minimum(input, 40)
    e = np.exp(x)
    return x, e, np.reciprocal(np.add(np.multiply(e, np.add(e, 2)), 2))


def _mish_rule(g: Any, input: Any) -> Any:
    # tanh(softplus(x)) = e (e + 2) / (e (e + 2) + 2), whose derivative is 4 e (e + 1) / (e (e + 2) + 2)**2
    x, e, r = _halves(input)
    slope = np.multiply(4, np.multiply(np.multiply(e, r), np.multiply(np.add(e, 1), r)))
    return np.multiply(g, np.add(np.multiply(np.multiply(e, np.add(e, 2)), r), np.multiply(x, slope)))


@pointwise(
    truths="inplace",
    home="nn.functional",
    checks=_input_alone(),
    fused=True,
    input=_mish_rule,
    samples=lambda: on_one(),
    kinks=CORNERS,
    refused=NOT_TENSORS,
    differs=lambda: [Differs("the derivative at infinity is 1, its limit; torch's is infinity times 0", "kinks")],
)
def mish(input: Any) -> Any:
    """``input * tanh(softplus(input))`` (Misra 2019, arXiv:1908.08681)."""
    floats_only("mish", input)
    _, e, r = _halves(input)
    return np.multiply(input, np.multiply(np.multiply(e, np.add(e, 2)), r))


def _times(input: Any, factor: float) -> Any:
    """The product with a number, which is often 1."""
    return input if factor == 1 else np.multiply(input, in_single(factor, input))


def _softplus_rule(g: Any, input: Any, beta: float, threshold: float) -> Any:
    scaled = _times(input, beta)
    return either(np.greater(plain(scaled), threshold), g, np.multiply(g, on(sigmoid, scaled)))


def _log_of_one_more(x: Any) -> Any:
    """``log(1 + exp(-|x|))``."""
    found = writable(np.absolute(x))
    np.negative(found, out=found)
    return np.log1p(np.exp(found, out=found), out=found)


@pointwise(
    scalars="beta threshold",
    out=True,
    home="nn.functional",
    fused=True,
    input=_softplus_rule,
    samples=lambda: on_one(S(A(2, 3), 2.0), S(A(2, 3), 0.5, 1.1), S(A(3), beta=-1, threshold=5)),
    kinks=CORNERS,
    refused=lambda: [*NOT_TENSORS, S(A(2), "x")],
)
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Any:
    """``log(1 + exp(beta * input)) / beta``; `input` itself where ``beta * input > threshold``."""
    floats_only("softplus", input)
    need_numbers("softplus", beta=beta, threshold=threshold)
    scaled = _times(input, beta)
    smooth = _log_of_one_more(scaled)
    smooth += np.maximum(scaled, 0)
    if beta != 1:
        smooth /= beta
    return either(np.greater(scaled, threshold), input, smooth)


@pointwise(
    out=True,
    contiguous=True,
    home="nn.functional",
    node="LogSigmoidBackward0",
    fused=True,
    input=lambda g, input: np.multiply(g, on(sigmoid, np.negative(input))),
    samples=lambda: on_one(),
    kinks=CORNERS,
    refused=NOT_TENSORS,
)
def logsigmoid(input: Any) -> Any:
    """``log(sigmoid(input))``, which neither rounds to 0 nor overflows."""
    floats_only("logsigmoid", input)
    return np.subtract(np.minimum(input, 0), _log_of_one_more(input))


@composite(
    home="nn.functional",
    samples=lambda: [
        S(A(4)),
        S(A(2, 4)),
        S(A(4, 3), 0),
        S(A(2, 4, 3), dim=1),
        S(A(2, 3, 2), -1),
        S(A(0, 4)),
        S(A(4, 0)),
        S(A(4, 2, layout="T"), 0),
    ],
    refused=lambda: [S(A(3)), S(A()), S(A(2, 4), 2), S(A(4), nonsense=1)],
)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """``a * sigmoid(b)`` of the two halves of `input` along `dim` (Dauphin et al. 2017, arXiv:1612.08083)."""
    floats_only("glu", input._data)
    if not input._data.ndim:
        raise refuse("glu", "an axis that can be halved", "a 0-d tensor")
    n = input.size(dim)
    if n % 2:
        raise refuse("glu", f"an even size along dim {dim}, to be halved", n)
    return input.narrow(dim, 0, n // 2) * sigmoid(input.narrow(dim, n // 2, n // 2))


with_twin(relu)
with_twin(selu, "selu_")
with_twin(celu, "celu_")
with_twin(rrelu, "rrelu_")
with_twin(threshold, "threshold_")
with_twin(elu)
with_twin(hardtanh)
with_twin(leaky_relu)

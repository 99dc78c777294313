"""Normalisations: of a batch, a layer, an instance or a group, by the root mean square, and over neighbouring channels.

The common part of all but the last is in `moments.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...autograd.grad_mode import no_grad
from ...kernels.sliding import Ints
from ...kernels.taps import runs
from ...ops.make.conversion import to
from ...table.entry import composite
from ...table.samples import A, Differs, S, V, inf, nan
from ...tensor.tensor import Tensor
from .arguments import floating, refuse, tensors, where_empty
from .moments import _affine, _layer_norm, _normalize, _standardize
from .primitives import resampled


def _shaped(out: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Ints) -> Tensor:
    """The result ``(a, c, b)`` times the weight plus the bias, each reshaped to the given shape."""
    if weight is None:
        return out if bias is None else out + bias.reshape(shape)
    if bias is None:
        return out * weight.reshape(shape)
    return _affine(out, weight.reshape(shape), bias.reshape(shape))


def _standard(input: Tensor, eps: float, center: bool, *then: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The results of `_standardize`. then: the weight and the bias; without them the first result is not scaled."""
    function = _standardize if any(part is not None for part in then) else _normalize
    if input._data.dtype != np.float16:
        return function(input, eps, center)
    # the variance, which the gradient needs, may be beyond half precision
    out, mean, variance = function(to(input, np.float32), eps, center)
    return to(out, np.float16), mean, variance


_EMPTY = where_empty("int64 bool complex128", "values gradients second")


def _fails_with_a_bias(check: str, sample: str) -> Differs:
    return Differs("torch has no derivative with a bias and without a weight", check, "float32 float64", sample)


_STATISTICS = Differs("the running statistics have no derivative, as in torch", "slopes", "float64", "[3] positive")


# The functions --------------------------------------------------------------------------------------------------------


def _in_single(input: Tensor, *given: Tensor | None) -> bool:
    """Whether the input is of half precision and all else of single: all is computed in single then, and rounded."""
    others = {t._data.dtype.char for t in given if isinstance(t, Tensor)}
    return isinstance(input, Tensor) and input._data.dtype.char == "e" and others == {"f"}


def _check_channels(name: str, input: Tensor, channels: int, **given: Tensor | None) -> None:
    """Refuse weights, biases and statistics that do not have one element for each channel."""
    for argument, value in given.items():
        if value is None:
            continue
        tensors(name, **{argument: value})
        if value._data.size != channels:
            raise refuse(name, f"{argument} to have {channels} elements", f"{value._data.size}")
        if value._data.dtype != input._data.dtype:
            raise refuse(name, f"{argument} to be {input.dtype}, as the input is", value.dtype, "convert one of them")


def _view(input: Tensor) -> Tensor:
    """``(N, C, ...)`` as ``(N, C, elements)``."""
    n, c, *rest = input._data.shape
    return input.reshape(n, c, math.prod(rest))


def _update(running: Tensor | None, found: Tensor, momentum: float) -> None:
    """Move a running statistic towards the one found, by a part of the difference."""
    if running is not None:
        with no_grad():
            running.copy_((1 - momentum) * running + momentum * found.reshape(running._data.shape))


@composite(
    home="nn.functional",
    narrow="with the first",
    samples=lambda: _batch_samples(),
    kinks=lambda: [S(V(x), None, None, training=True) for x in ([[inf, 1.0], [1.0, nan]], [[1.0], [1.0]])],
    refused=lambda: _batch_refused(),
    differs=[_STATISTICS, _fails_with_a_bias("second", "None, None, bias=[3], training=True"), *_EMPTY],
)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` of each channel, over the batch and the axes that follow.

    input: ``(N, C, ...)``; the other arguments: ``(C)``. training: mean and variance are taken from the input, and the
    running ones, if there are any, move towards them in place by `momentum` of the difference (the running variance
    is that of a sample, with N - 1); else the running mean and variance are used.

    >>> import pullback
    >>> x = pullback.tensor([[1.0], [3.0]])
    >>> pullback.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if _in_single(input, running_mean, running_var, weight, bias):
        wide = batch_norm(input.float(), running_mean, running_var, weight, bias, training, momentum, eps)
        return wide.to(input.dtype)
    tensors("batch_norm", input=input)
    floating("batch_norm", input)
    if not isinstance(momentum, (int, float)):
        raise refuse("batch_norm", "momentum to be a number", repr(momentum), error=TypeError)
    if eps < 0 or (training and not eps > 0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    shape = input._data.shape
    if shape == (0,):
        return input.clone()
    if len(shape) < 2:
        raise refuse("batch_norm", "an input (N, C, ...)", f"size {list(shape)}", error=IndexError)
    count = math.prod(shape) // shape[1] if shape[1] else 0
    if training and count == 1:
        raise refuse(
            "batch_norm", "more than 1 value per channel when training", f"size {list(shape)}", error=ValueError
        )
    if training and (running_mean is None) != (running_var is None):
        raise refuse("batch_norm", "both running_mean and running_var or neither", "one of them", error=ValueError)
    if not training and (running_mean is None or running_var is None):
        raise refuse("batch_norm", "running_mean and running_var in evaluation mode", "None")
    _check_channels(
        "batch_norm",
        input,
        shape[1],
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
    )
    if training:
        out, mean, variance = _standard(_view(input), eps, True, weight, bias)
        if count:
            _update(running_mean, mean.detach(), momentum)
            _update(running_var, variance.detach() * (count / (count - 1)), momentum)
        return _shaped(out, weight, bias, (1, shape[1], 1)).reshape(shape)
    assert running_mean is not None
    assert running_var is not None
    return _by_statistics(input, running_mean.detach(), running_var.detach(), weight, bias, eps)


def _by_statistics(
    input: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """The normalisation of ``(N, C, ...)`` by given statistics: a scale and a shift."""
    scale = (variance + eps).rsqrt().reshape(1, -1, 1)
    scale = scale if weight is None else scale * weight.reshape(1, -1, 1)
    shift = -mean.reshape(1, -1, 1) * scale
    shift = shift if bias is None else shift + bias.reshape(1, -1, 1)
    return _affine(_view(input), scale, shift).reshape(input._data.shape)


@composite(
    home="nn.functional",
    narrow="with the first",
    samples=lambda: _instance_samples(),
    refused=lambda: _instance_refused(),
    differs=[_STATISTICS, _fails_with_a_bias("second", "momentum"), *_EMPTY],
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` of each channel of each element of the batch separately, over the axes after ``(N, C)``.

    use_input_stats: as ``training`` of `batch_norm`; the running statistics move towards the average over the batch.
    """
    if _in_single(input, running_mean, running_var, weight, bias):
        wide = instance_norm(input.float(), running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
        return wide.to(input.dtype)
    tensors("instance_norm", input=input)
    floating("instance_norm", input)
    shape = input._data.shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise refuse(
            "instance_norm", "more than 1 spatial element when training", f"size {list(shape)}", error=ValueError
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise refuse("instance_norm", "running_mean and running_var when use_input_stats is false", "None")
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    _check_channels("instance_norm", input, shape[1], **given)
    if not use_input_stats:
        assert running_mean is not None
        assert running_var is not None
        return _by_statistics(input, running_mean.detach(), running_var.detach(), weight, bias, eps)
    n, c, count = shape[0], shape[1], math.prod(shape[2:])
    out, mean, variance = _standard(input.reshape(1, n * c, count), eps, True, weight, bias)
    if n * c * count:
        _update(running_mean, mean.detach().reshape(n, c).mean(0), momentum)
        _update(running_var, variance.detach().reshape(n, c).mean(0) * (count / (count - 1)), momentum)
    return _shaped(out.reshape(n, c, count), weight, bias, (1, c, 1)).reshape(shape)


def _inner(name: str, input: Tensor, normalized_shape: Any, **given: Tensor | None) -> tuple[int, int]:
    """The number of elements of the leading axes, and of the last axes, which must have the given shape."""
    tensors(name, input=input, **{k: v for k, v in given.items() if v is not None})
    if not isinstance(normalized_shape, (tuple, list)):
        raise refuse(name, "normalized_shape to be a tuple of integers", repr(normalized_shape), error=TypeError)
    shape, inner = input._data.shape, tuple(normalized_shape)
    if not inner or shape[len(shape) - len(inner) :] != inner or len(inner) > len(shape):
        raise refuse(name, f"an input that ends in normalized_shape={list(inner)}, not empty", f"size {list(shape)}")
    for argument, value in given.items():
        if value is not None and value._data.shape != inner:
            raise refuse(name, f"{argument} of shape {list(inner)}", list(value._data.shape))
    return math.prod(shape[: len(shape) - len(inner)]), math.prod(inner)


@composite(
    home="nn.functional",
    narrow="with the first",
    also="layer_norm",
    fused=True,
    samples=lambda: _layer_samples(True),
    kinks=lambda: [S(V([[inf, 1.0], [2.0, 2.0], [nan, 0.0]]), (2,))],
    refused=lambda: [*_layer_refused(), S(A(2, 3), (3,), A(3, dtype="float64")), S(A(2, 3), (3,), None, A(2))],
    differs=[_fails_with_a_bias("second", "bias=[2, 3]")],
)
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes, which have `normalized_shape`.

    >>> import pullback
    >>> pullback.nn.functional.layer_norm(pullback.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    if _in_single(input, weight, bias):
        return layer_norm(input.float(), normalized_shape, weight, bias, eps).to(input.dtype)
    outer, inner = _inner("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    floating("layer_norm", input)
    for argument, value in (("weight", weight), ("bias", bias)):
        if value is not None and value._data.dtype != input._data.dtype:
            raise refuse("layer_norm", f"{argument} to be {input.dtype}, as the input is", value.dtype)
    return _by_layer(input, weight, bias, eps, True, outer, inner)


def _by_layer(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, center: bool, outer: int, inner: int
) -> Tensor:
    """The normalisation of the last axes, of `inner` elements. Half precision is computed in single, rounded once."""
    if input._data.dtype == np.float16:
        scale, shift = (t if t is None else to(t, np.float32) for t in (weight, bias))
        return to(_by_layer(to(input, np.float32), scale, shift, eps, center, outer, inner), np.float16)
    shape = input._data.shape
    as_it_is = shape[-1] == inner and all(t is None or t._data.ndim == 1 for t in (weight, bias))
    if not as_it_is:
        input = input.reshape(outer, inner)
        weight, bias = (t if t is None else t.reshape(-1) for t in (weight, bias))
    out: Tensor = _layer_norm(input, weight, bias, eps, center)[0]
    return out if as_it_is else out.reshape(shape)


@composite(
    contiguous=True,
    home="nn.functional",
    narrow="as the first",
    also="rms_norm",
    fused=True,
    samples=lambda: _layer_samples(False),
    refused=lambda: [*_layer_refused()],
)
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axes, which have `normalized_shape`.

    eps: unless given, the distance from 1 to the next number of the dtype; for half precision, that of float32, in
    which it is computed (Zhang and Sennrich 2019, arXiv:1910.07467).

    >>> import pullback
    >>> pullback.nn.functional.rms_norm(pullback.tensor([[1.0, -1.0], [2.0, 2.0]]), (2,))
    tensor([[ 1., -1.],
            [ 1.,  1.]])
    """
    if _in_single(input, weight):
        eps = float(np.finfo(np.float32).eps) if eps is None else eps
        return rms_norm(input.float(), normalized_shape, weight, eps).to(input.dtype)
    outer, inner = _inner("rms_norm", input, normalized_shape, weight=weight)
    floating("rms_norm", input, also="c")
    small = float(np.finfo(np.result_type(input._data.dtype, np.float32)).eps) if eps is None else eps
    if input.is_complex():  # torch squares without conjugating
        rows = input.reshape(1, outer, inner)
        out = rows * ((rows * rows).mean(-1, keepdim=True) + small).rsqrt()
        return to(_shaped(out, weight, None, (1, 1, inner)), input._data.dtype).reshape(input._data.shape)
    return to(_by_layer(input, weight, None, small, False, outer, inner), input._data.dtype)


@composite(
    home="nn.functional",
    narrow="with the first",
    also="group_norm",
    fused=True,
    samples=lambda: _group_samples(),
    refused=lambda: _group_refused(),
    differs=[_fails_with_a_bias(c, "None, [4]") for c in ("gradients", "second")],
)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """The channels of ``(N, C, ...)`` in `num_groups` groups with mean 0 and variance 1; then a scale and a shift.

    weight, bias: ``(C)``.
    """
    if _in_single(input, weight, bias):
        return group_norm(input.float(), num_groups, weight, bias, eps).to(input.dtype)
    tensors("group_norm", input=input)
    floating("group_norm", input)
    shape = input._data.shape
    if len(shape) < 2:
        raise refuse("group_norm", "at least 2 dimensions", f"size {list(shape)}")
    if num_groups < 1 or shape[1] % num_groups:
        raise refuse(
            "group_norm",
            f"a number of channels divisible by num_groups={num_groups}",
            f"size {list(shape)}",
            error=RuntimeError if num_groups else ZeroDivisionError,
        )
    if shape[0] * shape[1] // num_groups * math.prod(shape[2:]) == 1:
        raise refuse("group_norm", "more than 1 value per group", f"size {list(shape)}", error=ValueError)
    _check_channels("group_norm", input, shape[1], weight=weight, bias=bias)
    rows = input.reshape(1, shape[0] * num_groups, shape[1] // num_groups * math.prod(shape[2:]))
    out = _standard(rows, eps, True, weight, bias)[0]
    return _shaped(out.reshape(shape[0], shape[1], math.prod(shape[2:])), weight, bias, (1, shape[1], 1)).reshape(shape)


@composite(
    bounds="beta",
    home="nn.functional",
    samples=lambda: _response_samples(),
    refused=lambda: _response_refused(),
    differs=_EMPTY,
)
def local_response_norm(input: Tensor, size: int, alpha: Any = 1e-4, beta: Any = 0.75, k: Any = 1.0) -> Tensor:
    """``x / (k + alpha * mean of x ** 2 over size channels around) ** beta`` of ``(N, C, ...)``; zeros at the ends.

    (Krizhevsky, Sutskever and Hinton 2012, section 3.3.)
    """
    tensors("local_response_norm", input=input)
    shape = input._data.shape
    if len(shape) < 3:
        raise refuse("local_response_norm", "at least 3 dimensions", f"size {list(shape)}", error=ValueError)
    floating("local_response_norm", input, also="iu")
    if size < 1:
        raise refuse("local_response_norm", "size to be at least 1", size)
    first = np.arange(shape[1]) - size // 2
    channels = runs(shape[1], first, first + size, evenly=True)
    total = resampled(input * input, (channels, *[None] * (len(shape) - 2)))
    mean = total / size if input.is_floating_point() else total.div(size, rounding_mode="trunc")
    return input / (mean * alpha + k).pow(beta)


# Their domains --------------------------------------------------------------------------------------------------------


def _batch_samples() -> list[Any]:
    x, w, b = A(2, 3, 4), A(3), A(3)
    mean, variance = A(3, domain="small"), A(3, domain="positive")
    return [
        S(x, None, None, training=True),
        S(x, None, None, w, b, True),
        S(A(4, 3), None, None, weight=w, training=True, eps=0.1),
        S(A(2, 3, 2, 3, layout="T"), None, None, bias=b, training=True),
        S(A(2, 3, 2, 2, 2, layout="step"), None, None, w, b, True, 0.3, 0.01),
        S(x, mean, variance),
        S(A(4, 3), mean, variance, w, b, False, 0.1, 0.2),
        S(A(1, 3, 2, 2, layout="readonly"), running_mean=mean, running_var=variance, bias=b),
        S(A(2, 3), mean, variance, A(3, 1)),
        S(A(0, 3, 4), None, None, w, b, True),
    ]


def _batch_refused() -> list[Any]:
    x = A(2, 3)
    return [
        S(x, None, None),
        S(A(1, 3), None, None, training=True),
        S(A(3), None, None, training=True),
        S(x, A(2), A(3)),
        S(x, A(3), None),
        S(x, A(3), None, training=True),
        S(x, A(3), A(3), A(2)),
        S(x, A(3), A(3), None, A(4)),
        S(x, A(3), A(3), A(3, dtype="float64")),
        S(x, None, None, None, None, True, None),
        S([1.0], A(3), A(3)),
        S(x),
    ]


def _instance_samples() -> list[Any]:
    x, w, b = A(2, 3, 4), A(3), A(3)
    mean, variance = A(3, domain="small"), A(3, domain="positive")
    return [
        S(x),
        S(x, None, None, w, b),
        S(A(2, 3, 2, 3, layout="T"), weight=w, eps=0.1),
        S(A(1, 3, 2, 2, 2, layout="step"), bias=b, momentum=0.3),
        S(x, mean, variance, w, b, False),
        S(A(2, 3, 1), mean, variance, use_input_stats=False, eps=0.2),
        S(A(0, 3, 4)),
    ]


def _instance_refused() -> list[Any]:
    return [S(A(2, 3)), S(A(2, 3, 1)), S(A(2, 3, 4), use_input_stats=False), S(A(2, 3, 4), weight=A(2))]


def _layer_samples(bias: bool) -> list[Any]:
    found = [
        S(A(2, 3), (3,)),
        S(A(2, 2, 3), [2, 3], A(2, 3)),
        S(A(3, 4, layout="T"), (4,), weight=A(4), eps=0.1),
        S(A(2, 3, layout="step"), (2, 3)),
        S(A(3, layout="readonly"), (3,), A(3)),
        S(A(0, 3), (3,), A(3)),
        S(A(2, 0), (0,)),
    ]
    return (
        found
        + [S(A(2, 3), (3,), A(3), A(3)), S(A(4, 2, 3), (2, 3), bias=A(2, 3)), S(A(5, 3), (3,), A(3), A(3), 0.1)] * bias
    )


def _layer_refused() -> list[Any]:
    x = A(2, 3)
    return [S(x, 3), S(x, (2,)), S(x, ()), S(x, (3,), A(2)), S([1.0], (3,)), S(x)]


def _group_samples() -> list[Any]:
    x, w, b = A(2, 4, 3), A(4), A(4)
    return [
        S(x, 2),
        S(x, 2, w, b),
        S(A(2, 4), 2, weight=w, eps=0.1),
        S(A(2, 4, 2, 2, layout="T"), 4, None, b),
        S(A(1, 4, 2, layout="step"), 1, w, b, 0.01),
        S(A(0, 4, 3), 2),
    ]


def _group_refused() -> list[Any]:
    x = A(2, 4, 3)
    return [S(x, 3), S(x, 0), S(A(1, 4), 4), S(A(4), 2), S(x, 2, A(2)), S(x, 2, A(4, dtype="float64")), S(x)]


def _response_samples() -> list[Any]:
    x = A(2, 4, 3)
    return [
        S(x, 2),
        S(x, 3, 0.5, 0.5, 2.0),
        S(A(2, 5, 2, 2, layout="T"), 4, alpha=0.3, beta=1.5),
        S(A(1, 3, 2, 1, 2), 9, k=0.5),
        S(A(0, 3, 4), 2),
        S(A(2, 3, 2, 2, 1, 2, layout="step"), 1),
    ]


def _response_refused() -> list[Any]:
    return [S(A(2, 3), 2), S(A(2, 3, 4), 0), S(A(2, 3, 4))]

"""Convolutions and transposed convolutions in one, two and three dimensions.

The arithmetic is in `trilinear.py`. Here are torch's names, and the checks of arguments.
"""

from __future__ import annotations

from typing import Any

from .... import errors
from ....kernels.sliding import Ints, Slide
from ....table.entry import composite
from ....table.samples import A, S
from ....tensor.tensor import Tensor
from ..arguments import floating, integers, ranks, refuse, tensors, where_empty
from .family import family
from .trilinear import Geometry, _convolve, _spread

# Convolutions ---------------------------------------------------------------------------------------------------------


def _checked(name: str, input: Tensor, weight: Tensor, bias: Tensor | None, space: int, groups: Any) -> int:
    """The number of groups, after a check of the arguments that both kinds of convolution share."""
    tensors(name, input=input, weight=weight, **({} if bias is None else {"bias": bias}))
    floating(name, input, weight, also="ciu")
    ranks(name, input, space + 1, space + 2)
    size = list(weight._data.shape)
    if len(size) != space + 2:
        raise refuse(name, f"a {space + 2}D weight", f"one of size {size}")
    found = integers(name, "groups", groups, 1, 1)[0]
    if size[0] % found or not size[0]:
        raise refuse(name, f"a weight of a positive size divisible by {found} groups at dimension 0", size)
    for other in (weight, bias):
        if other is not None and other._data.dtype != input._data.dtype:
            raise refuse(
                name,
                f"input, weight and bias of one dtype, {input.dtype}",
                errors.describe(other),
                f"convert the input, as x.to({other.dtype}), or the model, as model.to({input.dtype})",
            )
    if min(size[2:]) < 1:
        raise refuse(name, "a kernel of at least one element along each axis", f"a weight of size {size}")
    return found


def _biased(name: str, out: Tensor, bias: Tensor | None, space: int) -> Tensor:
    """The result plus a number for each of its channels."""
    if bias is None:
        return out
    channels = out._data.shape[1]
    if bias._data.shape != (channels,):
        raise refuse(name, f"a bias of {channels} elements, one for each channel", f"size {list(bias._data.shape)}")
    return out + bias.reshape(-1, *[1] * space)


@family(
    narrow="one dtype",
    samples=lambda space: _samples(space),
    refused=lambda space: _refused(space),
    differs=lambda space: where_empty("bool"),
)
def _convolution(
    space: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """`conv1d` to `conv3d`."""
    name = f"conv{space}d"
    groups = _checked(name, input, weight, bias, space, groups)
    stride = integers(name, "stride", stride, space, 1)
    dilation = integers(name, "dilation", dilation, space, 1)
    image, kernel = input._data.shape[-space:], weight._data.shape[2:]
    slide = Slide(stride, _padding(name, padding, kernel, stride, dilation), dilation)
    channels = input._data.shape[-space - 1]
    if channels != weight._data.shape[1] * groups:
        raise refuse(
            name, f"an input of {weight._data.shape[1] * groups} channels", f"{channels} in {list(input._data.shape)}"
        )
    if min(slide.places(image, kernel)) < 1:
        size = [n + low + high for n, (low, high) in zip(image, slide.padding, strict=True)]
        raise refuse(
            name,
            "a kernel that is not larger than the padded input",
            f"a kernel of size {list(kernel)}, an input of size {size} with its padding",
            "add padding, or use a smaller kernel or dilation",
        )
    batched = input if input._data.ndim == space + 2 else input.unsqueeze(0)
    out = _biased(name, _convolve(batched, weight, Geometry(slide, groups)), bias, space)
    return out if batched is input else out.squeeze(0)


def _padding(name: str, padding: Any, kernel: Ints, stride: Ints, dilation: Ints) -> tuple[tuple[int, int], ...]:
    """The zeros before and after along each axis, from numbers, `'same'` or `'valid'`."""
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise refuse(name, "stride 1 with padding='same'", f"stride {list(stride)}", "give the padding in numbers")
        rests = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return tuple((n // 2, n - n // 2) for n in rests)
    if isinstance(padding, str):
        raise refuse(name, "padding to be 'same', 'valid' or integers", repr(padding))
    return tuple((n, n) for n in integers(name, "padding", padding, len(kernel), 0))


@_convolution(1, also="conv1d")
def conv1d() -> None:
    """``out[n, o, l] = bias[o] + sum over c, k of weight[o, c, k] * input[n, c, stride * l - padding + dilation * k]``.

    input: ``(N, C, L)`` or ``(C, L)``; weight: ``(O, C / groups, K)``; padding: zeros at both ends, ``'valid'`` for no
    zeros, or ``'same'`` for a result as long as the input; groups: the channels are divided into this many groups with
    separate weights.

    >>> import pullback
    >>> x = pullback.tensor([[1.0, 2.0, 4.0, 8.0]])
    >>> pullback.nn.functional.conv1d(x, pullback.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2., 4.]])
    """


@_convolution(2, also="conv2d")
def conv2d() -> None:
    """The convolution of `conv1d` along two axes: ``(N, C, H, W)`` and ``(O, C / groups, K, L)``.

    >>> import pullback
    >>> x = pullback.ones(1, 1, 3, 3)
    >>> pullback.nn.functional.conv2d(x, pullback.ones(1, 1, 3, 3), padding=1)
    tensor([[[[4., 6., 4.],
              [6., 9., 6.],
              [4., 6., 4.]]]])
    """


@_convolution(3, also="conv3d")
def conv3d() -> None:
    """The convolution of `conv1d` along three axes: ``(N, C, D, H, W)`` and ``(O, C / groups, J, K, L)``.

    >>> import pullback
    >>> pullback.nn.functional.conv3d(pullback.ones(1, 2, 2, 2), pullback.ones(1, 1, 2, 2, 2))
    tensor([[[[8.]]]])
    """


@composite(
    contiguous=True,
    home="nn.functional",
    also="conv_tbc",
    samples=lambda: [S(A(4, 2, 3), A(3, 3, 2), A(2)), S(A(4, 2, 3), A(2, 3, 2), A(2), 1)],
)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of ``(L, N, C)`` with a weight ``(K, C, O)``: time first, channels last."""
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


# Transposed convolutions ----------------------------------------------------------------------------------------------


@family(
    narrow="one dtype",
    samples=lambda space: _transposed_samples(space),
    refused=lambda space: _transposed_refused(space),
    differs=lambda space: where_empty("bool"),
)
def _transposed(
    space: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """`conv_transpose1d` to `conv_transpose3d`."""
    name = f"conv_transpose{space}d"
    groups = _checked(name, input, weight, bias, space, groups)
    stride = integers(name, "stride", stride, space, 1)
    dilation = integers(name, "dilation", dilation, space, 1)
    before = integers(name, "padding", padding, space, 0)
    more = integers(name, "output_padding", output_padding, space, 0)
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)):
        raise refuse(
            name,
            "output_padding to be smaller than either stride or dilation",
            f"output_padding {list(more)}, stride {list(stride)}, dilation {list(dilation)}",
        )
    channels, places = input._data.shape[-space - 1], input._data.shape[-space:]
    if channels != weight._data.shape[0]:
        raise refuse(name, f"an input of {weight._data.shape[0]} channels", f"{channels} in {list(input._data.shape)}")
    if min(places) < 1:
        raise refuse(name, "an input of at least one element in each channel", f"size {list(input._data.shape)}")
    kernel = weight._data.shape[2:]
    image = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + 1 + m
        for n, k, s, p, d, m in zip(places, kernel, stride, before, dilation, more, strict=True)
    )
    if min(image) < 1:
        raise refuse(name, "an output of at least one element", f"size {list(image)}", "use less padding")
    slide = Slide(stride, tuple((p, p - m) for p, m in zip(before, more, strict=True)), dilation)
    batched = input if input._data.ndim == space + 2 else input.unsqueeze(0)
    out = _biased(name, _spread(batched, weight, Geometry(slide, groups), image), bias, space)
    return out if batched is input else out.squeeze(0)


@_transposed(1, also="conv_transpose1d")
def conv_transpose1d() -> None:
    """The adjoint of `conv1d` in its input: each element of `input` adds the weight, times itself, to the output.

    input: ``(N, C, L)`` or ``(C, L)``; weight: ``(C, O / groups, K)``; padding: the number of elements cut off at both
    ends; output_padding: the number of elements added at the end. The length of the output is ``(L - 1) * stride -
    2 * padding + dilation * (K - 1) + output_padding + 1``.

    >>> import pullback
    >>> x = pullback.tensor([[1.0, 2.0]])
    >>> pullback.nn.functional.conv_transpose1d(x, pullback.tensor([[[1.0, 10.0]]]), stride=2)
    tensor([[ 1., 10.,  2., 20.]])
    """


@_transposed(2, also="conv_transpose2d")
def conv_transpose2d() -> None:
    """The transposed convolution of `conv_transpose1d` along two axes.

    >>> import pullback
    >>> x = pullback.tensor([[[1.0, 2.0]]])
    >>> pullback.nn.functional.conv_transpose2d(x, pullback.ones(1, 1, 2, 2))
    tensor([[[1., 3., 2.],
             [1., 3., 2.]]])
    """


@_transposed(3, also="conv_transpose3d")
def conv_transpose3d() -> None:
    """The transposed convolution of `conv_transpose1d` along three axes.

    >>> import pullback
    >>> pullback.nn.functional.conv_transpose3d(pullback.ones(1, 1, 1, 2), pullback.ones(1, 1, 1, 1, 2))
    tensor([[[[1., 2., 1.]]]])
    """


# Their domains --------------------------------------------------------------------------------------------------------


def _samples(space: int) -> list[Any]:
    image, kernel = (5, 4, 3)[:space], (3, 2, 2)[:space]
    x, w = A(2, 2, *image), A(3, 2, *kernel)
    found = [
        S(x, w),
        S(x, w, A(3), 1, 1),
        S(A(2, *image), w, bias=A(3)),
        S(x, w, stride=2, padding=(2, 1, 1)[:space], dilation=(2, 1, 2)[:space]),
        S(A(2, 4, *image), A(6, 2, *kernel), None, [2] * space, (1,), 1, 2),
        S(A(1, 2, *image, layout="T"), A(2, 1, *kernel, layout="step"), groups=2),
        S(x, A(2, 2, *[1] * space)),
        S(A(0, 2, *image), w, A(3)),
        S(A(1, 1, *[1] * space), A(1, 1, *[1] * space)),
        S(A(2, 1, *image), A(2, 1, *image), stride=7),
    ]
    if space < 3:
        found += [
            S(x, w, padding="same", dilation=2),
            S(A(1, 2, *image, layout="readonly"), w, padding="valid", stride=2),
        ]
    return found


def _refused(space: int) -> list[Any]:
    image, kernel = (5, 5, 5)[:space], (3, 3, 3)[:space]
    x, w = A(1, 2, *image), A(4, 2, *kernel)
    return [
        S(A(*image), w),
        S(x, A(4, 2, *kernel, 1)),
        S(x, A(4, 3, *kernel)),
        S(x, A(4, 2, 8, *kernel[1:])),
        S(x, A(4, 2, 0, *kernel[1:])),
        S(x, A(0, 2, *kernel)),
        S(x, w, A(3)),
        S(x, w, A(4, 1)),
        S(x, A(4, 2, *kernel, dtype="float64")),
        S(x, w, A(4, dtype="float64")),
        S(x, w, stride=0),
        S(x, w, stride=[1] * (space + 1)),
        S(x, w, stride=1.5),
        S(x, w, padding=-1),
        S(x, w, padding="same", stride=2),
        S(x, w, padding="full"),
        S(x, w, dilation=0),
        S(x, w, groups=2),
        S(x, w, groups=0),
        S(x, w, groups=3),
        S(A(1, 2, 0, *image[1:]), w),
        S([1.0], w),
        S(x, None),
        S(x),
        S(x, w, nonsense=1),
    ]


def _transposed_samples(space: int) -> list[Any]:
    places, kernel = (3, 2, 2)[:space], (3, 2, 2)[:space]
    x, w = A(2, 2, *places), A(2, 3, *kernel)
    return [
        S(x, w),
        S(x, w, A(3), 2, 1),
        S(A(2, *places), w, bias=A(3)),
        S(x, w, stride=2, padding=(1, 1, 0)[:space], output_padding=(1, 0, 1)[:space], dilation=2),
        S(x, w, None, 1, 0, 1, 1, 2),
        S(A(1, 4, *places), A(4, 1, *kernel), A(2), [3] * space, 0, (2,), 2),
        S(A(1, 2, *places, layout="T"), A(2, 1, *kernel, layout="step"), groups=2),
        S(x, A(2, 2, *[1] * space), stride=2),
        S(A(0, 2, *places), w),
        S(A(1, 1, *[1] * space), A(1, 1, *[1] * space)),
    ]


def _transposed_refused(space: int) -> list[Any]:
    places, kernel = (5, 5, 5)[:space], (3, 3, 3)[:space]
    x, w = A(1, 2, *places), A(2, 3, *kernel)
    return [
        S(A(*places), w),
        S(x, A(3, 3, *kernel)),
        S(x, A(2, 3, *kernel, 1)),
        S(x, w, A(2)),
        S(x, w, output_padding=1),
        S(x, w, stride=2, output_padding=-1),
        S(x, w, padding=4),
        S(x, w, padding="same"),
        S(x, w, groups=0),
        S(x, A(2, 3, *kernel, dtype="float64")),
        S(A(1, 2, 0, *places[1:]), w),
        S(x),
    ]

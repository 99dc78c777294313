"""Convolutions, and their transposes, as modules.

Inputs are (N, in_channels, ...) or (in_channels, ...), with one, two or three dimensions of space. A size along these
is one number for all, or one number for each. Weight and bias begin uniform within ``1 / sqrt(fan_in)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from .... import errors
from ....ops.make.of_size import empty
from ....tensor.tensor import Tensor
from ... import functional as F  # noqa: N812 - the field's name for it
from ... import init
from ...module import Module
from ...parameter import Parameter
from ..sizes import repeated

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The common part of convolutions along `_dims` dimensions and their transposes. `_function` computes them."""

    _dims: ClassVar[int]
    _function: ClassVar[Callable[..., Tensor]]
    transposed: ClassVar[bool]
    weight: Parameter
    bias: Parameter | None

    def _set_up(
        self, channels: tuple[int, int], groups: int, bias: bool, padding_mode: str, sizes: dict[str, Any], **kind: Any
    ) -> None:
        """Check the arguments, set them as attributes, and make the parameters."""
        self.in_channels, self.out_channels = inputs, outputs = channels
        self.groups, self.padding_mode = groups, padding_mode
        for name, size in sizes.items():
            setattr(self, name, size if isinstance(size, str) else repeated(size, self._dims))
        self._check(sizes["padding"])
        first, second = (inputs, outputs) if self.transposed else (outputs, inputs)
        self.weight = Parameter(empty(first, second // groups, *self.kernel_size, **kind))
        self.register_parameter("bias", Parameter(empty(outputs, **kind)) if bias else None)
        self.reset_parameters()

    def _check(self, padding: Any) -> None:
        self._expect(self.groups > 0, "groups must be a positive integer", self.groups)
        for name in ("in_channels", "out_channels"):
            found = f"{getattr(self, name)} and {self.groups}"
            self._expect(getattr(self, name) % self.groups == 0, f"{name} must be divisible by groups", found)
        if isinstance(padding, str):
            self._expect(padding in ("same", "valid"), "padding must be numbers, 'same' or 'valid'", repr(padding))
            allowed = padding != "same" or all(n == 1 for n in self.stride)
            self._expect(allowed, "padding='same' is not supported for strided convolutions", f"stride {self.stride}")
        modes = ("zeros",) if self.transposed else _MODES
        self._expect(self.padding_mode in modes, f"padding_mode must be one of {modes}", repr(self.padding_mode))

    def _expect(self, condition: bool, words: str, found: Any) -> None:
        if not condition:
            raise ValueError(errors.message(f"{type(self).__name__}(): {words}", found=str(found)))

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        settings = [str(self.in_channels), str(self.out_channels)]
        settings += [f"kernel_size={self.kernel_size}", f"stride={self.stride}"]
        for name, default in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (default,) * self._dims:
                settings.append(f"{name}={getattr(self, name)}")
        settings += [f"groups={self.groups}"] * (self.groups != 1) + ["bias=False"] * (self.bias is None)
        return ", ".join(settings + [f"padding_mode={self.padding_mode}"] * (self.padding_mode != "zeros"))


class _Conv(_ConvNd):
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
        sizes["output_padding"] = 0
        channels = in_channels, out_channels
        self._set_up(channels, groups, bias, padding_mode, sizes, device=device, dtype=dtype)

    def _ends(self) -> list[int]:
        """The padding at both ends of each dimension, from the last to the first, as `pad` takes it."""
        if self.padding == "valid":
            return [0] * (2 * self._dims)
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [end for total in reversed(totals) for end in (total // 2, total - total // 2)]
        return [end for size in reversed(self.padding) for end in (size, size)]

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._ends(), mode=self.padding_mode), 0
        return self._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """``out[n, k] = bias[k] + sum_c weight[k, c] * in[n, c]``, the cross-correlation along one dimension.

    `weight` is (out_channels, in_channels / groups, kernel_size). `padding` may be ``"same"`` or ``"valid"``, and
    `padding_mode` ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.

    >>> import pullback
    >>> pullback.nn.Conv1d(2, 5, 3, padding="same")(pullback.zeros(1, 2, 8)).shape
    pullback.Size([1, 5, 8])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv1d.html.
    """

    _dims, _function = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    """`Conv1d` in the plane: of (N, in_channels, H, W).

    >>> import pullback
    >>> pullback.nn.Conv2d(2, 4, 3, stride=2, padding=1)(pullback.zeros(1, 2, 8, 8)).shape
    pullback.Size([1, 4, 4, 4])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html.
    """

    _dims, _function = 2, staticmethod(F.conv2d)


class Conv3d(_Conv):
    """`Conv1d` in space: of (N, in_channels, D, H, W).

    >>> import pullback
    >>> pullback.nn.Conv3d(1, 2, 3)(pullback.zeros(1, 1, 4, 4, 4)).shape
    pullback.Size([1, 2, 2, 2, 2])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv3d.html.
    """

    _dims, _function = 3, staticmethod(F.conv3d)


class _ConvTranspose(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
        sizes["output_padding"] = output_padding
        channels = in_channels, out_channels
        self._set_up(channels, groups, bias, padding_mode, sizes, device=device, dtype=dtype)

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """The excess of the output's size over the smallest size whose convolution has the size of the input."""
        if output_size is None:
            return self.output_padding
        others = input.ndim - self._dims
        wanted = list(output_size)[others:] if len(output_size) == input.ndim else list(output_size)
        settings = zip(input.shape[others:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * stride - 2 * pad + dilation * (k - 1) + 1 for n, stride, pad, dilation, k in settings]
        most = [size + stride - 1 for size, stride in zip(least, self.stride, strict=True)]
        words = f"for {input.ndim}D input, output_size must have {self._dims} or {input.ndim} elements"
        self._expect(len(wanted) == self._dims, words, list(output_size))
        fits = all(low <= n <= high for low, n, high in zip(least, wanted, most, strict=True))
        self._expect(fits, f"valid output sizes range from {least} to {most}", wanted)
        return tuple(n - low for n, low in zip(wanted, least, strict=True))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        more = self._output_padding(input, output_size)
        settings = self.stride, self.padding, more, self.groups, self.dilation
        return self._function(input, self.weight, self.bias, *settings)


class ConvTranspose1d(_ConvTranspose):
    """The transpose of `Conv1d` with respect to its input: it goes from the size of an output to that of an input.

    `weight` is (in_channels, out_channels / groups, kernel_size). If several sizes of the output are possible,
    `output_padding` or the argument `output_size` of the call chooses one.

    >>> import pullback
    >>> pullback.nn.ConvTranspose1d(2, 1, 3, stride=2)(pullback.zeros(1, 2, 4)).shape
    pullback.Size([1, 1, 9])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose1d.html.
    """

    _dims, _function = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """The transpose of `Conv2d`; see `ConvTranspose1d`.

    >>> import pullback
    >>> up = pullback.nn.ConvTranspose2d(2, 1, 3, stride=2, padding=1)
    >>> up(pullback.zeros(1, 2, 4, 4), output_size=(8, 8)).shape
    pullback.Size([1, 1, 8, 8])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html.
    """

    _dims, _function = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """The transpose of `Conv3d`; see `ConvTranspose1d`.

    >>> import pullback
    >>> pullback.nn.ConvTranspose3d(1, 1, 2)(pullback.zeros(1, 1, 2, 2, 2)).shape
    pullback.Size([1, 1, 3, 3, 3])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose3d.html.
    """

    _dims, _function = 3, staticmethod(F.conv_transpose3d)

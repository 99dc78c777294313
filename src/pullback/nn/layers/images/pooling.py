"""Pooling, as modules: what lies under a window that slides over the last dimensions becomes one number.

Inputs are (N, C, ...) or (C, ...). `stride` is `kernel_size` unless given.
"""

from __future__ import annotations

from typing import Any

from .... import errors
from ....tensor.tensor import Tensor
from ... import functional as F  # noqa: N812 - the field's name for it
from ..layer import Layer, layer
from ..sizes import repeated


@layer
class _MaxPool(Layer):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False
    _shown = "kernel_size stride padding dilation ceil_mode"

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}


class MaxPool1d(_MaxPool):
    """The greatest number under each window, with `return_indices` also where it is, of (N, C, L).

    >>> import pullback
    >>> pullback.nn.MaxPool1d(2)(pullback.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, **self._settings())


class MaxPool2d(_MaxPool):
    """`MaxPool1d` of (N, C, H, W).

    >>> import pullback
    >>> pullback.nn.MaxPool2d(2)(pullback.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(input, **self._settings())


class MaxPool3d(_MaxPool):
    """`MaxPool1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.MaxPool3d(2)(pullback.arange(8.0).reshape(1, 2, 2, 2)).item()
    7.0
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(input, **self._settings())


@layer
class _MaxUnpool(Layer):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0

    def _sizes(self, dims: int) -> tuple[tuple[Any, ...], ...]:
        """The three as tuples."""
        stride = self.kernel_size if self.stride is None else self.stride
        return tuple(repeated(size, dims) for size in (self.kernel_size, stride, self.padding))


class MaxUnpool1d(_MaxUnpool):
    """Puts the maxima of `MaxPool1d` back where its indices say, and zeros elsewhere.

    `output_size` chooses among the sizes that the pooling may have had.

    >>> import pullback
    >>> x = pullback.tensor([[1.0, 3.0, 2.0, 0.0]])
    >>> pullback.nn.MaxUnpool1d(2)(*pullback.nn.MaxPool1d(2, return_indices=True)(x))
    tensor([[0., 3., 2., 0.]])
    """

    def __post_init__(self) -> None:
        self.kernel_size, self.stride, self.padding = self._sizes(1)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpool):
    """Undoes `MaxPool2d`, as `MaxUnpool1d`.

    `output_size` chooses among the sizes that the pooling may have had.

    >>> import pullback
    >>> x = pullback.arange(4.0).reshape(1, 2, 2)
    >>> pullback.nn.MaxUnpool2d(2)(*pullback.nn.MaxPool2d(2, return_indices=True)(x))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    def __post_init__(self) -> None:
        self.kernel_size, self.stride, self.padding = self._sizes(2)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpool):
    """Undoes `MaxPool3d`, as `MaxUnpool1d`.

    `output_size` chooses among the sizes that the pooling may have had.

    >>> import pullback
    >>> x = pullback.arange(8.0).reshape(1, 2, 2, 2)
    >>> pullback.nn.MaxUnpool3d(2)(*pullback.nn.MaxPool3d(2, return_indices=True)(x)).sum()
    tensor(7.)
    """

    def __post_init__(self) -> None:
        self.kernel_size, self.stride, self.padding = self._sizes(3)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


@layer
class AvgPool1d(Layer):
    """The mean of the numbers under each window, of (N, C, L).

    >>> import pullback
    >>> pullback.nn.AvgPool1d(2)(pullback.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    _shown = "kernel_size stride padding"

    def __post_init__(self) -> None:
        stride = self.kernel_size if self.stride is None else self.stride
        self.kernel_size, self.stride, self.padding = (
            repeated(size, 1) for size in (self.kernel_size, stride, self.padding)
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


@layer
class _AvgPool(Layer):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None
    _shown = "kernel_size stride padding"

    def __post_init__(self) -> None:
        # as torch's layers do: a stride of 0, too, is the size of the kernel
        self.stride = self.stride or self.kernel_size

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}


class AvgPool2d(_AvgPool):
    """`AvgPool1d` of (N, C, H, W); `divisor_override` is what the sums are divided by instead.

    >>> import pullback
    >>> pullback.nn.AvgPool2d(2)(pullback.arange(4.0).reshape(1, 2, 2))
    tensor([[[1.5000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, **self._settings())


class AvgPool3d(_AvgPool):
    """`AvgPool1d` of (N, C, D, H, W); `divisor_override` is what the sums are divided by instead.

    >>> import pullback
    >>> pullback.nn.AvgPool3d(2)(pullback.arange(8.0).reshape(1, 2, 2, 2)).item()
    3.5
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, **self._settings())


@layer
class _LPPool(Layer):
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields} | {"norm_type": float(self.norm_type)}


class LPPool1d(_LPPool):
    """``(sum x^p)^(1/p)`` under each window, of (N, C, L); p is `norm_type`.

    >>> import pullback
    >>> pullback.nn.LPPool1d(2, 2)(pullback.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, **self._settings())


class LPPool2d(_LPPool):
    """`LPPool1d` of (N, C, H, W).

    >>> import pullback
    >>> pullback.nn.LPPool2d(1, 2)(pullback.ones(1, 2, 2))
    tensor([[[4.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, **self._settings())


class LPPool3d(_LPPool):
    """`LPPool1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.LPPool3d(1, 2)(pullback.ones(1, 2, 2, 2)).item()
    8.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, **self._settings())


@layer
class _AdaptiveMaxPool(Layer):
    output_size: Any
    return_indices: bool = False
    _shown = "output_size"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The greatest number of each of `output_size` parts of the input, of (N, C, L).

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool1d(2)(pullback.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """`AdaptiveMaxPool1d` of (N, C, H, W).

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool2d((1, None))(pullback.arange(4.0).reshape(1, 2, 2))
    tensor([[[2., 3.]]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """`AdaptiveMaxPool1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool3d(1)(pullback.arange(8.0).reshape(1, 2, 2, 2)).item()
    7.0
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


@layer
class _AdaptiveAvgPool(Layer):
    output_size: Any


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean of each of `output_size` parts of the input, of (N, C, L).

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool1d(2)(pullback.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """`AdaptiveAvgPool1d` of (N, C, H, W).

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool2d((1, None))(pullback.arange(4.0).reshape(1, 2, 2))
    tensor([[[1., 2.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """`AdaptiveAvgPool1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool3d(1)(pullback.arange(8.0).reshape(1, 2, 2, 2)).item()
    3.5
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


@layer
class _FractionalMaxPool(Layer):
    kernel_size: Any
    output_size: Any = None
    output_ratio: Any = None
    return_indices: bool = False
    _random_samples: Tensor | None = None
    _shown = ""

    def _set_up(self, dims: int) -> None:
        """Check the sizes, and make tuples of them."""
        name, size, ratio = type(self).__name__, self.output_size, self.output_ratio
        self.register_buffer("_random_samples", vars(self).pop("_random_samples"))
        if (size is None) == (ratio is None):
            found = "neither" if size is None else "both"
            expected = "one of output_size, a size, and output_ratio, a pooling ratio, to be specified"
            raise ValueError(errors.message(f"{name}()", expected=expected, found=found))
        self.kernel_size = repeated(self.kernel_size, dims)
        self.output_size = None if size is None else repeated(size, dims)
        self.output_ratio = None if ratio is None else repeated(ratio, dims)
        if ratio is not None and not all(0 < part < 1 for part in self.output_ratio):
            where = f"{name}(): output_ratio"
            raise ValueError(errors.message(where, expected="to be between 0 and 1", found=str(ratio)))


class FractionalMaxPool2d(_FractionalMaxPool):
    """The greatest number under windows whose steps are random (Graham, 2014), of (N, C, H, W).

    Either `output_size` is given or `output_ratio`, by how much the output is smaller than the input.

    >>> import pullback
    >>> pullback.nn.FractionalMaxPool2d(2, output_ratio=0.5)(pullback.zeros(1, 6, 6)).shape
    pullback.Size([1, 3, 3])
    """

    def __post_init__(self) -> None:
        self._set_up(2)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPool):
    """The greatest number under windows whose steps are random (Graham, 2014), of (N, C, D, H, W).

    Either `output_size` is given or `output_ratio`, by how much the output is smaller than the input.

    >>> import pullback
    >>> pullback.nn.FractionalMaxPool3d(2, output_ratio=0.5)(pullback.zeros(1, 6, 6, 6)).shape
    pullback.Size([1, 3, 3, 3])
    """

    def __post_init__(self) -> None:
        if not all(size > 0 for size in repeated(self.kernel_size, 3)):
            where, found = "FractionalMaxPool3d(): kernel_size", str(self.kernel_size)
            raise ValueError(errors.message(where, expected="to be greater than 0", found=found))
        self._set_up(3)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )

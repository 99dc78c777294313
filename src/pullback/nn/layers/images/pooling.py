"""Pooling, as modules: a window slides over the last dimensions, and the numbers under it become one number.

Inputs are (N, C, ...) or (C, ...). `stride` is `kernel_size` unless given. A layer of one, two or three dimensions
names the function it calls; its settings and their order are those of its family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .... import errors
from ....tensor.tensor import Tensor
from ... import functional as F  # noqa: N812 - the field's name for it
from ..layer import Layer, layer
from ..sizes import repeated


class _Pool(Layer):
    """A layer that calls the function `_pool`."""

    _pool: ClassVar[Callable[..., Any]]


@layer
class _MaxPool(_Pool):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False
    _shown = "kernel_size stride padding dilation ceil_mode"

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride

    def forward(self, input: Tensor) -> Any:
        window = self.kernel_size, self.stride, self.padding, self.dilation
        return self._pool(input, *window, self.ceil_mode, self.return_indices)


class MaxPool1d(_MaxPool):
    """The greatest number under each window of (N, C, L); with `return_indices` also its position.

    >>> import pullback
    >>> pullback.nn.MaxPool1d(2)(pullback.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    _pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """`MaxPool1d` of (N, C, H, W).

    >>> import pullback
    >>> pullback.nn.MaxPool2d(2)(pullback.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    _pool = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """`MaxPool1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.MaxPool3d(2)(pullback.arange(8.0).reshape(1, 2, 2, 2)).item()
    7.0
    """

    _pool = staticmethod(F.max_pool3d)


@layer
class _MaxUnpool(_Pool):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    _dims: ClassVar[int]

    def __post_init__(self) -> None:
        stride = self.kernel_size if self.stride is None else self.stride
        self.kernel_size, self.stride, self.padding = (
            repeated(size, self._dims) for size in (self.kernel_size, stride, self.padding)
        )

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return self._pool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """Puts the maxima of `MaxPool1d` back at its indices, and zeros elsewhere.

    `output_size` chooses among the sizes that the input of the pooling may have had.

    >>> import pullback
    >>> x = pullback.tensor([[1.0, 3.0, 2.0, 0.0]])
    >>> pullback.nn.MaxUnpool1d(2)(*pullback.nn.MaxPool1d(2, return_indices=True)(x))
    tensor([[0., 3., 2., 0.]])
    """

    _dims, _pool = 1, staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Undoes `MaxPool2d`, as `MaxUnpool1d`.

    `output_size` chooses among the sizes that the input of the pooling may have had.

    >>> import pullback
    >>> x = pullback.arange(4.0).reshape(1, 2, 2)
    >>> pullback.nn.MaxUnpool2d(2)(*pullback.nn.MaxPool2d(2, return_indices=True)(x))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    _dims, _pool = 2, staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Undoes `MaxPool3d`, as `MaxUnpool1d`.

    `output_size` chooses among the sizes that the input of the pooling may have had.

    >>> import pullback
    >>> x = pullback.arange(8.0).reshape(1, 2, 2, 2)
    >>> pullback.nn.MaxUnpool3d(2)(*pullback.nn.MaxPool3d(2, return_indices=True)(x)).sum()
    tensor(7.)
    """

    _dims, _pool = 3, staticmethod(F.max_unpool3d)


@layer
class _AvgPool(_Pool):
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    _shown = "kernel_size stride padding"

    def _window(self) -> tuple[Any, ...]:
        return self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, *self._window())


class AvgPool1d(_AvgPool):
    """The mean of the numbers under each window, of (N, C, L).

    >>> import pullback
    >>> pullback.nn.AvgPool1d(2)(pullback.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    _pool = staticmethod(F.avg_pool1d)

    def __post_init__(self) -> None:
        stride = self.kernel_size if self.stride is None else self.stride
        self.kernel_size, self.stride, self.padding = (
            repeated(size, 1) for size in (self.kernel_size, stride, self.padding)
        )


@layer
class _DividedAvgPool(_AvgPool):
    divisor_override: int | None = None

    def __post_init__(self) -> None:
        # a stride of 0 also stands for the size of the kernel, as in torch's layers
        self.stride = self.stride or self.kernel_size

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, *self._window(), self.divisor_override)


class AvgPool2d(_DividedAvgPool):
    """`AvgPool1d` of (N, C, H, W); the sums are divided by `divisor_override` where it is given.

    >>> import pullback
    >>> pullback.nn.AvgPool2d(2)(pullback.arange(4.0).reshape(1, 2, 2))
    tensor([[[1.5000]]])
    """

    _pool = staticmethod(F.avg_pool2d)


class AvgPool3d(_DividedAvgPool):
    """`AvgPool1d` of (N, C, D, H, W); the sums are divided by `divisor_override` where it is given.

    >>> import pullback
    >>> pullback.nn.AvgPool3d(2)(pullback.arange(8.0).reshape(1, 2, 2, 2)).item()
    3.5
    """

    _pool = staticmethod(F.avg_pool3d)


@layer
class _LPPool(_Pool):
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    """``(sum x^p)^(1/p)`` under each window, of (N, C, L); p is `norm_type`.

    >>> import pullback
    >>> pullback.nn.LPPool1d(2, 2)(pullback.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """`LPPool1d` of (N, C, H, W).

    >>> import pullback
    >>> pullback.nn.LPPool2d(1, 2)(pullback.ones(1, 2, 2))
    tensor([[[4.]]])
    """

    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """`LPPool1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.LPPool3d(1, 2)(pullback.ones(1, 2, 2, 2)).item()
    8.0
    """

    _pool = staticmethod(F.lp_pool3d)


@layer
class _AdaptiveMaxPool(_Pool):
    output_size: Any
    return_indices: bool = False
    _shown = "output_size"

    def forward(self, input: Tensor) -> Any:
        return self._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The greatest number of each of `output_size` parts of the input, of (N, C, L).

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool1d(2)(pullback.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    _pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """`AdaptiveMaxPool1d` of (N, C, H, W).

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool2d((1, None))(pullback.arange(4.0).reshape(1, 2, 2))
    tensor([[[2., 3.]]])
    """

    _pool = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """`AdaptiveMaxPool1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.AdaptiveMaxPool3d(1)(pullback.arange(8.0).reshape(1, 2, 2, 2)).item()
    7.0
    """

    _pool = staticmethod(F.adaptive_max_pool3d)


@layer
class _AdaptiveAvgPool(_Pool):
    output_size: Any

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean of each of `output_size` parts of the input, of (N, C, L).

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool1d(2)(pullback.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    _pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """`AdaptiveAvgPool1d` of (N, C, H, W).

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool2d((1, None))(pullback.arange(4.0).reshape(1, 2, 2))
    tensor([[[1., 2.]]])
    """

    _pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """`AdaptiveAvgPool1d` of (N, C, D, H, W).

    >>> import pullback
    >>> pullback.nn.AdaptiveAvgPool3d(1)(pullback.arange(8.0).reshape(1, 2, 2, 2)).item()
    3.5
    """

    _pool = staticmethod(F.adaptive_avg_pool3d)


@layer
class _FractionalMaxPool(_Pool):
    kernel_size: Any
    output_size: Any = None
    output_ratio: Any = None
    return_indices: bool = False
    _random_samples: Tensor | None = None
    _shown = ""
    _dims: ClassVar[int]

    def __post_init__(self) -> None:
        name, size, ratio = type(self).__name__, self.output_size, self.output_ratio
        self.register_buffer("_random_samples", vars(self).pop("_random_samples"))
        if (size is None) == (ratio is None):
            found = "neither" if size is None else "both"
            expected = "one of output_size, a size, and output_ratio, a pooling ratio, to be specified"
            raise ValueError(errors.message(f"{name}()", expected=expected, found=found))
        self.kernel_size = repeated(self.kernel_size, self._dims)
        self.output_size = None if size is None else repeated(size, self._dims)
        self.output_ratio = None if ratio is None else repeated(ratio, self._dims)
        if ratio is not None and not all(0 < part < 1 for part in self.output_ratio):
            where = f"{name}(): output_ratio"
            raise ValueError(errors.message(where, expected="to be between 0 and 1", found=str(ratio)))

    def forward(self, input: Tensor) -> Any:
        settings = self.kernel_size, self.output_size, self.output_ratio, self.return_indices
        return self._pool(input, *settings, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The greatest number under windows at random steps (Graham, 2014), of (N, C, H, W).

    Either `output_size` is given, or `output_ratio`, the size of the output as a part of the input's.

    >>> import pullback
    >>> pullback.nn.FractionalMaxPool2d(2, output_ratio=0.5)(pullback.zeros(1, 6, 6)).shape
    pullback.Size([1, 3, 3])
    """

    _dims, _pool = 2, staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The greatest number under windows at random steps (Graham, 2014), of (N, C, D, H, W).

    Either `output_size` is given, or `output_ratio`, the size of the output as a part of the input's.

    >>> import pullback
    >>> pullback.nn.FractionalMaxPool3d(2, output_ratio=0.5)(pullback.zeros(1, 6, 6, 6)).shape
    pullback.Size([1, 3, 3, 3])
    """

    _dims, _pool = 3, staticmethod(F.fractional_max_pool3d)

    def __post_init__(self) -> None:
        if not all(size > 0 for size in repeated(self.kernel_size, self._dims)):
            where, found = "FractionalMaxPool3d(): kernel_size", str(self.kernel_size)
            raise ValueError(errors.message(where, expected="to be greater than 0", found=found))
        super().__post_init__()

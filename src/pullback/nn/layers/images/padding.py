"""Padding on both ends of the last dimensions, as modules.

`padding` is one number for all ends, or two numbers for each dimension, from the last to the first: left, right, top,
bottom, front, back. A negative number cuts elements off.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .... import errors
from ....tensor.tensor import Tensor
from ... import functional as F  # noqa: N812 - the field's name for it
from ..layer import Layer, layer
from ..sizes import repeated


@layer
class _Pad(Layer):
    """Padding of `_dims` dimensions in the mode `_mode`."""

    padding: Any
    _dims: ClassVar[int]
    _mode: ClassVar[str]

    def __post_init__(self) -> None:
        self.padding = repeated(self.padding, 2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_Pad):
    """Mirrors the elements at the last one: of (N, C, W) or (C, W).

    >>> import pullback
    >>> pullback.nn.ReflectionPad1d(2)(pullback.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """`ReflectionPad1d` of (N, C, H, W) or (C, H, W).

    >>> import pullback
    >>> pullback.nn.ReflectionPad2d((1, 0, 0, 0))(pullback.tensor([[[1.0, 2.0]]]))
    tensor([[[2., 1., 2.]]])
    """

    _dims, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """`ReflectionPad1d` of (N, C, D, H, W) or (C, D, H, W).

    >>> import pullback
    >>> pullback.nn.ReflectionPad3d(1)(pullback.zeros(1, 2, 2, 2)).shape
    pullback.Size([1, 4, 4, 4])
    """

    _dims, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Repeats the last element: of (N, C, W) or (C, W).

    >>> import pullback
    >>> pullback.nn.ReplicationPad1d((2, 1))(pullback.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 1., 2., 2.]])
    """

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """`ReplicationPad1d` of (N, C, H, W) or (C, H, W).

    >>> import pullback
    >>> pullback.nn.ReplicationPad2d((1, 0, 0, 0))(pullback.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2.]]])
    """

    _dims, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """`ReplicationPad1d` of (N, C, D, H, W) or (C, D, H, W).

    >>> import pullback
    >>> pullback.nn.ReplicationPad3d(1)(pullback.zeros(1, 2, 2, 2)).shape
    pullback.Size([1, 4, 4, 4])
    """

    _dims, _mode = 3, "replicate"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        allowed = self._dims + 1, self._dims + 2
        if input.ndim not in allowed:
            where = f"{type(self).__name__}: expected {allowed[0]}D or {allowed[1]}D input"
            raise ValueError(errors.message(where, found=errors.describe(input)))
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """Continues from the other end: of (N, C, W) or (C, W).

    >>> import pullback
    >>> pullback.nn.CircularPad1d(1)(pullback.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    _dims = 1


class CircularPad2d(_CircularPad):
    """`CircularPad1d` of (N, C, H, W) or (C, H, W).

    >>> import pullback
    >>> pullback.nn.CircularPad2d((1, 0, 0, 0))(pullback.tensor([[[1.0, 2.0]]]))
    tensor([[[2., 1., 2.]]])
    """

    _dims = 2


class CircularPad3d(_CircularPad):
    """`CircularPad1d` of (N, C, D, H, W) or (C, D, H, W).

    >>> import pullback
    >>> pullback.nn.CircularPad3d(1)(pullback.zeros(1, 2, 2, 2)).shape
    pullback.Size([1, 4, 4, 4])
    """

    _dims = 3


@layer
class _ConstantPad(_Pad):
    value: float

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """`value` on both ends of the last dimension.

    >>> import pullback
    >>> pullback.nn.ConstantPad1d((1, 2), 3.5)(pullback.zeros(1, 1))
    tensor([[3.5000, 0.0000, 3.5000, 3.5000]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """`value` on both ends of the last two dimensions.

    >>> import pullback
    >>> pullback.nn.ConstantPad2d((1, 0, 0, 1), 3.0)(pullback.zeros(1, 1))
    tensor([[3., 0.],
            [3., 3.]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """`value` on both ends of the last three dimensions.

    >>> import pullback
    >>> pullback.nn.ConstantPad3d(1, 3.0)(pullback.zeros(2, 2, 2)).shape
    pullback.Size([4, 4, 4])
    """

    _dims = 3


@layer
class _ZeroPad(_Pad):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.value = 0.0

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Zeros on both ends of the last dimension.

    >>> import pullback
    >>> pullback.nn.ZeroPad1d(1)(pullback.ones(1, 1))
    tensor([[0., 1., 0.]])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Zeros on both ends of the last two dimensions.

    >>> import pullback
    >>> pullback.nn.ZeroPad2d((1, 0, 0, 1))(pullback.ones(1, 1))
    tensor([[0., 1.],
            [0., 0.]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Zeros on both ends of the last three dimensions.

    >>> import pullback
    >>> pullback.nn.ZeroPad3d(1)(pullback.ones(1, 1, 1)).sum()
    tensor(1.)
    """

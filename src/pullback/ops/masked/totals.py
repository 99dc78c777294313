"""Masked sums and products, and what all masked operations share: the mask, what replaces masked elements, and samples.

An element is valid where the mask is True. The other elements are replaced before anything is computed, by a number
that does not change the result: 0 in a sum, 1 in a product, infinity in a minimum. They are replaced by `where`, so
whatever they are, NaN too, they reach neither the result nor a gradient, and their own gradient is 0.
"""

from __future__ import annotations

import functools
from typing import Any

from ... import errors
from ...table.entry import composite
from ...table.samples import A, D, S, Sample, V, along, inf, mask, nan
from ...tensor import dtypes
from ...tensor.arrays import wrap_axes
from ...tensor.tensor import Tensor
from ..elementwise.limits import where
from ..make.conversion import to
from ..reduce import sums
from ..shape.reshape import broadcast_to


def valid(name: str, input: Tensor, mask: Any) -> Any:
    """The mask as a bool tensor of the shape of `input`; None for no mask."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        raise TypeError(
            errors.message(
                f"{name}()",
                expected="mask to be a Tensor of bools, or None",
                found=errors.describe(mask),
                do="convert it with pullback.tensor(...)",
            )
        )
    if mask.ndim > input.ndim:
        raise IndexError(
            errors.message(
                f"{name}(): expected broadcastable mask (got mask dimensionality higher than of the input)",
                expected=f"at most {input.ndim} dimensions",
                found=errors.describe(mask),
            )
        )
    mask = to(mask, dtypes.bool)
    return mask if tuple(mask.shape) == tuple(input.shape) else broadcast_to(mask, tuple(input.shape))


def filled(name: str, input: Tensor, mask: Any, fill: Any) -> Tensor:
    """`input` with `fill` at its masked elements.

    fill: a number; or the word "least" or "greatest", for the least or greatest number of the dtype.
    """
    kept = valid(name, input, mask)
    if kept is None:
        return input
    if isinstance(fill, str):
        fill = _extreme(name, input, least=fill == "least")
    found: Tensor = where(kept, input, bool(fill) if input.dtype is dtypes.bool else fill)
    return found


def _extreme(name: str, input: Tensor, least: bool) -> Any:
    """The least or the greatest number of the dtype of `input`."""
    if input.dtype.is_floating_point:
        return -inf if least else inf
    if input.dtype.is_complex or input.dtype is dtypes.bool:
        error = TypeError if input.dtype.is_complex else NotImplementedError
        raise error(
            errors.message(
                f"{name}(): identity of {name} on {input.dtype} input",
                expected="a tensor of real numbers, where there is a mask",
                found=errors.describe(input),
            )
        )
    limits = dtypes.iinfo(input.dtype)
    return limits.min if least else limits.max


def axes_of(dim: Any, input: Tensor) -> tuple[int, ...]:
    """The axes that `dim` names; all of them for None and for ()."""
    axes = None if dim is None or dim == () else wrap_axes(dim, input.ndim)
    return tuple(range(input.ndim)) if axes is None else tuple(sorted(axes))


# Samples --------------------------------------------------------------------------------------------------------------

_SOME = [[True, False, True], [True, True, False]]
_NONE_IN_A_ROW = [[True, False, True], [False, False, False]]


def over_axes(domain: str = "real", *before: Any) -> list[Sample]:
    """Calls of a reduction: with no mask, masks of several shapes and dtypes, and rows without valid elements.

    before: the arguments between `input` and `dim`.
    """
    some, B = V(_SOME, "bool"), functools.partial(A, domain=domain)
    return [
        *(S(s.args[0], *before, *s.args[1:2]) for s in along(0, -1, None, keepdim=False, domain=domain, lists=False)),
        S(B(2, 3), *before, mask=some),
        S(B(2, 3), *before, 1, mask=some),
        S(B(2, 3), *before, 0, mask=some, keepdim=True),
        S(B(2, 3), *before, dim=(0, 1), mask=some),
        S(B(2, 3, 2), *before, (0, -1), mask=V([[True], [False], [True]], "bool")),
        S(B(2, 3, 2, layout="T"), *before, [2, 0], mask=mask(3, 2), keepdim=True),
        S(B(2, 3, layout="step"), *before, (), mask=V([1, 0, 3], "int64")),
        S(B(), *before, 0, mask=V(True, "bool")),
        S(B(), *before, mask=V(True, "bool")),
        S(B(2, 3), *before, 1, mask=some, dtype=D("float64")),
    ]


def no_valid(*before: Any) -> list[Sample]:
    """Calls of a reduction in which rows, or all elements, are masked; as kinks: NaN and infinity below the mask."""
    below = V([[1.5, nan, 2.5], [inf, -inf, nan]])
    return [
        S(V([[1.5, 2.0, -2.5], [0.5, 1.0, 3.0]]), *before, 1, mask=V(_NONE_IN_A_ROW, "bool")),
        S(below, *before, 1, mask=V(_NONE_IN_A_ROW, "bool")),
        S(below, *before, 0, mask=V(_NONE_IN_A_ROW, "bool"), keepdim=True),
        S(below, *before, mask=V(_NONE_IN_A_ROW, "bool")),
        S(V([1.0, nan]), *before, mask=V(False, "bool")),
    ]


def refused_masks(*arguments: Any) -> list[Sample]:
    """Calls with a mask that does not fit, and with wrong axes."""
    return [
        S(A(2, 3), *arguments, mask=mask(2)),
        S(A(2, 3), *arguments, mask=mask(3, 3)),
        S(A(3), *arguments, mask=mask(1, 3)),
        S(A(1, 3), *arguments, mask=mask(2, 3)),
        S(A(2, 3), *arguments, nonsense=1),
    ]


def refused_axes(*before: Any, several: bool = True) -> list[Sample]:
    """Calls with axes that are not there."""
    found = [S(A(2, 3), *before, d, mask=mask(2, 3)) for d in (2, -3, "x")] + [S(A(), *before, 1)]
    return [*found, *(S(A(2, 3), *before, d) for d in ((0, 0), (0, 2), 0.5))] if several else found


def slicewise(*before: Any, domain: str = "real") -> list[Sample]:
    """Calls of a normalisation or a scan: with and without masks."""
    return [
        *(S(s.args[0], *before, s.args[1]) for s in along(0, 1, -1, keepdim=False, domain=domain, lists=False)),
        S(A(2, 3, domain=domain), *before, 1, mask=V(_SOME, "bool")),
        S(A(2, 3, domain=domain), *before, dim=-1, mask=V([True, False, True], "bool")),
        S(A(2, 3, domain=domain, layout="T"), *before, 0, mask=V([[True, True, False], [False, True, True]], "bool")),
        S(A(2, 3, domain=domain), *before, 1, mask=V(_SOME, "bool"), dtype=D("float64")),
        S(A(2, 3, 2, domain=domain), *before, 1, mask=V([[1], [0], [2]], "int64")),
    ]


# Sums and products ----------------------------------------------------------------------------------------------------


def _sum_dtype(input: Tensor, dtype: Any) -> Any:
    """The dtype of a sum or a product: the requested one, int64 for integers and bools, or the tensor's own."""
    if dtype is not None:
        return dtype
    return input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else dtypes.int64


def _samples() -> list[Sample]:
    return [*over_axes(), S(A(2, 0), mask=mask(2, 0)), S(A(2, 3, dtype="int64"), 0, dtype=D("float32"), mask=mask(3))]


def refused() -> list[Sample]:
    return [*refused_masks(), *refused_axes()]


@composite(truths="keepdim", home="masked", samples=_samples, kinks=no_valid, refused=refused)
def sum(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The sum over `dim` of the elements where `mask` is True; 0 where there are none.

    dim: an axis, a tuple of axes, or None for all. mask: bools of a shape that broadcasts to that of `input`; None
    means that every element is valid. Integers and bools add up in int64, or in `dtype`.

    >>> import pullback
    >>> x, mask = pullback.tensor([[1.0, 2.0], [3.0, pullback.nan]]), pullback.tensor([[True, True], [True, False]])
    >>> pullback.masked.sum(x, 1, mask=mask)
    tensor([3., 3.])
    """
    kept = filled("sum", input, mask, 0)
    return sums.sum(kept, axes_of(dim, input), bool(keepdim), dtype=_sum_dtype(input, dtype))


@composite(truths="keepdim", home="masked", samples=_samples, kinks=no_valid, refused=refused)
def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The product over `dim` of the elements where `mask` is True; 1 where there are none.

    The arguments are those of `sum`.

    >>> import pullback
    >>> pullback.masked.prod(pullback.tensor([2.0, 3.0, 4.0]), mask=pullback.tensor([True, False, True]))
    tensor(8.)
    """
    found = to(filled("prod", input, mask, 1), dtype=_sum_dtype(input, dtype))
    axes = axes_of(dim, input)
    for axis in reversed(axes) if input.ndim else [0]:
        found = sums.prod(found, axis, bool(keepdim))
    return found

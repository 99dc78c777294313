"""Masked means, medians, variances and standard deviations."""

from __future__ import annotations

import math
from typing import Any

from ... import errors
from ...table.entry import composite
from ...table.operands import number_of
from ...table.samples import A, D, Differs, S, Sample, V, mask
from ...tensor import dtypes
from ...tensor.arrays import wrap_axis
from ...tensor.tensor import Tensor
from ..elementwise.limits import clamp, where
from ..elementwise.value_checks import check_values
from ..make.conversion import to
from ..reduce import quantiles, sums
from ..reduce.norm import p_norm
from .totals import axes_of, filled, no_valid, over_axes, refused_axes, refused_masks, valid


def _inexact(dtype: Any) -> bool:
    return bool(dtype.is_floating_point or dtype.is_complex)


def _number(kept: Any, input: Tensor, axes: tuple[int, ...], keepdim: bool) -> Any:
    """How many elements are valid over the axes: a tensor, or one int if all are."""
    return math.prod(input.shape[i] for i in axes) if kept is None else sums.sum(kept, axes, keepdim)


@composite(
    truths="keepdim",
    home="masked",
    samples=lambda: over_axes(),
    kinks=no_valid,
    refused=lambda: [
        *refused_masks(),
        *refused_axes(),
        S(A(3, dtype="int64")),
        S(A(3, dtype="bool"), mask=mask(3)),
        S(A(3), dtype=D("int64")),
    ],
)
def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The mean over `dim` of the elements where `mask` is True; NaN where there are none.

    dim: an axis, a tuple of axes, or None for all. mask: bools of a shape that broadcasts to that of `input`; None
    means that every element is valid. Integers and bools need a `dtype`.

    >>> import pullback
    >>> x = pullback.tensor([1.0, pullback.nan, 3.0], requires_grad=True)
    >>> pullback.masked.mean(x, mask=~x.isnan()).backward()
    >>> x.grad
    tensor([0.5000, 0.0000, 0.5000])
    """
    found = dtype or input.dtype
    if not _inexact(found):
        raise ValueError(
            errors.message(
                "mean(): Could not infer output dtype. "
                f"{'Input' if dtype is None else 'Optional'} dtype must be either a floating point or complex dtype. "
                f"Got: {found}",
                do="pass dtype=pullback.float32",
            )
        )
    axes, kept = axes_of(dim, input), valid("mean", input, mask)
    total = sums.sum(filled("mean", input, kept, 0), axes, bool(keepdim), dtype=found)
    return total / _number(kept, input, axes, bool(keepdim))


def _check_some(values: Any) -> None:
    if (values != values).any():
        raise ValueError(
            errors.message(
                "masked median expects no fully masked out rows if dtype is not floating point",
                do=f"convert the tensor first, x.{dtypes.to_default()}; the median of no elements is then NaN",
            )
        )


@composite(
    home="masked",
    samples=lambda: [
        *(S(A(2, 3, domain="distinct"), d, mask=V([[True, True, True], [True, False, True]], "bool")) for d in (0, 1)),
        S(A(2, 5, domain="distinct"), keepdim=True),
        S(A(5, 2, domain="distinct", layout="T"), 0, mask=V([[1], [0], [1], [1], [0]], "int64")),
        S(A(domain="distinct"), mask=V(True, "bool")),
        S(A(2, 3, 2, domain="distinct", layout="step"), 1, mask=V([[True], [False], [True]], "bool"), keepdim=True),
    ],
    kinks=lambda: [*no_valid()[:3], *no_valid()[4:]],
    refused=lambda: [
        *refused_masks(),
        *refused_axes(several=False),
        S(A(2, 3, dtype="int64"), 1, mask=V([[True], [False]], "bool")),
    ],
    differs=[
        Differs("numbers that are not real floats go through float64; torch's through float32", check, "complex128")
        for check in ("gradients", "second")
    ],
)
def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The lower median along `dim` of the elements where `mask` is True and that are not NaN; NaN if there are none.

    As in torch, `dtype` says the dtype of the result for integers only. A slice of integers without valid elements has
    no median: ValueError.

    >>> import pullback
    >>> x, mask = pullback.tensor([5.0, 1.0, 9.0, 7.0]), pullback.tensor([True, True, False, True])
    >>> pullback.masked.median(x, mask=mask)
    tensor(5.)
    """
    axis, floating = wrap_axis(dim, input.ndim), input.dtype.is_floating_point
    numbers = input if floating else to(input, dtype=dtypes.float64)
    found: Tensor = quantiles.nanmedian(filled("median", numbers, mask, math.nan), axis, keepdim)[0]
    return found if floating else to(check_values(_check_some, found), dtype=dtype or input.dtype)


def _spread(
    name: str, input: Tensor, axes: tuple[int, ...], correction: Any, keepdim: bool, dtype: Any, mask: Any, root: bool
) -> Tensor:
    """The variance, or its root."""
    if input.dtype is dtypes.bool:
        raise RuntimeError(
            errors.message(
                f"{name}(): Subtraction, the `-` operator, with a bool tensor is not supported",
                do=f"convert it first, x.{dtypes.to_default()}",
            )
        )
    wanted = dtype or (input.dtype if _inexact(input.dtype) else dtypes.float32)
    kept, within = valid(name, input, mask), wanted if _inexact(wanted) else dtypes.float32
    total = sums.sum(filled(name, input, kept, 0), axes, True, dtype=wanted)
    deviations = input - total / _number(kept, input, axes, True)
    number = _number(kept, input, axes, keepdim)
    if kept is None:
        number = max(number - correction, 0)
    else:
        deviations = where(kept, deviations, 0)
        number = clamp(to(number, dtype=within.to_real()) - correction, min=0)
    if root:
        return to(to(p_norm(deviations, 2, axes, keepdim), dtype=within) / number**0.5, dtype=wanted)
    squares = deviations * (deviations.conj() if deviations.dtype.is_complex else deviations)
    return to(sums.sum(squares, axes, keepdim, dtype=within) / number, dtype=wanted)


def _correction(name: str, unbiased: Any, correction: Any) -> Any:
    """The correction, from either of the two arguments that say it."""
    if unbiased is not None and correction is not None:
        raise TypeError(
            errors.message(
                f"{name}(): Only one of unbiased and correction may be given", found="both", do="leave unbiased away"
            )
        )
    correction = number_of(correction)
    if correction is None:
        return 1 if unbiased is None or unbiased else 0
    if not isinstance(correction, (int, float)):
        raise TypeError(
            errors.message(f"{name}()", expected="correction to be a number", found=errors.describe(correction))
        )
    return correction


def _spread_samples() -> list[Sample]:
    some = V([[True, False, True], [True, True, True]], "bool")
    return [
        *over_axes(),
        S(A(2, 3), 1, False, mask=some),
        S(A(2, 3), 1, True, mask=some, keepdim=True),
        S(A(2, 3), unbiased=False),
        S(A(2, 3), 1, correction=0, mask=some),
        S(A(3, 4), 1, correction=0.5, mask=mask(1, 4)),
        S(A(3, 4), (0, 1), correction=2),
    ]


def _spread_refused() -> list[Sample]:
    return [*refused_masks(), *refused_axes(), S(A(3), None, True, correction=1), S(A(3), correction="x")]


_TYPE = Differs("a TypeError, as of `var`; torch raises an AssertionError", "refused", sample="None, True, correction")
_CLEAN = Differs("what is below the mask reaches no gradient; torch's are NaN in all slices", "kinks")
_NUMBER = Differs("a TypeError, as of `var`; torch raises a ValueError", "refused", sample="'x'")


@composite(
    truths="unbiased keepdim",
    home="masked",
    samples=_spread_samples,
    kinks=no_valid,
    refused=_spread_refused,
    differs=[_TYPE, _NUMBER, _CLEAN],
)
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The variance over `dim` of the n elements where `mask` is True: squared deviations over ``n - correction``.

    `correction` is 1 by default; ``unbiased=False`` means 0. Where there are no valid elements it is NaN. Integers are
    converted to float32. The other arguments are those of `mean`.

    >>> import pullback
    >>> pullback.masked.var(pullback.tensor([1.0, 9.0, 3.0]), mask=pullback.tensor([True, False, True]))
    tensor(2.)
    """
    axes, chosen = axes_of(dim, input), _correction("var", unbiased, correction)
    return _spread("var", input, axes, chosen, bool(keepdim), dtype, mask, False)


@composite(
    truths="unbiased keepdim",
    home="masked",
    samples=_spread_samples,
    kinks=no_valid,
    refused=_spread_refused,
    differs=[_TYPE, _NUMBER, _CLEAN],
)
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The standard deviation over `dim` of the elements where `mask` is True: the square root of `var`.

    Its gradient is 0 where all valid elements are equal.

    >>> import pullback
    >>> pullback.masked.std(pullback.tensor([1.0, 9.0, 3.0]), mask=pullback.tensor([True, False, True]))
    tensor(1.4142)
    """
    axes, chosen = axes_of(dim, input), _correction("std", unbiased, correction)
    return _spread("std", input, axes, chosen, bool(keepdim), dtype, mask, True)

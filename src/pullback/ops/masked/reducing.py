"""Masked reductions: extremes, their positions, norms, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...table.entry import composite
from ...table.samples import A, D, Differs, S, Sample, V, along, inf, mask, nan
from ...tensor.tensor import Tensor
from ..linalg.matrix_norms import vector_norm
from ..make.conversion import to
from ..reduce import extremes, sums
from .totals import axes_of, filled, no_valid, over_axes, refused, refused_axes, refused_masks

_NO_ORDER = [S(A(3, dtype="bool"), mask=mask(3)), S(A(3, dtype="complex64"), mask=mask(3))]
_SHARED = Differs("the gradient goes to the NaN elements, as for `amax`", "kinks", sample="[nan, 1.0")


def _extreme_kinks() -> list[Sample]:
    ties = V([2.0, 2.0, 1.0, 1.0])
    return [
        *no_valid(),
        S(ties, mask=V([True, True, True, True], "bool")),
        S(ties, 0, mask=V([True, False, True, False], "bool")),
        S(V([[nan, 1.0], [1.0, inf]]), 1, mask=V([[True, True], [True, False]], "bool")),
    ]


def _extreme_refused() -> list[Sample]:
    return [*refused(), *_NO_ORDER, S(A(0)), S(A(2, 0), 1, mask=mask(2, 0))]


@composite(
    truths="keepdim",
    home="masked",
    samples=lambda: over_axes("whole"),
    kinks=_extreme_kinks,
    refused=_extreme_refused,
    differs=[_SHARED],
)
def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The largest element over `dim` where `mask` is True; the least number of the dtype where there is none.

    Ties share the gradient evenly. The result is converted to `dtype`. The other arguments are those of `sum`.

    >>> import pullback
    >>> pullback.masked.amax(pullback.tensor([2.0, 3.0, 4.0]), mask=pullback.tensor([True, True, False]))
    tensor(3.)
    """
    found = extremes.amax(filled("amax", input, mask, "least"), axes_of(dim, input), bool(keepdim))
    return to(found, dtype=dtype or input.dtype)


@composite(
    truths="keepdim",
    home="masked",
    samples=lambda: over_axes("whole"),
    kinks=_extreme_kinks,
    refused=_extreme_refused,
    differs=[_SHARED],
)
def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The smallest element over `dim` where `mask` is True; the greatest number of the dtype where there is none.

    Ties share the gradient evenly. The result is converted to `dtype`. The other arguments are those of `sum`.

    >>> import pullback
    >>> pullback.masked.amin(pullback.tensor([2.0, 3.0, 4.0]), mask=pullback.tensor([False, True, True]))
    tensor(3.)
    """
    found = extremes.amin(filled("amin", input, mask, "greatest"), axes_of(dim, input), bool(keepdim))
    return to(found, dtype=dtype or input.dtype)


_TRUE = Differs("for bools it is the first True, or False; torch has no kernel for them", "values", "bool")


def _position_samples() -> list[Sample]:
    some = V([[True, False, True], [True, True, False]], "bool")
    return [
        *along(0, 1, -1, None, domain="whole", lists=False),
        *(S(A(2, 3, domain="whole"), d, mask=some, keepdim=k) for d in (0, -1, None) for k in (False, True)),
        S(A(2, 3, domain="whole", layout="T"), mask=V([1, 0, 3], "int64")),
        S(A(2, 3, 2, domain="whole"), dim=1, mask=V([[True], [False], [True]], "bool"), dtype=D("int64")),
        S(A(domain="whole"), 0, mask=V(True, "bool")),
    ]


def _position_refused() -> list[Sample]:
    return [*refused_masks(), *refused_axes(several=False), *_NO_ORDER, S(A(0)), S(A(2, 3), (0, 1))]


@composite(
    truths="keepdim",
    home="masked",
    samples=_position_samples,
    kinks=no_valid,
    refused=_position_refused,
    differs=[_TRUE],
)
def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The index of the (first) largest element where `mask` is True, in the flattened tensor or along `dim`.

    Where there is none it is 0. The index has the dtype of `input`, as in torch, or `dtype`; it has no derivative.

    >>> import pullback
    >>> x, mask = pullback.tensor([2.0, 4.0, 3.0]), pullback.tensor([True, False, True])
    >>> pullback.masked.argmax(x, mask=mask, dtype=pullback.int64)
    tensor(2)
    """
    found = extremes.argmax(filled("argmax", input, mask, "least"), dim, bool(keepdim))
    return to(found, dtype=dtype or input.dtype)


@composite(
    truths="keepdim",
    home="masked",
    samples=_position_samples,
    kinks=no_valid,
    refused=_position_refused,
    differs=[_TRUE],
)
def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The index of the (first) smallest element where `mask` is True; otherwise as `argmax`.

    >>> import pullback
    >>> x, mask = pullback.tensor([2.0, 1.0, 3.0]), pullback.tensor([True, False, True])
    >>> pullback.masked.argmin(x, mask=mask, dtype=pullback.int64)
    tensor(0)
    """
    found = extremes.argmin(filled("argmin", input, mask, "greatest"), dim, bool(keepdim))
    return to(found, dtype=dtype or input.dtype)


_ORDERS = (2, 1, 0, 3, 1.5, 0.5, inf, -inf)


@composite(
    truths="keepdim",
    home="masked",
    samples=lambda: [
        *(s for p in _ORDERS for s in over_axes("real", p) if "mask" in s.kwargs),
        *over_axes("real", 2.0),
        S(A(2, 3)),
        S(A(2, 3), -1, 1),
        S(A(0), mask=mask(0)),
    ],
    kinks=lambda: [s for p in _ORDERS for s in no_valid(p)],
    refused=lambda: [
        *refused_masks(),
        *refused_axes(2.0),
        S(A(3), -1, mask=mask(3)),
        S(A(3), "fro"),
        S(A(3), None),
        S(A(3, dtype="int64")),
    ],
    differs=[
        Differs("the error of `linalg.vector_norm`; complex numbers work", "values", "int64 bool complex128", "-inf"),
        Differs("torch gives 0 wherever an element is masked", "refused", sample="-1, mask"),
        Differs("zero where all is masked; torch's is NaN", "second", sample="[[True], [False], [True]]"),
    ],
)
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The norm of order `ord` over `dim` of the elements where `mask` is True, as `linalg.vector_norm`.

    Where there are none it is 0, for ``ord=-inf`` infinite. A negative order needs all elements, but for -inf: with a
    mask it is a ValueError. The other arguments are those of `sum`.

    >>> import pullback
    >>> pullback.masked.norm(pullback.tensor([3.0, 12.0, 4.0]), mask=pullback.tensor([True, False, True]))
    tensor(5.)
    """
    smallest = ord == -inf
    if mask is not None and isinstance(ord, (int, float)) and ord < 0 and not smallest:
        raise ValueError(
            errors.message(
                f"norm(): a mask and the order {ord}",
                expected="an order that is not negative, or -inf",
                do="leave the masked elements out of the tensor",
            )
        )
    if smallest and input.dtype.is_complex:
        input = abs(filled("norm", input, mask, 0))
    kept = filled("norm", input, mask, "greatest" if smallest else 0)
    return vector_norm(kept, ord, axes_of(dim, input), bool(keepdim), dtype=dtype)


@composite(
    home="masked",
    samples=lambda: over_axes(),
    kinks=lambda: [*no_valid(), S(V([1000.0, inf, 999.0]), mask=V([True, False, True], "bool"))],
    refused=lambda: [*refused(), S(A(2, dtype="bool"), mask=mask(2))],
)
def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """``log(sum(exp(input)))`` over `dim` of the elements where `mask` is True; -inf where there are none.

    The result has the dtype of `input`, or `dtype`. The other arguments are those of `sum`.

    >>> import pullback
    >>> pullback.masked.logsumexp(pullback.tensor([1.0, 9.0, 1.0]), mask=pullback.tensor([True, False, True]))
    tensor(1.6931)
    """
    fill = complex(-inf, 0) if input.dtype.is_complex else "least"
    axes, kept = axes_of(dim, input), filled("logsumexp", input, mask, fill)
    return to(sums.logsumexp(kept, axes, bool(keepdim)), dtype=dtype or input.dtype)

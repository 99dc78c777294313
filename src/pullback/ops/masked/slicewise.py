"""Masked functions that keep the shape: softmax and its relatives, `normalize`, running sums and products, `logaddexp`.

Masked elements of a result are 0 (of softmax and `normalize`), -inf (of `log_softmax`) or the number before them (of a
running sum).
"""

from __future__ import annotations

from typing import Any

from ...table.entry import composite, titled
from ...table.samples import A, D, Differs, S, Sample, V, inf, mask, nan
from ...tensor.arrays import wrap_axis
from ...tensor.tensor import Tensor
from ..elementwise import analysis
from ..elementwise import softmax as softmaxes
from ..elementwise.arithmetic import div
from ..make.conversion import to
from ..reduce import scans
from .reducing import norm
from .totals import filled, no_valid, refused_axes, refused_masks, slicewise


def _rows(*before: Any) -> list[Sample]:
    """Points with NaN and infinity below the mask."""
    return no_valid(*before)[:3]


def _kinks() -> list[Sample]:
    return [s for s in _rows() if "keepdim" not in s.kwargs]


def _refused() -> list[Sample]:
    return [*refused_masks(0), *refused_axes(several=False)]


def _of_reals() -> list[Sample]:
    return [*_refused(), S(A(3, dtype="complex64"), 0, mask=mask(3)), S(A(3, dtype="bool"), 0, mask=mask(3))]


@composite(home="masked", samples=slicewise, kinks=_kinks, refused=_of_reals)
def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim` over the elements where `mask` is True; 0 at the others.

    A slice without valid elements is NaN. mask: bools of a shape that broadcasts to that of `input`; None means that
    every element is valid. `input` is converted to `dtype` first.

    >>> import pullback
    >>> pullback.masked.softmax(pullback.tensor([1.0, 9.0, 1.0]), 0, mask=pullback.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    axis, kept = wrap_axis(dim, input.ndim), filled("softmax", input, mask, "least")
    return softmaxes.softmax(kept, axis, dtype=dtype)


@composite(home="masked", samples=slicewise, kinks=_kinks, refused=_of_reals)
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim` over the elements where `mask` is True; -inf at the others.

    The arguments are those of `softmax`.

    >>> import pullback
    >>> pullback.masked.log_softmax(pullback.tensor([1.0, 9.0, 1.0]), 0, mask=pullback.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    axis, kept = wrap_axis(dim, input.ndim), filled("log_softmax", input, mask, "least")
    return softmaxes.log_softmax(kept, axis, dtype=dtype)


@composite(home="masked", samples=slicewise, kinks=_kinks, refused=_of_reals)
def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """`softmax` of ``-input``.

    >>> import pullback
    >>> pullback.masked.softmin(pullback.tensor([1.0, -9.0, 1.0]), 0, mask=pullback.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    axis, kept = wrap_axis(dim, input.ndim), filled("softmin", input, mask, "greatest")
    return softmaxes.softmax(-kept, axis, dtype=dtype)


_quotient = titled(div, "DivBackward0", contiguous=True)


@composite(
    home="masked",
    samples=lambda: [
        *slicewise(2.0),
        *(s for p in (1, 3, inf) for s in slicewise(p)[6:9]),
        S(A(2, 3), 2, 1, eps=10.0, mask=mask(1, 3)),
    ],
    kinks=lambda: [s for p in (2, 1, 3) for s in _rows(p) if "keepdim" not in s.kwargs],
    refused=lambda: [*refused_masks(2.0, 0), *refused_axes(2.0, several=False), S(A(2, 3), 2.0), S(A(2, 3), "x", 0)],
)
def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Tensor:
    """``x / max(norm(x, ord), eps)`` along `dim` over the elements where `mask` is True; 0 at the others.

    >>> import pullback
    >>> pullback.masked.normalize(pullback.tensor([3.0, 9.0, 4.0]), 2, 0, mask=pullback.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    axis = wrap_axis(dim, input.ndim)
    size = norm(input, ord, axis, keepdim=True, dtype=dtype, mask=mask)
    divide = div if mask is None else _quotient  # behind a mask, most of torch's results lie in order
    found: Tensor = divide(filled("normalize", input, mask, 0), size.clamp(min=eps))
    return found


@composite(
    home="masked",
    samples=slicewise,
    kinks=_kinks,
    refused=_refused,
)
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The running sum along `dim` of the elements where `mask` is True. It has the dtype of `input`, or `dtype`.

    >>> import pullback
    >>> pullback.masked.cumsum(pullback.tensor([1.0, 9.0, 2.0]), 0, mask=pullback.tensor([True, False, True]))
    tensor([1., 1., 3.])
    """
    axis, kept = wrap_axis(dim, input.ndim), filled("cumsum", input, mask, 0)
    return scans.cumsum(kept, axis, dtype=dtype or input.dtype)


@composite(
    home="masked",
    samples=slicewise,
    kinks=_kinks,
    refused=_refused,
    differs=[
        Differs("torch ignores that the imaginary part was discarded", check, "complex128", "dtype=float64")
        for check in ("gradients", "second")
    ],
)
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The running product along `dim` of the elements where `mask` is True. It has the dtype of `input`, or `dtype`.

    >>> import pullback
    >>> pullback.masked.cumprod(pullback.tensor([2.0, 9.0, 3.0]), 0, mask=pullback.tensor([True, False, True]))
    tensor([2., 2., 6.])
    """
    axis, kept = wrap_axis(dim, input.ndim), filled("cumprod", input, mask, 1)
    return scans.cumprod(kept, axis, dtype=dtype or input.dtype)


@composite(
    home="masked",
    samples=lambda: [
        S(A(3), A(3)),
        S(A(2, 3), A(3), input_mask=mask(3)),
        S(A(2, 1), A(3), input_mask=mask(2, 1), other_mask=V([1, 0, 1], "int64")),
        S(A(2, 3), A(2, 3), other_mask=V([[True, False, True], [False, True, True]], "bool")),
        S(A(3), A(3), dtype=D("float64"), input_mask=mask(3)),
        S(A(), A(), input_mask=V(False, "bool")),
    ],
    kinks=lambda: [
        S(
            V([1.0, nan, inf, nan]),
            V([2.0, 1.0, nan, inf]),
            input_mask=V([True, False, True, False], "bool"),
            other_mask=V([True, True, False, False], "bool"),
        )
    ],
    refused=lambda: [
        S(A(3), A(3), input_mask=mask(2)),
        S(A(3), A(3), other_mask=mask(1, 3)),
        S(A(3), A(2)),
        S(A(3), A(3), mask=mask(3)),
        S(A(3, dtype="bool"), A(3), input_mask=mask(3)),
    ],
    differs=[Differs("zero at a masked element; torch's is NaN", "second", "float64", "_mask=")],
)
def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Tensor:
    """``log(exp(input) + exp(other))`` of the elements where their masks are True; -inf where neither is.

    The result has the dtype of `input`, or `dtype`.

    >>> import pullback
    >>> x, y = pullback.tensor([-100.0, -200.0, -300.0]), pullback.tensor([-1.0, -2.0, -3.0])
    >>> mask = pullback.tensor([True, False, True])
    >>> pullback.masked.logaddexp(x, y, input_mask=mask, other_mask=mask)
    tensor([-1., -inf, -3.])
    """
    first = filled("logaddexp", input, input_mask, "least")
    second = filled("logaddexp", other, other_mask, "least")
    return to(analysis.logaddexp(first, second), dtype=dtype or input.dtype)

"""Losses that compare a prediction with its target element by element.

Each computes the loss of every element, and reduces these. Losses that are likelihoods are in `likelihoods.py`, losses
of classes in `classes.py`, of pairs and triplets in `pairs.py`, of sequences in `ctc.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import errors
from ....ops.elementwise.powers import square
from ....ops.make.conversion import to
from ....ops.reduce import sums
from ....ops.shape.reshape import broadcast_tensors
from ....table.entry import composite, pointwise
from ....table.operands import need_numbers
from ....table.samples import A, S, V, inf, nan
from ....tensor import dtypes
from ....tensor.arrays import writable
from ....tensor.tensor import Tensor
from ..arguments import floating, refuse, tensors
from .reduction import chosen_reduction, reduced, warn_of_broadcast

REDUCTIONS = ("mean", "sum", "none")


def both(*more: Any, left: str = "between", right: str = "real") -> list[Any]:
    """Samples of an input and a target, with each reduction, and the given calls."""

    def pair(*shape: int, layouts: Any = ("C", "C"), **kwargs: Any) -> Any:
        return S(A(*shape, domain=left, layout=layouts[0]), A(*shape, domain=right, layout=layouts[1]), **kwargs)

    return [
        *(pair(2, 3, reduction=r) for r in REDUCTIONS),
        pair(2, 3),
        pair(),
        pair(1),
        pair(0, reduction="sum"),
        pair(3, 2, layouts=("T", "step")),
        *more,
    ]


NO_LOSS = [S(A(2), A(2), reduction="median"), S(A(2)), S(A(2), A(2), nonsense=1)]


# Losses of the deviation
# -----------------------------------------------------------------------------------------------------


def _deviation(name: str, input: Tensor, target: Tensor, kinds: str = "f", alike: bool = True) -> Tensor:
    """alike: both count equally in the dtype of the result, even if one of them has no axes."""
    tensors(name, input=input, target=target)
    if alike and input._data.dtype != target._data.dtype and 0 in (input._data.ndim, target._data.ndim):
        input, target = broadcast_tensors(input, target)
    if dtypes.result_type([input._data, target._data]).kind not in kinds:
        floating(name, input, target)
    return input - target


def _of_one_rank(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a loss as `_deviation` compares them if they are alike: both count in the result's dtype."""
    first, second = given.get("input"), given.get("target")
    if isinstance(first, Tensor) and isinstance(second, Tensor) and first._data.ndim != second._data.ndim:
        given |= {k: t if t._data.ndim else t.reshape(1) for k, t in (("input", first), ("target", second))}
    return given


def _weighted(name: str, values: Tensor, weight: Tensor | None, like: Tensor, reduction: str) -> Tensor:
    """As `reduced`, with a weight for each value; the weights must have the shape of the input."""
    if weight is None:
        return reduced(values, reduction)
    if weight._data.shape != like._data.shape:
        raise refuse(
            name,
            f"weight to be of the input's size, {list(like._data.shape)}",
            list(weight._data.shape),
            error=ValueError,
        )
    if reduction == "mean":
        return sums.sum(values * weight) / sums.sum(weight)
    return reduced(values * weight, reduction)


_WEIGHTS = [S(A(2, 3), A(2, 3), weight=A(2, 3, domain="positive"), reduction=r) for r in REDUCTIONS]
_NO_WEIGHTS = [*NO_LOSS, S(A(2), A(3)), S(A(2), A(2), weight=A(3))]


@composite(
    home="nn.functional",
    narrow=_of_one_rank,
    samples=lambda: both(S(A(2, 3), A(2, 3), None, False), *_WEIGHTS),
    kinks=lambda: [S(V([1.0, inf]), V([1.0, 2.0]))],
    refused=_NO_WEIGHTS,
)
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target)**2``, averaged over all elements.

    weight: a factor of each element, in the mean as well.

    >>> import pullback
    >>> pullback.nn.functional.mse_loss(pullback.tensor([1.0, 2.0]), pullback.tensor([1.0, 4.0]))
    tensor(2.)
    """
    reduction = chosen_reduction("mse_loss", reduction, size_average, reduce)
    deviation = _deviation("mse_loss", input, target, "f" if weight is None else "iufc")
    warn_of_broadcast("mse_loss", input, target)
    return _weighted("mse_loss", square(deviation), weight, input, reduction)


@composite(
    home="nn.functional",
    narrow=_of_one_rank,
    samples=lambda: both(*_WEIGHTS),
    kinks=lambda: [S(V([1.0, inf, 0.0, nan]), V([1.0, 2.0, 0.0, 1.0]))],
    refused=_NO_WEIGHTS,
)
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``|input - target|``, averaged over all elements; its derivative where they are equal is 0.

    weight: a factor of each element, in the mean as well.
    """
    reduction = chosen_reduction("l1_loss", reduction, size_average, reduce)
    deviation = _deviation("l1_loss", input, target, "biufc")
    warn_of_broadcast("l1_loss", input, target)
    return _weighted("l1_loss", abs(deviation), weight, input, reduction)


def _without_bfloat16(t: Tensor) -> Tensor:
    return to(t, np.dtype(np.float32)) if t._data.dtype.kind == "V" else t


@pointwise(
    home="nn.functional",
    node="HuberLossBackward0",
    saved={"reduction": lambda: 0},
    input=lambda g, input, delta: np.multiply(g, np.clip(input, -delta, delta)),
)
def _huber(input: Any, delta: float) -> Any:
    size = writable(np.absolute(input))
    inner = size.clip(0, delta)  # several times faster than np.minimum with a number
    size -= np.multiply(inner, 0.5)
    size *= inner
    return size


@composite(
    home="nn.functional",
    narrow="itself",
    samples=lambda: both(S(A(2, 3), A(2, 3), delta=0.5), S(A(2, 3), A(2, 3), "sum", 3), *_WEIGHTS[1:]),
    kinks=lambda: [S(V([1.0, inf, 0.0, -1.0, -inf]), V([0.0] * 5), "none")],
    refused=lambda: [*_NO_WEIGHTS, S(A(2), A(2), delta=0), S(A(2), A(2), delta="x")],
)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared deviation up to `delta`, and beyond it ``delta * (|input - target| - delta / 2)``.

    The result has the dtype of `input`, promoted with the one of `weight`.
    """
    reduction = chosen_reduction("huber_loss", reduction)
    need_numbers("huber_loss", delta=delta)
    if delta <= 0:
        raise refuse("huber_loss", "delta above 0", delta)
    tensors("huber_loss", input=input, target=target)
    deviation = _deviation("huber_loss", _without_bfloat16(input), _without_bfloat16(target), alike=False)
    warn_of_broadcast("huber_loss", input, target)
    losses, kind = _huber(deviation, delta), input._data.dtype
    if kind != losses._data.dtype:
        if kind.kind not in "fV":
            text = f"result type {losses.dtype} can't be cast to the desired output type {input.dtype}"
            raise RuntimeError(
                errors.message(f"huber_loss(): {text}", do=f"convert the input, as input.{dtypes.to_default()}")
            )
        losses = to(losses, kind)
    if weight is not None and reduction == "mean":  # torch divides by the number of elements here
        return sums.mean(_weighted("huber_loss", losses, weight, input, "none"))
    return _weighted("huber_loss", losses, weight, input, reduction)


@composite(
    home="nn.functional",
    narrow=_of_one_rank,
    samples=lambda: both(S(A(2, 3), A(2, 3), beta=0.5), S(A(2, 3), A(2, 3), beta=0, reduction="sum")),
    kinks=lambda: [S(V([1.0, inf, 0.0, -1.0, -inf]), V([0.0] * 5), reduction="none")],
    refused=lambda: [*NO_LOSS, S(A(2), A(3)), S(A(2), A(2), beta=-1.0), S(A(2), A(2), beta="x")],
)
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``|input - target| - beta / 2``, and below `beta` the parabola that meets it: `huber_loss` divided by `beta`."""
    reduction = chosen_reduction("smooth_l1_loss", reduction, size_average, reduce)
    need_numbers("smooth_l1_loss", beta=beta)
    if beta < 0:
        raise refuse("smooth_l1_loss", "beta to be at least 0", beta)
    deviation = _deviation("smooth_l1_loss", input, target, "f" if beta else "iufc")
    warn_of_broadcast("smooth_l1_loss", input, target)
    return reduced(_huber(deviation, beta) / beta if beta else abs(deviation), reduction)

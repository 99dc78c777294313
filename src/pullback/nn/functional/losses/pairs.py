"""Losses of pairs and triplets: members of a pair should be near, others further away by a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ops.elementwise.limits import minimum, where
from ....ops.elementwise.powers import square
from ....ops.make.conversion import to
from ....ops.reduce import sums
from ....table.entry import composite
from ....table.samples import A, Differs, S, V
from ....tensor.tensor import Tensor
from ..arguments import floating, refuse, tensors
from ..distance import pairwise_distance
from .reduction import chosen_reduction, reduced
from .regression import NO_LOSS, REDUCTIONS

_SIGNS = V([[1, -1, 1], [-1, -1, 1]], "int64")


def _positive(values: Tensor) -> Tensor:
    """``max(values, 0)``, with the derivative 1 at 0, as torch has it here."""
    return values.clamp(min=0)


def _by_sign(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a loss whose target only says which element is which: its dtype is not the result's."""
    target = given.get("target")
    if isinstance(target, Tensor):
        given["target"] = to(np.equal(target, 1), np.int8) - to(np.equal(target, -1), np.int8)
    return given


@composite(
    bounds="margin",
    home="nn.functional",
    narrow=_by_sign,
    samples=lambda: [
        *(S(A(2, 3), _SIGNS, reduction=r) for r in REDUCTIONS),
        S(A(2, 3), _SIGNS, 2.5),
        S(A(), V(-1, "int64"), margin=0.5),
        S(A(3, 2, layout="T"), V([-1, 1], "int64")),
    ],
    kinks=lambda: [
        S(V([1.0, 1.0, 0.0]), V([1, -1, -1], "int64"), reduction="none"),
        S(V([1.0, 0.5, 2.0, -1.0]), V([1.0, -1.0, 0.0, -1.0])),
    ],
    refused=lambda: [*NO_LOSS, S(A(2), A(3))],
    differs=lambda: [Differs("integers are refused; torch rounds the margin to one", "values", "int64")],
)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The distance `input` itself where ``target == 1``, and ``max(0, margin - input)`` where ``target == -1``."""
    reduction = chosen_reduction("hinge_embedding_loss", reduction, size_average, reduce)
    tensors("hinge_embedding_loss", input=input, target=target)
    floating("hinge_embedding_loss", input)
    losses = where(np.not_equal(target, 1), _positive(margin - input), 0) + where(np.not_equal(target, -1), input, 0)
    return reduced(losses, reduction)


@composite(
    home="nn.functional",
    samples=lambda: [
        *(S(A(2, 3), A(2, 3), _SIGNS, reduction=r) for r in REDUCTIONS),
        S(A(2, 3), A(2, 3), _SIGNS, 2.5),
        S(A(), A(), A(), margin=0.5),
        S(A(2, 3), A(1, 3), A(2, 1)),
        S(A(0), A(0), A(0), reduction="sum"),
    ],
    kinks=lambda: [S(V([1.0, 2.0, 0.0]), V([1.0, 1.0, 0.0]), V([1.0, -1.0, 1.0]), reduction="none")],
    refused=lambda: [
        S(A(2), A(2), A(1, 2)),
        S(A(2), A(2), A(2), reduction="median"),
        S(A(2), A(3), A(2)),
        S(A(2), A(2)),
    ],
)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``: target 1 if the first should be larger, -1 if the second."""
    reduction = chosen_reduction("margin_ranking_loss", reduction, size_average, reduce)
    tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if not input1._data.ndim == input2._data.ndim == target._data.ndim:
        found = ", ".join(f"{list(t._data.shape)}" for t in (input1, input2, target))
        raise refuse("margin_ranking_loss", "inputs and a target of as many axes", found)
    return reduced(_positive(-target * (input1 - input2) + float(margin)), reduction)


@composite(
    home="nn.functional",
    narrow=_by_sign,
    samples=lambda: [
        *(S(A(2, 3), A(2, 3), V([1, -1], "int64"), reduction=r) for r in REDUCTIONS),
        S(A(4, 3), A(4, 3), V([1, -1, -1, 0], "int64"), -0.5),
        S(A(3), A(3), V(-1, "int64"), margin=-0.5),
        S(A(3), A(3), V(1, "int64")),
    ],
    kinks=lambda: [
        S(V([[1.0, 2.0], [0.0, 0.0]]), V([[1.0, 1.0], [1.0, 1.0]]), V([1, 1], "int64"), reduction="none"),
        S(V([[1.0, 2.0], [2.0, 1.0]]), V([[1.0, 1.0], [1.0, 1.0]]), V([1.0, -1.0]), margin=0.2),
    ],
    differs=lambda: [
        Differs("the 1e-12 added to squares is of single precision in torch", "kinks", sample="[0.0, 0.0]")
    ],
    refused=lambda: [
        S(A(3), A(3), V([1], "int64")),
        S(A(2, 3), A(2, 3), V(1, "int64")),
        S(A(2, 3), A(2, 3), V([[1], [1]], "int64")),
        S(A(2, 3), A(2, 2), V([1, 1], "int64")),
        S(A(2, 3), A(2, 3), V([1, 1], "int64"), reduction="median"),
    ],
)
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos`` of the angle between vectors where ``target == 1``, ``max(0, cos - margin)`` where it is -1.

    input1, input2: ``(N, D)``, target ``(N)``; or ``(D)`` and one number.
    """
    reduction = chosen_reduction("cosine_embedding_loss", reduction, size_average, reduce)
    tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    axes = target._data.ndim
    if axes > 1 or input1._data.ndim != axes + 1 or input2._data.ndim != axes + 1:
        found = ", ".join(f"{list(t._data.shape)}" for t in (input1, input2, target))
        raise refuse("cosine_embedding_loss", "two inputs (N, D) and a target (N), or (D) and ()", found)

    def total(values: Tensor) -> Tensor:
        return sums.sum(values, -1)

    sizes = (total(square(input1)) + 1e-12) * (total(square(input2)) + 1e-12)
    cosine = total(input1 * input2) / sizes.sqrt()
    losses = where(np.equal(target, 1), 1 - cosine, 0) + where(np.equal(target, -1), _positive(cosine - margin), 0)
    return reduced(losses, reduction)


def _triplets(name: str, anchor: Tensor, positive: Tensor, negative: Tensor, margin: float) -> None:
    tensors(name, anchor=anchor, positive=positive, negative=negative)
    if margin <= 0:
        raise refuse(name, "margin above 0", margin, error=ValueError)
    if not anchor._data.ndim == positive._data.ndim == negative._data.ndim:
        found = ", ".join(f"{list(t._data.shape)}" for t in (anchor, positive, negative))
        raise refuse(name, "three tensors of as many axes", found)


def _of_distances(
    distance: Callable[[Tensor, Tensor], Tensor],
    triplet: tuple[Tensor, Tensor, Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    anchor, positive, negative = triplet
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(_positive(margin + near - far), reduction)


_TRIPLET = (A(2, 3), A(2, 3), A(2, 3))
_NO_TRIPLETS = [
    S(A(2, 3), A(2, 3), A(3)),
    S(A(2, 3), A(2, 3), A(2, 2)),
    S(*_TRIPLET, margin=0.0),
    S(*_TRIPLET, reduction="median"),
    S(*_TRIPLET[:2]),
]


@composite(
    home="nn.functional",
    samples=lambda: [
        *(S(*_TRIPLET, reduction=r) for r in REDUCTIONS),
        S(*_TRIPLET, 2.5, 1.0, swap=True, reduction="none"),
        S(*_TRIPLET, margin=3, p=3, eps=0.1),
        S(A(3), A(3), A(3), margin=5.0),
        S(A(2, 3), A(2, 3), A(1, 3), swap=True),
    ],
    refused=_NO_TRIPLETS,
)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin + |anchor - positive| - |anchor - negative|)``, in p-norms.

    From Schroff et al. 2015, arXiv:1503.03832.

    swap: the distance of the negative is the smaller of its distances from the anchor and from the positive.
    """
    reduction = chosen_reduction("triplet_margin_loss", reduction, size_average, reduce)
    _triplets("triplet_margin_loss", anchor, positive, negative, margin)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _of_distances(distance, (anchor, positive, negative), margin, swap, reduction)


@composite(
    truths="swap",
    home="nn.functional",
    samples=lambda: [
        *(S(*_TRIPLET, reduction=r) for r in REDUCTIONS),
        S(*_TRIPLET, margin=2.5, swap=True, reduction="none"),
    ],
    refused=_NO_TRIPLETS,
)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a given distance function, by default `pairwise_distance`."""
    name = "triplet_margin_with_distance_loss"
    reduction = chosen_reduction(name, reduction)
    _triplets(name, anchor, positive, negative, margin)
    distance = pairwise_distance if distance_function is None else distance_function
    return _of_distances(distance, (anchor, positive, negative), margin, swap, reduction)

"""Operations that read targets of class indices, and check them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....kernels.masks import only
from ....kernels.positions import within
from ....ops.reduce.picking import unpick
from ....table.calls import on
from ....table.entry import linear
from ....table.op import Op
from ....tensor.adding import summed
from ....tensor.arrays import reshaped, taken_along
from ....tensor.protocol import is_foreign
from ....tensor.tensor import Tensor


def check_classes(found: Any, classes: int, error: type[Exception] = RuntimeError) -> None:
    """Refuse indices if one is not a class."""
    text = f"Target is out of bounds: expected classes 0 to {classes - 1}."
    if not within(found, classes, error(text)):
        outside = found[np.logical_or(np.less(found, 0), np.greater_equal(found, classes))]
        raise error(
            f"Target {int(outside[0])} is out of bounds: expected classes 0 to {classes - 1}.\n"
            "  What to do: count the classes from 0, or pass ignore_index."
        )


def _counted(target: Any, classes: int, ignored: int) -> Any:
    """Which targets are not to be ignored. None if all are classes, and a class is not ignored."""
    if type(target) is np.ndarray and not 0 <= ignored < classes and within(target, classes):
        return None
    return np.not_equal(target, ignored)


def _put_back(g: Any, target: Any, axis: int, ignored: int, reduction: str, input_shape: Any) -> Any:
    counted = _counted(target, input_shape[axis], ignored)
    shape = (*input_shape[:axis], 1, *input_shape[axis + 1 :])
    one = reduction != "none" and counted is None and type(g) is np.ndarray  # the same number for each
    if reduction == "mean":
        g = np.true_divide(g, target.size if counted is None else np.sum(counted))
    if reduction != "none" and not one:
        g = np.broadcast_to(g, np.shape(target))
    if counted is not None:
        g, target = only(counted, g), np.where(counted, target, 0)
    g = reshaped(np.negative(g), (1,) * len(shape) if one else shape)
    return on(unpick, g, axis, reshaped(target, shape), input_shape, False)


def _in_front(level: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: the axis of the batch comes first in both tensors, so `axis` moves on by one."""
    input, target, axis, *others = args
    found: Tensor = op.unchecked(level.lower(input), level.lower(target), axis + 1, *others)
    return found


@linear(
    home="nn.functional",
    node="NllLossBackward0",
    saved={
        "reduction": lambda reduction: ("none", "mean", "sum").index(reduction),
        "weight": lambda: None,
        "ignore_index": "ignored",
    },
    numbers="",
    input=_put_back,
    batch=_in_front,
)
def _likelihoods(input: Any, target: Any, axis: int, ignored: int, reduction: str) -> Any:
    """The values of `input` at the classes of the target along `axis`, negated; 0 for ignored targets.

    reduction: of arrays only. The mean is over the targets that are not ignored.
    """
    counted, index = _counted(target, input.shape[axis], ignored), target
    if counted is not None:
        if is_foreign(target) or not counted.all():  # a device is not waited for
            index = np.where(counted, target, 0)
        check_classes(index, input.shape[axis], IndexError)
    shape = (*index.shape[:axis], 1, *index.shape[axis:])
    picked = np.negative(taken_along(input, index.reshape(shape), axis)).reshape(index.shape)
    losses = picked if index is target else np.where(counted, picked, 0)
    if reduction == "none":
        return losses
    total = summed(losses)
    if reduction == "sum":
        return total
    return np.true_divide(total, target.size if counted is None else np.count_nonzero(counted), dtype=losses.dtype)

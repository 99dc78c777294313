"""Connectionist temporal classification: the likelihood of a sequence of labels whose alignment in time is unknown.

Graves et al. 2006. Labels are laid out with blanks around them, so a path through time is at one of 2 S + 1 places. It
stays there, goes to the next place, or skips a blank between different labels. The probability of all paths up to a
place and a time (alpha) follows from the time before. The probability of all paths from there to the end is the same
recursion, on labels and times reversed. Both are computed for a whole batch at once, in logarithms, by NumPy functions:
on arrays, or recorded on Tensors for higher derivatives.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from .... import errors
from ....ops.reduce import sums
from ....ops.reduce.picking import pick
from ....table.entry import composite, special
from ....table.operands import plain
from ....table.samples import A, Differs, S, V
from ....tensor.adding import summed
from ....tensor.arrays import arange_beside, beside
from ....tensor.tensor import Tensor, wrap
from ..arguments import floating, refuse, tensors
from .reduction import chosen_reduction, reduced

Array = np.ndarray[Any, Any]


def _log_sum(*logs: Any) -> Any:
    """The logarithm of the sum of exponentials; where all terms are -inf it is -inf, with the derivative 0."""
    top = functools.reduce(np.maximum, [plain(x) for x in logs])
    nothing = np.equal(top, -np.inf)
    top = np.where(nothing, 0, top)
    total = functools.reduce(np.add, [np.exp(np.subtract(x, top)) for x in logs])
    return np.where(nothing, -np.inf, np.add(np.log(np.where(nothing, 1, total)), top))


def _alphas(logs: Any, skips: Any) -> Any:
    """The log probabilities of all paths that end at each time and place.

    logs: the log probability of the label at each time, for each sequence of the batch, at each place; skips: whether a
    path may reach a place from two places before.
    """
    skips = beside(logs, skips)
    alpha = np.where(arange_beside(logs, np.shape(logs)[2]) < 2, logs[0], -np.inf)
    edge = np.full_like(alpha[:, :1], -np.inf)
    found = [alpha]
    for t in range(1, np.shape(logs)[0]):
        wide = np.concatenate([edge, edge, alpha], axis=1)
        alpha = np.add(_log_sum(alpha, wide[:, 1:-1], np.where(skips, wide[:, :-2], -np.inf)), logs[t])
        found.append(alpha)
    return np.stack(found)


def _log_likelihoods(alphas: Any, times: Array, lengths: Array) -> Any:
    """The log probability of the paths that end, at the last time, at the last label or the blank after it."""
    times, lengths, rows = (beside(alphas, a) for a in (times, lengths, np.arange(len(times))))
    last = alphas[np.maximum(times - 1, 0), rows]
    label = np.where(lengths > 0, last[rows, np.maximum(2 * lengths - 1, 0)], -np.inf)
    found = _log_sum(last[rows, 2 * lengths], label)
    return np.where(times > 0, found, np.where(lengths > 0, -np.inf, 0))


def _posteriors(logs: Any, skips: Array, times: Array, lengths: Array, zero_infinity: bool) -> Any:
    """The probability of being at each place at each time, given the labels."""
    steps, batch, places = np.shape(logs)
    skips, times, lengths = (beside(logs, a) for a in (skips, times, lengths))
    t, n, s = (beside(logs, a) for a in np.ogrid[:steps, :batch, :places])
    # the time and the place of each when both are reversed
    back = (np.maximum(times[:, None] - 1 - t, 0), n, np.maximum(2 * lengths[:, None] - s, 0))
    jump = 2 * lengths[:, None] - s[0] + 2
    reversed_skips = skips[n[0], np.clip(jump, 0, places - 1)] & (jump >= 0) & (jump < places) & (s[0] > 1)
    both = _alphas(np.concatenate([logs, logs[back]], axis=1), np.concatenate([skips, reversed_skips]))
    alphas, betas = both[:, :batch], both[:, batch:][back]
    total = _log_likelihoods(alphas, times, lengths)[:, None]
    inside = (t < times[:, None]) & (s <= 2 * lengths[:, None])
    if zero_infinity:
        inside = np.logical_and(inside, np.not_equal(plain(total), -np.inf))
    inside = np.logical_and(inside, np.not_equal(plain(logs), -np.inf))
    exponent = np.subtract(np.add(alphas, betas), np.add(logs, total))
    return np.where(inside, np.exp(np.where(inside, exponent, 0)), 0)


def _rule(g: Any, input: Any, skips: Any, times: Any, lengths: Any, zero_infinity: Any) -> Any:
    return np.multiply(np.negative(g)[:, None], _posteriors(input, skips, times, lengths, zero_infinity))


def _jvp(tangents: Any, input: Any, skips: Any, times: Any, lengths: Any, zero_infinity: Any) -> Any:
    found = _posteriors(input, skips, times, lengths, zero_infinity)
    return np.negative(summed(np.multiply(tangents[0], found), axis=(0, 2)))


@special(home="nn.functional", node="CtcLossBackward0", input=_rule, jvp=_jvp)
def _ctc(input: Any, skips: Any, times: Any, lengths: Any, zero_infinity: bool) -> Any:
    losses = np.negative(_log_likelihoods(_alphas(input, skips), times, lengths)).astype(input.dtype, copy=False)
    return np.where(np.isposinf(losses), 0, losses) if zero_infinity else losses


# The arguments --------------------------------------------------------------------------------------------------------


def _lengths(argument: str, value: Any, batch: int, most: int | None) -> Array:
    """Lengths as an array, one for each sequence of the batch."""
    if isinstance(value, Tensor):
        if value._data.dtype.kind not in "iu":
            raise refuse("ctc_loss", f"{argument} to be integers", errors.describe(value))
        found = np.array(value.tolist(), np.int64).reshape(-1)
    elif isinstance(value, (tuple, list)):
        try:
            found = np.array([operator.index(n) for n in value], np.int64)
        except TypeError:
            raise refuse("ctc_loss", f"{argument} to be integers", list(value), error=TypeError) from None
    else:
        raise refuse(
            "ctc_loss", f"{argument} to be a Tensor or a tuple of integers", errors.describe(value), error=TypeError
        )
    if len(found) != batch:
        raise refuse("ctc_loss", f"{argument} to hold a length for each of a batch of {batch}", f"{len(found)} of them")
    if found.min(initial=0) < 0 or (most is not None and found.max(initial=0) > most):
        raise refuse("ctc_loss", f"{argument} from 0" + f" to {most}" * (most is not None), found.tolist())
    return found


def _padded(targets: Tensor, lengths: Array, classes: int) -> Array:
    """The labels, a row for each sequence of the batch."""
    given = np.array(targets.tolist()).astype(np.int64).reshape(targets._data.shape)
    columns = np.arange(lengths.max(initial=0))
    used = columns < lengths[:, None]
    if given.ndim == 1:
        if len(given) != lengths.sum():
            raise refuse("ctc_loss", f"{lengths.sum()} targets, the sum of target_lengths", len(given))
        labels = np.zeros(used.shape, np.int64)
        labels[used] = given
    else:
        if given.ndim != 2 or given.shape[0] != len(lengths) or given.shape[1] < len(columns):
            raise refuse("ctc_loss", f"targets of size {[len(lengths), len(columns)]} at least", list(given.shape))
        labels = np.where(used, given[:, : len(columns)], 0)
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= classes:
        raise refuse("ctc_loss", f"targets from 0 to {classes - 1}", "others")
    return labels


_LOGS = A(6, 3, 4)
_TARGETS = V([[1, 2, 0], [3, 3, 0], [2, 1, 3]], "int64")
_OUR_GRADIENT = (
    "the derivative itself; torch's is right only behind log_softmax, which takes out what it adds to it, and has no "
    "derivative of its own"
)


@composite(
    home="nn.functional",
    samples=lambda: [
        *(S(_LOGS, _TARGETS, (6, 5, 6), (2, 2, 3), reduction=r) for r in ("mean", "sum", "none")),
        S(_LOGS, V([1, 2, 3, 3, 2, 1, 3], "int64"), V([6, 5, 6], "int64"), V([2, 2, 3], "int64")),
        S(_LOGS, V([[0, 2], [1, 1], [2, 0]], "int64"), [6, 6, 3], [2, 1, 0], blank=3, reduction="none"),
        S(_LOGS, _TARGETS, (2, 5, 3), (2, 2, 3), zero_infinity=True),
        S(A(5, 4), V([1, 2], "int64"), (5,), (2,)),
        S(A(5, 4), V([[1, 2]], "int64"), V(5, "int64"), V(2, "int64"), reduction="none"),
        S(A(5, 1, 3, layout="T"), V([[1, 1]], "int32"), (4,), (2,), 0, "sum"),
    ],
    refused=lambda: [
        S(_LOGS, _TARGETS, (7, 5, 6), (2, 2, 3)),
        S(_LOGS, _TARGETS, (6, 5), (2, 2, 3)),
        S(_LOGS, _TARGETS, (6, 5, 6), (2, 2)),
        S(_LOGS, _TARGETS, (6, 5, 6), (2, 2, 4)),
        S(_LOGS, _TARGETS, (6, 5, -1), (2, 2, 3)),
        S(_LOGS, _TARGETS, (6, 5, 6), (2, 2, -3)),
        S(_LOGS, V([1, 2, 3], "int64"), (6, 5, 6), (2, 2, 3)),
        S(_LOGS, _TARGETS, (6, 5, 6), (2, 2, 3), blank=4),
        S(_LOGS, _TARGETS, (6, 5, 6), (2, 2, 3), -1),
        S(_LOGS, _TARGETS, (6, 5, 6), (2, 2, 3), reduction="median"),
        S(_LOGS, _TARGETS, (6.0, 5.0, 6.0), (2, 2, 3)),
        S(_LOGS, _TARGETS, V([6.0, 5.0, 6.0]), V([2, 2, 3], "int64")),
        S(A(0, 3, 4), _TARGETS, (0, 0, 0), (2, 2, 3)),
        S(A(4), V([1], "int64"), (1,), (1,)),
        S(A(5, 4), V([1, 2], "int64"), 5, 2),
    ],
    differs=lambda: [
        Differs(_OUR_GRADIENT, "gradients"),
        Differs(_OUR_GRADIENT, "second"),
    ],
)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log likelihood of label sequences, summed over their alignments in time (Graves et al. 2006).

    log_probs: ``(T, N, C)`` or ``(T, C)``, as `log_softmax` gives them; targets: ``(N, S)``, or all sequences one
    after the other; input_lengths, target_lengths: the length of each that is used. For the mean, each loss is divided
    by the length of its target. zero_infinity: losses of targets too long for their input are 0, not infinite.

    >>> import pullback
    >>> logs = pullback.zeros(3, 1, 2).log_softmax(2)
    >>> pullback.nn.functional.ctc_loss(logs, pullback.tensor([[1]]), (3,), (1,)).exp()  # 6 of 8 paths
    tensor(1.3333)
    """
    reduction = chosen_reduction("ctc_loss", reduction)
    tensors("ctc_loss", log_probs=log_probs, targets=targets)
    floating("ctc_loss", log_probs)
    shape = log_probs._data.shape
    if len(shape) not in (2, 3) or not log_probs._data.size:
        raise refuse("ctc_loss", "log_probs (T, N, C) or (T, C), not empty", f"size {list(shape)}")
    logs = log_probs if len(shape) == 3 else log_probs.unsqueeze(1)
    steps, batch, classes = logs._data.shape
    if not 0 <= blank < classes:
        raise refuse("ctc_loss", f"blank from 0 to {classes - 1}", blank)
    times = _lengths("input_lengths", input_lengths, batch, steps)
    lengths = _lengths("target_lengths", target_lengths, batch, None)
    labels = _padded(targets, lengths, classes)
    places = np.full((batch, 2 * labels.shape[1] + 1), blank, np.int64)
    places[:, 1::2] = labels
    skips = np.zeros(places.shape, bool)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    at_places = pick(logs, 2, wrap(beside(logs, np.broadcast_to(places, (steps, *places.shape)))))
    losses = _ctc(at_places, *(beside(logs, a) for a in (skips, times, lengths)), zero_infinity)
    if reduction == "mean":
        return sums.mean(losses / wrap(beside(logs, np.maximum(lengths, 1).astype(logs._data.dtype))))
    if reduction == "none" and len(shape) == 2:
        return losses.squeeze(0)
    return reduced(losses, reduction)

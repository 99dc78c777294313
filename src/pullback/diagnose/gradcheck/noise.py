"""Noise of a function under test: its finite differences are wrong, not its backward.

The values of a solver scatter by about its tolerances around a smooth curve, and a difference divides that by a small
step. A larger step tells: there the two sides come together and agree with backward. At a kink they stay apart, and
where backward is wrong no step agrees with it. Nothing here runs unless the check has failed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import disagreement
from .disagreement import Array
from .problem import Call, Found, Options, column, directions

STEPS = (10, 100, 1000)
"""The larger steps, as multiples of eps."""

LARGEST_SEARCH = 32  # columns that are searched


@dataclass(eq=False, repr=False)
class Noise:
    """Where noise explains a disagreement, how large it is, and the steps at which the whole pair agrees."""

    there: Array
    size: float = 0.0
    steps: set[int] = field(default_factory=lambda: set(STEPS))


def noise(call: Call, options: Options, f: Found, base: list[Array]) -> Noise:
    """The noise in the wrong entries of a pair."""
    found = Noise(np.zeros_like(f.wrong))
    with np.errstate(all="ignore"):
        gaps = np.where(f.wrong, np.abs(f.analytical - f.numerical), 0)
        worst = np.argsort(-gaps.max(axis=(0, 1)), kind="stable")
        moves = list(directions(call.inputs[f.i]._data.shape, None))
        for c in worst[: min(LARGEST_SEARCH, np.count_nonzero(f.wrong.any(axis=(0, 1))))]:
            larger = [column(call, base, f.i, moves[c], options.eps * m)[f.k] for m in STEPS]
            ladder = np.stack([np.stack([f.numerical[..., c], f.jumps[..., c]]), *larger])
            agreeing = _agreeing(options, ladder, f.analytical[..., c], f.wrong[..., c], base[f.k])
            if agreeing:
                found.there[..., c] = f.wrong[..., c]
                found.size = max(
                    found.size, _size(options, ladder, f.analytical[..., c], f.wrong[..., c], min(agreeing))
                )
                found.steps &= agreeing
    if not np.array_equal(found.there, f.wrong):
        found.steps.clear()
    return found


def _size(options: Options, ladder: Array, claimed: Array, wrong: Array, step: int) -> float:
    """How far the values lie from a curve with the derivative of backward, at most, at the steps up to this one."""
    sizes = [m * np.abs(ladder[n, 0] - claimed)[wrong].max() for n, m in enumerate((1, *STEPS)) if m <= step]
    return float(2 * options.eps * max(sizes))


def _agreeing(options: Options, ladder: Array, claimed: Array, wrong: Array, value: Array) -> set[int]:
    """The steps at which one column agrees with backward, if the function is rough below them.

    ladder: the central differences, and the right minus the left ones, at eps and at each larger step.
    """
    A, central, jumps = claimed[wrong], ladder[:, 0, wrong], np.abs(ladder[:, 1, wrong])
    if not (np.abs(A) > options.atol).any():
        return set()
    floor = 10 * np.broadcast_to(disagreement.rounding(value, options.eps)[..., 0], wrong.shape)[wrong]
    changes = np.abs(np.diff(central, axis=0))
    found = set()
    for n, step in enumerate(STEPS, 1):
        close = np.isclose(A, central[n], rtol=options.rtol, atol=options.atol)
        together = jumps[n] <= np.maximum(jumps[0] / 2, np.abs(A) / 10)
        # Along a smooth curve the jumps grow with the step, tenfold, and the changes with its square, a hundredfold.
        falls = (jumps[0] > floor) & (jumps[n] < jumps[0] / 2)
        slow = ((changes[: n - 1] > floor) & (changes[1:n] < 10 * changes[: n - 1])).any(axis=0)
        if (close & together & (falls | slow)).all():
            found.add(step)
    return found

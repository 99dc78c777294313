"""The line search of L-BFGS: it finds a step along a direction that satisfies the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical optimization, 2nd edition, 2006, algorithms 3.5 and 3.6; the safeguards and the
constants are those of PyTorch, and so are the steps that are tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .sweep import Array

DECREASE = 1e-4
"""c1: the part of the decrease predicted by the slope that a step must reach."""

CURVATURE = 0.9
"""c2: the part of the slope that may remain."""


class Point(NamedTuple):
    """A point on the line: its distance, and the loss, the gradient and the slope along the line there."""

    step: float
    loss: float
    grad: Array
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, step: float, size: float, tolerance_change: float, most: int
) -> tuple[Point, int]:
    """A point where the loss has decreased and the slope is flatter, and the number of evaluations spent.

    Args:
        evaluate: gives the point at a step.
        start: the point at step 0; the slope is negative there.
        step: the first to try.
        size: the largest component of the direction: brackets shorter than `tolerance_change` are not refined.
        most: how many steps may be tried after the first.

    Returns:
        The best point found if there were not enough evaluations for one that satisfies the conditions.
    """
    bracket, point, spent = _bracketed(evaluate, start, step, most)
    tries = spent - 1
    if bracket is None:
        return point, spent
    low, high = bracket if bracket[0].loss <= bracket[1].loss else bracket[::-1]
    stuck = False
    while tries < most and not abs(high.step - low.step) * size < tolerance_change:
        step, stuck = _inside(_cubic_minimum(low, high), low, high, stuck)
        point = evaluate(step)
        tries += 1
        if not _decreased(start, point) or point.loss >= low.loss:
            low, high = (low, point) if low.loss <= point.loss else (point, low)
            continue
        if _flat(start, point):
            return point, tries + 1
        if point.slope * (high.step - low.step) >= 0:
            high = low
        low = point
    return low, tries + 1


def _bracketed(
    evaluate: Callable[[float], Point], start: Point, step: float, most: int
) -> tuple[tuple[Point, Point] | None, Point, int]:
    """Two points around an acceptable one, or None and that point; then the number of evaluations spent."""
    last, point = start, evaluate(step)
    for tries in range(most):
        if not _decreased(start, point) or (tries > 1 and point.loss >= last.loss):
            return (last, point), point, tries + 1
        if _flat(start, point):
            return None, point, tries + 1
        if point.slope >= 0:
            return (last, point), point, tries + 1
        nearest, farthest = point.step + 0.01 * (point.step - last.step), point.step * 10
        step = _cubic_minimum(last, point, nearest, farthest)
        last, point = point, evaluate(step)
    return (start, point), point, max(most, 0) + 1


def _decreased(start: Point, point: Point) -> bool:
    # written so that a loss of NaN counts as decreased, as in PyTorch
    return not point.loss > start.loss + DECREASE * point.step * start.slope


def _flat(start: Point, point: Point) -> bool:
    return abs(point.slope) <= -CURVATURE * start.slope


def _inside(step: float, low: Point, high: Point, stuck: bool) -> tuple[float, bool]:
    """`step`, moved away from an end that it is close to for the second time; and whether it is close now."""
    left, right = min(low.step, high.step), max(low.step, high.step)
    margin = 0.1 * (right - left)
    if not min(right - step, step - left) < margin:
        return step, False
    if stuck or step >= right or step <= left:
        return (right - margin if abs(step - right) < abs(step - left) else left + margin), False
    return step, True


def _cubic_minimum(a: Point, b: Point, low: float | None = None, high: float | None = None) -> float:
    """The minimum of the cubic through the losses and slopes of two points, within bounds (by default the points)."""
    left, right = (a, b) if a.step <= b.step else (b, a)
    low, high = (left.step, right.step) if low is None or high is None else (low, high)
    width = np.float64(right.step - left.step)  # NumPy's number: dividing by 0 is not an error
    d1 = left.slope + right.slope - 3 * (left.loss - right.loss) / -width
    square = d1 * d1 - left.slope * right.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    least = right.step - width * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return float(min(max(least, low), high))

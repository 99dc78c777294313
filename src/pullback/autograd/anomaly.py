"""Anomaly mode: an error in a backward pass names the forward call it belongs to, and a NaN gradient is an error."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._state import thread
from .._tensor import Tensor
from .places import formatted
from .watching import changed


class set_detect_anomaly:  # noqa: N801 - torch's name
    """Switch anomaly mode on or off now; as a context manager, put it back on leaving.

    mode: whether nodes note the stack of the forward call that made them. check_nan: whether a NaN gradient is an
    error. What it costs: the stack of every node, and a look at every gradient.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = self._now()
        self._wanted = mode, check_nan
        self._set(*self._wanted)

    def _now(self) -> tuple[bool, bool]:
        return thread.modes.anomaly, thread.modes.check_nan

    def _set(self, anomaly: bool, check_nan: bool) -> None:
        modes = thread.modes
        modes.anomaly, modes.check_nan = anomaly, check_nan
        changed()

    def __enter__(self) -> None:
        self._set(*self._wanted)

    def __exit__(self, *exc: object) -> None:
        self._set(*self._before)


class detect_anomaly(set_detect_anomaly):  # noqa: N801 - torch's name
    """Within it, an error in a backward pass names the forward call it belongs to, and a NaN gradient is an error.

    Forward and backward have to run within it. RuntimeError for a NaN, unless `check_nan` is False: it names the
    operation, the element, and the line of the forward call.

    >>> import warnings, pullback
    >>> x = pullback.tensor([0.0, 1.0], requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), pullback.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).sum().backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...

    See https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._before = self._now()
        self._wanted = True, check_nan


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread."""
    return thread.modes.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, where it is on, looks for NaN."""
    return thread.modes.check_nan


def check_nan(node: Any, grads: Sequence[Any]) -> None:
    """Refuse NaN among the gradients a node sends."""
    for i, g in enumerate(grads):
        data = g._data if isinstance(g, Tensor) else g
        if not isinstance(data, np.ndarray) or data.dtype.kind not in "fcV":
            continue
        bad = np.isnan(data)
        if bad.any():
            where = tuple(int(k) for k in np.argwhere(bad)[0])
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {i}th output: {int(bad.sum())} of {data.size} "
                f"elements, first at index {list(where)}.{_made_at(node)}"
            )


def _made_at(node: Any) -> str:
    stack = node.metadata.get("origin")
    if not stack:
        return ""
    file, line, name = stack[-1]
    return f"\n  The forward call: {file}:{line}, in {name}."


def warn_of(node: Any) -> None:
    """Say which forward call made a node whose backward failed, and which backward call made that, if one did."""
    stack = node.metadata.get("origin")
    if stack is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information.",
            stacklevel=2,
        )
        return
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{formatted(stack)}",
        stacklevel=2,
    )
    seen = set()
    parent = node.metadata.get("parent")
    while parent is not None and id(parent) not in seen:
        seen.add(id(parent))
        stack = parent.metadata.get("origin")
        text = f" Traceback of forward call that induced the previous calculation:\n{formatted(stack)}" if stack else ""
        warnings.warn(f"\n\nPrevious calculation was induced by {parent.name()}.{text}", stacklevel=2)
        parent = parent.metadata.get("parent")

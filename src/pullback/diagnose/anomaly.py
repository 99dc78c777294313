"""Anomaly mode: an error in a backward pass names the forward call it belongs to, and a NaN gradient is an error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..errors import callers_level
from ..tensor.modes import thread
from .listeners import TENSORS, note_places
from .nans import check_forward, check_gradients, kept, look_at_node, look_at_tensor
from .places import formatted

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


def __dir__() -> list[str]:
    return sorted(__all__)


class set_detect_anomaly:  # noqa: N801 - torch's name
    """Switch anomaly mode on or off now; as a context manager, put it back on leaving.

    mode: whether nodes note the stack of the forward call that made them. check_nan: whether NaN is looked for, in the
    tensors of the forward pass and in gradients, and is an error in a backward pass. check_inf: whether an infinite
    gradient is an error as well.
    """

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf: bool = False) -> None:
        self._before = self._now()
        self._wanted = bool(mode), bool(check_nan), bool(check_inf)
        self._set(*self._wanted)

    def _now(self) -> tuple[bool, bool, bool]:
        modes = thread.modes
        return modes.watcher is not None, modes.check_nan, modes.check_inf

    def _set(self, anomaly: bool, check_nan: bool, check_inf: bool) -> None:
        modes = thread.modes
        modes.watcher = watched if anomaly else None
        modes.check_nan, modes.check_inf = check_nan, check_inf
        looks = anomaly and check_nan
        modes.tells_tensors = _with(modes.tells_tensors, look_at_tensor, looks)
        modes.tells_nodes = _with(modes.tells_nodes, look_at_node, looks)
        (TENSORS.open if looks else TENSORS.close)("anomaly mode")
        note_places()

    def __enter__(self) -> None:
        try:
            self._set(*self._wanted)
        except BaseException:
            self._set(*self._before)
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self._set(*self._before)
        finally:
            self._set(*self._before)  # all of it, where an interrupt came


def _with(functions: tuple[Any, ...], fn: Any, wanted: bool) -> tuple[Any, ...]:
    others = tuple([f for f in functions if f is not fn])
    return (*others, fn) if wanted else others


class detect_anomaly(set_detect_anomaly):  # noqa: N801 - torch's name
    """Within it, an error in a backward pass names the forward call it belongs to, and a NaN gradient is an error.

    Forward and backward have to run within it. RuntimeError for a NaN, unless `check_nan` is False: it names the
    operation, the element, the values there, the line of the forward call and, if the NaN (or the infinity behind it)
    is older than the backward pass, the operation and line that made it. A NaN that forward made is an error as soon as
    a gradient that is not 0 arrives at it. check_inf: an infinite gradient is an error as well.

    It costs some 8 microseconds for each operation, forward and backward, half of it for the stack of the call, and one
    pass over the elements of every tensor and gradient, about 0.1 ns an element, which allocates nothing. The training
    step of a small network (784-256-256-10, batch 64) took 2.1 ms instead of 1.9. (``python -m benchmarks.diagnosis``
    measures it.)

    >>> import warnings, pullback
    >>> x = pullback.tensor([0.0, 1.0], requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), pullback.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).sum().backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...

    See https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection.
    """

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False) -> None:
        self._before = self._now()
        self._wanted = True, bool(check_nan), bool(check_inf)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=callers_level(),
        )


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread."""
    return thread.modes.watcher is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, where it is on, looks for NaN."""
    return thread.modes.check_nan


def watched(node: Any, g: Any, run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """The gradients that a node sends for `g`; `run` computes them. The engine calls this for every node it runs.

    It refuses a NaN of the forward pass that a gradient now arrives at, and NaN (or infinity) among the gradients sent.
    Any error of the node is reported with the forward call that made it.
    """
    modes = thread.modes
    saved: Sequence[Any] = ()
    if modes.check_nan:
        check_forward(node, g)
        saved = kept(node)
    try:
        grads = run()
        if modes.check_nan:
            check_gradients(node, grads, g, saved, modes.check_inf)
    except Exception:
        _warn_of(node)
        raise
    return grads


def _say(text: str) -> None:
    """Warn; print if warnings are errors, because the warning must not replace the error that it explains."""
    try:
        warnings.warn(text, stacklevel=callers_level())
    except Warning as said:
        print(f"{type(said).__name__}: {said}", file=sys.stderr)


def _warn_of(node: Any) -> None:
    """Name the forward call that made a node whose backward failed, and the backward call that made it, if any."""
    _say(f"Error detected in {node.name()}. {_traceback(node, 'caused the error')}")
    seen = set()
    parent = node.metadata.get("parent")
    while parent is not None and id(parent) not in seen:
        seen.add(id(parent))
        known = "origin" in parent.metadata
        said = "\n\nPrevious calculation was induced by" if known else "Error detected in"
        _say(f"{said} {parent.name()}. {_traceback(parent, 'induced the previous calculation')}")
        parent = parent.metadata.get("parent")


def _traceback(node: Any, did: str) -> str:
    """The forward call of a node, if it is known, and what the call did."""
    stack = node.metadata.get("origin")
    if stack is None:
        return "No forward pass information available. Enable detect anomaly during forward pass for more information."
    return f"Traceback of forward call that {did}:\n{formatted(stack)}"


errors.doors(globals(), "detect_anomaly set_detect_anomaly")

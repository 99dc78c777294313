"""The modes a computation runs in; each thread has its own, ``thread.modes``."""

from __future__ import annotations

import threading
from typing import Any


class Modes:
    """The modes of one thread.

    grad_enabled: whether operations are recorded; inference: whether results can never be part of a graph. needed: the
    nodes that the running backward pass has to reach, a set; None if no pass is running, or if it goes to every leaf.
    levels: the transforms that are running, innermost last. watch: a function called with every new node, or None
    (`autograd/saved.py`): it packs the tensors that the node saves by pack_hooks, and calls tells_nodes. tells_nodes
    and tells_tensors: functions called with each node and tensor. watcher: runs the nodes of a backward pass, in
    anomaly mode: ``watcher(node, g, run)`` returns ``run()``; else None. running: the node whose backward runs, while
    there is a watcher; running_pass: the backward pass that runs it. functions: the modes that see each operation,
    innermost last.
    """

    __slots__ = (
        "__weakref__",
        "check_inf",
        "check_nan",
        "forward_enabled",
        "functions",
        "grad_asked",
        "grad_enabled",
        "hooks_disabled",
        "inference",
        "levels",
        "multithreading",
        "needed",
        "overrides",
        "pack_hooks",
        "recording",
        "running",
        "running_pass",
        "tells_nodes",
        "tells_tensors",
        "watch",
        "watcher",
        "written",
    )

    def __init__(self) -> None:
        self.grad_enabled = True
        self.inference = False
        self.grad_asked = False  # whether recording was enabled inside inference mode, which does not allow it
        self.forward_enabled = True  # whether forward mode computes tangents
        self.written: list[Any] | None = None  # weak references to the tensors written, while a transform records
        self.overrides = True  # whether operations ask classes derived from Tensor
        self.functions: tuple[Any, ...] = ()  # the modes that see each operation
        self.multithreading = True  # whether a backward pass would be allowed threads of its own
        self.needed: set[Any] | None = None
        self.levels: list[Any] = []
        self.watch: Any = None
        self.pack_hooks: tuple[Any, ...] = ()
        self.hooks_disabled: str | None = None  # why no hooks may be set
        self.recording = 0  # the origin that `record_origins` notes for a node. 0: nothing; 1: the line; 2: the stack
        self.tells_nodes: tuple[Any, ...] = ()
        self.tells_tensors: tuple[Any, ...] = ()
        self.watcher: Any = None
        self.check_nan = True  # in anomaly mode: tensors and gradients are checked for NaN
        self.check_inf = False  # ... and gradients for infinity
        self.running: Any = None
        self.running_pass: Any = None


class Count:
    """A count of objects in all threads. At 0 no operation looks for them."""

    __slots__ = ("_lock", "n")

    def __init__(self) -> None:
        self.n = 0
        self._lock = threading.Lock()

    def add(self, more: int) -> None:
        """Add one, or take one away with -1."""
        with self._lock:
            self.n += more


LEVELS = Count()
"""The transforms that are running."""

INFERENCES = Count()
"""The inference modes that are on."""


class _Thread(threading.local):
    # The modes are one attribute, not an attribute each: reading an attribute of a thread is slow.
    def __init__(self) -> None:
        self.modes = Modes()


thread = _Thread()

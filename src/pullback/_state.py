"""The modes a computation runs in, for each thread its own: ``thread.modes``."""

from __future__ import annotations

import threading
from typing import Any


class Modes:
    """Whether operations are recorded, and what the backward pass that is running (if any) has to reach.

    needed: a set of nodes; None where there is no such pass, or it reaches for every leaf.
    """

    __slots__ = ("grad_enabled", "needed")

    def __init__(self) -> None:
        self.grad_enabled = True
        self.needed: set[Any] | None = None


class _Thread(threading.local):
    # One attribute that holds the modes, and not the modes as attributes: reading it is the slow part.
    def __init__(self) -> None:
        self.modes = Modes()


thread = _Thread()

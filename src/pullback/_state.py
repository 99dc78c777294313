"""The modes a computation runs in: one small object a thread.

`modes.grad_enabled` says whether operations are recorded; `modes.needed` is the set of nodes that the backward pass now running in
this thread has to reach, or None where it reaches for every leaf. Each thread starts with the class's values.
"""

from __future__ import annotations

import threading
from typing import Any


class Modes(threading.local):
    """The modes of one thread."""

    grad_enabled: bool = True
    needed: set[Any] | None = None


modes = Modes()

"""Backward passes within backward passes, to any depth.

A backward that calls `backward` runs the inner pass at once, on top of the outer one, and Python's stack holds some
hundred of them. Where it is half full, the next pass runs in a thread of its own, whose stack is empty, while this one
waits: it has the modes and the context variables of the thread that waits, and no two of them ever run at a time.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from ..tensor.modes import thread

T = TypeVar("T")


def is_deep() -> bool:
    """Whether Python's stack is half full."""
    left, frame = sys.getrecursionlimit() // 2, sys._getframe()
    while frame.f_back is not None:
        frame, left = frame.f_back, left - 1
        if not left:
            return True
    return False


def on_an_empty_stack(work: Callable[[], T]) -> T:
    """The result of some work, done in a thread of its own that takes the place of this one; it may raise."""
    result: list[T] = []
    raised: list[BaseException] = []
    begin, done = threading.Event(), threading.Event()
    modes, context = thread.modes, contextvars.copy_context()

    def run() -> None:
        begin.wait()  # this thread may be interrupted while it starts the other
        thread.modes = modes
        try:
            result.append(context.run(work))
        except BaseException as error:
            raised.append(error)
        finally:
            done.set()

    other = threading.Thread(target=run, name="pullback, nested backward", daemon=True)
    other.start()
    interrupted: BaseException | None = None
    while not done.is_set():  # `join` may take a thread for ended that goes on, where it is interrupted
        try:
            begin.set()
            done.wait()
        except BaseException as error:  # Ctrl-C: but the modes of this thread are the other's until that ends
            interrupted = error
    if interrupted is not None:
        raised[:] = [interrupted]
    if raised:
        try:
            raise raised[0]
        finally:
            raised.clear()  # the traceback has this frame, which would have the error
    return result[0]

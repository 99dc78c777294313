"""Backward passes within backward passes, to any depth.

A backward that calls `backward` runs the inner pass at once, on top of the outer one. Python's stack holds about a
hundred such passes. When it is half full, the next pass runs in a new thread with an empty stack while this thread
waits. The new thread has the modes and the context variables of the waiting one, and only one of them runs at any time.
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
    """Do some work in a new thread while this one waits; return its result or raise its error."""
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
    while not done.is_set():  # an interrupted `join` may take a running thread for ended
        try:
            begin.set()
            done.wait()
        except BaseException as error:  # Ctrl-C: the other thread uses the modes of this one until it ends
            interrupted = error
    if interrupted is not None:
        raised[:] = [interrupted]
    if raised:
        try:
            raise raised[0]
        finally:
            raised.clear()  # the traceback refers to this frame, which would refer to the error
    return result[0]

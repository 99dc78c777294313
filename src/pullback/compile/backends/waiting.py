"""A line on the terminal while compiling takes long, so that nobody takes it for a program that hangs.

It counts the operations while a function is traced, and shows a bar while its loops are compiled.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
"""Seconds after which the line appears."""

_BAR = 20  # characters

_work = threading.local()


def progress(done: Callable[[], int], what: str, total: int = 0) -> None:
    """Have the line of this thread, if there is one, say how much is done: so many of `what`, of a total if known.

    >>> _shown(lambda: 5, "loops compiled", 20)
    '[#####---------------] 5 of 20 loops compiled, '
    """
    told = getattr(_work, "told", None)
    if told is not None:
        told[:] = [done, what, total]


def _shown(done: Callable[[], int], what: str, total: int) -> str:
    count = done()
    if not total:
        return f"{count:,} {what}, "
    full = _BAR * count // total
    return f"[{'#' * full}{'-' * (_BAR - full)}] {count:,} of {total:,} {what}, "


@contextmanager
def announced(what: str, stream: Any = None, patience: float = PATIENCE) -> Iterator[None]:
    """Say on the error stream, if that is a terminal, how long the work within takes; the line goes with its end.

    >>> import io
    >>> with announced("f", io.StringIO()):  # no terminal: nothing is said
    ...     pass
    """
    stream = sys.stderr if stream is None else stream
    if not getattr(stream, "isatty", bool)():
        yield
        return
    ended, start = threading.Event(), time.monotonic()
    before, told = getattr(_work, "told", None), list[Any]()
    width = 0

    def tell() -> None:
        nonlocal width
        while not ended.wait(1.0 if width else patience):
            text = f"compile: {what}: {_shown(*told) if told else ''}{time.monotonic() - start:.0f} s so far "
            width = max(width, len(text))
            print(f"\r{text:{width}}", end="", file=stream, flush=True)

    teller = threading.Thread(target=tell, name="pullback-compile", daemon=True)
    teller.start()
    try:
        _work.told = told
        yield
    finally:
        _work.told = before
        ended.set()
        teller.join()
        if width:
            print("\r" + " " * width + "\r", end="", file=stream, flush=True)

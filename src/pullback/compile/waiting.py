"""A line on the terminal while compiling takes long, so that nobody takes it for a program that hangs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
"""Seconds after which the line appears."""


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
    ended, start, said = threading.Event(), time.monotonic(), threading.Event()

    def tell() -> None:
        while not ended.wait(1.0 if said.is_set() else patience):
            print(f"\rcompile: {what} takes {time.monotonic() - start:.0f} s so far ", end="", file=stream, flush=True)
            said.set()

    teller = threading.Thread(target=tell, name="pullback-compile", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
        if said.is_set():
            print("\r" + " " * (len(what) + 40) + "\r", end="", file=stream, flush=True)

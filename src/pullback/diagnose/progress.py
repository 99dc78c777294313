"""A line on the terminal that says how far long work has come."""

from __future__ import annotations

import sys
import threading

PATIENCE = 1.0
"""Seconds after which it is shown."""


class Progress:
    """Shows the progress of long work on a terminal after `PATIENCE` seconds, and clears it at the end.

    about: the subject of all steps. shows: whether to show it at all; by default, if the errors go to a terminal.
    Calling the object begins a step, given its name, its number and the number of steps.
    """

    def __init__(self, about: str = "", shows: bool | None = None) -> None:
        self.about, self.now = about, ("", 0, 1)
        self.shows = sys.stderr.isatty() if shows is None else shows
        self.shown = False
        self.line = ""
        self.lock = threading.Lock()
        self.timer = threading.Timer(PATIENCE, self.show)

    def __enter__(self) -> Progress:
        if self.shows:
            self.timer.daemon = True
            self.timer.start()
        return self

    def __call__(self, title: str, number: int, total: int) -> None:
        """Go on to the next step."""
        self.now = title, number, total
        if self.shown:
            self.show()

    def show(self) -> None:
        """Write the line."""
        with self.lock:
            title, number, total = self.now
            self.shown = True
            bar = "#" * (10 * number // total)
            about = f"{self.about}: " if self.about else ""
            line = f"[{bar:.<10}] {about}{title} ..."
            if line != self.line:
                self.line = line
                print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *exc: object) -> None:
        self.timer.cancel()
        if self.timer.is_alive():
            self.timer.join()
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

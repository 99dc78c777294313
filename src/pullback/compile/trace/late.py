"""What is found only when a traced function has returned, and the line of the user's code that did it.

Whether a function changed something is asked once, at the end: asking after each line would make every trace slow. So
where it did, and an error is due, the function is traced once more, with the question asked after each of its lines.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from ...diagnose.places import Place, formatted, is_ours, place_of
from ...diagnose.watch import is_computing, is_python
from ...interpreters.traced import TraceError


class LateError(TraceError):
    """The error about something that a function did, once it has returned.

    what: what it did. do: the way out. place: the line that did it, once it is known.
    """

    def __init__(self, what: str, do: str, place: Place | None = None) -> None:
        self.what, self.do = what, do
        lines = "" if place is None else formatted([place])
        super().__init__(f"compile: {what}\n{lines}  What to do: {do}")


class Seek:
    """A context in which the lines of the user's code are followed, until `is_so` (of a frame) is true for the first
    time. place: the line that ran just before; if it never was, the last line of the first function that was called."""

    def __init__(self) -> None:
        self.is_so: Callable[[Any], bool] = lambda frame: False
        self.place: Place | None = None
        self._found = self._returned = False
        self._ran: Place | None = None  # the line that runs

    def __enter__(self) -> Seek:
        self._before, self._outside = sys.gettrace(), sys._getframe(1)
        sys.settrace(self._call)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self._before)
        del self._outside, self.is_so  # with all that they hold

    def _call(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if is_ours(frame) or is_computing(frame) or is_python(frame.f_code):
            return None
        self._look(frame)
        self._ran = place_of(frame)
        return self._follow

    def _follow(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        self._look(frame)
        self._ran = place_of(frame)
        if event == "return":  # the line that called it goes on
            above = frame.f_back
            while above is not None and above is not self._outside and is_ours(above):
                above = above.f_back
            if above is self._outside:
                if not (self._found or self._returned):
                    self.place = self._ran
                self._returned = True
            elif above is not None:
                self._ran = place_of(above)
        return self._follow

    def _look(self, frame: types.FrameType) -> None:
        if not self._found and self._ran is not None and self.is_so(frame):
            self.place, self._found = self._ran, True

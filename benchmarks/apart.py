"""A side of a row in a process of its own, and what it answers there.

What a library does to its process concerns no other then: pullback tells the C library to keep freed memory, PyTorch
and JAX start threads, and each makes the garbage collector's work larger. A process is started afresh, not forked, and
reads the settings of `benchmarks.environment` before its library.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.environment import THREADS
from benchmarks.harness import Arrays, Here, SideError
from benchmarks.suite import ROWS, SIDES

Answer = Callable[..., Any]


class Process:
    """A process that answers. In it `maker(*arguments)` makes the function that does, when it is first asked."""

    def __init__(self, maker: Callable[..., Answer], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, maker, arguments))
        self._process.start()
        theirs.close()

    def ask(self, *what: Any) -> Any:
        """The answer. `SideError` with the text of the error there, or where the process has ended."""
        try:
            self._connection.send(what)
            failed, answer = self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join()
            raise SideError(f"its process ended, with code {self._process.exitcode}") from None
        if failed:
            raise SideError(answer)
        return answer

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()


def _serve(connection: Connection, maker: Callable[..., Answer], arguments: tuple[Any, ...]) -> None:
    answer = None
    while True:
        try:
            what = connection.recv()
        except EOFError:
            return
        try:
            answer = answer or maker(*arguments)
            found = False, answer(*what)
        except Exception as error:
            found = True, str(error) if isinstance(error, SideError) else f"{type(error).__name__}: {error}"
        connection.send(found)


class Apart:
    """A side of one of the suite's rows, in a process of its own."""

    def __init__(self, row: str, side: str) -> None:
        self._process = Process(_answers, row, side)

    def arrays(self) -> Arrays:
        return list(self._process.ask("arrays"))

    def count(self, seconds: float) -> None:
        self._process.ask("count", seconds)

    def run(self, collector: bool) -> float:
        return float(self._process.ask("run", collector))

    def close(self) -> None:
        self._process.close()


def _answers(row: str, side: str) -> Answer:
    """What the side does there. What exists when the timing begins is frozen, as in `measure`."""
    package, *submodules = SIDES[side]
    module = importlib.import_module(package)
    for name in submodules:
        importlib.import_module(name)
    if package in ("torch", "pullback"):
        module.set_num_threads(THREADS)
    (found,) = (one for one in ROWS if one.name == row)
    here = Here(lambda: found.sides[side](module))

    def answer(what: str, *arguments: Any) -> Any:
        if what == "count":
            gc.collect()
            gc.freeze()
        return getattr(here, what)(*arguments)

    return answer

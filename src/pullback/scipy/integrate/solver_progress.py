"""`progress=True`: a bar that shows how far a solver is, by rich if it is installed, else as text."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any

_WIDTH = 40


@contextlib.contextmanager
def progress_bar(wanted: bool, t0: Any, t1: Any) -> Iterator[Callable[[Any], None] | None]:
    """What is to be called with a solver after each of its steps; None if no progress is wanted."""
    if not wanted:
        yield None
        return
    if importlib.util.find_spec("rich") is not None and sys.stderr.isatty():
        with _rich_bar() as show:
            yield lambda solver: show(*_state(solver))
        return
    try:
        yield lambda solver: _text(*_state(solver))
    finally:
        sys.stderr.write("\n")


def _state(solver: Any) -> tuple[float, str]:
    start, end = solver.__dict__.setdefault("_shown_from", solver.t_old), solver.t_bound
    done = 1.0 if end == start else (solver.t - start) / (end - start)
    return float(done), f"t = {solver.t:.6g}, step {solver.step_size or 0:.2g}, {solver.nfev} calls"


def _text(done: float, words: str) -> None:
    filled = round(done * _WIDTH)
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {words}")
    sys.stderr.flush()


@contextlib.contextmanager
def _rich_bar() -> Iterator[Callable[[float, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda done, words: bar.update(task, completed=done, description=words)


__all__ = ["progress_bar"]

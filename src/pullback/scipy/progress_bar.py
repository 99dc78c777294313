"""`progress=True`: what a solver has reached, in a line that is written anew.

With rich it is a bar; without, a line of text. Both go to the error stream, so that results can be piped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Show(Protocol):
    """Called after each step. done: the part of the work that is done, 0 to 1, if it is known."""

    def __call__(self, text: str, done: float | None = None) -> None: ...


def _nothing(text: str, done: float | None = None) -> None:
    """Show nothing."""


@contextmanager
def shown(name: str, wanted: bool) -> Iterator[Show]:
    """What to call with the state of a solver of this name.

    >>> with shown("root", False) as show:
    ...     show("residual 1e-3")
    """
    if not wanted:
        yield _nothing
        return
    try:
        import rich.console
        import rich.progress
    except ImportError:
        yield from _as_text(name)
        return
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    with rich.progress.Progress(*columns, console=rich.console.Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)

        def show(text: str, done: float | None = None) -> None:
            values: dict[str, Any] = {} if done is None else {"total": 1.0, "completed": done}
            bar.update(task, description=f"{name}: {text}", **values)

        yield show


def counting(show: Show, callback: Any, by_name: bool) -> Callable[..., Any]:
    """A callback that shows the iterations, and calls the person's own, if there is one.

    by_name: SciPy gives it an `intermediate_result`; otherwise it gives what may be a norm.
    """
    count = 0

    def report(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        result = kwargs.get("intermediate_result", args[0] if args else None)
        value = getattr(result, "cost", getattr(result, "fun", result if isinstance(result, float) else None))
        show(f"iteration {count}" + ("" if value is None else f", value {float(value):.6g}"))
        return None if callback is None else callback(*args, **kwargs)

    if by_name:
        return lambda intermediate_result: report(intermediate_result=intermediate_result)
    return report


def _as_text(name: str) -> Iterator[Show]:
    def show(text: str, done: float | None = None) -> None:
        part = "" if done is None else f" {100 * done:3.0f} %"
        sys.stderr.write(f"\r{name}:{part} {text}\033[K")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\n")

"""What `checkpoint(debug=True)` tells when a part is not the same the second time: the operations of both its runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from ..tensor.nested import leaves
from ..tensor.overrides import TorchFunctionMode
from ..tensor.tensor import Tensor


class Log(TorchFunctionMode):
    """A context that notes the operations called within it, each with the lines it was called from."""

    def __init__(self) -> None:
        self.operations: list[tuple[str, list[str]]] = []

    def __enter__(self) -> Log:
        self.operations = []  # a part may run again several times; the last one counts
        return super().__enter__()

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        given = [*map(_written, args), *(f"{name}={_written(value)}" for name, value in (kwargs or {}).items())]
        self.operations.append((f"{func.__name__}({', '.join(given)})", _callers()))
        return func(*args, **(kwargs or {}))

    def traces(self) -> str:
        """Each operation, with the lines it was called from below it, the innermost first."""
        count = len(self.operations)
        blocks = [
            "\n".join([f"{said}   ({i} of {count})", *(f"    {line}" for line in lines)])
            for i, (said, lines) in enumerate(self.operations, 1)
        ]
        return "\n".join(blocks)

    def names(self) -> str:
        """Each operation on a line."""
        return "\n".join(f"  {said}" for said, _ in self.operations)


def report(first: Log, again: Log, error: Exception) -> str:
    """The message of an error of unpacking, with the logs of the first run and of the latest second run."""
    return (
        " An error happened while unpacking tensors; dumping logs of latest computation because you passed "
        "`debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
        f"\n1. Stack traces of the operators that ran in the original forward\n{first.traces()}\n"
        f"\n2. Stack traces of the operators that ran during recomputation\n{again.traces()}\n"
        "\n3. Log of operators in the original forward and recomputation\n"
        f"Operations executed during the original forward:\n{first.names()}\n"
        f"Operations executed during recomputation:\n{again.names()}\n"
        "\n4. Error message\nERROR: Detected non-determinism while running activation checkpointing\n"
        "You are seeing this error because you passed `debug=True` to checkpoint, and what the part saved was "
        f"not the same both times.\n{error}"
    )


def _written(value: Any) -> str:
    """An argument in a line: a tensor as its dtype and shape."""
    if isinstance(value, Tensor):
        return f"{value._data.dtype}{list(value._data.shape)}"
    if any(isinstance(leaf, Tensor) for leaf in leaves(value)):
        return "[" + ", ".join(map(_written, leaves(value))) + "]"
    text = repr(value)
    return text if len(text) < 80 else type(value).__name__


def _callers() -> list[str]:
    """The lines of the present call outside the library, the innermost first, as ``file:line:function``."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("pullback."):
            found.append(f"{frame.f_code.co_filename}:{frame.f_lineno}:{frame.f_code.co_name}")
        frame = frame.f_back
    return found

"""CUDA graphs through CuPy: work that a stream is asked for is recorded, and launched as a whole later.

A graph keeps addresses. So what is allocated while it is recorded comes from a `Pool`, which lives as long as the graph
and which nothing else allocates from. `pullback.cuda.graph` and ``compile(mode="reduce-overhead")`` record here.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

from ....diagnose.watch import without_collector
from ....errors import message
from ....tensor.gpu import RECORDING, Started, gpu_library

MODES = {"global": "streamCaptureModeGlobal", "thread_local": "streamCaptureModeThreadLocal"}
MODES["relaxed"] = "streamCaptureModeRelaxed"
"""CUDA's modes of recording by torch's words. CuPy's pools ask CUDA for memory when they grow: "relaxed" allows it."""


class Pool:
    """Memory of CuPy's that graphs keep. key: what tells it from other pools, as torch writes it."""

    all: ClassVar[weakref.WeakValueDictionary[tuple[int, int], Pool]] = weakref.WeakValueDictionary()
    made: ClassVar[int] = 0

    def __init__(self) -> None:
        self.memory = gpu_library().cuda.MemoryPool()
        Pool.made += 1
        self.key = (0, Pool.made)
        Pool.all[self.key] = self


class Recording:
    """Work being recorded from a stream of CuPy's, the current one, with memory of a pool."""

    def __init__(self, stream: Any, pool: Pool, mode: str = "relaxed") -> None:
        self.stream, self.pool, self._mode = stream, pool, mode
        self._within = contextlib.ExitStack()

    def begin(self) -> None:
        """Begin to record; RuntimeError within another recording of this thread, and what CUDA raises."""
        if RECORDING.now is not None:
            raise RuntimeError(
                message(
                    "a CUDA graph is being captured already",
                    expected="one capture at a time in a thread",
                    found="a capture within another",
                    do="end the first, or let its graph hold the work of both",
                )
            )
        found = gpu_library().cuda
        self.stream.begin_capture(getattr(found.runtime, MODES[self._mode]))
        RECORDING.now = self
        self._within.enter_context(without_collector())  # what it frees might ask CUDA for something
        self._within.enter_context(found.using_allocator(self.pool.memory.malloc))

    def end(self) -> Any:
        """End it, and give CuPy's graph. What CUDA raises, for work that cannot be recorded; it has ended then, too."""
        RECORDING.now = None
        try:
            return self.stream.end_capture()
        finally:
            self._within.close()


@contextlib.contextmanager
def recorded(stream: Any, pool: Pool) -> Iterator[list[Any]]:
    """Within it, a stream is current and its work is recorded; afterwards, the list has the graph.

    An exception, of any kind, ends the recording and goes on.
    """
    graphs: list[Any] = []
    with stream:
        recording = Recording(stream, pool)
        recording.begin()
        try:
            yield graphs
        except BaseException:
            with contextlib.suppress(Exception):  # it says that the recording failed, which the exception says better
                recording.end()
            raise
        graphs.append(recording.end())


def is_recording() -> bool:
    """Whether the current stream's work is recorded, by this library or another."""
    if RECORDING.now is not None:
        return True
    if Started.used != os.getpid():
        return False
    stream = gpu_library().cuda.get_current_stream()
    return bool(stream.ptr not in (0, 1) and stream.is_capturing())  # CUDA's null stream cannot be recorded


def now() -> Recording | None:
    """What this thread records; None if it does not."""
    found: Recording | None = RECORDING.now
    return found

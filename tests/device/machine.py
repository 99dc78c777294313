"""The machine that is not there: its devices, its memory, its streams, and what can go wrong on it.

`MACHINE` says which device is current, how many there are, and which allocation or kernel fails. The classes of errors
are CuPy's, by their names, bases and words.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import numpy as np


class OutOfMemoryError(MemoryError):
    """cupy.cuda.memory.OutOfMemoryError."""

    def __init__(self, size: int, total: int) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes).")


class CUDARuntimeError(RuntimeError):
    """cupy.cuda.runtime.CUDARuntimeError."""

    def __init__(self, status: int, name: str, words: str) -> None:
        super().__init__(f"{name}: {words}")
        self.status = status


class CUDADriverError(RuntimeError):
    """cupy.cuda.driver.CUDADriverError."""


DESTROYED = 400, "cudaErrorInvalidResourceHandle", "invalid resource handle"
ILLEGAL = 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"
NOT_STARTED = 3, "cudaErrorInitializationError", "initialization error"


class Machine:
    """The state of the devices.

    current: the device that computes. used: the bytes that arrays hold, by device, counted while `limit` is not None;
    `limit` is how many there are. fails_at: the number of allocations until one fails, each counted down. broken: the
    error of the next kernel. peers: whether a device reads another's memory. copies: asynchronous and blocking copies
    between host and device. done: what the device has done, which stands for time. pool: where new memory comes from,
    if that was said.
    """

    count = 2
    total = 8 << 30

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """As it is at its start."""
        self.current, self.limit, self.fails_at, self.broken = 0, None, None, None
        self.used: Counter[int] = Counter()
        self.peers = False
        self.copies: Counter[str] = Counter()
        self.done = 0
        self.streams: dict[int, Any] = {}
        self.hooks: dict[Any, Any] = {}
        self.pool: Any = None

    def allocated(self, array: Any, size: int) -> None:
        """Note the memory of a new array, or refuse it."""
        self.done += 1
        if self.broken is not None:
            raise CUDARuntimeError(*self.broken)
        if (stream := self.streams.get(self.current)) is not None:
            stream.alive()
        if self.fails_at is not None:
            self.fails_at -= 1
            if self.fails_at < 0:
                raise OutOfMemoryError(size, self.used[self.current])
        if self.limit is None:
            return
        if self.used[self.current] + size > self.limit:
            raise OutOfMemoryError(size, self.used[self.current])
        self.used[self.current] += size
        for hook in self.hooks.values():
            hook.malloc_postprocess(device_id=self.current, size=size, mem_size=size, mem_ptr=1, pmem_id=1)
        weakref.finalize(array, self.used.subtract, {self.current: size})  # of this counter, also after a reset


MACHINE = Machine()


class Where:
    """What an array says of its device: cupy.cuda.Device, as far as arrays show it."""

    def __init__(self, index: int) -> None:
        self.id = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Where) and self.id == other.id

    def __hash__(self) -> int:
        return self.id


PINNED: dict[int, weakref.ref[Any]] = {}
"""The buffers that the device copies from by itself, by their addresses."""


def alloc_pinned_memory(size: int) -> Any:
    """cupy.cuda.alloc_pinned_memory: a buffer."""
    memory = np.zeros(size, np.uint8)
    PINNED[memory.ctypes.data] = weakref.ref(memory)
    return memory


def lies_in_pinned(address: int) -> bool:
    """Whether an address lies in memory that `alloc_pinned_memory` gave."""
    alive = [(start, memory) for start, ref in PINNED.items() if (memory := ref()) is not None]
    return any(start <= address < start + memory.nbytes for start, memory in alive)

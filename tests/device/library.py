"""What `pullback` asks CuPy for, answered by the device that is not there: a module that stands for ``cupy``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from . import captures
from .captures import Graph, MemoryPool, now, refuse, using_allocator
from .cuda_shim import RawModule as RawModule
from .fake import DeviceArray
from .machine import (
    DESTROYED,
    MACHINE,
    CUDADriverError,
    CUDARuntimeError,
    OutOfMemoryError,
    alloc_pinned_memory,
    lies_in_pinned,
)

__version__ = "14.2"


def _device_number(index: int) -> int:
    if not 0 <= index < MACHINE.count:
        raise CUDARuntimeError(101, "cudaErrorInvalidDevice", "invalid device ordinal")
    return index


class Device:
    """cupy.cuda.Device."""

    mem_info = (3 << 30, 8 << 30)
    compute_capability = "90"

    def __init__(self, index: int | None = None) -> None:
        self.id = MACHINE.current if index is None else _device_number(index)
        self._before: list[int] = []

    def __enter__(self) -> Device:
        self._before.append(MACHINE.current)
        MACHINE.current = self.id
        return self

    def __exit__(self, *exc: object) -> None:
        MACHINE.current = self._before.pop()

    def use(self) -> None:
        MACHINE.current = self.id

    def synchronize(self) -> None:
        refuse()
        DeviceArray.waits["synchronize"] += 1
        if MACHINE.broken is not None:
            raise CUDARuntimeError(*MACHINE.broken)


class Event:
    """cupy.cuda.Event. The device has done all when it is asked, so an event that was recorded is done."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.timed, self.at = not disable_timing, -1
        self.ptr = id(self)
        self.stream: Any = None
        self.capture: Any = None

    def record(self, stream: Any = None) -> None:
        stream = stream or get_current_stream()
        stream.alive()
        self.at, self.stream, self.capture = MACHINE.done, stream, stream.capture

    def _refuse(self) -> None:
        if self.capture is not None:
            raise self.capture.broken_by(captures.CAPTURED)

    @property
    def done(self) -> bool:
        self._refuse()
        return True

    def synchronize(self) -> None:
        self._refuse()
        DeviceArray.waits["synchronize"] += 1


def get_elapsed_time(start: Event, end: Event) -> float:
    """cupy.cuda.get_elapsed_time."""
    if not (start.timed and end.timed) or min(start.at, end.at) < 0:
        raise CUDARuntimeError(*DESTROYED)
    return float(end.at - start.at)


class Stream:
    """cupy.cuda.Stream. `destroy` is what its owner may do in C."""

    null: Any

    def __init__(self, null: bool = False, non_blocking: bool = False, priority: int = 0) -> None:
        self.device_id, self.ptr, self.priority = (-1, 0, 0) if null else (MACHINE.current, id(self), priority)
        self.non_blocking, self._dead, self._before = non_blocking, False, []
        self.waited: list[Any] = []
        self.capture: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    def destroy(self) -> None:
        self._dead = True

    def alive(self) -> None:
        if self._dead:
            raise CUDARuntimeError(*DESTROYED)

    def use(self) -> Stream:
        if self.device_id not in (-1, MACHINE.current):
            raise RuntimeError(f"This stream was not created on the current device {MACHINE.current}")
        MACHINE.streams[MACHINE.current] = self
        return self

    def __enter__(self) -> Stream:
        self._before.append(get_current_stream())
        return self.use()

    def __exit__(self, *exc: object) -> None:
        self._before.pop().use()

    @property
    def done(self) -> bool:
        self.alive()
        if self.capture is not None:  # CuPy does not look at the status
            self.capture.broken = True
            return False
        return True

    def synchronize(self) -> None:
        self.alive()
        if self.capture is not None:
            raise self.capture.broken_by(captures.UNSUPPORTED)
        DeviceArray.waits["synchronize"] += 1

    def record(self, event: Any = None) -> Any:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        self.alive()
        self.waited.append(event)
        capture = event.capture
        if capture is not None and self.capture is None:
            self.capture = capture
            capture.forked.append(self)
        elif capture is not None and self is capture.stream and event.stream in capture.forked:
            capture.forked.remove(event.stream)
            event.stream.capture = None
        elif capture is None and self.capture is not None and event.at >= 0:
            raise self.capture.broken_by(captures.IMPLICIT)

    def begin_capture(self, mode: int | None = None) -> None:
        self.alive()
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self.capture is not None:
            raise CUDARuntimeError(*captures.ILLEGAL)
        self.capture = captures.Capture(self, 2 if mode is None else mode)

    def end_capture(self) -> Any:
        capture = self.capture
        if capture is None or capture.stream is not self:
            raise CUDARuntimeError(*captures.ILLEGAL)
        unjoined = list(capture.forked)
        for stream in (self, *unjoined):
            stream.capture = None
        if capture.broken or unjoined:
            raise CUDARuntimeError(*(captures.INVALIDATED if capture.broken else captures.UNJOINED))
        return Graph(capture)

    def is_capturing(self) -> bool:
        return self.capture is not None


Stream.null = Stream(null=True)


class ExternalStream(Stream):
    """cupy.cuda.ExternalStream."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__()
        self.ptr, self.device_id = ptr, device_id


def get_current_stream(device_id: int = -1) -> Any:
    """cupy.cuda.get_current_stream."""
    return MACHINE.streams.get(MACHINE.current if device_id < 0 else device_id, Stream.null)


class MemoryHook:
    """cupy.cuda.MemoryHook."""

    def __enter__(self) -> Any:
        MACHINE.hooks[self.name] = self  # type: ignore[attr-defined]
        return self

    def __exit__(self, *exc: object) -> None:
        del MACHINE.hooks[self.name]  # type: ignore[attr-defined]


class Pool:
    """The memory pool of the current device."""

    fractions: ClassVar[dict[int, float]] = {}

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        Pool.fractions[MACHINE.current] = fraction or 1.0

    def used_bytes(self) -> int:
        pooled = [b for b in captures.blocks() if b.device == MACHINE.current]
        return MACHINE.used[MACHINE.current] - sum(map(len, pooled))

    def free_bytes(self) -> int:
        return 512

    def total_bytes(self) -> int:
        return self.used_bytes() + self.free_bytes()

    def free_all_blocks(self) -> None: ...


def get_default_memory_pool() -> Any:
    """cupy.get_default_memory_pool."""
    return Pool()


_PROPERTIES = {
    "name": b"None, in fact",
    "totalGlobalMem": 8 << 30,
    "major": 9,
    "minor": 0,
    "multiProcessorCount": 2,
    "warpSize": 32,
    "maxThreadsPerMultiProcessor": 2048,
    "sharedMemPerBlock": 49152,
    "regsPerMultiprocessor": 65536,
    "l2CacheSize": 1 << 20,
    "integrated": 0,
    "isMultiGpuBoard": 0,
}

cuda = SimpleNamespace(
    is_available=lambda: True,
    Device=Device,
    Event=Event,
    Stream=Stream,
    ExternalStream=ExternalStream,
    Graph=Graph,
    MemoryPool=MemoryPool,
    using_allocator=using_allocator,
    get_cublas_handle=lambda: 1000 + MACHINE.current,
    MemoryHook=MemoryHook,
    get_current_stream=get_current_stream,
    get_elapsed_time=get_elapsed_time,
    alloc_pinned_memory=alloc_pinned_memory,
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    driver=SimpleNamespace(CUDADriverError=CUDADriverError),
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        streamCaptureModeGlobal=0,
        streamCaptureModeThreadLocal=1,
        streamCaptureModeRelaxed=2,
        getDeviceCount=lambda: MACHINE.count,
        getDevice=lambda: MACHINE.current,
        getDeviceProperties=lambda index: _PROPERTIES,
        memGetInfo=lambda: Device.mem_info,
        pointerGetAttributes=lambda address: SimpleNamespace(type=1 if lies_in_pinned(address) else 0),
    ),
)


def asarray(data: Any, *, blocking: bool = False) -> DeviceArray:
    """cupy.asarray: an array of the current device."""
    if isinstance(data, DeviceArray):
        return data if data.device.id == MACHINE.current else DeviceArray(data.inner.copy())
    refuse()
    MACHINE.copies["blocking" if blocking or not lies_in_pinned(data.ctypes.data) else "asynchronous"] += 1
    return DeviceArray(np.array(data))


class _Capsule:
    def __init__(self, source: Any, stream: Any) -> None:
        self._source, self._stream = source, stream

    def __dlpack__(self, **how: Any) -> Any:
        return self._source.__dlpack__(stream=self._stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def empty(shape: Any, dtype: Any = float) -> DeviceArray:
    """Memory with rubbish in it, so that what is never written shows."""
    found = np.empty(shape, dtype)
    if now() is not None:
        return DeviceArray(found)
    return DeviceArray(np.ndarray(found.shape, found.dtype, b"\x55" * found.nbytes).copy())


def from_dlpack(data: Any) -> Any:
    """cupy.from_dlpack: an array on the same memory. It passes its stream on, as the protocol has it."""
    kind, index = data.__dlpack_device__()
    if kind != 2:
        raise BufferError("the array lies on the host")
    return DeviceArray(np.from_dlpack(_Capsule(data, get_current_stream().ptr or 1)), device=index)

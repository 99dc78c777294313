"""Streams and events: queues of work on a GPU, and places in them.

They are CuPy's, under torch's names. Work that is asked for goes to the current stream of the current device.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..tensor import dtypes
from ..tensor.gpu import gpu_library
from .devices import device as on_device
from .devices import number_of


class Stream:
    """A queue of work on a GPU, by default the current one; as a context, its work goes there.

    priority: lower numbers come first, from about -5 to 0. RuntimeError where CuPy or a GPU is missing.

    A tensor that one stream made and another reads must be waited for, by `wait_stream` or an event: see
    https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        index = number_of("Stream", device)
        with on_device(index):
            self._keep(gpu_library().cuda.Stream(non_blocking=True, priority=priority), index)

    def _keep(self, found: Any, index: int) -> None:
        self.cupy_stream, self.device_index, self._before = found, index, list[Any]()

    @property
    def device(self) -> dtypes.device:
        """The GPU that it belongs to."""
        return dtypes.device("cuda", self.device_index)

    @property
    def cuda_stream(self) -> int:
        """CUDA's handle, for a kernel of one's own."""
        return int(self.cupy_stream.ptr)

    @property
    def priority(self) -> int:
        """Its priority."""
        return int(self.cupy_stream.priority)

    def query(self) -> bool:
        """Whether all its work is done."""
        return bool(self.cupy_stream.done)

    def synchronize(self) -> None:
        """Wait until all its work is done."""
        self.cupy_stream.synchronize()

    def record_event(self, event: Any = None) -> Any:
        """Note this place of the queue in an event, by default a new one, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Let work that is asked for from now on wait for an event; the host goes on."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work that is asked for from now on wait for all that another stream has by now; the host goes on."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._before.append(context := StreamContext(self))
        context.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._before.pop().__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device_index, self.cuda_stream) == (other.device_index, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<pullback.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """The stream of a handle that another library made, and which that library destroys.

    stream_ptr: CUDA's handle, as an integer. Its use after it was destroyed is an error, if CUDA sees it.
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        index = number_of("ExternalStream", device)
        with on_device(index):
            self._keep(gpu_library().cuda.ExternalStream(stream_ptr, index), index)


def _of(found: Any, index: int) -> Stream:
    made = Stream.__new__(Stream)
    made._keep(found, index)
    return made


def current_stream(device: Any = None) -> Stream:
    """The stream that work on a GPU, by default the current one, goes to."""
    index = number_of("current_stream", device)
    return _of(gpu_library().cuda.get_current_stream(index), index)


def default_stream(device: Any = None) -> Stream:
    """The stream that is current at the start: CUDA's null stream."""
    return _of(gpu_library().cuda.Stream.null, number_of("default_stream", device))


def set_stream(stream: Stream | None) -> None:
    """Make a stream, and its device, current; None changes nothing. ``with pullback.cuda.stream(s):`` is safer."""
    if stream is not None:
        on_device(_need(stream).device_index).__enter__()
        stream.cupy_stream.use()


def _need(stream: Any) -> Stream:
    if not isinstance(stream, Stream):
        expected, found = "a pullback.cuda.Stream", errors.describe(stream)
        raise TypeError(errors.message("stream()", expected=expected, found=found, do="make one, Stream()"))
    return stream


class StreamContext:
    """What `stream` returns: within it, a stream and its device are current; afterwards, what was before."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = None if stream is None else _need(stream)
        self._before: Stream | None = None

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._place = on_device(self.stream.device_index)
            self._place.__enter__()
            self._before = current_stream()
            self.stream.cupy_stream.use()
        return self.stream

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None and self._before is not None:
            self._before.cupy_stream.use()
            self._place.__exit__(*exc)


def stream(stream: Stream | None) -> StreamContext:
    """Within ``with pullback.cuda.stream(s):``, work goes to `s`, on its device; None changes nothing."""
    return StreamContext(stream)


class Event:
    """A place in a stream's queue, to be waited for, or to measure the time between two.

    enable_timing: whether `elapsed_time` may be asked. blocking: whether `synchronize` lets the processor rest.
    RuntimeError where CuPy or a GPU is missing. It is made on the device of the stream that records it first.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        gpu_library()
        if interprocess and enable_timing:
            raise ValueError("Event(): interprocess events are made with enable_timing=False")
        self.enable_timing, self._how = enable_timing, (blocking, not enable_timing, interprocess)
        self.cupy_event: Any = None

    @property
    def cuda_event(self) -> int:
        """CUDA's handle; 0 before it is recorded."""
        return 0 if self.cupy_event is None else int(self.cupy_event.ptr)

    def record(self, stream: Stream | None = None) -> None:
        """Note the present end of a stream's queue, by default of the current one."""
        stream = current_stream() if stream is None else _need(stream)
        with on_device(stream.device_index):
            if self.cupy_event is None:
                block, untimed, between = self._how
                found = gpu_library().cuda.Event(block=block, disable_timing=untimed, interprocess=between)
            else:
                found = self.cupy_event
            found.record(stream.cupy_stream)
        self.cupy_event = found

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream, by default of the current one, wait for this place; the host goes on."""
        stream = current_stream() if stream is None else _need(stream)
        if self.cupy_event is not None:
            stream.cupy_stream.wait_event(self.cupy_event)

    def query(self) -> bool:
        """Whether all before this place is done; True if it was never recorded."""
        return self.cupy_event is None or bool(self.cupy_event.done)

    def synchronize(self) -> None:
        """Wait until all before this place is done."""
        if self.cupy_event is not None:
            self.cupy_event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this place to another.

        ValueError if one of them was made without ``enable_timing=True`` or never recorded, RuntimeError if one is not
        done yet.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.cupy_event is None or end_event.cupy_event is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            do = "call end_event.synchronize() first"
            raise RuntimeError(errors.message("Both events must be completed before calculating elapsed time.", do=do))
        return float(gpu_library().cuda.get_elapsed_time(self.cupy_event, end_event.cupy_event))


errors.doors(globals(), "Stream ExternalStream Event current_stream default_stream set_stream stream")
errors.doors(Stream, "query synchronize record_event wait_event wait_stream __enter__")
errors.doors(StreamContext, "__enter__")
errors.doors(Event, "record wait query synchronize elapsed_time")

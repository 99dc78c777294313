"""A plan as a CUDA graph: after a first run, its work is recorded once and launched as a whole from then on.

Every call copies what it is given into the graph's memory, launches, and copies what the graph gives into new memory:
so results are the caller's, as without a graph, and two calls may await their backward. Tensors that the function
reaches, parameters say, are read where they lie: their addresses are compared before each launch.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from ...kernels.counterparts import contiguous
from ...tensor.gpu import gpu_library, of_device
from ...tensor.protocol import DUE, is_foreign
from ..backends.gpu import capture, copies, cublas, cuda

_MOVES = 3
"""How often an address may change until what lies there is copied in each call instead."""
_CHECKS = 64
"""The most checks of a program that are left for where the host waits next."""


class Graphs:
    """What the graphs of a compiled function share on one device: they never run at the same time.

    All of their memory is in use only from the copies into a graph to the copies out of it, so one may overwrite what
    another has left.
    """

    def __init__(self, name: str, index: int, warn: Callable[[str], None]) -> None:
        """name: the function's, for what is said by `warn`."""
        self.name, self.warn = name, warn
        self.lock = threading.RLock()
        found = gpu_library().cuda
        with found.Device(index):
            self.pool = capture.Pool()
            self.stream = found.Stream(non_blocking=True)
        self._space: Any = None
        self._last: Any = None

    def product(self, a: Any, b: Any) -> Any:
        """``np.matmul``, in a form that can be recorded."""
        return np.matmul(a, b) if (space := self._workspace()) is None else cublas.product(space, a, b)

    def contracted(self, spelled: Any, *operands: Any, **how: Any) -> Any:
        """``np.einsum``, in a form that can be recorded."""
        if how or (space := self._workspace()) is None:
            return np.einsum(spelled, *operands, **how)
        return cublas.contracted(space, spelled, *operands)

    def _workspace(self) -> Any:
        """The memory that cuBLAS works in; None where it cannot be had: CuPy's products then refuse to be recorded."""
        recording = capture.now()
        if recording is not None and recording.pool is not self.pool:  # the user's, which runs beside what is here
            return cublas.workspace()
        if self._space is None:
            try:
                cublas.loaded()
                with gpu_library().cuda.using_allocator(self.pool.memory.malloc):
                    self._space = cublas.workspace()
            except cublas.CublasError:
                return None
        return self._space

    @contextlib.contextmanager
    def in_order(self) -> Iterator[None]:
        """Within it, this thread alone queues work of the graphs, after what another stream was given of it."""
        with self.lock:
            stream = gpu_library().cuda.get_current_stream()
            if self._last is not None and stream != self._last:
                stream.wait_event(self._last.record())
            self._last = stream
            yield


@contextlib.contextmanager
def _checks_apart() -> Iterator[None]:
    """Within it, `DUE` holds the checks that are left for later there, and no others."""
    before = dict(DUE)
    try:
        DUE.clear()
        yield
    finally:
        DUE.clear()
        DUE.update(before)


class Standing:
    """Whether a check of a graph has failed since it was looked at; to look puts it back."""

    def __init__(self, flag: Any) -> None:
        self._flag = flag

    def __bool__(self) -> bool:
        found = bool(self._flag)
        if found:
            self._flag[...] = False
        return found


class Replayed:
    """The function of a plan that runs as a graph, where it can.

    fixed: the numbers of the arguments that are read where they lie. reason: why there is no graph, if so. launches:
    how often it was launched.
    """

    def __init__(self, run: Any, graphs: Graphs, index: int, fixed: Collection[int]) -> None:
        self._run, self._graphs, self._index, self._fixed = run, graphs, index, sorted(fixed)
        self.reason, self.launches = "", 0
        self._warm, self._moves = False, 0
        self._graph: Any = None
        self._inputs: list[Any] = []
        self._outs: list[Any] = []
        self._places: list[Any] = []
        self._flags: Any = None
        self._checks: dict[str, tuple[Standing, Exception]] = {}

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        return self.into(arrays, {})

    def into(self, arrays: Sequence[Any], targets: dict[int, Any]) -> tuple[Any, ...]:
        """The results. targets: arrays that may be written to, and are then the results of these numbers."""
        with gpu_library().cuda.Device(self._index):
            if capture.is_recording():
                return tuple(self._run(*arrays))
            with self._graphs.in_order():
                if self._warm and not self.reason:
                    self._see_to_graph(arrays)
                if self._graph is None:
                    found = tuple(self._run(*arrays))
                    self._warm = True
                    return found
                try:
                    return self._launched(arrays, targets)
                except Exception as error:
                    raise (of_device("compile", error, ()) or error) from error

    # Recording --------------------------------------------------------------------------------------------------------

    def _addresses(self, arrays: Sequence[Any]) -> list[Any]:
        return [(arrays[i].data.ptr, arrays[i].strides) for i in self._fixed]

    def _see_to_graph(self, arrays: Sequence[Any]) -> None:
        """Have a graph that reads these arguments; where it cannot be made, say why, once."""
        places = self._addresses(arrays)
        if self._graph is not None:
            if places == self._places:
                return
            self._moves += 1
            moved = {i for i, a, b in zip(self._fixed, places, self._places, strict=True) if a != b}
            self._graph, self._inputs, self._outs = None, [], []
            if self._moves >= _MOVES:
                self._fixed = [i for i in self._fixed if i not in moved]
        try:
            self._record(arrays)
        except Exception as error:
            self.reason = f"{type(error).__name__}: {error}".split("\n")[0]
            self._graphs.warn(f"{self._graphs.name} runs without a CUDA graph: {self.reason}")

    def _record(self, arrays: Sequence[Any]) -> None:
        pool = self._graphs.pool
        if self._flags is None:
            self._flags = cuda.memory((_CHECKS,), np.bool_)
        self._flags[...] = False
        copies.ready(min(max(len(arrays) - len(self._fixed), 1), copies.MOST))
        flags = list(self._flags)
        with gpu_library().cuda.using_allocator(pool.memory.malloc):
            inputs = [a if i in self._fixed else cuda.memory(a.shape, a.dtype) for i, a in enumerate(arrays)]
        with _checks_apart(), capture.recorded(self._graphs.stream, pool) as graphs:
            outs = [contiguous(out) for out in self._run(*inputs)]
            due = dict(DUE)
            if len(due) > _CHECKS:
                raise RuntimeError(f"it leaves more than {_CHECKS} checks for later")
            for flag, (wrong, _) in zip(flags, due.values(), strict=False):
                np.logical_or(flag, wrong, out=flag)
        self._checks = {
            f"{text} {id(self)}": (Standing(flag), error)
            for flag, (text, (_, error)) in zip(flags, due.items(), strict=False)
        }
        self._inputs = [None if i in self._fixed else one for i, one in enumerate(inputs)]
        self._outs, self._places, self._graph = outs, self._addresses(arrays), graphs[0]

    # Launching --------------------------------------------------------------------------------------------------------

    def _launched(self, arrays: Sequence[Any], targets: dict[int, Any]) -> tuple[Any, ...]:
        read = []
        for array, mine in zip(arrays, self._inputs, strict=True):
            if mine is None:
                continue
            if not is_foreign(array):
                mine.fill(array.item())  # a number of the host
            elif array.flags.c_contiguous:
                read.append((array, mine))
            else:
                np.copyto(mine, array)
        written, found = [], []
        for number, out in enumerate(self._outs):
            target = targets.get(number)
            if target is None or not target.flags.c_contiguous or target.dtype != out.dtype:
                target = cuda.memory(out.shape, out.dtype)
            written.append((out, target))
            found.append(target)
        copies.copy(read)
        self._graph.launch()
        self.launches += 1
        copies.copy(written)
        DUE.update(self._checks)
        return tuple(found)


def graph_in_words(run: Any, refused: str) -> str | None:
    """What `explain` says of the graph of a plan's function. refused: why none was tried."""
    if not refused and not isinstance(run, Replayed):
        return None
    if reason := refused or run.reason:
        return f"no CUDA graph: {reason}"
    return f"a CUDA graph, launched {run.launches} times" if run.launches else "a CUDA graph, from the second call on"

"""Captures on the machine that is not there: what a stream is asked for is recorded, and not done.

What a function gives within a capture lies in memory that is filled with rubbish, and gets its values when the graph is
launched: then the records run in order, at the addresses that they were made with. A graph keeps nothing alive. Memory
of a pool is reused as soon as nothing holds it, also within a capture; memory outside of one that is gone by the launch
is an error, which a GPU would not tell.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.lib.array_utils import byte_bounds

from pullback.interpreters import each

from .machine import MACHINE, CUDARuntimeError

UNSUPPORTED = 900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"
INVALIDATED = 901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"
UNJOINED = 904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"
IMPLICIT = 906, "cudaErrorStreamCaptureImplicit", "dependency created on uncaptured work in another stream"
CAPTURED = 907, "cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"
ILLEGAL = 401, "cudaErrorIllegalState", "the operation cannot be performed in the present state"
SYNCHRONOUS = "the current stream is capturing, so synchronous API calls are disallowed"

RUBBISH, RUBBISHES = 0x55, {"f": 0xFF, "c": 0xFF, "b": 0}
"""What memory is filled with; NaN by the kind of a dtype, where there is one."""

UNIT = 512


class FreedError(AssertionError):
    """A graph uses memory that was freed: a GPU would read or write what lies there by then."""


class Block(bytearray):
    """A piece of memory of a pool. turn: how often it was handed out. free: whether nothing holds it."""

    pool: Any
    device: int
    counted: bool
    turn = 0
    free = False


POOLS: weakref.WeakSet[Any] = weakref.WeakSet()


def blocks() -> list[Block]:
    """What all pools hold besides the default one, as far as it was counted."""
    return [block for pool in POOLS for block in pool.blocks if block.counted]


class MemoryPool:
    """cupy.cuda.MemoryPool."""

    def __init__(self, allocator: Any = None) -> None:
        self.blocks: list[Block] = []
        POOLS.add(self)

    def malloc(self, size: int) -> Any:
        """Memory. What is asked of it is where it is, as of CuPy's pointers."""
        return self.taken(size)

    def taken(self, size: int) -> Block:
        fitting = [b for b in self.blocks if b.free and len(b) >= size and b.device == MACHINE.current]
        if fitting:
            block = min(fitting, key=len)
        else:
            if (capture := now()) is not None and capture.mode != 2:
                raise capture.broken_by(UNSUPPORTED)
            block = Block(bytes([RUBBISH]) * (-(-max(size, 1) // UNIT) * UNIT))
            block.pool, block.device, block.counted = weakref.ref(self), MACHINE.current, MACHINE.limit is not None
            MACHINE.allocated(block, len(block))
            self.blocks.append(block)
        block.free, block.turn = False, block.turn + 1
        return block

    def placed(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array with these values in memory of this pool."""
        block = self.taken(array.nbytes)
        found = np.ndarray(array.shape, array.dtype, block)
        found[...] = array
        weakref.finalize(found, self._given_back, block)
        return found

    @staticmethod
    def _given_back(block: Block) -> None:
        block.free = True
        block[:] = bytes([RUBBISH]) * len(block)

    def used_bytes(self) -> int:
        return sum(len(b) for b in self.blocks if not b.free and b.device == MACHINE.current)

    def total_bytes(self) -> int:
        return sum(len(b) for b in self.blocks if b.device == MACHINE.current)

    def free_all_blocks(self) -> None:
        self.blocks = [b for b in self.blocks if not b.free]


DEFAULT = MemoryPool()
"""Stands for the default pool within a capture: a graph does not keep what lies in it."""


@contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    """cupy.cuda.using_allocator, of a pool's `malloc`."""
    before, MACHINE.pool = MACHINE.pool, allocator.__self__
    try:
        yield
    finally:
        MACHINE.pool = before


def owner_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array whose memory another is a view of."""
    while array.base is not None:
        base = array.base if isinstance(array.base, np.ndarray) else getattr(array.base, "base", None)  # of as_strided
        if not isinstance(base, np.ndarray):
            break
        array = base
    return array


LIVE: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""The arrays that own memory of the device, by their addresses."""


class Address:
    """A place in the device's memory, which keeps nothing alive."""

    def __init__(self, owner: Any, pointer: int, shape: Any, dtype: Any, strides: Any, low: int, size: int) -> None:
        self._owner, self._block = weakref.ref(owner), owner.base if isinstance(owner.base, Block) else None
        self._turn = 0 if self._block is None else self._block.turn
        self._how = shape, dtype, strides
        self._low, self._size, self._offset = low, size, pointer - low

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Address:
        low, high = byte_bounds(array) if array.size else (array.ctypes.data, array.ctypes.data)
        pointer = array.ctypes.data
        return cls(owner_of(array), pointer, array.shape, array.dtype, array.strides, low, high - low)

    @classmethod
    def at(cls, pointer: int, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> Address:
        """Of a number that a library in C was given. Strides are not negative."""
        dtype = np.dtype(dtype)
        size = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + dtype.itemsize
        for start, owner in list(LIVE.items()):
            if start <= pointer and pointer + size <= start + owner.nbytes:
                return cls(owner, pointer, shape, dtype, strides, pointer, size)
        raise AssertionError(f"no array of the device lies at {pointer:#x} with {size} bytes")

    def array(self) -> np.ndarray[Any, Any]:
        """The array there."""
        shape, dtype, strides = self._how
        if self._block is None:
            gone = self._owner() is None
        else:
            pool = self._block.pool()
            gone = pool is None or (pool is DEFAULT and (self._block.free or self._block.turn != self._turn))
        if gone:
            raise FreedError(f"a graph uses memory of {dtype}{list(shape)} that was freed")
        if not self._size:
            return np.empty(shape, dtype)
        memory = (ctypes.c_char * self._size).from_address(self._low)
        return np.ndarray(shape, dtype, memory, self._offset, strides)


def addresses(tree: Any) -> Any:
    return each(lambda v: Address.of(v) if isinstance(v, np.ndarray) else v, tree)


def arrays(tree: Any) -> Any:
    return each(lambda v: v.array() if isinstance(v, Address) else v, tree)


class Capture:
    """What a stream records, with those that were forked from it."""

    def __init__(self, stream: Any, mode: int) -> None:
        self.stream, self.mode = stream, mode
        self.records: list[Callable[[], None]] = []
        self.broken = False
        self.forked: list[Any] = []

    def broken_by(self, error: tuple[int, str, str]) -> CUDARuntimeError:
        self.broken = True
        return CUDARuntimeError(*error)

    def written(self, call: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Record a call that writes to its arguments."""
        held, named = addresses(args), addresses(kwargs)
        self.records.append(lambda: call(*arrays(held), **arrays(named)))

    def computed(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Record a call; what it gives is a view of what it was given, or new memory without values."""
        with np.errstate(all="ignore"):
            try:
                found = call(*args, **kwargs)
            except IndexError:  # of rubbish that stands for positions
                found = call(*each(_zeros, args), **each(_zeros, kwargs))
        given: list[Any] = []
        each(lambda v: given.append(v) if isinstance(v, np.ndarray) else None, [args, kwargs])
        places: list[Any] = []

        def place(value: Any) -> Any:
            if not isinstance(value, (np.ndarray, np.generic)):
                return value
            value = np.asarray(value)
            if any(value.size and np.may_share_memory(value, a) for a in given):
                places.append(None)
                return value
            made = (MACHINE.pool or DEFAULT).placed(value)
            LIVE[made.ctypes.data] = made
            places.append(Address.of(made))
            made.base[: made.nbytes] = bytes([RUBBISHES.get(made.dtype.kind, RUBBISH)]) * made.nbytes
            return made

        result = each(place, found)
        if any(p is not None for p in places):
            held, named = addresses(args), addresses(kwargs)

            def record() -> None:
                values: list[Any] = []
                with np.errstate(all="ignore"):
                    again = call(*arrays(held), **arrays(named))
                each(lambda v: values.append(v) if isinstance(v, (np.ndarray, np.generic)) else None, again)
                for value, where in zip(values, places, strict=True):
                    if where is not None:
                        where.array()[...] = value

            self.records.append(record)
        return result


def _zeros(value: Any) -> Any:
    return np.zeros_like(value) if isinstance(value, np.ndarray) and value.dtype.kind in "iu" else value


def now() -> Capture | None:
    """What the current stream of the current device records."""
    return getattr(MACHINE.streams.get(MACHINE.current), "capture", None)


def computed(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call on arrays, done or recorded."""
    capture = now()
    return call(*args, **kwargs) if capture is None else capture.computed(call, args, kwargs)


def written(call: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """A call that writes to its arguments, done or recorded."""
    if (capture := now()) is None:
        call(*args, **kwargs)
    else:
        capture.written(call, args, kwargs)


def refuse_sync() -> None:
    """As CuPy's copies to the host begin."""
    if now() is not None:
        raise RuntimeError(SYNCHRONOUS)


def refuse() -> None:
    """Refuse a call that waits, or that a graph cannot hold. As with CUDA, the capture is lost."""
    if (capture := now()) is not None:
        raise capture.broken_by(UNSUPPORTED)


CUBLAS = frozenset("matmul dot tensordot einsum inner vdot matvec vecmat".split())
THRUST = frozenset("sort argsort lexsort partition argpartition msort sort_complex".split())


def refuse_library(name: str, args: Any) -> None:
    """As CuPy refuses to call a library within a capture."""
    if now() is None:
        return
    kinds: list[str] = []
    each(lambda v: kinds.append(v.dtype.kind) if hasattr(v, "__array_function__") and v.size else None, args)
    if name.rpartition(".")[2] in CUBLAS and set(kinds) & {*"fc"}:
        raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
    if name.startswith("linalg.") and name not in ("linalg.norm", "linalg.matrix_transpose", "linalg.diagonal"):
        raise NotImplementedError("calling cuSOLVER API during stream capture is currently unsupported")
    if name in THRUST:
        refuse()


class Graph:
    """cupy.cuda.Graph. launches: how many there were, of all graphs."""

    launches: ClassVar[int] = 0

    def __init__(self, capture: Capture) -> None:
        self._records = capture.records

    def upload(self, stream: Any = None) -> None: ...

    def launch(self, stream: Any = None) -> None:
        if MACHINE.broken is not None:
            raise CUDARuntimeError(*MACHINE.broken)
        if (current := stream or MACHINE.streams.get(MACHINE.current)) is not None:
            current.alive()
        if (capture := now()) is not None:
            capture.records += self._records
            return
        Graph.launches += 1
        MACHINE.done += 1
        for record in self._records:
            record()


class Cublas:
    """cuBLAS, as far as products need it, by its functions in C: sizes and steps count along columns."""

    KINDS: ClassVar[dict[int, tuple[Any, Any]]] = {
        0: (np.float32, np.float32),
        1: (np.float64, np.float64),
        2: (np.float16, np.float32),
        4: (np.complex64, np.complex64),
        5: (np.complex128, np.complex128),
    }

    def __init__(self) -> None:
        self.stream: Any = None
        self.space = 0
        self.calls = 0

    def cublasSetStream_v2(self, handle: int, stream: int) -> int:
        self.stream, self.space = stream, 0
        return 0

    def cublasSetWorkspace_v2(self, handle: int, pointer: int, size: int) -> int:
        Address.at(pointer, (size,), np.uint8, (1,))
        self.space = size
        return 0

    def cublasGemmStridedBatchedEx(
        self,
        handle: int,
        turned_a: int,
        turned_b: int,
        m: int,
        n: int,
        k: int,
        alpha: int,
        *rest: Any,
    ) -> int:
        a, kind_a, lda, step_a, b, kind_b, ldb, step_b, beta, c, kind_c, ldc, step_c, count, compute, algorithm = rest
        current = MACHINE.streams.get(MACHINE.current)
        assert self.stream == (current.ptr if current is not None else 0), "cuBLAS is on another stream"
        assert self.space, "cuBLAS has no workspace"
        assert kind_a == kind_b == kind_c
        assert compute == (70 if kind_a in (1, 5) else 68)
        assert algorithm == -1
        dtype, scalar = self.KINDS[kind_a]
        one, zero = (np.ndarray((), scalar, (ctypes.c_char * 16).from_address(p))[()] for p in (alpha, beta))
        assert (one, zero) == (1, 0)

        def factor(pointer: int, turned: int, rows: int, columns: int, ld: int, step: int) -> Address:
            if turned:
                rows, columns = columns, rows
            if ld < rows or step < 0:
                raise ValueError("CUBLAS_STATUS_INVALID_VALUE")
            size = np.dtype(dtype).itemsize
            return Address.at(pointer, (count, rows, columns), dtype, (step * size, size, ld * size))

        first, second = factor(a, turned_a, m, k, lda, step_a), factor(b, turned_b, k, n, ldb, step_b)
        out = factor(c, 0, m, n, ldc, step_c)
        self.calls += 1

        def work() -> None:
            x, y = first.array(), second.array()
            x, y = x.swapaxes(1, 2) if turned_a else x, y.swapaxes(1, 2) if turned_b else y
            out.array()[...] = np.matmul(x.astype(scalar), y.astype(scalar))

        if (capture := now()) is None:
            work()
        else:
            capture.records.append(work)
        return 0

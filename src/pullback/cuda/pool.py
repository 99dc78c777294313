"""The memory of a GPU: what arrays hold, what CuPy's pools keep for new ones, and the most they ever held.

The pools are CuPy's own and those of CUDA graphs."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..compile.backends.gpu.capture import Pool
from ..tensor.gpu import gpu_is_there, gpu_library
from .devices import device as on_device
from .devices import is_initialized, number_of


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The bytes of a GPU's memory that are free, and all of them."""
    free, total = gpu_library().cuda.Device(number_of("mem_get_info", device)).mem_info
    return int(free), int(total)


def _in_pool(name: str, device: Any) -> tuple[int, int]:
    """The bytes that arrays hold, and all that the pool has."""
    with on_device(number_of(name, device)):
        pools = [gpu_library().get_default_memory_pool(), *[pool.memory for pool in list(Pool.all.values())]]
        return sum(int(pool.used_bytes()) for pool in pools), sum(int(pool.total_bytes()) for pool in pools)


def memory_allocated(device: Any = None) -> int:
    """The bytes of a GPU's memory that arrays hold now; 0 before a GPU was used."""
    return _in_pool("memory_allocated", device)[0] if is_initialized() else 0


def memory_reserved(device: Any = None) -> int:
    """The bytes that CuPy's pool has taken from a GPU: what arrays hold, and what is kept for new ones."""
    return _in_pool("memory_reserved", device)[1] if is_initialized() else 0


_PEAKS: dict[int, tuple[int, int]] = {}
_HOOK: list[Any] = []


def _watch() -> None:
    """Note the peaks of all devices from now on, in this thread."""
    if _HOOK:
        return
    found = gpu_library()

    class Peak(found.cuda.MemoryHook):  # type: ignore[name-defined]
        name = "pullback"

        def malloc_postprocess(self, *, device_id: int, **how: Any) -> None:
            _note(device_id)

    _HOOK.append(Peak().__enter__())


def _note(index: int) -> tuple[int, int]:
    now, before = _in_pool("memory", index), _PEAKS.get(index, (0, 0))
    _PEAKS[index] = peak = max(now[0], before[0]), max(now[1], before[1])
    return peak


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that arrays held since `reset_peak_memory_stats`; 0 before a GPU was used.

    Counting costs each allocation a call, so it begins when this or `reset_peak_memory_stats` is first called, and
    counts allocations of the thread that did so. PyTorch counts from the start.
    """
    return _peak("max_memory_allocated", device)[0]


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that CuPy's pool had since `reset_peak_memory_stats`; as `max_memory_allocated`."""
    return _peak("max_memory_reserved", device)[1]


def _peak(name: str, device: Any) -> tuple[int, int]:
    if not is_initialized():
        return 0, 0
    index = number_of(name, device)
    _watch()
    return _note(index)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin to count the most bytes that arrays hold, from what they hold now."""
    index = number_of("reset_peak_memory_stats", device)
    _watch()
    _PEAKS.pop(index, None)
    _note(index)


def memory_stats(device: Any = None) -> dict[str, int]:
    """The figures of this module under four of torch's names; empty before a GPU was used."""
    if not is_initialized():
        return {}
    (used, total), (most_used, most) = _in_pool("memory_stats", device), _peak("memory_stats", device)
    return {
        "allocated_bytes.all.current": used,
        "allocated_bytes.all.peak": most_used,
        "reserved_bytes.all.current": total,
        "reserved_bytes.all.peak": most,
    }


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let the pool take no more than a part of a GPU's memory; an array beyond it is an OutOfMemoryError.

    fraction: from 0 to 1; ValueError otherwise.
    """
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with on_device(number_of("set_per_process_memory_fraction", device)):
        gpu_library().get_default_memory_pool().set_limit(fraction=fraction)


def empty_cache() -> None:
    """Give memory that no array holds back to the GPU; nothing where there is none."""
    if gpu_is_there():
        gpu_library().get_default_memory_pool().free_all_blocks()


errors.doors(
    globals(),
    "mem_get_info memory_allocated memory_reserved max_memory_allocated max_memory_reserved reset_peak_memory_stats "
    "memory_stats set_per_process_memory_fraction empty_cache",
)

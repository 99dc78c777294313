"""The GPUs that there are: which is current, what each is, and waiting for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..tensor import dtypes
from ..tensor.gpu import Started, gpu_count, gpu_is_there, gpu_library
from ..tensor.protocol import checks_due


def is_available() -> bool:
    """Whether tensors can lie on a GPU: whether CuPy is installed, and finds one.

    >>> import pullback
    >>> device = "cuda" if pullback.cuda.is_available() else "cpu"
    """
    return gpu_is_there()


def is_initialized() -> bool:
    """Whether this process has used a GPU."""
    return Started.used == os.getpid()


def init() -> None:
    """Start CUDA, which the first use of a GPU does as well; RuntimeError where CuPy or a GPU is missing."""
    gpu_library()


def device_count() -> int:
    """The number of GPUs that tensors can lie on; 0 without CuPy."""
    return gpu_count()


def current_device() -> int:
    """The number of the GPU that ``device="cuda"`` stands for; RuntimeError where CuPy or a GPU is missing."""
    return int(gpu_library().cuda.runtime.getDevice())


def number_of(name: str, device: Any) -> int:
    """The number of a GPU that is there: of the current one for None. name: the function's, for errors."""
    where = None if isinstance(device, int) else dtypes.device("cuda" if device is None else device)
    index, count = device if where is None else where.index, int(gpu_library().cuda.runtime.getDeviceCount())
    if (where is not None and where.type != "cuda") or isinstance(device, bool):
        expected, found = 'a GPU: a number, or "cuda" with or without one', repr(device)
        raise ValueError(errors.message(f"{name}()", expected=expected, found=found))
    if index is not None and not 0 <= index < count:
        expected = f"the number of a GPU, at least 0 and less than their count {count}"
        raise RuntimeError(errors.message(f"{name}()", expected=expected, found=str(index)))
    return current_device() if index is None else index


def set_device(device: Any) -> None:
    """Make a GPU the one that ``device="cuda"`` stands for, and that computes; a negative number changes nothing."""
    if isinstance(device, bool) or not isinstance(device, int) or device >= 0:
        gpu_library().cuda.Device(number_of("set_device", device)).use()


class device:  # noqa: N801 - torch's name
    """Within it, a GPU is the current one; None or a negative number changes nothing.

    Tensors of ``cuda:1`` are computed with in ``with pullback.cuda.device(1):``, or after ``set_device(1)``.
    """

    def __init__(self, device: Any) -> None:
        nothing = device is None or (isinstance(device, int) and not isinstance(device, bool) and device < 0)
        self.idx = -1 if nothing else number_of("device", device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx >= 0:
            set_device(self.prev_idx)


def synchronize(device: Any = None) -> None:
    """Wait until a GPU has done all it was asked for; then raise the errors of checks that were left for that."""
    gpu_library().cuda.Device(number_of("synchronize", device)).synchronize()
    checks_due()


def _asked(name: str, device: Any) -> dict[str, Any]:
    found: dict[str, Any] = gpu_library().cuda.runtime.getDeviceProperties(number_of(name, device))
    return found


def _text(value: Any) -> str:
    return str(value.decode() if isinstance(value, bytes) else value)


def get_device_name(device: Any = None) -> str:
    """The name of a GPU, by default the current one. device: a number, or "cuda" with or without one.

    ValueError if `device` is of another kind, and RuntimeError if there is no GPU of that number: so for all functions
    here that take it.
    """
    return _text(_asked("get_device_name", device)["name"])


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU, its major and its minor number."""
    found = _asked("get_device_capability", device)
    return int(found["major"]), int(found["minor"])


@dataclass(frozen=True)
class DeviceProperties:
    """What a GPU is. total_memory, shared_memory_per_block, L2_cache_size: bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_multi_processor: int
    shared_memory_per_block: int
    regs_per_multiprocessor: int
    L2_cache_size: int
    is_integrated: int
    is_multi_gpu_board: int


_CUDAS = (
    "name major minor totalGlobalMem multiProcessorCount warpSize maxThreadsPerMultiProcessor sharedMemPerBlock "
    "regsPerMultiprocessor l2CacheSize integrated isMultiGpuBoard"
).split()


def get_device_properties(device: Any = None) -> DeviceProperties:
    """What a GPU is: its name, capability, memory, and the number of its processors."""
    found = _asked("get_device_properties", device)
    name, *numbers = (found[key] for key in _CUDAS)
    return DeviceProperties(_text(name), *map(int, numbers))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes with bfloat16 itself: from compute capability 8.0 on. False without a GPU."""
    return gpu_is_there() and get_device_capability() >= (8, 0)


errors.doors(
    globals(),
    "current_device set_device synchronize get_device_name get_device_capability get_device_properties "
    "is_bf16_supported init",
)
errors.named_constructor(device)

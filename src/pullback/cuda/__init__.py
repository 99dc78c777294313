"""The functions of torch.cuda that scripts call: whether there is a GPU, how much memory it has, waiting for it.

A tensor lies on a GPU if it holds an array of CuPy (``pip install 'pullback[gpu12]'``), and every operation on it
computes there. A kernel of one's own becomes part of a graph as an `autograd.Function`.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..tensor import dtypes
from ..tensor.protocol import checks_due, gpu_count, gpu_is_there, gpu_library

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "mem_get_info",
    "memory_allocated",
    "synchronize",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def is_available() -> bool:
    """Whether tensors can lie on a GPU: whether CuPy is installed, and finds one.

    >>> import pullback
    >>> device = "cuda" if pullback.cuda.is_available() else "cpu"
    """
    return gpu_is_there()


def device_count() -> int:
    """The number of GPUs that tensors can lie on; 0 without CuPy."""
    return gpu_count()


def current_device() -> int:
    """The number of the GPU that ``device="cuda"`` stands for; RuntimeError where CuPy or a GPU is missing."""
    return int(gpu_library().cuda.runtime.getDevice())


def _number(name: str, device: Any) -> int:
    """The number of a GPU that is there: of the current one for None."""
    where = None if isinstance(device, int) else dtypes.device("cuda" if device is None else device)
    index, count = device if where is None else where.index, gpu_count()
    if (where is not None and where.type != "cuda") or isinstance(device, bool):
        expected, found = 'a GPU: a number, or "cuda" with or without one', repr(device)
        raise ValueError(errors.message(f"{name}()", expected=expected, found=found))
    if index is not None and not 0 <= index < count:
        expected = f"the number of a GPU, at least 0 and less than their count {count}"
        raise RuntimeError(errors.message(f"{name}()", expected=expected, found=str(index)))
    return current_device() if index is None else index


def get_device_name(device: Any = None) -> str:
    """The name of a GPU, by default the current one. device: a number, or "cuda" with or without one.

    ValueError if `device` is of another kind, and RuntimeError if there is no GPU of that number: so for all functions
    here that take it.
    """
    name = gpu_library().cuda.runtime.getDeviceProperties(_number("get_device_name", device))["name"]
    return str(name.decode() if isinstance(name, bytes) else name)


def synchronize(device: Any = None) -> None:
    """Wait until a GPU has done all it was asked for; then raise the errors of checks that were left for that."""
    gpu_library().cuda.Device(_number("synchronize", device)).synchronize()
    checks_due()


def memory_allocated(device: Any = None) -> int:
    """The bytes of a GPU's memory that arrays hold now."""
    found = gpu_library()
    with found.cuda.Device(_number("memory_allocated", device)):
        return int(found.get_default_memory_pool().used_bytes())


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The bytes of a GPU's memory that are free, and all of them."""
    free, total = gpu_library().cuda.Device(_number("mem_get_info", device)).mem_info
    return int(free), int(total)


def empty_cache() -> None:
    """Give memory that no array holds back to the GPU; nothing where there is none."""
    if gpu_is_there():
        gpu_library().get_default_memory_pool().free_all_blocks()


def manual_seed(seed: int) -> None:
    """Do nothing: numbers are drawn on the host, after `pullback.manual_seed`, and sent to a GPU."""


def manual_seed_all(seed: int) -> None:
    """Do nothing, as `manual_seed`."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = f"pullback.cuda.{name}"
    if name == "amp":
        do = "leave autocast and GradScaler out, in which `enabled=torch.cuda.is_available()` would have done nothing"
    else:
        do = f"use one of {', '.join(__all__)}; streams and events are those of CuPy, cupy.cuda"
    raise AttributeError(errors.message("cuda", expected="a function that pullback.cuda has", found=found, do=do))


errors.doors(globals(), " ".join(__all__))

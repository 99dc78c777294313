"""What `pullback` asks CuPy for, answered by the device that is not there: a module that stands for ``cupy``."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np

from .fake import DeviceArray

__version__ = "14.0"


class Device(contextlib.nullcontext[None]):
    mem_info = (3 << 30, 8 << 30)

    def __init__(self, index: int | None) -> None:
        super().__init__()
        if index not in (None, 0):
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def synchronize(self) -> None:
        DeviceArray.waits["synchronize"] += 1


cuda = SimpleNamespace(
    is_available=lambda: True,
    Device=Device,
    runtime=SimpleNamespace(
        getDeviceCount=lambda: 1, getDevice=lambda: 0, getDeviceProperties=lambda index: {"name": b"None, in fact"}
    ),
)


def asarray(data: Any) -> DeviceArray:
    return data if isinstance(data, DeviceArray) else DeviceArray(np.array(data))


def from_dlpack(data: Any) -> Any:
    return data if isinstance(data, DeviceArray) else data.detach()._data


def get_default_memory_pool() -> Any:
    return SimpleNamespace(used_bytes=lambda: 1024, free_all_blocks=lambda: None)

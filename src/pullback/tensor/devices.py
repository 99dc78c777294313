"""Where the data of tensors lies: in the host's memory as an array of NumPy, or on a GPU as one of CuPy.

This file asks CuPy for what NumPy's protocols do not give: whether there is a GPU, copies to it and back, and the
number of the device. CuPy is imported when a GPU is first asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from .protocol import checks_due, is_foreign


def library() -> Any:
    """CuPy; RuntimeError that says what is missing, where it or a GPU is."""
    try:
        import cupy as found
    except ImportError:
        raise RuntimeError(
            errors.message(
                "device cuda",
                expected="CuPy, whose arrays lie on the GPU",
                found="no installation of it",
                do="pip install 'pullback[gpu12]' for CUDA 12, 'pullback[gpu13]' for CUDA 13, or leave device out",
            )
        ) from None
    if not found.cuda.is_available():
        raise RuntimeError(
            errors.message(
                "device cuda: no CUDA GPUs are available",
                expected="a GPU and a driver that CUDA finds",
                found=f"CuPy {found.__version__} alone",
                do="run nvidia-smi, which says what the driver finds; or leave device out",
            )
        )
    return found


def available() -> bool:
    """Whether tensors can lie on a GPU."""
    try:
        library()
    except RuntimeError:
        return False
    return True


def count() -> int:
    """The number of GPUs; 0 without CuPy."""
    return int(library().cuda.runtime.getDeviceCount()) if available() else 0


def number(data: Any) -> int | None:
    """The number of the GPU that a payload lies on; None on the host."""
    return int(data.device.id) if is_foreign(data) and hasattr(data, "device") else None


def sent(data: Any, index: int | None) -> Any:
    """An array on the GPU of this number (None: the current one), without a copy where it lies there."""
    found = library()
    with found.cuda.Device(index):
        return found.asarray(data)


def fetched(data: Any) -> Any:
    """An array on the host. It waits for the device, and raises the errors of checks that were left for that."""
    if not is_foreign(data):
        return data
    checks_due()
    return np.asarray(data.get())

"""What is asked of CuPy: whether there is a GPU, copies to it and back, its errors.

Everything else, NumPy's protocols give. CuPy is imported when a GPU is first asked for.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import errors
from .memory import LevelPayload
from .printing import count_of_bytes as _bytes
from .protocol import checks_due, is_foreign


class AcceleratorError(RuntimeError):
    """CUDA refused a call, or a kernel failed. error_code: CUDA's number for it."""

    __module__ = "pullback"  # where it is public

    def __init__(self, message: str, error_code: int = 0) -> None:
        super().__init__(message)
        self.error_code = error_code


class Started:
    """The processes in which a GPU was first found, and first used: CUDA does not outlive a fork."""

    found: ClassVar[int] = 0
    used: ClassVar[int] = 0


class Held:
    """What says which memory the graph of a tensor holds; the package puts it here."""

    by_graph: ClassVar[Callable[[Any], Any] | None] = None


class _OfThread(threading.local):
    """What records the work of a GPU in this thread, for a CUDA graph."""

    now: Any = None


RECORDING = _OfThread()


# Whether there is one -------------------------------------------------------------------------------------------------


def gpu_library() -> Any:
    """CuPy; RuntimeError that says what is missing, where it or a GPU is."""
    found = _found()
    Started.used = Started.found
    return found


def _found() -> Any:
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
    if Started.found not in (0, os.getpid()):
        raise _forked()
    if not found.cuda.is_available():
        raise RuntimeError(
            errors.message(
                "device cuda: no CUDA GPUs are available",
                expected="a GPU and a driver that CUDA finds",
                found=f"CuPy {found.__version__} alone",
                do="run nvidia-smi, which says what the driver finds; or leave device out",
            )
        )
    if not Started.found and found.cuda.runtime.getDeviceCount() > 1:  # CuPy would compute on the current one
        warnings.filterwarnings("error", "The device where the array resides .* is different from the current device")
    Started.found = os.getpid()
    return found


def _forked() -> RuntimeError:
    return RuntimeError(
        errors.message(
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
            "'spawn' start method",
            do="write multiprocessing.get_context('spawn'), or ask for the GPU in the new process first",
        )
    )


def gpu_is_there() -> bool:
    """Whether tensors can lie on a GPU."""
    try:
        _found()
    except RuntimeError:
        return False
    return True


def gpu_count() -> int:
    """The number of GPUs; 0 without CuPy."""
    return int(_found().cuda.runtime.getDeviceCount()) if gpu_is_there() else 0


def gpu_of(data: Any) -> int | None:
    """The number of the GPU that a payload lies on; None on the host."""
    while isinstance(data, LevelPayload):
        if (inside := data.inside) is None:
            return data.gpu
        data = inside._data
    return int(data.device.id) if is_foreign(data) and hasattr(type(data), "device") else None


def apart(values: Iterable[Any]) -> bool:
    """Whether an array of the host stands beside one of a GPU, which takes positions from there without a word."""
    values = list(values)
    return any(isinstance(v, np.ndarray) and v.ndim for v in values) and any(gpu_of(v) is not None for v in values)


# There and back -------------------------------------------------------------------------------------------------------


def to_gpu(data: Any, index: int | None, blocking: bool = True) -> Any:
    """An array on the GPU of this number (None: the current one), without a copy where it lies there.

    blocking: wait until the copy is done; otherwise one from pinned memory goes on beside the host.
    """
    found = gpu_library()
    if not is_foreign(data):
        not_recording()
    with found.cuda.Device(index):
        return found.asarray(data) if is_foreign(data) else found.asarray(data, blocking=blocking)


def not_recording() -> None:
    """RuntimeError within a capture, where values of the host are to be sent: each replay would send the same."""
    if RECORDING.now is not None:
        raise _not_captured(
            "a copy from the host", RuntimeError("values of the host are sent while a graph is captured")
        )


def to_host(data: Any, blocking: bool = True) -> Any:
    """An array on the host. It waits for the device, and raises the errors of checks that were left for that.

    blocking: if False, the copy goes to pinned memory, and its values are there when the stream has come so far.
    """
    if not is_foreign(data):
        return data
    if blocking:
        checks_due()
        return np.asarray(data.get())
    return data.get(out=pinned(data.shape, data.dtype), blocking=False)


def pinned(shape: Sequence[int], dtype: Any, order: Any = "C") -> np.ndarray[Any, Any]:
    """An array without values in memory of the host that a GPU copies from and to by itself."""
    size = max(int(np.prod(shape)) * dtype.itemsize, 1)
    return np.ndarray(shape, dtype, gpu_library().cuda.alloc_pinned_memory(size), order=order)


def is_pinned(data: Any) -> bool:
    """Whether an array lies in such memory."""
    if type(data) is not np.ndarray or not data.size or Started.used != os.getpid():
        return False
    runtime = gpu_library().cuda.runtime
    return bool(runtime.pointerGetAttributes(data.ctypes.data).type == 1)  # cudaMemoryTypeHost


def refuse_gpu(data: Any) -> Any:
    """A payload, if it does not lie on a GPU: that is refused, in torch's words, where an array is asked for."""
    if (index := gpu_of(data)) is not None:
        raise TypeError(
            errors.message(
                f"can't convert cuda:{index} device type tensor to numpy",
                do="use Tensor.cpu() to copy the tensor to host memory first",
            )
        )
    return data


# Its errors -----------------------------------------------------------------------------------------------------------


def of_device(name: str, error: Exception, given: Iterable[Any]) -> Exception | None:
    """PyTorch's error for one of CuPy's, or of arrays on two devices; None for another. given: tensors or payloads."""
    values = list(given)
    given_ones = [a for v in values for a in (v if isinstance(v, (list, tuple)) else [v])]
    arrays = [a._data if hasattr(type(a), "_data") else a for a in given_ones]
    places = [f"cuda:{i}" for i in dict.fromkeys(map(gpu_of, arrays)) if i is not None]
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(error, cupy.cuda.memory.OutOfMemoryError):
        return _out_of_memory(name, error, cupy, values)
    if cupy is not None and isinstance(error, RuntimeError) and _is_of_capture(error):
        return _not_captured(name, error)
    if cupy is not None and isinstance(error, (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)):
        return _failed(name, error)
    if not isinstance(error, (ValueError, TypeError, Warning)) or not places:
        return None
    if any(isinstance(a, np.ndarray) and a.ndim for a in arrays):
        places.append("cpu")
    where = "" if name.rpartition(".")[2].startswith("_") else f"{name}(): "
    found = ", ".join(errors.describe(a).replace("ndarray of", "Tensor of") for a in values if hasattr(a, "shape"))
    if len(places) > 1:
        return RuntimeError(
            f"{where}Expected all tensors to be on the same device, but found at least two devices, {places[0]} and "
            f"{places[1]}!\n  The arguments were: {found}.\n  What to do: move one of them, x.to(y.device) or x.cpu()."
        )
    if "is different from the current device" in str(error):
        do = f"compute within pullback.cuda.device({places[0][5:]}), or call pullback.cuda.set_device({places[0][5:]})"
        return RuntimeError(f"{where}{error}\n  The arguments were: {found}.\n  What to do: {do}.")
    return None


def _out_of_memory(name: str, error: Exception, cupy: Any, values: list[Any]) -> Exception:
    """The error of memory that is full, with what holds it: the graphs of the tensors that were given."""
    asked = re.search(r"allocating ([\d,]+)", str(error))
    number, (free, total) = cupy.cuda.runtime.getDevice(), cupy.cuda.runtime.memGetInfo()
    lines = [f"{name}(): CUDA out of memory."]
    if asked is not None:
        lines.append(f"Tried to allocate {_bytes(int(asked[1].replace(',', '')))}.")
    lines.append(f"GPU {number} has a total capacity of {_bytes(total)} of which {_bytes(free)} is free;")
    pool = cupy.get_default_memory_pool()
    lines.append(f"arrays hold {_bytes(pool.used_bytes())}, and {_bytes(pool.free_bytes())} are kept for new ones.")
    text = " ".join(lines)
    for value in [a for v in values for a in (v if isinstance(v, (list, tuple)) else [v])]:
        if Held.by_graph is not None and (held := Held.by_graph(value)):
            text += f"\n  The graph of the arguments: {held}"
            break
    do = "use smaller batches, pullback.utils.checkpoint, or no_grad() where no gradient is wanted"
    return errors.final(errors.OutOfMemoryError(f"{text}\n  What to do: {do}."))


def _is_of_capture(error: Exception) -> bool:
    return "captur" in str(error) and not vars(error).get("final")


def _not_captured(name: str, error: Exception) -> Exception:
    """The error of what cannot be part of a CUDA graph."""
    said, code = str(error), int(getattr(error, "status", 0))
    do = "do it before the capture, or after: within one, no value is looked at, waited for, drawn or sent"
    if isinstance(error, NotImplementedError):
        do = "call it in a compiled function: compile(mode='reduce-overhead') captures products of matrices"
    if code:
        said = f"CUDA error: {said.partition(': ')[2]}"
    return errors.final(
        (AcceleratorError if code else RuntimeError)(f"{name}(): {said}.\n  What to do: {do}.", *[code] * bool(code))
    )


def _failed(name: str, error: Any) -> Exception:
    """The error of a call of CUDA, or of a kernel that failed before it."""
    if Started.found not in (0, os.getpid()):
        return errors.final(_forked())
    code = int(getattr(error, "status", 0))
    said = str(error).partition(": ")[2] or str(error)
    hint = (
        "\n  CUDA kernel errors might be asynchronously reported at some other API call, so the place below might be "
        "wrong.\n  What to do: set CUDA_LAUNCH_BLOCKING=1 before the program starts: each is reported where it arises."
    )
    stream = "; a stream or an event that was destroyed cannot be used any more" if "resource handle" in said else ""
    return errors.final(AcceleratorError(f"{name}(): CUDA error: {said}{stream}{hint}", code))

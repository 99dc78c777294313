"""DLPack, by which libraries hand each other the memory of a tensor: in by `from_dlpack`, out by methods."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ... import errors
from ...table.entry import METHODS, alias, method
from ...tensor import dtypes
from ...tensor.gpu import gpu_library
from ...tensor.protocol import is_foreign, is_payload
from ...tensor.tensor import Lifted, Tensor, is_tracked, wrap
from .conversion import placed

_CUDA = 2  # DLPack's number for memory of a GPU


class _Capsule:
    """An object that hands a DLPack capsule on the CPU to NumPy."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **how: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _Writeable:
    """An array that may be written to, on the memory of one that NumPy before 2.2 has made read-only by caution."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


_SAYS_WRITEABLE = np.from_dlpack(np.zeros(1)).flags.writeable  # else NumPy gives all memory as read-only
_SAYS_COPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # whether NumPy's own functions of DLPack take `copy`


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's tensor, by the DLPack protocol.

    A tensor of a GPU comes in with its work so far: the current stream waits for it. device: where the result lies, by
    default where `ext_tensor` does. copy: True for memory of its own; False refuses one with a ValueError.

    RuntimeError for an object without the protocol and for a dtype that NumPy does not read from it. See
    https://dmlc.github.io/dlpack.

    >>> import numpy as np, pullback
    >>> pullback.from_dlpack(np.array([1.0, 2.0], np.float32))
    tensor([1., 2.])
    """
    dtypes.check_device(device)
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(
            errors.message("from_dlpack()", expected="an object with __dlpack__()", found=errors.describe(ext_tensor))
        )
    refuse_without_memory("from_dlpack()", ext_tensor)
    if hasattr(ext_tensor, "__dlpack_device__") and (place := ext_tensor.__dlpack_device__())[0] == _CUDA:
        library = gpu_library()
        with library.cuda.Device(place[1]):
            found = library.from_dlpack(ext_tensor)
            made = wrap(found.copy() if copy else found)
    else:
        found = np.from_dlpack(ext_tensor, copy=copy) if _SAYS_COPY else np.from_dlpack(ext_tensor)
        if not _SAYS_WRITEABLE:
            found = np.array(found) if copy else np.asarray(_Writeable(found))
        made = wrap(dtypes.known(found))
    there = made if device is None else placed(made, device)
    if copy is False and there is not made:
        do = "leave copy=False out, or device"
        found_at, wanted = str(made.device), f"a tensor of {dtypes.device(device)}, for copy=False"
        raise ValueError(errors.message("from_dlpack()", expected=wanted, found=f"one of {found_at}", do=do))
    return there


def refuse_without_memory(where: str, data: Any) -> None:
    """RuntimeError for a tensor of PyTorch whose numbers do not lie in memory as those of an array."""
    layout = str(getattr(data, "layout", ""))
    if getattr(data, "is_meta", False):
        do = "make a tensor that has data, e.g. pullback.zeros(x.shape)"
        text = errors.message(f"{where}: Cannot copy out of meta tensor; no data", do=do)
        raise NotImplementedError(text)
    if layout.startswith("torch.") and layout != "torch.strided":
        raise RuntimeError(errors.message(where, expected="a dense tensor", found=layout, do="give x.to_dense()"))


@method("__dlpack__")
def _dlpack(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A DLPack capsule on this tensor's memory, for another library's ``from_dlpack(t)``."""
    if is_tracked(self):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and not is_foreign(self._data):
        raise AssertionError(errors.message("__dlpack__()", expected="stream=None on the CPU", found=str(stream)))
    if isinstance(self, Lifted):
        self._data._no_array()
    if is_foreign(self._data):
        return self._data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    if is_payload(self._data):
        raise BufferError(
            errors.message("__dlpack__()", expected="a tensor with values in memory", found=errors.holding(self))
        )
    capsule: Any
    if _SAYS_COPY:
        capsule = self._data.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)
    else:
        capsule = (np.array(self._data) if copy else self._data).__dlpack__()
    return capsule


@method("__dlpack_device__")
def _dlpack_device(self: Tensor) -> tuple[int, int]:
    """DLPack's numbers for the CPU and for the device."""
    return self._data.__dlpack_device__() if is_foreign(self._data) else (1, 0)


def _jax_array(self: Tensor) -> Any:
    """JAX's functions ask for this, and are told what to do: not by a TypeError, for which JAX has words of its own.

    Where JAX makes arrays, `__array__` answers.
    """
    # JAX says nowhere in public whether it makes an array or calls a function: the caller's module alone tells
    if sys._getframe(1).f_globals.get("__name__") not in ("jax._src.core", "jax._src.numpy.util"):
        raise AttributeError("'Tensor' object has no attribute '__jax_array__'")
    raise RuntimeError(
        errors.message(
            "a function of jax",
            expected="arrays of jax",
            found="a Tensor of pullback",
            do="make the function of jax a node, which keeps the gradient: pullback.bridge.jax.function(f); or give it "
            "values, jax.numpy.asarray(t.detach().numpy())",
        )
    )


METHODS["__jax_array__"] = property(_jax_array)


alias("from_dlpack", from_dlpack)

"""Where the tensors of a file go: `map_location` of `load`, and the device that each lay on when it was saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import errors
from ._safetensors import ForeignError
from .tensor import dtypes
from .tensor.gpu import gpu_count, gpu_is_there, gpu_of, to_gpu
from .tensor.tensor import Tensor, wrap


class Locations:
    """Sends the arrays of a file to their devices; arrays on the same memory share it there, too.

    map_location: as in `load`. name: the file's, in errors.
    """

    def __init__(self, map_location: Any, name: str) -> None:
        self._map, self._name = map_location, name
        self._sent: dict[Any, tuple[Any, Any]] = {}
        if isinstance(map_location, (str, dtypes.device)):
            dtypes.check_device(map_location)
        elif map_location is not None and not isinstance(map_location, Mapping) and not callable(map_location):
            expected = "a device, a dict of devices, or a function of a tensor and its device"
            raise TypeError(
                errors.message("load(): map_location", expected=expected, found=errors.describe(map_location))
            )

    def placed(self, array: np.ndarray[Any, Any], saved: str) -> Any:
        """An array that lay on the device `saved`, where it goes now."""
        where = self._of(array, saved)
        if not isinstance(where, dtypes.device):
            return where
        if where.type == "cpu":
            return array
        if where.type != "cuda" or not gpu_is_there():
            raise self._refused(where, saved)
        if where.index is not None and where.index >= gpu_count():
            raise ForeignError(
                errors.message(
                    f"load(): {self._name}: Attempting to deserialize object on CUDA device {where.index} but "
                    f"pullback.cuda.device_count() is {gpu_count()}",
                    do="map it to a device that is there: load(f, map_location={'" + str(where) + "': 'cuda:0'})",
                )
            )
        key = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype, where
        if not array.size or key not in self._sent:
            self._sent[key] = to_gpu(array, where.index), array  # kept, so that its address stays its own
        return self._sent[key][0]

    def _of(self, array: np.ndarray[Any, Any], saved: str) -> Any:
        """The device for an array, or the payload that a function of the user's gave."""
        wanted: Any = self._map
        if isinstance(wanted, Mapping):
            wanted = wanted.get(saved, saved)
        elif isinstance(wanted, Callable) and not isinstance(wanted, (str, dtypes.device)):  # type: ignore[arg-type]
            found = wanted(wrap(array), saved)
            if found is not None:
                return self._given(found, array)
            wanted = saved
        where = dtypes.device(saved if wanted is None else wanted)
        dtypes.check_device(where if self._map is not None and where.type != "cuda" else None)
        return where

    def _given(self, found: Any, array: np.ndarray[Any, Any]) -> Any:
        if not isinstance(found, Tensor) or found._data.shape != array.shape:
            expected = "the tensor that it is given, on the device where it shall lie, or None"
            raise TypeError(errors.message("load(): map_location()", expected=expected, found=errors.describe(found)))
        if (index := gpu_of(found._data)) is not None:
            return dtypes.device("cuda", index)
        return found._data

    def _refused(self, where: Any, saved: str) -> ForeignError:
        return ForeignError(
            errors.message(
                f"load(): {self._name}: Attempting to deserialize object on a {where.type.upper()} device but "
                "pullback.cuda.is_available() is False",
                expected="tensors of the CPU, or CuPy and a GPU",
                found=f"one of {saved!r}",
                do="write load(f, map_location='cpu')",
            )
        )

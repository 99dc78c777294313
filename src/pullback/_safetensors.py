"""The safetensors file format: tensors by name, nothing else (https://huggingface.co/docs/safetensors).

    8 bytes: n, little-endian | n bytes: JSON, {name: {"dtype", "shape", "data_offsets"}} | the elements, little-endian

The offsets count from the end of the JSON, and the tensors lie there without gaps or overlaps.
"""

from __future__ import annotations

import json
import math
from itertools import accumulate
from typing import Any

import numpy as np

from . import errors
from .tensor.gpu import to_host
from .tensor.tensor import Tensor, wrap

_NAMES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "C64": np.complex64,
}
_DTYPES = {name: np.dtype(d).newbyteorder("<") for name, d in _NAMES.items()}
_NAME_OF = {np.dtype(d): name for name, d in _NAMES.items()}
_BFLOAT16 = np.dtype("<u2")  # read as the upper half of the bits of a float32
_WHERE = "save(): a .safetensors file"
_LONGEST_HEADER = 100_000_000  # the format's own bound


class ForeignError(RuntimeError):
    """An intact file with content that pullback does not have."""


def is_one(head: bytes) -> bool:
    """Whether a file that begins with these bytes is of this format."""
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= _LONGEST_HEADER


class Writer:
    """Lays out a dict of tensors as a file. A value that cannot be written is refused when the writer is made."""

    def __init__(self, tensors: Any) -> None:
        if not isinstance(tensors, dict):
            raise TypeError(
                errors.message(_WHERE, expected="a dict of tensors by name", found=errors.describe(tensors))
            )
        arrays = {name: _checked(name, t) for name, t in tensors.items()}
        # the largest elements first, so that all are aligned
        self._arrays = dict(sorted(arrays.items(), key=lambda item: -item[1].itemsize))
        ends = accumulate(array.nbytes for array in self._arrays.values())
        places = {name: [end - self._arrays[name].nbytes, end] for name, end in zip(self._arrays, ends, strict=True)}
        # so that readers that check for the library treat the file like PyTorch's
        self._header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        for name, array in arrays.items():
            self._header[name] = {
                "dtype": _NAME_OF[array.dtype],
                "shape": list(array.shape),
                "data_offsets": places[name],
            }

    def write(self, file: Any) -> None:
        """Write the file."""
        text = json.dumps(self._header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        file.write(len(text).to_bytes(8, "little") + text)
        for array in self._arrays.values():
            file.write(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)


def _checked(name: Any, t: Any) -> np.ndarray[Any, Any]:
    """The array of a tensor, which is refused if the format cannot hold it."""
    found = f"{name!r}: {errors.describe(t)}"
    held = to_host(t._data) if isinstance(t, Tensor) else None
    if not isinstance(name, str) or not isinstance(held, np.ndarray):
        raise TypeError(
            errors.message(
                _WHERE,
                expected="a dict of dense tensors by name, and nothing nested",
                found=found,
                do="give the file another ending: any other keeps every structure",
            )
        )
    if held.dtype not in _NAME_OF or name == "__metadata__":
        dtypes = ", ".join(str(d) for d in _NAME_OF)
        raise TypeError(
            errors.message(_WHERE, expected=f"a dtype among {dtypes}, and a name but __metadata__", found=found)
        )
    return held


def read(file: Any, path: str, size: int) -> dict[str, Tensor]:
    """The tensors of a file of so many bytes, in the order of its header. path: its name in errors.

    ValueError, KeyError or TypeError if it is damaged. Nothing is read that is longer than the file.
    """
    length = int.from_bytes(_exactly(file, 8), "little")
    if length > size - 8:
        raise ValueError(f"it ends {length - (size - 8)} bytes early")
    header = json.loads(_exactly(file, length), object_pairs_hook=_without_duplicates)
    header.pop("__metadata__", None)
    found, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, stop = entry["data_offsets"]
        shape = entry["shape"]
        dtype = _BFLOAT16 if entry["dtype"] == "BF16" else _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise ForeignError(
                errors.message(
                    f"load(): tensor {name!r} of {path}",
                    expected=f"a dtype among {', '.join(_DTYPES)} and BF16",
                    found=str(entry["dtype"]),
                )
            )
        if not all(type(n) is int and n >= 0 for n in (start, stop, *shape)):
            raise ValueError(f"the header gives tensor {name!r} shape {shape} at {start} to {stop}")
        if start != end or stop - start != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"tensor {name!r}, {entry['dtype']} of shape {shape}, cannot lie at {start} to {stop}")
        if stop > size - 8 - length:
            raise ValueError(f"it ends {stop - (size - 8 - length)} bytes early")
        found[name] = _array(_exactly(file, stop - start), dtype, shape)
        end = stop
    if file.read(1):
        raise ValueError("there is more in the file than its header says")
    return {name: wrap(found[name]) for name in header}


def _array(data: bytes, dtype: np.dtype[Any], shape: list[int]) -> np.ndarray[Any, Any]:
    """A separate array in native byte order."""
    if dtype is _BFLOAT16:
        found = (np.frombuffer(data, dtype).astype(np.uint32) << 16).view(np.float32)
    elif dtype.kind == "b":
        found = np.frombuffer(data, np.uint8) != 0
    else:
        found = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
    return found.reshape(shape)


def _exactly(file: Any, count: int) -> bytes:
    data: bytes = file.read(count)
    if len(data) != count:
        raise ValueError(f"it ends {count - len(data)} bytes early")
    return data


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the header names a tensor twice")
    return found

"""Saving tensors to files and loading them: `save` and `load`.

A file is a ZIP archive that `numpy.load` can read as well: an `.npy` member for each array, none pickled, and a member
`pullback.json` that describes their structure:

    {"format": "pullback", "version": 1, "tree": ...}

In the tree None, bools, integers, strings and finite floats stand for themselves, and a JSON array for a list. Any
other value is an object with one key that names its kind (`_Writer`), and further keys that describe it. Nothing in a
file is ever executed: reading one is as safe as reading a picture.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import shutil
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from . import _safetensors, _torch_files, errors
from ._locations import Locations
from ._safetensors import ForeignError
from .nn import Parameter
from .ops.sparse.compressed import sparse_compressed_tensor
from .ops.sparse.coo import SparseTensor
from .ops.sparse.namespace import sparse_coo_tensor
from .ops.sparse.pattern import Compressed, sparse_csc, sparse_csr
from .tensor import dtypes
from .tensor.gpu import gpu_of, to_host
from .tensor.memory import Size
from .tensor.protocol import is_foreign
from .tensor.tensor import Tensor, wrap

__all__ = ["load", "save"]


def __dir__() -> list[str]:
    return sorted(__all__)


VERSION = 1
_TREE = "pullback.json"

File = str | os.PathLike[str] | BinaryIO


def save(obj: Any, f: File) -> None:
    """Write tensors, and dicts, lists and tuples of them, to a file.

    Args:
        obj: the object that `load` shall return: tensors, Parameters, NumPy arrays and scalars, numbers, strings,
        bools, None,
            dtypes, sizes; and dicts, OrderedDicts, lists and tuples of these. A module or an optimiser is saved by its
            ``state_dict()``.
        f: a path, or a binary file to write to. With a path that ends in ``.safetensors`` the file is of that format,
            and `obj` must be a dict of dense tensors by name; the file does not keep which of them are Parameters or
            require grad.

    Tensors on the same memory, of the same shape and strides, are stored once and share memory again when loaded;
    tensors that merely overlap are stored separately. Gradients and places in a graph are not stored.

    Raises:
        TypeError: `obj` contains another value. Nothing has been written then.
        ValueError: a container contains itself.
        RuntimeError: the folder does not exist.
        OSError: the file cannot be written, e.g. because the disk is full; the error names it.

    An existing file stays whole until the new one is complete.

    >>> import io, pullback
    >>> file = io.BytesIO()
    >>> pullback.save({"step": 3, "weights": [pullback.ones(2)]}, file)
    >>> _ = file.seek(0)
    >>> pullback.load(file)
    {'step': 3, 'weights': [tensor([1., 1.])]}

    See https://docs.pytorch.org/docs/stable/generated/torch.save.html; PyTorch's own files are pickles, these are not.
    """
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise TypeError(
                errors.message("save()", expected="f to be a path or a binary file", found=type(f).__name__)
            )
        _Writer(obj).write(f)
    else:
        _refuse_zero_byte("save", f)
        kind = _safetensors.Writer if os.fspath(f).endswith(".safetensors") else _Writer
        write = kind(obj).write
        try:
            _write_file(f, write)
        except OSError as error:
            raise _named(error, f) from error


def _refuse_zero_byte(name: str, path: str | os.PathLike[str]) -> None:
    if "\0" in os.fsdecode(path):
        raise ValueError(errors.message(f"{name}()", expected="a path without a zero byte", found=repr(path)))


def load(f: File, map_location: Any = None, *, weights_only: bool = True, mmap: bool | None = None) -> Any:
    """Read a file that `save` wrote, one in the safetensors format, or one that `torch.save` wrote: by its content.

    Nothing in a file is executed. Of torch's own checkpoints, also those of versions before 1.6, what torch's
    ``weights_only=True`` allows and this package has is read, and all else is refused by its name.

    Args:
        f: a path, or a binary file that can be sought in.
        map_location: where the tensors go; None: to the device that each lay on. A device, for all of them; a dict
            of devices, by the device that a tensor lay on (``{"cuda:1": "cuda:0"}``); or a function of a tensor in the
            host's memory and of that device, which returns the tensor where it shall lie, or None.
        weights_only, mmap: accepted because torch has them; other objects are never loaded, and files are read, not
            mapped.

    bfloat16 in a safetensors file is loaded as float32, which holds the same numbers.

    Raises:
        FileNotFoundError: there is no such file.
        OSError, MemoryError: the file cannot be read, or is larger than memory. These name the file as well.
        RuntimeError: the file is damaged, of a newer version, or of another kind; the message says so. Memory is used
            for what a file holds, whatever it says it holds.

    >>> import io, pullback
    >>> file = io.BytesIO()
    >>> pullback.save({"w": pullback.nn.Parameter(pullback.ones(2))}, file)
    >>> _ = file.seek(0)
    >>> pullback.load(file)["w"]
    Parameter containing:
    tensor([1., 1.], requires_grad=True)

    See https://docs.pytorch.org/docs/stable/generated/torch.load.html.
    """
    if isinstance(f, (str, os.PathLike)):
        _refuse_zero_byte("load", f)
        places = Locations(map_location, f"'{os.fspath(f)}'")
        with open(f, "rb") as file:
            return _read(file, f"'{os.fspath(f)}'", places)
    places = Locations(map_location, "the file")
    if not all(hasattr(f, name) for name in ("read", "seek", "tell")):
        raise TypeError(errors.message("load()", expected="f to be a path or a binary file", found=type(f).__name__))
    return _read(f, "the file", places)


# Writing --------------------------------------------------------------------------------------------------------------


class _Writer:
    """Turns an object into a tree of JSON's types, and collects the arrays.

    A value that cannot be written is refused when the writer is made.
    """

    def __init__(self, obj: Any) -> None:
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._names: dict[Any, str] = {}  # members of the archive, by the memory of their arrays
        self._within: set[int] = set()
        self._tree = self.encoded(obj, "obj")

    def write(self, file: Any) -> None:
        """Write the archive."""
        text = json.dumps({"format": "pullback", "version": VERSION, "tree": self._tree}, allow_nan=False)
        with zipfile.ZipFile(file, "w") as archive:
            # ZipInfo's own fixed date, so that equal states make equal files
            archive.writestr(zipfile.ZipInfo(_TREE), text)
            for name, array in self._arrays.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    def encoded(self, value: Any, path: str) -> Any:
        """`value`, found at `path`, as a tree."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            return {"complex": [self.encoded(value.real, path), self.encoded(value.imag, path)]}
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        if kind is np.ndarray:
            return {"array": self._array(value, path)}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), path)}
        if kind is dtypes.dtype:
            return {"dtype": value.name}
        if kind is Size:
            return {"size": list(value)}
        if kind in (dict, OrderedDict, list, tuple):
            return self._container(value, path)
        raise TypeError(
            errors.message(
                f"save(): {path}",
                expected="tensors, arrays, numbers, strings, bools, None, and dicts, lists and tuples of them",
                found=errors.of_another_library(value) or f"an object of type {kind.__qualname__}",
                do=f"save its {path}.state_dict()" if hasattr(value, "state_dict") else "make a dict of what it holds",
            )
        )

    def _container(self, value: Any, path: str) -> Any:
        if id(value) in self._within:
            raise ValueError(f"save(): {path} is a container that contains itself.")
        self._within.add(id(value))
        if isinstance(value, dict):
            pairs = [[self.encoded(k, f"a key of {path}"), self.encoded(v, f"{path}[{k!r}]")] for k, v in value.items()]
            made: Any = {"dict" if type(value) is dict else "ordered_dict": pairs}
            if hasattr(value, "_metadata"):  # a module's state has the versions of its classes
                made["metadata"] = self.encoded(value._metadata, f"{path}._metadata")
        else:
            made = [self.encoded(v, f"{path}[{i}]") for i, v in enumerate(value)]
            made = {"tuple": made} if type(value) is tuple else made
        self._within.remove(id(value))
        return made

    def _tensor(self, t: Tensor, path: str) -> Any:
        made: dict[str, Any]
        if isinstance(t, SparseTensor):
            pattern = t._data.pattern
            places = [pattern.ends, pattern.across] if isinstance(pattern, Compressed) else [pattern.indices]
            parts = [self._array(part, path) for part in (*places, t._data.values)]
            made = {"sparse" if len(parts) == 2 else pattern.layout.name: parts, "size": list(t.shape)}
            if len(parts) == 2:
                made["coalesced"] = pattern.coalesced
        elif isinstance(t._data, np.ndarray) or gpu_of(t._data) is not None:
            made = {"parameter" if isinstance(t, Parameter) else "tensor": self._array(t._data, path)}
            if t.device.type != "cpu":
                made["device"] = str(t.device)
        else:
            raise TypeError(
                errors.message(
                    f"save(): {path}",
                    expected="a tensor with values in memory",
                    found=errors.holding(t),
                    do=getattr(
                        t._data,
                        "to_save",
                        "save the arrays that its payload is made of; in a transform, save the result outside of it",
                    ),
                )
            )
        return {**made, "requires_grad": True} if t.requires_grad else made

    def _array(self, array: Any, path: str) -> str:
        """The name of the member for an array: a new one, unless an array on the same memory has one."""
        if not dtypes.is_known(array.dtype):
            raise TypeError(
                errors.message(
                    f"save(): {path}", expected="an array of numbers in native byte order", found=str(array.dtype)
                )
            )
        where: Any = id(array)  # arrays without elements share no memory
        if array.size:
            start = array.data.ptr if is_foreign(array) else array.__array_interface__["data"][0]
            where = is_foreign(array), start, array.shape, array.strides, array.dtype
        if where not in self._names:
            base = name = ".".join(re.findall(r"[\w-]+", path)[1:]) or "tensor"
            count = 1
            while name in self._arrays:
                count += 1
                name = f"{base}~{count}"
            self._names[where], self._arrays[name] = name, to_host(array)
        return self._names[where]


def _write_file(path: Any, write: Callable[[Any], None]) -> None:
    """Let `write` make the file at `path`, which appears or changes only when it is complete."""
    target = Path(os.path.realpath(path))  # write through a link, do not replace it
    if not target.parent.is_dir():
        raise RuntimeError(f"Parent directory {target.parent} does not exist.")
    if target.exists() and not target.is_file():  # a pipe or a device is written to; a folder is the error of open()
        whole = BytesIO()  # an archive needs a file that knows its position
        write(whole)
        with open(target, "wb") as file:
            file.write(whole.getbuffer())
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _named(error: OSError, f: Any) -> OSError:
    """An error of a file, with the name of the file."""
    return error if error.filename is not None else OSError(error.errno, error.strerror or str(error), os.fspath(f))


# Reading --------------------------------------------------------------------------------------------------------------


def _read(file: Any, name: str, places: Locations) -> Any:
    with _damage_reported(name):
        start = file.tell()
        head = file.read(32)
        length = file.seek(0, os.SEEK_END) - start
        file.seek(start)
    if not isinstance(head, bytes):
        raise TypeError(errors.message("load()", expected="a file opened in binary mode", found="one in text mode"))
    if head[:4] == b"PK\x03\x04":
        with _damage_reported(name):
            return _read_zip(file, name, length, places)
    if _safetensors.is_one(head):
        with _damage_reported(name):
            found = _safetensors.read(file, name, length)
        return {key: wrap(places.placed(t._data, "cpu")) for key, t in found.items()}
    if _torch_files.is_older(head):
        with _damage_reported(name):
            return _torch_files.read_older(file, name, length, places)
    raise RuntimeError(_not_ours(name, _kind_of(head)))


@contextmanager
def _damage_reported(name: str) -> Iterator[None]:
    """Turn any error inside into one that names the file, and says that it is damaged or why it cannot be read."""
    try:
        yield
    except ForeignError:
        raise
    except MemoryError as error:
        raise MemoryError(f"load(): {name} does not fit into memory: {error}") from error
    except Exception as error:
        failed = error.__context__ if isinstance(error, zipfile.BadZipFile) else error
        if isinstance(failed, OSError) and failed.errno not in (None, errno.EINVAL):  # EINVAL: a place before the start
            raise OSError(failed.errno, f"load(): {name} cannot be read: {failed.strerror}") from error
        detail = f"no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise RuntimeError(
            f"load(): {name} is damaged, or was not written to the end: {detail}.\n"
            "  What to do: write it again, or use another copy."
        ) from error


def _not_ours(name: str, kind: tuple[str, str]) -> str:
    found, do = kind
    return errors.message(
        f"load(): {name}",
        expected="a file that pullback.save or torch.save wrote, or one in the safetensors format",
        found=found,
        do=do,
    )


_FROM_TORCH = "load it in torch, and save it again: torch.save(torch.load(path), new_path)"


def _kind_of(head: bytes) -> tuple[str, str]:
    """The kind of a file that begins with these bytes, and the advice about it."""
    if not head:
        return "an empty file", ""
    if head[:1] == b"\x80" and head[1:2] <= b"\x05":
        return "a pickle, as pickle.dump writes them", _FROM_TORCH
    if head[:6] == b"\x93NUMPY":
        return "an array of NumPy", "write pullback.from_numpy(numpy.load(path))"
    return f"a file that begins with {head[:8]!r}", ""


def _read_zip(file: Any, name: str, length: int, places: Locations) -> Any:
    with zipfile.ZipFile(file) as archive:
        members = archive.namelist()
        if _TREE not in members:
            if (pickled := _torch_files.pickle_of(members)) is not None:
                _refuse_bombs(archive, length)
                return _torch_files.read(archive, pickled, name, places)
            if members and all(member.endswith(".npy") for member in members):
                do = "write {key: pullback.from_numpy(array) for key, array in numpy.load(path).items()}"
                raise ForeignError(_not_ours(name, ("arrays that numpy.savez wrote", do)))
            raise ForeignError(_not_ours(name, ("a ZIP archive of something else", "")))
        _refuse_bombs(archive, length)
        description = json.loads(archive.read(_TREE), parse_constant=_refuse_constant)
        if description["format"] != "pullback" or type(description["version"]) is not int:
            raise ValueError(f"its format is {description['format']!r}, version {description['version']!r}")
        if description["version"] > VERSION:
            raise ForeignError(
                errors.message(
                    f"load(): {name}",
                    expected=f"version {VERSION} of the format or an older one",
                    found=f"version {description['version']}",
                    do="read it with a newer pullback",
                )
            )
        return _Reader(archive, places).decoded(description["tree"])


def _refuse_bombs(archive: zipfile.ZipFile, length: int) -> None:
    """Raise if an archive says it holds more than a file of that length can: nothing has been read then."""
    members = archive.infolist()
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise ValueError(f"{member.filename!r} is compressed, which save() never does")
    if sum(member.file_size for member in members) > length:
        raise ValueError(f"its members are longer than its {length} bytes")


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _of_type(value: Any, kind: type, what: str) -> Any:
    """The value, which must be of that type itself."""
    if type(value) is not kind:
        raise ValueError(f"{what} is {value!r}, and not of type {kind.__name__}")
    return value


def _lengths(value: Any) -> tuple[int, ...]:
    """A shape."""
    found = tuple(_of_type(n, int, "a length") for n in _of_type(value, list, "a size"))
    if any(n < 0 for n in found):
        raise ValueError(f"a size is {list(found)}")
    return found


class _Reader:
    """Turns a tree back into the object; any error means that the file is damaged."""

    def __init__(self, archive: zipfile.ZipFile, places: Locations) -> None:
        self._archive, self._places = archive, places
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}

    def decoded(self, tree: Any) -> Any:
        """The object that a tree describes."""
        if isinstance(tree, list):
            return [self.decoded(value) for value in tree]
        if not isinstance(tree, dict):
            return tree
        kind = next(iter(tree), "")
        return self._KINDS[kind](self, tree[kind], tree)

    def _complex(self, value: Any, tree: Any) -> complex:
        real, imag = (self.decoded(part) for part in value)
        return complex(real, imag)

    def _tuple(self, value: Any, tree: Any) -> tuple[Any, ...]:
        return tuple(self.decoded(value))

    def _dict(self, value: Any, tree: Any) -> dict[Any, Any]:
        return {self.decoded(key): self.decoded(element) for key, element in value}

    def _ordered_dict(self, value: Any, tree: Any) -> Any:
        made: Any = OrderedDict(self._dict(value, tree))
        if "metadata" in tree:
            made._metadata = self.decoded(tree["metadata"])
            if not isinstance(made._metadata, dict) or not all(isinstance(v, dict) for v in made._metadata.values()):
                raise ValueError(f"the versions of modules are {made._metadata!r}")
        return made

    def _array(self, name: str, tree: Any = None) -> np.ndarray[Any, Any]:
        if name not in self._arrays:
            with self._archive.open(f"{name}.npy") as member:
                _refuse_other_length(member, self._archive.getinfo(f"{name}.npy").file_size)
                array = np.lib.format.read_array(member, allow_pickle=False)
            if array.dtype == "V2":  # NumPy's format stores bfloat16, a dtype of another package, under this name
                array = array.view(dtypes.bfloat16.numpy)
            if not dtypes.is_known(array.dtype):
                raise ValueError(f"{name!r} has the dtype {array.dtype}")
            self._arrays[name] = array
        return self._arrays[name]

    def _tensor(self, name: str, tree: Any) -> Tensor:
        return self._placed(name, tree).requires_grad_(_requires_grad(tree))

    def _parameter(self, name: str, tree: Any) -> Parameter:
        return Parameter(self._placed(name, tree), _requires_grad(tree))

    def _placed(self, name: str, tree: Any) -> Tensor:
        return wrap(self._places.placed(self._array(name), _of_type(tree.get("device", "cpu"), str, "a device")))

    def _sparse(self, names: Any, tree: Any) -> Tensor:
        indices, values = (self._array(name) for name in names)
        return sparse_coo_tensor(
            wrap(indices),
            wrap(values),
            _lengths(tree["size"]),
            is_coalesced=_of_type(tree["coalesced"], bool, "coalesced"),
            requires_grad=_requires_grad(tree),
        )

    def _csr(self, names: Any, tree: Any) -> Tensor:
        return self._compressed(sparse_csr, names, tree)

    def _csc(self, names: Any, tree: Any) -> Tensor:
        return self._compressed(sparse_csc, names, tree)

    def _compressed(self, layout: Any, names: Any, tree: Any) -> Tensor:
        parts = [wrap(self._array(name)) for name in names]
        size = _lengths(tree["size"])
        return sparse_compressed_tensor(*parts, size, layout=layout, requires_grad=_requires_grad(tree))

    _KINDS: ClassVar[dict[str, Callable[[Any, Any, Any], Any]]] = {
        "float": lambda self, value, tree: float(_of_type(value, str, "a float")),
        "complex": _complex,
        "tuple": _tuple,
        "dict": _dict,
        "ordered_dict": _ordered_dict,
        "size": lambda self, value, tree: Size(_lengths(value)),
        "dtype": lambda self, value, tree: dtypes.NAMES[value],
        "array": _array,
        "scalar": lambda self, value, tree: self._array(value)[()],
        "tensor": _tensor,
        "parameter": _parameter,
        "sparse": _sparse,
        "sparse_csr": _csr,
        "sparse_csc": _csc,
    }


def _requires_grad(tree: Any) -> bool:
    found: bool = _of_type(tree.get("requires_grad", False), bool, "requires_grad")
    return found


def _refuse_other_length(member: Any, length: int) -> None:
    """Raise if an array, by its header, is not as long as its member: before memory is taken for it."""
    version = np.lib.format.read_magic(member)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, _, dtype = read(member)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != length - member.tell():
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has {length - member.tell()} bytes")
    member.seek(0)


errors.doors(globals(), "load save")

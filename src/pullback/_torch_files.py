"""Checkpoints of `torch.save`: ZIP archives of a pickle, `data.pkl`, and a member with the bytes of each storage.

Versions before 1.6 wrote five pickles one after the other (a number, the version of the format, facts about the
machine, the object, and the names of its storages), and then the storages.

The pickle is read as data, by a machine of its own: nothing that it names is imported or called. It knows what torch's
``weights_only=True`` allows (dicts, lists, tuples, sets and plain values, tensors, Parameters, sizes, dtypes, devices),
and refuses all else by name. The sizes of a tensor are compared with its storage before anything is made.
"""

from __future__ import annotations

import pickletools
import struct
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import errors
from ._locations import Locations
from ._safetensors import ForeignError
from .nn import Parameter
from .ops.sparse.compressed import sparse_compressed_tensor
from .ops.sparse.namespace import sparse_coo_tensor
from .ops.sparse.pattern import sparse_csc, sparse_csr
from .tensor import dtypes
from .tensor.memory import Size
from .tensor.tensor import Tensor, wrap

_STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}
_LAYOUTS = {"torch.sparse_csr": sparse_csr, "torch.sparse_csc": sparse_csc}
_SIMPLE = (str, bytes, int, float, bool, complex, type(None), dtypes.dtype)
_MARK = object()

Array = np.ndarray[Any, Any]


class _Named:
    """What the pickle names: it is looked up in a table here, and nowhere else."""

    def __init__(self, path: str) -> None:
        self.path = path


def pickle_of(members: list[str]) -> str | None:
    """The member of an archive that holds a pickle of torch's, if it has one."""
    return next((m for m in members if m.rpartition("/")[2] == "data.pkl"), None)


def read(archive: zipfile.ZipFile, member: str, name: str, places: Locations) -> Any:
    """The object in an archive whose members were found to be no longer than the file.

    name: the file's, in errors. places: where its tensors go. ForeignError for what is
    refused; any other error means that the file is damaged.
    """
    folder, members = member.removesuffix("data.pkl"), set(archive.namelist())
    swapped = f"{folder}byteorder" in members and archive.read(f"{folder}byteorder") == b"big"
    return _Machine(lambda key: archive.read(f"{folder}data/{key}"), name, places, swapped).run(archive.read(member))


_OLDER = 0x1950A86A20F9469CFC6C  # the first pickle of a file of the older form
_OLDER_VERSION = 1001


def is_older(head: bytes) -> bool:
    """Whether a file that begins with these bytes is of the older form."""
    return head[:1] == b"\x80" and _OLDER.to_bytes(10, "little") in head


def read_older(file: Any, name: str, length: int, places: Locations) -> Any:
    """The object in a file of the older form, `length` bytes from where it stands; the rest as for `read`.

    The object is read twice. The first time says which storages there are: their bytes come after it.
    """
    part = _Part(file, length)
    _, version, _ = [_Machine(_no_storage, name, places).run(part) for _ in range(3)]
    if version != _OLDER_VERSION:
        raise ValueError(f"its format is of version {version!r}")
    start, survey = file.tell(), _Survey(_no_storage, name, places)
    survey.run(part)
    storages = {}
    for key in _of_type(_Machine(_no_storage, name, places).run(part), list):
        size, (count,) = survey.sizes[_of_type(key, str)], struct.unpack("<q", part.read(8))
        if not 0 <= count * size <= part.left():
            raise ValueError(f"storage {key!r} of {count} elements, where {part.left()} bytes are left")
        storages[key] = part.read(count * size)
    end = file.tell()
    file.seek(start)
    found = _Machine(storages.__getitem__, name, places).run(part)
    file.seek(end)
    return found


def _no_storage(key: str) -> bytes:
    raise KeyError(f"storage {key!r}")


class _Part:
    """The part of a file from where it stands: no read takes memory for more than there is."""

    def __init__(self, file: Any, length: int) -> None:
        self._file, self._end = file, file.tell() + length
        self.tell = file.tell

    def left(self) -> int:
        return int(self._end - self._file.tell())

    def read(self, count: int) -> bytes:
        return bytes(self._file.read(min(count, self.left())))

    def readline(self) -> bytes:
        return bytes(self._file.readline(self.left()))


class _Storage(NamedTuple):
    """The elements of a storage, and the device that it lay on."""

    elements: Array
    place: str


class _Machine:
    """Runs the operations of a pickle on a stack.

    stored: the bytes of a storage, by its key. swapped: whether these are those of a machine of the other byte order.
    """

    def __init__(self, stored: Callable[[str], bytes], name: str, places: Locations, swapped: bool = False) -> None:
        self._stored, self._name, self._places, self._swapped = stored, name, places, swapped
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._storages: dict[tuple[str, np.dtype[Any]], Array] = {}

    def refuse(self, found: str) -> ForeignError:
        """The error of a thing that is not loaded."""
        return ForeignError(
            errors.message(
                f"load(): {self._name}",
                expected="a checkpoint of tensors, dicts, lists and plain values: nothing has to be executed",
                found=found,
                do="keep module.state_dict() in it, or write it with safetensors.torch.save_file(tensors, path)",
            )
        )

    # Operations of pickles --------------------------------------------------------------------------------------------

    def run(self, data: Any) -> Any:
        """The object that a pickle describes: bytes, or the next one in a file."""
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                (found,) = self._stack
                if isinstance(found, (_Named, _Storage)):
                    raise self.refuse("a bare storage or class")
                return found
            if opcode.name in _VALUES:
                self._stack.append(argument)
            elif opcode.name in _MADE:
                self._stack.append(_MADE[opcode.name]())
            elif opcode.name in self._DO:
                self._DO[opcode.name](self, argument)
            else:
                raise self.refuse(f"the operation {opcode.name} in its pickle")
        raise ValueError("its pickle does not stop")

    def _since_mark(self) -> list[Any]:
        at = max(i for i, value in enumerate(self._stack) if value is _MARK)
        found = self._stack[at + 1 :]
        del self._stack[at:]
        return found

    def _put(self, number: int | None) -> None:
        self._memo[len(self._memo) if number is None else number] = self._stack[-1]

    def _global(self, argument: str) -> None:
        self._stack.append(self._named(*argument.split(" ", 1)))

    def _stack_global(self, _: Any) -> None:
        module, name = self._stack[-2:]
        self._stack[-2:] = [self._named(module, name)]

    def _named(self, module: Any, name: Any) -> Any:
        """A dtype, or a name of the table below."""
        path = f"{module}.{name}".replace("__builtin__.", "builtins.")
        if module == "torch" and name in dtypes.NAMES:
            return dtypes.NAMES[name]
        storage = module == "torch" and name in _STORAGES
        if not storage and path not in self._CALLED and path not in _KINDS:
            raise self.refuse(f"{path!r}, which is not called")
        return _Named(path)

    def _tuple(self, count: int) -> None:
        parts = tuple(self._stack[-count:])
        self._stack[-count:] = [parts]

    def _reduce(self, _: Any) -> None:
        function, args = self._stack.pop(-2), self._stack.pop()
        path = _of_type(function, _Named).path
        if path not in self._CALLED:
            raise self.refuse(f"a call of {path!r}")
        self._stack.append(self._CALLED[path](self, *_of_type(args, tuple)))

    def _build(self, _: Any) -> None:
        state = self._stack.pop()
        made = self._stack[-1]
        if not isinstance(made, OrderedDict) or set(_of_type(state, dict)) - {"_metadata"}:
            raise self.refuse(f"attributes of an object of type {type(made).__name__}")
        for key, value in state.items():  # the versions of a module's classes
            if not isinstance(value, dict) or not all(isinstance(v, dict) for v in value.values()):
                raise self.refuse("attributes of a dict")
            vars(made)[key] = value

    def _append(self, _: Any) -> None:
        value = self._stack.pop()
        _of_type(self._stack[-1], list).append(value)

    def _appends(self, _: Any) -> None:
        values = self._since_mark()
        _of_type(self._stack[-1], list).extend(values)

    def _set_item(self, _: Any) -> None:
        self._set([self._stack.pop(-2), self._stack.pop()])

    def _set(self, pairs: list[Any]) -> None:
        made = self._stack[-1]
        if not isinstance(made, dict):
            raise ValueError(f"items of a {type(made).__name__}")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            made[self._key(key)] = value

    def _key(self, key: Any) -> Any:
        """A key: plain, so that its hash costs no more than the file is long."""
        if not isinstance(key, _SIMPLE) and not (isinstance(key, tuple) and all(isinstance(k, _SIMPLE) for k in key)):
            raise self.refuse(f"a key of type {type(key).__name__}")
        return key

    def _add(self, _: Any) -> None:
        values = self._since_mark()
        _of_type(self._stack[-1], set).update(map(self._key, values))

    _DO: ClassVar[dict[str, Callable[[Any, Any], Any]]] = {
        "PROTO": lambda self, version: None,
        "FRAME": lambda self, length: None,
        "MARK": lambda self, _: self._stack.append(_MARK),
        "POP": lambda self, _: self._stack.pop(),
        "BINPUT": _put,
        "LONG_BINPUT": _put,
        "MEMOIZE": _put,
        "BINGET": lambda self, number: self._stack.append(self._memo[number]),
        "LONG_BINGET": lambda self, number: self._stack.append(self._memo[number]),
        "TUPLE": lambda self, _: self._stack.append(tuple(self._since_mark())),
        "TUPLE1": lambda self, _: self._tuple(1),
        "TUPLE2": lambda self, _: self._tuple(2),
        "TUPLE3": lambda self, _: self._tuple(3),
        "GLOBAL": _global,
        "STACK_GLOBAL": _stack_global,
        "REDUCE": _reduce,
        "BUILD": _build,
        "APPEND": _append,
        "APPENDS": _appends,
        "SETITEM": _set_item,
        "SETITEMS": lambda self, _: self._set(self._since_mark()),
        "ADDITEMS": _add,
        "BINPERSID": lambda self, _: self._stack.append(self._storage(self._stack.pop())),
    }

    # What torch writes ------------------------------------------------------------------------------------------------

    def _storage(self, given: Any) -> Any:
        """The elements of a storage, once for all tensors on it."""
        kind, storage, key, place, count, *view = _of_type(given, tuple)
        path = _of_type(storage, _Named).path
        if kind != "storage":
            raise self.refuse(f"a persistent object {kind!r}")
        if any(part is not None for part in view):
            raise self.refuse("a storage that is a part of another one, as torch 0.1 wrote it")
        name = "uint8" if path == "torch.storage.UntypedStorage" else _STORAGES[path.removeprefix("torch.")]
        elements = self._elements(_of_type(key, str), dtypes.NAMES[name].numpy, count)
        return elements if elements is None else _Storage(elements, _of_type(place, str))

    def _elements(self, key: str, dtype: np.dtype[Any], count: Any) -> Any:
        if (key, dtype) not in self._storages:
            data = self._stored(key)
            if _of_type(count, int) * dtype.itemsize != len(data):
                raise ValueError(f"storage {key!r} of {count} {dtype} has {len(data)} bytes")
            made = np.frombuffer(bytearray(data), dtype)
            self._storages[key, dtype] = made.byteswap() if self._swapped else made
        return self._storages[key, dtype]

    def _tensor(
        self, storage: Any, start: Any, size: Any, strides: Any, requires_grad: Any, hooks: Any, bits: Any = None
    ) -> Tensor:
        """A tensor on a storage; all of its elements lie within."""
        for n in (start, *_of_type(size, tuple), *_of_type(strides, tuple)):
            if _of_type(n, int) < 0:
                raise ValueError(f"a tensor of size {size} and strides {strides} at {start}")
        if not isinstance(storage, _Storage):
            raise ValueError("a tensor without a storage")
        storage, place = storage
        last = start + sum((n - 1) * s for n, s in zip(size, strides, strict=True))
        if all(size) and last >= storage.size:
            raise ValueError(f"a tensor of size {size} and strides {strides} at {start}, of {storage.size} elements")
        if hooks:
            raise self.refuse("a tensor with hooks")
        width = storage.itemsize
        part = storage[start:] if all(size) else storage[:0]
        array = np.lib.stride_tricks.as_strided(part, size, [s * width for s in strides])
        for bit, on in (bits or {}).items():
            if bit not in ("conj", "neg"):
                raise self.refuse(f"a tensor with {bit!r}")
            if on:
                array = np.conj(array) if bit == "conj" else np.negative(array)
        return wrap(self._places.placed(array, place)).requires_grad_(_of_type(requires_grad, bool))

    def _typed(
        self, storage: Any, start: Any, size: Any, strides: Any, grad: Any, hooks: Any, d: Any, b: Any = None
    ) -> Any:
        """A tensor on a storage of bytes."""
        viewed = _Storage(storage.elements.view(_of_type(d, dtypes.dtype).numpy), storage.place)
        return self._tensor(viewed, start, size, strides, grad, hooks, b)

    def _parameter(self, data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Parameter:
        if hooks:
            raise self.refuse("a Parameter with hooks")
        return self._with(Parameter(_of_type(data, Tensor).detach(), _of_type(requires_grad, bool)), state)

    def _with(self, made: Any, state: Any) -> Any:
        """The tensor with the attributes that were set on it."""
        of_dict, of_slots = state if isinstance(state, tuple) else (state, None)
        for name, value in {**_of_type(of_dict or {}, dict), **_of_type(of_slots or {}, dict)}.items():
            if not isinstance(name, str) or name.startswith("_") or hasattr(type(made), name):
                raise self.refuse(f"a tensor with the attribute {name!r}")
            setattr(made, name, value)
        return made

    def _sparse(self, layout: Any, data: Any) -> Tensor:
        if layout == "torch.sparse_coo":
            indices, values, size, *coalesced = data
            return sparse_coo_tensor(indices, values, tuple(size), is_coalesced=bool(coalesced and coalesced[0]))
        if layout not in _LAYOUTS:
            raise self.refuse(f"a tensor of layout {layout!r}")
        *parts, size = data
        return sparse_compressed_tensor(*parts, tuple(size), layout=_LAYOUTS[layout])

    def _of_class(self, function: Any, kind: Any, args: Any, state: Any) -> Any:
        if _of_type(kind, _Named).path not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
            raise self.refuse(f"a tensor of the class {kind.path}")
        return self._with(self._CALLED[_of_type(function, _Named).path](self, *_of_type(args, tuple)), state)

    def _bytes(self, text: str, encoding: str) -> bytes:
        if encoding != "latin1":
            raise ValueError(f"bytes in the encoding {encoding!r}")
        return _of_type(text, str).encode(encoding)

    _CALLED: ClassVar[dict[str, Callable[..., Any]]] = {
        "collections.OrderedDict": lambda self: OrderedDict(),
        "collections.Counter": lambda self, counts: Counter(_of_type(counts, dict)),
        "builtins.complex": lambda self, re, im: complex(_of_type(re, float), _of_type(im, float)),
        "builtins.set": lambda self, values: {self._key(v) for v in _of_type(values, list)},
        "builtins.bytearray": lambda self, data=b"": bytearray(_of_type(data, bytes)),
        "_codecs.encode": _bytes,
        "torch.Size": lambda self, size: Size(_of_type(n, int) for n in size),
        "torch.device": lambda self, kind, number=None: dtypes.device(_of_type(kind, str)),
        "torch.serialization._get_layout": lambda self, name: _of_type(name, str),
        "torch._utils._rebuild_tensor": lambda self, *args: self._tensor(*args, False, None),
        "torch._utils._rebuild_tensor_v2": _tensor,
        "torch._utils._rebuild_tensor_v3": _typed,
        "torch._utils._rebuild_parameter": _parameter,
        "torch._utils._rebuild_parameter_with_state": _parameter,
        "torch._utils._rebuild_sparse_tensor": _sparse,
        "torch._tensor._rebuild_from_type_v2": _of_class,
    }


class _Survey(_Machine):
    """Runs a pickle for the sizes of the elements of its storages, by their keys, and makes no tensors."""

    def __init__(self, stored: Callable[[str], bytes], name: str, places: Locations) -> None:
        super().__init__(stored, name, places)
        self.sizes: dict[str, int] = {}

    def _elements(self, key: str, dtype: np.dtype[Any], count: Any) -> None:
        if self.sizes.setdefault(key, dtype.itemsize) != dtype.itemsize:
            raise self.refuse(f"storage {key!r} with elements of several sizes")

    _CALLED: ClassVar[dict[str, Callable[..., Any]]] = {
        path: (lambda self, *args: None) if path.startswith(("torch._utils.", "torch._tensor.")) else made
        for path, made in _Machine._CALLED.items()
    }


_KINDS = {"torch.Tensor", "torch.nn.parameter.Parameter", "torch.storage.UntypedStorage"}

# Operations that put a plain value, or an empty container, on the stack.
_VALUES = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE"),
    *("SHORT_BINUNICODE", "BINUNICODE8", "SHORT_BINSTRING", "BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
_MADE: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_SET": set,
    "EMPTY_TUPLE": tuple,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
}


def _of_type(value: Any, kind: Any) -> Any:
    """The value, which must be of that class."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{type(value).__name__} instead of {kind.__name__} in its pickle")
    return value

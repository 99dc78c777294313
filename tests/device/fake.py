"""`DeviceArray`: an array on a device that is not there, with CuPy's manners.

It answers NumPy's protocols. It is not converted to a NumPy array, and it does not compute with one; numbers are
allowed, and positions from the host, which CuPy sends to the device. Functions, parameters, types and methods of ufuncs
that CuPy lacks are refused: `manners.json` was read off CuPy, and what no signature shows stands here, as CuPy's source
has it. Results without axes stay arrays. Each look at values (`bool()`, `float()`, `item()`...) waits for the device,
and is counted in `DeviceArray.waits`.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from pullback.interpreters import each

from .captures import DEFAULT, LIVE, Block, computed, now, owner_of, refuse, refuse_library, refuse_sync, written
from .machine import MACHINE, CUDARuntimeError, Where
from .manners import FILE

CUPY = json.loads(FILE.read_text("utf-8"))
FUNCTIONS: dict[str, list[str] | None] = CUPY["functions"]
UFUNCS: dict[str, list[str]] = CUPY["ufuncs"]

ADDED_AT = {
    "add": "iIlLqQefd",
    "subtract": "iI",
    **dict.fromkeys(("maximum", "minimum"), "iIlLqQfd"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), "iIlLqQ"),
}
"""The types that `at` of a ufunc takes."""

METHODS: dict[str, Any] = {
    "at": ADDED_AT,
    "reduce": {"add", "multiply"},
    "accumulate": {"add", "multiply"},
    "reduceat": {"add"},
    "outer": UFUNCS,
}
"""The ufuncs that have a method."""

KEYWORDS = {
    "__call__": {"dtype", "casting"},
    "reduce": {"axis", "dtype", "keepdims"},
    "accumulate": {"axis", "dtype"},
    "reduceat": {"axis", "dtype"},
}

MEMORY = frozenset({"flat", "tobytes", "tofile", "dump", "dumps"})
"""What reads an array's memory, which is the device's."""

ATTRIBUTES = frozenset(CUPY["methods of arrays"]) - MEMORY
"""What an array answers besides operators."""

FROM_VALUES = frozenset(
    """argwhere bincount compress delete digitize extract flatnonzero histogram histogram2d histogramdd intersect1d
    isin mask_indices nanmax nanmin nonzero place ravel_multi_index real_if_close setdiff1d setxor1d trim_zeros
    union1d unique unique_all unique_counts unique_inverse unique_values unravel_index""".split()
)
"""Functions in which the host waits: their results' shapes depend on values, or values are checked."""

CREATED = frozenset("array asarray asanyarray ascontiguousarray".split())
"""Functions that send arrays of the host to the device, as all creation does with ``like=``."""

OF_THE_HOST = frozenset("shape ndim size iscomplexobj isrealobj result_type can_cast may_share_memory".split())
"""Functions that are answered without values."""


def waits_for(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether CuPy's function of this name waits for the device."""
    if name in FROM_VALUES:
        return True
    if name in ("repeat", "quantile", "percentile", "linspace"):
        return any(isinstance(a, DeviceArray) for a in args[1:]) or (name == "linspace" and len(args) > 1)
    return name in ("put", "choose") and kwargs.get("mode", "raise") == "raise"


def host(value: Any) -> Any:
    """What lies on the host, for the computation that stands for the device's; TypeError for a NumPy array."""
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: an array of the host beside one of the device")
    if not isinstance(value, DeviceArray):
        return value
    if value.device.id != MACHINE.current:
        said = (
            f"The device where the array resides ({value.device.id}) is different from the current device "
            f"({MACHINE.current}). Peer access"
        )
        if not MACHINE.peers:
            raise ValueError(f"{said} is unavailable between these devices.")
        warnings.warn(f"{said} has been activated automatically.", PerformanceWarning, stacklevel=2)
    return value.inner


IN_PLACE = frozenset("copyto put putmask place put_along_axis fill_diagonal fill sort partition".split())
"""Functions and methods that write to their first argument; of functions, `sort` and `partition` do not."""


def looked_at(what: str) -> None:
    """Count a wait for the device, which is refused within a capture."""
    refuse_sync()
    DeviceArray.waits[what] += 1


def sent(value: Any) -> Any:
    """A NumPy array sent to the device; any other value itself."""
    if isinstance(value, np.ndarray):
        refuse()
    return DeviceArray(value) if isinstance(value, np.ndarray) else value


def device(value: Any, index: int | None = None) -> Any:
    """The arrays among results, on a device, by default the current one; results without axes, too."""
    return each(lambda a: DeviceArray(np.asarray(a), index) if isinstance(a, (np.ndarray, np.generic)) else a, value)


def opened(value: Any) -> Any:
    return each(lambda v: v.inner if isinstance(v, DeviceArray) else v, value)


def fits(types: list[str], args: tuple[Any, ...]) -> bool:
    """Whether a ufunc that takes these types takes the arrays among the arguments."""
    if not types:
        return True  # matmul
    for kind in types:
        for a, char in zip(args, kind.partition("->")[0], strict=False):
            if isinstance(a, DeviceArray) and not np.can_cast(a.inner.dtype, char):
                break
        else:
            return True
    return False


def solvable(name: str, args: tuple[Any, ...]) -> bool:
    """Whether CuPy solves a system of these shapes, which NumPy broadcasts."""
    a, b = args[0].shape, args[1].shape
    return name != "linalg.solve" or len(b) == 1 or a[:-1] == b[:-1]


class PerformanceWarning(RuntimeWarning):
    """CuPy's warning of what works and is slow."""


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the device. inner: where its values are kept; nothing but this module and comparisons reads it."""

    waits: ClassVar[Counter[str]] = Counter()

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, inner: np.ndarray[Any, Any], device: int | None = None) -> None:
        self._where = Where(MACHINE.current if device is None else device)
        pooled = inner.base is None and (MACHINE.pool is not None or now() is not None)
        if pooled:
            inner = (MACHINE.pool or DEFAULT).placed(inner)
        self.inner = inner
        if inner.size:
            LIVE[owner_of(inner).ctypes.data] = owner_of(inner)
        MACHINE.allocated(self, inner.nbytes if inner.base is None else 0)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()` to construct one.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        name = ufunc.__name__
        if name not in UFUNCS:
            return NotImplemented
        if method != "__call__" and name not in METHODS[method]:
            raise NotImplementedError(f"`{name}.{method}` is not supported yet")
        if len(out) > 1:
            raise ValueError("The 'out' parameter must have exactly one array value")
        if any(t is not None and not isinstance(t, DeviceArray) for t in out):
            raise TypeError("the output lies on the host")
        if unknown := kwargs.keys() - KEYWORDS.get(method, ()):
            raise TypeError(f"Wrong arguments {unknown}")
        if not all(isinstance(a, (DeviceArray, np.ndarray, int, float, complex, np.generic)) for a in inputs):
            return NotImplemented  # so do a Tensor, and `at` with a tuple or a list of positions
        if method == "at":
            return self._at(ufunc, *inputs)
        if name in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"):
            inputs = tuple([a.item() if isinstance(a, np.ndarray) and not a.ndim else a for a in inputs])
        if not fits(UFUNCS[name], inputs):
            raise TypeError(f"Wrong type ({[getattr(a, 'dtype', a) for a in inputs]}) of arguments for cupy_{name}")
        refuse_library(name, inputs)
        kwargs, inputs = each(host, kwargs), each(host, inputs)
        if out and out[0] is not None:
            written(getattr(ufunc, method), inputs, {**kwargs, "out": each(host, out)})
            return out[0]
        return device(computed(getattr(ufunc, method), inputs, kwargs))

    @staticmethod
    def _at(ufunc: np.ufunc, target: Any, index: Any, *values: Any) -> None:
        if host(target).dtype.char not in ADDED_AT[ufunc.__name__]:
            raise TypeError(f"cupy.{ufunc.__name__}.at does not support {target.dtype}")
        written(ufunc.at, (host(target), opened(index), *opened(values)), {})

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        module = (getattr(function, "__module__", None) or "").split(".")
        name = ".".join([*module[1:], function.__name__])
        if module[0] != "numpy" or name not in FUNCTIONS or any(t not in (DeviceArray, np.ndarray) for t in types):
            return NotImplemented
        known = FUNCTIONS[name]
        if known is not None and "*" not in known and (kwargs.keys() - set(known) or len(args) > len(known)):
            raise TypeError(f"{name}() got an unexpected keyword argument {sorted(kwargs.keys() - set(known))}")
        if name in OF_THE_HOST:
            return function(*opened(args), **opened(kwargs))
        out = kwargs.get("out")
        if out is not None and not isinstance(out, DeviceArray):
            raise TypeError("the output lies on the host")
        if waits_for(name, args, kwargs):
            looked_at("shape")
        refuse_library(name, args)
        if name == "nonzero" and not args[0].shape:
            raise ValueError("Calling nonzero on 0d arrays is not allowed.")
        if name.startswith("linalg.solve") and not solvable(name, args):
            raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
        if name in ("take", "take_along_axis", "put", "put_along_axis", "delete"):  # positions are sent to the device
            args = (args[0], *each(sent, args[1:2]), *args[2:])
        if name in CREATED and any(isinstance(a, (np.ndarray, list)) for a in args[:1]):
            refuse()
        args, kwargs = opened(args) if name in CREATED else each(host, args), each(host, kwargs)
        if out is not None or (name in IN_PLACE and name not in ("sort", "partition")):
            written(function, args, kwargs)
            return out
        found = computed(function, args, kwargs)
        if name == "count_nonzero" and isinstance(found, int):  # as NumPy 2.0 gives it; CuPy's lies on the device
            found = np.intp(found)
        return device(np.asarray(found) if isinstance(found, bool) else found)  # as of allclose()

    # Methods, in the same manner -------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name not in ATTRIBUTES:
            raise AttributeError(f"an array of the device has no attribute {name!r}")
        found = getattr(self.inner, name)
        if not callable(found):
            return device(found, self.device.id) if isinstance(found, (np.ndarray, np.generic)) else found

        def call(*args: Any, **kwargs: Any) -> Any:
            if waits_for(name, (self, *args), kwargs):
                looked_at("shape")
            refuse_library(name, (self, *args))
            args, kwargs = each(host, args), each(host, kwargs)
            if name in IN_PLACE:
                return written(
                    lambda a, *args, **kwargs: getattr(a, name)(*args, **kwargs), (self.inner, *args), kwargs
                )
            how = (self.inner, *args)
            return device(
                computed(lambda a, *args, **kwargs: getattr(a, name)(*args, **kwargs), how, kwargs), self.device.id
            )

        return call

    @property
    def device(self) -> Where:
        """Where it lies."""
        return self._where

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if dl_device not in (None, (2, self.device.id), (1, 0)):
            raise BufferError(f"no copy to the device {dl_device}")
        if copy is False and dl_device == (1, 0):
            raise BufferError("the array lies on another device, and copy=False")
        return (self.inner.copy() if copy or dl_device == (1, 0) else self.inner).__dlpack__()

    @property
    def data(self) -> Any:
        """The place of its memory, as cupy.cuda.MemoryPointer."""
        owner = self.inner
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return SimpleNamespace(mem=owner, ptr=self.inner.ctypes.data, device_id=self.device.id)

    @property
    def base(self) -> Any:
        base = self.inner.base
        return None if base is None or isinstance(base, Block) else DeviceArray(base, self.device.id)

    def __getitem__(self, index: Any) -> Any:
        if any(isinstance(p, DeviceArray) and p.inner.dtype == bool for p in _parts(index)):
            looked_at("shape")
        if any(isinstance(p, (np.ndarray, list)) for p in _parts(index)):
            refuse()
        return device(computed(lambda a, index: a[index], (self.inner, opened(index)), {}), self.device.id)

    def __setitem__(self, index: Any, value: Any) -> None:
        def write(target: Any, index: Any, value: Any) -> None:
            target[index] = value

        if any(isinstance(p, (np.ndarray, list)) for p in (*_parts(index), value) if getattr(p, "ndim", 1)):
            refuse()
        if any(isinstance(p, (DeviceArray, np.ndarray, list)) for p in _parts(index)):
            value = opened(value)  # beside positions, values from the host are sent, too
        else:
            value = value[()] if isinstance(value, np.ndarray) and not value.ndim else each(host, value)
        written(write, (self.inner, opened(index), value), {})

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self.inner)))

    def get(self, *, out: Any = None, blocking: bool = True) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        if MACHINE.broken is not None:
            raise CUDARuntimeError(*MACHINE.broken)
        refuse_sync()
        if blocking:
            DeviceArray.waits["get"] += 1
        MACHINE.copies["back, blocking" if blocking else "back, asynchronous"] += 1
        if out is None:
            return self.inner.copy()
        out[...] = self.inner
        return out

    def __repr__(self) -> str:
        return f"DeviceArray({self.inner.dtype}{list(self.inner.shape)})"


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _waiting(name: str) -> Callable[..., Any]:
    def look(self: DeviceArray, *args: Any) -> Any:
        looked_at(name.strip("_"))
        return getattr(self.inner, name)(*args)

    return look


for _name in ("__bool__", "__float__", "__int__", "__complex__", "item", "tolist"):
    setattr(DeviceArray, _name, _waiting(_name))

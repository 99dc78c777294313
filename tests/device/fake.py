"""`DeviceArray`: an array on a device that is not there, with CuPy's manners.

It answers NumPy's protocols. It is not converted to a NumPy array, and it does not compute with one; numbers are
allowed. A function that CuPy lacks is refused (`lacked.json`). Results without axes stay arrays. Each look at values
(`bool()`, `float()`, `item()`...) waits for the device, and is counted in `DeviceArray.waits`.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, ClassVar

import numpy as np

from pullback.interpreters import each

from .lacked import FILE

LACKED = frozenset(json.loads(FILE.read_text("utf-8"))["lacked"])

METHODS = {
    "at": {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"},
    "reduce": {"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"},
    "accumulate": {"add", "multiply"},
    "reduceat": {"add"},
    "outer": None,
}
"""The ufuncs that have a method; None for all of them."""


ATTRIBUTES = frozenset(
    """T all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum
    diagonal dot dtype fill flags flatten imag itemsize mT max mean min nbytes ndim nonzero partition prod put
    ravel real repeat reshape round searchsorted shape size sort squeeze std strides sum swapaxes take trace transpose
    var view""".split()
)
"""What an array answers besides operators. Its memory (`data`, `flat`, `tobytes()`) is the device's."""

FROM_VALUES = frozenset(
    """argwhere compress extract flatnonzero nonzero unique unique_all unique_counts unique_inverse unique_values
    trim_zeros""".split()
)
"""Functions whose result has a shape that depends on values, for which the host waits."""


def host(value: Any) -> Any:
    """What lies on the host, for the computation that stands for the device's; TypeError for a NumPy array."""
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: an array of the host beside one of the device")
    return value.inner if isinstance(value, DeviceArray) else value


def device(value: Any) -> Any:
    """The arrays among results, on the device; results without axes, too."""
    return each(lambda a: DeviceArray(np.asarray(a)) if isinstance(a, (np.ndarray, np.generic)) else a, value)


def opened(value: Any) -> Any:
    return each(lambda v: v.inner if isinstance(v, DeviceArray) else v, value)


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the device. inner: where its values are kept; nothing but this module and comparisons reads it."""

    waits: ClassVar[Counter[str]] = Counter()

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, inner: np.ndarray[Any, Any]) -> None:
        self.inner = inner

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()` to construct one.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        name = ufunc.__name__
        allowed = METHODS.get(method)
        if name in LACKED or (allowed is not None and name not in allowed):
            return NotImplemented
        if any(t is not None and not isinstance(t, DeviceArray) for t in out):
            raise TypeError("the output lies on the host")
        if method == "at":
            target, index, *values = inputs
            ufunc.at(host(target), opened(index), *map(host, values))
            return None
        kwargs = each(host, kwargs)
        if out:
            kwargs["out"] = each(host, out)
        found = getattr(ufunc, method)(*each(host, inputs), **kwargs)
        return (out if len(out) > 1 else out[0]) if out and all(t is not None for t in out) else device(found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        module = (getattr(function, "__module__", None) or "").split(".")
        name = ".".join([*module[1:], function.__name__])
        if module[0] != "numpy" or name in LACKED or any(t not in (DeviceArray, np.ndarray) for t in types):
            return NotImplemented
        out = kwargs.get("out")
        if out is not None and not isinstance(out, DeviceArray):
            raise TypeError("the output lies on the host")
        if name in FROM_VALUES or (name == "repeat" and any(isinstance(a, DeviceArray) for a in args[1:])):
            DeviceArray.waits["shape"] += 1
        found = function(*each(host, args), **each(host, kwargs))
        found = np.asarray(found) if isinstance(found, bool) else found  # as of allclose()
        return device(found) if out is None else out

    # Methods, in the same manner -------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name not in ATTRIBUTES:
            raise AttributeError(f"an array of the device has no attribute {name!r}")
        if name in FROM_VALUES:
            DeviceArray.waits["shape"] += 1
        found = getattr(self.inner, name)
        if not callable(found):
            return device(found) if isinstance(found, (np.ndarray, np.generic)) else found
        return lambda *args, **kwargs: device(found(*each(host, args), **each(host, kwargs)))

    @property
    def base(self) -> Any:
        return None if self.inner.base is None else DeviceArray(self.inner.base)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(p, DeviceArray) and p.inner.dtype == bool for p in parts):
            DeviceArray.waits["shape"] += 1
        return device(self.inner[opened(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.inner[opened(index)] = each(host, value)

    def __len__(self) -> int:
        return len(self.inner)

    def get(self) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        DeviceArray.waits["get"] += 1
        return self.inner.copy()

    def __repr__(self) -> str:
        return f"DeviceArray({self.inner.dtype}{list(self.inner.shape)})"


def _waiting(name: str) -> Any:
    def look(self: DeviceArray, *args: Any) -> Any:
        DeviceArray.waits[name.strip("_")] += 1
        return getattr(self.inner, name)(*args)

    return look


for _name in ("__bool__", "__float__", "__int__", "__complex__", "__index__", "item", "tolist"):
    setattr(DeviceArray, _name, _waiting(_name))

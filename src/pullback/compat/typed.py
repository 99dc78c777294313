"""PyTorch's deprecated names for tensors of each dtype: `FloatTensor`, `LongTensor` and so on.

They make tensors, stand in `isinstance` for the tensors of their dtype, and name the types in `Tensor.type`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from ..ops.make.conversion import to
from ..ops.make.from_data import tensor
from ..ops.make.of_size import empty
from ..ops.sparse.namespace import strided
from ..table.entry import alias, method
from ..tensor import dtypes
from ..tensor.memory import Size
from ..tensor.tensor import Tensor

_DTYPES = {
    "Bool": dtypes.bool,
    "Byte": dtypes.uint8,
    "UInt16": dtypes.uint16,
    "UInt32": dtypes.uint32,
    "UInt64": dtypes.uint64,
    "Char": dtypes.int8,
    "Short": dtypes.int16,
    "Int": dtypes.int32,
    "Long": dtypes.int64,
    "Half": dtypes.float16,
    "BFloat16": dtypes.bfloat16,
    "Float": dtypes.float32,
    "Double": dtypes.float64,
    "ComplexFloat": dtypes.complex64,
    "ComplexDouble": dtypes.complex128,
}
_NAME_OF = {d: name for name, d in _DTYPES.items()}


class tensortype:  # noqa: N801 - torch's name
    """The tensors of one dtype. Prefer `pullback.tensor` and `pullback.empty`, with a dtype.

    Called with sizes it makes an uninitialised tensor of that size; with values, a tensor of them; with a tensor of its
    dtype, a view of it. TypeError for anything else.

    >>> import pullback
    >>> pullback.LongTensor([1, 2]), pullback.FloatTensor(2, 3).shape
    (tensor([1, 2]), pullback.Size([2, 3]))
    >>> isinstance(pullback.ones(2), pullback.FloatTensor), isinstance(pullback.ones(2), pullback.DoubleTensor)
    (True, False)
    """

    layout, is_cuda, is_sparse = strided, False, False

    def __init__(self, dtype: dtypes.dtype) -> None:
        self.dtype = dtype
        self.__name__ = f"{_NAME_OF[dtype]}Tensor"

    def __call__(self, *data: Any, **place: Any) -> Tensor:
        try:
            return self._made(*data, **place)
        except Exception as error:
            errors.rename(self.__name__, error, data, keep=True)
            raise

    def _made(self, *data: Any, device: Any = None) -> Tensor:
        dtypes.check_device(device)
        if len(data) == 1 and isinstance(data[0], Size):
            return empty(data[0], dtype=self.dtype)
        if len(data) == 1 and isinstance(data[0], Tensor):
            if data[0].dtype is not self.dtype:
                raise self._refused(f"values or a tensor of {self.dtype}", data[0])
            return data[0].view_as(data[0])
        if len(data) == 1 and not isinstance(data[0], (int, np.integer)):
            if not isinstance(data[0], (Sequence, np.ndarray)) or isinstance(data[0], (str, bytes)):
                raise self._refused("a sequence of values", data[0])
            return tensor(data[0], dtype=self.dtype)
        for size in data:
            if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
                raise self._refused("sizes, or one sequence of values", size)
        return empty(data or (0,), dtype=self.dtype)

    def _refused(self, expected: str, found: Any) -> TypeError:
        return TypeError(errors.message(f"{self.__name__}()", expected=expected, found=errors.describe(found)))

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is self.dtype and instance._in_array

    def __repr__(self) -> str:
        return f"<class 'pullback.{self.__name__}'>"

    def __reduce__(self) -> str:
        return self.__name__


BoolTensor, ByteTensor, CharTensor = map(tensortype, (dtypes.bool, dtypes.uint8, dtypes.int8))
ShortTensor, IntTensor, LongTensor = map(tensortype, (dtypes.int16, dtypes.int32, dtypes.int64))
HalfTensor, BFloat16Tensor = map(tensortype, (dtypes.float16, dtypes.bfloat16))
FloatTensor, DoubleTensor = map(tensortype, (dtypes.float32, dtypes.float64))


@method("type", named=True)
def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The tensor with another dtype; without an argument, its deprecated name, such as "pullback.FloatTensor".

    >>> import pullback
    >>> pullback.ones(2).type(), pullback.ones(2).type("pullback.LongTensor"), pullback.ones(2).type(pullback.IntTensor)
    ('pullback.FloatTensor', tensor([1, 1]), tensor([1, 1], dtype=pullback.int32))
    """
    if dtype is None:
        return f"pullback.{_NAME_OF[self.dtype]}Tensor"
    if isinstance(dtype, str):
        library, _, name = dtype.partition(".")
        if library not in ("pullback", "torch") or name.removesuffix("Tensor") not in _DTYPES or name in _DTYPES:
            raise ValueError(
                errors.message(f"invalid type: {dtype!r}", expected="a dtype, or a name such as 'pullback.LongTensor'")
            )
        dtype = _DTYPES[name.removesuffix("Tensor")]
    elif isinstance(dtype, tensortype):
        dtype = dtype.dtype
    elif dtype is Tensor:
        dtype = dtypes.get_default_dtype()
    elif not isinstance(dtype, (dtypes.dtype, np.dtype)):
        kind = ValueError if isinstance(dtype, type) else TypeError
        raise kind(errors.message("type()", expected="a dtype, or the name of one", found=errors.describe(dtype)))
    return to(self, dtype)


@method("new", named=True)
def _new(self: Tensor, *data: Any, device: Any = None) -> Tensor:
    """A tensor of the dtype of this one, of a size or of values; see `tensortype`."""
    return tensortype(self.dtype)(*data, device=device)


def typename(obj: Any) -> str:
    """The name of an object's type: `Tensor.type` for a tensor, otherwise the type with its module.

    >>> import pullback
    >>> pullback.typename(pullback.ones(2)), pullback.typename(3), pullback.typename(pullback.nn.Linear)
    ('pullback.FloatTensor', 'int', 'pullback.nn.layers.linear.Linear')
    """
    if isinstance(obj, Tensor):
        return str(_type(obj))
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return str(named.__qualname__) if module in (None, "builtins") else f"{module}.{named.__qualname__}"


alias("typename", typename)

"""Converting tensors to another dtype: `Tensor.to` in all its forms, and a method for each dtype."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by, unchanged
from ...table.calls import apply, on
from ...table.entry import METHODS, alias, composite, constant, linear, method
from ...table.samples import A, D, Differs, S, Sample, V, inf, nan, unary
from ...tensor import dtypes
from ...tensor.arrays import as_array, empty_beside, repeats
from ...tensor.gpu import gpu_library, pinned, to_gpu, to_host
from ...tensor.gpu import is_pinned as is_pinned_array
from ...tensor.memory import LevelPayload, innermost
from ...tensor.modes import LEVELS
from ...tensor.overrides import chosen, dispatch, overriding
from ...tensor.protocol import is_foreign, on_arrays
from ...tensor.tensor import Tensor, need_tensor, wrap

Order = str | tuple[int, ...]
"""The order of axes in memory: NumPy's letter for it, or the axes, the one with the largest stride first."""


class memory_format:  # noqa: N801 - torch's name
    """The order of a result's axes in memory: that of its source (`preserve_format`), the natural order
    (`contiguous_format`), or with the second axis last (`channels_last` for 4 axes, `channels_last_3d` for 5).

    >>> import pullback
    >>> pullback.ones(2, 3).T.double().stride()
    (1, 3)
    >>> pullback.ones(2, 3).T.to(pullback.float64, memory_format=pullback.contiguous_format).stride()
    (2, 1)
    >>> pullback.ones(1, 2, 3, 4).contiguous(memory_format=pullback.channels_last).stride()
    (24, 1, 8, 2)
    """

    __module__ = "pullback"  # where it is public
    __slots__ = ("axes", "name", "order")

    def __init__(self, name: str, order: Order) -> None:
        self.name, self.order = name, order
        self.axes = None if isinstance(order, str) else order

    def __repr__(self) -> str:
        return f"pullback.{self.name}"

    def __reduce__(self) -> str:
        return self.name


preserve_format = memory_format("preserve_format", "K")
contiguous_format = memory_format("contiguous_format", "C")
channels_last = memory_format("channels_last", (0, 2, 3, 1))
channels_last_3d = memory_format("channels_last_3d", (0, 2, 3, 4, 1))


def order_of(format: Any, like: Tensor | None = None) -> Any:
    """The order that a memory format stands for; None preserves the order of `like`, the source of the result.

    A tensor that repeats elements has no order to preserve: its result is contiguous.
    """
    if format is None or format is preserve_format:
        payload = None if like is None else like._data
        return "C" if repeats(payload.layout if isinstance(payload, LevelPayload) else payload) else "K"
    if not isinstance(format, memory_format):
        raise TypeError(
            errors.message(
                "memory_format",
                expected="pullback.preserve_format, contiguous_format, channels_last or channels_last_3d",
                found=errors.describe(format),
            )
        )
    return format.order


def laid_out(array: Any, order: Order) -> Any:
    """A copy of an array with its axes in this order in memory; RuntimeError if it has another number of axes."""
    if isinstance(order, str):
        return np.copy(array, order=order)  # type: ignore[call-overload]
    if array.ndim != len(order):
        form = "channels_last" if len(order) == 4 else "channels_last_3d"
        raise RuntimeError(f"required rank {len(order)} tensor to use {form} format; found {array.ndim} axes")
    made = np.transpose(empty_beside(array, tuple([array.shape[axis] for axis in order])), np.argsort(order))
    made[...] = array
    return made


def _same_order(full: Any, dtype: Any, order: Any = "K") -> Any:
    return (dtype, order) if order == "K" else None


@linear(
    name="_to_copy",
    method=False,
    batch=by(_same_order),
    narrow="itself",
    contiguous=False,
    input=lambda g: g,
    numpy={np.astype: lambda x, dtype, *, copy=True: to(x, dtype, copy=copy)} if hasattr(np, "astype") else {},
)
def to_copy(input: Any, dtype: Any, order: Any = "K") -> Any:
    return cast(input, dtype, order)


@linear(
    name="_to_device",
    method=False,
    node="ToCopyBackward0",
    narrow="itself",
    contiguous=False,
    batch=by(unchanged),
    numbers="",
    input=lambda g, where, back: on(_to_device, g, back, where),
)
def _to_device(input: Any, where: Any, back: Any, blocking: bool = True) -> Any:
    return to_host(input, blocking) if where.type == "cpu" else to_gpu(input, where.index, blocking)


def placed(t: Tensor, device: Any, non_blocking: bool = False) -> Tensor:
    """The tensor on a device: itself, if it lies there. "cuda" is the current GPU.

    non_blocking: the host does not wait for a copy from or to pinned memory.
    """
    where, have = dtypes.device(device), t.device
    if where.type == have.type and where.index == have.index:
        return t
    dtypes.check_device(where)
    if where.type == "cuda" and where.index is None:
        where = dtypes.device("cuda", int(gpu_library().cuda.runtime.getDevice()))
        if where == have:
            return t
    found: Tensor = apply(_to_device.op, (t, where, have, not non_blocking), {})
    return found


@linear(
    name="_pin_memory",
    method=False,
    narrow="itself",
    contiguous=False,
    batch=by(unchanged),
    input=lambda g: g,
)
def _pin_memory(input: Any) -> Any:
    made = pinned(input.shape, input.dtype, "C" if input.flags.c_contiguous or not input.flags.f_contiguous else "F")
    made[...] = input
    return made


def pinned_copy(t: Tensor) -> Tensor:
    """The tensor in memory of the host that a GPU copies from by itself: itself, if it lies there."""
    if not isinstance(innermost(t._data), np.ndarray):
        raise RuntimeError(
            errors.message(
                f"cannot pin '{errors.describe(t)}': only dense CPU tensors can be pinned", do="give x.cpu()"
            )
        )
    try:
        gpu_library()
    except RuntimeError as error:
        raise RuntimeError(f"Cannot access accelerator device when none is available: {error}") from None
    if is_pinned_array(t._data):
        return t
    found: Tensor = apply(_pin_memory.op, (t,), {})
    return found


def alike(*values: Any) -> list[Tensor]:
    """Tensors, and arrays as constants, in the dtype to which NumPy promotes theirs."""
    found = [v if isinstance(v, Tensor) else wrap(as_array(v)) for v in values]
    kinds = {t._data.dtype for t in found}
    return found if len(kinds) < 2 else [to(t, np.result_type(*kinds)) for t in found]


def cast(array: Any, dtype: np.dtype[Any], order: Any = "K") -> Any:
    """A copy of an array in another dtype, with torch's warning if it loses the imaginary part."""
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        warnings.warn("Casting complex values to real discards the imaginary part", stacklevel=errors.callers_level())
        array = np.real(array)
    return laid_out(array.astype(dtype), order) if isinstance(order, tuple) else array.astype(dtype, order)


def _target(args: tuple[Any, ...], dtype: Any, device: Any, copy: bool) -> tuple[Any, Any, bool, bool]:
    """The dtype and the device that the arguments of `to` request (None: none), whether they demand a copy, and
    whether the host need not wait for it."""
    places = [*args]
    if places and isinstance(places[0], Tensor):
        if dtype is not None or device is not None:
            raise _no_such_form(args)
        dtype, device = places[0].dtype, places.pop(0).device
    else:
        if (
            places
            and (isinstance(places[0], (str, dtypes.device)) or type(places[0]) is int)
            and not _is_dtype(places[0])
        ):
            device = _once(args, device, places.pop(0))
        elif places and places[0] is None:
            places.pop(0)
        if places and _is_dtype(places[0]):
            dtype = _once(args, dtype, places.pop(0))
        elif places and places[0] is None:
            places.pop(0)
    if len(places) > 2 or not all(isinstance(p, bool) for p in places):
        raise _no_such_form(args)
    return dtype, device, copy or (len(places) == 2 and places[1]), bool(places and places[0])


def _is_dtype(value: Any) -> bool:
    if isinstance(value, str):
        return value in dtypes.NAMES
    return isinstance(value, (dtypes.dtype, np.dtype, type))


def _once(args: tuple[Any, ...], named: Any, found: Any) -> Any:
    if named is not None:
        raise _no_such_form(args)
    return found


def _no_such_form(args: tuple[Any, ...]) -> TypeError:
    return TypeError(
        errors.message(
            "to()",
            expected="(dtype), (device, dtype) or (other tensor), then perhaps non_blocking and copy",
            found=", ".join(errors.describe(a) for a in args),
        )
    )


_TARGETS = ("float64", "float32", "float16", "complex64", "complex128", "int32", "int64", "bool")


def _samples() -> list[Sample]:
    return [
        *(s for s in unary()),
        *(S(A(2, 3), D(name)) for name in _TARGETS),
        S(A(3, 2, layout="T"), D("float32")),
        S(A(2), "cpu"),
        S(A(2), "cpu", D("float64")),
        S(A(2), D("float32"), True),
        S(A(2), D("float32"), False, True),
        S(A(2), dtype=D("float64")),
        S(A(2), D("float64"), copy=True),
        S(A(2), A(1, dtype="float64")),
        S(A(2), A(1, dtype="complex64"), True, True),
        S(A(2), None),
        S(A(2), None, D("float64")),
        S(A(2), None, None, True),
        S(A(2), float),
        S(A(2), complex),
        S(A(2), device="cpu", dtype=D("float64"), copy=True),
        S(A(2), "cpu", dtype=D("float64")),
    ]


@composite(
    out=False,
    samples=_samples,
    kinks=lambda: [S(V([nan, inf, 1.5]), D("float32")), S(V([nan, 0.0, 1.5]), D("bool"))],
    refused=lambda: [
        S(A(2), 2.5),
        S(A(2), "gpu"),
        S(A(2), "nonsense"),
        S(A(2), nonsense=1),
        S(A(2), D("float32"), D("float64")),
        S(A(2), "cpu", "cpu"),
        S(A(2), D("float32"), True, True, True),
        S(A(2), A(2), A(2)),
        S(A(2), A(2), dtype=D("float32")),
        S(A(2), D("float32"), dtype=D("float32")),
        S(A(2), memory_format="x"),
    ],
    differs=[
        Differs("torch takes a number for a tensor of its dtype; we refuse it as a mistake", "refused", sample="2.5")
    ],
)
def to(
    input: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor with another dtype (``x.to(pullback.float64)``), or with the dtype of another tensor (``x.to(y)``).

    Also ``to(device, dtype)``; ``non_blocking`` and ``copy`` may follow in each form. The tensor itself if nothing
    changes and `copy` is False. A copy to a GPU (``x.to("cuda")``) and back is recorded; with `non_blocking` the host
    does not wait for one from or to pinned memory. RuntimeError for a device that is not there.

    >>> import pullback
    >>> pullback.tensor([1.5, -2.5]).to(pullback.int64)
    tensor([ 1, -2])
    """
    dtype, device, copy, goes_on = _target(args, dtype, device, copy)
    if device is not None and (there := placed(input, device, non_blocking or goes_on)) is not input:
        input, copy = there, False
    return converted(input, input._data.dtype if dtype is None else dtypes.to_numpy(dtype), copy, memory_format)


def converted(input: Tensor, found: np.dtype[Any], copy: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor with NumPy's dtype `found`: itself, if it has this dtype and memory format and `copy` is False."""
    order = order_of(memory_format, input)
    if found == input._data.dtype and not copy and _lies_so(input, memory_format):
        return input
    return apply(to_copy.op, (input, found, order), {})


def _lies_so(t: Tensor, format: memory_format | None) -> bool:
    """Whether a tensor has a memory format already. For `to`, any tensor without `channels_last` is contiguous."""
    if format is contiguous_format:
        return t.is_contiguous() or not any(t.is_contiguous(f) for f in (channels_last, channels_last_3d))
    return format is None or format.axes is None or t.is_contiguous(format)


def _conversion(name: str, dtype: dtypes.dtype) -> None:
    def convert(self: Tensor, *, memory_format: Any = None) -> Tensor:
        if LEVELS.n and (kinds := overriding((self,))):
            found: Tensor = dispatch(kinds, convert, (self,), chosen(memory_format=memory_format))
            return found
        try:
            return converted(self, dtype.numpy, False, memory_format)
        except Exception as error:
            errors.rename(name, error, (memory_format,), keep=True)
            raise

    errors.called(convert, f"Tensor.{name}")
    errors.CALLED[convert.__code__] = errors.Called(f"to({dtype})", False)
    convert.__name__ = name
    convert.__qualname__ = f"Tensor.{name}"
    convert.__doc__ = f"The tensor as {dtype!r}."
    METHODS[name] = convert


for _name in ("bool", "half", "float", "double", "short", "int", "long", "cfloat", "cdouble", "bfloat16"):
    _conversion(_name, getattr(dtypes, _name))
_conversion("byte", dtypes.uint8)
_conversion("char", dtypes.int8)


@constant(name="_view_as_dtype", method=False, view=True, batch=by(unchanged))
@on_arrays
def view_as_dtype(input: Any, dtype: Any) -> Any:
    """The same bytes read as numbers of another dtype: `view` of a dtype."""
    mine, other = input.dtype.itemsize, dtype.itemsize
    names = f"to view {dtypes.BY_NUMPY[input.dtype]} as {dtypes.BY_NUMPY[dtype]} (different element sizes)"
    if mine != other:
        if not input.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 {names}")
        if input.strides[-1] != mine and input.size:
            raise RuntimeError(f"self.stride(-1) must be 1 {names}, but got {input.strides[-1] // mine}")
        if other > mine and input.shape[-1] * mine % other:
            raise RuntimeError(f"self.size(-1) must be divisible by {other // mine} {names}, but got {input.shape[-1]}")
        if other > mine and not is_foreign(input) and input.__array_interface__["data"][0] % other:
            raise RuntimeError(f"self.storage_offset() must be divisible by {other // mine} {names}")
        for axis, (n, step) in enumerate(zip(input.shape[:-1], input.strides, strict=False)):
            if n > 1 and step % other and other > mine:
                raise RuntimeError(
                    f"self.stride({axis}) must be divisible by {other // mine} {names}, but got {step // mine}"
                )
    return input.view(dtype)


@method("type_as", named=True)
def _type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype of `other`."""
    need_tensor("type_as()", other)
    return to(self, other)


@method("astype", named=True)
def _astype(self: Tensor, dtype: Any, *, copy: bool = True) -> Tensor:
    """The elements in another dtype, as of NumPy's arrays: a copy, unless `copy` is False and the dtype is the same.

    >>> import pullback
    >>> pullback.tensor([1.5, 2.5]).astype("float64")
    tensor([1.5000, 2.5000], dtype=pullback.float64)
    """
    return to(self, dtypes.to_numpy(dtype), copy=copy)


@method("cpu", named=True)
def _cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in the host's memory: itself, if it lies there."""
    order_of(memory_format)
    return placed(self, "cpu")


@method("cuda", named=True)
def _cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor on a GPU, by default the current one; RuntimeError where CuPy or a GPU is missing."""
    order_of(memory_format)
    return placed(self, "cuda" if device is None else device, non_blocking)


@composite(function=False)
def is_pinned(input: Tensor) -> bool:
    """Whether it lies in memory of the host that a GPU copies from by itself: see `pin_memory`."""
    return is_pinned_array(input._data)


@composite(function=False, samples=list, refused=lambda: [S(A(2))])
def pin_memory(input: Tensor) -> Tensor:
    """A copy in memory that a GPU copies from by itself, beside the host's work; the tensor itself, if it lies there.

    RuntimeError where CuPy or a GPU is missing, and for a tensor that does not lie on the host.
    """
    return pinned_copy(input)


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an arithmetic operation on two tensors or numbers.

    >>> import pullback
    >>> pullback.result_type(pullback.tensor([1, 2]), 1.0)
    pullback.float32
    """
    values = [t._data if isinstance(t, Tensor) else t for t in (tensor1, tensor2)]
    for value in values:
        held = getattr(value, "dtype", None) if hasattr(value, "size") else None
        known = isinstance(held, np.dtype) and dtypes.is_known(held)
        if not known and not isinstance(value, (bool, int, float, complex)):
            raise TypeError(
                errors.message("result_type()", expected="tensors or numbers", found=errors.describe(value))
            )
    return dtypes.BY_NUMPY[dtypes.result_type(values)]


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not 0; RuntimeError if there is not exactly one."""
    return bool(need_tensor("is_nonzero()", input))


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return need_tensor("is_signed()", input).dtype.is_signed


for _question in (is_nonzero, is_signed):
    METHODS[_question.__name__] = _question
    alias(_question.__name__, _question)
alias("result_type", result_type)

"""Small helpers on arrays that several layers need: axes, and undoing a broadcast.

Everything here calls NumPy functions only, so it works on anything that answers NumPy's protocols: an array, or a
Tensor while a backward pass is itself recorded.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from .adding import summed
from .gpu import gpu_of, not_recording, to_gpu
from .memory import LevelPayload, innermost
from .protocol import is_foreign, is_payload

Shape = tuple[int, ...]


def wrap_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from 0, for an array of `ndim` axes; a 0-d array takes 0 and -1 as torch does."""
    if type(axis) is int and -ndim <= axis < ndim:
        return axis if axis >= 0 else axis + ndim
    try:
        if isinstance(axis, bool):  # most often a value for another argument, as in x.sum(True)
            raise TypeError
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(errors.message("dim", expected="an integer", found=errors.describe(axis))) from None
    span = max(ndim, 1)
    if not -span <= axis < span:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {axis})")
    return axis % span


def own_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from 0, for an array of `ndim` axes that must have it: a 0-d array has none."""
    if not ndim:
        raise IndexError(f"Dimension specified as {axis} but tensor has no dimensions")
    return wrap_axis(axis, ndim)


def wrap_axes(axes: Any, ndim: int) -> tuple[int, ...] | None:
    """A torch `dim` argument (None, an int, a sequence) as a tuple of axes; None for None and (), which mean all."""
    if type(axes) is int:
        axis = wrap_axis(axes, ndim)
        return (axis,) if ndim else None
    if axes is None or (isinstance(axes, (tuple, list)) and not axes):
        return None
    if not isinstance(axes, (tuple, list)):
        axes = (axes,)
    found = tuple([wrap_axis(a, ndim) for a in axes])
    if len(found) > 1 and len(set(found)) != len(found):
        twice = next(a for i, a in enumerate(found) if a in found[:i])
        raise RuntimeError(
            errors.message(f"dim {twice} appears multiple times in the list of dims", found=str(tuple(axes)))
        )
    return found if ndim else None


def insert_axes(g: Any, axes: tuple[int, ...] | None, shape: Sequence[int], keepdim: bool) -> Any:
    """Put back the axes that a reduction removed, each with length 1, so that the result broadcasts against `shape`."""
    if keepdim or axes is None:  # a 0-d result broadcasts unchanged
        return g
    return reshaped(g, tuple([1 if i in axes else n for i, n in enumerate(shape)]))


def reshaped(g: Any, shape: Shape) -> Any:
    """``np.reshape``; for an array its method, which is faster."""
    return g.reshape(shape) if type(g) is np.ndarray else np.reshape(g, shape)


def permuted(g: Any, axes: Shape) -> Any:
    """``np.transpose``; for an array its method, which is faster."""
    return g.transpose(axes) if type(g) is np.ndarray else np.transpose(g, axes)


def taken_along(a: Any, index: Any, axis: int) -> Any:
    """``np.take_along_axis``, without its overhead if both are arrays.

    >>> taken_along(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1], [0]]), 1)
    array([[2.],
           [3.]])
    """
    if type(a) is not np.ndarray or type(index) is not np.ndarray or a.ndim != index.ndim:
        return np.take_along_axis(a, index, axis)
    return a[places_along(index, axis if axis >= 0 else axis + a.ndim, a.shape)]


def rolled(a: Any, shifts: Any, axes: Any = None) -> Any:
    """``np.roll``, in order in memory, and without its overhead for an array along a list of one axis.

    >>> rolled(np.array([[1, 2, 3], [4, 5, 6]]), (1,), [1])
    array([[3, 1, 2],
           [6, 4, 5]])
    """
    if type(a) is not np.ndarray or type(axes) is not list or len(axes) != 1 or not a.size:
        return in_order(np.roll(a, shifts, axes))
    (axis,), before = axes, (slice(None),) * axes[0]
    cut = -shifts[0] % a.shape[axis]
    parts = (a[(*before, slice(cut, None))], a[(*before, slice(cut))])
    return np.concatenate(parts, axis, out=np.empty(a.shape, a.dtype))


def places_along(index: Any, axis: int, shape: Shape) -> tuple[Any, ...]:
    """NumPy's index for the elements at `index` along `axis` of an array of `shape`."""
    after, line = len(shape) - 1, np.arange
    if type(index) is not np.ndarray:
        line = functools.partial(arange_beside, index)
    return tuple([index if i == axis else line(n).reshape(n, *(1,) * (after - i)) for i, n in enumerate(shape)])


def writable(found: Any) -> Any:
    """A NumPy result as a writable array: NumPy returns a single number as a scalar.

    >>> writable(np.negative(np.array(2.0)))
    array(-2.)
    """
    return np.asarray(found) if isinstance(found, np.generic) else found


def in_order(found: Any) -> Any:
    """An array, or a NumPy scalar, as an array whose elements lie in the order of their indices.

    A payload that lies in memory in some order has a method of this name.

    >>> in_order(np.ones((2, 3)).T).flags.c_contiguous
    True
    """
    if isinstance(found, (np.ndarray, np.generic)):
        return np.asarray(found, order="C")
    return found.in_order() if hasattr(type(found), "in_order") else found


_SMALL = 4096


def spread(g: Any, shape: Shape) -> Any:
    """``np.broadcast_to``; for a small array a copy, which is faster than NumPy's view.

    >>> spread(np.array([1.0, 2.0]), (2, 2))
    array([[1., 2.],
           [1., 2.]])
    """
    if (type(g) is np.ndarray or isinstance(g, np.generic)) and math.prod(shape) <= _SMALL:
        found = np.empty(shape, g.dtype)
        found[...] = g
        return found
    return np.broadcast_to(g, shape)


def repeated(a: Any, shape: Shape) -> Any:
    """``np.broadcast_to``; for an array by setting its strides, in a tenth of the time.

    >>> repeated(np.array([1.0, 2.0]), (2, 2)).strides
    (0, 8)
    """
    if type(a) is not np.ndarray or not a.flags.c_contiguous or a.dtype.kind == "V" or min(shape, default=0) < 0:
        return np.broadcast_to(a, shape)
    lead = len(shape) - a.ndim
    steps = [step if n == m else 0 for n, m, step in zip(a.shape, shape[lead:], a.strides, strict=True)]
    return np.ndarray(shape, a.dtype, a, 0, (*(0,) * lead, *steps))


_LEADING = tuple(range(64))  # NumPy's largest number of axes


def sum_to_shape(g: Any, shape: Shape) -> Any:
    """Undo a broadcast: sum `g` over the axes along which an array of `shape` was repeated to `g`'s shape.

    >>> sum_to_shape(np.ones((2, 3)), (3,))
    array([2., 2., 2.])
    """
    lead = len(g.shape) - len(shape)
    if g.shape[lead:] == shape:
        axes = _LEADING[:lead]
        if axes and type(g) is np.ndarray:
            return writable(summed(g, axes))
    else:
        axes = tuple([i for i, n in enumerate(g.shape) if i < lead or (n != 1 and shape[i - lead] == 1)])
    if not axes:
        return reshaped(g, shape)
    return reshaped(summed(g, axes), shape)


def repeats(array: Any) -> bool:
    """Whether an array repeats elements along an axis, as one does that was broadcast.

    >>> repeats(np.broadcast_to([1.0, 2.0], (3, 2))), repeats(np.ones((2, 3))[None])
    (True, False)
    """
    if type(array) is not np.ndarray or 0 not in array.strides:
        return False
    return any(n > 1 and not step for n, step in zip(array.shape, array.strides, strict=True))


def copied(array: Any) -> Any:
    """A copy with the axes in the same order in memory, those along which elements repeat too, which NumPy puts last.

    >>> copied(np.broadcast_to([1.0, 2.0], (3, 2))).strides
    (16, 8)
    """
    if not isinstance(array, np.ndarray) or 0 not in array.strides or array.dtype.kind not in "fciubV":
        return np.array(array, order="C") if repeats(array) else np.copy(array)
    kind = array.dtype
    numbers = array if kind.kind == "c" else array.view(f"u{kind.itemsize}")
    return np.asarray(np.positive(numbers)).view(kind)


def strides_of(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """The distance between neighbours along each axis, in elements; for an empty array, as the shape implies."""
    if array.size or any(array.strides):
        return tuple(s // array.itemsize for s in array.strides)
    # NumPy gives 0 for an array it made without elements
    return tuple(math.prod(max(n, 1) for n in array.shape[i + 1 :]) for i in range(array.ndim))


def broadcasts_to(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether an array of shape `source` can be repeated to shape `target`."""
    lead = len(target) - len(source)
    if lead < 0:
        return False
    for a, b in zip(source, target[lead:], strict=True):  # noqa: SIM110 - a generator costs on the hot path
        if a not in (1, b):
            return False
    return True


def sized_or_filled(given: tuple[Any, ...], is_size: bool, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The array that torch's deprecated constructor makes: of a size, or of the values in its only argument.

    is_size: whether the arguments are known to be a size; otherwise integers are.
    """
    if is_size or all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in given):
        if min(given, default=0) < 0:
            raise RuntimeError(errors.message("Tensor()", expected="sizes of at least 0", found=str(list(given))))
        return np.empty(given, dtype)
    if len(given) > 1 or not (isinstance(given[0], np.ndarray) or np.ndim(given[0])):
        raise TypeError(
            errors.message(
                "Tensor()",
                expected="one sequence of values, or sizes",
                found=errors.describe(given[0]),
                do="write pullback.tensor(...)",
            )
        )
    return np.array(given[0], dtype)


def refuse_size(shape: Sequence[int], itemsize: int = 1) -> None:
    """Refuse a shape whose elements no memory can hold: NumPy makes something else of some of these, or crashes."""
    if math.prod(shape) * itemsize > sys.maxsize:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


def sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes given as separate integers or as one sequence, as a tuple of integers."""
    found = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    try:
        return tuple(map(operator.index, found))
    except TypeError:
        raise TypeError(errors.message("size", expected="integers", found=_of_sizes(found))) from None


def _of_sizes(found: Sequence[Any]) -> str:
    return next(filter(None, map(errors.of_another_library, found)), str(found))


def as_array(value: Any) -> Any:
    """``np.asarray``, which leaves a payload that is no array as it is.

    >>> as_array([1, 2])
    array([1, 2])
    """
    return value if is_payload(value) and not isinstance(value, list) else np.asarray(value)


# Arrays created beside another ----------------------------------------------------------------------------------------
#
# What an operation creates has to lie where its arguments lie: an array on a device does not compute with one on the
# host. This is the one place that says how. `like` is a payload, a Tensor (in a rule whose pass is recorded) or a
# tensor of a transform.


def _kind(like: Any) -> Any:
    """The innermost payload behind `like`, if it is no array; None for an array, beside which an array is right."""
    if type(like) is np.ndarray:
        return None
    found = like
    while isinstance(found, LevelPayload) or hasattr(type(found), "_data"):
        found = innermost(found if isinstance(found, LevelPayload) else found._data)
        if isinstance(found, LevelPayload):
            return None
    if type(found) is not np.ndarray:
        return found if is_payload(found) else None
    gpu = gpu_of(like if isinstance(like, LevelPayload) else like._data)  # of a program, whose examples lie on the host
    return None if gpu is None else to_gpu(np.empty(0, found.dtype), gpu)


def _layout(kind: Any) -> dict[str, Any]:
    """What makes a new array lie in the order of its indices, which a payload of one's own need not know."""
    return {"order": "C"} if is_foreign(kind) else {}


def empty_beside(like: Any, shape: Shape, dtype: Any = None) -> Any:
    """``np.empty`` of a shape, by default in the dtype of `like`; of its kind where it is a payload that is no array.

    >>> empty_beside(np.ones(2, np.float32), (2, 3)).dtype
    dtype('float32')
    """
    dtype = like.dtype if dtype is None else dtype
    if (kind := _kind(like)) is None:
        return np.empty(shape, dtype)
    return np.empty_like(kind, dtype, shape=shape, **_layout(kind))


def zeros_beside(like: Any, shape: Shape, dtype: Any = None) -> Any:
    """``np.zeros`` of a shape, by default in the dtype of `like`; of its kind where it is a payload that is no array.

    >>> zeros_beside(np.ones(2, np.float32), (3,))
    array([0., 0., 0.], dtype=float32)
    """
    dtype = like.dtype if dtype is None else dtype
    if type(like) is np.ndarray or (kind := _kind(like)) is None:
        return np.zeros(shape, dtype)
    return np.zeros_like(kind, dtype, shape=shape, **_layout(kind))


def full_beside(like: Any, shape: Shape, value: Any, dtype: Any = None) -> Any:
    """``np.full`` of a shape and a number, as `zeros_beside`."""
    dtype = like.dtype if dtype is None else dtype
    if (kind := _kind(like)) is None:
        return np.full(shape, value, dtype)
    return np.full_like(kind, value, dtype, shape=shape, **_layout(kind))


def arange_beside(like: Any, n: int, dtype: Any = None) -> Any:
    """``np.arange(n)``, of int64 by default; of the kind of `like` where that is a payload that is no array."""
    if is_foreign(kind := _kind(like)):  # made there: nothing is sent
        return np.arange(n, dtype=np.int64 if dtype is None else dtype, like=kind)
    return beside(like, counted(n, dtype))


def counted(n: int, dtype: Any = None) -> Any:
    """``np.arange(n)``; ValueError for a size beyond memory, where NumPy's own wraps around to no elements."""
    need_memory(n)
    return np.arange(n, dtype=dtype)


def need_memory(n: int) -> None:
    """ValueError for a size that no memory has; NumPy takes some of those near 2**63 for none."""
    if n > 1 << 62:
        np.empty(n)  # refused, with NumPy's words for every other such size


def eye_beside(like: Any, n: int, m: int | None = None, dtype: Any = None) -> Any:
    """``np.eye``, by default in the dtype of `like`; of its kind where it is a payload that is no array."""
    found = np.eye(n, m, dtype=like.dtype if dtype is None else dtype)
    return found if type(like) is np.ndarray else beside(like, found)


def beside(like: Any, values: Any) -> Any:
    """An array of constants, or a tensor's payload; of the kind of `like` where that is a payload that is no array.

    Constants are sent to a device without waiting for it.
    """
    if not isinstance(values, (np.ndarray, np.generic)) or (kind := _kind(like)) is None:
        return values
    if is_foreign(kind):
        not_recording()
        return np.asarray(values, like=kind)
    found = np.empty_like(kind, values.dtype, shape=values.shape)
    found[...] = values
    return found


def quiet(fold: Any, function: Any, input: Any, **how: Any) -> Any:
    """``function(input, ...)`` for a NumPy function that folds an array by a method of a ufunc, `fold`.

    On an array, the method is called directly: NumPy's warnings of overflow and of inf - inf, which torch does not
    give, then arise in a frame of this package, where they are silenced.
    """
    return fold(input, **how) if type(input) is np.ndarray else function(input, **how)

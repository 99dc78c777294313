"""`pad`: borders filled with a constant or the tensor's own elements, and borders that are cut off."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ... import errors
from ...kernels.taps import Taps, picked
from ...table.calls import on
from ...table.entry import composite, special, titled
from ...table.samples import A, S
from ...tensor import dtypes
from ...tensor.tensor import Tensor
from .arguments import floating, refuse, tensors
from .primitives import resampled


def _turned(pad: Any) -> Any:
    return tuple(-n for n in pad)


@special(
    contiguous=False,
    home="nn.functional",
    node="ConstantPadNdBackward0",
    batch="leading",
    numbers="pad",
    jvp=lambda tangents, pad: on(_pad, tangents[0], pad, 0),
    input=lambda g, pad: on(_pad, g, _turned(pad), 0),
)
def _pad(input: Any, pad: Any, value: Any) -> Any:
    """`pad` elements of `value` before and after, the last axis first; a negative number cuts elements off."""
    first = input.ndim - len(pad) // 2
    shape, source, target = [*input.shape], [slice(None)] * input.ndim, [slice(None)] * input.ndim
    for i in range(len(pad) // 2):
        axis, low, high = input.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        n = input.shape[axis]
        source[axis] = slice(max(-low, 0), n - max(-high, 0))
        shape[axis] = n + low + high
        target[axis] = slice(max(low, 0), shape[axis] - max(high, 0))
        if max(-low, 0) + max(-high, 0) > n:
            raise refuse("pad", f"no more to be cut off than the {n} elements of axis {axis}", (low, high))
    if first == input.ndim:
        return np.copy(input)
    out = np.full_like(input, value, order="C", shape=shape)
    out[tuple(target)] = input[tuple(source)]
    return out


_PADDINGS = {"reflect": "Reflection", "replicate": "Replication"}
_SUPPORTED = ((2, (2, 3)), (4, (3, 4)), (6, (4, 5)))  # lengths of `pad`, each with its ranks, in repeating modes


@functools.lru_cache(256)
def _border(mode: str, n: int, low: int, high: int) -> Taps:
    """The element at each place along an axis of length n with its border."""
    position = np.arange(-low, n + high)
    if mode == "replicate":
        return picked(n, np.clip(position, 0, n - 1))
    if mode == "reflect":
        last = n - 1
        return picked(n, last - np.abs(last - np.abs(position)))
    start, end = max(-low, 0), n - max(-high, 0)
    return picked(n, start + (position - start) % max(end - start, 1))


def _repeated(input: Tensor, pad: tuple[int, ...], mode: str) -> Tensor:
    """The tensor with a border of its own elements."""
    shape = input._data.shape
    count, ndim = len(pad) // 2, len(shape)
    if not any(len(pad) == n and ndim in ranks for n, ranks in _SUPPORTED):
        raise refuse(
            "pad",
            f"2, 4 or 6 numbers with mode={mode!r}, for the last axes of a tensor with one or two axes more",
            f"{len(pad)} numbers for a {ndim}D tensor",
            error=NotImplementedError,
        )
    if mode != "circular":
        floating("pad", input, also="ciu")
    maps = []
    for axis in range(ndim - count, ndim):
        n, (low, high) = shape[axis], pad[2 * (ndim - 1 - axis) :][:2]
        most = {"reflect": n - 1, "circular": n}.get(mode, max(low, high))
        if max(low, high) > max(most, 0) or n + low + high < (mode != "circular"):
            raise refuse(
                "pad",
                f"padding with mode={mode!r} that {n} elements can give, and a result of some",
                f"padding {(low, high)} at dimension {axis} of an input of size {list(shape)}",
            )
        maps.append(_border(mode, n, low, high))
    if 0 in shape[ndim - count - 1 :]:
        raise refuse("pad", f"elements to repeat, with mode={mode!r}", f"an input of size {list(shape)}")
    call = resampled if mode == "circular" else titled(resampled, f"{_PADDINGS[mode]}Pad{count}DBackward0")
    return call(input, tuple(maps))


def _lengths(name: str, input: Tensor, pad: Any, value: Any) -> tuple[int, ...]:
    """The lengths of the borders, for a call whose arguments are right."""
    tensors(name, input=input)
    try:
        if not isinstance(pad, (tuple, list)):
            raise TypeError
        numbers = tuple(operator.index(n) for n in pad)
    except TypeError:
        raise refuse(name, "pad to be a tuple of integers", errors.describe(pad), error=TypeError) from None
    if value is not None and not isinstance(value, (bool, int, float)):
        raise refuse(name, "value to be a number", errors.describe(value), error=TypeError)
    if len(numbers) % 2 or len(numbers) > 2 * input._data.ndim:
        raise refuse(name, "two numbers for each of the last axes", f"{len(numbers)} for {input._data.ndim} axes")
    return numbers


def _filled(input: Tensor, numbers: tuple[int, ...], value: Any) -> Tensor:
    """The tensor with borders of one value."""
    if value:
        dtypes.refuse_overflow(value, input._data.dtype)
    found: Tensor = _pad(input, numbers, value or 0)
    return found


@composite(
    out=False,
    method=False,
    samples=lambda: [
        S(A(2, 3), (1, 2)),
        S(A(2, 3), [1, 0, 2, 1], 2),
        S(A(2, 3, layout="T"), (-1, 2), value=1.5),
        S(A(2, 1, 3, layout="step"), (0, 1, 1, 0, -1, 1), True),
        S(A(0, 2), (1, 0, 0, 1)),
        S(A(), []),
    ],
    refused=lambda: [
        S(A(3)),
        S(A(3), 1),
        S(A(3), (1,)),
        S(A(3), (1, 2, 3, 4)),
        S(A(3), (0.5, 1)),
        S(A(3), (-2, -2)),
        S(A(3), (1, 1), "x"),
        S(A(3), (1, 1), None),
        S([1.0], (1, 1)),
    ],
)
def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """`input` with borders of `value`: `pad` holds their lengths, the last axis first; negative ones cut off.

    It is ``nn.functional.pad(input, pad, "constant", value)``.

    >>> import pullback
    >>> pullback.constant_pad_nd(pullback.tensor([[1.0, 2.0, 3.0]]), (1, -1), 9.0)
    tensor([[9., 1., 2.]])
    """
    if value is None:
        raise refuse("constant_pad_nd", "value to be a number", "None", error=TypeError)
    return _filled(input, _lengths("constant_pad_nd", input, pad, value), value)


@composite(
    home="nn.functional",
    samples=lambda: _samples(),
    refused=lambda: _refused(),
)
def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """`input` with borders: `pad` holds their lengths, the last axis first, ``(left, right, top, bottom, ...)``.

    Negative lengths cut elements off. mode: ``'constant'``, borders of `value` (0), for any axes; for the last one, two
    or three axes also ``'reflect'`` (the elements mirrored at the border), ``'replicate'`` (the outermost element) and
    ``'circular'`` (the elements from the other end).

    >>> import pullback
    >>> x = pullback.tensor([[1.0, 2.0, 3.0]])
    >>> pullback.nn.functional.pad(x, (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    numbers = _lengths("pad", input, pad, value)
    if mode == "constant":
        return _filled(input, numbers, value)
    if mode not in ("reflect", "replicate", "circular"):
        raise refuse(
            "pad", "mode 'constant', 'reflect', 'replicate' or 'circular'", repr(mode), error=NotImplementedError
        )
    if value:
        raise refuse("pad", f"no value with mode={mode!r}", f"value={value}")
    return _repeated(input, numbers, mode)


def _samples() -> list[Any]:
    found = [
        S(A(2, 3), (1, 2)),
        S(A(2, 3), (1, 2), value=1.5),
        S(A(2, 3), [1, 0, 2, 1], "constant", 2),
        S(A(2, 3, layout="T"), (-1, 2), value=True),
        S(A(2, 3), (-2, -1)),
        S(A(3), (3, -2)),
        S(A(2, 1, 3, layout="step"), (0, 1, 1, 0, -1, 1)),
        S(A(2, 0), (1, 2), "constant", None),
        S(A(0, 2), (1, 0, 0, 1)),
        S(A(2, 3), ()),
        S(A(), []),
    ]
    for mode in ("reflect", "replicate", "circular"):
        found += [
            S(A(2, 4), (1, 3), mode),
            S(A(2, 2, 4, layout="T"), (3, 0), mode=mode),
            S(A(2, 2, 4, layout="readonly"), [-1, 2], mode, 0),
            S(A(2, 4), (2, -2), mode),
            S(A(2, 3, 4), (1, 2, 2, 0), mode),
            S(A(1, 2, 3, 4, layout="step"), (-1, 2, 1, -1), mode),
            S(A(2, 2, 3, 4), (1, 0, 0, 1, 1, 1), mode),
            S(A(1, 1, 2, 3, 2), (1, 1, 2, 0, 0, 1), mode),
            S(A(2, 1, 3), (0, 0), mode),
        ]
    return [*found, S(A(2, 2), (5, 4), "replicate"), S(A(2, 3), (-4, 2), "replicate"), S(A(0, 2, 3), (1, 2), "reflect")]


def _refused() -> list[Any]:
    return [
        S(A(2, 3), (1,)),
        S(A(2, 3), 1),
        S(A(2, 3), (1.5, 2)),
        S(A(2, 3), "x"),
        S(A(2, 3), (1, 1, 1, 1, 1, 1)),
        S(A(2, 3), (-2, -2)),
        S(A(2, 3), (-4, 2)),
        S(A(2, 3), (1, 2), "constant", 1j),
        S(A(2, 3), (1, 2), "other"),
        S(A(2, 3), (1, 2), "reflect", 1),
        S(A(2, 3), (1, 3), "reflect"),
        S(A(2, 3), (1, 4), "circular"),
        S(A(2, 3), (-3, 0), "replicate"),
        S(A(3), (1, 2), "reflect"),
        S(A(2, 3), (1, 2, 1, 1), "reflect"),
        S(A(1, 2, 3, 4), (1, 2), "circular"),
        S(A(2, 0), (1, 5), "replicate"),
        S([1.0], (1, 1)),
    ]

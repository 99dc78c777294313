"""`make_tensor`: inputs for tests, random numbers of any dtype within a range, in any memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import errors
from ..ops.make.of_size import sizes_of
from ..ops.make.random import integers, uniform
from ..tensor import dtypes
from ..tensor.tensor import Tensor, wrap

_DEFAULTS = {"b": (0, 2), "u": (0, 10), "i": (-9, 10)}


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers, uniform in ``[low, high)``; for a complex dtype, in both parts.

    Args:
        shape: its lengths, separately or as one sequence.
        dtype: any; the range is cut to that of the dtype.
        device: accepted because PyTorch requires it; tensors lie on the CPU.
        low, high: 0 and 2 if not given for bool, 0 and 10 for unsigned and -9 and 10 for other integers, otherwise
            -9 and 9.
        noncontiguous: with gaps between its elements in memory.
        exclude_zero: with 1, or the smallest normal number, instead of 0.

    Raises:
        TypeError: `dtype` is not a dtype.
        ValueError: an empty range, or one outside that of `dtype`; integers that require grad; both `noncontiguous` and
            a memory format.

    >>> import pullback
    >>> x = make_tensor(2, 3, dtype=pullback.float64, low=1, requires_grad=True)
    >>> x.shape, x.dtype, bool((x >= 1).all())
    (pullback.Size([2, 3]), pullback.float64, True)
    """
    if not isinstance(dtype, (dtypes.dtype, np.dtype)):
        raise TypeError(errors.message("make_tensor(): The requested dtype is not supported", found=repr(dtype)))
    found = dtypes.to_numpy(dtype)
    _refuse(found, requires_grad, noncontiguous, memory_format)
    first, last = _range(found, low, high)
    numbers = _numbers(found, sizes_of(shape), first, last)
    if exclude_zero:
        least = 1 if found.kind in "biu" else dtypes.finfo(found).smallest_normal
        numbers = np.where(np.equal(numbers, 0), np.asarray(least, numbers.dtype), numbers)
    out = wrap(numbers).to(dtype)
    if noncontiguous and out.numel() > 1:
        out = out.repeat_interleave(2, dim=-1)[..., ::2]
    elif memory_format is not None:
        out = out.clone(memory_format=memory_format)
    return out.requires_grad_(requires_grad)


def _refuse(found: np.dtype[Any], requires_grad: bool, noncontiguous: bool, memory_format: Any) -> None:
    """Refuse arguments that do not go together."""
    if requires_grad and found.kind in "biu":
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"dtype={dtypes.BY_NUMPY[found]}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )


def _range(found: np.dtype[Any], low: float | None, high: float | None) -> tuple[Any, Any]:
    """The range of the numbers, cut to that of the dtype."""
    usual = _DEFAULTS.get(found.kind, (-9, 9))
    first, last = usual[0] if low is None else low, usual[1] if high is None else high
    if math.isnan(first) or math.isnan(last):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={first} and high={last}")
    if first >= last:
        raise ValueError(f"`low` must be less than `high`, but got {first} >= {last}")
    least: float
    beyond: float
    if found.kind in "iu":
        least, beyond = int(np.iinfo(found).min), int(np.iinfo(found).max) + 1
    else:
        least, beyond = (0, 2) if found.kind == "b" else (dtypes.finfo(found).min, dtypes.finfo(found).max)
    if first >= beyond or last <= least:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{first}, {last}), but {dtypes.BY_NUMPY[found]} "
            f"only supports [{least}, {beyond})"
        )
    first, last = max(first, least), min(last, beyond)
    return (math.ceil(first), math.ceil(last)) if found.kind in "biu" else (first, last)


def _numbers(found: np.dtype[Any], size: tuple[int, ...], first: Any, last: Any) -> Any:
    """Random numbers of that range, in NumPy's dtype or, for bfloat16, in double precision."""
    if found.kind in "biu":
        return integers(first, last, size, np.dtype(np.int64))._data.astype(found)
    parts = [uniform(size, np.dtype(np.float64))._data for _ in range(2 if found.kind == "c" else 1)]
    # in halves, because the range may be as wide as the dtype's
    parts = [(part * (last / 2 - first / 2) + first / 2) * 2 for part in parts]
    numbers = parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0]
    return numbers if found.kind == "V" else numbers.astype(found)


errors.doors(globals(), "make_tensor")

"""Tensors of torch as ours and ours as torch's, on the same memory.

Neither side sees what the other does to that memory, so two things are kept: the results of a call never share memory
with its arguments or with each other, and the nodes of either bridge tell the other side's counters of writes, before a
backward pass, which memory was written to; so it refuses to read what was overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ... import errors
from ...ops.sparse.coo import SparseTensor
from ...tensor import dtypes
from ...tensor.tensor import Lifted, Tensor, wrap

Array = np.ndarray[Any, Any]


# torch's as ours ------------------------------------------------------------------------------------------------------


def array_of(t: Any) -> Array:
    """The array on the memory of a torch tensor that is not part of a graph. TypeError for one that has none."""
    try:
        found: Array = t.numpy()
    except (RuntimeError, TypeError):
        found = _array_of_another(t)
    return found


def _refused(**parts: Any) -> Exception:
    """The error of a tensor that has no array; it stays as it is, whatever function of ours was given it."""
    return errors.final(TypeError(errors.message("pullback.bridge.torch", **parts)))


def _array_of_another(t: Any) -> Array:
    """The array of a tensor that torch itself does not give as one."""
    if type(t) not in (torch.Tensor, torch.nn.Parameter):
        raise _refused(
            expected="a plain torch.Tensor",
            found=f"a {type(t).__name__}",
            do="in torch.compile and torch.export, use a function made by pullback.bridge.torch.op",
        )
    if t.device.type != "cpu":
        raise _refused(
            expected="a tensor on the CPU",
            found=f"one on {t.device}",
            do="give t.cpu(); pullback has no path to torch's devices yet",
        )
    if t.layout is not torch.strided or t.is_nested:
        raise _refused(
            expected="a dense tensor",
            found="a nested one" if t.is_nested else f"one of layout {t.layout}",
            do="give its parts as separate arguments: values() and indices() of a sparse tensor, unbind() of a "
            "nested one",
        )
    if t.is_conj() or t.is_neg():
        return array_of(t.resolve_conj().resolve_neg())
    if t.dtype is torch.bfloat16:
        bits: Array = t.view(torch.int16).numpy()
        return bits.view(dtypes.bfloat16.numpy)
    raise unknown(t.dtype)


def has_derivative(t: Any) -> bool:
    """Whether a torch tensor is of real or complex numbers."""
    return bool(t.is_floating_point() or t.is_complex())


def unknown(d: torch.dtype) -> Exception:
    """The error of a dtype of torch that we do not have."""
    return _refused(
        expected=f"one of the dtypes {', '.join(dtypes.NAMES)}",
        found=str(d),
        do="convert it with t.to(torch.float32), say",
    )


def to_pullback(t: Any) -> Tensor:
    """A tensor on the memory of a torch tensor, outside of torch's graph."""
    return wrap(array_of(t.detach()))


# Ours as torch's ------------------------------------------------------------------------------------------------------


def to_torch(p: Tensor, taken: Sequence[Array] = ()) -> Any:
    """A torch tensor on the memory of one of ours; a copy if that is read-only or shares memory with `taken`."""
    a = p._data
    if type(a) is not np.ndarray:
        a = _array_behind(p)
    for b in taken:
        if a is b or (a.base is not None and np.may_share_memory(a, b)):
            a = a.copy()
            break
    if not a.flags.writeable:
        a = a.copy()
    try:
        return torch.from_numpy(a)
    except TypeError:
        if a.dtype.name != "bfloat16":
            raise
        return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
    except ValueError:  # torch has no negative strides
        return torch.from_numpy(np.ascontiguousarray(a))


def _array_behind(p: Tensor) -> Array:
    if isinstance(p, (SparseTensor, Lifted)) or not isinstance(p._data, np.ndarray):
        raise TypeError(
            errors.message(
                "pullback.bridge.torch",
                expected="dense tensors outside of every transform",
                found=errors.describe(p),
                do="return the values() of a sparse tensor",
            )
        )
    return p._data


def all_to_torch(found: Sequence[Tensor], given: Sequence[Tensor]) -> tuple[Any, ...]:
    """Torch tensors on the memory of results; none shares memory with the arguments or another result."""
    taken: list[Any] = [g._data for g in given]
    made = []
    for p in found:
        made.append(to_torch(p, taken))
        taken.append(p._data)
    return tuple(made)


# Dtypes ---------------------------------------------------------------------------------------------------------------


def numpy_dtype(d: torch.dtype) -> np.dtype[Any]:
    """NumPy's dtype for one of torch's. TypeError for one that we do not have."""
    found = dtypes.NAMES.get(str(d).removeprefix("torch."))
    if found is None:
        raise unknown(d)
    return found.numpy


def torch_dtype(d: np.dtype[Any]) -> torch.dtype:
    """torch's dtype for one of ours."""
    found: torch.dtype = getattr(torch, dtypes.BY_NUMPY[d].name)
    return found

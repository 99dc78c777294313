"""bfloat16: every operation on it is done in float32 and its result rounded, as the kernels of torch do it.

Neither NumPy's functions nor the rules see its numbers: tensors are converted before, which a graph records. What only
looks at memory (a view) or converts it works on the numbers themselves.
"""

from __future__ import annotations

from typing import Any

from .._dtypes import NARROW, bfloat16, float32
from .._tensor import Tensor
from ..interpreters.levels import mapped
from .conversion import to
from .table import Op


def _widened(t: Tensor) -> Tensor:
    return to(t, float32) if t._data.dtype.kind == "V" else t


def _narrowed(t: Tensor) -> Tensor:
    return to(t, bfloat16) if t._data.dtype.kind in "fV" else t


def _compute(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operation on tensors of which some are of bfloat16: so is its result, unless another float takes part."""
    tensors: list[Tensor] = []
    mapped(tensors.append, (*args, *kwargs.values()))
    found = op.call(*mapped(_widened, args), **{k: mapped(_widened, v) for k, v in kwargs.items()})
    named = dict(zip(op.params, args, strict=False)) | kwargs
    if named.get("dtype") is not None or any(t._data.dtype.kind in ("f", "c") and t._data.ndim for t in tensors):
        return found
    return mapped(_narrowed, found)


NARROW.compute = _compute

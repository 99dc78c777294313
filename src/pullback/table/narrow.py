"""bfloat16: every operation on it is done in float32 and its result rounded, as the kernels of torch do it.

Neither NumPy's functions nor the rules see its numbers: tensors are converted before, which a graph records. What only
looks at memory (a view) or converts it works on the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..tensor.dtypes import NARROW, bfloat16, finfo, float32
from ..tensor.tensor import Tensor
from .entry import Op
from .levels import mapped

_OF_ONE_DTYPE = frozenset(
    (
        *(f"nn.functional.conv{way}{n}d" for way in ("", "_transpose") for n in (1, 2, 3)),
        *(f"nn.functional.{name}" for name in ("linear", "bilinear", "grid_sample")),
    )
)


_conversion: Callable[[Tensor, Any], Tensor]


def converts_with(to: Callable[[Tensor, Any], Tensor]) -> None:
    """Take the operation that converts a tensor to a dtype."""
    global _conversion
    _conversion = to


def _widened(t: Tensor) -> Tensor:
    return _conversion(t, float32) if t._data.dtype.kind == "V" else t


def _narrowed(t: Tensor) -> Tensor:
    return _conversion(t, bfloat16) if t._data.dtype.kind in "fV" else t


def _compute(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], *, public: bool = False) -> Any:
    """An operation on tensors of which some are of bfloat16: so is its result, unless another float takes part.

    public: the arguments are those of a user's call, which are not checked yet.
    """
    tensors: list[Tensor] = []
    mapped(tensors.append, (*args, *kwargs.values()))
    named = dict(zip(op.public if public else op.params, args, strict=False)) | kwargs
    if op.name == "nan_to_num":  # its infinities become the largest numbers of bfloat16, not those of float32
        ends = {"posinf": finfo(bfloat16).max, "neginf": finfo(bfloat16).min}
        args, kwargs = (), ends | {k: v for k, v in named.items() if v is not None}
    same = op.kind == "bilinear" or op.about.home == "linalg" or op.name in _OF_ONE_DTYPE
    if same and len({t.dtype for t in tensors if t._data.dtype.kind in "fcV"}) > 1:
        raise RuntimeError(
            errors.message(
                f"{op.name.lstrip('_')}()",
                expected="operands of the same dtype",
                found=" and ".join(str(t.dtype) for t in tensors),
                do="convert one of them, e.g. w.to(x.dtype)",
            )
        )
    call = op.call if public else op.unchecked
    found = call(*mapped(_widened, args), **{k: mapped(_widened, v) for k, v in kwargs.items()})
    if named.get("dtype") is not None or any(t._data.dtype.kind in ("f", "c") and t._data.ndim for t in tensors):
        return found
    return mapped(_narrowed, found)


NARROW.compute = _compute

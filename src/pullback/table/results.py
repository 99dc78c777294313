"""Results: the named tuples of several, and `out=`, which writes a result into existing tensors.

Named tuples print as torch's do, are public as `pullback.return_types`, and can be pickled.
"""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import Any

import numpy as np

from .. import errors
from ..tensor import dtypes
from ..tensor.modes import thread
from ..tensor.tensor import Lifted, Tensor
from ..tensor.views import keep_values, refuse_inference, refuse_memory
from .op import Op

RESULT_TYPES: dict[str, Any] = {}
"""The types of named results, by operation."""


def _lines(self: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"{type(self).__module__}.{type(self).__name__}(\n{fields})"


def result_type(name: str, *fields: str) -> Any:
    """The type of the results of operation `name`: a tuple with names for its entries."""
    base = namedtuple(name, fields)  # type: ignore[misc]
    found = type(name, (base,), {"__slots__": (), "__repr__": _lines, "__module__": "pullback.return_types"})
    RESULT_TYPES[name] = found
    return found


def out_of(op: Op, kwargs: dict[str, Any]) -> Any:
    """Take ``out=`` from the keyword arguments of a public call; TypeError if the operation has none.

    An argument that says the dtype of the result, and was not given, is added to them.
    """
    if "out" in kwargs and not op.takes_out:
        raise TypeError(
            errors.message(
                f"{op.name}() got an unexpected keyword argument 'out'",
                do="write the result into a tensor with copy_()",
            )
        )
    out = kwargs.pop("out", None)
    if op.typed_by and isinstance(out, Tensor) and kwargs.get(op.typed_by) is None:
        kwargs[op.typed_by] = out.dtype
    return out


def write_out(name: str, out: Any, result: Any, exact: bool | None = None) -> Any:
    """Write the values of the result into the tensor `out` (or into each of a tuple), and return it.

    exact: whether `out` must have the result's dtype (`About.out`); None: only if there are several, as in torch.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(
                errors.message(f"{name}()", expected=f"out= to be {len(result)} Tensors", found=errors.describe(out))
            )
        for o, r in zip(out, result, strict=True):
            _check_out(name, o, r, exact is not False)
        written = [_put_out(o, r) for o, r in zip(out, result, strict=True)]
        return type(result)(*written) if hasattr(result, "_fields") else tuple(written)
    _check_out(name, out, result, exact is True)
    return _put_out(out, result)


def _check_out(name: str, out: Any, result: Tensor, exact: bool) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="out= to be a Tensor", found=errors.describe(out)))
    if isinstance(result, Lifted) or isinstance(out, Lifted):
        raise NotImplementedError(
            f"{name}(): an out= function does not support transforms and forward AD.\n  What to do: leave out= away."
        )
    if thread.modes.grad_enabled and (result._requires_grad or out._requires_grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad.\n  What to do: leave out= away, or call it within pullback.no_grad()."
        )
    refuse_inference(out)
    if out._data.shape == result._data.shape:
        refuse_memory(out._data)
    if exact and out._data.dtype != result._data.dtype:
        raise RuntimeError(
            errors.message(
                f"{name}(): Expected out tensor to have dtype {result.dtype}",
                found=str(out.dtype),
                do="pass an out= of that dtype: what this operation finds is not converted",
            )
        )
    if dtypes.CATEGORY[result._data.dtype.kind] > dtypes.CATEGORY[out._data.dtype.kind]:
        raise RuntimeError(
            errors.message(
                f"{name}(): result type {result.dtype} can't be cast to the desired output type {out.dtype}",
                do="pass an out= of that dtype, or convert the operands first",
            )
        )


def _put_out(out: Tensor, result: Tensor) -> Tensor:
    if out._data.shape != result._data.shape:
        if out._data.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out._data.shape)}, which "
                f"does not match the required output shape {list(result._data.shape)}.",
                stacklevel=errors.callers_level(),
            )
        out._set_payload(np.empty(result._data.shape, out._data.dtype))
    keep_values(out)
    out._data[...] = result._data
    out._bump()
    return out

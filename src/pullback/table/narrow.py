"""bfloat16: every operation on it is done in float32 and its result is rounded, as in torch's kernels; and integers
beside floating point numbers, which rules get in the dtype of the call.

Neither NumPy's functions nor the rules see bfloat16 numbers: tensors are converted before, and a graph records the
conversion. Views and conversions themselves work on bfloat16 memory directly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .. import errors
from ..tensor.dtypes import bfloat16, dtype, float32, result_type
from ..tensor.memory import INFERENCE
from ..tensor.tensor import Tensor
from .levels import mapped
from .nodes import Plan, under_title
from .op import Op, needs

_BY_THE_FIRST = ("as the first", "with the first")


class Conversion:
    """The operation that converts a tensor to a dtype, which `assembly.py` puts here.

    copied: the entry behind it, which takes NumPy's dtypes.
    """

    to: ClassVar[Callable[[Tensor, Any], Tensor]]
    copied: ClassVar[Op]


def _widened(t: Tensor) -> Tensor:
    return Conversion.to(t, float32) if t._data.dtype.kind == "V" else t


def _narrowed(op: Op, t: Tensor) -> Tensor:
    """A result in bfloat16. The node of this conversion has the title of the operation, if it has one."""
    if t._data.dtype.kind == "f" and op.title:
        return under_title(Conversion.copied, op.title, **op.constants)(t, bfloat16.numpy)
    return Conversion.to(t, bfloat16) if t._data.dtype.kind in "fV" else t


def rounded(value: Any) -> Any:
    """A number, or a tensor without dimensions, as an operand that is compared with bfloat16: one of that dtype."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(np.asarray(value, bfloat16.numpy))
    zero_d = isinstance(value, Tensor) and not value._data.ndim and value._data.dtype.kind == "f"
    return Conversion.to(value, bfloat16) if zero_d else value


def in_float32(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], *, public: bool = False) -> Any:
    """An operation with bfloat16 tensors among its arguments. The result is bfloat16 unless another float takes part.

    public: the arguments are those of a user's call and not yet checked.
    """
    if callable(op.about.narrow):
        names = op.public if public else op.params
        args, kwargs = (), op.about.narrow(dict(zip(names, args, strict=False)) | kwargs)
    tensors: list[Tensor] = []
    given = (*args, *kwargs.values())
    mapped(tensors.append, given)
    same = op.kind == "bilinear" or op.about.narrow == "one dtype"
    if same and len({t.dtype for t in tensors if t._data.dtype.kind in "fcV"}) > 1:
        raise RuntimeError(
            errors.message(
                f"{op.name.lstrip('_')}()",
                expected="operands of the same dtype",
                found=" and ".join(str(t.dtype) for t in tensors),
                do="convert one of them, e.g. w.to(x.dtype)",
            )
        )
    if op.about.narrow == "with the first" and tensors[0]._data.dtype.kind != "V":
        raise RuntimeError(
            errors.message(
                f"{op.name}(): mixed dtype (CPU): expect parameter to have scalar type of {tensors[0].dtype}",
                found=" and ".join(str(t.dtype) for t in tensors),
                do="convert the parameters, or the input",
            )
        )
    if op.elementwise and (op.about.rounds or not op.differentiable):
        args = tuple([rounded(a) for a in args])
    call, pairs = op.call if public else op.unchecked, []

    def widened(t: Tensor) -> Tensor:
        wide = _widened(t)
        if wide is not t:
            pairs.append((t, wide))
        return wide

    found = call(*mapped(widened, args), **{k: mapped(widened, v) for k, v in kwargs.items()})
    for t, wide in pairs:
        if wide._version_of is not None and wide._version_of is not INFERENCE and wide._version_of.n:
            t.copy_(wide)
        if found is wide:
            return t
    if op.about.narrow in _BY_THE_FIRST:
        return mapped(functools.partial(_narrowed, op), found) if tensors[0]._data.dtype.kind == "V" else found
    if any(isinstance(v, (dtype, np.dtype, type)) for v in given):
        return found
    rank = any(t._data.ndim for t in tensors if t._data.dtype.kind == "V")  # one without axes does not widen these
    if any(t._data.dtype.kind in ("f", "c") and (t._data.ndim or not rank) for t in tensors):
        return found
    return mapped(functools.partial(_narrowed, op), found)


# Integers beside floating point numbers -------------------------------------------------------------------------------


def float_beside(op: Op, args: tuple[Any, ...]) -> Any:
    """The dtype of an elementwise call on tensors of integers or bfloat16 and of others; None for any other call."""
    if not op.elementwise or len(op.promoted) < 2:
        return None
    given = [a._data for i in op.promoted if i < len(args) and isinstance(a := args[i], Tensor)]
    kinds = {p.dtype.kind for p in given}
    return None if kinds.isdisjoint("iuV") or kinds.isdisjoint("fc") else result_type(given)


def in_floats(op: Op, args: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    """The arguments of a call with its operands of integers in `dtype`."""
    return tuple([_in_float(a, dtype) if i in op.promoted else a for i, a in enumerate(args)])


def _in_float(value: Any, dtype: Any) -> Any:
    data = value._data if isinstance(value, Tensor) else value
    if not hasattr(data, "dtype") or data.dtype.kind not in "iuV":
        return value
    return Conversion.to(value, dtype) if isinstance(value, Tensor) else value.astype(dtype)


def in_dtype(out: Tensor, dtype: Any) -> Tensor:
    """A recorded result whose rules get integers and bfloat16 in `dtype`, if there is one, as the call itself did.

    Beside half precision, rules on arrays would find digits and a range of integers that the call did not have, and
    rules on Tensors would not; the square of a large integer would wrap around; and NumPy knows no logarithm of
    bfloat16 that has the digits of single precision. The operands are saved as they are.
    """
    if dtype is not None:
        assert out._edge is not None
        node: Any = out._edge[0]
        node.plan = _converting(node.plan, node.op, dtype)
    return out


@functools.cache
def _converting(plan: Plan, op: Op, dtype: Any) -> Plan:
    return plan.changed(lambda rule: _converted(rule, op, dtype))


def _converted(rule: Callable[..., Any], op: Op, dtype: Any) -> Callable[..., Any]:
    promoted = {op.params[i] for i in op.promoted}
    operands = [name in promoted for name in needs(rule)]

    def run(g: Any, *saved: Any) -> Any:
        return rule(g, *[_in_float(v, dtype) if one else v for v, one in zip(saved, operands, strict=True)])

    return run

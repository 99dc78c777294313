"""Calls of the table's operations: forward on the payloads, then, if that is wanted, a node.

Three ways lead to a node. `unary` and `binary` make the functions behind elementwise operations, short because they
are called most; `general` is theirs where operands differ in type; `apply` is the way of all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _dtypes, errors
from .._state import thread
from .._tensor import WRITES, Edge, Tensor, View, blank, wrap
from ..autograd.node import leaf_edge, next_order
from .nodes import SAVED_OUTPUT

if TYPE_CHECKING:
    from .table import Op, Plan

_ndarray = np.ndarray


def record(op: Op, mask: int, args: tuple[Any, ...], r: Any) -> Tensor:
    """A Tensor around `r` that remembers it is `op` of `args`, with gradients for those in `mask`."""
    plan = op.plans.get(mask) or op.plan(mask)
    out = made_by(op, plan, [args[i]._edge or leaf_edge(args[i]) for i in plan.wanted], r)
    if plan.with_out or plan.with_shapes:
        args = (*args, _detached(out) if plan.with_out else None, *(args[i]._data.shape for i in plan.with_shapes))
    node = out._edge[0]  # type: ignore[index]
    node.saved = saved = plan.pick(args)
    node.versions = _versions(saved) if WRITES.n else None
    return out


def made_by(op: Op, plan: Plan, edges: Sequence[Edge | None], r: Any) -> Tensor:
    """A Tensor around `r` and the node that made it; what the node saves is the caller's to set."""
    node = op.complex_class() if r.dtype.kind == "c" else op.node_class()
    node._hooks = None
    node.plan = plan
    node.writes = WRITES.n
    node.versions = None
    node._edges = edges
    node._order = next_order()  # after the edges: a leaf's AccumulateGrad may have been made for them
    out = blank()
    out._data = r
    out._edge = (node, 0, r.shape, r.dtype)
    out._requires_grad = True
    out._grad = out._leaf = out._view = out._version_of = None
    return out


def _versions(saved: Sequence[Any]) -> tuple[int, ...] | None:
    """The versions of the tensors among what is saved, or None if none of them was ever written to."""
    for value in saved:
        if isinstance(value, Tensor) and value._version_of is not None and value._version_of.n:
            return tuple(v._version if isinstance(v, Tensor) else 0 for v in saved)
    return None


def _detached(out: Tensor) -> Tensor:
    alias = wrap(out._data)
    alias._version_of = out._share_version()
    alias._view = SAVED_OUTPUT
    return alias


def _as_view(view: Tensor, op: Op, args: tuple[Any, ...]) -> Tensor:
    """Tie `view`, the result of ``op(*args)``, to the first of `args` if their payloads share memory."""
    source, base = args[0], view._data.base if isinstance(view._data, np.ndarray) else None
    if base is not None and (base is source._data or base is source._data.base):
        view._version_of = source._share_version()
        view._view = View(source, op, args[1:], thread.modes.grad_enabled)
        view._version_of.add_view(view)
    return view


def apply(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an entry: forward on the payloads, then a record. The way of all but elementwise operations."""
    if kwargs:
        args, kwargs = op.bind(args, kwargs)
    if not args or not isinstance(args[0], Tensor):
        args = (operand(op, args), *args[1:])
    payloads = [a._data if isinstance(a, Tensor) else a for a in args]
    try:
        r = op.forward(*payloads, **kwargs)
    except (ValueError, TypeError, IndexError) as error:
        raise errors.translate(op.name, payloads, error) from None
    if op.rules and thread.modes.grad_enabled:
        mask = 0
        for i, bit in op.bits:
            if i < len(args) and isinstance(args[i], Tensor) and args[i]._requires_grad:
                mask |= bit
        if mask and (r.dtype.kind in "fc"):
            r = r if isinstance(r, _ndarray) or not isinstance(r, np.generic) else np.asarray(r)
            args = op.padded(args, kwargs)
            return _as_view(record(op, mask, args, r), op, args) if op.view else record(op, mask, args, r)
    return _as_view(wrap(r), op, op.padded(args, kwargs)) if op.view else wrap(r)


def operand(op: Op, args: tuple[Any, ...], i: int = 0) -> Tensor:
    """Argument `i` as a Tensor (an array among tensors is a constant one), or the error that it is none."""
    if not args:
        raise TypeError(f"{op.name}() missing required argument {op.params[0]!r}")
    if isinstance(args[i], np.ndarray) and any(isinstance(a, Tensor) for a in args):
        return wrap(args[i])
    raise TypeError(
        errors.message(
            f"{op.name}()",
            expected=f"argument {op.params[i]!r} to be a Tensor",
            found=errors.describe(args[i]),
            do="convert it with pullback.tensor(...) or pullback.from_numpy(...)",
        )
    )


def on(call: Callable[..., Any], *args: Any) -> Any:
    """Call an operation from inside a rule: recorded if any argument is a Tensor, else its forward on the payloads."""
    return call(*args) if any(isinstance(a, Tensor) for a in args) else call.op.forward(*args)  # type: ignore[attr-defined]


def general(op: Op, args: tuple[Any, ...]) -> Any:
    """An elementwise call off the fast path: operands of different types, arrays among Tensors, nested payloads."""
    payloads = [a._data if isinstance(a, Tensor) else a for a in args]
    found = [payloads[i] for i in op.promoted if payloads[i] is not None or not op.defaults]  # None: left out
    if not any(isinstance(a, Tensor) for a in args):
        raise TypeError(
            errors.message(
                f"{op.name}()",
                expected="a Tensor among the arguments",
                found=", ".join(errors.describe(a) for a in args),
                do="convert one with pullback.tensor(...)",
            )
        )
    for p in found:
        if not hasattr(p, "dtype") and not isinstance(p, (bool, int, float, complex)):
            raise TypeError(
                errors.message(
                    f"{op.name}()",
                    expected="a Tensor, an array or a number",
                    found=type(p).__name__,
                    do="convert it with pullback.tensor(...)",
                )
            )
    dtype = _dtypes.result_type(found)
    if op.floats and dtype.kind in "biu":
        dtype = _dtypes.default()
    operands = [_cast(p, dtype) if i in op.promoted and p is not None else p for i, p in enumerate(payloads)]
    try:
        r = op.forward(*operands)
    except (ValueError, TypeError) as error:
        raise errors.translate(op.name, payloads, error) from None
    if type(r) is not _ndarray:
        r = np.asarray(r) if isinstance(r, np.generic) else r
    if thread.modes.grad_enabled:
        mask = sum(bit for i, bit in op.bits if isinstance(args[i], Tensor) and args[i]._requires_grad)
        if mask and r.dtype.kind in "fc":
            return record(op, mask, args, r)
    return wrap(r)


def _cast(p: Any, dtype: np.dtype[Any]) -> Any:
    """A payload or a number as an operand of `dtype`."""
    if not hasattr(p, "dtype"):
        p = np.asarray(p)
    return p if p.dtype == dtype else p.astype(dtype)


def unary(op: Op) -> Callable[..., Any]:
    """The function that calls an elementwise operation of one argument: the hot path."""
    fn, floats, differentiable = op.forward, op.floats, bool(op.rules)

    def call(input: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(
                errors.message(
                    f"{op.name}()",
                    expected="a Tensor",
                    found=errors.describe(input),
                    do="convert it with pullback.tensor(...) or pullback.from_numpy(...)",
                )
            )
        x = input._data
        if floats and x.dtype.kind in "biu":
            return general(op, (input,))
        try:
            r = fn(x)
        except (ValueError, TypeError) as error:
            raise errors.translate(op.name, (x,), error) from None
        if type(r) is not _ndarray and isinstance(r, np.generic):
            r = np.asarray(r)
        if differentiable and input._requires_grad and thread.modes.grad_enabled and r.dtype.kind in "fc":
            return record(op, 1, (input,), r)
        return wrap(r)

    return call


_NUMBERS = (float, int, bool)


def binary(op: Op, *, operator: bool = False, reflected: bool = False) -> Callable[..., Any]:
    """The function that calls an elementwise operation of two arguments: the hottest path there is, so it is written
    out.

    operator: it stands behind `a + b`, so an operand it does not know is left to the other side. reflected: behind
    ``__radd__``.
    """
    fn, floats, node_class = op.forward, op.floats, op.node_class
    plans: list[Plan | None] = [None, None, None, None]  # by mask, filled when first needed
    differentiable = sum(bit for _, bit in op.bits)

    def call(input: Any, other: Any) -> Any:
        if type(input) is Tensor and type(other) is Tensor and not reflected:
            x, y = input._data, other._data
            if x.dtype is not y.dtype or (floats and x.dtype.kind not in "fc"):
                return general(op, (input, other))
            wanted = other._requires_grad
            mask = (3 if wanted else 1) if input._requires_grad else (2 if wanted else 0)
        elif type(input) is Tensor and type(other) in _NUMBERS and input._data.dtype.kind == "f":
            x, y, mask = input._data, other, 1 if input._requires_grad else 0
            if reflected:
                input, other, x, y, mask = other, input, y, x, 2 * mask
        elif operator and not isinstance(other, _OPERANDS):
            return NotImplemented
        else:
            return general(op, (other, input) if reflected else (input, other))
        try:
            r = fn(x, y)
        except (ValueError, TypeError) as error:
            raise errors.translate(op.name, (x, y), error) from None
        if type(r) is not _ndarray and isinstance(r, np.generic):
            r = np.asarray(r)
        out = blank()
        out._data = r
        out._grad = out._leaf = out._view = out._version_of = None
        if not mask & differentiable or not thread.modes.grad_enabled:
            out._edge, out._requires_grad = None, False
            return out
        mask &= differentiable
        plan = plans[mask]
        if plan is None:
            plan = plans[mask] = op.plan(mask)
        which, dtype = plan.from_operands, r.dtype
        if which < 0 or dtype.kind == "c":
            return record(op, mask, (input, other), r)
        node = node_class()
        node._hooks = None
        node.plan = plan
        node.saved = (other,) if which == 2 else (input,) if which == 1 else (input, other) if which else ()
        node.writes = writes = WRITES.n
        node.versions = _versions(node.saved) if writes else None
        if mask == 1:
            node._edges = (input._edge or leaf_edge(input),)
        elif mask == 2:
            node._edges = (other._edge or leaf_edge(other),)
        else:
            node._edges = (input._edge or leaf_edge(input), other._edge or leaf_edge(other))
        node._order = next_order()  # after the edges: a leaf's AccumulateGrad may have been made for them
        out._edge = (node, 0, r.shape, dtype)
        out._requires_grad = True
        return out

    return call


_OPERANDS = (Tensor, np.ndarray, np.generic, bool, int, float, complex)


def join(op: Op, tensors: Any, dim: int) -> Tensor:
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            errors.message(
                f"{op.name}()",
                expected="a tuple or list of Tensors",
                found=errors.describe(tensors),
                do=f"write {op.name}([a, b], dim)",
            )
        )
    if not tensors:
        raise RuntimeError(f"{op.name}(): expected a non-empty list of Tensors")
    tensors = [wrap(t) if isinstance(t, np.ndarray) else t for t in tensors]
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(
                errors.message(f"{op.name}()", expected=f"element {i} to be a Tensor", found=errors.describe(t))
            )
    payloads = [t._data for t in tensors]
    dtype = _dtypes.result_type(payloads)
    try:
        r = op.forward([_cast(p, dtype) for p in payloads], dim)
    except (ValueError, TypeError) as error:
        raise errors.translate(op.name, payloads, error) from None
    if not (thread.modes.grad_enabled and any(t._requires_grad for t in tensors) and dtype.kind in "fc"):
        return wrap(r)
    edges = [(t._edge or leaf_edge(t)) if t._requires_grad else None for t in tensors]
    plan = op.plan(1)
    out = made_by(op, plan, edges, r)
    out.grad_fn.saved = plan.pick((None, dim, None, tuple(p.shape for p in payloads)))
    return out

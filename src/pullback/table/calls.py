"""Calls of the table's operations: the forward on the payloads, then a node if a gradient is wanted.

Three ways lead to a node. `unary` and `binary` make the functions behind elementwise operations; they are short because
they are called most. They pass operands of different types on to `general`. All other operations go through `apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.node import begin, edge_of, leaf_edge, next_order
from ..kept_gradients import left
from ..tensor import dtypes
from ..tensor.arrays import in_order, writable
from ..tensor.dtypes import NARROW
from ..tensor.gpu import apart
from ..tensor.memory import INFERENCE, WRITES, LevelPayload, Version, View, same_memory
from ..tensor.modes import INFERENCES, LEVELS, thread
from ..tensor.nested import instances
from ..tensor.overrides import ASKED, dispatch, overriding
from ..tensor.protocol import is_foreign, is_payload
from ..tensor.tensor import PLAIN, Edge, Lifted, Tensor, blank, wrap
from .door import operand
from .levels import highest, inner, interpreted, mapped
from .narrow import float_beside, in_dtype, in_float32, in_floats
from .nodes import OpNode, Plan, by_kernel, note_versions, with_kernels
from .op import Op
from .operands import cast, common_dtype, fits_half
from .results import out_of, write_out

_ndarray = np.ndarray
_LARGE = 2048  # elements from which on a kernel in C pays, for entries that say `fused`
_NO_NAMES: dict[str, Any] = {}  # never written to


def record(op: Op, mask: int, args: tuple[Any, ...], r: Any, edges: Sequence[Edge | None] = ()) -> Tensor:
    """A Tensor around `r` with a node that says it is ``op(*args)``, with gradients for the arguments in `mask`.

    args: all arguments, in order. edges: the gradients' edges, if they are not those of the arguments.
    """
    plan: Plan = op.plans[mask]
    if not edges:  # `edge_of` written out: every operation passes here
        if plan.only is not None:
            t = args[plan.wanted[0]]
            edges = (t._edge or t._leaf or leaf_edge(t),)
        else:
            edges = []
            for i in plan.wanted:
                t = args[i]
                edges.append(t._edge or t._leaf or leaf_edge(t))
    dtype = r.dtype
    node = begin(plan.complex_class() if dtype.kind == "c" else plan.node_class(), edges)
    node.plan, node.versions = plan, None
    node.writes = writes = WRITES.n
    out = blank() if type(r) is _ndarray else wrap(r)
    out._data = r
    out._edge = (node, 0, r.shape, dtype)
    out._requires_grad = True
    out._grad = out._leaf = out._view = out._version_of = None
    node.saved = plan.save(args, out)
    if writes:
        seal(node)
    return out


def seal(node: OpNode) -> None:
    """Note the versions of the tensors a new node saved, and pass the node to the watcher, if there is one."""
    note_versions(node)
    watch = thread.modes.watch
    if watch is not None:
        watch(node)


def record_tuple(op: Op, mask: int, args: tuple[Any, ...], results: Any) -> Any:
    """`record` for an operation with several results; the floating point or complex ones are outputs of the node."""
    plan: Plan = op.plans[mask]
    kinds = [r.dtype.kind for r in results]
    kind: Any = op.plans.complex_tuple_class if "c" in kinds else op.plans.tuple_class
    node = begin(kind(), [edge_of(args[i]) for i in plan.wanted])
    node.plan, node.versions = plan, None
    node.writes, node._outputs = WRITES.n, len(results)
    outs = _like_tuple(results, [wrap(r) for r in results])
    for i, out in enumerate(outs):
        if kinds[i] in "fcV":
            out._edge, out._requires_grad = (node, i, out._data.shape, out._data.dtype), True
    node.saved = plan.save(args, outs)
    if WRITES.n:
        seal(node)
    return outs


def _like_tuple(model: Any, values: list[Any]) -> Any:
    """The values in a tuple of the model's class, which may be a named one."""
    return type(model)(*values) if hasattr(model, "_fields") else tuple(values)


def as_view(view: Tensor, op: Op, args: tuple[Any, ...], made: str = "", known: bool = False) -> Tensor:
    """Make `view`, the result of ``op(*args)``, a view of the first of `args` if their payloads share memory.

    made: as in `View`; ignored if nothing is being recorded. known: the payloads share memory, so it is not checked.
    """
    source = args[0]
    if not known:
        data, payload = view._data, source._data
        base = data.base if type(data) is _ndarray else getattr(data, "base", NotImplemented)
        if base is NotImplemented:  # its class does not say
            made = made or "payload"
        elif (base is None or not (base is payload or base is payload.base)) and data.size:
            return view
    elif isinstance(view._data, LevelPayload):
        view._data.see(source._data, op, args[1:])
    version = source._version_of
    if version is INFERENCE:  # not part of a graph, even if made from a leaf that requires grad
        view._version_of, view._edge, view._requires_grad = INFERENCE, None, False
        return view
    if version is None:
        version = source._version_of = Version()
    if not view._requires_grad and not (modes := thread.modes).grad_enabled:
        made = "inference" if modes.inference else "no_grad"
    view._version_of = version
    if op.differentiable:  # bytes read as another dtype are not part of the tensor's graph
        view._view = View(source, op, args[1:], made)
    version.add_view(view)
    return view


def apply(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] = _NO_NAMES) -> Any:
    """Call an entry that is not elementwise: the forward on the payloads, then a node."""
    if kwargs:
        if "out" in kwargs and "out" not in op.params:
            out = out_of(op, kwargs)
            return apply(op, args, kwargs) if out is None else into(out, op, args, kwargs)
        args, kwargs = op.bind(args, kwargs)
    if LEVELS.n and interpreted((*args, *kwargs.values()) if kwargs else args):
        return interpret(op, args, kwargs)
    if not args:
        raise TypeError(f"{op.name}() missing required argument {op.public[0]!r}")
    if not isinstance(args[0], Tensor):
        args = (operand(op, op.public[0], args[0], args), *args[1:])
    if NARROW.n and is_narrow(op, args, kwargs):
        return in_float32(op, args, kwargs)
    payloads, mask, bit = [], 0, 1
    for a in args:  # the payload, and whether a gradient is wanted, in one pass
        if isinstance(a, Tensor):
            payloads.append(a._data)
            if a._requires_grad:
                mask |= bit
        else:
            payloads.append(a)
        bit <<= 1
    forward = by_kernel(op) if (large := op.fused and payloads[0].size >= _LARGE) else op.forward
    try:
        r = forward(*payloads, **kwargs) if kwargs else forward(*payloads)
    except (ValueError, TypeError, IndexError) as error:
        raise errors.translate(op.name, payloads, error) from None
    mask &= op.differentiable
    if type(r) is not _ndarray:
        if isinstance(r, tuple):
            out = _apply_tuple(op, mask, args, kwargs, r)
            return with_kernels(out) if large else out
        r = in_order(writable(r)) if op.contiguous else writable(r)
        if type(r) is not _ndarray and apart(payloads):
            raise errors.translate(op.name, payloads, TypeError())
    elif op.contiguous and not r.flags.c_contiguous:
        r = in_order(r)
    recorded = mask and thread.modes.grad_enabled and r.dtype.kind in "fcV"
    if not (recorded or op.view):
        return wrap(r)
    if len(args) != len(op.params):
        args = op.padded(args, kwargs) if kwargs else args + op.tails[len(args)]
    out = record(op, mask, args, r) if recorded else wrap(r)
    return with_kernels(out) if large else as_view(out, op, args) if op.view else out


def into(out: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Write ``op(*args)`` into `out`, and return `out`. TypeError if the operation takes no ``out=``."""
    out_of(op, {"out": out})
    if LEVELS.n and (kinds := overriding((*args, *kwargs.values(), out))):
        return dispatch(kinds, op.call, args, {**kwargs, "out": out})
    result = op.call(*args, **kwargs)
    try:
        return write_out(op.name, out, result, op.exact)
    except Exception as error:
        errors.rename(op.name, error, (out,))
        raise


def _apply_tuple(op: Op, mask: int, args: tuple[Any, ...], kwargs: dict[str, Any], r: Any) -> Any:
    """The result of `apply` for an operation with several results."""
    if op.contiguous:
        r = _like_tuple(r, [in_order(part) for part in r])
    if mask and thread.modes.grad_enabled and any(part.dtype.kind in "fcV" for part in r):
        return record_tuple(op, mask, op.padded(args, kwargs), r)
    return _like_tuple(r, [wrap(part) for part in r])


def interpret(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with tensors of a transform among its arguments, as the highest of their levels interprets it."""
    given = (*args, *kwargs.values()) if kwargs else args
    if ASKED.n and (kinds := overriding(given)):
        return dispatch(kinds, op.unchecked, args, kwargs)
    modes = thread.modes
    if modes.unseen is not None and not modes.pack_hooks and _all_known(given):
        return modes.unseen(interpreted_at, op, args, kwargs)
    return interpreted_at(op, args, kwargs)


_KNOWN = frozenset((int, float, complex, bool, str, slice, type(None), np.dtype))


def _all_known(values: Iterable[Any]) -> bool:
    """Whether no code of the user's runs where these are looked at."""
    for value in values:
        if type(value) in _KNOWN or isinstance(value, (Tensor, dtypes.dtype)):
            continue
        if type(value) not in (tuple, list) or not _all_known(value):
            return False
    return True


def _operand(level: Any, value: Any) -> Any:
    """An operand of an elementwise operation, an array as a Tensor, a number of NumPy's as Python's."""
    if isinstance(value, _ndarray):
        return level.array(value)
    return value.item() if isinstance(value, np.generic) else value


def interpreted_at(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an operation at the highest level among its operands."""
    level = highest((*args, *kwargs.values()) if kwargs else args)
    assert level is not None
    if NARROW.n and level.differentiates and is_narrow(op, args, kwargs):
        return in_float32(op, args, kwargs)
    if kwargs:
        args, kwargs = op.bind(args, kwargs)
    if op.elementwise:
        for a in args:
            if type(a) is not Lifted and isinstance(a, (_ndarray, np.generic)):
                args = tuple([_operand(level, a) for a in args])
                break
    beside = float_beside(op, args)
    args = args if beside is None or not level.differentiates else in_floats(op, args, beside)
    enabled = thread.modes.grad_enabled
    if enabled and level.shares_graph:
        args = mapped(level.adopt, args)
    result = level.run(op, args, kwargs)
    if not isinstance(result, (LevelPayload, tuple)):  # not a tensor: a bool, a size
        return result
    if op.joins:
        return _joined(op, op.padded(args, kwargs), result)
    mask = 0
    if enabled:
        bit = 1
        for a in args:
            if isinstance(a, Tensor) and a._requires_grad and inner(a, level):
                mask |= bit
            bit <<= 1
        mask &= op.differentiable
    if not (mask or op.view or isinstance(result, tuple)):
        return wrap(result)
    full = op.padded(args, kwargs)
    if isinstance(result, tuple):
        if mask and any(part.dtype.kind in "fcV" for part in result):
            return record_tuple(op, mask, full, result)
        return _like_tuple(result, [wrap(part) for part in result])
    out = in_dtype(record(op, mask, full, result), beside) if mask and result.dtype.kind in "fcV" else wrap(result)
    if op.view and inner(full[0], level) and shares(out._data, full[0]._data):
        as_view(out, op, full, known=True)
    return out


def shares(view: LevelPayload, source: Any) -> bool:
    """Whether a result lies in the memory of an argument of the same level: often that is known of those inside."""
    inside = view.inside
    known = inside is not None and inside._view is not None and inside._view.parent is source.inside
    return known or same_memory(view, source)


def is_narrow(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call is done in float32, and its result rounded."""
    return not op.view and op.about.narrow != "itself" and any_narrow((*args, *kwargs.values()))


def any_narrow(values: Iterable[Any]) -> bool:
    """Whether there is a Tensor of bfloat16 among the arguments of an operation."""
    return any(t._data.dtype.kind == "V" for t in instances(values, Tensor))


def on(call: Callable[..., Any], *args: Any) -> Any:
    """Call an operation inside a rule: recorded if any argument is a Tensor, otherwise its forward on payloads."""
    for a in args:
        if isinstance(a, Tensor):
            return call.op.unchecked(*args)  # type: ignore[attr-defined]
    return call.op.forward(*args)  # type: ignore[attr-defined]


_NUMBERS = (float, int, bool)


def _beside_payloads(given: Any, operands: Any) -> list[Any]:
    """The operands with numbers for arrays of one element, where they are numbers or meet an array on a device.

    A device refuses arrays of the host. As in torch, a tensor without axes is a number to it.
    """
    device = any(map(is_foreign, operands))
    pairs = zip(given, operands, strict=True)
    return [o[()] if type(o) is _ndarray and not o.ndim and (device or type(p) in _NUMBERS) else o for p, o in pairs]


def general(op: Op, args: tuple[Any, ...]) -> Any:
    """An elementwise call off the fast path: operands of different types, arrays, tensors of a transform."""
    try:
        if LEVELS.n and interpreted(args):
            return interpret(op, args, {})
        payloads: list[Any] = []
        mask, bit, promotes, dtype, alike, numbers = 0, 1, op.promotes, None, True, False
        for a in args:
            if isinstance(a, Tensor):
                p = a._data
                if a._requires_grad:
                    mask |= bit
                if promotes & bit and (p.dtype is not dtype or type(p) is not _ndarray):
                    dtype, alike = p.dtype, alike and dtype is None and type(p) is _ndarray
            else:
                p = a
                if promotes & bit and not (a is None and op.defaults):  # None: left out
                    if type(a) in _NUMBERS:
                        numbers = True
                    else:
                        alike = False
            payloads.append(p)
            bit <<= 1
        operands = payloads
        if alike and dtype is not None and dtype.kind in "fc":  # the usual case: only numbers are converted
            if numbers:
                operands, exact = [*payloads], True
                for i in op.promoted:
                    if type(n := operands[i]) in _NUMBERS:
                        # next to half precision, a number keeps its digits, in the rules as well
                        fits = dtype.char != "e" or fits_half(op, n)
                        operands[i], exact = np.asarray(n, dtype if fits else np.float32), exact and fits
                if not exact:
                    args = tuple([a if isinstance(a, Tensor) else p for a, p in zip(args, operands, strict=True)])
        else:
            dtype = common_dtype(op, args, payloads)
            if dtype.char == "e" and any(isinstance(a, np.floating) for a in args):  # they keep their digits, too
                return general(op, tuple([a.item() if isinstance(a, np.floating) else a for a in args]))
            if dtype.kind == "V" and op.about.narrow != "itself":
                return in_float32(op, args, {})
            operands = [cast(p, dtype) if i in op.promoted and p is not None else p for i, p in enumerate(payloads)]
            if any(type(p) is not _ndarray and is_payload(p) for p in payloads):
                operands = _beside_payloads(payloads, operands)
        try:
            r = (by_kernel(op) if (large := op.fused and operands[0].size >= _LARGE) else op.forward)(*operands)
        except (ValueError, TypeError) as error:
            raise errors.translate(op.name, payloads, error) from None
        if type(r) is not _ndarray:
            r = writable(r)
        if dtype.char == "e" and r.dtype.char == "f":
            r = r.astype(dtype)
        if op.contiguous:
            r = in_order(r)
        mask &= op.differentiable
        if mask and thread.modes.grad_enabled and r.dtype.kind in "fcV":
            out = record(op, mask, args, r) if alike else in_dtype(record(op, mask, args, r), float_beside(op, args))
            return with_kernels(out) if large else out
        return wrap(r)
    except Exception as error:
        errors.rename(op.name, error, args)
        raise


# The classes of tensors that take the fast paths below. They are globals because nothing else is as fast. While a mode
# that must see every operation is active, no tensor takes them.
_plain: Any = Tensor
_plain_too: Collection[type] = PLAIN


def see_all(wanted: bool) -> None:
    global _plain, _plain_too
    _plain, _plain_too = (None, ()) if wanted else (Tensor, PLAIN)


def of_payloads(op: Op) -> Callable[..., Any]:
    """The forward of an elementwise operation; its results are contiguous where the entry says so."""
    return (lambda *payloads: in_order(op.forward(*payloads))) if op.contiguous else op.forward


def unary(op: Op) -> Callable[..., Any]:
    """The function that calls an elementwise operation of one argument: a hot path."""
    fn, floats, differentiable, fused = of_payloads(op), op.floats, bool(op.rules), op.fused

    def call(input: Any, *, out: Any = None) -> Any:
        try:
            if out is not None:
                return into(out, op, (input,), {})
            if type(input) is not _plain and type(input) not in _plain_too:
                if isinstance(input, Lifted):
                    return interpret(op, (input,), {})
                if isinstance(input, Tensor):
                    return general(op, (input,))
                raise TypeError(
                    errors.message(
                        f"{op.name}()",
                        expected="a Tensor",
                        found=errors.describe(input),
                        do="convert it with pullback.tensor(...) or pullback.from_numpy(...)",
                    )
                )
            x = input._data
            if (floats and x.dtype.kind in "biu") or (NARROW.n and x.dtype.kind == "V") or (fused and x.size >= _LARGE):
                return general(op, (input,))
            try:
                r = fn(x)
            except (ValueError, TypeError) as error:
                raise errors.translate(op.name, (x,), error) from None
            if type(r) is not _ndarray:
                r = writable(r)
            if differentiable and input._requires_grad and thread.modes.grad_enabled and r.dtype.kind in "fcV":
                return record(op, 1, (input,), r)
            return wrap(r)
        except Exception as error:
            errors.rename(op.name, error, (input,))
            raise

    return call


def _once_more(op: Op, args: tuple[Any, ...], payloads: tuple[Any, ...], error: Exception) -> Any:
    """The call in general, if the number comes first, or one operand lies on the host, as a tensor without axes may;
    otherwise the error."""
    if type(payloads[0]) not in _NUMBERS and is_foreign(payloads[0]) is is_foreign(payloads[1]):
        raise errors.translate(op.name, args if isinstance(error, MemoryError) else payloads, error) from None
    return general(op, args)


def _uncommon(op: Op, args: tuple[Any, Any], operator: bool, reflected: bool) -> Any:
    """The call off the fast path: an operator leaves what it does not know to the class of that operand."""
    tensor, unknown = args[::-1] if reflected else args
    if operator and not isinstance(unknown, OPERANDS):
        return left(op.name, tensor, unknown, reflected)
    return general(op, args)


def binary(op: Op, *, operator: bool = False, reflected: bool = False) -> Callable[..., Any]:
    """The function that calls an elementwise operation of two arguments: the hottest path, so it is written out.

    operator: it implements ``a + b``, so it leaves an operand it does not know to the other side. reflected: it
    implements ``__radd__``.
    """
    fn, floats, plans, differentiable = of_payloads(op), op.floats, op.plans, op.differentiable
    alike = 1 in op.promoted  # the operands

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        if out is not None:
            return into(out, op, (input, other), {})
        if reflected:
            input, other = other, input
        plain = type(input) is _plain or type(input) in _plain_too
        plain_too = type(other) is _plain or type(other) in _plain_too
        if plain and plain_too:
            x, y = input._data, other._data
            if x.dtype is not y.dtype or (floats and x.dtype.kind not in "fcV") or (NARROW.n and x.dtype.kind == "V"):
                return general(op, (input, other))
            mask = (1 if input._requires_grad else 0) | (2 if other._requires_grad else 0)
        elif plain and type(other) in _NUMBERS and input._data.dtype.char in "fdg":
            x, y, mask = input._data, other, 1 if input._requires_grad else 0
        elif alike and plain_too and type(input) in _NUMBERS and other._data.dtype.char in "fdg":
            x, y, mask = input, other._data, 2 if other._requires_grad else 0
        else:
            return _uncommon(op, (input, other), operator, reflected)
        try:
            r = fn(x, y)
        except Exception as error:
            return _once_more(op, (input, other), (x, y), error)
        if type(r) is not _ndarray:
            r = writable(r)  # NumPy returns a number for 0-d operands
        result = blank()
        result._data = r
        result._grad = result._leaf = result._view = result._version_of = None
        mask &= differentiable
        if not mask or not thread.modes.grad_enabled:
            result._edge, result._requires_grad = None, False
            if INFERENCES.n and thread.modes.inference:
                result._version_of = INFERENCE
            return result
        plan = plans[mask]
        which, dtype = plan.from_operands, r.dtype
        if which < 0 or dtype.kind == "c":
            return record(op, mask, (input, other), r)
        # `begin` and `edge_of` are written out, because nothing is called more often.
        # tests/house/test_fast_is_general.py checks that this does the same as `general`.
        node = plan.node_class()
        node._hooks = node.versions = None
        node.plan = plan
        node.saved = (other,) if which == 2 else (input,) if which == 1 else (input, other) if which else ()
        node.writes = writes = WRITES.n
        if mask == 1:
            node._edges = (input._edge or input._leaf or leaf_edge(input),)
        elif mask == 2:
            node._edges = (other._edge or other._leaf or leaf_edge(other),)
        else:
            node._edges = (
                input._edge or input._leaf or leaf_edge(input),
                other._edge or other._leaf or leaf_edge(other),
            )
        node._order = next_order()
        result._edge, result._requires_grad = (node, 0, r.shape, dtype), True
        if writes:
            seal(node)
        return result

    return call


OPERANDS = (Tensor, np.ndarray, np.generic, bool, int, float, complex)


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
    if LEVELS.n and interpreted(tensors):
        return interpret(op, (tensors, dim), {})
    tensors = [wrap(dtypes.known(t)) if isinstance(t, np.ndarray) else t for t in tensors]
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(
                errors.message(f"{op.name}()", expected=f"element {i} to be a Tensor", found=errors.describe(t))
            )
    payloads = [t._data for t in tensors]
    alike = len({p.dtype for p in payloads}) == 1
    dtype = payloads[0].dtype if alike else dtypes.result_type(payloads)
    if dtype.kind == "V":
        return in_float32(op, (tensors, dim), {})
    try:
        r = op.forward(payloads if alike else [cast(p, dtype) for p in payloads], dim)
    except (ValueError, TypeError) as error:
        raise errors.translate(op.name, payloads, error) from None
    return _joined(op, (tensors, dim), in_order(r))


def _joined(op: Op, args: tuple[Any, ...], r: Any) -> Tensor:
    """The result `r` of joining tensors, recorded if one of them requires grad."""
    tensors = args[0]
    if not (thread.modes.grad_enabled and any(t._requires_grad for t in tensors) and r.dtype.kind in "fcV"):
        return wrap(r)
    edges = [edge_of(t) if t._requires_grad else None for t in tensors]
    return record(op, 1, args, r, edges)

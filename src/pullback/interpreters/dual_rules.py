"""The tangent of a result, by the kind of its operation: the rules behind forward mode.

Where nothing is recorded and no other transform is inside, they run on arrays (`array_rule`), as in a backward pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.api import grad
from ..autograd.engine import fit
from ..table.calls import as_view, of_payloads
from ..table.nodes import beside, conjugated
from ..table.op import needs
from ..tensor.arrays import in_order, wrap_axis, writable
from ..tensor.memory import same_memory
from ..tensor.modes import thread, within
from ..tensor.nested import any_instance
from ..tensor.tensor import Tensor
from .batch_rules import by

if TYPE_CHECKING:
    from ..table.op import Op

Values = Sequence[Any]
Along = dict[int, Any]
Way = Callable[[Values, Along, Any, tuple[int, ...]], Any]


_NOTHING: Values = ()


class ArrayRule:
    """The tangent of an operation's result as an array in its own memory, from arrays for tensors.

    takes_batches: whether tangents may have one axis more in front, of a batch.
    """

    def __init__(self, way: Way, takes_batches: bool) -> None:
        self.way, self.takes_batches = way, takes_batches

    def __call__(self, values: Values, along: Along, out: Any, shape: tuple[int, ...]) -> Any:
        """values: the arguments. along: the tangents, by their places. out: the result. shape: the tangent's."""
        tangent = self.way(values, along, out, shape)
        if type(tangent) is not np.ndarray:
            tangent = writable(tangent)
        if tangent.dtype is not out.dtype and tangent.dtype != out.dtype:
            real = tangent.real if tangent.dtype.kind == "c" and out.dtype.kind != "c" else tangent
            tangent = real.astype(out.dtype)
        if tangent.base is None and tangent.shape == shape:
            for t in along.values():
                if t is tangent:
                    break
            else:
                return tangent
        copy = np.empty(shape, out.dtype) if len(shape) > out.ndim else np.empty_like(out)
        copy[...] = tangent
        return copy


def _no_way(values: Values, along: Along, out: Any, shape: Any) -> Any:
    raise AssertionError("the operation is called on the tangent")


ALONE = ArrayRule(_no_way, True)
"""Stands for the operation itself, on the tangent of its first argument as a Tensor, which may have to be a view."""


def array_rule(op: Op) -> ArrayRule | None:
    """The rule of an entry that runs on arrays; None if it needs Tensors."""
    return _array_rule(op, op.about.jvp) if op.bits else None


@functools.cache
def _array_rule(op: Op, own: Callable[..., Any] | None) -> ArrayRule | None:
    if op.joins:
        return ArrayRule(_joining(op), True) if op.about.batch is not None else None  # along an axis
    if own is not None:
        return None if op.view else ArrayRule(_by_its_own(op, own), False)
    if op.kind == "linear" and op.differentiable == 1:
        batch = op.about.batch
        return ArrayRule(_linear(op, batch), True) if isinstance(batch, by) and batch.tied is None else ALONE
    if op.view or op.kind not in ("elementwise", "bilinear"):
        return None
    return ArrayRule(_elementwise(op), True) if op.kind == "elementwise" else ArrayRule(_bilinear(op), False)


def _by_its_own(op: Op, own: Callable[..., Any]) -> Way:
    pick = _picker(op, own)

    def way(values: Values, along: Along, out: Any, shape: Any) -> Any:
        return own(tuple([along.get(i) for i, _ in op.bits]), *pick((*op.padded(tuple(values), {}), out)))

    return way


def _joining(op: Op) -> Way:
    """The operation on all tangents. values: the tensors, and the axis they are joined along."""

    def way(values: Values, along: Along, out: Any, shape: Any) -> Any:
        *parts, dim = values
        batch = shape[: len(shape) - out.ndim]
        rank = max(v.ndim for v in parts)
        tangents = []
        for i, v in enumerate(parts):
            if v.ndim == rank:  # `cat` leaves out an empty tensor of one axis among others
                t = along.get(i)
                t = np.zeros(v.shape, out.dtype) if t is None else t.astype(out.dtype, copy=False)
                tangents.append(np.broadcast_to(t, batch + v.shape) if batch and t.ndim == rank else t)
        return in_order(op.forward(tangents, wrap_axis(dim, out.ndim) + 1 if batch else dim))

    return way


def _linear(op: Op, batch: by) -> Way:
    """The operation itself, on the tangent of its first argument: those that are linear in it alone."""
    forward = of_payloads(op)

    def way(values: Values, along: Along, out: Any, shape: Any) -> Any:
        (t,) = along.values()
        if len(shape) == out.ndim:
            return forward(t, *values[1:])
        rest = op.padded(tuple(values), {})[1 : len(op.params) - len(op.keyword_only)]
        changed = None if any_instance(rest, np.ndarray) else batch.change(t.shape, *rest)
        if changed is not None:
            return forward(t, *changed)
        return np.stack([forward(one, *values[1:]) for one in t]) if len(t) else np.empty(shape, t.dtype)

    return way


def _elementwise(op: Op) -> Way:
    rules = {i: (op.rules[op.params[i]], _picker(op, op.rules[op.params[i]])) for i, _ in op.bits}
    sums = op.forward if op.forward in (np.add, np.subtract) else None  # of the tangents as of the values

    def way(values: Values, along: Along, out: Any, shape: Any) -> Any:
        rank = len(shape)
        for i, t in along.items():
            if values[i].ndim < t.ndim < rank:  # a batch, with fewer axes than others
                along[i] = t.reshape(t.shape[0], *(1,) * (rank - t.ndim), *t.shape[1:])
        if sums is not None and len(along) == len(values):
            return sums(*along.values())
        given = (*values, out) if len(values) == len(op.params) else (*op.padded(tuple(values), {}), out)
        dtype, terms = out.dtype, []
        for i, t in along.items():
            if t.dtype is not dtype and t.dtype != dtype:
                t = t.astype(dtype)
            if t.shape != shape and t.shape[t.ndim - out.ndim :] != out.shape:
                t = np.broadcast_to(t, t.shape[: max(t.ndim - out.ndim, 0)] + out.shape)
            rule, pick = rules[i]
            terms.append(rule(t, *pick(given)))
        return total(terms)

    return way


def _bilinear(op: Op) -> Way:
    forward = of_payloads(op)

    def way(values: Values, along: Along, out: Any, shape: Any) -> Any:
        return total([forward(*[t if j == i else v for j, v in enumerate(values)]) for i, t in along.items()])

    return way


@functools.cache
def _picker(op: Op, rule: Callable[..., Any]) -> Callable[[Values], Values]:
    """The function that takes what a rule needs from all arguments of an operation and its result."""
    names = needs(rule)
    if any(name not in op.params and name.endswith("_shape") for name in names):
        return lambda given: [_named(op, given, given[-1:], name, np.shape) for name in names]
    places = [op.params.index(name) if name in op.params else len(op.params) for name in names]
    if len(places) == 1:
        return lambda given: (given[places[0]],)
    return itemgetter(*places) if places else lambda given: _NOTHING


def zeros(value: Any) -> Any:
    return np.zeros_like(value) if isinstance(value, (Tensor, np.ndarray)) else value * 0


def total(terms: list[Tensor]) -> Tensor:
    found = terms[0]
    for term in terms[1:]:
        found = found + term
    return found


def replaced(op: Op, primals: Any, kwargs: Any, by: dict[int, Any]) -> Tensor:
    """The operation with some of its arguments replaced."""
    found: Tensor = tied(op, [by.get(i, p) for i, p in enumerate(primals)], kwargs)
    return found


def tied(op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of an operation, known as a view if it lies in the memory of its first argument."""
    out = op.unchecked(*args, **kwargs)
    if op.view and isinstance(out, Tensor) and out._view is None and out is not args[0]:
        source = args[0]
        if out._data.size and isinstance(source, Tensor) and same_memory(out._data, source._data):
            return as_view(out, op, op.padded(tuple(args), kwargs), known=True)
    return out


def shaped(tangent: Tensor, out: Tensor) -> Tensor:
    """A tangent with the shape and dtype of its result."""
    if tangent._data.dtype != out._data.dtype:
        if tangent._data.dtype.kind == "c" and out._data.dtype.kind != "c":
            tangent = np.real(tangent)
        tangent = tangent.to(out.dtype)
    return tangent if tangent._data.shape == out._data.shape else tangent.expand(out._data.shape)


def acts_alone(op: Op, primals: Any) -> bool:
    return op.about.holomorphic or not any(isinstance(p, Tensor) and p._data.dtype.kind == "c" for p in primals)


def _shape(t: Tensor) -> Any:
    return t._data.shape


def _named(op: Op, primals: Any, outs: Sequence[Any], name: str, shape: Callable[[Any], Any] = _shape) -> Any:
    """The value for a rule's parameter, by its name."""
    if name in op.params:
        return primals[op.params.index(name)]
    if name.endswith("_shape"):
        return shape(primals[op.params.index(name.removesuffix("_shape"))])
    return outs[int(name.removeprefix("out") or 0)]


def elementwise_tangent(op: Op, primals: Any, tangents: dict[int, Tensor], out: Tensor) -> Tensor:
    terms = []
    for i, t in tangents.items():
        rule = op.rules[op.params[i]]
        if t._data.dtype != out._data.dtype:
            t = t.to(out.dtype)
        if t._data.shape != out._data.shape:
            t = t.expand(out._data.shape)
        values = [_named(op, primals, [out], n) for n in needs(rule)]
        terms.append(rule(beside(t, values) if op.about.flat else t, *values))
    return total(terms)


def by_rule(op: Op, primals: Any, tangents: dict[int, Tensor], outs: Sequence[Any]) -> Sequence[Tensor | None]:
    rule = op.about.jvp
    assert rule is not None
    given = tuple(tangents.get(i) for i, _ in op.bits)
    found = rule(given, *(_named(op, primals, outs, n) for n in needs(rule)))
    return found if isinstance(found, (tuple, list)) else [found]


def transposed(op: Op, primals: Any, tangents: dict[int, Tensor], outs: Sequence[Any]) -> list[Tensor | None]:
    """``J t`` as the vjp of the vjp, which is linear in the cotangent."""
    recorded = thread.modes.grad_enabled
    return within(thread.modes, {"grad_enabled": True}, _transposed, op, primals, tangents, outs, recorded)


def _transposed(
    op: Op, primals: Any, tangents: dict[int, Tensor], outs: Sequence[Any], recorded: bool
) -> list[Tensor | None]:
    floats = [i for i, o in enumerate(outs) if isinstance(o, Tensor) and o._data.dtype.kind in "fcV"]
    cotangents = {i: _leaf(np.zeros_like(outs[i])) for i in floats}
    g: Any = [cotangents.get(i) for i in range(len(outs))] if len(outs) > 1 else cotangents[0]
    turns = op.about.conjugate and any(outs[i]._data.dtype.kind == "c" for i in floats)
    pulled = []
    for i in tangents:
        rule = op.rules[op.params[i]]
        values = [_named(op, primals, outs, n) for n in needs(rule)]
        grad_in = rule(g, *(conjugated(values) if turns else values))
        data = primals[i]._data
        pulled.append(fit(grad_in, (None, 0, data.shape, data.dtype), None))
    pairs = [(p, t) for p, t in zip(pulled, tangents.values(), strict=True) if p is not None and p._requires_grad]
    if not pairs:
        return [None] * len(outs)
    found = grad(
        [p for p, _ in pairs],
        list(cotangents.values()),
        [t for _, t in pairs],
        create_graph=recorded,
        allow_unused=True,
    )
    by_output = dict(zip(cotangents, found, strict=True))
    return [by_output.get(i) for i in range(len(outs))]


def _leaf(t: Any) -> Tensor:
    t._requires_grad = True
    return t

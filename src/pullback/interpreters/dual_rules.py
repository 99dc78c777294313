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
from ..table.calls import as_view
from ..table.nodes import beside, conjugated
from ..table.op import needs
from ..tensor.arrays import in_order, writable
from ..tensor.memory import same_memory
from ..tensor.modes import thread, within
from ..tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from ..table.op import Op

Values = Sequence[Any]
Along = dict[int, Any]


class ArrayRule:
    """The tangent of an operation's result as an array in its own memory, from arrays for tensors.

    takes_batches: whether tangents may have one axis more in front, of a batch.
    """

    def __init__(self, way: Callable[[Values, Along, Any], Any], takes_batches: bool) -> None:
        self._way, self.takes_batches = way, takes_batches

    def __call__(self, values: Values, along: Along, out: Any, batch: tuple[int, ...] = ()) -> Any:
        """values: the arguments. along: the tangents, by their places. out: the result. batch: its size, if any."""
        tangent = self._way(values, along, out)
        if type(tangent) is not np.ndarray:
            tangent = writable(tangent)
        if tangent.dtype != out.dtype:
            real = tangent.real if tangent.dtype.kind == "c" and out.dtype.kind != "c" else tangent
            tangent = real.astype(out.dtype)
        shape = (*batch, *out.shape)
        if tangent.shape == shape and tangent.base is None and not any(tangent is t for t in along.values()):
            return tangent
        copy = np.empty(shape, out.dtype) if batch else np.empty_like(out)
        copy[...] = tangent
        return copy


def array_rule(op: Op) -> ArrayRule | None:
    """The rule of an entry that runs on arrays; None if it needs Tensors."""
    return None if op.view or op.joins or not op.bits else _array_rule(op, op.about.jvp)


@functools.cache
def _array_rule(op: Op, own: Callable[..., Any] | None) -> ArrayRule | None:
    forward = (lambda *values: in_order(op.forward(*values))) if op.contiguous else op.forward

    def by_its_own(values: Values, along: Along, out: Any) -> Any:
        given = (*op.padded(tuple(values), {}), out)
        return own(tuple([along.get(i) for i, _ in op.bits]), *_picker(op, own)(given))  # type: ignore[misc]

    def elementwise(values: Values, along: Along, out: Any) -> Any:
        given = (*op.padded(tuple(values), {}), out)
        terms = []
        for i, t in along.items():
            if t.dtype != out.dtype:
                t = t.astype(out.dtype)
            if t.shape[t.ndim - out.ndim :] != out.shape:
                t = np.broadcast_to(t, t.shape[: max(t.ndim - out.ndim, 0)] + out.shape)
            rule = op.rules[op.params[i]]
            terms.append(rule(t, *_picker(op, rule)(given)))
        return total(terms)

    def linear(values: Values, along: Along, out: Any) -> Any:
        joint = [i for i, _ in op.bits if i < len(values) and values[i] is not None]
        by = {i: along[i] if i in along else zeros(values[i]) for i in joint}
        return forward(*[by.get(i, v) for i, v in enumerate(values)])

    def bilinear(values: Values, along: Along, out: Any) -> Any:
        return total([forward(*[t if j == i else v for j, v in enumerate(values)]) for i, t in along.items()])

    if own is not None:
        return ArrayRule(by_its_own, False)
    ways = {"elementwise": elementwise, "linear": linear, "bilinear": bilinear}
    return ArrayRule(ways[op.kind], op.kind == "elementwise") if op.kind in ways else None


@functools.cache
def _picker(op: Op, rule: Callable[..., Any]) -> Callable[[Values], Values]:
    """The function that takes what a rule needs from all arguments of an operation and its result."""
    names = needs(rule)
    if any(name not in op.params and name.endswith("_shape") for name in names):
        return lambda given: [_named(op, given, given[-1:], name, np.shape) for name in names]
    places = [op.params.index(name) if name in op.params else len(op.params) for name in names]
    if len(places) == 1:
        return lambda given: (given[places[0]],)
    return itemgetter(*places) if places else lambda given: ()


def among(values: Tensor, ndim: int) -> Tensor:
    """Tensors of a batch as those of `ndim` axes, with axes of length 1 after that of the batch."""
    shape = values._data.shape
    more = ndim + 1 - len(shape)
    return wrap(values._data.reshape(shape[0], *(1,) * more, *shape[1:])) if more > 0 else values


def zeros(value: Any) -> Any:
    return np.zeros_like(value) if isinstance(value, (Tensor, np.ndarray)) else value * 0


def total(terms: list[Tensor]) -> Tensor:
    return sum(terms[1:], terms[0])


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

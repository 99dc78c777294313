"""The source of a NaN or an infinity: the first one of a forward pass, and of a backward pass.

In anomaly mode, `look_at_tensor` is called with every tensor that is made. A finite tensor costs one pass over its
elements (a dot product, which allocates nothing). A tensor that is not finite gets a `Bad`, which names the cause, and
every result computed from it inherits the `Bad`. So the error about a NaN that a gradient meets, or makes, names the
first cause. A NaN in the forward pass alone is not an error, since it may be masked. It becomes one when the backward
pass shows that the loss depends on it.
"""

from __future__ import annotations

import math
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import errors
from ..autograd.api import FirstPasses
from ..autograd.context import FunctionNode
from ..autograd.contract import place as place_of_function
from ..autograd.node import FREED, reachable
from ..autograd.saved import PackedTuple
from ..tensor.memory import LevelPayload
from ..tensor.modes import thread
from ..tensor.tensor import Tensor
from .listeners import ByTensor
from .places import Call, Place, at, is_elementwise, place_of_node


@dataclass(eq=False, repr=False)
class Bad:
    """The origin of the first element that is not finite: "nan" or "inf", the call, its line and the index.

    value: the element as printed: nan, inf or -inf. values: the operands at that index, in words. before: the infinity
    that an operand already had. given: the element was among the values that the tensor was made from, or came with an
    operand from outside anomaly mode.
    """

    kind: str
    name: str
    place: Place | None
    index: list[int]
    count: int
    size: int
    values: str
    before: Bad | None
    given: bool
    value: str
    missing: bool = False

    def __str__(self) -> str:
        name = f"{self.name}()" if self.name.isidentifier() else self.name
        how = "came with" if self.given else "returned"
        text = f"{name} {how} {self.value} for {self.count} of {self.size} elements, first at index {self.index}"
        text += f", from {self.values}" * bool(self.values) + f"\n    at {at(self.place)}" * (self.place is not None)
        return text + (f"\n    where before that {self.before}" if self.before is not None else "")


BAD: ByTensor[Bad] = ByTensor()


_MANY = 1000


class _Pending(threading.local):
    def __init__(self) -> None:
        # the tensors made since the last node that are not finite; the last few
        self.tensors: deque[weakref.ref[Tensor]] = deque(maxlen=_MANY)


_pending = _Pending()


def all_finite(a: np.ndarray[Any, Any]) -> bool:
    """Whether there is no NaN and no infinity among floating point or complex numbers.

    >>> import numpy as np
    >>> all_finite(np.array([1.0, 1e300])), all_finite(np.array([1.0, np.inf]))
    (True, False)
    """
    if a.dtype.kind == "f" and a.itemsize in (4, 8) and a.flags.c_contiguous:
        flat = a.reshape(-1)
        if math.isfinite(np.dot(flat, flat)):  # the product may overflow, so only a finite one is certain
            return True
    return bool(np.isfinite(a).all())


def _payload(value: Any) -> Any:
    """The array that a Tensor holds; inside a transform, the whole batch or the primal."""
    while isinstance(value, (Tensor, LevelPayload)):
        value = value._data if isinstance(value, Tensor) else value.inside
    return value


def _is_floating(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.dtype.kind in "fc"


# Forward --------------------------------------------------------------------------------------------------------------


def look_at_tensor(t: Tensor) -> None:
    """Note the cause if a tensor that was just made has elements that are not finite."""
    data, modes = t._data, thread.modes
    if type(data) is not np.ndarray or data.dtype.kind not in "fc" or all_finite(data):
        return
    if modes.running is not None and not modes.grad_enabled:  # a gradient: `check_nan` covers those
        return
    BAD.put(t, _first(t, data))
    _pending.tensors.append(weakref.ref(t))


def _first(t: Tensor, data: np.ndarray[Any, Any]) -> Bad:
    """The cause of the elements of `t` that are not finite: that of an operand, or this call."""
    call = Call(sys._getframe(2), t)
    bad = np.isnan(data)
    kind = "nan" if bad.any() else "inf"
    if kind == "inf":
        bad = np.isinf(data)
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    operands = [o for o in call.operands if _is_floating(o._data)]
    before = None
    for o in operands:
        held = BAD.get(o)
        if held is None and not all_finite(o._data):
            held = _given(o)
        if held is not None and held.kind == kind:
            return held
        before = before or held
    each = is_elementwise(sys._getframe(2))
    given = [o for o in call.given if _is_floating(_payload(o)) and o is not data]
    values = ", ".join(_operand(o, index, data.shape, each) for o in given)
    if kind == "inf" and data.dtype.kind == "f":
        bad = data == data[index]  # an infinity of the other sign has another cause
    return Bad(
        kind,
        call.title(),
        call.place,
        list(index),
        int(bad.sum()),
        data.size,
        values,
        before,
        not call.operands,
        _printed(data[index], kind),
        kind == "nan" and any(isinstance(o, np.ndarray) and np.isnan(o).any() for o in given),
    )


def _printed(value: Any, kind: str) -> str:
    """A number that is not finite: nan, or an infinity with its sign."""
    return kind if kind == "nan" or value.dtype.kind == "c" else str(value)


def _operand(o: Any, index: tuple[int, ...], shape: Any, each: bool) -> str:
    """The element of an operand that an element of the result was computed from; if all elements count, their range."""
    value = element(o, index, shape) if each else None
    if value is not None:
        return repr(value)
    data = _payload(o)
    data = np.abs(data) if data.dtype.kind == "c" else data
    span = f" in [{data.min()}, {data.max()}]" if data.size else ""
    return errors.describe(o) + span


def _given(o: Tensor) -> Bad:
    """The `Bad` of an operand that was made before anomaly mode was on."""
    bad = np.isnan(o._data)
    kind = "nan" if bad.any() else "inf"
    bad = bad if kind == "nan" else np.isinf(o._data)
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    value = _printed(o._data[index], kind)
    name = f"the operand {errors.describe(o)}"
    return Bad(kind, name, None, list(index), int(bad.sum()), o._data.size, "", None, True, value)


def look_at_node(node: Any) -> None:
    """Note, on a node that was just made, which outputs are not finite, and where."""
    for ref in _pending.tensors:
        t = ref()
        if t is not None and t._edge is not None and t._edge[0] is node and (bad := BAD.get(t)) is not None:
            at_ = np.flatnonzero(np.isnan(t._data))[:_MANY]
            node.metadata.setdefault("nonfinite", {})[t._edge[1]] = bad, at_
    _pending.tensors.clear()


def kept(node: Any) -> Sequence[Any]:
    """The values that a node has saved, as far as they can be read."""
    saved = node._saved if isinstance(node, FunctionNode) else getattr(node, "saved", ())
    return () if saved is FREED or type(saved) is PackedTuple else saved


# Backward -------------------------------------------------------------------------------------------------------------


def check_forward(node: Any, g: Any) -> None:
    """Refuse to go back through a NaN of the forward pass whose gradient is not zero: the loss depends on it."""
    for nr, (bad, places) in node.metadata.get("nonfinite", {}).items():
        data = _payload(g[nr] if node._outputs > 1 else g)
        if bad.kind == "nan" and isinstance(data, np.ndarray) and data.ravel()[places].any():
            raise RuntimeError(
                f"The forward pass made nan, and the result depends on it, by {node.name()}: {bad}\n"
                f"  What to do: {_MISSING if bad.missing else _advice(bad.name)}."
            )


_DOMAINS = {
    "sqrt": "sqrt needs an input >= 0, and one > 0 for its derivative: write sqrt(x + 1e-12), say",
    "hypot": "hypot has no derivative at (0, 0): write sqrt(x**2 + y**2 + 1e-12), say",
    "atan2": "atan2 has no derivative at (0, 0): leave that element out, or add a small number",
    "rsqrt": "rsqrt needs an input > 0",
    "log": "log needs an input > 0",
    "log2": "log2 needs an input > 0",
    "log10": "log10 needs an input > 0",
    "log1p": "log1p needs an input > -1",
    "asin": "asin needs an input in [-1, 1]",
    "acos": "acos needs an input in [-1, 1]",
    "pow": "a fractional power needs a base >= 0",
    "div": "0 / 0 and inf / inf are nan: add a small number to the divisor",
    "sub": "inf - inf is nan: keep what is subtracted finite",
    "exp": "exp overflows: subtract the maximum first, as softmax and logsumexp do",
}


_MISSING = (
    "leave out what is missing before anything is computed of it: x[ok] and data[ok], with ok = ~numpy.isnan(data); or "
    "fill it, data = numpy.where(ok, data, 0.0). A mask that comes later leaves nan in the gradient"
)


def _advice(name: str) -> str:
    return _DOMAINS.get(name, "keep the operands finite, and in the domain of the operation, e.g. with clamp()")


def look_at_gradients(begun: Iterable[Any], gradients: Iterable[Any]) -> None:
    """Warn, once in a process, of NaN among the gradients of one of its first passes, if all that it began with is
    finite; PyTorch says nothing. Within `detect_anomaly` it is an error already."""
    FirstPasses.left -= 1
    for g in gradients:
        data = g._data if isinstance(g, Tensor) else g
        if type(data) is not np.ndarray or data.dtype.kind not in "fc" or all_finite(data):
            continue
        count = int(np.isnan(data).sum())
        if count and all(_is_finite_array(t) for t in begun if t is not None):
            FirstPasses.left = 0
            warnings.warn(
                f"A gradient is nan in {count} of {data.size} elements, though what was differentiated is finite.\n"
                "  What to do: run it within `with pullback.autograd.detect_anomaly():`, forward and backward, which "
                "names the line: nan among the data that is masked too late, a square root of 0, or a branch that is "
                "not taken, say. (The first hundred passes are looked at, and this is said once.)",
                stacklevel=errors.callers_level(),
            )
            return


def _is_finite_array(t: Any) -> bool:
    data = getattr(t, "_data", None)
    return type(data) is np.ndarray and data.dtype.kind in "fc" and all_finite(data)


def check_gradients(node: Any, grads: Sequence[Any], g: Any, saved: Sequence[Any], inf: bool) -> None:
    """Refuse NaN (and infinity, if `inf`) among the gradients that a node sends, given its gradient and its saved
    values."""
    for i, grad in enumerate(grads):
        data = _payload(grad)
        if not isinstance(data, np.ndarray) or data.dtype.kind not in "fcV":
            continue
        if data.dtype.kind != "V" and all_finite(data):
            continue
        bad, kind = np.isnan(data), "nan"
        if not bad.any():
            bad, kind = np.isinf(data), "inf"
            if not inf:
                if bad.any():
                    _note_infinity(node, i, bad, g, saved)
                continue
        if bad.any():
            index = tuple(int(k) for k in np.argwhere(bad)[0])
            raise RuntimeError(
                f"Function '{node.name()}' returned {kind} values in its {i}th output: {int(bad.sum())} of {data.size} "
                f"elements, first at index {list(index)}.{_story(node, i, index, data.shape, g, saved)}"
            )


class _Infinities(threading.local):
    """The infinite gradients that were made of finite ones in a pass: the node, what is known of it, and what to do."""

    def __init__(self) -> None:
        self.of: Any = None
        self.found: list[tuple[weakref.ref[Any], str, str]] = []


_infinities = _Infinities()
_FEW = 16


def _note_infinity(node: Any, i: int, bad: Any, g: Any, saved: Sequence[Any]) -> None:
    """Note that a node made an infinite gradient: a later node may make nan of it."""
    running = thread.modes.running_pass
    if _infinities.of is None or _infinities.of() is not running:
        _infinities.of, _infinities.found = weakref.ref(running), []
    came = [_payload(part) for part in (g if node._outputs > 1 else (g,))]
    if len(_infinities.found) < _FEW and all(not _is_floating(a) or all_finite(a) for a in came):
        index = tuple(int(k) for k in np.argwhere(bad)[0])
        text, arrived = _there(node, i, index, bad.shape, g, saved)
        _infinities.found.append((weakref.ref(node), text, _cure(node, arrived)))


def _infinity_behind(node: Any) -> tuple[str, str, str] | None:
    """The name of the node that made the infinite gradient that came to `node` in this pass, and what was noted."""
    if _infinities.of is not None and _infinities.of() is thread.modes.running_pass:
        for ref, text, cure in reversed(_infinities.found):
            other = ref()
            if other is not None and any(n is node for n in reachable([other])):
                return other.name(), text, cure
    return None


def _there(
    node: Any, i: int, index: tuple[int, ...], shape: Any, g: Any, saved: Sequence[Any]
) -> tuple[str, float | complex | None]:
    """The line of a node and the values at an element of its gradient `i`, and the gradient that came in there."""
    text = ""
    if (place := place_of_node(node)) is not None:
        text += f"\n  The forward call: {at(place)}"
    alone = node.op.elementwise if _is_operation(node) else True
    came = element(g, index, shape) if node._outputs == 1 and alone else None
    values = [
        f"{name} = {v!r}" for name, value in _named(node, i, saved) if (v := element(value, index, shape)) is not None
    ]
    if came is not None:
        values.append(f"the gradient that came in = {came!r}")
    if values:
        text += f"\n  There: {', '.join(values)}."
    return text, came


def _story(node: Any, i: int, index: tuple[int, ...], shape: Any, g: Any, saved: Sequence[Any]) -> str:
    """All that is known about the bad element of gradient `i`: lines, each with a newline in front."""
    text, came = _there(node, i, index, shape, g, saved)
    first = _first_of_forward(node)
    if first is not None:
        text += f"\n  The first {first.kind} was made in the forward pass: {first}"
    if first is not None and first.missing:
        text += f"\n  What to do: {_MISSING}."
    elif came == 0:
        text += _unused(node)
    elif came is not None and np.isinf(came) and (behind := _infinity_behind(node)) is not None:
        name, there, cure = behind
        text += f"\n  The infinity was made in this pass by '{name}', of a finite gradient.{there}"
        text += f"\n  What to do: {cure}."
    elif first is None:
        text += f"\n  What to do: {_cure(node, came)}."
    return text


def _cure(node: Any, came: Any) -> str:
    """The remedy for a bad gradient that a node made: for a Function with finite input, a look at its backward."""
    if not isinstance(node, FunctionNode):
        return _advice(_operation(node))
    backward = f"{node._forward_cls.__name__}.backward ({place_of_function(node._forward_cls.backward)})"
    if came is None or np.isfinite(came):
        return f"look at {backward}, which made it: it divides by 0 or leaves the domain of a function, say"
    return f"find what sent that gradient to {backward}"


def _operation(node: Any) -> str:
    return str(node.op.name if _is_operation(node) else node.name())


def _is_operation(node: Any) -> bool:
    """Whether a node belongs to an operation of the table and has a plan; a Function's may have any attribute."""
    return not isinstance(node, FunctionNode) and hasattr(node, "op") and hasattr(node, "plan")


def _named(node: Any, i: int, saved: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The saved values that the rule for gradient `i` got, with their names."""
    if not _is_operation(node):
        yield from ((f"saved_tensors[{k}]", v) for k, v in enumerate(saved))
    elif len(node.plan.calls) > i:
        rule, pick = node.plan.calls[i]
        code = rule.__code__
        names = code.co_varnames[1 : code.co_argcount]
        # in other operations, only the differentiated argument has the same elements
        of = names if node.op.elementwise else (node.op.params[node.plan.wanted[i]],)
        yield from ((name, value) for name, value in zip(names, pick(saved), strict=False) if name in of)


def _first_of_forward(node: Any) -> Bad | None:
    """The oldest NaN among the forward results that `node` was computed from; failing that, the oldest infinity."""
    found: dict[str, tuple[int, Bad]] = {}
    for other in reachable([node]):
        for bad, _ in other.metadata.get("nonfinite", {}).values():
            if bad.kind not in found or found[bad.kind][0] < other._order:
                found[bad.kind] = other._order, bad
    return found["nan"][1] if "nan" in found else found["inf"][1] if "inf" in found else None


def _unused(node: Any) -> str:
    """The sentence for an incoming gradient of 0: the result does not depend on this element."""
    text = (
        "\n  The gradient that came in is 0 there: the result does not use this element. But the derivative is not "
        "finite, and 0 * inf is nan."
    )
    chooser = _where_above(node)
    name = _operation(node)
    safe = (
        "x_safe = numpy.where(condition, x, 1.0) before, y = numpy.where(condition, "
        f"{name if name.isidentifier() else 'f'}(x_safe), 0.0) after"
    )
    if chooser is None:
        return f"{text}\n  What to do: choose a safe input before the operation, not its result after it: {safe}."
    place = place_of_node(chooser)
    return (
        f"{text}\n  It is the branch not taken of the `where`{f' at {at(place)}' if place else ''}: it chooses between "
        f"results, and both branches are differentiated.\n  What to do: make the input safe: {safe}."
    )


def _where_above(node: Any) -> Any:
    """The nearest `where` that the result of `node` went into, element by element, or None."""
    running = thread.modes.running_pass
    found = [
        n
        for n in reachable([edge[0] for edge in running.roots], running.needed)
        if n._order < node._order and _operation(n) in ("where", "masked_fill", "nan_to_num")
    ]
    for n in sorted(found, key=lambda n: -n._order):
        seen: set[Any] = set()
        stack = [n]
        while stack:
            seen.add(below := stack.pop())
            if below is node:
                return n
            if below is n or (_is_operation(below) and below.op.elementwise):
                stack += [e[0] for e in below._edges if e is not None and e[0] not in seen]
    return None


def element(value: Any, index: tuple[int, ...], shape: Any) -> Any:
    """One element of a value that has the given shape or broadcasts to it; otherwise None."""
    data = _payload(value)
    if isinstance(data, (int, float, complex)):
        return data
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "fciub":
        return None
    try:
        return np.broadcast_to(data, shape)[index].item()
    except ValueError:
        return None

"""In-place writes and the graph: which tensors may be written to, and which histories change.

A recorded write makes the tensor the output of the operation that computed the new values. If the tensor is a view, its
base becomes the output of a node that puts in the values. In either case every living view of that memory is made
again, in the graph, from its base.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..autograd.node import carry_retained
from ..kernels.boxes import Boxes, apart
from ..tensor.memory import LevelPayload, View, refused_write, same_memory
from ..tensor.modes import thread, within
from ..tensor.tensor import Tensor
from ..tensor.views import (
    Lost,
    keep_values,
    lose,
    overwritten,
    payload_of,
    refuse_inference,
    refuse_memory,
)
from .calls import record
from .levels import highest, inner
from .nodes import note_versions
from .op import Op

_FEW = 16  # up to this number of views it takes less time to look at each of them
Wrote = Callable[[Tensor, Tensor], bool | None]
"""Says whether a view, the first argument, was written to by a write to the second; None if it is what was written."""


class Through:
    """The entry that puts values into a tensor through the steps that lead to a view of it, and the one that takes the
    part at an index; `assembly.py` puts them here.

    They are called as ``put(input, values, steps)`` and ``part(input, index)``.
    """

    op: ClassVar[Op]
    part: ClassVar[Op]


def refuse_write(t: Tensor, others: tuple[Any, ...] = ()) -> None:
    """Raise if `t` must not be written in place. Called before anything is computed or changed."""
    refuse_memory(t._data)
    refuse_turn(t, others)


def refuse_turn(t: Tensor, others: tuple[Any, ...] = ()) -> None:
    """Raise if `t` must not become the output of another operation, whatever memory it has."""
    refuse_inference(t)
    keep_values(t)
    if not thread.modes.grad_enabled:
        return
    view, which, base = t._view, "a leaf Variable", t
    if view is not None:
        which, base = "a view of a leaf Variable", view.base
    tracked = t._requires_grad or base._requires_grad
    sources = [o for o in others if isinstance(o, Tensor) and o._requires_grad]
    if not (tracked or sources):
        return
    for source in sources:
        if isinstance(source, Lost):
            raise source._refusal()
    if view is not None and view.made:
        raise refused_write(view, t._place, "is being")
    if tracked and base._edge is None:
        raise RuntimeError(
            f"{which} that requires grad is being used in an in-place operation.\n"
            "  What to do: use the out-of-place operation, as x = x * 2 for x *= 2, or begin with a copy, "
            "x = x.clone(), or x.copy() as of an array. To change values alone, as a step of training does, write "
            "within pullback.no_grad()."
        )


def zero_gradients(parameters: Sequence[Tensor], set_to_none: bool) -> None:
    """Set the gradients of parameters to None, or to zero in place; if one must not be written to, none is changed."""
    if set_to_none:
        for p in parameters:
            p.grad = None
        return
    grads = [grad for p in parameters if (grad := p.grad) is not None]
    for grad in grads:
        refuse_memory(grad._data)
        refuse_inference(grad)
    for grad in grads:
        if grad.grad_fn is not None:  # recorded by backward(create_graph=True)
            grad.detach_()
        else:
            grad.requires_grad_(False)
        grad.zero_()


def way_to(t: Tensor) -> tuple[Tensor, tuple[tuple[Any, tuple[Any, ...]], ...]]:
    """The base of a tensor (itself if it is not a view), and the operations with arguments from there to the tensor."""
    found: list[tuple[Any, tuple[Any, ...]]] = []
    while t._view is not None:
        found.append((t._view.op, t._view.args))
        t = t._view.parent
    return t, tuple(found[::-1])


def put(t: Tensor, result: Tensor) -> None:
    """Write the values of `result`, which fit, into the memory of `t`."""
    if not isinstance(result._data, LevelPayload) and not isinstance(t._data, LevelPayload):
        t._data[...] = result._data
        return
    level = highest((t, result))
    assert level is not None
    if inner(t, level) is None:
        level.take_in(t)
    within(thread.modes, {"assigning": True}, level.assign, t, inner(result, level) or level.constant(result))


def take_history(t: Tensor, result: Tensor, wrote: Wrote | None = None, part: Any = None) -> None:
    """Make `t`, after a write to its memory, the output of the node that made `result`.

    wrote: whether a view was written to; by default, whether it shares memory with `t`. part: a part of the memory of
    the base, taken by numbers and slices, that holds all that was written; None if that is not known.
    """
    base, way = way_to(t)
    if wrote is None and way and all(op is Through.part for op, _ in way):
        part = t._data
    views = _concerned(base, part)
    t._bump(views)
    if result._edge is None:
        look_at_parts(t, wrote)
        return
    if result._data is not t._data:
        _save_itself(t, result)
    if way:
        mask = 3 if base._requires_grad else 2
        result = record(Through.op, mask, (base, result, way), base._data)
    assert result._edge is not None
    node, nr, _, _ = result._edge
    edge = (node, nr, base._data.shape, base._data.dtype)
    if base._edge is not None:
        carry_retained(base, base._edge, edge)
    base._edge = edge
    base._requires_grad = True
    if thread.modes.written is not None:
        thread.modes.written.append(weakref.ref(base))
    memory = base._share_version()
    for view in views:
        how = view._view
        assert how is not None
        if how.base is not base or how.made:
            how.reached = memory.n
            if how.base is base:
                lose(view)
        elif _look_at_part(view, t, wrote) or not view._requires_grad:
            _make_again(view, how)
    memory.looked_at()


def _concerned(base: Tensor, part: Any) -> list[Tensor]:
    """The living views that a write to a part of a tensor that is no view may concern; all if the part is None.

    Of many, those whose boxes do not meet the part's are left out, where the write leaves all of them as it was.
    """
    memory = base._share_version()
    views, whole = memory.views, base._data
    if part is None or len(views) <= _FEW or not base._requires_grad or type(whole) is not np.ndarray:
        return memory.living()
    if memory.boxes is None or memory.boxes[1].whole is not whole:
        memory.boxes = views, Boxes(whole)
    boxes: Boxes = memory.boxes[1]
    if memory.boxes[0] is not views:  # the dead ones have been dropped since
        numbers = {id(ref): i for i, ref in enumerate(memory.boxes[0])}
        boxes.renumber([numbers.get(id(ref), -1) for ref in views])
        memory.boxes = views, boxes
    written = None if thread.modes.assigning else boxes.of(part)
    if written is None:
        return memory.living()
    found = []
    for number in boxes.meet(written, len(views)):
        view = views[number]()
        if view is None or view._view is None:
            continue
        if not boxes.is_known(number) and _keeps_its_place(view, base) and (own := boxes.of(payload_of(view))):
            boxes.put(number, own)
            if apart(own, written):
                continue
        found.append(view)
    return found


def _keeps_its_place(view: Tensor, base: Tensor) -> bool:
    """Whether a view is a part of its base whose place in the graph a write to other parts does not change."""
    how = view._view
    if how is None or how.made or not view._requires_grad or type(payload_of(view)) is not np.ndarray:
        return False
    start, way = way_to(view)
    return start is base and all(op is Through.part for op, _ in way)


def look_at_parts(t: Tensor, wrote: Wrote | None = None) -> None:
    """After a write that is not recorded, although recording is on, look at the views that it may have changed."""
    memory = t._version_of
    if memory is not None and memory.views and thread.modes.grad_enabled:
        for view in memory.living():
            _look_at_part(view, t, wrote)
        memory.looked_at()


def _look_at_part(view: Tensor, t: Tensor, wrote: Wrote | None) -> bool:
    """Whether a write to `t` may have changed a view. What saved a part that was left as it was may still use it.

    If one element was changed, that says so when it is used: from an array the same line takes a number.
    """
    how = view._view
    assert how is not None
    if not _may_have_changed(view, how, t, wrote):
        return False
    how.reached = view._version
    return True


def _may_have_changed(view: Tensor, how: View, t: Tensor, wrote: Wrote | None) -> bool:
    payload, level = payload_of(view), None
    if how.op is not Through.part:
        return True
    if isinstance(payload, LevelPayload):
        level = payload.level
        if payload.inside is None:  # it has no memory: what a trace records is run later
            return True
    if thread.modes.assigning or level is not (t._data.level if isinstance(t._data, LevelPayload) else None):
        return True
    written = None if view is t else may_share(payload, t._data) if wrote is None else wrote(view, t)
    if written and not payload.ndim and all(type(p) is int for p in how.args[0]):
        overwritten(view)
    return written is not False


def may_share(a: Any, b: Any) -> bool:
    """Whether two payloads share elements, or it cannot be known."""
    if not (type(a) is np.ndarray and type(b) is np.ndarray):
        return same_memory(a, b)
    try:
        return bool(np.shares_memory(a, b, max_work=100))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _save_itself(t: Tensor, result: Tensor) -> None:
    """If the node of `result` saved it, let the node save `t` instead, which now has the same values.

    The values are then kept once, and a later write to `t` is noticed.
    """
    node = result._edge[0]  # type: ignore[index]
    saved = [v for v in getattr(node, "saved", ()) if isinstance(v, Tensor) and v._data is result._data]
    for alias in saved:
        alias._data, alias._version_of = t._data, t._share_version()
    if saved:
        note_versions(node)


def _make_again(t: Tensor, view: View) -> None:
    """Give a view a new place in the graph, after the new node of its parent."""
    if view.op is None or not view.parent._requires_grad:
        return
    made = record(view.op, 1, (view.parent, *view.args), payload_of(t))
    assert made._edge is not None
    if t._edge is not None:
        carry_retained(t, t._edge, made._edge)
    t._edge, t._requires_grad = made._edge, True

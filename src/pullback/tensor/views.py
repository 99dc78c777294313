"""The effect of an in-place write on the views of that memory: the write is counted, and some views lose their place.

A view made while nothing was recorded, or as one of several, cannot follow its base to a new place in the graph.
It becomes `Lost`: its values can be read, but recording an operation on it is an error that says why. An element that
was read by an index becomes `Overwritten`: it shows the new value, and says so when it is looked at.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import errors
from .memory import INFERENCE, KEEPERS, WRITES, LevelPayload, View, next_write, refused_write
from .modes import thread
from .overrides import disabled_torch_function_impl
from .tensor import PLAIN, Edge, Tensor, wrap


class Lost(Tensor):
    """A view whose base was written to, and which cannot get a new place in the graph because of the way it was made.

    Asking for its place raises the error. `lose` makes a tensor one.
    """

    __slots__ = ()

    __torch_function__ = staticmethod(disabled_torch_function_impl)  # results computed from it are plain Tensors

    _whole: type[Tensor] = Tensor
    """The class it had before, which tensors made from it get."""

    @property
    def _edge(self) -> Edge | None:
        if self._view is not None:
            raise self._refusal()
        return self._place

    @_edge.setter
    def _edge(self, edge: Edge | None) -> None:
        _slot_of_edge.__set__(self, edge)

    @property
    def _place(self) -> Edge | None:
        return _slot_of_edge.__get__(self)

    def _refusal(self) -> RuntimeError:
        assert self._view is not None
        return refused_write(self._view, self._place, "its base or another view of its base has been")

    def __repr__(self) -> str:
        return self._shown("Invalid")


PLAIN.add(Lost)

_slot_of_edge: Any = Tensor.__dict__["_edge"]


class Overwritten(Tensor):
    """An element that was taken by an index, ``a[0]``, before that place of `a` was written to.

    It is a view, so it has the new value, as in torch; from an array the same line takes a number, which keeps the old
    one. The first look at its values says so, and makes it a plain tensor again.
    """

    __slots__ = ()

    __torch_function__ = staticmethod(disabled_torch_function_impl)

    _whole: type[Tensor] = Tensor

    @property
    def _data(self) -> Any:
        unmark(self)
        errors.tell(
            "An element that was taken by an index, a[i], is used after its tensor was written to at that place. It is "
            "a view, as in PyTorch, and has the value that was written; of a NumPy array, a[i] is a number and keeps "
            "the old one.\n"
            "  What to do: for the old value, take a copy before the write, old = a[i].copy(); exchange elements with "
            "a[[i, j]] = a[[j, i]]. For the new value, take a[i] after the write.",
            errors.callers_level(),
        )
        return self._data

    @_data.setter
    def _data(self, data: Any) -> None:
        unmark(self)
        self._data = data


PLAIN.add(Overwritten)

_slot_of_data: Any = Tensor.__dict__["_data"]


def payload_of(view: Tensor) -> Any:
    """The payload of a view, which is not a look at its values: it does not warn."""
    return _slot_of_data.__get__(view)


_MARKED: dict[type[Tensor], weakref.WeakValueDictionary[Any, Any]] = {
    mark: weakref.WeakValueDictionary({Tensor: mark}) for mark in (Lost, Overwritten)
}
"""For each of the two, itself, and for each class derived from Tensor that became one, a class that is both."""


def _mark(view: Tensor, mark: type[Tensor]) -> None:
    cls, known = type(view), _MARKED[mark]
    if issubclass(cls, mark):
        return
    marked = known.get(cls)
    if marked is None:
        marked = known[cls] = type(cls.__name__, (mark, cls), {"__slots__": (), "_whole": cls})
    view.__class__ = marked


def lose(view: Tensor) -> None:
    """Make a view that cannot follow a write to its base raise when asked for its place in the graph."""
    _mark(view, Lost)
    view._requires_grad = True


def overwritten(view: Tensor) -> None:
    """Make an element whose place was written to say so when its values are looked at."""
    _mark(view, Overwritten)


def unmark(view: Any) -> None:
    """Take that back: something else says it, or a transform takes the view in."""
    if isinstance(view, Overwritten):
        view.__class__ = view._whole  # type: ignore[assignment]


def _bump(self: Tensor, views: list[Tensor] | None = None) -> None:
    """Count one write to this tensor's memory. views: those that it concerns, if that is known."""
    memory = self._version_of
    if memory is INFERENCE:
        return
    if memory is None:
        memory = self._share_version()
    memory.wrote()
    WRITES.n = next_write()
    for view in (memory.living() if memory.views else ()) if views is None else views:
        assert view._view is not None
        tracked = view._view.base._requires_grad
        if view._view.made and (tracked or view._place is not None):
            lose(view)
        elif not tracked and view._place is not None and not _is_of_a_leaf(view._view):
            view._edge, view._requires_grad = None, False  # its base left the graph by detach_()


def _is_of_a_leaf(how: View | None) -> bool:
    """Whether a view was made of another one that requires grad since, and is a leaf: its place depends on that."""
    while how is not None:
        if how.parent._requires_grad and how.parent._edge is None:
            return True
        how = how.parent._view
    return False


def refuse_inference(t: Tensor) -> None:
    """Raise if `t` was made in inference mode and is to be written to outside of it."""
    if t._version_of is INFERENCE and not thread.modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.\n"
            "  What to do: make a clone() of it, and write to that."
        )


def refuse_memory(data: Any, one_value: bool = False, same: bool = False) -> None:
    """Raise if a payload's memory must not be written to.

    one_value: every element gets the same value, so elements may overlap. same: the written elements get one value, or
    are given by positions, and the last write wins; elements may then share memory, but not all along an axis.
    """
    if not isinstance(data, np.ndarray):
        data = data.layout if isinstance(data, LevelPayload) else None
        if data is None:
            return
    flags = data.flags
    if not (one_value or flags.c_contiguous) and overlaps(data, same):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )
    if not flags.writeable:
        raise RuntimeError(
            errors.message(
                "in-place write",
                expected="writable memory",
                found="a read-only array",
                do="clone() it first; or, where it is what as_strided() gave inside of a transform, have the "
                "transform begin with a contiguous() tensor, for vmap one with the batch in front",
            )
        )


def refuse_shared(size: tuple[int, ...], stride: tuple[int, ...]) -> None:
    """Raise if elements of a view of this size and these steps, in elements, share memory: it cannot be replaced."""
    refuse_memory(np.lib.stride_tricks.as_strided(np.empty(1, np.bool_), size, stride))


def overlaps(a: Any, along_axes: bool = False) -> bool:
    """Whether elements of an array overlap in memory. along_axes: only overlap along a whole axis counts."""
    if a.size < 2:
        return False
    steps = sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True) if n > 1)
    if along_axes or steps[0][0] == 0:
        return steps[0][0] == 0
    reach = 0  # from the first element to the last, along the axes so far
    for step, n in steps:
        if step < reach + a.itemsize:
            break
        reach += step * (n - 1)
    else:
        return False
    places = offsets(steps)
    return bool(np.unique(places).size < places.size)


def offsets(steps: Iterable[tuple[int, int]]) -> Any:
    """How far each element lies from the first, for the step along each axis and how many elements there are."""
    found = np.zeros((), np.int64)
    for step, n in steps:
        found = found[..., None] + np.arange(n) * step
    return found


def views_of(base: Tensor) -> list[Tensor]:
    """The living views of a tensor."""
    views = [] if base._version_of is None else [ref() for ref in base._version_of.views]
    return [v for v in views if v is not None and v._view is not None and v._view.base is base]


def can_join(t: Tensor) -> bool:
    """Whether a tensor from outside, or a view, can become one of a level: no leaf, and no view that must stay one."""
    if isinstance(t, Lost) or (t._requires_grad and t._edge is None):
        return False
    return t._view is None or not (t._view.made and t._view.base._requires_grad)


def same_view(t: Tensor, whole: Tensor) -> Tensor:
    """The view of `whole` that `t` is of its base."""
    view = t._view
    if view is None:
        return whole
    above = same_view(view.parent, whole)
    return above.view(above.shape) if view.op is None else view.op.unchecked(above, *view.args)


def before_write(t: Tensor) -> Tensor:
    """A stand-in for `t` before the write: the same place in the graph, a copy of the values."""
    old = wrap(t._data.clone() if isinstance(t._data, LevelPayload) else np.copy(t._data))
    old._edge, old._requires_grad = t._edge, t._requires_grad
    return old


def keep_values(t: Tensor) -> None:
    """Before a tensor is written to, call the functions that need its present values."""
    if KEEPERS and t._version_of is not None:
        for keep in KEEPERS.pop(id(t._version_of), ()):
            keep()

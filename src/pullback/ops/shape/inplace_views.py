"""In-place operations that change a tensor's view of its memory, not the memory: `transpose_`, `squeeze_`, `set_`.

The tensor becomes the output of the operation on its former self. The former self lives on as a separate tensor while
views of it exist, so that a write to those views reaches the tensor, and the reverse.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ... import errors
from ...autograd.node import Node, begin, carry_retained, edge_of
from ...table.entry import alias, method
from ...table.writing import refuse_turn
from ...tensor.memory import INFERENCE, View
from ...tensor.modes import thread
from ...tensor.tensor import Tensor, need_tensor, wrap
from .axes import t as _t
from .axes import transpose
from .reshape import reshape, squeeze, unsqueeze
from .strided import as_strided, geometry_of, laid_over, strided_again


def _before(t: Tensor) -> Tensor:
    """The former self of `t`: a tensor on the same memory, at the same place in the graph."""
    refuse_turn(t)
    old = wrap(t._data)
    old._edge, old._requires_grad, old._view = t._edge, t._requires_grad, t._view
    old._version_of = t._share_version()
    return old


def _turned(t: Tensor, old: Tensor, new: Tensor, back: Any, *args: Any) -> Tensor:
    """Turn `t` into `new`, a view of its former self `old`. ``back(t, *args)`` is `old` again."""
    version = t._share_version()
    if version is INFERENCE:
        t._set_payload(new._data)
        return t
    if t._view is not None and new._view is None:
        raise RuntimeError(
            errors.message(
                "a view without elements cannot be given any in place", do="take another view of the tensor it is of"
            )
        )
    refs = [ref for ref in version.views if ref() is not None and ref() is not new]
    children = [view for view in (ref() for ref in refs) if view is not None and view._view and view._view.parent is t]
    for child in children:
        child._view.parent = old  # type: ignore[union-attr]
    # views are made again in the order of this list, so a view must come after its parent
    if t._view is not None:
        new._view.made, t._view = t._view.made, new._view  # type: ignore[union-attr]
        version.views = [weakref.ref(old) if ref() is t else ref for ref in refs] + [weakref.ref(t)]
    else:
        old._view = View(t, back, args)
        version.views = [weakref.ref(old), *refs]
    t._set_payload(new._data)
    if new._edge is not None:
        if old._edge is not None:
            carry_retained(t, old._edge, new._edge)
        t._edge, t._requires_grad = new._edge, True
    t._bump()
    return t


@method("transpose_", named=True)
def _transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` in place; returns the tensor."""
    old = _before(self)
    return _turned(self, old, transpose(old, dim0, dim1), transpose.op, dim0, dim1)


@method("swapaxes_", named=True)
def _swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """`swapaxes` in place; returns the tensor."""
    return _transpose_(self, axis0, axis1)


@method("swapdims_", named=True)
def _swapdims_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`swapdims` in place; returns the tensor."""
    return _transpose_(self, dim0, dim1)


@method("t_", named=True)
def _t_(self: Tensor) -> Tensor:
    """`t` in place; returns the tensor."""
    old = _before(self)
    return _turned(self, old, _t(old), transpose.op, 0, int(self._data.ndim == 2))


@method("squeeze_", named=True)
def _squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """`squeeze` in place; returns the tensor."""
    old = _before(self)
    return _turned(self, old, squeeze(old, dim), reshape.op, tuple(old._data.shape))


@method("unsqueeze_", named=True)
def _unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """`unsqueeze` in place; returns the tensor."""
    old = _before(self)
    return _turned(self, old, unsqueeze(old, dim), reshape.op, tuple(old._data.shape))


@method("as_strided_", named=True)
def _as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """`as_strided` in place; returns the tensor."""
    old = _before(self)
    new = (as_strided if old._requires_grad else strided_again)(old, size, stride, storage_offset)
    strides, offset = geometry_of(old)
    return _turned(self, old, new, laid_over.op, tuple(old._data.shape), strides, offset, geometry_of(new))


class SetBackward0(Node):
    """The node of a tensor that got other memory by a recorded `set_`, which has no derivative."""

    __slots__ = ()

    def _run(self, g: Any, taped: bool, needed: Any, keep: bool) -> Any:
        raise RuntimeError(
            "the derivative for 'set_' is not implemented: the tensor's values are no function of what it was.\n"
            "  What to do: call set_() within pullback.no_grad(), or copy_() the values."
        )


@method("set_", named=True)
def _set_(
    self: Tensor, source: Tensor | None = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Use the memory of `source` from now on, with its shape or the given one; without a source, no memory."""
    if source is None:
        source = wrap(np.empty(0, self._data.dtype))
    need_tensor("set_()", source)
    if source._data.dtype != self._data.dtype:
        raise RuntimeError(
            errors.message("Could not set tensor", expected=f"memory of {self.dtype}", found=str(source.dtype))
        )
    refuse_turn(self, (source,))
    tracked = [t for t in (self, source) if t._requires_grad] if thread.modes.grad_enabled else []
    edges = [edge_of(t) for t in tracked]
    if size is not None:
        strides = stride if stride is not None else wrap(np.empty(size)).stride()
        source = as_strided(source.detach(), size, strides, storage_offset)
    self._bump()
    self.data = source
    if self._edge is None and self._leaf is not None:
        self._leaf[0].renew()  # earlier results depend on the former leaf
    if edges:
        node = begin(SetBackward0(), edges)
        self._edge, self._requires_grad = (node, 0, self._data.shape, self._data.dtype), True
    return self


alias("as_strided_", _as_strided_)

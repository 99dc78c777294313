"""The pieces of memory behind what the nodes of a graph keep: what `memory` counts, and the sizes in the pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..autograd.node import FREED, AccumulateGrad
from ..autograd.saved import Packed
from ..ops.sparse.coo import SparseArray
from ..tensor.gpu import gpu_of
from ..tensor.nested import CONTAINERS, leaves
from ..tensor.protocol import is_foreign
from ..tensor.tensor import Tensor


class Piece(NamedTuple):
    """A piece of memory: what owns it, its bytes, and where it lies."""

    owner: Any
    nbytes: int
    device: str


def piece_of(data: Any) -> Piece:
    """The memory behind `data`; for a sparse tensor, behind its values."""
    if isinstance(data, SparseArray):
        return piece_of(data_of(data.values))
    if (index := gpu_of(data)) is not None:
        whole = data if data.base is None else data.base
        return Piece(data.data.mem, int(whole.nbytes), f"cuda:{index}")
    while isinstance(data, np.ndarray) and isinstance(data.base, np.ndarray):
        data = data.base
    return Piece(data, int(data.nbytes), "cpu")


_OWN = {"_edges", "_hooks", "_metadata", "_order", "__weakref__", "__dict__", "plan", "_variable", "_data"}


def kept_by(node: Any) -> Iterator[Any]:
    """The tensors and arrays that a node keeps in any attribute, and FREED for those that are gone."""
    if isinstance(node, AccumulateGrad):
        return
    names = {slot for cls in type(node).__mro__ for slot in _slots(cls)} - _OWN
    attributes = [getattr(node, name, None) for name in sorted(names)]
    for value in [*attributes, *getattr(node, "__dict__", {}).values()]:
        if value is FREED:
            yield value
        else:
            for leaf in leaves(value) if isinstance(value, CONTAINERS) else (value,):
                if isinstance(leaf, Packed) or _is_tensor(leaf):
                    yield leaf


def _slots(cls: type) -> Sequence[str]:
    found = cls.__dict__.get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


def data_of(value: Any) -> Any:
    """The data of what a node keeps; None for what a hook has packed into something else than a tensor."""
    if isinstance(value, Packed):
        value = value._held
        if not _is_tensor(value):
            return None
    return value._data if isinstance(value, Tensor) else value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray)) or is_foreign(value)

"""Tensor's methods from operations: methods, operators, and their in-place twins.

An entry of the table says that it is a method, and under which names. `enter_methods` is the only place where the class
gets them: once all operations of `ops` are entered, and again after those that are loaded later.
"""

from __future__ import annotations

from ..tensor.tensor import Tensor, extend
from .entry import METHODS, NAMES, TABLE
from .inplace import operator_of, twin_of


def enter_methods() -> None:
    """Give Tensor the methods of all operations that were entered since the last call, then their twins."""
    extend(METHODS)
    METHODS.clear()
    _enter_twins()


def _enter_twins() -> None:
    """Publish the in-place twin of every entry that has one, under each of its names: as a method and a function."""
    for op in list(TABLE.values()):
        wanted = op.kind == "elementwise" if op.about.inplace is None else op.about.inplace
        names = [op.name, *op.about.also.split()]
        for name in names if wanted else []:
            method = None if "." in name else getattr(Tensor, name, None)
            if method is not None and callable(wanted):
                method = wanted
            if method is not None and not hasattr(Tensor, f"{name}_"):
                twin = twin_of(op, name, method)
                extend({f"{name}_": twin})
                NAMES[""][f"{name}_"] = twin
        if op.written_by and not hasattr(Tensor, f"__{op.written_by}__"):
            extend({f"__{op.written_by}__": operator_of(getattr(Tensor, f"{op.name}_"))})

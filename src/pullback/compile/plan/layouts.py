"""Products of matrices in a plan: the order of axes in the memory of a product.

A linear layer's gradient is the transpose of a product. BLAS writes a product transposed at no extra cost; transposing
it afterwards takes as long as a small product. So a product that is only read in another order of its axes is stored in
that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..backends.steps import function
from ..trace.program import Value
from .fuse import memory


class Turned(NamedTuple):
    """The layout of a product: the value with its axes in the order of memory, and that value's axes in the product's
    order."""

    view: Value
    axes: tuple[int, ...]


def turned(calls: Sequence[Value], reads: Iterable[Value]) -> dict[Value, Turned]:
    """The products that are only read in one other order of axes. reads: all values that are read."""
    found: dict[Value, Turned] = {}
    products = {value for value in calls if _is_product(value)}
    for value in calls if products else ():
        order = _order(value)
        if order is not None and value.args[0] in products and order[-1] >= len(order) - 2:
            found[value.args[0]] = Turned(value, tuple(int(i) for i in np.argsort(order)))
    if found:
        times: dict[Value, int] = {}
        for read in reads:
            held = memory(read)
            while held.kind == "broadcast":
                held = memory(held.args[0])
            times[held] = times.get(held, 0) + 1
        found = {product: how for product, how in found.items() if times[product] == 1}
    return found


def _is_product(value: Value) -> bool:
    return value.kind == "call" and function(value.fn).product and len(value.shape) > 1 and not value.params[1]


def _order(value: Value) -> list[int] | None:
    """The order in which a value has the axes of its argument; None if it is not such a value."""
    order = function(value.fn).order if value.kind == "call" else None
    if order is None:
        return None
    (_, *how), kwargs = value.params
    return order(len(value.shape), *how, **kwargs)

"""Checks of values for composite operations: one computation does them in every mode.

An entry's ``checks`` and the body of a composite see Tensors, also those of a transform, whose values are not known
yet. `check_values` checks values as soon as they are known: at once for a plain tensor; for all of a batch together
under `vmap`; without the tangents in forward mode; and in each call of a compiled function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import special
from ...tensor.arrays import copied
from ...tensor.tensor import Tensor

Check = Callable[..., None]
"""A function ``check(values, *facts)`` that raises if an array of values is wrong. Under `vmap` the array has the
axis of the batch in front, so a check counts axes from the last one."""


@special(
    method=False, batch="leading", numbers="", contiguous=False, input=lambda g: g, jvp=lambda tangents: tangents[0]
)
def _checked(input: Any, check: Check, facts: tuple[Any, ...]) -> Any:
    try:
        check(input, *facts)
    except Exception as error:
        raise errors.final(error) from None
    return copied(input)


def check_values(check: Check, input: Any, *facts: Any) -> Any:
    """`input`, after ``check(values, *facts)`` of its values; a computation must use the result.

    input: a tensor or, in a rule, a payload.

    >>> import pullback
    >>> def check(values):
    ...     if values.min() < 0:
    ...         raise ValueError("a length is negative")
    >>> check_values(check, pullback.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    values = input._data if isinstance(input, Tensor) else input
    if type(values) is np.ndarray and values.dtype.kind != "V":
        check(values, *facts)
        return input
    return on(_checked, input, check, facts)

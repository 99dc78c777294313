"""How many threads loops are run on."""

from __future__ import annotations

import os

from .. import errors

_threads = [os.cpu_count() or 1]


def get_num_threads() -> int:
    """The number of threads that loops of compiled functions run on; at first, that of the processor's cores."""
    return _threads[0]


def set_num_threads(number: int) -> None:
    """Set the number of threads for what is compiled from now on.

    >>> import pullback
    >>> before = pullback.get_num_threads()
    >>> pullback.set_num_threads(1)
    >>> pullback.get_num_threads()
    1
    >>> pullback.set_num_threads(before)
    """
    if not isinstance(number, int) or number < 1:
        raise RuntimeError(
            errors.message("set_num_threads()", expected="a positive number of threads", found=repr(number))
        )
    _threads[0] = number

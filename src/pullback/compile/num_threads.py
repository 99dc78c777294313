"""The number of threads for loops."""

from __future__ import annotations

import os

from .. import errors


def _at_first() -> int:
    """The number in `OMP_NUM_THREADS`, which other numerical libraries also read; without it, all processors."""
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(said) if said.isdecimal() and int(said) else os.cpu_count() or 1


_threads = [_at_first()]


def get_num_threads() -> int:
    """The number of threads that loops of compiled functions run on; at first `OMP_NUM_THREADS`, or all processors."""
    return _threads[0]


def set_num_threads(number: int) -> None:
    """Set the number of threads for functions compiled from now on.

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


errors.doors(globals(), "set_num_threads")

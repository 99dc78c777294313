"""PyTorch's switches for the precision and determinism of its results, and for warnings.

The former change nothing here: results always repeat, and products have the full precision of their dtype. A setting is
checked, kept and returned.
"""

from __future__ import annotations

import warnings
from typing import Any

from .. import errors

_MODES = ("default", "warn", "error")
_PRECISIONS = ("highest", "high", "medium")


class _Settings:
    """The last settings."""

    deterministic = warn_only = False
    precision = "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic results. They always are; the setting is kept for `are_deterministic_algorithms_enabled`.

    TypeError unless `mode` is a bool.
    """
    if not isinstance(mode, bool):
        raise TypeError(
            errors.message(
                "use_deterministic_algorithms()", expected="mode to be True or False", found=errors.describe(mode)
            )
        )
    _Settings.deterministic, _Settings.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """The last argument of `use_deterministic_algorithms`.

    >>> import pullback
    >>> pullback.are_deterministic_algorithms_enabled()
    False
    """
    return _Settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was called with `warn_only`."""
    return _Settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by a number or a word: 0 or "default", 1 or "warn", 2 or "error".

    RuntimeError for any other.
    """
    named: Any = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(
            errors.message(
                "set_deterministic_debug_mode()", expected="an int or a str", found=errors.describe(debug_mode)
            )
        )
    if named not in (0, 1, 2):
        raise RuntimeError(
            errors.message(
                "invalid value of debug_mode", expected=f"0, 1 or 2, or one of {_MODES}", found=repr(debug_mode)
            )
        )
    _Settings.deterministic, _Settings.warn_only = named > 0, named == 1


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as `set_deterministic_debug_mode` takes them."""
    return (1 if _Settings.warn_only else 2) if _Settings.deterministic else 0


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 to be less exact, "high" or "medium"; they stay exact. Other words give a warning."""
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium': the call has no effect.",
            stacklevel=errors.callers_level(),
        )
        return
    _Settings.precision = precision


def get_float32_matmul_precision() -> str:
    """The last argument of `set_float32_matmul_precision`.

    >>> import pullback
    >>> pullback.get_float32_matmul_precision()
    'highest'
    """
    return _Settings.precision


def set_warn_always(b: bool, /) -> None:
    """Whether what warns once in a process warns each time: a tensor that requires grad and becomes a number by
    ``float(t)``, ``int(t)`` or ``complex(t)``, and loops that no compiler can build.

    Python's own filters show each text once for each line; ``warnings.simplefilter("always")`` changes that.
    RuntimeError unless `b` is a bool.

    >>> import pullback
    >>> pullback.set_warn_always(True)
    >>> pullback.is_warn_always_enabled()
    True
    >>> pullback.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    errors.WarnAlways.on = b


def is_warn_always_enabled() -> bool:
    """The last argument of `set_warn_always`.

    >>> import pullback
    >>> pullback.is_warn_always_enabled()
    False
    """
    return errors.WarnAlways.on


errors.doors(
    globals(), "set_warn_always set_deterministic_debug_mode set_float32_matmul_precision use_deterministic_algorithms"
)

"""Interpreters: what computes instead of NumPy's arrays when an operation runs.

This package's own are for batches (`vmap`), pairs of primal and tangent (forward mode) and traced values (`compile`).
`Payload` is the base class of one's own, and `each` opens and wraps nested arguments for it.
"""

from .payload import Payload, each

__all__ = ["Payload", "each"]


def __dir__() -> list[str]:
    return sorted(__all__)

"""Methods of Python's protocols of long ago, which torch's tensors still have. `__div__` is one of `div`."""

from __future__ import annotations

from typing import Any

from ..table.entry import method
from ..tensor.tensor import Tensor


@method("__idiv__")
def _idiv(self: Tensor, other: Any) -> Tensor:
    """``self /= other``."""
    self /= other
    return self


@method("__long__")
def _long(self: Tensor) -> int:
    """``int(self)``."""
    return int(self)


@method("__nonzero__")
def _nonzero(self: Tensor) -> bool:
    """``bool(self)``."""
    return bool(self)

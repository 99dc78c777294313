"""DLPack under the older names of `torch.utils.dlpack`: for libraries that pass on a bare capsule."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ops.make.exported import from_dlpack
from ..tensor.tensor import Tensor, need_tensor

__all__ = ["from_dlpack", "to_dlpack"]


def __dir__() -> list[str]:
    return sorted(__all__)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule on the memory of a tensor, which another library may take once.

    >>> import pullback
    >>> from pullback.utils.dlpack import from_dlpack, to_dlpack
    >>> from_dlpack(to_dlpack(pullback.tensor([1.0, 2.0])))
    tensor([1., 2.])
    """
    need_tensor("to_dlpack()", tensor)
    return tensor.__dlpack__()


errors.doors(globals(), "to_dlpack")

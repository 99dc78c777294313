"""The handle that registering a hook returns, at the path where PyTorch has it, `torch.utils.hooks`."""

from ..autograd.node import RemovableHandle

__all__ = ["RemovableHandle"]


def __dir__() -> list[str]:
    return sorted(__all__)

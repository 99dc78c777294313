"""What is returned by whatever registers a hook, at the path at which PyTorch has it, `torch.utils.hooks`."""

from ..autograd.node import RemovableHandle

__all__ = ["RemovableHandle"]


def __dir__() -> list[str]:
    return sorted(__all__)

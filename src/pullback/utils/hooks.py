"""Where PyTorch keeps the handles that hooks are removed by, for code that names their class."""

from ..autograd.node import RemovableHandle

__all__ = ["RemovableHandle"]

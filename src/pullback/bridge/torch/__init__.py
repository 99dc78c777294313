"""The bridge to PyTorch, in both directions.

Functions of ours in torch: `wrap` makes a function of torch tensors, and `op` an operator of torch's library, which
`torch.compile` keeps whole. Functions of torch here: `function` makes a node of a torch function, and `Module` a module
of a `torch.nn.Module`, whose parameters lie on the same memory.
"""

from __future__ import annotations

from ... import errors
from ..hosts import missing

try:
    import torch as _host
except ModuleNotFoundError as error:
    raise missing("torch") from error
if _host.__name__ != "torch":
    raise ImportError(
        errors.message(
            "pullback.bridge.torch needs PyTorch, and here pullback stands for torch (bridge.as_torch.install())",
            do="run the program with PyTorch: without as_torch",
        ),
        name="torch",
    )

from .library_op import op
from .torch_module import Module
from .torch_node import function
from .wrapped import wrap

__all__ = ["Module", "function", "op", "wrap"]


def __dir__() -> list[str]:
    return sorted(__all__)

"""What the programs of this clause share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def error_of(fn: Callable[[], Any]) -> str:
    """The type of what a call raises, or that it raises nothing."""
    try:
        fn()
    except Exception as error:
        return type(error).__name__
    return "no error"


def words_of(fn: Callable[[], Any]) -> str:
    """The type and the first paragraph of what a call raises, without the name of the library."""
    try:
        fn()
    except Exception as error:
        text = str(error).partition("\n  What to do")[0].rstrip(".")
        return f"{type(error).__name__}: {text.replace('torch.', '').replace('pullback.', '')}"
    return "no error"


def affine(lib: Any) -> Any:
    """A class of modules: ``weight * x + bias``, that counts its calls in a buffer."""

    class Affine(lib.nn.Module):
        def __init__(self, n: int = 2, bias: bool = True) -> None:
            super().__init__()
            self.weight = lib.nn.Parameter(1 + lib.arange(n, dtype=lib.float32))
            self.register_parameter("bias", lib.nn.Parameter(lib.zeros(n)) if bias else None)
            self.register_buffer("calls", lib.tensor(0))
            self.register_buffer("last", lib.zeros(1), persistent=False)

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            self.calls += 1
            y = self.weight * x * scale
            return y if self.bias is None else y + self.bias

        def extra_repr(self) -> str:
            return f"n={self.weight.numel()}"

    return Affine


def net(lib: Any) -> Any:
    """Two layers, one of them with another name too, a module within a module, and a parameter of its own."""
    Affine = affine(lib)

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Affine(2)
            self.inner = lib.nn.Sequential(Affine(2, bias=False), lib.nn.Identity())
            self.again = self.first
            self.nothing = None
            self.scale = lib.nn.Parameter(lib.ones(1))
            self.register_module("empty", None)
            self.inner[0].tied = self.scale

        def forward(self, x: Any) -> Any:
            return self.again(self.inner(self.first(x))) * self.scale

    return Net()

"""What a user's checker sees, as mypy and pyright read it: `tests/house/test_typing.py` runs both.

`assert_type` says what a type is. A line that must be refused ends with a comment that lets it pass: both checkers
report such a comment where there is nothing to let pass.
"""

from __future__ import annotations

from typing import Any, assert_type

import pullback as torch
from pullback import Tensor, nn
from pullback.autograd import Function


class Scale(Function):
    """A Function whose forward takes ctx."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float = 2.0) -> Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.factor, None


class Halves(Function):
    """A Function with a context of its own, and two results."""

    @staticmethod
    def forward(x: Tensor, at: int) -> tuple[Tensor, Tensor]:
        return x[:at], x[at:]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.at = inputs[1]

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> tuple[Tensor, None]:
        return torch.cat([first, second]), None


class Untyped(Function):
    """A Function without annotations, as tutorials write it."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Net(nn.Module):
    """A module: its call takes what forward takes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x: Tensor, twice: bool = False) -> Tensor:
        y = self.linear(x)
        assert_type(y, Tensor)
        return y * 2 if twice else y


x = torch.randn(3, requires_grad=True)
assert_type(Scale.apply(x), Tensor)
assert_type(Scale.apply(x, factor=3.0), Tensor)
assert_type(Halves.apply(x, 1), tuple[Tensor, Tensor])
Scale.apply(x, "twice")  # type: ignore[arg-type]
Scale.apply()  # type: ignore[call-arg]
Halves.apply(x)  # type: ignore[call-overload]
Untyped.apply(x)

net = Net()
assert_type(net(x), Tensor)
assert_type(net(x, twice=True), Tensor)
net(x, True, 2)  # type: ignore[call-arg]
nn.Linear(3, 4)("x")  # type: ignore[arg-type]


def any_function(kind: type[Function], module: nn.Module) -> None:
    """Where only the base class is known, anything goes."""
    kind.apply(x, 1)
    module(x, y=1)


assert_type(torch.sin(x), Tensor)
assert_type(torch.add(x, 2), Tensor)
assert_type(torch.matmul(x, x), Tensor)
assert_type(nn.functional.relu(x), Tensor)
assert_type(x.sum(dim=0, keepdim=True), Tensor)
assert_type(x * 2 + 1, Tensor)
assert_type(x.sin().reshape(3, 1), Tensor)
torch.sin("x")  # type: ignore[arg-type]
torch.matmul(x, 2)  # type: ignore[arg-type]
nn.functional.linear(x, 3)  # type: ignore[arg-type]
x.sum(keepdim="yes")  # type: ignore[arg-type]

# What docs/learn/function.md says of those that have no types yet.
assert_type(nn.Sequential(net)(x), Any)
assert_type(torch.compile(torch.sin)(x), Any)
assert_type(torch.func.grad(torch.sum)(x), Any)

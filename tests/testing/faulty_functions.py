"""Functions with one planted fault each, and what the audit is to say of it.

`@faulty` enters a class in `FAULTY`: the code of the finding, the inputs, words that have to be in its reason, the
user's line it has to show, and what the corrected line has to contain. Everything else about a class is right, unless
`also` says what else follows from the fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.function import once_differentiable


@dataclass(frozen=True)
class Planted:
    """A faulty Function and what is to be found."""

    function: type[Function]
    code: str
    inputs: tuple[Any, ...]
    says: tuple[str, ...]
    line: str
    corrected: str
    also: frozenset[str] = field(default_factory=frozenset)


FAULTY: list[Planted] = []

X = torch.tensor([0.7, -1.2, 0.4])
M = torch.tensor([[0.7, -1.2, 0.4], [1.5, 0.3, -0.6]])
SQUARE = torch.tensor([[0.7, -1.2], [0.4, 0.9]])
ROW = torch.tensor([0.5, -0.8, 1.1])


def faulty(
    code: str, *inputs: Any, says: tuple[str, ...], line: str, corrected: str, also: tuple[str, ...] = ()
) -> Callable[[type[Function]], type[Function]]:
    """Enter a class in `FAULTY`."""

    def enter(cls: type[Function]) -> type[Function]:
        FAULTY.append(Planted(cls, code, inputs, says, line, corrected, frozenset(also)))
        return cls

    return enter


# First derivatives ----------------------------------------------------------------------------------------------------


@faulty(
    "wrong-derivative",
    X,
    says=("analytical = 1/2 x numerical", "finite differences"),
    line="return grad_output * x",
    corrected="return 2 * (grad_output * x)",
)
class HalfSquare(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x


@faulty(
    "wrong-derivative",
    X,
    says=("the sign: analytical = -numerical",),
    line="return grad_output * x.sin()",
    corrected="return -(grad_output * x.sin())",
)
class CosineWithoutSign(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.cos()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sin()


@faulty(
    "wrong-derivative",
    torch.tensor([[0.7, -1.2], [0.4, 0.9]]),
    torch.tensor([[0.3, 1.4], [-0.5, 0.8]]),
    says=("is not transposed that should be",),
    line="grad_a = grad_output @ b if ctx.needs_input_grad[0] else None",
    corrected="grad_output @ b.mT",
)
class ProductWithoutTranspose(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_a = grad_output @ b if ctx.needs_input_grad[0] else None
        grad_b = a.t() @ grad_output if ctx.needs_input_grad[1] else None
        return grad_a, grad_b


@faulty(
    "wrong-derivative",
    torch.tensor([[0.7, -1.2, 0.1], [0.4, 0.9, -0.3], [-0.6, 0.2, 1.1]]),
    says=("without keepdim=True",),
    line="return s * (grad_output - (grad_output * s).sum(1))",
    corrected="return s * (grad_output - (grad_output * s).sum(1, keepdim=True))",
)
class SoftmaxWithoutKeepdim(Function):
    @staticmethod
    def forward(ctx, x):
        e = x.exp()
        s = e / e.sum(1, keepdim=True)
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx, grad_output):
        (s,) = ctx.saved_tensors
        return s * (grad_output - (grad_output * s).sum(1))


@faulty(
    "wrong-derivative",
    X,
    ROW,
    says=("another order than forward takes its arguments",),
    line="return grad_a, grad_b",
    corrected="+ grad_b = grad_output * a if ctx.needs_input_grad[1] else None",
)
class GradientsExchanged(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_a = grad_output * a if ctx.needs_input_grad[0] else None
        grad_b = grad_output * b if ctx.needs_input_grad[1] else None
        return grad_a, grad_b


@faulty(
    "wrong-derivative",
    X,
    says=("backward gave no gradient (None) for x",),
    line="return None",
    corrected="grad_output times the derivative",
)
class ReturnsNone(Function):
    @staticmethod
    def forward(ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, grad_output):
        return None


@faulty(
    "wrong-derivative",
    torch.tensor([0.3 + 0.4j, -1.1 + 0.2j]),
    says=("complex conjugate",),
    line="return grad_output * 2 * z",
    corrected="+ return grad_output * (2 * z).conj()",
)
class SquareWithoutConjugate(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        return grad_output * 2 * z


@faulty(
    "wrong-derivative",
    X,
    says=("diagonal", "other elements of the input are missing"),
    line="return grad_output * y * (1 - y)",
    corrected="grad_output times the derivative",
)
class SoftmaxDiagonalOnly(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)


@faulty(
    "not-linear",
    torch.tensor(0.7),
    says=("zeros to be zero", "whatever grad_output is"),
    line="return 2 * x",
    corrected="return grad_output * (2 * x)",
)
class IgnoresGradOutput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x


@faulty(
    "not-linear",
    X,
    says=("those for v and w to add up",),
    line="return 3 * grad_output.clamp(-1, 1)",
    corrected="grad_output times the derivative",
)
class ClipsItsGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output.clamp(-1, 1)


@faulty(
    "no-gradient",
    X,
    says=("changes with x",),
    line="ctx.mark_non_differentiable(y)",
    corrected="- ctx.mark_non_differentiable(y)",
)
class MarksItsOnlyOutput(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        ctx.mark_non_differentiable(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


@faulty(
    "wrong-derivative-float32",
    X,
    says=("float32", "where finite differences agree"),
    line="return grad_output * factor",
    corrected="without a branch on the dtype",
)
class WrongInSingle(Function):
    @staticmethod
    def forward(ctx, x):
        return 5 * x

    @staticmethod
    def backward(ctx, grad_output):
        factor = 5 if grad_output.dtype is torch.float64 else 4
        return grad_output * factor


@faulty(
    "wrong-derivative",
    X,
    says=("analytical = 1/2 x numerical",),
    line="return grad_output * x",
    corrected="return 2 * (grad_output * x)",
    also=("output-dtype",),
)
class HalfSquareInSingle(Function):
    """Which computes in float32 whatever it is given, so that the steps of finite differences have to be larger."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).float()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x


@faulty(
    "wrong-value-float32",
    torch.tensor([1e-6, 3e-6]),
    says=("loses its digits by cancellation",),
    line="def forward(ctx, x):",
    corrected="expm1(x)",
)
class ExpMinusOne(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.exp() - 1) * 1e6

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.exp() * 1e6


# Second derivatives ---------------------------------------------------------------------------------------------------


@faulty(
    "lost-derivative",
    X,
    says=("s, which save_for_backward keeps, was computed in forward", "a constant", "@once_differentiable"),
    line="ctx.save_for_backward(x, s)",
    corrected="+ s = x.sigmoid()",
)
class SwishWithSavedSigmoid(Function):
    @staticmethod
    def forward(ctx, x):
        s = x.sigmoid()
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad_output):
        x, s = ctx.saved_tensors
        return grad_output * (s + x * s * (1 - s))


@faulty(
    "lost-derivative",
    X,
    says=("grow, which save_for_backward keeps, was computed in forward",),
    line="ctx.save_for_backward(grow, decay)",
    corrected="compute grow in backward",
)
class SinhWithSavedExponentials(Function):
    """What a double backward cannot see through: both exponentials were computed where nothing is recorded."""

    @staticmethod
    def forward(ctx, x):
        grow, decay = x.exp(), (-x).exp()
        ctx.save_for_backward(grow, decay)
        return (grow - decay) / 2

    @staticmethod
    def backward(ctx, grad_output):
        grow, decay = ctx.saved_tensors
        return grad_output * (grow + decay) / 2


@faulty(
    "lost-derivative",
    X,
    says=("ctx.slope was computed in forward", "a constant"),
    line="ctx.slope = 2 * x",
    corrected="+ return grad_output * (2 * x)",
    also=("kept-on-ctx",),
)
class SquareWithSlopeOnCtx(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.slope = 2 * x
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.slope


@faulty(
    "wrong-second-derivative",
    X,
    says=("detach(), .data, NumPy", "finite differences of backward"),
    line="return grad_output * 3 * x.detach() ** 2",
    corrected="return grad_output * 3 * x ** 2",
)
class CubeDetached(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x.detach() ** 2


@faulty(
    "second-derivative-raises",
    X,
    says=("Can't call numpy() on Tensor that requires grad", "marked @once_differentiable"),
    line="def backward(ctx, grad_output):",
    corrected="+ return grad_output * np.cos(x)",
)
class SineInNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.sin(x.numpy()))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(grad_output.numpy() * np.cos(x.numpy()))


# Forward mode and vmap ------------------------------------------------------------------------------------------------


@faulty(
    "forward-mode",
    X,
    says=("<u, Jv>", "backward agrees with finite differences, so jvp is wrong"),
    line="return tangent * x",
    corrected="return 2 * (tangent * x)",
)
class HalfTangent(Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * x


@faulty(
    "vmap-rule",
    M,
    ROW,
    says=("what a loop over a batch of 3 gives", "in_dims says"),
    line="return DotWithWrongBatch.apply(a, b), 0",
    corrected="movedim(in_dims[i], 0)",
)
class DotWithWrongBatch(Function):
    @staticmethod
    def forward(a, b):
        return (a * b).sum(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        g = grad_output.unsqueeze(-1)
        grad_a = (g * b).sum_to_size(a.shape) if ctx.needs_input_grad[0] else None
        grad_b = (g * a).sum_to_size(b.shape) if ctx.needs_input_grad[1] else None
        return grad_a, grad_b

    @staticmethod
    def vmap(info, in_dims, a, b):
        return DotWithWrongBatch.apply(a, b), 0


@faulty(
    "vmap-rule",
    M,
    says=("what a loop over a batch of 3 gives", "NumPy cannot have the values"),
    line="return torch.from_numpy(np.exp(x.numpy()))",
    corrected="+ return np.exp(x)",
)
class NumPyWithGeneratedRule(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return torch.from_numpy(np.exp(x.numpy()))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


# What backward returns ------------------------------------------------------------------------------------------------


@faulty(
    "gradient-shape",
    M,
    ROW,
    says=("a gradient of shape [3] for b", "one of shape [2, 3]", "summed over the axes that forward broadcast"),
    line="return grad_output, grad_output",
    corrected="+ return grad_output, grad_output.sum_to_size(ctx.b_shape) if ctx.needs_input_grad[1] else None",
)
class AddWithoutSum(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


@faulty(
    "gradient-shape",
    X,
    says=("got []", "the shape of 'x'"),
    line="return grad_output",
    corrected="+ return grad_output.expand(ctx.x_shape)",
)
class SumWithoutExpand(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


@faulty(
    "gradient-count",
    X,
    0.5,
    says=("one gradient for each argument of forward: x, alpha", "expected 2, got 1"),
    line="return grad_output * ctx.alpha",
    corrected="return grad_output * ctx.alpha, None",
)
class ScaleForgetsItsNumber(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x * alpha

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.alpha


@faulty(
    "gradient-for-non-tensor",
    X,
    2.0,
    says=("None for an argument that is not a tensor",),
    line="return grad_output * ctx.alpha, grad_output.sum()",
    corrected="return grad_output * ctx.alpha, None",
)
class GradientForANumber(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x * alpha

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.alpha, grad_output.sum()


@faulty(
    "gradient-type",
    X,
    says=("a tensor, or None", "ndarray"),
    line="return grad",
    corrected="+ grad = 2 * grad_output",
)
class ReturnsAnArray(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        grad = np.asarray(2 * grad_output.numpy())
        return grad


@faulty(
    "gradient-dtype",
    X,
    says=("a gradient of float32 for x", "one of float64", "digits that are thrown away"),
    line="return grad_output * torch.tensor([2.0], dtype=torch.float64)",
    corrected=".to(grad_output.dtype)",
    also=("zero-dim",),
)
class DoublesInBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * torch.tensor([2.0], dtype=torch.float64)


@faulty(
    "gradient-dtype",
    X,
    says=("the same kind of numbers as its input", "complex128 for 'x', which is float64"),
    line="return grad_output * (2 + 0j)",
    corrected="+ return (grad_output * (2 + 0j)).real",
)
class ComplexGradientOfARealInput(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (2 + 0j)


@faulty(
    "output-dtype",
    X,
    says=("output 0 of float64", "NumPy scalar or array of another dtype"),
    line="return torch.from_numpy(x.numpy() * np.linspace(1, 2, 3))",
    corrected=".to(x.dtype)",
    also=("zero-dim",),
)
class DoublesInForward(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(x.numpy() * np.linspace(1, 2, 3))

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * torch.from_numpy(np.linspace(1, 2, 3)).to(grad_output.dtype)


class Elsewhere(torch.Tensor):
    """A tensor that says it lies on another device."""

    @property
    def device(self) -> Any:
        return torch.device("meta")


@faulty(
    "device",
    X,
    says=("an output on cpu", "one on meta"),
    line="return Elsewhere((2 * x).numpy(), dtype=x.dtype)",
    corrected="x.new_zeros",
)
class LeavesItsDevice(Function):
    @staticmethod
    def forward(ctx, x):
        return Elsewhere((2 * x).numpy(), dtype=x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


# What backward is asked for -------------------------------------------------------------------------------------------


@faulty(
    "needs-input-grad",
    X,
    ROW,
    says=("the gradient of b", "one entry for each argument of forward, in order"),
    line="grad_b = grad_output * a if ctx.needs_input_grad[0] else None",
    corrected="+ grad_b = grad_output * a if ctx.needs_input_grad[1] else None",
)
class WrongNeedsIndex(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_a = grad_output * b if ctx.needs_input_grad[0] else None
        grad_b = grad_output * a if ctx.needs_input_grad[0] else None
        return grad_a, grad_b


@faulty(
    "unneeded-gradient",
    X,
    ROW,
    says=("None for a, and no work done for it, where ctx.needs_input_grad[0] is False",),
    line="return grad_output * b, grad_output * a",
    corrected="+ return grad_output * b if ctx.needs_input_grad[0] else None, "
    "grad_output * a if ctx.needs_input_grad[1] else None",
)
class ComputesAll(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b, grad_output * a


@faulty(
    "unneeded-work",
    X,
    ROW,
    says=("None, after the same computations as for a gradient",),
    line="grad_a = grad_output * b",
    corrected="grad_a = grad_output * b if ctx.needs_input_grad[0] else None",
)
class ComputesAllAndHidesIt(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_a = grad_output * b
        grad_b = grad_output * a
        return grad_a if ctx.needs_input_grad[0] else None, grad_b if ctx.needs_input_grad[1] else None


@faulty(
    "unused-output",
    X,
    says=("only output 0 is used, and grad_cos is None", "set_materialize_grads(False)"),
    line="return grad_sin * x.cos() - grad_cos * x.sin()",
    corrected="- ctx.set_materialize_grads(False)",
)
class FailsForNone(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, grad_sin, grad_cos):
        (x,) = ctx.saved_tensors
        return grad_sin * x.cos() - grad_cos * x.sin()


@faulty(
    "unused-output",
    X,
    says=("another gradient of x than with zeros in its place",),
    line="return None",
    corrected="- ctx.set_materialize_grads(False)",
)
class GivesUpForNone(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, grad_a, grad_b):
        if grad_a is not None and grad_b is not None:
            return 2 * grad_a + 3 * grad_b
        return None


# Writes ---------------------------------------------------------------------------------------------------------------


@faulty(
    "grad-output-modified",
    X,
    says=("grad_output to be the same after backward", "hand the same tensor to other nodes"),
    line="grad_output *= 2",
    corrected="grad_output = grad_output * 2",
)
class ScalesItsGradientInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        grad_output *= 2
        return grad_output


@faulty(
    "input-modified",
    X,
    says=("x to be the same after forward", "ctx.mark_dirty"),
    line="x.mul_(2)",
    corrected="+ x = x.mul(2)",
)
class WritesToItsInput(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        return x + 1

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


@faulty(
    "backward-modifies",
    X,
    says=("the saved tensors to be the same after backward",),
    line="x.data.mul_(2)",
    corrected="+ x = x.mul(2)",
)
class WritesToItsSavedTensor(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        x.data.mul_(2)
        return grad_output * x


@faulty(
    "untracked-alias",
    X,
    says=("an array that lies in the memory of x", "no operation that saved it will notice"),
    line="return torch.from_numpy(x.numpy()[::-1])",
    corrected="return torch.from_numpy(x.numpy()[::-1]).clone()",
)
class ReversesByNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(x.numpy()[::-1])

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.flip(0)


# Twice the same -------------------------------------------------------------------------------------------------------

_GENERATOR = np.random.default_rng(0)


@faulty(
    "not-deterministic",
    X,
    says=("the same random seed", "a generator of its own"),
    line="def forward(ctx, x):",
    corrected="global generator",
)
class NoiseOfItsOwn(Function):
    @staticmethod
    def forward(ctx, x):
        return x + torch.from_numpy(_GENERATOR.standard_normal(3)).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


@faulty(
    "backward-not-repeatable",
    X,
    says=("nor draw random numbers of its own",),
    line="mask = torch.rand_like(grad_output) > 0.5",
    corrected="save what forward drew by ctx.save_for_backward",
    also=("random",),
)
class DropoutDrawnTwice(Function):
    @staticmethod
    def forward(ctx, x):
        return x * (torch.rand_like(x) > 0.5)

    @staticmethod
    def backward(ctx, grad_output):
        mask = torch.rand_like(grad_output) > 0.5
        return grad_output * mask


@faulty(
    "backward-not-repeatable",
    X,
    says=("IndexError", "must not use up what forward kept"),
    line="x = ctx.stack.pop()",
    corrected="do not pop",
)
class PopsItsStack(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.stack = [x]
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.stack.pop()
        return 2 * x * grad_output


# Layouts and sizes ----------------------------------------------------------------------------------------------------


@faulty(
    "non-contiguous-input",
    M,
    says=("inputs that are not contiguous",),
    line="def forward(ctx, x):",
    corrected="+ x = x.contiguous()",
)
class ReadsMemoryAsItLies(Function):
    @staticmethod
    def forward(ctx, x):
        array = x.numpy()
        flat = array.ravel(order="K")  # like a kernel that is given an address
        return torch.from_numpy(2 * flat.reshape(array.shape))

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


@faulty(
    "layout-refused",
    M,
    says=("a result for inputs that are not contiguous", "view size is not compatible"),
    line="return x.view(-1)",
    corrected="return x.reshape(-1)",
)
class FlattensByView(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.reshape(ctx.shape)


@faulty(
    "non-contiguous-gradient",
    M,
    says=("an incoming gradient that is not contiguous", "view size is not compatible"),
    line="return 2 * grad_output.view(-1).view(ctx.shape)",
    corrected="return 2 * grad_output.reshape(-1).reshape(ctx.shape)",
)
class FlattensItsGradientByView(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output.view(-1).view(ctx.shape)


@faulty(
    "non-contiguous-gradient",
    M,
    says=("an incoming gradient that is not contiguous", "as that of sum() is not"),
    line="def backward(ctx, grad_output):",
    corrected="+ grad_output = grad_output.contiguous()",
    also=("zero-dim",),
)
class ReadsItsGradientAsItLies(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        array = grad_output.numpy()
        return torch.from_numpy(2 * array.ravel(order="K").reshape(array.shape))


@faulty(
    "zero-dim",
    X,
    says=("gradients for 0-d inputs", "IndexError"),
    line="scale = grad_output.shape[0] * x.exp()",
    corrected="keep shapes in backward",
)
class NeedsAnAxis(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        scale = grad_output.shape[0] * x.exp()
        return grad_output * scale / grad_output.shape[0]


@faulty(
    "empty",
    X,
    says=("axes of length 3 have no elements",),
    line="largest = 1 + 0 * x.detach().max() if x.ndim else 1",
    corrected="have forward refuse such inputs",
)
class NeedsAnElement(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        largest = 1 + 0 * x.detach().max() if x.ndim else 1
        return grad_output * x.cos() / largest * largest


# State and memory -----------------------------------------------------------------------------------------------------


@faulty(
    "shared-state",
    X,
    says=("SavesOnItsClass.x belongs to all calls", "changed by a second one"),
    line="SavesOnItsClass.x = x.detach()",
    corrected="keep it on ctx",
    also=("kept-alive", "wrong-second-derivative"),
)
class SavesOnItsClass(Function):
    @staticmethod
    def forward(ctx, x):
        SavesOnItsClass.x = x.detach()
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * SavesOnItsClass.x * grad_output


_BUFFER: dict[Any, Any] = {}


@faulty(
    "shared-state",
    X,
    says=("the outputs of the first call changed by a second one",),
    line="def forward(ctx, x):",
    corrected="keep it on ctx",
    also=("kept-alive", "wrong-derivative"),
)
class ReusesItsBuffer(Function):
    @staticmethod
    def forward(ctx, x):
        buffer = _BUFFER.setdefault((x.shape, x.dtype), np.zeros(x.shape, x.numpy().dtype))
        np.multiply(x.numpy(), 2, out=buffer)
        return torch.from_numpy(buffer)

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


_GRADIENT = np.zeros(3)


@faulty(
    "shared-state",
    X,
    says=("the gradients of the first call changed by a second one",),
    line="def forward(ctx, x):",
    corrected="keep it on ctx",
    also=("zero-dim",),
)
class ReusesTheBufferOfItsGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        if grad_output.shape != (3,):
            return 2 * grad_output if grad_output.ndim else torch.zeros(())
        np.multiply(grad_output.numpy(), 2, out=_GRADIENT)
        return torch.from_numpy(_GRADIENT).to(grad_output.dtype)


@faulty(
    "unchecked-write",
    X,
    says=("a write to x in between", "another gradient, and no error", "ctx.array keeps x"),
    line="ctx.array = x.numpy()",
    corrected="save x by ctx.save_for_backward",
    also=("kept-on-ctx",),
)
class KeepsTheArrayOfItsInput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.array = x.numpy()
        return torch.from_numpy(np.asarray(np.sin(ctx.array)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return torch.from_numpy(np.asarray(grad_output.numpy() * np.cos(ctx.array)))


_WEIGHT = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


@faulty(
    "hidden-parameter",
    X,
    says=("_WEIGHT, of shape [3], which comes from outside", "its gradient is lost"),
    line="def forward(ctx, x):",
    corrected="make it an argument of forward",
    also=("zero-dim",),
)
class UsesAGlobalParameter(Function):
    @staticmethod
    def forward(ctx, x):
        return x * _WEIGHT.to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * _WEIGHT.detach().to(grad_output.dtype)


@faulty(
    "warned",
    X,
    says=("received a tensor that was not an input",),
    line="ctx.mark_dirty(y)",
    corrected="- ctx.mark_dirty(y)",
)
class MarksItsOutputDirty(Function):
    @staticmethod
    def forward(ctx, x):
        y = 2 * x
        ctx.mark_dirty(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


@faulty(
    "kept-alive",
    X,
    says=("tensors of a call to be freed", "RemembersAll.seen holds them"),
    line="RemembersAll.seen.append(x)",
    corrected="- RemembersAll.seen.append(x)",
)
class RemembersAll(Function):
    seen: list[Any] = []  # noqa: RUF012 - the fault

    @staticmethod
    def forward(ctx, x):
        RemembersAll.seen.append(x)
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


@faulty(
    "reference-cycle",
    X,
    says=("until the garbage collector ran", "ctx.y leads back to ctx"),
    line="ctx.y = y",
    corrected="+ ctx.save_for_backward(y)",
)
class KeepsItsOutputOnCtx(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y


@faulty(
    "reference-cycle",
    X,
    says=("ctx.again leads back to ctx",),
    line="ctx.again = lambda: ctx",
    corrected="- ctx.again = lambda: ctx",
)
class KeepsAClosureOfCtx(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.again = lambda: ctx
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


@faulty(
    "kept-on-ctx",
    X,
    says=("a tensor of shape [3] still on ctx.x", "what save_for_backward keeps is freed and checked"),
    line="ctx.x = x",
    corrected="+ ctx.save_for_backward(x)",
    also=("unchecked-write",),
)
class KeepsItsInputOnCtx(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * ctx.x * grad_output


# What fails -----------------------------------------------------------------------------------------------------------


@faulty(
    "forward-raises",
    X,
    says=("a result for these inputs", "ZeroDivisionError"),
    line="return x / len(x.shape[1:]) + 1 // 0",
    corrected="mend this line",
)
class FailsInForward(Function):
    @staticmethod
    def forward(ctx, x):
        return x / len(x.shape[1:]) + 1 // 0

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


@faulty(
    "forward-raises",
    X,
    says=("expected to return a Tensor",),
    line="return np.exp(x.numpy())",
    corrected="+ return torch.from_numpy(np.exp(x.numpy()))",
)
class ReturnsAnArrayFromForward(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.exp(x.numpy())

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.exp()


@faulty(
    "backward-raises",
    X,
    says=("HasNoBackward has no backward",),
    line="def forward(ctx, x):",
    corrected="add @staticmethod def backward(ctx, grad_output)",
)
class HasNoBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x


@faulty(
    "no-gradient",
    X,
    says=("a tensor among the outputs",),
    line="return float(x.sum())",
    corrected="return the result as a tensor",
)
class ReturnsANumber(Function):
    @staticmethod
    def forward(ctx, x):
        return float(x.sum())

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


@faulty(
    "backward-raises",
    X,
    says=("AttributeError", "scale"),
    line="return grad_output * ctx.scale",
    corrected="mend this line",
)
class ForgetsItsScale(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale


@faulty(
    "dtype-refused",
    X,
    says=("a result for inputs of float32", "float64 only"),
    line='raise TypeError("float64 only")',
    corrected="give dtypes= to the audit",
)
class TakesDoublesOnly(Function):
    @staticmethod
    def forward(ctx, x):
        if x.dtype is not torch.float64:
            raise TypeError("float64 only")
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


@faulty(
    "check-raises",
    torch.tensor([1.0, -2.0, 3.0]),
    says=("while this was checked: first derivatives", "whole numbers only"),
    line='raise ValueError("whole numbers only")',
    corrected="inputs that are moved a little",
)
class TakesWholeNumbersOnly(Function):
    @staticmethod
    def forward(ctx, x):
        if (x != x.round()).any():
            raise ValueError("whole numbers only")
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


# Corrections that have to be right in themselves ----------------------------------------------------------------------


@faulty(
    "forward-raises",
    X,
    says=("found ndarray",),
    line="ctx.save_for_backward(y)",
    corrected="+ ctx.save_for_backward(torch.from_numpy(y))",
)
class SavesAnArray(Function):
    @staticmethod
    def forward(ctx, x):
        y = np.asarray(np.exp(x.numpy()))
        ctx.save_for_backward(y)
        return torch.from_numpy(y)

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


@faulty(
    "forward-raises",
    X,
    says=("found int",),
    line="ctx.save_for_backward(x, 2)",
    corrected="keep anything else as an attribute",
)
class SavesANumber(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, 2)
        return x**2

    @staticmethod
    def backward(ctx, grad_output):
        x, n = ctx.saved_tensors
        return grad_output * n * x


@faulty(
    "gradient-type",
    X,
    says=("returned a set",),
    line="return {grad_output * 2}",
    corrected="+ return grad_output * 2",
)
class ReturnsASet(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return {grad_output * 2}


@faulty(
    "gradient-type",
    X,
    says=("returned a dict",),
    line='return {"x": grad_output * 2}',
    corrected="+ return grad_output * 2",
)
class ReturnsADict(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": grad_output * 2}


@faulty(
    "gradient-type",
    X,
    says=("returned a generator",),
    line="return (grad_output * k for k in (2,))",
    corrected="+ return tuple((grad_output * k for k in (2,)))",
)
class ReturnsAGenerator(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output * k for k in (2,))


@faulty(
    "unneeded-gradient",
    X,
    ROW,
    says=("None for a, and no work done for it",),
    line="return [grad_output * b, grad_output * a]",
    corrected="+ return [grad_output * b if ctx.needs_input_grad[0] else None, "
    "grad_output * a if ctx.needs_input_grad[1] else None]",
)
class ReturnsAList(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return [grad_output * b, grad_output * a]


@faulty(
    "unneeded-gradient",
    X,
    ROW,
    says=("None for a, and no work done for it",),
    line="return tuple(both)",
    corrected="compute it only if ctx.needs_input_grad[0]",
)
class ReturnsAListMadeBefore(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        both = [grad_output * b, grad_output * a]
        return tuple(both)


@faulty(
    "gradient-type",
    X,
    says=("ndarray",),
    line="return 2 * x.numpy() * grad_output.numpy()",
    corrected="+ return 2 * x * grad_output",
)
class ReturnsAnArrayOfProducts(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x.numpy() * grad_output.numpy()


@faulty(
    "second-derivative-raises",
    X,
    says=("Can't call numpy()",),
    line="def backward(ctx, grad_output):",
    corrected="+ return 2 * x * grad_output",
    also=("zero-dim",),
)
class ComputesOnArrays(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(2 * x.numpy() * grad_output.numpy())


@faulty(
    "second-derivative-raises",
    X,
    says=("Can't call numpy()",),
    line="def backward(ctx, grad_output):",
    corrected="+ @once_differentiable",
)
class ComputesByNumPyAlone(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = np.array([math.cos(v) for v in x.numpy().ravel()])
        return grad_output * torch.from_numpy(slope.reshape(x.shape)).to(x.dtype)


@faulty(
    "gradient-dtype",
    X,
    says=("one of float32",),
    line="return (2 * x * grad_output).float()",
    corrected="+ return 2 * x * grad_output",
)
class CastsItsGradient(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (2 * x * grad_output).float()


@faulty(
    "wrong-derivative",
    torch.tensor([[0.7, -1.2, 0.1], [0.4, 0.9, -0.3], [-0.6, 0.2, 1.1]]),
    says=("without keepdim=True",),
    line="return s * (grad_output - total)",
    corrected="+ total = (grad_output * s).sum(1, keepdim=True)",
)
class SoftmaxSummedBefore(Function):
    @staticmethod
    def forward(ctx, x):
        e = x.exp()
        s = e / e.sum(1, keepdim=True)
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx, grad_output):
        (s,) = ctx.saved_tensors
        total = (grad_output * s).sum(1)
        return s * (grad_output - total)


@faulty(
    "backward-raises",
    M,
    says=("the shapes are [2, 3] and [2]", "in SoftmaxOfARectangle.backward"),
    line="return s * (grad_output - total)",
    corrected="+ total = (grad_output * s).sum(1, keepdim=True)",
)
class SoftmaxOfARectangle(Function):
    @staticmethod
    def forward(ctx, x):
        e = x.exp()
        s = e / e.sum(1, keepdim=True)
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx, grad_output):
        (s,) = ctx.saved_tensors
        total = (grad_output * s).sum(1)
        return s * (grad_output - total)


@faulty(
    "no-derivative",
    X,
    says=("outputs of int64 alone",),
    line="return x.argsort()",
    corrected="+ ctx.mark_non_differentiable(output)",
)
class OrdersOnly(Function):
    @staticmethod
    def forward(ctx, x):
        return x.argsort()

    @staticmethod
    def backward(ctx, grad_output):
        return None

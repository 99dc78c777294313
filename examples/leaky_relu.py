"""Leaky ReLU: an argument that is not a tensor, with a default.

    y = x where x > 0, else alpha * x

Tutorials that come from `nn.Module` keep such an argument on ``self``, set by an `__init__`. A Function has no
instance: `alpha` is an argument of forward, is kept on ``ctx`` where backward needs it, and its gradient is None. A
class with such an `__init__` is refused where it is defined.
"""

import pullback as torch


class LeakyReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, alpha=0.01):
        ctx.save_for_backward(input)
        ctx.alpha = alpha
        return torch.where(input > 0, input, alpha * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        slope = torch.where(input > 0, 1.0, ctx.alpha).to(input.dtype)
        return grad_output * slope, None  # None: alpha is a number


def main() -> None:
    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    print("default: ", LeakyReLU.apply(x))
    print("by place:", LeakyReLU.apply(x, 0.2))
    print("by name: ", LeakyReLU.apply(x, alpha=0.2))

    LeakyReLU.apply(x, 0.2).sum().backward()
    print("gradient:", x.grad)
    assert (x.grad == torch.tensor([0.2, 1.0])).all()

    try:

        class WithState(torch.autograd.Function):
            def __init__(self, alpha):
                self.alpha = alpha

            @staticmethod
            def forward(ctx, input):
                return input

    except TypeError as error:
        print("refused:", str(error).splitlines()[1].strip())

    print("gradcheck:", torch.autograd.gradcheck(LeakyReLU.apply, (torch.randn(6), 0.2)))


if __name__ == "__main__":
    main()

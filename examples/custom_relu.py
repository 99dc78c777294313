"""ReLU with the gradient edited in place, and the two slips that tutorials make with it.

The gradient that backward is given belongs to the engine, which may pass it to others: write to a `clone()`. And the
mask decides what happens at 0, where ReLU has no derivative: ``input < 0`` lets the gradient through there, although
the text around it usually says that the derivative is 0 for ``input <= 0``, which is also PyTorch's choice.
"""

import pullback as torch


class CustomReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input <= 0] = 0
        return grad_input


class WritesToItsGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_output[input <= 0] = 0  # others may hold this tensor
        return grad_output


def main() -> None:
    relu = CustomReLU.apply
    x = torch.tensor([-1.0, 2.0, -3.0, 0.0], requires_grad=True)
    y = relu(x)
    print("output:  ", y)
    y.sum().backward()
    print("gradient:", x.grad)
    assert x.grad.tolist() == [0.0, 1.0, 0.0, 0.0]

    test_input = torch.tensor([-1.5, -0.5, 0.5, 2.0])  # not at the kink, where a finite difference says 1/2
    try:
        torch.autograd.gradcheck(WritesToItsGradient.apply, test_input)
    except RuntimeError as error:
        print("refused: ", str(error).splitlines()[0])
    else:
        raise AssertionError("a backward that writes to its argument was not noticed")
    print("gradcheck:", torch.autograd.gradcheck(relu, test_input))


if __name__ == "__main__":
    main()

"""A weighted sum as a custom node: two static methods, and the values that a call remembers live on ``ctx``.

Many tutorials write ``forward(self, x)`` and say that the call will then fail for want of `self`. Here it does not come
to a call: a class whose methods are not static is refused where it is defined, with the corrected line.
"""

import pullback as torch


class WeightedSum(torch.autograd.Function):
    """``y[...] = sum_d x[..., d] * weight[d]``: the last axis of x, weighted and summed."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)  # tensors that backward needs
        ctx.batch_axes = tuple(range(x.ndim - 1))  # anything else is an attribute
        return (x * weight).sum(dim=-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_output = grad_output.unsqueeze(-1)
        grad_x = grad_output * weight
        grad_weight = (grad_output * x).sum(dim=ctx.batch_axes)  # every x met the same weight: its gradients add up
        return grad_x, grad_weight  # one for each argument of forward, in order


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(100, 512, requires_grad=True)
    weight = torch.randn(512, requires_grad=True)

    y = WeightedSum.apply(x, weight)  # through the class; an instance is never made
    print("y has shape", tuple(y.shape), "and was made by", y.grad_fn.name())
    y.sum().backward()
    assert (weight.grad - x.detach().sum(dim=0)).abs().max() < 1e-4
    assert (x.grad == weight.detach()).all()

    try:

        class Instance(torch.autograd.Function):
            def forward(self, x):
                return x * 2

    except TypeError as error:
        print("refused:", str(error).splitlines()[-1].strip())

    print("gradcheck:", torch.autograd.gradcheck(WeightedSum.apply, (torch.randn(2, 3, 4), torch.randn(4))))


if __name__ == "__main__":
    main()

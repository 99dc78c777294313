"""A linear layer, ``y = x W^T + b``: several arguments, one of them optional, and only the gradients that are wanted.

``ctx.needs_input_grad`` says for each argument of forward whether anybody asked for its gradient. Unwanted gradients
are not computed: here, that of x in the first layer of a network. An argument that is left out gets None.
"""

import pullback as torch


class Linear(torch.autograd.Function):
    calls = 0  # how many of the two products backward has computed, to show that it computes no more than it must

    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            Linear.calls += 1
            grad_x = grad_output @ weight
        if ctx.needs_input_grad[1]:
            Linear.calls += 1
            grad_weight = grad_output.t() @ x
        if len(ctx.needs_input_grad) > 2 and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(dim=0)
        return grad_x, grad_weight, grad_bias  # a None too many is no mistake


def main() -> None:
    torch.manual_seed(0)
    x, target = torch.randn(64, 3), torch.randn(64, 2)
    weight = torch.zeros(2, 3, requires_grad=True)
    bias = torch.zeros(2, requires_grad=True)

    losses = []
    for _ in range(200):
        loss = ((Linear.apply(x, weight, bias) - target) ** 2).mean()
        weight.grad = bias.grad = None
        loss.backward()
        with torch.no_grad():
            weight -= 0.5 * weight.grad
            bias -= 0.5 * bias.grad
        losses.append(loss.item())
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {len(losses)} steps, {Linear.calls} products in backward")
    assert Linear.calls == len(losses)  # x needs no gradient, so there was one product a step, not two
    assert losses[-1] < losses[0]
    assert weight.grad.abs().max() < 1e-4  # the least-squares solution is reached

    inputs = torch.randn(4, 3), torch.randn(2, 3), torch.randn(2)
    print("gradcheck:", torch.autograd.gradcheck(Linear.apply, inputs))
    print("gradcheck without bias:", torch.autograd.gradcheck(Linear.apply, inputs[:2]))


if __name__ == "__main__":
    main()

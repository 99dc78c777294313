"""Swish, ``y = x * sigmoid(x)``: save the input alone, and a node for each call.

    dy/dx = s + x * s * (1 - s),    s = sigmoid(x)

Everything backward needs follows from x, so x is all that is saved. Two things tutorials get wrong about this: a class
is not a node, each `apply` makes one, with a ``ctx`` of its own; and a finite difference in float32 has three digits at
best, so PyTorch's gradcheck fails for correct code until its inputs are made double. Here gradcheck does that itself.
"""

import pullback as torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


def main() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    y = Swish.apply(x)
    print(y)
    y.sum().backward()
    print("dy/dx =", x.grad)

    y = x
    for _ in range(100):
        y = Swish.apply(y)
    nodes = [y.grad_fn]
    while nodes[-1].name() == "SwishBackward":
        nodes.append(nodes[-1].next_functions[0][0])
    print("100 calls:", len(set(nodes)) - 1, "nodes, and", nodes[-1].name())
    assert len({id(node.saved_tensors[0]) for node in nodes[:-1]}) == 100  # each with the x of its own call

    points = torch.randn(5)  # float32, without requires_grad
    print("gradcheck:", torch.autograd.gradcheck(Swish.apply, points))
    print("gradgradcheck:", torch.autograd.gradgradcheck(Swish.apply, points))


if __name__ == "__main__":
    main()

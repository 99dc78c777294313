"""A sparse matrix times a dense one, differentiable in the nonzeros and in the dense matrix.

`SpecialSpmm` is the form found in graph-network code: right for square matrices, with two slips that show when it is
reused.

* ``row * N + column`` finds an element in a flattened matrix if N is its number of columns; ``shape[0]`` counts rows.
* The product ``grad_output @ b.t()`` makes the whole N x N matrix, only to read it at the nonzeros.

`Spmm` mends both: the gradient of the entry at (i, j) is the product of row i of grad_output with row j of b. The
library's own ``sparse_coo_tensor(...) @ b`` does just that.
"""

import pullback as torch


class SpecialSpmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, indices, values, shape, b):
        a = torch.sparse_coo_tensor(indices, values, shape)
        ctx.save_for_backward(a, b)
        ctx.N = shape[0]
        return torch.matmul(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_values = grad_b = None
        if ctx.needs_input_grad[1]:
            grad_a_dense = grad_output.matmul(b.t())
            edge_idx = a._indices()[0, :] * ctx.N + a._indices()[1, :]
            grad_values = grad_a_dense.view(-1)[edge_idx]
        if ctx.needs_input_grad[3]:
            grad_b = a.t().matmul(grad_output)
        return None, grad_values, None, grad_b


class Spmm(SpecialSpmm):
    @staticmethod
    @torch.autograd.function.once_differentiable  # `a` was made in forward: its own derivative would be lost
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        rows, columns = a._indices()
        grad_values = (grad_output[rows] * b[columns]).sum(dim=1) if ctx.needs_input_grad[1] else None
        return None, grad_values, None, a.t().matmul(grad_output) if ctx.needs_input_grad[3] else None


def built_in(indices, values, size, b):
    return torch.sparse_coo_tensor(indices, values, size) @ b


def check(function, size) -> bool:
    """Whether the gradients of `function` are right for a sparse matrix of this size."""
    inputs = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.randn(3), size, torch.randn(size[1], 4)
    return torch.autograd.gradcheck(function, inputs, raise_exception=False)


def main() -> None:
    torch.manual_seed(0)
    print("SpecialSpmm, 3 x 3:", check(SpecialSpmm.apply, (3, 3)))
    print("SpecialSpmm, 2 x 3:", check(SpecialSpmm.apply, (2, 3)))

    n, edges = 20_000, torch.randint(0, 20_000, (2, 60_000))  # a dense 20,000 x 20,000 matrix has 1.6 GB
    values, b = torch.randn(60_000, requires_grad=True), torch.randn(n, 8, requires_grad=True)
    built_in(edges, values, (n, n), b).sum().backward()
    assert (values.grad - b.detach().sum(dim=1)[edges[1]]).abs().max() < 1e-5
    print(f"{n} x {n}, gradients of {values.grad.numel()} nonzeros and of a {n} x 8 matrix")

    print("gradcheck:", check(Spmm.apply, (2, 3)) and check(built_in, (2, 3)))


if __name__ == "__main__":
    main()

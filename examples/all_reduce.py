"""AllReduce as a Function written by hand, and the question that decides its backward: whose loss is it?

Start it by ``pullback run -n 4 examples/all_reduce.py``, by ``mpiexec -n 4 python examples/all_reduce.py``, or alone.

Every rank gives x, and gets the sum y over the ranks. Where each goes on with y in its own way, and the losses of all
ranks count, the gradients of y add up: backward is an all_reduce, too. Where every rank computes the same loss, which
counts once, each already has the whole gradient: backward passes it on. The wrong one of the two is n times too large,
or too small, and no error says so: an inner product does.
"""

import pullback as torch
import pullback.distributed as dist


class OneLoss(torch.autograd.Function):
    """The sum over the ranks; all ranks make one loss from it."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class LossOfEach(OneLoss):
    """The sum over the ranks; each rank makes its own loss from it."""

    @staticmethod
    def backward(ctx, grad_output):
        return LossOfEach.apply(grad_output)  # `apply`, so that it can be differentiated again


def adjoint_error(function, v: torch.Tensor, once: bool) -> float:
    """``<v, J u> - <J^T v, u>``. v: what comes to backward; once: every rank has the same v, which counts once."""
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    u = torch.arange(3, dtype=torch.float64) + dist.get_rank()
    (pulled,) = torch.autograd.grad(function.apply(x), x, v)
    left, right = (v * function.apply(u)).sum(), (pulled * u).sum()  # linear, so it is its own derivative
    if not once:
        dist.all_reduce(left)
    dist.all_reduce(right)
    return abs((left - right).item())


def main() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    same = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)  # one v of all
    own = same * (rank + 1)  # each rank's own v
    errors = {
        "LossOfEach, losses of each": adjoint_error(LossOfEach, own, once=False),
        "OneLoss, one loss": adjoint_error(OneLoss, same, once=True),
        "LossOfEach, one loss": adjoint_error(LossOfEach, same, once=True),
    }
    right, also_right, wrong = errors.values()
    assert max(right, also_right) < 1e-12
    assert (wrong > 1) == (size > 1)
    x = torch.full((2,), rank + 1.0, dtype=torch.float64, requires_grad=True)
    (OneLoss.apply(x) ** 2).sum().backward()
    assert x.grad.tolist() == [size * (size + 1.0)] * 2  # 2 y, with y = 1 + ... + size
    if rank == 0:
        for name, error in errors.items():
            print(f"{name}: <v, J u> and <J^T v, u> differ by {error:.1f}")
        print(f"gradient on {size} ranks: {x.grad.tolist()}")
    if size == 1:  # it perturbs one process alone, and all_reduce is the identity there
        print("gradcheck:", all(torch.autograd.gradcheck(f.apply, torch.ones(3)) for f in (LossOfEach, OneLoss)))


if __name__ == "__main__":
    dist.init_process_group()
    main()
    dist.destroy_process_group()

"""`gradcheck` of functions with collectives: what ranks check together, and what none of them can."""

import numpy as np
from pullback.autograd.gradcheck import GradcheckError

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F
from pullback.autograd import gradcheck, gradgradcheck

dist.init_process_group(timeout=30)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
W = dist.replicate(pullback.tensor([1.0, -2.0, 0.5], dtype=pullback.float64)).requires_grad_()
Z = dist.replicate(pullback.tensor([1 + 1j, 2 - 3j])).requires_grad_()
X = pullback.tensor(np.random.default_rng(RANK).standard_normal(3), requires_grad=True)


class Half(pullback.autograd.Function):
    """A square whose backward forgets a factor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def ring(x):
    return F.sendrecv(x, (RANK + 1) % SIZE, (RANK - 1) % SIZE)


def loss(w):
    return F.all_reduce((ring(dist.varying(w) ** 3) * (RANK + 1)).sum())


def raises(kind, said, call):
    try:
        call()
    except kind as error:
        assert said in str(error), error
    else:
        raise AssertionError(said)


for more in ({}, {"fast_mode": True}, {"check_forward_ad": True}, {"check_batched_grad": True}):
    assert gradcheck(loss, (W,), **more)
    assert gradcheck(lambda w: {"both": (loss(w), w * w)}, W, **more)
    assert gradcheck(lambda z: F.all_reduce((dist.varying(z) ** 2 * (1 + 1j * RANK)).sum()), (Z,), **more)
assert gradgradcheck(loss, (W,)) and gradgradcheck(loss, (W,), check_fwd_over_rev=True)
assert gradcheck(loss, (W.detach(),))  # where none requires grad, all do
assert W.grad is None and not dist.replicate(W).detach().requires_grad

# a wrong backward is found on every rank, with and without a collective around it
raises(GradcheckError, "analytical = 1/2 x numerical", lambda: gradcheck(Half.apply, (W,)))
wrong = lambda w: F.all_reduce(Half.apply(dist.varying(w)).sum())  # noqa: E731
raises(GradcheckError, "analytical = 1/2 x numerical", lambda: gradcheck(wrong, (W,)))
assert not gradcheck(wrong, (W,), raise_exception=False)

# each rank's own tensors: without communication by each rank for itself; else all of them as one replicated tensor
assert gradcheck(lambda x: (x**3).sum(), (X,))
of_each = lambda x: F.all_reduce((ring(x) * x).sum())  # noqa: E731
all_x = pullback.stack(F.all_gather(X.detach()))
assert gradcheck(lambda all_x: of_each(dist.varying(all_x)[RANK]), (all_x,))
assert gradcheck(lambda all_x: F.all_gather(ring(dist.varying(all_x)[RANK] ** 2)), (all_x,))
if SIZE == 1:
    assert gradcheck(of_each, (X,)) and gradcheck(lambda w: ring(dist.varying(w)), (W,))
else:
    raises(RuntimeError, "in a gradcheck, a Jacobian or a Hessian of varying tensors", lambda: gradcheck(of_each, (X,)))
    raises(RuntimeError, "in a gradcheck, a Jacobian or a Hessian of varying tensors", lambda: gradcheck(ring, (X,)))
    raises(
        RuntimeError, "in a gradcheck, a Jacobian or a Hessian of varying tensors", lambda: gradgradcheck(of_each, (X,))
    )
    raises(
        RuntimeError, "a varying result of replicated inputs", lambda: gradcheck(lambda w: ring(dist.varying(w)), (W,))
    )
raises(RuntimeError, "partial", lambda: gradcheck(lambda x: dist.partial(x), (X,)))
dist.barrier()
print("passed", flush=True)

"""What a gradient means: programs whose answer is known without a second process."""

import numpy as np

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F
from pullback.func import vmap

dist.init_process_group(timeout=30)
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def ring(x):
    return F.sendrecv(x, (RANK + 1) % SIZE, (RANK - 1) % SIZE)


def near(t, value):
    assert np.allclose(t.detach().numpy(), value, rtol=1e-13, atol=1e-13), (RANK, t, value)


def refused(said, call, *args):
    try:
        call(*args)
    except RuntimeError as error:
        assert said in str(error) and "meanings.py:" in str(error) and "What to do" in str(error), str(error)
    else:
        raise AssertionError(f"not refused: {said}")


# the loss of all ranks, on each of them: its gradient is not n times too large
x = pullback.full((3,), RANK + 1.0, dtype=pullback.float64, requires_grad=True)
loss = F.all_reduce((x * x).sum())
loss.backward()
near(x.grad, 2 * (RANK + 1))

# one parameter, used differently on each rank: the sum over the ranks
w = dist.replicate(pullback.ones(2, dtype=pullback.float64)).requires_grad_()
F.all_reduce((dist.varying(w) ** 2).sum() * (RANK + 1)).backward()
near(w.grad, SIZE * (SIZE + 1))
assert dist.placement(w.grad) == "replicated"

# its mean, in a step of an optimiser
optimizer = pullback.optim.SGD([w], lr=0.1)
optimizer.zero_grad()
F.all_reduce((dist.varying(w) ** 2).sum(), dist.ReduceOp.AVG).backward()
optimizer.step()
near(w, 0.8)
assert dist.placement(w) == "replicated"

# mixing is refused, also in backward
v = pullback.ones(2, dtype=pullback.float64)
refused("mul()", lambda: w * v)
refused("where()", lambda: pullback.where(v > 0, w, 0.0))
refused("mul()", lambda: w * v.numpy())
refused("linear()", lambda: pullback.nn.functional.linear(v[None], w[None]))
refused("index()", lambda: w[pullback.tensor([0])])
refused("gradient of a replicated tensor", lambda: (w * 1).backward(v))
refused("gradient of a varying tensor", lambda: (x[:2] * 1).backward(w.detach()))
refused("random numbers", lambda: pullback.nn.functional.dropout(w))
refused("add()", lambda: v.add_(w.detach()))
refused("", lambda: v.copy_(w.detach()))
refused("", lambda: w.detach().copy_(v))
refused("", lambda: v.__setitem__(0, w.detach()[0]))
refused("", lambda: w.detach().__setitem__(0, v[0]))
refused("mul()", lambda: pullback.func.vmap(lambda a: a * w)(pullback.ones(3, 2, dtype=pullback.float64)))


def hooked():
    y = w * 2
    y.register_hook(lambda g: g * v)
    y.sum().backward()


refused("mul()", hooked)


class Through(pullback.autograd.Function):
    """A Function that leaves the library for NumPy, both ways; `beside`: what its backward multiplies with."""

    beside = None

    @staticmethod
    def forward(ctx, x):
        return pullback.from_numpy(2 * x.numpy())

    @staticmethod
    def backward(ctx, g):
        return pullback.from_numpy(2 * g.numpy()) if Through.beside is None else 2 * g * Through.beside


y = Through.apply(w)
assert dist.placement(y) == "replicated"
w.grad = None
y.sum().backward()
near(w.grad, 2)
assert dist.placement(w.grad) == "replicated"
Through.beside = v
refused("mul()", lambda: Through.apply(w).sum().backward())

# a value that a rank receives and does not use: its node runs all the same
x.grad = None
received = ring(x * (RANK + 1))
(received.sum() if RANK == 0 else (0 * x).sum()).backward()
near(x.grad, SIZE if RANK == SIZE - 1 else 0)

# the same, where only the sender's gradient is asked for, and where only one rank's argument requires grad
received = ring(x * x)
(g,) = pullback.autograd.grad(received.sum() if RANK == 0 else x.sum(), x)
near(g, (2 * SIZE if RANK == SIZE - 1 else 0) + (RANK != 0))
one = x if RANK == 0 else x.detach()
total = F.all_reduce(ring(one * 3).sum())
total.backward()
assert total.requires_grad

# more communications than have place in one message; one rank reaches only some of them, and only through others
x.grad = None
steps = [x * 1]
for _ in range(140):
    steps.append(ring(steps[-1]))
(steps[-1].sum() if RANK == 0 else (0 * x + steps[70].detach()).sum()).backward()
near(x.grad, 1 if (RANK + 140) % SIZE == 0 else 0)
del steps

# after it, a backward of one rank alone is its own affair
if RANK == 0:
    (x * x).sum().backward()
dist.barrier()

# in a batch, and by its adjoint in a batch
batch = pullback.tensor(np.arange(6.0).reshape(2, 3) + RANK)
near(vmap(ring)(batch), np.arange(6.0).reshape(2, 3) + (RANK - 1) % SIZE)
near(vmap(F.all_reduce)(batch), sum(np.arange(6.0).reshape(2, 3) + r for r in range(SIZE)))
near(vmap(pullback.func.grad(lambda a: F.all_reduce((a * a).sum())))(batch), 2 * batch.numpy())

# a compiled function around a collective
f = pullback.compile(lambda a: (a * a).sin())
x.grad = None
F.all_reduce(f(ring(f(x))).sum()).backward()
y = pullback.full((3,), RANK + 1.0, dtype=pullback.float64, requires_grad=True)
F.all_reduce(((ring((y * y).sin())) ** 2).sin().sum()).backward()
near(x.grad, y.grad.numpy())
print("passed", flush=True)

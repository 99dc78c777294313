"""The collectives under transforms, against the same on one process, whose argument has those of all ranks in rows."""

import functools
import sys

import numpy as np

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F
from pullback.func import grad, hessian, jacfwd, jacrev, jet, jvp, linearize, vjp, vmap
from pullback.interpreters.traced import TraceError
from pullback.utils.checkpoint import checkpoint

dist.init_process_group(timeout=60)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
LAST, NEXT, BEFORE = SIZE - 1, (RANK + 1) % SIZE, (RANK - 1) % SIZE
OP = dist.ReduceOp
DTYPE = getattr(pullback, sys.argv[1])


def rows(seed):
    """Numbers of all ranks, a row for each: between 1/4 and 3/4, none equal."""
    g = np.random.default_rng(seed)
    found = 0.25 + g.random((SIZE, 4)) / 2 + (0.5j * g.random((SIZE, 4)) if DTYPE.is_complex else 0)
    return pullback.tensor(found, dtype=DTYPE)


def only(x, root):
    """A row of all ranks' where only `root` has something."""
    return pullback.stack([x if r == root else 0 * x for r in range(SIZE)])


def each(x):
    return [x * (r + 1) for r in range(SIZE)]


def shifted(x):
    e = dist.halo(x, 0)
    return 4 * x - e[2:] - e[:-2]


ALL = 4 * np.eye(4 * SIZE) - np.eye(4 * SIZE, k=1) - np.eye(4 * SIZE, k=-1)
INVERSE = pullback.tensor(np.linalg.inv(ALL), dtype=DTYPE)
TAKES_TURNS = pullback.tensor(np.arange(1.0, SIZE + 1), dtype=DTYPE)[:, None]


def solved(x):
    return (INVERSE @ x.reshape(-1)).reshape(SIZE, 4)


REPLICATED = {  # name: on ranks, and on all rows at once; one result for all
    "all_reduce": (F.all_reduce, lambda x: x.sum(0)),
    "all_reduce AVG": (lambda x: F.all_reduce(x, OP.AVG), lambda x: x.mean(0)),
    "all_reduce PRODUCT": (lambda x: F.all_reduce(x, OP.PRODUCT), lambda x: x.prod(0)),
    "all_reduce of parts": (lambda x: F.all_reduce(dist.partial(x) * 3), lambda x: 3 * x.sum(0)),
    "broadcast": (lambda x: F.broadcast(x, LAST), lambda x: x[LAST]),
    "all_gather": (lambda x: F.all_gather(x)[0], lambda x: x[0]),
    "all_gather_into_tensor": (F.all_gather_into_tensor, lambda x: x.reshape(-1)),
    "dot": (lambda x: dist.dot(x, x), lambda x: (x * x).sum()),
}
VARYING = {  # a row of the result for each
    "reduce": (lambda x: F.reduce(x, LAST), lambda x: only(x.sum(0), LAST)),
    "gather": (lambda x: F.gather(x)[LAST], lambda x: only(x[LAST], 0)),
    "scatter": (lambda x: F.scatter(each(x), LAST), lambda x: TAKES_TURNS * x[LAST]),
    "reduce_scatter": (lambda x: F.reduce_scatter(x, each(x)), lambda x: TAKES_TURNS * x.sum(0)),
    "all_to_all": (lambda x: F.all_to_all([x] * SIZE, each(x))[0], lambda x: TAKES_TURNS * x[0]),
    "sendrecv": (lambda x: F.sendrecv(x, NEXT, BEFORE), lambda x: x.roll(1, 0)),
    "halo": (lambda x: dist.halo(x, 0, periodic=True)[1:], lambda x: pullback.cat([x, x.roll(-1, 0)[:, :1]], 1)),
    "varying": (lambda x: dist.varying(F.all_reduce(x)) * x, lambda x: x.sum(0) * x),
    "fft": (lambda x: dist.fft(x, 0), lambda x: pullback.fft.fft(x.reshape(-1)).reshape(SIZE, 4)),
}
SOLVERS = {
    "cg": (lambda x: dist.cg(shifted, x, rtol=1e-14), solved),
    "gmres": (lambda x: dist.gmres(shifted, x, rtol=1e-14), solved),
}
if not DTYPE.is_complex:
    REPLICATED["all_reduce MAX"] = (lambda x: F.all_reduce(x, OP.MAX), lambda x: x.amax(0))
    REPLICATED["all_reduce MIN"] = (lambda x: F.all_reduce(x, OP.MIN), lambda x: x.amin(0))
    REPLICATED["norm"] = (dist.norm, pullback.linalg.vector_norm)


def close(name, found, expected):
    found, expected = found.detach().numpy(), expected.detach().numpy()
    assert found.shape == expected.shape, (RANK, name, found.shape, expected.shape)
    error = np.abs(found - expected).max(initial=0) / max(1.0, np.abs(expected).max(initial=0))
    assert error <= 1e-12, f"rank {RANK}: {name}: {error:.1e}\n{found}\n{expected}"


def refused(said, call):
    try:
        call()
    except RuntimeError as error:
        assert said in str(error) and "What to do" in str(error), str(error)
    else:
        raise AssertionError(f"{name}: not refused: {said}")


def size_of(y):
    """A number that depends on each element, not linearly."""
    total = ((y * y.conj()).real if y.is_complex() else y * y * y).sum()
    return (1 + total * total).log()


X, V, W = rows(0), rows(1), rows(2)


def check(name, on_ranks, on_one):
    x, v, w = X[RANK], V[RANK], W[RANK]

    def part(y):
        """What this rank has of a result."""
        return y if name in REPLICATED else y[RANK]

    def f(x):
        return on_ranks(x * x * x)

    def whole(x):
        return on_one(x * x * x)

    def loss(x):
        y = size_of(f(x))
        return y if dist.placement(y) == "replicated" else F.all_reduce(y)

    def whole_loss(x):
        y = whole(x)
        return size_of(y) if name in REPLICATED else sum(size_of(row) for row in y)

    def once(x, v):
        return jvp(f, (x,), (v,))[1]

    def one(x, v):
        return jvp(whole, (x,), (v,))[1]

    twice, two = jvp(lambda x: once(x, v), (x,), (w,)), jvp(lambda x: one(x, V), (X,), (W,))
    close(f"{name}: jvp", twice[0], part(two[0]))
    close(f"{name}: jvp of jvp", twice[1], part(two[1]))
    for found, expected in zip(jet(f, (x,), ((v, w),))[1], jet(whole, (X,), ((V, W),))[1], strict=True):
        close(f"{name}: jet", found, part(expected))
    close(f"{name}: linearize", linearize(f, x)[1](v), part(one(X, V)))
    (pulled,) = vjp(loss, x)[1](dist.replicate(pullback.tensor(2.0, dtype=pullback.float64)))
    close(f"{name}: vjp", pulled, 2 * grad(whole_loss)(X)[RANK])
    pushed = jvp(grad(loss), (x,), (v,))[1]
    close(f"{name}: forward over reverse", pushed, jvp(grad(whole_loss), (X,), (V,))[1][RANK])
    leaf = x.detach().requires_grad_()
    checkpoint(loss, leaf, use_reentrant=False).backward()
    close(f"{name}: checkpoint", leaf.grad, grad(whole_loss)(X)[RANK])
    if SIZE == 1 and name not in SOLVERS:
        close(f"{name}: jacfwd of one", jacfwd(f)(x), jacfwd(whole)(X).reshape(*f(x).shape, *x.shape))
        close(f"{name}: hessian of one", hessian(loss)(x), hessian(whole_loss)(X).reshape(*x.shape, *x.shape))
    batch = pullback.stack([x, 2 * x])
    if name in SOLVERS:
        refused(f"{name}() under vmap", lambda: vmap(f)(batch))
        return
    close(f"{name}: vmap", vmap(f)(batch), pullback.stack([part(whole(X)), part(whole(2 * X))]))
    gradients = [grad(whole_loss)(k * X)[RANK] for k in (1, 2)]
    close(f"{name}: vmap of grad", vmap(grad(loss))(batch), pullback.stack(gradients))
    along = pullback.stack([part(one(X, V)), part(one(X, W))])
    close(f"{name}: vmap of jvp", vmap(once, (None, 0))(x, pullback.stack([v, w])), along)
    if SIZE > 1:
        refused("Jacobian or a Hessian of varying", lambda: jacfwd(f)(x))
        refused("Jacobian or a Hessian of varying", lambda: hessian(loss)(x))
    functional = functools.partial(pullback.autograd.functional.jacobian, f)
    ways = jacrev(f), jacrev(f, chunk_size=1), functional, functools.partial(functional, vectorize=True)
    for number, jacobian in enumerate(ways[: 2 if f(x).is_complex() else 4]):
        if name in REPLICATED and not DTYPE.is_complex:
            close(f"{name}: jacobian {number}", jacobian(x), jacrev(whole)(X).movedim(-2, 0)[RANK])
        elif name not in REPLICATED and SIZE > 1:
            refused("Jacobian or a Hessian of varying", lambda: jacobian(x))  # noqa: B023
    try:
        pullback.compile(f)(x)
    except TraceError as error:
        assert "compile the functions around a collective" in str(error), error
    else:
        raise AssertionError("not refused")


for name, functions in (REPLICATED | VARYING | SOLVERS).items():
    check(name, *functions)

# by a parameter of all, a Jacobian and a Hessian are what they are on one process
parameter = dist.replicate(X[0].clone())


def shared(p):
    return F.all_reduce((dist.varying(p) ** 3 * X[RANK]).sum().sin())


def shared_on_one(p):
    return sum((p**3 * row).sum().sin() for row in X)


if not DTYPE.is_complex:
    for name, transform in (("jacfwd", jacfwd), ("jacrev", jacrev), ("hessian", hessian)):
        found = transform(shared)(parameter)
        assert dist.placement(found) == "replicated"
        close(f"{name} by a parameter", found, transform(shared_on_one)(X[0]))

# compiled functions around a collective, to second order
f, leaf = pullback.compile(lambda x: (x * x).sin()), X[RANK].detach().requires_grad_()
(g,) = pullback.autograd.grad(size_of(F.all_reduce(f(leaf))), leaf, create_graph=True)
close("compiled, around", g, grad(lambda x: size_of((x * x).sin().sum(0)))(X)[RANK])
print("passed", flush=True)

"""Grids, transforms and solvers on ranks against NumPy on one process; and what they refuse."""

import functools
import sys

import numpy as np
import pytest

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F

dist.init_process_group(timeout=60)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
SHAPE = (2, SIZE // 2) if SIZE % 2 == 0 else (1, SIZE)


def close(a, b, most=1e-12):
    a, b = (np.asarray(t.detach().numpy() if hasattr(t, "detach") else t) for t in (a, b))
    assert a.shape == b.shape and np.abs(a - b).max(initial=0) <= most * max(1, np.abs(b).max(initial=0)), (RANK, a, b)


def refused(kind, said, call):
    try:
        call()
    except kind as error:
        assert said in str(error), (said, error)
    else:
        raise AssertionError(f"{said}: not refused")


def heat():
    """The heat equation on a grid in two dimensions: value, gradients and a Hessian-vector product."""
    n, m = 4 * SHAPE[0] + 1, 5 * SHAPE[1] + 2
    rng = np.random.default_rng(0)
    start, k, target, direction = (rng.random((n, m)) for _ in range(4))
    for periodic in (False, True, (True, False)):
        grid = dist.Grid(SHAPE, periodic)
        whole_ends = (periodic,) * 2 if isinstance(periodic, bool) else periodic

        def on_one(u, axis, ends=whole_ends):
            first, last = u.narrow(axis, 0, 1), u.narrow(axis, u.shape[axis] - 1, 1)
            return pullback.cat([last, u, first] if ends[axis] else [last * 0, u, first * 0], axis)

        def step(u, k, borders):
            a, b = borders(u, 0), borders(u, 1)
            return u + 0.1 * k * (a[2:] + a[:-2] + b[:, 2:] + b[:, :-2] - 4 * u)

        def derivatives(part, borders, total):
            u0, c = (pullback.tensor(a[part], requires_grad=True) for a in (start, k))
            u = u0
            for _ in range(6):
                u = step(u, c, borders)
            value = total(((u - pullback.tensor(target[part])) ** 2).sum())
            gu, gk = pullback.autograd.grad(value, (u0, c), create_graph=True)
            product = total((gk * pullback.tensor(direction[part])).sum())
            return gu, gk, *pullback.autograd.grad(product, (u0, c))

        part = grid.part((n, m))
        split = derivatives(part, lambda u, axis, grid=grid: dist.halo(u, axis, grid=grid), F.all_reduce)
        whole = derivatives((slice(None),) * 2, on_one, lambda s: s)
        for a, b in zip(split, whole, strict=True):
            close(a, b.detach().numpy()[part])


def grids():
    grid = dist.Grid(SHAPE, periodic=(True, False))
    assert np.ravel_multi_index(grid.coords, SHAPE) == RANK
    cells = np.arange(7 * 11).reshape(7, 11)
    parts = [None] * SIZE
    dist.all_gather_object(parts, cells[grid.part(cells.shape)].ravel().tolist())
    assert sorted(cell for part in parts for cell in part) == list(range(77))
    line = grid.line(1)
    assert dist.get_world_size(line) == SHAPE[1] and dist.get_rank(line) == grid.coords[1]
    padded = np.pad(cells, ((1, 1), (0, 0)), mode="wrap")
    padded = np.pad(padded, ((0, 0), (1, 1)))  # corners come by the second call
    rows, columns = grid.part(cells.shape)
    own = pullback.tensor(cells[rows, columns].astype(float))
    found = dist.halo(dist.halo(own, 0, grid=grid), 1, grid=grid)
    close(found, padded[rows.start : rows.stop + 2, columns.start : columns.stop + 2])
    refused(ValueError, f"product is {SIZE}", lambda: dist.Grid((SIZE + 1,)))
    refused(ValueError, f"product is {SIZE}", lambda: dist.Grid(()))
    refused(ValueError, "a bool, or 1", lambda: dist.Grid((SIZE,), (True, False)))
    refused(ValueError, "2 lengths", lambda: grid.part((3,)))
    refused(IndexError, "one of the 2", lambda: grid.neighbour(2, 1))
    refused(ValueError, "Grid() alone", lambda: dist.halo(own, 0, periodic=True, grid=grid))
    refused(IndexError, "one of the 2", lambda: dist.halo(pullback.ones(2, 2, 2), 2, grid=grid))
    refused(IndexError, "from -2 to 1", lambda: dist.halo(own, 2))
    if SIZE > 1:  # every rank receives what is longer or shorter than its own
        uneven = pullback.ones(2, 3 + RANK)
        refused(dist.DistBackendError, "has sent other data", lambda: dist.halo(uneven, 0, periodic=True))
    refused(ValueError, "width", lambda: dist.halo(own, 0, 0))


def fourier():
    rng = np.random.default_rng(1)
    starts = np.cumsum([0, *range(1, SIZE + 1)])
    for shape, axis in (((4, starts[-1]), 1), ((starts[-1],), 0), ((starts[-1], 2, 3), 0), ((0, starts[-1]), -1)):
        for x in (rng.standard_normal(shape), rng.standard_normal(shape) + 1j * rng.standard_normal(shape)):
            part = [slice(None)] * len(shape)
            part[axis] = slice(starts[RANK], starts[RANK + 1])
            for norm in (None, "ortho", "forward"):
                close(
                    dist.fft(pullback.tensor(x[tuple(part)]), axis, norm),
                    np.fft.fft(x, axis=axis, norm=norm)[tuple(part)],
                )
            there = dist.fft(pullback.tensor(x[tuple(part)]), axis)
            close(dist.ifft(there, axis), x[tuple(part)] + 0j)
    refused(IndexError, "from -1 to 0", lambda: dist.fft(pullback.ones(3), 1))


def products():
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((SIZE, 3)) + 1j * rng.standard_normal((SIZE, 3)) for _ in range(2))
    a, b = pullback.tensor(x[RANK]), pullback.tensor(y[RANK])
    close(dist.dot(a, b), np.sum(x * y))
    close(dist.vdot(a, b), np.vdot(x, y))
    for order in (1, 2, 3.5, float("inf")):
        close(dist.norm(a, order), np.linalg.norm(x.ravel(), order))
    assert dist.placement(dist.norm(a)) == "replicated"
    zero = dist.varying(pullback.zeros(2, requires_grad=True))
    dist.norm(zero).backward()
    assert zero.grad.tolist() == [0, 0]
    few = pullback.ones(RANK)  # none on the first
    close(dist.norm(few), np.float32(np.sqrt(SIZE * (SIZE - 1) / 2)), 1e-6)
    refused(ValueError, "at least 1", lambda: dist.norm(a, 0.5))
    refused(RuntimeError, "one shape", lambda: dist.dot(a, b[:2]))
    refused(RuntimeError, "varying", lambda: dist.norm(dist.replicate(pullback.ones(2))))


def solvers():
    rng = np.random.default_rng(3)
    n = 4 * SIZE
    part = slice(4 * RANK, 4 * RANK + 4)
    for dtype in (float, complex):
        m = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype is complex else 0)
        general, right = m + 3 * n * np.eye(n), (m[0] + 1).astype(dtype)
        for solve, matrix in ((dist.cg, m @ m.conj().T + n * np.eye(n)), (dist.gmres, general)):

            def apply(x, rows):
                return rows @ dist.varying(F.all_gather_into_tensor(x))

            rows = pullback.tensor(matrix[part], requires_grad=True)
            b = pullback.tensor(right[part], requires_grad=True)
            x = solve(apply, b, (rows,), rtol=1e-13)
            expected = np.linalg.solve(matrix, right)
            close(x, expected[part], 1e-11)
            F.all_reduce((x * x.conj()).real.sum()).backward()
            w = np.linalg.solve(matrix.conj().T, 2 * expected)
            close(b.grad, w[part], 1e-11)
            close(rows.grad, -np.outer(w, expected.conj())[part], 1e-11)
    ones, k = pullback.ones(3), pullback.tensor(2.0, requires_grad=True)
    assert np.allclose(dist.cg(lambda x: 2 * x, ones).numpy(), 0.5)
    assert dist.gmres(lambda x: 2 * x, ones * 0).tolist() == [0, 0, 0]
    refused(RuntimeError, "not in params", lambda: dist.cg(lambda x: k * x, ones))
    refused(RuntimeError, "varying b", lambda: dist.cg(lambda x: x, dist.replicate(ones)))
    refused(RuntimeError, "floating point", lambda: dist.cg(lambda x: x, pullback.arange(3)))
    refused(RuntimeError, "shape [3]", lambda: dist.gmres(lambda x: x[:2], ones))
    refused(RuntimeError, "not converged", lambda: dist.cg(lambda x: x * pullback.arange(1.0, 4.0), ones, maxiter=1))
    refused(ValueError, "restart", lambda: dist.gmres(lambda x: x, ones, restart=0))
    not_for_cg(rng, n, part)


def not_for_cg(rng, n, part):
    """What CG cannot solve is found in a few steps, and not after 10 n; and so is a residual of GMRES that stays."""
    m = rng.standard_normal((n, n))
    good = m @ m.T + n * np.eye(n)
    steps = []

    def solved(solve, matrix, right=None):
        rows, b = pullback.tensor(matrix[part]), pullback.tensor((m[0] if right is None else right)[part])
        steps.clear()
        x = solve(lambda x: (steps.append(0), rows @ dist.varying(F.all_gather_into_tensor(x)))[1], b)
        close(x, np.linalg.solve(matrix, m[0])[part], 1e-6)

    def found_soon(said, solve, *given, most):
        refused(RuntimeError, said, lambda: solved(solve, *given))
        assert len(steps) <= most, (said, len(steps))

    solved(dist.cg, good + 1e-12 * m)  # as rounding makes it
    for skew in (m - m.T, 1e-4 * (m - m.T), np.eye(n, k=1), 1j * (m + m.T)):
        kind = skew.dtype.type
        found_soon("is Hermitian, found <x, A y> =", dist.cg, good + skew, m[0].astype(kind), most=4)
        if kind is np.float64:
            solved(dist.gmres, good + skew)
    found_soon("positive definite, found x^H A x = -", dist.cg, -good, most=2)
    found_soon("positive definite", dist.cg, np.diag(np.where(np.arange(n) == n - 1, 0.0, 1.0)), most=4)
    found_soon("is Hermitian, found <x, A y> = nan", dist.cg, good * np.nan, most=2)
    found_soon("not converged", dist.gmres, good * np.nan, most=4)
    around = np.roll(np.eye(n), 1, axis=0)  # the first n - 1 steps of GMRES bring nothing
    first = functools.partial(dist.gmres, restart=2)
    found_soon("give a larger maxiter or rtol, or restart", first, around, np.eye(n)[0], most=6)
    # a flow with little diffusion, whose residual falls slowly: it says how many cycles more would do
    flow = 2.001 * np.eye(n) - 1.0 * np.eye(n, k=1) - np.eye(n, k=-1)
    found_soon(" more would be needed", first, flow, np.eye(n)[0], most=15 * n + 2)
    with pytest.raises(RuntimeError, match="maxiter=") as error:
        solved(first, flow, np.eye(n)[0])
    enough = int(str(error.value).partition("maxiter=")[2].partition(";")[0])
    rows = pullback.tensor(flow[part])
    x = first(
        lambda x: rows @ dist.varying(F.all_gather_into_tensor(x)), pullback.tensor(np.eye(n)[0][part]), maxiter=enough
    )
    close(x, np.linalg.solve(flow, np.eye(n)[0])[part], 1e-6)
    refused(TypeError, "Tensor", lambda: dist.cg(lambda x: x, [1.0]))


globals()[sys.argv[1]]()
print("passed", flush=True)

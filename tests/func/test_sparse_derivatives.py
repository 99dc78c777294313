"""`pullback.func.sparse`: patterns, colourings, plans, and the values of sparse Jacobians and Hessians."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import Function
from pullback.func import forward as of_batch
from pullback.func import sparse
from pullback.func.sparse import colouring, spy
from pullback.func.sparse.sparse_plan import Plan
from pullback.interpreters.traced import TraceError

pytest.importorskip("scipy")

F = Callable[[Any], Any]


def point(n: int = 12, dtype: Any = np.float64) -> Any:
    return pullback.from_numpy(np.random.default_rng(0).uniform(0.5, 1.5, n).astype(dtype))


def brusselator(z: Any) -> Any:
    """Reaction and diffusion of two fields on a torus."""
    g = round((z.shape[0] // 2) ** 0.5)
    u, v = z[: g * g].reshape(g, g), z[g * g :].reshape(g, g)

    def laplacian(w: Any) -> Any:
        return sum(pullback.roll(w, by, axis) for by in (1, -1) for axis in (0, 1)) - 4 * w

    first = 1 + u * u * v - 4.4 * u + 10 * laplacian(u)
    second = 3.4 * u - u * u * v + 10 * laplacian(v)
    return pullback.cat([first.reshape(-1), second.reshape(-1)])


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1::2] - x[::2] ** 2) ** 2 + (1 - x[::2]) ** 2).sum()


BANDS = pullback.from_numpy(np.diag(np.ones(12)) + np.diag(np.ones(11), 1) + np.diag(np.ones(11), -1))
BLOCK = pullback.from_numpy(np.arange(1.0, 17).reshape(4, 4))


def written(x: Any) -> Any:
    """A stencil as one writes it in NumPy: into an array of zeros."""
    y = pullback.zeros(12, dtype=pullback.float64)
    y[1:-1] = x[2:] * x[:-2] - x[1:-1] ** 2
    y[::4] += x[::4]
    return y


class Squared(Function):
    """x**2, with a jvp."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * t


class Sine(Function):
    """sin(x) on arrays, without a jvp."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return pullback.from_numpy(np.sin(x.detach().numpy()))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * pullback.from_numpy(np.cos(ctx.saved_tensors[0].detach().numpy()))


class Rounded(Function):
    """round(x), whose derivative is said to be 1."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x.round()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * 1


WEIGHTS = pullback.tensor([-0.5, 0.3, 1.0, 99.0], dtype=pullback.float64)
EXACT: dict[str, F] = {
    "interpolation": lambda x: np.interp(x, [-9.0, -0.2, 0.7, 9.0], [1.0, 2.0, 5.0, 9.0]),
    "constants that are picked": lambda x: WEIGHTS[np.searchsorted(WEIGHTS, x)] * x,
    "difference": lambda x: x[1:] - x[:-1],
    "stencil": lambda x: x.roll(1) - 2 * x + x.roll(-1) ** 2,
    "stencil written in place": written,
    "convolution": lambda x: pullback.nn.functional.conv1d(x[None, None] ** 2, pullback.ones(1, 1, 3).double()),
    "banded": lambda x: BANDS @ x**3,
    "block-diagonal": lambda x: (x.reshape(3, 4) @ BLOCK).sin(),
    "blocks by vmap": lambda x: func.vmap(lambda row: row.sum() * row)(x.reshape(3, 4)),
    "arrow": lambda x: pullback.cat([(x * x).sum()[None], x[1:] * x[0]]),
    "lower triangle": lambda x: (x**2).cumsum(0),
    "sums of rows": lambda x: x.reshape(3, 4).exp().sum(1),
    "einsum": lambda x: pullback.einsum("ij,jk->ik", x.reshape(3, 4), BLOCK),
    "a gradient": func.grad(lambda x: (x[1:] * x[:-1]).sin().sum()),
    "a compiled function": pullback.compile(lambda x: x[1:] * x[:-1]),
    "a Function": lambda x: Squared.apply(x)[1:] + x[:-1],
    "a Function whose rule is not its derivative": lambda x: Rounded.apply(x)[1:] * x[:-1],
    "nothing": lambda x: pullback.ones(3, dtype=pullback.float64) + x.detach()[:3],
    "one number": lambda x: x.sum(),
}

HESSIANS: dict[str, F] = {
    "rosenbrock": rosenbrock,
    "tridiagonal": lambda x: (x[1:] * x[:-1]).sin().sum(),
    "arrow": lambda x: (x[0] * x[1:] ** 2).sum() + x[0] ** 3,
    "arrow, the other way round": lambda x: (x[-1] * x[:-1] ** 2).sum(),
    "linear": lambda x: (3 * x).sum(),
    "blocks": lambda x: x.reshape(3, 4).logsumexp(1).sum(),
    "dense": lambda x: x.sum() ** 2,
    "matrix": lambda x: (x.reshape(3, 4)[1:] * x.reshape(3, 4)[:-1] ** 2).sum(),
    "of a vmapped function": lambda x: func.vmap(lambda r: r[0].sin() * r[1])(x.reshape(3, 4)).sum(),
    "of a Function": lambda x: (Squared.apply(x)[1:] * x[:-1]).sum(),
    "of a compiled function": pullback.compile(lambda x: (x[1:] * x[:-1] ** 2).sum()),
    "written in place": lambda x: (written(x) ** 2).sum(),
}


# Patterns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT)
def test_jacobians_are_exact_in_pattern_and_value(name: str) -> None:
    f, x = EXACT[name], point()
    dense = func.jacfwd(f)(x).numpy().reshape(-1, 12)
    found = sparse.jacobian_sparsity(f, x)
    np.testing.assert_array_equal(found.matrix.toarray(), dense != 0)
    assert not found.unknown
    assert not found.local
    for by in ("auto", "columns", "rows", "both"):
        plan = sparse.jacobian_plan(f, x, colouring=by)
        np.testing.assert_allclose(sparse.sparse_jacobian(f, plan)(x).toarray(), dense, rtol=1e-14)


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_are_exact_in_pattern_and_value(name: str) -> None:
    f, x = HESSIANS[name], point()
    dense = func.hessian(f)(x).numpy()
    assert ((dense != 0) <= sparse.hessian_sparsity(f, x).matrix.toarray()).all()
    if name not in ("written in place",):
        np.testing.assert_array_equal(sparse.hessian_sparsity(f, x).matrix.toarray(), dense != 0)
    np.testing.assert_allclose(sparse.sparse_hessian(f)(x).toarray(), dense, rtol=1e-12, atol=1e-14)


def test_a_result_lies_in_memory_as_outside() -> None:
    def f(x: Any) -> Any:
        turned = x.mT
        return turned.masked_fill(turned > 0, 0.5).view(-1)

    assert sparse.jacobian_sparsity(f, pullback.tensor([[1.0, -1.0], [-2.0, 3.0]])).matrix.nnz == 4


def test_the_brusselator_is_exact() -> None:
    x = point(2 * 8 * 8)
    dense = func.jacfwd(brusselator)(x).numpy()
    plan = sparse.jacobian_plan(brusselator, x)
    np.testing.assert_array_equal(plan.sparsity.matrix.toarray(), dense != 0)
    np.testing.assert_allclose(sparse.sparse_jacobian(brusselator, plan)(x).toarray(), dense, rtol=1e-14)
    assert plan.by_columns <= 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_that_of_the_input(dtype: Any) -> None:
    assert sparse.sparse_jacobian(lambda x: x**2)(point(4, dtype)).dtype == dtype


def test_a_large_problem_takes_memory_of_its_nonzeros() -> None:
    x = point(2 * 100 * 100)
    plan = sparse.jacobian_plan(brusselator, x)
    assert plan.sparsity.matrix.nnz == 6 * len(x)
    found = sparse.sparse_jacobian(brusselator, plan)(x)
    v = pullback.from_numpy(np.random.default_rng(1).normal(size=len(x)))
    np.testing.assert_allclose(found @ v.numpy(), func.jvp(brusselator, (x,), (v,))[1].numpy(), rtol=1e-9, atol=1e-9)


def test_elements_that_a_condition_chooses_depend_on_both_sides() -> None:
    x = point()
    found = sparse.jacobian_sparsity(lambda x: pullback.where(x > 1, x.roll(1), x * 2), x)
    np.testing.assert_array_equal(
        found.matrix.toarray(), np.eye(12, dtype=bool) | np.eye(12, k=-1, dtype=bool) | np.eye(12, k=11, dtype=bool)
    )
    assert not found.local


def test_a_constant_condition_chooses() -> None:
    mask = pullback.from_numpy(np.arange(12) % 2 == 0)
    found = sparse.jacobian_sparsity(lambda x: pullback.where(mask, x * 2, 1.0) * mask, point())
    assert found.matrix.nnz == 6


def test_sorting_depends_on_the_whole_lane() -> None:
    found = sparse.jacobian_sparsity(lambda x: x.reshape(3, 4).sort(1).values, point())
    np.testing.assert_array_equal(found.matrix.toarray(), np.kron(np.eye(3), np.ones((4, 4))) > 0)
    assert not found.local


def test_a_look_at_a_value_makes_a_pattern_local() -> None:
    def f(x: Any) -> Any:
        return x.roll(1) if x[0].detach() > 0 else 2 * x

    plan = sparse.jacobian_plan(f, point())
    assert plan.sparsity.local
    assert "local: the function looked at values" in repr(plan)
    assert not sparse.jacobian_plan(EXACT["stencil"], point()).sparsity.local


def test_a_function_of_unknown_structure_depends_on_all_and_is_listed() -> None:
    weights = pullback.from_numpy(np.linspace(-0.9, 0.9, 8).reshape(1, 2, 2, 2))

    def f(x: Any) -> Any:
        return pullback.nn.functional.grid_sample(x.reshape(1, 1, 3, 4) * 1, weights * x[0], align_corners=False)

    found = sparse.jacobian_sparsity(f, point())
    assert found.unknown
    assert ((func.jacfwd(f)(point()).numpy().reshape(-1, 12) != 0) <= found.matrix.toarray()).all()
    assert "of unknown structure" in repr(found)
    assert next(iter(found.unknown)) in repr(found)


def test_a_function_on_arrays_without_jvp_is_followed_backward() -> None:
    def f(x: Any) -> Any:
        return Sine.apply(x)[1:] + x[:-1]

    x = point()
    plan = sparse.jacobian_plan(f, x)
    assert plan.by_rows == 2
    assert plan.sparsity.local
    np.testing.assert_allclose(sparse.sparse_jacobian(f, plan)(x).toarray(), func.jacrev(f)(x).numpy())
    with pytest.raises(NotImplementedError, match=r"no jvp(?s:.*)leave out `colouring`"):
        sparse.jacobian_plan(f, x, colouring="columns")


@pytest.mark.parametrize("x", [point(1)[0], point(0), point().reshape(3, 4)], ids=["0-d", "empty", "matrix"])
def test_shapes(x: Any) -> None:
    found = sparse.sparse_jacobian(lambda x: x**2)(x)
    np.testing.assert_array_equal(found.toarray(), np.diag(2 * np.ravel(x.numpy())))


# Colours ------------------------------------------------------------------------------------------------------------


def matrices() -> list[Any]:
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    return [
        csr_array(rng.random((m, n)) < share) for m, n in ((9, 7), (30, 40), (40, 30)) for share in (0.02, 0.1, 0.4)
    ]


@pytest.mark.parametrize("matrix", matrices(), ids=lambda m: f"{m.shape}-{m.nnz}")
@pytest.mark.parametrize("by", ["auto", "columns", "rows", "both"])
def test_each_nonzero_of_a_jacobian_can_be_read(matrix: Any, by: str) -> None:
    dense, colours = matrix.toarray(), colouring.chosen(matrix, by)
    for i, j in zip(*np.nonzero(dense), strict=True):
        if colours.rows[i] >= 0:
            assert sum(dense[:, j] & (colours.rows == colours.rows[i])) == 1
        else:
            assert colours.columns[j] >= 0
            assert sum(dense[i] & (colours.columns == colours.columns[j])) == 1


def test_one_element_that_is_replaced_is_known() -> None:
    found = sparse.jacobian_sparsity(lambda x: pullback.select_scatter(x, 2 * x[0], 0, 2), point(4))
    assert not found.unknown
    np.testing.assert_array_equal(found.matrix.toarray(), np.eye(4)[[0, 1, 0, 3]] != 0)


def stencil(offsets: list[tuple[int, int]], n: int = 26) -> Any:
    """The pattern of a stencil on a torus."""
    from scipy.sparse import csr_array

    places = np.arange(n * n).reshape(n, n)
    columns = np.stack([np.roll(places, offset, (0, 1)).reshape(-1) for offset in offsets], 1)
    return csr_array((np.ones(columns.size, bool), columns.reshape(-1), np.arange(n * n + 1) * len(offsets)))


CROSS = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
SQUARE = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]


@pytest.mark.parametrize(("offsets", "most"), [(CROSS, 8), (SQUARE, 14)])
def test_colours_are_saved_by_going_over_the_columns_again(offsets: list[tuple[int, int]], most: int) -> None:
    matrix = stencil(offsets)
    found = colouring.best_columns(matrix)
    assert colouring.count(found) <= most
    assert colouring.count(found) < colouring.count(colouring.columns(matrix))
    of_rows = found[matrix.indices].reshape(-1, len(offsets))
    assert all(len(set(row)) == len(offsets) for row in of_rows.tolist())


@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(5))
def test_each_nonzero_of_a_hessian_can_be_read(seed: int, share: float) -> None:
    from scipy.sparse import csr_array

    half = np.random.default_rng(seed).random((30, 30)) < share
    dense = half | half.T
    c = colouring.star(csr_array(dense))
    for i, j in zip(*np.nonzero(dense), strict=True):
        row, column = (i, j) if c[i] >= c[j] else (j, i)
        assert sum(dense[row] & (c == c[column])) == 1


def test_an_arrow_is_computed_by_rows_and_columns() -> None:
    plan = sparse.jacobian_plan(EXACT["arrow"], point(1000))
    assert (plan.by_columns, plan.by_rows) == (2, 1)
    assert sparse.hessian_plan(HESSIANS["arrow, the other way round"], point(1000)).by_columns == 2


def test_a_band_takes_as_many_colours_as_it_is_wide() -> None:
    assert sparse.jacobian_plan(EXACT["banded"], point()).by_columns == 3
    assert sparse.jacobian_plan(lambda x: x.sum() * x[:2], point()).by_rows == 2


# Plans --------------------------------------------------------------------------------------------------------------


def test_a_plan_prints_itself() -> None:
    plan = sparse.jacobian_plan(EXACT["difference"], point())
    lines = repr(plan).splitlines()
    assert lines[0] == "Plan of a jacobian: 11 x 12, 22 nonzeros, colours: 2 of columns"
    assert lines[1] == "  for inputs of float64[12]"
    assert lines[2] == "⠙⢦⡀⠀⠀⠀"
    assert len(lines) == 5


def test_a_picture_shows_each_nonzero_and_is_no_larger_than_asked() -> None:
    rows, columns = np.array([0, 3, 7]), np.array([1, 2, 0])
    dots = spy.braille(rows, columns, (8, 4), 10, 10)
    assert sum(bin(ord(c) - 0x2800).count("1") for c in dots.replace("\n", "")) == 3
    wide = spy.braille(np.arange(1000), np.arange(1000), (1000, 1000), 20, 5).splitlines()
    assert len(wide) <= 5
    assert max(map(len, wide)) <= 20


def test_a_picture_as_png_has_a_dark_pixel_for_each_nonzero(tmp_path: Path) -> None:
    plan = sparse.jacobian_plan(lambda x: x * 1, point(300))
    plan.sparsity.save_png(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    length = struct.unpack(">I", data[33:37])[0]
    lines = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8).reshape(height, width + 1)[:, 1:]
    np.testing.assert_array_equal(lines < 255, np.eye(300, dtype=bool))


@pytest.mark.parametrize("kind", ["jacobian", "hessian"])
def test_a_plan_is_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    x = point()
    f = EXACT["arrow"] if kind == "jacobian" else HESSIANS["arrow"]
    plan = getattr(sparse, f"{kind}_plan")(f, x)
    plan.save(tmp_path / "plan.npz")
    again = Plan.load(tmp_path / "plan.npz")
    assert repr(again) == repr(plan)
    evaluate = getattr(sparse, f"sparse_{kind}")
    np.testing.assert_array_equal(evaluate(f, again)(x).toarray(), evaluate(f, plan)(x).toarray())


def test_a_file_that_holds_no_plan_is_refused_by_its_name(tmp_path: Path) -> None:
    text, arrays, broken = tmp_path / "a.txt", tmp_path / "b.npz", tmp_path / "c.npz"
    text.write_text("no plan")
    np.savez(arrays, a=np.ones(3))
    sparse.jacobian_plan(EXACT["arrow"], point()).save(broken)
    with np.load(broken) as found:
        np.savez(broken.with_suffix(".npz"), **{**found, "indices": found["indices"] + 100})
    for path in (text, arrays, broken):
        with pytest.raises(ValueError, match=re.escape(str(path)) + r"(?s:.*)Plan\.save"):
            Plan.load(path)
    with pytest.raises(FileNotFoundError):
        Plan.load(tmp_path / "none")


# Values -------------------------------------------------------------------------------------------------------------


def test_a_matrix_that_is_written_to_leaves_the_plan_as_it_was() -> None:
    x = pullback.tensor([1.0, 2.0, 3.0])
    of = sparse.sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1])
    first = of(x)
    expected = first.toarray()
    first.indices[:], first.indptr[:], first.data[:] = 0, 0, 7.0
    np.testing.assert_array_equal(of(x).toarray(), expected)


def test_value_and_jacobian_come_from_one_pass() -> None:
    calls, x = [], point()

    def f(x: Any) -> Any:
        calls.append(1)
        return x**2

    plan = sparse.jacobian_plan(f, x)
    calls.clear()
    value, jacobian = sparse.value_and_jacobian(f, plan)(x)
    assert len(calls) == 1
    np.testing.assert_array_equal(value.numpy(), x.numpy() ** 2)
    np.testing.assert_array_equal(jacobian.toarray(), np.diag(2 * x.numpy()))


@pytest.mark.parametrize("by", ["columns", "rows", "both"])
def test_a_tensor_is_differentiated_again(by: str) -> None:
    f, x = EXACT["arrow"], point()
    plan = sparse.jacobian_plan(f, x, colouring=by)
    y, z = x.clone().requires_grad_(), x.clone().requires_grad_()
    found = sparse.sparse_jacobian(f, plan, format="tensor")(y)
    assert found.layout is pullback.sparse_coo
    (ours,) = pullback.autograd.grad((found.to_dense() ** 2).sum(), y)
    (theirs,) = pullback.autograd.grad((func.jacfwd(f)(z) ** 2).sum(), z)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy())
    through = func.grad(lambda x: (sparse.sparse_jacobian(f, plan, format="tensor")(x).values() ** 2).sum())
    np.testing.assert_allclose(through(x).numpy(), theirs.numpy())


def test_the_derivative_of_a_hessian() -> None:
    f, x = HESSIANS["tridiagonal"], point()
    plan = sparse.hessian_plan(f, x)
    through = func.grad(lambda x: (sparse.sparse_hessian(f, plan, format="tensor")(x).values() ** 2).sum())
    np.testing.assert_allclose(through(x).numpy(), func.grad(lambda x: (func.hessian(f)(x) ** 2).sum())(x).numpy())


@pytest.mark.parametrize("check", [True, False])
def test_values_are_computed_by_a_compiled_program(check: bool) -> None:
    x = point(2 * 8 * 8)
    plan = sparse.jacobian_plan(brusselator, x)
    fast = sparse.sparse_jacobian(brusselator, plan, compile=pullback.compile, check=check)
    for at in (x, 2 * x):
        dense = func.jacfwd(brusselator)(at).numpy()
        np.testing.assert_allclose(fast(at).toarray(), dense, rtol=1e-12)
    hessian = sparse.sparse_hessian(rosenbrock, sparse.hessian_plan(rosenbrock, x), compile=pullback.compile)
    np.testing.assert_allclose(hessian(x).toarray(), func.hessian(rosenbrock)(x).numpy(), rtol=1e-12)


def test_without_a_plan_one_is_made_for_each_shape() -> None:
    jacobian = sparse.sparse_jacobian(lambda x: x**2)
    assert jacobian(point(3)).shape == (3, 3)
    assert jacobian(point(5)).shape == (5, 5)


def test_newton_solves() -> None:
    from scipy.sparse.linalg import spsolve

    both = sparse.value_and_jacobian(lambda x: x + 0.1 * x.roll(1) ** 2 - 1)
    x = point(50)
    for _ in range(8):
        value, jacobian = both(x)
        x = x - pullback.from_numpy(spsolve(jacobian.tocsc(), value.numpy()))
    np.testing.assert_allclose(both(x)[0].numpy(), 0, atol=1e-14)


@pytest.mark.parametrize("given", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("format", ["csr", "tensor"])
def test_the_check_allows_for_the_rounding_of_the_dtype(given: Any, format: str) -> None:
    for made in (np.float16, np.float32, np.float64):  # of the result
        dtype = pullback.from_numpy(np.zeros((), made)).dtype
        found = sparse.sparse_jacobian(lambda x, to=dtype: (x[1:] - x[:-1]).to(to), format=format)(point(40, given))
        assert found.dtype == (made if format == "csr" else dtype)


# Bad input ----------------------------------------------------------------------------------------------------------


def branching(x: Any) -> Any:
    return x[:-1] * 2 if x[0].detach() > 0 else x[1:] * x[:-1]


@pytest.mark.parametrize("by", ["columns", "rows"])
def test_a_pattern_that_turned_out_wrong_is_found(by: str) -> None:
    x = point()
    plan = sparse.jacobian_plan(branching, x, colouring=by)
    with pytest.raises(RuntimeError, match=r"pattern is not that of the function(?s:.*)jacobian_plan\(f, x\)"):
        sparse.sparse_jacobian(branching, plan)(-x)
    assert sparse.sparse_jacobian(branching, plan, check=False)(-x).shape == (11, 12)
    for dtype in (np.float32, np.float64):  # rounding is none
        large = point(1000, dtype) * 1e6
        sparse.sparse_jacobian(lambda x: (x - 1e6).sin().cumsum(0)[::100])(large)


def test_a_hessian_whose_pattern_turned_out_wrong_is_found() -> None:
    def f(x: Any) -> Any:
        return (x**2).sum() if x[0].detach() > 0 else (x[1:] * x[:-1]).sum()

    plan = sparse.hessian_plan(f, point())
    with pytest.raises(RuntimeError, match=r"hessian_plan\(f, x\)"):
        sparse.sparse_hessian(f, plan)(-point())


IN_VMAP = "inside of a transform, where there is no sparse "


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x, p: sparse.sparse_jacobian(lambda x: x, p)(x[:3]), ValueError, r"plan's, of float64\[12\].*\[3\]"),
        (lambda x, p: sparse.sparse_jacobian(lambda x: x, p)(x.float()), ValueError, r"float64\[12\].*float32\[12\]"),
        (lambda x, p: sparse.sparse_jacobian(lambda x: x[1:], p)(x), ValueError, r"a result of shape \[12\].*\[11\]"),
        (lambda x, p: sparse.sparse_hessian(lambda x: x.sum(), p), ValueError, r"from hessian_plan\(\).*of a jacobian"),
        (lambda x, p: sparse.sparse_jacobian(lambda x: x, "plan"), TypeError, r"from jacobian_plan\(\), found str"),
        (lambda x, p: sparse.sparse_jacobian(lambda x: x, format="csc"), ValueError, "'csr' or 'tensor', found 'csc'"),
        (lambda x, p: sparse.jacobian_plan(lambda x: x, x, colouring="all"), ValueError, "'both', found 'all'"),
        (lambda x, p: sparse.jacobian_plan(lambda x: x.tolist(), x.double()), TypeError, "returns one Tensor"),
        (lambda x, p: sparse.jacobian_plan(lambda x: 3.0, x), TypeError, "returns one Tensor.*found float 3.0"),
        (lambda x, p: sparse.jacobian_plan(lambda x: (x, x), x), TypeError, "returns one Tensor.*found tuple"),
        (lambda x, p: sparse.jacobian_plan(lambda x: x > 0, x), TypeError, "returns one Tensor.*bool"),
        (lambda x, p: sparse.hessian_plan(lambda x: x, x), ValueError, r"hessian_plan\(\): .*one number.*\[12\]"),
        (lambda x, p: sparse.jacobian_plan(lambda x: x, x.int()), TypeError, "dtype.*, found Tensor of int"),
        (lambda x, p: sparse.jacobian_sparsity(lambda x: x, x.bfloat16()), TypeError, "other than bfloat16, found"),
        (lambda x, p: sparse.sparse_jacobian(lambda x: x, p)(x.bfloat16()), TypeError, "other than bfloat16, found"),
        (lambda x, p: sparse.jacobian_plan(lambda x: x.bfloat16(), x), TypeError, "other than bfloat16"),
        (lambda x, p: sparse.jacobian_plan(lambda x: x, x + 0j), TypeError, "real floating point.*complex"),
        (lambda x, p: sparse.sparse_jacobian(lambda x: x)(x.numpy()), TypeError, "expected a Tensor.*ndarray"),
        (
            lambda x, p: func.vmap(lambda x: sparse.jacobian_sparsity(lambda x: x, x))(x[None]),
            TypeError,
            "inside of a transform(?s:.*)make the plan outside",
        ),
        (
            lambda x, p: func.vmap(sparse.sparse_jacobian(lambda x: x * x, p))(x[None]),
            TypeError,
            IN_VMAP + "matrix.*for each element",
        ),
        (
            lambda x, p: func.vmap(sparse.sparse_jacobian(lambda x: x * x, p, format="tensor"))(x[None]),
            TypeError,
            IN_VMAP + "tensor.*for each element",
        ),
        (
            lambda x, p: pullback.compile(sparse.sparse_jacobian(lambda x: x * x, p))(x),
            TraceError,
            r"outside of the compiled function, as sparse_jacobian\(f, plan, compile=",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call: Any, error: type[Exception], said: str) -> None:
    x = point()
    plan = sparse.jacobian_plan(lambda x: x, x)
    with pytest.raises(error, match=f"(?s:{said})"):
        call(x, plan)


def test_a_tensor_that_the_function_writes_to_holds_an_array_afterwards() -> None:
    work, x = pullback.zeros(12, dtype=pullback.float64), point()
    part = work[1:]

    def f(x: Any) -> Any:
        work.zero_()
        work[1:] = x[1:] * x[:-1]
        return work * 1

    found = sparse.sparse_jacobian(f)(x)
    np.testing.assert_allclose(found.toarray()[1:], func.jacfwd(EXACT["a compiled function"])(x).numpy())
    assert isinstance(work.detach().numpy(), np.ndarray)
    np.testing.assert_array_equal(part.numpy(), (x[1:] * x[:-1]).numpy())


def test_without_scipy_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['scipy'] = sys.modules['scipy.sparse'] = None\n"
        "import pullback\n"
        "try: pullback.func.sparse.jacobian_plan(lambda x: x, pullback.ones(2))\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pullback[scipy]" in done.stdout


def test_the_random_direction_leaves_the_generators_alone() -> None:
    x = point()
    jacobian = sparse.sparse_jacobian(lambda x: x**2)
    pullback.manual_seed(0)
    before = pullback.rand(3).numpy()
    pullback.manual_seed(0)
    jacobian(x)
    np.testing.assert_array_equal(pullback.rand(3).numpy(), before)


@pytest.mark.parametrize(
    "view",
    [
        lambda y: y.unfold(-1, 1, 1)[:, 0],
        lambda y: y.as_strided((12,), (1,), 0),
        lambda y: y.reshape(3, 4).T.T.reshape(12),
    ],
)
def test_a_write_is_seen_through_a_view(view: Any) -> None:
    def f(x: Any) -> Any:
        y = x.round()  # whose derivative is zero
        part = view(y)
        y += x.roll(1)
        return part * 1

    x = point()
    dense = func.jacfwd(f)(x).numpy()
    assert np.count_nonzero(dense) == 12
    np.testing.assert_array_equal(sparse.jacobian_sparsity(f, x).matrix.toarray(), dense != 0)


def writes_to_its_argument(x: Any) -> Any:
    x.mul_(2.0)
    return x * x


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize(
    "how",
    [{}, {"check": False}, {"compile": lambda f: pullback.compile(f, backend="numpy")}],
    ids=["checked", "unchecked", "compiled"],
)
def test_a_function_may_write_to_its_argument(how: Any, inference: bool) -> None:
    """The directions of a plan are as they were for the next call."""
    plan = sparse.jacobian_plan(lambda x: x * x, point(4))
    jacobian = sparse.sparse_jacobian(writes_to_its_argument, plan, **how)
    with pullback.inference_mode(inference and "compile" not in how):
        for _ in range(3):
            x = point(4)
            np.testing.assert_allclose(jacobian(x.clone()).toarray(), np.diag(8 * x.numpy()))


@pytest.mark.parametrize("recorded", [False, True])
def test_the_derivatives_along_a_batch_of_directions(recorded: bool) -> None:
    def along(f: Any, x: Any, directions: Any) -> Any:
        return func.vmap(lambda v: func.jvp(f, (x,), (v,)), out_dims=(None, 0))(directions)

    x, rows = point(6), pullback.from_numpy(np.random.default_rng(1).normal(size=(3, 6))).requires_grad_(recorded)
    constant = point(2)
    for f in (
        lambda x: x.reshape(2, 3).t() * x[:2],
        lambda x: pullback.cat([x[1:].sin(), x[:1]]).view(-1)[::2],
        lambda x: constant * 2,
        lambda x: pullback.stack([x, x]).sum(1).mul_(x[:2]),
    ):
        found, expected = of_batch.jvp_of_each(f, x, rows), along(f, x, rows)
        for a, b in zip(found, expected, strict=True):
            pullback.testing.assert_close(a, b)
            assert a.requires_grad == b.requires_grad
        second = [func.jvp(lambda x: of(f, x, rows), (x,), (x,))[1] for of in (of_batch.jvp_of_each, along)]  # noqa: B023
        for a, b in zip(*second, strict=True):
            pullback.testing.assert_close(a, b)

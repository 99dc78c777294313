"""What may be written where: `out=`, operations in place, and the dtypes of half precision beside others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.side_by_side import constant, leaf, programs, refused, says

PROGRAMS, program = programs()


@program
def out_counts_as_a_write(lib: Any) -> Any:
    x, out = constant(lib, [1.0, 2.0]), constant(lib, [0.0, 0.0])
    y = leaf(lib, [3.0, 4.0])
    product = y * out
    before = out._version
    lib.exp(x, out=out)
    return before, out._version, out.tolist(), refused(product.sum().backward)


@program
def out_and_gradients(lib: Any) -> Any:
    x, w = constant(lib, [1.0, 2.0]), leaf(lib, [1.0, 2.0])

    def with_a_graph(call: Callable[[], Any]) -> Any:
        return says(call, "functions with out=... arguments don't support automatic differentiation")

    found = [
        with_a_graph(lambda: lib.exp(w, out=lib.zeros(2, dtype=lib.float64))),
        with_a_graph(lambda: lib.exp(x, out=leaf(lib, [0.0, 0.0]))),
        with_a_graph(lambda: lib.mul(x, w, out=lib.zeros(2, dtype=lib.float64))),
    ]
    with lib.no_grad():
        lib.exp(x, out=w)
    return found, w, w._version


@program
def out_of_another_dtype_or_shape(lib: Any) -> Any:
    x = constant(lib, [1.0, 2.0])
    results = []
    eye = lib.eye(2, dtype=lib.float64)
    for dtype in (lib.float16, lib.float32, lib.int64, lib.complex128, lib.bool):
        out = lib.zeros(2, dtype=dtype)
        error = refused(lambda out=out: lib.add(x, x, out=out))
        results.append((error, out))
        results.append(refused(lambda dtype=dtype: lib.matmul(eye, eye, out=lib.zeros(2, 2, dtype=dtype))))
    empty = lib.zeros(0, dtype=lib.float64)
    lib.add(x, x, out=empty)
    return results, empty


@program
def a_write_of_another_category_or_shape(lib: Any) -> Any:
    found = []
    for make in (
        lambda: lib.tensor([1, 2]).add_(1.5),
        lambda: lib.tensor([1, 2]).mul_(lib.tensor([0.5, 0.5])),
        lambda: lib.tensor([True, False]).add_(1),
        lambda: lib.tensor([1.0, 2.0]).mul_(1j),
        lambda: lib.tensor([1, 2]).div_(2),
        lambda: lib.tensor([1.0, 2.0]).add_(lib.ones(2, 2)),
        lambda: lib.tensor([1.0]).add_(lib.ones(2)),
        lambda: lib.tensor([1j]).abs_(),
        lambda: lib.tensor([1.0, 2.0]).add_(lib.ones(1)),
        lambda: lib.tensor([1.0, 2.0], dtype=lib.float32).add_(lib.ones(2, dtype=lib.float64)),
    ):
        error = refused(make)
        found.append(error if error else make())
    return found, says(lambda: lib.tensor([1, 2]).add_(1.5), "can't be cast to the desired output type")


@program
def what_a_constant_write_leaves(lib: Any) -> Any:
    found = []
    for write in ("eq_", "sign_", "floor_", "zero_"):
        x = leaf(lib, [1.0, -2.0])
        y = x * 2
        getattr(y, write)(*([2.0] if write == "eq_" else []))
        (y * 3).sum().backward()
        found.append((y.requires_grad, y.grad_fn is not None, x.grad, y.detach()))
    return found


@program
def half_precision_beside_other_dtypes(lib: Any) -> Any:
    b = lib.tensor([0.3, 1.7]).to(lib.bfloat16)
    f, d, c, i = lib.tensor([0.3, 1.7]), constant(lib, [0.3, 1.7]), lib.tensor([0.3j, 1.0]), lib.tensor([1, 2])
    results = [op(b, other) for op in (lib.add, lib.mul, lib.maximum) for other in (b, f, d, i, f[0], d[0])]
    results += [lib.cat([b, f]), lib.cat([f, b]), lib.stack([b, b]), lib.where(f > 1, b, f), lib.where(f > 1, b, 0.5)]
    results += [b + c, b * 0.3, b + 1, b == 0.3, b < 1.7, b == f, lib.eq(b, 0.3), b > f[0]]
    return [(str(r.dtype).split(".")[1], r.float() if not r.is_complex() else r) for r in results]


@program
def bfloat16_is_written_in_place(lib: Any) -> Any:
    found = []
    for write in ("add_", "mul_", "exp_", "clamp_", "copy_", "masked_fill_"):
        x = lib.tensor([0.3, 1.7]).to(lib.bfloat16)
        view = x[1:]
        args = {"clamp_": (0.5, 1.0), "exp_": (), "copy_": (lib.ones(2),)}.get(write, (0.5,))
        args = (lib.tensor([True, False]), 9.0) if write == "masked_fill_" else args
        result = getattr(x, write)(*args)
        found.append((result is x, str(x.dtype).split(".")[1], x.float(), view.float(), x._version))
    return found

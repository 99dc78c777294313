"""Axes counted from behind, operands that vary alone, and dtypes of examples without dimensions."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant, programs, says

PROGRAMS, program = programs()


@program
def axes_from_behind_of_arguments_of_different_ranks(lib: Any) -> Any:
    vmap = lib.func.vmap
    a = lib.arange(24.0).reshape(2, 3, 4)
    b, c = lib.arange(4.0), lib.arange(8.0).reshape(4, 2)
    return [
        vmap(lambda x, y: x + y, in_dims=(-1, -1))(a, b),
        vmap(lambda x, y: x + y, in_dims=(-1, -2))(a, c[:, :1]),
        vmap(lambda x, y: x.sum() * y, in_dims=(-1, -2), out_dims=-1)(a, c),
        vmap(lambda x, y: x * y, in_dims=(-2, None), out_dims=1)(a, b),
        vmap(lambda x, y: (x * y, y + 1), in_dims=(None, -1), out_dims=(-1, 0))(a, b),
        vmap(lambda x, y: x @ y, in_dims=(None, 1), out_dims=1)(a[0], c),
    ]


@program
def an_example_without_dimensions_promotes_as_a_number_does(lib: Any) -> Any:
    vmap = lib.func.vmap
    double, single, whole = constant(lib, [1.5, 2.5]), lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1, 2])
    half, flags = lib.tensor([1.0, 2.0]).half(), lib.tensor([True, False])
    found = []
    for varying in (double, whole, half, flags):
        for other in (single, lib.arange(3), single.half(), single > 1):
            for op in (lib.mul, lib.maximum, lib.eq):
                found.append(vmap(lambda s, other=other, op=op: op(s, other))(varying))
    return found


@program
def only_a_later_operand_varies(lib: Any) -> Any:
    vmap, F = lib.func.vmap, lib.nn.functional
    with_dtype = {"dtype": lib.float64}
    x, w = lib.arange(12.0, **with_dtype).reshape(2, 3, 2), constant(lib, [[1.0, 2.0, 3.0]] * 4)
    b, last = lib.arange(12.0, **with_dtype).reshape(4, 3), lib.arange(8.0, **with_dtype).reshape(4, 2)
    mean, variance = lib.zeros(3, **with_dtype), lib.ones(3, **with_dtype)
    return [
        vmap(lambda b: F.batch_norm(x, mean, variance, w[0], b))(b),
        vmap(lambda b: F.batch_norm(x, None, None, None, b, training=True))(b),
        vmap(lambda b: F.instance_norm(x, None, None, None, b))(b),
        vmap(lambda b: F.layer_norm(x, (2,), None, b))(last),
        vmap(lambda b: F.group_norm(x, 3, w[0], b))(b),
        vmap(lambda b: F.linear(x.transpose(1, 2), w, b))(last.reshape(2, 4)),
        lib.func.grad(lambda b: vmap(lambda b: F.layer_norm(x, (2,), None, b).square().sum())(b).sum())(last),
    ]


@program
def what_does_not_vary_takes_no_values_that_do(lib: Any) -> Any:
    vmap = lib.func.vmap
    x = lib.ones(3, 2)

    def into_a_constant(row: Any) -> Any:
        fixed = lib.zeros(2)
        return fixed.add_(row)

    def into_what_varies(row: Any) -> Any:
        return lib.zeros_like(row).add_(row).mul_(lib.tensor([1.0, 2.0]))

    return says(lambda: vmap(into_a_constant)(x), "is not possible because"), vmap(into_what_varies)(x)


@program
def integers_vary(lib: Any) -> Any:
    vmap = lib.func.vmap
    x, places = lib.arange(12.0).reshape(3, 4), lib.tensor([[0, 1], [3, 3], [2, 0]])
    return [
        vmap(lambda x, i: x[i])(x, places),
        vmap(lambda i: x[:, i], out_dims=1)(places),
        vmap(lambda x, i: x.gather(0, i))(x, places),
        vmap(lambda x, i: x.index_add(0, i, lib.ones(2)))(x, places),
        vmap(lambda i: lib.nn.functional.one_hot(i, 4))(places),
        vmap(lambda i: lib.nn.functional.embedding(i, x.t()), in_dims=1)(places),
        vmap(lambda x, i: lib.take_along_dim(x, i, 0), in_dims=(0, 0), out_dims=-1)(x, places),
        vmap(lambda i: lib.bitwise_and(i, 1) + i // 2)(places),
        vmap(lambda m, x: lib.where(m > 0, x, -x))(places[:, :1], x),
    ]

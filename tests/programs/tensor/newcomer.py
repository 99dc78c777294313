"""What someone who knows PyTorch tries on the first day."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import programs

PROGRAMS, program = programs()


@program
def a_sum_of_sizes_is_a_size(lib: Any) -> Any:
    size = lib.ones(2, 3).shape
    sums = (size + (1,), (1,) + size, size + size, size[:-1] + (4, 5), size * 2, 2 * size)  # noqa: RUF005
    return [(isinstance(total, lib.Size), repr(total).rpartition(".")[2], total.numel()) for total in sums]


@program
def a_size_and_a_list_are_not_added(lib: Any) -> Any:
    return lib.ones(2, 3).shape + [1]  # noqa: RUF005


@program
def where_a_tensor_lies(lib: Any) -> Any:
    return lib.ones(2).is_cuda, lib.ones(2).is_cpu


@program
def max_along_dim_and_axis(lib: Any) -> Any:
    return lib.max(lib.ones(2, 3), dim=0, axis=1)


@program
def std_along_axis_and_dim(lib: Any) -> Any:
    return lib.ones(2, 3).std(axis=0, dim=1)


@program
def max_along_axis(lib: Any) -> Any:
    return list(lib.max(lib.tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1))


@program
def a_double_into_a_linear_layer(lib: Any) -> Any:
    return lib.nn.Linear(3, 4)(lib.ones(2, 3, dtype=lib.float64))


@program
def integers_into_a_convolution(lib: Any) -> Any:
    return lib.nn.Conv2d(1, 4, 3)(lib.ones(1, 1, 8, 8, dtype=lib.int64))


@program
def one_hot_integers_as_the_target(lib: Any) -> Any:
    return lib.nn.functional.cross_entropy(lib.ones(2, 2), lib.tensor([[1, 0], [0, 1]]))


@program
def an_optimizer_of_two_groups(lib: Any) -> Any:
    x = lib.ones(2, requires_grad=True)
    return repr(lib.optim.SGD([{"params": [x]}, {"params": [lib.ones(1, requires_grad=True)], "lr": 2}], lr=0.1))

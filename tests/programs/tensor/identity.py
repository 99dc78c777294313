"""Whether a function that has nothing to do gives its operand itself, a view of it, or a copy."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import programs

PROGRAMS, program = programs()


def how(x: Any, found: Any) -> Any:
    """Whether a result is the operand, is a view, and lies in its memory."""
    return found is x, found._is_view(), found.data_ptr() == x.data_ptr()


@program
def a_sum_to_the_size_that_it_has(lib: Any) -> Any:
    x = lib.ones(2, 3, requires_grad=True)
    found = x.sum_to_size(2, 3)
    found.sum().backward()
    return how(x, found), x.grad, how(x, x.sum_to_size(1, 3))[0]


@program
def the_real_part_of_real_numbers(lib: Any) -> Any:
    x, z = lib.ones(2), lib.ones(2, dtype=lib.complex64)
    return how(x, lib.real(x)), how(x, x.real), how(z, lib.real(z)), how(z, z.real)


@program
def a_chain_of_one_matrix(lib: Any) -> Any:
    x = lib.ones(2, 3, requires_grad=True)
    found = lib.chain_matmul(x)
    found.sum().backward()
    return how(x, found), x.grad


@program
def dropout_that_is_switched_off(lib: Any) -> Any:
    functional, found = lib.nn.functional, []
    for name, shapes in {
        "dropout": ((2, 3),),
        "dropout1d": ((2, 3), (2, 3, 4)),
        "dropout3d": ((2, 3, 4, 5), (2, 3, 4, 5, 2)),
    }.items():
        for shape in shapes:
            x = lib.ones(shape)
            for arguments in ({"training": False}, {"p": 0.0}, {"training": False, "inplace": True}):
                y = getattr(functional, name)(x, **arguments)
                found.append((name, len(shape), *how(x, y), y._base is x))
    return found


@program
def local_response_norm_is_no_view(lib: Any) -> Any:
    x = lib.ones(2, 3, 4)
    return how(x, lib.nn.functional.local_response_norm(x, 2))


@program
def names_of_python_s_older_protocols(lib: Any) -> Any:
    x, n = lib.tensor([5.0, 7.0]), lib.tensor(5.75)
    halves = x.__div__(2), x.__rdiv__(2)
    return halves, x.__idiv__(2) is x, x, n.__long__(), n.__nonzero__(), lib.tensor(0).__nonzero__()


@program
def a_whole_tensor_divided_in_place_by_the_older_name(lib: Any) -> Any:
    return lib.tensor([5, 7]).__idiv__(2)


@program
def two_elements_are_no_truth_value(lib: Any) -> Any:
    return lib.tensor([5.0, 7.0]).__nonzero__()

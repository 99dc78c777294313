"""Every function of `autograd.functional` in the same situations."""

from __future__ import annotations

from typing import Any

from tests.programs.functional.common import fn, one, two
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()

NAMES = ("vjp", "jvp", "vhp", "hvp", "jacobian", "hessian")
SCALAR = ("vhp", "hvp", "hessian")


def ones_like(lib: Any, values: Any) -> Any:
    made = tuple(lib.ones_like(v) for v in (values if isinstance(values, (tuple, list)) else (values,)))
    return made if isinstance(values, (tuple, list)) else made[0]


def called(lib: Any, name: str, f: Any, inputs: Any, **how: Any) -> Any:
    """The function of that name with ones for a vector, if it takes one."""
    if name in ("jacobian", "hessian"):
        return getattr(fn(lib), name)(f, inputs, **how)
    if name == "vjp":
        with lib.no_grad():
            v = ones_like(lib, f(*inputs) if isinstance(inputs, (tuple, list)) else f(inputs))
    else:
        v = ones_like(lib, inputs)
    return getattr(fn(lib), name)(f, inputs, v, **how)


def in_every_function(situation: Any) -> Any:
    """A program for each function: what the situation is for it, or the name of what it raises."""
    for name in NAMES:

        def run(lib: Any, name: str = name) -> Any:
            return situation(lib, name)

        run.__name__ = f"{situation.__name__}_{name}"
        program(run)
    return situation


def cubed(name: str) -> Any:
    return (lambda a: (a**3).sum()) if name in SCALAR else (lambda a: a**3)


@in_every_function
def an_input_that_is_not_used(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a, b: cubed(name)(a), two(lib))


@in_every_function
def an_input_that_is_not_used_strictly(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a, b: cubed(name)(a), two(lib), strict=True)


@in_every_function
def a_linear_function(lib: Any, name: str) -> Any:
    f = (lambda a: (a * 2).sum()) if name in SCALAR else (lambda a: a * 2)
    return called(lib, name, f, one(lib))


@in_every_function
def a_linear_function_strictly(lib: Any, name: str) -> Any:
    f = (lambda a: (a * 2).sum()) if name in SCALAR else (lambda a: a * 2)
    return called(lib, name, f, one(lib), strict=True)


@in_every_function
def a_linear_function_strictly_with_its_graph(lib: Any, name: str) -> Any:
    f = (lambda a: (a * 2).sum()) if name in SCALAR else (lambda a: a * 2)
    return called(lib, name, f, one(lib), strict=True, create_graph=True)


@in_every_function
def a_constant_function(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: constant(lib, 1.0), one(lib))


@in_every_function
def a_constant_function_strictly(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: constant(lib, 1.0), one(lib), strict=True)


@in_every_function
def a_function_that_detaches(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: (a.detach() ** 2).sum(), one(lib))


@in_every_function
def the_graph_of_the_result(lib: Any, name: str) -> Any:
    x = leaf(lib, [1.0, 2.0])
    found = called(lib, name, cubed(name), x, create_graph=True)
    found = found[1] if isinstance(found, tuple) else found
    return found, lib.autograd.grad(found.sum(), x)


@in_every_function
def the_graphs_of_several_results(lib: Any, name: str) -> Any:
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 1.0])
    f = (lambda a, b: (a**3 * b**2).sum()) if name in SCALAR else (lambda a, b: (a**3 * b, b * a))
    return called(lib, name, f, (x, y), create_graph=True)


@in_every_function
def where_nothing_is_recorded(lib: Any, name: str) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.no_grad():
        return called(lib, name, cubed(name), x), called(lib, name, cubed(name), x, create_graph=True)


@in_every_function
def a_number_for_an_input(lib: Any, name: str) -> Any:
    return getattr(fn(lib), name)(lambda a: a, 2.0)


@in_every_function
def a_list_for_a_result(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: [a.sum()], one(lib))


@in_every_function
def numbers_for_a_result(lib: Any, name: str) -> Any:
    x = one(lib)
    return getattr(fn(lib), name)(lambda a: a.tolist(), x, *(() if name in ("jacobian", "hessian") else (x,)))


@in_every_function
def a_list_of_inputs(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a, b: (a**3).sum() * b.sum(), [*two(lib)])


@in_every_function
def no_vector(lib: Any, name: str) -> Any:
    return getattr(fn(lib), name)(lambda a: (a**3).sum(), constant(lib, [2.0]))


@in_every_function
def no_vector_for_several_elements(lib: Any, name: str) -> Any:
    return getattr(fn(lib), name)(lambda a: a**3, one(lib))


@in_every_function
def a_number_without_axes(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: a**3, constant(lib, 2.0))


@in_every_function
def a_matrix(lib: Any, name: str) -> Any:
    f = (lambda a: (a**3).sum()) if name in SCALAR else (lambda a: a.sum(0))
    return called(lib, name, f, constant(lib, [[1.0, 2.0], [3.0, 4.0]]))


@in_every_function
def complex_numbers(lib: Any, name: str) -> Any:
    z = constant(lib, [1.0 + 2j], "complex128")
    return called(lib, name, lambda a: (a * a.conj()).real.sum(), z)


@in_every_function
def the_mode_within(lib: Any, name: str) -> Any:
    seen: list[bool] = []

    def f(a: Any) -> Any:
        seen.append(lib.is_grad_enabled())
        return (a**2).sum()

    with lib.no_grad():
        called(lib, name, f, one(lib))
    return seen[-1]


@in_every_function
def gradients_of_others_are_left_alone(lib: Any, name: str) -> Any:
    x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    called(lib, name, lambda a: (a**2 * w).sum(), x)
    return x.grad, w.grad


@program
def a_complex_jacobian(lib: Any) -> Any:
    return fn(lib).jacobian(lambda z: z * z, constant(lib, [1.0 + 1j], "complex128"))


@program
def jacobians_of_several_dtypes(lib: Any) -> Any:
    inputs = (constant(lib, [1.0, 2.0]), constant(lib, [3.0, 4.0], "float32"))
    f = lambda a, b: (a * b.double(), b * 2)  # noqa: E731
    return [fn(lib).jacobian(f, inputs, vectorize=v) for v in (False, True)]


@program
def random_numbers_in_a_vectorized_jacobian(lib: Any) -> Any:
    return fn(lib).jacobian(lambda a: a * lib.rand(3).double() * 0, one(lib), vectorize=True)

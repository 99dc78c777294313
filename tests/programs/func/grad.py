"""`grad` and `grad_and_value`."""

from __future__ import annotations

from typing import Any

from tests.programs.func.common import points
from tests.side_by_side import constant, programs

PROGRAMS, program = programs()


@program
def grad_of_a_scalar_function(lib: Any) -> Any:
    return lib.func.grad(lambda x: x.sin().sum())(points(lib)[0])


@program
def grad_by_several(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=(1, 0))(x, y)


@program
def grad_by_a_negative_number(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=-1)(x, y)


@program
def grad_by_one_in_a_tuple(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=(1,))(x, y)


@program
def grad_by_a_list(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums=[0, 1])(x, y)


@program
def grad_by_the_same_twice(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 0))(x, y)


@program
def grad_by_one_that_is_not_there(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums=2)(x, y)


@program
def grad_by_text(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums="0")(x, y)


@program
def grad_of_nested_arguments(lib: Any) -> Any:
    x, y = points(lib)
    given = {"a": x, "b": [y, (x,)]}
    return lib.func.grad(lambda d: (d["a"] * d["b"][0] + d["b"][1][0] ** 2).sum())(given)


@program
def grad_with_keywords(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b=None: (a * b).sum())(x, b=y)


@program
def grad_has_aux(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: ((a * b).sum(), {"twice": a * 2, "y": b}), has_aux=True)(x, y)


@program
def grad_has_aux_without_aux(lib: Any) -> Any:
    return lib.func.grad(lambda a: a.sum(), has_aux=True)(points(lib)[0])


@program
def grad_has_aux_three(lib: Any) -> Any:
    return lib.func.grad(lambda a: (a.sum(), a, a), has_aux=True)(points(lib)[0])


@program
def grad_and_value_of(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad_and_value(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, y)


@program
def grad_and_value_has_aux(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad_and_value(lambda a, b: ((a * b).sum(), a * 3), has_aux=True)(x, y)


@program
def grad_of_what_does_not_depend(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: b.sum())(x, y)


@program
def grad_of_a_constant(lib: Any) -> Any:
    return lib.func.grad(lambda a: lib.tensor(3.0))(points(lib)[0])


@program
def grad_of_no_scalar(lib: Any) -> Any:
    return lib.func.grad(lambda a: a * 2)(points(lib)[0])


@program
def grad_of_one_element_with_an_axis(lib: Any) -> Any:
    return lib.func.grad(lambda a: a.sum()[None])(points(lib)[0])


@program
def grad_of_no_tensor(lib: Any) -> Any:
    return lib.func.grad(lambda a: 3.0)(points(lib)[0])


@program
def grad_of_a_tuple(lib: Any) -> Any:
    return lib.func.grad(lambda a: (a.sum(),))(points(lib)[0])


@program
def grad_by_a_number(lib: Any) -> Any:
    return lib.func.grad(lambda a: lib.tensor(2.0) * a)(3.0)


@program
def grad_by_integers(lib: Any) -> Any:
    return lib.func.grad(lambda a: (a * 1.0).sum())(lib.tensor([1, 2]))


@program
def grad_with_integers_beside(lib: Any) -> Any:
    return lib.func.grad(lambda a, i: a[i].sum())(points(lib)[0], lib.tensor([1, 1]))


@program
def grad_of_a_complex_function(lib: Any) -> Any:
    z = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128)
    return lib.func.grad(lambda a: (a * a.conj()).real.sum())(z)


@program
def grad_of_a_complex_value(lib: Any) -> Any:
    z = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128)
    return lib.func.grad(lambda a: (a * a).sum())(z)


@program
def grad_in_float32(lib: Any) -> Any:
    return lib.func.grad(lambda a: (a * a).sum())(lib.tensor([1.0, 2.0]))


@program
def grad_twice(lib: Any) -> Any:
    return lib.func.grad(lib.func.grad(lambda a: a**4 + a.sin()))(constant(lib, 0.5))


@program
def grad_five_times(lib: Any) -> Any:
    f = lambda a: (a * 1.5).sin()  # noqa: E731
    for _ in range(5):
        f = lib.func.grad(f)
    return f(constant(lib, 0.5))


@program
def mixed_partial(lib: Any) -> Any:
    f = lib.func.grad(lambda a, b: (a**2 * b**3).sum(), argnums=0)
    return lib.func.grad(lambda a, b: f(a, b).sum(), argnums=1)(*points(lib))


# what does not depend on the argument ---------------------------------------------------------------------------------


@program
def of_what_does_not_depend_on_the_argument(lib: Any) -> Any:
    x, y = points(lib)
    y = y.detach().requires_grad_()
    found = [
        lib.func.grad(lambda a: y.sum())(x),
        lib.func.grad(lambda a: (y * 2).sum())(y),
        lib.func.grad(lambda a, b: (a * y).sum(), argnums=(0, 1))(x, y)[1],
        lib.func.grad_and_value(lambda a: (y * 2).sum())(x)[0],
        lib.func.vjp(lambda a: y * 2, x)[1](x)[0],
        lib.func.vjp(lambda a, b: a * y, x, y)[1](x)[1],
        lib.func.jacrev(lambda a: y * 2)(x),
        lib.func.jacfwd(lambda a: y * 2)(x),
        lib.func.hessian(lambda a: (a * y).sum())(x),
        lib.func.grad(lambda a: lib.func.grad(lambda b: (y * 2).sum())(a).sum())(x),
    ]
    return [(t, t.requires_grad, t.is_leaf) for t in found]

"""`jacrev`, `jacfwd` and `hessian`."""

from __future__ import annotations

from typing import Any

from tests.programs.func.common import both, f_of, points
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


@program
def jacobian_of_two_by_two(lib: Any) -> Any:
    return both(lib, f_of(lib), *points(lib), argnums=(0, 1))


@program
def jacobian_by_the_second(lib: Any) -> Any:
    return both(lib, f_of(lib), *points(lib), argnums=1)


@program
def jacobian_by_the_second_in_a_tuple(lib: Any) -> Any:
    return both(lib, f_of(lib), *points(lib), argnums=(1,))


@program
def jacobian_of_dicts(lib: Any) -> Any:
    x, y = points(lib)
    return both(lib, lambda d: {"p": d["a"] * d["b"][0], "q": [d["a"].sum()]}, {"a": x, "b": [y]})


@program
def jacobian_of_matrices(lib: Any) -> Any:
    m = lib.arange(6.0, dtype=lib.float64).reshape(2, 3)
    return both(lib, lambda a: a @ a.mT, m)


@program
def jacobian_has_aux(lib: Any) -> Any:
    x = points(lib)[0]
    return both(lib, lambda a: (a.sin(), {"x": a * 2}), x, has_aux=True)


@program
def jacobian_of_a_scalar(lib: Any) -> Any:
    return both(lib, lambda a: a**3, constant(lib, 2.0))


@program
def jacobian_of_what_does_not_depend(lib: Any) -> Any:
    x, _ = points(lib)
    return both(lib, lambda a: lib.ones(2, dtype=lib.float64), x)


@program
def jacobian_of_no_tensor(lib: Any) -> Any:
    return lib.func.jacrev(lambda a: 3.0)(points(lib)[0])


@program
def jacobian_forward_of_no_tensor(lib: Any) -> Any:
    return lib.func.jacfwd(lambda a: 3.0)(points(lib)[0])


@program
def jacobian_in_chunks(lib: Any) -> Any:
    return [lib.func.jacrev(f_of(lib), argnums=(0, 1), chunk_size=n)(*points(lib)) for n in (1, 2, 3, 100)]


@program
def jacobian_chunk_size_0(lib: Any) -> Any:
    return lib.func.jacrev(lib.sin, chunk_size=0)(points(lib)[0])


@program
def jacobian_of_jacobian(lib: Any) -> Any:
    f = lambda a: (a**3).cumsum(0)  # noqa: E731
    j, k = lib.func.jacrev, lib.func.jacfwd
    return [one(two(f))(points(lib)[0]) for one in (j, k) for two in (j, k)]


@program
def hessian_of_a_function(lib: Any) -> Any:
    return lib.func.hessian(lambda a: (a**3).sum() * a[0])(points(lib)[0])


@program
def hessian_by_two(lib: Any) -> Any:
    return lib.func.hessian(lambda a, b: (a**3 * b.exp()).sum(), argnums=(0, 1))(*points(lib))


@program
def hessian_of_a_dict(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.hessian(lambda d: (d["a"] ** 2 * d["b"]).sum())({"a": x, "b": y})


@program
def hessian_of_vectors(lib: Any) -> Any:
    return lib.func.hessian(lambda a: (a**3).cumsum(0))(points(lib)[0])


@program
def third_derivatives(lib: Any) -> Any:
    f = lambda a: (a**4).sum() + a.prod()  # noqa: E731
    return lib.func.jacrev(lib.func.hessian(f))(points(lib)[0])


@program
def jacobian_of_a_tracked_argument(lib: Any) -> Any:
    found = []
    for jac in (lib.func.jacrev, lib.func.jacfwd):
        x = leaf(lib, [1.0, 2.0])
        j = jac(lambda a: a**3)(x)
        j.sum().backward()
        found.append((j, x.grad))
    return found


@program
def jacobian_with_a_tracked_closure(lib: Any) -> Any:
    found = []
    for jac in (lib.func.jacrev, lib.func.jacfwd):
        w = leaf(lib, [1.0, 2.0, 3.0])
        j = jac(lambda a, w=w: a**2 * w)(points(lib)[0])
        j.sum().backward()
        found.append((j, w.grad))
    return found


@program
def jacobian_by_integers(lib: Any) -> Any:
    return lib.func.jacrev(lambda a: a * 1.5)(lib.tensor([1, 2]))


@program
def jacobian_forward_by_integers(lib: Any) -> Any:
    return lib.func.jacfwd(lambda a: a * 1.5)(lib.tensor([1, 2]))


@program
def jacobian_of_mixed_dtypes(lib: Any) -> Any:
    return both(lib, lambda a, b: (a.double() * b).sum(), lib.ones(2), constant(lib, [1.0, 3.0]), argnums=(0, 1))


@program
def jacobian_argnums_out_of_range(lib: Any) -> Any:
    return lib.func.jacrev(lib.sin, argnums=3)(points(lib)[0])


@program
def jacobian_forward_argnums_out_of_range(lib: Any) -> Any:
    return lib.func.jacfwd(lib.sin, argnums=3)(points(lib)[0])


@program
def jacobian_of_in_place(lib: Any) -> Any:
    def f(a: Any) -> Any:
        b = a.clone()
        b[1:] *= a[:-1]
        return b

    return both(lib, f, points(lib)[0])

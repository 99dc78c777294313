"""`autograd.functional`: jacobian, hessian, vjp, jvp, hvp, vhp."""

from __future__ import annotations

from typing import Any

from tests.programs.functional.common import fn, one, two, vector
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


def scalar(x: Any, y: Any) -> Any:
    return (x**3).sum() * y[0] + y.exp().sum()


@program
def vjp_of_one(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: x.sin(), one(lib), one(lib))


@program
def vjp_of_two(lib: Any) -> Any:
    return fn(lib).vjp(vector, two(lib), two(lib))


@program
def vjp_of_two_in_lists(lib: Any) -> Any:
    return fn(lib).vjp(vector, list(two(lib)), list(two(lib)))


@program
def vjp_of_a_scalar_function(lib: Any) -> Any:
    return fn(lib).vjp(scalar, two(lib)), fn(lib).vjp(scalar, two(lib), constant(lib, 2.0))


@program
def vjp_without_vector(lib: Any) -> Any:
    return fn(lib).vjp(vector, two(lib))


@program
def vjp_vector_of_another_shape(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: x.sin(), one(lib), constant(lib, [1.0]))


@program
def vjp_too_few_vectors(lib: Any) -> Any:
    return fn(lib).vjp(vector, two(lib), one(lib))


@program
def vjp_create_graph(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    out, g = fn(lib).vjp(lambda a: a**3, x, one(lib), create_graph=True)
    (g * out).sum().backward()
    return out, g, x.grad


@program
def vjp_through_the_vector(lib: Any) -> Any:
    v = leaf(lib, [0.3, -1.2, 0.7])
    out, g = fn(lib).vjp(lambda a: a**3, one(lib), v, create_graph=True)
    g.sum().backward()
    return out, g, v.grad


@program
def vjp_of_a_tracked_input(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    return fn(lib).vjp(lambda a: a**3, x, one(lib)), x.grad


@program
def vjp_strict(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: x.sin(), one(lib), one(lib), strict=True)


@program
def vjp_strict_output_independent(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: lib.ones(2), one(lib), lib.ones(2), strict=True)


@program
def vjp_strict_input_independent(lib: Any) -> Any:
    return fn(lib).vjp(lambda x, y: x.sin(), two(lib), one(lib), strict=True)


@program
def vjp_independent(lib: Any) -> Any:
    return fn(lib).vjp(lambda x, y: (x.sin(), lib.ones(2)), two(lib), (one(lib), lib.ones(2)))


@program
def vjp_of_a_number(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: x, 3.0, 1.0)


@program
def vjp_to_a_number(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: 3.0, one(lib))


@program
def vjp_under_no_grad(lib: Any) -> Any:
    with lib.no_grad():
        return fn(lib).vjp(lambda x: x.sin(), one(lib), one(lib))


@program
def jvp_of_one(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: x.sin(), one(lib), one(lib))


@program
def jvp_of_two(lib: Any) -> Any:
    return fn(lib).jvp(vector, two(lib), two(lib))


@program
def jvp_without_vector(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: x * lib.ones(2), constant(lib, 2.0)), fn(lib).jvp(
        lambda x: x * lib.ones(2), constant(lib, [2.0])
    )


@program
def jvp_without_vector_of_many(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: x.sin(), one(lib))


@program
def jvp_create_graph(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    out, t = fn(lib).jvp(lambda a: a**3, x, one(lib), create_graph=True)
    (t * out).sum().backward()
    return out, t, x.grad


@program
def jvp_through_the_vector(lib: Any) -> Any:
    v = leaf(lib, [0.3, -1.2, 0.7])
    _, t = fn(lib).jvp(lambda a: a**3, one(lib), v, create_graph=True)
    t.sum().backward()
    return t, v.grad


@program
def jvp_strict_independent(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: lib.ones(2), one(lib), one(lib), strict=True)


@program
def jvp_strict_input_independent(lib: Any) -> Any:
    return fn(lib).jvp(lambda x, y: x.sin(), two(lib), two(lib), strict=True)


@program
def jvp_independent(lib: Any) -> Any:
    return fn(lib).jvp(lambda x, y: (x.sin(), lib.ones(2)), two(lib), two(lib))


@program
def jvp_strict_create_graph_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: x * 2, one(lib), one(lib), create_graph=True, strict=True)


@program
def products_with_the_hessian(lib: Any) -> Any:
    return [f(scalar, two(lib), two(lib)) for f in (fn(lib).vhp, fn(lib).hvp)]


@program
def products_with_the_hessian_of_one(lib: Any) -> Any:
    return [f(lambda x: (x**3).sum(), one(lib), one(lib)) for f in (fn(lib).vhp, fn(lib).hvp)]


@program
def products_with_the_hessian_without_vector(lib: Any) -> Any:
    return [f(lambda x: x**3, constant(lib, 2.0)) for f in (fn(lib).vhp, fn(lib).hvp)]


@program
def products_with_the_hessian_create_graph(lib: Any) -> Any:
    found = []
    for name in ("vhp", "hvp"):
        x = leaf(lib, [0.3, -1.2, 0.7])
        out, h = getattr(fn(lib), name)(lambda a: (a**4).sum(), x, one(lib), create_graph=True)
        (h.sum() * out).backward()
        found.append((out, h, x.grad))
    return found


@program
def vhp_of_a_vector_function(lib: Any) -> Any:
    return fn(lib).vhp(lambda x: x**2, one(lib), one(lib))


@program
def hvp_of_two_results(lib: Any) -> Any:
    return fn(lib).hvp(vector, two(lib), two(lib))


@program
def vhp_of_one_element(lib: Any) -> Any:
    return fn(lib).vhp(lambda x: (x**2).sum()[None], one(lib), one(lib))


@program
def vhp_strict_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).vhp(lambda x: x.sum(), one(lib), one(lib), strict=True)


@program
def hvp_strict_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).hvp(lambda x: x.sum(), one(lib), one(lib), strict=True)


@program
def vhp_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).vhp(lambda x: x.sum() * 2, one(lib), one(lib))


MODES: list[dict[str, Any]] = [{}, {"vectorize": True}]


def forward(lib: Any, f: Any, inputs: Any) -> Any:
    """By forward mode, as a flat list: torch's nests in lists there, and may require grad."""
    return flat(fn(lib).jacobian(f, inputs, vectorize=True, strategy="forward-mode"))


def flat(found: Any) -> list[Any]:
    """The tensors in nested tuples and lists, detached."""
    return [t for part in found for t in flat(part)] if isinstance(found, (tuple, list)) else [found.detach()]


@program
def jacobian_of_one(lib: Any) -> Any:
    given = lambda x: x.sin(), one(lib)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_two(lib: Any) -> Any:
    given = vector, two(lib)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_two_by_one(lib: Any) -> Any:
    given = lambda x: (x.sum(), x * 2), one(lib)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_one_by_two(lib: Any) -> Any:
    given = lambda x, y: x.sum() * y, two(lib)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_a_tuple_of_one(lib: Any) -> Any:
    given = lambda x: (x * 2,), (one(lib),)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_a_scalar(lib: Any) -> Any:
    given = lambda x: x**3, constant(lib, 2.0)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_matrices(lib: Any) -> Any:
    m = lib.arange(6.0, dtype=lib.float64).reshape(2, 3)
    return [fn(lib).jacobian(lambda x: x @ x.mT, m, **mode) for mode in MODES]


@program
def jacobian_independent(lib: Any) -> Any:
    ones = lib.ones(2, dtype=lib.float64)
    return [fn(lib).jacobian(lambda x, y: (x * 2, ones), two(lib), **m) for m in MODES]


@program
def jacobian_create_graph(lib: Any) -> Any:
    found = []
    for m in MODES[:2]:
        x = leaf(lib, [0.3, -1.2, 0.7])
        j = fn(lib).jacobian(lambda a: a**3, x, create_graph=True, **m)
        j.sum().backward()
        found.append((j, x.grad))
    return found


@program
def jacobian_without_create_graph(lib: Any) -> Any:
    x, w = leaf(lib, [0.3, -1.2, 0.7]), leaf(lib, [1.0, 2.0, 3.0])
    f = lambda a: a**3 * w  # noqa: E731
    return [fn(lib).jacobian(f, x, **m) for m in MODES], forward(lib, f, x), x.grad, w.grad


@program
def jacobian_strict(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x**2, one(lib), strict=True)


@program
def jacobian_strict_output_independent(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: lib.ones(2), one(lib), strict=True)


@program
def jacobian_strict_input_independent(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x, y: x * 2, two(lib), strict=True)


@program
def jacobian_strict_linear_create_graph(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), strict=True, create_graph=True)


@program
def jacobian_strict_vectorize(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), strict=True, vectorize=True)


@program
def jacobian_forward_create_graph(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), create_graph=True, strategy="forward-mode")


@program
def jacobian_forward_without_vectorize(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), strategy="forward-mode")


@program
def jacobian_of_another_strategy(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), strategy="sideways")


@program
def jacobian_to_a_number(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: 2.0, one(lib))


@program
def jacobian_of_numbers(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x, (one(lib), 2.0))


@program
def jacobian_of_item_in_vectorized(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * x.sum().item(), one(lib), vectorize=True)


@program
def hessian_of_one(lib: Any) -> Any:
    given = lambda x: (x**3).sum() * x[0], one(lib)
    forward_mode = fn(lib).hessian(*given, vectorize=True, outer_jacobian_strategy="forward-mode")
    return [fn(lib).hessian(*given, **m) for m in MODES], flat(forward_mode)


@program
def hessian_of_two(lib: Any) -> Any:
    forward_mode = fn(lib).hessian(scalar, two(lib), vectorize=True, outer_jacobian_strategy="forward-mode")
    return [fn(lib).hessian(scalar, two(lib), **m) for m in MODES], flat(forward_mode)


@program
def hessian_of_a_vector_function(lib: Any) -> Any:
    return fn(lib).hessian(lambda x: x * 2, one(lib))


@program
def hessian_of_one_element(lib: Any) -> Any:
    return fn(lib).hessian(lambda x: (x**3).sum()[None], one(lib))


@program
def hessian_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).hessian(lambda x: x.sum() * 2, one(lib)), fn(lib).hessian(
        lambda x: x.sum() * 2, one(lib), vectorize=True
    )


@program
def hessian_strict_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).hessian(lambda x: x.sum() * 2, one(lib), strict=True)


@program
def hessian_create_graph(lib: Any) -> Any:
    found = []
    for m in ({}, {"vectorize": True}):
        x = leaf(lib, [0.3, -1.2, 0.7])
        h = fn(lib).hessian(lambda a: (a**4).sum(), x, create_graph=True, **m)
        h.sum().backward()
        found.append((h, x.grad))
    return found


@program
def hessian_forward_create_graph(lib: Any) -> Any:
    return fn(lib).hessian(
        lambda a: (a**4).sum(), one(lib), create_graph=True, outer_jacobian_strategy="forward-mode", vectorize=True
    )


@program
def hessian_forward_without_vectorize(lib: Any) -> Any:
    return fn(lib).hessian(lambda a: (a**4).sum(), one(lib), outer_jacobian_strategy="forward-mode")


@program
def hessian_of_another_strategy(lib: Any) -> Any:
    return fn(lib).hessian(lambda a: (a**4).sum(), one(lib), outer_jacobian_strategy="sideways")


@program
def jacobian_of_a_complex_constant(lib: Any) -> Any:
    z = lib.tensor([1j, 2.0])
    return fn(lib).jacobian(lambda x: z, one(lib)), fn(lib).jacobian(lambda x: (x.sum(), z), one(lib))


@program
def hooks_of_outputs_that_may_depend_on_the_input(lib: Any) -> Any:
    calls: list[Any] = []

    def seen(name: str) -> None:
        calls.append(name)

    x, other = leaf(lib, [1.0]), leaf(lib, [2.0])
    product = other * 3
    other.register_hook(lambda g: seen("leaf"))
    product.register_hook(lambda g: seen("product"))

    def dependent(t: Any) -> Any:
        y = t * t * other
        y.register_hook(lambda g: seen("output"))
        return y

    f = fn(lib)
    for output in (lambda t: other, lambda t: product, dependent):
        for way in (f.jacobian, f.hessian, lambda g, t: f.jacobian(g, t, vectorize=True), lambda g, t: f.vjp(g, t, t)):
            calls.append(way(output, x))
    return calls

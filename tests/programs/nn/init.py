"""First values of parameters, gradients that are clipped, parameters as a vector."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tests.side_by_side import programs

PROGRAMS, program = programs()
COMPLETE = True


def error_of(fn: Callable[[], Any]) -> str:
    """The type of what a call raises, or that it raises nothing."""
    try:
        fn()
    except Exception as error:
        return type(error).__name__
    return "no error"


def error_words(fn: Callable[[], Any]) -> str:
    """The type and the first words of what a call raises."""
    try:
        fn()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:28]}"
    return "no error"


# what is not random ---------------------------------------------------------------------------------------------------


@program
def the_same_everywhere(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.empty(2, 3))
    i = lib.empty(2, dtype=lib.int64)
    found = [f(p).detach().clone() for f in (lib.nn.init.ones_, lib.nn.init.zeros_)]
    same = [lib.nn.init.constant_(p, 0.5) is p, lib.nn.init.ones_(i) is i]
    return [*found, same, p, p.is_leaf, i]


@program
def unit_matrices(lib: Any) -> Any:
    return [lib.nn.init.eye_(lib.nn.Parameter(lib.empty(*shape))) for shape in ((3, 3), (2, 4), (4, 2), (0, 3))]


@program
def kernels_that_pass_on(lib: Any) -> Any:
    shapes = [
        ((4, 2, 3), 1),
        ((2, 4, 4), 1),
        ((4, 2, 3, 2), 2),
        ((6, 4, 1, 2), 3),
        ((2, 2, 3, 1, 3), 1),
        ((0, 2, 3), 1),
    ]
    return [lib.nn.init.dirac_(lib.nn.Parameter(lib.ones(*shape)), groups) for shape, groups in shapes]


@program
def gains(lib: Any) -> Any:
    gain = lib.nn.init.calculate_gain
    names = "linear sigmoid tanh relu selu leaky_relu conv1d conv2d conv3d".split()
    names += [f"conv_transpose{n}d" for n in (1, 2, 3)]
    found: list[Any] = [float(gain(name)) for name in names]
    found += [gain("leaky_relu", 0.2), gain("leaky_relu", 0), gain("relu", 5)]
    return [
        *found,
        *(error_words(lambda a=a: gain(*a)) for a in (("leaky_relu", True), ("leaky_relu", "x"), ("gelu",))),
    ]


@program
def what_is_refused(lib: Any) -> Any:
    f, one, two, three = lib.nn.init, lib.empty(2), lib.empty(2, 3), lib.empty(2, 3, 4)
    return [
        error_words(call)
        for call in (
            lambda: f.eye_(one),
            lambda: f.eye_(three),
            lambda: f.dirac_(two),
            lambda: f.dirac_(lib.empty(3, 2, 2), 2),
            lambda: f.xavier_uniform_(one),
            lambda: f.xavier_normal_(one),
            lambda: f.kaiming_uniform_(one),
            lambda: f.kaiming_normal_(lib.empty(1)),
            lambda: f.kaiming_normal_(two, mode="fan"),
            lambda: f.kaiming_uniform_(two, nonlinearity="gelu"),
            lambda: f.orthogonal_(one),
            lambda: f.sparse_(three, 0.1),
            lambda: f.uniform_(two, 1.0, 0.0),
            lambda: f.normal_(two, 0.0, -1.0),
        )
    ]


@program
def without_elements_nothing_is_done(lib: Any) -> Any:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for name in ("kaiming_uniform_", "kaiming_normal_", "orthogonal_", "xavier_uniform_", "uniform_", "normal_"):
            x = lib.empty(0, 3)
            assert getattr(lib.nn.init, name)(x) is x
    return [str(w.message) for w in said]


@program
def random_values_without_spread(lib: Any) -> Any:
    f = lib.nn.init
    found = [f.uniform_(lib.empty(2), 3.0, 3.0), f.normal_(lib.empty(2), 3.0, 0.0), f.sparse_(lib.ones(2, 3), 1.0)]
    return [*found, f.trunc_normal_(lib.empty(2), 0.0, 1.0, 0.5, 0.5), f.xavier_normal_(lib.empty(2, 2), gain=0.0)]


# clipping gradients ---------------------------------------------------------------------------------------------------


def with_gradients(lib: Any, *grads: Any, dtype: str = "float32") -> list[Any]:
    """A parameter for each of the gradients, which may be None."""
    made = []
    for g in grads:
        g = None if g is None else lib.tensor(g, dtype=getattr(lib, dtype))
        p = lib.nn.Parameter(lib.zeros(2) if g is None else lib.zeros_like(g))
        p.grad = g
        made.append(p)
    return made


@program
def clipped_by_the_norm(lib: Any) -> Any:
    found = []
    for norm in (2.0, 1, 3.5, float("inf"), -float("inf"), 0):
        for limit in (1.0, 100, 0.0):
            ps = with_gradients(lib, [3.0, -4.0], None, [[1.0, 2.0], [0.0, -12.0]], 5.0)
            total = lib.nn.utils.clip_grad_norm_(ps, limit, norm_type=norm)
            found.append([total, total.ndim, [p.grad for p in ps]])
    (small,) = with_gradients(lib, [3e-6, 4e-6])
    return [*found, lib.nn.utils.clip_grad_norm_(small, 3e-6), small.grad]


@program
def clipped_by_the_norm_in_other_types(lib: Any) -> Any:
    found = []
    for dtype in ("float64", "complex64"):
        ps = with_gradients(lib, [3.0, -4.0], dtype=dtype)
        found.append([lib.nn.utils.clip_grad_norm_(ps, 1.0), ps[0].grad])
    ps = [*with_gradients(lib, [3.0, -4.0]), *with_gradients(lib, [12.0], dtype="float64")]
    return [*found, lib.nn.utils.clip_grad_norm_(ps, 1.0), [p.grad for p in ps]]


@program
def clipped_from_one_tensor_or_any_iterable(lib: Any) -> Any:
    (p,) = with_gradients(lib, [3.0, -4.0])
    found = [lib.nn.utils.clip_grad_norm_(p, 1.0), p.grad, lib.nn.utils.clip_grad_norm_((q for q in [p]), 0.5), p.grad]
    lib.nn.utils.clip_grad_value_(p, 0.3)
    found.append(p.grad)
    lib.nn.utils.clip_grad_value_(iter([p]), 0.25)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found += [p.grad, lib.nn.utils.clip_grad_norm_([], 1.0), lib.nn.utils.clip_grad_norm_((q for q in []), 1.0)]
    return [
        *found,
        [str(w.message) for w in said],
        lib.nn.utils.clip_grad_norm_([p, lib.nn.Parameter(lib.zeros(1))], 9.0),
    ]


@program
def gradients_that_are_not_finite(lib: Any) -> Any:
    found = []
    for bad in (float("inf"), float("nan")):
        (p,) = with_gradients(lib, [3.0, bad])
        found.append(error_words(lambda p=p: lib.nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)))
        found.append(repr(p.grad.tolist()))
        found.append(repr(lib.nn.utils.clip_grad_norm_(p, 1.0).item()))
        found.append(repr(p.grad.tolist()))
    return found


@program
def norms_of_anything(lib: Any) -> Any:
    x = lib.tensor([3.0, 4.0], requires_grad=True)
    total = lib.nn.utils.get_total_norm([x, lib.tensor([12.0])])
    (p,) = with_gradients(lib, [3.0, -4.0])
    lib.nn.utils.clip_grads_with_norm_(p, 1.0, total)
    return [total, lib.nn.utils.get_total_norm(x, 1.0), lib.nn.utils.get_total_norm([]), p.grad]


@program
def a_gradient_that_is_clipped_stays_the_same_tensor(lib: Any) -> Any:
    (p,) = with_gradients(lib, [3.0, -4.0])
    g = p.grad
    lib.nn.utils.clip_grad_norm_(p, 1.0)
    lib.nn.utils.clip_grad_value_(p, 0.1)
    return [p.grad is g, g, g._version > 1, lib.nn.utils.clip_grad_value_([p], 1.0)]


# parameters as a vector -----------------------------------------------------------------------------------------------


@program
def parameters_as_a_vector(lib: Any) -> Any:
    ps = [lib.nn.Parameter(lib.ones(2, 2)), lib.nn.Parameter(lib.zeros(1)), lib.nn.Parameter(lib.tensor(7.0))]
    vector = lib.nn.utils.parameters_to_vector(p for p in ps)
    (vector * lib.arange(6.0)).sum().backward()
    new = lib.arange(8.0)
    lib.nn.utils.vector_to_parameters(new, iter(ps))
    found = [p.detach().clone() for p in ps]
    with lib.no_grad():
        ps[0].mul_(10)  # which is written to the vector
    return [
        vector.detach(),
        [p.grad for p in ps],
        found,
        new,
        ps,
    ]


@program
def vectors_that_are_none(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    vector = lib.zeros(2, requires_grad=True) * 1
    lib.nn.utils.vector_to_parameters(vector, [p])
    calls = [
        lambda: lib.nn.utils.vector_to_parameters([1.0, 2.0], [p]),
        lambda: lib.nn.utils.vector_to_parameters(vector[:1], [p]),
    ]
    return [p, p.is_leaf, [error_of(call) for call in calls]]

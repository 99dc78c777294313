"""Elementwise operations on sparse tensors: layouts, values, gradients at the nonzeros, in-place forms, refusals."""

from __future__ import annotations

from typing import Any

from tests.programs.sparse.common import LAYOUTS, gradients, matrix, refusals, repeated, shown, summed
from tests.side_by_side import named, programs, refused

PROGRAMS, program = programs()

EVERYWHERE = (
    "abs asin asinh atan atanh ceil conj_physical deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf "
    "log1p neg positive rad2deg relu round sgn sign signbit sin sinh sqrt tan tanh trunc"
).split()
DIFFERENTIATED = "abs ceil conj_physical deg2rad floor frac neg positive rad2deg relu round sign trunc".split()
REFUSED = "exp cos log reciprocal sigmoid square nan_to_num angle exp2 acos cosh digamma".split()


def _values_of(layout: str) -> Any:
    def functions(lib: Any) -> Any:
        return [(name, shown(getattr(lib, name)(matrix(lib, layout)))) for name in EVERYWHERE]

    return named(f"functions_that_keep_zero_{layout}", functions)


for _layout in LAYOUTS:
    program(_values_of(_layout))


@program
def functions_of_repeated_entries(lib: Any) -> Any:
    names = [name for name in EVERYWHERE if name not in ("asin", "atanh", "erfinv")]
    return [(name, summed(getattr(lib, name)(repeated(lib)))) for name in names]


@program
def gradients_of_functions(lib: Any) -> Any:
    found: list[Any] = []
    for layout in ("sparse_coo", "sparse_csr"):
        for name in DIFFERENTIATED:
            a = matrix(lib, layout, grad=True)
            found.append((layout, name, gradients(lib, getattr(lib, name)(a), a)))
    return found


@program
def functions_of_integers(lib: Any) -> Any:
    a = lib.sparse_coo_tensor([[0, 1]], [1, -2])
    b = lib.sparse_csr_tensor([0, 1], [0], [2])
    return [shown(f) for f in (a.sin(), a.abs(), b.sin(), b.neg(), a * 2.5, b * 2.5, a / 2, a * 2)]


@program
def products_with_numbers(lib: Any) -> Any:
    found: list[Any] = []
    for layout in LAYOUTS:
        a = matrix(lib, layout)
        found += [shown(a * 2), shown(0.5 * a), shown(a * lib.tensor(3.0)), shown(lib.mul(a, 0)), shown(-a)]
        if layout != "sparse_csc":
            b = matrix(lib, layout, grad=True)
            found.append(gradients(lib, b * 3, b))
    return found


@program
def quotients_and_powers(lib: Any) -> Any:
    a = matrix(lib, "sparse_coo", grad=True)
    calls = [
        lambda: a / 4,
        lambda: lib.div(a, lib.tensor(4.0)),
        lambda: lib.div(a, 0.5, rounding_mode="floor"),
        lambda: a**2,
        lambda: a**-1,
        lambda: lib.square(a),
        lambda: a.float_power(2),
        lambda: a.detach() // 0.5,
    ]
    return [shown(call().detach()) for call in calls], [gradients(lib, calls[i](), a) for i in (0, 1, 2, 3, 5)]


@program
def products_of_two(lib: Any) -> Any:
    found: list[Any] = []
    for layout in ("sparse_coo", "sparse_csr"):
        a, b = (matrix(lib, layout, grad=True, rows=3) for _ in range(2))
        other = repeated(lib).to_sparse(layout=getattr(lib, layout)).coalesce() if layout == "sparse_coo" else None
        other = repeated(lib).to_sparse_csr() if other is None else other
        found += [shown((a * b).detach()), gradients(lib, a * b, a, b), summed(a.detach() * other), (a * other)._nnz()]
        dense = lib.arange(9.0, dtype=lib.float64).reshape(3, 3)
        found += [shown((a * dense).detach()), shown((dense * a).detach())]
    a = matrix(lib, "sparse_coo", grad=True, rows=3)
    row = lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64)
    c = matrix(lib, "sparse_csr", rows=3)
    return found, gradients(lib, a * row, a), shown(c * c.to_sparse_csc()), shown(c * c.to_sparse())


@program
def sums_of_two(lib: Any) -> Any:
    found: list[Any] = []
    for layout in ("sparse_coo", "sparse_csr"):
        a, b = (matrix(lib, layout, grad=True, rows=3) for _ in range(2))
        other = repeated(lib).to_sparse(layout=getattr(lib, layout))
        found += [shown((a + b).detach()), gradients(lib, a + b, a, b), summed(a.detach() + other)]
        found += [shown(lib.add(a.detach(), b.detach(), alpha=2)), summed(other.clone() + a.detach())]
        dense = lib.ones(3, 3, dtype=lib.float64, requires_grad=True)
        found += [summed(dense + a), gradients(lib, dense + a, dense, a)]
    a = matrix(lib, "sparse_coo", grad=True, rows=3)
    dense = lib.ones(3, 3, dtype=lib.float64, requires_grad=True)
    found += [summed(a - repeated(lib)), gradients(lib, a - repeated(lib), a), summed(dense - a)]
    found += [shown(lib.sub(a, a, alpha=3).detach()), (a.detach().coalesce() + repeated(lib).coalesce()).is_coalesced()]
    c = matrix(lib, "sparse_csr", rows=3)
    return found, summed(c + dense.detach()), summed(matrix(lib, "sparse_csc", rows=3) + dense.detach())


@program
def in_place(lib: Any) -> Any:
    found: list[Any] = []
    for layout in LAYOUTS:
        for write in (
            lambda a: a.mul_(2),
            lambda a: a.neg_(),
            lambda a: a.sin_(),
            lambda a: a.relu_(),
            lambda a: a.add_(a),
        ):
            a = matrix(lib, layout)
            alias = a.detach()
            found.append((write(a) is a, shown(a), a._version, shown(alias)))
        dense = lib.ones(4, 3, dtype=lib.float64)
        found.append(dense.add_(matrix(lib, layout)))
    leaf = matrix(lib, "sparse_csr", grad=True)
    return found, refused(lambda: leaf.mul_(2)), refused(lambda: matrix(lib, "sparse_csr").add_(lib.ones(4, 3)))


@program
def joined_along_an_axis(lib: Any) -> Any:
    a, b = matrix(lib, "sparse_coo", grad=True), matrix(lib, "sparse_coo", grad=True)
    found = [shown(lib.cat([a, b], dim).detach()) for dim in (0, 1)]
    dense = refused(lambda: lib.cat([a, lib.ones(4, 3)]))
    return found, dense, refused(lambda: lib.cat([a, a.t()]))


@program
def functions_that_make_zeros_nonzero(lib: Any) -> Any:
    """Torch's error is of a type or of a type derived from it."""

    def types(name: str, layout: str) -> str:
        try:
            getattr(lib, name)(matrix(lib, layout))
        except RuntimeError:
            return "refused"
        return "computed"

    return [(name, [types(name, layout) for layout in LAYOUTS]) for name in REFUSED]


CALLS: dict[str, Any] = {
    "a sum with a number": lambda lib, a: a + 1,
    "a quotient of two": lambda lib, a: a / a,
    "a quotient by a dense one": lambda lib, a: a / lib.ones(4, 3),
    "a number over it": lambda lib, a: 2 / a,
    "the power 0": lambda lib, a: a**0,
    "comparison": lambda lib, a: a == a,
    "comparison with a number": lambda lib, a: a > 0,
    "a product of another shape": lambda lib, a: a * lib.ones(2, 2),
    "a product of sparse ones of another shape": lambda lib, a: a * lib.eye(2).to_sparse(layout=a.layout),
    "a sum of another shape": lambda lib, a: a + lib.eye(2).to_sparse(layout=a.layout),
    "clamp": lambda lib, a: a.clamp(0, 1),
}


@program
def combinations_that_are_refused(lib: Any) -> Any:
    return [refusals(lib, lambda lib, layout=layout: matrix(lib, layout), CALLS) for layout in LAYOUTS]


@program
def differences_of_compressed_ones_are_refused(lib: Any) -> Any:
    return [
        refusals(
            lib,
            lambda lib, layout=layout: matrix(lib, layout),
            {
                "a difference": lambda lib, a: a - a,
                "a difference from a dense one": lambda lib, a: lib.ones(4, 3) - a,
                "a quotient": lambda lib, a: a / 2,
                "a power": lambda lib, a: a**2,
                "a floor": lambda lib, a: a // 2,
            },
        )
        for layout in LAYOUTS[1:]
    ]

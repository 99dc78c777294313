"""Products with sparse matrices of every layout: values, gradients of both factors, and what is refused."""

from __future__ import annotations

from typing import Any

from tests.programs.sparse.common import LAYOUTS, gradients, matrix, refusals, summed
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()

LEFT = [[1.0, 2.0, 0.5, 3.0], [0.0, -1.0, 4.0, 1.0]]
RIGHT = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]]


@program
def with_dense_matrices_and_vectors(lib: Any) -> Any:
    found: list[Any] = []
    for layout in LAYOUTS:
        for product in (
            lambda a, x, y, v: a @ x,
            lambda a, x, y, v: lib.mm(a, x),
            lambda a, x, y, v: y @ a,
            lambda a, x, y, v: lib.matmul(y, a),
            lambda a, x, y, v: a @ v,
            lambda a, x, y, v: lib.mv(a, v),
            lambda a, x, y, v: y[0] @ a,
            lambda a, x, y, v: a.t() @ y.t(),
            lambda a, x, y, v: lib.nn.functional.linear(x.t(), a),
        ):
            found.append(
                product(matrix(lib, layout), constant(lib, RIGHT), constant(lib, LEFT), constant(lib, [1.0, 2.0, 3.0]))
            )
    return found


@program
def gradients_of_both_factors(lib: Any) -> Any:
    found: list[Any] = []
    for layout in ("sparse_coo", "sparse_csr"):
        a, x = matrix(lib, layout, grad=True), leaf(lib, RIGHT)
        found += [gradients(lib, a @ x, a, x), gradients(lib, a.t() @ constant(lib, LEFT).t(), a)]
        y = leaf(lib, LEFT)
        found.append(gradients(lib, y @ a, y, a))
        v = leaf(lib, [1.0, 2.0, 3.0])
        found.append(gradients(lib, a @ v, v))
    return found


@program
def sums_with_products(lib: Any) -> Any:
    found: list[Any] = []
    for layout in LAYOUTS:
        a, x, m = matrix(lib, layout), constant(lib, RIGHT), constant(lib, [[1.0, 2.0]] * 4)
        found += [lib.addmm(m, a, x), lib.addmm(m, a, x, beta=2, alpha=0.5), lib.sparse.addmm(m, a, x, beta=0.0)]
        if layout != "sparse_coo":
            found += [lib.addmm(constant(lib, [[1.0] * 3] * 2), constant(lib, LEFT), a)]
            found += [lib.addmv(lib.ones(4, dtype=lib.float64), a, constant(lib, [1.0, 2.0, 3.0]), alpha=2)]
    a, x, m = matrix(lib, "sparse_coo", grad=True), leaf(lib, RIGHT), leaf(lib, [[1.0, 2.0]] * 4)
    return found, gradients(lib, lib.sparse.addmm(m, a, x, beta=2, alpha=3), m, a, x)


@program
def sums_of_three_compressed_matrices(lib: Any) -> Any:
    a = matrix(lib, "sparse_csr")
    return summed(lib.addmm(a, a @ a.t().to_sparse_csr(), a, beta=2))


@program
def of_two_sparse_matrices(lib: Any) -> Any:
    found: list[Any] = []
    for layout in LAYOUTS:
        a, b = matrix(lib, layout), matrix(lib, layout, rows=3)
        found += [summed(a @ b), summed(lib.mm(a, b)), summed(a @ a.t())]
    a, b = matrix(lib, "sparse_coo", grad=True), matrix(lib, "sparse_coo", grad=True, rows=3)
    found.append(gradients(lib, lib.sparse.mm(a, b), a, b))
    return found, summed(matrix(lib, "sparse_csr") @ matrix(lib, "sparse_csc", rows=3))


@program
def at_the_places_of_a_matrix(lib: Any) -> Any:
    m1, m2 = leaf(lib, [[1.0, 2.0]] * 4), leaf(lib, [[1.0, 2.0, 3.0], [0.5, 0.25, -1.0]])
    a = matrix(lib, "sparse_csr", grad=True)
    y = lib.sparse.sampled_addmm(a, m1, m2, beta=0.5, alpha=2.0)
    return (
        summed(y),
        summed(lib.sparse.sampled_addmm(a.detach(), m1.detach(), m2.detach())),
        gradients(lib, y, m1, m2, a),
    )


@program
def masks(lib: Any) -> Any:
    x = constant(lib, [[1.0, 2.0, 3.0]] * 4)
    return [summed(x.sparse_mask(matrix(lib, layout))) for layout in LAYOUTS]


CALLS: dict[str, Any] = {
    "shapes": lambda lib, a: a @ lib.ones(2, 2, dtype=lib.float64),
    "a number": lambda lib, a: a @ lib.tensor(1.0, dtype=lib.float64),
    "dtypes": lambda lib, a: a @ lib.ones(3, 1),
    "mv of another length": lambda lib, a: lib.mv(a, lib.ones(2, dtype=lib.float64)),
    "a list": lambda lib, a: lib.matmul(a, [[1.0]]),
    "a sparse input of addmm": lambda lib, a: lib.addmm(a, lib.ones(4, 2), lib.ones(2, 3)),
    "dot": lambda lib, a: lib.dot(a, a),
}


@program
def products_that_are_refused(lib: Any) -> Any:
    return [refusals(lib, lambda lib, layout=layout: matrix(lib, layout), CALLS) for layout in LAYOUTS]


@program
def products_of_other_layouts_that_are_refused(lib: Any) -> Any:
    csr, coo, csc = (matrix(lib, layout, rows=3) for layout in ("sparse_csr", "sparse_coo", "sparse_csc"))
    dense = lib.ones(3, 3, dtype=lib.float64)
    calls: dict[str, Any] = {
        "csr @ coo": lambda lib, _: csr @ coo,
        "coo @ csr": lambda lib, _: coo @ csr,
        "sampled_addmm of coordinates": lambda lib, _: lib.sparse.sampled_addmm(coo, dense, dense),
        "sampled_addmm by columns": lambda lib, _: lib.sparse.sampled_addmm(csc, dense, dense),
        "sampled_addmm of shapes": lambda lib, _: lib.sparse.sampled_addmm(csr, dense[:2], dense),
        "addmv of coordinates": lambda lib, _: lib.addmv(dense[0], coo, dense[0]),
    }
    return refusals(lib, lambda lib: None, calls)

"""Sums, norms and softmax of sparse tensors: layouts, values, gradients at the nonzeros, and what is refused."""

from __future__ import annotations

from typing import Any

from tests.programs.sparse.common import LAYOUTS, gradients, matrix, refusals, repeated, shown, summed
from tests.side_by_side import programs

PROGRAMS, program = programs()


def hybrid(lib: Any, grad: bool = False) -> Any:
    """Two sparse axes and a dense one."""
    values = lib.tensor([[1.0, 2.0], [3.0, -4.0], [0.5, 1.5]], dtype=lib.float64)
    made = lib.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3, 2)).coalesce()
    return made.requires_grad_() if grad else made


@program
def sums_of_all(lib: Any) -> Any:
    found: list[Any] = []
    for layout in LAYOUTS:
        a = matrix(lib, layout, grad=True)
        found += [a.sum(), lib.sum(a, dtype=lib.float32).dtype == lib.float32, gradients(lib, a.sum(), a)]
    integers = lib.sparse_coo_tensor([[0, 1]], [1, 2], dtype=lib.int32)
    return found, integers.sum(), repeated(lib).sum(), lib.sparse.sum(matrix(lib, "sparse_coo"))


@program
def sums_along_axes(lib: Any) -> Any:
    found: list[Any] = []
    dim: Any
    for dim in (0, 1, -1, (0, 1), []):
        found.append((shown(matrix(lib, "sparse_coo").sum(dim)), shown(lib.sparse.sum(matrix(lib, "sparse_coo"), dim))))
    for dim in (0, 2, (0, 2), (0, 1), (1, 2), (0, 1, 2)):
        found.append(summed(hybrid(lib).sum(dim)))
    for dim in (0, 1):
        a = matrix(lib, "sparse_coo", grad=True)
        found.append(gradients(lib, lib.sparse.sum(a, dim), a))
    return found


@program
def sums_that_keep_the_axes(lib: Any) -> Any:
    found: list[Any] = []
    for dim in (0, 1, (0, 1)):
        found += [shown(matrix(lib, layout).sum(dim, True)) for layout in ("sparse_coo", "sparse_csr")]
    return found, summed(repeated(lib).sum(1, keepdim=True)), summed(repeated(lib).to_sparse_csr().sum(0, keepdim=True))


@program
def norms(lib: Any) -> Any:
    found: list[Any] = []
    for p in ("fro", 2, 1, 3, 0.5, 0, float("inf"), -float("inf")):
        found += [matrix(lib, "sparse_coo").norm(p), lib.norm(repeated(lib), p)]
    a = matrix(lib, "sparse_coo")
    return found, lib.norm(a, 2, (0, 1)), lib.norm(hybrid(lib))


@program
def any_nonzero(lib: Any) -> Any:
    return matrix(lib, "sparse_coo").any(), lib.any(lib.zeros(2, 2).to_sparse())


@program
def softmax_over_the_entries(lib: Any) -> Any:
    found: list[Any] = []
    for name in ("softmax", "log_softmax"):
        for dim in (0, 1):
            a = matrix(lib, "sparse_coo", grad=True)
            y = getattr(lib.sparse, name)(a, dim)
            found += [shown(y.detach()), gradients(lib, y, a)]
        for dim in (0, 1, 2):
            a = hybrid(lib, grad=True)
            y = getattr(lib.sparse, name)(a, dim)
            found += [shown(y.detach()), gradients(lib, y, a)]
        found.append(shown(getattr(lib.sparse, name)(repeated(lib), 0)))
        found.append(shown(getattr(lib.sparse, name)(matrix(lib, "sparse_coo"), 1, dtype=lib.float32)))
        found.append(shown(getattr(lib.sparse, name)(lib.sparse_coo_tensor([[3, 1]], [1000.0, 999.0]), 0)))
        found.append(shown(getattr(lib.sparse, name)(lib.zeros(2, 2).to_sparse(), 0)))
    return found


CALLS: dict[str, Any] = {
    "mean": lambda lib, a: a.mean(),
    "prod": lambda lib, a: a.prod(),
    "max": lambda lib, a: a.max(),
    "amax": lambda lib, a: a.amax(),
    "all": lambda lib, a: a.all(),
    "var": lambda lib, a: a.var(),
    "argmax": lambda lib, a: a.argmax(),
    "cumsum": lambda lib, a: a.cumsum(0),
    "softmax": lambda lib, a: a.softmax(1),
    "nuclear": lambda lib, a: a.norm("nuc"),
    "nonzero": lambda lib, a: a.nonzero(),
}


@program
def reductions_that_are_refused(lib: Any) -> Any:
    return [refusals(lib, lambda lib, layout=layout: matrix(lib, layout), CALLS) for layout in LAYOUTS]


@program
def reductions_of_compressed_ones_that_are_refused(lib: Any) -> Any:
    calls: dict[str, Any] = {
        "sum along an axis": lambda lib, a: a.sum(0),
        "sparse.sum": lambda lib, a: lib.sparse.sum(a),
        "sparse.sum along an axis": lambda lib, a: lib.sparse.sum(a, 0),
        "norm": lambda lib, a: a.norm(),
        "sparse.softmax": lambda lib, a: lib.sparse.softmax(a, 0),
    }
    return [refusals(lib, lambda lib, layout=layout: matrix(lib, layout), calls) for layout in LAYOUTS[1:]]


@program
def reductions_of_coordinates_that_are_refused(lib: Any) -> Any:
    calls: dict[str, Any] = {
        "a norm along an axis": lambda lib, a: a.norm(2, 0),
        "a norm that keeps the axes": lambda lib, a: a.norm(2, (0, 1), True),
        "no such axis": lambda lib, a: a.sum(5),
        "an axis twice": lambda lib, a: a.sum((0, 0)),
        "softmax of no such axis": lambda lib, a: lib.sparse.softmax(a, 2),
        "a norm of integers": lambda lib, a: a.long().norm(),
    }
    return refusals(lib, lambda lib: matrix(lib, "sparse_coo"), calls)

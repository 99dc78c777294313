"""Sparse tensors in three layouts: constructors, parts, conversions, views of the transpose, copies, and refusals."""

from __future__ import annotations

import functools
from typing import Any

from tests.programs.sparse.common import LAYOUTS, gradients, layout_of, matrix, refusals, repeated, shown
from tests.side_by_side import programs, refused, says

PROGRAMS, program = programs()


def csr(lib: Any, **options: Any) -> Any:
    return lib.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3), **options)


def csc(lib: Any, **options: Any) -> Any:
    return lib.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], [4.0, 3.0, 5.0], (2, 3), **options)


@program
def constructors(lib: Any) -> Any:
    made = [
        csr(lib),
        csc(lib, dtype=lib.float64),
        csr(lib, layout=lib.sparse_csr),
        lib.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3, 4, 5]),
        lib.sparse_csc_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0]),
        lib.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 4), layout=lib.sparse_csr),
        lib.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], layout=lib.sparse_csc),
        lib.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [[3.0, 4.0], [5.0, 3.0], [2.0, 1.0]]),
        lib.sparse_csr_tensor(*(lib.tensor(p, dtype=lib.int32) for p in ([0, 1, 3], [2, 0, 2])), lib.ones(3), (2, 3)),
        lib.sparse_csr_tensor([0, 0, 0], lib.empty(0, dtype=lib.int64), lib.empty(0), (2, 3)),
    ]
    return [(shown(t), t._nnz(), t.sparse_dim(), t.dense_dim(), t.is_sparse, t.is_sparse_csr) for t in made]


@program
def representations(lib: Any) -> Any:
    small = [csr(lib), csc(lib), csr(lib, requires_grad=True), csr(lib, dtype=lib.float64), csc(lib, dtype=lib.int16)]
    empty = lib.sparse_csr_tensor([0, 0, 0], lib.empty(0, dtype=lib.int64), lib.empty(0), (2, 3))
    many = lib.eye(1200).to_sparse_csr()
    wide = lib.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [[3.0, 4.0], [5.0, 3.0], [2.0, 1.0]])
    long = lib.sparse_csc_tensor([0, 1], [0], [1.5], (123456789, 1), dtype=lib.float64, requires_grad=True)
    return [repr(t).replace("torch.", "").replace("pullback.", "") for t in (*small, empty, many, wide, long)]


@program
def layouts_by_name(lib: Any) -> Any:
    return [layout_of(t) for t in (csr(lib), csc(lib), lib.eye(2), lib.eye(2).to_sparse())]


@program
def parts_of_another_layout(lib: Any) -> Any:
    found: list[Any] = []
    for t in (lib.eye(2), lib.eye(2).to_sparse(), csr(lib), csc(lib)):
        for name in ("crow_indices", "col_indices", "ccol_indices", "row_indices"):
            found.append((layout_of(t), name, says(getattr(t, name), f"{name} expected sparse")))
    for t in (csr(lib), csc(lib)):
        for name in ("indices", "coalesce", "is_coalesced"):
            found.append(says(getattr(t, name), f"{name} expected sparse coordinate tensor layout but got Sparse"))
        found += [
            refused(t._indices),
            refused(t._values),
            refused(t.numpy),
            refused(functools.partial(getattr, t, "T")),
        ]
    return found


@program
def conversions_between_layouts(lib: Any) -> Any:
    found: list[Any] = []
    for before in LAYOUTS:
        for after in ("strided", *LAYOUTS):
            a = matrix(lib, before, grad=True)
            b = a.to_sparse(layout=getattr(lib, after))
            found.append((before, after, shown(b.detach())))
            if not (before == "sparse_csc" and after != "strided"):  # torch has no such derivative
                found.append(gradients(lib, b, a))
        a = matrix(lib, before)
        found += [shown(a.to_sparse_csr()), shown(a.to_sparse_csc()), shown(a.to_sparse()), shown(a.to_sparse(2))]
    return found


@program
def what_is_repeated_is_summed(lib: Any) -> Any:
    a = repeated(lib)
    return shown(a.to_sparse_csr()), shown(a.to_sparse_csc()), shown(a.coalesce())


@program
def from_strided(lib: Any) -> Any:
    x = lib.tensor([[[1.0, 2.0], [0.0, 0.0]], [[0.0, 3.0], [4.0, 5.0]]], dtype=lib.float64, requires_grad=True)
    found: list[Any] = []
    for make in ("to_sparse_csr", "to_sparse_csc"):
        made = getattr(x, make)(dense_dim=1)
        found.append((shown(made.detach()), lib.autograd.grad((made.to_dense() ** 2).sum(), x)))
    flat = lib.tensor([[0.0, 3.0, 0.0], [4.0, 0.0, 5.0]], requires_grad=True)
    (g,) = lib.autograd.grad((flat.to_sparse_csr() * 3).to_dense().sum(), flat)
    return found, g


@program
def a_transpose_exchanges_rows_and_columns(lib: Any) -> Any:
    found: list[Any] = []
    for layout in LAYOUTS:
        a = matrix(lib, layout)
        found += [shown(a.t()), shown(a.transpose(0, 1)), shown(a.mT), shown(a.transpose(0, 0))]
    a = matrix(lib, "sparse_csr", grad=True)
    return found, gradients(lib, a.t(), a)


@program
def copies(lib: Any) -> Any:
    found: list[Any] = []
    for make in (csr, csc):
        a = make(lib, requires_grad=True)
        b = a.clone()
        found.append((a.is_leaf, b.is_leaf, a.detach().requires_grad, shown(b), a.grad is None))
        found.append((shown(a.detach().to(lib.float64)), a.detach().half().dtype == lib.float16))
        found += [shown(lib.zeros_like(a.detach())), shown(lib.ones_like(a.detach()))]
        found += [shown(lib.full_like(a.detach(), 2.0, dtype=lib.float64)), lib.empty_like(a.detach())._nnz()]
    coo = lib.eye(2).to_sparse()
    return found, shown(lib.zeros_like(coo)), lib.empty_like(coo)._nnz(), refused(lambda: lib.ones_like(coo))


@program
def values_lead_to_a_leaf(lib: Any) -> Any:
    values = lib.tensor([3.0, 4.0, 5.0], requires_grad=True)
    a = lib.sparse_csr_tensor(lib.tensor([0, 1, 3]), lib.tensor([2, 0, 2]), values, (2, 3))
    (a @ lib.tensor([1.0, 10.0, 100.0])).sum().backward()
    return a.requires_grad, a.is_leaf, values.grad


@program
def parts_selected_by_integers(lib: Any) -> Any:
    found: list[Any] = []
    for layout in LAYOUTS:
        a = matrix(lib, layout)
        found += [
            shown(a[1]),
            shown(a.select(1, 2)),
            a[1, 2],
            a[0, 0],
            len(a),
            refused(functools.partial(a.__getitem__, 5)),
        ]
    return found


def _csr(*parts: Any, **options: Any) -> Any:
    return lambda lib: lib.sparse_csr_tensor(*parts, **options)


BAD = {
    "a value too few": _csr([0, 1, 3], [2, 0, 2], [3.0, 4.0], (2, 3)),
    "the end": _csr([0, 1, 2], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3)),
    "the beginning": _csr([1, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3)),
    "not sorted": _csr([0, 1, 3], [2, 2, 0], [3.0, 4.0, 5.0], (2, 3)),
    "not distinct": _csr([0, 1, 3], [2, 2, 2], [3.0, 4.0, 5.0], (2, 3)),
    "too large": _csr([0, 1, 3], [3, 0, 2], [3.0, 4.0, 5.0], (2, 3)),
    "negative": _csr([0, 1, 3], [-1, 0, 2], [3.0, 4.0, 5.0], (2, 3)),
    "a row too few": _csr([0, 3], [0, 1, 2], [3.0, 4.0, 5.0], (2, 3)),
    "decreasing": _csr([0, 2, 1, 3], [0, 1, 2], [3.0, 4.0, 5.0], (3, 3)),
    "floats": _csr([0.0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3)),
    "a long size": _csr([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3, 1)),
    "a short size": _csr([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2,)),
    "a negative size": _csr([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (-2, 3)),
    "a number as the size": _csr([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], 6),
    "a number as values": _csr([0, 1, 3], [2, 0, 2], 3.0, (2, 3)),
    "no values": _csr([0, 1, 3], [2, 0, 2]),
    "a number as indices": _csr(5, [0], [1.0]),
    "nothing": _csr([], [], [], (0, 3)),
    "dtypes": lambda lib: lib.sparse_csr_tensor(
        lib.tensor([0, 1]), lib.tensor([0], dtype=lib.int32), lib.ones(1), (1, 1)
    ),
    "short integers": lambda lib: lib.sparse_csr_tensor(
        lib.tensor([0, 1], dtype=lib.int16), lib.tensor([0], dtype=lib.int16), lib.ones(1), (1, 1)
    ),
    "another layout": lambda lib: lib.sparse_csr_tensor([0, 1], [0], [1.0], layout=lib.sparse_csc),
    "no layout": lambda lib: lib.sparse_compressed_tensor([0, 1], [0], [1.0]),
    "a strided layout": lambda lib: lib.sparse_compressed_tensor([0, 1], [0], [1.0], layout=lib.strided),
    "a string as the layout": lambda lib: lib.sparse_compressed_tensor([0, 1], [0], [1.0], layout="csr"),
    "integers that require grad": _csr([0, 1], [0], [1], requires_grad=True),
}


@program
def bad_parts(lib: Any) -> Any:
    def checked(make: Any) -> Any:
        if not hasattr(lib.sparse, "check_sparse_tensor_invariants"):
            return make(lib)
        with lib.sparse.check_sparse_tensor_invariants():
            return make(lib)

    return [(name, refused(functools.partial(checked, make))) for name, make in BAD.items()]


@program
def conversions_that_are_refused(lib: Any) -> Any:
    calls: dict[str, Any] = {
        "sparse_dim": lambda lib, a: a.to_sparse(1),
        "dense_dim": lambda lib, a: a.to_sparse_csr(dense_dim=1),
        "dtype": lambda lib, a: a.to_dense(dtype=lib.float32),
        "a vector": lambda lib, a: lib.ones(3).to_sparse_csr(),
        "too many dense axes": lambda lib, a: lib.ones(2, 2).to_sparse_csr(dense_dim=5),
        "reshape": lambda lib, a: a.reshape(2, 6),
        "a boolean": lambda lib, a: bool(a),
        "expand": lambda lib, a: a.expand(2, 4, 3),
    }
    return [refusals(lib, lambda lib, layout=layout: matrix(lib, layout), calls) for layout in LAYOUTS]

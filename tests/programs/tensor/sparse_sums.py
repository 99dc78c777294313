"""Sums of sparse tensors, over their sparse axes and over their dense ones."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


def _hybrid(lib: Any, values: Any) -> Any:
    return lib.sparse_coo_tensor(lib.tensor([[0, 2, 2, 1]]), values, (3, 2, 3))


@program
def dense_axes_of_a_hybrid_tensor(lib: Any) -> Any:
    found = []
    for dims in ([1], [2], [1, 2], [0, 2], [0, 1], [0], [-1], None):
        values = leaf(lib, [[[float(4 * i + 2 * j + k * k) for k in range(3)] for j in range(2)] for i in range(4)])
        x = _hybrid(lib, values)
        total = lib.sparse.sum(x) if dims is None else lib.sparse.sum(x, dims)
        dense = total.to_dense() if total.is_sparse else total
        (dense * dense).sum().backward()
        found.append((dense.detach(), total.is_sparse, values.grad))
    return found

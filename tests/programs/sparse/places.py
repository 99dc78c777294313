"""Sparse tensors with other axes, with other entries, and written over as a whole."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import programs

PROGRAMS, program = programs()


def matrix(lib: Any) -> Any:
    return lib.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]).to_sparse()


def shown(s: Any) -> Any:
    s = s.coalesce()
    return s.indices(), s.values(), tuple(s.shape), s.sparse_dim()


def with_gradient(lib: Any, change: Any) -> Any:
    """What a change makes of a matrix, and the gradient of the squares of its values at the matrix's nonzeros."""
    s = matrix(lib).requires_grad_()
    found = change(s)
    (found.to_dense() ** 2).sum().backward()
    return shown(found.detach()), s.grad.to_dense()


@program
def an_axis_more(lib: Any) -> Any:
    return [shown(matrix(lib).unsqueeze(d)) for d in (0, 1, 2, -1, -3)]


@program
def an_axis_more_among_dense_ones(lib: Any) -> Any:
    s = lib.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    return [(tuple(t.shape), t.sparse_dim(), t.to_dense()) for t in (s.unsqueeze(d) for d in (0, 1, 2, -1))]


@program
def axes_in_another_order(lib: Any) -> Any:
    s = lib.sparse_coo_tensor([[0, 2], [1, 0]], [[1.0, 2.0], [3.0, 4.0]], (3, 2, 2))
    return with_gradient(lib, lambda s: s.permute(1, 0)), s.permute(1, 0, 2).to_dense(), s.permute((0, 1, 2)).to_dense()


@program
def sparse_axes_do_not_become_dense(lib: Any) -> Any:
    return lib.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2)).permute(1, 0)


@program
def parts_of_an_axis(lib: Any) -> Any:
    return [
        shown(matrix(lib).index_select(d, lib.tensor(i)))
        for d, i in ((0, [1, 1, 0]), (1, [2, 0]), (-1, [0, 2, 0, 1]), (0, [0]))
    ]


@program
def parts_of_a_dense_axis(lib: Any) -> Any:
    s = lib.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    return s.index_select(1, lib.tensor([1, 1, 0])).to_dense(), s.index_select(0, lib.tensor([2, 1])).to_dense()


@program
def a_part_that_is_not_there(lib: Any) -> Any:
    return matrix(lib).index_select(0, lib.tensor([2]))


@program
def side_by_side(lib: Any) -> Any:
    return [with_gradient(lib, lambda s, d=d: lib.stack([s, s * 2, s], d)) for d in (0, 1, 2)]


@program
def without_entries(lib: Any) -> Any:
    s = matrix(lib)
    return s.zero_() is s, shown(s), s._nnz()


@program
def the_entries_of_another(lib: Any) -> Any:
    s, other = matrix(lib), lib.tensor([[0.0, 0.0, 5.0], [0.0, 0.0, 0.0]]).to_sparse()
    return s.copy_(other) is s, shown(s), other.clone().mul_(2)._nnz(), shown(other)


@program
def a_sum_into_a_sparse_tensor(lib: Any) -> Any:
    s, out = matrix(lib), matrix(lib)
    found = lib.add(s, s, alpha=2, out=out)
    return found is out, shown(out), shown(s)

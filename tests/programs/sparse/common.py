"""Sparse tensors that the programs share, and how they are shown: by their parts, and gradients at the nonzeros."""

from __future__ import annotations

import functools
from typing import Any

from tests.side_by_side import refused

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc")
FULL = ((0.0, 0.5, 0.0), (0.25, 0.0, -0.75), (0.0, 0.0, 0.125), (0.0, 0.0, 0.0))


def matrix(lib: Any, layout: str, grad: bool = False, rows: int = 4, dtype: str = "float64") -> Any:
    """A leaf with nonzeros, an empty row and an empty column, in a layout of this name."""
    dense = lib.tensor(FULL[:rows], dtype=getattr(lib, dtype))
    made = dense.to_sparse(layout=getattr(lib, layout)).detach()
    return made.requires_grad_() if grad else made


def repeated(lib: Any, grad: bool = False) -> Any:
    """A leaf in coordinate form with indices out of order, one of them twice."""
    made = lib.sparse_coo_tensor([[1, 0, 1, 2], [0, 2, 0, 1]], lib.tensor([0.5, 2.0, 0.25, -1.0]).double(), (3, 3))
    return made.requires_grad_() if grad else made


def layout_of(t: Any) -> str:
    """The name of a tensor's layout."""
    return str(t.layout).rpartition(".")[2]


def shown(t: Any) -> Any:
    """A tensor by its layout and parts; what is not sparse as it is."""
    name = layout_of(t)
    if name == "sparse_coo":
        return name, tuple(t.shape), t._indices(), t._values().detach()
    if name == "sparse_csr":
        return name, tuple(t.shape), t.crow_indices(), t.col_indices(), t.values().detach()
    if name == "sparse_csc":
        return name, tuple(t.shape), t.ccol_indices(), t.row_indices(), t.values().detach()
    return name, t.detach()


def summed(t: Any) -> Any:
    """A sparse tensor in any order of its entries: its layout and its elements."""
    return layout_of(t), (t.to_dense() if layout_of(t) != "strided" else t).detach()


def gradients(lib: Any, y: Any, *leaves: Any) -> list[Any]:
    """The gradients of a weighted sum of `y`: of sparse leaves at their nonzeros."""
    dense = y if layout_of(y) == "strided" else y.to_dense()
    weights = lib.arange(1, 1 + dense.numel(), dtype=dense.dtype).reshape(dense.shape)
    found: list[Any] = []
    for leaf, g in zip(leaves, lib.autograd.grad((dense * weights).sum(), leaves), strict=True):
        sparse = layout_of(leaf) != "strided"
        g = g if layout_of(g) == "strided" else g.to_dense()
        found.append(g[leaf.detach().to_dense() != 0] if sparse else g)
    return found


def refusals(lib: Any, make: Any, calls: dict[str, Any]) -> list[tuple[str, str]]:
    """What each call raises, given a tensor."""
    return [(name, refused(functools.partial(lambda f: f(lib, make(lib)), call))) for name, call in calls.items()]

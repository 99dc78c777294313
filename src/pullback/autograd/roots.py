"""The start of a backward pass: outputs and their gradients are checked, and edges lead to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..tensor.memory import Size, check_fit
from ..tensor.modes import CROSSINGS, LEVELS
from ..tensor.tensor import Edge, Lifted, Tensor, wrap
from .node import edge_of
from .saved import Details


class GradientEdge(NamedTuple):
    """An output of a node, as a place where a gradient is computed. `backward` and `grad` take it instead of a tensor.

    ownership_token: set by `get_gradient_edge`, which knows the tensor; without it a gradient must be given.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def edge_at(root: Any) -> Edge:
    """The edge to a tensor or of a `GradientEdge`; its shape and dtype are None if unknown."""
    if isinstance(root, GradientEdge):
        edge: Any = root.ownership_token or (root.node, root.output_nr, None, None)
        return edge
    return edge_of(root)


def root_gradient(i: int, tensor: Any, g: Any) -> Any:
    """The first gradient of a backward pass at `tensor`, the i-th output: `g`, or 1 for a scalar."""
    if not isinstance(tensor, GradientEdge):
        data = tensor._data
        if not tensor._requires_grad:
            do = "set requires_grad=True on a leaf it is computed from, and compute it outside no_grad()"
            if data.dtype.kind not in "fcV":
                do = f"compute it in floating point: a tensor of {data.dtype} has no gradient"
            why = Details.of_root(tensor) or f"  What to do: {do}."
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn.\n{why}")
    else:
        place: Any = edge_at(tensor)
        _, _, shape, dtype = place
        if shape is None:
            if not isinstance(g, Tensor):
                raise RuntimeError(f"element {i} of tensors is a GradientEdge: its gradient has to be given.")
            return g
        data = np.broadcast_to(np.empty((), dtype), shape)
    if g is None:
        if data.size != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs, but this one has shape {list(data.shape)}.\n"
                "  What to do: reduce it first, e.g. .sum().backward(), or pass a gradient of its shape."
            )
        if data.dtype.kind == "c":
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {data.dtype}.\n"
                "  What to do: pass the gradient, or take the real part or abs() first."
            )
        return np.ones_like(tensor.detach() if isinstance(tensor, Lifted) else data)
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g._data.shape != data.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
            f"{Size(data.shape)}."
        )
    if (g._data.dtype.kind == "c") != (data.dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
            f"dtype: grad_output[{i}] has a dtype of {g._data.dtype} and output[{i}] has a dtype of {data.dtype}."
        )
    if isinstance(tensor, Tensor):  # an edge has no values
        check_fit("gradient", tensor, g)
    return g


def as_sequence(value: Any, what: str, missing: bool = False) -> list[Any]:
    """A Tensor (or a GradientEdge) or a sequence of them, as a list. missing: None is allowed among them."""
    if value is None:
        raise TypeError(errors.message(what, expected="a Tensor or a sequence of them", found="None"))
    values = [value] if type(value) is Tensor or isinstance(value, (Tensor, GradientEdge)) else list(value)
    for v in values:
        if type(v) is Tensor:
            continue
        if not isinstance(v, (Tensor, GradientEdge)) and not (missing and v is None):
            raise TypeError(errors.message(what, expected="Tensors", found=type(v).__name__))
    return values


def of_levels(*tensors: Sequence[Any]) -> bool:
    """Whether a pass carries Tensors: one of these belongs to a transform, or what they were computed from may."""
    return LEVELS.n > 0 and (CROSSINGS.n > 0 or any(isinstance(t, Lifted) for ts in tensors for t in ts))


def make_roots(tensors: Sequence[Tensor], grads: Sequence[Any], taped: bool) -> list[tuple[Edge, Any]]:
    """Pair each output's edge with its gradient, checked."""
    errors.notice_foreign_functions()
    if len(tensors) != len(grads):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    checked = [root_gradient(i, t, g) for i, (t, g) in enumerate(zip(tensors, grads, strict=True))]
    if taped:
        checked = [g if isinstance(g, Tensor) else wrap(g) for g in checked]
    else:
        checked = [g._data if isinstance(g, Tensor) and g._in_array else g for g in checked]
    return [
        ((t.node, t.output_nr, g.shape, getattr(g, "_data", g).dtype) if isinstance(t, GradientEdge) else edge_at(t), g)
        for t, g in zip(tensors, checked, strict=True)
    ]

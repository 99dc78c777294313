"""Parameters as one vector, for optimisers and statistics that need one, and back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from ... import errors
from ...errors import describe, message
from ...ops.shape.joining import cat
from ...tensor.memory import check_fit
from ...tensor.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other, as a vector; differentiable.

    >>> import pullback
    >>> pullback.nn.utils.parameters_to_vector([pullback.zeros(2, 1), pullback.ones(1)])
    tensor([0., 0., 1.])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parameters_to_vector.html.
    """
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let each parameter share the memory of its part of `vec`, outside any graph: writes to one show in the other.

    RuntimeError if `vec` is shorter than all parameters together, or has another placement on ranks; TypeError if it is
    not a Tensor. Nothing has changed then.

    >>> import pullback
    >>> w = pullback.zeros(1, 2)
    >>> pullback.nn.utils.vector_to_parameters(pullback.tensor([3.0, 4.0]), [w])
    >>> w
    tensor([[3., 4.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.vector_to_parameters.html.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(message("vector_to_parameters()", expected="vec to be a Tensor", found=describe(vec)))
    given = list(parameters)
    needed = sum(p.numel() for p in given)
    if vec.ndim != 1 or vec.numel() < needed:
        raise RuntimeError(
            message("vector_to_parameters()", expected=f"a vector of {needed} elements", found=describe(vec))
        )
    ends = np.cumsum([0, *(p.numel() for p in given)]).tolist()
    parts = [vec.detach()[start:end] for start, end in itertools.pairwise(ends)]
    for p, part in zip(given, parts, strict=True):
        check_fit("data", p, part)
    for p, part in zip(given, parts, strict=True):
        p.data = part.reshape(p.shape)


errors.doors(globals(), "parameters_to_vector vector_to_parameters")

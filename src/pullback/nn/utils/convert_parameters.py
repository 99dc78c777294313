"""Parameters as one vector, for optimisers and statistics that need one, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ... import errors
from ...errors import describe, message
from ...ops.shape.joining import cat
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

    RuntimeError if `vec` is shorter than all parameters together, TypeError if it is not a Tensor; nothing has changed
    then.

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
    values, start = vec.detach(), 0
    for p in given:
        p.data = values[start : start + p.numel()].reshape(p.shape)
        start += p.numel()


errors.doors(globals(), "parameters_to_vector vector_to_parameters")

"""Clipping gradients, by their total norm or element by element, in place and outside any graph."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable, Iterator

import numpy as np

from ... import errors
from ...autograd.grad_mode import no_grad
from ...errors import describe, message
from ...ops.linalg.matrix_norms import vector_norm
from ...ops.shape.joining import stack
from ...ops.sparse.coo import SparseTensor
from ...table.writing import refuse_write
from ...tensor import dtypes
from ...tensor.tensor import Lifted, Tensor, wrap

Tensors = Tensor | Iterable[Tensor]


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients by ``min(1, max_norm / (norm + 1e-6))``, and return their norm before scaling.

    The norm is that of one vector with all elements of the gradients of `parameters`. Parameters without a gradient are
    left out.

    Args:
        norm_type: the p of the p-norm; may be ``inf``.
        error_if_nonfinite: raise RuntimeError, and change nothing, if the norm is infinite or NaN.
        foreach: accepted as in torch, without effect.

    >>> import pullback
    >>> w = pullback.zeros(2, requires_grad=True)
    >>> (w * pullback.tensor([3.0, 4.0])).sum().backward()
    >>> pullback.nn.utils.clip_grad_norm_(w, 1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html.
    """
    given = _several(parameters)
    if not given and isinstance(parameters, Iterator):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=errors.callers_level()
        )
    total = get_total_norm([p.grad for p in given if p.grad is not None], norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(given, max_norm, total, foreach)
    return total


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The p-norm, ``p = norm_type``, of one vector with all elements of `tensors`; 0 if there are no tensors.

    RuntimeError with `error_if_nonfinite` if it is infinite or NaN.
    """
    p = float(norm_type)
    given = _several(tensors)
    if any(isinstance(t, Lifted) for t in given):
        return _by_operations(given, p, error_if_nonfinite)
    payloads = [t._data for t in given]
    if not payloads:
        return wrap(np.zeros((), dtypes.default()))
    dtype = payloads[0].dtype
    for x in payloads:
        dtype = dtypes.promote(dtype, x.dtype)
    # in double precision: a sum of many squares soon overflows float16
    total = float(np.linalg.norm([_norm(x, p) for x in payloads], p))
    if error_if_nonfinite and not math.isfinite(total):
        raise _nonfinite(p)
    with np.errstate(over="ignore"):
        return wrap(np.asarray(total, dtypes.real_of(dtype)))


def _by_operations(tensors: list[Tensor], p: float, error_if_nonfinite: bool) -> Tensor:
    """The same for tensors of a transform, or with a placement: the operations know what follows from these."""
    advice = [do for t in tensors if (do := getattr(t._data, "to_clip", ""))]
    if 0 < len(advice) < len(tensors):
        raise RuntimeError(message("the norm of varying and of replicated gradients together", do=advice[0]))
    dtype = functools.reduce(dtypes.promote, [t._data.dtype for t in tensors])
    double = dtypes.BY_NUMPY[np.dtype(np.complex128 if dtype.kind == "c" else np.float64)]
    with no_grad():
        total = vector_norm(stack([vector_norm(t.to(double), p) for t in tensors]), p)
        if error_if_nonfinite and not total.isfinite():
            raise _nonfinite(p)
        return total.to(dtypes.BY_NUMPY[dtypes.real_of(dtype)])


def _nonfinite(p: float) -> RuntimeError:
    return RuntimeError(
        f"The total norm of order {p} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
        "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
    )


def _norm(x: np.ndarray, p: float) -> float:
    """The p-norm of the elements of an array."""
    if not x.size and p < 0:
        raise RuntimeError(f"the norm of order {p} of a tensor without elements is not defined")
    if not x.size:
        return 0.0
    return float(np.linalg.norm(x.ravel().astype(np.complex128 if x.dtype.kind == "c" else np.float64, copy=False), p))


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients of `parameters` by ``min(1, max_norm / (total_norm + 1e-6))``."""
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _to_be_written(parameters):
            grad.mul_(factor)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Bring every element of the gradients into [-clip_value, clip_value]; `foreach` has no effect.

    >>> import pullback
    >>> w = pullback.zeros(2, requires_grad=True)
    >>> (w * pullback.tensor([0.1, -4.0])).sum().backward()
    >>> pullback.nn.utils.clip_grad_value_(w, 0.5)
    >>> w.grad
    tensor([ 0.1000, -0.5000])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html.
    """
    limit = float(clip_value)
    with no_grad():
        grads = _to_be_written(parameters)
        for grad in grads:
            if isinstance(grad, SparseTensor) or grad._data.dtype.kind not in "fV":
                grad.clamp(-limit, limit)  # what clamp refuses it refuses before anything is written
        for grad in grads:
            grad.clamp_(-limit, limit)


def _to_be_written(parameters: Tensors) -> list[Tensor]:
    """The gradients of parameters; an error if one of them must not be written to, before any is."""
    grads = [p.grad for p in _several(parameters) if p.grad is not None]
    for grad in grads:
        refuse_write(grad)
    return grads


def _several(tensors: Tensors) -> list[Tensor]:
    """One tensor or several, as a list."""
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for t in given:
        if not isinstance(t, Tensor):
            raise TypeError(message("parameters", expected="a Tensor or several", found=describe(t)))
    return given


errors.doors(globals(), "clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm")

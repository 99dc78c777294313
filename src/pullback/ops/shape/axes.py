"""Axes in another order (transposes), and axes added to reach a given number. Most results are views."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by, moved
from ...table.entry import METHODS, composite, linear
from ...table.samples import A, S
from ...tensor.arrays import permuted, sizes, wrap_axis
from ...tensor.tensor import Tensor
from ..elementwise.complex import conj
from .reshape import many, reshape


def _permute_rule(g: Any, dims: Any) -> Any:
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d] = i
    return permuted(g, tuple(inverse))


def _check_permute(input: Tensor, dims: Any, *more: Any) -> Any:
    return input, sizes((dims, *more))


@linear(
    checks=_check_permute,
    batch=by(lambda full, dims: ((0, *moved(dims, full)),)),
    symbolic=lambda out, input, dims: np.transpose(input, tuple(dims)),
    input=_permute_rule,
    view=True,
    numpy={np.transpose: lambda a, axes=None: permute(a, axes if axes is not None else tuple(range(a.ndim))[::-1])},
    samples=lambda: [
        S(A(2, 3, 4), (2, 0, 1)),
        S(A(2, 3, 4), [0, -1, 1]),
        S(A(), ()),
        S(A(0, 2), (1, 0)),
        S(A(3, 2, layout="T"), (1, 0)),
        S(A(2, 3), dims=(1, 0)),
    ],
    refused=lambda: [S(A(2, 3), (0,)), S(A(2, 3), (0, 0)), S(A(2, 3), (0, 2)), S(A(2, 3), "x"), S([1.0], (0,))],
)
def permute(input: Any, dims: Any) -> Any:
    """The axes in the order `dims`; a view.

    >>> import pullback
    >>> pullback.zeros(2, 3, 4).permute(2, 0, 1).shape
    pullback.Size([4, 2, 3])
    """
    if len(dims) != input.ndim:
        raise RuntimeError(
            errors.message(
                "permute()", expected=f"one dim for each of the {input.ndim} dimensions", found=str(list(dims))
            )
        )
    axes = [wrap_axis(d, input.ndim) for d in dims]
    if len(set(axes)) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return input.transpose(axes)


_PAIRS = [
    S(A(2, 3, 4), 0, 2),
    S(A(2, 3, 4), -1, 1),
    S(A(2, 3), 0, 0),
    S(A(), 0, -1),
    S(A(0, 2), 0, 1),
]
_NO_PAIRS = [S(A(2, 3), 0, 2), S(A(2, 3), -3, 0), S(A(2, 3), 0), S(A(2, 3), "x", 0), S([1.0], 0, 0)]


def _both_moved(shape: Any, *dims: Any) -> tuple[Any, ...]:
    """vmap: all arguments are axes. Those of a 0-d tensor, 0 and -1, lead to the axis of the batch itself."""
    return tuple(wrap_axis(d, 1) if len(shape) == 1 else moved(d, shape) for d in dims)


@linear(
    view=True,
    batch=by(_both_moved),
    input=lambda g, dim0, dim1: g.swapaxes(dim0, dim1) if g.ndim else g,
    numpy={np.swapaxes: lambda a, axis1, axis2: transpose(a, axis1, axis2)},
    samples=lambda: [*_PAIRS, S(A(3, 2, layout="step"), dim0=0, dim1=1)],
    refused=_NO_PAIRS,
)
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Axes `dim0` and `dim1` exchanged; a view.

    >>> import pullback
    >>> pullback.transpose(pullback.tensor([[1, 2, 3]]), 0, 1)
    tensor([[1],
            [2],
            [3]])
    """
    first, second = wrap_axis(dim0, input.ndim), wrap_axis(dim1, input.ndim)
    return input.swapaxes(first, second) if input.ndim else input.reshape(())


@composite(view=True, samples=lambda: [*_PAIRS, S(A(2, 3), axis0=0, axis1=1)], refused=_NO_PAIRS)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`transpose` under NumPy's name."""
    return transpose(input, axis0, axis1)


@composite(view=True, samples=lambda: [*_PAIRS, S(A(2, 3), dim0=0, dim1=1)], refused=_NO_PAIRS)
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` under another name."""
    return transpose(input, dim0, dim1)


@composite(
    also="moveaxis",
    view=True,
    numpy={
        np.moveaxis: lambda a, source, destination: movedim(a, source, destination),
        np.rollaxis: lambda a, axis, start=0: _rollaxis(a, axis, start),
    },
    samples=lambda: [
        S(A(2, 3, 4), 0, 2),
        S(A(2, 3, 4), -1, 0),
        S(A(2, 3, 4), (0, 1), (1, 2)),
        S(A(2, 3, 4), [2, 0], [0, -1]),
        S(A(0, 2), 0, 1),
        S(A(), 0, 0),
        S(A(2, 3), source=0, destination=1),
    ],
    refused=lambda: [
        S(A(2, 3), 0, 2),
        S(A(2, 3), (0, 1), (0,)),
        S(A(2, 3), (0, 0), (0, 1)),
        S(A(2, 3), (0, 1), (0, 0)),
        S(A(2, 3), 0),
    ],
)
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Axes moved to new places, the others in their order; a view.

    >>> import pullback
    >>> pullback.movedim(pullback.zeros(2, 3, 4), 0, -1).shape
    pullback.Size([3, 4, 2])
    """
    n = input._data.ndim
    sources = [wrap_axis(s, n) for s in (source if isinstance(source, (tuple, list)) else (source,))]
    targets = [wrap_axis(d, n) for d in (destination if isinstance(destination, (tuple, list)) else (destination,))]
    if len(sources) != len(targets):
        raise RuntimeError(
            errors.message(
                "movedim: Invalid source or destination dims",
                expected="as many of the one as of the other",
                found=f"source {source} and destination {destination}",
            )
        )
    for name, axes in (("source", sources), ("destination", targets)):
        if len(set(axes)) < len(axes):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({tuple(axes)})")
    rest = iter(i for i in range(n) if i not in sources)
    return permute(input, tuple(sources[targets.index(i)] if i in targets else next(rest) for i in range(n)))


def _rollaxis(a: Tensor, axis: int, start: int = 0) -> Tensor:
    """numpy.rollaxis: `axis` moved until it lies before `start`."""
    axis, start = wrap_axis(axis, a.ndim), start + a.ndim if start < 0 else start
    return movedim(a, axis, start - 1 if axis < start else start)


def _t_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: the transpose of the axes after the batch axis."""
    (input,) = args
    if input._data.ndim > 2:
        raise _no_matrix(input._data.ndim)
    return transpose(level.value(input), 1, input._data.ndim) if input._data.ndim else level.value(input)


def _no_matrix(ndim: int) -> RuntimeError:
    return RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")


@linear(
    view=True,
    node="TBackward0",
    batch=_t_of_each,
    input=lambda g: g.swapaxes(0, 1) if g.ndim == 2 else g,
    samples=lambda: [S(A(2, 3)), S(A(3)), S(A()), S(A(0, 2)), S(A(3, 2, layout="T"))],
    refused=lambda: [S(A(1, 2, 3)), S([1.0])],
)
def t(input: Any) -> Any:
    """The transpose of a matrix; a vector or a 0-d tensor stays the same."""
    if input.ndim > 2:
        raise _no_matrix(input.ndim)
    return input.swapaxes(0, 1) if input.ndim == 2 else input.reshape(input.shape)


@composite(
    view=True,
    samples=lambda: [S(A(2, 3)), S(A(2, 3, 4)), S(A(0, 2)), S(A(3, 2, layout="T"))],
    refused=lambda: [S(A(3)), S([1.0])],
)
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix, or of each in a batch: the last two axes exchanged; a view if real.

    >>> import pullback
    >>> pullback.adjoint(pullback.tensor([[1.0, 2.0]]))
    tensor([[1.],
            [2.]])
    """
    found = _matrix_transposed(input, "adjoint()")
    return conj(found) if found._data.dtype.kind == "c" else found


def _transposed(self: Tensor) -> Tensor:
    """All axes in reverse order."""
    n = self._data.ndim
    if n == 2:
        return transpose(self, 0, 1)
    if n != 1:
        warnings.warn(
            f"T reverses all axes of a tensor, of which this has {n}; its use for other than matrices is deprecated. "
            "Write mT for batches of matrices, or permute(...) for the reverse of all axes.",
            stacklevel=errors.callers_level(),
        )
    return permute(self, tuple(range(n))[::-1])


def _matrix_transposed(self: Tensor, name: str = "mT") -> Tensor:
    """The last two axes exchanged; RuntimeError if there are fewer."""
    n = self._data.ndim
    if n == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if not n:
        _warn_of_identity(name)
    return transpose(self, -2, -1) if n else transpose(self, 0, 0)


def _warn_of_identity(name: str) -> None:
    warnings.warn(
        f"Tensor.{name} is deprecated on 0-D tensors, of which it is the identity, or the conjugate.",
        stacklevel=errors.callers_level(),
    )


def _conjugate_transposed(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self._data.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self._data.ndim}-D tensor.")
    return adjoint(self)


METHODS["T"] = property(_transposed)
METHODS["mT"] = property(_matrix_transposed)
METHODS["H"] = property(_conjugate_transposed)
METHODS["mH"] = property(lambda self: adjoint(self))


# At least 1, 2 or 3 axes --------------------------------------------------------------------------------------------

_FEW = [S(A()), S(A(2)), S(A(2, 3)), S(A(2, 3, 4)), S(A(0)), S(A(), A(2)), S([A(2), A()]), S((A(1, 2, 1, 1),))]
_NO_FEW = [S(1.0), S(A(2), 1.0), S("x")]


def each(name: str, tensors: tuple[Any, ...], change: Any) -> Any:
    """Apply `change` to one tensor, or to each of several; a tuple for several."""
    found = tuple(change(t) for t in many(name, tensors))
    return found[0] if len(tensors) == 1 and isinstance(tensors[0], (Tensor, np.ndarray)) else found


def to_1d(a: Tensor) -> Tensor:
    return a if a._data.ndim else reshape(a, (1,))


def to_2d(a: Tensor) -> Tensor:
    return a if a._data.ndim > 1 else reshape(a, (1, a._data.size))


def to_3d(a: Tensor) -> Tensor:
    shape = a._data.shape
    return a if len(shape) > 2 else reshape(a, (*shape, 1) if len(shape) == 2 else (1, a._data.size, 1))


@composite(
    method=False,
    view=True,
    numpy={np.atleast_1d: lambda *arys: atleast_1d(*arys)},
    samples=_FEW,
    refused=_NO_FEW,
)
def atleast_1d(*tensors: Any) -> Any:
    """The tensor; if it is 0-d, with one axis of length 1. A tuple for several tensors or a sequence of them."""
    return each("atleast_1d", tensors, to_1d)


@composite(
    method=False,
    view=True,
    numpy={np.atleast_2d: lambda *arys: atleast_2d(*arys)},
    samples=_FEW,
    refused=_NO_FEW,
)
def atleast_2d(*tensors: Any) -> Any:
    """The tensor with two axes or more, new ones in front. A tuple for several tensors or a sequence of them."""
    return each("atleast_2d", tensors, to_2d)


@composite(
    method=False,
    view=True,
    numpy={np.atleast_3d: lambda *arys: atleast_3d(*arys)},
    samples=_FEW,
    refused=_NO_FEW,
)
def atleast_3d(*tensors: Any) -> Any:
    """The tensor with three axes or more: new ones before and after a vector's axis, and after a matrix's axes."""
    return each("atleast_3d", tensors, to_3d)

"""SciPy's sparse matrices that are made of arrays alone: SciPy's own classes, whose operators take Tensors as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse

from ...tensor.tensor import Tensor
from .sparse_arrays import SparseArray, sparse

_OPERATORS = "matmul rmatmul mul rmul truediv add radd sub rsub"


class MeetsTensors:
    """What a class of SciPy's becomes: with a Tensor, an operator is that of a `SparseArray` of constants.

    >>> import numpy as np, pullback
    >>> from pullback.scipy.sparse import csr_array
    >>> a = csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
    >>> a @ np.ones(2), a @ pullback.ones(2), a.indptr
    (array([1., 5.]), tensor([1., 5.], dtype=pullback.float64), array([0, 1, 3], dtype=int32))
    """

    __array_ufunc__ = None  # NumPy's operators, and a Tensor's, leave the operation to those here

    # SciPy's own classes ask these for the class of a result
    _csr_container = property(lambda self: Csr)
    _csc_container = property(lambda self: Csc)
    _coo_container = property(lambda self: Coo)
    _dia_container = property(lambda self: Dia)
    _bsr_container = property(lambda self: Bsr)


def _operator(special: str) -> Callable[..., Any]:
    ours = getattr(SparseArray, special)

    def call(self: Any, other: Any) -> Any:
        if isinstance(other, (Tensor, SparseArray)):
            return ours(sparse("an operator", self), other)
        return getattr(super(MeetsTensors, self), special)(other)

    return call


for _name in _OPERATORS.split():
    setattr(MeetsTensors, f"__{_name}__", _operator(f"__{_name}__"))


class Csr(MeetsTensors, scipy.sparse.csr_array):
    """By rows."""


class Csc(MeetsTensors, scipy.sparse.csc_array):
    """By columns."""


class Coo(MeetsTensors, scipy.sparse.coo_array):
    """By coordinates."""


class Dia(MeetsTensors, scipy.sparse.dia_array):
    """By diagonals."""


class Bsr(MeetsTensors, scipy.sparse.bsr_array):
    """By blocks."""


_KINDS: dict[str, Any] = {"csr": Csr, "csc": Csc, "coo": Coo, "dia": Dia, "bsr": Bsr}


def of_arrays(found: Any) -> Any:
    """A matrix of SciPy's as one that meets Tensors; one whose elements are set one by one stays SciPy's."""
    kind = _KINDS.get(found.format)
    return found if kind is None else kind(found)


__all__ = ["MeetsTensors", "of_arrays"]

"""The vocabulary of rules about matrices, which are the last two axes; all axes before them are a batch.

Rules are written for one matrix and apply to the last axes, of an array or a Tensor: `adjoint` is the conjugate
transpose there, `scale_rows` a product with a diagonal matrix from the left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...table.operands import data_of
from ...tensor.adding import summed
from ...tensor.arrays import eye_beside


def is_complex(x: Any) -> bool:
    """Whether an array or a Tensor holds complex numbers."""
    return bool(data_of(x).dtype.kind == "c")


def conj(x: Any) -> Any:
    """The complex conjugate; real numbers are not copied."""
    return np.conj(x) if is_complex(x) else x


def transpose(x: Any) -> Any:
    """The last two axes exchanged."""
    return np.swapaxes(x, -1, -2)


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return conj(np.swapaxes(x, -1, -2))


def scale_rows(x: Any, factors: Any) -> Any:
    """``diag(factors) x``."""
    return np.multiply(x, np.expand_dims(factors, -1))


def scale_columns(x: Any, factors: Any) -> Any:
    """``x diag(factors)``."""
    return np.multiply(x, np.expand_dims(factors, -2))


def as_matrix(number: Any) -> Any:
    """One number for each matrix of a batch, with axes of length 1 that broadcast over the matrix."""
    return np.reshape(number, (*np.shape(number), 1, 1))


def identity(x: Any) -> Any:
    """A mask of the diagonal of the square matrices with the last axis of `x`."""
    return eye_beside(x, np.shape(x)[-1], dtype=np.bool_)


def diagonal_of(x: Any) -> Any:
    """The diagonal of square matrices, as vectors."""
    return summed(np.where(identity(x), x, 0), axis=-1)


def diagonal_matrix(v: Any) -> Any:
    """Square matrices with these diagonals, zeros elsewhere."""
    return np.where(identity(v), np.expand_dims(v, -1), 0)


def with_diagonal(x: Any, v: Any) -> Any:
    """Square matrices with their diagonals replaced."""
    return np.where(identity(x), np.expand_dims(v, -1), x)


def lower_half(x: Any) -> Any:
    """The lower triangle of square matrices, with half the diagonal."""
    return np.multiply(np.add(np.tril(x), np.tril(x, -1)), 0.5)

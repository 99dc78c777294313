"""Shared by the operations of linear algebra: checks of arguments, and the vocabulary of their rules.

Matrices are the last two axes, and all axes before them are a batch. Rules are written for one matrix and apply to the
last axes: `adjoint` is the conjugate transpose there, `scale_rows` a product with a diagonal matrix from the left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...tensor.adding import summed
from ...tensor.tensor import Tensor


def data_of(value: Any) -> Any:
    """The payload of a Tensor; an array itself."""
    return value._data if isinstance(value, Tensor) else value


def is_complex(x: Any) -> bool:
    """Whether an array or a Tensor holds complex numbers."""
    return bool(data_of(x).dtype.kind == "c")


# Checks ---------------------------------------------------------------------------------------------------------------


def check_floating(name: str, value: Any, what: str = "A", *, half: bool = False) -> None:
    """Refuse anything but a tensor of a floating point or complex dtype of LAPACK's or, with `half`, of 16 bits."""
    data = data_of(value)
    if not hasattr(data, "dtype"):
        raise TypeError(errors.message(f"{name}()", expected=f"{what} to be a Tensor", found=errors.describe(value)))
    if data.dtype.kind not in "fcV":
        raise NotImplementedError(
            errors.message(
                f"{name}()",
                expected=f"{what} to be a floating point or complex tensor",
                found=errors.describe(value),
                do="convert it first, e.g. A.float()",
            )
        )
    if data.dtype.itemsize < 4 and not half:
        raise NotImplementedError(
            errors.message(
                f"{name}()", expected=f"{what} of at least single precision", found=str(data.dtype), do="use A.float()"
            )
        )


def check_matrix(name: str, value: Any, what: str = "A", *, square: bool = False, half: bool = False) -> None:
    """`check_floating`, and refuse anything but a matrix or a stack of matrices, which are square if `square`."""
    check_floating(name, value, what, half=half)
    shape = data_of(value).shape
    if len(shape) < 2:
        raise RuntimeError(
            errors.message(
                f"{name}: The input tensor {what} must have at least 2 dimensions", found=f"shape {list(shape)}"
            )
        )
    if square and shape[-1] != shape[-2]:
        raise RuntimeError(
            errors.message(
                f"{name}: {what} must be batches of square matrices", found=f"{shape[-2]} by {shape[-1]} matrices"
            )
        )


def check_same_dtype(name: str, **values: Any) -> None:
    """Refuse tensors, given by name, of different dtypes."""
    dtypes = {which: data_of(value).dtype for which, value in values.items()}
    if len(set(dtypes.values())) > 1:
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="tensors of the same dtype",
                found=", ".join(f"{which} of {dtype}" for which, dtype in dtypes.items()),
                do="convert them with .to(dtype)",
            )
        )


def singular(name: str, info: Any) -> errors.LinAlgError:
    """The error for a singular matrix; `info` holds for each matrix of the batch its first zero pivot, or 0."""
    first = int(np.ravel(info)[np.flatnonzero(info)[0]]) if np.any(info) else 0
    which = f" (Batch element {int(np.flatnonzero(info)[0])})" if np.ndim(info) else ""
    return errors.LinAlgError(
        f"{name}{which}: The diagonal element {first} is zero, the inversion could not be completed: "
        "the input matrix is singular.\n"
        "  What to do: add a small multiple of the identity, or use linalg.lstsq or linalg.pinv."
    )


# Rules ----------------------------------------------------------------------------------------------------------------


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


def identity(n: int) -> np.ndarray[Any, Any]:
    """A mask of the diagonal of an n x n matrix."""
    return np.eye(n, dtype=np.bool_)


def diagonal_of(x: Any) -> Any:
    """The diagonal of square matrices, as vectors."""
    return summed(np.where(identity(np.shape(x)[-1]), x, 0), axis=-1)


def diagonal_matrix(v: Any) -> Any:
    """Square matrices with these diagonals, zeros elsewhere."""
    return np.where(identity(np.shape(v)[-1]), np.expand_dims(v, -1), 0)


def with_diagonal(x: Any, v: Any) -> Any:
    """Square matrices with their diagonals replaced."""
    return np.where(identity(np.shape(x)[-1]), np.expand_dims(v, -1), x)


def lower_half(x: Any) -> Any:
    """The lower triangle of square matrices, with half the diagonal."""
    return np.multiply(np.add(np.tril(x), np.tril(x, -1)), 0.5)

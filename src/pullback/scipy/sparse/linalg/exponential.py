"""`expm_multiply`: the exponential of a sparse matrix times a vector, as a recorded sum of products.

Its value is Taylor's polynomial of degree m in ``(A - mu I) t / s``, applied s times (Al-Mohy and Higham, Computing the
action of the matrix exponential, 2011). All steps are sparse products, so the derivative is exact for this polynomial,
with the gradient at the nonzeros alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import errors
from ....ops.shape.joining import stack
from ....tensor.tensor import Lifted, Tensor
from ...array_nodes import Array, array_of, floating
from ...mirror import mirrors
from ...user_functions import is_traced, plain_setting
from ..sparse_arrays import SparseArray, product, sparse

_DEGREES = {5: 0.0024, 10: 0.14, 15: 0.64, 20: 1.4, 25: 2.4, 30: 3.5, 35: 4.7, 40: 6.0, 45: 7.2, 50: 8.5, 55: 9.8}
"""The largest norm for which Taylor's polynomial of a degree is exact in float64 (their table 3.1, rounded down)."""


def _known(t: Tensor) -> Array:
    """The plain values behind a tensor, with the batches of transforms along further axes. ValuesError in a program."""
    if is_traced(t):
        array_of(t)
    while isinstance(t, Lifted):
        level, held = t._data.level, t._data.inside
        varies = getattr(level, "varies", None)
        t = level.value(t)[0] if held is None or (varies is not None and varies(t)) else held
    return np.asarray(t._data)


def _shift_and_norm(matrix: SparseArray, trace: Any) -> tuple[Any, float]:
    """The mean of the diagonal, and the 1-norm of the matrix without it; or a bound of that for a batch of values."""
    values, pattern, n = _known(matrix.data), matrix.pattern, matrix.shape[0]
    columns = pattern.indices[1]
    if values.shape != (pattern.nnz,):
        widest = np.bincount(columns, minlength=1).max(initial=0)
        return 0.0, float(widest * np.abs(values).max(initial=0.0))
    diagonal = pattern.indices[0] == columns
    shift = (values[diagonal].sum() if trace is None else trace) / max(n, 1)
    sums = np.bincount(columns, np.abs(np.where(diagonal, 0.0, values)), minlength=n)
    on_diagonal = np.full(n, -shift)
    np.add.at(on_diagonal, columns[diagonal], values[diagonal])
    return shift, float((sums + np.abs(on_diagonal)).max(initial=0.0))


def _step(matrix: SparseArray, b: Tensor, t: float, shift: Any, norm: float) -> Tensor:
    """``exp(t A) b``."""
    size = abs(t) * norm
    degree, steps = min(
        ((m, max(math.ceil(size / limit), 1)) for m, limit in _DEGREES.items()), key=lambda c: c[0] * c[1]
    )
    scale = np.exp(t * shift / steps)
    for _ in range(steps):
        term = total = b
        for j in range(1, degree + 1):
            term = (product(matrix.pattern, False, term, matrix.data) - shift * term) * (t / (steps * j))
            total = total + term
        b = total * scale
    return b


@mirrors(
    "sparse.linalg.expm_multiply",
    derivative="of the recorded Taylor polynomial; values' gradient at the nonzeros",
    limits="A is a matrix, no LinearOperator; times are constants; memory grows with the norm of A",
)
def expm_multiply(
    A: Any,
    B: Any,
    start: float | None = None,
    stop: float | None = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: Any = None,
) -> Tensor:
    """``exp(A) B``; with start, stop, num and endpoint ``exp(t A) B`` for these times, along a first axis.

    Args:
        A: a sparse or dense square matrix; its values may require grad.
        B: of shape ``(n,)`` or ``(n, k)``.
        start, stop, num, endpoint, traceA: SciPy's settings.

    >>> import pullback
    >>> from pullback.scipy.sparse import csr_array
    >>> from pullback.scipy.sparse.linalg import expm_multiply
    >>> data = pullback.tensor([1.0], requires_grad=True)
    >>> y = expm_multiply(csr_array((data, ([0], [1])), shape=(2, 2)), pullback.tensor([1.0, 2.0]))
    >>> y.sum().backward()
    >>> y.detach(), data.grad
    (tensor([3., 2.]), tensor([2.]))
    """
    matrix, right = sparse("expm_multiply", A), floating(B)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError("expected A to be like a square matrix")
    if right.dim() not in (1, 2) or matrix.shape[1] != right.shape[0]:
        raise ValueError(f"shapes of matrices A {matrix.shape} and B {tuple(right.shape)} are incompatible")
    start, stop, num, endpoint, trace = plain_setting(
        "expm_multiply", start=start, stop=stop, num=num, endpoint=endpoint, traceA=traceA
    )
    shift, norm = _shift_and_norm(matrix, trace)
    if not np.isfinite(norm):
        raise ValueError(errors.message("expm_multiply: A", expected="finite values", found="infinities or NaN"))
    if all(v is None for v in (start, stop, num, endpoint)):
        return _step(matrix, right, 1.0, shift, norm)
    known: dict[str, Any] = {"num": num, "endpoint": endpoint}
    times: Array = np.linspace(start, stop, **{k: v for k, v in known.items() if v is not None})
    found, before = [], 0.0
    for t in times:
        right = _step(matrix, right, float(t) - before, shift, norm)
        before = float(t)
        found.append(right)
    return stack(found)


__all__ = ["expm_multiply"]

"""Distances between points, the rows of matrices: `cdist` between two collections, `pdist` within one.

Differences are computed block by block, to hold few of them at once. Euclidean distances between many points need none:
they come from products, ``|x - y|^2 = |x|^2 - 2 x y + |y|^2``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import composite, linear, special
from ...table.operands import plain
from ...table.samples import A, Differs, S, Sample, V, inf
from ...tensor import adding
from ...tensor.adding import summed
from ...tensor.tensor import Tensor
from ..shape.joining import cat

_AT_ONCE = 1 << 18  # about this many differences are held at once
_MANY = 25  # by default, more points than this use products, as in torch
_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@linear(
    method=False,
    batch="leading",
    x1=lambda g: _in_rows("...jm->...m", g, -2),
    x2=lambda g: np.negative(_in_rows("...ijm->...jm", g, -3)),
)
def _differences(x1: Any, x2: Any) -> Any:
    """The differences of every row of `x1` and every row of `x2`."""
    return np.subtract(x1[..., :, None, :], x2[..., None, :, :])


def _length_rule(g: Any, input: Any, out: Any, p: float) -> Any:
    # d|x| = sgn(x_i) (|x_i| / |x|)^(p-1), and 0 where either is 0; for p = inf, each largest element gets all of g
    if p == 0:
        return np.zeros_like(input)
    g, total = np.expand_dims(g, -1), np.expand_dims(out, -1)
    if p == 2:
        zero = np.equal(plain(total), 0)
        return np.multiply(np.where(zero, 0, np.true_divide(g, np.where(zero, 1, total))), input)
    sign = np.sign(plain(input))
    size = np.multiply(input, sign)
    if p == 1:  # of NaN it is NaN, where np.sign of a Tensor is 0
        return np.multiply(g, np.where(np.isnan(plain(size)), plain(size), sign))
    if p == inf:
        return np.where(np.equal(plain(size), plain(total)), np.multiply(g, sign), 0)
    zero = np.logical_or(np.equal(plain(size), 0), np.equal(plain(total), 0))
    share = np.true_divide(np.where(zero, 1, size), np.where(zero, 1, total))
    return np.where(zero, 0, np.multiply(np.multiply(g, sign), np.power(share, p - 1)))


@special(method=False, batch="leading", input=_length_rule)
def _length(input: Any, p: float) -> Any:
    """The p-norm over the last axis; where it has no gradient, it gets torch's gradient of distances."""
    if p == 2:
        return np.sqrt(_in_rows("...i->...", np.square(input), -1))
    size = np.abs(input)
    if p == inf:
        return size.max(-1, initial=0)
    if p in (0, 1):
        return _in_rows("...i->...", size if p else (size != 0).astype(size.dtype), -1)
    return np.power(_in_rows("...i->...", np.power(size, p), -1), 1 / p)


def _in_rows(spelled: str, x: Any, axis: int) -> Any:
    """The sum over an axis; over a short one as einsum spells it, which is several times faster there."""
    return np.einsum(spelled, x) if np.shape(x)[axis] <= adding.FEW else summed(x, axis)


def _pulled(g: Any, x: Any, y: Any, out: Any) -> Any:
    """``sum_j g_ij (x_i - y_j) / d_ij``, without the points at distance 0."""
    zero = np.equal(plain(out), 0)
    share = np.where(zero, 0, np.true_divide(g, np.where(zero, 1, out)))
    total = summed(share, axis=-1, keepdims=True)
    return np.subtract(np.multiply(total, x), np.matmul(share, y))


@special(
    method=False,
    batch="leading",
    x1=lambda g, x1, x2, out: _pulled(g, x1, x2, out),
    x2=lambda g, x1, x2, out: _pulled(np.swapaxes(g, -1, -2), x2, x1, np.swapaxes(out, -1, -2)),
)
def _euclidean_by_products(x1: Any, x2: Any) -> Any:
    squares = [summed(np.square(x), -1) for x in (x1, x2)]
    found = squares[0][..., :, None] + squares[1][..., None, :]
    found -= 2 * np.matmul(x1, np.swapaxes(x2, -1, -2))
    return np.sqrt(np.maximum(found, 0))


def _check_points(name: str, value: Any, which: str, p: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(errors.message(f"{name}()", expected=f"{which} to be a Tensor", found=errors.describe(value)))
    if value._data.dtype.kind not in "fV":
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"{which} to be a floating point tensor", found=errors.describe(value))
        )
    if not isinstance(p, (int, float)) or not p >= 0:
        raise (RuntimeError if isinstance(p, (int, float)) else TypeError)(
            errors.message(f"{name} only supports non-negative p values", expected="a number", found=repr(p))
        )


def _cdist_samples() -> list[Sample]:
    orders = (0, 0.5, 1, 1.5, 2, 3, inf)
    return [
        *(S(A(3, 2), A(4, 2), p) for p in orders),
        *(S(A(2, 3, 2), A(2, 2, 2), p=p) for p in orders),
        S(A(3, 2), A(4, 2)),
        S(A(2, 1, 3, 2), A(4, 5, 2)),
        S(A(2, 3, 2), A(5, 2), 3.0),
        *(S(A(3, 2), A(4, 2), compute_mode=mode) for mode in _MODES),
        S(A(2, 3, 2), A(4, 2), compute_mode=_MODES[1]),
        S(A(30, 2), A(2, 2)),
        S(A(0, 2), A(3, 2)),
        S(A(2, 2), A(0, 2), 1),
        S(A(2, 0), A(3, 0)),
        S(A(1, 1), A(1, 1)),
        S(A(3, 2, layout="T"), x2=A(3, 2, layout="step")),
    ]


@composite(
    out=False,
    method=False,
    samples=_cdist_samples,
    kinks=lambda: [
        *(
            S(V([[0.0, 0.0], [1.0, 1.0], [3.0, -3.0]]), V([[0.0, 0.0], [1.0, 2.0], [1.0, 0.0]]), p)
            for p in (0, 0.5, 1, 1.5, 2, 3, inf)
        ),
        S(V([[0.0, 0.0], [1.0, 1.0]]), V([[0.0, 0.0], [1.0, 1.0]]), compute_mode=_MODES[1]),
    ],
    refused=lambda: [
        S(A(2, 1), A(3, 2)),
        S(A(2), A(3, 2)),
        S(A(3, 2), A(2)),
        S(A(2, 2), A(3, 2), -1),
        S(A(2, 2), A(3, 2), "x"),
        S(A(2, 2), A(3, 2), compute_mode="x"),
        S(A(2, 2), A(3, 2, dtype="float64")),
        S(A(2, 2, dtype="int64"), A(3, 2, dtype="int64")),
        S(A(2, 3, 2), A(3, 3, 2)),
        S(A(2, 2), 1.0),
        S(A(2, 2)),
    ],
    differs=[Differs("torch has no second derivative of distances", "second")],
)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Tensor:
    """The p-norms of the differences of every row of `x1` and every row of `x2`, p >= 0; batches broadcast.

    compute_mode: whether Euclidean distances come from products, which loses half the digits of small ones; the default
    uses products for more than 25 points. The gradient is 0 between equal points, and in a coordinate they share.

    >>> import pullback
    >>> pullback.cdist(pullback.zeros(1, 2), pullback.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    _check_points("cdist", x1, "x1", p)
    _check_points("cdist", x2, "x2", p)
    if compute_mode not in _MODES:
        raise ValueError(errors.message("cdist()", expected=f"compute_mode in {_MODES}", found=repr(compute_mode)))
    a, b = x1._data.shape, x2._data.shape
    wrong = ""
    if min(len(a), len(b)) < 2:
        wrong = f"cdist only supports at least 2D tensors, X{1 if len(a) < 2 else 2} got: {min(len(a), len(b))}D"
    elif a[-1] != b[-1]:
        wrong = "X1 and X2 must have the same number of columns"
    elif x1._data.dtype != x2._data.dtype:
        wrong = "cdist(): X1 and X2 must have the same dtype"
    if wrong:
        raise RuntimeError(errors.message(wrong, found=f"{errors.describe(x1)} and {errors.describe(x2)}"))
    problem = errors.broadcast_message([a[:-2], b[:-2]])
    if problem:
        raise RuntimeError(f"cdist(): {problem}.")
    many = max(a[-2], b[-2]) > _MANY
    if p == 2 and (compute_mode == _MODES[1] or (many and compute_mode == _MODES[0])):
        return _euclidean_by_products(x1, x2)
    pairs = np.prod(np.broadcast_shapes(a[:-2], b[:-2]), dtype=np.int64) * b[-2] * b[-1]
    step = max(1, _AT_ONCE // max(int(pairs), 1))
    starts = range(0, a[-2], step) if a[-2] > step else range(1)
    parts = [_length(_differences(x1[..., i : i + step, :], x2), p) for i in starts]
    return parts[0] if len(parts) == 1 else cat(parts, -2)


@composite(
    home="nn.functional",
    also="pdist",
    samples=lambda: [
        *(S(A(4, 2), p) for p in (0, 0.5, 1, 1.5, 2, 3, inf)),
        S(A(3, 3)),
        S(A(1, 2)),
        S(A(3, 0)),
        S(A(2, 1), p=1.0),
        S(A(3, 2, layout="T")),
        S(A(3, 2, layout="readonly"), 2),
    ],
    kinks=lambda: [S(V([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [3.0, -3.0]]), p) for p in (0, 0.5, 1, 1.5, 2, 3, inf)],
    refused=[S(A(3, 2, 2)), S(A(3)), S(A(3, 2), -1), S(A(3, 2), "x"), S(A(3, 2, dtype="int64")), S([[1.0]]), S()],
    differs=[Differs("torch has no second derivative of distances", "second")],
)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order 0-1, 0-2, ..., 1-2, ...; otherwise as `cdist`.

    >>> import pullback
    >>> pullback.nn.functional.pdist(pullback.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    _check_points("pdist", input, "input", p)
    if input._data.ndim != 2:
        raise RuntimeError(errors.message("pdist()", expected="a 2-D tensor", found=errors.describe(input)))
    n = input._data.shape[0]
    step = max(1, _AT_ONCE // max(input._data.size, 1))
    parts = []
    for i in range(0, max(n, 1), step):  # a block of points, with all points from its first on
        several = _length(_differences(input[i : i + step], input[i:]), p)
        parts.append(several[np.triu_indices(several._data.shape[0], 1, n - i)])
    return parts[0] if len(parts) == 1 else cat(parts, 0)

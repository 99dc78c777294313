"""Functions of matrices, chains of products, diagonals, products of vectors and Vandermonde matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...kernels import matrices as kernels
from ...table.calls import on
from ...table.entry import bilinear, composite, special
from ...table.operands import Operation, check_floating, check_matrix, check_same_dtype
from ...table.samples import A as M
from ...table.samples import Differs, S, V
from ...tensor.arrays import beside, eye_beside, full_beside, wrap_axis
from ...tensor.tensor import Tensor, wrap
from ..index import diagonals
from ..make.conversion import alike
from ..products.contractions import contract
from ..products.matmul import matmul
from ..shape.joining import cat
from ..shape.reshape import clone
from .last_axes import transpose
from .solving import NO_SQUARE, inv, squares

# Powers and exponentials ----------------------------------------------------------------------------------------------


@composite(
    contiguous=True,
    home="linalg",
    numpy={np.linalg.matrix_power: lambda a, n: matrix_power(a, n)},
    samples=lambda: [
        *(S(M(3, 3, domain="regular"), n) for n in (0, 1, 2, 3, 5, 6, -1, -3)),
        *(S(M(2, 2, 2, domain="regular"), n) for n in (0, 1, 4, -2)),
        S(M(0, 0), 2),
        S(M(0, 2, 2), -1),
        S(M(2, 2, layout="T"), n=2),
    ],
    refused=[
        S(M(2, 3), 2),
        S(M(3), 2),
        S(M(2, 2), 1.5),
        S(M(2, 2)),
        S([[1.0]], 2),
        S(M(2, 2, dtype="int64"), -1),
        S(V([[1.0, 2.0], [2.0, 4.0]]), -1),
    ],
    differs=[
        Differs("torch has no kernel for bool; the operation is defined all the same, with True as 1", "values", "bool")
    ],
)
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The product of n factors A, by squaring; of ``-n`` inverses if n is negative; the identity if it is 0.

    >>> import pullback
    >>> pullback.linalg.matrix_power(pullback.tensor([[1.0, 1.0], [0.0, 1.0]]), 10)
    tensor([[ 1., 10.],
            [ 0.,  1.]])
    """
    if not isinstance(n, int):
        raise TypeError(errors.message("linalg.matrix_power()", expected="n to be an int", found=errors.describe(n)))
    shape = A._data.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise RuntimeError(
            errors.message("linalg.matrix_power: A must be batches of square matrices", found=errors.describe(A))
        )
    if n == 0:  # a constant, but connected to A in the graph
        one: Any = np.where(wrap(beside(A, np.asarray(True))), eye_beside(A, shape[-1]), A)
        return one
    base, n = (inv(A), -n) if n < 0 else (A, n)
    found: Any = None
    while True:
        if n % 2:
            found = base if found is None else matmul(found, base)
        n //= 2
        if not n:
            result: Tensor = found.clone() if found is A else found
            return result
        base = matmul(base, base)


def _directional(A: Any, e: Any) -> Any:
    """The derivative at A in the direction e: the upper right block of the exponential of ``[[A, e], [0, A]]``.

    Higham, Functions of Matrices, 2008, theorem 3.6.
    """
    n = np.shape(A)[-1]
    upper = np.concatenate([A, e], axis=-1)
    lower = np.concatenate([np.zeros_like(A), A], axis=-1)
    return on(matrix_exp, np.concatenate([upper, lower], axis=-2))[..., :n, n:]


def _exponential_rule(g: Any, A: Any) -> Any:
    return _directional(transpose(A), g)  # the adjoint is the same map of the transpose


@special(
    out=False,
    home="linalg",
    also="matrix_exp",
    method=True,
    batch="matrices",
    A=_exponential_rule,
    jvp=lambda tangents, A: _directional(A, tangents[0]),
    samples=lambda: [*squares(), S(M(3, 3, domain="small")), S(M(2, 2, domain="upper"))],
    refused=NO_SQUARE,
)
def matrix_exp(A: Any) -> Any:
    """The exponential of square matrices, ``I + A + A A / 2 + ...``; by scaling and squaring.

    >>> import pullback
    >>> pullback.linalg.matrix_exp(pullback.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    check_matrix("linalg.matrix_exp", A, square=True, half=True)
    if A.dtype.char == "e":
        return kernels.exponential(A.astype(np.float32)).astype(A.dtype)
    return kernels.exponential(A)


# Chains of products ---------------------------------------------------------------------------------------------------


def _cheapest(sizes: list[int]) -> dict[tuple[int, int], int]:
    """The place to split each part of a chain of matrices for the fewest multiplications.

    `sizes`: the rows of each matrix, then the columns of the last (Cormen et al., Introduction to Algorithms, 15.2).
    """
    n = len(sizes) - 1
    cost, where = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            total = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            where[i, j] = min(total, key=lambda k: total[k])
            cost[i, j] = total[where[i, j]]
    return where


def _chain(tensors: list[Tensor], where: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return tensors[i]
    k = where[i, j]
    return matmul(_chain(tensors, where, i, k), _chain(tensors, where, k + 1, j))


def _check_chain(tensors: list[Any]) -> None:
    for i, t in enumerate(tensors):
        inside = 0 < i < len(tensors) - 1
        where = f"tensor {i}" if inside else "the last tensor" if i else "the first tensor"
        if not isinstance(t, Tensor) or not (t._data.ndim == 2 or (t._data.ndim == 1 and not inside)):
            raise (RuntimeError if isinstance(t, Tensor) else TypeError)(
                errors.message(
                    f"linalg.multi_dot(): {where} must be {'' if inside else '1D or '}2D", found=errors.describe(t)
                )
            )
    check_same_dtype("linalg.multi_dot", **{f"tensor {i}": t for i, t in enumerate(tensors)})


@composite(
    home="linalg",
    numpy={np.linalg.multi_dot: lambda arrays: multi_dot(alike(*arrays))},
    samples=lambda: [
        S([M(2, 3), M(3, 4)]),
        S((M(2, 3), M(3, 4), M(4, 2))),
        S([M(4, 2), M(2, 3), M(3, 1), M(1, 5)]),
        S([M(3), M(3, 2)]),
        S([M(2, 3), M(3)]),
        S([M(3), M(3)]),
        S([M(3), M(3, 2), M(2)]),
        S([M(2, 0), M(0, 3), M(3, 2)]),
    ],
    refused=lambda: [
        S([M(2, 3)]),
        S([]),
        S(M(2, 2, 2)),
        S([M(3), M(3), M(3)]),
        S([M(3, 3), M(3, 3, 3), M(3)]),
        S([M(3, 3), M(2, 3)]),
        S([M(3, 3), M(3, 3, dtype="int64"), M(3)]),
        S([M(3, 3), 1.0]),
    ],
    differs=[
        Differs("torch has no kernel for bool; the operation is defined all the same, with True as 1", "values", "bool")
    ],
)
def multi_dot(tensors: Any) -> Tensor:
    """The product of two or more matrices, in the cheapest order; the first and the last may be vectors."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            errors.message("linalg.multi_dot()", expected="a list of Tensors", found=errors.describe(tensors))
        )
    if len(tensors) < 2:
        raise RuntimeError(errors.message("linalg.multi_dot()", expected="at least 2 tensors", found=str(len(tensors))))
    chain = list(tensors)
    _check_chain(chain)
    sizes = [t._data.shape[-1 if t._data.ndim == 1 else 0] for t in chain]
    sizes[0] = chain[0]._data.shape[0] if chain[0]._data.ndim == 2 else 1
    sizes.append(chain[-1]._data.shape[1] if chain[-1]._data.ndim == 2 else 1)
    return _chain(chain, _cheapest(sizes), 0, len(chain) - 1)


@composite(
    method=False,
    samples=lambda: [S(M(2, 3), M(3, 4)), S(M(2, 3)), S(M(4, 2), M(2, 3), M(3, 1), M(1, 5))],
    refused=lambda: [S(), S(M(3), M(3, 2)), S([M(2, 3), M(3, 2)]), S(M(2, 3), 1.0), S(M(2, 3), M(2, 3))],
    differs=[
        Differs("torch has no kernel for bool; the operation is defined all the same, with True as 1", "values", "bool")
    ],
)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices, in the cheapest order; the older form of `linalg.multi_dot`."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices.")
    for t in matrices:
        if not isinstance(t, Tensor):
            raise TypeError(errors.message("chain_matmul()", expected="Tensors", found=errors.describe(t)))
        if t._data.ndim != 2:
            raise RuntimeError(f"chain_matmul(): Tensor dimension is {t._data.ndim}, expected 2 instead.")
    return clone(matrices[0]) if len(matrices) == 1 else multi_dot(matrices)


# Diagonals ------------------------------------------------------------------------------------------------------------


@composite(
    out=False,
    home="linalg",
    narrow="",
    numpy={
        np.linalg.diagonal: lambda x, *, offset=0: diagonal(x, offset=offset),
        np.linalg.matrix_transpose: transpose,
    },
    samples=lambda: [
        *(S(M(3, 2), offset=n) for n in (0, 1, -1, -2, 2, -3)),
        S(M(2, 3)),
        S(M(2, 3, 4)),
        S(M(2, 3, 4), dim1=0, dim2=1),
        S(M(2, 3, 4), offset=1, dim1=2, dim2=0),
        S(M(0, 2)),
        S(M(2, 0, 3)),
        S(M(3, 2, layout="T")),
        S(M(3, 2, layout="step"), offset=-1),
    ],
    refused=[S(M(2)), S(M(2, 2), dim1=0, dim2=0), S(M(2, 2), dim1=2), S(M(2, 2), 1), S([[1.0]])],
)
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, `offset` above the main one, as the last axis; a view, like `pullback.diagonal`."""
    return diagonals.diagonal(A, offset, dim1, dim2)


# Of vectors -----------------------------------------------------------------------------------------------------------


@bilinear(
    method=False,
    node="LinalgCrossBackward0",
    batch="leading",
    input=lambda g, other, dim: on(_cross, other, g, dim),
    other=lambda g, input, dim: on(_cross, g, input, dim),
)
def _cross(input: Any, other: Any, dim: int) -> Any:
    """The cross product along an axis counted from the end."""
    with np.errstate(all="ignore"):
        return np.cross(input, other, axis=dim)


def cross_product(name: str, input: Any, other: Any, dim: Any) -> Tensor:
    """The cross product along `dim`, or along the first axis of length 3 if `dim` is None."""
    for value in (input, other):
        if not isinstance(value, Tensor):
            raise TypeError(errors.message(f"{name}()", expected="two Tensors", found=errors.describe(value)))
        if value._data.dtype.kind == "b":
            raise NotImplementedError(errors.message(f"{name}()", expected="numbers", found=errors.describe(value)))
    check_same_dtype(name, input=input, other=other)
    a, b = input._data.shape, other._data.shape
    if len(a) != len(b):
        raise RuntimeError(
            errors.message(f"{name}()", expected="inputs of as many dimensions", found=f"{len(a)} and {len(b)}")
        )
    if dim is None:
        dim = next((i for i, (m, n) in enumerate(zip(a, b, strict=True)) if m == n == 3), None)
        if dim is None:
            raise RuntimeError(errors.message(f"{name}()", expected="a dimension of size 3", found=f"{list(a)}"))
    axis = wrap_axis(dim, len(a))
    if not a or a[axis] != 3 or b[axis] != 3:
        raise RuntimeError(
            errors.message(
                f"{name}()", expected=f"inputs of length 3 in dimension {dim}", found=f"{list(a)}, {list(b)}"
            )
        )
    return _cross(input, other, axis - len(a))


def _numpy_cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = (np.moveaxis(x, at, -1) for x, at in ((a, axisa), (b, axisb)))
    return np.moveaxis(_cross(*alike(a, b), -1), -1, axisc)


@composite(
    home="linalg",
    numpy={np.cross: _numpy_cross, np.linalg.cross: lambda x1, x2, *, axis=-1: _numpy_cross(x1, x2, axis=axis)},
    samples=lambda: [
        S(M(3), M(3)),
        S(M(2, 3), M(2, 3)),
        S(M(3, 2), M(3, 2), dim=0),
        S(M(2, 3, 2), M(2, 3, 2), dim=-2),
        S(M(1, 3), M(2, 3)),
        S(M(2, 1, 3), M(1, 2, 3)),
        S(M(0, 3), M(0, 3)),
        S(M(3, 3, layout="T"), M(3, 3, layout="step")),
    ],
    refused=lambda: [
        S(M(2), M(2)),
        S(M(3), M(2, 3)),
        S(M(3, 2), M(3, 2)),
        S(M(3), M(3, dtype="int64")),
        S(M(3), 1.0),
        S(M(3), M(3), dim=1),
        S(M(2, 3), M(4, 3)),
        S(M(3), M(3), 0),
    ],
)
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of length 3 along `dim`; other axes broadcast. ``dc = da x b + a x db``.

    >>> import pullback
    >>> pullback.linalg.cross(pullback.tensor([1.0, 0.0, 0.0]), pullback.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return cross_product("linalg.cross", input, other, dim)


def _dotted(x: Any, y: Any, dim: int) -> Tensor:
    """The sum of products along an axis counted from the end; other axes broadcast."""
    terms = [tuple(range(-t._data.ndim, 0)) for t in (x, y)]
    return contract(terms, [x, y], tuple(n for n in max(terms, key=len) if n != dim))


def _numpy_vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    given: list[Any] = alike(x1, x2)
    a, b = (np.moveaxis(x, axis, -1) for x in given)
    return _dotted(np.conj(a), b, -1)


_SINCE_NUMPY_2_2: dict[Any, Callable[..., Any]] = (
    {
        np.matvec: lambda x1, x2: np.squeeze(np.matmul(x1, np.expand_dims(x2, -1)), -1),
        np.vecmat: lambda x1, x2: np.squeeze(np.matmul(np.expand_dims(np.conj(x1), -2), x2), -2),
    }
    if hasattr(np, "matvec")
    else {}
)


@composite(
    home="linalg",
    numpy={
        np.vecdot: _numpy_vecdot,
        np.linalg.vecdot: lambda x1, x2, *, axis=-1: _numpy_vecdot(x1, x2, axis),
        **_SINCE_NUMPY_2_2,
    },
    samples=lambda: [
        S(M(3), M(3)),
        S(M(2, 3), M(3)),
        S(M(2, 3), M(2, 3), dim=0),
        S(M(2, 3), M(2, 1), dim=0),
        S(M(2, 1, 3), M(4, 3)),
        S(M(2, 3), M(2, 1)),
        S(M(0, 3), M(0, 3)),
        S(M(2, 0), M(2, 0)),
        S(M(), M()),
        S(M(3, 2, layout="T"), y=M(3, 2, layout="step")),
    ],
    refused=lambda: [
        S(M(3), M(2)),
        S(M(3), M(3, dtype="int64")),
        S(M(3, dtype="int64"), M(3, dtype="int64")),
        S(M(3), 1.0),
        S(M(3), M(3), 0),
    ],
)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """``sum(conj(x) * y)`` along `dim`; other axes broadcast."""
    check_floating("linalg.vecdot", x, "x", half=True)
    check_floating("linalg.vecdot", y, "y", half=True)
    check_same_dtype("linalg.vecdot", x=x, y=y)
    ndim = max(x._data.ndim, y._data.ndim)
    if not ndim:
        found: Any = np.conj(x) * y
        return found
    return _dotted(np.conj(x), y, wrap_axis(dim, ndim) - ndim)


@composite(
    out=False,
    home="linalg",
    samples=lambda: [S(M(3)), S(M(3), N=5), S(M(2, 3), N=2), S(M(1), N=2), S(M(2, 2), N=3), S(M(3, 2, layout="T"))],
    refused=[S(M()), S(M(2), N=0), S(M(2), N=1), S(M(2), 3), S([1.0]), S(M(1)), S(M(2, dtype="bool"))],
)
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Vandermonde matrices: a row for each element, with its powers 0 to N - 1. N: by default the number of elements.

    >>> import pullback
    >>> pullback.linalg.vander(pullback.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    shape = x._data.shape
    count = (shape[-1] if shape else 1) if N is None else N
    if x._data.dtype.kind == "b" or count <= 1:
        raise RuntimeError(
            errors.message(
                "linalg.vander()",
                expected="numbers, and N greater than 1",
                found=f"{errors.describe(x)}, N = {count}",
            )
        )
    powers = x.unsqueeze(-1).expand(*shape, count - 1).cumprod(-1)
    return cat([np.ones_like(powers[..., :1]), powers], -1)


def _older_vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: a row for each element, with its N powers from the highest to the 0th.

    N: by default the number of elements. increasing: from the 0th to the highest, as in `linalg.vander`.

    >>> import pullback
    >>> pullback.vander(pullback.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    shape = x._data.shape
    count = (shape[0] if shape else 1) if N is None else N
    if len(shape) != 1 or count < 0:
        raise RuntimeError(
            errors.message(
                "vander()", expected="a vector, and N of at least 0", found=f"{errors.describe(x)}, N = {count}"
            )
        )
    powers = x.unsqueeze(-1).expand(shape[0], max(count - 1, 0)).cumprod(-1)
    found = cat([wrap(full_beside(powers, (shape[0], min(count, 1)), 1)), powers], -1)
    return found if increasing else found.flip(-1)


_older_vander.__name__ = "vander"
older_vander: Operation = composite(
    out=False,
    method=False,
    numpy={np.vander: lambda x, N=None, increasing=False: older_vander(x, N, increasing)},
    samples=lambda: [
        *(S(M(3), N) for N in (None, 0, 1, 2, 5)),
        S(M(2), 4, True),
        S(M(3, layout="step"), N=3, increasing=False),
        S(M(1)),
        S(M(0)),
        S(M(0), 3),
    ],
    refused=[S(M()), S(M(2, 2)), S(M(2), -1), S(M(2), "2"), S([1.0])],
    differs=[
        Differs("torch overwrites a value that it saved, and then has no gradient", check)
        for check in ("gradients", "second")
    ],
)(_older_vander)

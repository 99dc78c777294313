"""Products of matrices and vectors. Each is linear in both operands, so an entry is the product and its two adjoints;
the other products use the entries of `matmul`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...kept_gradients import left
from ...table.calls import apply
from ...table.entry import bilinear, composite, method, titled
from ...table.operands import number_of
from ...table.samples import A, Differs, S, Sample, V, nan
from ...tensor import dtypes
from ...tensor.arrays import beside, broadcasts_to
from ...tensor.tensor import Tensor, wrap
from ..elementwise.arithmetic import times
from ..elementwise.limits import where
from ..make.conversion import alike, to

_NO_BOOL = [
    Differs("torch has no kernel for bool; the operation is defined all the same, with True as 1", "values", "bool")
]


def _as_matrices(g: Any, left: int, right: int) -> Any:
    """The cotangent of a product, with the axes restored that the product lacks because an operand is a vector."""
    g = g[..., None] if right == 1 else g
    return g[..., None, :] if left == 1 else g


def _left(g: Any, other: Any, input_shape: Any) -> Any:
    right = other.ndim
    if right == 1:
        return np.multiply(g[..., None], other)
    if right == 2 and len(input_shape) == 1:
        return np.matmul(other, g)
    g, turned = _as_matrices(g, len(input_shape), right), other.swapaxes(-1, -2)
    if right == 2 and len(input_shape) > 2:  # many matrices times one: all their rows at once
        return np.matmul(g.reshape(math.prod(input_shape[:-1]), g.shape[-1]), turned).reshape(input_shape)
    found = np.matmul(g, turned)
    return found.squeeze(-2) if len(input_shape) == 1 else found


def _right(g: Any, input: Any, other_shape: Any) -> Any:
    left = input.ndim
    if left == 1:
        return np.multiply(input[:, None], g[..., None, :]) if len(other_shape) > 1 else np.multiply(g, input)
    if left == 2 and len(other_shape) == 1:
        return np.matmul(g, input)
    g = _as_matrices(g, left, len(other_shape))
    if left > 2 and len(other_shape) == 2:  # many matrices times one: all their rows at once
        rows = math.prod(input.shape[:-1])
        return np.matmul(input.reshape(rows, input.shape[-1]).swapaxes(0, 1), g.reshape(rows, g.shape[-1]))
    found = np.matmul(input.swapaxes(-1, -2), g)
    return found.squeeze(-1) if len(other_shape) == 1 else found


def with_axes(level: Any, t: Tensor, ndim: int) -> Tensor:
    """The batched value of a tensor in a vmap, with axes of length 1 so that each element has at least `ndim` axes."""
    value, missing = level.value(t), ndim - t._data.ndim
    return value.reshape(level.size, *(1,) * missing, *t._data.shape) if missing > 0 and level.varies(t) else value


def _product_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: one product if a matrix is the same for all, otherwise a batch of products; vectors become matrices
    first."""
    input, other = args
    if 0 in (input._data.ndim, other._data.ndim):  # batched, a 0-d operand would pass as 1-d
        return op.unchecked(*(level.value(t)[0] if level.varies(t) else level.value(t) for t in args))
    if not level.varies(other) and other._data.ndim <= 2:
        return op.unchecked(level.value(input), level.value(other))
    if not level.varies(input) and input._data.ndim == 2 and other._data.ndim == 1:  # the vectors as rows
        return op.unchecked(level.value(other), level.value(input).swapaxes(0, 1))
    row, column = input._data.ndim == 1, other._data.ndim == 1
    input, other = input.unsqueeze(0) if row else input, other.unsqueeze(-1) if column else other
    ndim = max(input._data.ndim, other._data.ndim)
    found = op.unchecked(with_axes(level, input, ndim), with_axes(level, other, ndim))
    found = found.squeeze(-1) if column else found
    return found.squeeze(-1 if column else -2) if row else found


def _product(input: Any, other: Any) -> Any:
    for value in (input, other):
        if not hasattr(value, "size"):
            raise TypeError(errors.message("matmul()", expected="two Tensors", found=errors.describe(value)))
    if input.ndim == 0 or other.ndim == 0:
        raise RuntimeError(
            errors.message(
                "matmul()",
                expected="both arguments to be at least 1D",
                found=f"{input.ndim}D and {other.ndim}D",
                do="use * to multiply by a number",
            )
        )
    if input.dtype != other.dtype:
        raise RuntimeError(
            errors.message(
                "matmul()",
                expected="operands of the same dtype",
                found=f"{input.dtype} and {other.dtype}",
                do="convert one of them, e.g. w.to(x.dtype)",
            )
        )
    if input.shape[-1] != other.shape[-2 if other.ndim > 1 else 0]:
        raise RuntimeError(
            errors.message(
                "mat1 and mat2 shapes cannot be multiplied",
                expected="the last axis of the first to have the length of the second-to-last of the second",
                found=f"{list(input.shape)} and {list(other.shape)}",
            )
        )
    if input.ndim > 2 and other.ndim == 2 and type(input) is np.ndarray and input.flags.c_contiguous:
        rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
        return np.matmul(rows, other).reshape(*input.shape[:-1], other.shape[-1])
    return np.matmul(input, other)


_ENTRY: dict[str, Any] = {"method": False, "batch": _product_of_each, "input": _left, "other": _right}
_matmul = bilinear(name="_matmul", node="MatmulBackward0", **_ENTRY)(_product)
_bmm = bilinear(name="_bmm", node="BmmBackward0", **_ENTRY)(_product)
# the same product under torch's names for it, by the numbers of axes of the operands
_NAMED = {
    (1, 1): bilinear(name="_dot", node="DotBackward0", **_ENTRY)(_product),
    (2, 1): bilinear(name="_mv", node="MvBackward0", **_ENTRY)(_product),
    (2, 2): bilinear(name="_mm", node="MmBackward0", **_ENTRY)(_product),
}
_vdot = titled(_NAMED[1, 1], "VdotBackward0")


def _matmul_samples() -> list[Sample]:
    return [
        S(A(3), A(3)),
        S(A(2, 3), A(3)),
        S(A(3), A(3, 2)),
        S(A(2, 3), A(3, 4)),
        S(A(2, 2, 3), A(3, 4)),
        S(A(2, 3), A(4, 3, 2)),
        S(A(2, 1, 2, 3), A(3, 3, 2)),
        S(A(2, 2, 3), A(3)),
        S(A(3), A(2, 3, 2)),
        S(A(0, 3), A(3, 2)),
        S(A(2, 0), A(0, 3)),
        S(A(0), A(0)),
        S(A(1, 1), A(1, 1)),
        S(A(3, 2, layout="T"), A(2, 3, layout="step")),
        S(A(2, 3, layout="readonly"), A(3, 2, layout="T")),
        S(A(2, 3), other=A(3)),
    ]


def _matmul_refused() -> list[Sample]:
    return [
        S(A(2, 3), A(2, 3)),
        S(A(3), A(2)),
        S(A(), A(3)),
        S(A(3), A()),
        S(A(2, 2, 3), A(3, 3, 2)),
        S(A(2, 3), 2.0),
        S(A(2, 3), A(3, dtype="int32")),
        S(A(2, 3)),
        S([1.0], A(1)),
    ]


@composite(
    also="linalg.matmul",
    numpy={
        np.matmul: lambda x1, x2: matmul(*alike(x1, x2)),
        np.linalg.matmul: lambda x1, x2: matmul(*alike(x1, x2)),
    },
    out="exact",
    samples=_matmul_samples,
    refused=_matmul_refused,
    differs=_NO_BOOL,
)
def matmul(input: Tensor, other: Tensor | np.ndarray[Any, Any]) -> Tensor:
    """The matrix product; vectors and batches of matrices as in NumPy. ``dA = g B^T``, ``dB = A^T g``.

    >>> import pullback
    >>> pullback.ones(2, 3) @ pullback.ones(3)
    tensor([3., 3.])
    """
    if type(input) is not Tensor or type(other) is not Tensor:
        if isinstance(other, np.ndarray):
            input, other = alike(input, other)
        elif not isinstance(other, Tensor):
            return apply(_matmul.op, (input, other), {})  # type: ignore[unreachable]
    entry = _NAMED.get((input._data.ndim, other._data.ndim), _matmul)
    return apply(entry.op, (input, other), {})


def check_ndim(name: str, **expected: tuple[Any, int]) -> None:
    """Refuse operands, given by name, that are not Tensors with the number of axes given for each."""
    for which, (value, ndim) in expected.items():
        if not isinstance(value, Tensor) or value.ndim != ndim:
            raise (RuntimeError if isinstance(value, Tensor) else TypeError)(
                errors.message(f"{name}()", expected=f"{which} to be a {ndim}-D tensor", found=errors.describe(value))
            )


def _batches(name: str, a: Tensor, b: Tensor) -> Tensor:
    """The products of two stacks of matrices, which must be equally long."""
    if a._data.shape[0] != b._data.shape[0]:
        raise RuntimeError(
            errors.message(f"{name}()", expected="equal batch sizes", found=f"{a.shape[0]} and {b.shape[0]}")
        )
    return apply(_bmm.op, (a, b), {})


@composite(
    samples=lambda: [
        S(A(2, 3), A(3, 4)),
        S(A(1, 3), A(3, 1)),
        S(A(0, 3), A(3, 2)),
        S(A(2, 0), A(0, 3)),
        S(A(3, 2, layout="T"), A(2, 3, layout="step")),
        S(A(2, 3), mat2=A(3, 1)),
    ],
    refused=lambda: [S(A(2, 3), A(2, 3)), S(A(3), A(3)), S(A(2, 3), A(3)), S(A(2, 3), 1.0)],
    differs=_NO_BOOL,
)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    check_ndim("mm", input=(input, 2), mat2=(mat2, 2))
    return matmul(input, mat2)


@composite(
    samples=lambda: [
        S(A(2, 2, 3), A(2, 3, 4)),
        S(A(0, 2, 3), A(0, 3, 1)),
        S(A(1, 2, 2, layout="T"), A(1, 2, 1)),
        S(A(2, 1, 3), mat2=A(2, 3, 1)),
    ],
    refused=lambda: [
        S(A(2, 2, 3), A(3, 3, 2)),
        S(A(1, 2, 3), A(3, 3, 2)),
        S(A(2, 3), A(3, 2)),
        S(A(2, 2, 3), A(2, 2, 3)),
    ],
    differs=_NO_BOOL,
)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two stacks of matrices, pair by pair."""
    check_ndim("bmm", input=(input, 3), mat2=(mat2, 3))
    return _batches("bmm", input, mat2)


@composite(
    samples=lambda: [
        S(A(2, 3), A(3)),
        S(A(0, 3), A(3)),
        S(A(2, 0), A(0)),
        S(A(3, 2, layout="T"), A(2, layout="step")),
        S(A(2, 3), vec=A(3)),
    ],
    refused=lambda: [S(A(2, 3), A(2)), S(A(3), A(3)), S(A(2, 3), A(3, 1))],
    differs=_NO_BOOL,
)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    check_ndim("mv", input=(input, 2), vec=(vec, 1))
    return matmul(input, vec)


def _dot_samples() -> list[Sample]:
    return [S(A(3), A(3)), S(A(1), A(1)), S(A(0), A(0)), S(A(3, layout="step"), A(3, layout="readonly"))]


_NO_DOT = [S(A(3), A(2)), S(A(3), A(1)), S(A(2, 2), A(2, 2)), S(A(3), 1.0), S(A(3), A(3, dtype="int32")), S(A(3), A())]


@composite(out="exact", samples=_dot_samples, refused=_NO_DOT, differs=_NO_BOOL)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The product of two vectors, not conjugated."""
    if isinstance(tensor, Tensor) and not input._data.ndim == tensor._data.ndim == 1:
        raise RuntimeError(
            errors.message(
                "dot()",
                expected="two 1-D tensors",
                found=f"{errors.describe(input)} and {errors.describe(tensor)}",
                do="write input @ tensor for the matrix product, or np.dot(input, tensor) for NumPy's function",
            )
        )
    check_ndim("dot", input=(input, 1), tensor=(tensor, 1))
    return matmul(input, tensor)


def _flat(a: Any) -> Any:
    return np.reshape(a, (-1,))


@composite(
    numpy={np.vdot: lambda a, b: np.dot(np.conj(_flat(a)), _flat(b))},
    out="exact",
    samples=_dot_samples,
    refused=_NO_DOT,
    differs=_NO_BOOL,
)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The product of two vectors, the first of them conjugated: ``sum(conj(input) * other)``."""
    check_ndim("vdot", input=(input, 1), other=(other, 1))
    return matmul(np.conj(input), other) if input.is_complex() else _vdot(input, other)


@composite(
    also="ger",
    numpy={
        np.outer: lambda a, b: np.multiply(np.reshape(a, (-1, 1)), np.reshape(b, (1, -1))),
        np.linalg.outer: lambda x1, x2: np.outer(x1, x2),
    },
    samples=lambda: [
        S(A(3), A(2)),
        S(A(1), A(1)),
        S(A(0), A(2)),
        S(A(3, layout="step"), A(2)),
        S(A(3), A(2, dtype="int64")),
        S(A(3), vec2=A(2)),
    ],
    refused=lambda: [S(A(2, 2), A(2)), S(A(2), A()), S(A(2), 1.0)],
)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]`` of two vectors."""
    check_ndim("outer", input=(input, 1), vec2=(vec2, 1))
    return input[:, None] * vec2


# A product added to something -----------------------------------------------------------------------------------------


def _plus(name: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """``beta * input + alpha * product``; with beta 0, `input` is ignored, even NaN in it."""
    dtype, shape = product._data.dtype, product._data.shape
    beta, alpha = number_of(beta), number_of(alpha)
    for which, factor in (("beta", beta), ("alpha", alpha)):
        if not isinstance(factor, (bool, int, float, complex)):
            raise TypeError(
                errors.message(f"{name}()", expected=f"{which} to be a number", found=errors.describe(factor))
            )
        if (isinstance(factor, float) and dtype.kind in "biu") or (isinstance(factor, complex) and dtype.kind != "c"):
            raise RuntimeError(
                errors.message(
                    f"{name}()",
                    expected=f"{which} to be a number that {dtype} can hold",
                    found=repr(factor),
                    do="convert the tensors first, e.g. with .double()",
                )
            )
    if not broadcasts_to(input._data.shape, shape):
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected=f"input to be broadcast to the shape of the product, {list(shape)}",
                found=str(list(input._data.shape)),
            )
        )
    if dtype.kind == "b":
        beta, alpha = bool(beta), bool(alpha)
    if dtype.char == "e" and not (beta in (0, 1) and alpha == 1):  # the sum is rounded, not its parts
        return to(_plus(name, to(input, np.float32), to(product, np.float32), beta, alpha), dtype)
    scaled = product if alpha == 1 else times(product, alpha)
    if beta == 0:
        return where(wrap(beside(scaled, np.asarray(True))), scaled, input)
    return (input if beta == 1 else times(input, beta)) + scaled


def _check_dtype(name: str, input: Any, product: Tensor) -> None:
    if not isinstance(input, Tensor) or input._data.dtype != product._data.dtype:
        raise (RuntimeError if isinstance(input, Tensor) else TypeError)(
            errors.message(
                f"{name}()", expected=f"input to be a tensor of {product.dtype}", found=errors.describe(input)
            )
        )


_FRACTION = Differs(
    "a factor that is not a whole number is refused; torch drops its fraction", "values", "int64", "0.5"
)


def _added(first: tuple[int, ...], second: tuple[int, ...], *inputs: tuple[int, ...]) -> Callable[[], list[Sample]]:
    """Samples of ``beta * input + alpha * product``, for each shape of `input`."""

    def samples() -> list[Sample]:
        whole = inputs[0]
        return [
            *(S(A(*shape), A(*first), A(*second)) for shape in inputs),
            S(A(*whole), A(*first), A(*second), beta=2, alpha=-3),
            S(A(*whole), A(*first), A(*second), beta=0.5),
            S(A(*whole), A(*first), A(*second), alpha=0.5),
            S(A(*whole), A(*first), A(*second), beta=0),
            S(A(*whole, layout="T"), A(*first, layout="step"), A(*second, layout="readonly"), alpha=0),
        ]

    return samples


def _unadded(first: tuple[int, ...], second: tuple[int, ...], whole: tuple[int, ...]) -> Callable[[], list[Sample]]:
    """Calls that are refused: shapes, dtypes, factors."""

    def samples() -> list[Sample]:
        mats = A(*first), A(*second)
        return [
            S(A(4, *whole), *mats),
            S(A(5), *mats),
            S(A(*whole), A(*first[:-1], 7), A(*second)),
            S(A(*whole), A(*first, 1), A(*second)),
            S(A(*whole), *mats, beta="x"),
            S(A(*whole), *mats, 2),
            S(A(*whole), *mats, alpha=1j),
            S(A(*whole), *mats, nonsense=1),
            S(1.0, *mats),
            S(A(*whole), A(*first), 2.0),
        ]

    return samples


_KINKS = [S(V([[nan, 1.0], [1.0, nan]]), V([[1.0, 2.0], [3.0, 4.0]]), V([[1.0, 0.0], [0.0, 1.0]]), beta=0)]


@composite(
    scalars="beta alpha",
    inplace=True,
    older=True,
    samples=_added((2, 3), (3, 4), (2, 4), (4,), (2, 1), ()),
    kinks=_KINKS,
    refused=lambda: [*_unadded((2, 3), (3, 4), (2, 4))(), S(A(2, 2, dtype="int64"), A(2, 2), A(2, 2))],
    differs=[*_NO_BOOL, _FRACTION],
)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``; `input` is broadcast.

    >>> import pullback
    >>> pullback.addmm(pullback.ones(2), pullback.eye(2), pullback.eye(2), beta=2, alpha=3)
    tensor([[5., 2.],
            [2., 5.]])
    """
    check_ndim("addmm", mat1=(mat1, 2), mat2=(mat2, 2))
    product = matmul(mat1, mat2)
    _check_dtype("addmm", input, product)
    return _plus("addmm", input, product, beta, alpha)


@composite(
    bounds="beta alpha",
    inplace=True,
    older=True,
    samples=_added((2, 3), (3,), (2,), (1,), ()),
    refused=lambda: [*_unadded((2, 3), (3,), (2,))(), S(A(2, dtype="int64"), A(2, 2), A(2))],
    differs=[*_NO_BOOL, _FRACTION],
)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``; `input` is broadcast."""
    check_ndim("addmv", mat=(mat, 2), vec=(vec, 1))
    product = matmul(mat, vec)
    _check_dtype("addmv", input, product)
    return _plus("addmv", input, product, beta, alpha)


@composite(
    scalars="beta alpha",
    inplace=True,
    older=True,
    samples=_added((3, 2, 3), (3, 3, 4), (2, 4), (4,), (2, 1), ()),
    refused=lambda: [*_unadded((3, 2, 3), (3, 3, 4), (2, 4))(), S(A(2, 2), A(1, 2, 2), A(3, 2, 2))],
    differs=[*_NO_BOOL, _FRACTION],
)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * sum_b (batch1[b] @ batch2[b])``; `input` is broadcast."""
    check_ndim("addbmm", batch1=(batch1, 3), batch2=(batch2, 3))
    product = _batches("addbmm", batch1, batch2).sum(0, dtype=batch1.dtype)
    _check_dtype("addbmm", input, product)
    return _plus("addbmm", input, product, beta, alpha)


@composite(
    scalars="beta alpha",
    inplace=True,
    older=True,
    samples=_added((3, 2, 3), (3, 3, 4), (3, 2, 4), (2, 4), (4,), (3, 1, 1), ()),
    refused=lambda: [*_unadded((3, 2, 3), (3, 3, 4), (3, 2, 4))(), S(A(2, 2), A(1, 2, 2), A(3, 2, 2))],
    differs=[*_NO_BOOL, _FRACTION],
)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (batch1[b] @ batch2[b])`` for each b; `input` is broadcast."""
    check_ndim("baddbmm", batch1=(batch1, 3), batch2=(batch2, 3))
    product = _batches("baddbmm", batch1, batch2)
    _check_dtype("baddbmm", input, product)
    return _plus("baddbmm", input, product, beta, alpha)


@composite(
    bounds="beta alpha",
    inplace=True,
    older=True,
    samples=_added((2,), (3,), (2, 3), (3,), (2, 1), ()),
    refused=lambda: [
        S(A(4, 2, 3), A(2), A(3)),
        S(A(2, 3), A(2, 2), A(3)),
        S(A(2, 3), A(2), A(3), 2),
        S(1.0, A(2), A(2)),
    ],
)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; `input` is broadcast."""
    check_ndim("addr", vec1=(vec1, 1), vec2=(vec2, 1))
    wanted = dtypes.result_type([t._data for t in (input, vec1, vec2)])  # the dtype of the products as well
    return _plus("addr", input, outer(to(vec1, wanted), to(vec2, wanted)), beta, alpha)


@method("__matmul__")
def _operator(self: Tensor, other: Any) -> Any:
    return matmul(self, other) if isinstance(other, (Tensor, np.ndarray)) else left("matmul", self, other)


@method("__rmatmul__")
def _reflected(self: Tensor, other: Any) -> Any:
    if isinstance(other, Tensor):
        return matmul(other, self)
    return matmul(*alike(other, self)) if isinstance(other, np.ndarray) else left("matmul", self, other, True)

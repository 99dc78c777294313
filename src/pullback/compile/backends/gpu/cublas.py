"""Products of matrices that can be part of a CUDA graph: cuBLAS, called beside CuPy.

CuPy refuses to call cuBLAS while a stream is recorded (https://github.com/cupy/cupy/issues/6290), though cuBLAS can be
recorded where it is given its workspace (https://docs.nvidia.com/cuda/cublas/#cuda-graphs-support). So its
``cublasGemmStridedBatchedEx`` is called here, with CuPy's own handle. cuBLAS counts along columns: what is C = A B
along rows is C' = B' A' there.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from typing import Any

import numpy as np

from ....tensor.gpu import gpu_library
from . import cuda

WORKSPACE = {True: 32 << 20, False: 4 << 20}
"""The bytes of the workspace that cuBLAS is given, as its documentation advises: from Hopper on, and before."""

_NAMES = [f"libcublas.so.{n}" for n in (13, 12, 11)] if os.name == "posix" else [f"cublas64_{n}.dll" for n in (13, 12)]

# By dtype: cudaDataType_t, cublasComputeType_t, and the dtype of the two factors. TensorFloat-32 is not asked for.
_KINDS = {
    "e": (2, 68, np.float32),
    "f": (0, 68, np.float32),
    "d": (1, 70, np.float64),
    "F": (4, 68, np.complex64),
    "D": (5, 70, np.complex128),
}
_N, _T, _DEFAULT = 0, 1, -1
_STEPS = 1 << 31
"""Its steps are integers of 32 bits."""


class CublasError(RuntimeError):
    """cuBLAS cannot be had, or refused a call."""


@functools.cache
def loaded() -> Any:
    """The library that CuPy has loaded; CublasError if it is not found."""
    gpu_library().cuda.get_cublas_handle()  # with it, CuPy loads cuBLAS
    for name in _NAMES:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        void, number, long = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
        operand: list[Any] = [void, number, number, long]
        sizes: list[Any] = [number] * 5
        found.cublasSetStream_v2.argtypes = [void, void]
        found.cublasSetWorkspace_v2.argtypes = [void, void, ctypes.c_size_t]
        found.cublasGemmStridedBatchedEx.argtypes = [void, *sizes, void, *operand, *operand, void, *operand, *sizes[:3]]
        return found
    raise CublasError(f"cuBLAS was not found: {', '.join(_NAMES)}")


def workspace() -> Any:
    """Memory for the workspace of cuBLAS on the current device."""
    recent = int(str(gpu_library().cuda.Device().compute_capability)) >= 90
    return cuda.memory((WORKSPACE[recent],), np.uint8)


def product(space: Any, a: Any, b: Any) -> Any:
    """``np.matmul`` of arrays on the current device, queued on the current stream. space: from `workspace`."""
    if a.dtype != b.dtype or a.dtype.char not in _KINDS or not (a.ndim and b.ndim and a.size and b.size):
        return np.matmul(a, b)  # CuPy computes it without cuBLAS, or refuses it
    vectors = tuple([-2] * (a.ndim == 1) + [-1] * (b.ndim == 1))
    a, b = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    if a.shape[-1] != b.shape[-2]:
        return np.matmul(a, b)  # the error
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    if max(a.size, b.size, m * n) >= _STEPS:
        return np.matmul(a, b)
    out = cuda.memory((*batch, m, n), a.dtype)
    _gemm(space, _operand(b, batch), _operand(a, batch), out, (n, m, k))
    return np.squeeze(out, vectors) if vectors else out


def contracted(space: Any, spelled: Any, *operands: Any) -> Any:
    """``np.einsum``, by `product` where it is one of two arrays; otherwise CuPy's own, which may refuse."""
    try:
        a, b = operands
        left, right, out = _axes(spelled, a.ndim, b.ndim)
    except (TypeError, ValueError, AttributeError):
        return np.einsum(spelled, *operands)
    shared = [i for i in left if i in right and i in out]
    summed = [i for i in left if i in right and i not in out]
    rows, columns = ([i for i in own if i not in other] for own, other in ((left, right), (right, left)))
    sizes = dict(zip((*left, *right), (*a.shape, *b.shape), strict=True))

    def flat(x: Any, axes: list[Any], *groups: list[Any]) -> Any:
        moved = np.transpose(x, [axes.index(i) for group in groups for i in group])
        return moved.reshape([math.prod(sizes[i] for i in group) for group in groups])

    found = product(space, flat(a, left, shared, rows, summed), flat(b, right, shared, summed, columns))
    made = [*shared, *rows, *columns]
    return np.transpose(found.reshape([sizes[i] for i in made]), [made.index(i) for i in out])


def _axes(spelled: str, *counts: int) -> list[list[Any]]:
    """The labels of the axes of two factors and of the result; ValueError where it is no product of these."""
    terms = spelled.replace(" ", "").replace("->", ",").split(",")
    if spelled.count("->") != 1 or len(terms) != 3:
        raise ValueError(spelled)
    found, most = list[list[Any]](), 0
    for term, count in zip(terms, (*counts, None), strict=True):
        before, dots, after = term.partition("...")
        rest = most if count is None else count - len(before) - len(after)
        most = max(most, rest)
        found.append([*before, *range(-rest, 0), *after] if dots else [*term])
    left, right, out = found
    alone = {*left} ^ {*right}
    if any(len({*axes}) < len(axes) for axes in found) or not alone <= {*out} <= {*left, *right}:
        raise ValueError(spelled)  # a diagonal, or a sum over one factor
    return found


def _operand(x: Any, batch: tuple[int, ...]) -> tuple[Any, int, int, int]:
    """A factor as cuBLAS takes it: the array, whether it is transposed, the step of a column, and that of a matrix."""
    if len(batch) > 1 and x.ndim > 2:
        x = np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(-1, *x.shape[-2:])
    (rows, columns), size = x.shape[-2:], x.itemsize
    down, right = (step // size for step in x.strides[-2:])
    whole = not any(step % size for step in x.strides)
    matrix = x.strides[0] // size if x.ndim == 3 and x.shape[0] > 1 else 0
    if whole and matrix >= 0 and (right == 1 or columns == 1) and (down >= columns or rows == 1):
        return x, _N, max(down, columns) if rows > 1 else columns, matrix
    if whole and matrix >= 0 and (down == 1 or rows == 1) and (right >= rows or columns == 1):
        return x, _T, max(right, rows) if columns > 1 else rows, matrix
    return _operand(np.copy(x, order="C"), ())


def _gemm(space: Any, first: Any, second: Any, out: Any, sizes: tuple[int, int, int]) -> None:
    library, found = loaded(), gpu_library().cuda
    handle, stream = found.get_cublas_handle(), found.get_current_stream().ptr
    kind, compute, scalar = _KINDS[out.dtype.char]
    one, zero = (np.asarray(value, scalar) for value in (1, 0))
    (a, turned_a, step_a, next_a), (b, turned_b, step_b, next_b) = first, second
    n, m, _ = sizes
    _need(library.cublasSetStream_v2(handle, stream))
    _need(library.cublasSetWorkspace_v2(handle, space.data.ptr, space.nbytes))
    _need(
        library.cublasGemmStridedBatchedEx(
            *(handle, turned_a, turned_b, *sizes, one.ctypes.data),
            *(a.data.ptr, kind, step_a, next_a),
            *(b.data.ptr, kind, step_b, next_b),
            *(zero.ctypes.data, out.data.ptr, kind, n, n * m),
            *(out.size // (n * m), compute, _DEFAULT),
        )
    )
    _need(library.cublasSetStream_v2(handle, stream))  # which gives the handle its own workspace back


def _need(status: int) -> None:
    if status:
        raise CublasError(f"cuBLAS refused a product: status {status}")

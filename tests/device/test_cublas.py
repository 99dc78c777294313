"""That cuBLAS is called as its header has it: a library in C++ with the same functions takes its place."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.compile.backends.gpu import cublas

from .cuda_shim import COMPILER
from .fake import DeviceArray

pytestmark = [pytest.mark.skipif(COMPILER is None, reason="a C++ compiler is needed"), pytest.mark.usefixtures("gpu")]

SOURCE = r"""
#include <cstddef>
typedef struct Context *Handle;
static Handle given; static void *stream, *space; static size_t bytes;
extern "C" int cublasSetStream_v2(Handle handle, void *s) { given = handle; stream = s; bytes = 0; return 0; }
extern "C" int cublasSetWorkspace_v2(Handle handle, void *p, size_t n) {
    space = p; bytes = n; return handle == given ? 0 : 1;
}
template <class T> static void product(int ta, int tb, int m, int n, int k, T alpha, const T *a, int lda, long long sa,
        const T *b, int ldb, long long sb, T beta, T *c, int ldc, long long sc, int count) {
    for (int z = 0; z < count; z++, a += sa, b += sb, c += sc)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                T sum = 0;
                for (int l = 0; l < k; l++)
                    sum += (ta ? a[l + (size_t)i * lda] : a[i + (size_t)l * lda]) *
                           (tb ? b[j + (size_t)l * ldb] : b[l + (size_t)j * ldb]);
                c[i + (size_t)j * ldc] = alpha * sum + (beta == 0 ? 0 : beta * c[i + (size_t)j * ldc]);
            }
}
extern "C" int cublasGemmStridedBatchedEx(Handle handle, int ta, int tb, int m, int n, int k, const void *alpha,
        const void *a, int kind_a, int lda, long long sa, const void *b, int kind_b, int ldb, long long sb,
        const void *beta, void *c, int kind_c, int ldc, long long sc, int count, int compute, int algorithm) {
    if (handle != given || !bytes || algorithm != -1 || kind_a != kind_b || kind_a != kind_c) return 7;
    if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return 7;
    if (kind_a == 0 && compute == 68)
        product<float>(ta, tb, m, n, k, *(float *)alpha, (float *)a, lda, sa, (float *)b, ldb, sb, *(float *)beta,
                       (float *)c, ldc, sc, count);
    else if (kind_a == 1 && compute == 70)
        product<double>(ta, tb, m, n, k, *(double *)alpha, (double *)a, lda, sa, (double *)b, ldb, sb, *(double *)beta,
                        (double *)c, ldc, sc, count);
    else return 15;
    return 0;
}
"""


@pytest.fixture
def in_c(gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    source = tmp_path / "cublas.cpp"
    source.write_text(SOURCE)
    made = tmp_path / "libcublas.so"
    subprocess.run([str(COMPILER), "-O1", "-fPIC", "-shared", source, "-o", made], check=True)
    monkeypatch.setattr(cublas, "_NAMES", [str(tmp_path / "missing.so"), str(made)])
    library = cublas.loaded.__wrapped__()
    monkeypatch.setattr(cublas, "loaded", lambda: library)
    return library


def made(*shape: int, dtype: str = "float32") -> DeviceArray:
    return DeviceArray(np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype))


@pytest.mark.usefixtures("in_c")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_through_c(dtype: str) -> None:
    space = cublas.workspace()
    pairs = [
        (made(4, 5, dtype=dtype), made(5, 6, dtype=dtype)),
        (made(5, 4, dtype=dtype).T, made(6, 5, dtype=dtype).T),
        (made(3, 4, 5, dtype=dtype), made(5, 6, dtype=dtype)),
        (made(3, 5, 4, dtype=dtype).swapaxes(1, 2), made(3, 5, 6, dtype=dtype)[:, :, ::2]),
        (made(5, dtype=dtype), made(5, 6, dtype=dtype)),
    ]
    for a, b in pairs:
        np.testing.assert_allclose(cublas.product(space, a, b).inner, np.matmul(a.inner, b.inner), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("in_c")
def test_a_product_that_is_refused() -> None:
    with pytest.raises(cublas.CublasError, match="cuBLAS refused a product: status 15"):
        cublas.product(cublas.workspace(), made(2, 2, dtype="complex64"), made(2, 2, dtype="complex64"))


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "_NAMES", ["libcublas.none.so"])
    with pytest.raises(cublas.CublasError, match=r"cuBLAS was not found: libcublas\.none\.so"):
        cublas.loaded.__wrapped__()

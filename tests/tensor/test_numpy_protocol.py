"""NumPy's functions and operators on tensors: they are recorded, or refused by name, and never drop a gradient.

No oracle is needed: the value is NumPy's own on the arrays, and the gradient is compared with finite differences.
"""

from __future__ import annotations

import operator
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
from pullback.ops.numpy.values import BY_SHAPE, BY_VALUE
from pullback.tensor.tensor import NUMPY
from tests.oracle import cases
from tests.tensor import test_numpy_namespace as curves

A = np.array([[0.31, 0.92, 0.57], [0.73, 0.22, 0.43]])
B = np.array([[0.64, 0.13, 0.84], [0.26, 0.37, 0.48]])
V = np.array([0.3, 0.9, 0.5])


def since(version: str, text: str) -> list[str]:
    """Pieces of code that NumPy itself runs only from this version on."""
    return cases(text) if np.lib.NumpyVersion(np.__version__) >= version else []


# Functions of one array and of two, as a person writes them
ONE = cases("""
np.sin(a) | np.cos(a) | np.tan(a) | np.sinh(a) | np.cosh(a) | np.tanh(a) | np.exp(a) | np.expm1(a) | np.log(a)
np.log1p(a) | np.log2(a) | np.log10(a) | np.sqrt(a) | np.square(a) | np.reciprocal(a) | np.negative(a)
np.positive(a) | np.absolute(a) | np.abs(a) | np.fabs(a) | np.conjugate(a) | np.conj(a) | np.real(a) | np.sum(a)
np.mean(a) | np.prod(a) | np.var(a) | np.std(a) | np.max(a) | np.amax(a) | np.min(a) | np.amin(a) | np.cumsum(a)
np.cumprod(a) | np.ravel(a) | np.transpose(a) | np.squeeze(a) | np.copy(a) | np.flip(a) | np.triu(a) | np.tril(a)
np.sum(a, axis=0) | np.sum(a, axis=(0, 1)) | np.sum(a, 1, keepdims=True) | np.sum(a, axis=-1, dtype=np.float64)
np.mean(a, axis=1) | np.prod(a, axis=0, keepdims=True) | np.max(a, axis=1) | np.min(a, 0, keepdims=True)
np.var(a, axis=0, ddof=1) | np.std(a, axis=1, keepdims=True) | np.cumsum(a, axis=1) | np.cumprod(a, axis=0)
np.reshape(a, (3, 2)) | np.reshape(a, -1) | np.transpose(a, (1, 0))
np.swapaxes(a, 0, 1) | np.moveaxis(a, 0, -1) | np.expand_dims(a, 1) | np.squeeze(a[None], axis=0)
np.broadcast_to(a, (4, 2, 3)) | np.flip(a, axis=1) | np.triu(a, k=1) | np.tril(a, -1) | np.clip(a, 0.25, 0.75)
np.clip(a, None, 0.6) | np.take(a, [0, 2, -1], axis=1) | np.take(a, [[0, 1], [4, 5]])
np.take_along_axis(a, np.array([[0, 2], [1, 1]]), axis=1) | np.power(a, 3) | np.power(2.0, a) | np.float_power(a, 2.0)
np.where(a > 0.5, a, 0.0) | np.where(np.array([True, False, True]), 2.0 * a, a * a) | np.astype(a, np.float64)
np.exp2(a) | np.arcsin(a) | np.arccos(a) | np.arctan(a) | np.arcsinh(a) | np.arccosh(a + 1) | np.arctanh(a) | np.cbrt(a)
np.sinc(a) | np.deg2rad(a) | np.radians(a) | np.rad2deg(a) | np.degrees(a) | np.i0(a) | np.nan_to_num(a)
np.ldexp(a, 2)
np.frexp(a)[0] | np.modf(5 * a)[0] | np.divmod(a, 0.35)[1] | sp.erf(a) | sp.erfc(a) | sp.erfcx(a) | sp.erfinv(a)
sp.exp2(a) | sp.expit(a) | sp.expm1(a) | sp.gammainc(2.0, a) | sp.gammaincc(2.0, a) | sp.gammaln(a) | sp.i0(a)
sp.i0e(a)
sp.i1(a) | sp.i1e(a) | sp.j0(a) | sp.j1(a) | sp.k0(a) | sp.k0e(a) | sp.k1(a) | sp.k1e(a) | sp.log1p(a) | sp.log_ndtr(a)
sp.logit(a) | sp.ndtr(a) | sp.ndtri(a) | sp.psi(a) | sp.digamma(a) | sp.y0(a) | sp.y1(a) | sp.entr(a) | sp.round(a) + a
np.round(a) + a | np.remainder(a, 0.35) | a[:, ::2] ** 2 | np.multiply(a, 3) | np.sign(a) * a | np.floor(a) + a
""")
ONE += since("2.1.0", "np.reshape(a, shape=(6, 1)) | np.clip(a, min=0.45)")
TWO = cases("""
np.add(a, b) | np.subtract(a, b) | np.multiply(a, b) | np.divide(a, b) | np.true_divide(a, b) | np.power(a, b)
np.fmod(a, b) | np.fmax(a, b) | np.fmin(a, b) | np.hypot(a, b) | np.arctan2(a, b) | np.logaddexp(a, b)
np.logaddexp2(a, b) | np.copysign(a, b) + b | np.nextafter(a, b) + b | np.heaviside(a, b) + a + b | sp.xlogy(a, b)
sp.xlog1py(a, b) | np.divmod(a, b)[1] | np.maximum(a, b) | np.minimum(a, b) | a + b | a - b | a * b | a / b | a ** b
a % b | np.matmul(a, b.T) | a @ b.T
np.dot(a, b.T) | np.dot(a[0], b[0]) | np.outer(a[0], b[1]) | np.concatenate([a, b]) | np.concatenate((a, b), axis=1)
np.concatenate([a, b], axis=None) | np.stack([a, b]) | np.stack((a, b), axis=-1) | np.where(a > b, a, b)
np.clip(a, b - 0.1, b + 0.1) | a * b[0] | a + b[:, :1]
""")


# Reductions, statistics, sorting and differences, where NumPy's arguments or meaning are its own
STATISTICS = cases("""
np.prod(a, axis=(0, 1)) | np.prod(a[None], axis=(0, 2), keepdims=True) | np.var(a, correction=1)
np.std(a, axis=(0, 1)) | np.ptp(a) | np.ptp(a, axis=1, keepdims=True) | np.nansum(a, axis=0) | np.nanmean(a, 1)
np.nanmax(a) | np.nanmin(a, axis=1) | np.nanmean(np.where(a > 0.9, np.nan, a), axis=0)
np.nansum(np.where(a > 0.9, np.nan, a)) | np.nanmax(np.where(a > 0.9, np.nan, a), 1)
np.nanmin(np.where(a < 0.3, np.nan, a), keepdims=True) | np.average(a) | np.average(a, axis=1, weights=[1.0, 2.0, 4.0])
np.average(a, weights=a * a) | np.average(a, axis=0, weights=a, returned=True)[1] | np.average(a, 1, keepdims=True)
np.median(a) | np.median(a, axis=0) | np.median(a, axis=1, keepdims=True) | np.median(a, axis=(0, 1), keepdims=True)
np.nanprod(np.where(a > 0.9, np.nan, a), axis=1) | np.nanprod(a) | np.nanvar(a, axis=0, ddof=1)
np.nanvar(np.where(a > 0.9, np.nan, a), axis=1, keepdims=True) | np.nanstd(np.where(a > 0.9, np.nan, a))
np.nanstd(a, axis=(0, 1)) | np.nanstd(np.where(a > 0.9, np.nan, a), axis=1)
np.median(a[None], axis=(0, 1)) | np.nanmedian(np.where(a > 0.9, np.nan, a), axis=0) | np.nanmedian(a)
np.quantile(a, 0.3) | np.quantile(a, [0.1, 0.6], axis=1) | np.quantile(a, [[0.1], [0.6]], axis=0, keepdims=True)
np.quantile(a, 0.35, method='lower') | np.quantile(a, 0.35, method='higher') | np.quantile(a, 0.35, method='nearest')
np.quantile(a, [0.1, 0.3, 0.5, 0.7], method='nearest') | np.quantile(a, 0.35, method='midpoint')
np.quantile(a, [0.0, 0.2, 0.41, 1.0], method='inverted_cdf')
np.quantile(a, [0.2, 0.41], method='interpolated_inverted_cdf') | np.quantile(a, [0.02, 0.41], method='hazen')
np.quantile(a, [0.02, 0.98], method='weibull') | np.quantile(a, 0.3, method='median_unbiased')
np.quantile(a, 0.3, method='normal_unbiased') | np.percentile(a, 30) | np.percentile(a, [10, 80], axis=1)
np.nanpercentile(np.where(a > 0.9, np.nan, a), 30, axis=0)
np.nanquantile(np.where(a > 0.9, np.nan, a), [0.3, 0.7], axis=1, keepdims=True) | np.sort(a) | np.sort(a, axis=0)
np.sort(a, axis=None) | np.sort(a, kind='stable') | np.sort(np.partition(a, 1, axis=0), 0) | np.partition(a, 1)[:, 1]
np.partition(a, [1, 3], axis=None)[1::2] | np.unique(a) | np.unique(a, axis=0)
np.unique(a, return_index=True, return_inverse=True, return_counts=True)[0] | np.diff(a) | np.diff(a, n=2)
np.diff(a, axis=0) | np.diff(a, prepend=0.5) | np.diff(a, axis=0, append=a) | np.diff(a, prepend=[[1.0], [2.0]])
np.ediff1d(a) | np.ediff1d(a, to_begin=a[0], to_end=[1.0]) | np.trapezoid(a) | np.trapezoid(a, dx=0.5, axis=0)
np.vander(a[0]) | np.vander(a[0], 2, increasing=True)
np.trapezoid(a, [0.0, 1.0, 3.0]) | np.trapezoid(a, a * a) | np.gradient(a[0]) | np.gradient(a, axis=1)
np.gradient(a)[0] | np.gradient(a, 0.5, axis=0) | np.gradient(a, 2.0, [0.0, 1.0, 3.0])[1]
np.gradient(a[0], a[1], edge_order=2) | np.gradient(a, axis=(1, 0), edge_order=1)[0] | np.cov(a) | np.cov(a[0])
np.cov(a, rowvar=False) | np.cov(a, bias=True) | np.cov(a, ddof=0) | np.cov(a[0], a[1] * a[1])
np.cov(a, fweights=[1, 2, 1], aweights=[0.5, 1.0, 2.0]) | np.corrcoef(a) | np.corrcoef(a.T, a.T**3, rowvar=False)
np.corrcoef(a[0], a[1]) | np.bincount([0, 2, 2], weights=a[0]) | np.bincount(np.array([0, 1, 1]), a[1], minlength=4)
np.histogram(a, bins=3, weights=a)[0] | np.histogram(a, 3)[1]
np.histogram(a, [0.0, 0.5, 1.0], weights=a**3, density=True)[0] | np.histogram(a, bins='sturges')[1]
np.cumsum(a, axis=0, dtype=np.float64) | np.cumprod(a, dtype=np.float64) | np.add.reduce(a)
np.add.reduce(a, axis=None) | np.add.reduce(a, axis=1, keepdims=True, dtype=np.float64) | np.multiply.reduce(a)
np.multiply.reduce(a, axis=(0, 1)) | np.multiply.reduce(a, axis=1, keepdims=True) | np.maximum.reduce(a)
np.maximum.reduce(a, axis=None) | np.minimum.reduce(a, axis=1, keepdims=True) | np.logaddexp.reduce(a)
np.logaddexp.reduce(a, axis=1) | np.add.accumulate(a) | np.add.accumulate(a, axis=1) | np.multiply.accumulate(a)
np.multiply.accumulate(a, axis=1, dtype=np.float64) | np.maximum.accumulate(a) | np.minimum.accumulate(a, axis=1)
np.logaddexp.accumulate(a, 1) | np.multiply.outer(a, [1.0, 2.0]) | np.add.outer([1.0, 2.0], a)
np.subtract.outer(a, a) | np.power.outer(a, a[0]) | np.maximum.outer(a, 0.5)
""")

# Shapes and positions
SHAPES = cases("""
np.rollaxis(a, 1) | np.rollaxis(a[None], 2, -1) | np.matrix_transpose(a) | np.expand_dims(a, (0, 2))
np.broadcast_arrays(a, np.ones((3, 1, 1)))[0] | np.atleast_1d(a[0, 0]) | np.atleast_2d(a[0]) | np.atleast_3d(a)
np.atleast_1d(a, a[0])[1] | np.concatenate([a, [[1.0, 2.0, 3.0]]]) | np.stack([a[0], [1.0, 2.0, 3.0]])
np.hstack([a, a[:, :1]]) | np.vstack([a, a[0]]) | np.dstack([a, a]) | np.column_stack([a, a[:, 0]])
np.block([[a, a], [a, 2 * a]]) | np.block([a[0], 1.0]) | np.block(a[0]) | np.block([[a[0]], [a[1]]])
np.split(a, 3, axis=1)[1] | np.split(a, [1], 0)[1] | np.array_split(a, 2, axis=1)[0] | np.array_split(a, [2, 1], 1)[2]
np.hsplit(a, [1])[1] | np.vsplit(a, 2)[0] | np.dsplit(a[None], 3)[1] | np.tile(a, 2) | np.tile(a, (2, 1, 1))
np.repeat(a, 2) | np.repeat(a, 2, axis=1) | np.repeat(a, [1, 0, 2], axis=1) | np.roll(a, 1) | np.roll(a, -1, axis=1)
np.roll(a, 1, axis=(0, 1)) | np.roll(a, (1, 2), axis=1) | np.flip(a, (0, 1)) | np.fliplr(a) | np.flipud(a)
np.rot90(a) | np.rot90(a, -1, (1, 0)) | np.pad(a, 1) | np.pad(a, ((1, 0), (2, 3)), constant_values=2.5)
np.pad(a, (1, 2), mode='edge') | np.pad(a, ((1, 0), (4, 3)), 'reflect') | np.pad(a, 2, 'wrap')
np.pad(a, 3, 'symmetric')
np.pad(a, ((1, 2), (0, 1)), constant_values=((1, 2), (3, 4))) | np.take(a, [0, 4], mode='wrap')
np.take(a, 2, axis=1) | np.take(a, [5, 1], axis=1, mode='clip') | np.take(a, [-1, 7], axis=1, mode='wrap')
np.compress([True, False, True], a, axis=1) | np.compress([False, True], a)
np.extract([[False, True, True], [True, False, False]], a)
np.choose([[0, 1, 2], [2, 1, 0]], [a, a * a, 1.0]) | np.choose([0, 3, -1], [a, a * a], mode='wrap')
np.select([a > 0.8, a > 0.5], [a, a * a]) | np.select([a > 0.8], [2 * a], default=a) | np.diag(a) | np.diag(a[0], 1)
np.diagonal(a, 1) | np.diagonal(a[None], 0, 1, 2) | np.diagflat(a, -1) | np.meshgrid(a[0], [1.0, 2.0])[0]
np.meshgrid(a[0], a[1], indexing='ij')[1] | np.meshgrid(a[0], a[1], sparse=True)[0] | np.meshgrid(a[0], 2.0, a[1])[2]
np.append(a, 2 * a) | np.append(a, [[1.0], [2.0]], axis=1) | np.insert(a, 1, 5.0) | np.insert(a, 1, a[0], axis=0)
np.insert(a, [0, 2], [[1.0], [2.0]], axis=1) | np.insert(a, 1, [[1.0, 2.0]], axis=1) | np.insert(a, slice(0, 2), 7.0, 1)
np.insert(a[0], [2, 0], a[1, :2]) | np.delete(a, 1, axis=1) | np.delete(a, [0, -1]) | np.delete(a, slice(0, 2), 1)
np.delete(a, [True, False, True], axis=1) | np.resize(a, (2, 5)) | np.resize(a, 3) | a[np.nonzero(a)]
""")
SHAPES += since("2.1.0", "np.unstack(a, axis=1)[2]") + since("2.3.0", "np.pad(a, {1: (1, 2)})")

# Linear algebra: of one array and of two
MATRICES = cases("""
np.linalg.det(a @ a.T) | np.linalg.slogdet(a @ a.T)[1] | np.linalg.inv(a @ a.T) | np.linalg.pinv(a)
np.linalg.pinv(a, 1e-8) | np.linalg.pinv(a.T, rtol=1e-8) | np.linalg.pinv(a @ a.T, hermitian=True)
np.linalg.cholesky(a @ a.T) | np.linalg.cholesky(a @ a.T, upper=True) | np.linalg.qr(a)[1]
np.linalg.qr(a, mode='complete')[0] ** 2 | np.abs(np.linalg.svd(a, full_matrices=False)[0])
np.linalg.svd(a)[1] | np.linalg.svd(a, compute_uv=False) | np.linalg.svdvals(a) | np.linalg.eigh(a @ a.T)[0]
np.linalg.eigh(a @ a.T, UPLO='U')[1] ** 2 | np.linalg.eigvalsh(a @ a.T) | np.real(np.linalg.eigvals(a @ a.T))
np.real(np.linalg.eig(a @ a.T)[0]) | np.linalg.matrix_power(a @ a.T, 3) | np.linalg.matrix_power(a @ a.T, -1)
np.linalg.norm(a) | np.linalg.norm(a[0], 3) | np.linalg.norm(a, 'nuc') | np.linalg.norm(a, 2, (0, 1))
np.linalg.norm(a, 1, axis=1) | np.linalg.norm(a, axis=0, keepdims=True) | np.linalg.norm(a, np.inf)
np.linalg.vector_norm(a) | np.linalg.vector_norm(a, axis=1, keepdims=True, ord=3) | np.linalg.matrix_norm(a)
np.linalg.matrix_norm(a, ord=-2) | np.linalg.matrix_norm(a, keepdims=True, ord=1) | np.linalg.cond(a)
np.linalg.cond(a @ a.T, 'fro') | np.linalg.diagonal(a, offset=1) | np.trace(a) | np.trace(a, 1)
np.trace(a[None], 0, 1, 2) | np.linalg.trace(a) | np.linalg.trace(a, offset=-1) | np.linalg.matrix_transpose(a)
np.linalg.tensorinv((a @ a.T)[:, None], ind=2) | np.linalg.tensorinv((a @ a.T).reshape(2, 2, 1), 1)
np.einsum('ij->ji', a) | np.einsum('ij,ij->i', a, a, optimize=True) | np.einsum(a, [0, 1], [1]) | np.kron(a, [1.0, 2.0])
np.linalg.multi_dot([a, a.T, a]) | np.linalg.lstsq(a.T, np.ones((3, 1)))[0] | np.linalg.lstsq(a.T, np.ones(3), None)[1]
""")
PRODUCTS = cases("""
np.linalg.solve(a @ a.T, b) | np.linalg.solve(a @ a.T, b[:, 0]) | np.linalg.tensorsolve((a @ a.T)[:, None], b[:, :1])
np.linalg.tensorsolve((a @ a.T)[None], b[:1, :2], axes=(1,)) | np.linalg.lstsq(a.T, b.T, rcond=1e-9)[0]
np.dot(a, 2.0) * b | np.dot(a, b.T[None]) | np.dot(a[0], b.T) | np.vdot(a, b) | np.inner(a, b) | np.inner(a[0], b)
np.linalg.outer(a[0], b[0]) | np.tensordot(a, b) | np.tensordot(a, b, 0) | np.tensordot(a, b, axes=([1], [1]))
np.tensordot(a, b, (0, 0)) | np.linalg.tensordot(a, b, axes=2) | np.einsum('ij,kj->ik', a, b) | np.kron(a, b)
np.cross(a, b) | np.cross(a, b[0]) | np.cross(a.T, b.T, axis=0) | np.cross(a.T, b, axisa=0, axisc=0)
np.linalg.cross(a, b) | np.linalg.cross(a.T, b.T, axis=0) | np.vecdot(a, b) | np.vecdot(a, b[0], axis=-1)
np.linalg.vecdot(a, b) | np.linalg.vecdot(a, b, axis=0)
np.linalg.matmul(a, b.T) | np.linalg.multi_dot([a, b.T, a]) | np.linalg.multi_dot([a[0], b.T, b, a[1]])
np.linalg.norm(a - b) | np.einsum('ij,kj,kl->il', a, b, a)
""")
PRODUCTS += since("2.2.0", "np.matvec(a, b[0]) | np.vecmat(a[:, 0], b)")


# Fourier transforms; the modulus of what is moved away from 0 shows both parts of a complex result
TRANSFORMS = cases("""
np.abs(np.fft.fft(a) + 1j) | np.abs(np.fft.fft(a, 4, axis=0, norm='ortho') + 1j) | np.abs(np.fft.ifft(a) + 1j)
np.abs(np.fft.ifft(a, n=2, axis=-1, norm='forward') + 1j) | np.abs(np.fft.fft2(a) + 1j)
np.abs(np.fft.fft2(a, s=(3, 2), axes=(0, 1)) + 1j) | np.abs(np.fft.ifft2(a, norm='ortho') + 1j)
np.abs(np.fft.fftn(a) + 1j) | np.abs(np.fft.fftn(a, axes=(0,)) + 1j) | np.abs(np.fft.ifftn(a, (3,), (1,)) + 1j)
np.abs(np.fft.rfft(a) + 1j) | np.abs(np.fft.rfft(a, 4, 0, 'ortho') + 1j) | np.abs(np.fft.rfft2(a) + 1j)
np.abs(np.fft.rfftn(a, s=(2, 4), axes=(0, 1), norm='forward') + 1j) | np.fft.irfft(a * (1 + 2j))
np.fft.irfft(a * (1 + 2j), n=3, axis=0, norm='forward') | np.fft.irfft2(a * (2 - 1j))
np.fft.irfft2(a * (2 - 1j), (2, 5), axes=(0, 1)) | np.fft.irfftn(a * (1 + 2j))
np.fft.irfftn(a * (1 + 2j), norm='ortho')
np.fft.hfft(a * (1 + 2j)) | np.fft.hfft(a * (1 + 2j), n=5, norm='ortho') | np.abs(np.fft.ihfft(a) + 1j)
np.abs(np.fft.ihfft(a, 4, axis=0) + 1j) | np.fft.fftshift(a) | np.fft.fftshift(a, axes=1) | np.fft.ifftshift(a)
np.fft.ifftshift(a, axes=(0, 1))
""")


def run(code: str, *values: Any) -> Any:
    """The value of an expression in a and, if there is one, b."""
    return eval(code, {"np": np, "sp": scipy.special, "a": values[0], "b": values[-1]})


def checked(code: str, arrays: list[Any], differentiable: list[bool], accuracy: float = 1e-14) -> None:
    """Compare the value on tensors, where `differentiable` says so, with NumPy's, and the gradient with differences."""
    leaves = [pullback.tensor(a, requires_grad=True) if d else a for a, d in zip(arrays, differentiable, strict=True)]
    out = run(code, *leaves)
    assert isinstance(out, pullback.Tensor)
    assert out.requires_grad
    np.testing.assert_allclose(out.detach().numpy(), run(code, *arrays), rtol=accuracy)
    weight = np.cos(np.arange(out.numel())).reshape(out.shape) + 2
    wanted = [x for x in leaves if isinstance(x, pullback.Tensor)]
    gradients = iter(pullback.autograd.grad(out, wanted, pullback.tensor(weight)))
    for i in np.flatnonzero(differentiable):
        turn, step = np.sin(np.arange(arrays[i].size)).reshape(arrays[i].shape) + 1.5, 1e-6
        ahead, behind = ([a + s * turn if k == i else a for k, a in enumerate(arrays)] for s in (step, -step))
        slope = np.sum(weight * (run(code, *ahead) - run(code, *behind))) / (2 * step)
        np.testing.assert_allclose(np.sum(next(gradients).numpy() * turn), slope, rtol=1e-7)


@pytest.mark.parametrize("code", [*ONE, *STATISTICS, *SHAPES])
def test_a_function_of_a_tensor_is_recorded(code: str) -> None:
    checked(code, [A], [True])


@pytest.mark.parametrize("code", TRANSFORMS)
def test_a_transform_is_recorded(code: str) -> None:
    checked(code, [A], [True], 1e-12)


@pytest.mark.parametrize("code", MATRICES)
def test_a_function_of_a_matrix_is_recorded(code: str) -> None:
    checked(code, [A], [True], 1e-12)


@pytest.mark.parametrize("kinds", ["both", "tensor, array", "array, tensor"])
@pytest.mark.parametrize("code", PRODUCTS)
def test_a_product_is_recorded_whichever_is_a_tensor(code: str, kinds: str) -> None:
    checked(code, [A, B], [kinds != "array, tensor", kinds != "tensor, array"], 1e-12)


@pytest.mark.parametrize("kinds", ["both", "tensor, array", "array, tensor"])
@pytest.mark.parametrize("code", TWO)
def test_a_function_of_two_is_recorded_whichever_is_a_tensor(code: str, kinds: str) -> None:
    checked(code, [A, B], [kinds != "array, tensor", kinds != "tensor, array"])


def test_every_function_with_a_rule_is_among_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever adds a rule for a NumPy function finds that it is not tested yet."""
    asked: set[Any] = set()

    class Spy(dict[Any, Any]):
        def get(self, func: Any, default: Any = None) -> Any:
            asked.add(func)
            return super().get(func, default)

    spy = Spy(NUMPY)
    for name in ("pullback.tensor.protocol", "pullback.tensor.tensor"):
        monkeypatch.setattr(sys.modules[name], "NUMPY", spy)
    x, y = pullback.tensor(A), pullback.tensor(B)
    for code in [*ONE, *STATISTICS, *SHAPES, *TWO, *MATRICES, *PRODUCTS, *TRANSFORMS, *CONSTANT, *ROUNDING]:
        run(code, x, y)
    for code in curves.CURVES:
        run(code, pullback.tensor(curves.A), pullback.tensor(curves.B))
    of_scipy = {key for key in NUMPY if isinstance(key, str)}  # tested in tests/ops/test_scipy_special.py
    assert set(NUMPY) - asked - of_scipy - {*BY_VALUE, *BY_SHAPE} <= {
        getattr(np, "in1d", None),  # tested below
        np.imag,
        np.shape,
        np.ndim,
        np.size,
        np.allclose,
        np.isclose,
        np.array_equal,
        np.iscomplexobj,
        np.isrealobj,
        np.empty_like,
        *WRITERS,
        (None, "at"),
    }  # which have tests below


CONSTANT = cases("""
a > 0.5 | np.greater(a, b) | np.less_equal(b, a) | np.equal(a, a) | np.not_equal(a, 0.3) | np.less(a, 1)
np.count_nonzero(a > 0.5) | np.count_nonzero(a, axis=0, keepdims=True) | np.argsort(a) | np.argsort(a, axis=None)
np.argpartition(a, 1)[:, 1] | np.unique(a, return_index=True, return_inverse=True, return_counts=True)[1]
np.unique(a, return_inverse=True)[1] | np.unique(a, return_counts=True)[1] | np.searchsorted([0.2, 0.4, 0.6], a)
np.searchsorted(a[0], b, side='right', sorter=[0, 2, 1]) | np.isin(a, [0.31, 0.22]) | np.isin(a, b, invert=True)
np.histogram(a, 4)[0] | np.histogram(a, [0.0, 0.5, 1.0])[0] | np.histogram(a, 2, range=(0.0, 0.5))[0]
np.bincount((a > 0.5).reshape(-1) * 2) | np.logical_and.reduce(a > 0.2) | np.logical_or.reduce(a > 0.9, axis=1)
np.less.outer(a, a) | np.max(a > 0.5) | np.linalg.matrix_rank(a) | np.linalg.matrix_rank(a @ a.T, 1.0, hermitian=True)
np.greater_equal(a, b) | np.isnan(a) | np.isinf(a) | np.isfinite(a) | np.logical_not(a) | np.logical_and(a, b)
np.logical_or(a, b) | np.logical_xor(a, b) | np.any(a) | np.all(a) | np.argmax(a) | np.argmin(a)
np.argmax(a, axis=1) | np.any(a > 0.6, axis=0) | np.all(a > 0.6, axis=1, keepdims=True) | np.zeros_like(a)
np.ones_like(a) | np.bitwise_and(a > 0.4, a > 0.5) | np.bitwise_or(a > 0.4, a > 0.5)
np.bitwise_xor(a > 0.4, a > 0.5) | np.signbit(a - 0.5) | np.isposinf(a) | np.isneginf(a)
np.nonzero(a > 0.5)[1] | np.flatnonzero(a > 0.5) | np.argwhere(a > 0.5)
np.unravel_index(np.argsort(a, None), (2, 3))[1]
np.isreal(a) | np.iscomplex(a) | np.gcd((a > 0.5) * 4, 6) | np.lcm((a > 0.5) * 4, 6) | np.left_shift((a > 0.5) * 3, 2)
np.right_shift((a > 0.5) * 9, 2) | ~(a > 0.5) | np.invert(a > 0.5) | np.full_like(a, 2.0)
""")


@pytest.mark.parametrize("code", CONSTANT)
def test_what_has_no_derivative_is_a_tensor_that_requires_none(code: str) -> None:
    out = run(code, pullback.tensor(A, requires_grad=True), B)
    assert isinstance(out, pullback.Tensor)
    assert not out.requires_grad
    np.testing.assert_array_equal(out.numpy(), run(code, A, B))


ROUNDING = cases("""
np.angle(a) | np.angle(a - 0.5, deg=True) | np.fix(a) | np.modf(a)[1] | np.floor(a) | np.ceil(a) | np.trunc(a)
np.rint(a) | np.round(a) | np.sign(a) | np.floor_divide(a, 0.3)
""")


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # by NumPy 2.5, for np.trunc
@pytest.mark.parametrize("code", ROUNDING)
def test_rounding_has_the_gradient_zero(code: str) -> None:
    x = pullback.tensor(A, requires_grad=True)
    out = run(code, x)
    np.testing.assert_array_equal(out.detach().numpy(), run(code, A))
    assert not pullback.autograd.grad(out.sum(), x)[0].any()


def test_questions_about_the_shape_are_answered_with_numbers() -> None:
    x = pullback.tensor(A, requires_grad=True)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert [(np.iscomplexobj(t), np.isrealobj(t)) for t in (x, x + 1j)] == [(False, True), (True, False)]


def test_complex_parts() -> None:
    z = pullback.tensor(A + 1j * B, requires_grad=True)
    assert np.array_equal(np.imag(z).detach().numpy(), B)
    (g,) = pullback.autograd.grad(np.imag(np.conj(z)).sum() + np.real(z).sum(), z)
    assert g.tolist() == np.full((2, 3), 1 - 1j).tolist()


# Arrays, NumPy's numbers and tensors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv]
)
@pytest.mark.parametrize("other", [np.float64(2), np.float32(2), np.int64(2), np.array(2.0), V, 2, True], ids=repr)
def test_operators_with_arrays_and_numbers_on_either_side(op: Callable[..., Any], other: Any) -> None:
    x = pullback.tensor(A, requires_grad=True)
    for mixed, plain in ((op(x, other), op(A, other)), (op(other, x), op(other, A))):
        assert isinstance(mixed, pullback.Tensor)
        assert mixed.requires_grad
        np.testing.assert_allclose(mixed.detach().numpy(), plain, rtol=1e-14)


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparisons_with_arrays_on_either_side(op: Callable[..., Any]) -> None:
    x = pullback.tensor(A)
    for mixed, plain in ((op(x, B), op(A, B)), (op(B, x), op(B, A)), (op(np.float64(0.3), x), op(0.3, A))):
        assert isinstance(mixed, pullback.Tensor)
        np.testing.assert_array_equal(mixed.numpy(), plain)


def test_an_array_times_a_tensor_is_one_tensor_not_an_array_of_tensors() -> None:
    x = pullback.tensor(A, requires_grad=True)
    out = B * x + np.ones(3) @ x.T.reshape(3, 2)[:, 0] - np.float64(1)
    assert out.shape == (2, 3)
    out.sum().backward()
    assert x.grad is not None
    assert (B.T.T @ x.T).shape == (2, 2)


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("numpy.spacing", np.spacing),
        ("numpy.trim_zeros", lambda t: np.trim_zeros(t[0])),
        ("scipy.special.struve", lambda t: scipy.special.struve(1, t)),
        ("scipy.special.expn", lambda t: scipy.special.expn(2, t)),
        ("numpy.divide.reduce", np.divide.reduce),
        ("numpy.add.reduceat", lambda t: np.add.reduceat(t, [0])),
        ("numpy.subtract.accumulate", np.subtract.accumulate),
        ("numpy.union1d", lambda t: np.union1d(V, t)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_function_without_a_rule_is_refused_by_name(name: str, fn: Callable[..., Any]) -> None:
    x = pullback.tensor(A, requires_grad=True)
    with pytest.raises(TypeError, match=rf"{name}\(\) has no derivative rule(.|\n)*detach\(\)"):
        fn(x)


def test_out_is_refused_and_nothing_is_written() -> None:
    x, a, t = pullback.tensor(A, requires_grad=True), A.copy(), pullback.zeros(2, 3, dtype=pullback.float64)
    for write in (
        lambda: np.sin(x, out=a),
        lambda: np.sin(A, out=t),
        lambda: np.add(a, x, out=a),
        lambda: np.sum(x, axis=0, out=a[0]),
        lambda: np.multiply(A, B, out=t),
        lambda: np.add.at(a, 0, x[0]),
        lambda: operator.iadd(a, x),
        lambda: operator.imul(a, x),
        lambda: np.copyto(a, x),
    ):
        with pytest.raises(TypeError, match=r"out=|no derivative rule|argument 'out'"):
            write()
    np.testing.assert_array_equal(a, A)
    assert not t.any()


WRITERS = {
    np.put_along_axis: (np.array([[0], [1]]), 5.0, 1),
    np.put: (0, 5.0),
    np.place: (A > 0, [5.0]),
    np.putmask: (A > 0, 5.0),
    np.copyto: (5.0,),
    np.fill_diagonal: (5.0,),
}


@pytest.mark.parametrize("function", WRITERS, ids=lambda f: f.__name__)
def test_what_writes_into_its_argument_is_refused_and_says_what_to_do_instead(function: Callable[..., Any]) -> None:
    t, a = pullback.tensor(A), A.copy()
    with pytest.raises(TypeError, match=rf"numpy.{function.__name__}\(\): a Tensor cannot be written(.|\n)*What to do"):
        function(t, *WRITERS[function])
    np.testing.assert_array_equal(t.numpy(), A)
    function(a, *WRITERS[function])
    assert (a == 5.0).any()


def test_nan_to_num_is_refused_where_it_would_write_to_a_tensor() -> None:
    t = pullback.tensor([1.0, np.nan], requires_grad=True)
    with pytest.raises(TypeError, match=r"numpy.nan_to_num\(\): a Tensor cannot be written(.|\n)*leave copy=False out"):
        np.nan_to_num(t, copy=False)
    assert np.isnan(t[1].item())
    assert np.nan_to_num(t, copy=True, nan=3.0).tolist() == [1.0, 3.0]


def test_like_a_tensor_is_a_tensor() -> None:
    x = pullback.tensor(A, requires_grad=True)
    for like in (
        np.empty_like(x),
        np.zeros_like(x),
        np.ones_like(x),
        np.full_like(x, 2.0),
        np.empty_like(x, dtype=float),
    ):
        assert isinstance(like, pullback.Tensor)
        assert (like.shape, like.dtype, like.requires_grad) == (x.shape, pullback.float64, False)


def test_unknown_arguments_of_numpy_are_refused() -> None:
    x = pullback.tensor(A, requires_grad=True)
    for call in (
        lambda: np.sum(x, where=A > 0.5),
        lambda: np.max(x, initial=3.0),
        lambda: np.sin(x, where=A > 0.5),
        lambda: np.clip(x, 0, 1, casting="unsafe"),
    ):
        with pytest.raises(TypeError, match="argument"):
            call()


def test_a_tensor_in_the_graph_does_not_become_an_array_silently() -> None:
    x = pullback.tensor(A, requires_grad=True)
    y = x * 2
    for convert in (
        np.asarray,
        np.array,
        np.ascontiguousarray,
        lambda t: np.asarray(t, dtype=float),
        lambda t: np.array([t, t]),
    ):
        for t in (x, y):
            with pytest.raises(RuntimeError, match=r"detach\(\)"):
                convert(t)
    assert np.array_equal(np.asarray(x.detach()), A)
    assert np.asarray(y.detach(), dtype=np.float32).dtype == np.float32
    with pullback.no_grad():
        assert np.array_equal(np.asarray(x * 1), A)


def test_asarray_of_a_plain_tensor_shares_its_memory() -> None:
    t = pullback.tensor(A)
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert not np.shares_memory(np.array(t), t.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, dtype=np.float32, copy=False)


# Warnings -------------------------------------------------------------------------------------------------------------


_OWN_ARRAYS_AND_TENSORS = """
import warnings

import numpy as np

warnings.simplefilter("error")
import pullback

zero = np.zeros(2)
x = pullback.tensor(zero, requires_grad=True)
made = (np.log(x), x / 0.0, 1 / x, x / x, x**-1, np.sqrt(x - 1), np.exp(x + 1000), np.sum(np.log(x) - np.log(x)))
for out in made:
    out.sum().backward(retain_graph=True)
pullback.tensor([300.0]).to(pullback.float16) * 300
try:
    np.log(zero)
except RuntimeWarning as warning:
    print(warning)
"""


def test_numpy_warns_of_a_persons_own_arrays_and_not_of_tensors() -> None:
    """In a process of its own: NumPy's error state and the filters of warnings are those of a person's program."""
    done = subprocess.run([sys.executable, "-c", _OWN_ARRAYS_AND_TENSORS], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("divide by zero encountered in log\n", "")


def test_importing_the_package_sets_that_filter_and_no_other() -> None:
    found = [f for f in warnings.filters if f[3] is not None and "pullback" in getattr(f[3], "pattern", str(f[3]))]
    assert all(f[0] == "ignore" and f[2] is RuntimeWarning for f in found)
    assert found


def test_numpy_code_on_tensors() -> None:
    """NumPy's functions give the gradients that the library's own give, which are compared with torch's elsewhere."""
    torch = pullback

    def leaf() -> pullback.Tensor:
        return torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)

    x, b = leaf(), np.array([1.0, 2.0])
    by_numpy = (
        np.sin(x).sum() + np.linalg.solve(x, b).sum() + np.where(x > 1.5, x, -x).prod() + np.max(np.cumsum(x, axis=0))
        + np.var(np.outer(x[0], b)) + np.linalg.norm(np.linalg.inv(x)) + np.abs(np.fft.fft(x)).sum()
    )  # fmt: skip
    by_numpy.backward()
    y, c = leaf(), torch.from_numpy(b)
    ours = (
        torch.sin(y).sum() + torch.linalg.solve(y, c).sum() + torch.where(y > 1.5, y, -y).prod() + y.cumsum(0).max()
        + torch.outer(y[0], c).var(correction=0) + torch.linalg.inv(y).norm() + torch.fft.fft(y).abs().sum()
    )  # fmt: skip
    ours.backward()
    np.testing.assert_allclose(by_numpy.detach().numpy(), ours.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("compare", [np.isclose, np.allclose])
def test_a_tolerance_may_be_a_tensor(compare: Any) -> None:
    t = pullback.tensor([1.0, 2.0], requires_grad=True)
    assert np.all(np.asarray(compare(t, t + 0.5, atol=pullback.tensor(1.0))))
    assert not np.any(np.asarray(compare(t, t + 0.5, atol=pullback.tensor(0.1), rtol=0.0)))


@pytest.mark.skipif(not hasattr(np, "in1d"), reason="NumPy has it no more since 2.4")
def test_in1d_is_isin_in_a_row() -> None:
    a = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert np.in1d(a, [2.0, 3.0]).tolist() == [False, True, True, False]
    assert np.in1d(a, [2.0, 3.0], invert=True).tolist() == [True, False, False, True]


@pytest.mark.parametrize("shape", [5, (2, 3), ()])
def test_what_is_made_like_a_tensor_may_have_another_shape(shape: Any) -> None:
    a = np.ones((2, 2), np.float32)
    t = pullback.from_numpy(a)
    for name, more in (("zeros_like", ()), ("ones_like", ()), ("full_like", (7,)), ("empty_like", ())):
        function = getattr(np, name)
        for dtype in (None, np.float64, np.int64):
            expected, found = function(a, *more, dtype=dtype, shape=shape), function(t, *more, dtype=dtype, shape=shape)
            assert (found.shape, found.numpy().dtype) == (expected.shape, expected.dtype)
            if name != "empty_like":
                assert np.array_equal(found.numpy(), expected)
        assert function(t, *more, np.float64, "C").dtype == pullback.float64
        with pytest.raises(TypeError, match=name):
            function(t, *more, shapes=shape)
    filled = pullback.vmap(lambda x: (out := np.zeros_like(x, shape=3), out.add_(x), out)[-1])(pullback.ones(2))
    assert filled.tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda t: np.sum(t, where=np.array([True, False, True])),
            r"numpy.sum\(\) of a Tensor got an unexpected .*'where'",
        ),
        (lambda t: np.max(t, initial=3), r"numpy.max\(\) of a Tensor got an unexpected keyword argument 'initial'"),
    ],
)
def test_an_argument_that_a_rule_does_not_take_is_named_with_the_function(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call(pullback.ones(3))


@pytest.mark.parametrize("dtype", ["int64", "bool", "float32", "float64", "complex128"])
def test_a_product_with_an_array_has_the_dtype_of_numpys(dtype: str) -> None:
    array = np.array([[1, 0], [1, 1]], dtype)
    for data in (np.array([1.0, 2.0]), np.array([1.0, 2.0], np.float32)):
        t = pullback.tensor(data, requires_grad=True)
        for product, expected in (
            (t @ array, data @ array),
            (array @ t, array @ data),
            (t.matmul(array), data @ array),
        ):
            assert product.dtype.numpy == expected.dtype
            np.testing.assert_array_equal(product.detach().numpy(), expected)
        (abs(t @ array) ** 2).sum().backward()
        np.testing.assert_allclose(t.grad.numpy(), 2 * np.abs(array) @ (data @ array).real)
    with pytest.raises(RuntimeError, match="operands of the same dtype"):  # of two Tensors, as in PyTorch
        pullback.ones(2) @ pullback.ones(2, dtype=pullback.int64)


def test_an_argument_that_a_rule_lacks_is_named_with_numpys_function() -> None:
    t = pullback.ones(3, requires_grad=True) * 1
    for call, name in (
        (lambda: np.clip(t, 0, 1, out=t), "clip"),
        (lambda: np.mean(t, where=[True, False, True]), "mean"),
        (lambda: np.median(t, out=np.zeros(())), "median"),
        (lambda: np.einsum("i->", t, optimise=True), "einsum"),
    ):
        with pytest.raises(
            TypeError, match=rf"^numpy\.{name}\(\) of a Tensor got an unexpected keyword(.|\n)*leave that out"
        ):
            call()
    assert t.tolist() == [1.0, 1.0, 1.0]

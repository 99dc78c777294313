# Made from the table of operations by `pullback ops --stubs`; do not edit.
from collections.abc import Iterator
import builtins
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from .tensor import Tensor

_Other = builtins.complex | np.ndarray[Any, Any] | np.generic

class Methods:
    def __getattr__(self, name: str) -> Any: ...
    def __iter__(self: Any) -> Iterator[Tensor]: ...
    def __add__(self: Any, other: Any, /) -> Tensor: ...
    def __radd__(self: Any, other: Any, /) -> Tensor: ...
    def __sub__(self: Any, other: Any, /) -> Tensor: ...
    def __rsub__(self: Any, other: Any, /) -> Tensor: ...
    def __mul__(self: Any, other: Any, /) -> Tensor: ...
    def __rmul__(self: Any, other: Any, /) -> Tensor: ...
    def __truediv__(self: Any, other: Any, /) -> Tensor: ...
    def __rtruediv__(self: Any, other: Any, /) -> Tensor: ...
    def __floordiv__(self: Any, other: Any, /) -> Tensor: ...
    def __pow__(self: Any, other: Any, /) -> Tensor: ...
    def __rpow__(self: Any, other: Any, /) -> Tensor: ...
    def __mod__(self: Any, other: Any, /) -> Tensor: ...
    def __divmod__(self: Any, other: Any, /) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self: Any, other: Any, /) -> tuple[Tensor, Tensor]: ...
    def __round__(self: Any, ndigits: builtins.int | None = None, /) -> Any: ...
    def __matmul__(self: Any, other: Any, /) -> Tensor: ...
    def __and__(self: Any, other: Any, /) -> Tensor: ...
    def __or__(self: Any, other: Any, /) -> Tensor: ...
    def __xor__(self: Any, other: Any, /) -> Tensor: ...
    def __lt__(self: Any, other: Any, /) -> Tensor: ...
    def __le__(self: Any, other: Any, /) -> Tensor: ...
    def __gt__(self: Any, other: Any, /) -> Tensor: ...
    def __ge__(self: Any, other: Any, /) -> Tensor: ...
    def __neg__(self: Any) -> Tensor: ...
    def __invert__(self: Any) -> Tensor: ...
    def __abs__(self: Any) -> Tensor: ...
    def __getitem__(self: Any, index: Any, /) -> Tensor: ...
    def __setitem__(self: Any, index: Any, value: Any, /) -> None: ...
    @property
    def H(self) -> Any: ...
    @property
    def T(self) -> Any: ...
    def abs(self, *, out: Any = ...) -> Tensor:
        """The absolute value; for complex numbers the modulus, a real tensor. The derivative at 0 is 0."""
    def abs_(self, *, out: Any = ...) -> Tensor:
        """`abs`, written into this tensor, which is returned."""
    def absolute(self, *, out: Any = ...) -> Tensor:
        """The absolute value; for complex numbers the modulus, a real tensor. The derivative at 0 is 0."""
    def absolute_(self, *, out: Any = ...) -> Tensor:
        """`absolute`, written into this tensor, which is returned."""
    def acos(self, *, out: Any = ...) -> Tensor:
        """The inverse of the cosine, from 0 to pi; NaN outside [-1, 1]."""
    def acos_(self, *, out: Any = ...) -> Tensor:
        """`acos`, written into this tensor, which is returned."""
    def acosh(self, *, out: Any = ...) -> Tensor:
        """The inverse of the hyperbolic cosine; NaN below 1."""
    def acosh_(self, *, out: Any = ...) -> Tensor:
        """`acosh`, written into this tensor, which is returned."""
    def add(self, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
        """``input + alpha * other``, broadcast."""
    def add_(self, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
        """`add`, written into this tensor, which is returned."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
        """``beta * input + alpha * sum_b (batch1[b] @ batch2[b])``; `input` is broadcast."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """`addbmm`, written into this tensor, which is returned."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = ..., out: Any = ...) -> Tensor:
        """``input + value * tensor1 / tensor2``, broadcast; not for integers."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
        """`addcdiv`, written into this tensor, which is returned."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = ..., out: Any = ...) -> Tensor:
        """``input + value * tensor1 * tensor2``, broadcast."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
        """`addcmul`, written into this tensor, which is returned."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
        """``beta * input + alpha * (mat1 @ mat2)``; `input` is broadcast."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """`addmm`, written into this tensor, which is returned."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
        """``beta * input + alpha * (mat @ vec)``; `input` is broadcast."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """`addmv`, written into this tensor, which is returned."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
        """``beta * input + alpha * outer(vec1, vec2)``; `input` is broadcast."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """`addr`, written into this tensor, which is returned."""
    def adjoint(self) -> Tensor:
        """The conjugate transpose of a matrix, or of each in a batch: the last two axes exchanged; a view if real."""
    def all(self, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """Whether all of the elements are nonzero, over `dim` (default: all elements); bool, no derivative."""
    def allclose(self, other: Tensor, rtol: SupportsFloat = ..., atol: SupportsFloat = ..., equal_nan: builtins.bool = ..., *, out: Any = ...) -> Any:
        """Whether all elements are close, in the sense of `isclose`."""
    def amax(self, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """The largest element over `dim` (default: all); ties share the gradient evenly."""
    def amin(self, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """The smallest element over `dim` (default: all); ties share the gradient evenly."""
    def aminmax(self, *, dim: Any = ..., keepdim: builtins.bool = ..., out: Any = ...) -> Any:
        """The smallest and the largest element along `dim` (default: of all), as ``(min, max)``; ties share evenly."""
    def angle(self, *, out: Any = ...) -> Tensor:
        """The angle of a complex number, from -pi to pi; for a real number 0, or pi below 0. Its derivative at 0 is 0."""
    def any(self, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """Whether any of the elements is nonzero, over `dim` (default: all elements); bool, no derivative."""
    def apply_(self, callable: Any) -> Any:
        """Replace each element x, a Python number, by ``callable(x)``, converted to this tensor's dtype."""
    def arccos(self, *, out: Any = ...) -> Tensor:
        """The inverse of the cosine, from 0 to pi; NaN outside [-1, 1]."""
    def arccos_(self, *, out: Any = ...) -> Tensor:
        """`arccos`, written into this tensor, which is returned."""
    def arccosh(self, *, out: Any = ...) -> Tensor:
        """The inverse of the hyperbolic cosine; NaN below 1."""
    def arccosh_(self, *, out: Any = ...) -> Tensor:
        """`arccosh`, written into this tensor, which is returned."""
    def arcsin(self, *, out: Any = ...) -> Tensor:
        """The inverse of the sine, from -pi/2 to pi/2; NaN outside [-1, 1]."""
    def arcsin_(self, *, out: Any = ...) -> Tensor:
        """`arcsin`, written into this tensor, which is returned."""
    def arcsinh(self, *, out: Any = ...) -> Tensor:
        """The inverse of the hyperbolic sine."""
    def arcsinh_(self, *, out: Any = ...) -> Tensor:
        """`arcsinh`, written into this tensor, which is returned."""
    def arctan(self, *, out: Any = ...) -> Tensor:
        """The inverse of the tangent, from -pi/2 to pi/2."""
    def arctan2(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The angle, from -pi to pi, of the point with coordinates `other` and `input`; at the origin its derivative is 0."""
    def arctan2_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`arctan2`, written into this tensor, which is returned."""
    def arctan_(self, *, out: Any = ...) -> Tensor:
        """`arctan`, written into this tensor, which is returned."""
    def arctanh(self, *, out: Any = ...) -> Tensor:
        """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""
    def arctanh_(self, *, out: Any = ...) -> Tensor:
        """`arctanh`, written into this tensor, which is returned."""
    def argmax(self, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """The index of the (first) largest element, in the flattened tensor or along `dim`; int64, no derivative."""
    def argmin(self, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """The index of the (first) smallest element, in the flattened tensor or along `dim`; int64, no derivative."""
    def argsort(self, dim: SupportsIndex = ..., descending: builtins.bool = ..., *, stable: builtins.bool | None = ..., out: Any = ...) -> Tensor:
        """The positions that sort along `dim`: the indices of `sort`; int64, no derivative."""
    def argwhere(self, *, out: Any = ...) -> Tensor:
        """`nonzero` under NumPy's name."""
    def as_strided(self, size: Any, stride: Any, storage_offset: SupportsIndex | None = ...) -> Tensor:
        """A view of the memory behind `input` with any size and strides, counted in elements; its elements may overlap."""
    def as_strided_(self, size: Any, stride: Any, storage_offset: Any = ...) -> Any:
        """`as_strided` in place; returns the tensor."""
    def as_strided_scatter(self, src: Tensor, size: Any, stride: Any, storage_offset: SupportsIndex | None = ..., *, out: Any = ...) -> Tensor:
        """`input` with the elements that `as_strided` selects, each of them once, replaced by `src`."""
    def as_subclass(self, cls: Any) -> Any:
        """A tensor of that class on the same memory, recorded in the graph after this one."""
    def asin(self, *, out: Any = ...) -> Tensor:
        """The inverse of the sine, from -pi/2 to pi/2; NaN outside [-1, 1]."""
    def asin_(self, *, out: Any = ...) -> Tensor:
        """`asin`, written into this tensor, which is returned."""
    def asinh(self, *, out: Any = ...) -> Tensor:
        """The inverse of the hyperbolic sine."""
    def asinh_(self, *, out: Any = ...) -> Tensor:
        """`asinh`, written into this tensor, which is returned."""
    def astype(self, dtype: Any, *, copy: Any = ...) -> Any:
        """The elements in another dtype, as of NumPy's arrays: a copy, unless `copy` is False and the dtype is the same."""
    def atan(self, *, out: Any = ...) -> Tensor:
        """The inverse of the tangent, from -pi/2 to pi/2."""
    def atan2(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The angle, from -pi to pi, of the point with coordinates `other` and `input`; at the origin its derivative is 0."""
    def atan2_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`atan2`, written into this tensor, which is returned."""
    def atan_(self, *, out: Any = ...) -> Tensor:
        """`atan`, written into this tensor, which is returned."""
    def atanh(self, *, out: Any = ...) -> Tensor:
        """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""
    def atanh_(self, *, out: Any = ...) -> Tensor:
        """`atanh`, written into this tensor, which is returned."""
    def backward(self, gradient: Any = ..., retain_graph: Any = ..., create_graph: Any = ..., inputs: Any = ...) -> Any:
        """Add the gradient of this tensor with respect to the leaves to their ``.grad``; see `pullback.autograd.backward`."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
        """``beta * input + alpha * (batch1[b] @ batch2[b])`` for each b; `input` is broadcast."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """`baddbmm`, written into this tensor, which is returned."""
    def bernoulli(self, p: Any = ..., *, generator: Any = ..., out: Any = ...) -> Any:
        """1 with the probability in each element of `input` (or with probability `p`), else 0, in the dtype of `input`."""
    def bernoulli_(self, p: Any = ..., *, generator: Any = ...) -> Any:
        """Every element 1 with probability `p`, a number or a tensor of them, else 0."""
    def bfloat16(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.bfloat16."""
    def bincount(self, weights: Any = ..., minlength: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """The counts of 0, 1, 2... in `input`, a vector of integers; or the sums of the `weights` there."""
    def bitwise_and(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input & other``, of bools and integers."""
    def bitwise_and_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`bitwise_and`, written into this tensor, which is returned."""
    def bitwise_left_shift(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input << other``, of integers; 0 when all bits have been shifted out."""
    def bitwise_left_shift_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`bitwise_left_shift`, written into this tensor, which is returned."""
    def bitwise_not(self, *, out: Any = ...) -> Tensor:
        """``~input``, of bools and integers."""
    def bitwise_not_(self, *, out: Any = ...) -> Tensor:
        """`bitwise_not`, written into this tensor, which is returned."""
    def bitwise_or(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input | other``, of bools and integers."""
    def bitwise_or_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`bitwise_or`, written into this tensor, which is returned."""
    def bitwise_right_shift(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input >> other``, of integers: rounded down, and 0 or -1 when all bits have been shifted out."""
    def bitwise_right_shift_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`bitwise_right_shift`, written into this tensor, which is returned."""
    def bitwise_xor(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input ^ other``, of bools and integers."""
    def bitwise_xor_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`bitwise_xor`, written into this tensor, which is returned."""
    def bmm(self, mat2: Tensor, *, out: Any = ...) -> Tensor:
        """The products of two stacks of matrices, pair by pair."""
    def bool(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.bool."""
    def broadcast_to(self, size: Any, *more: Any) -> Tensor:
        """`expand` under NumPy's name."""
    def byte(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.uint8."""
    def cauchy_(self, median: Any = ..., sigma: Any = ..., *, generator: Any = ...) -> Any:
        """Every element drawn from the Cauchy distribution with half its mass within `sigma` of `median`."""
    def ccol_indices(self) -> Any:
        """RuntimeError: only a sparse column compressed tensor has it."""
    def cdouble(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.complex128."""
    def ceil(self, *, out: Any = ...) -> Tensor:
        """The smallest integer from `input` on."""
    def ceil_(self, *, out: Any = ...) -> Tensor:
        """`ceil`, written into this tensor, which is returned."""
    def cfloat(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.complex64."""
    def char(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.int8."""
    def cholesky(self, upper: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """The Cholesky factor: `linalg.cholesky`."""
    def cholesky_inverse(self, upper: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """The inverse of ``L L^H``, or of ``L^H L`` if `upper`; of the Cholesky factor L only that triangle is read."""
    def cholesky_solve(self, L: Tensor, upper: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """X with ``L L^H X = B``, or ``L^H L X = B`` if `upper`; of the Cholesky factor L only that triangle is read."""
    def chunk(self, chunks: SupportsIndex, dim: SupportsIndex = ...) -> Any:
        """At most `chunks` consecutive pieces of equal size along `dim`; the last may be smaller."""
    def clamp(self, min: Tensor | _Other | None = ..., max: Tensor | _Other | None = ..., *, out: Any = ...) -> Tensor:
        """`input` limited to ``[min, max]``, numbers or tensors; the gradient passes at the bounds themselves."""
    def clamp_(self, min: Tensor | _Other | None = ..., max: Tensor | _Other | None = ...) -> Tensor:
        """`clamp`, written into this tensor, which is returned."""
    def clamp_max(self, max: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`input`, or `max` where that is smaller; at a tie `input` gets the gradient."""
    def clamp_max_(self, max: Tensor | _Other) -> Tensor:
        """`clamp_max`, written into this tensor, which is returned."""
    def clamp_min(self, min: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`input`, or `min` where that is larger; at a tie `input` gets the gradient."""
    def clamp_min_(self, min: Tensor | _Other) -> Tensor:
        """`clamp_min`, written into this tensor, which is returned."""
    def clip(self, min: Tensor | _Other | None = ..., max: Tensor | _Other | None = ..., *, out: Any = ...) -> Tensor:
        """`input` limited to ``[min, max]``, numbers or tensors; the gradient passes at the bounds themselves."""
    def clip_(self, min: Tensor | _Other | None = ..., max: Tensor | _Other | None = ...) -> Tensor:
        """`clip`, written into this tensor, which is returned."""
    def clone(self, *, memory_format: Any = ..., out: Any = ...) -> Tensor:
        """A copy in new memory, with the same order of axes unless a `memory_format` is given; differentiable."""
    def coalesce(self) -> Any:
        """RuntimeError: only a sparse coordinate tensor has it."""
    def col_indices(self) -> Any:
        """RuntimeError: only a sparse row compressed tensor has it."""
    def conj(self, *, out: Any = ...) -> Tensor:
        """The complex conjugate, in new memory; a real tensor is returned unchanged."""
    def conj_physical(self, *, out: Any = ...) -> Tensor:
        """The complex conjugate, as `conj`."""
    def conj_physical_(self) -> Tensor:
        """`conj_physical`, written into this tensor, which is returned."""
    def conjugate(self) -> Any:
        """The complex conjugate, as of NumPy's arrays: `conj`."""
    def contiguous(self, memory_format: Any = ..., *, out: Any = ...) -> Tensor:
        """The tensor itself if it is contiguous (in the `memory_format`, if one is given), otherwise a contiguous copy."""
    def copy(self) -> Any:
        """A copy in new memory, as of NumPy's arrays: `clone`."""
    def copy_(self, src: Any, non_blocking: Any = ...) -> Any:
        """Write the values of `src`, a tensor or a number, broadcast and converted; gradients flow to `src`."""
    def copysign(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``|input|`` with the sign of `other`; at 0 and by `other` the derivative is 0."""
    def copysign_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`copysign`, written into this tensor, which is returned."""
    def corrcoef(self, *, out: Any = ...) -> Tensor:
        """Pearson's correlation coefficients of variables (the rows of `input`): ``cov[i, j] / (std[i] std[j])``."""
    def cos(self, *, out: Any = ...) -> Tensor:
        """The cosine."""
    def cos_(self, *, out: Any = ...) -> Tensor:
        """`cos`, written into this tensor, which is returned."""
    def cosh(self, *, out: Any = ...) -> Tensor:
        """The hyperbolic cosine."""
    def cosh_(self, *, out: Any = ...) -> Tensor:
        """`cosh`, written into this tensor, which is returned."""
    def count_nonzero(self, dim: Any = ..., *, out: Any = ...) -> Tensor:
        """The number of nonzero elements, over `dim` (default: all elements); int64, no derivative."""
    def cov(self, *, correction: SupportsIndex = ..., fweights: Any = ..., aweights: Any = ..., out: Any = ...) -> Tensor:
        """The covariances of variables (the rows of `input`) over observations (its columns); for a vector, the variance."""
    def cpu(self, memory_format: Any = ...) -> Any:
        """The tensor in the host's memory: itself, if it lies there."""
    def cross(self, other: Tensor, dim: SupportsIndex | None = ..., *, out: Any = ...) -> Tensor:
        """The cross product along `dim`, or along the first dimension of size 3: `linalg.cross`."""
    def crow_indices(self) -> Any:
        """RuntimeError: only a sparse row compressed tensor has it."""
    def cuda(self, device: Any = ..., non_blocking: Any = ..., memory_format: Any = ...) -> Any:
        """The tensor on a GPU, by default the current one; RuntimeError where CuPy or a GPU is missing."""
    def cummax(self, dim: SupportsIndex, *, out: Any = ...) -> Any:
        """The largest so far along `dim`, and its last position: ``(values, indices)``; NaN from the first NaN on."""
    def cummin(self, dim: SupportsIndex, *, out: Any = ...) -> Any:
        """The smallest so far along `dim`, and its last position: ``(values, indices)``; NaN from the first NaN on."""
    def cumprod(self, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """The running product along `dim`; its derivatives are correct where elements are zero."""
    def cumprod_(self, dim: SupportsIndex, *, dtype: Any = ...) -> Tensor:
        """`cumprod`, written into this tensor, which is returned."""
    def cumsum(self, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """The running sum along `dim`; integers and bools add up in int64."""
    def cumsum_(self, dim: SupportsIndex, *, dtype: Any = ...) -> Tensor:
        """`cumsum`, written into this tensor, which is returned."""
    def deg2rad(self, *, out: Any = ...) -> Tensor:
        """Degrees to radians."""
    def deg2rad_(self, *, out: Any = ...) -> Tensor:
        """`deg2rad`, written into this tensor, which is returned."""
    def dense_dim(self, *, out: Any = ...) -> Any:
        """The number of axes that are not sparse; for a dense tensor, all."""
    def det(self, *, out: Any = ...) -> Tensor:
        """The determinant: `linalg.det`."""
    def diag(self, diagonal: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """The matrix with a vector on its diagonal, or the diagonal of a matrix, as a copy."""
    def diag_embed(self, offset: SupportsIndex = ..., dim1: SupportsIndex = ..., dim2: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """Matrices with the last axis of `input` on their diagonals, zeros elsewhere."""
    def diagflat(self, offset: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """The matrix with the elements of `input`, flattened, on its diagonal."""
    def diagonal(self, offset: SupportsIndex = ..., dim1: SupportsIndex = ..., dim2: SupportsIndex = ...) -> Tensor:
        """The elements ``[i, i + offset]`` of the axes `dim1` and `dim2`, as the last axis; a view."""
    def diagonal_scatter(self, src: Tensor, offset: SupportsIndex = ..., dim1: SupportsIndex = ..., dim2: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """`input` with its `diagonal` replaced by `src`."""
    def diff(self, n: SupportsIndex = ..., dim: SupportsIndex = ..., prepend: Any = ..., append: Any = ..., *, out: Any = ...) -> Tensor:
        """``input[i + 1] - input[i]`` along `dim`, `n` times; for bools, whether they differ."""
    def digamma(self, *, out: Any = ...) -> Tensor:
        """The derivative of `lgamma`."""
    def digamma_(self, *, out: Any = ...) -> Tensor:
        """`digamma`, written into this tensor, which is returned."""
    def dist(self, other: Tensor, p: Any = ..., *, out: Any = ...) -> Tensor:
        """The p-norm of the difference, ``norm(input - other, p)``. For equal tensors, it and its gradient are 0."""
    def div(self, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
        """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
    def div_(self, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
        """`div`, written into this tensor, which is returned."""
    def divide(self, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
        """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
    def divide_(self, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
        """`divide`, written into this tensor, which is returned."""
    def dot(self, tensor: Tensor, *, out: Any = ...) -> Tensor:
        """The product of two vectors, not conjugated."""
    def double(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.float64."""
    def dsplit(self, indices_or_sections: Any) -> Any:
        """`tensor_split` along the third axis."""
    def eq(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input == other``, elementwise."""
    def eq_(self, other: Any) -> Any:
        """`eq`, written into this tensor, which is returned."""
    def equal(self, other: Tensor, *, out: Any = ...) -> Any:
        """Whether two tensors have the same shape and the same elements; NaN equals no number."""
    def erf(self, *, out: Any = ...) -> Tensor:
        """``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `input`."""
    def erf_(self, *, out: Any = ...) -> Tensor:
        """`erf`, written into this tensor, which is returned."""
    def erfc(self, *, out: Any = ...) -> Tensor:
        """``1 - erf(input)``, exact for large numbers."""
    def erfc_(self, *, out: Any = ...) -> Tensor:
        """`erfc`, written into this tensor, which is returned."""
    def erfinv(self, *, out: Any = ...) -> Tensor:
        """The inverse of `erf`, infinite at -1 and 1, NaN beyond."""
    def erfinv_(self, *, out: Any = ...) -> Tensor:
        """`erfinv`, written into this tensor, which is returned."""
    def exp(self, *, out: Any = ...) -> Tensor:
        """``e ** input``."""
    def exp2(self, *, out: Any = ...) -> Tensor:
        """``2 ** input``."""
    def exp2_(self, *, out: Any = ...) -> Tensor:
        """`exp2`, written into this tensor, which is returned."""
    def exp_(self, *, out: Any = ...) -> Tensor:
        """`exp`, written into this tensor, which is returned."""
    def expand(self, size: Any, *more: Any) -> Tensor:
        """`input` repeated along axes of length 1, and along new ones in front, without a copy; -1 keeps a length."""
    def expand_as(self, other: Tensor) -> Tensor:
        """`expand` to the shape of `other`."""
    def expm1(self, *, out: Any = ...) -> Tensor:
        """``exp(input) - 1``, exact near 0."""
    def expm1_(self, *, out: Any = ...) -> Tensor:
        """`expm1`, written into this tensor, which is returned."""
    def exponential_(self, lambd: Any = ..., *, generator: Any = ...) -> Any:
        """Every element drawn from the exponential distribution of rate `lambd`."""
    def fill_(self, value: Any) -> Any:
        """Set every element to `value`, a number or a 0-d tensor."""
    def fill_diagonal_(self, fill_value: Any, wrap: Any = ...) -> Any:
        """`fill_value` on the main diagonal, written into this tensor, which is returned."""
    def fix(self, *, out: Any = ...) -> Tensor:
        """The integer part: rounded toward 0."""
    def fix_(self, *, out: Any = ...) -> Tensor:
        """`fix`, written into this tensor, which is returned."""
    def flatten(self, start_dim: SupportsIndex = ..., end_dim: SupportsIndex = ...) -> Tensor:
        """Axes `start_dim` to `end_dim`, both included, joined into one; the tensor itself for a single axis."""
    def flip(self, dims: Any, *more: Any, out: Any = ...) -> Tensor:
        """`input` with the order along `dims` reversed; a copy."""
    def fliplr(self, *, out: Any = ...) -> Tensor:
        """`input` with the order along the second axis reversed."""
    def flipud(self, *, out: Any = ...) -> Tensor:
        """`input` with the order along the first axis reversed."""
    def float(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.float32."""
    def float_power(self, exponent: Any, *, out: Any = ...) -> Tensor:
        """``input ** exponent`` in double precision, whatever the dtypes."""
    def float_power_(self, exponent: Any) -> Tensor:
        """`float_power`, written into this tensor, which is returned."""
    def floor(self, *, out: Any = ...) -> Tensor:
        """The largest integer up to `input`."""
    def floor_(self, *, out: Any = ...) -> Tensor:
        """`floor`, written into this tensor, which is returned."""
    def floor_divide(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``floor(input / other)``; its derivative is 0."""
    def floor_divide_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`floor_divide`, written into this tensor, which is returned."""
    def fmax(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The larger of two, elementwise; if one is NaN, the other. At a tie the first gets the gradient."""
    def fmin(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The smaller of two, elementwise; if one is NaN, the other. At a tie the first gets the gradient."""
    def fmod(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``input - trunc(input / other) * other``; takes the sign of `input`."""
    def fmod_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`fmod`, written into this tensor, which is returned."""
    def frac(self, *, out: Any = ...) -> Tensor:
        """``input - trunc(input)``, with the sign of `input`."""
    def frac_(self, *, out: Any = ...) -> Tensor:
        """`frac`, written into this tensor, which is returned."""
    def frexp(self, *, out: Any = ...) -> Any:
        """Mantissa and exponent: ``input = mantissa * 2 ** exponent`` with ``0.5 <= |mantissa| < 1``."""
    def gather(self, dim: SupportsIndex, index: Any, *, sparse_grad: builtins.bool = ..., out: Any = ...) -> Tensor:
        """``out[i][j] = input[index[i][j]][j]`` for ``dim=0``, and so on: one element along `dim` for each position."""
    def gcd(self, other: Any, *, out: Any = ...) -> Tensor:
        """The greatest common divisor of integers."""
    def gcd_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`gcd`, written into this tensor, which is returned."""
    def ge(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input >= other``, elementwise."""
    def ge_(self, other: Any) -> Any:
        """`ge`, written into this tensor, which is returned."""
    def geometric_(self, p: Any, *, generator: Any = ...) -> Any:
        """Every element the number of tries up to and including the first success, each with probability `p`."""
    def geqrf(self, *, out: Any = ...) -> Any:
        """The result of LAPACK's routine of that name: R above and the reflections below the diagonal of ``a``, with their ``tau``; it has no derivative. `linalg.householder_product` computes Q from both."""
    def ger(self, vec2: Tensor, *, out: Any = ...) -> Tensor:
        """``out[i, j] = input[i] * vec2[j]`` of two vectors."""
    def get_device(self, *, out: Any = ...) -> Any:
        """-1: no accelerator; all tensors lie in the host's memory."""
    @property
    def grad_dtype(self) -> Any: ...
    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None: ...
    def greater(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input > other``, elementwise."""
    def greater_(self, other: Any) -> Any:
        """`greater`, written into this tensor, which is returned."""
    def greater_equal(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input >= other``, elementwise."""
    def greater_equal_(self, other: Any) -> Any:
        """`greater_equal`, written into this tensor, which is returned."""
    def gt(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input > other``, elementwise."""
    def gt_(self, other: Any) -> Any:
        """`gt`, written into this tensor, which is returned."""
    def half(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.float16."""
    def hardshrink(self, lambd: SupportsFloat = ...) -> Tensor:
        """`input` where ``|input| > lambd``, else 0."""
    def heaviside(self, values: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """0 where `input` is negative or NaN, 1 where it is positive, `values` where it is 0 (they get the gradient)."""
    def heaviside_(self, values: Tensor | _Other) -> Tensor:
        """`heaviside`, written into this tensor, which is returned."""
    def histc(self, bins: SupportsIndex = ..., min: Any = ..., max: Any = ..., *, out: Any = ...) -> Tensor:
        """The number of elements in each of `bins` bins of equal width from `min` to `max`."""
    def histogram(self, bins: Any = ..., *, range: Any = ..., weight: Any = ..., density: builtins.bool = ..., out: Any = ...) -> Any:
        """The sums of weights (1) in each bin, and the edges of the bins: ``(hist, bin_edges)``."""
    def hsplit(self, indices_or_sections: Any) -> Any:
        """`tensor_split` along the second axis, or the only one."""
    def hypot(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``sqrt(input ** 2 + other ** 2)``, without overflow; at the origin the derivative is NaN."""
    def hypot_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`hypot`, written into this tensor, which is returned."""
    def i0(self, *, out: Any = ...) -> Tensor:
        """The modified Bessel function of the first kind, of order 0."""
    def i0_(self) -> Tensor:
        """`i0`, written into this tensor, which is returned."""
    def igamma(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The regularised lower incomplete gamma function ``P(input, other)``; no derivative by `input`."""
    def igamma_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`igamma`, written into this tensor, which is returned."""
    def igammac(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The regularised upper incomplete gamma function, ``1 - igamma(input, other)``; no derivative by `input`."""
    def igammac_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`igammac`, written into this tensor, which is returned."""
    @property
    def imag(self) -> Any: ...
    @imag.setter
    def imag(self, value: Any) -> None: ...
    def index_add(self, dim: SupportsIndex, index: Tensor, source: Tensor, *, alpha: Any = ..., out: Any = ...) -> Tensor:
        """`input` with the slices of ``alpha * source`` added to its slices along `dim` at the positions in `index`."""
    def index_add_(self, dim: Any, index: Any, source: Any, *, alpha: Any = ...) -> Any:
        """`index_add`, written into this tensor, which is returned."""
    def index_copy(self, dim: SupportsIndex, index: Tensor, source: Tensor, *, out: Any = ...) -> Tensor:
        """`input` with its slices along `dim` at the positions in `index` replaced by the slices of `source`."""
    def index_copy_(self, dim: Any, index: Any, source: Any) -> Any:
        """`index_copy`, written into this tensor, which is returned."""
    def index_fill(self, dim: SupportsIndex, index: Tensor, value: Any, *, out: Any = ...) -> Tensor:
        """`input` with `value`, a number or a 0-d tensor, in the slices along `dim` at the positions in `index`."""
    def index_fill_(self, dim: Any, index: Any, value: Any) -> Any:
        """`index_fill`, written into this tensor, which is returned."""
    def index_put(self, indices: Any, values: Tensor, accumulate: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """`input` with `values` written at ``input[indices]``, for a tuple of tensors, or added there if `accumulate`."""
    def index_put_(self, indices: Any, values: Any, accumulate: Any = ...) -> Any:
        """`index_put`, written into this tensor, which is returned."""
    def index_reduce(self, dim: SupportsIndex, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ..., out: Any = ...) -> Tensor:
        """The slices of `source` combined with those of `input` at their positions along `dim`: "prod", "mean", "amax" or "amin"; without `include_self`, only among themselves. See `scatter_reduce`."""
    def index_reduce_(self, dim: Any, index: Any, source: Any, reduce: Any, *, include_self: Any = ...) -> Any:
        """`index_reduce`, written into this tensor, which is returned."""
    def index_select(self, dim: SupportsIndex, index: Any, *, out: Any = ...) -> Tensor:
        """The slices of `input` along `dim` at the positions in `index`, a 1-D tensor of integers that are not negative."""
    def indices(self) -> Any:
        """RuntimeError: only a sparse coordinate tensor has it."""
    def inner(self, other: Tensor, *, out: Any = ...) -> Tensor:
        """The sum of products over the last axis of both; a 0-d tensor multiplies."""
    def int(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.int32."""
    def inverse(self, *, out: Any = ...) -> Tensor:
        """The inverse: `linalg.inv`."""
    def is_coalesced(self) -> Any:
        """RuntimeError: only a sparse coordinate tensor has it."""
    def is_conj(self, *, out: Any = ...) -> Any:
        """False: conjugates are computed at once, never later."""
    def is_neg(self, *, out: Any = ...) -> Any:
        """False: negatives are computed at once, never later."""
    def is_nonzero(self) -> Any:
        """Whether the only element is not 0; RuntimeError if there is not exactly one."""
    def is_pinned(self, *, out: Any = ...) -> Any:
        """Whether it lies in memory of the host that a GPU copies from by itself: see `pin_memory`."""
    def is_same_size(self, other: Tensor, *, out: Any = ...) -> Any:
        """Whether two tensors have the same shape."""
    def is_set_to(self, tensor: Tensor, *, out: Any = ...) -> Any:
        """Whether two tensors share the same elements of the same memory: same start, shape and strides."""
    def is_signed(self) -> Any:
        """Whether the dtype has negative numbers."""
    def isclose(self, other: Tensor, rtol: SupportsFloat = ..., atol: SupportsFloat = ..., equal_nan: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """Elementwise, whether ``|input - other| <= atol + rtol * |other|``; infinities are close to themselves."""
    def isfinite(self, *, out: Any = ...) -> Tensor:
        """Whether it is neither infinite nor NaN."""
    def isinf(self, *, out: Any = ...) -> Tensor:
        """Whether it is infinite."""
    def isnan(self, *, out: Any = ...) -> Tensor:
        """Whether it is NaN."""
    def isneginf(self, *, out: Any = ...) -> Tensor:
        """Whether it is negative infinity."""
    def isposinf(self, *, out: Any = ...) -> Tensor:
        """Whether it is positive infinity."""
    def isreal(self, *, out: Any = ...) -> Tensor:
        """Whether its imaginary part is 0; True for every real number."""
    def istft(self, n_fft: SupportsIndex, hop_length: SupportsIndex | None = ..., win_length: SupportsIndex | None = ..., window: Any = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: SupportsIndex | None = ..., return_complex: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """The signal whose `stft` with the same arguments is `input`, or the least-squares one if there is no such signal."""
    def kron(self, other: Tensor, *, out: Any = ...) -> Tensor:
        """The Kronecker product: every element of `input` times all of `other`."""
    def kthvalue(self, k: SupportsIndex, dim: SupportsIndex = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Any:
        """The k-th smallest element along `dim`, counted from 1, and its index: ``(values, indices)``."""
    def lcm(self, other: Any, *, out: Any = ...) -> Tensor:
        """The least common multiple of integers."""
    def lcm_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`lcm`, written into this tensor, which is returned."""
    def ldexp(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``input * 2 ** other``, in floating point."""
    def ldexp_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`ldexp`, written into this tensor, which is returned."""
    def le(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input <= other``, elementwise."""
    def le_(self, other: Any) -> Any:
        """`le`, written into this tensor, which is returned."""
    def lerp(self, end: Any, weight: Any, *, out: Any = ...) -> Tensor:
        """``input + weight * (end - input)``; exactly `input` and `end` at the weights 0 and 1."""
    def lerp_(self, end: Any, weight: Any) -> Tensor:
        """`lerp`, written into this tensor, which is returned."""
    def less(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input < other``, elementwise."""
    def less_(self, other: Any) -> Any:
        """`less`, written into this tensor, which is returned."""
    def less_equal(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input <= other``, elementwise."""
    def less_equal_(self, other: Any) -> Any:
        """`less_equal`, written into this tensor, which is returned."""
    def lgamma(self, *, out: Any = ...) -> Tensor:
        """``log |Gamma(input)|``."""
    def lgamma_(self, *, out: Any = ...) -> Tensor:
        """`lgamma`, written into this tensor, which is returned."""
    def log(self, *, out: Any = ...) -> Tensor:
        """The natural logarithm."""
    def log10(self, *, out: Any = ...) -> Tensor:
        """The logarithm to base 10."""
    def log10_(self, *, out: Any = ...) -> Tensor:
        """`log10`, written into this tensor, which is returned."""
    def log1p(self, *, out: Any = ...) -> Tensor:
        """``log(1 + input)``, exact near 0."""
    def log1p_(self, *, out: Any = ...) -> Tensor:
        """`log1p`, written into this tensor, which is returned."""
    def log2(self, *, out: Any = ...) -> Tensor:
        """The logarithm to base 2."""
    def log2_(self, *, out: Any = ...) -> Tensor:
        """`log2`, written into this tensor, which is returned."""
    def log_(self, *, out: Any = ...) -> Tensor:
        """`log`, written into this tensor, which is returned."""
    def log_normal_(self, mean: Any = ..., std: Any = ..., *, generator: Any = ...) -> Any:
        """Every element the exponential of a number drawn from the normal distribution of `mean` and `std`."""
    def log_softmax(self, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """``x - log(sum(exp(x)))`` along `dim`, more precise than the logarithm of `softmax`."""
    def logaddexp(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``log(exp(input) + exp(other))``, without overflow."""
    def logaddexp2(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``log2(2 ** input + 2 ** other)``, without overflow."""
    def logcumsumexp(self, dim: SupportsIndex, *, out: Any = ...) -> Tensor:
        """The logarithm of the running sum of exponentials along `dim`, without overflow."""
    def logdet(self, *, out: Any = ...) -> Tensor:
        """The logarithm of the determinant; NaN where that is negative. ``d log det = tr(A^-1 dA)``."""
    def logical_and(self, other: Any, *, out: Any = ...) -> Tensor:
        """Whether both are nonzero."""
    def logical_and_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`logical_and`, written into this tensor, which is returned."""
    def logical_not(self, *, out: Any = ...) -> Tensor:
        """Whether it is zero."""
    def logical_not_(self, *, out: Any = ...) -> Tensor:
        """`logical_not`, written into this tensor, which is returned."""
    def logical_or(self, other: Any, *, out: Any = ...) -> Tensor:
        """Whether either is nonzero."""
    def logical_or_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`logical_or`, written into this tensor, which is returned."""
    def logical_xor(self, other: Any, *, out: Any = ...) -> Tensor:
        """Whether exactly one is nonzero."""
    def logical_xor_(self, other: Any, *, out: Any = ...) -> Tensor:
        """`logical_xor`, written into this tensor, which is returned."""
    def logit(self, eps: SupportsFloat | None = ..., *, out: Any = ...) -> Tensor:
        """``log(input / (1 - input))``, the inverse of `sigmoid`; NaN outside [0, 1]."""
    def logit_(self, eps: SupportsFloat | None = ...) -> Tensor:
        """`logit`, written into this tensor, which is returned."""
    def logsumexp(self, dim: Any, keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """``log(sum(exp(input)))`` over `dim`, relative to the largest element against overflow; -inf for no elements."""
    def long(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.int64."""
    def lt(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input < other``, elementwise."""
    def lt_(self, other: Any) -> Any:
        """`lt`, written into this tensor, which is returned."""
    def lu(self, pivot: builtins.bool = ..., get_infos: Any = ..., *, out: Any = ...) -> Any:
        """The LU factors in one matrix, the row exchanges, and with `get_infos` the first zero pivots, from `linalg.lu_factor_ex`."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = ...) -> Tensor:
        """X with ``A X = b``: `linalg.lu_solve`."""
    @property
    def mH(self) -> Any: ...
    @property
    def mT(self) -> Any: ...
    def map2_(self, x: Any, y: Any, callable: Any) -> Any:
        """Replace each element x by ``callable(x, y, z)``, with y and z from two tensors of the same dtype, broadcast."""
    def map_(self, tensor: Any, callable: Any) -> Any:
        """Replace each element x by ``callable(x, y)``, y from `tensor`, which has the same dtype and is broadcast."""
    def masked_fill(self, mask: Tensor, value: Any, *, out: Any = ...) -> Tensor:
        """`input` with `value`, a number or a 0-d tensor, wherever `mask`, a bool tensor broadcast with it, is True."""
    def masked_fill_(self, mask: Any, value: Any) -> Any:
        """Write `value` wherever `mask` is True."""
    def masked_scatter(self, mask: Tensor, source: Tensor, *, out: Any = ...) -> Tensor:
        """`input` with the elements of `source`, one after the other, where `mask` is True; the mask broadcasts."""
    def masked_scatter_(self, mask: Any, source: Any) -> Any:
        """`masked_scatter`, written into this tensor, which is returned."""
    def masked_select(self, mask: Any, *, out: Any = ...) -> Tensor:
        """The elements where `mask`, a bool tensor, is True, one after the other; the two broadcast."""
    def matmul(self, other: Tensor | np.ndarray[Any, Any], *, out: Any = ...) -> Tensor:
        """The matrix product; vectors and batches of matrices as in NumPy. ``dA = g B^T``, ``dB = A^T g``."""
    def matrix_exp(self, *, out: Any = ...) -> Tensor:
        """The exponential of square matrices, ``I + A + A A / 2 + ...``; by scaling and squaring."""
    def matrix_power(self, n: SupportsIndex, *, out: Any = ...) -> Tensor:
        """The product of n factors: `linalg.matrix_power`."""
    def max(self, *args: Any, dim: Any = ..., other: Any = ..., keepdim: builtins.bool = ..., out: Any = ...) -> Any:
        """`max(x)`: the largest element; `max(x, dim)`: ``(values, indices)`` along an axis; `max(x, y)`: as `maximum`."""
    def maximum(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The larger of two, elementwise; NaN if either is. A tie shares the gradient in halves."""
    def mean(self, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """The arithmetic mean over `dim`; NaN for no elements. Integers and bools need a `dtype`."""
    def median(self, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Any:
        """The lower median of all elements, or along `dim` with its index: ``(values, indices)``; NaN if there is one."""
    def min(self, *args: Any, dim: Any = ..., other: Any = ..., keepdim: builtins.bool = ..., out: Any = ...) -> Any:
        """`min(x)`: the smallest element; `min(x, dim)`: ``(values, indices)`` along an axis; `min(x, y)`: as `minimum`."""
    def minimum(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The smaller of two, elementwise; NaN if either is. A tie shares the gradient in halves."""
    def mm(self, mat2: Tensor, *, out: Any = ...) -> Tensor:
        """The product of two matrices."""
    def mode(self, dim: SupportsIndex = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Any:
        """The most frequent element along `dim` (the smallest at a tie) and its last index: ``(values, indices)``."""
    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Axes moved to new places, the others in their order; a view."""
    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Axes moved to new places, the others in their order; a view."""
    def msort(self, *, out: Any = ...) -> Tensor:
        """The elements in ascending order along the first axis."""
    def mul(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``input * other``, broadcast."""
    def mul_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`mul`, written into this tensor, which is returned."""
    def multinomial(self, num_samples: Any, replacement: Any = ..., *, generator: Any = ..., out: Any = ...) -> Any:
        """`num_samples` positions in each row of `input`, of one or two axes, drawn with probabilities proportional to it."""
    def multiply(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``input * other``, broadcast."""
    def multiply_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`multiply`, written into this tensor, which is returned."""
    def mv(self, vec: Tensor, *, out: Any = ...) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: SupportsIndex, *, out: Any = ...) -> Tensor:
        """The multivariate `lgamma`: ``p (p - 1) / 4 log(pi) + sum of lgamma(input - j / 2)`` over j from 0 to p - 1."""
    def mvlgamma_(self, p: SupportsIndex) -> Tensor:
        """`mvlgamma`, written into this tensor, which is returned."""
    def nan_to_num(self, nan: SupportsFloat | None = ..., posinf: SupportsFloat | None = ..., neginf: SupportsFloat | None = ..., *, out: Any = ...) -> Tensor:
        """`input` with NaN replaced by 0, and infinities by the largest and smallest numbers of the dtype."""
    def nan_to_num_(self, nan: SupportsFloat | None = ..., posinf: SupportsFloat | None = ..., neginf: SupportsFloat | None = ...) -> Tensor:
        """`nan_to_num`, written into this tensor, which is returned."""
    def nanmean(self, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """The mean over `dim` of the elements that are not NaN; NaN if all are."""
    def nanmedian(self, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Any:
        """`median` of the elements that are not NaN; NaN if all are."""
    def nanquantile(self, q: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ..., out: Any = ...) -> Tensor:
        """`quantile` of the elements that are not NaN; NaN if all are."""
    def nansum(self, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """The sum over `dim` of the elements that are not NaN; the gradient of NaN is 0."""
    def narrow(self, dim: SupportsIndex, start: Any, length: SupportsIndex) -> Tensor:
        """`length` slices along `dim` from `start`; a view."""
    def narrow_copy(self, dim: SupportsIndex, start: SupportsIndex, length: SupportsIndex, *, out: Any = ...) -> Tensor:
        """`narrow`, as a copy in new memory."""
    def ndimension(self, *, out: Any = ...) -> Any:
        """The number of axes, `dim`."""
    def ne(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input != other``, elementwise."""
    def ne_(self, other: Any) -> Any:
        """`ne`, written into this tensor, which is returned."""
    def neg(self, *, out: Any = ...) -> Tensor:
        """``-input``."""
    def neg_(self, *, out: Any = ...) -> Tensor:
        """`neg`, written into this tensor, which is returned."""
    def negative(self, *, out: Any = ...) -> Tensor:
        """``-input``."""
    def negative_(self, *, out: Any = ...) -> Tensor:
        """`negative`, written into this tensor, which is returned."""
    def new(self, *data: Any, device: Any = ...) -> Any:
        """A tensor of the dtype of this one, of a size or of values; see `tensortype`."""
    def new_empty(self, *args: Any, dtype: Any = ..., **kwargs: Any) -> Any:
        """`empty` with this tensor's dtype unless another is given."""
    def new_empty_strided(self, *args: Any, dtype: Any = ..., **kwargs: Any) -> Any:
        """`empty_strided` with this tensor's dtype unless another is given."""
    def new_full(self, *args: Any, dtype: Any = ..., **kwargs: Any) -> Any:
        """`full` with this tensor's dtype unless another is given."""
    def new_ones(self, *args: Any, dtype: Any = ..., **kwargs: Any) -> Any:
        """`ones` with this tensor's dtype unless another is given."""
    def new_tensor(self, data: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: Any = ..., **kwargs: Any) -> Any:
        """`tensor`, with the dtype and on the device of this one unless another is given."""
    def new_zeros(self, *args: Any, dtype: Any = ..., **kwargs: Any) -> Any:
        """`zeros` with this tensor's dtype unless another is given."""
    def nextafter(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """The next number of the dtype after `input`, toward `other`. Its derivative by `input` is 1."""
    def nextafter_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`nextafter`, written into this tensor, which is returned."""
    def nonzero(self, *, as_tuple: builtins.bool = ..., out: Any = ...) -> Any:
        """The positions of the elements that are not 0: a row for each or, with `as_tuple`, a tensor for each axis."""
    def nonzero_static(self, *, size: SupportsIndex, fill_value: SupportsIndex = ..., out: Any = ...) -> Tensor:
        """The first `size` rows of `nonzero`, filled up with rows of `fill_value`: the shape is known beforehand."""
    def norm(self, p: Any = ..., dim: Any = ..., keepdim: builtins.bool = ..., dtype: Any = ..., *, out: Any = ...) -> Tensor:
        """The p-norm ``(sum |x|^p)^(1/p)`` over `dim` (default: all); ``"fro"`` is p = 2, `inf` the largest modulus."""
    def normal_(self, mean: Any = ..., std: Any = ..., *, generator: Any = ...) -> Any:
        """Every element drawn from the normal distribution of `mean` and `std`."""
    def not_equal(self, other: Any, *, out: Any = ...) -> Tensor:
        """``input != other``, elementwise."""
    def not_equal_(self, other: Any) -> Any:
        """`not_equal`, written into this tensor, which is returned."""
    def orgqr(self, tau: Tensor, *, out: Any = ...) -> Tensor:
        """The first columns of a product of reflections: `linalg.householder_product`."""
    def ormqr(self, tau: Tensor, other: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """``Q other`` (or, if not `left`, ``other Q``) with the square Q of `linalg.householder_product`; with `transpose`, Q^H instead of Q."""
    def outer(self, vec2: Tensor, *, out: Any = ...) -> Tensor:
        """``out[i, j] = input[i] * vec2[j]`` of two vectors."""
    def permute(self, dims: Any, *more: Any) -> Tensor:
        """The axes in the order `dims`; a view."""
    def pin_memory(self, *, out: Any = ...) -> Tensor:
        """A copy in memory that a GPU copies from by itself, beside the host's work; the tensor itself, if it lies there."""
    def pinverse(self, rcond: SupportsFloat = ..., *, out: Any = ...) -> Tensor:
        """The pseudoinverse, in which singular values up to `rcond` times the largest count as 0: `linalg.pinv`."""
    def polygamma(self, n: Any) -> Any: ...
    def polygamma_(self, n: Any) -> Any:
        """`polygamma`, written into this tensor, which is returned."""
    def positive(self, *, out: Any = ...) -> Tensor:
        """``+input``: the tensor itself; bools are refused."""
    def pow(self, exponent: Any, *, out: Any = ...) -> Tensor:
        """``input ** exponent``, broadcast; its derivatives take their limit, 0, at exponent 0 and at base 0."""
    def pow_(self, exponent: Any, *, out: Any = ...) -> Tensor:
        """`pow`, written into this tensor, which is returned."""
    def prelu(self, weight: Tensor) -> Tensor:
        """`input` where it is positive, else ``weight * input``; one weight for all, or one for each channel (axis 1)."""
    def prod(self, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """The product over one axis, or of all elements; its derivatives are correct where elements are zero."""
    def put(self, index: Tensor, source: Tensor, accumulate: builtins.bool = ..., *, out: Any = ...) -> Tensor:
        """`input` with the elements of `source` written at flat positions, or added there if `accumulate`."""
    def put_(self, index: Any, source: Any, accumulate: Any = ...) -> Any:
        """`put`, written into this tensor, which is returned."""
    def qr(self, some: builtins.bool = ..., *, out: Any = ...) -> Any:
        """``Q`` and ``R``: `linalg.qr`; ``some=False`` is its mode "complete"."""
    def quantile(self, q: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ..., out: Any = ...) -> Tensor:
        """The `q`-th quantiles, q in [0, 1], along `dim` (default: of all elements); NaN where there is a NaN."""
    def rad2deg(self, *, out: Any = ...) -> Tensor:
        """Radians to degrees."""
    def rad2deg_(self, *, out: Any = ...) -> Tensor:
        """`rad2deg`, written into this tensor, which is returned."""
    def random_(self, *bounds: Any, generator: Any = ..., **kwargs: Any) -> Any:
        """Every element an integer drawn uniformly from [from, to); ``random_(to)`` starts at 0."""
    def ravel(self) -> Tensor:
        """All elements in one contiguous row; a view if the memory is already in this order."""
    @property
    def real(self) -> Any: ...
    @real.setter
    def real(self, value: Any) -> None: ...
    def reciprocal(self, *, out: Any = ...) -> Tensor:
        """``1 / input``."""
    def reciprocal_(self, *, out: Any = ...) -> Tensor:
        """`reciprocal`, written into this tensor, which is returned."""
    def register_hook(self, hook: Any) -> Any:
        """Call ``hook(grad)`` when this tensor's gradient is known; a result other than None replaces the gradient."""
    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call ``hook(tensor)`` after a gradient was added to this leaf's ``.grad``."""
    def relu(self, *, out: Any = ...) -> Tensor:
        """``max(input, 0)``; its derivative at 0 is 0."""
    def relu_(self, *, out: Any = ...) -> Tensor:
        """`relu`, written into this tensor, which is returned."""
    def remainder(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``input - floor(input / other) * other``; takes the sign of `other`."""
    def remainder_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`remainder`, written into this tensor, which is returned."""
    def renorm(self, p: SupportsFloat, dim: SupportsIndex, maxnorm: SupportsFloat, *, out: Any = ...) -> Tensor:
        """`input` with each slice along `dim` scaled to p-norm `maxnorm` (less 1e-7 of it) if its p-norm is larger."""
    def renorm_(self, p: SupportsFloat, dim: SupportsIndex, maxnorm: SupportsFloat) -> Tensor:
        """`renorm`, written into this tensor, which is returned."""
    def repeat(self, repeats: Any, *more: Any, out: Any = ...) -> Tensor:
        """`input` repeated along each axis by the given numbers, copy after copy; new axes are in front."""
    def repeat_interleave(self, repeats: Any, dim: Any = ..., *, output_size: Any = ...) -> Any:
        """Each element (or slice along `dim`) `repeats` times in a row; see `pullback.repeat_interleave`."""
    def reshape(self, shape: Any, *more: Any) -> Tensor:
        """`input` with another shape (one length may be -1); a view where the memory allows it, otherwise a copy."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """`reshape` to the shape of `other`."""
    def resize_(self, *size: Any, memory_format: Any = ...) -> Any:
        """Give this tensor another shape, and return it. It takes the elements of its memory, in order."""
    def resize_as_(self, the_template: Any, memory_format: Any = ...) -> Any:
        """`resize_` to the shape of another tensor; with `preserve_format`, also to its memory format."""
    def resolve_conj(self, *, out: Any = ...) -> Tensor:
        """The tensor itself: conjugates are computed at once."""
    def resolve_neg(self, *, out: Any = ...) -> Tensor:
        """The tensor itself: negatives are computed at once."""
    def retain_grad(self) -> Any:
        """Make this non-leaf keep its gradient in ``.grad``; on a leaf this does nothing."""
    def roll(self, shifts: Any, dims: Any = ..., *, out: Any = ...) -> Tensor:
        """The elements moved on by `shifts` along `dims` (default: in the flattened tensor); the last come to the front."""
    def rot90(self, k: SupportsIndex = ..., dims: Any = ..., *, out: Any = ...) -> Tensor:
        """`input` turned `k` times by 90 degrees in the plane of two axes, from the first towards the second."""
    def round(self, decimals: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """The nearest number with `decimals` decimals, halves to the even one; negative `decimals` round to tens, hundreds."""
    def round_(self, decimals: SupportsIndex = ...) -> Tensor:
        """`round`, written into this tensor, which is returned."""
    def row_indices(self) -> Any:
        """RuntimeError: only a sparse column compressed tensor has it."""
    def rsqrt(self, *, out: Any = ...) -> Tensor:
        """``1 / sqrt(input)``."""
    def rsqrt_(self, *, out: Any = ...) -> Tensor:
        """`rsqrt`, written into this tensor, which is returned."""
    def scatter(self, dim: SupportsIndex, index: Tensor, src: Any = ..., *, value: Any = ..., reduce: builtins.str | None = ..., out: Any = ...) -> Tensor:
        """``out[index[i][j]][j] = src[i][j]`` for ``dim=0``, and so on; elsewhere `input`. `src` may be a number."""
    def scatter_(self, dim: Any, index: Any, src: Any = ..., *, value: Any = ..., reduce: Any = ...) -> Any:
        """`scatter`, written into this tensor, which is returned."""
    def scatter_add(self, dim: SupportsIndex, index: Tensor, src: Tensor, *, out: Any = ...) -> Tensor:
        """``out[index[i][j]][j] += src[i][j]`` for ``dim=0``, and so on, starting with `input`; positions may repeat."""
    def scatter_add_(self, dim: Any, index: Any, src: Any) -> Any:
        """`scatter_add`, written into this tensor, which is returned."""
    def scatter_reduce(self, dim: SupportsIndex, index: Tensor, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ..., out: Any = ...) -> Tensor:
        """`input` combined with the elements of `src`, each at its position along `dim`: "sum", "prod", "mean", "amax" or "amin"; without `include_self`, only these elements, if there are any."""
    def scatter_reduce_(self, dim: Any, index: Any, src: Any, reduce: Any, *, include_self: Any = ...) -> Any:
        """`scatter_reduce`, written into this tensor, which is returned."""
    def select(self, dim: SupportsIndex, index: SupportsIndex) -> Tensor:
        """The slice at position `index` along `dim`, without that axis; a view."""
    def select_scatter(self, src: Tensor, dim: SupportsIndex, index: SupportsIndex, *, out: Any = ...) -> Tensor:
        """`input` with the slice at position `index` along `dim` replaced by `src`."""
    def set_(self, source: Any = ..., storage_offset: Any = ..., size: Any = ..., stride: Any = ...) -> Any:
        """Use the memory of `source` from now on, with its shape or the given one; without a source, no memory."""
    def sgn(self, *, out: Any = ...) -> Tensor:
        """`sign` for real numbers; for complex ones the direction ``input / |input|``, 0 at 0."""
    def sgn_(self) -> Tensor:
        """`sgn`, written into this tensor, which is returned."""
    def short(self, *, memory_format: Any = ...) -> Any:
        """The tensor as pullback.int16."""
    def sigmoid(self, *, out: Any = ...) -> Tensor:
        """``1 / (1 + exp(-input))``."""
    def sigmoid_(self, *, out: Any = ...) -> Tensor:
        """`sigmoid`, written into this tensor, which is returned."""
    def sign(self, *, out: Any = ...) -> Tensor:
        """-1, 0 or 1; 0 for NaN. Its derivative is 0."""
    def sign_(self, *, out: Any = ...) -> Tensor:
        """`sign`, written into this tensor, which is returned."""
    def signbit(self, *, out: Any = ...) -> Tensor:
        """Whether the sign bit is set: for negative numbers and -0.0."""
    def sin(self, *, out: Any = ...) -> Tensor:
        """The sine."""
    def sin_(self, *, out: Any = ...) -> Tensor:
        """`sin`, written into this tensor, which is returned."""
    def sinc(self, *, out: Any = ...) -> Tensor:
        """``sin(pi x) / (pi x)``, 1 at 0."""
    def sinc_(self, *, out: Any = ...) -> Tensor:
        """`sinc`, written into this tensor, which is returned."""
    def sinh(self, *, out: Any = ...) -> Tensor:
        """The hyperbolic sine."""
    def sinh_(self, *, out: Any = ...) -> Tensor:
        """`sinh`, written into this tensor, which is returned."""
    def slice_scatter(self, src: Tensor, dim: SupportsIndex = ..., start: SupportsIndex | None = ..., end: SupportsIndex | None = ..., step: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """`input` with the slices along `dim` from `start` to `end`, or every `step`-th of them, replaced by `src`."""
    def slogdet(self, *, out: Any = ...) -> Any:
        """The sign of the determinant and the logarithm of its modulus: `linalg.slogdet`."""
    def softmax(self, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size."""
    def sort(self, dim: SupportsIndex = ..., descending: builtins.bool = ..., *, stable: builtins.bool | None = ..., out: Any = ...) -> Any:
        """The elements in order along `dim`, and their positions before: ``(values, indices)``."""
    def sparse_dim(self, *, out: Any = ...) -> Any:
        """0: the number of axes that sparse indices run over; a dense tensor has none."""
    def sparse_mask(self, mask: Any) -> Any:
        """The elements at the places of a sparse tensor of the same shape (its values are not used); differentiable."""
    def split(self, split_size_or_sections: Any = ..., dim: SupportsIndex = ..., *, split_size: Any = ...) -> Any:
        """Consecutive pieces along `dim`: of one size (the last may be smaller), or of the sizes listed."""
    def split_with_sizes(self, split_sizes: Any, dim: SupportsIndex = ...) -> Any:
        """Consecutive pieces along `dim`, of the sizes listed."""
    def sqrt(self, *, out: Any = ...) -> Tensor:
        """The square root; NaN below 0. Derivative ``1 / (2 sqrt(x))``, infinite at 0."""
    def sqrt_(self, *, out: Any = ...) -> Tensor:
        """`sqrt`, written into this tensor, which is returned."""
    def square(self, *, out: Any = ...) -> Tensor:
        """``input ** 2``."""
    def square_(self, *, out: Any = ...) -> Tensor:
        """`square`, written into this tensor, which is returned."""
    def squeeze(self, dim: Any = ...) -> Tensor:
        """`input` without its axes of length 1, or without those among `dim`; a view."""
    def squeeze_(self, dim: Any = ...) -> Any:
        """`squeeze` in place; returns the tensor."""
    def std(self, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Any = ...) -> Tensor:
        """The standard deviation over `dim`: the square root of `var`; its gradient is 0 where all elements are equal."""
    def stft(self, n_fft: SupportsIndex, hop_length: SupportsIndex | None = ..., win_length: SupportsIndex | None = ..., window: Any = ..., center: Any = ..., pad_mode: builtins.str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: Any = ..., *, out: Any = ...) -> Tensor:
        """``X[k, t] = sum_j window[j] x[t hop + j] exp(-2 pi i j k / n_fft)``: the spectrum of a signal over time."""
    def storage_offset(self) -> Any:
        """The number of elements of its memory before the first element of this tensor."""
    def sub(self, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
        """``input - alpha * other``, broadcast."""
    def sub_(self, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
        """`sub`, written into this tensor, which is returned."""
    def subtract(self, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
        """``input - alpha * other``, broadcast."""
    def subtract_(self, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
        """`subtract`, written into this tensor, which is returned."""
    def sum(self, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
        """The sum over `dim` (an int, a tuple, or None for all); integers and bools add up in int64."""
    def sum_to_size(self, size: Any, *more: Any, out: Any = ...) -> Tensor:
        """The sum over the axes along which a tensor of this size would be expanded to the shape of `input`; `input` itself if it has this size."""
    def svd(self, some: builtins.bool = ..., compute_uv: builtins.bool = ..., *, out: Any = ...) -> Any:
        """``U``, ``S`` and ``V`` (not its conjugate transpose) of `linalg.svd`; U and V are zeros without `compute_uv`."""
    def swapaxes(self, axis0: SupportsIndex, axis1: SupportsIndex) -> Tensor:
        """`transpose` under NumPy's name."""
    def swapaxes_(self, axis0: Any, axis1: Any) -> Any:
        """`swapaxes` in place; returns the tensor."""
    def swapdims(self, dim0: SupportsIndex, dim1: SupportsIndex) -> Tensor:
        """`transpose` under another name."""
    def swapdims_(self, dim0: Any, dim1: Any) -> Any:
        """`swapdims` in place; returns the tensor."""
    def t(self) -> Tensor:
        """The transpose of a matrix; a vector or a 0-d tensor stays the same."""
    def t_(self) -> Any:
        """`t` in place; returns the tensor."""
    def take(self, index: Any, *, out: Any = ...) -> Tensor:
        """The elements at positions in the flattened tensor, negative ones from its end, in the shape of `index`."""
    def take_along_dim(self, indices: Tensor, dim: SupportsIndex | None = ..., *, out: Any = ...) -> Tensor:
        """The elements at `indices` along `dim`; the other axes broadcast. Without `dim`, from the flattened tensor."""
    def tan(self, *, out: Any = ...) -> Tensor:
        """The tangent."""
    def tan_(self, *, out: Any = ...) -> Tensor:
        """`tan`, written into this tensor, which is returned."""
    def tanh(self, *, out: Any = ...) -> Tensor:
        """The hyperbolic tangent."""
    def tanh_(self, *, out: Any = ...) -> Tensor:
        """`tanh`, written into this tensor, which is returned."""
    def tensor_split(self, indices_or_sections: Any = ..., dim: SupportsIndex = ..., *, indices: Any = ..., sections: SupportsIndex | None = ...) -> Any:
        """Pieces along `dim`: this many, the first ones longer by one if needed; or cut at the positions listed."""
    def tile(self, dims: Any, *more: Any, out: Any = ...) -> Tensor:
        """`repeat`, with missing leading numbers taken as 1."""
    def to(self, *args: Any, dtype: Any = ..., device: Any = ..., copy: builtins.bool = ..., non_blocking: builtins.bool = ..., memory_format: Any = ..., out: Any = ...) -> Tensor:
        """The tensor with another dtype (``x.to(pullback.float64)``), or with the dtype of another tensor (``x.to(y)``)."""
    def to_dense(self) -> Any:
        """The tensor itself; it is dense already."""
    def to_device(self, device: Any, *, stream: Any = ...) -> Any:
        """The tensor itself: it lies on the CPU."""
    def to_sparse(self, sparse_dim: Any = ..., *, layout: Any = ..., blocksize: Any = ..., dense_dim: Any = ...) -> Any:
        """The nonzero elements as a sparse tensor in coordinate form, or in another `layout`; differentiable."""
    def to_sparse_coo(self) -> Any:
        """The nonzero elements in coordinate form, or those of a compressed matrix; differentiable."""
    def to_sparse_csc(self, dense_dim: Any = ...) -> Any:
        """The nonzero elements of a matrix, compressed by columns; differentiable. dense_dim: the axes of each value."""
    def to_sparse_csr(self, dense_dim: Any = ...) -> Any:
        """The nonzero elements of a matrix, compressed by rows; differentiable. dense_dim: the axes of each value."""
    def topk(self, k: SupportsIndex, dim: SupportsIndex = ..., largest: builtins.bool = ..., sorted: builtins.bool = ..., *, out: Any = ...) -> Any:
        """The `k` largest (or smallest) elements along `dim` and their indices, the best first: ``(values, indices)``."""
    def trace(self, *, out: Any = ...) -> Tensor:
        """The sum of the diagonal of a matrix; integers add up in int64."""
    def transpose(self, dim0: SupportsIndex, dim1: SupportsIndex) -> Tensor:
        """Axes `dim0` and `dim1` exchanged; a view."""
    def transpose_(self, dim0: Any, dim1: Any) -> Any:
        """`transpose` in place; returns the tensor."""
    def triangular_solve(self, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ..., *, out: Any = ...) -> Any:
        """``solution``, the X with ``A X = b`` for a triangular A (``A^T X = b`` with `transpose`), and a copy of A: `linalg.solve_triangular`."""
    def tril(self, diagonal: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """The part on and below a diagonal, zeros elsewhere."""
    def tril_(self, diagonal: Any = ...) -> Any:
        """`tril`, written into this tensor, which is returned."""
    def triu(self, diagonal: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
        """The part on and above a diagonal, zeros elsewhere."""
    def triu_(self, diagonal: Any = ...) -> Any:
        """`triu`, written into this tensor, which is returned."""
    def true_divide(self, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
        """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
    def true_divide_(self, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
        """`true_divide`, written into this tensor, which is returned."""
    def trunc(self, *, out: Any = ...) -> Tensor:
        """The integer part: rounded toward 0."""
    def trunc_(self, *, out: Any = ...) -> Tensor:
        """`trunc`, written into this tensor, which is returned."""
    def type(self, dtype: Any = ..., non_blocking: Any = ...) -> Any:
        """The tensor with another dtype; without an argument, its deprecated name, such as "pullback.FloatTensor"."""
    def type_as(self, other: Any) -> Any:
        """The tensor with the dtype of `other`."""
    def unbind(self, dim: SupportsIndex = ...) -> Any:
        """The slices along `dim`, without that axis."""
    def unflatten(self, dim: SupportsIndex, sizes: Any) -> Tensor:
        """Axis `dim` divided into several, of lengths `sizes`; one of them may be -1."""
    def unfold(self, dimension: SupportsIndex, size: SupportsIndex, step: SupportsIndex) -> Tensor:
        """Windows of `size` elements along an axis, one every `step` elements, as a new last axis; a view."""
    def uniform_(self, *bounds: Any, generator: Any = ..., **kwargs: Any) -> Any:
        """Every element drawn uniformly from [from, to), by default [0, 1)."""
    def unique(self, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: Any = ..., *, out: Any = ...) -> Any:
        """The distinct elements (or slices along `dim`) in order; on request, with positions and counts."""
    def unique_consecutive(self, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: Any = ..., *, out: Any = ...) -> Any:
        """The first of each run of equal elements (or slices along `dim`), in the order of the input; see `unique`."""
    def unsafe_chunk(self, chunks: SupportsIndex, dim: SupportsIndex = ..., *, out: Any = ...) -> Any:
        """`chunk` into pieces that may be written to, as in `unsafe_split`."""
    def unsafe_split(self, split_size: SupportsIndex, dim: SupportsIndex = ..., *, out: Any = ...) -> Any:
        """`split` into pieces that may be written to. Do not use `input` or other pieces afterwards: this is unchecked."""
    def unsafe_split_with_sizes(self, split_sizes: Any, dim: SupportsIndex = ..., *, out: Any = ...) -> Any:
        """`split_with_sizes` into pieces that may be written to, as in `unsafe_split`."""
    def unsqueeze(self, dim: SupportsIndex) -> Tensor:
        """An axis of length 1 inserted at `dim`; a view."""
    def unsqueeze_(self, dim: Any) -> Any:
        """`unsqueeze` in place; returns the tensor."""
    def values(self) -> Any:
        """RuntimeError: only a sparse tensor has it."""
    def var(self, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Any = ...) -> Tensor:
        """The variance over `dim`: squared deviations from the mean, summed, over ``n - correction``."""
    def vdot(self, other: Tensor, *, out: Any = ...) -> Tensor:
        """The product of two vectors, the first of them conjugated: ``sum(conj(input) * other)``."""
    def view(self, size: Any = ..., *more: Any, dtype: Any = ...) -> Tensor:
        """As `reshape`, but always on the same memory; RuntimeError if that is not possible."""
    def view_as(self, other: Tensor) -> Tensor:
        """`view` with the shape of `other`."""
    def vsplit(self, indices_or_sections: Any) -> Any:
        """`tensor_split` along the first axis of a tensor with two or more."""
    def where(self, condition: Any, other: Any) -> Any:
        """This tensor where `condition` holds, else `other`."""
    def xlogy(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """``input * log(other)``, and 0 where `input` is 0, unless `other` is NaN."""
    def xlogy_(self, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
        """`xlogy`, written into this tensor, which is returned."""
    def zero_(self) -> Any:
        """Set every element to 0."""

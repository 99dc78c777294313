# Made from the table of operations by `pullback ops --stubs`; do not edit.
import builtins
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from .tensor.tensor import Tensor as Tensor
_Other = builtins.complex | np.ndarray[Any, Any] | np.generic
from . import array_api as array_api, autograd as autograd, fft as fft, func as func, linalg as linalg, ops as ops, special as special
from .autograd import enable_grad as enable_grad, inference_mode as inference_mode, is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled, is_grad_enabled as is_grad_enabled, is_inference_mode_enabled as is_inference_mode_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled
from .compat.typed import BFloat16Tensor as BFloat16Tensor, BoolTensor as BoolTensor, ByteTensor as ByteTensor, CharTensor as CharTensor, DoubleTensor as DoubleTensor, FloatTensor as FloatTensor, HalfTensor as HalfTensor, IntTensor as IntTensor, LongTensor as LongTensor, ShortTensor as ShortTensor
from .compile import compile as compile, get_num_threads as get_num_threads, set_num_threads as set_num_threads
from .errors import OutOfMemoryError as OutOfMemoryError
from .func import vmap as vmap
from .ops.elementwise.close import is_tensor as is_tensor
from .ops.make.conversion import channels_last as channels_last, channels_last_3d as channels_last_3d, contiguous_format as contiguous_format, memory_format as memory_format, preserve_format as preserve_format
from .ops.make.from_data import as_tensor as as_tensor, from_numpy as from_numpy, tensor as tensor
from .ops.make.generators import Generator as Generator, default_generator as default_generator, manual_seed as manual_seed
from .ops.make.of_size import arange as arange, empty as empty, empty_like as empty_like, eye as eye, full as full, full_like as full_like, linspace as linspace, ones as ones, ones_like as ones_like, zeros as zeros, zeros_like as zeros_like
from .ops.make.random import rand as rand, rand_like as rand_like, randint as randint, randint_like as randint_like, randn as randn, randn_like as randn_like, randperm as randperm
from .ops.sparse import namespace as sparse
from .ops.sparse.compressed import sparse_compressed_tensor as sparse_compressed_tensor, sparse_csc_tensor as sparse_csc_tensor, sparse_csr_tensor as sparse_csr_tensor
from .ops.sparse.namespace import sparse_coo_tensor as sparse_coo_tensor
from .ops.sparse.pattern import layout as layout, sparse_coo as sparse_coo, sparse_csc as sparse_csc, sparse_csr as sparse_csr, strided as strided
from .tensor import overrides as overrides
from .tensor.dtypes import bfloat16 as bfloat16, bool as bool, can_cast as can_cast, cdouble as cdouble, cfloat as cfloat, complex64 as complex64, complex128 as complex128, device as device, double as double, dtype as dtype, finfo as finfo, float as float, float16 as float16, float32 as float32, float64 as float64, get_default_device as get_default_device, get_default_dtype as get_default_dtype, half as half, iinfo as iinfo, int as int, int8 as int8, int16 as int16, int32 as int32, int64 as int64, long as long, promote_types as promote_types, set_default_device as set_default_device, set_default_dtype as set_default_dtype, short as short, uint8 as uint8, uint16 as uint16, uint32 as uint32, uint64 as uint64
from .tensor.gpu import AcceleratorError as AcceleratorError
from .tensor.memory import Size as Size
from .tensor.printing import printoptions as printoptions, set_printoptions as set_printoptions
__version__: Any
inf: Any
nan: Any
pi: Any
e: Any
newaxis: Any
from .compat.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from .compat.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from .compat.settings import get_float32_matmul_precision as get_float32_matmul_precision
from .compat.settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from .compat.settings import is_warn_always_enabled as is_warn_always_enabled
from .compat.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from .compat.settings import set_float32_matmul_precision as set_float32_matmul_precision
from .compat.settings import set_warn_always as set_warn_always
from .compat.settings import use_deterministic_algorithms as use_deterministic_algorithms
from .compat import backends as backends
from . import bridge as bridge
from . import cuda as cuda
from .func.custom_rules import custom_jvp as custom_jvp
from .func.custom_rules import custom_vjp as custom_vjp
from . import distributed as distributed
from .compat import distributions as distributions
from . import inspect as inspect
from .inspect import explain as explain
from .ops import masked as masked
from . import nn as nn
from . import optim as optim
from . import random as random
from . import return_types as return_types
from . import serialization as serialization
from .serialization import load as load
from .serialization import save as save
from . import testing as testing
from . import utils as utils
def abs(input: Tensor, *, out: Any = ...) -> Tensor:
    """The absolute value; for complex numbers the modulus, a real tensor. The derivative at 0 is 0."""
def abs_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`abs`, written into this tensor, which is returned."""
def absolute(input: Tensor, *, out: Any = ...) -> Tensor:
    """The absolute value; for complex numbers the modulus, a real tensor. The derivative at 0 is 0."""
def absolute_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`absolute`, written into this tensor, which is returned."""
def acos(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the cosine, from 0 to pi; NaN outside [-1, 1]."""
def acos_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`acos`, written into this tensor, which is returned."""
def acosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic cosine; NaN below 1."""
def acosh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`acosh`, written into this tensor, which is returned."""
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The average of each of `output_size` windows that cover the last axis evenly."""
def add(input: Tensor | _Other, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """``input + alpha * other``, broadcast."""
def add_(input: Tensor | _Other, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """`add`, written into this tensor, which is returned."""
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * sum_b (batch1[b] @ batch2[b])``; `input` is broadcast."""
def addbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`addbmm`, written into this tensor, which is returned."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = ..., out: Any = ...) -> Tensor:
    """``input + value * tensor1 / tensor2``, broadcast; not for integers."""
def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
    """`addcdiv`, written into this tensor, which is returned."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = ..., out: Any = ...) -> Tensor:
    """``input + value * tensor1 * tensor2``, broadcast."""
def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = ...) -> Tensor:
    """`addcmul`, written into this tensor, which is returned."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``; `input` is broadcast."""
def addmm_(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`addmm`, written into this tensor, which is returned."""
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``; `input` is broadcast."""
def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`addmv`, written into this tensor, which is returned."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; `input` is broadcast."""
def addr_(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`addr`, written into this tensor, which is returned."""
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix, or of each in a batch: the last two axes exchanged; a view if real."""
def all(input: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Whether all of the elements are nonzero, over `dim` (default: all elements); bool, no derivative."""
def allclose(input: Tensor, other: Tensor, rtol: SupportsFloat = ..., atol: SupportsFloat = ..., equal_nan: builtins.bool = ..., *, out: Any = ...) -> Any:
    """Whether all elements are close, in the sense of `isclose`."""
def amax(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """The largest element over `dim` (default: all); ties share the gradient evenly."""
def amin(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """The smallest element over `dim` (default: all); ties share the gradient evenly."""
def aminmax(input: Tensor, *, dim: Any = ..., keepdim: builtins.bool = ..., out: Any = ...) -> Any:
    """The smallest and the largest element along `dim` (default: of all), as ``(min, max)``; ties share evenly."""
def angle(input: Tensor, *, out: Any = ...) -> Tensor:
    """The angle of a complex number, from -pi to pi; for a real number 0, or pi below 0. Its derivative at 0 is 0."""
def any(input: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Whether any of the elements is nonzero, over `dim` (default: all elements); bool, no derivative."""
def arccos(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the cosine, from 0 to pi; NaN outside [-1, 1]."""
def arccos_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`arccos`, written into this tensor, which is returned."""
def arccosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic cosine; NaN below 1."""
def arccosh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`arccosh`, written into this tensor, which is returned."""
def arcsin(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the sine, from -pi/2 to pi/2; NaN outside [-1, 1]."""
def arcsin_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`arcsin`, written into this tensor, which is returned."""
def arcsinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic sine."""
def arcsinh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`arcsinh`, written into this tensor, which is returned."""
def arctan(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the tangent, from -pi/2 to pi/2."""
def arctan2(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The angle, from -pi to pi, of the point with coordinates `other` and `input`; at the origin its derivative is 0."""
def arctan2_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`arctan2`, written into this tensor, which is returned."""
def arctan_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`arctan`, written into this tensor, which is returned."""
def arctanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""
def arctanh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`arctanh`, written into this tensor, which is returned."""
def argmax(input: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """The index of the (first) largest element, in the flattened tensor or along `dim`; int64, no derivative."""
def argmin(input: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """The index of the (first) smallest element, in the flattened tensor or along `dim`; int64, no derivative."""
def argsort(input: Any, dim: SupportsIndex = ..., descending: builtins.bool = ..., *, stable: builtins.bool | None = ..., out: Any = ...) -> Tensor:
    """The positions that sort along `dim`: the indices of `sort`; int64, no derivative."""
def argwhere(input: Tensor, *, out: Any = ...) -> Tensor:
    """`nonzero` under NumPy's name."""
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: SupportsIndex | None = ...) -> Tensor:
    """A view of the memory behind `input` with any size and strides, counted in elements; its elements may overlap."""
def as_strided_(self: Any, size: Any, stride: Any, storage_offset: Any = ...) -> Any:
    """`as_strided` in place; returns the tensor."""
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: SupportsIndex | None = ..., *, out: Any = ...) -> Tensor:
    """`input` with the elements that `as_strided` selects, each of them once, replaced by `src`."""
def asarray(obj: Any, *, dtype: Any = ..., device: Any = ..., copy: Any = ..., requires_grad: Any = ...) -> Any:
    """`obj` as a tensor: a tensor, an array, a DLPack tensor or a buffer share their memory, the rest is copied."""
def asin(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the sine, from -pi/2 to pi/2; NaN outside [-1, 1]."""
def asin_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`asin`, written into this tensor, which is returned."""
def asinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic sine."""
def asinh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`asinh`, written into this tensor, which is returned."""
def atan(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the tangent, from -pi/2 to pi/2."""
def atan2(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The angle, from -pi to pi, of the point with coordinates `other` and `input`; at the origin its derivative is 0."""
def atan2_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`atan2`, written into this tensor, which is returned."""
def atan_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`atan`, written into this tensor, which is returned."""
def atanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""
def atanh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`atanh`, written into this tensor, which is returned."""
def atleast_1d(*tensors: Any) -> Any:
    """The tensor; if it is 0-d, with one axis of length 1. A tuple for several tensors or a sequence of them."""
def atleast_2d(*tensors: Any) -> Any:
    """The tensor with two axes or more, new ones in front. A tuple for several tensors or a sequence of them."""
def atleast_3d(*tensors: Any) -> Any:
    """The tensor with three axes or more: new ones before and after a vector's axis, and after a matrix's axes."""
def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """The average of each window along the last axis of ``(N, C, L)`` or ``(C, L)``."""
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * (batch1[b] @ batch2[b])`` for each b; `input` is broadcast."""
def baddbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`baddbmm`, written into this tensor, which is returned."""
def bartlett_window(window_length: Any, periodic: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``1 - |2 x - 1|`` for x from 0 to 1: a triangle."""
def bernoulli(input: Any, p: Any = ..., *, generator: Any = ..., out: Any = ...) -> Any:
    """1 with the probability in each element of `input` (or with probability `p`), else 0, in the dtype of `input`."""
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ...) -> Tensor:
    """``out[..., o] = input1 @ weight[o] @ input2 + bias[o]``."""
def bincount(input: Any, weights: Any = ..., minlength: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The counts of 0, 1, 2... in `input`, a vector of integers; or the sums of the `weights` there."""
def bitwise_and(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input & other``, of bools and integers."""
def bitwise_and_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`bitwise_and`, written into this tensor, which is returned."""
def bitwise_left_shift(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input << other``, of integers; 0 when all bits have been shifted out."""
def bitwise_left_shift_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`bitwise_left_shift`, written into this tensor, which is returned."""
def bitwise_not(input: Any, *, out: Any = ...) -> Tensor:
    """``~input``, of bools and integers."""
def bitwise_not_(input: Any, *, out: Any = ...) -> Tensor:
    """`bitwise_not`, written into this tensor, which is returned."""
def bitwise_or(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input | other``, of bools and integers."""
def bitwise_or_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`bitwise_or`, written into this tensor, which is returned."""
def bitwise_right_shift(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input >> other``, of integers: rounded down, and 0 or -1 when all bits have been shifted out."""
def bitwise_right_shift_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`bitwise_right_shift`, written into this tensor, which is returned."""
def bitwise_xor(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input ^ other``, of bools and integers."""
def bitwise_xor_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`bitwise_xor`, written into this tensor, which is returned."""
def blackman_window(window_length: Any, periodic: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)`` for x from 0 to 1."""
def block_diag(*tensors: Any, out: Any = ...) -> Tensor:
    """The matrices along the diagonal of a larger one, zeros elsewhere; a 1-D tensor is a row."""
def bmm(input: Tensor, mat2: Tensor, *, out: Any = ...) -> Tensor:
    """The products of two stacks of matrices, pair by pair."""
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that arrays of these shapes broadcast to."""
def broadcast_tensors(*tensors: Any) -> Any:
    """The tensors, each expanded (without a copy) to the shape they all broadcast to."""
def broadcast_to(input: Tensor, size: Any, *more: Any) -> Tensor:
    """`expand` under NumPy's name."""
def bucketize(input: Any, boundaries: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., out: Any = ...) -> Tensor:
    """The bucket of each element: the number of sorted `boundaries` that are smaller (``right=True``: not larger)."""
def cartesian_prod(*tensors: Any, out: Any = ...) -> Tensor:
    """All choices of one element from each tensor, as rows; for a single tensor, the tensor itself."""
def cat(tensors: Any, dim: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The tensors one after the other along `dim`. Empty 1-D tensors are skipped, as in torch."""
def cdist(x1: Tensor, x2: Tensor, p: SupportsFloat = ..., compute_mode: builtins.str = ..., *, out: Any = ...) -> Tensor:
    """The p-norms of the differences of every row of `x1` and every row of `x2`, p >= 0; batches broadcast."""
def ceil(input: Tensor, *, out: Any = ...) -> Tensor:
    """The smallest integer from `input` on."""
def ceil_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`ceil`, written into this tensor, which is returned."""
def celu(input: Tensor, alpha: SupportsFloat = ..., inplace: Any = ...) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input / alpha) - 1)`` (Barron 2017, arXiv:1704.07483)."""
def celu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`celu`, written into `input`, which is returned."""
def chain_matmul(*matrices: Any, out: Any = ...) -> Tensor:
    """The product of matrices, in the cheapest order; the older form of `linalg.multi_dot`."""
def channel_shuffle(input: Tensor, groups: SupportsIndex) -> Tensor:
    """The channels (the second axis) divided into groups, and taken from each group in turn."""
def cholesky(input: Tensor, upper: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """The Cholesky factor: `linalg.cholesky`."""
def cholesky_inverse(L: Tensor, upper: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """The inverse of ``L L^H``, or of ``L^H L`` if `upper`; of the Cholesky factor L only that triangle is read."""
def cholesky_solve(B: Tensor, L: Tensor, upper: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """X with ``L L^H X = B``, or ``L^H L X = B`` if `upper`; of the Cholesky factor L only that triangle is read."""
def chunk(input: Tensor, chunks: SupportsIndex, dim: SupportsIndex = ...) -> Any:
    """At most `chunks` consecutive pieces of equal size along `dim`; the last may be smaller."""
def clamp(input: Tensor | _Other, min: Tensor | _Other | None = ..., max: Tensor | _Other | None = ..., *, out: Any = ...) -> Tensor:
    """`input` limited to ``[min, max]``, numbers or tensors; the gradient passes at the bounds themselves."""
def clamp_(input: Tensor | _Other, min: Tensor | _Other | None = ..., max: Tensor | _Other | None = ...) -> Tensor:
    """`clamp`, written into this tensor, which is returned."""
def clamp_max(input: Tensor | _Other, max: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`input`, or `max` where that is smaller; at a tie `input` gets the gradient."""
def clamp_max_(input: Tensor | _Other, max: Tensor | _Other) -> Tensor:
    """`clamp_max`, written into this tensor, which is returned."""
def clamp_min(input: Tensor | _Other, min: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`input`, or `min` where that is larger; at a tie `input` gets the gradient."""
def clamp_min_(input: Tensor | _Other, min: Tensor | _Other) -> Tensor:
    """`clamp_min`, written into this tensor, which is returned."""
def clip(input: Tensor | _Other, min: Tensor | _Other | None = ..., max: Tensor | _Other | None = ..., *, out: Any = ...) -> Tensor:
    """`input` limited to ``[min, max]``, numbers or tensors; the gradient passes at the bounds themselves."""
def clip_(input: Tensor | _Other, min: Tensor | _Other | None = ..., max: Tensor | _Other | None = ...) -> Tensor:
    """`clip`, written into this tensor, which is returned."""
def clone(input: Tensor, *, memory_format: Any = ..., out: Any = ...) -> Tensor:
    """A copy in new memory, with the same order of axes unless a `memory_format` is given; differentiable."""
def column_stack(tensors: Any, *, out: Any = ...) -> Tensor:
    """As `hstack`, but a tensor with at most one axis is a column."""
def combinations(input: Tensor, r: SupportsIndex = ..., with_replacement: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """All choices of `r` elements, in order, as rows."""
def complex(real: Tensor, imag: Any, *, out: Any = ...) -> Tensor:
    """``real + i imag`` from two tensors of float32 (gives complex64) or float64 (complex128)."""
def concat(tensors: Any, dim: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """`cat` under another name."""
def concatenate(tensors: Any, axis: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """`cat` under NumPy's name."""
def conj(input: Tensor, *, out: Any = ...) -> Tensor:
    """The complex conjugate, in new memory; a real tensor is returned unchanged."""
def conj_physical(input: Tensor, *, out: Any = ...) -> Tensor:
    """The complex conjugate, as `conj`."""
def conj_physical_(input: Tensor) -> Tensor:
    """`conj_physical`, written into this tensor, which is returned."""
def constant_pad_nd(input: Tensor, pad: Any, value: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` with borders of `value`: `pad` holds their lengths, the last axis first; negative ones cut off."""
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: SupportsIndex = ...) -> Tensor:
    """``out[n, o, l] = bias[o] + sum over c, k of weight[o, c, k] * input[n, c, stride * l - padding + dilation * k]``."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: SupportsIndex = ...) -> Tensor:
    """The convolution of `conv1d` along two axes: ``(N, C, H, W)`` and ``(O, C / groups, K, L)``."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: SupportsIndex = ...) -> Tensor:
    """The convolution of `conv1d` along three axes: ``(N, C, D, H, W)`` and ``(O, C / groups, J, K, L)``."""
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: SupportsIndex = ...) -> Tensor:
    """`conv1d` of ``(L, N, C)`` with a weight ``(K, C, O)``: time first, channels last."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: SupportsIndex = ..., dilation: Any = ...) -> Tensor:
    """The adjoint of `conv1d` in its input: each element of `input` adds the weight, times itself, to the output."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: SupportsIndex = ..., dilation: Any = ...) -> Tensor:
    """The transposed convolution of `conv_transpose1d` along two axes."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: SupportsIndex = ..., dilation: Any = ...) -> Tensor:
    """The transposed convolution of `conv_transpose1d` along three axes."""
def copysign(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``|input|`` with the sign of `other`; at 0 and by `other` the derivative is 0."""
def copysign_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`copysign`, written into this tensor, which is returned."""
def corrcoef(input: Tensor, *, out: Any = ...) -> Tensor:
    """Pearson's correlation coefficients of variables (the rows of `input`): ``cov[i, j] / (std[i] std[j])``."""
def cos(input: Tensor, *, out: Any = ...) -> Tensor:
    """The cosine."""
def cos_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`cos`, written into this tensor, which is returned."""
def cosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The hyperbolic cosine."""
def cosh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`cosh`, written into this tensor, which is returned."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: SupportsIndex = ..., eps: SupportsFloat = ...) -> Tensor:
    """The cosine of the angle between vectors along `dim`: ``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))``."""
def count_nonzero(input: Any, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """The number of nonzero elements, over `dim` (default: all elements); int64, no derivative."""
def cov(input: Tensor, *, correction: SupportsIndex = ..., fweights: Any = ..., aweights: Any = ..., out: Any = ...) -> Tensor:
    """The covariances of variables (the rows of `input`) over observations (its columns); for a vector, the variance."""
def cross(input: Tensor, other: Tensor, dim: SupportsIndex | None = ..., *, out: Any = ...) -> Tensor:
    """The cross product along `dim`, or along the first dimension of size 3: `linalg.cross`."""
def cummax(input: Tensor, dim: SupportsIndex, *, out: Any = ...) -> Any:
    """The largest so far along `dim`, and its last position: ``(values, indices)``; NaN from the first NaN on."""
def cummin(input: Tensor, dim: SupportsIndex, *, out: Any = ...) -> Any:
    """The smallest so far along `dim`, and its last position: ``(values, indices)``; NaN from the first NaN on."""
def cumprod(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The running product along `dim`; its derivatives are correct where elements are zero."""
def cumprod_(input: Tensor, dim: SupportsIndex, *, dtype: Any = ...) -> Tensor:
    """`cumprod`, written into this tensor, which is returned."""
def cumsum(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The running sum along `dim`; integers and bools add up in int64."""
def cumsum_(input: Tensor, dim: SupportsIndex, *, dtype: Any = ...) -> Tensor:
    """`cumsum`, written into this tensor, which is returned."""
def cumulative_trapezoid(y: Tensor, x: Any = ..., *, dx: Any = ..., dim: SupportsIndex = ..., out: Any = ...) -> Tensor:
    """The integral up to each sample of `y` but the first; see `trapezoid`."""
def deg2rad(input: Tensor, *, out: Any = ...) -> Tensor:
    """Degrees to radians."""
def deg2rad_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`deg2rad`, written into this tensor, which is returned."""
def det(input: Tensor, *, out: Any = ...) -> Tensor:
    """The determinant: `linalg.det`."""
def detach(input: Any) -> Any:
    """`Tensor.detach`: a tensor on the same memory that is not part of the graph."""
def detach_(input: Any) -> Any:
    """`Tensor.detach_`: the tensor itself, taken out of the graph."""
def diag(input: Tensor, diagonal: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix, as a copy."""
def diag_embed(input: Tensor, offset: SupportsIndex = ..., dim1: SupportsIndex = ..., dim2: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """Matrices with the last axis of `input` on their diagonals, zeros elsewhere."""
def diagflat(input: Tensor, offset: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The matrix with the elements of `input`, flattened, on its diagonal."""
def diagonal(input: Tensor, offset: SupportsIndex = ..., dim1: SupportsIndex = ..., dim2: SupportsIndex = ...) -> Tensor:
    """The elements ``[i, i + offset]`` of the axes `dim1` and `dim2`, as the last axis; a view."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: SupportsIndex = ..., dim1: SupportsIndex = ..., dim2: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """`input` with its `diagonal` replaced by `src`."""
def diff(input: Tensor, n: SupportsIndex = ..., dim: SupportsIndex = ..., prepend: Any = ..., append: Any = ..., *, out: Any = ...) -> Tensor:
    """``input[i + 1] - input[i]`` along `dim`, `n` times; for bools, whether they differ."""
def digamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """The derivative of `lgamma`."""
def digamma_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`digamma`, written into this tensor, which is returned."""
def dist(input: Tensor, other: Tensor, p: Any = ..., *, out: Any = ...) -> Tensor:
    """The p-norm of the difference, ``norm(input - other, p)``. For equal tensors, it and its gradient are 0."""
def div(input: Tensor | _Other, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
def div_(input: Tensor | _Other, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """`div`, written into this tensor, which is returned."""
def divide(input: Tensor | _Other, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
def divide_(input: Tensor | _Other, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """`divide`, written into this tensor, which is returned."""
def dot(input: Tensor, tensor: Tensor, *, out: Any = ...) -> Tensor:
    """The product of two vectors, not conjugated."""
def dsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """`tensor_split` along the third axis."""
def dstack(tensors: Any, *, out: Any = ...) -> Tensor:
    """The tensors one behind the other: along the third axis."""
def einsum(*args: Any, out: Any = ...) -> Tensor:
    """The sum of products that an equation describes: ``einsum("ij,jk->ik", a, b)`` is the matrix product."""
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """Uninitialised memory of shape `size`, with the axes in the order `physical_layout`, outermost first."""
def empty_strided(size: Any, stride: Any, *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """Uninitialised memory of shape `size`, with neighbours along each axis `stride` elements apart."""
def eq(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input == other``, elementwise."""
def eq_(input: Any, other: Any) -> Any:
    """`eq`, written into this tensor, which is returned."""
def equal(input: Tensor, other: Tensor, *, out: Any = ...) -> Any:
    """Whether two tensors have the same shape and the same elements; NaN equals no number."""
def erf(input: Tensor, *, out: Any = ...) -> Tensor:
    """``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `input`."""
def erf_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`erf`, written into this tensor, which is returned."""
def erfc(input: Tensor, *, out: Any = ...) -> Tensor:
    """``1 - erf(input)``, exact for large numbers."""
def erfc_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`erfc`, written into this tensor, which is returned."""
def erfinv(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of `erf`, infinite at -1 and 1, NaN beyond."""
def erfinv_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`erfinv`, written into this tensor, which is returned."""
def exp(input: Tensor, *, out: Any = ...) -> Tensor:
    """``e ** input``."""
def exp2(input: Tensor, *, out: Any = ...) -> Tensor:
    """``2 ** input``."""
def exp2_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`exp2`, written into this tensor, which is returned."""
def exp_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`exp`, written into this tensor, which is returned."""
def expm1(input: Tensor, *, out: Any = ...) -> Tensor:
    """``exp(input) - 1``, exact near 0."""
def expm1_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`expm1`, written into this tensor, which is returned."""
def fill(input: Any, value: Any) -> Any:
    """`value`, a number or a 0-d tensor, in the shape and dtype of `input`; gradients flow to a 0-d tensor."""
def fill_(self: Any, value: Any) -> Any:
    """Set every element to `value`, a number or a 0-d tensor."""
def fix(input: Tensor, *, out: Any = ...) -> Tensor:
    """The integer part: rounded toward 0."""
def fix_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`fix`, written into this tensor, which is returned."""
def flatten(input: Tensor, start_dim: SupportsIndex = ..., end_dim: SupportsIndex = ...) -> Tensor:
    """Axes `start_dim` to `end_dim`, both included, joined into one; the tensor itself for a single axis."""
def flip(input: Tensor, dims: Any, *more: Any, out: Any = ...) -> Tensor:
    """`input` with the order along `dims` reversed; a copy."""
def fliplr(input: Tensor, *, out: Any = ...) -> Tensor:
    """`input` with the order along the second axis reversed."""
def flipud(input: Tensor, *, out: Any = ...) -> Tensor:
    """`input` with the order along the first axis reversed."""
def float_power(input: Any, exponent: Any, *, out: Any = ...) -> Tensor:
    """``input ** exponent`` in double precision, whatever the dtypes."""
def float_power_(input: Any, exponent: Any) -> Tensor:
    """`float_power`, written into this tensor, which is returned."""
def floor(input: Tensor, *, out: Any = ...) -> Tensor:
    """The largest integer up to `input`."""
def floor_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`floor`, written into this tensor, which is returned."""
def floor_divide(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``floor(input / other)``; its derivative is 0."""
def floor_divide_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`floor_divide`, written into this tensor, which is returned."""
def fmax(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The larger of two, elementwise; if one is NaN, the other. At a tie the first gets the gradient."""
def fmin(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The smaller of two, elementwise; if one is NaN, the other. At a tie the first gets the gradient."""
def fmod(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``input - trunc(input / other) * other``; takes the sign of `input`."""
def fmod_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`fmod`, written into this tensor, which is returned."""
def frac(input: Tensor, *, out: Any = ...) -> Tensor:
    """``input - trunc(input)``, with the sign of `input`."""
def frac_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`frac`, written into this tensor, which is returned."""
def frexp(input: Tensor, *, out: Any = ...) -> Any:
    """Mantissa and exponent: ``input = mantissa * 2 ** exponent`` with ``0.5 <= |mantissa| < 1``."""
def from_dlpack(ext_tensor: Any, *, device: Any = ..., copy: Any = ...) -> Any:
    """A tensor on the memory of another library's tensor, by the DLPack protocol."""
def frombuffer(buffer: Any, *, dtype: Any, count: Any = ..., offset: Any = ..., requires_grad: Any = ...) -> Any:
    """A 1-d tensor on the memory of a buffer (Python's protocol): `count` elements (-1: all) from byte `offset` on."""
def gather(input: Tensor, dim: SupportsIndex, index: Any, *, sparse_grad: builtins.bool = ..., out: Any = ...) -> Tensor:
    """``out[i][j] = input[index[i][j]][j]`` for ``dim=0``, and so on: one element along `dim` for each position."""
def gcd(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The greatest common divisor of integers."""
def gcd_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`gcd`, written into this tensor, which is returned."""
def ge(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input >= other``, elementwise."""
def ge_(input: Any, other: Any) -> Any:
    """`ge`, written into this tensor, which is returned."""
def geqrf(input: Tensor, *, out: Any = ...) -> Any:
    """The result of LAPACK's routine of that name: R above and the reflections below the diagonal of ``a``, with their ``tau``; it has no derivative. `linalg.householder_product` computes Q from both."""
def ger(input: Tensor, vec2: Tensor, *, out: Any = ...) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]`` of two vectors."""
def get_device(input: Tensor, *, out: Any = ...) -> Any:
    """-1: no accelerator; all tensors lie in the host's memory."""
def get_rng_state() -> Any:
    """The position of the default generator, as a uint8 tensor."""
def gradient(input: Tensor, *, spacing: Any = ..., dim: Any = ..., edge_order: SupportsIndex = ..., out: Any = ...) -> Any:
    """The derivatives along each of `dim` of the function that `input` samples, by second-order differences."""
def greater(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input > other``, elementwise."""
def greater_(input: Any, other: Any) -> Any:
    """`greater`, written into this tensor, which is returned."""
def greater_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input >= other``, elementwise."""
def greater_equal_(input: Any, other: Any) -> Any:
    """`greater_equal`, written into this tensor, which is returned."""
def group_norm(input: Tensor, num_groups: SupportsIndex, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: SupportsFloat = ...) -> Tensor:
    """The channels of ``(N, C, ...)`` in `num_groups` groups with mean 0 and variance 1; then a scale and a shift."""
def gt(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input > other``, elementwise."""
def gt_(input: Any, other: Any) -> Any:
    """`gt`, written into this tensor, which is returned."""
def hamming_window(window_length: Any, periodic: Any = ..., alpha: Any = ..., beta: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``alpha - beta cos(2 pi x)`` for x from 0 to 1."""
def hann_window(window_length: Any, periodic: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``(1 - cos(2 pi x)) / 2`` for x from 0 to 1."""
def hardshrink(input: Tensor, lambd: SupportsFloat = ...) -> Tensor:
    """`input` where ``|input| > lambd``, else 0."""
def heaviside(input: Tensor | _Other, values: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """0 where `input` is negative or NaN, 1 where it is positive, `values` where it is 0 (they get the gradient)."""
def heaviside_(input: Tensor | _Other, values: Tensor | _Other) -> Tensor:
    """`heaviside`, written into this tensor, which is returned."""
def histc(input: Any, bins: SupportsIndex = ..., min: Any = ..., max: Any = ..., *, out: Any = ...) -> Tensor:
    """The number of elements in each of `bins` bins of equal width from `min` to `max`."""
def histogram(input: Tensor, bins: Any = ..., *, range: Any = ..., weight: Any = ..., density: builtins.bool = ..., out: Any = ...) -> Any:
    """The sums of weights (1) in each bin, and the edges of the bins: ``(hist, bin_edges)``."""
def histogramdd(input: Tensor, bins: Any, *, range: Any = ..., weight: Any = ..., density: builtins.bool = ..., out: Any = ...) -> Any:
    """As `histogram`, for points with coordinates along the last axis of `input`: a bin is a box in D dimensions."""
def hsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """`tensor_split` along the second axis, or the only one."""
def hstack(tensors: Any, *, out: Any = ...) -> Tensor:
    """The tensors side by side, from left to right: along the second axis, or along the first if there is only one."""
def hypot(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``sqrt(input ** 2 + other ** 2)``, without overflow; at the origin the derivative is NaN."""
def hypot_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`hypot`, written into this tensor, which is returned."""
def i0(input: Tensor, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""
def i0_(input: Tensor) -> Tensor:
    """`i0`, written into this tensor, which is returned."""
def igamma(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The regularised lower incomplete gamma function ``P(input, other)``; no derivative by `input`."""
def igamma_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`igamma`, written into this tensor, which is returned."""
def igammac(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The regularised upper incomplete gamma function, ``1 - igamma(input, other)``; no derivative by `input`."""
def igammac_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`igammac`, written into this tensor, which is returned."""
def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view."""
def index_add(input: Tensor, dim: SupportsIndex, index: Tensor, source: Tensor, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """`input` with the slices of ``alpha * source`` added to its slices along `dim` at the positions in `index`."""
def index_copy(input: Tensor, dim: SupportsIndex, index: Tensor, source: Tensor, *, out: Any = ...) -> Tensor:
    """`input` with its slices along `dim` at the positions in `index` replaced by the slices of `source`."""
def index_fill(input: Tensor, dim: SupportsIndex, index: Tensor, value: Any, *, out: Any = ...) -> Tensor:
    """`input` with `value`, a number or a 0-d tensor, in the slices along `dim` at the positions in `index`."""
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """`input` with `values` written at ``input[indices]``, for a tuple of tensors, or added there if `accumulate`."""
def index_put_(self: Any, indices: Any, values: Any, accumulate: Any = ...) -> Any:
    """`index_put`, written into this tensor, which is returned."""
def index_reduce(input: Tensor, dim: SupportsIndex, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ..., out: Any = ...) -> Tensor:
    """The slices of `source` combined with those of `input` at their positions along `dim`: "prod", "mean", "amax" or "amin"; without `include_self`, only among themselves. See `scatter_reduce`."""
def index_select(input: Tensor, dim: SupportsIndex, index: Any, *, out: Any = ...) -> Tensor:
    """The slices of `input` along `dim` at the positions in `index`, a 1-D tensor of integers that are not negative."""
def initial_seed() -> Any:
    """The seed the default generator started from."""
def inner(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The sum of products over the last axis of both; a 0-d tensor multiplies."""
def inverse(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse: `linalg.inv`."""
def is_complex(input: Tensor, *, out: Any = ...) -> Any:
    """Whether the elements are complex."""
def is_conj(input: Tensor, *, out: Any = ...) -> Any:
    """False: conjugates are computed at once, never later."""
def is_floating_point(input: Tensor, *, out: Any = ...) -> Any:
    """Whether the elements are real floating point numbers."""
def is_inference(input: Tensor, *, out: Any = ...) -> Any:
    """Whether the tensor was made in inference mode."""
def is_neg(input: Tensor, *, out: Any = ...) -> Any:
    """False: negatives are computed at once, never later."""
def is_nonzero(input: Any) -> Any:
    """Whether the only element is not 0; RuntimeError if there is not exactly one."""
def is_same_size(input: Tensor, other: Tensor, *, out: Any = ...) -> Any:
    """Whether two tensors have the same shape."""
def is_signed(input: Any) -> Any:
    """Whether the dtype has negative numbers."""
def isclose(input: Tensor, other: Tensor, rtol: SupportsFloat = ..., atol: SupportsFloat = ..., equal_nan: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Elementwise, whether ``|input - other| <= atol + rtol * |other|``; infinities are close to themselves."""
def isfinite(input: Any, *, out: Any = ...) -> Tensor:
    """Whether it is neither infinite nor NaN."""
def isin(elements: Any, test_elements: Any, *, assume_unique: builtins.bool = ..., invert: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Whether each of `elements` is among `test_elements` (``invert=True``: is not). Either argument may be a number."""
def isinf(input: Any, *, out: Any = ...) -> Tensor:
    """Whether it is infinite."""
def isnan(input: Any, *, out: Any = ...) -> Tensor:
    """Whether it is NaN."""
def isneginf(input: Any, *, out: Any = ...) -> Tensor:
    """Whether it is negative infinity."""
def isposinf(input: Any, *, out: Any = ...) -> Tensor:
    """Whether it is positive infinity."""
def isreal(input: Any, *, out: Any = ...) -> Tensor:
    """Whether its imaginary part is 0; True for every real number."""
def istft(input: Tensor, n_fft: SupportsIndex, hop_length: SupportsIndex | None = ..., win_length: SupportsIndex | None = ..., window: Any = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: SupportsIndex | None = ..., return_complex: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """The signal whose `stft` with the same arguments is `input`, or the least-squares one if there is no such signal."""
def kaiser_window(window_length: Any, periodic: Any = ..., beta: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``I0(beta sqrt(1 - (2 x - 1)**2)) / I0(beta)`` for x from 0 to 1; I0 is the modified Bessel function."""
def kron(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`."""
def kthvalue(input: Tensor, k: SupportsIndex, dim: SupportsIndex = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Any:
    """The k-th smallest element along `dim`, counted from 1, and its index: ``(values, indices)``."""
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: SupportsFloat = ...) -> Tensor:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes, which have `normalized_shape`."""
def lcm(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The least common multiple of integers."""
def lcm_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`lcm`, written into this tensor, which is returned."""
def ldexp(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``input * 2 ** other``, in floating point."""
def ldexp_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`ldexp`, written into this tensor, which is returned."""
def le(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input <= other``, elementwise."""
def le_(input: Any, other: Any) -> Any:
    """`le`, written into this tensor, which is returned."""
def lerp(input: Tensor, end: Any, weight: Any, *, out: Any = ...) -> Tensor:
    """``input + weight * (end - input)``; exactly `input` and `end` at the weights 0 and 1."""
def lerp_(input: Tensor, end: Any, weight: Any) -> Tensor:
    """`lerp`, written into this tensor, which is returned."""
def less(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input < other``, elementwise."""
def less_(input: Any, other: Any) -> Any:
    """`less`, written into this tensor, which is returned."""
def less_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input <= other``, elementwise."""
def less_equal_(input: Any, other: Any) -> Any:
    """`less_equal`, written into this tensor, which is returned."""
def lgamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """``log |Gamma(input)|``."""
def lgamma_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`lgamma`, written into this tensor, which is returned."""
def log(input: Tensor, *, out: Any = ...) -> Tensor:
    """The natural logarithm."""
def log10(input: Tensor, *, out: Any = ...) -> Tensor:
    """The logarithm to base 10."""
def log10_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`log10`, written into this tensor, which is returned."""
def log1p(input: Tensor, *, out: Any = ...) -> Tensor:
    """``log(1 + input)``, exact near 0."""
def log1p_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`log1p`, written into this tensor, which is returned."""
def log2(input: Tensor, *, out: Any = ...) -> Tensor:
    """The logarithm to base 2."""
def log2_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`log2`, written into this tensor, which is returned."""
def log_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`log`, written into this tensor, which is returned."""
def log_softmax(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`, more precise than the logarithm of `softmax`."""
def logaddexp(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``log(exp(input) + exp(other))``, without overflow."""
def logaddexp2(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``log2(2 ** input + 2 ** other)``, without overflow."""
def logcumsumexp(input: Tensor, dim: SupportsIndex, *, out: Any = ...) -> Tensor:
    """The logarithm of the running sum of exponentials along `dim`, without overflow."""
def logdet(input: Tensor, *, out: Any = ...) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative. ``d log det = tr(A^-1 dA)``."""
def logical_and(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether both are nonzero."""
def logical_and_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`logical_and`, written into this tensor, which is returned."""
def logical_not(input: Any, *, out: Any = ...) -> Tensor:
    """Whether it is zero."""
def logical_not_(input: Any, *, out: Any = ...) -> Tensor:
    """`logical_not`, written into this tensor, which is returned."""
def logical_or(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether either is nonzero."""
def logical_or_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`logical_or`, written into this tensor, which is returned."""
def logical_xor(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether exactly one is nonzero."""
def logical_xor_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`logical_xor`, written into this tensor, which is returned."""
def logit(input: Tensor, eps: SupportsFloat | None = ..., *, out: Any = ...) -> Tensor:
    """``log(input / (1 - input))``, the inverse of `sigmoid`; NaN outside [0, 1]."""
def logit_(input: Tensor, eps: SupportsFloat | None = ...) -> Tensor:
    """`logit`, written into this tensor, which is returned."""
def logspace(start: Any, end: Any, steps: Any, base: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``base ** x`` for `steps` numbers x from `start` to `end`, evenly spaced, both included."""
def logsumexp(input: Tensor, dim: Any, keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """``log(sum(exp(input)))`` over `dim`, relative to the largest element against overflow; -inf for no elements."""
def lt(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input < other``, elementwise."""
def lt_(input: Any, other: Any) -> Any:
    """`lt`, written into this tensor, which is returned."""
def lu(A: Tensor, pivot: builtins.bool = ..., get_infos: Any = ..., *, out: Any = ...) -> Any:
    """The LU factors in one matrix, the row exchanges, and with `get_infos` the first zero pivots, from `linalg.lu_factor_ex`."""
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = ...) -> Tensor:
    """X with ``A X = b``: `linalg.lu_solve`."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = ..., unpack_pivots: builtins.bool = ..., *, out: Any = ...) -> Any:
    """``P``, ``L`` and ``U`` from the result of `linalg.lu_factor`; a result that is not requested is empty."""
def masked_fill(input: Tensor, mask: Tensor, value: Any, *, out: Any = ...) -> Tensor:
    """`input` with `value`, a number or a 0-d tensor, wherever `mask`, a bool tensor broadcast with it, is True."""
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Any = ...) -> Tensor:
    """`input` with the elements of `source`, one after the other, where `mask` is True; the mask broadcasts."""
def masked_select(input: Tensor, mask: Any, *, out: Any = ...) -> Tensor:
    """The elements where `mask`, a bool tensor, is True, one after the other; the two broadcast."""
def matmul(input: Tensor, other: Tensor | np.ndarray[Any, Any], *, out: Any = ...) -> Tensor:
    """The matrix product; vectors and batches of matrices as in NumPy. ``dA = g B^T``, ``dB = A^T g``."""
def matrix_exp(A: Tensor, *, out: Any = ...) -> Tensor:
    """The exponential of square matrices, ``I + A + A A / 2 + ...``; by scaling and squaring."""
def matrix_power(input: Tensor, n: SupportsIndex, *, out: Any = ...) -> Tensor:
    """The product of n factors: `linalg.matrix_power`."""
def max(input: Tensor, *args: Any, dim: Any = ..., other: Any = ..., keepdim: builtins.bool = ..., out: Any = ...) -> Any:
    """`max(x)`: the largest element; `max(x, dim)`: ``(values, indices)`` along an axis; `max(x, y)`: as `maximum`."""
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window along the last axis of ``(N, C, L)`` or ``(C, L)``."""
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window on images ``(N, C, H, W)`` or ``(C, H, W)``; arguments as of `max_pool1d`."""
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window on volumes ``(N, C, D, H, W)``; arguments as of `max_pool1d`."""
def maximum(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The larger of two, elementwise; NaN if either is. A tie shares the gradient in halves."""
def mean(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The arithmetic mean over `dim`; NaN for no elements. Integers and bools need a `dtype`."""
def median(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Any:
    """The lower median of all elements, or along `dim` with its index: ``(values, indices)``; NaN if there is one."""
def meshgrid(*tensors: Any, indexing: builtins.str = ...) -> Any:
    """The coordinates of a grid: each tensor's elements along a separate axis; "xy" exchanges the first two axes."""
def min(input: Tensor, *args: Any, dim: Any = ..., other: Any = ..., keepdim: builtins.bool = ..., out: Any = ...) -> Any:
    """`min(x)`: the smallest element; `min(x, dim)`: ``(values, indices)`` along an axis; `min(x, y)`: as `minimum`."""
def minimum(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The smaller of two, elementwise; NaN if either is. A tie shares the gradient in halves."""
def mm(input: Tensor, mat2: Tensor, *, out: Any = ...) -> Tensor:
    """The product of two matrices."""
def mode(input: Tensor, dim: SupportsIndex = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Any:
    """The most frequent element along `dim` (the smallest at a tie) and its last index: ``(values, indices)``."""
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Axes moved to new places, the others in their order; a view."""
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Axes moved to new places, the others in their order; a view."""
def msort(input: Tensor, *, out: Any = ...) -> Tensor:
    """The elements in ascending order along the first axis."""
def mul(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``input * other``, broadcast."""
def mul_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`mul`, written into this tensor, which is returned."""
def multinomial(input: Any, num_samples: Any, replacement: Any = ..., *, generator: Any = ..., out: Any = ...) -> Any:
    """`num_samples` positions in each row of `input`, of one or two axes, drawn with probabilities proportional to it."""
def multiply(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``input * other``, broadcast."""
def multiply_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`multiply`, written into this tensor, which is returned."""
def mv(input: Tensor, vec: Tensor, *, out: Any = ...) -> Tensor:
    """The product of a matrix and a vector."""
def mvlgamma(input: Tensor, p: SupportsIndex, *, out: Any = ...) -> Tensor:
    """The multivariate `lgamma`: ``p (p - 1) / 4 log(pi) + sum of lgamma(input - j / 2)`` over j from 0 to p - 1."""
def mvlgamma_(input: Tensor, p: SupportsIndex) -> Tensor:
    """`mvlgamma`, written into this tensor, which is returned."""
def nan_to_num(input: Tensor, nan: SupportsFloat | None = ..., posinf: SupportsFloat | None = ..., neginf: SupportsFloat | None = ..., *, out: Any = ...) -> Tensor:
    """`input` with NaN replaced by 0, and infinities by the largest and smallest numbers of the dtype."""
def nan_to_num_(input: Tensor, nan: SupportsFloat | None = ..., posinf: SupportsFloat | None = ..., neginf: SupportsFloat | None = ...) -> Tensor:
    """`nan_to_num`, written into this tensor, which is returned."""
def nanmean(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The mean over `dim` of the elements that are not NaN; NaN if all are."""
def nanmedian(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Any:
    """`median` of the elements that are not NaN; NaN if all are."""
def nanquantile(input: Tensor, q: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ..., out: Any = ...) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN if all are."""
def nansum(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The sum over `dim` of the elements that are not NaN; the gradient of NaN is 0."""
def narrow(input: Tensor, dim: SupportsIndex, start: Any, length: SupportsIndex) -> Tensor:
    """`length` slices along `dim` from `start`; a view."""
def narrow_copy(input: Tensor, dim: SupportsIndex, start: SupportsIndex, length: SupportsIndex, *, out: Any = ...) -> Tensor:
    """`narrow`, as a copy in new memory."""
def ne(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input != other``, elementwise."""
def ne_(input: Any, other: Any) -> Any:
    """`ne`, written into this tensor, which is returned."""
def neg(input: Tensor, *, out: Any = ...) -> Tensor:
    """``-input``."""
def neg_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`neg`, written into this tensor, which is returned."""
def negative(input: Tensor, *, out: Any = ...) -> Tensor:
    """``-input``."""
def negative_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`negative`, written into this tensor, which is returned."""
def nextafter(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The next number of the dtype after `input`, toward `other`. Its derivative by `input` is 1."""
def nextafter_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`nextafter`, written into this tensor, which is returned."""
def nonzero(input: Any, *, as_tuple: builtins.bool = ..., out: Any = ...) -> Any:
    """The positions of the elements that are not 0: a row for each or, with `as_tuple`, a tensor for each axis."""
def nonzero_static(input: Any, *, size: SupportsIndex, fill_value: SupportsIndex = ..., out: Any = ...) -> Tensor:
    """The first `size` rows of `nonzero`, filled up with rows of `fill_value`: the shape is known beforehand."""
def norm(input: Tensor, p: Any = ..., dim: Any = ..., keepdim: builtins.bool = ..., dtype: Any = ..., *, out: Any = ...) -> Tensor:
    """The p-norm ``(sum |x|^p)^(1/p)`` over `dim` (default: all); ``"fro"`` is p = 2, `inf` the largest modulus."""
def normal(mean: Any = ..., std: Any = ..., size: Any = ..., *, generator: Any = ..., dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``mean + std * z`` with z standard normal: elementwise for tensors; of shape `size` for two numbers."""
def not_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input != other``, elementwise."""
def not_equal_(input: Any, other: Any) -> Any:
    """`not_equal`, written into this tensor, which is returned."""
def numel(input: Tensor, *, out: Any = ...) -> Any:
    """The number of elements."""
def orgqr(input: Tensor, tau: Tensor, *, out: Any = ...) -> Tensor:
    """The first columns of a product of reflections: `linalg.householder_product`."""
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """``Q other`` (or, if not `left`, ``other Q``) with the square Q of `linalg.householder_product`; with `transpose`, Q^H instead of Q."""
def outer(input: Tensor, vec2: Tensor, *, out: Any = ...) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]`` of two vectors."""
def pairwise_distance(x1: Tensor, x2: Tensor, p: SupportsFloat = ..., eps: SupportsFloat = ..., keepdim: builtins.bool = ...) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""
def pca_lowrank(A: Any, q: Any = ..., center: Any = ..., niter: Any = ...) -> Any:
    """The first `q` principal components of the rows of A, the columns of V: `svd_lowrank` of A minus its mean row."""
def pdist(input: Tensor, p: SupportsFloat = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order 0-1, 0-2, ..., 1-2, ...; otherwise as `cdist`."""
def permute(input: Tensor, dims: Any, *more: Any) -> Tensor:
    """The axes in the order `dims`; a view."""
def pinverse(input: Tensor, rcond: SupportsFloat = ..., *, out: Any = ...) -> Tensor:
    """The pseudoinverse, in which singular values up to `rcond` times the largest count as 0: `linalg.pinv`."""
def pixel_shuffle(input: Tensor, upscale_factor: SupportsIndex) -> Tensor:
    """Channels as pixels: ``(*, C r^2, H, W)`` to ``(*, C, H r, W r)``, where r is the `upscale_factor`."""
def pixel_unshuffle(input: Tensor, downscale_factor: SupportsIndex) -> Tensor:
    """Pixels as channels, the inverse of `pixel_shuffle`: ``(*, C, H r, W r)`` to ``(*, C r^2, H, W)``."""
def poisson(input: Any, generator: Any = ...) -> Any:
    """Numbers from the Poisson distributions with the means in `input`, in its dtype."""
def polar(abs: Tensor, angle: Tensor, *, out: Any = ...) -> Tensor:
    """``abs * exp(i angle)``: the complex number of that size and angle."""
def polygamma(n: SupportsIndex, input: Tensor, *, out: Any = ...) -> Tensor:
    """The derivative of order `n` of `digamma`: ``polygamma(0, x)`` is ``digamma(x)``."""
def polygamma_(self: Any, n: Any) -> Any:
    """`polygamma`, written into this tensor, which is returned."""
def positive(input: Tensor, *, out: Any = ...) -> Tensor:
    """``+input``: the tensor itself; bools are refused."""
def pow(input: Tensor | _Other, exponent: Any, *, out: Any = ...) -> Tensor:
    """``input ** exponent``, broadcast; its derivatives take their limit, 0, at exponent 0 and at base 0."""
def pow_(input: Tensor | _Other, exponent: Any, *, out: Any = ...) -> Tensor:
    """`pow`, written into this tensor, which is returned."""
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input` where it is positive, else ``weight * input``; one weight for all, or one for each channel (axis 1)."""
def prod(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The product over one axis, or of all elements; its derivatives are correct where elements are zero."""
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """`input` with the elements of `source` written at flat positions, or added there if `accumulate`."""
def qr(input: Tensor, some: builtins.bool = ..., *, out: Any = ...) -> Any:
    """``Q`` and ``R``: `linalg.qr`; ``some=False`` is its mode "complete"."""
def quantile(input: Tensor, q: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ..., out: Any = ...) -> Tensor:
    """The `q`-th quantiles, q in [0, 1], along `dim` (default: of all elements); NaN where there is a NaN."""
def rad2deg(input: Tensor, *, out: Any = ...) -> Tensor:
    """Radians to degrees."""
def rad2deg_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`rad2deg`, written into this tensor, which is returned."""
def range(start: Any, end: Any, step: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """The numbers from `start` to `end`, both included. Deprecated in torch, since Python's range excludes its end."""
def ravel(input: Tensor) -> Tensor:
    """All elements in one contiguous row; a view if the memory is already in this order."""
def real(input: Tensor, *, out: Any = ...) -> Tensor:
    """The real part, a view; a real tensor itself."""
def reciprocal(input: Tensor, *, out: Any = ...) -> Tensor:
    """``1 / input``."""
def reciprocal_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`reciprocal`, written into this tensor, which is returned."""
def relu(input: Tensor, *, out: Any = ...) -> Tensor:
    """``max(input, 0)``; its derivative at 0 is 0."""
def relu_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`relu`, written into this tensor, which is returned."""
def remainder(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``input - floor(input / other) * other``; takes the sign of `other`."""
def remainder_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`remainder`, written into this tensor, which is returned."""
def renorm(input: Tensor, p: SupportsFloat, dim: SupportsIndex, maxnorm: SupportsFloat, *, out: Any = ...) -> Tensor:
    """`input` with each slice along `dim` scaled to p-norm `maxnorm` (less 1e-7 of it) if its p-norm is larger."""
def renorm_(input: Tensor, p: SupportsFloat, dim: SupportsIndex, maxnorm: SupportsFloat) -> Tensor:
    """`renorm`, written into this tensor, which is returned."""
def repeat_interleave(input: Tensor, repeats: Any = ..., dim: SupportsIndex | None = ..., *, output_size: Any = ..., out: Any = ...) -> Tensor:
    """Each element (or slice along `dim`) `repeats` times in a row; a number for all, or a tensor with one for each."""
def reshape(input: Tensor, shape: Any, *more: Any) -> Tensor:
    """`input` with another shape (one length may be -1); a view where the memory allows it, otherwise a copy."""
def resize_as_(self: Any, the_template: Any, memory_format: Any = ...) -> Any:
    """`resize_` to the shape of another tensor; with `preserve_format`, also to its memory format."""
def resolve_conj(input: Tensor, *, out: Any = ...) -> Tensor:
    """The tensor itself: conjugates are computed at once."""
def resolve_neg(input: Tensor, *, out: Any = ...) -> Tensor:
    """The tensor itself: negatives are computed at once."""
def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype of an arithmetic operation on two tensors or numbers."""
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = ..., eps: SupportsFloat | None = ...) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axes, which have `normalized_shape`."""
def roll(input: Tensor, shifts: Any, dims: Any = ..., *, out: Any = ...) -> Tensor:
    """The elements moved on by `shifts` along `dims` (default: in the flattened tensor); the last come to the front."""
def rot90(input: Tensor, k: SupportsIndex = ..., dims: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` turned `k` times by 90 degrees in the plane of two axes, from the first towards the second."""
def round(input: Tensor, decimals: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The nearest number with `decimals` decimals, halves to the even one; negative `decimals` round to tens, hundreds."""
def round_(input: Tensor, decimals: SupportsIndex = ...) -> Tensor:
    """`round`, written into this tensor, which is returned."""
def row_stack(tensors: Any, *, out: Any = ...) -> Tensor:
    """The tensors one below the other: along the first axis; a 1-D tensor is a row."""
def rrelu(input: Tensor, lower: SupportsFloat = ..., upper: SupportsFloat = ..., training: builtins.bool = ..., inplace: Any = ...) -> Tensor:
    """`leaky_relu` with slopes drawn from ``[lower, upper]`` in training, else with the mean of the two bounds."""
def rrelu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`rrelu`, written into `input`, which is returned."""
def rsqrt(input: Tensor, *, out: Any = ...) -> Tensor:
    """``1 / sqrt(input)``."""
def rsqrt_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`rsqrt`, written into this tensor, which is returned."""
def rsub(input: Tensor, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """``other - alpha * input``, broadcast: `sub` with its operands exchanged."""
def scalar_tensor(s: Any, *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: Any = ..., pin_memory: Any = ...) -> Any:
    """A 0-d tensor of one number, in the default floating point dtype unless `dtype` is given."""
def scatter(input: Tensor, dim: SupportsIndex, index: Tensor, src: Any = ..., *, value: Any = ..., reduce: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """``out[index[i][j]][j] = src[i][j]`` for ``dim=0``, and so on; elsewhere `input`. `src` may be a number."""
def scatter_add(input: Tensor, dim: SupportsIndex, index: Tensor, src: Tensor, *, out: Any = ...) -> Tensor:
    """``out[index[i][j]][j] += src[i][j]`` for ``dim=0``, and so on, starting with `input`; positions may repeat."""
def scatter_reduce(input: Tensor, dim: SupportsIndex, index: Tensor, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ..., out: Any = ...) -> Tensor:
    """`input` combined with the elements of `src`, each at its position along `dim`: "sum", "prod", "mean", "amax" or "amin"; without `include_self`, only these elements, if there are any."""
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., side: builtins.str | None = ..., sorter: Tensor | None = ..., out: Any = ...) -> Tensor:
    """The position at which to insert each of `input` in a sorted sequence (or in its rows, for the rows of `input`)."""
def seed() -> Any:
    """Seed the default generators of all devices from the system's entropy, and return the seed."""
def select(input: Tensor, dim: SupportsIndex, index: SupportsIndex) -> Tensor:
    """The slice at position `index` along `dim`, without that axis; a view."""
def select_scatter(input: Tensor, src: Tensor, dim: SupportsIndex, index: SupportsIndex, *, out: Any = ...) -> Tensor:
    """`input` with the slice at position `index` along `dim` replaced by `src`."""
def selu(input: Tensor, inplace: Any = ...) -> Tensor:
    """``1.0507 * elu(input, 1.6733)``, which keeps mean 0 and variance 1 from layer to layer."""
def selu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`selu`, written into `input`, which is returned."""
def set_rng_state(new_state: Any) -> Any:
    """Put the default generator back to a position from `get_rng_state`."""
def sgn(input: Tensor, *, out: Any = ...) -> Tensor:
    """`sign` for real numbers; for complex ones the direction ``input / |input|``, 0 at 0."""
def sgn_(input: Tensor) -> Tensor:
    """`sgn`, written into this tensor, which is returned."""
def sigmoid(input: Tensor, *, out: Any = ...) -> Tensor:
    """``1 / (1 + exp(-input))``."""
def sigmoid_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`sigmoid`, written into this tensor, which is returned."""
def sign(input: Tensor, *, out: Any = ...) -> Tensor:
    """-1, 0 or 1; 0 for NaN. Its derivative is 0."""
def sign_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`sign`, written into this tensor, which is returned."""
def signbit(input: Any, *, out: Any = ...) -> Tensor:
    """Whether the sign bit is set: for negative numbers and -0.0."""
def sin(input: Tensor, *, out: Any = ...) -> Tensor:
    """The sine."""
def sin_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`sin`, written into this tensor, which is returned."""
def sinc(input: Tensor, *, out: Any = ...) -> Tensor:
    """``sin(pi x) / (pi x)``, 1 at 0."""
def sinc_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`sinc`, written into this tensor, which is returned."""
def sinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The hyperbolic sine."""
def sinh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`sinh`, written into this tensor, which is returned."""
def slice_scatter(input: Tensor, src: Tensor, dim: SupportsIndex = ..., start: SupportsIndex | None = ..., end: SupportsIndex | None = ..., step: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """`input` with the slices along `dim` from `start` to `end`, or every `step`-th of them, replaced by `src`."""
def slogdet(input: Tensor, *, out: Any = ...) -> Any:
    """The sign of the determinant and the logarithm of its modulus: `linalg.slogdet`."""
def softmax(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size."""
def sort(input: Tensor, dim: SupportsIndex = ..., descending: builtins.bool = ..., *, stable: builtins.bool | None = ..., out: Any = ...) -> Any:
    """The elements in order along `dim`, and their positions before: ``(values, indices)``."""
def split(input: Tensor, split_size_or_sections: Any = ..., dim: SupportsIndex = ..., *, split_size: Any = ...) -> Any:
    """Consecutive pieces along `dim`: of one size (the last may be smaller), or of the sizes listed."""
def split_with_sizes(input: Tensor, split_sizes: Any, dim: SupportsIndex = ...) -> Any:
    """Consecutive pieces along `dim`, of the sizes listed."""
def sqrt(input: Tensor, *, out: Any = ...) -> Tensor:
    """The square root; NaN below 0. Derivative ``1 / (2 sqrt(x))``, infinite at 0."""
def sqrt_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`sqrt`, written into this tensor, which is returned."""
def square(input: Tensor, *, out: Any = ...) -> Tensor:
    """``input ** 2``."""
def square_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`square`, written into this tensor, which is returned."""
def squeeze(input: Tensor, dim: Any = ...) -> Tensor:
    """`input` without its axes of length 1, or without those among `dim`; a view."""
def stack(tensors: Any, dim: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """Tensors of one shape side by side along a new axis `dim`."""
def std(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Any = ...) -> Tensor:
    """The standard deviation over `dim`: the square root of `var`; its gradient is 0 where all elements are equal."""
def std_mean(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Any = ...) -> Any:
    """The standard deviation and the mean over `dim`; see `std`."""
def stft(input: Tensor, n_fft: SupportsIndex, hop_length: SupportsIndex | None = ..., win_length: SupportsIndex | None = ..., window: Any = ..., center: Any = ..., pad_mode: builtins.str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: Any = ..., *, out: Any = ...) -> Tensor:
    """``X[k, t] = sum_j window[j] x[t hop + j] exp(-2 pi i j k / n_fft)``: the spectrum of a signal over time."""
def sub(input: Tensor | _Other, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """``input - alpha * other``, broadcast."""
def sub_(input: Tensor | _Other, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """`sub`, written into this tensor, which is returned."""
def subtract(input: Tensor | _Other, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """``input - alpha * other``, broadcast."""
def subtract_(input: Tensor | _Other, other: Tensor | _Other, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """`subtract`, written into this tensor, which is returned."""
def sum(input: Tensor, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The sum over `dim` (an int, a tuple, or None for all); integers and bools add up in int64."""
def svd(input: Tensor, some: builtins.bool = ..., compute_uv: builtins.bool = ..., *, out: Any = ...) -> Any:
    """``U``, ``S`` and ``V`` (not its conjugate transpose) of `linalg.svd`; U and V are zeros without `compute_uv`."""
def svd_lowrank(A: Any, q: Any = ..., niter: Any = ..., M: Any = ...) -> Any:
    """U, S and V of rank `q` with ``U diag(S) V^H`` near A, or near ``A - M``: a tuple."""
def swapaxes(input: Tensor, axis0: SupportsIndex, axis1: SupportsIndex) -> Tensor:
    """`transpose` under NumPy's name."""
def swapdims(input: Tensor, dim0: SupportsIndex, dim1: SupportsIndex) -> Tensor:
    """`transpose` under another name."""
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or a 0-d tensor stays the same."""
def take(input: Tensor, index: Any, *, out: Any = ...) -> Tensor:
    """The elements at positions in the flattened tensor, negative ones from its end, in the shape of `index`."""
def take_along_dim(input: Tensor, indices: Tensor, dim: SupportsIndex | None = ..., *, out: Any = ...) -> Tensor:
    """The elements at `indices` along `dim`; the other axes broadcast. Without `dim`, from the flattened tensor."""
def tan(input: Tensor, *, out: Any = ...) -> Tensor:
    """The tangent."""
def tan_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`tan`, written into this tensor, which is returned."""
def tanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The hyperbolic tangent."""
def tanh_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`tanh`, written into this tensor, which is returned."""
def tensor_split(input: Tensor, indices_or_sections: Any = ..., dim: SupportsIndex = ..., *, indices: Any = ..., sections: SupportsIndex | None = ...) -> Any:
    """Pieces along `dim`: this many, the first ones longer by one if needed; or cut at the positions listed."""
def tensordot(a: Tensor, b: Tensor, dims: Any = ..., *, out: Any = ...) -> Tensor:
    """The sum of products over `dims` axes, the last of `a` with the first of `b`, or over the pairs of two lists."""
def threshold(input: Tensor, threshold: SupportsFloat, value: SupportsFloat, inplace: Any = ...) -> Tensor:
    """`input` where it is above `threshold`, else `value`."""
def threshold_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`threshold`, written into `input`, which is returned."""
def tile(input: Tensor, dims: Any, *more: Any, out: Any = ...) -> Tensor:
    """`repeat`, with missing leading numbers taken as 1."""
def to(input: Tensor, *args: Any, dtype: Any = ..., device: Any = ..., copy: builtins.bool = ..., non_blocking: builtins.bool = ..., memory_format: Any = ..., out: Any = ...) -> Tensor:
    """The tensor with another dtype (``x.to(pullback.float64)``), or with the dtype of another tensor (``x.to(y)``)."""
def topk(input: Tensor, k: SupportsIndex, dim: SupportsIndex = ..., largest: builtins.bool = ..., sorted: builtins.bool = ..., *, out: Any = ...) -> Any:
    """The `k` largest (or smallest) elements along `dim` and their indices, the best first: ``(values, indices)``."""
def trace(input: Tensor, *, out: Any = ...) -> Tensor:
    """The sum of the diagonal of a matrix; integers add up in int64."""
def transpose(input: Tensor, dim0: SupportsIndex, dim1: SupportsIndex) -> Tensor:
    """Axes `dim0` and `dim1` exchanged; a view."""
def trapezoid(y: Tensor, x: Any = ..., *, dx: Any = ..., dim: SupportsIndex = ..., out: Any = ...) -> Tensor:
    """The integral of the samples `y` along `dim` by the trapezoidal rule; at points `x`, or `dx` (1) apart."""
def trapz(y: Tensor, x: Any = ..., *, dx: Any = ..., dim: SupportsIndex = ..., out: Any = ...) -> Tensor:
    """The integral of the samples `y` along `dim` by the trapezoidal rule; at points `x`, or `dx` (1) apart."""
def triangular_solve(b: Tensor, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ..., *, out: Any = ...) -> Any:
    """``solution``, the X with ``A X = b`` for a triangular A (``A^T X = b`` with `transpose`), and a copy of A: `linalg.solve_triangular`."""
def tril(input: Tensor, diagonal: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The part on and below a diagonal, zeros elsewhere."""
def tril_indices(row: SupportsIndex, col: SupportsIndex, offset: SupportsIndex = ..., *, dtype: Any = ..., device: Any = ..., out: Any = ...) -> Tensor:
    """The rows and the columns of the elements on and below a diagonal of a matrix: a tensor of two rows."""
def triu(input: Tensor, diagonal: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The part on and above a diagonal, zeros elsewhere."""
def triu_indices(row: SupportsIndex, col: SupportsIndex, offset: SupportsIndex = ..., *, dtype: Any = ..., device: Any = ..., out: Any = ...) -> Tensor:
    """The rows and the columns of the elements on and above a diagonal of a matrix: a tensor of two rows."""
def true_divide(input: Tensor | _Other, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
def true_divide_(input: Tensor | _Other, other: Tensor | _Other, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """`true_divide`, written into this tensor, which is returned."""
def trunc(input: Tensor, *, out: Any = ...) -> Tensor:
    """The integer part: rounded toward 0."""
def trunc_(input: Tensor, *, out: Any = ...) -> Tensor:
    """`trunc`, written into this tensor, which is returned."""
def typename(obj: Any) -> Any:
    """The name of an object's type: `Tensor.type` for a tensor, otherwise the type with its module."""
def unbind(input: Tensor, dim: SupportsIndex = ...) -> Any:
    """The slices along `dim`, without that axis."""
def unflatten(input: Tensor, dim: SupportsIndex, sizes: Any) -> Tensor:
    """Axis `dim` divided into several, of lengths `sizes`; one of them may be -1."""
def unique(input: Tensor, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: Any = ..., *, out: Any = ...) -> Any:
    """The distinct elements (or slices along `dim`) in order; on request, with positions and counts."""
def unique_consecutive(input: Tensor, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: Any = ..., *, out: Any = ...) -> Any:
    """The first of each run of equal elements (or slices along `dim`), in the order of the input; see `unique`."""
def unravel_index(indices: Tensor, shape: Any, *, out: Any = ...) -> Any:
    """Flat positions in a tensor of `shape` as one tensor of positions for each axis."""
def unsafe_chunk(input: Tensor, chunks: SupportsIndex, dim: SupportsIndex = ..., *, out: Any = ...) -> Any:
    """`chunk` into pieces that may be written to, as in `unsafe_split`."""
def unsafe_split(input: Tensor, split_size: SupportsIndex, dim: SupportsIndex = ..., *, out: Any = ...) -> Any:
    """`split` into pieces that may be written to. Do not use `input` or other pieces afterwards: this is unchecked."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: SupportsIndex = ..., *, out: Any = ...) -> Any:
    """`split_with_sizes` into pieces that may be written to, as in `unsafe_split`."""
def unsqueeze(input: Tensor, dim: SupportsIndex) -> Tensor:
    """An axis of length 1 inserted at `dim`; a view."""
def vander(x: Tensor, N: SupportsIndex | None = ..., increasing: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """The Vandermonde matrix of a vector: a row for each element, with its N powers from the highest to the 0th."""
def var(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Any = ...) -> Tensor:
    """The variance over `dim`: squared deviations from the mean, summed, over ``n - correction``."""
def var_mean(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Any = ...) -> Any:
    """The variance and the mean over `dim`; see `var`."""
def vdot(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The product of two vectors, the first of them conjugated: ``sum(conj(input) * other)``."""
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of real numbers as complex ones, a view; a pair lies along a last axis of length 2."""
def view_as_real(input: Tensor) -> Tensor:
    """The real and imaginary parts along a new last axis, a view."""
def vsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """`tensor_split` along the first axis of a tensor with two or more."""
def vstack(tensors: Any, *, out: Any = ...) -> Tensor:
    """The tensors one below the other: along the first axis; a 1-D tensor is a row."""
def where(condition: Any, input: Tensor | _Other | None = ..., other: Tensor | _Other | None = ..., *, out: Any = ...) -> Tensor:
    """`input` where `condition` holds, else `other`, broadcast. Only the chosen side gets a gradient."""
def xlogy(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``input * log(other)``, and 0 where `input` is 0, unless `other` is NaN."""
def xlogy_(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """`xlogy`, written into this tensor, which is returned."""
def zero_(self: Any) -> Any:
    """Set every element to 0."""

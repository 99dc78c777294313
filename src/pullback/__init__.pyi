# Made from the table of operations by `pullback ops --stubs`; do not edit.
from typing import Any
from .tensor.tensor import Tensor as Tensor
from . import array_api as array_api, autograd as autograd, fft as fft, func as func, linalg as linalg, ops as ops, special as special
from .autograd import enable_grad as enable_grad, inference_mode as inference_mode, is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled, is_grad_enabled as is_grad_enabled, is_inference_mode_enabled as is_inference_mode_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled
from .compat.typed import BFloat16Tensor as BFloat16Tensor, BoolTensor as BoolTensor, ByteTensor as ByteTensor, CharTensor as CharTensor, DoubleTensor as DoubleTensor, FloatTensor as FloatTensor, HalfTensor as HalfTensor, IntTensor as IntTensor, LongTensor as LongTensor, ShortTensor as ShortTensor
from .compile import compile as compile, get_num_threads as get_num_threads, set_num_threads as set_num_threads
from .func import vmap as vmap
from .ops.elementwise.close import is_tensor as is_tensor
from .ops.make.conversion import channels_last as channels_last, channels_last_3d as channels_last_3d, contiguous_format as contiguous_format, memory_format as memory_format, preserve_format as preserve_format
from .ops.make.from_data import as_tensor as as_tensor, from_numpy as from_numpy, tensor as tensor
from .ops.make.of_size import arange as arange, empty as empty, empty_like as empty_like, eye as eye, full as full, full_like as full_like, linspace as linspace, ones as ones, ones_like as ones_like, zeros as zeros, zeros_like as zeros_like
from .ops.make.random import Generator as Generator, default_generator as default_generator, manual_seed as manual_seed, rand as rand, rand_like as rand_like, randint as randint, randint_like as randint_like, randn as randn, randn_like as randn_like, randperm as randperm
from .ops.sparse import namespace as sparse
from .ops.sparse.compressed import sparse_compressed_tensor as sparse_compressed_tensor, sparse_csc_tensor as sparse_csc_tensor, sparse_csr_tensor as sparse_csr_tensor
from .ops.sparse.namespace import sparse_coo_tensor as sparse_coo_tensor
from .ops.sparse.pattern import layout as layout, sparse_coo as sparse_coo, sparse_csc as sparse_csc, sparse_csr as sparse_csr, strided as strided
from .tensor import overrides as overrides
from .tensor.dtypes import bfloat16 as bfloat16, bool as bool, can_cast as can_cast, cdouble as cdouble, cfloat as cfloat, complex64 as complex64, complex128 as complex128, device as device, double as double, dtype as dtype, finfo as finfo, float as float, float16 as float16, float32 as float32, float64 as float64, get_default_device as get_default_device, get_default_dtype as get_default_dtype, half as half, iinfo as iinfo, int as int, int8 as int8, int16 as int16, int32 as int32, int64 as int64, long as long, promote_types as promote_types, set_default_device as set_default_device, set_default_dtype as set_default_dtype, short as short, uint8 as uint8, uint16 as uint16, uint32 as uint32, uint64 as uint64
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
from .compat.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from .compat.settings import set_float32_matmul_precision as set_float32_matmul_precision
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
def abs(input: Any, *, out: Any = ...) -> Tensor:
    """The absolute value; for complex numbers the modulus, a real tensor. The derivative at 0 is 0."""
def abs_(input: Any, *, out: Any = ...) -> Tensor:
    """`abs`, written into this tensor, which is returned."""
def absolute(input: Any, *, out: Any = ...) -> Tensor:
    """The absolute value; for complex numbers the modulus, a real tensor. The derivative at 0 is 0."""
def absolute_(input: Any, *, out: Any = ...) -> Tensor:
    """`absolute`, written into this tensor, which is returned."""
def acos(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the cosine, from 0 to pi; NaN outside [-1, 1]."""
def acos_(input: Any, *, out: Any = ...) -> Tensor:
    """`acos`, written into this tensor, which is returned."""
def acosh(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic cosine; NaN below 1."""
def acosh_(input: Any, *, out: Any = ...) -> Tensor:
    """`acosh`, written into this tensor, which is returned."""
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """The average of each of `output_size` windows that cover the last axis evenly."""
def add(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """``input + alpha * other``, broadcast."""
def add_(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """`add`, written into this tensor, which is returned."""
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * sum_b (batch1[b] @ batch2[b])``; `input` is broadcast."""
def addbmm_(input: Any, batch1: Any, batch2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`addbmm`, written into this tensor, which is returned."""
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = ..., out: Any = ...) -> Tensor:
    """``input + value * tensor1 / tensor2``, broadcast; not for integers."""
def addcdiv_(input: Any, tensor1: Any, tensor2: Any, *, value: Any = ...) -> Tensor:
    """`addcdiv`, written into this tensor, which is returned."""
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = ..., out: Any = ...) -> Tensor:
    """``input + value * tensor1 * tensor2``, broadcast."""
def addcmul_(input: Any, tensor1: Any, tensor2: Any, *, value: Any = ...) -> Tensor:
    """`addcmul`, written into this tensor, which is returned."""
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``; `input` is broadcast."""
def addmm_(input: Any, mat1: Any, mat2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`addmm`, written into this tensor, which is returned."""
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``; `input` is broadcast."""
def addmv_(input: Any, mat: Any, vec: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`addmv`, written into this tensor, which is returned."""
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; `input` is broadcast."""
def addr_(input: Any, vec1: Any, vec2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`addr`, written into this tensor, which is returned."""
def adjoint(input: Any) -> Tensor:
    """The conjugate transpose of a matrix, or of each in a batch: the last two axes exchanged; a view if real."""
def all(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Tensor:
    """Whether all of the elements are nonzero, over `dim` (default: all elements); bool, no derivative."""
def allclose(input: Any, other: Any, rtol: Any = ..., atol: Any = ..., equal_nan: Any = ..., *, out: Any = ...) -> Any:
    """Whether all elements are close, in the sense of `isclose`."""
def amax(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Tensor:
    """The largest element over `dim` (default: all); ties share the gradient evenly."""
def amin(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Tensor:
    """The smallest element over `dim` (default: all); ties share the gradient evenly."""
def aminmax(input: Any, *, dim: Any = ..., keepdim: Any = ..., out: Any = ...) -> Any:
    """The smallest and the largest element along `dim` (default: of all), as ``(min, max)``; ties share evenly."""
def angle(input: Any, *, out: Any = ...) -> Tensor:
    """The angle of a complex number, from -pi to pi; for a real number 0, or pi below 0. Its derivative at 0 is 0."""
def any(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Tensor:
    """Whether any of the elements is nonzero, over `dim` (default: all elements); bool, no derivative."""
def arccos(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the cosine, from 0 to pi; NaN outside [-1, 1]."""
def arccos_(input: Any, *, out: Any = ...) -> Tensor:
    """`arccos`, written into this tensor, which is returned."""
def arccosh(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic cosine; NaN below 1."""
def arccosh_(input: Any, *, out: Any = ...) -> Tensor:
    """`arccosh`, written into this tensor, which is returned."""
def arcsin(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the sine, from -pi/2 to pi/2; NaN outside [-1, 1]."""
def arcsin_(input: Any, *, out: Any = ...) -> Tensor:
    """`arcsin`, written into this tensor, which is returned."""
def arcsinh(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic sine."""
def arcsinh_(input: Any, *, out: Any = ...) -> Tensor:
    """`arcsinh`, written into this tensor, which is returned."""
def arctan(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the tangent, from -pi/2 to pi/2."""
def arctan2(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The angle, from -pi to pi, of the point with coordinates `other` and `input`; at the origin its derivative is 0."""
def arctan2_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`arctan2`, written into this tensor, which is returned."""
def arctan_(input: Any, *, out: Any = ...) -> Tensor:
    """`arctan`, written into this tensor, which is returned."""
def arctanh(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""
def arctanh_(input: Any, *, out: Any = ...) -> Tensor:
    """`arctanh`, written into this tensor, which is returned."""
def argmax(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Tensor:
    """The index of the (first) largest element, in the flattened tensor or along `dim`; int64, no derivative."""
def argmin(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Tensor:
    """The index of the (first) smallest element, in the flattened tensor or along `dim`; int64, no derivative."""
def argsort(input: Any, dim: Any = ..., descending: Any = ..., *, stable: Any = ..., out: Any = ...) -> Tensor:
    """The positions that sort along `dim`: the indices of `sort`; int64, no derivative."""
def argwhere(input: Any, *, out: Any = ...) -> Tensor:
    """`nonzero` under NumPy's name."""
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = ...) -> Tensor:
    """A view of the memory behind `input` with any size and strides, counted in elements; its elements may overlap."""
def as_strided_(self: Any, size: Any, stride: Any, storage_offset: Any = ...) -> Any:
    """`as_strided` in place; returns the tensor."""
def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` with the elements that `as_strided` selects replaced by `src`."""
def asarray(obj: Any, *, dtype: Any = ..., device: Any = ..., copy: Any = ..., requires_grad: Any = ...) -> Any:
    """`obj` as a tensor: a tensor, an array, a DLPack tensor or a buffer share their memory, the rest is copied."""
def asin(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the sine, from -pi/2 to pi/2; NaN outside [-1, 1]."""
def asin_(input: Any, *, out: Any = ...) -> Tensor:
    """`asin`, written into this tensor, which is returned."""
def asinh(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic sine."""
def asinh_(input: Any, *, out: Any = ...) -> Tensor:
    """`asinh`, written into this tensor, which is returned."""
def atan(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the tangent, from -pi/2 to pi/2."""
def atan2(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The angle, from -pi to pi, of the point with coordinates `other` and `input`; at the origin its derivative is 0."""
def atan2_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`atan2`, written into this tensor, which is returned."""
def atan_(input: Any, *, out: Any = ...) -> Tensor:
    """`atan`, written into this tensor, which is returned."""
def atanh(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""
def atanh_(input: Any, *, out: Any = ...) -> Tensor:
    """`atanh`, written into this tensor, which is returned."""
def atleast_1d(*tensors: Any) -> Any:
    """The tensor; if it is 0-d, with one axis of length 1. A tuple for several tensors or a sequence of them."""
def atleast_2d(*tensors: Any) -> Any:
    """The tensor with two axes or more, new ones in front. A tuple for several tensors or a sequence of them."""
def atleast_3d(*tensors: Any) -> Any:
    """The tensor with three axes or more: new ones before and after a vector's axis, and after a matrix's axes."""
def avg_pool1d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: Any = ..., count_include_pad: Any = ...) -> Tensor:
    """The average of each window along the last axis of ``(N, C, L)`` or ``(C, L)``."""
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = ..., alpha: Any = ..., out: Any = ...) -> Tensor:
    """``beta * input + alpha * (batch1[b] @ batch2[b])`` for each b; `input` is broadcast."""
def baddbmm_(input: Any, batch1: Any, batch2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
    """`baddbmm`, written into this tensor, which is returned."""
def bartlett_window(window_length: Any, periodic: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``1 - |2 x - 1|`` for x from 0 to 1: a triangle."""
def bernoulli(input: Any, p: Any = ..., *, generator: Any = ..., out: Any = ...) -> Any:
    """1 with the probability in each element of `input` (or with probability `p`), else 0, in the dtype of `input`."""
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = ...) -> Tensor:
    """``out[..., o] = input1 @ weight[o] @ input2 + bias[o]``."""
def bincount(input: Any, weights: Any = ..., minlength: Any = ..., *, out: Any = ...) -> Tensor:
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
def bmm(input: Any, mat2: Any, *, out: Any = ...) -> Tensor:
    """The products of two stacks of matrices, pair by pair."""
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that arrays of these shapes broadcast to."""
def broadcast_tensors(*tensors: Any) -> Any:
    """The tensors, each expanded (without a copy) to the shape they all broadcast to."""
def broadcast_to(input: Any, size: Any, *more: Any) -> Tensor:
    """`expand` under NumPy's name."""
def bucketize(input: Any, boundaries: Any, *, out_int32: Any = ..., right: Any = ..., out: Any = ...) -> Tensor:
    """The bucket of each element: the number of sorted `boundaries` that are smaller (``right=True``: not larger)."""
def cartesian_prod(*tensors: Any, out: Any = ...) -> Tensor:
    """All choices of one element from each tensor, as rows; for a single tensor, the tensor itself."""
def cat(tensors: Any, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """The tensors one after the other along `dim`. Empty 1-D tensors are skipped, as in torch."""
def cdist(x1: Any, x2: Any, p: Any = ..., compute_mode: Any = ..., *, out: Any = ...) -> Tensor:
    """The p-norms of the differences of every row of `x1` and every row of `x2`, p >= 0; batches broadcast."""
def ceil(input: Any, *, out: Any = ...) -> Tensor:
    """The smallest integer from `input` on."""
def ceil_(input: Any, *, out: Any = ...) -> Tensor:
    """`ceil`, written into this tensor, which is returned."""
def celu(input: Any, alpha: Any = ..., inplace: Any = ...) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input / alpha) - 1)`` (Barron 2017, arXiv:1704.07483)."""
def celu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`celu`, written into `input`, which is returned."""
def chain_matmul(*matrices: Any, out: Any = ...) -> Tensor:
    """The product of matrices, in the cheapest order; the older form of `linalg.multi_dot`."""
def channel_shuffle(input: Any, groups: Any) -> Tensor:
    """The channels (the second axis) divided into groups, and taken from each group in turn."""
def cholesky(input: Any, upper: Any = ..., *, out: Any = ...) -> Tensor:
    """The Cholesky factor: `linalg.cholesky`."""
def cholesky_inverse(L: Any, upper: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of ``L L^H``, or of ``L^H L`` if `upper`; of the Cholesky factor L only that triangle is read."""
def cholesky_solve(B: Any, L: Any, upper: Any = ..., *, out: Any = ...) -> Tensor:
    """X with ``L L^H X = B``, or ``L^H L X = B`` if `upper`; of the Cholesky factor L only that triangle is read."""
def chunk(input: Any, chunks: Any, dim: Any = ...) -> Any:
    """At most `chunks` consecutive pieces of equal size along `dim`; the last may be smaller."""
def clamp(input: Any, min: Any = ..., max: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` limited to ``[min, max]``, numbers or tensors; the gradient passes at the bounds themselves."""
def clamp_(input: Any, min: Any = ..., max: Any = ...) -> Tensor:
    """`clamp`, written into this tensor, which is returned."""
def clamp_max(input: Any, max: Any, *, out: Any = ...) -> Tensor:
    """`input`, or `max` where that is smaller; at a tie `input` gets the gradient."""
def clamp_max_(input: Any, max: Any) -> Tensor:
    """`clamp_max`, written into this tensor, which is returned."""
def clamp_min(input: Any, min: Any, *, out: Any = ...) -> Tensor:
    """`input`, or `min` where that is larger; at a tie `input` gets the gradient."""
def clamp_min_(input: Any, min: Any) -> Tensor:
    """`clamp_min`, written into this tensor, which is returned."""
def clip(input: Any, min: Any = ..., max: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` limited to ``[min, max]``, numbers or tensors; the gradient passes at the bounds themselves."""
def clip_(input: Any, min: Any = ..., max: Any = ...) -> Tensor:
    """`clip`, written into this tensor, which is returned."""
def clone(input: Any, *, memory_format: Any = ..., out: Any = ...) -> Tensor:
    """A copy in new memory, with the same order of axes unless a `memory_format` is given; differentiable."""
def column_stack(tensors: Any, *, out: Any = ...) -> Tensor:
    """As `hstack`, but a tensor with at most one axis is a column."""
def combinations(input: Any, r: Any = ..., with_replacement: Any = ..., *, out: Any = ...) -> Tensor:
    """All choices of `r` elements, in order, as rows."""
def complex(real: Any, imag: Any, *, out: Any = ...) -> Tensor:
    """``real + i imag`` from two tensors of float32 (gives complex64) or float64 (complex128)."""
def concat(tensors: Any, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """`cat` under another name."""
def concatenate(tensors: Any, axis: Any = ..., *, out: Any = ...) -> Tensor:
    """`cat` under NumPy's name."""
def conj(input: Any, *, out: Any = ...) -> Tensor:
    """The complex conjugate, in new memory; a real tensor is returned unchanged."""
def conj_physical(input: Any, *, out: Any = ...) -> Tensor:
    """The complex conjugate, as `conj`."""
def conj_physical_(input: Any) -> Tensor:
    """`conj_physical`, written into this tensor, which is returned."""
def constant_pad_nd(input: Any, pad: Any, value: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` with borders of `value`: `pad` holds their lengths, the last axis first; negative ones cut off."""
def conv1d(input: Any, weight: Any, bias: Any = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: Any = ...) -> Tensor:
    """``out[n, o, l] = bias[o] + sum over c, k of weight[o, c, k] * input[n, c, stride * l - padding + dilation * k]``."""
def conv2d(input: Any, weight: Any, bias: Any = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: Any = ...) -> Tensor:
    """The convolution of `conv1d` along two axes: ``(N, C, H, W)`` and ``(O, C / groups, K, L)``."""
def conv3d(input: Any, weight: Any, bias: Any = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: Any = ...) -> Tensor:
    """The convolution of `conv1d` along three axes: ``(N, C, D, H, W)`` and ``(O, C / groups, J, K, L)``."""
def conv_tbc(input: Any, weight: Any, bias: Any, pad: Any = ...) -> Tensor:
    """`conv1d` of ``(L, N, C)`` with a weight ``(K, C, O)``: time first, channels last."""
def conv_transpose1d(input: Any, weight: Any, bias: Any = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: Any = ..., dilation: Any = ...) -> Tensor:
    """The adjoint of `conv1d` in its input: each element of `input` adds the weight, times itself, to the output."""
def conv_transpose2d(input: Any, weight: Any, bias: Any = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: Any = ..., dilation: Any = ...) -> Tensor:
    """The transposed convolution of `conv_transpose1d` along two axes."""
def conv_transpose3d(input: Any, weight: Any, bias: Any = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: Any = ..., dilation: Any = ...) -> Tensor:
    """The transposed convolution of `conv_transpose1d` along three axes."""
def copysign(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``|input|`` with the sign of `other`; at 0 and by `other` the derivative is 0."""
def copysign_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`copysign`, written into this tensor, which is returned."""
def corrcoef(input: Any, *, out: Any = ...) -> Tensor:
    """Pearson's correlation coefficients of variables (the rows of `input`): ``cov[i, j] / (std[i] std[j])``."""
def cos(input: Any, *, out: Any = ...) -> Tensor:
    """The cosine."""
def cos_(input: Any, *, out: Any = ...) -> Tensor:
    """`cos`, written into this tensor, which is returned."""
def cosh(input: Any, *, out: Any = ...) -> Tensor:
    """The hyperbolic cosine."""
def cosh_(input: Any, *, out: Any = ...) -> Tensor:
    """`cosh`, written into this tensor, which is returned."""
def cosine_similarity(x1: Any, x2: Any, dim: Any = ..., eps: Any = ...) -> Tensor:
    """The cosine of the angle between vectors along `dim`: ``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))``."""
def count_nonzero(input: Any, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """The number of nonzero elements, over `dim` (default: all elements); int64, no derivative."""
def cov(input: Any, *, correction: Any = ..., fweights: Any = ..., aweights: Any = ..., out: Any = ...) -> Tensor:
    """The covariances of variables (the rows of `input`) over observations (its columns); for a vector, the variance."""
def cross(input: Any, other: Any, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """The cross product along `dim`, or along the first dimension of size 3: `linalg.cross`."""
def cummax(input: Any, dim: Any, *, out: Any = ...) -> Any:
    """The largest so far along `dim`, and its last position: ``(values, indices)``; NaN from the first NaN on."""
def cummin(input: Any, dim: Any, *, out: Any = ...) -> Any:
    """The smallest so far along `dim`, and its last position: ``(values, indices)``; NaN from the first NaN on."""
def cumprod(input: Any, dim: Any, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The running product along `dim`; its derivatives are correct where elements are zero."""
def cumprod_(input: Any, dim: Any, *, dtype: Any = ...) -> Tensor:
    """`cumprod`, written into this tensor, which is returned."""
def cumsum(input: Any, dim: Any, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The running sum along `dim`; integers and bools add up in int64."""
def cumsum_(input: Any, dim: Any, *, dtype: Any = ...) -> Tensor:
    """`cumsum`, written into this tensor, which is returned."""
def cumulative_trapezoid(y: Any, x: Any = ..., *, dx: Any = ..., dim: Any = ..., out: Any = ...) -> Tensor:
    """The integral up to each sample of `y` but the first; see `trapezoid`."""
def deg2rad(input: Any, *, out: Any = ...) -> Tensor:
    """Degrees to radians."""
def deg2rad_(input: Any, *, out: Any = ...) -> Tensor:
    """`deg2rad`, written into this tensor, which is returned."""
def det(input: Any, *, out: Any = ...) -> Tensor:
    """The determinant: `linalg.det`."""
def detach(input: Any) -> Any:
    """`Tensor.detach`: a tensor on the same memory that is not part of the graph."""
def detach_(input: Any) -> Any:
    """`Tensor.detach_`: the tensor itself, taken out of the graph."""
def diag(input: Any, diagonal: Any = ..., *, out: Any = ...) -> Tensor:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix, as a copy."""
def diag_embed(input: Any, offset: Any = ..., dim1: Any = ..., dim2: Any = ..., *, out: Any = ...) -> Tensor:
    """Matrices with the last axis of `input` on their diagonals, zeros elsewhere."""
def diagflat(input: Any, offset: Any = ..., *, out: Any = ...) -> Tensor:
    """The matrix with the elements of `input`, flattened, on its diagonal."""
def diagonal(input: Any, offset: Any = ..., dim1: Any = ..., dim2: Any = ...) -> Tensor:
    """The elements ``[i, i + offset]`` of the axes `dim1` and `dim2`, as the last axis; a view."""
def diagonal_scatter(input: Any, src: Any, offset: Any = ..., dim1: Any = ..., dim2: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` with its `diagonal` replaced by `src`."""
def diff(input: Any, n: Any = ..., dim: Any = ..., prepend: Any = ..., append: Any = ..., *, out: Any = ...) -> Tensor:
    """``input[i + 1] - input[i]`` along `dim`, `n` times; for bools, whether they differ."""
def digamma(input: Any, *, out: Any = ...) -> Tensor:
    """The derivative of `lgamma`."""
def digamma_(input: Any, *, out: Any = ...) -> Tensor:
    """`digamma`, written into this tensor, which is returned."""
def dist(input: Any, other: Any, p: Any = ..., *, out: Any = ...) -> Tensor:
    """The p-norm of the difference, ``norm(input - other, p)``. For equal tensors, it and its gradient are 0."""
def div(input: Any, other: Any, *, rounding_mode: Any = ..., out: Any = ...) -> Tensor:
    """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
def div_(input: Any, other: Any, *, rounding_mode: Any = ..., out: Any = ...) -> Tensor:
    """`div`, written into this tensor, which is returned."""
def divide(input: Any, other: Any, *, rounding_mode: Any = ..., out: Any = ...) -> Tensor:
    """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
def divide_(input: Any, other: Any, *, rounding_mode: Any = ..., out: Any = ...) -> Tensor:
    """`divide`, written into this tensor, which is returned."""
def dot(input: Any, tensor: Any, *, out: Any = ...) -> Tensor:
    """The product of two vectors, not conjugated."""
def dsplit(input: Any, indices_or_sections: Any) -> Any:
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
def equal(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether two tensors have the same shape and the same elements; NaN equals no number."""
def erf(input: Any, *, out: Any = ...) -> Tensor:
    """``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `input`."""
def erf_(input: Any, *, out: Any = ...) -> Tensor:
    """`erf`, written into this tensor, which is returned."""
def erfc(input: Any, *, out: Any = ...) -> Tensor:
    """``1 - erf(input)``, exact for large numbers."""
def erfc_(input: Any, *, out: Any = ...) -> Tensor:
    """`erfc`, written into this tensor, which is returned."""
def erfinv(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of `erf`, infinite at -1 and 1, NaN beyond."""
def erfinv_(input: Any, *, out: Any = ...) -> Tensor:
    """`erfinv`, written into this tensor, which is returned."""
def exp(input: Any, *, out: Any = ...) -> Tensor:
    """``e ** input``."""
def exp2(input: Any, *, out: Any = ...) -> Tensor:
    """``2 ** input``."""
def exp2_(input: Any, *, out: Any = ...) -> Tensor:
    """`exp2`, written into this tensor, which is returned."""
def exp_(input: Any, *, out: Any = ...) -> Tensor:
    """`exp`, written into this tensor, which is returned."""
def expm1(input: Any, *, out: Any = ...) -> Tensor:
    """``exp(input) - 1``, exact near 0."""
def expm1_(input: Any, *, out: Any = ...) -> Tensor:
    """`expm1`, written into this tensor, which is returned."""
def fill(input: Any, value: Any) -> Any:
    """`value`, a number or a 0-d tensor, in the shape and dtype of `input`; gradients flow to a 0-d tensor."""
def fill_(self: Any, value: Any) -> Any:
    """Set every element to `value`, a number or a 0-d tensor."""
def fix(input: Any, *, out: Any = ...) -> Tensor:
    """The integer part: rounded toward 0."""
def fix_(input: Any, *, out: Any = ...) -> Tensor:
    """`fix`, written into this tensor, which is returned."""
def flatten(input: Any, start_dim: Any = ..., end_dim: Any = ...) -> Tensor:
    """Axes `start_dim` to `end_dim`, both included, joined into one; the tensor itself for a single axis."""
def flip(input: Any, dims: Any, *more: Any, out: Any = ...) -> Tensor:
    """`input` with the order along `dims` reversed; a copy."""
def fliplr(input: Any, *, out: Any = ...) -> Tensor:
    """`input` with the order along the second axis reversed."""
def flipud(input: Any, *, out: Any = ...) -> Tensor:
    """`input` with the order along the first axis reversed."""
def float_power(input: Any, exponent: Any, *, out: Any = ...) -> Tensor:
    """``input ** exponent`` in double precision, whatever the dtypes."""
def float_power_(input: Any, exponent: Any) -> Tensor:
    """`float_power`, written into this tensor, which is returned."""
def floor(input: Any, *, out: Any = ...) -> Tensor:
    """The largest integer up to `input`."""
def floor_(input: Any, *, out: Any = ...) -> Tensor:
    """`floor`, written into this tensor, which is returned."""
def floor_divide(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``floor(input / other)``; its derivative is 0."""
def floor_divide_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`floor_divide`, written into this tensor, which is returned."""
def fmax(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The larger of two, elementwise; if one is NaN, the other. At a tie the first gets the gradient."""
def fmin(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The smaller of two, elementwise; if one is NaN, the other. At a tie the first gets the gradient."""
def fmod(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input - trunc(input / other) * other``; takes the sign of `input`."""
def fmod_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`fmod`, written into this tensor, which is returned."""
def frac(input: Any, *, out: Any = ...) -> Tensor:
    """``input - trunc(input)``, with the sign of `input`."""
def frac_(input: Any, *, out: Any = ...) -> Tensor:
    """`frac`, written into this tensor, which is returned."""
def frexp(input: Any, *, out: Any = ...) -> Any:
    """Mantissa and exponent: ``input = mantissa * 2 ** exponent`` with ``0.5 <= |mantissa| < 1``."""
def from_dlpack(ext_tensor: Any, *, device: Any = ..., copy: Any = ...) -> Any:
    """A tensor on the memory of another library's tensor, by the DLPack protocol."""
def frombuffer(buffer: Any, *, dtype: Any, count: Any = ..., offset: Any = ..., requires_grad: Any = ...) -> Any:
    """A 1-d tensor on the memory of a buffer (Python's protocol): `count` elements (-1: all) from byte `offset` on."""
def gather(input: Any, dim: Any, index: Any, *, sparse_grad: Any = ..., out: Any = ...) -> Tensor:
    """``out[i][j] = input[index[i][j]][j]`` for ``dim=0``, and so on: one element along `dim` for each position."""
def gcd(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The greatest common divisor of integers."""
def gcd_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`gcd`, written into this tensor, which is returned."""
def ge(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input >= other``, elementwise."""
def ge_(input: Any, other: Any) -> Any:
    """`ge`, written into this tensor, which is returned."""
def geqrf(input: Any, *, out: Any = ...) -> Any:
    """The result of LAPACK's routine of that name: R above and the reflections below the diagonal of ``a``, with their ``tau``; it has no derivative. `linalg.householder_product` computes Q from both."""
def ger(input: Any, vec2: Any, *, out: Any = ...) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]`` of two vectors."""
def get_device(input: Any, *, out: Any = ...) -> Any:
    """-1: no accelerator; all tensors lie in the host's memory."""
def get_rng_state() -> Any:
    """The position of the default generator, as a uint8 tensor."""
def gradient(input: Any, *, spacing: Any = ..., dim: Any = ..., edge_order: Any = ..., out: Any = ...) -> Any:
    """The derivatives along each of `dim` of the function that `input` samples, by second-order differences."""
def greater(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input > other``, elementwise."""
def greater_(input: Any, other: Any) -> Any:
    """`greater`, written into this tensor, which is returned."""
def greater_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input >= other``, elementwise."""
def greater_equal_(input: Any, other: Any) -> Any:
    """`greater_equal`, written into this tensor, which is returned."""
def group_norm(input: Any, num_groups: Any, weight: Any = ..., bias: Any = ..., eps: Any = ...) -> Tensor:
    """The channels of ``(N, C, ...)`` in `num_groups` groups with mean 0 and variance 1; then a scale and a shift."""
def gt(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input > other``, elementwise."""
def gt_(input: Any, other: Any) -> Any:
    """`gt`, written into this tensor, which is returned."""
def hamming_window(window_length: Any, periodic: Any = ..., alpha: Any = ..., beta: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``alpha - beta cos(2 pi x)`` for x from 0 to 1."""
def hann_window(window_length: Any, periodic: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``(1 - cos(2 pi x)) / 2`` for x from 0 to 1."""
def hardshrink(input: Any, lambd: Any = ...) -> Tensor:
    """`input` where ``|input| > lambd``, else 0."""
def heaviside(input: Any, values: Any, *, out: Any = ...) -> Tensor:
    """0 where `input` is negative or NaN, 1 where it is positive, `values` where it is 0 (they get the gradient)."""
def heaviside_(input: Any, values: Any) -> Tensor:
    """`heaviside`, written into this tensor, which is returned."""
def histc(input: Any, bins: Any = ..., min: Any = ..., max: Any = ..., *, out: Any = ...) -> Tensor:
    """The number of elements in each of `bins` bins of equal width from `min` to `max`."""
def histogram(input: Any, bins: Any = ..., *, range: Any = ..., weight: Any = ..., density: Any = ..., out: Any = ...) -> Any:
    """The sums of weights (1) in each bin, and the edges of the bins: ``(hist, bin_edges)``."""
def histogramdd(input: Any, bins: Any, *, range: Any = ..., weight: Any = ..., density: Any = ..., out: Any = ...) -> Any:
    """As `histogram`, for points with coordinates along the last axis of `input`: a bin is a box in D dimensions."""
def hsplit(input: Any, indices_or_sections: Any) -> Any:
    """`tensor_split` along the second axis, or the only one."""
def hstack(tensors: Any, *, out: Any = ...) -> Tensor:
    """The tensors side by side, from left to right: along the second axis, or along the first if there is only one."""
def hypot(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``sqrt(input ** 2 + other ** 2)``, without overflow; at the origin the derivative is NaN."""
def hypot_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`hypot`, written into this tensor, which is returned."""
def i0(input: Any, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""
def i0_(input: Any) -> Tensor:
    """`i0`, written into this tensor, which is returned."""
def igamma(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The regularised lower incomplete gamma function ``P(input, other)``; no derivative by `input`."""
def igamma_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`igamma`, written into this tensor, which is returned."""
def igammac(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The regularised upper incomplete gamma function, ``1 - igamma(input, other)``; no derivative by `input`."""
def igammac_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`igammac`, written into this tensor, which is returned."""
def imag(input: Any) -> Tensor:
    """The imaginary part, a view."""
def index_add(input: Any, dim: Any, index: Any, source: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """`input` with the slices of ``alpha * source`` added to its slices along `dim` at the positions in `index`."""
def index_copy(input: Any, dim: Any, index: Any, source: Any, *, out: Any = ...) -> Tensor:
    """`input` with its slices along `dim` at the positions in `index` replaced by the slices of `source`."""
def index_fill(input: Any, dim: Any, index: Any, value: Any, *, out: Any = ...) -> Tensor:
    """`input` with `value`, a number or a 0-d tensor, in the slices along `dim` at the positions in `index`."""
def index_put(input: Any, indices: Any, values: Any, accumulate: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` with `values` written at ``input[indices]``, for a tuple of tensors, or added there if `accumulate`."""
def index_put_(self: Any, indices: Any, values: Any, accumulate: Any = ...) -> Any:
    """`index_put`, written into this tensor, which is returned."""
def index_reduce(input: Any, dim: Any, index: Any, source: Any, reduce: Any, *, include_self: Any = ..., out: Any = ...) -> Tensor:
    """The slices of `source` combined with those of `input` at their positions along `dim`: "prod", "mean", "amax" or "amin"; without `include_self`, only among themselves. See `scatter_reduce`."""
def index_select(input: Any, dim: Any, index: Any, *, out: Any = ...) -> Tensor:
    """The slices of `input` along `dim` at the positions in `index`, a 1-D tensor of integers that are not negative."""
def initial_seed() -> Any:
    """The seed the default generator started from."""
def inner(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The sum of products over the last axis of both; a 0-d tensor multiplies."""
def inverse(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse: `linalg.inv`."""
def is_complex(input: Any, *, out: Any = ...) -> Any:
    """Whether the elements are complex."""
def is_conj(input: Any, *, out: Any = ...) -> Any:
    """False: conjugates are computed at once, never later."""
def is_floating_point(input: Any, *, out: Any = ...) -> Any:
    """Whether the elements are real floating point numbers."""
def is_inference(input: Any, *, out: Any = ...) -> Any:
    """Whether the tensor was made in inference mode."""
def is_neg(input: Any, *, out: Any = ...) -> Any:
    """False: negatives are computed at once, never later."""
def is_nonzero(input: Any) -> Any:
    """Whether the only element is not 0; RuntimeError if there is not exactly one."""
def is_same_size(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether two tensors have the same shape."""
def is_signed(input: Any) -> Any:
    """Whether the dtype has negative numbers."""
def isclose(input: Any, other: Any, rtol: Any = ..., atol: Any = ..., equal_nan: Any = ..., *, out: Any = ...) -> Tensor:
    """Elementwise, whether ``|input - other| <= atol + rtol * |other|``; infinities are close to themselves."""
def isfinite(input: Any, *, out: Any = ...) -> Tensor:
    """Whether it is neither infinite nor NaN."""
def isin(elements: Any, test_elements: Any, *, assume_unique: Any = ..., invert: Any = ..., out: Any = ...) -> Tensor:
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
def istft(input: Any, n_fft: Any, hop_length: Any = ..., win_length: Any = ..., window: Any = ..., center: Any = ..., normalized: Any = ..., onesided: Any = ..., length: Any = ..., return_complex: Any = ..., *, out: Any = ...) -> Tensor:
    """The signal whose `stft` with the same arguments is `input`, or the least-squares one if there is no such signal."""
def kaiser_window(window_length: Any, periodic: Any = ..., beta: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``I0(beta sqrt(1 - (2 x - 1)**2)) / I0(beta)`` for x from 0 to 1; I0 is the modified Bessel function."""
def kron(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`."""
def kthvalue(input: Any, k: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Any:
    """The k-th smallest element along `dim`, counted from 1, and its index: ``(values, indices)``."""
def layer_norm(input: Any, normalized_shape: Any, weight: Any = ..., bias: Any = ..., eps: Any = ...) -> Tensor:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes, which have `normalized_shape`."""
def lcm(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The least common multiple of integers."""
def lcm_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`lcm`, written into this tensor, which is returned."""
def ldexp(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input * 2 ** other``, in floating point."""
def ldexp_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`ldexp`, written into this tensor, which is returned."""
def le(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input <= other``, elementwise."""
def le_(input: Any, other: Any) -> Any:
    """`le`, written into this tensor, which is returned."""
def lerp(input: Any, end: Any, weight: Any, *, out: Any = ...) -> Tensor:
    """``input + weight * (end - input)``; exactly `input` and `end` at the weights 0 and 1."""
def lerp_(input: Any, end: Any, weight: Any) -> Tensor:
    """`lerp`, written into this tensor, which is returned."""
def less(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input < other``, elementwise."""
def less_(input: Any, other: Any) -> Any:
    """`less`, written into this tensor, which is returned."""
def less_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input <= other``, elementwise."""
def less_equal_(input: Any, other: Any) -> Any:
    """`less_equal`, written into this tensor, which is returned."""
def lgamma(input: Any, *, out: Any = ...) -> Tensor:
    """``log |Gamma(input)|``."""
def lgamma_(input: Any, *, out: Any = ...) -> Tensor:
    """`lgamma`, written into this tensor, which is returned."""
def log(input: Any, *, out: Any = ...) -> Tensor:
    """The natural logarithm."""
def log10(input: Any, *, out: Any = ...) -> Tensor:
    """The logarithm to base 10."""
def log10_(input: Any, *, out: Any = ...) -> Tensor:
    """`log10`, written into this tensor, which is returned."""
def log1p(input: Any, *, out: Any = ...) -> Tensor:
    """``log(1 + input)``, exact near 0."""
def log1p_(input: Any, *, out: Any = ...) -> Tensor:
    """`log1p`, written into this tensor, which is returned."""
def log2(input: Any, *, out: Any = ...) -> Tensor:
    """The logarithm to base 2."""
def log2_(input: Any, *, out: Any = ...) -> Tensor:
    """`log2`, written into this tensor, which is returned."""
def log_(input: Any, *, out: Any = ...) -> Tensor:
    """`log`, written into this tensor, which is returned."""
def log_softmax(input: Any, dim: Any, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`, more precise than the logarithm of `softmax`."""
def logaddexp(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``log(exp(input) + exp(other))``, without overflow."""
def logaddexp2(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``log2(2 ** input + 2 ** other)``, without overflow."""
def logcumsumexp(input: Any, dim: Any, *, out: Any = ...) -> Tensor:
    """The logarithm of the running sum of exponentials along `dim`, without overflow."""
def logdet(input: Any, *, out: Any = ...) -> Tensor:
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
def logit(input: Any, eps: Any = ..., *, out: Any = ...) -> Tensor:
    """``log(input / (1 - input))``, the inverse of `sigmoid`; NaN outside [0, 1]."""
def logit_(input: Any, eps: Any = ...) -> Tensor:
    """`logit`, written into this tensor, which is returned."""
def logspace(start: Any, end: Any, steps: Any, base: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``base ** x`` for `steps` numbers x from `start` to `end`, evenly spaced, both included."""
def logsumexp(input: Any, dim: Any, keepdim: Any = ..., *, out: Any = ...) -> Tensor:
    """``log(sum(exp(input)))`` over `dim`, relative to the largest element against overflow; -inf for no elements."""
def lt(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input < other``, elementwise."""
def lt_(input: Any, other: Any) -> Any:
    """`lt`, written into this tensor, which is returned."""
def lu(A: Any, pivot: Any = ..., get_infos: Any = ..., *, out: Any = ...) -> Any:
    """The LU factors in one matrix, the row exchanges, and with `get_infos` the first zero pivots, from `linalg.lu_factor_ex`."""
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any, *, out: Any = ...) -> Tensor:
    """X with ``A X = b``: `linalg.lu_solve`."""
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: Any = ..., unpack_pivots: Any = ..., *, out: Any = ...) -> Any:
    """``P``, ``L`` and ``U`` from the result of `linalg.lu_factor`; a result that is not requested is empty."""
def masked_fill(input: Any, mask: Any, value: Any, *, out: Any = ...) -> Tensor:
    """`input` with `value`, a number or a 0-d tensor, wherever `mask`, a bool tensor broadcast with it, is True."""
def masked_scatter(input: Any, mask: Any, source: Any, *, out: Any = ...) -> Tensor:
    """`input` with the elements of `source`, one after the other, where `mask` is True; the mask broadcasts."""
def masked_select(input: Any, mask: Any, *, out: Any = ...) -> Tensor:
    """The elements where `mask`, a bool tensor, is True, one after the other; the two broadcast."""
def matmul(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The matrix product; vectors and batches of matrices as in NumPy. ``dA = g B^T``, ``dB = A^T g``."""
def matrix_exp(A: Any, *, out: Any = ...) -> Tensor:
    """The exponential of square matrices, ``I + A + A A / 2 + ...``; by scaling and squaring."""
def matrix_power(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The product of n factors: `linalg.matrix_power`."""
def max(input: Any, *args: Any, dim: Any = ..., other: Any = ..., keepdim: Any = ..., out: Any = ...) -> Any:
    """`max(x)`: the largest element; `max(x, dim)`: ``(values, indices)`` along an axis; `max(x, y)`: as `maximum`."""
def max_pool1d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: Any = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window along the last axis of ``(N, C, L)`` or ``(C, L)``."""
def max_pool2d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: Any = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window on images ``(N, C, H, W)`` or ``(C, H, W)``; arguments as of `max_pool1d`."""
def max_pool3d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: Any = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window on volumes ``(N, C, D, H, W)``; arguments as of `max_pool1d`."""
def maximum(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The larger of two, elementwise; NaN if either is. A tie shares the gradient in halves."""
def mean(input: Any, dim: Any = ..., keepdim: Any = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The arithmetic mean over `dim`; NaN for no elements. Integers and bools need a `dtype`."""
def median(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Any:
    """The lower median of all elements, or along `dim` with its index: ``(values, indices)``; NaN if there is one."""
def meshgrid(*tensors: Any, indexing: Any = ...) -> Any:
    """The coordinates of a grid: each tensor's elements along a separate axis; "xy" exchanges the first two axes."""
def min(input: Any, *args: Any, dim: Any = ..., other: Any = ..., keepdim: Any = ..., out: Any = ...) -> Any:
    """`min(x)`: the smallest element; `min(x, dim)`: ``(values, indices)`` along an axis; `min(x, y)`: as `minimum`."""
def minimum(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The smaller of two, elementwise; NaN if either is. A tie shares the gradient in halves."""
def mm(input: Any, mat2: Any, *, out: Any = ...) -> Tensor:
    """The product of two matrices."""
def mode(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Any:
    """The most frequent element along `dim` (the smallest at a tie) and its last index: ``(values, indices)``."""
def moveaxis(input: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to new places, the others in their order; a view."""
def movedim(input: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to new places, the others in their order; a view."""
def msort(input: Any, *, out: Any = ...) -> Tensor:
    """The elements in ascending order along the first axis."""
def mul(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input * other``, broadcast."""
def mul_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`mul`, written into this tensor, which is returned."""
def multinomial(input: Any, num_samples: Any, replacement: Any = ..., *, generator: Any = ..., out: Any = ...) -> Any:
    """`num_samples` positions in each row of `input`, of one or two axes, drawn with probabilities proportional to it."""
def multiply(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input * other``, broadcast."""
def multiply_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`multiply`, written into this tensor, which is returned."""
def mv(input: Any, vec: Any, *, out: Any = ...) -> Tensor:
    """The product of a matrix and a vector."""
def mvlgamma(input: Any, p: Any, *, out: Any = ...) -> Tensor:
    """The multivariate `lgamma`: ``p (p - 1) / 4 log(pi) + sum of lgamma(input - j / 2)`` over j from 0 to p - 1."""
def mvlgamma_(input: Any, p: Any) -> Tensor:
    """`mvlgamma`, written into this tensor, which is returned."""
def nan_to_num(input: Any, nan: Any = ..., posinf: Any = ..., neginf: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` with NaN replaced by 0, and infinities by the largest and smallest numbers of the dtype."""
def nan_to_num_(input: Any, nan: Any = ..., posinf: Any = ..., neginf: Any = ...) -> Tensor:
    """`nan_to_num`, written into this tensor, which is returned."""
def nanmean(input: Any, dim: Any = ..., keepdim: Any = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The mean over `dim` of the elements that are not NaN; NaN if all are."""
def nanmedian(input: Any, dim: Any = ..., keepdim: Any = ..., *, out: Any = ...) -> Any:
    """`median` of the elements that are not NaN; NaN if all are."""
def nanquantile(input: Any, q: Any, dim: Any = ..., keepdim: Any = ..., *, interpolation: Any = ..., out: Any = ...) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN if all are."""
def nansum(input: Any, dim: Any = ..., keepdim: Any = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The sum over `dim` of the elements that are not NaN; the gradient of NaN is 0."""
def narrow(input: Any, dim: Any, start: Any, length: Any) -> Tensor:
    """`length` slices along `dim` from `start`; a view."""
def narrow_copy(input: Any, dim: Any, start: Any, length: Any, *, out: Any = ...) -> Tensor:
    """`narrow`, as a copy in new memory."""
def ne(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input != other``, elementwise."""
def ne_(input: Any, other: Any) -> Any:
    """`ne`, written into this tensor, which is returned."""
def neg(input: Any, *, out: Any = ...) -> Tensor:
    """``-input``."""
def neg_(input: Any, *, out: Any = ...) -> Tensor:
    """`neg`, written into this tensor, which is returned."""
def negative(input: Any, *, out: Any = ...) -> Tensor:
    """``-input``."""
def negative_(input: Any, *, out: Any = ...) -> Tensor:
    """`negative`, written into this tensor, which is returned."""
def nextafter(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The next number of the dtype after `input`, toward `other`. Its derivative by `input` is 1."""
def nextafter_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`nextafter`, written into this tensor, which is returned."""
def nonzero(input: Any, *, as_tuple: Any = ..., out: Any = ...) -> Any:
    """The positions of the elements that are not 0: a row for each or, with `as_tuple`, a tensor for each axis."""
def nonzero_static(input: Any, *, size: Any, fill_value: Any = ..., out: Any = ...) -> Tensor:
    """The first `size` rows of `nonzero`, filled up with rows of `fill_value`: the shape is known beforehand."""
def norm(input: Any, p: Any = ..., dim: Any = ..., keepdim: Any = ..., dtype: Any = ..., *, out: Any = ...) -> Tensor:
    """The p-norm ``(sum |x|^p)^(1/p)`` over `dim` (default: all); ``"fro"`` is p = 2, `inf` the largest modulus."""
def normal(mean: Any = ..., std: Any = ..., size: Any = ..., *, generator: Any = ..., dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """``mean + std * z`` with z standard normal: elementwise for tensors; of shape `size` for two numbers."""
def not_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input != other``, elementwise."""
def not_equal_(input: Any, other: Any) -> Any:
    """`not_equal`, written into this tensor, which is returned."""
def numel(input: Any, *, out: Any = ...) -> Any:
    """The number of elements."""
def orgqr(input: Any, tau: Any, *, out: Any = ...) -> Tensor:
    """The first columns of a product of reflections: `linalg.householder_product`."""
def ormqr(input: Any, tau: Any, other: Any, left: Any = ..., transpose: Any = ..., *, out: Any = ...) -> Tensor:
    """``Q other`` (or, if not `left`, ``other Q``) with the square Q of `linalg.householder_product`; with `transpose`, Q^H instead of Q."""
def outer(input: Any, vec2: Any, *, out: Any = ...) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]`` of two vectors."""
def pairwise_distance(x1: Any, x2: Any, p: Any = ..., eps: Any = ..., keepdim: Any = ...) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""
def pca_lowrank(A: Any, q: Any = ..., center: Any = ..., niter: Any = ...) -> Any:
    """The first `q` principal components of the rows of A, the columns of V: `svd_lowrank` of A minus its mean row."""
def pdist(input: Any, p: Any = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order 0-1, 0-2, ..., 1-2, ...; otherwise as `cdist`."""
def permute(input: Any, dims: Any, *more: Any) -> Tensor:
    """The axes in the order `dims`; a view."""
def pinverse(input: Any, rcond: Any = ..., *, out: Any = ...) -> Tensor:
    """The pseudoinverse, in which singular values up to `rcond` times the largest count as 0: `linalg.pinv`."""
def pixel_shuffle(input: Any, upscale_factor: Any) -> Tensor:
    """Channels as pixels: ``(*, C r^2, H, W)`` to ``(*, C, H r, W r)``, where r is the `upscale_factor`."""
def pixel_unshuffle(input: Any, downscale_factor: Any) -> Tensor:
    """Pixels as channels, the inverse of `pixel_shuffle`: ``(*, C, H r, W r)`` to ``(*, C r^2, H, W)``."""
def poisson(input: Any, generator: Any = ...) -> Any:
    """Numbers from the Poisson distributions with the means in `input`, in its dtype."""
def polar(abs: Any, angle: Any, *, out: Any = ...) -> Tensor:
    """``abs * exp(i angle)``: the complex number of that size and angle."""
def polygamma(n: Any, input: Any, *, out: Any = ...) -> Tensor:
    """The derivative of order `n` of `digamma`: ``polygamma(0, x)`` is ``digamma(x)``."""
def polygamma_(self: Any, n: Any) -> Any:
    """`polygamma`, written into this tensor, which is returned."""
def positive(input: Any, *, out: Any = ...) -> Tensor:
    """``+input``: the tensor itself; bools are refused."""
def pow(input: Any, exponent: Any, *, out: Any = ...) -> Tensor:
    """``input ** exponent``, broadcast; its derivatives take their limit, 0, at exponent 0 and at base 0."""
def pow_(input: Any, exponent: Any, *, out: Any = ...) -> Tensor:
    """`pow`, written into this tensor, which is returned."""
def prelu(input: Any, weight: Any) -> Tensor:
    """`input` where it is positive, else ``weight * input``; one weight for all, or one for each channel (axis 1)."""
def prod(input: Any, dim: Any = ..., keepdim: Any = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The product over one axis, or of all elements; its derivatives are correct where elements are zero."""
def put(input: Any, index: Any, source: Any, accumulate: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` with the elements of `source` written at flat positions, or added there if `accumulate`."""
def qr(input: Any, some: Any = ..., *, out: Any = ...) -> Any:
    """``Q`` and ``R``: `linalg.qr`; ``some=False`` is its mode "complete"."""
def quantile(input: Any, q: Any, dim: Any = ..., keepdim: Any = ..., *, interpolation: Any = ..., out: Any = ...) -> Tensor:
    """The `q`-th quantiles, q in [0, 1], along `dim` (default: of all elements); NaN where there is a NaN."""
def rad2deg(input: Any, *, out: Any = ...) -> Tensor:
    """Radians to degrees."""
def rad2deg_(input: Any, *, out: Any = ...) -> Tensor:
    """`rad2deg`, written into this tensor, which is returned."""
def range(start: Any, end: Any, step: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """The numbers from `start` to `end`, both included. Deprecated in torch, since Python's range excludes its end."""
def ravel(input: Any) -> Tensor:
    """All elements in one contiguous row; a view if the memory is already in this order."""
def real(input: Any, *, out: Any = ...) -> Tensor:
    """The real part, a view; a real tensor itself."""
def reciprocal(input: Any, *, out: Any = ...) -> Tensor:
    """``1 / input``."""
def reciprocal_(input: Any, *, out: Any = ...) -> Tensor:
    """`reciprocal`, written into this tensor, which is returned."""
def relu(input: Any, *, out: Any = ...) -> Tensor:
    """``max(input, 0)``; its derivative at 0 is 0."""
def relu_(input: Any, *, out: Any = ...) -> Tensor:
    """`relu`, written into this tensor, which is returned."""
def remainder(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input - floor(input / other) * other``; takes the sign of `other`."""
def remainder_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`remainder`, written into this tensor, which is returned."""
def renorm(input: Any, p: Any, dim: Any, maxnorm: Any, *, out: Any = ...) -> Tensor:
    """`input` with each slice along `dim` scaled to p-norm `maxnorm` (less 1e-7 of it) if its p-norm is larger."""
def renorm_(input: Any, p: Any, dim: Any, maxnorm: Any) -> Tensor:
    """`renorm`, written into this tensor, which is returned."""
def repeat_interleave(input: Any, repeats: Any = ..., dim: Any = ..., *, output_size: Any = ..., out: Any = ...) -> Tensor:
    """Each element (or slice along `dim`) `repeats` times in a row; a number for all, or a tensor with one for each."""
def reshape(input: Any, shape: Any, *more: Any) -> Tensor:
    """`input` with another shape (one length may be -1); a view where the memory allows it, otherwise a copy."""
def resize_as_(self: Any, the_template: Any, memory_format: Any = ...) -> Any:
    """`resize_` to the shape of another tensor; with `preserve_format`, also to its memory format."""
def resolve_conj(input: Any, *, out: Any = ...) -> Tensor:
    """The tensor itself: conjugates are computed at once."""
def resolve_neg(input: Any, *, out: Any = ...) -> Tensor:
    """The tensor itself: negatives are computed at once."""
def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype of an arithmetic operation on two tensors or numbers."""
def rms_norm(input: Any, normalized_shape: Any, weight: Any = ..., eps: Any = ...) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axes, which have `normalized_shape`."""
def roll(input: Any, shifts: Any, dims: Any = ..., *, out: Any = ...) -> Tensor:
    """The elements moved on by `shifts` along `dims` (default: in the flattened tensor); the last come to the front."""
def rot90(input: Any, k: Any = ..., dims: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` turned `k` times by 90 degrees in the plane of two axes, from the first towards the second."""
def round(input: Any, decimals: Any = ..., *, out: Any = ...) -> Tensor:
    """The nearest number with `decimals` decimals, halves to the even one; negative `decimals` round to tens, hundreds."""
def round_(input: Any, decimals: Any = ...) -> Tensor:
    """`round`, written into this tensor, which is returned."""
def row_stack(tensors: Any, *, out: Any = ...) -> Tensor:
    """The tensors one below the other: along the first axis; a 1-D tensor is a row."""
def rrelu(input: Any, lower: Any = ..., upper: Any = ..., training: Any = ..., inplace: Any = ...) -> Tensor:
    """`leaky_relu` with slopes drawn from ``[lower, upper]`` in training, else with the mean of the two bounds."""
def rrelu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`rrelu`, written into `input`, which is returned."""
def rsqrt(input: Any, *, out: Any = ...) -> Tensor:
    """``1 / sqrt(input)``."""
def rsqrt_(input: Any, *, out: Any = ...) -> Tensor:
    """`rsqrt`, written into this tensor, which is returned."""
def rsub(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """``other - alpha * input``, broadcast: `sub` with its operands exchanged."""
def scalar_tensor(s: Any, *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: Any = ..., pin_memory: Any = ...) -> Any:
    """A 0-d tensor of one number, in the default floating point dtype unless `dtype` is given."""
def scatter(input: Any, dim: Any, index: Any, src: Any = ..., *, value: Any = ..., reduce: Any = ..., out: Any = ...) -> Tensor:
    """``out[index[i][j]][j] = src[i][j]`` for ``dim=0``, and so on; elsewhere `input`. `src` may be a number."""
def scatter_add(input: Any, dim: Any, index: Any, src: Any, *, out: Any = ...) -> Tensor:
    """``out[index[i][j]][j] += src[i][j]`` for ``dim=0``, and so on, starting with `input`; positions may repeat."""
def scatter_reduce(input: Any, dim: Any, index: Any, src: Any, reduce: Any, *, include_self: Any = ..., out: Any = ...) -> Tensor:
    """`input` combined with the elements of `src`, each at its position along `dim`: "sum", "prod", "mean", "amax" or "amin"; without `include_self`, only these elements, if there are any."""
def searchsorted(sorted_sequence: Any, input: Any, *, out_int32: Any = ..., right: Any = ..., side: Any = ..., sorter: Any = ..., out: Any = ...) -> Tensor:
    """The position at which to insert each of `input` in a sorted sequence (or in its rows, for the rows of `input`)."""
def seed() -> Any:
    """Seed the default generator from the system's entropy, and return the seed."""
def select(input: Any, dim: Any, index: Any) -> Tensor:
    """The slice at position `index` along `dim`, without that axis; a view."""
def select_scatter(input: Any, src: Any, dim: Any, index: Any, *, out: Any = ...) -> Tensor:
    """`input` with the slice at position `index` along `dim` replaced by `src`."""
def selu(input: Any, inplace: Any = ...) -> Tensor:
    """``1.0507 * elu(input, 1.6733)``, which keeps mean 0 and variance 1 from layer to layer."""
def selu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`selu`, written into `input`, which is returned."""
def set_rng_state(new_state: Any) -> Any:
    """Put the default generator back to a position from `get_rng_state`."""
def sgn(input: Any, *, out: Any = ...) -> Tensor:
    """`sign` for real numbers; for complex ones the direction ``input / |input|``, 0 at 0."""
def sgn_(input: Any) -> Tensor:
    """`sgn`, written into this tensor, which is returned."""
def sigmoid(input: Any, *, out: Any = ...) -> Tensor:
    """``1 / (1 + exp(-input))``."""
def sigmoid_(input: Any, *, out: Any = ...) -> Tensor:
    """`sigmoid`, written into this tensor, which is returned."""
def sign(input: Any, *, out: Any = ...) -> Tensor:
    """-1, 0 or 1; 0 for NaN. Its derivative is 0."""
def sign_(input: Any, *, out: Any = ...) -> Tensor:
    """`sign`, written into this tensor, which is returned."""
def signbit(input: Any, *, out: Any = ...) -> Tensor:
    """Whether the sign bit is set: for negative numbers and -0.0."""
def sin(input: Any, *, out: Any = ...) -> Tensor:
    """The sine."""
def sin_(input: Any, *, out: Any = ...) -> Tensor:
    """`sin`, written into this tensor, which is returned."""
def sinc(input: Any, *, out: Any = ...) -> Tensor:
    """``sin(pi x) / (pi x)``, 1 at 0."""
def sinc_(input: Any, *, out: Any = ...) -> Tensor:
    """`sinc`, written into this tensor, which is returned."""
def sinh(input: Any, *, out: Any = ...) -> Tensor:
    """The hyperbolic sine."""
def sinh_(input: Any, *, out: Any = ...) -> Tensor:
    """`sinh`, written into this tensor, which is returned."""
def slice_scatter(input: Any, src: Any, dim: Any = ..., start: Any = ..., end: Any = ..., step: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` with the slices along `dim` from `start` to `end`, or every `step`-th of them, replaced by `src`."""
def slogdet(input: Any, *, out: Any = ...) -> Any:
    """The sign of the determinant and the logarithm of its modulus: `linalg.slogdet`."""
def softmax(input: Any, dim: Any, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size."""
def sort(input: Any, dim: Any = ..., descending: Any = ..., *, stable: Any = ..., out: Any = ...) -> Any:
    """The elements in order along `dim`, and their positions before: ``(values, indices)``."""
def split(input: Any, split_size_or_sections: Any = ..., dim: Any = ..., *, split_size: Any = ...) -> Any:
    """Consecutive pieces along `dim`: of one size (the last may be smaller), or of the sizes listed."""
def split_with_sizes(input: Any, split_sizes: Any, dim: Any = ...) -> Any:
    """Consecutive pieces along `dim`, of the sizes listed."""
def sqrt(input: Any, *, out: Any = ...) -> Tensor:
    """The square root; NaN below 0. Derivative ``1 / (2 sqrt(x))``, infinite at 0."""
def sqrt_(input: Any, *, out: Any = ...) -> Tensor:
    """`sqrt`, written into this tensor, which is returned."""
def square(input: Any, *, out: Any = ...) -> Tensor:
    """``input ** 2``."""
def square_(input: Any, *, out: Any = ...) -> Tensor:
    """`square`, written into this tensor, which is returned."""
def squeeze(input: Any, dim: Any = ...) -> Tensor:
    """`input` without its axes of length 1, or without those among `dim`; a view."""
def stack(tensors: Any, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """Tensors of one shape side by side along a new axis `dim`."""
def std(input: Any, dim: Any = ..., unbiased: Any = ..., keepdim: Any = ..., *, correction: Any = ..., out: Any = ...) -> Tensor:
    """The standard deviation over `dim`: the square root of `var`; its gradient is 0 where all elements are equal."""
def std_mean(input: Any, dim: Any = ..., unbiased: Any = ..., keepdim: Any = ..., *, correction: Any = ..., out: Any = ...) -> Any:
    """The standard deviation and the mean over `dim`; see `std`."""
def stft(input: Any, n_fft: Any, hop_length: Any = ..., win_length: Any = ..., window: Any = ..., center: Any = ..., pad_mode: Any = ..., normalized: Any = ..., onesided: Any = ..., return_complex: Any = ..., align_to_window: Any = ..., *, out: Any = ...) -> Tensor:
    """``X[k, t] = sum_j window[j] x[t hop + j] exp(-2 pi i j k / n_fft)``: the spectrum of a signal over time."""
def sub(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """``input - alpha * other``, broadcast."""
def sub_(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """`sub`, written into this tensor, which is returned."""
def subtract(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """``input - alpha * other``, broadcast."""
def subtract_(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor:
    """`subtract`, written into this tensor, which is returned."""
def sum(input: Any, dim: Any = ..., keepdim: Any = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """The sum over `dim` (an int, a tuple, or None for all); integers and bools add up in int64."""
def svd(input: Any, some: Any = ..., compute_uv: Any = ..., *, out: Any = ...) -> Any:
    """``U``, ``S`` and ``V`` (not its conjugate transpose) of `linalg.svd`; U and V are zeros without `compute_uv`."""
def svd_lowrank(A: Any, q: Any = ..., niter: Any = ..., M: Any = ...) -> Any:
    """U, S and V of rank `q` with ``U diag(S) V^H`` near A, or near ``A - M``: a tuple."""
def swapaxes(input: Any, axis0: Any, axis1: Any) -> Tensor:
    """`transpose` under NumPy's name."""
def swapdims(input: Any, dim0: Any, dim1: Any) -> Tensor:
    """`transpose` under another name."""
def t(input: Any) -> Tensor:
    """The transpose of a matrix; a vector or a 0-d tensor stays the same."""
def take(input: Any, index: Any, *, out: Any = ...) -> Tensor:
    """The elements at positions in the flattened tensor, negative ones from its end, in the shape of `index`."""
def take_along_dim(input: Any, indices: Any, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """The elements at `indices` along `dim`; the other axes broadcast. Without `dim`, from the flattened tensor."""
def tan(input: Any, *, out: Any = ...) -> Tensor:
    """The tangent."""
def tan_(input: Any, *, out: Any = ...) -> Tensor:
    """`tan`, written into this tensor, which is returned."""
def tanh(input: Any, *, out: Any = ...) -> Tensor:
    """The hyperbolic tangent."""
def tanh_(input: Any, *, out: Any = ...) -> Tensor:
    """`tanh`, written into this tensor, which is returned."""
def tensor_split(input: Any, indices_or_sections: Any = ..., dim: Any = ..., *, indices: Any = ..., sections: Any = ...) -> Any:
    """Pieces along `dim`: this many, the first ones longer by one if needed; or cut at the positions listed."""
def tensordot(a: Any, b: Any, dims: Any = ..., *, out: Any = ...) -> Tensor:
    """The sum of products over `dims` axes, the last of `a` with the first of `b`, or over the pairs of two lists."""
def threshold(input: Any, threshold: Any, value: Any, inplace: Any = ...) -> Tensor:
    """`input` where it is above `threshold`, else `value`."""
def threshold_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`threshold`, written into `input`, which is returned."""
def tile(input: Any, dims: Any, *more: Any, out: Any = ...) -> Tensor:
    """`repeat`, with missing leading numbers taken as 1."""
def to(input: Any, *args: Any, dtype: Any = ..., device: Any = ..., copy: Any = ..., non_blocking: Any = ..., memory_format: Any = ..., out: Any = ...) -> Tensor:
    """The tensor with another dtype (``x.to(pullback.float64)``), or with the dtype of another tensor (``x.to(y)``)."""
def topk(input: Any, k: Any, dim: Any = ..., largest: Any = ..., sorted: Any = ..., *, out: Any = ...) -> Any:
    """The `k` largest (or smallest) elements along `dim` and their indices, the best first: ``(values, indices)``."""
def trace(input: Any, *, out: Any = ...) -> Tensor:
    """The sum of the diagonal of a matrix; integers add up in int64."""
def transpose(input: Any, dim0: Any, dim1: Any) -> Tensor:
    """Axes `dim0` and `dim1` exchanged; a view."""
def trapezoid(y: Any, x: Any = ..., *, dx: Any = ..., dim: Any = ..., out: Any = ...) -> Tensor:
    """The integral of the samples `y` along `dim` by the trapezoidal rule; at points `x`, or `dx` (1) apart."""
def trapz(y: Any, x: Any = ..., *, dx: Any = ..., dim: Any = ..., out: Any = ...) -> Tensor:
    """The integral of the samples `y` along `dim` by the trapezoidal rule; at points `x`, or `dx` (1) apart."""
def triangular_solve(b: Any, A: Any, upper: Any = ..., transpose: Any = ..., unitriangular: Any = ..., *, out: Any = ...) -> Any:
    """``solution``, the X with ``A X = b`` for a triangular A (``A^T X = b`` with `transpose`), and a copy of A: `linalg.solve_triangular`."""
def tril(input: Any, diagonal: Any = ..., *, out: Any = ...) -> Tensor:
    """The part on and below a diagonal, zeros elsewhere."""
def tril_indices(row: Any, col: Any, offset: Any = ..., *, dtype: Any = ..., device: Any = ..., out: Any = ...) -> Tensor:
    """The rows and the columns of the elements on and below a diagonal of a matrix: a tensor of two rows."""
def triu(input: Any, diagonal: Any = ..., *, out: Any = ...) -> Tensor:
    """The part on and above a diagonal, zeros elsewhere."""
def triu_indices(row: Any, col: Any, offset: Any = ..., *, dtype: Any = ..., device: Any = ..., out: Any = ...) -> Tensor:
    """The rows and the columns of the elements on and above a diagonal of a matrix: a tensor of two rows."""
def true_divide(input: Any, other: Any, *, rounding_mode: Any = ..., out: Any = ...) -> Tensor:
    """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0."""
def true_divide_(input: Any, other: Any, *, rounding_mode: Any = ..., out: Any = ...) -> Tensor:
    """`true_divide`, written into this tensor, which is returned."""
def trunc(input: Any, *, out: Any = ...) -> Tensor:
    """The integer part: rounded toward 0."""
def trunc_(input: Any, *, out: Any = ...) -> Tensor:
    """`trunc`, written into this tensor, which is returned."""
def typename(obj: Any) -> Any:
    """The name of an object's type: `Tensor.type` for a tensor, otherwise the type with its module."""
def unbind(input: Any, dim: Any = ...) -> Any:
    """The slices along `dim`, without that axis."""
def unflatten(input: Any, dim: Any, sizes: Any) -> Tensor:
    """Axis `dim` divided into several, of lengths `sizes`; one of them may be -1."""
def unique(input: Any, sorted: Any = ..., return_inverse: Any = ..., return_counts: Any = ..., dim: Any = ..., *, out: Any = ...) -> Any:
    """The distinct elements (or slices along `dim`) in order; on request, with positions and counts."""
def unique_consecutive(input: Any, return_inverse: Any = ..., return_counts: Any = ..., dim: Any = ..., *, out: Any = ...) -> Any:
    """The first of each run of equal elements (or slices along `dim`), in the order of the input; see `unique`."""
def unravel_index(indices: Any, shape: Any, *, out: Any = ...) -> Any:
    """Flat positions in a tensor of `shape` as one tensor of positions for each axis."""
def unsafe_chunk(input: Any, chunks: Any, dim: Any = ..., *, out: Any = ...) -> Any:
    """`chunk` into pieces that may be written to, as in `unsafe_split`."""
def unsafe_split(input: Any, split_size: Any, dim: Any = ..., *, out: Any = ...) -> Any:
    """`split` into pieces that may be written to. Do not use `input` or other pieces afterwards: this is unchecked."""
def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: Any = ..., *, out: Any = ...) -> Any:
    """`split_with_sizes` into pieces that may be written to, as in `unsafe_split`."""
def unsqueeze(input: Any, dim: Any) -> Tensor:
    """An axis of length 1 inserted at `dim`; a view."""
def vander(x: Any, N: Any = ..., increasing: Any = ..., *, out: Any = ...) -> Tensor:
    """The Vandermonde matrix of a vector: a row for each element, with its N powers from the highest to the 0th."""
def var(input: Any, dim: Any = ..., unbiased: Any = ..., keepdim: Any = ..., *, correction: Any = ..., out: Any = ...) -> Tensor:
    """The variance over `dim`: squared deviations from the mean, summed, over ``n - correction``."""
def var_mean(input: Any, dim: Any = ..., unbiased: Any = ..., keepdim: Any = ..., *, correction: Any = ..., out: Any = ...) -> Any:
    """The variance and the mean over `dim`; see `var`."""
def vdot(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The product of two vectors, the first of them conjugated: ``sum(conj(input) * other)``."""
def view_as_complex(input: Any) -> Tensor:
    """Pairs of real numbers as complex ones, a view; a pair lies along a last axis of length 2."""
def view_as_real(input: Any) -> Tensor:
    """The real and imaginary parts along a new last axis, a view."""
def vsplit(input: Any, indices_or_sections: Any) -> Any:
    """`tensor_split` along the first axis of a tensor with two or more."""
def vstack(tensors: Any, *, out: Any = ...) -> Tensor:
    """The tensors one below the other: along the first axis; a 1-D tensor is a row."""
def where(condition: Any, input: Any = ..., other: Any = ..., *, out: Any = ...) -> Tensor:
    """`input` where `condition` holds, else `other`, broadcast. Only the chosen side gets a gradient."""
def xlogy(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """``input * log(other)``, and 0 where `input` is 0, unless `other` is NaN."""
def xlogy_(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`xlogy`, written into this tensor, which is returned."""
def zero_(self: Any) -> Any:
    """Set every element to 0."""

# Made from the table of operations by `pullback ops --stubs`; do not edit.
import builtins
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from ...tensor.tensor import Tensor
_Other = builtins.complex | np.ndarray[Any, Any] | np.generic
def amax(input: Tensor, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The largest element over `dim` where `mask` is True; the least number of the dtype where there is none."""
def amin(input: Tensor, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The smallest element over `dim` where `mask` is True; the greatest number of the dtype where there is none."""
def argmax(input: Tensor, dim: SupportsIndex | None = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The index of the (first) largest element where `mask` is True, in the flattened tensor or along `dim`."""
def argmin(input: Tensor, dim: SupportsIndex | None = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The index of the (first) smallest element where `mask` is True; otherwise as `argmax`."""
def cumprod(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The running product along `dim` of the elements where `mask` is True. It has the dtype of `input`, or `dtype`."""
def cumsum(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The running sum along `dim` of the elements where `mask` is True. It has the dtype of `input`, or `dtype`."""
def log_softmax(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim` over the elements where `mask` is True; -inf at the others."""
def logaddexp(input: Tensor, other: Tensor, *, dtype: Any = ..., input_mask: Any = ..., other_mask: Any = ...) -> Tensor:
    """``log(exp(input) + exp(other))`` of the elements where their masks are True; -inf where neither is."""
def logsumexp(input: Tensor, dim: Any = ..., *, keepdim: builtins.bool | None = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """``log(sum(exp(input)))`` over `dim` of the elements where `mask` is True; -inf where there are none."""
def mean(input: Tensor, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The mean over `dim` of the elements where `mask` is True; NaN where there are none."""
def median(input: Tensor, dim: SupportsIndex = ..., *, keepdim: builtins.bool = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The lower median along `dim` of the elements where `mask` is True and that are not NaN; NaN if there are none."""
def norm(input: Tensor, ord: SupportsFloat | None = ..., dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The norm of order `ord` over `dim` of the elements where `mask` is True, as `linalg.vector_norm`."""
def normalize(input: Tensor, ord: SupportsFloat, dim: SupportsIndex, *, eps: SupportsFloat = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """``x / max(norm(x, ord), eps)`` along `dim` over the elements where `mask` is True; 0 at the others."""
def prod(input: Tensor, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The product over `dim` of the elements where `mask` is True; 1 where there are none."""
def softmax(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim` over the elements where `mask` is True; 0 at the others."""
def softmin(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """`softmax` of ``-input``."""
def std(input: Tensor, dim: Any = ..., unbiased: Any = ..., *, correction: Any = ..., keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The standard deviation over `dim` of the elements where `mask` is True: the square root of `var`."""
def sum(input: Tensor, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The sum over `dim` of the elements where `mask` is True; 0 where there are none."""
def var(input: Tensor, dim: Any = ..., unbiased: Any = ..., *, correction: Any = ..., keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The variance over `dim` of the n elements where `mask` is True: squared deviations over ``n - correction``."""

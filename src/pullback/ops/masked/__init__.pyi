# Made from the table of operations by `pullback ops --stubs`; do not edit.
from typing import Any
from ...tensor.tensor import Tensor
def amax(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The largest element over `dim` where `mask` is True; the least number of the dtype where there is none."""
def amin(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The smallest element over `dim` where `mask` is True; the greatest number of the dtype where there is none."""
def argmax(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The index of the (first) largest element where `mask` is True, in the flattened tensor or along `dim`."""
def argmin(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The index of the (first) smallest element where `mask` is True; otherwise as `argmax`."""
def cumprod(input: Any, dim: Any, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The running product along `dim` of the elements where `mask` is True. It has the dtype of `input`, or `dtype`."""
def cumsum(input: Any, dim: Any, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The running sum along `dim` of the elements where `mask` is True. It has the dtype of `input`, or `dtype`."""
def log_softmax(input: Any, dim: Any, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim` over the elements where `mask` is True; -inf at the others."""
def logaddexp(input: Any, other: Any, *, dtype: Any = ..., input_mask: Any = ..., other_mask: Any = ...) -> Tensor:
    """``log(exp(input) + exp(other))`` of the elements where their masks are True; -inf where neither is."""
def logsumexp(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """``log(sum(exp(input)))`` over `dim` of the elements where `mask` is True; -inf where there are none."""
def mean(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The mean over `dim` of the elements where `mask` is True; NaN where there are none."""
def median(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The lower median along `dim` of the elements where `mask` is True and that are not NaN; NaN if there are none."""
def norm(input: Any, ord: Any = ..., dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The norm of order `ord` over `dim` of the elements where `mask` is True, as `linalg.vector_norm`."""
def normalize(input: Any, ord: Any, dim: Any, *, eps: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """``x / max(norm(x, ord), eps)`` along `dim` over the elements where `mask` is True; 0 at the others."""
def prod(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The product over `dim` of the elements where `mask` is True; 1 where there are none."""
def softmax(input: Any, dim: Any, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim` over the elements where `mask` is True; 0 at the others."""
def softmin(input: Any, dim: Any, *, dtype: Any = ..., mask: Any = ...) -> Tensor:
    """`softmax` of ``-input``."""
def std(input: Any, dim: Any = ..., unbiased: Any = ..., *, correction: Any = ..., keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The standard deviation over `dim` of the elements where `mask` is True: the square root of `var`."""
def sum(input: Any, dim: Any = ..., *, keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The sum over `dim` of the elements where `mask` is True; 0 where there are none."""
def var(input: Any, dim: Any = ..., unbiased: Any = ..., *, correction: Any = ..., keepdim: Any = ..., dtype: Any = ..., mask: Any = ...) -> Tensor:
    """The variance over `dim` of the n elements where `mask` is True: squared deviations over ``n - correction``."""

# Made from the table of operations by `pullback ops --stubs`; do not edit.
import builtins
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from ...tensor.tensor import Tensor
_Other = builtins.complex | np.ndarray[Any, Any] | np.generic
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The average of each of `output_size` windows that cover the last axis evenly."""
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """As `adaptive_avg_pool1d`, along two axes; None in `output_size` keeps the length of an axis."""
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """As `adaptive_avg_pool1d`, along three axes; None in `output_size` keeps the length of an axis."""
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: Any = ...) -> Any:
    """The largest element in each of `output_size` windows that cover the last axis evenly."""
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: Any = ...) -> Any:
    """As `adaptive_max_pool1d`, along two axes; None in `output_size` keeps the length of an axis."""
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: Any = ...) -> Any:
    """As `adaptive_max_pool1d`, along three axes; None in `output_size` keeps the length of an axis."""
def affine_grid(theta: Tensor, size: Any, align_corners: builtins.bool | None = ...) -> Tensor:
    """The grid for `grid_sample` that affine maps ``(N, 2, 3)`` make of an image of `size` ``(N, C, H, W)``; or in 3D."""
def alpha_dropout(input: Tensor, p: SupportsFloat = ..., training: builtins.bool = ..., inplace: Any = ...) -> Tensor:
    """Dropout for `selu`: it keeps mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515)."""
def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """The average of each window along the last axis of ``(N, C, L)`` or ``(C, L)``."""
def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: SupportsIndex | None = ...) -> Tensor:
    """The average of each window on images, as `avg_pool1d`; or the sum divided by `divisor_override`."""
def avg_pool3d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: SupportsIndex | None = ...) -> Tensor:
    """The average of each window on volumes, as `avg_pool1d`; or the sum divided by `divisor_override`."""
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = ..., bias: Tensor | None = ..., training: builtins.bool = ..., momentum: SupportsFloat = ..., eps: SupportsFloat = ...) -> Tensor:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` of each channel, over the batch and the axes that follow."""
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ...) -> Tensor:
    """``out[..., o] = input1 @ weight[o] @ input2 + bias[o]``."""
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, of probabilities; no logarithm is below -100."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ..., pos_weight: Tensor | None = ...) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, for logits of any size."""
def celu(input: Tensor, alpha: SupportsFloat = ..., inplace: Any = ...) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input / alpha) - 1)`` (Barron 2017, arXiv:1704.07483)."""
def celu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`celu`, written into `input`, which is returned."""
def channel_shuffle(input: Tensor, groups: SupportsIndex) -> Tensor:
    """The channels (the second axis) divided into groups, and taken from each group in turn."""
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
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: SupportsFloat = ..., size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """``1 - cos`` of the angle between vectors where ``target == 1``, ``max(0, cos - margin)`` where it is -1."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: SupportsIndex = ..., eps: SupportsFloat = ...) -> Tensor:
    """The cosine of the angle between vectors along `dim`: ``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))``."""
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: Any = ..., ignore_index: SupportsIndex = ..., reduce: Any = ..., reduction: builtins.str = ..., label_smoothing: SupportsFloat = ...) -> Tensor:
    """The cross entropy between logits and classes, `nll_loss` of `log_softmax`; or between logits and probabilities."""
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: SupportsIndex = ..., reduction: builtins.str = ..., zero_infinity: builtins.bool = ...) -> Tensor:
    """The negative log likelihood of label sequences, summed over their alignments in time (Graves et al. 2006)."""
def dropout(input: Tensor, p: SupportsFloat = ..., training: builtins.bool = ..., inplace: Any = ...) -> Tensor:
    """Each element set to 0 with probability `p`, else divided by ``1 - p``; `input` itself unless `training`."""
def dropout1d(input: Tensor, p: SupportsFloat = ..., training: builtins.bool = ..., inplace: Any = ...) -> Tensor:
    """`dropout` of whole channels: ``(N, C, L)`` or ``(C, L)``."""
def dropout2d(input: Tensor, p: SupportsFloat = ..., training: builtins.bool = ..., inplace: Any = ...) -> Tensor:
    """`dropout` of whole channels: ``(N, C, H, W)``."""
def dropout3d(input: Tensor, p: SupportsFloat = ..., training: builtins.bool = ..., inplace: Any = ...) -> Tensor:
    """`dropout` of whole channels: ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""
def elu(input: Tensor, alpha: SupportsFloat = ..., inplace: Any = ...) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input) - 1)`` (Clevert et al. 2016, arXiv:1511.07289)."""
def elu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`elu`, written into `input`, which is returned."""
def embedding(input: Tensor, weight: Tensor, padding_idx: SupportsIndex | None = ..., max_norm: SupportsFloat | None = ..., norm_type: Any = ..., scale_grad_by_freq: builtins.bool = ..., sparse: builtins.bool = ...) -> Tensor:
    """``weight[input]``: the rows of a matrix ``(n, d)`` at integers of any shape, with a new last axis."""
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = ..., max_norm: SupportsFloat | None = ..., norm_type: Any = ..., scale_grad_by_freq: builtins.bool = ..., mode: builtins.str = ..., sparse: builtins.bool = ..., per_sample_weights: Tensor | None = ..., include_last_offset: builtins.bool = ..., padding_idx: SupportsIndex | None = ...) -> Tensor:
    """The sum, mean or maximum of the rows of `weight` at the indices of each bag, ``(bags, d)``; 0 for an empty bag."""
def feature_alpha_dropout(input: Tensor, p: SupportsFloat = ..., training: builtins.bool = ..., inplace: Any = ...) -> Tensor:
    """`alpha_dropout` of whole channels: ``(N, C, ...)``."""
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = ..., padding: Any = ..., stride: Any = ...) -> Tensor:
    """The sum of columns ``(N, C * kernel, L)`` as images ``(N, C, *output_size)``: the adjoint of `unfold`."""
def fractional_max_pool2d(input: Tensor, kernel_size: Any, output_size: Any = ..., output_ratio: Any = ..., return_indices: Any = ..., _random_samples: Any = ...) -> Any:
    """The largest element of each of `output_size` windows, or of `output_ratio` times the input's, at random places."""
def fractional_max_pool3d(input: Tensor, kernel_size: Any, output_size: Any = ..., output_ratio: Any = ..., return_indices: Any = ..., _random_samples: Any = ...) -> Any:
    """As `fractional_max_pool2d`, of volumes."""
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: Any = ..., eps: SupportsFloat = ..., reduction: builtins.str = ...) -> Tensor:
    """``(log(var) + (input - target)**2 / var) / 2``: a target drawn around `input` with variance `var`."""
def gelu(input: Tensor, *, approximate: builtins.str = ...) -> Tensor:
    """``input * P(X <= input)`` for a standard normal X (Hendrycks & Gimpel 2016, arXiv:1606.08415)."""
def glu(input: Tensor, dim: SupportsIndex = ...) -> Tensor:
    """``a * sigmoid(b)`` of the two halves of `input` along `dim` (Dauphin et al. 2017, arXiv:1612.08083)."""
def grid_sample(input: Tensor, grid: Tensor, mode: builtins.str = ..., padding_mode: builtins.str = ..., align_corners: builtins.bool | None = ...) -> Tensor:
    """`input`, ``(N, C, H, W)``, at the places that ``grid``, ``(N, h, w, 2)``, holds as x and y from -1 to 1."""
def group_norm(input: Tensor, num_groups: SupportsIndex, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: SupportsFloat = ...) -> Tensor:
    """The channels of ``(N, C, ...)`` in `num_groups` groups with mean 0 and variance 1; then a scale and a shift."""
def gumbel_softmax(logits: Any, tau: Any = ..., hard: Any = ..., eps: Any = ..., dim: Any = ...) -> Any:
    """A differentiable choice along `dim`, drawn with the probabilities ``softmax(logits)``."""
def hardshrink(input: Tensor, lambd: SupportsFloat = ...) -> Tensor:
    """`input` where ``|input| > lambd``, else 0."""
def hardsigmoid(input: Tensor, inplace: Any = ...) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``: `sigmoid` in three straight pieces."""
def hardswish(input: Tensor, inplace: Any = ...) -> Tensor:
    """``input * hardsigmoid(input)`` (Howard et al. 2019, arXiv:1905.02244)."""
def hardtanh(input: Tensor, min_val: SupportsFloat = ..., max_val: SupportsFloat = ..., inplace: Any = ...) -> Tensor:
    """`input` limited to ``[min_val, max_val]``; its derivative at the bounds is 0."""
def hardtanh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`hardtanh`, written into `input`, which is returned."""
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: SupportsFloat = ..., size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """The distance `input` itself where ``target == 1``, and ``max(0, margin - input)`` where ``target == -1``."""
def huber_loss(input: Tensor, target: Tensor, reduction: builtins.str = ..., delta: SupportsFloat = ..., weight: Tensor | None = ...) -> Tensor:
    """Half the squared deviation up to `delta`, and beyond it ``delta * (|input - target| - delta / 2)``."""
def instance_norm(input: Tensor, running_mean: Tensor | None = ..., running_var: Tensor | None = ..., weight: Tensor | None = ..., bias: Tensor | None = ..., use_input_stats: builtins.bool = ..., momentum: SupportsFloat = ..., eps: SupportsFloat = ...) -> Tensor:
    """`batch_norm` of each channel of each element of the batch separately, over the axes after ``(N, C)``."""
def interpolate(input: Tensor, size: Any = ..., scale_factor: Any = ..., mode: builtins.str = ..., align_corners: Any = ..., recompute_scale_factor: Any = ..., antialias: Any = ...) -> Tensor:
    """`input`, ``(N, C, L)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``, in another `size`, or `scale_factor` as large."""
def kl_div(input: Tensor, target: Tensor, size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ..., log_target: builtins.bool = ...) -> Tensor:
    """``target * (log(target) - input)``: Kullback and Leibler's divergence of log probabilities from probabilities."""
def l1_loss(input: Tensor, target: Tensor, size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ..., weight: Tensor | None = ...) -> Tensor:
    """``|input - target|``, averaged over all elements; its derivative where they are equal is 0."""
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: SupportsFloat = ...) -> Tensor:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes, which have `normalized_shape`."""
def leaky_relu(input: Tensor, negative_slope: SupportsFloat = ..., inplace: Any = ...) -> Tensor:
    """`input` where it is positive, else ``negative_slope * input``."""
def leaky_relu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`leaky_relu`, written into `input`, which is returned."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = ...) -> Tensor:
    """``input @ weight.T + bias``."""
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = ..., weight: Tensor | None = ..., reduction: builtins.str = ..., ignore_index: SupportsIndex | None = ..., label_smoothing: SupportsFloat = ..., options: Any = ...) -> Tensor:
    """`cross_entropy` of ``input @ linear_weight.T + linear_bias``."""
def local_response_norm(input: Tensor, size: SupportsIndex, alpha: Any = ..., beta: Any = ..., k: Any = ...) -> Tensor:
    """``x / (k + alpha * mean of x ** 2 over size channels around) ** beta`` of ``(N, C, ...)``; zeros at the ends."""
def log_softmax(input: Tensor, dim: SupportsIndex | None = ..., _stacklevel: Any = ..., dtype: Any = ...) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`."""
def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``, which neither rounds to 0 nor overflows."""
def lp_pool1d(input: Tensor, norm_type: SupportsFloat, kernel_size: Any, stride: Any = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """``(sum of x ** p) ** (1 / p)`` over each window along the last axis, where p is `norm_type`."""
def lp_pool2d(input: Tensor, norm_type: SupportsFloat, kernel_size: Any, stride: Any = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """As `lp_pool1d`, for windows on images."""
def lp_pool3d(input: Tensor, norm_type: SupportsFloat, kernel_size: Any, stride: Any = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """As `lp_pool1d`, for windows on volumes."""
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: SupportsFloat = ..., size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``: target 1 if the first should be larger, -1 if the second."""
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window along the last axis of ``(N, C, L)`` or ``(C, L)``."""
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window on images ``(N, C, H, W)`` or ``(C, H, W)``; arguments as of `max_pool1d`."""
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window on volumes ``(N, C, D, H, W)``; arguments as of `max_pool1d`."""
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """Zeros with the elements of `input` at `indices`, which `max_pool1d` returned: its inverse, as far as one exists."""
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """As `max_unpool1d`, after `max_pool2d`."""
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """As `max_unpool1d`, after `max_pool3d`."""
def mish(input: Tensor, inplace: Any = ...) -> Tensor:
    """``input * tanh(softplus(input))`` (Misra 2019, arXiv:1908.08681)."""
def mse_loss(input: Tensor, target: Tensor, size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ..., weight: Tensor | None = ...) -> Tensor:
    """``(input - target)**2``, averaged over all elements."""
def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: SupportsIndex, num_heads: SupportsIndex, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: Any, dropout_p: Any, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: Any = ..., key_padding_mask: Tensor | None = ..., need_weights: Any = ..., attn_mask: Tensor | None = ..., use_separate_proj_weight: Any = ..., q_proj_weight: Tensor | None = ..., k_proj_weight: Tensor | None = ..., v_proj_weight: Tensor | None = ..., static_k: Tensor | None = ..., static_v: Tensor | None = ..., average_attn_weights: Any = ..., is_causal: Any = ...) -> Any:
    """Attention of `num_heads` heads (Vaswani et al. 2017, arXiv:1706.03762) on ``(L, N, E)``, ``(S, N, E)``."""
def multi_margin_loss(input: Tensor, target: Tensor, p: Any = ..., margin: SupportsFloat = ..., weight: Tensor | None = ..., size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """``sum over i != y of max(0, margin - input[y] + input[i])**p``, over the number of classes; p is 1 or 2."""
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """``sum over y, i of max(0, 1 - input[y] + input[i])``, y a target and i not, over the number of classes."""
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """The binary cross entropy of ``sigmoid(input)``, averaged over the last axis: each class is present or not."""
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: Any = ..., ignore_index: SupportsIndex = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """The negative log likelihood ``-input[n, target[n]]`` of classes, from log probabilities."""
def normalize(input: Tensor, p: Any = ..., dim: Any = ..., eps: Any = ..., out: Tensor | None = ...) -> Tensor:
    """``input / max(|input|, eps)``, with the p-norm along `dim`: vectors of length 1."""
def one_hot(tensor: Any, num_classes: SupportsIndex = ...) -> Tensor:
    """For each index a vector of zeros with a 1 at that position, along a new last axis; int64."""
def pad(input: Tensor, pad: Any, mode: builtins.str = ..., value: Any = ...) -> Tensor:
    """`input` with borders: `pad` holds their lengths, the last axis first, ``(left, right, top, bottom, ...)``."""
def pairwise_distance(x1: Tensor, x2: Tensor, p: SupportsFloat = ..., eps: SupportsFloat = ..., keepdim: builtins.bool = ...) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""
def pdist(input: Tensor, p: SupportsFloat = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order 0-1, 0-2, ..., 1-2, ...; otherwise as `cdist`."""
def pixel_shuffle(input: Tensor, upscale_factor: SupportsIndex) -> Tensor:
    """Channels as pixels: ``(*, C r^2, H, W)`` to ``(*, C, H r, W r)``, where r is the `upscale_factor`."""
def pixel_unshuffle(input: Tensor, downscale_factor: SupportsIndex) -> Tensor:
    """Pixels as channels, the inverse of `pixel_shuffle`: ``(*, C, H r, W r)`` to ``(*, C r^2, H, W)``."""
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: builtins.bool = ..., full: builtins.bool = ..., size_average: Any = ..., eps: SupportsFloat = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """``exp(input) - target * input``: a target drawn from a Poisson distribution of rate ``exp(input)``."""
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input` where it is positive, else ``weight * input``; one weight for all, or one for each channel (axis 1)."""
def relu(input: Tensor, inplace: Any = ...) -> Tensor:
    """``max(input, 0)``, written into `input` with `inplace`; its derivative at 0 is 0."""
def relu6(input: Tensor, inplace: Any = ...) -> Tensor:
    """``min(max(input, 0), 6)``."""
def relu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`relu`, written into `input`, which is returned."""
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = ..., eps: SupportsFloat | None = ...) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axes, which have `normalized_shape`."""
def rrelu(input: Tensor, lower: SupportsFloat = ..., upper: SupportsFloat = ..., training: builtins.bool = ..., inplace: Any = ...) -> Tensor:
    """`leaky_relu` with slopes drawn from ``[lower, upper]`` in training, else with the mean of the two bounds."""
def rrelu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`rrelu`, written into `input`, which is returned."""
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = ..., dropout_p: SupportsFloat = ..., is_causal: builtins.bool = ..., *, scale: SupportsFloat | None = ..., enable_gqa: builtins.bool = ...) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value``, of ``(..., L, E)``, ``(..., S, E)`` and ``(..., S, V)``."""
def selu(input: Tensor, inplace: Any = ...) -> Tensor:
    """``1.0507 * elu(input, 1.6733)``, which keeps mean 0 and variance 1 from layer to layer."""
def selu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`selu`, written into `input`, which is returned."""
def sigmoid(input: Tensor, *, out: Any = ...) -> Tensor:
    """``1 / (1 + exp(-input))``."""
def silu(input: Tensor, inplace: Any = ...) -> Tensor:
    """``input * sigmoid(input)``, also called Swish."""
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ..., beta: SupportsFloat = ...) -> Tensor:
    """``|input - target| - beta / 2``, and below `beta` the parabola that meets it: `huber_loss` divided by `beta`."""
def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """``log(1 + exp(-target * input))``, for targets 1 and -1, in the dtype of `input`."""
def softmax(input: Tensor, dim: SupportsIndex | None = ..., _stacklevel: Any = ..., dtype: Any = ...) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size."""
def softmin(input: Tensor, dim: SupportsIndex | None = ..., _stacklevel: Any = ..., dtype: Any = ...) -> Tensor:
    """`softmax` of ``-input``."""
def softplus(input: Tensor, beta: SupportsFloat = ..., threshold: SupportsFloat = ...) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``; `input` itself where ``beta * input > threshold``."""
def softshrink(input: Tensor, lambd: SupportsFloat = ...) -> Tensor:
    """`input` moved towards 0 by `lambd`, but not past it."""
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""
def tanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """The hyperbolic tangent."""
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
def threshold(input: Tensor, threshold: SupportsFloat, value: SupportsFloat, inplace: Any = ...) -> Tensor:
    """`input` where it is above `threshold`, else `value`."""
def threshold_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`threshold`, written into `input`, which is returned."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: SupportsFloat = ..., p: SupportsFloat = ..., eps: SupportsFloat = ..., swap: builtins.bool = ..., size_average: Any = ..., reduce: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """``max(0, margin + |anchor - positive| - |anchor - negative|)``, in p-norms."""
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = ..., margin: SupportsFloat = ..., swap: Any = ..., reduction: builtins.str = ...) -> Tensor:
    """`triplet_margin_loss` with a given distance function, by default `pairwise_distance`."""
def unfold(input: Tensor, kernel_size: Any, dilation: Any = ..., padding: Any = ..., stride: Any = ...) -> Tensor:
    """The elements that a window sees at each of its L places, as columns: ``(N, C, H, W)`` to ``(N, C * kernel, L)``."""
def upsample(input: Any, size: Any = ..., scale_factor: Any = ..., mode: Any = ..., align_corners: Any = ...) -> Any:
    """The older name of `interpolate`."""
def upsample_bilinear(input: Any, size: Any = ..., scale_factor: Any = ...) -> Any:
    """The older name of `interpolate` with mode 'bilinear' and aligned corners."""
def upsample_nearest(input: Any, size: Any = ..., scale_factor: Any = ...) -> Any:
    """The older name of `interpolate` with mode 'nearest'."""

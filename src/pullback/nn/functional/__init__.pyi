# Made from the table of operations by `pullback ops --stubs`; do not edit.
from typing import Any
from ...tensor.tensor import Tensor
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """The average of each of `output_size` windows that cover the last axis evenly."""
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """As `adaptive_avg_pool1d`, along two axes; None in `output_size` keeps the length of an axis."""
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """As `adaptive_avg_pool1d`, along three axes; None in `output_size` keeps the length of an axis."""
def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: Any = ...) -> Any:
    """The largest element in each of `output_size` windows that cover the last axis evenly."""
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: Any = ...) -> Any:
    """As `adaptive_max_pool1d`, along two axes; None in `output_size` keeps the length of an axis."""
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: Any = ...) -> Any:
    """As `adaptive_max_pool1d`, along three axes; None in `output_size` keeps the length of an axis."""
def affine_grid(theta: Any, size: Any, align_corners: Any = ...) -> Tensor:
    """The grid for `grid_sample` that affine maps ``(N, 2, 3)`` make of an image of `size` ``(N, C, H, W)``; or in 3D."""
def alpha_dropout(input: Any, p: Any = ..., training: Any = ..., inplace: Any = ...) -> Tensor:
    """Dropout for `selu`: it keeps mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515)."""
def avg_pool1d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: Any = ..., count_include_pad: Any = ...) -> Tensor:
    """The average of each window along the last axis of ``(N, C, L)`` or ``(C, L)``."""
def avg_pool2d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: Any = ..., count_include_pad: Any = ..., divisor_override: Any = ...) -> Tensor:
    """The average of each window on images, as `avg_pool1d`; or the sum divided by `divisor_override`."""
def avg_pool3d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: Any = ..., count_include_pad: Any = ..., divisor_override: Any = ...) -> Tensor:
    """The average of each window on volumes, as `avg_pool1d`; or the sum divided by `divisor_override`."""
def batch_norm(input: Any, running_mean: Any, running_var: Any, weight: Any = ..., bias: Any = ..., training: Any = ..., momentum: Any = ..., eps: Any = ...) -> Tensor:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` of each channel, over the batch and the axes that follow."""
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = ...) -> Tensor:
    """``out[..., o] = input1 @ weight[o] @ input2 + bias[o]``."""
def binary_cross_entropy(input: Any, target: Any, weight: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, of probabilities; no logarithm is below -100."""
def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: Any = ..., pos_weight: Any = ...) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, for logits of any size."""
def celu(input: Any, alpha: Any = ..., inplace: Any = ...) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input / alpha) - 1)`` (Barron 2017, arXiv:1704.07483)."""
def celu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`celu`, written into `input`, which is returned."""
def channel_shuffle(input: Any, groups: Any) -> Tensor:
    """The channels (the second axis) divided into groups, and taken from each group in turn."""
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
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """``1 - cos`` of the angle between vectors where ``target == 1``, ``max(0, cos - margin)`` where it is -1."""
def cosine_similarity(x1: Any, x2: Any, dim: Any = ..., eps: Any = ...) -> Tensor:
    """The cosine of the angle between vectors along `dim`: ``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))``."""
def cross_entropy(input: Any, target: Any, weight: Any = ..., size_average: Any = ..., ignore_index: Any = ..., reduce: Any = ..., reduction: Any = ..., label_smoothing: Any = ...) -> Tensor:
    """The cross entropy between logits and classes, `nll_loss` of `log_softmax`; or between logits and probabilities."""
def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any = ..., reduction: Any = ..., zero_infinity: Any = ...) -> Tensor:
    """The negative log likelihood of label sequences, summed over their alignments in time (Graves et al. 2006)."""
def dropout(input: Any, p: Any = ..., training: Any = ..., inplace: Any = ...) -> Tensor:
    """Each element set to 0 with probability `p`, else divided by ``1 - p``; `input` itself unless `training`."""
def dropout1d(input: Any, p: Any = ..., training: Any = ..., inplace: Any = ...) -> Tensor:
    """`dropout` of whole channels: ``(N, C, L)`` or ``(C, L)``."""
def dropout2d(input: Any, p: Any = ..., training: Any = ..., inplace: Any = ...) -> Tensor:
    """`dropout` of whole channels: ``(N, C, H, W)``."""
def dropout3d(input: Any, p: Any = ..., training: Any = ..., inplace: Any = ...) -> Tensor:
    """`dropout` of whole channels: ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""
def elu(input: Any, alpha: Any = ..., inplace: Any = ...) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input) - 1)`` (Clevert et al. 2016, arXiv:1511.07289)."""
def elu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`elu`, written into `input`, which is returned."""
def embedding(input: Any, weight: Any, padding_idx: Any = ..., max_norm: Any = ..., norm_type: Any = ..., scale_grad_by_freq: Any = ..., sparse: Any = ...) -> Tensor:
    """``weight[input]``: the rows of a matrix ``(n, d)`` at integers of any shape, with a new last axis."""
def embedding_bag(input: Any, weight: Any, offsets: Any = ..., max_norm: Any = ..., norm_type: Any = ..., scale_grad_by_freq: Any = ..., mode: Any = ..., sparse: Any = ..., per_sample_weights: Any = ..., include_last_offset: Any = ..., padding_idx: Any = ...) -> Tensor:
    """The sum, mean or maximum of the rows of `weight` at the indices of each bag, ``(bags, d)``; 0 for an empty bag."""
def feature_alpha_dropout(input: Any, p: Any = ..., training: Any = ..., inplace: Any = ...) -> Tensor:
    """`alpha_dropout` of whole channels: ``(N, C, ...)``."""
def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = ..., padding: Any = ..., stride: Any = ...) -> Tensor:
    """The sum of columns ``(N, C * kernel, L)`` as images ``(N, C, *output_size)``: the adjoint of `unfold`."""
def fractional_max_pool2d(input: Any, kernel_size: Any, output_size: Any = ..., output_ratio: Any = ..., return_indices: Any = ..., _random_samples: Any = ...) -> Any:
    """The largest element of each of `output_size` windows, or of `output_ratio` times the input's, at random places."""
def fractional_max_pool3d(input: Any, kernel_size: Any, output_size: Any = ..., output_ratio: Any = ..., return_indices: Any = ..., _random_samples: Any = ...) -> Any:
    """As `fractional_max_pool2d`, of volumes."""
def gaussian_nll_loss(input: Any, target: Any, var: Any, full: Any = ..., eps: Any = ..., reduction: Any = ...) -> Tensor:
    """``(log(var) + (input - target)**2 / var) / 2``: a target drawn around `input` with variance `var`."""
def gelu(input: Any, *, approximate: Any = ...) -> Tensor:
    """``input * P(X <= input)`` for a standard normal X (Hendrycks & Gimpel 2016, arXiv:1606.08415)."""
def glu(input: Any, dim: Any = ...) -> Tensor:
    """``a * sigmoid(b)`` of the two halves of `input` along `dim` (Dauphin et al. 2017, arXiv:1612.08083)."""
def grid_sample(input: Any, grid: Any, mode: Any = ..., padding_mode: Any = ..., align_corners: Any = ...) -> Tensor:
    """`input`, ``(N, C, H, W)``, at the places that ``grid``, ``(N, h, w, 2)``, holds as x and y from -1 to 1."""
def group_norm(input: Any, num_groups: Any, weight: Any = ..., bias: Any = ..., eps: Any = ...) -> Tensor:
    """The channels of ``(N, C, ...)`` in `num_groups` groups with mean 0 and variance 1; then a scale and a shift."""
def gumbel_softmax(logits: Any, tau: Any = ..., hard: Any = ..., eps: Any = ..., dim: Any = ...) -> Any:
    """A differentiable choice along `dim`, drawn with the probabilities ``softmax(logits)``."""
def hardshrink(input: Any, lambd: Any = ...) -> Tensor:
    """`input` where ``|input| > lambd``, else 0."""
def hardsigmoid(input: Any, inplace: Any = ...) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``: `sigmoid` in three straight pieces."""
def hardswish(input: Any, inplace: Any = ...) -> Tensor:
    """``input * hardsigmoid(input)`` (Howard et al. 2019, arXiv:1905.02244)."""
def hardtanh(input: Any, min_val: Any = ..., max_val: Any = ..., inplace: Any = ...) -> Tensor:
    """`input` limited to ``[min_val, max_val]``; its derivative at the bounds is 0."""
def hardtanh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`hardtanh`, written into `input`, which is returned."""
def hinge_embedding_loss(input: Any, target: Any, margin: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """The distance `input` itself where ``target == 1``, and ``max(0, margin - input)`` where ``target == -1``."""
def huber_loss(input: Any, target: Any, reduction: Any = ..., delta: Any = ..., weight: Any = ...) -> Tensor:
    """Half the squared deviation up to `delta`, and beyond it ``delta * (|input - target| - delta / 2)``."""
def instance_norm(input: Any, running_mean: Any = ..., running_var: Any = ..., weight: Any = ..., bias: Any = ..., use_input_stats: Any = ..., momentum: Any = ..., eps: Any = ...) -> Tensor:
    """`batch_norm` of each channel of each element of the batch separately, over the axes after ``(N, C)``."""
def interpolate(input: Any, size: Any = ..., scale_factor: Any = ..., mode: Any = ..., align_corners: Any = ..., recompute_scale_factor: Any = ..., antialias: Any = ...) -> Tensor:
    """`input`, ``(N, C, L)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``, in another `size`, or `scale_factor` as large."""
def kl_div(input: Any, target: Any, size_average: Any = ..., reduce: Any = ..., reduction: Any = ..., log_target: Any = ...) -> Tensor:
    """``target * (log(target) - input)``: Kullback and Leibler's divergence of log probabilities from probabilities."""
def l1_loss(input: Any, target: Any, size_average: Any = ..., reduce: Any = ..., reduction: Any = ..., weight: Any = ...) -> Tensor:
    """``|input - target|``, averaged over all elements; its derivative where they are equal is 0."""
def layer_norm(input: Any, normalized_shape: Any, weight: Any = ..., bias: Any = ..., eps: Any = ...) -> Tensor:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes, which have `normalized_shape`."""
def leaky_relu(input: Any, negative_slope: Any = ..., inplace: Any = ...) -> Tensor:
    """`input` where it is positive, else ``negative_slope * input``."""
def leaky_relu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`leaky_relu`, written into `input`, which is returned."""
def linear(input: Any, weight: Any, bias: Any = ...) -> Tensor:
    """``input @ weight.T + bias``."""
def linear_cross_entropy(input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = ..., weight: Any = ..., reduction: Any = ..., ignore_index: Any = ..., label_smoothing: Any = ..., options: Any = ...) -> Tensor:
    """`cross_entropy` of ``input @ linear_weight.T + linear_bias``."""
def local_response_norm(input: Any, size: Any, alpha: Any = ..., beta: Any = ..., k: Any = ...) -> Tensor:
    """``x / (k + alpha * mean of x ** 2 over size channels around) ** beta`` of ``(N, C, ...)``; zeros at the ends."""
def log_softmax(input: Any, dim: Any = ..., _stacklevel: Any = ..., dtype: Any = ...) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`."""
def logsigmoid(input: Any) -> Tensor:
    """``log(sigmoid(input))``, which neither rounds to 0 nor overflows."""
def lp_pool1d(input: Any, norm_type: Any, kernel_size: Any, stride: Any = ..., ceil_mode: Any = ...) -> Tensor:
    """``(sum of x ** p) ** (1 / p)`` over each window along the last axis, where p is `norm_type`."""
def lp_pool2d(input: Any, norm_type: Any, kernel_size: Any, stride: Any = ..., ceil_mode: Any = ...) -> Tensor:
    """As `lp_pool1d`, for windows on images."""
def lp_pool3d(input: Any, norm_type: Any, kernel_size: Any, stride: Any = ..., ceil_mode: Any = ...) -> Tensor:
    """As `lp_pool1d`, for windows on volumes."""
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``: target 1 if the first should be larger, -1 if the second."""
def max_pool1d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: Any = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window along the last axis of ``(N, C, L)`` or ``(C, L)``."""
def max_pool2d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: Any = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window on images ``(N, C, H, W)`` or ``(C, H, W)``; arguments as of `max_pool1d`."""
def max_pool3d(input: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: Any = ..., return_indices: Any = ...) -> Any:
    """The largest element of each window on volumes ``(N, C, D, H, W)``; arguments as of `max_pool1d`."""
def max_unpool1d(input: Any, indices: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """Zeros with the elements of `input` at `indices`, which `max_pool1d` returned: its inverse, as far as one exists."""
def max_unpool2d(input: Any, indices: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """As `max_unpool1d`, after `max_pool2d`."""
def max_unpool3d(input: Any, indices: Any, kernel_size: Any, stride: Any = ..., padding: Any = ..., output_size: Any = ...) -> Tensor:
    """As `max_unpool1d`, after `max_pool3d`."""
def mish(input: Any, inplace: Any = ...) -> Tensor:
    """``input * tanh(softplus(input))`` (Misra 2019, arXiv:1908.08681)."""
def mse_loss(input: Any, target: Any, size_average: Any = ..., reduce: Any = ..., reduction: Any = ..., weight: Any = ...) -> Tensor:
    """``(input - target)**2``, averaged over all elements."""
def multi_head_attention_forward(query: Any, key: Any, value: Any, embed_dim_to_check: Any, num_heads: Any, in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: Any, dropout_p: Any, out_proj_weight: Any, out_proj_bias: Any, training: Any = ..., key_padding_mask: Any = ..., need_weights: Any = ..., attn_mask: Any = ..., use_separate_proj_weight: Any = ..., q_proj_weight: Any = ..., k_proj_weight: Any = ..., v_proj_weight: Any = ..., static_k: Any = ..., static_v: Any = ..., average_attn_weights: Any = ..., is_causal: Any = ...) -> Any:
    """Attention of `num_heads` heads (Vaswani et al. 2017, arXiv:1706.03762) on ``(L, N, E)``, ``(S, N, E)``."""
def multi_margin_loss(input: Any, target: Any, p: Any = ..., margin: Any = ..., weight: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """``sum over i != y of max(0, margin - input[y] + input[i])**p``, over the number of classes; p is 1 or 2."""
def multilabel_margin_loss(input: Any, target: Any, size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """``sum over y, i of max(0, 1 - input[y] + input[i])``, y a target and i not, over the number of classes."""
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """The binary cross entropy of ``sigmoid(input)``, averaged over the last axis: each class is present or not."""
def nll_loss(input: Any, target: Any, weight: Any = ..., size_average: Any = ..., ignore_index: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """The negative log likelihood ``-input[n, target[n]]`` of classes, from log probabilities."""
def normalize(input: Any, p: Any = ..., dim: Any = ..., eps: Any = ..., out: Any = ...) -> Tensor:
    """``input / max(|input|, eps)``, with the p-norm along `dim`: vectors of length 1."""
def one_hot(tensor: Any, num_classes: Any = ...) -> Tensor:
    """For each index a vector of zeros with a 1 at that position, along a new last axis; int64."""
def pad(input: Any, pad: Any, mode: Any = ..., value: Any = ...) -> Tensor:
    """`input` with borders: `pad` holds their lengths, the last axis first, ``(left, right, top, bottom, ...)``."""
def pairwise_distance(x1: Any, x2: Any, p: Any = ..., eps: Any = ..., keepdim: Any = ...) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""
def pdist(input: Any, p: Any = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order 0-1, 0-2, ..., 1-2, ...; otherwise as `cdist`."""
def pixel_shuffle(input: Any, upscale_factor: Any) -> Tensor:
    """Channels as pixels: ``(*, C r^2, H, W)`` to ``(*, C, H r, W r)``, where r is the `upscale_factor`."""
def pixel_unshuffle(input: Any, downscale_factor: Any) -> Tensor:
    """Pixels as channels, the inverse of `pixel_shuffle`: ``(*, C, H r, W r)`` to ``(*, C r^2, H, W)``."""
def poisson_nll_loss(input: Any, target: Any, log_input: Any = ..., full: Any = ..., size_average: Any = ..., eps: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """``exp(input) - target * input``: a target drawn from a Poisson distribution of rate ``exp(input)``."""
def prelu(input: Any, weight: Any) -> Tensor:
    """`input` where it is positive, else ``weight * input``; one weight for all, or one for each channel (axis 1)."""
def relu(input: Any, inplace: Any = ...) -> Tensor:
    """``max(input, 0)``, written into `input` with `inplace`; its derivative at 0 is 0."""
def relu6(input: Any, inplace: Any = ...) -> Tensor:
    """``min(max(input, 0), 6)``."""
def relu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`relu`, written into `input`, which is returned."""
def rms_norm(input: Any, normalized_shape: Any, weight: Any = ..., eps: Any = ...) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axes, which have `normalized_shape`."""
def rrelu(input: Any, lower: Any = ..., upper: Any = ..., training: Any = ..., inplace: Any = ...) -> Tensor:
    """`leaky_relu` with slopes drawn from ``[lower, upper]`` in training, else with the mean of the two bounds."""
def rrelu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`rrelu`, written into `input`, which is returned."""
def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = ..., dropout_p: Any = ..., is_causal: Any = ..., *, scale: Any = ..., enable_gqa: Any = ...) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value``, of ``(..., L, E)``, ``(..., S, E)`` and ``(..., S, V)``."""
def selu(input: Any, inplace: Any = ...) -> Tensor:
    """``1.0507 * elu(input, 1.6733)``, which keeps mean 0 and variance 1 from layer to layer."""
def selu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`selu`, written into `input`, which is returned."""
def sigmoid(input: Any, *, out: Any = ...) -> Tensor:
    """``1 / (1 + exp(-input))``."""
def silu(input: Any, inplace: Any = ...) -> Tensor:
    """``input * sigmoid(input)``, also called Swish."""
def smooth_l1_loss(input: Any, target: Any, size_average: Any = ..., reduce: Any = ..., reduction: Any = ..., beta: Any = ...) -> Tensor:
    """``|input - target| - beta / 2``, and below `beta` the parabola that meets it: `huber_loss` divided by `beta`."""
def soft_margin_loss(input: Any, target: Any, size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """``log(1 + exp(-target * input))``, for targets 1 and -1."""
def softmax(input: Any, dim: Any = ..., _stacklevel: Any = ..., dtype: Any = ...) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size."""
def softmin(input: Any, dim: Any = ..., _stacklevel: Any = ..., dtype: Any = ...) -> Tensor:
    """`softmax` of ``-input``."""
def softplus(input: Any, beta: Any = ..., threshold: Any = ...) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``; `input` itself where ``beta * input > threshold``."""
def softshrink(input: Any, lambd: Any = ...) -> Tensor:
    """`input` moved towards 0 by `lambd`, but not past it."""
def softsign(input: Any) -> Tensor:
    """``input / (1 + |input|)``."""
def tanh(input: Any, *, out: Any = ...) -> Tensor:
    """The hyperbolic tangent."""
def tanhshrink(input: Any) -> Tensor:
    """``input - tanh(input)``."""
def threshold(input: Any, threshold: Any, value: Any, inplace: Any = ...) -> Tensor:
    """`input` where it is above `threshold`, else `value`."""
def threshold_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`threshold`, written into `input`, which is returned."""
def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: Any = ..., p: Any = ..., eps: Any = ..., swap: Any = ..., size_average: Any = ..., reduce: Any = ..., reduction: Any = ...) -> Tensor:
    """``max(0, margin + |anchor - positive| - |anchor - negative|)``, in p-norms."""
def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *, distance_function: Any = ..., margin: Any = ..., swap: Any = ..., reduction: Any = ...) -> Tensor:
    """`triplet_margin_loss` with a given distance function, by default `pairwise_distance`."""
def unfold(input: Any, kernel_size: Any, dilation: Any = ..., padding: Any = ..., stride: Any = ...) -> Tensor:
    """The elements that a window sees at each of its L places, as columns: ``(N, C, H, W)`` to ``(N, C * kernel, L)``."""
def upsample(input: Any, size: Any = ..., scale_factor: Any = ..., mode: Any = ..., align_corners: Any = ...) -> Any:
    """The older name of `interpolate`."""
def upsample_bilinear(input: Any, size: Any = ..., scale_factor: Any = ...) -> Any:
    """The older name of `interpolate` with mode 'bilinear' and aligned corners."""
def upsample_nearest(input: Any, size: Any = ..., scale_factor: Any = ...) -> Any:
    """The older name of `interpolate` with mode 'nearest'."""

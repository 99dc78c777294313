"""The tests of the table that compare nothing, each with the reason: `comparing.judge` holds that there are no others.

A record is a reason, the tests, the dtypes and the operations it is about. A test of a listed operation that compares
something fails as well, so that nothing stays here in vain.
"""

from __future__ import annotations

DERIVATIVES = "gradients second slopes forward forward_over_reverse"
IN_BATCHES = "vmap_of_vjp vmap_of_jvp gradient_of_vmap"
REAL, COMPLEX = "float32 float64", "complex128"

# Results of bools, positions and other integers.
NOT_DIFFERENTIABLE = """
all any argmax argmin argsort argwhere bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor bucketize count_nonzero eq gcd ge gt histc isclose isfinite isin isinf isnan isneginf isposinf isreal
lcm le linalg.matrix_rank logical_and logical_not logical_or logical_xor lt masked.argmax masked.argmin ne
nn.functional.one_hot nonzero nonzero_static searchsorted signbit tril_indices triu_indices unravel_index
"""

# Of no sample both a differentiable result and a call with complex numbers that is not refused.
OF_REAL_NUMBERS = """
aminmax atan2 cdist ceil clamp clamp_max clamp_min complex copysign deg2rad digamma erf erfc erfinv fft.ihfft
fft.ihfft2 fft.ihfftn fft.rfft fft.rfft2 fft.rfftn floor floor_divide fmax fmin fmod frac frexp heaviside hypot i0
igamma igammac lgamma logaddexp2 logit masked.amax masked.amin masked.log_softmax masked.softmax masked.softmin max
maximum median min minimum msort mvlgamma nanmean nanmedian nanquantile nansum nn.functional.adaptive_avg_pool1d
nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool1d
nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d nn.functional.affine_grid
nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.binary_cross_entropy
nn.functional.binary_cross_entropy_with_logits nn.functional.celu nn.functional.cosine_embedding_loss
nn.functional.cosine_similarity nn.functional.cross_entropy nn.functional.ctc_loss nn.functional.elu
nn.functional.embedding_bag nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
nn.functional.gaussian_nll_loss nn.functional.gelu nn.functional.glu nn.functional.grid_sample
nn.functional.group_norm nn.functional.hardshrink nn.functional.hardsigmoid nn.functional.hardswish
nn.functional.hardtanh nn.functional.hinge_embedding_loss nn.functional.huber_loss nn.functional.interpolate
nn.functional.kl_div nn.functional.layer_norm nn.functional.leaky_relu nn.functional.linear_cross_entropy
nn.functional.logsigmoid nn.functional.lp_pool1d nn.functional.lp_pool2d nn.functional.lp_pool3d
nn.functional.margin_ranking_loss nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d
nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d nn.functional.mish
nn.functional.multi_head_attention_forward nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss
nn.functional.multilabel_soft_margin_loss nn.functional.nll_loss nn.functional.pdist nn.functional.prelu
nn.functional.relu nn.functional.relu6 nn.functional.rrelu nn.functional.selu nn.functional.soft_margin_loss
nn.functional.softplus nn.functional.softshrink nn.functional.threshold polar polygamma quantile rad2deg relu
remainder sign sort special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1
special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v
special.chebyshev_polynomial_w special.entr special.erfcx special.hermite_polynomial_h special.hermite_polynomial_he
special.i0e special.i1 special.i1e special.laguerre_polynomial_l special.legendre_polynomial_p special.log_ndtr
special.modified_bessel_i0 special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1
special.ndtr special.ndtri special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1
special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v
special.shifted_chebyshev_polynomial_w special.spherical_bessel_j0 special.xlog1py special.zeta topk trunc unique
unique_consecutive view_as_complex xlogy
"""

REASONS = [
    ("the results are bools or integers", DERIVATIVES, f"{REAL} {COMPLEX}", NOT_DIFFERENTIABLE),
    ("the results are bools or integers", IN_BATCHES, REAL, NOT_DIFFERENTIABLE),
    ("complex numbers are refused", DERIVATIVES, COMPLEX, OF_REAL_NUMBERS),
    (
        "torch has no derivative of complex results; finite differences have",
        "gradients second",
        COMPLEX,
        "scatter_reduce index_reduce select_scatter slice_scatter amax amin cummax cummin kthvalue mode geqrf "
        "nn.functional.silu nn.functional.bilinear nn.functional.embedding nn.functional.conv_tbc",
    ),
    (
        "torch refuses a derivative by the target or the random numbers; finite differences hold ours",
        "gradients second",
        REAL,
        "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.soft_margin_loss",
    ),
    ("of complex numbers only, and these samples have their own dtype", "slopes", COMPLEX, "round nextafter"),
    (
        "complex numbers are refused unless there are no elements",
        "slopes forward forward_over_reverse",
        COMPLEX,
        "nn.functional.scaled_dot_product_attention nn.functional.batch_norm nn.functional.instance_norm "
        "nn.functional.local_response_norm",
    ),
    (
        "there is no derivative, as in torch",
        f"forward_over_reverse {IN_BATCHES}",
        f"{REAL} {COMPLEX}",
        "linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve geqrf",
    ),
    (
        "there are no arrays of floating point numbers",
        "vmap_of_value",
        REAL,
        "gcd lcm bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift tril_indices triu_indices "
        "bitwise_not unravel_index nn.functional.one_hot",
    ),
    (
        "what is refused are not arrays of floating point numbers",
        "refusal_in_vmap",
        REAL,
        "gcd lcm bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift tril_indices triu_indices "
        "argwhere contiguous",
    ),
    (
        "there are no arrays, or they are of the dtype under test, which is refused",
        "vmap_of_all",
        REAL,
        "bitwise_not tril_indices triu_indices",
    ),
]

"""What each operation of the table is called with when it is timed: about 1e6 elements, by a rule or, where the rule's
call says nothing (reductions, matrices, images...), as listed here.

The rule: the first sample call of the operation's own entry, every array in it made 1000 x 1000. Linear algebra is
timed in float64 on matrices for which it does about as much arithmetic as the others. An array of real numbers with a
dtype of its own is a constant; of all others gradients are taken.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from pullback.ops import TABLE
from pullback.table.samples import A, Array, D, S, Sample, V, index, mask

N = 1000
M = A(N, N)
DISTINCT = A(N, N, domain="distinct")
ROW, LINE = A(N), A(N * N)
SQUARE = A(200, 200, domain="regular")
DEFINITE = A(200, 200, domain="definite")
IMAGES, SHORT = A(4, 16, 124, 124), A(4, 16, 15_625)
VOLUMES = A(2, 8, 40, 40, 40)
LABELS = index(N, N)


def calls(name: str) -> list[Sample]:
    """The calls of an operation that are timed."""
    return LISTED.get(name) or [_by_rule(name)]


def dtype_of(name: str) -> str:
    """The dtype that arrays without one of their own have."""
    return "float64" if name in DOUBLE else "float32"


def _by_rule(name: str) -> Sample:
    sample = next((s for s in TABLE[name].domain("samples") if s.args), S(M))
    if name in WHOLE:
        sample = sample.replaced(
            lambda leaf: dataclasses.replace(leaf, dtype="int32") if isinstance(leaf, Array) else leaf
        )
    return sample.replaced(_enlarged)


def _enlarged(leaf: Any) -> Any:
    return dataclasses.replace(leaf, shape=(N, N), values=None) if isinstance(leaf, Array) else leaf


def _rising(n: int) -> Array:
    return V(np.arange(n, dtype=np.float32) / 100, "float32")


# In torch these take integers or bools only.
WHOLE = set("bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift gcd lcm".split())

_NEAR_ONE = V(1 + np.sin(np.arange(N * N)).reshape(N, N) / 1000)
_INDEX = index(N, N, N)
_SIGNS = V(np.where(np.arange(N * N) % 3, 1.0, -1.0).reshape(N, N), "float32")
_LOGARITHMS = V(np.log(np.random.default_rng(1).dirichlet(np.ones(50), (100, 32))))
_RUNS = V(np.arange(N * N) // 3, "int64")
_PROBABLE = A(N, N, domain="between 0 and 1")
_COMPLEX = A(N, N, dtype="complex64")
_HALF = A(N, 501, dtype="complex64")
_PLACES = V(np.arange(0, 1_000_000, 4).reshape(1, 1, -1), "int64")
_FACTORS = A(100, 100), V(np.linspace(0.001, 0.002, 100))
_TRIANGLE = V(np.tril(np.sin(np.arange(200 * 200)).reshape(200, 200) / 100, -1) + 2 * np.eye(200))
_LU = V(np.sin(np.arange(200 * 200)).reshape(200, 200) / 100 + 2 * np.eye(200))
_PERMUTED = V(np.random.default_rng(0).permutation(N), "int64")

# Several operations that are called alike, and their calls.
_GROUPS: dict[str, list[Sample]] = {
    "sum mean nansum nanmean var std var_mean std_mean amax amin count_nonzero": [S(M), S(M, 0), S(M, 1)],
    "max min argmax argmin": [S(DISTINCT), S(DISTINCT, 0), S(DISTINCT, 1)],
    "any all": [S(mask(N, N)), S(mask(N, N), 1)],
    "aminmax": [S(DISTINCT), S(DISTINCT, dim=1)],
    "logsumexp softmax log_softmax nn.functional.softmax nn.functional.log_softmax nn.functional.softmin cumsum "
    "logcumsumexp": [S(M, 0), S(M, 1)],
    "cummax cummin": [S(DISTINCT, 0), S(DISTINCT, 1)],
    "prod": [S(_NEAR_ONE), S(_NEAR_ONE, 0), S(_NEAR_ONE, 1)],
    "cumprod": [S(_NEAR_ONE, 0), S(_NEAR_ONE, 1)],
    "norm linalg.vector_norm": [S(M), S(M, 1, 1), S(M, 3, 1)],
    "linalg.norm linalg.matrix_norm": [S(M)],
    "dist": [S(M, M, 2), S(M, M, 3)],
    "sort argsort": [S(DISTINCT, 1), S(A(N, N, domain="whole", dtype="int64"), 1), S(DISTINCT, 0)],
    "median nanmedian": [S(DISTINCT), S(DISTINCT, 1)],
    "msort": [S(DISTINCT)],
    "kthvalue topk": [S(DISTINCT, 10, 1)],
    "mode": [S(_INDEX, 1)],
    "quantile nanquantile": [S(DISTINCT, 0.3, 1)],
    "reshape": [S(M, (N * N,))],
    "view": [S(M, N * N)],
    "reshape_as view_as": [S(M, A(N * N, dtype="float32"))],
    "expand_as": [S(ROW, A(N, N, dtype="float32"))],
    "flatten ravel positive t adjoint fliplr flipud rot90 clone contiguous atleast_1d atleast_2d atleast_3d diagonal "
    "diag trace triu tril linalg.diagonal cov corrcoef unbind": [S(M)],
    "argwhere nonzero": [S(mask(N, N))],
    "nonzero_static": [S(mask(N, N), size=N * N)],
    "unflatten": [S(M, 1, (10, 100))],
    "unsqueeze": [S(M, 0)],
    "squeeze": [S(A(N, 1, N))],
    "expand broadcast_to": [S(ROW, (N, N))],
    "broadcast_tensors": [S(ROW, A(N, 1))],
    "sum_to_size": [S(M, (1, N))],
    "permute": [S(A(100, 100, 100), (2, 0, 1))],
    "transpose swapaxes swapdims movedim": [S(M, 0, 1)],
    "to": [S(M, D("float64"))],
    "real imag conj conj_physical resolve_conj resolve_neg view_as_real": [S(_COMPLEX)],
    "view_as_complex": [S(A(N, 500, 2))],
    "nn.functional.pixel_shuffle nn.functional.pixel_unshuffle": [S(A(4, 16, 124, 124), 2)],
    "nn.functional.channel_shuffle": [S(IMAGES, 4)],
    "histc": [S(A(N, N, dtype="float32"), 100)],
    "histogram": [S(A(N, N, dtype="float32"), 100)],
    "bincount": [S(index(N, N * N))],
    "gather": [S(M, 1, _INDEX), S(M, 0, _INDEX)],
    "take_along_dim": [S(M, _INDEX, 1)],
    "index_select": [S(M, 0, _PERMUTED), S(M, 1, _PERMUTED)],
    "take": [S(M, index(N * N, N, N))],
    "masked_select": [S(M, mask(N, N))],
    "unravel_index": [S(index(N * N, N * N), (N, N))],
    "scatter scatter_add": [S(M, 1, _INDEX, M)],
    "scatter_reduce": [S(M, 1, _INDEX, M, r) for r in ("sum", "amax", "prod")],
    "index_add index_copy": [S(M, 0, _PERMUTED, M)],
    "index_fill": [S(M, 0, _PERMUTED, 1.5)],
    "index_reduce": [S(M, 0, _PERMUTED, M, "amax")],
    "put": [S(M, V(np.arange(0, N * N, 3), "int64"), A(333_334))],
    "index_put": [S(M, (_PERMUTED,), M)],
    "masked_fill": [S(M, mask(N, N), 1.5)],
    "masked_scatter": [S(M, mask(N, N), LINE)],
    "select_scatter": [S(M, ROW, 0, 1)],
    "slice_scatter": [S(M, A(500, N), 0, 0, 500)],
    "diag_embed diagflat": [S(ROW)],
    "diagonal_scatter": [S(M, ROW)],
    "tril_indices triu_indices": [S(N, N)],
    "cat concat concatenate stack hstack vstack dstack column_stack": [S([A(500, N), A(500, N)])],
    "block_diag": [S(A(500, 500), A(500, 500))],
    "meshgrid": [S(ROW, ROW, indexing="ij")],
    "cartesian_prod": [S(ROW, ROW)],
    "combinations": [S(ROW)],
    "diff": [S(M)],
    "gradient": [S(LINE)],
    "trapezoid cumulative_trapezoid": [S(M)],
    "cdist": [S(A(N, 16), A(N, 16)), S(A(N, 16), A(N, 16), p=1.0)],
    "nn.functional.pdist": [S(A(N, 16))],
    "einsum": [S("ij,jk->ik", A(300, 300), A(300, 300))],
    "flip": [S(M, (0,)), S(M, (1,))],
    "roll": [S(M, 1), S(M, 1, 1)],
    "repeat": [S(ROW, N, 1)],
    "tile": [S(ROW, (N, 1))],
    "repeat_interleave": [S(ROW, N)],
    "fft.fftn fft.ifftn fft.fft2 fft.ifft2 fft.fft fft.ifft": [S(_COMPLEX)],
    "fft.rfftn fft.rfft2 fft.rfft fft.ihfftn fft.ihfft2 fft.ihfft": [S(M)],
    "fft.irfftn fft.irfft2 fft.irfft fft.hfftn fft.hfft2 fft.hfft": [S(_HALF)],
    "fft.fftshift fft.ifftshift": [S(M)],
    "stft": [S(A(250_000), 512, window=A(512, domain="positive", dtype="float32"), return_complex=True)],
    "istft": [S(A(257, 2000, dtype="complex64"), 512, window=A(512, domain="positive", dtype="float32"))],
    "linalg.det det": [S(A(100, 100, domain="regular"))],
    "linalg.inv linalg.inv_ex linalg.slogdet linalg.qr linalg.matrix_exp linalg.svdvals linalg.eigvals "
    "linalg.lu_factor linalg.lu_factor_ex linalg.lu slogdet inverse qr lu linalg.cond linalg.pinv pinverse "
    "linalg.matrix_rank": [S(SQUARE)],
    "linalg.eigh linalg.eigvalsh linalg.cholesky linalg.cholesky_ex cholesky logdet": [S(DEFINITE)],
    "linalg.svd": [S(SQUARE, full_matrices=False)],
    "svd linalg.eig": [S(SQUARE)],
    "linalg.solve linalg.solve_ex": [S(SQUARE, A(200, 200))],
    "linalg.solve_triangular": [S(A(200, 200, domain="upper"), A(200, 200), upper=True)],
    "linalg.tensorinv": [S(A(10, 20, 200, domain="regular square"))],
    "linalg.tensorsolve": [S(A(10, 20, 200, domain="regular square"), A(10, 20))],
    "linalg.householder_product orgqr": [S(*_FACTORS)],
    "ormqr": [S(*_FACTORS, A(100, 100))],
    "linalg.multi_dot": [S([A(300, 300), A(300, 300), A(300, 300)])],
    "chain_matmul": [S(A(300, 300), A(300, 300), A(300, 300))],
    "linalg.matrix_power matrix_power": [S(SQUARE, 5)],
    "linalg.ldl_factor linalg.ldl_factor_ex": [S(DEFINITE)],
    "linalg.ldl_solve": [S(_LU, V(np.arange(1, 201), "int32"), A(200, 200))],
    "linalg.lstsq": [S(A(300, 100, domain="regular"), A(300, 100))],
    "lu_unpack": [S(A(200, 200), V(np.arange(1, 201), "int32"))],
    "linalg.lu_solve": [S(_LU, V(np.arange(1, 201), "int32"), A(200, 200))],
    "lu_solve": [S(A(200, 200), _LU, V(np.arange(1, 201), "int32"))],
    "cholesky_solve": [S(A(200, 200), _TRIANGLE)],
    "cholesky_inverse": [S(_TRIANGLE)],
    "linalg.cross cross": [S(A(333_333, 3), A(333_333, 3), dim=1)],
    "linalg.vecdot": [S(M, M)],
    "linalg.vander vander": [S(A(N, domain="small"), N=100)],
    "matmul mm": [S(A(300, 300), A(300, 300))],
    "bmm": [S(A(30, 100, 100), A(30, 100, 100))],
    "mv": [S(M, ROW)],
    "dot vdot": [S(LINE, LINE)],
    "outer": [S(ROW, ROW)],
    "addmm": [S(A(300, 300), A(300, 300), A(300, 300))],
    "addmv": [S(ROW, M, ROW)],
    "addbmm": [S(A(100, 100), A(30, 100, 100), A(30, 100, 100))],
    "baddbmm": [S(A(30, 100, 100), A(30, 100, 100), A(30, 100, 100))],
    "addr": [S(M, ROW, ROW)],
    "tensordot inner": [S(A(300, 300), A(300, 300))],
    "kron": [S(A(30, 30), A(33, 33))],
    "split": [S(M, 100)],
    "split_with_sizes unsafe_split_with_sizes": [S(M, [400, 600])],
    "chunk tensor_split hsplit vsplit": [S(M, 10)],
    "dsplit": [S(A(100, 100, 100), 10)],
    "select": [S(M, 0, 1)],
    "narrow narrow_copy": [S(M, 0, 1, 900)],
    "as_strided": [S(M, (500, 500), (1000, 2))],
    "as_strided_scatter": [S(M, A(500, 500), (500, 500), (1000, 2))],
    "unfold": [S(M, 1, 4, 4)],
    "searchsorted": [S(_rising(N), A(N, N, dtype="float32"))],
    "bucketize": [S(A(N, N, dtype="float32"), _rising(N))],
    "isin": [S(index(N, N, N), index(N, 100))],
    "unique": [S(index(N, N * N)), S(A(N * N, domain="distinct", dtype="float32"))],
    "unique_consecutive": [S(_RUNS), S(A(N * N, domain="distinct", dtype="float32"))],
    "numel is_floating_point is_complex is_conj is_neg": [S(M)],
    "is_same_size": [S(M, M)],
    "equal": [S(*(V(np.arange(N * N)),) * 2)],
    "isclose allclose": [S(*(V(np.arange(N * N)),) * 2)],
    "digamma lgamma": [S(A(N, N, domain="positive"))],
    "polygamma": [S(1, A(N, N, domain="positive"))],
    "mvlgamma": [S(A(N, N, domain="above one"), 2)],
    "clamp": [S(M, -1.0, 1.0)],
    "clamp_min": [S(M, 0.5)],
    "clamp_max": [S(M, 0.5)],
    "logit": [S(_PROBABLE)],
    "where": [S(mask(N, N), M, M)],
    "addcmul addcdiv": [S(M, M, M)],
    "lerp": [S(M, M, 0.3)],
    "ldexp": [S(M, V(np.arange(N) % 5, "int32"))],
    "pow float_power": [S(A(N, N, domain="positive"), A(N, N)), S(M, 3)],
    "special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v "
    "special.chebyshev_polynomial_w special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u "
    "special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w special.hermite_polynomial_h "
    "special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p": [
        S(A(N, N, domain="between 0 and 1", dtype="float32"), 5)
    ],
    "special.zeta": [S(A(N, N, domain="above one", dtype="float32"), A(N, N, domain="positive"))],
    "igamma igammac": [S(A(N, N, domain="positive", dtype="float32"), A(N, N, domain="positive"))],
    "isreal": [S(M)],
    "nn.functional.threshold": [S(M, 0.1, 20.0)],
    "nn.functional.prelu": [S(M, ROW)],
    "nn.functional.glu": [S(M)],
    "nn.functional.gelu": [S(M), S(M, approximate="tanh")],
    "nn.functional.dropout nn.functional.alpha_dropout nn.functional.feature_alpha_dropout": [S(M, 0.5, True)],
    "nn.functional.dropout1d": [S(SHORT)],
    "nn.functional.dropout2d": [S(IMAGES)],
    "nn.functional.dropout3d": [S(VOLUMES)],
    "nn.functional.pad": [S(M, (1, 2)), S(IMAGES, (1, 2, 2, 1), "reflect")],
    "nn.functional.linear": [S(A(300, 300), A(300, 300), A(300))],
    "nn.functional.bilinear": [S(A(300, 30), A(300, 30), A(30, 30, 30))],
    "nn.functional.scaled_dot_product_attention": [S(A(4, 8, 128, 64), A(4, 8, 128, 64), A(4, 8, 128, 64))],
    "nn.functional.multi_head_attention_forward": [
        S(
            *(A(64, 8, 64),) * 3,
            64,
            4,
            A(192, 64, domain="small"),
            A(192),
            None,
            None,
            False,
            0.0,
            A(64, 64, domain="small"),
            A(64),
        )
    ],
    "nn.functional.max_pool1d nn.functional.avg_pool1d": [S(A(4, 16, 15_625, domain="distinct"), 2)],
    "nn.functional.max_pool2d nn.functional.avg_pool2d": [S(A(4, 16, 124, 124, domain="distinct"), 2)],
    "nn.functional.max_pool3d nn.functional.avg_pool3d": [S(A(2, 8, 40, 40, 40, domain="distinct"), 2)],
    "nn.functional.adaptive_max_pool1d nn.functional.adaptive_avg_pool1d": [
        S(A(4, 16, 15_625, domain="distinct"), 100)
    ],
    "nn.functional.adaptive_max_pool2d nn.functional.adaptive_avg_pool2d": [
        S(A(4, 16, 124, 124, domain="distinct"), 7)
    ],
    "nn.functional.adaptive_max_pool3d nn.functional.adaptive_avg_pool3d": [
        S(A(2, 8, 40, 40, 40, domain="distinct"), 5)
    ],
    "nn.functional.lp_pool1d": [S(A(4, 16, 15_625, domain="positive"), 2, 2)],
    "nn.functional.lp_pool2d": [S(A(4, 16, 124, 124, domain="positive"), 2, 2)],
    "nn.functional.lp_pool3d": [S(A(2, 8, 40, 40, 40, domain="positive"), 2, 2)],
    "nn.functional.fractional_max_pool2d": [
        S(IMAGES, 2, (60, 60), _random_samples=A(4, 16, 2, domain="between 0 and 1", dtype="float32"))
    ],
    "nn.functional.fractional_max_pool3d": [
        S(VOLUMES, 2, (20, 20, 20), _random_samples=A(2, 8, 3, domain="between 0 and 1", dtype="float32"))
    ],
    "nn.functional.max_unpool1d": [S(A(1, 1, 250_000), _PLACES, 4)],
    "nn.functional.max_unpool2d": [
        S(A(1, 1, 500, 500), V(np.arange(0, 1_000_000, 4).reshape(1, 1, 500, 500), "int64"), 2)
    ],
    "nn.functional.max_unpool3d": [
        S(A(1, 1, 50, 50, 50), V(np.arange(0, 1_000_000, 8).reshape(1, 1, 50, 50, 50), "int64"), 2)
    ],
    "nn.functional.mse_loss nn.functional.l1_loss nn.functional.huber_loss nn.functional.smooth_l1_loss "
    "nn.functional.soft_margin_loss nn.functional.multilabel_soft_margin_loss": [S(M, A(N, N, dtype="float32"))],
    "nn.functional.nll_loss nn.functional.cross_entropy nn.functional.multi_margin_loss": [S(M, LABELS)],
    "nn.functional.linear_cross_entropy": [S(A(N, 64), A(N, 64), LABELS)],
    "nn.functional.multilabel_margin_loss": [
        S(A(N, 100), V(np.where(np.arange(100) < 3, np.arange(100) * 7, -1) + np.zeros((N, 1)), "int64"))
    ],
    "nn.functional.conv1d": [S(A(4, 16, 4000), A(16, 16, 3))],
    "nn.functional.conv2d": [S(A(4, 16, 62, 62), A(16, 16, 3, 3))],
    "nn.functional.conv3d": [S(A(2, 8, 20, 20, 20), A(8, 8, 3, 3, 3))],
    "nn.functional.conv_tbc": [S(A(4000, 4, 16), A(3, 16, 16), A(16))],
    "nn.functional.conv_transpose1d": [S(A(4, 16, 4000), A(16, 16, 3))],
    "nn.functional.conv_transpose2d": [S(A(4, 16, 62, 62), A(16, 16, 3, 3))],
    "nn.functional.conv_transpose3d": [S(A(2, 8, 20, 20, 20), A(8, 8, 3, 3, 3))],
    "nn.functional.ctc_loss": [
        S(_LOGARITHMS, V(1 + np.arange(640).reshape(32, 20) % 49, "int64"), (100,) * 32, (20,) * 32)
    ],
    "nn.functional.cosine_similarity nn.functional.pairwise_distance": [S(M, M)],
    "nn.functional.normalize": [S(M)],
    "nn.functional.one_hot": [S(LABELS, N)],
    "nn.functional.embedding": [S(index(N, 10_000), A(N, 100))],
    "nn.functional.embedding_bag": [S(index(N, 1000, 10), A(N, 100), mode=m) for m in ("mean", "sum", "max")],
    "nn.functional.unfold": [S(A(4, 16, 62, 62), 3)],
    "nn.functional.fold": [S(A(4, 144, 3600), (62, 62), 3)],
    "nn.functional.gaussian_nll_loss": [S(M, A(N, N, dtype="float32"), A(N, N, domain="positive"))],
    "nn.functional.poisson_nll_loss": [S(M, A(N, N, domain="positive", dtype="float32"))],
    "nn.functional.binary_cross_entropy": [S(_PROBABLE, A(N, N, domain="between 0 and 1", dtype="float32"))],
    "nn.functional.binary_cross_entropy_with_logits": [S(M, A(N, N, domain="between 0 and 1", dtype="float32"))],
    "nn.functional.kl_div": [S(M, A(N, N, domain="positive", dtype="float32"), reduction="sum")],
    "nn.functional.batch_norm": [
        S(IMAGES, None, None, A(16), A(16), training=True),
        S(IMAGES, A(16, dtype="float32"), A(16, domain="positive", dtype="float32")),
    ],
    "nn.functional.instance_norm": [S(IMAGES)],
    "nn.functional.layer_norm nn.functional.rms_norm": [S(M, (N,), ROW)],
    "nn.functional.group_norm": [S(IMAGES, 4, A(16), A(16))],
    "nn.functional.local_response_norm": [S(IMAGES, 5)],
    "nn.functional.hinge_embedding_loss": [S(M, _SIGNS)],
    "nn.functional.margin_ranking_loss": [S(M, M, _SIGNS)],
    "nn.functional.cosine_embedding_loss": [S(M, M, V(np.where(np.arange(N) % 3, 1.0, -1.0), "float32"))],
    "nn.functional.triplet_margin_loss nn.functional.triplet_margin_with_distance_loss": [S(M, M, M)],
    "nn.functional.interpolate": [
        S(A(4, 16, 62, 62), scale_factor=2.0, mode=m) for m in ("nearest", "bilinear", "bicubic", "area")
    ],
    "nn.functional.grid_sample": [S(A(4, 16, 124, 124), A(4, 124, 124, 2, domain="small"), align_corners=False)],
    "nn.functional.affine_grid": [S(A(4, 2, 3), (4, 16, 350, 350), align_corners=False)],
}

LISTED: dict[str, list[Sample]] = {name: found for names, found in _GROUPS.items() for name in names.split()}

DOUBLE = {
    name for name, (sample, *_) in LISTED.items() if name.startswith("linalg.") or sample.args[0] in (SQUARE, DEFINITE)
}
DOUBLE |= set("det orgqr ormqr lu_unpack lu_solve cholesky_solve cholesky_inverse matrix_power chain_matmul".split())

# Their results are drawn at random, or come in no order: of these shape and dtype are compared, not the values.
UNORDERED = set(
    "linalg.eig linalg.eigvals nn.functional.dropout nn.functional.alpha_dropout nn.functional.feature_alpha_dropout "
    "nn.functional.dropout1d nn.functional.dropout2d nn.functional.dropout3d".split()
)
# Vectors are determined up to a sign: what is compared and differentiated are the numbers that go with them.
DETERMINED = {"linalg.svd": 1, "svd": 1, "linalg.eigh": 0, "linalg.eig": 0, "mode": 0}
# In torch: they record a node whose backward pass raises.
WITHOUT_DERIVATIVE = set(
    "floor_divide heaviside vander linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve".split()
)

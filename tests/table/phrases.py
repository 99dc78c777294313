"""Key phrases of error messages: a run of words that torch's message and ours have in common.

A program may match on a phrase of torch's message (``pytest.raises(match=...)``). What the parser of arguments of torch
raises, TypeErrors about types and positions, is left out: those messages spell out torch's own signatures.
"""

from __future__ import annotations

import re

LENGTH = 3
"""The number of words that make a phrase; of a message that is shorter, all."""

# How many of an operation's refused samples have a message without a phrase of torch's: these say in our own words what
# was expected and what came, where torch's tell an internal name, a kernel ("not implemented for 'Long'") or a Python
# accident. The numbers may fall, not rise.
IN_OUR_WORDS: dict[str, int] = {
    name: number
    for number, names in {
        1: """
            aminmax as_strided_scatter cat cholesky cholesky_inverse cholesky_solve column_stack complex
            concat concatenate cummax cummin diagonal_scatter expand fft.fft fft.fft2 fft.fftn fft.hfft
            fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.irfft fft.irfft2 fft.irfftn
            fft.rfft fft.rfft2 fft.rfftn frexp geqrf histogram hstack inner isin linalg.eig linalg.eigh
            linalg.eigvals linalg.eigvalsh linalg.ldl_factor_ex linalg.ldl_solve linalg.matrix_power
            linalg.matrix_rank linalg.solve_ex linalg.svd linalg.svdvals linalg.tensorsolve linalg.vecdot
            lu_unpack masked.log_softmax masked.softmax masked.softmin masked.std masked.var masked_fill
            mvlgamma nanmean nansum narrow_copy nn.functional.celu nn.functional.gelu nn.functional.hardtanh
            nn.functional.hinge_embedding_loss nn.functional.instance_norm
            nn.functional.multilabel_soft_margin_loss nn.functional.pixel_shuffle
            nn.functional.pixel_unshuffle nn.functional.poisson_nll_loss nn.functional.soft_margin_loss
            nn.functional.softshrink nonzero_static permute polar repeat reshape rot90 searchsorted
            select_scatter tile triangular_solve tril_indices triu_indices unique unique_consecutive
            unsafe_split view_as_complex vstack
        """,
        2: """
            addr corrcoef cross cumulative_trapezoid dot fft.fftshift fft.ifftshift fft.ihfft2 fft.ihfftn
            gather gradient histogramdd index_select linalg.vector_norm mm nn.functional.adaptive_avg_pool2d
            nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool2d
            nn.functional.adaptive_max_pool3d nn.functional.channel_shuffle nn.functional.glu
            nn.functional.group_norm nn.functional.kl_div nn.functional.l1_loss
            nn.functional.local_response_norm nn.functional.lp_pool1d nn.functional.lp_pool2d
            nn.functional.lp_pool3d nn.functional.margin_ranking_loss nn.functional.mse_loss
            nn.functional.rms_norm nn.functional.rrelu nn.functional.smooth_l1_loss orgqr outer scatter_add
            select slice_scatter split std std_mean to trapezoid var var_mean vdot
        """,
        3: """
            as_strided bmm cdist constant_pad_nd einsum index_put isclose linalg.householder_product
            linalg.lstsq linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.pinv lu mv narrow
            nn.functional.adaptive_avg_pool1d nn.functional.adaptive_max_pool1d nn.functional.alpha_dropout
            nn.functional.binary_cross_entropy_with_logits nn.functional.dropout nn.functional.dropout1d
            nn.functional.dropout2d nn.functional.dropout3d nn.functional.fractional_max_pool2d
            nn.functional.fractional_max_pool3d nn.functional.huber_loss nn.functional.layer_norm
            nn.functional.pdist nn.functional.prelu nn.functional.triplet_margin_loss
            nn.functional.triplet_margin_with_distance_loss pinverse repeat_interleave tensordot vander
        """,
        4: """
            cov diff index_add index_copy index_fill index_reduce linalg.cross
            nn.functional.cosine_embedding_loss nn.functional.feature_alpha_dropout nn.functional.fold
            nn.functional.multilabel_margin_loss ormqr put scatter scatter_reduce
        """,
        5: """
            addbmm addmm baddbmm linalg.vander nn.functional.batch_norm nn.functional.bilinear
            nn.functional.binary_cross_entropy nn.functional.gaussian_nll_loss nn.functional.grid_sample
            nn.functional.linear nn.functional.nll_loss nn.functional.one_hot take
        """,
        6: """
            addmv nn.functional.affine_grid nn.functional.avg_pool3d nn.functional.linear_cross_entropy
            nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d
        """,
        7: """
            nn.functional.max_pool1d nn.functional.scaled_dot_product_attention nn.functional.unfold norm
        """,
        8: """
            nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.cross_entropy
            nn.functional.embedding
        """,
        9: """
            nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d
            nn.functional.max_pool2d nn.functional.max_pool3d nn.functional.multi_margin_loss
        """,
        10: """
            istft nn.functional.embedding_bag nn.functional.multi_head_attention_forward
        """,
        12: """
            nn.functional.ctc_loss nn.functional.pad
        """,
        13: """
            stft
        """,
        14: """
            nn.functional.interpolate
        """,
        19: """
            nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
        """,
    }.items()
    for name in names.split()
}


def has_phrase(ours: Exception, theirs: Exception) -> bool:
    """Whether our message has a run of words of torch's, or torch's is one of its parser of arguments."""
    return type(theirs) is TypeError or shared(str(ours), str(theirs))


def shared(ours: str, theirs: str) -> bool:
    """Whether our message has a run of words of torch's."""
    said, wanted = _words(ours), _words(theirs)
    length = min(LENGTH, len(wanted))
    runs = {tuple(said[i : i + length]) for i in range(len(said) - length + 1)}
    return any(tuple(wanted[i : i + length]) in runs for i in range(len(wanted) - length + 1))


def _words(message: str) -> list[str]:
    """The words of a message, without numbers, signs, and the place in C++."""
    return re.findall(r"[a-z_']+", message.split("\nException raised")[0].lower())

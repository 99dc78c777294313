"""A public operation is one entry of the table: its checks, its computation and its rules.

An entry whose name begins with an underscore is a computation that no user calls. It is right where one computation
stands behind several operations, or an operation chooses among several, and it is a second entry for one operation
where it is not. So each of them is on the list below, with what it is for. Checks alone are no reason, for an entry
has a place for them: `About.checks`, or the body of a composite; `check_values` has values checked in every mode.
"""

from __future__ import annotations

import pytest

from pullback.ops import TABLE

# One computation behind several public operations.
_SHARED = {
    "nn.functional._embedding": "embedding and embedding_bag",
    "nn.functional._add_rows": "embedding_bag by sums and means, and the derivative of embedding",
    "_bessel": "the Bessel functions of all families and orders; each is in the derivatives of the others",
    "_polynomial": "the orthogonal polynomials of all families, and their derivatives of any order",
    "_of_degree": "the same of one small degree",
    "_checked": "every operation that checks values in its body, or in a rule",
    "_conj": "conj and conj_physical, and the derivatives of both",
    "_to_copy": "to, float, half and all other conversions",
    "_pin_memory": "pin_memory, and what is made with it, and the derivatives of all",
    "_to_device": "to, cpu and cuda, and the derivatives of all",
    "_getitem": "x[i], select, narrow, split and all other views of a part",
    "_index": "x[i] by positions, take under vmap, and entries of sparse tensors",
    "_index_put": "x[i] = y, index_put, put under vmap",
    "_put_through": "x[i] = y, and the operations that replace a view",
    "_copy_over": "x[...] = y, copy_, fill_, and comparisons in place",
    "_times": "the factors alpha and beta of sums and of products added to something",
    "_scatter": "scatter with a number or a tensor, and what scatter_reduce starts from",
    "_scatter_combine": "scatter_reduce by products and extremes",
    "_solve": "linalg.solve from either side, and numpy.linalg.solve, which reads vectors in another way",
    "_solve_triangular": "linalg.solve_triangular, linalg.lu_solve, ormqr and the derivatives of factorizations",
    "_lu": "linalg.lu_factor, linalg.lu_factor_ex and linalg.lu",
    "_exchanged": "linalg.lu_solve, linalg.lu and lu_unpack",
    "_cross": "cross, linalg.cross and numpy.cross",
    "_matmul": "matmul of batches, and every other operation that computes a matrix product",
    "_bmm": "bmm, baddbmm and addbmm",
    "_dot": "dot, vdot, and matmul of two vectors",
    "_mv": "mv, addmv, and matmul of a matrix and a vector",
    "_mm": "mm, addmm, and matmul of two matrices",
    "_joint": "einsum, tensordot, linalg.vecdot and all other contractions",
    "_labelled_diagonal": "the same, of a label that an operand has twice",
    "_pick": "quantile, the losses of classes, and what chooses along an axis forward",
    "_place": "the derivative of a subscript that gives a view",
    "_unpick": "histogram, and the derivatives of what chooses along an axis",
    "_p_norm": "norm, dist, renorm, linalg.vector_norm and linalg.matrix_norm",
    "_euclidean": "the same, where p is 2",
    "_split": "split, chunk, tensor_split and their relatives",
    "_bin_edges": "histogram and histogramdd",
    "_bin_places": "histogram and histogramdd",
    "_unique": "unique and numpy.unique, which asks for other results",
    "_differences": "cdist and pdist",
    "_length": "cdist and pdist",
    "_repeated": "repeat_interleave of a tensor, and of nothing but the numbers of repeats",
    "_resize": "all Fourier transforms",
    "_c2c": "fft, ifft and those of several axes",
    "_r2c": "rfft, ihfft and those of several axes",
    "_c2r": "irfft, hfft and those of several axes",
    "_frames": "stft, and the derivative of istft",
    "_overlap_add": "istft, and the derivative of stft",
    "_sparse_mm": "products with a sparse matrix on either side",
    "_sparse_coo_tensor_with_dims_and_tensors": "every operation that gives a sparse tensor",
    "_sparse_values": "every operation on a sparse tensor",
    "nn.functional._prelu": "prelu and rrelu",
    "nn.functional._at_least": "cosine_similarity and gaussian_nll_loss",
    "nn.functional._resample": "interpolate, the averages over windows, and local_response_norm",
    "nn.functional._layer_norm": "layer_norm and rms_norm",
    "nn.functional._standardize": "batch_norm, instance_norm, layer_norm and group_norm",
    "nn.functional._normalize": "batch_norm, instance_norm, layer_norm and group_norm",
    "nn.functional._affine": "batch_norm, instance_norm and group_norm",
    "nn.functional._max_pool": "max_pool1d, max_pool2d and max_pool3d",
    "nn.functional._adaptive_max_pool": "adaptive_max_pool1d, adaptive_max_pool2d and adaptive_max_pool3d",
    "nn.functional._fractional_max_pool": "fractional_max_pool2d and fractional_max_pool3d",
    "nn.functional._max_unpool": "max_unpool1d, max_unpool2d and max_unpool3d",
    "nn.functional._convolve": "conv1d, conv2d and conv3d",
    "nn.functional._spread": "conv_transpose1d, conv_transpose2d and conv_transpose3d",
    "nn.functional._read": "grid_sample of images and of volumes",
    "nn.functional._huber": "huber_loss and smooth_l1_loss",
    "nn.functional._likelihoods": "nll_loss, cross_entropy and linear_cross_entropy",
}

# The operation chooses among computations, by its arguments.
_CHOSEN = {
    "nn.functional._x_log_x": "kl_div with log_target=False, a part of it",
    "nn.functional._gelu": "gelu with approximate='none', and a factor of it",
    "nn.functional._pad": "pad with mode='constant'",
    "_real": "real of a complex tensor; a real one is returned itself",
    "_view_as_dtype": "view with a dtype; with a shape it is reshape",
    "_trunc_divide": "div with rounding_mode='trunc'",
    "_contiguous": "contiguous, where the tensor itself is not",
    "_index_put_add": "index_put with accumulate=True",
    "_block_diag": "block_diag of at least one matrix",
    "_max": "max along an axis; of all elements it is amax, of two tensors maximum",
    "_min": "min along an axis; of all elements it is amin, of two tensors minimum",
    "_median": "median of all elements, a tensor",
    "_median_dim": "median along an axis, values and positions",
    "_nanmedian": "nanmedian of all elements, a tensor",
    "_nanmedian_dim": "nanmedian along an axis, values and positions",
    "_qr": "linalg.qr with both factors",
    "_only_r": "linalg.qr with R alone, which has no derivative",
    "_euclidean_by_products": "cdist by one matrix product",
    "_repeat_each": "repeat_interleave by one number",
    "nn.functional._first_of_largest": "embedding_bag with mode='max', the positions",
    "nn.functional._gelu_tanh": "gelu with approximate='tanh'",
}

# The public operation makes something of the result.
_FINISHED = {
    "_triangular_inverse": "cholesky_inverse multiplies it by its own transpose",
    "_cholesky": "upper=True turns the factor",
    "_cholesky_ex": "upper=True turns the factor",
    "_solve_ex": "left=False turns the solution, and a vector loses an axis",
    "_lstsq": "a vector loses an axis, and empty results take the place of those not asked for",
    "_unique_consecutive": "only the results asked for are returned",
    "_unbind": "the slices become views",
    "_as_strided": "the result becomes a view, or cannot be written to",
    "_unfold": "the result becomes a view, or cannot be written to",
    "nn.functional._bce": "the losses are weighted and reduced",
    "nn.functional._bce_with_logits": "the losses are weighted and reduced",
    "nn.functional._ctc": "the losses are reduced",
}

# In rules alone: the adjoint of an operation, or a factor of its derivative.
_IN_RULES = {
    "nn.functional._sum_product": "the derivative of normalizations by their scale",
    "nn.functional._project": "the derivative of normalizations, which is its own adjoint",
    "nn.functional._rows": "the adjoint of adding up rows",
    "_add_up": "the adjoint of indexing by positions",
    "_scatter_sum": "the adjoint of gather",
    "_take_sum": "the adjoint of take",
    "_masked_place": "the adjoint of masked_select",
    "_masked_spread": "what masked_scatter puts where the mask is True",
    "_masked_first": "the adjoint of that",
    "_on_diagonal": "the adjoint of diagonal",
    "_recurrence": "the derivatives of cumprod and logcumsumexp",
    "_inverse_or_nan": "the derivatives of determinants",
    "_solve_or_nan": "the derivatives of solutions",
    "_cofactors": "the derivative of det",
    "_nearly_singular": "the derivative of that: a mask of the matrices that go by singular values",
    "_as_strided_sum": "the adjoint of as_strided",
    "_fold": "the adjoint of unfold",
    "_sampled_mm": "the adjoint of a sparse product, at the places of its values",
    "nn.functional._from_planes": "the derivatives of pooling and sampling",
    "nn.functional._into_planes": "the adjoint of that",
    "nn.functional._correlate": "the derivative of convolutions by the weight",
    "nn.functional._write": "the adjoint of grid_sample by the input",
    "nn.functional._compare": "the derivative of grid_sample by the grid",
}

# NumPy's alone: torch has no such function.
_OF_NUMPY = {
    "_cbrt": "numpy.cbrt",
    "_partition": "numpy.partition",
    "_argpartition": "numpy.argpartition",
    "_first_places": "numpy.unique with return_index=True",
    "_convolved": "numpy.convolve and correlate",
    "_gammasgn": "scipy.special.gammasgn",
    **{name: "the ufunc of scipy.special" for name in TABLE if name.startswith("_scipy_")},
}

KEPT = {**_SHARED, **_CHOSEN, **_FINISHED, **_IN_RULES, **_OF_NUMPY}


def problems(private: set[str], kept: dict[str, str]) -> list[str]:
    """What is wrong with the list, in words."""
    return [
        *(f"{name} is an entry that no user calls: write its checks into the public one" for name in private - {*kept}),
        *(f"{name} is on the list, but is no entry" for name in {*kept} - private),
        *(f"{name} is on the list without a reason" for name, reason in kept.items() if not reason.strip()),
    ]


def _private() -> set[str]:
    return {name for name in TABLE if name.rpartition(".")[2].startswith("_")}


def test_an_entry_that_no_user_calls_has_a_reason() -> None:
    assert not problems(_private(), KEPT)


def test_a_reason_is_given_once() -> None:
    lists = _SHARED, _CHOSEN, _FINISHED, _IN_RULES, _OF_NUMPY
    assert sum(map(len, lists)) == len(KEPT)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda kept: kept.pop("_cbrt"), "write its checks"),
        (lambda kept: kept.update(_gone="of something"), "is no entry"),
        (lambda kept: kept.update(_cbrt=" "), "without a reason"),
    ],
)
def test_a_planted_fault_is_found(change: object, word: str) -> None:
    kept = dict(KEPT)
    assert callable(change)
    change(kept)
    (found,) = problems(_private(), kept)
    assert word in found

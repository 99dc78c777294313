"""Why some operations take more than three times PyTorch's time: a sentence each, for docs/operations_speed.md."""

from __future__ import annotations

_REASONS: dict[str, str] = {
    "sigmoid nn.functional.silu nn.functional.glu nn.functional.softplus": (
        "A sigmoid is a pass each for the sign, the exponential, the sum and the quotient; PyTorch has one loop."
    ),
    "flatten view view_as reshape reshape_as ravel broadcast_tensors movedim squeeze unsqueeze unflatten "
    "permute t positive adjoint transpose swapaxes swapdims select narrow split split_with_sizes chunk hsplit "
    "vsplit dsplit tensor_split unsafe_split unsafe_split_with_sizes unsafe_chunk unbind unfold diagonal "
    "linalg.diagonal diag contiguous trace meshgrid view_as_complex view_as_real ndimension "
    "is_pinned is_same_size is_floating_point is_complex numel dense_dim sparse_dim get_device": (
        "No element is touched, or few: the microseconds are those of Python's calls, and PyTorch's are in C++."
    ),
    "conj": "PyTorch only marks the tensor as conjugated; here the numbers are conjugated at once.",
    "prod cumprod cumsum": (
        "Along neighbours in memory NumPy folds one element after the other, which no vector unit speeds up."
    ),
    "cummax cummin": (
        "NumPy computes two running extremes, of values and of positions, each one element after the other; "
        "PyTorch has one loop for both."
    ),
    "erf erfc erfinv special.ndtr lgamma digamma polygamma mvlgamma igamma igammac special.i0e special.i1 "
    "special.i1e special.bessel_j0 special.bessel_j1 special.bessel_y0 special.airy_ai": (
        "SciPy computes one element after the other, in double precision; PyTorch has a vectorised kernel, or one "
        "of single precision."
    ),
    "frac": "The whole part and the difference are a pass each.",
    "remainder fmod": (
        "NumPy's own take one element at a time, and the quotient in double precision that replaces them takes "
        "several passes."
    ),
    "hypot": "NumPy's own takes one element at a time, and the root of a sum of squares would overflow.",
    "nextafter": "NumPy calls the C library for every element; PyTorch is vectorised.",
    "sgn sign": "Two comparisons, their difference and a conversion: four passes for one.",
    "isreal": "NumPy looks at every imaginary part, PyTorch fills the result with True.",
    "nn.functional.gelu": (
        "NumPy has no erf: a polynomial of ten terms, two passes each, in the cache; PyTorch has it in one loop."
    ),
    "nn.functional.threshold nn.functional.prelu nn.functional.leaky_relu nn.functional.hardshrink "
    "nn.functional.hardswish nn.functional.hardtanh nn.functional.softshrink nn.functional.hardsigmoid "
    "nn.functional.rrelu nn.functional.elu nn.functional.celu nn.functional.selu": (
        "A mask and a choice by it are four to six passes through memory; PyTorch fuses them into one."
    ),
    "renorm angle": "A comparison, a choice and, of rows, their norms are a pass each; PyTorch fuses them.",
    "addr outer lerp": "Each NumPy operation is a pass with a result of its own; PyTorch fuses them.",
    "kron vander linalg.vander diff trapezoid cumulative_trapezoid flip fliplr rot90": (
        "Composed of several operations of NumPy, each with an array of its own, or reversed along short rows; "
        "PyTorch has one kernel."
    ),
    "triu_indices tril_indices": (
        "NumPy makes a mask of the whole matrix and looks for what is true; PyTorch writes the positions down."
    ),
    "gather index_select index_reduce scatter scatter_add scatter_reduce": (
        "NumPy turns the positions along one axis into positions in memory first, and adds up where some coincide "
        "by `bincount` or `ufunc.at`, element by element."
    ),
    "unique unique_consecutive": (
        "NumPy sorts, or finds where runs begin, in several passes; inverse and counts are found along with it, "
        "since the derivative needs them."
    ),
    "nn.functional.pdist cdist": "All pairs are formed as an array, which PyTorch's kernel never stores.",
    "nn.functional.one_hot": (
        "The range of the indices is checked by two passes of its own, and positions along both axes are made for "
        "NumPy."
    ),
    "nn.functional.nll_loss nn.functional.embedding nn.functional.embedding_bag": (
        "Picking by positions in NumPy takes several small operations (checks, masks, sums), and PyTorch has one "
        "kernel."
    ),
    "nn.functional.multilabel_margin_loss": (
        "All pairs of classes are formed as an array; PyTorch stops at the last target of each row."
    ),
    "nn.functional.huber_loss nn.functional.smooth_l1_loss nn.functional.triplet_margin_loss": (
        "Each step of the formula is a pass of NumPy's; PyTorch has one fused kernel."
    ),
    "nn.functional.layer_norm nn.functional.group_norm": (
        "Mean, deviation, scale and shift are a pass each; PyTorch does a row at a time, in the cache."
    ),
    "nn.functional.max_pool1d nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d": (
        "A pass for each place in the window, with steps in memory that NumPy does not vectorise."
    ),
    "nn.functional.pad": (
        "NumPy copies an array whose axes are not in order along its short rows; PyTorch has kernels for it."
    ),
    "nn.functional.conv_transpose2d nn.functional.conv_transpose3d": (
        "What each place of the window spreads is added to the image by a pass of its own, along short rows; PyTorch "
        "has one kernel."
    ),
    "nn.functional.adaptive_avg_pool1d": (
        "Windows that overlap are copied apart, then added up; PyTorch adds them up where they are."
    ),
    "nn.functional.conv_tbc nn.functional.conv3d nn.functional.grid_sample": (
        "Windows or corners are copied together, then multiplied; PyTorch has kernels that need no copy."
    ),
    "fft.fft fft.ifft fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft fft.rfft2 fft.irfft fft.rfftn fft.hfft fft.hfft2 "
    "fft.hfftn stft": (
        "Pocketfft, SciPy's (NumPy's, where there is no SciPy, takes three times as long), against PyTorch's MKL."
    ),
    "linalg.lu lu_solve linalg.lu_solve cholesky_inverse linalg.householder_product ormqr linalg.lstsq "
    "linalg.lu_factor linalg.solve_triangular cholesky_solve orgqr": (
        "NumPy offers fewer of LAPACK's routines than PyTorch, which calls MKL: factors are taken apart, put "
        "together, or solved for in full."
    ),
    "linalg.solve linalg.solve_ex linalg.inv_ex linalg.inv inverse linalg.tensorinv linalg.tensorsolve": (
        "NumPy's LAPACK solves for an identity where PyTorch's inverts, and keeps no LU factors: each of the gradients "
        "of a solution factors the matrix anew."
    ),
    "softmax nn.functional.softmax nn.functional.softmin log_softmax nn.functional.log_softmax "
    "nn.functional.cross_entropy": ("The maximum, the exponentials and their sum are passes of their own."),
    "pow": "PyTorch multiplies for small whole exponents; NumPy takes the power.",
    "as_strided": (
        "Where each stride leads is checked in Python before the view is made, and its gradient adds up what is "
        "read twice."
    ),
    "lu_unpack": (
        "P is gathered from the rows of an identity, L and U are made by masks, where PyTorch fills all three in "
        "one pass."
    ),
    "expand expand_as broadcast_to": (
        "A view, in microseconds of Python's calls; its gradient is a sum that NumPy makes of rows one after the other."
    ),
    "sum mean nansum": (
        "NumPy's sums along neighbours are pairwise and use half of the vector width; the gradient of a sum is a "
        "view in PyTorch and is written out here."
    ),
}

REASONS = {name: why for names, why in _REASONS.items() for name in names.split()}


def reason(name: str) -> str:
    """Why an operation is slower; "" if that is not known."""
    return REASONS.get(name, "")

"""scipy.linalg with derivatives: what NumPy lacks, and the rest of it under SciPy's arguments."""

from ..mirror import home, refuse
from .banded import (
    solve_banded,
    solveh_banded,
)
from .decompositions import (
    eig,
    eigh,
    eigvals,
    eigvalsh,
    orthogonal_procrustes,
    pinv,
    pinvh,
    polar,
    qr,
    svd,
    svdvals,
)
from .dense_systems import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    inv,
    lstsq,
    lu,
    lu_factor,
    lu_solve,
    norm,
    solve,
    solve_triangular,
)
from .matrix_equations import (
    solve_continuous_are,
    solve_continuous_lyapunov,
    solve_discrete_are,
    solve_discrete_lyapunov,
    solve_lyapunov,
    solve_sylvester,
)
from .primary_functions import (
    coshm,
    cosm,
    expm,
    expm_frechet,
    fractional_matrix_power,
    logm,
    signm,
    sinhm,
    sinm,
    sqrtm,
    tanhm,
    tanm,
)
from .structured import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    hankel,
    leslie,
    matmul_toeplitz,
    solve_circulant,
    solve_toeplitz,
    toeplitz,
)

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "coshm",
    "cosm",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "expm_frechet",
    "fractional_matrix_power",
    "hankel",
    "inv",
    "leslie",
    "logm",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul_toeplitz",
    "norm",
    "orthogonal_procrustes",
    "pinv",
    "pinvh",
    "polar",
    "qr",
    "signm",
    "sinhm",
    "sinm",
    "solve",
    "solve_banded",
    "solve_circulant",
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
    "solve_toeplitz",
    "solve_triangular",
    "solveh_banded",
    "sqrtm",
    "svd",
    "svdvals",
    "tanhm",
    "tanm",
    "toeplitz",
]

refuse(
    "linalg",
    {
        **dict.fromkeys(
            ("schur", "rsf2csf", "qz", "ordqz"),
            "the order of the eigenvalues and the bases are not unique and jump with the matrix; "
            "use eigvals, eig, eigh or solve_sylvester",
        ),
        "hessenberg": "the reduction is not unique, and jumps where a pivot is 0; use eigvals, or solve",
        "cdf2rdf": "pairs of conjugate eigenvalues are found by comparing values, and may jump; use eig",
        **dict.fromkeys(
            ("null_space", "orth"), "a basis of a space is not unique; the projection on it is: use pinv(A) @ A"
        ),
        "ldl": "with pivoting by blocks the factors jump with the matrix; use cholesky or lu",
        "cossin": "its bases are not unique; use svd",
        "matrix_balance": "the scales are powers of 2, which are piecewise constant",
        "bandwidth": "it counts diagonals",
        "issymmetric": "it is a yes or no",
        "ishermitian": "it is a yes or no",
    },
)

__getattr__, __dir__ = home(
    "linalg", globals(), same="LinAlgError LinAlgWarning dft hadamard helmert hilbert invhilbert invpascal pascal"
)

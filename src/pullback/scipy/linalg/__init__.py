"""scipy.linalg with derivatives."""

from ..mirror import home
from .banded import solve_banded, solveh_banded
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

__all__ = []

__getattr__, __dir__ = home("linalg", globals(), same="LinAlgError LinAlgWarning")

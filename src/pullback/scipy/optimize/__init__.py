"""Roots, minima and fits: `scipy.optimize` with derivatives by the implicit function theorem."""

from ..mirror import home, refuse
from .fits import curve_fit, least_squares
from .minima import minimize, minimize_scalar
from .scalar_roots import bisect, brenth, brentq, newton, ridder, root_scalar
from .vector_roots import fixed_point, fsolve, newton_krylov, root

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "curve_fit",
    "fixed_point",
    "fsolve",
    "least_squares",
    "minimize",
    "minimize_scalar",
    "newton",
    "newton_krylov",
    "ridder",
    "root",
    "root_scalar",
]

_STEPS = "the solution jumps from corner to corner as the costs change: it is piecewise constant in them"
_CHOICE = "it chooses among finitely many assignments, and the choice is piecewise constant"
_RANDOM = "it samples at random; minimize from its result has the derivative"
_DIFFERENCE = "it is a finite difference; func.jacrev and gradcheck are exact"
_MATRIX = "its solver takes the matrix alone; least_squares(..., bounds=) has a derivative"
_GLOBAL = ("basinhopping", "brute", "differential_evolution", "direct", "dual_annealing", "shgo")

refuse(
    "optimize",
    {
        "linprog": _STEPS,
        "milp": "the solution is made of integers: it is piecewise constant",
        "linear_sum_assignment": _CHOICE,
        "quadratic_assignment": _CHOICE,
        "isotonic_regression": "which values it puts together changes by jumps",
        **dict.fromkeys(
            ("basinhopping", "brute", "differential_evolution", "direct", "dual_annealing", "shgo"), _RANDOM
        ),
        **dict.fromkeys(
            ("approx_fprime", "check_grad"), "it is a finite difference; func.jacrev and gradcheck are exact"
        ),
        **dict.fromkeys(
            ("nnls", "lsq_linear"), "its solver takes the matrix alone; least_squares(..., bounds=) has a derivative"
        ),
    },
)

__getattr__, __dir__ = home(
    "optimize",
    globals(),
    same="BFGS Bounds LinearConstraint NoConvergence NonlinearConstraint OptimizeResult OptimizeWarning RootResults "
    "SR1",
)

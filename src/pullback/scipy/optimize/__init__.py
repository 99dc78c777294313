"""Roots, minima and fits: `scipy.optimize` with derivatives by the implicit function theorem."""

from ..mirror import home, refuse
from .minima import minimize, minimize_scalar
from .roots import fixed_point, fsolve, newton_krylov, root

__all__ = ["fixed_point", "fsolve", "minimize", "minimize_scalar", "newton_krylov", "root"]

__getattr__, __dir__ = home("optimize", globals(), same="BFGS Bounds LinearConstraint NonlinearConstraint OptimizeResult OptimizeWarning SR1 NoConvergence")

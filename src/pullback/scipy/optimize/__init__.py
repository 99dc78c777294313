"""Roots, minima and fits: `scipy.optimize` with derivatives by the implicit function theorem."""

from ..mirror import home, refuse
from .roots import fixed_point, fsolve, newton_krylov, root

__all__ = ["fixed_point", "fsolve", "newton_krylov", "root"]

__getattr__, __dir__ = home("optimize", globals(), same="OptimizeResult")

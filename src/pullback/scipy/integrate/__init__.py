"""`scipy.integrate` with derivatives: initial and boundary value problems, integrals of functions and of samples."""

from __future__ import annotations

from ..mirror import home, refuse
from .ivp import solve_ivp

__all__ = ["solve_ivp"]

__getattr__, __dir__ = home("integrate", globals(), same="")

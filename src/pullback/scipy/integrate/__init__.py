"""`scipy.integrate` with derivatives: initial and boundary value problems, integrals of functions and of samples."""

from __future__ import annotations

from ..mirror import home, refuse
from .boundary_values import solve_bvp
from .ivp import solve_ivp
from .older_ivp import odeint
from .quadrature import quad, quad_vec
from .sampled_integrals import cumulative_simpson, cumulative_trapezoid, simpson, trapezoid

__all__ = [
    "cumulative_simpson",
    "cumulative_trapezoid",
    "odeint",
    "quad",
    "quad_vec",
    "simpson",
    "solve_bvp",
    "solve_ivp",
    "trapezoid",
]

__getattr__, __dir__ = home("integrate", globals(), same="IntegrationWarning ODEintWarning")

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

_SOLVERS = "it is a solver whose steps are taken one by one; solve_ivp takes it as method="
_RANDOM = "its sample points are drawn anew in each call"
refuse(
    "integrate",
    {
        **dict.fromkeys(("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA", "OdeSolver", "DenseOutput"), _SOLVERS),
        "ode": "it keeps its state between calls; use solve_ivp",
        "complex_ode": "it keeps its state between calls; use solve_ivp, which takes complex states",
        "qmc_quad": _RANDOM,
        "newton_cotes": "its weights depend on whole numbers alone",
        "lebedev_rule": "its weights depend on a whole number alone",
    },
)

__getattr__, __dir__ = home("integrate", globals(), same="IntegrationWarning ODEintWarning")

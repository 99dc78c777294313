"""scipy.special with derivatives: ``from pullback.scipy import special``.

The ufuncs that have a rule for Tensors are SciPy's own. Beyond
``scipy.special.X(t)`` the incomplete gamma and beta functions, the distribution functions made of them, Student's and
zeta have derivatives by all their parameters here. What is no ufunc is a composition.

>>> import pullback
>>> from pullback.scipy import special
>>> a = pullback.tensor(2.0, requires_grad=True)
>>> special.gammainc(a, 1.0).backward()
>>> a.grad
tensor(-0.2762)
"""

from __future__ import annotations

import scipy.special as _sp

from ..mirror import home, refuse
from .composites import (
    comb,
    factorial,
    ivp,
    jvp,
    kvp,
    log_softmax,
    logsumexp,
    multigammaln,
    perm,
    polygamma,
    sinc,
    softmax,
    softplus,
    spherical_in,
    spherical_jn,
    spherical_kn,
    spherical_yn,
    yvp,
    zeta,
    zetac,
)
from .handed_on import CONSTANTS as _CONSTANTS
from .handed_on import REFUSED as _REFUSED
from .handed_on import UFUNCS as _UFUNCS

globals().update(_UFUNCS, **_CONSTANTS)

_SETTINGS = "errstate geterr seterr SpecialFunctionWarning SpecialFunctionError"
__all__ = sorted(
    [
        *("comb factorial ivp jvp kvp log_softmax logsumexp multigammaln perm polygamma sinc softmax softplus").split(),
        *("spherical_in spherical_jn spherical_kn spherical_yn yvp zeta zetac").split(),
        *_UFUNCS,
        *_CONSTANTS,
    ]
)

_SEQUENCES = "it gives sequences of values and derivatives; use the function of one order"
refuse(
    "special",
    {
        **{
            name: next((r for n, r in _REFUSED.items() if n == getattr(_sp, name).__name__), "").removeprefix(
                "write it with functions that have one ("
            )[:-1]
            for name in _sp.__all__
            if name not in __all__ and getattr(getattr(_sp, name), "__name__", "") in _REFUSED
        },
        **dict.fromkeys(
            "lqmn lqn obl_cv_seq pbdn_seq pbdv_seq pbvv_seq pro_cv_seq riccati_jn riccati_yn lmbda".split(), _SEQUENCES
        ),
        **dict.fromkeys(
            "assoc_legendre_p assoc_legendre_p_all legendre_p legendre_p_all sph_harm_y sph_harm_y_all sph_legendre_p "
            "sph_legendre_p_all".split(),
            "SciPy gives its derivatives itself, with diff_n=; for Legendre polynomials, use eval_legendre",
        ),
        **dict.fromkeys("ellip_harm ellip_harm_2 ellip_normal".split(), "it is solved for inside SciPy, by degree"),
        **dict.fromkeys("h1vp h2vp lambertw".split(), "its result is complex also for real numbers"),
        "assoc_laguerre": "it is eval_genlaguerre with n and k exchanged; use that",
        "diric": "it is sin(n x / 2) / (n sin(x / 2)); write that",
    },
)
__getattr__, __dir__ = home("special", globals(), same=_SETTINGS)

"""The ufuncs of scipy.special, on Tensors.

Most are one entry of the table: SciPy computes the value, and the derivative by each argument is written with SciPy's
functions again, which lead back here. Some are compositions. An argument without a rule, such as the order of a Bessel
function, is a constant: a gradient for it is refused by name. The other ufuncs are in `INSTEAD`.

The derivatives are in the NIST Handbook (https://dlmf.nist.gov), chapters 5 to 8, 10, 13, 15, 18 and 19.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...table.entry import constant, pointwise
from ...table.operands import FLOATS, need, plain
from ...tensor.arrays import as_array, writable
from ...tensor.protocol import INSTEAD
from ...tensor.tensor import NUMPY, Tensor, wrap
from ..elementwise.bessel import scipy_special
from ..elementwise.gamma import erf, erfc, erfcx, no_derivative
from ..elementwise.limits import where
from ..elementwise.polynomials import hermite_polynomial_h, hermite_polynomial_he
from ..make.conversion import to


class _Special:
    """scipy.special, imported when a function of it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(scipy_special("_ufuncs"), name) if name.startswith("_") else scipy_special(name)


sp = _Special()


def _floating(*args: Any) -> list[Any]:
    """Tensors unchanged and arrays as constants; integers as float64, as SciPy does; numbers stay numbers."""
    found = [a if isinstance(a, (Tensor, int, float, complex)) else wrap(as_array(a)) for a in args]
    return [to(a, np.float64) if isinstance(a, Tensor) and a._data.dtype.kind in "biu" else a for a in found]


# Entries --------------------------------------------------------------------------------------------------------------


def _value(name: str, kinds: str, *args: Any) -> Any:
    """SciPy's value, in the dtype of the arrays among the arguments.

    NotImplementedError for complex numbers that SciPy itself takes, but that have no rule.
    """
    if "c" not in kinds and any(np.iscomplexobj(a) for a in args) and "D->D" in str(getattr(sp, name).types):
        raise NotImplementedError(
            errors.message(
                f"scipy.special.{name}() of complex numbers has no derivative rule",
                expected="real numbers",
                found=errors.describe(args[-1]),
                do="take .real, .abs() or .angle() first, or give it an array, t.detach().numpy(): a constant",
            )
        )
    dtypes = [need(f"scipy.special.{name}", kinds, a).dtype for a in args if hasattr(a, "size")]
    found = writable(getattr(sp, name)(*args))
    return found if found.dtype.kind == "c" else found.astype(np.result_type(*dtypes), copy=False)


_FORWARDS: list[Callable[[str, str], Callable[..., Any]]] = [
    lambda name, kinds: lambda x: _value(name, kinds, x),
    lambda name, kinds: lambda a, x: _value(name, kinds, a, x),
    lambda name, kinds: lambda a, b, x: _value(name, kinds, a, b, x),
    lambda name, kinds: lambda a, b, c, x: _value(name, kinds, a, b, c, x),
]


def _constant(name: str, argument: str) -> Callable[..., Any]:
    """The rule of an argument without a derivative."""
    short = name.rpartition(".")[2]
    others = " (or chdtri there)" if short == "gammainccinv" else ""
    instead = f"pullback.{name}{others}, which has it" if short in WITH_PARAMETERS else ""
    return lambda g: no_derivative(name, argument, instead)


def _enter(name: str, arguments: str = "x", kinds: str = FLOATS, entry: str = "", **rules: Callable[..., Any]) -> None:
    """Enter a ufunc of SciPy, with a rule for each argument that has a derivative.

    arguments: its arguments in SciPy's words. In the rules they are `x` for the last, and `a`, `b`, `c` before it.
    kinds: of the dtypes that it takes. entry: the name of the entry, if it is not that of the ufunc.
    """
    words = arguments.split()
    letters = [*"abc"[: len(words) - 1], "x"]
    full = f"scipy.special.{name}"
    given = {k: rules.get(k) or _constant(full, word) for k, word in zip(letters, words, strict=True)}
    forward = _FORWARDS[len(words) - 1](name, kinds)
    entered = pointwise(name=f"_scipy_{entry or name}", said=full, method=False, rules=given)(forward)
    _ENTERED[entry or name] = NUMPY[full] = lambda *args: entered(*_floating(*args))


WITH_PARAMETERS = frozenset("betainc betaincc betaincinv betainccinv gammaincinv gammainccinv stdtr stdtrit".split())
"""Ufuncs with a rule that `pullback.scipy.special` has by their parameters as well."""

_ENTERED: dict[str, Callable[..., Any]] = {}
_ROOT_PI, _DEGREE = math.sqrt(math.pi), math.pi / 180

# The gamma function and its relatives


def _slope_of_rgamma(g: Any, x: Any) -> Any:
    # below 1/2 by the reflection 1 / Gamma(x) = Gamma(1 - x) sin(pi x) / pi: psi has poles, which cancel
    right = np.greater(plain(x), 0.5)
    high, low = np.where(right, x, 1), np.where(right, 0, x)
    turn = np.cos(np.pi * low) - sp.psi(1 - low) * np.sin(np.pi * low) / np.pi
    return g * np.where(right, -sp.rgamma(high) * sp.psi(high), sp.gamma(1 - low) * turn)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return np.exp(sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b))


def _gamma_density(a: Any, x: Any) -> Any:
    return np.exp(sp.xlogy(a - 1, x) - x - sp.gammaln(a))


def _psi_step(x: Any, d: Any) -> Any:
    """``psi(x + d) - psi(x)``, for large x by the asymptotic series, so that nothing cancels."""
    large = np.minimum(plain(x), plain(x) + plain(d)) > 1e4
    u, v = np.where(large, x, 1e5), np.where(large, d, 1.0)
    w = u + v
    far = np.log1p(v / u) + v / u / w * (0.5 + (1 / u + 1 / w) / 12)
    return np.where(large, far, sp.psi(np.where(large, 1.0, x + d)) - sp.psi(np.where(large, 1.0, x)))


def _turn(x: Any) -> tuple[Any, Any]:
    """``sin(pi x) / pi`` and ``cos(pi x)``, exact where x is whole."""
    whole = np.round(plain(x))
    sign, angle = 1 - 2 * np.mod(whole, 2), np.pi * (x - whole)
    return sign * np.sin(angle) / np.pi, sign * np.cos(angle)


def _beyond(n: Any, k: Any) -> Any:
    """Where binom is 0 for whole numbers k > n; there psi has poles, and the reflection formula of gamma is used.

    Below, where k has such poles as well, it is used for the nearer one.
    """
    n, k = plain(n), plain(k)
    nearer = np.absolute(n - k - np.round(n - k)) < np.absolute(k - np.round(k))
    return (n - k < -0.5) & ((k > -0.5) | nearer)


def _binom_by_n(n: Any, k: Any) -> Any:
    right = _beyond(n, k)
    a, b = np.where(right, 4.0, n), np.where(right, 2.0, k)
    usual = sp.binom(a, b) * _psi_step(a - b + 1, b)
    a, b = np.where(right, n, 4.0), np.where(right, k, 5.0)
    sine, cosine = _turn(a - b + 1)
    return np.where(right, sp.beta(a + 1, b - a) * (cosine + sine * (sp.psi(a + 1) - sp.psi(b - a))), usual)


def _binom_by_k(n: Any, k: Any) -> Any:
    right = _beyond(n, k)
    turned = right | (plain(k) < -0.5)
    a, b = np.where(turned, 4.0, n), np.where(turned, 2.0, k)
    usual = sp.binom(a, b) * (sp.psi(a - b + 1) - sp.psi(b + 1))
    a, b = np.where(turned, n, 4.0), np.where(turned, np.where(right, n - k, k), -1.0)
    sine, cosine = _turn(b + 1)
    slope = sp.beta(a + 1, -b) * (cosine + sine * (sp.psi(a - b + 1) - sp.psi(-b)))
    return np.where(turned, np.where(right, -slope, slope), usual)


def _poch_by_z(z: Any, m: Any) -> Any:
    """By the reflection formula of gamma where psi has poles: at z, or for whole numbers at both ends."""
    low, end = plain(z) < 0.5, plain(z) + plain(m)
    whole = (plain(z) == np.floor(plain(z))) & (end == np.floor(end))
    across, below = low & (end > 0.5), low & (end <= 0.5) & whole
    start = np.where(below, 1 - z - m, np.where(across, 1.0, z))
    usual = sp.poch(np.where(across, 1.0, z), m) * np.where(below, -1.0, 1.0) * _psi_step(start, m)
    a, b = np.where(across, z, -1.0), np.where(across, m, 3.0)
    sine, cosine = _turn(a)
    size = np.exp(sp.gammaln(a + b) + sp.gammaln(1 - a))
    return np.where(across, size * (cosine + sine * (sp.psi(a + b) - sp.psi(1 - a))), usual)


_enter("gamma", x=lambda g, x: g * (sp.gamma(x) * sp.psi(x)))
_enter("rgamma", x=_slope_of_rgamma)
_enter("loggamma", x=lambda g, x: g * sp.psi(x))
_enter(
    "beta",
    "a b",
    a=lambda g, a, x: g * (sp.beta(a, x) * (sp.psi(a) - sp.psi(a + x))),
    x=lambda g, a, x: g * (sp.beta(a, x) * (sp.psi(x) - sp.psi(a + x))),
)
_enter(
    "betaln",
    "a b",
    a=lambda g, a, x: g * (sp.psi(a) - sp.psi(a + x)),
    x=lambda g, a, x: g * (sp.psi(x) - sp.psi(a + x)),
)
_enter("betainc", "a b x", x=lambda g, a, b, x: g * _beta_density(a, b, x))
_enter("betaincc", "a b x", x=lambda g, a, b, x: -g * _beta_density(a, b, x))
_enter("betaincinv", "a b y", x=lambda g, a, b, x: g / _beta_density(a, b, sp.betaincinv(a, b, x)))
_enter("betainccinv", "a b y", x=lambda g, a, b, x: -g / _beta_density(a, b, sp.betainccinv(a, b, x)))
_enter("gammaincinv", "a y", x=lambda g, a, x: g / _gamma_density(a, sp.gammaincinv(a, x)))
_enter("gammainccinv", "a y", x=lambda g, a, x: -g / _gamma_density(a, sp.gammainccinv(a, x)))
_enter("binom", "n k", a=lambda g, a, x: g * _binom_by_n(a, x), x=lambda g, a, x: g * _binom_by_k(a, x))
_enter(
    "poch",
    "z m",
    a=lambda g, a, x: g * _poch_by_z(a, x),
    x=lambda g, a, x: g * (sp.poch(a, x) * sp.psi(a + x)),
)
_enter("_riemann_zeta")

# The error function and its relatives; those of complex numbers under names of their own
_enter("erf", kinds="c", entry="complex_erf", x=lambda g, x: g * (2 / _ROOT_PI * np.exp(-x * x)))
_enter("erfc", kinds="c", entry="complex_erfc", x=lambda g, x: g * (-2 / _ROOT_PI * np.exp(-x * x)))
_enter("erfcx", kinds="c", entry="complex_erfcx", x=lambda g, x: g * (2 * x * sp.erfcx(x) - 2 / _ROOT_PI))
_enter("erfi", kinds="fc", x=lambda g, x: g * (2 / _ROOT_PI * np.exp(x * x)))
_enter("dawsn", kinds="fc", x=lambda g, x: g * (1 - 2 * x * sp.dawsn(x)))
_enter("erfcinv", x=lambda g, x: g * (-_ROOT_PI / 2 * np.exp(np.square(sp.erfcinv(x)))))
_enter("ndtri_exp", "y", x=lambda g, x: g * (math.sqrt(2 * math.pi) * np.exp(x + np.square(sp.ndtri_exp(x)) / 2)))
_enter(
    "owens_t",
    "h a",
    a=lambda g, a, x: g * (np.exp(-a * a / 2) * sp.erf(a * x / math.sqrt(2)) / -math.sqrt(8 * math.pi)),
    x=lambda g, a, x: g * (np.exp(-a * a * (1 + x * x) / 2) / (2 * math.pi * (1 + x * x))),
)

# Bessel functions: the order is a constant
_enter("jv", "v z", x=lambda g, a, x: g * ((sp.jv(a - 1, x) - sp.jv(a + 1, x)) / 2))
_enter("yv", "v z", x=lambda g, a, x: g * ((sp.yv(a - 1, x) - sp.yv(a + 1, x)) / 2))
_enter("iv", "v z", x=lambda g, a, x: g * ((sp.iv(a - 1, x) + sp.iv(a + 1, x)) / 2))
_enter("kv", "v z", x=lambda g, a, x: g * ((sp.kv(a - 1, x) + sp.kv(a + 1, x)) / -2))
_enter("ive", "v z", x=lambda g, a, x: g * ((sp.ive(a - 1, x) + sp.ive(a + 1, x)) / 2 - np.sign(x) * sp.ive(a, x)))
_enter("kve", "v z", x=lambda g, a, x: g * (sp.kve(a, x) - (sp.kve(a - 1, x) + sp.kve(a + 1, x)) / 2))

# Exponential integrals, hypergeometric functions, elliptic integrals
_enter("exp1", "z", x=lambda g, x: g * (-np.exp(-x) / x))
_enter("expi", x=lambda g, x: g * (np.exp(x) / x))
_enter("hyp0f1", "v z", x=lambda g, a, x: g * (sp.hyp0f1(a + 1, x) / a))
_enter("hyp1f1", "a b x", x=lambda g, a, b, x: g * (a / b * sp.hyp1f1(a + 1, b + 1, x)))
_enter("hyperu", "a b x", x=lambda g, a, b, x: g * (-a * sp.hyperu(a + 1, b + 1, x)))
_enter("hyp2f1", "a b c z", x=lambda g, a, b, c, x: g * (a * b / c * sp.hyp2f1(a + 1, b + 1, c + 1, x)))
_enter("exprel", x=lambda g, x: g * (sp.hyp1f1(2.0, 3.0, x) / 2))
_enter("wrightomega", "z", kinds="fc", x=lambda g, out: g * (out / (1 + out)))
_enter("spence", "z", x=lambda g, x: g * -sp.hyp2f1(1.0, 1.0, 2.0, 1 - x))
_enter("ellipk", "m", x=lambda g, x: g * (math.pi / 8 * sp.hyp2f1(1.5, 1.5, 2.0, x)))
_enter("ellipkm1", "p", x=lambda g, x: g * (-math.pi / 8 * sp.hyp2f1(1.5, 1.5, 2.0, 1 - x)))
_enter("ellipe", "m", x=lambda g, x: g * (-math.pi / 8 * sp.hyp2f1(0.5, 1.5, 2.0, x)))

# Angles in degrees, and what is exact near 0
_enter("sindg", x=lambda g, x: g * (_DEGREE * sp.cosdg(x)))
_enter("cosdg", x=lambda g, x: g * (-_DEGREE * sp.sindg(x)))
_enter("tandg", x=lambda g, x: g * (_DEGREE * (1 + np.square(sp.tandg(x)))))
_enter("cotdg", x=lambda g, x: g * (-_DEGREE * (1 + np.square(sp.cotdg(x)))))
_enter("cosm1", x=lambda g, x: g * -np.sin(x))
_enter("log_expit", x=lambda g, x: g * sp.expit(-x))
_enter("exp10", x=lambda g, x: g * (math.log(10) * sp.exp10(x)))
_enter(
    "powm1",
    "x y",
    a=lambda g, a, x: g * (x * np.power(a, x - 1)),
    x=lambda g, a, x: g * (np.power(a, x) * np.log(a)),
)

# Distributions and entropies
_enter("rel_entr", "x y", a=lambda g, a, x: g * (np.log(a / x) + 1), x=lambda g, a, x: g * (-a / x))
_enter("kl_div", "x y", a=lambda g, a, x: g * np.log(a / x), x=lambda g, a, x: g * (1 - a / x))


def _t_density(df: Any, t: Any) -> Any:
    return np.exp(-(df + 1) / 2 * np.log1p(t * t / df)) * sp.poch(df / 2, 0.5) / np.sqrt(df * math.pi)


_enter("stdtr", "df t", x=lambda g, a, x: g * _t_density(a, x))
_enter("stdtrit", "df p", x=lambda g, a, x: g / _t_density(a, sp.stdtrit(a, x)))

# Orthogonal polynomials: degree and parameters are constants


def _lower(name: str, n: Any, *rest: Any) -> Any:
    """The polynomial of the degree below n; 0 where that is negative, and SciPy may give NaN."""
    n = plain(n)
    none = np.logical_and(n <= 0, np.equal(n, np.floor(n)))
    return np.where(none, 0.0, getattr(sp, name)(np.where(none, 1, n) - 1, *rest))


_enter(
    "eval_jacobi",
    "n alpha beta x",
    x=lambda g, a, b, c, x: g * ((a + b + c + 1) / 2 * _lower("eval_jacobi", a, b + 1, c + 1, x)),
)
_enter("eval_gegenbauer", "n alpha x", x=lambda g, a, b, x: g * (2 * b * _lower("eval_gegenbauer", a, b + 1, x)))
_enter("eval_genlaguerre", "n alpha x", x=lambda g, a, b, x: g * -_lower("eval_genlaguerre", a, b + 1, x))
_enter("eval_chebyt", "n x", x=lambda g, a, x: g * (np.abs(a) * sp.eval_chebyu(np.abs(a) - 1, x)))

# Compositions ---------------------------------------------------------------------------------------------------------


@constant(method=False)
def _gammasgn(x: Any) -> Any:
    """The sign of the gamma function."""
    return _value("gammasgn", FLOATS, x)


def _by_kind(name: str, real: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function of real tensors, beside SciPy's of complex ones."""
    whole = _ENTERED[f"complex_{name}"]
    return lambda x: whole(x) if x.is_complex() else real(x)


def _pseudo_huber(delta: Any, r: Any) -> Any:
    root = np.sqrt(1 + np.square(np.divide(r, delta)))
    return np.square(r) / (1 + root)


def _huber(delta: Any, r: Any) -> Any:
    size = np.absolute(r)
    return where(np.less_equal(size, delta), np.square(r) / 2, delta * (size - delta / 2))


def _inverse_box_cox(y: Any, lmbda: Any) -> Any:
    u = np.multiply(lmbda, y)  # log(1 + u) / lmbda = y log(1 + u) / u
    return y * sp.hyp2f1(1.0, 1.0, 2.0, -u)


def _legendre(n: Any, x: Any) -> Any:
    return sp.eval_jacobi(np.abs(n + 0.5) - 0.5, 0.0, 0.0, x)  # the degrees n and -n - 1 have one function


def _second_kind(n: Any, x: Any) -> Any:
    """Chebyshev's functions of the second kind: those of the degrees n and -n - 2 differ in their sign."""
    turned = np.add(n, 1)
    degree = np.where(np.equal(turned, 0), 0, np.abs(turned) - 1)
    return np.sign(turned) * sp.eval_gegenbauer(degree, 1.0, x)


_COMPOSED: dict[str, Callable[..., Any]] = {
    "gammasgn": lambda x: _gammasgn(*_floating(x)),
    "erf": _by_kind("erf", erf),
    "erfc": _by_kind("erfc", erfc),
    "erfcx": _by_kind("erfcx", erfcx),
    "wofz": lambda z: _ENTERED["complex_erfcx"](-1j * z),
    "cbrt": lambda x: np.cbrt(x),
    "radian": lambda d, m, s: np.deg2rad(d + m / 60 + s / 3600),
    "yn": lambda n, x: sp.yv(np.trunc(n), x),
    "kn": lambda n, x: sp.kv(np.trunc(n), x),
    "jve": lambda v, z: sp.jv(v, z),
    "yve": lambda v, z: sp.yv(v, z),
    "zetac": lambda x: sp._riemann_zeta(x) - 1,
    "chdtr": lambda v, x: sp.gammainc(v / 2, x / 2),
    "chdtrc": lambda v, x: sp.gammaincc(v / 2, x / 2),
    "chdtri": lambda v, p: 2 * sp.gammainccinv(v / 2, p),
    "gdtr": lambda a, b, x: sp.gammainc(b, a * x),
    "gdtrc": lambda a, b, x: sp.gammaincc(b, a * x),
    "pdtr": lambda k, m: sp.gammaincc(np.floor(k) + 1, m),
    "pdtrc": lambda k, m: sp.gammainc(np.floor(k) + 1, m),
    "boxcox": lambda x, lmbda: np.log(x) * sp.exprel(lmbda * np.log(x)),
    "boxcox1p": lambda x, lmbda: np.log1p(x) * sp.exprel(lmbda * np.log1p(x)),
    "inv_boxcox": lambda y, lmbda: np.exp(_inverse_box_cox(y, lmbda)),
    "inv_boxcox1p": lambda y, lmbda: np.expm1(_inverse_box_cox(y, lmbda)),
    "huber": _huber,
    "pseudo_huber": _pseudo_huber,
    "eval_legendre": _legendre,
    "eval_laguerre": lambda n, x: sp.eval_genlaguerre(n, 0.0, x),
    "eval_chebyu": _second_kind,
    "eval_chebys": lambda n, x: _second_kind(n, x / 2),
    "eval_sh_legendre": lambda n, x: _legendre(n, 2 * x - 1),
    "eval_sh_chebyu": lambda n, x: _second_kind(n, 2 * x - 1),
    "eval_chebyc": lambda n, x: 2 * sp.eval_chebyt(n, x / 2),
    "eval_sh_chebyt": lambda n, x: sp.eval_chebyt(n, 2 * x - 1),
    "eval_hermite": lambda n, x: hermite_polynomial_h(x, n),
    "eval_hermitenorm": lambda n, x: hermite_polynomial_he(x, n),
}
NUMPY.update({f"scipy.special.{name}": function for name, function in _COMPOSED.items()})

# Refused --------------------------------------------------------------------------------------------------------------

IN_SCIPY = frozenset(
    """
    bdtr bdtrc bdtri bei beip ber berp ellipeinc ellipkinc eval_sh_jacobi expn fdtr fdtrc fdtri gdtria gdtrix kei keip
    ker kerp modstruve nbdtr nbdtrc nbdtri nrdtrimn nrdtrisd struve wright_bessel""".split()
)
"""Ufuncs without a rule that have one in `pullback.scipy.special`."""

_REFUSED = {
    "its results are several": """
        airy airye ellipj fresnel it2i0k0 it2j0y0 itairy iti0k0 itj0y0 kelvin mathieu_cem mathieu_modcem1
        mathieu_modcem2 mathieu_modsem1 mathieu_modsem2 mathieu_sem modfresnelm modfresnelp obl_ang1 obl_ang1_cv
        obl_rad1 obl_rad1_cv obl_rad2 obl_rad2_cv pbdv pbvv pbwa pro_ang1 pro_ang1_cv pro_rad1 pro_rad1_cv pro_rad2
        pro_rad2_cv shichi sici""",
    "its derivative by a parameter has no closed form": """
        bdtr bdtrc bdtri bdtrik bdtrin btdtria btdtrib chdtriv chndtr chndtridf chndtrinc chndtrix fdtr fdtrc fdtri
        fdtridfd gdtria gdtrib gdtrix kolmogi kolmogorov nbdtr nbdtrc nbdtri nbdtrik nbdtrin ncfdtr ncfdtri ncfdtridfd
        ncfdtridfn ncfdtrinc nctdtr nctdtridf nctdtrinc nctdtrit nrdtrimn nrdtrisd pdtri pdtrik smirnov smirnovi
        stdtridf tklmbda mathieu_a mathieu_b obl_cv pro_cv""",
    "its derivative is no function of SciPy's": """
        agm bei beip ber berp besselpoly ellipeinc ellipkinc elliprc elliprd elliprf elliprg elliprj eval_sh_jacobi expn
        hankel1 hankel1e hankel2 hankel2e it2struve0 itmodstruve0 itstruve0 kei keip ker kerp log_wright_bessel lpmv
        modstruve struve voigt_profile wright_bessel""",
}
"""Ufuncs of scipy.special without a rule, by the reason."""

INSTEAD.update(
    {
        f"scipy.special.{name}": f"write pullback.scipy.special.{name}, which has one"
        if name in IN_SCIPY
        else f"write it with functions that have one ({reason})"
        for reason, names in _REFUSED.items()
        for name in names.split()
    }
)

"""The ufuncs of scipy.special: SciPy's own where Tensors have a rule, and better ones where that lacks a parameter.

`UFUNCS` are all that have a derivative here, and `CONSTANTS` the functions of counts alone, whose results are numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from ... import errors
from ...table.operands import plain
from ...tensor.protocol import INSTEAD
from ..array_nodes import elementwise, floating
from ..mirror import mirrors
from ..user_functions import plain_setting
from . import incomplete as ic


def _trials(k: Any, n: Any) -> tuple[Any, Any]:
    """The parameters of the beta distribution for k successes of n trials."""
    return np.floor(k) + 1, np.floor(n) - np.floor(k)


_NEW: dict[str, Callable[..., Any]] = {
    **{name: getattr(ic, name) for name in ic.__all__ if hasattr(sp, name)},
    "chdtr": lambda v, x: ic.gammainc(v / 2, x / 2),
    "chdtrc": lambda v, x: ic.gammaincc(v / 2, x / 2),
    "chdtri": lambda v, p: 2 * ic.gammainccinv(v / 2, p),
    "gdtr": lambda a, b, x: ic.gammainc(b, a * x),
    "gdtrc": lambda a, b, x: ic.gammaincc(b, a * x),
    "gdtria": lambda p, b, x: ic.gammaincinv(b, p) / x,
    "gdtrix": lambda a, b, p: ic.gammaincinv(b, p) / a,
    "fdtr": lambda m, n, x: ic.betainc(m / 2, n / 2, m * x / (n + m * x)),
    "fdtrc": lambda m, n, x: ic.betainc(n / 2, m / 2, n / (n + m * x)),
    "fdtri": lambda m, n, p: n / m * (1 / ic.betainccinv(n / 2, m / 2, p) - 1),
    "pdtr": lambda k, m: ic.gammaincc(np.floor(k) + 1, m),
    "pdtrc": lambda k, m: ic.gammainc(np.floor(k) + 1, m),
    "bdtr": lambda k, n, p: ic.betaincc(*_trials(k, n), p),
    "bdtrc": lambda k, n, p: ic.betainc(*_trials(k, n), p),
    "bdtri": lambda k, n, y: ic.betainccinv(*_trials(k, n), y),
    "nbdtr": lambda k, n, p: ic.betainc(np.floor(n), np.floor(k) + 1, p),
    "nbdtrc": lambda k, n, p: ic.betaincc(np.floor(n), np.floor(k) + 1, p),
    "nbdtri": lambda k, n, y: ic.betaincinv(np.floor(n), np.floor(k) + 1, y),
    "kn": lambda n, x: sp.kv(np.trunc(n), x),
    "yn": lambda n, x: sp.yv(np.trunc(n), x),
    "nrdtrimn": lambda p, std, x: x - std * sp.ndtri(p),
    "nrdtrisd": lambda mn, p, x: (x - mn) / sp.ndtri(p),
    "eval_sh_jacobi": lambda n, p, q, x: sp.eval_jacobi(n, p - q, q - 1, 2 * x - 1) / sp.binom(2 * n + p - 1, n),
}  # fmt: skip


def _new(name: str, *partials: Callable[..., Any] | None) -> Callable[..., Any]:
    _NEW[name] = elementwise(f"special.{name}", getattr(sp, name), *partials)
    return _NEW[name]


def _below(n: Any, x: Any) -> Any:
    """The exponential integral of the order below: that of order -1 by its formula."""
    first = np.exp(-x) * (1 + 1 / x) / x
    return np.where(n < 1, first, expn(np.maximum(n - 1, 0), x))


expn: Any = _new("expn", None, lambda n, x: -_below(n, x))


def _first_by_m(phi: Any, m: Any) -> Any:
    """DLMF 19.4.5; at m = 0 the limit, ``(2 phi - sin(2 phi)) / 8``."""
    zero = plain(m) == 0
    m = np.where(zero, 0.5, m)
    rest = np.sin(2 * phi) / (4 * (1 - m) * np.sqrt(1 - m * np.square(np.sin(phi))))
    found = ellipeinc(phi, m) / (2 * m * (1 - m)) - ellipkinc(phi, m) / (2 * m) - rest
    return np.where(zero, (2 * phi - np.sin(2 * phi)) / 8, found)


def _second_by_m(phi: Any, m: Any) -> Any:
    """DLMF 19.4.6."""
    zero = plain(m) == 0
    m = np.where(zero, 0.5, m)
    return np.where(zero, (np.sin(2 * phi) - 2 * phi) / 8, (ellipeinc(phi, m) - ellipkinc(phi, m)) / (2 * m))


ellipkinc: Any = _new("ellipkinc", lambda phi, m: 1 / np.sqrt(1 - m * np.square(np.sin(phi))), _first_by_m)
ellipeinc: Any = _new("ellipeinc", lambda phi, m: np.sqrt(1 - m * np.square(np.sin(phi))), _second_by_m)
eval_chebyt: Any = _new("eval_chebyt", None, lambda n, x: n * sp.eval_chebyu(n - 1, x))
eval_chebyc: Any = _new("eval_chebyc", None, lambda n, x: n * sp.eval_chebys(n - 1, x))
eval_sh_chebyt: Any = _new("eval_sh_chebyt", None, lambda n, x: 2 * n * sp.eval_sh_chebyu(n - 1, x))
struve: Any = _new("struve", None, lambda v, x: struve(v - 1, x) - v / x * struve(v, x))
modstruve: Any = _new("modstruve", None, lambda v, x: modstruve(v - 1, x) - v / x * modstruve(v, x))
wright_bessel: Any = _new("wright_bessel", None, None, lambda a, b, x: wright_bessel(a, a + b, x))
berp: Any = _new("berp", lambda x: -bei(x) - berp(x) / x)
beip: Any = _new("beip", lambda x: ber(x) - beip(x) / x)
kerp: Any = _new("kerp", lambda x: -kei(x) - kerp(x) / x)
keip: Any = _new("keip", lambda x: ker(x) - keip(x) / x)
ber: Any = _new("ber", berp)
bei: Any = _new("bei", beip)
ker: Any = _new("ker", kerp)
kei: Any = _new("kei", keip)

WITHOUT: dict[str, str] = {
    **dict.fromkeys("jv yv iv kv ive kve jve yve jn yn kn struve modstruve expn".split(), "the order"),
    **dict.fromkeys("hyp0f1 hyp1f1 hyp2f1 hyperu wright_bessel".split(), "the parameters"),
    **dict.fromkeys("pdtr pdtrc".split(), "k"),
    **dict.fromkeys("bdtr bdtrc bdtri nbdtr nbdtrc nbdtri".split(), "k and n"),
    **{name: "degree and parameters" for name in sp.__all__ if name.startswith("eval_")},
}
"""The arguments of ufuncs that are constants: an error, or for k and n steps of derivative 0."""

REFUSED = {
    name.rpartition(".")[2]: reason
    for name, reason in INSTEAD.items()
    if isinstance(name, str) and name.startswith("scipy.special.")
}
"""Why a ufunc has no rule."""


def _enter(name: str) -> Callable[..., Any]:
    """A ufunc of SciPy's for Tensors and arrays alike."""
    ufunc = getattr(sp, name)
    of_tensors = _NEW.get(name, ufunc)

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != ufunc.nin:
            raise TypeError(
                errors.message(
                    f"pullback.scipy.special.{name}",
                    expected=f"{ufunc.nin} arguments, and no out=, where= or dtype=",
                    found=f"{len(args)}" + (f", {', '.join(kwargs)}=" if kwargs else ""),
                )
            )
        return of_tensors(*map(floating, args))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"scipy.special.{name}, differentiable.\n\n{ufunc.__doc__.split(chr(10) * 2)[1].strip()}"
    call.__signature__ = _signature(ufunc)  # type: ignore[attr-defined]
    lacking = WITHOUT.get(name, "")
    return mirrors(f"special.{name}", derivative="elementwise", limits=f"{lacking} constant" if lacking else "")(call)


def arguments(ufunc: np.ufunc) -> inspect.Signature:
    """The arguments of a ufunc alone, under NumPy's names: what is known of them before NumPy 2.4."""
    names = ["x"] if ufunc.nin == 1 else [f"x{i + 1}" for i in range(ufunc.nin)]
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names])


def _signature(ufunc: np.ufunc) -> inspect.Signature:
    try:
        return inspect.signature(ufunc)
    except ValueError:
        return arguments(ufunc)


UFUNCS = {
    name: _enter(name)
    for name in sp.__all__
    if isinstance(getattr(sp, name), np.ufunc)
    and (name in _NEW or getattr(sp, name).__name__ not in REFUSED)
    and name not in ("zeta", "zetac")
}


def _constant(name: str) -> Callable[..., Any]:
    function = getattr(sp, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        words = {f"argument {i}": a for i, a in enumerate(args)}
        values = plain_setting(f"special.{name}", **words, **kwargs)
        return function(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True)))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


_OTHERS = """
legendre chebyt chebyu chebyc chebys jacobi laguerre genlaguerre hermite hermitenorm gegenbauer sh_legendre sh_chebyt
sh_chebyu sh_jacobi bernoulli euler factorial2 factorialk stirling2 mathieu_even_coef mathieu_odd_coef""".split()
CONSTANTS = {
    name: _constant(name)
    for name in sp.__all__
    if name.startswith("roots_") or name.endswith(("_zeros", "_roots")) or name in _OTHERS
}
"""Functions of counts and settings: their results are numbers, and a tensor that requires grad is refused."""

__all__ = ["CONSTANTS", "REFUSED", "UFUNCS", "WITHOUT"]

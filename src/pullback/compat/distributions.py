"""The error for a program that uses `pullback.distributions`: there are none here, and it says what to use instead."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if not name[:1].isupper():  # not a distribution, but an attribute that Python and its tools read from a module
        raise AttributeError(f"module 'pullback.distributions' has no attribute {name!r}")
    raise ImportError(
        f"pullback has no distributions, and no {name}.\n"
        "  What to do: take those of SciPy with derivatives, as pullback.scipy.stats.norm.logpdf(x, mean, std) and "
        "norm.rvs(mean, std); or draw with pullback.normal, rand, bernoulli or multinomial, and compute log "
        "probabilities with tensors, as -0.5 * ((x - mean) / std) ** 2 - std.log() of a normal distribution.",
        name="pullback.distributions",
    )

"""The default generator of random numbers, as `torch.random`: its seed and its state.

>>> import pullback
>>> state = pullback.random.get_rng_state()
>>> a = pullback.rand(3)
>>> pullback.random.set_rng_state(state)
>>> bool((pullback.rand(3) == a).all())
True
"""

from .ops.make.generators import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def __dir__() -> list[str]:
    return sorted(__all__)

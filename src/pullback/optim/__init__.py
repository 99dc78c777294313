"""Optimisers with PyTorch's names and arithmetic: what to do with the gradients once `backward` has put them there.

An optimiser reads `p.grad` and writes `p` in place, in plain NumPy, so that nothing of a step is recorded in a
graph. `pullback.optim.optimizer` holds what all of them share (parameter groups, state, saving and loading);
`pullback.optim.sgd` and `pullback.optim.adam` hold one update rule each.
"""

from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]

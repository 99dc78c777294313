"""Optimisers with PyTorch's names and arithmetic: they update parameters from the gradients that `backward` stored.

An optimiser reads `p.grad` and writes `p` in place, in plain NumPy, so that nothing of a step is recorded in a
graph. `optimizer.py` holds their common parts (parameter groups, state, hooks, saving and loading). Most are
elementwise rules, one file each: `elementwise.py` is the step they share, and `sweep.py` applies a rule to many arrays
fast. Rules that treat a parameter as a whole share `tensorwise.py`; L-BFGS treats all parameters as one vector.
"""

from types import ModuleType as _ModuleType
from typing import Any as _Any

from . import algorithms as _algorithms
from . import lr_scheduler, swa_utils
from .algorithms.adadelta import Adadelta
from .algorithms.adafactor import Adafactor
from .algorithms.adagrad import Adagrad
from .algorithms.adam import Adam, AdamW
from .algorithms.adamax import Adamax
from .algorithms.asgd import ASGD
from .algorithms.lbfgs import LBFGS
from .algorithms.muon import Muon
from .algorithms.nadam import NAdam
from .algorithms.radam import RAdam
from .algorithms.rmsprop import RMSprop
from .algorithms.rprop import Rprop
from .algorithms.sgd import SGD
from .algorithms.sparse_adam import SparseAdam
from .optimizer import Optimizer

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]


def __getattr__(name: str) -> _Any:
    """Return the module of `optim.algorithms` for a module that PyTorch has here, such as `optim.adam`."""
    found = getattr(_algorithms, name, None)
    if not isinstance(found, _ModuleType):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

"""Optimisers with PyTorch's names and arithmetic: what to do with the gradients once `backward` has put them there.

An optimiser reads `p.grad` and writes `p` in place, in plain NumPy, so that nothing of a step is recorded in a
graph. `optimizer.py` holds what all of them share (parameter groups, state, hooks, saving and loading). Most are
a rule for each element: a file each, `elementwise.py` for the step they share, and `sweep.py` for how a rule gets over
many arrays fast. Those that treat a parameter as a whole share `tensorwise.py`; L-BFGS treats all of them as one.
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
    """A module that PyTorch has here, `optim.adam` and the like, is that of `optim.algorithms`."""
    found = getattr(_algorithms, name, None)
    if not isinstance(found, _ModuleType):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

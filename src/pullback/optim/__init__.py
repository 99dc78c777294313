"""Optimisers with PyTorch's names and arithmetic: what to do with the gradients once `backward` has put them there.

An optimiser reads `p.grad` and writes `p` in place, in plain NumPy, so that nothing of a step is recorded in a
graph. `optimizer.py` holds what all of them share (parameter groups, state, hooks, saving and loading). Most are
a rule for each element: a file each, `elementwise.py` for the step they share, and `sweep.py` for how a rule gets over
many arrays fast. Those that treat a parameter as a whole share `tensorwise.py`; L-BFGS treats all of them as one.
"""

from . import lr_scheduler, swa_utils
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adamax import Adamax
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

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

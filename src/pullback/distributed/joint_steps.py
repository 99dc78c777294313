"""Steps that look at all parameters and at the loss: LBFGS over ranks.

Its directions are made of dot products over all parameters, and its line search compares losses. Where these are each
rank's own, ranks take different steps without a word. So, on several ranks, what its closure returns is looked at.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from .. import errors
from ..autograd.grad_mode import no_grad
from ..autograd.node import leaf_edge
from ..optim import LBFGS
from ..optim.optimizer import register_optimizer_step_pre_hook
from . import messages
from .board import here
from .placements import REPLICATED, kind_of
from .process_group import WORLD, Group

SUMMED: weakref.WeakKeyDictionary[Any, Group] = weakref.WeakKeyDictionary()
"""The leaf nodes of parameters whose gradients `DistributedDataParallel` sums, with its group."""


def _looked_at(optimizer: Any, args: Any, kwargs: Any) -> Any:
    """The arguments of a step of LBFGS with a closure whose losses are checked; None for other steps."""
    given = dict(zip(("self", "closure"), args, strict=False)) | kwargs
    closure = given.get("closure")
    if not isinstance(optimizer, LBFGS) or not WORLD or WORLD[0].size == 1 or not callable(closure):
        return None

    def checked() -> Any:
        loss = closure()
        with no_grad():
            _check(optimizer, loss)
        return loss

    return (optimizer, checked), {}


def _check(optimizer: LBFGS, loss: Any) -> None:
    """RuntimeError where the ranks would take different steps."""
    params = [p for options in optimizer.param_groups for p in options["params"]]
    same = {kind_of(p) == REPLICATED for p in params}
    if len(same) > 1:
        said, do = "parameters of each rank's own beside replicated ones", "give each kind an optimiser"
    elif (kind_of(loss) == REPLICATED) is not (True in same):
        if True in same:
            said = "replicated parameters, and a loss of each rank's own"
            do = "return the loss of all ranks, all_reduce(loss)"
        else:
            said = "a loss of all ranks, and parameters of each rank's own: it would take dot products over a part"
            do = (
                "distributed.replicate(p) the parameters that are the same on every rank; for parts of one whole, use "
                "an optimiser that goes element by element, such as Adam"
            )
    elif (group := SUMMED.get(leaf_edge(params[0])[0])) is not None and _differs(group, float(loss)):
        said = "losses that differ among the ranks, for parameters that DistributedDataParallel keeps the same"
        do = "return their mean: all_reduce(loss.detach(), op=ReduceOp.AVG)"
    else:
        return
    raise RuntimeError(errors.message(f"LBFGS.step() at {here()}: {said}", do=do))


def _differs(group: Group, loss: float) -> bool:
    most, least = messages.all_reduce(group, np.array([loss, -loss]), "MAX", "LBFGS.step()")
    return most != -least and not math.isnan(most + least)


register_optimizer_step_pre_hook(_looked_at)

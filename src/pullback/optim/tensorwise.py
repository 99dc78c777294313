"""The base of optimisers that treat a parameter as a whole: as a matrix, or by the rows that have a gradient.

A subclass defines `_advance`, one step of one parameter, in plain NumPy and in place. The step around it is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import message
from ..ops.sparse.coo import SparseTensor
from ..table.levels import memory_of
from ..tensor.arrays import zeros_beside
from ..tensor.memory import WRITES, next_write
from ..tensor.tensor import Tensor, wrap
from .optimizer import Group, Optimizer
from .sweep import Array


class Tensorwise(Optimizer):
    """An optimiser that goes through its parameters one by one."""

    def _check(self, p: Tensor, grad: Tensor) -> None:
        """Refuse a gradient the rule cannot use: here, a sparse or complex one."""
        who = type(self).__name__
        if p._data.dtype.kind == "c":
            raise RuntimeError(
                message(f"{who} does not support complex parameters", do="optimise the real and the imaginary part")
            )
        if isinstance(grad, SparseTensor):
            raise RuntimeError(message(f"{who} does not support sparse gradients", do="use SGD, Adagrad or SparseAdam"))

    def _advance(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        """One step for a parameter."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, and return what `closure` returned.

        `closure`, when given, is called first, with gradients enabled: it clears the gradients, computes the loss,
        calls `backward` and returns the loss.
        """
        loss = self._evaluated(closure)
        found = [
            (p, p.grad.detach(), group) for group in self.param_groups for p in group["params"] if p.grad is not None
        ]
        for p, grad, _ in found:
            self._check(p, grad)
        for p, grad, group in found:
            state = self.state[p]
            self._advance(p, grad, state, group)
            for t in (p, *state.values()):
                if isinstance(t, Tensor):
                    t._share_version().n += 1
        WRITES.n = next_write()
        return loss


def wide(x: Array) -> Array:
    """The array, in at least single precision."""
    return x if x.dtype.itemsize >= 4 else x.astype(np.float32)


def zeros_of(p: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros for the state of a parameter, in its dtype."""
    return wrap(zeros_beside(memory_of(p._data), shape))

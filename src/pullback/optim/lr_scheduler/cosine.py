"""Schedules along a cosine: one half wave after another, or restarted at the top."""

from __future__ import annotations

import math
from typing import Any

from ...errors import describe, message
from ..optimizer import Optimizer
from .scheduler import LRScheduler, values_of


class CosineAnnealingLR(LRScheduler):
    """lr = eta_min + (initial_lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2.

    So it falls to `eta_min` in epoch `T_max`, and rises again after it.

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, ICLR 2017,
    https://arxiv.org/abs/1608.03983. It is computed from the present rate, as in
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=3)
    >>> lrs = []
    >>> for _ in range(5):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> [round(lr, 3) for lr in lrs]
    [1.0, 0.75, 0.25, 0.0, 0.25]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: float) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _lrs(self) -> list[Any]:
        lrs = values_of(self.optimizer, "lr")
        if self._is_initial:
            return lrs
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the bottom there is no ratio
            rise = 1 - math.cos(math.pi / self.T_max)
            return [lr + (base - self.eta_min) * rise / 2 for lr, base in zip(lrs, self.base_lrs, strict=True)]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (lr - self.eta_min) + self.eta_min for lr in lrs]

    def _get_closed_form_lr(self) -> list[Any]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """lr = eta_min + (initial_lr - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2, T_cur epochs after the last restart.

    The first restart comes after `T_0` epochs, and each interval T_i is `T_mult` times as long as the one before.
    `step` takes an epoch, also a fraction of one, such as ``epoch + batch / batches``.

    Raises `ValueError` unless `T_0` and `T_mult` are integers of at least 1, and `eta_min` a number.

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, ICLR 2017,
    https://arxiv.org/abs/1608.03983. See also
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
    >>> lrs = []
    >>> for _ in range(5):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> [round(lr, 3) for lr in lrs]
    [1.0, 0.5, 1.0, 0.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        who = "CosineAnnealingWarmRestarts: argument"
        for name, value in {"T_0": T_0, "T_mult": T_mult}.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(message(f"{who} {name}", expected="an integer of at least 1", found=describe(value)))
        if not isinstance(eta_min, float | int):
            raise ValueError(message(f"{who} eta_min", expected="a float or an int", found=describe(eta_min)))
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _lrs(self) -> list[Any]:
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to `epoch`, which may be a fraction; `ValueError` if it is negative."""
        if epoch is not None and epoch < 0:
            raise ValueError(message("step()", expected="a non-negative epoch", found=str(epoch)))
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts
        self.last_epoch = math.floor(epoch)
        self._set_lrs(self._asked(self.get_lr))

"""A schedule that waits for the loss: it lowers the learning rate when the loss no longer improves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, SupportsFloat

from ...errors import message
from ..optimizer import Optimizer
from .scheduler import LRScheduler, PerGroup, check_optimizer, per_group, set_value, values_of, warn_of_epoch

_looks: list[Callable[[Optimizer, float], None]] = []


def look_at_metrics(look: Callable[[Optimizer, float], None]) -> None:
    """Call ``look(optimizer, metric)`` before each step: `distributed` refuses a metric that ranks have differently."""
    _looks.append(look)


class ReduceLROnPlateau(LRScheduler):
    """lr = max(lr * factor, min_lr) when a metric has not improved for more than `patience` epochs.

    An improvement is, for ``mode="min"``, a metric below ``best * (1 - threshold)``, or with ``threshold_mode="abs"``
    below ``best - threshold``; for ``mode="max"``, one above the best by as much. After a reduction, `cooldown` epochs
    are not counted. A change of at most `eps` is not made.

    Raises `ValueError` if `factor` is not below 1, for another `mode` or `threshold_mode`, or if `min_lr` does not have
    one value for each group.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
    >>> lrs = []
    >>> for loss in [3.0, 2.0, 2.0, 2.0, 1.0]:
    ...     opt.step()
    ...     scheduler.step(loss)
    ...     lrs += scheduler.get_last_lr()
    >>> lrs
    [1.0, 1.0, 1.0, 0.5, 0.5]
    """

    _per_group = ()  # `step` makes them fit
    _optional = ("default_min_lr",)

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: PerGroup = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(
                message("ReduceLROnPlateau: argument factor", expected="a number below 1", found=str(factor))
            )
        check_optimizer(self, optimizer)
        for name, value, known in (("mode", mode, ("min", "max")), ("threshold_mode", threshold_mode, ("rel", "abs"))):
            if value not in known:
                raise ValueError(
                    message(f"ReduceLROnPlateau: argument {name}", expected=" or ".join(known), found=repr(value))
                )
        self.min_lrs = per_group("ReduceLROnPlateau", "min_lr", min_lr, optimizer)
        self.default_min_lr = None if isinstance(min_lr, Sequence) else min_lr
        self.optimizer = optimizer
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = 0
        self._last_lr = values_of(optimizer, "lr")

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted at present, after a reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record this epoch's metric (a number or a tensor of one element), and lower the rate if it is time."""
        current = float(metrics)
        for look in _looks:
            look(self.optimizer, current)
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _is_better(self, current: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            return sign * current < sign * self.best * (1 - sign * self.threshold)
        return sign * current < sign * self.best - self.threshold

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    message(
                        "ReduceLROnPlateau",
                        expected=f"as many groups as min_lrs: {len(self.min_lrs)}",
                        found=f"{len(groups)} param groups",
                        do="when a group is added to the optimiser, add its value to `min_lrs`",
                    )
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, min_lr in zip(groups, self.min_lrs, strict=True):
            lr = float(group["lr"])
            reduced = max(lr * self.factor, min_lr)
            if lr - reduced > self.eps:
                set_value(group, "lr", reduced)

    def _lrs(self) -> list[Any]:
        return self._last_lr

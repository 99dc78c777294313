"""A learning-rate schedule for a training whose last part is averaged."""

from __future__ import annotations

import math
from typing import Any

from ...errors import message
from ..lr_scheduler.scheduler import LRScheduler, PerGroup, per_group
from ..optimizer import Optimizer


class SWALR(LRScheduler):
    """From the present learning rate to `swa_lr` in `anneal_epochs` steps, and constant from then on.

    `anneal_strategy` is the curve between them: "cos" or "linear". `swa_lr` is one value, or one for each group.

    Raises `ValueError` for another `anneal_strategy`, or if `anneal_epochs` is not an integer of at least 0.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.swa_utils.SWALR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.swa_utils.SWALR(opt, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> lrs = []
    >>> for _ in range(4):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: PerGroup,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                message("SWALR: argument anneal_strategy", expected="'cos' or 'linear'", found=repr(anneal_strategy))
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                message("SWALR: argument anneal_epochs", expected="an integer of at least 0", found=str(anneal_epochs))
            )
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        for group, rate in zip(optimizer.param_groups, per_group("SWALR", "swa_lr", swa_lr, optimizer), strict=True):
            group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _way(self, step: int) -> float:
        """The fraction of the curve, from 0 to 1, that is done at a step."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * part)) / 2 if self._anneal_strategy == "cos" else part

    def _lrs(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._way(step - 1), self._way(step)
        lrs = []
        for group in self.optimizer.param_groups:
            # The rate lies between swa_lr and the initial rate, which is computed back from it.
            swa_lr = group["swa_lr"]
            initial = swa_lr if before == 1 else (group["lr"] - before * swa_lr) / (1 - before)
            lrs.append(swa_lr * now + initial * (1 - now))
        return lrs

"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ...errors import describe, message
from ..optimizer import Optimizer
from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler, set_value, values_of


class _Composed(LRScheduler):
    """A schedule that delegates to other schedules."""

    _schedulers: Sequence[LRScheduler]

    def _checked(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> Optimizer:
        """The optimiser that the schedules have in common."""
        who = type(self).__name__
        if not schedulers:
            raise ValueError(message(who, expected="at least one scheduler", found="none"))
        for i, scheduler in enumerate(schedulers):
            where = f"{who}: schedulers[{i}]"
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(message(where, expected="a scheduler, with an optimizer", found=describe(scheduler)))
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    message(
                        where,
                        expected="a scheduler whose step() needs no arguments",
                        found="ReduceLROnPlateau",
                        do="step it for itself",
                    )
                )
            optimizer = optimizer or scheduler.optimizer
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    message(
                        where,
                        expected=f"the same optimizer for all, a {type(optimizer).__name__}",
                        found=f"a {type(scheduler).__name__} of a different {type(scheduler.optimizer).__name__}",
                    )
                )
        assert optimizer is not None
        return optimizer

    def state_dict(self) -> dict[str, Any]:
        """As in `LRScheduler`, with the states of the inner schedules."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As in `LRScheduler`, with the states of the inner schedules."""
        self._check_state(state_dict)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)
        vars(self).update({key: value for key, value in state_dict.items() if key != "_schedulers"})

    def _check_state(self, state: Any) -> None:
        super()._check_state(state)
        inner = self._part(state, "_schedulers")
        if len(inner) != len(self._schedulers):
            raise ValueError(
                message(
                    f"{type(self).__name__}.load_state_dict()",
                    expected=f"the states of {len(self._schedulers)} schedulers",
                    found=str(len(inner)),
                )
            )
        for scheduler, one in zip(self._schedulers, inner, strict=True):
            scheduler._check_state(one)


class SequentialLR(_Composed):
    """One schedule after the other: ``schedulers[i + 1]`` starts from its beginning at epoch ``milestones[i]``.

    Raises `ValueError` unless there is one schedule more than milestones, and all belong to `optimizer`, or if one is a
    `ReduceLROnPlateau`; `TypeError` for anything but schedules; `NotImplementedError` for a schedule made of others,
    unless it is the first.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.SequentialLR.html.

    >>> import pullback
    >>> from pullback.optim import lr_scheduler
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> warm_up = lr_scheduler.ConstantLR(opt, factor=0.25, total_iters=2)
    >>> decay = lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> scheduler = lr_scheduler.SequentialLR(opt, [warm_up, decay], milestones=[2])
    >>> lrs = []
    >>> for _ in range(5):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [0.25, 0.25, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._checked(schedulers, optimizer)
        for i, scheduler in enumerate(schedulers[1:], 1):
            if isinstance(scheduler, _Composed):
                raise NotImplementedError(
                    message(
                        f"SequentialLR: schedulers[{i}]",
                        expected="a schedule that can be set to its beginning",
                        found=f"a {type(scheduler).__name__}",
                        do="give the schedules of a SequentialLR one by one, with their milestones",
                    )
                )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                message(
                    "SequentialLR",
                    expected="one scheduler more than milestones",
                    found=f"{len(schedulers)} schedulers and {len(milestones)} milestones",
                )
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule set its first learning rate when it was made; only the first schedule's counts.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take back one step of the schedules in `sched`, or in this one."""
        scheduler = self if sched is None else sched
        if isinstance(scheduler, _Composed):
            for one in scheduler._schedulers:
                self.recursive_undo(one)
        else:
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """All schedules at once: each changes the current learning rate.

    Raises `ValueError` for no schedule, schedules of different optimisers, or a `ReduceLROnPlateau`; `TypeError` for
    anything but schedules.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ChainedScheduler.html.

    >>> import pullback
    >>> from pullback.optim import lr_scheduler
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> warm_up = lr_scheduler.ConstantLR(opt, factor=0.25, total_iters=2)
    >>> decay = lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> scheduler = lr_scheduler.ChainedScheduler([warm_up, decay])
    >>> lrs = []
    >>> for _ in range(4):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [0.25, 0.125, 0.25, 0.125]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.optimizer = self._checked(schedulers, optimizer)
        self._schedulers = schedulers
        self._last_lr = values_of(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values_of(self.optimizer, "lr")

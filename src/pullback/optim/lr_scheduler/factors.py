"""Schedules that multiply the learning rate by a factor in each epoch."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...errors import describe, message
from ..optimizer import Optimizer
from .scheduler import LRScheduler, check_function, per_group, saved_function, values_of

Lambda = Callable[[int], float]


class _Factor(LRScheduler):
    """A schedule with one factor for all groups: `_factor` from one epoch to the next, `_product` since the start."""

    def _factor(self) -> float:
        raise NotImplementedError

    def _product(self) -> float:
        raise NotImplementedError

    def _lrs(self) -> list[Any]:
        factor = self._factor()
        return [lr * factor for lr in values_of(self.optimizer, "lr")]

    def _get_closed_form_lr(self) -> list[Any]:
        product = self._product()
        return [lr * product for lr in self.base_lrs]


class StepLR(_Factor):
    """lr = initial_lr * gamma ** (epoch // step_size).

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.StepLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    >>> lrs = []
    >>> for _ in range(5):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0

    def _product(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_Factor):
    """lr = initial_lr * gamma ** n, with the number n of milestones up to the epoch.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.MultiStepLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.MultiStepLR(opt, milestones=[1, 4], gamma=0.5)
    >>> lrs = []
    >>> for _ in range(5):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [1.0, 0.5, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = dict(Counter(milestones))
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma ** self.milestones.get(self.last_epoch, 0)

    def _product(self) -> float:
        return self.gamma ** bisect_right(sorted(Counter(self.milestones).elements()), self.last_epoch)


class ConstantLR(_Factor):
    """lr = initial_lr * factor before epoch `total_iters`, and initial_lr from then on.

    Raises `ValueError` if `factor` is not in [0, 1].

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ConstantLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.ConstantLR(opt, factor=0.5, total_iters=3)
    >>> lrs = []
    >>> for _ in range(5):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [0.5, 0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        _check_factor("ConstantLR", "factor", factor, 0 <= factor <= 1, "a number in [0, 1]")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def _product(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(_Factor):
    """lr = initial_lr times a factor that goes from `start_factor` to `end_factor` in `total_iters` equal steps.

    Raises `ValueError` if `start_factor` is not in (0, 1] or `end_factor` not in [0, 1].

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LinearLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.LinearLR(opt, start_factor=0.5, total_iters=2)
    >>> lrs = []
    >>> for _ in range(4):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        _check_factor("LinearLR", "start_factor", start_factor, 0 < start_factor <= 1, "a number in (0, 1]")
        _check_factor("LinearLR", "end_factor", end_factor, 0 <= end_factor <= 1, "a number in [0, 1]")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        span = self.end_factor - self.start_factor
        return 1.0 + span / (self.total_iters * self.start_factor + (self.last_epoch - 1) * span)

    def _product(self) -> float:
        span = self.end_factor - self.start_factor
        return self.start_factor + span * min(self.total_iters, self.last_epoch) / self.total_iters


class ExponentialLR(_Factor):
    """lr = initial_lr * gamma ** epoch.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ExponentialLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> lrs = []
    >>> for _ in range(4):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _product(self) -> float:
        return self.gamma**self.last_epoch


class PolynomialLR(_Factor):
    """lr = initial_lr * (1 - epoch / total_iters) ** power, and 0 from epoch `total_iters` on.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.PolynomialLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.PolynomialLR(opt, total_iters=4, power=1.0)
    >>> lrs = []
    >>> for _ in range(5):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        now, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return (now / before) ** self.power

    def _product(self) -> float:
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class _Lambdas(LRScheduler):
    """A schedule that is a function of the epoch for each group."""

    _per_group = ("base_lrs", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Lambda | Sequence[Lambda], last_epoch: int = -1) -> None:
        who = type(self).__name__
        self.lr_lambdas: list[Lambda] = per_group(who, "lr_lambda", lr_lambda, optimizer)
        for one in self.lr_lambdas:
            if not callable(one):
                raise TypeError(
                    message(f"{who}: argument lr_lambda", expected="a function of the epoch", found=describe(one))
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """As in `LRScheduler`; only functions that are callable objects have their attributes saved."""
        return {**super().state_dict(), "lr_lambdas": [saved_function(one) for one in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As in `LRScheduler`; the functions stay, and callable objects take over their attributes."""
        self._check_state(state_dict)
        vars(self).update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for one, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                vars(one).update(saved)

    def _check_state(self, state: Any) -> None:
        super()._check_state(state)
        for i, (one, saved) in enumerate(zip(self.lr_lambdas, self._part(state, "lr_lambdas"), strict=True)):
            check_function(f"{type(self).__name__}.load_state_dict(): lr_lambdas[{i}]", one, saved)


class LambdaLR(_Lambdas):
    """lr = initial_lr * lr_lambda(epoch), with one function for all groups or a list of one for each.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LambdaLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 1 / (1 + epoch))
    >>> lrs = []
    >>> for _ in range(3):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> [round(lr, 3) for lr in lrs]
    [1.0, 0.5, 0.333]
    """

    def _lrs(self) -> list[Any]:
        return [lr * one(self.last_epoch) for lr, one in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_Lambdas):
    """lr = lr * lr_lambda(epoch) in each epoch after the first, with one function for all groups or one for each.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.MultiplicativeLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pullback.optim.lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5)
    >>> lrs = []
    >>> for _ in range(3):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [1.0, 0.5, 0.25]
    """

    def _lrs(self) -> list[Any]:
        lrs = values_of(self.optimizer, "lr")
        if self._is_initial:
            return lrs
        return [lr * one(self.last_epoch) for lr, one in zip(lrs, self.lr_lambdas, strict=True)]


def _check_factor(who: str, name: str, value: float, holds: bool, expected: str) -> None:
    if not holds:
        raise ValueError(message(f"{who}: argument {name}", expected=expected, found=str(value)))

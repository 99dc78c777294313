"""Schedules that let the learning rate rise and fall, and the momentum fall and rise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import describe, message
from ..optimizer import Group, Optimizer
from .scheduler import LRScheduler, PerGroup, check_function, check_optimizer, per_group, saved_function, set_value


class _Cycle(LRScheduler):
    """A schedule that may also change the momentum."""

    cycle_momentum: bool
    use_beta1: bool

    _per_group = ("base_lrs", "max_lrs", "base_momentums", "max_momentums")

    def _begin_momentum(
        self, optimizer: Optimizer, base: PerGroup, most: PerGroup, fresh: bool
    ) -> tuple[list[float], list[float]]:
        """Store the bounds of each group's momentum; with `fresh` it begins at the upper one."""
        who = type(self).__name__
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                message(
                    f"{who}: argument cycle_momentum",
                    expected="an optimizer that has a momentum or betas",
                    found=type(optimizer).__name__,
                    do="pass cycle_momentum=False",
                )
            )
        self.use_beta1 = "betas" in optimizer.defaults
        lowest = per_group(who, "base_momentum", base, optimizer)
        highest = per_group(who, "max_momentum", most, optimizer)
        if fresh:
            for low, high, group in zip(lowest, highest, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return lowest, highest

    def _set_momentum(self, group: Group, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_Cycle):
    """lr = base_lr + (max_lr - base_lr) * height * scale_fn(cycle), along triangles: a cyclical learning rate.

    The height rises from 0 to 1 in `step_size_up` steps, and falls again in `step_size_down` (as many, unless given).
    `mode` says how the triangles shrink: not at all ("triangular"), to one half each ("triangular2"), or by `gamma` in
    each step ("exp_range"). A `scale_fn` replaces `mode`: a function of the cycle, counted from 1, or with
    ``scale_mode="iterations"`` of the step. With `cycle_momentum` the momentum, or the first of Adam's betas, moves
    from `max_momentum` to `base_momentum` and back. Step it after every batch.

    Raises `ValueError` for another `mode` without a `scale_fn`; for lists whose length is not the number of groups; or
    if the momentum is to be cycled and the optimiser has none.

    Source: Smith, Cyclical learning rates for training neural networks, WACV 2017, https://arxiv.org/abs/1506.01186.
    See also https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CyclicLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.CyclicLR(opt, base_lr=0.0, max_lr=1.0, step_size_up=2)
    >>> lrs = []
    >>> for _ in range(6):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: PerGroup,
        max_lr: PerGroup,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: PerGroup = 0.8,
        max_momentum: PerGroup = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                message(
                    "CyclicLR: argument mode",
                    expected="'triangular', 'triangular2' or 'exp_range', or a scale_fn",
                    found=repr(mode),
                )
            )
        base_lrs = per_group("CyclicLR", "base_lr", base_lr, optimizer)
        self.max_lrs = per_group("CyclicLR", "max_lr", max_lr, optimizer)
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin_momentum(
                optimizer, base_momentum, max_momentum, fresh=last_epoch == -1
            )
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of the triangle in cycle, or step, number `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return float(self.gamma**x)
        return 1.0 if self.mode == "triangular" else 1 / 2.0 ** (x - 1)

    def _lrs(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momenta = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in momenta:
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """As in `LRScheduler`; only a `scale_fn` that is a callable object has its attributes saved."""
        return {**super().state_dict(), "_scale_fn_custom": saved_function(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As in `LRScheduler`; the `scale_fn` stays, and a callable object takes over its attributes."""
        self._check_state(state_dict)
        vars(self).update({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])

    def _check_state(self, state: Any) -> None:
        super()._check_state(state)
        saved = self._part(state, "_scale_fn_custom")
        check_function("CyclicLR.load_state_dict(): _scale_fn_custom", self._scale_fn_custom, saved)


class OneCycleLR(_Cycle):
    """From max_lr / div_factor up to max_lr, then far below the start: the 1cycle policy over a whole training.

    The number of steps is `total_steps`, or `epochs` * `steps_per_epoch`. In the first part, `pct_start` of them, the
    rate rises to `max_lr`; in the rest it falls to the initial rate / `final_div_factor`. With `three_phase` it first
    falls back to the initial rate, in as many steps as it rose. `anneal_strategy` is the curve between two rates: "cos"
    or "linear". With `cycle_momentum` the momentum, or the first of Adam's betas, moves from `max_momentum` to
    `base_momentum` and back. Step it after every batch.

    Raises `ValueError` if the number of steps is not given or not positive, `pct_start` is not a float in [0, 1],
    `anneal_strategy` is unknown, or the optimiser has no momentum to cycle; and for one step too many.

    Source: Smith and Topin, Super-convergence: very fast training of neural networks using large learning rates, 2017,
    https://arxiv.org/abs/1708.07120. See also
    https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html.

    >>> import pullback
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=6, pct_start=0.5, div_factor=4)
    >>> lrs = []
    >>> for _ in range(5):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> [round(lr, 3) for lr in lrs]
    [0.25, 0.625, 1.0, 0.75, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: PerGroup,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: PerGroup = 0.85,
        max_momentum: PerGroup = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(
                message("OneCycleLR: argument pct_start", expected="a float in [0, 1]", found=describe(pct_start))
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                message(
                    "OneCycleLR: argument anneal_strategy", expected="'cos' or 'linear'", found=repr(anneal_strategy)
                )
            )
        self.pct_start, self.three_phase, self._anneal_func_type = pct_start, three_phase, anneal_strategy
        max_lrs = per_group("OneCycleLR", "max_lr", max_lr, optimizer)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, fresh=last_epoch == -1)
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"], group["max_lr"] = most / div_factor, most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def _phases(self) -> list[tuple[float, str, str, str, str]]:
        """The phases: the last step of each, and the names of the values between which rate and momentum move."""
        rise = self.pct_start * self.total_steps
        up = (rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        end = self.total_steps - 1
        if not self.three_phase:
            return [up, (end, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        down = (2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        return [up, down, (end, "initial_lr", "min_lr", "max_momentum", "max_momentum")]

    def _between(self, start: float, end: float, part: float) -> float:
        """The value at the fraction `part`, from 0 to 1, of the curve."""
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _lrs(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                message("OneCycleLR.step()", expected=f"{self.total_steps} steps in total", found=f"step number {step}")
            )
        phases = self._phases()
        i = next((i for i, (end, *_) in enumerate(phases) if step <= end), len(phases) - 1)
        begin = phases[i - 1][0] if i else 0.0
        end, first_lr, last_lr, first_momentum, last_momentum = phases[i]
        part = (step - begin) / (end - begin)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._set_momentum(group, self._between(group[first_momentum], group[last_momentum], part))
        return [self._between(group[first_lr], group[last_lr], part) for group in groups]


def _total_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    """The number of steps of a training, given in one of two ways."""
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError(
            message("OneCycleLR", expected="total_steps, or both epochs and steps_per_epoch", found="neither")
        )
    given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    if total_steps is not None:
        given = {"total_steps": total_steps}
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(
                message(f"OneCycleLR: argument {name}", expected="a positive integer", found=describe(value))
            )
    return math.prod(given.values())

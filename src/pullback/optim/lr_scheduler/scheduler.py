"""The base of all learning-rate schedules: the epoch, the order of steps, saving and loading."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any, ClassVar

from ... import errors
from ...errors import describe, message
from ...tensor.modes import within
from ...tensor.tensor import Tensor
from ..optimizer import Group, Optimizer
from ..options import number

PerGroup = float | Sequence[float]
"""One value for all groups, or one for each."""

_KINDS: dict[Any, str] = {Number: "a number", str: "a str", (list, tuple): "a list", Mapping: "a dict"}
"""The kinds of attributes, which a saved state may not change, in words."""


class LRScheduler:
    """The base class of all schedules: a subclass defines `get_lr`, the learning rates of the groups at `last_epoch`.

    `last_epoch` counts calls of `step`, from 0; given as an argument, it is the epoch at which an interrupted training
    resumes. Then the groups must have an `"initial_lr"`, as they do if the optimiser's state was saved with a schedule.
    `base_lrs` are these initial rates.

    Raises `TypeError` for something that is not an optimiser; `KeyError` for groups without `"initial_lr"`.

    See https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate.

    >>> import pullback
    >>> class Halved(pullback.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base_lr / 2**self.last_epoch for base_lr in self.base_lrs]
    >>> opt = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = Halved(opt)
    >>> lrs = []
    >>> for _ in range(3):
    ...     lrs += scheduler.get_last_lr()
    ...     opt.step()
    ...     scheduler.step()
    >>> lrs
    [1.0, 0.5, 0.25]
    """

    _per_group: ClassVar[tuple[str, ...]] = ("base_lrs",)
    """The attributes that are lists of a value for each group."""
    _optional: ClassVar[tuple[str, ...]] = ()
    """The attributes that may be None."""

    optimizer: Optimizer
    last_epoch: int
    base_lrs: list[Any]
    _last_lr: list[Any]
    _step_count = 0
    _get_lr_called_within_step = False
    _is_initial = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("pullback."):
            errors.named_constructor(cls)
            errors.doors(cls, " ".join({"step", "load_state_dict"} & {*vars(cls)}))

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(self, optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch != -1 and "initial_lr" not in group:
                raise KeyError(
                    message(
                        f"{type(self).__name__}: param_groups[{i}]",
                        expected=f"'initial_lr', because last_epoch is {last_epoch}",
                        found=f"the keys {list(group)}",
                        do="load the optimiser's saved state first; for a new training leave last_epoch out",
                    )
                )
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", copied(group["lr"]))
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        if optimizer._stepped is None:
            optimizer._stepped = False
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the learning rates of the first epoch."""
        self._step_count = 0
        within(self, {"_is_initial": True}, self.step)

    def get_last_lr(self) -> list[Any]:
        """The learning rate of each group that this schedule set last."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rates at `last_epoch`; called by `step` alone: most schedules change the current rates."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                stacklevel=errors.callers_level(),
            )
        return self._lrs()

    def _lrs(self) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch and set its learning rates; call it after the optimiser's `step`.

        An `epoch` to go to is deprecated, as in PyTorch.
        """
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first learning rate of the "
                "schedule is skipped.\n  What to do: call `optimizer.step()` before `lr_scheduler.step()`.",
                stacklevel=errors.callers_level(),
            )
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch, or of `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set_lrs(self._asked(self.get_lr if closed_form is None else closed_form))

    def _asked(self, rates: Callable[[], list[Any]]) -> list[Any]:
        """The rates of the epoch, asked for by `step`."""
        return within(self, {"_get_lr_called_within_step": True}, rates)

    def _set_lrs(self, lrs: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, lrs, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimiser, which is saved separately. Of functions, only callable objects are kept."""
        return {key: value for key, value in vars(self).items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned. The groups' learning rates come with the optimiser's own state.

        Raises `TypeError` for anything but a dict, and for a value of another kind than the present one; `KeyError` and
        `ValueError` for a state that is not of such a schedule, of as many groups. Nothing has changed then.
        """
        self._check_state(state_dict)
        vars(self).update(state_dict)

    def _check_state(self, state: Any) -> None:
        """Refuse a state that this schedule cannot go on from, before any of it is taken over."""
        who = f"{type(self).__name__}.load_state_dict()"
        if not isinstance(state, Mapping):
            raise TypeError(message(who, expected="the dict that state_dict() returned", found=describe(state)))
        for name, value in state.items():
            present = vars(self).get(name)
            kind = next((kind for kind in _KINDS if isinstance(present, kind)), None)
            if kind is None or (value is None and name in self._optional):
                continue
            fits = isinstance(value, kind) or (kind is Number and isinstance(value, Tensor))
            if not fits:
                raise TypeError(message(f"{who}: {name}", expected=_KINDS[kind], found=describe(value)))
            if name in self._per_group and len(value) != len(self.optimizer.param_groups):
                raise ValueError(
                    message(
                        f"{who}: {name}",
                        expected=f"a value for each of the {len(self.optimizer.param_groups)} groups",
                        found=str(value),
                        do="build the schedule for an optimiser with the same groups as the saved one",
                    )
                )

    def _part(self, state: Any, name: str) -> Any:
        """An entry that the state of this schedule always has."""
        if name not in state:
            found = f"the keys {list(state)}"
            raise KeyError(message(f"{type(self).__name__}.load_state_dict()", expected=f"{name!r}", found=found))
        return state[name]


class _LRScheduler(LRScheduler):
    """The deprecated name of `LRScheduler`."""


def check_optimizer(scheduler: LRScheduler, optimizer: Any) -> None:
    """Refuse anything but an optimiser."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            message(
                f"{type(scheduler).__name__}: argument optimizer",
                expected="an Optimizer",
                found=describe(optimizer) + ", which is not an Optimizer",
            )
        )


def warn_of_epoch() -> None:
    """Warn the caller of a schedule's `step`."""
    warnings.warn(
        "The epoch parameter in `scheduler.step()` is deprecated: the closed form is used then, where there is one.\n"
        "  What to do: call `scheduler.step()`.",
        stacklevel=errors.callers_level(),
    )


def copied(value: Any) -> Any:
    """A copy of a learning rate: a tensor would be overwritten in place."""
    return value.clone() if isinstance(value, Tensor) else value


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """The value of each group under `key`."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_value(group: Group, key: str, value: Any) -> None:
    """Set ``group[key]``, in place if it is a tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(number(value))
    else:
        group[key] = value


def per_group(who: str, name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """An argument as a list with a value for each group; it may be one value for all."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        value = [value] * groups
    if len(value) != groups:
        raise ValueError(
            message(
                f"{who}: argument {name}",
                expected=f"one value, or one for each of the {groups} groups",
                found=str(value),
            )
        )
    return [copied(one) for one in value]


def check_function(who: str, function: Any, saved: Any) -> None:
    """Refuse what `saved_function` cannot have returned for this function."""
    if saved is not None and not (isinstance(saved, Mapping) and hasattr(function, "__dict__")):
        expected = "None or a dict" if hasattr(function, "__dict__") else "None"
        raise TypeError(message(who, expected=f"{expected} for {describe(function)}", found=describe(saved)))


def saved_function(function: Callable[..., Any] | None) -> dict[str, Any] | None:
    """The part of a schedule's function that can be saved: the attributes of a callable object, None for a function."""
    return None if function is None or isinstance(function, types.FunctionType) else dict(vars(function))


errors.doors(globals(), "LRScheduler")
errors.doors(LRScheduler, "step load_state_dict")

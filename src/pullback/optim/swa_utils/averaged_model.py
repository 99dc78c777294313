"""Averages of a model's parameters over a training, and batch norm statistics for the averaged model.

Source: Izmailov et al., Averaging weights leads to wider optima and better generalization, UAI 2018,
https://arxiv.org/abs/1803.05407. See also https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema.
"""

from __future__ import annotations

import copy
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ... import errors
from ...autograd.grad_mode import no_grad
from ...errors import message
from ...nn import Module
from ...nn.layers.normalization import _BatchNorm
from ...tensor.dtypes import check_device
from ...tensor.modes import ending
from ...tensor.tensor import Tensor, wrap

AvgFn = Callable[[Tensor, Tensor, Any], Tensor]
MultiAvgFn = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> AvgFn:
    """``decay * average + (1 - decay) * current``: an exponential moving average, for `AveragedModel`.

    Raises `ValueError` if `decay` is not in [0, 1].

    >>> import pullback
    >>> pullback.optim.swa_utils.get_ema_avg_fn(0.75)(pullback.ones(1), pullback.zeros(1), 3)
    tensor([0.7500])
    """
    return functools.partial(_ema, _checked_decay("get_ema_avg_fn", decay))


def get_swa_avg_fn() -> AvgFn:
    """``average + (current - average) / (n + 1)``: the mean of all models, for `AveragedModel`; its default.

    >>> import pullback
    >>> pullback.optim.swa_utils.get_swa_avg_fn()(pullback.ones(1), pullback.zeros(1), 3)
    tensor([0.7500])
    """
    return _swa


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAvgFn:
    """As `get_ema_avg_fn`, for lists of tensors, in place.

    >>> import pullback
    >>> averages = [pullback.ones(1), pullback.ones(2)]
    >>> pullback.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [pullback.zeros(1), pullback.ones(2)], 3)
    >>> averages
    [tensor([0.7500]), tensor([1., 1.])]
    """
    return functools.partial(_each, get_ema_avg_fn(_checked_decay("get_ema_multi_avg_fn", decay)))


def get_swa_multi_avg_fn() -> MultiAvgFn:
    """As `get_swa_avg_fn`, for lists of tensors, in place.

    >>> import pullback
    >>> averages = [pullback.ones(1), pullback.ones(2)]
    >>> pullback.optim.swa_utils.get_swa_multi_avg_fn()(averages, [pullback.zeros(1), pullback.ones(2)], 3)
    >>> averages
    [tensor([0.7500]), tensor([1., 1.])]
    """
    return functools.partial(_each, _swa)


def _checked_decay(who: str, decay: float) -> float:
    if not 0 <= decay <= 1:
        raise ValueError(message(f"{who}(): argument decay", expected="a number in [0, 1]", found=str(decay)))
    return decay


@no_grad()
def _ema(decay: float, averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
    return decay * averaged + (1 - decay) * current


@no_grad()
def _swa(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
    return averaged + (current - averaged) / (num_averaged + 1)


@no_grad()
def _each(avg_fn: AvgFn, averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any) -> None:
    for old, new in zip(averaged, current, strict=True):
        old.copy_(avg_fn(old, new, num_averaged))


def _pairs(own: Iterable[Tensor], others: Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return [(mine.detach(), other.detach()) for mine, other in zip(own, others, strict=True)]


class AveragedModel(Module):
    """A copy of a model with averaged parameters: averaged over the calls of `update_parameters`.

    The average is the mean, or what ``avg_fn(averaged, current, n_averaged)`` returns for a parameter, or what
    ``multi_avg_fn(averaged, current, n_averaged)`` does in place to lists of tensors of one dtype. With `use_buffers`
    the buffers are averaged as well; otherwise they are copied from the model. The first update copies the model.
    Called as a function, it calls the copy, `module`.

    Raises `AssertionError` for both an `avg_fn` and a `multi_avg_fn`.

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.swa_utils.AveragedModel.html.

    >>> import pullback
    >>> model = pullback.nn.ParameterDict({"w": pullback.zeros(2)})
    >>> averaged = pullback.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     model["w"].data.fill_(value)
    ...     averaged.update_parameters(model)
    tensor([1., 1.])
    tensor([2., 2.])
    tensor([6., 6.])
    >>> averaged.module["w"]
    Parameter containing:
    tensor([3., 3.], requires_grad=True)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: AvgFn | None = None,
        multi_avg_fn: MultiAvgFn | None = None,
        use_buffers: bool = False,
    ) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError(message("AveragedModel", expected="one of avg_fn and multi_avg_fn", found="both"))
        check_device(device)
        super().__init__()
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", wrap(np.zeros((), np.int64)))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The output of the copy of the model, which has the averages."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Add the present parameters of `model` to the averages."""
        pairs = _pairs(self.module.parameters(), model.parameters())
        buffers = _pairs(self.module.buffers(), model.buffers())
        if self.use_buffers:
            pairs, buffers = pairs + buffers, []
        n = int(self.n_averaged.item())
        by_dtype: defaultdict[Any, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for pair in pairs if n else ():
            by_dtype[pair[0].dtype].append(pair)
        average = self.multi_avg_fn or functools.partial(_each, self.avg_fn or _swa)
        for group in by_dtype.values():
            average([own for own, _ in group], [other for _, other in group], self.n_averaged)
        for own, other in buffers if n else pairs + buffers:
            own.copy_(other)
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch norms of a model in one pass over some batches.

    An `AveragedModel` needs this: no batch ran through its parameters. `loader` yields the model's input, or a tuple or
    list that begins with it. The statistics are the plain means over the batches, whatever the momentum of a layer.

    >>> import pullback
    >>> norm = pullback.nn.BatchNorm1d(1)
    >>> update_bn([pullback.tensor([[1.0], [3.0]]), pullback.tensor([[5.0], [7.0]])], norm)
    >>> norm.running_mean, norm.momentum
    (tensor([4.]), 0.1)
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta, was_training = [norm.momentum for norm in norms], model.training

    def recompute() -> None:
        model.train()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))

    def put_back() -> None:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)

    ending(put_back, recompute)


errors.doors(globals(), "get_ema_avg_fn get_ema_multi_avg_fn update_bn")
errors.doors(AveragedModel, "update_parameters")

"""Adam and AdamW: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

import math

import numpy as np

from .._dtypes import default
from .._tensor import Tensor, wrap
from ..errors import describe, message
from .optimizer import Group, Optimizer, Params, check_options


class Adam(Optimizer):
    """Adam: adaptive moment estimation.

    From the gradient g (-g with `maximize`), step number t computes

        d = g + weight_decay * p m = beta1 * m + (1 - beta1) * d v = beta2 * v + (1 - beta2) * d ** 2 p = p - lr * (m
        / (1 - beta1 ** t)) / (sqrt(v / (1 - beta2 ** t)) + eps)

    in place. `amsgrad` puts the largest v so far under the root. `decoupled_weight_decay` takes d = g and shrinks p by
    1 - lr * weight_decay first (`AdamW`). A complex parameter is treated as the pair of its real and imaginary parts.
    `foreach`, `capturable` and `fused` choose among PyTorch's implementations of this formula; they are accepted, and
    make no difference here.

    State: `step` (t, a 0-d tensor), `exp_avg` (m), `exp_avg_sq` (v) and, with `amsgrad`, `max_exp_avg_sq`, each like p.

    Raises `ValueError` if `lr`, `eps` or `weight_decay` is negative, or if `betas` are not two floats (or two
    one-element tensors) in [0, 1); `NotImplementedError` for `differentiable=True`.

    Source: Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015, https://arxiv.org/abs/1412.6980;
    AMSGrad: Reddi et al., ICLR 2018, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x  # the first step is lr long, whatever the gradient's size
    tensor([ 2.5000, -3.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        who = type(self).__name__
        check_options(who, lr, foreach, differentiable, fused, eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": _checked_betas(who, betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _update(self, p: Tensor, grad: np.ndarray, group: Group) -> None:
        state = self.state[p]
        if not state:
            self._begin(p, group["amsgrad"])
        np.add(state["step"]._data, 1, out=state["step"]._data)
        param, decay = p._data, float(group["weight_decay"])
        if group["decoupled_weight_decay"]:
            if decay:
                np.multiply(param, 1 - float(group["lr"]) * decay, out=param)
            decay = 0.0
        direction = self._descent(param, grad, group["maximize"], decay)

        averages = [state["exp_avg"], state["exp_avg_sq"]]
        if group["amsgrad"]:
            averages.append(state["max_exp_avg_sq"])
        arrays = [param, direction, *(average._data for average in averages)]
        if np.iscomplexobj(param):
            self._move([array.real for array in arrays], float(state["step"]), group)
            self._move([array.imag for array in arrays], float(state["step"]), group)
        else:
            self._move(arrays, float(state["step"]), group)
        for changed in (state["step"], *averages):
            changed._bump()

    def _begin(self, p: Tensor, amsgrad: bool) -> None:
        """Lay out the state of a parameter at its first step."""
        state = self.state[p]
        counter = np.float64 if default() == np.float64 else np.float32
        state["step"] = wrap(np.zeros((), counter))
        for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if amsgrad else 2]:
            state[name] = wrap(np.zeros_like(p._data))

    def _move(self, arrays: list[np.ndarray], step: float, group: Group) -> None:
        """The formula, on real arrays: the parameter, its direction, `m`, `v` and, for AMSGrad, the largest `v`."""
        param, direction, mean, square, *largest = arrays
        beta1, beta2 = group["betas"]
        work = self._scratch(param, 1)
        np.subtract(direction, mean, out=work)
        np.multiply(work, 1 - beta1, out=work)
        np.add(mean, work, out=mean)

        np.multiply(direction, 1 - beta2, out=work)
        np.multiply(work, direction, out=work)
        np.multiply(square, beta2, out=square)
        np.add(square, work, out=square)
        if largest:
            square = np.maximum(largest[0], square, out=largest[0])

        np.sqrt(square, out=work)
        np.divide(work, math.sqrt(1 - beta2**step), out=work)
        np.add(work, group["eps"], out=work)
        np.divide(mean, work, out=work)
        np.multiply(work, float(group["lr"]) / (1 - beta1**step), out=work)
        np.subtract(param, work, out=param)


class AdamW(Adam):
    """Adam with decoupled weight decay: p shrinks by 1 - lr * weight_decay before each step of Adam.

    The decay does not enter the running averages, so it acts on all parameters alike, however large their gradients.
    Arguments, state and errors are those of `Adam`; `weight_decay` is 0.01 by default.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019,
    https://arxiv.org/abs/1711.05101.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.AdamW([x], lr=0.5, weight_decay=0.1)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x
    tensor([ 2.3500, -3.3000], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def load_state_dict(self, state_dict: dict[str, object]) -> None:
        """As in `Optimizer`; a state saved by `Adam` goes on with decoupled decay."""
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def _checked_betas(who: str, betas: tuple[float | Tensor, float | Tensor]) -> tuple[float, float]:
    """The two decay rates as floats."""
    kinds = [isinstance(beta, Tensor) for beta in betas]
    if len(kinds) != 2 or not (all(kinds) or all(isinstance(beta, float) for beta in betas)):
        raise ValueError(message(f"{who}: argument betas", expected="two floats or two Tensors", found=repr(betas)))
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor) and beta.numel() != 1:
            raise ValueError(message(f"{who}: betas[{i}]", expected="a Tensor of 1 element", found=describe(beta)))
        if not 0 <= float(beta) < 1:
            raise ValueError(message(f"{who}: betas[{i}]", expected="a number in [0, 1)", found=str(beta)))
    return float(betas[0]), float(betas[1])

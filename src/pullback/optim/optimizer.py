"""What every optimiser shares: parameter groups, per-parameter state, saving, loading, and the loop of a step.

A subclass supplies `_update(p, grad, group)`, the arithmetic for one parameter, and nothing else. That arithmetic is
NumPy on the payloads (`p._data`), in place: a step must not be recorded, must not change a dtype, and should allocate
nothing. The temporaries it needs come from `Optimizer._scratch`, which hands out the same memory at every step.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._tensor import Tensor, wrap
from ..autograd.grad_mode import enable_grad
from ..errors import describe, message

Group = dict[str, Any]
Params = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Group]


class Optimizer:
    """The base class of all optimisers.

    `params` is an iterable of tensors, of `(name, tensor)` pairs (`module.named_parameters()`), or of dicts that
    each describe one group: its tensors under `"params"` and, under the other keys, the options in which the group
    differs from `defaults`. A tensor must be a leaf (or retain its gradient); any floating or complex dtype and any
    shape will do.

    `param_groups` is the list of groups, open to change between steps (a learning-rate schedule writes
    `group["lr"]`); `state` maps each parameter to what the rule remembers about it.

    Raises `TypeError` for a lone tensor, a set, or something that is no tensor; `ValueError` for no parameters, a
    tensor computed from others, or one that is in two groups.

    See https://docs.pytorch.org/docs/stable/optim.html.

    >>> import pullback
    >>> w = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> b = pullback.tensor([0.5], requires_grad=True)
    >>> opt = pullback.optim.SGD([{"params": [w]}, {"params": [b], "lr": 1.0}], lr=0.1)
    >>> ((w * w).sum() + b.sum()).backward()
    >>> opt.step()
    >>> w, b
    (tensor([0.8000, 1.6000], requires_grad=True), tensor([-0.5000], requires_grad=True))
    """

    def __init__(self, params: Params, defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                message(
                    f"{type(self).__name__}: argument params",
                    expected="an iterable of tensors or of dicts",
                    found=f"a single {describe(params)}",
                    do="write [tensor]",
                )
            )
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(
                message(
                    f"{type(self).__name__}: argument params",
                    expected="tensors to optimise",
                    found="an empty parameter list",
                    do="pass at least one; an iterator that was used before, such as module.parameters(), is empty too",
                )
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._pool: dict[tuple[np.dtype[Any], int], np.ndarray] = {}
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters, such as a layer that is unfrozen during training.

        `param_group["params"]` is a tensor or an iterable of tensors or of `(name, tensor)` pairs; the other keys
        override `defaults`. The dict itself becomes the group, completed in place. A group that is refused (see the
        class for the errors) leaves the optimiser and the dict as they were.
        """
        names, params = self._checked(param_group)
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for key, default in self.defaults.items():
            param_group.setdefault(key, default)
        self.param_groups.append(param_group)

    def _checked(self, param_group: Group) -> tuple[list[str] | None, list[Tensor]]:
        """The names (if there are any) and the tensors of a group that may be added."""
        where = f"{type(self).__name__}: param_group"
        if not isinstance(param_group, dict):
            raise TypeError(
                message(where, expected="a dict", found=describe(param_group), do="write {'params': [...]}")
            )
        if "params" not in param_group:
            raise KeyError(message(where, expected="the key 'params'", found=f"the keys {list(param_group)}"))
        names, params = _names_and_tensors(where, param_group["params"])
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(message(where, expected="Tensors only", found=f"parameter {i}: {describe(p)}"))
            if not (p.is_leaf or p.retains_grad):
                raise ValueError(
                    message(
                        f"{where}: can't optimise a non-leaf Tensor",
                        expected="a tensor that was created, not computed",
                        found=f"parameter {i}: {describe(p)}, from {p.grad_fn.name()}",
                        do="pass the leaf it was computed from, or p.detach().requires_grad_()",
                    )
                )
        if len(set(params)) < len(params):
            warnings.warn(f"{where}: a parameter appears twice in it and is updated twice a step", stacklevel=4)
        known = {p for group in self.param_groups for p in group["params"]}
        if twice := [i for i, p in enumerate(params) if p in known]:
            raise ValueError(
                message(
                    where,
                    expected="parameters that are in no other group",
                    found=f"parameter {twice[0]} in more than one parameter group",
                )
            )
        if self.param_groups and (names is None) == ("param_names" in self.param_groups[0]):
            raise ValueError(message(where, expected="names for the parameters of all groups or of none"))
        return names, params

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters: set `p.grad` to `None`, or fill it with zeros in place."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                    continue
                if p.grad.grad_fn is not None:  # left there by backward(create_graph=True)
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, and return what `closure` returned.

        `closure`, when given, is called first, with gradients enabled: it clears the gradients, computes the loss,
        calls `backward` and returns the loss.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad._data, group)
                    p._bump()
        return loss

    def _update(self, p: Tensor, grad: np.ndarray, group: Group) -> None:
        """Write the new value of `p` into `p._data`; `grad` must not be written to."""
        raise NotImplementedError(f"{type(self).__name__} must define _update(p, grad, group), or step()")

    def _scratch(self, like: np.ndarray, slot: int) -> np.ndarray:
        """Uninitialised memory of the shape and dtype of `like`; each `slot` is another piece, reused by all."""
        memory = self._pool.get((like.dtype, slot))
        if memory is None or memory.size < like.size:
            memory = self._pool[like.dtype, slot] = np.empty(like.size, like.dtype)
        return memory[: like.size].reshape(like.shape)

    def _descent(self, param: np.ndarray, grad: np.ndarray, maximize: bool, decay: float) -> np.ndarray:
        """The gradient of what is minimised: `±grad + decay * param`, in slot 0 unless it is `grad` itself."""
        if decay == 0 and not maximize:
            return grad
        out = self._scratch(param, 0)
        if decay == 0:
            return np.negative(grad, out=out)
        np.multiply(param, decay, out=out)
        return np.subtract(out, grad, out=out) if maximize else np.add(out, grad, out=out)

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on later, parameters aside: `{"state": {index: ...}, "param_groups": [...]}`.

        Parameters are named by their position, counted through all groups. The tensors are the optimiser's own, not
        copies: a later step changes them.
        """
        index: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                index.setdefault(id(p), i)
            start += len(group["params"])
            groups.append({**group, "params": [index[id(p)] for p in group["params"]]})
        # Keys that are no parameter belong to whoever put them there and travel as they are.
        return {"state": {index.get(id(p), p): kept for p, kept in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned for an optimiser with the same number of parameters per group.

        State is matched to parameters by position, copied, and cast to the parameter's dtype (`step` aside). Options
        missing from the dict keep their present values.

        Raises `ValueError` if the number of groups, or of parameters in one, differs; nothing has changed then.
        """
        saved = state_dict["param_groups"]
        sizes, saved_sizes = ([len(group["params"]) for group in groups] for groups in (self.param_groups, saved))
        if sizes != saved_sizes:
            raise ValueError(
                message(
                    f"{type(self).__name__}.load_state_dict()",
                    expected=f"a state for parameter groups of sizes {sizes}",
                    found=f"one for groups of sizes {saved_sizes}",
                    do="build the optimiser from the same parameters, in the same groups, as the saved one",
                )
            )
        params = {
            i: p
            for group, old in zip(self.param_groups, saved, strict=True)
            for i, p in zip(old["params"], group["params"], strict=True)
        }
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for i, kept in state_dict["state"].items():
            state[params.get(i, i)] = _cast(kept, params[i], None) if i in params else kept
        groups = []
        for group, old in zip(self.param_groups, saved, strict=True):
            options = {key: copy.deepcopy(value) for key, value in old.items() if key != "params"}
            groups.append({**group, **options})
        self.state, self.param_groups = state, groups

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_pool"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _pool={})

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def check_options(
    who: str,
    lr: float | Tensor,
    foreach: bool | None,
    differentiable: bool,
    fused: bool | None,
    **not_negative: float | Tensor,
) -> None:
    """Refuse options that no rule accepts; `not_negative` are those that must be zero or more."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(
            message(f"{who}: argument lr", expected="a float or a Tensor of 1 element", found=describe(lr))
        )
    for name, value in {"lr": lr, **not_negative}.items():
        if not float(value) >= 0:  # so written that nan is refused too
            raise ValueError(message(f"{who}: argument {name}", expected="zero or more", found=str(value)))
    if differentiable:
        raise NotImplementedError(
            message(
                f"{who}: argument differentiable",
                expected="False, because a step writes in place and is not recorded",
                found="True",
                do="to differentiate through an update, write it in tensor operations: p - lr * grad",
            )
        )
    if foreach and fused:
        raise RuntimeError(message(who, expected="foreach or fused", found="both", do="pass one of them"))


def _names_and_tensors(where: str, params: Any) -> tuple[list[str] | None, list[Any]]:
    """The names, if the parameters are `(name, tensor)` pairs, and the parameters, as lists."""
    if isinstance(params, Tensor):
        return None, [params]
    if isinstance(params, set | frozenset):
        raise TypeError(
            message(
                where,
                expected="parameters in an order that is the same in every run",
                found=describe(params),
                do="pass a list; saved state is matched to parameters by position",
            )
        )
    params = list(params)
    named = [isinstance(p, tuple) for p in params]
    if not any(named):
        return None, params
    if not all(named):
        missing = named.index(False)
        raise ValueError(
            message(where, expected="names for all parameters or none", found=f"no name for number {missing}")
        )
    return [name for name, _ in params], [p for _, p in params]


def _cast(value: Any, param: Tensor, key: Any) -> Any:
    """A copy of a piece of saved state, fit for `param`."""
    if isinstance(value, Tensor):
        # `step` counts: in a parameter's float16 it would stop at 2048.
        return wrap(value._data.copy() if key == "step" else value._data.astype(param._data.dtype))
    if isinstance(value, dict):
        return {k: _cast(v, param, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_cast(v, param, None) for v in value)
    return copy.deepcopy(value)

"""L-BFGS: Newton's method with the curvature measured along the last steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.grad_mode import no_grad
from ...errors import message
from ...table.levels import memory_of
from ...tensor.tensor import Tensor, wrap
from ..line_search import Point, strong_wolfe
from ..optimizer import Group, Optimizer, Params, Shapes
from ..options import algorithm, check_options, number
from ..sweep import Array

__all__ = ["LBFGS"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class LBFGS(Optimizer):
    """p = p + t * d, with d = -H g and an approximation H of the inverse Hessian from the last steps: L-BFGS.

    A call of `step` does up to `max_iter` iterations and evaluates the loss up to `max_eval` times (1.25 * max_iter
    unless given; a line search in progress ends there), so it needs a closure. From the gradient g at each point it
    computes, with s = t * d and y, the change of g, of the last `history_size` iterations with s . y > 1e-10,

        d = -H g     by the two-loop recursion, from H = (s . y / y . y) * identity of the latest
        t = lr       (in the very first iteration min(1, 1 / sum(abs(g))) * lr)

    and, with ``line_search_fn="strong_wolfe"``, makes t satisfy the strong Wolfe conditions, beginning with that value.
    It stops when every abs(g) is at most `tolerance_grad`, or when every component of the step, the change of the loss
    or its slope g . d is at most `tolerance_change` in size. There is one group of parameters; a complex parameter is
    the pair of its parts.

    State, stored with the first parameter: `func_evals`, `n_iter`, `d`, `t`, `old_dirs` (y), `old_stps` (s), `ro`
    (1 / s . y), `H_diag`, `prev_flat_grad` and `prev_loss`.

    Raises `ValueError` if `lr` is negative or there is more than one group; `RuntimeError` for another line search.

    Source: Liu and Nocedal, On the limited memory BFGS method for large scale optimization, Mathematical Programming
    45, 1989, https://doi.org/10.1007/BF01589116, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html.

    >>> import pullback
    >>> x = pullback.tensor([-1.5, 2.0], dtype=pullback.float64, requires_grad=True)
    >>> opt = pullback.optim.LBFGS([x], max_iter=50, line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> loss = opt.step(closure)
    >>> x
    tensor([1.0000, 1.0000], dtype=pullback.float64, requires_grad=True)
    """

    _steps_after_programs = False  # it needs the closure

    params: Params
    lr: float | Tensor = 1
    max_iter: int = 20
    max_eval: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history_size: int = 100
    line_search_fn: str | None = None

    def _prepare(self, options: Group) -> None:
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(
                message(
                    "LBFGS: argument line_search_fn",
                    expected="None or 'strong_wolfe'; only 'strong_wolfe' is supported",
                    found=repr(options["line_search_fn"]),
                )
            )
        if options["max_eval"] is None:
            options["max_eval"] = options["max_iter"] * 5 // 4
        check_options("LBFGS", options)

    def add_param_group(self, param_group: Group) -> None:
        """Refuse a second group: the curvature belongs to all parameters together."""
        if self.param_groups:
            raise ValueError(
                message("LBFGS", expected="one group: it doesn't support parameter groups", found="a second one")
            )
        super().add_param_group(param_group)

    def _shapes(self, param: Tensor, group: Group) -> Shapes:
        n = sum(p._data.size * (2 if p._data.dtype.kind == "c" else 1) for p in group["params"])
        numbers: Shapes = dict.fromkeys(("func_evals", "n_iter", "t", "prev_loss", "H_diag"), ())
        return {**numbers, "d": (n,), "prev_flat_grad": (n,), "old_dirs": [(n,)], "old_stps": [(n,)], "ro": [()]}

    def _check_state(self, kept: Any, param: Tensor, shapes: Shapes) -> None:
        super()._check_state(kept, param, shapes)
        if kept.get("n_iter"):  # else the first iteration makes the other entries
            if missing := [name for name in shapes if kept.get(name) is None]:
                raise self._unfit("the state of a parameter", f"the entries {list(shapes)}", f"no {missing[0]}")
            lengths = [len(kept[name]) for name in ("old_dirs", "old_stps", "ro")]
            if len(set(lengths)) > 1:
                raise self._unfit("old_dirs, old_stps and ro", "lists of one length", f"the lengths {lengths}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Do up to `max_iter` iterations; return the loss at the point where they began.

        `closure` is called at each point, with gradients enabled: it clears the gradients, computes the loss, calls
        `backward` and returns the loss.
        """
        if closure is None:
            raise TypeError(
                message(
                    "LBFGS.step()",
                    expected="a closure that evaluates the loss, because there are several evaluations a step",
                    do="move zero_grad(), the loss and backward() into a function that returns the loss, and pass it",
                )
            )
        with no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        (group,) = self.param_groups
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        at_first, loss, grad = self._at(closure)
        evals = 1
        state["func_evals"] += 1
        if np.abs(grad).max() <= group["tolerance_grad"]:
            return at_first
        for n_iter in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction, step = self._planned(state, grad, group)
            slope = float(grad @ direction)
            last_loss = loss
            state |= {"d": wrap(direction), "t": step, "prev_flat_grad": wrap(grad), "prev_loss": loss}
            if slope > -group["tolerance_change"]:
                break
            spent = 0
            if group["line_search_fn"] is not None:
                begin = Point(0.0, loss, grad, slope)
                found, spent = self._searched(closure, begin, step, direction, group["max_eval"] - evals)
                step, loss, grad, _ = found
                self._add(step, direction)
                state["t"] = step
            else:
                self._add(step, direction)
                if n_iter != group["max_iter"]:  # the next call evaluates it at the end point
                    _, loss, grad = self._at(closure)
                    spent = 1
            evals += spent
            state["func_evals"] += spent
            if (
                evals >= group["max_eval"]
                or np.abs(grad).max() <= group["tolerance_grad"]
                or np.abs(direction * step).max() <= group["tolerance_change"]
                or abs(loss - last_loss) < group["tolerance_change"]
            ):
                break
        return at_first

    def _planned(self, state: dict[str, Any], grad: Array, group: Group) -> tuple[Array, float]:
        """The direction of the next step, and its first length."""
        lr = number(group["lr"])
        if state["n_iter"] == 1:
            state |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": wrap(np.ones((), grad.dtype))}
            return -grad, float(min(1.0, 1.0 / np.abs(grad).sum())) * lr
        self._remember(state, grad - state["prev_flat_grad"]._data, state["d"]._data * float(state["t"]), group)
        pairs = [
            (y._data, s._data, float(ro))
            for y, s, ro in zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True)
        ]
        q = -grad
        weights = []
        for y, s, ro in reversed(pairs):
            weight = float(s @ q) * ro
            q -= weight * y
            weights.append(weight)
        q *= float(state["H_diag"])  # in a state that PyTorch saved it may be a number
        for y, s, ro in pairs:
            q += (weights.pop() - float(y @ q) * ro) * s
        return q, lr

    def _remember(self, state: dict[str, Any], y: Array, s: Array, group: Group) -> None:
        """Learn the curvature along the last step, where it is positive."""
        curvature = y @ s
        if not curvature > 1e-10:
            return
        for name, value in {"old_dirs": y, "old_stps": s, "ro": np.asarray(1.0 / curvature)}.items():
            if len(state[name]) == group["history_size"]:
                del state[name][0]
            state[name].append(wrap(value))
        state["H_diag"] = wrap(np.asarray(curvature / (y @ y)))

    def _searched(
        self, closure: Callable[[], Any], start: Point, step: float, direction: Array, most: int
    ) -> tuple[Point, int]:
        """The point that the line search finds; the parameters are put back."""
        params = self.param_groups[0]["params"]
        home = [memory_of(p._data).copy() for p in params]

        def evaluate(step: float) -> Point:
            try:
                self._add(step, direction)
                _, loss, grad = self._at(closure)
            finally:
                for p, values in zip(params, home, strict=True):
                    memory_of(p._data)[...] = values
                    p._bump()
            return Point(step, loss, grad, float(grad @ direction))

        return strong_wolfe(evaluate, start, step, float(np.abs(direction).max()), 1e-9, most)

    def _at(self, closure: Callable[[], Any]) -> tuple[Any, float, Array]:
        """The result of the closure, the same as a number, and all gradients in one real vector."""
        loss = self._evaluated(closure)
        parts = []
        for p in self.param_groups[0]["params"]:
            part = np.zeros_like(memory_of(p._data)) if p.grad is None else memory_of(p.grad.to_dense()._data)
            part = part.reshape(-1)
            parts.append(part.view(part.real.dtype) if part.dtype.kind == "c" else part)
        return loss, float(loss), np.concatenate(parts)

    def _add(self, step: float, direction: Array) -> None:
        """Move all parameters."""
        start = 0
        for p in self.param_groups[0]["params"]:
            values = memory_of(p._data)
            end = start + values.size * (2 if values.dtype.kind == "c" else 1)
            part = (step * direction[start:end]).astype(values.real.dtype, copy=False)
            values += part.view(values.dtype).reshape(values.shape)
            p._bump()
            start = end

"""Properties that every correct backward has, of any function; `gradcheck` checks them.

It gives the same result twice, is linear in grad_output, leaves it unchanged, and takes None for an unused output. A
backward that breaks one of these rules can have the right Jacobian and still give wrong gradients in a larger graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.api import grad
from ...autograd.function import Function, FunctionNode
from ...table.levels import memory_of
from ...tensor.gpu import to_host
from ...tensor.tensor import Tensor
from .disagreement import Array, GradcheckError
from .problem import Call, Options, random_like


def check_conduct(call: Call, options: Options, rng: np.random.Generator) -> bool:
    """Check that backward is deterministic, linear and does not change grad_output; return whether a gradient
    arrived."""
    v, w = random_like(call.outputs, rng), random_like(call.outputs, rng)
    found = _watched(call, v, options)
    along_v = _filled(found)
    with np.errstate(all="ignore"):
        _check_deterministic(call, along_v, _filled(call.vjp(v)), options.nondet_tol)
        _check_linear(call, v, w, along_v, options)
    return any(g is not None for g in found)


def _filled(grads: list[Array | None]) -> list[Array]:
    return [np.zeros(1) if g is None else g for g in grads]


def _check_deterministic(call: Call, first: list[Array], second: list[Array], tolerance: float) -> None:
    for label, a, b in zip(call.problem.labels, first, second, strict=True):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        gap = np.max(np.where(same, 0, np.nan_to_num(np.abs(a - b), nan=np.inf)), initial=0)
        if gap > tolerance:
            raise GradcheckError(
                f"{call.problem.title}: Backward is not reentrant: it is not deterministic. Two passes with the same "
                f"grad_output give gradients for {label.long} that differ by {gap:.3g}; nondet_tol is {tolerance:g}.\n"
                "  What to do: save the random numbers of forward for backward, do not write to saved tensors in "
                "backward, or pass a nondet_tol."
            )


def _check_linear(call: Call, v: list[Array], w: list[Array], along_v: list[Array], options: Options) -> None:
    """The gradient for zeros is zero, and the gradients for v and for w add up to that for v + w."""
    title, labels = call.problem.title, call.problem.labels
    for label, none in zip(labels, _filled(call.vjp([0 * a for a in v])), strict=True):
        if np.any(none[np.isfinite(none)] != 0):
            raise GradcheckError(
                f"{title}: backward not multiplied by grad_output: for a grad_output of zeros the gradient for "
                f"{label.long} is not zero but as large as {np.nanmax(np.abs(none)):.3g}.\n"
                "  What to do: return grad_output times the derivative."
            )
    along_w, along_both = _filled(call.vjp(w)), _filled(call.vjp([a + b for a, b in zip(v, w, strict=True)]))
    for label, a, b, both in zip(labels, along_v, along_w, along_both, strict=True):
        gap = np.abs(both - (a + b))
        if np.any(gap > options.atol + options.rtol * (np.abs(a) + np.abs(b))):
            raise GradcheckError(
                f"{title}: backward is not linear in grad_output: the gradients for {label.long} that two "
                f"grad_outputs give differ by {np.nanmax(gap):.3g}, added, from the one that their sum gives.\n"
                "  What to do: return grad_output times the derivative; use grad_output for nothing else."
            )


class Watch:
    """Follows one Function through a backward pass: whether it leaves its arguments unchanged, and what it returns."""

    def __init__(self, node: FunctionNode, title: str, options: Options) -> None:
        self.node, self.title, self.options = node, title, options
        self.given: list[Array | None] = []
        self.handles = (node.register_prehook(self.before), node.register_hook(self.after))

    def before(self, grad_outputs: tuple[Tensor | None, ...]) -> None:
        """Keep a copy of the gradients that backward is about to get."""
        self.given = [None if g is None else np.array(to_host(memory_of(g._data))) for g in grad_outputs]

    def after(self, grad_inputs: tuple[Tensor | None, ...], grad_outputs: tuple[Tensor | None, ...]) -> None:
        """Compare the gradients with that copy, and check the dtypes of backward's results."""
        name = self.node.name()
        for k, (then, now) in enumerate(zip(self.given, grad_outputs, strict=True)):
            if then is None or now is None:
                continue
            if not np.array_equal(then, to_host(memory_of(now._data)), equal_nan=True):
                raise GradcheckError(
                    f"{self.title}: the backward of {name} changes grad_output {k} in place, which other branches of "
                    "the graph may share.\n"
                    "  What to do: compute with new tensors (grad_output * 2, not grad_output.mul_(2)), or clone() "
                    "it first."
                )
        for g, (i, edge) in zip(grad_inputs, self.node._tensor_edges(), strict=True):
            if self.options.check_grad_dtypes and g is not None and edge and g._data.dtype != edge[3]:
                raise GradcheckError(
                    f"{self.title}: Gradient has dtype mismatch: the backward of {name} returns {g._data.dtype} for "
                    f"{self.node._argument(i).lstrip('*')!r}, which is {edge[3]}.\n"
                    "  What to do: compute the gradient in the dtype of grad_output."
                )


def _watched(call: Call, seeds: list[Array], options: Options) -> list[Array | None]:
    """A backward pass during which every Function is watched."""
    watches = [Watch(node, call.problem.title, options) for node in call.functions()]
    try:
        return call.vjp(seeds)
    finally:
        for watch in watches:
            for handle in watch.handles:
                handle.remove()


class _Undefined(Function):
    """The identity, with a backward that returns no gradient."""

    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        """A copy."""
        return t.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> None:
        """None."""


def check_undefined(call: Call, options: Options, rng: np.random.Generator) -> None:
    """Check that backward takes None for unused outputs, and treats it as zeros.

    Each output in turn gets a gradient alone; a last pass has no gradients at all.
    """
    title, seeds = call.problem.title, random_like(call.outputs, rng)
    todo = (
        "  What to do: test `if grad_output is None` in backward, leave out ctx.set_materialize_grads(False), or "
        "pass check_undefined_grad=False."
    )
    for k, label in enumerate(call.labels if len(call.outputs) > 1 else []):
        try:
            undefined = _filled(call.vjp([v if i == k else None for i, v in enumerate(seeds)]))
        except Exception as error:
            raise GradcheckError(
                f"{title}: Expected backward function to handle undefined output grads: where only {label.long} is "
                f"used and the other outputs have no gradient (None), it fails with {type(error).__name__}: {error}\n"
                f"{todo}"
            ) from error
        zeros = _filled(call.vjp([v if i == k else 0 * v for i, v in enumerate(seeds)]))
        for name, a, b in zip(call.problem.labels, undefined, zeros, strict=True):
            if not np.isclose(a, b, rtol=options.rtol, atol=options.atol, equal_nan=True).all():
                raise GradcheckError(
                    f"{title}: backward does not treat undefined output grads (None) as zeros: where only {label.long} "
                    f"is used, the gradient for {name.long} is not what it is with zeros in their place.\n{todo}"
                )
    try:
        none = grad(
            [_Undefined.apply(out) for out in call.outputs],
            call.inputs,
            call.outputs,
            retain_graph=True,
            allow_unused=True,
        )
    except Exception as error:
        raise GradcheckError(
            f"{title}: Expected backward function to handle undefined output grads: where all of them are None, it "
            f"fails with {type(error).__name__}: {error}\n{todo}"
        ) from error
    for label, g in zip(call.problem.labels, none, strict=True):
        if g is not None and np.any(g._data != 0):
            raise GradcheckError(
                f"{title}: Expected all input grads to be undefined or zero when all output grads are undefined or "
                f"zero, but that for {label.long} is not, where all output grads are None.\n{todo}"
            )

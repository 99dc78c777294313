"""Large calls of the entries that say ``fused``: their forward and their rules as loops in C.

A loop is made of the entry's own function by `compile/eager.py`, which is loaded at the first such call. What it cannot
do (another layout, no compiler) runs as everywhere else, and so does every rule that meets something else than arrays.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..tensor.tensor import Tensor
from .nodes import Plan
from .op import Op, Rule


class Fused:
    """Whether large calls run in C (`pullback.backends.fused`), and what makes the loops; `assembly.py` puts it here.

    kernel: called with a function of arrays and the name of its entry. What it returns is called as the function is, and
    gives None where the function itself has to run.
    """

    enabled: ClassVar[bool] = True
    kernel: ClassVar[Callable[[Callable[..., Any], str], Callable[..., Any]]]


@functools.cache
def _kernel(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    return Fused.kernel(function, name)


def by_kernel(op: Op, operands: Sequence[Any]) -> Any:
    """The forward of an entry in C; None where it has to run as it is."""
    return _kernel(op.forward, op.name)(*operands) if type(operands[0]) is np.ndarray else None


def with_kernels(out: Tensor) -> Tensor:
    """A recorded result whose node runs its rules in C as well."""
    node: Any = out._edge[0]  # type: ignore[index]
    node.plan = _in_c(node.plan, node.op)
    return out


@functools.cache
def _in_c(plan: Plan, op: Op) -> Plan:
    """A plan that saves the same values and calls the same rules, by their kernels."""
    rules = {rule: _guarded(rule, _kernel(rule, op.name)) for rule, _ in plan.calls}
    made = copy.copy(plan)
    calls = made.calls = tuple((rules[rule], pick) for rule, pick in plan.calls)
    made.only, made.direct = rules.get(plan.only), rules.get(plan.direct)
    made.gradients = lambda g, saved: tuple([rule(g, *pick(saved)) for rule, pick in calls])
    return made


def _guarded(rule: Rule, kernel: Callable[..., Any]) -> Rule:
    """A rule that runs by its kernel on arrays; on anything else, such as the Tensors of a recorded pass, as it is."""

    def run(g: Any, *values: Any) -> Any:
        found = kernel(g, *values) if type(g) is np.ndarray and Fused.enabled else None
        return rule(g, *values) if found is None else found

    return run

"""Every differentiable operation in Taylor mode: on samples of its entry, the derivatives along a path to the third
order are those of nested forward mode.

`ORDER` is raised by the environment variable PULLBACK_JET_ORDER: to the fifth order they take some minutes.
"""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.table.op import Op
from pullback.table.samples import DType, Sample
from pullback.tensor.nested import leaves
from pullback.tensor.tensor import wrap
from pullback.testing.payloads.carrying import entries

ORDER = int(os.environ.get("PULLBACK_JET_ORDER", "3"))
ENTRIES = {name: op for name, op in entries().items() if op.kind != "constant"}

# Where a path of complex numbers is no argument: the window then has to be complex, too.
OTHER = {"istft"}


def parts(op: Op, made: Sample) -> tuple[Any, list[Any]] | None:
    """The call as a function of the arguments that it is differentiable by, and these; None if there are none."""
    tensors: list[Any] = []

    def argument(leaf: Any) -> Any:
        if isinstance(leaf, DType):
            return getattr(pullback, leaf.name)
        if not isinstance(leaf, np.ndarray):
            return leaf
        t = wrap(leaf.copy())
        tensors.append(t.requires_grad_() if leaf.dtype.kind == "f" else t)
        return t

    given = made.replaced(argument)
    pullback.manual_seed(0)
    outs = [t for t in leaves([op.call(*given.args, **given.kwargs)]) if getattr(t, "requires_grad", False)]
    wanted = [t for t in tensors if t.requires_grad]
    if not outs or not any(t.numel() for t in wanted):
        return None
    grads = pullback.autograd.grad(
        [t.real.sum() if t.is_complex() else t.sum() for t in outs], wanted, allow_unused=True
    )
    varied = [t for t, g in zip(wanted, grads, strict=True) if g is not None]
    places = [next((i for i, v in enumerate(varied) if v is t), None) for t in tensors]

    def call(*values: Any) -> tuple[Any, ...]:
        rest = iter([t.detach() if i is None else values[i] for t, i in zip(tensors, places, strict=True)])
        now = made.replaced(
            lambda leaf: (
                next(rest)
                if isinstance(leaf, np.ndarray)
                else getattr(pullback, leaf.name)
                if isinstance(leaf, DType)
                else leaf
            )
        )
        pullback.manual_seed(0)
        found = leaves([op.call(*now.args, **now.kwargs)])
        return tuple(t for t in found if isinstance(t, pullback.Tensor) and t._data.dtype.kind in "fc")

    return call, [t.detach() for t in varied]


def difference(call: Any, primals: list[Any]) -> str:
    """In what Taylor mode differs from nested forward mode, along a path of random coefficients."""
    rng = np.random.default_rng(1)
    series = [[wrap(np.asarray(0.3 * rng.standard_normal(x.shape))) for _ in range(ORDER)] for x in primals]
    value, found = func.jet(call, tuple(primals), tuple(series))
    zero, one = wrap(np.zeros(())), wrap(np.ones(()))

    def path(t: Any) -> Any:
        steps = [(t ** (k + 1)) / math.factorial(k + 1) for k in range(ORDER)]
        return call(
            *[x + sum(c * s for c, s in zip(cs, steps, strict=True)) for x, cs in zip(primals, series, strict=True)]
        )

    for k in range(ORDER + 1):
        mine = value if not k else [terms[k - 1] for terms in found]
        for ours, theirs in zip(mine, path(zero), strict=True):
            a, b = ours.detach().numpy(), theirs.detach().numpy()
            scale = 1 + np.abs(b).max(initial=0)
            if a.shape != b.shape or not np.allclose(a, b, rtol=1e-7, atol=1e-8 * scale, equal_nan=True):
                return f"order {k}: {a} instead of {b}"
        path = (lambda g: lambda t: func.jvp(g, (t,), (one,))[1])(path)
    return ""


@pytest.mark.parametrize("name", ENTRIES)
def test_jets_are_those_of_nested_forward_mode(name: str) -> None:
    problems, tried = [], 0
    for sample in ENTRIES[name].domain("samples"):
        if tried == 2 or name in OTHER:
            break
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = parts(ENTRIES[name], sample.arrays("float64"))
            except (NotImplementedError, RuntimeError):  # no derivative by an argument
                continue
            if found is not None:
                tried += 1
                if said := difference(*found):
                    problems.append(f"{name}{sample}: {said}")
    assert problems == []


def test_enough_entries_are_compared() -> None:
    """A planted fault is found: the comparison sees a series of another function."""
    call, primals = parts(ENTRIES["sin"], ENTRIES["sin"].domain("samples")[2].arrays("float64")) or (None, [])
    assert difference(call, primals) == ""
    calls = iter(range(100))
    wrong = lambda x: (x.sin() if next(calls) == 0 else x.sin() * (1 + x**3 / 1000),)  # noqa: E731
    assert "order" in difference(wrong, primals)
    assert len(ENTRIES) > 380

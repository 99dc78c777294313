"""Forty operations of the table, drawn at random, as functions of arrays: what each host is asked to differentiate.

Each function is the sum of the squares of an operation's results, which has second derivatives.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import pullback
import pullback.nn.functional  # whose operations are drawn as well
from pullback.ops import TABLE
from pullback.table.samples import Sample
from pullback.tensor.nested import leaves
from tests.oracle import resolve

COUNT = 40
TOLERANCE = 1e-8


class Drawn(NamedTuple):
    """An operation with the arrays of one of its samples. f takes Tensors in their order."""

    name: str
    f: Callable[..., Any]
    arrays: list[np.ndarray[Any, Any]]


def _of_sample(name: str, sample: Sample) -> Drawn | None:
    """The function of the floating point arrays of a sample, if it has derivatives of two orders there."""
    made = sample.arrays("float64")
    arrays: list[np.ndarray[Any, Any]] = []
    made.replaced(lambda a: arrays.append(a) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else None)
    if not arrays or not all(a.size for a in arrays):
        return None

    def f(*xs: Any) -> Any:
        given = iter(xs)

        def tensor(a: Any) -> Any:
            if not isinstance(a, np.ndarray):
                return a
            return next(given) if a.dtype.kind == "f" else pullback.from_numpy(a.copy())

        s = made.replaced(tensor)
        outs = [o for o in leaves(resolve(pullback, name)(*s.args, **s.kwargs)) if isinstance(o, pullback.Tensor)]
        return sum((o * o).sum() for o in outs if o.is_floating_point())

    found = Drawn(name, f, [np.array(a) for a in arrays])
    try:
        answer = derivatives(found)
    except (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError):
        return None
    return found if all(np.isfinite(a).all() for a in answer) and np.abs(answer[1]).max() > 0 else None


def derivatives(drawn: Drawn) -> list[np.ndarray[Any, Any]]:
    """Our value, the gradients, and the gradients of the sum of their squares."""
    xs = [pullback.tensor(a, requires_grad=True) for a in drawn.arrays]
    value = drawn.f(*xs)
    first = pullback.autograd.grad(value, xs, create_graph=True, allow_unused=True, materialize_grads=True)
    norm = sum((g * g).sum() for g in first)
    second = pullback.autograd.grad(norm, xs, allow_unused=True, materialize_grads=True)
    return [t.detach().numpy() for t in (value, *first, *second)]


def candidates() -> Iterator[str]:
    """The operations that have derivatives and draw no random numbers."""
    for name, op in sorted(TABLE.items()):
        last = name.rpartition(".")[2]
        if op.kind != "constant" and not last.startswith("_") and not last.endswith("_") and "dropout" not in name:
            yield name


def drawn(seed: int = 0) -> list[Drawn]:
    """The operations of a seed, each on the first of its samples that has what is needed."""
    names = list(candidates())
    random.Random(seed).shuffle(names)
    found: list[Drawn] = []
    for name in names:
        tried = (_of_sample(name, sample) for sample in TABLE[name].domain("samples"))
        if (first := next((d for d in tried if d is not None), None)) is not None:
            found.append(first)
        if len(found) == COUNT:
            break
    return found

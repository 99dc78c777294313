"""The check of a `vmap` rule: a batch gives the same results as a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..autograd.api import grad
from ..func import vmap
from ..tensor.tensor import Tensor, wrap
from .corrections.findings import Finding
from .corrections.patches import Patch
from .corrections.rewrites import on_tensors
from .corrections.source import described, line_of_error
from .first_runs import largest_gap
from .subject import Subject, drawn

BATCH = 3
WHY = (
    "in_dims says for each argument of forward which axis is the batch's, None for one that has none; out_dims, the "
    "second part of what vmap returns, says it for the outputs."
)


def check_vmap(subject: Subject) -> Iterator[Finding]:
    """The `vmap` rule against a loop, with each input batched alone and all together, values and gradients."""
    n = len(subject.moving)
    sets = [[k == i for k in range(n)] for i in range(n)] + ([[True] * n] if n > 1 else [])
    method = subject.method("vmap") or subject.method("forward")
    for batched in sets:
        names = ", ".join(subject.where(i) for i, b in enumerate(batched) if b)
        for axis in (0, -1):
            expected = f"what a loop over a batch of {BATCH} gives, where {names} {_have(batched)} it"
            try:
                gap, what = _compare(subject, batched, axis)
            except Exception as error:
                line = line_of_error(error, method)
                yield Finding("vmap-rule", expected, described(error), WHY, line, *_advice(subject))
                return
            if gap > subject.rounding:
                returned = method.returned() if method else None
                line = method.at(returned[0]) if returned else method.head()
                found = f"{what} that differ{'' if gap == np.inf else f' by {gap:.3g}'}"
                yield Finding("vmap-rule", expected, found, WHY, line, *_advice(subject))
                return


def _have(batched: Sequence[bool]) -> str:
    return "have" if sum(batched) > 1 else "has"


def _advice(subject: Subject) -> tuple[str, tuple[Patch, ...]]:
    if subject.method("vmap"):
        return (
            "move each batched argument to axis 0, by x.movedim(in_dims[i], 0), and return 0 for each output",
            (),
        )
    patch = on_tensors(subject.method("forward"))
    return "have forward and backward compute on tensors, not on arrays; or write a vmap rule", (patch,)


def _compare(subject: Subject, batched: Sequence[bool], axis: int) -> tuple[float, str]:
    """How far the batch is from the loop, and whether in values or in gradients."""
    rng = np.random.default_rng(18)
    points = [subject.flat[i]._data for i in subject.moving]
    rows = [
        [p + 1e-2 * k * drawn(p, rng) if b else p for p, b in zip(points, batched, strict=True)] for k in range(BATCH)
    ]

    columns = zip(zip(*rows, strict=True), batched, strict=True)
    inputs = [wrap(np.stack(column, axis) if b else np.array(column[0])) for column, b in columns]
    for t in inputs:
        t._requires_grad = True
    together = vmap(subject.of_moving, in_dims=tuple(axis if b else None for b in batched))(*inputs)
    singly = [[wrap(np.array(p)).requires_grad_() for p in row] for row in rows]
    each = [subject.of_moving(*row) for row in singly]
    stacked = [np.stack([out[k]._data for out in each]) for k in range(len(together))]
    gap = largest_gap([t._data for t in together], stacked)
    if gap > subject.rounding:
        return gap, "values"
    seeds = [drawn(t._data, rng) for t in together]
    tracked = [k for k, t in enumerate(together) if t._requires_grad and each[0][k]._requires_grad]
    if not tracked:
        return gap, "values"
    found = _gradients([together[k] for k in tracked], inputs, [seeds[k] for k in tracked])
    ones = [
        _gradients([out[k] for k in tracked], row, [seeds[k][r] for k in tracked])
        for r, (out, row) in enumerate(zip(each, singly, strict=True))
    ]
    totals = [
        np.stack(parts, axis) if b else sum(parts) for parts, b in zip(zip(*ones, strict=True), batched, strict=True)
    ]
    return largest_gap(found, totals), "gradients"


def _gradients(outputs: list[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Any]) -> list[Any]:
    found = grad(outputs, inputs, [wrap(s) for s in seeds], allow_unused=True)
    return [np.zeros(t._data.shape) if g is None else np.array(g._data) for g, t in zip(found, inputs, strict=True)]

"""The checks of `gradcheck` beyond backward: forward mode against finite differences, and both modes under `vmap`. It
also holds the step from sparse tensors to their values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...func.forward import jvp
from ...func.reverse import vjp
from ...func.vectorize import vmap
from ...ops.sparse.coo import SparseTensor, sparse_at
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Tensor, wrap
from .disagreement import GradcheckError, considering
from .problem import Call, Gradients, Options, copied, differences, directions, random_like, units

BATCH = 2


def _function(call: Call) -> Callable[..., tuple[Tensor, ...]]:
    """The problem's function of its moving tensors alone; if it is a gradient itself, computed by transforms."""
    problem = call.problem

    def placed(moving: Sequence[Tensor]) -> tuple[Any, ...]:
        flat = [copied(leaf) if isinstance(leaf, Tensor) else leaf for leaf in problem.flat]
        for k, t in zip(problem.moving, moving, strict=True):
            flat[k] = t
        return tuple(rebuild(problem.args, iter(flat)))

    def plainly(*moving: Tensor) -> tuple[Tensor, ...]:
        found = list(leaves(problem.func(*placed(moving))))
        return tuple(found[k] for k in call.which)

    if not isinstance(problem.func, Gradients):
        return plainly
    inner = problem.func
    first = sum(1 for k in problem.moving if k < sum(1 for _ in leaves(problem.args[: inner.count])))

    def gradient(*moving: Tensor) -> tuple[Tensor, ...]:
        def outputs(*inputs: Tensor) -> tuple[Tensor, ...]:
            out = inner.func(*placed([*inputs, *moving[first:]])[: inner.count])
            return tuple(t for t in leaves(out) if isinstance(t, Tensor) and t._requires_grad)

        vectors = placed(moving)[inner.count :]
        _, pull = vjp(outputs, *moving[:first])
        found = pull(tuple(vectors))
        return tuple(found[k] for k in call.which)

    return gradient


def check_forward(call: Call, options: Options, rng: np.random.Generator) -> None:
    """Raise GradcheckError unless forward mode agrees with finite differences, along every input."""
    function, base = _function(call), call.values()
    primals = [wrap(np.array(x._data)) for x in call.inputs]
    chosen = random_like(call.inputs, rng, real=True) if options.fast_mode else [None] * len(primals)
    for i, (x, u) in enumerate(zip(primals, chosen, strict=True)):
        for unit in reversed(units(x._data)):  # of a complex input the imaginary part first, as in torch
            for direction in directions(x._data.shape, u):
                step = np.asarray(unit * direction, x._data.dtype)
                tangents = [np.zeros_like(p._data) for p in primals]
                tangents[i] = step
                found = jvp(function, tuple(primals), tuple(wrap(t) for t in tangents))[1]
                expected = differences(call, base, i, step, options.eps)
                part = considering(unit == 1j, "inputs") if x.is_complex() else ""
                _compare(call, i, found, expected, options, part)


def _compare(call: Call, i: int, found: Sequence[Tensor], expected: Sequence[Any], options: Options, told: str) -> None:
    for label, t, numerical in zip(call.labels, found, expected, strict=True):
        flat = np.asarray(t._data).ravel()
        parts = np.stack([flat.real, flat.imag]) if flat.dtype.kind == "c" else flat[None]
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(parts, numerical[0], rtol=options.rtol, atol=options.atol)
        if wrong.any():
            part, k = (int(n) for n in np.argwhere(wrong)[0])
            raise GradcheckError(
                f"{call.problem.title}: {told}Jacobian computed with forward mode mismatch for {label.long} with "
                f"respect to {call.problem.labels[i].long}: along a direction of the latter, finite differences give "
                f"{numerical[0][part, k]:.6g} for element {k}, but the jvp is {parts[part, k]:.6g} "
                f"(atol={options.atol:g}, rtol={options.rtol:g}).\n"
                "  What to do: correct the jvp of the Function; where there is none of the user's, report it."
            )


def check_batched_forward(call: Call, options: Options, rng: np.random.Generator) -> None:
    """Raise GradcheckError unless forward mode gives the same under vmap as one by one."""
    function = _function(call)
    primals = tuple(wrap(np.array(x._data)) for x in call.inputs)
    rows = [
        [v.astype(p._data.dtype) for v, p in zip(random_like(call.inputs, rng), primals, strict=True)]
        for _ in range(BATCH)
    ]

    def push(*tangents: Tensor) -> tuple[Tensor, ...]:
        return jvp(function, primals, tangents)[1]

    _compare_batch(call, push, rows, "forward mode", call.labels)


def check_batched(call: Call, options: Options, rng: np.random.Generator) -> None:
    """Raise GradcheckError unless backward gives the same under vmap as one by one."""
    rows = [
        [v.astype(o._data.dtype) for v, o in zip(random_like(call.outputs, rng), call.outputs, strict=True)]
        for _ in range(BATCH)
    ]

    def pull(*vectors: Tensor) -> Any:
        return autograd.grad(call.outputs, call.inputs, vectors, retain_graph=True, materialize_grads=True)

    _compare_batch(call, pull, rows, "backward", call.problem.labels)


def _compare_batch(call: Call, one: Callable[..., Any], rows: Any, mode: str, labels: Sequence[Any]) -> None:
    each = [one(*(wrap(v) for v in row)) for row in rows]
    batch = [wrap(np.stack(column)) for column in zip(*rows, strict=True)]
    try:
        together = vmap(one)(*batch)
    except RuntimeError as error:
        raise GradcheckError(
            f"{call.problem.title}: gradcheck or gradgradcheck failed while testing batched gradient computation: "
            f"{mode} does not work under vmap: {error}"
        ) from error
    for label, t, singles in zip(labels, together, zip(*each, strict=True), strict=True):
        right = np.stack([np.asarray(s._data) for s in singles])
        if not np.allclose(t._data, right, rtol=1e-7, atol=1e-9, equal_nan=True):
            raise GradcheckError(
                f"{call.problem.title}: {mode} under vmap and one by one disagree for {label.long}, by up to "
                f"{np.max(np.abs(t._data - right)):.3g}.\n"
                "  What to do: correct the vmap staticmethod of the Function."
            )


def of_values(
    func: Callable[..., Any], args: tuple[Any, ...], masked: Any
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and its arguments, with each sparse tensor replaced by the tensor of its values."""
    flat = list(leaves(args))
    sparse = {i: t.coalesce() if t.is_sparse else t for i, t in enumerate(flat) if isinstance(t, SparseTensor)}
    if not sparse:
        return func, args
    if not masked:
        raise ValueError(
            "gradcheck: there are sparse tensors among the inputs, whose gradients are at the places they hold.\n"
            "  What to do: pass masked=True; to check all elements, let func take a dense tensor."
        )
    for i, t in sparse.items():
        flat[i] = t.values().detach().requires_grad_(flat[i].requires_grad)

    @functools.wraps(func)
    def dense(*given: Any) -> Any:
        found = list(leaves(given))
        for i, t in sparse.items():
            found[i] = sparse_at(found[i], t._data.pattern)
        return func(*rebuild(args, iter(found)))

    return dense, tuple(rebuild(args, iter(flat)))

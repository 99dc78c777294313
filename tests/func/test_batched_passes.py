"""Transforms around a backward pass that runs a function again, and positions that are the same for a whole batch.

Cotangents that vary over a batch meet a function that has transforms inside: in compiled code, under `checkpoint`, in a
Function's own backward. What is the same for each element of a batch has the graph, and the values, that it stands for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import Function
from pullback.autograd.engine import needed_nodes
from pullback.interpreters.batched import Batched
from pullback.utils.checkpoint import checkpoint

X = pullback.tensor([1.0, 2.0, 3.0], dtype=pullback.float64)
EYE = pullback.eye(3, dtype=pullback.float64)


def _cubes(x: Any) -> Any:
    return x**3


INSIDE: dict[str, Callable[[Any], Any]] = {
    "jacrev": lambda x: func.jacrev(_cubes)(x) @ x + x.sin(),
    "grad": lambda x: func.grad(lambda z: _cubes(z).sum())(x),
    "grad_and_value": lambda x: func.grad_and_value(lambda z: _cubes(z).sum())(x)[1] * x,
    "vjp": lambda x: func.vjp(_cubes, x)[1](x)[0] * x,
    "jvp": lambda x: func.jvp(_cubes, (x,), (x,))[1] * x,
    "jacfwd": lambda x: func.jacfwd(_cubes)(x) @ x,
    "hessian": lambda x: func.hessian(lambda z: (z**4).sum())(x) @ x,
    "vmap": lambda x: func.vmap(_cubes)(x) * x,
    "vmap of grad": lambda x: func.vmap(func.grad(_cubes))(x) * x,
    "grad of vmap": lambda x: func.grad(lambda y: func.vmap(_cubes)(y).sum())(x) * x,
    "grad of scan": lambda x: func.grad(
        lambda y: func.scan(lambda carry, a: (carry * a, carry), y, pullback.stack([x, x]))[0].sum()
    )(x),
}


def _as_function(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    class Again(Function):
        """It computes again in backward, as people write it."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return f(x).detach()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            with pullback.enable_grad():
                again = x.detach().requires_grad_()
                y = f(again)
            return pullback.autograd.grad(y, again, g)[0]

    return Again.apply


RUN_AGAIN: dict[str, Callable[[Any], Any]] = {
    "compiled": lambda f: pullback.compile(f, backend="numpy"),
    "checkpoint": lambda f: lambda x: checkpoint(f, x, use_reentrant=False),
    "Function": _as_function,
}


def _batched(f: Any) -> Any:
    x = X.clone().requires_grad_()
    return pullback.autograd.grad(f(x), x, EYE, is_grads_batched=True)[0]


AROUND: dict[str, Callable[[Any], Any]] = {
    "jacrev": lambda f: func.jacrev(f)(X),
    "vmap of a pullback": lambda f: func.vmap(func.vjp(f, X)[1])(EYE)[0],
    "vmap of vmap": lambda f: func.vmap(lambda c: func.vmap(func.vjp(f, X)[1])(c * EYE)[0])(X),
    "vmap of jacrev": lambda f: func.vmap(func.jacrev(f))(pullback.stack([X, 2 * X])),
    "is_grads_batched": _batched,
    "vectorize": lambda f: pullback.autograd.functional.jacobian(f, X, vectorize=True),
    "jacrev of jacrev": lambda f: func.jacrev(func.jacrev(f))(X),
    "jacfwd of jacrev": lambda f: func.jacfwd(func.jacrev(f))(X),
}
FIRST_ORDER = [name for name in AROUND if " of jacrev" not in name]


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("again", RUN_AGAIN)
def test_a_function_with_transforms_inside_runs_again_in_a_batched_backward(again: str, inside: str) -> None:
    f = INSIDE[inside]
    made = RUN_AGAIN[again](f)
    for around in AROUND if again == "compiled" else FIRST_ORDER:
        expected, found = AROUND[around](f), AROUND[around](made)
        assert np.any(expected.detach().numpy()), around
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12, err_msg=around)


# Positions that are the same for a whole batch ------------------------------------------------------------------------

POINTS = np.array([-2.0, 0.0, 2.0])


def _written(a: Any, b: Any) -> Any:
    z = pullback.zeros(3, dtype=pullback.float64) * b
    z[a.argsort()] = b * a
    return (z * X).sum()


def _put(a: Any, b: Any) -> Any:
    z = b * 1
    z.index_put_((a.argsort(),), a)
    return (z * b).sum()


AT_POSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "index": lambda a, b: (b[a.argsort()] * a).sum(),
    "two indices": lambda a, b: (b.reshape(3, 1)[a.argsort(), a.argsort() * 0] * a).sum(),
    "topk": lambda a, b: (b[a.topk(2)[1]] * a[:2]).sum(),
    "argmax": lambda a, b: b[a.argmax()] * a.sum(),
    "cummax": lambda a, b: (b[a.cummax(0)[1]] * a).sum(),
    "searchsorted": lambda a, b: (b[pullback.searchsorted(X - 2, a).clamp(0, 2)] * a).sum(),
    "interp": lambda a, b: (np.interp(a, POINTS, np.array([1.0, 2.0, 5.0])) * b).sum(),
    "interp of the batch": lambda a, b: np.interp(a, POINTS, b).sum(),
    "gather": lambda a, b: (b.gather(0, a.argsort()) * a).sum(),
    "index_select": lambda a, b: (b.index_select(0, a.argsort()) * a).sum(),
    "take": lambda a, b: (b.take(a.argsort()) * a).sum(),
    "scatter": lambda a, b: pullback.zeros(3, dtype=pullback.float64).scatter(0, a.argsort(), a * b)[1] * a[0],
    "written": _written,
    "index_put_": _put,
    "where": lambda a, b: pullback.where(a > 0, a * b, b).sum(),
}
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": func.grad,
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "second": lambda f: func.grad(lambda a, b: func.grad(f)(a, b).sum()),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", AT_POSITIONS)
def test_positions_of_what_is_differentiated_and_the_same_for_a_batch(name: str, transform: str) -> None:
    g = TRANSFORMS[transform](AT_POSITIONS[name])
    a = pullback.tensor([0.3, -1.0, 0.7], dtype=pullback.float64)
    batch = pullback.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=pullback.float64)
    found = func.vmap(g, in_dims=(None, 0))(a, batch)
    each = np.stack([g(a, row).numpy() for row in batch])
    np.testing.assert_allclose((found + 0).numpy(), each, rtol=1e-12)
    moved = func.vmap(g, in_dims=(None, 0), out_dims=1)(a, batch)
    np.testing.assert_allclose(moved.numpy(), each.T, rtol=1e-12)


def test_what_a_rule_makes_holds_no_tensor_of_its_own_level() -> None:
    seen = []

    def f(a: Any, b: Any) -> Any:
        seen.append(b[a.argsort()])
        return (seen[-1] * a).sum()

    func.vmap(func.grad(f), in_dims=(None, 0))(X, EYE)
    (found,) = seen
    assert isinstance(found._data, Batched)
    assert isinstance(found._data.value._data, np.ndarray)


# What is searched -----------------------------------------------------------------------------------------------------


def _lines_of_search(work: Callable[[], Any]) -> int:
    """The lines of `needed_nodes` that run while something is done."""
    code, lines = needed_nodes.__code__, 0

    def inside(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return inside

    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: inside if frame.f_code is code else None)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "grad": lambda y: func.grad(lambda x: (x * y).sum())(X),
    "vjp": lambda y: func.vjp(lambda x: x * y, X)[1](X),
    "jacrev": lambda y: func.jacrev(lambda x: x * y)(X),
    "grad of grad": lambda y: func.grad(lambda x: func.grad(lambda z: (z**3 * y).sum())(x).sum())(X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_transform_searches_no_graph_that_is_older_than_itself(name: str) -> None:
    counts = []
    for steps in (10, 500):
        y = X.clone().requires_grad_()
        for _ in range(steps):
            y = y * 1.001
        TRANSFORMED[name](y)  # what is loaded on first use
        counts.append(_lines_of_search(lambda y=y: TRANSFORMED[name](y)))  # type: ignore[misc]
    assert 0 < counts[0] == counts[1]

"""A tensor that escapes from a transform: every use of it is refused by one error, which says that it escaped."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import forward_ad


def _escaped(transform: str) -> Any:
    kept: list[Any] = []

    def keeping(x: Any) -> Any:
        kept.append(x * 2)
        return x * 3

    x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    if transform == "jvp":
        func.jvp(keeping, (x,), (pullback.ones(2, 2),))
    else:
        func.vmap(keeping)(pullback.stack([x, x]))
    return kept[0]


def _function(t: Any) -> Any:
    class Double(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return Double.apply(t)


USES: dict[str, Callable[[Any], Any]] = {
    "mul": lambda t: t * 2,
    "ufunc": np.sin,
    "numpy function": np.cumsum,
    "sum": lambda t: t.sum(),
    "getitem": lambda t: t[0],
    "setitem": lambda t: t.__setitem__(0, 1.0),
    "iter": list,
    "view": lambda t: t.view(4),
    "reshape": lambda t: t.reshape(4),
    "transpose": lambda t: t.T,
    "to": lambda t: t.to(pullback.float64),
    "clone": lambda t: t.clone(),
    "deepcopy": copy.deepcopy,
    "tensor": lambda t: pullback.tensor(t),
    "stack": lambda t: pullback.stack([t, t]),
    "copy_": lambda t: pullback.zeros(2, 2).copy_(t),
    "add_": lambda t: t.add_(1),
    "numpy": lambda t: t.numpy(),
    "float": lambda t: float(t.sum()),
    "backward": lambda t: t.sum().backward(),
    "Function": _function,
    "compile": lambda t: pullback.compile(lambda x: x * 2)(t),
    "jvp of it": lambda t: func.jvp(lambda x: x * x, (t,), (pullback.ones(2, 2),)),
    "jvp along it": lambda t: func.jvp(lambda x: x * x, (pullback.ones(2, 2),), (t,)),
    "grad of it": lambda t: func.grad(lambda x: (x * x).sum())(t),
    "vmap of it": lambda t: func.vmap(lambda x: x * x)(t),
    "in another jvp": lambda t: func.jvp(lambda x: x * t, (pullback.ones(2, 2),), (pullback.ones(2, 2),)),
    "in another grad": lambda t: func.grad(lambda x: (x * t).sum())(pullback.ones(2, 2)),
    "in another vmap": lambda t: func.vmap(lambda x: x * t)(pullback.ones(2, 2)),
}


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("transform", ["jvp", "vmap"])
def test_it_is_refused(transform: str, use: str) -> None:
    t = _escaped(transform)
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being"):
        USES[use](t)


def test_it_is_refused_by_a_function_while_another_transform_runs() -> None:
    t = _escaped("jvp")
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being"):
        func.vmap(lambda x: x * _function(t))(pullback.ones(2))


@pytest.mark.parametrize("transform", ["jvp", "vmap"])
def test_it_can_be_looked_at(transform: str) -> None:
    t = _escaped(transform)
    assert (t.shape, t.dtype, t.dim()) == ((2, 2), pullback.float32, 2)
    assert "tensor(" in repr(t)


def test_one_that_took_the_values_of_a_transform_is_its_primal_again() -> None:
    outside = pullback.zeros(2)

    def writing(x: Any) -> Any:
        outside.copy_(x)
        return x

    func.jvp(writing, (pullback.tensor([3.0, 4.0]),), (pullback.ones(2),))
    assert (outside * 2).tolist() == [6.0, 8.0]


DERIVATIVES: dict[str, Callable[..., Any]] = {
    "jacfwd": func.jacfwd,
    "jacrev": func.jacrev,
    "grad": lambda f: func.grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (pullback.ones_like(x),))[1],
    "jet": lambda f: lambda x: func.jet(f, (x,), ([pullback.ones_like(x)],))[1][0],
}


@pytest.mark.parametrize("of", [lambda v: v, lambda v: v[:1], lambda v: v.view(2, 1)], ids=["it", "part", "view"])
@pytest.mark.parametrize("tracked", [True, False], ids=["tracked", "constant"])
@pytest.mark.parametrize("outer", DERIVATIVES)
@pytest.mark.parametrize("inner", DERIVATIVES)
def test_a_tensor_from_outside_that_nested_transforms_write_to_holds_values_afterwards(
    inner: str, outer: str, tracked: bool, of: Callable[[Any], Any]
) -> None:
    v = pullback.tensor([1.0, 2.0], requires_grad=tracked) * 1
    w = of(v)

    def write(t: Any) -> Any:
        w.mul_(t.sum())
        return (v * t).sum()

    DERIVATIVES[outer](DERIVATIVES[inner](write))(pullback.tensor([0.5, 1.0]))
    for t in (v, w):
        assert type(t) is pullback.Tensor
        assert np.isfinite(t.detach().clone().numpy()).all()
        assert bool((t.detach().clone() == t.detach() * 1).all())


OF_THE_PRIMAL = ("deepcopy", "tensor", "numpy")  # are refused, or take the primal alone
NO_JVP = ("Function",)


@pytest.mark.parametrize("use", [name for name in USES if name not in OF_THE_PRIMAL + NO_JVP])
def test_a_tangent_of_a_batch_that_has_ended_is_refused(use: str) -> None:
    """Its primal belongs to no transform, so that the tangent alone tells."""
    kept: list[Any] = []
    primal = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    with forward_ad.dual_level():
        func.vmap(lambda t: kept.append(forward_ad.make_dual(primal, t * primal)) or t)(pullback.ones(3, 2, 2))
        with pytest.raises(RuntimeError, match="your tensor may have escaped from inside a function being vmapped"):
            forward_ad.unpack_dual(USES[use](kept[0])).tangent.numpy()

"""Values written to one place several times: the last one stays there, and has the gradient; all others have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func

Function = Callable[[Any], Any]

RNG = np.random.default_rng(0)
LINE, TABLE, POINT = RNG.normal(size=5), RNG.normal(size=(3, 2)), RNG.normal(size=3)
AT = [0, 0, 1]


def _line(v: Any) -> Any:
    return pullback.tensor(LINE) + 0 * v.sum()  # so that it varies where `v` does


def _table(v: Any) -> Any:
    return pullback.tensor(TABLE) + 0 * v.sum()


def _places(index: Any = AT) -> Any:
    return index if isinstance(index, pullback.Tensor) else pullback.tensor(index)


def by_list(v: Any) -> Any:
    y = _line(v)
    y[AT] = v
    return y


def by_array(v: Any) -> Any:
    y = _line(v)
    y[np.array(AT[::-1])[::-1]] = v
    return y


def by_two_arrays(v: Any) -> Any:
    y = _table(v)
    y[[0, 1, 0], [1, 1, 1]] = v
    return y


def by_arrays_in_columns(v: Any) -> Any:
    y = _table(v)
    y[_places([[0, 1, 0], [1, 0, 0]]).T, _places([[0, 1, 0], [1, 0, 0]]).T] = v.reshape(3, 1) * pullback.tensor(
        [1.0, 2]
    )
    return y


def of_rows(v: Any) -> Any:
    y = _table(v)
    y[AT] = pullback.stack([v, v * v], 1)
    return y


def of_columns(v: Any) -> Any:
    y = _table(v).T.clone()
    y[:, AT] = v
    return y


def beside_a_slice(v: Any) -> Any:
    y = _table(v).reshape(1, 3, 2).expand(2, 3, 2).clone()
    y[[0, 1, 0], 1:, [1, 1, 1]] = v.reshape(3, 1)
    return y


def by_a_mask_beside_an_array(v: Any) -> Any:
    y = _table(v)
    y[np.array([False, True, False]), AT] = v
    return y


def into_a_view(v: Any) -> Any:
    y = _line(v)
    part = y[1:]
    part[AT] = v
    part[[1, 1, 0]] *= v
    return y


def into_windows(v: Any) -> Any:
    y = _line(v) * 1
    y.unfold(0, 2, 1)[[0, 1, 1]] = pullback.stack([v, v * v], 1)
    return y


def added(v: Any) -> Any:
    y = _line(v)
    y[AT] += v * v
    return y


def of_one_number(v: Any) -> Any:
    y = _line(v)
    y[AT] = v[0] * v[1]
    return y


FUNCTIONS: list[Function] = [
    by_list,
    by_array,
    by_two_arrays,
    by_arrays_in_columns,
    of_rows,
    of_columns,
    beside_a_slice,
    by_a_mask_beside_an_array,
    into_a_view,
    added,
    of_one_number,
]
WITH_INDEX: dict[str, Callable[[Any, Any], Any]] = {
    "index_put": lambda v, at: pullback.index_put(_line(v), (at,), v),
    "scatter": lambda v, at: pullback.scatter(_line(v), 0, at, v),
    "index_copy": lambda v, at: pullback.index_copy(_table(v), 0, at, pullback.stack([v, v * v], 1)),
    "index_copy by column": lambda v, at: pullback.index_copy(_table(v).T, -1, at, pullback.stack([v, v * v])),
    "put": lambda v, at: _table(v).put(at, v),
    "scatter_": lambda v, at: (_line(v) * 1).scatter_(0, at, v),
    "index_copy_": lambda v, at: (_table(v) * 1).index_copy_(0, at, pullback.stack([v, v * v], 1)),
    "put_": lambda v, at: (_table(v) * 1).put_(at, v),
}


def cubed(f: Function) -> Function:
    return lambda v: (f(v) ** 3).sum()


def tape(f: Function, x: Any) -> Any:
    return pullback.autograd.grad(f(x), x, create_graph=True)[0].detach()


MODES: dict[str, Callable[[Function, Any], Any]] = {
    "eager": lambda f, x: pullback.autograd.grad(f(x), x)[0],
    "recorded": tape,
    "func.grad": lambda f, x: func.grad(f)(x.detach()),
    "vmap": lambda f, x: func.vmap(func.grad(f))(pullback.stack([x.detach(), x.detach() * 2]))[0],
    "compile": lambda f, x: pullback.autograd.grad(pullback.compile(f, backend="numpy")(x), x)[0],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", [*FUNCTIONS, *WITH_INDEX], ids=lambda f: getattr(f, "__name__", f))
def test_reverse_mode_agrees_with_forward_mode(f: Any, mode: str) -> None:
    run = (lambda v: WITH_INDEX[f](v, _places())) if isinstance(f, str) else f
    x = pullback.tensor(POINT, requires_grad=True)
    exact = func.jacfwd(cubed(run))(x.detach())
    np.testing.assert_allclose(MODES[mode](cubed(run), x).numpy(), exact.numpy(), rtol=1e-10)


@pytest.mark.parametrize("f", [*FUNCTIONS, *WITH_INDEX], ids=lambda f: getattr(f, "__name__", f))
def test_finite_differences_agree_to_the_second_order(f: Any) -> None:
    run = (lambda v: WITH_INDEX[f](v, _places())) if isinstance(f, str) else f
    x = pullback.tensor(POINT, requires_grad=True)
    assert pullback.autograd.gradcheck(run, x, check_forward_ad=True)
    assert pullback.autograd.gradgradcheck(cubed(run), x)


def test_windows_that_share_elements() -> None:  # transforms and compiled functions refuse the write
    x = pullback.tensor(POINT, requires_grad=True)
    assert pullback.autograd.gradcheck(into_windows, x)
    assert pullback.autograd.gradgradcheck(cubed(into_windows), x)


@pytest.mark.parametrize("name", WITH_INDEX)
def test_positions_that_are_an_argument(name: str) -> None:
    f = WITH_INDEX[name]
    each = pullback.tensor([[0, 0, 1], [2, 1, 0], [2, 2, 2]])
    x = pullback.tensor(POINT)

    def loss(v: Any, at: Any) -> Any:
        return (f(v, at) ** 3).sum()

    exact = np.stack([func.jacfwd(lambda v, at=at: loss(v, at))(x).numpy() for at in each])
    compiled = pullback.compile(loss, backend="numpy")
    found = [pullback.autograd.grad(compiled(t, at), t)[0].numpy() for at in each for t in [x.clone().requires_grad_()]]
    np.testing.assert_allclose(np.stack(found), exact, rtol=1e-10)
    if not name.endswith("_"):  # into what does not vary with the positions, nothing can be written
        np.testing.assert_allclose(func.vmap(func.grad(loss), (None, 0))(x, each).numpy(), exact, rtol=1e-10)


def test_infinite_gradients_of_what_was_overwritten_are_0() -> None:
    v = pullback.tensor([1.0, 2.0], requires_grad=True)
    y = pullback.zeros(2)
    y[[0, 0]] = v
    y.backward(pullback.tensor([np.inf, 1.0]))
    assert v.grad is not None
    assert v.grad.tolist() == [0.0, np.inf]


@pytest.mark.parametrize(("size", "stride"), [((3,), (0,)), ((2, 3), (1, 1))])
def test_a_view_that_shares_elements_is_not_replaced(size: Any, stride: Any) -> None:
    x = pullback.ones(5)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        pullback.as_strided_scatter(x, pullback.zeros(size), size, stride)
    assert pullback.as_strided_scatter(x, pullback.zeros(2, 2), (2, 2), (2, 1)).tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.torch
def test_torch_gives_the_gradient_of_a_place_to_all_values_for_it() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib in (torch, pullback):
        v = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        lib.scatter(lib.zeros(2), 0, lib.tensor([0, 0, 1]), v).sum().backward()
        found.append(v.grad.tolist())
    assert found == [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]

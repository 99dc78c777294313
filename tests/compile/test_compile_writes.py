"""A tensor that a compiled function makes, reads, writes to, and reads again.

Each read has the values of its time. A backward pass that eager mode refuses is refused here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor

from .backends import BACKENDS


def adds(x: Tensor) -> Any:
    y = pullback.zeros(3)
    z = x + y
    y.add_(1)
    return z + y


def multiplies(x: Tensor) -> Any:  # what the product saved is written to: backward is an error
    y = pullback.ones(3)
    z = x * y
    y.mul_(3)
    return z + y


def multiplies_a_copy(x: Tensor) -> Any:
    y = pullback.ones(3)
    z = x * y.clone()
    y.mul_(3)
    return z * y


def detached(x: Tensor) -> Any:
    y = pullback.zeros(3)
    z = x + y
    y.detach()[1:] = 2.0
    return z + y


def view_read(x: Tensor) -> Any:
    y = pullback.zeros(3)
    part = y[1:]
    z = x[1:] + part
    y.fill_(2)
    return z + part


def view_written(x: Tensor) -> Any:
    y = pullback.zeros(3)
    z = x + y
    y[::2] += 4
    return z - y


def written_with_traced_values(x: Tensor) -> Any:
    y = pullback.zeros(3)
    z = x + y
    y[1:] += x[1:] * 0.1
    w = z + y
    y[:1] -= 1
    return w + y


def saved_and_written_with_traced_values(x: Tensor) -> Any:
    y = pullback.ones(3)
    z = x * y
    y[1:] += x[1:] * 0.1
    return z + y


def out(x: Tensor) -> Any:
    y = pullback.zeros(3)
    z = y + x
    pullback.add(pullback.ones(3), pullback.ones(3), out=y)
    return z + y


def loop(x: Tensor) -> Any:
    state, total = pullback.zeros(3), x * 0
    for k in range(4):
        total = total + x * state.clone()
        state[k % 3] += k
    return total + state


def turned(x: Tensor) -> Any:
    y = pullback.arange(6.0).reshape(3, 2).t()
    z = y[0] + x
    y.mul_(2)
    return z + y[1] + y[0].flip(0)


def returned(x: Tensor) -> Any:
    y = pullback.zeros(3)
    z = x + y
    y.add_(1)
    return z, y


def array_read_as_a_copy(x: Tensor) -> Any:
    work = np.zeros(3, np.float32)
    y = x + work.copy()
    work += 1
    return y + work.copy()


def array_filled_before(x: Tensor) -> Any:
    work = np.zeros(3, np.float32)
    work[1] = 5
    return x * work + work


PROGRAMS = [
    *(adds, multiplies, multiplies_a_copy, detached, view_read, view_written, written_with_traced_values),
    *(saved_and_written_with_traced_values, out, loop, turned, returned, array_read_as_a_copy, array_filled_before),
]


def outcome(fn: Callable[[Any], Any], x: Tensor) -> list[Any]:
    """The results, and the gradient or the kind of error."""
    found = fn(x)
    flat = found if isinstance(found, tuple) else (found,)
    told = [t.tolist() for t in flat]
    if x.requires_grad:
        try:
            told.append(pullback.autograd.grad(sum(t.sum() for t in flat), x)[0].tolist())
        except RuntimeError as error:
            told.append(str(error).partition(":")[0])
    return told


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_each_read_has_the_values_of_its_time(fn: Callable[[Any], Any], requires_grad: bool, backend: str) -> None:
    fast = pullback.compile(fn, backend=backend)
    for values in ([1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]):
        assert outcome(fast, pullback.tensor(values, requires_grad=requires_grad)) == outcome(
            fn, pullback.tensor(values, requires_grad=requires_grad)
        )


def test_what_eager_mode_refuses_in_backward_is_among_these() -> None:
    x = pullback.ones(3, requires_grad=True)
    refused = [fn.__name__ for fn in PROGRAMS if "modified by an inplace operation" in str(outcome(fn, x)[-1])]
    assert refused == ["multiplies", "saved_and_written_with_traced_values"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_that_were_written_to_are_made_anew_in_each_call(backend: str) -> None:
    fast = pullback.compile(returned, backend=backend)
    first = fast(pullback.ones(3))[1]
    first.mul_(10)
    assert fast(pullback.ones(3))[1].tolist() == [1, 1, 1]
    assert first.tolist() == [10, 10, 10]


def _writes_and_draws(p: Tensor) -> Tensor:
    return p.mul_(2) * p * pullback.rand(3)


def test_a_function_that_is_not_traced_leaves_its_arguments_as_they_were() -> None:
    x = pullback.ones(3, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="an argument that requires grad is written to in place"):
        pullback.compile(_writes_and_draws)(x)
    assert x.tolist() == [1.0] * 3
    assert x.grad_fn is not None
    assert x.grad_fn.name() == "MulBackward0"
    assert x.grad_fn.next_functions[0][0].name() == "AccumulateGrad"


def test_a_function_that_runs_as_it_is_written_runs_once() -> None:
    fast = pullback.compile(_writes_and_draws, fallback=True)
    leaf = pullback.ones(3, requires_grad=True)
    for told in (True, False):
        pullback.manual_seed(1)
        expected = _writes_and_draws(leaf * 1)
        pullback.manual_seed(1)
        if told:
            with pytest.warns(UserWarning, match="runs as it is written"):
                found = fast(leaf * 1)
        else:
            found = fast(leaf * 1)
        assert found.tolist() == expected.tolist()
        grads = [pullback.autograd.grad(y.sum(), leaf)[0].tolist() for y in (found, expected)]
        assert grads[0] == grads[1]


def test_a_tensor_from_inference_mode_is_left_alone_where_a_trace_fails() -> None:
    with pullback.inference_mode():
        held = pullback.ones(3)
    written, read_only = pullback.ones(3), pullback.from_numpy(np.broadcast_to(np.float32(2.0), 3))

    def fails(x: Tensor) -> Tensor:
        if type(x) is not Tensor:
            raise ValueError("a plain tensor is wanted")
        written.add_(1)
        return x * held * written * read_only

    with pytest.raises(RuntimeError, match="a plain tensor is wanted"):
        pullback.compile(fails, backend="numpy")(pullback.ones(3))
    assert written.tolist() == held.tolist() == [1, 1, 1]

"""What a compiled function reads of its tensors besides their values: as in eager mode, or refused with the line."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import Tensor, nn
from pullback.interpreters.traced import TraceError

from .backends import BACKENDS


def leaf(requires_grad: bool = True) -> Tensor:
    return pullback.tensor([1.0, 3.0], dtype=pullback.float64, requires_grad=requires_grad)


def with_scale(scale: Any, requires_grad: bool = True) -> Tensor:
    x: Any = leaf(requires_grad)
    x.scale = scale
    return x


# -- answered as in eager mode -----------------------------------------------------------------------------------------


def class_of(x: Any) -> Any:
    return x * (2 if x.__class__ is Tensor else 5)


def is_a_parameter(x: Any) -> Any:
    return x * (2 if isinstance(x, nn.Parameter) else 5)


def requires_grad(x: Any) -> Any:
    return x * (2 if x.requires_grad else 5)


def made_is_a_leaf(x: Any) -> Any:
    y = x * 2
    return y * (2 if y.is_leaf else 5)


def made_by(x: Any) -> Any:
    y = x * 2
    return y * (2 if y.grad_fn is None else len(y.grad_fn.name()))


def made_is_a_view(x: Any) -> Any:
    return x * (2 if x.view(2)._is_view() else 5) * (3 if (x * 2)._is_view() else 1)


def constant_is_a_leaf(x: Any) -> Any:
    return x * (2 if x.detach().is_leaf else 5)


def records_again(x: Any) -> Any:
    with pullback.enable_grad():
        y = x * x
    return y * 2, x * 3, y.requires_grad


ANSWERED = [class_of, is_a_parameter, requires_grad, made_is_a_leaf, made_by, made_is_a_view, constant_is_a_leaf]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", ANSWERED, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("recorded", [True, False])
def test_what_is_known_of_a_tensor_is_as_in_eager_mode(fn: Any, recorded: bool, backend: str) -> None:
    fast = pullback.compile(fn, backend=backend)
    with pullback.set_grad_enabled(recorded):
        for x in (leaf(), leaf(False), nn.Parameter(leaf(False)), leaf(), nn.Parameter(leaf(), requires_grad=False)):
            expected, found = fn(x), fast(x)
            assert found.tolist() == expected.tolist()
            assert found.requires_grad is expected.requires_grad


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("recorded", [True, False])
def test_recording_that_the_function_switches_on_counts(recorded: bool, backend: str) -> None:
    results = []
    for fn in (records_again, pullback.compile(records_again, backend=backend)):
        x = leaf()
        with pullback.set_grad_enabled(recorded):
            a, b, said = fn(x)
            assert said
            shown = (a.requires_grad, b.requires_grad)
        with pullback.enable_grad():
            again = records_again(x)[0]
        assert again.tolist() == [2, 18]
        y = fn(x)[0] if recorded else None
        found = None if y is None else pullback.autograd.grad(y.sum(), x, create_graph=True)[0]
        second = None if found is None else pullback.autograd.grad(found.sum(), x)[0].tolist()
        results.append((shown, a.tolist(), b.tolist(), None if found is None else found.tolist(), second))
    assert results[0] == results[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_of_what_is_recorded_within_no_grad(backend: str) -> None:
    def fn(x: Any) -> Any:
        y = x * 3
        with pullback.enable_grad():
            return x**3 * y

    results = []
    for form in (fn, pullback.compile(fn, backend=backend)):
        x = leaf()
        with pullback.no_grad():
            y = form(x)
        (first,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = pullback.autograd.grad(first.sum(), x)
        results.append((y.tolist(), first.tolist(), second.tolist()))
    assert results[0] == results[1]


# -- attributes of the user's ------------------------------------------------------------------------------------------


def reads_with_default(x: Any) -> Any:
    return x**3 * getattr(x, "scale", 2.0)


def asks_whether(x: Any) -> Any:
    return x**3 * (5 if hasattr(x, "scale") else 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", [reads_with_default, asks_whether], ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("tracked", [True, False])
def test_an_attribute_of_an_argument_is_seen_in_each_call(fn: Any, tracked: bool, backend: str) -> None:
    fast = pullback.compile(fn, backend=backend)
    for x in (leaf(tracked), with_scale(5.0, tracked), leaf(tracked), with_scale(0.5, tracked), with_scale(5, tracked)):
        assert fast(x).tolist() == fn(x).tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_attribute_of_a_tensor_from_outside_is_seen_in_each_call(backend: str) -> None:
    w = with_scale(2.0)
    fast = pullback.compile(lambda x: x * w.scale, backend=backend)
    assert fast(leaf()).tolist() == [2, 6]
    w.scale = 5.0
    assert fast(leaf()).tolist() == [5, 15]
    del w.scale
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'scale'"):
        fast(leaf())


@pytest.mark.parametrize("backend", BACKENDS)
def test_second_derivatives_use_the_attribute_that_the_first_run_used(backend: str) -> None:
    x = with_scale(5.0)
    fast = pullback.compile(lambda x, y: x**3 * x.scale + y * getattr(y, "scale", 7), backend=backend)
    y = leaf(False)
    (first,) = pullback.autograd.grad(fast(x, y).sum(), x, create_graph=True)
    x.scale = 50.0
    y.scale = 3  # type: ignore[attr-defined]
    assert pullback.autograd.grad(first.sum(), x)[0].tolist() == [30, 90]
    assert (x.scale, y.scale) == (50.0, 3)


# -- refused -----------------------------------------------------------------------------------------------------------


def refuses(name: str, read: Callable[[Any], Any]) -> Any:
    return pytest.param(read, id=name)


@pytest.mark.parametrize(
    "read",
    [
        refuses("is_leaf", lambda x: x.is_leaf),
        refuses("grad_fn", lambda x: x.grad_fn),
        refuses("output_nr", lambda x: x.output_nr),
        refuses("retains_grad", lambda x: x.retains_grad),
        refuses("_version", lambda x: x._version),
        refuses("_version of a result", lambda x: (x * 2)._version),
        refuses("_is_view", lambda x: x._is_view()),
        refuses("_base", lambda x: x._base),
        refuses("_base of a view", lambda x: x.view(2)._base),
        refuses("data_ptr", lambda x: x.data_ptr()),
        refuses("data_ptr of a result", lambda x: (x * 2).data_ptr()),
        refuses("repr", lambda x: repr(x)),
        refuses("str", lambda x: str(x * 2)),
        refuses("in a list", lambda x: str([x])),
        refuses("an f-string", lambda x: f"{x}"),
        refuses("an f-string of a number", lambda x: f"{x.sum():.3f}"),
        refuses("a percent sign", lambda x: "%s" % (x,)),  # noqa: UP031
        refuses("format", lambda x: f"{x!s:>10}"),
        refuses("hash", lambda x: hash(x)),
        refuses("id", lambda x: id(x)),
        refuses("vars", lambda x: vars(x)),
        refuses("get_ident", lambda x: threading.get_ident()),
    ],
)
def test_what_is_another_in_each_call_is_refused_with_its_line(read: Any) -> None:
    def fn(x: Any) -> Any:
        read(x)
        return x * 2

    line = read.__code__.co_firstlineno
    with pytest.raises(TraceError, match=rf'test_compile_facts.py", line {line}, in <lambda>(.|\n)*What to do'):
        pullback.compile(fn, backend="numpy")(leaf())


def test_an_attribute_that_is_no_number_or_text_is_refused() -> None:
    with pytest.raises(TraceError, match="the attribute scale of a tensor is read, which is a list"):
        pullback.compile(lambda x: x * x.scale[0])(with_scale([2.0]))


@pytest.mark.parametrize("result", [True, False])
def test_an_attribute_that_is_set_is_refused(result: bool) -> None:
    def fn(x: Any) -> Any:
        y = x * 2
        (y if result else x).scale = 5
        return y

    x = leaf()
    with pytest.raises(TraceError, match=r"the attribute scale of a tensor was set(.|\n)*What to do"):
        pullback.compile(fn)(x)
    assert not hasattr(x, "scale")


def test_an_attribute_of_a_tensor_that_does_not_leave_may_be_set() -> None:
    def fn(x: Any) -> Any:
        y = x * 2
        y.scale = 5
        return y * y.scale

    assert pullback.compile(fn)(leaf()).tolist() == [10, 30]


def test_tensors_are_keys_while_a_function_is_traced() -> None:
    def fn(x: Any) -> Any:
        found = {x: 2, x * 3: 5}
        return x * found[x] * len({x, x, x * 1})

    assert pullback.compile(fn)(leaf()).tolist() == [4, 12]

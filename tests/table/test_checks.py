"""The place of an entry for its checks: run once, at the public call, in every mode and before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.nn
from pullback.func import jvp, vmap
from pullback.interpreters.batch_rules import dims
from pullback.ops.elementwise.value_checks import check_values
from pullback.table.checks import Titled, Written
from pullback.table.entry import TABLE, composite, constant, elementwise, linear, pointwise, special
from pullback.table.inplace import twin_of


def frames(call: Callable[[], Any]) -> tuple[Any, list[FrameType]]:
    """What a call returns, and the frames of all functions of Python that it calls."""
    found: list[FrameType] = []

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            found.append(frame)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(before)
    return result, found


def checked(call: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """What a call returns, and the tensors that were checked."""
    result, found = frames(call)
    return result, [f.f_locals["input"] for f in found if f.f_code is _check_weighted.__code__]


def _check_weighted(input: pullback.Tensor, dim: Any = 0, *, factor: float = 2.0) -> Any:
    """Public: the axis may be named by a string, and the factor has a name."""
    if factor == 0:
        raise ValueError("weighted(): factor is 0")
    return input, {"first": 0, "last": -1}.get(dim, dim), float(factor)


def weighted_rule(g: Any, input: Any, dim: Any, factor: Any) -> Any:
    return np.flip(g, dim) * (2 * factor) * input


@pytest.fixture
def weighted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``factor * input ** 2``, turned round along an axis."""

    def weighted(input: Any, dim: int, factor: float) -> Any:
        """The squares turned round."""
        return np.flip(input * input, dim) * input.dtype.type(factor)

    with monkeypatch.context() as patch:
        patch.setattr("pullback.table.entry.TABLE", {**TABLE})
        call = special(function=False, method=False, checks=_check_weighted, batch=dims("dim"), input=weighted_rule)
        yield call(weighted)


X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
ALONG_LAST = [[18.0, 8.0, 2.0], [72.0, 50.0, 32.0]]


def x(**how: Any) -> Any:
    return pullback.tensor(X, **how)


def test_checks_run_once_and_give_the_arguments_of_the_computation(weighted: Any) -> None:
    calls = [
        lambda: weighted(x(), "last"),
        lambda: weighted(x(), dim="last"),
        lambda: weighted(input=x(), dim=-1, factor=2),
        lambda: weighted(x(), axis="last"),
        lambda: weighted(x(), "last", out=pullback.empty(2, 3)),
        lambda: weighted(x(requires_grad=True), "last").detach(),
        lambda: twin_of(weighted.op)(x(), "last"),
        lambda: weighted(x(dtype=pullback.float16), "last"),
        lambda: pullback.compile(lambda t: weighted(t, "last"))(x()),
        lambda: vmap(lambda t: weighted(t, "last"))(x()),
        lambda: jvp(lambda t: weighted(t, "last"), (x(),), (x(),))[0],
    ]
    for call in calls:
        found, seen = checked(call)
        assert found.tolist() == ALONG_LAST
        assert len(seen) == 1


def test_bfloat16_is_checked_as_it_is(weighted: Any) -> None:
    pytest.importorskip("ml_dtypes")
    found, (seen,) = checked(lambda: weighted(x().bfloat16(), "last"))
    assert found.dtype is seen.dtype is pullback.bfloat16
    assert found.tolist() == ALONG_LAST


def test_derivatives_do_not_check_again(weighted: Any) -> None:
    t = x(dtype=pullback.float64, requires_grad=True)

    def twice() -> Any:
        out = weighted(t, "last", factor=3)
        g: Any = pullback.autograd.grad(out.sum(), t, create_graph=True)[0]
        return g, *pullback.autograd.grad(g.sum(), t)

    (first, second), seen = checked(twice)
    assert first.tolist() == [[6.0, 12.0, 18.0], [24.0, 30.0, 36.0]]
    assert second.tolist() == [[6.0] * 3] * 2
    assert len(seen) == 1


def test_a_transform_is_seen_by_shape_and_dtype(weighted: Any) -> None:
    _, (seen,) = checked(lambda: vmap(lambda t: weighted(t, "last"))(x()))
    assert seen.shape == (3,)
    assert seen.dtype is pullback.float32


def test_what_is_wrong_is_raised_before_anything_is_written(weighted: Any) -> None:
    t, out = x(), pullback.zeros(2, 3)
    with pytest.raises(ValueError, match=r"^weighted\(\): factor is 0$"):
        twin_of(weighted.op)(t, "last", factor=0)
    with pytest.raises(ValueError, match="factor is 0"):
        weighted(t, "last", factor=0, out=out)
    assert t.tolist() == X
    assert t._version == 0
    assert not out.any()


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, r"^weighted\(\) missing 1 required positional argument: 'input'"),
        ((X,), {}, r"^weighted\(\): expected argument 'input' to be a Tensor, found list"),
        ((None,), {"dim": 0}, r"^weighted\(\): expected argument 'input' to be a Tensor, found NoneType"),
        ((0, 0, 1.0), {}, r"argument 'input' to be a Tensor, found int 0|takes from 1 to 2 positional arguments"),
        ((x(), 0, 1.0), {}, r"^weighted\(\) takes from 1 to 2 positional arguments but 3 were given"),
        ((x(),), {"nonsense": 1}, r"^weighted\(\) got an unexpected keyword argument 'nonsense'"),
        ((x(),), {"dim": 0, "axis": 0}, r"^weighted\(\) got multiple values for one argument"),
    ],
)
def test_a_wrong_call_names_the_public_arguments(weighted: Any, args: Any, kwargs: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        weighted(*args, **kwargs)


def test_an_error_of_the_computation_names_the_operation(weighted: Any) -> None:
    with pytest.raises(IndexError, match=r"^weighted\(\): Dimension out of range"):
        weighted(x(), 5)


def test_a_class_derived_from_tensor_gets_the_call_as_it_was(weighted: Any) -> None:
    log = []

    class Logged(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((func, args[1:], kwargs))
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[misc]

    t = x().as_subclass(Logged)
    found, seen = checked(lambda: weighted(t, "last", factor=2))
    assert found.tolist() == ALONG_LAST
    assert (weighted, ("last",), {"factor": 2}) in log
    assert len(seen) == 1


def test_the_signature_and_the_words_are_public(weighted: Any) -> None:
    assert weighted.op.public == ("input", "dim", "factor")
    assert weighted.op.params == ("input", "dim", "factor")
    assert weighted.__name__ == weighted.op.unchecked.__name__ == "weighted"
    assert weighted.__doc__ == "The squares turned round."
    assert weighted(x(requires_grad=True)).grad_fn.name() == "WeightedBackward0"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.table.entry.TABLE", {**TABLE})


@pytest.mark.usefixtures("table")
def test_none_means_the_arguments_that_were_passed() -> None:
    def check(input: pullback.Tensor, n: int = 3) -> Any:
        assert input.shape == (2, 3)

    @constant(function=False, method=False, checks=check)
    def counted(input: Any, n: int = 3) -> Any:
        return np.full(input.shape, n)

    for args, kwargs, n in (((), {}, 3), ((4,), {}, 4), ((), {"n": 5}, 5)):
        assert counted(x(), *args, **kwargs).tolist() == [[n] * 3] * 2


@pytest.mark.usefixtures("table")
def test_every_way_to_enter_an_elementwise_operation_takes_checks() -> None:
    def check(input: pullback.Tensor, other: Any) -> Any:
        if other == 0:
            raise ValueError("other is 0")
        return input, other + 1

    times = elementwise(
        "times_one_more",
        np.multiply,
        "The product.",
        numpy={},
        method=False,
        function=False,
        checks=check,
        input=lambda g, other: g * other,
        other=lambda g, input: g * input,
    )

    @pointwise(method=False, function=False, checks=check, input=lambda g, other: g * other)
    def scaled(input: Any, other: Any) -> Any:
        return input * input.dtype.type(other)

    for call in (times, scaled):
        t = x(requires_grad=True)
        found = call(t, 2)
        assert found.tolist() == [[3.0, 6.0, 9.0], [12.0, 15.0, 18.0]]
        found.sum().backward()
        assert t.grad.tolist() == [[3.0] * 3] * 2
        assert vmap(lambda row, call=call: call(row, other=2))(x()).tolist() == found.tolist()
        with pytest.raises(ValueError, match="other is 0"):
            call(t, 0)


@pytest.mark.usefixtures("table")
def test_the_result_may_be_written_into_the_first_argument() -> None:
    def check(input: pullback.Tensor, inplace: bool = False) -> Any:
        return Written((input,)) if inplace else (input,)

    @pointwise(method=False, function=False, checks=check, input=lambda g: 2 * g)
    def doubled(input: Any) -> Any:
        return input + input

    t = x(requires_grad=True)
    for wanted in (lambda u: doubled(u, True), lambda u: doubled(u, inplace=True)):
        u = t * 1
        assert wanted(u) is u
        assert u._version == 1
        assert u.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]
        g: Any = pullback.autograd.grad(u.sum(), t)[0]
        assert g.tolist() == [[2.0] * 3] * 2
        assert vmap(lambda row, wanted=wanted: wanted(row * 1))(x()).tolist() == u.tolist()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        doubled(t, True)
    assert t.tolist() == X


@pytest.mark.usefixtures("table")
def test_what_has_no_place_for_checks_says_so() -> None:
    with pytest.raises(TypeError, match="'twice': the body of a composite checks its own arguments"):

        @composite(method=False, function=False, checks=lambda input: None)
        def twice(input: Any) -> Any:
            return input + input

    with pytest.raises(TypeError, match="'named': the arguments of a computation with checks all have a place"):

        @constant(method=False, function=False, checks=lambda input, *, n=1: None)
        def named(input: Any, *, n: int = 1) -> Any:
            return input * n


def test_a_product_is_its_checks_the_computation_and_the_forward() -> None:
    linear, input, weight = pullback.nn.functional.linear, pullback.ones(4, 3), pullback.ones(2, 3)
    _, found = frames(lambda: linear(input, weight))
    names = [f.f_code.co_name for f in found]
    wanted = ["linear", "_check_linear", "apply", "linear"]
    assert [name for name in names if name in wanted] == wanted


def _no_negative(values: Any) -> None:
    if np.any(np.less(values, 0)):
        raise ValueError("lengths(): expected no negative one")


def _root_of_first(t: Any) -> Any:
    return check_values(_no_negative, t[..., :1]).sqrt()


GOOD, BAD = [[4.0, 1.0], [9.0, 1.0]], [[4.0, 1.0], [-9.0, 1.0]]


@pytest.mark.parametrize(
    "mode",
    [
        _root_of_first,
        vmap(_root_of_first),
        vmap(vmap(lambda t: check_values(_no_negative, t))),
        lambda t: jvp(_root_of_first, (t,), (-t,))[0],
        pullback.func.grad(lambda t: _root_of_first(t).sum()),
        lambda t: pullback.autograd.functional.hessian(lambda t: _root_of_first(t).sum(), t),
        pullback.compile(_root_of_first),
        lambda t: _root_of_first(t.half()),
        lambda t: _root_of_first(pullback.nn.Parameter(t)),
    ],
)
def test_values_are_checked_in_every_mode(mode: Callable[[Any], Any]) -> None:
    mode(pullback.tensor(GOOD))
    for _ in range(2):  # a compiled function checks in each call
        with pytest.raises(ValueError, match=r"^lengths\(\): expected no negative one$"):
            mode(pullback.tensor(BAD))


def test_a_check_of_values_does_not_look_at_tangents() -> None:
    found = jvp(_root_of_first, (pullback.tensor(GOOD),), (pullback.tensor([[-4.0, 0.0], [-6.0, 0.0]]),))
    assert [t.tolist() for t in found] == [[[2.0], [3.0]], [[-1.0], [-1.0]]]


@pytest.mark.parametrize("transform", [pullback.func.grad, pullback.func.jacfwd, lambda f: vmap(pullback.func.grad(f))])
def test_a_check_of_values_passes_gradients_on(transform: Any) -> None:
    found = transform(lambda t: (check_values(_no_negative, t) ** 2).sum())(pullback.tensor(GOOD))
    assert found.tolist() == [[8.0, 2.0], [18.0, 2.0]]


def test_bfloat16_values_are_checked() -> None:
    pytest.importorskip("ml_dtypes")
    assert _root_of_first(pullback.tensor(GOOD).bfloat16()).dtype is pullback.bfloat16
    with pytest.raises(ValueError, match="no negative"):
        _root_of_first(pullback.tensor(BAD).bfloat16())


def test_istft_differentiates_by_its_window() -> None:
    spectrum = pullback.stft(pullback.randn(32), 8, 2, window=pullback.ones(8), return_complex=True)
    found = jvp(lambda w: pullback.istft(spectrum, 8, 2, window=w), (pullback.ones(8),), (pullback.zeros(8),))[1]
    assert not found.any()


@pytest.mark.parametrize("through", [vmap, pullback.compile])
def test_an_embedding_of_no_row_is_refused_in_every_mode(through: Callable[..., Any]) -> None:
    rows = through(lambda i: pullback.nn.functional.embedding(i, pullback.eye(3)))
    assert rows(pullback.tensor([[0, 1], [2, 1]]))[1].tolist() == [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    for outside in (-1, 3):
        with pytest.raises(IndexError, match="positions in"):
            rows(pullback.tensor([[0, 1], [2, outside]]))


def test_a_negative_variance_is_refused_in_every_mode() -> None:
    losses = vmap(lambda v: pullback.nn.functional.gaussian_nll_loss(v, v, v))
    with pytest.raises(ValueError, match="at least 0"):
        losses(pullback.tensor([[1.0, 1.0], [1.0, -1.0]]))


def test_checks_may_name_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(input: pullback.Tensor, how: str = "") -> Any:
        return Titled("TwiceBackward1", (input,)) if how else (input,)

    def twice(input: Any) -> Any:
        """Twice the input."""
        return input * 2

    with monkeypatch.context() as patch:
        patch.setattr("pullback.table.entry.TABLE", {**TABLE})
        call = linear(function=False, method=False, checks=check, batch="leading", input=lambda g: g * 2)(twice)
        t = x(requires_grad=True)
        found = [call(t), call(t, "x"), call(t, how="x"), vmap(lambda t: call(t, "x"))(t)]
        assert all(f.tolist() == (2 * t).tolist() for f in found)
        assert [f.grad_fn.name() for f in found[:3]] == ["TwiceBackward0", "TwiceBackward1", "TwiceBackward1"]
        found[1].sum().backward()
        assert found[1].grad_fn.name() == "TwiceBackward1"

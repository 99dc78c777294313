"""Anomaly mode: which forward call a failing backward belongs to, and gradients that are NaN."""

from __future__ import annotations

import re
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function, detect_anomaly, set_detect_anomaly
from pullback.autograd.api import FirstPasses
from pullback.diagnose.listeners import TENSORS
from pullback.diagnose.nans import all_finite
from tests.side_by_side import leaf, outcome


class Broken(Function):
    """Its backward fails."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise ArithmeticError("broken")


def _forward(x: Any) -> Any:
    return Broken.apply(x * 2)  # the line that is to be named


def _warned(act: Callable[[], Any], error: type[Exception]) -> str:
    """The warnings of something that raises an error, and the error's message."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(error) as raised:
            act()
    return "\n".join([*(str(w.message) for w in caught), str(raised.value)])


def test_the_forward_call_is_named() -> None:
    x = pullback.ones(2, requires_grad=True)
    with detect_anomaly():
        y = _forward(x).sum()
        text = _warned(y.backward, ArithmeticError)
    assert "Error detected in BrokenBackward. Traceback of forward call that caused the error" in text
    assert "return Broken.apply(x * 2)  # the line that is to be named" in text
    assert f'File "{__file__}"' in text
    assert "pullback/autograd" not in text  # the library's own frames are left out


def test_a_nan_is_placed() -> None:
    x = pullback.tensor([1.0, 0.0, 4.0], requires_grad=True)
    with detect_anomaly():
        y = (x.sqrt() * 0).sum()
        text = _warned(y.backward, RuntimeError)
    assert "Function 'SqrtBackward0' returned nan values in its 0th output: 1 of 3 elements, first at index [1]" in text
    assert "The forward call:" in text
    assert __file__ in text
    assert x.grad is None


def test_without_forward_information_that_is_said() -> None:
    y = _forward(pullback.ones(2, requires_grad=True)).sum()
    with detect_anomaly():
        text = _warned(y.backward, ArithmeticError)
    assert "No forward pass information available" in text


@pytest.mark.torch
@pytest.mark.parametrize("lib", ["pullback", "torch"])
def test_where_warnings_are_errors_the_error_is_still_that_of_the_backward(lib: Any, capsys: Any) -> None:
    lib = pytest.importorskip(lib)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with lib.autograd.detect_anomaly():
            y = leaf(lib, [1.0, 2.0]) + 1
            z = y**2
            y += 1
            warnings.simplefilter("error")
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                z.sum().backward()
    assert "Error detected in PowBackward0" in capsys.readouterr().err


def test_the_backward_call_that_made_a_node_is_named() -> None:
    x = pullback.tensor([0.0, 1.0], requires_grad=True)
    with detect_anomaly(check_nan=True):
        y = (x**1.5).sum()
        (g,) = pullback.autograd.grad(y, x, create_graph=True)
        text = _warned((g * pullback.tensor([0.0, 1.0])).sum().backward, RuntimeError)
    assert "Previous calculation was induced by" in text


def test_anomaly_mode_belongs_to_a_thread() -> None:
    found: list[bool] = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: found.append(pullback.is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert found == [False]


def test_the_mode_is_left_after_an_error() -> None:
    with pytest.raises(ArithmeticError), set_detect_anomaly(True):
        raise ArithmeticError
    assert not pullback.is_anomaly_enabled()
    x = pullback.ones(1, requires_grad=True)
    assert "origin" not in (x * 2).grad_fn.metadata


# where a NaN came from ------------------------------------------------------------------------------------------------


def _refused(program: Callable[[], Any], **options: Any) -> str:
    """The message of the error that a program ends with in anomaly mode."""
    with detect_anomaly(**options), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError) as raised:
            program()
    return str(raised.value)


def test_a_nan_of_the_backward_is_told_with_the_values_there() -> None:
    x = pullback.tensor([1.0, 0.0, 4.0], requires_grad=True)
    text = _refused(lambda: (x.sqrt() * 0).sum().backward())
    assert "first at index [1]" in text
    assert "There: out = 0.0, the gradient that came in = 0.0." in text
    assert "0 * inf is nan" in text


def test_a_nan_of_the_forward_is_told_with_its_operation_and_line() -> None:
    x = pullback.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True)

    def program() -> None:
        y = x.log()  # the first
        ((y * 2).exp() + x).sum().backward()

    text = _refused(program)
    assert "The forward pass made nan, and the result depends on it" in text
    assert "log() returned nan for 1 of 4 elements, first at index [1, 1], from -1.0" in text
    assert "y = x.log()  # the first" in text
    assert "log needs an input > 0" in text


def test_the_infinity_behind_a_nan_is_told_too() -> None:
    x = pullback.tensor([1.0, 1000.0], requires_grad=True)

    def program() -> None:
        h = x.exp()  # overflows
        (h - h).sum().backward()  # inf - inf

    text = _refused(program)
    assert "sub() returned nan for 1 of 2 elements, first at index [1], from inf, inf" in text
    assert "where before that exp() returned inf" in text
    assert "from 1000.0" in text
    assert "h = x.exp()  # overflows" in text
    assert "inf - inf is nan" in text


def test_where_many_elements_make_one_their_range_is_told() -> None:
    x = pullback.tensor([1000.0, 1.0], requires_grad=True)
    signs = pullback.tensor([[1.0, 0.0], [0.0, -1.0]])
    text = _refused(lambda: (x.exp() @ signs).sum().backward())
    assert "returned nan" in text
    assert "Tensor of float32[2] in [2.71" in text
    assert ", inf]" in text


def test_elements_that_only_happen_to_have_the_same_index_are_not_told() -> None:
    x = pullback.tensor([0.0, 0.0], requires_grad=True)
    other = pullback.tensor([[1.0, float("inf")], [1.0, 1.0]])
    text = _refused(lambda: (x @ other * 0).sum().backward())
    assert "the gradient that came in" not in text


def test_a_nan_that_came_with_the_data() -> None:
    x, data = pullback.ones(2, requires_grad=True), pullback.tensor([1.0, float("nan")])
    text = _refused(lambda: (x * data).sum().backward())
    assert "the operand Tensor of float32[2] came with nan for 1 of 2 elements, first at index [1]" in text

    def program() -> None:
        made = pullback.tensor([1.0, float("nan")])  # here
        (x * made).sum().backward()

    text = _refused(program)
    assert "tensor() came with nan" in text
    assert 'made = pullback.tensor([1.0, float("nan")])  # here' in text


@pytest.mark.parametrize("name", ["sqrt", "log"])
def test_a_where_that_hides_the_cause(name: str) -> None:
    x = pullback.tensor([4.0, 0.0], requires_grad=True)

    def program() -> None:
        y = getattr(x, name)()
        z = pullback.where(x > 0, y, 0.0)  # the choice
        z.sum().backward()

    text = _refused(program)
    assert "the branch not taken of the `where` at" in text
    assert "z = pullback.where(x > 0, y, 0.0)  # the choice" in text
    assert "both branches are differentiated" in text
    safe = f"x_safe = numpy.where(condition, x, 1.0) before, y = numpy.where(condition, {name}(x_safe), 0.0) after"
    assert safe in text


def test_a_where_that_the_result_goes_into_as_a_whole_is_not_blamed() -> None:
    x = pullback.tensor([2.0, 1.0, 0.0], requires_grad=True)

    def program() -> None:
        longest = x - 0.1 / x.sqrt().max()
        pullback.where(longest > 0, longest, 1.0).sum().backward()

    text = _refused(program)
    assert "SqrtBackward0" in text
    assert "the gradient that came in = 0.0" in text
    assert "the branch not taken" not in text


def test_the_safe_form_is_safe() -> None:
    x = pullback.tensor([4.0, 0.0], requires_grad=True)
    with detect_anomaly():
        x_safe = pullback.where(x > 0, x, 1.0)
        pullback.where(x > 0, x_safe.sqrt(), 0.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.25, 0.0]


def test_a_nan_that_is_masked_is_no_error() -> None:
    x = pullback.tensor([4.0, float("nan")], requires_grad=True)
    with detect_anomaly():
        (x * 2).nansum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 0.0]


def test_infinite_gradients_are_an_error_if_asked_for() -> None:
    x = pullback.tensor([1.0, 0.0], requires_grad=True)
    with detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x.sqrt().sum().backward()
    text = _refused(lambda: x.sqrt().sum().backward(), check_inf=True)
    assert "Function 'SqrtBackward0' returned inf values in its 0th output: 1 of 2 elements, first at index [1]" in text
    assert "There: out = 0.0, the gradient that came in = 1.0." in text


class Reciprocal(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return 1 / x  # in forward

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return -g / x**2 * x.sum() * 0


def test_a_nan_of_a_function() -> None:
    x = pullback.tensor([1.0, 0.0], requires_grad=True)
    text = _refused(lambda: Reciprocal.apply(x).sum().backward())
    assert "Function 'ReciprocalBackward' returned nan values" in text
    assert "There: saved_tensors[0] = 0.0, the gradient that came in = 1.0." in text
    assert "return 1 / x  # in forward" in text


class Attributes(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.saved, ctx.plan, ctx.op = np.ones(2), "plan", "op"
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * float("nan")


def test_any_attribute_may_be_on_ctx() -> None:
    x = pullback.ones(2, requires_grad=True)
    text = _refused(lambda: Attributes.apply(x).sum().backward())
    assert "Function 'AttributesBackward' returned nan values in its 0th output: 2 of 2 elements" in text


def test_after_a_forward_nan_the_mode_can_be_used_again() -> None:
    x = pullback.tensor([-1.0], requires_grad=True)
    with detect_anomaly():
        with pytest.raises(RuntimeError, match="forward pass made nan"):
            x.log().sum().backward()
        (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "bfloat16"])
def test_every_dtype_is_looked_at(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = pullback.tensor([1.0, 0.0], dtype=getattr(pullback, dtype), requires_grad=True)
    text = _refused(lambda: (x.sqrt() * 0).sum().real.backward())
    assert "nan" in text


@pytest.mark.parametrize("shape", [(0,), (), (3, 4), (5000,)])
def test_all_finite(shape: tuple[int, ...]) -> None:
    for dtype in (np.float16, np.float32, np.float64, np.complex64):
        a = np.full(shape, 1.0, dtype)
        assert all_finite(a)
        assert all_finite(np.full(shape, np.finfo(dtype).max, dtype))  # whose squares overflow
        for bad in (np.nan, np.inf, -np.inf):
            if a.size:
                b = a.copy()
                b.flat[-1] = bad
                assert not all_finite(b)
                assert not all_finite(b.T[..., ::-1] if b.ndim else b)


@pytest.mark.torch
def test_where_torch_lets_a_nan_of_the_forward_pass() -> None:
    def program(lib: Any) -> Any:
        x = leaf(lib, [4.0, -1.0])
        with lib.autograd.detect_anomaly(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x.log().sum().backward()
        return x.grad

    assert outcome(program, pullback) == ("raises", "RuntimeError")
    assert outcome(program, pytest.importorskip("torch"))[0] == "tensor"


class Spoils(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * float("nan")


def test_a_nan_of_a_functions_own_backward() -> None:
    x = pullback.ones(3, requires_grad=True)
    with (
        pytest.warns(UserWarning, match="Error detected in SpoilsBackward") as warned,
        detect_anomaly(),
        pytest.raises(RuntimeError, match=r"look at Spoils\.backward \(.*test_anomaly\.py:\d+\)") as raised,
    ):
        Spoils.apply(x).sum().backward()
    assert "keep the operands finite" not in str(raised.value)
    assert all(w.filename == __file__ for w in warned if "Error detected" in str(w.message))


def test_an_infinity_has_its_sign() -> None:
    x = pullback.tensor([0.0, 1.0], requires_grad=True)
    words = r"log\(\) returned -inf for 1 of 2 elements"
    with np.errstate(all="ignore"), detect_anomaly(), pytest.raises(RuntimeError, match=words):
        (x.log() * 0).sum().backward()


def test_a_nan_is_known_however_many_tensors_were_made_before_it_that_no_node_took() -> None:
    x = leaf(pullback, [-1.0])
    with detect_anomaly():
        with pullback.no_grad():
            kept = [pullback.tensor(float("nan")) for _ in range(1001)]
        y = x.log()
        with pytest.raises(RuntimeError, match="made nan"), warnings.catch_warnings(action="ignore"):
            y.backward()
    assert len(kept) == 1001


def test_a_thread_that_ends_in_anomaly_mode_listens_no_more() -> None:
    thread = threading.Thread(target=lambda: set_detect_anomaly(True))
    thread.start()
    thread.join()
    with detect_anomaly():
        pass
    assert TENSORS._users.discard("nobody")


# The first passes of a process ----------------------------------------------------------------------------------------


@pytest.fixture
def first_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has made no pass."""
    monkeypatch.setattr(FirstPasses, "left", 100)


def _of_missing_data(p: Any) -> Any:
    return np.nansum(np.array([1.0, np.nan, 3.0]) * np.log(p) - p)


def _at_a_flat_place(p: Any) -> Any:
    return np.sqrt((p - p) ** 2).sum()


def _of_a_branch_not_taken(p: Any) -> Any:
    return np.where(p > 5, np.sqrt(p - 5), 0.0).sum()


SILENT = [_of_missing_data, _at_a_flat_place, _of_a_branch_not_taken]


def _gradient(f: Any, way: str) -> Any:
    p = pullback.tensor([2.0, 3.0, 4.0], dtype=pullback.float64, requires_grad=True)
    if way == "backward()":
        f(p).backward()
        return p.grad
    if way == "create_graph":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Using backward")
            f(p).backward(create_graph=True)
        return p.grad
    return pullback.autograd.grad(f(p), p)[0] if way == "autograd.grad" else pullback.func.grad(f)(p)


WAYS = ["backward()", "create_graph", "autograd.grad", "func.grad"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", SILENT)
def test_a_nan_gradient_of_a_finite_value_is_told_of_once(f: Any, way: str, first_passes: None) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's own, in frames of the library
        for _ in range(2):
            assert np.isnan(_gradient(f, way).detach().numpy()).any()
    (one,) = caught
    assert one.filename == __file__
    assert re.search(r"A gradient is nan in \d of 3 elements(.|\n)*detect_anomaly", str(one.message))


@pytest.mark.parametrize("way", WAYS)
def test_a_nan_gradient_is_expected_of_what_is_not_finite(way: str, first_passes: None) -> None:
    for f in (lambda p: (p - p).log().sum(), lambda p: (p * float("nan")).sum(), lambda p: (p * 2).sum()):
        _gradient(f, way)  # a warning would be an error
    p = pullback.ones(2, requires_grad=True)
    (p * 2).backward(pullback.tensor([1.0, float("nan")]))
    assert FirstPasses.left == 96


def test_the_hundredth_pass_is_the_last_that_is_looked_at(first_passes: None) -> None:
    for _ in range(100):
        _gradient(lambda p: (p * 2).sum(), "backward()")
    assert FirstPasses.left == 0
    _gradient(_of_missing_data, "backward()")
    assert FirstPasses.left == 0


@pytest.mark.parametrize("f", SILENT)
def test_anomaly_mode_names_the_line_of_each(f: Any) -> None:
    text = _refused(lambda: _gradient(f, "backward()"))
    assert f"in {f.__name__}: return" in text
    assert ("~numpy.isnan(data)" in text) == (f is _of_missing_data)


def test_the_infinity_of_a_pass_behind_a_nan_is_told_with_its_own_line() -> None:
    x = pullback.zeros(3, dtype=pullback.float64, requires_grad=True)

    def loss() -> Any:
        squares = x * x
        lengths = np.sqrt(squares + 2 * squares)  # here
        return lengths.sum()

    text = _refused(lambda: loss().backward())
    assert "Function 'MulBackward0' returned nan" in text
    assert "The infinity was made in this pass by 'SqrtBackward0', of a finite gradient" in text
    assert "lengths = np.sqrt(squares + 2 * squares)  # here" in text
    assert "write sqrt(x + 1e-12)" in text
    held = weakref.ref(pullback.ones(1, requires_grad=True).sqrt().grad_fn)
    assert held() is None


def test_no_other_infinity_is_blamed_for_a_nan() -> None:
    x = pullback.zeros(2, requires_grad=True)
    y = pullback.tensor([0.0, 1.0], requires_grad=True)

    def loss() -> Any:
        return np.sqrt(y).sum() + np.arctan2(x, 2 * x).sum() * float("inf") * 0

    text = _refused(lambda: loss().backward())
    assert "'SqrtBackward0'" not in text

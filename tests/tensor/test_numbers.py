"""Tensors as Python numbers: a warning outside of transforms, and an error inside, where a derivative would be lost."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func, kept_gradients
from pullback.autograd import forward_ad, record_origins
from pullback.inspect import explain

TWICE = """
import warnings, pullback
x = pullback.tensor([2.0], requires_grad=True)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    with pullback.no_grad():
        float(x)
    assert not said
    assert (float(x), int(x), complex(x), float(x)) == (2.0, 2, 2 + 0j, 2.0)
(one,) = said
print(one.category.__name__, one.filename, one.lineno, one.message)
"""


def test_outside_of_transforms_it_warns_once_in_the_users_line() -> None:
    run = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=True)
    assert run.stdout == (
        "UserWarning <string> 9 Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
        "behavior.\nConsider using tensor.detach() first.\n"
        "  What is computed of the number has no gradient, or a wrong one. This is said once in a process: of other "
        "lines with float(), int() or complex() nothing is said, unless pullback.set_warn_always(True) is called "
        "before.\n"
        "  What to do: write numpy.sin(t) for math.sin(t), t * numpy.ones(n) for array.fill(t) or numpy.full(n, t), "
        "a + 1j * b for complex(a, b), and leave out float().\n"
        "  For the values alone, use tensor.detach().numpy().\n"
    )


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_quotients_with_remainders_and_rounding_as_of_numbers(dtype: Any) -> None:
    """NumPy's scalars have `divmod` and `round`; PyTorch's tensors have not."""
    for value in (7, -7.25, 2.5, 0):
        number = dtype(value)
        t = pullback.tensor(number)
        found = divmod(t, 2), divmod(t, -3), divmod(15, t) if value else divmod(t, 4), divmod(t, np.float64(0.5))
        expected = divmod(number, 2), divmod(number, -3), divmod(15, number) if value else divmod(number, 4)
        expected += (divmod(number, np.float64(0.5)),)
        assert [tuple(v.item() for v in pair) for pair in found] == [tuple(map(float, pair)) for pair in expected]
        for digits in (1, 0):
            assert isinstance(round(t, digits), pullback.Tensor)
            assert round(t, digits).item() == round(number, digits)
        assert type(round(t)) is int
        assert round(t) == round(number)
    assert round(pullback.tensor([1.26, 2.5], dtype=pullback.float64), 1).tolist() == [1.3, 2.5]
    assert round(pullback.tensor(126.0), -1).item() == 130.0
    with pytest.raises(TypeError, match=r"write numpy.round\(t\)"):
        round(pullback.ones(2))
    with pytest.raises(TypeError):
        divmod(pullback.ones(2), "a")


def test_a_remainder_has_a_gradient_and_a_rounded_number_warns() -> None:
    x = pullback.tensor(3.7, dtype=pullback.float64, requires_grad=True)
    whole, rest = divmod(x, 0.5)
    assert (whole.item(), round(rest, 3).item()) == (7.0, 0.2)
    assert pullback.autograd.grad(rest, x)[0].item() == 1.0
    assert func.grad(lambda y: divmod(y, x.detach())[1])(pullback.tensor(9.0, dtype=pullback.float64)).item() == 1.0
    assert pullback.autograd.grad(round(x, 1), x)[0].item() == 0.0
    kept_gradients._TOLD_PLACES.clear()
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True"):
        assert round(x) == 4


ALWAYS = """
import warnings, pullback
x = pullback.tensor([2.0], requires_grad=True)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    float(x)
    pullback.set_warn_always(True)
    for k in range(2):
        float(x)
    int(x), complex(x, 1.0)
    "%g" % x
    pullback.set_warn_always(False)
    float(x)
print([one.lineno for one in said], ["once in a process" in str(one.message) for one in said])
"""


def test_it_warns_each_time_where_that_is_asked_for() -> None:
    run = subprocess.run([sys.executable, "-c", ALWAYS], capture_output=True, text=True, check=True)
    assert run.stdout == "[6, 9, 9, 10, 10] [True, False, False, False, False]\n"


WRITTEN = """
import math, warnings, numpy as np, pullback
from math import exp
from scipy.integrate import quad
x, out = pullback.tensor([2.0, 3.0], requires_grad=True), np.zeros(2)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    "%g %.3f" % (x[0], x[1]), f"{x[0]:g}"
    float(x[0])
    float(x[1])
    for k in range(2):
        np.float64(x[k])
        np.array([1.0, 2.0]).fill(x[k])
        np.fromiter((v for v in x), float)
    for k in range(2):
        out[k] = x[k] * 2
        out[k] += x[k]
    out[0] = out[1]
    for k in range(2):
        math.sin(x[k]) + math.cos(x[k])
        exp(x[k])
        math.isfinite(x[k]), math.floor(x[k]), int(x[k])
    quad(lambda s: x[0] * s, 0.0, 1.0)
    quad(lambda s: x[1] * s, 0.0, 1.0)
print([one.lineno for one in said], out)
"""


def test_each_line_that_loses_a_gradient_for_certain_is_told() -> None:
    """What writes a number into an array, and what `math` computes from it, and a solver of SciPy's."""
    pytest.importorskip("scipy")
    run = subprocess.run([sys.executable, "-c", WRITTEN], capture_output=True, text=True, check=True)
    assert run.stdout == "[9, 12, 13, 14, 16, 17, 20, 21, 23, 24] [9. 9.]\n"


MANY = """
import warnings, math, numpy as np, pullback, scipy.sparse
p = pullback.tensor([2.0, 3.0], dtype=pullback.float64, requires_grad=True)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    m = scipy.sparse.lil_matrix((2, 2))
    m[0, 0] = p[0]
    m[0, 1] = p[1]
    m[1, 0] = p[1]
    math.sin(p[0])
    math.cos(p[0])
    s = old = p[0] * 1
    for k in range(2):
        s += p[0]
    s += p[1]
    a = p * 1
    x, y = a[0], a[1]
    a[:] = 1.0
    x + 1
    y + 1
    u, v = (p * np.ones((2, 2))).max(axis=0)
    u, v = (p * np.ones((2, 2))).max(axis=0)
for one in said:
    print(one.lineno, one.message)
"""


def test_the_lines_after_the_first_of_a_kind_get_one_line() -> None:
    pytest.importorskip("scipy")
    run = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    told = re.split(r"^(?=\d+ )", run.stdout, flags=re.MULTILINE)[1:]
    lines = [int(text.partition(" ")[0]) for text in told]
    assert lines == [7, 8, 9, 10, 11, 14, 14, 15, 19, 20, 21, 22]
    first = {8: 7, 9: 7, 11: 10, 15: 14, 20: 19, 22: 21}
    for line, text in zip(lines, told, strict=True):
        if line in first:
            whole = next(other for other in told if other.startswith(f"{first[line]} "))
            begin = text.removeprefix(f"{line} ").removesuffix(f": what to do was said for <string>:{first[line]}.\n")
            assert "\n" not in begin
            assert whole.removeprefix(f"{first[line]} ").startswith(f"{begin}.")
        else:
            assert "What to do" in text


def test_a_copy_that_is_called_by_its_name_at_the_outermost_place_is_told() -> None:
    program = "import pullback; x = pullback.ones(2, requires_grad=True) * 2; y = x.__copy__(); print(y.is_leaf)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "True\n"
    assert "copy.copy() of a Tensor" in run.stderr


def test_an_array_of_what_requires_grad_is_still_refused() -> None:
    with pytest.raises(RuntimeError, match="its gradient would be lost"):
        np.asarray(pullback.ones(2, requires_grad=True))


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "int": int,
    "complex": complex,
    "math.sin": math.sin,
    "math.floor": math.floor,
    "np.float64": np.float64,
    "np.float32": np.float32,
    "np.asarray": np.asarray,
    "np.array": lambda t: np.array([t, t]),
}
TRANSFORMS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: func.grad(f)(pullback.tensor(2.0)),
    "vjp": lambda f: func.vjp(f, pullback.tensor(2.0)),
    "jacrev": lambda f: func.jacrev(f)(pullback.tensor(2.0)),
    "jvp": lambda f: func.jvp(f, (pullback.tensor(2.0),), (pullback.tensor(1.0),)),
    "jacfwd": lambda f: func.jacfwd(f)(pullback.tensor(2.0)),
    "hessian": lambda f: func.hessian(f)(pullback.tensor(2.0)),
    "linearize": lambda f: func.linearize(f, pullback.tensor(2.0)),
    "vmap": lambda f: func.vmap(f)(pullback.ones(3)),
    "grad of jvp": lambda f: func.grad(lambda x: func.jvp(f, (x,), (x,))[1])(pullback.tensor(2.0)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_inside_of_a_transform_it_is_an_error(transform: str, conversion: str) -> None:
    def f(x: Any) -> Any:
        y = x * 1
        CONVERSIONS[conversion](y)
        return y * 2

    with pytest.raises(RuntimeError, match="What to do"):
        TRANSFORMS[transform](f)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_write_into_an_array_says_why_in_its_cause(transform: str) -> None:
    """NumPy replaces the error of a write of one element; what it replaced is the cause, which is printed first."""

    def f(x: Any) -> Any:
        np.zeros(3)[0] = x * 1
        return x * 2

    with pytest.raises((RuntimeError, ValueError)) as error:
        TRANSFORMS[transform](f)
    said = error.value if isinstance(error.value, RuntimeError) else error.value.__cause__
    assert isinstance(said, RuntimeError)
    assert "What to do" in str(said)


def test_forward_mode_by_dual_numbers() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(pullback.tensor(2.0), pullback.tensor(1.0))
        with pytest.raises(RuntimeError, match="its tangent would be lost"):
            float(dual)
        with forward_ad._set_fwd_grad_enabled(False):
            assert float(dual) == 2.0


def test_a_constant_of_a_transform_is_a_number() -> None:
    constant = pullback.tensor(3.0)

    def f(x: Any) -> Any:
        return x * float(constant) * float((x * 1).detach()) * x.item()

    assert func.grad(f)(pullback.tensor(2.0)).item() == 12.0
    assert func.jvp(f, (pullback.tensor(2.0),), (pullback.tensor(1.0),))[1].item() == 12.0


@pytest.mark.parametrize("convert", [float, int, complex])
def test_explain_finds_a_loss_in_a_number(convert: Callable[[Any], Any]) -> None:
    with record_origins(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = pullback.tensor(2.0, requires_grad=True)
        y = pullback.tensor(float(abs(convert(x))))
        found = str(explain(y))
    assert f"{convert.__name__}() of a Tensor of float32[]" in found

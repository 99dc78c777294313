"""NumPy code that would lose a gradient: what the error says to write instead is run, and keeps it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback


class Case(NamedTuple):
    """Code that is refused, a pattern that its error has, and the code that the error says to write instead."""

    written: str
    says: str
    instead: str


NUMPY = [
    Case("np.array([t[0], t[1]])", r"write numpy.stack\(\[a, b\]\)", "np.stack([t[0], t[1]])"),
    Case("np.array([[t[0], 0.0], [0.0, t[1]]])", "numpy.stack", "np.stack([t[0] * np.ones(2), t[1] * np.ones(2)])"),
    Case("np.asarray(t)", r"t for numpy.asarray\(t\)", "t"),
    Case("t.numpy()", r"call NumPy's functions on the Tensor itself", "np.sin(t)"),
    Case(
        "out = np.zeros(3); out[:] = t; out",
        r"numpy.zeros_like\(t, float, shape=",
        "out = np.zeros_like(t); out[:] = t; out",
    ),
    Case(
        "out = np.zeros(3); out[1:] = t[1:] * 2; out",
        r"numpy.zeros_like\(t, float, shape=",
        "out = np.zeros_like(t, float, shape=3); out[1:] = t[1:] * 2; out",
    ),
    Case("out = np.zeros(3); out += t; out", r"write a = a \+ t for a \+= t", "out = np.zeros(3); out = out + t; out"),
]

SCIPY = [
    Case("scipy.linalg.cholesky(A)", r"call pullback.scipy.linalg.cholesky", "pullback.scipy.linalg.cholesky(A)"),
    Case("scipy.linalg.solve(A, t[:2])", "call pullback.scipy.linalg.solve", "pullback.scipy.linalg.solve(A, t[:2])"),
    Case("scipy.stats.norm.logpdf(t)", r"call pullback.scipy.stats.norm.logpdf", "pullback.scipy.stats.norm.logpdf(t)"),
    Case(
        "scipy.stats.gamma(2.0).logpdf(t)",
        r"call pullback.scipy.stats.gamma.logpdf",
        "pullback.scipy.stats.gamma.logpdf(t, 2.0)",
    ),
    Case(
        "scipy.stats.multivariate_normal.logpdf(t[:2], cov=A)",
        r"call pullback.scipy.stats.multivariate_normal.logpdf",
        "pullback.scipy.stats.multivariate_normal.logpdf(t[:2], cov=A)",
    ),
    Case("scipy.special.logsumexp(t)", "call pullback.scipy.special.logsumexp", "pullback.scipy.special.logsumexp(t)"),
    Case(
        "scipy.interpolate.CubicSpline([0, 1, 2], t)(0.5)",
        "call pullback.scipy.interpolate.CubicSpline",
        "pullback.scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], t)(0.5)",
    ),
    Case(
        "scipy.integrate.solve_ivp(lambda s, y: -y, (0, 1), t).y",
        "call pullback.scipy.integrate.solve_ivp",
        "pullback.scipy.integrate.solve_ivp(lambda s, y: -y, (0, 1), t).y",
    ),
    Case(
        "scipy.signal.lfilter([1.0], [1.0, 0.5], t)",
        "scipy.signal.lfilter",
        "pullback.scipy.signal.lfilter([1.0], [1.0, 0.5], t)",
    ),
    Case("S @ t", r"write pullback.scipy.sparse.csr_array\(S\)", "pullback.scipy.sparse.csr_array(S) @ t"),
    Case("t @ S", r"write pullback.scipy.sparse.csr_array\(S\)", "t @ pullback.scipy.sparse.csr_array(S)"),
    Case("S.dot(t)", r"write pullback.scipy.sparse.csr_array\(S\)", "pullback.scipy.sparse.csr_array(S) @ t"),
    Case(
        "scipy.sparse.linalg.spsolve(S, t)",
        "call pullback.scipy.sparse.linalg.spsolve",
        "pullback.scipy.sparse.linalg.spsolve(pullback.scipy.sparse.csr_array(S), t)",
    ),
]


def run(code: str, **names: Any) -> Any:
    """The value of the last expression in one line of code."""
    *before, last = code.split("; ")
    exec("\n".join(before), names)
    return eval(last, names)


def check(case: Case, **names: Any) -> None:
    t = pullback.tensor([0.5, 1.5, 2.5], dtype=pullback.float64, requires_grad=True)
    A = pullback.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=pullback.float64, requires_grad=True)
    with pytest.raises((RuntimeError, TypeError), match=case.says) as refused:
        run(case.written, t=t, A=A, **names)
    assert "What to do" in str(refused.value)
    wanted = np.asarray(
        run(case.written.replace("t.numpy()", "np.sin(t)"), t=t.detach().numpy(), A=A.detach().numpy(), **names)
    )
    found = run(case.instead, t=t, A=A, **names)
    if "[0.0, t[1]]" not in case.written:
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-6)
    found.sum().backward()
    assert (t.grad is not None and bool(t.grad.any())) or (A.grad is not None and bool(A.grad.any()))


@pytest.mark.parametrize("case", NUMPY, ids=lambda case: case.written)
def test_what_is_said_about_numpy_code_keeps_the_gradient(case: Case) -> None:
    check(case, np=np, pullback=pullback)


@pytest.mark.parametrize("case", SCIPY, ids=lambda case: case.written)
def test_what_is_said_about_scipy_code_keeps_the_gradient(case: Case) -> None:
    scipy = pytest.importorskip("scipy")
    for name in "linalg stats special interpolate integrate signal sparse sparse.linalg".split():
        __import__(f"scipy.{name}")
        __import__(f"pullback.scipy.{name}")
    check(case, np=np, pullback=pullback, scipy=scipy, S=scipy.sparse.csr_array(np.diag([1.0, 2.0, 4.0])))


def test_a_function_of_scipy_that_is_not_here_gets_a_node() -> None:
    stats = pytest.importorskip("scipy.stats")
    t = pullback.tensor([0.5, 1.5, 2.5], dtype=pullback.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"scipy.stats.iqr is not among the functions") as refused:
        stats.iqr(t)
    text = str(refused.value)
    node = text[text.index("    class ") :]
    node = "\n".join(line[4:] for line in node.splitlines())
    node = node.replace("return ...", "return g * pullback.tensor([-0.5, 0.0, 0.5], dtype=x.dtype)")
    node = node.replace("Iqr.apply(x)", "Iqr.apply(t)").replace(
        "scipy.stats.iqr(x.numpy())", "np.asarray(stats.iqr(x.numpy()))"
    )
    names: dict[str, Any] = {"pullback": pullback, "stats": stats, "t": t, "np": np}
    exec(node, names)
    names["y"].backward()
    assert t.grad.tolist() == [-0.5, 0.0, 0.5]


def test_a_function_without_a_derivative_is_named() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    A = pullback.eye(2, dtype=pullback.float64).requires_grad_()
    with pytest.raises(RuntimeError, match=r"(?s)pullback.scipy.linalg.schur has no derivative: .* use eigvals"):
        linalg.schur(A)


ELEMENT = """
import warnings
import numpy as np, pullback
t = pullback.tensor([1.0, 2.0], requires_grad=True)
out = np.zeros(2)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    out[0] = t[0]
print(seen[0].message)
"""


def test_a_number_that_is_written_into_an_array_is_told() -> None:
    told = subprocess.run([sys.executable, "-c", ELEMENT], capture_output=True, text=True, check=True).stdout
    assert "begin with numpy.zeros_like(t, float, shape=...)" in told
    t = pullback.tensor([1.0, 2.0], requires_grad=True)
    out = np.zeros_like(t)
    out[0] = t[0]
    out.sum().backward()
    assert t.grad.tolist() == [1.0, 0.0]


OF_VALUES = {
    "np.testing.assert_allclose(t, t)": r"give numpy.testing the values, t.detach\(\).numpy\(\)",
    "np.testing.assert_array_equal(np.arange(1.0, 4.0), t)": r"give numpy.testing the values, t.detach\(\).numpy\(\)",
    "np.testing.assert_equal(t, np.arange(1.0, 4.0))": r"give numpy.testing the values, t.detach\(\).numpy\(\)",
    "np.polynomial.Polynomial(t)": r"write numpy.polyval\(numpy.flip\(c\), x\)",
    "np.polynomial.Chebyshev([1.0, 2.0])(t)": r"chebvander\(x, n\) @ c",
    "np.polynomial.polynomial.polyval(2.0, t)": r"write numpy.polyval\(numpy.flip\(c\), x\)",
    "np.polynomial.Polynomial.fit([1.0, 2.0, 3.0], t, 1)": r"For the values alone, use tensor.detach\(\)",
    "np.ma.masked_array(t)": r"numpy.where\(m, 0, t\); or mask the values, numpy.ma.masked_array\(t.detach",
    "np.ma.sum(t)": r"numpy.where\(m, 0, t\); or mask the values, numpy.ma.masked_array\(t.detach",
    "matplotlib.pyplot.plot(t)": r"give matplotlib the values, t.detach\(\).numpy\(\)",
    "matplotlib.pyplot.imshow(A)": r"give matplotlib the values, t.detach\(\).numpy\(\)",
    "pandas.Series(t)": r"give pandas the values, t.detach\(\).numpy\(\)",
    "pandas.DataFrame({'t': t})": r"give pandas the values, t.detach\(\).numpy\(\)",
    "sklearn.cluster.KMeans(2).fit(A)": r"give sklearn the values, t.detach\(\).numpy\(\)",
    "scipy.optimize.linear_sum_assignment(A)": r"use scipy.optimize.linear_sum_assignment on t.detach\(\).numpy\(\)",
    "scipy.spatial.Delaunay(A)": r"use scipy.spatial.Delaunay on t.detach\(\).numpy\(\)",
    "scipy.spatial.cKDTree(A)": r"use scipy.spatial.cKDTree on t.detach\(\).numpy\(\)",
}


@pytest.mark.filterwarnings("ignore")  # of matplotlib, which copies what it is given
@pytest.mark.parametrize("written", OF_VALUES)
def test_what_looks_at_values_is_to_be_given_values(written: str) -> None:
    home = written.partition("(")[0].rpartition(".")[0]
    module = np if home.startswith("np") else pytest.importorskip(home)
    names = {"np": np, home.partition(".")[0]: sys.modules.get(home.partition(".")[0], module)}
    names["t"] = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    names["A"] = pullback.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], requires_grad=True)
    with pytest.raises(RuntimeError, match=f"(?s)its gradient would be lost.*{OF_VALUES[written]}") as refused:
        eval(written, names)
    assert "numpy.stack" not in str(refused.value)
    eval(written, names | {"t": names["t"].detach().numpy(), "A": names["A"].detach().numpy()})


@pytest.mark.parametrize("grad", [False, True])
def test_numpys_comparison_that_asks_for_a_truth_value_is_to_be_given_values(grad: bool) -> None:
    t = pullback.tensor([1.0, 2.0], requires_grad=grad)
    told = r"ambiguous.\n  What to do: give numpy.testing the values, t.detach\(\).numpy\(\)"
    for given in (t, [t], {"a": t}):
        with pytest.raises(RuntimeError, match=told):
            np.testing.assert_equal(given, given)
    with pytest.raises(RuntimeError, match=told):
        np.testing.assert_almost_equal(t, t)
    np.testing.assert_equal(t.detach().numpy(), t.detach().numpy())
    np.testing.assert_almost_equal(t.detach().numpy(), t.detach().numpy())
    with pytest.raises(RuntimeError, match=r"ambiguous$"):  # by the user's own code
        np.testing.assert_raises(ValueError, lambda: bool(t))


def test_the_methods_of_a_generator_are_no_functions_of_scipy() -> None:
    pytest.importorskip("scipy.stats")
    with pytest.raises(RuntimeError, match=r"write loc \+ scale \* rng.normal\(size=n\)"):
        np.random.default_rng(0).normal(pullback.ones(2, requires_grad=True))

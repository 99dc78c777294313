"""`pullback port`: what it finds in a NumPy program, what it leaves alone, and that what it says to write is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.cli import main
from pullback.cli.numpy_code import findings, rewritten
from pullback.cli.numpy_code.advice import KINDS, Finding

pytest.importorskip("scipy", reason="pullback.scipy needs SciPy")

DOCS = Path(__file__).parents[2] / "docs"
HEAD = "import math\nimport numpy as np\n"


def found(body: str) -> list[Finding]:
    """What is said of a function of x (a vector) with this body, after `HEAD`."""
    return findings(f"{HEAD}def f(x):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n")


# -- what is found, and that it is right -------------------------------------------------------------------------------

# The kind of the first finding, the body of a function of a vector x of four numbers. All that can be written is, and
# the function gives what it gave on arrays. What is left to the person (`LEFT`) is applied to the text; then the
# function gives the same on Tensors, and passes gradcheck.
MENDED = [
    ("made", "a = np.zeros(4)\na[1:] = np.cumsum(x)[:3]\nreturn a.sum()"),
    ("made", "a = np.empty((2, 4), float)\na[0] = x\na[1] = x**2\nreturn a.sum(axis=0)"),
    ("made", "a = np.full(5, 7.0)\na[:4] += x\nreturn a"),
    ("made", "a, b = np.zeros(2), np.ones(2)\na[0] = x[0]\nb[0] = x[1]\nreturn a * b"),
    ("made", "a = [np.zeros(3) for _ in range(2)]\na[1][0] = x[0]\nreturn a[1] * 2"),
    ("made", "a = np.zeros(4, dtype=complex)\na.real[:] = x\nreturn np.abs(a * 1j)"),
    ("made", "a = np.zeros_like(np.linspace(0.0, 1.0, 4))\na[2] = x[2] ** 2\nreturn a"),
    ("made", "def fill(b, v):\n    b[0] = v\na = np.zeros(3)\nfill(a, x[1])\nreturn a"),
    ("made", "s = x * 1j\na = np.empty(4)\nfor i in range(4):\n    a[i] = s[i].imag * x[0]\nreturn a"),
    ("overwritten", "a, b = x * 1.0, x * 2.0\ns = np.hypot(a, b)\na[1:] += x[0]\nb[1:] += x[0]\nreturn a * b * s"),
    ("overwritten", "a, s = x * 1.0, 0.0\nfor _ in range(3):\n    a[1:] += x[0]\n    s = s + a**2\nreturn s"),
    ("eye", "K = np.eye(4)\nK[0, 1] = x[0] * x[1]\nreturn K @ x"),
    ("whole", "a = np.zeros(4)\nfor k in range(3):\n    a += x**k\nreturn a"),
    ("whole", "a = np.linspace(0.0, 1.0, 4)\nb = a.copy()\nb *= x\nreturn b"),
    ("full", "return np.full(3, x[0] ** 2)"),
    ("full", "return np.full_like(np.arange(3.0), x[0] + x[1])"),
    ("array", "return np.array([x[0], x[1] ** 2])"),
    ("array", "parts = []\nfor v in x:\n    parts.append(v * v)\nreturn np.array(parts)"),
    ("array", "return np.array([v**2 for v in x], dtype=float)"),
    ("block", "return np.array([[x[0], 1.0], [0.5, x[1]]]) @ x[:2]"),
    ("asarray", "y = np.asarray(x, dtype=float)\nreturn y**2"),
    ("asarray", "y = np.array(x)\ny[0] = 1.0\nreturn x * y"),
    ("list", "return np.sum([x[0], x[1] ** 2])"),
    ("list", "return np.interp(0.2, [0.0, x[0]], [1.0, 2.0])"),
    ("operand", "return x[:2] + [1.0, 2.0]"),
    ("operand", "return x[:2] - [1.0, 2.0]"),
    ("operand", "return (x[:2] * 2.0) @ [1.0, 2.0]"),
    ("std", "return x.std() + x.var(ddof=1)"),
    ("sort", "y = x * np.array([3.0, -1.0, 2.0, 0.5])\ny.sort()\nreturn y"),
    ("max", "return np.outer(x, x).max(axis=1) + np.outer(x, x).min(0)"),
    ("nonzero", "return x[(x > 1.0).nonzero()[0]]"),
    ("repeat", "return x.repeat(2) * np.arange(8)"),
    ("flatten", "y = np.outer(x, x)\nz = y.flatten()\nz[0] = 1.0\nreturn y * z[0]"),
    ("method", "return np.outer(x, x).dot(x)"),
    ("method", "return x.cumsum()"),
    ("method", "return np.outer(x, x).reshape(2, 2, 4).transpose(2, 0, 1)[1]"),
    ("method", "return np.outer(x, x).reshape(2, 8, order='F')[0]"),
    ("method", "return x.take([0, 2])"),
    ("method", "return np.outer(x, x**2).flatten('F')[:5]"),
    ("dtype", "return x * 2 if x.dtype == np.float64 else x"),
    ("number", "return float(x[0]) * x[1]"),
    ("number", "return x[0].item() * x"),
    ("number", "return complex(x[0], x[1]) * complex(x[2] + x[0], 1.0)"),
    ("number", "return np.float64(x[0] * x[1])"),
    ("math", "return math.exp(x[0]) * math.atan2(x[1], x[2])"),
    ("math", "return math.lgamma(x[0])"),
    ("test", "return x * 2 if isinstance(x, np.ndarray) else x"),
    ("test", "return x * 2 if np.isscalar(x[0]) else x"),
    ("step", "return x[::-1] * np.arange(4)"),
    ("step", "return np.outer(x, x**2)[1:, ::-1] * np.arange(4)"),
    ("memory", "y = x * 2\nnp.copyto(y, x**2)\nreturn y"),
    ("memory", "y = x * 2\nnp.maximum(y, 2.0, out=y)\nreturn y"),
    ("memory", "y = x * 2\ny.fill(x[0])\nreturn y"),
    ("memory", "y = x * 2\nreturn y.flat[::2]"),
    ("memory", "y = np.outer(x, x)\ny.flat = np.repeat(x, 4)\nreturn y"),
    ("memory", "y = x * 2\nnp.place(y, x > 1.0, 3.0)\nreturn y"),
    ("diagonal", "K = np.outer(x, x)\nnp.fill_diagonal(K, 1.0)\nreturn K @ x"),
    ("rows", "A = np.outer(x, x) + np.eye(4)\nfor row in A: row /= row.sum()\nreturn A"),
    ("overwritten", "h = x * 1.0\nh[:] = h - 0.1 * h**2\nh[:] = h - 0.1 * h**2\nreturn h"),
    ("overwritten", "A = np.outer(x, x) + np.eye(4)\nA[1] = A[1] / A[1, 1]\nreturn A"),
    ("overwritten", "y = x * 3\ny /= np.linalg.norm(y)\nreturn y"),
    ("overwritten", "y = x * 3\ny -= y.max()\nreturn y * x"),
    ("overwritten", "A = np.outer(x, x)\nb = np.max(A[0], axis=0)\nA[0] /= b\nreturn A"),
    ("overwritten", "y = x * 3\ns = np.sin(y)\ny += 1.0\nreturn y * s"),
    ("result", "y = np.exp(x)\ny[0] = 0.0\nreturn y"),
    ("given", "x[0] = 1.0\nreturn x**2"),
    ("element", "a = x * 1.0\nold = a[0]\na[0] = a[1]\na[1] = old\nreturn a * x"),
    ("swap", "a = x * 1.0\na[0], a[2] = a[2], a[0]\nreturn a * x"),
    ("swap", "a = x[:2] * 1.0\np, q = a\na[0] = 5.0\nreturn p * q"),
    ("added", "a = x * 1.0\ns = a[0]\nfor k in range(2):\n    s += x[k]\nreturn s * a"),
    ("added", "s = 0.0\nfor v in x:\n    old = s\n    s += v\nreturn old * s"),
    ("joined", "return np.r_[x, 0.0] * np.arange(5)"),
    ("joined", "return np.c_[x, x**2]"),
    ("joined", "return np.fromiter((v * v for v in x), float)"),
    ("scipy", "import scipy.linalg\nreturn scipy.linalg.expm(np.outer(x, x) * 0.1)"),
    ("scipy", "from scipy.special import gammainc, erf\nreturn gammainc(x, 2.0) + erf(x)"),
    ("scipy", "from scipy import stats\nreturn stats.norm.logpdf(x, 0.0, 2.0)"),
    ("scipy", "import scipy.interpolate as si\ng = si.interp1d([0.0, 1.0, 3.0], [0.0, 1.0, 9.0])\nreturn g(x)"),
    ("scipy", "from scipy.integrate import quad\nreturn quad(lambda s: np.exp(-s * x[0]), 0, 1)[0] * x"),
    ("sparse", "from scipy.sparse import csc_matrix, diags\nreturn (csc_matrix(np.outer(x, x)) + diags(x)) @ x"),
    ("sparse", "from scipy.sparse import diags\nreturn diags([x, x[1:]], [0, 1]) @ np.ones(4)"),
    ("refused", "from scipy.signal import find_peaks\nreturn x * len(find_peaks(np.tile(x, 3))[0])"),
]
X = np.array([0.7, 1.3, 0.4, 2.1])


# What is left to the person: the value might be a list, a string or None, the rows of a matrix might be meant, the
# caller might look at what is written to, * of a matrix of SciPy's is no product of elements.
LEFT = {
    "A = np.outer(x, x) + np.eye(4)\nfor row in A: row /= row.sum()\nreturn A",
    "a = x * 1.0\na[0], a[2] = a[2], a[0]\nreturn a * x",
    "return x[:2] + [1.0, 2.0]",
    "return x[0].item() * x",
    "return x * 2 if isinstance(x, np.ndarray) else x",
    "return x * 2 if np.isscalar(x[0]) else x",
    "x[0] = 1.0\nreturn x**2",
    "a = x * 1.0\ns = a[0]\nfor k in range(2):\n    s += x[k]\nreturn s * a",
    "from scipy.sparse import csc_matrix, diags\nreturn (csc_matrix(np.outer(x, x)) + diags(x)) @ x",
    "from scipy.sparse import diags\nreturn diags([x, x[1:]], [0, 1]) @ np.ones(4)",
    "from scipy.signal import find_peaks\nreturn x * len(find_peaks(np.tile(x, 3))[0])",
}


def apply(source: str) -> str:
    """The program with what is left to the person applied to its text, as an editor would."""
    lines = source.split("\n")
    for f in sorted(findings(source), key=lambda f: len(f.written)):
        line = lines[f.line - 1]
        if f.write.endswith(" before it"):
            indent = line[: len(line) - len(line.lstrip())]
            lines[f.line - 1] = f"{indent}{f.write.removesuffix(' before it')}\n{line}"
        else:
            assert f.written in line, (f, line)
            lines[f.line - 1] = line.replace(f.written, f.write)
    return "\n".join(lines)


def function(source: str) -> Callable[[Any], Any]:
    scope: dict[str, Any] = {"pullback": pullback}
    exec(source, scope)
    return scope["f"]  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "body"), MENDED)
def test_what_it_says_to_write_is_right(kind: str, body: str) -> None:
    source = f"{HEAD}def f(x):\n{textwrap.indent(body, '    ')}\n"
    assert kind in {f.kind for f in findings(source)}
    if "nonzero()[0]" not in body:
        with pytest.raises((RuntimeError, TypeError, ValueError, AttributeError, AssertionError)):
            _check(source, function(source)(X.copy()))
    expected = function(source)(X.copy())
    new, done = rewritten(source)
    assert bool(findings(new)) == (body in LEFT)
    assert bool(done) != (body in LEFT)
    np.testing.assert_allclose(np.asarray(_plain(function(new)(X.copy()))), expected, rtol=1e-12)
    _check(apply(new), expected)
    assert rewritten(new) == (new, [])


def _plain(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, pullback.Tensor) else value


def _check(source: str, expected: Any) -> None:
    """The values of a function on Tensors are those on arrays, and its gradients those of differences."""
    mended = function(source)
    value = mended(pullback.from_numpy(X.copy()).requires_grad_())
    assert isinstance(value, pullback.Tensor)
    np.testing.assert_allclose(value.detach().numpy(), expected)
    assert pullback.autograd.gradcheck(lambda x: mended(x).real * 1.0, pullback.from_numpy(X.copy()).requires_grad_())


# What is written there, and what to write, of those that are more than one line to change.
SAID = [
    ("arange", "return np.arange(x[0], 3.0, x[1])", "x[0] + x[1] * np.arange(n), of n numbers"),
    ("draw", "return rng.normal(x, 2.0)", "x + 2.0 * rng.normal(size=np.shape(x))"),
    ("draw", "return np.random.poisson(x)", "poisson() of t.detach().numpy()"),
    ("nan", "return np.where(x > 0, np.sqrt(x), 0.0)", "np.where(x > 0, x, 1.0) for x in np.sqrt(x)"),
    ("nan", "return np.where(x == 0, 1.0, np.sin(x) / x)", "np.where(x == 0, 1.0, x) for x in np.sin(x) / x"),
    ("missing", "r = x * 2\nr[np.isnan(x)] = 0", "r[missing] = 0 here"),
    ("flip", "y = x * 1\nnp.flip(y)[0] = 2.0", "y[-1] = 2.0, its place in y"),
    ("no rule", "return np.roots(x)", "np.linalg.eigvals of the companion matrix"),
    ("vectorize", "return np.vectorize(abs)(x)", "pullback.vmap(abs)"),
    ("entries", "import scipy.sparse as sp\nA = sp.lil_matrix((4, 4))\nA[0, 1] = x[0]", "csr_array((np.stack(values)"),
    ("unknown", "from scipy.sparse import find\nreturn find(x)", "Find.apply(...) of a pullback.autograd.Function"),
    ("unknown", "from scipy.sparse import kron\nreturn kron(x, x)", "csr_array((numpy.concatenate(values)"),
    (
        "refused",
        "import scipy.signal as si\nreturn si.find_peaks(x + 1)",
        "si.find_peaks(pullback.as_tensor(x + 1).detach().numpy())",
    ),
    ("math", "from math import sin\nreturn sin(x[0])", "np.sin(x[0])"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "write"), SAID)
def test_it_says_what_to_write(kind: str, body: str, write: str) -> None:
    assert any(f.kind == kind and write in f.write for f in found(body)), found(body)


def test_each_kind_is_among_these() -> None:
    assert {kind for kind, *_ in [*MENDED, *SAID]} == set(KINDS)


def test_the_lines_of_the_writes_are_named_where_the_array_is_made() -> None:
    (first,) = found("a = np.zeros(3)\na[0] = 1.0\na[1] = x[0]\nfor k in range(2):\n    a[k] += x[k]")
    assert (first.line, first.write) == (4, "np.zeros_like(x, float, shape=3)")
    assert "written to in lines 6, 8" in first.why


def test_an_attribute_is_followed_through_its_class() -> None:
    source = """
    import numpy as np
    class Chain:
        def __init__(self, rates, n):
            self.Q = np.zeros((n, n))
            self.marks = np.zeros(n, dtype=int)
            for i in range(n):
                self.fill(rates[i], i)
        def fill(self, rate, i):
            self.Q[i, i] = rate
            self.marks[i] = 1
    """
    (only,) = findings(textwrap.dedent(source))
    assert (only.line, only.write) == (5, "np.zeros_like(rates, float, shape=(n, n))")


def test_an_attribute_of_self_may_have_the_name_of_a_transpose() -> None:
    source = """import numpy as np
class Plate:
    def __init__(self, warm):
        self.warm = warm
        self.T = np.zeros(4)
    def run(self):
        out = np.zeros(3)
        T = self.T.copy()
        T[0] = self.warm
        out[1] = T.mean()
        return out
"""
    written = [(f.line, f.write) for f in findings(source)]
    assert written == [
        (7, "np.zeros_like(self.warm, float, shape=3)"),
        (8, "T = T + np.zeros_like(self.warm, float, shape=np.shape(T)) after it"),
    ]


def test_what_a_main_function_calls_may_get_tensors_as_well() -> None:
    source = """
    import numpy
    def helper(p, k):
        return float(p) * k
    def model(p):
        return numpy.array([helper(p[0], 2.0), p[1]])
    def main():
        print(model(numpy.ones(2)))
    if __name__ == "__main__":
        main()
    """
    told = [(f.line, f.write) for f in findings(textwrap.dedent(source))]
    assert told == [(4, "1.0 * p"), (6, "numpy.stack([helper(p[0], 2.0), p[1]])")]


def test_a_function_that_is_handed_on_may_read_the_parameters() -> None:
    source = (
        "def solve(f, y0):\n    return f(y0) + y0\n"
        "def g(a):\n    def f(y):\n        return a * y\n    return solve(f, np.ones(2)).std()\n"
    )
    assert [f.write for f in findings(HEAD + source)] == ["np.std(solve(f, np.ones(2)))"]


def test_functions_that_call_each_other_are_read_to_the_end() -> None:
    source = "def f(x):\n    return g(x) if x > 0 else x\ndef g(x):\n    return f(float(x) - 1.0)\n"
    assert [f.line for f in findings(source)] == [4]


def test_a_script_without_functions_has_its_numbers_for_parameters() -> None:
    source = f"{HEAD}rate = 0.5\nn = 3\na = np.zeros(n)\na[0] = math.exp(rate)\nprint(float(a[0]))\n"
    assert [f.line for f in findings(source)] == [5, 6]


# -- what would be noise -----------------------------------------------------------------------------------------------

SILENT = [
    "a = np.zeros(3)\na[0] = 1.0\na[1:] = 2\nreturn a * x[0]",
    "a = np.zeros(3, dtype=int)\na[0] = len(x)\nreturn a",
    "a = np.zeros(len(x))\nfor i in range(len(x)):\n    a[i] = i * 0.5\nreturn a * x",
    "names = ['a'] * 2\nnames[0] = x\nreturn names",
    "out = {}\nout['a'] = x[0]\nreturn out",
    "a = np.zeros_like(x)\na[0] = x[0]\nreturn a",
    "a = np.empty(3, dtype=object)\na[0] = x\nreturn a",
    "grid = np.array([0.0, 1.0, 2.0])\nreturn np.interp(x, grid, grid**2)",
    "print(float(x.sum()), f'{float(x[0]):.3f}', '%.2f' % float(x[1]))\nreturn x",
    "if float(x[0]) > 1.0:\n    return x\nreturn 2 * x",
    "n = int(x.shape[0] / 2)\nreturn x[:n]",
    "k = int(np.argmax(x))\nreturn x[k]",
    "return x * math.sqrt(2.0 * math.pi)",
    "order = [3, 2, 1]\nreturn sum(x[i] for i in order[::-1])",
    "names = sorted(['b', 'a'])\nnames.sort()\nreturn x",
    "pairs = [(x[0], 1)]\npairs.sort(key=lambda p: p[1])\nreturn pairs",
    "return x.max() - x.min() + x.sum(axis=0) + x.mean()",
    "return np.max(x, axis=0) + np.std(x)",
    "return x.reshape(2, 2).transpose(1, 0)",
    "return np.outer(x, x).T @ x",
    "s = 0.0\nfor v in x:\n    s += v**2\nreturn s",
    "y = np.sin(x)\ny /= y.sum()\nreturn y",
    "y = np.sin(x)\ny -= y.mean()\ny *= x\nreturn y",
    "h = np.zeros_like(x)\nh[0] = x[0]\nfor k in range(3):\n    h[k + 1] = h[k] * x[k] * (1 - h[k])\nreturn h",
    "h = x * 1.0\nh[1:-1] += 0.1 * (h[2:] - 2 * h[1:-1] + h[:-2])\nreturn h",
    "h = x * 1.0\nh[0] = np.sin(h[0])\nreturn h",
    "L = np.zeros_like(np.outer(x, x))\nfor j in range(4):\n    L[j, j] = x[j] - np.dot(L[j, :j], L[j, :j])\nreturn L",
    "A = np.outer(x, x)\nA[1] -= A[1, 0] / A[0, 0] * A[0]\nreturn A",
    "y = np.exp(x)\ny = y + 1.0\nreturn y",
    "y = 2 * np.exp(x)\ny[0] = 1.0\nreturn y",
    "x = x.copy()\nx[0] = 1.0\nreturn x",
    "a = x * 1.0\nfirst = a[0]\na[1] = 2.0\nreturn first * a",
    "total = sum(row[0] for row in np.outer(x, x))\nreturn total",
    "for name in ['a', 'b']:\n    name += 'c'\nreturn x",
    "return np.stack([x, x]) + np.concatenate([[x[0]], x[1:]]) + np.append(x, [x[0]])[:4]",
    "return np.array([1.0, 2.0, 3.0, 4.0]) * x",
    "return [x[0], x[1]] + [x[2]]",
    "weights = [1.0, 2.0]\nweights += [3.0]\nreturn x[0]",
    "rng = np.random.default_rng(0)\nreturn x + 0.1 * rng.normal(0.0, 1.0, size=4)",
    "return np.where(x > 0, x, 0.1 * x)",
    "from scipy.special import erf, gammaln\nreturn erf(x) + gammaln(x)",
    "from scipy.constants import c\nreturn c * x",
    "from scipy.signal.windows import hann\nreturn hann(4) * x",
    "from scipy.optimize import minimize\ndef g(p):\n    return 0.0, p\nreturn minimize(g, x, jac=True)",
    "from scipy.optimize import differential_evolution\ndef g(p):\n    return 0.0\nreturn differential_evolution(g, x)",
    "import torch_like\nreturn torch_like.std(x)",
    "return isinstance(x, (list, tuple))",
    "return x.std_of_it()",
    "mask = x > 1\ny = x * 2\ny[mask] = 0.0\nreturn y",
    "y = x.astype(float).copy()\ny[0] = 2.0\nreturn y",
]


@pytest.mark.parametrize("body", SILENT)
def test_what_needs_no_change_is_not_listed(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    "source",
    [
        "a = np.zeros(3)\na[0] = 0.5\nprint(float(a[0]), a[::-1], a.std())\ndef f(x):\n    return x * a[0]\n",
        "def g(n: int, name='a', steps=3):\n    a = np.zeros(n)\n    a[0] = steps * n\n    return a\n",
        "def g(u, v):\n    return float(v) * u\ndef f(x):\n    return g(x, 2.0)\n",
        "from scipy import stats\nDATA = stats.norm.rvs(size=3)\ndef f(x):\n    return x * DATA\n",
    ],
)
def test_what_does_not_depend_on_parameters_is_not_listed(source: str) -> None:
    assert findings(HEAD + source) == []


AS_ADVISED = [
    "    y = np.array([0.0, 0.0])\n"
    "    y = y + np.zeros_like(x, float, shape=np.shape(y))\n    y[1] = x[0]\n    return y\n",
    "    y = np.array([0.0, 0.0]) + np.zeros_like(x, float, shape=2)\n    y[1] = x[0]\n    return y\n",
]


@pytest.mark.parametrize("body", AS_ADVISED)
def test_what_was_mended_is_not_listed_again(body: str) -> None:
    assert findings(f"{HEAD}def f(x):\n{body}") == []


def test_an_array_of_an_object_is_listed_where_it_is_made() -> None:
    """Other arrays may be made of it, before it becomes a Tensor."""
    source = (
        "class M:\n    def __init__(self, x):\n        self.x, self.h = x, np.zeros(4)\n    def step(self):\n"
        "        d = np.zeros_like(self.h)\n        d -= self.x[0] * np.arange(4.0)\n        self.h += d\n"
        "def f(x):\n    m = M(x)\n    m.step()\n    return np.sum(m.h)\n"
    )
    told = findings(HEAD + source)
    assert [f.write for f in told] == ["np.zeros_like(x, float, shape=4)"]
    names: dict[str, Any] = {}
    exec(rewritten(HEAD + source)[0], names)
    x = pullback.rand(2, dtype=pullback.float64, requires_grad=True)
    assert pullback.autograd.gradcheck(names["f"], x)


def test_a_function_that_writes_for_its_caller_is_not_told_to_write_to_a_copy() -> None:
    relax = "def relax(m, e):\n    m[..., 1] = m[..., 1] * e + 1.0\n"
    told = findings(HEAD + relax)
    assert [f.write for f in told] == ["m[..., 1] = m[..., 1].copy() * e + 1.0"]
    names: dict[str, Any] = {}
    exec(rewritten(HEAD + relax)[0], names)

    def f(x: Any) -> Any:
        m = np.zeros_like(x, float, shape=(3, 2))
        m[..., 1] = x[1]
        for _ in range(3):
            names["relax"](m, x[0])
        return m.sum()

    x = pullback.rand(2, dtype=pullback.float64, requires_grad=True)
    assert pullback.autograd.gradcheck(f, x)
    assert f(np.array([0.7, 2.0])) == pytest.approx(3 * (((2.0 * 0.7 + 1) * 0.7 + 1) * 0.7 + 1))


# What is written to an array, and the Tensor that it is made like: of a function of p, self.k and others.
LIKE = [
    ("def f(n, rate):\n    a = np.zeros(n)\n    a[0] = rate\n    return a", "rate"),
    ("def f(n, p):\n    a = np.zeros(n)\n    a[0] = p['k'] * 2\n    return a", "p['k']"),
    ("def f(p, n):\n    k = p.k\n    a = np.zeros(n)\n    a[0] = 2 * k\n    return a", "k"),
    ("def f(p, n):\n    a = np.zeros(n)\n    k = p.k\n    a[0] = 2 * k\n    return a", "p.k"),
    ("def f(x, y):\n    a = np.zeros(4)\n    for v in y:\n        a[0] = v\n    return a * x", "y"),
    ("def f(x):\n    for v in x:\n        a = np.zeros(4)\n        a[0] = v\n    return a", "v"),
    ("def f(x, c):\n    if c:\n        b = x * 2\n    a = np.zeros(4)\n    a[0] = b\n    return a", "x"),
    ("def f(x):\n    parts = [x]\n    a = np.zeros(4)\n    a[0] = parts[0]\n    return a", "x"),
    ("def f(g, x):\n    a = np.zeros(4)\n    a[0] = g(x)\n    return a", "x"),
    ("def f(g, x):\n    a = np.zeros(4)\n    a[0] = g(1.0)\n    return a * x", "x"),
    ("def f(x):\n    def g(n):\n        a = np.zeros(n)\n        a[0] = x\n        return a\n    return g(3)", "x"),
    ("class M:\n    def __init__(self, k):\n        self.k = k\n        self.a = np.zeros(3)\n"
     "        self.a[0] = self.k", "self.k"),
    ("class M:\n    def __init__(self, k):\n        self.a = np.zeros(3)\n        self.k = k\n"
     "        self.a[0] = self.k", "k"),
    ("class M:\n    def __init__(self, k):\n        self.k = k\n        self.a = np.zeros(3)\n"
     "    def h(self):\n        return self.k * 2\n    def g(self):\n        self.a[0] = self.h()", "self.k"),
    ("class M:\n    def __init__(self, k):\n        self.a = np.zeros(3)\n        self.k = k\n"
     "    def h(self):\n        return self.k * 2\n    def g(self):\n        self.a[0] = self.h()", "k"),
    ("class M:\n    def __init__(self, grid):\n        self.grid = grid\n    def g(self, p):\n        a = np.zeros(3)\n"
     "        a[0] = self.grid[0] * p['k']\n        return a\ndef f(p, m):\n    return m.g(p)", "p['k']"),
    ("def f(p, data):\n    a = np.zeros_like(data)\n    a[0] = data[0] * p['k']\n    return a", "p['k']"),
    ("def f(p, n):\n    a = np.zeros(n, dtype=complex)\n    b = np.zeros_like(a)\n    b[0] = p['k']\n    a = a + b\n"
     "    return a", "p['k']"),
    ("def f(p, data):\n    a = np.zeros(4)\n    a[0] = data[0] * p['k']\n    return a", "p['k']"),
    ("class M:\n    def __init__(self, p):\n        self.k = p['k']\n    def h(self, v):\n        return self.k * v\n"
     "    def g(self, data):\n        a = np.zeros(3)\n        m = self.h(2.0)\n        a[0] = data[0] - m\n"
     "        return a\ndef f(p, data):\n    return M(p).g(data).sum()", "self.k"),
    ("class M:\n    def __init__(self, k):\n        self.k = k\n    def h(self):\n        return [self.k]\n"
     "def f(p):\n    m = M(p['k'])\n    a = np.zeros(3)\n    a[0] = m.h()[0]\n    return a", "p['k']"),
    ("class M:\n    def __init__(self, k):\n        self.k = k\n    def g(self):\n        a = np.zeros(3)\n"
     "        a[0] = self.k\n        return a", "self.k"),
    # a name in it is bound before, and is the same where the write is
    ("def f(x):\n    s = x * 1j\n    a = np.zeros(4)\n    for i in range(4):\n        a[i] = s[i].imag\n"
     "    return a", "s"),
    ("def f(x):\n    for i in range(4):\n        s = x * 1j\n        a = np.zeros(4)\n        a[i] = s[i].imag\n"
     "    return a", "s[i].imag"),
    ("def f(x):\n    for i in range(9):\n        pass\n    s = x * 1j\n    a = np.zeros(4)\n"
     "    for i in range(4):\n        a[i] = s[i].imag\n    return a", "s"),
    ("def f(x, i):\n    s = x * 1j\n    a = np.zeros(4)\n    i = 3 - i\n    a[i] = s[i].imag\n    return a", "s"),
    ("def f(x):\n    s = x * 1j\n    a = np.zeros(4)\n    a[:] = [s[k].imag for k in range(4)]\n    return a", "s"),
    ("def f(x):\n    s = x * 1j\n    a = np.zeros(4)\n    if (k := len(s)) > 1:\n        a[0] = s[k - 1].imag\n"
     "    return a", "s"),
    ("def f(x, k):\n    s = x * 1j\n    a = np.zeros(4)\n    with open(k) as k:\n        a[0] = s[k].imag\n"
     "    return a", "s"),
    ("def f(x, p, c):\n    a = np.zeros(4)\n    m = p.rate\n    p = c\n    a[0] = p.rate * x + m\n    return a", "x"),
    ("def f(x, c):\n    for v in x:\n        pass\n    a = np.zeros(4)\n    a[0] = v\n    return a", "x"),
    ("def f(x, c):\n    for v in x:\n        pass\n    else:\n        a = np.zeros(4)\n        a[0] = v\n"
     "    return a", "x"),
    ("def f(x, c):\n    c and (v := x * 2)\n    a = np.zeros(4)\n    if c:\n        a[0] = v\n    return a", "x"),
    ("def f(x, c):\n    try:\n        v = x * 2\n    except ValueError:\n        c = 0\n    a = np.zeros(4)\n"
     "    if c:\n        a[0] = v\n    return a", "x"),
    ("def f(x, c):\n    v = x * 2\n    c = [v]\n    del v\n    a = np.zeros(4)\n    a[0] = c[0]\n    return a", "x"),
    ("def f(x, c):\n    m = [c * 2]\n    try:\n        print(m)\n    except ValueError as c:\n        print(c)\n"
     "    a = np.zeros(4)\n    a[0] = m[0]\n    return a * x", "x"),
    ("def f(x):\n    def g(c):\n        a = np.zeros(4)\n        for v in c:\n            a[0] = v\n        return a\n"
     "    g([x[0]])\n    late = x * 2\n    return g([late])", "x"),
    ("class M:\n    def set(self, k):\n        self.k = k\n    def g(self, p):\n        a = np.zeros(3)\n"
     "        self.set(p)\n        a[0] = self.k\n        return a", "p"),
    ("class M:\n    def g(self, p, c):\n        if c:\n            self.k = p * 2\n        a = np.zeros(3)\n"
     "        if c:\n            a[0] = self.k\n        return a", "p"),
    ("def g(p):\n    return p['late'] * 1.0\ndef f(p):\n    a = np.zeros(3)\n    a[0] = p * 2.0\n    return a", "p"),
    # of Tensors alike, one that the function gets
    ("class M:\n    def __init__(self, k):\n        self.k = k\n    def g(self, y):\n        a = np.zeros(3)\n"
     "        a[0] = self.k * y[0]\n        return a\ndef f(p, y):\n    return M(p).g(p)", "y"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "name"), LIKE)
def test_an_array_is_made_like_what_is_there(source: str, name: str) -> None:
    told = [f for f in findings(HEAD + source) if f.kind == "made"]
    assert [f.write.partition("(")[2].partition(", ")[0] for f in told] == [name]
    assert f"{name} has to be a Tensor; any other parameter that is one would do" in told[0].why
    assert f"np.zeros_like({name}, " in rewritten(HEAD + source)[0]


BODY = "a = np.zeros(2)\n    a[0] = p[0] * y[0]\n    a[1] = y[1]\n    return a\n"
METHODS = (
    "class M:\n    def __init__(self, p):\n        self.p = p\n    def rhs(self, {}):\n        a = np.zeros(2)\n"
    "        a[0] = self.p[0] * y[0]\n        return a\n    def run(self, y0, t):\n        return {}\n"
    "def f(p, y0, t):\n    return M(p).run(y0, t)\n"
)
# Right-hand sides y' = p y, and others that a solver is given.
STATES = [
    f"from scipy.integrate import odeint\ndef g(y, t, p):\n    {BODY}"
    "def f(p, t):\n    return odeint(g, [1, 2], t, (p,))\n",
    f"from scipy.integrate import odeint as o\ndef g(t, y, p):\n    {BODY}"
    "def f(p, t):\n    return o(g, [1, 2], t, args=(p,), tfirst=True)\n",
    f"import scipy.integrate as si\ndef g(t, y, p):\n    {BODY}"
    "def f(p, t):\n    return si.solve_ivp(fun=g, t_span=(0, 1), y0=[1, 2], args=(p,))\n",
    f"import pullback.scipy.integrate as si\ndef g(t, y, p):\n    {BODY}"
    "def f(p, t):\n    return si.solve_ivp(lambda t, z: g(t, z, p), (0, 1), [1, 2])\n",
    f"from scipy.optimize import root\ndef g(p, y):\n    {BODY}"
    "def f(p):\n    return root(lambda y: g(p, y), [1, 2]).x\n",
    f"from scipy.optimize import minimize\ndef g(y, p):\n    {BODY}"
    "def f(p):\n    return minimize(lambda z: np.sum(g(z, p) ** 2), [1, 2]).x\n",
    f"from functools import partial\nfrom scipy.optimize import fixed_point\ndef g(p, y):\n    {BODY}"
    "def f(p):\n    return fixed_point(partial(g, p), [1, 2])\n",
    f"from scipy.integrate import solve_ivp\ndef g(p, y):\n    {BODY}def h(t, z, p):\n    return g(p, z)\n"
    "def f(p):\n    rhs = h\n    return solve_ivp(rhs, (0, 1), [1, 2], args=(p,))\n",
    "from scipy.integrate import odeint\n" + METHODS.format("y, t", "odeint(self.rhs, y0, t)"),
    "from scipy.integrate import solve_ivp\n"
    + METHODS.format("y, t, c=1.0", "solve_ivp(lambda t, z: self.rhs(z, t), (0, 1), y0, t_eval=t)"),
    f"from scipy.integrate import odeint\ndef f(p, t):\n    def g(y, t):\n    {BODY.replace('    ', '        ')}"
    "    return odeint(g, [1, 2], t)\n".replace("def g(y, t):\n    a", "def g(y, t):\n        a"),
]  # fmt: skip


@pytest.mark.parametrize("source", STATES)
def test_in_a_right_hand_side_an_array_is_made_like_the_state(source: str) -> None:
    (told,) = [f for f in findings(HEAD + source) if f.kind == "made"]
    assert told.write == "np.zeros_like(y, float, shape=2)"
    assert "y is the state: what a solver calls the function with is a Tensor" in told.why
    new, done = rewritten(HEAD + source)
    assert "np.zeros_like(y, " in new
    assert sum(f.kind == "made" for f in done) == 1
    assert rewritten(new) == (new, [])
    plain = source.replace("np.zeros(2)", "np.zeros_like(y)")
    assert [f for f in findings(HEAD + plain) if f.kind == "made"] == []


# The function gets what is no Tensor as well; what has the name of the state is something else; no solver gets it.
NO_STATE = [
    f"from scipy.integrate import odeint\ndef g(p, y):\n    {BODY}"
    "def f(p, t):\n    a = g(p, [1.0, 2.0])\n    return odeint(lambda y, t: g(p, y), a, t)\n",
    f"from scipy.optimize import root\ndef g(p, y):\n    y = list(y)\n    {BODY}"
    "def f(p):\n    return root(lambda y: g(p, y), [1, 2]).x\n",
    f"def g(p, y):\n    {BODY}def f(p):\n    return print(g)\n",
]  # fmt: skip


@pytest.mark.parametrize("source", NO_STATE)
def test_what_may_be_no_state_is_not_taken_for_one(source: str) -> None:
    (told,) = [f for f in findings(HEAD + source) if f.kind == "made"]
    assert told.write == "np.zeros_like(p, float, shape=2)"
    assert "state" not in told.why


# Each of several reads that a later line writes over, or that one statement does.
SEVERAL = [
    ("s = g(a, b)\na[1:] += x[1:]\nb[1:] += x[1:]\nreturn s", {"a", "b"}),
    ("s = g(a, b)\na[1:], b[1:] = x[1:], x[:-1]\nreturn s", {"a", "b"}),
    ("s = g(a, a)\na[1:] += x[1:]\nreturn s", {"a"}),
    ("s = a * b * a[1:]\na[1:] = 0.0\nb[1:] = 0.0\nreturn s", {"a", "b", "a[1:]"}),
    ("s = 0\nfor k in range(3):\n    a[1:] += x[1:]\n    b[1:] += x[1:]\n    s = s + g(a, b)\nreturn s", {"a", "b"}),
    ("for k in range(3):\n    b = a[k:] * x[0]\n    a[k:] = x[0]\nreturn b", {"a[k:]"}),
    ("for k in range(3):\n    a[k, :2] = x[0]\n    b = a[k, :2] * x[0]\nreturn b", set()),
    ("k = 0\nwhile k < 3:\n    a[k, :2] = x[0]\n    b = a[k, :2] * x[0]\n    k += 1\nreturn b", set()),
    ("while c:\n    a = a * 1.0\n    a[1:] += x[1:]\n    s = g(a, b)\nreturn s", set()),
    ("s = np.sin(a)\nc = np.cos(a)\na[1:] = 0.0\na[:1] = 0.0\nreturn s", {"a"}),
]


@pytest.mark.parametrize(("body", "reads"), SEVERAL)
def test_each_read_of_what_is_written_over_is_listed(body: str, reads: set[str]) -> None:
    told = [f for f in found(f"a, b = x * 1.0, x * 2.0\n{body}") if f.kind == "overwritten"]
    assert {f.written for f in told} == reads
    assert all(f.write == f"{f.written}.copy()" for f in told)


def test_what_is_renewed_is_not_written_over_again() -> None:
    told = found("a = x * 1.0\ns = np.sin(a)\na *= 2.0\na *= 3.0\nreturn s * a")
    assert [(f.line, f.write) for f in told] == [(6, "a = a * 2.0")]


def test_each_read_in_a_write_is_copied() -> None:
    (told,) = found("a = x * 1.0\na[:2] = g(a, a[1:])\nreturn a")
    assert told.write == "a[:2] = g(a.copy(), a[1:].copy())"
    (told,) = found("a = np.outer(x, x)\na[0] = a[0] * x / a[0]\nreturn a[0, 0]")
    assert told.write == "a[0] = a[0].copy() * x / a[0].copy()"


def test_a_name_that_is_something_else_inside_is_not_taken() -> None:
    inner = "    def g(m):\n        x = 1.0\n        a = np.zeros(4)\n        a[0] = m[0]\n        return a * x\n"
    (only,) = findings(f"{HEAD}def f(x):\n{inner}    return g([x * 2])\n")
    assert (only.write, only.edits) == ("np.zeros_like(t, float, shape=4)", ())


def test_where_no_tensor_is_found_any_has_a_name_that_the_program_has_not() -> None:
    rk = "def rk(f, y0):\n    y = np.zeros(3)\n    y[0] = y0 + f(y0)\n    return y\n"
    (only,) = findings(f"{HEAD}{rk}def g(x):\n    return rk(lambda y: y * x, np.array([1.0]))\n")
    assert (only.write, only.edits) == ("np.zeros_like(t, float, shape=3)", ())
    source = f"{HEAD}def f(g, {{}}):\n    y = np.zeros(2)\n    y[1] = g()\n    return y\n"
    for others, name in (("n", "t"), ("t", "tensor"), ("t, tensor, a_tensor", "any_tensor")):
        (only,) = findings(source.format(others))
        assert (only.write, only.edits) == (f"np.zeros_like({name}, float, shape=2)", ())
        assert f"{name} is any Tensor" in only.why


# -- one source of truth -----------------------------------------------------------------------------------------------

NOT_ON_THE_PAGE = {"given", "joined", "vectorize", "entries", "refused", "unknown", "no rule"}


@pytest.mark.parametrize("page", ["numpy_code.md", "zh/numpy_code.md"])
def test_each_kind_stands_on_the_page(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    for kind, (row, _) in KINDS.items():
        assert bool(row) == (kind not in NOT_ON_THE_PAGE)
        for piece in re.findall(r"`[^`]+`", row) or [row]:
            assert piece in text, (kind, piece)


ROWS = [
    (left, re.findall(r"`([^`]+)`", right))
    for pieces, right in re.findall(
        r"^\| (`.+?`.*?) \| (.+?) \| .+? \|$", (DOCS / "numpy_code.md").read_text("utf-8"), re.MULTILINE
    )
    for left in re.findall(r"`([^`]+)`", pieces)
]
# Those that show two lines, a part of one, or what reading cannot tell.
IN_TWO_LINES = """x.flatten() | out = np.zeros(n) | out[i] = t | np.eye(n) | np.ones(n) | out += t | out | old = a[0]
a | x, y = a | np.put | np.place | out=y | scipy.sparse | S @ t | np.add.at(out, i, t) | t - m | s += t | s | old = s
np.full_like(a, t) | r = (data - t) / s | b = +a | np.conj(a) | b | x | S.data = S.data * t | x.dtype.char
x.dtype.type"""
PARTS = {part.strip() for line in IN_TWO_LINES.splitlines() for part in line.split("|")}
PARAMETERS = "t, a, b, c, d, x, y, v, A, m, s, i, k, n: int, end, rng, r, data"


@pytest.mark.parametrize(("left", "right"), [row for row in ROWS if row[0] not in PARTS])
def test_the_rows_of_the_page_are_found(left: str, right: list[str]) -> None:
    told = findings(f"{HEAD}import scipy.linalg, scipy.stats\ndef f({PARAMETERS}):\n    {left}\n")
    assert told, left
    alike = {"min(m.shape)": "n", " > 0": " == 0", "t[0]": "t", "np.resize(v, np.shape(y))": "v", "row_number": "i"}
    parts = [f.write.partition(" for x in ")[0].partition(", its place")[0] for f in told]
    parts += [part.replace(ours, pages) for part in parts for ours, pages in alike.items()]
    assert any(part in row or row in part for part in parts for row in right), (told, right)


def test_the_page_has_these_rows() -> None:
    assert len(ROWS) > 40
    assert {left for left, _ in ROWS} >= PARTS


def test_the_page_shows_what_the_command_prints(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    for page in ("numpy_code.md", "zh/numpy_code.md"):
        text = (DOCS / page).read_text("utf-8")
        program, command, output = re.search(
            r"```python\n(.+?)```\n.*?```sh\n(pullback port .+?)\n```\n.*?```text\n(.+?)```", text, re.DOTALL
        ).groups()  # type: ignore[union-attr]
        monkeypatch.chdir(tmp_path)
        _, name, option, file = command.split()
        (tmp_path / file).write_text(program)
        (tmp_path / "decay_pullback.py").unlink(missing_ok=True)
        assert main.main([name, option, file]) == 0
        assert capsys.readouterr().out == output


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_output_is_by_file_and_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(f"{HEAD}def f(x):\n    a = x[::-1]\n    return math.sin(a[0])\n")
    other.write_text("raise SystemExit('it was run')\n")
    assert main.main(["port", str(one), str(other)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"{one}:4: x[::-1]  ->  np.flip(x, 0)  (a slice of a Tensor has a positive step)",
        f"{one}:5: math.sin(a[0])  ->  np.sin(a[0])  (math takes numbers)",
        "2 places to write in another way. Run it then, and compare values with those of the program as it was.",
    ]
    assert err == ""


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.py"
    path.write_text("def f(x):\n    return float(x)\n")
    assert main.main(["port", str(path), "--json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["findings"]
    assert (only["file"], only["line"], only["written"], only["write"]) == (str(path), 2, "float(x)", "1.0 * x")


def test_an_empty_file_has_nothing_to_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.py"
    path.write_text("")
    assert main.main(["port", str(path)]) == 0
    assert capsys.readouterr().out.startswith("no places to write in another way. Run it then")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"def f(:\n", "is not a Python file: invalid syntax"),
        (b"\xff\xfe\x00", "is not a Python file"),
        (b"a\x00b", "is not a Python file"),
        (b"x = " + b"(" * 5000 + b")" * 5000, "is not a Python file"),
        (None, "does not exist; expected a Python file, as FILE.py"),
    ],
)
def test_what_is_no_python_is_told(
    content: bytes | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.py"
    if content is not None:
        path.write_bytes(content)
    assert main.main(["port", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"pullback port: {path} ")
    assert words in err


def test_an_expression_that_is_too_long_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sum.py"
    path.write_text(f"def f(x):\n    return {' + '.join(['x'] * 1500)}\n")
    assert main.main(["port", str(path)]) == 2
    assert "is nested too deeply to be read; divide it" in capsys.readouterr().err


def test_a_folder_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["port", str(tmp_path)]) == 2
    assert "is a folder; expected a Python file" in capsys.readouterr().err


def test_without_scipy_its_names_are_said_to_be_unknown(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("from scipy.linalg import expm\nimport numpy as np\ndef f(x):\n    return expm(np.array([x[0]]))\n")
    source = str(Path(pullback.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {source!r}); sys.modules['scipy'] = None\nfrom pullback.cli import main\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}sys.exit(main.main(['port', {str(path)!r}]))"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "from pullback.scipy.linalg import expm" in done.stdout
    assert "np.stack([x[0]])" in done.stdout
    assert "SciPy is not installed" in done.stdout

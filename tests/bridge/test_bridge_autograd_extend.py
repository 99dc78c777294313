"""`bridge.autograd`: functions with rules of their own, vector spaces, checks, and programs that import autograd."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as onp
import pytest
import scipy.special

from pullback.bridge import autograd
from pullback.bridge.autograd import deriv, grad, jacobian, make_jvp, make_vjp

np = importlib.import_module("pullback.bridge.autograd.numpy")
extend = importlib.import_module("pullback.bridge.autograd.extend")
test_util = importlib.import_module("pullback.bridge.autograd.test_util")
tracer = importlib.import_module("pullback.bridge.autograd.tracer")
Node, trace = tracer.Node, tracer.trace
X = onp.array([0.3, 1.2, -0.7])


def square() -> Any:
    """A primitive ``x * x`` with both rules, which notes what it gets."""
    seen: list[Any] = []

    @extend.primitive
    def square(x: Any) -> Any:
        seen.append(type(x))
        return x * x

    extend.defvjp(square, lambda ans, x: lambda g: g * 2 * x)
    extend.defjvp(square, lambda g, ans, x: g * 2 * x)
    square.seen = seen
    return square


def test_a_primitive_gets_plain_values_and_its_rules_serve_every_order_and_mode() -> None:
    f = square()
    assert f(X).tolist() == (X * X).tolist()
    assert grad(f)(3.0) == 6.0
    assert grad(grad(f))(3.0) == 2.0
    assert deriv(f)(3.0) == 6.0
    assert deriv(deriv(f))(3.0) == 2.0
    assert deriv(grad(f))(3.0) == 2.0
    assert grad(deriv(f))(3.0) == 2.0
    assert set(f.seen) == {onp.ndarray, onp.float64}
    test_util.check_grads(f, order=3)(X)


def test_a_primitive_of_several_arguments_and_of_nested_ones() -> None:
    @extend.primitive
    def f(a: Any, p: Any, scale: float = 1.0) -> Any:
        return {"sum": (a + p[0]) * scale, "product": a * p[1]["w"]}

    extend.defvjp(
        f,
        lambda ans, a, p, scale=1.0: lambda g: g["sum"] * scale + g["product"] * p[1]["w"],
        lambda ans, a, p, scale=1.0: lambda g: [g["sum"] * scale, {"w": g["product"] * a}],
    )

    def total(a: Any, p: Any) -> Any:
        out = f(a, p, scale=3.0)
        return np.sum(out["sum"] * out["product"])

    def plain(a: Any, p: Any) -> Any:
        return np.sum((a + p[0]) * 3.0 * a * p[1]["w"])

    given = (X, [X + 1, {"w": X - 2}])
    for argnum in (0, 1, (0, 1)):
        found, expected = (autograd.misc.flatten(grad(h, argnum)(*given))[0] for h in (total, plain))
        assert onp.allclose(found, expected)
    test_util.check_grads(total, (0, 1), modes=["rev"])(*given)


def test_the_ways_to_give_a_rule() -> None:
    def primitive() -> Any:
        return extend.primitive(lambda x, y: 2.0 * x + x * y)

    by_argnums, by_argnum, some = primitive(), primitive(), primitive()
    extend.defvjp_argnums(
        by_argnums, lambda ns, ans, args, kw: lambda g: [(g * (2.0 + args[1]), g * args[0])[n] for n in ns]
    )
    extend.defvjp_argnum(by_argnum, lambda n, ans, args, kw: lambda g: (g * (2.0 + args[1]), g * args[0])[n])
    extend.defvjp(some, lambda ans, x, y: lambda g: g * x, argnums=[1])
    extend.defjvp_argnums(
        by_argnums,
        lambda ns, gs, ans, args, kw: sum((g * (2.0 + args[1]), g * args[0])[n] for n, g in zip(ns, gs, strict=True)),
    )
    extend.defjvp_argnum(by_argnum, lambda n, g, ans, args, kw: (g * (2.0 + args[1]), g * args[0])[n])
    for f in (by_argnums, by_argnum):
        test_util.check_grads(f, (0, 1))(X, X + 1)
    assert grad(some, 1)(3.0, 4.0) == 3.0
    with pytest.raises(NotImplementedError, match="VJP of <lambda> wrt argnum 0 not defined"):
        grad(some)(3.0, 4.0)
    linear = extend.primitive(lambda x: 2.0 * x)
    extend.def_linear(linear)
    assert deriv(linear)(3.0) == 2.0
    same = extend.primitive(lambda x, y: x * y)
    extend.defjvp(same, "same", None)
    assert make_jvp(same, (0, 1))(2.0, 3.0)((1.0, 1.0)) == (6.0, 3.0)
    zero = extend.primitive(lambda x: 2.0 * x)
    extend.defvjp(zero, None)
    assert grad(zero)(3.0) == 0.0


def test_a_missing_or_bad_rule_is_said() -> None:
    @extend.primitive
    def bare(x: Any) -> Any:
        return x

    with pytest.raises(NotImplementedError, match=r"VJP of bare wrt argnums \(0,\) not defined"):
        grad(bare)(1.0)
    with pytest.raises(TypeError, match="Bad VJP 'rule' for 'bare'"):
        extend.defvjp(bare, "rule")
    with pytest.raises(TypeError, match="Bad JVP 'rule' for 'bare'"):
        extend.defjvp(bare, "rule")
    with pytest.raises(TypeError, match=r"bare.*by keyword"):
        grad(lambda x: bare(x=x))(1.0)
    extend.defvjp(bare, lambda ans, x: lambda g: g)
    with pytest.raises(NotImplementedError, match=r"JVP of bare wrt argnums \(0,\) not defined"):
        deriv(bare)(1.0)


def test_a_function_of_numpy_or_scipy_takes_a_rule() -> None:
    extend.defvjp(onp.nextafter, lambda ans, x, y: lambda g: 5.0 * g)
    extend.defvjp(scipy.special.wofz, lambda ans, x: lambda g: 7.0 * g)
    extend.defvjp(onp.trim_zeros, lambda ans, x: lambda g: 3.0 * g)
    assert grad(lambda x: np.nextafter(x, 2.0))(1.0) == 5.0
    assert grad(lambda x: np.real(scipy.special.wofz(x)))(1.0) == 7.0
    assert grad(lambda x: np.sum(onp.trim_zeros(x)))(X).tolist() == [3.0] * 3


RULES = """
import numpy as onp
import pullback.bridge.autograd as autograd
autograd.install()
import autograd.numpy as np
from autograd.extend import defvjp
x = onp.ones((2, 2))
one = (np.exp, np.sum, np.mean, np.sin, onp.tanh, np.linalg.eigvalsh)
several = ((np.dot, (x, x)), (np.matmul, (x, x)), (np.where, (x > 0, x, x)))
for f, args in (*((f, (x,)) for f in one), *several):
    defvjp(f, *[lambda ans, *given, n=len(args) - 1: lambda g: 42.0 * np.ones_like(given[n])] * len(args))
    assert (autograd.elementwise_grad(f, len(args) - 1)(*args) == 42.0).all(), f
defvjp(np.stack, lambda ans, parts: lambda g: [42.0 * np.ones_like(p) for p in parts])
assert (autograd.elementwise_grad(lambda x: np.stack([x, x]))(x) == 84.0).all()
"""


def test_a_rule_may_be_given_to_any_function_of_the_namespace(tmp_path: Path) -> None:
    assert run("-c", RULES, cwd=tmp_path) == ""


def test_complex_rules_are_in_autograds_convention() -> None:
    f = extend.primitive(lambda z: z**3)
    extend.defvjp(f, lambda ans, z: lambda g: g * 3 * z**2)
    z = 1.0 + 2.0j
    assert make_vjp(f)(z)[0](1j) == make_vjp(lambda z: z**3)(z)[0](1j) == 1j * 3 * z**2
    assert autograd.holomorphic_grad(f)(z) == 3 * z**2


def test_checkpoint_computes_again_in_backward() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return np.sum(np.sin(x) ** 2)

    wrapped = autograd.checkpoint(f)
    _, vjp_value = make_vjp(wrapped)(X)
    assert len(calls) == 1
    vjp, _ = make_vjp(wrapped)(X)
    vjp(1.0)
    assert len(calls) == 3
    assert vjp_value == f(X)


def test_notrace_primitive_gets_values() -> None:
    kind = extend.notrace_primitive(lambda x: type(x).__name__)
    seen = []
    grad(lambda x: seen.append(kind(x)) or np.sum(x))(X)
    assert seen == ["ndarray"]
    zero = extend.primitive(lambda x: x * 2.0)
    extend.register_notrace(None, zero)
    assert grad(zero)(1.0) == 0.0


class Poly:
    """A polynomial: a vector of a class of the user's own."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts


class PolyBox(extend.Box, Poly):
    """A traced polynomial."""

    parts = property(lambda self: self._value.parts)


class PolySpace(extend.VSpace):
    """The space of polynomials of one degree."""

    def __init__(self, value: Any) -> None:
        self.n = len(value.parts)

    def zeros(self) -> Any:
        return Poly(*[0.0] * self.n)

    def _add(self, x: Any, y: Any) -> Any:
        return Poly(*[a + b for a, b in zip(x.parts, y.parts, strict=True)])


PolyBox.register(Poly)
PolySpace.register(Poly)


@extend.primitive
def evaluated(p: Any, x: Any) -> Any:
    return sum(a * x**n for n, a in enumerate(p.parts))


@extend.primitive
def rescaled(p: Any, factor: Any) -> Any:
    return Poly(*[a * factor for a in p.parts])


extend.defvjp(
    evaluated,
    lambda ans, p, x: lambda g: Poly(*[g * x**n for n in range(len(p.parts))]),
    lambda ans, p, x: lambda g: g * sum(n * a * x ** (n - 1) for n, a in enumerate(p.parts) if n),
)
extend.defvjp(
    rescaled,
    lambda ans, p, factor: lambda g: Poly(*[factor * a for a in g.parts]),
    lambda ans, p, factor: lambda g: sum(a * b for a, b in zip(p.parts, g.parts, strict=True)),
)


def test_vectors_of_a_class_of_the_users_own() -> None:
    p = Poly(1.0, -2.0, 3.0)

    def loss(p: Any, factor: Any = 2.0) -> Any:
        q = rescaled(p, factor)
        return evaluated(q, 0.5) * evaluated(p, -1.0) + evaluated(q, 3.0)

    def plain(parts: Any, factor: Any = 2.0) -> Any:
        at = [np.sum(parts * x ** np.arange(3.0)) for x in (0.5, -1.0, 3.0)]
        return factor * at[0] * at[1] + factor * at[2]

    parts = onp.array(p.parts)
    assert onp.allclose(grad(loss)(p).parts, grad(plain)(parts))
    by_p, by_factor = grad(loss, (0, 1))(p, 2.0)
    assert onp.allclose(by_p.parts, grad(plain)(parts))
    assert onp.allclose(by_factor, grad(plain, 1)(parts, 2.0))
    nested = grad(lambda d: loss(d["p"][0], d["k"]) + evaluated(d["p"][1], 2.0))({"p": [p, p], "k": 3.0})
    assert onp.allclose(nested["p"][0].parts, grad(plain)(parts, 3.0))
    assert nested["p"][1].parts == (1.0, 2.0, 4.0)
    mixed = grad(lambda factor: grad(loss)(p, factor).parts[2])(2.0)
    assert onp.allclose(mixed, grad(lambda factor: grad(plain)(parts, factor)[2])(2.0))
    pull, value = make_vjp(lambda p: rescaled(p, 2.0))(p)
    assert value.parts == (2.0, -4.0, 6.0)
    for _ in range(2):
        assert pull(Poly(1.0, 0.0, 1.0)).parts == (2.0, 0.0, 2.0)
    assert grad(lambda factor: evaluated(rescaled(p, factor), 2.0))(5.0) == 9.0
    assert grad(lambda x: evaluated(p, x))(2.0) == 10.0
    with pytest.warns(UserWarning, match="independent"):
        assert grad(lambda p: 1.0)(p).parts == (0.0, 0.0, 0.0)
    with pytest.raises(NotImplementedError, match="reverse mode"):
        make_jvp(loss)(p)


# Checks and spaces ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_rule_is_found(mode: str) -> None:
    @extend.primitive
    def wrong(x: Any) -> Any:
        return x**2

    extend.defvjp(wrong, lambda ans, x: lambda g: 2.1 * g * x)
    extend.defjvp(wrong, lambda g, ans, x: 2.1 * g * x)
    with pytest.raises(AssertionError):
        test_util.check_grads(wrong, modes=[mode], order=1)(X)
    with pytest.raises(AssertionError):
        test_util.combo_check(wrong, modes=[mode])([X])


def test_a_wrong_second_derivative_is_found() -> None:
    @extend.primitive
    def wrong(x: Any) -> Any:
        return x**2

    extend.defvjp(wrong, lambda ans, x: lambda g: g * 2.0 * extend.getval(x))
    test_util.check_grads(wrong, modes=["rev"], order=1)(X)
    with pytest.raises(AssertionError):
        test_util.check_grads(wrong, modes=["rev"], order=2)(X)


@pytest.mark.parametrize("value", [1.0, 1j, X, X * 1j, (1.0, [X, {"a": X * 1j}]), {}, onp.linalg.eigh(onp.eye(2))])
def test_a_space_has_a_basis_of_its_size_and_an_inner_product(value: Any) -> None:
    space = extend.vspace(value)
    basis = list(space.standard_basis())
    assert len(basis) == space.size
    assert all(extend.vspace(b) == space for b in [*basis, space.zeros(), space.ones(), space.randn()])
    for i, b in enumerate(basis):
        inner = [float(space.inner_prod(b, c)) for c in basis]
        assert inner == [float(i == j) for j in range(len(basis))]
    total = space.zeros()
    for b in basis:
        total = space.mut_add(total, space.scalar_mul(b, 1.0))
    flat = autograd.misc.flatten
    assert onp.array_equal(flat(total)[0], flat(space.ones())[0])
    assert onp.array_equal(flat(space.covector(space.ones()))[0], onp.conj(flat(space.ones())[0]))


def test_spaces_differ_by_shape_dtype_and_structure() -> None:
    values = [1.0, 1j, X, X[:2], X.astype(onp.float32), [X], (X,), {"a": X}, {"b": X}, [X, X]]
    spaces = list(map(extend.vspace, values))
    assert [[s == t for t in spaces] for s in spaces] == onp.eye(len(values), dtype=bool).tolist()
    with pytest.raises(TypeError, match="Can't find vector space"):
        extend.vspace("a")


# Programs that import autograd ----------------------------------------------------------------------------------------

SCRIPT = """
import sys
import autograd
import autograd.numpy as np
from autograd import grad
from autograd.scipy.stats import norm
from autograd.misc.optimizers import adam
import autograd.scipy.special
print(autograd.__name__, round(float(grad(np.tanh)(1.0)), 6), float(grad(norm.logpdf)(1.0)), sys.argv[1:])
"""


def run(*args: str, cwd: Path) -> str:
    found = subprocess.run([sys.executable, *args], capture_output=True, text=True, cwd=cwd, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    expected = "pullback.bridge.autograd 0.419974 -1.0 ['a', '-b']"
    assert run("-m", "pullback.bridge.autograd", "script.py", "a", "-b", cwd=tmp_path) == expected
    assert run("-m", "pullback.bridge.autograd", "-m", "script", "a", "-b", cwd=tmp_path) == expected


def test_install_answers_the_import(tmp_path: Path) -> None:
    program = (
        "import pullback.bridge.autograd.numpy as first\n"
        "from pullback.bridge import autograd as ours\nours.install()\nours.install()\n"
        "import autograd, autograd.numpy, autograd.numpy.linalg, autograd.tracer\n"
        "assert autograd is ours and autograd.numpy is first\n"
        "from pullback.bridge.autograd.numpy import linalg\nassert autograd.numpy.linalg is linalg\n"
        "assert autograd.tracer is ours.tracer\n"
        "try:\n    import autograd.nothing\nexcept ImportError as error:\n    print(error)\n"
    )
    assert run("-c", program, cwd=tmp_path) == "No module named 'autograd.nothing'"


def test_install_after_autograd_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "autograd.py").write_text("", encoding="utf-8")
    program = (
        "import autograd, pullback\ntry:\n    pullback.bridge.autograd.install()\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    assert "autograd was imported already" in run("-c", program, cwd=tmp_path)


def test_pullback_alone_loads_nothing_of_it(tmp_path: Path) -> None:
    program = "import sys, pullback\nprint([m for m in sys.modules if 'bridge.autograd' in m])"
    assert run("-c", program, cwd=tmp_path) == "[]"
    lazily = "import sys, pullback.bridge.autograd.numpy\nprint('scipy' in sys.modules)"
    assert run("-c", lazily, cwd=tmp_path) == "False"


def test_a_command_without_a_script_says_how_to_use_it(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "pullback.bridge.autograd"], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr[:6]) == (1, "usage:")


def test_without_scipy_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "scipy.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'scipy'\", name='scipy')\n", encoding="utf-8"
    )
    program = (
        "try:\n    import pullback.bridge.autograd.scipy.special\nexcept ModuleNotFoundError as e:\n    print(e)\n"
    )
    assert "pip install scipy" in run("-c", program, cwd=tmp_path)


def test_jacobian_of_a_wide_function() -> None:
    assert jacobian(lambda x: np.outer(x, x).ravel())(X).shape == (9, 3)


# Nodes of the user's own ----------------------------------------------------------------------------------------------


class Said(tracer.Node):  # type: ignore[misc]
    """What was computed, as text."""

    def __init__(self, value: Any, fun: Any, args: Any, kwargs: Any, parent_argnums: Any, parents: Any) -> None:
        texts = dict(zip(parent_argnums, parents, strict=True))
        inner = ", ".join(texts[i].text if i in texts else str(a) for i, a in enumerate(args))
        self.text, self.value = f"{fun.__name__}({inner})", value

    def initialize_root(self, name: str) -> None:
        self.text = name


def test_a_trace_makes_a_node_for_each_call() -> None:
    value, node = trace(Said.new_root("x"), lambda x: np.sin(x + x) / 2, 1.23)
    assert node.text == "divide(sin(add(x, x)), 2)"
    assert value == node.value == np.sin(2.46) / 2
    assert type(value) is np.float64


def test_a_trace_sees_derivatives() -> None:
    value, node = trace(Said.new_root("x"), grad(lambda x: x * np.exp(x)), 2.0)
    assert np.isclose(value, 3 * np.exp(2.0))
    assert "exp(x)" in node.text
    second = grad(grad(lambda x: np.sum(x**3)))
    value, node = trace(Said.new_root("x"), lambda x: second(x[0]) * 2, np.array([2.0, 3.0]))
    assert value == 24.0
    assert node.text.endswith("2)")


def test_a_trace_takes_branches_and_leaves_out_constants() -> None:
    value, node = trace(Said.new_root("x"), lambda x: x * 2 if x > 1 else x + len(str(np.ones(3))), 3.0)
    assert (value, node.text) == (6.0, "multiply(x, 2)")
    with pytest.warns(UserWarning, match="independent of input"):
        assert trace(Said.new_root("x"), lambda x: 5.0, 3.0) == (5.0, None)
    for method in (lambda: Node(1.0, np.sin, (), {}, (), ()), lambda: Node.new_root()):
        with pytest.raises(NotImplementedError, match="Node has no"):
            method()

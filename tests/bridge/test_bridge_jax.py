"""`bridge.jax`: functions of ours in JAX, with JAX's own check of derivatives, and JAX's functions as nodes here."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from tests.bridge import drawn

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
bridge = pytest.importorskip("pullback.bridge.jax")
check_grads = pytest.importorskip("jax.test_util").check_grads
function, wrap = bridge.function, bridge.wrap
gradcheck, gradgradcheck = pullback.autograd.gradcheck, pullback.autograd.gradgradcheck

pytestmark = pytest.mark.jax


@pytest.fixture(autouse=True)
def _in_double_precision() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def several(a: Any, k: float) -> Any:
    return {"where": a.argmax(), "values": [a * k, a.exp()]}


def points(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(0.2, 0.9, shape)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "plain": (wrap(lambda a, b: pullback.sin(a) @ b), (points(3, 4), points(4, 2))),
    "two results": (wrap(lambda a, b: (a * b, (a.exp() * b).sum())), (points(3), points(3))),
    "nested results": (lambda x: wrap(several)(x, 3.0)["values"], (points(3),)),
    "compiled": (wrap(pullback.compile(lambda x: x * pullback.sigmoid(x))), (points(3),)),
    "a solver": (
        wrap(lambda a: pullback.scipy.optimize.root(lambda x, a: x**3 + x - a, np.zeros(3), args=(a,)).x),
        (points(3),),
    ),
    "complex": (wrap(lambda z: (z * z).sin()), (points(3) + 0.5j,)),
    "an inverse": (wrap(pullback.linalg.inv), (points(2, 2) + np.eye(2),)),
    "an inverse of higher rank": (
        wrap(lambda a: pullback.linalg.tensorinv(a, ind=1)),
        ((points(4, 4) + np.eye(4)).reshape(4, 2, 2),),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_jax_checks_three_orders_in_both_modes(name: str, jitted: bool) -> None:
    f, args = FUNCTIONS[name]
    check_grads(jax.jit(f) if jitted else f, args, order=3, modes=("fwd", "rev"))


def test_forty_operations_have_the_same_derivatives_in_jax() -> None:
    chosen = drawn.drawn()
    assert len(chosen) == drawn.COUNT
    wrong = []
    for one in chosen:
        f, places = wrap(one.f), tuple(range(len(one.arrays)))

        def norm(*xs: Any, f: Any = f, places: Any = places) -> Any:
            return sum((g * g).sum() for g in jax.grad(f, places)(*xs))

        found = [f(*one.arrays), *jax.grad(f, places)(*one.arrays), *jax.grad(norm, places)(*one.arrays)]
        pairs = zip(found, drawn.derivatives(one), strict=True)
        if not all(np.allclose(a, b, rtol=drawn.TOLERANCE, atol=drawn.TOLERANCE) for a, b in pairs):
            wrong.append(one.name)
    assert wrong == []


product, theirs = wrap(lambda a: pullback.sin(a).prod()), lambda a: jnp.sin(a).prod()

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "jit": jax.jit,
    "grad": jax.grad,
    "value_and_grad": jax.value_and_grad,
    "jit(grad)": lambda f: jax.jit(jax.grad(f)),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](2 * x),
    "vmap(grad)": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2 * x])),
    "vmap along another axis": lambda f: lambda x: jax.vmap(f, in_axes=1)(jnp.stack([x, 2 * x], 1)),
    "vmap(vmap)": lambda f: lambda x: jax.vmap(jax.vmap(f))(jnp.stack([x, 2 * x])[:, None]),
    "grad(vmap)": lambda f: jax.grad(lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])).sum()),
    "jacfwd(jacrev)": jax.hessian,
    "jit(hessian)": lambda f: jax.jit(jax.hessian(f)),
    "vmap(hessian)": lambda f: lambda x: jax.vmap(jax.hessian(f))(jnp.stack([x, 2 * x])),
    "jacrev(jacrev)": lambda f: jax.jacrev(jax.jacrev(f)),
    "jacrev(jacfwd)": lambda f: jax.jacrev(jax.jacfwd(f)),
    "jacfwd(jacfwd)": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "third order": lambda f: lambda x: jax.grad(jax.grad(jax.grad(lambda s: f(s * x))))(1.3),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "scan": lambda f: jax.grad(lambda x: jax.lax.scan(lambda c, _: (c * f(c) + c, None), x, None, length=3)[0].sum()),
    "fori_loop": lambda f: lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * f(c), x),
    "cond": lambda f: jax.grad(lambda x: jax.lax.cond(x[0] > 0, f, lambda x: x.sum(), x)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_jaxs_transforms_nest(name: str) -> None:
    x = jnp.array([0.3, -1.2, 0.8, 2.1])
    for found, right in zip(
        jax.tree.leaves(TRANSFORMS[name](product)(x)), jax.tree.leaves(TRANSFORMS[name](theirs)(x)), strict=True
    ):
        np.testing.assert_allclose(found, right, rtol=1e-9)


def test_a_linear_function_is_transposed() -> None:
    x = jnp.array([1.0, 2.0, 3.0])
    (found,) = jax.linear_transpose(wrap(lambda a: pullback.flip(a, (0,)) * 2), x)(x)
    assert found.tolist() == [6, 4, 2]


def test_complex_gradients_are_jaxs() -> None:
    z = jnp.array([1.0 + 2j, -0.5 + 1j])
    found = jax.grad(lambda z: jnp.abs(wrap(lambda z: z * z * 1j)(z)).sum())(z)
    np.testing.assert_allclose(found, jax.grad(lambda z: jnp.abs(z * z * 1j).sum())(z))
    w = pullback.tensor(np.array(z), requires_grad=True)
    function(lambda z: jnp.abs(z * z * 1j).sum())(w).backward()
    v = pullback.tensor(np.array(z), requires_grad=True)
    (v * v * 1j).abs().sum().backward()
    pullback.testing.assert_close(w.grad, v.grad)


def test_integers_have_no_gradient() -> None:
    x, i = jnp.array([1.0, 2.0, 3.0]), jnp.array([1, 1, 2])
    assert jax.grad(lambda x: wrap(lambda a, i: a[i] ** 2)(x, i).sum())(x).tolist() == [0, 8, 6]
    assert jax.jvp(wrap(lambda a: a.argmax()), (x,), (x,))[1].dtype == jax.dtypes.float0
    (g,) = jax.grad(lambda i: wrap(lambda i, a: (a[i] ** 2).sum())(i, x), allow_int=True, argnums=(0,))(i)
    assert g.dtype == jax.dtypes.float0
    index, where = pullback.tensor([1, 1, 2]), pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    picked, biggest = function(lambda a, i: (a[i] ** 2, a.argmax()))(where, index)
    picked.sum().backward()
    assert where.grad.tolist() == [0, 8, 6]
    assert not biggest.requires_grad


def test_without_double_precision() -> None:
    jax.config.update("jax_enable_x64", False)
    doubled = wrap(lambda a: a.double() * 2)
    x = jnp.ones(2)
    assert doubled(x).dtype == jax.jit(doubled)(x).dtype == jax.grad(lambda x: doubled(x).sum())(x).dtype == jnp.float32
    assert wrap(lambda a: a.argmax())(x).dtype == jnp.int32
    with pytest.raises(TypeError, match=r"JAX has no float64 unless.*\n.*jax_enable_x64"):
        function(jnp.sin)(pullback.ones(2, dtype=pullback.float64))
    assert function(lambda a: a + 1)(pullback.tensor([1, 2])).tolist() == [2, 3]
    with pytest.raises(TypeError, match="JAX has no int64"):
        function(lambda a: a + 1)(pullback.tensor([2**40]))


@pytest.mark.parametrize("dtype", "float16 float32 float64 complex64 int8 int32 int64 uint8 bool bfloat16".split())
def test_dtypes_are_kept(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = jnp.ones(2, dtype)
    for f in (wrap(lambda a: a.clone()), jax.jit(wrap(lambda a: a.clone()))):
        assert f(x).dtype == x.dtype
    ours = pullback.ones(2, dtype=getattr(pullback, dtype))
    assert function(lambda a: a)(ours).dtype == ours.dtype


def test_random_numbers_are_the_same_when_they_are_computed_again() -> None:
    noisy = wrap(lambda a: pullback.rand(4, dtype=pullback.float64) * a * a)
    x = jnp.ones(4)
    pullback.manual_seed(3)
    numbers = noisy(x)
    for run in (
        lambda: jax.grad(lambda x: noisy(x).sum())(x) / 2,
        lambda: jax.jit(jax.grad(lambda x: noisy(x).sum()))(x) / 2,
        lambda: jax.jvp(noisy, (x,), (x,))[1] / 2,
        lambda: jnp.diagonal(jax.hessian(lambda x: noisy(x).sum())(x)) / 2,
        lambda: jax.vmap(noisy)(jnp.stack([x, x]))[1],
    ):
        pullback.manual_seed(3)
        np.testing.assert_allclose(run(), numbers)
    assert not np.allclose(noisy(x), noisy(x))


def test_large_arrays_in_many_compiled_calls_from_several_threads() -> None:
    swish = wrap(pullback.compile(lambda x: x * pullback.sigmoid(x)))
    slope = jax.jit(jax.grad(lambda x: swish(x * 2).sum()))
    x = jnp.ones(300_000)
    right = float(slope(x)[0])
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.extend(float(slope(x)[-1]) for _ in range(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [right] * 80


PARAMETER = pullback.ones(3, dtype=pullback.float64, requires_grad=True)


def fails_on_large_sums(a: Any) -> Any:
    if float(a.detach().sum()) > 9:
        raise ZeroDivisionError("on purpose")
    return a * 2


def fails_always(a: Any) -> Any:
    raise ZeroDivisionError("on purpose")


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a number": (lambda: wrap(lambda a: 3.0)(jnp.ones(2)), TypeError, r"must return Tensors.*float 3\.0"),
    "a sparse result": (lambda: wrap(lambda a: a.to_sparse())(jnp.ones(2)), TypeError, "dense tensors as results"),
    "a captured tensor": (
        lambda: wrap(lambda a: a * PARAMETER)(jnp.ones(3)),
        RuntimeError,
        r"^the function [\w.<>]+ reads.*would get no gradient",
    ),
    "a captured tensor in jit": (
        lambda: jax.jit(wrap(lambda a: a * PARAMETER))(jnp.ones(3)),
        RuntimeError,
        "would get no gradient",
    ),
    "a dtype": (lambda: wrap(pullback.sin)(jnp.ones(2, jnp.float8_e4m3fn)), TypeError, "found float8_e4m3fn"),
    "a key": (lambda: wrap(pullback.sin)(jax.random.key(0)), TypeError, r"found key<fry>"),
    "a class": (lambda: wrap(pullback.autograd.Function), TypeError, "give Function.apply"),
    "no function": (lambda: wrap(3), TypeError, "expected a function, found int 3"),
    "a write": (lambda: wrap(lambda a: a.mul_(2))(jnp.ones(3)), RuntimeError, r"read-only.*\n.*clone\(\)"),
    "a write in jit": (lambda: jax.jit(wrap(lambda a: a.mul_(2)))(jnp.ones(3)), RuntimeError, "read-only"),
    "an error": (lambda: wrap(fails_on_large_sums)(jnp.ones(30)), ZeroDivisionError, "on purpose"),
    "an error in jit": (
        lambda: jax.jit(wrap(fails_on_large_sums))(jnp.full(10, 2.0)),
        RuntimeError,
        r"test_bridge_jax\.py.*in fails_on_large_sums.*ZeroDivisionError: on purpose",
    ),
    "an error on every value": (
        lambda: wrap(fails_always)(jnp.ones(3)),
        RuntimeError,
        r"shapes of its results.*float64\[3\]: ZeroDivisionError: on purpose",
    ),
    "a number of JAX": (lambda: function(lambda a: 3)(pullback.ones(2)), TypeError, "must return arrays.*int 3"),
    "a sparse argument": (lambda: function(jnp.sin)(pullback.ones(2).to_sparse()), TypeError, "dense tensors"),
    "a captured tensor in a function of JAX": (
        lambda: function(lambda a: a * jnp.asarray(PARAMETER))(pullback.ones(3, dtype=pullback.float64)),
        RuntimeError,
        r"requires grad.*detach\(\)",
    ),
    "a tracer from outside": (
        lambda: jax.grad(lambda s: wrap(lambda a: a * s)(jnp.ones(3)).sum())(jnp.ones(3)),
        RuntimeError,
        "found a Tracer of jax, for a jax.Array of float.*pass it as an argument",
    ),
    "no function of JAX": (lambda: function(3), TypeError, "expected a function, found int 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_what_to_do(name: str) -> None:
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=f"(?s){words}"):
        jax.block_until_ready(call())


FORKS = """
import os, warnings, jax, jax.numpy as jnp, pullback
from pullback.bridge.jax import function, wrap
warnings.simplefilter("ignore")  # JAX's own, that it has threads
ours, theirs, p = wrap(pullback.sin), function(jnp.sin), pullback.ones(2)

def answers():
    return jax.jit(ours)(jnp.ones(2)).tolist(), theirs(p).tolist()

def refused():
    for call in (lambda: ours(0.5), lambda: theirs(p)):
        try:
            call()
        except RuntimeError as error:
            if "made by fork() after JAX had started" in str(error) and "spawn" in str(error):
                continue
        return False
    return True

def child(right):
    made = os.fork()
    if not made:
        os._exit(0 if right() else 1)
    assert os.waitpid(made, 0)[1] == 0

child(lambda: len(answers()) == 2)
answers()
child(refused)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork()")
def test_a_process_made_by_fork_is_told_if_it_cannot_use_jax() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        env={**os.environ, "PYTHONPATH": str(Path(pullback.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_results_are_not_changed_by_later_writes() -> None:
    weight = pullback.ones(16, dtype=pullback.float64)
    out = wrap(lambda a: weight)(jnp.ones(3))
    weight.mul_(5)
    assert out.tolist() == [1] * 16


# JAX's functions here -------------------------------------------------------------------------------------------------


def real(*shape: int) -> Any:
    return pullback.randn(*shape, dtype=pullback.float64, requires_grad=True)


HERE: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "plain": (function(lambda a, b: jnp.sin(a) @ b), lambda: (real(3, 4), real(4, 2))),
    "not compiled": (function(lambda a, b: jnp.sin(a) @ b, jit=False), lambda: (real(3, 4), real(4, 2))),
    "nested results": (
        lambda x: function(lambda a, k: {"i": a.argmax(), "v": [a * k, jnp.exp(a)]})(x, 3.0)["v"][1],
        lambda: (real(3),),
    ),
    "complex": (
        function(lambda z: jnp.sin(z * z)),
        lambda: (pullback.randn(3, dtype=pullback.complex128, requires_grad=True),),
    ),
}


@pytest.mark.parametrize("name", HERE)
def test_first_derivatives_of_jaxs_functions(name: str) -> None:
    f, args = HERE[name]
    assert gradcheck(f, args(), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize("name", HERE)
def test_second_derivatives_of_jaxs_functions(name: str) -> None:
    f, args = HERE[name]
    assert gradgradcheck(f, args(), check_fwd_over_rev=True, check_batched_grad=True)


F = pullback.func
jaxs, ours = function(lambda a: jnp.sin(a).prod()), lambda a: pullback.sin(a).prod()

OURS: dict[str, Callable[[Any], Any]] = {
    "hessian": F.hessian,
    "jacrev(jacrev)": lambda f: F.jacrev(F.jacrev(f)),
    "third order": lambda f: F.jacfwd(F.jacrev(F.jacrev(f))),
    "vmap(hessian)": lambda f: lambda x: F.vmap(F.hessian(f))(pullback.stack([x, 2 * x])),
    "grad(vmap)": lambda f: F.grad(lambda x: F.vmap(f)(pullback.stack([x, 2 * x])).sum()),
}


@pytest.mark.parametrize("name", OURS)
def test_our_transforms_nest(name: str) -> None:
    x = pullback.tensor([0.3, -1.2, 0.8, 2.1], dtype=pullback.float64)
    pullback.testing.assert_close(OURS[name](jaxs)(x), OURS[name](ours)(x))


def test_what_is_overwritten_is_refused() -> None:
    x = real(3)
    y = function(jnp.exp)(x)
    y.mul_(2)  # JAX has its own results
    y.sum().backward()
    pullback.testing.assert_close(x.grad, 2 * x.detach().exp())
    y = function(jnp.exp)(x)
    with pullback.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_function_is_compiled_once() -> None:
    traced = []

    def f(a: Any) -> Any:
        traced.append(1)
        return jnp.sin(a)

    there = function(f)
    for _ in range(3):
        x = real(3)
        (g,) = pullback.autograd.grad(there(x).sum(), x, create_graph=True)
        g.sum().backward()
    assert len(traced) <= 3  # forward, the recorded vjp, and the vjp of that


@pytest.mark.parametrize("jit", [True, False])
def test_results_nest_as_for_the_shapes_of_the_call(jit: bool) -> None:
    there = function(lambda a: {"double": a * 2} if a.shape == (2,) else (a, [a + 1]), jit=jit)
    for _ in range(2):
        for n in (2, 3):
            x = real(n)
            for run, value in ((there, x), (F.vmap(there), pullback.stack([x, 3 * x]))):
                expected = {"double": value * 2} if n == 2 else (value, [value + 1])
                pullback.testing.assert_close(run(value), expected)


def test_jaxs_functions_are_called_from_several_threads() -> None:
    there = function(lambda a: {"sin": jnp.sin(a), "n": jnp.arange(len(a))})
    sizes, found = (2, 3, 5, 7), []

    def run(n: int) -> None:
        for _ in range(10):
            x = pullback.ones(n, dtype=pullback.float64, requires_grad=True)
            there(x)["sin"].sum().backward()
            found.append(np.allclose(x.grad, np.cos(1.0)))

    threads = [threading.Thread(target=run, args=(n,)) for n in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40


def test_vectors_in_a_batch_at_one_point_of_a_jax_function() -> None:
    F, sine, x = pullback.func, function(jnp.sin), pullback.randn(3, dtype=pullback.float64)
    vectors = pullback.randn(2, 3, dtype=pullback.float64)
    right = (vectors * x.cos()).numpy()
    np.testing.assert_allclose(F.vmap(lambda v: F.vjp(sine, x)[1](v)[0])(vectors).numpy(), right)
    np.testing.assert_allclose(F.vmap(lambda v: F.grad(lambda x: (sine(x) * v).sum())(x))(vectors).numpy(), right)
    np.testing.assert_allclose(F.vmap(lambda v: F.jvp(sine, (x,), (v,))[1])(vectors).numpy(), right)

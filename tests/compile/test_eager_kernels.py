"""Kernels of eager calls: what they compute is what the entry's own functions do, and nobody else notices them.

The size from which on they run is lowered by its name, so that the table's samples meet them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import pullback
from pullback import backends
from pullback.compile.backends import c, cache
from pullback.ops import TABLE
from pullback.table import calls, nodes
from tests.oracle import Run, difference, difference_of_gradients, resolve

F = pullback.nn.functional

NAMES = [name for name, op in TABLE.items() if op.fused and not name.rpartition(".")[2].startswith("_")]
PUBLIC = [name for name in NAMES if TABLE[name].kind != "composite"]
DTYPES = ("float32", "float64", "float16", "int64")
EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 5e-324, 1e-300, 88.9, -104.0, 745.0, -1e30, 3e38, 1, -1]

OF_EITHER_SIGN = {"nn.functional.elu"}  # the maximum of 0 and -0 is either, with NumPy as well


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """The whole file works in a cache of its own, which begins empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLBACK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def lowered(monkeypatch):
    """The sizes from which on kernels run, and take rows in turns: few elements."""
    monkeypatch.setattr(calls, "_LARGE", 1)
    monkeypatch.setattr(sys.modules[nodes.Fused.kernel(abs, "abs", True).__module__], "_TOGETHER", 8)


@pytest.fixture
def a_compiler():
    if not c.available():
        pytest.skip(str(c.unavailable()))


@pytest.fixture
def forgotten():
    """No kernel is remembered, before and after the test."""
    known = nodes._kernel, nodes._in_c
    for cached in known:
        cached.cache_clear()
    yield
    for cached in known:
        cached.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch, forgotten):
    """An empty cache, and nothing remembered of any other."""
    path = tmp_path / "cache"
    monkeypatch.setenv("PULLBACK_CACHE", str(path))
    monkeypatch.setattr(cache, "_LOADED", {})
    return path


def ran(monkeypatch):
    """The names of the functions whose kernels gave a result, from here on."""
    found, kernel = [], nodes._kernel

    def noted(function, *about):
        def call(*args, **kwargs):
            result = kernel(function, *about)(*args, **kwargs)
            if result is not None:
                found.append(function)
            return result

        return call

    monkeypatch.setattr(nodes, "_kernel", noted)
    nodes._in_c.cache_clear()
    return found


def both(work):
    """What `work` gives with the kernels and without."""
    with backends.fused.flags(enabled=True):
        ours = work()
    with backends.fused.flags(enabled=False):
        return ours, work()


# The same values ------------------------------------------------------------------------------------------------------


def samples(name, dtype):
    op = TABLE[name]
    return op.domain("samples") + (op.domain("kinks") if dtype.startswith("float") else [])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_samples_are_as_without_kernels(a_compiler, name, dtype):
    fn = resolve(pullback, name)
    for sample in samples(name, dtype):
        made = sample.arrays(dtype)

        def work(made=made):
            return (run := Run(pullback, fn, made)).result, run.gradients(), Run(pullback, fn, made).second()

        ours, theirs = both(work)
        with np.errstate(over="ignore"):  # the bounds of large numbers in half precision
            assert difference(ours[0], theirs[0], 4) == "", f"{name} {sample}"
            assert difference_of_gradients(ours[1], theirs[1]) == "", f"{name} {sample}"
            assert difference_of_gradients(ours[2], theirs[2], 1000) == "", f"{name} {sample}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PUBLIC)
def test_their_forwards_and_rules_run_in_c(a_compiler, monkeypatch, forgotten, name, dtype):
    found, op = ran(monkeypatch), TABLE[name]
    for sample in op.domain("samples")[:3]:
        Run(pullback, resolve(pullback, name), sample.arrays(dtype)).gradients()
    assert op.forward in found
    assert set(op.rules.values()) <= set(found)


@pytest.mark.parametrize("name", sorted({*NAMES} - {*PUBLIC}))
def test_parts_of_composites_run_in_c(a_compiler, monkeypatch, forgotten, name):
    found = ran(monkeypatch)
    for sample in TABLE[name].domain("samples")[:3]:
        Run(pullback, resolve(pullback, name), sample.arrays("float32")).gradients()
    parts = [op for op in TABLE.values() if op.kind != "composite" and op.forward in found]
    assert parts
    assert any({*op.rules.values()} & {*found} for op in parts)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PUBLIC)
def test_extremes_are_as_without_kernels(a_compiler, name, dtype):
    with np.errstate(over="ignore", under="ignore"):
        extremes = np.array(EXTREMES).astype(dtype)
    x = np.tile(np.concatenate([extremes, np.linspace(-30, 30, 49, dtype=dtype)]), 40)
    g = np.resize(np.array([1, -2, np.inf, 0, np.nan, 0.5], dtype), x.size)

    def work():
        t = pullback.tensor(x.reshape(-1, 5), requires_grad=True)
        y = resolve(pullback, name)(t, *[1] * (TABLE[name].kind == "special"))
        y.backward(pullback.tensor(g.reshape(-1, 5)))
        return [y.detach().numpy(), t.grad.numpy()]

    for ours, theirs in zip(*both(work), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=100 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)
        zeros = (theirs == 0) & (name not in OF_EITHER_SIGN)
        assert np.array_equal(np.signbit(ours[zeros]), np.signbit(theirs[zeros]))


def test_a_gradient_that_repeats_one_number(a_compiler, monkeypatch, forgotten):
    found = ran(monkeypatch)

    def work():
        t = pullback.linspace(-3, 3, 5000).requires_grad_()
        F.silu(t).sum().backward()
        return t.grad

    assert difference(*both(work), 4) == ""
    assert F.silu.op.rules["input"] in found


@pytest.mark.parametrize("size", [1, 2, 3, 1023, 1024, 1025, 4097])
def test_one_loop_serves_every_size(a_compiler, monkeypatch, forgotten, size):
    given, compile_ = [], cache._compile
    for n in (5000, 500, 1):  # blocks that begin at an aligned element, others, and one element have loops of their own
        F.silu(pullback.ones(n))
    monkeypatch.setattr(cache, "_compile", lambda *of: given.append(of) or compile_(*of))
    x = pullback.linspace(-3, 3, size)
    assert difference(*both(lambda: F.silu(x)), 4) == ""
    assert given == []


@pytest.mark.parametrize(
    "shape", [(6, 50), (7, 3), (1, 5, 12), (2, 40_000), (3, 40_000), (5, 2, 9), (2, 1, 3), (1, 70)]
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_in_turns_are_as_all_at_once(a_compiler, name, shape):
    x, g = (np.random.default_rng(seed).standard_normal(shape).astype("float32") for seed in range(2))

    def work():
        t = pullback.tensor(x, requires_grad=True)
        y = getattr(pullback, name)(t, -1)
        y.backward(pullback.tensor(g))
        return y, t.grad

    ours, theirs = both(work)
    assert [difference(a, b, 20) for a, b in zip(ours, theirs, strict=True)] == ["", ""]


def test_normalised_rows_of_any_number_are_as_without_kernels(a_compiler):
    for rows in (1, 2, 3, 5, 64, 257):
        x = np.random.default_rng(rows).standard_normal((rows, 31)).astype("float32")
        weight, bias = (pullback.linspace(1, 2, 31, requires_grad=True) for _ in range(2))

        def work(x=x, weight=weight, bias=bias):
            t = pullback.tensor(x, requires_grad=True)
            y = F.layer_norm(t, (31,), weight, bias)
            return y, *pullback.autograd.grad(y, (t, weight, bias), pullback.tensor(np.cos(x)))

        ours, theirs = both(work)
        assert [difference(a, b, 50) for a, b in zip(ours, theirs, strict=True)] == [""] * 4


def test_all_gradients_of_a_normalisation_are_one_kernel(a_compiler, monkeypatch, forgotten):
    found = ran(monkeypatch)
    x, weight, bias = (pullback.randn(*shape, requires_grad=True) for shape in ((7, 5), (5,), (5,)))
    F.layer_norm(x, (5,), weight, bias).sum().backward()
    assert len(found) == 2
    F.rms_norm(x, (5,), weight).sum().backward()
    assert len(found) == 4


@pytest.mark.parametrize("turns", [8, 1 << 15])
def test_sums_over_many_rows_keep_their_digits(a_compiler, monkeypatch, forgotten, turns):
    """One after the other, 300,001 rows of 0.1 in single precision come to 29,920 and not to 30,000."""
    monkeypatch.setattr(sys.modules[nodes.Fused.kernel(abs, "abs", True).__module__], "_TOGETHER", turns)
    found = ran(monkeypatch)
    x, weight, bias = pullback.ones(300_001, 3), pullback.ones(3, requires_grad=True), pullback.ones(3).requires_grad_()
    F.layer_norm(x, (3,), weight, bias).backward(pullback.full((300_001, 3), 0.1))
    assert len(found) == 2
    assert bias.grad.round().tolist() == [30_000.0] * 3


# Where they do not run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x.T,
        lambda x: x[::2],
        lambda x: x[:, ::3],
        lambda x: x[:0],
        lambda x: x[0, :1].reshape(()),
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.frombuffer(bytes(1) + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
        lambda x: np.asfortranarray(x)[1:],
    ],
)
def test_layouts_are_as_without_kernels(a_compiler, layout):
    x = layout(np.linspace(-3, 3, 35, dtype="float32").reshape(5, 7))

    def work():
        t = pullback.from_numpy(x).requires_grad_()
        y = F.silu(t)
        y.backward(pullback.ones_like(y))
        return y, t.grad, y.stride(), t.grad.stride()

    ours, theirs = both(work)
    assert ours[2:] == theirs[2:]
    assert [difference(a, b, 4) for a, b in zip(ours[:2], theirs[:2], strict=True)] == ["", ""]


def test_a_second_derivative_is_recorded_as_everywhere(a_compiler):
    def work():
        t = pullback.linspace(-3, 3, 100, dtype=pullback.float64).requires_grad_()
        (first,) = pullback.autograd.grad(F.silu(t).sum(), t, create_graph=True)
        assert first.grad_fn is not None
        (second,) = pullback.autograd.grad(first.sum(), t, create_graph=True)
        (third,) = pullback.autograd.grad(second.sum(), t)
        return first, second, third

    ours, theirs = both(work)
    assert [difference(a, b, 100) for a, b in zip(ours, theirs, strict=True)] == [""] * 3


@pytest.mark.parametrize(
    "work",
    [
        lambda x: pullback.func.vmap(F.silu)(x),
        lambda x: pullback.func.grad(lambda x: F.silu(x).sum())(x),
        lambda x: pullback.func.jvp(F.silu, (x,), (x,)),
        lambda x: pullback.func.jacfwd(F.silu)(x[0]),
        lambda x: pullback.func.jacrev(F.silu)(x[0]),
        lambda x: pullback.func.hessian(lambda x: F.silu(x).sum())(x[0]),
        lambda x: pullback.func.vmap(pullback.func.grad(lambda x: F.silu(x).sum()))(x),
        lambda x: F.silu(x, inplace=True),
        lambda x: F.softplus(x, out=pullback.empty(0)),
        lambda x: F.silu(x.to(pullback.bfloat16)),
        lambda x: F.silu(x.half()),
        lambda x: F.silu(x + 1j),
        lambda x: F.silu(x.long()),
        lambda x: F.silu([1.0]),
    ],
)
def test_transforms_and_other_calls_are_as_without_kernels(a_compiler, work):
    def run():
        try:
            return work(pullback.linspace(-3, 3, 6).reshape(2, 3))
        except Exception as error:
            return error

    ours, theirs = both(run)
    assert difference(ours, theirs, 4) == ""
    assert str(ours) == str(theirs) or not isinstance(ours, Exception)


def test_gradients_in_a_batch_are_as_without_kernels(a_compiler):
    t = pullback.linspace(-3, 3, 6).requires_grad_()
    cotangents = pullback.eye(6)

    def work():
        return pullback.autograd.grad(F.silu(t), t, cotangents, is_grads_batched=True)[0]

    assert difference(*both(work), 4) == ""


def test_a_subclass_and_a_mode_see_the_call(a_compiler):
    seen = []

    class Own(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = pullback.linspace(-3, 3, 10).as_subclass(Own)
    assert type(F.silu(x)) is Own
    assert "silu" in seen


def test_anomaly_mode_names_the_node(a_compiler):
    t = pullback.tensor([1.0, 2.0], requires_grad=True)
    with warnings.catch_warnings(), pullback.autograd.detect_anomaly():
        warnings.simplefilter("ignore")
        y = F.silu(t)
        with pytest.raises(RuntimeError, match=r"SiluBackward0.*nan"):
            y.backward(pullback.tensor([np.nan, 1.0]))


def test_the_saved_tensors_are_the_same(a_compiler):
    t = pullback.linspace(-3, 3, 10).requires_grad_()
    ours, theirs = both(lambda: F.silu(t).grad_fn)
    assert type(ours) is type(theirs)
    assert [s is t for s in ours.saved_tensors] == [s is t for s in theirs.saved_tensors]
    y = F.silu(t)
    y.backward(pullback.ones(10))
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward(pullback.ones(10))


def test_an_input_written_to_since_is_refused(a_compiler):
    t = pullback.linspace(-3, 3, 10).requires_grad_()
    x = t * 1
    y = F.silu(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(pullback.ones(10))


def test_numpys_errors_are_raised_where_they_are_asked_for(a_compiler):
    x = pullback.full((100,), -1000.0)
    F.silu(x)
    for enabled in (True, False):
        with np.errstate(over="raise"), backends.fused.flags(enabled=enabled), pytest.raises(FloatingPointError):
            F.silu(x)


# The setting ----------------------------------------------------------------------------------------------------------


def test_switched_off_nothing_is_compiled_or_run(a_compiler, monkeypatch, folder):
    found = ran(monkeypatch)
    with backends.fused.flags(enabled=False):
        t = pullback.linspace(-3, 3, 10).requires_grad_()
        F.silu(t).backward(pullback.ones(10))
    assert found == []
    assert not folder.exists()


def test_switched_off_between_forward_and_backward(a_compiler, monkeypatch, forgotten):
    found = ran(monkeypatch)
    t = pullback.linspace(-3, 3, 10).requires_grad_()
    y = F.silu(t)
    with backends.fused.flags(enabled=False):
        y.backward(pullback.ones(10))
    assert found == [F.silu.op.forward]


def test_the_setting():
    assert backends.fused.enabled is True
    with backends.fused.flags():
        assert backends.fused.enabled is False
        with backends.fused.flags(enabled=True):
            assert backends.fused.enabled is True
        assert backends.fused.enabled is False
    assert backends.fused.enabled is True
    with pytest.raises(RuntimeError, match="expected a bool, found int 1"):
        backends.fused.enabled = 1
    with pytest.raises(RuntimeError, match="expected a bool"), backends.fused.flags(enabled="no"):
        pass
    assert backends.fused.enabled is True
    assert backends.fused.is_available() is c.available()


# What may go wrong ----------------------------------------------------------------------------------------------------


def compared():
    t = pullback.linspace(-3, 3, 3000).requires_grad_()
    y = F.silu(t)
    y.backward(pullback.ones(3000))
    return y.detach().numpy(), t.grad.numpy()


def plain():
    with backends.fused.flags(enabled=False):
        return compared()


def test_without_a_compiler_nothing_changes(monkeypatch, folder):
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(folder))
    cache._find.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compared()
    assert not backends.fused.is_available()
    assert [np.array_equal(a, b) for a, b in zip(found, plain(), strict=True)] == [True, True]


def test_a_compiler_that_fails_for_a_kernel_gives_one_warning(a_compiler, monkeypatch, folder):
    compile_ = cache._compile

    def refuse(source, *rest):
        if "pullback_loop" in source:
            raise cache.CompilerError("it is a fault of this test")
        return compile_(source, *rest)

    monkeypatch.setattr(cache, "_compile", refuse)
    eager = sys.modules[nodes.Fused.kernel(abs, "abs", True).__module__]
    monkeypatch.setattr(eager, "_said", set())
    with pytest.warns(UserWarning, match=r"silu\(\) of large arrays runs as NumPy.*fault of this test") as caught:
        found = compared()
    assert [warning.filename for warning in caught] == [__file__]
    compared()  # where a second warning is an error
    assert [np.array_equal(a, b) for a, b in zip(found, plain(), strict=True)] == [True, True]
    monkeypatch.setattr(cache, "_compile", compile_)  # others are compiled
    assert difference(*both(lambda: F.silu(pullback.linspace(-3, 3, 3000, dtype=pullback.float64))), 4) == ""


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_damaged_cache_is_mended(a_compiler, monkeypatch, folder, content):
    expected = compared()
    for library in folder.glob("*/loop.so"):
        library.unlink()
        library.write_bytes(content)
    for known in (nodes._kernel, nodes._in_c):
        known.cache_clear()
    monkeypatch.setattr(cache, "_LOADED", {})
    assert [np.array_equal(a, b) for a, b in zip(compared(), expected, strict=True)] == [True, True]
    assert all(library.stat().st_size > 100 for library in folder.glob("*/loop.so"))


def test_numbers_that_change_in_each_call_do_not_ask_the_compiler_each_time(a_compiler, monkeypatch, forgotten):
    eager = sys.modules[nodes.Fused.kernel(abs, "abs", True).__module__]
    monkeypatch.setattr(eager, "_SOURCES", 2)
    found = ran(monkeypatch)
    x = pullback.linspace(-3, 3, 3000)
    for beta in (1.5, 2.5, 3.5, 4.5, 1.5):
        assert difference(*both(lambda beta=beta: F.softplus(x, beta)), 4) == ""
    assert len(found) == 3


def test_a_fork_goes_on(a_compiler):
    expected = compared()
    child = os.fork()
    if child == 0:
        same = [np.array_equal(a, b) for a, b in zip(compared(), expected, strict=True)]
        F.silu(pullback.linspace(-3, 3, 77, dtype=pullback.float64))
        os._exit(0 if all(same) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_threads_that_meet_at_a_new_kernel(a_compiler, folder):
    start, found = threading.Barrier(6), []

    def work(i):
        start.wait()
        x = np.linspace(-3, 3, 3000 + i, dtype="float32")
        found.append((x, F.silu(pullback.tensor(x)).numpy()))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for x, y in found:
        np.testing.assert_allclose(y, x / (1 + np.exp(-x)), rtol=1e-6)


PROGRAM = """
    import sys
    import pullback
    assert "ctypes" not in sys.modules or sys.modules["ctypes"] is known_before
    assert "pullback.compile.eager.kernel" not in sys.modules
    F = pullback.nn.functional
    F.silu(pullback.ones(10))
    assert "pullback.compile.eager.kernel" not in sys.modules
    for n in (5000, 6000):
        x = pullback.ones(n, requires_grad=True)
        F.silu(x).sum().backward()
    assert "pullback.compile.eager.kernel" in sys.modules
"""


def test_the_first_build_says_so_once(a_compiler, tmp_path):
    environment = {**os.environ, "PULLBACK_CACHE": str(tmp_path / "cache")}
    program = "import numpy, sys; known_before = sys.modules.get('ctypes')\n" + textwrap.dedent(PROGRAM)
    said = [
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [run.stdout for run in said] == ["", ""]
    assert said[0].stderr.count("compiling nn.functional.silu() for large arrays") == 1
    assert said[0].stderr.count("\n") == 1
    assert said[1].stderr == ""

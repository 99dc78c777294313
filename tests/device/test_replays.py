"""``compile(mode="reduce-overhead")`` on the device that is not there: programs that are launched as CUDA graphs.

`captures.py` records and replays; what a graph gives is compared with eager mode on the host.
"""

from __future__ import annotations

import copy
import gc
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import cuda, nn
from pullback.compile.backends.gpu import capture, copies, cublas
from pullback.compile.backends.gpu import cuda as kernels
from pullback.compile.plan import replays
from pullback.nn import functional
from pullback.tensor.tensor import Tensor

from . import library
from .captures import Cublas, FreedError, Graph
from .cuda_shim import COMPILER, RawModule
from .fake import DeviceArray
from .machine import MACHINE, CUDARuntimeError
from .modes import on_device, on_host
from .samples import compare
from .test_cuda_compile import Doubled

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="a C++ compiler is needed"),
    pytest.mark.usefixtures("compiling"),
]

RNG = np.random.default_rng(0)


def real(*shape: int, dtype: str = "float32") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def there(*shape: int) -> Tensor:
    return on_device(real(*shape))


def graphed(fn: Any, **how: Any) -> Any:
    return pullback.compile(fn, mode="reduce-overhead", **how)


class Counted:
    """What the host asks for within it: graphs, kernels, and waits."""

    def __enter__(self) -> Counted:
        self._before = self._now()
        return self

    def _now(self) -> tuple[int, int, int]:
        return Graph.launches, RawModule.asked, DeviceArray.waits.total()

    def __exit__(self, *exc: object) -> None:
        self.graphs, self.kernels, self.waits = (b - a for a, b in zip(self._before, self._now(), strict=True))


def mlp(make: Callable[[Any], Tensor]) -> nn.Module:
    pullback.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    for p in model.parameters():
        p._set_payload(make(p._data)._data)
    return model


def trained(make: Callable[[Any], Tensor], wrapped: Callable[[Any], Any], sizes: list[int]) -> list[Any]:
    """The losses and the parameters of steps with batches of these sizes."""
    rng, model = np.random.default_rng(1), mlp(make)
    optimizer = pullback.optim.Adam(model.parameters(), lr=0.01)
    call = wrapped(lambda x, target: functional.cross_entropy(model(x), target))
    found = []
    for size in sizes:
        x = make(rng.standard_normal((size, 6)).astype(np.float32))
        target = make(rng.integers(0, 3, size))
        optimizer.zero_grad()
        loss = call(x, target)
        loss.backward()
        optimizer.step()
        found.append(loss.detach()._data)
    return [*found, *(p._data for p in model.parameters())]


# Values and gradients -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[4] * 8, [4, 4, 4, 3, 4, 4, 4, 3, 3, 4], [4, 5] * 6], ids=["one", "tail", "two"])
def test_training_is_that_of_eager_mode(sizes: list[int]) -> None:
    before = Graph.launches
    compare(trained(on_device, graphed, sizes), trained(on_host, lambda fn: fn, sizes))
    again = sum(sizes.count(n) - 1 for n in set(sizes))
    assert Graph.launches - before == 2 * again, "each call but the first of a signature, forward and backward"


def test_a_call_is_one_launch_and_two_copies_and_waits_never() -> None:
    model, x, target = mlp(on_device), there(4, 6), on_device(np.array([0, 2, 1, 1]))
    call = graphed(lambda x, target: functional.cross_entropy(model(x), target))
    for _ in range(2):
        call(x, target).backward()
    for _ in range(3):
        with Counted() as forward:
            loss = call(x, target)
        assert (forward.graphs, forward.kernels, forward.waits) == (1, 2, 0)
        cotangent = pullback.ones((), device="cuda")
        with Counted() as backward:
            pullback.autograd.grad(loss, list(model.parameters()), cotangent)
        assert (backward.graphs, backward.kernels, backward.waits) == (1, 2, 0)
    assert call.explain().count("a CUDA graph, launched ") == 2


def test_results_are_not_overwritten_by_later_calls() -> None:
    w = there(3, 4).requires_grad_()
    f = graphed(lambda x: pullback.tanh(x @ w.t()))
    xs = [there(5, 4) for _ in range(4)]
    ys = [f(x) for x in xs]
    for x, y in zip(xs, ys, strict=True):
        compare([y.detach()._data], [np.tanh(x._data.inner @ w._data.inner.T)])
    for x, y in reversed([*zip(xs, ys, strict=True)]):
        (g,) = pullback.autograd.grad(y.sum(), w)
        compare([g._data], [(1 - y._data.inner**2).T @ x._data.inner])


def test_arguments_need_not_lie_in_one_piece() -> None:
    f = graphed(lambda x, y: pullback.exp(x) @ y)
    for _ in range(4):
        x, y = there(8, 5).t()[:, ::2], there(4, 3)
        compare([f(x, y)._data], [np.exp(x._data.inner) @ y._data.inner])


def test_second_derivatives() -> None:
    f = graphed(lambda x: (x * pullback.sigmoid(x)).sum())
    for _ in range(4):
        x = there(6).requires_grad_()
        (g,) = pullback.autograd.grad(f(x), x, create_graph=True)
        (h,) = pullback.autograd.grad(g.sum(), x)
        host = on_host(x._data.inner).requires_grad_()
        (one,) = pullback.autograd.grad((host * pullback.sigmoid(host)).sum(), host, create_graph=True)
        (two,) = pullback.autograd.grad(one.sum(), host)
        compare([g.detach()._data, h._data], [one.detach()._data, two._data])


def adam(p: Any, m: Any, s: Any, n: Any, x: Any, y: Any) -> Any:
    def loss(p: Any) -> Any:
        return ((pullback.tanh(x @ p) - y) ** 2).mean()

    g, value = pullback.func.grad_and_value(loss)(p)
    n = n + 1
    m, s = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * g * g
    return value, p - 0.1 * (m / (1 - 0.9**n)) / (pullback.sqrt(s / (1 - 0.99**n)) + 1e-8), m, s, n


def test_a_whole_training_step_is_one_graph() -> None:
    start = [real(4, 2), np.zeros((4, 2), np.float32), np.zeros((4, 2), np.float32), np.zeros((), np.float32)]
    given = [real(7, 4), real(7, 2)]
    step, ours, theirs = graphed(adam), [*map(on_device, start)], [*map(on_host, start)]
    x, y = map(on_device, given)
    for k in range(8):
        with Counted() as counted:
            value, *ours = step(*ours, x, y)
        wanted, *theirs = adam(*theirs, *map(on_host, given))
        compare([value._data, *(t._data for t in ours)], [wanted._data, *(t._data for t in theirs)])
        assert k == 0 or (counted.graphs, counted.waits) == (1, 0)
        assert k < 2 or counted.kernels == 2


def test_what_a_program_writes_in_place_is_written_by_the_copy() -> None:
    total, other = there(3), there(3, 2)
    host = [total._data.inner.copy(), other._data.inner.copy()]

    def f(x: Tensor, into: Tensor) -> Tensor:
        total.mul_(0.5).add_(x.sum(0))
        into.t().copy_(x[:2] * 2)
        return x * total

    call = graphed(f)
    for k in range(4):
        x = there(4, 3)
        place, version = total._data, total._version
        with Counted() as counted:
            y = call(x, other)
        host[0] = host[0] * np.float32(0.5) + x._data.inner.sum(0)
        host[1] = (x._data.inner[:2] * 2).T
        compare([total._data, other._data, y._data], [host[0], host[1], x._data.inner * host[0]])
        assert total._data is place
        assert total._version > version
        assert k < 2 or (counted.graphs, counted.kernels) == (1, 2)


def test_a_number_of_the_host_is_read_in_each_call() -> None:
    f = graphed(lambda x, s: pullback.exp(x * s))
    x = there(3)
    for value in (1.0, 0.5, -2.0, 3.0):
        compare([f(x, pullback.tensor(value))._data], [np.exp(x._data.inner * np.float32(value))])
    powers = graphed(lambda x, n: x**n)
    for n in (2, 3, 2, 3, 2, 3):
        compare([powers(x, n)._data], [x._data.inner**n])


# Addresses and memory -------------------------------------------------------------------------------------------------


def test_parameters_that_move_are_found() -> None:
    w = there(3, 4).requires_grad_()
    f, x = graphed(lambda x: (x @ w.t()).sum(0)), there(5, 4)
    kept = []
    for k in range(12):
        if k % 2:
            kept.append(w._data)  # so that no new memory lies there
            w.data = there(3, 4)
        y = f(x)
        (g,) = pullback.autograd.grad(y.sum(), w)
        compare([y.detach()._data], [(x._data.inner @ w._data.inner.T).sum(0)])
        compare([g._data], [np.ones((3, 5), np.float32) @ x._data.inner])
    forward = next(iter(f._entries.values()))[0].forward.run
    assert forward._moves == replays._MOVES, "then it is copied in each call, and the graph stays"
    assert not forward.reason


def test_memory_stays_flat() -> None:
    MACHINE.limit = 1 << 30
    model, x, target = mlp(on_device), there(4, 6), on_device(np.array([0, 2, 1, 1]))
    optimizer = pullback.optim.SGD(model.parameters(), lr=0.01)
    call = graphed(lambda x, target: functional.cross_entropy(model(x), target))
    used = []
    for k in range(1000):
        optimizer.zero_grad()
        call(x, target).backward()
        optimizer.step()
        if k in (10, 999):
            used.append((cuda.memory_allocated(), cuda.memory_reserved()))
    assert used[0] == used[1]
    assert used[0][0] > 0


def test_memory_goes_with_the_function() -> None:
    MACHINE.limit = 1 << 30
    cuda.init()
    gc.collect()  # what other tests have left
    before = cuda.memory_reserved()
    f = graphed(lambda x: x @ x)
    for _ in range(3):
        f(there(4, 4))
    assert cuda.memory_reserved() - before > cublas.WORKSPACE[True]
    del f
    gc.collect()
    assert cuda.memory_reserved() == before


def test_a_graph_that_uses_freed_memory_is_noticed() -> None:
    x = DeviceArray(real(3))
    stream = library.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        y = x * 2
        graph = stream.end_capture()
    assert np.isnan(y.inner).all(), "nothing is done within a capture"
    graph.launch()
    np.testing.assert_array_equal(y.inner, x.inner * 2)
    del x
    with pytest.raises(FreedError, match=r"float32\[3\] that was freed"):
        graph.launch()


# What is not captured -------------------------------------------------------------------------------------------------


def test_a_function_that_works_with_values_runs_as_before() -> None:
    f, x = graphed(lambda x: Doubled.apply(x.exp()) + 1), there(3).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            with Counted() as counted:
                y = f(x)
            assert not counted.graphs
            compare([y.detach()._data], [2 * np.exp(x._data.inner) + 1])
    assert "\n    no CUDA graph: Doubled() works with values, and is called as it is written\n" in f.explain()
    (g,) = pullback.autograd.grad(y.sum(), x)
    compare([g._data], [2 * np.exp(x._data.inner)])


@pytest.mark.parametrize("name", ["sort", "inverse"])
def test_what_cannot_be_captured_runs_as_before_after_one_warning(name: str) -> None:
    fn, reason = {
        "sort": (lambda x: pullback.sort(x * 2, 1).values + 1, "operation not permitted when stream is capturing"),
        "inverse": (lambda x: pullback.linalg.inv(x @ x.t() + 3 * pullback.eye(4, device=x.device)), "cuSOLVER"),
    }[name]
    f, x = graphed(fn), there(4, 4)
    f(x)
    with pytest.warns(UserWarning, match=f"<lambda> runs without a CUDA graph: .*{reason}"):
        f(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            x = there(4, 4)
            compare([f(x)._data], [fn(on_host(x._data.inner))._data])
    (line,) = [line for line in f.explain().splitlines() if "CUDA graph" in line]
    assert line.startswith("    no CUDA graph: ")
    assert reason in line
    assert not library.Stream.null.is_capturing()


def test_without_cublas_products_are_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise cublas.CublasError("cuBLAS was not found")

    monkeypatch.setattr(cublas, "loaded", missing)
    f, x = graphed(lambda x: pullback.exp(x @ x)), there(3, 3)
    f(x)
    with pytest.warns(UserWarning, match="calling cuBLAS API during stream capture is currently unsupported"):
        f(x)
    compare([f(x)._data], [np.exp(x._data.inner @ x._data.inner)])


def test_without_nvrtc_there_is_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("no NVRTC")

    monkeypatch.setattr(library, "RawModule", refuse)
    monkeypatch.setattr(kernels, "_MODULES", {})
    f, x = graphed(lambda x: pullback.exp(x) * 2, backend="numpy"), there(3)
    f(x)
    with pytest.warns(UserWarning, match="runs without a CUDA graph: KernelError: .*no NVRTC"):
        f(x)
    compare([f(x)._data], [np.exp(x._data.inner) * 2])


def test_random_numbers_and_shapes_from_values_are_refused_by_the_trace() -> None:
    for fn in (lambda x: x + pullback.randn(3, device=x.device), lambda x: x[x > 0] * 2):
        f, x = graphed(fn, fallback=True), there(3)
        with pytest.warns(UserWarning, match="runs as it is written"):
            f(x)
        with Counted() as counted:
            f(x)
            f(x)
        assert not counted.graphs
        with pytest.raises(RuntimeError):
            graphed(fn)(x)


@pytest.mark.parametrize("error", [ValueError("planted"), KeyboardInterrupt()])
def test_an_exception_ends_the_capture_and_the_stream_can_be_used(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, x = graphed(lambda x: (x @ x).tanh()), there(3, 3)
    f(x)
    monkeypatch.setattr(cublas, "_gemm", raising(error))
    if isinstance(error, Exception):
        warned = pytest.warns(UserWarning, match="without a CUDA graph: ValueError: planted")
        with warned, pytest.raises(ValueError, match="planted"):
            f(x)
    else:
        with pytest.raises(KeyboardInterrupt):
            f(x)
    assert capture.now() is None
    assert MACHINE.pool is None
    assert gc.isenabled()
    monkeypatch.undo()


def raising(error: BaseException) -> Any:
    def fail(*args: Any) -> None:
        raise error

    return fail


def test_after_an_interrupt_the_next_call_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = graphed(lambda x: (x @ x).tanh()), there(3, 3)
    f(x)
    with monkeypatch.context() as patched:
        patched.setattr(cublas, "_gemm", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            f(x)
    with Counted() as counted:
        compare([f(x)._data], [np.tanh(x._data.inner @ x._data.inner)])
    assert counted.graphs == 1


def test_a_launch_that_fails_is_torchs_error() -> None:
    f, x = graphed(lambda x: x.exp() * 2), there(3)
    f(x)
    f(x)
    MACHINE.broken = 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"
    with pytest.raises(cuda.AcceleratorError, match="an illegal memory access"):
        f(x)


def test_memory_that_is_full_within_a_capture() -> None:
    f, x = graphed(lambda x: (x.exp() * 2)[:2].sum(0)), there(300, 300)
    f(x)
    MACHINE.limit = 1
    with (
        pytest.warns(UserWarning, match="without a CUDA graph: OutOfMemoryError"),
        pytest.raises(pullback.OutOfMemoryError),
    ):
        f(x)
    MACHINE.limit = None
    compare([f(x)._data], [(np.exp(x._data.inner) * 2)[:2].sum(0)])


# Checks that are left for later ---------------------------------------------------------------------------------------


def test_a_wrong_position_in_a_replay_is_told_where_the_host_waits_next() -> None:
    f, table = graphed(lambda t, i: t.gather(0, i) * 2), there(3, 2)
    good, wrong = on_device(np.array([[0], [2], [1]])), on_device(np.array([[0], [2], [-2]]))
    for _ in range(3):
        f(table, good)
    cuda.synchronize()
    with Counted() as counted:
        f(table, wrong)
        found = f(table, good)
    assert (counted.graphs, counted.waits) == (2, 0)
    with pytest.raises(RuntimeError, match=r"gather\(\): an index is out of bounds"):
        found.sum().item()
    found.sum().item()
    f(table, good)
    cuda.synchronize()


# Streams, devices, threads, other captures ----------------------------------------------------------------------------


def test_another_stream_waits_for_the_one_before() -> None:
    f, x = graphed(lambda x: x.exp() * 2), there(3)
    for _ in range(3):
        f(x)
    side = cuda.Stream()
    with cuda.stream(side):
        found = f(x)
    (event,) = side.cupy_stream.waited
    assert event.stream is library.Stream.null
    with cuda.stream(side):
        f(x)
    assert len(side.cupy_stream.waited) == 1
    compare([found._data], [np.exp(x._data.inner) * 2])


def test_each_device_has_its_graphs() -> None:
    f = graphed(lambda x: pullback.exp(x) @ x)
    with cuda.device(1):
        other = there(3, 3)
    for t, index in ((other, 1), (there(3, 3), 0)) * 3:
        found = f(t)
        assert found.device == pullback.device("cuda", index)
        compare([found._data], [np.exp(t._data.inner) @ t._data.inner])
    assert f.explain().count("a CUDA graph, launched 2 times") == 2
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cuda:1"):
        graphed(lambda x, y: x + y)(there(3, 3), other)


def test_threads_share_a_function() -> None:
    f, xs = graphed(lambda x: pullback.exp(x) @ x), [there(4, 4) for _ in range(4)]
    f(xs[0])
    f(xs[0])
    found: dict[int, list[Any]] = {k: [] for k in range(4)}

    def work(k: int) -> None:
        for _ in range(5):
            found[k].append(f(xs[k])._data)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, x in enumerate(xs):
        compare(found[k], [np.exp(x._data.inner) @ x._data.inner] * 5)


def test_a_compiled_function_is_part_of_a_users_capture(compiling: Cublas) -> None:
    f, x = graphed(lambda x: pullback.exp(x @ x)), there(3, 3)
    for _ in range(2):
        f(x)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = f(x) + 1
    calls = compiling.calls
    with Counted() as counted:
        g.replay()
    assert counted.graphs == 1
    assert compiling.calls == calls, "recorded, and not asked for again"
    compare([y._data], [np.exp(x._data.inner @ x._data.inner) + 1])
    x.copy_(there(3, 3))
    g.replay()
    compare([y._data], [np.exp(x._data.inner @ x._data.inner) + 1])


def test_copies_of_a_function_are_captured_anew() -> None:
    module = pullback.compile(nn.Linear(4, 3).to("cuda"), mode="reduce-overhead")
    x = there(2, 4)
    for _ in range(3):
        module(x)
    other = copy.deepcopy(module)
    with Counted() as counted:
        for _ in range(3):
            found = other(x)
    assert counted.graphs == 2
    compare([found.detach()._data], [module(x).detach()._data.inner])


def test_a_module_compiled_in_place() -> None:
    module = nn.Linear(4, 3).to("cuda")
    module.compile(mode="reduce-overhead")
    x = there(2, 4)
    with Counted() as counted:
        for _ in range(3):
            found = module(x)
    assert counted.graphs == 2
    wanted = x._data.inner @ module.weight._data.inner.T + module.bias._data.inner
    compare([found.detach()._data], [wanted])


# Modes ----------------------------------------------------------------------------------------------------------------


def test_modes_are_torchs() -> None:
    x = there(3)
    for mode, launches in {
        None: 0,
        "default": 0,
        "max-autotune-no-cudagraphs": 0,
        "reduce-overhead": 2,
        "max-autotune": 2,
    }.items():
        f = pullback.compile(lambda x: x.exp() * 2, mode=mode)
        with Counted() as counted:
            for _ in range(3):
                f(x)
        assert counted.graphs == launches
    for wrong in ("fast", 3, ["default"]):
        with pytest.raises(RuntimeError, match=r"Unrecognized mode=.*, should be one of: default, reduce-overhead"):
            pullback.compile(lambda x: x, mode=wrong)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Either mode or options can be specified, but both"):
        pullback.compile(lambda x: x, mode="default", options={"epilogue_fusion": True})


def test_on_the_host_the_mode_changes_nothing() -> None:
    f = graphed(lambda x: x.exp() * 2)
    x = on_host(real(3))
    for _ in range(3):
        np.testing.assert_allclose(f(x).numpy(), np.exp(x.numpy()) * 2, rtol=1e-6)
    assert "CUDA graph" not in f.explain()


# The parts ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def space() -> Any:
    return cublas.workspace()


@pytest.mark.parametrize("char", "efdFD")
def test_products(char: str, space: Any, compiling: Cublas) -> None:
    def made(*shape: int) -> Any:
        found = RNG.standard_normal(shape) + (1j * RNG.standard_normal(shape) if char in "FD" else 0)
        return DeviceArray(found.astype(char))

    a, b = made(2, 3, 4, 5), made(2, 3, 5, 6)
    pairs = [
        (made(4, 5), made(5, 6)),
        (made(5, 4).T, made(6, 5).T),
        (made(4, 10)[:, ::2], made(10, 6)[::2]),
        (made(4, 5)[::-1], made(5, 6)[:, ::-1]),
        (made(5), made(5, 6)),
        (made(4, 5), made(5)),
        (made(5), made(5)),
        (made(4, 1), made(1, 6)),
        (made(1, 5), made(5, 1)),
        (made(3, 4, 5), made(5, 6)),
        (made(4, 5), made(3, 5, 6)),
        (made(3, 4, 5), made(1, 5, 6)),
        (made(3, 5, 4).swapaxes(1, 2), made(3, 6, 5).swapaxes(1, 2)),
        (made(4, 3, 5).swapaxes(0, 1), made(3, 5, 6)),
        (a, b),
        (a, b[:, :1]),
        (a[0], b),
        (np.broadcast_to(made(1, 5), (4, 5)), np.broadcast_to(made(5, 1), (5, 6))),
    ]
    near = {"e": 1e-2, "f": 1e-4, "F": 1e-4}.get(char, 1e-12)
    for x, y in pairs:
        before = compiling.calls
        found = cublas.product(space, x, y)
        assert compiling.calls == before + 1
        assert found.flags.c_contiguous
        wanted = np.matmul(x.inner, y.inner)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.inner, wanted, rtol=near, atol=10 * near)
    for x, y in [(made(0, 5), made(5, 6)), (made(4, 0), made(0, 6)), (made(0, 4, 5), made(5, 6))]:
        np.testing.assert_array_equal(cublas.product(space, x, y).inner, np.matmul(x.inner, y.inner))
    with pytest.raises(ValueError, match="matmul"):
        cublas.product(space, made(4, 5), made(4, 5))


def test_sums_of_products(space: Any, compiling: Cublas) -> None:
    for spelled, shapes in {
        "...acb,...acb->...c": [(2, 3, 4, 5), (2, 3, 4, 5)],
        "...ab,...bc->...ac": [(3, 4), (2, 4, 5)],
        "ij,jk->ki": [(3, 4), (4, 5)],
        "bij, bkj -> bik": [(2, 3, 4), (2, 5, 4)],
        "i,j->ij": [(3,), (4,)],
        "i,i->": [(3,), (3,)],
        "ij,ij->ij": [(3, 4), (3, 4)],
    }.items():
        a, b = (DeviceArray(real(*shape)) for shape in shapes)
        before = compiling.calls
        found = cublas.contracted(space, spelled, a, b)
        assert compiling.calls == before + 1
        np.testing.assert_allclose(found.inner, np.einsum(spelled, a.inner, b.inner), rtol=1e-4, atol=1e-5)
    one = DeviceArray(real(3, 3))
    for spelled, given in [
        ("ii->i", [one]),
        ("ij,jk,kl->il", [one] * 3),
        ("ij,jk", [one] * 2),
        ("ij,k->k", [one, one[0]]),
    ]:
        before = compiling.calls
        found = cublas.contracted(space, spelled, *given)
        assert compiling.calls == before
        np.testing.assert_allclose(found.inner, np.einsum(spelled, *[g.inner for g in given]), rtol=1e-4, atol=1e-5)


def test_copies() -> None:
    sizes = [1, 3, 16, 17, 4096, 70_001, 0]
    sources = [DeviceArray(RNG.integers(0, 255, n).astype(np.uint8)) for n in sizes]
    sources += [DeviceArray(real(7, 5)), DeviceArray(real(3, dtype="float64")), DeviceArray(np.array(2.5))]
    targets = [DeviceArray(np.zeros_like(a.inner)) for a in sources]
    copies.copy([*zip(sources, targets, strict=True)])
    for a, b in zip(sources, targets, strict=True):
        np.testing.assert_array_equal(a.inner, b.inner)
    many = [DeviceArray(real(2)) for _ in range(copies.MOST + 3)]
    there = [DeviceArray(np.zeros(2, np.float32)) for _ in many]
    with Counted() as counted:
        copies.copy([*zip(many, there, strict=True)])
    assert counted.kernels == 2
    for a, b in zip(many, there, strict=True):
        np.testing.assert_array_equal(a.inner, b.inner)


def test_a_stream_that_captures_as_cudas() -> None:
    stream, x = library.Stream(non_blocking=True), DeviceArray(real(3))
    with stream:
        for wrong in (stream.synchronize, library.Device().synchronize, lambda: library.asarray(np.ones(2))):
            stream.begin_capture()
            with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureUnsupported"):
                wrong()
            with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
                stream.end_capture()
            assert not stream.is_capturing()
        stream.begin_capture(0)
        with (
            library.using_allocator(library.MemoryPool().malloc),
            pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureUnsupported"),
        ):
            x * 2
        with pytest.raises(CUDARuntimeError, match="Invalidated"):
            stream.end_capture()
        stream.begin_capture()
        with pytest.raises(RuntimeError, match="synchronous API calls are disallowed"):
            x.sum().item()
        stream.end_capture()
    with pytest.raises(RuntimeError, match="cannot capture on the default"):
        library.Stream.null.begin_capture()

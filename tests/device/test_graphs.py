"""torch.cuda's CUDA graphs on the device that is not there: captures by hand, their memory, and what is refused."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import cuda, nn
from pullback.compile.backends.gpu import capture
from pullback.tensor.tensor import Tensor

from . import library
from .captures import Graph
from .cuda_shim import COMPILER
from .machine import MACHINE

pytestmark = pytest.mark.usefixtures("gpu")


def there(*values: float) -> Tensor:
    return pullback.tensor(values, device="cuda")


def values(t: Tensor) -> Any:
    return t.detach().cpu().numpy()


def captured(work: Any) -> tuple[Any, Any]:
    work()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        found = work()
    return g, found


def test_a_replay_reads_what_lies_there_and_writes_where_the_results_are() -> None:
    x = there(1.0, 2.0)
    g, y = captured(lambda: (x * 3).exp() + x)
    before, launches = y._data, Graph.launches
    for given in ([0.0, 1.0], [2.0, -1.0]):
        x.copy_(there(*given))
        g.replay()
        np.testing.assert_allclose(values(y), np.exp(3 * np.float32(given)) + np.float32(given), rtol=1e-6)
    assert y._data is before
    assert Graph.launches - launches == 2


def test_gradients_and_a_step_in_a_graph() -> None:
    w, x = there(1.0, -2.0).requires_grad_(), there(3.0, 4.0)
    host, given = pullback.tensor([1.0, -2.0], requires_grad=True), pullback.tensor([3.0, 4.0])

    def step(w: Tensor, x: Tensor) -> Tensor:
        (g,) = pullback.autograd.grad(((w * x).tanh() * x).sum(), w)
        with pullback.no_grad():
            w.sub_(g, alpha=0.1)
        return g

    step(w, x)
    step(host, given)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        gradient = step(w, x)
    for _ in range(3):
        g.replay()
        np.testing.assert_allclose(values(gradient), step(host, given).numpy(), rtol=1e-6)
        np.testing.assert_allclose(values(w), host.detach().numpy(), rtol=1e-6)


def test_memory_of_a_graph_is_its_own_as_long_as_it_lives() -> None:
    MACHINE.limit = 1 << 30
    gc.collect()  # graphs of other tests
    x = there(1.0, 2.0)
    cuda.memory_reserved()
    reserved = cuda.memory_reserved()
    g, y = captured(lambda: (x * 3) * (x + 1))
    assert cuda.memory_reserved() > reserved
    kept = [pullback.ones(2, device="cuda") for _ in range(50)]  # none of it lies in the graph's
    for _ in range(3):
        g.replay()
        np.testing.assert_array_equal(values(y), [6.0, 18.0])
    assert all((values(t) == 1).all() for t in kept)
    del y
    g.replay()
    del kept
    g.reset()
    gc.collect()
    assert cuda.memory_reserved() == reserved


def test_graphs_share_a_pool() -> None:
    x, handle = there(1.0, 2.0), cuda.graph_pool_handle()
    first, second = cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(first, pool=handle):
        y = x * 2 + 1
    with cuda.graph(second, pool=first.pool()):
        z = y * y
    assert first.pool() == second.pool() == handle
    assert cuda.graph_pool_handle() != handle
    first.replay()
    second.replay()
    np.testing.assert_array_equal(values(z), [9.0, 25.0])
    gone = second.pool()
    first.reset()
    second.reset()
    del y, z
    gc.collect()
    with pytest.raises(RuntimeError, match="a pool that lives"):
        cuda.graph(cuda.CUDAGraph(), pool=gone).__enter__()


def test_capture_by_hand_on_a_stream() -> None:
    x, g, side = there(1.0, 2.0), cuda.CUDAGraph(), cuda.Stream()
    assert not cuda.is_current_stream_capturing()
    with cuda.stream(side):
        g.capture_begin()
        assert cuda.is_current_stream_capturing()
        y = x + 1
        g.capture_end()
        assert not cuda.is_current_stream_capturing()
    g.replay()
    np.testing.assert_array_equal(values(y), [2.0, 3.0])


def test_a_stream_that_is_forked_and_joined_is_part_of_it() -> None:
    x, g, side = there(1.0, 2.0), cuda.CUDAGraph(), cuda.Stream()
    with cuda.graph(g):
        main = cuda.current_stream()
        y = x + 1
        side.wait_stream(main)
        with cuda.stream(side):
            z = y * 2
        main.wait_stream(side)
    g.replay()
    np.testing.assert_array_equal(values(z), [4.0, 6.0])
    with pytest.raises(cuda.AcceleratorError, match="unjoined work"), cuda.graph(cuda.CUDAGraph()):
        side.wait_stream(cuda.current_stream())
    assert not side.cupy_stream.is_capturing()
    (x + 1).sum().item()


# What is refused ------------------------------------------------------------------------------------------------------

SYNCHRONOUS = {
    "item": lambda x: x.sum().item(),
    "cpu": lambda x: x.cpu(),
    "bool": lambda x: bool(x.sum() > 0),
    "nonzero": lambda x: x[x > 0],
    "synchronize": lambda x: cuda.synchronize(),
    "stream": lambda x: cuda.current_stream().synchronize(),
    "event": lambda x: cuda.current_stream().record_event().synchronize(),
    "query": lambda x: cuda.current_stream().record_event().query(),
    "sent": lambda x: pullback.tensor([1.0, 2.0], device="cuda"),
    "random": lambda x: pullback.rand(2, device="cuda"),
    "product": lambda x: x[None] @ x[:, None],
}


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_what_cannot_be_captured_is_told_and_the_stream_can_be_used(name: str) -> None:
    x, g = there(1.0, 2.0), cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="captur") as told, cuda.graph(g):
        SYNCHRONOUS[name](x)
    assert "What to do" in "\n".join([str(told.value), *getattr(told.value, "__notes__", [])])
    assert capture.now() is None
    assert not cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    assert (x + 1).sum().item() == 5
    with cuda.graph(g):
        y = x * 2
    g.replay()
    np.testing.assert_array_equal(values(y), [2.0, 4.0])


def test_a_query_of_the_stream_loses_the_capture() -> None:
    g = cuda.CUDAGraph()
    said = "operation failed due to a previous error during capture"
    with pytest.raises(cuda.AcceleratorError, match=said), cuda.graph(g):
        cuda.current_stream().query()
    assert not cuda.is_current_stream_capturing()


@pytest.mark.parametrize("error", [ValueError("planted"), KeyboardInterrupt()])
def test_an_exception_ends_the_capture(error: BaseException) -> None:
    x, g = there(1.0, 2.0), cuda.CUDAGraph()
    before = cuda.current_stream()

    def fail() -> None:
        x.add_(1)
        raise error

    with pytest.raises(type(error)), cuda.graph(g):
        fail()
    assert cuda.current_stream() == before
    assert MACHINE.pool is None
    assert gc.isenabled()
    with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture"):
        g.replay()


def test_uses_out_of_turn() -> None:
    g = cuda.CUDAGraph()
    for use in (g.replay, g.pool):
        with pytest.raises(RuntimeError, match=r"Called CUDAGraph::(replay|pool) without a preceding successful"):
            use()
    with pytest.raises(RuntimeError, match="CUDA graphs must be captured on a non-default stream"):
        g.capture_begin()
    with pytest.raises(RuntimeError, match="expected a capture that this graph began"):
        g.capture_end()
    with pytest.raises(RuntimeError, match=r"Unknown capture error mode. Expected `global`, .* got fast"):
        cuda.graph(g, capture_error_mode="fast").__enter__()
    with pytest.raises(TypeError, match="expected a pullback"):
        cuda.graph(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="a pool that lives"):
        cuda.graph(g, pool=(0, 10**6)).__enter__()
    assert cuda.current_stream() == cuda.default_stream()
    with cuda.graph(g):
        other = cuda.graph(cuda.CUDAGraph(), stream=cuda.Stream())
        with pytest.raises(RuntimeError, match="a CUDA graph is being captured already"):
            other.__enter__()
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            g.capture_begin()
        with pytest.raises(RuntimeError, match="a capture that goes on"):
            g.reset()
        with cuda.stream(cuda.Stream()), pytest.raises(RuntimeError, match="must end on the same stream it began on"):
            g.capture_end()
    with pytest.raises(RuntimeError, match="already owns a captured graph"), cuda.graph(g):
        pass
    g.reset()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    x = there(1.0)
    with cuda.graph(g):
        y = x * 2
    g.replay()
    np.testing.assert_array_equal(values(y), [2.0])


def test_modes_in_which_no_memory_is_given() -> None:
    x = there(1.0, 2.0)
    said = "operation not permitted when stream is capturing"
    with pytest.raises(RuntimeError, match=said), cuda.graph(cuda.CUDAGraph(), capture_error_mode="global"):
        x.add(1)
    before, g = cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(before):
        x + 1  # whose memory stays with the pool
    with cuda.graph(g, pool=before.pool(), capture_error_mode="thread_local"):
        x.add_(1)
    g.replay()
    np.testing.assert_array_equal(values(x), [2.0, 3.0])


def test_a_stream_that_was_destroyed() -> None:
    side = cuda.Stream()
    side.cupy_stream.destroy()
    with pytest.raises(cuda.AcceleratorError, match="destroyed"), cuda.graph(cuda.CUDAGraph(), stream=side):
        pass
    assert cuda.current_stream() == cuda.default_stream()


def test_a_graph_is_launched_on_its_device() -> None:
    with cuda.device(1):
        x = there(1.0, 2.0)
        g, y = captured(lambda: x + 1)
    g.replay()
    assert y.device == pullback.device("cuda", 1)
    np.testing.assert_array_equal(values(y), [2.0, 3.0])


def test_after_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    x = there(1.0, 2.0)
    g, _ = captured(lambda: x + 1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for use in (g.replay, cuda.CUDAGraph, cuda.graph_pool_handle):
        with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
            use()
    assert not cuda.is_current_stream_capturing()


def test_a_replay_that_fails_is_torchs_error() -> None:
    x = there(1.0, 2.0)
    g, _ = captured(lambda: x + 1)
    MACHINE.broken = 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"
    with pytest.raises(cuda.AcceleratorError, match=r"replay.*an illegal memory access was encountered"):
        g.replay()


# make_graphed_callables -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(COMPILER is None, reason="a C++ compiler is needed")
@pytest.mark.usefixtures("compiling")
def test_graphed_callables() -> None:
    module, x = nn.Linear(3, 2).to("cuda"), there(0.0, 1.0, 2.0, 3.0, 4.0, 5.0).reshape(2, 3)
    sample = pullback.ones(2, 3, device="cuda", requires_grad=True)
    graphed, fn = cuda.make_graphed_callables(
        (module, lambda y: y.tanh() * 2), ((sample,), (pullback.ones(2, 2, device="cuda", requires_grad=True),))
    )
    assert graphed is module
    assert all(p.grad is None for p in module.parameters())
    launches = Graph.launches
    x.requires_grad_()
    y, weights = fn(graphed(x)), there(1.0, -2.0, 0.5, 3.0).reshape(2, 2)
    y.backward(weights)
    assert Graph.launches - launches == 4
    host = nn.Linear(3, 2)
    host.load_state_dict({name: t.cpu() for name, t in module.state_dict().items()})
    given = x.detach().cpu().requires_grad_()
    wanted = host(given).tanh() * 2
    wanted.backward(weights.cpu())
    np.testing.assert_allclose(values(y), wanted.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(values(x.grad), given.grad.numpy(), rtol=1e-5)
    np.testing.assert_allclose(values(module.weight.grad), host.weight.grad.numpy(), rtol=1e-5)


@pytest.mark.skipif(COMPILER is None, reason="a C++ compiler is needed")
@pytest.mark.usefixtures("compiling")
def test_samples_that_are_refused() -> None:
    x = there(1.0, 2.0)
    with pytest.raises(TypeError, match="sample_args to be a tuple of tensors"):
        cuda.make_graphed_callables(lambda x: x * 2, (3,))
    with pytest.raises(TypeError, match="a tuple of samples for each of 2 callables"):
        cuda.make_graphed_callables((lambda x: x, lambda x: x), ((x,),))
    for rounds in (-1, 1001, 2.0):
        with pytest.raises(ValueError, match="an int from 0 to 1,000"):
            cuda.make_graphed_callables(abs, (x,), num_warmup_iters=rounds)
    with pytest.raises(TypeError, match=r"expected a pullback.cuda.CUDAGraph"):
        cuda.graph(3)
    unused = x.clone().requires_grad_(), x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="allow_unused"):
        cuda.make_graphed_callables(lambda a, b: a * 2, unused)
    cuda.make_graphed_callables(lambda a, b: a * 2, unused, allow_unused_input=True)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.cuda, "is_available", lambda: False)
    assert not cuda.is_current_stream_capturing()
    for use in (cuda.CUDAGraph, cuda.graph_pool_handle, lambda: cuda.make_graphed_callables(abs, ())):
        with pytest.raises(RuntimeError, match="no CUDA GPUs are available"):
            use()

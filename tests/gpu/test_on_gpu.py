"""The library on a GPU: the table's samples, the demo, memory over many steps, CUDA graphs, streams, pinned memory,
random numbers.

`tests/device/test_gpu_bodies.py` runs these functions on the device that is not there, with fewer steps.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import cuda, nn
from pullback.cli import demo
from pullback.tensor.tensor import Tensor
from pullback.testing.payloads import carrying
from tests.device import modes

pytestmark = pytest.mark.gpu

STEPS = 10_000
EPOCHS = demo.EPOCHS
SIZE = 1 << 20
TOLERANCE = 1e-5


def on_gpu(array: np.ndarray[Any, Any]) -> Tensor:
    return pullback.as_tensor(array.copy()).cuda()


# The table's samples --------------------------------------------------------------------------------------------------


def difference(found: Any, wanted: Any) -> str:
    """How results on the GPU differ from those of NumPy, beyond the tolerance; "" if they do not."""
    if isinstance(found, Exception):
        return f"{type(found).__name__}: {found}".split("\n")[0]
    return modes.fault(found, wanted, lambda t: t.cpu().numpy() if t.device.type == "cuda" else None, _beyond)


def _beyond(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> str:
    size = float(np.max(np.abs(b), initial=0, where=np.isfinite(b))) if b.dtype.kind in "fc" else 0.0
    near = np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * size, equal_nan=True)
    return "" if near else f"values differ by {np.max(np.abs(a - b))}"


def differing(mode: str, names: Any = None) -> dict[str, str]:
    """By the name of an entry, what is wrong with one of its samples in a mode, in float32."""
    wrong: dict[str, str] = {}
    refused = modes.json.loads(modes.FILE.read_text("utf-8"))["modes"][mode]["refused"]
    for name, op in carrying.entries().items():
        if name in refused or (names is not None and name not in names):
            continue
        for sample in op.domain("samples"):
            if "cpu" in str([sample.args, sample.kwargs]):  # it names the CPU
                continue
            made = sample.arrays("float32")
            wanted = modes.computed(op, made, modes.MODES[mode], modes.on_host)
            if isinstance(wanted, Exception) or not wanted:
                continue
            if why := difference(modes.computed(op, made, modes.MODES[mode], on_gpu), wanted):
                wrong[name] = why
                break
    return wrong


@pytest.mark.parametrize("mode", list(modes.MODES))
@pytest.mark.filterwarnings("ignore")
def test_the_samples_agree_with_numpy(mode: str) -> None:
    with np.errstate(all="ignore"):
        wrong = differing(mode)
    assert not wrong, "\n".join(f"{name}: {why}" for name, why in wrong.items())


# Programs -------------------------------------------------------------------------------------------------------------


def test_the_demo_trains() -> None:
    digits, rng = demo.load_digits(), np.random.default_rng(0)
    parameters = {k: p.detach().cuda().requires_grad_() for k, p in demo.new_parameters(rng).items()}
    losses = list(demo.train(parameters, digits, EPOCHS, rng))
    steps = len(losses) // EPOCHS
    assert np.mean(losses[-steps:]) < np.mean(losses[:steps])
    assert all(p.device.type == p.grad.device.type == "cuda" for p in parameters.values())
    right = float(np.mean(demo.predict(parameters, digits.test_x) == digits.test_y))
    assert right >= (demo.REQUIRED_ACCURACY if demo.EPOCHS == EPOCHS else 0.5)


def test_many_steps_keep_memory_flat() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4)).to("cuda")
    steps = pullback.optim.Adam(model.parameters(), lr=1e-3)
    x, target = pullback.randn(64, 16, device="cuda"), pullback.randint(4, (64,), device="cuda")
    used, reserved = [], []
    for step in range(STEPS):
        steps.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        steps.step()
        if step in (STEPS // 10, STEPS - 1):
            cuda.synchronize()
            used.append(cuda.memory_allocated())
            reserved.append(cuda.memory_reserved())
    assert used[0] == used[1] > 0
    assert reserved[0] == reserved[1]


def test_compiled_steps_as_cuda_graphs() -> None:
    def trained(mode: str | None, device: str) -> list[Any]:
        pullback.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4)).to(device)
        steps = pullback.optim.Adam(model.parameters(), lr=1e-3)
        loss_of = pullback.compile(lambda x, t: nn.functional.cross_entropy(model(x), t), mode=mode)
        losses, used = [], []
        for step in range(STEPS // 10):
            x, target = pullback.randn(64, 16), pullback.randint(4, (64,))
            steps.zero_grad()
            loss = loss_of(x.to(device), target.to(device))
            loss.backward()
            steps.step()
            if step % (STEPS // 100) == 0 or step == STEPS // 10 - 1:
                losses.append(loss.detach().cpu().item())
                used.append(cuda.memory_allocated())
        assert used[2] == used[-1]
        if mode is not None:
            assert loss_of.explain().count("a CUDA graph, launched ") == 2, loss_of.explain()
        return losses

    wanted = trained(None, "cpu")
    np.testing.assert_allclose(trained("reduce-overhead", "cuda"), wanted, rtol=1e-2)


def test_a_captured_graph_is_replayed() -> None:
    x = pullback.ones(SIZE, device="cuda")
    (x * 2 + 1).exp()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = (x * 2 + 1).exp()
    for value in (0.5, -1.0):
        x.fill_(value)
        g.replay()
        np.testing.assert_allclose(y.cpu().numpy(), np.exp(np.full(SIZE, 2 * value + 1, np.float32)), rtol=1e-5)


def test_streams_order_their_work() -> None:
    side = cuda.Stream()
    x = pullback.ones(SIZE, device="cuda")
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        assert cuda.current_stream() == side
        y = x
        for _ in range(20):
            y = y * 1.5 - y * 0.5
    cuda.current_stream().wait_stream(side)
    total = y.sum()
    end.record()
    end.synchronize()
    assert start.query()
    assert end.query()
    assert start.elapsed_time(end) > 0
    assert total.item() == SIZE


def test_gradients_on_a_stream() -> None:
    side, x = cuda.Stream(), pullback.full((SIZE,), 2.0, device="cuda", requires_grad=True)
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        (x * x).sum().backward()
    cuda.current_stream().wait_stream(side)
    assert bool((x.grad == 4).all())


def test_pinned_memory_goes_and_comes() -> None:
    x = pullback.arange(SIZE, dtype=pullback.float32).pin_memory()
    assert x.is_pinned()
    assert not pullback.ones(3).is_pinned()
    back = x.to("cuda", non_blocking=True).to("cpu", non_blocking=True)
    cuda.synchronize()
    assert back.is_pinned()
    assert pullback.equal(back, x)
    there = pullback.zeros(SIZE, device="cuda")
    there.copy_(x, non_blocking=True)
    assert pullback.equal(there.cpu(), x)


def test_random_numbers_are_those_of_the_seed() -> None:
    pullback.manual_seed(3)
    host = pullback.randn(5)
    assert pullback.equal(pullback.randn(5, device="cuda").cpu(), host)
    state = cuda.get_rng_state()
    a = pullback.rand(5, device="cuda")
    cuda.set_rng_state(state)
    assert pullback.equal(pullback.rand(5, device="cuda"), a)
    g = pullback.Generator(device="cuda").manual_seed(3)
    assert pullback.equal(pullback.randn(5, generator=g, device="cuda").cpu(), host)


def test_memory_that_is_full_is_torchs_error_and_the_program_goes_on() -> None:
    x = pullback.ones(1024, device="cuda", requires_grad=True)
    free, _ = cuda.mem_get_info()
    with pytest.raises(pullback.OutOfMemoryError, match="CUDA out of memory"):
        (x.exp()[:, None] * pullback.ones(1, max(free // 2048, 1), device="cuda")).sum()
    cuda.empty_cache()
    x.exp().sum().backward()
    assert x.grad is not None


def test_files_go_to_the_devices_that_they_came_from(tmp_path: Path) -> None:
    model = nn.BatchNorm1d(3).to("cuda")
    pullback.save(model.state_dict(), tmp_path / "state")
    assert pullback.load(tmp_path / "state")["weight"].device == model.weight.device
    assert pullback.load(tmp_path / "state", map_location="cpu")["weight"].device.type == "cpu"


# Other libraries on the same GPU --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_memory_is_shared_with_another_library(name: str) -> None:
    library = pytest.importorskip(name)
    if name == "torch" and not library.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    if name == "jax" and library.default_backend() != "gpu":
        pytest.skip("this JAX has no CUDA")
    x = pullback.arange(4, dtype=pullback.float32).cuda()
    take = library.from_dlpack if name == "torch" else library.dlpack.from_dlpack
    theirs = take(x)
    x.add_(1)
    cuda.synchronize()
    assert theirs.tolist() == [1.0, 2.0, 3.0, 4.0], "the same memory"
    back = pullback.from_dlpack(theirs)
    assert back.device == x.device
    assert back.tolist() == x.tolist()


def test_the_example_of_a_kernel_runs_on_it() -> None:
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("the example asks CuPy itself")
    path = Path(__file__).parents[2] / "examples" / "cuda_kernel.py"
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert "in CUDA C: True" in done.stdout

"""What goes wrong on a device, on the one that is not there: torch's types of errors, the way out, and nothing changed.

Two devices, arrays of the host, memory that is full, kernels that fail, a fork.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import cuda, nn
from pullback.tensor.tensor import Tensor

from .fake import DeviceArray
from .machine import ILLEGAL, MACHINE

pytestmark = pytest.mark.usefixtures("gpu")

TWO: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("add", lambda a, b: a + b),
    ("mul", lambda a, b: pullback.mul(b, a)),
    ("matmul", lambda a, b: a @ b),
    ("cat", lambda a, b: pullback.cat([a, b])),
    ("stack", lambda a, b: pullback.stack([a, b])),
    ("where", lambda a, b: pullback.where(a > 0, a, b)),
    ("maximum", lambda a, b: pullback.maximum(a, b)),
    ("linear", lambda a, b: nn.functional.linear(a, b[None])),
    ("mse_loss", lambda a, b: nn.functional.mse_loss(a, b)),
    ("index_select", lambda a, b: pullback.index_select(a, 0, b.long())),
    ("addcmul", lambda a, b: pullback.addcmul(a, a, b)),
    ("einsum", lambda a, b: pullback.einsum("i,i->", a, b)),
    ("add_", lambda a, b: a.detach().add_(b)),
    ("lerp", lambda a, b: pullback.lerp(a, a, b)),
]


@pytest.mark.parametrize(("name", "work"), TWO)
@pytest.mark.parametrize("other", ["cpu", "cuda:1"])
def test_tensors_of_two_devices(name: str, work: Any, other: str) -> None:
    a, b = pullback.ones(2, device="cuda:0", requires_grad=True), pullback.ones(2, device=other)
    said = rf"(?s)Expected all tensors to be on the same device, but found at least two devices, {'{}'} and {'{}'}!"
    pairs = "|".join(said.format(*p).removeprefix("(?s)") for p in (("cuda:0", other), (other, "cuda:0")))
    with pytest.raises(RuntimeError, match=rf"(?s)({pairs}).*x\.to\(y\.device\)"):
        work(a, b)
    assert a.grad is None
    assert a.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("name", "work"), TWO)
def test_tensors_of_two_devices_that_read_each_others_memory(name: str, work: Any) -> None:
    """There CuPy computes, and warns; the warning is an error."""
    MACHINE.peers = True
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        cuda.init()
        a, b = pullback.ones(2, device="cuda:0"), pullback.ones(2, device="cuda:1")
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            work(a, b)
        with pytest.raises(RuntimeError, match=r"within pullback\.cuda\.device\(1\)"):
            b * b


def test_tensors_of_a_device_that_is_not_the_current_one() -> None:
    a = pullback.ones(2, device="cuda:1")
    with pytest.raises(
        RuntimeError, match=r"(?s)is different from the current device.*within pullback\.cuda\.device\(1\)"
    ):
        a + a
    with cuda.device(1):
        x = a.clone().requires_grad_()
        (x * a).sum().backward()
        assert x.grad.device == pullback.device("cuda:1")
        assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "work",
    [
        lambda t, a: t + a,
        lambda t, a: a + t,
        lambda t, a: a * t,
        lambda t, a: t @ a,
        lambda t, a: np.add(t, a),
        lambda t, a: np.multiply(a, t),
        lambda t, a: np.concatenate([t, a]),
        lambda t, a: np.where(a > 0, t, t),
    ],
)
def test_an_array_of_numpy_beside_a_device_tensor(work: Any) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)Expected all tensors to be on the same device.*cuda:0 and cpu!"):
        work(pullback.ones(2, device="cuda"), np.ones(2, np.float32))


def test_what_a_function_of_numpy_makes_on_the_host() -> None:
    t = pullback.ones(2, device="cuda", requires_grad=True)
    for host in (np.linspace(0, 1, 2, dtype=np.float32), np.arange(2, dtype=np.float32)):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            t * host
    assert (t * np.float32(2)).tolist() == [2.0, 2.0], "a number is none of a device"


@pytest.mark.parametrize("read", [lambda t: t.numpy(), np.asarray, np.array, lambda t: t.detach().numpy()])
def test_the_array_of_a_device_tensor(read: Any) -> None:
    said = r"(?s)can't convert cuda:0 device type tensor to numpy.*Use Tensor\.cpu\(\) to copy"
    with pytest.raises(TypeError, match=said.replace("Use", "[Uu]se")):
        read(pullback.ones(2, device="cuda"))


# Memory ---------------------------------------------------------------------------------------------------------------


def loss_of(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    return ((x @ weight + bias).tanh().exp() + bias).sum()


def leaves() -> tuple[Tensor, Tensor, Tensor]:
    pullback.manual_seed(0)
    weight, bias = (pullback.randn(*s, device="cuda", requires_grad=True) for s in ((3, 2), (2,)))
    return weight, bias, pullback.randn(4, 3, device="cuda")


def grads(*of: Tensor) -> list[Any]:
    return [None if t.grad is None else t.grad.tolist() for t in of]


def test_memory_that_is_full_says_what_holds_it() -> None:
    weight, bias, x = leaves()
    y = (x @ weight + bias).tanh().exp()
    MACHINE.fails_at = 0
    with pytest.raises(cuda.OutOfMemoryError) as told:
        y * 2
    MACHINE.fails_at = None
    said = str(told.value)
    assert isinstance(told.value, RuntimeError)
    assert pullback.OutOfMemoryError is cuda.OutOfMemoryError
    assert said.startswith("mul(): CUDA out of memory. Tried to allocate 32 B. GPU 0 has a total capacity of 8.0 GiB")
    assert "The graph of the arguments: 4 nodes and 2 leaves hold" in said
    assert "on cuda:0" in said
    assert "TanhBackward0 (1) 32 B" in said
    assert "pullback.utils.checkpoint" in said


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("zeros", lambda t: pullback.zeros(3, device="cuda")),
        ("cuda", lambda t: pullback.zeros(3).cuda()),
        ("to", lambda t: pullback.zeros(3).to("cuda")),
        ("exp", lambda t: t.exp()),
        ("sum", lambda t: t.sum()),
        ("matmul", lambda t: t @ t),
        ("cat", lambda t: pullback.cat([t, t])),
        ("linear", lambda t: nn.functional.linear(t, t)),
        ("add", lambda t: t + 1),
        ("add", lambda t: t.add(t)),
        ("softmax", lambda t: t.softmax(0)),
        ("index_select", lambda t: t.index_select(0, pullback.zeros(1, dtype=pullback.int64))),
        ("randn", lambda t: pullback.randn(3, device="cuda")),
        ("to", lambda t: nn.Linear(2, 2).to("cuda")),
        ("clone", lambda t: t.clone()),
    ],
)
def test_every_door_gives_torchs_error(name: str, work: Any) -> None:
    t = pullback.ones(2, 2, device="cuda", requires_grad=True)
    MACHINE.fails_at = 0
    with pytest.raises(pullback.OutOfMemoryError, match=r"\(\): CUDA out of memory\. Tried to allocate \d+ B"):
        work(t)
    MACHINE.fails_at, MACHINE.broken = None, ILLEGAL
    with pytest.raises(pullback.AcceleratorError, match=r"\(\): CUDA error: an illegal memory access") as told:
        work(t)
    assert told.value.error_code == 700
    MACHINE.broken = None
    assert t.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_backward_pass_that_fails_leaves_the_graph_and_the_gradients_whole() -> None:
    """At each of its allocations in turn, with gradients there before and without."""
    weight, bias, x = leaves()
    loss_of(weight, bias, x).backward()
    first = grads(weight, bias)
    twice = [(2 * pullback.tensor(g)).tolist() for g in first]
    for held in (False, True):
        for number in range(100):
            weight.grad = pullback.tensor(first[0], device="cuda") if held else None
            bias.grad = pullback.tensor(first[1], device="cuda") if held else None
            loss, before = loss_of(weight, bias, x), grads(weight, bias)
            MACHINE.fails_at = number
            said = ""
            try:
                loss.backward(retain_graph=True)
            except pullback.OutOfMemoryError as error:
                said = str(error)
            MACHINE.fails_at = None
            if not said:
                assert number > 4, "it allocates nothing"
                assert grads(weight, bias) == (twice if held else first)
                break
            assert "backward(): CUDA out of memory" in said
            assert "graph of the arguments" in said
            assert grads(weight, bias) == before, f"at allocation {number}, gradients held: {held}"
            loss.backward()
            assert grads(weight, bias) == (twice if held else first), "the graph is whole"
        else:
            raise AssertionError("it never ended")


def test_a_pass_whose_kernel_fails() -> None:
    weight, bias, x = leaves()
    loss = loss_of(weight, bias, x)
    MACHINE.broken = ILLEGAL
    with pytest.raises(
        pullback.AcceleratorError, match=r"(?s)backward\(\): CUDA error: an illegal.*CUDA_LAUNCH_BLOCKING"
    ):
        loss.backward(retain_graph=True)
    MACHINE.broken = None
    assert grads(weight, bias) == [None, None]
    loss.backward()
    assert weight.grad is not None


def test_a_failure_that_the_host_sees_where_it_waits() -> None:
    x = pullback.ones(2, device="cuda")
    MACHINE.broken = ILLEGAL
    for name, wait in {
        "synchronize": cuda.synchronize,
        "cpu": x.cpu,
    }.items():
        with pytest.raises(pullback.AcceleratorError, match=rf"{name}\(\): CUDA error: an illegal memory access"):
            wait()


class Failing(pullback.autograd.Function):
    """A kernel of the user's own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        MACHINE.broken = ILLEGAL
        return g * 2


def test_a_kernel_in_a_function_that_fails() -> None:
    x = pullback.ones(2, device="cuda", requires_grad=True)
    y = Failing.apply(x * 1)
    with pytest.raises(pullback.AcceleratorError, match="CUDA error: an illegal memory access"):
        y.sum().backward()
    MACHINE.broken = None
    assert x.grad is None
    assert (x * 2).tolist() == [2.0, 2.0]


def test_a_step_for_which_there_is_no_memory_leaves_a_program_that_goes_on() -> None:
    model = nn.Linear(3, 2).to("cuda")
    steps = pullback.optim.Adam(model.parameters(), lr=0.1)
    x = pullback.ones(4, 3, device="cuda")
    MACHINE.limit = 200
    with pytest.raises(pullback.OutOfMemoryError, match="CUDA out of memory"):
        model(pullback.ones(64, 3, device="cuda")).sum().backward()
    assert all(p.grad is None for p in model.parameters())
    MACHINE.limit = None
    model(x).sum().backward()
    steps.step()
    assert all(type(p.grad._data) is DeviceArray for p in model.parameters())


# Processes ------------------------------------------------------------------------------------------------------------

FORKED = """
    import os, sys
    import tests.device.library as library
    from tests.device.machine import MACHINE, NOT_STARTED
    sys.modules["cupy"] = library
    import pullback
    x = pullback.ones(2, device="cuda")
    if os.fork() == 0:
        assert not pullback.cuda.is_initialized() and not pullback.cuda.is_available()
        MACHINE.broken = NOT_STARTED
        for work in (lambda: pullback.ones(2, device="cuda"), lambda: x + x, lambda: pullback.cuda.synchronize()):
            try:
                work()
            except RuntimeError as error:
                print(str(error).replace(chr(10), " "))
        os._exit(0)
    os.wait()
    assert pullback.cuda.is_initialized()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_after_the_start_of_cuda() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKED)], capture_output=True, text=True, cwd=root, check=False
    )
    assert not done.returncode, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert (
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn'"
            in line
        )
        assert "multiprocessing.get_context('spawn')" in line

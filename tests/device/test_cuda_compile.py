"""Compiled functions of tensors on the device that is not there: their kernels run on the host, and agree with NumPy.

`cuda_shim.py` runs the CUDA C, `fake.py` stands for CuPy's arrays and counts looks at values.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.compile.backends.gpu import cuda
from pullback.compile.plan.on_gpu import OnGpu
from pullback.diagnose import watch
from pullback.interpreters.traced import TraceError
from pullback.nn import functional
from pullback.tensor import protocol
from pullback.tensor.tensor import Tensor, wrap
from pullback.testing.payloads import carrying

from . import library
from .cuda_shim import COMPILER, RawModule
from .fake import DeviceArray
from .modes import on_device, on_host
from .samples import NAMES, STANDS_FOR_CUPY, compare, compiled_samples, everything

pytestmark = pytest.mark.skipif(COMPILER is None, reason="a C++ compiler is needed")

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _a_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "cupy", library)
    monkeypatch.setattr(watch, "COMPUTES", watch.COMPUTES | STANDS_FOR_CUPY)
    yield
    protocol.DUE.clear()


def real(*shape: int, dtype: str = "float32") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def there(*shape: int) -> Tensor:
    return on_device(real(*shape))


def normed(x: Any, w: Any, b: Any) -> Any:
    return functional.gelu(functional.layer_norm(x, (x.shape[-1],), w, b))


def attended(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return pullback.softmax(scores, -1) @ v


def over_axes(x: Any) -> Any:
    return [
        x.sum(),
        x.sum(0),
        x.sum(1),
        x.sum(2),
        x.sum((0, 2)),
        x.amax((1, 2)),
        x.mean((0, 1), keepdim=True),
        x.std(-1),
    ]


AWKWARD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38, -3e38, 1.0, -1.0, 100.0], np.float32)

FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "a chain": (lambda x: x * pullback.sigmoid(x) + pullback.exp(-x * x), [real(37)]),
    "float64": (lambda x, y: pullback.tanh(x) / (1 + y * y), [real(5, 6, dtype="float64"), real(6, dtype="float64")]),
    "broadcasting": (lambda x, y, z: x * y + pullback.sin(z), [real(4, 1, 5), real(3, 1), real(1)]),
    "a number": (lambda x, y: 2 * x / (3 + y), [real(4, 3), real()]),
    "transposed": (lambda x: pullback.exp(x.t()) * x.t().sum(0), [real(4, 6)]),
    "strided": (lambda x: (x[::2, 1:] * 3).cos() + x[1::2, :-1], [real(8, 6)]),
    "flipped": (lambda x: x.flip(0) * x, [real(5, 3)]),
    "reductions over axes": (over_axes, [real(3, 4, 5)]),
    "minimum and product": (lambda x: (x.amin(0), x.prod(1), x.logsumexp(0)), [real(4, 7)]),
    "softmax": (lambda x: (pullback.softmax(x, 1), pullback.log_softmax(x, 0)), [real(9, 70)]),
    "layer_norm": (normed, [real(6, 33), real(33), real(33)]),
    "attention": (attended, [real(2, 5, 4), real(2, 7, 4), real(2, 7, 3)]),
    "cross entropy": (lambda x: -(pullback.log_softmax(x, 1)[:, 0]).mean(), [real(8, 5)]),
    "a linear layer": (
        lambda x, w, b: pullback.relu(functional.linear(x, w, b)).square().mean(),
        [real(8, 5), real(4, 5), real(4)],
    ),
    "a convolution": (
        lambda x, w: pullback.relu(functional.conv2d(x, w, padding=1)).mean((2, 3)),
        [real(2, 3, 6, 6), real(4, 3, 3, 3)],
    ),
    "a sort": (lambda x: pullback.sort(x * 2, 1).values * x, [real(4, 9)]),
    "a choice": (lambda x, y: pullback.where(x > y, x * y, x - y), [real(20), real(20)]),
    "integers": (
        lambda i, j: (i * 3 + j // 2, i % 5, (i > j) & (j != 0), i << 1),
        [RNG.integers(-9, 9, 31), RNG.integers(1, 9, 31)],
    ),
    "small integers": (lambda i: (i * i, i.sum(), i.amax(0)), [RNG.integers(-120, 120, (5, 9)).astype(np.int8)]),
    "bools": (lambda b, c: (b & c, b ^ c, (~b).sum(0), b.any(1)), [RNG.random((7, 3)) < 0.5, RNG.random((7, 3)) < 0.5]),
    "conversions": (lambda x: (x.to(pullback.int32) * 2, x.double() / 3, x > 0), [real(50) * 50]),
    "awkward numbers": (lambda x: (x * x, pullback.exp(x), x.maximum(x * 0.5), pullback.tanh(x), 1 / x), [AWKWARD]),
    "awkward sums": (lambda x: (x.sum(0), x.amax(0), x.mean(1)), [np.stack([AWKWARD[::-1], AWKWARD])]),
    "no elements": (lambda x, y: (x * 2 + y, x.sum(), x.sum(0), x.prod(1)), [real(0, 3), real(3)]),
    "half precision": (lambda x: pullback.tanh(x) * 2, [real(6, dtype="float16")]),
    "complex": (lambda x: pullback.exp(x * 1j).abs() + x, [real(5)]),
    "what lies beyond a grid": (lambda x: ((x * 2).sin(), x.sum()), [real(4096 * 256 + 77)]),
    "many results of few elements": (lambda x: (x * x).sum(1), [real(5000, 3)]),
    "few results of many elements": (lambda x: (x * x).sum(1), [real(3, 50_000)]),
    "a constant": (lambda x: x + pullback.arange(3, device=x.device), [real(2, 3)]),
    "a new tensor": (lambda x: x * x.new_tensor([1.0, 2.0, 3.0]) + x.new_zeros(3), [real(2, 3)]),
    "a scan": (lambda x: pullback.cumsum(x.exp(), 0), [real(6, 2)]),
    "gathered": (lambda x, i: x.gather(1, i) * 2, [real(4, 5), RNG.integers(0, 5, (4, 2))]),
    "an inverse": (
        lambda x: pullback.linalg.inv(x @ x.t() + 3 * pullback.eye(4, device=x.device)),
        [real(4, 4, dtype="float64")],
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_of_both_orders(name: str) -> None:
    fn, arrays = FUNCTIONS[name]
    order = 1 if name.startswith(("what lies", "few", "many")) else 2
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the eager form
        wanted = everything(fn, arrays, on_host, order)
        before = len(RawModule.launched)
        compiled = pullback.compile(fn)
        found = everything(compiled, arrays, on_device, order)
        compare(found, wanted, name)
        compare(everything(compiled, arrays, on_device, order), wanted, f"{name}, again")
        plain = everything(pullback.compile(fn, backend="numpy"), arrays, on_device, order)
        compare(plain, wanted, f"{name}, without kernels")
    looped = name not in ("no elements", "half precision")
    assert (len(RawModule.launched) > before) is looped
    assert " on cuda:0\n" in compiled.explain()


def test_steps_of_an_mlp_wait_never_and_are_eager_ones() -> None:
    def trained(make: Callable[[Any], Tensor], compiled: bool) -> tuple[list[Any], int]:
        rng = np.random.default_rng(1)
        pullback.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
        for p in model.parameters():
            p._set_payload(make(p._data)._data)
        opt = pullback.optim.Adam(model.parameters(), lr=0.01)
        x, target = make(rng.standard_normal((4, 6)).astype(np.float32)), make(np.array([0, 2, 1, 1]))

        def loss_of(x: Tensor, target: Tensor) -> Tensor:
            return functional.cross_entropy(model(x), target)

        call, waits = pullback.compile(loss_of) if compiled else loss_of, 0
        for step in range(4):
            if step == 1:
                waits = DeviceArray.waits.total()
            opt.zero_grad()
            loss = call(x, target)
            loss.backward()
            opt.step()
        return [*(p._data for p in model.parameters()), loss._data], DeviceArray.waits.total() - waits

    wanted, _ = trained(on_host, False)
    before = len(RawModule.launched)
    found, waits = trained(on_device, True)
    assert waits == 0, DeviceArray.waits
    assert len(RawModule.launched) > before
    compare(found, wanted)


def test_the_device_is_part_of_the_signature() -> None:
    f = pullback.compile(lambda x: x * 2 if x.device.type == "cpu" else x * 3 + pullback.zeros(3, device=x.device))
    x = real(3)
    for make in (on_host, on_device, on_host, on_device):
        assert f(make(x)).device == make(x).device
    compare([f(on_device(x))._data], [x * 3])
    assert f.explain().count(" on cuda:0\n") == 1
    assert f.explain().count("float32[3])") == 2


def test_each_gpu_has_its_program() -> None:
    f = pullback.compile(lambda x: pullback.exp(x) * 2)
    x = real(3)
    with pullback.cuda.device(1):
        other = on_device(x)
    for t, index in ((other, 1), (on_device(x), 0), (other, 1)):
        found = f(t)
        compare([found._data], [2 * np.exp(x)])
        assert found.device == pullback.device("cuda", index)
    assert f.explain().count(" on cuda:1\n") == f.explain().count(" on cuda:0\n") == 1
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cuda:1"):
        pullback.compile(lambda x, y: x + y)(on_device(x), other)
    with pytest.raises(TraceError, match="tensors of two GPUs are used"):
        pullback.compile(lambda x, y: (x * 2, y * 2))(on_device(x), other)


def test_a_captured_tensor_that_was_moved_is_traced_again() -> None:
    w = on_host(real(3))
    f = pullback.compile(lambda x: x * w)
    x = real(3)
    host = f(on_host(x))
    w.data = on_device(w._data).data
    compare([f(on_device(x))._data], [host._data])


def test_two_devices_are_refused_in_the_words_of_eager_mode() -> None:
    w = on_host(real(3))
    for f in (lambda x, y: x * y + 1, lambda x, y: pullback.cat([x, y])):
        for arguments in ((there(3), w), (w, there(3))):
            with pytest.raises(RuntimeError) as eager:
                f(*arguments)
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as compiled:
                pullback.compile(f)(*arguments)
            assert str(compiled.value) == str(eager.value)
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu!"):
        pullback.compile(lambda x: x * w)(there(3))
    with pytest.raises(TraceError, match=r"a tensor of the host, .* is used beside one of a GPU"):
        pullback.compile(lambda x, y: (x * 2, y * 2))(there(3), w)
    with pytest.raises(TraceError, match=r"a tensor of the host, .* is used beside one of a GPU"):
        pullback.compile(lambda x: (x * 2, pullback.tensor(2.0)))(there(3))


def test_a_number_may_lie_on_the_host() -> None:
    x, s = real(3), np.array(2.0, np.float32)
    f = pullback.compile(lambda x, s: pullback.exp(x * s) + pullback.cumsum(x, 0) * s)
    compare([f(on_device(x), on_host(s))._data], [f(on_host(x), on_host(s))._data])


def test_a_copy_to_another_device_is_refused() -> None:
    for f in (lambda x: x.cpu() * 2, lambda x: x * x.to("cpu").sum()):
        with pytest.raises(TraceError, match="a tensor is copied to another device, but a program runs on one"):
            pullback.compile(f)(there(3))
    with pytest.raises(TraceError, match="copied to another device"):
        pullback.compile(lambda x: x.cuda() * 2)(on_host(real(3)))


def test_writes_in_place() -> None:
    def f(x: Tensor, total: Tensor) -> Tensor:
        total.mul_(0.5).add_(x.sum(0))
        made = pullback.zeros(3, device=x.device)
        made += x[0]
        made[1] = 7
        return made * total

    x, total = real(4, 3), real(3)
    a, b = on_host(total), on_device(total)
    wanted, compiled = f(on_host(x), a), pullback.compile(f)
    compare([compiled(on_device(x), b)._data, b._data], [wanted._data, a._data])
    wanted = f(on_host(x), a)
    compare([compiled(on_device(x), b)._data, b._data], [wanted._data, a._data])
    with pytest.raises(TraceError, match="written to in place, and shares memory"):
        pullback.compile(lambda x, y: (x.add_(1), y * 2)[1])(b, b.view(3))


class Doubled(pullback.autograd.Function):
    """A node that works with the array of its argument, as one that starts a kernel does."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        x.detach().sum().item()
        assert type(x._data) is not np.ndarray
        return wrap(x._data * 2)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 2


def test_a_function_that_works_with_values_gets_them_on_the_device() -> None:
    f = pullback.compile(lambda x: Doubled.apply(x.exp()) + 1)
    x = there(3).requires_grad_()
    for _ in range(2):
        y = f(x)
        (g,) = pullback.autograd.grad(y.sum(), x)
        compare([y.detach()._data, g._data], [2 * np.exp(x._data.inner) + 1, 2 * np.exp(x._data.inner)])


class ToHost(Doubled):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return pullback.as_tensor(x.detach().cpu().numpy() * 2)


def test_a_function_whose_result_lies_elsewhere_is_refused() -> None:
    with pytest.raises(TraceError, match="the results of ToHost lie on another device than its arguments"):
        pullback.compile(lambda x: ToHost.apply(x))(there(3))


def test_a_position_out_of_bounds_is_told_where_the_host_waits_next() -> None:
    f = pullback.compile(lambda t, i: t.gather(0, i) * 2)
    table = there(3, 2)
    f(table, on_device(np.array([[0], [2], [1]])))
    wrong = on_device(np.array([[0], [2], [-2]]))
    DeviceArray.waits.clear()
    found = f(table, wrong)
    assert DeviceArray.waits.total() == 0
    with pytest.raises(RuntimeError, match=r"gather\(\): an index is out of bounds"):
        found.sum().item()


def test_a_module_is_made_once_for_a_source() -> None:
    f = pullback.compile(lambda x: pullback.exp2(x) * 5.25)
    RawModule.made.clear()
    for n in (3, 4, 3, 5000):
        f(there(n))
    pullback.compile(lambda x: pullback.exp2(x) * 5.25)(there(8))
    assert [*RawModule.made.values()] == [1]


@pytest.mark.parametrize("error", [RuntimeError("no NVRTC"), ImportError("libnvrtc.so.12: cannot open")])
def test_what_cannot_be_compiled_runs_as_functions_after_one_warning(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(library, "RawModule", refuse)
    monkeypatch.setattr(OnGpu, "told", set())
    monkeypatch.setattr(cuda, "_MODULES", {})
    x, before = real(4, 3), len(RawModule.launched)
    f = pullback.compile(lambda x: pullback.softmax(x * 2, 1).prod(0))
    with pytest.warns(UserWarning, match="loops run as CuPy's functions, for they cannot be compiled: .*(NVRTC|nvrtc)"):
        found = f(on_device(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(on_device(real(5, 2)))
    compare([found._data], [f(on_host(x))._data])
    assert len(RawModule.launched) == before
    assert ", cupy (RuntimeError" in f.explain() or ", cupy (ImportError" in f.explain()
    with pytest.raises(cuda.KernelError, match=str(error)[:5]):
        pullback.compile(lambda x: x + 1, backend="c")(on_device(x))


def test_a_launch_that_fails_names_the_kernel_and_its_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    f = pullback.compile(lambda x: pullback.exp(x) * 3)
    x = there(5)
    f(x)
    monkeypatch.setattr(cuda, "THREADS", 5000)
    with pytest.raises(RuntimeError, match=r"the kernel exp_multiply_0 \(exp, multiply, over \[5\]\) was not launched"):
        f(x)
    pullback.cuda.synchronize()  # which the error names, and the NumPy form beside it
    plain = pullback.compile(lambda x: pullback.exp(x) * 3, backend="numpy")(x)
    compare([plain._data], [3 * np.exp(x._data.inner)])
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "cupy", library)
    compare([f(x)._data], [3 * np.exp(x._data.inner)])


def test_the_source_can_be_shown() -> None:
    f = pullback.compile(lambda x: pullback.exp(x).sum(0))
    f(there(5, 3))
    f(on_host(real(5, 3)))
    text = f.explain(source=True)
    assert '| extern "C" __global__ void exp_sum_0(const float *__restrict__ in0' in text
    assert "| static void group0(" in text or ", numpy (" in text
    assert "__global__" not in f.explain()


@pytest.mark.parametrize("part", range(16))
def test_samples_of_the_table(part: int) -> None:
    """One sample of each operation, with its gradients; `python -m tests.device.samples` takes all."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wrong, done = {}, 0
        for name in NAMES[part::16]:
            try:
                done += compiled_samples(carrying.entries()[name], 1)
            except Exception as error:
                wrong[name] = f"{type(error).__name__}: {error}"
    assert not wrong, wrong
    assert done > 15

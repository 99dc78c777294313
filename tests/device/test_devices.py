"""torch's words for devices: where tensors lie, how they get there and back, and what is said if they cannot."""

from __future__ import annotations

import builtins
import io
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.tensor.tensor import wrap

from . import library
from .fake import DeviceArray


@pytest.mark.usefixtures("gpu")
class TestThere:
    def test_the_functions_that_scripts_call_at_their_start(self) -> None:
        assert pullback.cuda.is_available()
        assert pullback.cuda.device_count() == 2
        assert pullback.cuda.current_device() == 0
        assert pullback.cuda.get_device_name() == "None, in fact"
        assert pullback.cuda.mem_get_info() == (3 << 30, 8 << 30)
        pullback.cuda.empty_cache()
        pullback.cuda.synchronize()

    @pytest.mark.parametrize(
        "name", ["get_device_name", "mem_get_info", "memory_allocated", "synchronize", "set_device"]
    )
    def test_a_gpu_that_is_not_there_is_refused(self, name: str) -> None:
        pullback.cuda.init()
        for device in (2, "cuda:2") + (() if name == "set_device" else (-1,)):
            with pytest.raises(RuntimeError, match=rf"{name}\(\): expected the number of a GPU.*count 2, found (-1|2)"):
                getattr(pullback.cuda, name)(device)
        for device in ("cpu", True):
            with pytest.raises(ValueError, match=rf"{name}\(\): expected a GPU: a number, .* found '?(cpu|True)"):
                getattr(pullback.cuda, name)(device)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: pullback.zeros(2, device="cuda"),
            lambda: pullback.tensor([1.0, 2.0], device="cuda:0"),
            lambda: pullback.randn(2, device=pullback.device("cuda")),
            lambda: pullback.as_tensor(np.ones(2), device="cuda"),
            lambda: pullback.ones(2).cuda(),
            lambda: pullback.ones(2).to("cuda"),
            lambda: pullback.ones(2).to("cuda", pullback.float64),
            lambda: pullback.ones(2).to(device="cuda", non_blocking=True),
            lambda: pullback.ones(2).to(pullback.ones(1, device="cuda")),
            lambda: pullback.zeros(2, device="cuda").new_ones(2),
            lambda: pullback.ones_like(pullback.zeros(2, device="cuda")),
        ],
    )
    def test_a_tensor_is_made_or_moved_there(self, make: Any) -> None:
        t = make()
        assert type(t._data) is DeviceArray
        assert t.device == pullback.device("cuda", 0)
        assert t.to("cuda") is t
        assert t.cuda() is t
        assert t.to("cuda:0") is t
        assert type(t.cpu()._data) is np.ndarray
        assert t.cpu().device == pullback.device("cpu")

    def test_the_way_there_and_back_is_recorded(self) -> None:
        x = pullback.tensor([1.0, 2.0], requires_grad=True)
        y = x.cuda()
        assert y.grad_fn is not None
        assert y.grad_fn.name() == "ToCopyBackward0"
        (y * y).sum().backward()
        assert type(x.grad._data) is np.ndarray
        assert x.grad.tolist() == [2.0, 4.0]
        z = pullback.tensor([3.0], device="cuda", requires_grad=True)
        (z.cpu() * 2).sum().backward()
        assert type(z.grad._data) is DeviceArray
        assert z.grad.tolist() == [2.0]

    def test_a_module_moves_and_comes_back(self) -> None:
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        weight = model[0].weight
        assert model.to("cuda") is model
        assert model[0].weight is weight
        assert {str(t.device) for t in [*model.parameters(), *model.buffers()]} == {"cuda:0"}
        model(pullback.randn(4, 3, device="cuda")).sum().backward()
        assert weight.grad.device == weight.device
        model.cpu()
        assert {str(t.device) for t in [*model.parameters(), *model.buffers()]} == {"cpu"}

    @pytest.mark.parametrize(
        "work",
        [
            lambda a, b: a + b,
            lambda a, b: b * a,
            lambda a, b: a @ b,
            lambda a, b: pullback.cat([a, b]),
            lambda a, b: pullback.where(a > 0, a, b),
            lambda a, b: nn.functional.mse_loss(a, b),
        ],
    )
    def test_mixing_devices_is_refused_in_torchs_words(self, work: Any) -> None:
        a, b = pullback.ones(2, device="cuda"), pullback.ones(2)
        with pytest.raises(
            RuntimeError,
            match=r"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        ):
            work(a, b)
        assert (a + pullback.tensor(1.0)).tolist() == [2.0, 2.0], "a number is none of a device"

    def test_numpy_of_a_device_tensor_is_refused_in_torchs_words(self) -> None:
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            pullback.ones(2, device="cuda").numpy()

    def test_dlpack_says_where_it_lies(self) -> None:
        t = pullback.ones(2, device="cuda")
        assert t.__dlpack_device__() == (2, 0)
        assert pullback.ones(2).__dlpack_device__() == (1, 0)

    def test_a_failed_check_is_told_at_synchronize(self) -> None:
        t = pullback.ones(2, device="cuda")
        pullback.index_select(t, 0, wrap(DeviceArray(np.array([1, -1]))))
        with pytest.raises(IndexError, match=r"index_select\(\): an index is out of bounds for a dimension of size 2"):
            pullback.cuda.synchronize()
        pullback.cuda.synchronize()

    def test_the_device_of_new_tensors(self) -> None:
        def made() -> list[Any]:
            return [
                pullback.zeros(2), pullback.tensor([1.0]), pullback.rand(2), pullback.arange(3), pullback.eye(2),
                pullback.as_tensor(np.ones(2)), pullback.asarray([1.0]), pullback.scalar_tensor(1.0),
                nn.Linear(2, 2).weight, nn.BatchNorm1d(2).running_mean,
            ]  # fmt: skip

        host = pullback.ones(2)
        with pullback.device("cuda"):
            assert {str(t.device) for t in made()} == {"cuda:0"}
            assert pullback.get_default_device() == pullback.device("cuda")
            likes = (
                pullback.zeros_like(host),
                host.new_ones(2),
                host.new_tensor([1.0]),
                pullback.from_numpy(np.ones(2)),
            )
            assert {str(t.device) for t in likes} == {"cpu"}
            with pullback.device("cpu"):
                assert {str(t.device) for t in made()} == {"cpu"}
            assert pullback.zeros(2, device="cpu").device.type == "cpu"
        with pytest.raises(KeyError), pullback.device("cuda"):
            raise KeyError
        assert {str(t.device) for t in made()} == {"cpu"}

    def test_the_default_device_is_that_of_a_thread(self) -> None:
        pullback.set_default_device("cuda:1")
        try:
            assert str(pullback.zeros(2).device) == "cuda:1"
            assert pullback.get_default_device() == pullback.device("cuda:1")
            elsewhere: list[Any] = []
            thread = threading.Thread(target=lambda: elsewhere.append(pullback.zeros(2).device.type))
            thread.start()
            thread.join()
            assert elsewhere == ["cpu"]
        finally:
            pullback.set_default_device(None)
        assert pullback.get_default_device() == pullback.device("cpu")
        there = pullback.zeros(2, device="cuda")
        assert there.new_tensor([1.0]).device == there.new_zeros(1).device == there.device
        assert there.new_zeros(1, device="cpu").device.type == "cpu"
        assert there.new_ones(1, device="cuda:1").device.index == 1

    def test_gradients_are_added_in_place(self) -> None:
        x = pullback.ones(2, device="cuda", requires_grad=True)
        (x * 3).sum().backward()
        g = x.grad
        (x * 2).sum().backward()
        assert x.grad is g
        assert g.tolist() == [5.0, 5.0]

    def test_another_gpu_than_there_is(self) -> None:
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            pullback.ones(2).to("cuda:3")


NEED = [
    lambda: pullback.zeros(2, device="cuda"),
    lambda: pullback.ones(2).cuda(),
    lambda: pullback.ones(2).to("cuda:1"),
    lambda: nn.Linear(2, 2).cuda(),
    lambda: nn.Linear(2, 2).to("cuda"),
    lambda: pullback.cuda.synchronize(),
    lambda: pullback.cuda.mem_get_info(),
    lambda: pullback.load(io.BytesIO(), map_location="cuda"),
]


class TestNotThere:
    @pytest.mark.parametrize("work", NEED)
    def test_without_cupy_it_says_what_to_install(self, work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cupy", None)
        assert not pullback.cuda.is_available()
        assert pullback.cuda.device_count() == 0
        with pytest.raises(RuntimeError, match=r"(?s)found no installation of it.*pip install 'pullback\[gpu12\]'"):
            work()

    @pytest.mark.parametrize("work", NEED)
    def test_without_a_gpu_it_says_so(self, work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        cuda = SimpleNamespace(**{**vars(library.cuda), "is_available": lambda: False})
        nothing = SimpleNamespace(__version__="14.2", cuda=cuda)
        monkeypatch.setitem(sys.modules, "cupy", nothing)
        assert not pullback.cuda.is_available()
        with pytest.raises(RuntimeError, match=r"(?s)no CUDA GPUs are available.*nvidia-smi"):
            work()

    def test_nothing_of_it_is_imported_before_it_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = builtins.__import__

        def watched(name: str, *args: Any, **kwargs: Any) -> Any:
            assert not name.startswith("cupy")
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", watched)
        x = pullback.ones(2, requires_grad=True)
        nn.Linear(2, 1)(x.to("cpu").cpu()).sum().backward()
        assert x.device == pullback.device("cpu")


@pytest.mark.usefixtures("gpu")
def test_gradients_of_tensors_on_a_device_are_checked() -> None:
    x, w = pullback.randn(3, 2, device="cuda"), pullback.randn(2, device="cuda")
    f = lambda x, w: {"a": pullback.tanh(x * w).sum(0), "b": x.exp()}  # noqa: E731
    assert pullback.autograd.gradcheck(f, (x, w), check_forward_ad=True, check_batched_grad=True)
    assert pullback.autograd.gradgradcheck(f, (x, w))
    assert pullback.autograd.gradcheck(f, (x.requires_grad_(), w.to(pullback.float64)))

    class Wrong(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: pullback.Tensor) -> pullback.Tensor:
            assert type(x._data) is DeviceArray
            return x * 3

        @staticmethod
        def backward(ctx: Any, g: pullback.Tensor) -> pullback.Tensor:
            return g * 2

    with pytest.raises(pullback.autograd.GradcheckError, match="a constant factor"):
        pullback.autograd.gradcheck(Wrong.apply, pullback.randn(3, device="cuda"))


class Two(pullback.autograd.Function):
    """Two outputs: backward multiplies the gradients of both, so that each has to be there."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x * 2, y * 3

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return a * 2 + b * 0, b * 3 + a * 0


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("used", [0, 1])
def test_zeros_for_an_output_that_is_not_used_lie_on_the_device(used: int) -> None:
    x, y = (pullback.ones(3, requires_grad=True) for _ in range(2))  # on the host
    out = Two.apply(x.to("cuda"), y.to("cuda"))
    out[used].sum().backward()
    assert [t.grad.tolist() for t in (x, y)] == ([[2.0] * 3, [0.0] * 3] if used == 0 else [[0.0] * 3, [3.0] * 3])

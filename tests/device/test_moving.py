"""Files, modules, optimisers, DLPack and graphs across devices, on the device that is not there."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.tensor.tensor import Tensor, wrap

from . import library
from .fake import DeviceArray
from .machine import MACHINE


def saved(obj: Any) -> io.BytesIO:
    file = io.BytesIO()
    pullback.save(obj, file)
    file.seek(0)
    return file


def devices(tree: Any) -> list[str]:
    return [str(t.device) for t in (tree.values() if isinstance(tree, dict) else tree)]


@pytest.mark.usefixtures("gpu")
class TestFiles:
    def test_each_tensor_goes_back_to_its_device(self) -> None:
        found = pullback.load(
            saved({
                "a": pullback.ones(2, device="cuda:1", requires_grad=True),
                "b": pullback.ones(3),
                "c": nn.Parameter(pullback.ones(1, device="cuda")),
            })
        )  # fmt: skip
        assert devices(found) == ["cuda:1", "cpu", "cuda:0"]
        assert found["a"].requires_grad
        assert isinstance(found["c"], nn.Parameter)
        assert found["a"].tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        ("where", "wanted"),
        [
            ("cpu", ["cpu", "cpu", "cpu"]),
            ("cuda:1", ["cuda:1"] * 3),
            ("cuda", ["cuda:0"] * 3),
            (pullback.device("cuda", 1), ["cuda:1"] * 3),
            ({"cuda:1": "cuda:0"}, ["cuda:0", "cpu", "cuda:0"]),
            ({"cuda:1": "cpu", "cpu": "cuda:1"}, ["cpu", "cuda:1", "cuda:0"]),
            (lambda t, place: t, ["cpu", "cpu", "cpu"]),
            (lambda t, place: t.cuda(1), ["cuda:1"] * 3),
            (lambda t, place: None, ["cuda:1", "cpu", "cuda:0"]),
            (lambda t, place: t.cuda() if place == "cuda:1" else None, ["cuda:0", "cpu", "cuda:0"]),
        ],
    )
    def test_map_location(self, where: Any, wanted: list[str]) -> None:
        tensors = [pullback.ones(2, device=d) for d in ("cuda:1", "cpu", "cuda:0")]
        found = pullback.load(saved(tensors), map_location=where)
        assert devices(found) == wanted
        assert [t.tolist() for t in found] == [[1.0, 1.0]] * 3

    def test_shared_memory_stays_shared(self) -> None:
        t = pullback.ones(2, 3, device="cuda")
        file = saved([t, t.detach(), t[1:], t.T])
        assert len(np.load(file).files) == 4, "three arrays and the tree"
        file.seek(0)
        a, b, c, d = pullback.load(file)
        a.zero_()
        assert b.sum().item() == 0
        assert c.sum().item() == 3
        assert d.shape == (3, 2)
        a, b, *_ = pullback.load(saved([pullback.ones(2)] * 2), map_location="cuda:1")
        a.zero_()
        assert b.tolist() == [0.0, 0.0]

    def test_a_file_of_tensors_by_name_goes_where_it_is_said(self, tmp_path: Path) -> None:
        path = tmp_path / "weights.safetensors"
        pullback.save({"w": pullback.ones(2, device="cuda")}, path)
        assert devices(pullback.load(path)) == ["cpu"], "the format keeps no devices"
        assert devices(pullback.load(path, map_location="cuda:1")) == ["cuda:1"]

    def test_what_is_no_location(self) -> None:
        with pytest.raises(TypeError, match=r"load\(\): map_location: expected a device, a dict .*found int 5"):
            pullback.load(saved([]), map_location=5)
        with pytest.raises(RuntimeError, match="map_location"):
            pullback.load(saved([pullback.ones(1)]), map_location=lambda t, place: 3)
        with pytest.raises(RuntimeError, match=r"device_count\(\) is 2"):
            pullback.load(saved([pullback.ones(1)]), map_location="cuda:2")
        with pytest.raises(RuntimeError, match="expected cpu or cuda"):
            pullback.load(saved([pullback.ones(1)]), map_location="meta")

    def test_a_file_of_a_gpu_without_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        file = saved([pullback.ones(2, device="cuda")])
        monkeypatch.setitem(sys.modules, "cupy", None)
        with pytest.raises(
            RuntimeError,
            match=r"(?s)Attempting to deserialize object on a CUDA device but pullback\.cuda\.is_available\(\) is False"
            r".*'cuda:0'.*map_location='cpu'",
        ):
            pullback.load(file)
        file.seek(0)
        (found,) = pullback.load(file, map_location="cpu")
        assert type(found._data) is np.ndarray

    def test_pickles_and_copies(self) -> None:
        t = pullback.ones(2, device="cuda", requires_grad=True)
        found = pickle.loads(pickle.dumps(t))
        assert found.device == t.device
        assert found.requires_grad
        model = nn.Linear(2, 2).to("cuda")
        twin = copy.deepcopy(model)
        assert devices(twin.parameters()) == ["cuda:0"] * 2
        twin.weight.data.zero_()
        assert model.weight.abs().sum().item() > 0


@pytest.mark.usefixtures("gpu")
class TestModules:
    def test_forms_of_to(self) -> None:
        other = pullback.ones(1, device="cuda:1", dtype=pullback.float64)
        for move in (
            lambda m: m.to("cuda:1", pullback.float64),
            lambda m: m.to(device="cuda:1", dtype=pullback.float64),
            lambda m: m.to(other),
            lambda m: m.cuda(1).double(),
        ):
            model = move(nn.BatchNorm1d(2))
            assert model.weight.device == model.running_mean.device == pullback.device("cuda:1")
            assert model.weight.dtype == pullback.float64
        model = nn.Linear(2, 2)
        for p in model.parameters():
            p.data = p.data.pin_memory()
        MACHINE.copies.clear()
        model.to("cuda", non_blocking=True)
        assert MACHINE.copies == {"asynchronous": 2}

    def test_gradients_move_too(self) -> None:
        model = nn.Linear(2, 1)
        model(pullback.ones(3, 2)).sum().backward()
        model.cuda()
        assert model.weight.grad.device == pullback.device("cuda:0")
        model.cpu()
        assert model.weight.grad.device == pullback.device("cpu")

    def test_a_state_is_loaded_across_devices(self) -> None:
        for source, target in (("cpu", "cuda"), ("cuda", "cpu"), ("cuda:1", "cuda:0")):
            a, b = nn.BatchNorm1d(3).to(source), nn.BatchNorm1d(3).to(target)
            with pullback.cuda.device(1 if source == "cuda:1" else 0):
                a.weight.data += 1
            b.load_state_dict(a.state_dict())
            assert set(devices([*b.parameters(), *b.buffers()])) == {str(pullback.zeros(0).to(target).device)}
            assert b.weight.tolist() == [2.0, 2.0, 2.0]
        c = nn.Linear(2, 2)
        c.load_state_dict(nn.Linear(2, 2).to("cuda").state_dict(), assign=True)
        assert devices(c.parameters()) == ["cuda:0"] * 2, "with assign, the tensors of the state"

    @pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam"])
    def test_the_state_of_an_optimiser_goes_to_its_parameters(self, name: str) -> None:
        pullback.manual_seed(0)
        how = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
        make = getattr(pullback.optim, name)
        models = [nn.Linear(2, 1), nn.Linear(2, 1).to("cuda")]
        models[1].load_state_dict(models[0].state_dict())
        host, there = (make(m.parameters(), **how) for m in models)

        def step(model: Any, optimiser: Any, device: str) -> None:
            optimiser.zero_grad()
            model(pullback.tensor([[1.0, 2.0]], device=device)).sum().backward()
            optimiser.step()

        step(models[0], host, "cpu")
        models[1].load_state_dict(models[0].state_dict())
        there.load_state_dict(pullback.load(saved(host.state_dict())))
        for state in there.state.values():
            places = {k: v.device.type for k, v in state.items() if isinstance(v, Tensor)}
            assert {v for k, v in places.items() if k not in ("step", "mu_product")} <= {"cuda"}
        step(models[0], host, "cpu")
        step(models[1], there, "cuda")
        np.testing.assert_allclose(models[1].weight.cpu().detach(), models[0].weight.detach(), rtol=1e-6)

    def test_a_module_that_moves_after_its_optimiser_began_leaves_the_state_behind(self) -> None:
        model = nn.Linear(2, 1)
        steps = pullback.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        model(pullback.ones(1, 2)).sum().backward()
        steps.step()
        model.cuda()
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            steps.step()
        steps.load_state_dict(steps.state_dict())
        steps.step()
        assert steps.state[model.weight]["momentum_buffer"].device == model.weight.device

    def test_what_a_graph_saves_is_kept_on_the_host(self) -> None:
        x = pullback.tensor([1.0, 2.0], device="cuda", requires_grad=True)
        for pinned in (False, True):
            x.grad = None
            with pullback.autograd.graph.save_on_cpu(pin_memory=pinned):
                y = (x * x).exp()
            assert pullback.inspect.memory(y.sum()).packed
            y.sum().backward()
            np.testing.assert_allclose(x.grad.cpu(), 2 * x.detach().cpu() * np.exp(x.detach().cpu() ** 2), rtol=1e-6)

    def test_memory_by_device(self) -> None:
        x = pullback.ones(256, device="cuda", requires_grad=True)
        z = x.exp()
        y = (z.cpu().tanh() * 2).sum() + z[3:].sin().sum().cpu()
        found = pullback.inspect.memory(y)
        rows = {row.label: (row.count, row.holds) for row in found.by_device()}
        assert rows == {"cuda:0": (1, 1024), "cpu": (1, 1024)}
        assert {s.device for s in found.storages} == {"cuda:0", "cpu"}
        assert "1.0 KiB on cuda:0; 1.0 KiB on cpu." in str(found) or "1.0 KiB on cpu; 1.0 KiB on cuda:0." in str(found)
        assert "`z`" in str(found)
        assert "cuda:0" in found.bars("device")
        assert "cuda:0" in found.svg("device")
        with pytest.raises(ValueError, match="'node', 'line', 'shape' or 'device'"):
            found.bars("nonsense")
        host = pullback.inspect.memory(pullback.ones(2, requires_grad=True).exp().sum())
        assert [row.label for row in host.by_device()] == ["cpu"]
        assert " on cpu" not in str(host)


class Foreign:
    """A tensor of another library on the device, as its consumers see it."""

    def __init__(self, array: DeviceArray) -> None:
        self.array, self.streams = array, list[Any]()

    def __dlpack__(self, *, stream: Any = None, **how: Any) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.mark.usefixtures("gpu")
class TestDLPack:
    def test_in_without_a_copy_on_the_current_stream(self) -> None:
        other = Foreign(DeviceArray(np.arange(3.0)))
        t = pullback.from_dlpack(other)
        assert (t.device, t.tolist()) == (pullback.device("cuda:0"), [0.0, 1.0, 2.0])
        other.array[0] = 7.0
        assert t.tolist() == [7.0, 1.0, 2.0]
        s = pullback.cuda.Stream()
        with pullback.cuda.stream(s):
            pullback.from_dlpack(other)
        assert other.streams == [1, s.cuda_stream], "1 is the protocol's number for the default stream"

    def test_in_to_another_place(self) -> None:
        other = Foreign(DeviceArray(np.arange(3.0)))
        assert pullback.from_dlpack(other, device="cpu").device.type == "cpu"
        assert pullback.from_dlpack(other, device="cuda:1").device.index == 1
        copied = pullback.from_dlpack(other, copy=True)
        other.array[0] = 7.0
        assert copied.tolist() == [0.0, 1.0, 2.0]
        with pytest.raises((ValueError, BufferError), match="copy=False"):
            pullback.from_dlpack(other, device="cpu", copy=False)
        there = pullback.from_dlpack(np.arange(3.0), device="cuda")
        assert type(there._data) is DeviceArray

    def test_in_of_another_device(self) -> None:
        other = Foreign(DeviceArray(np.arange(3.0), 1))
        assert pullback.from_dlpack(other).device == pullback.device("cuda:1")

    def test_as_tensor_takes_an_array_as_it_is(self) -> None:
        array = DeviceArray(np.arange(3.0))
        assert pullback.as_tensor(array)._data is array

    def test_out(self) -> None:
        t = pullback.ones(2, device="cuda:1")
        assert t.__dlpack_device__() == (2, 1)
        found = np.from_dlpack(_AsHost(t))
        assert found.tolist() == [1.0, 1.0]
        t._data.inner[0] = 3
        assert found.tolist() == [3.0, 1.0], "the same memory"
        host = np.from_dlpack(_AsHost(t, dl_device=(1, 0)))
        t._data.inner[0] = 4
        assert host.tolist() == [3.0, 1.0]
        assert library.from_dlpack(t).device.id == 1
        with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor\.detach\(\)"):
            t.requires_grad_().__dlpack__(stream=1)
        with pytest.raises(BufferError, match="no copy to the device"):
            t.detach().__dlpack__(dl_device=(4, 0))

    def test_a_stream_for_a_tensor_of_the_host_is_refused(self) -> None:
        with pytest.raises(AssertionError, match="stream=None on the CPU"):
            pullback.ones(2).__dlpack__(stream=1)


class _AsHost:
    """Hands the device's memory to NumPy, which reads it because this device is not there."""

    def __init__(self, t: Tensor, **how: Any) -> None:
        self._capsule = t.__dlpack__(stream=1, **how)

    def __dlpack__(self, **how: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_wrapped_arrays_of_the_device_need_no_library() -> None:
    assert wrap(DeviceArray(np.ones(2))).device == pullback.device("cuda:0")

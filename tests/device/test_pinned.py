"""Pinned memory, copies beside the host's work, and loaders that use them, on the device that is not there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pullback
from pullback.utils.data import DataLoader, TensorDataset

from .fake import DeviceArray
from .machine import MACHINE


@pytest.mark.usefixtures("gpu")
class TestPinned:
    def test_a_copy_lies_there_and_stays(self) -> None:
        x = pullback.arange(6.0).reshape(2, 3)
        assert not x.is_pinned()
        y = x.pin_memory()
        assert y.is_pinned()
        assert y.pin_memory() is y
        assert pullback.equal(x, y)
        assert y[1:].is_pinned()
        assert y._data.ctypes.data != x._data.ctypes.data
        assert x.T.pin_memory().stride() == x.T.stride()
        assert not (y + 1).is_pinned()

    def test_tensors_are_made_there(self) -> None:
        assert pullback.zeros(3, pin_memory=True).is_pinned()
        assert pullback.tensor([1.0, 2.0], pin_memory=True).is_pinned()
        assert pullback.zeros(0, pin_memory=True).shape == (0,)

    def test_gradients_pass(self) -> None:
        x = pullback.ones(2, requires_grad=True)
        (x.pin_memory().cuda() * 3).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]

    def test_on_a_device_it_is_refused_in_torchs_words(self) -> None:
        with pytest.raises(RuntimeError, match=r"(?s)cannot pin .*only dense CPU tensors can be pinned.*x\.cpu\(\)"):
            pullback.ones(2, device="cuda").pin_memory()
        assert not pullback.ones(2, device="cuda").is_pinned()

    def test_copies_go_on_beside_the_host_where_that_is_asked(self) -> None:
        x = pullback.ones(3).pin_memory()
        MACHINE.copies.clear()
        y = x.to("cuda", non_blocking=True)
        assert MACHINE.copies == {"asynchronous": 1}
        x.cuda(non_blocking=True)
        x.to("cuda", pullback.float64, True)
        assert MACHINE.copies == {"asynchronous": 3}
        x.cuda()
        x.to("cuda")
        assert MACHINE.copies == {"asynchronous": 3, "blocking": 2}
        MACHINE.copies.clear()
        DeviceArray.waits.clear()
        z = y.to("cpu", non_blocking=True)
        assert MACHINE.copies == {"back, asynchronous": 1}
        assert not DeviceArray.waits
        assert z.is_pinned()
        pullback.cuda.synchronize()
        assert z.tolist() == [1.0, 1.0, 1.0]
        y.cpu()
        assert MACHINE.copies == {"back, asynchronous": 1, "back, blocking": 1}

    def test_copy_goes_to_another_device(self) -> None:
        host, there = pullback.zeros(3), pullback.zeros(3, device="cuda")
        source = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
        there.copy_(source.pin_memory(), non_blocking=True)
        assert type(there._data) is DeviceArray
        assert there.tolist() == [1.0, 2.0, 3.0]
        there.sum().backward()
        assert source.grad.tolist() == [1.0, 1.0, 1.0]
        host.copy_(there.detach())
        assert type(host._data) is np.ndarray
        assert host.tolist() == [1.0, 2.0, 3.0]
        there.detach().copy_(7)
        assert there.tolist() == [7.0, 7.0, 7.0]

    def test_a_loader_pins_its_batches(self) -> None:
        data = TensorDataset(pullback.arange(4.0), pullback.arange(4))
        for x, y in DataLoader(data, batch_size=2, pin_memory=True):
            assert x.is_pinned()
            assert y.is_pinned()
        dicts = [{"a": pullback.ones(1), "b": ("name", pullback.ones(1))} for _ in range(2)]
        (batch,) = DataLoader(dicts, batch_size=2, pin_memory=True)
        assert batch["a"].is_pinned()
        assert batch["b"][1].is_pinned()
        assert batch["b"][0] == ("name", "name")
        assert not any(x.is_pinned() for x, _ in DataLoader(data))

    def test_a_batch_of_a_class_of_its_own_pins_itself(self) -> None:
        class Batch:
            def __init__(self, items: list[pullback.Tensor]) -> None:
                self.items = pullback.stack(items)

            def pin_memory(self) -> Batch:
                self.items = self.items.pin_memory()
                return self

        (batch,) = DataLoader([pullback.ones(1)] * 2, batch_size=2, collate_fn=Batch, pin_memory=True)
        assert batch.items.is_pinned()


def test_a_loader_without_a_gpu_says_so_as_torch_does() -> None:
    loader = DataLoader(pullback.arange(2.0), pin_memory=True)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        assert [x.tolist() for x in loader] == [[0.0], [1.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(DataLoader(pullback.arange(2.0)))) == 2

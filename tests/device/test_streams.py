"""torch.cuda's words on the device that is not there: the current device, streams, events, the memory that is held."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import pullback
from pullback import cuda

from . import library
from .machine import MACHINE


@pytest.mark.usefixtures("gpu")
class TestDevices:
    def test_the_current_device_is_set_and_put_back(self) -> None:
        assert pullback.zeros(2, device="cuda").device == pullback.device("cuda", 0)
        with cuda.device(1):
            assert cuda.current_device() == 1
            x = pullback.zeros(2, device="cuda")
            assert x.device == pullback.device("cuda", 1)
            assert x.cuda() is x
            with cuda.device(None), cuda.device(-1):
                assert cuda.current_device() == 1
        assert cuda.current_device() == 0
        assert x.cuda().device == pullback.device("cuda", 0), "cuda is the current one, as in torch"
        assert x.to(1) is x
        cuda.set_device("cuda:1")
        assert cuda.current_device() == 1
        cuda.set_device(-1)
        assert cuda.current_device() == 1

    def test_a_number_is_a_gpu(self) -> None:
        assert pullback.device(1) == pullback.device("cuda", 1)
        assert pullback.zeros(2).to(1).device == pullback.zeros(2, device=1).device == pullback.device("cuda:1")
        assert pullback.nn.Linear(2, 2).to(1).weight.device == pullback.device("cuda:1")

    def test_started(self) -> None:
        assert cuda.is_available()
        assert not cuda.is_initialized()
        assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
        assert cuda.memory_stats() == {}
        cuda.init()
        assert cuda.is_initialized()

    def test_what_it_is(self) -> None:
        found = cuda.get_device_properties(1)
        assert (found.name, found.major, found.total_memory, found.multi_processor_count) == (
            "None, in fact", 9, 8 << 30, 2,
        )  # fmt: skip
        assert cuda.get_device_capability("cuda:0") == (9, 0)
        assert cuda.is_bf16_supported()

    @pytest.mark.parametrize("name", ["is_bf16_supported", "is_available", "is_initialized"])
    def test_false_without_one(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cupy", None)
        assert getattr(cuda, name)() is False


@pytest.mark.usefixtures("gpu")
class TestStreams:
    def test_work_goes_to_the_stream_within(self) -> None:
        default, s = cuda.default_stream(), cuda.Stream()
        assert cuda.current_stream() == default
        assert default.cuda_stream == 0
        with cuda.stream(s) as inside:
            assert inside is s
            assert cuda.current_stream() == s != default
            with cuda.stream(None):
                assert cuda.current_stream() == s
            with s:
                assert cuda.current_stream() == s
            assert cuda.current_stream() == s
        assert cuda.current_stream() == default
        assert hash(cuda.current_stream()) == hash(default)
        assert s.query()
        s.synchronize()

    def test_a_stream_of_another_device_brings_its_device(self) -> None:
        s = cuda.Stream(device=1, priority=-1)
        assert (s.device, s.priority) == (pullback.device("cuda:1"), -1)
        with cuda.stream(s):
            assert cuda.current_device() == 1
            assert cuda.current_stream() == s
        assert cuda.current_device() == 0
        assert cuda.current_stream(1) == cuda.default_stream(1)
        cuda.set_stream(s)
        assert (cuda.current_device(), cuda.current_stream()) == (1, s)

    def test_it_is_put_back_after_an_error(self) -> None:
        with pytest.raises(KeyError), cuda.stream(cuda.Stream(1)):
            raise KeyError
        assert cuda.current_device() == 0
        assert cuda.current_stream(1) == cuda.default_stream(1)

    def test_waiting_for_another_stream_goes_through_an_event(self) -> None:
        a, b = cuda.Stream(), cuda.Stream()
        a.wait_stream(b)
        (waited,) = a.cupy_stream.waited
        assert isinstance(waited, library.Event)
        event = b.record_event()
        event.wait(a)
        a.wait_event(event)
        assert a.cupy_stream.waited[1:] == [event.cupy_event] * 2

    def test_the_stream_of_another_library(self) -> None:
        s = cuda.ExternalStream(1234, device=1)
        assert (s.cuda_stream, s.device.index) == (1234, 1)

    def test_what_is_no_stream_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"stream\(\): expected a pullback.cuda.Stream, found int 3"):
            cuda.stream(3)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("name", "use"),
        [
            ("query", lambda s: s.query()),
            ("synchronize", lambda s: s.synchronize()),
            ("record", lambda s: s.record_event()),
            ("wait", lambda s: s.wait_event(cuda.Stream().record_event())),
            ("wait", lambda s: s.wait_stream(cuda.Stream())),
            ("record", lambda s: cuda.Stream().wait_stream(s)),
            ("record", lambda s: cuda.Event().record(s)),
        ],
    )
    def test_a_stream_that_was_destroyed(self, name: str, use: Any) -> None:
        s = cuda.Stream()
        s.cupy_stream.destroy()
        with pytest.raises(cuda.AcceleratorError, match=rf"(?s){name}\(\): CUDA error: invalid resource handle; a "
                                                        r"stream or an event that was destroyed") as told:  # fmt: skip
            use(s)
        assert told.value.error_code == 400
        assert cuda.current_stream() == cuda.default_stream()

    def test_work_on_a_stream_that_was_destroyed(self) -> None:
        x, s = pullback.ones(2, device="cuda"), cuda.Stream()
        with cuda.stream(s):
            s.cupy_stream.destroy()
            with pytest.raises(cuda.AcceleratorError, match=r"add\(\): CUDA error: invalid resource handle"):
                x + x
        assert (x + x).tolist() == [2.0, 2.0]


@pytest.mark.usefixtures("gpu")
class TestEvents:
    def test_the_time_between_two(self) -> None:
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        x = pullback.ones(3, device="cuda")
        start.record()
        for _ in range(5):
            x = x + 1
        end.record()
        assert start.query()
        end.synchronize()
        assert start.elapsed_time(end) == 5, "of the device that is not there: one for each array"
        assert start.elapsed_time(start) == 0
        start.record(cuda.current_stream())
        assert end.elapsed_time(start) == 0
        assert start.cuda_event != 0

    def test_one_that_was_not_recorded(self) -> None:
        event = cuda.Event()
        assert event.query()
        event.synchronize()
        event.wait()
        assert event.cuda_event == 0

    def test_times_that_cannot_be_told(self) -> None:
        timed, untimed = cuda.Event(enable_timing=True), cuda.Event()
        untimed.record()
        with pytest.raises(ValueError, match="Both events must be created with argument 'enable_timing=True'"):
            timed.elapsed_time(untimed)
        with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time"):
            timed.elapsed_time(cuda.Event(enable_timing=True))

    def test_an_event_that_is_not_reached(self, monkeypatch: pytest.MonkeyPatch) -> None:
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        end.record()
        monkeypatch.setattr(library.Event, "done", False)
        assert not end.query()
        with pytest.raises(RuntimeError, match="Both events must be completed before calculating elapsed time"):
            start.elapsed_time(end)

    def test_it_belongs_to_the_device_of_its_stream(self) -> None:
        with cuda.device(1):
            event = cuda.current_stream().record_event()
        assert event.query()
        assert cuda.current_device() == 0


@pytest.mark.usefixtures("gpu")
class TestMemory:
    def test_the_most_that_was_held(self) -> None:
        MACHINE.limit = 1 << 20
        cuda.init()
        cuda.reset_peak_memory_stats()
        assert cuda.max_memory_allocated() == cuda.memory_allocated() == 0
        x = pullback.zeros(100, device="cuda")
        y = x + 1
        assert cuda.memory_allocated() == cuda.max_memory_allocated() == 800
        del y
        assert (cuda.memory_allocated(), cuda.max_memory_allocated()) == (400, 800)
        assert cuda.memory_reserved() == 400 + 512
        assert cuda.max_memory_reserved() == 800 + 512
        assert cuda.memory_stats()["allocated_bytes.all.peak"] == 800
        assert cuda.memory_allocated(1) == cuda.max_memory_allocated(1) == 0
        cuda.reset_peak_memory_stats()
        assert cuda.max_memory_allocated() == 400
        del x
        assert cuda.memory_stats() == {
            "allocated_bytes.all.current": 0, "allocated_bytes.all.peak": 400,
            "reserved_bytes.all.current": 512, "reserved_bytes.all.peak": 912,
        }  # fmt: skip

    def test_a_part_of_it(self) -> None:
        cuda.set_per_process_memory_fraction(0.5, 1)
        assert library.Pool.fractions == {1: 0.5}
        with pytest.raises(ValueError, match=r"Invalid fraction value: 2\. Allowed range: 0~1"):
            cuda.set_per_process_memory_fraction(2)
        with pytest.raises(TypeError, match="Invalid type for fraction argument"):
            cuda.set_per_process_memory_fraction("all")  # type: ignore[arg-type]


NEED = [
    lambda: cuda.Stream(),
    lambda: cuda.ExternalStream(1),
    lambda: cuda.Event(enable_timing=True),
    lambda: cuda.current_stream(),
    lambda: cuda.default_stream(),
    lambda: cuda.set_device(0),
    lambda: cuda.device(0),
    lambda: cuda.reset_peak_memory_stats(),
    lambda: cuda.get_device_properties(),
    lambda: cuda.get_device_capability(),
    lambda: cuda.set_per_process_memory_fraction(0.5),
    lambda: cuda.get_rng_state(),
    lambda: cuda.set_rng_state(pullback.get_rng_state()),
    lambda: cuda.initial_seed(),
    lambda: pullback.Generator(device="cuda"),
    lambda: pullback.ones(2).pin_memory(),
    lambda: pullback.zeros(2, pin_memory=True),
]


@pytest.mark.parametrize("work", NEED)
def test_without_cupy_it_says_what_to_install(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(RuntimeError, match=r"(?s)found no installation of it.*pip install 'pullback\[gpu12\]'"):
        work()


def test_without_cupy_what_scripts_call_anyway_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    state = pullback.get_rng_state()
    cuda.manual_seed(3)
    cuda.manual_seed_all(3)
    cuda.seed_all()
    cuda.empty_cache()
    with cuda.stream(None), cuda.device(None):
        assert cuda.memory_allocated() == cuda.max_memory_allocated() == 0
    assert pullback.equal(pullback.get_rng_state(), state)
    assert not pullback.ones(2).is_pinned()

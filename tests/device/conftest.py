"""A GPU that is not there, for the tests that ask for `gpu`; afterwards, all is as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from pullback.compile.backends.gpu import capture, cublas
from pullback.cuda import graphs, pool
from pullback.diagnose import watch
from pullback.ops.make import generators
from pullback.tensor import gpu as words
from pullback.tensor import protocol

from . import captures, library
from .machine import MACHINE
from .samples import STANDS_FOR_CUPY


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    MACHINE.reset()
    yield
    MACHINE.reset()
    captures.POOLS.clear()
    capture.Pool.all.clear()  # functions of a test wait for the collector, with the graphs that they hold
    captures.DEFAULT.blocks.clear()
    captures.LIVE.clear()
    library.Pool.fractions.clear()
    protocol.DUE.clear()
    words.Started.found = words.Started.used = 0
    generators._OF_GPUS.clear()
    pool._HOOK.clear()
    pool._PEAKS.clear()
    graphs.graph.default_capture_stream.clear()
    graphs._ASKED.clear()
    assert capture.now() is None, "a capture was left open"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs, as CuPy shows them."""
    monkeypatch.setitem(sys.modules, "cupy", library)


@pytest.fixture
def compiling(gpu: None, monkeypatch: pytest.MonkeyPatch) -> captures.Cublas:
    """The same, for what is compiled and captured; its cuBLAS."""
    found = captures.Cublas()
    monkeypatch.setattr(cublas, "loaded", lambda: found)
    monkeypatch.setattr(watch, "COMPUTES", watch.COMPUTES | STANDS_FOR_CUPY)
    return found

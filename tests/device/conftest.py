"""A GPU that is not there, for the tests that ask for `gpu`; afterwards, all is as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from pullback.cuda import pool
from pullback.ops.make import generators
from pullback.tensor import gpu as words
from pullback.tensor import protocol

from . import library
from .machine import MACHINE


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    MACHINE.reset()
    yield
    MACHINE.reset()
    protocol._DUE.clear()
    words.Started.found = words.Started.used = 0
    generators._OF_GPUS.clear()
    pool._HOOK.clear()
    pool._PEAKS.clear()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs, as CuPy shows them."""
    monkeypatch.setitem(sys.modules, "cupy", library)

"""The line that says that compiling takes long: on a terminal, after a while, and gone at the end."""

from __future__ import annotations

import importlib
import io
import sys
import threading

import pytest

import pullback
from pullback.compile.backends import waiting


class Terminal(io.StringIO):
    """A stream that calls itself a terminal, and knows when it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


def test_long_work_is_announced_and_the_line_is_taken_away() -> None:
    terminal = Terminal()
    with waiting.announced("step", terminal, patience=0.0):
        assert terminal.written.wait(60)
    shown = terminal.getvalue().split("\r")
    assert shown[1] == "compile: step: 0 s so far "
    assert shown[-1] == ""
    assert set(shown[-2]) == {" "}
    assert len(shown[-2]) == len(shown[1])


@pytest.mark.parametrize(
    ("total", "said"),
    [(0, "3 operations traced, 0 s"), (12, "[#####---------------] 3 of 12 operations traced, 0 s")],
)
def test_it_says_how_much_is_done(total: int, said: str) -> None:
    terminal = Terminal()

    def fail() -> None:
        with waiting.announced("step", terminal, patience=0.01):
            waiting.progress(lambda: 3, "operations traced", total)
            assert terminal.written.wait(60)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    shown = terminal.getvalue().split("\r")
    assert shown[1] == f"compile: step: {said} so far "
    assert (set(shown[-2]), len(shown[-2]), shown[-1]) == ({" "}, len(shown[1]), "")
    waiting.progress(lambda: 1 // 0, "of nobody")  # no line is left that would ask for it


def test_work_within_work_has_a_line_of_its_own() -> None:
    outer, inner = Terminal(), Terminal()
    with waiting.announced("outer", outer, patience=3600.0):
        with waiting.announced("inner", inner, patience=0.01):
            waiting.progress(lambda: 7, "parts")
            assert inner.written.wait(60)
        waiting.progress(lambda: 8, "parts")
    assert "7 parts" in inner.getvalue()
    assert "7 parts" not in outer.getvalue()


def test_short_work_is_not_announced() -> None:
    terminal = Terminal()
    with waiting.announced("step", terminal, patience=3600.0):
        pass
    assert terminal.getvalue() == ""


def test_what_is_no_terminal_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (io.StringIO(), None):  # a program without a console has no error stream
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(threading, "Thread", None)
        with waiting.announced("step", patience=0.0):
            pass


def test_the_first_call_and_the_first_backward_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, names = Terminal(), []

    def noted(what: str) -> object:
        names.append(what)
        return announced(what, terminal, 3600.0)

    announced = waiting.announced
    for module in ("compiled", "signature"):
        monkeypatch.setattr(importlib.import_module(f"pullback.compile.{module}"), "announced", noted)

    @pullback.compile(backend="numpy")
    def double(x: pullback.Tensor) -> pullback.Tensor:
        return x * 2

    x = pullback.ones(2, requires_grad=True)
    double(x).sum().backward()
    double(x).sum().backward()
    assert names == ["double", "a backward pass"]
    assert terminal.getvalue() == ""

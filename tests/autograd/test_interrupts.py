"""After an exception at any line of the engine the modes are as before, and the next program is right.

`tests/interrupts.py` injects the exceptions; with its options it is longer and finer than what is run here.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest

import pullback
from pullback.autograd import node
from pullback.tensor.modes import Count, Setting, restoring, thread, within
from tests import interrupts
from tests.interrupts import KINDS, PROGRAMS, Injector, plain, same, state, wrong

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


KNOWN: set[interrupts.Place] = set()
"""The lines at which a program has raised already; the command raises at all lines of all programs."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_exception_at_any_line_is_felt_later(name: str) -> None:
    found = list(wrong(name, known=KNOWN))
    assert len(found) > 20
    assert [problem for problem in found if problem] == []


@pytest.mark.parametrize("name", ["functions_of_the_users_own", "dual_numbers"])
def test_nor_at_any_instruction(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "chosen", lambda places, every, known: range(0, len(places), 31))
    found = list(wrong(name, opcodes=True))
    assert len(found) > 100
    assert [problem for problem in found if problem] == []


def test_nor_while_origins_are_noted() -> None:
    with pullback.autograd.record_origins():
        found = list(wrong("modes_of_recording"))
    assert len(found) > 20
    assert [problem for problem in found if problem] == []


# The injector, against planted faults ---------------------------------------------------------------------------------


def planted_before(work: Any) -> Any:
    """A mode that is set before the `try` that puts it back."""
    modes = thread.modes
    before = modes.grad_enabled
    modes.grad_enabled = False
    x = 1
    try:
        return work(x)
    finally:
        modes.grad_enabled = before


def planted_by_step(work: Any) -> Any:
    """A mode that is put back by a step, which is taken though the first one was not."""
    modes = thread.modes
    try:
        modes.recording += 1
        return work(1)
    finally:
        modes.recording -= 1


def planted_lock(work: Any) -> Any:
    """A lock that is taken, and let go without a `finally`."""
    lock = node._LOCK
    lock.acquire()
    result = work(1)
    lock.release()
    return result


def right_lock(work: Any) -> Any:
    with node._LOCK:
        try:
            return work(1)
        finally:
            work(2)


def right(work: Any) -> Any:
    return within(thread.modes, {"grad_enabled": False}, work, 1)


@pytest.mark.parametrize(
    ("fn", "told"),
    [
        (planted_before, "left changed: {'grad_enabled': (False, True)}"),
        (planted_by_step, "left changed: {'recording': (-1, 0)}"),
        (planted_lock, "left changed: {'locks held': (['pullback.autograd.node._LOCK'], [])}"),
        (right_lock, None),
        (right, None),
    ],
)
def test_a_mode_that_is_set_in_another_way_is_found(fn: Any, told: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROGRAMS, "planted", lambda: [fn(lambda x: x), pullback.is_grad_enabled()])
    monkeypatch.setattr(interrupts, "ROOMS", (*interrupts.ROOMS, __file__))
    found = [problem for problem in wrong("planted") if problem]
    if told is None:
        assert found == []
    else:
        assert any(told in problem for problem in found)


# What the modes are set with ------------------------------------------------------------------------------------------


class Level(Setting):
    _mode = "recording"

    def _value(self, before: int) -> int:
        if before == 2:
            raise ValueError("no")
        return before + 1


def test_settings_nest_also_of_one_object() -> None:
    setting = Level()
    with setting:
        with setting:
            assert thread.modes.recording == 2
            with pytest.raises(ValueError, match="no"), setting:
                pass
            assert thread.modes.recording == 2
        assert thread.modes.recording == 1
    assert thread.modes.recording == 0


def test_a_count_holds_each_once() -> None:
    count = Count()
    count.add("a")
    count.add("a")
    count.add("b")
    assert count.n == 2
    count.discard("a")
    count.discard("a")
    assert count.n == 1


def test_restoring_closes_levels_and_puts_modes_back() -> None:
    initial = state()

    @restoring()
    def leaves_all() -> None:
        thread.modes.grad_enabled, thread.modes.inference = False, True
        pullback.autograd.forward_ad.enter_dual_level()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leaves_all()
    assert state() == initial


# Real interrupts ------------------------------------------------------------------------------------------------------


@pytest.fixture
def _alarms() -> Iterator[None]:
    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_alarms")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals")
@pytest.mark.parametrize("name", ["backward_with_hooks", "functions_of_the_users_own", "gradients_of_gradients"])
def test_real_interrupts_leave_the_modes(name: str, untraced: None) -> None:
    """100 signals: each comes somewhere in the program, or after it."""
    work = PROGRAMS[name]
    expected, initial = plain(work()), state()
    for n in range(100):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + 15 * n))
                copy_context().run(work)  # NumPy's `errstate` stays set if a signal comes as it begins or ends
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            pass
        assert state() == initial
        assert same(plain(work()), expected)


def test_an_injector_raises_once_and_says_where() -> None:
    injector = Injector(3, KINDS[0])
    assert injector.run(PROGRAMS["backward_with_hooks"]) is KeyboardInterrupt
    assert injector.seen == 4
    assert ".py:" in injector.where
    assert Injector(10**9).run(lambda: 5) == 5

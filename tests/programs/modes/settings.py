"""Switches of how exactly PyTorch computes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pullback
from tests.side_by_side import programs

PROGRAMS, program = programs()


def _reset(lib: Any) -> None:
    lib.use_deterministic_algorithms(False)
    lib.set_float32_matmul_precision("highest")


@contextlib.contextmanager
def around() -> Iterator[None]:
    """The library's switches are as before afterwards."""
    yield
    _reset(pullback)


def state(lib: Any) -> Any:
    return (
        lib.are_deterministic_algorithms_enabled(),
        lib.is_deterministic_algorithms_warn_only_enabled(),
        lib.get_deterministic_debug_mode(),
        lib.get_float32_matmul_precision(),
    )


@program
def what_was_told(lib: Any) -> Any:
    found = [state(lib)]
    try:
        for mode, warn_only in ((True, False), (True, True), (False, True), (True, False), (False, False)):
            lib.use_deterministic_algorithms(mode, warn_only=warn_only)
            found.append(state(lib))
        for word in (0, 1, 2, "error", "warn", "default"):
            lib.set_deterministic_debug_mode(word)
            found.append(state(lib))
        for precision in ("high", "medium", "highest"):
            lib.set_float32_matmul_precision(precision)
            found.append(state(lib))
    finally:
        _reset(lib)
    return found


@program
def no_bool(lib: Any) -> Any:
    return lib.use_deterministic_algorithms(1)


@program
def another_number(lib: Any) -> Any:
    return lib.set_deterministic_debug_mode(3)


@program
def another_word(lib: Any) -> Any:
    return lib.set_deterministic_debug_mode("perhaps")


@program
def neither(lib: Any) -> Any:
    return lib.set_deterministic_debug_mode(None)


@program
def a_new_axis(lib: Any) -> Any:
    return lib.ones(2)[:, lib.newaxis]

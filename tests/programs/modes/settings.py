"""Switches of how exactly PyTorch computes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import pullback
from tests.side_by_side import programs

PROGRAMS, program = programs()


def _reset(lib: Any) -> None:
    lib.use_deterministic_algorithms(False)
    lib.set_float32_matmul_precision("highest")
    lib.set_warn_always(False)


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
def warnings_that_are_given_once_are_given_always(lib: Any) -> Any:
    x = lib.tensor([2.0], requires_grad=True)
    found = []
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            lib.set_warn_always(True)
            found.append(lib.is_warn_always_enabled())
            for convert in (float, float):
                convert(x)
        found += [(str(w.message).partition("\n")[0], w.category.__name__) for w in said]
    finally:
        _reset(lib)
    return found, lib.is_warn_always_enabled()


@program
def warnings_given_always_by_a_number(lib: Any) -> Any:
    return lib.set_warn_always(1)


@program
def warnings_given_always_by_name(lib: Any) -> Any:
    return lib.set_warn_always(b=True)


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

"""Tensor types by name, and switches whose state can be asked for."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import programs, refused

PROGRAMS, program = programs()


@program
def tensor_types_are_those_of_one_dtype(lib: Any) -> Any:
    names = "Float Double Half BFloat16 Int Long Short Char Byte Bool".split()
    types = [getattr(lib, f"{name}Tensor") for name in names]
    made = [lib.ones(2), lib.ones(2, dtype=lib.float64), lib.tensor([1, 2]), lib.tensor([True]), lib.ones(1).half()]
    made += [lib.ones(1, dtype=lib.int32), lib.ones(1, dtype=lib.int16), lib.ones(1).to(lib.bfloat16)]
    return [[isinstance(t, kind) for kind in types] for t in made], [t.type() == made[0].type() for t in made]


@program
def deterministic_modes(lib: Any) -> Any:
    found = []
    try:
        for mode in (0, 1, 2, "default", "warn", "error"):
            lib.set_deterministic_debug_mode(mode)
            found.append(
                (
                    lib.get_deterministic_debug_mode(),
                    lib.are_deterministic_algorithms_enabled(),
                    lib.is_deterministic_algorithms_warn_only_enabled(),
                )
            )
        found.append(refused(lambda: lib.set_deterministic_debug_mode(3)))
        lib.use_deterministic_algorithms(True, warn_only=True)
        found.append(lib.get_deterministic_debug_mode())
    finally:
        lib.use_deterministic_algorithms(False)
    return found

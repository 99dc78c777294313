"""What the programs of this clause share."""

from __future__ import annotations

import functools
from typing import Any

from tests.side_by_side import Program, constant


def fw(lib: Any) -> Any:
    return lib.autograd.forward_ad


def dual_of(lib: Any, values: Any = (1.0, 2.0), tangent: Any = (3.0, 4.0)) -> Any:
    return fw(lib).make_dual(constant(lib, values), constant(lib, tangent))


def tangent_of(lib: Any, x: Any) -> Any:
    return fw(lib).unpack_dual(x).tangent


def within_a_level(case: Program) -> Program:
    """A program that runs in a dual level."""

    @functools.wraps(case)
    def run(lib: Any) -> Any:
        with fw(lib).dual_level():
            return case(lib)

    return run

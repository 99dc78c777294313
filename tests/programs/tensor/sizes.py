"""Sizes beyond memory, beyond 64 bits, and below 0: the type of the error, and its key phrase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.side_by_side import programs

PROGRAMS, program = programs()

PHRASES = ("can't allocate memory", "overflow", "negative")


def said(action: Callable[[], Any]) -> Any:
    """The type of an action's error, and the phrases in its message."""
    try:
        return action().shape
    except (RuntimeError, TypeError, ValueError) as error:
        kind = RuntimeError if isinstance(error, RuntimeError) else type(error)
        return kind.__name__, [words for words in PHRASES if words in str(error).lower()]


@program
def more_than_the_memory(lib: Any) -> Any:
    many = 2**60
    return [
        said(action)
        for action in (
            lambda: lib.zeros(many),
            lambda: lib.ones(many),
            lambda: lib.empty(many),
            lambda: lib.full((many,), 1.0),
            lambda: lib.rand(many),
            lambda: lib.randn(many),
            lambda: lib.linspace(0, 1, many),
            lambda: lib.ones(3).new_zeros(many),
            lambda: lib.ones(3).resize_(many),
            lambda: lib.nn.functional.pad(lib.ones(3), (many, 0)),
        )
    ]


@program
def more_than_the_bytes_that_can_be_counted(lib: Any) -> Any:
    return [
        said(action)
        for action in (
            lambda: lib.zeros(2**62, 4),
            lambda: lib.zeros(2**31, 2**31, 2**31),
            lambda: lib.eye(2**40),
            lambda: lib.arange(2**60),
            lambda: lib.arange(0, 1e300),
            lambda: lib.randperm(2**60),
            lambda: lib.randint(0, 3, (2**60,)),
            lambda: lib.full((2**40, 2**40), 1.0),
        )
    ]


@program
def lengths_of_more_than_64_bits(lib: Any) -> Any:
    return [
        said(action)
        for action in (
            lambda: lib.zeros(2**63),
            lambda: lib.empty(2**63),
            lambda: lib.arange(2**63),
            lambda: lib.linspace(0, 1, 2**63),
            lambda: lib.logspace(0, 1, 2**63),
        )
    ]


@program
def totals_into_a_tensor_of_another_dtype(lib: Any) -> Any:
    x, whole = lib.tensor([1.5, 2.5]), lib.tensor([1, 2], dtype=lib.int32)
    return (
        lib.cumsum(x, 0, out=lib.zeros(2, dtype=lib.int64)),
        lib.cumprod(x, 0, out=lib.zeros(2, dtype=lib.int64)),
        lib.cumsum(whole, 0, out=lib.zeros(2, dtype=lib.int32)),
        lib.cumsum(whole, 0, out=lib.zeros(2)),
        lib.sum(x, 0, out=lib.zeros((), dtype=lib.float64)),
        lib.prod(x, 0, out=lib.zeros((), dtype=lib.int64)),
    )


@program
def a_running_sum_of_another_dtype_than_its_out(lib: Any) -> Any:
    return lib.cumsum(lib.ones(2), 0, dtype=lib.int64, out=lib.zeros(2))


@program
def an_empty_part_of_a_memory(lib: Any) -> Any:
    x = lib.arange(6.0)
    return x[6:].as_strided((2,), (1,), 0), x[3:3].as_strided((2,), (1,), 4), x[3:3].as_strided((0,), (1,))


@program
def a_mask_of_another_shape(lib: Any) -> Any:
    x, found = lib.zeros(3, 4), []
    masks = [lib.ones(2, 3).bool(), lib.ones(2).bool(), lib.ones(3, 3).bool()]
    for mask in masks:
        for action in (lambda m: x.index_put((m,), lib.tensor(1.0)), lambda m: x[m]):
            try:
                found.append(action(mask).shape)
            except IndexError as error:
                found.append(str(error).partition("The shape")[2].partition(";")[0])
    return found

"""Axes by number: which a tensor has, and what is said of those that it has not."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import programs

PROGRAMS, program = programs()


def said(action: Any) -> Any:
    """What an action gives, or the type of its error and whether that says that there are no dimensions."""
    try:
        return action()
    except (IndexError, RuntimeError) as error:
        return type(error).__name__, "tensor has no dimensions" in str(error)


@program
def lengths_and_strides_of_a_number(lib: Any) -> Any:
    x = lib.tensor(1.0)
    return [said(lambda a=axis: x.size(a)) for axis in (0, -1)], [said(lambda a=axis: x.stride(a)) for axis in (0, -1)]


@program
def lengths_and_strides_of_a_matrix(lib: Any) -> Any:
    x = lib.ones(2, 3)
    return x.size(0), x.size(-1), x.stride(0), x.stride(-1), said(lambda: x.size(2)), said(lambda: x.stride(-3))


@program
def axes_of_a_number_that_must_be_there(lib: Any) -> Any:
    x = lib.tensor(1.0)
    return [
        said(action)
        for action in (
            lambda: lib.fft.fftshift(x, dim=0),
            lambda: lib.fft.ifftshift(x, dim=-1),
            lambda: lib.fft.fft(x, dim=0),
            lambda: lib.gradient(x, dim=0),
            lambda: lib.roll(x, 1, 0),
            lambda: lib.unbind(x),
        )
    ]


@program
def axes_of_a_number_that_may_be_named(lib: Any) -> Any:
    x = lib.tensor(2.0)
    return x.sum(0), x.softmax(-1), x.flip(0), x.movedim(0, 0), x.squeeze(0), x.cumsum(0)

"""`testing.make_tensor`, side by side with PyTorch's: dtypes, ranges, memory and errors."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

import pullback
from tests.oracle import call, cases, difference

CASES = cases("""
t.float32 | t.float16 | t.bfloat16 | t.float64 | t.complex64 | t.int64 | t.int8 | t.uint8 | t.bool | t.float32, low=2
t.float32, low=-1, high=1 | t.uint8, low=-5, high=3 | t.uint8, low=250, high=1000 | t.int8, low=-1000, high=1000
t.bool, low=1 | t.bool, low=0, high=1 | t.int64, low=0.5, high=3.5 | t.float16, low=0, high=1e9 | t.int64, low=0, high=2
t.float32, low=float("-inf"), high=float("inf") | t.int64, low=-2**63, high=2**63 | t.complex128, low=3, high=4
t.int64, low=0, high=2, exclude_zero=True | t.bool, exclude_zero=True | t.float32, noncontiguous=True
t.int8, noncontiguous=True | t.float64, requires_grad=True, noncontiguous=True
""")
REFUSED = cases("""
t.float32, low=2, high=1 | t.float32, low=float("nan") | t.uint8, low=300, high=400 | t.bool, low=2, high=3
t.int64, requires_grad=True | t.float32, low=20 | t.float32, high=-20
t.float32, noncontiguous=True, memory_format=t.contiguous_format | str
""")


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def made(lib: ModuleType, arguments: str) -> Any:
    """A tensor of 40 rows of 50 numbers."""
    return eval(
        f"make((40, 50), device='cpu', dtype={arguments})", {"t": lib, "make": lib.testing.make_tensor, "str": str}
    )


def ends(lib: ModuleType, x: Any) -> list[float]:
    """The least and the largest of the numbers, and of their imaginary parts."""
    parts = [x.detach().real, x.detach().imag] if x.is_complex() else [x.detach()]
    return [float(f(part.to(lib.float64))) for part in parts for f in (lib.min, lib.max)]


@pytest.mark.torch
@pytest.mark.parametrize("arguments", CASES)
def test_numbers_are_of_the_range_and_lie_in_memory_as_in_torch(torch: ModuleType, arguments: str) -> None:
    pullback.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = made(pullback, arguments), made(torch, arguments)
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert (tuple(ours.shape), ours.stride(), ours.requires_grad) == (
        tuple(theirs.shape),
        theirs.stride(),
        theirs.requires_grad,
    )
    for mine, other, span in zip(
        ends(pullback, ours), ends(torch, theirs), [ends(torch, theirs)[:2]] * 4, strict=False
    ):
        assert abs(mine - other) <= 0.02 * (span[1] - span[0])
    if not (ours.is_floating_point() or ours.is_complex()) and "2**63" not in arguments:
        assert ends(pullback, ours) == ends(torch, theirs)


@pytest.mark.torch
@pytest.mark.parametrize("arguments", REFUSED)
def test_what_is_refused_is_refused_in_torch(torch: ModuleType, arguments: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours, theirs = (call(lib, made, lib, arguments) for lib in (pullback, torch))
    assert isinstance(theirs, Exception)
    assert not difference(ours, theirs)


def test_shapes_seeds_and_zeros() -> None:
    make = pullback.testing.make_tensor
    assert [tuple(make(*shape, dtype=pullback.float32).shape) for shape in ((), (2, 3), ([4],), ((2, 0),))] == [
        (),
        (2, 3),
        (4,),
        (2, 0),
    ]
    pullback.manual_seed(3)
    first = make(5, dtype=pullback.complex64)
    pullback.manual_seed(3)
    assert pullback.equal(first, make(5, dtype=pullback.complex64))
    assert not pullback.equal(first, make(5, dtype=pullback.complex64))
    smallest = make(9, dtype=pullback.float32, low=0, high=1e-50, exclude_zero=True)
    assert smallest.tolist() == [pullback.finfo(pullback.float32).smallest_normal] * 9
    assert make(1, 2, 3, 4, dtype=pullback.float32, memory_format=pullback.channels_last).stride() == (24, 1, 8, 2)

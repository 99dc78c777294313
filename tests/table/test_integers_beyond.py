"""Integers that 64 bits cannot hold, as numbers beside tensors: the type of the error is torch's."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.oracle import cases

LARGE = [2**64, -(2**63) - 1, 10**39, 10**400]
CASES = cases("""
n + v | v - n | n * v | n == v | n < v | n.clamp(max=v) | L.add(n, n, alpha=v) | L.where(n > 1, n, v) | n.fill_(v)
n.masked_fill(n > 1, v) | x.masked_fill(n > 1, v) | x.fill_(v) | n.scatter(0, L.tensor([0]), v) | n.new_full((1,), v)
x.new_full((1,), v) | L.full((2,), v) | L.tensor([v]) | L.tensor(v, dtype=L.int32) | n.__setitem__(0, v)
x.__setitem__(slice(1), v)
""")
FLOATS = cases("x + v | v - x | x * v | x / v | x == v | x // v | x % v | L.add(x, x, alpha=v) | x.clamp(max=v)")


def raised(lib: Any, code: str, value: int) -> type[BaseException]:
    """The type of the error of a call, which leaves its tensors as they were."""
    n, x = lib.tensor([1, 2, 3]), lib.tensor([1.0, 2.0, 3.0])
    with pytest.raises(Exception, match=r"int too|[Oo]verflow") as caught:
        eval(code, {"L": lib, "n": n, "x": x, "v": value})
    assert n.tolist() == x.tolist() == [1, 2, 3]
    return caught.type


@pytest.mark.parametrize("value", LARGE)
@pytest.mark.parametrize("code", CASES)
def test_an_integer_beyond_64_bits_is_an_overflow(code: str, value: int) -> None:
    read = "tensor(" in code.replace("L.tensor([0])", "") or "setitem" in code  # as torch's own reading of integers
    assert raised(pullback, code, value) is (ValueError if read else OverflowError)


@pytest.mark.parametrize("code", FLOATS)
def test_beside_floats_one_that_no_float_holds_is_an_overflow(code: str) -> None:
    assert raised(pullback, code, 10**400) is OverflowError


@pytest.mark.torch
@pytest.mark.parametrize("code", [*CASES, *FLOATS])
def test_so_it_is_in_torch(code: str) -> None:
    torch = pytest.importorskip("torch")
    assert raised(torch, code, 10**400) is raised(pullback, code, 10**400)

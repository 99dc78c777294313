"""Hostile calls: whatever is passed to a public operation, it is right or refused with a documented error that names
the function. `tests/hostile.py` makes the calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.nn.functional
from pullback import errors
from pullback.ops import TABLE
from tests.hostile import VALUES, Case, cases, complaint, limited, outcome, parameters
from tests.oracle import cases as lines
from tests.oracle import converted

PUBLIC = sorted(n for n, op in TABLE.items() if not n.rpartition(".")[2].startswith("_") and op.domain("samples"))


def function(name: str) -> Callable[..., Any]:
    """The function of that name, or the method of Tensor."""
    home: Any = pullback
    *path, last = name.split(".")
    for part in path:
        home = getattr(home, part)
    found: Callable[..., Any] = getattr(home, last, None) or getattr(pullback.Tensor, last)
    return found


def of(name: str) -> list[Case]:
    """The hostile calls of an operation: each argument of a sample call is replaced in turn."""
    best = max(TABLE[name].domain("samples")[:12], key=lambda s: len(s.args) + len(s.kwargs))

    def base(lib: Any) -> Any:
        made = converted(lib, best.arrays("float32"))[0]
        return made.args, made.kwargs

    names = parameters(function(name))
    return list(cases(name, len(best.args), names if "out" in names else (*names, "out"), base))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_hostile_call_is_right_or_refused_by_name(name: str) -> None:
    with limited():
        found = [(case.change, complaint(case, outcome(pullback, function(name), case))) for case in of(name)]
    assert len(found) > len(VALUES)
    assert not [each for each in found if each[1]]


def test_a_complaint_is_made_of_an_error_that_is_not_documented() -> None:
    case = Case("linalg.inv", "", lambda lib: ((), {}))
    assert complaint(case, KeyError("inv()"))
    assert complaint(case, RuntimeError("no matrix"))
    assert complaint(case, AssertionError())
    assert not complaint(case, RuntimeError("linalg.inv(): no matrix"))
    assert not complaint(case, pullback.ones(2))


# The door -------------------------------------------------------------------------------------------------------------


def test_an_error_of_the_users_own_code_stays_as_it_is() -> None:
    class Mine(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return {}["mine"]

    with pytest.raises(KeyError, match=r"^'mine'$"):
        pullback.ones(2).as_subclass(Mine).sum()


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (lambda: {}["U"], TypeError, r"fun\(\): an argument is not of a type that it takes\.\n.*: str 'a'\."),
        (lambda: len.__shape__, TypeError, r"fun\(\): an argument is not"),  # type: ignore[attr-defined]
        (AssertionError(), TypeError, r"fun\(\): an argument"),
        (OverflowError("too large"), RuntimeError, r"fun\(\): Overflow when unpacking .*: too large"),
        (MemoryError(), RuntimeError, r"fun\(\): can't allocate memory"),
        (MemoryError(), MemoryError, r"fun\(\): can't allocate memory"),
        (ZeroDivisionError("by 0"), ZeroDivisionError, r"^fun\(\): by 0"),
        (UnicodeError("a"), ValueError, r"fun\(\): a"),
        (RuntimeError("g(): a and b differ"), RuntimeError, r"^fun\(\): a and b differ$"),
        (TypeError("g.<locals>.h() takes 1 argument"), TypeError, r"^fun\(\) takes 1 argument$"),
        (IndexError("fun: out of range"), IndexError, r"^fun: out of range$"),
    ],
)
def test_the_door_names_the_function(
    raised: Any, kind: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "_PLACES", (os.path.dirname(__file__) + os.sep,))

    def fun() -> None:
        try:
            raise raised if isinstance(raised, Exception) else raised()
        except Exception as error:
            errors.rename("fun", error, ("a",))
            raise

    with pytest.raises(kind, match=text):
        fun()


def test_a_size_that_no_memory_holds_is_refused() -> None:
    for call in (
        lambda: pullback.ones(2).repeat(2**62),
        lambda: pullback.tensor_split(pullback.ones(3), 2**40),
        lambda: pullback.special.hermite_polynomial_h(pullback.ones(3), 2**40),
        lambda: pullback.mvlgamma(pullback.ones(3), 2**40),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert pullback.ones(3).diff(2**40).shape == (0,)
    assert pullback.nn.functional.local_response_norm(pullback.ones(1, 2, 3), 2**40).shape == (1, 2, 3)


# Calls that torch refuses and we do not, by cause: docs/differences.md states each.
TAKEN = """
    lib.atan2(2.5, lib.ones(3)) | lib.logical_or(1, lib.ones(3)) | lib.le(1.0, lib.ones(3))
    lib.add(np.ones(3), lib.ones(3))
    lib.aminmax(lib.ones(3), keepdim="yes") | lib.argmax(lib.ones(3), 0, 3) | lib.argmax(lib.ones(3), 0, None)
    lib.logdet(lib.eye(2), out=lib.ones(()))
"""


@pytest.mark.torch
@pytest.mark.parametrize("call", lines(TAKEN))
def test_what_torch_refuses_and_we_take(call: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError):
        eval(call, {"lib": torch, "np": np})
    assert eval(call, {"lib": pullback, "np": np}) is not None

"""Hostile calls: whatever is passed to a public operation, it is right or refused with a documented error that names
the function. `tests/hostile.py` makes the calls."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.nn.functional
from pullback import errors
from pullback.ops import TABLE
from tests.hostile import VALUES, Case, cases, complaint, limited, outcome, parameters
from tests.oracle import cases as lines
from tests.oracle import converted, resolve
from tests.table.taken import lowered, recorded, taken

F = pullback.nn.functional
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
    monkeypatch.setattr(errors.translation, "_OURS", os.path.dirname(__file__) + os.sep)

    def fun() -> None:
        try:
            raise raised if isinstance(raised, Exception) else raised()
        except Exception as error:
            errors.rename("fun", error, ("a",))
            raise

    with pytest.raises(kind, match=text):
        fun()


def _in_itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: pullback.div(x, x, rounding_mode="floor", out=pullback.ones(1).expand(3)), RuntimeError, "divide"),
        (lambda x: pullback.special.zeta(2.5, x, out=pullback.ones(1).expand(3)), RuntimeError, "zeta"),
        (lambda x: pullback.mul(x, 2, out=pullback.eye(3).to_sparse()), NotImplementedError, r"mul\(out="),
        (lambda x: pullback.mul(x, x, out=pullback.eye(3).to_sparse_csr()), NotImplementedError, r"mul\(out="),
        (lambda x: pullback.where(x > 0, x, 0, out=pullback.eye(3).to_sparse()), NotImplementedError, r"where\(out="),
        (lambda x: pullback.abs(_in_itself()), (TypeError, RuntimeError), "abs"),
        (lambda x: pullback.atan2(_in_itself(), x), (TypeError, RuntimeError), "atan2"),
        (lambda x: pullback.atan2(np, x), TypeError, r"atan2\(\)(?s:.*)module"),
        (lambda x: pullback.abs(np), TypeError, r"abs\(\).*module"),
        (lambda x: F.interpolate(x.view(1, 1, 3), scale_factor="1"), TypeError, "interpolate.*scale_factor.*str"),
    ],
)
def test_errors_of_containers_modules_and_places_to_write_to(call: Any, kind: Any, words: str) -> None:
    x = pullback.ones(3)
    with pytest.raises(kind, match=words):
        call(x)
    assert x.tolist() == [1.0] * 3


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
    lib.ones(3).sin(out=lib.ones(3))
    lib.argsort(lib.ones(3), 0, stable=True)
"""


@pytest.mark.torch
@pytest.mark.parametrize("call", lines(TAKEN))
def test_what_torch_refuses_and_we_take(call: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError):
        eval(call, {"lib": torch, "np": np})
    assert eval(call, {"lib": pullback, "np": np}) is not None


def of_both(torch: Any, name: str) -> tuple[Any, Any, list[Case]]:
    """The function in both libraries, and its hostile calls; none if torch has no such function."""
    try:
        theirs = resolve(torch, name)
    except AttributeError:
        return None, None, []
    return function(name), theirs, of(name)


@pytest.mark.torch
@pytest.mark.parametrize("name", PUBLIC)
def test_no_more_is_taken_than_was_recorded(name: str) -> None:
    torch = pytest.importorskip("torch")
    limits = recorded().get(name)
    assert limits is not None, f"{name} is new: python -m tests.table.taken --record"
    found = taken(torch, *of_both(torch, name))
    assert {why: n for why, n in found.items() if n > limits.get(why, 0)} == {}


def test_what_is_taken_is_counted_by_cause() -> None:
    class Torch(ModuleType):
        def refuse(self, *args: Any, **kwargs: Any) -> Any:
            raise OverflowError("too big") if 7 in args else TypeError("no")

    torch: Any = Torch("torch")
    changes = {"argument 0 is 2.5": (), "out= is None": (), "one more is array of f4": (), "argument 0 is 2**62": (7,)}
    made = [Case("f", change, lambda lib, args=args: (args, {})) for change, args in changes.items()]
    found = taken(torch, lambda *args: None, torch.refuse, made)
    assert found == {"numbers": 1, "out=": 1, "arrays": 1, "large numbers": 1}
    assert taken(torch, torch.refuse, torch.refuse, made) == {}
    assert lowered(None, found) == found
    assert lowered({"numbers": 3}, found) == {"numbers": 1}
    assert lowered({"numbers": 0}, found) == {"numbers": 0}


# The door of an operation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.sum(0, 1), r"^sum\(\): argument 'keepdim' \(position 3\) must be bool, not int"),
        (lambda x: x.sum(0, keepdim="yes"), r"^sum\(\): argument 'keepdim' must be bool, not str"),
        (lambda x: x.amax(0, keepdims=None), r"^amax\(\): argument 'keepdims' must be bool, not NoneType"),
        (lambda x: x.argmax(0, x), r"^argmax\(\): argument 'keepdim' \(position 3\) must be bool, not Tensor"),
        (lambda x: x.max(0, keepdim=1), r"^max\(\): argument 'keepdim' must be bool, not int"),
        (lambda x: x.max(0, dim=0), r"^max\(\) got multiple values for argument 'dim'"),
        (lambda x: x.all(0, np.True_), r"^all\(\): argument 'keepdim' \(position 3\) must be bool, not numpy.bool"),
        (lambda x: x.tril(True), r"^tril\(\): argument 'diagonal' \(position 2\) must be int, not bool"),
        (lambda x: F.dropout(x, 0.5, 1), r"dropout\(\): argument 'training' \(position 3\) must be bool, not int"),
        (lambda x: F.layer_norm(x, (3,), None, None, "x"), r"argument 'eps' \(position 5\) must be float, not str"),
        (lambda x: F.linear(x, weight=[1.0]), r"expected argument 'weight' to be a Tensor, found list"),
        (lambda x: F.linear(x, x, 2.0), r"expected argument 'bias' to be a Tensor, found float 2.0"),
        (lambda x: x.adjoint(out=x), r"^adjoint\(\) got an unexpected keyword argument 'out'"),
        (lambda x: F.relu(x, out=None), r"relu\(\) got an unexpected keyword argument 'out'"),
        (lambda x: pullback.relu(x, out=x), r"^relu\(\) got an unexpected keyword argument 'out'"),
    ],
)
def test_an_argument_is_of_the_type_that_its_annotation_declares(call: Callable[[Any], Any], words: str) -> None:
    for x in (pullback.ones(2, 3), pullback.ones(2, 3, requires_grad=True)):
        for _ in range(2):
            with pytest.raises(TypeError, match=words):
                call(x)
            assert x.tolist() == [[1.0] * 3] * 2
    with pytest.raises(TypeError, match=words):
        pullback.vmap(call)(pullback.ones(2, 2, 3))


def test_what_the_door_admits() -> None:
    x = pullback.ones(2, 3)
    for k in (1, np.int64(1), np.array(1), pullback.tensor(1)):
        assert x.tril(k).tolist() == [[1.0, 1.0, 0.0], [1.0] * 3]
    for slope in (0.5, 1, True, np.float32(0.5), pullback.tensor(0.5)):
        assert F.instance_norm(pullback.ones(1, 2, 3), momentum=slope, eps=slope).shape == (1, 2, 3)
    assert F.linear(x, np.ones((4, 3), np.float32), bias=np.zeros(4, np.float32)).shape == (2, 4)
    assert F.relu(x, inplace=np.True_) is x
    for stable in (None, True):
        assert x.argsort(1, stable=stable).tolist() == [[0, 1, 2]] * 2


def test_types_that_were_admitted_are_noted_and_those_of_users_are_not() -> None:
    class Mine:
        def __index__(self) -> int:
            return 1

    x, noted = pullback.ones(2, 3), TABLE["rot90"].admitted
    for k in (1, True, np.int64(1), Mine(), "x"):
        with contextlib.suppress(TypeError):
            x.rot90(k, (0, 1))
    places = {types[1] for types in noted if len(types) > 1}
    assert int in places
    assert not places & {bool, np.int64, Mine, str}

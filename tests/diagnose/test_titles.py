"""What messages call the functions of the library: by the operation's name, whatever their own variables are called."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import Tensor, errors, nn
from pullback.diagnose import places
from pullback.table.entry import NAMES

DIAGNOSE = Path(places.__file__).parent


def title(call: Callable[[], Any]) -> str:
    """What messages call the first function of the library that a call comes to."""
    found: list[str] = []

    def note(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and not found and places.is_ours(frame):
            found.append(places.title_of(frame))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    except (TypeError, RuntimeError, ValueError, AttributeError):  # refused, for arguments that are none of its own
        pass
    finally:
        sys.setprofile(before)
    return found[0] if found else ""


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "a unary operation": (lambda: pullback.sin(_x), "sin"),
    "a binary operation": (lambda: pullback.mul(_x, _x), "mul"),
    "an operator": (lambda: _x * _x, "mul"),
    "a reflected operator": (lambda: 2 - _x, "sub"),
    "an operation with alpha": (lambda: pullback.add(_x, _x, alpha=2), "add"),
    "an operation of a module": (lambda: pullback.linalg.det(_square), "linalg.det"),
    "a composite": (lambda: pullback.var(_x), "var"),
    "joining": (lambda: pullback.cat([_x, _x]), "cat"),
    "a pointwise operation": (lambda: pullback.lerp(_x, _x, _x), "lerp"),
    "a factory": (lambda: pullback.zeros(2), "zeros"),
    "a factory like a tensor": (lambda: _x.new_ones(2), "new_ones"),
    "from values": (lambda: pullback.tensor([1.0]), "tensor"),
    "a conversion": (lambda: _x.double(), "to(pullback.float64)"),
    "in place": (lambda: _twos.add_(1), "add_"),
    "an operator in place": (lambda: _twos.__iadd__(1), "add_"),
    "an activation in place": (lambda: nn.functional.relu_(_twos), "relu_"),
    "a decorated function": (lambda: nn.init.zeros_(_twos), "zeros_"),
    "a class": (lambda: Tensor([1.0]), "Tensor"),
    "an optimiser": (lambda: _optimizer.step(), "step"),
    "a method": (lambda: _x.backward(), "backward"),
}

_x, _twos, _square = pullback.ones(2), pullback.full((2,), 2.0), pullback.ones(2, 2)
_optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], 0.1)


@pytest.mark.parametrize("name", CALLS)
def test_a_function_is_called_by_its_operation(name: str) -> None:
    call, expected = CALLS[name]
    assert title(call) == expected


def test_no_published_function_is_called_by_the_name_of_a_wrapper() -> None:
    published = [f for found in NAMES.values() for f in found.values()] + list(vars(Tensor).values())
    named = {f.__code__.co_name for f in published if hasattr(f, "__code__")}
    assert len(named) > 700
    assert not named & {"call", "twin", "run", "convert", "method"}


def test_the_names_of_a_wrappers_variables_do_not_count() -> None:
    def make(anything: str) -> Callable[[], str]:
        def inner() -> str:
            name = op = anything  # names that once told what a wrapper stands for
            return places.title_of(sys._getframe()) + name[:0] + op[:0]

        return errors.called(inner, anything)

    first, second = make("first"), make("second")
    assert (first(), second(), first()) == ("first", "second", "first")
    assert errors.CALLED[first.__code__] == ("first", False)


def test_a_traceback_names_the_operation() -> None:
    with pytest.raises(RuntimeError) as caught:
        pullback.mul(pullback.ones(2), pullback.ones(3))
    assert "mul" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def _variables_read(source: str) -> list[str]:
    """The variables that a file takes out of the local variables of a frame by a name that is written there."""
    found = []
    for node in ast.walk(ast.parse(source)):
        of = key = None
        if isinstance(node, ast.Subscript):
            of, key = node.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            of, key = node.func.value, node.args[0]
        if of is not None and ast.unparse(of).startswith("locals_of(") and isinstance(key, ast.Constant):
            found.append(str(key.value))
    return found


def test_no_message_reads_a_variable_of_the_library_by_name() -> None:
    paths = [*DIAGNOSE.glob("*.py"), DIAGNOSE.parent / "inspect" / "timeline.py"]
    assert [name for path in paths for name in _variables_read(path.read_text("utf-8"))] == []


def test_reading_a_variable_by_name_is_noticed() -> None:
    assert _variables_read("a = locals_of(frame).get('op')\nb = locals_of(f)['cls']\nc = locals_of(f)[name]") == [
        "op",
        "cls",
    ]

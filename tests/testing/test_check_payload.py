"""`check_payload` and `check_interpreter`: that they find what a class refuses, and what it gets wrong.

The page of what each interpreter carries is compared with what is found now.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.interpreters import Payload
from pullback.testing import check_interpreter, check_payload
from pullback.testing.payloads import carried
from pullback.testing.payloads.carried import Boxed
from pullback.testing.payloads.carrying import CARRIED, FORWARD_ONLY, REFUSED, WRONG, entries
from tests.house.test_generated import check_fresh

ROOT = Path(__file__).parents[2]


def status(cls: Any, name: str, **how: Any) -> tuple[str, str]:
    """What is found of one operation."""
    (entry,) = check_payload(cls, [name], **how).entries
    return entry.status, entry.by


def test_an_array_that_refuses_conversion_is_carried_by_every_entry() -> None:
    report = check_payload(Boxed)
    assert str(report) == f"Boxed: {len(report.entries)} of {len(report.entries)} entries carried (100.0%)"
    assert len(report.entries) == len(entries()) > 500


@pytest.mark.parametrize(("name", "function"), [("sin", "numpy.sin"), ("sort", "numpy.argsort"), ("sum", "numpy.sum")])
def test_a_refusal_has_the_name_of_the_function(name: str, function: str) -> None:
    class Nothing(Boxed):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            return NotImplemented

    assert status(Nothing, name) == (REFUSED, function)


def test_a_refusal_in_the_backward_pass_is_told_apart() -> None:
    class Forward(Boxed):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            return NotImplemented if function is np.cos else each(super().carry(function, args, kwargs), Forward)

    assert status(Forward, "sin") == (FORWARD_ONLY, "numpy.cos")


def test_the_printed_report_shows_the_call_in_which_it_was_found() -> None:
    class Reals(Boxed):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            return NotImplemented if function is np.flip else each(super().carry(function, args, kwargs), Reals)

    report = check_payload(Reals, ["flip", "sin"])
    (entry, _) = report.entries
    assert entry.sample.startswith("([2, 3], ")
    assert str(report).splitlines()[1:] == [f"  flip: refused (numpy.flip) in flip{entry.sample}"]


def each(found: Any, cls: Any) -> Any:
    return cls(found.array) if isinstance(found, Boxed) else found


def faulty(change: Any, function_of: Any = np.sin) -> Any:
    """A class whose results of a function are changed."""

    class Faulty(Boxed):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            found = each(super().carry(function, args, kwargs), Faulty)
            return change(found) if function is function_of else found

    return Faulty


def lying(found: Any) -> Any:
    class Lying(type(found)):  # type: ignore[misc]
        shape = (7,)

    return Lying(found.array)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: type(found)(found.array * 2), "other values than on arrays"),
        (lambda found: found.array, "a result is a ndarray, not a Faulty"),
    ],
)
def test_a_wrong_result_is_found(change: Any, said: str) -> None:
    assert status(faulty(change), "sin") == (WRONG, said)


def test_a_wrong_shape_or_dtype_is_found() -> None:
    """Where NumPy's answer takes no computation, each call finds it; elsewhere, this check."""
    narrow = lambda found: type(found)(found.array.astype(np.float32))  # noqa: E731
    found, by = status(faulty(narrow), "sin")
    assert found == REFUSED
    assert by.endswith("expected its result to be of float64, found Faulty of float32[].")
    assert status(faulty(narrow, np.sum), "sum") == (WRONG, "a result is of float32[], expected float64[]")
    for function in (np.sin, np.sum, np.matmul):
        found, by = status(faulty(lying, function), function.__name__)
        assert found == REFUSED
        assert by.endswith("expected to return an object of shape [], found Lying of shape [7].")
    assert status(faulty(lying, np.concatenate), "cat") == (WRONG, "a result is of float64[7], expected float64[3, 3]")


def test_a_wrong_gradient_is_found() -> None:
    class Faulty(Boxed):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            found = each(super().carry(function, args, kwargs), Faulty)
            return Faulty(found.array + 1) if function is np.cos else found

    assert status(Faulty, "sin") == (WRONG, "other values than on arrays")


def test_a_payload_without_values_is_asked_for_shapes_alone() -> None:
    class Shapes(Payload):
        def __init__(self, array: Any) -> None:
            self.shape, self.dtype = array.shape, array.dtype

        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            arrays = [np.ones(a.shape, a.dtype) if isinstance(a, Shapes) else a for a in args]
            return Shapes(np.asarray(function(*arrays, **kwargs)))

    assert status(Shapes, "exp") == (CARRIED, "")
    assert status(Shapes, "exp", values=lambda payload: np.ones(payload.shape)) == (
        WRONG,
        "other values than on arrays",
    )
    found, by = status(Shapes, "median")
    assert found == REFUSED
    assert "its values are looked at" in by


def test_an_array_that_slips_out_of_the_backward_pass_is_found() -> None:
    """The product of an array and a payload is a payload, so that no result shows it."""
    slipping = faulty(lambda found: found.array, np.cos)
    carry = slipping.carry
    assert status(slipping, "sin") == (WRONG, "carry() returns an array for numpy.cos, not a Faulty")
    assert status(slipping, "exp") == (CARRIED, "")
    assert slipping.carry is carry

    class Inheriting(slipping):  # type: ignore[misc]
        pass

    check_payload(Inheriting, "exp")
    assert "carry" not in vars(Inheriting)


def test_a_function_that_makes_payloads_stands_for_a_class() -> None:
    def narrow_boxes(array: Any) -> Any:
        return Boxed(array)

    assert str(check_payload(narrow_boxes, "sin")) == "narrow_boxes: 1 of 1 entries carried (100.0%)"
    assert check_payload(lambda array: Boxed(array), "sin").subject == "Boxed"


@pytest.mark.parametrize("cls", [Boxed(np.zeros(2)), lambda: None, lambda array, high: array])
def test_what_makes_no_payload_of_one_array_is_refused(cls: Any) -> None:
    with pytest.raises(TypeError, match="expected a class or a function that makes a payload of one array"):
        check_payload(cls, "sin")


def test_a_class_that_lies_about_its_array_is_refused() -> None:
    with pytest.raises(TypeError, match="lies about its array: expected a payload of ndarray of float64"):
        check_payload(lambda array: Boxed(array.astype(np.float32)))
    with pytest.raises(TypeError, match="expected its shape to be a tuple"):
        check_payload(lambda array: object())


@pytest.mark.parametrize("names", [["no_such"], ["sin", "_getitem"], ["manual_seed"]])
def test_an_unknown_operation_is_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="expected names of operations that have samples"):
        check_payload(Boxed, names)


def test_a_transform_that_gives_other_results_is_found() -> None:
    report = check_interpreter(lambda call, tensors: [t * 2 for t in call(*tensors)], ["sin", "eq"])
    assert [entry.status for entry in report.entries] == [WRONG, WRONG]
    assert check_interpreter(lambda call, tensors: call(*tensors), ["sin", "sort", "where"]).share == 1


def test_the_page_of_what_each_interpreter_carries_is_fresh() -> None:
    pytest.importorskip("scipy", reason="special functions are computed by SciPy")
    command = "python -m pullback ops --interpreters > docs/interpreters.md"
    check_fresh(ROOT / "docs" / "interpreters.md", carried.as_markdown(), command)

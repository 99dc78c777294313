"""The audit: every planted fault is found and explained, and the result in all its forms."""

from __future__ import annotations

import dataclasses
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import Function
from pullback.testing import CODES, Audit, Finding, audit
from pullback.testing.corrections.findings import codes_as_markdown
from tests.testing.faulty_functions import FAULTY, M, Planted, X


@pytest.fixture(autouse=True)
def _forgets() -> Iterator[None]:
    """What the faulty ones leave behind, on purpose, is taken away."""
    yield
    for planted in FAULTY:
        for name in ("seen", "x"):
            held = vars(planted.function).get(name)
            if isinstance(held, list):
                held.clear()
            elif held is not None:
                delattr(planted.function, name)


@pytest.mark.parametrize("planted", FAULTY, ids=lambda planted: planted.function.__name__)
def test_a_planted_fault_is_found_and_explained(planted: Planted) -> None:
    result = audit(planted.function, *planted.inputs)
    found = [f for f in result.findings if f.code == planted.code]
    assert found, f"not found, but {result}"
    finding = found[0]
    for words in planted.says:
        assert words in finding.reason, str(finding)
    assert finding.line is not None, str(finding)
    assert finding.changes or finding.advice, str(finding)
    assert finding.line.text.strip().startswith(planted.line), str(finding)
    assert finding.line.file == __file__.replace("test_audit", "faulty_functions")
    assert planted.corrected in str(dataclasses.replace(finding, above=""))
    assert set(result.codes) == {planted.code} | planted.also, str(result)
    assert result.ok == all(CODES[code].severity != "fault" for code in result.codes)


def test_there_are_enough_planted_faults_and_every_code_is_planted() -> None:
    assert len(FAULTY) >= 25
    assert len({planted.function for planted in FAULTY}) == len(FAULTY)
    notes = {code for code, kind in CODES.items() if kind.severity == "note"}  # test_audit_clean.py has them
    assert {planted.code for planted in FAULTY} - notes == set(CODES) - notes


# -- the result --------------------------------------------------------------------------------------------------------


class Square(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * x * y, grad_output * x * x


@pytest.fixture(scope="module")
def result() -> Audit:
    return audit(Square, X, torch.tensor([0.5, -0.8, 1.1]))


def test_the_result_counts_and_orders_its_findings(result: Audit) -> None:
    assert not result.ok
    assert result.codes == ("wrong-derivative", "unneeded-gradient")
    assert result.summary == "1 fault, 2 warnings"
    assert [f.severity for f in result.findings] == ["fault", "warning", "warning"]
    assert result.of("fault") == [result.findings[0]]
    assert "first derivatives" in result.checks
    assert result.skipped["vmap"] == "there is no vmap rule"


def test_the_result_as_text(result: Audit) -> None:
    lines = str(result).splitlines()
    assert lines[0] == f"audit of Square: 1 fault, 2 warnings ({len(result.checks)} checks)"
    assert lines[2].startswith(
        "fault wrong-derivative: Expected d output[1] / d x[1] = 1.92 (finite differences); found"
    )
    assert lines[3].startswith("  at ")
    assert lines[3].endswith(f"test_audit.py:{result.findings[0].line.number}")
    assert lines[4] == "  - return grad_output * x * y, grad_output * x * x"
    mended = "return {} if ctx.needs_input_grad[0] else None, {} if ctx.needs_input_grad[1] else None"
    assert lines[5] == "  + " + mended.format("2 * (grad_output * x * y)", "grad_output * x * x")
    assert lines[8] == lines[11] == "  The correction of `wrong-derivative` above mends it, too."
    assert len(lines) == 12


def test_the_result_as_markdown(result: Audit) -> None:
    text = result.as_markdown()
    assert text.startswith("## `Square` fails its audit: 1 fault, 2 warnings\n\n**fault** `wrong-derivative` Expected")
    assert "\n```diff\n# " in text
    assert "\n-        return grad_output * x * y, grad_output * x * x\n" in text
    assert "\n+        return 2 * (grad_output * x * y) if ctx.needs_input_grad[0] else None, " in text
    assert text.count("```diff") == 1
    assert text.count("The correction of `wrong-derivative` above mends it, too.") == 2
    assert "Not checked: forward mode (there is no jvp); vmap (there is no vmap rule)." in text


def test_the_result_as_json(result: Audit) -> None:
    again = json.loads(json.dumps(result.as_dict()))
    assert again["function"] == "Square"
    assert again["ok"] is False
    assert again["findings"][0]["code"] == "wrong-derivative"
    assert again["findings"][0]["line"]["text"] == "return grad_output * x * y, grad_output * x * x"
    assert again["findings"][0]["reason"].startswith("Expected d output[1]")
    assert set(again) == {"function", "ok", "summary", "findings", "accepted", "checks", "skipped"}


def test_a_passing_result_says_so() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            return 2 * grad_output

    result = audit(Double, X)
    assert str(result) == f"audit of Double: nothing found ({len(result.checks)} checks)"
    assert result.as_markdown().startswith("## `Double` passes its audit: nothing found\n")
    assert Finding("kink", "a", "b").reason == "Expected a; found b."


def test_without_source_the_finding_is_the_same_but_for_the_line() -> None:
    scope = {"Function": Function}
    source = (
        "class Half(Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n"
        "    @staticmethod\n    def backward(ctx, grad_output):\n        return grad_output\n"
    )
    exec(source, scope)
    (finding,) = audit(scope["Half"], X).findings
    assert finding.code == "wrong-derivative"
    assert finding.line is None
    assert not finding.corrected
    assert "What to do: have backward give grad_output times the derivative of output" in str(finding)


def test_progress_is_told_of_every_check() -> None:
    told: list[tuple[str, int, int]] = []
    result = audit(Square, X, M[0], progress=lambda *at: told.append(at))
    assert tuple(title for title, _, _ in told) == result.checks
    assert all(0 <= number < total for _, number, total in told)


# -- what cannot be audited --------------------------------------------------------------------------------------------


def test_what_is_no_function_is_refused() -> None:
    class Base(Function, abstract=True):
        pass

    for wrong in (Square.apply, np.sin, Base, 3):
        with pytest.raises(TypeError, match=r"audit\(\): expected a subclass of autograd.Function"):
            audit(wrong, X)


def test_inputs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"audit\(Square\): expected a floating point or complex tensor"):
        audit(Square, torch.tensor([1, 2]), 3)
    with pytest.raises(TypeError, match=r"Square.forward\(\): missing a required argument: 'y'"):
        audit(Square, X)
    with pytest.raises(RuntimeError, match="overlapping memory"):
        audit(Square, torch.ones(1).expand(3), X)


def test_the_audit_leaves_modes_tracing_and_collection_alone() -> None:

    before = sys.gettrace(), gc.isenabled(), torch.is_grad_enabled()
    with torch.no_grad():
        assert not audit(Square, X, M[0]).ok
        assert not torch.is_grad_enabled()
    assert (sys.gettrace(), gc.isenabled(), torch.is_grad_enabled()) == before


# -- the page, and the package -----------------------------------------------------------------------------------------


def test_the_page_lists_every_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text("utf-8")
    assert codes_as_markdown() in page, "print codes_as_markdown() into docs/audit.md"


def test_importing_the_library_leaves_the_audit_until_it_is_asked_for() -> None:
    source = str(Path(torch.__file__).parents[1])
    program = (
        f"import sys; sys.path.insert(0, {source!r})\nimport pullback\nassert 'pullback.testing' not in sys.modules\n"
        "assert pullback.testing.audit.__name__ == 'audit'"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Straight(Function):
    """A straight-through estimator, whose derivative is meant to be wrong."""

    audit_ignore = ("wrong-derivative",)

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output


class Unaccepted(Straight):
    audit_ignore = ()


def test_findings_can_be_accepted() -> None:
    x = torch.tensor([0.3, 1.2])
    assert not audit(Unaccepted, x).ok
    for result in (audit(Straight, x), audit(Unaccepted, x, ignore=("wrong-derivative",))):
        assert result.ok
        assert not result.findings
        assert [finding.code for finding in result.accepted] == ["wrong-derivative"]
        assert result.summary == "1 accepted"
        assert "accepted wrong-derivative: Expected" in str(result)
        assert "**accepted** `wrong-derivative`" in result.as_markdown()
        assert [found["code"] for found in result.as_dict()["accepted"]] == ["wrong-derivative"]


def test_what_is_ignored_has_to_exist() -> None:
    with pytest.raises(ValueError, match="did you mean 'wrong-derivative'"):
        audit(Unaccepted, torch.ones(2), ignore=("wrong_derivative",))


def test_work_of_an_operation_that_takes_the_general_way_is_not_that_of_saying_what_is_wanted() -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            ga, gb = g @ b.T, a.T @ g
            return ga if ctx.needs_input_grad[0] else None, gb if ctx.needs_input_grad[1] else None

    found = audit(Product, torch.randn(2, 3, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64))
    assert "unneeded-work" in [finding.code for finding in found.findings]


a = torch.ones(3, requires_grad=True)  # of the name of an attribute below


def test_an_attribute_is_not_the_tensor_from_outside_of_the_same_name() -> None:
    class Keeps(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.a = 2.0
            return x * ctx.a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.a

    found = audit(Keeps, torch.randn(3, dtype=torch.float64))
    assert "hidden-parameter" not in [finding.code for finding in found.findings]


def test_an_output_of_another_dtype_is_converted_where_it_is_returned() -> None:
    class Single(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = torch.empty_like(x, dtype=torch.float32)
            y.copy_(x)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    found = audit(Single, torch.ones(3, dtype=torch.float64))
    (finding,) = [finding for finding in found.findings if finding.code == "output-dtype"]
    assert finding.corrected == "return y.to(x.dtype)"


def test_the_first_value_that_was_written_is_shown() -> None:
    class Clamped(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x[x < 0] = 0.0
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    found = [f for f in audit(Clamped, torch.tensor([1.0, np.nan, -3.0])).findings if f.code == "input-modified"]
    assert "first -3 became 0" in found[0].found

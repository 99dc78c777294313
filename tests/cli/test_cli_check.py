"""`pullback check`: which Functions of a file it audits, with which inputs, what it prints, and its exit status."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback
from pullback.autograd import Function
from pullback.cli import main
from pullback.diagnose.progress import Progress
from pullback.testing import inputs

HEAD = "import numpy as np\nimport pullback as torch\nfrom pullback.autograd import Function\n"

DOUBLE = """
class Double(Function):
    @staticmethod
    def forward(ctx, x: "float64[3, 4]"):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output
"""

HALF = '''
class Half(Function):
    """Whose gradient is wrong."""

    @staticmethod
    def forward(ctx, x: "float64[n]", factor=2.0):
        ctx.factor = factor
        return factor * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None
'''

WASTE = """
class Waste(Function):
    @staticmethod
    def forward(ctx, a: "float32[n, k]", b: "float32[k]"):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b, (grad_output * a).sum(0)
"""

NEEDS = """
class Needs(Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.power * x ** (ctx.power - 1), None
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a file and return its name, in the working directory."""
    monkeypatch.chdir(tmp_path)

    def write(*parts: str, name: str = "mine.py") -> str:
        (tmp_path / name).write_text(HEAD + "".join(parts), "utf-8")
        return name

    return write


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main.main(["check", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


# -- the result --------------------------------------------------------------------------------------------------------


def test_a_file_whose_functions_pass(write, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = check(capsys, write(DOUBLE))
    assert (status, err) == (0, "")
    assert out == "passed Double (mine.py:5): nothing found\n1 of 1 passed\n"


def test_a_fault_is_shown_with_its_line_and_the_corrected_one(write, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = check(capsys, write(DOUBLE, HALF))
    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "passed Double (mine.py:5): nothing found"
    assert lines[1] == "failed Half (mine.py:14): 1 fault"
    assert lines[2].startswith("  fault wrong-derivative: Expected d output[")
    assert lines[3:6] == ["    at mine.py:24", "    - return grad_output, None", "    + return 2 * grad_output, None"]
    assert lines[-1] == "1 of 2 passed"
    assert "\033" not in out


def test_one_class_of_a_file_and_several_targets(write, capsys: pytest.CaptureFixture[str]) -> None:
    write(DOUBLE, HALF)
    write(WASTE, name="other.py")
    status, out, _ = check(capsys, "mine.py:Double", "other.py")
    assert status == 0
    assert re.findall(r"^(?:passed|failed) (\w+)", out, re.MULTILINE) == ["Double", "Waste"]


def test_strict_lets_warnings_fail(write, capsys: pytest.CaptureFixture[str]) -> None:
    write(WASTE)
    status, out, _ = check(capsys, "mine.py")
    assert status == 0
    assert "passed Waste (mine.py:5): 2 warnings" in out
    assert "warning unneeded-gradient" in out
    status, out, _ = check(capsys, "mine.py", "--strict")
    assert status == 1
    assert "failed Waste" in out


def test_json_is_one_object(write, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = check(capsys, write(DOUBLE, HALF), "--json")
    found = json.loads(out)
    assert (status, err) == (1, "")
    assert (found["ok"], found["errors"]) == (False, [])
    assert [(a["function"], a["ok"], a["place"]) for a in found["audits"]] == [
        ("Double", True, "mine.py:5"),
        ("Half", False, "mine.py:14"),
    ]
    assert found["audits"][1]["findings"][0]["code"] == "wrong-derivative"
    assert found["audits"][1]["findings"][0]["line"]["number"] == 24


def test_markdown_is_a_page(write, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = check(capsys, write(HALF), "--markdown")
    assert status == 1
    assert out.startswith("## `Half` fails its audit: 1 fault\n")
    assert "```diff\n# mine.py:15\n-        return grad_output, None\n" in out


def test_colours_only_on_a_terminal(write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write(HALF)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    _, out, _ = check(capsys, "mine.py")
    assert "\033[31;1mfailed\033[0m \033[1mHalf\033[0m" in out
    assert "\033[31;1mfault\033[0m wrong-derivative: Expected" in out
    assert max(map(len, out.splitlines())) < 100  # wrapped to the width of the terminal, 80 and the codes of colours
    assert "\033[32m  + return 2 * grad_output, None\033[0m" in out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in check(capsys, "mine.py")[1]


def test_progress_is_shown_on_a_terminal_after_a_while(
    write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(DOUBLE)
    assert check(capsys, "mine.py")[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = Progress("Double")
    progress("first derivatives", 5, 20)
    assert capsys.readouterr().err == ""
    progress.show()
    progress("vmap", 10, 20)
    with progress:
        pass
    err = capsys.readouterr().err
    assert "[##........] Double: first derivatives ..." in err
    assert "[#####.....] Double: vmap ..." in err
    assert err.endswith("\r\033[K")


# -- inputs ------------------------------------------------------------------------------------------------------------


def test_inputs_of_the_class(write, capsys: pytest.CaptureFixture[str]) -> None:
    for declared in (
        "audit_inputs = (torch.ones(3), 2)",
        "audit_inputs = {'power': 3, 'x': torch.ones(3)}",
        "audit_inputs = staticmethod(lambda: (torch.ones(3), 2))",
        "audit_inputs = [(torch.ones(3), 2), (torch.ones(2, 2), 3)]",
    ):
        source = NEEDS.replace("(Function):\n", f"(Function):\n    {declared}\n")
        status, out, err = check(capsys, write(source))
        assert (status, err) == (0, ""), declared
        count = 2 if "[(" in declared else 1
        assert out.endswith(f"{count} of {count} passed\n")
        assert ("mine.py:5, inputs 2 of 2" in out) == (count == 2)


def test_inputs_of_the_file(write, capsys: pytest.CaptureFixture[str]) -> None:
    for declared in (
        "audit_inputs = {'Needs': (torch.ones(3), 2)}",
        "def audit_inputs(function):\n    return {'Needs': (torch.ones(3), 2)}[function.__name__]",
        "def audit_inputs():\n    return torch.ones(3), 2",
    ):
        status, _, err = check(capsys, write(NEEDS, declared))
        assert (status, err) == (0, ""), declared
    write(NEEDS, "samples = [(torch.ones(3), 2)]")
    assert check(capsys, "mine.py", "--inputs", "samples")[0] == 0


def test_hints_work_where_annotations_are_strings(write, capsys: pytest.CaptureFixture[str]) -> None:
    name = write(DOUBLE, HALF)
    Path(name).write_text("from __future__ import annotations\n" + Path(name).read_text("utf-8"), "utf-8")
    status, out, _ = check(capsys, name)
    assert status == 1
    assert out.endswith("1 of 2 passed\n")


def test_dtypes_are_chosen(write, capsys: pytest.CaptureFixture[str]) -> None:
    refuses = DOUBLE.replace(
        "        return 2 * x\n", "        assert x.dtype is torch.float64\n        return 2 * x\n"
    )
    write(refuses)
    assert "dtype-refused" in check(capsys, "mine.py")[1]
    assert check(capsys, "mine.py", "--dtype", "float64", "--strict")[0] == 0


def test_hints_become_tensors() -> None:
    rng, lengths = np.random.default_rng(0), {}
    a = inputs.from_hint("float64[n, 3, k]", rng, lengths)
    b = inputs.from_hint("complex64[k, n]", rng, lengths)
    assert (a.shape, a.dtype) == ((2, 3, 3), pullback.float64)
    assert (b.shape, b.dtype) == ((3, 2), pullback.complex64)
    assert a.abs().min() >= 0.1
    assert inputs.from_hint("float32[]", rng).shape == ()
    assert inputs.from_hint("bool[4]", rng).tolist() == [False, True, False, True]
    for wrong in ("float63[3]", "float64(3)", "float64[3 x 4]"):
        with pytest.raises(LookupError, match="expected"):
            inputs.from_hint(wrong, rng)


def test_parameters_with_defaults_need_no_hint() -> None:
    class Scale(Function):
        @staticmethod
        def forward(ctx, x: "float64[2]", factor=3.0, *rest, flag=True):  # noqa: F821, UP037
            return x * factor

    assert [kwargs.keys() for _, kwargs in inputs.declared(Scale)] == [{"x"}]


# -- what cannot be audited --------------------------------------------------------------------------------------------


def test_a_missing_file_class_or_function_is_one_line_and_2(write, capsys: pytest.CaptureFixture[str]) -> None:
    write(DOUBLE)
    write("x = 1\n", name="empty.py")
    for target, words in {
        "nowhere.py": "nowhere.py does not exist; expected a Python file",
        ".": ". is a folder",
        "mine.py:Triple": "mine.py has no Function 'Triple'; it has Double",
        "mine.py:np": "mine.py has no Function 'np'; it has Double",
        "empty.py": "empty.py defines no Function at its top level",
        "empty.py:Double": "and there is no Function at the top level",
    }.items():
        status, out, err = check(capsys, target)
        assert (status, out) == (2, "")
        assert err.startswith("pullback check: ")
        assert words in err
        assert err.count("\n") == 1


def test_missing_inputs_say_how_to_declare_them(write, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = check(capsys, write(DOUBLE, NEEDS))
    assert status == 2
    assert "passed Double" in out  # the others are audited all the same
    assert 'Needs.forward: expected inputs to audit it with, or a hint such as x: "float64[3, 4]"' in err
    assert "audit_inputs = staticmethod(" in err


@pytest.mark.parametrize(
    ("imported", "base"),
    [
        ("import pullback as torch", "torch.autograd.Function"),
        ("import pullback as pb", "pb.autograd.Function"),
        ("import pullback", "pullback.autograd.Function"),
        ("from pullback.autograd import Function", "Function"),
    ],
)
@pytest.mark.parametrize("form", ["in the class", "in the file"])
def test_the_inputs_are_declared_as_it_says(
    imported: str, base: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n\n"
    body += "    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n"
    head, written = f"{imported}\n\nclass Twice({base}):\n", tmp_path / "mine.py"
    written.write_text(head + body)
    status, _, err = check(capsys, str(written))
    assert status == 2
    in_class, in_file, *needed = re.findall("`(.*?)`", err)
    head = "".join(f"{line}\n" for line in needed) + head
    written.write_text(f"{head}    {in_class}\n\n{body}" if form == "in the class" else f"{head}{body}\n{in_file}\n")
    assert check(capsys, str(written))[0] == 0


def test_a_file_that_fails_is_told_with_its_line(write, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = check(capsys, write("1 / 0\n"))
    assert (status, out) == (2, "")
    assert "mine.py raised ZeroDivisionError" in err
    assert "line 4" in err
    status, _, err = check(capsys, write("class Bad(Function):\n    def forward(self, x):\n        return x\n"))
    assert status == 2
    assert "must be a static method" in err


def test_inputs_that_fail_or_do_not_fit_are_told(write, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = check(capsys, write(NEEDS, "def audit_inputs():\n    return 1 / 0\n"))
    assert status == 2
    assert "audit_inputs of Needs raised ZeroDivisionError" in err
    status, _, err = check(capsys, write(NEEDS, "audit_inputs = {'Needs': (torch.ones(3),)}\n"))
    assert status == 2
    assert "Needs: Needs.forward(): missing a required argument: 'power'" in err
    status, out, err = check(capsys, write(NEEDS, "audit_inputs = {'Needs': (3, 2)}\n"), "--json")
    assert status == 2
    assert json.loads(out)["errors"]
    assert "expected a floating point or complex tensor among the inputs" in err


def test_what_the_file_prints_is_no_part_of_the_report(write, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = check(
        capsys,
        write(
            "print('hello')\n",
            DOUBLE.replace("        return 2 * x", "        print('in forward')\n        return 2 * x"),
        ),
        "--json",
    )
    assert status == 0
    assert json.loads(out)["ok"]
    assert err.startswith("hello\nin forward\n")


def test_imported_and_abstract_functions_are_left_out(write, capsys: pytest.CaptureFixture[str]) -> None:
    write(HALF, name="theirs.py")
    status, out, _ = check(
        capsys, write("from theirs import Half\nclass Base(Function, abstract=True):\n    pass\n", DOUBLE)
    )
    assert status == 0
    assert "Half" not in out
    assert check(capsys, "mine.py:Half")[0] == 1


def test_a_finding_can_be_accepted(write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(HEAD + HALF)
    assert main.main(["check", str(path)]) == 1
    capsys.readouterr()
    codes = ("wrong-derivative", "wrong-second-derivative", "wrong-derivative-float32")
    given = [part for code in codes for part in ("--ignore", code)]
    assert main.main(["check", str(path), *given]) == 0
    text = capsys.readouterr().out
    assert "accepted wrong-derivative: Expected" in text
    assert "1 of 1 passed" in text

"""`pullback graph`: a picture from the command line, and what it says where there can be none."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pullback.cli import main
from pullback.diagnose import progress

MODEL = """
import sys
import pullback as torch
from helper import scale

assert __name__ != "__main__"
seen = list(sys.argv)

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g

w = torch.ones(3, requires_grad=True)
hidden = scale(Cube.apply(w))
loss = hidden.sum()

def compute():
    inner = torch.ones(2, requires_grad=True)
    product = inner * inner
    return product.sum(), product

def broken():
    return 1 / 0

def leaves():
    raise SystemExit(3)

number = 3
constant = torch.ones(2)
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "helper.py").write_text("def scale(x):\n    return x * 2\n", "utf-8")
    path = tmp_path / "model.py"
    path.write_text(MODEL, "utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def helper_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "helper", raising=False)


def test_the_loss_of_a_file_is_drawn_as_text(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.path[:], sys.argv[:]
    assert main.main(["graph", model]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "Loss  [] float32",
        "loss = SumBackward0 #3  [] float32",
        "hidden = MulBackward0 #2  [3] float32",
        "CubeBackward #1  [3] float32  saves 12 B: w",
        "w (leaf)  [3] float32",
        "3 nodes, 1 leaf, 12 B saved",
    ]
    assert err == ""
    assert (sys.path, sys.argv) == before


def test_a_function_is_called_and_its_variables_give_names(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["graph", f"{model}:compute", "--backward"]) == 0
    out = capsys.readouterr().out
    assert "product = MulBackward0" in out
    assert "inner (leaf)  [2] float32  |grad| 2.83" in out
    assert sys.getprofile() is None


def test_json_has_lines_of_the_users_code_and_steps(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["graph", f"{model}:loss", "--json", "--backward"]) == 0
    found = json.loads(capsys.readouterr().out)
    (cube,) = [node for node in found["nodes"] if node["name"] == "CubeBackward"]
    file, line, _ = cube["origin"]
    assert file == model
    assert MODEL.splitlines()[line - 1] == "hidden = scale(Cube.apply(w))"
    assert [found["nodes"][step["number"]]["name"] for step in found["steps"]] == [
        *("SumBackward0", "MulBackward0", "CubeBackward", "AccumulateGrad")
    ]


@pytest.mark.parametrize("ending", ["html", "svg", "dot", "mmd", "txt"])
def test_a_file_is_written_in_the_form_of_its_ending(
    ending: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"graph.{ending}"
    assert main.main(["graph", model, "-o", str(out)]) == 0
    assert "CubeBackward" in out.read_text("utf-8")
    assert capsys.readouterr().out == f"{out}: 4 nodes\n"


def test_fold_and_no_fold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chain.py"
    path.write_text("import pullback\ny = pullback.ones(1, requires_grad=True)\nfor _ in range(9): y = -y\n", "utf-8")
    for options, expected in ((["--fold"], 4), (["--no-fold"], 12), ([], 12)):
        assert main.main(["graph", str(path), *options]) == 0
        assert len(capsys.readouterr().out.splitlines()) == expected


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("nowhere.py", [], "nowhere.py does not exist; expected a Python file, as FILE.py or FILE.py:name"),
        (".", [], "is a folder"),
        ("model.py:other", [], "has no 'other'; it has w, hidden, loss, compute, broken, leaves, constant"),
        ("model.py:number", [], "model.py:number is no tensor and no function that returns one, but a int"),
        ("model.py:constant", [], "model.py:constant does not require grad"),
        ("model.py:broken", [], "model.py:broken() raised ZeroDivisionError: division by zero\n"),
        ("model.py:leaves", [], "model.py:leaves() raised SystemExit: 3"),
        ("model.py:hidden", ["--backward"], "--backward needs a tensor of one element, a loss; found one of shape"),
        ("model.py", ["-o", "missing/graph.svg"], "there is no folder missing to write graph.svg to"),
        ("several.py", [], "say which is meant, as several.py:a; it has a, b"),
        ("fails.py", [], "fails.py raised ValueError: on purpose\n"),
        ("syntax.py", [], "syntax.py raised"),
        ("backward.py", ["--backward"], "the backward pass raised ArithmeticError: in backward\n"),
    ],
)
def test_what_cannot_be_drawn_is_said_on_stderr_with_status_2(
    target: str,
    options: list[str],
    words: str,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    start = "import pullback\nx = pullback.ones(1, requires_grad=True)\n"
    (tmp_path / "several.py").write_text(start + "a = x * 2\nb = x * 3\n", "utf-8")
    (tmp_path / "fails.py").write_text("\nraise ValueError('on purpose')\n", "utf-8")
    (tmp_path / "syntax.py").write_text("def :\n", "utf-8")
    function = MODEL[MODEL.index("class Cube") : MODEL.index("w = ")].replace(
        "(x,) = ctx.saved_tensors", "raise E('in backward')"
    )
    (tmp_path / "backward.py").write_text(
        f"import pullback as torch\nE = ArithmeticError\n{function}\n"
        "loss = Cube.apply(torch.ones(1, requires_grad=True))\n",
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    assert main.main(["graph", target, *options]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert err.startswith("pullback graph: ")
    assert out == ""
    if "raised" in words and "SystemExit" not in words:
        assert ", line " in err  # the place in the user's file
        assert "pullback/_script.py" not in err


def test_an_ending_that_is_no_form_is_refused_before_the_file_runs(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main.main(["graph", model, "-o", "graph.png"])
    assert exit_.value.code == 2
    assert "expected a name that ends with .html, .svg, .dot, .mmd, .txt, found 'graph.png'" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_on_a_terminal(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, coloured in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stdout", stream)
        assert main.main(["graph", model]) == 0
        assert ("\033[" in stream.getvalue()) is coloured


def test_steps_that_take_long_are_told_and_taken_back(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Timer:
        """Time that has passed at once."""

        def __init__(self, seconds: float, function: Any) -> None:
            assert seconds == progress.PATIENCE
            self.start = function

        def cancel(self) -> None: ...

        def is_alive(self) -> bool:
            return False

    monkeypatch.setattr(progress.threading, "Timer", Timer)
    terminal, plain = Terminal(), io.StringIO()
    for stream in (terminal, plain):
        monkeypatch.setattr(sys, "stderr", stream)
        assert main.main(["graph", model]) == 0
    assert f"[##........] running {model} ..." in terminal.getvalue()
    assert terminal.getvalue().endswith("[##########] drawing the graph ...\r\033[K")
    assert plain.getvalue() == ""

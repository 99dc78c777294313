"""The command line, the demo it runs, and the picture of a graph that the demo leaves behind."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.cli import demo, main

for _extra in ("sklearn", "rich"):
    pytest.importorskip(_extra)
matplotlib_image = pytest.importorskip("matplotlib.image")
Axes = pytest.importorskip("matplotlib.axes").Axes


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python on this package, in a process of its own."""
    source = str(Path(pullback.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{arguments[0]}", *arguments[1:]],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


# -- help and mistakes -------------------------------------------------------------------------------------------------


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main.main(["--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    for command in main.COMMANDS:
        assert re.search(rf"^ +{command.name} +{re.escape(command.summary.split()[0])}", out, re.MULTILINE)
        assert command.examples[0] in out


@pytest.mark.parametrize("command", main.COMMANDS, ids=lambda command: command.name)
def test_help_of_a_command_has_its_options_and_examples(
    command: main.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main.main([command.name, "--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert f"usage: pullback {command.name}" in out
    assert "--json" in out
    for example in command.examples:
        assert f"  {example}\n" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["nonsense"], "'nonsense'"),
        (["demo", "--epochs", "0"], "at least 1, found '0'"),
        (["demo", "--epochs", "many"], "at least 1, found 'many'"),
        (["demo", "--seed", "-1"], "at least 0, found '-1'"),
        (["demo", "extra"], "extra"),
    ],
)
def test_a_wrong_command_line_exits_with_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main.main(arguments)
    assert exit_.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["sinn"], "no operation is called sinn (did you mean sin?); `pullback ops`, or `rows()`, lists all of them"),
        (["linalg.dett", "cos"], "no operation is called linalg.dett (did you mean linalg.det?)"),
        (["qqqqqq"], "no operation is called qqqqqq; `pullback ops`"),
    ],
)
def test_a_misspelt_operation_is_told_the_nearest_one(
    names: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["ops", *names]) == 2
    assert said in capsys.readouterr().err


def test_the_list_of_scipys_functions_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy", reason="pullback.scipy needs SciPy")
    assert main.main(["ops", "--scipy"]) == 0
    assert capsys.readouterr().out.startswith("# SciPy's functions with derivatives\n")


def test_without_scipy_its_list_is_a_line_on_stderr() -> None:
    done = python("sys.modules['scipy'] = None; from pullback.cli import main; sys.exit(main.main(['ops', '--scipy']))")
    assert done.returncode == 2
    assert done.stderr.startswith("pullback ops: pullback.scipy needs SciPy, which is not installed")


def test_python_dash_m() -> None:
    done = python("import runpy; sys.argv = ['pullback', '--help']; runpy.run_module('pullback', run_name='__main__')")
    assert done.returncode == 0, done.stderr
    assert "usage: pullback" in done.stdout


def test_importing_the_library_imports_neither_the_command_nor_an_extra() -> None:
    done = python("import pullback; print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "pullback.autograd" in loaded
    assert not loaded & {"pullback.cli", "pullback.cli.demo", "rich", "sklearn", "matplotlib", "argparse"}


@pytest.mark.parametrize("module", ["sklearn", "matplotlib", "rich"])
def test_a_missing_extra_is_one_line_and_exit_status_2(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    out = tmp_path / "out"
    assert main.main(["demo", "--out", str(out)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "pip install 'pullback[demo]'" in captured.err
    assert captured.err.startswith("pullback demo: ")
    assert captured.err.count("\n") == 1
    assert not out.exists()


def test_a_folder_that_cannot_be_made_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main.main(["demo", "--out", str(tmp_path / "file" / "out")]) == 2
    assert capsys.readouterr().err.startswith("pullback demo: ")


def test_a_defect_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(demo, "run", broken)
    with pytest.raises(ZeroDivisionError):
        main.main(["demo"])


# -- demo --------------------------------------------------------------------------------------------------------------


def test_demo_reaches_its_accuracy_and_leaves_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "[folder]"  # brackets are markup to rich
    assert main.main(["demo", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert re.search(r"gradcheck +passed", text)
    assert "epoch 30/30" in text
    shown, right, of = re.search(r"test accuracy +passed +([\d.]+)%, (\d+) of (\d+)", text).groups()
    assert int(of) == 450
    assert int(right) / int(of) >= 0.97
    assert float(shown) == pytest.approx(100 * int(right) / int(of), abs=0.05)
    files = ["demo.png", "graph.html", "graph.mmd", "graph.svg"]
    assert sorted(path.name for path in out.iterdir()) == files
    assert all(str(out / name) in text for name in files)
    (last,) = re.findall(r"^  loss +([\d.]+), the mean of the last epoch$", text, re.MULTILINE)
    assert re.findall(r"epoch 30/30 loss ([\d.]+)", text)[-1] == last
    assert (out / "graph.html").read_text("utf-8").startswith("<!doctype html>")
    assert (out / "graph.svg").read_text("utf-8").count("SwishFunctionBackward") >= 2

    image = matplotlib_image.imread(out / "demo.png")
    assert image.shape[0] > 800
    assert image.shape[1] > 1600
    red = (image[..., 0] > 0.8) & (image[..., 1] < 0.2) & (image[..., 2] < 0.2)
    assert red.any() == (right != of)

    graph = (out / "graph.mmd").read_text(encoding="utf-8")
    assert graph.startswith("graph LR\n    Loss -->|grad_output| ")
    assert graph.count("SwishFunctionBackward_2 -->|grad_input| ") == 1
    for name, shape in {"w1": (64, 256), "b1": (256,), "w3": (128, 10), "b3": (10,)}.items():
        assert f'leaf_{name}(["{name} {shape}"])' in graph


def test_demo_json_is_the_same_for_the_same_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = []
    for seed in ("1", "1", "2"):
        status = main.main(["demo", "--epochs", "2", "--seed", seed, "--out", str(tmp_path), "--json"])
        report = json.loads(capsys.readouterr().out)
        assert status == (0 if report["test_accuracy"] >= report["required_accuracy"] else 1)
        assert report["passed"] is (status == 0)
        assert report.pop("seconds") > 0
        reports.append(report)
    first, again, other = reports
    assert first == again
    assert first["last_loss"] != other["last_loss"]
    assert first["last_loss"] < first["first_loss"]
    assert first["train_digits"] + first["test_digits"] == 1797
    assert first["files"] == [str(tmp_path / n) for n in ("demo.png", "graph.html", "graph.svg", "graph.mmd")]


def test_the_picture_of_the_demo_has_the_loss_that_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    labels: list[str] = []
    annotate = Axes.annotate
    monkeypatch.setattr(
        Axes, "annotate", lambda axes, text, *a, **k: (labels.append(text), annotate(axes, text, *a, **k))
    )
    main.main(["demo", "--epochs", "2", "--out", str(tmp_path)])
    (printed,) = re.findall(r"^  loss +([\d.]+), ", capsys.readouterr().out, re.MULTILINE)
    assert labels == [printed]


def test_demo_fails_below_the_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "REQUIRED_ACCURACY", 1.01)
    assert main.main(["demo", "--epochs", "1", "--out", str(tmp_path)]) == 1
    assert re.search(r"test accuracy +failed", capsys.readouterr().out)


def test_demo_fails_with_a_wrong_derivative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong(demo.SwishFunction):
        @staticmethod
        def backward(ctx: Any, grad_output: pullback.Tensor) -> pullback.Tensor:
            return 0.9 * demo.SwishFunction.backward(ctx, grad_output)

    monkeypatch.setattr(demo, "swish", Wrong.apply)
    monkeypatch.setattr(demo, "REQUIRED_ACCURACY", 0.0)
    assert main.main(["demo", "--epochs", "1", "--out", str(tmp_path)]) == 1
    assert re.search(r"gradcheck +failed", capsys.readouterr().out)


def test_demo_digits_are_split_by_class_and_do_not_overlap() -> None:
    digits = demo.load_digits()
    shares = [np.bincount(labels, minlength=10) / len(labels) for labels in (digits.train_y, digits.test_y)]
    np.testing.assert_allclose(*shares, atol=0.005)
    assert digits.train_x.dtype == digits.test_x.dtype == np.float32
    np.testing.assert_allclose(digits.train_x.mean(axis=0), 0.0, atol=1e-5)
    train = {row.tobytes() for row in digits.train_x}
    assert not train & {row.tobytes() for row in digits.test_x}


# -- bench -------------------------------------------------------------------------------------------------------------

SUITE = """
import pathlib, sys
import pullback
print("ran", *sys.argv[1:])
print("on", pathlib.Path(pullback.__file__).parent)
if "--json" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text('{"rows": 2}')
sys.exit(3)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose benchmark suite says how it was called; the working directory is inside it."""
    (tmp_path / "src" / "pullback").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__main__.py").write_text(SUITE)
    (tmp_path / "benchmarks" / "over_ranks").mkdir()
    (tmp_path / "benchmarks" / "over_ranks" / "__main__.py").write_text(SUITE.replace("ran", "ran over ranks", 1))
    (tmp_path / "benchmarks" / "gpu.py").write_text(SUITE.replace("ran", "ran on a GPU", 1))
    monkeypatch.chdir(tmp_path / "src")
    return tmp_path


@pytest.mark.usefixtures("checkout")
def test_bench_runs_the_named_rows_on_this_package(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.main(["bench", "one", "two"]) == 3
    assert capfd.readouterr().out == f"ran --rows one two\non {Path(pullback.__file__).resolve().parent}\n"
    assert main.main(["bench"]) == 3
    assert capfd.readouterr().out.startswith("ran\n")
    assert main.main(["bench", "one", "--threads", "2"]) == 3
    assert capfd.readouterr().out.startswith("ran --rows one --threads 2\n")
    assert main.main(["bench", "distributed"]) == 3
    assert capfd.readouterr().out.startswith("ran over ranks\n")
    assert main.main(["bench", "gpu"]) == 3
    assert capfd.readouterr().out.startswith("ran on a GPU\n")


@pytest.mark.usefixtures("checkout")
def test_bench_json_prints_the_results_alone(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.main(["bench", "--json", "one"]) == 3
    assert json.loads(capfd.readouterr().out) == {"rows": 2}


def test_bench_without_a_checkout_says_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "__file__", str(tmp_path / "lib" / "site-packages" / "pullback" / "cli.py"))
    assert main.main(["bench"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"pullback bench: no benchmarks in {tmp_path}")
    assert "pip download" in err


def test_bench_knows_the_rows_of_the_suite(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.main(["bench", "no-such-row"]) == 2
    assert "no-such-row" in capfd.readouterr().err

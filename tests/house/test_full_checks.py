"""The checks say what they left out: what may be missing, what was covered, and what docs/checks.md reports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import checks_page, coverage_by_room, full

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["run", "full"])
def test_the_scripts_can_be_read_by_bash(script: str) -> None:
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / script)], check=True)


@pytest.mark.parametrize(
    ("allowed", "failed"), [("", "; cc is missing"), ("torch", "; cc is missing"), ("torch,cc", "")]
)
def test_what_is_missing_is_a_failure_unless_it_is_allowed(allowed: str, failed: str) -> None:
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    (function,) = (part for part in text.split("\n\n") if part.startswith("missing() {"))
    done = subprocess.run(
        ["bash", "-euc", f'failed=""\n{function}\nmissing cc "there is no C compiler."\necho "<$failed>"'],
        env={**os.environ, "ALLOW_MISSING": allowed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"<{failed}>"
    assert "there is no C compiler." in done.stdout


def test_coverage_is_counted_by_room(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def entry(lines: int, branches: int, covered: int, ways: int) -> dict[str, dict[str, int]]:
        return {
            "summary": {
                "num_statements": lines,
                "num_branches": branches,
                "covered_lines": covered,
                "covered_branches": ways,
            }
        }

    files = {
        "src/pullback/ops/reduce/sums.py": entry(90, 10, 85, 5),
        "src/pullback/ops/reduce/norm.py": entry(50, 50, 10, 0),
        "src/pullback/errors.py": entry(10, 0, 10, 0),
    }
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"files": files}), "utf-8")
    coverage_by_room.main([str(report)])
    assert capsys.readouterr().out.splitlines() == [
        "  50 %  ops/reduce",
        " 100 %  pullback",
        "      10 % of src/pullback/ops/reduce/norm.py",
        "52 % of all lines and branches",
    ]


def test_the_page_says_what_the_files_say() -> None:
    text = checks_page.PAGE.read_text("utf-8")
    assert text == checks_page.page(text), "run: python -m tests.checks_page"
    for name, result in full.results().items():
        assert checks_page.of_step(name, result) in text
        assert result.commit in text


def test_a_part_of_the_page_goes_between_its_marks() -> None:
    text = "# A page\n<!-- a -->\nold\n<!-- /a -->\n<!-- b -->\n<!-- /b -->\nend\n"
    assert checks_page.written(text, "a", "new\nlines") == text.replace("old", "new\nlines")
    with pytest.raises(ValueError, match="expected the marks of others"):
        checks_page.written(text, "others", "")


# -- .ci/full in pieces ------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit, in which steps run and are noted."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "src.py").write_text("x = 1\n", "utf-8")
    monkeypatch.setattr(full, "ROOT", tmp_path)
    monkeypatch.setattr(full, "RESULTS", tmp_path / "tests" / "full_results.json")
    full.RESULTS.write_text("{}\n", "utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_a_step_is_noted_with_its_commit_and_last_lines(tree: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, capture_output=True, text=True, check=True).stdout
    step = full.Step("two commands", ("-c 'print(1); print(); print(\"== 2|{jobs} ==\"); print()'", "-c 'print(3)'"))
    result = full.run(step, sys.executable, 7)
    assert commit.startswith(result.commit)
    assert len(result.commit) >= 7
    assert (result.clean, result.passed, result.lines, result.minutes) == (True, True, "2/7; 3", 1)
    full.note("large", result)
    assert full.results() == {"large": result}
    assert checks_page.of_step("large", result).endswith(f"passed | 2/7; 3 | 1 min | {result.date}, {result.commit} |")
    later = full.run(full.Step("after the note", ("-c 'print(4)'",)), sys.executable, 1)
    assert later.clean  # the note itself is no change


def test_a_step_that_fails_ends_there(tree: Path) -> None:
    result = full.run(full.Step("", ("-c 'print(1); raise SystemExit(3)'", "-c 'print(2)'")), sys.executable, 1)
    assert (result.passed, result.lines) == (False, "1")
    assert "**failed**" in checks_page.of_step("large", result)


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_step_on_changed_files_says_so(tree: Path, when: str) -> None:
    if when == "before":
        (tree / "src.py").write_text("x = 2\n", "utf-8")
    result = full.run(full.Step("", ('-c \'open("new.py", "w").close()\'',)), sys.executable, 1)
    assert not result.clean
    assert f"{result.commit}, with changes" in checks_page.of_step("large", result)


def test_a_note_replaces_only_that_of_its_step(tree: Path) -> None:
    first, second = (full.Result("2026-01-01", name, True, True, "", 1) for name in ("abc", "def"))
    for name, result in (("mutations", first), ("large", first), ("mutations", second)):
        full.note(name, result)
    assert full.results() == {"large": first, "mutations": second}
    table = checks_page.of_results(full.results())
    assert [line.split("|")[1].strip(" `") for line in table.splitlines()[2:]] == list(full.STEPS)
    assert table.count("not run yet") == len(full.STEPS) - 2


def test_a_step_of_another_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as told:
        full.main(["large", "larger"])
    assert told.value.code == 2
    assert "found larger" in capsys.readouterr().err


def test_every_test_runs_in_three_orders_with_what_all_has() -> None:
    every, shuffled = full.STEPS["all"], full.STEPS["shuffled"]
    assert shuffled.commands == tuple(f"{every.commands[0]} --shuffle {seed}" for seed in (1, 2, 3))
    assert (shuffled.python, shuffled.packages) == (every.python, every.packages)
    assert full.ORACLE in every.packages


def test_the_orders_of_a_step_are_noted_one_after_the_other(tree: Path) -> None:
    (tree / "pytest.py").write_text("import sys\nprint('7 passed, order', sys.argv[-1])\n", "utf-8")
    result = full.run(full.STEPS["shuffled"], sys.executable, 2)
    assert (result.passed, result.lines) == (True, "7 passed, order 1; 7 passed, order 2; 7 passed, order 3")


def test_every_python_that_is_claimed_is_a_step() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert claimed == list(dict(full.PAIRS))
    assert [numpy for _, numpy in full.PAIRS[1::2]] == ["newest"] * len(claimed)
    for version in claimed:
        assert full.STEPS[f"{version}-oldest"].python == full.STEPS[f"{version}-newest"].python == version
    assert full.interpreter("2.1") is None

"""The checks say what they left out: what may be missing, what was covered, and what docs/checks.md reports."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import checks_page, coverage_by_room
from tests.random_programs.counting import Counts

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
        "  52 %  all",
        "  50 %  ops/reduce",
        " 100 %  pullback",
        "      10 % of src/pullback/ops/reduce/norm.py",
    ]


def test_the_page_states_the_counts_of_the_file() -> None:
    page = checks_page.PAGE.read_text("utf-8")
    assert checks_page.of_counts(Counts(checks_page.COUNTS)) in page


def test_results_go_between_their_marks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page, rows = tmp_path / "checks.md", tmp_path / "rows"
    page.write_text(checks_page.PAGE.read_text("utf-8"), "utf-8")
    rows.write_text("| mutations | passed | 1 mutations: 1 caught | 1 min |\n", "utf-8")
    monkeypatch.setattr(checks_page, "PAGE", page)
    checks_page.main([str(rows)])
    text = page.read_text("utf-8")
    assert "| mutations | passed | 1 mutations: 1 caught | 1 min |\n<!-- /results -->" in text
    assert text.startswith("# What is checked")
    assert text.count("<!-- results -->") == 1
    with pytest.raises(ValueError, match="expected the marks of others"):
        checks_page.written(text, "others", "")

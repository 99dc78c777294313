"""What stands beside the code for a release says the same as the code: workflows, templates, versions, the citation."""

from __future__ import annotations

import re
import tarfile
import zipfile
from pathlib import Path

import pytest

import pullback
from tests import full, release

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.name: path.read_text("utf-8") for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
CLAIMED = list(dict(full.PAIRS))


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("name", ["docs.yml", "release.yml", "tests.yml"])
def test_the_steps_of_a_workflow_are_commands_of_the_repository(name: str) -> None:
    steps = re.findall(r"- run: (.+)", WORKFLOWS[name])
    assert steps
    words = set(re.findall(r"^(\w+)\)$", text("run"), re.MULTILINE))
    for step in steps:
        script, *arguments = step.split()
        assert script in ("./run", ".ci/run", ".ci/full"), step
        assert (ROOT / script).is_file()
        known = {"./run": words, ".ci/full": full.STEPS}.get(script, ())
        assert arguments[:1] == [] or arguments[0] in known, step


def test_the_tests_run_on_every_system_and_python_that_is_claimed() -> None:
    tests = WORKFLOWS["tests.yml"]
    linux_and_mac, windows = re.findall(r"python: (\[.+\])", tests)
    assert re.findall(r"3\.\d+", linux_and_mac) == CLAIMED
    assert set(re.findall(r"3\.\d+", windows)) <= set(CLAIMED)
    for system in ("ubuntu-latest", "macos-latest", "windows-latest"):
        assert system in tests
    assert sorted(re.findall(r"^ +(3\.\d+)$", WORKFLOWS["release.yml"], re.MULTILINE)) == CLAIMED


def test_the_template_of_a_defect_asks_for_what_doctor_says() -> None:
    template = text(".github/ISSUE_TEMPLATE/defect.yml")
    assert "`pullback doctor`" in template
    assert template.count("required: true") == template.count("- type: textarea")


def test_the_version_has_one_place_and_stands_in_the_changelog() -> None:
    assert 'dynamic = ["version"]' in text("pyproject.toml")
    newest = re.findall(r"^## \[?(\d+\.\d+\.\d+)", text("CHANGELOG.md"), re.MULTILINE)
    assert newest[:1] == [pullback.__version__]


@pytest.mark.parametrize("name", [*release.SOURCE_FILES, "docs/stability.md", "docs/zh/stability.md"])
def test_what_a_release_needs_is_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 0


def test_what_is_wrong_with_a_wheel_is_named(tmp_path: Path) -> None:
    wheel, sdist = tmp_path / "pullback-1.0-cp312-cp312-linux_x86_64.whl", tmp_path / "pullback-1.0.tar.gz"
    zipfile.ZipFile(wheel, "w").close()
    tarfile.open(sdist, "w:gz").close()
    found = list(release.faults(wheel, sdist, "1.0"))
    assert found[0].startswith("the wheel of version 1.0 should be pure")
    assert "not in the wheel: pullback/__init__.py" in found
    assert "not in the sdist: pyproject.toml" in found

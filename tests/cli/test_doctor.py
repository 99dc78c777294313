"""`pullback doctor`: what it says of a machine that has everything, nothing, and what does not work."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from pullback.cli import doctor, main
from pullback.compile.backends import c, cache

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A cache of this test, and no compiler that was found before it or is remembered after it."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("PULLBACK_CACHE", str(folder))
    yield
    cache._find.cache_clear()


@pytest.fixture
def _few_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """One extra: importing all of them takes seconds."""
    monkeypatch.setattr(doctor, "EXTRAS", {"terminal": doctor.EXTRAS["terminal"]})


def found(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, doctor.Finding]]:
    """The exit status, and what was said of each thing."""
    status = main.main(["doctor", "--json"])
    findings = [doctor.Finding(**fields) for fields in json.loads(capsys.readouterr().out)]
    return status, {finding.what: finding for finding in findings}


def module(folder: Path, name: str, source: str) -> None:
    """A distribution of this name with one module, as if it were installed in the folder."""
    (folder / f"{name}.py").write_text(source)
    (info := folder / f"{name}-7.5.dist-info").mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 7.5\n")


def test_every_extra_of_users_is_looked_at() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    others = {"test", "dev", "bench", "docs", "demo"} | {"sparse", "special", "gpu12"}  # other names; see gpu13
    assert {*doctor.EXTRAS} == {*extras} - others
    for name, (distributions, _) in doctor.EXTRAS.items():
        for requirement in extras[name]:
            package = re.split(r"[^\w-]", re.sub(r"pullback\[scipy\]", "scipy", requirement))[0]
            assert package in {*distributions, "mpich"}, name


def test_what_is_here_is_said_to_work(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = found(capsys)
    assert status == 0
    assert "fault" not in {finding.state for finding in said.values()}
    assert said["python"].found.startswith(sys.version.split()[0])
    assert (said["compiler"].state == "ok") == c.available()
    assert main.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "What is there works."
    assert {line.split()[1] for line in lines if line.startswith(("ok", "missing"))} == {*said}


def test_where_everything_is_missing_it_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nothing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", nothing)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.delenv("CC", raising=False)
    status, said = found(capsys)
    assert status == 0  # nothing of it is needed
    missing = {what for what, finding in said.items() if finding.state == "missing"}
    assert missing >= {*doctor.EXTRAS, "compiler", "mpiexec"}
    for name in doctor.EXTRAS:
        assert f'pip install "pullback[{name}]"' in said[name].do
    assert "compiled functions run as NumPy" in said["compiler"].found
    assert "gcc or clang" in said["compiler"].do


@pytest.mark.usefixtures("_few_extras")
@pytest.mark.skipif(os.name != "posix", reason="a compiler is asked for on POSIX systems alone")
def test_a_compiler_that_does_not_work_is_a_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false")
    status, said = found(capsys)
    assert status == 1
    assert said["compiler"].state == "fault"
    assert said["compiler"].do
    assert main.main(["doctor"]) == 1
    assert "Does not work: compiler." in capsys.readouterr().out


@pytest.mark.usefixtures("_few_extras")
@pytest.mark.skipif(os.name != "posix", reason="other systems have no such modes")
def test_a_cache_that_others_may_write_is_a_fault(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "cache").chmod(0o777)
    status, said = found(capsys)
    assert status == 1
    assert said["cache"].state == "fault"
    assert "chmod 700" in said["cache"].do


@pytest.mark.usefixtures("_few_extras")
@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("raise OSError('libfoo.so.7: no such file')", "OSError: libfoo.so.7: no such file"),
        ("import os; os._exit(3)", "exit status 3"),
        ("while True: pass", "did not come to an end within"),
    ],
)
def test_an_extra_that_cannot_be_imported_is_a_fault(
    source: str, word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module(tmp_path, "rich", source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    if "while" in source:
        monkeypatch.setattr(doctor, "LIMIT", 0.5)
    status, said = found(capsys)
    assert status == 1
    assert said["terminal"].found.startswith("rich 7.5 cannot be imported: ")
    assert word in said["terminal"].found


@pytest.mark.usefixtures("_few_extras")
def test_a_part_that_breaks_does_not_hide_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> doctor.Finding:
        raise KeyError("Build Dependencies")

    monkeypatch.setattr(doctor, "_numpy", broken)
    status, said = found(capsys)
    assert status == 1
    assert said["numpy"].found == "KeyError: 'Build Dependencies'"
    assert said["python"].state == "ok"

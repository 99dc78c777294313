"""`pullback doctor`: what it says of a machine that has everything, nothing, and what does not work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import pullback
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


@pytest.fixture
def _compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that works, or what says so: a cache is looked for where there is one."""
    monkeypatch.setattr(doctor.c, "failure", lambda: None)
    monkeypatch.setattr(doctor, "_compiler", lambda: doctor.Finding("compiler", "ok", "cc"))


@pytest.mark.usefixtures("_few_extras", "_compiles")
@pytest.mark.parametrize("why", ["no folder", "read-only", "no home"])
def test_a_cache_that_does_not_last_is_said_to_be_missing(
    why: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("PULLBACK_CACHE")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("file" if why == "no folder" else "caches")))
    if why == "no home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", no_home)
    if why == "read-only":
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    status, said = found(capsys)
    assert (status, said["cache"].state) == (0, "missing")
    lost = "there is no home folder" if why == "no home" else f"{cache.place()} cannot be written"
    assert said["cache"].found.startswith(f"{lost}; each process compiles its loops anew, into a temporary folder")
    assert str(cache.directory()) in said["cache"].found
    assert "PULLBACK_CACHE" in said["cache"].do


@pytest.mark.usefixtures("_few_extras", "_compiles")
def test_a_cache_that_cannot_be_made_is_told_another_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path / "file" / "cache"))
    status, said = found(capsys)
    assert (status, said["cache"].state) == (1, "fault")
    assert str(tmp_path / "file" / "cache") in said["cache"].found
    assert said["cache"].do == "name another directory in the environment variable PULLBACK_CACHE"


@pytest.mark.usefixtures("_few_extras", "_compiles")
def test_a_cache_that_was_named_and_cannot_be_written_is_a_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    status, said = found(capsys)
    assert (status, said["cache"].state) == (1, "fault")
    assert said["cache"].found.startswith(f"{tmp_path / 'cache'} cannot be written; ")


NO_NUMPY = "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')"


@pytest.mark.parametrize(
    ("numpy", "why", "what"),
    [
        (NO_NUMPY, "ModuleNotFoundError: No module named 'numpy'", "{pip} install {numpy}"),
        # pip takes one that is broken for installed
        ("raise ImportError('libblas.so.3: no such file')", "ImportError: libblas.so.3: no such file",
         "{pip} install --force-reinstall {numpy}"),
        ("import numpy._core", "ModuleNotFoundError: No module named 'numpy._core'",
         "{pip} install --force-reinstall {numpy}"),
        ("__version__ = '1.26.4'", "numpy 1.26.4 in ", "{pip} install {numpy}"),
        (None, "numpy of no version in ",  # a folder of that name
         "rename {folder}, which hides NumPy; or, where NumPy is not installed, {pip} install {numpy}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [["-m", "pullback"], ["-m", "pullback.bridge.as_torch"], ["pullback"]])
def test_without_numpy_it_says_so_and_how_to_get_it(
    numpy: str | None, why: str, what: str, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "numpy").mkdir()
    if numpy is not None:
        (tmp_path / "numpy" / "__init__.py").write_text(numpy)
    (tmp_path / "pullback").write_text("from pullback.cli.main import main\n")  # as pip writes it
    words = [str(tmp_path / "pullback")] if command == ["pullback"] else command
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "pullback").symlink_to(Path(pullback.__file__).parent)  # it may be installed beside NumPy
    path = os.pathsep.join([str(tmp_path), str(tmp_path / "home")])
    hidden = "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]"
    (tmp_path / "sitecustomize.py").write_text(hidden if numpy is None else "")
    done = subprocess.run(
        [sys.executable, *words, "doctor"], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0] == "pullback needs NumPy 2 or newer, and no other package."
    assert lines[1].startswith(f"  Found: {why}")
    words = {"pip": f'"{sys.executable}" -m pip', "numpy": '"numpy>=2"', "folder": tmp_path / "numpy"}
    assert lines[2:] == [f"  What to do: {what.format(**words)}."]


def test_a_program_without_numpy_gets_an_import_error(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(NO_NUMPY)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text(
        "try:\n    import pullback\nexcept ImportError as error:\n    print(error.name, error)\n"
    )
    (tmp_path / "own" / "__main__.py").write_text("")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    for words in (["-m", "own", "pullback"], ["-c", "import own"]):
        done = subprocess.run(
            [sys.executable, *words], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("numpy pullback needs NumPy 2 or newer")


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

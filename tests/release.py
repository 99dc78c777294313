"""What a release is made of, made and tried: `python -m tests.release --dist dist`.

The wheel and the sdist are built from the tree, their metadata and contents are checked, and the tests of `./run test`
run on the installed wheel, beside the tests of the sdist and far from this tree, for each pair of a Python and a NumPy
that pyproject.toml names: with the newest NumPy and nothing else, and with the oldest and the extras; and those of
compiled functions with gcc, with clang, and with no compiler. What fails is told at the end, so that one fault does not
hide others. A Python or a compiler that is not here fails the release, before anything is made.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.full import PAIRS, interpreter, numpy_package

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

SOURCE_FILES = (
    *("run", "pyproject.toml", "conftest.py", "LICENSE", "CITATION.cff"),
    *("README.md", "README.zh-CN.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
)

# What the tests are written with. The extras of users are left out: a test that needs one says so and is left out too.
TOOLS = ("pytest>=8", "pytest-xdist", "hypothesis")
EXTRAS = "scipy,bfloat16,checkpoint,terminal,plot"
COMPILERS = ("gcc", "clang")


def run(*command: object, **settings: str) -> None:
    """Run a command and print it; CalledProcessError if it fails."""
    print("===", *command, flush=True)
    subprocess.run([str(word) for word in command], cwd=ROOT, env=os.environ | settings, check=True)


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, made in a folder that holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def faults(wheel: Path, sdist: Path, version: str) -> Iterator[str]:
    """What is wrong with the names and the contents of the two files."""
    if wheel.name != f"pullback-{version}-py3-none-any.whl":
        yield f"the wheel of version {version} should be pure, and is called {wheel.name}"
    if sdist.name != f"pullback-{version}.tar.gz":
        yield f"the sdist of version {version} is called {sdist.name}"
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as opened:
        held = {name for name in opened.namelist() if ".dist-info/" not in name}
    yield from (f"not in the wheel: {name}" for name in sorted(wanted - held))
    yield from (f"in the wheel, and not in src: {name}" for name in sorted(held - wanted))
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    yield from (f"not in the sdist: {name}" for name in SOURCE_FILES if name not in names)


def install(own: Path, *packages: object) -> None:
    """Install packages in the environment of this Python; no NumPy is built from its source."""
    words = ("--quiet", "--disable-pip-version-check", "--only-binary", "numpy,scipy")
    run(own, "-m", "pip", "install", *words, *packages)


def fresh(python: str, folder: Path, *packages: object) -> Path:
    """The Python of a new environment with these packages."""
    run(python, "-m", "venv", folder)
    own = folder / "bin" / "python"
    install(own, *packages)
    return own


def missing() -> Iterator[str]:
    """What is claimed, and cannot be tried here."""
    yield from (f"Python {python}" for python in sorted({python for python, _ in PAIRS}) if interpreter(python) is None)
    yield from (compiler for compiler in COMPILERS if shutil.which(compiler) is None)


def passes(own: Path, tests: Path, jobs: int, *words: str, **settings: str) -> bool:
    """Run tests of the sdist on the package that is installed: whether they passed."""
    environment = {"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONPATH": ""} | settings
    code = (
        "import sys, numpy, pullback; assert 'site-packages' in pullback.__file__, pullback.__file__; "
        "print('Python', sys.version.split()[0], 'NumPy', numpy.__version__)"
    )
    print("===", own, *words, settings, flush=True)
    commands = ["-c", code], ["-m", "pytest", "-q", "-n", str(jobs), *words]
    return all(
        subprocess.run([own, *command], cwd=tests, env=os.environ | environment, check=False).returncode == 0
        for command in commands
    )


def tried_everywhere(wheel: Path, sdist: Path, scratch: Path, jobs: int) -> dict[str, bool]:
    """Try the wheel with the tests of the sdist, in fresh environments: whether they passed, for each."""
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch, filter="data")
    (tests,) = scratch.glob("pullback-*")
    shutil.rmtree(tests / "src")  # so that nothing but the wheel can be imported
    quick, passed = ("--quick", "--ignore=tests/house", "tests"), {}
    for version, numpy in PAIRS:
        python = interpreter(version)
        assert python is not None, version
        own = fresh(python, scratch / f"{version}-{numpy}", wheel, numpy_package(numpy), *TOOLS)
        if numpy != "newest":
            install(own, f"{wheel}[{EXTRAS}]", numpy_package(numpy))
        what = f"Python {version} with NumPy {numpy} {'alone' if numpy == 'newest' else 'and the extras'}"
        passed[what] = passes(own, tests, jobs, *quick)
    everywhere = os.environ["PATH"]
    for compiler, path in [*[(name, everywhere) for name in COMPILERS], ("", str(own.parent))]:
        settings = {"CC": compiler, "PATH": path, "PULLBACK_CACHE": tempfile.mkdtemp(dir=scratch)}
        what = compiler or "no compiler"
        passed[what] = passes(own, tests, jobs, "-m", "not torch and not jax", "tests/compile", **settings)
    return passed


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the two files go (dist)")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes at once")
    options = parser.parse_args(arguments)
    version = re.findall(r'^__version__ = "(.+)"$', (SOURCE / "pullback" / "__init__.py").read_text("utf-8"), re.M)[0]
    if absent := [*missing()]:
        print(f"a release is tried with what is claimed, and this is not here: {', '.join(absent)}")
        return 1
    wheel, sdist = built(options.dist.absolute())
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    run("check-wheel-contents", wheel, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found := [*faults(wheel, sdist, version)]:
        print("\n".join(found))
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        passed = tried_everywhere(wheel, sdist, Path(scratch), options.jobs)
    good = ", ".join(name for name, well in passed.items() if well) or "nothing"
    bad = ", ".join(name for name, well in passed.items() if not well)
    print(f"pullback {version} passes with {good}{f'; FAILS with {bad}' if bad else ''}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())

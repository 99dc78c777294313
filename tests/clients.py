"""Libraries that use HIPS autograd: their own test suites, with autograd and with `bridge.autograd` in its place.

``python -m tests.clients --folder DIR`` downloads the source archives of autograd, pymanopt, lifelines and
autograd-gamma from the package registry, and runs each suite twice in this environment, which must have autograd and
the clients: once with autograd itself, once under `pullback.bridge.autograd.install()`. autograd-gamma has no tests in
its archive, so a program written here checks its functions. The examples of autograd that download nothing run as well.

A line for each client says how many of the tests that pass with autograd pass here, and in which time. The exit status
is 1 if one fails that `EXPLAINED` does not name.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]

PLUGIN = """
import random
import numpy as np
import pytest

{install}

@pytest.fixture(autouse=True)
def same_numbers():
    random.seed(42)
    np.random.seed(42)
"""
INSTALL = "import pullback.bridge.autograd\npullback.bridge.autograd.install()"

GAMMA = """
import numpy as np
import autograd_gamma as g
import pytest
from autograd.test_util import check_grads

@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammaincln", "gammainccln"])
def test_incomplete_gamma(name):
    for argnum in (0, 1):
        check_grads(getattr(g, name), argnum, modes=["rev"], order=1)(np.array([1.5, 2.5]), np.array([0.7, 3.0]))

@pytest.mark.parametrize("name", ["betainc", "betaincln"])
def test_incomplete_beta(name):
    for argnum in (0, 1, 2):
        given = np.array([1.5, 2.5]), np.array([2.0, 0.8]), np.array([0.3, 0.6])
        check_grads(getattr(g, name), argnum, modes=["rev"], order=1)(*given)
"""

EXPLAINED: dict[str, str] = {
    "test_const_graph": "the graph of a function is not kept: each call computes all of it",
    "test_const_graph_args": "the graph of a function is not kept: each call computes all of it",
    "test_deprecated_defgrad_wrapper": "a form that autograd deprecates",
    "test_deprecated_defvjp_is_zero_wrapper": "a form that autograd deprecates",
    "test_deprecated_defvjp_wrapper": "a form that autograd deprecates",
    "test_deprecated_quick_grad_check_wrapper": "a form that autograd deprecates",
    "test_max": "the largest of complex numbers, which have no order, is refused",
    "test_min": "the smallest of complex numbers, which have no order, is refused",
    "test_pinv": "it calls a private function of autograd.numpy.linalg",
    "test_rfftn_odd_not_implemented": "autograd refuses it; here it is differentiated",
    "test_wrapped_name_and_docs": "it looks for the words of autograd's docstring",
}
"""Tests and examples of autograd itself that fail here, with the reason."""

EXAMPLES = (
    "bayesian_neural_net bayesian_optimization black_box_svi deep_gaussian_process define_gradient dot_graph "
    "fixed_points fluidsim/fluidsim fluidsim/wing gaussian_process gmm gplvm hmm_em ica logistic_regression lstm "
    "mixture_variational_inference natural_gradient_black_box_svi negative_binomial_maxlike neural_net_regression "
    "ode_net print_trace rkhs rnn rosenbrock sinusoid tanh"
).split()  # all that download nothing
SECONDS = 40  # some examples plot until they are stopped: that many seconds without an error are enough


@dataclass(frozen=True)
class Client:
    """A client: its archive's name, the folder of its tests there, and the options of pytest for them."""

    archive: str
    tests: str
    options: tuple[str, ...] = ()


CLIENTS = (
    Client("autograd", "tests"),
    Client("pymanopt", "tests", ("--continue-on-collection-errors", "--noconftest")),
    Client("lifelines", "lifelines/tests", ("--ignore-glob=*test_plotting.py",)),
)


def unpacked(archive: str, folder: Path) -> Path:
    """The folder of a client's source, downloaded unless it is there."""
    there = sorted(folder.glob(f"{archive}-*/"))
    if not there:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", archive]
        subprocess.run(command, cwd=folder, check=True)
        (packed,) = folder.glob(f"{archive.replace('-', '?')}-*.tar.gz")
        with tarfile.open(packed) as file:
            file.extractall(folder, filter="data")
        there = sorted(folder.glob(f"{archive}-*/"))
    return there[0]


def environment(home: Path) -> dict[str, str]:
    """The variables of a run: no pictures are shown, and this library is found."""
    path = os.pathsep.join([str(home), str(ROOT / "src")])
    return {**os.environ, "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}


def suite(tests: Path, options: Sequence[str], installed: bool) -> dict[str, float | None]:
    """Each test that ran, by its name: the seconds it took, or None if it failed."""
    with tempfile.TemporaryDirectory() as scratch:
        home, report = Path(scratch), Path(scratch) / "report.xml"
        (home / "client_plugin.py").write_text(PLUGIN.format(install=INSTALL * installed), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "client_plugin"]
        (shutil.copytree if tests.is_dir() else shutil.copy)(tests, home / tests.name)  # away from the client's options
        command += [*options, f"--junitxml={report}", tests.name]
        with (home / "output").open("w") as output:
            where = {"cwd": home, "env": environment(home), "stdout": output, "stderr": output}
            subprocess.run(command, check=False, **where)  # type: ignore[call-overload]
        return dict(outcomes(report))


def outcomes(report: Path) -> Iterator[tuple[str, float | None]]:
    """Of pytest's report, each test that was not skipped: its name, and the seconds it took or None if it failed."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("skipped") is None:
            failed = case.find("failure") is not None or case.find("error") is not None
            yield f"{case.get('classname')}::{case.get('name')}", None if failed else float(case.get("time", 0))


def example(script: Path, installed: bool) -> float | None:
    """The seconds in which an example runs to its end, or without an error until it is stopped; None if it fails."""
    command = [sys.executable, *(["-m", "pullback.bridge.autograd"] if installed else []), str(script)]
    start = time.perf_counter()
    try:
        where = {"cwd": script.parents[1], "env": environment(script.parent), "capture_output": True}
        failed = subprocess.run(command, timeout=SECONDS, check=False, **where).returncode != 0  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        failed = False
    return None if failed else time.perf_counter() - start


def compared(name: str, theirs: dict[str, float | None], ours: dict[str, float | None]) -> bool:
    """Print a client's line, and the tests that pass with autograd alone; whether all of these are explained."""
    expected = [test for test, seconds in theirs.items() if seconds is not None]
    lost = [test for test in expected if ours.get(test) is None]
    times = [sum(side[test] or 0 for test in expected if test not in lost) for side in (ours, theirs)]
    reasons = {test: EXPLAINED.get(test.rpartition("::")[2]) for test in lost}
    for test, reason in reasons.items():
        print(f"  {test}: {reason or 'NOT EXPLAINED'}")
    share = (len(expected) - len(lost)) / max(len(expected), 1)
    print(
        f"{name}: {len(expected) - len(lost)} of {len(expected)} that pass with autograd pass here ({share:.1%}), "
        f"in {times[0]:.0f} s for {times[1]:.0f} s"
    )
    return bool(expected) and all(reasons.values())


def main(given: Sequence[str] | None = None) -> int:
    """Run the clients, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*(client.archive for client in CLIENTS), "autograd-gamma", "examples"]
    parser.add_argument(
        "clients", nargs="*", default=known, help="autograd, pymanopt, lifelines, autograd-gamma, examples"
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the archives are, or are downloaded to")
    options = parser.parse_args(given)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    well = True
    for client in CLIENTS:
        if client.archive in options.clients:
            source = unpacked(client.archive, folder)
            runs = [suite(source / client.tests, client.options, installed) for installed in (False, True)]
            well &= compared(source.name, *runs)
    if "autograd-gamma" in options.clients:
        program = folder / "gamma" / "test_gamma.py"
        program.parent.mkdir(exist_ok=True)
        program.write_text(GAMMA, encoding="utf-8")
        well &= compared("autograd-gamma", *[suite(program, (), installed) for installed in (False, True)])
    if "examples" in options.clients:
        scripts = [unpacked("autograd", folder) / "examples" / f"{name}.py" for name in EXAMPLES]
        well &= compared("examples", *[{s.stem: example(s, i) for s in scripts} for i in (False, True)])
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())

"""What holds for every test of the project: those in `tests/`, in docstrings, and in pages of documentation.

The random seed is fixed and printed; a test that leaves a global mode changed behind it fails; the examples in Markdown
pages are run; tests that need PyTorch, the oracle, are left out where it is missing, and counted.
"""

from __future__ import annotations

import doctest
import importlib.metadata
import importlib.util
import os
import random
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

import pullback
from pullback.table.nodes import Fused
from tests import quick

ROOT = Path(__file__).parent
LEFT_OUT, FILES_LEFT_OUT = pytest.StashKey[int](), pytest.StashKey[int]()  # how many tests, and files of them
SEED = int(os.environ.get("PULLBACK_TEST_SEED", "20260713"))

# The same examples in every run, but for those who ask for others; no test may fail for being slow.
hypothesis.settings.register_profile("pullback", derandomize="PULLBACK_TEST_SEED" not in os.environ, deadline=None)
hypothesis.settings.load_profile("pullback")

# The packages whose absence leaves an example of the documentation out.
OPTIONAL = ("torch", "jax", "cupy", "mpi4py")
MISSING = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
A_COMPILER = 'shutil.which("cc")'  # what a page asks that needs one
if not any(map(shutil.which, ("cc", "gcc", "clang"))):
    MISSING.append(A_COMPILER)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--low-thresholds`: run the code for large arrays on the tests' small ones; `--shuffle N`: in another order."""
    parser.addoption("--low-thresholds", action="store_true", help="lower every size of tests/thresholds.py")
    parser.addoption("--count-everything", action="store_true", help="count what every test runs as covered")
    parser.addoption("--quick", action="store_true", help="what a newcomer runs: see tests/quick.py")
    parser.addoption("--day", metavar="DATE", help="of the tests that take turns, run a third that the date chooses")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in an order that this number chooses")


def pytest_configure(config: pytest.Config) -> None:
    """Lower the thresholds, in every process of the run, before a test is collected.

    What a process's first passes warn of must not depend on the order of tests: a test of it turns it on.
    """
    pullback.autograd.api.FirstPasses.left = 0
    if config.getoption("--low-thresholds"):
        importlib.import_module("tests.thresholds").lower()


def pytest_report_header(config: pytest.Config) -> str:
    """Say what the run depends on, and how long a quick one takes."""
    oracle = "not installed" if "torch" in MISSING else importlib.metadata.version("torch")
    versions = f"pullback: random seed {SEED} (PULLBACK_TEST_SEED), NumPy {np.__version__}, torch {oracle}"
    return f"{versions}\n{quick.HEADER}" if config.getoption("--quick") else versions


ERRORS_OF_NUMPY = np.geterr()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test starts from the same random numbers, errors and warnings, in whatever order and company it runs."""
    np.seterr(**ERRORS_OF_NUMPY)
    pullback.errors.FIRST.clear()
    random.seed(SEED)
    np.random.seed(SEED % 2**32)
    pullback.manual_seed(SEED)


@pytest.fixture
def untraced() -> Iterator[None]:
    """Run the test without a debugger or coverage, which make frames keep what their variables held."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


def _switches() -> dict[Any, dict[str, Any]]:
    """What scripts may set in `pullback.backends`, by the library."""
    libraries = (pullback.backends.cudnn, pullback.backends.mkldnn, pullback.backends.cuda.matmul)
    return {library: dict(vars(library)) for library in libraries}


@pytest.fixture(autouse=True)
def _leaves_the_modes_alone() -> Iterator[None]:
    """Fail the test that changes a mode for all that come after it; and change it back for them."""
    grad_mode, dtype, fused = pullback.is_grad_enabled(), pullback.get_default_dtype(), Fused.enabled
    switches = _switches()
    yield
    leaked = []
    if pullback.is_grad_enabled() != grad_mode:
        leaked.append(f"the grad mode (is_grad_enabled() was {grad_mode})")
        pullback.set_grad_enabled(grad_mode)
    if pullback.get_default_dtype() != dtype:
        leaked.append(f"the default dtype (was {dtype}, now {pullback.get_default_dtype()})")
        pullback.set_default_dtype(dtype)
    if Fused.enabled != fused:
        leaked.append(f"backends.fused.enabled (was {fused})")
        Fused.enabled = fused
    for library, now in _switches().items():
        if (before := switches.get(library, now)) != now:
            leaked.append(f"the switches of {library.__name__}")
            vars(library).update(before)
    if leaked:
        pytest.fail(f"the test left changed behind it: {', '.join(leaked)}", pytrace=False)


# -- the examples in Markdown pages ------------------------------------------------------------------------------------


class _FencedParser(doctest.DocTestParser):
    """Finds examples in fenced blocks: the closing fence ends the expected output, as a blank line does."""

    def parse(self, string: str, name: str = "<string>") -> list[str | doctest.Example]:
        return super().parse(re.sub(r"^\s*```\s*$", "", string, flags=re.MULTILINE), name)


class _MarkdownPage(pytest.Module):
    """A page whose `>>>` examples are one test, run from top to bottom with one set of names."""

    def collect(self) -> Iterator[pytest.DoctestItem]:
        flags = sum(doctest.OPTIONFLAGS_BY_NAME[name] for name in self.config.getini("doctest_optionflags"))
        test = _FencedParser().get_doctest(self.path.read_text("utf-8"), {}, self.name, str(self.path), 0)
        if test.examples:
            runner = doctest.DebugRunner(verbose=False, optionflags=flags)
            yield pytest.DoctestItem.from_parent(self, name=test.name, runner=runner, dtest=test)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the pages of documentation."""
    return _MarkdownPage.from_parent(parent, path=file_path) if file_path.suffix == ".md" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the docstrings of a bridge to a library that is not installed: its modules cannot be imported. And
    what type checkers alone read, and in a quick run the files that it leaves out whole."""
    parts = collection_path.parts
    if parts[-2:] == ("tests", "typing"):
        return True
    if config.getoption("--quick") and collection_path.is_relative_to(ROOT) and collection_path.is_file():
        path = collection_path.relative_to(ROOT).as_posix()
        if quick.is_file_left_out(path):
            if parts[-1].startswith("test_") or parts[-1].endswith(".md"):
                config.stash[FILES_LEFT_OUT] = config.stash.get(FILES_LEFT_OUT, 0) + 1
            return True
    within = [parts[i + 1] for i in range(len(parts) - 1) if parts[i] == "bridge" and "src" in parts[:i]]
    return True if any(name in MISSING for name in within) else None


# -- what is counted as covered ----------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a test that is not counted as covered without the tracer that counts.

    Those of the quick run are counted. To count the others would double the time of all tests: `--count-everything`
    does, in `.ci/full`. The marker `no_cover` of pytest-cov takes away one tracer of two in the processes of
    pytest-xdist.
    """
    tracer, counted = sys.gettrace(), quick.is_quick(item.nodeid)
    if counted or item.config.getoption("--count-everything"):
        return (yield)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


# -- what is left out where an optional package is missing -------------------------------------------------------------


def _needs(item: pytest.Item) -> list[str]:
    """The optional packages a test needs: by its marker, or because an example of its page imports them."""
    if isinstance(item, pytest.DoctestItem):
        source = "".join(example.source for example in item.dtest.examples)
        imported = [name for name in OPTIONAL if re.search(rf"^\s*(import|from) {name}\b", source, re.MULTILINE)]
        return imported + [A_COMPILER] * (A_COMPILER in source)
    return [name for name in ("torch", "jax") if item.get_closest_marker(name)]


# What SciPy and the like compute. Where one is missing, a test that asks for it is left out, and counted;
# where it is installed, an error that says so is a failure as any other.
EXTRAS = {"scipy": "SciPy", "ml_dtypes": "ml_dtypes", "matplotlib": "matplotlib", "rich": "rich", "sklearn": "sklearn"}
EXTRAS |= {"nbclient": "nbclient", "nbformat": "nbformat"}  # of the notebooks
ABSENT = {name: word for name, word in EXTRAS.items() if importlib.util.find_spec(name) is None}


def _absent(error: str) -> str | None:
    """The reason to leave a test out, if its error says that a package is missing which is indeed not here."""
    for name, word in ABSENT.items():
        if re.search(rf"No module named '{name}[.']|\b{word}, which is not installed|needs {word}\.", error):
            return f"they need {word}, which is not installed"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Leave a file of tests out that imports a package which is not here."""
    report: Any = yield
    if report.failed and (reason := _absent(str(report.longrepr))):
        report.outcome, report.longrepr, report.result = "skipped", (str(collector.path), 1, reason), []
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Leave a test out that asks for a package which is not here."""
    report: Any = yield
    if report.failed and (reason := _absent(str(report.longrepr))):
        report.outcome, report.longrepr = "skipped", (str(item.path), 1, reason)
    return report


def _leave_out_what_is_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the quick run, or those of the day, and count the others."""
    if config.getoption("--quick"):
        kept = [i for i in items if quick.is_quick(i.nodeid) and not any(map(i.get_closest_marker, quick.MARKED))]
    else:
        kept = [i for i in items if quick.is_of_the_day(i.nodeid, config.getoption("--day"))]
    config.stash[LEFT_OUT] = len(items) - len(kept)
    items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints the summary how many tests, and files of them, were left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = [session.config.stash.get(k, 0) for k in (LEFT_OUT, FILES_LEFT_OUT)]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take the numbers from a process of pytest-xdist."""
    tests, files = getattr(node, "workeroutput", {}).get("left_out", (0, 0))
    node.config.stash[LEFT_OUT], node.config.stash[FILES_LEFT_OUT] = tests, files


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that need a package which is not there, and put them in another order if asked to."""
    if config.getoption("--quick") or config.getoption("--day"):
        _leave_out_what_is_long(config, items)
    if config.getoption("--shuffle") is not None:
        random.Random(config.getoption("--shuffle")).shuffle(items)
    on_a_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_a_gpu and not pullback.cuda.is_available():
        for item in on_a_gpu:
            item.add_marker(pytest.mark.skip(reason="they need a GPU: CuPy or a GPU is missing, so nothing ran on one"))
    for item in items:
        for name in _needs(item):
            if name in ("torch", "jax"):  # an example of a page or a docstring is chosen by its host as well
                item.add_marker(name)
        for name in set(_needs(item)) & set(MISSING):
            reason = (
                "there is no C compiler" if name == A_COMPILER else f"could not import '{name}': it is not installed"
            )
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, a line for each reason: above all for want of the oracle."""
    left_out: dict[str, set[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if "'torch'" in reason:
            reason = "they compare with PyTorch, which is not installed (pip install torch==2.13.0)"
        left_out.setdefault(reason, set()).add(report.nodeid)
    config = terminalreporter.config
    long, files = config.stash.get(LEFT_OUT, 0), config.stash.get(FILES_LEFT_OUT, 0)
    if left_out or long or files:
        terminalreporter.write_sep("-", "left out", yellow=True)
    if long or files:
        why = "this was a quick run" if config.getoption("--quick") else "they are of another day"
        terminalreporter.write_line(f"{_count(long, files)}, because {why} (./run test --all runs them)")
    for reason, nodes in left_out.items():
        files = sum("::" not in node for node in nodes)
        terminalreporter.write_line(f"{_count(len(nodes) - files, files)}, because {reason}")


def _count(tests: int, files: int) -> str:
    return f"tests: {tests}" + (f", and whole files of tests: {files}" if files else "")

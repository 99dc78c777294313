"""The benchmarks' honesty: wrong values are never timed, the numbers are the clock's, the sides take turns."""

from __future__ import annotations

import dataclasses
import gc
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from benchmarks import command, environment, models, probe, processes, report, rows
from benchmarks.apart import Apart, Process
from benchmarks.harness import Here, Program, Result, Row, SideError, Timing, compare, here, measure

NOTHING = ModuleType("nothing")
ROWS = {row.name: row for row in rows.ROWS}


class PlantedClock:
    """A clock that stands still but for the seconds that a side's work says it takes."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.now

    def lasting(self, seconds: float | list[float], result: Any = (1.0,)) -> Callable[[ModuleType], Program]:
        """A maker of programs whose work takes so long (in turn, where it is a list; nothing when the list is over)."""
        remaining = [seconds] if isinstance(seconds, float) else list(seconds)

        def work(_: None) -> Any:
            if isinstance(seconds, float):
                self.now += seconds
            elif remaining:
                self.now += remaining.pop(0)
            return result

        return lambda _: Program(work, lambda arrays: [np.asarray(array) for array in arrays])


def row(sides: dict[str, Callable[[ModuleType], Program]], operations: int = 1, budget: float | None = 0.5) -> Row:
    """A row made of planted sides."""
    return Row("planted", "planted work", operations, budget, sides)


def run(planted: Row, clock: PlantedClock, **options: Any) -> Result:
    """Measure a planted row."""
    return measure(planted, here(planted, dict.fromkeys(planted.sides, NOTHING), clock), **options)


def compared(planted: Row, modules: dict[str, ModuleType]) -> dict[str, Program]:
    """The programs of the sides whose modules are there, if they agree."""
    sides = here(planted, modules)
    compare(planted, sides)
    return {name: side.program for name, side in sides.items()}


# -- what is compared --------------------------------------------------------------------------------------------------

VALUE, GRADIENT = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ((VALUE * 1.001, GRADIENT), "pullback: array 0 differs from torch's"),
        ((VALUE, -GRADIENT), "pullback: array 1 differs from torch's"),
        ((VALUE, GRADIENT * np.nan), "pullback: array 1 differs from torch's"),
        ((VALUE, GRADIENT[:1]), "pullback: array 1 differs from torch's"),
        ((VALUE, GRADIENT.astype(np.float64)), "pullback: array 1 has dtype float64, torch's has float32"),
        ((VALUE,), "pullback returns 1 arrays, torch 2"),
    ],
    ids=["value", "gradient", "nan", "shape", "dtype", "number"],
)
def test_a_side_that_is_wrong_is_refused_before_anything_is_timed(result: Any, reason: str) -> None:
    clock = PlantedClock()
    sides = {"torch": clock.lasting(1.0, (VALUE, GRADIENT)), "pullback": clock.lasting(1.0, result)}
    refused = run(row(sides), clock)
    assert refused.void is not None
    assert refused.void.startswith(reason)
    assert refused.timings == {}
    assert refused.met() is None
    assert clock.asked == 0


def test_a_side_that_fails_is_refused_before_anything_is_timed() -> None:
    def broken(_: ModuleType) -> Program:
        raise AttributeError("there is no such function")

    clock = PlantedClock()
    refused = run(row({"torch": clock.lasting(1.0), "pullback": broken}), clock)
    assert refused.void == "pullback fails: AttributeError: there is no such function"
    assert clock.asked == 0


def test_rounding_is_no_difference() -> None:
    clock = PlantedClock()
    sides = {"torch": clock.lasting(1.0, (VALUE,)), "pullback": clock.lasting(1.0, (VALUE * np.float32(1 + 2**-22),))}
    assert run(row(sides), clock).void is None


# -- what is timed -----------------------------------------------------------------------------------------------------


def test_times_and_ratios_are_those_of_the_clock() -> None:
    clock = PlantedClock()
    sides = {"torch": clock.lasting(0.004), "pullback": clock.lasting(0.001), "jax": clock.lasting(0.010)}
    result = run(row(sides, operations=100), clock, repeat=5)
    assert result.timings["torch"].runs == pytest.approx([40.0] * 5)
    assert result.timings["pullback"].median == pytest.approx(10.0)
    assert result.ratio("pullback") == pytest.approx(0.25)
    assert result.ratio("jax") == pytest.approx(2.5)
    assert result.ratio("torch") == 1.0
    assert result.ratio("mygrad") is None


@pytest.mark.parametrize(("budget", "met"), [(0.24, False), (0.26, True), (None, None)])
def test_a_budget_is_met_or_not(budget: float | None, met: bool | None) -> None:
    clock = PlantedClock()
    sides = {"torch": clock.lasting(0.004), "pullback": clock.lasting(0.001)}
    assert run(row(sides, budget=budget), clock).met() is met


def test_without_the_reference_there_is_no_ratio_and_no_verdict() -> None:
    clock = PlantedClock()
    result = run(row({"pullback": clock.lasting(0.001)}), clock)
    assert result.timings["pullback"].median == pytest.approx(1000.0)
    assert result.ratio("pullback") is None
    assert result.met() is None


def test_the_median_and_the_quartiles_do_not_see_one_slow_run() -> None:
    timing = Timing([1.0, 2.0, 3.0, 4.0, 1000.0])
    assert timing.median == 3.0
    assert timing.quartiles == (2.0, 4.0)


def test_a_side_is_not_charged_for_the_comparison_nor_for_finding_the_count() -> None:
    clock = PlantedClock()
    # One comparison and three trials, of one second each; then the runs.
    sides = {"torch": clock.lasting([1.0] * 4 + [7e-6, 5e-6, 6e-6])}
    assert run(row(sides), clock, repeat=3).timings["torch"].runs == pytest.approx([7.0, 5.0, 6.0])


def test_sides_take_turns_and_nobody_is_always_first() -> None:
    clock, order = PlantedClock(), []

    def noting(side: str) -> Callable[[ModuleType], Program]:
        def prepare() -> None:
            order.append(side)

        return lambda _: Program(lambda _: None, lambda _: [], prepare)

    run(row({side: noting(side) for side in "abc"}), clock, repeat=3)
    assert order == list("abc" + "abc" + "bca" + "cab")


def test_short_work_fills_a_run_and_prepared_work_is_done_once() -> None:
    clock, calls = PlantedClock(), {"short": 0, "prepared": 0}

    def counting(name: str, prepare: Callable[[], None] | None) -> Callable[[ModuleType], Program]:
        def work(_: None) -> None:
            calls[name] += 1
            clock.now += 0.001

        return lambda _: Program(work, lambda _: [], prepare)

    sides = {"short": counting("short", None), "prepared": counting("prepared", lambda: None)}
    result = run(row(sides), clock, repeat=2, seconds=0.02)
    assert calls == {"short": 1 + 3 + 2 * 20, "prepared": 1 + 2}
    assert result.timings["short"].median == pytest.approx(1000.0)
    assert result.timings["prepared"].median == pytest.approx(1000.0)


@pytest.mark.parametrize("collector", [True, False])
def test_the_garbage_collector_is_the_same_for_all_and_as_before_afterwards(collector: bool) -> None:
    clock, enabled = PlantedClock(), []
    program = Program(lambda _: enabled.append(gc.isenabled()), lambda _: [], prepare=list)
    run(row({"a": lambda _: program, "b": lambda _: program}), clock, repeat=3, collector=collector)
    assert enabled == [True] * 2 + [collector] * 6
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


# -- what is shown -----------------------------------------------------------------------------------------------------

RESULTS = [
    Result(row({}), {"torch": Timing([4.0, 4.0, 4.0]), "pullback": Timing([1.0, 2.0, 3.0])}),
    Result(row({}, budget=0.4), {"torch": Timing([123.4, 123.4]), "pullback": Timing([61.7, 61.7])}),
    Result(row({}), void="pullback: array 0 differs\nfrom torch's"),
]


def test_the_table_in_plain_text() -> None:
    assert report.plain(RESULTS).splitlines() == [
        "row      side      us per op  quartiles   x torch  budget  met",
        "planted  torch     4.00       4.00..4.00  1.000",
        "planted  pullback  2.00       1.50..2.50  0.500    0.50    yes",
        "planted  torch     123        123..123    1.000",
        "planted  pullback  61.7       61.7..61.7  0.500    0.40    NO",
    ]


def test_a_row_that_was_not_timed_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    why = "planted: planted work -- not timed: pullback: array 0 differs from torch's"
    assert report.notes(RESULTS) == ["planted: planted work", "planted: planted work", why]
    assert f"* {why}" in report.markdown(RESULTS, {}).splitlines()
    report.show(RESULTS, {})
    assert why in capsys.readouterr().out.splitlines()


def test_the_machine_is_told_with_the_versions_that_run() -> None:
    told = report.machine(["pullback", "numpy", "compiled"])  # the last is a side, and no package
    assert (told["pullback"], told["numpy"]) == (pullback.__version__, np.__version__)
    assert told["compiled"] == "from source"


def test_the_table_in_markdown() -> None:
    lines = report.markdown(RESULTS[:1], {"CPU": "an abacus", "cores": 1}).splitlines()
    assert lines == [
        "CPU: an abacus; cores: 1",
        "",
        "| row | side | us per op | quartiles | x torch | budget | met |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
        "| planted | torch | 4.00 | 4.00..4.00 | 1.000 |  |  |",
        "| planted | pullback | 2.00 | 1.50..2.50 | 0.500 | 0.50 | yes |",
        "",
        "* planted: planted work",
    ]


def test_the_table_without_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    report.show(RESULTS, {"CPU": "an abacus"})
    assert capsys.readouterr().out.endswith(report.plain(RESULTS) + "\n")


def test_the_table_with_rich(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    report.show(RESULTS, {"CPU": "an abacus"})
    shown = capsys.readouterr().out
    assert "an abacus" in shown
    assert all(word in shown for word in ("planted", "pullback", "1.50..2.50", "yes", "NO"))


def test_figures_have_their_unit_and_budgets_of_both_kinds_are_shown() -> None:
    figures = {"torch": Timing([800.0, 800.0]), "pullback": Timing([360.0, 360.0])}
    small = Row("memory", "bytes", 1, 0.5, {}, unit="B", most={"pullback": 400})
    line = ("memory", "pullback", "360 B", "360..360", "0.450", "0.50, 400 B", "yes")
    assert report.lines([Result(small, figures)])[1] == line
    written = report.as_json([Result(small, figures)], {})["rows"][0]
    assert written["most_B"] == {"pullback": 400}
    assert written["sides"]["torch"] == {
        "median_B": 800.0,
        "quartiles_B": (800.0, 800.0),
        "ratio_to_torch": 1.0,
        "runs_B": [800.0, 800.0],
    }


def test_the_machine_says_which_kernels_openblas_has_chosen() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    chosen = {library["architecture"] for library in threadpoolctl.threadpool_info() if "numpy" in library["filepath"]}
    if not chosen:
        pytest.skip("NumPy brings no OpenBLAS of its own here")
    assert {report.openblas_kernel()} == chosen
    assert report.machine(["pullback"])["OpenBLAS"] == report.openblas_kernel()


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_prints_markdown_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    argv = ["--rows", "wide-plain", "--sides", "pullback", "--repeat", "2", "--markdown", "--json", str(file)]
    assert command.main(argv) == 0
    shown = capsys.readouterr().out
    assert "| wide-plain | pullback |" in shown
    assert f"numpy: {np.__version__}" in shown
    written = json.loads(file.read_text("utf-8"))
    (written_row,) = written["rows"]
    assert written_row["name"] == "wide-plain"
    assert list(written_row["sides"]) == ["pullback"]
    assert len(written_row["sides"]["pullback"]["runs_us"]) == 2
    assert written["about"]["runs"] == 2


def test_the_command_fails_where_a_row_is_void(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Program:
        raise ValueError("no such luck")

    monkeypatch.setattr(command, "Apart", lambda row, side: Here(broken))
    monkeypatch.setattr(command, "ROWS", [row({"pullback": lambda _: broken()})])
    assert command.main(["--sides", "pullback", "--markdown"]) == 1
    assert "not timed: pullback fails: ValueError: no such luck" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--repeat", "1"], "quartiles need at least 2 runs"),
        (["--threads", "0"], "needs at least 1 thread"),
        (["--threads", "two"], "invalid int value: 'two'"),
        (["--thread", "2"], "unrecognized arguments: --thread 2"),
    ],
)
def test_what_the_command_refuses(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(argv)
    assert said in capsys.readouterr().err


def python(*arguments: str, **variables: str) -> str:
    """What a fresh interpreter prints, in the checkout, with these variables set."""
    path = os.pathsep.join([str(Path(pullback.__file__).parents[1]), str(processes.ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=processes.ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_library_is_held_to_an_older_processor_nor_loaded_before_that_is_said() -> None:
    program = "import benchmarks.environment, os, sys; print('numpy' in sys.modules, 'OPENBLAS_CORETYPE' in os.environ)"
    assert python("-c", program, OPENBLAS_CORETYPE="Prescott").split() == ["False", "False"]
    kernel = "from benchmarks import environment, report; print('OpenBLAS:', report.openblas_kernel() + ';')"
    argv = ["-m", "benchmarks", "--rows", "wide-plain", "--sides", "pullback", "--repeat", "2", "--markdown"]
    assert python("-c", kernel).strip() in python(*argv, OPENBLAS_CORETYPE="Prescott")


def test_compiled_functions_compete_with_torchs_compiler_and_jaxs() -> None:
    rows = [row.name for row in command.ROWS if "compiled" in row.sides and not {"inductor", "jit"} <= {*row.sides}]
    assert rows == [
        *("jacrev", "jacfwd", "hessian"),  # torch.func's transforms are not compiled there
        *("taylor-8", "laplacian", "laplacian-float32"),  # nor nested
        "compiled-size",  # JAX leaves nothing on the disk
    ]


@pytest.mark.parametrize("argv", [["--threads", "2"], ["--threads=2"]], ids=" ".join)
def test_each_side_has_as_many_threads_as_were_asked_for(argv: list[str]) -> None:
    """Each library is told before it is loaded, and pullback, which can be told later, has been."""
    assert environment.threads_in(["--rows", "chain", *argv]) == 2
    assert "threads: 2;" in python("-m", "benchmarks", *_ONE, *argv)
    assert "threads: 1;" in python("-m", "benchmarks", *_ONE)


_ONE = ["--rows", "wide-plain", "--sides", "pullback", "--repeat", "2", "--markdown"]


# -- sides in processes of their own -----------------------------------------------------------------------------------


def test_a_side_works_in_a_process_of_its_own() -> None:
    sides = {"pullback": Apart("wide-plain", "pullback")}
    try:
        (y, _) = sides["pullback"].arrays()
        np.testing.assert_array_equal(y, rows.WIDE[0] + rows.WIDE[1])
        assert sides["pullback"]._process._process.pid != os.getpid()
        result = measure(ROWS["wide-plain"], sides, repeat=3)
    finally:
        sides["pullback"].close()
    assert len(result.timings["pullback"].runs) == 3
    assert all(0.1 < figure < 10_000 for figure in result.timings["pullback"].runs)
    assert not sides["pullback"]._process._process.is_alive()


def _answers(word: str) -> Callable[..., Any]:
    """What a process in these tests does: it divides, or ends."""
    return lambda a, b: f"{word} {a / b}" if a else os._exit(b)


def test_what_fails_in_a_process_is_told_and_a_process_that_ends_as_well() -> None:
    process = Process(_answers, "it is")
    try:
        assert process.ask(3, 2) == "it is 1.5"
        with pytest.raises(SideError, match="ZeroDivisionError: division by zero"):
            process.ask(1, 0)
        assert process.ask(1, 4) == "it is 0.25"
        with pytest.raises(SideError, match="its process ended, with code 7"):
            process.ask(0, 7)
        with pytest.raises(SideError, match="its process ended, with code 7"):
            process.ask(1, 4)
    finally:
        process.close()


def test_a_side_that_is_not_in_the_suite_makes_its_row_void() -> None:
    result = measure(row({}), {"pullback": Apart("planted", "pullback")})
    assert result.void == "pullback fails: ValueError: not enough values to unpack (expected 1, got 0)"


# -- rows in processes of their own ------------------------------------------------------------------------------------


def test_a_figure_is_recorded_in_the_place_of_a_time() -> None:
    clock, figures = PlantedClock(), iter([9.0, 3.0, 5.0, 4.0])
    program = Program(lambda _: next(figures), lambda _: [], figure=float)
    planted = Row("planted", "planted", 100, None, {"pullback": lambda _: program}, unit="MB", most={"pullback": 4.0})
    result = run(planted, clock, repeat=3)
    assert result.timings["pullback"].runs == [3.0, 5.0, 4.0]  # the first was compared, and not counted
    assert result.met()
    assert clock.asked == 0
    assert Result(row({}, budget=None), result.timings).met() is None


def test_a_row_that_takes_long_has_fewer_runs() -> None:
    planted = dataclasses.replace(row({"pullback": lambda _: Program(lambda _: None, lambda _: [])}), runs=2)
    assert len(run(planted, PlantedClock(), repeat=5).timings["pullback"].runs) == 2
    assert len(run(dataclasses.replace(planted, runs=9), PlantedClock(), repeat=3).timings["pullback"].runs) == 3


@pytest.mark.parametrize("cached", [False, True])
def test_the_first_call_of_a_compiled_program_is_measured_with_an_empty_cache(cached: bool) -> None:
    """It gives what the row's other sides give, and leaves nothing in the user's own cache."""
    found = processes.probed("compiling", pullback, row="convnet", cached=cached)
    (eager,) = [one.sides["pullback"](pullback) for one in models.ROWS if one.name == "convnet"]
    result = found.once()
    for ours, expected in zip(found.arrays(result), eager.arrays(eager.once()), strict=True):
        every = expected.reshape(-1)[:: max(1, expected.size // 100)]
        np.testing.assert_allclose(ours, every, rtol=2e-3, atol=1e-5)
    figures = [found.figure(found.once()) for _ in range(2)]
    assert all(figure > (0.05 if not cached else 1) for figure in figures)  # the second compiles again


@pytest.mark.parametrize(("most", "met"), [(3.9, False), (4.0, True)])
def test_a_budget_of_its_own_counts_besides_that_of_the_ratio(most: float, met: bool) -> None:
    figures = {"torch": Timing([10.0, 10.0]), "pullback": Timing([4.0, 4.0])}
    assert Result(Row("planted", "planted", 1, 0.5, {}, most={"pullback": most}), figures).met() is met
    assert Result(Row("planted", "planted", 1, 0.3, {}, most={"pullback": most}), figures).met() is False
    assert Result(Row("planted", "planted", 1, 0.3, {}, most={"torch": most}), figures).met("torch") is False


PROCESSES = {row.name: row for row in processes.ROWS}
FEW = 300


def chain(module: ModuleType) -> Program:
    """The row of memory, with fewer nodes."""
    return processes.probed("memory", module, nodes=FEW, x=rows.X.tolist(), c=rows.C.tolist(), g=rows.G.tolist())


def test_what_the_row_of_memory_computes() -> None:
    found = chain(pullback).once()
    y, gradient = rows.X, rows.G
    for _ in range(FEW):
        y, gradient = y * rows.C, gradient * rows.C
    np.testing.assert_allclose(found["arrays"], [y, gradient], rtol=1e-6)
    assert math.isfinite(found["figure"])


@pytest.mark.torch
def test_both_sides_of_the_row_of_memory_compute_the_same() -> None:
    torch = pytest.importorskip("torch")
    planted = row({"torch": chain, "pullback": chain})
    assert list(compared(planted, {"torch": torch, "pullback": pullback})) == ["torch", "pullback"]


def test_the_row_of_importing_computes_with_what_was_imported() -> None:
    programs = compared(PROCESSES["import"], {"pullback": pullback, "numpy": np})
    for program in programs.values():
        found = program.once()
        assert found["arrays"] == [[2.0, 2.0, 2.0]]
        assert found["figure"] > 0


def test_a_process_that_fails_makes_the_row_void() -> None:
    nothing = ModuleType("nothing")
    nothing.__file__ = "nowhere/nothing/__init__.py"
    refused = run(row({"pullback": lambda _: processes.probed("importing", nothing)}), PlantedClock())
    assert refused.void == "pullback fails: RuntimeError: nothing: ModuleNotFoundError: No module named 'nothing'"


def test_the_size_is_that_of_the_package_and_of_what_it_requires() -> None:
    programs = compared(PROCESSES["size"], {"pullback": pullback, "numpy": np})
    ours, numpys = programs["pullback"].once(), programs["numpy"].once()
    assert (ours["of"], numpys["of"]) == (["numpy", "pullback"], ["numpy"])
    source = [file for file in Path(pullback.__file__).parent.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    size = sum(file.stat().st_size for file in source) / 1e6
    assert ours["figure"] - numpys["figure"] == pytest.approx(size, rel=0.1)


def test_what_is_required_is_told_without_extras() -> None:
    assert list(probe._required("pullback")) == ["numpy"]


def test_the_budgets_are_those_that_the_documentation_promises() -> None:
    budgets = {row.name: row.most or row.budget for row in command.ROWS}
    promised: dict[str, Any] = {"chain": 0.45, "function": 0.4, "mixed": 0.7, "long": 0.7, "million": 0.7}
    promised |= {"million-freed": 0.8, "leaf-large": 0.9, "leaf-small": 0.5, "sparse": 0.02, "index": 1.0}
    promised |= {"size": {"pullback": 62}, "million-memory": {"pullback": 800}}
    promised |= {"swish-1e4": {"whole": 10}, "compiled-call": {"whole": 6}}
    promised |= dict.fromkeys(["wide-plain", "wide-recorded", "wide-gradients", "wide-saved"], 0.4)
    promised |= dict.fromkeys(["swish-1e6", "swish-1e7"], 0.7) | dict.fromkeys(["jacrev", "jacfwd", "hessian"], 0.6)
    promised |= dict.fromkeys(["mlp-64", "mlp-512", "rnn", "transformer"], 1.0)
    promised |= dict.fromkeys(["convnet", "convnet-nn"], 0.9)
    assert {name: budgets.get(name) for name in promised} == promised
    limits = {row.name: row.limits for row in command.ROWS}
    assert limits["import"] == {("pullback", "numpy"): 1.6}
    for name in ("rnn", "scan", "transformer", "mlp-64", "mlp-512", "step-64", "step-512"):
        assert limits[name] == {("compiled", "jit"): 1.0, ("compiled", "inductor"): 1.0}
    assert {limits[name]["whole", "jit"] for name in ("function", "mixed")} == {1.2}


# -- the rows ----------------------------------------------------------------------------------------------------------


# The chain of a million nodes is long enough to be computed once: its rows are tested with fewer.
NODES = {"long": rows.LONG, "million": 3000}
TESTED = ROWS | {row.name: row for row in rows._long("million", NODES["million"])}


def expected(name: str) -> list[np.ndarray]:
    """What a row's programs return, by NumPy alone."""
    if not name.startswith("wide"):
        y, gradient = rows.X, rows.G
        for _ in range(NODES.get(name.partition("-")[0], rows.SHORT)):
            y, gradient = y * rows.C, gradient * rows.C
        return [y, gradient]
    ys = [rows.WIDE[0] + rows.WIDE[1], rows.WIDE[2] + rows.WIDE[3]]
    if name == "wide-plain":
        return ys
    g0, g1 = rows.WIDE_G
    return [*ys, g0 * rows.WIDE[0] if name == "wide-saved" else g0, *[g0] * 6, *[g1] * 6]


@pytest.mark.parametrize("name", TESTED)
def test_pullback_computes_what_a_row_says(name: str) -> None:
    program = compared(TESTED[name], {"pullback": pullback})["pullback"]
    found = program.arrays(program.once())
    assert len(found) == len(expected(name))
    for array, right in zip(found, expected(name), strict=True):
        np.testing.assert_allclose(array, right, rtol=1e-5, strict=True)


@pytest.mark.torch
@pytest.mark.parametrize("name", TESTED)
def test_torch_computes_what_a_row_says(name: str) -> None:
    torch = pytest.importorskip("torch")
    programs = compared(TESTED[name], {"torch": torch, "pullback": pullback})
    assert list(programs) == ["torch", "pullback"]


@pytest.mark.slow
def test_a_million_nodes_are_built_and_run_backward() -> None:
    program = ROWS["million"].sides["pullback"](pullback)
    y, gradient = program.arrays(program.once())
    powers = rows.C.astype(np.float64) ** rows.MILLION
    np.testing.assert_allclose([y, gradient], [rows.X * powers, rows.G * powers], rtol=1e-2)

"""Programs that once went otherwise than in PyTorch, a fixed few of the random ones, and that a fault is seen in them.

Many more are run by `python -m tests.random_programs`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.ops.index import assignment
from pullback.table import inplace, writing
from pullback.tensor import views
from tests.random_programs import __main__ as command
from tests.random_programs import comparing, compiled, deliberate, meant, workers
from tests.random_programs.counting import Counts
from tests.random_programs.running import Machine, quietly
from tests.random_programs.shrinking import shrunk
from tests.random_programs.steps import Program, Step, text_of, written

# What the programs that were found begin with.
SEED_EAGER, SEED_NUMPY, SEED_C = 13, 31, 6

START = """
x = lib.tensor([[0.5, -1.0, 1.5], [2.0, 0.25, -0.5]], dtype=lib.float64, requires_grad=True)
c = lib.tensor([[0.5, -1.0, 1.5], [2.0, 0.25, -0.5]], dtype=lib.float64)
v = lib.tensor([1.0, -2.0, 0.5], dtype=lib.float64, requires_grad=True)
y = x * 2
z = x[:, :2] * 1j
"""

FOUND = [
    "with lib.no_grad(): a = y.narrow(0, 0, 1); y.mul_(2)",
    "a, b = x.unbind(0); with lib.no_grad(): x[x > 1] = 1.0; a.requires_grad_()",
    "a, b = y.split(2, -1); y[0] = 0.75",
    "a, b = y.tensor_split(2); a.mul_(2)",
    "y.exp_(); y.fill_(0.5)",
    "z.exp_(); z.sin_()",
    "a = y.view(3, 2); a.retain_grad(); y.add_(1)",
    "a = x.clone(); b = a.sin(); a.detach_()",
    "a = c[1:]; a.detach_()",
    "a = v[..., 0]; a[0] = x",
    "a = x[..., 0]; z[[0]] = a",
    "a = x * x; b = x.unsqueeze(0); c.copy_(b)",
    "a = z.sum(); with lib.no_grad(): x.fill_(a)",
    "a = c.expand(2, *c.shape); a[0] = 0.75",
    "a = x.real",
    "a = lib.outer(v, v); a.grad_fn.register_hook(lambda gi, go: note(*gi, *go)); a.sum().backward()",
    "a = x[..., 0]; b = y.expand(2, *y.shape); b[0] = x",
    "a = y.t(); a[[0]] = v",
    "a = z.imag; a.masked_fill_(a > 1, 0.25)",
    "a = F.Identity.apply(c)",
    "a = F.Identity.apply(x); with lib.no_grad(): x.mul_(x)",
    "a = y.reshape(-1); F.Doubled.apply(y)",
    "with lib.inference_mode(): a = x.sum(); b = a.transpose(0, -1)",
    "with lib.inference_mode(): a = x.sum(); with lib.inference_mode(): a.t_()",
    "with lib.inference_mode(): a = x.data",
    "y.retain_grad(); y.unsqueeze_(0)",
    "a, b = x.unbind(0); F.Doubled.apply(x); c[0] = a",
    "a, b = v.chunk(2); with lib.inference_mode(): v.zero_(); with lib.no_grad(): d = a.sin()",
]


def difference(text: str) -> tuple[str, str]:
    """Where the two libraries part in a program that was written by hand."""
    pytest.importorskip("torch")
    with quietly():
        return comparing.between_libraries(written(START) + written(text))


@pytest.mark.torch
@pytest.mark.parametrize("text", FOUND)
def test_a_program_that_once_went_otherwise_goes_as_in_torch(text: str) -> None:
    assert difference(text) == ("", "")


# Random ones ----------------------------------------------------------------------------------------------------------


def of(kind: str, seed: int, count: int) -> list[str]:
    """The differences that the first programs of a seed show."""
    found = [comparing.one(kind, seed, number)[1] for number in range(count)]
    return [d.text for d in found if d and not (kind == "eager" and comparing.reason_of(d))]


@pytest.mark.torch
def test_random_programs_go_as_in_torch() -> None:
    pytest.importorskip("torch")
    assert of("eager", SEED_EAGER, 150) == []


def test_random_functions_do_compiled_what_they_do_as_written() -> None:
    assert of("numpy", SEED_NUMPY, 18) == []


@pytest.mark.skipif(not shutil.which(os.environ.get("CC", "cc")), reason="there is no C compiler")
def test_random_functions_do_in_c_what_they_do_as_written() -> None:
    assert of("c", SEED_C, 3) == []


def test_a_program_is_that_of_its_seed_and_number() -> None:
    for kind in comparing.KINDS:
        first, again, other = (comparing.made(kind, 5, number) for number in (3, 3, 4))
        assert first == again != other


# And were it otherwise, it would be seen ------------------------------------------------------------------------------


def nothing(*args: Any) -> None:
    """Does not do what matters."""


FAULTS = [
    (writing, "lose", "with lib.no_grad(): a = c.narrow(0, 0, 1); c.add_(x)"),
    (views, "lose", "a, b = y.split(2, -1); with lib.no_grad(): y.mul_(2)"),
    (writing, "refuse_turn", "x.mul_(2)"),
    (assignment, "refuse_turn", "a = x[0]; a.zero_()"),
    (writing, "refuse_memory", "a = c.expand(2, *c.shape); a.add_(1)"),
    (writing, "_make_again", "a = y[0]; y.mul_(2)"),
    (writing, "carry_retained", "y.retain_grad(); y.mul_(2)"),
    (writing, "_save_itself", "y.exp_(); y.fill_(0.5)"),
    (inplace, "take_history", "y.mul_(2)"),
    (inplace, "put", "y.mul_(2)"),
]


@pytest.mark.torch
@pytest.mark.parametrize(("module", "name", "text"), FAULTS)
def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, text: str) -> None:
    assert not difference(text)[0]
    monkeypatch.setattr(module, name, nothing)
    assert difference(text)[0]


FUNCTION = (
    Step("lib.tensor([1.0, 2.0], requires_grad=True)", out="v1"),
    Step("({0}, )", ("v3",), "f", body=(Step("{0}.sin()", ("t2",), "v3"),), parameters=("t2",)),
    Step("f({0})", ("v1",), "r"),
)


def test_a_fault_of_a_compiled_function_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled.between_forms(FUNCTION, "numpy") == ("same", "", "")
    monkeypatch.setattr(pullback, "compile", lambda fn, backend: lambda t: (t.cos(),))
    outcome, what, answers = compiled.between_forms(FUNCTION, "numpy")
    assert (outcome, what) == ("differs", "result of 0 (call 1)")
    assert answers.startswith("[float32, [0.54")
    assert "|  [float32, [0.84" in answers

    def refuses(*args: Any) -> Any:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(pullback, "compile", lambda fn, backend: refuses)
    assert compiled.between_forms(FUNCTION, "numpy")[:2] == ("differs", "refused (call 1)")


INVERSE = Step("lib.linalg.inv({0})", ("t2",), "v3")
SINGULAR = (
    Step("lib.tensor([[1.0, 2.0], [3.0, 5.0]])", out="v1"),
    Step("({0}, )", ("t2",), "f", body=(INVERSE,), parameters=("t2",)),
    Step("f({0})", ("v1",), "r"),
    Step("{0}.data.zero_()", ("v1",), when="data"),
)


def test_an_error_of_what_a_compiled_function_uses_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    used = (SINGULAR[0], replace(SINGULAR[1], names=("v3",)), *SINGULAR[2:])
    assert compiled.between_forms(SINGULAR, "numpy") == ("same", "", "")  # nothing uses the inverse
    assert compiled.between_forms(used, "numpy") == ("same", "", "")
    monkeypatch.setattr(pullback, "compile", lambda fn, backend: lambda t: (t * 1,))
    assert compiled.between_forms(SINGULAR, "numpy")[0] == "same"
    assert compiled.between_forms(used, "numpy")[:2] == ("differs", "result of 0 (call 1)")
    inverses = iter([pullback.linalg.inv(pullback.tensor([[1.0, 2.0], [3.0, 5.0]]))] * 3)
    monkeypatch.setattr(pullback, "compile", lambda fn, backend: lambda t: (next(inverses),))
    assert compiled.between_forms(used, "numpy")[:2] == ("differs", "not refused (call 3)")


def test_what_differs_on_purpose_is_left_out_for_a_reason() -> None:
    machine = Machine(pullback)
    for step in written(START):
        machine.do(0, step)
    left_out = {
        "{0}.add_({1})": "what is read may overlap with what is written",
        "{0}.detach_()": "a leaf that a graph was built on moves into the graph",
    }
    for form, why in left_out.items():
        assert deliberate.of(Step(form, ("x", "y") if "{1}" in form else ("x",)), machine) == (
            "" if form == "{0}.add_({1})" else why
        )
    machine.do(0, Step("{0}[0]", ("y",), "row"))
    assert deliberate.of(Step("{0}.add_({1})", ("y", "row")), machine) == left_out["{0}.add_({1})"]


@pytest.mark.torch  # which is asked for evidence
def test_a_difference_that_is_meant_is_known_and_another_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    start = written("a = lib.tensor([1.0, 2.0], requires_grad=True); b = lib.tensor([1.0, 3.0])")
    adds, multiplies = Step("{0} + {1}", ("b", "a"), "c"), Step("{0} * {1}", ("b", "a"), "c")
    monkeypatch.setitem(meant.REASONS, "sums are wrong", lambda d: d.does("{0} + {1}") and d.what == "values of c")
    assert meant.reason_of("values of c", "1  |  2", (*start, adds)) == "sums are wrong"
    assert meant.reason_of("shape of c", "1  |  2", (*start, adds)) == ""
    assert meant.reason_of("values of c", "1  |  2", (*start, multiplies)) == ""
    assert "2 x why" in meant.said({"why": 2})


# The command ----------------------------------------------------------------------------------------------------------


def test_a_program_is_cut_down_to_what_shows_its_difference() -> None:
    program: Program = (
        Step("1.0", out="a"),
        Step("{0} + 1", ("a",), "b", "lib.no_grad()"),
        Step("{0} * 2", ("b",), "c"),
        Step("{0}", ("e",), "f", body=(Step("{0} + 1", ("t",), "d"), Step("{0} / 0", ("d",), "e")), parameters=("t",)),
        Step("f({0})", ("c",), "g"),
    )

    def shows(candidate: Program) -> bool:
        names: dict[str, Any] = {}
        try:
            for step in candidate:
                exec(step.text.replace("with lib.no_grad(): ", ""), names)
        except ZeroDivisionError:
            return True
        except Exception:
            return False
        return False

    assert text_of(shrunk(program, shows, 10.0)).splitlines() == [
        "a = 1.0",
        "def f(t):",
        "    e = t / 0",
        "    return e",
        "g = f(a)",
    ]


def test_counts_are_summed_and_a_seed_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    arguments = ["--kinds", "numpy", "--programs", "3", "--seed", "7", "--jobs", "1", "--counts", str(file)]
    for total in (3, 6):
        command.main(arguments)
        assert Counts(file).programs("numpy") == Counts(file).next("numpy", 7) == total
    assert sum(json.loads(file.read_text("utf-8"))["numpy"]["outcomes"].values()) == 6
    assert Counts(file).next("numpy", 8) == Counts(file).programs("eager") == 0
    assert list(tmp_path.iterdir()) == [file]


def test_what_differed_is_run_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "counts.json"
    arguments = ["--kinds", "numpy", "--seed", "7", "--jobs", "1", "--counts", str(file)]

    def run(outcomes: list[str], *more: str) -> int:
        differs = comparing.Difference("values of a", "1  |  2", ())
        found = {"differs": differs, "same": None}
        monkeypatch.setattr(comparing, "one", lambda kind, seed, number: (outcomes[number], found[outcomes[number]]))
        monkeypatch.setattr(comparing, "warm", lambda kinds: None)
        return command.main([*arguments, *more])

    def outcomes() -> list[int]:
        return [Counts(file).outcome("numpy", outcome) for outcome in ("differs", "same")]

    assert run(["same", "differs", "differs"], "--programs", "3") == 1
    assert "numpy program 1 of seed 7" in capsys.readouterr().out
    assert (outcomes(), Counts(file).open("numpy")) == ([2, 1], [(7, 1), (7, 2)])
    assert run(["same", "same", "differs"], "--again") == 1
    assert (outcomes(), Counts(file).open("numpy")) == ([1, 2], [(7, 2)])
    assert run(["same", "same", "same"], "--again") == 0
    assert (outcomes(), Counts(file).open("numpy")) == ([0, 3], [])
    assert Counts(file).programs("numpy") == 3


@pytest.mark.parametrize(
    ("what", "answers", "passes"),
    [
        ("refused: f", "no error  |  raises RuntimeError(no)", True),
        ("gradients of a", "1  |  raises RuntimeError(no)", True),
        ("gradients of a", "1  |  2", False),
        ("layout of f", "1  |  2", False),
    ],
)
def test_only_refusals_may_be_let_pass(
    what: str, answers: str, passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [comparing.Difference(what, answers, written(f"a = {name}")) for name in ("b", "c")]
    monkeypatch.setattr(comparing, "one", lambda kind, seed, number: ("differs", found[number]))
    monkeypatch.setattr(comparing, "warm", lambda kinds: None)
    arguments = ["--kinds", "numpy", "--programs", "2", "--jobs", "1"]
    for refusals, status in ((2, 0 if passes else 1), (1, 1), (0, 1)):
        counts = str(tmp_path / f"{refusals}.json")
        assert command.main([*arguments, "--counts", counts, "--refusals", str(refusals)]) == status


@pytest.mark.parametrize("how", ["dies", "hangs", "raises"])
def test_a_program_that_ends_its_process_is_a_finding(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    def bad(kind: str, seed: int, number: int) -> Any:
        if number == 1:
            if how == "dies":
                os._exit(3)
            while how == "hangs":
                pass
            raise ZeroDivisionError("no")
        return "same", None

    monkeypatch.setattr(comparing, "one", bad)
    monkeypatch.setitem(workers.LIMIT, "numpy", 1.0)
    done: list[workers.Batch] = []
    workers.run(iter([workers.Batch("numpy", 0, range(3))]), 1, done.append)
    (batch,) = done
    outcome = "broken" if how == "raises" else "died"
    assert batch.outcomes == Counter({"same": 1, outcome: 1})
    assert batch.unsettled == [(1, outcome)]
    (found,) = batch.found
    assert {"dies": "wait status", "hangs": "took more than", "raises": "ZeroDivisionError"}[how] in found[1]


def test_the_command_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--kinds", "nonsense"])
    assert "expected some of eager, numpy, c" in capsys.readouterr().err

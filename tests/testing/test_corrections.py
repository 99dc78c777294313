"""What the audit prints as a correction is put into the file of the Function, which is imported and audited again.

The lines are read from the printed page, and the file has its own imports alone. The finding has to be gone, and no
other may have come. Where no code is printed, WITHOUT_CODE says why not.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.testing import Audit, Change, Finding, Line, audit
from pullback.testing.corrections.patches import merged
from pullback.testing.corrections.trials import Trials
from tests.imported import imported
from tests.testing import faulty_functions
from tests.testing.faulty_functions import FAULTY, Planted

SOURCE = Path(faulty_functions.__file__).read_text("utf-8")


def applied(result: Audit, source: str, *findings: Finding) -> str:
    """The text of a file with the lines of findings as `as_markdown` prints them, each with its place."""
    page = dataclasses.replace(result, findings=findings).as_markdown()
    lines = source.splitlines()
    blocks = re.findall(r"```diff\n(.*?)\n```", page, re.DOTALL)
    places = [p for b in blocks for p in re.finditer(r"^# \S+:(\d+)\n((?:[-+ ].*\n?|\n)*)", b, re.MULTILINE)]
    places = [place for place in places if re.search("^[-+]", place[2], re.MULTILINE)]  # not where words follow
    assert len(places) == sum(len(finding.shown) for finding in findings), page
    for place in sorted(places, key=lambda found: -int(found[1])):
        at, printed = int(place[1]) - 1, place[2].splitlines()
        old, new = ([line[1:] for line in printed if line[:1] in kinds] for kinds in ("- ", "+ "))
        assert old != new, page
        assert lines[at : at + len(old)] == old, page
        lines[at : at + len(old)] = new
    return "\n".join(lines) + "\n"


def written(path: Path, source: str) -> Any:
    path.write_text(source, "utf-8")
    return imported(path)


def codes(result: Audit) -> Counter[str]:
    return Counter(finding.code for finding in result.findings)


def assert_each_mends(result: Audit, name: str, inputs: tuple[Any, ...], source: str, folder: Path) -> None:
    """Each correction alone, and all of them at once."""
    each = [[f] for f in result.findings if f.shown]
    for number, chosen in enumerate([*each, list(result.findings)] if len(each) > 1 else each):
        mended = [f for f in result.findings if f.changes and any(f.changes == other.changes for other in chosen)]
        module = written(folder / f"mended_{name}_{number}.py", applied(result, source, *chosen))
        left = codes(audit(getattr(module, name), *inputs))
        assert left <= codes(result) - Counter(f.code for f in mended), f"{left} with\n{result}"
    for finding in (f for (f,) in each):
        terminal = {line.strip() for change in finding.changes for line in change.text.splitlines()}
        assert terminal <= {line[4:].strip() for line in str(finding).splitlines()}


@pytest.mark.parametrize("planted", FAULTY, ids=lambda planted: planted.function.__name__)
def test_what_is_printed_mends_a_planted_fault(planted: Planted, tmp_path: Path) -> None:
    result = audit(planted.function, *planted.inputs)
    assert_each_mends(result, planted.function.__name__, planted.inputs, SOURCE, tmp_path)


WITHOUT_CODE = {
    "ReturnsNone": "no line computes the derivative",
    "SoftmaxDiagonalOnly": "the derivative is another one",
    "ClipsItsGradient": "the clipping may be meant elsewhere",
    "WrongInSingle": "what the branch was for is not known",
    "ExpMinusOne": "the form that keeps the digits depends on the function",
    "SinhWithSavedExponentials": "two values are lost, and one statement computes both",
    "DotWithWrongBatch": "how to place the axes depends on the computation",
    "LeavesItsDevice": "where the tensor was made on purpose is not known",
    "NoiseOfItsOwn": "which generator is meant is not known",
    "DropoutDrawnTwice": "forward has to name what it drew",
    "PopsItsStack": "what the stack is for is not known",
    "NeedsAnAxis": "what the length stands for is not known",
    "NeedsAnElement": "whether to take or to refuse such inputs is not known",
    "SavesOnItsClass": "what is shared may be read elsewhere",
    "ReusesItsBuffer": "what is shared may be read elsewhere",
    "ReusesTheBufferOfItsGradient": "what is shared may be read elsewhere",
    "KeepsTheArrayOfItsInput": "forward reads the attribute as well",
    "UsesAGlobalParameter": "the calls of apply change as well",
    "FailsInForward": "the error is the author's",
    "HasNoBackward": "the derivative is not known",
    "ReturnsANumber": "which tensor is meant is not known",
    "ForgetsItsScale": "the value is not known",
    "TakesDoublesOnly": "the refusal is meant",
    "TakesWholeNumbersOnly": "the refusal is meant",
    "SavesANumber": "backward unpacks it with the tensors",
    "ReturnsAListMadeBefore": "no expression of the return is the gradient",
}
"""Planted faults whose finding says in words what to do, and why no code does; the list may only become shorter."""


def test_all_others_are_mended_by_code() -> None:
    without = set()
    for planted in FAULTY:
        found = audit(planted.function, *planted.inputs).findings
        if not next(finding for finding in found if finding.code == planted.code).changes:
            without.add(planted.function.__name__)
    assert without == WITHOUT_CODE.keys()
    assert len(WITHOUT_CODE) <= 26


# -- names of the library, as a file can write them --------------------------------------------------------------------

HEADS = {
    "import pullback as torch": "torch.autograd.Function",
    "import pullback": "pullback.autograd.Function",
    "import pullback as pb": "pb.autograd.Function",
    "from pullback.autograd import Function": "Function",
    "from pullback.autograd import (\n    Function,\n)": "Function",
    "from pullback import autograd": "autograd.Function",
    "import pullback.autograd as ag": "ag.Function",
    "from pullback.autograd.function import Function, once_differentiable as once": "Function",
    "from pullback import from_numpy as tensor_of\nfrom pullback.autograd import Function": "Function",
}

CLASS = '''"""A file of its own."""

from __future__ import annotations

import math

import numpy as np
{head}

SCALE = 1.0


class Mine({base}):
    @staticmethod
    def forward(ctx, x: "float64[n]"):
        {forward}

    @staticmethod{once}
    def backward(ctx, g):
        {backward}
'''
SAVED = "(x,) = ctx.saved_tensors; "
LOOP = "np.array([math.cos(v) for v in x.numpy().ravel()], x.numpy().dtype).reshape(x.shape)"
SAVE = "ctx.save_for_backward(x); return "
FILES = {
    "an array saved": (
        "y = np.asarray(np.exp(x.numpy())); ctx.save_for_backward(y); return x.exp()",
        "(y,) = ctx.saved_tensors; return g * y",
    ),
    "an array returned": (SAVE + "np.sin(x.numpy())", SAVED + "return g * x.cos()"),
    "an array as gradient": (SAVE + "x.sin()", SAVED + f"return np.asarray(g.numpy() * {LOOP})"),
    "a backward in NumPy": (SAVE + "x.sin()", SAVED + f"return g * x.new_tensor({LOOP})"),
    "a set": ("return 2 * x", "return {2 * g}"),
    "a product": (SAVE + "x * x", SAVED + "return (2 * x.numpy() * g.numpy())"),
    "a rounded gradient": (SAVE + "x * x", SAVED + "return (2 * x * g).float()"),
    "an order": ("return x.argsort()", "return None"),
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", FILES)
def test_what_is_printed_runs_with_the_imports_of_the_file(name: str, head: str, tmp_path: Path) -> None:
    forward, backward = (code.replace("; ", "\n        ") for code in FILES[name])
    source = CLASS.format(head=head, base=HEADS[head], forward=forward, backward=backward, once="")
    x = pullback.tensor([0.5, -1.0, 1.5], dtype=pullback.float64)
    result = audit(written(tmp_path / "mine.py", source).Mine, x)
    assert result.findings
    assert result.findings[0].changes, str(result)
    assert_each_mends(result, "Mine", (x,), source, tmp_path)


# -- what is kept on ctx -----------------------------------------------------------------------------------------------


ONCE = "\n    @pullback.autograd.function.once_differentiable"
BOTH = "ctx.save_for_backward(x); "
KEPT = {
    "an input": ("ctx.x = x", "return g * (ctx.x + 1) * ctx.x.exp()"),
    "an input under another name": ("ctx.given = x", "return g * (ctx.given + 1) * ctx.given.exp()"),
    "an input that is saved as well": (BOTH + "ctx.x = x", SAVED + "return g * (ctx.x + 1) * x.exp()"),
    "what is computed from an input": ("ctx.e = x.exp()", "return g * (ctx.e + ctx.e * ctx.e.log())"),
    "the same beside the input": (BOTH + "ctx.e = x.exp()", SAVED + "return g * (x + 1) * ctx.e"),
    "a variable": (BOTH + "e = x.exp(); ctx.kept = e", SAVED + "return g * (x + 1) * ctx.kept", ONCE),
    "an array": (BOTH + "ctx.e = np.exp(x.numpy())", SAVED + "return g * (x + 1) * ctx.e"),
    "what is once differentiable": ("ctx.e = x.exp()", "return g * (ctx.e + ctx.e * ctx.e.log())", ONCE),
    "an array, once differentiable": (BOTH + "ctx.e = np.exp(x.numpy())", SAVED + "return g * (x + 1) * ctx.e", ONCE),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_on_ctx_is_saved_instead(name: str, tmp_path: Path) -> None:
    kept, returned, *once = KEPT[name]
    head, base = "import pullback", "pullback.autograd.Function"
    forward, backward = (code.replace("; ", "\n        ") for code in (f"{kept}; return x * x.exp()", returned))
    source = CLASS.format(head=head, base=base, forward=forward, backward=backward, once="".join(once))
    x = pullback.tensor([0.5, 0.3, 1.5], dtype=pullback.float64)
    result = audit(written(tmp_path / "mine.py", source).Mine, x)
    found = [finding for finding in result.findings if finding.code in ("kept-on-ctx", "lost-derivative")]
    assert "kept-on-ctx" in {finding.code for finding in found}
    assert len({finding.changes for finding in found}) == 1, "two findings about one line contradict each other"
    assert len({finding.advice for finding in found}) == 1
    assert found[0].changes, str(result)
    source = applied(result, source, dataclasses.replace(found[0], above=""))
    mended = written(tmp_path / "mended.py", source).Mine
    assert not audit(mended, x).findings
    assert pullback.autograd.gradcheck(mended.apply, x.clone().requires_grad_())


# -- inputs that are saved as something else ---------------------------------------------------------------------------

BOTH_READ = "x, y = ctx.saved_tensors; "
NEEDED = "{} if ctx.needs_input_grad[0] else None, {} if ctx.needs_input_grad[1] else None"
FORMS = {
    "arrays": ("ctx.save_for_backward(x.numpy(), y.numpy()); return x * y", NEEDED.format("g * y", "g * x")),
    "arrays, used as such": (
        "ctx.save_for_backward(x.numpy(), y.numpy()); return x * y",
        NEEDED.format("pullback.from_numpy(g.numpy() * y)", "pullback.from_numpy(g.numpy() * x)"),
    ),
    "arrays, in loops": (
        "ctx.save_for_backward(x.numpy(), y.numpy()); return x * y",
        NEEDED.format(*(f"g * g.new_tensor([math.sqrt(v * v) for v in {n}.ravel()]).view(g.shape)" for n in "yx")),
    ),
    "arrays in variables": (
        "a = x.numpy(); b = np.asarray(y); ctx.save_for_backward(a, b); return pullback.from_numpy(a * b)",
        NEEDED.format("g * y", "g * x"),
    ),
    "under the same name": (
        "x = x.numpy(); y = y.numpy(); ctx.save_for_backward(x, y); return pullback.from_numpy(x * y)",
        NEEDED.format("g * y", "g * x"),
    ),
    "by way of the processor": (
        "ctx.save_for_backward(x.detach().cpu().numpy(), y.cpu().numpy().copy()); return x * y",
        NEEDED.format("g * y", "g * x"),
    ),
    "one as an array": ("ctx.save_for_backward(x, y.numpy()); return x * y", NEEDED.format("g * y", "g * x")),
    "with an array beside them": (
        "ctx.save_for_backward(x.numpy(), np.full_like(x.numpy(), 2.0), y); return 2 * x * y",
        NEEDED.format("g * y * two", "g * x * two"),
        "x, two, y = ctx.saved_tensors; ",
    ),
    "detached": ("ctx.save_for_backward(x.detach(), y.detach()); return x * y", NEEDED.format("g * y", "g * x")),
    "data": ("ctx.save_for_backward(x.data, y); return x * y", NEEDED.format("g * y", "g * x")),
    "clones": ("ctx.save_for_backward(x.clone(), y.clone()); return x * y", NEEDED.format("g * y", "g * x")),
    "detached before": (
        "x = x.detach(); y = y.detach(); ctx.save_for_backward(x, y); return x * y",
        NEEDED.format("g * y", "g * x"),
    ),
}


def mended_at_once(source: str, folder: Path) -> str:
    """The text of a faulty Function of two inputs with all that its audit prints, which leaves nothing to find."""
    inputs = pullback.tensor([0.5, 0.3, 1.5]), pullback.tensor([0.7, 0.2, 1.1])
    result = audit(written(folder / "mine.py", source).Mine, *inputs)
    assert result.findings
    source = applied(result, source, *result.findings)
    left = audit(written(folder / "mended.py", source).Mine, *inputs)
    assert not left.findings, f"{source}\n{left}"
    return source


@pytest.mark.parametrize("name", FORMS)
def test_an_input_is_saved_itself(name: str, tmp_path: Path) -> None:
    forward, value, *read = FORMS[name]
    backward = f"{(*read, BOTH_READ)[0]}return {value}"
    forward, backward = (code.replace("; ", "\n        ") for code in (forward, backward))
    source = "import math\n\nimport numpy as np\n" + FUNCTION.format(forward=forward, backward=backward)
    assert "save_for_backward(x," in mended_at_once(source, tmp_path)


def test_an_input_is_saved_itself_in_setup_context(tmp_path: Path) -> None:
    for given, saves in (("x, y = inputs", "x.numpy(), y.detach()"), ("", "inputs[0].numpy(), inputs[1].numpy()")):
        source = FUNCTION.format(
            forward="return x * y", backward=BOTH_READ + "return " + NEEDED.format("g * y", "g * x")
        )
        source = source.replace("; ", "\n        ").replace("forward(ctx, x", "forward(x")
        source += f"""
    @staticmethod
    def setup_context(ctx, inputs, output):
        {given or "pass"}
        ctx.save_for_backward({saves})
"""
        mended_at_once(source, tmp_path)


# -- several corrections of the same lines -----------------------------------------------------------------------------

FUNCTION = """import pullback
from pullback.autograd import Function


class Mine(Function):
    @staticmethod
    def forward(ctx, x, y):
        {forward}

    @staticmethod
    def backward(ctx, g):
        {backward}
"""
PRODUCT = "ctx.save_for_backward(x, y); return x * y"
TOGETHER = {
    "two that nobody needs": (PRODUCT, "x, y = ctx.saved_tensors; return g * y, g * x"),
    "one of them wrong": (PRODUCT, "x, y = ctx.saved_tensors; return 2 * g * y, g * x"),
    "in a list": (PRODUCT, "x, y = ctx.saved_tensors; return [g * y, g * x]"),
    "on lines of their own": (PRODUCT, "x, y = ctx.saved_tensors; return (;    -g * y,;    g * x,; )"),
    "on one line of several": (PRODUCT, "x, y = ctx.saved_tensors; return (;    g * y, g * x,; )"),
    "in two statements": (PRODUCT, "x, y = ctx.saved_tensors; a = g * y; b = 2 * g * x; return a, b"),
    "in NumPy": (
        PRODUCT,
        "x, y = ctx.saved_tensors; return pullback.from_numpy(g.numpy() * y.numpy()), g * x",
    ),
    "two kept on ctx": ("ctx.x = x; ctx.y = y; return x * y", "return g * ctx.y, g * ctx.x"),
    "two kept on ctx by one statement": ("ctx.x, ctx.y = x, y; return x * y", "return g * ctx.y, g * ctx.x"),
    "one kept twice": ("ctx.a = x; ctx.b = x; ctx.y = y; return x * y", "return g * ctx.y, g * (ctx.a + ctx.b) / 2"),
    "two written to": (
        "x.mul_(2); ctx.save_for_backward(x, y); return x * y",
        "x, y = ctx.saved_tensors; g.mul_(2); return g * y, g * x / 2",
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_corrections_of_the_same_lines_are_made_together(name: str, tmp_path: Path) -> None:
    forward, backward = (code.replace("; ", ";").replace(";", "\n        ") for code in TOGETHER[name])
    source = FUNCTION.format(forward=forward, backward=backward)
    inputs = pullback.tensor([0.5, 0.3, 1.5]), pullback.tensor([0.7, 0.2, 1.1])
    result = audit(written(tmp_path / "mine.py", source).Mine, *inputs)
    assert len(result.findings) > 1
    assert_each_mends(result, "Mine", inputs, source, tmp_path)
    if name != "two written to":
        mended = written(tmp_path / "mended.py", applied(result, source, *result.findings)).Mine
        assert not audit(mended, *inputs).findings


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        ((2, "f(x)", "f(1)"), (2, "f(x)", "g(x)"), "g(1)"),
        ((2, "f(x)", "f(1)"), (2, "f(x)", "f(2)"), None),
        ((2, "f(x)", "f(1)"), (2, "f(x)", "f(1)"), "f(1)"),
        ((2, "import a", "import a\nimport b"), (2, "import a", "import a\nimport c"), "import a\nimport b\nimport c"),
        (
            (2, "import a", "import a\nimport b\nimport c"),
            (2, "import a", "import a\nimport b"),
            "import a\nimport b\nimport c",
        ),
        ((2, "f(\n x,\n)", "f(\n y,\n)"), (3, " x,", " x + 1,"), "f(\n y + 1,\n)"),
        ((2, "a\nb", "a\nc"), (3, "b\nd", "b\ne"), "a\nc\ne"),
        ((2, "a\nb", ""), (2, "a", "c"), None),
        ((2, "a", "b\na"), (2, "a", "c"), "b\nc"),
    ],
)
def test_two_changes_as_one(a: tuple[int, str, str], b: tuple[int, str, str], both: str | None) -> None:
    patches = [(Change(Line("f.py", number, old), new),) for number, old, new in (a, b)]
    found = merged(*patches)
    assert [change.text for change in found] == ([] if both is None else [both])
    assert {change.line.number for change in found} <= {2}


@pytest.mark.parametrize("number", [2, 3])
def test_what_cannot_be_made_together_is_said_in_words(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trials, "_mends", lambda self, codes, patch: len(codes) == len(patch) == 1)
    patches = [((Change(Line("f.py", n, "f(x)"), new),),) for n, new in ((2, "f(1)"), (number, "f(2)"))]
    findings = [Finding(code, "a", "b", patches=p) for code, p in zip(("kink", "random"), patches, strict=True)]
    one, other = Trials(Doubled, {}, lambda copy, elsewhere: {}).settled(findings)
    assert one.corrected == "f(1)"
    assert not other.changes
    assert other.todo == "What to do: correct `kink`, and audit it again."


# -- comments ----------------------------------------------------------------------------------------------------------

COMMENTED = {
    "in a gradient": (
        PRODUCT,
        "x, y = ctx.saved_tensors; return (;    g  # ONE;    * y,  # TWO;    g * x,  # THREE; )",
    ),
    "in a product": (
        PRODUCT,
        "x, y = ctx.saved_tensors; a = (;    2  # ONE;    * g  # TWO;    * y; ); return a, g * x",
    ),
    "in what is saved": (
        "ctx.save_for_backward(;    x.numpy(),  # ONE;    # TWO;    y.numpy(),  # THREE; ); return x * y",
        BOTH_READ + "return " + NEEDED.format("g * y", "g * x"),
    ),
    "in what is saved elsewhere": (
        "x = x.numpy(); ctx.save_for_backward(;    x,  # ONE;    y,  # TWO '#'; ); return pullback.from_numpy(x) * y",
        BOTH_READ + "return " + NEEDED.format("g * y", "g * x"),
    ),
    "in an attribute": (
        "ctx.x = (  # ONE;    x  # TWO; ); ctx.save_for_backward(y); return x * y",
        "(y,) = ctx.saved_tensors; return g * y, (;    g  # ONE;    * ctx.x  # TWO; )",
    ),
    "in what is returned": (
        "ctx.save_for_backward(x, y); return np.asarray(  # ONE;    x.numpy()  # TWO;    * y.numpy(); )",
        "x, y = ctx.saved_tensors; return " + NEEDED.format("(g  # é 勾配 ONE;    * y)", "g * x"),
    ),
    "in a text": (
        PRODUCT,
        "x, y = ctx.saved_tensors; return (;    g * len('# NO'  # ONE;    ) / 4 * y,;    g * x; )",
    ),
}


@pytest.mark.parametrize("name", COMMENTED)
def test_comments_are_kept(name: str, tmp_path: Path) -> None:
    forward, backward = (code.replace("; ", ";").replace(";", "\n        ") for code in COMMENTED[name])
    source = "import numpy as np\n" + FUNCTION.format(forward=forward, backward=backward)
    inputs = pullback.tensor([0.5, 0.3, 1.5]), pullback.tensor([0.7, 0.2, 1.1])
    result = audit(written(tmp_path / "mine.py", source).Mine, *inputs)
    assert any(finding.changes for finding in result.findings), str(result)
    assert_each_mends(result, "Mine", inputs, source, tmp_path)
    for finding in (f for f in result.findings if f.shown):
        for change in finding.changes:
            words = re.findall(r"# (ONE|TWO|THREE|é)", change.line.text)
            assert sorted(re.findall(r"# (ONE|TWO|THREE|é)", change.text)) == sorted(words), str(finding)


# -- where no code may be printed --------------------------------------------------------------------------------------


class Doubled(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Inherits(Doubled):
    pass


def test_a_correction_that_cannot_be_tried_is_said_in_words() -> None:
    x = pullback.tensor([0.5, -1.0])
    assert audit(Doubled, x).findings[0].corrected == "return 2 * g"
    (finding,) = audit(Inherits, x).findings
    assert not finding.changes
    assert "- " not in str(finding).replace("= -", "")
    assert finding.todo.startswith("What to do: have backward give g times the derivative of output")
    assert finding.as_dict()["advice"]


class MeanWithoutDivision(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.shape = x.shape
        return x.mean()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.expand(ctx.shape)


class ForgetsTheTotal(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.shape = x.shape
        return x.reshape(-1) * y.sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.reshape(ctx.shape), None


def test_a_factor_that_may_be_a_length_is_no_correction() -> None:
    (finding,) = audit(MeanWithoutDivision, pullback.tensor([0.5, -1.0, 0.3])).findings
    assert not finding.changes, str(finding)
    assert "analytical = 3 x numerical" in str(finding)


def test_a_factor_that_is_right_for_these_values_alone_is_no_correction() -> None:
    x, y = pullback.tensor([[0.5, -1.0], [0.3, 0.7]], requires_grad=True), pullback.tensor([1.5, 0.5])
    (finding,) = audit(ForgetsTheTotal, x, y).findings
    assert "analytical = 1/2 x numerical" in str(finding)
    assert not finding.changes, str(finding)


def test_a_class_in_a_function_is_tried_with_the_variables_around_it() -> None:
    factor = 3.0

    class Inner(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return factor * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -factor * g

    (finding,) = audit(Inner, pullback.tensor([0.5, -1.0])).findings
    assert finding.corrected == "return -(-factor * g)"


@pytest.mark.parametrize(
    ("line", "text", "printed"),
    [
        ("return g", "return 2 * g", ["-return g", "+return 2 * g"]),
        ("import a", "import a\nimport b", [" import a", "+import b"]),
        ("ctx.x = x", "", ["-ctx.x = x"]),
    ],
)
def test_a_change_is_shown_as_what_goes_comes_and_stays(line: str, text: str, printed: list[str]) -> None:
    assert Change(Line("f.py", 1, line), text).diff() == printed


def test_a_change_that_changes_nothing_is_never_shown() -> None:
    line = Line("f.py", 1, "return g")
    tried: list[Any] = []
    trials = Trials(Doubled, {}, lambda copy, elsewhere: tried.append(copy) or {})
    same, other = Change(line, "return g"), Change(line, "return 2 * g")
    patches = ((same,), (other, same), ())
    assert trials.settled([Finding("kink", "a", "b", line=line, patches=patches)])[0].changes == ()
    assert not tried


@pytest.mark.parametrize(
    ("returned", "forgotten", "code"),
    [
        ("g @ w.T, x.T @ g", "of b;", False),
        ("g @ w.T", "of w and b;", False),
        ("g @ w.T, x.T @ g, g", "", True),
    ],
)
def test_a_gradient_that_was_forgotten_is_not_made_none(
    returned: str, forgotten: str, code: bool, tmp_path: Path
) -> None:
    """The error would go, and with it the gradient."""
    source = f"""import pullback as torch
class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b, n):
        ctx.save_for_backward(x, w)
        return x @ w + b
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return {returned}
"""
    inputs = pullback.rand(3, 2), pullback.rand(2, 4), pullback.rand(3, 4), 2
    result = audit(written(tmp_path / "mine.py", source).Mine, *inputs)
    (finding,) = (f for f in result.findings if f.code == "gradient-count")
    assert bool(finding.changes) is code
    assert (f"also that {forgotten}" in finding.todo) is bool(forgotten)
    if code:
        assert audit(written(tmp_path / "mended.py", applied(result, source, finding)).Mine, *inputs).ok

"""A `Function` of PyTorch's own that our tensors went through is noticed: its backward is never called."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pullback
from pullback.cli.main import main

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

SEED = """
import pullback as torch
{imported}

class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 10 * g

x = torch.ones(2, requires_grad=True)
{lines}
print(x.grad.tolist())
"""
BACKWARD = "Twice.apply(x).sum().backward()"
JVP = "x.grad = torch.func.jvp(lambda x: Twice.apply(x), (x.detach(),), (x.detach(),))[1]"
JACFWD = "x.grad = torch.func.jacfwd(Twice.apply)(x.detach()).sum(0)"
GRAD = "x.grad = torch.autograd.grad(Twice.apply(x).sum(), x)[0]"


def run(tmp_path: Path, imported: str, lines: str = BACKWARD) -> tuple[str, str]:
    path = tmp_path / "program.py"
    path.write_text(SEED.format(imported=imported, lines=lines), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "always::UserWarning", path], capture_output=True, text=True, check=True
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize("lines", [BACKWARD, GRAD])
def test_it_is_told_at_the_first_pass_and_the_correction_works(tmp_path: Path, lines: str) -> None:
    out, told = run(tmp_path, "from torch.autograd import Function", lines)
    assert out == "[2.0, 2.0]"
    assert "UserWarning: __main__.Twice: expected a class derived from pullback.autograd.Function" in told
    assert "program.py:" in told
    correction = told.partition("write `")[2].partition("`")[0]
    assert run(tmp_path, correction, lines) == ("[10.0, 10.0]", "")


JET = "x.grad = torch.func.jet(Twice.apply, (x.detach(),), ([x.detach()],))[1][0]"
LINEARIZE = "x.grad = torch.func.linearize(Twice.apply, x.detach())[1](x.detach())"
AD = "from pullback.autograd import forward_ad as fwAD\nwith fwAD.dual_level():\n"
AD += "    x.grad = fwAD.unpack_dual(Twice.apply(fwAD.make_dual(x.detach(), x.detach()))).tangent"


@pytest.mark.parametrize("lines", [JVP, JACFWD, JET, LINEARIZE, AD])
def test_it_is_told_at_a_forward_pass(tmp_path: Path, lines: str) -> None:
    out, told = run(tmp_path, "from torch.autograd import Function", lines)
    assert out == "[2.0, 2.0]"
    assert "UserWarning: __main__.Twice: expected a class derived from pullback.autograd.Function" in told


SAID = "Twice: expected a class derived from pullback.autograd.Function, found one derived from PyTorch's own Function"
AUDIT = """
from pullback.testing import audit
try:
    print(audit(Twice, x.detach()).summary)
except TypeError as error:
    print(error)
x.grad = x.detach()
"""


def test_the_audit_refuses_it_and_says_why(tmp_path: Path) -> None:
    out, _ = run(tmp_path, "from torch.autograd import Function", AUDIT)
    first = (
        "audit(): Twice: expected a class derived from pullback.autograd.Function, found one derived from PyTorch's own"
    )
    assert out.startswith(first)
    for correction in re.findall("`([^`]+)`", out):
        base = "\nFunction = torch.autograd.Function" if correction.startswith("import") else ""
        assert run(tmp_path, correction + base, AUDIT)[0].startswith("1 fault")


CHECKED = """
class Twice({base}):
    @staticmethod
    def forward(ctx, x: "float64[3]"):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g
"""


@pytest.mark.parametrize(
    ("imports", "base", "named", "status"),
    [
        ("from torch.autograd import Function", "Function", "", 2),
        ("from torch.autograd import Function", "Function", ":Twice", 2),
        ("import torch", "torch.autograd.Function", "", 2),
        ("import torch\nimport pullback", "torch.autograd.Function", "", 2),
        ("import torch\nimport pullback", "torch.autograd.Function", ":Twice", 2),
        ("from torch.autograd import Function\nimport pullback\n" + CHECKED.format(base="pullback.autograd.Function")
         .replace("Twice", "Ours"), "Function", "", 2),
        ("import torch\nimport pullback\n" + CHECKED.format(base="pullback.autograd.Function")
         .replace("Twice", "Ours"), "torch.autograd.Function", "", 0),
    ],
)  # fmt: skip
def test_check_says_whose_function_it_is(
    imports: str, base: str, named: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(imports + CHECKED.format(base=base), "utf-8")
    assert main(["check", f"{path}{named}"]) == status
    out, err = capsys.readouterr()
    assert ("passed Ours" in out) == ("Ours" in imports)
    if not status:
        assert err == ""
        return
    line = path.read_text("utf-8").splitlines().index(f"class Twice({base}):") + 1
    said, do = err.splitlines()
    assert said.startswith(
        f"pullback check: {path}:{line}: Twice: expected a class derived from pullback.autograd.Function"
    )
    assert "PyTorch's own Function" in said
    old = base.split(".")[0]
    (correction,) = [code for code in re.findall("`([^`]+)`", do) if code.endswith(old)]
    theirs = next(text for text in imports.splitlines() if "torch" in text)
    path.write_text(imports.replace(theirs, correction) + CHECKED.format(base=base), "utf-8")
    assert main(["check", f"{path}{named}"]) == 0
    assert "passed Twice" in capsys.readouterr().out


@pytest.mark.parametrize("called", ["lambda x: Twice.apply(x)", "Twice.apply", "Twice.apply, fallback=True"])
def test_compile_refuses_it(tmp_path: Path, called: str) -> None:
    lines = f"try:\n    torch.compile({called})(x)\nexcept RuntimeError as error:\n    print(error)"
    out, _ = run(tmp_path, "from torch.autograd import Function", lines + "\nx.grad = torch.ones(2)")
    assert (
        "compile: Twice is derived from PyTorch's own Function, whose backward is never called for our Tensors\n" in out
    )
    assert "What to do: write `from pullback.autograd import Function`.\n" in out
    assert (
        run(tmp_path, "from pullback.autograd import Function", lines + "\nx.grad = torch.ones(2)")[0] == "[1.0, 1.0]"
    )


def test_a_class_that_a_function_makes_for_any_library_is_none_of_ours(tmp_path: Path) -> None:
    made = (
        "from torch.autograd import Function as Theirs\nfrom pullback.autograd import Function\n"
        "def make(base):\n    return type('Made', (base,), {})\nmake(Theirs)"
    )
    assert run(tmp_path, made) == ("[10.0, 10.0]", "")


def test_a_class_in_a_class_is_told(tmp_path: Path) -> None:
    made = (
        "from torch.autograd import Function as Theirs\nfrom pullback.autograd import Function\n"
        "class Outer:\n    class Inner(Theirs):\n        pass"
    )
    _, told = run(tmp_path, made)
    assert "UserWarning: __main__.Outer.Inner: expected a class derived from pullback.autograd.Function" in told


OPS = """
{imported}

class Twice({base}):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 10 * g
"""


def of_two_files(tmp_path: Path, ops: str, imported: str, lines: str = BACKWARD) -> tuple[str, str]:
    (tmp_path / "ops.py").write_text(ops, "utf-8")
    path = tmp_path / "program.py"
    path.write_text(f"{imported}\nx = torch.ones(2, requires_grad=True)\n{lines}\nprint(x.grad.tolist())", "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "always::UserWarning", path], capture_output=True, text=True, check=True
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize("used", ["from ops import Twice", "import ops\nTwice = ops.Twice", "import ops"])
@pytest.mark.parametrize(
    ("theirs", "base", "correction"),
    [
        ("from torch.autograd import Function", "Function", "from pullback.autograd import Function"),
        ("import torch", "torch.autograd.Function", "import pullback as torch"),
    ],
)
def test_a_class_in_a_file_of_its_own_is_told(
    tmp_path: Path, theirs: str, base: str, correction: str, used: str
) -> None:
    main = f"import pullback as torch\n{used}"
    lines = BACKWARD if "Twice" in used else f"ops.{BACKWARD}"
    out, told = of_two_files(tmp_path, OPS.format(imported=theirs, base=base), main, lines)
    assert out == "[2.0, 2.0]"
    assert "UserWarning: ops.Twice: expected a class derived from pullback.autograd.Function" in told
    assert correction in told
    mended = of_two_files(tmp_path, OPS.format(imported=correction, base=base), main, lines)
    assert mended == ("[10.0, 10.0]", "")


@pytest.mark.parametrize(
    "used",
    [
        "import torch as host",
        "from torch import from_numpy",
        "from pullback.bridge.torch import function",
        "def f():\n    return torch.bridge.torch.function(Twice.apply)\nf()",
    ],
)
def test_a_file_of_its_own_that_is_for_pytorch_is_told_nothing(tmp_path: Path, used: str) -> None:
    ops = OPS.format(imported="from torch.autograd import Function", base="Function")
    main = f"import pullback as torch\nfrom ops import Twice\n{used}"
    assert of_two_files(tmp_path, ops, main, "(2 * x).sum().backward()") == ("[2.0, 2.0]", "")


GENERAL = """
def make(library):
    class Twice(library.autograd.Function):
        forward = staticmethod(lambda ctx, x: 2 * x)
        backward = staticmethod(lambda ctx, g: 10 * g)

    return Twice
"""


def test_a_class_of_the_library_that_is_given_is_told_nothing(tmp_path: Path) -> None:
    main = "import pullback as torch\nimport ops\nkept = ops.make(__import__('torch'))"
    assert of_two_files(tmp_path, GENERAL, main, "(2 * x).sum().backward()") == ("[2.0, 2.0]", "")


def test_a_file_that_nobody_of_ours_holds_is_told_nothing(tmp_path: Path) -> None:
    ops = OPS.format(imported="from torch.autograd import Function", base="Function")
    (tmp_path / "between.py").write_text("import ops", "utf-8")
    main = "import pullback as torch\nimport between"
    assert of_two_files(tmp_path, ops, main, "(2 * x).sum().backward()") == ("[2.0, 2.0]", "")


MADE = """
def make():
    class Inner(Function):
        forward = staticmethod(lambda ctx, x: 2 * x)
        backward = staticmethod(lambda ctx, g: 10 * g)

    return Inner

Inner = make()
Inner.apply(x).sum().backward()
"""


@pytest.mark.parametrize("held", ["", "holder = [make()]\ndel make, Inner\n"])
def test_a_class_that_a_function_writes_is_told(tmp_path: Path, held: str) -> None:
    lines = MADE.replace("Inner.apply", held + ("holder[0].apply" if held else "Inner.apply"))
    out, told = run(tmp_path, "from torch.autograd import Function", lines)
    assert out == "[2.0, 2.0]"
    assert "UserWarning: __main__.make.<locals>.Inner: expected a class derived from" in told
    assert run(tmp_path, "from pullback.autograd import Function", lines) == ("[10.0, 10.0]", "")


def test_who_names_both_functions_may_write_classes_of_either(tmp_path: Path) -> None:
    imported = "from torch.autograd import Function as Theirs\nfrom pullback.autograd import Function\n"
    made = "def make(base):\n    class Made(base): pass\n    return Made\nkept = make(Theirs)"
    _, told = run(tmp_path, imported + made)
    assert told == ""


def test_it_is_told_once(tmp_path: Path) -> None:
    _, told = run(tmp_path, "from torch.autograd import Function", f"{BACKWARD}\n{BACKWARD}")
    assert told.count("What to do") == 1


def test_who_uses_both_libraries_is_told_nothing(tmp_path: Path) -> None:
    imported = "import torch as host\nfrom torch.autograd import Function as Theirs\nclass T(Theirs): pass\n"
    _, told = run(tmp_path, imported + "from pullback.autograd import Function")
    assert told == ""


def test_who_imports_pytorch_in_a_function_is_told_nothing(tmp_path: Path) -> None:
    local = "def compare():\n    from torch.autograd import Function as Theirs\n    class T(Theirs): pass\n"
    local += "    return T\nkept = compare()\n"
    _, told = run(tmp_path, local + "from pullback.autograd import Function")
    assert told == ""


def test_a_tensor_of_pytorch_is_no_output_of_ours() -> None:
    import torch

    class Theirs(pullback.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return torch.from_numpy(x.numpy()) * 2

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return 2 * g

    with pytest.raises(TypeError, match=r"Theirs.forward\(\): .*found a torch.Tensor of float32\[2\]"):
        Theirs.apply(pullback.ones(2, requires_grad=True))

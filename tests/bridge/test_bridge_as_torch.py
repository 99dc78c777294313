"""`bridge.as_torch`: programs that import torch run on this package, unchanged, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback

SOURCE = Path(pullback.__file__).parents[1]

SCRIPT = """
import sys
import torch, torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function, gradcheck
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


assert gradcheck(Square.apply, torch.randn(3, dtype=torch.float64, requires_grad=True))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
scheduler = StepLR(optimizer, 10)
x = torch.randn(16, 2)
for inputs, targets in DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4):
    optimizer.zero_grad()
    F.mse_loss(Square.apply(model(inputs)), targets).backward()
    optimizer.step()
    scheduler.step()
print(torch.__name__, model[0].weight.grad is not None, sys.argv[1:], "torch._C" in sys.modules)
"""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("form", [["script.py"], ["-m", "script"]], ids=["file", "module"])
def test_a_script_runs_unchanged(tmp_path: Path, form: list[str]) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    found = run("-m", "pullback.bridge.as_torch", *form, "a", "-b", cwd=tmp_path)
    assert (found.stdout, found.stderr) == ("pullback True ['a', '-b'] False\n", "")


def test_each_module_is_the_same_under_both_names_and_hides_no_function(tmp_path: Path) -> None:
    program = (
        "import importlib, pullback\n"
        "from pullback.bridge import as_torch\n"
        "from pullback.compat.paths import PUBLIC\n"
        "as_torch.install(); as_torch.install()\n"
        "own = ('bridge', 'scipy', 'array_api')\n"
        "names = [p for p in PUBLIC if p and p.partition('.')[0] not in own]\n"
        "theirs = {p: importlib.import_module('torch.' + p) for p in names}\n"
        "assert all(found is importlib.import_module('pullback.' + p) for p, found in theirs.items())\n"
        "import torch\n"
        "assert torch is pullback\n"
        "functions = torch.compile, torch.autograd.gradcheck, torch.utils.checkpoint.checkpoint\n"
        "assert all(callable(f) for f in functions)\n"
        "assert all(f.__spec__ is None or f.__spec__.name == f.__name__ for f in theirs.values())\n"
        "print(len(theirs) > 40)\n"
    )
    found = run("-c", program, cwd=tmp_path)
    assert (found.stdout, found.stderr) == ("True\n", "")


NOT_HERE = {
    "jit": "leave script() and trace() out",
    "fx": "look at the graph of a result",
    "profiler": "use inspect.timeline(fn, *args)",
    "quantization": "arrays of small integers have no gradients",
    "ao": "arrays of small integers have no gradients",
    "nn.quantized": "arrays of small integers have no gradients",
    "cuda.amp": "leave autocast and GradScaler out",
    "distributed.fsdp": "use DistributedDataParallel",
    "_dynamo": "only what compile() is given is compiled",
    "utils.tensorboard": "compute without it, or run the program with PyTorch. These modules are here: ",
    "table": "compute without it, or run the program with PyTorch. These modules are here: ",
}


def test_a_part_of_torch_that_is_not_here_says_so_and_what_to_do(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pullback.bridge import as_torch\nas_torch.install()\nfor line in sys.argv[1:]:\n"
        "    try:\n        exec(line)\n"
        "    except ModuleNotFoundError as error:\n        print(*str(error).split('\\n'), sep='; ')\n"
    )
    names = [f"torch.{name}" for name in NOT_HERE]
    lines = [f"import {name}" for name in names] + [f"from {name}.passes import anything" for name in names]
    found = run("-c", program, *lines, cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    told = found.stdout.splitlines()
    assert len(told) == len(lines)
    for (name, said), *texts in zip(NOT_HERE.items(), told[: len(names)], told[len(names) :], strict=True):
        for text in texts:
            assert text.startswith(f"torch.{name}: pullback stands for torch, and has no {name}.;   What to do: ")
            assert said in text
            assert ".md" not in text  # an installed package has no such files


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import torch.jit", "ModuleNotFoundError: torch.jit: pullback stands for torch, and has no jit."),
        ("from torch import profiler", "What to do: use inspect.timeline"),
        ("from torch.distributed import fsdp", "has no distributed.fsdp.\n  What to do: use DistributedDataParallel"),
        ("from torch import of_nobody", "dir(pullback) lists what is, `pullback ops` the operations"),
    ],
)
def test_a_script_that_needs_what_is_not_here_ends_with_what_to_do(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"{line}\n", encoding="utf-8")
    found = run("-m", "pullback.bridge.as_torch", "script.py", cwd=tmp_path)
    assert found.returncode == 1
    assert said in found.stderr


def test_the_modules_that_are_named_are_there(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch.table\n", encoding="utf-8")
    said = run("-m", "pullback.bridge.as_torch", "script.py", cwd=tmp_path).stderr
    modules = said.partition("These modules are here: ")[2].partition(";")[0].split(", ")
    assert {"torch.autograd", "torch.nn", "torch.optim", "torch.linalg"} < {*modules}
    assert not {"torch.bridge", "torch.ops", "torch.scipy"} & {*modules}
    (tmp_path / "script.py").write_text("".join(f"import {name}\n" for name in modules), encoding="utf-8")
    found = run("-m", "pullback.bridge.as_torch", "script.py", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert "`pullback ops` lists the operations" in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("of_nobody", "What to do: pip install of_nobody."),
        ("torchofnobody.ops", "pip install torchofnobody; it is built on PyTorch: run the program without pullback.b"),
    ],
)
def test_a_package_that_is_not_here_is_told_how_to_get(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "script.py").write_text(f"import torch\nimport {name}\n", "utf-8")
    found = run("-m", "pullback.bridge.as_torch", "script.py", cwd=tmp_path)
    assert found.returncode == 1
    assert said in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_after_torch_itself_it_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("", encoding="utf-8")
    program = (
        "import sys, torch, pullback.bridge.as_torch as a\nbefore = sys.meta_path[:], torch\n"
        "try:\n    a.install()\nexcept RuntimeError as error:\n    print(error)\n"
        "assert (sys.meta_path, sys.modules['torch']) == before\n"
    )
    found = run("-c", program, cwd=tmp_path)
    assert "PyTorch was imported already" in found.stdout
    assert "python -m pullback.bridge.as_torch script.py" in found.stdout
    assert found.stderr == ""


def test_the_bridge_to_torch_does_not_take_this_package_for_it(tmp_path: Path) -> None:
    program = (
        "import pullback.bridge.as_torch as a\na.install()\n"
        "try:\n    import pullback.bridge.torch\nexcept ImportError as error:\n    print(error)\n"
    )
    assert "pullback stands for torch" in run("-c", program, cwd=tmp_path).stdout


@pytest.mark.parametrize("bridge", ["as_torch", "autograd"])
def test_nothing_to_run_is_told_how_to_use_it(tmp_path: Path, bridge: str) -> None:
    for arguments in ([], ["-m"]):
        found = run("-m", f"pullback.bridge.{bridge}", *arguments, cwd=tmp_path)
        assert (found.returncode, found.stdout, found.stderr[:6]) == (1, "", "usage:")
    for asked in ("-h", "--help"):
        found = run("-m", f"pullback.bridge.{bridge}", asked, cwd=tmp_path)
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout.startswith(f"usage: python -m pullback.bridge.{bridge} (script.py | -m module)")
    found = run("-m", f"pullback.bridge.{bridge}", "nothing.py", cwd=tmp_path)
    assert found.returncode == 1
    assert f"there is no file nothing.py in {tmp_path}" in found.stderr
    found = run("-m", f"pullback.bridge.{bridge}", ".", cwd=tmp_path)
    assert found.returncode == 1
    assert found.stderr == (
        f"python -m pullback.bridge.{bridge}: . is a folder without __main__.py: name the file to run\n"
    )
    for module in ("nothing", "nothing.at.all"):
        found = run("-m", f"pullback.bridge.{bridge}", "-m", module, cwd=tmp_path)
        assert (found.returncode, found.stdout) == (1, "")
        assert (
            found.stderr
            == f"python -m pullback.bridge.{bridge}: there is no module {module} on the paths of sys.path\n"
        )

"""Adding an operation takes one entry and nothing else: done here, with the entry that CONTRIBUTING.md shows.

The package is copied, the entry is put at the end of its family's file, and a process of its own is asked for all that
should have come of it. The list of rooms is held to what they import.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.test_circles import Graph, graph

ROOT = Path(__file__).parents[2]

_QUESTIONS = """
import numpy as np
import pullback
from pullback.inspect import operations, stubs

x = pullback.tensor([-1.0, 0.0, 2.0], requires_grad=True)
y = pullback.softabs(x)
assert np.allclose(y.detach().numpy(), np.sqrt(np.array([2.0, 1.0, 5.0]))), y
y.sum().backward()
assert np.allclose(x.grad.numpy(), np.array([-1, 0, 2]) / np.sqrt(np.array([2.0, 1.0, 5.0]))), x.grad

z = x.detach()
assert pullback.equal(z.softabs(), pullback.softabs(z))
assert pullback.equal(pullback.softabs(z, out=pullback.empty(3)), z.softabs())
assert pullback.equal(z.clone().softabs_(), z.softabs())
assert pullback.autograd.gradcheck(pullback.softabs, z)
assert pullback.autograd.gradgradcheck(pullback.softabs, z)
assert pullback.equal(pullback.vmap(pullback.softabs)(z), z.softabs())
value, tangent = pullback.func.jvp(pullback.softabs, (z,), (pullback.ones(3),))
assert np.allclose(tangent.numpy(), x.grad.numpy())

(row,) = operations.rows(["softabs"])
assert row.formula.startswith("``sqrt(input ** 2 + 1)``"), row
assert (row.kind, row.inplace, row.method, row.batched) == ("elementwise", True, True, "one call"), row
assert "| `softabs` `softabs_` |" in operations.as_markdown([row])
texts = {path.parent.name + "/" + path.name: text for path, text in stubs.stubs().items()}
assert "def softabs(input: Tensor" in texts["pullback/__init__.pyi"]
assert "def softabs(self" in texts["tensor/methods.pyi"] and "def softabs_(self" in texts["tensor/methods.pyi"]
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process whose `pullback` is a copy with the entry added."""
    folder = tmp_path_factory.mktemp("contributed")
    package = folder / "pullback"
    shutil.copytree(ROOT / "src" / "pullback", package, ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (entry,) = re.findall(r"```python\n(softabs = .*?)```", text, re.DOTALL)
    with (package / "ops" / "elementwise" / "analysis.py").open("a", encoding="utf-8") as family:
        family.write("\n\n" + entry)
    return {**os.environ, "PYTHONPATH": str(folder)}


def _run(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_one_entry_is_all_it_takes(environment: dict[str, str]) -> None:
    _run(environment, "-c", _QUESTIONS)
    assert "softabs" in _run(environment, "-m", "pullback", "ops", "softabs")


def test_its_tests_come_with_it(environment: dict[str, str]) -> None:
    # those without the oracle, which does not know what was made up
    which = "softabs and (slopes or transpose or reverse or loop)"
    files = ["tests/table/test_ops.py", "tests/table/test_ops_modes.py"]
    out = _run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=.", *files, "-k", which)
    assert re.search(r"\b11 passed", out), out


# Where things are ----------------------------------------------------------------------------------------------------

PACKAGE = ROOT / "src" / "pullback"


def drawn() -> list[str]:
    """The rooms in the order in which CONTRIBUTING.md draws them, the ground floor first."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (block,) = re.findall(r"^    src/pullback/\n((?:      .*\n)+)", text, re.MULTILINE)
    return [name.rstrip("/").removesuffix(".py") for name in re.findall(r"^ {6}(\S+)", block, re.MULTILINE)]


def against_the_order(rooms: list[str], edges: Graph) -> list[str]:
    """The imports that lead from a room to one that is drawn below it; those of gradcheck are left out."""
    place = {name: number for number, name in enumerate(rooms)}
    return [
        example
        for home, others in edges.items()
        for other, example in others.items()
        if home != "diagnose/gradcheck"
        and place.get(other.partition("/")[0], -1) > place.get(home.partition("/")[0], len(rooms))
    ]


def test_every_room_is_drawn_above_those_that_import_it() -> None:
    rooms = drawn()
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders <= {*rooms}
    assert all((PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists() for name in rooms)
    assert against_the_order(rooms, graph(PACKAGE)) == []
    assert against_the_order(["tensor", "autograd"], {"tensor": {"autograd": "tensor/a.py: autograd.b"}})


def test_how_it_works_draws_every_room_and_every_file_of_the_heart() -> None:
    text = (ROOT / "docs" / "how_it_works.md").read_text("utf-8").partition("## Where to read")[2]
    words = {*re.findall(r"\w+", text)}
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"} <= words
    heart = {path.name for path in (PACKAGE / "autograd").glob("*.py")} - {"__init__.py"}
    assert {*re.findall(r"`(\w+\.py)`", text)} == heart


def test_what_is_looked_for_is_where_the_table_says() -> None:
    rows = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("| looking for |")[2].partition("\n\n")[0]
    paths = re.findall(r"`([a-z_/]+(?:\.py|/))`", rows)
    assert len(paths) > 9
    assert not [path for path in paths if not (ROOT / "src" / "pullback" / path).exists()]

"""The gallery: each page has its picture and its time, and is listed; notebooks are those of the pages.

The programs of the pages are run where pytest collects them (conftest.py).
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import gallery

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in (DOCS / "gallery").glob("*.md") if path.stem != "index")
TIME = re.compile(r"takes [\d.]+ s.*`python -m benchmarks\.gallery", re.DOTALL)


def _notebooks() -> ModuleType:
    """docs/notebooks.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _page(name: str) -> str:
    return (DOCS / "gallery" / f"{name}.md").read_text("utf-8")


def test_there_are_twelve_problems_and_a_picture_of_each() -> None:
    assert len(PAGES) == 12
    assert sorted(path.stem for path in (DOCS / "images" / "gallery").glob("*.png")) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_begins_with_its_picture_and_ends_with_its_time(name: str) -> None:
    title, picture, *_, time = (block for block in _page(name).split("\n\n") if block.strip())
    assert title.startswith("# ")
    assert re.fullmatch(rf"!\[.{{20,}}\]\(\.\./images/gallery/{name}\.png\)", picture)
    assert TIME.search(time), time
    assert _page(name).count("```pycon") > 2
    runs_in_pytorch = gallery.OURS.search(_page(name)) is None
    assert ("PyTorch" in time) == runs_in_pytorch or not runs_in_pytorch


@pytest.mark.parametrize("index", ["gallery/index.md", "zh/gallery/index.md"])
def test_both_lists_name_every_page_in_the_order_of_the_site(index: str) -> None:
    rows = re.findall(r"^\| <img .*?\| \[.*?\]\((?:\S*/)?(\w+)\.md\)", (DOCS / index).read_text("utf-8"), re.MULTILINE)
    listed = re.findall(r": gallery/(\w+)\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == PAGES
    assert rows == listed


@pytest.mark.parametrize("name", _notebooks().AS_NOTEBOOKS)
def test_a_notebook_is_its_page(name: str) -> None:
    notebooks = _notebooks()
    stored = json.loads((DOCS / "gallery" / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    picture = (DOCS / "images" / "gallery" / f"{name}.png").read_bytes()
    assert stored == notebooks.notebook(name, picture), f"stale; run: python docs/notebooks.py {name}"
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert sum(bool(cell["outputs"]) for cell in code) > 2
    assert "image/png" in code[-1]["outputs"][0]["data"]


def test_a_notebook_has_a_cell_for_each_statement_that_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebooks = _notebooks()
    monkeypatch.setattr(notebooks, "GALLERY", tmp_path)
    code = ">>> x = 1\n>>> x\n1\n>>> print(x)\n1\n>>> y = 2\n"
    page = f"# Title\n\n![a picture](../images/x.png)\n\nText.\n\n```pycon\n{code}\n```\n"
    (tmp_path / "p.md").write_text(page, "utf-8")
    cells: list[dict[str, Any]] = notebooks.notebook("p", b"png")["cells"]
    assert ["".join(c["source"]) for c in cells if c["cell_type"] == "code"][:3] == ["x = 1\nx", "print(x)", "y = 2"]
    kinds = [[o["output_type"] for o in c["outputs"]] for c in cells if c["cell_type"] == "code"]
    assert kinds == [["execute_result"], ["stream"], [], ["execute_result"]]
    assert not any("![" in "".join(c["source"]) for c in cells)


def test_a_page_that_prints_something_else_is_neither_timed_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "p.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n\n```\n", "utf-8")
    with pytest.raises(SystemExit, match="expected '3"):
        gallery.run(page, "pullback")
    notebooks = _notebooks()
    monkeypatch.setattr(notebooks, "GALLERY", tmp_path)
    with pytest.raises(SystemExit, match="expected '3"):
        notebooks.run("p")


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PAGES if not gallery.OURS.search(_page(name))])
def test_a_page_of_pytorchs_names_prints_the_same_there(name: str) -> None:
    parts = [
        (gallery.in_pytorch(e.source), gallery.in_pytorch(e.want))
        for e in gallery.examples(Path(f"{DOCS}/gallery/{name}.md"))
    ]
    assert any("import torch" in source for source, _ in parts)
    gallery.once(Path(name), parts, "torch")

"""The notebooks of the gallery: their cells are those of the pages, and Jupyter runs them to what is stored with them.

What is missing on a reader's machine is said by the first cell.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from nbformat import NotebookNode

from docs import drawings, notebooks

DOCS = Path(__file__).parents[2] / "docs"

each = pytest.mark.parametrize("name", notebooks.AS_NOTEBOOKS)


def stored(name: str) -> NotebookNode:
    return nbformat.read(DOCS / "gallery" / "notebooks" / f"{name}.ipynb", as_version=4)


def said(notebook: NotebookNode) -> list[list[str]]:
    """What each cell of code printed and showed, as text, and the kind of each picture."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        [
            *(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs),
            *(kind for output in cell.outputs for kind in output.get("data", {}) if kind.startswith("image/")),
        ]
        for cell in cells
    ]


def test_each_page_has_its_drawing() -> None:
    pages = sorted(path.stem for path in (DOCS / "gallery").glob("*.md") if path.stem != "index")
    functions = {name: f for name, f in vars(drawings).items() if getattr(f, "__module__", "") == drawings.__name__}
    assert sorted(functions) == pages


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in (DOCS / "images" / "gallery").glob("*.png")))
def test_a_page_is_drawn_from_what_its_program_finds(name: str, tmp_path: Path) -> None:
    figure = notebooks.drawn(name)
    figure.savefig(tmp_path / "drawn.png", dpi=110)
    assert all(axes.has_data() for axes in figure.get_axes())
    kept = (DOCS / "images" / "gallery" / f"{name}.png").stat().st_size
    assert 0.8 * kept < (tmp_path / "drawn.png").stat().st_size < 1.2 * kept  # the fonts differ by machine


@each
def test_a_notebook_has_the_cells_of_its_page(name: str) -> None:
    unrun, kept = notebooks.notebook(name), stored(name)
    nbformat.validate(kept)
    assert [(c.cell_type, c.id, c.source) for c in kept.cells] == [
        (c.cell_type, c.id, c.source) for c in unrun.cells
    ], f"stale; run: python -m docs.notebooks {name}"
    assert kept.metadata == unrun.metadata
    counts = [cell.execution_count for cell in kept.cells if cell.cell_type == "code"]
    assert counts == [*range(1, len(counts) + 1)]


@each
@pytest.mark.slow
def test_a_notebook_that_is_run_says_and_draws_what_is_stored(name: str) -> None:
    again, kept = notebooks.executed(notebooks.notebook(name)), stored(name)
    assert said(again) == said(kept), f"run: python -m docs.notebooks {name}"
    assert sum(map(bool, said(again))) > 2
    assert said(again)[-1][-1] == "image/png"
    for notebook in (again, kept):
        picture = base64.b64decode(notebook.cells[-1].outputs[0].data["image/png"])
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 10_000


@each
def test_what_is_stored_is_what_the_page_shows(name: str) -> None:
    page = (DOCS / "gallery" / f"{name}.md").read_text("utf-8")
    for text in (text for texts in said(stored(name))[:-1] for text in texts):
        assert f"\n{text.rstrip()}\n" in page


def _drawn(figure: Any) -> Any:
    return figure


def _page(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebooks, "GALLERY", folder)
    monkeypatch.setattr(drawings, "p", _drawn, raising=False)
    page = f"# Title\n\n![a picture](../images/x.png)\n\nText.\n\n```pycon\n{code}\n```\n"
    (folder / "p.md").write_text(page, "utf-8")


CHANGING = """>>> import itertools, sys
>>> print("printed"); _ = sys.stdout.write("twice\\n")
printed
twice
>>> next(itertools.count(3))
4
>>> figure = {}
"""


@pytest.mark.slow
def test_outputs_come_from_running_the_cells_and_not_from_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _page(tmp_path, CHANGING, monkeypatch)
    unrun = notebooks.notebook("p")
    assert said(unrun) == [[]] * 6
    assert not any("![" in cell.source for cell in unrun.cells)
    assert said(notebooks.executed(unrun)) == [[], ["printed\ntwice\n"], ["3"], [], [], ["{}"]]


def test_a_notebook_has_a_cell_for_each_statement_that_prints() -> None:
    code = ">>> x = 1\n>>> x\n1\n>>> print(x)\n1\n>>> y = 2\n"
    assert notebooks.sources_of(code) == ["x = 1\nx", "print(x)", "y = 2"]


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["matplotlib", "scipy", "pullback"])
def test_where_something_is_missing_the_first_cell_says_so(missing: str, tmp_path: Path) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError('No module named {missing}', name='{missing}')")
    with pytest.raises(nbclient.exceptions.CellExecutionError) as failed:
        notebooks.executed(notebooks.notebook("survival"), tmp_path)
    text = str(failed.value)
    assert f"this notebook needs pullback, SciPy and matplotlib. Found: No module named {missing}." in text
    assert "What to do: run `%pip install 'pullback[scipy,plot]'` in a cell, and then this cell again." in text
    assert "During handling" not in text


def test_a_page_that_prints_something_else_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _page(tmp_path, ">>> 1 + 1\n3\n", monkeypatch)
    with pytest.raises(SystemExit, match="expected '3"):
        notebooks.run("p")

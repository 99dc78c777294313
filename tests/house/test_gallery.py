"""The gallery: each page has its picture and its times, and is listed.

The programs of the pages are run where pytest collects them (conftest.py); test_notebooks.py runs the notebooks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import gallery, twins

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in (DOCS / "gallery").glob("*.md") if path.stem != "index")
ROW = re.compile(r"^\| (?!CPU time|---)([^|]+) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
TWINS = sorted(path.stem for path in gallery.TWINS.glob("*_*.py") if path.stem != "__init__")


def _page(name: str) -> str:
    return (DOCS / "gallery" / f"{name}.md").read_text("utf-8")


def test_there_are_twelve_problems_and_a_picture_of_each() -> None:
    assert len(PAGES) == 12
    assert sorted(path.stem for path in (DOCS / "images" / "gallery").glob("*.png")) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_begins_with_its_picture_and_ends_with_its_time(name: str) -> None:
    title, picture, *_, how, times = (block for block in _page(name).split("\n\n") if block.strip())
    assert title.startswith("# ")
    assert re.fullmatch(rf"!\[.{{20,}}\]\(\.\./images/gallery/{name}\.png\)", picture)
    assert f"`python -m benchmarks.gallery {name}`" in how
    assert "```pycon" in _page(name)
    assert 45 < len(_page(name).splitlines()) <= 76  # some 60 lines
    assert _unsaid(name, times) == []


def _unsaid(name: str, table: str) -> list[str]:
    """What the table of a page's times lacks: each library has its times, or the reason why there are none."""
    rows = {row[1]: row.groups()[1:] for row in ROW.finditer(table)}
    lacking = []
    expected = [gallery.label(name, *side) for side in gallery.sides(name)]
    for label in expected:
        if not any(re.fullmatch(re.escape(label) + "(: .+)?", row) and _has_times(rows[row]) for row in rows):
            lacking.append(f"times of: {label}")
    for library in {"torch", "jax"} - set(gallery.libraries(name)):
        reason = re.compile(f"{gallery.NAMES[library]}: .{{20,}}")
        if not any(reason.fullmatch(row) and not _has_times(rows[row]) for row in rows):
            lacking.append(f"a reason why not in: {gallery.NAMES[library]}")
    return lacking


def _has_times(cells: tuple[str, ...]) -> bool:
    """Whether they are the times of a run, of the first in a process, and of the first on a machine."""
    return re.fullmatch(r"[\d.]+ s \| [\d.]+ s \| ([\d.]+ s|-)", " | ".join(cells)) is not None


HERE = "| CPU time | again | first | ever |\n| --- | --- | --- | --- |\n| here | 0.1 s | 1.2 s | 3 s |\n"
IN_JAX = "| JAX, `benchmarks/twins/orbit_jax.py`: its `odeint` | 0.02 s | 2.9 s | - |\n"
WHY = "| PyTorch: it has no solver of differential equations | - | - | - |\n"


@pytest.mark.parametrize(
    ("table", "lacking"),
    [
        (HERE + IN_JAX + WHY, []),
        (HERE + IN_JAX, ["a reason why not in: PyTorch"]),
        (HERE + WHY, ["times of: JAX, `benchmarks/twins/orbit_jax.py`"]),
        (HERE + WHY + IN_JAX.replace("0.02 s", "-"), ["times of: JAX, `benchmarks/twins/orbit_jax.py`"]),
        (HERE + IN_JAX + "| PyTorch: no | - | - | - |\n", ["a reason why not in: PyTorch"]),
        (IN_JAX + WHY, ["times of: here"]),
    ],
)
def test_a_table_without_a_time_or_a_reason_is_noticed(table: str, lacking: list[str]) -> None:
    assert _unsaid("orbit", table) == lacking


def test_a_twin_that_finds_something_else_is_not_timed() -> None:
    twins.compare({"x[0]": 1.0}, {"x": [1.0 + 1e-6]})
    with pytest.raises(AssertionError, match=r"x\[0\]"):
        twins.compare({"x[0]": 1.0}, {"x": [1.1]})


@pytest.mark.slow
@pytest.mark.parametrize(
    "twin",
    [
        pytest.param(twin, marks=getattr(pytest.mark, twin.rpartition("_")[2]))
        for twin in TWINS
        if not twin.endswith("_pullback")
    ],
)
def test_a_twin_finds_what_its_page_finds(twin: str, tmp_path: Path) -> None:
    name, _, library = twin.rpartition("_")
    assert name in PAGES
    assert gallery.measured(name, library, 1, str(tmp_path))["again"] > 0


@pytest.mark.parametrize("index", ["gallery/index.md", "zh/gallery/index.md"])
def test_both_lists_name_every_page_in_the_order_of_the_site(index: str) -> None:
    rows = re.findall(r"^\| <img .*?\| \[.*?\]\((?:\S*/)?(\w+)\.md\)", (DOCS / index).read_text("utf-8"), re.MULTILINE)
    listed = re.findall(r": gallery/(\w+)\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == PAGES
    assert rows == listed


def test_a_page_that_prints_something_else_is_not_timed(tmp_path: Path) -> None:
    page = tmp_path / "p.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n\n```\n", "utf-8")
    with pytest.raises(SystemExit, match="expected '3"):
        gallery.run(page, "pullback")


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

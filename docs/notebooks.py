"""The gallery's pictures and notebooks, made from its pages.

`python -m docs.notebooks` runs each page of `docs/gallery` from top to bottom, gives its names to the function of
docs/drawings.py that draws the picture at its top, and writes the first four pages as notebooks: one source for all.
A notebook is executed by Jupyter, in a kernel of its own, and stored with what that printed and drew.
tests/house/test_notebooks.py says when one is stale. It needs SciPy, matplotlib, a C compiler, and
`pip install 'pullback[docs]'`, which brings nbclient.
"""

from __future__ import annotations

import doctest
import inspect
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from matplotlib.figure import Figure
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from benchmarks import gallery
from docs import drawings

DOCS = Path(__file__).parent
GALLERY = DOCS / "gallery"
PICTURES = DOCS / "images" / "gallery"
NOTEBOOKS = GALLERY / "notebooks"
AS_NOTEBOOKS = ("heat_source", "gaussian_process", "kalman_noise", "survival")

NEEDS = "A notebook made from [a page of the documentation](../{name}.md). Its first cell says what it needs."
CHECK = """try:
    import matplotlib
    import scipy

    import pullback
except ImportError as error:
    raise ImportError(
        f"this notebook needs pullback, SciPy and matplotlib. Found: {error}.\\n"
        "  What to do: run `%pip install 'pullback[scipy,plot]'` in a cell, and then this cell again."
    ) from None"""
IMPORTS = """from typing import Any

import numpy as np
from matplotlib.figure import Figure

"""
INLINE = "%matplotlib inline"

Part = tuple[str, str]


def parts(page: str) -> list[Part]:
    """The text and the blocks of code of a page, in order, as ("markdown" or "code", what it says)."""
    pieces = re.split(r"^```pycon\n(.*?)^```$\n?", page, flags=re.MULTILINE | re.DOTALL)
    kinds = ("markdown", "code")
    return [(kinds[i % 2], piece.strip("\n")) for i, piece in enumerate(pieces) if piece.strip()]


def sources_of(block: str) -> list[str]:
    """A cell for each statement that prints, with those before it: a notebook shows the last value of a cell."""
    cells, waiting = [], ""
    for example in doctest.DocTestParser().get_examples(block + "\n"):
        waiting += example.source
        if example.want:
            cells.append(waiting)
            waiting = ""
    return [source.rstrip("\n") for source in [*cells, waiting] if source]


def notebook(name: str) -> NotebookNode:
    """A page as a notebook that was not run (nbformat 4.5). Its first cell looks for what it needs, the last draws."""
    draw = getattr(drawings, name)
    cells: list[NotebookNode] = []
    for kind, text in parts((GALLERY / f"{name}.md").read_text("utf-8")):
        if kind == "markdown":
            text = re.sub(r"^!\[.*\n\n?", "", text, flags=re.MULTILINE)  # it is drawn below
            text = text.replace(f"[A notebook](notebooks/{name}.ipynb). ", "")
            text = text.replace(", the picture drawn by `docs/drawings.py`", "")
            cells.append(new_markdown_cell(re.sub(r"\]\(\.\./", "](../../", text)))
        else:
            cells += map(new_code_cell, sources_of(text))
    cells[1:1] = [new_markdown_cell(NEEDS.format(name=name)), new_code_cell(CHECK)]
    call = f"{draw.__name__}({', '.join(inspect.signature(draw).parameters)})"
    cells += [new_code_cell(f"{IMPORTS}\n{inspect.getsource(draw).rstrip()}"), new_code_cell(f"{INLINE}\n{call}")]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def executed(unrun: NotebookNode, first: Path | None = None) -> NotebookNode:
    """A notebook with what its cells print and draw in a kernel of its own, which finds the pullback of this checkout.

    first: a folder whose modules stand before all others. What differs from one run to the next is left out.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    with tempfile.TemporaryDirectory() as empty:
        own = filter(None, [first and str(first), str(DOCS.parent / "src"), os.environ.get("PYTHONPATH")])
        settings = {"PYTHONPATH": os.pathsep.join(own), "IPYTHONDIR": empty, "JUPYTER_RUNTIME_DIR": empty}
        outside = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}  # a kernel has its own
        made: NotebookNode = nbformat.from_dict(unrun)
        client = nbclient.NotebookClient(
            made, timeout=120, kernel_name="python3", record_timing=False, coalesce_streams=True,
            resources={"metadata": {"path": empty}},
        )  # fmt: skip
        client.execute(env=outside | settings)
    made["metadata"] = unrun["metadata"]  # without the version of Python
    return made


def run(name: str) -> dict[str, Any]:
    """Run a page; what it prints has to be what it shows. Returns its variables."""
    page = GALLERY / f"{name}.md"
    return gallery.once(page, [(e.source, e.want) for e in gallery.examples(page)], "pullback")[1]


def drawn(name: str) -> Figure:
    """Run a page and draw its picture, from those of its names that the drawing asks for."""
    draw, names = getattr(drawings, name), run(name)
    picture: Figure = draw(**{wanted: names[wanted] for wanted in inspect.signature(draw).parameters})
    return picture


def main(chosen: list[str]) -> None:
    """Draw the pictures of the pages that are named, or of all, and run their notebooks and write them."""
    PICTURES.mkdir(exist_ok=True)
    NOTEBOOKS.mkdir(exist_ok=True)
    for name in chosen or sorted(page.stem for page in GALLERY.glob("*.md") if page.stem != "index"):
        drawn(name).savefig(PICTURES / f"{name}.png", dpi=110)
        if name in AS_NOTEBOOKS:
            (NOTEBOOKS / f"{name}.ipynb").write_text(nbformat.writes(executed(notebook(name))) + "\n", "utf-8")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The gallery's pictures and notebooks, made from its pages.

Run as a program, this file runs each page of `docs/gallery` from top to bottom, saves the page's `figure` as the
picture at its top, and writes the first four pages as notebooks, with what was printed and drawn: one source for all.
tests/house/test_gallery.py says when a notebook is stale. It needs SciPy, matplotlib and a C compiler.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import doctest
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
GALLERY = DOCS / "gallery"
PICTURES = DOCS / "images" / "gallery"
NOTEBOOKS = GALLERY / "notebooks"
AS_NOTEBOOKS = ("heat_source", "gaussian_process", "kalman_noise", "survival")

NEEDS = (
    "A notebook made from [a page of the documentation](../{name}.md). It needs `pip install 'pullback[scipy,plot]'`."
)

Part = tuple[str, str]


def parts(page: str) -> list[Part]:
    """The text and the blocks of code of a page, in order, as ("markdown" or "code", what it says)."""
    pieces = re.split(r"^```pycon\n(.*?)^```$\n?", page, flags=re.MULTILINE | re.DOTALL)
    kinds = ("markdown", "code")
    return [(kinds[i % 2], piece.strip("\n")) for i, piece in enumerate(pieces) if piece.strip()]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _told(example: doctest.Example) -> dict[str, Any]:
    """What a notebook shows below a statement that printed something."""
    shown = _lines(example.want.rstrip("\n"))
    if isinstance(ast.parse(example.source).body[0], ast.Expr) and not example.source.startswith("print("):
        return {"output_type": "execute_result", "data": {"text/plain": shown}, "metadata": {}, "execution_count": None}
    return {"output_type": "stream", "name": "stdout", "text": shown}


def _code(source: str, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs,
        "source": _lines(source.rstrip("\n")),
    }


def _cells_of(block: str) -> list[dict[str, Any]]:
    """A cell for each statement that prints, with those before it: a notebook shows the last value of a cell."""
    cells, waiting = [], ""
    for example in doctest.DocTestParser().get_examples(block + "\n"):
        waiting += example.source
        if example.want:
            cells.append(_code(waiting, [_told(example)]))
            waiting = ""
    return cells + ([_code(waiting, [])] if waiting else [])


def notebook(name: str, picture: bytes) -> dict[str, Any]:
    """A page as a notebook (nbformat 4.5); its last cell shows the picture."""
    cells: list[dict[str, Any]] = []
    for kind, text in parts((GALLERY / f"{name}.md").read_text("utf-8")):
        if kind == "markdown":
            text = re.sub(r"^!\[.*\n\n?", "", text, flags=re.MULTILINE)  # it is drawn below
            text = text.replace(f"[A notebook](notebooks/{name}.ipynb). ", "")
            text = re.sub(r"\]\(\.\./", "](../../", text)
            cells.append({"cell_type": "markdown", "metadata": {}, "source": _lines(text)})
        else:
            cells += _cells_of(text)
    cells.insert(1, {"cell_type": "markdown", "metadata": {}, "source": _lines(NEEDS.format(name=name))})
    drawn = {"image/png": base64.b64encode(picture).decode(), "text/plain": ["<Figure>"]}
    shown = {"output_type": "execute_result", "data": drawn, "metadata": {}, "execution_count": None}
    cells.append(_code("%matplotlib inline\nfigure", [shown]))
    count = 0
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            for output in cell["outputs"]:
                if "execution_count" in output:
                    output["execution_count"] = count
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def run(name: str) -> dict[str, Any]:
    """Run a page; what it prints has to be what it shows. Returns its variables."""
    page, names = GALLERY / f"{name}.md", {"__name__": "__main__"}
    text = re.sub(r"^```$", "", page.read_text("utf-8"), flags=re.MULTILINE)
    for example in doctest.DocTestParser().get_examples(text, str(page)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example.source, str(page), "single"), names)
        if not doctest.OutputChecker().check_output(
            example.want, printed.getvalue(), doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        ):
            raise SystemExit(f"{name}: expected {example.want!r}, found {printed.getvalue()!r}")
    return names


def main(chosen: list[str]) -> None:
    """Draw the pictures of the pages that are named, or of all, and write their notebooks."""
    PICTURES.mkdir(exist_ok=True)
    NOTEBOOKS.mkdir(exist_ok=True)
    for name in chosen or sorted(page.stem for page in GALLERY.glob("*.md") if page.stem != "index"):
        picture = PICTURES / f"{name}.png"
        figure = run(name).get("figure")
        if figure is not None:
            figure.savefig(picture, dpi=110)
        if name in AS_NOTEBOOKS:
            written = json.dumps(notebook(name, picture.read_bytes()), indent=1, ensure_ascii=False)
            (NOTEBOOKS / f"{name}.ipynb").write_text(written + "\n", "utf-8")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

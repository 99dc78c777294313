"""What mkdocs does for this site beyond its theme: a reference from the docstrings, and pages that know their language.

mkdocs calls the functions named `on_...` (`hooks` in mkdocs.yml). Run as a program, this file draws the pictures in
`docs/images`, with the library itself; tests/house/test_docs.py says when they are stale. It needs mkdocs only when
mkdocs calls it.
"""

from __future__ import annotations

import functools
import inspect
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pullback

IMAGES = Path(__file__).parent / "images"

# The modules of each page of the reference. A function stands for itself.
REFERENCE = {
    "autograd": ["autograd", "autograd.graph", "autograd.function", "autograd.forward_ad", "autograd.functional"],
    "func": ["func", "func.sparse"],
    "inspect": ["inspect"],
    "testing": ["testing"],
    "compile": ["compile"],
    "nn": ["nn"],
    "nn_functional": ["nn.functional"],
    "nn_init": ["nn.init", "nn.utils"],
    "optim": ["optim", "optim.lr_scheduler", "optim.swa_utils"],
}

LITERAL = {"**": r"\*\*", "<": "&lt;"}  # in the prose of a docstring a power and a sign, in Markdown markup


# -- the reference -----------------------------------------------------------------------------------------------------


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The names a module offers, with what they stand for: `__all__`, or else what the package defines there."""
    offered = getattr(module, "__all__", None)
    for name in offered or [n for n in vars(module) if not n.startswith("_")]:
        value = getattr(module, name)
        if callable(value) and (offered or getattr(value, "__module__", "").startswith(module.__name__)):
            yield name, value


def as_markdown(docstring: str) -> str:
    """A docstring as Markdown: examples become fenced blocks, lists of arguments lists; `**` and `<` are themselves."""
    blocks = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        if block.startswith(">>>"):
            blocks.append(f"```pycon\n{block}\n```")
            continue
        listed = re.fullmatch(r"(Args|Raises|Returns):\n(.*)", block, re.DOTALL)
        if listed:
            rows = inspect.cleandoc("\n" + listed[2])
            block = f"{listed[1]}:\n\n" + re.sub(r"^(\*{0,2}\w+):", r"- `\1`:", rows, flags=re.MULTILINE)
        if not block.startswith("    "):
            block = re.sub(r"(`+.+?`+)|\*\*|<", lambda m: m[1] or LITERAL[m[0]], block, flags=re.DOTALL)
        blocks.append(block)
    return "\n\n".join(blocks)


def signature(name: str, value: Any) -> str:
    """A call as it is written, without the annotations; only the name where Python does not know the parameters."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "self"]
    return f"{name}{found.replace(parameters=bare, return_annotation=inspect.Signature.empty)}"


def entry(path: str, value: Any, level: int) -> Iterator[str]:
    """The lines on one function or class, and on the methods that the class documents itself."""
    name = path.rpartition(".")[2]
    yield f"{'#' * level} `{name}` {{ #{path} }}\n"
    yield f"```python\n{'class ' if isinstance(value, type) else ''}{signature(path, value)}\n```\n"
    yield as_markdown(value.__doc__ or "") + "\n"
    if isinstance(value, type):
        for key, member in vars(value).items():
            method = getattr(member, "__func__", member)
            if not key.startswith("_") and inspect.isfunction(method) and method.__doc__:
                yield f"`{signature(key, method)}`\n\n:   " + as_markdown(method.__doc__).replace("\n", "\n    ") + "\n"


def reference(page: str) -> str:
    """One page of the reference, as Markdown."""
    first = REFERENCE[page][0]
    lines = [f"# pullback.{first}\n"]
    for path in REFERENCE[page]:
        place = functools.reduce(getattr, path.split("."), pullback)
        if not isinstance(place, ModuleType):
            lines += entry(f"pullback.{path}", place, 2)
            continue
        lines += [f"## pullback.{path}\n"] if path != first else []
        lines += [as_markdown(place.__doc__ or "") + "\n"]
        for name, value in public(place):
            lines += entry(f"pullback.{path}.{name}", value, 3)
    return "\n".join(lines)


# -- the pictures ------------------------------------------------------------------------------------------------------


def ten_rows(page: str) -> list[tuple[str, str, str]]:
    """The first table of the page on benchmarks: what was done, and the times eager and compiled, PyTorch's being 1."""
    return re.findall(r"^\| (.+?) \| ([\d.]+) \| ([\d.]*) ?\| `[\w-]+` \|$", page, re.MULTILINE)


def bars(rows: list[tuple[str, str, str]]) -> str:
    """A chart of such a table. The line is PyTorch's time; the colours suit light and dark pages."""
    left, unit, step = 400, 300, 34
    width, height = left + round(1.7 * unit), step * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">',
        "<style>text{fill:#24292f}@media(prefers-color-scheme:dark){text{fill:#d0d7de}}</style>",
        f'<line x1="{left + unit}" y1="24" x2="{left + unit}" y2="{height}" stroke="#8c959f" stroke-dasharray="4 3"/>',
        f'<text x="{left + unit}" y="16" text-anchor="middle">PyTorch</text>',
    ]
    for number, (words, *times) in enumerate(rows):
        y = 30 + step * number
        parts.append(f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{words.replace("`", "")}</text>')
        for place, (time, colour, name) in enumerate(
            zip(times, ("#4969c8", "#e07b39"), ("eager", "compiled"), strict=True)
        ):
            if time:
                long, top = round(float(time) * unit), y + 12 * place
                parts.append(f'<rect x="{left}" y="{top}" width="{max(long, 1)}" height="11" fill="{colour}"/>')
                parts.append(f'<text x="{left + long + 5}" y="{top + 10}" font-size="10">{time} {name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def pictures() -> dict[str, str]:
    """The pictures of the pages, by file name, as SVG."""

    class Swish(pullback.autograd.Function):
        """x * sigmoid(x)."""

        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x.sigmoid()

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            s = x.sigmoid()
            return grad_output * (s + x * s * (1 - s))

    x, w, b = pullback.ones(4, 3), pullback.ones(3, 2, requires_grad=True), pullback.zeros(2, requires_grad=True)
    h = x @ w + b
    layer = Swish.apply(h).sum()
    v = pullback.ones(2, requires_grad=True)
    y = v.exp()
    diamond = (y * y).sum()
    names = {"w": w, "b": b, "v": v}
    return {
        "benchmarks.svg": bars(ten_rows((IMAGES.parent / "benchmarks.md").read_text("utf-8"))),
        "layer.svg": pullback.inspect.graph(layer, names).svg(),
        "diamond.svg": pullback.inspect.graph(diamond, names).svg(),
    }


# -- what mkdocs calls -------------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the reference."""
    from mkdocs.structure.files import File

    for page in REFERENCE:
        files.append(File.generated(config, f"reference/{page}.md", content=reference(page)))
    return files


def twin(name: str) -> str:
    """The page of the same name in the other language, whether it exists or not."""
    return name.removeprefix("zh/") if name.startswith("zh/") else f"zh/{name}"


def unescaped(markdown: str) -> str:
    r"""The rows of tables for this site, which shows the backslash before a bar in code; GitHub needs it.

    >>> print(unescaped(r"| `a \| b` | a \| b |"))
    | `a | b` | a \| b |
    """
    rows = re.compile(r"^\|.*\|$", re.MULTILINE)
    return rows.sub(lambda row: re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), row[0]), markdown)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A page leads to its twin in the other language, from below its title; wide tables have the whole width."""
    name, markdown = page.file.src_uri, unescaped(markdown)
    if name.startswith("operations/"):
        page.meta["hide"] = ["toc"]  # it has no entries, and the table is wide
    if files.get_file_from_path(twin(name)) is None:
        return markdown
    path = posixpath.relpath(twin(name), posixpath.dirname(name) or ".")
    word = "English" if name.startswith("zh/") else "中文"
    title, rest = markdown.split("\n", 1)
    return f"{title}\n\n[{word}]({path}){{ .twin data-search-exclude='' }}\n{rest}"


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """The theme speaks Chinese around a Chinese page: its `lang`, its buttons, its search."""
    config.theme["language"] = "zh" if page.url.startswith("zh/") else "en"
    return context


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for name, svg in pictures().items():
        (IMAGES / name).write_text(svg, "utf-8")
    sys.stdout.write(f"{len(pictures())} pictures in {IMAGES}\n")

"""The pages of the documentation: that they are built, hang together, and are true.

Their examples are run where pytest collects the pages (conftest.py). Here is the rest: both editions of the tutorial
in step, every link, the names in the tables, pictures and reference as the library is, and what is said of PyTorch.
"""

from __future__ import annotations

import doctest
import functools
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pullback
from tests.browser import EXECUTABLE, Browser, Page
from tests.imported import imported

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHAPTERS = sorted(path.name for path in (DOCS / "learn").glob("*.md") if path.name != "index.md")
PAGES = sorted(DOCS.rglob("*.md"))
INTERPRETERS = ("payloads", "taylor", "sparse_derivatives")
BRIDGES = ("bridge_torch", "bridge_jax")
# The pages without a twin in Chinese. All others have to have one; that of `gallery/index` has the titles of its pages.
ENGLISH_ONLY = re.compile(
    r"(benchmarks|checks|design|from_autograd|interpreters|jax|node_names|operations\w*|operations/.*|scipy_functions"
    r"|gallery/(?!index).*)\.md"
)
TWINS = [
    n for n in (str(p.relative_to(DOCS)) for p in PAGES) if not n.startswith("zh/") and not ENGLISH_ONLY.fullmatch(n)
]
OWN = [*DOCS.glob("learn/*.md"), *DOCS.glob("zh/**/*.md")] + [
    DOCS / f"{name}.md"
    for name in (
        "index",
        "from_pytorch",
        "from_autograd",
        "bridge_autograd",
        "how_it_works",
        "design",
        "scipy",
        "numpy_code",
        *INTERPRETERS,
        *BRIDGES,
    )
]
HOW_TO_READ_A_NAME = re.compile(r"`(pullback(?:\.\w+)+)")


def _name(path: Path) -> str:
    return str(path.relative_to(DOCS))


def _fenced(text: str) -> list[str]:
    """The fenced blocks of a page, with their fences."""
    return re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _find(path: str) -> Any:
    """What a dotted name stands for; modules are imported as far as they go."""
    first, *rest = path.split(".")
    found: Any = importlib.import_module(first)
    for part in rest:
        if isinstance(found, ModuleType) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)
    return found


def _rows(page: str) -> list[list[str]]:
    """The cells of the tables of a page, without their heads."""
    lines = [line for line in (DOCS / page).read_text("utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    heads = {number - 1 for number, row in enumerate(rows) if set("".join(row)) <= set("-| :")}
    return [row for number, row in enumerate(rows) if number not in heads and number - 1 not in heads]


def test_a_bar_in_a_tables_code_is_shown_without_its_backslash() -> None:
    hooks = imported(DOCS / "site_hooks.py")
    page = "`a \\| b`\n\n| `a \\| b` | c \\| d |\n"
    assert hooks.unescaped(page) == "`a \\| b`\n\n| `a | b` | c \\| d |\n"


# -- the two editions of the tutorial ----------------------------------------------------------------------------------


def test_both_editions_have_the_same_chapters() -> None:
    assert len(CHAPTERS) == 14
    assert sorted(path.name for path in (DOCS / "zh" / "learn").glob("*.md") if path.name != "index.md") == CHAPTERS


def _without_comments(code: list[str]) -> list[str]:
    """Blocks of code without the remarks behind it, which are in the language of the page."""
    return [re.sub(r"\s*# .*$", "", block, flags=re.MULTILINE) for block in code]


def _shape(text: str) -> list[str]:
    """The order of headings, code, tables and claims, whatever the words."""
    marks = re.findall(r"^(#+ |```|\| -|\*\*|    \S|!\[)", text, re.MULTILINE)
    return [mark.strip()[:2] for mark in marks]


def _are_in_step(english: str, chinese: str) -> None:
    assert _without_comments(_fenced(english)) == _without_comments(_fenced(chinese))
    assert _shape(_without_code(english)) == _shape(_without_code(chinese))
    assert len(re.findall(r"[\u4e00-\u9fff]", _without_code(chinese))) > 300


@pytest.mark.parametrize("page", TWINS)
def test_both_editions_of_a_page_are_in_step(page: str) -> None:
    english, chinese = ((DOCS / folder / page).read_text("utf-8") for folder in ("", "zh"))
    _are_in_step(english, chinese)


def test_both_readmes_are_in_step_and_short() -> None:
    english, chinese = (
        re.sub(r'""".*"""', '"""."""', (ROOT / name).read_text("utf-8")) for name in ("README.md", "README.zh-CN.md")
    )  # docstrings are in the language of the page
    _are_in_step(english, chinese)
    rows = [sum(line.startswith("| ") for line in text.splitlines()) for text in (english, chinese)]
    assert rows[0] == rows[1]
    names = [sorted(set(re.findall(r"`[^`\n]+`", _without_code(text)))) for text in (english, chinese)]
    assert names[0] == names[1]
    assert len(english.splitlines()) <= 255
    assert len(english.split()) <= 1750


@pytest.mark.parametrize("path", [*DOCS.glob("zh/**/*.md"), ROOT / "README.zh-CN.md"], ids=str)
def test_no_line_breaks_within_chinese_words(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    chinese = r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
    broken = re.findall(rf".{{0,9}}{chinese} *\n *{chinese}.{{0,9}}", text)  # a page shows a space for the break
    assert broken == []


@pytest.mark.parametrize("edition", ["learn/index.md", "zh/learn/index.md"])
def test_the_first_page_of_an_edition_leads_to_each_chapter_in_order(edition: str) -> None:
    numbered = re.findall(
        r"^\| \d+ \| \[.*?\]\((?:learn/)?(\w+\.md)\)", (DOCS / edition).read_text("utf-8"), re.MULTILINE
    )
    listed = re.findall(r": learn/(\w+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(numbered) == CHAPTERS
    assert numbered == [name for name in listed if name != "index.md"]


# The code of the first page needs a GPU, the second shows a test and commands. The chapter on kernels shows lines of a
# program, and how it is started. The program of the page on many processes is run in tests/distributed/, and the
# command of the page on NumPy code in tests/cli/.
NOT_RUN = (DOCS / "zh" / "gpu.md", DOCS / "zh" / "audit.md")
KERNELS = (ROOT / "examples" / "cuda_kernel.py").read_text("utf-8").splitlines()


@pytest.mark.parametrize("path", [path for path in OWN if path not in NOT_RUN], ids=_name)
def test_every_block_of_code_is_one_that_runs(path: Path) -> None:
    for block in _fenced(path.read_text("utf-8")):
        if path.name == "kernels.md" and not block.startswith("```pycon"):
            kind, *lines, _ = block.splitlines()
            started = kind == "```text" and lines[0] == "$ python examples/cuda_kernel.py"
            assert started or [line for line in lines if line not in KERNELS] == [], block
        elif path.name == "numpy_code.md" and not block.startswith("```pycon"):
            shown = r"```(python\nimport math|sh\npullback port --write decay.py\n```|text\ndecay.py:)"
            assert re.match(shown, block), block
        elif not (path.name == "distributed.md" and block.startswith("```python\nimport pullback as torch\n")):
            assert block.startswith("```pycon\n>>> "), block


# -- the pages together ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", OWN, ids=_name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _without_code(path.read_text("utf-8"))):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve()
        assert found.is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text("utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w]+", "-", h.lower()).strip("-") for h in headings}, target


def test_why_is_my_grad_none_is_one_click_from_either_start_page() -> None:
    assert "[Why is my grad None?](diagnosis.md)" in (DOCS / "index.md").read_text("utf-8")
    assert "](diagnosis.md)" in (DOCS / "zh" / "index.md").read_text("utf-8")
    assert (DOCS / "diagnosis.md").read_text("utf-8").split("\n## ")[1].startswith("Why is my `grad` None?")


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    generated = {f"reference/{page}.md" for page in imported(DOCS / "site_hooks.py").REFERENCE}
    assert {_name(path) for path in PAGES} | generated == listed


def test_entries_of_the_navigation_are_called_as_their_pages_are() -> None:
    entries = re.findall(r'^ +- "?([^"\n]+?)"?: (\S+\.md)$', (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    called = {page: name for name, page in entries if page != "index.md" and not page.startswith("reference/")}
    assert len(called) > 90
    for page, name in called.items():
        (title, *_) = re.findall(r"^# (.+)$", (DOCS / page).read_text("utf-8"), re.MULTILINE)
        assert title.replace("`", "") == name, page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; a warning while it is built is an error."""
    pytest.importorskip("material", reason="the site needs mkdocs-material (pip install -e .[docs])")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_needs_no_network_and_its_pages_know_their_language(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 40
    for page in pages:
        html = page.read_text("utf-8")
        assert not re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"?(?:https?:)?//[^\s>]*", html), page
        assert not re.findall(r"<link[^>]*rel=\"?(?:stylesheet|preconnect)\"?[^>]*https?://[^\s>]*", html), page
        assert f'<html lang="{"zh" if site / "zh" in page.parents else "en"}"' in html, page


@pytest.mark.browser
@pytest.mark.skipif(
    EXECUTABLE is None, reason="it opens pages in a browser, and there is none (apt-get install chromium)"
)
def test_a_reader_finds_why_grad_is_none_in_a_browser(site: Path) -> None:
    with Browser() as browser:
        page = Page(browser)
        for start, question in (("index.html", "Why is my grad None?"), ("zh/index.html", "为什么我的 grad 是 None")):
            page.open(site / start)
            target = page.js("document.querySelector('article a[href$=\"diagnosis.html\"]').href")
            page.open(Path(target.removeprefix("file://")))
            assert question in page.text("article")
        assert [p for p in page.problems if not p.startswith(("file:", "data:"))] == []  # the files of the site itself


def test_a_page_leads_to_its_twin_in_the_other_language(site: Path) -> None:
    for name in TWINS:
        html = name.replace(".md", ".html")
        for page, other in ((site / html, site / "zh" / html), (site / "zh" / html, site / html)):
            links = re.findall(r'<a class="?twin"?[^>]* href="?([^"\s>]+)', page.read_text("utf-8"))
            links += re.findall(r'<a[^>]* href="?([^"\s>]+)"?[^>]*class="?twin', page.read_text("utf-8"))
            assert [(page.parent / link).resolve() for link in links] == [other.resolve()], page


# Enters words in the field and waits for the list of results.
SEARCH = """(async () => {
  const field = document.querySelector("input.md-search__input")
  field.focus()
  field.value = %s
  field.dispatchEvent(new Event("input", { bubbles: true }))
  field.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }))
  for (;;) {
    await new Promise((done) => setTimeout(done, 50))
    const found = [...document.querySelectorAll(".md-search-result__link")]
    if (found.length) return found.map((a) => new URL(a.href).pathname)
  }
})()"""


@pytest.mark.browser
@pytest.mark.skipif(
    EXECUTABLE is None, reason="it opens pages in a browser, and there is none (apt-get install chromium)"
)
def test_the_search_finds_pages_of_both_languages_in_a_folder(site: Path) -> None:
    with Browser() as browser:
        page = Page(browser)
        for start, words, expected in (
            ("index.html", "Kalman", "gallery/kalman_noise.html"),
            ("zh/index.html", "原地写入", "zh/learn/in_place.html"),
        ):
            page.open(site / start)
            found = page.js(SEARCH % json.dumps(words))
            assert found[0] == str(site / expected)


# -- what is made from the library -------------------------------------------------------------------------------------


def test_the_pictures_are_those_that_the_library_draws() -> None:
    fresh = imported(DOCS / "site_hooks.py").pictures()
    elsewhere = {"gallery", "graph_page.png", "heaters.png"}  # matplotlib's and a browser's pictures differ by version
    assert {path.name for path in (DOCS / "images").iterdir()} == {*fresh, *elsewhere}
    for name, svg in fresh.items():
        assert (DOCS / "images" / name).read_text("utf-8") == svg, f"{name} is stale; run: python docs/site_hooks.py"


def test_the_ten_rows_in_words_are_those_of_the_table() -> None:
    page = (DOCS / "benchmarks.md").read_text("utf-8")
    measured = {
        (r, s): x for r, s, x in re.findall(r"^\| (\S+) \| (\w+) \|[^|]*\|[^|]*\| ([\d.]+) \|", page, re.MULTILINE)
    }
    keys = re.findall(r"\| `([\w-]+)` \|$", page, re.MULTILINE)
    told = imported(DOCS / "site_hooks.py").ten_rows(page)
    assert len(told) == len(keys) == 10
    for key, (_, eager, compiled) in zip(keys, told, strict=True):
        assert eager == measured[key, "pullback"]
        assert compiled == measured.get((key, "compiled"), "")


def test_the_reference_has_every_public_name() -> None:
    hooks = imported(DOCS / "site_hooks.py")
    for page, modules in hooks.REFERENCE.items():
        text = hooks.reference(page)
        for path in modules:
            module = functools.reduce(getattr, path.split("."), pullback)
            for name in getattr(module, "__all__", ()) if isinstance(module, ModuleType) else ():
                if callable(getattr(module, name)):
                    assert f"{{ #pullback.{path}.{name} }}" in text, f"pullback.{path}.{name}"


def test_docstrings_become_markdown() -> None:
    docstring = """What it does.

    Args:
        first: one
            that goes on.
        **rest: the others, x**2 if x < 1.

    >>> f(1)
    2

    Then more."""
    expected = (
        "What it does.\n\nArgs:\n\n- `first`: one\n    that goes on.\n- `**rest`: the others, x\\*\\*2 if x &lt; 1.\n\n"
        "```pycon\n>>> f(1)\n2\n```\n\nThen more."
    )
    assert imported(DOCS / "site_hooks.py").as_markdown(docstring) == expected


def test_how_it_works_quotes_the_source() -> None:
    page = (DOCS / "how_it_works.md").read_text("utf-8")
    entries = (ROOT / "src" / "pullback" / "ops" / "elementwise" / "analysis.py").read_text("utf-8")
    for part in ('sin = elementwise("sin", np.sin, "The sine.",', "input=lambda g, input: g * np.cos(input)"):
        assert part in page
        assert part in entries
    for name in re.findall(r"`(\w+\.py)`", page):
        assert (ROOT / "src" / "pullback" / "autograd" / name).is_file(), name


# -- the tables of what is called what ---------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["from_pytorch.md", "from_autograd.md", "jax.md"])
def test_what_a_table_names_is_there(page: str) -> None:
    names = {name for row in _rows(page) for cell in row for name in HOW_TO_READ_A_NAME.findall(cell)}
    assert len(names) > 10
    for name in names:
        host = re.search(r"bridge\.(torch|jax)\b", name)
        if host is None or importlib.util.find_spec(host[1]):  # the bridge's own tests find these where the host is
            _find(name)


@pytest.mark.torch
def test_what_the_table_for_pytorch_names_is_called_so_there() -> None:
    compared = 0
    for theirs, *_ in _rows("from_pytorch.md"):
        for name in re.findall(r"`(torch(?:\.\w+)+)", theirs):
            _find(name)
            compared += 1
    assert compared > 15


def test_hips_autograd_names_what_the_table_says_and_agrees() -> None:
    autograd = pytest.importorskip("autograd", reason="HIPS autograd, which the page compares with, is not installed")
    anp = importlib.import_module("autograd.numpy")
    for theirs, *_ in _rows("from_autograd.md"):
        for name in re.findall(r"`@?(autograd(?:\.\w+)+)", theirs):
            _find(name)
    slope = autograd.grad(lambda x: anp.tanh(x) * x)(0.5)
    assert pullback.func.grad(lambda x: pullback.tanh(x) * x)(pullback.tensor(0.5)).item() == pytest.approx(slope)
    ours = pullback.func.grad(lambda z: pullback.real(z * z))(pullback.tensor(1.0 + 2.0j)).item()
    assert ours == autograd.grad(lambda z: anp.real(z * z))(1.0 + 2.0j).conjugate()


# -- what the chapters say of PyTorch ----------------------------------------------------------------------------------


@pytest.mark.torch
def test_pytorch_does_not_look_at_the_decorator() -> None:
    """learn/static.md: in PyTorch a method that is not static runs, and its `self` is the node."""
    torch: Any = importlib.import_module("torch")
    seen = []

    class Accident(torch.autograd.Function):
        def forward(self, x):  # type: ignore[no-untyped-def]
            seen.append(self)
            return 2 * x

        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]  # noqa: N805
            self.result = 2 * grad_output  # type: ignore[name-defined]  # noqa: F821
            return self.result  # type: ignore[name-defined]  # noqa: F821

    y = Accident.apply(torch.ones(2, requires_grad=True))
    assert seen == [y.grad_fn]
    assert not isinstance(y.grad_fn, Accident)
    with pytest.raises(NameError, match="self"):
        y.sum().backward()
    with (
        pytest.warns(DeprecationWarning, match="should not be instantiated"),
        pytest.raises(RuntimeError, match="Legacy autograd function"),
    ):
        Accident()(torch.ones(2))


@pytest.mark.torch
def test_pytorch_is_silent_about_a_lost_derivative_and_wants_double_precision() -> None:
    """learn/double_backward.md and learn/gradcheck.md."""
    torch: Any = importlib.import_module("torch")

    class Lossy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            slope = 2 * x
            ctx.save_for_backward(slope)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return ctx.saved_tensors[0] * grad_output

    x = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Lossy.apply, x)
    (first,) = torch.autograd.grad((Lossy.apply(x) * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.item() == 12.0  # (x^3)'' is 18; no error
    assert not torch.autograd.gradgradcheck(Lossy.apply, x, raise_exception=False)

    single = torch.randn(8, requires_grad=True, generator=torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match="double precision"):
        assert not torch.autograd.gradcheck(torch.tanh, single, raise_exception=False)
    assert pullback.autograd.gradcheck(pullback.tanh, pullback.tensor(single.detach().numpy()))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Use of \\w+ on expanded tensors:UserWarning")
@pytest.mark.parametrize("chapter", ["ctx.md", "grad_output.md", "in_place.md", "saving.md"])
def test_a_chapter_that_uses_nothing_of_ours_is_true_of_pytorch(chapter: str) -> None:
    """All its examples give the same with PyTorch, but for the words of errors."""
    text = (DOCS / "learn" / chapter).read_text("utf-8").replace("import pullback as torch", "import torch")
    blocks = "\n".join(block.strip("`").removeprefix("pycon") for block in _fenced(text))
    test = doctest.DocTestParser().get_doctest(blocks, {}, chapter, chapter, 0)
    assert len(test.examples) > 10
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    doctest.DebugRunner(verbose=False, optionflags=flags).run(test)


@pytest.mark.torch
def test_pytorch_says_which_inputs_require_grad_and_has_zero_slope_at_zero() -> None:
    """learn/needs_input_grad.md and learn/in_place.md."""
    torch: Any = importlib.import_module("torch")
    for library, told in ((torch, (True, True)), (pullback, (False, True))):
        seen = []

        class Product(library.autograd.Function):  # type: ignore[name-defined, misc]
            @staticmethod
            def forward(ctx, a, b):  # type: ignore[no-untyped-def]
                ctx.save_for_backward(a, b)
                return a * b

            @staticmethod
            def backward(ctx, g):  # type: ignore[no-untyped-def]
                seen.append(ctx.needs_input_grad)  # noqa: B023
                a, b = ctx.saved_tensors
                return g * b, g * a

        a, b = library.ones(2, requires_grad=True), library.ones(2, requires_grad=True)
        library.autograd.grad(Product.apply(a, b).sum(), [b])
        assert seen == [told]
        zero = library.zeros(1, requires_grad=True)
        library.relu(zero).sum().backward()
        assert zero.grad.tolist() == [0.0]

"""The page of a graph in a real browser: it opens without a network, and everything that can be done on it is done."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.inspect import Graph, graph
from pullback.inspect.graphs import labels
from pullback.inspect.graphs.layout import layout
from pullback.inspect.graphs.repeats import visible
from tests.browser import EXECUTABLE, Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        EXECUTABLE is None, reason="they open pages in a browser, and there is none (apt-get install chromium)"
    ),
]

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """A function that opens a page; when the test ends, nothing must have gone wrong on any of them."""
    pages: list[Page] = []

    def open_page(picture: Graph | str, **options: Any) -> Page:
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(picture if isinstance(picture, str) else picture.html(), "utf-8")
        pages.append(Page(browser, **options))
        pages[-1].open(path)
        return pages[-1]

    yield open_page
    assert [page.problems for page in pages] == [[]] * len(pages)


class Cube(pullback.autograd.Function):
    """x to the third."""

    @staticmethod
    def forward(ctx: Any, x: pullback.Tensor) -> pullback.Tensor:
        ctx.save_for_backward(x)
        ctx.power = 3
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: pullback.Tensor) -> pullback.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output


def small(backward: bool = True, **options: Any) -> Graph:
    w = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pullback.autograd.record_origins():
        cube = Cube.apply(w)
        loss = (cube.sin() * w).sum()
    return graph(loss, {"w": w, "cube": cube}, backward=backward, **options)


def layers(count: int, **options: Any) -> Graph:
    model = nn.Sequential(*[nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0) for _ in range(count)])
    return graph((model(pullback.randn(3, 2, 4)) ** 2).sum(), model, **options)


def box(label: str) -> str:
    """The selector of the box whose words begin so."""
    return f'.box[aria-label^="{label}"]'


def test_a_page_opens_with_all_its_nodes(opened: Open) -> None:
    page = opened(small())
    words = page.js("[...document.querySelectorAll('.box')].map((b) => b.getAttribute('aria-label'))")
    assert words == [
        "Loss, [] float32",
        "SumBackward0, [] float32",
        "MulBackward0, [3] float32, saves 24 B: input, w",
        "SinBackward0, [3] float32, saves 12 B: cube",
        "cube = CubeBackward, [3] float32, saves 12 B: w",
        "w, [3] float32, |grad| 23",
    ]
    assert page.js("document.querySelectorAll('#lines g').length") == 6
    assert page.text("#summary") == "1 leaf, 36 B saved, 5 steps of backward"


def test_a_click_shows_the_node(opened: Open) -> None:
    page = opened(small())
    assert page.text("#details h2") == "Loss"
    page.click(box("cube = CubeBackward"))
    assert page.text("#details h2") == "cube = CubeBackward"
    details = page.text("#details")
    assert "return 3 * x**2 * grad_output" in details  # the formula
    assert "cube = Cube.apply(w)" in page.text("#details pre.line")  # the line of the user's code
    assert f"{Path(__file__).name}:" in details
    assert "saved_tensors[0]: 12 B, leaf w" in details
    assert "ctx.power = 3" in details
    assert page.js("[...document.querySelectorAll('[data-stage=ctx] td')].map((c) => c.textContent)") == ["1", "2", "3"]
    page.click(box("w"))
    assert page.text("#details h2") == "w"
    assert "Value" in page.text("#details")
    assert page.js("document.querySelectorAll('.box.selected').length") == 1


def test_the_slider_steps_through_the_life_of_the_graph(opened: Open) -> None:
    picture = small()
    page = opened(picture)
    names = {info.made: info.name for info in picture.nodes}
    page.js("document.getElementById('slider').focus()")
    assert page.text("#status").startswith("forward 4 of 4: SumBackward0 is made. The graph is complete")
    for k, step in enumerate(picture.steps, 1):
        page.key("ArrowRight")
        info = picture.nodes[step.number]
        assert page.text("#status").startswith(f"backward {k} of 5: ")
        assert (info.name if info.made else "w.grad") in page.text("#status")
        assert page.text("#details h2") == labels.title(info)
        assert page.js("document.querySelector('.box.now').getAttribute('aria-label')").startswith(labels.title(info))
    assert page.js("[...document.querySelectorAll('.box.freed')].length") == 3  # sin, mul and cube had saved something
    for made in (3, 2, 1):
        page.js(f"stepTo({made})")
        assert page.text("#status") == f"forward {made} of 4: {names[made]} is made."
    page.settle()
    assert page.js("document.querySelectorAll('.box.not-made').length") == 4  # three operations and the loss
    page.js("stepTo(0)")
    assert "only leaves" in page.text("#status")


def test_a_node_has_its_six_stages_one_after_the_other(opened: Open) -> None:
    picture = small()
    page = opened(picture)

    def stages() -> dict[str, str]:
        return page.js(  # type: ignore[no-any-return]
            "Object.fromEntries([...document.querySelectorAll('[data-stage]')]"
            ".map((stage) => [stage.dataset.stage, stage.className]))"
        )

    page.click(box("MulBackward0"))
    assert stages() == dict.fromkeys(["apply", "ctx", "forward", "grad_fn"], "done") | {"backward": "", "freed": ""}
    assert "step 2 of 5" in page.text("[data-stage=backward]")
    assert "Incoming" not in page.text("[data-stage=backward]")
    page.click("#next")
    page.click("#next")
    assert stages() == dict.fromkeys(["apply", "ctx", "forward", "grad_fn", "freed"], "done") | {"backward": "now"}
    backward = page.text("[data-stage=backward]")
    assert "Incoming gradient[3] float32, norm 1.73" in backward
    assert "Outgoing gradient of input" in backward
    assert "Outgoing gradient of other" in backward
    cells = page.js("[...document.querySelectorAll('[data-stage=backward] td')].map((c) => c.textContent)")
    assert cells == [
        "1",
        "1",
        "1",
        "1",
        "2",
        "3",
        *(f"{v:.4g}" for v in pullback.tensor([1.0, 8.0, 27.0]).sin().tolist()),
    ]
    page.js("stepTo(2)")
    page.click(box("MulBackward0"))
    assert set(stages().values()) == {""}  # it has not been made yet


def test_kept_values_and_a_graph_without_a_backward_pass_are_told_as_such(opened: Open) -> None:
    page = opened(small(retain_graph=True))
    page.js("stepTo(6)")
    assert "kept: retain_graph=True" in page.text("[data-stage=freed]")
    page = opened(small(backward=False))
    assert page.js("document.getElementById('slider').max") == "4"
    assert "graph(loss, backward=True)" in page.text("#status")
    page.click(box("MulBackward0"))
    assert "no backward pass was run" in page.text("[data-stage=backward]")


def test_zoom_and_pan_by_wheel_mouse_buttons_and_keys(opened: Open) -> None:
    page = opened(small())

    def view() -> tuple[float, float, float]:
        return tuple(page.js("[view.x, view.y, view.k]"))

    x, y, k = view()
    page.wheel(300, 300, -200)
    assert view()[2] > k
    at = page.js("[(300 - view.x) / view.k, 1]")[0]
    assert at == pytest.approx((300 - x) / k)  # what is under the mouse stays there
    page.click("#fit")
    assert view() == pytest.approx((x, y, k))
    page.drag((80, 300), (130, 370))
    assert view() == pytest.approx((x + 50, y + 70, k))
    assert page.text("#details h2") == "Loss"  # a drag is no click
    page.js("picture.focus()")
    page.key("+")
    assert view()[2] == pytest.approx(k * 1.25)
    page.key("-")
    assert view()[2] == pytest.approx(k)
    page.click("#zoom-in")
    page.click("#zoom-in")
    assert view()[2] == pytest.approx(k * 1.25**2)
    page.key("0")
    page.js("picture.focus()")
    page.key("0")
    assert view() == pytest.approx((x, y, k))


def test_the_keyboard_walks_along_the_edges(opened: Open) -> None:
    page = opened(small())
    page.js("picture.focus()")
    walked = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.key(key)
        walked.append(page.text("#details h2"))
    assert walked == ["SumBackward0", "MulBackward0", "SinBackward0", "cube = CubeBackward", "w", "MulBackward0"]
    active = page.js(
        "document.getElementById(picture.getAttribute('aria-activedescendant')).getAttribute('aria-label')"
    )
    assert active.startswith("MulBackward0")
    focused = []
    page.js("document.activeElement.blur()")
    for _ in range(16):
        page.key("Tab")
        focused.append(page.js("document.activeElement.id"))
    assert {"search", "zoom-in", "fit", "picture", "play", "slider"} <= set(focused)


def test_search_finds_shows_and_unfolds(opened: Open) -> None:
    page = opened(layers(8, backward=True))
    assert page.js("drawn.items.length") == 4
    page.key("/")
    assert page.js("document.activeElement.id") == "search"
    page.type("3.linear1.weight")
    assert page.text("#found .count") == "1 found"
    assert page.js("document.querySelectorAll('.box.found').length") == 1  # the folded box that it is in
    page.key("Enter")
    assert page.text("#details h2") == "3.linear1.weight"
    assert page.js("drawn.items.length") > 4
    frame = page.js(
        "(() => { const r = document.querySelector('.box.selected').getBoundingClientRect(),"
        "p = picture.getBoundingClientRect();"
        "return [r.left - p.left, p.right - r.right, r.top - p.top, p.bottom - r.bottom]; })()"
    )
    assert min(frame) > 0  # it is in view
    page.js("byId('search').focus()")
    page.key("Escape")
    assert page.js("byId('found').hidden")
    assert page.js("document.querySelectorAll('.box.found').length") == 0


def test_folding_by_double_click_by_key_and_by_button(opened: Open) -> None:
    page = opened(layers(6))
    assert page.js("drawn.items.length") == 4
    page.click(box("x 6"), times=2)
    assert page.js("drawn.items.length") == 3 + 6  # the blocks of the run
    assert page.text("#details h2") == "A block of 23 operations, block 6 of 6"
    page.js("picture.focus()")
    page.key("Enter")
    inside = page.js("drawn.items.length")
    assert inside > 30
    page.key("Enter")  # and back
    assert page.js("drawn.items.length") == 3 + 6
    page.click("#unfold")
    assert page.js("drawn.items.length") == inside
    page.click(".fold-around:last-child")
    assert page.js("drawn.items.length") == 4
    assert page.text("#details h2") == "A block of 23 operations, x 6"
    page.click("#unfold-all")
    assert page.js("drawn.items.length") == page.js("nodes.length")
    page.click("#fold-all")
    assert page.js("drawn.items.length") == 4


@pytest.mark.parametrize("count", [1, 3])
def test_the_page_and_the_svg_have_the_same_layout(count: int, opened: Open) -> None:
    for fold in (True, False):
        picture = layers(count, fold=fold)
        shown = visible(picture._description, picture._folding, picture._opened)
        lines = [
            labels.of_group(picture._description, picture._folding.groups[i])
            if is_group
            else labels.of_node(picture.nodes[i])
            for is_group, i in shown.items
        ]
        expected = layout([labels.size(words) for words in lines], list(shown.edges))
        page = opened(picture)
        ids = [-1 - i if is_group else i for is_group, i in shown.items]
        assert page.js("drawn.items") == ids
        for found, wanted in zip(page.js("drawn.places"), expected.places, strict=True):
            assert found == pytest.approx(wanted, abs=1e-6)
        for found, wanted in zip(page.js("drawn.bends"), expected.bends, strict=True):
            assert [v for point in found for v in point] == pytest.approx(
                [v for point in wanted for v in point], abs=1e-6
            )


def test_light_and_dark(opened: Open) -> None:
    seen = []
    for dark in (False, True):
        page = opened(small(), dark=dark)
        ink = page.js("getComputedStyle(document.querySelector('.box text.pb-title ~ text')).fill")
        paper = page.js("getComputedStyle(document.querySelector('.pb-paper')).fill")
        seen.append((ink, paper, page.js("getComputedStyle(document.body).backgroundColor")))
    assert seen[0] != seen[1]
    brightness = [sum(map(int, colour[4:-1].split(","))) for _, colour, _ in seen]
    assert brightness[0] > 700
    assert brightness[1] < 120


EVIL = '<img src=x onerror="window.harm=1">&amp;</script><script>window.harm=2</script>'


def test_all_text_is_put_on_the_page_as_text(opened: Open) -> None:
    w = pullback.ones(2, requires_grad=True)

    class Named(Cube):
        __doc__ = EVIL

    loss = Named.apply(w).sum()
    loss.grad_fn.next_functions[0][0].note = EVIL
    page = opened(graph(loss, {EVIL: w}, backward=True))
    for label in ("Loss", "SumBackward0", "NamedBackward", "<img"):
        page.click(box(label))
    assert page.text("#details h2") == labels.short(EVIL)
    page.js("byId('search').focus()")
    page.type("<img")
    assert page.text("#found button").startswith("<img src=x")
    page.click(box("NamedBackward"))
    assert f"ctx.note = {EVIL[:56]!r}"[:60] in page.text("#details")
    assert page.js("[window.harm, document.images.length, document.scripts.length]") == [None, 0, 2]


def test_ten_thousand_nodes_open_and_stay_usable(opened: Open) -> None:
    rng = random.Random(0)
    pool = [pullback.ones(2, requires_grad=True) for _ in range(30)]
    for _ in range(10_000):
        a, b = rng.choice(pool[-20:]), pool[-1]
        pool.append(a + b if rng.random() < 0.5 else getattr(b, rng.choice(["sin", "cos", "tanh"]))())
    picture = graph(pool[-1].sum(), {}, backward=True, fold=False)
    assert len(picture.nodes) > 9_000
    page = opened(picture)

    def elements() -> int:
        return page.js("document.querySelectorAll('*').length")  # type: ignore[no-any-return]

    assert page.js("drawn.items.length") == len(picture.nodes)
    assert page.js("document.querySelectorAll('.box').length") > 5
    assert elements() < 3000  # what is out of view is not on the page
    page.click("#fit")
    assert page.js("document.querySelectorAll('.box').length") == 0
    assert page.js("byId('far').style.display") == ""
    assert elements() < 300
    page.click("#next")
    assert page.text("#status").startswith("backward 1 of ")
    page.js("byId('search').focus()")
    page.type("TanhBackward0")
    page.key("Enter")
    assert page.text("#details h2") == "TanhBackward0"
    page.js("picture.focus(); view.k = 1; bringIntoView(drawn.place.get(selected)); draw()")
    page.settle()
    assert page.js("document.querySelectorAll('.box.selected').length") == 1
    assert elements() < 3000


def test_layers_of_ten_thousand_nodes_open_folded_and_unfold(opened: Open) -> None:
    picture = layers(300)
    page = opened(picture)
    assert page.js("drawn.items.length") == 4
    page.click("#unfold-all")
    assert page.js("drawn.items.length") == len(picture.nodes) > 10_000
    page.click("#fold-all")
    page.click(box("x 300"), times=2)
    assert page.js("drawn.items.length") == 3 + 300


def test_the_smallest_graph_and_empty_tensors(opened: Open) -> None:
    w = pullback.ones(0, 3, requires_grad=True)
    page = opened(graph(w, {"w": w}, backward=True, gradient=pullback.ones(0, 3)))
    page.click(box("w"))
    assert "[0, 3] float32, norm 0" in page.text("#details")
    page.click("#next")
    assert page.text("#status") == "backward 1 of 1: the gradient is added to w.grad."
    page.click("#back")
    assert "only leaves" in page.text("#status")
    page = opened(graph((w * 2).sum(), {"w": w}, backward=True))
    page.js("stepTo(4)")
    assert page.text("#details h2") == "MulBackward0"


def test_play_goes_on_by_itself_and_stops(opened: Open) -> None:
    page = opened(small())
    page.js("setInterval = (f) => { window.tick = f; return 7; }; clearInterval = (id) => { window.cleared = id; }")
    page.click("#play")
    assert page.text("#play") == "Pause"
    seen = []
    for _ in range(5):
        page.js("tick()")
        seen.append(page.text("#status")[:10])
    assert seen == [f"backward {k}" for k in range(1, 6)]
    page.js("tick()")
    assert page.text("#play") == "Play"
    assert page.js("cleared") == 7


def test_a_narrow_window_has_all_of_it(opened: Open) -> None:
    page = opened(small(), width=400, height=700)
    assert page.js("document.documentElement.scrollWidth") <= 400
    page.click(box("MulBackward0"))
    assert page.text("#details h2") == "MulBackward0"
    page.click("#next")
    assert page.text("#status").startswith("backward 1 of 5")


def test_the_picture_of_a_notebook_is_drawn_in_a_page_of_others(opened: Open) -> None:
    picture = small()
    page = opened(f"<!doctype html><title>notebook</title><p>text</p>{picture._repr_html_()}")
    width, height = page.js(
        "(() => { const r = document.querySelector('svg').getBoundingClientRect(); return [r.width, r.height]; })()"
    )
    assert width > 100
    assert height > 300
    assert page.js("document.querySelectorAll('svg text').length") > 10
    assert page.js("getComputedStyle(document.querySelector('p')).fontFamily") != page.js(
        "getComputedStyle(document.querySelector('svg text')).fontFamily"
    )


def test_a_page_that_asks_for_something_is_noticed(browser: Browser, tmp_path: Path) -> None:
    """The check of all other tests, on a page that is at fault."""
    (tmp_path / "fault.html").write_text('<img src="https://example.org/x.png"><script>missing()</script>', "utf-8")
    page = Page(browser)
    page.open(tmp_path / "fault.html")
    text = "\n".join(page.problems)
    assert "https://example.org/x.png" in text
    assert "ReferenceError" in text

"""What ran when: the spans of a function and its backward pass, as a table, a Chrome trace and a page."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.autograd import Function
from pullback.inspect import Timeline, timeline
from pullback.inspect.timeline import Span
from tests import browser


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


def step(x: Any, scale: float = 1.0) -> Any:
    h = Cube.apply(x * scale)  # the line
    return total(h)


def total(h: Any) -> Any:
    return h.exp().sum()


@pytest.fixture
def x() -> Any:
    return pullback.tensor([0.5, 0.25], requires_grad=True)


def names(found: Timeline, kind: str) -> list[str]:
    return [s.name for s in found.spans if s.kind == kind]


def test_what_ran_when(x: Any) -> None:
    found = timeline(step, x, scale=1.0)
    assert names(found, "python") == ["step", "Cube.forward", "total"]
    assert [n for n in names(found, "forward") if n != "save_for_backward"] == [
        "mul",
        "Cube.apply",
        "pow",
        "exp",
        "sum",
    ]
    backward = names(found, "backward")
    nodes = [n for n in backward if "Backward" in n]
    assert backward[0] == "backward"
    assert nodes == ["SumBackward0", "ExpBackward0", "CubeBackward", "MulBackward0"]
    assert "Cube.backward" in backward
    starts = [s.start for s in found.spans]
    assert starts == sorted(starts)


def test_spans_nest(x: Any) -> None:
    found = timeline(step, x)
    depths = {s.name: s.depth for s in found.spans}
    assert (depths["step"], depths["Cube.apply"], depths["Cube.forward"], depths["pow"]) == (0, 1, 2, 3)
    ended: list[Any] = []
    for s in found.spans:
        while ended and ended[-1].depth >= s.depth:
            ended.pop()
        assert len(ended) == s.depth
        if ended:
            outer = ended[-1]
            assert outer.start <= s.start
            assert s.start + s.duration <= outer.start + outer.duration
        ended.append(s)
    for s in found.spans:
        assert 0 <= s.inner <= s.duration
        assert s.own == pytest.approx(s.duration - s.inner)


def test_the_line_that_called(x: Any) -> None:
    found = timeline(step, x)
    apply = next(s for s in found.spans if s.name == "Cube.apply")
    assert apply.place.startswith(f"{__file__}:")
    assert apply.place.endswith("h = Cube.apply(x * scale)  # the line")


def test_gradients_are_those_of_the_function(x: Any) -> None:
    found = timeline(step, x)
    other = x.detach().clone().requires_grad_()
    step(other).backward()
    assert x.grad.tolist() == other.grad.tolist()
    assert found.result.item() == step(other).item()


def test_a_backward_of_the_functions_own_is_not_run_twice(x: Any) -> None:
    def both() -> Any:
        loss = step(x)
        loss.backward()
        return loss

    found = timeline(both)
    assert names(found, "backward").count("backward") == 1
    assert timeline(step, x, run_backward=False).spans[-1].kind == "forward"
    assert timeline(lambda: 3).result == 3


def test_modules_are_named() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
    found = timeline(lambda: model(pullback.ones(4, 3)).sum())
    assert names(found, "forward") == ["ones", "Sequential", "Linear", "Tanh", "sum"]


def test_a_step_of_training(x: Any) -> None:
    optimizer = pullback.optim.SGD([x], lr=0.1)

    def train() -> None:
        optimizer.zero_grad()
        step(x).backward()
        optimizer.step()

    assert names(timeline(train), "update") == ["SGD.zero_grad", "SGD.step"]


def test_memory_is_followed() -> None:
    x = pullback.ones(100_000, requires_grad=True)
    found = timeline(lambda: x.exp().sum())
    exp = next(s for s in found.spans if s.name == "exp")
    assert 400_000 <= exp.after - exp.before < 420_000
    assert found.peak >= 800_000  # exp's output and the gradient of x
    assert not tracemalloc.is_tracing()


def test_what_was_there_before_is_put_back(x: Any) -> None:
    def profiler(*args: Any) -> None:
        pass

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        with pytest.raises(ZeroDivisionError):
            timeline(lambda: 1 / 0)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert not tracemalloc.is_tracing()


def test_the_table(x: Any) -> None:
    text = str(timeline(step, x))
    assert "peak of memory" in text
    assert any(line.split()[:3] == ["CubeBackward", "backward", "1"] for line in text.splitlines())


def test_the_chrome_trace(x: Any, tmp_path: Path) -> None:
    found = timeline(step, x)
    found.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text("utf-8"))
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(spans) == len(found.spans)
    for event in trace["traceEvents"]:
        assert {"name", "ph", "ts", "pid", "tid", "args"} <= event.keys()
    exp = next(e for e in spans if e["name"] == "exp")
    assert exp["cat"] == "forward"
    assert exp["dur"] > 0
    assert any(e["ph"] == "C" and e["name"] == "memory" for e in trace["traceEvents"])
    times = [e["ts"] for e in trace["traceEvents"]]
    assert times == sorted(times)


def test_where_it_is_saved(x: Any, tmp_path: Path) -> None:
    found = timeline(step, x)
    found.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page == found.html()
    assert "src=" not in page
    assert "<link" not in page
    assert "iframe" in found._repr_html_()
    with pytest.raises(ValueError, match=r"ends in .html or .json"):
        found.save(tmp_path / "page.txt")


def test_names_with_markup_cannot_leave_the_data() -> None:
    found = timeline(lambda: None)
    found.spans[0].name = "</script><b>"
    page = found.html()
    assert page.count("</script>") == 1
    assert "<b>" not in page


@pytest.mark.skipif(browser.EXECUTABLE is None, reason="there is no Chromium to load the page with")
def test_the_page_in_a_browser(x: Any, tmp_path: Path) -> None:
    assert shutil.which(str(browser.EXECUTABLE))
    found = timeline(step, x)
    path = tmp_path / "page.html"
    found.save(path)
    with browser.Browser() as chromium:
        page = browser.Page(chromium, dark=True)
        page.open(path)
        assert page.problems == []
        drawn = page.js("document.querySelectorAll('rect.span').length")
        assert 0 < drawn <= len(found.spans)
        number = found.spans.index(next(s for s in found.spans if s.name == "CubeBackward"))
        page.click(f"rect.span[data-i='{number}']")
        assert page.text("#told").startswith("CubeBackward (backward), ")
        assert "memory" in page.text("#told")
        page.js("show(0, total / 10)")
        page.settle()
        assert page.js("to - from") == pytest.approx(found.total / 10)
        page.wheel(600, 150, -100)
        assert page.js("to - from") < found.total / 10
        page.drag((600, 150), (500, 150))
        page.click("#all")
        assert page.js("to - from") == pytest.approx(found.total)
        ticks = page.js("[...document.querySelectorAll('text.axis')].slice(0, -1).map(t => t.textContent)")
        assert len(ticks) > 2
        values = [float(t.split()[0]) for t in ticks]
        steps = {round(b - a, 6) for a, b in itertools.pairwise(values)}
        assert len(steps) == 1
        assert f"{steps.pop():e}"[0] in "125"  # round numbers
        assert page.js("[tick(0.3), tick(1.2), tick(2), tick(60)]") == [0.5, 2, 2, 100]
        assert page.js("short('MultiheadAttention', 6)") == "Multi\u2026"
        assert page.js("short('exp', 6)") == "exp"
        assert page.problems == []


@pytest.mark.skipif(browser.EXECUTABLE is None, reason="there is no Chromium to load the page with")
def test_a_narrow_page_has_ticks_and_labels_end_where_the_page_does(tmp_path: Path) -> None:
    long = Span("softmax_of_a_matrix", "forward", 0.0, 0, "", 0, duration=1000.0)
    next_to_it = Span("sum", "forward", 1000.0, 0, "", 0, duration=3200.0)
    path = tmp_path / "page.html"
    Timeline([long, next_to_it], 1, None).save(path)
    with browser.Browser() as chromium:
        page = browser.Page(chromium, width=390)
        page.open(path)
        assert page.js("document.querySelectorAll('text.axis').length") > 2  # and one more for the memory
        page.js("show(900, 4100)")  # a tenth of the first call is left
        labels = page.js("[...document.querySelectorAll('svg text:not(.axis)')].map(t => t.textContent)")
        assert labels == ["sum"]
        page.js("show(500, 1500)")
        inside = "[...document.querySelectorAll('svg text:not(.axis)')].map(t => t.getBBox().x + t.getBBox().width)"
        assert page.js(inside)[0] < page.js("svg.clientWidth / 2")
        assert page.problems == []


def test_functions_of_numpy_are_called_by_their_names() -> None:
    t = pullback.tensor([1.0, 2.0], requires_grad=True)

    def fn() -> Any:
        return np.linalg.norm(np.exp(t) + np.add.reduce(np.stack([t, t])))

    found = timeline(fn, run_backward=False)
    called = ["numpy.exp", "numpy.stack", "numpy.add.reduce", "add", "numpy.linalg.norm"]
    assert names(found, "forward") == called


def test_what_numpy_calls_for_the_user_has_the_users_line() -> None:
    found = timeline(lambda: np.apply_along_axis(pullback.as_tensor, 0, np.ones(2)))  # the call
    (span,) = [s for s in found.spans if s.name == "as_tensor"]
    assert span.place.endswith("# the call")


def test_what_the_library_calls_through_numpy_is_no_call_of_the_users() -> None:
    silu = pullback.compile(nn.functional.silu, backend="numpy")
    found = timeline(silu, pullback.ones(3, requires_grad=True))
    assert names(found, "forward") == ["compiled silu"]


def test_functions_are_called_by_their_names() -> None:
    logits, y = pullback.randn(2, 3), pullback.tensor([1, 2])

    def both() -> Any:
        return nn.functional.cross_entropy(logits, y) + nn.functional.mse_loss(logits, logits + 1)

    assert {"cross_entropy", "mse_loss"} <= set(names(timeline(both), "forward"))
    assert not {"call", "__call__", "<lambda>"} & {s.name for s in timeline(both).spans}


def test_a_compiled_function_is_called_by_its_name(x: Any) -> None:
    found = timeline(pullback.compile(total), x)
    assert found.spans[0].name == "compiled total"
    assert not {"call", "__call__", "<lambda>"} & {s.name for s in found.spans}


def test_a_tensor_is_no_function(x: Any) -> None:
    with pytest.raises(TypeError, match="pass the function that computes it"):
        timeline(x.sum())  # type: ignore[arg-type]

"""What memory a graph holds: every piece once, by node, line and shape, and what would be free without it."""

from __future__ import annotations

import gc
import re
import weakref
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function, record_origins
from pullback.inspect import GraphMemory, memory
from pullback.inspect.footprint import Row, Storage

KB = 1024


@pytest.fixture
def x() -> Any:
    return pullback.ones(256, requires_grad=True)  # 1 KiB


def rows(found: list[Row]) -> dict[str, tuple[int, int, int]]:
    return {row.label: (row.count, row.holds, row.frees) for row in found}


def test_each_node_holds_what_it_saved(x: Any) -> None:
    found = memory(x.exp().tanh().sum())
    assert found.total == 2 * KB
    assert found.kept == 0
    assert rows(found.by_node()) == {"TanhBackward0": (1, KB, KB), "ExpBackward0": (1, KB, KB)}
    assert rows(found.by_shape()) == {"float32[256]": (2, 2 * KB, 2 * KB)}


def test_a_leaf_is_there_anyway(x: Any) -> None:
    found = memory((x * x).sum())
    assert (found.total, found.kept) == (KB, KB)
    assert rows(found.by_node()) == {"MulBackward0": (1, KB, 0)}


def test_shared_memory_is_counted_once(x: Any) -> None:
    y = x.exp()
    del x
    found = memory((y.sin() + y[:100].cos().sum() + y.reshape(16, 16).tan().sum()).sum())
    # y is kept by exp, sin, cos (a view) and, here, by the variable; tan saves its own output
    assert found.total == 2 * KB
    assert found.kept == KB
    assert "Variables that keep some: `y`." in str(found)
    assert [s.nbytes for s in found.storages] == [KB, KB]
    assert max(len(s.holders) for s in found.storages) == 3


def test_what_a_variable_keeps_is_not_free(x: Any) -> None:
    h = x.exp()
    found = memory(h.sum())
    assert (found.total, found.kept) == (KB, KB)
    loss = h.sum()
    del h
    assert memory(loss).kept == 0


def test_a_view_holds_the_whole_of_what_it_looks_at() -> None:
    w = pullback.ones(4, requires_grad=True)
    found = memory((w * pullback.zeros(1000)[:4]).sum())
    assert found.by_node()[0].holds == 4000


def test_what_would_be_free_without_some_nodes(x: Any) -> None:
    def program() -> Any:
        y = x.exp()
        z = y.sin()  # saves y, which exp holds as well
        return z.tanh().sum()

    found = memory(program())
    assert found.total == 2 * KB
    assert found.frees_without("Sin") == 0
    assert found.frees_without("Sin", "Exp") == KB
    assert found.frees_without("Tanh") == KB
    assert found.frees_without("Sin", "Exp", "Tanh") == 2 * KB
    assert found.frees_without("nothing") == 0


@record_origins()
def test_lines(x: Any) -> None:
    def program() -> Any:
        y = x.exp().tanh()  # line one
        return y.sin().sum()  # line two

    found = memory(program())
    by_line = {label.rpartition(": ")[2]: row for label, row in rows(found.by_line()).items()}
    assert by_line["y = x.exp().tanh()  # line one"] == (2, 2 * KB, KB)
    assert by_line["return y.sin().sum()  # line two"] == (2, KB, 0)
    assert f"A checkpoint around {__file__}:" in str(found)
    assert "line one would free 1.0 KiB until backward" in str(found)
    assert found.frees_without("# line one", "# line two") == 2 * KB


def test_without_lines_it_is_said_how_to_have_them(x: Any) -> None:
    assert "compute the loss within pullback.autograd.record_origins()" in str(memory(x.exp().sum()))


class Keeper(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.table = np.zeros(1000)
        ctx.parts = [pullback.zeros(10)]
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_what_a_function_keeps_on_ctx(x: Any) -> None:
    found = memory(Keeper.apply(x).sum())
    assert found.total == KB + 8000 + 40
    assert found.total - found.kept == 8040
    assert found.frees_without("Keeper") == 8040


def test_of_a_sparse_tensor_the_values() -> None:
    v = pullback.ones(100, dtype=pullback.float64, requires_grad=True)
    places = pullback.arange(100)
    sparse = pullback.sparse_coo_tensor(pullback.stack([places, places]), v, (100, 100))
    dense = pullback.ones(100, 3, dtype=pullback.float64, requires_grad=True)
    assert memory((sparse @ dense).sum()).total == 800 + 800 + 2400  # values, an order of the places, dense


def test_after_backward(x: Any) -> None:
    loss = x.exp().sum()
    loss.backward()
    found = memory(loss)
    assert found.total == 0
    assert "A backward pass has run through it and freed what its nodes had saved." in str(found)


def test_what_hooks_packed(x: Any) -> None:
    with pullback.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), pullback.tensor):
        loss = x.exp().sum()
    found = memory(loss)
    assert (found.packed, found.total) == (1, 0)
    assert "1 saved values are packed by hooks, and are not counted" in str(found)
    with pullback.autograd.graph.save_on_cpu():
        loss = x.exp().sum()
    assert memory(loss).total == KB


def test_the_table_and_the_bars(x: Any) -> None:
    found = memory((x.exp().tanh() * x).sum())
    table = str(found)
    assert table.startswith("4 nodes and 1 leaf hold 3.0 KiB in 3 pieces of memory")
    assert "1.0 KiB of it is kept by leaves and variables anyway." in table
    assert "2.0 KiB would be free without the graph" in table
    assert table.count("MulBackward0") == 1
    lines = found.bars(width=20).splitlines()
    assert [line.split()[0] for line in lines] == ["MulBackward0", "TanhBackward0", "ExpBackward0"]
    assert lines[0].count("░") == 20  # held, but tanh and the leaf hold it too
    assert (lines[2].count("█"), lines[2].count("░")) == (10, 0)
    assert found.bars("shape", width=10).startswith("float32[256]")


def test_the_pictures(x: Any) -> None:
    found = memory((x.exp().tanh() * x).sum())
    for by in ("node", "line", "shape"):
        svg = ElementTree.fromstring(found.svg(by))
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [e.text for e in ElementTree.fromstring(found.svg()).iter("{http://www.w3.org/2000/svg}text")]
    assert "TanhBackward0" in texts
    page = found.html()
    assert page.count("<svg") == 2
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<svg" in found._repr_html_()
    with pytest.raises(ValueError, match="by 'node', 'line', 'shape' or 'device'"):
        found.svg("day")


def test_markup_in_a_label_is_escaped() -> None:
    found = GraphMemory((("<b>&", "a < b"),), (Storage(8, (0,), "", ("float64[1]",)),), 0, False, 0)
    ElementTree.fromstring(found.svg())
    assert "<b>" not in found.html()


def test_it_keeps_nothing_and_changes_nothing(x: Any, untraced: None) -> None:
    gc.collect()
    gc.disable()
    try:
        loss = x.exp().sum()
        node = weakref.ref(loss.grad_fn)
        found = memory(loss)
        loss.backward()
        assert x.grad is not None
        del loss
        assert node() is None
        assert found.total == KB
    finally:
        gc.enable()


def test_what_has_no_graph() -> None:
    with pytest.raises(TypeError, match=r"memory\(\): argument loss: expected a Tensor"):
        memory(3.0)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"pullback.explain\(loss\) says why"):
        memory(pullback.ones(2))


def test_a_long_chain() -> None:
    y = pullback.ones(1, requires_grad=True)
    for _ in range(20_000):
        y = y.exp().log()
    found = memory(y)
    assert len(found.nodes) == 40_001
    assert rows(found.by_node())["ExpBackward0"][0] == 20_000


def test_nodes_and_leaves_are_counted_as_the_graph_counts_them() -> None:
    model = pullback.nn.Sequential(pullback.nn.Linear(2, 3), pullback.nn.Tanh(), pullback.nn.Linear(3, 1))
    loss = model(pullback.ones(4, 2)).sum()
    (counted,) = re.findall(r"(\d+) nodes, (\d+) leaves", str(pullback.inspect.graph(loss, model)))
    assert str(pullback.inspect.memory(loss)).startswith("{} nodes and {} leaves hold ".format(*counted))


def _of_a_block() -> Any:
    layer = pullback.nn.TransformerEncoderLayer(8, 2, 16)
    return layer, layer(pullback.ones(3, 1, 8)).sum()


def _of_views() -> Any:
    x = pullback.ones(4, 6, requires_grad=True)
    y = x * 2
    return None, (y[0].exp() * y[1]).sum() + (y.view(2, 12)[:, :3] ** 3).sum() + y.square().sum()


def _of_a_function_that_keeps_arrays() -> Any:
    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weights: Any) -> Any:
            ctx.weights = weights
            ctx.save_for_backward(x[:1])
            return x * pullback.from_numpy(weights)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * pullback.from_numpy(ctx.weights), None

    return None, Scaled.apply(pullback.ones(64, requires_grad=True) * 1, np.ones(64, "f4")).sum()


def _of_a_sparse_product() -> Any:
    matrix = pullback.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse().requires_grad_()
    return None, pullback.sparse.mm(matrix, pullback.ones(2, 5, requires_grad=True)).sum()


@pytest.mark.parametrize("make", [_of_a_block, _of_views, _of_a_function_that_keeps_arrays, _of_a_sparse_product])
@pytest.mark.parametrize("fold", [True, False])
def test_the_graph_counts_the_same_memory(make: Any, fold: bool) -> None:
    model, loss = make()
    graph = pullback.inspect.graph(loss, model, fold=fold)
    found = memory(loss)
    assert graph.nbytes == found.total > 0

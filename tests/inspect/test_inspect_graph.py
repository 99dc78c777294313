"""`inspect.graph`: what it finds out about a graph, the backward pass that it notes, and the forms it draws."""

from __future__ import annotations

import gc
import json
import re
import weakref
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.inspect import Graph, graph
from pullback.inspect.graphs.description import NodeInfo

SVG = "{http://www.w3.org/2000/svg}"


class Cube(pullback.autograd.Function):
    """x to the third."""

    @staticmethod
    def forward(ctx: Any, x: pullback.Tensor, power: float = 3.0) -> pullback.Tensor:
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power

    @staticmethod
    def backward(ctx: Any, grad_output: pullback.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output, None


def named(picture: Graph, name: str) -> NodeInfo:
    """The one node of that name."""
    (found,) = [info for info in picture.nodes if info.name == name or info.variable == name]
    return found


def mermaid(loss: Any, names: Any = None) -> str:
    """The Mermaid text, with no names but those given."""
    return graph(loss, names or {}).mermaid()


# -- what is found out -------------------------------------------------------------------------------------------------


def test_a_node_is_described_with_shapes_dtypes_and_what_it_saved() -> None:
    w = pullback.ones(2, 3, dtype=pullback.float64, requires_grad=True)
    h = Cube.apply(w)
    loss = (h * w).sum()
    picture = graph(loss)
    mul, cube = named(picture, "MulBackward0"), named(picture, "CubeBackward")
    assert [info.name for info in picture.nodes] == [
        "Loss",
        *"SumBackward0 MulBackward0 CubeBackward AccumulateGrad".split(),
    ]
    assert mul.outputs == [((2, 3), "float64")]
    assert (mul.kind, cube.kind, named(picture, "w").kind) == ("operation", "function", "leaf")
    assert [(s.name, s.nbytes, s.owner) for s in mul.saved] == [
        ("input", 48, "h, result of CubeBackward"),
        ("other", 48, "leaf w"),
    ]
    assert [(s.name, s.owner, s.values.elements) for s in cube.saved] == [("saved_tensors[0]", "leaf w", ("1",) * 6)]
    assert cube.attributes == {"power": "3.0"}
    assert [info.made for info in (cube, mul, named(picture, "SumBackward0"))] == [1, 2, 3]
    assert [(edge.argument, picture.nodes[edge.target].variable) for edge in mul.edges] == [
        ("input", "h"),
        ("other", "w"),
    ]


def test_memory_that_is_saved_twice_counts_once() -> None:
    w = pullback.ones(1000, requires_grad=True)
    h = w.exp()
    picture = graph((h * h).sum() + (h * w).sum())
    assert [info.nbytes for info in picture.nodes if info.name == "MulBackward0"].count(4000) == 1  # h * h
    assert picture.nbytes == 8000  # h, which exp keeps as well, and w
    assert named(picture, "ExpBackward0").saved[0].owner == "its own result"


def test_names_come_from_the_callers_variables() -> None:
    weights = {"first": pullback.ones(2, requires_grad=True)}
    layers = [pullback.nn.Linear(2, 2)]
    bias = pullback.ones(2, requires_grad=True)
    hidden = layers[0](weights["first"]) + bias
    found = {info.variable for info in graph(hidden.sum()).nodes}
    assert found == {"", "hidden", "bias", "weights['first']", "layers[0].weight", "layers[0].bias"}


def test_names_come_from_attributes_of_self() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = pullback.ones(2, requires_grad=True)
            self.inner = pullback.nn.Linear(2, 2)

        def picture(self) -> Graph:
            return graph((self.inner(self.weight) * 2).sum())

    found = {info.variable for info in Model().picture().nodes}
    assert found == {"", "self.weight", "self.inner.weight", "self.inner.bias"}


def test_names_come_from_a_dict_or_a_module_and_from_nothing_else_then() -> None:
    model = pullback.nn.Sequential(pullback.nn.Linear(2, 2), pullback.nn.ReLU())
    loss = model(pullback.ones(1, 2)).sum()
    assert {n.variable for n in graph(loss, model).nodes} == {"", "0.weight", "0.bias"}
    parameters = {"layer": dict(model[0].named_parameters())}
    assert {n.variable for n in graph(loss, parameters).nodes} == {"", "layer['weight']", "layer['bias']"}
    assert {n.variable for n in graph(loss, {}).nodes} == {""}
    with pytest.raises(TypeError, match=r"argument names: expected a dict .* found list"):
        graph(loss, [model])  # type: ignore[arg-type]


def test_the_line_of_the_users_code_is_known_where_it_was_recorded() -> None:
    w = pullback.ones(2, requires_grad=True)
    with pullback.autograd.record_origins():
        h = w.sin()
    picture = graph(h.sum())
    file, line, function = named(picture, "SinBackward0").origin or ("", 0, "")
    assert Path(file) == Path(__file__)
    assert "h = w.sin()" in Path(file).read_text("utf-8").splitlines()[line - 1]
    assert function == "test_the_line_of_the_users_code_is_known_where_it_was_recorded"
    assert named(picture, "SumBackward0").origin is None


def test_formulas_are_the_source_of_the_rules() -> None:
    w = pullback.ones(2, requires_grad=True)
    picture = graph((Cube.apply(w).sin() * w).sum())
    rules = {info.name: picture.rules[info.rule] for info in picture.nodes if info.rule}
    assert rules["SinBackward0"].words == "The sine."
    assert rules["SinBackward0"].formula == "grad_input = g * np.cos(input)"
    assert rules["MulBackward0"].formula == "grad_input = g * other\ngrad_other = g * input"
    assert rules["SumBackward0"].formula.startswith("# grad_input\ndef _sum_rule(g")
    assert rules["CubeBackward"].words == "x to the third."
    assert "return 3 * x**2 * grad_output" in rules["CubeBackward"].formula
    assert re.fullmatch(rf"{re.escape(__file__)}:\d+", rules["CubeBackward"].place)


def test_every_operation_of_the_table_has_a_formula_that_can_be_read() -> None:
    """Expressions are cut out of their lines by position: each of them has to be one, and mention its cotangent."""
    from pullback.inspect.graphs.rules import _expression, _source
    from pullback.ops import TABLE

    unreadable, cut = [], 0
    for name, op in TABLE.items():
        for argument, rule in op.rules.items():
            text = _expression(rule)
            cut += bool(text)
            if not text and not _source(rule):
                unreadable.append((name, argument))
    assert cut > 100
    assert not unreadable


def test_gradients_are_shown_where_there_are_some() -> None:
    w, v = pullback.ones(4, requires_grad=True), pullback.ones(4, requires_grad=True)
    h = w * 3
    h.retain_grad()
    (h + v).sum().backward()
    picture = graph((h.detach() * w + v).sum())
    assert named(picture, "w").grad is not None
    assert named(picture, "w").grad.norm == pytest.approx(6.0)  # type: ignore[union-attr]
    again = graph((h + v).sum())
    assert named(again, "h").grad.norm == pytest.approx(2.0)  # type: ignore[union-attr]
    assert "|grad| 6" in str(again)


def test_a_graph_that_was_freed_is_shown_as_such() -> None:
    w = pullback.ones(2, requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    picture = graph(loss)
    assert named(picture, "MulBackward0").state == "freed"
    assert "saved values freed" in str(picture)
    assert picture.nbytes == 0


def test_what_a_hook_has_packed_is_not_unpacked() -> None:
    unpacked: list[Any] = []
    w = pullback.ones(2, requires_grad=True)
    with pullback.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(t) or t):
        loss = (Cube.apply(w) * w).sum()
    picture = graph(loss)
    assert named(picture, "MulBackward0").state == named(picture, "CubeBackward").state == "packed by a hook"
    assert not unpacked
    loss.backward()
    assert len(unpacked) == 3


def test_looking_leaves_no_trace(untraced: None) -> None:
    w = pullback.ones(2, requires_grad=True)
    loss = (w * w).sum()
    node = loss.grad_fn.next_functions[0][0]
    picture = graph(loss)
    picture.html()
    assert not hasattr(node, "_metadata")
    reference = weakref.ref(node)
    gc.disable()
    try:
        del node, loss
        assert reference() is None  # the picture keeps nothing alive, and there is no cycle
    finally:
        gc.enable()
    assert len(picture.nodes) == 4


def test_values_are_given_of_small_tensors_only() -> None:
    small, large = pullback.ones(64, requires_grad=True), pullback.ones(65, requires_grad=True)
    picture = graph(small.sum() + large.sum())
    assert named(picture, "small").value.elements == ("1",) * 64  # type: ignore[union-attr]
    assert named(picture, "large").value.elements is None  # type: ignore[union-attr]
    assert named(picture, "large").value.norm == pytest.approx(65**0.5)  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", [pullback.float16, pullback.float64, pullback.complex64, pullback.bfloat16])
def test_every_dtype_with_a_gradient_is_described(dtype: Any) -> None:
    if dtype is pullback.bfloat16:
        pytest.importorskip("ml_dtypes")
    w = pullback.ones(3, dtype=dtype, requires_grad=True)
    picture = graph((w * w).abs().sum(), backward=True)
    assert named(picture, "w").outputs == [((3,), dtype.name)]
    assert named(picture, "w").grad.norm == pytest.approx(2 * 3**0.5)  # type: ignore[union-attr]


def test_sparse_leaves_and_transforms_are_described() -> None:
    values = pullback.tensor([1.0, 2.0], requires_grad=True)
    matrix = pullback.sparse_coo_tensor([[0, 1], [1, 0]], values, (2, 2))
    assert named(graph((matrix @ pullback.ones(2, 2)).sum(), backward=True), "values").grad is not None
    seen: list[Graph] = []

    def inside(x: pullback.Tensor) -> pullback.Tensor:
        y = (x * x).sum()
        seen.append(graph(y, {}))
        return y

    pullback.func.grad(inside)(pullback.ones(2))
    pullback.vmap(pullback.func.grad(inside))(pullback.ones(3, 2))
    assert all("MulBackward0" in str(picture) for picture in seen)
    assert len(seen) == 2


def test_a_deep_graph_is_described_by_a_loop() -> None:
    y = pullback.tensor(1.0, requires_grad=True)
    for k in range(20_000):
        y = -y if k % 3 else y.sin()
    picture = graph(y, fold=False, backward=True)
    assert len(picture.steps) == 20_001
    assert str(picture).count("\n") == 20_002
    assert picture.mermaid().count("-->") == 20_001
    assert picture.dot().count("->") == 20_001


def test_what_has_no_graph_is_refused() -> None:
    with pytest.raises(TypeError, match="ndarray"):
        graph(np.zeros(2))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="requires a gradient"):
        graph(pullback.zeros(2))


# -- the backward pass -------------------------------------------------------------------------------------------------


def program() -> tuple[pullback.Tensor, dict[str, pullback.Tensor]]:
    """A loss with shared nodes, a Function, several outputs, and its leaves."""
    w = pullback.tensor([0.5, -1.0, 2.0], requires_grad=True)
    b = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    h = Cube.apply(w) + b
    values, _ = (h * w).sort()
    return (values * h).sum() + h.exp().mean(), {"w": w, "b": b}


def test_backward_does_what_backward_does() -> None:
    loss, leaves = program()
    other, expected = program()
    other.backward()
    graph(loss, backward=True)
    for name, leaf in leaves.items():
        np.testing.assert_array_equal(leaf.grad.numpy(), expected[name].grad.numpy())
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_backward_with_retain_graph_can_be_run_again_and_accumulates() -> None:
    loss, leaves = program()
    picture = graph(loss, leaves, backward=True, retain_graph=True)
    first = leaves["w"].grad.numpy().copy()
    assert not any(step.freed for step in picture.steps)
    assert named(graph(loss, leaves, backward=True), "w").grad is not None
    np.testing.assert_allclose(leaves["w"].grad.numpy(), 2 * first, rtol=1e-6)


def test_backward_takes_a_gradient() -> None:
    w = pullback.ones(3, requires_grad=True)
    picture = graph(w * 2, backward=True, gradient=pullback.tensor([1.0, 10.0, 100.0]))
    assert w.grad.tolist() == [2.0, 20.0, 200.0]
    assert picture.steps[0].received[0].elements == ("1", "10", "100")  # type: ignore[union-attr]
    with pytest.raises(RuntimeError, match="scalar"):
        graph(w * 2, backward=True)


def test_the_steps_are_in_the_engines_order() -> None:
    loss, leaves = program()
    order: list[str] = []
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            node.register_prehook(lambda g, node=node: order.append(node.name()))
            waiting += [following for following, _ in node.next_functions]
    picture = graph(loss, leaves, backward=True)
    assert [picture.nodes[step.number].name for step in picture.steps] == order
    assert len(order) == len(picture.nodes) - 1


def test_a_step_tells_the_gradients_and_what_is_freed() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    v = pullback.tensor([3.0, 4.0], requires_grad=True)
    picture = graph((w * v).sum(), backward=True)
    turns = {picture.nodes[step.number].name + picture.nodes[step.number].variable: step for step in picture.steps}
    mul = turns["MulBackward0"]
    assert [g.elements for g in mul.received if g] == [("1", "1")]
    assert [g.elements for g in mul.sent if g] == [("3", "4"), ("1", "2")]
    assert mul.freed
    assert not turns["SumBackward0"].freed  # it kept no tensor
    assert [g.elements for g in turns["AccumulateGradv"].received if g] == [("1", "2")]


def test_a_backward_that_fails_leaves_no_hook() -> None:
    class Broken(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: pullback.Tensor) -> pullback.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: pullback.Tensor) -> pullback.Tensor:
            raise ArithmeticError("on purpose")

    w = pullback.ones(2, requires_grad=True)
    y = Broken.apply(w)
    loss = (y * 2).sum()
    with pytest.raises(ArithmeticError, match="on purpose"):
        graph(loss, backward=True)
    assert loss.grad_fn._hooks is None
    assert y.grad_fn._hooks is None


def test_a_node_that_runs_again_within_anothers_backward_has_two_turns() -> None:
    w = pullback.ones(2, requires_grad=True)
    shared = w * 2

    class Inner(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: pullback.Tensor) -> pullback.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: pullback.Tensor) -> pullback.Tensor:
            with pullback.enable_grad():
                (inner,) = pullback.autograd.grad(shared.sum(), w, retain_graph=True)
            return g * inner

    picture = graph((Inner.apply(shared) * 3).sum(), backward=True)
    turns = [(picture.nodes[s.number].name, [g.elements for g in s.sent if g]) for s in picture.steps]
    assert turns == [
        ("SumBackward0", [("1", "1")]),
        ("MulBackward0", [("3", "3")]),
        ("InnerBackward", [("6", "6")]),
        ("MulBackward0", [("2", "2")]),
        ("MulBackward0", [("12", "12")]),
        ("AccumulateGrad", []),
    ]


def test_hooks_of_ones_own_stay_and_are_seen() -> None:
    w = pullback.ones(2, requires_grad=True)
    y = w * 2
    y.register_hook(lambda g: g * 10)
    picture = graph(y.sum(), backward=True)
    assert w.grad.tolist() == [20.0, 20.0]
    assert named(picture, "w").grad.elements == ("20", "20")  # type: ignore[union-attr]
    (step,) = [s for s in picture.steps if picture.nodes[s.number].name == "MulBackward0"]
    assert step.received[0].elements == ("10", "10")  # type: ignore[union-attr]


# -- the forms ---------------------------------------------------------------------------------------------------------


def test_the_text_draws_a_chain_as_a_column_and_forks_as_branches() -> None:
    w, v = pullback.ones(3, requires_grad=True), pullback.ones(3, requires_grad=True)
    h = w.sin()
    loss = (h * v + h).sum()
    assert str(graph(loss)).splitlines() == [
        "Loss  [] float32",
        "loss = SumBackward0 #4  [] float32",
        "AddBackward0 #3  [3] float32",
        "├─ h = SinBackward0 #1  (below)",
        "MulBackward0 #2  [3] float32  saves 24 B: h, v",
        "├─ v (leaf)  [3] float32",
        "h = SinBackward0 #1  [3] float32  saves 12 B: w",
        "w (leaf)  [3] float32",
        "4 nodes, 2 leaves, 36 B saved",
    ]
    assert "\033[" not in str(graph(loss))
    assert "\033[34mMulBackward0\033[0m #2" in graph(loss).text(colour=True)


def test_the_svg_is_well_formed_and_has_a_box_for_every_node_and_a_line_for_every_edge() -> None:
    loss, leaves = program()
    picture = graph(loss, leaves)
    root = ET.fromstring(picture.svg())
    boxes = [g for g in root.iter(f"{SVG}g") if g.get("aria-label")]
    assert len(boxes) == len(picture.nodes)
    pairs = {(info.number, edge.target) for info in picture.nodes for edge in info.edges}
    assert len([p for p in root.iter(f"{SVG}path") if "pb-line" in (p.get("class") or "")]) == len(pairs)
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert {"Loss", "w", "b", "CubeBackward", "[3] float32"} <= set(words)
    assert "prefers-color-scheme:dark" in picture.svg()
    assert "http" not in picture.svg().replace("http://www.w3.org/2000/svg", "")


EVIL = ['<script>alert("x")</script>', 'a"b\\', "]]>&amp;'", "größe\n2"]


def test_names_are_escaped_in_every_form() -> None:
    leaves = {name: pullback.ones(2, requires_grad=True) for name in EVIL}
    picture = graph(sum(leaves.values()).sum(), leaves)  # type: ignore[union-attr]
    root = ET.fromstring(picture.svg())
    words = {t.text for t in root.iter(f"{SVG}text")}
    assert EVIL[0] in words
    assert not list(root.iter(f"{SVG}script"))
    page = picture.html()
    assert page.count("<script") == 2  # the data and the program of the page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert {node.get("variable") for node in json.loads(data[1])["nodes"]} == {None, *EVIL}
    assert '[label="a\\"b\\\\\\n[2] float32"' in picture.dot()
    assert "<script" not in picture.mermaid()


def test_the_page_asks_for_nothing_from_outside() -> None:
    loss, leaves = program()
    page = graph(loss, leaves, backward=True).html()
    addresses = set(
        re.findall(r"https?://[^\s\"'<>]+", re.sub(r'<script type="application/json".*?</script>', "", page))
    )
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|script|img|iframe)[^>]+(src|href)=\"(?!data:)", page)


def test_numbers_that_json_lacks_are_on_the_page_as_text() -> None:
    w = pullback.tensor([float("inf"), float("nan")], requires_grad=True)
    page = graph((w * 2).sum(), backward=True).html()
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    found = json.loads(data[1], parse_constant=refuse)
    assert [node["value"]["elements"] for node in found["nodes"] if node.get("variable") == "w"] == [["inf", "nan"]]


def test_save_goes_by_the_ending(tmp_path: Path) -> None:
    loss, leaves = program()
    picture = graph(loss, leaves)
    begins = {"html": "<!doctype html>", "svg": "<svg ", "dot": "digraph", "mmd": "graph LR", "txt": "Loss"}
    for ending, start in begins.items():
        path = picture.save(tmp_path / f"picture.{ending}")
        assert path.read_text("utf-8").startswith(start)
    with pytest.raises(ValueError, match=r"\.html, \.svg, \.dot, \.mmd, \.txt.*png"):
        picture.save(tmp_path / "picture.png")
    assert len(list(tmp_path.iterdir())) == len(begins)


def test_a_notebook_shows_a_graph_as_a_picture_and_a_tensor_as_ever() -> None:
    w = pullback.ones(2, requires_grad=True)
    loss = w.sum()
    picture = graph(loss)
    assert picture._repr_svg_() in picture._repr_html_()
    assert repr(picture) == "<Graph of 3 nodes>"
    assert not hasattr(loss, "_repr_html_")
    assert repr(loss) == "tensor(2., grad_fn=<SumBackward0>)"


def test_as_dict_is_json() -> None:
    loss, leaves = program()
    found = json.loads(json.dumps(graph(loss, leaves, backward=True).as_dict()))
    assert found["nodes"][0]["name"] == "Loss"
    assert len(found["steps"]) == len(found["nodes"]) - 1
    assert found["rules"][found["nodes"][1]["rule"]]["formula"]


# -- Mermaid -----------------------------------------------------------------------------------------------------------


def test_mermaid_of_a_custom_node_between_two_operations() -> None:
    w = pullback.tensor([[1.0, 2.0]], requires_grad=True)
    b = pullback.tensor([1.0, 2.0], requires_grad=True)
    x = pullback.tensor([[3.0]])  # needs no gradient, so it is not drawn
    loss = Cube.apply(x * w + b).sum()
    assert mermaid(loss, {"x": x, "w": w}) == "\n".join(
        [
            "graph LR",
            "    Loss -->|grad_output| SumBackward0",
            "    SumBackward0 -->|grad_input| CubeBackward",
            "    CubeBackward -->|grad_input| AddBackward0",
            "    AddBackward0 -->|grad_input| MulBackward0",
            '    leaf(["(2,)"])',
            "    AddBackward0 -->|grad_input| leaf",
            '    leaf_w(["w (1, 2)"])',
            "    MulBackward0 -->|grad_input| leaf_w",
        ]
    )


def test_mermaid_keeps_nodes_of_one_name_apart_and_draws_every_edge() -> None:
    x = pullback.tensor(2.0, requires_grad=True)
    text = mermaid((x * x) * x)
    assert text.count('MulBackward0_2["MulBackward0"]') == 1
    assert text.count("MulBackward0_2 -->|grad_input| leaf") == 2
    assert text.count("MulBackward0 -->|grad_input| leaf") == 1
    assert text.count('leaf(["()"])') == 1
    assert text == mermaid((x * x) * x)


def test_mermaid_identifiers_are_valid_and_distinct_whatever_the_names() -> None:
    names = ['layer.0["w"]', "layer_0__w__", "end", "<b>`größe`</b>\n#1 & more"]
    leaves = {name: pullback.tensor([1.0], requires_grad=True) for name in names}
    text = mermaid(sum(leaves.values()), leaves)
    shapes = re.findall(r"^    (\w+)\(\[\"([^\"]*) \(1,\)\"\]\)$", text, re.MULTILINE)
    assert len({identifier for identifier, _ in shapes}) == 4
    assert all(re.fullmatch("[A-Za-z0-9_]+", identifier) and identifier != "end" for identifier, _ in shapes)
    assert [label for _, label in shapes if "more" in label] == ["#lt;b#gt;#96;größe#96;#lt;/b#gt; #35;1 #amp; more"]
    for line in text.splitlines()[1:]:
        arrow = r"    \w+ -->\|grad_(in|out)put\| \w+"
        assert re.fullmatch(rf"{arrow}|    \w+\(\[\"[^\"]*\"\]\)|    \w+\[\"\w+\"\]", line), line


def test_mermaid_of_a_leaf() -> None:
    w = pullback.tensor([1.0], requires_grad=True)
    assert mermaid(w, {"w": w}) == 'graph LR\n    leaf_w(["w (1,)"])\n    Loss -->|grad_output| leaf_w'


def test_mermaid_of_a_deep_graph_does_not_recurse() -> None:
    y = pullback.tensor(1.0, requires_grad=True)
    for _ in range(20_000):
        y = -y
    text = graph(y, {}, fold=False).mermaid()
    assert text.count("-->") == 20_001
    assert text.endswith("NegBackward0_20000 -->|grad_input| leaf")


def test_mermaid_goes_on_after_backward_and_leaves_the_graph_usable() -> None:
    x = pullback.tensor(3.0, requires_grad=True)
    y = x * x
    before = mermaid(y)
    y.backward()
    assert x.grad.item() == 6.0
    assert mermaid(y) == before


def test_mermaid_is_not_misled_by_an_attribute_of_a_custom_node() -> None:
    class Doubled(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: pullback.Tensor) -> pullback.Tensor:
            ctx.variable = x
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad_output: pullback.Tensor) -> pullback.Tensor:
            return grad_output * 2

    x = pullback.tensor([1.0], requires_grad=True)
    text = mermaid(Doubled.apply(x))
    assert "Loss -->|grad_output| DoubledBackward\n" in text
    assert "DoubledBackward -->|grad_input| leaf" in text


def test_mermaid_draws_what_repeats_once() -> None:
    y = pullback.ones(2, requires_grad=True)
    for _ in range(100):
        y = -y
    assert mermaid(y).splitlines() == [
        "graph LR",
        '    repeated_0[["x 100, NegBackward0"]]',
        "    Loss -->|grad_output| repeated_0",
        '    leaf(["(2,)"])',
        "    repeated_0 -->|grad_input| leaf",
    ]


def test_what_a_function_saved_has_the_name_that_the_function_gives_it() -> None:
    class Scale(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            ctx.save_for_backward(weight, x * 1, x)
            return x * weight

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            factor, copied, original = ctx.saved_tensors
            return grad_output * factor, grad_output * copied + 0 * original

    w = pullback.ones(3, requires_grad=True)
    out = Scale.apply(w.exp(), w * 2)
    (node,) = [n for n in graph(out, {}).nodes if n.name == "ScaleBackward"]
    assert [s.title for s in node.saved] == ["weight", "copied", "x"]
    assert [s.name for s in node.saved] == [f"saved_tensors[{i}]" for i in range(3)]

    class Opaque(Scale):
        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            return grad_output * ctx.saved_tensors[0], grad_output * ctx.saved_tensors[1]

    (node,) = [n for n in graph(Opaque.apply(w.exp(), w * 2), {}).nodes if n.name == "OpaqueBackward"]
    assert [s.title for s in node.saved] == ["weight", "saved_tensors[1]", "x"]

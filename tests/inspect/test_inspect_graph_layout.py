"""What of a graph is folded, and where its boxes stand."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
from pullback import nn
from pullback.inspect import Graph, graph
from pullback.inspect.graphs import repeats
from pullback.inspect.graphs.layout import GAP_X, GAP_Y, layout
from pullback.inspect.graphs.repeats import visible

# -- what repeats ------------------------------------------------------------------------------------------------------


def lines(loss: pullback.Tensor, names: Any = None, fold: bool | None = True) -> list[str]:
    """The text of the picture without its last line."""
    return str(graph(loss, names or {}, fold=fold)).splitlines()[:-1]


def test_twelve_layers_are_one_box() -> None:
    model = nn.Sequential(*[nn.TransformerEncoderLayer(8, 2, 16) for _ in range(12)])
    picture = graph(model(pullback.randn(3, 2, 8)).sum(), model)
    period, count = picture.repeats[0]
    assert count == 12
    assert period * count == len([info for info in picture.nodes if info.made]) - 1  # all but the sum
    assert "x 12  " in str(picture)
    assert len(str(picture).splitlines()) == 4
    opened = graph(model(pullback.randn(3, 2, 8)).sum(), model, fold=False)
    assert len(str(opened).splitlines()) > len(opened.nodes)


def test_a_chain_of_one_operation_is_one_box_and_its_leaf_is_not_in_it() -> None:
    y = w = pullback.ones(2, requires_grad=True)
    for _ in range(10_000):
        y = y * 1.5
    assert lines(y, {"w": w}) == ["Loss  [2] float32", "x 10000  MulBackward0", "w (leaf)  [2] float32"]


def test_a_weight_that_all_blocks_share_stays_outside_and_their_own_are_inside() -> None:
    shared = pullback.ones(2, 2, requires_grad=True)
    biases = [pullback.ones(2, requires_grad=True) for _ in range(5)]
    h = pullback.ones(2, 2)
    for b in biases:
        h = (h @ shared + b).tanh()
    names = {"shared": shared, **{f"b{i}": b for i, b in enumerate(biases)}}
    assert lines(h.sum(), names) == [
        "Loss  [] float32",
        "SumBackward0 #16  [] float32",
        "x 5  TanhBackward0, AddBackward0, MmBackward0, 5 leaves, saves 112 B",  # 5 results, shared, h
        "shared (leaf)  [2, 2] float32",
    ]


def test_repeats_within_repeats() -> None:
    y = pullback.ones(2, requires_grad=True)
    for _ in range(4):
        for _ in range(6):
            y = y.sin()
        y = (y.exp() + 1).log()
    picture = graph(y.sum(), fold=True)
    assert picture.repeats[0] == (9, 4)
    assert sorted(picture.repeats[1:]) == [(1, 6)] * 4


def test_blocks_of_the_same_operations_that_are_connected_otherwise_are_no_repeat() -> None:
    x = pullback.ones(2, requires_grad=True)

    def block(y: pullback.Tensor, crossed: bool) -> pullback.Tensor:
        a, b = y.sin(), y.cos()
        c, d = a.exp(), b.exp()
        return c * (a if crossed else b) + d

    y = x
    for crossed in (False, True, False, True):
        y = block(y, crossed)
    assert not [count for period, count in graph(y.sum(), fold=True).repeats if period == 6 and count > 1]
    for _ in range(3):
        y = block(y, True)
    assert graph(y.sum(), fold=True).repeats == [(6, 4)]


def test_a_long_program_without_repeats_is_searched_in_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    pool = [pullback.ones(2, requires_grad=True) for _ in range(20)]
    for _ in range(1000):  # one operation on one shape, so that only the wiring tells
        pool.append(pool[-1] + rng.choice(pool[-12:]))
    looked = 0
    pattern = repeats._Wiring._pattern

    def counted(self: Any, start: int, k: int, period: int) -> Any:
        nonlocal looked
        looked += period
        return pattern(self, start, k, period)

    monkeypatch.setattr(repeats._Wiring, "_pattern", counted)
    picture = graph(pool[-1], {}, fold=True)
    assert looked < 20 * 1000
    assert all(count * period < 20 for period, count in picture.repeats)


def test_different_shapes_are_no_repeat() -> None:
    x = pullback.ones(64, requires_grad=True)
    y = x
    for _ in range(4):
        y = y.reshape(2, -1).sum(0)
    assert graph(y.sum(), fold=True).repeats == []


def test_small_graphs_are_folded_only_if_asked() -> None:
    y = pullback.ones(2, requires_grad=True)
    for _ in range(10):
        y = y.sin()
    assert len(lines(y, fold=None)) == 12
    assert len(lines(y, fold=True)) == 3


def test_the_many_leaves_of_one_operation_are_one_box() -> None:
    parts = [pullback.ones(1 + k % 2, requires_grad=True) for k in range(100)]
    joined = pullback.cat(parts)
    assert lines(joined.sum(), {}, fold=None) == [
        "Loss  [] float32",
        "SumBackward0 #2  [] float32",
        "CatBackward0 #1  [150] float32",
        "100 leaves  [1] float32, [2] float32, and 98 more",
    ]
    assert graph(joined.sum(), {}).repeats == []
    assert sum("leaf" in line for line in lines((joined * parts[0]).sum(), {})) == 2  # one of them has another use
    assert sum("leaf" in line for line in lines(pullback.cat(parts[:12]), {})) == 12


@st.composite
def programs(draw: Any) -> Graph:
    """A program of random operations with repeated parts."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    pool = [pullback.ones(2, requires_grad=True) for _ in range(rng.randint(1, 4))]
    for _ in range(rng.randint(1, 4)):
        recipe = [(rng.choice("sct+*"), rng.randint(1, 4), rng.randint(1, 4)) for _ in range(rng.randint(1, 6))]
        for _ in range(rng.randint(1, 5)):
            for what, i, j in recipe:
                a, b = pool[-min(i, len(pool))], pool[-min(j, len(pool))]
                made = {"s": a.sin, "c": a.cos, "t": a.tanh, "+": lambda a=a, b=b: a + b, "*": lambda a=a, b=b: a * b}
                pool.append(made[what]())
    return graph((pool[-1] + pool[-2]).sum(), {}, fold=True)


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(0, 10**6))
def test_folding_hides_but_loses_nothing(picture: Graph, seed: int) -> None:
    found, description = picture._folding, picture._description
    opened = [group.number for group in found.groups if random.Random(seed + group.number).random() < 0.5]
    shown = visible(description, found, opened)
    assert all(source < target for source, target in shown.edges)  # so there is no cycle
    members = [m for is_group, i in shown.items for m in (found.groups[i].members if is_group else [i])]
    assert sorted(members) == list(range(len(description.nodes)))
    where = {m: place for place, (g, i) in enumerate(shown.items) for m in (found.groups[i].members if g else [i])}
    pairs = [(where[n.number], where[edge.target]) for n in description.nodes for edge in n.edges]
    assert sum(shown.edges.values()) == sum(a != b for a, b in pairs)
    made = description.operations
    for group in [group for group in found.groups if group.period]:
        blocks = [
            [(made[i].name, made[i].outputs) for i in range(start, start + group.period)]
            for start in range(group.start, group.start + group.period * group.count, group.period)
        ]
        assert all(block == blocks[0] for block in blocks)
        assert group.parent < group.number


# -- where the boxes stand ---------------------------------------------------------------------------------------------


def random_graph(seed: int, count: int) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    rng = random.Random(seed)
    sizes = [(rng.uniform(20, 200), rng.uniform(20, 80)) for _ in range(count)]
    edges = {(rng.randrange(max(0, b - 12), b), b) for b in range(1, count) for _ in range(rng.randint(1, 3))}
    return sizes, sorted(edges)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_edges_go_down_and_boxes_stand_apart(seed: int, count: int) -> None:
    sizes, edges = random_graph(seed, count)
    found = layout(sizes, edges)
    rows: dict[float, list[int]] = {}
    for i, (_, y) in enumerate(found.places):
        rows.setdefault(y, []).append(i)
    for row in rows.values():
        row.sort(key=lambda i: found.places[i][0])
        for a, b in itertools.pairwise(row):
            free = found.places[b][0] - found.places[a][0] - (sizes[a][0] + sizes[b][0]) / 2
            assert free >= GAP_X - 1e-6
    for (a, b), bends in zip(edges, found.bends, strict=True):
        assert bends[0] == found.places[a]
        assert bends[-1] == found.places[b]
        assert all(above[1] < below[1] for above, below in itertools.pairwise(bends))
        assert found.places[b][1] - found.places[a][1] >= (sizes[a][1] + sizes[b][1]) / 2 + GAP_Y - 1e-6
    for (x, y), (w, h) in zip(found.places, sizes, strict=True):
        assert x - w / 2 >= -1e-6
        assert x + w / 2 <= found.width + 1e-6
        assert y - h / 2 >= -1e-6
        assert y + h / 2 <= found.height + 1e-6


def test_bends_of_an_edge_pass_beside_the_boxes() -> None:
    sizes, edges = [(80.0, 30.0)] * 5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    found = layout(sizes, edges)
    for x, y in found.bends[4][1:-1]:
        (box,) = [i for i in range(5) if found.places[i][1] == y]
        assert abs(x - found.places[box][0]) >= 40 + GAP_X


def test_a_chain_is_a_straight_column_and_a_fork_is_even() -> None:
    chain = layout([(50.0, 20.0)] * 6, [(i, i + 1) for i in range(5)])
    assert len({x for x, _ in chain.places}) == 1
    fork = layout([(50.0, 20.0)] * 3, [(0, 1), (0, 2)])
    assert fork.places[0][0] == pytest.approx((fork.places[1][0] + fork.places[2][0]) / 2)
    assert layout([], []).places == []


def test_a_leaf_that_thousands_use_does_not_fill_the_picture_with_bends() -> None:
    y = w = pullback.ones(2, requires_grad=True)
    for k in range(2000):
        y = (y.sin() if k % 7 else y.exp()) * w
    picture = graph(y.sum(), {}, fold=False)
    assert picture.svg().count("C") < 100_000  # a bend in every row for every edge would be four million
    assert picture.svg().count("pb-far") > 100


def test_ten_thousand_nodes_are_drawn() -> None:
    rng = random.Random(0)
    pool = [pullback.ones(2, requires_grad=True) for _ in range(20)]
    for _ in range(10_000):
        a, b = rng.choice(pool[-9:]), pool[-1]
        pool.append(a + b if rng.random() < 0.5 else getattr(b, rng.choice(["sin", "cos", "tanh"]))())
    picture = graph(pool[-1].sum(), {}, fold=False)
    assert len(picture.nodes) > 9_000
    assert picture.svg().count("aria-label") == len(picture.nodes)

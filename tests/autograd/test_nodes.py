"""Nodes of the graph as one finds them at `grad_fn`: names, edges, what they saved, `AccumulateGrad`, `GradientEdge`.

The programs run in PyTorch, too, and have to come to the same. Names that differ on purpose are in docs/differences.md.
"""

from __future__ import annotations

import copy
import re
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from pullback.autograd.graph import GradientEdge, get_gradient_edge

import pullback
from pullback.autograd import AccumulateGrad, Node
from pullback.autograd.function import BackwardCFunction
from pullback.ops import TABLE
from tests.programs.graph.common import double_of
from tests.side_by_side import constant, leaf


def test_kinds_of_nodes() -> None:
    x = leaf(pullback, [1.0])
    node = double_of(pullback).apply(x).grad_fn
    assert isinstance(node, BackwardCFunction)
    assert isinstance(node.next_functions[0][0], AccumulateGrad)
    assert issubclass(AccumulateGrad, Node)
    assert not isinstance((x * 2).grad_fn, BackwardCFunction)


def test_a_gradient_edge_of_ones_own_needs_a_gradient() -> None:
    x = leaf(pullback, [1.0])
    y = x * 2
    edge = GradientEdge(y.grad_fn, 0)
    assert edge.ownership_token is None
    with pytest.raises(RuntimeError, match="element 0 of tensors is a GradientEdge"):
        pullback.autograd.backward(edge)
    pullback.autograd.backward(edge, constant(pullback, [2.0]))
    assert x.grad.item() == 4.0
    assert get_gradient_edge(y)[:2] == (y.grad_fn, 0)


def test_what_was_saved_is_told_where_an_attribute_is_missing() -> None:
    node = leaf(pullback, [[1.0, 2.0]]).sum(1).grad_fn
    with pytest.raises(AttributeError, match=r"_saved_result.*_saved_input_shape, _saved_dim"):
        node._saved_result  # noqa: B018 - the attribute is what raises
    with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
        node.nothing  # noqa: B018


def test_a_copy_of_a_node_is_refused_with_its_name() -> None:
    with pytest.raises(TypeError, match="'MulBackward0', a node of the graph"):
        copy.deepcopy((leaf(pullback, [1.0]) * 2).grad_fn)


def test_a_call_makes_gradients_fit() -> None:
    x, w = leaf(pullback, [1.0]), leaf(pullback, [1.0, 2.0, 3.0])
    by_x, by_w = (x * w).grad_fn(constant(pullback, [1.0, 1.0, 1.0]))
    assert (by_x.tolist(), by_w.tolist()) == ([6.0], [1.0, 1.0, 1.0])


def test_every_operation_names_its_nodes() -> None:
    for op in TABLE.values():
        if op.rules:
            assert re.search(r"(Backward\d|CopySlices)$", op.plans.node_class.__name__), op.name
            assert callable(op.about.node) or isinstance(op.about.node, str), op.name


def test_names_that_are_not_torchs() -> None:
    x, v = leaf(pullback, [[1.0, 2.0], [3.0, 4.0]]), leaf(pullback, [1.0, 2.0])
    made = (x[None] @ x, pullback.nn.functional.linear(x, x, v), x.clamp(v, v), pullback.addmm(x, x, x), 1 - x, x.T)
    names = [f"{n}Backward0" for n in ("Matmul", "Linear", "Clamp", "Add", "Sub", "Transpose")]
    assert [t.grad_fn.name() for t in made] == names
    y = x * 1
    y[0] = 0.0
    assert [y.grad_fn.name(), (x * 1).grad_fn.next_functions[0][0].name()] == ["CopySlices", "AccumulateGrad"]


def test_the_node_of_an_index_is_its_last_step() -> None:
    x = pullback.tensor(np.ones((2, 2, 2)), requires_grad=True)
    found = [x[index].grad_fn.name() for index in ((0, slice(1), 0), (0, slice(1)), (..., None), (..., 0), ())]
    assert found == [f"{n}Backward0" for n in ("Select", "Slice", "Unsqueeze", "Select", "Alias")]


def test_a_leaf_lets_go_of_the_payload_it_had() -> None:
    x = leaf(pullback, [1.0, 2.0])
    y = x + 1  # which saves no operand
    old = weakref.ref(x._data)
    x.data = pullback.tensor([3.0, 4.0], dtype=x.dtype)
    assert old() is None
    accumulator = y.grad_fn.next_functions[0][0]
    del x
    assert accumulator.variable.tolist() == [3.0, 4.0]  # a leaf that is made again has its last values


def leaves_that_out_resizes(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    (x * 1).sum().backward()
    x.grad = None
    with lib.no_grad(), warnings.catch_warnings(action="ignore"):
        lib.add(lib.ones(3), lib.ones(3), out=x)
    (x * 1).sum().backward()
    return x.grad.tolist()


def test_a_leaf_that_out_resizes_has_gradients_of_its_new_shape() -> None:
    assert leaves_that_out_resizes(pullback) == [1.0, 1.0, 1.0]


def test_the_gradient_of_a_leaf_that_only_the_graph_knows_is_gone_with_the_leaf_that_was_made_again() -> None:
    # torch keeps the leaf in its graph (docs/differences.md)
    w = leaf(pullback, [1.0])
    y = w * 2
    accumulator = y.grad_fn.next_functions[0][0]
    del w
    y.backward(retain_graph=True)
    assert accumulator.variable.grad is None
    held = accumulator.variable
    y.backward()
    assert held.grad.tolist() == [2.0]


def test_gradients_of_many_leaves_become_theirs_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    unshared: list[bool] = []
    arrive = AccumulateGrad.arrive

    def noted(self: Any, own: bool, g: Any, taped: bool) -> None:
        unshared.append(own)
        arrive(self, own, g, taped)

    monkeypatch.setattr(AccumulateGrad, "arrive", noted)
    leaves = [leaf(pullback, [1.0, 2.0]) for _ in range(3)]
    sum((t * 2).sum() for t in leaves).backward()
    assert unshared == [True] * 3
    a, b = leaf(pullback, [1.0]), leaf(pullback, [1.0])
    (a + b).backward()
    assert not all(unshared[3:])  # both have got the same array

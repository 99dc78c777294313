"""Nodes of the graph as one finds them at `grad_fn`: names, edges, what they saved, `AccumulateGrad`, `GradientEdge`.

The programs run in PyTorch, too, and have to come to the same. Names that differ on purpose are in docs/differences.md.
"""

from __future__ import annotations

import copy
import functools
import pickle
import re
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import AccumulateGrad, Node
from pullback.autograd.function import BackwardCFunction
from pullback.autograd.graph import GradientEdge, get_gradient_edge
from pullback.ops import TABLE
from tests.side_by_side import Program, constant, function, leaf, name_of, outcomes, programs, refused

PROGRAMS, program = programs()


def double_of(lib: Any) -> Any:
    """A Function, 2 x."""
    return function(lib, lambda ctx, x: x * 2, lambda ctx, g: g * 2)


# -- edges -------------------------------------------------------------------------------------------------------------


@program
def edges_lead_to_the_inputs(lib: Any) -> Any:
    x, y = leaf(lib, [5.0]), leaf(lib, [5.0])
    following = (x + y).grad_fn.next_functions
    return [(end, number, end.variable is t) for (end, number), t in zip(following, (x, y), strict=True)]


@program
def a_number_or_a_constant_has_no_edge(lib: Any) -> Any:
    x = leaf(lib, [5.0])
    return [list(y.grad_fn.next_functions) for y in ((x * 2) + 5, x * constant(lib, [2.0]), constant(lib, [2.0]) * x)]


@program
def a_leaf_has_one_accumulator(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    ends = [y.grad_fn.next_functions[0][0] for y in (x * 2, x.exp(), x.view_as(x), double_of(lib).apply(x))]
    return [end is ends[0] for end in ends], ends[0].variable is x


@program
def an_accumulator_is_an_end(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    end = (x * 2).grad_fn.next_functions[0][0]
    return end.next_functions, end, end.requires_grad, end.variable, end.variable.grad


@program
def outputs_are_numbered(lib: Any) -> Any:
    x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
    a, b = x.unbind()
    values = x.max(0)[0]
    c = a + b
    edges = [number for _, number in c.grad_fn.next_functions]
    return x.output_nr, a.output_nr, b.output_nr, values.output_nr, c.output_nr, edges, a.grad_fn is b.grad_fn


@program
def which_outputs_have_a_node(lib: Any) -> Any:
    values, places = leaf(lib, [[1.0, 2.0]]).sort()
    return values.grad_fn is None, places.grad_fn is None, places.requires_grad, places.is_leaf


@program
def a_leaf_has_no_node(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    return x.grad_fn, x.is_leaf, y.is_leaf, y.detach().grad_fn, y.detach().is_leaf, constant(lib, [1.0]).is_leaf


@program
def nodes_are_objects_of_their_own(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y, z = x * 2, x * 2
    return y.grad_fn is y.grad_fn, y.grad_fn == z.grad_fn, len({y.grad_fn, y.grad_fn, z.grad_fn})


@program
def numbers_of_nodes_grow(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    z = double_of(lib).apply(y)
    return y.grad_fn._sequence_nr() < z.grad_fn._sequence_nr() < (z + y).grad_fn._sequence_nr()


@program
def a_node_outlives_its_tensor_and_its_pass(lib: Any) -> Any:
    y = leaf(lib, [1.0]).exp()
    node, dead = y.grad_fn, weakref.ref(y)
    y.backward()
    del y
    return dead() is None, node.name(), node.next_functions[0][0], node.requires_grad


@program
def the_node_cannot_be_set(lib: Any) -> Any:
    y = leaf(lib, [1.0]) * 2
    return refused(lambda: setattr(y, "grad_fn", None)), refused(lambda: y.grad_fn.nothing)


@program
def each_is_a_node(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y, z, kind = x * 2, double_of(lib).apply(x), lib.autograd.graph.Node
    nodes = [y.grad_fn, z.grad_fn, y.grad_fn.next_functions[0][0]]
    return [isinstance(n, kind) for n in (*nodes, y, 3, None)], [issubclass(type(n), kind) for n in nodes]


@program
def metadata_is_ones_own(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    found = []
    for y in (x * 2, double_of(lib).apply(x)):
        y.grad_fn.metadata["a"] = 3
        found += [y.grad_fn.metadata, y.grad_fn.metadata is y.grad_fn.metadata, (x * 2).grad_fn.metadata]
    return found


@program
def metadata_dies_with_the_node(lib: Any) -> Any:
    class Held:
        pass

    found = []
    for y in (leaf(lib, [1.0]).exp(), double_of(lib).apply(leaf(lib, [1.0]))):
        held = Held()
        y.grad_fn.metadata["held"] = held
        dead = weakref.ref(held)
        del held
        found.append(dead() is None)
        y.grad_fn.metadata.clear()
        found.append(dead() is None)
    return found


@program
def metadata_of_a_parent_dies_without_the_collector(lib: Any) -> Any:
    class Held:
        pass

    def made() -> Any:
        with lib.autograd.detect_anomaly():
            x = leaf(lib, [1.0])
            y = x**2
            (g,) = lib.autograd.grad(y, x, create_graph=True)
            held = Held()
            y.grad_fn.metadata["held"] = held
            g.grad_fn.metadata["held"] = held
            return g, weakref.ref(held)

    g, dead = made()
    alive = dead() is not None
    del g
    return alive, dead() is None


@program
def nodes_are_neither_copied_nor_pickled(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    nodes = [(x * 2).grad_fn, (x * 2).grad_fn.next_functions[0][0]]
    return [refused(functools.partial(act, n)) for n in nodes for act in (pickle.dumps, copy.copy, copy.deepcopy)]


@program
def inner_tensors_are_not_deeply_copied(lib: Any) -> Any:
    return copy.deepcopy(leaf(lib, [1.0]) * 2)


# -- what a node is called and shows -----------------------------------------------------------------------------------


@program
def a_node_says_what_it_is(lib: Any) -> Any:
    y = leaf(lib, [1.0]) * 2
    return repr(y.grad_fn).split(" at ")[0], str(y.grad_fn).split(" at ")[0], y.grad_fn.name(), repr(y)[-26:]


@program
def a_node_of_a_function_is_called_after_it(lib: Any) -> Any:
    F = double_of(lib)
    node = F.apply(leaf(lib, [1.0])).grad_fn
    return node.name(), type(node).__name__, F._backward_cls is type(node), node._forward_cls is F


@program
def names_of_arithmetic(lib: Any) -> Any:
    x, c = leaf(lib, [[1.0, 2.0], [3.0, 4.0]]), constant(lib, 2.0)
    made = (x + 1, x - 1, x * 2, x * c, x / 2, -x, x**2, x**x, x.exp(), x.log(), x.log1p(), x.sqrt(), x.abs())
    also = (x.sin(), x.sigmoid(), x.tanh(), x.relu(), x.reciprocal(), x.minimum(c), x.deg2rad(), x.erf())
    return [t.grad_fn for t in made + also]


@program
def names_of_reductions(lib: Any) -> Any:
    x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
    made = (x.sum(), x.sum(0), x.sum((0, 1)), x.mean(), x.mean(1), x.amax(0), x.max(0)[0], x.min(0).values, x.var())
    also = (x.std(), x.prod(), x.logsumexp(0), x.cumsum(0), x.norm(), x.softmax(0), x.log_softmax(0), x.sort()[0])
    return [t.grad_fn for t in made + also]


@program
def names_of_views_and_indexing(lib: Any) -> Any:
    x, i = leaf(lib, [[1.0, 2.0], [3.0, 4.0]]), lib.tensor([0])
    made = (x[0], x[0, 1], x[0:1], x[:, 0], x[:, 0:1], x[0, :], x[...], x[:], x[None], x[0, None], x[i], x[x > 1])
    also = (x.view(4), x.reshape(4), x.flatten(), x.view_as(x), x.select(0, 0), x.narrow(0, 0, 1), x.unsqueeze(0))
    more = (x.transpose(0, 1), x.permute(1, 0), x.mT, x.expand(2, 2, 2), x.diagonal(), x.unbind()[0], x.split(1)[0])
    return [t.grad_fn for t in made + also + more]


@program
def names_of_copies_and_choices(lib: Any) -> Any:
    x, i = leaf(lib, [[1.0, 2.0], [3.0, 4.0]]), lib.tensor([[0, 1]])
    made = (x.clone(), x.float(), lib.cat([x, x]), lib.stack([x, x]), x.repeat(2, 1), x.flip(0), x.roll(1), x.tril())
    also = (lib.where(x > 1, x, 2 * x), x.gather(0, i), x.index_select(0, i[0]), x.topk(1)[0], x.as_strided((2,), (1,)))
    return [t.grad_fn for t in made + also]


@program
def names_of_linear_algebra_and_transforms(lib: Any) -> Any:
    x = leaf(lib, [[3.0, 1.0], [1.0, 4.0]])
    la = lib.linalg
    made = (la.inv(x), la.qr(x)[0], la.svd(x)[1], la.svdvals(x), la.eigvalsh(x), la.cholesky(x), la.pinv(x), la.det(x))
    return [t.grad_fn for t in (*made, la.vector_norm(x), lib.fft.rfft(x), lib.fft.fft2(x.to(lib.complex128)))]


@program
def names_after_writing_in_place(lib: Any) -> Any:
    found = []
    for write in (
        lambda t: t.mul_(2),
        lambda t: t.exp_(),
        lambda t: t.__setitem__(0, 1.0),
        lambda t: t[0].mul_(2),
        lambda t: t.view(2).add_(1),
    ):
        t = leaf(lib, [1.0, 2.0]) * 1
        write(t)
        found.append(t.grad_fn)
    return found


@program
def names_stay_after_the_pass(lib: Any) -> Any:
    x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
    found = []
    for y in (x.sum(0), x[0], x**2, x.mean(1)):
        before = y.grad_fn.name()
        y.sum().backward()
        found.append((before, y.grad_fn.name() == before))
    return found


# -- what a node saved -------------------------------------------------------------------------------------------------


@program
def operands_that_were_saved(lib: Any) -> Any:
    x, y = leaf(lib, [1.0]), leaf(lib, [2.0])
    found = []
    for f in ((x * y).grad_fn, (x / y).grad_fn, (x * constant(lib, [2.0])).grad_fn, (constant(lib, [2.0]) * y).grad_fn):
        found.append((f._saved_self, f._saved_other))
    f = (x * y).grad_fn
    return found, f._saved_self is x, f._saved_other is y


@program
def an_operand_that_was_saved(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    return [f(x).grad_fn._saved_self is x for f in (lib.sin, lib.log, lib.abs, lib.cos)], x.sin().grad_fn._saved_self


@program
def a_result_that_was_saved(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    found = []
    for y in (x.exp(), x.tanh(), x.sigmoid(), x.sqrt(), x.relu()):
        saved = y.grad_fn._saved_result
        found.append((saved, saved.grad_fn is y.grad_fn, saved is y))
    return found


@program
def arguments_that_were_saved(lib: Any) -> Any:
    x = leaf(lib, [[1.0, 2.0]])
    total, part = x.sum(1).grad_fn, x.softmax(1).grad_fn
    power, turned = (x**3).grad_fn, x.transpose(0, 1).grad_fn
    dim = total._saved_dim
    return (
        (tuple(dim) if isinstance(dim, tuple) else (dim,), total._saved_keepdim, tuple(total._saved_self_sym_sizes)),
        (part._saved_result, part._saved_dim),
        (power._saved_self, power._saved_exponent),
        (turned._saved_dim0, turned._saved_dim1),
        (tuple(x.permute(1, 0).grad_fn._saved_dims), tuple(x.view(2).grad_fn._saved_self_sym_sizes)),
        (lib.cat([x, x], 1).grad_fn._saved_dim, lib.stack([x, x], 1).grad_fn._saved_dim),
    )


@program
def indices_and_conditions_that_were_saved(lib: Any) -> Any:
    x, i = leaf(lib, [1.0, 2.0]), lib.tensor([1])
    picked = x.gather(0, i).grad_fn
    clamped = x.clamp(0, 2).grad_fn
    return (
        (picked._saved_index, picked._saved_dim),
        lib.where(x > 1, x, 2 * x).grad_fn._saved_condition,
        (clamped._saved_self, clamped._saved_min, clamped._saved_max),
    )


@program
def factors_of_a_product_that_were_saved(lib: Any) -> Any:
    f = (leaf(lib, [[1.0, 2.0]]) @ leaf(lib, [[3.0], [4.0]])).grad_fn
    return f._saved_self, f._saved_mat2


@program
def saved_values_are_gone_after_the_pass(lib: Any) -> Any:
    y = leaf(lib, [1.0]).exp()
    y.backward(retain_graph=True)
    still = y.grad_fn._saved_result
    y.backward()
    return still, refused(lambda: y.grad_fn._saved_result), y.grad_fn


@program
def a_saved_value_that_was_written_to(lib: Any) -> Any:
    x, y = leaf(lib, [1.0]) * 1, leaf(lib, [1.0]).exp()
    z, node = x.sin(), y.grad_fn
    x.add_(1)
    y.add_(1)
    return refused(lambda: z.grad_fn._saved_self), refused(lambda: node._saved_result)


@program
def what_was_not_saved_is_no_attribute(lib: Any) -> Any:
    return refused(lambda: (leaf(lib, [1.0]) * 2).grad_fn._saved_nothing)


@program
def saved_tensors_of_a_function(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(x, None, y)
        return y

    x = leaf(lib, [1.0])
    node = function(lib, forward, lambda ctx, g: g * 2).apply(x).grad_fn
    return list(node.saved_tensors), node.saved_tensors[0] is x, node.saved_tensors[2].grad_fn is node


# What saves no tensor can go back as often as one likes.
TWICE: dict[str, Any] = {
    "sum": lambda lib, x: x.sum(0),
    "mean": lambda lib, x: x.mean(),
    "view": lambda lib, x: x.view(4),
    "transpose": lambda lib, x: x.t(),
    "permute": lambda lib, x: x.permute(1, 0),
    "select": lambda lib, x: x[0],
    "slice": lambda lib, x: x[:, 0:1],
    "cat": lambda lib, x: lib.cat([x, x]),
    "stack": lambda lib, x: lib.stack([x, x]),
    "add": lambda lib, x: x + x + 2,
    "sub": lambda lib, x: x - 1,
    "neg": lambda lib, x: -x,
    "expand": lambda lib, x: x.expand(3, 2, 2),
    "clone": lambda lib, x: x.clone(),
    "split": lambda lib, x: x.split(1)[0],
    "unbind": lambda lib, x: x.unbind()[0],
    "flip": lambda lib, x: x.flip(0),
    "roll": lambda lib, x: x.roll(1),
    "repeat": lambda lib, x: x.repeat(2, 1),
    "diagonal": lambda lib, x: x.diagonal(),
    "tril": lambda lib, x: x.tril(),
    "cumsum": lambda lib, x: x.cumsum(0),
    "to": lambda lib, x: x.float(),
    "pad": lambda lib, x: lib.nn.functional.pad(x, (1, 1)),
    "mul": lambda lib, x: x * x,
    "mul by a number": lambda lib, x: x * 2,
    "div by a number": lambda lib, x: x / 2,
    "pow": lambda lib, x: x**2,
    "exp": lambda lib, x: x.exp(),
    "relu": lambda lib, x: x.relu(),
    "matmul": lambda lib, x: x @ x,
    "gather": lambda lib, x: x.gather(0, lib.tensor([[0, 1]])),
    "index": lambda lib, x: x[lib.tensor([0])],
    "where": lambda lib, x: lib.where(x > 1, x, x),
    "max": lambda lib, x: x.max(0)[0],
    "setitem": lambda lib, x: written(x * 1),
}


def written(t: Any) -> Any:
    t[0] = 1.0
    return t


@pytest.mark.torch
@pytest.mark.parametrize("name", TWICE)
def test_what_saved_no_tensor_runs_again(name: str) -> None:
    def run(lib: Any) -> Any:
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        y = TWICE[name](lib, x).sum()
        y.backward()
        return refused(y.backward), x.grad

    ours, torchs = outcomes(run)
    assert ours == torchs


# -- a node that is called ---------------------------------------------------------------------------------------------


@program
def a_node_can_be_called(lib: Any) -> Any:
    x, y, g = leaf(lib, [1.0]), leaf(lib, [2.0]), constant(lib, [5.0])
    product = (x * y).grad_fn
    a = constant(lib, [1.0, 2.0]).requires_grad_().unbind()[0]
    return product(g), product(g), x.exp().grad_fn(g), (x * 2).grad_fn(g), a.grad_fn(constant(lib, 1.0), None)


@program
def a_call_is_recorded_and_calls_no_hooks(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x.exp()
    y.register_hook(lambda g: events.append("tensor"))
    y.grad_fn.register_prehook(lambda got: events.append("before"))
    y.grad_fn.register_hook(lambda sent, got: events.append("after"))
    g = leaf(lib, [5.0])
    found = y.grad_fn(g)
    return found, lib.autograd.grad(found, [x, g]), events, x.grad


@program
def a_call_with_what_is_no_gradient(lib: Any) -> Any:
    node = leaf(lib, [1.0]).exp().grad_fn
    return refused(node), refused(lambda: node(3)), refused(lambda: node(constant(lib, [1.0]), constant(lib, [1.0])))


@program
def a_functions_node_is_applied_instead(lib: Any) -> Any:
    node = double_of(lib).apply(leaf(lib, [1.0])).grad_fn
    return node.apply(constant(lib, [5.0])), refused(lambda: node(constant(lib, [5.0])))


# -- gradient edges ----------------------------------------------------------------------------------------------------


@program
def the_edge_of_a_tensor(lib: Any) -> Any:
    get = lib.autograd.graph.get_gradient_edge
    x = leaf(lib, [1.0, 2.0])
    y = x.unbind()[1]
    return get(y).node is y.grad_fn, get(y).output_nr, get(x).node.variable is x, get(x).output_nr, get(x)._fields


@program
def no_edge_without_a_gradient(lib: Any) -> Any:
    return lib.autograd.graph.get_gradient_edge(constant(lib, [1.0]))


@program
def gradients_at_edges(lib: Any) -> Any:
    get = lib.autograd.graph.get_gradient_edge
    x = leaf(lib, [1.0, 2.0])
    a, b = x.unbind()
    edges = [get(t) for t in (a, b, x)]
    z = a * 2 + b * 3
    del a, b
    return lib.autograd.grad(z, edges)


@program
def the_edge_is_that_before_the_write(lib: Any) -> Any:
    get = lib.autograd.graph.get_gradient_edge
    x = leaf(lib, [1.0])
    y = x * 2
    before = get(y)
    y.mul_(3)
    z = y * 5
    return lib.autograd.grad(z, [before, get(y), y])


@program
def an_edge_that_is_not_reached(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y, unused = x * 2, lib.autograd.graph.get_gradient_edge(x * 5)
    total = y.sum()
    return (
        refused(lambda: lib.autograd.grad(total, unused, retain_graph=True)),
        lib.autograd.grad(total, unused, allow_unused=True, retain_graph=True),
        refused(lambda: lib.autograd.grad(total, unused, materialize_grads=True)),
    )


@program
def edges_as_roots(lib: Any) -> Any:
    get = lib.autograd.graph.get_gradient_edge
    x = leaf(lib, [1.0])
    y = x * 2
    edge = get(y)
    first = lib.autograd.grad(edge, x, constant(lib, [3.0]), retain_graph=True)
    second = lib.autograd.grad(edge, x, retain_graph=True)
    lib.autograd.backward(edge, constant(lib, [2.0]), retain_graph=True)
    lib.autograd.backward([edge, y], [None, constant(lib, [10.0])], retain_graph=True)
    wide = get(leaf(lib, [1.0, 2.0]) * 2)
    return first, second, x.grad, refused(lambda: lib.autograd.backward(wide))


@program
def an_edge_as_root_with_a_gradient_of_another_shape(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    lib.autograd.backward(lib.autograd.graph.get_gradient_edge(x * 2), constant(lib, [2.0]))


@program
def a_leafs_edge_as_input(lib: Any) -> Any:
    x, w = leaf(lib, [1.0]), leaf(lib, [2.0])
    (x * w).backward(inputs=lib.autograd.graph.get_gradient_edge(x))
    return x.grad, w.grad


# -- with no counterpart, or on ours alone -----------------------------------------------------------------------------


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
            assert re.search(r"(Backward\d|CopySlices)$", op.node_class.__name__), op.name
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


@program
def a_saved_result_counts_the_writes_to_the_result(lib: Any) -> Any:
    y = leaf(lib, [1.0, 2.0]).exp()
    saved = y.grad_fn._saved_result
    before = saved._version, y._version
    with lib.no_grad():
        y += 1
    return before, saved._version, y._version, saved


@program
def a_mode_of_hooks_on_several_gradients_that_there_is_not(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    try:
        lib.autograd.graph.register_multi_grad_hook((x, x), lambda grads: None, mode="some")
    except ValueError as error:
        return str(error).splitlines()[0]
    return None


@program
def saved_tensors_are_made_by_nodes_only(lib: Any) -> Any:
    raw = (leaf(lib, [1.0]) ** 2).grad_fn._raw_saved_self
    return isinstance(raw, lib.autograd.SavedTensor), refused(lib.autograd.SavedTensor)


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_as_torch_does(program: Program) -> None:
    ours, torchs = outcomes(program)
    assert ours == torchs


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

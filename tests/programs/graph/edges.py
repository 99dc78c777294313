"""Nodes and their edges."""

from __future__ import annotations

import copy
import functools
import pickle
import weakref
from typing import Any

from tests.programs.graph.common import double_of
from tests.side_by_side import constant, leaf, programs, refused

PROGRAMS, program = programs()


# edges ----------------------------------------------------------------------------------------------------------------


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


# gradient edges -------------------------------------------------------------------------------------------------------


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

"""The order in which nodes run."""

from __future__ import annotations

import itertools
from typing import Any

from tests.programs.engine.common import noting
from tests.side_by_side import function, leaf, named, programs

PROGRAMS, program = programs()


@program
def the_newest_node_that_is_ready_runs_first(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    a = noting(lib, events, "a")(x)
    b = noting(lib, events, "b")(x)
    c = noting(lib, events, "c")(a)
    d = noting(lib, events, "d")(b)
    (d + c + a + b).backward()
    return events, x.grad


@program
def the_order_of_roots_does_not_count(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    a, b, c = (noting(lib, events, n)(x) for n in "abc")
    lib.autograd.backward([b, a, c])
    return events


@program
def a_node_waits_for_a_long_way_round(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = noting(lib, events, "y")(x)
    z = y
    for i in range(5):
        z = noting(lib, events, f"z{i}", 2.0)(z)
    (noting(lib, events, "late")(y) + z).backward()
    return events, x.grad


@program
def a_root_within_the_graph_of_another(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = noting(lib, events, "y", 2.0)(x)
    z = noting(lib, events, "z", 3.0)(y)
    lib.autograd.backward([y, z])
    return events, x.grad


@program
def each_node_runs_once_for_all_its_outputs(lib: Any) -> Any:
    events: list[Any] = []

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        events.append((g, h))
        return g * 2 + h * 3

    x = leaf(lib, [1.0])
    a, b = function(lib, lambda ctx, x: (x * 2, x * 3), backward).apply(x)
    (a * 5 + b + a).backward()
    return events, x.grad


@program
def leaves_accumulate_once_and_in_order(lib: Any) -> Any:
    events: list[Any] = []
    xs = [leaf(lib, [float(i + 1)]) for i in range(4)]
    for i, x in enumerate(xs):
        x.register_post_accumulate_grad_hook(lambda t, i=i: events.append((i, t.grad)))
    y = xs[0] * xs[1]
    z = y * xs[2]
    y.register_hook(lambda g: events.append("y"))
    z.register_hook(lambda g: events.append("z"))
    (z * xs[3] + xs[0]).backward()
    return events


def leaves_with_hooks(lib: Any, kind: str, wanted: str) -> Any:
    """When leaves have their turn among the nodes; and the gradients. wanted: the `inputs` of the pass, "" for all."""
    order: list[str] = []
    x, y, z = (lib.tensor([float(i)], requires_grad=True) for i in (1, 2, 3))
    (x * 2).backward()  # a use in a graph that is gone does not count
    first = y * z
    second = x * z
    third = x * first
    total = second + third
    leaves = {"x": x, "y": y, "z": z}
    for name, t in {**leaves, "first": first, "second": second, "third": third}.items():

        def note(*_: Any, name: str = name) -> None:
            order.append(name)

        if name not in leaves:
            t.grad_fn.register_prehook(note)
        elif kind == "tensor":
            t.register_hook(note)
        elif kind == "after accumulation":
            t.register_post_accumulate_grad_hook(note)
        else:
            (t * 1).grad_fn.next_functions[0][0].register_hook(note)
    total.backward(inputs=[leaves[name] for name in wanted.split()] or None)
    return order, [x.grad, y.grad, z.grad]


PROGRAMS += [
    named(
        f"a_leaf_has_its_turn_as_soon_as_its_last_consumer_has_run: hooks {kind}, {wanted or 'all'}",
        lambda lib, kind=kind, wanted=wanted: leaves_with_hooks(lib, kind, wanted),
    )
    for kind, wanted in itertools.product(("tensor", "after accumulation", "node"), ("", "x z", "z"))
]

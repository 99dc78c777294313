"""The order in which nodes run."""

from __future__ import annotations

from typing import Any

from tests.programs.engine.common import noting
from tests.side_by_side import function, leaf, programs

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

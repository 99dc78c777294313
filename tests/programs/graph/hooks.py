"""Hooks of tensors and of nodes: who is called, when, with what, and what their results do."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tests.oracle import cases
from tests.side_by_side import Program, constant, function, leaf, programs, refused

PROGRAMS, program = programs()


def instrumented(lib: Any) -> tuple[Any, Any, Any, list[Any]]:
    """A leaf x, y = 3 x, z = exp(y), with a hook of every kind; each notes that it was called."""
    events: list[Any] = []
    x = leaf(lib, [0.5])
    y = x * 3
    z = y.exp()
    y.register_hook(lambda g: events.append("y"))
    y.grad_fn.register_prehook(lambda got: events.append(("y before", len(got))))
    y.grad_fn.register_hook(lambda sent, got: events.append(("y after", len(sent), len(got))))
    y.retain_grad()
    y.register_hook(lambda g: events.append(("y again", y.grad is None)))
    z.register_hook(lambda g: events.append(("z", g)))
    z.grad_fn.register_prehook(lambda got: events.append(("z before", got)))
    z.grad_fn.register_hook(lambda sent, got: events.append(("z after", sent, got)))
    x.register_hook(lambda g: events.append("x"))
    x.register_post_accumulate_grad_hook(lambda t: events.append(("x accumulated", t.grad)))
    end = y.grad_fn.next_functions[0][0]
    end.register_prehook(lambda got: events.append(("end before", len(got))))
    end.register_hook(lambda sent, got: events.append(("end after", len(sent), len(got))))
    return x, y, z, events


@program
def all_events_of_backward(lib: Any) -> Any:
    x, y, z, events = instrumented(lib)
    z.backward()
    return events, x.grad, y.grad


@program
def all_events_of_a_recorded_backward(lib: Any) -> Any:
    x, y, z, events = instrumented(lib)
    z.backward(create_graph=True)
    return len(events), x.grad, y.grad


@program
def all_events_of_two_passes(lib: Any) -> Any:
    x, y, z, events = instrumented(lib)
    z.backward(retain_graph=True)
    z.backward()
    return events, x.grad, y.grad


@program
def all_events_of_grad(lib: Any) -> Any:
    x, y, z, events = instrumented(lib)
    found = lib.autograd.grad(z, x)
    return events, found, x.grad, y.grad


@program
def all_events_of_grad_of_an_inner_tensor(lib: Any) -> Any:
    x, y, z, events = instrumented(lib)
    found = lib.autograd.grad(z, y)
    return events, found, x.grad, y.grad


@program
def all_events_of_backward_with_inputs(lib: Any) -> Any:
    x, y, z, events = instrumented(lib)
    z.backward(inputs=[x])
    return events, x.grad, y.grad


@program
def all_events_of_the_root_as_input(lib: Any) -> Any:
    _, y, z, events = instrumented(lib)
    return lib.autograd.grad(z, [z, y]), events


@program
def order_across_a_graph(lib: Any) -> Any:
    events: list[Any] = []

    def note(name: str, t: Any) -> Any:
        t.register_hook(lambda g: events.append((name, g)))
        return t

    x = leaf(lib, [0.5])
    a = note("a", x * 2)
    b, c = note("b", a.exp()), note("c", a.sin())
    d = note("d", b * c)
    e = note("e", a + d)
    note("f", (e * b).sum()).backward()
    return events, x.grad


@program
def replacements_in_turn(lib: Any) -> Any:
    x = leaf(lib, [0.5])
    y = x * 3
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda got: (got[0] + 1,))
    y.grad_fn.register_hook(lambda sent, got: (sent[0] + got[0], *sent[1:]))
    x.register_hook(lambda g: g - 0.5)
    y.sum().backward()
    return x.grad


@program
def prehook_and_capture(lib: Any) -> Any:
    x = leaf(lib, [0.5])
    y = x * 3
    y.retain_grad()
    y.grad_fn.register_prehook(lambda got: (got[0] * 10,))
    return lib.autograd.grad(y.sum(), [y, x]), y.grad


@program
def gradients_a_hook_sees_of_an_operation(lib: Any) -> Any:
    seen: list[Any] = []
    x, w, c = leaf(lib, [2.0]), leaf(lib, [1.0, 2.0, 3.0]), constant(lib, [1.0, 2.0, 1.0])
    for y in (x * w, c * x, x - c, w + 1, lib.stack([w, w])):
        y.grad_fn.register_hook(lambda sent, got: seen.append((sent, got)))
        y.sum().backward()
    return seen, x.grad, w.grad


@program
def where_nodes_lead(lib: Any) -> Any:
    x, c = leaf(lib, [1.0]), constant(lib, [2.0])
    found = []
    for y in (x * c, c * x, x * x, x + 1, x.exp(), x.sum(), lib.stack([x, c, x]), (x * c) / x):
        found.append([(node, number) for node, number in y.grad_fn.next_functions])
    return found


@program
def hooks_while_hooks_run(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x * 2

    def first(*_: Any) -> None:
        events.append("first")
        second.remove()
        y.register_hook(lambda g: events.append("new"))

    y.register_hook(first)
    second = y.register_hook(lambda g: events.append("second"))
    z = y.sum()
    z.backward(retain_graph=True)
    z.backward()
    return events


@program
def post_hooks_taking_a_gradient_away(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x.exp()
    y.grad_fn.register_hook(lambda sent, got: (None,))
    y.sum().backward()
    return x.grad


@program
def prehooks_taking_a_gradient_away(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x.exp()
    y.grad_fn.register_prehook(lambda got: (None,))
    y.sum().backward()
    return x.grad


@program
def prehooks_taking_one_of_two_away(lib: Any) -> Any:
    F = type(
        "F",
        (lib.autograd.Function,),
        {
            "forward": staticmethod(lambda ctx, x: (x * 2, x * 3)),
            "backward": staticmethod(lambda ctx, a, b: a * 2 + b * 3),
        },
    )
    x = leaf(lib, [1.0])
    a, b = F.apply(x)
    a.grad_fn.register_prehook(lambda got: (None, got[1]))
    (a + b).sum().backward()
    return x.grad


@program
def post_accumulate_hooks(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    handle = x.register_post_accumulate_grad_hook(lambda t: events.append((t is x, t.grad)))
    x.register_post_accumulate_grad_hook(lambda t: events.append("second"))
    (x * 2).backward()
    handle.remove()
    (x * 2).backward()
    lib.autograd.grad(x * 2, x)
    return events


@program
def post_accumulate_hook_of_an_inner_tensor(lib: Any) -> Any:
    return (leaf(lib, [1.0]) * 2).register_post_accumulate_grad_hook(lambda t: None)


@program
def a_hook_that_writes(lib: Any) -> Any:
    x, g = leaf(lib, [1.0, 1.0]), constant(lib, [1.0, 1.0])
    y = x * 2

    def write(grad: Any) -> None:
        grad.mul_(3)

    y.register_hook(write)
    y.backward(g)
    return x.grad, g


@program
def hooks_before_and_after_an_in_place_write(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x * 2
    y.register_hook(lambda g: events.append(("old", g)))
    y.mul_(3)
    y.register_hook(lambda g: events.append(("new", g)))
    y.sum().backward()
    return events, x.grad


@program
def retained_twice(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    z = y * 3
    z.backward(retain_graph=True)
    z.backward()
    return y.grad, y.retains_grad, x.retains_grad


@program
def what_a_post_accumulation_hook_returns(lib: Any) -> Any:
    def of(answer: Any) -> Any:
        x = leaf(lib, [1.0])
        x.register_post_accumulate_grad_hook(lambda t: answer(t))
        return refused(lambda: (x * 2).backward()), x.grad

    return of(lambda t: None), of(lambda t: t), of(lambda t: constant(lib, [5.0])), of(lambda t: 3), of(lambda t: (t,))


@program
def a_post_accumulation_hook_that_raises(lib: Any) -> Any:
    def hook(t: Any) -> None:
        raise ArithmeticError

    x = leaf(lib, [1.0])
    x.register_post_accumulate_grad_hook(hook)
    return refused(lambda: (x * 2).backward()), x.grad


@program
def the_post_accumulation_hook_of_each_layer_as_soon_as_it_can(lib: Any) -> Any:
    events: list[Any] = []
    ws = [leaf(lib, [float(i + 1)]) for i in range(4)]
    y = constant(lib, [1.0])
    for i, w in enumerate(ws):
        y = (y * w).tanh()
        y.register_hook(lambda g, i=i: events.append(f"output {i}"))
        w.register_post_accumulate_grad_hook(lambda t, i=i: events.append((f"weight {i}", t.grad is not None)))
    y.backward()
    return events


@program
def a_post_accumulation_hook_that_steps(lib: Any) -> Any:
    x, w = leaf(lib, [1.0]), leaf(lib, [2.0])

    def step(t: Any) -> None:
        with lib.no_grad():
            t -= 0.1 * t.grad
        t.grad = None

    for t in (x, w):
        t.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        (x * w).backward()
    return x.detach(), w.detach(), x.grad, w.grad


@program
def hooks_of_a_leaf_and_of_its_accumulator(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x * 2
    end = y.grad_fn.next_functions[0][0]
    x.register_post_accumulate_grad_hook(lambda t: events.append(("accumulated", t.grad)))
    end.register_prehook(lambda got: (events.append(("before", got)), (got[0] * 10,))[1])
    end.register_hook(lambda sent, got: events.append(("after", sent, got)))
    x.register_hook(lambda g: (events.append(("tensor", g)), g + 1)[1])
    y.backward()
    return events, x.grad


@program
def hooks_of_an_accumulator_in_grad(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x * 2
    end = y.grad_fn.next_functions[0][0]
    end.register_prehook(lambda got: events.append("before"))
    end.register_hook(lambda sent, got: events.append("after"))
    x.register_hook(lambda g: (events.append("tensor"), g * 10)[1])
    x.register_post_accumulate_grad_hook(lambda t: events.append("accumulated"))
    return lib.autograd.grad(y, x), events, x.grad


@program
def every_hook_under_inputs(lib: Any) -> Any:
    def of(wanted: Any) -> Any:
        events: list[Any] = []
        x = leaf(lib, [1.0])
        y = x * 2
        z = y * 3
        for name, t in (("x", x), ("y", y), ("z", z)):
            t.register_hook(lambda g, name=name: events.append(name))
            if t is not x:
                t.grad_fn.register_prehook(lambda got, name=name: events.append(f"before {name}"))
                t.grad_fn.register_hook(lambda sent, got, name=name: events.append(f"after {name}"))
                t.retain_grad()
        found = lib.autograd.grad(z, wanted(x, y, z))
        return found, events, y.grad, z.grad, x.grad

    return of(lambda x, y, z: y), of(lambda x, y, z: [y, x]), of(lambda x, y, z: [z]), of(lambda x, y, z: [z, y, x])


def _with_all_hooks(lib: Any) -> tuple[Any, Any, list[str]]:
    """Leaves x and y, then a = f(x), b = f(a), s = sum(b), and what their hooks and their nodes write down."""
    log: list[str] = []

    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    def backward(ctx: Any, g: Any) -> Any:
        log.append("backward")
        return g * 2

    f = function(lib, forward, backward).apply
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [1.0, 2.0])
    a = f(x)
    b = f(a)
    tensors = {"x": x, "y": y, "a": a, "b": b, "s": b.sum()}
    nodes = {name: t.grad_fn or t.view_as(t).grad_fn.next_functions[0][0] for name, t in tensors.items()}
    for name, t in tensors.items():
        node = nodes[name]
        t.register_hook(lambda g, name=name: log.append(f"{name} tensor"))
        node.register_prehook(lambda gs, name=name: log.append(f"{name} before"))
        node.register_hook(lambda gi, go, name=name: log.append(f"{name} after"))
    return tensors, nodes, log  # torch's accumulators, and their hooks with them, die where nothing refers to them


def _towards(call: Callable[..., Any], inputs: str, roots: str = "s") -> Program:
    """A program: which hooks fire, and which gradients arrive, where a pass with these roots is for these inputs."""

    def runs(lib: Any) -> Any:
        tensors, _nodes, log = _with_all_hooks(lib)
        outputs = [tensors[name] for name in roots]
        found = call(lib, outputs, [lib.ones_like(t) for t in outputs], [tensors[name] for name in inputs])
        kept = {name: (t.retains_grad, t.grad if t.is_leaf or t.retains_grad else None) for name, t in tensors.items()}
        return found, log, kept

    runs.__name__ = f"{call.__name__.strip('_')} {roots} {inputs}"
    return runs


def _backward(lib: Any, outputs: Any, grads: Any, inputs: Any) -> None:
    lib.autograd.backward(outputs, grads, inputs=inputs)


def _backward_to_edges(lib: Any, outputs: Any, grads: Any, inputs: Any) -> None:
    lib.autograd.backward(outputs, grads, inputs=[lib.autograd.graph.get_gradient_edge(t) for t in inputs])


def _grad(lib: Any, outputs: Any, grads: Any, inputs: Any) -> Any:
    return lib.autograd.grad(outputs, inputs, grads, allow_unused=True)


for _case in cases("s a | s b | s s | s ax | s x | s y | sb y | sy y | x x | x y | ax xy | sx a"):
    _roots, _inputs = _case.split()
    PROGRAMS += [_towards(call, _inputs, _roots) for call in (_backward, _backward_to_edges, _grad)]


@program
def an_inner_input_of_backward_has_its_node_run_and_freed(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = x.exp()
    y.sum().backward(inputs=[y])
    return y.grad, x.grad, y.retains_grad, refused(lambda: y.sum().backward())


@program
def the_capture_sees_tensor_hooks_and_no_prehook(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda got: (got[0] * 100,))
    z = y * 3
    return lib.autograd.grad(z, y, retain_graph=True), lib.autograd.grad(z, x), y.grad


@program
def retaining_and_writing_in_place(lib: Any) -> Any:
    found = []
    for before, after in ((True, False), (False, True), (True, True)):
        x = leaf(lib, [1.0])
        y = x * 2
        if before:
            y.retain_grad()
        y.mul_(3)
        if after:
            y.retain_grad()
        (y * 5).backward()
        found.append((y.grad, y.retains_grad, x.grad))
    return found


@program
def hooks_and_retaining_around_a_write(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x * 1
    y.register_hook(lambda g: (events.append(("old", g)), g * 2)[1])
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: (events.append(("new", g)), g * 10)[1])
    (y * 5).sum().backward()
    return events, y.grad, x.grad


@program
def retaining_an_output_that_does_not_get_a_gradient(lib: Any) -> Any:
    P = function(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, a, b: a * 2 + b * 3)
    a, b = P.apply(leaf(lib, [1.0]))
    a.retain_grad()
    b.retain_grad()
    a.backward()
    return a.grad, b.grad


@program
def a_retained_gradient_is_not_written_to(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    y.retain_grad()
    z = y**2
    z.backward(retain_graph=True)
    first = y.grad
    z.backward()
    return first, y.grad, first is y.grad


@program
def a_hook_in_a_cycle_with_its_tensor(lib: Any) -> Any:
    seen = []
    x = leaf(lib, [1.0])
    y = x * 1
    y.register_hook(lambda g: seen.append((y.grad_fn, y.output_nr)))
    x.register_hook(lambda g: seen.append(x.is_leaf))
    y.backward()
    return seen


@program
def hooks_stay_when_gradients_are_cleared(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    x.register_hook(lambda g: events.append(g))
    for _ in range(2):
        (x * 2).backward()
        x.grad = None
    x.requires_grad_(False)
    x.requires_grad_()
    (x * 3).backward()
    return events


@program
def handles_are_numbered_and_remove(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    made = [x.register_hook(len), x.register_hook(len), y.grad_fn.register_hook(len), y.grad_fn.register_prehook(len)]
    numbers = [h.id for h in made]
    with made[0] as entered:
        same = entered is made[0]
    for h in made:
        h.remove()
        h.remove()
    y.backward()
    return numbers == sorted(set(numbers)), same, x.grad


@program
def the_dicts_of_hooks(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    before = x._backward_hooks
    handle = x.register_hook(lambda g: None)
    during = len(x._backward_hooks)
    handle.remove()
    return before, during, len(x._backward_hooks)


@program
def a_hook_that_only_looks_in_a_function_of_two(lib: Any) -> Any:
    seen: list[Any] = []
    P = function(lib, lambda ctx, x, y: (x * 2, y * 3), lambda ctx, a, b: (a * 2, b * 3))
    x, y = leaf(lib, [1.0]), leaf(lib, [1.0])
    a, b = P.apply(x, y)
    a.grad_fn.register_prehook(lambda got: seen.append(got))
    a.grad_fn.register_hook(lambda sent, got: seen.append((sent, got)))
    (a * 5 + b * 7).backward()
    return seen, x.grad, y.grad


@program
def hooks_of_a_function_whose_outputs_are_not_all_tensors(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, k: int) -> Any:
        return "s", x * 2, None, lib.tensor(k), x * 3

    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[1] * 2 + grads[4] * 3, None

    x, seen = leaf(lib, [1.0, 2.0]), []
    _, a, _, _, b = function(lib, forward, backward).apply(x, 5)
    a.grad_fn.register_prehook(lambda gs: seen.append(gs) or (None, None, None, None, gs[4] * 10))
    a.grad_fn.register_hook(lambda gi, go: seen.append((gi, go)))
    b.sum().backward()
    edge = lib.autograd.graph.GradientEdge(b.grad_fn, 4)
    return seen, x.grad, a.output_nr, b.output_nr, lib.autograd.grad(b.sum(), edge)


@program
def a_hook_that_changes_one_of_two(lib: Any) -> Any:
    P = function(lib, lambda ctx, x, y: (x * 2, y * 3), lambda ctx, a, b: (a * 2, b * 3))
    x, y = leaf(lib, [1.0]), leaf(lib, [1.0])
    a, b = P.apply(x, y)
    a.grad_fn.register_prehook(lambda got: (got[0], got[1] * 10))
    a.grad_fn.register_hook(lambda sent, got: (sent[0] + 0.5, None))
    (a + b).backward()
    return x.grad, y.grad


@program
def hooks_that_build_graphs(lib: Any) -> Any:
    w = leaf(lib, [3.0])
    x = leaf(lib, [2.0])
    y = x**3
    y.register_hook(lambda g: g * w)
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    return first, lib.autograd.grad(first, [w, x])


@program
def several_gradients_over_several_passes(lib: Any) -> Any:
    seen: list[Any] = []
    a, b, c = (leaf(lib, [1.0]) for _ in range(3))
    d = a * 1
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c, d), lambda grads: seen.append(list(grads)))
    (a * 2 + d * 3).sum().backward(retain_graph=True)
    (b + c + a * 5).sum().backward()
    (a * b + d).sum().backward(inputs=[a, b], retain_graph=True)
    handle.remove()
    (a + b).sum().backward()
    return seen


@program
def what_a_post_accumulation_hook_holds_dies_with_the_leaf(lib: Any) -> Any:
    class Held:
        pass

    def made() -> Any:
        held = Held()
        x = leaf(lib, [1.0])
        x.register_post_accumulate_grad_hook(lambda t: held and None)
        (x * 2).backward()
        return weakref.ref(held)

    return made()() is None


@program
def retaining_what_a_write_to_its_memory_changes(lib: Any) -> Any:
    found = []
    for of_view in (True, False):
        x = leaf(lib, [1.0, 2.0])
        y = x * 1
        v = y[0]
        (v if of_view else y).retain_grad()
        (y if of_view else v).mul_(3)
        y.sum().backward()
        found.append((y.grad if not of_view else v.grad, x.grad))
    return found


def wrong(name: str, register: Callable[[Any], Any], answer: Callable[[Any, Any], Any]) -> None:
    """A program in which a hook returns what it should not; None, or another exception type, would be a difference."""

    @program
    def run(lib: Any) -> Any:
        y = leaf(lib, [1.0]).exp()
        register(y)(lambda g, *got: answer(lib, g))
        y.sum().backward()

    run.__name__ = name


def of_tensor(y: Any) -> Any:
    return y.register_hook


def before_node(y: Any) -> Any:
    return y.grad_fn.register_prehook


def after_node(y: Any) -> Any:
    return y.grad_fn.register_hook


wrong("tensor hook returns a number", of_tensor, lambda lib, g: 3.0)
wrong("tensor hook changes the size", of_tensor, lambda lib, g: constant(lib, [1.0, 2.0]))
wrong("tensor hook changes the dtype", of_tensor, lambda lib, g: g.float())
for _when, _register in (("prehook", before_node), ("posthook", after_node)):
    wrong(f"{_when} returns a tensor", _register, lambda lib, g: g[0])
    wrong(f"{_when} returns a list", _register, lambda lib, g: [g[0]])
    wrong(f"{_when} returns too many", _register, lambda lib, g: (g[0], g[0]))
    wrong(f"{_when} returns a number in a tuple", _register, lambda lib, g: (3.0,))
    wrong(f"{_when} changes the size", _register, lambda lib, g: (constant(lib, [1.0, 2.0]),))
    wrong(f"{_when} changes the dtype", _register, lambda lib, g: (g[0].float(),))

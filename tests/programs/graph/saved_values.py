"""What operations save for backward: under which version, for how long, and what hooks may do to it."""

from __future__ import annotations

from typing import Any

from tests.oracle import cases
from tests.side_by_side import Program, constant, function, leaf, plain, programs, refused

PROGRAMS, program = programs()


# Objects --------------------------------------------------------------------------------------------------------------


def saver(lib: Any, what: str = "input") -> Any:
    """A Function that saves its input, its output, an intermediate, or all of these."""

    class Saver(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            square = t * t
            out = square * t
            kept = {"input": (t,), "output": (out,), "middle": (square,), "all": (t, None, square, out, t)}[what]
            ctx.save_for_backward(*kept)
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert len(ctx.saved_tensors)
            return 3 * g

    return Saver.apply


@program
def an_input_is_the_same_object(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = x * 1
    return [
        saver(lib)(x).grad_fn.saved_tensors[0] is x,
        saver(lib)(y).grad_fn.saved_tensors[0] is y,
        x.sin().grad_fn._saved_self is x,
        y.sin().grad_fn._saved_self is y,
        (x * y).grad_fn._saved_other is y,
        (x * y.detach()).grad_fn._saved_self is None,
        [t is None for t in saver(lib, "all")(y).grad_fn.saved_tensors],
    ]


@program
def an_output_has_its_place_again(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    z, e = saver(lib, "output")(x), x.exp()
    again, also = z.grad_fn.saved_tensors[0], e.grad_fn._saved_result
    return [
        again is z,
        again.grad_fn is z.grad_fn,
        again.requires_grad,
        also is e,
        also.grad_fn is e.grad_fn,
        again._version,
        also.tolist() == e.tolist(),
    ]


@program
def an_intermediate_is_a_constant(lib: Any) -> Any:
    (saved,) = saver(lib, "middle")(leaf(lib, [1.0, 2.0])).grad_fn.saved_tensors
    return saved


@program
def an_input_that_is_returned_as_it_is(lib: Any) -> Any:
    class Same(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            ctx.save_for_backward(t)
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    x = leaf(lib, [1.0, 2.0])
    y = Same.apply(x)
    y.sum().backward()
    return y is x, y._is_view(), y._base is x, x.grad


@program
def an_input_that_is_written_to_and_saved(lib: Any) -> Any:
    class Doubled(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            t.mul_(2)
            ctx.mark_dirty(t)
            ctx.save_for_backward(t)
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    x = leaf(lib, [1.0, 2.0])
    y = x * 3
    z = Doubled.apply(y)
    z.sum().backward()
    return z is y, y._version, x.grad


def freed(what: str) -> Program:
    """A program that looks at what was saved when backward has run."""

    def looks(lib: Any) -> Any:
        x = leaf(lib, [1.0, 2.0])
        z = saver(lib, what)(x) if what != "operation" else x.sin()
        z.sum().backward()
        return z.grad_fn._saved_self if what == "operation" else z.grad_fn.saved_tensors

    looks.__name__ = f"what_was_saved_is_gone_{what}"
    return looks


PROGRAMS += [freed(what) for what in ("input", "output", "middle", "operation")]


@program
def nothing_is_freed_when_the_graph_is_retained(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    z = saver(lib)(x).sin()
    z.sum().backward(retain_graph=True)
    return z.grad_fn._saved_self, z.grad_fn.next_functions[0][0].saved_tensors


@program
def what_nobody_saved_is_not_missed(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    z = (x + 1).sum()
    z.backward()
    z.backward()
    return x.grad


@program
def a_saved_input_detached_in_place(lib: Any) -> Any:
    y = leaf(lib, [1.0, 2.0]) * 1
    z = y.sin().sum()
    y.detach_()
    z.backward()


@program
def a_saved_input_detached_in_place_and_wanted_again(lib: Any) -> Any:
    y = leaf(lib, [1.0, 2.0]) * 1
    z = (y * y).sum()
    y.detach_().requires_grad_()
    z.backward()


@program
def a_saved_operand_that_had_no_place_detached_in_place(lib: Any) -> Any:
    x, y = leaf(lib, [1.0, 2.0]), constant(lib, [3.0, 4.0])
    z = (x * y).sum()
    y.detach_()
    z.backward()
    return x.grad


@program
def an_input_that_was_not_saved_detached_in_place(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = x * 1
    z = (y * 3).sum()
    y.detach_()
    z.backward()
    return x.grad, y.requires_grad, y.is_leaf


@program
def a_result_detached_in_place(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = x.exp()
    z = (y * 3).sum()
    y.detach_()
    z.backward()
    return x.grad


@program
def a_saved_leaf_that_wants_no_gradient_any_more(lib: Any) -> Any:
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    z = (x * y).sum()
    x.detach_()
    y.requires_grad_(False)
    z.backward()
    return x.grad, y.grad


@program
def a_saved_view_of_what_is_written(lib: Any) -> Any:
    y = leaf(lib, [[1.0, 2.0], [3.0, 4.0]]) * 1
    z = y[0].sin().sum()
    y[:, 1] = 0.0
    z.backward()


# Hooks ----------------------------------------------------------------------------------------------------------------


def counting(lib: Any, log: list[Any], name: str = "") -> Any:
    """Hooks that note what they are called with."""

    def pack(t: Any) -> Any:
        log.append((name + "pack", plain(t.detach()), t.requires_grad))
        return name, t.detach()

    def unpack(packed: Any) -> Any:
        log.append((name + "unpack", packed[0]))
        return packed[1]

    return lib.autograd.graph.saved_tensors_hooks(pack, unpack)


def under_hooks(expression: str) -> Program:
    """A program that computes the expression under hooks, and its gradient outside of them."""

    def runs(lib: Any) -> Any:
        x, log = leaf(lib, [[1.0, 2.0], [0.5, 0.25]]), []
        known = {"x": x, "lib": lib, "saver": saver}
        with counting(lib, log):
            z = eval(expression, known)
        before = len(log)
        z.sum().backward()
        return sorted(map(str, log[:before])), len(log) - before, x.grad

    runs.__name__ = expression
    return runs


PROGRAMS += [
    under_hooks(code)
    for code in cases("""
x * x | x * 2 | x.sin() | x.exp() | x @ x | x.exp().sin() | (x * 1).sigmoid() | x.t() @ x | x[0] * x[1] | x + 1
saver(lib)(x) | saver(lib, 'output')(x) | saver(lib, 'middle')(x) | saver(lib, 'all')(x) | x.relu()
x.detach() * x | x.tanh() * 3 | (x * 1).mul_(x) | (x * 2).sin_() | (x * 2).add_(1) | x.softmax(1)
""")
]


@program
def the_innermost_of_nested_hooks_is_used(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    with counting(lib, log, "outer "):
        y = x.sin()
        with counting(lib, log, "inner "):
            y = y.sin()
        y = y.sin()
    y.sum().backward()
    return [entry[0] for entry in log], x.grad


@program
def what_is_unpacked_is_unpacked_each_time(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    with counting(lib, log):
        y = x.sin()
    seen = [y.grad_fn._saved_self, y.grad_fn._saved_self]
    y.sum().backward()
    return len(log), seen, [t is x for t in seen]


@program
def a_hook_may_give_other_values(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t + 1):
        y = x * x
    y.sum().backward()
    return x.grad


@program
def a_packed_value_is_not_checked_for_writes(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = x * 1
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        z = y.sin()
    y.zero_()
    z.sum().backward()
    return x.grad


@program
def a_gradient_through_a_packed_value(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = (x * 2).exp()
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    return g, x.grad


@program
def a_hook_that_writes_to_what_it_is_given(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        return x.clone().sin()


@program
def an_unpack_hook_that_gives_no_tensor(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.autograd.graph.saved_tensors_hooks(lambda t: 3, lambda t: t):
        y = x.sin()
    y.sum().backward()


@program
def a_pack_hook_that_raises(lib: Any) -> Any:
    def pack(t: Any) -> Any:
        raise KeyError("no room")

    x = leaf(lib, [1.0, 2.0])
    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        x.sin()


@program
def hooks_that_are_disabled(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
        y = x.sin()
        with counting(lib, log):
            y = y.sin()


@program
def a_graph_from_before_the_hooks(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    y = x.sin()
    with counting(lib, log):
        y.sum().backward()
    return log, x.grad


@program
def values_on_the_cpu(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    found = []
    for options in ({}, {"pin_memory": False}, {"device_type": "cuda"}, {"pin_memory": False, "device_type": "cpu"}):
        with lib.autograd.graph.save_on_cpu(**options):
            y = (x * x).exp()
        found += lib.autograd.grad(y.sum(), x)
    return found


def _registered(name: str, log: list[Any]) -> Any:
    """A pair of hooks that note that they are called, and give ten times the tensor."""
    return (
        lambda t: (log.append((name, "pack", tuple(t.shape))), t.detach() * 10)[1],
        lambda t: (log.append((name, "unpack")), t)[1],
    )


@program
def hooks_registered_on_one_of_what_an_operation_saved(lib: Any) -> Any:
    x, y, log = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 5.0]), []
    z = x * y
    z.grad_fn._raw_saved_other.register_hooks(*_registered("other", log))
    before = list(log)
    z.sum().backward(retain_graph=True)
    seen = z.grad_fn._saved_other, z.grad_fn._saved_self
    return before, log, x.grad, y.grad, seen, [t.is_leaf for t in seen]


@program
def hooks_registered_on_a_result(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(*_registered("result", log))
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return log, g, lib.autograd.grad(g.sum(), x)


@program
def hooks_registered_on_what_a_function_saved(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        z = x * y
        ctx.save_for_backward(x, None, y, z)
        return z

    def backward(ctx: Any, g: Any) -> Any:
        x, _, y, z = ctx.saved_tensors
        return g * y + 0 * z, g * x

    x, y, log = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 5.0]), []
    z = function(lib, forward, backward).apply(x, y)
    raw = z.grad_fn._raw_saved_tensors
    raw[0].register_hooks(*_registered("x", log))
    raw[3].register_hooks(*_registered("z", log))
    again = refused(lambda: raw[0].register_hooks(*_registered("again", log)))
    none = refused(lambda: raw[1].register_hooks(*_registered("none", log)))
    z.sum().backward()
    return len(raw), log, x.grad, y.grad, again, none, refused(lambda: z.grad_fn._raw_saved_tensors)


@program
def what_has_hooks_registered_is_not_checked_for_writes_and_the_rest_is(lib: Any) -> Any:
    def run(written: int) -> str:
        x, y = leaf(lib, [1.0, 2.0]) * 1, leaf(lib, [3.0, 5.0]) * 1
        z = x * y
        z.grad_fn._raw_saved_self.register_hooks(lambda t: t.clone(), lambda t: t)
        (x, y)[written].zero_()
        return refused(lambda: z.sum().backward())

    return run(0), run(1)


@program
def the_same_of_a_function(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x

    def run(written: int) -> str:
        x, y = leaf(lib, [1.0, 2.0]) * 1, leaf(lib, [3.0, 5.0]) * 1
        z = function(lib, forward, backward).apply(x, y)
        z.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t.clone(), lambda t: t)
        (x, y)[written].zero_()
        return refused(lambda: z.sum().backward())

    return run(0), run(1)


@program
def hooks_that_cannot_be_registered(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    pair = (lambda t: t, lambda t: t)
    freed = x.sin()
    saved = freed.grad_fn._raw_saved_self
    freed.sum().backward()
    with lib.autograd.graph.saved_tensors_hooks(*pair):
        packed = x.sin()
    once, sine, other = x * x.detach(), (x * 1).sin(), (x * 1).sin()  # torch's are gone with their nodes
    return (
        refused(lambda: saved.register_hooks(*pair)),
        refused(lambda: packed.grad_fn._raw_saved_self.register_hooks(*pair)),
        refused(lambda: once.grad_fn._raw_saved_self.register_hooks(*pair)),
        refused(lambda: sine.grad_fn._raw_saved_self.register_hooks(1, 2)),
        refused(lambda: other.grad_fn._raw_saved_self.register_hooks(lambda t: t.add_(1), pair[1])),
        refused(lambda: sine.grad_fn._raw_saved_nothing),
    )


@program
def what_was_made_of_a_saved_tensor(lib: Any) -> Any:
    y = leaf(lib, [1.0, 2.0]).sin()
    saved = y.grad_fn._raw_saved_self
    before = saved.data, saved.unpack_hook
    hook = lib.zeros_like
    saved.register_hooks(lambda t: 3, hook)
    return before, saved.data, saved.unpack_hook is hook


@program
def what_an_unpack_hook_records(lib: Any) -> Any:
    """A hook that unpacks runs in the mode of the pass, one that packs records nothing."""
    found: list[Any] = []

    def noted(what: str, t: Any) -> Any:
        found.append((what, lib.is_grad_enabled()))
        return t * 1

    for of_second_order in (False, True):
        x = lib.tensor([2.0], requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda t: noted("pack", t), lambda t: noted("unpack", t)):
            y = (x * x * x).sum()
            (g,) = lib.autograd.grad(y, x, create_graph=of_second_order)
        found.append((g, g.requires_grad))
    found.append(lib.autograd.grad(g, x))
    return found

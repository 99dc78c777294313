"""A Function's marks in all combinations, its `jvp` and `vmap`, and older names."""

from __future__ import annotations

import itertools
import warnings
import weakref
from typing import Any

from tests.side_by_side import constant, function, leaf, named, programs, refused

PROGRAMS, program = programs()


def separate(lib: Any, forward: Any, setup_context: Any, backward: Any, **more: Any) -> Any:
    """A Function whose forward has no ctx."""
    return function(lib, forward, backward, setup_context=setup_context, **more)


# marks ----------------------------------------------------------------------------------------------------------------


@program
def an_output_that_is_returned_twice(lib: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(y)
        return y, y

    def backward(ctx: Any, a: Any, b: Any) -> Any:
        seen.append((a, b, ctx.saved_tensors[0], ctx.saved_tensors[0].output_nr))
        return a * 10 + b

    x = leaf(lib, [1.0])
    a, b = function(lib, forward, backward).apply(x)
    a.backward()
    return a is b, a.output_nr, seen, x.grad


@program
def an_input_that_is_returned_twice(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    a, b = function(lib, lambda ctx, x: (x, x), lambda ctx, a, b: a * 10 + b).apply(x)
    (a * 2 + b * 3).backward()
    return a is b, a is x, a.output_nr, b.output_nr, x.grad


@program
def an_input_that_is_written_to_and_returned_twice(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x

    x = leaf(lib, [1.0])
    y = x * 1
    a, b = function(lib, forward, lambda ctx, a, b: a * 10 + b).apply(y)
    (a * 3).backward()
    return a is y, b is y, x.grad


def marked(lib: Any, dirty: bool, passive: bool, returned: bool, materialize: bool) -> Any:
    """What a Function with these marks makes of its input, a twin of it and an unused output, forward and backward."""
    seen: list[Any] = []

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        if dirty:
            ctx.mark_dirty(x)
            x.mul_(2)
        if passive:
            ctx.mark_non_differentiable(x if dirty or returned else y)
        ctx.save_for_backward(x, y)
        return (x if dirty or returned else x * 2), y * 1, y * 3

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.append(grads)
        seen.append(ctx.saved_tensors)
        a, b = grads[:2]
        return None if a is None else a * 2, b

    x, y = leaf(lib, [1.0]), leaf(lib, [5.0])
    t = x * 1
    out, same, _ = function(lib, forward, backward).apply(t, y)
    same.sum().backward(retain_graph=True)
    if out.requires_grad:
        (out * 7).sum().backward()
    return out, out is t, out.is_leaf, out._version, same.requires_grad, seen, x.grad, y.grad


_MARKS = ("dirty", "passive", "returned", "materialized")
PROGRAMS += [
    named("_".join(["marked", *itertools.compress(_MARKS, on)]), lambda lib, on=on: marked(lib, *on))
    for on in itertools.product([False, True], repeat=4)
]


@program
def what_is_marked_but_not_fit(lib: Any) -> Any:
    def of(mark: str, value: Any) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            getattr(ctx, mark)(value)
            return x * 2

        return refused(lambda: function(lib, forward, lambda ctx, g: g).apply(leaf(lib, [1.0])))

    return of("save_for_backward", 3), of("save_for_backward", [3]), of("save_for_backward", None)


@program
def a_view_of_a_leaf_that_is_written_to(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    F = function(lib, forward, lambda ctx, g: g * 2)

    def call(base: Any, viewed: Any, called: Any) -> Any:
        x = leaf(lib, [1.0, 2.0])
        whole = base(x)
        with viewed():
            view = whole[:1]
        found: list[Any] = []

        def run() -> None:
            with called():
                y = F.apply(view)
            found.extend([y is view, y.requires_grad, x.detach() * 1])

        return refused(run) or found

    modes = (lib.enable_grad, lib.no_grad)
    return [
        call(base, viewed, called)
        for base in (lambda x: x, lambda x: x * 1, lambda x: x.detach())
        for viewed, called in itertools.product(modes, modes)
    ]


@program
def a_leaf_that_is_written_to(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    F = function(lib, forward, lambda ctx, g: g * 2)
    found = [refused(lambda: F.apply(leaf(lib, [1.0])))]
    x = constant(lib, [1.0])
    y = F.apply(x)
    with lib.no_grad():
        w = leaf(lib, [1.0])
        found.append(F.apply(w) is w)
    return found, y is x, y.requires_grad


@program
def what_was_written_to_must_be_returned(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2) * 1

    return function(lib, forward, lambda ctx, g: g).apply(leaf(lib, [1.0]) * 1)


@program
def a_view_that_is_written_to_is_the_only_output(lib: Any) -> Any:
    def of(outputs: Any) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return outputs(x.mul_(2))

        x = leaf(lib, [[1.0, 2.0]])
        F = function(lib, forward, lambda ctx, *grads: grads[0] * 2)
        return refused(lambda: F.apply((x * 1)[0]).sum().backward()), x.grad

    return of(lambda x: x), of(lambda x: (x, x)), of(lambda x: (x, x * 1))


@program
def outputs_of_integers(lib: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
        seen.append((a, b is None or (tuple(b.shape), bool((b == 0).all())), c))
        return a * 2

    x = leaf(lib, [1.0])
    a, b, c = function(lib, lambda ctx, x: (x * 2, (x * 2).long(), None), backward).apply(x)
    a.backward()
    return a, b, c, seen, x.grad


@program
def outputs_and_inputs_that_are_no_tensors(lib: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any, n: int, s: str, nothing: None) -> Any:
        seen.append(ctx.needs_input_grad)
        ctx.n = n
        return x * n, s, nothing, n

    def backward(ctx: Any, g: Any, *rest: Any) -> Any:
        seen.append(rest)
        return g * ctx.n, None, None, None

    x = leaf(lib, [1.0])
    out = function(lib, forward, backward).apply(x, 3, "a", None)
    out[0].backward()
    return out[1:], x.grad, seen, function(lib, lambda ctx, a, b: a + b, lambda ctx, g: (g, g)).apply(1, 2)


@program
def the_same_input_twice(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    function(lib, lambda ctx, x, y: x * y, lambda ctx, g: (g * 2, g * 3)).apply(x, x).backward()
    return x.grad


# what is saved --------------------------------------------------------------------------------------------------------


@program
def saving_again_replaces(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_backward(x * 2, None)
        return x * 3

    x = leaf(lib, [2.0])
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.backward()
    return x.grad


@program
def an_input_returned_and_saved(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x

    x = leaf(lib, [3.0])
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.backward()
    return x.grad, y is x


@program
def an_input_returned_and_saved_apart(lib: Any) -> Any:
    def of(forward: Any, setup: Any) -> Any:
        return refused(lambda: separate(lib, forward, setup, lambda ctx, g: g).apply(leaf(lib, [3.0])))

    return (
        of(lambda x: x, lambda ctx, inputs, output: ctx.save_for_backward(*inputs)),
        of(lambda x: x, lambda ctx, inputs, output: ctx.save_for_backward(output)),
        of(lambda x: x, lambda ctx, inputs, output: None),
        of(lambda x: x.view_as(x), lambda ctx, inputs, output: ctx.save_for_backward(*inputs, output)),
    )


@program
def saved_values_are_freed(lib: Any) -> Any:
    kept: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**2

    def backward(ctx: Any, g: Any) -> Any:
        kept.append(ctx)
        return g * 2 * ctx.saved_tensors[0]

    x = leaf(lib, [3.0])
    y = function(lib, forward, backward).apply(x)
    y.backward()
    return x.grad, refused(lambda: kept[0].saved_tensors), refused(y.backward)


@program
def saved_variables_are_saved_tensors(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**2

    x = leaf(lib, [3.0])
    y = function(lib, forward, lambda ctx, g: g * 2 * ctx.saved_variables[0]).apply(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y.backward()
    return x.grad, [(w.category.__name__, "saved_tensors" in str(w.message)) for w in caught]


@program
def nothing_of_ours_among_ones_own_attributes(lib: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.factor = 2
        seen.append(dict(ctx.__dict__))
        return x * 2, x * 3

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.append(ctx.factor)
        return g * ctx.factor

    function(lib, forward, backward).apply(leaf(lib, [1.0]))[0].backward()
    return seen


@program
def saved_values_that_can_be_looked_at_once(lib: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**2

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        seen.append(refused(lambda: ctx.saved_tensors))
        return g * 2 * x

    F = function(lib, forward, backward, clear_saved_tensors_on_access=True)
    x = leaf(lib, [3.0])
    y = F.apply(x)
    y.backward(retain_graph=True)
    z = F.apply(x)
    looked_at = z.grad_fn.saved_tensors[0] is x
    return x.grad, seen, refused(y.backward), looked_at, refused(z.backward)


@program
def gradients_in_one_list(lib: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, grads: Any) -> Any:
        seen.append((type(grads).__name__, list(grads)))
        g = grads[0]
        grads.clear()
        return g * 2

    flag = {"boxed_grads_call": True}
    x = leaf(lib, [3.0])
    function(lib, lambda ctx, x: (x * 2, x * 3), backward, **flag).apply(x)[0].backward()
    y = function(lib, lambda ctx, x: x * 2, backward, **flag).apply(x)
    y.backward()
    return x.grad, seen, y.grad_fn.apply(constant(lib, [1.0]))


# setup_context --------------------------------------------------------------------------------------------------------


@program
def setup_context_sees_defaults(lib: Any) -> Any:
    seen: list[Any] = []

    def forward(x: Any, factor: float = 2.0, shift: float = 0.0) -> Any:
        return x * factor + shift

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append((inputs[1:], output, ctx.needs_input_grad))
        ctx.factor = inputs[1]

    F = separate(lib, forward, setup_context, lambda ctx, g: (g * ctx.factor, None, None))
    x = leaf(lib, [1.0])
    F.apply(x).backward()
    F.apply(x, 3.0).backward()
    return x.grad, seen


@program
def setup_context_marks(lib: Any) -> Any:
    def forward(x: Any, y: Any) -> Any:
        return x.mul_(2), y * 3

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    seen: list[Any] = []

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.append(grads)
        return grads[0] * 2, None

    x, y = leaf(lib, [1.0]), leaf(lib, [1.0])
    t = x * 1
    a, b = separate(lib, forward, setup_context, backward).apply(t, y)
    a.backward()
    return a is t, b.requires_grad, seen, x.grad, y.grad


# jvp ------------------------------------------------------------------------------------------------------------------


def tangent(lib: Any, out: Any) -> Any:
    """The tangent of a dual tensor."""
    return lib.autograd.forward_ad.unpack_dual(out).tangent


@program
def jvp_uses_what_was_saved_for_forward(lib: Any) -> Any:
    fwd = lib.autograd.forward_ad

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, y)
        ctx.n = 3
        return x * y

    def jvp(ctx: Any, dx: Any, dy: Any) -> Any:
        x, y = ctx.saved_tensors
        return (dx * y + x * dy) * ctx.n

    F = function(lib, forward, lambda ctx, g: (g * len(ctx.saved_tensors), None), jvp=jvp)
    x = leaf(lib, [2.0])
    F.apply(x, constant(lib, [1.0])).backward()
    with fwd.dual_level():
        a = fwd.make_dual(constant(lib, [2.0]), constant(lib, [1.0]))
        b = fwd.make_dual(constant(lib, [3.0]), constant(lib, [5.0]))
        return tangent(lib, F.apply(a, b)), x.grad


def of_jvp(lib: Any, jvp: Any, forward: Any, materialize: bool = True) -> Any:
    """The tangents of what a Function with this `jvp` makes of a dual tensor, a constant and a number."""
    fwd = lib.autograd.forward_ad

    def run(ctx: Any, x: Any, y: Any, n: int) -> Any:
        ctx.set_materialize_grads(materialize)
        return forward(x, y)

    F = function(lib, run, lambda ctx, *g: (None, None, None), jvp=jvp)
    with fwd.dual_level():
        x = fwd.make_dual(constant(lib, [[2.0, 3.0]]), constant(lib, [[1.0, 4.0]]))
        out = F.apply(x, constant(lib, [[4.0, 1.0]]), 3)
        return [tangent(lib, o) for o in (out if isinstance(out, tuple) else (out,))]


@program
def tangents_of_what_has_none(lib: Any) -> Any:
    seen: list[Any] = []

    def jvp(ctx: Any, *tangents: Any) -> Any:
        seen.append(tangents[1:])
        return tangents[0] * 2

    found = [of_jvp(lib, jvp, lambda x, y: x * y, materialize) for materialize in (True, False)]
    return found, seen


@program
def tangents_of_several_outputs(lib: Any) -> Any:
    return of_jvp(lib, lambda ctx, dx, dy, n: (dx * 2, dx * 3), lambda x, y: (x * y, x * 3), False)


@program
def tangents_of_views(lib: Any) -> Any:
    return of_jvp(lib, lambda ctx, dx, dy, n: dx.view(2), lambda x, y: x.view(2))


@program
def tangents_that_do_not_fit(lib: Any) -> Any:
    answers: list[Any] = [
        lambda ctx, dx, dy, n: (dx, dx),
        lambda ctx, dx, dy, n: dx.view(2),
        lambda ctx, dx, dy, n: 3.0,
    ]
    return [refused(lambda jvp=jvp: of_jvp(lib, jvp, lambda x, y: x * y)) for jvp in answers]


@program
def without_jvp_there_is_no_forward_mode(lib: Any) -> Any:
    fwd = lib.autograd.forward_ad
    F = function(lib, lambda ctx, x: x * 2, lambda ctx, g: g)
    with fwd.dual_level():
        x = fwd.make_dual(constant(lib, [2.0]), constant(lib, [1.0]))
        return refused(lambda: F.apply(x)), F.apply(constant(lib, [2.0]))


# vmap -----------------------------------------------------------------------------------------------------------------


def sine(lib: Any, **more: Any) -> Any:
    """sin, in operations on tensors."""
    backward = more.pop("backward", lambda ctx, g: g * ctx.saved_tensors[0].cos())
    keep = lambda ctx, inputs, output: ctx.save_for_backward(*inputs)  # noqa: E731 - as an argument
    return separate(lib, lambda x: x.sin(), keep, backward, **more)


@program
def a_vmap_of_ones_own(lib: Any) -> Any:
    seen: list[Any] = []

    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        seen.append((info.batch_size, info.randomness, in_dims))
        return x.sin() * 10, in_dims[0]

    F = sine(lib, vmap=vmap)
    x = constant(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return (
        lib.func.vmap(F.apply)(x),
        lib.func.vmap(F.apply, in_dims=1)(x),
        lib.func.vmap(F.apply, randomness="same")(x),
        [(size, randomness, dims) for size, randomness, dims in seen if size == 2],
    )


@program
def a_vmap_of_ones_own_is_not_asked_where_nothing_varies(lib: Any) -> Any:
    func, seen = lib.func, []

    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        seen.append(in_dims)
        return x.sin(), 0

    F = sine(lib, vmap=vmap)
    x, vectors = constant(lib, [1.0, 2.0, 3.0]), constant(lib, [[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]])
    return (
        func.vmap(lambda v: func.vjp(F.apply, x)[1](v)[0])(vectors),
        func.vmap(lambda v: func.grad(lambda x: (F.apply(x) * v).sum())(x))(vectors),
        func.vmap(lambda v: func.vmap(lambda x: F.apply(x) * v.sum())(x))(vectors),
        seen,
    )


@program
def a_generated_vmap(lib: Any) -> Any:
    F = sine(lib, generate_vmap_rule=True)
    x = leaf(lib, [1.0, 2.0])
    lib.func.vmap(F.apply)(x).sum().backward()
    each = lib.func.vmap(lib.func.grad(F.apply))(x.detach())
    return x.grad, each, lib.func.vmap(lib.func.vmap(F.apply))(x.detach().reshape(1, 2))


@program
def a_generated_vmap_of_once_differentiable(lib: Any) -> Any:
    once = lib.autograd.function.once_differentiable
    F = sine(lib, generate_vmap_rule=True, backward=once(lambda ctx, g: g * ctx.saved_tensors[0].cos()))
    x = leaf(lib, [1.0, 2.0])
    lib.func.vmap(F.apply)(x).sum().backward()
    return x.grad, lib.func.vmap(lib.func.grad(F.apply))(x.detach())


@program
def a_generated_vmap_with_marks(lib: Any) -> Any:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(inputs[0], output[1])

    def backward(ctx: Any, g: Any, none: Any) -> Any:
        x, twice = ctx.saved_tensors
        return g * x.cos() * (1 if none is None else 100) + 0 * twice

    F = separate(lib, lambda x: (x.sin(), x * 2), setup_context, backward, generate_vmap_rule=True)
    x = leaf(lib, [1.0, 2.0])
    a, b = lib.func.vmap(F.apply)(x)
    a.sum().backward()
    return a, b.detach(), x.grad


@program
def no_vmap_and_two_vmaps(lib: Any) -> Any:
    x = constant(lib, [1.0])
    plain = function(lib, lambda ctx, x: x * 2, lambda ctx, g: g, generate_vmap_rule=True)
    made = [sine(lib), sine(lib, generate_vmap_rule=True, vmap=lambda info, dims, x: (x, 0)), plain]
    return [refused(lambda F=F: lib.func.vmap(F.apply)(x)) for F in made]


# deprecated names -----------------------------------------------------------------------------------------------------


@program
def functions_under_names_of_old(lib: Any) -> Any:
    found = []
    for name in ("InplaceFunction", "NestedIOFunction"):
        base = getattr(lib.autograd.function, name)

        class F(base):  # type: ignore[misc,valid-type]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        if name == "InplaceFunction":
            x = leaf(lib, [1.0])
            F.apply(x * 1).backward()
            found.append(x.grad)
        found.append(issubclass(base, lib.autograd.Function))
    return found


@program
def flags_of_a_function(lib: Any) -> Any:
    F = lib.autograd.Function
    flags = F.generate_vmap_rule, F.clear_saved_tensors_on_access, F.boxed_grads_call
    return flags, F.__name__, lib.autograd.function.Function is F


@program
def a_variable_is_a_tensor(lib: Any) -> Any:
    V = lib.autograd.Variable
    t = constant(lib, [1.0])
    x = V(t, requires_grad=True)
    y = V(x)
    y.detach().mul_(2)
    return x, y, type(x) is lib.Tensor, isinstance(x, V), isinstance(t, V), isinstance(3, V), t, x.is_leaf


@program
def what_is_no_variable(lib: Any) -> Any:
    return refused(lambda: lib.autograd.Variable(3)), refused(lambda: lib.autograd.Variable(lib.tensor([1]), True))


@program
def a_variable_of_the_module_of_old(lib: Any) -> Any:
    return lib.autograd.variable.Variable is lib.autograd.Variable


# with no counterpart --------------------------------------------------------------------------------------------------


@program
def a_view_that_forward_wrote_to_and_saved_dies_with_its_names(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    F = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0])

    def made() -> Any:
        x = leaf(lib, [2.0, 3.0])
        view = x.clone().view_as(x)
        y = F.apply(view)
        (g,) = lib.autograd.grad(y.sum(), x, retain_graph=True)
        return g, y.grad_fn is not None, weakref.ref(view)

    g, recorded, view = made()
    return g, recorded, view() is None


@program
def what_is_marked_dirty_and_no_input(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        out = x.clone().view_as(x)
        ctx.mark_dirty(out)
        return out

    function(lib, forward, lambda ctx, g: g).apply(leaf(lib, [1.0]).clone())


@program
def a_view_that_comes_back_from_a_call_that_is_not_recorded(lib: Any) -> Any:
    """The result may not be written to with recording; the view that was passed in may, and so may its base."""

    def dirty(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x

    one = function(lib, lambda ctx, x: x, lambda ctx, g: g)
    two = function(lib, lambda ctx, x, y: (y, x), lambda ctx, g, h: (h, g))
    calls = {
        "one": one.apply,
        "two": lambda v: two.apply(v, lib.tensor([1, 2]))[1],
        "dirty": function(lib, dirty, lambda ctx, g: g).apply,
    }

    def gradient(call: Any, written: str) -> Any:
        base, w = lib.tensor([1.0, 2.0]), leaf(lib, [3.0, 5.0])
        view = base.view(1, 2)
        tensors = {"base": base, "view": view, "result": call(view)}
        tensors[written].mul_(w)
        return lib.autograd.grad(view.sum(), w)[0]

    found: dict[str, Any] = {}
    for (name, call), written in itertools.product(calls.items(), ("view", "base", "result")):

        def run(call: Any = call, written: str = written, key: str = f"{name} {written}") -> None:
            found[key] = gradient(call, written)

        if error := refused(run):
            found[f"{name} {written}"] = error
    return found

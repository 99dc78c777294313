"""`functional_call` and `stack_module_state`, and modules under transforms."""

from __future__ import annotations

import re
from typing import Any

from tests.programs.func.common import batch, each, points
from tests.side_by_side import constant, function, leaf, programs

PROGRAMS, program = programs()


# functional_call, stack_module_state ----------------------------------------------------------------------------------


def net(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Tanh(), lib.nn.Linear(3, 1)).double()
    with lib.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(lib.arange(float(p.numel()), dtype=lib.float64).reshape(p.shape) * 0.1 - 0.2 * i)
    return model


def data(lib: Any) -> Any:
    return lib.arange(8.0, dtype=lib.float64).reshape(4, 2) / 5 - 0.6


@program
def functional_call_with_its_own(lib: Any) -> Any:
    model = net(lib)
    return lib.func.functional_call(model, dict(model.named_parameters()), data(lib)), model(data(lib))


@program
def functional_call_with_some(lib: Any) -> Any:
    model = net(lib)
    out = lib.func.functional_call(model, {"0.weight": lib.ones(3, 2, dtype=lib.float64)}, (data(lib),))
    return out, model(data(lib))


@program
def functional_call_unknown_name(lib: Any) -> Any:
    return lib.func.functional_call(net(lib), {"3.weight": lib.ones(3, 2)}, (data(lib),))


@program
def functional_call_no_tensor(lib: Any) -> Any:
    return lib.func.functional_call(net(lib), {"0.weight": 3.0}, (data(lib),))


@program
def functional_call_strict(lib: Any) -> Any:
    return lib.func.functional_call(
        net(lib), {"0.weight": lib.ones(3, 2, dtype=lib.float64)}, (data(lib),), strict=True
    )


@program
def functional_call_two_dicts(lib: Any) -> Any:
    model = net(lib)
    params = dict(model.named_parameters())
    first = {"0.weight": params.pop("0.weight")}
    return lib.func.functional_call(model, (first, params), (data(lib),))


@program
def functional_call_two_dicts_with_the_same(lib: Any) -> Any:
    model = net(lib)
    params = dict(model.named_parameters())
    return lib.func.functional_call(model, (params, params), (data(lib),))


@program
def functional_call_of_a_failing_module(lib: Any) -> Any:
    model = net(lib)
    before = model[0].weight
    try:
        lib.func.functional_call(model, {"0.weight": lib.ones(7, 7, dtype=lib.float64)}, (data(lib),))
    except RuntimeError:
        return model[0].weight is before, isinstance(model[0].weight, lib.nn.Parameter), model(data(lib))
    return "no error"


@program
def functional_call_tied(lib: Any) -> Any:
    class Tied(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = lib.nn.Parameter(lib.tensor(2.0))
            self.b = self.a

        def forward(self, x: Any) -> Any:
            return x * self.a + self.b

    x, new = lib.tensor([1.0, 2.0]), {"a": lib.tensor(5.0)}
    both_new = {"a": lib.tensor(5.0), "b": lib.tensor(7.0)}
    return (
        lib.func.functional_call(Tied(), new, x),
        lib.func.functional_call(Tied(), new, x, tie_weights=False),
        lib.func.functional_call(Tied(), {"b": lib.tensor(5.0)}, x),
        lib.func.functional_call(Tied(), both_new, x, tie_weights=False),
    )


@program
def functional_call_tied_given_differently(lib: Any) -> Any:
    class Tied(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = lib.nn.Parameter(lib.tensor(2.0))
            self.b = self.a

        def forward(self, x: Any) -> Any:
            return x * self.a + self.b

    return lib.func.functional_call(Tied(), {"a": lib.tensor(5.0), "b": lib.tensor(7.0)}, lib.tensor(1.0))


@program
def functional_call_writes_a_buffer(lib: Any) -> Any:
    class Counting(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", lib.tensor(0.0))

        def forward(self, x: Any) -> Any:
            self.n = self.n + 1
            return x * self.n

    model, buffers = Counting(), {"n": lib.tensor(4.0)}
    out = lib.func.functional_call(model, buffers, lib.tensor(2.0))
    return out, model.n, buffers


@program
def functional_call_gradient(lib: Any) -> Any:
    model = net(lib)
    params = {k: v.detach() for k, v in model.named_parameters()}
    return lib.func.grad(lambda p: lib.func.functional_call(model, p, (data(lib),)).pow(2).sum())(params)


@program
def per_sample_gradients(lib: Any) -> Any:
    model = net(lib)
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return ((lib.func.functional_call(model, p, (x[None],)) - y) ** 2).mean()

    y = constant(lib, [0.5, 1.0, -1.0, 2.0])
    return lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(params, data(lib), y)


@program
def ensemble(lib: Any) -> Any:
    models = [net(lib) for _ in range(3)]
    with lib.no_grad():
        for k, model in enumerate(models):
            model[0].weight.mul_(k + 1.0)
    params, buffers = lib.func.stack_module_state(models)

    def call(p: Any, b: Any, x: Any) -> Any:
        return lib.func.functional_call(models[0], (p, b), (x,))

    out = lib.func.vmap(call, in_dims=(0, 0, None))(params, buffers, data(lib))
    out.sum().backward()
    return out, params, {k: p.grad for k, p in params.items()}, models[0][0].weight.grad


@program
def stack_no_models(lib: Any) -> Any:
    return lib.func.stack_module_state([])


@program
def stack_models_of_different_classes(lib: Any) -> Any:
    return lib.func.stack_module_state([lib.nn.Linear(2, 2), lib.nn.Tanh()])


@program
def stack_models_in_different_modes(lib: Any) -> Any:
    return lib.func.stack_module_state([lib.nn.Linear(2, 2), lib.nn.Linear(2, 2).eval()])


@program
def stack_models_some_frozen(lib: Any) -> Any:
    models = [net(lib), net(lib)]
    models[1][0].weight.requires_grad_(False)
    return lib.func.stack_module_state(models)


@program
def stack_buffers(lib: Any) -> Any:
    params, buffers = lib.func.stack_module_state([lib.nn.BatchNorm1d(2) for _ in range(2)])
    return buffers, sorted(params)


# Modules --------------------------------------------------------------------------------------------------------------


@program
def names_that_a_module_has_not(lib: Any) -> Any:
    module, x = lib.nn.Linear(2, 1), lib.ones(2)
    given = ({"more": x}, {"a.b": x}, {"weight": x.reshape(1, 2), "more": x})
    found = each(lib, *(lambda d=d: list(lib.func.functional_call(module, d, x).shape) for d in given))
    strict = each(lib, *(lambda d=d: lib.func.functional_call(module, d, x, strict=True) for d in given))
    return found, strict


@program
def a_call_that_raises_leaves_the_module(lib: Any) -> Any:
    module = lib.nn.Linear(2, 1)
    weight = module.weight
    try:
        lib.func.functional_call(module, {"weight": lib.ones(5, 5)}, lib.ones(2))
    except RuntimeError:
        return module.weight is weight


@program
def buffers_that_a_call_changes(lib: Any) -> Any:
    norm = lib.nn.BatchNorm1d(2)
    buffers = {name: b.clone() for name, b in norm.named_buffers()}
    x = lib.arange(4.0).reshape(2, 2)
    lib.func.functional_call(norm, (dict(norm.named_parameters()), buffers), x)
    return buffers, norm.running_mean, norm.num_batches_tracked


@program
def many_modules_at_once(lib: Any) -> Any:
    modules = [lib.nn.Linear(2, 1) for _ in range(3)]
    params, buffers = lib.func.stack_module_state(modules)
    x = lib.ones(2)
    out = lib.vmap(lambda p, b: lib.func.functional_call(modules[0], (p, b), x))(params, buffers)
    same = lib.allclose(out, lib.stack([m(x) for m in modules]))
    return same, {name: (list(p.shape), p.requires_grad, p.is_leaf) for name, p in params.items()}, buffers


@program
def modules_that_cannot_be_stacked(lib: Any) -> Any:
    a, evaluated, frozen = (lib.nn.Linear(1, 1) for _ in range(3))
    evaluated.eval()
    frozen.weight.requires_grad_(False)
    lists = ([], [a, evaluated], [a, lib.nn.Tanh()], [a, frozen])
    return each(lib, *(lambda ms=ms: lib.func.stack_module_state(ms) for ms in lists))


@program
def batch_norms_without_statistics(lib: Any) -> Any:
    net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.BatchNorm1d(2)))
    same = lib.func.replace_all_batch_norm_modules_(net) is net
    norm = net[1][0]
    x = lib.arange(8.0).reshape(2, 2, 2)
    out = lib.vmap(net)(x)
    return same, norm.running_mean, norm.running_var, norm.track_running_stats, list(out.shape)


def says(call: Any, pattern: str) -> Any:
    """The type of what a call raises, and whether it says so."""
    try:
        call()
    except Exception as error:
        return type(error).__name__, bool(re.search(pattern, str(error)))
    return ""


@program
def what_is_wrong_with_argnums(lib: Any) -> Any:
    x, y = points(lib)
    found = []
    for f in (lib.func.grad, lib.func.jacrev, lib.func.jacfwd):
        for argnums, pattern in (
            (2, "but only 2 positional inputs"),
            (-3, "only 2 positional inputs"),
            ([0], "must be int or Tuple"),
            (("0",), "must be int"),
            ((0, -2), "must be unique"),
            ((), "must be non-empty"),
        ):
            found.append(says(lambda f=f, n=argnums: f(lib.mul, argnums=n)(x, y), pattern))
    return found


@program
def what_is_wrong_with_results(lib: Any) -> Any:
    x, t = points(lib)
    calls = (
        (r"grad_and_value\(f\)\(\*args\)", lambda f, **k: lib.func.grad(f, **k)(x)),
        (r"vjp\(f, \*primals\)", lambda f, **k: lib.func.vjp(f, x, **k)),
        (r"jvp\(f, primals, tangents\)", lambda f, **k: lib.func.jvp(f, (x,), (t,), **k)),
    )
    found = []
    for name, call in calls:
        pattern = name + ": output of function f should be a tuple"
        found += [
            says(lambda c=call, o=o: c(lambda a: o(a), has_aux=True), pattern) for o in (list, lambda a: (a,) * 3)
        ]
        found.append(says(lambda c=call: c(lambda a: (a.sum(), [a, 1]), has_aux=True), "got unsupported type"))
    for name, call in calls[1:]:
        empty, only = name + ": Expected f to be .* non-empty output", name + ": expected .* only tensors"
        found += [says(lambda c=call, o=o: c(lambda a: o), empty) for o in (None, ())]
        found += [says(lambda c=call, o=o: c(lambda a: o), only) for o in (1, "abc", [2.0])]
    for f in (lib.func.jacrev, lib.func.jacfwd):
        found += [says(lambda f=f, o=o: f(lambda a: o)(x), "has non-empty output") for o in (None, ())]
    return found


@program
def what_is_wrong_with_primals_and_tangents(lib: Any) -> Any:
    x, t = points(lib)
    jvp, f = lib.func.jvp, lib.sin
    _, push = lib.func.linearize(f, x)
    return (
        says(lambda: jvp(f, x, (t,)), "Expected primals to be a tuple"),
        says(lambda: jvp(f, (x,), [t]), "same python structure"),
        says(lambda: jvp(f, (1.0,), (t,)), "only contain Tensors"),
        says(lambda: jvp(f, (x,), (1.0,)), "only contain Tensors"),
        says(lambda: jvp(f, (), ()), "at least one Tensor"),
        says(lambda: push((t, t)), "to have the same argspec as the primals"),
        says(lambda: push(t[:2]), "in flattened pytree doesn't match the shape"),
        says(lambda: push(t.float()), "in flattened pytree doesn't match the dtype"),
        says(lambda: lib.func.jacrev(f, chunk_size=0)(x), "jacrev: `chunk_size` should be greater than 0"),
    )


@program
def a_backward_that_no_batch_can_do(lib: Any) -> Any:
    """One row at a time is done without a batch."""

    def backward(ctx: Any, g: Any) -> Any:
        g.nonzero()
        return g

    f = function(lib, lambda a: a * 1, backward, setup_context=lambda ctx, inputs, output: None).apply
    x = points(lib)[0]
    return lib.func.jacrev(f, chunk_size=1)(x), says(lambda: lib.func.jacrev(f, chunk_size=2)(x), "dynamic shape")


@program
def what_a_vmap_of_ones_own_may_return(lib: Any) -> Any:
    def made(vmap: Any) -> Any:
        return function(lib, lambda a: a * 1, lambda ctx, g: g, setup_context=lambda ctx, i, o: None, vmap=vmap).apply

    x = batch(lib)
    return (
        says(lambda: lib.vmap(made(lambda info, dims, a: a))(x), "to have two returns"),
        says(lambda: lib.vmap(made(lambda info, dims, a: (a, a, 0)))(x), "to have two returns"),
        says(lambda: lib.vmap(made(lambda info, dims, a: (a, (None,))))(x), "returned an incompatible"),
        says(lambda: lib.vmap(made(lambda info, dims, a: ([a], (None,))))(x), "returned an incompatible"),
        lib.vmap(made(lambda info, dims, a: (a[0], None)))(x),
    )


@program
def functionalized(lib: Any) -> Any:
    func = lib.func
    start = lib.arange(8.0, dtype=lib.float64).reshape(4, 2)

    def through_a_view(t: Any) -> Any:
        t.view(2, 4).add_(lib.ones(4, dtype=lib.float64))
        return t

    def of_a_view(t: Any) -> Any:
        y = t + t
        z = y.view(-1)
        y.add_(1)
        return z

    found = []
    for remove in ("mutations", "mutations_and_views"):
        for f in (through_a_view, of_a_view, lambda t: {"a": (t.T, [t[0] * 2])}):
            x = start.clone()
            made = func.functionalize(f, remove=remove)
            found += [made(x), x, made.__name__]
    x = leaf(lib, [1.0, 2.0])
    found += [func.functionalize(lambda t: t.view(1, 2))(x)._base is x, func.functionalize(lambda t: t)(x) is x]
    found.append(func.functionalize(lambda t: t.detach().view(1, 2), remove="mutations_and_views")(x)._base is None)
    found += [func.grad(func.functionalize(lambda t: of_a_view(t).sum()))(start)]
    found += [lib.vmap(func.functionalize(lambda t, u: func.jvp(of_a_view, (t,), (u,))))(start, start)]
    func.functionalize(lambda t: t**2)(x).sum().backward()
    return found, x.grad, says(lambda: func.functionalize(lib.sin, remove="x"), "Valid options are")


@program
def tangents_are_not_shared_where_values_are_not(lib: Any) -> Any:
    """What is computed has a tangent of its own, also where the rule hands through the one it got."""

    def after(make: Any, write: Any) -> Any:
        def f(x: Any) -> Any:
            u = x.clone()
            y = make(u)
            write(u, y)
            return u.sum(), y.sum()

        x, t = points(lib)
        return lib.func.jvp(f, (x,), (t,)), lib.vmap(lambda v: lib.func.jvp(f, (x,), (v,))[1])(lib.stack([t, x])), t

    wide = lib.zeros(2, 3, dtype=lib.float64)
    makers = (
        lambda u: u + 0,
        lambda u: u - 1.0,
        lambda u: u[:2] + 0,
        lambda u: u + wide,
        lambda u: (u + wide).double(),
        lambda u: lib.complex(u, u).real + 0,
        lambda u: u.view(3, 1),
        lambda u: u[1:],
        lambda u: u.expand(2, 3) * 1,
        lambda u: lib.stack([u, u]),
        lambda u: u.reshape(-1),
        lambda u: lib.where(u > 0, u, 0.0),
    )
    writers = (lambda u, y: u.mul_(3), lambda u, y: y.mul_(3), lambda u, y: y.reshape(-1)[:1].add_(y.sum()))
    found = [after(make, write) for make in makers for write in writers]
    # nor does it matter that a tangent lies otherwise in memory than the values do
    x, t = lib.ones(2, 3, dtype=lib.float64), lib.arange(6.0, dtype=lib.float64).reshape(3, 2).T

    def f(x: Any) -> Any:
        x.view(-1)[1:3].mul_(2)
        return x

    return found, lib.func.jvp(f, (x,), (t,)), lib.func.jvp(f, (x,), (t[:1, :1].expand(2, 3),)), t


@program
def by_a_sparse_matrix(lib: Any) -> Any:
    """With values, too; torch's gradient of them is sparse."""
    places = lib.tensor([[0, 1, 1], [2, 0, 2]])
    values = constant(lib, [3.0, 4.0, 5.0])
    s = lib.sparse_coo_tensor(places, values, (2, 3), check_invariants=True).coalesce()
    g = lib.func.grad(lambda a: (a.coalesce().values() ** 2).sum())(s)
    seen: list[Any] = []
    lib.func.grad(lambda a: (seen.append((a.is_sparse, a.requires_grad, list(a.shape))), a.values().sum())[1])(s)
    return g.is_sparse, g.to_dense(), seen, s.requires_grad

"""What several graphs share: many views of one base, leaves with hooks, a node that some paths leave empty."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant, function, leaf, programs, refused

PROGRAMS, program = programs()


# Views of one base ----------------------------------------------------------------------------------------------------


def _many(lib: Any, count: int = 20) -> tuple[Any, Any, list[Any]]:
    x = leaf(lib, [float(i) for i in range(1, count + 1)])
    y = x * 1
    return x, y, [y[i : i + 2] for i in range(count - 1)]


@program
def a_write_to_one_of_many_views_reaches_all(lib: Any) -> Any:
    found = []
    for written in (0, 6, 7, 18):
        x, y, views = _many(lib)
        views[written].mul_(3)
        (y * y).sum().backward(retain_graph=True)
        found.append((x.grad, [v.detach().tolist() for v in views]))
        x.grad = None
        sum(v.square().sum() for v in views).backward()
        found.append(x.grad)
    return found


@program
def a_write_to_the_base_reaches_many_views(lib: Any) -> Any:
    x, y, views = _many(lib)
    y.mul_(2)
    y[3:9].exp_()
    gradients = [lib.autograd.grad(v.sum(), x, retain_graph=True)[0] for v in views]
    return gradients, y._version, [v._version for v in views]


@program
def dead_views_do_not_count(lib: Any) -> Any:
    x, y, views = _many(lib)
    kept = views[::5]
    del views
    later = [y[i] for i in range(20)]
    y.mul_(2)
    sum((v * v).sum() for v in [*kept, *later]).backward()
    return x.grad, [v.detach().tolist() for v in [*kept, *later]]


@program
def views_of_views_of_many(lib: Any) -> Any:
    x, y, views = _many(lib)
    inner = [v[1:] for v in views]
    inner[4].add_(10)
    views[9].mul_(2)
    sum((v * v).sum() for v in inner).backward()
    return x.grad, inner[0]._base is y, [v.detach().tolist() for v in inner]


@program
def many_views_of_a_base_that_leaves_the_graph(lib: Any) -> Any:
    _, y, views = _many(lib)
    error = refused(y.detach_)
    z = constant(lib, [1.0, 2.0])
    parts = [z[i:] for i in range(2)]
    z.add_(1)
    return error, [v.requires_grad for v in views], [p.tolist() for p in parts]


@program
def views_of_a_base_that_was_detached_lose_their_place(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0, 3.0])
    z = constant(lib, [0.0, 0.0, 0.0])
    parts = [z[i:] for i in range(3)]
    z.add_(x)
    before = [p.requires_grad for p in parts]
    error = refused(z.detach_)
    z.mul_(2)
    return before, error, [p.requires_grad for p in parts], [p.grad_fn is None for p in parts], z.requires_grad


# Leaves that several graphs share -------------------------------------------------------------------------------------


@program
def hooks_of_a_leaf_in_several_graphs(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    x.register_hook(lambda g: log.append(("before", g.tolist())) or g * 2)
    x.register_post_accumulate_grad_hook(lambda t: log.append(("after", t.grad.tolist())))
    first, second = (x * 3).sum(), (x * x).sum()
    first.backward()
    second.backward()
    (x.sum() + (x * 5).sum()).backward()
    return log, x.grad


@program
def a_hook_that_is_removed_between_graphs(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    handle = x.register_hook(lambda g: log.append(g.tolist()))
    first, second = (x * 3).sum(), (x * x).sum()
    first.backward()
    handle.remove()
    second.backward()
    x.register_hook(lambda g: -g)
    (x * 1).sum().backward()
    return log, x.grad


@program
def a_hook_that_runs_another_graph_of_the_same_leaf(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    inner = (x * x).sum()

    def run(g: Any) -> Any:
        log.append(g.tolist())
        if len(log) == 1:
            inner.backward()
        return g

    x.register_hook(run)
    (x * 3).sum().backward()
    return log, x.grad


@program
def two_graphs_that_share_a_part(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    shared = x * x
    shared.register_hook(lambda g: log.append(("part", g.tolist())) or g * 10)
    x.register_hook(lambda g: log.append(("leaf", g.tolist())))
    first, second = (shared * 2).sum(), shared.exp().sum()
    first.backward(retain_graph=True)
    error = refused(lambda: lib.autograd.grad(second, [x, shared], retain_graph=True))
    pair = lib.autograd.grad(second, [x, shared], retain_graph=True)
    second.backward()
    return log, error, pair, x.grad, refused(lambda: first.backward())


@program
def gradients_by_some_of_the_leaves_run_only_their_hooks(lib: Any) -> Any:
    x, y, log = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0]), []
    for name, t in (("x", x), ("y", y)):
        t.register_hook(lambda g, name=name: log.append((name, g.tolist())) or g + 1)
        t.register_post_accumulate_grad_hook(lambda t, name=name: log.append((name, "after")))
    product = (x * y).sum()
    found = lib.autograd.grad(product, x, retain_graph=True)
    product.backward(inputs=[y], retain_graph=True)
    return found, log, x.grad, y.grad


# Nodes that some paths leave empty ------------------------------------------------------------------------------------


@program
def none_arrives_before_and_after_a_gradient(lib: Any) -> Any:
    def nothing(x: Any) -> Any:
        return function(lib, lambda ctx, x: x * 1, lambda ctx, g: None).apply(x)

    found = []
    for order in ("first", "last", "both"):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        early = [nothing(y)] if order != "last" else []
        value = y * 5
        late = [nothing(y)] if order != "first" else []
        sum(t.sum() for t in [*early, value, *late]).backward()
        found.append(x.grad)
    return found


# Hooks on what was saved ----------------------------------------------------------------------------------------------


@program
def hooks_on_one_of_two_saved_tensors(lib: Any) -> Any:
    x, y, log = leaf(lib, [3.0]), leaf(lib, [5.0]), []
    product = x * y
    product.grad_fn._raw_saved_self.register_hooks(lambda t: log.append(t.tolist()) or t, lambda t: t * 10)
    product.backward()
    return x.grad, y.grad, log


@program
def packing_and_unpacking_are_not_recorded(lib: Any) -> Any:
    log = []

    def pack(t: Any) -> Any:
        log.append((lib.is_grad_enabled(), (t * 2).requires_grad))
        return t

    def unpack(t: Any) -> Any:
        log.append((lib.is_grad_enabled(), (t * 2).requires_grad))
        return t

    x = leaf(lib, [3.0])
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
            z = y.exp()
    (g,) = lib.autograd.grad(z, x)
    return log, g


@program
def parts_of_a_size_are_sizes(lib: Any) -> Any:
    size = lib.ones(2, 3, 4).shape
    return [type(s).__name__ for s in (size, size[1:], size[:0], size + size, size * 2)], size[1:].numel()

"""What a node is called, shows and saved; nodes that are called."""

from __future__ import annotations

from typing import Any

from tests.programs.graph.common import double_of
from tests.side_by_side import constant, function, leaf, named, programs, refused

PROGRAMS, program = programs()


# what a node is called and shows --------------------------------------------------------------------------------------


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


# what a node saved ----------------------------------------------------------------------------------------------------


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


def backward_twice(lib: Any, name: str) -> Any:
    x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
    y = TWICE[name](lib, x).sum()
    y.backward()
    return refused(y.backward), x.grad


PROGRAMS += [named(f"backward_twice: {name}", lambda lib, name=name: backward_twice(lib, name)) for name in TWICE]


# a node that is called ------------------------------------------------------------------------------------------------


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


# with no counterpart, or on ours alone --------------------------------------------------------------------------------


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

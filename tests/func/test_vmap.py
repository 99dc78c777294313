"""`vmap`, side by side with torch's: where the axis of the batch is and goes, writes in place, refusals, randomness."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

import pytest

import pullback
from pullback.func import vmap
from tests.side_by_side import Program, constant, leaf, name_of, outcomes, programs

PROGRAMS, program = programs()


def a_of(lib: Any) -> Any:
    return lib.arange(24.0, dtype=lib.float64).reshape(2, 3, 4) / 10 - 1


def b_of(lib: Any) -> Any:
    return lib.arange(12.0, dtype=lib.float64).reshape(3, 4) / 7 - 0.5


# in_dims and out_dims ---------------------------------------------------------------------------------------------


@program
def every_axis(lib: Any) -> Any:
    return [lib.vmap(lambda x: x.cumsum(0), d)(a_of(lib)) for d in (0, 1, 2, -1, -2, -3)]


@program
def every_out_dim(lib: Any) -> Any:
    return [lib.vmap(lambda x: x * 2, 1, d)(a_of(lib)) for d in (0, 1, 2, -1, -2, -3)]


@program
def two_arguments(lib: Any) -> Any:
    a, b = a_of(lib), b_of(lib)
    return [
        lib.vmap(lambda x, y: x * y, (1, 0))(a, b),
        lib.vmap(lambda x, y: x * y, (None, 0))(a, b),
        lib.vmap(lambda x, y: x * y, (0, None))(a, b),
        lib.vmap(lambda x, y: x @ y, (2, 1), -1)(a, b),
    ]


@program
def nested_in_dims(lib: Any) -> Any:
    a, b = a_of(lib), b_of(lib)
    f = lambda d, e: {"s": d["a"] + e[0][0], "t": (e[1] * 2,)}  # noqa: E731
    return lib.vmap(f, ({"a": 1}, [(0,), None]), {"s": 1, "t": (0,)})({"a": a}, [(b,), b])


@program
def one_in_dim_for_a_tree(lib: Any) -> Any:
    a, b = a_of(lib), b_of(lib)
    return lib.vmap(lambda d: d["a"] + d["b"], ({"a": 1, "b": 0},))({"a": a, "b": b}), lib.vmap(
        lambda t: t[0] + t[1], 0
    )((b, b * 2))


@program
def one_in_dim_for_a_nested_one(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lambda t, c: t[0] + t[1]["x"] + c, (1, None))((b, {"x": b * 2}), b[:, 0])


@program
def keyword_arguments(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lambda x, *, y: x + y)(b, y=b * 2), lib.vmap(lambda x, y: x + y, 1)(b, y=b.T)


@program
def in_dims_as_a_list(lib: Any) -> Any:
    return lib.vmap(lambda x, y: x + y, [0, 0])(b_of(lib), b_of(lib))


@program
def out_dims_none(lib: Any) -> Any:
    c = constant(lib, [1.0, 2.0])
    return lib.vmap(lambda x: (x, c), out_dims=(0, None))(b_of(lib))


@program
def out_dims_none_of_what_varies(lib: Any) -> Any:
    return lib.vmap(lambda x: x, out_dims=None)(b_of(lib))


@program
def result_made_inside(lib: Any) -> Any:
    return lib.vmap(lambda x: lib.ones(2))(b_of(lib))


@program
def out_dims_out_of_range(lib: Any) -> Any:
    return lib.vmap(lambda x: x, out_dims=2)(b_of(lib))


@program
def out_dims_too_many(lib: Any) -> Any:
    return lib.vmap(lambda x: x, out_dims=(0, 0))(b_of(lib))


@program
def out_dims_too_few(lib: Any) -> Any:
    return lib.vmap(lambda x: (x, x), out_dims=(0,))(b_of(lib))


@program
def out_dims_one_in_a_tuple(lib: Any) -> Any:
    return lib.vmap(lambda x: x, out_dims=(1,))(b_of(lib))


@program
def out_dims_of_a_float(lib: Any) -> Any:
    return lib.vmap(lambda x: x, out_dims=0.0)(b_of(lib))


@program
def in_dims_out_of_range(lib: Any) -> Any:
    return lib.vmap(lambda x: x, 2)(b_of(lib))


@program
def in_dims_of_a_scalar(lib: Any) -> Any:
    return lib.vmap(lambda x: x)(lib.tensor(1.0))


@program
def in_dims_of_a_float(lib: Any) -> Any:
    return lib.vmap(lambda x: x, 0.0)(b_of(lib))


@program
def in_dims_too_many(lib: Any) -> Any:
    return lib.vmap(lambda x: x, (0, 0))(b_of(lib))


@program
def in_dims_that_nest_otherwise(lib: Any) -> Any:
    return lib.vmap(lambda x: x[0], ({"a": 0},))([b_of(lib)])


@program
def in_dims_none_only(lib: Any) -> Any:
    return lib.vmap(lambda x: x, None)(b_of(lib))


@program
def in_dims_all_none(lib: Any) -> Any:
    return lib.vmap(lambda x, y: x, (None, None))(b_of(lib), b_of(lib))


@program
def no_arguments(lib: Any) -> Any:
    return lib.vmap(lambda: lib.ones(2))()


@program
def a_number_among_the_arguments(lib: Any) -> Any:
    return lib.vmap(lambda x, n: x * n)(b_of(lib), 2.0)


@program
def a_number_that_does_not_vary(lib: Any) -> Any:
    return lib.vmap(lambda x, n: x * n, (0, None))(b_of(lib), 2.0)


@program
def sizes_that_differ(lib: Any) -> Any:
    return lib.vmap(lambda x, y: x)(b_of(lib), a_of(lib))


@program
def not_a_function(lib: Any) -> Any:
    return lib.vmap(3)(b_of(lib))


@program
def randomness_of_another_name(lib: Any) -> Any:
    return lib.vmap(lib.sin, randomness="some")(b_of(lib))


@program
def chunks(lib: Any) -> Any:
    a = a_of(lib)
    f = lambda x: (x.sum(0), x * 2)  # noqa: E731
    return [lib.vmap(f, 1, (0, 1), chunk_size=n)(a) for n in (1, 2, 3, 4)]


@program
def chunk_size_0(lib: Any) -> Any:
    return lib.vmap(lib.sin, chunk_size=0)(b_of(lib))


@program
def chunk_size_negative(lib: Any) -> Any:
    return lib.vmap(lib.sin, chunk_size=-1)(b_of(lib))


# results ------------------------------------------------------------------------------------------------------------


@program
def nested_results(lib: Any) -> Any:
    return lib.vmap(lambda x: {"a": [x, (x.sum(),)], "b": x * 2}, out_dims=-1)(b_of(lib))


@program
def result_number(lib: Any) -> Any:
    return lib.vmap(lambda x: 3.0)(b_of(lib))


@program
def result_none(lib: Any) -> Any:
    return lib.vmap(lambda x: None)(b_of(lib))


@program
def result_tensor_and_number(lib: Any) -> Any:
    return lib.vmap(lambda x: (x, 1))(b_of(lib))


@program
def result_named_tuple(lib: Any) -> Any:
    found = lib.vmap(lambda x: x.max(0))(b_of(lib))
    return found[0], found[1]


@program
def shapes_seen_inside(lib: Any) -> Any:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.extend([tuple(x.shape), x.ndim, x.dim(), x.size(0), x.numel(), len(x), str(x.dtype)[-7:], x.is_leaf])
        return x.reshape(-1)

    lib.vmap(f, 1)(a_of(lib))
    return seen


# refusals -----------------------------------------------------------------------------------------------------------


@program
def item_inside(lib: Any) -> Any:
    return lib.vmap(lambda x: x * x.sum().item())(b_of(lib))


@program
def tolist_inside(lib: Any) -> Any:
    return lib.vmap(lambda x: lib.tensor(x.tolist()))(b_of(lib))


@program
def control_flow_inside(lib: Any) -> Any:
    return lib.vmap(lambda x: x if x.sum() > 0 else -x)(b_of(lib))


@program
def float_inside(lib: Any) -> Any:
    return lib.vmap(lambda x: x * float(x.sum()))(b_of(lib))


@program
def control_flow_by_what_does_not_vary(lib: Any) -> Any:
    c = constant(lib, 2.0)
    return lib.vmap(lambda x: x if c > 0 else -x)(b_of(lib))


@program
def numpy_inside(lib: Any) -> Any:
    return lib.vmap(lambda x: lib.tensor(x.numpy()))(b_of(lib))


@program
def masked_select_inside(lib: Any) -> Any:
    return lib.vmap(lambda x: x[x > 0.1])(b_of(lib))


@program
def escaped(lib: Any) -> Any:
    kept = []

    def f(x: Any) -> Any:
        kept.append(x)
        return x

    lib.vmap(f)(b_of(lib))
    return kept[0] + 1


@program
def iteration_inside(lib: Any) -> Any:
    return lib.vmap(lambda x: sum(row * (k + 1) for k, row in enumerate(x)))(a_of(lib))


@program
def unpacking_inside(lib: Any) -> Any:
    def f(x: Any) -> Any:
        p, q, r = x
        return p * q - r

    return lib.vmap(f)(a_of(lib))


# in place -----------------------------------------------------------------------------------------------------------


@program
def in_place_on_the_argument(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lambda x: x.mul_(2))(b), b


@program
def in_place_with_what_does_not_vary(lib: Any) -> Any:
    b, c = b_of(lib), constant(lib, [1.0, 2.0, 3.0, 4.0])
    return lib.vmap(lambda x: x.clone().mul_(c).sub_(1))(b)


@program
def in_place_on_what_does_not_vary(lib: Any) -> Any:
    b, c = b_of(lib), constant(lib, [1.0, 2.0, 3.0, 4.0])
    return lib.vmap(lambda x: c.mul_(x))(b)


@program
def in_place_on_an_argument_that_does_not_vary(lib: Any) -> Any:
    b, c = b_of(lib), constant(lib, [1.0, 2.0, 3.0, 4.0])
    return lib.vmap(lambda x, y: y.mul_(x), (0, None))(b, c)


@program
def in_place_on_what_does_not_vary_is_refused_before(lib: Any) -> Any:
    b, c = b_of(lib), constant(lib, [1.0, 2.0, 3.0, 4.0])
    try:
        lib.vmap(lambda x: c.mul_(x))(b)
    except RuntimeError:
        return c
    return "no error"


@program
def in_place_by_a_number_on_what_does_not_vary(lib: Any) -> Any:
    b, c = b_of(lib), constant(lib, [1.0, 2.0, 3.0, 4.0])
    return lib.vmap(lambda x: x + c.mul_(2))(b), c


@program
def views_written_in_place(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.clone()
        row = y[1]
        row.mul_(10)
        y[:, 0] = row[0]
        y.T[2].add_(x[0, 1])
        flat = y.view(-1)
        flat[3:5] = x[0, :2] * 100
        return y, row, flat

    return lib.vmap(f)(a_of(lib)), lib.vmap(f, 2, 1)(a_of(lib).movedim(0, 2))


@program
def view_of_the_argument_written(lib: Any) -> Any:
    a = a_of(lib)
    out = lib.vmap(lambda x: x[0].fill_(7.0), 1)(a)
    return out, a


@program
def write_before_and_after_a_view(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        v = y[1:]
        y.add_(1)
        w = v * 2
        v.zero_()
        return y, v, w

    return lib.vmap(f)(b_of(lib))


@program
def new_zeros_written(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.new_zeros(2, 4)
        y[1] = x
        return y

    return lib.vmap(f)(b_of(lib))


@program
def zeros_like_written(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y = lib.zeros_like(x)
        y[1] = x[2]
        return y

    return lib.vmap(f)(b_of(lib))


@program
def zeros_written(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y = lib.zeros(4, dtype=lib.float64)
        y[1] = x[2]
        return y

    return lib.vmap(f)(b_of(lib))


@program
def gradients_through_writes(lib: Any) -> Any:
    x = leaf(lib, b_of(lib).tolist())

    def f(r: Any) -> Any:
        y = r * 2
        y[1:3] *= r[0]
        y[0] = y[3] * y[1]
        return y

    out = lib.vmap(f)(x)
    out.pow(2).sum().backward()
    return out, x.grad


@program
def write_of_another_shape(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lambda x: x[0].clone().add_(x))(b)


@program
def copy_inside(lib: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        z = lib.empty_like(x)
        z.copy_(y)
        return z

    a = a_of(lib)
    return lib.vmap(f, (0, None))(a, b_of(lib)), lib.vmap(f)(a, a[:, 0:1])


# indexing by tensors of the batch -----------------------------------------------------------------------------------


@program
def indices_that_vary(lib: Any) -> Any:
    a, i = a_of(lib), lib.tensor([2, 0])
    j = lib.tensor([[1, 1], [0, 2]])
    c = b_of(lib)
    return [
        lib.vmap(lambda x, k: x[k])(a, i),
        lib.vmap(lambda x, k: x[:, k])(a, i),
        lib.vmap(lambda x, k: x[k, :2])(a, j),
        lib.vmap(lambda x, k: x[k, k])(a, j),
        lib.vmap(lambda k: c[k])(j),
        lib.vmap(lambda k: c[:, k])(j),
        lib.vmap(lambda x: x[:, lib.tensor([0, 3])])(a),
        lib.vmap(lambda x, k: x[..., None, k])(a, j),
        lib.vmap(lambda x, k: lib.index_select(x, 1, k))(a, j),
        lib.vmap(lambda x, k: x.gather(0, k.expand(4, 2).T))(a, j),
        lib.vmap(lambda x, k: lib.take_along_dim(x, k[None], 1))(a, j),
    ]


@program
def written_at_indices_that_vary(lib: Any) -> Any:
    a, j = a_of(lib), lib.tensor([[1, 1], [0, 2]])

    def f(x: Any, k: Any) -> Any:
        y = x.clone()
        y[k[0]] = 5.0
        y[:, k[1]] = x[:, 0]
        return y, x.index_add(0, k, x[:2]), x.scatter(0, k[None].expand(1, 2), 3.0)

    return lib.vmap(f)(a, j)


@program
def written_through_views_of_parts(lib: Any) -> Any:
    def f(z: Any) -> Any:
        y, w = z.clone(), z.clone()
        y.real.mul_(2)
        y.imag.copy_(z.real)
        lib.view_as_real(w)[..., 0].zero_()
        return y, w

    b = b_of(lib)
    return lib.vmap(f)(lib.complex(b, b * 2))


@program
def numbers_in_the_batch(lib: Any) -> Any:
    def f(n: Any) -> Any:
        return n.sum(), n.mean(0), n.max(), n.cumsum(0), n.softmax(-1), n.sort().values, n.prod(), n.argmax()

    def kept(r: Any) -> Any:
        return (
            r.sum((0, 1), True),
            r.expand(2, 3, 4),
            r[0, 0].expand(3),
            r.to(lib.float32),
            r.mean((0, 1), keepdim=True),
        )

    return lib.vmap(f)(b_of(lib)[0]), lib.vmap(kept)(a_of(lib))


@program
def numbers_have_no_second_axis(lib: Any) -> Any:
    return lib.vmap(lambda n: n.sum(1))(b_of(lib)[0])


@program
def put_at_indices(lib: Any) -> Any:
    a, i = a_of(lib), lib.tensor([1, 1])
    k = lib.tensor([[0, 2], [1, 1]])

    def fixed(x: Any) -> Any:
        y, z = x.clone(), x.clone()
        y[i] = x[:2]
        z[:, i] += x[:, :2]
        return y, z, x.index_put((i, i), x[0, :2], accumulate=True), x.index_put((i,), x[0])

    def varying(x: Any, j: Any) -> Any:
        y = x.clone()
        y[j] = x[:2]
        return y, x.index_put((j, j), x[0, :2], accumulate=True), x.index_put((j,), lib.tensor(1.0).double())

    return (
        lib.vmap(fixed)(a),
        lib.vmap(varying)(a, k),
        lib.vmap(lambda j: lib.zeros_like(a[0]).index_put((j,), a[0, 0]))(k),
    )


@program
def places_in_order(lib: Any) -> Any:
    edges, a = constant(lib, [-0.5, 0.0, 0.5]), a_of(lib)
    return (
        lib.vmap(lambda x: lib.bucketize(x, edges))(a),
        lib.vmap(lambda x: lib.searchsorted(x, x * 0.5))(a),
        lib.vmap(lambda x: lib.searchsorted(edges, x, right=True))(a),
        lib.vmap(lambda x, y: lib.searchsorted(x, y), (0, None))(a[0], a[1, 0]),
    )


# nesting ------------------------------------------------------------------------------------------------------------


@program
def pairwise(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lambda x: lib.vmap(lambda y: (x * y).sum())(b))(b)


@program
def pairwise_other(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lib.vmap(lambda x, y: x.sin() * y, (0, None)), (None, 0))(b, b)


@program
def three_levels(lib: Any) -> Any:
    a = a_of(lib)
    return lib.vmap(lib.vmap(lib.vmap(lambda x, y: x * y, (0, None), 0), 1, 1), 2, -1)(a, a)


@program
def inner_written_by_the_outer(lib: Any) -> Any:
    b = b_of(lib)

    def outer(x: Any) -> Any:
        y = x.clone()
        lib.vmap(lambda e: e.mul_(x.sum()))(y)
        return y

    return lib.vmap(outer)(b)


@program
def inner_refuses_what_only_the_outer_varies(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lambda x: lib.vmap(lambda e: x.mul_(e))(b))(b)


@program
def over_derivatives(lib: Any) -> Any:
    b = b_of(lib)
    g, f = lib.func, lambda x: (x.sin() * x.sum()).sum()
    return [
        lib.vmap(g.grad(f))(b),
        lib.vmap(g.hessian(f))(b),
        lib.vmap(lambda x: g.jvp(g.grad(f), (x,), (x,)))(b),
        lib.vmap(g.jacrev(g.jacfwd(f)))(b),
        g.jacrev(lib.vmap(f))(b),
        g.jacfwd(lib.vmap(g.grad(f)))(b),
        g.grad(lambda x: lib.vmap(f)(x).sum())(b),
        g.jvp(lib.vmap(f), (b,), (b * b,)),
    ]


@program
def tracked_argument(lib: Any) -> Any:
    x = leaf(lib, b_of(lib).tolist())
    out = lib.vmap(lambda r: r.sin() * r.sum(), 1)(x)
    out.sum().backward()
    return out, x.grad


@program
def tracked_closure(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0, 4.0])
    out = lib.vmap(lambda r: (w * r).sum() * w)(b_of(lib))
    out.pow(2).sum().backward()
    return out, w.grad


@program
def tracked_under_no_grad(lib: Any) -> Any:
    x = leaf(lib, b_of(lib).tolist())
    with lib.no_grad():
        out = lib.vmap(lambda r: r * 2)(x)
    return out, lib.vmap(lambda r: r * 2)(x.detach())


@program
def no_grad_inside(lib: Any) -> Any:
    x = leaf(lib, b_of(lib).tolist())

    def f(r: Any) -> Any:
        with lib.no_grad():
            s = r.sum()
        return r * s

    out = lib.vmap(f)(x)
    out.sum().backward()
    return out, x.grad


@program
def gradients_of_a_captured_graph(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0, 3.0])
    y = x**3
    return lib.vmap(lambda v: lib.autograd.grad(y, x, v, retain_graph=True)[0])(lib.eye(3, dtype=lib.float64))


@program
def empty_batch(lib: Any) -> Any:
    return lib.vmap(lambda x: x.sin() * 2)(lib.ones(0, 3))


@program
def dtypes_as_for_one(lib: Any) -> Any:
    x, d = lib.ones(3), lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64)
    i = lib.tensor([1, 2, 3])
    f = lambda p, q: p * q  # noqa: E731
    return [
        lib.vmap(f)(x, d),
        lib.vmap(f)(i, x),
        lib.vmap(f, (0, None))(x, d[0]),
        lib.vmap(f, (None, 0))(d[0], x),
        lib.vmap(lambda p: p * lib.ones(2))(d),
        lib.vmap(lambda p: p + 1)(i),
        lib.vmap(lambda p: p / 2)(i),
        lib.vmap(lambda p: p * lib.ones(2))(i),
    ]


# randomness ---------------------------------------------------------------------------------------------------------


def rand_with(lib: Any, randomness: str, f: Any) -> Any:
    lib.manual_seed(0)
    return lib.vmap(f, randomness=randomness)(lib.ones(3, 4))


@program
def random_is_refused(lib: Any) -> Any:
    return rand_with(lib, "error", lambda x: x + lib.rand(4))


@program
def random_like_is_refused(lib: Any) -> Any:
    return rand_with(lib, "error", lambda x: x + lib.randn_like(x))


@program
def random_different(lib: Any) -> Any:
    out = rand_with(lib, "different", lambda x: x + lib.rand(4))
    return tuple(out.shape), bool((out[0] == out[1]).any()), bool((out[1] == out[2]).any())


@program
def random_same(lib: Any) -> Any:
    out = rand_with(lib, "same", lambda x: x + lib.rand(4))
    return tuple(out.shape), bool((out[0] == out[1]).all()), bool((out[1] == out[2]).all())


@program
def random_like_different(lib: Any) -> Any:
    out = rand_with(lib, "different", lambda x: x + lib.randn_like(x))
    return tuple(out.shape), bool((out[0] == out[1]).any())


@program
def random_like_same(lib: Any) -> Any:
    out = rand_with(lib, "same", lambda x: x + lib.randn_like(x))
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def dropout_is_refused(lib: Any) -> Any:
    return rand_with(lib, "error", lambda x: lib.nn.functional.dropout(x, 0.5))


@program
def dropout_different(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: lib.nn.functional.dropout(x, 0.5), randomness="different")(lib.ones(3, 50))
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def dropout_same(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: lib.nn.functional.dropout(x, 0.5), randomness="same")(lib.ones(3, 50))
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def bernoulli_of_what_varies_different(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: lib.bernoulli(x), randomness="different")(lib.ones(3, 50) / 2)
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def random_permutation_different(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: x[lib.randperm(50)], randomness="different")(lib.arange(150.0).reshape(3, 50))
    return tuple(out.shape), bool((out[0] + 50 == out[1]).all())


@program
def random_in_the_outer_only(lib: Any) -> Any:
    f = lib.vmap(lambda x: lib.vmap(lambda y: y * 2)(x + lib.rand(4)), randomness="different")
    return tuple(f(lib.ones(3, 4)).shape)


@program
def random_in_place_different(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: x.clone().uniform_(), randomness="different")(lib.ones(3, 40))
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def random_in_place_same(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: x.clone().normal_(), randomness="same")(lib.ones(3, 40))
    return tuple(out.shape), bool((out[0] == out[1]).all())


# Dynamic shapes, structures of axes -----------------------------------------------------------------------------------


def each(*calls: Any) -> list[Any]:
    """What each call gives, or the name of what it raises."""
    found: list[Any] = []
    for call in calls:
        try:
            found.append(call())
        except Exception as error:
            found.append(type(error).__name__)
    return found


@program
def dynamic_shapes(lib: Any) -> Any:
    x = a_of(lib)[0] + 5
    return each(
        *(
            lambda f=f: lib.vmap(f)(x)
            for f in (
                lambda r: r.nonzero(),
                lambda r: lib.nonzero(r, as_tuple=True),
                lambda r: lib.where(r > 0),
                lambda r: lib.unique(r),
                lambda r: lib.unique_consecutive(r),
                lambda r: lib.masked_select(r, r > 0),
                lambda r: r[r > 0],
                lambda r: r[lib.tensor([True, False, True, False])],
                lambda r: lib.arange(9.0)[r.argmax() :],
                lambda r: lib.arange(r[0]),
            )
        )
    )


@program
def values_that_python_asks_for(lib: Any) -> Any:
    x = a_of(lib)[0, 0]
    asks = (
        lambda r: r.item(),
        float,
        int,
        lambda r: r if r > 0 else -r,
        lambda r: r.tolist(),
        lambda r: r.numpy(),
        lambda r: lib.equal(r, r),
        lambda r: lib.allclose(r, r),
        lambda r: lib.is_nonzero(r),
    )
    return each(*(lambda f=f: lib.vmap(f)(x) for f in asks))


@program
def every_form_of_in_dims(lib: Any) -> Any:
    x = b_of(lib)
    forms = (0, 1, (0, 0), (0, 1), (1, 1), (0, None), (None, 0), (None, None), None, -1, (-1, -2), 2, (0,), (0, 0, 0))
    others = ([0, 0], "a", ((0,), 0), 0.0)
    return each(*(lambda d=d: lib.vmap(lambda a, b: a * b.sum(), in_dims=d)(x, x) for d in (*forms, *others)))


@program
def every_form_of_nested_in_dims(lib: Any) -> Any:
    x = b_of(lib)
    forms: list[Any] = [({"a": 0, "b": b}, None) for b in (0, [0], [None], (0,), [1])]
    forms += [(0, None), ({"a": 0}, None), ({"a": 1, "b": [1]}, None), 0]
    return each(
        *(
            lambda d=d: lib.vmap(lambda t, k: t["a"] * t["b"][0] * k, in_dims=d)({"a": x, "b": [x]}, lib.tensor(2.0))
            for d in forms
        )
    )


@program
def every_form_of_out_dims(lib: Any) -> Any:
    x = b_of(lib)
    pairs = (0, (0, 0), (1, 0), (1, 1), (-1, -1), (0, None), [0, 0], (0,), "a", None, 1, 2)
    single = (0, 1, -1, 2, -3, (0,), (1,), None, (0, 0), [1], 0.5)
    dicts = (0, 1, {"a": 0, "b": 1}, {"a": 0, "b": [0, 1]}, {"a": 0})
    return each(
        *(lambda d=d: lib.vmap(lambda r: (r, r.sum()), out_dims=d)(x) for d in pairs),
        *(lambda d=d: lib.vmap(lambda r: r, out_dims=d)(x) for d in single),
        *(lambda d=d: lib.vmap(lambda r: {"a": r, "b": [r, r]}, out_dims=d)(x) for d in dicts),
    )


@program
def what_may_be_returned(lib: Any) -> Any:
    x = b_of(lib)
    results = (2.0, None, (x, None), lib.ones(2), [x], (), "s", {"k": x})
    return each(*(lambda r=r: lib.vmap(lambda _: r)(x) for r in results))


@program
def in_chunks_of_every_size(lib: Any) -> Any:
    x = b_of(lib)
    sizes = (None, 1, 2, 3, 10, 0, -1)
    return each(
        *(lambda n=n: lib.vmap(lambda r: (r * 2, r.sum()), in_dims=1, out_dims=(1, 0), chunk_size=n)(x) for n in sizes)
    )


@program
def functions_of_every_kind(lib: Any) -> Any:
    x = b_of(lib)
    kinds = (
        functools.partial(lib.sum, dim=0),
        lib.nn.functional.relu,
        lib.nn.ReLU(),
        lib.Tensor.sin,
        lib.vmap(lib.exp),
    )
    return [lib.vmap(f)(x) for f in kinds]


@program
def writes_to_what_does_not_vary(lib: Any) -> Any:
    x, y = constant(lib, [1.0, 2.0]), constant(lib, 3.0)
    return each(
        lambda: lib.vmap(lambda a, b: b.clone().add_(1) + a, in_dims=(0, None))(x, y),
        lambda: lib.vmap(lambda a, b: b.clone().add_(a), in_dims=(0, None))(x, y),
        lambda: lib.vmap(lambda a, b: b.add_(a), in_dims=(0, None))(x, y),
        lambda: lib.vmap(lambda a: lib.zeros((), dtype=lib.float64).add_(a))(x),
        lambda: lib.vmap(lambda a: lib.zeros_like(a).add_(a))(x),
        lambda: lib.vmap(lambda a: a.new_zeros(()).add_(a))(x),
    )


@program
def random_numbers_in_nested_batches(lib: Any) -> Any:
    lib.manual_seed(0)
    inner = lambda r: lib.vmap(lambda y: y + lib.rand(2), randomness="different")(r)  # noqa: E731
    found = lib.vmap(inner, randomness="same")(lib.zeros(2, 3, 2))
    return bool((found[0] == found[1]).all()), bool((found[0, 0] == found[0, 1]).any())


@program
def random_functions_in_every_mode(lib: Any) -> Any:
    functions = (
        lambda x: x + lib.rand(4),
        lambda x: lib.randn(4),
        lib.rand_like,
        lambda x: lib.bernoulli(x + 0.5),
        lambda x: lib.nn.functional.dropout(x + 1.0, 0.5),
        lambda x: lib.randperm(50),
        lambda x: lib.randint(0, 1000, (4,)),
        lambda x: x.clone().normal_(),
        lambda x: lib.normal(x, 1.0),
        lambda x: lib.zeros(4).normal_(),
    )

    def run(f: Any, mode: str) -> Any:
        lib.manual_seed(0)
        y = lib.vmap(f, randomness=mode)(lib.zeros(3, 4))
        return list(y.shape), mode != "same" or bool((y[0] == y[1]).all() and (y[1] == y[2]).all())

    return [each(*(lambda f=f, m=m: run(f, m) for f in functions)) for m in ("error", "same", "different", "x")]


@program
def gradients_of_a_batch_by_hand(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0, 3.0])
    y, basis = x**3, lib.eye(3, dtype=lib.float64)
    rows = lib.vmap(lambda v: lib.autograd.grad(y, x, v, create_graph=True)[0])(basis)
    z = lib.vmap(lib.func.grad(lambda a: a**3))(x)
    return rows, lib.autograd.grad(rows.sum(), x), lib.autograd.grad(z.sum(), x)


@program
def results_that_are_the_same_for_each_may_be_anything(lib: Any) -> Any:
    x = b_of(lib)
    kept = lib.arange(3)

    def written(t: Any) -> Any:
        t.add_(1)
        return None, "done"

    first, (second, third) = lib.vmap(lambda t: (t * 2, ("same", kept)), out_dims=(0, (None, None)))(x)
    return first, second, third, lib.vmap(written, out_dims=None)(x.clone()), lib.vmap(lambda t: 3, out_dims=None)(x)


@program
def the_same_random_numbers_in_every_chunk(lib: Any) -> Any:
    lib.manual_seed(0)
    found = [
        lib.vmap(lambda t: t + lib.rand(2), randomness="same", chunk_size=n)(lib.zeros(5, 2)) for n in (1, 2, 3, 9)
    ]
    return [bool((rows == rows[0]).all()) for rows in found]


def says(call: Any, pattern: str) -> Any:
    """The type of what a call raises, and whether it says so."""
    try:
        call()
    except Exception as error:
        return type(error).__name__, bool(re.search(pattern, str(error)))
    return ""


@program
def what_is_wrong_with_the_axes(lib: Any) -> Any:
    x, scalar = b_of(lib), constant(lib, 1.0)
    pair, add = (x, x), lambda z: z[0] + z[1]
    v, one = lib.vmap, lambda t: t
    return (
        [says(lambda d=d: v(lib.mul, d)(x, x), "expected `in_dims` to be int or a .*tuple") for d in ([0, 0], "x")],
        [
            says(lambda d=d: v(lib.mul, d)(x, x), "in_dims is not compatible with the structure")
            for d in ((0,), (0,) * 3)
        ],
        says(lambda: v(add, ([0, 0],))(pair), "in_dims is not compatible with the structure of `inputs`"),
        says(lambda: v(lib.sum)(x, 0), "Got in_dim=0 for an input but the input is of type"),
        says(lambda: v(one)(scalar), r"Got in_dim=0 for some input, but that input is a Tensor of dimensionality 0"),
        says(lambda: v(one, -3)(x), r"Got in_dim=-3 for some input, but that input is a Tensor of dimensionality 2"),
        says(lambda: v(one, (None,))(1), "at least one Tensor"),
        [says(lambda d=d: v(one, 0, d)(x), "must be an int, None or a python collection") for d in ("x", ("x",))],
        says(lambda: v(one, 0, (0, 0))(x), "out_dims is not compatible with the structure of `outputs`"),
        says(lambda: v(one, out_dims=None)(x), "can not return a BatchedTensor when out_dim is None"),
        says(lambda: v(lambda t: (t, 3))(x), "got type <class 'int'>"),
        says(lambda: v(one, chunk_size=0)(x), "chunk_size should be None or greater than 0"),
        says(lambda: v(one, out_dims=5)(x), "Dimension out of range"),
    )


@program
def what_does_not_work_inside(lib: Any) -> Any:
    x, outside, kept = b_of(lib), lib.zeros(4, dtype=lib.float64), []
    v = lib.vmap
    v(lambda t: (kept.append(t), t)[1])(x)
    dynamic = "We do not support batching operators that can output dynamic shape"
    return (
        says(lambda: v(lambda t: t.sum().item())(x), r"item\(\) on a Tensor"),
        says(lambda: v(lambda t: t if t.sum() else -t)(x), "data-dependent control flow"),
        says(lambda: v(lambda t: t.nonzero())(x), dynamic),
        says(lambda: v(lambda t: outside.copy_(t))(x), "inplace arithmetic.* is not possible"),
        says(lambda: kept[0].sin(), "your tensor may have escaped from inside a function being vmapped"),
        says(lambda: kept[0].mul_(2), "your tensor may have escaped from inside a function being vmapped"),
        says(
            lambda: v(lambda t: lib.bernoulli(t.abs().clamp(max=1)), randomness="same")(x),
            "same randomness with a batched tensor input",
        ),
    )


@program
def whether_tensors_inside_require_grad(lib: Any) -> Any:
    seen: list[Any] = []
    w = leaf(lib, [1.0, 2.0, 3.0])
    func = lib.func

    def look(t: Any) -> Any:
        y = t * 2
        made = (t, y, t + w[0], t.detach(), t.clone(), lib.zeros_like(t), lib.ones((), dtype=t.dtype) * t, w)
        seen.append([(m.requires_grad, m.is_leaf, m.grad_fn is None) for m in (y, *made[2:])])
        seen.append([m.requires_grad for m in made])
        return y

    for x in (w, w * 1, w.detach()):
        lib.vmap(look)(x)
        lib.vmap(lib.vmap(look))(lib.stack([x, x]))
        with lib.no_grad():
            lib.vmap(look)(x)
        func.grad(lambda t: look(t).sum())(x)
        func.jvp(look, (x,), (lib.ones_like(x),))
        lib.vmap(func.grad(look))(x)
        func.grad(lambda t: lib.vmap(look)(t).sum())(x)
        func.grad(lambda t: func.jvp(look, (t,), (lib.ones_like(t),))[1].sum())(x)
        func.jvp(func.grad(lambda t: look(t).sum()), (x,), (lib.ones_like(x),))
    result = lib.vmap(lambda t: t * 2)(w)
    return seen, result, lib.autograd.grad(result.sum(), w)


@program
def writes_to_views_of_every_kind(lib: Any) -> Any:
    x = a_of(lib)
    views = (
        lambda t: t[0],
        lambda t: t.T,
        lambda t: t.diagonal(),
        lambda t: t.unfold(0, 2, 1)[0],
        lambda t: t.as_strided((2, 2), (1, 2), 1),
        lambda t: t.view(2, 6)[1],
        lambda t: t.narrow(1, 1, 2),
        lambda t: t.split(2)[0].detach(),
    )

    def written(view: Any, t: Any) -> Any:
        t = t * 1
        view(t).mul_(3)
        return (t**2).sum()

    found = []
    for view in views:
        f = functools.partial(written, view)
        found += [lib.vmap(f)(x), lib.vmap(lib.func.grad(f))(x), lib.func.grad(lambda a, f=f: lib.vmap(f)(a).sum())(x)]
        found.append(lib.vmap(lambda t, f=f: lib.func.jvp(f, (t,), (t,))[1])(x))
    return found


@program
def views_of_what_lies_otherwise_in_memory(lib: Any) -> Any:
    x = a_of(lib)

    def flattened(t: Any) -> Any:
        t = t.view_as(t)
        flat = t.reshape(-1)
        flat.mul_(10)
        return flat, t

    return (
        says(lambda: lib.vmap(lambda t: t.view(-1), in_dims=1)(x), "view size is not compatible"),
        says(lambda: lib.vmap(lambda t: t.view_as(t.reshape(-1)), in_dims=1)(x), "view size is not compatible"),
        lib.vmap(flattened, in_dims=1)(x.clone()),
        lib.vmap(flattened)(x.clone()),
        lib.vmap(lib.func.grad(lambda t: (flattened(t * 1)[1] ** 2).sum()), in_dims=1)(x),
    )


@program
def writes_to_a_transposed_number(lib: Any) -> Any:
    def f(t: Any) -> Any:
        t = t * 1
        t.transpose(0, -1).mul_(3)
        return t

    return lib.vmap(f)(constant(lib, [1.0, 2.0])), lib.vmap(lib.func.grad(f))(constant(lib, [1.0, 2.0]))


@program
def writes_to_a_window_of_a_number(lib: Any) -> Any:
    def f(t: Any) -> Any:
        t = t * 1
        t.unfold(0, 1, 1).mul_(3)
        return t * t.unfold(-1, 1, 2)[0]

    x = constant(lib, [1.0, 2.0])
    return lib.vmap(f)(x), lib.vmap(lib.func.grad(f))(x), lib.func.grad(lambda t: lib.vmap(f)(t).sum())(x)


@program
def writes_to_bytes_seen_as_another_dtype(lib: Any) -> Any:
    """Which are no part of the graph."""

    def f(dtype: Any, t: Any) -> Any:
        t = t * 1
        t.view(dtype).zero_()
        return t + lib.ones(4, dtype=lib.float64)

    x = constant(lib, [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    found = []
    for dtype in (lib.int64, lib.int32, lib.float64):
        each = functools.partial(f, dtype)
        found += [lib.vmap(each)(x), lib.func.grad(lambda t, each=each: (lib.vmap(each)(t) ** 2).sum())(x)]
        found.append(lib.vmap(lib.func.grad(lambda t, each=each: (each(t) ** 2).sum()))(x))
    return found


@program
def strides_beyond_a_tensor(lib: Any) -> Any:
    x = constant(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return (
        lib.vmap(lambda t: t.as_strided((2,), (1,), 1))(x),
        lib.vmap(lambda t: t.as_strided((2, 2), (1, 1)))(x),
        says(lambda: lib.vmap(lambda t: t.as_strided((3,), (1,), 1))(x), "not supported inside of vmap"),
        says(lambda: lib.vmap(lambda t: t.as_strided((3,), (1, 1)))(x), "size and stride must have the same length"),
    )


@program
def matrices_that_are_none(lib: Any) -> Any:
    """The axis of the batch is none of a matrix."""
    x, linalg = lib.eye(3, dtype=lib.float64), lib.linalg
    functions = (
        linalg.det,
        linalg.slogdet,
        linalg.inv,
        linalg.eigvals,
        linalg.eigh,
        linalg.matrix_exp,
        linalg.cholesky,
        lib.logdet,
        lambda t: lib.matmul(t[0], t),
        lambda t: lib.matmul(t, t[0]),
    )
    return [says(lambda f=f: lib.vmap(f)(x), "dimension|at least 1D") for f in functions]


@program
def elements_by_flat_positions(lib: Any) -> Any:
    x, k = a_of(lib), lib.tensor([[0, 5, -1], [7, 7, -12]])
    s = constant(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = []
    for dims in ((0, 0), (0, None), (None, 0)):
        a, i = (t if d == 0 else t[0] for t, d in zip((x, k), dims, strict=True))
        found.append(lib.vmap(lib.take, dims)(a, i))
        found.append(lib.vmap(lib.func.grad(lambda t, j: (lib.take(t, j) ** 3).sum()), dims)(a, i))
        found.append(lib.vmap(lib.func.grad(lambda t, j: (t[0, j % 4] * t[j % 3, j % 4]).sum()), dims)(a, i))
        for accumulate in (False, True):
            f = lambda t, j, v, acc=accumulate: lib.put(t, j.abs() % 9, v, accumulate=acc)  # noqa: E731
            if accumulate or dims[1] is None:
                found.append(lib.vmap(f, (*dims, 0))(a, i % 5, s))
    return found


@program
def a_class_for_each_of_a_batch(lib: Any) -> Any:
    k, x = lib.tensor([[0, 2], [1, 1]]), b_of(lib)
    return (
        lib.vmap(lambda t: lib.nn.functional.one_hot(t, 3))(k),
        lib.vmap(lambda t: lib.isin(t, k[0]))(k),
        lib.vmap(lambda t: lib.isin(t, t[:1]))(k),
        lib.vmap(lambda t: t.take(lib.tensor([3, 0])))(x),
    )


@program
def a_norm_with_scales_of_each(lib: Any) -> Any:
    """The gradients go back from vmap to scales that were batched."""
    x = (lib.arange(48.0, dtype=lib.float64).reshape(2, 3, 4, 2) * 0.7).sin()
    w, b = leaf(lib, [1.0, 2.0, 0.5, 1.5]), leaf(lib, [0.1, 0.2, 0.3, 0.4])

    def loss(w: Any, b: Any, x: Any) -> Any:
        return (lib.nn.functional.group_norm(x, 2, w, b) ** 3).sum()

    def adapted(x: Any) -> Any:
        gw, gb = lib.func.grad(loss, argnums=(0, 1))(w, b, x)
        return loss(w - 0.1 * gw, b - 0.1 * gb, x)

    return lib.autograd.grad(lib.vmap(adapted)(x).sum(), (w, b))


@program
def nan_in_a_batch_under_anomaly_mode(lib: Any) -> Any:
    with lib.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fine = lib.vmap(lib.func.grad(lambda t: t.sum()))(constant(lib, [[-1.0]]))
        return fine, says(
            lambda: lib.vmap(lib.func.grad(lambda t: t.sqrt().sum()))(constant(lib, [[1.0], [-1.0]])),
            "Function 'SqrtBackward0' returned nan values in its 0th output",
        )


@pytest.mark.torch
@pytest.mark.parametrize("case", PROGRAMS, ids=name_of)
def test_as_torch(case: Program) -> None:
    ours, theirs = outcomes(case)
    assert ours == theirs


# Where torch refuses, or is wrong -------------------------------------------------------------------------------------


def test_a_result_that_does_not_vary_takes_any_out_dim() -> None:
    """torch expands it as if the axis were in front, which raises or, for a square one, transposes."""
    c = constant(pullback, [1.0, 2.0])
    found = [vmap(lambda x: c, out_dims=d)(pullback.ones(3)) for d in (0, 1, -1)]
    assert [list(f.shape) for f in found] == [[3, 2], [2, 3], [2, 3]]
    assert found[1].tolist() == [[1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: pullback.nonzero(x, as_tuple=True),
        lambda x: pullback.where(x > 0),
        lambda x: pullback.masked_select(x, x > 0),
        lambda x: pullback.unique(x),
        lambda x: pullback.unique_consecutive(x),
    ],
)
def test_a_dynamic_shape_is_refused_with_a_way_out(f: Any) -> None:
    with pytest.raises(RuntimeError, match=r"dynamic shape.*\n.*pullback.where"):
        vmap(f)(pullback.ones(2, 3))


def test_argwhere_has_a_dynamic_shape_too() -> None:
    """torch loops over it, and raises only if the shapes differ."""
    with pytest.raises(RuntimeError, match="dynamic shape"):
        vmap(pullback.argwhere)(pullback.ones(2, 3))


def test_a_tensor_of_an_earlier_vmap_is_refused() -> None:
    """torch takes it for one of the vmap that runs now."""
    kept = []

    def f(x: Any) -> Any:
        kept.append(x)
        return kept[0] + x

    vmap(f)(pullback.ones(3))
    with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
        vmap(f)(pullback.ones(3))


def test_a_write_to_a_piece_that_came_out_is_seen_by_the_whole() -> None:
    """torch refuses it, as it does of every piece."""
    x = leaf(pullback, [[1.0, 2.0], [3.0, 4.0]])
    for cut in (lambda t: t.chunk(2), lambda t: t.split(1), lambda t: t.unbind()):
        y = x * 1
        first, _ = vmap(cut)(y)
        first.mul_(10)
        assert first._base is y
        assert y.tolist() == [[10.0, 2.0], [30.0, 4.0]]
        (g,) = pullback.autograd.grad((y**2).sum(), x)
        assert g.tolist() == [[200.0, 4.0], [600.0, 8.0]]


def test_a_tensor_inside_is_seen_as_if_it_were_contiguous() -> None:
    """torch tells of the memory that all of them share."""

    def f(t: Any) -> Any:
        assert t.stride() == (3, 1)
        assert t.is_contiguous()
        return t.as_strided((3, 2), (1, 3))

    x = a_of(pullback)
    assert vmap(f, in_dims=2, out_dims=2)(x).tolist() == x.transpose(0, 1).tolist()


def test_strides_of_what_lies_otherwise_in_memory_are_not_written() -> None:
    """torch writes by the strides of the memory that all of them share; here it would be a copy that is written."""

    def f(t: Any) -> Any:
        t.as_strided((2,), (1,), 1).mul_(10)
        return t * 1

    x = pullback.arange(6.0).reshape(3, 2)
    for written in (
        lambda: vmap(f, in_dims=1)(x),
        lambda: vmap(f)(x.t()),
        lambda: vmap(lambda t: f(t * 1))(x.t()),
        lambda: vmap(lambda t: t.as_strided((2,), (1,), 1), in_dims=1)(x).mul_(10),
        lambda: pullback.func.jvp(f, (x.t(),), (x.t(),)),
    ):
        with pytest.raises(RuntimeError, match=r"a read-only array.*\n.*begin with a contiguous\(\) tensor"):
            written()
        assert x.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert vmap(f)(x.t().contiguous()).tolist() == [[0.0, 20.0, 40.0], [1.0, 30.0, 50.0]]


def test_strides_of_a_part_of_the_memory_are_written() -> None:
    """torch counts the offset from the beginning of the memory, and finds the place outside of the tensor."""

    def f(t: Any) -> Any:
        t.as_strided((2,), (1,), 1).mul_(10)
        return t * 1

    for run in (vmap(f), lambda t: pullback.func.jvp(vmap(f), (t,), (t.clone(),))[0]):
        x = pullback.arange(12.0).reshape(4, 3)
        assert run(x[2:]).tolist() == [[6.0, 70.0, 80.0], [9.0, 100.0, 110.0]]
        assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 70.0, 80.0], [9.0, 100.0, 110.0]]


@pytest.mark.parametrize("write", [lambda v: v.mul_(2), lambda v: v.__setitem__(0, 5.0), lambda v: v.zero_()])
def test_windows_that_overlap_are_not_written(write: Any) -> None:
    """torch writes the elements that several windows share once for each."""

    def f(t: Any) -> Any:
        write(t.unfold(0, 2, 1))
        return t

    x = b_of(pullback)
    before = x.tolist()
    for run in (lambda: vmap(f)(x), lambda: pullback.func.jvp(f, (x[0],), (x[0].clone(),))):
        with pytest.raises(RuntimeError, match="a single memory location"):
            run()
        assert x.tolist() == before


def test_too_many_arguments_are_refused_as_outside() -> None:
    for f in (lambda t: t.sort(0, True, True), lambda t: pullback.aminmax(t, 0), lambda t: t.expand(-1, 3, 4)):
        with pytest.raises((TypeError, RuntimeError)):
            vmap(f)(b_of(pullback))
    with pytest.raises(TypeError, match="an integer"):
        vmap(lambda t: t.sum("x"))(b_of(pullback))


def test_reverse_mode_by_hand_inside() -> None:
    """torch refuses requires_grad_() inside of a transform."""

    def f(r: Any) -> Any:
        r = r.detach().requires_grad_()
        (r**3).sum().backward()
        return r.grad

    assert vmap(f)(constant(pullback, [[1.0, 2.0], [3.0, 0.0]])).tolist() == [[3.0, 12.0], [27.0, 0.0]]


def test_columns_written_at_indices_that_vary() -> None:
    """torch takes the axes of the values in another order than those of the index."""
    a, k = a_of(pullback), pullback.tensor([[0, 2], [1, 3]])

    def f(x: Any, j: Any) -> Any:
        y = x.clone()
        y[:, j] = x[:, :2] * 10
        return y

    assert vmap(f)(a, k).tolist() == [f(x, j).tolist() for x, j in zip(a, k, strict=True)]

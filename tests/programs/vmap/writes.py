"""Writes in place, and indexing by tensors of the batch."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from tests.programs.vmap.common import a_of, b_of
from tests.side_by_side import constant, leaf, programs, refused

PROGRAMS, program = programs()


# in place -------------------------------------------------------------------------------------------------------------


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


# indexing by tensors of the batch -------------------------------------------------------------------------------------


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


# what fits ------------------------------------------------------------------------------------------------------------


@program
def a_value_with_more_axes_than_its_place(lib: Any) -> Any:
    def at(index: Any, value: Any) -> Any:
        def f(t: Any) -> Any:
            t = t.clone()
            t[index] = value
            return t

        return f

    rows, w = a_of(lib), constant(lib, [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    calls = [(0, w), ([0], w[:, None]), ((Ellipsis, 0), w[:, :3]), ((0, 1), w[0])]
    return [refused(functools.partial(lib.vmap(at(index, value)), rows)) for index, value in calls]


@program
def a_value_with_leading_axes_of_length_1(lib: Any) -> Any:
    def f(t: Any) -> Any:
        t = t.clone()
        t[0] = t[1:2] * 2
        return t

    return lib.vmap(f)(a_of(lib)), lib.func.jacrev(f)(a_of(lib)[0]).sum((0, 1))


@program
def the_row_written_to_itself(lib: Any) -> Any:
    def f(t: Any) -> Any:
        t = t.clone()
        t[0] = t * t
        return t

    return lib.vmap(f)(a_of(lib)[:, :1])


@program
def writes_over_an_axis_without_elements(lib: Any) -> Any:
    def masked(t: Any) -> Any:
        return t.clone().masked_fill_(t > 1, 3.0)

    empty = a_of(lib)[:0]
    return [lib.vmap(f)(empty) for f in (masked, lambda t: t.repeat(2, 1, 1), lambda t: t.cumsum(0).long())]


@program
def complex_values_written_to_real_tensors(lib: Any) -> Any:
    warnings.filterwarnings("ignore", message="Casting complex values to real")
    z = lib.tensor([[1 + 1j, -2j], [3.0, 4]], dtype=lib.complex128, requires_grad=True)

    def copied(t: Any, value: Any) -> Any:
        return (t * 1).copy_(value)

    def put(t: Any, value: Any) -> Any:
        t = t * 1
        t[0] = value[1]
        return t

    found = []
    for f in (copied, put):
        x = lib.ones(2, 2, dtype=lib.float64)
        ways = [
            lib.vmap(f)(x, z),
            lib.vmap(lambda t, f=f: f(t, z[0]))(x),
            lib.func.jvp(lambda t, f=f: f(t, z), (x,), (x,))[0],
            lib.func.vjp(lambda t, f=f: f(t, z), x)[0],
            lib.func.jvp(lambda v, f=f, x=x: f(x, v), (z.detach(),), (z.detach(),))[0],
        ]
        for y in ways[:3]:
            found.append((y, lib.autograd.grad((y * y.detach()).sum(), z)))
        found += ways[3:]
        for dtype in (lib.uint8, lib.int64, lib.bool):
            found.append(lib.vmap(f, chunk_size=1)(x.to(dtype), z.detach()))
    return found

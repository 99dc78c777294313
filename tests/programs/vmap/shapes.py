"""Shapes that depend on values, and structures of axes."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

from tests.programs.vmap.common import a_of, b_of
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


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
    """The axis of the batch is not an axis of the matrix."""
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

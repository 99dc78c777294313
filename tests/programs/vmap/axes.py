"""`in_dims` and `out_dims`, results and refusals."""

from __future__ import annotations

from typing import Any

from tests.programs.vmap.common import a_of, b_of
from tests.side_by_side import constant, programs, says

PROGRAMS, program = programs()


# in_dims and out_dims -------------------------------------------------------------------------------------------------


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


# results --------------------------------------------------------------------------------------------------------------


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


# refusals -------------------------------------------------------------------------------------------------------------


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


@program
def nothing_that_varies(lib: Any) -> Any:
    x, none = constant(lib, [1.0]), "vmap(f)(<inputs>): got no inputs. Maybe you forgot to add inputs"

    def f(*args: Any, **kwargs: Any) -> Any:
        return x

    return [
        says(lambda: lib.vmap(f)(), none),
        says(lambda: lib.vmap(f)(b=x), none),
        says(lambda: lib.vmap(f, in_dims=())(b=x), none),
        says(lambda: lib.vmap(f, in_dims=(None,))(x), "vmap: Expected at least one Tensor to vmap over"),
        says(lambda: lib.vmap(f)({}), "vmap: Expected at least one Tensor to vmap over"),
        says(lambda: lib.vmap(f)({}, b=x), "vmap: Expected at least one Tensor to vmap over"),
    ]


@program
def keyword_arguments_do_not_vary(lib: Any) -> Any:
    return lib.vmap(lambda x, *, b: (x * b).sum())(constant(lib, [[1.0, 2.0], [3.0, 4.0]]), b=constant(lib, [5.0, 6.0]))

"""Values, dtypes and memory of results at their edges: half precision, writes in place, empty tensors, layouts."""

from __future__ import annotations

import warnings
from typing import Any

from tests.side_by_side import programs, refused

PROGRAMS, program = programs()


@program
def activations_write_into_bfloat16(lib: Any) -> Any:
    F, found = lib.nn.functional, []
    for name in ("relu", "silu", "hardtanh", "leaky_relu", "elu", "selu", "celu", "hardswish", "hardsigmoid", "relu6"):
        x = lib.tensor([-1.0, 7.0]).to(lib.bfloat16)
        found.append((getattr(F, name)(x, inplace=True) is x, x))
    return found


@program
def running_statistics_of_bfloat16_are_written(lib: Any) -> Any:
    mean, variance = lib.zeros(2).to(lib.bfloat16), lib.ones(2).to(lib.bfloat16)
    x = lib.tensor([[1.0, 2.0], [3.0, 8.0]]).to(lib.bfloat16)
    return lib.nn.functional.batch_norm(x, mean, variance, training=True), mean, variance


@program
def comparisons_in_place_have_the_gradient_zero(lib: Any) -> Any:
    found = []
    for name in ("gt_", "ge_", "lt_", "le_", "eq_", "ne_"):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        z = getattr(y, name)(3.0)
        z.sum().backward()
        found.append((x.grad, z.requires_grad, z.grad_fn.name(), z.detach()))
    return found


@program
def a_comparison_in_place_with_a_tensor_that_requires_grad(lib: Any) -> Any:
    x, y = lib.tensor([1.0, 2.0], requires_grad=True), lib.ones(2)
    y.eq_(x)
    y.sum().backward()
    return x.grad, y.detach()


@program
def a_comparison_written_into_a_view(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y[0].gt_(1.0)
    y.sum().backward()
    return x.grad


@program
def bfloat16_is_compared_with_a_number_of_its_precision(lib: Any) -> Any:
    x = lib.tensor([0.3]).to(lib.bfloat16)
    return x == 0.3, x != 0.3, x < 0.3, x > 0.3, x <= 0.3, x >= 0.3, x == lib.tensor(0.3), x == lib.tensor([0.3])


@program
def bounds_of_half_precision(lib: Any) -> Any:
    found = []
    for dtype in (lib.float16, lib.bfloat16):
        x = lib.tensor([0.3, 0.5]).to(dtype).requires_grad_()
        for y in (x.clamp(max=0.3), x.clamp(0.3), lib.clamp_max(x, 0.3)):
            found.append((y.detach(), lib.autograd.grad(y.sum(), x)[0]))
        threshold = lib.nn.functional.threshold(x, 0.3, 0.7)
        found.append((threshold.detach(), lib.autograd.grad(threshold.sum(), x)[0]))
        found.append((lib.nn.functional.hardshrink(x.detach(), 0.3), lib.nn.functional.softshrink(x.detach(), 0.3)))
    return found


@program
def a_bound_beyond_half_precision(lib: Any) -> Any:
    return lib.ones(2).half().clamp(max=1e6)


@program
def norms_of_half_precision_with_single_parameters(lib: Any) -> Any:
    F, found = lib.nn.functional, []
    for dtype in (lib.float16, lib.bfloat16):
        x = lib.tensor([[1.3, 2.0], [3.0, 4.0]]).to(dtype)
        w, b = lib.ones(2), lib.zeros(2)
        found += [F.layer_norm(x, (2,), w, b), F.rms_norm(x, (2,), w), F.group_norm(x, 1, w, b)]
        found += [F.batch_norm(x, lib.zeros(2), lib.ones(2), w, b, training) for training in (True, False)]
        found += [F.batch_norm(x, None, None, w, b, True), F.instance_norm(x[None], None, None, w, b)]
    return [(str(y.dtype)[-8:], y.float().mul(8).round()) for y in found]


@program
def the_gradient_of_single_parameters_of_a_half_norm(lib: Any) -> Any:
    x, w = lib.tensor([[1.0, 2.0], [3.0, 5.0]]).half().requires_grad_(), lib.ones(2, requires_grad=True)
    lib.nn.functional.layer_norm(x, (2,), w, lib.zeros(2)).sum().backward()
    return str(x.grad.dtype)[-7:], w.grad.round(decimals=3)


@program
def scattering_single_into_half(lib: Any) -> Any:
    x = lib.zeros(2, 2).to(lib.bfloat16)
    found = [
        x.slice_scatter(lib.ones(1, 2), 0, 0, 1),
        x.select_scatter(lib.ones(2), 0, 0),
        x.diagonal_scatter(lib.ones(2)),
    ]
    return [*found, lib.as_strided_scatter(x, lib.ones(2), (2,), (1,))]


@program
def views_of_bfloat16(lib: Any) -> Any:
    found = []
    for view in (lambda x: lib.einsum("ii->i", x), lib.linalg.diagonal, lambda x: x.diagonal()):
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]]).to(lib.bfloat16)
        y = view(x)
        y.mul_(2)
        found.append((x, y._is_view()))
    return found


@program
def a_write_to_a_diagonal_by_einsum_is_recorded(lib: Any) -> Any:
    x = lib.ones(2, 2, requires_grad=True)
    y = x * 1
    lib.einsum("ii->i", y).mul_(3)
    y.sum().backward()
    return x.grad


@program
def trapezoids_that_broadcast(lib: Any) -> Any:
    y, x = lib.ones(2, 3, 4), lib.arange(3.0)[:, None] * lib.ones(3, 4)
    return lib.trapezoid(y, x, dim=1), lib.trapezoid(lib.ones(3, 1), lib.arange(4.0) * lib.ones(3, 4))


@program
def true_and_false_as_an_index_of_another_dtype(lib: Any) -> Any:
    x, y, z = lib.zeros(2), lib.zeros(2, dtype=lib.int64), lib.zeros(2)
    x[True], y[True], z[False] = lib.tensor([1, 2]), lib.tensor([1.5, 2.0]), lib.tensor([1, 2])
    return x, y, z


@program
def a_list_as_an_index_of_another_dtype(lib: Any) -> Any:
    x = lib.zeros(2)
    x[[0, 1]] = lib.tensor([1, 2])
    return x


@program
def empty_pairs_as_complex_numbers(lib: Any) -> Any:
    return [lib.view_as_complex(lib.zeros(*shape)).shape for shape in ((0, 2), (2, 0, 2))]


@program
def results_of_reductions_are_no_views(lib: Any) -> Any:
    x, F = lib.arange(9.0).reshape(3, 3).requires_grad_(), lib.nn.functional
    found = [
        x.quantile(0.5),
        x.quantile(0.5, dim=1),
        x.nanquantile(0.5),
        lib.linalg.norm(x, 2),
        lib.linalg.norm(x, "nuc"),
    ]
    found.append(F.grid_sample(x[None, None], lib.zeros(1, 2, 2, 2), align_corners=False))
    return [y._is_view() for y in found]


@program
def a_write_to_a_quantile(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3).requires_grad_()
    y = x.quantile(lib.tensor([0.5, 0.25]), dim=1)
    y.mul_(2)
    y.sum().backward()
    return y.detach(), x.grad


@program
def a_power_of_zero_of_the_smallest_number(lib: Any) -> Any:
    found = []
    for dtype, smallest in ((lib.float32, 1e-40), (lib.float64, 5e-324)):
        x = lib.tensor([smallest], dtype=dtype, requires_grad=True)
        found += lib.autograd.grad(x.pow(lib.zeros(1, dtype=dtype)).sum(), x)
    return found


@program
def sinc_at_infinity(lib: Any) -> Any:
    x = lib.tensor([float("inf"), float("-inf"), 0.0], requires_grad=True)
    y = lib.sinc(x)
    y.sum().backward()
    return y.detach(), x.grad


@program
def a_range_beyond_the_integers(lib: Any) -> Any:
    return lib.arange(2**63)


@program
def a_step_to_beyond_the_integers(lib: Any) -> Any:
    return lib.arange(0, 2**63, 2**62)


@program
def matmul_from_the_other_side(lib: Any) -> Any:
    return lib.ones(2, 2).__rmatmul__(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))


@program
def a_batch_norm_of_nothing(lib: Any) -> Any:
    return lib.nn.functional.batch_norm(lib.zeros(0), None, None, training=True)


@program
def an_empty_index_of_any_dtype(lib: Any) -> Any:
    x, none = lib.ones(2, 3), lib.zeros(0, 3, dtype=lib.uint8)
    return lib.gather(x, 0, none), x.scatter(0, none, lib.zeros(0, 3)), x.scatter_add(0, none, lib.zeros(0, 3))


@program
def a_batch_in_the_last_axis_made_contiguous(lib: Any) -> Any:
    x = lib.arange(24.0).reshape(2, 3, 4)
    rows = [lib.vmap(lambda t: t.contiguous().view(-1), in_dims=d)(x) for d in (0, 1, 2)]
    return [*rows, lib.vmap(lambda t: t.t().contiguous().view(-1), in_dims=-1)(x)]


@program
def results_of_transposed_tensors_can_be_viewed(lib: Any) -> Any:
    x, F = lib.arange(6.0).reshape(2, 3).t(), lib.nn.functional
    found = [lib.cat([x, x]), lib.stack([x, x]), x[None].sum(0), x.cumsum(0), x.softmax(0), x.log_softmax(1)]
    index = lib.zeros(1, 2, dtype=lib.int64)
    found += [x.scatter(0, index, 1.0), x.scatter_add(0, index, x), x.gather(0, index), x.index_add(0, index[0], x[:2])]
    found += [F.layer_norm(x, (2,)), F.batch_norm(x, None, None, training=True), x.cummax(0).values, x.roll(1, 0)]
    return [y.view(-1) for y in found]


@program
def a_write_to_a_flat_form_reaches_the_result(lib: Any) -> Any:
    y = lib.arange(6.0).reshape(2, 3).t().cumsum(0)
    y.reshape(-1)[0] = 100.0
    return y.sum()


@program
def results_that_keep_the_layout_of_a_transposed_tensor(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3).t()
    found = [x.clone(), x.exp(), x.relu(), x * 2, x.flip(0), lib.lerp(x, x, 0.5), x.index_fill(0, lib.tensor([0]), 1.0)]
    return [y.stride() for y in found]


@program
def small_integers_are_promoted_before_they_are_multiplied(lib: Any) -> Any:
    small, flags = lib.tensor([25, 200], dtype=lib.uint8), lib.tensor([True, False])
    x, whole = lib.tensor([1.0, 2.0]), lib.tensor([1, 2], dtype=lib.int16)
    return (
        x.clone().addcmul_(small, small, value=0.5),
        lib.addcmul(whole, small, flags, value=3),
        lib.add(x, small, alpha=3),
        lib.add(whole, small, alpha=300),
        whole.clone().sub_(small, alpha=2),
    )


@program
def negative_exponents_in_tensors(lib: Any) -> Any:
    n = lib.tensor(-3)
    return [2**n, lib.tensor([2, 1, -1]) ** n, lib.pow(1, n), lib.tensor(2).pow_(n), lib.tensor(2) ** lib.tensor([-3])]


@program
def losses_of_half_precision_and_a_number_of_another_dtype(lib: Any) -> Any:
    x, losses = lib.ones(2, 2, dtype=lib.bfloat16), lib.nn.functional
    others = [lib.tensor(2.0, dtype=getattr(lib, name)) for name in ("float16", "float32", "float64")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the broadcast
        found = [loss(x, t) for loss in (losses.mse_loss, losses.l1_loss, losses.smooth_l1_loss) for t in others]
    return *found, losses.mse_loss(others[1], x[0, 0])


@program
def copies_of_repeated_elements_keep_the_order_of_their_axes(lib: Any) -> Any:
    def strides(name: str) -> Any:
        x = lib.ones(2, 3).to(getattr(lib, name))
        repeated = [x.expand(2, 2, 3), x[:, None].expand(2, 4, 3), x.t()[:, :, None].expand(3, 2, 5)]
        return [t.clone().stride() for t in repeated], repeated[0].clone().view(12).tolist()[:2]

    return [strides(name) for name in ("float32", "bfloat16", "bool", "int64", "complex64")]


@program
def comparisons_in_place_with_complex_numbers_that_require_grad(lib: Any) -> Any:
    x, y = lib.tensor([1.0, 2.0]), lib.tensor([1 + 0j, 2 + 1j], requires_grad=True)
    x.eq_(y)
    return x.requires_grad, x.tolist(), lib.autograd.grad(x.sum(), y)


@program
def single_beside_half_stays_single(lib: Any) -> Any:
    x, half = lib.zeros(2, 2), lib.tensor([0.3, 0.7]).to(lib.bfloat16)
    found = [x.select_scatter(half, 0, 0), x.slice_scatter(half[None], 0, 0, 1), x.diagonal_scatter(half)]
    found.append(lib.as_strided_scatter(x, half, (2,), (1,)))
    y = lib.ones(2, requires_grad=True) * 1
    y[:] = half
    return [str(t.dtype).partition(".")[2] for t in (*found, y)]


@program
def the_first_argument_says_the_dtype_of_a_root_mean_square_norm(lib: Any) -> Any:
    found = []
    for a in (lib.bfloat16, lib.float16, lib.float32, lib.float64):
        for b in (lib.bfloat16, lib.float32, lib.float64):
            norm = lib.nn.functional.rms_norm(lib.ones(2, 3, dtype=a), (3,), lib.ones(3, dtype=b))
            found.append(str(norm.dtype).partition(".")[2])
    return found


@program
def single_with_parameters_of_half_precision(lib: Any) -> Any:
    x, half, F = lib.ones(2, 4, 3), lib.ones(4).to(lib.bfloat16), lib.nn.functional
    return [
        refused(lambda: F.layer_norm(x, (3,), half[:3])),
        refused(lambda: F.group_norm(input=x, num_groups=2, weight=half)),
        refused(lambda: F.batch_norm(x, half, half)),
        refused(lambda: F.instance_norm(x, weight=half)),
    ]


@program
def values_of_two_dtypes_are_refused(lib: Any) -> Any:
    F, found = lib.nn.functional, []
    for a, b in (("bfloat16", "float32"), ("float32", "bfloat16"), ("float16", "float32")):
        x, w, i = lib.ones(3, dtype=getattr(lib, a)), lib.ones(3, dtype=getattr(lib, b)), lib.tensor([0, 1, 2])
        calls = [
            lambda x=x, w=w, i=i: x.scatter(0, i, w),
            lambda x=x, w=w, i=i: x.scatter_add(0, i, w),
            lambda x=x, w=w, i=i: x.scatter_reduce(0, i, w, "amax"),
            lambda x=x, w=w: F.prelu(x[None], w),
            lambda x=x, w=w, i=i: F.embedding_bag(i[None], x[:, None], per_sample_weights=w[None], mode="sum"),
        ]
        found += [refused(call) for call in calls]
    return found


@program
def dropout_in_evaluation_returns_its_input(lib: Any) -> Any:
    found = []
    for dtype in (lib.bfloat16, lib.float16, lib.float32):
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]]).to(dtype)
        y = lib.nn.functional.dropout(x, 0.3, training=False)
        y.mul_(2)
        found.append((y is x, x, lib.nn.functional.alpha_dropout(x, 0.3) is x))
    return found


@program
def the_next_number_of_bfloat16(lib: Any) -> Any:
    x = lib.tensor([[1.0, 2.0, 0.0], [-1.0, 5.0, 3.0]]).to(lib.bfloat16).requires_grad_()
    y = lib.tensor([2.0, 2.0, -1.0]).to(lib.bfloat16).requires_grad_()
    found = lib.nextafter(x, y)
    return found, lib.autograd.grad(found.sum(), (x, y)), x.detach().clone().nextafter_(y.detach())


@program
def many_numbers_of_half_precision_are_added_in_single(lib: Any) -> Any:
    index, found = lib.zeros(3000, dtype=lib.int64), []
    for dtype in (lib.bfloat16, lib.float16):
        x, z = lib.full((3000,), 0.1).to(dtype), lib.zeros(2, dtype=dtype, requires_grad=True)
        found += [
            z.scatter_add(0, index, x),
            z.scatter_reduce(0, index, x, "sum"),
            z.scatter_reduce(0, index, x, "mean") * 3000,
            x.float().sum(dtype=dtype),
            x.cumsum(0, dtype=dtype)[-1],
            lib.masked.sum(x),
            lib.autograd.grad(z[:1].expand(3000), z, x)[0],
            lib.autograd.grad(z.as_strided((3000,), (0,)), z, x)[0],
        ]
    return [[round(v / 10) for v in t.detach().reshape(-1).tolist()] for t in found]


@program
def norms_of_single_numbers_do_not_overflow(lib: Any) -> Any:
    found = []
    for value in (1e308, 5e-324, -1e308):
        x = lib.tensor([[value], [1.0]], dtype=lib.float64, requires_grad=True)
        norm = x.norm(dim=1)
        found += [norm, lib.autograd.grad(norm.sum(), x), lib.nn.functional.normalize(x), x[0].norm(3), x[0, 0].norm()]
        found.append(lib.nn.functional.cosine_similarity(x, lib.ones_like(x)))
    return found


@program
def an_empty_axis_is_divided(lib: Any) -> Any:
    x = lib.zeros(0, 4)
    return [list(x.unflatten(*given).shape) for given in ((1, (2, -1)), (1, (-1,)), (0, (-1, 2)), (0, (0,)))]


@program
def dropout_of_all_draws_nothing(lib: Any) -> Any:
    F, x = lib.nn.functional, lib.ones(2, 3, 2)
    return [lib.func.vmap(lambda x, f=f: f(x, 1.0))(x) for f in (F.dropout, F.dropout1d)] + [
        lib.func.vmap(lambda x: F.alpha_dropout(x, 1.0, True))(x)
    ]


@program
def products_are_computed_in_the_dtype_of_the_result(lib: Any) -> Any:
    a, b = lib.tensor([1 / 3, 1 / 7]), lib.tensor([3.3, 0.7])
    zero = lib.zeros(2, dtype=lib.float64)
    products = lib.addcmul(zero, a, b) == a.double() * b.double()
    return products, lib.addcdiv(zero, a, b) == a.double() / b.double()


@program
def a_factor_that_is_not_converted_is_saved_itself(lib: Any) -> Any:
    whole, x = lib.tensor([3, 2]), lib.tensor([1.5, 2.5], requires_grad=True)
    y = lib.addcmul(whole, whole, x, value=2)
    whole.data[0] = 5
    y.sum().backward()
    return x.grad


@program
def norms_of_bfloat16_within_two_transforms(lib: Any) -> Any:
    x = lib.tensor([[1.5, -1.5], [1.25, 0.75]], dtype=lib.bfloat16)
    return lib.func.vmap(lib.func.jacrev(lambda t: (t + 2).norm()))(x)

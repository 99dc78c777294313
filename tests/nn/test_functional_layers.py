"""What the samples of convolutions, poolings, normalisations, embeddings and attention cannot show.

What is changed in place, what is random, work that is divided into blocks, half precision, sparse gradients, and the
linear maps along axes on their own.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.nn.functional as F  # noqa: N812 - torch's custom
from pullback.kernels import taps
from pullback.nn.functional import moments
from pullback.nn.functional.images import pooling as pooling_module
from pullback.nn.functional.images import trilinear
from pullback.ops import TABLE
from tests.oracle import array_of, difference, difference_of_gradients


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def numbers(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def both(torch: ModuleType, *arrays: np.ndarray[Any, Any], grad: bool = True) -> list[tuple[Any, list[Any]]]:
    """Either library with tensors of its own."""
    made = []
    for lib in (pullback, torch):
        leaves = [lib.tensor(a) for a in arrays]
        for t in leaves:
            t.requires_grad_(grad and t.is_floating_point())
        made.append((lib, leaves))
    return made


def compare(torch: ModuleType, name: str, *arrays: np.ndarray[Any, Any], scale: float = 10.0, **how: Any) -> None:
    """Values and gradients of one function of the tensors."""
    outs, gradients = [], []
    for lib, leaves in both(torch, *arrays):
        out = getattr(lib.nn.functional, name)(*leaves, **how)
        outs.append(out)
        weights = lib.tensor(numbers(*out.shape, seed=7, dtype=array_of(out).dtype.name))
        gradients.append(lib.autograd.grad(out, [t for t in leaves if t.requires_grad], weights))
    assert not difference(*outs, scale)
    assert not difference_of_gradients(*gradients, 100 * scale)


# Writes to results ----------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("batch_norm", (None, None, None, None, True)),
        ("instance_norm", ()),
        ("group_norm", (2,)),
        ("layer_norm", ((3,),)),
        ("rms_norm", ((3,),)),
        ("local_response_norm", (2,)),
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_was_normalised_may_be_written_to(
    torch: ModuleType, name: str, given: tuple[Any, ...], create_graph: bool
) -> None:
    found = []
    for lib, (x,) in both(torch, numbers(2, 4, 3)):
        y = getattr(lib.nn.functional, name)(x, *given)
        (grad,) = lib.autograd.grad(y.mul_(lib.tensor(numbers(3, seed=1))).relu_().sum(), x, create_graph=create_graph)
        found.append([grad, *(lib.autograd.grad(grad.sin().sum(), x) if create_graph else ())])
    assert not difference_of_gradients(*found, 1000)


# Work in blocks -------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("block", [1, 200, 700, 10**6])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_do_not_depend_on_the_size_of_a_block(
    torch: ModuleType, monkeypatch: pytest.MonkeyPatch, block: int, groups: int
) -> None:
    monkeypatch.setattr(trilinear, "_COLUMNS", block)
    x, w, b = numbers(5, 4, 6, 5), numbers(6, 4 // groups, 3, 2, seed=1), numbers(6, seed=2)
    compare(torch, "conv2d", x, w, b, stride=(1, 2), padding=1, groups=groups)
    compare(torch, "conv_transpose2d", x, numbers(4, 6 // groups, 3, 2), b, stride=2, output_padding=1, groups=groups)
    compare(torch, "conv2d", x, numbers(4, 1, 3, 2), stride=(2, 1), padding=1, groups=4)


@pytest.mark.torch
def test_a_transposed_convolution_may_be_padded_beyond_its_stride(torch: ModuleType) -> None:
    for padding in (0, 1, 4):
        compare(
            torch, "conv_transpose1d", numbers(1, 2, 5), numbers(2, 3, 3), padding=padding, output_padding=2, dilation=3
        )


@pytest.mark.torch
@pytest.mark.parametrize("kernel", [(7,), (2,), (9, 3), (9, 9)])
def test_windows_that_are_larger_than_their_places_are_added_place_by_place(torch: ModuleType, kernel: Any) -> None:
    space = len(kernel)
    x, w = numbers(2, 3, *[10] * space), numbers(2, 3, *kernel)
    for stride in (1, 2, 9):
        compare(torch, f"conv{space}d", x, w, stride=stride)


@pytest.mark.torch
@pytest.mark.parametrize("block", [1, 10, 10**6])
def test_poolings_do_not_depend_on_the_size_of_a_block(
    torch: ModuleType, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(pooling_module, "_BLOCK", block)
    monkeypatch.setattr(taps, "_BLOCK", block)
    x = numbers(3, 4, 7, 6)
    compare(torch, "max_pool2d", x, kernel_size=3, stride=2, padding=1)
    compare(torch, "max_pool2d", x, kernel_size=5, stride=1)  # more elements than places
    compare(torch, "avg_pool2d", x, kernel_size=3, stride=2, padding=1, count_include_pad=False)
    compare(torch, "adaptive_avg_pool2d", x, output_size=(4, 5))
    compare(torch, "interpolate", x, size=(9, 4), mode="bilinear")


@pytest.mark.torch
def test_a_pooling_of_infinities_finds_no_padding(torch: ModuleType) -> None:
    x = np.full((1, 1, 5, 4), -np.inf)
    for size, padding in ((3, 1), (2, 1), (4, 2)):
        found = [
            lib.nn.functional.max_pool2d(lib.tensor(x), size, 1, padding, return_indices=True)[1]
            for lib in (pullback, torch)
        ]
        assert found[0].tolist() == found[1].tolist()


# Maps along axes ------------------------------------------------------------------------------------------------------


def _some_maps() -> list[taps.Taps]:
    rng = np.random.default_rng(3)
    rows = np.sort(rng.integers(0, 9, 40))
    start = np.arange(3) * 41 // 3
    return [
        taps.Taps(9, 12, rows, rng.integers(0, 12, 40), rng.normal(size=40)),
        taps.Taps(9, 12, rows, rng.integers(0, 12, 40)),
        taps.runs(41, start, start + 14),
        taps.runs(8, np.arange(-2, 8), np.arange(1, 11), evenly=True),
        taps.picked(6, rng.integers(0, 6, 50)),
        taps.picked(6, np.array([2, 1, 0, 1, 2, 3, 4, 5, 5, 5])),
        taps.picked(1, np.zeros(30, np.int64)),
        taps.Taps(3, 2, np.array([], np.int64), np.array([], np.int64)),
        taps.Taps(5, 4, np.array([1, 3]), np.array([2, 0]), np.array([2.0, 3.0])),
    ]


@pytest.mark.parametrize("number", range(len(_some_maps())))
def test_a_map_is_its_matrix_and_so_is_its_transpose(number: int) -> None:
    m = _some_maps()[number]
    matrix = np.zeros((m.outputs, m.inputs))
    np.add.at(matrix, (m.rows, m.columns), 1.0 if m.weights is None else m.weights)
    for found, expected in ((m, matrix), (m.transposed, matrix.T)):
        assert (found.outputs, found.inputs) == expected.shape
        for axis in range(3):
            x = numbers(*(found.inputs if i == axis else 2 + i for i in range(3)))
            right = np.moveaxis(np.tensordot(expected, x, (1, axis)), 0, axis)
            np.testing.assert_allclose(found(x, axis), right, atol=1e-12)
            np.testing.assert_allclose(found(np.asfortranarray(x), axis), right, atol=1e-12)


def test_both_ways_of_applying_a_map_are_used() -> None:
    assert {m.by_terms for m in _some_maps()} == {True, False}
    assert any(m.full for m in _some_maps())
    assert not all(m.full for m in _some_maps())


# What is changed in place ---------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("momentum", [0.1, 0.5, 1.0])
def test_running_statistics(torch: ModuleType, momentum: float) -> None:
    x, mean, variance = numbers(4, 3, 5), numbers(3, seed=1), numbers(3, seed=2) ** 2
    for name, training in (("batch_norm", "training"), ("instance_norm", "use_input_stats")):
        found = []
        for lib, (x_, mean_, variance_) in both(torch, x, mean, variance, grad=False):
            out = getattr(lib.nn.functional, name)(x_, mean_, variance_, momentum=momentum, **{training: True})
            found.append([out, mean_, variance_])
        assert not difference(*found, 10)
        assert found[0][1]._version == 1


def test_statistics_stay_as_they_are_in_evaluation_and_where_there_is_nothing() -> None:
    mean, variance = pullback.zeros(3), pullback.ones(3)
    F.batch_norm(pullback.randn(2, 3), mean, variance)
    F.batch_norm(pullback.randn(0, 3), mean, variance, training=True)
    F.instance_norm(pullback.randn(0, 3, 4), mean, variance)
    assert mean.tolist() == [0, 0, 0]
    assert variance.tolist() == [1, 1, 1]


def test_statistics_are_no_part_of_the_graph() -> None:
    x = pullback.randn(4, 3, requires_grad=True)
    mean, variance = pullback.zeros(3), pullback.ones(3)
    F.batch_norm(x, mean, variance, training=True)
    assert not mean.requires_grad
    assert not variance.requires_grad


@pytest.mark.torch
@pytest.mark.parametrize("p", [1.0, 2.0, 3.5, float("inf")])
def test_long_rows_of_an_embedding_are_shortened_in_place(torch: ModuleType, p: float) -> None:
    w, i = numbers(5, 3), np.array([[0, 3], [3, 2]])
    for name in ("embedding", "embedding_bag"):
        found = []
        for lib, (w_, i_) in both(torch, w, i):
            out = getattr(lib.nn.functional, name)(i_, w_, max_norm=0.8, norm_type=p)
            found.append([out.detach(), w_.detach(), *lib.autograd.grad(out.sum(), w_)])
        assert not difference(*found, 1e4)  # the norm is that of another library
        assert not np.array_equal(found[0][1].numpy(), w)
        assert np.array_equal(found[0][1].numpy()[[1, 4]], w[[1, 4]])


def test_a_weight_that_was_shortened_after_it_was_saved_is_an_error() -> None:
    w = pullback.tensor([[3.0, 4.0]], requires_grad=True)
    y = w * w
    F.embedding(pullback.tensor([0]), w, max_norm=1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# What the normalisations are made of ----------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 4), (4, 3, 1), (1, 2, 5)])
def test_all_results_of_standardizing_have_derivatives(shape: tuple[int, ...], center: bool) -> None:
    x = pullback.tensor(numbers(*shape), requires_grad=True)

    def function(x: Any) -> Any:
        return moments._standardize(x, 0.1, center)

    out, mean, variance = (t.detach().numpy() for t in function(x))
    flat = np.moveaxis(x.detach().numpy(), 1, 0).reshape(shape[1], -1)
    expected = flat.mean(1) * center
    np.testing.assert_allclose(mean.ravel(), expected, atol=1e-14)
    np.testing.assert_allclose(variance.ravel(), np.mean((flat - expected[:, None]) ** 2, 1))
    np.testing.assert_allclose((out**2).sum((0, 2)), flat.shape[1] * variance.ravel() / (variance.ravel() + 0.1))
    parts = (0, 1, 2) if center else (0, 2)  # the mean is then a constant
    for part in parts:
        assert pullback.autograd.gradcheck(lambda x, part=part: function(x)[part], (x,))
        assert pullback.autograd.gradgradcheck(lambda x, part=part: function(x)[part], (x,))
        tangent = pullback.tensor(numbers(*shape, seed=1))
        pushed = pullback.func.jvp(lambda x, part=part: function(x)[part], (x.detach(),), (tangent,))[1]
        jacobian = pullback.func.jacrev(lambda x, part=part: function(x)[part])(x.detach())
        pulled = np.tensordot(jacobian.numpy(), tangent.numpy(), 3)
        np.testing.assert_allclose(pushed.numpy(), pulled, atol=1e-12)


# Sparse gradients -----------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("padding", [None, 1])
def test_a_sparse_gradient_of_an_embedding_has_the_rows_looked_up(torch: ModuleType, padding: int | None) -> None:
    w, i = numbers(6, 2), np.array([[1, 4], [1, 0]])
    found = []
    for lib, (w_, i_) in both(torch, w, i):
        out = lib.nn.functional.embedding(i_, w_, padding_idx=padding, sparse=True)
        (g,) = lib.autograd.grad(out, w_, lib.tensor(numbers(2, 2, 2)))
        assert g.is_sparse
        found.append(g)
    assert found[0]._nnz() == found[1]._nnz()
    assert not difference(found[0].to_dense(), found[1].to_dense())


@pytest.mark.torch
def test_bags_take_their_arguments_in_the_order_of_old_with_a_warning(torch: ModuleType) -> None:
    found = []
    for lib, (w, i) in both(torch, numbers(6, 2), np.array([1, 4, 0])):
        with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
            found.append(lib.nn.functional.embedding_bag(w, i, lib.tensor([0, 1])))
    assert not difference(*found)


def test_a_sparse_gradient_has_a_derivative() -> None:
    w = pullback.tensor(numbers(4, 2), requires_grad=True)
    (g,) = pullback.autograd.grad(
        (F.embedding(pullback.tensor([1, 1, 3]), w, sparse=True) ** 2).sum(), w, create_graph=True
    )
    (second,) = pullback.autograd.grad(g.to_dense().sum(), w)
    assert second.to_dense().tolist() == [[0, 0], [4, 4], [0, 0], [2, 2]]


def test_scaling_by_frequency_is_not_possible_with_a_sparse_gradient() -> None:
    w = pullback.ones(3, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq or sparse"):
        F.embedding(pullback.tensor([1]), w, scale_grad_by_freq=True, sparse=True)


# What is random -------------------------------------------------------------------------------------------------------


def test_attention_that_is_dropped() -> None:
    q, k, v = (pullback.randn(64, 8, 4) for _ in range(3))
    assert not F.scaled_dot_product_attention(q, k, v, None, 1.0).any()
    pullback.manual_seed(3)
    first = F.scaled_dot_product_attention(q, k, pullback.ones(64, 8, 4), None, 0.3)
    pullback.manual_seed(3)
    assert pullback.equal(first, F.scaled_dot_product_attention(q, k, pullback.ones(64, 8, 4), None, 0.3))
    assert abs(first.mean().item() - 1) < 0.1  # what is kept is scaled up
    assert first.std().item() > 0.1


def test_fractional_poolings_draw_their_places() -> None:
    x = pullback.randn(2, 3, 20, 17)
    pullback.manual_seed(0)
    first = F.fractional_max_pool2d(x, 2, output_size=(11, 9))
    pullback.manual_seed(0)
    assert pullback.equal(first, F.fractional_max_pool2d(x, 2, output_size=(11, 9)))
    assert not pullback.equal(first, F.fractional_max_pool2d(x, 2, output_size=(11, 9)))
    values, places = F.fractional_max_pool2d(x, 2, output_ratio=0.5, return_indices=True)
    assert values.shape == (2, 3, 10, 8)
    assert pullback.equal(values, x.flatten(2).gather(2, places.flatten(2)).reshape(values.shape))


# Attention of many heads ----------------------------------------------------------------------------------------------


def _heads(lib: Any, shape: tuple[int, ...], **how: Any) -> Any:
    x, w, b, out, c = (lib.tensor(numbers(*s, seed=i)) for i, s in enumerate((shape, (12, 4), (12,), (4, 4), (4,))))
    return lib.nn.functional.multi_head_attention_forward(x, x, x, 4, 2, w, b, None, None, False, 0.0, out, c, **how)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(3, 2, 4), (3, 4)])
def test_heads_without_weights(torch: ModuleType, shape: tuple[int, ...]) -> None:
    causal, padded = np.triu(np.ones((3, 3), bool), 1), np.array([[False, True, False]] * 2)
    padded = padded if len(shape) == 3 else padded[0]
    for how in (
        {},
        {"attn_mask": causal},
        {"attn_mask": causal, "is_causal": True},
        {"key_padding_mask": padded},
        {"attn_mask": causal, "key_padding_mask": padded, "is_causal": True},
    ):
        for need in (False, True):
            found = [
                _heads(
                    lib,
                    shape,
                    need_weights=need,
                    **{k: lib.tensor(v) if k != "is_causal" else v for k, v in how.items()},
                )
                for lib in (pullback, torch)
            ]
            assert not difference(*found, 10)
            assert (found[0][1] is None) != need


def test_a_query_that_sees_nothing_gives_zeros_and_finite_gradients() -> None:
    q, k, v = (pullback.tensor(numbers(2, 3, 4, seed=i), requires_grad=True) for i in range(3))
    for mask in (pullback.zeros(3, 3).bool(), pullback.full((3, 3), -float("inf"))):
        out = F.scaled_dot_product_attention(q, k, v, mask)
        assert not out.any()
        for g in pullback.autograd.grad(out.sum(), (q, k, v)):
            assert not g.any()


# Grids ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_places_that_are_no_numbers_do_not_read_elsewhere(mode: str, padding: str) -> None:
    x = pullback.ones(1, 1, 3, 3)
    grid = pullback.tensor(
        [[[[np.nan, 0.0], [np.inf, -np.inf], [1e30, -1e30]]]], dtype=pullback.float32, requires_grad=True
    )
    out = F.grid_sample(x, grid, mode, padding)
    assert out.shape == (1, 1, 1, 3)
    if padding == "zeros":
        assert out.tolist() == [[[[0, 0, 0]]]]
    out.sum().backward()


# Half precision -------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "shapes", "how"),
    [
        ("conv2d", [(2, 3, 5, 5), (4, 3, 3, 3)], {}),
        ("conv_transpose2d", [(2, 3, 5, 5), (3, 4, 3, 3)], {}),
        ("max_pool2d", [(2, 3, 6, 6)], {"kernel_size": 2}),
        ("avg_pool2d", [(2, 3, 6, 6)], {"kernel_size": 3}),
        ("adaptive_avg_pool2d", [(2, 3, 6, 6)], {"output_size": 1}),
        ("layer_norm", [(4, 6)], {"normalized_shape": (6,)}),
        ("rms_norm", [(4, 6)], {"normalized_shape": (6,)}),
        ("interpolate", [(2, 3, 4, 4)], {"size": 7, "mode": "bilinear"}),
        ("pad", [(2, 3, 4)], {"pad": (1, 2), "mode": "reflect"}),
        ("unfold", [(2, 3, 4, 4)], {"kernel_size": 2}),
        ("scaled_dot_product_attention", [(2, 3, 4)] * 3, {}),
    ],
)
def test_half_precision(torch: ModuleType, name: str, shapes: list[tuple[int, ...]], how: dict[str, Any]) -> None:
    arrays = [numbers(*shape, seed=i, dtype="float16") for i, shape in enumerate(shapes)]
    compare(torch, name, *arrays, scale=5, **how)


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_older_names_of_interpolate_warn(torch: ModuleType) -> None:
    x = numbers(1, 2, 3, 4)
    for name in ("upsample", "upsample_nearest", "upsample_bilinear"):
        with pytest.warns(UserWarning, match="interpolate"):
            ours = getattr(F, name)(pullback.tensor(x), scale_factor=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = getattr(torch.nn.functional, name)(torch.tensor(x), scale_factor=2)
        assert not difference(ours, theirs)


def test_convolutions_are_functions_of_the_library_itself_too() -> None:
    for name in ("conv1d", "conv2d", "conv3d", "conv_transpose2d", "max_pool2d", "avg_pool1d", "layer_norm"):
        assert getattr(pullback, name) is getattr(F, name)
        assert f"nn.functional.{name}" in TABLE


# Of every order, in every mode, at sizes that matter ------------------------------------------------------------------


def test_gradients_for_each_example_of_a_convolution() -> None:
    x, w = pullback.tensor(numbers(6, 2, 8, 7)), pullback.tensor(numbers(4, 2, 3, 3, seed=1))

    def loss(w: Any, example: Any) -> Any:
        return (F.conv2d(example, w, padding=1, stride=2) ** 3).sum()

    found = pullback.func.vmap(pullback.func.grad(loss), in_dims=(None, 0))(w, x)
    expected = np.stack([pullback.func.grad(loss)(w, e).numpy() for e in x])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize(("name", "channels"), [("conv2d", 2), ("conv_transpose2d", 4)])
def test_the_gradient_of_a_weight_that_all_examples_share(name: str, channels: int) -> None:
    image, w = numbers(3, 4, channels, 8, 7), numbers(4, 2, 3, 3, seed=1)
    function = getattr(F, name)
    expected, found = (pullback.tensor(w, requires_grad=True) for _ in range(2))
    (function(pullback.tensor(image.reshape(-1, *image.shape[2:])), expected) ** 2).sum().backward()
    (pullback.func.vmap(lambda e: function(e, found))(pullback.tensor(image)) ** 2).sum().backward()
    np.testing.assert_allclose(found.grad.numpy(), expected.grad.numpy(), rtol=1e-10)


def test_an_ensemble_of_convolutions() -> None:
    x, w = pullback.tensor(numbers(5, 2, 8, 7)), pullback.tensor(numbers(3, 4, 2, 3, 3, seed=1))
    for image_dim, image in ((None, x), (0, pullback.tensor(numbers(3, 5, 2, 8, 7)))):
        found = pullback.func.vmap(F.conv2d, in_dims=(image_dim, 0))(image, w)
        expected = [F.conv2d(image if image_dim is None else image[i], w[i]).numpy() for i in range(3)]
        np.testing.assert_allclose(found.numpy(), np.stack(expected), rtol=1e-12)


def test_a_second_backward_through_mirrored_borders_is_refused_as_in_torch() -> None:
    x = pullback.ones(1, 3, requires_grad=True)
    y = pullback.nn.functional.pad(x, (1, 1), "reflect").sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize("name", ["conv1d", "conv_transpose1d"])
def test_a_batch_of_one_weight_beside_images_without_a_batch(name: str) -> None:
    """An axis of length 1 of the weights is one of the result."""
    convolve = getattr(F, name)
    weights = pullback.tensor([[[[1.0, 2.0]], [[0.5, -1.0]]]])
    x = pullback.tensor([[[1.0, -2.0, 3.0]]]) if name == "conv1d" else pullback.ones(1, 2, 3)

    def curvature(w: pullback.Tensor) -> pullback.Tensor:
        return pullback.func.jacrev(lambda w: convolve(x * w.sum(), w))(w)

    assert pullback.func.vmap(lambda w: convolve(x, w))(weights).tolist() == [convolve(x, weights[0]).tolist()]
    assert pullback.func.vmap(curvature)(weights).tolist() == [curvature(weights[0]).tolist()]


@pytest.mark.parametrize(("training", "eps"), [(True, 0.0), (True, -1.0), (True, float("nan")), (False, -0.1)])
def test_batch_norm_refuses_what_no_variance_can_be_added_to(training: bool, eps: float) -> None:
    x, running = pullback.ones(3, 2), [pullback.zeros(2), pullback.ones(2)]
    with pytest.raises(ValueError, match=r"batch_norm eps must be (positive during training|non-negative), but got"):
        pullback.nn.functional.batch_norm(x, *running, training=training, eps=eps)
    assert [t.tolist() for t in running] == [[0, 0], [1, 1]]


def test_forward_mode_of_a_scale_or_a_shift_alone() -> None:
    x, weight, bias = pullback.randn(4, 3).double(), pullback.randn(3).double(), pullback.randn(3).double()
    one = pullback.tensor([0.0, 1.0, 0.0]).double()
    standard = F.layer_norm(x, (3,))
    along_weight = pullback.func.jvp(lambda w: F.layer_norm(x, (3,), w, bias), (weight,), (one,))[1]
    assert pullback.allclose(along_weight, standard * one)
    along_bias = pullback.func.jvp(lambda b: F.layer_norm(x, (3,), weight, b), (bias,), (one,))[1]
    assert along_bias.tolist() == [[0.0, 1.0, 0.0]] * 4
    root = pullback.func.jvp(lambda w: F.rms_norm(x, (3,), w), (weight,), (one,))[1]
    assert pullback.allclose(root, F.rms_norm(x, (3,)) * one)


def test_hooks_of_layer_norm_see_no_more_than_in_torch_when_it_is_differentiated_twice() -> None:
    """A second derivative is one of the input: it does not pass through the node by the saved mean and variance."""
    x = pullback.tensor([[1.0, 2.0, 4.0], [0.0, 1.0, 5.0]], dtype=pullback.float64, requires_grad=True)
    seen = []
    y = F.layer_norm(x * x, (3,))
    y.register_hook(lambda g: seen.append(g.shape))
    y.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 2 for g in gi))
    (g,) = pullback.autograd.grad((y**3).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    assert seen == [(2, 3), (2, 3)]
    torchs = [[-6.8543, 26.703, -13.994], [0.0, 0.088126, -0.021541]]
    assert pullback.allclose(x.grad, pullback.tensor(torchs, dtype=pullback.float64), rtol=1e-4)

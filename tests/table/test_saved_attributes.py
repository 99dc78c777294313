"""What nodes say they saved: the `_saved_...` of torch's, for every operation of the table, and whether ours agree.

Where a node of ours saved less than torch's does, it says so by an AttributeError, or None for a tensor; what is
not torch's value then is listed here, by the operation and the name, and each that is listed has to differ.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

import pullback
import pullback.nn.functional
from pullback.ops import TABLE
from pullback.table.samples import Sample
from tests.oracle import DETERMINED, call, converted, difference, name_of, tensors_of
from tests.table.test_node_names import function

pytestmark = pytest.mark.torch

DIFFERENT = set(
    """
    as_strided_scatter.size as_strided_scatter.storage_offset as_strided_scatter.stride broadcast_tensors.self_sym_sizes
    broadcast_to.self_sym_sizes complex.imag complex.real cross.dim cummax.self cummin.self cumprod.result det.LU
    det.pivots det.result diagonal_scatter.dim1 diagonal_scatter.dim2 diagonal_scatter.offset expand.self_sym_sizes
    expand_as.self_sym_sizes fft.hfft2.dim fft.hfftn.dim fft.rfft.self fft.rfft2.self fft.rfftn.self gather.self
    gather.sparse_grad imag.dim imag.self_sym_sizes index_add.alpha index_add.source index_add.source_dim
    index_copy.source index_copy.source_dim index_reduce.index index_reduce.source istft.other linalg.det.LU
    linalg.det.pivots linalg.det.result linalg.eigvals.eigenvalues linalg.eigvals.eigenvectors
    linalg.eigvalsh.eigenvalues linalg.eigvalsh.eigenvectors linalg.lstsq.solution linalg.lu_factor.pivot
    linalg.lu_factor_ex.pivot linalg.matrix_norm.dim linalg.norm.dim linalg.slogdet.LU linalg.slogdet.pivots
    linalg.solve.LU linalg.solve.pivots linalg.solve_ex.LU linalg.solve_ex.pivots linalg.svdvals.S
    linalg.svdvals.S_sym_argsize_minus_1 linalg.svdvals.U linalg.svdvals.Vh linalg.svdvals.full_matrices lu.pivot
    masked.cumprod.result masked.mean.other masked.var.other masked_select.self meshgrid.self_sym_sizes
    mm.mat2_sym_strides mm.self_sym_strides nn.functional.adaptive_max_pool2d.self
    nn.functional.adaptive_max_pool3d.self nn.functional.conv_transpose1d.output_padding
    nn.functional.conv_transpose2d.output_padding nn.functional.conv_transpose3d.output_padding
    nn.functional.cross_entropy.self nn.functional.cross_entropy.total_weight nn.functional.huber_loss.self
    nn.functional.huber_loss.target nn.functional.instance_norm.self_sym_sizes nn.functional.interpolate.scales
    nn.functional.interpolate.self_sym_sizes nn.functional.layer_norm.bias nn.functional.linear_cross_entropy.self
    nn.functional.linear_cross_entropy.total_weight nn.functional.logsigmoid.buffer nn.functional.max_pool2d.ceil_mode
    nn.functional.max_pool2d.kernel_size nn.functional.max_pool2d.self nn.functional.max_pool2d.stride
    nn.functional.max_pool3d.ceil_mode nn.functional.max_pool3d.kernel_size nn.functional.max_pool3d.self
    nn.functional.max_pool3d.stride nn.functional.nll_loss.self nn.functional.nll_loss.total_weight
    nn.functional.normalize.other nn.functional.prelu.weight nn.functional.scaled_dot_product_attention.mat2_sym_strides
    nn.functional.scaled_dot_product_attention.self_sym_strides put.source real.dim real.self_sym_sizes
    scatter_reduce.result scatter_reduce.self scatter_reduce.src select_scatter.dim select_scatter.index
    slice_scatter.dim slice_scatter.end slice_scatter.start slice_scatter.step slogdet.LU slogdet.pivots
    special.i0e.result special.i1.result special.i1e.result special.log_ndtr.result std.correction std_mean.correction
    sum_to_size.self_sym_sizes take.self take_along_dim.self take_along_dim.sparse_grad unsqueeze.dim vander.dims
    var.correction var_mean.correction
    """.split()
)


def node_of(lib: ModuleType, name: str, made: Sample) -> Any:
    """The node of the first result of a call; None if it fails, or has none."""
    sample, leaves = converted(lib, made, requires_grad=True)
    if not any(t.requires_grad for t in leaves):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = tensors_of(function(lib, name)(*sample.args, **sample.kwargs))
        except Exception:
            return None
    return getattr(found[0], "grad_fn", None) if found else None


def agree(ours: Any, theirs: Any) -> bool:
    """Whether two saved values are the same: numbers in type, too, tuples each by each."""
    if isinstance(theirs, (tuple, list)):
        return isinstance(ours, (tuple, list)) and len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if hasattr(theirs, "numel"):
        return isinstance(ours, pullback.Tensor) and not difference(ours, theirs, 100)
    if type(theirs).__name__ == "dtype":
        return isinstance(ours, pullback.dtype) and name_of(ours) == name_of(theirs)
    if type(theirs) is int and theirs >= 1 << 63:
        theirs -= 1 << 64  # torch has some negative numbers as unsigned ones
    return type(ours) is type(theirs) and ours == theirs


def saved_by(node: Any, name: str) -> Any:
    """What a node has saved under a name, or the error that it is not there."""
    try:
        return getattr(node, name)
    except AttributeError as error:
        return error


def test_what_nodes_saved_is_what_torchs_saved() -> None:
    torch = pytest.importorskip("torch")
    agreeing, differing = set(), {}
    for op in (name for name in TABLE if not name.rpartition(".")[2].startswith("_") and name not in DETERMINED):
        for sample in TABLE[op].domain("samples"):
            made = sample.arrays("float64")
            ours, theirs = node_of(pullback, op, made), node_of(torch, op, made)
            if ours is None or theirs is None or theirs.name().rpartition("::")[2] != ours.name():
                continue
            for attribute in (a for a in dir(theirs) if a.startswith("_saved_")):
                key, want = f"{op}.{attribute.removeprefix('_saved_')}", getattr(theirs, attribute)
                found = saved_by(ours, attribute)
                if agree(found, want):
                    agreeing.add(key)
                else:
                    differing[key] = f"{found!r}, in torch {want!r}"
            break
    assert len(agreeing) > 500
    assert {key: found for key, found in differing.items() if key not in DIFFERENT} == {}
    assert sorted(DIFFERENT - set(differing)) == []


def kept(lib: ModuleType) -> dict[str, Any]:
    """What some nodes have saved, by what they are of."""
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    image, square = lib.ones(1, 1, 3, 3, requires_grad=True), lib.eye(2).requires_grad_()
    window = lib.nn.functional.unfold(image, 2, padding=1).grad_fn
    line = lib.nn.functional.interpolate(lib.ones(1, 1, 2, requires_grad=True), 4, mode="linear").grad_fn
    convolved = lib.nn.functional.conv2d(image, image, padding=1).grad_fn
    sliced, picked, last = x[:, 1:].grad_fn, x[..., 1].grad_fn, x[None, 0, :1].grad_fn
    chosen = x[:, lib.tensor([1, 0])].grad_fn
    ones = lib.ones(4, requires_grad=True)
    return {
        "numbers": [(x * 2).grad_fn._saved_other, (x * 2.5).grad_fn._saved_other, (x / 2).grad_fn._saved_other],
        "alpha": [(x + x).grad_fn._saved_alpha, (x - 1).grad_fn._saved_alpha, (1 - x).grad_fn._saved_alpha],
        "slices": [getattr(f, f"_saved_{a}") for f in (sliced, last) for a in ("dim", "start", "end", "step")],
        "picked": [(picked._saved_dim, picked._saved_index), x[0].grad_fn._saved_index],
        "chosen": [chosen._saved_indices, tuple(chosen._saved_self_sym_sizes)],
        "rounding": [x.div(2, rounding_mode=m).grad_fn._saved_rounding_mode for m in ("floor", "trunc")],
        "dims": [x.sum(0).grad_fn._saved_dim, x.mean((0, 1)).grad_fn._saved_dim, x.var(0).grad_fn._saved_dim],
        "numel": x.mean().grad_fn._saved_self_sym_numel,
        "window": [window._saved_kernel_size, window._saved_padding, window._saved_self_sym_argsize_minus_2],
        "line": [line._saved_output_size, line._saved_align_corners],
        "convolved": [convolved._saved_padding, convolved._saved_groups, convolved._saved_transposed],
        "mode": [lib.linalg.qr(square, mode=m)[0].grad_fn._saved_mode for m in ("reduced", "complete")],
        "offset": [ones.as_strided((2,), (1,), *given).grad_fn._saved_storage_offset for given in ((), (1,))],
        "outputs": [x.max(0).values.grad_fn._saved_indices, *_extremes(lib.aminmax(x, dim=0).min.grad_fn)],
        "combined": _combined(ones.scatter_reduce(0, lib.tensor([0]), ones, "amax", include_self=False).grad_fn),
    }


def _extremes(node: Any) -> tuple[Any, ...]:
    return node._saved_min, node._saved_max


def _combined(node: Any) -> tuple[Any, ...]:
    return node._saved_reduce, node._saved_include_self


def test_what_follows_from_what_was_saved() -> None:
    theirs = kept(pytest.importorskip("torch"))
    ours = kept(pullback)
    assert [name for name in theirs if not agree(ours[name], theirs[name])] == []


def test_what_follows_from_freed_values_is_freed() -> None:
    torch = pytest.importorskip("torch")
    for lib in (torch, pullback):
        y = lib.ones(2, 2, requires_grad=True).aminmax(dim=0).min
        y.sum().backward()
        with pytest.raises(RuntimeError, match="after they have already been freed"):
            _ = y.grad_fn._saved_min


def test_hooks_on_what_has_a_name_of_torchs() -> None:
    torch = pytest.importorskip("torch")
    for lib in (torch, pullback):
        x = lib.tensor([[1.0, 2.0]], requires_grad=True)
        y, seen = x.aminmax(dim=0).min, []
        y.grad_fn._raw_saved_min.register_hooks(lambda t, seen=seen: seen.append("packed") or t, lambda t: t)
        assert seen == ["packed"]
        y.sum().backward()
        assert x.grad.tolist() == [[1.0, 1.0]]


def test_what_is_kept_otherwise_than_in_torch() -> None:
    """The cases of docs/node_names.md that samples do not show."""
    found = []
    for lib in (pullback, pytest.importorskip("torch")):
        x = lib.ones(2, 2, requires_grad=True)
        y = x.softmax(0)
        y.sum().backward()
        found.append(
            [
                hasattr((2 * x).grad_fn, "_saved_self") and (2 * x).grad_fn._saved_self is not None,
                type(call(lib, lambda y=y: y.grad_fn._saved_dim)).__name__,
                type(x[lib.tensor([0])].grad_fn._raw_saved_indices).__name__,
                x.transpose(0, -1).grad_fn._saved_dim1,
                x.as_strided((1,), (1,), 0).grad_fn._saved_storage_offset,
                x.add(x, alpha=3).grad_fn._saved_alpha,
            ]
        )
    assert found[0] == [True, "RuntimeError", "SavedTensor", -1, None, 1]
    assert found[1] == [False, "int", "tuple", (1 << 64) - 1, 0, 3]


@pytest.mark.parametrize("name", ["_saved_start", "_saved_end", "_saved_step"])
def test_a_node_has_no_slice_where_there_was_none(name: str) -> None:
    for lib in (pytest.importorskip("torch"), pullback):
        assert not hasattr(lib.ones(2, requires_grad=True)[0].grad_fn, name)


# -- what is listed ----------------------------------------------------------------------------------------------------


def test_the_names_that_are_listed_are_those_that_are_answered() -> None:
    """What draws graphs asks for each name of ``dir(node)`` that begins so."""
    x = pullback.ones(3, 2, requires_grad=True)
    for y in (x.exp(), x * x, x @ x.T, x.sum(), x[0].softmax(0), 3 * x, x.max(0)[0]):
        listed = [name for name in dir(y.grad_fn) if name.startswith(("_saved_", "_raw_saved_"))]
        assert listed
        for name in listed:
            getattr(y.grad_fn, name)
    assert {"_saved_self", "_saved_other", "_raw_saved_self"} <= {*dir((x * x).grad_fn)}
    assert "_saved_result" in dir(x.exp().grad_fn)
    assert "_saved_self" not in dir(x.exp().grad_fn)
    assert "_saved_other" not in dir((3 * x).grad_fn)  # a number: there is no gradient that needs `x`
    assert "_saved_self_sym_argsize_minus_2" not in dir(pullback.ones(2, requires_grad=True).sum().grad_fn)


def test_to_list_the_names_unpacks_nothing() -> None:
    x = pullback.ones(3, requires_grad=True)
    unpacked: list[str] = []
    with pullback.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append("once") or t):
        y = x * x
    assert "_saved_self" in dir(y.grad_fn)
    assert unpacked == []
    y.sum().backward()
    assert unpacked
    assert "_saved_self" in dir(y.grad_fn)  # which says that it was freed
